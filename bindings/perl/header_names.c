/* header_names.c: keys of response hashes, created once for each interpreter. Perl shares one
 * copy of a key's text between all hashes. This file holds such copies, so that storing a value
 * neither hashes nor compares text, and freeing a hash does not free the copy. */
#include "haul_perl.h"

/* The number of cached field names, and the longest of them. Other names have the usual cost. */
#define NAMES 128
#define NAME_ROOM 31

typedef struct name_slot {
    SV *key;                   /* in lower case */
    SV *standard;              /* the spelling that HTTP::Headers stores; NULL: not asked yet */
    SV *spelling;              /* the spelling that HTTP::Headers knows; NULL: not asked yet */
    IV place;                  /* the place of the name in the order of HTTP::Headers; 0: none */
    U8 len;
    char name[NAME_ROOM];      /* as received */
} name_slot;

typedef struct {
    SV *words[HK_WORDS];
    name_slot names[NAMES];
} my_cxt_t;

#define MY_CXT_KEY "HTTP::Haul::_names"
START_MY_CXT

static const char *const words[HK_WORDS] = {
    "success", "url", "status", "reason", "content", "headers", "protocol", "_engine", "default_headers", "data_callback",
    "trailer_callback", "peer", "retries", "on_step", "timings", "connection", "error",
    "_rc", "_msg", "_protocol", "_request", "_headers", "_content", "HTTP/1.0", "HTTP/1.1", "HTTP/2", "HTTP/3",
};

static void begin(pTHX_ my_cxt_t *cxt) {
    Zero(cxt, 1, my_cxt_t);
    for (int i = 0; i < HK_WORDS; i++)
        cxt->words[i] = newSVpvn_share(words[i], (I32)strlen(words[i]), 0);
}

void hk_names_begin(pTHX) {
    MY_CXT_INIT;
    begin(aTHX_ &MY_CXT);
}

/* A new thread has its own interpreter, and needs its own keys. */
void hk_names_clone(pTHX) {
#ifdef USE_ITHREADS
    MY_CXT_CLONE;
    begin(aTHX_ &MY_CXT);
#endif
}

SV *hk_fetch(pTHX_ HV *hv, int word) {
    dMY_CXT;
    SV *key = MY_CXT.words[word];
    SV **found = (SV **)hv_common(hv, key, NULL, 0, 0, HV_FETCH_JUST_SV, NULL, SvSHARED_HASH(key));
    return found ? *found : NULL;
}

static void store(pTHX_ HV *hv, SV *key, SV *value) {
    if (!hv_common(hv, key, NULL, 0, 0, HV_FETCH_ISSTORE | HV_FETCH_JUST_SV, value, SvSHARED_HASH(key)))
        SvREFCNT_dec(value);
}

void hk_store(pTHX_ HV *hv, int word, SV *value) {
    dMY_CXT;
    store(aTHX_ hv, MY_CXT.words[word], value);
}

SV *hk_word(pTHX_ int word) {
    dMY_CXT;
    return newSVhek(SvSHARED_HEK_FROM_PV(SvPVX_const(MY_CXT.words[word])));
}

static SV *lower(pTHX_ const char *name, STRLEN len) {
    char few[128];
    char *text = few;
    SV *key;
    if (len > sizeof few)
        Newx(text, len, char);
    for (STRLEN at = 0; at < len; at++)
        text[at] = toLOWER(name[at]);
    key = newSVpvn_share(text, (I32)len, 0);
    if (text != few)
        Safefree(text);
    return key;
}

/* Hashes a name by a few of its characters. With this factor, sixty common names have different
 * slots. A name in an occupied slot only costs what it would without the cache. */
static unsigned slot_index(const U8 *name, STRLEN len) {
    U32 mixed = (U32)name[0] | (U32)name[len / 2] << 8 | (U32)name[len - 1] << 16 | (U32)len << 24;
    mixed ^= (U32)name[len / 4] << 4;
    return (mixed * 0xA456A271u >> 16) % NAMES;
}

/* Returns the slot of a field name, which is valid until the next call. `spare` is the slot of a
 * name that is too long for the cache. */
static name_slot *slot_of(pTHX_ const char *name, STRLEN len, name_slot *spare) {
    dMY_CXT;
    name_slot *slot;
    if (!len || len > NAME_ROOM) {
        spare->key = sv_2mortal(lower(aTHX_ name, len));
        spare->standard = spare->spelling = NULL;
        return spare;
    }
    slot = &MY_CXT.names[slot_index((const U8 *)name, len)];
    if (slot->len == len && memEQ(slot->name, name, len))
        return slot;
    SvREFCNT_dec(slot->key);
    SvREFCNT_dec(slot->standard);
    SvREFCNT_dec(slot->spelling);
    slot->key = lower(aTHX_ name, len);
    slot->standard = slot->spelling = NULL;
    slot->len = (U8)len;
    Copy(name, slot->name, len, char);
    return slot;
}

/* Returns whether a field no longer describes the content after decoding. */
static bool describes_coding(const char *name, STRLEN len) {
    return (len == 16 && memEQ(name, "content-encoding", 16)) || (len == 14 && memEQ(name, "content-length", 14));
}

