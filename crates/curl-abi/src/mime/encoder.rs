//! The transfer encodings of form parts (RFC 2045 section 6).

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// The maximum length of a line of encoded content, in characters without the line end (RFC 2045
/// section 6.8).
const LINE: usize = 76;

/// The encoding in which the content of a form part is sent (`Content-Transfer-Encoding`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MimePartEncoding {
    /// `binary`: the content is sent unchanged.
    Binary,
    /// `8bit`: the content is sent unchanged. It may have bytes above 127.
    EightBit,
    /// `7bit`: the content is sent unchanged. It must have no byte above 127.
    SevenBit,
    /// `base64`: the content is sent in Base64, wrapped into lines.
    Base64,
    /// `quoted-printable`: bytes other than printable ASCII are sent as `=XX` (RFC 2045 section
    /// 6.7).
    QuotedPrintable,
}

impl MimePartEncoding {
    /// Returns the encoding with this name, or `None` if no encoding has it.
    pub(crate) fn from_name(name: &[u8]) -> Option<Self> {
        let all = [Self::Binary, Self::EightBit, Self::SevenBit, Self::Base64, Self::QuotedPrintable];
        all.into_iter().find(|encoder| name.eq_ignore_ascii_case(encoder.name().as_bytes()))
    }

    /// Returns the name of the encoding, as in `Content-Transfer-Encoding`.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Binary => "binary",
            Self::EightBit => "8bit",
            Self::SevenBit => "7bit",
            Self::Base64 => "base64",
            Self::QuotedPrintable => "quoted-printable",
        }
    }

    /// Returns true if the encoding does not change the content.
    pub(crate) fn is_identity(self) -> bool {
        matches!(self, Self::Binary | Self::EightBit)
    }

    /// Encodes content. Returns `None` if it cannot be encoded, because it has bytes above 127 and
    /// the encoding is 7bit.
    pub(crate) fn encode(self, content: Vec<u8>) -> Option<Vec<u8>> {
        match self {
            Self::Binary | Self::EightBit => Some(content),
            Self::SevenBit => content.is_ascii().then_some(content),
            Self::Base64 => {
                let text = STANDARD.encode(content).into_bytes();
                Some(text.chunks(LINE).collect::<Vec<_>>().join(&b"\r\n"[..]))
            }
            Self::QuotedPrintable => Some(quoted_printable::encode(content)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_encoder_encodes_or_refuses_content() {
        let encode = |name: &[u8], content: &[u8]| MimePartEncoding::from_name(name).unwrap().encode(content.to_vec());
        assert_eq!(encode(b"BASE64", b"hello").unwrap(), b"aGVsbG8=");
        let long = encode(b"base64", &[0; 100]).unwrap();
        assert!(long.split(|b| *b == b'\n').all(|line| line.len() <= LINE + 1) && long.len() == 138);
        assert_eq!(encode(b"7bit", b"\xff"), None);
        assert_eq!(encode(b"8bit", b"\xff").unwrap(), b"\xff");
        assert_eq!(encode(b"quoted-printable", b"a=b").unwrap(), b"a=3Db");
        assert_eq!(MimePartEncoding::from_name(b"rot13"), None);
    }
}
