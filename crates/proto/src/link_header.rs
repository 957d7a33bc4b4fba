//! The `Link` header field (RFC 8288): links from a response to other resources.
//!
//! The parser follows the algorithms of RFC 8288 appendix B. At a malformed link, the list ends;
//! the links before it are returned.
//!
//! ```
//! use haul_proto::link_header::parse_links;
//!
//! let field = br#"</items?page=3>; rel="next", </items?page=1>; rel="prev first""#;
//! let next = parse_links(field).find(|link| link.has_relation("next")).unwrap();
//! assert_eq!(next.target(), b"/items?page=3");
//! assert_eq!(parse_links(field).filter(|link| link.has_relation("first")).count(), 1);
//! ```
//!
//! Left out: the resolution of targets against a base, which the caller does, and the decoding of
//! parameters with a language (`title*`, RFC 8187).

use alloc::borrow::Cow;
use alloc::vec::Vec;

use crate::syntax::trim_ows;

/// Returns an iterator over the links in the value of one `Link` field. A response may have several
/// such fields.
#[must_use]
pub fn parse_links(value: &[u8]) -> Links<'_> {
    Links { rest: value }
}

/// An iterator over the links in the value of a `Link` field, returned by [`parse_links`].
#[derive(Clone, Debug)]
pub struct Links<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for Links<'a> {
    type Item = Link<'a>;

    fn next(&mut self) -> Option<Link<'a>> {
        // RFC 9110 section 5.6.1.2: empty elements of a list are ignored.
        while let [b' ' | b'\t' | b',', rest @ ..] = self.rest {
            self.rest = rest;
        }
        let inside = self.rest.strip_prefix(b"<");
        let Some((inside, end)) = inside.and_then(|inside| Some((inside, memchr::memchr(b'>', inside)?))) else {
            self.rest = &[];
            return None;
        };
        let (target, after) = (&inside[..end], &inside[end + 1..]);
        let mut parameters = LinkParameters { rest: after };
        parameters.by_ref().for_each(drop);
        self.rest = parameters.rest;
        Some(Link { target, parameters: &after[..after.len() - self.rest.len()] })
    }
}

/// A link of a `Link` field (RFC 8288): a target and its parameters.
#[derive(Clone, Copy, Debug)]
pub struct Link<'a> {
    target: &'a [u8],
    parameters: &'a [u8],
}

impl<'a> Link<'a> {
    /// Returns the reference between `<` and `>`, as received. It may be relative to the URL of the
    /// response, and is not yet known to be valid.
    #[must_use]
    pub fn target(&self) -> &'a [u8] {
        self.target
    }

    /// Iterates over the parameters of the link, in the order received.
    #[must_use]
    pub fn parameters(&self) -> LinkParameters<'a> {
        LinkParameters { rest: self.parameters }
    }

    /// Returns the value of the first parameter with this name. `None` if no parameter has it. The
    /// letter case of the name does not matter.
    #[must_use]
    pub fn parameter(&self, name: &str) -> Option<Cow<'a, [u8]>> {
        let mut parameters = self.parameters();
        parameters.find(|(known, _)| known.eq_ignore_ascii_case(name.as_bytes())).map(|(_, value)| value)
    }

    /// Returns true if one of the link's relation types is `relation`, in any letter case. Only the
    /// first `rel` parameter counts (RFC 8288 section 3.3).
    #[must_use]
    pub fn has_relation(&self, relation: &str) -> bool {
        let relations = self.parameter("rel").unwrap_or_default();
        relations.split(|byte| matches!(byte, b' ' | b'\t')).any(|one| one.eq_ignore_ascii_case(relation.as_bytes()))
    }

    /// Returns the `anchor` parameter: the reference to the resource from which the link leads.
    /// `None` if that resource is the response itself (RFC 8288 section 3.2).
    #[must_use]
    pub fn anchor(&self) -> Option<Cow<'a, [u8]>> {
        self.parameter("anchor")
    }
}

/// An iterator over the names and values of a link's parameters, returned by [`Link::parameters`].
/// A parameter without a value has an empty value.
#[derive(Clone, Debug)]
pub struct LinkParameters<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for LinkParameters<'a> {
    type Item = (&'a [u8], Cow<'a, [u8]>);

    fn next(&mut self) -> Option<Self::Item> {
        let rest = skip_blanks(self.rest).strip_prefix(b";")?;
        let rest = skip_blanks(rest);
        let end = rest.iter().position(|byte| matches!(byte, b' ' | b'\t' | b'=' | b';' | b','));
        let (name, rest) = rest.split_at(end.unwrap_or(rest.len()));
        let rest = skip_blanks(rest);
        let (value, rest) = match rest.strip_prefix(b"=").map(skip_blanks) {
            None => (Cow::Borrowed(&[][..]), rest),
            Some([b'"', quoted @ ..]) => quoted_text(quoted),
            Some(plain) => {
                let end = plain.iter().position(|byte| matches!(byte, b';' | b','));
                let (value, rest) = plain.split_at(end.unwrap_or(plain.len()));
                (Cow::Borrowed(trim_ows(value)), rest)
            }
        };
        self.rest = rest;
        Some((name, value))
    }
}

/// Parses a quoted string after its opening quote. Returns the value and the text after the closing
/// quote. Without a closing quote, the string extends to the end of `text`.
fn quoted_text(text: &[u8]) -> (Cow<'_, [u8]>, &[u8]) {
    let Some(end) = memchr::memchr2(b'"', b'\\', text) else { return (Cow::Borrowed(text), &[]) };
    if text[end] == b'"' {
        return (Cow::Borrowed(&text[..end]), &text[end + 1..]);
    }
    let mut value = Vec::new();
    let mut rest = text;
    while let Some(end) = memchr::memchr2(b'"', b'\\', rest) {
        value.extend_from_slice(&rest[..end]);
        if rest[end] == b'"' {
            return (Cow::Owned(value), &rest[end + 1..]);
        }
        value.extend(rest.get(end + 1));
        rest = rest.get(end + 2..).unwrap_or_default();
    }
    value.extend_from_slice(rest);
    (Cow::Owned(value), &[])
}

fn skip_blanks(mut text: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] = text {
        text = rest;
    }
    text
}

#[cfg(test)]
mod tests;
