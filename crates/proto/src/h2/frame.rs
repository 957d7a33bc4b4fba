//! Frames on the wire (RFC 9113 §4.1, §6).

use super::ErrorCode;
use alloc::vec::Vec;

/// The length of a frame's header in bytes.
pub(crate) const HEADER_LENGTH: usize = 9;

/// The connection preface: the first bytes that a client sends (RFC 9113 §3.4).
pub(crate) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// The largest size of a flow-control window, and the largest increment in a WINDOW_UPDATE (RFC
/// 9113 §6.9).
pub(crate) const MAX_WINDOW: i64 = 0x7fff_ffff;

/// The size in bytes of every flow-control window before any SETTINGS or WINDOW_UPDATE (RFC 9113
/// §6.9.2).
pub(crate) const INITIAL_WINDOW: u32 = 65_535;

/// The allowed values of `SETTINGS_MAX_FRAME_SIZE` (RFC 9113 §6.5.2).
pub(crate) const FRAME_SIZES: core::ops::RangeInclusive<u32> = 16_384..=16_777_215;

pub(crate) mod kind {
    pub(crate) const DATA: u8 = 0;
    pub(crate) const HEADERS: u8 = 1;
    pub(crate) const PRIORITY: u8 = 2;
    pub(crate) const RST_STREAM: u8 = 3;
    pub(crate) const SETTINGS: u8 = 4;
    pub(crate) const PUSH_PROMISE: u8 = 5;
    pub(crate) const PING: u8 = 6;
    pub(crate) const GOAWAY: u8 = 7;
    pub(crate) const WINDOW_UPDATE: u8 = 8;
    pub(crate) const CONTINUATION: u8 = 9;
}

pub(crate) mod flag {
    pub(crate) const END_STREAM: u8 = 0x1;
    pub(crate) const ACK: u8 = 0x1;
    pub(crate) const END_HEADERS: u8 = 0x4;
    pub(crate) const PADDED: u8 = 0x8;
    pub(crate) const PRIORITY: u8 = 0x20;
}

pub(crate) mod setting {
    pub(crate) const HEADER_TABLE_SIZE: u16 = 1;
    pub(crate) const ENABLE_PUSH: u16 = 2;
    pub(crate) const MAX_CONCURRENT_STREAMS: u16 = 3;
    pub(crate) const INITIAL_WINDOW_SIZE: u16 = 4;
    pub(crate) const MAX_FRAME_SIZE: u16 = 5;
    pub(crate) const MAX_HEADER_LIST_SIZE: u16 = 6;
}

/// The header of an HTTP/2 frame: its length, type, flags and stream.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct FrameHeader {
    pub(crate) length: u32,
    pub(crate) kind: u8,
    pub(crate) flags: u8,
    pub(crate) stream: u32,
}

impl FrameHeader {
    pub(crate) fn read(bytes: &[u8; HEADER_LENGTH]) -> FrameHeader {
        let [a, b, c, kind, flags, stream @ ..] = *bytes;
        FrameHeader {
            length: u32::from_be_bytes([0, a, b, c]),
            kind,
            flags,
            // The highest bit is reserved and ignored.
            stream: u32::from_be_bytes(stream) & 0x7fff_ffff,
        }
    }

    pub(crate) fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }
}

pub(crate) fn header(length: usize, kind: u8, flags: u8, stream: u32) -> [u8; HEADER_LENGTH] {
    let [_, a, b, c] = (length as u32).to_be_bytes();
    let [d, e, f, g] = stream.to_be_bytes();
    [a, b, c, kind, flags, d, e, f, g]
}

pub(crate) fn settings(entries: &[(u16, u32)], out: &mut Vec<u8>) {
    out.extend_from_slice(&header(entries.len() * 6, kind::SETTINGS, 0, 0));
    for (id, value) in entries {
        out.extend_from_slice(&id.to_be_bytes());
        out.extend_from_slice(&value.to_be_bytes());
    }
}

pub(crate) fn settings_ack(out: &mut Vec<u8>) {
    out.extend_from_slice(&header(0, kind::SETTINGS, flag::ACK, 0));
}

pub(crate) fn ping(flags: u8, payload: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&header(8, kind::PING, flags, 0));
    out.extend_from_slice(payload);
}

pub(crate) fn window_update(stream: u32, increment: u32, out: &mut Vec<u8>) {
    out.extend_from_slice(&header(4, kind::WINDOW_UPDATE, 0, stream));
    out.extend_from_slice(&increment.to_be_bytes());
}

pub(crate) fn rst_stream(stream: u32, code: ErrorCode, out: &mut Vec<u8>) {
    out.extend_from_slice(&header(4, kind::RST_STREAM, 0, stream));
    out.extend_from_slice(&code.0.to_be_bytes());
}

/// Writes a GOAWAY frame. Its last stream is 0, since push is off and the peer has opened no
/// streams.
pub(crate) fn go_away(code: ErrorCode, out: &mut Vec<u8>) {
    out.extend_from_slice(&header(8, kind::GOAWAY, 0, 0));
    out.extend_from_slice(&0u32.to_be_bytes());
    out.extend_from_slice(&code.0.to_be_bytes());
}

/// Splits the header block that begins at `start` in `out` into HEADERS and CONTINUATION frames
/// with at most `max_frame` bytes of payload. The caller has left room before `start` for the
/// header of the first frame. `stream` is the identifier of the stream; if `end_stream` is true,
/// the frames end it.
pub(crate) fn split_into_frames(start: usize, stream: u32, end_stream: bool, max_frame: u32, out: &mut Vec<u8>) {
    let max_frame = max_frame as usize;
    let length = out.len() - start - HEADER_LENGTH;
    let end = if end_stream { flag::END_STREAM } else { 0 };
    if length <= max_frame {
        out[start..start + HEADER_LENGTH].copy_from_slice(&header(
            length,
            kind::HEADERS,
            end | flag::END_HEADERS,
            stream,
        ));
        return;
    }
    // Rare: a block above the peer's frame size (16 KiB at least).
    let rest = out.split_off(start + HEADER_LENGTH + max_frame);
    out[start..start + HEADER_LENGTH].copy_from_slice(&header(max_frame, kind::HEADERS, end, stream));
    let mut fragments = rest.chunks(max_frame).peekable();
    while let Some(fragment) = fragments.next() {
        let last = if fragments.peek().is_none() { flag::END_HEADERS } else { 0 };
        out.extend_from_slice(&header(fragment.len(), kind::CONTINUATION, last, stream));
        out.extend_from_slice(fragment);
    }
}
