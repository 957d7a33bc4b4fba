/* request.c: builds requests from Perl's arguments, and sends them. */
#include "haul_perl.h"

/* ---- The request ----------------------------------------------------------------------------- */

/* Returns a mortal copy as bytes, which Perl code cannot change meanwhile. NULL if a character
 * does not fit in a byte. */
SV *hk_bytes(pTHX_ SV *value) {
    SV *copy;
    SvGETMAGIC(value);
    if (SvROK(value)) {
        STRLEN len;
        const char *text;
        /* Making text of an object may run Perl code that drops the value. */
        hk_keep(aTHX_ value);
        text = SvPV_nomg(value, len);
        copy = newSVpvn_flags(text, len, SVs_TEMP | (SvUTF8(value) ? SVf_UTF8 : 0));
    }
    else {
        copy = sv_newmortal();
        sv_setsv_flags(copy, value, SV_NOSTEAL | SV_DO_COW_SVSETSV);
    }
    if (SvUTF8(copy) && !sv_utf8_downgrade(copy, TRUE))
        return NULL;
    return copy;
}

/* Perl's stack does not count references, so Perl code that runs during a function may free or
 * change its arguments. A copy, as `my` makes one, stays. */
SV *hk_copy(pTHX_ SV *value) {
    SV *copy = sv_newmortal();
    /* The taint of another value must not get to this one. */
    TAINT_NOT;
    /* Without SV_NOSTEAL, a mortal value would lose its text to the copy. */
    sv_setsv_flags(copy, value, SV_GMAGIC | SV_NOSTEAL | SV_DO_COW_SVSETSV);
    TAINT_NOT;
    return copy;
}

SV *hk_keep(pTHX_ SV *value) {
    return sv_2mortal(SvREFCNT_inc_simple_NN(value));
}

SV *hk_plain(pTHX_ SV *value) {
    SV *copy;
    if (!SvGMAGICAL(value))
        return value;
    /* Without SV_NOSTEAL, a mortal value would lose its text to the copy. */
    copy = sv_newmortal();
    sv_setsv_flags(copy, value, SV_GMAGIC | SV_NOSTEAL | SV_DO_COW_SVSETSV);
    return copy;
}

const char *hk_text(pTHX_ SV *value, const char *what) {
    STRLEN len;
    SV *bytes = hk_bytes(aTHX_ value);
    const char *chars;
    if (!bytes)
        croak("Wide character in %s\n", what);
    chars = SvPV(bytes, len);
    if (strlen(chars) != len)
        croak("A NUL byte in %s\n", what);
    return chars;
}

bool hk_has_scheme(const char *url, STRLEN len) {
    const char *end = url + len, *at = url;
    while (at < end && *at != ':' && *at != '/' && *at != '?' && *at != '#')
        at++;
    return at > url && end - at > 2 && memcmp(at, "://", 3) == 0;
}

haul_slice hk_slice(pTHX_ SV *value) {
    haul_slice out;
    STRLEN len;
    out.data = SvPV(value, len);
    out.len = len;
    return out;
}

bool hk_fail(pTHX_ hk_exchange *x, const char *text, const char *what, STRLEN len) {
    if (!x->error)
        x->error = sv_2mortal(newSVpvf(text, (int)len, what));
    return FALSE;
}

/* Encodes blanks in a URL as %20. (The manual of HTTP::Tiny has one in a password.) */
static const char *without_blanks(pTHX_ const char *text, STRLEN *len) {
    SV *copy = newSVpvs_flags("", SVs_TEMP);
    const char *end = text + *len, *from;
    for (from = text; from < end; text = ++from) {
        from = (const char *)memchr(text, ' ', end - text);
        sv_catpvn(copy, text, (from ? from : end) - text);
        if (!from)
            break;
        sv_catpvs(copy, "%20");
    }
    return SvPV(copy, *len);
}

