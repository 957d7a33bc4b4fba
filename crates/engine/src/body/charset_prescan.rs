//! The search for a declaration of the charset in the first bytes of markup: an XML declaration, or
//! a `<meta>` (WHATWG HTML, "prescan a byte stream to determine its encoding").

use encoding_rs::{Encoding, REPLACEMENT, UTF_8, WINDOWS_1252, X_USER_DEFINED};
use memchr::memmem;

/// The number of bytes at the beginning of a body that are searched for a declaration of its
/// charset.
pub(super) const PRESCAN_BYTES: usize = 1024;

/// The rule that decides whether a body may declare its charset, and where. It depends on the media
/// type of the body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CharsetDeclarationRule {
    /// HTML: a `<meta>` tag anywhere in the first bytes may declare the charset.
    Anywhere,
    /// XML, or a body without a media type: the body may declare its charset only if its first byte
    /// after white space is `<`.
    AfterTag,
    /// Any media type other than HTML and XML: the body cannot declare its charset.
    Nowhere,
}

impl CharsetDeclarationRule {
    /// Returns the rule for bodies of this media type. `media_type` is in lower case and has no
    /// parameters.
    pub(super) fn for_media_type(media_type: &[u8]) -> Self {
        if media_type.ends_with(b"html") {
            Self::Anywhere
        } else if media_type.is_empty() || media_type.ends_with(b"xml") {
            Self::AfterTag
        } else {
            Self::Nowhere
        }
    }

    /// Returns true if a body that begins with `start` may declare its charset. While `start`
    /// contains only white space, the result is true, and more bytes can change it to false. After
    /// the first other byte, the result is final.
    pub(super) fn is_in(self, start: &[u8]) -> bool {
        match self {
            Self::Anywhere => true,
            Self::AfterTag => start.iter().find(|byte| !byte.is_ascii_whitespace()).is_none_or(|byte| *byte == b'<'),
            Self::Nowhere => false,
        }
    }
}

/// Returns the encoding with this label, such as `latin1`. Returns `None` if the encoding is not
/// supported.
pub(super) fn encoding_by_label(label: &[u8]) -> Option<&'static Encoding> {
    Encoding::for_label(label).filter(|encoding| *encoding != REPLACEMENT)
}

/// Returns the charset that an XML declaration or a `<meta>` in the first [`PRESCAN_BYTES`] bytes
/// of `start` declares. Returns `None` if there is no such declaration of a known charset. A
/// declaration of UTF-16 counts as UTF-8: the declaration was readable as ASCII, so the body cannot
/// be UTF-16.
///
/// If a charset is found, more bytes of the body do not change it.
pub(super) fn find_declared_encoding(start: &[u8]) -> Option<&'static Encoding> {
    const XML_DECLARATION: &[u8] = b"<?xml";
    let start = &start[..start.len().min(PRESCAN_BYTES)];
    if let Some(declaration) = start.strip_prefix(XML_DECLARATION) {
        let end = memmem::find(declaration, b"?>");
        if end.is_none() && start.len() < PRESCAN_BYTES {
            return None;
        }
        if let Some(encoding) = end.and_then(|end| encoding_in_xml_declaration(&declaration[..end])) {
            return Some(encoding);
        }
    }
    TagScanner { bytes: start, at: 0 }.find_charset()
}

/// Returns the encoding for a charset label that the body itself contains; `None` if it is not
/// supported. UTF-16 becomes UTF-8, and `x-user-defined` becomes windows-1252, as in WHATWG HTML.
fn declared_encoding(label: &[u8]) -> Option<&'static Encoding> {
    let encoding = encoding_by_label(label)?;
    Some(match encoding.name() {
        "UTF-16LE" | "UTF-16BE" => UTF_8,
        _ if encoding == X_USER_DEFINED => WINDOWS_1252,
        _ => encoding,
    })
}

/// Returns the encoding that the XML declaration `declaration` names; `None` if it names no
/// supported encoding.
fn encoding_in_xml_declaration(declaration: &[u8]) -> Option<&'static Encoding> {
    let after = &declaration[memmem::find(declaration, b"encoding")? + 8..];
    let value = after.trim_ascii_start().strip_prefix(b"=")?.trim_ascii_start();
    let (quote, value) = value.split_first()?;
    let end = value.iter().position(|byte| byte == quote)?;
    declared_encoding(&value[..end])
}

