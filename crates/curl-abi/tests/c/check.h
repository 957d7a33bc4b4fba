/* CHECK for the C test programs: prints the place of a failure. Collects what callbacks get. */
#ifndef CHECK_H
#define CHECK_H

#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char error_buffer[CURL_ERROR_SIZE];

#define CHECK(what)                                                                                                    \
    do {                                                                                                               \
        if (!(what)) {                                                                                                 \
            fprintf(stderr, "%s:%d: not so: %s (last error: %s)\n", __FILE__, __LINE__, #what, error_buffer);          \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

#define IS(got, wanted)                                                                                                \
    do {                                                                                                               \
        long long got_ = (long long)(got), wanted_ = (long long)(wanted);                                              \
        if (got_ != wanted_) {                                                                                         \
            fprintf(stderr, "%s:%d: %s is %lld, not %lld (last error: %s)\n", __FILE__, __LINE__, #got, got_, wanted_,  \
                    error_buffer);                                                                                     \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

struct memory {
    char *start;
    size_t length;
    size_t calls;
    size_t largest;
};

static size_t collect(char *data, size_t size, size_t count, void *user) {
    struct memory *memory = user;
    size_t length = size * count;
    memory->start = realloc(memory->start, memory->length + length + 1);
    memcpy(memory->start + memory->length, data, length);
    memory->length += length;
    memory->start[memory->length] = 0;
    memory->calls++;
    if (length > memory->largest)
        memory->largest = length;
    return length;
}

static inline void forget(struct memory *memory) {
    free(memory->start);
    memset(memory, 0, sizeof *memory);
}

static inline const char *text_of(const struct memory *memory) {
    return memory->start == NULL ? "" : memory->start;
}

static inline int contains(const struct memory *memory, const char *wanted) {
    return strstr(text_of(memory), wanted) != NULL;
}

static inline const char *under(const char *base, const char *path) {
    static char url[4][1024];
    static int turn;
    turn = (turn + 1) % 4;
    snprintf(url[turn], sizeof url[turn], "%s%s", base, path);
    return url[turn];
}

/* A handle that collects the body, with its errors in error_buffer. */
static inline CURL *new_easy(const char *url, struct memory *body) {
    CURL *easy = curl_easy_init();
    CHECK(easy != NULL);
    IS(curl_easy_setopt(easy, CURLOPT_URL, url), CURLE_OK);
    IS(curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, collect), CURLE_OK);
    IS(curl_easy_setopt(easy, CURLOPT_WRITEDATA, body), CURLE_OK);
    IS(curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, error_buffer), CURLE_OK);
    return easy;
}

static inline long long_info(CURL *easy, CURLINFO info) {
    long value = -77;
    IS(curl_easy_getinfo(easy, info, &value), CURLE_OK);
    return value;
}

static inline const char *text_info(CURL *easy, CURLINFO info) {
    char *value = NULL;
    IS(curl_easy_getinfo(easy, info, &value), CURLE_OK);
    return value == NULL ? "" : value;
}

static inline curl_off_t off_t_info(CURL *easy, CURLINFO info) {
    curl_off_t value = -77;
    IS(curl_easy_getinfo(easy, info, &value), CURLE_OK);
    return value;
}

#endif
