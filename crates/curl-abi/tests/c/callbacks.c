/* Callbacks of the easy interface: their order, pauses, aborts, progress, debugging: callbacks BASE-URL. */
#include "check.h"

static const char *base;

/* The order of events, one letter each: h header, w write, p progress, d debug, r read. Repeated letters count once. */
static char order[256];

static void note(char letter) {
    size_t length = strlen(order);
    if (length > 0 && order[length - 1] == letter)
        return;
    CHECK(length + 1 < sizeof order);
    order[length] = letter;
    order[length + 1] = 0;
}

static size_t write_note(char *data, size_t size, size_t count, void *user) {
    note('w');
    return collect(data, size, count, user);
}

static size_t header_note(char *data, size_t size, size_t count, void *user) {
    note('h');
    return collect(data, size, count, user);
}

static void events_in_order(void) {
    struct memory body = {0}, head = {0};
    CURL *easy = new_easy(under(base, "/redirect/302?to=/small/3"), &body);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, write_note);
    curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, header_note);
    curl_easy_setopt(easy, CURLOPT_HEADERDATA, &head);
    curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 1L);
    order[0] = 0;
    IS(curl_easy_perform(easy), CURLE_OK);
    CHECK(strcmp(order, "hw") == 0);
    CHECK(strcmp(text_of(&body), "small 3\n") == 0);

    /* A trailer section comes after the body, without its empty line. */
    forget(&head), forget(&body);
    order[0] = 0;
    curl_easy_setopt(easy, CURLOPT_URL, under(base, "/chunked/100?trailer=1"));
    struct curl_slist *fields = curl_slist_append(NULL, "TE: trailers");
    curl_easy_setopt(easy, CURLOPT_HTTPHEADER, fields);
    IS(curl_easy_perform(easy), CURLE_OK);
    CHECK(strcmp(order, "hwh") == 0 && body.length == 100);
    CHECK(strcmp(text_of(&head) + head.length - 14, "x-total: 100\r\n") == 0);
    struct curl_header *field;
    IS(curl_easy_header(easy, "X-Total", 0, CURLH_TRAILER, -1, &field), CURLHE_OK);
    CHECK(strcmp(field->value, "100") == 0);
    curl_easy_setopt(easy, CURLOPT_HTTPHEADER, NULL);
    curl_slist_free_all(fields);

    /* Header data without a header function goes to the write function. */
    forget(&head), forget(&body);
    curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, NULL);
    curl_easy_setopt(easy, CURLOPT_URL, under(base, "/small"));
    IS(curl_easy_perform(easy), CURLE_OK);
    CHECK(strncmp(text_of(&head), "HTTP/1.1 200", 12) == 0 && strcmp(text_of(&body), "small\n") == 0);
    forget(&head), forget(&body);
    curl_easy_cleanup(easy);
}

static size_t refuse(char *data, size_t size, size_t count, void *user) {
    (void)data, (void)size, (void)count, (void)user;
    return 0;
}

static void refused_data(void) {
    struct memory body = {0};
    CURL *easy = new_easy(under(base, "/bytes/100000"), &body);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, refuse);
    IS(curl_easy_perform(easy), CURLE_WRITE_ERROR);
    CHECK(strcmp(error_buffer, "Failure writing output to destination") == 0);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, collect);
    curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, refuse);
    IS(curl_easy_perform(easy), CURLE_WRITE_ERROR);
    IS(body.length, 0);
    curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, NULL);
    IS(curl_easy_perform(easy), CURLE_OK);
    IS(body.length, 100000);
    CHECK(body.largest <= CURL_MAX_WRITE_SIZE);
    forget(&body);
    curl_easy_cleanup(easy);
}

struct progress {
    CURL *easy;
    int calls;
    int abort_at;
    int resume_at;
    curl_off_t down_total, down, up_total, up;
};

static int progress(void *user, curl_off_t down_total, curl_off_t down, curl_off_t up_total, curl_off_t up) {
    struct progress *seen = user;
    seen->calls++;
    seen->down_total = down_total, seen->down = down, seen->up_total = up_total, seen->up = up;
    if (seen->resume_at > 0 && seen->calls >= seen->resume_at)
        curl_easy_pause(seen->easy, CURLPAUSE_CONT);
    return seen->abort_at > 0 && seen->calls >= seen->abort_at;
}

