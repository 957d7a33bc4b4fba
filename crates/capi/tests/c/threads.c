/* Threads that share connections and a jar, while another changes settings: threads BASE-URL THREADS ROUNDS. */
#include "check.h"
#include <pthread.h>

static haul_client *shared;
static haul_jar *jar;
static const char *base;
static long rounds;

static void *work(void *number) {
    /* Every other thread has its own client, which shares connections; the others use one client. */
    haul_client *own = (long)number % 2 ? haul_client_clone(shared) : NULL;
    haul_client *client = own ? own : shared;
    haul_response *place = haul_response_new();
    char url[1024], set[64], *cookie;
    snprintf(url, sizeof url, "%s/echo", base);
    for (long i = 0; i < rounds; i++) {
        haul_call call = HAUL_CALL_INIT;
        haul_reply reply;
        call.url = slice(url);
        CHECK(haul_client_call(client, &call, place, &reply) == HAUL_STATUS_OK && reply.status == 200);
        snprintf(set, sizeof set, "t%ld=%ld; Path=/", (long)number, i);
        CHECK(haul_jar_set(jar, url, set) == HAUL_STATUS_OK);
        CHECK(haul_jar_cookie_header(jar, url, &cookie) == HAUL_STATUS_OK && cookie != NULL);
        haul_free(cookie);
        if (i % 8 == 0)
            CHECK(haul_client_set_timeout(client, 30000 + (uint64_t)i) == HAUL_STATUS_OK);
        if (i % 16 == 0)
            CHECK(haul_request_new("GET", "no url") == NULL || haul_last_error() != NULL);
    }
    haul_response_free(place);
    haul_client_free(own);
    return NULL;
}

int main(int argc, char **argv) {
    CHECK(argc == 4);
    long count = atol(argv[2]);
    pthread_t threads[64];
    CHECK(count <= 64);
    base = argv[1];
    rounds = atol(argv[3]);
    shared = haul_client_new();
    jar = haul_jar_new();
    haul_client_set_jar(shared, jar);
    for (long i = 0; i < count; i++)
        CHECK(pthread_create(&threads[i], NULL, work, (void *)i) == 0);
    for (long i = 0; i < count; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    uint64_t connections, requests;
    haul_client_stats(shared, &connections, &requests, NULL);
    CHECK(requests == (uint64_t)(count * rounds) && connections <= (uint64_t)count);
    CHECK(haul_jar_count(jar) == (size_t)count);
    printf("%llu requests over %llu connections\n", (unsigned long long)requests, (unsigned long long)connections);
    haul_jar_free(jar);
    haul_client_free(shared);
    return 0;
}
