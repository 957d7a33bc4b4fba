/* Pauses, heads, connections and facts of transfers: one case of `cases` per run.
 * Arguments: CASE BASE-URL */
#include "check.h"

#include <sys/wait.h>
#include <unistd.h>

static const char *base;

/* Adds a handle, performs until its transfer ends, and removes it. Gives up after about 15 s. */
static CURLcode perform_with(CURLM *multi, CURL *easy) {
    IS(curl_multi_add_handle(multi, easy), CURLM_OK);
    int running = 1;
    for (int turn = 0; running > 0 && turn < 300; turn++) {
        IS(curl_multi_perform(multi, &running), CURLM_OK);
        if (running > 0)
            IS(curl_multi_poll(multi, NULL, 0, 50, NULL), CURLM_OK);
    }
    IS(running, 0);
    int left = 0;
    CURLMsg *message = curl_multi_info_read(multi, &left);
    CHECK(message != NULL && message->easy_handle == easy);
    CURLcode result = message->data.result;
    curl_multi_remove_handle(multi, easy);
    return result;
}

static CURLcode perform_in_multi(CURL *easy) {
    CURLM *multi = curl_multi_init();
    CURLcode result = perform_with(multi, easy);
    curl_multi_cleanup(multi);
    return result;
}

static size_t pause_always(char *data, size_t size, size_t count, void *user) {
    (void)data, (void)size, (void)count, (void)user;
    return CURL_WRITEFUNC_PAUSE;
}

static void paused_until_timeout(void) {
    const CURLoption callbacks[] = {CURLOPT_HEADERFUNCTION, CURLOPT_WRITEFUNCTION};
    for (size_t at = 0; at < 4; at++) {
        struct memory body = {0};
        CURL *easy = new_easy(under(base, "/small"), &body);
        curl_easy_setopt(easy, callbacks[at % 2], pause_always);
        curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, 100L);
        IS(at < 2 ? perform_in_multi(easy) : curl_easy_perform(easy), CURLE_OPERATION_TIMEDOUT);
        curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, collect);
        curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, NULL);
        curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, 0L);
        IS(perform_in_multi(easy), CURLE_OK);
        CHECK(body.length > 0);
        forget(&body);
        curl_easy_cleanup(easy);
    }
}

struct program {
    CURL *easy;
    struct memory heads;
    int origins;
};

static size_t set_header_function(char *data, size_t size, size_t count, void *user) {
    (void)data;
    struct program *program = user;
    IS(curl_easy_setopt(program->easy, CURLOPT_HEADERFUNCTION, collect), CURLE_OK);
    IS(curl_easy_setopt(program->easy, CURLOPT_HEADERDATA, &program->heads), CURLE_OK);
    return size * count;
}

static size_t supply(char *data, size_t size, size_t count, void *user) {
    struct program *program = user;
    CHECK(size * count > 0);
    if (program->heads.calls > 0 || program->origins++ > 0)
        return 0;
    set_header_function(NULL, 0, 0, program);
    *data = 'x';
    return 1;
}

/* BASE-URL sends a trailer section with X-Late: 1. */
static void header_function_during_transfer(int is_upload) {
    for (int turn = 0; turn < 2; turn++) {
        struct memory body = {0};
        struct program program = {0};
        CURL *easy = program.easy = new_easy(base, &body);
        if (!is_upload) {
            curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, set_header_function);
            curl_easy_setopt(easy, CURLOPT_WRITEDATA, &program);
        } else {
            curl_easy_setopt(easy, CURLOPT_POST, 1L);
            curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE, 1L);
            curl_easy_setopt(easy, CURLOPT_READFUNCTION, supply);
            curl_easy_setopt(easy, CURLOPT_READDATA, &program);
        }
        IS(turn == 0 ? curl_easy_perform(easy) : perform_in_multi(easy), CURLE_OK);
        IS(contains(&program.heads, "HTTP/1.1 200 OK\r\n"), is_upload);
        CHECK(contains(&program.heads, "X-Late: 1\r\n"));
        forget(&body), forget(&program.heads);
        curl_easy_cleanup(easy);
    }
}

static void header_function_in_write_callback(void) {
    header_function_during_transfer(0);
}

/* BASE-URL reads the content, one byte, before it responds. */
static void header_function_in_read_callback(void) {
    header_function_during_transfer(1);
}

