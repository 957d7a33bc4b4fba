/* libuv: haul's descriptor is a uv_poll_t of the loop, beside a timer that stands for the program's own work.
 *
 *   cc uv.c $(pkg-config --cflags --libs haul libuv) -o uv
 *   ./uv http://127.0.0.1:8080/1 http://127.0.0.1:8080/2 ...
 */
#include <haul.h>
#include <stdio.h>
#include <uv.h>

static haul_batch *batch;
static uv_poll_t finished;
static uv_timer_t timer;
static unsigned ticks;
static int failed;

/* Takes what has finished. After the last one nothing is watched any more, so that the loop ends. */
static void take_finished(uv_poll_t *poll, int status, int events) {
    (void)status;
    (void)events;
    haul_response *response;
    void *url;
    while (haul_batch_next(batch, 0, &response, &url) == HAUL_STATUS_OK && response != NULL) {
        const haul_error *error = haul_response_error(response);
        if (error != NULL) {
            failed = 1;
            fprintf(stderr, "%s\n", haul_error_text(error));
        } else {
            haul_slice body = haul_response_body(response);
            printf("%s %u %zu\n", (const char *)url, haul_response_status(response), body.len);
        }
        haul_response_free(response);
    }
    if (haul_batch_pending(batch) == 0) {
        uv_poll_stop(poll);
        uv_timer_stop(&timer);
    }
}

static void tick(uv_timer_t *every) {
    (void)every;
    ticks++;
}

int main(int argc, char **argv) {
    haul_client *client = haul_client_new();
    batch = haul_batch_new(client);
    haul_batch_set_order(batch, HAUL_ORDER_COMPLETION);
    for (int i = 1; i < argc; i++) {
        haul_request *request = haul_request_new("GET", argv[i]);
        if (request == NULL || haul_batch_add(batch, request, argv[i]) != HAUL_STATUS_OK) {
            failed = 1;
            fprintf(stderr, "%s\n", haul_error_text(haul_last_error()));
        }
        haul_request_free(request);
    }
    uv_loop_t *loop = uv_default_loop();
    uv_timer_init(loop, &timer);
    uv_poll_init(loop, &finished, haul_batch_fd(batch));
    if (haul_batch_pending(batch) > 0) {
        uv_timer_start(&timer, tick, 10, 10);
        uv_poll_start(&finished, UV_READABLE, take_finished);
    }
    uv_run(loop, UV_RUN_DEFAULT);
    fprintf(stderr, "%u ticks\n", ticks);
    uv_close((uv_handle_t *)&timer, NULL);
    uv_close((uv_handle_t *)&finished, NULL);
    uv_run(loop, UV_RUN_DEFAULT);
    uv_loop_close(loop);
    haul_batch_free(batch);
    haul_client_free(client);
    return failed;
}
