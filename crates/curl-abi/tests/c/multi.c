/* The multi interface, driven in each of its ways, against the embedded origin: multi BASE-URL CLOSED-URL. */
#include "check.h"
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <unistd.h>

enum { COUNT = 20 };

static const char *base;
static pthread_t main_thread;

struct one {
    CURL *easy;
    struct memory body;
    int done;
    CURLcode result;
};

static size_t collect_here(char *data, size_t size, size_t count, void *user) {
    CHECK(pthread_equal(pthread_self(), main_thread));
    return collect(data, size, count, &((struct one *)user)->body);
}

static void add_all(CURLM *multi, struct one *all, const char *path) {
    for (int i = 0; i < COUNT; i++) {
        char url[256];
        snprintf(url, sizeof url, "%s%s%d", base, path, i);
        memset(&all[i], 0, sizeof all[i]);
        all[i].easy = new_easy(url, &all[i].body);
        curl_easy_setopt(all[i].easy, CURLOPT_WRITEFUNCTION, collect_here);
        curl_easy_setopt(all[i].easy, CURLOPT_WRITEDATA, &all[i]);
        curl_easy_setopt(all[i].easy, CURLOPT_PRIVATE, &all[i]);
        IS(curl_multi_add_handle(multi, all[i].easy), CURLM_OK);
        IS(curl_multi_add_handle(multi, all[i].easy), CURLM_ADDED_ALREADY);
        IS(curl_easy_perform(all[i].easy), CURLE_FAILED_INIT);
    }
}

static int read_messages(CURLM *multi) {
    int left, count = 0;
    CURLMsg *message;
    while ((message = curl_multi_info_read(multi, &left)) != NULL) {
        IS(message->msg, CURLMSG_DONE);
        struct one *one = NULL;
        curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, (char **)&one);
        CHECK(one != NULL && one->easy == message->easy_handle && !one->done);
        one->done = 1;
        one->result = message->data.result;
        count++;
    }
    return count;
}

static void check_all(CURLM *multi, struct one *all) {
    for (int i = 0; i < COUNT; i++) {
        char expected[64];
        snprintf(expected, sizeof expected, "small %d\n", i);
        CHECK(all[i].done);
        IS(all[i].result, CURLE_OK);
        CHECK(strcmp(text_of(&all[i].body), expected) == 0);
        IS(long_info(all[i].easy, CURLINFO_RESPONSE_CODE), 200);
        IS(curl_multi_remove_handle(multi, all[i].easy), CURLM_OK);
        IS(curl_multi_remove_handle(multi, all[i].easy), CURLM_OK);
        curl_easy_cleanup(all[i].easy);
        forget(&all[i].body);
    }
}

static void by_poll(void) {
    CURLM *multi = curl_multi_init();
    struct one all[COUNT];
    add_all(multi, all, "/small/");
    int running = COUNT, done = 0;
    while (running > 0) {
        IS(curl_multi_perform(multi, &running), CURLM_OK);
        done += read_messages(multi);
        if (running > 0)
            IS(curl_multi_poll(multi, NULL, 0, 10000, NULL), CURLM_OK);
    }
    IS(done, COUNT);
    check_all(multi, all);
    IS(curl_multi_cleanup(multi), CURLM_OK);
    IS(curl_multi_cleanup(multi), CURLM_BAD_HANDLE);
}

static void by_select(void) {
    CURLM *multi = curl_multi_init();
    curl_multi_setopt(multi, CURLMOPT_MAX_HOST_CONNECTIONS, 3L);
    struct one all[COUNT];
    add_all(multi, all, "/small/");
    int running;
    do {
        fd_set reads, writes, excepts;
        FD_ZERO(&reads);
        FD_ZERO(&writes);
        FD_ZERO(&excepts);
        int highest = -2;
        IS(curl_multi_fdset(multi, &reads, &writes, &excepts, &highest), CURLM_OK);
        long timeout = -2;
        IS(curl_multi_timeout(multi, &timeout), CURLM_OK);
        CHECK(timeout >= -1);
        /* Before the first turn there is nothing to watch, and nothing to wait for. */
        CHECK(highest >= 0 || timeout == 0);
        struct timeval wait = {10, 0};
        if (timeout >= 0)
            wait.tv_sec = timeout / 1000, wait.tv_usec = timeout % 1000 * 1000;
        CHECK(select(highest + 1, &reads, &writes, &excepts, &wait) >= 0);
        IS(curl_multi_perform(multi, &running), CURLM_OK);
        read_messages(multi);
    } while (running > 0);
    check_all(multi, all);
    int highest = 0;
    fd_set reads;
    FD_ZERO(&reads);
    IS(curl_multi_fdset(multi, &reads, NULL, NULL, &highest), CURLM_OK);
    IS(highest, -1);
    IS(curl_multi_cleanup(multi), CURLM_OK);
}

