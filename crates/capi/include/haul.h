/*
 * haul.h: the C interface of haul, an HTTP client.
 *
 * Objects are made by ..._new and ended by ..._free; every ..._free takes NULL. What may fail returns a haul_status, and
 * where that is not HAUL_STATUS_OK, haul_last_error says more (a function that returns a pointer returns NULL then).
 * Nothing has to be set up first.
 *
 * Strings end with NUL or come with their length. They are UTF-8, header values are any bytes; a string that would change
 * what is sent (CR, LF or NUL in a header, a method that is no token) is refused with HAUL_STATUS_SETUP or
 * HAUL_STATUS_URL, and nothing is sent. NULL where it is not allowed is HAUL_STATUS_SETUP.
 *
 * Threads: a client, a jar and an error may be used by any number of threads at once. A request, a response and a batch
 * belong to one thread at a time. haul_last_error is each thread's own. Callbacks run in the thread that called.
 *
 * Fork: a child may go on with the clients it inherited. It does not use or disturb the parent's connections: it makes
 * its own. A response or batch that was under way belongs to the parent; the child may only free it.
 *
 * Signals: see haul_client_set_interrupt.
 */
#ifndef HAUL_H
#define HAUL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HAUL_VERSION_MAJOR 0
#define HAUL_VERSION_MINOR 1
#define HAUL_VERSION_PATCH 0
#define HAUL_VERSION "0.1.0"

