/* Sends one GET, and prints status, headers and body.
 *
 *   cc get.c $(pkg-config --cflags --libs haul) -o get && ./get http://127.0.0.1:8080/
 */
#include <haul.h>
#include <stdio.h>

int main(int argc, char **argv) {
    if (argc != 2) {
        fprintf(stderr, "usage: get URL\n");
        return 2;
    }
    haul_client *client = haul_client_new();
    haul_request *request = haul_request_new("GET", argv[1]);
    haul_response *response = NULL;

    haul_client_set_timeout(client, 30000);
    haul_client_set_decode(client, true);
    /* If haul_request_new fails, it returns NULL, which haul_client_perform refuses: print the first error. */
    if (request == NULL || haul_client_perform(client, request, &response) != HAUL_STATUS_OK) {
        const haul_error *error = haul_last_error();
        fprintf(stderr, "get: %s\n", haul_error_text(error));
        int status = haul_error_code(error);
        haul_request_free(request);
        haul_client_free(client);
        return status;
    }

    haul_reply reply;
    haul_response_reply(response, &reply);
    fprintf(stderr, "%s %u %.*s\n", haul_response_version(response), reply.status, (int)reply.reason.len,
            reply.reason.data);
    for (size_t i = 0; i < reply.header_count; i++)
        fprintf(stderr, "%.*s: %.*s\n", (int)reply.headers[i].name.len, reply.headers[i].name.data,
                (int)reply.headers[i].value.len, reply.headers[i].value.data);
    fwrite(reply.body, 1, reply.body_len, stdout);

    haul_response_free(response);
    haul_request_free(request);
    haul_client_free(client);
    return 0;
}
