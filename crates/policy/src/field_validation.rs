//! Valid names and values of fields (RFC 9110 section 5).
//!
//! ```
//! use haul_policy::field_validation::{is_token, is_value};
//!
//! assert!(is_token(b"X-Own") && !is_token(b"X Own") && !is_token(b""));
//! assert!(is_value(b"caf\xe9, \t1") && !is_value(b"1\r\nX-Other: 2"));
//! ```

/// Returns `true` if the bytes are a token, as field names, methods and authentication schemes must
/// be (RFC 9110 section 5.6.2).
#[must_use]
pub fn is_token(bytes: &[u8]) -> bool {
    !bytes.is_empty() && bytes.iter().all(|&byte| is_tchar(byte))
}

/// Returns `true` if the byte may occur in a token (`tchar`, RFC 9110 §5.6.2).
pub(crate) fn is_tchar(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

/// Returns `true` if the bytes can be a field value: they contain no CR, LF or NUL, which could
/// start another field or request (RFC 9110 section 5.5).
#[must_use]
pub fn is_value(bytes: &[u8]) -> bool {
    !bytes.iter().any(|byte| matches!(byte, b'\r' | b'\n' | 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn field_value_has_no_cr_lf_nul() {
        assert!(is_value(b"") && is_value(b"a\tb\xff"));
        for value in [&b"a\rb"[..], b"\n", b"a\0"] {
            assert!(!is_value(value), "{value:?}");
        }
    }
}
