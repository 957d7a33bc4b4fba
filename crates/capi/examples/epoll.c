/* Linux's epoll: one loop waits for haul's descriptor and for others, here a timer that stands for the program's own work.
 *
 *   ./epoll http://127.0.0.1:8080/1 http://127.0.0.1:8080/2 ...
 */
#include <haul.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

static int failed;

/* Takes what has finished. Adds no wait: haul_batch_next returns at once. */
static void take_finished(haul_batch *batch) {
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
}

static void watch(int epoll, int descriptor) {
    struct epoll_event event = {.events = EPOLLIN, .data.fd = descriptor};
    if (epoll_ctl(epoll, EPOLL_CTL_ADD, descriptor, &event) != 0)
        perror("epoll_ctl");
}

int main(int argc, char **argv) {
    haul_client *client = haul_client_new();
    haul_batch *batch = haul_batch_new(client);
    haul_batch_set_order(batch, HAUL_ORDER_COMPLETION);
    for (int i = 1; i < argc; i++) {
        haul_request *request = haul_request_new("GET", argv[i]);
        if (request == NULL || haul_batch_add(batch, request, argv[i]) != HAUL_STATUS_OK) {
            failed = 1;
            fprintf(stderr, "%s\n", haul_error_text(haul_last_error()));
        }
        haul_request_free(request);
    }
    int epoll = epoll_create1(EPOLL_CLOEXEC);
    int timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
    struct itimerspec every = {.it_interval = {.tv_nsec = 10000000}, .it_value = {.tv_nsec = 10000000}};
    timerfd_settime(timer, 0, &every, NULL);
    watch(epoll, timer);
    watch(epoll, haul_batch_fd(batch));
    uint64_t ticks = 0;
    while (haul_batch_pending(batch) > 0) {
        struct epoll_event events[2];
        int ready = epoll_wait(epoll, events, 2, -1);
        for (int i = 0; i < ready; i++) {
            uint64_t count = 0;
            if (events[i].data.fd != timer)
                take_finished(batch);
            else if (read(timer, &count, sizeof count) == sizeof count)
                ticks += count;
        }
    }
    fprintf(stderr, "%" PRIu64 " ticks\n", ticks);
    close(timer);
    close(epoll);
    haul_batch_free(batch);
    haul_client_free(client);
    return failed;
}
