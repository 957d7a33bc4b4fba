/* The functions of libcurl with variable arguments. Each takes the next argument by its type and passes it on to a function of this
 * crate, which has a fixed number of arguments. Rust can define no variadic function, and reading a variadic argument as if it were
 * an ordinary one is right on some ABIs only. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define EXPORT __attribute__((visibility("default")))

/* Ranges of option numbers, one for each type of argument. */
enum { OBJECT_POINTS = 10000, OFF_TS = 30000, BLOBS = 40000 };

int haul_curl_easy_setopt_number(void *easy, int option, int64_t value);
int haul_curl_easy_setopt_pointer(void *easy, int option, void *value);
int haul_curl_easy_getinfo(void *easy, int info, void *place);
int haul_curl_multi_setopt_number(void *multi, int option, int64_t value);
int haul_curl_multi_setopt_pointer(void *multi, int option, void *value);
int haul_curl_share_setopt_number(void *share, int option, int64_t value);
int haul_curl_share_setopt_pointer(void *share, int option, void *value);

static int takes_long(int option) {
    return option >= 0 && option < OBJECT_POINTS;
}

static int takes_off_t(int option) {
    return option >= OFF_TS && option < BLOBS;
}

EXPORT int curl_easy_setopt(void *easy, int option, ...) {
    va_list arguments;
    int code;
    va_start(arguments, option);
    if (takes_long(option))
        code = haul_curl_easy_setopt_number(easy, option, va_arg(arguments, long));
    else if (takes_off_t(option))
        code = haul_curl_easy_setopt_number(easy, option, va_arg(arguments, int64_t));
    else
        code = haul_curl_easy_setopt_pointer(easy, option, va_arg(arguments, void *));
    va_end(arguments);
    return code;
}

EXPORT int curl_easy_getinfo(void *easy, int info, ...) {
    va_list arguments;
    va_start(arguments, info);
    int code = haul_curl_easy_getinfo(easy, info, va_arg(arguments, void *));
    va_end(arguments);
    return code;
}

EXPORT int curl_multi_setopt(void *multi, int option, ...) {
    va_list arguments;
    int code;
    va_start(arguments, option);
    if (takes_long(option))
        code = haul_curl_multi_setopt_number(multi, option, va_arg(arguments, long));
    else if (takes_off_t(option))
        code = haul_curl_multi_setopt_number(multi, option, va_arg(arguments, int64_t));
    else
        code = haul_curl_multi_setopt_pointer(multi, option, va_arg(arguments, void *));
    va_end(arguments);
    return code;
}

/* CURLSHOPT_SHARE and CURLSHOPT_UNSHARE have an int, all others a pointer. */
EXPORT int curl_share_setopt(void *share, int option, ...) {
    va_list arguments;
    int code;
    va_start(arguments, option);
    if (option == 1 || option == 2)
        code = haul_curl_share_setopt_number(share, option, va_arg(arguments, int));
    else
        code = haul_curl_share_setopt_pointer(share, option, va_arg(arguments, void *));
    va_end(arguments);
    return code;
}

/* curl_formadd. The words are CURLFORM_ numbers, each followed by its value, and end with CURLFORM_END. */
struct form_word {
    int option;
    int64_t number;
    void *pointer;
};

struct form_list_entry {
    int option;
    const char *value;
};

enum {
    FORM_NAMELENGTH = 3,
    FORM_CONTENTSLENGTH = 6,
    FORM_ARRAY = 8,
    FORM_BUFFERLENGTH = 13,
    FORM_END = 17,
    FORM_CONTENTLEN = 20,
    FORM_LAST = 21,
    FORMADD_MEMORY = 1
};

int haul_curl_formadd(void **first, void **last, const struct form_word *words, size_t count);

static int has_number(int option) {
    return option == FORM_NAMELENGTH || option == FORM_CONTENTSLENGTH || option == FORM_BUFFERLENGTH ||
           option == FORM_CONTENTLEN;
}

struct form_words {
    struct form_word *start;
    size_t count, room;
};

