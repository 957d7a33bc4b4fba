//! The static table (RFC 7541, Appendix A).

use crate::field_coding::StaticTableMatch;

/// The entries of the static table in the order of RFC 7541, Appendix A. The first entry has index
/// 1.
pub(super) const ENTRIES: [(&[u8], &[u8]); 61] = [
    (b":authority", b""),
    (b":method", b"GET"),
    (b":method", b"POST"),
    (b":path", b"/"),
    (b":path", b"/index.html"),
    (b":scheme", b"http"),
    (b":scheme", b"https"),
    (b":status", b"200"),
    (b":status", b"204"),
    (b":status", b"206"),
    (b":status", b"304"),
    (b":status", b"400"),
    (b":status", b"404"),
    (b":status", b"500"),
    (b"accept-charset", b""),
    (b"accept-encoding", b"gzip, deflate"),
    (b"accept-language", b""),
    (b"accept-ranges", b""),
    (b"accept", b""),
    (b"access-control-allow-origin", b""),
    (b"age", b""),
    (b"allow", b""),
    (b"authorization", b""),
    (b"cache-control", b""),
    (b"content-disposition", b""),
    (b"content-encoding", b""),
    (b"content-language", b""),
    (b"content-length", b""),
    (b"content-location", b""),
    (b"content-range", b""),
    (b"content-type", b""),
    (b"cookie", b""),
    (b"date", b""),
    (b"etag", b""),
    (b"expect", b""),
    (b"expires", b""),
    (b"from", b""),
    (b"host", b""),
    (b"if-match", b""),
    (b"if-modified-since", b""),
    (b"if-none-match", b""),
    (b"if-range", b""),
    (b"if-unmodified-since", b""),
    (b"last-modified", b""),
    (b"link", b""),
    (b"location", b""),
    (b"max-forwards", b""),
    (b"proxy-authenticate", b""),
    (b"proxy-authorization", b""),
    (b"range", b""),
    (b"referer", b""),
    (b"refresh", b""),
    (b"retry-after", b""),
    (b"server", b""),
    (b"set-cookie", b""),
    (b"strict-transport-security", b""),
    (b"transfer-encoding", b""),
    (b"user-agent", b""),
    (b"vary", b""),
    (b"via", b""),
    (b"www-authenticate", b""),
];

/// The number of entries for pseudo-fields (such as `:path`), which come first in the static table.
const PSEUDO_FIELD_ENTRIES: usize = 14;

/// Looks up a field in the static table. Few names have equal lengths, so that the search compares
/// little more than lengths; computing a hash of the name would cost as much.
pub(super) fn find(name: &[u8], value: &[u8]) -> StaticTableMatch {
    let mut found = StaticTableMatch::Nothing;
    let part = if name.first() == Some(&b':') { 0..PSEUDO_FIELD_ENTRIES } else { PSEUDO_FIELD_ENTRIES..ENTRIES.len() };
    for (place, (known, known_value)) in part.clone().zip(&ENTRIES[part]) {
        if known.len() != name.len() || *known != name {
            continue;
        }
        let index = place as u32 + 1;
        if *known_value == value {
            return StaticTableMatch::Field(index);
        }
        if found == StaticTableMatch::Nothing {
            found = StaticTableMatch::Name(index);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn static_hpack_names_and_fields_are_found() {
        assert_eq!(find(b":method", b"POST"), StaticTableMatch::Field(3));
        assert_eq!(find(b":method", b"PUT"), StaticTableMatch::Name(2));
        assert_eq!(find(b":path", b"/x"), StaticTableMatch::Name(4));
        assert_eq!(find(b"www-authenticate", b""), StaticTableMatch::Field(61));
        assert_eq!(find(b"www-authenticate", b"x"), StaticTableMatch::Name(61));
        assert_eq!(find(b"x-other", b""), StaticTableMatch::Nothing);
        for (place, (name, value)) in ENTRIES.iter().enumerate() {
            assert_eq!(find(name, value), StaticTableMatch::Field(place as u32 + 1));
        }
    }
}