static int old_progress(void *user, double down_total, double down, double up_total, double up) {
    (void)up_total, (void)up;
    double *seen = user;
    seen[0] = down_total, seen[1] = down;
    return 0;
}

static void progress_reports(void) {
    struct memory body = {0};
    CURL *easy = new_easy(under(base, "/bytes/300000"), &body);
    struct progress seen = {.easy = easy};
    curl_easy_setopt(easy, CURLOPT_XFERINFOFUNCTION, progress);
    curl_easy_setopt(easy, CURLOPT_XFERINFODATA, &seen);
    IS(curl_easy_perform(easy), CURLE_OK);
    IS(seen.calls, 0);
    curl_easy_setopt(easy, CURLOPT_NOPROGRESS, 0L);
    IS(curl_easy_perform(easy), CURLE_OK);
    CHECK(seen.calls >= 2);
    IS(seen.down_total, 300000);
    IS(seen.down, 300000);
    seen.calls = 0, seen.abort_at = 2;
    IS(curl_easy_perform(easy), CURLE_ABORTED_BY_CALLBACK);
    /* A wait is ended, too. */
    seen.calls = 0, seen.abort_at = 3;
    curl_easy_setopt(easy, CURLOPT_URL, under(base, "/delay/60000/small"));
    IS(curl_easy_perform(easy), CURLE_ABORTED_BY_CALLBACK);
    seen.calls = 0, seen.abort_at = 0;
    char content[5000];
    memset(content, 'x', sizeof content);
    curl_easy_setopt(easy, CURLOPT_URL, under(base, "/echo"));
    curl_easy_setopt(easy, CURLOPT_POSTFIELDS, content);
    curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE, (long)sizeof content);
    IS(curl_easy_perform(easy), CURLE_OK);
    IS(seen.up_total, 5000);
    double old[2] = {0, 0};
    curl_easy_setopt(easy, CURLOPT_XFERINFOFUNCTION, NULL);
    curl_easy_setopt(easy, CURLOPT_PROGRESSFUNCTION, old_progress);
    curl_easy_setopt(easy, CURLOPT_XFERINFODATA, old);
    curl_easy_setopt(easy, CURLOPT_HTTPGET, 1L);
    curl_easy_setopt(easy, CURLOPT_URL, under(base, "/bytes/1000"));
    IS(curl_easy_perform(easy), CURLE_OK);
    CHECK(old[0] == 1000 && old[1] == 1000);
    forget(&body);
    curl_easy_cleanup(easy);
}

static int pauses_left;

static size_t pause_first(char *data, size_t size, size_t count, void *user) {
    if (pauses_left > 0) {
        pauses_left--;
        return CURL_WRITEFUNC_PAUSE;
    }
    return collect(data, size, count, user);
}

static void pauses(void) {
    struct memory body = {0}, head = {0};
    CURL *easy = new_easy(under(base, "/bytes/100000"), &body);
    struct progress seen = {.easy = easy, .resume_at = 3};
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, pause_first);
    curl_easy_setopt(easy, CURLOPT_XFERINFOFUNCTION, progress);
    curl_easy_setopt(easy, CURLOPT_XFERINFODATA, &seen);
    curl_easy_setopt(easy, CURLOPT_NOPROGRESS, 0L);
    pauses_left = 2;
    IS(curl_easy_perform(easy), CURLE_OK);
    IS(body.length, 100000);
    IS(pauses_left, 0);
    /* The same in a header callback: the line comes again. */
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, collect);
    curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, pause_first);
    curl_easy_setopt(easy, CURLOPT_HEADERDATA, &head);
    seen.calls = 0;
    pauses_left = 1;
    IS(curl_easy_perform(easy), CURLE_OK);
    CHECK(strncmp(text_of(&head), "HTTP/1.1 200", 12) == 0);
    /* A pause that nobody ends lasts until the time limit. */
    curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, 200L);
    curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, NULL);
    curl_easy_setopt(easy, CURLOPT_HEADERDATA, NULL);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, pause_first);
    curl_easy_setopt(easy, CURLOPT_NOPROGRESS, 1L);
    pauses_left = 1000;
    IS(curl_easy_perform(easy), CURLE_OPERATION_TIMEDOUT);
    IS(curl_easy_pause(easy, CURLPAUSE_CONT), CURLE_BAD_FUNCTION_ARGUMENT);
    forget(&body), forget(&head);
    curl_easy_cleanup(easy);
}

