//! The framing of multipart/form-data (RFC 7578, RFC 2046 §5.1): the bytes between the parts, and
//! the total length. The contents of files are not copied.
//!
//! ```
//! use haul_policy::multipart::{MultipartBoundary, FormPartContent, FormNameEscape, MultipartLayout, FormPart, MultipartPiece};
//!
//! let parts = [
//!     FormPart::field("who", "me"),
//!     FormPart::file("what", "a \"b\".txt", FormPartContent::Source { index: 0, length: Some(1000) }),
//! ];
//! let layout = MultipartLayout::new(&parts, &MultipartBoundary::new([7; 16]), FormNameEscape::Percent)?;
//! assert!(layout.content_type.starts_with("multipart/form-data; boundary=------------------------"));
//! let [MultipartPiece::Literal(before), MultipartPiece::Source { index: 0, length: Some(1000) }, MultipartPiece::Literal(after)] = &layout.pieces[..]
//! else { panic!("two literals round the file") };
//! assert_eq!(layout.length, Some(before.len() as u64 + 1000 + after.len() as u64));
//! let text = String::from_utf8_lossy(before);
//! assert!(text.contains("Content-Disposition: form-data; name=\"who\"\r\n\r\nme\r\n"));
//! assert!(text.contains("name=\"what\"; filename=\"a %22b%22.txt\"\r\nContent-Type: text/plain\r\n\r\n"));
//! # Ok::<(), haul_policy::multipart::MultipartError>(())
//! ```
//!
//! Left out: reading the contents, and the transfer encodings `base64` and `quoted-printable`,
//! which form servers do not use (RFC 7578 §4.7).

use core::fmt;

/// The way in which quotes in the field names and file names of a form are escaped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FormNameEscape {
    /// `"` becomes `%22`, as in browsers and in curl since 7.81.
    #[default]
    Percent,
    /// `"` becomes `\"`, and `\` becomes `\\`, as with `--form-escape`.
    Backslash,
}

/// The content of one part of a multipart form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FormPartContent {
    /// Bytes in memory.
    Bytes(Vec<u8>),
    /// Content that the caller reads from a source, such as a file. If the length is unknown, so is
    /// the body's length, and the body is sent chunked.
    Source {
        /// The number by which the caller identifies the source of this content. The same number is
        /// in the [`MultipartPiece::Source`] made from this part.
        index: usize,
        /// The length of the content in bytes; `None` if unknown.
        length: Option<u64>,
    },
    /// Several files under one field name, as a nested multipart/mixed: `-F name=@a,b`.
    Mixed(Vec<FormPart>),
}

/// One part of a form: a field or a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FormPart {
    /// The name of the form field; `None` inside a [`FormPartContent::Mixed`].
    pub name: Option<Vec<u8>>,
    /// The file name sent to the server; `None` to send none.
    pub filename: Option<Vec<u8>>,
    /// The media type of the part. `None` omits the Content-Type line, which means text/plain.
    pub content_type: Option<String>,
    /// Further header lines, without line ends. A line named Content-Disposition or Content-Type
    /// replaces the generated one.
    pub headers: Vec<Vec<u8>>,
    /// The content of the part.
    pub content: FormPartContent,
}

