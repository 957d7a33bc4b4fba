/* Invalid arguments and the errors for them: nothing reaches a network. */
#include "check.h"
#include <pthread.h>

static void *other_thread(void *unused) {
    (void)unused;
    CHECK(haul_last_error() == NULL);
    CHECK(haul_request_new("GET", "nowhere://h/") == NULL);
    CHECK(haul_error_code(haul_last_error()) == HAUL_STATUS_UNSUPPORTED_SCHEME);
    return NULL;
}

static void nulls(void) {
    haul_response *response = (haul_response *)1;
    haul_client *client = haul_client_new();
    haul_request *request = haul_request_new(NULL, "http://h.invalid/");
    CHECK(client != NULL && request != NULL);
    haul_client_free(NULL);
    haul_request_free(NULL);
    haul_response_free(NULL);
    haul_jar_free(NULL);
    haul_error_free(NULL);
    haul_batch_free(NULL);
    haul_free(NULL);
    CHECK(haul_client_perform(NULL, request, &response) == HAUL_STATUS_SETUP && response == (haul_response *)1);
    CHECK(strstr(haul_error_text(haul_last_error()), "client is NULL") != NULL);
    CHECK(haul_client_perform(client, NULL, &response) == HAUL_STATUS_SETUP);
    CHECK(haul_client_perform(client, request, NULL) == HAUL_STATUS_SETUP);
    CHECK(haul_client_call(client, NULL, NULL, NULL) == HAUL_STATUS_SETUP);
    CHECK(haul_client_set_timeout(NULL, 1) == HAUL_STATUS_SETUP);
    CHECK(haul_client_set_header(client, NULL, "x") == HAUL_STATUS_SETUP);
    CHECK(haul_client_share(client, NULL, HAUL_SHARE_POOL) == HAUL_STATUS_SETUP);
    CHECK(haul_client_share(client, client, 0) == HAUL_STATUS_SETUP);
    CHECK(haul_client_share(client, client, 8) == HAUL_STATUS_SETUP);
    CHECK(haul_client_share(client, client, HAUL_SHARE_POOL | HAUL_SHARE_JAR) == HAUL_STATUS_OK);
    CHECK(haul_request_set_body(request, NULL, 3) == HAUL_STATUS_SETUP);
    CHECK(haul_request_set_body(request, NULL, 0) == HAUL_STATUS_OK);
    CHECK(haul_request_set_body_callback(request, NULL, NULL, NULL, 0) == HAUL_STATUS_SETUP);
    CHECK(haul_request_new("GET", NULL) == NULL);
    CHECK(haul_client_clone(NULL) == NULL && haul_request_clone(NULL) == NULL && haul_jar_clone(NULL) == NULL);
    CHECK(haul_batch_new(NULL) == NULL);
    CHECK(haul_response_read(NULL, NULL, 0, NULL) == HAUL_STATUS_SETUP);
    CHECK(haul_response_status(NULL) == 0 && haul_response_header_count(NULL) == 0);
    CHECK(haul_response_header(NULL, "x").data == NULL && haul_response_peer(NULL, NULL) == NULL);
    CHECK(strcmp(haul_response_version(NULL), "") == 0 && haul_response_error(NULL) == NULL);
    CHECK(haul_error_code(NULL) == HAUL_STATUS_OK && strcmp(haul_error_text(NULL), "") == 0);
    CHECK(haul_error_url(NULL) == NULL && !haul_error_is_timeout(NULL) && haul_error_clone(NULL) == NULL);
    haul_request_free(request);
    haul_client_free(client);
}

