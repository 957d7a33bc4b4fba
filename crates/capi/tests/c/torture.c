/* The system refuses the n-th descriptor or allocation of a job, for each n that it comes to: torture PLAIN TLS CA-FILE WHAT
 * STEP PART. WHAT is descriptors or allocations (with refuse.c of the command's tests preloaded); each STEP-th number is
 * tried, on each PART-th case. A case is a job, in the clear or over TLS, by HTTP/1 or 2, on a client that is new or has a
 * connection.
 *
 * Each try is a child of its own. It ends with the whole answer, or with an error that says something: never with other bytes
 * or a request that got lost, never by a panic or a wait without end. Where a small allocation is refused a Rust program ends
 * by SIGABRT, and the library of cryptography's callers panic: those are allowed there, and nowhere else. */
#include "check.h"
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WHOLE = 0, HONEST = 2, FALSE_SUCCESS = 3, SAYS_NOTHING = 4, LOST = 5, NO_CLIENT = 6 };

/* The time limit of a try, in seconds. */
#define LIMIT 120
/* More descriptors than any job needs; one try for each number of free descriptors. */
#define DESCRIPTORS 24
/* More allocations than any job makes. */
#define ALLOCATIONS 100000

/* From refuse.c: refuses the n-th allocation from now on; returns the rest of n, 0 once one was refused. */
__attribute__((weak)) void refuse_from_now(long n);
__attribute__((weak)) long refuse_left(void);

static int failed(const haul_error *error) {
    int said = error != NULL && haul_error_code(error) != HAUL_STATUS_OK && *haul_error_text(error) != 0;
    return said ? HONEST : SAYS_NOTHING;
}

static int call(haul_client *client, const char *url, const char *method, const char *body, const char *wanted) {
    haul_response *place = haul_response_new();
    haul_call call = HAUL_CALL_INIT;
    haul_reply reply;
    call.url = slice(url);
    call.method = slice(method);
    if (body != NULL)
        call.body = slice(body);
    if (place == NULL)
        return failed(haul_last_error());
    int end = WHOLE;
    if (haul_client_call(client, &call, place, &reply) != HAUL_STATUS_OK) {
        end = failed(haul_last_error());
    } else {
        haul_slice got = {reply.body, reply.body_len};
        end = reply.status == 200 && contains(got, wanted) ? WHOLE : FALSE_SUCCESS;
    }
    haul_response_free(place);
    return end;
}

static int small(haul_client *client, const char *base) {
    return call(client, under(base, "/small/7"), "GET", NULL, "small 7\n");
}

static int post(haul_client *client, const char *base) {
    return call(client, under(base, "/echo"), "POST", "name=value", "name=value");
}

static int count_body(void *user, const char *data, size_t len) {
    (void)data;
    *(size_t *)user += len;
    return 0;
}

/* With a request and a response object. */
static int perform(haul_client *client, haul_request *request, size_t wanted, const size_t *counted) {
    haul_response *response = NULL;
    if (request == NULL)
        return failed(haul_last_error());
    int end = WHOLE;
    if (haul_client_perform(client, request, &response) != HAUL_STATUS_OK)
        end = response == NULL ? failed(haul_last_error()) : FALSE_SUCCESS;
    else if (counted != NULL ? *counted != wanted : haul_response_body(response).len != wanted)
        end = FALSE_SUCCESS;
    haul_response_free(response);
    haul_request_free(request);
    return end;
}

static int large(haul_client *client, const char *base) {
    return perform(client, haul_request_new("GET", under(base, "/bytes/300000")), 300000, NULL);
}

static int pieces(haul_client *client, const char *base) {
    size_t counted = 0;
    haul_request *request = haul_request_new("GET", under(base, "/chunked/300000"));
    if (request != NULL && haul_request_set_output(request, NULL, NULL, count_body, &counted) != HAUL_STATUS_OK) {
        haul_request_free(request);
        return failed(haul_last_error());
    }
    return perform(client, request, 300000, &counted);
}

static int form(haul_client *client, const char *base) {
    haul_response *response = NULL;
    haul_request *request = haul_request_new("POST", under(base, "/echo"));
    if (request == NULL)
        return failed(haul_last_error());
    int end = WHOLE;
    if (haul_request_add_part(request, "name", "value", 5, "a.txt", NULL) != HAUL_STATUS_OK ||
        haul_client_perform(client, request, &response) != HAUL_STATUS_OK)
        end = failed(haul_last_error());
    else if (!contains(haul_response_body(response), "filename"))
        end = FALSE_SUCCESS;
    haul_response_free(response);
    haul_request_free(request);
    return end;
}

static int reading(haul_client *client, const char *base) {
    haul_response *response = NULL;
    haul_request *request = haul_request_new("GET", under(base, "/bytes/100000"));
    if (request == NULL)
        return failed(haul_last_error());
    haul_status status = haul_client_open(client, request, &response);
    size_t all = 0, got = 1;
    char buffer[7000];
    while (status == HAUL_STATUS_OK && got > 0) {
        status = haul_response_read(response, buffer, sizeof buffer, &got);
        all += status == HAUL_STATUS_OK ? got : 0;
    }
    int end = status != HAUL_STATUS_OK ? failed(haul_last_error()) : all == 100000 ? WHOLE : FALSE_SUCCESS;
    haul_response_free(response);
    haul_request_free(request);
    return end;
}

