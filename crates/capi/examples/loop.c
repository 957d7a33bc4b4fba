/* An event loop: the program polls haul's descriptor, and does other work every 10 ms. No call of haul
 * waits.
 *
 *   ./loop http://127.0.0.1:8080/1 http://127.0.0.1:8080/2 ...
 */
#include <haul.h>
#include <poll.h>
#include <stdio.h>

int main(int argc, char **argv) {
    int failed = 0;
    unsigned ticks = 0;
    haul_client *client = haul_client_new();
    haul_batch *batch = haul_batch_new(client);
    haul_batch_set_order(batch, HAUL_ORDER_COMPLETION);
    for (int i = 1; i < argc; i++) {
        haul_request *request = haul_request_new("GET", argv[i]);
        if (request == NULL || haul_batch_add(batch, request, argv[i]) != HAUL_STATUS_OK)
            failed++;
        haul_request_free(request);
    }
    struct pollfd waits[1] = {{.fd = haul_batch_fd(batch), .events = POLLIN}};
    while (haul_batch_pending(batch) > 0) {
        if (poll(waits, 1, 10) == 0) {
            ticks++; /* other work */
            continue;
        }
        haul_response *response;
        void *url;
        while (haul_batch_next(batch, 0, &response, &url) == HAUL_STATUS_OK && response != NULL) {
            if (haul_response_error(response) != NULL)
                failed++;
            printf("%s %u\n", (const char *)url, haul_response_status(response));
            haul_response_free(response);
        }
    }
    fprintf(stderr, "%u ticks\n", ticks);
    haul_batch_free(batch);
    haul_client_free(client);
    return failed > 0;
}
