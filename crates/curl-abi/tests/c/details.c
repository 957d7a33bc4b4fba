/* Details of libcurl on which programs depend, one case each: details CASE BASE-URL DIRECTORY. The directory has room for files. */
#include "check.h"

#include <sys/socket.h>
#include <unistd.h>

static const char *base, *directory;

static const char *file_in_directory(const char *name) {
    static char path[1024];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    return path;
}

static void write_file(const char *name, const char *text) {
    FILE *file = fopen(file_in_directory(name), "w");
    CHECK(file != NULL);
    fputs(text, file);
    fclose(file);
}

/* Performs the transfer of a handle in a multi handle, and returns its result. A pause ends after a while. */
static CURLcode perform_with(CURLM *multi, CURL *easy) {
    IS(curl_multi_add_handle(multi, easy), CURLM_OK);
    for (int running = 1; running != 0;) {
        IS(curl_multi_perform(multi, &running), CURLM_OK);
        if (running != 0)
            IS(curl_multi_poll(multi, NULL, 0, 20, NULL), CURLM_OK);
        curl_easy_pause(easy, CURLPAUSE_CONT);
    }
    int left;
    CURLMsg *message = curl_multi_info_read(multi, &left);
    CHECK(message != NULL && message->msg == CURLMSG_DONE);
    CURLcode result = message->data.result;
    IS(curl_multi_remove_handle(multi, easy), CURLM_OK);
    return result;
}

static CURLcode perform_in_multi(CURL *easy) {
    CURLM *multi = curl_multi_init();
    CURLcode result = perform_with(multi, easy);
    curl_multi_cleanup(multi);
    return result;
}

static curl_socket_t open_with_cloexec(void *user, curlsocktype purpose, struct curl_sockaddr *address) {
    (void)user, (void)purpose;
    return socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

static int accept_socket(void *user, curl_socket_t socket, curlsocktype purpose) {
    (void)user, (void)socket, (void)purpose;
    return CURL_SOCKOPT_OK;
}

static int close_socket(void *user, curl_socket_t socket) {
    (void)user;
    return close(socket);
}

static void socket_options(void) {
    struct memory body = {0};
    CURL *easy = new_easy(under(base, "/small"), &body);
    IS(curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, open_with_cloexec), CURLE_OK);
    IS(curl_easy_setopt(easy, CURLOPT_OPENSOCKETDATA, easy), CURLE_OK);
    IS(curl_easy_setopt(easy, CURLOPT_SOCKOPTFUNCTION, accept_socket), CURLE_OK);
    IS(curl_easy_setopt(easy, CURLOPT_SOCKOPTDATA, easy), CURLE_OK);
    IS(curl_easy_setopt(easy, CURLOPT_CLOSESOCKETFUNCTION, close_socket), CURLE_OK);
    IS(curl_easy_setopt(easy, CURLOPT_CLOSESOCKETDATA, easy), CURLE_OK);
    IS(curl_easy_perform(easy), CURLE_OK);
    CHECK(body.length > 0);
    forget(&body);
    curl_easy_cleanup(easy);
}

/* The content of a callback, with the number of calls. */
struct content {
    const char *text;
    size_t at;
    int reads, seeks;
    CURL *easy;
};

static size_t read_content(char *buffer, size_t size, size_t count, void *user) {
    struct content *content = user;
    size_t left = strlen(content->text) - content->at, most = size * count;
    size_t length = left < most ? left : most;
    memcpy(buffer, content->text + content->at, length);
    content->at += length;
    content->reads++;
    return length;
}

static int seek_content(void *user, curl_off_t offset, int origin) {
    struct content *content = user;
    if (origin != SEEK_SET)
        return CURL_SEEKFUNC_CANTSEEK;
    content->at = offset;
    content->seeks++;
    return CURL_SEEKFUNC_OK;
}

