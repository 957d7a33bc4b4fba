//! Builds and checks a response head or a trailer section from decoded field lines (RFC 9113 §8.1
//! to §8.3, RFC 9114 §4.1 to §4.3).
//!
//! HPACK and QPACK decode field lines directly into the buffer of the result.

use crate::ResponseLimits;
use crate::field_coding::DecodedFieldRanges;
use crate::field_fault::FieldFault;
use crate::fields::{FieldSpan, Fields};
use crate::response_error::ResponseError;
use crate::response_head::{ProtocolVersion, ResponseHead};
use crate::syntax::is_tchar;
use alloc::vec::Vec;

/// The kind of a field section, which determines the rules for its fields.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum FieldSectionKind {
    /// The head of a response. `before` is the number of bytes in the earlier (interim) heads of
    /// the same response; they count against the same limit.
    Head {
        before: usize,
    },
    Trailers,
}

/// The reason why a field section cannot be used.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum FieldSectionError {
    /// The field section exceeds a limit on the size or the number of its fields.
    Response(ResponseError),
    /// A field makes the message malformed.
    Field(FieldFault),
}

/// A decoded and well-formed field section: a response head or trailers.
pub(crate) struct DecodedFieldSection {
    version: ProtocolVersion,
    /// The status code of a head; 0 for trailers.
    status: u16,
    fields: Fields,
    /// The size of the field section, counted as in RFC 9113 §6.5.2.
    pub(crate) size: usize,
}

/// The status line of a head in the syntax of HTTP/1. The version and the status in this template
/// are overwritten with those of the response.
const STATUS_LINE_TEMPLATE: &[u8] = b"HTTP/2 200 \r\n";

impl DecodedFieldSection {
    pub(crate) fn into_head(self) -> ResponseHead {
        let end = STATUS_LINE_TEMPLATE.len() as u32 - 2;
        ResponseHead::new(self.version, self.status, (end, end), self.fields)
    }

    pub(crate) fn into_fields(self) -> Fields {
        self.fields
    }
}

/// The size of the field section that was decoded last. The buffers for the next section are
/// allocated with this size, since it is likely to be similar.
#[derive(Debug)]
pub(crate) struct FieldSectionSizeHint {
    bytes: usize,
    fields: usize,
}

impl Default for FieldSectionSizeHint {
    fn default() -> FieldSectionSizeHint {
        FieldSectionSizeHint { bytes: 512, fields: 16 }
    }
}

/// A field section that is being decoded line by line.
pub(crate) struct FieldSectionReader<'a> {
    section: FieldSectionKind,
    version: ProtocolVersion,
    limits: &'a ResponseLimits,
    text: Vec<u8>,
    spans: Vec<FieldSpan>,
    status: u16,
    count: usize,
    size: usize,
}

