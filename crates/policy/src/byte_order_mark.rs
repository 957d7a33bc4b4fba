//! The byte order mark of UTF-8, which some editors write before the first line of a file.
//!
//! ```text
//! EF BB BF "machine h ..."  ──▶  "machine h ..."
//! ```

/// Returns the text without the UTF-8 byte order mark at its beginning, if it has one. A parser
/// that kept the mark would take it for a part of the first word and lose the first entry.
pub(crate) fn without_byte_order_mark(text: &[u8]) -> &[u8] {
    text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text)
}
