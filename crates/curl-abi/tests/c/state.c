/* Cookies, shares, copies and resets of handles, URLs, dates, escapes: state BASE-URL DIRECTORY. */
#include "check.h"
/* Declares curl_maprintf. */
#include <curl/mprintf.h>

static const char *base;

static int cookies_of(CURL *easy) {
    struct curl_slist *list = NULL;
    IS(curl_easy_getinfo(easy, CURLINFO_COOKIELIST, &list), CURLE_OK);
    int count = 0;
    for (struct curl_slist *at = list; at != NULL; at = at->next) {
        CHECK(strchr(at->data, '\t') != NULL);
        count++;
    }
    curl_slist_free_all(list);
    return count;
}

static void cookies(const char *directory) {
    char jar[512];
    snprintf(jar, sizeof jar, "%s/cookies.txt", directory);
    struct memory body = {0};
    CURL *easy = new_easy(under(base, "/echo"), &body);
    IS(cookies_of(easy), 0);
    curl_easy_setopt(easy, CURLOPT_COOKIEJAR, jar);
    IS(curl_easy_setopt(easy, CURLOPT_COOKIELIST, "Set-Cookie: a=1; Domain=127.0.0.1; Path=/"), CURLE_OK);
    IS(curl_easy_setopt(easy, CURLOPT_COOKIELIST, "127.0.0.1\tFALSE\t/\tFALSE\t4102444800\tb\t2"), CURLE_OK);
    IS(cookies_of(easy), 2);
    IS(curl_easy_perform(easy), CURLE_OK);
    CHECK(contains(&body, "a=1") && contains(&body, "b=2"));
    CURL *copy = curl_easy_duphandle(easy);
    IS(cookies_of(copy), 0);
    curl_easy_setopt(copy, CURLOPT_COOKIEJAR, NULL);
    curl_easy_cleanup(copy);
    curl_easy_cleanup(easy);
    /* The jar was written, and is read by the next handle. */
    forget(&body);
    easy = new_easy(under(base, "/echo"), &body);
    curl_easy_setopt(easy, CURLOPT_COOKIEFILE, jar);
    IS(curl_easy_perform(easy), CURLE_OK);
    CHECK(contains(&body, "b=2"));
    forget(&body);
    curl_easy_reset(easy);
    IS(cookies_of(easy), 2);
    curl_easy_setopt(easy, CURLOPT_COOKIELIST, "SESS");
    IS(cookies_of(easy), 1);
    /* Without files, no cookies are used. */
    curl_easy_setopt(easy, CURLOPT_COOKIEFILE, NULL);
    IS(cookies_of(easy), 0);
    curl_easy_setopt(easy, CURLOPT_COOKIELIST, "Set-Cookie: a=1; Domain=127.0.0.1; Path=/");
    curl_easy_setopt(easy, CURLOPT_COOKIELIST, "ALL");
    IS(cookies_of(easy), 0);
    curl_easy_cleanup(easy);
}

static void lock_nothing(CURL *easy, curl_lock_data data, curl_lock_access access, void *user) {
    (void)easy, (void)data, (void)access, (void)user;
}

static void unlock_nothing(CURL *easy, curl_lock_data data, void *user) {
    (void)easy, (void)data, (void)user;
}

static void shares(void) {
    struct memory body = {0};
    CURLSH *share = curl_share_init();
    IS(curl_share_setopt(share, CURLSHOPT_SHARE, CURL_LOCK_DATA_COOKIE), CURLSHE_OK);
    IS(curl_share_setopt(share, CURLSHOPT_SHARE, CURL_LOCK_DATA_CONNECT), CURLSHE_OK);
    IS(curl_share_setopt(share, CURLSHOPT_SHARE, CURL_LOCK_DATA_DNS), CURLSHE_OK);
    IS(curl_share_setopt(share, CURLSHOPT_LOCKFUNC, lock_nothing), CURLSHE_OK);
    IS(curl_share_setopt(share, CURLSHOPT_UNLOCKFUNC, unlock_nothing), CURLSHE_OK);
    IS(curl_share_setopt(share, 99, NULL), CURLSHE_BAD_OPTION);
    CURL *first = new_easy(under(base, "/echo"), &body), *second = new_easy(under(base, "/echo"), &body);
    curl_easy_setopt(first, CURLOPT_SHARE, share);
    curl_easy_setopt(second, CURLOPT_SHARE, share);
    curl_easy_setopt(first, CURLOPT_COOKIELIST, "Set-Cookie: shared=1; Domain=127.0.0.1; Path=/");
    IS(curl_easy_perform(first), CURLE_OK);
    IS(long_info(first, CURLINFO_NUM_CONNECTS), 1);
    forget(&body);
    IS(curl_easy_perform(second), CURLE_OK);
    IS(long_info(second, CURLINFO_NUM_CONNECTS), 0);
    CHECK(contains(&body, "shared=1"));
    IS(curl_share_cleanup(share), CURLSHE_IN_USE);
    curl_easy_cleanup(first);
    curl_easy_setopt(second, CURLOPT_SHARE, NULL);
    IS(curl_share_cleanup(share), CURLSHE_OK);
    forget(&body);
    IS(curl_easy_perform(second), CURLE_OK);
    CHECK(!contains(&body, "shared=1"));
    forget(&body);
    curl_easy_cleanup(second);
}

