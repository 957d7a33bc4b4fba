/* lwp.c: requests for LWP::Protocol::haul. Fields are lists, as HTTP::Headers flattens them. No
 * fields are added, and the response is passed on as received. */
#include "haul_perl.h"

typedef struct hk_stream {
    haul_request *request;
    haul_response *response;
    SV *engine;
    SV *content;               /* the request content, which may still be sent while the response is read */
    hk_exchange *exchange;     /* for a content callback */
} hk_stream;

static int stream_free(pTHX_ SV *sv, MAGIC *magic) {
    hk_stream *stream = (hk_stream *)magic->mg_ptr;
    PERL_UNUSED_ARG(sv);
    if (!stream)
        return 0;
    magic->mg_ptr = NULL;
    haul_response_free(stream->response);
    haul_request_free(stream->request);
    SvREFCNT_dec(stream->content);
    SvREFCNT_dec(stream->exchange->pending);
    Safefree(stream->exchange);
    SvREFCNT_dec(stream->engine);
    Safefree(stream);
    return 0;
}

#ifdef USE_ITHREADS
/* A stream belongs to the thread that opened it. */
static int stream_dup(pTHX_ MAGIC *magic, CLONE_PARAMS *params) {
    PERL_UNUSED_ARG(params);
    magic->mg_ptr = NULL;
    return 0;
}
#else
#define stream_dup NULL
#endif

static const MGVTBL stream_vtbl = { NULL, NULL, NULL, NULL, stream_free, NULL, stream_dup, NULL };

/* Stores number and text of a failure, from which Perl makes the message. */
static void failure(pTHX_ SV **out, haul_status status) {
    const haul_error *error = haul_last_error();
    out[6] = newSVuv(status);
    out[7] = newSVpv(error ? haul_error_text(error) : haul_status_text(status), 0);
}

static bool is_named(haul_slice name, const char *wanted) {
    return name.len == strlen(wanted) && strncasecmp(name.data, wanted, name.len) == 0;
}

/* Returns whether LWP parses the head of content with this type. */
static bool is_html(haul_slice type) {
    for (size_t at = 0; at + 4 < type.len; at++)
        if (strncasecmp(type.data + at, "xhtml", 5) == 0)
            return TRUE;
    return type.len >= 9 && strncasecmp(type.data, "text/html", 9) == 0;
}

#define HK_SLICE(text) { text, sizeof(text) - 1 }

/* Stores status line and fields as LWP has them: it adds some fields and renames
 * Transfer-Encoding. */
static void head(pTHX_ const haul_reply *reply, const haul_response *response, SV *headers, SV **out) {
    static const haul_slice coding = HK_SLICE("Client-Transfer-Encoding");
    static const haul_header number = { HK_SLICE("Client-Response-Num"), HK_SLICE("1") };
    static const haul_slice from = HK_SLICE("Client-Peer");
    haul_header few[HK_HEADERS], *fields = few;
    size_t count = reply->header_count;
    uint16_t port = 0;
    const char *host = haul_response_peer(response, &port);
    bool html = FALSE;
    SV *peer;
    if (count + 2 > HK_HEADERS)
        fields = (haul_header *)SvPVX(sv_2mortal(newSV((count + 2) * sizeof(haul_header))));
    for (size_t i = 0; i < count; i++) {
        fields[i] = reply->headers[i];
        if (is_named(fields[i].name, "transfer-encoding"))
            fields[i].name = coding;
        else if (!html && is_named(fields[i].name, "content-type"))
            html = is_html(fields[i].value);
    }
    if (host) {
        peer = sv_2mortal(newSVpvf("%s:%u", host, (unsigned)port));
        fields[count].name = from;
        fields[count].value.data = SvPVX(peer);
        fields[count++].value.len = SvCUR(peer);
    }
    fields[count++] = number;
    TAINT;
    out[0] = newSVuv(reply->status);
    out[1] = newSVpvn(reply->reason.len ? reply->reason.data : "", reply->reason.len);
    out[2] = hk_protocol(aTHX_ reply->version);
    if (SvROK(headers))
        hk_add_to_http_headers(aTHX_ (HV *)SvRV(headers), fields, count);
    else
        out[3] = newRV_noinc((SV *)hk_header_list(aTHX_ fields, count));
    out[5] = newSVsv(boolSV(html));
    TAINT_NOT;
}