struct loop {
    CURLM *multi;
    int epoll;
    long timeout;
    int watched, removed;
    int assigned_seen;
};

static int on_socket(CURL *easy, curl_socket_t socket, int what, void *user, void *pointer) {
    struct loop *loop = user;
    CHECK(easy != NULL);
    struct epoll_event event = {.events = EPOLLIN, .data = {.fd = socket}};
    if (what == CURL_POLL_REMOVE) {
        if (pointer == loop)
            loop->assigned_seen++;
        CHECK(epoll_ctl(loop->epoll, EPOLL_CTL_DEL, socket, &event) == 0);
        loop->removed++;
    } else {
        CHECK(what == CURL_POLL_IN && pointer == NULL);
        CHECK(epoll_ctl(loop->epoll, EPOLL_CTL_ADD, socket, &event) == 0);
        IS(curl_multi_assign(loop->multi, socket, loop), CURLM_OK);
        loop->watched++;
    }
    return 0;
}

static int on_timer(CURLM *multi, long timeout, void *user) {
    struct loop *loop = user;
    CHECK(multi == loop->multi);
    loop->timeout = timeout;
    return 0;
}

static void by_socket_action(void) {
    struct loop loop = {.multi = curl_multi_init(), .epoll = epoll_create1(0), .timeout = -1};
    curl_multi_setopt(loop.multi, CURLMOPT_SOCKETFUNCTION, on_socket);
    curl_multi_setopt(loop.multi, CURLMOPT_SOCKETDATA, &loop);
    curl_multi_setopt(loop.multi, CURLMOPT_TIMERFUNCTION, on_timer);
    curl_multi_setopt(loop.multi, CURLMOPT_TIMERDATA, &loop);
    for (int round = 0; round < 2; round++) {
        struct one all[COUNT];
        add_all(loop.multi, all, "/small/");
        IS(loop.timeout, 0);
        int running;
        IS(curl_multi_socket_action(loop.multi, CURL_SOCKET_TIMEOUT, 0, &running), CURLM_OK);
        while (running > 0) {
            struct epoll_event events[4];
            int count = epoll_wait(loop.epoll, events, 4, loop.timeout >= 0 ? (int)loop.timeout : 10000);
            CHECK(count > 0);
            for (int i = 0; i < count; i++)
                IS(curl_multi_socket_action(loop.multi, events[i].data.fd, CURL_CSELECT_IN, &running), CURLM_OK);
        }
        IS(read_messages(loop.multi), COUNT);
        CHECK(loop.watched > 0 && loop.watched == loop.removed && loop.assigned_seen == loop.removed);
        check_all(loop.multi, all);
    }
    IS(curl_multi_assign(loop.multi, 99999, NULL), CURLM_BAD_SOCKET);
    IS(curl_multi_cleanup(loop.multi), CURLM_OK);
    close(loop.epoll);
}

static CURLcode run_one(CURLM *multi, CURL *easy) {
    IS(curl_multi_add_handle(multi, easy), CURLM_OK);
    int running = 1, left;
    while (running > 0) {
        IS(curl_multi_perform(multi, &running), CURLM_OK);
        if (running > 0)
            IS(curl_multi_poll(multi, NULL, 0, 10000, NULL), CURLM_OK);
    }
    CURLMsg *message = curl_multi_info_read(multi, &left);
    CHECK(message != NULL && message->easy_handle == easy && left == 0);
    CURLcode result = message->data.result;
    IS(curl_multi_remove_handle(multi, easy), CURLM_OK);
    CHECK(curl_multi_info_read(multi, &left) == NULL);
    return result;
}

static int pauses_left;

