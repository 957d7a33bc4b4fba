/*
 * haul.h: the C interface of haul, an HTTP client. Made by cbindgen from the Rust sources; do not edit it.
 *
 * Objects are made by ..._new and ended by ..._free, which takes NULL. What may fail returns a haul_status; where that is not
 * HAUL_STATUS_OK, haul_last_error says more. A function that returns an object returns NULL where it fails. Nothing has to be
 * set up first.
 *
 * Strings end with NUL or come with their length. They are UTF-8; header values and file names are any bytes. What would
 * change the meaning of a request (CR, LF or NUL in a header, a method that is no token) is refused with HAUL_STATUS_SETUP, a
 * bad URL with HAUL_STATUS_URL, and nothing is sent. NULL where something must be is HAUL_STATUS_SETUP.
 *
 * Threads: a client, a jar and an error may be used by any number of threads at once. A request, a response and a batch
 * belong to one thread at a time. haul_last_error is each thread's own. Callbacks run in the thread that called haul; they
 * may call haul, and come back by returning (no longjmp, no C++ exception).
 *
 * Fork: a child may go on with the clients and jars that it inherited. It neither uses nor disturbs its parent's connections:
 * it makes its own. A response that was being read, and a batch, belong to the parent.
 *
 * Signals: a system call that a signal ends is made again, unless haul_client_set_interrupt says otherwise. SIGPIPE is never
 * raised by haul.
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

/* What a haul_read_fn returns that has failed. */
#define HAUL_READ_ERROR SIZE_MAX

/* How a haul_call begins: haul_call call = HAUL_CALL_INIT; */
#ifdef __cplusplus
#define HAUL_CALL_INIT \
    [] { \
        haul_call call = haul_call(); \
        call.size = sizeof call; \
        call.read_length = call.max_redirects = -1; \
        return call; \
    }()
#else
#define HAUL_CALL_INIT { .size = sizeof(haul_call), .read_length = -1, .max_redirects = -1 }
#endif


// For haul_call's `flags`: ask for gzip and its like, and decode it, whatever the client says.
#define HAUL_CALL_DECODE 1

// For haul_call's `flags`: the path of the URL goes out as it is written, with its "." and "..".
#define HAUL_CALL_RAW_PATH 2

// For haul_call's `flags`: neither send nor take cookies.
#define HAUL_CALL_NO_JAR 4

// For haul_call's `flags`: the connection is closed after it, and the server is told so (Connection: close).
#define HAUL_CALL_CLOSE 8

// For haul_call's `flags`: the request is one of HTTP/1.0. A body of unknown length cannot be sent then.
#define HAUL_CALL_HTTP_1_0 16

// For haul_client_share: connections, names and TLS sessions.
#define HAUL_SHARE_POOL 1

// For haul_client_share: the jar.
#define HAUL_SHARE_JAR 2

// What became of a call: 0 or one of curl's exit numbers. New ones may come: treat an unknown one as a failure.
typedef enum {
  // It is done.
  HAUL_STATUS_OK = 0,
  // The URL's scheme, or that of a redirect, is neither http nor https; or the peer does not speak HTTP.
  HAUL_STATUS_UNSUPPORTED_SCHEME = 1,
  // An argument or a setting cannot be used.
  HAUL_STATUS_SETUP = 2,
  // The URL cannot be parsed.
  HAUL_STATUS_URL = 3,
  // A proxy's name has no address.
  HAUL_STATUS_PROXY_RESOLVE = 5,
  // The host's name has no address.
  HAUL_STATUS_RESOLVE = 6,
  // No address of the host took the connection, or a proxy opened no tunnel to it.
  HAUL_STATUS_CONNECT = 7,
  // The head of the reply breaks HTTP's rules.
  HAUL_STATUS_PROTOCOL = 8,
  // The peer broke the rules of HTTP/2.
  HAUL_STATUS_HTTP2 = 16,
  // The body ended too early.
  HAUL_STATUS_PARTIAL_BODY = 18,
  // The status was 400 or above, where that is a failure.
  HAUL_STATUS_HTTP_STATUS = 22,
  // A callback that takes the body refused.
  HAUL_STATUS_WRITE = 23,
  // The request's body has no known length, and HTTP/1.0 sends none without.
  HAUL_STATUS_UPLOAD = 25,
  // The request's body, or a file, could not be read.
  HAUL_STATUS_READ = 26,
  // A time limit ran out.
  HAUL_STATUS_TIMEOUT = 28,
  // The server does not do ranges rightly.
  HAUL_STATUS_RANGE = 33,
  // The TLS handshake failed.
  HAUL_STATUS_TLS_HANDSHAKE = 35,
  // The content changed while it was fetched.
  HAUL_STATUS_CHANGED = 36,
  // Connections cannot leave by that interface or address.
  HAUL_STATUS_INTERFACE = 45,
  // More redirects than allowed.
  HAUL_STATUS_TOO_MANY_REDIRECTS = 47,
  // The connection closed before the first line of a reply was complete.
  HAUL_STATUS_EMPTY_REPLY = 52,
  // The request could not be sent.
  HAUL_STATUS_SEND = 55,
  // The reply could not be received.
  HAUL_STATUS_RECEIVE = 56,
  // The client's certificate or its key cannot be used.
  HAUL_STATUS_CLIENT_CERTIFICATE = 58,
  // The server's certificate is not acceptable.
  HAUL_STATUS_PEER_CERTIFICATE = 60,
  // The content coding (gzip and its like) is broken or unknown.
  HAUL_STATUS_CONTENT_CODING = 61,
  // The body is larger than allowed.
  HAUL_STATUS_TOO_LARGE = 63,
  // The request's body would have to be sent again, and cannot.
  HAUL_STATUS_REWIND = 65,
  // The file of CA certificates cannot be used.
  HAUL_STATUS_CA_FILE = 77,
  // A reply of HTTP/2 was ended before its end.
  HAUL_STATUS_HTTP2_STREAM = 92,
  // The server wants what cannot be done to authenticate.
  HAUL_STATUS_AUTH = 94,
  // A SOCKS proxy refused.
  HAUL_STATUS_PROXY = 97,
  // A callback asked for the end.
  HAUL_STATUS_INTERRUPTED = 130,
  // A fault in haul itself.
  HAUL_STATUS_INTERNAL = 255,
} haul_status;