/* BASE-URL sends a trailer section with X-Late: 1. */
static void stored_trailers(void) {
    for (int turn = 0; turn < 4; turn++) {
        struct memory body = {0};
        struct curl_header *header = NULL;
        CURL *easy = new_easy(base, &body);
        curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, turn % 2 == 0 ? 0L : 1L);
        IS(turn < 2 ? curl_easy_perform(easy) : perform_in_multi(easy), CURLE_OK);
        IS(curl_easy_header(easy, "x-late", 0, CURLH_TRAILER, -1, &header), CURLHE_OK);
        CHECK(strcmp(header->value, "1") == 0 && header->origin == CURLH_TRAILER && header->amount == 1);
        IS(curl_easy_header(easy, "x-late", 0, CURLH_HEADER, -1, &header), CURLHE_MISSING);
        IS(curl_easy_header(easy, "x-early", 0, CURLH_HEADER, -1, &header), CURLHE_OK);
        forget(&body);
        curl_easy_cleanup(easy);
    }
}

/* `CURLINFO_CONN_ID`, which older headers do not have. */
#define CONNECTION_ID ((CURLINFO)(CURLINFO_OFF_T + 64))

/* Sends one request with `option` (0: none), in `multi` unless it is NULL. Returns the number of
 * the connection. */
static curl_off_t connection_of(CURLM *multi, CURL *easy, CURLoption option) {
    if (option != 0)
        IS(curl_easy_setopt(easy, option, 1L), CURLE_OK);
    IS(multi == NULL ? curl_easy_perform(easy) : perform_with(multi, easy), CURLE_OK);
    if (option != 0)
        IS(curl_easy_setopt(easy, option, 0L), CURLE_OK);
    return off_t_info(easy, CONNECTION_ID);
}

static void connection_reuse(void) {
    for (int turn = 0; turn < 2; turn++) {
        struct memory body = {0};
        CURLM *multi = turn == 0 ? NULL : curl_multi_init();
        CURL *easy = new_easy(under(base, "/small"), &body);
        curl_off_t kept = connection_of(multi, easy, 0);
        curl_off_t fresh = connection_of(multi, easy, CURLOPT_FRESH_CONNECT);
        CHECK(fresh != kept);
        /* Either connection is used, and then closed. The other one stays open. */
        curl_off_t used = connection_of(multi, easy, CURLOPT_FORBID_REUSE);
        CHECK(used == kept || used == fresh);
        IS(connection_of(multi, easy, 0), used == kept ? fresh : kept);
        forget(&body);
        curl_easy_cleanup(easy);
        curl_multi_cleanup(multi);
    }
}

/* `CURLINFO_XFER_ID`, which older headers do not have. */
#define XFER_ID ((CURLINFO)(CURLINFO_OFF_T + 63))

static void transfer_ids(void) {
    struct memory body = {0};
    CURL *first = new_easy(under(base, "/small"), &body), *second = new_easy(under(base, "/small"), &body);
    IS(off_t_info(first, XFER_ID), -1);
    IS(curl_easy_perform(first), CURLE_OK);
    IS(off_t_info(first, XFER_ID), 0);
    IS(curl_easy_perform(first), CURLE_OK);
    IS(off_t_info(first, XFER_ID), 1);
    CURLM *multi = curl_multi_init();
    IS(perform_with(multi, second), CURLE_OK);
    IS(off_t_info(second, XFER_ID), 0);
    IS(perform_with(multi, first), CURLE_OK);
    IS(off_t_info(first, XFER_ID), 1);
    IS(perform_with(multi, second), CURLE_OK);
    IS(off_t_info(second, XFER_ID), 2);
    forget(&body);
    curl_easy_cleanup(first), curl_easy_cleanup(second);
    curl_multi_cleanup(multi);
}

static int refuse(void *user, curl_off_t down_total, curl_off_t down, curl_off_t up_total, curl_off_t up) {
    (void)user, (void)down_total, (void)down, (void)up_total, (void)up;
    return 1;
}

