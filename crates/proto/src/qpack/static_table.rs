//! The static table (RFC 9204, Appendix A).

use crate::field_coding::StaticTableMatch;

/// The entries of the static table in the order of RFC 9204, Appendix A. The first entry has index
/// 0.
#[rustfmt::skip]
pub(super) const ENTRIES: [(&[u8], &[u8]); 99] = [
    (b":authority", b""),
    (b":path", b"/"),
    (b"age", b"0"),
    (b"content-disposition", b""),
    (b"content-length", b"0"),
    (b"cookie", b""),
    (b"date", b""),
    (b"etag", b""),
    (b"if-modified-since", b""),
    (b"if-none-match", b""),
    (b"last-modified", b""),
    (b"link", b""),
    (b"location", b""),
    (b"referer", b""),
    (b"set-cookie", b""),
    (b":method", b"CONNECT"),
    (b":method", b"DELETE"),
    (b":method", b"GET"),
    (b":method", b"HEAD"),
    (b":method", b"OPTIONS"),
    (b":method", b"POST"),
    (b":method", b"PUT"),
    (b":scheme", b"http"),
    (b":scheme", b"https"),
    (b":status", b"103"),
    (b":status", b"200"),
    (b":status", b"304"),
    (b":status", b"404"),
    (b":status", b"503"),
    (b"accept", b"*/*"),
    (b"accept", b"application/dns-message"),
    (b"accept-encoding", b"gzip, deflate, br"),
    (b"accept-ranges", b"bytes"),
    (b"access-control-allow-headers", b"cache-control"),
    (b"access-control-allow-headers", b"content-type"),
    (b"access-control-allow-origin", b"*"),
    (b"cache-control", b"max-age=0"),
    (b"cache-control", b"max-age=2592000"),
    (b"cache-control", b"max-age=604800"),
    (b"cache-control", b"no-cache"),
    (b"cache-control", b"no-store"),
    (b"cache-control", b"public, max-age=31536000"),
    (b"content-encoding", b"br"),
    (b"content-encoding", b"gzip"),
    (b"content-type", b"application/dns-message"),
    (b"content-type", b"application/javascript"),
    (b"content-type", b"application/json"),
    (b"content-type", b"application/x-www-form-urlencoded"),
    (b"content-type", b"image/gif"),
    (b"content-type", b"image/jpeg"),
    (b"content-type", b"image/png"),
    (b"content-type", b"text/css"),
    (b"content-type", b"text/html; charset=utf-8"),
    (b"content-type", b"text/plain"),
    (b"content-type", b"text/plain;charset=utf-8"),
    (b"range", b"bytes=0-"),
    (b"strict-transport-security", b"max-age=31536000"),
    (b"strict-transport-security", b"max-age=31536000; includesubdomains"),
    (b"strict-transport-security", b"max-age=31536000; includesubdomains; preload"),
    (b"vary", b"accept-encoding"),
    (b"vary", b"origin"),
    (b"x-content-type-options", b"nosniff"),
    (b"x-xss-protection", b"1; mode=block"),
    (b":status", b"100"),
    (b":status", b"204"),
    (b":status", b"206"),
    (b":status", b"302"),
    (b":status", b"400"),
    (b":status", b"403"),
    (b":status", b"421"),
    (b":status", b"425"),
    (b":status", b"500"),
    (b"accept-language", b""),
    (b"access-control-allow-credentials", b"FALSE"),
    (b"access-control-allow-credentials", b"TRUE"),
    (b"access-control-allow-headers", b"*"),
    (b"access-control-allow-methods", b"get"),
    (b"access-control-allow-methods", b"get, post, options"),
    (b"access-control-allow-methods", b"options"),
    (b"access-control-expose-headers", b"content-length"),
    (b"access-control-request-headers", b"content-type"),
    (b"access-control-request-method", b"get"),
    (b"access-control-request-method", b"post"),
    (b"alt-svc", b"clear"),
    (b"authorization", b""),
    (b"content-security-policy", b"script-src 'none'; object-src 'none'; base-uri 'none'"),
    (b"early-data", b"1"),
    (b"expect-ct", b""),
    (b"forwarded", b""),
    (b"if-range", b""),
    (b"origin", b""),
    (b"purpose", b"prefetch"),
    (b"server", b""),
    (b"timing-allow-origin", b"*"),
    (b"upgrade-insecure-requests", b"1"),
    (b"user-agent", b""),
    (b"x-forwarded-for", b""),
    (b"x-frame-options", b"deny"),
    (b"x-frame-options", b"sameorigin"),
];