// How one shows who one is (RFC 9110 section 11).
typedef enum {
  // Not at all.
  HAUL_AUTH_NONE = 0,
  // User and password, at once (RFC 7617).
  HAUL_AUTH_BASIC = 1,
  // User and password, once the server asks for Digest (RFC 7616).
  HAUL_AUTH_DIGEST = 2,
  // User and password, by the best way that the server offers.
  HAUL_AUTH_ANY = 3,
  // A token, at once (RFC 6750).
  HAUL_AUTH_BEARER = 4,
} haul_auth;

//
// Which HTTP is spoken.
typedef enum {
  // HTTP/1.0. A body of unknown length cannot be sent then.
  HAUL_HTTP_1_0 = 10,
  // HTTP/1.1, the default.
  HAUL_HTTP_1_1 = 11,
  // HTTP/2 where the server agrees to it over TLS, else HTTP/1.1.
  HAUL_HTTP_2 = 20,
  // HTTP/2 without asking, also in the clear (RFC 9113 section 3.3).
  HAUL_HTTP_2_PRIOR = 21,
} haul_http;

// How a jar is written down.
typedef enum {
  // Netscape's file, as curl, wget and browsers have it.
  HAUL_JAR_FORMAT_NETSCAPE = 0,
  // The file of Perl's HTTP::Cookies (`Set-Cookie3` lines).
  HAUL_JAR_FORMAT_LWP = 1,
} haul_jar_format;

// In which order replies are given out.
typedef enum {
  // As the requests were added, the default.
  HAUL_ORDER_INPUT = 0,
  // As the replies are complete.
  HAUL_ORDER_COMPLETION = 1,
} haul_order;

// Many requests. It belongs to one thread at a time.
typedef struct haul_batch haul_batch;

// Settings, connections, a jar: what requests share.
typedef struct haul_client haul_client;

// Why something failed.
typedef struct haul_error haul_error;

// Cookies, for any number of clients and threads.
typedef struct haul_jar haul_jar;

// One request. It belongs to one thread at a time.
typedef struct haul_request haul_request;

// A reply. It belongs to one thread at a time.
typedef struct haul_response haul_response;

// Takes a finished request of a batch. `user` is what haul_batch_add got; `response` is yours to free, and has
// haul_response_error where the request failed. It may add requests. Not 0 stops haul_batch_run with
// HAUL_STATUS_INTERRUPTED; what is left can still be taken.
typedef int (*haul_done_fn)(void *context, void *user, haul_response *response);

// Bytes that belong to someone else; not ended by NUL.
typedef struct {
  // The first one; NULL where there are none to speak of.
  const char *data;
  // How many.
  size_t len;
} haul_slice;

// A header field.
typedef struct {
  // Its name.
  haul_slice name;
  // Its value, any bytes but CR, LF and NUL.
  haul_slice value;
} haul_header;

// Gives the next bytes of a request's body: at most `len` of them into `buffer`. 0 is the end, HAUL_READ_ERROR a failure.
typedef size_t (*haul_read_fn)(void *user, char *buffer, size_t len);

