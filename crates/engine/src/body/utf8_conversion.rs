//! Conversion of a body to UTF-8 according to its charset.
//!
//! The charset comes from a byte order mark, else from the field `Content-Type`, else from the
//! body: an XML declaration or a `<meta>` in its first [`PRESCAN_BYTES`] bytes, if the body may be
//! markup. JSON and `text/event-stream` are UTF-8 (RFC 8259 section 8.1, WHATWG HTML). Any other
//! body without a declared charset is UTF-8 if it is valid UTF-8, and windows-1252 otherwise, as in
//! browsers (<https://encoding.spec.whatwg.org/>). To decide, the converter buffers the bytes from
//! the first non-ASCII byte on, until the body ends or [`MAX_UNDECIDED_BYTES`] of them are valid
//! UTF-8. Later invalid bytes are each converted from windows-1252.
//!
//! The result does not depend on how the network splits the body: conversion of HTML begins only
//! with [`PRESCAN_BYTES`] bytes, a declaration or the end of the body.
//!
//! Valid UTF-8 is passed on without a copy. Invalid bytes of a body with a declared charset become
//! U+FFFD. UTF-32 is not supported, as in browsers.

use encoding_rs::{Decoder, DecoderResult, Encoding, UTF_8, WINDOWS_1252};

use super::charset_prescan::{CharsetDeclarationRule, PRESCAN_BYTES, encoding_by_label, find_declared_encoding};
use crate::Result;
use crate::response::charset;

/// The number of valid UTF-8 bytes after which a body without a declared charset counts as UTF-8.
/// Until then, the bytes from the first non-ASCII byte on are kept, since an invalid byte would
/// mean another charset.
const MAX_UNDECIDED_BYTES: usize = 256 << 10;
/// The size in bytes of the pieces in which decoded text is passed to the callback.
const DECODED_PIECE: usize = 8 << 10;

/// The callback of a [`Utf8ConvertingReader`], which receives the converted text in pieces, and the
/// encoding from which it was converted. No piece ends within a character.
type OnText<'f> = dyn FnMut(&[u8], &'static Encoding) -> Result<()> + 'f;

/// A reader that converts one body to UTF-8.
pub(crate) struct Utf8ConvertingReader {
    declared: Option<&'static Encoding>,
    declaration_rule: CharsetDeclarationRule,
    state: CharsetState,
    /// Received bytes that cannot be converted before further bytes arrive, such as the beginning
    /// of a character.
    held: Vec<u8>,
}

/// The state of the detection of a body's charset.
enum CharsetState {
    /// The charset is not known, because too few bytes of the body have arrived.
    Opening,
    /// The body declares no charset. The reader's field `held` contains the bytes from the first
    /// non-ASCII byte on, of which the first `valid` bytes are valid UTF-8. The ASCII bytes before
    /// them were already passed on.
    Undeclared { valid: usize },
    /// The charset is UTF-8. `is_declared` is true if the body or its `Content-Type` declares it.
    /// Invalid bytes then become U+FFFD. Otherwise they are converted from windows-1252.
    Utf8 { is_declared: bool },
    /// A charset other than UTF-8, with its decoder.
    Other(Box<Decoder>),
}

impl Utf8ConvertingReader {
    /// Makes the converter for a body. `content_type` is the value of its `Content-Type` field.
    pub(crate) fn new(content_type: Option<&[u8]>) -> Self {
        let media_type = media_type(content_type);
        let declared = encoding_in_content_type(content_type);
        let declaration_rule = CharsetDeclarationRule::for_media_type(&media_type);
        Self { declared, declaration_rule, state: CharsetState::Opening, held: Vec::new() }
    }

    /// Makes UTF-8 the default: the body is read as UTF-8 if neither a byte order mark nor the
    /// field `Content-Type` declares a charset. This is used for JSON, even if its media type is
    /// not a JSON type.
    #[cfg(any(test, feature = "select"))]
    #[must_use]
    pub(crate) fn with_utf8_default(mut self) -> Self {
        self.declared.get_or_insert(UTF_8);
        self
    }

