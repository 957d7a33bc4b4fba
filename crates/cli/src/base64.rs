//! Base64 (RFC 4648 section 4), for pinned keys, form parts, and the functions of `--variable`.
//!
//! ```
//! use haul_cli::base64::{decode, encode};
//!
//! assert_eq!(encode(b"ab"), "YWI=");
//! assert_eq!(decode("YWI=").as_deref(), Some(&b"ab"[..]));
//! assert_eq!(decode("YWI"), None);
//! ```

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// Encodes bytes as Base64 with padding.
pub fn encode(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

/// Decodes a padded Base64 text. Returns `None` if the padding is missing or a character is
/// invalid.
pub fn decode(text: &str) -> Option<Vec<u8>> {
    STANDARD.decode(text).ok()
}
