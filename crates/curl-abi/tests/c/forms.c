/* Multipart forms by curl_mime and curl_formadd, against the embedded origin: forms BASE-URL DIRECTORY. */
#include "check.h"

static const char *base;
static char file_path[512];

static void write_file(const char *directory) {
    snprintf(file_path, sizeof file_path, "%s/page.html", directory);
    FILE *file = fopen(file_path, "w");
    fputs("<html>", file);
    fclose(file);
}

static size_t read_part(char *buffer, size_t size, size_t count, void *user) {
    const char **text = user;
    size_t length = strlen(*text), most = size * count < 2 ? size * count : 2;
    if (length > most)
        length = most;
    memcpy(buffer, *text, length);
    *text += length;
    return length;
}

static int freed;

static void free_part(void *user) {
    (void)user;
    freed++;
}

static void by_mime(void) {
    struct memory body = {0};
    CURL *easy = new_easy(under(base, "/echo"), &body);
    curl_mime *mime = curl_mime_init(easy);
    curl_mimepart *part = curl_mime_addpart(mime);
    curl_mime_name(part, "plain");
    curl_mime_data(part, "one", CURL_ZERO_TERMINATED);
    part = curl_mime_addpart(mime);
    curl_mime_name(part, "file");
    IS(curl_mime_filedata(part, file_path), CURLE_OK);
    part = curl_mime_addpart(mime);
    curl_mime_name(part, "typed");
    curl_mime_data(part, "a\"b", 3);
    curl_mime_filename(part, "q\"uote");
    curl_mime_type(part, "text/x-own");
    struct curl_slist *lines = curl_slist_append(NULL, "X-Part: 7");
    curl_mime_headers(part, lines, 1);
    part = curl_mime_addpart(mime);
    curl_mime_name(part, "coded");
    curl_mime_data(part, "hello", CURL_ZERO_TERMINATED);
    IS(curl_mime_encoder(part, "rot13"), CURLE_BAD_FUNCTION_ARGUMENT);
    IS(curl_mime_encoder(part, "base64"), CURLE_OK);
    const char *text = "from a callback";
    part = curl_mime_addpart(mime);
    curl_mime_name(part, "called");
    IS(curl_mime_data_cb(part, 15, read_part, NULL, free_part, &text), CURLE_OK);
    curl_mime *inner = curl_mime_init(easy);
    part = curl_mime_addpart(inner);
    curl_mime_data(part, "within", CURL_ZERO_TERMINATED);
    part = curl_mime_addpart(mime);
    curl_mime_name(part, "nested");
    IS(curl_mime_subparts(part, inner), CURLE_OK);
    IS(curl_mime_filedata(part, "/nonexistent"), CURLE_READ_ERROR);
    IS(curl_mime_data(part, NULL, 0), CURLE_OK);
    curl_easy_setopt(easy, CURLOPT_MIMEPOST, mime);
    IS(curl_easy_perform(easy), CURLE_OK);
    CHECK(contains(&body, "\"POST\"") && contains(&body, "multipart/form-data; boundary=--------------------"));
    CHECK(contains(&body, "form-data; name=\\\"plain\\\"\\r\\n\\r\\none\\r\\n"));
    CHECK(contains(&body, "name=\\\"file\\\"; filename=\\\"page.html\\\"\\r\\nContent-Type: text/html\\r\\n\\r\\n<html>"));
    CHECK(contains(&body, "filename=\\\"q%22uote\\\"\\r\\n") && contains(&body, "Content-Type: text/x-own\\r\\n"));
    CHECK(contains(&body, "X-Part: 7\\r\\n") && contains(&body, "\\r\\n\\r\\na\\\"b\\r\\n"));
    CHECK(contains(&body, "Content-Transfer-Encoding: base64\\r\\n\\r\\naGVsbG8=\\r\\n"));
    CHECK(contains(&body, "\\r\\n\\r\\nfrom a callback\\r\\n"));
    CHECK(contains(&body, "\"content-length\"") && !contains(&body, "chunked"));
    IS(freed, 0);
    curl_mime_free(mime);
    IS(freed, 1);
    /* A form that was freed is empty, not a fault. */
    forget(&body);
    IS(curl_easy_perform(easy), CURLE_OK);
    CHECK(!contains(&body, "plain"));
    IS(curl_easy_setopt(easy, CURLOPT_MIMEPOST, mime), CURLE_BAD_FUNCTION_ARGUMENT);
    forget(&body);
    curl_easy_cleanup(easy);
}

static void nested_and_copied(void) {
    struct memory body = {0};
    CURL *easy = new_easy(under(base, "/echo"), &body);
    curl_mime *mime = curl_mime_init(easy), *inner = curl_mime_init(easy);
    curl_mimepart *part = curl_mime_addpart(inner);
    curl_mime_data(part, "within", CURL_ZERO_TERMINATED);
    curl_mime_filename(part, "a.txt");
    part = curl_mime_addpart(mime);
    curl_mime_name(part, "nested");
    IS(curl_mime_subparts(part, inner), CURLE_OK);
    curl_easy_setopt(easy, CURLOPT_MIMEPOST, mime);
    IS(curl_easy_perform(easy), CURLE_OK);
    CHECK(contains(&body, "name=\\\"nested\\\"\\r\\nContent-Type: multipart/mixed; boundary="));
    CHECK(contains(&body, "Content-Disposition: attachment; filename=\\\"a.txt\\\"") && contains(&body, "\\r\\n\\r\\nwithin"));
    /* A copy of the handle has a copy of the form. */
    CURL *copy = curl_easy_duphandle(easy);
    curl_mime_free(mime);
    curl_easy_cleanup(easy);
    forget(&body);
    IS(curl_easy_perform(copy), CURLE_OK);
    CHECK(contains(&body, "\\r\\n\\r\\nwithin"));
    forget(&body);
    curl_easy_cleanup(copy);
}

