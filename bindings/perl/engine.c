/* engine.c: a haul_client as a Perl object: settings, threads, signals, error messages. */
#include "haul_perl.h"

/* ---- Pointers in Perl objects, as magic: a copied or forged scalar has no pointer ------------ */

void hk_attach(pTHX_ SV *sv, const MGVTBL *vtbl, void *pointer) {
    MAGIC *magic = sv_magicext(sv, NULL, PERL_MAGIC_ext, vtbl, (const char *)pointer, 0);
    magic->mg_flags |= MGf_DUP;
}

void *hk_attached(pTHX_ SV *sv, const MGVTBL *vtbl) {
    MAGIC *magic;
    if (!sv || !SvROK(sv))
        return NULL;
    sv = SvRV(sv);
    if (SvTYPE(sv) < SVt_PVMG)
        return NULL;
    magic = mg_findext(sv, PERL_MAGIC_ext, vtbl);
    return magic ? (void *)magic->mg_ptr : NULL;
}

static int engine_free(pTHX_ SV *sv, MAGIC *magic) {
    hk_engine *engine = (hk_engine *)magic->mg_ptr;
    PERL_UNUSED_ARG(sv);
    if (!engine)
        return 0;
    magic->mg_ptr = NULL;
    haul_response_free(engine->response);
    haul_client_free(engine->client);
    SvREFCNT_dec(engine->error);
    SvREFCNT_dec(engine->last_url);
    Safefree(engine);
    return 0;
}

/* libhaul calls this after a signal, and now and then. Perl records signals and runs their handlers
 * between two operations. During a call there are none, so the handlers run here. */
static int engine_interrupted(void *user) {
    hk_engine *engine = (hk_engine *)user;
    dTHX;
    if (!PL_sig_pending)
        return 0;
    SV *died = hk_run(aTHX_ (SV *)get_cv("HTTP::Haul::Engine::_signals", 0), 0, NULL, NULL);
    if (!died)
        return 0;
    SvREFCNT_dec(engine->error);
    engine->error = died;
    return 1;
}

#ifdef USE_ITHREADS
/* A new thread gets a clone of the client, which shares connections and cookie jar. */
static int engine_dup(pTHX_ MAGIC *magic, CLONE_PARAMS *params) {
    hk_engine *old = (hk_engine *)magic->mg_ptr, *engine;
    PERL_UNUSED_ARG(params);
    if (!old)
        return 0;
    Newxz(engine, 1, hk_engine);
    *engine = *old;
    engine->client = haul_client_clone(old->client);
    engine->response = haul_response_new();
    engine->busy = FALSE;
    engine->error = NULL;
    engine->last_url = NULL;
    engine->connected = FALSE;
    haul_client_set_interrupt(engine->client, engine_interrupted, engine);
    magic->mg_ptr = (char *)engine;
    return 0;
}
#else
#define engine_dup NULL
#endif

static const MGVTBL engine_vtbl = { NULL, NULL, NULL, NULL, engine_free, NULL, engine_dup, NULL };

SV *hk_engine_new(pTHX_ const char *class, haul_client *client) {
    hk_engine *engine;
    SV *object = newSV(0);
    SV *self = sv_bless(newRV_noinc(object), gv_stashpv(class, GV_ADD));
    Newxz(engine, 1, hk_engine);
    engine->client = client;
    engine->response = haul_response_new();
    engine->keep_alive = TRUE;
    engine->pid = PerlProc_getpid();
    hk_attach(aTHX_ object, &engine_vtbl, engine);
    if (!engine->client || !engine->response)
        croak("HTTP::Haul: no memory for a client");
    haul_client_set_interrupt(engine->client, engine_interrupted, engine);
    return self;
}

SV *hk_engine_to(pTHX_ hk_engine *engine, SV *peer, UV port) {
    const haul_slice host = hk_utf8(aTHX_ peer);
    SV *self;
    hk_engine *other;
    if (strlen(host.data) != host.len)
        croak("peer: a NUL byte in it\n");
    if (port > 65535)
        croak("peer: the port %" UVuf " is above 65535\n", port);
    self = hk_engine_new(aTHX_ "HTTP::Haul::Engine", haul_client_clone(engine->client));
    other = hk_engine_of_sv(aTHX_ self);
    other->ready = engine->ready;
    other->foreign_jar = engine->foreign_jar;
    other->in_perl = engine->in_perl;
    other->timings = engine->timings;
    other->keep_alive = engine->keep_alive;
    other->max_redirect = engine->max_redirect;
    other->max_size = engine->max_size;
    if (haul_client_set_connect_to(other->client, NULL, 0, host.data, (uint16_t)port) != HAUL_STATUS_OK) {
        sv_2mortal(self);
        croak("peer: %s\n", haul_error_text(haul_last_error()));
    }
    return self;
}