impl FormPart {
    /// Creates a plain field, as for `-F name=value` and `--form-string`.
    pub fn field(name: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> FormPart {
        FormPart {
            name: Some(name.as_ref().to_vec()),
            filename: None,
            content_type: None,
            headers: Vec::new(),
            content: FormPartContent::Bytes(value.as_ref().to_vec()),
        }
    }

    /// Creates a part for a file, as for `-F name=@file`. [`content_type_by_extension`] chooses its
    /// media type.
    pub fn file(name: impl AsRef<[u8]>, filename: impl AsRef<[u8]>, content: FormPartContent) -> FormPart {
        FormPart {
            filename: Some(filename.as_ref().to_vec()),
            content_type: Some(content_type_by_extension(filename.as_ref()).to_owned()),
            content,
            ..FormPart::field(name, "")
        }
    }
}

/// Returns the media type for a file name's extension, from curl's short list. For any other
/// extension it is application/octet-stream.
pub fn content_type_by_extension(filename: &[u8]) -> &'static str {
    const TYPES_BY_EXTENSION: &[(&str, &str)] = &[
        (".gif", "image/gif"),
        (".jpg", "image/jpeg"),
        (".jpeg", "image/jpeg"),
        (".png", "image/png"),
        (".svg", "image/svg+xml"),
        (".txt", "text/plain"),
        (".htm", "text/html"),
        (".html", "text/html"),
        (".pdf", "application/pdf"),
        (".xml", "application/xml"),
    ];
    let ends_with = |end: &str| {
        let start = filename.len().checked_sub(end.len());
        start.is_some_and(|start| filename[start..].eq_ignore_ascii_case(end.as_bytes()))
    };
    TYPES_BY_EXTENSION.iter().find(|(end, _)| ends_with(end)).map_or("application/octet-stream", |(_, kind)| kind)
}

/// The delimiter between parts: 24 dashes, then 22 letters and digits that encode 128 bits of
/// entropy. Contents are not searched for the delimiter, since a stream cannot be searched. A
/// collision is less likely than an undetected transmission error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MultipartBoundary(u128);

impl MultipartBoundary {
    /// Makes a boundary from 128 random bits, which must be fresh for each request.
    pub fn new(entropy: [u8; 16]) -> MultipartBoundary {
        MultipartBoundary(u128::from_be_bytes(entropy))
    }

    /// Returns the text of the boundary of the form itself if `number` is 0, otherwise of the
    /// nested multipart/mixed body with this number. All texts have the same length, and no two are
    /// equal.
    fn text(self, number: usize) -> String {
        const DIGITS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
        let mut rest = self.0.wrapping_add(number as u128);
        let mut text = "-".repeat(24);
        for _ in 0..22 {
            text.push(char::from(DIGITS[(rest % 62) as usize]));
            rest /= 62;
        }
        text
    }
}

/// A contiguous part of the body of a form request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MultipartPiece {
    /// Bytes in memory: the delimiters and header lines between contents, or content that is in
    /// memory.
    Literal(Vec<u8>),
    /// The whole content of the caller's source number `index`.
    Source {
        /// The number that the caller gave the source in [`FormPartContent::Source`].
        index: usize,
        /// The length of the source in bytes; `None` if unknown. If it is known, the source must
        /// supply exactly this number of bytes.
        length: Option<u64>,
    },
}

/// The body of a multipart message as a list of pieces: bytes in memory, and sources that the
/// caller reads. Successive bytes in memory are one piece, so that a small form needs a single
/// write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MultipartLayout {
    /// The value of the request's Content-Type field, which contains the boundary.
    pub content_type: String,
    /// The pieces of the request's body, in the order in which to send them.
    pub pieces: Vec<MultipartPiece>,
    /// The body's length in bytes; `None` if the length of a source is unknown.
    pub length: Option<u64>,
}

impl MultipartLayout {
    /// Creates the body of a multipart/form-data request. `escape` is the way in which quotes in
    /// names are escaped.
    pub fn new(
        parts: &[FormPart],
        boundary: &MultipartBoundary,
        escape: FormNameEscape,
    ) -> Result<MultipartLayout, MultipartError> {
        MultipartLayout::with_disposition(parts, boundary, escape, "form-data")
    }

    /// Creates a multipart body whose parts have `Content-Disposition: attachment` instead of
    /// `form-data`. This is for a request whose Content-Type the user has replaced by another
    /// multipart type. curl does the same.
    pub fn with_attachments(
        parts: &[FormPart],
        boundary: &MultipartBoundary,
        escape: FormNameEscape,
    ) -> Result<MultipartLayout, MultipartError> {
        MultipartLayout::with_disposition(parts, boundary, escape, "attachment")
    }