/// The length in bytes of the longest name in the static table.
const LONGEST_NAME: usize = 32;

/// The entries of the static table, arranged by the lengths of their names.
struct EntriesByNameLength {
    /// The indices of the entries by rising name length. Entries with names of the same length are
    /// in the order of the table.
    indices: [u8; ENTRIES.len()],
    /// For each name length, the position in `indices` of the first entry with that length.
    first: [u8; LONGEST_NAME + 2],
}

static BY_LENGTH: EntriesByNameLength = by_length();

const fn by_length() -> EntriesByNameLength {
    let mut arranged = EntriesByNameLength { indices: [0; ENTRIES.len()], first: [0; LONGEST_NAME + 2] };
    let (mut length, mut place) = (0, 0);
    while length <= LONGEST_NAME {
        arranged.first[length] = place as u8;
        let mut index = 0;
        while index < ENTRIES.len() {
            if ENTRIES[index].0.len() == length {
                arranged.indices[place] = index as u8;
                place += 1;
            }
            index += 1;
        }
        length += 1;
    }
    arranged.first[LONGEST_NAME + 1] = place as u8;
    arranged
}

/// Looks up a field by name and value in the static table. Only entries whose names have the same
/// length are compared.
pub(super) fn find(name: &[u8], value: &[u8]) -> StaticTableMatch {
    let mut found = StaticTableMatch::Nothing;
    let length = name.len();
    if length > LONGEST_NAME {
        return found;
    }
    let places = usize::from(BY_LENGTH.first[length])..usize::from(BY_LENGTH.first[length + 1]);
    for &index in &BY_LENGTH.indices[places] {
        let (known, known_value) = ENTRIES[usize::from(index)];
        if known != name {
            continue;
        }
        if known_value == value {
            return StaticTableMatch::Field(u32::from(index));
        }
        if found == StaticTableMatch::Nothing {
            found = StaticTableMatch::Name(u32::from(index));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn static_qpack_entries_are_grouped_by_name_length() {
        let arranged = by_length();
        for length in 0..=LONGEST_NAME {
            let group = &arranged.indices[arranged.first[length].into()..arranged.first[length + 1].into()];
            let expected = (0..99).filter(|&index| ENTRIES[usize::from(index)].0.len() == length);
            assert!(group.iter().copied().eq(expected), "{length}");
        }
        assert_eq!(arranged.first[LONGEST_NAME + 1], 99, "no name is longer");
    }

    #[test]
    fn static_qpack_names_and_fields_are_found() {
        assert_eq!(find(b":method", b"POST"), StaticTableMatch::Field(20));
        assert_eq!(find(b":method", b"PATCH"), StaticTableMatch::Name(15));
        assert_eq!(find(b":authority", b"h"), StaticTableMatch::Name(0));
        assert_eq!(find(b"x-frame-options", b"sameorigin"), StaticTableMatch::Field(98));
        assert_eq!(find(b"x-other", b""), StaticTableMatch::Nothing);
        assert_eq!(find(&[b'x'; 99], b""), StaticTableMatch::Nothing);
        for (place, (name, value)) in ENTRIES.iter().enumerate() {
            assert_eq!(find(name, value), StaticTableMatch::Field(place as u32));
        }
    }
}