hk_engine *hk_engine_of_sv(pTHX_ SV *sv) {
    return (hk_engine *)hk_attached(aTHX_ sv, &engine_vtbl);
}

hk_engine *hk_engine_of_object(pTHX_ SV *self) {
    SV *slot;
    if (!SvROK(self) || SvTYPE(SvRV(self)) != SVt_PVHV)
        return NULL;
    slot = hk_fetch(aTHX_ (HV *)SvRV(self), HK_ENGINE);
    return slot ? hk_engine_of_sv(aTHX_ slot) : NULL;
}

/* ---- Settings -------------------------------------------------------------------------------- */

static const char *without_nul(pTHX_ const char *text, STRLEN len, const char *name) {
    if (strlen(text) != len)
        croak("%s: a NUL byte in it\n", name);
    return text;
}

/* Returns a text as a C string in UTF-8, or NULL for undef. Bytes that are valid UTF-8 stay
 * unchanged, as in URLs: the arguments and the environment of a program are bytes. */
static const char *text_or_null(pTHX_ SV *value, const char *name) {
    haul_slice text;
    if (!SvOK(value))
        return NULL;
    text = hk_utf8(aTHX_ value);
    return without_nul(aTHX_ text.data, text.len, name);
}

/* Returns a file name as a C string, or NULL for undef: the bytes that Perl's `open` would use. */
static const char *path_or_null(pTHX_ SV *value, const char *name) {
    STRLEN len;
    const char *path;
    if (!SvOK(value))
        return NULL;
    path = SvPV(value, len);
    return without_nul(aTHX_ path, len, name);
}

/* Returns the value of a field as a C string, or NULL for undef: its bytes, or UTF-8 if a character
 * does not fit in a byte. */
static const char *field_or_null(pTHX_ SV *value, const char *name) {
    SV *bytes;
    STRLEN len;
    const char *text;
    if (!SvOK(value))
        return NULL;
    bytes = hk_bytes(aTHX_ value);
    if (!bytes)
        return text_or_null(aTHX_ value, name);
    text = SvPV(bytes, len);
    return without_nul(aTHX_ text, len, name);
}

/* Reads two C strings from an array by `read`. NULL stands for an undefined or missing element. */
static void pair_of(pTHX_ SV *value, const char *name, const char *(*read)(pTHX_ SV *, const char *), const char **pair) {
    AV *list = SvROK(value) && SvTYPE(SvRV(value)) == SVt_PVAV ? (AV *)SvRV(value) : NULL;
    for (int i = 0; i < 2; i++) {
        SV **item = list ? av_fetch(list, i, 0) : NULL;
        pair[i] = item ? read(aTHX_ *item, name) : NULL;
    }
}

static UV milliseconds(pTHX_ SV *value) {
    NV seconds = SvOK(value) ? SvNV(value) : 0;
    if (!(seconds > 0))
        return 0;
    if (seconds > 4e12)
        return 0;
    return seconds < 0.001 ? 1 : (UV)(seconds * 1000);
}