    /// Converts the next bytes of the body, `piece`, and passes the text to `on_text`.
    ///
    /// # Errors
    /// The error of `on_text`.
    pub(crate) fn push(&mut self, piece: &[u8], on_text: &mut OnText<'_>) -> Result<()> {
        if !matches!(self.state, CharsetState::Opening) {
            return self.read(piece, on_text);
        }
        if self.held.is_empty() && self.determines_charset(piece) {
            self.determine_charset(piece);
            return self.read(piece, on_text);
        }
        self.held.extend_from_slice(piece);
        if !self.determines_charset(&self.held) {
            return Ok(());
        }
        let held = std::mem::take(&mut self.held);
        self.determine_charset(&held);
        self.read(&held, on_text)
    }

    /// Ends the body. Converts the bytes that were kept, and passes the text to `on_text`.
    ///
    /// # Errors
    /// The error of `on_text`.
    pub(crate) fn finish(&mut self, on_text: &mut OnText<'_>) -> Result<()> {
        if matches!(self.state, CharsetState::Opening) {
            let held = std::mem::take(&mut self.held);
            self.determine_charset(&held);
            self.read(&held, on_text)?;
        }
        let held = std::mem::take(&mut self.held);
        match &mut self.state {
            CharsetState::Opening => Ok(()),
            CharsetState::Undeclared { valid } if *valid == held.len() => pass_text(&held, UTF_8, on_text),
            CharsetState::Undeclared { .. } => {
                decode(&mut WINDOWS_1252.new_decoder_without_bom_handling(), &held, true, on_text)
            }
            CharsetState::Utf8 { is_declared } => convert_invalid_utf8(&held, *is_declared, on_text),
            CharsetState::Other(decoder) => decode(decoder, &held, true, on_text),
        }
    }

    /// Returns true if the charset can be determined from `start`, the first bytes of the body.
    /// More bytes would not change the result.
    fn determines_charset(&self, start: &[u8]) -> bool {
        let may_be_mark = [&b"\xef\xbb\xbf"[..], b"\xff\xfe", b"\xfe\xff"].iter().any(|mark| mark.starts_with(start));
        if may_be_mark {
            return false;
        }
        let may_declare = self.declared.is_none()
            && encoding_by_byte_order_mark(start).is_none()
            && self.declaration_rule.is_in(start);
        !may_declare || start.len() >= PRESCAN_BYTES || find_declared_encoding(start).is_some()
    }

    /// Determines the charset from `start`, the beginning of the body, and stores it in the reader.
    fn determine_charset(&mut self, start: &[u8]) {
        self.state = match choose_encoding(start, self.declared, self.declaration_rule) {
            None => CharsetState::Undeclared { valid: 0 },
            Some(encoding) if encoding == UTF_8 && !start.starts_with(b"\xef\xbb\xbf") => {
                CharsetState::Utf8 { is_declared: true }
            }
            // The decoder removes the byte order mark.
            Some(encoding) => CharsetState::Other(Box::new(encoding.new_decoder())),
        };
    }

