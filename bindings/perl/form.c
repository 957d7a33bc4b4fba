/* form.c: application/x-www-form-urlencoded as in HTTP::Tiny: UTF-8, "+" for a space, hashes
 * sorted by name. */
#include "haul_perl.h"

static const char hex[] = "0123456789ABCDEF";

static bool plain(unsigned char byte) {
    return isALPHANUMERIC_A(byte) || byte == '-' || byte == '.' || byte == '_' || byte == '~';
}

/* Appends an escaped value. Characters above 0x7f are encoded as UTF-8. */
static void append(pTHX_ SV *out, SV *value) {
    STRLEN len, used = SvCUR(out);
    const unsigned char *from, *end;
    char *to;
    if (!value || !SvOK(value))
        return;
    /* Making text of an object may run Perl code that drops the value. */
    if (SvROK(value))
        hk_keep(aTHX_ value);
    from = (const unsigned char *)SvPV(value, len);
    if (!SvUTF8(value)) {
        for (end = from + len; from < end && *from < 0x80; from++)
            ;
        if (from < end) {
            value = newSVpvn_flags(SvPV_nolen(value), len, SVs_TEMP);
            sv_utf8_upgrade(value);
        }
        from = (const unsigned char *)SvPV(value, len);
    }
    SvGROW(out, used + 3 * len + 1);
    to = SvPVX(out) + used;
    for (end = from + len; from < end; from++) {
        if (plain(*from))
            *to++ = (char)*from;
        else if (*from == ' ')
            *to++ = '+';
        else {
            *to++ = '%';
            *to++ = hex[*from >> 4];
            *to++ = hex[*from & 15];
        }
    }
    *to = '\0';
    SvCUR_set(out, to - SvPVX(out));
}

static void term(pTHX_ AV *terms, SV *name, SV *value) {
    SV *out = newSVpvs("");
    av_push(terms, out);
    if (SvROK(name) && value)
        hk_keep(aTHX_ value);
    append(aTHX_ out, name);
    sv_catpvs(out, "=");
    append(aTHX_ out, value);
}

/* The depth of arrays in arrays that a form may have. Only an array that contains itself has more. */
#define DEEPEST 100

static void terms_of(pTHX_ AV *terms, SV *name, SV *value, int depth) {
    name = hk_plain(aTHX_ name);
    value = hk_plain(aTHX_ value);
    if (!SvOK(name))
        croak("form data keys must not be undef");
    if (SvROK(value) && SvTYPE(SvRV(value)) == SVt_PVAV && !SvOBJECT(SvRV(value))) {
        AV *several = (AV *)hk_keep(aTHX_ SvRV(value));
        if (depth == DEEPEST)
            croak("form data has too many arrays in arrays\n");
        for (SSize_t i = 0; i <= av_top_index(several); i++) {
            SV **one = av_fetch(several, i, 0);
            terms_of(aTHX_ terms, name, one ? *one : &PL_sv_undef, depth + 1);
        }
    }
    else
        term(aTHX_ terms, name, value);
}

SV *hk_form(pTHX_ SV *data) {
    AV *terms = (AV *)sv_2mortal((SV *)newAV());
    SV *out = newSVpvs_flags("", SVs_TEMP);
    data = hk_plain(aTHX_ data);
    if (!SvROK(data) || (SvTYPE(SvRV(data)) != SVt_PVHV && SvTYPE(SvRV(data)) != SVt_PVAV))
        croak("form data must be a hash or array reference\n");
    hk_keep(aTHX_ SvRV(data));
    if (SvTYPE(SvRV(data)) == SVt_PVHV) {
        HV *hash = (HV *)SvRV(data);
        AV *names = (AV *)sv_2mortal((SV *)newAV());
        HE *entry;
        hv_iterinit(hash);
        while ((entry = hv_iternext(hash)))
            av_push(names, newSVsv(hv_iterkeysv(entry)));
        if (av_top_index(names) > 0)
            sortsv(AvARRAY(names), av_top_index(names) + 1, Perl_sv_cmp);
        for (SSize_t i = 0; i <= av_top_index(names); i++) {
            SV *name = AvARRAY(names)[i];
            if ((entry = hv_fetch_ent(hash, name, 0, 0)))
                terms_of(aTHX_ terms, name, HeVAL(entry), 0);
        }
    }
    else {
        AV *list = (AV *)SvRV(data);
        SSize_t top = av_top_index(list);
        if (top % 2 == 0)
            croak("form data reference must have an even number of terms\n");
        for (SSize_t i = 0; i < top; i += 2) {
            SV **name = av_fetch(list, i, 0), **value = av_fetch(list, i + 1, 0);
            terms_of(aTHX_ terms, name ? *name : &PL_sv_undef, value ? *value : &PL_sv_undef, 0);
        }
    }
    for (SSize_t i = 0; i <= av_top_index(terms); i++) {
        if (i)
            sv_catpvs(out, "&");
        sv_catsv(out, *av_fetch(terms, i, 0));
    }
    return out;
}