static void set_upload(CURL *easy, struct content *content) {
    curl_easy_setopt(easy, CURLOPT_UPLOAD, 1L);
    curl_easy_setopt(easy, CURLOPT_READFUNCTION, read_content);
    curl_easy_setopt(easy, CURLOPT_READDATA, content);
    curl_easy_setopt(easy, CURLOPT_SEEKFUNCTION, seek_content);
    curl_easy_setopt(easy, CURLOPT_SEEKDATA, content);
    curl_easy_setopt(easy, CURLOPT_INFILESIZE, (long)strlen(content->text));
}

static void forms_twice(curl_off_t size, const char *encoder, curl_seek_callback seek, const char *wanted) {
    struct memory body = {0};
    struct content content = {.text = "part text"};
    CURL *easy = new_easy(under(base, "/echo"), &body);
    curl_mime *mime = curl_mime_init(easy);
    curl_mimepart *part = curl_mime_addpart(mime);
    curl_mime_name(part, "f");
    IS(curl_mime_data_cb(part, size, read_content, seek, NULL, &content), CURLE_OK);
    if (encoder != NULL)
        IS(curl_mime_encoder(part, encoder), CURLE_OK);
    curl_easy_setopt(easy, CURLOPT_MIMEPOST, mime);
    IS(curl_easy_perform(easy), CURLE_OK);
    CHECK(contains(&body, wanted));
    IS(content.seeks, 0);
    for (int repeat = 0; repeat < 4; repeat++) {
        forget(&body);
        CURLcode result = repeat % 2 == 0 ? curl_easy_perform(easy) : perform_in_multi(easy);
        if (seek == NULL) {
            IS(result, CURLE_SEND_FAIL_REWIND);
        } else {
            IS(result, CURLE_OK);
            CHECK(contains(&body, wanted));
        }
    }
    forget(&body);
    curl_easy_cleanup(easy);
    curl_mime_free(mime);
}

static void forms(void) {
    forms_twice(9, NULL, seek_content, "part text");
    forms_twice(-1, NULL, seek_content, "part text");
    forms_twice(9, "base64", seek_content, "cGFydCB0ZXh0");
    forms_twice(9, NULL, NULL, "part text");
}

static size_t read_and_use_handle(char *buffer, size_t size, size_t count, void *user) {
    struct content *content = user;
    CHECK(off_t_info(content->easy, CURLINFO_TOTAL_TIME_T) >= 0);
    IS(curl_easy_setopt(content->easy, CURLOPT_PRIVATE, content), CURLE_OK);
    return read_content(buffer, size, count, user);
}

static void encoded_part(void) {
    struct memory body = {0};
    struct content content = {.text = "part text"};
    CURL *easy = content.easy = new_easy(under(base, "/echo"), &body);
    curl_mime *mime = curl_mime_init(easy);
    curl_mimepart *part = curl_mime_addpart(mime);
    curl_mime_name(part, "f");
    curl_mime_data_cb(part, 9, read_and_use_handle, seek_content, NULL, &content);
    curl_mime_encoder(part, "base64");
    curl_easy_setopt(easy, CURLOPT_MIMEPOST, mime);
    IS(curl_easy_perform(easy), CURLE_OK);
    IS(perform_in_multi(easy), CURLE_OK);
    CHECK(contains(&body, "cGFydCB0ZXh0"));
    forget(&body);
    curl_easy_cleanup(easy);
    curl_mime_free(mime);
}

static int refuse_seek(void *user, curl_off_t offset, int origin) {
    (void)user, (void)offset, (void)origin;
    return CURL_SEEKFUNC_CANTSEEK;
}

