/*
 * haul_perl.h: the declarations that the C files of HTTP::Haul share, with the prefix "hk".
 *
 *   Haul.xs         the functions that Perl calls: argument checks
 *   engine.c        a haul_client as a Perl object: settings, threads, signals
 *   signals.c       signal handlers that would interrupt libhaul
 *   request.c       requests from Perl's arguments
 *   callbacks.c     the functions that libhaul calls during a request
 *   header_names.c  keys of response hashes, cached for each interpreter
 *   response.c      responses as hashes like those of HTTP::Tiny
 *   form.c          application/x-www-form-urlencoded
 *   lwp.c           requests for LWP::Protocol::haul, whole or streamed
 *   lwp_plain.c     such requests that need no Perl code
 *   batch.c         many requests at once
 *   jar.c           cookie jars
 *
 * Perl may leave a function by longjmp whenever Perl code runs or an exception is thrown. That must
 * never happen while a frame of libhaul is on the stack. Therefore every callback runs Perl code
 * under G_EVAL on a separate stack, stores the exception, and asks libhaul to stop. The exception is
 * thrown, or put into the response, after libhaul has returned.
 */
#ifndef HK_H
#define HK_H

#define PERL_NO_GET_CONTEXT
#include "EXTERN.h"
#include "perl.h"
#include "XSUB.h"

/* Names that Perl 5.14 does not have. */
#ifndef av_top_index
#define av_top_index(av) av_len(av)
#endif
#ifndef TAINTING_get
#define TAINTING_get (PL_tainting)
#endif
#ifndef isSPACE_A
#define isSPACE_A(c) ((c) == '\v' || isSPACE(c))
#endif

#include <haul.h>

/* A haul_client with the state that Perl needs beside it. */
typedef struct hk_engine {
    haul_client *client;
    haul_response *response;   /* kept for the next call, since its memory is reused */
    bool busy;                 /* `response` is in use, so a request of a callback needs another one */
    bool ready;                /* the client has the settings of the Perl object */
    bool foreign_jar;          /* cookies are in a jar of another module */
    bool in_perl;              /* Perl code makes the requests: they have retries or report steps */
    bool timings;              /* responses get `timings` and `connection` */
    bool keep_alive;
    IV max_redirect;
    UV max_size;               /* for messages; 0: no limit */
    SV *error;                 /* the exception of a signal handler during a call */
    SV *last_url;              /* the URL of the last request */
    bool connected;            /* the connection of that request was kept */
    Pid_t pid;                 /* the process that created it */
} hk_engine;

/* The number of header fields that fit without another allocation. */
#define HK_HEADERS 24

/* A request in progress, and its response. It is on the C stack, with Perl values that are
 * mortal or borrowed from mortal ones; or it belongs to a stream, which owns the values. */
typedef struct hk_exchange {
    hk_engine *engine;
    haul_call call;
    haul_header few[HK_HEADERS];
    haul_header *headers;
    size_t header_count;
    size_t header_room;
    SV *url;                   /* as Perl gave it */
    SV *content;               /* the body so far; owned until the response takes it */
    SV *data_callback;
    SV *content_callback;
    SV *trailer_callback;
    SV *step_callback;
    SV *pending;               /* bytes of the content callback that did not fit */
    STRLEN pending_at;
    UV given;                  /* bytes of content that libhaul has taken */
    HV *response;              /* created early for the data callback; owned until it is returned */
    SV *error;                 /* the exception of a callback */
    bool wants_data;           /* the body goes to the data callback */
    bool has_type;             /* the fields have a Content-Type */
    bool tainted;
} hk_exchange;

/* Strings that are created once: keys of hashes, HTTP versions. */
enum {
    HK_SUCCESS, HK_URL, HK_STATUS, HK_REASON, HK_CONTENT, HK_HEADERS_KEY, HK_PROTOCOL, HK_ENGINE, HK_DEFAULT_HEADERS,
    HK_DATA_CALLBACK, HK_TRAILER_CALLBACK, HK_PEER, HK_RETRIES, HK_ON_STEP, HK_TIMINGS, HK_CONNECTION, HK_ERROR,
    HK_RC, HK_MSG, HK_LWP_PROTOCOL, HK_REQUEST, HK_LWP_HEADERS, HK_LWP_CONTENT,
    HK_HTTP_1_0, HK_HTTP_1_1, HK_HTTP_2, HK_HTTP_3, HK_WORDS
};

/* header_names.c */
void hk_names_begin(pTHX);
void hk_names_clone(pTHX);
SV *hk_fetch(pTHX_ HV *hv, int word);
void hk_store(pTHX_ HV *hv, int word, SV *value);
SV *hk_word(pTHX_ int word);
void hk_add_headers(pTHX_ HV *hv, const haul_header *headers, size_t count, bool decoded);
void hk_add_to_http_headers(pTHX_ HV *hv, const haul_header *headers, size_t count);
/* Returns the place of a field name in the order of HTTP::Headers, and stores its spelling, mortal;
 * 0 if HTTP::Headers does not know it. `key` is the name in lower case. */
