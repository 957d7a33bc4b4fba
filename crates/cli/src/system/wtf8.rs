//! Decodes WTF-8, in which std returns the bytes of texts that are no Unicode on Windows.

/// Returns the UTF-16 of a text in WTF-8. Bytes that are no WTF-8 become U+FFFD.
pub(super) fn to_utf16(bytes: &[u8]) -> Vec<u16> {
    let mut wide = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while !rest.is_empty() {
        let valid = match std::str::from_utf8(rest) {
            Ok(text) => text,
            Err(error) => std::str::from_utf8(&rest[..error.valid_up_to()]).unwrap_or_default(),
        };
        wide.extend(valid.encode_utf16());
        rest = &rest[valid.len()..];
        match *rest {
            // U+D800 to U+DFFF.
            [0xed, second @ 0xa0..=0xbf, third @ 0x80..=0xbf, ..] => {
                wide.push(0xd000 | u16::from(second & 0x3f) << 6 | u16::from(third & 0x3f));
                rest = &rest[3..];
            }
            [_, ..] => {
                wide.push(0xfffd);
                rest = &rest[1..];
            }
            [] => {}
        }
    }
    wide
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wtf8_keeps_lone_surrogates() {
        assert_eq!(to_utf16("a\u{e9}\u{1f600}".as_bytes()), "a\u{e9}\u{1f600}".encode_utf16().collect::<Vec<_>>());
        assert_eq!(to_utf16(b"a\xed\xa0\x80b"), [0x61, 0xd800, 0x62]);
        assert_eq!(to_utf16(b"\xed\xbf\xbf"), [0xdfff]);
        assert!(to_utf16(b"").is_empty());
    }

    #[test]
    fn invalid_bytes_become_replacement_characters() {
        assert_eq!(to_utf16(b"a\xffb\xed"), [0x61, 0xfffd, 0x62, 0xfffd]);
        assert_eq!(to_utf16(b"\xed\xa0"), [0xfffd, 0xfffd]);
    }
}
