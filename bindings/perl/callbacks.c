/* callbacks.c: what libhaul calls back while a request is under way: Perl code that gives content and trailers, or takes a
 * body, each under hk_run; and the memory of the string that a body becomes. */
#include "hk.h"

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

/* The next bytes that the content callback has. */
size_t hk_read_content(void *user, char *buffer, size_t len) {
    hk_exchange *x = (hk_exchange *)user;
    dTHX;
    STRLEN have;
    const char *from;
    if (!x->pending) {
        SV *got = NULL, *bytes;
        if (died(x, hk_run(aTHX_ x->content_callback, 0, NULL, &got)))
            return HAUL_READ_ERROR;
        if (SvROK(got)) {
            /* An object may run Perl code to become text: under the same care. */
            SV *text = NULL, *object = got;
            bool failed = died(x, hk_run(aTHX_ (SV *)get_cv("Haul::_text", 0), 1, &object, &text));
            SvREFCNT_dec(object);
            if (failed)
                return HAUL_READ_ERROR;
            got = text;
        }
        if (!SvOK(got)) {
            SvREFCNT_dec(got);
            return 0;
        }
        bytes = hk_bytes(aTHX_ got);
        SvREFCNT_dec(got);
        if (!bytes) {
            hk_fail(aTHX_ x, "Wide character in request message body%.*s\n", "", 0);
            return HAUL_READ_ERROR;
        }
        x->pending = SvREFCNT_inc_simple_NN(bytes);
        x->pending_at = 0;
    }
    from = SvPV(x->pending, have);
    have -= x->pending_at;
    if (have > len)
        have = len;
    Copy(from + x->pending_at, buffer, have, char);
    x->pending_at += have;
    if (x->pending_at == SvCUR(x->pending)) {
        SvREFCNT_dec(x->pending);
        x->pending = NULL;
    }
    return have;
}

/* The fields that the trailer callback has: a list of bytes, made of what it returned by Perl code under the same care. */
int hk_give_trailers(void *user, const haul_header **trailers, size_t *count) {
    hk_exchange *x = (hk_exchange *)user;
    dTHX;
    SV *got = NULL;
    AV *list;
    haul_header *fields;
    if (died(x, hk_run(aTHX_ (SV *)get_cv("Haul::_trailers", 0), 1, &x->trailer_callback, &got)))
        return 1;
    /* The list, and with it its texts, lasts as long as the statement. */
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

/* The memory of the Perl string that the body becomes. */
void *hk_reserve(void *user, size_t size) {
    hk_exchange *x = (hk_exchange *)user;
    dTHX;
    if (size >= (size_t)SSize_t_MAX / 2)
        return NULL;
    return SvGROW(x->content, size + 1);
}

/* Makes the response that the data callback sees before there is any content. */
int hk_on_head(void *user, const haul_reply *head) {
    hk_exchange *x = (hk_exchange *)user;
    dTHX;
    TAINT;
    /* The callback may change its copy; libhaul reads this one. */
    x->response = hk_response(aTHX_ head, newSVsv(x->url));
    hk_store(aTHX_ x->response, HK_CONTENT, newSVpvs(""));
    TAINT_NOT;
    x->wants_data = head->status >= 200 && head->status < 300;
    return 0;
}

/* Gives a piece to the data callback, or adds it to the content of what is no success. */
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
