/* lwp_plain.c: requests of LWP that need no Perl code, which are most. LWP::Protocol::haul has the
 * rules for all requests. This file reads the hashes of LWP::UserAgent and HTTP::Request directly,
 * and leaves a request to Perl if it has anything unusual. */
#include "haul_perl.h"

#define MEMBER(hv, name) member(aTHX_ hv, "" name, sizeof(name) - 1)

/* A field of the request, with its place in the order of HTTP::Headers. */
typedef struct sent_field {
    const char *key;           /* in lower case */
    STRLEN len;
    IV place;                  /* 0: none; such fields are last, by name */
    SV *name;                  /* as HTTP::Headers spells it */
    SV *value;
} sent_field;

/* Returns a defined member of a hash; NULL if there is none. */
static SV *member(pTHX_ HV *hv, const char *name, I32 len) {
    SV **found = hv_fetch(hv, name, len, 0);
    return found && SvOK(*found) ? *found : NULL;
}

/* Returns the hash of an object of exactly this class; NULL if it is anything else. */
static HV *hash_of(pTHX_ SV *object, const char *class) {
    HV *hv;
    if (!object || !SvROK(object) || SvTYPE(SvRV(object)) != SVt_PVHV)
        return NULL;
    hv = (HV *)SvRV(object);
    return sv_isa(object, class) && !SvMAGICAL(hv) ? hv : NULL;
}

/* Returns the elements of an array in a hash; NULL if there is none, or if it is empty. */
static AV *list_in(pTHX_ HV *hv, const char *name) {
    SV *found = member(aTHX_ hv, name, (I32)strlen(name));
    AV *list = found && SvROK(found) && SvTYPE(SvRV(found)) == SVt_PVAV ? (AV *)SvRV(found) : NULL;
    return list && av_top_index(list) >= 0 ? list : NULL;
}

/* Returns whether the program wants to see the response before it is complete. LWP's own handler
 * parses the head of HTML pages, which works with a complete body, too. */
static bool wants_stream(pTHX_ HV *ua) {
    SV *handlers = MEMBER(ua, "handlers");
    AV *list;
    if (MEMBER(ua, "max_size") || MEMBER(ua, "show_progress"))
        return TRUE;
    if (!handlers || !SvROK(handlers) || SvTYPE(SvRV(handlers)) != SVt_PVHV)
        return handlers != NULL;
    if (list_in(aTHX_ (HV *)SvRV(handlers), "response_data"))
        return TRUE;
    list = list_in(aTHX_ (HV *)SvRV(handlers), "response_header");
    for (SSize_t i = 0; list && i <= av_top_index(list); i++) {
        SV **handler = av_fetch(list, i, 0);
        SV *owner = handler && SvROK(*handler) && SvTYPE(SvRV(*handler)) == SVt_PVHV
                        ? MEMBER((HV *)SvRV(*handler), "owner") : NULL;
        if (!owner || strNE(SvPV_nolen(owner), "LWP::UserAgent::parse_head"))
            return TRUE;
    }
    return FALSE;
}

static HV *hash_in(pTHX_ SV *reference) {
    return reference && SvROK(reference) && SvTYPE(SvRV(reference)) == SVt_PVHV ? (HV *)SvRV(reference) : NULL;
}

/* Returns the engine that the user agent has for its current settings; NULL if Perl code has to
 * make one. The key is that of LWP::Protocol::haul::_engine, which has the rules. */
static SV *engine_of(pTHX_ HV *ua, SV *timeout, bool keeps) {
    SV *address = MEMBER(ua, "local_address"), *owner, *key;
    HV *kept = hash_in(aTHX_ MEMBER(ua, "LWP::Protocol::haul")), *engines;
    HE *entry;
    if (!kept || !(owner = MEMBER(kept, "owner")) || !SvROK(owner) || SvRV(owner) != (SV *)ua)
        return NULL;
    engines = hash_in(aTHX_ MEMBER(kept, "engines"));
    if (!engines)
        return NULL;
    key = newSVpvn_flags(keeps ? "1\0" "0\0" : "0\0" "0\0", 4, SVs_TEMP);
    if (SvOK(timeout))
        sv_catsv(key, timeout);
    sv_catpvn(key, "\0", 1);
    if (address)
        sv_catsv(key, address);
    sv_catpvn(key, "\0", 1);
    entry = hv_fetch_ent(engines, key, 0, 0);
    return entry && SvROK(HeVAL(entry)) ? HeVAL(entry) : NULL;
}

static bool is_plain_url(const char *url, STRLEN len) {
    return len > 7 && memEQ(url, "http://", 7) && url[7] != '/' && !memchr(url, '#', len) && !memchr(url, '@', len);
}

