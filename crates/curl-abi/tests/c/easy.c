/* Requests of the easy interface, their options and facts, against the embedded origin: easy BASE-URL DIRECTORY. */
#include "check.h"

static const char *base;

static void gets_and_facts(void) {
    struct memory body = {0}, head = {0};
    CURL *easy = new_easy(under(base, "/small/7"), &body);
    curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, collect);
    curl_easy_setopt(easy, CURLOPT_HEADERDATA, &head);
    curl_easy_setopt(easy, CURLOPT_PRIVATE, "mine");
    IS(curl_easy_perform(easy), CURLE_OK);
    CHECK(strcmp(text_of(&body), "small 7\n") == 0);
    CHECK(strncmp(text_of(&head), "HTTP/1.1 200 OK\r\n", 17) == 0);
    CHECK(strcmp(text_of(&head) + head.length - 4, "\r\n\r\n") == 0);
    CHECK(head.calls >= 3);
    IS(long_info(easy, CURLINFO_RESPONSE_CODE), 200);
    IS(long_info(easy, CURLINFO_HEADER_SIZE), head.length);
    IS(long_info(easy, CURLINFO_NUM_CONNECTS), 1);
    IS(long_info(easy, CURLINFO_REDIRECT_COUNT), 0);
    IS(long_info(easy, CURLINFO_HTTP_VERSION), CURL_HTTP_VERSION_1_1);
    IS(off_t_info(easy, CURLINFO_SIZE_DOWNLOAD_T), 8);
    IS(off_t_info(easy, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T), 8);
    CHECK(long_info(easy, CURLINFO_REQUEST_SIZE) > 20);
    CHECK(long_info(easy, CURLINFO_PRIMARY_PORT) > 0 && long_info(easy, CURLINFO_LOCAL_PORT) > 0);
    CHECK(strcmp(text_info(easy, CURLINFO_PRIMARY_IP), "127.0.0.1") == 0);
    CHECK(strcmp(text_info(easy, CURLINFO_LOCAL_IP), "127.0.0.1") == 0);
    CHECK(strcmp(text_info(easy, CURLINFO_EFFECTIVE_URL), under(base, "/small/7")) == 0);
    CHECK(strcmp(text_info(easy, CURLINFO_SCHEME), "http") == 0);
    CHECK(strcmp(text_info(easy, CURLINFO_EFFECTIVE_METHOD), "GET") == 0);
    CHECK(strcmp(text_info(easy, CURLINFO_PRIVATE), "mine") == 0);
    double total = 0;
    IS(curl_easy_getinfo(easy, CURLINFO_TOTAL_TIME, &total), CURLE_OK);
    CHECK(total > 0 && off_t_info(easy, CURLINFO_TOTAL_TIME_T) > 0);
    struct curl_header *header;
    IS(curl_easy_header(easy, "CONTENT-length", 0, CURLH_HEADER, -1, &header), CURLHE_OK);
    CHECK(strcmp(header->value, "8") == 0 && header->amount == 1 && header->origin == CURLH_HEADER);
    IS(curl_easy_header(easy, "content-length", 1, CURLH_HEADER, -1, &header), CURLHE_BADINDEX);
    IS(curl_easy_header(easy, "x-none", 0, CURLH_HEADER, 0, &header), CURLHE_MISSING);
    int fields = 0;
    for (header = NULL; (header = curl_easy_nextheader(easy, CURLH_HEADER, -1, header)) != NULL; fields++)
        CHECK(header->name[0] != 0);
    CHECK(fields >= 2);

    /* The same connection again, and a status that is no failure. */
    forget(&body);
    curl_easy_setopt(easy, CURLOPT_URL, under(base, "/status/404"));
    IS(curl_easy_perform(easy), CURLE_OK);
    IS(long_info(easy, CURLINFO_RESPONSE_CODE), 404);
    IS(long_info(easy, CURLINFO_NUM_CONNECTS), 0);
    CHECK(body.length > 0);
    curl_easy_setopt(easy, CURLOPT_FAILONERROR, 1L);
    forget(&body);
    IS(curl_easy_perform(easy), CURLE_HTTP_RETURNED_ERROR);
    CHECK(strcmp(error_buffer, "The requested URL returned error: 404") == 0 && body.length == 0);

    /* The head in the body; and no body. */
    curl_easy_reset(easy);
    curl_easy_setopt(easy, CURLOPT_URL, under(base, "/small"));
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, collect);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, &body);
    curl_easy_setopt(easy, CURLOPT_HEADER, 1L);
    IS(curl_easy_perform(easy), CURLE_OK);
    CHECK(strncmp(text_of(&body), "HTTP/1.1 200", 12) == 0 && contains(&body, "\r\n\r\nsmall\n"));
    IS(long_info(easy, CURLINFO_NUM_CONNECTS), 0);
    forget(&body);
    curl_easy_setopt(easy, CURLOPT_NOBODY, 1L);
    IS(curl_easy_perform(easy), CURLE_OK);
    CHECK(!contains(&body, "small") && contains(&body, "ength: 6"));
    CHECK(strcmp(text_info(easy, CURLINFO_EFFECTIVE_METHOD), "HEAD") == 0);
    forget(&body), forget(&head);
    curl_easy_cleanup(easy);
}

