//! Decodes a header block into a head or trailers (RFC 9113 §8.1 to §8.3).
//!
//! Lines are decoded straight into the buffer of the result. A malformed block is still decoded to
//! its end, so that the dynamic table stays the same as the peer's, but its fields are dropped.

use super::error::{FieldFault, H2Error};
use crate::ResponseLimits;
use crate::fields::{FieldSpan, Fields};
use crate::head::{ProtocolVersion, ResponseHead};
use crate::hpack::{DecodedFieldLine, HeaderBlock, HpackDecoder};
use crate::response_error::ResponseError;
use crate::syntax::is_tchar;
use alloc::vec::Vec;

/// The kind of a header block, which determines the rules for its fields.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum FieldSectionKind {
    /// The head of a response. `before` is the number of bytes in earlier (interim) heads of this
    /// response.
    Head {
        before: usize,
    },
    Trailers,
    /// A header block on a closed stream. It is decoded only so that the dynamic table stays equal
    /// to the peer's.
    Unwanted,
}

/// The factor by which a header block may exceed the size limit of a head before the connection is
/// ended. Up to that size, a block is decoded only so that the dynamic table stays equal to the
/// peer's. A limit is needed because a block of 300 KiB can expand to a gigabyte.
const FOLLOWED: usize = 16;

/// A decoded header block that is well-formed: a head or trailers.
pub(crate) struct DecodedFieldSection {
    /// The status code of a head; 0 for trailers.
    status: u16,
    fields: Fields,
    /// The size of the field section, counted as in RFC 9113 §6.5.2.
    pub(crate) size: usize,
}

const STATUS_LINE: &[u8] = b"HTTP/2 200 \r\n";

impl DecodedFieldSection {
    pub(crate) fn into_head(self) -> ResponseHead {
        let end = STATUS_LINE.len() as u32 - 2;
        ResponseHead::new(ProtocolVersion::Http2, self.status, (end, end), self.fields)
    }

    pub(crate) fn into_fields(self) -> Fields {
        self.fields
    }
}

/// The size of the field section that was decoded last. The buffers for the next one are allocated
/// in this size, since it is likely to be similar.
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

/// Decodes a header block. The outer error ends the connection, the inner one only the stream.
pub(crate) fn decode(
    decoder: &mut HpackDecoder,
    block: &[u8],
    section: FieldSectionKind,
    limits: &ResponseLimits,
    hint: &mut FieldSectionSizeHint,
) -> Result<Result<DecodedFieldSection, H2Error>, H2Error> {
    let mut reading = FieldSectionReader {
        section,
        limits,
        text: Vec::with_capacity(hint.bytes),
        spans: Vec::with_capacity(hint.fields),
        status: 0,
        count: 0,
        size: 0,
    };
    let mut block = HeaderBlock::new(block);
    let (mut fault, mut unwanted) = (None, 0);
    loop {
        let start = reading.text.len();
        let Some(line) = decoder.line(&mut block, &mut reading.text).map_err(H2Error::Hpack)? else { break };
        if section == FieldSectionKind::Unwanted || fault.is_some() {
            reading.text.truncate(start);
            unwanted += line.value.end - start;
            if unwanted > limits.head_bytes.saturating_mul(FOLLOWED) {
                return Err(H2Error::Response(ResponseError::HeadTooLarge { limit: limits.head_bytes }));
            }
        } else if let Err(error) = reading.line(line) {
            fault = Some(error);
            reading.text.clear();
        }
    }
    if let Some(fault) = fault {
        return Ok(Err(fault));
    }
    if matches!(section, FieldSectionKind::Head { .. }) && reading.status == 0 {
        return Ok(Err(H2Error::Field(FieldFault::MissingStatus)));
    }
    reading.text.extend_from_slice(b"\r\n");
    // A large section is rare, and should not make the allocation for all others large.
    *hint = FieldSectionSizeHint { bytes: reading.text.len().min(4_096) + 16, fields: reading.spans.len().min(64) + 1 };
    let fields = Fields::new(reading.text, reading.spans);
    Ok(Ok(DecodedFieldSection { status: reading.status, fields, size: reading.size }))
}

struct FieldSectionReader<'a> {
    section: FieldSectionKind,
    limits: &'a ResponseLimits,
    text: Vec<u8>,
    spans: Vec<FieldSpan>,
    status: u16,
    count: usize,
    size: usize,
}

impl FieldSectionReader<'_> {
    fn line(&mut self, line: DecodedFieldLine) -> Result<(), H2Error> {
        let DecodedFieldLine { name, mut value, .. } = line;
        self.count += 1;
        self.size += name.len() + value.len() + 32;
        self.check_size()?;
        let is_pseudo = self.text[name.clone()].first() == Some(&b':');
        if is_pseudo {
            let status = self.pseudo(&self.text[name.clone()], &self.text[value])?;
            self.status = status;
            self.text.truncate(name.start);
            self.text.extend_from_slice(STATUS_LINE);
            for (place, digit) in [status / 100, status / 10 % 10, status % 10].into_iter().enumerate() {
                self.text[name.start + "HTTP/2 ".len() + place] = b'0' + digit as u8;
            }
            return Ok(());
        }
        check_name(&self.text[name.clone()])?;
        let text = &self.text[value.clone()];
        if !text.iter().all(|&byte| VALUE[usize::from(byte)]) {
            return Err(H2Error::Field(FieldFault::Value));
        }
        if is_connection_specific(&self.text[name.clone()]) {
            return Err(H2Error::Field(FieldFault::ConnectionSpecific));
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

    fn check_size(&self) -> Result<(), H2Error> {
        let limits = self.limits;
        match self.section {
            FieldSectionKind::Trailers if self.size > limits.trailer_bytes => {
                Err(H2Error::Response(ResponseError::TrailersTooLarge { limit: limits.trailer_bytes }))
            }
            FieldSectionKind::Trailers if self.count > limits.trailer_fields => {
                Err(H2Error::Response(ResponseError::TooManyTrailers { limit: limits.trailer_fields }))
            }
            FieldSectionKind::Head { before } if before + self.size > limits.head_bytes => {
                Err(H2Error::Response(ResponseError::HeadTooLarge { limit: limits.head_bytes }))
            }
            // The pseudo-field is not kept among the fields.
            FieldSectionKind::Head { .. } if self.count > limits.head_fields + 1 => {
                Err(H2Error::Response(ResponseError::TooManyFields { limit: limits.head_fields }))
            }
            _ => Ok(()),
        }
    }

    fn pseudo(&self, name: &[u8], value: &[u8]) -> Result<u16, H2Error> {
        let fault = |fault| Err(H2Error::Field(fault));
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
                    // RFC 9113 §8.6: HTTP/2 does not support 101.
                    101 => fault(FieldFault::Status),
                    status => Ok(status),
                }
            }
            _ => fault(FieldFault::Status),
        }
    }
}

/// The bytes allowed in a field value, with HTTP/1's rules: true at the index of each allowed byte.
static VALUE: [bool; 256] = {
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
static NAME: [bool; 256] = {
    let mut allowed = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        allowed[byte] = is_tchar(byte as u8) && !(byte as u8).is_ascii_uppercase();
        byte += 1;
    }
    allowed
};

fn check_name(name: &[u8]) -> Result<(), H2Error> {
    if !name.is_empty() && name.iter().all(|&byte| NAME[usize::from(byte)]) {
        return Ok(());
    }
    let token = !name.is_empty() && name.iter().all(|&byte| is_tchar(byte));
    Err(H2Error::Field(if token { FieldFault::Uppercase } else { FieldFault::Name }))
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
