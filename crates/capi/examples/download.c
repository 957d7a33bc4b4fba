/* Downloads a body into a file, piece by piece, so that memory does not grow with its length.
 *
 *   ./download http://127.0.0.1:8080/large.iso large.iso
 */
#include <haul.h>
#include <stdio.h>

int main(int argc, char **argv) {
    if (argc != 3) {
        fprintf(stderr, "usage: download URL FILE\n");
        return 2;
    }
    static char piece[128 * 1024];
    unsigned long long total = 0;
    haul_status status = HAUL_STATUS_OK;
    haul_response *response = NULL;
    haul_client *client = haul_client_new();
    haul_request *request = haul_request_new(NULL, argv[1]);
    FILE *file = fopen(argv[2], "wb");
    if (file == NULL) {
        perror(argv[2]);
        status = HAUL_STATUS_WRITE;
    } else if (request == NULL || haul_client_open(client, request, &response) != HAUL_STATUS_OK) {
        status = haul_error_code(haul_last_error());
    } else {
        size_t got;
        while ((status = haul_response_read(response, piece, sizeof piece, &got)) == HAUL_STATUS_OK && got > 0) {
            if (fwrite(piece, 1, got, file) != got) {
                perror(argv[2]);
                status = HAUL_STATUS_WRITE;
                break;
            }
            total += got;
        }
    }
    if (status != HAUL_STATUS_OK && status != HAUL_STATUS_WRITE)
        fprintf(stderr, "download: %s\n", haul_error_text(haul_last_error()));
    if (file != NULL && fclose(file) != 0)
        status = HAUL_STATUS_WRITE;
    haul_times times = haul_response_times(response);
    printf("%llu bytes, first after %llu us\n", total, (unsigned long long)(times.first_byte / 1000));
    haul_response_free(response);
    haul_request_free(request);
    haul_client_free(client);
    return status;
}