static size_t pause_first(char *data, size_t size, size_t count, void *user) {
    if (pauses_left > 0) {
        pauses_left--;
        return CURL_WRITEFUNC_PAUSE;
    }
    return collect(data, size, count, user);
}

struct reading {
    const char *text;
    size_t at;
    int pauses;
};

static size_t read_text(char *buffer, size_t size, size_t count, void *user) {
    struct reading *reading = user;
    CHECK(pthread_equal(pthread_self(), main_thread));
    if (reading->pauses > 0) {
        reading->pauses--;
        return CURL_READFUNC_PAUSE;
    }
    size_t left = strlen(reading->text) - reading->at, most = size * count < 4 ? size * count : 4;
    size_t length = left < most ? left : most;
    memcpy(buffer, reading->text + reading->at, length);
    reading->at += length;
    return length;
}

static int count_progress(void *user, curl_off_t down_total, curl_off_t down, curl_off_t up_total, curl_off_t up) {
    (void)down_total, (void)down, (void)up_total, (void)up;
    CHECK(pthread_equal(pthread_self(), main_thread));
    ++*(int *)user;
    return *(int *)user >= 1000000;
}

static int stop(void *user, curl_off_t down_total, curl_off_t down, curl_off_t up_total, curl_off_t up) {
    (void)user, (void)down_total, (void)down, (void)up_total, (void)up;
    return 1;
}

static void one_by_one(const char *closed) {
    CURLM *multi = curl_multi_init();
    struct memory body = {0}, head = {0};
    CURL *easy = new_easy(under(base, "/bytes/3000000"), &body);
    curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, collect);
    curl_easy_setopt(easy, CURLOPT_HEADERDATA, &head);
    IS(run_one(multi, easy), CURLE_OK);
    IS(body.length, 3000000);
    CHECK(body.largest <= CURL_MAX_WRITE_SIZE && strncmp(text_of(&head), "HTTP/1.1 200 OK\r\n", 17) == 0);
    IS(off_t_info(easy, CURLINFO_SIZE_DOWNLOAD_T), 3000000);
    IS(long_info(easy, CURLINFO_NUM_CONNECTS), 1);
    char *direct = malloc(3000000);
    memcpy(direct, body.start, 3000000);
    forget(&body);
    IS(curl_easy_perform(easy), CURLE_OK);
    CHECK(body.length == 3000000 && memcmp(direct, body.start, 3000000) == 0);
    free(direct);

    /* Redirects, failures. */
    forget(&body), forget(&head);
    curl_easy_setopt(easy, CURLOPT_URL, under(base, "/chain/2"));
    curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 1L);
    IS(run_one(multi, easy), CURLE_OK);
    CHECK(strcmp(text_of(&body), "end of chain\n") == 0 && contains(&head, "302 Found") && contains(&head, "200 OK"));
    IS(long_info(easy, CURLINFO_REDIRECT_COUNT), 2);
    curl_easy_setopt(easy, CURLOPT_URL, closed);
    IS(run_one(multi, easy), CURLE_COULDNT_CONNECT);
    CHECK(strstr(error_buffer, "Failed to connect") != NULL);
    curl_easy_setopt(easy, CURLOPT_URL, "gopher://127.0.0.1/");
    IS(run_one(multi, easy), CURLE_UNSUPPORTED_PROTOCOL);
    curl_easy_setopt(easy, CURLOPT_URL, under(base, "/delay/60000/small"));
    curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, 50L);
    IS(run_one(multi, easy), CURLE_OPERATION_TIMEDOUT);
    curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, 0L);

    /* A pause: the transfer goes on when the program says so. */
    forget(&body);
    curl_easy_setopt(easy, CURLOPT_URL, under(base, "/bytes/1000000"));
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, pause_first);
    pauses_left = 1;
    IS(curl_multi_add_handle(multi, easy), CURLM_OK);
    int running = 1;
    while (pauses_left > 0) {
        IS(curl_multi_perform(multi, &running), CURLM_OK);
        curl_multi_poll(multi, NULL, 0, 1000, NULL);
    }
    for (int i = 0; i < 5; i++) {
        IS(curl_multi_perform(multi, &running), CURLM_OK);
        IS(running, 1);
        IS(body.length, 0);
    }
    IS(curl_easy_pause(easy, CURLPAUSE_CONT), CURLE_OK);
    while (running > 0) {
        IS(curl_multi_perform(multi, &running), CURLM_OK);
        if (running > 0)
            curl_multi_wait(multi, NULL, 0, 10000, NULL);
    }
    IS(body.length, 1000000);
    IS(curl_multi_remove_handle(multi, easy), CURLM_OK);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, collect);

    /* Content of the program, with a pause; then its progress, and its end by the program. */
    forget(&body);
    struct reading reading = {.text = "content for the other thread", .pauses = 1};
    curl_easy_setopt(easy, CURLOPT_URL, under(base, "/echo"));
    curl_easy_setopt(easy, CURLOPT_READFUNCTION, read_text);
    curl_easy_setopt(easy, CURLOPT_READDATA, &reading);
    curl_easy_setopt(easy, CURLOPT_UPLOAD, 1L);
    curl_easy_setopt(easy, CURLOPT_INFILESIZE, (long)strlen(reading.text));
    IS(curl_multi_add_handle(multi, easy), CURLM_OK);
    running = 1;
    while (running > 0) {
        IS(curl_multi_perform(multi, &running), CURLM_OK);
        if (reading.pauses == 0)
            IS(curl_easy_pause(easy, CURLPAUSE_CONT), running > 0 ? CURLE_OK : CURLE_BAD_FUNCTION_ARGUMENT);
        if (running > 0)
            curl_multi_poll(multi, NULL, 0, 100, NULL);
    }
    CHECK(contains(&body, "\"body\":\"content for the other thread\"") && contains(&body, "[\"content-length\",\"28\"]"));
    IS(curl_multi_remove_handle(multi, easy), CURLM_OK);
    forget(&body);
    reading.at = 0;
    curl_easy_setopt(easy, CURLOPT_INFILESIZE, -1L);
    int calls = 0;
    curl_easy_setopt(easy, CURLOPT_XFERINFOFUNCTION, count_progress);
    curl_easy_setopt(easy, CURLOPT_XFERINFODATA, &calls);
    curl_easy_setopt(easy, CURLOPT_NOPROGRESS, 0L);
    IS(run_one(multi, easy), CURLE_OK);
    CHECK(contains(&body, "\"body\":\"content for the other thread\"") && contains(&body, "chunked") && calls >= 2);
    reading.at = 0;
    curl_easy_setopt(easy, CURLOPT_XFERINFOFUNCTION, stop);
    IS(run_one(multi, easy), CURLE_ABORTED_BY_CALLBACK);
    forget(&body), forget(&head);
    curl_easy_cleanup(easy);
    IS(curl_multi_cleanup(multi), CURLM_OK);
}

