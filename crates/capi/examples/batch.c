/* Fetches many pages at once, and prints URL, status and length in the order of the arguments.
 *
 *   ./batch http://127.0.0.1:8080/1 http://127.0.0.1:8080/2 ...
 */
#include <haul.h>
#include <stdio.h>

static int done(void *context, void *user, haul_response *response) {
    int *failed = context;
    const haul_error *error = haul_response_error(response);
    if (error != NULL) {
        printf("%s failed: %s\n", (const char *)user, haul_error_text(error));
        ++*failed;
    } else {
        printf("%s %u %zu\n", (const char *)user, haul_response_status(response), haul_response_body(response).len);
    }
    haul_response_free(response);
    return 0;
}

int main(int argc, char **argv) {
    int failed = 0;
    haul_client *client = haul_client_new();
    haul_batch *batch = haul_batch_new(client);
    haul_batch_set_parallel(batch, 16, 8);
    haul_batch_set_order(batch, HAUL_ORDER_INPUT);
    for (int i = 1; i < argc; i++) {
        haul_request *request = haul_request_new("GET", argv[i]);
        if (request == NULL || haul_batch_add(batch, request, argv[i]) != HAUL_STATUS_OK) {
            fprintf(stderr, "batch: %s\n", haul_error_text(haul_last_error()));
            failed++;
        }
        haul_request_free(request);
    }
    if (haul_batch_run(batch, done, &failed) != HAUL_STATUS_OK) {
        fprintf(stderr, "batch: %s\n", haul_error_text(haul_last_error()));
        failed++;
    }
    haul_batch_free(batch);
    haul_client_free(client);
    return failed > 0;
}