static void urls(void) {
    CURLU *url = curl_url();
    char *part = NULL;
    IS(curl_url_set(url, CURLUPART_URL, "http://me@h.example:8080/a/../b?q=1#f", 0), CURLUE_OK);
    IS(curl_url_get(url, CURLUPART_HOST, &part, 0), CURLUE_OK);
    CHECK(strcmp(part, "h.example") == 0);
    curl_free(part);
    IS(curl_url_get(url, CURLUPART_URL, &part, 0), CURLUE_OK);
    CHECK(strcmp(part, "http://me@h.example:8080/b?q=1#f") == 0);
    curl_free(part);
    IS(curl_url_get(url, CURLUPART_PASSWORD, &part, 0), CURLUE_NO_PASSWORD);
    CHECK(part == NULL);
    IS(curl_url_set(url, CURLUPART_PORT, "70000", 0), CURLUE_BAD_PORT_NUMBER);
    CURLU *copy = curl_url_dup(url);
    curl_url_cleanup(url);
    IS(curl_url_get(url, CURLUPART_URL, &part, 0), CURLUE_BAD_HANDLE);
    IS(curl_url_get(copy, 99, &part, 0), CURLUE_UNKNOWN_PART);
    IS(curl_url_get(copy, CURLUPART_URL, NULL, 0), CURLUE_BAD_PARTPOINTER);
    /* A request to a URL in parts. */
    struct memory body = {0};
    CURL *easy = new_easy("http://ignored.invalid/", &body);
    IS(curl_url_set(copy, CURLUPART_URL, under(base, "/small/5"), 0), CURLUE_OK);
    IS(curl_easy_setopt(easy, CURLOPT_CURLU, copy), CURLE_OK);
    IS(curl_easy_perform(easy), CURLE_OK);
    CHECK(strcmp(text_of(&body), "small 5\n") == 0);
    curl_url_cleanup(copy);
    IS(curl_easy_perform(easy), CURLE_URL_MALFORMAT);
    forget(&body);
    curl_easy_cleanup(easy);
}

static void texts(void) {
    char *escaped = curl_easy_escape(NULL, "a b/\xc3\xa9~", 0);
    CHECK(strcmp(escaped, "a%20b%2F%C3%A9~") == 0);
    int length = 0;
    char *plain = curl_easy_unescape(NULL, escaped, 0, &length);
    CHECK(strcmp(plain, "a b/\xc3\xa9~") == 0 && length == 7);
    curl_free(plain), curl_free(escaped);
    escaped = curl_easy_escape(NULL, "ab", 1);
    CHECK(strcmp(escaped, "a") == 0 && curl_easy_escape(NULL, "a", -1) == NULL);
    curl_free(escaped);
    IS(curl_getdate("Sun, 06 Nov 1994 08:49:37 GMT", NULL), 784111777);
    IS(curl_getdate("no date", NULL), -1);
    CHECK(curl_strequal("Ab", "aB") == 1 && curl_strnequal("abc", "ABd", 2) == 1 && curl_strequal("a", "b") == 0);
    curl_version_info_data *info = curl_version_info(CURLVERSION_NOW);
    CHECK(info->age >= CURLVERSION_NOW && info->version_num >= LIBCURL_VERSION_NUM);
    CHECK(strstr(curl_version(), "haul/") != NULL && strncmp(curl_version(), "libcurl/", 8) == 0);
    int protocols = 0;
    for (const char *const *name = info->protocols; *name != NULL; name++)
        protocols++;
    IS(protocols, 2);
    CHECK((info->features & CURL_VERSION_SSL) != 0 && (info->features & CURL_VERSION_NTLM) == 0);
    char *text = curl_maprintf("%s %d", "x", 7);
    CHECK(strcmp(text, "x 7") == 0);
    curl_free(text);
    IS(curl_easy_option_by_name("url")->id, CURLOPT_URL);
    for (int code = -1; code < 110; code++) {
        CHECK(curl_easy_strerror(code)[0] != 0 && curl_multi_strerror(code)[0] != 0);
        CHECK(curl_share_strerror(code)[0] != 0 && curl_url_strerror(code)[0] != 0);
    }
}