static CURLM *used_in_callback;

static size_t use_multi(char *data, size_t size, size_t count, void *user) {
    int running;
    IS(curl_multi_perform(used_in_callback, &running), CURLM_RECURSIVE_API_CALL);
    IS(curl_multi_cleanup(used_in_callback), CURLM_RECURSIVE_API_CALL);
    CURL *other = curl_easy_init();
    IS(curl_multi_add_handle(used_in_callback, other), CURLM_RECURSIVE_API_CALL);
    curl_easy_cleanup(other);
    return collect(data, size, count, user);
}

static void removed_and_nested(void) {
    CURLM *multi = used_in_callback = curl_multi_init();
    struct memory body = {0};
    CURL *easy = new_easy(under(base, "/small"), &body);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, use_multi);
    IS(run_one(multi, easy), CURLE_OK);
    CHECK(strcmp(text_of(&body), "small\n") == 0);
    /* Removed, freed and abandoned in the middle. */
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, collect);
    curl_easy_setopt(easy, CURLOPT_URL, under(base, "/delay/60000/small"));
    int running;
    for (int i = 0; i < 3; i++) {
        IS(curl_multi_add_handle(multi, easy), CURLM_OK);
        IS(curl_multi_perform(multi, &running), CURLM_OK);
        IS(running, 1);
        if (i == 0) {
            IS(curl_multi_remove_handle(multi, easy), CURLM_OK);
        } else if (i == 1) {
            curl_easy_cleanup(easy);
            easy = new_easy(under(base, "/delay/60000/small"), &body);
        }
        if (i < 2) {
            IS(curl_multi_perform(multi, &running), CURLM_OK);
            IS(running, 0);
        }
    }
    IS(curl_multi_cleanup(multi), CURLM_OK);
    forget(&body);
    curl_easy_setopt(easy, CURLOPT_URL, under(base, "/small"));
    IS(curl_easy_perform(easy), CURLE_OK);
    CHECK(strcmp(text_of(&body), "small\n") == 0);
    forget(&body);
    curl_easy_cleanup(easy);
}