struct debugged {
    struct memory kinds[CURLINFO_END];
};

static int debug(CURL *easy, curl_infotype kind, char *data, size_t size, void *user) {
    struct debugged *seen = user;
    CHECK(easy != NULL && kind < CURLINFO_END);
    collect(data, 1, size, &seen->kinds[kind]);
    return 0;
}

static void debug_events(void) {
    struct memory body = {0};
    struct debugged seen = {0};
    CURL *easy = new_easy(under(base, "/echo"), &body);
    curl_easy_setopt(easy, CURLOPT_VERBOSE, 1L);
    curl_easy_setopt(easy, CURLOPT_DEBUGFUNCTION, debug);
    curl_easy_setopt(easy, CURLOPT_DEBUGDATA, &seen);
    curl_easy_setopt(easy, CURLOPT_POSTFIELDS, "a=1");
    IS(curl_easy_perform(easy), CURLE_OK);
    CHECK(strncmp(text_of(&seen.kinds[CURLINFO_HEADER_OUT]), "POST /echo HTTP/1.1\r\n", 21) == 0);
    CHECK(strstr(text_of(&seen.kinds[CURLINFO_HEADER_OUT]), "\r\n\r\n") != NULL);
    CHECK(strncmp(text_of(&seen.kinds[CURLINFO_HEADER_IN]), "HTTP/1.1 200 OK\r\n", 17) == 0);
    CHECK(strcmp(text_of(&seen.kinds[CURLINFO_DATA_OUT]), "a=1") == 0);
    CHECK(strcmp(text_of(&seen.kinds[CURLINFO_DATA_IN]), text_of(&body)) == 0);
    CHECK(contains(&seen.kinds[CURLINFO_TEXT], "onnect"));
    for (int kind = 0; kind < CURLINFO_END; kind++)
        forget(&seen.kinds[kind]);
    /* Without a callback, it is printed. */
    char *printed = NULL;
    size_t length = 0;
    FILE *file = open_memstream(&printed, &length);
    curl_easy_setopt(easy, CURLOPT_DEBUGFUNCTION, NULL);
    curl_easy_setopt(easy, CURLOPT_STDERR, file);
    IS(curl_easy_perform(easy), CURLE_OK);
    fclose(file);
    CHECK(strstr(printed, "> POST /echo HTTP/1.1\r\n") != NULL && strstr(printed, "< HTTP/1.1 200 OK\r\n") != NULL);
    free(printed);
    forget(&body);
    curl_easy_cleanup(easy);
}

struct reading {
    const char *text;
    size_t at;
    int pauses;
    int seeks;
    size_t result;
};

static size_t read_text(char *buffer, size_t size, size_t count, void *user) {
    struct reading *reading = user;
    if (reading->result != 0)
        return reading->result;
    if (reading->pauses > 0) {
        reading->pauses--;
        return CURL_READFUNC_PAUSE;
    }
    size_t left = strlen(reading->text) - reading->at, most = size * count < 3 ? size * count : 3;
    size_t length = left < most ? left : most;
    memcpy(buffer, reading->text + reading->at, length);
    reading->at += length;
    return length;
}

static int seek_text(void *user, curl_off_t offset, int origin) {
    struct reading *reading = user;
    CHECK(origin == SEEK_SET);
    reading->at = (size_t)offset;
    reading->seeks++;
    return CURL_SEEKFUNC_OK;
}