IV hk_place(pTHX_ const char *key, STRLEN len, SV **spelling);

/* engine.c */
SV *hk_engine_new(pTHX_ const char *class, haul_client *client);
/* Creates an engine with the same settings and connections that connects to `peer` instead of
 * the host of the URL. */
SV *hk_engine_to(pTHX_ hk_engine *engine, SV *peer, UV port);
hk_engine *hk_engine_of_sv(pTHX_ SV *sv);
hk_engine *hk_engine_of_object(pTHX_ SV *self);
void hk_engine_set(pTHX_ hk_engine *engine, const char *name, SV *value);
void hk_attach(pTHX_ SV *sv, const MGVTBL *vtbl, void *pointer);
void *hk_attached(pTHX_ SV *sv, const MGVTBL *vtbl);
SV *hk_run(pTHX_ SV *code, int count, SV **arguments, SV **result);
void hk_signals(pTHX_ CV *cv);
/* Makes the message of a failure, which begins like that of HTTP::Tiny; `limit` is max_size. */
SV *hk_failure(pTHX_ haul_status status, const haul_error *error, const char *url, STRLEN len, UV limit);

/* signals.c */
/* The signals that hk_restore_signals has to restore. */
typedef struct hk_deferred {
    U32 flags;
    int count;
    U8 numbers[SIG_SIZE];
} hk_deferred;
void hk_signals_begin(pTHX);
void hk_signals_clone(pTHX);
/* Defers the signals whose handlers Perl would call at once, until hk_restore_signals. libhaul asks
 * for deferred signals while it waits, and engine.c then runs their handlers. */
void hk_defer_signals(pTHX_ hk_deferred *deferred);
void hk_restore_signals(pTHX_ hk_deferred *deferred);
/* Restores the signals before Perl code runs in a call of libhaul. Returns what the caller passes to
 * hk_defer_signals afterwards, or NULL if there is no such call. */
hk_deferred *hk_pause_deferral(pTHX);

/* request.c */
/* Begins an exchange. If the URL is an object whose text cannot be made, stores the exception. */
void hk_begin(pTHX_ hk_exchange *x, hk_engine *engine, const char *method, STRLEN method_len, SV *url);
/* Adds a field. Name and value must live as long as the exchange. */
void hk_push_field(pTHX_ hk_exchange *x, const char *name, STRLEN len, haul_slice value);
bool hk_add_field(pTHX_ hk_exchange *x, const char *name, STRLEN len, SV *value);
bool hk_add_fields(pTHX_ hk_exchange *x, HV *fields, HV *but);
/* Sets the content, and returns the mortal value that has to live as long as the request; NULL
 * if the content cannot be sent. */
SV *hk_set_content(pTHX_ hk_exchange *x, SV *content);
haul_status hk_exchange_run(pTHX_ hk_exchange *x, haul_reply *reply, haul_response **used);
void hk_exchange_done(pTHX_ hk_exchange *x, haul_response *used);
/* Makes one request like HTTP::Tiny, without redirects. Returns a new reference to a hash. The
 * arguments are copies of the caller's, which no Perl code can reach. */
SV *hk_once(pTHX_ SV *self, hk_engine *engine, SV *method, SV *url, HV *arguments, bool bare);
/* Makes a request with redirects and the features that are implemented in Perl. Its arguments are
 * such copies, too. */
SV *hk_request(pTHX_ SV *self, SV *method, SV *url, HV *arguments);
SV *hk_bytes(pTHX_ SV *value);
/* Returns a mortal copy of an argument, which Perl code that runs meanwhile can neither free nor
 * change. */
SV *hk_copy(pTHX_ SV *value);
/* Keeps a value until the statement ends. Returns it. */
SV *hk_keep(pTHX_ SV *value);
/* Returns a scalar that can be read without running Perl code: the same, or a mortal copy of one that
 * is tied or shared between threads. Elements of tied and shared arrays and hashes are such. */
SV *hk_plain(pTHX_ SV *value);
/* Returns a mortal C string. Croaks with `what` if the value contains a NUL. */
const char *hk_text(pTHX_ SV *value, const char *what);
/* Returns a text as UTF-8. Bytes that are valid UTF-8 stay unchanged; other bytes above 0x7f are
 * Latin-1. The result is valid as long as the value, and ends with a NUL. */
haul_slice hk_utf8(pTHX_ SV *value);
/* Returns a URL as UTF-8, with its blanks as %20. */
haul_slice hk_url(pTHX_ SV *url);
/* Returns such a URL as a C string. Croaks if it contains a NUL. */
const char *hk_url_text(pTHX_ SV *url);
/* Returns whether a URL has a scheme. libhaul, like curl, would take the text for a host; for
 * programs of HTTP::Tiny it is no URL: a relative link, a mailto:user@host of a page. */
