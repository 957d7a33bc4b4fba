/* CHECK for the C test programs: prints the place of a failure. */
#ifndef CHECK_H
#define CHECK_H

#include <haul.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(what)                                                                                                    \
    do {                                                                                                               \
        if (!(what)) {                                                                                                 \
            fprintf(stderr, "%s:%d: not so: %s (last error: %s)\n", __FILE__, __LINE__, #what,                         \
                    haul_error_text(haul_last_error()));                                                               \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

static inline haul_slice slice(const char *text) {
    haul_slice made = {text, strlen(text)};
    return made;
}

static inline int is(haul_slice got, const char *wanted) {
    return got.data != NULL && got.len == strlen(wanted) && memcmp(got.data, wanted, got.len) == 0;
}

static inline int contains(haul_slice got, const char *wanted) {
    size_t len = strlen(wanted);
    for (size_t i = 0; got.data != NULL && i + len <= got.len; i++)
        if (memcmp(got.data + i, wanted, len) == 0)
            return 1;
    return 0;
}

static inline const char *under(const char *base, const char *path) {
    static char url[4][1024];
    static int turn;
    turn = (turn + 1) % 4;
    snprintf(url[turn], sizeof url[turn], "%s%s", base, path);
    return url[turn];
}

#endif