static void requests(const char *directory) {
    struct memory body = {0};
    CURL *easy = new_easy(under(base, "/echo"), &body);
    struct curl_slist *headers = curl_slist_append(NULL, "X-Own: 1");
    headers = curl_slist_append(headers, "Accept:");
    headers = curl_slist_append(headers, "X-Empty;");
    curl_easy_setopt(easy, CURLOPT_HTTPHEADER, headers);
    curl_easy_setopt(easy, CURLOPT_USERAGENT, "program/1");
    curl_easy_setopt(easy, CURLOPT_REFERER, "http://before/");
    curl_easy_setopt(easy, CURLOPT_COOKIE, "a=1; b=2");
    curl_easy_setopt(easy, CURLOPT_USERPWD, "me:secret");
    curl_easy_setopt(easy, CURLOPT_POSTFIELDS, "x=1&y=2");
    IS(curl_easy_perform(easy), CURLE_OK);
    CHECK(contains(&body, "\"POST\"") && contains(&body, "\"body\":\"x=1&y=2\""));
    CHECK(contains(&body, "[\"x-own\",\"1\"]") && !contains(&body, "\"accept\"") && contains(&body, "[\"x-empty\",\"\"]"));
    CHECK(contains(&body, "[\"user-agent\",\"program/1\"]") && contains(&body, "[\"referer\",\"http://before/\"]"));
    CHECK(contains(&body, "[\"cookie\",\"a=1; b=2\"]") && contains(&body, "[\"authorization\",\"Basic bWU6c2VjcmV0\"]"));
    CHECK(contains(&body, "[\"content-type\",\"application/x-www-form-urlencoded\"]"));

    /* A part of the fields, a copy of them, another method, GET again. */
    forget(&body);
    curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE, 3L);
    char fields[] = "a=1&b=2";
    curl_easy_setopt(easy, CURLOPT_COPYPOSTFIELDS, fields);
    fields[0] = 'z';
    curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, "PATCH");
    IS(curl_easy_perform(easy), CURLE_OK);
    CHECK(contains(&body, "\"PATCH\"") && contains(&body, "\"body\":\"a=1\""));
    forget(&body);
    curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, NULL);
    curl_easy_setopt(easy, CURLOPT_HTTPGET, 1L);
    IS(curl_easy_perform(easy), CURLE_OK);
    CHECK(contains(&body, "\"GET\"") && contains(&body, "\"body_len\":0"));

    /* Content of a file, by the default read callback. */
    char path[512];
    snprintf(path, sizeof path, "%s/content", directory);
    FILE *file = fopen(path, "w+");
    fputs("from a file", file);
    rewind(file);
    forget(&body);
    curl_easy_setopt(easy, CURLOPT_UPLOAD, 1L);
    curl_easy_setopt(easy, CURLOPT_READDATA, file);
    curl_easy_setopt(easy, CURLOPT_INFILESIZE_LARGE, (curl_off_t)11);
    IS(curl_easy_perform(easy), CURLE_OK);
    CHECK(contains(&body, "\"PUT\"") && contains(&body, "\"body\":\"from a file\""));
    CHECK(contains(&body, "[\"content-length\",\"11\"]"));
    IS(off_t_info(easy, CURLINFO_SIZE_UPLOAD_T), 11);

    /* The rest of it, and then all of it with a length that is not known. */
    forget(&body);
    rewind(file);
    curl_easy_setopt(easy, CURLOPT_RESUME_FROM_LARGE, (curl_off_t)5);
    IS(curl_easy_perform(easy), CURLE_OK);
    CHECK(contains(&body, "\"body\":\"a file\"") && contains(&body, "[\"content-range\",\"bytes 5-10/11\"]"));
    forget(&body);
    rewind(file);
    curl_easy_setopt(easy, CURLOPT_RESUME_FROM_LARGE, (curl_off_t)0);
    curl_easy_setopt(easy, CURLOPT_INFILESIZE_LARGE, (curl_off_t)-1);
    IS(curl_easy_perform(easy), CURLE_OK);
    CHECK(contains(&body, "\"body\":\"from a file\"") && contains(&body, "[\"transfer-encoding\",\"chunked\"]"));
    fclose(file);
    forget(&body);
    curl_slist_free_all(headers);
    curl_easy_cleanup(easy);
}