/* Adds the trailers to an HTTP::Headers, or appends them to a list. */
static void add_trailers(pTHX_ SV *headers, AV *list, const haul_response *response) {
    size_t count = haul_response_trailer_count(response);
    for (size_t i = 0; i < count; i++) {
        haul_header trailer;
        if (haul_response_trailer(response, i, &trailer) != HAUL_STATUS_OK)
            continue;
        if (SvROK(headers)) {
            hk_add_to_http_headers(aTHX_ (HV *)SvRV(headers), &trailer, 1);
            continue;
        }
        av_push(list, newSVpvn(trailer.name.data, trailer.name.len));
        av_push(list, newSVpvn(trailer.value.len ? trailer.value.data : "", trailer.value.len));
    }
}

static void clear_results(pTHX_ SV **out) {
    for (int i = 0; i < HK_LWP_ANSWER; i++)
        out[i] = &PL_sv_undef;
}

/* Returns the bytes of one element of a list of fields. */
static SV *element(pTHX_ AV *fields, SSize_t at) {
    SV **found = av_fetch(fields, at, 0);
    SV *bytes = found && SvOK(*found) ? hk_bytes(aTHX_ *found) : newSVpvs_flags("", SVs_TEMP);
    if (!bytes)
        croak("Wide character in a header\n");
    return bytes;
}

void hk_lwp_run(pTHX_ hk_exchange *x, SV *headers, SV **out) {
    haul_reply reply;
    haul_response *used;
    haul_status status;
    x->content = sv_2mortal(newSVpvs(""));
    x->call.reserve = hk_reserve;
    clear_results(aTHX_ out);
    status = hk_exchange_run(aTHX_ x, &reply, &used);
    if (x->error && !reply.status) {
        hk_exchange_done(aTHX_ x, used);
        croak_sv(x->error);
    }
    if (x->error) {
        /* As in LWP, an exception of a signal handler during a body keeps the received part. */
        out[6] = newSVuv(HAUL_STATUS_OK);
        out[7] = newSVsv(x->error);
    }
    else if (status != HAUL_STATUS_OK)
        failure(aTHX_ out, status);
    if (reply.status) {
        head(aTHX_ &reply, used, headers, out);
        add_trailers(aTHX_ headers, SvROK(headers) ? NULL : (AV *)SvRV(out[3]), used);
        SvPOK_only(x->content);
        SvCUR_set(x->content, reply.body_len < SvLEN(x->content) ? reply.body_len : 0);
        *SvEND(x->content) = '\0';
        TAINT;
        SvTAINT(x->content);
        TAINT_NOT;
        out[4] = SvREFCNT_inc_simple_NN(x->content);
    }
    hk_exchange_done(aTHX_ x, used);
}

SSize_t hk_lwp_call(pTHX_ SV *engine_sv, SV *method, SV *url, AV *fields, SV *content, SV *headers, SV **out) {
    hk_engine *engine = hk_engine_of_sv(aTHX_ engine_sv);
    hk_exchange x;
    STRLEN len;
    const char *text = SvPV(method, len);
    if (!engine)
        croak("not an HTTP::Haul::Engine");
    hk_keep(aTHX_ SvRV(engine_sv));
    hk_begin(aTHX_ &x, engine, text, len, url);
    for (SSize_t i = 0; i < av_top_index(fields); i += 2) {
        SV *name = element(aTHX_ fields, i);
        if (SvCUR(name) == 14 && strncasecmp(SvPVX(name), "content-length", 14) == 0)
            x.call.read_length = SvIV(element(aTHX_ fields, i + 1));
        else {
            SV *value = element(aTHX_ fields, i + 1);
            const char *chars = SvPV(name, len);
            hk_add_field(aTHX_ &x, chars, len, value);
        }
    }
    if (SvOK(content) && !hk_set_content(aTHX_ &x, content))
        croak_sv(x.error);
    hk_lwp_run(aTHX_ &x, headers, out);
    return HK_LWP_ANSWER;
}

static void check(pTHX_ haul_status status) {
    if (status != HAUL_STATUS_OK)
        croak("%s\n", haul_error_text(haul_last_error()));
}

/* Takes the exception of a callback or signal handler, mortal; NULL if there is none. */
static SV *take_exception(pTHX_ hk_exchange *x, hk_engine *engine) {
    SV *died = x->error;
    x->error = NULL;
    if (engine && engine->error) {
        sv_2mortal(engine->error);
        if (!died)
            died = engine->error;
        engine->error = NULL;
    }
    return died;
}

