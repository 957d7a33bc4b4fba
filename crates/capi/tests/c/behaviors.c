/* One behaviour a run, against the embedded origin: behaviors NAME URL [ARGUMENT]. */
#include "check.h"

static haul_client *client;
static haul_response *response;
static haul_reply reply;

static haul_status get(const char *url, uint32_t flags) {
    haul_call call = HAUL_CALL_INIT;
    call.url = slice(url);
    call.flags = flags;
    return haul_client_call(client, &call, response, &reply);
}

static void failure_is_stored(const char *base, const char *closed) {
    CHECK(get(closed, 0) == HAUL_STATUS_CONNECT);
    const haul_error *error = haul_response_error(response);
    CHECK(haul_error_code(error) == HAUL_STATUS_CONNECT && strcmp(haul_error_url(error), closed) == 0);
    /* The error stays when another call fails, and goes with the next call of this response. */
    CHECK(haul_request_new("GET", "gopher://h/") == NULL && haul_error_code(error) == HAUL_STATUS_CONNECT);
    CHECK(get(under(base, "/small"), 0) == HAUL_STATUS_OK && haul_response_error(response) == NULL);
    CHECK(get("no url", 0) == HAUL_STATUS_URL && haul_error_code(haul_response_error(response)) == HAUL_STATUS_URL);
    haul_call call = HAUL_CALL_INIT;
    CHECK(haul_client_call(NULL, &call, response, &reply) == HAUL_STATUS_SETUP && reply.status == 0);
    CHECK(haul_error_code(haul_response_error(response)) == HAUL_STATUS_SETUP);
}

static void read_failure_is_stored(const char *url) {
    haul_request *request = haul_request_new(NULL, url);
    haul_response *opened = NULL;
    CHECK(haul_client_open(client, request, &opened) == HAUL_STATUS_OK && haul_response_error(opened) == NULL);
    char buffer[64];
    size_t got = 1;
    haul_status status;
    while ((status = haul_response_read(opened, buffer, sizeof buffer, &got)) == HAUL_STATUS_OK)
        CHECK(got > 0 && haul_response_error(opened) == NULL);
    CHECK(status == HAUL_STATUS_PARTIAL_BODY);
    CHECK(haul_error_code(haul_response_error(opened)) == HAUL_STATUS_PARTIAL_BODY);
    haul_response_free(opened);
    haul_request_free(request);
}

static int count_head(void *user, const haul_reply *head) {
    (void)head;
    ++*(int *)user;
    return 0;
}

static void last_head_is_reported(const char *base) {
    int heads = 0;
    haul_call call = HAUL_CALL_INIT;
    call.url = slice(under(base, "/chain/5"));
    call.max_redirects = 2;
    for (int with_on_head = 0; with_on_head < 2; with_on_head++) {
        call.on_head = with_on_head ? count_head : NULL;
        call.user = &heads;
        CHECK(haul_client_call(client, &call, response, &reply) == HAUL_STATUS_TOO_MANY_REDIRECTS);
        CHECK(reply.status == 302 && reply.redirects == 2 && haul_response_redirect_count(response) == 2);
        CHECK(reply.header_count > 0 && reply.url.len > 0 && haul_response_times(response).total > 0);
        CHECK(haul_error_code(haul_response_error(response)) == HAUL_STATUS_TOO_MANY_REDIRECTS);
    }
    CHECK(heads == 0);
}

static uint64_t connections(void) {
    uint64_t count = 0;
    haul_client_stats(client, &count, NULL, NULL);
    return count;
}