// Goes back to the first byte of a request's body, since it has to be sent again. Not 0: it cannot be done.
typedef int (*haul_rewind_fn)(void *user);

// The plain part of a reply. All pointers are into the haul_response that it came with, and hold until that is used for
// another call, or freed; that of `body` is into your memory where you gave some.
typedef struct {
  // The status code; 0 where no reply came.
  uint16_t status;
  // 10, 11 or 20: HTTP/1.0, 1.1, 2.
  uint16_t version;
  // How many redirects were followed.
  uint32_t redirects;
  // The reason phrase; empty in HTTP/2.
  haul_slice reason;
  // Where it came from in the end, without credentials and fragment.
  haul_slice url;
  // Its header fields in their order, with names as they were sent (in HTTP/2: in lower case).
  const haul_header *headers;
  // How many.
  size_t header_count;
  // The whole body; NULL where a haul_body_fn took it, or it is still to be read.
  const char *body;
  // How long it is, after decoding.
  size_t body_len;
  // Content-Encoding is among the headers, but haul has decoded the body.
  bool decoded;
} haul_reply;

// Is called with the head of the final reply before any of its body (`body` is NULL). The pointers hold during the call.
// Not 0 stops the request with HAUL_STATUS_WRITE.
typedef int (*haul_head_fn)(void *user, const haul_reply *head);

// Gives the memory for a body: the start of room for `size` bytes in all, which keeps what earlier calls for this body
// left in it (as realloc does). It may move. NULL stops the request with HAUL_STATUS_WRITE. It is asked once where the
// length is known and not above 4 MiB, else each time the body outgrows what there is.
typedef void *(*haul_reserve_fn)(void *user, size_t size);

// Takes a piece of a body. Not 0 stops the request with HAUL_STATUS_WRITE.
typedef int (*haul_body_fn)(void *user, const char *data, size_t len);

// Gives the fields that go behind a request's body, when all of that was read: an array of `count` of them, which stays until
// the next call or the end of the request. Not 0 stops the request with HAUL_STATUS_READ.
typedef int (*haul_trailers_fn)(void *user, const haul_header **trailers, size_t *count);

// All of a request, in plain memory that haul only reads during the call. Begin with HAUL_CALL_INIT.
typedef struct {
  // sizeof(haul_call): later versions may have more at the end.
  size_t size;
  // Empty: GET.
  haul_slice method;
  // Where to.
  haul_slice url;
  // Header fields besides those of the client; several of a name are all sent. They replace the client's and haul's own of
  // the same name. One whose value has `data` NULL only takes those away.
  const haul_header *headers;
  // How many.
  size_t header_count;
  // The body; `data` NULL: none (`len` 0 with other `data`: an empty one). Up to 64 KiB leave in one send with the head.
  haul_slice body;
  // Not NULL: the body comes from this function instead.
  haul_read_fn read;
  // May be NULL: then the body cannot be sent again.
  haul_rewind_fn rewind;
  // For `read` and `rewind`.
  void *read_user;
  // How much `read` gives; -1 where that is not known: it goes by chunks.
  int64_t read_length;
  // Shown the head before the body; may be NULL.
  haul_head_fn on_head;
  // Where the body goes: into your memory,
  haul_reserve_fn reserve;
  // or piece by piece to this function. Both NULL: into haul's memory, which `response` keeps.
  haul_body_fn on_body;
  // For `on_head`, `reserve` and `on_body`.
  void *user;
  // How long it may take in all, in milliseconds; 0: what the client says.
  uint64_t timeout_ms;
  // The largest body in bytes; 0: what the client says.
  uint64_t max_size;
  // How many redirects are followed; -1: what the client says; 0: none.
  int32_t max_redirects;
  // HAUL_CALL_DECODE and its like.
  uint32_t flags;
  // Fields behind the body (RFC 9110 section 6.5); it goes by chunks then, and `read_length` is not looked at. May be NULL.
  haul_trailers_fn trailers;
  // For `trailers`.
  void *trailers_user;
} haul_call;

// A cookie.
typedef struct {
  // Its name.
  haul_slice name;
  // Its value, as it is sent.
  haul_slice value;
  // The host, or the domain whose hosts get it; without a leading dot.
  haul_slice domain;
  // The path at and below which it is sent.
  haul_slice path;
  // When it ends, in seconds since 1970; 0: with the session.
  int64_t expires;
  // For that host only, not for those below it.
  bool host_only;
  // For TLS only.
  bool secure;
  // Not for scripts in pages.
  bool http_only;
} haul_cookie;

// Looks at a cookie. The pointers hold during the call, in which the jar may be used. Not 0 ends the walk.
typedef int (*haul_cookie_fn)(void *user, const haul_cookie *cookie);

