/* The header fields of a proxy's answer to CONNECT, by both interfaces: tunneled PROXY. */
#include "check.h"

static void check_headers(CURL *easy) {
    struct curl_header *header = NULL;
    IS(curl_easy_header(easy, "X-Proxy", 0, CURLH_CONNECT, -1, &header), CURLHE_OK);
    CHECK(strcmp(header->value, "tunnel") == 0);
    IS(curl_easy_header(easy, "X-Proxy", 0, CURLH_CONNECT, 0, &header), CURLHE_OK);
    IS(curl_easy_header(easy, "X-Server", 0, CURLH_HEADER, 0, &header), CURLHE_OK);
    IS(curl_easy_header(easy, "X-Server", 0, CURLH_HEADER, 1, &header), CURLHE_NOREQUEST);
    int fields = 0;
    for (header = NULL; (header = curl_easy_nextheader(easy, CURLH_CONNECT | CURLH_HEADER, -1, header)) != NULL;)
        fields++;
    IS(fields, 3);
}

int main(int argc, char **argv) {
    CHECK(argc == 2);
    for (long verbose = 0; verbose < 2; verbose++) {
        struct memory body = {0}, heads = {0};
        CURL *easy = new_easy("http://h.example/", &body);
        IS(curl_easy_setopt(easy, CURLOPT_PROXY, argv[1]), CURLE_OK);
        IS(curl_easy_setopt(easy, CURLOPT_HTTPPROXYTUNNEL, 1L), CURLE_OK);
        IS(curl_easy_setopt(easy, CURLOPT_FRESH_CONNECT, 1L), CURLE_OK);
        IS(curl_easy_setopt(easy, CURLOPT_VERBOSE, verbose), CURLE_OK);
        IS(curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, collect), CURLE_OK);
        IS(curl_easy_setopt(easy, CURLOPT_HEADERDATA, &heads), CURLE_OK);
        IS(curl_easy_perform(easy), CURLE_OK);
        check_headers(easy);
        CURLM *multi = curl_multi_init();
        IS(curl_multi_add_handle(multi, easy), CURLM_OK);
        for (int running = 1; running > 0;) {
            IS(curl_multi_perform(multi, &running), CURLM_OK);
            IS(curl_multi_poll(multi, NULL, 0, 1000, NULL), CURLM_OK);
        }
        CHECK(strcmp(text_of(&body), "throughthrough") == 0);
        check_headers(easy);
        curl_multi_remove_handle(multi, easy);
        curl_multi_cleanup(multi);
        curl_easy_cleanup(easy);
        forget(&body);
        forget(&heads);
    }
    puts("tunneled");
    return 0;
}
