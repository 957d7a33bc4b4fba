/* Calls, streams, uploads, interrupts and forks, against the embedded origin: calls BASE-URL. */
#include "check.h"
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static haul_client *client;
static const char *base;

struct memory {
    char *start;
    size_t size;
    int asked;
};

static void *reserve(void *user, size_t size) {
    struct memory *memory = user;
    memory->asked++;
    memory->start = realloc(memory->start, size);
    memory->size = size;
    return memory->start;
}

static void *reserve_none(void *user, size_t size) {
    (void)user, (void)size;
    return NULL;
}

static int count_body(void *user, const char *data, size_t len) {
    CHECK(data != NULL && len > 0);
    *(size_t *)user += len;
    return 0;
}

static int refuse_body(void *user, const char *data, size_t len) {
    (void)user, (void)data, (void)len;
    return 1;
}

static int see_head(void *user, const haul_reply *head) {
    CHECK(head->status == 200 && head->header_count > 0 && head->body == NULL && head->redirects == 2);
    *(size_t *)user = 1000000;
    /* A callback may make another call with the same client. */
    haul_response *place = haul_response_new();
    haul_call call = HAUL_CALL_INIT;
    call.url = slice(under(base, "/small/8"));
    haul_reply reply;
    CHECK(haul_client_call(client, &call, place, &reply) == HAUL_STATUS_OK);
    haul_slice body = {reply.body, reply.body_len};
    CHECK(is(body, "small 8\n"));
    haul_response_free(place);
    return 0;
}

static int refuse_head(void *user, const haul_reply *head) {
    (void)user;
    return head->status != 0;
}

static void plain_calls(void) {
    haul_response *place = haul_response_new();
    haul_reply reply;
    haul_call call = HAUL_CALL_INIT;
    call.url = slice(under(base, "/small/7#part"));
    CHECK(haul_client_call(client, &call, place, &reply) == HAUL_STATUS_OK);
    haul_slice body = {reply.body, reply.body_len};
    CHECK(reply.status == 200 && reply.version == 11 && is(reply.reason, "OK") && is(body, "small 7\n"));
    CHECK(is(reply.url, under(base, "/small/7")) && reply.redirects == 0 && !reply.decoded);
    CHECK(is(haul_response_header(place, "CONTENT-length"), "8"));
    CHECK(haul_response_header(place, "x-none").data == NULL);
    CHECK(haul_response_header_count(place) == reply.header_count);
    CHECK(haul_response_header_name(place, 0).data == reply.headers[0].name.data);
    CHECK(haul_response_header_name(place, 999).data == NULL && haul_response_header_value(place, 999).data == NULL);
    uint16_t port = 0;
    CHECK(strcmp(haul_response_peer(place, &port), "127.0.0.1") == 0 && port > 0);
    haul_times times = haul_response_times(place);
    CHECK(times.total >= times.first_byte && times.first_byte >= times.sent && times.total > 0);
    CHECK(strcmp(haul_response_version(place), "HTTP/1.1") == 0 && haul_response_error(place) == NULL);

    /* The same response object again, with headers: several of a name, one that replaces haul's, one that is only removed. */
    haul_header headers[] = {{slice("X-Many"), slice("1")}, {slice("X-Many"), slice("2")},
                             {slice("user-agent"), slice("other")}, {slice("Accept"), {NULL, 0}}};
    call.url = slice(under(base, "/echo"));
    call.method = slice("DELETE");
    call.headers = headers;
    call.header_count = 4;
    CHECK(haul_client_call(client, &call, place, &reply) == HAUL_STATUS_OK);
    body.data = reply.body, body.len = reply.body_len;
    CHECK(contains(body, "\"DELETE\"") && contains(body, "[\"x-many\",\"1\"],[\"x-many\",\"2\"]"));
    CHECK(contains(body, "[\"user-agent\",\"other\"]") && !contains(body, "haul/") && !contains(body, "\"accept\""));
    CHECK(contains(body, "\"body_len\":0") && !contains(body, "content-length"));

    /* A body: small, empty, large. */
    call.header_count = 0;
    call.method = slice("POST");
    call.body = slice("a=1&b=2");
    CHECK(haul_client_call(client, &call, place, &reply) == HAUL_STATUS_OK);
    body.data = reply.body, body.len = reply.body_len;
    CHECK(contains(body, "\"body\":\"a=1&b=2\"") && contains(body, "[\"content-length\",\"7\"]"));
    call.body.len = 0;
    CHECK(haul_client_call(client, &call, place, &reply) == HAUL_STATUS_OK);
    body.data = reply.body, body.len = reply.body_len;
    CHECK(contains(body, "[\"content-length\",\"0\"]"));
    size_t large = 300000;
    char *bytes = malloc(large);
    memset(bytes, 'x', large);
    call.body.data = bytes, call.body.len = large;
    CHECK(haul_client_call(client, &call, place, &reply) == HAUL_STATUS_OK);
    body.data = reply.body, body.len = reply.body_len;
    CHECK(contains(body, "\"body_len\":300000"));
    free(bytes);
    haul_response_free(place);
}