// Times in nanoseconds since the request began; 0 where there was no such step (none connects on a warm connection).
typedef struct {
  // The name had an address.
  uint64_t resolved;
  // The connection stood.
  uint64_t connected;
  // TLS was set up.
  uint64_t secured;
  // The last request was put on its way.
  uint64_t sent;
  // The first byte of the last reply came.
  uint64_t first_byte;
  // It was over.
  uint64_t total;
} haul_times;

// Asked while something is waited for. Not 0 ends the wait with HAUL_STATUS_INTERRUPTED.
typedef int (*haul_interrupt_fn)(void *user);

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// Many requests over this client's connections, with the settings that it has now.
haul_batch *haul_batch_new(haul_client *client);

// Ends a batch. What is under way is broken off.
void haul_batch_free(haul_batch *batch);

// How many requests are under way at once, in all (default 64) and to one host (default 6); 0: the default. Before the
// first request is added, as all settings of a batch.
haul_status haul_batch_set_parallel(haul_batch *batch, size_t all, size_t per_host);

// In which order replies are given out; `order` is a haul_order.
haul_status haul_batch_set_order(haul_batch *batch, int order);

// How many bytes bodies may hold, those under way and those that wait to be taken, before no more is read; one body more
// may come besides. Default 64 MiB.
haul_status haul_batch_set_memory(haul_batch *batch,
                                  size_t bytes);

// Adds a request; never waits. It is copied: change it or free it when you like. It begins at once where there is room.
haul_status haul_batch_add(haul_batch *batch, const haul_request *request, void *user);

// Takes the next finished request, waiting at most `timeout_ms` for it (-1: without limit; 0: not at all). `response` gets
// it, to be freed, with haul_response_error where it failed; NULL where none finished in time, or all were taken. `user`
// (may be NULL) gets what haul_batch_add got.
haul_status haul_batch_next(haul_batch *batch,
                            int64_t timeout_ms,
                            haul_response **response,
                            void **user);

// Waits for all, and calls `done` for each, in this thread.
haul_status haul_batch_run(haul_batch *batch, haul_done_fn done, void *context);

// How many requests were added and not taken yet.
size_t haul_batch_pending(const haul_batch *batch);

// A descriptor that can be read as long as haul_batch_next has something: for poll, epoll and event loops. It is not to be
// read from, and belongs to the batch. -1 where the system has none left.
int haul_batch_fd(const haul_batch *batch);

// Sends the request and waits for all of its reply. `response` keeps it; `reply` (may be NULL) gets its plain part, also
// where the call fails after a head has come. No thread is started; on a warm connection a small request is three system
// calls. Callbacks may make other calls with this client, but not with this response.
haul_status haul_client_call(haul_client *client,
                             const haul_call *call,
                             haul_response *response,
                             haul_reply *reply);

// Sends a request and waits for all of its reply. `response` gets a new one, to be freed; it is NULL where the call fails.
haul_status haul_client_perform(haul_client *client,
                                const haul_request *request,
                                haul_response **response);

// A client with default settings, no jar and no connection. It costs nothing before its first request.
haul_client *haul_client_new(void);

// Another client with the settings that this one has now, sharing its connections and its jar.
haul_client *haul_client_clone(const haul_client *client);

// Ends a client. Its connections close with the last client that shares them; responses and batches stay.
void haul_client_free(haul_client *client);

// From now on `client` uses those of `with`. `what` is HAUL_SHARE_POOL, HAUL_SHARE_JAR or both. A connection is used only
// by a client whose settings it fits (certificates, proxies, interface).
haul_status haul_client_share(haul_client *client,
                              const haul_client *with,
                              uint32_t what);

// How many idle connections are kept in all, how many to one server, and for how long. 0: the default of each, 256, as many
// as there may be, and 118,000 ms. The client gets a pool of its own by it, which is empty: clients that share one share
// its limits.
haul_status haul_client_set_pool(haul_client *client,
                                 size_t max_idle,
                                 size_t max_idle_per_server,
                                 uint64_t max_idle_ms);

// Closes the idle connections.
void haul_client_close_idle(haul_client *client);

// Whether a request to `url` would find an idle connection that is open and silent now. `false` for what is no URL. Another
// thread may take it meanwhile, and its server close it.
bool haul_client_is_warm(const haul_client *client,
                         const char *url);

// Connections opened, requests sent and body bytes received so far by all clients that share the connections. Any pointer
// may be NULL.
void haul_client_stats(const haul_client *client,
                       uint64_t *connections,
                       uint64_t *requests,
                       uint64_t *bytes);

