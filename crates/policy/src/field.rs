//! Which names and values of header fields can be sent (RFC 9110 section 5).
//!
//! ```
//! use haul_policy::field::{is_token, is_value};
//!
//! assert!(is_token(b"X-Own") && !is_token(b"X Own") && !is_token(b""));
//! assert!(is_value(b"caf\xe9, \t1") && !is_value(b"1\r\nX-Other: 2"));
//! ```

/// Whether these bytes are a token, as names of fields, methods and schemes of authentication are (RFC 9110 section 5.6.2).
#[must_use]
pub fn is_token(bytes: &[u8]) -> bool {
    !bytes.is_empty() && bytes.iter().all(|&byte| is_tchar(byte))
}

/// Whether this byte may be in a token.
pub(crate) fn is_tchar(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

/// Whether these bytes can be a value: CR, LF or NUL could start another field or request (RFC 9110 section 5.5).
#[must_use]
pub fn is_value(bytes: &[u8]) -> bool {
    !bytes.iter().any(|byte| matches!(byte, b'\r' | b'\n' | 0))
}
