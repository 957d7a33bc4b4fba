/* response.c: responses as hashes like those of HTTP::Tiny, and parts of responses for LWP. */
#include "haul_perl.h"

SV *hk_protocol(pTHX_ unsigned version) {
    return hk_word(aTHX_ version == 10 ? HK_HTTP_1_0 : version == 20 ? HK_HTTP_2 : version == 30 ? HK_HTTP_3 : HK_HTTP_1_1);
}

/* Returns the fields as received, as a list of names and values. */
AV *hk_header_list(pTHX_ const haul_header *headers, size_t count) {
    AV *list = newAV();
    av_extend(list, (SSize_t)(2 * count));
    for (size_t i = 0; i < count; i++) {
        av_push(list, newSVpvn(headers[i].name.data, headers[i].name.len));
        av_push(list, newSVpvn(headers[i].value.len ? headers[i].value.data : "", headers[i].value.len));
    }
    return list;
}

static const haul_slice *field(const haul_reply *reply, const char *name, size_t len) {
    for (size_t i = 0; i < reply->header_count; i++)
        if (reply->headers[i].name.len == len && strncasecmp(reply->headers[i].name.data, name, len) == 0)
            return &reply->headers[i].value;
    return NULL;
}

/* Returns whether the response is a redirect with a Location. */
bool hk_redirects(const haul_reply *reply) {
    switch (reply->status) {
    case 301: case 302: case 303: case 307: case 308: {
        const haul_slice *location = field(reply, "location", 8);
        return location && location->len;
    }
    default:
        return FALSE;
    }
}

/* Returns whether the connection may be used again. */
bool hk_keeps(const haul_reply *reply) {
    const haul_slice *connection = field(reply, "connection", 10);
    if (reply->version < 11)
        return connection && connection->len == 10 && strncasecmp(connection->data, "keep-alive", 10) == 0;
    return !(connection && connection->len == 5 && strncasecmp(connection->data, "close", 5) == 0);
}

/* Builds a response without `content`. Takes ownership of `url`. */
HV *hk_response(pTHX_ const haul_reply *reply, SV *url) {
    HV *hv = newHV(), *headers = newHV();
    /* Seven keys do not fit in the eight slots of a new hash. */
    hv_ksplit(hv, 16);
    hk_store(aTHX_ hv, HK_SUCCESS, reply->status >= 200 && reply->status < 300 ? newSViv(1) : newSVsv(&PL_sv_no));
    hk_store(aTHX_ hv, HK_URL, url);
    hk_store(aTHX_ hv, HK_STATUS, newSViv(reply->status));
    hk_store(aTHX_ hv, HK_REASON, newSVpvn(reply->reason.len ? reply->reason.data : "", reply->reason.len));
    hk_store(aTHX_ hv, HK_PROTOCOL, hk_protocol(aTHX_ reply->version));
    hk_add_headers(aTHX_ headers, reply->headers, reply->header_count, reply->decoded);
    hk_store(aTHX_ hv, HK_HEADERS_KEY, newRV_noinc((SV *)headers));
    return hv;
}

/* Adds the trailers to the headers, as HTTP::Tiny does. */
void hk_add_trailers(pTHX_ HV *response, const haul_response *from) {
    size_t count = haul_response_trailer_count(from);
    SV *headers = count ? hk_fetch(aTHX_ response, HK_HEADERS_KEY) : NULL;
    if (!headers || !SvROK(headers) || SvTYPE(SvRV(headers)) != SVt_PVHV)
        return;
    for (size_t i = 0; i < count; i++) {
        haul_header trailer;
        if (haul_response_trailer(from, i, &trailer) == HAUL_STATUS_OK)
            hk_add_headers(aTHX_ (HV *)SvRV(headers), &trailer, 1, FALSE);
    }
}

/* Builds the 599 response of a failure, as in HTTP::Tiny. */
HV *hk_response_599(pTHX_ SV *url, SV *text) {
    HV *hv = newHV(), *headers = newHV();
    STRLEN len;
    SV *content = newSVpvs("");
    sv_copypv(content, text);
    (void)SvPV(content, len);
    (void)hv_stores(headers, "content-type", newSVpvs("text/plain"));
    (void)hv_stores(headers, "content-length", newSVuv(len));
    hk_store(aTHX_ hv, HK_SUCCESS, newSVpvs(""));
    hk_store(aTHX_ hv, HK_URL, newSVsv(url));
    hk_store(aTHX_ hv, HK_STATUS, newSViv(599));
    hk_store(aTHX_ hv, HK_REASON, newSVpvs("Internal Exception"));
    hk_store(aTHX_ hv, HK_CONTENT, content);
    hk_store(aTHX_ hv, HK_HEADERS_KEY, newRV_noinc((SV *)headers));
    return hv;
}