static void outputs(void) {
    haul_response *place = haul_response_new();
    haul_reply reply;
    haul_call call = HAUL_CALL_INIT;

    /* Body in the caller's memory: one reservation if the length is known, else it grows. */
    struct memory memory = {0};
    call.reserve = reserve, call.user = &memory;
    call.url = slice(under(base, "/bytes/335114"));
    CHECK(haul_client_call(client, &call, place, &reply) == HAUL_STATUS_OK);
    CHECK(reply.body == memory.start && reply.body_len == 335114 && memory.size == 335114 && memory.asked == 1);
    char *known = malloc(335114);
    memcpy(known, memory.start, 335114);
    memory.asked = 0;
    call.url = slice(under(base, "/chunked/335114"));
    CHECK(haul_client_call(client, &call, place, &reply) == HAUL_STATUS_OK);
    CHECK(reply.body_len == 335114 && memcmp(reply.body, known, 335114) == 0 && memory.asked < 12);
    free(known);
    free(memory.start);
    memset(&memory, 0, sizeof memory);
    call.url = slice(under(base, "/status/204"));
    CHECK(haul_client_call(client, &call, place, &reply) == HAUL_STATUS_OK);
    CHECK(reply.status == 204 && reply.body == NULL && reply.body_len == 0 && memory.asked == 0);
    call.url = slice(under(base, "/small"));
    call.reserve = reserve_none;
    CHECK(haul_client_call(client, &call, place, &reply) == HAUL_STATUS_WRITE && reply.status == 200);

    /* Body by pieces, after the head. */
    size_t seen = 0;
    call.reserve = NULL, call.on_body = count_body, call.on_head = see_head, call.user = &seen;
    call.url = slice(under(base, "/chain/2"));
    CHECK(haul_client_call(client, &call, place, &reply) == HAUL_STATUS_OK);
    CHECK(seen == 1000000 + strlen("end of chain\n") && reply.body == NULL && reply.body_len == seen - 1000000);
    CHECK(reply.redirects == 2 && haul_response_redirect_count(place) == 2);
    haul_reply hop;
    CHECK(haul_response_redirect(place, 0, &hop) == HAUL_STATUS_OK && hop.status == 302 && hop.header_count > 0);
    CHECK(is(hop.url, under(base, "/chain/2")));
    CHECK(haul_response_redirect(place, 2, &hop) == HAUL_STATUS_SETUP);
    /* A body larger than the read buffer; none of the caller's memory is received into. */
    seen = 0, call.on_head = NULL;
    call.url = slice(under(base, "/bytes/1000000"));
    CHECK(haul_client_call(client, &call, place, &reply) == HAUL_STATUS_OK && seen == 1000000 && reply.body_len == seen);
    call.on_head = NULL, call.on_body = refuse_body;
    CHECK(haul_client_call(client, &call, place, &reply) == HAUL_STATUS_WRITE);
    call.on_head = refuse_head, call.on_body = count_body;
    CHECK(haul_client_call(client, &call, place, &reply) == HAUL_STATUS_WRITE);
    CHECK(haul_error_url(haul_last_error()) != NULL);
    call.reserve = reserve;
    CHECK(haul_client_call(client, &call, place, &reply) == HAUL_STATUS_SETUP);

    /* Limits of one call, and redirects that are not followed. */
    haul_call plain = HAUL_CALL_INIT;
    plain.url = slice(under(base, "/chain/2"));
    plain.max_redirects = 0;
    CHECK(haul_client_call(client, &plain, place, &reply) == HAUL_STATUS_OK && reply.status == 302);
    plain.max_redirects = 1;
    CHECK(haul_client_call(client, &plain, place, &reply) == HAUL_STATUS_TOO_MANY_REDIRECTS);
    plain.max_redirects = -1;
    plain.url = slice(under(base, "/bytes/1000"));
    plain.max_size = 999;
    CHECK(haul_client_call(client, &plain, place, &reply) == HAUL_STATUS_TOO_LARGE);
    plain.max_size = 1000;
    CHECK(haul_client_call(client, &plain, place, &reply) == HAUL_STATUS_OK && reply.body_len == 1000);
    plain.max_size = 0, plain.timeout_ms = 50;
    plain.url = slice(under(base, "/delay/60000/small"));
    CHECK(haul_client_call(client, &plain, place, &reply) == HAUL_STATUS_TIMEOUT);
    CHECK(haul_error_is_timeout(haul_last_error()) && strstr(haul_error_url(haul_last_error()), "/delay/") != NULL);

    /* Coded content. */
    plain.timeout_ms = 0, plain.flags = HAUL_CALL_DECODE;
    plain.url = slice(under(base, "/gzip/5000"));
    CHECK(haul_client_call(client, &plain, place, &reply) == HAUL_STATUS_OK && reply.decoded);
    CHECK(reply.body_len == 5000 && is(haul_response_header(place, "content-encoding"), "gzip"));
    plain.flags = 0;
    CHECK(haul_client_call(client, &plain, place, &reply) == HAUL_STATUS_OK && !reply.decoded && reply.body_len < 5000);
    plain.flags = 1u << 31;
    CHECK(haul_client_call(client, &plain, place, &reply) == HAUL_STATUS_SETUP);

    /* Trailers. */
    haul_header te = {slice("TE"), slice("trailers")};
    plain.flags = 0, plain.headers = &te, plain.header_count = 1;
    plain.url = slice(under(base, "/chunked/10?trailer=1"));
    CHECK(haul_client_call(client, &plain, place, &reply) == HAUL_STATUS_OK);
    haul_header trailer;
    CHECK(haul_response_trailer_count(place) == 1);
    CHECK(haul_response_trailer(place, 0, &trailer) == HAUL_STATUS_OK && is(trailer.value, "10"));
    CHECK(haul_response_trailer(place, 1, &trailer) == HAUL_STATUS_SETUP);
    haul_response_free(place);
}

