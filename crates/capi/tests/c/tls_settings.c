/* Settings of connections that are given in memory: tls_settings HTTPS-URL CA-PEM NAMED-URL NAME-SERVER. */
#include "check.h"

int main(int argc, char **argv) {
    CHECK(argc == 5);
    haul_client *client = haul_client_new();
    haul_response *place = haul_response_new();
    haul_reply reply;
    haul_tls tls;
    haul_call call = HAUL_CALL_INIT;
    call.url = slice(argv[1]);
    CHECK(haul_client_call(client, &call, place, &reply) == HAUL_STATUS_PEER_CERTIFICATE);
    CHECK(haul_client_set_ca_pem(client, argv[2], strlen(argv[2])) == HAUL_STATUS_OK);
    CHECK(haul_client_set_tls_facts(client, true) == HAUL_STATUS_OK);

    const int versions[] = {12, 13};
    for (int i = 0; i < 2; i++) {
        CHECK(haul_client_set_tls_versions(client, versions[i], versions[i]) == HAUL_STATUS_OK);
        CHECK(haul_client_call(client, &call, place, &reply) == HAUL_STATUS_OK);
        CHECK(haul_response_tls(place, &tls) == HAUL_STATUS_OK && is(tls.version, i == 0 ? "TLSv1.2" : "TLSv1.3"));
    }
    CHECK(haul_client_set_tls_versions(client, 11, 0) == HAUL_STATUS_SETUP);
    CHECK(haul_client_set_tls_versions(client, 0, 0) == HAUL_STATUS_OK);

    const uint8_t other[64] = {0};
    CHECK(haul_client_set_pins(client, other, 2) == HAUL_STATUS_OK);
    CHECK(haul_client_call(client, &call, place, &reply) == HAUL_STATUS_PINNED_KEY);
    CHECK(haul_client_set_pins(client, NULL, 1) == HAUL_STATUS_SETUP);
    CHECK(haul_client_set_pins(client, NULL, 0) == HAUL_STATUS_OK);
    CHECK(haul_client_call(client, &call, place, &reply) == HAUL_STATUS_OK);

    CHECK(haul_client_set_client_certificate_pem(client, "no PEM", 6, NULL) == HAUL_STATUS_OK);
    CHECK(haul_client_call(client, &call, place, &reply) == HAUL_STATUS_CLIENT_CERTIFICATE);
    CHECK(haul_client_set_client_certificate_pem(client, NULL, 0, NULL) == HAUL_STATUS_OK);
    CHECK(haul_client_call(client, &call, place, &reply) == HAUL_STATUS_OK);

    call.url = slice(argv[3]);
    CHECK(haul_client_set_dns_servers(client, "no server") == HAUL_STATUS_SETUP);
    CHECK(haul_client_set_dns_servers(NULL, argv[4]) == HAUL_STATUS_SETUP);
    CHECK(haul_client_set_dns_servers(client, argv[4]) == HAUL_STATUS_OK);
    CHECK(haul_client_call(client, &call, place, &reply) == HAUL_STATUS_OK && reply.status == 200);
    CHECK(haul_client_set_dns_servers(client, NULL) == HAUL_STATUS_OK);
    haul_response_free(place);
    haul_client_free(client);
    puts("set");
    return 0;
}