    fn read(&mut self, piece: &[u8], on_text: &mut OnText<'_>) -> Result<()> {
        match &mut self.state {
            CharsetState::Opening => Ok(()),
            CharsetState::Other(decoder) => decode(decoder, piece, false, on_text),
            CharsetState::Utf8 { is_declared } => {
                let is_declared = *is_declared;
                read_utf8(&mut self.held, piece, is_declared, on_text)
            }
            CharsetState::Undeclared { valid } => {
                let mut rest = piece;
                if self.held.is_empty() {
                    let ascii = Encoding::ascii_valid_up_to(piece);
                    pass_text(&piece[..ascii], UTF_8, on_text)?;
                    rest = &piece[ascii..];
                }
                self.held.extend_from_slice(rest);
                let checked = std::str::from_utf8(&self.held[*valid..]);
                let more = checked.as_ref().map_or_else(|error| error.valid_up_to(), |text| text.len());
                let is_error = checked.is_err_and(|error| error.error_len().is_some());
                *valid += more;
                // Only the first [`MAX_UNDECIDED_BYTES`] bytes decide, wherever pieces end.
                let is_invalid = is_error && *valid < MAX_UNDECIDED_BYTES;
                if is_invalid {
                    let mut decoder = Box::new(WINDOWS_1252.new_decoder_without_bom_handling());
                    let held = std::mem::take(&mut self.held);
                    let outcome = decode(&mut decoder, &held, false, on_text);
                    self.state = CharsetState::Other(decoder);
                    return outcome;
                }
                if *valid >= MAX_UNDECIDED_BYTES {
                    let valid = *valid;
                    let held = std::mem::take(&mut self.held);
                    self.state = CharsetState::Utf8 { is_declared: false };
                    pass_text(&held[..valid], UTF_8, on_text)?;
                    return read_utf8(&mut self.held, &held[valid..], false, on_text);
                }
                Ok(())
            }
        }
    }
}

/// Passes the UTF-8 text in `piece` on to `on_text`. If `piece` ends within a character, keeps the
/// bytes of that character in `held`. Invalid bytes are replaced if the charset is declared
/// (`is_declared`), and are otherwise decoded as windows-1252.
fn read_utf8(held: &mut Vec<u8>, piece: &[u8], is_declared: bool, on_text: &mut OnText<'_>) -> Result<()> {
    let mut rest = piece;
    // Completes the character that the last piece ended in.
    while !held.is_empty() && !rest.is_empty() {
        held.push(rest[0]);
        rest = &rest[1..];
        match std::str::from_utf8(held) {
            Ok(_) => {
                on_text(held, UTF_8)?;
                held.clear();
            }
            Err(error) if error.error_len().is_some() => {
                // The invalid byte may begin another character.
                let last = held.pop();
                convert_invalid_utf8(held, is_declared, on_text)?;
                held.clear();
                rest = last.map_or(rest, |_| &piece[piece.len() - rest.len() - 1..]);
            }
            Err(_) => {}
        }
    }
    loop {
        let error = match std::str::from_utf8(rest) {
            Ok(_) => return pass_text(rest, UTF_8, on_text),
            Err(error) => error,
        };
        let (valid, after) = rest.split_at(error.valid_up_to());
        pass_text(valid, UTF_8, on_text)?;
        let Some(length) = error.error_len() else {
            held.extend_from_slice(after);
            return Ok(());
        };
        convert_invalid_utf8(&after[..length], is_declared, on_text)?;
        rest = &after[length..];
    }
}

/// Passes a replacement for invalid bytes to `on_text`. If the charset is declared, this is U+FFFD.
/// Otherwise the bytes are decoded as windows-1252.
fn convert_invalid_utf8(bytes: &[u8], is_declared: bool, on_text: &mut OnText<'_>) -> Result<()> {
    if bytes.is_empty() {
        return Ok(());
    }
    if is_declared {
        return on_text("\u{fffd}".as_bytes(), UTF_8);
    }
    let (text, _) = WINDOWS_1252.decode_without_bom_handling(bytes);
    on_text(text.as_bytes(), UTF_8)
}

fn pass_text(text: &[u8], encoding: &'static Encoding, on_text: &mut OnText<'_>) -> Result<()> {
    if text.is_empty() { Ok(()) } else { on_text(text, encoding) }
}

