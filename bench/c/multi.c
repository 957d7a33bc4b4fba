/* Several transfers at once in one thread by libcurl's multi interface, for the job libcurl:
 *
 *   multi URL...
 *
 * The program is written for libcurl, and runs with the library that LD_LIBRARY_PATH names. The bodies are discarded. Prints their
 * length.
 */
#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>

static unsigned long long total;

static size_t count_bytes(char *data, size_t size, size_t count, void *user) {
    (void)data, (void)user;
    total += size * count;
    return size * count;
}

static void fail(const char *what) {
    fprintf(stderr, "multi: %s\n", what);
    exit(1);
}

int main(int argc, char **argv) {
    curl_global_init(CURL_GLOBAL_ALL);
    CURLM *multi = curl_multi_init();
    for (int i = 1; i < argc; i++) {
        CURL *easy = curl_easy_init();
        curl_easy_setopt(easy, CURLOPT_URL, argv[i]);
        curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, count_bytes);
        if (curl_multi_add_handle(multi, easy) != CURLM_OK)
            fail("cannot add a handle");
    }
    int running = argc > 1, left;
    while (running > 0) {
        if (curl_multi_perform(multi, &running) != CURLM_OK)
            fail("cannot perform");
        if (running > 0 && curl_multi_poll(multi, NULL, 0, 1000, NULL) != CURLM_OK)
            fail("cannot poll");
    }
    CURLMsg *message;
    while ((message = curl_multi_info_read(multi, &left)) != NULL) {
        CURL *easy = message->easy_handle;
        if (message->data.result != CURLE_OK)
            fail(curl_easy_strerror(message->data.result));
        curl_multi_remove_handle(multi, easy);
        curl_easy_cleanup(easy);
    }
    curl_multi_cleanup(multi);
    printf("%llu\n", total);
    return 0;
}