struct source {
    const char *text;
    size_t at;
    int rewound;
};

static size_t give(void *user, char *buffer, size_t len) {
    struct source *source = user;
    size_t rest = strlen(source->text) - source->at;
    size_t n = rest < 3 ? rest : 3;
    if (n > len)
        n = len;
    memcpy(buffer, source->text + source->at, n);
    source->at += n;
    return n;
}

static size_t give_nothing(void *user, char *buffer, size_t len) {
    (void)user, (void)buffer, (void)len;
    return HAUL_READ_ERROR;
}

static int rewind_source(void *user) {
    struct source *source = user;
    source->at = 0;
    source->rewound++;
    return 0;
}

static haul_slice perform(haul_request *request, haul_response **response) {
    CHECK(request != NULL);
    CHECK(haul_client_perform(client, request, response) == HAUL_STATUS_OK);
    return haul_response_body(*response);
}

static void uploads(void) {
    haul_response *response;
    haul_slice body;
    char to[1200];
    struct source source = {"0123456789", 0, 0};
    haul_request *request = haul_request_new("PUT", under(base, "/echo"));

    CHECK(haul_request_set_body_callback(request, give, rewind_source, &source, -1) == HAUL_STATUS_OK);
    body = perform(request, &response);
    CHECK(contains(body, "\"body\":\"0123456789\"") && contains(body, "[\"transfer-encoding\",\"chunked\"]"));
    haul_response_free(response);
    body = perform(request, &response);
    CHECK(contains(body, "\"body\":\"0123456789\"") && source.rewound == 1);
    haul_response_free(response);
    source.at = 0;
    CHECK(haul_request_set_body_callback(request, give, NULL, &source, 10) == HAUL_STATUS_OK);
    body = perform(request, &response);
    CHECK(contains(body, "\"body\":\"0123456789\"") && contains(body, "[\"content-length\",\"10\"]"));
    haul_response_free(response);
    CHECK(haul_request_set_body_callback(request, give_nothing, NULL, NULL, 10) == HAUL_STATUS_OK);
    CHECK(haul_client_perform(client, request, &response) == HAUL_STATUS_READ && response == NULL);
    haul_request_free(request);

    /* A redirect that keeps the body: the body is rewound, or the call fails. */
    snprintf(to, sizeof to, "%s/redirect/307?to=%s", base, "%2Fecho");
    request = haul_request_new("PUT", to);
    source.at = 0, source.rewound = 0;
    CHECK(haul_request_set_body_callback(request, give, rewind_source, &source, 10) == HAUL_STATUS_OK);
    body = perform(request, &response);
    CHECK(contains(body, "\"body\":\"0123456789\"") && source.rewound == 1);
    haul_response_free(response);
    source.at = 0;
    CHECK(haul_request_set_body_callback(request, give, NULL, &source, 10) == HAUL_STATUS_OK);
    CHECK(haul_client_perform(client, request, &response) == HAUL_STATUS_REWIND);
    haul_request_free(request);

    /* Forms. */
    request = haul_request_new("POST", under(base, "/echo"));
    CHECK(haul_request_add_form_field(request, "a b", 3, "c&d", 3) == HAUL_STATUS_OK);
    CHECK(haul_request_add_form_field(request, "e", 1, "\xc3\xa4", 2) == HAUL_STATUS_OK);
    body = perform(request, &response);
    CHECK(contains(body, "\"body\":\"a+b=c%26d&e=%C3%A4\"") && contains(body, "x-www-form-urlencoded"));
    haul_response_free(response);
    CHECK(haul_request_add_part(request, "field", "value", 5, NULL, NULL) == HAUL_STATUS_OK);
    CHECK(haul_request_add_part(request, "file", "<p>", 3, "a.html", NULL) == HAUL_STATUS_OK);
    CHECK(haul_request_add_part_file(request, "self", __FILE__, "c.c", "text/x-c") == HAUL_STATUS_OK);
    body = perform(request, &response);
    CHECK(contains(body, "multipart/form-data; boundary=") && contains(body, "filename=\\\"a.html\\\""));
    CHECK(contains(body, "Content-Type: text/html") && contains(body, "Content-Type: text/x-c"));
    CHECK(contains(body, "Requests and replies in all their ways"));
    haul_response_free(response);
    haul_request_free(request);

    /* A file, and memory that is not copied. */
    request = haul_request_new("PUT", under(base, "/echo"));
    CHECK(haul_request_set_body_file(request, __FILE__) == HAUL_STATUS_OK);
    body = perform(request, &response);
    CHECK(contains(body, "Requests and replies in all their ways"));
    haul_response_free(response);
    static char large[200000];
    memset(large, 'y', sizeof large);
    CHECK(haul_request_set_body_borrowed(request, large, sizeof large) == HAUL_STATUS_OK);
    haul_request *copy = haul_request_clone(request);
    haul_request_free(request);
    body = perform(copy, &response);
    CHECK(contains(body, "\"body_len\":200000"));
    haul_response_free(response);
    haul_request_free(copy);
}

