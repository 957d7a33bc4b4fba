/* batch.c: many requests at once. Threads of libhaul do the work and never touch Perl. The
 * thread that asks for the next response takes it and runs the callbacks. */
#include "haul_perl.h"

typedef struct hk_batch {
    haul_batch *batch;
    SV *engine;                /* keeps the client alive */
} hk_batch;

static int batch_free(pTHX_ SV *sv, MAGIC *magic) {
    hk_batch *batch = (hk_batch *)magic->mg_ptr;
    PERL_UNUSED_ARG(sv);
    if (!batch)
        return 0;
    magic->mg_ptr = NULL;
    haul_batch_free(batch->batch);
    SvREFCNT_dec(batch->engine);
    Safefree(batch);
    return 0;
}

#ifdef USE_ITHREADS
/* A batch belongs to the thread that created it. */
static int batch_dup(pTHX_ MAGIC *magic, CLONE_PARAMS *params) {
    PERL_UNUSED_ARG(params);
    magic->mg_ptr = NULL;
    return 0;
}
#else
#define batch_dup NULL
#endif

static const MGVTBL batch_vtbl = { NULL, NULL, NULL, NULL, batch_free, NULL, batch_dup, NULL };

static hk_batch *batch_of(pTHX_ SV *sv) {
    hk_batch *batch = (hk_batch *)hk_attached(aTHX_ sv, &batch_vtbl);
    if (!batch)
        croak("not a batch of this thread");
    return batch;
}

static void check(pTHX_ haul_status status) {
    if (status != HAUL_STATUS_OK)
        croak("%s\n", haul_error_text(haul_last_error()));
}

SV *hk_batch_new(pTHX_ SV *engine, UV parallel, UV per_host, bool in_order, UV memory) {
    hk_engine *of = hk_engine_of_sv(aTHX_ engine);
    hk_batch *batch;
    SV *object = newSV(0), *self = sv_2mortal(newRV_noinc(object));
    if (!of)
        croak("not an HTTP::Haul::Engine");
    sv_bless(self, gv_stashpvs("HTTP::Haul::Batch", GV_ADD));
    Newxz(batch, 1, hk_batch);
    batch->batch = haul_batch_new(of->client);
    batch->engine = newSVsv(engine);
    hk_attach(aTHX_ object, &batch_vtbl, batch);
    if (!batch->batch)
        check(aTHX_ HAUL_STATUS_INTERNAL);
    check(aTHX_ haul_batch_set_parallel(batch->batch, parallel, per_host));
    check(aTHX_ haul_batch_set_order(batch->batch, in_order ? HAUL_ORDER_INPUT : HAUL_ORDER_COMPLETION));
    check(aTHX_ haul_batch_set_memory(batch->batch, memory));
    return SvREFCNT_inc_simple_NN(self);
}

void hk_batch_limit(pTHX_ SV *self, NV rate, NV rate_host, UV limit_rate, NV stall_time) {
    hk_batch *batch = batch_of(aTHX_ self);
    check(aTHX_ haul_batch_set_rate(batch->batch, rate, rate_host));
    check(aTHX_ haul_batch_set_limit_rate(batch->batch, limit_rate));
    check(aTHX_ haul_batch_set_stall_time(batch->batch, stall_time > 0 ? (uint64_t)(stall_time * 1000 + 0.999) : 0));
}

static haul_status fill(pTHX_ haul_request *request, AV *headers, SV *content) {
    haul_status status = HAUL_STATUS_OK;
    for (SSize_t i = 0; status == HAUL_STATUS_OK && i < av_top_index(headers); i += 2) {
        SV **name = av_fetch(headers, i, 0), **value = av_fetch(headers, i + 1, 0);
        status = haul_request_add_header(request, hk_text(aTHX_ *name, "a header's name"), hk_text(aTHX_ *value, "a header's value"));
    }
    if (status == HAUL_STATUS_OK && SvOK(content)) {
        STRLEN len;
        SV *bytes = hk_bytes(aTHX_ content);
        const char *data;
        if (!bytes)
            croak("Wide character in request message body\n");
        data = SvPV(bytes, len);
        status = haul_request_set_body(request, data, len);
    }
    return status;
}

/* Makes the 599 of a request that libhaul does not accept. */
static SV *refused(pTHX_ SV *url) {
    STRLEN len;
    const char *text = SvPV(url, len);
    const haul_error *failure = haul_last_error();
    const haul_status status = haul_error_code(failure);
    SV *why = sv_2mortal(hk_failure(aTHX_ status, failure, text, len, 0));
    HV *answer = hk_response_599(aTHX_ url, why);
    hk_store(aTHX_ answer, HK_ERROR, newRV_noinc((SV *)hk_error(aTHX_ status, failure)));
    return newRV_noinc((SV *)answer);
}

static void request_free(pTHX_ void *request) {
    haul_request_free((haul_request *)request);
}

SV *hk_batch_add(pTHX_ SV *self, UV index, SV *method, SV *url, AV *headers, SV *content) {
    hk_batch *batch = batch_of(aTHX_ self);
    haul_request *request;
    haul_status status;
    STRLEN len;
    const char *text = hk_url_text(aTHX_ url), *given = SvPV(url, len);
    if (!hk_has_scheme(text, strlen(text)))
        croak(HK_NO_URL, (int)len, given);
    request = haul_request_new(hk_text(aTHX_ method, "the method"), text);
    if (!request)
        return refused(aTHX_ url);
    ENTER;
    SAVEDESTRUCTOR_X(request_free, request);
    status = fill(aTHX_ request, headers, content);
    if (status == HAUL_STATUS_OK)
        status = haul_batch_add(batch->batch, request, INT2PTR(void *, index));
    LEAVE;
    return status == HAUL_STATUS_OK ? newSV(0) : refused(aTHX_ url);
}

