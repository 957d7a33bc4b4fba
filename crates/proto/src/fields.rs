//! A field section (RFC 9110 §5) as it was received: one buffer and a list of offsets.
//!
//! A look-up walks the list and compares names without regard to case. There is no map: a response
//! has about a dozen fields, of which a client asks for a few, and building a map would cost more
//! than all look-ups together.
//!
//! ```
//! # use haul_proto::{h1, time::MonotonicTimestamp};
//! # let mut conn = h1::H1Machine::new(h1::H1Config::default());
//! # conn.enqueue(MonotonicTimestamp(0), &h1::RequestHead::default()).unwrap();
//! # conn.advance_output(conn.output().len());
//! # let mut wire = *b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nETag: \"a\"\r\n\r\n";
//! # let head = conn.step(MonotonicTimestamp(0), &mut wire).unwrap().consumed;
//! # let h1::H1Event::Complete { trailers: Some(trailers), .. } =
//! #     conn.step(MonotonicTimestamp(0), &mut wire[head..]).unwrap().event else { panic!() };
//! // `trailers` are the Fields of a chunked body
//! assert_eq!(trailers.get("etag"), Some(&b"\"a\""[..]));
//! assert_eq!(trailers.iter().next(), Some(("ETag", &b"\"a\""[..])));
//! ```

use alloc::vec::Vec;
use core::fmt;
use core::ops::Range;

/// The position of one field in the bytes of its field section. 32 bits suffice, since limits keep
/// a section far below 4 GiB.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct FieldSpan {
    pub(crate) name: (u32, u32),
    pub(crate) value: (u32, u32),
}

/// A field section (the header or trailer fields of a message): names and values in the order and
/// spelling in which they were received.
///
/// `Debug` prints names and the lengths of values, because a value may be a secret (`Set-Cookie`).
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Fields {
    raw: Vec<u8>,
    spans: Vec<FieldSpan>,
}

impl Fields {
    /// Creates a field section from its received bytes and the positions of its fields. The
    /// positions must be within `raw`.
    pub(crate) fn new(raw: Vec<u8>, spans: Vec<FieldSpan>) -> Fields {
        Fields { raw, spans }
    }

    /// Removes the empty line at the end of the section's bytes.
    pub(crate) fn remove_last_line(&mut self) {
        for end in [b'\n', b'\r'] {
            self.raw.pop_if(|last| *last == end);
        }
    }

    /// Iterates over the names and values of the fields, in the order received.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.spans.iter().map(|span| (field_name(&self.raw, span), &self.raw[to_range(span.value)]))
    }

    /// Iterates over the names and values of the fields as bytes, in the order received. This is
    /// cheaper than [`Fields::iter`], since no name is converted to `str`.
    pub fn iter_bytes(&self) -> impl ExactSizeIterator<Item = (&[u8], &[u8])> {
        self.spans.iter().map(|span| (&self.raw[to_range(span.name)], &self.raw[to_range(span.value)]))
    }

    /// Iterates over the fields whose name has a length for which `is_wanted` returns true. This is
    /// a cheap selection; the caller then compares the names.
    pub(crate) fn iter_of_length(&self, is_wanted: impl Fn(usize) -> bool) -> impl Iterator<Item = (&[u8], &[u8])> {
        let spans = self.spans.iter().filter(move |span| is_wanted((span.name.1 - span.name.0) as usize));
        spans.map(|span| (&self.raw[to_range(span.name)], &self.raw[to_range(span.value)]))
    }

    /// Returns the value of the first field with this name. `None` if no field has it. The letter
    /// case of `name` does not matter.
    pub fn get(&self, name: &str) -> Option<&[u8]> {
        self.spans.iter().find(|span| has_name(&self.raw, span, name)).map(|span| &self.raw[to_range(span.value)])
    }

    /// Iterates over the values of all fields of this name, in the order received. The letter case
    /// of `name` does not matter.
    pub fn get_all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a [u8]> {
        self.spans
            .iter()
            .filter(move |span| has_name(&self.raw, span, name))
            .map(|span| &self.raw[to_range(span.value)])
    }

    /// Returns the number of fields in the section.
    pub fn len(&self) -> usize {
        self.spans.len()
    }

    /// Returns `true` if the section has no fields.
    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// Returns the bytes of the field section as received, with the empty line at its end. A field
    /// that was folded onto several lines is on one line. For HTTP/2 and HTTP/3, returns the
    /// section in the syntax of HTTP/1.
    pub fn raw(&self) -> &[u8] {
        &self.raw
    }
}

impl fmt::Debug for Fields {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        struct RedactedFieldValue(usize);
        impl fmt::Debug for RedactedFieldValue {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{} bytes", self.0)
            }
        }
        f.debug_map().entries(self.iter().map(|(name, value)| (name, RedactedFieldValue(value.len())))).finish()
    }
}

fn to_range((start, end): (u32, u32)) -> Range<usize> {
    start as usize..end as usize
}

fn has_name(text: &[u8], span: &FieldSpan, name: &str) -> bool {
    // Equal bytes need no conversion of letters. `eq_ignore_ascii_case` converts both first, which
    // takes four times as many instructions.
    let is_same = |(a, b): (&u8, &u8)| a == b || a.eq_ignore_ascii_case(b);
    // The length excludes most names, and is compared without a look at the text.
    (span.name.1 - span.name.0) as usize == name.len()
        && text[to_range(span.name)].iter().zip(name.as_bytes()).all(is_same)
}

/// Returns the name of a field as text. The parser has checked that names are tokens, hence ASCII.
fn field_name<'a>(text: &'a [u8], span: &FieldSpan) -> &'a str {
    core::str::from_utf8(&text[to_range(span.name)]).unwrap_or_default()
}
