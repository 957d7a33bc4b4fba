/* Very many requests of all small kinds: soak BASE-URL COUNT. Memory must stay flat; the figures go to standard output.
 * What is measured begins after a tenth of them, when buffers have their size and the allocator its arenas. */
#include "check.h"
#include <unistd.h>

static long resident_kib(void) {
    long pages = 0, unused;
    FILE *file = fopen("/proc/self/statm", "r");
    CHECK(file != NULL && fscanf(file, "%ld %ld", &unused, &pages) == 2);
    fclose(file);
    return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

static void *grow(void *user, size_t size) {
    void **memory = user;
    return *memory = realloc(*memory, size);
}

int main(int argc, char **argv) {
    CHECK(argc == 3);
    long count = atol(argv[2]), before = 0;
    void *memory = NULL;
    haul_client *client = haul_client_new();
    haul_jar *jar = haul_jar_new();
    haul_client_set_jar(client, jar);
    haul_client_set_idle_timeout(client, 60000);
    haul_response *place = haul_response_new();
    haul_header header = {slice("X-Key"), slice("value")};
    char set[64];
    for (long i = 0; i < count; i++) {
        haul_call call = HAUL_CALL_INIT;
        haul_reply reply;
        call.headers = &header;
        call.header_count = 1;
        call.url = slice(under(argv[1], i % 4 == 3 ? "/bytes/20000" : "/echo"));
        if (i % 4 == 1) {
            call.method = slice("POST");
            call.body = slice("name=value&other=thing");
        }
        if (i % 4 == 2)
            call.reserve = grow, call.user = &memory;
        CHECK(haul_client_call(client, &call, place, &reply) == HAUL_STATUS_OK && reply.status == 200);
        if (i % 16 == 5) {
            snprintf(set, sizeof set, "c%ld=%ld; Path=/", i % 7, i);
            CHECK(haul_jar_set(jar, under(argv[1], "/"), set) == HAUL_STATUS_OK);
        }
        if (i % 16 == 6) {
            /* With request and response objects. */
            haul_response *response;
            haul_request *request = haul_request_new("POST", under(argv[1], "/echo"));
            haul_request_set_header(request, "X-Other", "1");
            haul_request_add_part(request, "a", "b", 1, "a.txt", NULL);
            CHECK(haul_client_perform(client, request, &response) == HAUL_STATUS_OK);
            CHECK(haul_response_peer(response, NULL) != NULL);
            haul_response_free(response);
            haul_request_free(request);
            CHECK(haul_request_new("GET", "http://") == NULL);
        }
        if (i == count / 10)
            before = resident_kib();
    }
    uint64_t connections;
    haul_client_stats(client, &connections, NULL, NULL);
    long after = resident_kib();
    printf("%ld requests, %llu connections, resident %ld KiB after a tenth, %ld KiB at the end\n", count,
           (unsigned long long)connections, before, after);
    CHECK(connections == 1 && after - before <= 256);
    free(memory);
    haul_response_free(place);
    haul_jar_free(jar);
    haul_client_free(client);
    return 0;
}
