/* Haul.xs: the functions that Perl calls. They check arguments; haul_perl.h lists the files that
 * do the work. */
#include "haul_perl.h"

/* The methods that take (URL, [HASHREF]), in the order of their ALIAS numbers. */
static const char *const verbs[] = { "GET", "HEAD", "PUT", "POST", "PATCH", "DELETE" };
static const char *const names[] = { "get", "head", "put", "post", "patch", "delete" };

static HV *arguments_of(pTHX_ SV *sv) {
    sv = sv ? hk_plain(aTHX_ sv) : NULL;
    return sv && SvROK(sv) && SvTYPE(SvRV(sv)) == SVt_PVHV ? (HV *)SvRV(sv) : NULL;
}

/* Replaces the arguments of a method by copies, as `my` does. */
static void copy_arguments(pTHX_ SV **arguments, I32 count) {
    for (I32 i = 0; i < count; i++)
        arguments[i] = hk_copy(aTHX_ arguments[i]);
}

/* The code of HTTP::Haul::request, to recognise other methods of this name. */
static XSUBADDR_t request_code;

/* Returns whether a subclass overrides `request`, or a program has replaced it. Then all methods
 * call it, as in HTTP::Tiny. */
static bool is_overridden(pTHX_ SV *self) {
    HV *class;
    SV **own;
    GV *method;
    if (!SvROK(self) || !SvOBJECT(SvRV(self)))
        croak("not an HTTP::Haul object");
    class = SvSTASH(SvRV(self));
    /* One look at the class itself is cheaper than a search along its ancestors. An entry with a
     * generation is only what Perl remembers of such a search. */
    own = hv_fetchs(class, "request", 0);
    method = own && isGV_with_GP(*own) && GvCV((GV *)*own) && !GvCVGEN((GV *)*own) ? (GV *)*own : gv_fetchmethod(class, "request");
    return !method || !CvISXSUB(GvCV(method)) || CvXSUB(GvCV(method)) != request_code;
}

static SV *by_method(pTHX_ SV *self, SV *verb, SV *url, SV *arguments) {
    dSP;
    SV *answer;
    ENTER;
    SAVETMPS;
    PUSHMARK(SP);
    EXTEND(SP, 4);
    PUSHs(self);
    PUSHs(verb);
    PUSHs(url);
    PUSHs(arguments ? arguments : sv_2mortal(newRV_noinc((SV *)newHV())));
    PUTBACK;
    call_method("request", G_SCALAR);
    SPAGAIN;
    answer = newSVsv(POPs);
    PUTBACK;
    FREETMPS;
    LEAVE;
    return answer;
}

MODULE = HTTP::Haul    PACKAGE = HTTP::Haul

PROTOTYPES: DISABLE

BOOT:
    hk_names_begin(aTHX);
    hk_signals_begin(aTHX);
    request_code = CvXSUB(get_cv("HTTP::Haul::request", 0));

SV *
get(...)
  ALIAS:
    head = 1
    put = 2
    post = 3
    patch = 4
    delete = 5
  PREINIT:
    HV *arguments = NULL;
    SV *verb;
  CODE:
    copy_arguments(aTHX_ &ST(0), items);
    if (items < 2 || items > 3 || (items == 3 && !(arguments = arguments_of(aTHX_ ST(2)))))
        croak("Usage: $http->%s(URL, [HASHREF])\n", names[ix]);
    /* A tainted value elsewhere in the statement of the caller must not taint the arguments. */
    TAINT_NOT;
    verb = newSVpvn_flags(verbs[ix], strlen(verbs[ix]), SVs_TEMP);
    RETVAL = is_overridden(aTHX_ ST(0)) ? by_method(aTHX_ ST(0), verb, ST(1), items == 3 ? ST(2) : NULL)
                                        : hk_request(aTHX_ ST(0), verb, ST(1), arguments);
  OUTPUT:
    RETVAL

SV *
request(...)
  PREINIT:
    HV *arguments = NULL;
  CODE:
    copy_arguments(aTHX_ &ST(0), items);
    if (items < 3 || items > 4 || (items == 4 && !(arguments = arguments_of(aTHX_ ST(3)))))
        croak("Usage: $http->request(METHOD, URL, [HASHREF])\n");
    RETVAL = hk_request(aTHX_ ST(0), ST(1), ST(2), arguments);
  OUTPUT:
    RETVAL