/* The second turn uses a connection that is already open. */
static void refused_by_progress(void) {
    CURLM *multi = curl_multi_init();
    for (int turn = 0; turn < 4; turn++) {
        struct memory body = {0};
        CURL *easy = new_easy(under(base, "/echo"), &body);
        if (turn >= 2) {
            curl_easy_setopt(easy, CURLOPT_URL, under(base, "/small"));
            IS(turn % 2 == 0 ? curl_easy_perform(easy) : perform_with(multi, easy), CURLE_OK);
            curl_easy_setopt(easy, CURLOPT_URL, under(base, "/echo"));
        }
        curl_easy_setopt(easy, CURLOPT_POSTFIELDS, "pay");
        curl_easy_setopt(easy, CURLOPT_NOPROGRESS, 0L);
        curl_easy_setopt(easy, CURLOPT_XFERINFOFUNCTION, refuse);
        IS(turn % 2 == 0 ? curl_easy_perform(easy) : perform_with(multi, easy), CURLE_ABORTED_BY_CALLBACK);
        CHECK(strcmp(error_buffer, "Callback aborted") == 0);
        IS(long_info(easy, CURLINFO_RESPONSE_CODE), 0);
        IS(curl_easy_pause(easy, CURLPAUSE_CONT), CURLE_BAD_FUNCTION_ARGUMENT);
        forget(&body);
        curl_easy_cleanup(easy);
    }
    curl_multi_cleanup(multi);
}

static CURLcode perform_small(CURLM *multi) {
    struct memory body = {0};
    CURL *easy = new_easy(under(base, "/small"), &body);
    CURLcode result = perform_with(multi, easy);
    CHECK(result != CURLE_OK || strcmp(text_of(&body), "small\n") == 0);
    forget(&body);
    curl_easy_cleanup(easy);
    return result;
}

static void use_in_child(CURLM *multi, CURL *slow, CURL *later) {
    int running = -1, left = -1;
    IS(curl_multi_perform(multi, &running), CURLM_OK);
    CURLMsg *message = curl_multi_info_read(multi, &left);
    CHECK(message != NULL && message->easy_handle == slow);
    IS(message->data.result, CURLE_RECV_ERROR);
    IS(curl_multi_remove_handle(multi, slow), CURLM_OK);
    /* This handle was added in the parent, but its transfer has not begun there. */
    for (int turn = 0; running > 0 && turn < 300; turn++) {
        IS(curl_multi_poll(multi, NULL, 0, 50, NULL), CURLM_OK);
        IS(curl_multi_perform(multi, &running), CURLM_OK);
    }
    message = curl_multi_info_read(multi, &left);
    CHECK(message != NULL && message->easy_handle == later);
    IS(message->data.result, CURLE_OK);
    IS(long_info(later, CURLINFO_RESPONSE_CODE), 200);
    IS(curl_multi_remove_handle(multi, later), CURLM_OK);
    IS(perform_small(multi), CURLE_OK);
    IS(perform_with(multi, later), CURLE_OK);
    IS(curl_multi_cleanup(multi), CURLM_OK);
    _exit(0);
}

static void multi_after_fork(void) {
    CURLM *multi = curl_multi_init();
    struct memory body = {0};
    int running = 0, status = -1;
    IS(perform_small(multi), CURLE_OK);
    CURL *slow = new_easy(under(base, "/delay/60000/small"), &body), *later = new_easy(under(base, "/small"), &body);
    IS(curl_multi_add_handle(multi, slow), CURLM_OK);
    IS(curl_multi_perform(multi, &running), CURLM_OK);
    IS(running, 1);
    IS(curl_multi_add_handle(multi, later), CURLM_OK);
    pid_t child = fork();
    if (child == 0)
        use_in_child(multi, slow, later);
    CHECK(child > 0 && waitpid(child, &status, 0) == child);
    IS(status, 0);
    IS(curl_multi_remove_handle(multi, later), CURLM_OK);
    IS(curl_multi_remove_handle(multi, slow), CURLM_OK);
    IS(perform_small(multi), CURLE_OK);
    IS(curl_multi_cleanup(multi), CURLM_OK);
    forget(&body);
    curl_easy_cleanup(slow), curl_easy_cleanup(later);
}

/* Looks up `host` for a request, in `multi` unless it is NULL. */
static CURLcode perform_to_host(CURLM *multi, CURLSH *share, const char *host) {
    struct memory body = {0};
    char url[200];
    snprintf(url, sizeof url, "http://%s%s/small", host, strrchr(base, ':'));
    CURL *easy = new_easy(url, &body);
    curl_easy_setopt(easy, CURLOPT_SHARE, share);
    IS(curl_easy_setopt(easy, CURLOPT_DNS_SERVERS, getenv("NAME_SERVER")), CURLE_OK);
    curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, 10000L);
    CURLcode result = multi == NULL ? curl_easy_perform(easy) : perform_with(multi, easy);
    forget(&body);
    curl_easy_cleanup(easy);
    return result;
}