// Which HTTP is spoken; `version` is a haul_http.
haul_status haul_client_set_http(haul_client *client, int version);

// Checks the certificates of servers. Default on. Without, anyone on the way can read and change everything.
haul_status haul_client_set_verify(haul_client *client, bool on);

// A PEM file of the certificates to trust in place of the system's; NULL: the system's.
haul_status haul_client_set_ca_file(haul_client *client, const char *ca_file);

// The same as a directory of PEM files that are named by their subjects' hashes.
haul_status haul_client_set_ca_path(haul_client *client, const char *ca_path);

// The certificate to show, and its key, PEM; `key` NULL: it is in the same file. `certificate` NULL: none is shown.
haul_status haul_client_set_client_certificate(haul_client *client, const char *certificate, const char *key);

// The proxy for everything, such as "http://user:password@host:3128" or "socks5h://host"; NULL or "": none. It replaces
// what haul_client_set_proxy_from_environment and haul_client_set_scheme_proxies said.
haul_status haul_client_set_proxy(haul_client *client, const char *url);

// The proxies for http and for https; NULL or "": none for that scheme. They replace what haul_client_set_proxy and
// haul_client_set_proxy_from_environment said.
haul_status haul_client_set_scheme_proxies(haul_client *client, const char *http, const char *https);

// Hosts that are reached directly, a list as in NO_PROXY ("localhost, .example.com, 10.0.0.0/8", "*"); NULL: none but
// what the environment says, where it is used.
haul_status haul_client_set_no_proxy(haul_client *client, const char *list);

// Takes the proxies from http_proxy, https_proxy, all_proxy and no_proxy as they are now (http_proxy in lower case only).
// Default: the environment is not looked at.
haul_status haul_client_set_proxy_from_environment(haul_client *client);

// Leaves from this address, interface or host name; NULL: as the system has it.
haul_status haul_client_set_interface(haul_client *client, const char *name);

// Speaks through this Unix socket, whatever host a URL names; NULL: not.
haul_status haul_client_set_unix_socket(haul_client *client, const char *socket);

// Connections to `host` and `port` go to `to_host` and `to_port` instead, while the request and TLS stay as they are. NULL
// and 0: any, or the same. Each call adds one; the first that fits counts. `host`, `to_host` NULL and both ports 0: forgets
// all.
haul_status haul_client_set_connect_to(haul_client *client,
                                       const char *host,
                                       uint16_t port,
                                       const char *to_host,
                                       uint16_t to_port);

// The body: a copy of these bytes. NULL and 0: an empty one.
haul_status haul_request_set_body(haul_request *request, const void *data, size_t len);

// The body: these bytes themselves. They must stay as they are until the request is freed or gets another body, and after
// haul_client_open until its response is read to the end or freed: a server may answer before it has all of them. A batch takes
// a copy.
haul_status haul_request_set_body_borrowed(haul_request *request, const void *data, size_t len);

// The body: a file's content, opened when it is sent, as long as it is now. HAUL_STATUS_READ where it cannot be read.
haul_status haul_request_set_body_file(haul_request *request, const char *path);

// The body: what `read` gives, `length` bytes of it; -1 where that is not known, then it goes by chunks. `rewind` is called
// where it has to be sent again (a redirect, a retry, an answer to a challenge, the same request once more); without one
// (NULL) that fails with HAUL_STATUS_REWIND. After haul_client_open it may be called, with `user`, until the response is read to
// the end or freed. Not for a batch.
haul_status haul_request_set_body_callback(haul_request *request,
                                           haul_read_fn read,
                                           haul_rewind_fn rewind,
                                           void *user,
                                           int64_t length);

// Adds a name and a value to a form (application/x-www-form-urlencoded), which replaces any other body. They are encoded
// here.
haul_status haul_request_add_form_field(haul_request *request,
                                        const char *name,
                                        size_t name_len,
                                        const char *value,
                                        size_t value_len);

// Adds a part to a form with parts (multipart/form-data), which replaces any other body. The bytes are copied. `filename`
// and `content_type` may be NULL; with a file name and no type, the type is guessed by the name.
haul_status haul_request_add_part(haul_request *request,
                                  const char *name,
                                  const void *data,
                                  size_t len,
                                  const char *filename,
                                  const char *content_type);

// The same with a file's content, opened when it is sent. `filename` NULL: the file's own name. HAUL_STATUS_READ where it
// cannot be read.
haul_status haul_request_add_part_file(haul_request *request,
                                       const char *name,
                                       const char *path,
                                       const char *filename,
                                       const char *content_type);

// Why the last call in this thread that failed did. It holds until another call in this thread fails; NULL before the first.
const haul_error *haul_last_error(void);