    fn with_disposition(
        parts: &[FormPart],
        boundary: &MultipartBoundary,
        escape: FormNameEscape,
        disposition: &str,
    ) -> Result<MultipartLayout, MultipartError> {
        let mut writer = MultipartWriter { pieces: Vec::new(), boundary: *boundary, nested: 0, escape };
        let delimiter = boundary.text(0);
        writer.push_parts(parts, &delimiter, disposition)?;
        let length = writer.pieces.iter().try_fold(0u64, |sum, piece| match piece {
            MultipartPiece::Literal(bytes) => sum.checked_add(bytes.len() as u64),
            MultipartPiece::Source { length, .. } => sum.checked_add((*length)?),
        });
        let content_type = format!("multipart/form-data; boundary={delimiter}");
        Ok(MultipartLayout { content_type, pieces: writer.pieces, length })
    }
}

struct MultipartWriter {
    pieces: Vec<MultipartPiece>,
    boundary: MultipartBoundary,
    nested: usize,
    escape: FormNameEscape,
}

impl MultipartWriter {
    fn push_literal(&mut self, bytes: &[u8]) {
        match self.pieces.last_mut() {
            Some(MultipartPiece::Literal(last)) => last.extend_from_slice(bytes),
            _ => self.pieces.push(MultipartPiece::Literal(bytes.to_vec())),
        }
    }

    fn push_parts(&mut self, parts: &[FormPart], delimiter: &str, disposition: &str) -> Result<(), MultipartError> {
        for part in parts {
            self.push_literal(format!("--{delimiter}\r\n").as_bytes());
            self.push_part(part, disposition)?;
            self.push_literal(b"\r\n");
        }
        self.push_literal(format!("--{delimiter}--\r\n").as_bytes());
        Ok(())
    }

    fn push_part(&mut self, part: &FormPart, disposition: &str) -> Result<(), MultipartError> {
        let is_line_end = |b: &u8| matches!(b, b'\r' | b'\n' | 0);
        let content_type = part.content_type.as_deref();
        if part.headers.iter().flatten().any(is_line_end)
            || content_type.is_some_and(|t| t.bytes().any(|b| is_line_end(&b)))
        {
            return Err(MultipartError::LineEnd);
        }
        let replaced = |name: &str| {
            let named =
                |line: &Vec<u8>| line.get(..name.len()).is_some_and(|n| n.eq_ignore_ascii_case(name.as_bytes()));
            part.headers.iter().any(|line| named(line) && line.get(name.len()) == Some(&b':'))
        };
        let mut head = Vec::new();
        // A nameless attachment, plain text among others, has no Content-Disposition, as in curl.
        let is_bare = disposition == "attachment" && part.name.is_none() && part.filename.is_none();
        if !is_bare && !replaced("Content-Disposition") {
            head.extend_from_slice(format!("Content-Disposition: {disposition}").as_bytes());
            self.push_parameter(&mut head, "name", part.name.as_deref());
            self.push_parameter(&mut head, "filename", part.filename.as_deref());
            head.extend_from_slice(b"\r\n");
        }
        let mut inner = String::new();
        if matches!(part.content, FormPartContent::Mixed(_)) {
            self.nested += 1;
            inner = self.boundary.text(self.nested);
            let kind = content_type.unwrap_or("multipart/mixed");
            head.extend_from_slice(format!("Content-Type: {kind}; boundary={inner}\r\n").as_bytes());
        } else if let Some(kind) = content_type.filter(|_| !replaced("Content-Type")) {
            head.extend_from_slice(format!("Content-Type: {kind}\r\n").as_bytes());
        }
        for line in &part.headers {
            head.extend_from_slice(line);
            head.extend_from_slice(b"\r\n");
        }
        head.extend_from_slice(b"\r\n");
        self.push_literal(&head);
        match &part.content {
            FormPartContent::Mixed(parts) => self.push_parts(parts, &inner, "attachment")?,
            FormPartContent::Bytes(bytes) => self.push_literal(bytes),
            FormPartContent::Source { index, length } => {
                self.pieces.push(MultipartPiece::Source { index: *index, length: *length })
            }
        }
        Ok(())
    }

