//! The value of `;encoder=`: the `Content-Transfer-Encoding` of a part of a form (RFC 2045 section
//! 6). RFC 7578 section 4.7 deprecates this field and few servers decode it, but scripts for curl
//! use it.

/// The encoding in which the content of a form's part is sent (`Content-Transfer-Encoding`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FormPartEncoding {
    /// `binary`: the content stays unchanged.
    Binary,
    /// `8bit`: the content stays unchanged.
    EightBit,
    /// `7bit`: the content stays unchanged, but must be ASCII.
    SevenBit,
    /// `base64`: the content is encoded in Base64, in lines of 76 characters.
    Base64,
    /// `quoted-printable`: characters beyond printable ASCII are encoded as `=XX`.
    QuotedPrintable,
}

impl FormPartEncoding {
    const ALL: [FormPartEncoding; 5] = [
        FormPartEncoding::Binary,
        FormPartEncoding::EightBit,
        FormPartEncoding::SevenBit,
        FormPartEncoding::Base64,
        FormPartEncoding::QuotedPrintable,
    ];

    /// Returns the encoding with this name, ignoring case; `None` for any other name.
    pub fn from_name(name: &[u8]) -> Option<FormPartEncoding> {
        Self::ALL.into_iter().find(|encoder| encoder.name().as_bytes().eq_ignore_ascii_case(name))
    }

    /// Returns the value of the header field `Content-Transfer-Encoding`.
    pub fn name(self) -> &'static str {
        match self {
            FormPartEncoding::Binary => "binary",
            FormPartEncoding::EightBit => "8bit",
            FormPartEncoding::SevenBit => "7bit",
            FormPartEncoding::Base64 => "base64",
            FormPartEncoding::QuotedPrintable => "quoted-printable",
        }
    }

    /// Returns true if the encoding leaves the content unchanged.
    pub fn is_identity(self) -> bool {
        matches!(self, FormPartEncoding::Binary | FormPartEncoding::EightBit)
    }

    /// Encodes the content of a form part. Returns `None` if the encoding is
    /// [`FormPartEncoding::SevenBit`] and the content is not ASCII.
    pub fn encode(self, content: Vec<u8>) -> Option<Vec<u8>> {
        match self {
            FormPartEncoding::Binary | FormPartEncoding::EightBit => Some(content),
            FormPartEncoding::SevenBit => content.is_ascii().then_some(content),
            FormPartEncoding::Base64 => Some(break_into_lines(&content)),
            FormPartEncoding::QuotedPrintable => Some(quoted_printable::encode(content)),
        }
    }
}

/// Encodes the content as Base64 in lines of 76 characters, each of which encodes 57 bytes.
fn break_into_lines(content: &[u8]) -> Vec<u8> {
    let lines: Vec<String> = content.chunks(57).map(crate::base64::encode).collect();
    lines.join("\r\n").into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded(encoder: FormPartEncoding, content: &[u8]) -> String {
        String::from_utf8(encoder.encode(content.to_vec()).expect("it can be encoded")).expect("ASCII")
    }

    #[test]
    fn base64_encoder_breaks_lines_at_76() {
        assert_eq!(encoded(FormPartEncoding::Base64, b""), "");
        assert_eq!(encoded(FormPartEncoding::Base64, &[0; 57]), "A".repeat(76));
        assert_eq!(encoded(FormPartEncoding::Base64, &[0; 58]), "A".repeat(76) + "\r\nAA==");
    }

    #[test]
    fn quoted_printable_encoder_breaks_lines_like_curl() {
        let text = b"a \t\r\nb=\xff\r\rx\n ";
        assert_eq!(encoded(FormPartEncoding::QuotedPrintable, text), "a =09\r\nb=3D=FF=0D=0Dx=0A=20");
        // A line of 76 that ends the content, or is followed by a line end, is not broken.
        let line = "x".repeat(76);
        assert_eq!(encoded(FormPartEncoding::QuotedPrintable, line.as_bytes()), line);
        assert_eq!(
            encoded(FormPartEncoding::QuotedPrintable, (line.clone() + "\r\ny").as_bytes()),
            line.clone() + "\r\ny"
        );
        let broken = "x".repeat(75) + "=\r\nxy";
        assert_eq!(encoded(FormPartEncoding::QuotedPrintable, (line + "y").as_bytes()), broken);
    }

    #[test]
    fn encoder_7bit_refuses_eight_bit_content() {
        assert_eq!(FormPartEncoding::SevenBit.encode(b"a\0b".to_vec()), Some(b"a\0b".to_vec()));
        assert_eq!(FormPartEncoding::SevenBit.encode(b"\x80".to_vec()), None);
        assert_eq!(FormPartEncoding::EightBit.encode(b"\x80".to_vec()), Some(b"\x80".to_vec()));
        assert_eq!(FormPartEncoding::from_name(b"BASE64"), Some(FormPartEncoding::Base64));
        assert_eq!(FormPartEncoding::from_name(b""), None);
    }
}