// A copy to keep; NULL of NULL.
haul_error *haul_error_clone(const haul_error *error);

// Ends a copy.
void haul_error_free(haul_error *error);

// The number; of NULL it is HAUL_STATUS_OK.
haul_status haul_error_code(const haul_error *error);

// "URL: what happened: why", ended by NUL; of NULL it is "". It never holds credentials.
const char *haul_error_text(const haul_error *error);

// The URL it was for, or NULL.
const char *haul_error_url(const haul_error *error);

// The errno below it, or 0.
int haul_error_errno(const haul_error *error);

// A time limit ran out.
bool haul_error_is_timeout(const haul_error *error);

// No connection could be made (name, address, proxy or TLS), or not in time, and nothing of the request was sent:
// whatever its method, it may be repeated.
bool haul_error_is_connect(const haul_error *error);

// A name, the host's or a proxy's, has no address.
bool haul_error_is_resolve(const haul_error *error);

// TLS failed: the handshake, a certificate of either side, or the file of those to trust.
bool haul_error_is_tls(const haul_error *error);

// The call was wrong: an argument, a setting, a URL.
bool haul_error_is_usage(const haul_error *error);

// A callback asked for the end.
bool haul_error_is_interrupted(const haul_error *error);

// What a haul_status means, in a few words; "unknown" where it is none. Never NULL.
const char *haul_status_text(int status);

// An empty jar.
haul_jar *haul_jar_new(void);

// Another handle of the same jar.
haul_jar *haul_jar_clone(const haul_jar *jar);

// Ends a handle. The jar itself goes with the last of its handles and clients.
void haul_jar_free(haul_jar *jar);

// Adds what a file of cookies holds, Netscape's (curl, wget, browsers) or that of Perl's HTTP::Cookies. A file that is not
// there is an empty one. `refused` (may be NULL) gets the number of lines that are no acceptable cookies.
haul_status haul_jar_load(haul_jar *jar,
                          const char *path,
                          size_t *refused);

// Writes what was set and removed since haul_jar_load or the last save into a Netscape file, mode 0600, in one step. What
// other programs put there meanwhile stays.
haul_status haul_jar_save(const haul_jar *jar,
                          const char *path);

// All cookies as a text. `format` is a haul_jar_format. Free `text` with haul_free; `len` (may be NULL) gets its length.
haul_status haul_jar_to_text(const haul_jar *jar,
                             int format,
                             char **text,
                             size_t *len);

// Adds the cookies of a text, in either format. `refused` (may be NULL) gets the number of lines that are none.
haul_status haul_jar_add_text(haul_jar *jar, const char *text, size_t len, size_t *refused);

// What a request to `url` sends as Cookie. Free `cookie` with haul_free; it is NULL where there is none.
haul_status haul_jar_cookie_header(const haul_jar *jar, const char *url, char **cookie);

// Takes the value of a Set-Cookie header of a reply from `url`. HAUL_STATUS_SETUP where the rules refuse it (RFC 6265bis).
haul_status haul_jar_set(haul_jar *jar,
                         const char *url,
                         const char *set_cookie);

// Puts a cookie in as it is, in place of the one of that name, domain and path. HAUL_STATUS_SETUP where it is none.
haul_status haul_jar_put(haul_jar *jar, const haul_cookie *cookie);

// Removes the cookies of this domain, path and name; NULL is any. None found is no failure.
haul_status haul_jar_remove(haul_jar *jar, const char *domain, const char *path, const char *name);

// Removes all cookies.
void haul_jar_clear(haul_jar *jar);

// Removes the cookies that end with the session.
void haul_jar_clear_session(haul_jar *jar);

// How many cookies there are that have not ended.
size_t haul_jar_count(const haul_jar *jar);

// Calls `look` for every cookie that has not ended, the oldest first.
haul_status haul_jar_each(const haul_jar *jar, haul_cookie_fn look, void *user);

// A request for `url`. `method` NULL is GET; it is sent as it is written.
haul_request *haul_request_new(const char *method, const char *url);

// The same, with the path as it is written: dot segments are not removed (RFC 3986 section 5.2.4).
haul_request *haul_request_new_raw(const char *method, const char *url);

// A copy, with its own settings and body.
haul_request *haul_request_clone(const haul_request *request);

// Ends a request.
void haul_request_free(haul_request *request);

// Sets a header in place of all of that name, its own, the client's and haul's. A NULL value takes it away.
haul_status haul_request_set_header(haul_request *request, const char *name, const char *value);

// Adds a header to those of that name that were set here. The first one replaces the client's and haul's own.
haul_status haul_request_add_header(haul_request *request, const char *name, const char *value);

// How long it may take in all, in milliseconds; 0: what the client says.
haul_status haul_request_set_timeout(haul_request *request, uint64_t ms);