    /// Appends `; name="value"`. CR, LF and NUL are always percent-encoded, whatever the
    /// [`FormNameEscape`]: otherwise, a name could start new header lines. (curl does not encode
    /// them with `--form-escape`.)
    fn push_parameter(&self, head: &mut Vec<u8>, name: &str, value: Option<&[u8]>) {
        let Some(value) = value else { return };
        head.extend_from_slice(format!("; {name}=\"").as_bytes());
        for b in value {
            match (b, self.escape) {
                (b'\r', _) => head.extend_from_slice(b"%0D"),
                (b'\n', _) => head.extend_from_slice(b"%0A"),
                (0, _) => head.extend_from_slice(b"%00"),
                (b'"', FormNameEscape::Percent) => head.extend_from_slice(b"%22"),
                (b'"' | b'\\', FormNameEscape::Backslash) => head.extend_from_slice(&[b'\\', *b]),
                _ => head.push(*b),
            }
        }
        head.push(b'"');
    }
}

/// The reason why a form cannot be encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MultipartError {
    /// A media type or a header line of a part contains CR, LF or NUL.
    LineEnd,
}

impl fmt::Display for MultipartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a line end in a part's type or header line")
    }
}

impl core::error::Error for MultipartError {}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(layout: &MultipartLayout) -> String {
        let piece = |piece: &MultipartPiece| match piece {
            MultipartPiece::Literal(bytes) => String::from_utf8_lossy(bytes).into_owned(),
            MultipartPiece::Source { index, .. } => format!("<{index}>"),
        };
        let delimiter = layout.content_type.rsplit('=').next().unwrap();
        layout.pieces.iter().map(piece).collect::<String>().replace(delimiter, "B")
    }

    fn lay(parts: &[FormPart], escape: FormNameEscape) -> MultipartLayout {
        MultipartLayout::new(parts, &MultipartBoundary::new([1; 16]), escape).unwrap()
    }

    #[test]
    fn multipart_body_equals_that_of_curl() {
        let typed = FormPart {
            content_type: Some("x/y".into()),
            ..FormPart::file("f", "q", FormPartContent::Source { index: 3, length: None })
        };
        let layout = lay(&[FormPart::field("a\"\\q", "v"), typed], FormNameEscape::Percent);
        assert_eq!(
            text(&layout),
            "--B\r\nContent-Disposition: form-data; name=\"a%22\\q\"\r\n\r\nv\r\n\
             --B\r\nContent-Disposition: form-data; name=\"f\"; filename=\"q\"\r\nContent-Type: x/y\r\n\r\n<3>\r\n--B--\r\n"
        );
        assert_eq!(layout.length, None);
        let own = FormPart { headers: vec![b"X-A: b".to_vec()], ..FormPart::field("a\"\\q", "v") };
        let layout = lay(&[own], FormNameEscape::Backslash);
        assert_eq!(
            text(&layout),
            "--B\r\nContent-Disposition: form-data; name=\"a\\\"\\\\q\"\r\nX-A: b\r\n\r\nv\r\n--B--\r\n"
        );
        assert_eq!((layout.pieces.len(), layout.length), (1, Some(text(&layout).len() as u64 + 90)));
    }

    #[test]
    fn several_files_of_one_field_are_multipart_mixed() {
        let file = |name: &str, index| FormPart {
            name: None,
            ..FormPart::file("", name, FormPartContent::Source { index, length: Some(3) })
        };
        let list = FormPart {
            content: FormPartContent::Mixed(vec![file("a.txt", 0), file("b.HTML", 1)]),
            ..FormPart::field("g", "")
        };
        let layout = lay(&[list], FormNameEscape::Percent);
        let inner = MultipartBoundary::new([1; 16]).text(1);
        assert_eq!(
            text(&layout).replace(&inner, "N"),
            "--B\r\nContent-Disposition: form-data; name=\"g\"\r\nContent-Type: multipart/mixed; boundary=N\r\n\r\n\
             --N\r\nContent-Disposition: attachment; filename=\"a.txt\"\r\nContent-Type: text/plain\r\n\r\n<0>\r\n\
             --N\r\nContent-Disposition: attachment; filename=\"b.HTML\"\r\nContent-Type: text/html\r\n\r\n<1>\r\n--N--\r\n\r\n--B--\r\n"
        );
    }

    #[test]
    fn nested_text_parts_are_not_attachments() {
        let bare = |content: &str| FormPart { name: None, ..FormPart::field("", content) };
        let list = FormPart { content: FormPartContent::Mixed(vec![bare("a"), bare("b")]), ..FormPart::field("", "") };
        let list = FormPart { name: None, content_type: Some("multipart/alternative".into()), ..list };
        let layout = lay(&[list], FormNameEscape::Percent);
        let inner = MultipartBoundary::new([1; 16]).text(1);
        assert_eq!(
            text(&layout).replace(&inner, "N"),
            "--B\r\nContent-Disposition: form-data\r\nContent-Type: multipart/alternative; boundary=N\r\n\r\n\
             --N\r\n\r\na\r\n--N\r\n\r\nb\r\n--N--\r\n\r\n--B--\r\n"
        );
    }

    #[test]
    fn parts_of_another_multipart_type_are_attachments() {
        let parts = [FormPart::field("a", "v"), FormPart { name: None, ..FormPart::field("", "w") }];
        let boundary = MultipartBoundary::new([1; 16]);
        let layout = MultipartLayout::with_attachments(&parts, &boundary, FormNameEscape::Percent).unwrap();
        assert_eq!(
            text(&layout),
            "--B\r\nContent-Disposition: attachment; name=\"a\"\r\n\r\nv\r\n--B\r\n\r\nw\r\n--B--\r\n"
        );
    }

    #[test]
    fn form_field_names_cannot_start_header_lines() {
        for escape in [FormNameEscape::Percent, FormNameEscape::Backslash] {
            let part = FormPart::file("a\r\nX: 1", "b\n\0\"", FormPartContent::Bytes(Vec::new()));
            let text = text(&lay(&[part], escape));
            assert!(text.contains("name=\"a%0D%0AX: 1\"; filename=\"b%0A%00"), "{text}");
            assert_eq!(text.matches("\r\n").count(), text.matches('\n').count());
        }
        let refused = |part: FormPart| {
            MultipartLayout::new(&[part], &MultipartBoundary::new([0; 16]), FormNameEscape::Percent).unwrap_err()
        };
        refused(FormPart { content_type: Some("a\r\nb".into()), ..FormPart::field("a", "") });
        refused(FormPart { headers: vec![b"X: 1\nY: 2".to_vec()], ..FormPart::field("a", "") });
    }

    #[test]
    fn user_header_lines_replace_generated_part_headers() {
        let headers = vec![b"content-disposition: attachment".to_vec(), b"Content-TYPE: a/b".to_vec()];
        let part = FormPart { headers, ..FormPart::file("a", "b.png", FormPartContent::Bytes(b"x".to_vec())) };
        assert_eq!(
            text(&lay(&[part], FormNameEscape::Percent)),
            "--B\r\ncontent-disposition: attachment\r\nContent-TYPE: a/b\r\n\r\nx\r\n--B--\r\n"
        );
        assert_eq!(text(&lay(&[], FormNameEscape::Percent)), "--B--\r\n");
    }

    #[test]
    fn multipart_boundaries_differ_and_have_equal_length() {
        for entropy in [[0; 16], [255; 16]] {
            let texts: Vec<String> = (0..100).map(|n| MultipartBoundary::new(entropy).text(n)).collect();
            assert!(texts.iter().all(|t| t.len() == 46 && t[24..].bytes().all(|b| b.is_ascii_alphanumeric())));
            assert!((0..100).all(|n| !texts[n + 1..].contains(&texts[n])));
        }
        let huge = FormPartContent::Source { index: 0, length: Some(u64::MAX) };
        assert_eq!(lay(&[FormPart::file("a", "b", huge)], FormNameEscape::Percent).length, None);
    }
}