fn decode(decoder: &mut Decoder, mut bytes: &[u8], last: bool, on_text: &mut OnText<'_>) -> Result<()> {
    let mut text = [0; DECODED_PIECE];
    loop {
        let (result, read, mut written) =
            decoder.decode_to_utf8_without_replacement(bytes, &mut text[..DECODED_PIECE - 3], last);
        bytes = &bytes[read..];
        if let DecoderResult::Malformed(..) = result {
            text[written..written + 3].copy_from_slice("\u{fffd}".as_bytes());
            written += 3;
        }
        pass_text(&text[..written], decoder.encoding(), on_text)?;
        if result == DecoderResult::InputEmpty {
            return Ok(());
        }
    }
}

/// Returns the media type of a `Content-Type` value in lower case, without its parameters.
pub(super) fn media_type(content_type: Option<&[u8]>) -> Vec<u8> {
    let media_type = content_type.unwrap_or_default().split(|&byte| byte == b';').next().unwrap_or_default();
    media_type.trim_ascii().to_ascii_lowercase()
}

/// Returns true if bodies of this media type are UTF-8 without a declaration: all JSON types, and
/// event streams.
fn is_always_utf8(media_type: &[u8]) -> bool {
    let subtype = media_type.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
    memchr::memmem::find(subtype, b"json").is_some() || subtype == b"event-stream"
}

/// Returns the encoding that the `charset` parameter of a `Content-Type` value names. Without this
/// parameter, returns UTF-8 for media types that are always UTF-8. Returns `None` for other media
/// types, and for charsets that are not supported.
pub(super) fn encoding_in_content_type(content_type: Option<&[u8]>) -> Option<&'static Encoding> {
    let named = content_type.and_then(charset).and_then(|label| encoding_by_label(label.as_bytes()));
    named.or_else(|| is_always_utf8(&media_type(content_type)).then_some(UTF_8))
}

/// Returns the encoding that a body declares. `start` is the beginning of the body. A byte order
/// mark comes first, then `declared`, the encoding from `Content-Type`. The last choice is a
/// declaration in the first [`PRESCAN_BYTES`] bytes, such as a `<meta>`, if `declaration_rule` lets
/// bodies of this media type contain one. Returns `None` if none of the three names an encoding.
pub(super) fn choose_encoding(
    start: &[u8],
    declared: Option<&'static Encoding>,
    declaration_rule: CharsetDeclarationRule,
) -> Option<&'static Encoding> {
    let in_page = || declaration_rule.is_in(start).then(|| find_declared_encoding(start)).flatten();
    encoding_by_byte_order_mark(start).or(declared).or_else(in_page)
}

