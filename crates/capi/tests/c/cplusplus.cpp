// The header in C++: plus BASE-URL. C's macros, enums and callbacks as C++ has them.
#include <cstdlib>
#include <haul.h>
#include <iostream>
#include <string>

static int collect(void *user, const char *data, size_t len) {
    static_cast<std::string *>(user)->append(data, len);
    return 0;
}

int main(int argc, char **argv) {
    if (argc != 2)
        return 2;
    const std::string url = std::string(argv[1]) + "/small/4";
    std::string body;
    haul_client *client = haul_client_new();
    haul_response *place = haul_response_new();
    haul_call call = HAUL_CALL_INIT;
    haul_reply reply;
    call.url.data = url.data();
    call.url.len = url.size();
    call.on_body = collect;
    call.user = &body;
    if (haul_client_set_auth(client, HAUL_AUTH_NONE, nullptr, nullptr) != HAUL_STATUS_OK ||
        haul_client_call(client, &call, place, &reply) != HAUL_STATUS_OK) {
        std::cerr << haul_error_text(haul_last_error()) << std::endl;
        return 1;
    }
    std::cout << reply.status << ' ' << body;
    haul_response_free(place);
    haul_client_free(client);
    return EXIT_SUCCESS;
}