static void names_after_fork(void) {
    CURLM *multi = curl_multi_init(), *alone = curl_multi_init();
    CURLSH *share = curl_share_init();
    int status = -1;
    IS(curl_share_setopt(share, CURLSHOPT_SHARE, CURL_LOCK_DATA_DNS), CURLSHE_OK);
    IS(perform_to_host(multi, share, "first.example"), CURLE_OK);
    IS(perform_to_host(alone, NULL, "first.example"), CURLE_OK);
    pid_t child = fork();
    if (child == 0) {
        IS(perform_to_host(multi, share, "first.example"), CURLE_OK);
        IS(perform_to_host(multi, share, "second.example"), CURLE_OK);
        IS(perform_to_host(alone, NULL, "second.example"), CURLE_OK);
        IS(perform_to_host(NULL, share, "third.example"), CURLE_OK);
        CURLM *later = curl_multi_init();
        IS(perform_to_host(later, share, "fourth.example"), CURLE_OK);
        _exit(0);
    }
    CHECK(child > 0 && waitpid(child, &status, 0) == child);
    IS(status, 0);
    IS(perform_to_host(multi, share, "fifth.example"), CURLE_OK);
    curl_multi_cleanup(multi), curl_multi_cleanup(alone);
    IS(curl_share_cleanup(share), CURLSHE_OK);
}

static size_t check_facts(char *data, size_t size, size_t count, void *user) {
    struct program *program = user;
    if (strncmp(data, "HTTP/", 5) == 0) {
        const char *end = program->origins == 0 ? "/redirect/302?to=/small/3" : "/small/3";
        const char *url = text_info(program->easy, CURLINFO_EFFECTIVE_URL);
        CHECK(strlen(url) > strlen(end) && strcmp(url + strlen(url) - strlen(end), end) == 0);
        CHECK(strcmp(text_info(program->easy, CURLINFO_PRIMARY_IP), "127.0.0.1") == 0);
        CHECK(long_info(program->easy, CURLINFO_PRIMARY_PORT) > 0 && long_info(program->easy, CURLINFO_LOCAL_PORT) > 0);
        IS(long_info(program->easy, CURLINFO_HTTP_VERSION), CURL_HTTP_VERSION_1_1);
        IS(long_info(program->easy, CURLINFO_REDIRECT_COUNT), program->origins);
        program->origins++;
    }
    return size * count;
}

static void facts_in_header_callback(void) {
    for (int turn = 0; turn < 2; turn++) {
        struct memory body = {0};
        struct program program = {0};
        CURL *easy = program.easy = new_easy(under(base, "/redirect/302?to=/small/3"), &body);
        curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 1L);
        curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, check_facts);
        curl_easy_setopt(easy, CURLOPT_HEADERDATA, &program);
        IS(turn == 0 ? curl_easy_perform(easy) : perform_in_multi(easy), CURLE_OK);
        IS(program.origins, 2);
        forget(&body);
        curl_easy_cleanup(easy);
    }
}

enum { TEXT_COUNT = 5 };

static const CURLINFO texts[TEXT_COUNT] = {CURLINFO_EFFECTIVE_URL, CURLINFO_PRIMARY_IP, CURLINFO_LOCAL_IP,
                                           CURLINFO_SCHEME, CURLINFO_CONTENT_TYPE};

struct pointers {
    CURL *easy;
    const char *of[TEXT_COUNT];
    struct curl_certinfo *certificates;
};

static size_t keep_pointers(char *data, size_t size, size_t count, void *user) {
    struct pointers *pointers = user;
    if (strncmp(data, "\r\n", 2) == 0 && long_info(pointers->easy, CURLINFO_RESPONSE_CODE) == 200) {
        for (size_t at = 0; at < TEXT_COUNT; at++)
            IS(curl_easy_getinfo(pointers->easy, texts[at], &pointers->of[at]), CURLE_OK);
        IS(curl_easy_getinfo(pointers->easy, CURLINFO_CERTINFO, &pointers->certificates), CURLE_OK);
    }
    return size * count;
}

