//! Conversion of a whole body to text, piece by piece.
//!
//! The charset is determined as for a search in a body: by a byte order mark, else by the field
//! `Content-Type`, else by a declaration in the first 1,024 bytes of markup. A body without a
//! declared charset is read as UTF-8, or as windows-1252 if it is not valid UTF-8 and its media
//! type is markup or `text/*`.
//!
//! ```
//! use haul::body::decoded_text::BodyTextPieces;
//! let mut text = BodyTextPieces::new(b"caf\xe9".to_vec(), Some(b"text/plain; charset=latin1")).unwrap();
//! assert_eq!(text.next_piece().as_deref(), Some("café"));
//! assert_eq!(text.next_piece(), None);
//! assert!(BodyTextPieces::new(b"\xff\xd8\xff".to_vec(), Some(b"image/jpeg")).is_err());
//! ```

use encoding_rs::{Decoder, DecoderResult, Encoding, UTF_8, WINDOWS_1252};

use super::charset_prescan::CharsetDeclarationRule;
use super::utf8_conversion::{choose_encoding, encoding_in_content_type, media_type};

/// The number of bytes of a body that are converted to one piece of text.
const TEXT_PIECE: usize = 64 << 10;

/// The text of a body, as an iterator over its pieces in order.
pub struct BodyTextPieces {
    content: TextOrUndecodedBytes,
    /// The index of the next byte of the content to convert.
    at: usize,
}

enum TextOrUndecodedBytes {
    Utf8(String),
    Other(Vec<u8>, Box<Decoder>),
}

impl std::fmt::Debug for BodyTextPieces {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BodyTextPieces").field("length", &self.len()).field("at", &self.at).finish_non_exhaustive()
    }
}

impl BodyTextPieces {
    /// Makes an iterator over the text of `body`. `content_type` is the value of its `Content-Type`
    /// field, which may name the charset.
    ///
    /// # Errors
    /// The body itself, if it is not valid text in its charset.
    pub fn new(body: Vec<u8>, content_type: Option<&[u8]>) -> Result<Self, Vec<u8>> {
        let media_type = media_type(content_type);
        let declaration_rule = CharsetDeclarationRule::for_media_type(&media_type);
        let encoding = choose_encoding(&body, encoding_in_content_type(content_type), declaration_rule);
        match encoding {
            Some(encoding) if encoding != UTF_8 => Self::in_charset(body, encoding),
            _ => match String::from_utf8(body) {
                Ok(text) => {
                    let at = if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
                    Ok(Self { content: TextOrUndecodedBytes::Utf8(text), at })
                }
                Err(error) => {
                    let is_markup = declaration_rule != CharsetDeclarationRule::Nowhere;
                    let is_text = !media_type.is_empty() && (is_markup || media_type.starts_with(b"text/"));
                    match encoding {
                        None if is_text => Self::in_charset(error.into_bytes(), WINDOWS_1252),
                        _ => Err(error.into_bytes()),
                    }
                }
            },
        }
    }

    fn in_charset(body: Vec<u8>, encoding: &'static Encoding) -> Result<Self, Vec<u8>> {
        let mut decoder = encoding.new_decoder();
        let mut scratch = [0; 8 << 10];
        let mut rest = &body[..];
        loop {
            let (outcome, read, _) = decoder.decode_to_utf8_without_replacement(rest, &mut scratch, true);
            rest = &rest[read..];
            match outcome {
                DecoderResult::InputEmpty => break,
                DecoderResult::OutputFull => {}
                DecoderResult::Malformed(..) => return Err(body),
            }
        }
        Ok(Self { content: TextOrUndecodedBytes::Other(body, Box::new(encoding.new_decoder())), at: 0 })
    }

    /// Returns the length of the original body in bytes. The text may have another length.
    #[must_use]
    pub fn len(&self) -> usize {
        match &self.content {
            TextOrUndecodedBytes::Utf8(text) => text.len(),
            TextOrUndecodedBytes::Other(body, _) => body.len(),
        }
    }

    /// Returns true if the body has no bytes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the next piece of the text, or `None` at its end.
    pub fn next_piece(&mut self) -> Option<std::borrow::Cow<'_, str>> {
        let at = self.at;
        if at >= self.len() {
            return None;
        }
        match &mut self.content {
            TextOrUndecodedBytes::Utf8(text) => {
                let mut end = text.len().min(at + TEXT_PIECE);
                while !text.is_char_boundary(end) {
                    end -= 1;
                }
                self.at = end;
                Some(text[at..end].into())
            }
            TextOrUndecodedBytes::Other(body, decoder) => {
                let end = body.len().min(at + TEXT_PIECE);
                let most = decoder.max_utf8_buffer_length(end - at).unwrap_or(TEXT_PIECE * 3);
                let mut piece = String::with_capacity(most);
                // The bytes are valid, and the string has room for all of them.
                let _ = decoder.decode_to_string(&body[at..end], &mut piece, end == body.len());
                self.at = end;
                Some(piece.into())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(body: &[u8], content_type: &str) -> Option<String> {
        let mut text = BodyTextPieces::new(body.to_vec(), Some(content_type.as_bytes())).ok()?;
        let mut all = String::new();
        while let Some(piece) = text.next_piece() {
            all.push_str(&piece);
        }
        Some(all)
    }

    #[test]
    fn body_text_follows_its_charset() {
        for (body, content_type, expected) in [
            (&b"caf\xc3\xa9"[..], "application/json", Some("café")),
            (b"caf\xe9", "text/html; charset=iso-8859-1", Some("café")),
            (b"\xef\xbb\xbfa", "text/plain", Some("a")),
            (b"\xff\xfea\0", "text/plain", Some("a")),
            (b"<meta charset=windows-1251>\xcf", "text/html", Some("<meta charset=windows-1251>П")),
            (b"caf\xe9", "text/plain", Some("café")),
            (b"caf\xe9", "application/json", None),
            (b"caf\xe9", "text/event-stream", None),
            (b"caf\xe9", "text/html; charset=utf-8", None),
            (b"\xff\xfe\0", "text/plain", None),
            (b"\x82", "text/plain; charset=shift_jis", None),
            (b"\x89PNG\r\n", "image/png", None),
            (b"", "", Some("")),
            (b"a\0b", "", Some("a\0b")),
            (b"\xff", "", None),
        ] {
            assert_eq!(text(body, content_type).as_deref(), expected, "{content_type} {body:?}");
        }
    }

    #[test]
    fn text_pieces_do_not_split_characters() {
        let long: String = "aé漢😀".chars().cycle().take(200_000).collect();
        assert_eq!(text(long.as_bytes(), "text/plain"), Some(long.clone()));
        let utf16: Vec<u8> = long.encode_utf16().flat_map(u16::to_le_bytes).collect();
        assert_eq!(text(&utf16, "text/plain; charset=utf-16le"), Some(long));
    }
}
