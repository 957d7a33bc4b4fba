/* The steps of requests, while they happen: steps BASE-URL CLOSED-URL. */
#include "check.h"

/* What a program heard so far: a letter for each step. */
typedef struct {
    char steps[64];
    size_t count;
    uint64_t last;
    uint16_t status;
    uint64_t wait_ms;
    haul_status error;
    char url[256];
    int body_came;
    size_t steps_before_body;
} heard;

static void on_step(void *user, const haul_step_info *info) {
    heard *all = user;
    CHECK(all->count + 1 < sizeof all->steps);
    CHECK(info->time >= all->last);
    all->last = info->time;
    all->steps[all->count++] = "?RCTSHFAD"[info->step];
    all->steps[all->count] = '\0';
    all->status = info->status;
    if (info->step == HAUL_STEP_RETRY)
        all->wait_ms = info->wait_ms;
    all->error = info->error == NULL ? HAUL_STATUS_OK : haul_error_code(info->error);
    CHECK(info->url.len < sizeof all->url);
    memcpy(all->url, info->url.data, info->url.len);
    all->url[info->url.len] = '\0';
}

static int on_body(void *user, const char *data, size_t len) {
    (void)data;
    heard *all = user;
    if (!all->body_came)
        all->steps_before_body = all->count;
    all->body_came = 1;
    return len == 0;
}

int main(int argc, char **argv) {
    CHECK(argc == 3);
    haul_client *client = haul_client_new();
    haul_response *place = haul_response_new();
    haul_reply reply;

    /* A redirect. The name is an address, which need not be resolved. */
    heard all = {0};
    haul_call call = HAUL_CALL_INIT;
    call.url = slice(under(argv[1], "/redirect/302?to=/small"));
    call.on_step = on_step;
    call.step_user = &all;
    CHECK(haul_client_call(client, &call, place, &reply) == HAUL_STATUS_OK && reply.status == 200);
    const char *steps = all.steps + (all.steps[0] == 'R');
    CHECK(strcmp(steps, "CSHFSHD") == 0);
    CHECK(all.status == 200 && all.error == HAUL_STATUS_OK && all.last > 0);
    CHECK(strcmp(all.url, under(argv[1], "/small")) == 0);

    /* The steps come before what follows them. */
    memset(&all, 0, sizeof all);
    haul_request *request = haul_request_new("GET", under(argv[1], "/bytes/300000"));
    CHECK(haul_request_set_on_step(request, on_step, &all) == HAUL_STATUS_OK);
    CHECK(haul_request_set_output(request, NULL, NULL, on_body, &all) == HAUL_STATUS_OK);
    haul_response *response;
    CHECK(haul_client_perform(client, request, &response) == HAUL_STATUS_OK);
    CHECK(strcmp(all.steps, "SHD") == 0 && all.body_came && all.steps_before_body == 2);
    haul_response_free(response);

    /* In a stream, the end comes with the end of the body. */
    memset(&all, 0, sizeof all);
    CHECK(haul_client_open(client, request, &response) == HAUL_STATUS_OK);
    CHECK(strcmp(all.steps, "SH") == 0);
    char buffer[4096];
    size_t got;
    do
        CHECK(haul_response_read(response, buffer, sizeof buffer, &got) == HAUL_STATUS_OK);
    while (got > 0);
    CHECK(strcmp(all.steps, "SHD") == 0);
    haul_response_free(response);
    CHECK(haul_request_set_on_step(request, NULL, NULL) == HAUL_STATUS_OK);
    CHECK(haul_client_perform(client, request, &response) == HAUL_STATUS_OK && strcmp(all.steps, "SHD") == 0);
    haul_response_free(response);
    haul_request_free(request);
    CHECK(haul_request_set_on_step(NULL, on_step, &all) == HAUL_STATUS_SETUP);

    /* A retry. */
    memset(&all, 0, sizeof all);
    CHECK(haul_client_set_retries(client, 1) == HAUL_STATUS_OK);
    call.url = slice(under(argv[1], "/flaky/1/small"));
    CHECK(haul_client_call(client, &call, place, &reply) == HAUL_STATUS_OK && reply.status == 200);
    CHECK(strcmp(all.steps, "SHASHD") == 0 && all.wait_ms > 0);

    /* A failure. */
    memset(&all, 0, sizeof all);
    CHECK(haul_client_set_retries(client, 0) == HAUL_STATUS_OK);
    call.url = slice(argv[2]);
    CHECK(haul_client_call(client, &call, place, &reply) == HAUL_STATUS_CONNECT);
    CHECK(all.steps[all.count - 1] == 'D' && all.error == HAUL_STATUS_CONNECT && all.status == 0);

    haul_response_free(place);
    haul_client_free(client);
    puts("told in time");
    return 0;
}
