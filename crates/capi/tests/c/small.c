/* A few small requests on one connection, for a count of system calls: small BASE-URL KIND COUNT. KIND is get, post, or
 * multipart. Each is marked by a write to descriptor 99, which fails. */
#include "check.h"
#include <unistd.h>

int main(int argc, char **argv) {
    CHECK(argc == 4);
    haul_client *client = haul_client_new();
    /* A time limit, which most programs set, costs no system call. */
    haul_client_set_idle_timeout(client, 30000);
    haul_request *form = haul_request_new("POST", under(argv[1], "/echo"));
    CHECK(haul_request_add_part(form, "name", "value", 5, NULL, NULL) == HAUL_STATUS_OK);
    CHECK(haul_request_add_part(form, "file", "content", 7, "a.txt", NULL) == HAUL_STATUS_OK);
    haul_response *place = haul_response_new();
    for (int i = 0; i < atoi(argv[3]); i++) {
        if (write(99, "", 0) == 0)
            return 1;
        if (strcmp(argv[2], "multipart") == 0) {
            haul_response *response;
            CHECK(haul_client_perform(client, form, &response) == HAUL_STATUS_OK);
            haul_response_free(response);
            continue;
        }
        haul_call call = HAUL_CALL_INIT;
        call.url = slice(under(argv[1], "/echo"));
        if (strcmp(argv[2], "post") == 0) {
            call.method = slice("POST");
            call.body = slice("name=value&other=thing");
        }
        CHECK(haul_client_call(client, &call, place, NULL) == HAUL_STATUS_OK);
    }
    if (write(99, "", 0) == 0)
        return 1;
    haul_response_free(place);
    haul_request_free(form);
    haul_client_free(client);
    return 0;
}