static void strings(void) {
    haul_client *client = haul_client_new();
    haul_request *request = haul_request_new("GET", "http://h.invalid/");
    CHECK(haul_request_new("GET POST", "http://h/") == NULL);
    CHECK(haul_request_new("GET\r\nX: y", "http://h/") == NULL);
    CHECK(haul_request_new("GET", "http://h/\r\nX: y") == NULL || haul_last_error() != NULL);
    CHECK(haul_request_new("GET", "http://\xff\xfe/") == NULL);
    CHECK(haul_error_is_usage(haul_last_error()) && !haul_error_is_connect(haul_last_error()));
    CHECK(haul_request_new("GET", "http://user:secret@h:99999/") == NULL);
    CHECK(strstr(haul_error_text(haul_last_error()), "secret") == NULL);
    CHECK(haul_request_set_header(request, "X-A", "1\r\nX-B: 2") == HAUL_STATUS_SETUP);
    CHECK(haul_request_add_header(request, "X A", "1") == HAUL_STATUS_SETUP);
    CHECK(haul_request_add_header(request, "", "1") == HAUL_STATUS_SETUP);
    CHECK(haul_request_set_header(request, "X-\xc3\xa4", "1") == HAUL_STATUS_SETUP);
    CHECK(haul_request_set_header(request, "X-A", "any \xff bytes") == HAUL_STATUS_OK);
    CHECK(haul_client_set_user_agent(client, "a\nb") == HAUL_STATUS_SETUP);
    CHECK(haul_client_set_user_agent(client, "any \xff bytes") == HAUL_STATUS_OK);
    CHECK(haul_client_set_auth(client, HAUL_AUTH_BASIC, "me", "a\r\nb") == HAUL_STATUS_SETUP);
    CHECK(haul_client_set_auth(client, HAUL_AUTH_BEARER, NULL, "a b") == HAUL_STATUS_SETUP);
    CHECK(haul_client_set_auth(client, 77, "a", "b") == HAUL_STATUS_SETUP);
    CHECK(haul_client_set_http(client, 3) == HAUL_STATUS_SETUP);
    CHECK(haul_client_set_ip_version(client, 5) == HAUL_STATUS_SETUP);
    CHECK(haul_client_set_proxy(client, "http://h h/") == HAUL_STATUS_SETUP);
    CHECK(haul_client_set_interface(client, "if!") == HAUL_STATUS_SETUP);
    CHECK(haul_request_add_part(request, "a", "x", 1, NULL, "text/plain\r\nX: y") == HAUL_STATUS_SETUP);
    CHECK(haul_request_add_part_file(request, "a", "/nowhere/at/all", NULL, NULL) == HAUL_STATUS_READ);
    CHECK(haul_error_errno(haul_last_error()) == 2);
    CHECK(strcmp(haul_error_text(haul_last_error()), "cannot read /nowhere/at/all: No such file or directory (os error 2)") == 0);
    CHECK(haul_request_set_output(request, NULL, (haul_reserve_fn)strings, (haul_body_fn)strings, NULL) ==
          HAUL_STATUS_SETUP);

    haul_response *place = haul_response_new();
    haul_reply reply;
    haul_header split[] = {{slice("X-A"), slice("1\r\nX-B: 2")}};
    haul_call call = HAUL_CALL_INIT;
    call.url = slice("http://h.invalid/");
    call.headers = split;
    call.header_count = 1;
    CHECK(haul_client_call(client, &call, place, &reply) == HAUL_STATUS_SETUP && reply.status == 0);
    call.header_count = 0;
    call.url = slice("http://h.invalid/a\0b");
    call.url.len = 20;
    CHECK(haul_client_call(client, &call, place, &reply) == HAUL_STATUS_URL);
    call.size = 8;
    CHECK(haul_client_call(client, &call, place, NULL) == HAUL_STATUS_SETUP);
    haul_response_free(place);
    haul_request_free(request);
    haul_client_free(client);
}

static int first(void *user, const haul_cookie *cookie) {
    *(long long *)user = cookie->expires;
    CHECK(is(cookie->name, "keep") && is(cookie->domain, "h.example") && cookie->host_only && cookie->secure);
    return 1;
}