/* Appends a word without a value. Returns NULL if there is no memory. */
static struct form_word *add_word(struct form_words *words, int option) {
    if (words->count == words->room) {
        size_t room = words->room == 0 ? 16 : 2 * words->room;
        struct form_word *start = realloc(words->start, room * sizeof *start);
        if (start == NULL)
            return NULL;
        words->start = start;
        words->room = room;
    }
    struct form_word *word = &words->start[words->count++];
    word->option = option;
    word->pointer = NULL;
    word->number = 0;
    return word;
}

EXPORT int curl_formadd(void **first, void **last, ...) {
    struct form_words words = {NULL, 0, 0};
    struct form_word *word = NULL;
    int is_complete = 1, result = FORMADD_MEMORY;
    va_list arguments;
    va_start(arguments, last);
    while (is_complete) {
        int option = va_arg(arguments, int);
        if (option == FORM_END)
            break;
        if (option == FORM_ARRAY) {
            const struct form_list_entry *entry = va_arg(arguments, const struct form_list_entry *);
            for (; entry != NULL && entry->option != FORM_END; entry++) {
                word = add_word(&words, entry->option == FORM_ARRAY ? -1 : entry->option);
                if (word == NULL)
                    break;
                word->pointer = (void *)(uintptr_t)entry->value;
                word->number = (int64_t)(intptr_t)entry->value;
            }
            is_complete = entry == NULL || entry->option == FORM_END;
        } else if (option > 0 && option < FORM_LAST) {
            word = add_word(&words, option);
            if (word == NULL)
                is_complete = 0;
            else if (option == FORM_CONTENTLEN)
                word->number = va_arg(arguments, int64_t);
            else if (has_number(option))
                word->number = va_arg(arguments, long);
            else
                word->pointer = va_arg(arguments, void *);
        } else {
            /* The type of what follows is unknown. */
            is_complete = add_word(&words, -1) != NULL;
            break;
        }
    }
    va_end(arguments);
    if (is_complete)
        result = haul_curl_formadd(first, last, words.start, words.count);
    free(words.start);
    return result;
}

/* The printf functions. libcurl's formats are a part of those of the C library. */

EXPORT int curl_mvprintf(const char *format, va_list arguments) {
    return vprintf(format, arguments);
}

EXPORT int curl_mvfprintf(FILE *file, const char *format, va_list arguments) {
    return vfprintf(file, format, arguments);
}

EXPORT int curl_mvsprintf(char *buffer, const char *format, va_list arguments) {
    return vsprintf(buffer, format, arguments);
}

EXPORT int curl_mvsnprintf(char *buffer, size_t size, const char *format, va_list arguments) {
    int length = vsnprintf(buffer, size, format, arguments);
    /* libcurl returns the number of bytes written. */
    return length >= 0 && (size_t)length >= size ? (int)(size > 0 ? size - 1 : 0) : length;
}

EXPORT char *curl_mvaprintf(const char *format, va_list arguments) {
    char *text;
    return vasprintf(&text, format, arguments) < 0 ? NULL : text;
}

EXPORT int curl_mprintf(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    int length = curl_mvprintf(format, arguments);
    va_end(arguments);
    return length;
}

EXPORT int curl_mfprintf(FILE *file, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    int length = curl_mvfprintf(file, format, arguments);
    va_end(arguments);
    return length;
}

EXPORT int curl_msprintf(char *buffer, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    int length = curl_mvsprintf(buffer, format, arguments);
    va_end(arguments);
    return length;
}

EXPORT int curl_msnprintf(char *buffer, size_t size, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    int length = curl_mvsnprintf(buffer, size, format, arguments);
    va_end(arguments);
    return length;
}

EXPORT char *curl_maprintf(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    char *text = curl_mvaprintf(format, arguments);
    va_end(arguments);
    return text;
}

/* The name of the TLS library in curl_version_info. Programs that were compiled for a flavour of libcurl refuse to run unless the name
 * begins with the word of that flavour, so scripts/libcurl.sh links another definition into the other flavour. */
extern const char haul_curl_tls_name[];
__attribute__((weak)) const char haul_curl_tls_name[] = "OpenSSL/0 (rustls)";

/* The standard streams, which are macros in some C libraries. */
void *haul_curl_standard_stream(int number) {
    return number == 0 ? stdin : number == 1 ? stdout : stderr;
}