struct sum {
    haul_header field;
    char text[20];
    const struct source *of;
    int result;
};

static int give_sum(void *user, const haul_header **trailers, size_t *count) {
    struct sum *sum = user;
    snprintf(sum->text, sizeof sum->text, "%zu", sum->of->at);
    sum->field.name = slice("X-Length");
    sum->field.value = slice(sum->text);
    *trailers = &sum->field, *count = 1;
    return sum->result;
}

static void trailers_and_versions(void) {
    haul_response *response, *place = haul_response_new();
    haul_reply reply;
    struct source source = {"0123456789", 0, 0};
    struct sum sum = {.of = &source};
    haul_call call = HAUL_CALL_INIT;
    call.method = slice("PUT"), call.url = slice(under(base, "/echo"));
    call.read = give, call.read_user = &source, call.read_length = 10;
    call.trailers = give_sum, call.trailers_user = &sum;
    CHECK(haul_client_call(client, &call, place, &reply) == HAUL_STATUS_OK && strcmp(sum.text, "10") == 0);
    haul_slice body = {reply.body, reply.body_len};
    CHECK(contains(body, "\"body\":\"0123456789\"") && contains(body, "[\"transfer-encoding\",\"chunked\"]"));
    source.at = 0, sum.result = 1;
    CHECK(haul_client_call(client, &call, place, &reply) == HAUL_STATUS_READ);
    haul_request *request = haul_request_new("PUT", under(base, "/echo"));
    sum.result = 0, sum.text[0] = 0;
    CHECK(haul_request_set_body(request, "x", 1) == HAUL_STATUS_OK);
    CHECK(haul_request_set_trailers(request, give_sum, &sum) == HAUL_STATUS_OK);
    body = perform(request, &response);
    CHECK(contains(body, "\"body\":\"x\"") && sum.text[0] != 0);
    haul_response_free(response);
    haul_batch *batch = haul_batch_new(client);
    CHECK(haul_batch_add(batch, request, NULL) == HAUL_STATUS_SETUP);
    haul_batch_free(batch);
    haul_request_free(request);

    /* HTTP/1.0, by call and by client: no chunked coding, and a separate connection. */
    haul_call old = HAUL_CALL_INIT;
    old.url = slice(under(base, "/echo")), old.flags = HAUL_CALL_HTTP_1_0;
    CHECK(haul_client_call(client, &old, place, &reply) == HAUL_STATUS_OK);
    body.data = reply.body, body.len = reply.body_len;
    CHECK(contains(body, "\"HTTP/1.0\""));
    call.flags = HAUL_CALL_HTTP_1_0, source.at = 0;
    CHECK(haul_client_call(client, &call, place, &reply) == HAUL_STATUS_UPLOAD);
    haul_client *aged = haul_client_new();
    CHECK(haul_client_set_http(aged, HAUL_HTTP_1_0) == HAUL_STATUS_OK);
    old.flags = 0;
    CHECK(haul_client_call(aged, &old, place, &reply) == HAUL_STATUS_OK);
    body.data = reply.body, body.len = reply.body_len;
    CHECK(contains(body, "\"HTTP/1.0\""));
    CHECK(haul_client_set_http(aged, HAUL_HTTP_1_1) == HAUL_STATUS_OK);

    /* haul_client_is_warm. */
    CHECK(!haul_client_is_warm(aged, under(base, "/")));
    CHECK(haul_client_call(aged, &old, place, &reply) == HAUL_STATUS_OK);
    CHECK(haul_client_is_warm(aged, under(base, "/any")) && !haul_client_is_warm(aged, "http://h.invalid/"));
    CHECK(!haul_client_is_warm(aged, "nonsense") && !haul_client_is_warm(aged, NULL) && !haul_client_is_warm(NULL, base));
    haul_client_close_idle(aged);
    CHECK(!haul_client_is_warm(aged, base));

    /* Paths with dot segments, by client and by request. */
    old.url = slice(under(base, "/a/../echo"));
    CHECK(haul_client_call(aged, &old, place, &reply) == HAUL_STATUS_OK && reply.status == 200);
    CHECK(haul_client_set_raw_path(aged, true) == HAUL_STATUS_OK);
    CHECK(haul_client_call(aged, &old, place, &reply) == HAUL_STATUS_OK && reply.status == 404);
    haul_request *raw = haul_request_new_raw(NULL, under(base, "/a/../echo"));
    haul_response *of_raw = NULL;
    CHECK(haul_client_open(client, raw, &of_raw) == HAUL_STATUS_OK);
    CHECK(haul_response_reply(of_raw, &reply) == HAUL_STATUS_OK && reply.status == 404);
    haul_response_free(of_raw);
    haul_request_free(raw);
    haul_client_free(aged);
    haul_response_free(place);
}

