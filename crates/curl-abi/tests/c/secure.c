/* TLS and HTTP/2: secure HTTPS-URL CA-FILE. */
#include "check.h"

static char *read_file(const char *path, size_t *length) {
    FILE *file = fopen(path, "r");
    CHECK(file != NULL);
    char *text = malloc(65536);
    *length = fread(text, 1, 65536, file);
    fclose(file);
    return text;
}

int main(int argc, char **argv) {
    CHECK(argc == 3);
    struct memory body = {0};
    CURL *easy = new_easy(argv[1], &body);
    IS(curl_easy_perform(easy), CURLE_PEER_FAILED_VERIFICATION);
    CHECK(strncmp(error_buffer, "SSL certificate problem: ", 25) == 0);
    CHECK(long_info(easy, CURLINFO_SSL_VERIFYRESULT) != 0);
    curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, 0L);
    IS(curl_easy_perform(easy), CURLE_OK);
    CHECK(long_info(easy, CURLINFO_SSL_VERIFYRESULT) != 0);
    curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, 1L);
    curl_easy_setopt(easy, CURLOPT_CAINFO, argv[2]);
    curl_easy_setopt(easy, CURLOPT_CERTINFO, 1L);
    forget(&body);
    IS(curl_easy_perform(easy), CURLE_OK);
    CHECK(strcmp(text_of(&body), "small\n") == 0);
    IS(long_info(easy, CURLINFO_SSL_VERIFYRESULT), 0);
    IS(long_info(easy, CURLINFO_HTTP_VERSION), CURL_HTTP_VERSION_2_0);
    CHECK(strcmp(text_info(easy, CURLINFO_SCHEME), "https") == 0 && off_t_info(easy, CURLINFO_APPCONNECT_TIME_T) > 0);
    struct curl_certinfo *certificates = NULL;
    IS(curl_easy_getinfo(easy, CURLINFO_CERTINFO, &certificates), CURLE_OK);
    CHECK(certificates->num_of_certs >= 1 && strncmp(certificates->certinfo[0]->data, "Subject:", 8) == 0);
    curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    IS(curl_easy_perform(easy), CURLE_OK);
    IS(long_info(easy, CURLINFO_HTTP_VERSION), CURL_HTTP_VERSION_1_1);
    /* Certificates in memory. */
    size_t length;
    char *text = read_file(argv[2], &length);
    curl_easy_setopt(easy, CURLOPT_CAINFO, NULL);
    struct curl_blob blob = {text, length, CURL_BLOB_COPY};
    IS(curl_easy_setopt(easy, CURLOPT_CAINFO_BLOB, &blob), CURLE_OK);
    memset(text, 'x', length);
    free(text);
    curl_easy_setopt(easy, CURLOPT_FRESH_CONNECT, 1L);
    IS(curl_easy_perform(easy), CURLE_OK);
    IS(long_info(easy, CURLINFO_NUM_CONNECTS), 1);
    curl_easy_setopt(easy, CURLOPT_PINNEDPUBLICKEY, "sha256//AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=");
    IS(curl_easy_perform(easy), CURLE_SSL_PINNEDPUBKEYNOTMATCH);
    curl_easy_setopt(easy, CURLOPT_PINNEDPUBLICKEY, NULL);
    curl_easy_setopt(easy, CURLOPT_CAINFO_BLOB, NULL);
    curl_easy_setopt(easy, CURLOPT_CAINFO, "/nonexistent");
    IS(curl_easy_perform(easy), CURLE_SSL_CACERT_BADFILE);
    /* A directory that does not exist does not matter beside a file, but does alone. */
    curl_easy_setopt(easy, CURLOPT_CAPATH, "/nonexistent");
    curl_easy_setopt(easy, CURLOPT_CAINFO, argv[2]);
    IS(curl_easy_perform(easy), CURLE_OK);
    curl_easy_setopt(easy, CURLOPT_CAINFO, NULL);
    IS(curl_easy_perform(easy), CURLE_SSL_CACERT_BADFILE);
    forget(&body);
    curl_easy_cleanup(easy);
    puts("secured");
    return 0;
}