/* What a handle keeps of a request for the next one. */
static void requests_in_turn(const char *closed) {
    struct memory body = {0}, other = {0};
    CURL *easy = new_easy(under(base, "/echo?1"), &body);
    IS(curl_easy_perform(easy), CURLE_OK);
    CHECK(contains(&body, "/echo?1") && contains(&body, "\"GET\""));
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, &other);
    IS(curl_easy_perform(easy), CURLE_OK);
    CHECK(contains(&other, "/echo?1"));
    forget(&other);
    curl_easy_setopt(easy, CURLOPT_URL, under(base, "/echo?2"));
    IS(curl_easy_perform(easy), CURLE_OK);
    CHECK(contains(&other, "/echo?2") && !contains(&other, "x-own"));

    /* An option of the request, a method, content, other content, a method again. */
    struct curl_slist *headers = curl_slist_append(NULL, "X-Own: 1");
    curl_easy_setopt(easy, CURLOPT_HTTPHEADER, headers);
    forget(&other);
    IS(curl_easy_perform(easy), CURLE_OK);
    CHECK(contains(&other, "[\"x-own\",\"1\"]"));
    const char *contents[] = {"a=1", "b=2&c=3"};
    for (int i = 0; i < 2; i++) {
        forget(&other);
        curl_easy_setopt(easy, CURLOPT_POSTFIELDS, contents[i]);
        IS(curl_easy_perform(easy), CURLE_OK);
        CHECK(contains(&other, "\"POST\"") && contains(&other, "[\"x-own\",\"1\"]"));
        CHECK(strstr(text_of(&other), contents[i]) != NULL);
        CHECK(contains(&other, "[\"content-type\",\"application/x-www-form-urlencoded\"]"));
    }
    forget(&other);
    curl_easy_setopt(easy, CURLOPT_HTTPGET, 1L);
    curl_easy_setopt(easy, CURLOPT_HTTPHEADER, NULL);
    IS(curl_easy_perform(easy), CURLE_OK);
    CHECK(contains(&other, "\"GET\"") && contains(&other, "\"body_len\":0") && !contains(&other, "x-own"));

    /* Cookies are on from one request to the next, and so is a proxy of the environment. */
    curl_easy_setopt(easy, CURLOPT_COOKIELIST, "Set-Cookie: kept=1; path=/");
    forget(&other);
    IS(curl_easy_perform(easy), CURLE_OK);
    curl_easy_setopt(easy, CURLOPT_COOKIELIST, "ALL");
    setenv("http_proxy", closed, 1);
    IS(curl_easy_perform(easy), CURLE_COULDNT_CONNECT);
    unsetenv("http_proxy");
    IS(curl_easy_perform(easy), CURLE_OK);

    /* A handle without cookies and a copy of it. */
    CURL *plain = new_easy(under(base, "/echo?3"), &body);
    IS(curl_easy_perform(plain), CURLE_OK);
    setenv("http_proxy", closed, 1);
    IS(curl_easy_perform(plain), CURLE_COULDNT_CONNECT);
    unsetenv("http_proxy");
    forget(&body);
    IS(curl_easy_perform(plain), CURLE_OK);
    CHECK(contains(&body, "/echo?3"));
    CURL *copy = curl_easy_duphandle(plain);
    curl_easy_reset(plain);
    IS(curl_easy_perform(plain), CURLE_URL_MALFORMAT);
    forget(&body);
    IS(curl_easy_perform(copy), CURLE_OK);
    CHECK(contains(&body, "/echo?3"));
    curl_slist_free_all(headers);
    forget(&body), forget(&other);
    curl_easy_cleanup(copy);
    curl_easy_cleanup(plain);
    curl_easy_cleanup(easy);
}