/* Adds fields to a hash, with names in lower case. Repeated fields are an array. */
void hk_add_headers(pTHX_ HV *hv, const haul_header *headers, size_t count, bool decoded) {
    /* The texts of the keys that were added, which are compared by address. */
    const char *seen[HK_HEADERS];
    size_t stored = 0;
    name_slot spare;
    bool fresh = !HvUSEDKEYS(hv) && count <= HK_HEADERS;
    /* A new hash has eight slots. Perl doubles them when two thirds are full. */
    if (fresh && count > 5)
        hv_ksplit(hv, (IV)(count + count / 2 + 1));
    for (size_t i = 0; i < count; i++) {
        SV *key = slot_of(aTHX_ headers[i].name.data, headers[i].name.len, &spare)->key, *value;
        HE *entry;
        if (decoded && describes_coding(SvPVX_const(key), SvCUR(key)))
            continue;
        value = newSVpvn(headers[i].value.len ? headers[i].value.data : "", headers[i].value.len);
        if (fresh) {
            size_t at = 0;
            while (at < stored && seen[at] != SvPVX_const(key))
                at++;
            if (at == stored) {
                seen[stored++] = SvPVX_const(key);
                store(aTHX_ hv, key, value);
                continue;
            }
        }
        entry = hv_fetch_ent(hv, key, 0, SvSHARED_HASH(key));
        if (!entry)
            store(aTHX_ hv, key, value);
        else {
            if (!SvROK(HeVAL(entry))) {
                AV *several = newAV();
                av_push(several, HeVAL(entry));
                HeVAL(entry) = newRV_noinc((SV *)several);
            }
            av_push((AV *)SvRV(HeVAL(entry)), value);
        }
    }
}

/* Asks HTTP::Headers for the spelling of a name that it stores; undef if none. */
static SV *ask_spelling(pTHX_ const char *name, STRLEN len) {
    dSP;
    SV *answer;
    ENTER;
    SAVETMPS;
    PUSHMARK(SP);
    mXPUSHp(name, len);
    PUTBACK;
    call_pv("LWP::Protocol::haul::_standard", G_SCALAR);
    SPAGAIN;
    answer = newSVsv(POPs);
    PUTBACK;
    FREETMPS;
    LEAVE;
    return answer;
}

/* Adds fields to the hash of an HTTP::Headers object. Its key "::std_case" has the spelling of
 * names that HTTP::Headers does not know. */
void hk_add_to_http_headers(pTHX_ HV *hv, const haul_header *headers, size_t count) {
    hk_add_headers(aTHX_ hv, headers, count, FALSE);
    for (size_t i = 0; i < count; i++) {
        const haul_slice name = headers[i].name;
        name_slot spare, *slot = slot_of(aTHX_ name.data, name.len, &spare);
        SV **cases;
        if (!slot->standard) {
            SV *standard = ask_spelling(aTHX_ name.data, name.len);
            /* Perl code ran: look again. */
            slot = slot_of(aTHX_ name.data, name.len, &spare);
            SvREFCNT_dec(slot->standard);
            slot->standard = slot == &spare ? sv_2mortal(standard) : standard;
        }
        if (!SvOK(slot->standard))
            continue;
        cases = hv_fetchs(hv, "::std_case", FALSE);
        if (!cases || !SvROK(*cases))
            cases = hv_stores(hv, "::std_case", newRV_noinc((SV *)newHV()));
        /* Of several spellings in a response, HTTP::Headers keeps the first. */
        if (!hv_exists_ent((HV *)SvRV(*cases), slot->key, SvSHARED_HASH(slot->key)))
            (void)hv_store_ent((HV *)SvRV(*cases), slot->key, newSVsv(slot->standard), SvSHARED_HASH(slot->key));
    }
}

/* Asks Perl for the place and the spelling of a name in HTTP::Headers. */
static IV ask_place(pTHX_ const char *key, STRLEN len, SV **spelling) {
    dSP;
    IV place;
    ENTER;
    SAVETMPS;
    PUSHMARK(SP);
    mXPUSHp(key, len);
    PUTBACK;
    if (call_pv("LWP::Protocol::haul::_place", G_ARRAY) != 2)
        croak("LWP::Protocol::haul::_place has two results");
    SPAGAIN;
    *spelling = newSVsv(POPs);
    place = POPi;
    PUTBACK;
    FREETMPS;
    LEAVE;
    return place;
}

IV hk_place(pTHX_ const char *key, STRLEN len, SV **spelling) {
    name_slot spare, *slot = slot_of(aTHX_ key, len, &spare);
    if (!slot->spelling) {
        SV *asked;
        IV place = ask_place(aTHX_ key, len, &asked);
        /* Perl code ran: look again. */
        slot = slot_of(aTHX_ key, len, &spare);
        SvREFCNT_dec(slot->spelling);
        slot->spelling = slot == &spare ? sv_2mortal(asked) : asked;
        slot->place = place;
    }
    *spelling = sv_2mortal(SvREFCNT_inc_simple_NN(slot->spelling));
    return slot->place;
}