SV *
post_form(...)
  PREINIT:
    HV *given = NULL, *arguments, *headers = NULL, *fields;
    SV **slot;
    HE *entry;
    SV *verb, *content;
  CODE:
    copy_arguments(aTHX_ &ST(0), items);
    if (items < 3 || items > 4 || (items == 4 && !(given = arguments_of(aTHX_ ST(3)))))
        croak("Usage: $http->post_form(URL, DATAREF, [HASHREF])\n");
    TAINT_NOT;
    arguments = given ? newHVhv(given) : newHV();
    sv_2mortal((SV *)arguments);
    fields = newHV();
    if (given && (slot = hv_fetchs(given, "headers", 0)))
        headers = arguments_of(aTHX_ hk_copy(aTHX_ *slot));
    (void)hv_stores(arguments, "headers", newRV_noinc((SV *)fields));
    if (headers) {
        hv_iterinit(headers);
        while ((entry = hv_iternext(headers))) {
            STRLEN len;
            const char *name = HePV(entry, len);
            if (len != 12 || strncasecmp(name, "content-type", 12) != 0)
                (void)hv_store_ent(fields, hv_iterkeysv(entry), newSVsv(hv_iterval(headers, entry)), 0);
        }
    }
    (void)hv_stores(fields, "Content-Type", newSVpvs("application/x-www-form-urlencoded"));
    content = hk_form(aTHX_ ST(2));
    /* Tainted values of the form must not taint the method. */
    TAINT_NOT;
    (void)hv_stores(arguments, "content", SvREFCNT_inc_simple_NN(content));
    verb = newSVpvs_flags("POST", SVs_TEMP);
    RETVAL = is_overridden(aTHX_ ST(0)) ? by_method(aTHX_ ST(0), verb, ST(1), sv_2mortal(newRV_inc((SV *)arguments)))
                                        : hk_request(aTHX_ ST(0), verb, ST(1), arguments);
  OUTPUT:
    RETVAL

SV *
www_form_urlencode(...)
  CODE:
    copy_arguments(aTHX_ &ST(0), items);
    if (items != 2 || !SvROK(hk_plain(aTHX_ ST(1))))
        croak("Usage: $http->www_form_urlencode(DATAREF)\n");
    RETVAL = hk_form(aTHX_ ST(1));
    SvREFCNT_inc_simple_void_NN(RETVAL);
  OUTPUT:
    RETVAL

void
CLONE(...)
  CODE:
    PERL_UNUSED_VAR(items);
    hk_names_clone(aTHX);
    hk_signals_clone(aTHX);

int
_is_secret(name)
    const char *name
  CODE:
    RETVAL = haul_field_is_secret(name);
  OUTPUT:
    RETVAL

SV *
_once(self, engine, method, url, arguments)
    SV *self
    SV *engine
    SV *method
    SV *url
    SV *arguments
  PREINIT:
    hk_engine *with;
  CODE:
    with = hk_engine_of_sv(aTHX_ engine);
    if (!with || !SvROK(self) || SvTYPE(SvRV(self)) != SVt_PVHV)
        croak("HTTP::Haul: no engine");
    /* A callback may drop the last reference to the engine. */
    sv_2mortal(SvREFCNT_inc_simple_NN(SvRV(engine)));
    RETVAL = hk_once(aTHX_ self, with, method, url, arguments_of(aTHX_ arguments), TRUE);
  OUTPUT:
    RETVAL

SV *
_internal_error(url, text)
    SV *url
    SV *text
  CODE:
    RETVAL = newRV_noinc((SV *)hk_response_599(aTHX_ url, text));
  OUTPUT:
    RETVAL

const char *
engine_version()
  CODE:
    RETVAL = haul_version();
  OUTPUT:
    RETVAL

MODULE = HTTP::Haul    PACKAGE = HTTP::Haul::Engine

SV *
_new(class)
    const char *class
  CODE:
    RETVAL = hk_engine_new(aTHX_ class, haul_client_new());
  OUTPUT:
    RETVAL

SV *
_to(self, host, port)
    SV *self
    SV *host
    UV port
  PREINIT:
    hk_engine *engine;
  CODE:
    engine = hk_engine_of_sv(aTHX_ self);
    if (!engine)
        croak("not an HTTP::Haul::Engine");
    RETVAL = hk_engine_to(aTHX_ engine, host, port);
  OUTPUT:
    RETVAL

void
_set(self, name, value)
    SV *self
    const char *name
    SV *value
  PREINIT:
    hk_engine *engine;
  CODE:
    engine = hk_engine_of_sv(aTHX_ self);
    if (!engine)
        croak("not an HTTP::Haul::Engine");
    hk_engine_set(aTHX_ engine, name, value);

void
_signals()
  CODE:
    hk_signals(aTHX_ cv);