// How many redirects are followed; 0: none.
haul_status haul_request_set_max_redirects(haul_request *request, uint32_t max);

// The largest body in bytes; 0: no limit.
haul_status haul_request_set_max_size(haul_request *request, uint64_t bytes);

// In whose name, as haul_client_set_auth.
haul_status haul_request_set_auth(haul_request *request, int kind, const char *user, const char *secret);

// Where the reply goes, as in haul_call. Each may be NULL; at most one of `reserve` and `on_body`. A batch, which keeps
// bodies itself, does not look at it.
haul_status haul_request_set_output(haul_request *request,
                                    haul_head_fn on_head,
                                    haul_reserve_fn reserve,
                                    haul_body_fn on_body,
                                    void *user);

// A place for replies. Use one again and again: its memory is kept.
haul_response *haul_response_new(void);

// Ends a response. One whose body was not read to its end closes its connection.
void haul_response_free(haul_response *response);

// The plain part, into `reply`. What is not there is empty.
haul_status haul_response_reply(const haul_response *response, haul_reply *reply);

// The status code; 0 where no reply came.
uint16_t haul_response_status(const haul_response *response);

// The version's text, such as "HTTP/1.1"; "" where no reply came.
const char *haul_response_version(const haul_response *response);

// The reason phrase; empty in HTTP/2. It is free text from the server.
haul_slice haul_response_reason(const haul_response *response);

// Where it came from in the end, without credentials and fragment.
haul_slice haul_response_url(const haul_response *response);

// How many header fields there are.
size_t haul_response_header_count(const haul_response *response);

// The name of a header field; `data` is NULL past the last one.
haul_slice haul_response_header_name(const haul_response *response, size_t index);

// The value of a header field; `data` is NULL past the last one.
haul_slice haul_response_header_value(const haul_response *response, size_t index);

// The value of the first field of that name, in any case of letters; `data` is NULL where there is none.
haul_slice haul_response_header(const haul_response *response, const char *name);

// How many fields the trailer section has (RFC 9110 section 6.5): known when the body has been read to its end.
size_t haul_response_trailer_count(const haul_response *response);

// A field of the trailer section, into `trailer`. HAUL_STATUS_SETUP past the last one.
haul_status haul_response_trailer(const haul_response *response, size_t index, haul_header *trailer);

// The whole body; `data` is NULL where a haul_body_fn took it, or it is still to be read.
haul_slice haul_response_body(const haul_response *response);

// The address that the reply came from, such as "127.0.0.1"; NULL where it is not known. `port` (may be NULL) gets its port.
const char *haul_response_peer(const haul_response *response,
                               uint16_t *port);

// When what happened.
haul_times haul_response_times(const haul_response *response);

// How many redirects were followed to get here.
size_t haul_response_redirect_count(const haul_response *response);

// A reply that redirected, from the first on, into `reply`: its status, version, reason, URL and headers; it has no body.
// HAUL_STATUS_SETUP past the last one.
haul_status haul_response_redirect(const haul_response *response,
                                   size_t index,
                                   haul_reply *reply);

// Why the request failed; NULL where it did not. It belongs to the response.
const haul_error *haul_response_error(const haul_response *response);

// Sets the jar. The client takes a reference: free your own when you like. NULL: no cookies are kept, the default.
haul_status haul_client_set_jar(haul_client *client, haul_jar *jar);

// What User-Agent says; NULL sends none. Default "haul/VERSION".
haul_status haul_client_set_user_agent(haul_client *client, const char *user_agent);

// Sets a header of every request, in place of any of that name. A NULL value takes it away, also one that haul would send
// by itself (Accept).
haul_status haul_client_set_header(haul_client *client,
                                   const char *name,
                                   const char *value);

// How long each request may take in all, in milliseconds; a retry begins anew. 0: no limit, the default.
haul_status haul_client_set_timeout(haul_client *client, uint64_t ms);

// How long it may take to make a connection, in milliseconds. 0: the default, 300,000.
haul_status haul_client_set_connect_timeout(haul_client *client, uint64_t ms);

// How long the server may be silent while a reply is waited for or read, in milliseconds. 0: no limit, the default.
haul_status haul_client_set_idle_timeout(haul_client *client, uint64_t ms);

// How many redirects are followed; 0: none, the reply that redirects is the reply. Default 20.
haul_status haul_client_set_max_redirects(haul_client *client, uint32_t max);

// How often a transient failure is tried again (a broken connection, a time limit, a status of 408, 429, 500, 502, 503, 504,
// 522 or 524), with growing pauses. Only methods that may be repeated are. Default 0. A connection that was closed while it
// was idle is replaced once in any case.
haul_status haul_client_set_retries(haul_client *client,
                                    uint32_t max);