haul_slice hk_utf8(pTHX_ SV *value) {
    STRLEN len;
    const char *text = SvPV(value, len);
    haul_slice out;
    if (!SvUTF8(value) && !is_utf8_string((const U8 *)text, len)) {
        SV *copy = newSVpvn_flags(text, len, SVs_TEMP);
        text = SvPVutf8(copy, len);
    }
    else if (SvROK(value)) {
        text = SvPVX(newSVpvn_flags(text, len, SVs_TEMP));
    }
    out.data = text;
    out.len = len;
    return out;
}

haul_slice hk_url(pTHX_ SV *url) {
    haul_slice out = hk_utf8(aTHX_ url);
    STRLEN len = out.len;
    if (memchr(out.data, ' ', len)) {
        out.data = without_blanks(aTHX_ out.data, &len);
        out.len = len;
    }
    return out;
}

const char *hk_url_text(pTHX_ SV *url) {
    haul_slice text = hk_url(aTHX_ url);
    if (strlen(text.data) != text.len)
        croak("A NUL byte in the URL\n");
    return text.data;
}

/* Returns a value that is no reference: the same, or the text of an object. If making the text
 * dies, stores the exception in the exchange and returns NULL. */
static SV *text_of(pTHX_ hk_exchange *x, SV *value) {
    SV *text = NULL, *died;
    if (!SvROK(value))
        return value;
    hk_keep(aTHX_ value);
    died = hk_run(aTHX_ (SV *)get_cv("HTTP::Haul::_text", 0), 1, &value, &text);
    if (!died)
        return sv_2mortal(text);
    sv_2mortal(died);
    if (!x->error)
        x->error = died;
    return NULL;
}

void hk_begin(pTHX_ hk_exchange *x, hk_engine *engine, const char *method, STRLEN method_len, SV *url) {
    haul_call call = HAUL_CALL_INIT;
    SV *text;
    TAINT_NOT;
    Zero(x, 1, hk_exchange);
    x->engine = engine;
    x->call = call;
    x->call.method.data = method;
    x->call.method.len = method_len;
    x->headers = x->few;
    x->header_room = HK_HEADERS;
    SvGETMAGIC(url);
    /* A copy, because the caller may change the variable. Long strings are shared, not copied. */
    x->url = sv_newmortal();
    sv_setsv_flags(x->url, url, SV_NOSTEAL | SV_DO_COW_SVSETSV);
    text = text_of(aTHX_ x, x->url);
    if (text)
        x->call.url = hk_url(aTHX_ text);
    x->call.max_redirects = 0;
    x->tainted = TAINTING_get && SvTAINTED(url);
}

void hk_push_field(pTHX_ hk_exchange *x, const char *name, STRLEN len, haul_slice value) {
    haul_header *at;
    if (x->header_count == x->header_room) {
        /* The buffer of a mortal value is freed after an exception, too. */
        size_t room = 2 * x->header_room;
        SV *memory = sv_2mortal(newSV(room * sizeof(haul_header)));
        Copy(x->headers, (haul_header *)SvPVX(memory), x->header_count, haul_header);
        x->headers = (haul_header *)SvPVX(memory);
        x->header_room = room;
    }
    at = &x->headers[x->header_count++];
    at->name.data = name;
    at->name.len = len;
    at->value = value;
}

static bool is_name(const char *name, STRLEN len, const char *wanted) {
    return len == strlen(wanted) && strncasecmp(name, wanted, len) == 0;
}

/* Replaces each line end that blanks follow, and the blanks, by a space, as HTTP::Tiny does: the
 * value is folded (RFC 9110 section 5.5). Another line end stays, and libhaul refuses it. */
static haul_slice unfolded(pTHX_ haul_slice value) {
    SV *copy = newSVpvn_flags(value.data, value.len, SVs_TEMP);
    const char *from = value.data, *end = from + value.len;
    char *to = SvPVX(copy);
    while (from < end) {
        const char *next = from;
        if (next + 1 < end && next[0] == '\r' && next[1] == '\n')
            next++;
        if (*next == '\n' && next + 1 < end && isSPACE_A(next[1])) {
            for (from = next + 1; from < end && isSPACE_A(*from); from++)
                ;
            *to++ = ' ';
        }
        else
            *to++ = *from++;
    }
    *to = '\0';
    SvCUR_set(copy, to - SvPVX(copy));
    return hk_slice(aTHX_ copy);
}

