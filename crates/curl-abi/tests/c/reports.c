/* What a program is told about a transfer, before, during and after it: reports BASE-URL ONCE-URL. The server of ONCE-URL closes
   its connection after each response. */
#include "check.h"

static const char *base;

static void urls(void) {
    struct memory body = {0};
    CURL *empty = curl_easy_init();
    char *url = NULL;
    IS(curl_easy_getinfo(empty, CURLINFO_EFFECTIVE_URL, &url), CURLE_OK);
    CHECK(url != NULL && *url == 0);
    curl_easy_cleanup(empty);
    CURL *easy = new_easy("http://h.example/a", &body), *copy = curl_easy_duphandle(easy);
    CHECK(strcmp(text_info(easy, CURLINFO_EFFECTIVE_URL), "http://h.example/a") == 0);
    CHECK(strcmp(text_info(copy, CURLINFO_EFFECTIVE_URL), "http://h.example/a") == 0);
    curl_easy_setopt(easy, CURLOPT_URL, "http://h.example/b");
    CHECK(strcmp(text_info(easy, CURLINFO_EFFECTIVE_URL), "http://h.example/b") == 0);
    curl_easy_cleanup(copy);
    curl_easy_cleanup(easy);
}

static void cookies(void) {
    CURL *easy = curl_easy_init();
    struct curl_slist *list = NULL;
    curl_easy_setopt(easy, CURLOPT_COOKIELIST, "Set-Cookie: first=1; Domain=h.example; Path=/");
    curl_easy_setopt(easy, CURLOPT_COOKIELIST, "Set-Cookie: second=2; Domain=h.example; Path=/");
    IS(curl_easy_getinfo(easy, CURLINFO_COOKIELIST, &list), CURLE_OK);
    CHECK(list != NULL && strstr(list->data, "first") != NULL && strstr(list->next->data, "second") != NULL);
    curl_slist_free_all(list);
    curl_easy_cleanup(easy);
}

static int collect_text(CURL *easy, curl_infotype kind, char *data, size_t size, void *user) {
    (void)easy;
    if (kind == CURLINFO_TEXT)
        collect(data, 1, size, user);
    return 0;
}

static int occurrences(const struct memory *memory, const char *wanted) {
    int count = 0;
    for (const char *at = text_of(memory); (at = strstr(at, wanted)) != NULL; at++)
        count++;
    return count;
}

static void ends_of_connections(const char *once) {
    struct memory body = {0}, text = {0};
    CURL *easy = new_easy(under(base, "/small"), &body);
    curl_easy_setopt(easy, CURLOPT_VERBOSE, 1L);
    curl_easy_setopt(easy, CURLOPT_DEBUGFUNCTION, collect_text);
    curl_easy_setopt(easy, CURLOPT_DEBUGDATA, &text);
    IS(curl_easy_perform(easy), CURLE_OK);
    IS(occurrences(&text, "Connection #0 to host 127.0.0.1 left intact"), 1);
    forget(&text);
    curl_easy_setopt(easy, CURLOPT_URL, once);
    IS(curl_easy_perform(easy), CURLE_OK);
    CHECK(contains(&text, "closing connection #") && !contains(&text, "left intact"));
    forget(&body), forget(&text);
    curl_easy_cleanup(easy);
}

static int count_reports(void *user, curl_off_t down_total, curl_off_t down, curl_off_t up_total, curl_off_t up) {
    (void)down_total, (void)down, (void)up_total, (void)up;
    ++*(int *)user;
    return 0;
}

static int note_sent(void *user, curl_off_t down_total, curl_off_t down, curl_off_t up_total, curl_off_t up) {
    (void)down_total, (void)down;
    ((curl_off_t *)user)[0] = up_total, ((curl_off_t *)user)[1] = up;
    return 0;
}

static void last_report(void) {
    struct memory body = {0};
    int reports = 0, running, before;
    CURLM *multi = curl_multi_init();
    CURL *easy = new_easy(under(base, "/delay/60000/small"), &body);
    curl_easy_setopt(easy, CURLOPT_NOPROGRESS, 0L);
    curl_easy_setopt(easy, CURLOPT_XFERINFOFUNCTION, count_reports);
    curl_easy_setopt(easy, CURLOPT_XFERINFODATA, &reports);
    IS(curl_multi_add_handle(multi, easy), CURLM_OK);
    IS(curl_multi_perform(multi, &running), CURLM_OK);
    before = reports;
    IS(curl_multi_remove_handle(multi, easy), CURLM_OK);
    IS(reports, before + 1);
    curl_easy_cleanup(easy);
    IS(curl_multi_cleanup(multi), CURLM_OK);
}