/// Returns the encoding that a byte order mark at the beginning of `start` indicates; `None` if
/// there is no byte order mark.
fn encoding_by_byte_order_mark(start: &[u8]) -> Option<&'static Encoding> {
    Encoding::for_bom(start).map(|(encoding, _)| encoding)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Converts a body several times, split into pieces of every size, and checks that the result
    /// is always the same. Returns the converted text.
    fn read(content_type: Option<&str>, body: &[u8]) -> Vec<u8> {
        let mut texts = Vec::new();
        for size in [1, 2, 3, 7, body.len().max(1)] {
            let mut reader = Utf8ConvertingReader::new(content_type.map(str::as_bytes));
            let mut text = Vec::new();
            for piece in body.chunks(size) {
                reader
                    .push(piece, &mut |more, _| {
                        text.extend_from_slice(more);
                        Ok(())
                    })
                    .unwrap();
            }
            reader
                .finish(&mut |more, _| {
                    text.extend_from_slice(more);
                    Ok(())
                })
                .unwrap();
            texts.push(text);
        }
        assert!(texts.iter().all(|text| *text == texts[0]), "{:?}", String::from_utf8_lossy(body));
        texts.swap_remove(0)
    }

    #[track_caller]
    fn reads(content_type: Option<&str>, body: &[u8], expected: &str) {
        let text = read(content_type, body);
        assert_eq!(String::from_utf8_lossy(&text), expected, "{content_type:?} {:?}", String::from_utf8_lossy(body));
        assert!(std::str::from_utf8(&text).is_ok());
    }

    #[test]
    fn byte_order_mark_overrides_the_content_type_charset() {
        reads(Some("text/html; charset=iso-8859-1"), b"caf\xe9 \x80", "caf\u{e9} \u{20ac}");
        reads(Some("text/plain; charset=Shift_JIS"), b"\x93\xfa\x96\x7b", "\u{65e5}\u{672c}");
        reads(Some("text/plain; charset=utf-16le"), b"a\0\xe9\0", "a\u{e9}");
        reads(Some("text/plain; charset=latin1"), b"\xef\xbb\xbfcaf\xc3\xa9", "caf\u{e9}");
        reads(None, b"\xff\xfea\0\xe9\0", "a\u{e9}");
        reads(None, b"\xfe\xff\0a\0\xe9", "a\u{e9}");
        reads(Some("text/html; charset=latin1"), b"<meta charset=utf-8>\xe9", "<meta charset=utf-8>\u{e9}");
    }

    #[test]
    fn html_page_declares_its_charset_in_meta() {
        for meta in [
            "<meta charset=\"koi8-r\">",
            "<META CharSet = koi8-r >",
            "<meta charset=koi8-r>",
            "<!-- <meta charset=utf-8> --><meta name=x><meta http-equiv=\"Content-Type\" content='text/html; charset=koi8-r'>",
            "<?xml version='1.0' encoding='koi8-r'?>",
        ] {
            let body = [meta.as_bytes(), b"\xc1"].concat();
            reads(Some("text/html"), &body, &format!("{meta}\u{430}"));
            reads(None, &body, &format!("{meta}\u{430}"));
            // A charset that plain text contains does not count.
            reads(Some("text/plain"), &body, &format!("{meta}\u{c1}"));
        }
        reads(Some("text/html"), b"<meta charset=utf-16>\xc3\xa9", "<meta charset=utf-16>\u{e9}");
        let late = [b" ".repeat(PRESCAN_BYTES), b"<meta charset=koi8-r>\xc1".to_vec()].concat();
        assert!(read(Some("text/html"), &late).ends_with("\u{c1}".as_bytes()));
    }

    #[test]
    fn page_without_charset_is_utf8_or_windows_1252() {
        reads(None, b"", "");
        reads(None, "caf\u{e9} \u{20ac}".as_bytes(), "caf\u{e9} \u{20ac}");
        reads(Some("text/html"), b"caf\xe9", "caf\u{e9}");
        reads(Some("application/x; charset=nonesuch"), b"\xc3\xa9 \x93x\x94", "\u{c3}\u{a9} \u{201c}x\u{201d}");
        // The body ends within what could be a character.
        reads(None, b"a\xe2\x82", "a\u{e2}\u{201a}");
        let long = ["\u{e9}".repeat(MAX_UNDECIDED_BYTES).as_bytes(), b"\xe9!"].concat();
        let mut reader = Utf8ConvertingReader::new(None);
        let mut text = Vec::new();
        reader
            .push(&long, &mut |more, _| {
                text.extend_from_slice(more);
                Ok(())
            })
            .unwrap();
        assert!(
            text.ends_with("\u{e9}\u{e9}!".as_bytes()) && text.len() >= MAX_UNDECIDED_BYTES,
            "it is not held for ever"
        );
        reader
            .push(b"\xe9?", &mut |more, _| {
                text.extend_from_slice(more);
                Ok(())
            })
            .unwrap();
        reader
            .finish(&mut |more, _| {
                text.extend_from_slice(more);
                Ok(())
            })
            .unwrap();
        assert!(text.ends_with("\u{e9}!\u{e9}?".as_bytes()), "{:?}", String::from_utf8_lossy(&text[text.len() - 9..]));
    }

    #[test]
    fn invalid_bytes_of_declared_text_are_replaced() {
        reads(Some("text/plain; charset=utf-8"), b"a\xffb\xe2\x82c\xe2\x82", "a\u{fffd}b\u{fffd}c\u{fffd}");
        reads(Some("text/plain; charset=utf-8"), "\u{1f600}\u{e9}".as_bytes(), "\u{1f600}\u{e9}");
        reads(Some("text/plain; charset=euc-jp"), b"a\xff", "a\u{fffd}");
    }

    #[test]
    fn charset_does_not_depend_on_packet_boundaries() {
        let page = b"Hi <meta charset=koi8-r><p>\xcf</p>";
        reads(Some("text/html"), page, "Hi <meta charset=koi8-r><p>\u{43e}</p>");
        // Without a media type, only a page that begins with a tag is markup.
        reads(None, page, "Hi <meta charset=koi8-r><p>\u{cf}</p>");
        reads(None, b" \n<p><meta charset=koi8-r>\xcf", " \n<p><meta charset=koi8-r>\u{43e}");
        let late = [b"Hi <p>", &b" ".repeat(PRESCAN_BYTES - 27)[..], b"<meta charset=koi8-r>\xcf"].concat();
        assert!(read(Some("text/html"), &late).ends_with("\u{43e}".as_bytes()));
        let too_late = [b" ", &late[..]].concat();
        assert!(read(Some("text/html"), &too_late).ends_with("\u{cf}".as_bytes()));
        let unknown = b"<meta charset=nonesuch><meta charset=koi8-r>\xcf";
        reads(Some("text/html"), unknown, "<meta charset=nonesuch><meta charset=koi8-r>\u{43e}");
    }

    #[test]
    fn charset_in_a_meta_description_is_ignored() {
        let page = "<meta name=description content='how to set charset=koi8-r'><meta charset=utf-8>\u{e9}";
        reads(Some("text/html"), page.as_bytes(), page);
        let page = "<metadata charset=koi8-r>\u{e9}";
        reads(Some("text/html"), page.as_bytes(), page);
    }

    #[test]
    fn json_lines_are_converted_as_they_arrive() {
        let line = "{\"n\":\"caf\u{e9}\"}\n".as_bytes();
        for content_type in [
            "application/json",
            "application/x-ndjson",
            "application/activity+json; q=1",
            "application/json-seq",
            "text/event-stream",
        ] {
            let mut reader = Utf8ConvertingReader::new(Some(content_type.as_bytes()));
            assert_eq!(first_text(&mut reader, line), line, "{content_type}");
            reads(Some(content_type), b"caf\xe9", "caf\u{fffd}");
        }
        let mut reader = Utf8ConvertingReader::new(None).with_utf8_default();
        assert_eq!(first_text(&mut reader, line), line);
        let mut reader = Utf8ConvertingReader::new(Some(b"text/plain; charset=latin1")).with_utf8_default();
        assert_eq!(first_text(&mut reader, b"\xe9"), "\u{e9}".as_bytes());
        reads(Some("application/json"), b"\xff\xfe\"\0\xe9\0\"\0", "\"\u{e9}\"");
    }

    /// Returns the text that `reader` passes on when it gets `piece`.
    fn first_text(reader: &mut Utf8ConvertingReader, piece: &[u8]) -> Vec<u8> {
        let mut text = Vec::new();
        reader
            .push(piece, &mut |more, _| {
                text.extend_from_slice(more);
                Ok(())
            })
            .unwrap();
        text
    }

    #[test]
    fn ascii_text_passes_before_the_body_ends() {
        let mut reader = Utf8ConvertingReader::new(Some(b"text/plain"));
        assert_eq!(first_text(&mut reader, b"id=1 \xc3"), b"id=1 ");
    }

    #[test]
    fn invalid_byte_decides_charset_before_the_body_ends() {
        let mut reader = Utf8ConvertingReader::new(Some(b"text/plain"));
        assert_eq!(first_text(&mut reader, b"caf\xe9 id=1"), "caf\u{e9} id=1".as_bytes());
    }
}