static void multi_redirects(void) {
    struct memory body = {0};
    struct content content = {.text = "hello"};
    CURL *easy = new_easy(under(base, "/redirect/307?to=/redirect/308?to=/echo"), &body);
    curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 1L);
    set_upload(easy, &content);
    IS(perform_in_multi(easy), CURLE_OK);
    CHECK(contains(&body, "\"PUT\"") && contains(&body, "hello"));
    IS(long_info(easy, CURLINFO_REDIRECT_COUNT), 2);
    forget(&body);
    /* In chunks. */
    content.at = 0;
    curl_easy_setopt(easy, CURLOPT_INFILESIZE, -1L);
    IS(perform_in_multi(easy), CURLE_OK);
    CHECK(contains(&body, "hello"));
    forget(&body);
    content.at = 0;
    curl_easy_setopt(easy, CURLOPT_SEEKFUNCTION, refuse_seek);
    IS(perform_in_multi(easy), CURLE_SEND_FAIL_REWIND);
    forget(&body);
    curl_easy_cleanup(easy);
}

static void nobody(void) {
    for (int turn = 0; turn < 6; turn++) {
        struct memory body = {0};
        CURL *easy = new_easy(under(base, "/small"), &body);
        curl_easy_setopt(easy, CURLOPT_NOBODY, 1L);
        switch (turn) {
        case 0: curl_easy_setopt(easy, CURLOPT_POST, 0L); break;
        case 1: curl_easy_setopt(easy, CURLOPT_UPLOAD, 0L); break;
        case 2: curl_easy_setopt(easy, CURLOPT_PUT, 0L); break;
        case 3: curl_easy_setopt(easy, CURLOPT_POSTFIELDS, "a=1"); break;
        case 4: curl_easy_setopt(easy, CURLOPT_COPYPOSTFIELDS, "a=1"); break;
        default: curl_easy_setopt(easy, CURLOPT_HTTPGET, 0L); break;
        }
        IS(curl_easy_perform(easy), CURLE_OK);
        IS(body.length, 0);
        CHECK(strcmp(text_info(easy, CURLINFO_EFFECTIVE_METHOD), "HEAD") == 0);
        curl_easy_setopt(easy, CURLOPT_NOBODY, 0L);
        IS(curl_easy_perform(easy), CURLE_OK);
        CHECK(body.length > 0);
        forget(&body);
        curl_easy_cleanup(easy);
    }
}

static void redirect_url(void) {
    struct memory body = {0};
    CURL *easy = new_easy(under(base, "/redirect/302?to=https://app.example/cb%23access_token=abc"), &body);
    IS(curl_easy_perform(easy), CURLE_OK);
    CHECK(strcmp(text_info(easy, CURLINFO_REDIRECT_URL), "https://app.example/cb#access_token=abc") == 0);
    curl_easy_setopt(easy, CURLOPT_URL, under(base, "/redirect/302?to=/other%23part"));
    IS(curl_easy_perform(easy), CURLE_OK);
    CHECK(strcmp(text_info(easy, CURLINFO_REDIRECT_URL), under(base, "/other#part")) == 0);
    forget(&body);
    curl_easy_cleanup(easy);
}

/* BASE-URL names a server whose response was modified in 1994. */
static void time_condition(void) {
    struct memory body = {0};
    CURL *easy = new_easy(base, &body);
    curl_easy_setopt(easy, CURLOPT_TIMECONDITION, (long)CURL_TIMECOND_IFMODSINCE);
    curl_easy_setopt(easy, CURLOPT_TIMEVALUE, 1000000000L);
    IS(curl_easy_perform(easy), CURLE_OK);
    IS(long_info(easy, CURLINFO_RESPONSE_CODE), 304);
    IS(long_info(easy, CURLINFO_CONDITION_UNMET), 1);
    IS(body.length, 0);
    curl_easy_setopt(easy, CURLOPT_TIMEVALUE, 1000L);
    IS(curl_easy_perform(easy), CURLE_OK);
    IS(long_info(easy, CURLINFO_RESPONSE_CODE), 200);
    CHECK(body.length > 0);
    forget(&body);
    curl_easy_cleanup(easy);
}