SSize_t hk_lwp_open(pTHX_ SV *engine_sv, SV *method, SV *url, AV *fields, SV *content, SV *headers, SV **out) {
    hk_engine *engine = hk_engine_of_sv(aTHX_ engine_sv);
    hk_stream *stream;
    hk_exchange *x;
    haul_reply reply;
    haul_status status;
    hk_deferred deferred;
    int64_t length = -1;
    SV *object = newSV(0), *self = sv_2mortal(newRV_noinc(object)), *died;
    if (!engine)
        croak("not an HTTP::Haul::Engine");
    sv_bless(self, gv_stashpvs("HTTP::Haul::Stream", GV_ADD));
    Newxz(stream, 1, hk_stream);
    Newxz(x, 1, hk_exchange);
    stream->exchange = x;
    stream->engine = newSVsv(engine_sv);
    hk_attach(aTHX_ object, &stream_vtbl, stream);
    stream->request = haul_request_new_raw(hk_text(aTHX_ method, "the method"), hk_url_text(aTHX_ url));
    if (!stream->request)
        check(aTHX_ haul_error_code(haul_last_error()));
    check(aTHX_ haul_request_set_max_redirects(stream->request, 0));
    for (SSize_t i = 0; i < av_top_index(fields); i += 2) {
        SV *name = element(aTHX_ fields, i), *value = element(aTHX_ fields, i + 1);
        if (SvCUR(name) == 14 && strncasecmp(SvPVX(name), "content-length", 14) == 0)
            length = SvIV(value);
        else
            check(aTHX_ haul_request_add_header(stream->request, hk_text(aTHX_ name, "a header's name"),
                                                hk_text(aTHX_ value, "a header's value")));
    }
    if (SvOK(content)) {
        x->engine = engine;
        x->call.read_length = length;
        stream->content = SvREFCNT_inc(hk_set_content(aTHX_ x, content));
        if (!stream->content)
            croak_sv(x->error);
        check(aTHX_ x->content_callback
                  ? haul_request_set_body_callback(stream->request, hk_read_content, NULL, x, length)
                  : haul_request_set_body_borrowed(stream->request, x->call.body.data, x->call.body.len));
    }
    clear_results(aTHX_ out);
    hk_defer_signals(aTHX_ &deferred);
    status = haul_client_open(engine->client, stream->request, &stream->response);
    hk_restore_signals(aTHX_ &deferred);
    died = take_exception(aTHX_ x, engine);
    if (died)
        croak_sv(died);
    if (status != HAUL_STATUS_OK) {
        failure(aTHX_ out, status);
        return HK_LWP_ANSWER;
    }
    check(aTHX_ haul_response_reply(stream->response, &reply));
    head(aTHX_ &reply, stream->response, headers, out);
    out[4] = SvREFCNT_inc_simple_NN(self);
    return HK_LWP_ANSWER;
}

/* Returns at most `size` bytes of the body; an empty string at the end. */
SV *hk_stream_read(pTHX_ SV *self, UV size) {
    hk_stream *stream = (hk_stream *)hk_attached(aTHX_ self, &stream_vtbl);
    hk_engine *engine;
    SV *out = sv_2mortal(newSV(size + 1)), *died;
    size_t got = 0;
    haul_status status;
    hk_deferred deferred;
    if (!stream || !stream->response)
        croak("not a stream of this thread");
    hk_keep(aTHX_ SvRV(self));
    engine = hk_engine_of_sv(aTHX_ stream->engine);
    hk_defer_signals(aTHX_ &deferred);
    status = haul_response_read(stream->response, SvPVX(out), size, &got);
    hk_restore_signals(aTHX_ &deferred);
    died = take_exception(aTHX_ stream->exchange, engine);
    if (died)
        croak_sv(died);
    if (status != HAUL_STATUS_OK)
        croak("%s%s\n", status == HAUL_STATUS_TIMEOUT ? "read timeout: " : "", haul_error_text(haul_last_error()));
    SvPOK_only(out);
    SvCUR_set(out, got);
    *SvEND(out) = '\0';
    TAINT;
    SvTAINT(out);
    TAINT_NOT;
    return SvREFCNT_inc_simple_NN(out);
}

/* Returns the trailers as a list of names and values. */
AV *hk_stream_trailers(pTHX_ SV *self) {
    hk_stream *stream = (hk_stream *)hk_attached(aTHX_ self, &stream_vtbl);
    AV *list = newAV();
    if (stream && stream->response)
        add_trailers(aTHX_ &PL_sv_undef, list, stream->response);
    return list;
}