impl<'a> FieldSectionReader<'a> {
    pub(crate) fn new(
        section: FieldSectionKind,
        version: ProtocolVersion,
        limits: &'a ResponseLimits,
        hint: &FieldSectionSizeHint,
    ) -> FieldSectionReader<'a> {
        FieldSectionReader {
            section,
            version,
            limits,
            text: Vec::with_capacity(hint.bytes),
            spans: Vec::with_capacity(hint.fields),
            status: 0,
            count: 0,
            size: 0,
        }
    }

    /// Returns the buffer to which the HPACK or QPACK decoder appends the next field line.
    pub(crate) fn line_buffer(&mut self) -> &mut Vec<u8> {
        &mut self.text
    }

    /// Checks the field line that was decoded last, and adds it to the section.
    pub(crate) fn push_line(&mut self, line: DecodedFieldRanges) -> Result<(), FieldSectionError> {
        let DecodedFieldRanges { name, mut value, .. } = line;
        self.count += 1;
        self.size += name.len() + value.len() + 32;
        self.check_size()?;
        let is_pseudo = self.text[name.clone()].first() == Some(&b':');
        if is_pseudo {
            let status = self.parse_pseudo_field(&self.text[name.clone()], &self.text[value])?;
            self.status = status;
            self.text.truncate(name.start);
            self.text.extend_from_slice(STATUS_LINE_TEMPLATE);
            if self.version == ProtocolVersion::Http3 {
                self.text[name.start + "HTTP/".len()] = b'3';
            }
            for (place, digit) in [status / 100, status / 10 % 10, status % 10].into_iter().enumerate() {
                self.text[name.start + "HTTP/2 ".len() + place] = b'0' + digit as u8;
            }
            return Ok(());
        }
        check_name(&self.text[name.clone()])?;
        let text = &self.text[value.clone()];
        if !text.iter().all(|&byte| VALUE_BYTES[usize::from(byte)]) {
            return Err(FieldSectionError::Field(FieldFault::Value));
        }
        if is_connection_specific(&self.text[name.clone()]) {
            return Err(FieldSectionError::Field(FieldFault::ConnectionSpecific));
        }
        // RFC 9113 §8.2.1 calls spaces around a value malformed; some servers send them, and they
        // do no harm.
        while !value.is_empty() && matches!(self.text[value.start], b' ' | b'\t') {
            value.start += 1;
        }
        while !value.is_empty() && matches!(self.text[value.end - 1], b' ' | b'\t') {
            value.end -= 1;
        }
        let span = |range: core::ops::Range<usize>| (range.start as u32, range.end as u32);
        self.spans.push(FieldSpan { name: span(name), value: span(value) });
        Ok(())
    }

    /// Returns the section, after its last line was added. Stores the size of the section in
    /// `hint`.
    pub(crate) fn finish(mut self, hint: &mut FieldSectionSizeHint) -> Result<DecodedFieldSection, FieldSectionError> {
        if matches!(self.section, FieldSectionKind::Head { .. }) && self.status == 0 {
            return Err(FieldSectionError::Field(FieldFault::MissingStatus));
        }
        self.text.extend_from_slice(b"\r\n");
        // A large section is rare, and should not make the allocation for all others large.
        *hint = FieldSectionSizeHint { bytes: self.text.len().min(4_096) + 16, fields: self.spans.len().min(64) + 1 };
        let fields = Fields::new(self.text, self.spans);
        Ok(DecodedFieldSection { version: self.version, status: self.status, fields, size: self.size })
    }

    fn check_size(&self) -> Result<(), FieldSectionError> {
        let limits = self.limits;
        match self.section {
            FieldSectionKind::Trailers if self.size > limits.trailer_bytes => {
                Err(FieldSectionError::Response(ResponseError::TrailersTooLarge { limit: limits.trailer_bytes }))
            }
            FieldSectionKind::Trailers if self.count > limits.trailer_fields => {
                Err(FieldSectionError::Response(ResponseError::TooManyTrailers { limit: limits.trailer_fields }))
            }
            FieldSectionKind::Head { before } if before + self.size > limits.head_bytes => {
                Err(FieldSectionError::Response(ResponseError::HeadTooLarge { limit: limits.head_bytes }))
            }
            // The pseudo-field is not kept among the fields.
            FieldSectionKind::Head { .. } if self.count > limits.head_fields + 1 => {
                Err(FieldSectionError::Response(ResponseError::TooManyFields { limit: limits.head_fields }))
            }
            _ => Ok(()),
        }
    }

    fn parse_pseudo_field(&self, name: &[u8], value: &[u8]) -> Result<u16, FieldSectionError> {
        let fault = |fault| Err(FieldSectionError::Field(fault));
        if self.section == FieldSectionKind::Trailers {
            return fault(FieldFault::PseudoInTrailers);
        }
        if name != b":status" {
            return fault(FieldFault::UnknownPseudo);
        }
        if !self.spans.is_empty() {
            return fault(FieldFault::LatePseudo);
        }
        if self.status != 0 {
            return fault(FieldFault::RepeatedPseudo);
        }
        match *value {
            [a @ b'1'..=b'9', b @ b'0'..=b'9', c @ b'0'..=b'9'] => {
                let digit = |byte: u8| u16::from(byte - b'0');
                match digit(a) * 100 + digit(b) * 10 + digit(c) {
                    // RFC 9113 §8.6 and RFC 9114 §4.5: HTTP/2 and HTTP/3 do not support 101.
                    101 => fault(FieldFault::Status),
                    status => Ok(status),
                }
            }
            _ => fault(FieldFault::Status),
        }
    }
}

/// The bytes allowed in a field value, as in HTTP/1: true at the index of each allowed byte.
static VALUE_BYTES: [bool; 256] = {
    let mut allowed = [true; 256];
    let mut byte = 0;
    while byte < 0x20 {
        allowed[byte] = byte == b'\t' as usize;
        byte += 1;
    }
    allowed[0x7f] = false;
    allowed
};

/// The bytes allowed in a field name: true at the index of each allowed byte.
static NAME_BYTES: [bool; 256] = {
    let mut allowed = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        allowed[byte] = is_tchar(byte as u8) && !(byte as u8).is_ascii_uppercase();
        byte += 1;
    }
    allowed
};