/* Connections are not used again with HTTP/2 and HTTP/3 either: this opens 13 of them, 5 by a batch. */
static void connection_is_closed(const char *url, int version) {
    CHECK(haul_client_set_http(client, version) == HAUL_STATUS_OK);
    for (int i = 1; i <= 3; i++) {
        CHECK(get(url, HAUL_CALL_CLOSE) == HAUL_STATUS_OK && reply.version >= 20);
        CHECK(connections() == (uint64_t)i && !haul_client_is_warm(client, url));
    }
    CHECK(get(url, 0) == HAUL_STATUS_OK && get(url, 0) == HAUL_STATUS_OK);
    CHECK(connections() == 4 && haul_client_is_warm(client, url));
    haul_client_close_idle(client);
    CHECK(haul_client_set_keep_alive(client, false) == HAUL_STATUS_OK);
    for (int i = 5; i <= 7; i++)
        CHECK(get(url, 0) == HAUL_STATUS_OK && connections() == (uint64_t)i && !haul_client_is_warm(client, url));
    haul_batch *batch = haul_batch_new(client);
    haul_request *request = haul_request_new(NULL, url);
    for (int i = 0; i < 5; i++)
        CHECK(haul_batch_add(batch, request, NULL) == HAUL_STATUS_OK);
    haul_response *made = NULL;
    int done = 0;
    for (; haul_batch_next(batch, -1, &made, NULL) == HAUL_STATUS_OK && made != NULL; done++) {
        CHECK(haul_response_error(made) == NULL && haul_response_status(made) == 200);
        haul_response_free(made);
    }
    CHECK(done == 5);
    haul_request_free(request);
    haul_batch_free(batch);
    CHECK(haul_client_set_keep_alive(client, true) == HAUL_STATUS_OK);
    CHECK(get(url, 0) == HAUL_STATUS_OK && get(url, 0) == HAUL_STATUS_OK && haul_client_is_warm(client, url));
}

static void http3_connection_is_closed(const char *url, const char *ca) {
    CHECK(haul_client_set_ca_file(client, ca) == HAUL_STATUS_OK);
    connection_is_closed(url, HAUL_HTTP_3_ONLY);
}

static void name_servers_stay(const char *url, const char *server) {
    CHECK(haul_client_set_dns_servers(client, server) == HAUL_STATUS_OK);
    haul_client *other = haul_client_clone(client);
    CHECK(haul_client_set_pool(client, 1, 0, 0) == HAUL_STATUS_OK);
    CHECK(get(url, 0) == HAUL_STATUS_OK && reply.status == 200);
    /* The other client no longer shares the connections, and so not the name servers. */
    CHECK(haul_client_set_dns_servers(other, "127.0.0.1:1") == HAUL_STATUS_OK);
    haul_client_close_idle(client);
    CHECK(haul_client_set_pool(client, 2, 0, 0) == HAUL_STATUS_OK && get(url, 0) == HAUL_STATUS_OK);
    haul_client_free(other);
}

static void list_stays(const char *url, const char *closed) {
    CHECK(haul_client_set_no_proxy(client, "127.0.0.1") == HAUL_STATUS_OK);
    CHECK(haul_client_set_proxy(client, NULL) == HAUL_STATUS_OK && get(url, 0) == HAUL_STATUS_OK);
    CHECK(haul_client_set_proxy(client, closed) == HAUL_STATUS_OK && get(url, 0) == HAUL_STATUS_OK);
    CHECK(haul_client_set_scheme_proxies(client, NULL, NULL) == HAUL_STATUS_OK);
    CHECK(haul_client_set_scheme_proxies(client, closed, NULL) == HAUL_STATUS_OK && get(url, 0) == HAUL_STATUS_OK);
    CHECK(haul_client_set_no_proxy(client, NULL) == HAUL_STATUS_OK);
    haul_client_close_idle(client);
    CHECK(get(url, 0) != HAUL_STATUS_OK);
}

static void environment_replaces_list(const char *url, const char *closed) {
    CHECK(setenv("http_proxy", closed, 1) == 0 && unsetenv("no_proxy") == 0 && unsetenv("NO_PROXY") == 0);
    CHECK(haul_client_set_no_proxy(client, "127.0.0.1") == HAUL_STATUS_OK);
    CHECK(haul_client_set_proxy_from_environment(client) == HAUL_STATUS_OK && get(url, 0) != HAUL_STATUS_OK);
    CHECK(haul_client_set_no_proxy(client, "127.0.0.1") == HAUL_STATUS_OK && get(url, 0) == HAUL_STATUS_OK);
}