void hk_engine_set(pTHX_ hk_engine *engine, const char *name, SV *value) {
    haul_client *client = engine->client;
    haul_status status = HAUL_STATUS_OK;
    if (strEQ(name, "ready"))
        engine->ready = SvTRUE(value);
    else if (strEQ(name, "foreign_jar"))
        engine->foreign_jar = SvTRUE(value);
    else if (strEQ(name, "in_perl"))
        engine->in_perl = SvTRUE(value);
    else if (strEQ(name, "timings"))
        engine->timings = SvTRUE(value);
    else if (strEQ(name, "tls_facts"))
        status = haul_client_set_tls_facts(client, SvTRUE(value));
    else if (strEQ(name, "max_redirect"))
        engine->max_redirect = SvOK(value) ? SvIV(value) : 0;
    else if (strEQ(name, "max_size")) {
        engine->max_size = SvOK(value) ? SvUV(value) : 0;
        status = haul_client_set_max_size(client, engine->max_size);
    }
    else if (strEQ(name, "decode"))
        status = haul_client_set_decode(client, SvTRUE(value));
    else if (strEQ(name, "http"))
        status = haul_client_set_http(client, (int)SvIV(value));
    else if (strEQ(name, "expect_timeout"))
        status = haul_client_set_expect_timeout(client, milliseconds(aTHX_ value));
    else if (strEQ(name, "keep_alive")) {
        engine->keep_alive = SvTRUE(value);
        status = haul_client_set_keep_alive(client, engine->keep_alive);
    }
    else if (strEQ(name, "raw_path"))
        status = haul_client_set_raw_path(client, SvTRUE(value));
    else if (strEQ(name, "headless"))
        status = haul_client_set_headless(client, SvTRUE(value));
    else if (strEQ(name, "jar"))
        status = haul_client_set_jar(client, SvOK(value) ? hk_jar_of(aTHX_ value) : NULL);
    else if (strEQ(name, "user_agent"))
        status = haul_client_set_user_agent(client, field_or_null(aTHX_ value, name));
    else if (strEQ(name, "without"))
        status = haul_client_set_header(client, text_or_null(aTHX_ value, name), NULL);
    else if (strEQ(name, "redirects"))
        status = haul_client_set_max_redirects(client, (uint32_t)SvUV(value));
    else if (strEQ(name, "idle_timeout"))
        status = haul_client_set_idle_timeout(client, milliseconds(aTHX_ value));
    else if (strEQ(name, "connect_timeout"))
        status = haul_client_set_connect_timeout(client, milliseconds(aTHX_ value));
    else if (strEQ(name, "timeout"))
        status = haul_client_set_timeout(client, milliseconds(aTHX_ value));
    else if (strEQ(name, "verify"))
        status = haul_client_set_verify(client, SvTRUE(value));
    else if (strEQ(name, "unix_socket"))
        status = haul_client_set_unix_socket(client, path_or_null(aTHX_ value, name));
    else if (strEQ(name, "dns_servers"))
        status = haul_client_set_dns_servers(client, text_or_null(aTHX_ value, name));
    else if (strEQ(name, "tls_version"))
        status = haul_client_set_tls_versions(client, (int)SvIV(value), (int)SvIV(value));
    else if (strEQ(name, "ca_pem") || strEQ(name, "certificate_pem") || strEQ(name, "pins")) {
        STRLEN len = 0;
        const char *bytes = SvOK(value) ? SvPV(value, len) : NULL;
        if (name[0] == 'p')
            status = haul_client_set_pins(client, (const uint8_t *)bytes, len / 32);
        else if (name[1] == 'a')
            status = haul_client_set_ca_pem(client, bytes, len);
        else
            status = haul_client_set_client_certificate_pem(client, bytes, len, NULL);
    }
    else if (strEQ(name, "ca_file"))
        status = haul_client_set_ca_file(client, path_or_null(aTHX_ value, name));
    else if (strEQ(name, "ca_path"))
        status = haul_client_set_ca_path(client, path_or_null(aTHX_ value, name));
    else if (strEQ(name, "interface"))
        status = haul_client_set_interface(client, text_or_null(aTHX_ value, name));
    else if (strEQ(name, "proxies")) {
        const char *pair[2];
        pair_of(aTHX_ value, name, text_or_null, pair);
        status = haul_client_set_scheme_proxies(client, pair[0], pair[1]);
    }
    else if (strEQ(name, "no_proxy"))
        status = haul_client_set_no_proxy(client, text_or_null(aTHX_ value, name));
    else if (strEQ(name, "certificate")) {
        const char *pair[2];
        pair_of(aTHX_ value, name, path_or_null, pair);
        status = haul_client_set_client_certificate(client, pair[0], pair[1]);
    }
    else
        croak("HTTP::Haul::Engine: no setting '%s'", name);
    if (status != HAUL_STATUS_OK)
        croak("%s: %s\n", name, haul_error_text(haul_last_error()));
}

/* ---- Perl code in callbacks of libhaul ------------------------------------------------------- */

/* Calls `code` on a separate stack, so that no `last` or `goto` can leave it. Returns the
 * exception, or NULL. `result` gets the returned scalar, a new reference. */
SV *hk_run(pTHX_ SV *code, int count, SV **arguments, SV **result) {
    dSP;
    SV *died = NULL;
    I32 got;
    hk_deferred *deferred;
    PUSHSTACKi(PERLSI_UNKNOWN);
    ENTER;
    SAVETMPS;
    save_scalar(PL_errgv);
    PUSHMARK(SP);
    EXTEND(SP, count);
    for (int i = 0; i < count; i++)
        PUSHs(arguments[i]);
    PUTBACK;
    deferred = hk_pause_deferral(aTHX);
    got = call_sv(code, (result ? G_SCALAR : G_VOID | G_DISCARD) | G_EVAL);
    if (deferred)
        hk_defer_signals(aTHX_ deferred);
    SPAGAIN;
    if (result) {
        SV *value = got > 0 ? POPs : &PL_sv_undef;
        *result = newSVsv(value);
    }
    /* An exception may be an object without a boolean value, or with a false one. */
    if (SvROK(ERRSV) || SvTRUE(ERRSV)) {
        died = newSVsv(ERRSV);
        if (result) {
            SvREFCNT_dec(*result);
            *result = NULL;
        }
    }
    PUTBACK;
    FREETMPS;
    LEAVE;
    POPSTACK;
    return died;
}