/* Adds a field with one value. `name` must live as long as the exchange. */
static bool add_one(pTHX_ hk_exchange *x, const char *name, STRLEN len, SV *value) {
    SV *bytes;
    haul_slice text;
    value = text_of(aTHX_ x, value);
    if (!value)
        return FALSE;
    bytes = hk_bytes(aTHX_ value);
    if (!bytes)
        return hk_fail(aTHX_ x, "Wide character in the value of header '%.*s'\n", name, len);
    text = hk_slice(aTHX_ bytes);
    if (memchr(text.data, '\n', text.len))
        text = unfolded(aTHX_ text);
    hk_push_field(aTHX_ x, name, len, text);
    return TRUE;
}

bool hk_add_field(pTHX_ hk_exchange *x, const char *name, STRLEN len, SV *value) {
    value = hk_plain(aTHX_ value);
    if (!SvOK(value))
        return TRUE;
    if (SvROK(value) && SvTYPE(SvRV(value)) == SVt_PVAV && !SvOBJECT(SvRV(value))) {
        AV *several = (AV *)hk_keep(aTHX_ SvRV(value));
        for (SSize_t i = 0; i <= av_top_index(several); i++) {
            SV **found = av_fetch(several, i, 0);
            SV *one = found ? hk_plain(aTHX_ *found) : &PL_sv_undef;
            if (SvOK(one) && !add_one(aTHX_ x, name, len, one))
                return FALSE;
        }
        return TRUE;
    }
    return add_one(aTHX_ x, name, len, value);
}

static bool has_field(HV *fields, const char *name, STRLEN len) {
    dTHX;
    HE *entry;
    hv_iterinit(fields);
    while ((entry = hv_iternext(fields))) {
        STRLEN key_len;
        const char *key = HePV(entry, key_len);
        if (key_len == len && strncasecmp(key, name, len) == 0)
            return TRUE;
    }
    return FALSE;
}

/* Adds the fields of a hash, except those that `but` also has. */
bool hk_add_fields(pTHX_ hk_exchange *x, HV *fields, HV *but) {
    HE *entry;
    hv_iterinit(fields);
    while ((entry = hv_iternext(fields))) {
        STRLEN len;
        const char *name;
        SV *value = hk_plain(aTHX_ hv_iterval(fields, entry));
        /* A mortal copy, which lives as long as the exchange. */
        SV *key = hv_iterkeysv(entry);
        if (SvUTF8(key) && !(key = hk_bytes(aTHX_ key)))
            return hk_fail(aTHX_ x, "Invalid HTTP header field name%.*s\n", "", 0);
        name = SvPV(key, len);
        if (but && has_field(but, name, len))
            continue;
        switch (len) {
        case 4:
            if (is_name(name, len, "host"))
                return hk_fail(aTHX_ x, "The 'Host' header must not be provided as header option%.*s\n", "", 0);
            break;
        case 10:
            if (is_name(name, len, "user-agent")) {
                if (!SvOK(value) || (!SvROK(value) && !SvTRUE(value)))
                    continue;
            }
            /* Without keep_alive the field is always "close". */
            if (!x->engine->keep_alive && is_name(name, len, "connection"))
                continue;
            break;
        case 12:
            x->has_type |= is_name(name, len, "content-type") && SvOK(value);
            break;
        case 14:
            /* libhaul sets the length of a string; for a callback this is the length. */
            if (is_name(name, len, "content-length")) {
                if (!SvOK(value))
                    continue;
                value = text_of(aTHX_ x, value);
                if (!value)
                    return FALSE;
                if (looks_like_number(value))
                    x->call.read_length = SvIV(value);
                continue;
            }
            break;
        case 17:
            if (is_name(name, len, "transfer-encoding"))
                continue;
            break;
        }
        if (!hk_add_field(aTHX_ x, name, len, value))
            return FALSE;
    }
    return TRUE;
}