/* Returns whether a method is repeated if a kept connection turns out to be closed. */
static bool is_repeated(const char *method) {
    static const char *const repeated[] = { "GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE" };
    for (size_t i = 0; i < sizeof repeated / sizeof *repeated; i++)
        if (strEQ(method, repeated[i]))
            return TRUE;
    return FALSE;
}

static bool is_plain_method(const char *method, STRLEN len) {
    for (STRLEN i = 0; i < len; i++)
        if (!isUPPER(method[i]))
            return FALSE;
    return len && strNE(method, "CONNECT");
}

/* Sets the content of the request. Returns FALSE if Perl code has to do it. */
static bool set_content(pTHX_ hk_exchange *x, HV *request, SV *length) {
    SV *content = MEMBER(request, "_content");
    STRLEN len;
    const char *text;
    char digits[24];
    if (!content || !SvPOK(content) || SvROK(content) || MEMBER(request, "_parts"))
        return FALSE;
    if (!SvCUR(content))
        return !length;
    if (!hk_set_content(aTHX_ x, content))
        return FALSE;
    if (!length)
        return TRUE;
    text = SvPV(length, len);
    return len == (STRLEN)my_snprintf(digits, sizeof digits, "%" UVuf, (UV)x->call.body.len) && memEQ(text, digits, len);
}

/* Returns the bytes of a value on one line; NULL if it has wide characters. */
static SV *one_line(pTHX_ SV *value) {
    SV *bytes = SvOK(value) ? hk_bytes(aTHX_ value) : newSVpvs_flags("", SVs_TEMP);
    STRLEN len;
    const char *text;
    if (!bytes)
        return NULL;
    text = SvPV(bytes, len);
    if (memchr(text, '\r', len) || memchr(text, '\n', len)) {
        bytes = newSVpvn_flags(text, len, SVs_TEMP);
        for (char *at = SvPVX(bytes); at < SvEND(bytes); at++)
            if (*at == '\r' || *at == '\n')
                *at = ' ';
    }
    return bytes;
}

/* Inserts a field into a sorted list, behind the fields with the same name. */
static void insert(sent_field *fields, size_t count, const sent_field *field) {
    size_t at = count;
    while (at > 0) {
        const sent_field *last = &fields[at - 1];
        IV order = (last->place ? last->place : IV_MAX) - (field->place ? field->place : IV_MAX);
        if (!order)
            order = memcmp(last->key, field->key, last->len < field->len ? last->len : field->len);
        if (order < 0 || (!order && last->len <= field->len))
            break;
        fields[at] = fields[at - 1];
        at--;
    }
    fields[at] = *field;
}

/* Adds the fields of an HTTP::Headers in its order. Returns FALSE if Perl code has to do it. */
static bool add_fields(pTHX_ hk_exchange *x, HV *headers) {
    sent_field fields[HK_HEADERS];
    size_t count = 0;
    HE *entry;
    SV **cases = hv_fetchs(headers, "::std_case", 0);
    HV *spellings = cases && SvROK(*cases) && SvTYPE(SvRV(*cases)) == SVt_PVHV ? (HV *)SvRV(*cases) : NULL;
    hv_iterinit(headers);
    while ((entry = hv_iternext(headers))) {
        sent_field field;
        AV *several = NULL;
        SV *value = HeVAL(entry);
        field.key = HePV(entry, field.len);
        if (field.len > 1 && field.key[0] == ':' && field.key[1] == ':')
            continue;
        if (HeUTF8(entry) || !field.len || field.key[0] == ':')
            return FALSE;
        field.place = hk_place(aTHX_ field.key, field.len, &field.name);
        if (!field.place) {
            SV **spelled = spellings ? hv_fetch(spellings, field.key, (I32)field.len, 0) : NULL;
            if (spelled && SvUTF8(*spelled))
                return FALSE;
            field.name = spelled && SvTRUE(*spelled) ? sv_mortalcopy(*spelled) : newSVpvn_flags(field.key, field.len, SVs_TEMP);
        }
        if (SvROK(value) && SvTYPE(SvRV(value)) == SVt_PVAV && !SvOBJECT(SvRV(value)))
            several = (AV *)SvRV(value);
        for (SSize_t i = 0; i <= (several ? av_top_index(several) : 0); i++) {
            SV **one = several ? av_fetch(several, i, 0) : &value;
            if (count == HK_HEADERS || !one || !(field.value = one_line(aTHX_ *one)))
                return FALSE;
            insert(fields, count++, &field);
        }
    }
    for (size_t i = 0; i < count; i++) {
        haul_slice name = hk_slice(aTHX_ fields[i].name);
        if (fields[i].len == 14 && memEQ(fields[i].key, "content-length", 14))
            x->call.read_length = SvIV(fields[i].value);
        else
            hk_push_field(aTHX_ x, name.data, name.len, hk_slice(aTHX_ fields[i].value));
    }
    return TRUE;
}

