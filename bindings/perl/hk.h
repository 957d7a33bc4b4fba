/*
 * hk.h: what the C files of HTTP::Haul share. "hk" is the prefix of everything here.
 *
 *   Haul.xs    what Perl sees: argument checks, nothing else
 *   engine.c   a haul_client as a Perl object: settings, threads, signals
 *   call.c     a request from Perl's arguments
 *   callbacks.c  what libhaul calls back
 *   names.c    the keys of responses, and header fields by them
 *   reply.c    a reply as HTTP::Tiny's hash, or as LWP wants it
 *   form.c     application/x-www-form-urlencoded
 *   lwp.c      the same for LWP::Protocol::haul, whole or as a stream
 *   batch.c    many requests at once
 *   jar.c      cookies
 *
 * Perl may leave a function by longjmp whenever Perl code runs or an exception is thrown. That must never happen while
 * a frame of libhaul is on the stack: every callback runs Perl code under G_EVAL on a stack of its own, keeps the
 * exception, and asks libhaul to stop. It is thrown, or put into the response, once libhaul has returned.
 */
#ifndef HK_H
#define HK_H

#define PERL_NO_GET_CONTEXT
#include "EXTERN.h"
#include "perl.h"
#include "XSUB.h"

#include <haul.h>

/* A haul_client with what Perl needs to know beside it. */
typedef struct hk_engine {
    haul_client *client;
    haul_response *response;   /* kept for the next call, since its memory is reused */
    bool busy;                 /* `response` is in use: a callback makes a request of its own */
    bool ready;                /* the settings of the Perl object have been handed on */
    bool foreign_jar;          /* cookies are a Perl object's business */
    bool keep_alive;
    IV max_redirect;
    UV max_size;               /* 0: no limit */
    SV *error;                 /* what a signal handler died of during a call */
    SV *last_url;              /* where the last request went, */
    bool connected;            /* if its connection was kept */
    Pid_t pid;                 /* the process that made it */
} hk_engine;

/* How many header fields fit without another allocation. */
#define HK_HEADERS 24

/* One request on its way, and its reply. Lives on the C stack, and all Perl values in it are mortal or borrowed from those;
 * or in a stream, which then holds what it needs. */
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
    SV *pending;               /* what the content callback gave beyond what fitted */
    STRLEN pending_at;
    UV given;                  /* bytes of content that libhaul has */
    HV *response;              /* made early for the data callback; owned until it is returned */
    SV *error;                 /* what a callback died of */
    bool wants_data;           /* the body goes to the data callback */
    bool has_type;             /* of the fields given: Content-Type, */
    bool has_agent;            /* User-Agent */
    bool tainted;
} hk_exchange;

/* Words that are made once: keys of hashes, versions. */
enum {
    HK_SUCCESS, HK_URL, HK_STATUS, HK_REASON, HK_CONTENT, HK_HEADERS_KEY, HK_PROTOCOL, HK_ENGINE, HK_DEFAULT_HEADERS,
    HK_DATA_CALLBACK, HK_TRAILER_CALLBACK, HK_PEER, HK_HTTP_1_0, HK_HTTP_1_1, HK_HTTP_2, HK_HTTP_3, HK_WORDS
};

/* names.c */
void hk_names_begin(pTHX);
void hk_names_clone(pTHX);
SV *hk_fetch(pTHX_ HV *hv, int word);
void hk_store(pTHX_ HV *hv, int word, SV *value);
SV *hk_word(pTHX_ int word);
void hk_add_headers(pTHX_ HV *hv, const haul_header *headers, size_t count, bool decoded);
void hk_add_to_http_headers(pTHX_ HV *hv, const haul_header *headers, size_t count);

/* engine.c */
SV *hk_engine_new(pTHX_ const char *class, haul_client *client);
/* Another one with the same settings and connections, for requests that go to `host` in place of their URL's. */
SV *hk_engine_to(pTHX_ hk_engine *engine, const char *host, UV port);
hk_engine *hk_engine_of_sv(pTHX_ SV *sv);
hk_engine *hk_engine_of_object(pTHX_ SV *self);
void hk_engine_set(pTHX_ hk_engine *engine, const char *name, SV *value);
void hk_attach(pTHX_ SV *sv, const MGVTBL *vtbl, void *pointer);
void *hk_attached(pTHX_ SV *sv, const MGVTBL *vtbl);
SV *hk_run(pTHX_ SV *code, int count, SV **arguments, SV **result);
void hk_signals(pTHX_ CV *cv);
/* What went wrong in the words that HTTP::Tiny's users look for; `limit` is the size allowed. */
SV *hk_failure(pTHX_ haul_status status, const haul_error *error, const char *url, STRLEN len, UV limit);