/* ---- Sending --------------------------------------------------------------------------------- */

/* Returns the code of a reference, which exists until the statement ends; NULL if it is none. */
static SV *code_of(pTHX_ SV *value) {
    value = value ? hk_plain(aTHX_ value) : NULL;
    return value && SvROK(value) && SvTYPE(SvRV(value)) == SVt_PVCV ? hk_keep(aTHX_ SvRV(value)) : NULL;
}

SV *hk_set_content(pTHX_ hk_exchange *x, SV *content) {
    content = hk_plain(aTHX_ content);
    x->content_callback = code_of(aTHX_ content);
    if (x->content_callback) {
        x->call.read = hk_read_content;
        x->call.read_user = x;
        return x->content_callback;
    }
    content = text_of(aTHX_ x, content);
    if (!content)
        return NULL;
    content = hk_bytes(aTHX_ content);
    if (!content)
        hk_fail(aTHX_ x, "Wide character in request message body%.*s\n", "", 0);
    else
        x->call.body = hk_slice(aTHX_ content);
    return content;
}

/* Sends the request. `used` is the response object, which the caller passes to hk_exchange_done. */
haul_status hk_exchange_run(pTHX_ hk_exchange *x, haul_reply *reply, haul_response **used) {
    hk_engine *engine = x->engine;
    haul_response *response = engine->busy ? haul_response_new() : engine->response;
    haul_status status;
    hk_deferred deferred;
    if (response == engine->response)
        engine->busy = TRUE;
    *used = response;
    x->call.headers = x->headers;
    x->call.header_count = x->header_count;
    x->call.user = x;
    Zero(reply, 1, haul_reply);
    hk_defer_signals(aTHX_ &deferred);
    status = haul_client_call(engine->client, &x->call, response, reply);
    hk_restore_signals(aTHX_ &deferred);
    if (x->pending) {
        SvREFCNT_dec(x->pending);
        x->pending = NULL;
    }
    if (engine->error) {
        if (x->error)
            SvREFCNT_dec(engine->error);
        else
            x->error = sv_2mortal(engine->error);
        engine->error = NULL;
    }
    return status;
}

void hk_exchange_done(pTHX_ hk_exchange *x, haul_response *used) {
    if (used == x->engine->response)
        x->engine->busy = FALSE;
    else
        haul_response_free(used);
}

static SV *refused(pTHX_ hk_exchange *x) {
    if (x->response) {
        SvREFCNT_dec(x->response);
        x->response = NULL;
    }
    /* If a callback dies with a response, that is the result, as in HTTP::Tiny. */
    if (SvROK(x->error) && !SvOBJECT(SvRV(x->error)) && SvTYPE(SvRV(x->error)) == SVt_PVHV
        && hk_fetch(aTHX_ (HV *)SvRV(x->error), HK_STATUS))
        return newSVsv(x->error);
    return newRV_noinc((SV *)hk_response_599(aTHX_ x->url, x->error));
}