bool hk_batch_add_url(pTHX_ SV *self, UV index, SV *url) {
    hk_batch *batch = batch_of(aTHX_ self);
    haul_request *request;
    haul_status status;
    const haul_slice text = hk_url(aTHX_ url);
    if ((TAINTING_get && SvTAINTED(url)) || strlen(text.data) != text.len || !hk_has_scheme(text.data, text.len))
        return FALSE;
    request = haul_request_new("GET", text.data);
    if (!request)
        return FALSE;
    status = haul_batch_add(batch->batch, request, INT2PTR(void *, index));
    haul_request_free(request);
    return status == HAUL_STATUS_OK;
}

/* Takes the body out of a response. Perl frees strings by free(), so this one owns the memory of
 * libhaul. Another allocator of Perl needs a copy. */
static SV *take_body(pTHX_ haul_response *response, const haul_reply *reply) {
#if !defined(MYMALLOC) && !defined(PERL_IMPLICIT_SYS) && !defined(PERL_TRACK_MEMPOOL) && !defined(PERL_DEBUG_READONLY_COW)
    size_t len = 0;
    char *body = haul_response_take_body(response, &len);
    /* Perl counts the copies of a string in a byte behind the NUL. */
    char *memory = body ? (char *)realloc(body, len + 2) : NULL;
    if (body) {
        SV *sv = newSV_type(SVt_PV);
        SvPV_set(sv, memory ? memory : body);
        SvCUR_set(sv, len);
        SvLEN_set(sv, memory ? len + 2 : len + 1);
        SvPOK_only(sv);
        SvTAINT(sv);
        return sv;
    }
#endif
    return newSVpvn(reply->body_len ? reply->body : "", reply->body_len);
}

/* Makes the hash of a complete response. `url` is the URL of the request, or NULL if the caller
 * sets it. */
static HV *complete(pTHX_ const haul_reply *reply, haul_response *response, SV *url) {
    HV *answer;
    TAINT;
    answer = hk_response(aTHX_ reply, url ? newSVsv(url) : newSV(0));
    hk_store(aTHX_ answer, HK_CONTENT, take_body(aTHX_ response, reply));
    TAINT_NOT;
    hk_add_trailers(aTHX_ answer, response);
    return answer;
}

SV *hk_batch_next(pTHX_ SV *self, IV timeout_ms, HV *states, UV *index, SV **request) {
    hk_batch *batch = batch_of(aTHX_ self);
    hk_engine *engine = hk_engine_of_sv(aTHX_ batch->engine);
    haul_response *response = NULL;
    const haul_error *error;
    void *user = NULL;
    haul_status status;
    hk_deferred deferred;
    char key[24];
    I32 key_len;
    SV **state, **asks;
    HV *answer;
    *request = NULL;
    hk_defer_signals(aTHX_ &deferred);
    status = haul_batch_next(batch->batch, timeout_ms, &response, &user);
    hk_restore_signals(aTHX_ &deferred);
    if (engine && engine->error) {
        SV *died = sv_2mortal(engine->error);
        engine->error = NULL;
        haul_response_free(response);
        croak_sv(died);
    }
    if (status == HAUL_STATUS_INTERRUPTED)
        return NULL;
    check(aTHX_ status);
    if (!response)
        return NULL;
    *index = PTR2UV(user);
    key_len = (I32)my_snprintf(key, sizeof key, "%" UVuf, *index);
    state = hv_fetch(states, key, key_len, 0);
    if (state && !SvROK(*state))
        *request = *state;
    error = haul_response_error(response);
    if (error) {
        const char *of = haul_error_url(error);
        SV *url = sv_2mortal(newSVpv(of ? of : "", 0));
        SV *why = sv_2mortal(hk_failure(aTHX_ haul_error_code(error), error, SvPVX(url), SvCUR(url), engine->max_size));
        answer = hk_response_599(aTHX_ *request ? *request : url, why);
        hk_store(aTHX_ answer, HK_ERROR, newRV_noinc((SV *)hk_error(aTHX_ haul_error_code(error), error)));
    }
    else {
        haul_reply reply;
        status = haul_response_reply(response, &reply);
        if (status != HAUL_STATUS_OK) {
            haul_response_free(response);
            check(aTHX_ status);
        }
        answer = complete(aTHX_ &reply, response, *request);
        if (hk_redirects(&reply))
            *request = NULL;
        if ((engine && engine->timings)
            || (state && SvROK(*state) && (asks = hv_fetchs((HV *)SvRV(*state), "timings", 0)) && SvTRUE(*asks)))
            hk_add_timings(aTHX_ answer, response);
    }
    haul_response_free(response);
    if (*request)
        *request = hv_delete(states, key, key_len, 0);
    return newRV_noinc((SV *)answer);
}

UV hk_batch_pending(pTHX_ SV *self) {
    return haul_batch_pending(batch_of(aTHX_ self)->batch);
}

int hk_batch_fd(pTHX_ SV *self) {
    return haul_batch_fd(batch_of(aTHX_ self)->batch);
}