static void streams(void) {
    haul_response *response;
    char piece[1000];
    size_t got = 0, total = 0, rounds = 0;
    haul_request *request = haul_request_new("GET", under(base, "/chunked/100000?trailer=1"));
    CHECK(haul_request_set_header(request, "TE", "trailers") == HAUL_STATUS_OK);
    CHECK(haul_client_open(client, request, &response) == HAUL_STATUS_OK);
    CHECK(haul_response_status(response) == 200 && haul_response_body(response).data == NULL);
    do {
        CHECK(haul_response_read(response, piece, sizeof piece, &got) == HAUL_STATUS_OK);
        total += got, rounds++;
    } while (got > 0);
    CHECK(total == 100000 && rounds > 100 && haul_response_trailer_count(response) == 1);
    CHECK(haul_response_read(response, piece, sizeof piece, &got) == HAUL_STATUS_OK && got == 0);
    haul_response_free(response);
    haul_request_free(request);

    /* A body that decodes to too much fails, on every read. */
    haul_client *careful = haul_client_new();
    CHECK(haul_client_set_decode(careful, true) == HAUL_STATUS_OK);
    request = haul_request_new("GET", under(base, "/bomb/16"));
    CHECK(haul_client_perform(careful, request, &response) == HAUL_STATUS_TOO_LARGE && response == NULL);
    CHECK(haul_client_set_decode_limits(careful, 0, 0) == HAUL_STATUS_OK);
    CHECK(haul_client_perform(careful, request, &response) == HAUL_STATUS_OK);
    CHECK(haul_response_body(response).len == 16 << 20);
    haul_response_free(response);
    CHECK(haul_client_set_decode_limits(careful, 1000, 0) == HAUL_STATUS_OK);
    CHECK(haul_client_open(careful, request, &response) == HAUL_STATUS_OK);
    for (rounds = 0; rounds < 3; rounds++) {
        CHECK(haul_response_read(response, piece, sizeof piece, &got) == HAUL_STATUS_TOO_LARGE);
        CHECK(haul_error_url(haul_last_error()) != NULL && !haul_error_is_connect(haul_last_error()));
    }
    haul_response_free(response);
    haul_request_free(request);
    haul_client_free(careful);

    /* A response that is not read to its end does not disturb the next. */
    request = haul_request_new("GET", under(base, "/bytes/100000000"));
    CHECK(haul_client_open(client, request, &response) == HAUL_STATUS_OK);
    CHECK(haul_response_read(response, piece, sizeof piece, &got) == HAUL_STATUS_OK && got > 0);
    haul_response_free(response);
    haul_request_free(request);
    request = haul_request_new("GET", under(base, "/small/9"));
    CHECK(is(perform(request, &response), "small 9\n"));
    CHECK(haul_response_read(response, piece, sizeof piece, &got) == HAUL_STATUS_SETUP);
    haul_response_free(response);
    haul_request_free(request);
}