bool hk_has_scheme(const char *url, STRLEN len);
#define HK_NO_URL "Cannot parse URL: '%.*s'\n"
/* Returns the bytes of a value, which are valid as long as the value. */
haul_slice hk_slice(pTHX_ SV *value);
/* Stores the reason of a failure, unless there is one already. Returns FALSE. */
bool hk_fail(pTHX_ hk_exchange *x, const char *text, const char *what, STRLEN len);

/* callbacks.c: `user` is the exchange. */
size_t hk_read_content(void *user, char *buffer, size_t len);
int hk_give_trailers(void *user, const haul_header **trailers, size_t *count);
/* Returns memory for the body in the `content` of the exchange. */
void *hk_reserve(void *user, size_t size);
int hk_on_head(void *user, const haul_reply *head);
int hk_on_body(void *user, const char *data, size_t len);
void hk_on_step(void *user, const haul_step_info *info);

/* response.c */
HV *hk_response(pTHX_ const haul_reply *reply, SV *url);
void hk_add_trailers(pTHX_ HV *response, const haul_response *from);
HV *hk_response_599(pTHX_ SV *url, SV *text);
/* Makes the hash `error` of a failed request: `code` and the kind of failure. */
HV *hk_error(pTHX_ haul_status status, const haul_error *error);
/* Adds `timings` and `connection` to a response. */
void hk_add_timings(pTHX_ HV *response, const haul_response *from);
AV *hk_header_list(pTHX_ const haul_header *headers, size_t count);
SV *hk_protocol(pTHX_ unsigned version);
bool hk_redirects(const haul_reply *reply);
bool hk_keeps(const haul_reply *reply);

/* form.c */
SV *hk_form(pTHX_ SV *data);

/* batch.c */
SV *hk_batch_new(pTHX_ SV *engine, UV parallel, UV per_host, bool in_order, UV memory);
void hk_batch_limit(pTHX_ SV *self, NV rate, NV rate_host, UV limit_rate, NV stall_time);
/* Adds a request. Returns undef, or the response of a request that libhaul does not accept. */
SV *hk_batch_add(pTHX_ SV *batch, UV index, SV *method, SV *url, AV *headers, SV *content);
/* Adds a GET request without fields. Returns FALSE if it cannot be sent; hk_batch_add has the
 * reason. */
bool hk_batch_add_url(pTHX_ SV *batch, UV index, SV *url);
/* Returns the next response, or NULL after the timeout. `states` has a hash, or only the URL, for
 * the number of each request. If there is only a URL, and Perl code need not follow a redirect,
 * `request` gets the URL, which is removed from `states`. */
SV *hk_batch_next(pTHX_ SV *batch, IV timeout_ms, HV *states, UV *index, SV **request);
UV hk_batch_pending(pTHX_ SV *batch);
int hk_batch_fd(pTHX_ SV *batch);

/* lwp.c */
/* Makes a request with a list of fields. `out` gets status, reason, version, fields, content,
 * whether the content is HTML, error number, error text. The fields of the response go to
 * `headers`, an HTTP::Headers; if that is undef, to `out` as a list. */
SSize_t hk_lwp_call(pTHX_ SV *engine, SV *method, SV *url, AV *fields, SV *content, SV *headers, SV **out);
/* Makes a request and returns after the head, with an HTTP::Haul::Stream as the content. */
SSize_t hk_lwp_open(pTHX_ SV *engine, SV *method, SV *url, AV *fields, SV *content, SV *headers, SV **out);
/* Sends a request whose fields and content are set, and fills `out`. */
void hk_lwp_run(pTHX_ hk_exchange *x, SV *headers, SV **out);
SV *hk_stream_read(pTHX_ SV *stream, UV size);
AV *hk_stream_trailers(pTHX_ SV *stream);
#define HK_LWP_ANSWER 8

/* lwp_plain.c */
/* Makes a request that needs no Perl code. Returns 0, without having sent anything, if it needs
 * some; 1 if `out` has an HTTP::Response; else HK_LWP_ANSWER + 1, with the HTTP::Headers last.
 * `unset` has the names of the members of an HTTP::Response that have no value yet. */
SSize_t hk_lwp_plain(pTHX_ SV *ua, SV *request, SV *timeout, SV *keep_alive, AV *unset, SV **out);

/* jar.c */
SV *hk_jar_new(pTHX_ const char *class);
/* Returns the jar of an object, which exists until the statement ends. */
haul_jar *hk_jar_of(pTHX_ SV *sv);
/* Returns the bytes of a Set-Cookie field, or UTF-8 if a character does not fit in a byte; NULL if
 * there is a NUL byte in it. `value` is a copy, which may change. */
const char *hk_set_cookie_text(pTHX_ SV *value);
void hk_jar_check(pTHX_ haul_status status);
AV *hk_jar_list(pTHX_ haul_jar *jar);
void hk_jar_put(pTHX_ haul_jar *jar, HV *cookie);

#endif
