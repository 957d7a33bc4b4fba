/* Logs in by a form with one client, fetches a page with another that shares its jar and its connections,
 * and saves the jar.
 *
 *   ./login http://127.0.0.1:8080 cookies.txt
 */
#include <haul.h>
#include <stdio.h>
#include <string.h>

static int fail(const char *what) {
    fprintf(stderr, "login: %s: %s\n", what, haul_error_text(haul_last_error()));
    return 1;
}

int main(int argc, char **argv) {
    if (argc != 3) {
        fprintf(stderr, "usage: login BASE-URL COOKIE-FILE\n");
        return 2;
    }
    char url[1024];
    int result = 0;
    haul_jar *jar = haul_jar_new();
    haul_client *writer = haul_client_new();
    haul_client *reader = haul_client_new();
    haul_response *response = NULL;

    haul_client_set_jar(writer, jar);
    haul_client_share(reader, writer, HAUL_SHARE_POOL | HAUL_SHARE_JAR);

    snprintf(url, sizeof url, "%s/login", argv[1]);
    haul_request *login = haul_request_new("POST", url);
    haul_request_add_form_field(login, "user", 4, "me", 2);
    haul_request_add_form_field(login, "password", 8, "a&b c", 5);
    if (haul_client_perform(writer, login, &response) != HAUL_STATUS_OK)
        result = fail("the login");
    haul_response_free(response);
    haul_request_free(login);

    snprintf(url, sizeof url, "%s/private", argv[1]);
    haul_request *page = haul_request_new("GET", url);
    if (result == 0 && haul_client_perform(reader, page, &response) != HAUL_STATUS_OK) {
        result = fail("the page");
    } else if (result == 0) {
        haul_slice body = haul_response_body(response);
        fwrite(body.data, 1, body.len, stdout);
        haul_response_free(response);
    }
    haul_request_free(page);

    if (result == 0 && haul_jar_save(jar, argv[2]) != HAUL_STATUS_OK)
        result = fail("the jar");
    haul_jar_free(jar);
    haul_client_free(writer);
    haul_client_free(reader);
    return result;
}
