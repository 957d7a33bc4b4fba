//! Percent-encoding and decoding, and the encoding of forms and queries: `--data-urlencode`,
//! `--url-query`.
//!
//! ```
//! use haul_policy::urlencode::{DataUrlencodeArg, DataUrlencodeSource};
//!
//! let field = DataUrlencodeArg::parse(b"name=a b&c");
//! let DataUrlencodeSource::Text(text) = field.source else { panic!("no @ in it") };
//! assert_eq!(field.encode(text), b"name=a+b%26c");
//! assert_eq!(DataUrlencodeArg::parse(b"name@file.txt").source, DataUrlencodeSource::File(b"file.txt"));
//! assert_eq!(DataUrlencodeArg::parse(b"=a=b").encode(b"a=b"), b"a%3Db");
//! ```

use std::borrow::Cow;

use memchr::memchr;

use crate::target::path::{hex_value, push_byte};

/// The source of the value in the argument of `--data-urlencode`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DataUrlencodeSource<'a> {
    /// The value is this text.
    Text(&'a [u8]),
    /// The value is the content of the file with this name; `-` is stdin.
    File(&'a [u8]),
}

/// The parsed argument of `--data-urlencode`: a name and the source of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataUrlencodeArg<'a> {
    /// The text before the equals sign or the `@`; `None` if the argument is only a value. The name
    /// is not encoded, as in curl.
    pub name: Option<&'a [u8]>,
    /// The value before encoding, or the file from which it is read.
    pub source: DataUrlencodeSource<'a>,
}

impl<'a> DataUrlencodeArg<'a> {
    /// Parses `content`, `=content`, `name=content`, `@file` or `name@file`. The first `=`
    /// separates name and content. Without an `=`, the first `@` separates name and file.
    pub fn parse(argument: &'a [u8]) -> DataUrlencodeArg<'a> {
        let named = |name: &'a [u8]| Some(name).filter(|name| !name.is_empty());
        if let Some(at) = memchr(b'=', argument) {
            DataUrlencodeArg { name: named(&argument[..at]), source: DataUrlencodeSource::Text(&argument[at + 1..]) }
        } else if let Some(at) = memchr(b'@', argument) {
            DataUrlencodeArg { name: named(&argument[..at]), source: DataUrlencodeSource::File(&argument[at + 1..]) }
        } else {
            DataUrlencodeArg { name: None, source: DataUrlencodeSource::Text(argument) }
        }
    }

    /// Returns the field to send: `name=value` with an encoded value, or only the encoded value.
    /// `value` is the text of [`DataUrlencodeSource::Text`], or the content of the file.
    pub fn encode(&self, value: &[u8]) -> Vec<u8> {
        let value = form_encode(value).into_bytes();
        match self.name {
            Some(name) => [name, b"=", &value].concat(),
            None => value,
        }
    }
}

/// Percent-decodes a text (RFC 3986 §2.1). A `%` without two hex digits after it is kept unchanged.
pub fn percent_decode(text: &[u8]) -> Cow<'_, [u8]> {
    if memchr(b'%', text).is_none() {
        return Cow::Borrowed(text);
    }
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&b, after)) = rest.split_first() {
        if b == b'%'
            && let [high, low, tail @ ..] = after
            && let (Some(high), Some(low)) = (hex_value(*high), hex_value(*low))
        {
            out.push(high << 4 | low);
            rest = tail;
        } else {
            out.push(b);
            rest = after;
        }
    }
    Cow::Owned(out)
}

/// Percent-encodes all bytes except letters, digits and `-._~` (RFC 3986 §2.3).
pub fn percent_encode(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len() + bytes.len() / 2);
    for b in bytes {
        if is_unreserved(*b) {
            out.push(char::from(*b));
        } else {
            push_byte(&mut out, *b);
        }
    }
    out
}

/// Percent-encodes all bytes except letters, digits and `-._~`, but a space becomes `+`, as in HTML
/// forms and in curl since 7.86.
pub fn form_encode(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len() + bytes.len() / 2);
    push_form_encoded(&mut out, bytes);
    out
}

/// Appends bytes to `out`, percent-encoded for an HTML form: a space becomes `+` (see
/// [`form_encode`]).
pub fn push_form_encoded(out: &mut String, bytes: &[u8]) {
    for b in bytes {
        match *b {
            b' ' => out.push('+'),
            b if is_unreserved(b) => out.push(char::from(b)),
            b => push_byte(out, b),
        }
    }
}

/// Returns true for the bytes that need no encoding (RFC 3986 §2.3).
fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_is_percent_encoded_and_decoded() {
        for b in 0..=u8::MAX {
            let text = percent_encode(&[b]);
            let plain = b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b'_' | b'~');
            assert_eq!(text, if plain { char::from(b).to_string() } else { format!("%{b:02X}") });
        }
        assert_eq!(form_encode(b"a b+%20 \xc3\xa9\n"), "a+b%2B%2520+%C3%A9%0A");
    }

    #[test]
    fn data_urlencode_arguments_are_split_as_in_curl() {
        for (argument, name, source) in [
            ("plain z", None, DataUrlencodeSource::Text(&b"plain z"[..])),
            ("=x=y", None, DataUrlencodeSource::Text(b"x=y")),
            ("a=b@c", Some("a"), DataUrlencodeSource::Text(b"b@c")),
            ("a@b=c", Some("a@b"), DataUrlencodeSource::Text(b"c")),
            ("@f", None, DataUrlencodeSource::File(b"f")),
            ("n@-", Some("n"), DataUrlencodeSource::File(b"-")),
            ("n@a@b", Some("n"), DataUrlencodeSource::File(b"a@b")),
            ("", None, DataUrlencodeSource::Text(b"")),
        ] {
            let name = name.map(str::as_bytes);
            assert_eq!(DataUrlencodeArg::parse(argument.as_bytes()), DataUrlencodeArg { name, source }, "{argument}");
        }
        assert_eq!(DataUrlencodeArg::parse(b"n&m=").encode(b"=&"), b"n&m=%3D%26");
        assert_eq!(DataUrlencodeArg::parse(b"\xe9=").encode(b"\xe9"), b"\xe9=%E9");
    }
}
