/* Batches: batches BASE-URL. */
#include "check.h"
#include <poll.h>
#include <time.h>

static haul_client *client;
static const char *base;

static void add(haul_batch *batch, const char *method, const char *path, long user) {
    haul_request *request = haul_request_new(method, under(base, path));
    CHECK(request != NULL && haul_batch_add(batch, request, (void *)user) == HAUL_STATUS_OK);
    haul_request_free(request);
}

struct chain {
    haul_batch *batch;
    int left;
};

/* Adds the next request from the callback of each reply. */
static int go_on(void *context, void *user, haul_response *response) {
    struct chain *chain = context;
    CHECK(user == (void *)7 && is(haul_response_body(response), "small 7\n"));
    haul_response_free(response);
    if (--chain->left > 0)
        add(chain->batch, "GET", "/small/7", 7);
    return 0;
}

static int stop(void *context, void *user, haul_response *response) {
    (void)user;
    haul_response_free(response);
    return ++*(int *)context == 3;
}

static void orders(void) {
    haul_response *response;
    void *user;
    haul_batch *batch = haul_batch_new(client);
    CHECK(haul_batch_set_order(batch, 9) == HAUL_STATUS_SETUP);
    CHECK(haul_batch_set_order(batch, HAUL_ORDER_COMPLETION) == HAUL_STATUS_OK);
    add(batch, "GET", "/delay/60000/small/1", 1);
    add(batch, "GET", "/small/2", 2);
    CHECK(haul_batch_set_order(batch, HAUL_ORDER_INPUT) == HAUL_STATUS_SETUP);
    CHECK(haul_batch_pending(batch) == 2);
    CHECK(haul_batch_next(batch, -1, &response, &user) == HAUL_STATUS_OK && user == (void *)2);
    CHECK(is(haul_response_body(response), "small 2\n") && is(haul_response_url(response), under(base, "/small/2")));
    haul_response_free(response);
    CHECK(haul_batch_next(batch, 0, &response, &user) == HAUL_STATUS_OK && response == NULL);
    CHECK(haul_batch_next(batch, 10, &response, NULL) == HAUL_STATUS_OK && response == NULL);
    CHECK(haul_batch_pending(batch) == 1);
    /* Freeing a batch with requests in progress does not wait. */
    haul_batch_free(batch);
}

static void kinds(void) {
    haul_response *response;
    haul_batch *batch = haul_batch_new(client);
    char body[] = "borrowed";
    haul_request *request = haul_request_new("POST", under(base, "/echo"));
    CHECK(haul_request_set_body_borrowed(request, body, 8) == HAUL_STATUS_OK);
    CHECK(haul_request_set_header(request, "X-One", "1") == HAUL_STATUS_OK);
    CHECK(haul_batch_add(batch, request, NULL) == HAUL_STATUS_OK);
    haul_request_free(request);
    memset(body, 'x', 8);
    CHECK(haul_batch_next(batch, -1, &response, NULL) == HAUL_STATUS_OK);
    CHECK(contains(haul_response_body(response), "\"body\":\"borrowed\"") && contains(haul_response_body(response), "x-one"));
    haul_response_free(response);
    add(batch, "GET", "/status/404", 0);
    add(batch, "GET", "/chain/3", 0);
    CHECK(haul_batch_next(batch, -1, &response, NULL) == HAUL_STATUS_OK && haul_response_status(response) == 404);
    CHECK(haul_response_error(response) == NULL);
    haul_response_free(response);
    CHECK(haul_batch_next(batch, -1, &response, NULL) == HAUL_STATUS_OK);
    CHECK(haul_response_redirect_count(response) == 3 && is(haul_response_body(response), "end of chain\n"));
    haul_response_free(response);
    request = haul_request_new("GET", "http://127.0.0.1:1/");
    CHECK(haul_batch_add(batch, request, NULL) == HAUL_STATUS_OK);
    CHECK(haul_request_set_body_callback(request, (haul_read_fn)kinds, NULL, NULL, 1) == HAUL_STATUS_OK);
    CHECK(haul_batch_add(batch, request, NULL) == HAUL_STATUS_SETUP);
    haul_request_free(request);
    CHECK(haul_batch_next(batch, -1, &response, NULL) == HAUL_STATUS_OK && response != NULL);
    CHECK(haul_error_code(haul_response_error(response)) == HAUL_STATUS_CONNECT && haul_response_status(response) == 0);
    haul_response_free(response);
    haul_batch_free(batch);
}

static void turns(void) {
    haul_response *response;
    void *user;
    CHECK(haul_client_set_pool_timeout(client, 20) == HAUL_STATUS_OK);
    haul_batch *batch = haul_batch_new(client);
    CHECK(haul_batch_set_order(batch, HAUL_ORDER_COMPLETION) == HAUL_STATUS_OK);
    CHECK(haul_batch_set_parallel(batch, 1, 1) == HAUL_STATUS_OK);
    add(batch, "GET", "/delay/60000/small/1", 1);
    add(batch, "GET", "/small/2", 2);
    CHECK(haul_client_set_pool_timeout(client, 0) == HAUL_STATUS_OK);
    /* The first one began at once, so it has not waited. */
    CHECK(haul_batch_next(batch, -1, &response, &user) == HAUL_STATUS_OK && user == (void *)2);
    CHECK(haul_error_code(haul_response_error(response)) == HAUL_STATUS_TIMEOUT);
    haul_response_free(response);
    haul_batch_free(batch);
}