/* Builds the HTTP::Response. `unset` has the names of its members that have no value yet. */
static SV *response_of(pTHX_ SV *request, SV *headers, AV *unset, SV **out) {
    HV *hv = newHV();
    hv_ksplit(hv, 16);
    for (SSize_t i = 0; i <= av_top_index(unset); i++)
        (void)hv_store_ent(hv, *av_fetch(unset, i, 0), newSV(0), 0);
    hk_store(aTHX_ hv, HK_RC, out[0]);
    hk_store(aTHX_ hv, HK_MSG, out[1]);
    hk_store(aTHX_ hv, HK_LWP_PROTOCOL, out[2]);
    hk_store(aTHX_ hv, HK_REQUEST, newSVsv(request));
    hk_store(aTHX_ hv, HK_LWP_HEADERS, newSVsv(headers));
    hk_store(aTHX_ hv, HK_LWP_CONTENT, out[4]);
    SvREFCNT_dec(out[5]);
    return sv_bless(newRV_noinc((SV *)hv), gv_stashpvs("HTTP::Response", GV_ADD));
}

SSize_t hk_lwp_plain(pTHX_ SV *ua_sv, SV *request_sv, SV *timeout, SV *keep_alive, AV *unset, SV **out) {
    HV *ua = hash_of(aTHX_ ua_sv, "LWP::UserAgent"), *request = hash_of(aTHX_ request_sv, "HTTP::Request"), *headers;
    SV *method, *uri, *engine_sv, *length, *received;
    SV **cache;
    hk_engine *engine;
    hk_exchange x;
    STRLEN len, url_len;
    const char *text, *url;
    bool has_cache;
    if (!ua || !request || wants_stream(aTHX_ ua) || MEMBER(request, "_protocol"))
        return 0;
    method = MEMBER(request, "_method");
    uri = MEMBER(request, "_uri");
    headers = hash_of(aTHX_ MEMBER(request, "_headers"), "HTTP::Headers");
    if (!headers || !method || !SvPOK(method) || !uri || !sv_isa(uri, "URI::http") || !SvPOK(SvRV(uri)))
        return 0;
    text = SvPV(method, len);
    url = SvPV(SvRV(uri), url_len);
    if (!is_plain_method(text, len) || !is_plain_url(url, url_len))
        return 0;
    if (hv_exists(headers, "upgrade", 7) || hv_exists(headers, "if-ssl-cert-subject", 19)
        || hv_exists(headers, "authorization", 13) || hv_exists(headers, "proxy-authorization", 19))
        return 0;
    length = MEMBER(headers, "content-length");
    if (length && SvROK(length))
        return 0;
    /* conn_cache(undef) keeps no connections. */
    cache = hv_fetchs(ua, "conn_cache", 0);
    has_cache = cache && SvOK(*cache);
    if (!has_cache && !is_repeated(text) && strNE(SvPV_nolen(keep_alive), "all"))
        return 0;
    engine_sv = engine_of(aTHX_ ua, timeout, SvTRUE(keep_alive) && (has_cache || !cache));
    engine = engine_sv ? hk_engine_of_sv(aTHX_ engine_sv) : NULL;
    if (!engine)
        return 0;
    /* A callback may drop the last reference to the engine. */
    hk_keep(aTHX_ SvRV(engine_sv));
    /* A signal handler may change the request. */
    text = SvPV(hk_copy(aTHX_ method), len);
    hk_begin(aTHX_ &x, engine, text, len, SvRV(uri));
    if (!set_content(aTHX_ &x, request, length) || !add_fields(aTHX_ &x, headers))
        return 0;
    sv_inc(get_sv("LWP::Protocol::haul::REQUESTS", GV_ADD));
    received = sv_2mortal(sv_bless(newRV_noinc((SV *)newHV()), gv_stashpvs("HTTP::Headers", GV_ADD)));
    hk_lwp_run(aTHX_ &x, received, out);
    /* After a failure, and to parse the head of a page, Perl code goes on. */
    if (!SvOK(out[0]) || SvOK(out[7]) || SvTRUE(out[5])) {
        out[HK_LWP_ANSWER] = SvREFCNT_inc_simple_NN(received);
        return HK_LWP_ANSWER + 1;
    }
    out[0] = response_of(aTHX_ request_sv, received, unset, out);
    return 1;
}