static void misuse(void) {
    CURL *easy = curl_easy_init();
    IS(curl_easy_setopt(easy, 99999, 1L), CURLE_UNKNOWN_OPTION);
    IS(curl_easy_setopt(easy, CURLOPT_FTPPORT, "x"), CURLE_UNKNOWN_OPTION);
    IS(curl_easy_setopt(easy, CURLOPT_TIMEOUT, -1L), CURLE_BAD_FUNCTION_ARGUMENT);
    IS(curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http "), CURLE_UNSUPPORTED_PROTOCOL);
    IS(curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, ",,"), CURLE_BAD_FUNCTION_ARGUMENT);
    IS(curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "HTTP,https,"), CURLE_OK);
    IS(curl_easy_setopt(easy, CURLOPT_SHARE, easy), CURLE_BAD_FUNCTION_ARGUMENT);
    IS(curl_easy_getinfo(easy, 0x100063, &easy), CURLE_UNKNOWN_OPTION);
    IS(curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, NULL), CURLE_BAD_FUNCTION_ARGUMENT);
    IS(curl_easy_perform(easy), CURLE_URL_MALFORMAT);
    CURLM *multi = curl_multi_init();
    IS(curl_multi_add_handle(easy, easy), CURLM_BAD_HANDLE);
    IS(curl_multi_add_handle(multi, multi), CURLM_BAD_EASY_HANDLE);
    IS(curl_multi_add_handle(multi, NULL), CURLM_BAD_EASY_HANDLE);
    curl_easy_cleanup(easy);
    /* Handles that were freed, or never were. */
    CURL *wrong[] = {NULL, easy, (CURL *)16, (CURL *)&multi};
    for (int i = 0; i < 4; i++) {
        IS(curl_easy_setopt(wrong[i], CURLOPT_URL, "http://h/"), CURLE_BAD_FUNCTION_ARGUMENT);
        IS(curl_easy_perform(wrong[i]), CURLE_BAD_FUNCTION_ARGUMENT);
        IS(curl_easy_pause(wrong[i], 0), CURLE_BAD_FUNCTION_ARGUMENT);
        long value;
        IS(curl_easy_getinfo(wrong[i], CURLINFO_RESPONSE_CODE, &value), CURLE_BAD_FUNCTION_ARGUMENT);
        CHECK(curl_easy_duphandle(wrong[i]) == NULL);
        curl_easy_reset(wrong[i]);
        curl_easy_cleanup(wrong[i]);
        IS(curl_multi_perform(wrong[i], NULL), CURLM_BAD_HANDLE);
        CHECK(curl_multi_info_read(wrong[i], NULL) == NULL);
        IS(curl_multi_cleanup(wrong[i]), CURLM_BAD_HANDLE);
        IS(curl_share_cleanup(wrong[i]), CURLSHE_INVALID);
        CHECK(curl_mime_addpart((curl_mime *)wrong[i]) == NULL);
        IS(curl_mime_name((curl_mimepart *)wrong[i], "x"), CURLE_BAD_FUNCTION_ARGUMENT);
        curl_mime_free((curl_mime *)wrong[i]);
        curl_formfree((struct curl_httppost *)wrong[i]);
        curl_url_cleanup((CURLU *)wrong[i]);
        CHECK(curl_url_dup((CURLU *)wrong[i]) == NULL);
    }
    curl_slist_free_all(NULL);
    curl_free(NULL);
    IS(curl_multi_cleanup(multi), CURLM_OK);
}

int main(int argc, char **argv) {
    CHECK(argc == 3);
    base = argv[1];
    cookies(argv[2]);
    shares();
    urls();
    texts();
    misuse();
    puts("kept");
    return 0;
}