/// Returns the encoding in the `content` of a `<meta http-equiv=content-type>`, such as `text/html;
/// charset=utf-8` (WHATWG HTML, "extracting a character encoding from a meta element"). Returns
/// `None` if it names no supported encoding.
fn encoding_in_content_attribute(content: &[u8]) -> Option<&'static Encoding> {
    let mut rest = content;
    loop {
        rest = &rest[memmem::find(rest, b"charset")? + 7..];
        let Some(value) = rest.trim_ascii_start().strip_prefix(b"=") else { continue };
        let value = value.trim_ascii_start();
        let label = match value.first()? {
            quote @ (b'"' | b'\'') => &value[1..][..value[1..].iter().position(|byte| byte == quote)?],
            _ => {
                let ends = |byte: &u8| *byte == b';' || byte.is_ascii_whitespace();
                &value[..value.iter().position(ends).unwrap_or(value.len())]
            }
        };
        return declared_encoding(label);
    }
}

/// A reader of the tags in the first bytes of a body. The scan ends if the bytes end within a tag.
struct TagScanner<'b> {
    bytes: &'b [u8],
    at: usize,
}

impl TagScanner<'_> {
    /// Returns the charset from the first `<meta>` that declares a known charset; `None` if there
    /// is no such tag.
    fn find_charset(&mut self) -> Option<&'static Encoding> {
        loop {
            self.at += memchr::memchr(b'<', &self.bytes[self.at..])?;
            let rest = &self.bytes[self.at + 1..];
            if rest.starts_with(b"!--") {
                // In `<!-->` the end shares its dashes with the beginning.
                self.at += 3 + memmem::find(&rest[1..], b"-->")? + 2;
                continue;
            }
            match rest {
                [b'!' | b'?', ..] => self.skip_to_bracket()?,
                [b'/', letter, ..] if letter.is_ascii_alphabetic() => self.skip_tag(2)?,
                [b'/', _, ..] => self.skip_to_bracket()?,
                [letter, ..] if letter.is_ascii_alphabetic() => {
                    let is_meta = rest.get(..4).is_some_and(|name| name.eq_ignore_ascii_case(b"meta"))
                        && rest.get(4).is_some_and(|byte| is_space(*byte) || *byte == b'/');
                    if !is_meta {
                        self.skip_tag(1)?;
                    } else if let Some(encoding) = self.read_meta()? {
                        return Some(encoding);
                    }
                }
                [] => return None,
                _ => self.at += 1,
            }
        }
    }

    /// Moves to the next `>`. Returns `None` if there is none.
    fn skip_to_bracket(&mut self) -> Option<()> {
        self.at += memchr::memchr(b'>', &self.bytes[self.at..])?;
        Some(())
    }

    /// Moves from the `<` of a tag to the `>` at its end. `start` is the number of bytes before the
    /// tag's name: 1 for `<`, and 2 for `</`. Returns `None` if the bytes end within the tag.
    fn skip_tag(&mut self, start: usize) -> Option<()> {
        let name = &self.bytes[self.at + start..];
        self.at += start + name.iter().position(|byte| is_space(*byte) || *byte == b'>')?;
        while self.read_attribute()?.is_some() {}
        Some(())
    }

    /// Reads the attributes of a `<meta>`. The inner value is the charset that they declare; `None`
    /// if they declare none. The outer value is `None` if the bytes end within the tag.
    fn read_meta(&mut self) -> Option<Option<&'static Encoding>> {
        self.at += b"<meta".len();
        let mut names: Vec<Vec<u8>> = Vec::new();
        let (mut is_content_type, mut charset, mut from_content) = (false, None, None);
        while let Some((name, value)) = self.read_attribute()? {
            if names.contains(&name) {
                continue;
            }
            match &name[..] {
                b"http-equiv" => is_content_type = value == b"content-type",
                b"content" => from_content = encoding_in_content_attribute(&value),
                b"charset" => charset = Some(declared_encoding(&value)),
                _ => {}
            }
            names.push(name);
        }
        Some(match charset {
            Some(charset) => charset,
            None => from_content.filter(|_| is_content_type),
        })
    }

    /// Reads the next attribute of a tag: its name and value in lower case (WHATWG HTML, "get an
    /// attribute"). The inner value is `None` at the end of the tag. The outer value is `None` if
    /// the bytes end within the tag.
    fn read_attribute(&mut self) -> Option<Option<(Vec<u8>, Vec<u8>)>> {
        while is_space(self.current_byte()?) || self.current_byte()? == b'/' {
            self.at += 1;
        }
        if self.current_byte()? == b'>' {
            return Some(None);
        }
        let mut name = Vec::new();
        loop {
            match self.current_byte()? {
                b'=' if !name.is_empty() => break,
                b'/' | b'>' => return Some(Some((name, Vec::new()))),
                byte if is_space(byte) => {
                    self.skip_spaces()?;
                    if self.current_byte()? != b'=' {
                        return Some(Some((name, Vec::new())));
                    }
                    break;
                }
                byte => name.push(byte.to_ascii_lowercase()),
            }
            self.at += 1;
        }
        self.at += 1;
        self.skip_spaces()?;
        let value = match self.current_byte()? {
            quote @ (b'"' | b'\'') => {
                self.at += 1;
                let length = memchr::memchr(quote, &self.bytes[self.at..])?;
                self.at += length + 1;
                &self.bytes[self.at - 1 - length..self.at - 1]
            }
            _ => {
                let rest = &self.bytes[self.at..];
                let length = rest.iter().position(|byte| is_space(*byte) || *byte == b'>')?;
                self.at += length;
                &rest[..length]
            }
        };
        Some(Some((name, value.to_ascii_lowercase())))
    }

    fn skip_spaces(&mut self) -> Option<()> {
        while is_space(self.current_byte()?) {
            self.at += 1;
        }
        Some(())
    }

    fn current_byte(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | 0x0c)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn declares(start: &str, expected: Option<&str>) {
        let name = |start: &[u8]| find_declared_encoding(start).map(Encoding::name);
        assert_eq!(name(start.as_bytes()), expected, "{start}");
        // A prefix declares nothing else.
        for length in 0..start.len() {
            let found = name(&start.as_bytes()[..length]);
            assert!(found.is_none() || found == expected, "{found:?} in the first {length} of {start}");
        }
    }

    #[test]
    fn only_charset_and_http_equiv_meta_declare_a_charset() {
        let koi = Some("KOI8-R");
        declares("<meta charset=koi8-r>", koi);
        declares("<META\tname=x CharSet = 'koi8-r' >", koi);
        declares("<meta/charset=koi8-r>", koi);
        declares("<meta http-equiv=Content-Type content='text/html; CHARSET = koi8-r;x'>", koi);
        declares("<meta content='text/html;charset=\"koi8-r\"' http-equiv=content-type>", koi);
        declares("<meta http-equiv=content-type content='charset charset=koi8-r'>", koi);
        declares("<meta name=description content='how to set charset=utf-8 in pages'><meta charset=koi8-r>", koi);
        declares("<meta http-equiv=refresh content='0;charset=utf-8'><meta charset=koi8-r>", koi);
        declares("<metadata charset=utf-8></metadata><meta charset=koi8-r>", koi);
        declares("<meta data-charset=utf-8><meta charset=koi8-r>", koi);
        declares("<meta charset=koi8-r charset=utf-8>", koi);
        // A label that is not known leaves the choice to the next one.
        declares("<meta charset=nonesuch><meta charset=koi8-r>", koi);
        declares("<meta charset=nonesuch http-equiv=content-type content='charset=utf-8'>", None);
        declares("<meta http-equiv=content-type content='charset=\"utf-8'>", None);
        declares("<meta charset=utf-16be>", Some("UTF-8"));
    }

    #[test]
    fn other_tags_and_comments_declare_no_charset() {
        declares("<a title='<meta charset=utf-8>'><meta charset=koi8-r>", Some("KOI8-R"));
        declares("</a title='<meta charset=utf-8>'><meta charset=koi8-r>", Some("KOI8-R"));
        declares("<!-- <meta charset=utf-8> --><meta charset=koi8-r>", Some("KOI8-R"));
        declares("<!--><meta charset=koi8-r>", Some("KOI8-R"));
        declares("<!DOCTYPE html><?php?></><<meta charset=koi8-r>", Some("KOI8-R"));
        declares("<p charset=utf-8>charset=utf-8 &lt;meta charset=utf-8>", None);
        declares("<meta charset=koi8-r", None);
        declares("<a title='<meta charset=utf-8>", None);
    }

    #[test]
    fn xml_declaration_overrides_meta_charset() {
        declares("<?xml version='1.0' encoding = \"koi8-r\" ?><meta charset=utf-8>", Some("KOI8-R"));
        declares("<?xml version='1.0'?><meta charset=koi8-r>", Some("KOI8-R"));
        declares("<?xml <meta charset=utf-8> encoding='koi8-r'?>", Some("KOI8-R"));
        declares("<?xml encoding='nonesuch'?><meta charset=koi8-r>", Some("KOI8-R"));
    }

    #[test]
    fn charset_declaration_after_the_prescan_is_ignored() {
        declares(&format!("{}<meta charset=koi8-r>", " ".repeat(PRESCAN_BYTES - 21)), Some("KOI8-R"));
        declares(&format!("{}<meta charset=koi8-r>", " ".repeat(PRESCAN_BYTES - 20)), None);
    }
}