static void check_pointers(const struct pointers *pointers) {
    for (size_t at = 0; at < TEXT_COUNT; at++) {
        const char *text = text_info(pointers->easy, texts[at]);
        CHECK(text == pointers->of[at] && *text != 0);
    }
    struct curl_certinfo *certificates = NULL;
    IS(curl_easy_getinfo(pointers->easy, CURLINFO_CERTINFO, &certificates), CURLE_OK);
    CHECK(certificates == pointers->certificates && certificates->num_of_certs == 0);
}

static size_t check_pointers_in_body(char *data, size_t size, size_t count, void *user) {
    (void)data;
    check_pointers(user);
    return size * count;
}

static void pointers_in_header_callback(void) {
    for (int turn = 0; turn < 4; turn++) {
        struct pointers pointers = {0};
        CURL *easy = pointers.easy = new_easy(under(base, turn < 2 ? "/echo" : "/redirect/302?to=/echo"), NULL);
        curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 1L);
        curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, keep_pointers);
        curl_easy_setopt(easy, CURLOPT_HEADERDATA, &pointers);
        curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, check_pointers_in_body);
        curl_easy_setopt(easy, CURLOPT_WRITEDATA, &pointers);
        IS(turn % 2 == 0 ? curl_easy_perform(easy) : perform_in_multi(easy), CURLE_OK);
        CHECK(pointers.of[0] != NULL);
        check_pointers(&pointers);
        curl_easy_cleanup(easy);
    }
}

static void schemes_after_login(void) {
    for (int turn = 0; turn < 2; turn++) {
        struct memory body = {0};
        CURL *easy = new_easy(under(base, "/private/small/1"), &body);
        curl_easy_setopt(easy, CURLOPT_USERPWD, "me:secret");
        curl_easy_setopt(easy, CURLOPT_HTTPAUTH, CURLAUTH_ANY);
        IS(turn == 0 ? curl_easy_perform(easy) : perform_in_multi(easy), CURLE_OK);
        IS(long_info(easy, CURLINFO_RESPONSE_CODE), 200);
        IS(long_info(easy, CURLINFO_HTTPAUTH_AVAIL), CURLAUTH_BASIC);
        /* The next transfer is not challenged. */
        curl_easy_setopt(easy, CURLOPT_URL, under(base, "/small"));
        IS(curl_easy_perform(easy), CURLE_OK);
        IS(long_info(easy, CURLINFO_HTTPAUTH_AVAIL), 0);
        forget(&body);
        curl_easy_cleanup(easy);
    }
}

/* BASE-URL asks for Digest, and then for Basic. Its 403 on the next connection offers Bearer. */
static void schemes_of_all_challenges(void) {
    struct memory body = {0};
    CURL *easy = new_easy(base, &body);
    curl_easy_setopt(easy, CURLOPT_USERPWD, "me:secret");
    curl_easy_setopt(easy, CURLOPT_HTTPAUTH, CURLAUTH_DIGEST);
    IS(curl_easy_perform(easy), CURLE_OK);
    IS(long_info(easy, CURLINFO_RESPONSE_CODE), 401);
    IS(long_info(easy, CURLINFO_HTTPAUTH_AVAIL), CURLAUTH_DIGEST | CURLAUTH_BASIC);
    curl_easy_setopt(easy, CURLOPT_FRESH_CONNECT, 1L);
    curl_easy_setopt(easy, CURLOPT_USERPWD, NULL);
    IS(curl_easy_perform(easy), CURLE_OK);
    IS(long_info(easy, CURLINFO_RESPONSE_CODE), 403);
    IS(long_info(easy, CURLINFO_HTTPAUTH_AVAIL), 0);
    forget(&body);
    curl_easy_cleanup(easy);
}

/* BASE-URL is a proxy. */
static void unified_fields(void) {
    struct memory body = {0};
    struct curl_slist *fields = curl_slist_append(NULL, "X-Own: 1");
    CURL *easy = new_easy("http://h.example/", &body);
    curl_easy_setopt(easy, CURLOPT_PROXY, base);
    curl_easy_setopt(easy, CURLOPT_HEADEROPT, (long)CURLHEADER_UNIFIED);
    curl_easy_setopt(easy, CURLOPT_HTTPHEADER, fields);
    IS(curl_easy_perform(easy), CURLE_OK);
    curl_easy_setopt(easy, CURLOPT_HTTPPROXYTUNNEL, 1L);
    curl_easy_setopt(easy, CURLOPT_FRESH_CONNECT, 1L);
    curl_easy_perform(easy);
    forget(&body);
    curl_easy_cleanup(easy);
    curl_slist_free_all(fields);
}