static void cookie_has_expired(const char *url) {
    haul_jar *jar = haul_jar_new();
    haul_cookie cookie = {slice("a"), slice("b"), slice("127.0.0.1"), slice("/"), 0, true, false, false};
    CHECK(haul_jar_put(jar, &cookie) == HAUL_STATUS_OK && haul_jar_count(jar) == 1);
    const int64_t past[] = {-1, INT64_MIN, 1};
    for (int i = 0; i < 3; i++) {
        cookie.expires = past[i];
        CHECK(haul_jar_put(jar, &cookie) == HAUL_STATUS_OK && haul_jar_count(jar) == 0);
        char *text = NULL;
        CHECK(haul_jar_cookie_header(jar, url, &text) == HAUL_STATUS_OK && text == NULL);
    }
    haul_jar_free(jar);
}

static void any_cookie_is_removed(const char *url) {
    haul_jar *jar = haul_jar_new();
    CHECK(haul_jar_set(jar, url, "n\xe9=v; Path=/") == HAUL_STATUS_OK);
    CHECK(haul_jar_set(jar, url, "m=v; Path=/\xe9") == HAUL_STATUS_OK && haul_jar_count(jar) == 2);
    CHECK(haul_jar_remove(jar, NULL, NULL, "n\xe9") == HAUL_STATUS_OK && haul_jar_count(jar) == 1);
    CHECK(haul_jar_remove(jar, NULL, "/\xe9", NULL) == HAUL_STATUS_OK && haul_jar_count(jar) == 0);
    haul_jar_free(jar);
}

static void user_agent_may_be_any_bytes(const char *base) {
    CHECK(haul_client_set_user_agent(client, "caf\xe9") == HAUL_STATUS_OK);
    CHECK(get(under(base, "/echo"), 0) == HAUL_STATUS_OK && contains(haul_response_body(response), "caf"));
    CHECK(haul_client_set_user_agent(client, "a\nb") == HAUL_STATUS_SETUP);
    CHECK(haul_client_set_user_agent(client, NULL) == HAUL_STATUS_OK);
    CHECK(get(under(base, "/echo"), 0) == HAUL_STATUS_OK && !contains(haul_response_body(response), "user-agent"));
}

static void versions_are_checked(void) {
    CHECK(haul_client_set_tls_versions(client, 13, 12) == HAUL_STATUS_SETUP);
    CHECK(haul_client_set_tls_versions(client, 12, 12) == HAUL_STATUS_OK);
    CHECK(haul_client_set_tls_versions(client, 13, 0) == HAUL_STATUS_OK);
    CHECK(haul_client_set_tls_versions(client, 0, 12) == HAUL_STATUS_OK);
}

int main(int argc, char **argv) {
    CHECK(argc >= 3);
    const char *name = argv[1], *url = argv[2], *more = argc > 3 ? argv[3] : NULL;
    client = haul_client_new();
    response = haul_response_new();
    if (strcmp(name, "call-error") == 0)
        failure_is_stored(url, more);
    else if (strcmp(name, "read-error") == 0)
        read_failure_is_stored(url);
    else if (strcmp(name, "last-head") == 0)
        last_head_is_reported(url);
    else if (strcmp(name, "close-http2") == 0)
        connection_is_closed(url, HAUL_HTTP_2_PRIOR);
    else if (strcmp(name, "close-http3") == 0)
        http3_connection_is_closed(url, more);
    else if (strcmp(name, "name-servers") == 0)
        name_servers_stay(url, more);
    else if (strcmp(name, "no-proxy") == 0)
        list_stays(url, more);
    else if (strcmp(name, "environment") == 0)
        environment_replaces_list(url, more);
    else if (strcmp(name, "expired") == 0)
        cookie_has_expired(url);
    else if (strcmp(name, "remove") == 0)
        any_cookie_is_removed(url);
    else if (strcmp(name, "user-agent") == 0)
        user_agent_may_be_any_bytes(url);
    else if (strcmp(name, "tls-versions") == 0)
        versions_are_checked();
    else
        CHECK(!"a known name");
    haul_response_free(response);
    haul_client_free(client);
    puts(name);
    return 0;
}