SV *hk_once(pTHX_ SV *self, hk_engine *engine, SV *method, SV *url, HV *arguments, bool bare) {
    hk_exchange x;
    haul_reply reply;
    haul_response *used;
    haul_status status;
    HV *object = (HV *)SvRV(self), *fields = NULL;
    HV *response;
    SV *value, *content = NULL;
    STRLEN method_len;
    const char *method_text;
    bool wants_timings = engine->timings, is_tainted = TAINTING_get && SvTAINTED(method);

    hk_begin(aTHX_ &x, engine, "", 0, url);
    if (x.error || !(method = text_of(aTHX_ &x, method)))
        return refused(aTHX_ &x);
    method_text = SvPV(method, method_len);
    x.call.method.data = method_text;
    x.call.method.len = method_len;
    if (x.tainted || is_tainted) {
        x.error = newSVpvs_flags("Insecure dependency in connect while running with -T switch\n", SVs_TEMP);
        return refused(aTHX_ &x);
    }
    if (!method_len) {
        x.error = newSVpvs_flags("The method must not be empty\n", SVs_TEMP);
        return refused(aTHX_ &x);
    }
    if (!hk_has_scheme(x.call.url.data, x.call.url.len)) {
        STRLEN len;
        const char *text = SvPV(x.url, len);
        x.error = sv_2mortal(newSVpvf(HK_NO_URL, (int)len, text));
        return refused(aTHX_ &x);
    }
    if (arguments) {
        SV **found = hv_fetchs(arguments, "headers", 0);
        SV *headers = found ? hk_plain(aTHX_ *found) : &PL_sv_undef;
        if (SvROK(headers) && SvTYPE(SvRV(headers)) == SVt_PVHV)
            fields = (HV *)hk_keep(aTHX_ SvRV(headers));
        content = hk_fetch(aTHX_ arguments, HK_CONTENT);
        if (content && !SvOK(content = hk_plain(aTHX_ content)))
            content = NULL;
        if (content)
            hk_keep(aTHX_ content);
        x.data_callback = code_of(aTHX_ hk_fetch(aTHX_ arguments, HK_DATA_CALLBACK));
        x.trailer_callback = code_of(aTHX_ hk_fetch(aTHX_ arguments, HK_TRAILER_CALLBACK));
        x.step_callback = code_of(aTHX_ hk_fetch(aTHX_ arguments, HK_ON_STEP));
        value = hk_fetch(aTHX_ arguments, HK_TIMINGS);
        wants_timings |= value && SvTRUE(value);
    }
    if (fields && !hk_add_fields(aTHX_ &x, fields, NULL))
        return refused(aTHX_ &x);
    if (!bare && (value = hk_fetch(aTHX_ object, HK_DEFAULT_HEADERS)) && SvROK(value) && SvTYPE(SvRV(value)) == SVt_PVHV
        && !hk_add_fields(aTHX_ &x, (HV *)hk_keep(aTHX_ SvRV(value)), fields))
        return refused(aTHX_ &x);
    if (content) {
        if (!hk_set_content(aTHX_ &x, content))
            return refused(aTHX_ &x);
        if ((x.call.read || x.call.body.len) && !x.has_type) {
            haul_slice type = { "application/octet-stream", 24 };
            hk_push_field(aTHX_ &x, "Content-Type", 12, type);
        }
        /* Trailers need chunked content. */
        if (x.call.read && x.call.read_length < 0 && x.trailer_callback) {
            x.trailer_callback = sv_2mortal(newRV_inc(x.trailer_callback));
            x.call.trailers = hk_give_trailers;
            x.call.trailers_user = &x;
        }
        if (!x.call.read && !x.call.body.len && !(strEQ(method_text, "POST") || strEQ(method_text, "PUT")))
            x.call.body.data = NULL;
    }
    else if (strEQ(method_text, "POST") || strEQ(method_text, "PUT"))
        x.call.body.data = "";
    if (x.data_callback) {
        x.call.on_head = hk_on_head;
        x.call.on_body = hk_on_body;
    }
    else {
        x.content = newSV_type(SVt_PV);
        x.call.reserve = hk_reserve;
    }

    if (x.step_callback) {
        x.call.on_step = hk_on_step;
        x.call.step_user = &x;
    }

    status = hk_exchange_run(aTHX_ &x, &reply, &used);
    if (status != HAUL_STATUS_OK || x.error) {
        STRLEN len;
        const char *text = SvPV(x.url, len);
        const haul_error *failure = haul_last_error();
        HV *cause = x.error ? NULL : hk_error(aTHX_ status, failure);
        SV *error = x.error ? x.error : sv_2mortal(hk_failure(aTHX_ status, failure, text, len, engine->max_size));
        SV *answer;
        hk_exchange_done(aTHX_ &x, used);
        x.error = error;
        SvREFCNT_dec(x.content);
        answer = refused(aTHX_ &x);
        if (cause)
            hk_store(aTHX_ (HV *)SvRV(answer), HK_ERROR, newRV_noinc((SV *)cause));
        return answer;
    }
    if (x.response) {
        response = x.response;
        x.response = NULL;
    }
    else {
        TAINT;
        response = hk_response(aTHX_ &reply, SvREFCNT_inc_simple_NN(x.url));
        if (x.content) {
            if (!reply.body_len)
                sv_setpvs(x.content, "");
            SvPOK_only(x.content);
            SvCUR_set(x.content, reply.body_len);
            *SvEND(x.content) = '\0';
            SvTAINT(x.content);
            hk_store(aTHX_ response, HK_CONTENT, x.content);
        }
        else
            hk_store(aTHX_ response, HK_CONTENT, newSVpvs(""));
        TAINT_NOT;
    }
    hk_add_trailers(aTHX_ response, used);
    if (wants_timings)
        hk_add_timings(aTHX_ response, used);
    engine->connected = engine->keep_alive && hk_keeps(&reply);
    if (engine->connected) {
        /* Reuses the memory of the last URL. */
        if (!engine->last_url)
            engine->last_url = newSV(x.call.url.len + 1);
        sv_setpvn(engine->last_url, x.call.url.data, x.call.url.len);
    }
    /* The fields have been copied, so the response object can be reused. */
    bool redirects = engine->max_redirect > 0 && !bare && hk_redirects(&reply);
    hk_exchange_done(aTHX_ &x, used);
    SV *answer = newRV_noinc((SV *)response);
    if (redirects) {
        /* Perl code follows redirects. */
        dSP;
        SV *followed;
        ENTER;
        SAVETMPS;
        PUSHMARK(SP);
        EXTEND(SP, 5);
        PUSHs(self);
        PUSHs(sv_2mortal(answer));
        PUSHs(method);
        PUSHs(x.url);
        PUSHs(arguments ? sv_2mortal(newRV_inc((SV *)arguments)) : &PL_sv_undef);
        PUTBACK;
        call_method("_follow", G_SCALAR);
        SPAGAIN;
        followed = newSVsv(POPs);
        PUTBACK;
        FREETMPS;
        LEAVE;
        return followed;
    }
    return answer;
}