static size_t read_x(char *data, size_t size, size_t count, void *user) {
    size_t *left = user, length = size * count < *left ? size * count : *left;
    memset(data, 'x', length);
    *left -= length;
    return length;
}

static int seek_x(void *user, curl_off_t offset, int origin) {
    CHECK(origin == SEEK_SET);
    *(size_t *)user = 6 - (size_t)offset;
    return CURL_SEEKFUNC_OK;
}

static void content_ranges(void) {
    struct memory body = {0};
    size_t left = 6;
    CURL *easy = new_easy(under(base, "/echo"), &body);
    curl_easy_setopt(easy, CURLOPT_RANGE, "0-1");
    curl_easy_setopt(easy, CURLOPT_POSTFIELDS, "abcdef");
    IS(curl_easy_perform(easy), CURLE_OK);
    CHECK(contains(&body, "[\"content-range\",\"bytes 0-1/6\"]") && !contains(&body, "[\"range\""));
    /* Other content has another length. */
    forget(&body);
    curl_easy_setopt(easy, CURLOPT_POSTFIELDS, "abc");
    IS(curl_easy_perform(easy), CURLE_OK);
    CHECK(contains(&body, "[\"content-range\",\"bytes 0-1/3\"]"));
    forget(&body);
    curl_easy_setopt(easy, CURLOPT_RANGE, NULL);
    curl_easy_setopt(easy, CURLOPT_RESUME_FROM_LARGE, (curl_off_t)2);
    IS(curl_easy_perform(easy), CURLE_BAD_FUNCTION_ARGUMENT);
    curl_easy_setopt(easy, CURLOPT_POSTFIELDS, NULL);
    curl_easy_setopt(easy, CURLOPT_POST, 1L);
    curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE, 6L);
    curl_easy_setopt(easy, CURLOPT_READFUNCTION, read_x);
    curl_easy_setopt(easy, CURLOPT_READDATA, &left);
    curl_easy_setopt(easy, CURLOPT_SEEKFUNCTION, seek_x);
    curl_easy_setopt(easy, CURLOPT_SEEKDATA, &left);
    IS(curl_easy_perform(easy), CURLE_OK);
    CHECK(contains(&body, "[\"content-range\",\"bytes 2-5/6\"]") && contains(&body, "\"body\":\"xxxx\""));
    /* Content of unknown length has no range, but the next content has one. */
    forget(&body);
    left = 3;
    curl_easy_setopt(easy, CURLOPT_RESUME_FROM_LARGE, (curl_off_t)0);
    curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE, -1L);
    curl_easy_setopt(easy, CURLOPT_RANGE, "0-1");
    IS(curl_easy_perform(easy), CURLE_OK);
    CHECK(!contains(&body, "[\"content-range\"") && contains(&body, "\"body\":\"xxx\""));
    forget(&body);
    curl_easy_setopt(easy, CURLOPT_POSTFIELDS, "abc");
    IS(curl_easy_perform(easy), CURLE_OK);
    CHECK(contains(&body, "[\"content-range\",\"bytes 0-1/3\"]"));
    forget(&body);
    curl_easy_cleanup(easy);
}

/* BASE-URL responds with 304. */
static void own_condition(void) {
    struct memory body = {0};
    struct curl_slist *fields = curl_slist_append(NULL, "If-None-Match: \"x\"");
    CURL *easy = new_easy(base, &body);
    curl_easy_setopt(easy, CURLOPT_HTTPHEADER, fields);
    IS(curl_easy_perform(easy), CURLE_OK);
    IS(long_info(easy, CURLINFO_RESPONSE_CODE), 304);
    IS(long_info(easy, CURLINFO_CONDITION_UNMET), 1);
    IS(off_t_info(easy, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T), 0);
    forget(&body);
    curl_easy_cleanup(easy);
    curl_slist_free_all(fields);
}