static void runs(void) {
    struct chain chain = {haul_batch_new(client), 50};
    add(chain.batch, "GET", "/small/7", 7);
    CHECK(haul_batch_run(chain.batch, go_on, &chain) == HAUL_STATUS_OK && chain.left == 0);
    int taken = 0;
    for (int i = 0; i < 10; i++)
        add(chain.batch, "GET", "/small/1", 0);
    CHECK(haul_batch_run(chain.batch, stop, &taken) == HAUL_STATUS_INTERRUPTED && taken == 3);
    CHECK(haul_batch_pending(chain.batch) == 7);
    CHECK(haul_batch_run(chain.batch, NULL, NULL) == HAUL_STATUS_SETUP);
    haul_batch_free(chain.batch);
}

static void descriptors(void) {
    haul_response *response;
    haul_batch *batch = haul_batch_new(client);
    struct pollfd wait = {.fd = haul_batch_fd(batch), .events = POLLIN};
    CHECK(wait.fd >= 0 && haul_batch_fd(batch) == wait.fd && haul_batch_fd(NULL) == -1);
    CHECK(poll(&wait, 1, 0) == 0);
    add(batch, "GET", "/small/1", 0);
    CHECK(poll(&wait, 1, 30000) == 1);
    CHECK(haul_batch_next(batch, 0, &response, NULL) == HAUL_STATUS_OK && response != NULL);
    haul_response_free(response);
    CHECK(poll(&wait, 1, 0) == 0);
    haul_batch_free(batch);
}

/* A rate delays the starts, on each host or in all. */
static void rates(void) {
    haul_response *response;
    for (int each = 0; each < 2; each++) {
        haul_batch *batch = haul_batch_new(client);
        struct timespec began, ended;
        CHECK(haul_batch_set_rate(batch, -1, 0) == HAUL_STATUS_SETUP && haul_batch_set_rate(batch, 0, 0.0 / 0.0) == HAUL_STATUS_SETUP);
        CHECK(haul_batch_set_rate(batch, each ? 0 : 20, each ? 20 : 0) == HAUL_STATUS_OK);
        CHECK(haul_batch_set_limit_rate(batch, 1 << 20) == HAUL_STATUS_OK);
        CHECK(haul_batch_set_stall_time(batch, 60000) == HAUL_STATUS_OK);
        CHECK(clock_gettime(CLOCK_MONOTONIC, &began) == 0);
        for (int i = 0; i < 5; i++)
            add(batch, "GET", "/small/1", i);
        for (int i = 0; i < 5; i++) {
            CHECK(haul_batch_next(batch, -1, &response, NULL) == HAUL_STATUS_OK && response != NULL);
            haul_response_free(response);
        }
        CHECK(clock_gettime(CLOCK_MONOTONIC, &ended) == 0);
        CHECK((ended.tv_sec - began.tv_sec) * 1000 + (ended.tv_nsec - began.tv_nsec) / 1000000 >= 199);
        CHECK(haul_batch_set_rate(batch, 1, 1) == HAUL_STATUS_SETUP);
        haul_batch_free(batch);
    }
}

/* Replies that nobody takes stop the transfers; a freed batch leaves nothing. */
static void bounds(void) {
    haul_batch *batch = haul_batch_new(client);
    CHECK(haul_batch_set_memory(batch, 4 << 20) == HAUL_STATUS_OK);
    CHECK(haul_batch_set_parallel(batch, 4, 4) == HAUL_STATUS_OK);
    for (int i = 0; i < 40; i++)
        add(batch, "GET", "/bytes/1000000", i);
    for (long i = 0; i < 20; i++) {
        haul_response *response;
        void *user;
        CHECK(haul_batch_next(batch, -1, &response, &user) == HAUL_STATUS_OK && user == (void *)i);
        CHECK(haul_response_body(response).len == 1000000);
        if (i % 2) {
            /* The body belongs to the program, also after the response. */
            size_t len = 0;
            char *body = haul_response_take_body(response, &len);
            CHECK(body && len == 1000000 && !body[len] && !haul_response_body(response).data);
            CHECK(!haul_response_take_body(response, NULL));
            haul_response_free(response);
            body[len - 1] = 'x';
            free(body);
            continue;
        }
        haul_response_free(response);
    }
    haul_batch_free(batch);
}

int main(int argc, char **argv) {
    CHECK(argc == 2);
    base = argv[1];
    client = haul_client_new();
    orders();
    kinds();
    turns();
    runs();
    descriptors();
    rates();
    bounds();
    haul_client_free(client);
    puts("batched as it should be");
    return 0;
}
