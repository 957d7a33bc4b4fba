/* Requests one at a time on a warm connection, for the job c-requests:
 *
 *   requests WAY HOST PORT PATH COUNT [FORM]
 *
 * WAY is `haul` (this library), `curl` (libcurl's easy interface), or `limit`: one send and as many receives as it takes
 * on one blocking socket, no parsing but a search for the end of the head and Content-Length. Each receives the body into
 * memory. With FORM, it is posted. Prints the length of all bodies.
 */
#include <dlfcn.h>
#include <haul.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#define AGENT "bench/1"

static struct {
    char *start;
    size_t room, len;
} body;

static void fail(const char *what) {
    fprintf(stderr, "requests: %s\n", what);
    exit(1);
}

static void *reserve(void *user, size_t size) {
    (void)user;
    if (size > body.room) {
        body.start = realloc(body.start, size);
        body.room = size;
    }
    return body.start;
}

static unsigned long long by_haul(const char *url, long count, const char *form) {
    unsigned long long total = 0;
    haul_client *client = haul_client_new();
    haul_response *response = haul_response_new();
    haul_client_set_user_agent(client, AGENT);
    haul_client_set_idle_timeout(client, 60000);
    haul_header type = {{"Content-Type", 12}, {"application/x-www-form-urlencoded", 33}};
    for (long i = 0; i < count; i++) {
        haul_call call = HAUL_CALL_INIT;
        haul_reply reply;
        call.url.data = url, call.url.len = strlen(url);
        call.reserve = reserve;
        if (form != NULL) {
            call.method.data = "POST", call.method.len = 4;
            call.headers = &type, call.header_count = 1;
            call.body.data = form, call.body.len = strlen(form);
        }
        if (haul_client_call(client, &call, response, &reply) != HAUL_STATUS_OK)
            fail(haul_error_text(haul_last_error()));
        total += reply.body_len;
    }
    haul_response_free(response);
    haul_client_free(client);
    return total;
}

static unsigned long long by_limit(const char *host, int port, const char *path, long count, const char *form) {
    static char request[2048], head[16384];
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port)};
    unsigned long long total = 0;
    int one = 1, fd = socket(AF_INET, SOCK_STREAM, 0);
    inet_pton(AF_INET, host, &to.sin_addr);
    if (fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof to) != 0)
        fail("no connection");
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    int len = form == NULL
                  ? snprintf(request, sizeof request, "GET %s HTTP/1.1\r\nHost: %s:%d\r\nUser-Agent: " AGENT "\r\nAccept: */*\r\n\r\n",
                             path, host, port)
                  : snprintf(request, sizeof request,
                             "POST %s HTTP/1.1\r\nHost: %s:%d\r\nUser-Agent: " AGENT "\r\nAccept: */*\r\n"
                             "Content-Type: application/x-www-form-urlencoded\r\nContent-Length: %zu\r\n\r\n%s",
                             path, host, port, strlen(form), form);
    for (long i = 0; i < count; i++) {
        size_t have = 0;
        char *end = NULL;
        if (send(fd, request, len, MSG_NOSIGNAL) != len)
            fail("not sent");
        while (end == NULL) {
            ssize_t n = recv(fd, head + have, sizeof head - 1 - have, 0);
            if (n <= 0)
                fail("no reply");
            have += n;
            head[have] = 0;
            end = memmem(head, have, "\r\n\r\n", 4);
        }
        char *field = strcasestr(head, "\r\ncontent-length:");
        if (field == NULL || field > end)
            fail("no length");
        size_t length = strtoull(field + 17, NULL, 10), got = have - (end + 4 - head);
        reserve(NULL, length);
        memcpy(body.start, end + 4, got);
        while (got < length) {
            ssize_t n = recv(fd, body.start + got, length - got, 0);
            if (n <= 0)
                fail("the body ended too early");
            got += n;
        }
        total += got;
    }
    close(fd);
    return total;
}

static size_t keep(char *data, size_t size, size_t count, void *user) {
    (void)user;
    size_t needed = body.len + size * count;
    if (needed > body.room)
        reserve(NULL, needed * 2);
    memcpy(body.start + body.len, data, size * count);
    body.len = needed;
    return size * count;
}

/* Loads libcurl by dlopen, so that its header need not be installed. The numbers are constants of its interface, which never
 * change. */
static unsigned long long by_curl(const char *url, long count, const char *form) {
    enum { URL = 10002, PROXY = 10004, WRITEFUNCTION = 20011, POSTFIELDS = 10015, USERAGENT = 10018, TIMEOUT_MS = 155 };
    void *library = dlopen("libcurl.so.4", RTLD_NOW);
    if (library == NULL)
        fail("no libcurl.so.4");
    void *(*init)(void) = (void *(*)(void))dlsym(library, "curl_easy_init");
    int (*setopt)(void *, int, ...) = (int (*)(void *, int, ...))dlsym(library, "curl_easy_setopt");
    int (*perform)(void *) = (int (*)(void *))dlsym(library, "curl_easy_perform");
    unsigned long long total = 0;
    void *easy = init();
    setopt(easy, WRITEFUNCTION, keep);
    setopt(easy, USERAGENT, AGENT);
    setopt(easy, PROXY, "");
    setopt(easy, TIMEOUT_MS, 60000L);
    for (long i = 0; i < count; i++) {
        body.len = 0;
        setopt(easy, URL, url);
        if (form != NULL)
            setopt(easy, POSTFIELDS, form);
        if (perform(easy) != 0)
            fail("curl_easy_perform");
        total += body.len;
    }
    return total;
}

int main(int argc, char **argv) {
    if (argc != 6 && argc != 7) {
        fprintf(stderr, "usage: requests haul|curl|limit HOST PORT PATH COUNT [FORM]\n");
        return 2;
    }
    const char *form = argc == 7 ? argv[6] : NULL;
    long count = atol(argv[5]);
    char url[1024];
    unsigned long long total = 0;
    snprintf(url, sizeof url, "http://%s:%s%s", argv[2], argv[3], argv[4]);
    if (strcmp(argv[1], "haul") == 0)
        total = by_haul(url, count, form);
    else if (strcmp(argv[1], "curl") == 0)
        total = by_curl(url, count, form);
    else
        total = by_limit(argv[2], atoi(argv[3]), argv[4], count, form);
    printf("%llu\n", total);
    return 0;
}