static void effective_method(void) {
    struct memory body = {0};
    CURL *easy = new_easy(under(base, "/small"), &body);
    curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, "DELETE");
    CHECK(strcmp(text_info(easy, CURLINFO_EFFECTIVE_METHOD), "DELETE") == 0);
    IS(curl_easy_perform(easy), CURLE_OK);
    const char *first = text_info(easy, CURLINFO_EFFECTIVE_METHOD);
    CHECK(text_info(easy, CURLINFO_EFFECTIVE_METHOD) == first && strcmp(first, "DELETE") == 0);
    curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, NULL);
    CHECK(strcmp(text_info(easy, CURLINFO_EFFECTIVE_METHOD), "GET") == 0);
    forget(&body);
    curl_easy_cleanup(easy);
}

static void encoded_size(void) {
    struct memory body = {0};
    CURL *easy = new_easy(under(base, "/gzip/90000"), &body);
    curl_easy_setopt(easy, CURLOPT_ACCEPT_ENCODING, "gzip");
    IS(curl_easy_perform(easy), CURLE_OK);
    curl_off_t loaded = off_t_info(easy, CURLINFO_SIZE_DOWNLOAD_T);
    CHECK(loaded > 0 && (size_t)loaded < body.length);
    IS(loaded, off_t_info(easy, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T));
    forget(&body);
    curl_easy_cleanup(easy);
}

struct watched {
    CURL *easy;
    curl_off_t last;
    size_t written;
};

static size_t watch_size(char *data, size_t size, size_t count, void *user) {
    (void)data;
    struct watched *watched = user;
    watched->written += size * count;
    watched->last = off_t_info(watched->easy, CURLINFO_SIZE_DOWNLOAD_T);
    CHECK(watched->last >= (curl_off_t)watched->written);
    CHECK(off_t_info(watched->easy, CURLINFO_TOTAL_TIME_T) > 0);
    return size * count;
}

static void size_while_running(void) {
    struct watched watched = {0};
    CURL *easy = watched.easy = new_easy(under(base, "/bytes/300000"), NULL);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, watch_size);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, &watched);
    IS(curl_easy_perform(easy), CURLE_OK);
    IS(watched.last, 300000);
    watched.written = 0;
    IS(perform_in_multi(easy), CURLE_OK);
    IS(watched.last, 300000);
    IS(watched.written, 300000);
    curl_easy_cleanup(easy);
}

static void upload_length(void) {
    struct memory body = {0};
    CURL *easy = new_easy(under(base, "/echo"), &body);
    curl_easy_setopt(easy, CURLOPT_POSTFIELDS, "abc");
    IS(curl_easy_perform(easy), CURLE_OK);
    IS(off_t_info(easy, CURLINFO_CONTENT_LENGTH_UPLOAD_T), 3);
    IS(off_t_info(easy, CURLINFO_SIZE_UPLOAD_T), 3);
    curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, "GET");
    IS(curl_easy_perform(easy), CURLE_OK);
    IS(off_t_info(easy, CURLINFO_CONTENT_LENGTH_UPLOAD_T), 3);
    forget(&body);
    curl_easy_cleanup(easy);
}

static void session_cookies(void) {
    struct memory body = {0};
    CURL *easy = new_easy(under(base, "/echo"), &body);
    write_file("cookies.txt", "127.0.0.1\tFALSE\t/\tFALSE\t0\tfrom_session\t1\n"
                              "127.0.0.1\tFALSE\t/\tFALSE\t4000000000\tkept\t2\n");
    curl_easy_setopt(easy, CURLOPT_COOKIEFILE, file_in_directory("cookies.txt"));
    curl_easy_setopt(easy, CURLOPT_COOKIESESSION, 1L);
    curl_easy_setopt(easy, CURLOPT_COOKIELIST, "Set-Cookie: sid=3; Domain=127.0.0.1; Path=/");
    IS(curl_easy_perform(easy), CURLE_OK);
    CHECK(contains(&body, "sid=3") && contains(&body, "kept=2") && !contains(&body, "from_session"));
    forget(&body);
    curl_easy_setopt(easy, CURLOPT_COOKIESESSION, 1L);
    IS(curl_easy_perform(easy), CURLE_OK);
    CHECK(contains(&body, "sid=3") && contains(&body, "kept=2"));
    forget(&body);
    curl_easy_cleanup(easy);
}

