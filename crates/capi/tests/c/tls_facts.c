/* The TLS session of a reply: tls_facts HTTPS-URL CA-FILE HTTP-URL. */
#include "check.h"

int main(int argc, char **argv) {
    CHECK(argc == 4);
    haul_client *client = haul_client_new();
    CHECK(haul_client_set_ca_file(client, argv[2]) == HAUL_STATUS_OK);
    CHECK(haul_client_set_http(client, HAUL_HTTP_2) == HAUL_STATUS_OK);
    haul_response *place = haul_response_new();
    haul_tls tls;
    haul_reply reply;
    haul_call call = HAUL_CALL_INIT;
    call.url = slice(argv[1]);

    CHECK(haul_client_set_tls_facts(NULL, true) == HAUL_STATUS_SETUP);
    CHECK(haul_response_tls(place, &tls) == HAUL_STATUS_SETUP && haul_response_tls(NULL, &tls) == HAUL_STATUS_SETUP);
    CHECK(haul_client_call(client, &call, place, &reply) == HAUL_STATUS_OK);
    CHECK(haul_response_certificate(place, 0).data == NULL && haul_response_certificate(NULL, 0).data == NULL);

    CHECK(haul_client_set_tls_facts(client, true) == HAUL_STATUS_OK);
    haul_client_close_idle(client);
    CHECK(haul_client_call(client, &call, place, &reply) == HAUL_STATUS_OK);
    CHECK(haul_response_tls(place, NULL) == HAUL_STATUS_SETUP);
    CHECK(haul_response_tls(place, &tls) == HAUL_STATUS_OK);
    CHECK(is(tls.version, "TLSv1.3") && is(tls.alpn, "h2") && contains(tls.cipher, "TLS_"));
    CHECK(tls.certificate_count >= 1);
    haul_slice certificate = haul_response_certificate(place, 0);
    /* A sequence in DER. */
    CHECK(certificate.len > 100 && certificate.data[0] == 0x30);
    CHECK(haul_response_certificate(place, tls.certificate_count).data == NULL);

    /* A kept connection has the same session. */
    haul_tls again;
    CHECK(haul_client_call(client, &call, place, &reply) == HAUL_STATUS_OK);
    CHECK(haul_response_tls(place, &again) == HAUL_STATUS_OK && again.certificate_count == tls.certificate_count);

    /* A new one is resumed, and still has the certificates. */
    haul_client_close_idle(client);
    CHECK(haul_client_call(client, &call, place, &reply) == HAUL_STATUS_OK);
    CHECK(haul_response_tls(place, &again) == HAUL_STATUS_OK && again.resumed && again.certificate_count >= 1);

    call.url = slice(argv[3]);
    CHECK(haul_client_call(client, &call, place, &reply) == HAUL_STATUS_OK);
    CHECK(haul_response_tls(place, &tls) == HAUL_STATUS_SETUP && haul_response_certificate(place, 0).data == NULL);
    haul_response_free(place);
    haul_client_free(client);
    puts("known");
    return 0;
}