static volatile sig_atomic_t alarmed;

static void on_alarm(int signal) {
    (void)signal;
    alarmed = 1;
}

static int look(void *user) {
    ++*(int *)user;
    return alarmed;
}

static void interrupts(void) {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = on_alarm;
    sigaction(SIGALRM, &action, NULL);
    int asked = 0;
    haul_response *response;
    haul_request *request = haul_request_new("GET", under(base, "/delay/60000/small"));
    CHECK(haul_client_set_interrupt(client, look, &asked) == HAUL_STATUS_OK);
    alarm(1);
    CHECK(haul_client_perform(client, request, &response) == HAUL_STATUS_INTERRUPTED && asked > 0);
    CHECK(haul_error_is_interrupted(haul_last_error()));
    CHECK(haul_client_set_interrupt(client, NULL, NULL) == HAUL_STATUS_OK);
    haul_request_free(request);
}

static void forks(void) {
    haul_response *response;
    uint64_t connections = 0, before = 0;
    haul_request *request = haul_request_new("GET", under(base, "/small/3"));
    CHECK(is(perform(request, &response), "small 3\n"));
    haul_response_free(response);
    haul_client_stats(client, &before, NULL, NULL);
    pid_t child = fork();
    if (child == 0) {
        for (int i = 0; i < 3; i++) {
            CHECK(is(perform(request, &response), "small 3\n"));
            haul_response_free(response);
        }
        haul_client_stats(client, &connections, NULL, NULL);
        CHECK(connections == 1);
        _exit(0);
    }
    int status = 1;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    CHECK(is(perform(request, &response), "small 3\n"));
    haul_response_free(response);
    haul_client_stats(client, &connections, NULL, NULL);
    CHECK(connections == before);
    haul_request_free(request);
}

int main(int argc, char **argv) {
    CHECK(argc == 2);
    base = argv[1];
    client = haul_client_new();
    plain_calls();
    outputs();
    uploads();
    trailers_and_versions();
    streams();
    interrupts();
    forks();
    haul_client_free(client);
    puts("called as it should be");
    return 0;
}