static void by_formadd(void) {
    struct memory body = {0};
    struct curl_httppost *form = NULL, *last = NULL;
    IS(curl_formadd(&form, &last, CURLFORM_COPYNAME, "name", CURLFORM_COPYCONTENTS, "value", CURLFORM_END),
       CURL_FORMADD_OK);
    char borrowed[] = "borrowed memory";
    IS(curl_formadd(&form, &last, CURLFORM_PTRNAME, "ptr...", CURLFORM_NAMELENGTH, 3L, CURLFORM_PTRCONTENTS, borrowed,
                    CURLFORM_CONTENTLEN, (curl_off_t)8, CURLFORM_END),
       CURL_FORMADD_OK);
    IS(curl_formadd(&form, &last, CURLFORM_COPYNAME, "file", CURLFORM_FILE, file_path, CURLFORM_CONTENTTYPE,
                    "text/x-file", CURLFORM_FILENAME, "other.html", CURLFORM_END),
       CURL_FORMADD_OK);
    IS(curl_formadd(&form, &last, CURLFORM_COPYNAME, "content", CURLFORM_FILECONTENT, file_path, CURLFORM_END),
       CURL_FORMADD_OK);
    IS(curl_formadd(&form, &last, CURLFORM_COPYNAME, "buffer", CURLFORM_BUFFER, "b.bin", CURLFORM_BUFFERPTR, borrowed,
                    CURLFORM_BUFFERLENGTH, 4L, CURLFORM_END),
       CURL_FORMADD_OK);
    const char *text = "streamed";
    IS(curl_formadd(&form, &last, CURLFORM_COPYNAME, "stream", CURLFORM_STREAM, &text, CURLFORM_CONTENTLEN,
                    (curl_off_t)8, CURLFORM_END),
       CURL_FORMADD_OK);
    struct curl_forms list[] = {{CURLFORM_COPYCONTENTS, "of an array"}, {CURLFORM_CONTENTTYPE, "text/x-array"}, {CURLFORM_END, NULL}};
    IS(curl_formadd(&form, &last, CURLFORM_COPYNAME, "array", CURLFORM_ARRAY, list, CURLFORM_END), CURL_FORMADD_OK);
    IS(curl_formadd(&form, &last, CURLFORM_COPYNAME, "x", CURLFORM_COPYNAME, "y", CURLFORM_END), CURL_FORMADD_OPTION_TWICE);
    IS(curl_formadd(&form, &last, CURLFORM_COPYNAME, NULL, CURLFORM_END), CURL_FORMADD_NULL);
    IS(curl_formadd(&form, &last, CURLFORM_COPYNAME, "x", CURLFORM_END), CURL_FORMADD_INCOMPLETE);
    IS(curl_formadd(&form, &last, 99, "x", CURLFORM_END), CURL_FORMADD_UNKNOWN_OPTION);
    CURL *easy = new_easy(under(base, "/echo"), &body);
    curl_easy_setopt(easy, CURLOPT_READFUNCTION, read_part);
    curl_easy_setopt(easy, CURLOPT_HTTPPOST, form);
    IS(curl_easy_perform(easy), CURLE_OK);
    CHECK(contains(&body, "name=\\\"name\\\"\\r\\n\\r\\nvalue\\r\\n") && contains(&body, "name=\\\"ptr\\\"\\r\\n\\r\\nborrowed\\r\\n"));
    CHECK(contains(&body, "filename=\\\"other.html\\\"\\r\\nContent-Type: text/x-file\\r\\n\\r\\n<html>\\r\\n"));
    CHECK(contains(&body, "name=\\\"buffer\\\"; filename=\\\"b.bin\\\"\\r\\nContent-Type: application/octet-stream\\r\\n\\r\\nborr\\r\\n"));
    CHECK(contains(&body, "name=\\\"stream\\\"\\r\\n\\r\\nstreamed\\r\\n"));
    CHECK(contains(&body, "name=\\\"array\\\"\\r\\nContent-Type: text/x-array\\r\\n\\r\\nof an array\\r\\n"));
    curl_formfree(form);
    IS(curl_easy_setopt(easy, CURLOPT_HTTPPOST, form), CURLE_BAD_FUNCTION_ARGUMENT);
    forget(&body);
    curl_easy_cleanup(easy);
}

/* A form that is taken away leaves a POST without content. */
static void empty_form(void) {
    struct memory body = {0};
    CURL *easy = new_easy(under(base, "/echo"), &body);
    curl_easy_setopt(easy, CURLOPT_MIMEPOST, NULL);
    IS(curl_easy_perform(easy), CURLE_OK);
    CHECK(contains(&body, "\"method\":\"POST\"") && contains(&body, "\"body_len\":0"));
    CHECK(!contains(&body, "content-type"));
    forget(&body);
    curl_easy_cleanup(easy);
}

int main(int argc, char **argv) {
    CHECK(argc == 3);
    base = argv[1];
    write_file(argv[2]);
    by_mime();
    nested_and_copied();
    by_formadd();
    empty_form();
    puts("formed");
    return 0;
}