static void part_types(void) {
    struct memory body = {0};
    CURL *easy = new_easy(under(base, "/echo"), &body);
    curl_mime *form = curl_mime_init(easy);
    for (int turn = 0; turn < 2; turn++) {
        struct curl_slist *fields = curl_slist_append(curl_slist_append(NULL, "X-Part: 1"), "content-type: z/z");
        curl_mimepart *part = curl_mime_addpart(form);
        curl_mime_data(part, "text", CURL_ZERO_TERMINATED);
        curl_mime_headers(part, fields, 1);
        if (turn == 0)
            curl_mime_type(part, "text/html");
        else
            curl_mime_name(part, "second");
    }
    curl_easy_setopt(easy, CURLOPT_MIMEPOST, form);
    IS(curl_easy_perform(easy), CURLE_OK);
    const char *first = strstr(text_of(&body), "Content-Type: text/html"), *second = strstr(text_of(&body), "z/z");
    CHECK(first != NULL && second > first && strstr(second + 1, "z/z") == NULL);
    CHECK(second > strstr(text_of(&body), "second"));
    curl_mime_free(form);
    /* A form without parts is the end of one. */
    forget(&body);
    form = curl_mime_init(easy);
    curl_easy_setopt(easy, CURLOPT_MIMEPOST, form);
    IS(curl_easy_perform(easy), CURLE_OK);
    CHECK(contains(&body, "multipart/form-data; boundary=--") && contains(&body, "\"body\":\"--"));
    curl_mime_free(form);
    forget(&body);
    curl_easy_cleanup(easy);
}

static void small_options(void) {
    struct memory body = {0};
    struct curl_slist *junk = curl_slist_append(NULL, "junk");
    CURL *easy = new_easy(under(base, "/echo"), &body);
    IS(curl_easy_setopt(easy, CURLOPT_SOCKS5_AUTH, 0L), CURLE_OK);
    IS(curl_easy_setopt(easy, CURLOPT_SOCKS5_AUTH, (long)CURLAUTH_BASIC), CURLE_OK);
    IS(curl_easy_setopt(easy, CURLOPT_SOCKS5_AUTH, (long)(CURLAUTH_BASIC | CURLAUTH_DIGEST)), CURLE_NOT_BUILT_IN);
    struct curl_blob empty = {"", 0, CURL_BLOB_COPY};
    IS(curl_easy_setopt(easy, CURLOPT_CAINFO_BLOB, &empty), CURLE_BAD_FUNCTION_ARGUMENT);
    curl_easy_setopt(easy, CURLOPT_USERPWD, ":");
    IS(curl_easy_perform(easy), CURLE_OK);
    CHECK(!contains(&body, "uthorization"));
    curl_easy_setopt(easy, CURLOPT_RESOLVE, junk);
    IS(curl_easy_perform(easy), CURLE_SETOPT_OPTION_SYNTAX);
    CHECK(strstr(error_buffer, "junk") != NULL && strstr(error_buffer, "--resolve") == NULL);
    forget(&body);
    curl_easy_cleanup(easy);
    curl_slist_free_all(junk);
}

static const struct {
    const char *name;
    void (*run)(void);
} cases[] = {
    {"paused_until_timeout", paused_until_timeout},
    {"header_function_in_write_callback", header_function_in_write_callback},
    {"header_function_in_read_callback", header_function_in_read_callback},
    {"stored_trailers", stored_trailers},
    {"transfer_ids", transfer_ids},
    {"connection_reuse", connection_reuse},
    {"refused_by_progress", refused_by_progress},
    {"multi_after_fork", multi_after_fork},
    {"names_after_fork", names_after_fork},
    {"facts_in_header_callback", facts_in_header_callback},
    {"pointers_in_header_callback", pointers_in_header_callback},
    {"schemes_after_login", schemes_after_login},
    {"schemes_of_all_challenges", schemes_of_all_challenges},
    {"unified_fields", unified_fields},
    {"content_ranges", content_ranges},
    {"own_condition", own_condition},
    {"part_types", part_types},
    {"small_options", small_options},
};

int main(int count, char **arguments) {
    CHECK(count == 3);
    base = arguments[2];
    curl_global_init(CURL_GLOBAL_ALL);
    for (size_t at = 0; at < sizeof cases / sizeof *cases; at++) {
        if (strcmp(arguments[1], cases[at].name) == 0) {
            cases[at].run();
            puts("as libcurl");
            return 0;
        }
    }
    fprintf(stderr, "there is no case %s\n", arguments[1]);
    return 1;
}