/* Returns whether a failure may not recur: a retry makes sense. */
static bool is_transient(haul_status status) {
    switch (status) {
    case HAUL_STATUS_PROXY_RESOLVE: case HAUL_STATUS_RESOLVE: case HAUL_STATUS_CONNECT: case HAUL_STATUS_HTTP2:
    case HAUL_STATUS_PARTIAL_BODY: case HAUL_STATUS_TIMEOUT: case HAUL_STATUS_TLS_HANDSHAKE: case HAUL_STATUS_EMPTY_REPLY:
    case HAUL_STATUS_SEND: case HAUL_STATUS_RECEIVE: case HAUL_STATUS_HTTP2_STREAM: case HAUL_STATUS_HTTP3:
    case HAUL_STATUS_QUIC_CONNECT: case HAUL_STATUS_PROXY:
        return TRUE;
    default:
        return FALSE;
    }
}

HV *hk_error(pTHX_ haul_status status, const haul_error *error) {
    HV *hv = newHV();
    (void)hv_stores(hv, "code", newSViv((IV)status));
    (void)hv_stores(hv, "connect", newSViv(error && haul_error_is_connect(error)));
    (void)hv_stores(hv, "resolve", newSViv(error && haul_error_is_resolve(error)));
    (void)hv_stores(hv, "timeout", newSViv(error && haul_error_is_timeout(error)));
    (void)hv_stores(hv, "tls", newSViv(error && haul_error_is_tls(error)));
    (void)hv_stores(hv, "transient", newSViv(is_transient(status)));
    return hv;
}

static void add_time(pTHX_ HV *hv, const char *name, uint64_t nanoseconds) {
    if (nanoseconds)
        (void)hv_store(hv, name, (I32)strlen(name), newSVnv((NV)nanoseconds / 1e9), 0);
}

/* Adds the members of a TLS session to the hash `connection`. */
static void add_tls(pTHX_ HV *connection, const haul_response *from) {
    haul_tls tls;
    AV *chain;
    size_t i;
    if (haul_response_tls(from, &tls) != HAUL_STATUS_OK)
        return;
    chain = newAV();
    for (i = 0; i < tls.certificate_count; i++) {
        haul_slice certificate = haul_response_certificate(from, i);
        av_push(chain, newSVpvn(certificate.data, certificate.len));
    }
    (void)hv_stores(connection, "tls_version", newSVpvn(tls.version.data, tls.version.len));
    (void)hv_stores(connection, "cipher", newSVpvn(tls.cipher.data, tls.cipher.len));
    if (tls.alpn.data)
        (void)hv_stores(connection, "alpn", newSVpvn(tls.alpn.data, tls.alpn.len));
    (void)hv_stores(connection, "resumed", newSViv(tls.resumed));
    (void)hv_stores(connection, "certificates", newRV_noinc((SV *)chain));
}

void hk_add_timings(pTHX_ HV *response, const haul_response *from) {
    haul_times times = haul_response_times(from);
    HV *hv = newHV(), *connection = newHV();
    uint16_t port = 0;
    const char *address = haul_response_peer(from, &port);
    add_time(aTHX_ hv, "resolved", times.resolved);
    add_time(aTHX_ hv, "connected", times.connected);
    add_time(aTHX_ hv, "secured", times.secured);
    add_time(aTHX_ hv, "sent", times.sent);
    add_time(aTHX_ hv, "first_byte", times.first_byte);
    add_time(aTHX_ hv, "total", times.total);
    hk_store(aTHX_ response, HK_TIMINGS, newRV_noinc((SV *)hv));
    if (address) {
        (void)hv_stores(connection, "address", newSVpv(address, 0));
        (void)hv_stores(connection, "port", newSVuv(port));
    }
    (void)hv_stores(connection, "reused", newSViv(!times.connected));
    add_tls(aTHX_ connection, from);
    hk_store(aTHX_ response, HK_CONNECTION, newRV_noinc((SV *)connection));
}
