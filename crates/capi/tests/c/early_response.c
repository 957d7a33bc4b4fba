/* An early response to a slow, endless upload: early_response BASE-URL, whose server refuses each request at once. */
#include "check.h"
#include <unistd.h>

/* Ends after much longer than a response takes. */
static size_t drip(void *user, char *buffer, size_t len) {
    int *left = user;
    usleep(15000);
    if (len < 4 || (*left)-- == 0)
        return HAUL_READ_ERROR;
    memcpy(buffer, "drip", 4);
    return 4;
}

int main(int argc, char **argv) {
    CHECK(argc == 2);
    haul_client *client = haul_client_new();
    CHECK(haul_client_set_expect_timeout(client, 0) == HAUL_STATUS_OK);
    const int64_t lengths[] = {-1, (int64_t)1 << 40};
    for (int i = 0; i < 2; i++) {
        int left = 2000;
        haul_response *response;
        haul_request *request = haul_request_new("POST", argv[1]);
        CHECK(haul_request_set_body_callback(request, drip, NULL, &left, lengths[i]) == HAUL_STATUS_OK);
        CHECK(haul_client_perform(client, request, &response) == HAUL_STATUS_OK);
        CHECK(haul_response_status(response) == 401 && is(haul_response_body(response), "no"));
        haul_response_free(response);
        haul_request_free(request);
    }
    haul_client_free(client);
    puts("heard early");
    return 0;
}
