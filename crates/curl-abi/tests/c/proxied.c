/* A request by a proxy, and one to a Unix socket that does not exist: proxied PROXY. */
#include "check.h"

int main(int argc, char **argv) {
    CHECK(argc == 2);
    struct memory body = {0};
    CURL *easy = new_easy("http://h.example/page?x", &body);
    IS(curl_easy_setopt(easy, CURLOPT_PROXY, argv[1]), CURLE_OK);
    IS(curl_easy_setopt(easy, CURLOPT_PROXYUSERPWD, "me:secret"), CURLE_OK);
    struct curl_slist *fields = curl_slist_append(NULL, "X-Proxy: 1");
    curl_easy_setopt(easy, CURLOPT_PROXYHEADER, fields);
    IS(curl_easy_perform(easy), CURLE_OK);
    CHECK(strcmp(text_of(&body), "by proxy") == 0);
    long used = 0;
    curl_easy_getinfo(easy, (CURLINFO)(CURLINFO_LONG + 66), &used);
    IS(used, 1);
    /* Not for this host; and none at all. */
    curl_easy_setopt(easy, CURLOPT_URL, "http://h.invalid/");
    curl_easy_setopt(easy, CURLOPT_NOPROXY, "h.invalid");
    IS(curl_easy_perform(easy), CURLE_COULDNT_RESOLVE_HOST);
    curl_easy_setopt(easy, CURLOPT_PROXY, "");
    curl_easy_setopt(easy, CURLOPT_UNIX_SOCKET_PATH, "/nonexistent/socket");
    IS(curl_easy_perform(easy), CURLE_COULDNT_CONNECT);
    curl_slist_free_all(fields);
    forget(&body);
    curl_easy_cleanup(easy);
    puts("proxied");
    return 0;
}