#ifdef __cplusplus
extern "C" {
#endif

/* What became of a call: 0 or one of curl's exit numbers. New ones may come: treat an unknown one as a failure. */
typedef enum haul_status {
  HAUL_STATUS_OK = 0,
  HAUL_STATUS_UNSUPPORTED_SCHEME = 1,   /* neither http nor https */
  HAUL_STATUS_SETUP = 2,                /* an argument or a setting cannot be used */
  HAUL_STATUS_URL = 3,                  /* the URL cannot be parsed */
  HAUL_STATUS_PROXY_RESOLVE = 5,
  HAUL_STATUS_RESOLVE = 6,              /* the host's name has no address */
  HAUL_STATUS_CONNECT = 7,
  HAUL_STATUS_PROTOCOL = 8,             /* the reply is not HTTP, or breaks its rules */
  HAUL_STATUS_HTTP2 = 16,
  HAUL_STATUS_PARTIAL_BODY = 18,        /* the body ended too early */
  HAUL_STATUS_HTTP_STATUS = 22,
  HAUL_STATUS_WRITE = 23,               /* a callback that takes the body refused */
  HAUL_STATUS_READ = 26,                /* the request's body could not be read */
  HAUL_STATUS_TIMEOUT = 28,
  HAUL_STATUS_RANGE = 33,
  HAUL_STATUS_TLS_HANDSHAKE = 35,
  HAUL_STATUS_CHANGED = 36,
  HAUL_STATUS_INTERFACE = 45,           /* the local address cannot be used */
  HAUL_STATUS_TOO_MANY_REDIRECTS = 47,
  HAUL_STATUS_EMPTY_REPLY = 52,
  HAUL_STATUS_SEND = 55,
  HAUL_STATUS_RECEIVE = 56,
  HAUL_STATUS_CLIENT_CERTIFICATE = 58,
  HAUL_STATUS_PEER_CERTIFICATE = 60,
  HAUL_STATUS_CONTENT_CODING = 61,      /* broken gzip and its like */
  HAUL_STATUS_TOO_LARGE = 63,
  HAUL_STATUS_REWIND = 65,              /* the request's body would have to be sent again, and cannot */
  HAUL_STATUS_CA_FILE = 77,
  HAUL_STATUS_HTTP2_STREAM = 92,
  HAUL_STATUS_AUTH = 94,
  HAUL_STATUS_PROXY = 97,               /* a SOCKS proxy refused */
  HAUL_STATUS_INTERRUPTED = 130,        /* the interrupt callback said so */
  HAUL_STATUS_INTERNAL = 255            /* a fault in haul itself */
} haul_status;

typedef struct haul_client haul_client;       /* settings, connections, a jar: what requests share */
typedef struct haul_request haul_request;     /* one request, to be sent any number of times */
typedef struct haul_response haul_response;   /* a reply with all that is known of it */
typedef struct haul_jar haul_jar;             /* cookies */
typedef struct haul_batch haul_batch;         /* many requests at once */
typedef struct haul_error haul_error;         /* why something failed */

/* Bytes that belong to someone else; not ended by NUL. */
typedef struct haul_slice {
  const char *data;
  size_t len;
} haul_slice;

/* A header field. */
typedef struct haul_header {
  haul_slice name;
  haul_slice value;
} haul_header;

/* Gives the memory for a body: the start of room for `size` bytes in all, which keeps what earlier calls for this body
 * left in it (as realloc does). It may move. NULL stops the request with HAUL_STATUS_WRITE. Asked once where the length
 * is known and not above 4 MiB, else each time the body outgrows what there is. */
typedef void *(*haul_reserve_fn)(void *user, size_t size);

/* Takes a piece of a body. Not 0 stops the request with HAUL_STATUS_WRITE. */
typedef int (*haul_body_fn)(void *user, const char *data, size_t len);

/* Gives the next bytes of a request's body: at most `len` of them into `buffer`. 0 is the end, HAUL_READ_ERROR a failure. */
typedef size_t (*haul_read_fn)(void *user, char *buffer, size_t len);
#define HAUL_READ_ERROR ((size_t)-1)

/* Goes back to the first byte of a request's body, since it has to be sent again. Not 0: it cannot be done. */
typedef int (*haul_rewind_fn)(void *user);

/* Asked while something is waited for. Not 0 ends the wait with HAUL_STATUS_INTERRUPTED. */
typedef int (*haul_interrupt_fn)(void *user);

/* ---- What is known of a reply -------------------------------------------------------------------------------------- */

/* The plain part of a reply. All pointers are into the haul_response it came with, and hold until that is used for another
 * call, or freed; but those of `body` are into your memory where you gave some. */
typedef struct haul_reply {
  uint16_t status;               /* the status code; 0 where no reply came */
  uint16_t version;              /* 10, 11, 20: HTTP/1.0, 1.1, 2 */
  uint32_t redirects;            /* how many redirects were followed */
  haul_slice reason;             /* the reason phrase; empty in HTTP/2 */
  haul_slice url;                /* where it came from in the end, without credentials and fragment */
  const haul_header *headers;    /* in their order, names as they were sent (HTTP/2: in lower case) */
  size_t header_count;
  const char *body;              /* the whole body; NULL where a haul_body_fn took it, or it is to be read */
  size_t body_len;               /* how long it was (after decoding) */
} haul_reply;

/* Is called with the head of the final reply before any of its body (no body in it yet); the pointers hold during the call.
 * Not 0 stops the request with HAUL_STATUS_WRITE. */
typedef int (*haul_head_fn)(void *user, const haul_reply *head);

/* Times in nanoseconds since the request began; 0 where there was no such step (a warm connection). */
typedef struct haul_times {
  uint64_t resolved;
  uint64_t connected;
  uint64_t secured;
  uint64_t sent;
  uint64_t first_byte;
  uint64_t total;
} haul_times;

/* ---- One call for the common request ------------------------------------------------------------------------------- */

/* All of a request, in plain memory that haul only reads during the call. Begin with HAUL_CALL_INIT. */
typedef struct haul_call {
  size_t size;                   /* sizeof(haul_call) */
  haul_slice method;             /* empty: GET */
  haul_slice url;
  const haul_header *headers;    /* besides those of the client; one of the same name replaces the client's or haul's own */
  size_t header_count;
  haul_slice body;               /* data NULL: none. Up to 64 KiB leave in one send with the head. */
  haul_read_fn read;             /* not NULL: the body comes from here instead */
  haul_rewind_fn rewind;         /* may be NULL: then it cannot be sent again */
  void *read_user;
  int64_t read_length;           /* its length, -1 where not known (it goes by chunks) */
  haul_head_fn on_head;          /* may be NULL */
  haul_reserve_fn reserve;       /* where the body goes: into your memory, */
  haul_body_fn on_body;          /* or piece by piece; both NULL: into haul's */
  void *user;                    /* for on_head, reserve and on_body */
  uint64_t timeout_ms;           /* of this request in all; 0: the client's */
  uint64_t max_size;             /* of the body in bytes; 0: the client's */
  int32_t max_redirects;         /* -1: the client's; 0: none is followed */
} haul_call;

#define HAUL_CALL_INIT { .size = sizeof(haul_call), .max_redirects = -1, .read_length = -1 }

/* A place for replies. Use one again and again: its memory is kept. */
haul_response *haul_response_new(void);
void haul_response_free(haul_response *response);

/* Sends the request and waits for the whole reply. `response` keeps it, `reply` (may be NULL) gets the plain part, also
 * where the call fails after a head has come. No thread is started; on a warm connection this is three system calls. */
haul_status haul_client_call(haul_client *client, const haul_call *call, haul_response *response, haul_reply *reply);

/* ---- Client -------------------------------------------------------------------------------------------------------- */

/* A client with default settings, no jar and no connection. Costs nothing before its first request. */
haul_client *haul_client_new(void);
/* Another client with the same settings, sharing the connections and the jar. */
haul_client *haul_client_clone(const haul_client *client);
void haul_client_free(haul_client *client);

#define HAUL_SHARE_POOL 1u   /* connections, names, TLS sessions */
#define HAUL_SHARE_JAR 2u
/* From now on `client` uses those of `with`. */
haul_status haul_client_share(haul_client *client, const haul_client *with, uint32_t what);

/* Settings hold for the requests that begin after. */

/* Takes a reference: free your own when you like. NULL: no cookies are kept (the default). */
haul_status haul_client_set_jar(haul_client *client, haul_jar *jar);
/* NULL sends none. Default "haul/VERSION". */
haul_status haul_client_set_user_agent(haul_client *client, const char *user_agent);
/* A header of every request; a NULL value takes it away, also one that haul would send by itself (Accept). */
haul_status haul_client_set_header(haul_client *client, const char *name, const char *value);
/* Limit of each request in all, in milliseconds; 0: none (the default). */
haul_status haul_client_set_timeout(haul_client *client, uint64_t ms);
/* Limit of making a connection; default 300,000 ms. */
haul_status haul_client_set_connect_timeout(haul_client *client, uint64_t ms);
/* How long nothing may come while a reply is waited for or read; 0: no limit (the default). */
haul_status haul_client_set_idle_timeout(haul_client *client, uint64_t ms);
/* How many redirects are followed; 0: none. Default 20. */
haul_status haul_client_set_max_redirects(haul_client *client, uint32_t max);
/* How often a transient failure is tried again, with growing pauses; default 0. A connection that was closed while idle is
 * always replaced once. */
haul_status haul_client_set_retries(haul_client *client, uint32_t max);
/* Largest body in bytes, as announced, received or decoded; above it HAUL_STATUS_TOO_LARGE. 0: no limit (the default). */
haul_status haul_client_set_max_size(haul_client *client, uint64_t bytes);
/* Ask for gzip, br, zstd and deflate, and decode them. Default off: bodies are as they were sent. */
haul_status haul_client_set_decode(haul_client *client, bool on);
/* Keep connections for later requests. Default on. */
haul_status haul_client_set_keep_alive(haul_client *client, bool on);
/* How many idle connections are kept in all and to one place, and for how long. Default 100, 100, 110,000 ms. */
haul_status haul_client_set_pool(haul_client *client, size_t max_idle, size_t max_idle_per_host, uint64_t max_idle_ms);
/* Check the certificates of servers. Default on. Connections that were not checked are never used by who checks. */
haul_status haul_client_set_verify(haul_client *client, bool on);
/* Certificates to trust instead of the system's: a PEM file, a directory; NULL: the system's. */
haul_status haul_client_set_ca_file(haul_client *client, const char *path);
haul_status haul_client_set_ca_path(haul_client *client, const char *path);
/* The certificate to show, PEM; `key` NULL: in the same file. `certificate` NULL: none. */
haul_status haul_client_set_client_certificate(haul_client *client, const char *certificate, const char *key);
/* The proxy for everything, such as "http://user:password@host:3128" or "socks5h://host"; "" or NULL: none. Overrides the
 * environment. */
haul_status haul_client_set_proxy(haul_client *client, const char *url);
/* The proxy for one scheme, "http" or "https". */
haul_status haul_client_set_scheme_proxy(haul_client *client, const char *scheme, const char *url);
/* Hosts that are reached directly, a list as in NO_PROXY. */
haul_status haul_client_set_no_proxy(haul_client *client, const char *list);
/* Take proxies from http_proxy, HTTPS_PROXY, ALL_PROXY and NO_PROXY as they are now. Default: none is used. */
haul_status haul_client_set_proxy_from_environment(haul_client *client);
/* Leave from this address or interface; NULL: the system's choice. */
haul_status haul_client_set_interface(haul_client *client, const char *name);
/* Speak through this Unix socket; NULL: not. */
haul_status haul_client_set_unix_socket(haul_client *client, const char *path);

typedef enum haul_http {
  HAUL_HTTP_1_1 = 11,          /* the default */
  HAUL_HTTP_2 = 20,            /* offered over TLS, else HTTP/1.1 */
  HAUL_HTTP_2_PRIOR = 21       /* HTTP/2 without asking, also in the clear */
} haul_http;
haul_status haul_client_set_http(haul_client *client, haul_http version);

typedef enum haul_auth {
  HAUL_AUTH_NONE = 0,
  HAUL_AUTH_BASIC = 1,         /* sent at once */
  HAUL_AUTH_DIGEST = 2,
  HAUL_AUTH_ANY = 3,           /* the best that the server offers */
  HAUL_AUTH_BEARER = 4         /* `user` NULL, `secret` the token */
} haul_auth;
/* In whose name. Sent to the origin of the request's URL only, not to where it redirects. */
haul_status haul_client_set_auth(haul_client *client, haul_auth kind, const char *user, const char *secret);

/* Asked whenever a signal ends a system call, and at least each 100 ms of waiting. A signal handler that only sets a flag
 * and an interrupt callback that looks at it end any wait (alarm, Ctrl-C). NULL: none. */
haul_status haul_client_set_interrupt(haul_client *client, haul_interrupt_fn fn, void *user);

/* Closes the idle connections. */
void haul_client_close_idle(haul_client *client);
/* Connections opened, requests sent, body bytes received, by all that share the pool. Any pointer may be NULL. */
void haul_client_stats(const haul_client *client, uint64_t *connections, uint64_t *requests, uint64_t *bytes);

/* ---- Request ------------------------------------------------------------------------------------------------------- */

/* `method` NULL: GET. */
haul_request *haul_request_new(const char *method, const char *url);
haul_request *haul_request_clone(const haul_request *request);
void haul_request_free(haul_request *request);
/* Replaces all of that name; a NULL value takes it away, also the client's or haul's own. */
haul_status haul_request_set_header(haul_request *request, const char *name, const char *value);
/* Adds another one of that name. */
haul_status haul_request_add_header(haul_request *request, const char *name, const char *value);
/* The body: a copy of these bytes. */
haul_status haul_request_set_body(haul_request *request, const void *data, size_t len);
/* The body: these bytes themselves, which must stay until the request is freed or gets another body. */
haul_status haul_request_set_body_borrowed(haul_request *request, const void *data, size_t len);
/* The body: a file's content, opened when it is sent. */
haul_status haul_request_set_body_file(haul_request *request, const char *path);
/* The body: what `read` gives, `length` bytes (-1: not known, by chunks). Without `rewind` (NULL) it can be sent once. */
haul_status haul_request_set_body_callback(haul_request *request, haul_read_fn read, haul_rewind_fn rewind, void *user, int64_t length);
/* Another name and value of a form, application/x-www-form-urlencoded. */
haul_status haul_request_add_form_field(haul_request *request, const char *name, size_t name_len, const char *value, size_t value_len);
/* Another part of a form, multipart/form-data. `filename` and `content_type` may be NULL. */
haul_status haul_request_add_part(haul_request *request, const char *name, const void *data, size_t len, const char *filename, const char *content_type);
/* The same with a file's content; `filename` NULL: the file's own name. */
haul_status haul_request_add_part_file(haul_request *request, const char *name, const char *path, const char *filename, const char *content_type);
/* As the client's settings, for this request alone. */
haul_status haul_request_set_timeout(haul_request *request, uint64_t ms);
haul_status haul_request_set_max_redirects(haul_request *request, uint32_t max);
haul_status haul_request_set_max_size(haul_request *request, uint64_t bytes);
haul_status haul_request_set_auth(haul_request *request, haul_auth kind, const char *user, const char *secret);
/* Where the reply goes, as in haul_call. Each may be NULL; at most one of `reserve` and `on_body`. Not for a batch. */
haul_status haul_request_set_output(haul_request *request, haul_head_fn on_head, haul_reserve_fn reserve, haul_body_fn on_body, void *user);

/* Sends it and waits for the whole reply. *response is a new one, to be freed; it is NULL where the call fails. */
haul_status haul_client_perform(haul_client *client, const haul_request *request, haul_response **response);
/* Sends it and waits for the head only: the body is for haul_response_read. */
haul_status haul_client_open(haul_client *client, const haul_request *request, haul_response **response);

/* ---- Response ------------------------------------------------------------------------------------------------------ */

/* The plain part. What is not there is empty. */
haul_status haul_response_reply(const haul_response *response, haul_reply *reply);
uint16_t haul_response_status(const haul_response *response);
/* The version's text, such as "HTTP/1.1". */
const char *haul_response_version(const haul_response *response);
haul_slice haul_response_reason(const haul_response *response);
haul_slice haul_response_url(const haul_response *response);
size_t haul_response_header_count(const haul_response *response);
/* data is NULL past the end. */
haul_slice haul_response_header_name(const haul_response *response, size_t index);
haul_slice haul_response_header_value(const haul_response *response, size_t index);
/* The first of that name, in any case of letters; data is NULL where there is none. */
haul_slice haul_response_header(const haul_response *response, const char *name);
/* The whole body of haul_client_perform, a call or a batch, where haul kept it. */
haul_slice haul_response_body(const haul_response *response);
/* The peer's address, such as "127.0.0.1", and port. NULL where it is not known. */
const char *haul_response_peer(const haul_response *response, uint16_t *port);
haul_times haul_response_times(const haul_response *response);
/* The replies that redirected, from the first on: status, version, reason, url and headers of each. */
size_t haul_response_redirect_count(const haul_response *response);
haul_status haul_response_redirect(const haul_response *response, size_t index, haul_reply *reply);
/* Why it failed; NULL where it did not. It belongs to the response. */
const haul_error *haul_response_error(const haul_response *response);

/* Reads up to `len` bytes of the body of a response of haul_client_open; *got is 0 at its end. Read to its end, the
 * connection is kept for others; freed before, it is closed. */
haul_status haul_response_read(haul_response *response, void *buffer, size_t len, size_t *got);

/* ---- Batch --------------------------------------------------------------------------------------------------------- */

typedef enum haul_order {
  HAUL_ORDER_INPUT = 0,        /* as the requests were added (the default) */
  HAUL_ORDER_COMPLETION = 1    /* as the replies are complete */
} haul_order;

/* Takes a finished request of a batch: `user` is what haul_batch_add got, `response` is yours to free, and has
 * haul_response_error where the request failed. Not 0 stops the batch with HAUL_STATUS_INTERRUPTED. It may add requests. */
typedef int (*haul_done_fn)(void *context, void *user, haul_response *response);

/* Many requests over the client's connections. Its settings are taken as they are now. */
haul_batch *haul_batch_new(haul_client *client);
/* Ends it: what is under way is broken off. */
void haul_batch_free(haul_batch *batch);
/* Settings, before the first request is added. Most at once, in all (default 64) and to one host (default 6). */
haul_status haul_batch_set_parallel(haul_batch *batch, size_t all, size_t per_host);
haul_status haul_batch_set_order(haul_batch *batch, haul_order order);
/* How many bytes of finished bodies may wait to be taken, before no more is read. Default 64 MiB. */
haul_status haul_batch_set_memory(haul_batch *batch, size_t bytes);
/* Adds a request (a copy: free yours when you like). It begins at once where there is room. */
haul_status haul_batch_add(haul_batch *batch, const haul_request *request, void *user);
/* Waits for the next finished request, at most `timeout_ms` (-1: without limit, 0: not at all). *response is NULL where none
 * finished in time, or all have been taken; *user may be NULL. */
haul_status haul_batch_next(haul_batch *batch, int64_t timeout_ms, haul_response **response, void **user);
/* How many were added and not taken yet. */
size_t haul_batch_pending(const haul_batch *batch);
/* Waits for all, and calls `done` for each. */
haul_status haul_batch_run(haul_batch *batch, haul_done_fn done, void *context);
/* A descriptor that is readable while haul_batch_next has something to give: for poll, epoll and event loops. Only wait for
 * it; it belongs to the batch. -1 where the system gives none. */
int haul_batch_fd(const haul_batch *batch);

/* ---- Jar ----------------------------------------------------------------------------------------------------------- */

/* A cookie. A session's cookie has no `expires`. */
typedef struct haul_cookie {
  haul_slice name;
  haul_slice value;
  haul_slice domain;           /* without a leading dot */
  haul_slice path;
  int64_t expires;             /* seconds since 1970; 0: it ends with the session */
  bool host_only;              /* for that host, not for those below it */
  bool secure;
  bool http_only;
} haul_cookie;

/* Looks at a cookie; the pointers hold during the call, and the jar must not be used in it. Not 0 ends the walk. */
typedef int (*haul_cookie_fn)(void *user, const haul_cookie *cookie);

haul_jar *haul_jar_new(void);
/* Another handle of the same jar. */
haul_jar *haul_jar_clone(const haul_jar *jar);
void haul_jar_free(haul_jar *jar);
/* Adds what a Netscape file holds; a file that is not there is empty. *refused (may be NULL) is how many lines were none. */
haul_status haul_jar_load(haul_jar *jar, const char *path, size_t *refused);
/* Writes the changes since into a Netscape file, mode 0600, in one step; what others put there meanwhile stays. */
haul_status haul_jar_save(haul_jar *jar, const char *path);
/* What a request to `url` sends as Cookie. Free it with haul_free. *cookie is NULL where there is none. */
haul_status haul_jar_cookie_header(const haul_jar *jar, const char *url, char **cookie);
/* Takes the value of a Set-Cookie header of a reply from `url`; HAUL_STATUS_SETUP where the rules refuse it. */
haul_status haul_jar_set(haul_jar *jar, const char *url, const char *set_cookie);
/* Puts a cookie in as it is. */
haul_status haul_jar_put(haul_jar *jar, const haul_cookie *cookie);
haul_status haul_jar_remove(haul_jar *jar, const char *domain, const char *path, const char *name);
void haul_jar_clear(haul_jar *jar);
/* Removes the cookies that end with the session. */
void haul_jar_clear_session(haul_jar *jar);
size_t haul_jar_count(const haul_jar *jar);
/* Calls `fn` for every cookie that has not expired, in a fixed order. */
haul_status haul_jar_each(const haul_jar *jar, haul_cookie_fn fn, void *user);

/* ---- Errors -------------------------------------------------------------------------------------------------------- */

/* Why the last call in this thread that failed did. It holds until another call fails; NULL before the first. */
const haul_error *haul_last_error(void);
/* A copy to keep. */
haul_error *haul_error_clone(const haul_error *error);
void haul_error_free(haul_error *error);
haul_status haul_error_code(const haul_error *error);
/* "URL: what happened: why", ended by NUL. Never holds credentials. */
const char *haul_error_text(const haul_error *error);
/* The URL it was for, or NULL. */
const char *haul_error_url(const haul_error *error);
/* errno's number below it, or 0. */
int haul_error_errno(const haul_error *error);
bool haul_error_is_timeout(const haul_error *error);
/* No connection could be made: name, address, proxy or TLS. */
bool haul_error_is_connect(const haul_error *error);
bool haul_error_is_resolve(const haul_error *error);
bool haul_error_is_tls(const haul_error *error);
/* The call was wrong: an argument, a setting, a URL. */
bool haul_error_is_usage(const haul_error *error);
bool haul_error_is_interrupted(const haul_error *error);
/* A name for a status, such as "timeout"; never NULL. */
const char *haul_status_text(haul_status status);

/* ---- The rest ------------------------------------------------------------------------------------------------------ */

/* The version that is linked, such as "0.1.0". */
const char *haul_version(void);
/* The same as a number: major * 1,000,000 + minor * 1,000 + patch. */
uint32_t haul_version_number(void);
/* Frees what a function says to free so. */
void haul_free(void *memory);

#ifdef __cplusplus
}
#endif

#endif /* HAUL_H */
