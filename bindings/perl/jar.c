/* jar.c: a haul_jar as a Perl object. libhaul implements cookie rules, files and locks. */
#include "haul_perl.h"

static int jar_free(pTHX_ SV *sv, MAGIC *magic) {
    PERL_UNUSED_ARG(sv);
    haul_jar_free((haul_jar *)magic->mg_ptr);
    magic->mg_ptr = NULL;
    return 0;
}

#ifdef USE_ITHREADS
/* A new thread shares the jar. */
static int jar_dup(pTHX_ MAGIC *magic, CLONE_PARAMS *params) {
    PERL_UNUSED_ARG(params);
    magic->mg_ptr = (char *)haul_jar_clone((haul_jar *)magic->mg_ptr);
    return 0;
}
#else
#define jar_dup NULL
#endif

static const MGVTBL jar_vtbl = { NULL, NULL, NULL, NULL, jar_free, NULL, jar_dup, NULL };

/* The Perl object is a hash with the file and options, and the jar as magic. */
SV *hk_jar_new(pTHX_ const char *class) {
    HV *object = newHV();
    SV *self = sv_bless(newRV_noinc((SV *)object), gv_stashpv(class, GV_ADD));
    hk_attach(aTHX_ (SV *)object, &jar_vtbl, haul_jar_new());
    return self;
}

haul_jar *hk_jar_of(pTHX_ SV *sv) {
    haul_jar *jar = (haul_jar *)hk_attached(aTHX_ sv, &jar_vtbl);
    if (!jar)
        croak("not an HTTP::Haul::Jar");
    /* Reading other arguments may run Perl code that drops the jar. */
    hk_keep(aTHX_ SvRV(sv));
    return jar;
}

const char *hk_set_cookie_text(pTHX_ SV *value) {
    SV *bytes = hk_bytes(aTHX_ value);
    STRLEN len;
    const char *text = bytes ? SvPV(bytes, len) : SvPVutf8(value, len);
    return strlen(text) == len ? text : NULL;
}

void hk_jar_check(pTHX_ haul_status status) {
    if (status != HAUL_STATUS_OK)
        croak("%s\n", haul_error_text(haul_last_error()));
}

static SV *of_slice(pTHX_ haul_slice slice) {
    return newSVpvn(slice.len ? slice.data : "", slice.len);
}

static int take_cookie(void *user, const haul_cookie *cookie) {
    dTHX;
    HV *hv = newHV();
    (void)hv_stores(hv, "name", of_slice(aTHX_ cookie->name));
    (void)hv_stores(hv, "value", of_slice(aTHX_ cookie->value));
    (void)hv_stores(hv, "domain", of_slice(aTHX_ cookie->domain));
    (void)hv_stores(hv, "path", of_slice(aTHX_ cookie->path));
    (void)hv_stores(hv, "expires", cookie->expires ? newSViv((IV)cookie->expires) : newSV(0));
    (void)hv_stores(hv, "host_only", newSViv(cookie->host_only));
    (void)hv_stores(hv, "secure", newSViv(cookie->secure));
    (void)hv_stores(hv, "http_only", newSViv(cookie->http_only));
    av_push((AV *)user, newRV_noinc((SV *)hv));
    return 0;
}

AV *hk_jar_list(pTHX_ haul_jar *jar) {
    AV *list = newAV();
    haul_status status = haul_jar_each(jar, take_cookie, list);
    if (status != HAUL_STATUS_OK) {
        SvREFCNT_dec(list);
        hk_jar_check(aTHX_ status);
    }
    return list;
}

static haul_slice cookie_text(pTHX_ HV *hv, const char *key) {
    SV **value = hv_fetch(hv, key, (I32)strlen(key), 0);
    SV *plain = value ? hk_plain(aTHX_ *value) : &PL_sv_undef;
    SV *bytes = SvOK(plain) ? hk_bytes(aTHX_ plain) : newSVpvs_flags("", SVs_TEMP);
    haul_slice out;
    STRLEN len;
    if (!bytes)
        croak("Wide character in a cookie's %s\n", key);
    out.data = SvPV(bytes, len);
    out.len = len;
    return out;
}

static bool cookie_flag(pTHX_ HV *hv, const char *key) {
    SV **value = hv_fetch(hv, key, (I32)strlen(key), 0);
    return value && SvTRUE(*value);
}

void hk_jar_put(pTHX_ haul_jar *jar, HV *hv) {
    haul_cookie cookie;
    SV **found = hv_fetchs(hv, "expires", 0);
    SV *expires = found ? hk_plain(aTHX_ *found) : &PL_sv_undef;
    Zero(&cookie, 1, haul_cookie);
    cookie.name = cookie_text(aTHX_ hv, "name");
    cookie.value = cookie_text(aTHX_ hv, "value");
    cookie.domain = cookie_text(aTHX_ hv, "domain");
    cookie.path = cookie_text(aTHX_ hv, "path");
    cookie.expires = SvOK(expires) ? (int64_t)SvIV(expires) : 0;
    cookie.host_only = cookie_flag(aTHX_ hv, "host_only");
    cookie.secure = cookie_flag(aTHX_ hv, "secure");
    cookie.http_only = cookie_flag(aTHX_ hv, "http_only");
    hk_jar_check(aTHX_ haul_jar_put(jar, &cookie));
}