SV *
_last_url(self)
    SV *self
  PREINIT:
    hk_engine *engine;
  CODE:
    engine = hk_engine_of_sv(aTHX_ self);
    RETVAL = engine && engine->connected && engine->pid == PerlProc_getpid()
                     && haul_client_is_warm(engine->client, SvPV_nolen(engine->last_url))
                 ? newSVsv(engine->last_url)
                 : newSV(0);
  OUTPUT:
    RETVAL

void
_close_idle(self)
    SV *self
  PREINIT:
    hk_engine *engine;
  CODE:
    engine = hk_engine_of_sv(aTHX_ self);
    if (engine)
        haul_client_close_idle(engine->client);

void
_stats(self)
    SV *self
  PREINIT:
    hk_engine *engine;
    uint64_t connections, requests, bytes;
  PPCODE:
    engine = hk_engine_of_sv(aTHX_ self);
    if (!engine)
        croak("not an HTTP::Haul::Engine");
    haul_client_stats(engine->client, &connections, &requests, &bytes);
    EXTEND(SP, 3);
    mPUSHu(connections);
    mPUSHu(requests);
    mPUSHu(bytes);

void
_call(self, method, url, fields, content, headers)
    SV *self
    SV *method
    SV *url
    AV *fields
    SV *content
    SV *headers
  ALIAS:
    _open = 1
  PREINIT:
    SV *out[HK_LWP_ANSWER];
    SSize_t count;
  PPCODE:
    PUTBACK;
    count = (ix ? hk_lwp_open : hk_lwp_call)(aTHX_ self, method, url, fields, content, headers, out);
    SPAGAIN;
    EXTEND(SP, count);
    for (SSize_t i = 0; i < count; i++)
        PUSHs(sv_2mortal(out[i]));

void
_call_plain(ua, request, timeout, keep_alive, unset)
    SV *ua
    SV *request
    SV *timeout
    SV *keep_alive
    AV *unset
  PREINIT:
    SV *out[HK_LWP_ANSWER + 1];
    SSize_t count;
  PPCODE:
    PUTBACK;
    count = hk_lwp_plain(aTHX_ ua, request, timeout, keep_alive, unset, out);
    SPAGAIN;
    EXTEND(SP, count);
    for (SSize_t i = 0; i < count; i++)
        PUSHs(sv_2mortal(out[i]));

MODULE = HTTP::Haul    PACKAGE = HTTP::Haul::Stream

SV *
read(self, size)
    SV *self
    UV size
  CODE:
    RETVAL = hk_stream_read(aTHX_ self, size);
  OUTPUT:
    RETVAL

AV *
trailers(self)
    SV *self
  CODE:
    RETVAL = (AV *)sv_2mortal((SV *)hk_stream_trailers(aTHX_ self));
  OUTPUT:
    RETVAL

MODULE = HTTP::Haul    PACKAGE = HTTP::Haul::Batch

SV *
_new(class, engine, parallel, per_host, in_order, memory)
    const char *class
    SV *engine
    UV parallel
    UV per_host
    bool in_order
    UV memory
  CODE:
    PERL_UNUSED_VAR(class);
    RETVAL = hk_batch_new(aTHX_ engine, parallel, per_host, in_order, memory);
  OUTPUT:
    RETVAL

void
_limit(self, rate, rate_host, limit_rate, stall_time)
    SV *self
    NV rate
    NV rate_host
    UV limit_rate
    NV stall_time
  CODE:
    hk_batch_limit(aTHX_ self, rate, rate_host, limit_rate, stall_time);

SV *
_add(self, index, method, url, headers, content)
    SV *self
    UV index
    SV *method
    SV *url
    AV *headers
    SV *content
  CODE:
    RETVAL = hk_batch_add(aTHX_ self, index, method, url, headers, content);
  OUTPUT:
    RETVAL

bool
_add_url(self, index, url)
    SV *self
    UV index
    SV *url
  CODE:
    RETVAL = hk_batch_add_url(aTHX_ self, index, url);
  OUTPUT:
    RETVAL

void
_next(self, timeout_ms, states)
    SV *self
    IV timeout_ms
    HV *states
  PREINIT:
    SV *response, *request;
    UV index;
  PPCODE:
    PUTBACK;
    response = hk_batch_next(aTHX_ self, timeout_ms, states, &index, &request);
    SPAGAIN;
    if (response) {
        EXTEND(SP, 3);
        mPUSHu(index);
        mPUSHs(response);
        if (request)
            PUSHs(request);
    }

UV
pending(self)
    SV *self
  CODE:
    RETVAL = hk_batch_pending(aTHX_ self);
  OUTPUT:
    RETVAL