/* BASE-URL names a server that sets a cookie. */
static void cookies_stay_off(void) {
    struct memory body = {0};
    struct curl_slist *cookies = NULL;
    CURL *easy = new_easy(base, &body);
    curl_easy_setopt(easy, CURLOPT_COOKIESESSION, 1L);
    curl_easy_setopt(easy, CURLOPT_COOKIELIST, "ALL");
    curl_easy_setopt(easy, CURLOPT_COOKIELIST, "FLUSH");
    IS(curl_easy_perform(easy), CURLE_OK);
    IS(curl_easy_getinfo(easy, CURLINFO_COOKIELIST, &cookies), CURLE_OK);
    CHECK(cookies == NULL);
    forget(&body);
    curl_easy_cleanup(easy);
}

struct chooser {
    CURL *easy;
    struct memory later;
};

static size_t choose_output(char *line, size_t size, size_t count, void *user) {
    struct chooser *chooser = user;
    if (size * count == 2 && memcmp(line, "\r\n", 2) == 0)
        IS(curl_easy_setopt(chooser->easy, CURLOPT_WRITEDATA, &chooser->later), CURLE_OK);
    return size * count;
}

static void output_set_by_header_callback(void) {
    for (int turn = 0; turn < 2; turn++) {
        struct memory body = {0};
        struct chooser chooser = {0};
        CURL *easy = chooser.easy = new_easy(under(base, "/bytes/1000"), &body);
        curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, choose_output);
        curl_easy_setopt(easy, CURLOPT_HEADERDATA, &chooser);
        IS(turn == 0 ? curl_easy_perform(easy) : perform_in_multi(easy), CURLE_OK);
        IS(body.length, 0);
        IS(chooser.later.length, 1000);
        forget(&chooser.later);
        curl_easy_cleanup(easy);
    }
}

/* Refuses each line once. */
struct pausing {
    struct memory lines;
    int pauses;
    int is_asked_again;
};

static size_t pause_at_each_line(char *data, size_t size, size_t count, void *user) {
    struct pausing *pausing = user;
    pausing->is_asked_again = !pausing->is_asked_again;
    if (pausing->is_asked_again) {
        pausing->pauses++;
        return CURL_WRITEFUNC_PAUSE;
    }
    return collect(data, size, count, &pausing->lines);
}

static void paused_head(void) {
    for (int turn = 0; turn < 2; turn++) {
        struct memory body = {0};
        struct pausing pausing = {0};
        CURL *easy = new_easy(under(base, "/small"), &body);
        if (turn == 0) {
            curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, pause_at_each_line);
            curl_easy_setopt(easy, CURLOPT_HEADERDATA, &pausing);
        } else {
            curl_easy_setopt(easy, CURLOPT_HEADER, 1L);
            curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, pause_at_each_line);
            curl_easy_setopt(easy, CURLOPT_WRITEDATA, &pausing);
        }
        IS(perform_in_multi(easy), CURLE_OK);
        CHECK(strncmp(text_of(&pausing.lines), "HTTP/1.1 200 OK\r\n", 17) == 0);
        CHECK(contains(&pausing.lines, "\r\n\r\n") && pausing.pauses > 0);
        forget(&body), forget(&pausing.lines);
        curl_easy_cleanup(easy);
    }
}

/* BASE-URL is that of a proxy. */
/* Older headers do not name these items of libcurl 8.12. */
#define HTTPAUTH_USED (CURLINFO_LONG + 69)
#define PROXYAUTH_USED (CURLINFO_LONG + 70)

static void proxy_credentials(void) {
    struct memory body = {0};
    CURL *easy = new_easy("http://h.example/", &body);
    curl_easy_setopt(easy, CURLOPT_PROXY, base);
    IS(curl_easy_setopt(easy, CURLOPT_PROXYUSERPWD, "m%65:p%40ss"), CURLE_OK);
    IS(curl_easy_perform(easy), CURLE_OK);
    IS(long_info(easy, PROXYAUTH_USED), CURLAUTH_BASIC);
    IS(long_info(easy, HTTPAUTH_USED), 0);
    forget(&body);
    curl_easy_cleanup(easy);
}