static void reads(void) {
    struct memory body = {0};
    CURL *easy = new_easy(under(base, "/echo"), &body);
    struct reading reading = {.text = "content of the program", .pauses = 1};
    struct progress seen = {.easy = easy, .resume_at = 2};
    curl_easy_setopt(easy, CURLOPT_READFUNCTION, read_text);
    curl_easy_setopt(easy, CURLOPT_READDATA, &reading);
    curl_easy_setopt(easy, CURLOPT_SEEKFUNCTION, seek_text);
    curl_easy_setopt(easy, CURLOPT_SEEKDATA, &reading);
    curl_easy_setopt(easy, CURLOPT_XFERINFOFUNCTION, progress);
    curl_easy_setopt(easy, CURLOPT_XFERINFODATA, &seen);
    curl_easy_setopt(easy, CURLOPT_NOPROGRESS, 0L);
    curl_easy_setopt(easy, CURLOPT_POST, 1L);
    curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE, (long)strlen(reading.text));
    IS(curl_easy_perform(easy), CURLE_OK);
    CHECK(contains(&body, "\"body\":\"content of the program\"") && contains(&body, "\"POST\""));
    IS(reading.seeks, 0);
    /* A redirect that keeps the content sends it again. */
    forget(&body);
    reading.at = 0;
    curl_easy_setopt(easy, CURLOPT_URL, under(base, "/redirect/307?to=/echo"));
    curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 1L);
    IS(curl_easy_perform(easy), CURLE_OK);
    CHECK(contains(&body, "\"body\":\"content of the program\""));
    IS(reading.seeks, 1);
    /* Without a way back, that is an error. */
    reading.at = 0;
    curl_easy_setopt(easy, CURLOPT_SEEKFUNCTION, NULL);
    IS(curl_easy_perform(easy), CURLE_SEND_FAIL_REWIND);
    curl_easy_setopt(easy, CURLOPT_URL, under(base, "/echo"));
    reading.at = 0, reading.result = CURL_READFUNC_ABORT;
    IS(curl_easy_perform(easy), CURLE_ABORTED_BY_CALLBACK);
    reading.at = 0, reading.result = (size_t)1 << 40;
    IS(curl_easy_perform(easy), CURLE_READ_ERROR);
    reading.at = 10, reading.result = 0;
    IS(curl_easy_perform(easy), CURLE_READ_ERROR);
    forget(&body);
    curl_easy_cleanup(easy);
}

static CURL *used_in_callback;

/* A callback may use its own handle and others. */
static size_t use_handles(char *data, size_t size, size_t count, void *user) {
    IS(curl_easy_perform(used_in_callback), CURLE_RECURSIVE_API_CALL);
    IS(long_info(used_in_callback, CURLINFO_RESPONSE_CODE), 200);
    curl_easy_setopt(used_in_callback, CURLOPT_USERAGENT, "later");
    struct memory body = {0};
    CURL *other = new_easy(under(base, "/small/9"), &body);
    IS(curl_easy_perform(other), CURLE_OK);
    CHECK(strcmp(text_of(&body), "small 9\n") == 0);
    forget(&body);
    curl_easy_cleanup(other);
    return collect(data, size, count, user);
}

static size_t free_own(char *data, size_t size, size_t count, void *user) {
    curl_easy_cleanup(used_in_callback);
    return collect(data, size, count, user);
}

static void nested_calls(void) {
    struct memory body = {0};
    used_in_callback = new_easy(under(base, "/small"), &body);
    curl_easy_setopt(used_in_callback, CURLOPT_WRITEFUNCTION, use_handles);
    IS(curl_easy_perform(used_in_callback), CURLE_OK);
    CHECK(strcmp(text_of(&body), "small\n") == 0);
    curl_easy_setopt(used_in_callback, CURLOPT_WRITEFUNCTION, free_own);
    IS(curl_easy_perform(used_in_callback), CURLE_OK);
    IS(curl_easy_perform(used_in_callback), CURLE_BAD_FUNCTION_ARGUMENT);
    forget(&body);
}

int main(int argc, char **argv) {
    CHECK(argc == 2);
    base = argv[1];
    events_in_order();
    refused_data();
    progress_reports();
    pauses();
    debug_events();
    reads();
    nested_calls();
    puts("called as by libcurl");
    return 0;
}