/* HTTP::Haul::Engine::_signals: runs the handlers of pending signals. */
void hk_signals(pTHX_ CV *cv) {
    PERL_UNUSED_ARG(cv);
    PERL_ASYNC_CHECK();
}

/* ---- Messages -------------------------------------------------------------------------------- */

/* Returns host:port of a URL, without user and password. */
static SV *authority(pTHX_ const char *url, STRLEN len) {
    const char *end = url + len, *at = url, *host, *stop;
    const char *port = "";
    while (at + 2 < end && !(at[0] == ':' && at[1] == '/' && at[2] == '/'))
        at++;
    if (at + 2 >= end)
        return newSVpvn_flags(url, len, SVs_TEMP);
    host = at + 3;
    /* libhaul skips further slashes, as browsers do. */
    while (host < end && *host == '/')
        host++;
    for (stop = host; stop < end && *stop != '/' && *stop != '?' && *stop != '#'; stop++)
        if (*stop == '@')
            host = stop + 1;
    for (at = host; at < stop && *at != ']'; at++)
        ;
    if (!memchr(at == stop ? host : at, ':', stop - (at == stop ? host : at)))
        port = len > 5 && (url[4] == 's' || url[4] == 'S') ? ":443" : ":80";
    return sv_2mortal(newSVpvf("%.*s%s", (int)(stop - host), host, port));
}

SV *hk_failure(pTHX_ haul_status status, const haul_error *error, const char *url, STRLEN len, UV limit) {
    const char *why = error ? haul_error_text(error) : haul_status_text(status);
    const char *of = error ? haul_error_url(error) : NULL;
    if (of && strnEQ(why, of, strlen(of)) && strnEQ(why + strlen(of), ": ", 2))
        why += strlen(of) + 2;
    switch (status) {
    case HAUL_STATUS_TIMEOUT:
        return newSVpvf("Timed out while waiting for '%s': %s\n", SvPV_nolen(authority(aTHX_ url, len)), why);
    case HAUL_STATUS_TOO_LARGE:
        if (limit)
            return newSVpvf("Size of response body exceeds the maximum allowed of %" UVuf "\n", limit);
        return newSVpvf("Response too large: %s\n", why);
    case HAUL_STATUS_UNSUPPORTED_SCHEME:
        /* This status, the number of curl, has several causes. */
        if (strstr(why, "status line"))
            return newSVpvf("Malformed Status-Line: %s\n", why);
        if (len > 5 && strncasecmp(url, "http", 4) == 0 && (url[4] == ':' || strncasecmp(url + 4, "s:", 2) == 0))
            return newSVpvf("Unsupported HTTP protocol: %s\n", why);
        return newSVpvf("Unsupported URL scheme '%.*s'\n", (int)strcspn(url, ":"), url);
    case HAUL_STATUS_PROTOCOL:
        if (strstr(why, "answered with HTTP/"))
            return newSVpvf("Unsupported HTTP protocol: %s\n", why);
        return newSVpvf("%s\n", why);
    case HAUL_STATUS_SETUP:
        if (strnEQ(why, "the header name", 15))
            return newSVpvf("Invalid HTTP header field name: %s\n", why);
        return newSVpvf("%s\n", why);
    case HAUL_STATUS_URL:
        return newSVpvf("Cannot parse URL: '%.*s': %s\n", (int)len, url, why);
    case HAUL_STATUS_TLS_HANDSHAKE:
    case HAUL_STATUS_PEER_CERTIFICATE:
        return newSVpvf("SSL connection failed for %s: %s\n", SvPV_nolen(authority(aTHX_ url, len)), why);
    case HAUL_STATUS_PARTIAL_BODY:
    case HAUL_STATUS_EMPTY_REPLY:
        return newSVpvf("Unexpected end of stream: %s\n", why);
    default:
        if (error && haul_error_is_connect(error))
            return newSVpvf("Could not connect to '%s': %s\n", SvPV_nolen(authority(aTHX_ url, len)), why);
        return newSVpvf("%s\n", why);
    }
}