static void read_only_files(void) {
    struct memory body = {0};
    CURL *easy = new_easy(under(base, "/small"), &body);
    write_file("as.txt", "# mine\n");
    curl_easy_setopt(easy, CURLOPT_ALTSVC, file_in_directory("as.txt"));
    IS(curl_easy_setopt(easy, CURLOPT_ALTSVC_CTRL, (long)(CURLALTSVC_H1 | CURLALTSVC_READONLYFILE)), CURLE_OK);
    IS(curl_easy_perform(easy), CURLE_OK);
    curl_easy_cleanup(easy);
    char text[64];
    FILE *file = fopen(file_in_directory("as.txt"), "r");
    CHECK(fgets(text, sizeof text, file) != NULL && strcmp(text, "# mine\n") == 0 && fgetc(file) == EOF);
    fclose(file);
    forget(&body);
}

static void two_at_signs(void) {
    CURLU *url = curl_url();
    CHECK(curl_url_set(url, CURLUPART_URL, "http://a@good@evil/", 0) == CURLUE_BAD_HOSTNAME);
    IS(curl_url_set(url, CURLUPART_URL, "http://a%40good@evil/", 0), CURLUE_OK);
    curl_url_cleanup(url);
}

static void default_protocol(void) {
    struct memory body = {0};
    CURL *easy = new_easy(strstr(base, "://") + 3, &body);
    curl_easy_setopt(easy, CURLOPT_DEFAULT_PROTOCOL, "https");
    CHECK(curl_easy_perform(easy) != CURLE_OK);
    CHECK(strncmp(text_info(easy, CURLINFO_EFFECTIVE_URL), "https://127.0.0.1:", 18) == 0);
    forget(&body);
    curl_easy_cleanup(easy);
}

/* BASE-URL names a server that offers Negotiate and Basic in one field. */
static void offered_schemes(void) {
    struct memory body = {0};
    CURL *easy = new_easy(base, &body);
    IS(curl_easy_perform(easy), CURLE_OK);
    IS(long_info(easy, CURLINFO_HTTPAUTH_AVAIL), CURLAUTH_NEGOTIATE | CURLAUTH_BASIC);
    IS(long_info(easy, HTTPAUTH_USED), 0);
    curl_easy_setopt(easy, CURLOPT_USERPWD, "me:secret");
    IS(curl_easy_perform(easy), CURLE_OK);
    IS(long_info(easy, HTTPAUTH_USED), CURLAUTH_BASIC);
    IS(long_info(easy, PROXYAUTH_USED), 0);
    forget(&body);
    curl_easy_cleanup(easy);
}

static void empty_user_agent(void) {
    struct memory body = {0};
    CURL *easy = new_easy(under(base, "/echo"), &body);
    curl_easy_setopt(easy, CURLOPT_USERAGENT, "");
    IS(curl_easy_perform(easy), CURLE_OK);
    CHECK(strcasestr(text_of(&body), "user-agent") == NULL);
    forget(&body);
    curl_easy_cleanup(easy);
}

static void options_turned_off(void) {
    static const CURLoption off[] = {CURLOPT_CONNECT_ONLY, CURLOPT_CRLF, CURLOPT_TRANSFERTEXT, CURLOPT_USE_SSL};
    CURL *easy = curl_easy_init();
    for (size_t at = 0; at < sizeof off / sizeof *off; at++)
        IS(curl_easy_setopt(easy, off[at], 0L), CURLE_OK);
    curl_easy_cleanup(easy);
}