static int refuse_socket(CURL *easy, curl_socket_t socket, int what, void *user, void *pointer) {
    (void)easy, (void)socket, (void)pointer;
    *(int *)user += what == CURL_POLL_REMOVE;
    return -1;
}

static int refuse_timer(CURLM *multi, long timeout, void *user) {
    (void)multi, (void)timeout, (void)user;
    return -1;
}

/* Callbacks that fail end the turn of the program, but cannot keep a handle from being removed. */
static void refusals(void) {
    CURLM *multi = curl_multi_init();
    struct memory body = {0};
    int removed = 0, running;
    CURL *easy = new_easy(under(base, "/delay/60000/small"), &body);
    curl_multi_setopt(multi, CURLMOPT_SOCKETDATA, &removed);
    curl_multi_setopt(multi, CURLMOPT_SOCKETFUNCTION, refuse_socket);
    IS(curl_multi_add_handle(multi, easy), CURLM_ABORTED_BY_CALLBACK);
    IS(curl_multi_remove_handle(multi, easy), CURLM_OK);
    CHECK(removed > 0);
    curl_multi_setopt(multi, CURLMOPT_SOCKETFUNCTION, NULL);
    IS(curl_multi_add_handle(multi, easy), CURLM_OK);
    IS(curl_multi_perform(multi, &running), CURLM_OK);
    curl_multi_setopt(multi, CURLMOPT_TIMERFUNCTION, refuse_timer);
    /* In any case, the timer callback is called with the time of another transfer. */
    CURL *other = new_easy(under(base, "/small"), &body);
    IS(curl_multi_add_handle(multi, other), CURLM_ABORTED_BY_CALLBACK);
    curl_multi_setopt(multi, CURLMOPT_TIMERFUNCTION, NULL);
    curl_easy_cleanup(other);
    curl_easy_cleanup(easy);
    IS(curl_multi_cleanup(multi), CURLM_OK);
    forget(&body);
}

static void *wake(void *multi) {
    usleep(20000);
    IS(curl_multi_wakeup(multi), CURLM_OK);
    return NULL;
}

static void waits(void) {
    CURLM *multi = curl_multi_init();
    int ready = -1;
    IS(curl_multi_wait(multi, NULL, 0, 60000, &ready), CURLM_OK);
    IS(ready, 0);
    IS(curl_multi_poll(multi, NULL, 0, 1, &ready), CURLM_OK);
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, wake, multi) == 0);
    IS(curl_multi_poll(multi, NULL, 0, 60000, &ready), CURLM_OK);
    IS(ready, 0);
    pthread_join(thread, NULL);
    int fds[2];
    CHECK(pipe(fds) == 0 && write(fds[1], "x", 1) == 1);
    struct curl_waitfd extra[] = {{fds[0], CURL_WAIT_POLLIN, 0}, {fds[1], CURL_WAIT_POLLOUT, 0}};
    IS(curl_multi_wait(multi, extra, 2, 60000, &ready), CURLM_OK);
    IS(ready, 2);
    CHECK(extra[0].revents == CURL_WAIT_POLLIN && extra[1].revents == CURL_WAIT_POLLOUT);
    IS(curl_multi_wait(multi, NULL, 1, 0, &ready), CURLM_BAD_FUNCTION_ARGUMENT);
    IS(curl_multi_setopt(multi, 12345, 1L), CURLM_UNKNOWN_OPTION);
    close(fds[0]), close(fds[1]);
    IS(curl_multi_cleanup(multi), CURLM_OK);
}

int main(int argc, char **argv) {
    CHECK(argc == 3);
    base = argv[1];
    main_thread = pthread_self();
    by_poll();
    by_select();
    by_socket_action();
    one_by_one(argv[2]);
    removed_and_nested();
    refusals();
    waits();
    puts("many at once");
    return 0;
}
