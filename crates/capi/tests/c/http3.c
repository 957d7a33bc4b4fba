/* Requests over HTTP/3: http3 URL CA-FILE CLOSED-URL, where the first URL's server speaks HTTP/3 and nothing listens at the other. */
#include "check.h"

int main(int argc, char **argv) {
    CHECK(argc == 4);
    haul_client *client = haul_client_new();
    CHECK(haul_client_set_ca_file(client, argv[2]) == HAUL_STATUS_OK);
    haul_response *place = haul_response_new();
    haul_reply reply;
    haul_call call = HAUL_CALL_INIT;
    call.url = slice(argv[1]);
    const int ways[] = {HAUL_HTTP_3_ONLY, HAUL_HTTP_2, HAUL_HTTP_3_ONLY};
    const int versions[] = {30, 20, 30};
    for (int i = 0; i < 3; i++) {
        CHECK(haul_client_set_http(client, ways[i]) == HAUL_STATUS_OK);
        CHECK(haul_client_call(client, &call, place, &reply) == HAUL_STATUS_OK);
        haul_slice body = {reply.body, reply.body_len};
        CHECK(reply.status == 200 && reply.version == versions[i] && is(body, "small\n"));
        CHECK(strcmp(haul_response_version(place), i == 1 ? "HTTP/2" : "HTTP/3") == 0);
    }
    call.url = slice(argv[3]);
    CHECK(haul_client_call(client, &call, place, &reply) == HAUL_STATUS_CONNECT);
    haul_response_free(place);
    haul_client_free(client);
    puts("by HTTP/3");
    return 0;
}