// The largest body in bytes, as announced, received or decoded; above it HAUL_STATUS_TOO_LARGE. 0: no limit, the default.
haul_status haul_client_set_max_size(haul_client *client,
                                     uint64_t bytes);

// Asks for gzip, br, zstd and deflate and decodes them. Default off: bodies are as they were sent. Where a Range
// header asks for a part, none is asked for; a part of coded content (206), and content of a coding that haul does
// not know, come as they were sent (haul_reply's `decoded` says which).
haul_status haul_client_set_decode(haul_client *client, bool on);

// What decoding may cost. `max_bytes`: the most that one body may decode to, in bytes; 0: no limit, the default
// (haul_client_set_max_size sets it, too: the later call holds). `max_ratio`: how many bytes may come of each byte
// received, once more than 8 MiB did; 0: any number. Default 750: logs of one line over and over come to 520, bombs to 1,000.
// Above either it is HAUL_STATUS_TOO_LARGE.
haul_status haul_client_set_decode_limits(haul_client *client,
                                          uint64_t max_bytes,
                                          uint64_t max_ratio);

// How long a server is waited for that is asked whether it wants a body of more than 1 MiB or of unknown length
// (Expect: 100-continue), in milliseconds; 0: it is never asked. Default 1,000.
haul_status haul_client_set_expect_timeout(haul_client *client, uint64_t ms);

// Sends paths as they are written: dot segments are not removed from the URLs of calls (RFC 3986 section 5.2.4). Default off.
// For a request that is made apart there is haul_request_new_raw.
haul_status haul_client_set_raw_path(haul_client *client,
                                     bool on);

// Takes what does not begin with `HTTP/` for the body of a reply without a head (HTTP/0.9): status 200, version 10, no headers.
// Default off, for any server of any protocol seems to answer then.
haul_status haul_client_set_headless(haul_client *client,
                                     bool on);

// Keeps connections for later requests. Default on; off, each is told to be closed (Connection: close).
haul_status haul_client_set_keep_alive(haul_client *client, bool on);

// Which kinds of address may be used: 4, 6, or 0 for both, the default.
haul_status haul_client_set_ip_version(haul_client *client, int version);

// In whose name. `kind` is a haul_auth; HAUL_AUTH_BEARER takes the token in `secret`. It is sent to the origin of the
// request's URL only, not to where that redirects. A user in the URL goes before it.
haul_status haul_client_set_auth(haul_client *client, int kind, const char *user, const char *secret);

// Whom to ask, while something is waited for, whether to go on: whenever a signal ends a system call, and every
// 50 ms or so. A signal handler that sets a flag, and a callback here that looks at it, end any wait (alarm, Ctrl-C). It is
// called in the thread that waits. NULL: nobody, the default.
haul_status haul_client_set_interrupt(haul_client *client, haul_interrupt_fn ask, void *user);

// Sends it and waits for the head only: the body is for haul_response_read. `response` gets a new one, to be freed; NULL
// where the call fails. What haul_request_set_output said is not looked at. What the request sends may go on while the body is
// read: borrowed bytes and the `user` of a callback have to stay until then, the request need not.
haul_status haul_client_open(haul_client *client,
                             const haul_request *request,
                             haul_response **response);

// Reads up to `len` bytes of the body of a response of haul_client_open into `buffer`; `got` gets how many, 0 at the end.
// Read to its end, the connection is left to other requests; a response that is freed before closes it.
haul_status haul_response_read(haul_response *response,
                               void *buffer,
                               size_t len,
                               size_t *got);

// Fields behind the body (RFC 9110 section 6.5); it goes by chunks then, whatever its length. `give` NULL: none. Not for a
// batch.
haul_status haul_request_set_trailers(haul_request *request,
                                      haul_trailers_fn give,
                                      void *user);

// What `reference` means in a document of `base` (RFC 3986 section 5), such as a Location header in a reply from there.
// `url` gets it, without credentials and fragment; free it with haul_free.
haul_status haul_url_join(const char *base, const char *reference, char **url);

// 1 if a request field of this name carries a secret (Authorization, Cookie, X-Api-Key and their like, in any case), 0 else: haul's own
// redirects take it to the origin that it was given for alone.
int haul_field_is_secret(const char *name);

// The version that is linked, such as "0.1.0"; HAUL_VERSION is the one that was compiled against.
const char *haul_version(void);

// The same as a number: major * 1,000,000 + minor * 1,000 + patch.
uint32_t haul_version_number(void);

// Frees a text that a function says to free so; NULL is nothing.
void haul_free(void *memory);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* HAUL_H */
