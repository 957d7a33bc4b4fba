/* callbacks.c: the functions that libhaul calls during a request. They run the Perl code that gives
 * content and trailers or takes a body, and provide the memory of the body. */
#include "haul_perl.h"

static int died(hk_exchange *x, SV *error) {
    dTHX;
    if (!error)
        return 0;
    if (x->error)
        SvREFCNT_dec(error);
    else
        x->error = sv_2mortal(error);
    return 1;
}

/* Calls the content callback and stores its result in `pending`, which is NULL at the end.
 * Returns FALSE after an exception. Creates no mortal value: Perl would keep all of them, and thus
 * the whole content, until the statement that makes the request ends. */
static bool ask_content(pTHX_ hk_exchange *x) {
    SV *got = NULL;
    STRLEN len = 0;
    bool is_wide;
    /* on_step may have died, which ends the request. */
    if (x->error)
        return FALSE;
    if (died(x, hk_run(aTHX_ x->content_callback, 0, NULL, &got)))
        return FALSE;
    if (SvOK(got) && !SvPOK(got)) {
        /* Converting an object to text may run Perl code, too. */
        SV *text = NULL, *value = got;
        bool failed = died(x, hk_run(aTHX_ (SV *)get_cv("HTTP::Haul::_text", 0), 1, &value, &text));
        SvREFCNT_dec(value);
        if (failed)
            return FALSE;
        got = text;
    }
    /* `got` is a copy, which Perl code cannot change meanwhile. */
    is_wide = SvUTF8(got) && !sv_utf8_downgrade(got, TRUE);
    if (SvOK(got))
        (void)SvPV(got, len);
    if (is_wide)
        hk_fail(aTHX_ x, "Wide character in request message body%.*s\n", "", 0);
    else if (len) {
        x->pending = got;
        x->pending_at = 0;
        return TRUE;
    }
    SvREFCNT_dec(got);
    return !is_wide;
}

/* Returns the next bytes of the content callback. More bytes than the Content-Length are an
 * error: they would be lost, and the server would take a part for the whole. */
size_t hk_read_content(void *user, char *buffer, size_t len) {
    hk_exchange *x = (hk_exchange *)user;
    dTHX;
    STRLEN have;
    const char *from;
    if (!x->pending && !ask_content(aTHX_ x))
        return HAUL_READ_ERROR;
    if (!x->pending)
        return 0;
    from = SvPV(x->pending, have);
    have -= x->pending_at;
    if (have > len)
        have = len;
    Copy(from + x->pending_at, buffer, have, char);
    x->pending_at += have;
    x->given += have;
    if (x->pending_at == SvCUR(x->pending)) {
        SvREFCNT_dec(x->pending);
        x->pending = NULL;
    }
    if (x->call.read_length >= 0 && x->given == (UV)x->call.read_length) {
        if (!x->pending && !ask_content(aTHX_ x))
            return HAUL_READ_ERROR;
        if (x->pending) {
            x->error = sv_2mortal(newSVpvf("Content-Length mismatch (got: %" UVuf " expected: %" UVuf ")\n",
                                           (UV)(x->given + SvCUR(x->pending) - x->pending_at), (UV)x->given));
            return HAUL_READ_ERROR;
        }
    }
    return have;
}

/* Calls the trailer callback and converts its result into fields. */
int hk_give_trailers(void *user, const haul_header **trailers, size_t *count) {
    hk_exchange *x = (hk_exchange *)user;
    dTHX;
    SV *got = NULL;
    AV *list;
    haul_header *fields;
    if (died(x, hk_run(aTHX_ (SV *)get_cv("HTTP::Haul::_trailers", 0), 1, &x->trailer_callback, &got)))
        return 1;
    /* The mortal list keeps the texts until the end of the statement. */
    list = (AV *)SvRV(sv_2mortal(got));
    *count = (size_t)(av_top_index(list) + 1) / 2;
    fields = (haul_header *)SvPVX(sv_2mortal(newSV((*count + 1) * sizeof(haul_header))));
    for (size_t i = 0; i < *count; i++) {
        fields[i].name = hk_slice(aTHX_ *av_fetch(list, (SSize_t)(2 * i), 0));
        fields[i].value = hk_slice(aTHX_ *av_fetch(list, (SSize_t)(2 * i + 1), 0));
    }
    *trailers = fields;
    return 0;
}

/* Passes the name of a step and the status to the step callback. The other steps are Perl's. */
void hk_on_step(void *user, const haul_step_info *info) {
    static const char *const names[] = { NULL, "resolve", "connect", "tls", "sent", "head" };
    hk_exchange *x = (hk_exchange *)user;
    dTHX;
    SV *arguments[2];
    if (x->error || (size_t)info->step >= sizeof names / sizeof *names)
        return;
    arguments[0] = newSVpv(names[info->step], 0);
    arguments[1] = newSVuv(info->status);
    (void)died(x, hk_run(aTHX_ x->step_callback, 2, arguments, NULL));
    SvREFCNT_dec(arguments[0]);
    SvREFCNT_dec(arguments[1]);
}

/* Returns memory in the Perl string that becomes the body. */
void *hk_reserve(void *user, size_t size) {
    hk_exchange *x = (hk_exchange *)user;
    dTHX;
    if (size >= (size_t)SSize_t_MAX / 2)
        return NULL;
    return SvGROW(x->content, size + 1);
}

/* Creates the response that the data callback gets before there is content. */
int hk_on_head(void *user, const haul_reply *head) {
    hk_exchange *x = (hk_exchange *)user;
    dTHX;
    TAINT;
    /* A copy of the URL, which the callback may change. */
    x->response = hk_response(aTHX_ head, newSVsv(x->url));
    hk_store(aTHX_ x->response, HK_CONTENT, newSVpvs(""));
    TAINT_NOT;
    x->wants_data = head->status >= 200 && head->status < 300;
    return 0;
}

/* Passes a piece to the data callback, or adds it to the content if the status is not 2xx. */
int hk_on_body(void *user, const char *data, size_t len) {
    hk_exchange *x = (hk_exchange *)user;
    dTHX;
    SV *arguments[2];
    int stop;
    if (!x->wants_data) {
        SV *content = hk_fetch(aTHX_ x->response, HK_CONTENT);
        if (content)
            sv_catpvn(content, data, len);
        return 0;
    }
    TAINT;
    arguments[0] = newSVpvn(data, len);
    TAINT_NOT;
    arguments[1] = newRV_inc((SV *)x->response);
    stop = died(x, hk_run(aTHX_ x->data_callback, 2, arguments, NULL));
    SvREFCNT_dec(arguments[0]);
    SvREFCNT_dec(arguments[1]);
    return stop;
}