static void redirects_and_ranges(void) {
    struct memory body = {0}, head = {0};
    CURL *easy = new_easy(under(base, "/chain/3"), &body);
    IS(curl_easy_perform(easy), CURLE_OK);
    IS(long_info(easy, CURLINFO_RESPONSE_CODE), 302);
    CHECK(strcmp(text_info(easy, CURLINFO_REDIRECT_URL), under(base, "/chain/2")) == 0);
    curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 1L);
    curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, collect);
    curl_easy_setopt(easy, CURLOPT_HEADERDATA, &head);
    forget(&body);
    IS(curl_easy_perform(easy), CURLE_OK);
    CHECK(strcmp(text_of(&body), "end of chain\n") == 0);
    IS(long_info(easy, CURLINFO_REDIRECT_COUNT), 3);
    CHECK(strcmp(text_info(easy, CURLINFO_EFFECTIVE_URL), under(base, "/chain/0")) == 0);
    CHECK(contains(&head, "302 Found") && contains(&head, "200 OK"));
    struct curl_header *header;
    IS(curl_easy_header(easy, "location", 0, CURLH_HEADER, 0, &header), CURLHE_OK);
    IS(curl_easy_header(easy, "location", 0, CURLH_HEADER, 3, &header), CURLHE_MISSING);
    IS(curl_easy_header(easy, "location", 0, CURLH_HEADER, 4, &header), CURLHE_NOREQUEST);
    curl_easy_setopt(easy, CURLOPT_MAXREDIRS, 2L);
    IS(curl_easy_perform(easy), CURLE_TOO_MANY_REDIRECTS);
    CHECK(strcmp(error_buffer, "Maximum (2) redirects followed") == 0);

    forget(&body);
    curl_easy_setopt(easy, CURLOPT_URL, under(base, "/bytes/1000"));
    curl_easy_setopt(easy, CURLOPT_RANGE, "10-19");
    IS(curl_easy_perform(easy), CURLE_OK);
    IS(long_info(easy, CURLINFO_RESPONSE_CODE), 206);
    IS(body.length, 10);
    curl_easy_setopt(easy, CURLOPT_RANGE, NULL);
    curl_easy_setopt(easy, CURLOPT_RESUME_FROM, 900L);
    forget(&body);
    IS(curl_easy_perform(easy), CURLE_OK);
    IS(body.length, 100);
    curl_easy_setopt(easy, CURLOPT_URL, under(base, "/small"));
    IS(curl_easy_perform(easy), CURLE_RANGE_ERROR);
    curl_easy_setopt(easy, CURLOPT_RESUME_FROM, 0L);
    curl_easy_setopt(easy, CURLOPT_URL, under(base, "/bytes/1000"));
    curl_easy_setopt(easy, CURLOPT_MAXFILESIZE, 999L);
    IS(curl_easy_perform(easy), CURLE_FILESIZE_EXCEEDED);
    forget(&body), forget(&head);
    curl_easy_cleanup(easy);
}