int
fd(self)
    SV *self
  CODE:
    RETVAL = hk_batch_fd(aTHX_ self);
  OUTPUT:
    RETVAL

MODULE = HTTP::Haul    PACKAGE = HTTP::Haul::Jar

SV *
_new(class)
    const char *class
  CODE:
    RETVAL = hk_jar_new(aTHX_ class);
  OUTPUT:
    RETVAL

UV
_load(self, path)
    SV *self
    const char *path
  PREINIT:
    size_t refused = 0;
  CODE:
    hk_jar_check(aTHX_ haul_jar_load(hk_jar_of(aTHX_ self), path, &refused));
    RETVAL = refused;
  OUTPUT:
    RETVAL

void
_save(self, path)
    SV *self
    const char *path
  CODE:
    hk_jar_check(aTHX_ haul_jar_save(hk_jar_of(aTHX_ self), path));

SV *
_to_text(self, format)
    SV *self
    int format
  PREINIT:
    char *text = NULL;
    size_t len = 0;
  CODE:
    hk_jar_check(aTHX_ haul_jar_to_text(hk_jar_of(aTHX_ self), format, &text, &len));
    RETVAL = newSVpvn(text ? text : "", len);
    haul_free(text);
  OUTPUT:
    RETVAL

UV
_add_text(self, text)
    SV *self
    SV *text
  PREINIT:
    size_t refused = 0;
    STRLEN len;
    const char *bytes;
  CODE:
    bytes = SvPVbyte(text, len);
    hk_jar_check(aTHX_ haul_jar_add_text(hk_jar_of(aTHX_ self), bytes, len, &refused));
    RETVAL = refused;
  OUTPUT:
    RETVAL

SV *
cookie_header(self, url)
    SV *self
    SV *url
  PREINIT:
    haul_jar *jar;
    char *text = NULL;
  CODE:
    jar = hk_jar_of(aTHX_ self);
    hk_jar_check(aTHX_ haul_jar_cookie_header(jar, hk_url_text(aTHX_ url), &text));
    RETVAL = newSVpv(text ? text : "", 0);
    haul_free(text);
  OUTPUT:
    RETVAL

bool
add(self, url, set_cookie)
    SV *self
    SV *url
    SV *set_cookie
  PREINIT:
    haul_jar *jar;
    const char *to, *text;
    haul_status status;
  CODE:
    jar = hk_jar_of(aTHX_ self);
    set_cookie = hk_copy(aTHX_ set_cookie);
    to = hk_url_text(aTHX_ url);
    text = hk_set_cookie_text(aTHX_ set_cookie);
    /* A field cannot have a NUL byte. */
    if (!text)
        XSRETURN_NO;
    status = haul_jar_set(jar, to, text);
    if (status != HAUL_STATUS_OK && status != HAUL_STATUS_SETUP)
        hk_jar_check(aTHX_ status);
    RETVAL = status == HAUL_STATUS_OK;
  OUTPUT:
    RETVAL

void
put(self, cookie)
    SV *self
    HV *cookie
  CODE:
    hk_keep(aTHX_ (SV *)cookie);
    hk_jar_put(aTHX_ hk_jar_of(aTHX_ self), cookie);

void
remove(self, domain, path, name)
    SV *self
    SV *domain
    SV *path
    SV *name
  PREINIT:
    haul_jar *jar;
  CODE:
    jar = hk_jar_of(aTHX_ self);
    domain = hk_copy(aTHX_ domain);
    path = hk_copy(aTHX_ path);
    name = hk_copy(aTHX_ name);
    hk_jar_check(aTHX_ haul_jar_remove(jar, SvOK(domain) ? hk_text(aTHX_ domain, "a domain") : NULL,
                                       SvOK(path) ? hk_text(aTHX_ path, "a path") : NULL,
                                       SvOK(name) ? hk_text(aTHX_ name, "a cookie's name") : NULL));

void
_clear(self)
    SV *self
  CODE:
    haul_jar_clear(hk_jar_of(aTHX_ self));

void
clear_session(self)
    SV *self
  CODE:
    haul_jar_clear_session(hk_jar_of(aTHX_ self));

UV
count(self)
    SV *self
  CODE:
    RETVAL = haul_jar_count(hk_jar_of(aTHX_ self));
  OUTPUT:
    RETVAL

AV *
_list(self)
    SV *self
  CODE:
    RETVAL = (AV *)sv_2mortal((SV *)hk_jar_list(aTHX_ hk_jar_of(aTHX_ self)));
  OUTPUT:
    RETVAL