/* call.c */
void hk_begin(pTHX_ hk_exchange *x, hk_engine *engine, const char *method, STRLEN method_len, SV *url);
bool hk_add_field(pTHX_ hk_exchange *x, const char *name, STRLEN len, SV *value);
bool hk_add_fields(pTHX_ hk_exchange *x, HV *fields, HV *but);
/* What is sent, mortal, to be held for as long as it is; NULL where it cannot be. */
SV *hk_set_content(pTHX_ hk_exchange *x, SV *content);
haul_status hk_exchange_run(pTHX_ hk_exchange *x, haul_reply *reply, haul_response **used);
void hk_exchange_done(pTHX_ hk_exchange *x, haul_response *used);
/* One request as HTTP::Tiny makes it, without redirects; a new reference to a hash. */
SV *hk_once(pTHX_ SV *self, hk_engine *engine, SV *method, SV *url, HV *arguments, bool bare);
/* The same with redirects and all that is done in Perl. */
SV *hk_request(pTHX_ SV *self, SV *method, SV *url, HV *arguments);
SV *hk_bytes(pTHX_ SV *value);
/* A C string, mortal; libhaul takes no NUL inside, which is said of `what`. */
const char *hk_text(pTHX_ SV *value, const char *what);
/* The same of a URL, as UTF-8. */
const char *hk_url(pTHX_ SV *value);
/* Whether a URL says its scheme. libhaul, as curl, reads what does not as a host; to programs of HTTP::Tiny it is no URL: a relative
 * link, a mailto:user@host from a page. */
bool hk_has_scheme(const char *url, STRLEN len);
#define HK_NO_URL "Cannot parse URL: '%.*s'\n"
/* Bytes as libhaul takes them, for as long as the value stays. */
haul_slice hk_slice(pTHX_ SV *value);
/* Notes why an exchange fails, if it is the first reason; false. */
bool hk_fail(pTHX_ hk_exchange *x, const char *text, const char *what, STRLEN len);

/* callbacks.c: their user is the exchange. */
size_t hk_read_content(void *user, char *buffer, size_t len);
int hk_give_trailers(void *user, const haul_header **trailers, size_t *count);
/* Makes a body the exchange's `content`. */
void *hk_reserve(void *user, size_t size);
int hk_on_head(void *user, const haul_reply *head);
int hk_on_body(void *user, const char *data, size_t len);

/* reply.c */
HV *hk_response(pTHX_ const haul_reply *reply, SV *url);
void hk_add_trailers(pTHX_ HV *response, const haul_response *from);
HV *hk_response_599(pTHX_ SV *url, SV *text);
AV *hk_header_list(pTHX_ const haul_header *headers, size_t count);
SV *hk_protocol(pTHX_ unsigned version);
bool hk_redirects(const haul_reply *reply);
bool hk_keeps(const haul_reply *reply);

/* form.c */
SV *hk_form(pTHX_ SV *data);

/* batch.c */
SV *hk_batch_new(pTHX_ SV *engine, UV parallel, UV per_host, bool in_order, UV memory);
void hk_batch_add(pTHX_ SV *batch, UV index, SV *method, SV *url, AV *headers, SV *content, IV max_redirect);
SV *hk_batch_next(pTHX_ SV *batch, IV timeout_ms, UV *index);
UV hk_batch_pending(pTHX_ SV *batch);
int hk_batch_fd(pTHX_ SV *batch);

/* lwp.c */
/* (status, reason, version, fields, content, whether it is HTML, error number, error text) of a request whose fields are a
 * list. The reply's go to `headers`, an HTTP::Headers, or as a list into the answer where that is undef. */
SSize_t hk_lwp_call(pTHX_ SV *engine, SV *method, SV *url, AV *fields, SV *content, SV *headers, SV **out);
/* The same with an HTTP::Haul::Stream in the place of the content, when the head has come. */
SSize_t hk_lwp_open(pTHX_ SV *engine, SV *method, SV *url, AV *fields, SV *content, SV *headers, SV **out);
SV *hk_stream_read(pTHX_ SV *stream, UV size);
AV *hk_stream_trailers(pTHX_ SV *stream);
#define HK_LWP_ANSWER 8

/* jar.c */
SV *hk_jar_new(pTHX_ const char *class);
haul_jar *hk_jar_of(pTHX_ SV *sv);
void hk_jar_check(pTHX_ haul_status status);
AV *hk_jar_list(pTHX_ haul_jar *jar);
void hk_jar_put(pTHX_ haul_jar *jar, HV *cookie);

#endif