fn check_name(name: &[u8]) -> Result<(), FieldSectionError> {
    if !name.is_empty() && name.iter().all(|&byte| NAME_BYTES[usize::from(byte)]) {
        return Ok(());
    }
    let token = !name.is_empty() && name.iter().all(|&byte| is_tchar(byte));
    Err(FieldSectionError::Field(if token { FieldFault::Uppercase } else { FieldFault::Name }))
}

fn is_connection_specific(name: &[u8]) -> bool {
    match name.len() {
        7 => name == b"upgrade",
        10 => name == b"connection" || name == b"keep-alive",
        16 => name == b"proxy-connection",
        17 => name == b"transfer-encoding",
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(
        section: FieldSectionKind,
        limits: &ResponseLimits,
        fields: &[(&str, &str)],
    ) -> Result<(DecodedFieldSection, FieldSectionSizeHint), FieldSectionError> {
        let mut hint = FieldSectionSizeHint::default();
        let mut reader = FieldSectionReader::new(section, ProtocolVersion::Http2, limits, &hint);
        for (name, value) in fields {
            let line = crate::field_coding::push_table_line(name.as_bytes(), value.as_bytes(), reader.line_buffer());
            reader.push_line(line)?;
        }
        Ok((reader.finish(&mut hint)?, hint))
    }

    #[test]
    fn head_size_counts_names_values_and_overhead() {
        // 7 + 3 + 32 bytes, and 4 + 5 + 32 bytes.
        let fields = [(":status", "200"), ("name", "value")];
        let size = |before, head_bytes| {
            let limits = ResponseLimits { head_bytes, ..ResponseLimits::default() };
            read(FieldSectionKind::Head { before }, &limits, &fields).map(|(section, _)| section.size)
        };
        assert_eq!([size(0, 83), size(17, 100)], [Ok(83); 2]);
        let too_large = |limit| Err(FieldSectionError::Response(ResponseError::HeadTooLarge { limit }));
        assert_eq!([size(0, 82), size(18, 100)], [too_large(82), too_large(100)]);
        let trailers = |trailer_bytes| {
            let limits = ResponseLimits { trailer_bytes, ..ResponseLimits::default() };
            read(FieldSectionKind::Trailers, &limits, &fields[1..]).map(|(section, _)| section.size)
        };
        let limit = 40;
        let too_large = Err(FieldSectionError::Response(ResponseError::TrailersTooLarge { limit }));
        assert_eq!([trailers(41), trailers(40)], [Ok(41), too_large]);
    }

    #[test]
    fn number_of_fields_may_reach_its_limit() {
        let limits = ResponseLimits { head_fields: 2, trailer_fields: 2, ..ResponseLimits::default() };
        let fields = [(":status", "200"), ("a", ""), ("b", ""), ("c", "")];
        let head = |count| read(FieldSectionKind::Head { before: 0 }, &limits, &fields[..count]).map(drop);
        assert_eq!(head(3), Ok(()));
        assert_eq!(head(4), Err(FieldSectionError::Response(ResponseError::TooManyFields { limit: 2 })));
        let trailers = |count: usize| read(FieldSectionKind::Trailers, &limits, &fields[1..1 + count]).map(drop);
        assert_eq!(trailers(2), Ok(()));
        assert_eq!(trailers(3), Err(FieldSectionError::Response(ResponseError::TooManyTrailers { limit: 2 })));
    }

    #[test]
    fn hint_follows_the_section_within_limits() {
        let hint = |fields: &[(&str, &str)]| {
            let Ok((_, hint)) = read(FieldSectionKind::Trailers, &ResponseLimits::default(), fields) else {
                panic!("valid trailers")
            };
            (hint.bytes, hint.fields)
        };
        // `a: b`, two line ends, and 16 bytes; one more field.
        assert_eq!(hint(&[("a", "b")]), (8 + 16, 2));
        let long = "v".repeat(5_000);
        assert_eq!(hint(&[("a", &long)]), (4_096 + 16, 2));
        assert_eq!(hint(&[("a", ""); 100]).1, 65);
    }

    #[test]
    fn blanks_around_a_value_are_dropped() {
        for (value, expected) in [(" \t b c\t ", "b c"), ("   ", ""), ("", ""), ("b", "b")] {
            let Ok((section, _)) = read(FieldSectionKind::Trailers, &ResponseLimits::default(), &[("a", value)]) else {
                panic!("valid trailers")
            };
            assert_eq!(section.into_fields().get("a"), Some(expected.as_bytes()), "{value:?}");
        }
    }
}