static size_t look_for_field(char *data, size_t size, size_t count, void *user) {
    struct chooser *chooser = user;
    struct curl_header *header;
    IS(curl_easy_header(chooser->easy, "content-length", 0, CURLH_HEADER, -1, &header), CURLHE_OK);
    CHECK(strcmp(header->value, "1000") == 0);
    CHECK(curl_easy_nextheader(chooser->easy, CURLH_HEADER, -1, NULL) != NULL);
    return collect(data, size, count, &chooser->later);
}

static void fields_in_write_callback(void) {
    for (int turn = 0; turn < 4; turn++) {
        struct chooser chooser = {0};
        CURL *easy = chooser.easy = new_easy(under(base, "/bytes/1000"), NULL);
        curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, look_for_field);
        curl_easy_setopt(easy, CURLOPT_WRITEDATA, &chooser);
        curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, turn / 2L);
        IS(turn % 2 == 0 ? curl_easy_perform(easy) : perform_in_multi(easy), CURLE_OK);
        IS(chooser.later.length, 1000);
        struct curl_header *header;
        IS(curl_easy_header(easy, "content-length", 0, CURLH_HEADER, -1, &header), CURLHE_OK);
        IS(header->amount, 1);
        forget(&chooser.later);
        curl_easy_cleanup(easy);
    }
}

static void long_form_array(void) {
    struct memory body = {0};
    struct curl_forms forms[202];
    struct curl_httppost *first = NULL, *last = NULL;
    char path[1024];
    write_file("part.txt", "part");
    snprintf(path, sizeof path, "%s", file_in_directory("part.txt"));
    forms[0].option = CURLFORM_COPYNAME, forms[0].value = "f";
    for (int at = 1; at < 201; at++)
        forms[at].option = CURLFORM_FILE, forms[at].value = path;
    forms[201].option = CURLFORM_END;
    IS(curl_formadd(&first, &last, CURLFORM_ARRAY, forms, CURLFORM_END), CURL_FORMADD_OK);
    CURL *easy = new_easy(under(base, "/echo"), &body);
    curl_easy_setopt(easy, CURLOPT_HTTPPOST, first);
    IS(curl_easy_perform(easy), CURLE_OK);
    int files = 0;
    for (const char *at = text_of(&body); (at = strstr(at, "part.txt")) != NULL; at++)
        files++;
    IS(files, 200);
    forget(&body);
    curl_easy_cleanup(easy);
    curl_formfree(first);
}

/* BASE-URL names a server that closes a connection at its second request. */
static void stale_connection(void) {
    struct memory body = {0};
    struct content content = {.text = "hello"};
    CURLM *multi = curl_multi_init();
    CURL *easy = new_easy(base, &body);
    IS(perform_with(multi, easy), CURLE_OK);
    set_upload(easy, &content);
    IS(perform_with(multi, easy), CURLE_OK);
    forget(&body);
    curl_easy_cleanup(easy);
    curl_multi_cleanup(multi);
}

static const struct {
    const char *name;
    void (*run)(void);
} cases[] = {
    {"socket_options", socket_options},
    {"forms", forms},
    {"encoded_part", encoded_part},
    {"multi_redirects", multi_redirects},
    {"nobody", nobody},
    {"redirect_url", redirect_url},
    {"time_condition", time_condition},
    {"effective_method", effective_method},
    {"encoded_size", encoded_size},
    {"size_while_running", size_while_running},
    {"upload_length", upload_length},
    {"session_cookies", session_cookies},
    {"cookies_stay_off", cookies_stay_off},
    {"output_set_by_header_callback", output_set_by_header_callback},
    {"paused_head", paused_head},
    {"proxy_credentials", proxy_credentials},
    {"read_only_files", read_only_files},
    {"two_at_signs", two_at_signs},
    {"default_protocol", default_protocol},
    {"offered_schemes", offered_schemes},
    {"empty_user_agent", empty_user_agent},
    {"options_turned_off", options_turned_off},
    {"fields_in_write_callback", fields_in_write_callback},
    {"long_form_array", long_form_array},
    {"stale_connection", stale_connection},
};

int main(int count, char **arguments) {
    CHECK(count == 4);
    base = arguments[2], directory = arguments[3];
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