static void jars(const char *file) {
    haul_jar *jar = haul_jar_new(), *same = haul_jar_clone(jar), *other = haul_jar_new();
    char *text = NULL;
    size_t count = 9, len = 0;
    CHECK(haul_jar_set(jar, "http://h.example/", "sid=31; Path=/") == HAUL_STATUS_OK);
    CHECK(haul_jar_set(jar, "http://h.example/", "x=1; Domain=com") == HAUL_STATUS_SETUP);
    CHECK(haul_jar_set(jar, "http://h.example/", "x=\x01") == HAUL_STATUS_SETUP);
    CHECK(haul_jar_count(same) == 1);
    CHECK(haul_jar_cookie_header(same, "http://h.example/a", &text) == HAUL_STATUS_OK && !strcmp(text, "sid=31"));
    haul_free(text);
    CHECK(haul_jar_cookie_header(same, "http://other.example/", &text) == HAUL_STATUS_OK && text == NULL);
    haul_jar_clear_session(jar);
    CHECK(haul_jar_count(same) == 0);
    haul_cookie cookie = {.name = slice("keep"), .value = slice("1"), .domain = slice("h.example"), .path = slice("/"),
                          .expires = 4000000000, .host_only = true, .secure = true};
    CHECK(haul_jar_put(jar, &cookie) == HAUL_STATUS_OK);
    cookie.name = slice("a b\r\n");
    CHECK(haul_jar_put(jar, &cookie) == HAUL_STATUS_SETUP);
    long long expires = 0;
    CHECK(haul_jar_each(jar, first, &expires) == HAUL_STATUS_OK && expires == 4000000000);
    CHECK(haul_jar_save(jar, file) == HAUL_STATUS_OK);
    CHECK(haul_jar_load(other, file, &count) == HAUL_STATUS_OK && count == 0 && haul_jar_count(other) == 1);
    CHECK(haul_jar_to_text(jar, HAUL_JAR_FORMAT_LWP, &text, &len) == HAUL_STATUS_OK && len == strlen(text));
    haul_jar_clear(other);
    CHECK(haul_jar_count(other) == 0);
    CHECK(haul_jar_add_text(other, text, len, NULL) == HAUL_STATUS_OK && haul_jar_count(other) == 1);
    haul_free(text);
    CHECK(haul_jar_to_text(jar, 7, &text, &len) == HAUL_STATUS_SETUP);
    CHECK(haul_jar_remove(other, ".h.example", NULL, "nothing") == HAUL_STATUS_OK && haul_jar_count(other) == 1);
    CHECK(haul_jar_remove(other, ".h.example", "/", "keep") == HAUL_STATUS_OK && haul_jar_count(other) == 0);
    CHECK(haul_jar_load(jar, "/", NULL) == HAUL_STATUS_READ);
    CHECK(haul_jar_save(jar, "/nowhere/at/all") == HAUL_STATUS_WRITE);
    haul_jar_free(jar);
    haul_jar_free(same);
    haul_jar_free(other);
}

int main(int argc, char **argv) {
    CHECK(argc == 2);
    CHECK(strcmp(haul_version(), HAUL_VERSION) == 0);
    CHECK(haul_version_number() == HAUL_VERSION_MAJOR * 1000000u + HAUL_VERSION_MINOR * 1000u + HAUL_VERSION_PATCH);
    CHECK(strcmp(haul_status_text(HAUL_STATUS_TIMEOUT), "time limit ran out") == 0);
    CHECK(strcmp(haul_status_text(12345), "unknown") == 0);
    nulls();
    strings();
    jars(argv[1]);
    haul_error *kept = haul_error_clone(haul_last_error());
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, other_thread, NULL) == 0 && pthread_join(thread, NULL) == 0);
    CHECK(haul_error_code(kept) == HAUL_STATUS_WRITE && haul_error_errno(kept) == 2);
    haul_error_free(kept);
    char *joined;
    CHECK(haul_field_is_secret("X-API-Key") == 1 && haul_field_is_secret("cookie") == 1);
    CHECK(haul_field_is_secret("Accept") == 0 && haul_field_is_secret("") == 0 && haul_field_is_secret(NULL) == 0);
    CHECK(haul_url_join("http://u:p@h/a/b?q", "../c#f", &joined) == HAUL_STATUS_OK && !strcmp(joined, "http://h/c"));
    haul_free(joined);
    /* A Latin-1 byte keeps its value, and so does UTF-8. */
    CHECK(haul_url_join("http://h/", "/caf\xe9", &joined) == HAUL_STATUS_OK && !strcmp(joined, "http://h/caf%E9"));
    haul_free(joined);
    CHECK(haul_url_join("http://h/", "/caf\xc3\xa9", &joined) == HAUL_STATUS_OK && !strcmp(joined, "http://h/caf%C3%A9"));
    haul_free(joined);
    puts("refused as it should be");
    return 0;
}