/* Each request is returned, failed or not. */
static int batch(haul_client *client, const char *base) {
    haul_batch *batch = haul_batch_new(client);
    if (batch == NULL)
        return failed(haul_last_error());
    int end = WHOLE, added = 0, taken = 0;
    for (int i = 0; i < 5; i++) {
        haul_request *request = haul_request_new("GET", under(base, "/small/7"));
        if (request == NULL || haul_batch_add(batch, request, NULL) != HAUL_STATUS_OK)
            end = failed(haul_last_error());
        else
            added++;
        haul_request_free(request);
    }
    while (end != SAYS_NOTHING && end != FALSE_SUCCESS && haul_batch_pending(batch) > 0) {
        haul_response *response = NULL;
        if (haul_batch_next(batch, -1, &response, NULL) != HAUL_STATUS_OK) {
            end = failed(haul_last_error());
            added = taken;
            break;
        }
        if (response == NULL)
            break;
        taken++;
        if (haul_response_error(response) != NULL)
            end = failed(haul_response_error(response));
        else if (!is(haul_response_body(response), "small 7\n"))
            end = FALSE_SUCCESS;
        haul_response_free(response);
    }
    haul_batch_free(batch);
    return (end == WHOLE || end == HONEST) && taken != added ? LOST : end;
}

static const struct {
    const char *name;
    int (*run)(haul_client *, const char *);
} jobs[] = {{"small", small}, {"post", post},       {"large", large}, {"pieces", pieces},
            {"form", form},   {"reading", reading}, {"batch", batch}};
#define JOBS (sizeof jobs / sizeof *jobs)
#define CASES ((int)JOBS * 8)

struct place {
    const char *plain, *tls, *ca;
};

static haul_client *client_for(const struct place *place, int ways) {
    haul_client *client = haul_client_new();
    int versions[] = {HAUL_HTTP_1_1, ways & 1 ? HAUL_HTTP_2 : HAUL_HTTP_2_PRIOR};
    if (client == NULL || haul_client_set_timeout(client, 60000) != HAUL_STATUS_OK ||
        haul_client_set_http(client, versions[ways >> 1 & 1]) != HAUL_STATUS_OK ||
        haul_client_set_ca_file(client, place->ca) != HAUL_STATUS_OK) {
        haul_client_free(client);
        return NULL;
    }
    return client;
}

/* Runs one try in a child. Its exit status is the result; 64 is added if nothing was refused. */
static int attempt(const struct place *place, int number, int descriptors, long n) {
    int ways = number / (int)JOBS;
    const char *base = ways & 1 ? place->tls : place->plain;
    haul_client *client = NULL;
    if (ways & 4) {
        client = client_for(place, ways);
        if (client == NULL || small(client, base) != WHOLE)
            return NO_CLIENT;
    }
    if (descriptors) {
        int lowest = dup(0);
        struct rlimit limit = {(rlim_t)lowest + (rlim_t)n, RLIM_INFINITY};
        close(lowest);
        if (setrlimit(RLIMIT_NOFILE, &limit) != 0) {
            limit.rlim_max = limit.rlim_cur;
            setrlimit(RLIMIT_NOFILE, &limit);
        }
    } else {
        refuse_from_now(n);
    }
    if (client == NULL)
        client = client_for(place, ways);
    int end = client == NULL ? failed(haul_last_error()) : jobs[number % (int)JOBS].run(client, base);
    haul_client_free(client);
    return end + (!descriptors && refuse_left() > 0 ? 64 : 0);
}

/* The standard error of the child. */
static char said[8192];

static int child(const struct place *place, int number, int descriptors, long n) {
    FILE *words = tmpfile();
    if (words == NULL)
        exit(1);
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        dup2(fileno(words), 2);
        alarm(LIMIT);
        _exit(attempt(place, number, descriptors, n));
    }
    int status = 0;
    if (pid < 0 || waitpid(pid, &status, 0) != pid)
        exit(1);
    rewind(words);
    said[fread(said, 1, sizeof said - 1, words)] = 0;
    fclose(words);
    return status;
}

int main(int argc, char **argv) {
    if (argc != 7)
        return 2;
    struct place place = {argv[1], argv[2], argv[3]};
    int descriptors = strcmp(argv[4], "descriptors") == 0;
    long step = atol(argv[5]), tries = 0, whole = 0, aborts = 0;
    int part = atoi(argv[6]), cases = 0;
    if (!descriptors && refuse_from_now == NULL)
        return 2;
    for (int number = 0; number < CASES; number += part) {
        cases++;
        for (long n = descriptors ? 0 : 1; n < (descriptors ? DESCRIPTORS : ALLOCATIONS); n += descriptors ? 1 : step) {
            int status = child(&place, number, descriptors, n), end = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
            int aborted = WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT && !descriptors;
            int theirs = strstr(said, "aws-lc-rs") != NULL || strstr(said, "aws_lc_rs") != NULL;
            int panicked = strstr(said, "panicked") != NULL && !(theirs && !descriptors);
            tries++;
            whole += end == WHOLE || end == WHOLE + 64;
            aborts += aborted;
            if (panicked || (!aborted && (end & ~64) != WHOLE && end != HONEST)) {
                fprintf(stderr, "%s %ld of %s, ways %d: status %#x: %s\n", argv[4], n, jobs[number % (int)JOBS].name,
                        number / (int)JOBS, (unsigned)status, said);
                return 1;
            }
            if (end >= 64)
                break;
        }
        /* With enough descriptors a try must succeed at last. */
        if (descriptors && child(&place, number, 1, 1000) != 0) {
            fprintf(stderr, "%s, ways %d: not whole with all descriptors: %s\n", jobs[number % (int)JOBS].name,
                    number / (int)JOBS, said);
            return 1;
        }
    }
    printf("%d cases, %ld tries, %ld whole, %ld ended by SIGABRT\n", cases, tries, whole, aborts);
    return 0;
}