static void codings(void) {
    struct memory body = {0}, plain = {0};
    CURL *easy = new_easy(under(base, "/text/50000"), &plain);
    IS(curl_easy_perform(easy), CURLE_OK);
    IS(plain.length, 50000);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, &body);
    static const char *accepted[] = {"", "gzip", "br", "zstd"};
    for (int i = 0; i < 4; i++) {
        curl_easy_setopt(easy, CURLOPT_ACCEPT_ENCODING, accepted[i]);
        IS(curl_easy_perform(easy), CURLE_OK);
        CHECK(body.length == plain.length && memcmp(body.start, plain.start, plain.length) == 0);
        CHECK(body.largest <= CURL_MAX_WRITE_SIZE);
        struct curl_header *header;
        IS(curl_easy_header(easy, "content-encoding", 0, CURLH_HEADER, -1, &header), CURLHE_OK);
        forget(&body);
    }
    curl_easy_setopt(easy, CURLOPT_HTTP_CONTENT_DECODING, 0L);
    IS(curl_easy_perform(easy), CURLE_OK);
    CHECK(body.length < plain.length);
    forget(&body), forget(&plain);
    curl_easy_cleanup(easy);
}

static void failures(const char *closed) {
    struct memory body = {0};
    CURL *easy = new_easy(closed, &body);
    IS(curl_easy_perform(easy), CURLE_COULDNT_CONNECT);
    CHECK(strstr(error_buffer, "Failed to connect to 127.0.0.1 port") != NULL);
    CHECK(long_info(easy, CURLINFO_OS_ERRNO) > 0);
    curl_easy_setopt(easy, CURLOPT_URL, "http://no-such-host.invalid/");
    IS(curl_easy_perform(easy), CURLE_COULDNT_RESOLVE_HOST);
    CHECK(strcmp(error_buffer, "Could not resolve host: no-such-host.invalid") == 0);
    curl_easy_setopt(easy, CURLOPT_URL, "gopher://127.0.0.1/");
    IS(curl_easy_perform(easy), CURLE_UNSUPPORTED_PROTOCOL);
    CHECK(strstr(error_buffer, "gopher") != NULL);
    curl_easy_setopt(easy, CURLOPT_URL, "http://[::1/");
    IS(curl_easy_perform(easy), CURLE_URL_MALFORMAT);
    curl_easy_setopt(easy, CURLOPT_URL, NULL);
    IS(curl_easy_perform(easy), CURLE_URL_MALFORMAT);
    curl_easy_setopt(easy, CURLOPT_URL, under(base, "/delay/5000/small"));
    curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, 50L);
    IS(curl_easy_perform(easy), CURLE_OPERATION_TIMEDOUT);
    CHECK(strstr(error_buffer, "Operation timed out after") != NULL);
    curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, 0L);
    curl_easy_setopt(easy, CURLOPT_URL, under(base, "/small"));
    curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "https");
    IS(curl_easy_perform(easy), CURLE_UNSUPPORTED_PROTOCOL);
    curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, NULL);
    IS(curl_easy_perform(easy), CURLE_OK);
    CHECK(error_buffer[0] == 0);
    forget(&body);
    curl_easy_cleanup(easy);
}

int main(int argc, char **argv) {
    CHECK(argc == 4);
    base = argv[1];
    IS(curl_global_init(CURL_GLOBAL_DEFAULT), CURLE_OK);
    gets_and_facts();
    requests(argv[2]);
    requests_in_turn(argv[3]);
    redirects_and_ranges();
    codings();
    failures(argv[3]);
    curl_global_cleanup();
    puts("as libcurl");
    return 0;
}