SV *hk_request(pTHX_ SV *self, SV *method, SV *url, HV *arguments) {
    hk_engine *engine = hk_engine_of_object(aTHX_ self);
    bool in_perl;
    if (!SvROK(self) || SvTYPE(SvRV(self)) != SVt_PVHV)
        croak("not an HTTP::Haul object");
    if (!engine || !engine->ready) {
        dSP;
        ENTER;
        PUSHMARK(SP);
        XPUSHs(self);
        PUTBACK;
        call_method("_prepare", G_VOID | G_DISCARD);
        LEAVE;
        engine = hk_engine_of_object(aTHX_ self);
        if (!engine)
            croak("HTTP::Haul: no engine");
    }
    /* The arguments are copies, which keep the object and the options. The engine is a member of
     * the object, and a callback may remove it. */
    hk_keep(aTHX_ SvRV(hk_fetch(aTHX_ (HV *)SvRV(self), HK_ENGINE)));
    in_perl = engine->foreign_jar || engine->in_perl
        || (arguments && (hk_fetch(aTHX_ arguments, HK_PEER) || hk_fetch(aTHX_ arguments, HK_RETRIES)
                          || hk_fetch(aTHX_ arguments, HK_ON_STEP)));
    if (in_perl) {
        dSP;
        SV *answer;
        ENTER;
        SAVETMPS;
        PUSHMARK(SP);
        EXTEND(SP, 4);
        PUSHs(self);
        PUSHs(method);
        PUSHs(url);
        PUSHs(arguments ? sv_2mortal(newRV_inc((SV *)arguments)) : &PL_sv_undef);
        PUTBACK;
        call_method("_request_in_perl", G_SCALAR);
        SPAGAIN;
        answer = newSVsv(POPs);
        PUTBACK;
        FREETMPS;
        LEAVE;
        return answer;
    }
    return hk_once(aTHX_ self, engine, method, url, arguments, FALSE);
}
