//! Frames on the wire (RFC 9114 §7), and the types of unidirectional streams (§6.2).

use super::varint;
use alloc::vec::Vec;
use core::mem;

pub(crate) mod kind {
    pub(crate) const DATA: u64 = 0x0;
    pub(crate) const HEADERS: u64 = 0x1;
    pub(crate) const CANCEL_PUSH: u64 = 0x3;
    pub(crate) const SETTINGS: u64 = 0x4;
    pub(crate) const PUSH_PROMISE: u64 = 0x5;
    pub(crate) const GOAWAY: u64 = 0x7;
    pub(crate) const MAX_PUSH_ID: u64 = 0xd;

    /// Returns `true` for the types of HTTP/2 frames that HTTP/3 forbids (RFC 9114 §7.2.8).
    pub(crate) fn is_of_http2(kind: u64) -> bool {
        matches!(kind, 0x2 | 0x6 | 0x8 | 0x9)
    }
}

pub(crate) mod setting {
    pub(crate) const QPACK_MAX_TABLE_CAPACITY: u64 = 0x1;
    pub(crate) const MAX_FIELD_SECTION_SIZE: u64 = 0x6;
    pub(crate) const QPACK_BLOCKED_STREAMS: u64 = 0x7;

    /// Returns `true` for the identifiers of HTTP/2 settings that HTTP/3 forbids (RFC 9114
    /// §7.2.4.1, §11.2.2).
    pub(crate) fn is_of_http2(id: u64) -> bool {
        matches!(id, 0x0 | 0x2..=0x5)
    }
}

pub(crate) mod stream_type {
    pub(crate) const CONTROL: u64 = 0x0;
    pub(crate) const PUSH: u64 = 0x1;
    pub(crate) const QPACK_ENCODER: u64 = 0x2;
    pub(crate) const QPACK_DECODER: u64 = 0x3;
}

/// Appends the header of a frame: its type and the length of its payload.
pub(crate) fn header(kind: u64, length: u64, out: &mut Vec<u8>) {
    varint::encode(kind, out);
    varint::encode(length, out);
}

/// Appends a SETTINGS frame with these identifiers and values.
pub(crate) fn settings(entries: &[(u64, u64)], out: &mut Vec<u8>) {
    let mut payload = Vec::new();
    for &(id, value) in entries {
        varint::encode(id, &mut payload);
        varint::encode(value, &mut payload);
    }
    header(kind::SETTINGS, payload.len() as u64, out);
    out.extend_from_slice(&payload);
}

/// Appends the GOAWAY frame of a client. It refuses all pushes: its push identifier is 0.
pub(crate) fn go_away(out: &mut Vec<u8>) {
    header(kind::GOAWAY, 1, out);
    varint::encode(0, out);
}

/// The header of an HTTP/3 frame: its type and the length of its payload.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct H3FrameHeader {
    pub(crate) kind: u64,
    pub(crate) length: u64,
}

impl H3FrameHeader {
    fn decode(input: &mut &[u8]) -> Option<H3FrameHeader> {
        Some(H3FrameHeader { kind: varint::decode(input)?, length: varint::decode(input)? })
    }
}

/// The part of a frame that comes next in the input of a stream.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub(crate) enum H3FrameReadState {
    /// A frame header comes next. The field `partial` of the reader contains the bytes of the
    /// header that have arrived.
    #[default]
    Header,
    /// The payload of a frame comes next; it is buffered until it is complete. The field `partial`
    /// of the reader contains the bytes that have arrived.
    Payload(H3FrameHeader),
    /// Payload of DATA comes next. The value is the number of bytes that have not arrived.
    Data(u64),
    /// Payload to skip comes next. The value is the number of bytes that have not arrived.
    Skip(u64),
}

/// The state of reading the frames of one QUIC stream.
#[derive(Debug, Default)]
pub(crate) struct H3FrameReader {
    pub(crate) state: H3FrameReadState,
    pub(crate) partial: Vec<u8>,
}

impl H3FrameReader {
    /// Returns `true` if the input so far ends exactly at the end of a frame.
    pub(crate) fn is_at_boundary(&self) -> bool {
        let is_header =
            matches!(self.state, H3FrameReadState::Header | H3FrameReadState::Data(0) | H3FrameReadState::Skip(0));
        is_header && self.partial.is_empty()
    }

    /// Reads bytes of a frame header. Returns the number of bytes consumed, and the header; `None`
    /// if the header is incomplete. When the header is complete, the caller sets the field `state`
    /// of this reader according to the type of the frame.
    pub(crate) fn read_header(&mut self, input: &[u8]) -> (usize, Option<H3FrameHeader>) {
        if self.partial.is_empty() {
            let mut rest = input;
            if let Some(header) = H3FrameHeader::decode(&mut rest) {
                return (input.len() - rest.len(), Some(header));
            }
        }
        for (at, &byte) in input.iter().enumerate() {
            self.partial.push(byte);
            if let Some(header) = H3FrameHeader::decode(&mut &self.partial[..]) {
                self.partial.clear();
                return (at + 1, Some(header));
            }
        }
        (input.len(), None)
    }

    /// Buffers bytes of a frame's payload, which has `length` bytes in all. Returns the number of
    /// bytes consumed, and the payload; `None` if the payload is incomplete.
    pub(crate) fn buffer_payload(&mut self, length: u64, input: &[u8]) -> (usize, Option<Vec<u8>>) {
        let missing = length as usize - self.partial.len();
        let take = missing.min(input.len());
        self.partial.extend_from_slice(&input[..take]);
        if take < missing {
            return (take, None);
        }
        self.state = H3FrameReadState::Header;
        (take, Some(mem::take(&mut self.partial)))
    }

    /// Skips up to `left` bytes of a frame's payload. Returns the number of bytes consumed.
    pub(crate) fn skip_payload(&mut self, left: u64, input: &[u8]) -> usize {
        let take = left.min(input.len() as u64);
        self.state = if take < left { H3FrameReadState::Skip(left - take) } else { H3FrameReadState::Header };
        take as usize
    }
}