static curl_off_t length_in_head;
static FILE *file_in_callback;

static size_t on_head(char *data, size_t size, size_t count, void *user) {
    if (size * count == 2 && data[0] == '\r')
        IS(curl_easy_getinfo(*(CURL **)user, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &length_in_head), CURLE_OK);
    return size * count;
}

static size_t on_body(char *data, size_t size, size_t count, void *user) {
    (void)data;
    file_in_callback = user;
    return size * count;
}

static void callbacks_know_more(void) {
    struct memory body = {0};
    CURL *easy = new_easy(under(base, "/bytes/1234"), &body), *plain = curl_easy_init();
    curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_head);
    curl_easy_setopt(easy, CURLOPT_HEADERDATA, &easy);
    IS(curl_easy_perform(easy), CURLE_OK);
    IS(length_in_head, 1234);
    /* A write function without a pointer gets standard output, unless the program says NULL. */
    curl_easy_setopt(plain, CURLOPT_URL, under(base, "/small"));
    curl_easy_setopt(plain, CURLOPT_WRITEFUNCTION, on_body);
    IS(curl_easy_perform(plain), CURLE_OK);
    CHECK(file_in_callback == stdout);
    curl_easy_setopt(plain, CURLOPT_WRITEDATA, NULL);
    IS(curl_easy_perform(plain), CURLE_OK);
    CHECK(file_in_callback == NULL);
    curl_easy_cleanup(plain);
    /* The progress of content in memory. */
    curl_off_t sent[2] = {0};
    forget(&body);
    curl_easy_setopt(easy, CURLOPT_URL, under(base, "/echo"));
    curl_easy_setopt(easy, CURLOPT_POSTFIELDS, "seven b");
    curl_easy_setopt(easy, CURLOPT_NOPROGRESS, 0L);
    curl_easy_setopt(easy, CURLOPT_XFERINFOFUNCTION, note_sent);
    curl_easy_setopt(easy, CURLOPT_XFERINFODATA, sent);
    IS(curl_easy_perform(easy), CURLE_OK);
    CHECK(sent[0] == 7 && sent[1] == 7);
    forget(&body);
    curl_easy_cleanup(easy);
}

static void proxies_and_blobs(void) {
    struct memory body = {0};
    CURL *easy = new_easy("http://h.example/", &body);
    curl_easy_setopt(easy, CURLOPT_PROXY, "http://[::1");
    IS(curl_easy_perform(easy), CURLE_COULDNT_RESOLVE_PROXY);
    CHECK(strstr(error_buffer, "Unsupported proxy syntax in 'http://[::1'") != NULL);
    struct curl_blob empty = {"", 0, CURL_BLOB_COPY};
    IS(curl_easy_setopt(easy, CURLOPT_SSLCERT_BLOB, &empty), CURLE_OK);
    curl_easy_cleanup(easy);
}

/* The server sees by the number of requests whether the second one had to be challenged. */
static void challenges(void) {
    struct memory body = {0};
    CURL *easy = new_easy(under(base, "/private/small/1"), &body);
    curl_easy_setopt(easy, CURLOPT_USERPWD, "me:secret");
    curl_easy_setopt(easy, CURLOPT_HTTPAUTH, CURLAUTH_ANY);
    IS(curl_easy_perform(easy), CURLE_OK);
    curl_easy_setopt(easy, CURLOPT_URL, under(base, "/private/bytes/7"));
    IS(curl_easy_perform(easy), CURLE_OK);
    IS(long_info(easy, CURLINFO_RESPONSE_CODE), 200);
    forget(&body);
    curl_easy_cleanup(easy);
}

int main(int argc, char **argv) {
    CHECK(argc == 3);
    base = argv[1];
    urls();
    cookies();
    ends_of_connections(argv[2]);
    last_report();
    callbacks_know_more();
    proxies_and_blobs();
    challenges();
    puts("reported");
    return 0;
}
