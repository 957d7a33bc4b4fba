//! The sending half of the HTTP/1 machine: the output buffer, the body being sent, and the wait for
//! `100 Continue`.

use alloc::vec::Vec;

use super::request;
use super::{BodyLength, SendRequestError};
use crate::output_buffer::OutputBuffer;
use crate::time::MonotonicTimestamp;

/// The number of bytes that the framing of a chunk adds to its payload: the longest size line, and
/// the line end after the payload. A chunk has at most [`OutputBuffer::body_room`] bytes, so that
/// five hexadecimal digits suffice.
const CHUNK_OVERHEAD: usize = "10000\r\n".len() + "\r\n".len();

/// The part of a request's body that is not in the output buffer yet.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
enum UnsentBody {
    /// No body byte is left: the request has no body, or all of its body is in the output.
    #[default]
    Finished,
    Known {
        left: u64,
    },
    Chunked,
    /// The size line of a chunk is in the output, but a part of the chunk's payload is still
    /// missing.
    Chunk {
        left: u64,
    },
}

#[derive(Default, Debug)]
pub(crate) struct RequestSender {
    pub(crate) output: OutputBuffer,
    body: UnsentBody,
    /// The time at which the wait for `100 Continue` ends; `None` if the request's body does not
    /// wait.
    hold_until: Option<MonotonicTimestamp>,
}

impl RequestSender {
    /// Prepares for the body of the request whose head was just written. The body waits for `100
    /// Continue` until the time `hold_until`; `None` means that it does not wait.
    pub(crate) fn begin_body(&mut self, body: BodyLength, hold_until: Option<MonotonicTimestamp>) {
        self.body = match body {
            BodyLength::None | BodyLength::Known(0) => UnsentBody::Finished,
            BodyLength::Known(left) => UnsentBody::Known { left },
            BodyLength::Chunked => UnsentBody::Chunked,
        };
        self.hold_until = hold_until.filter(|_| !self.is_finished());
    }

    pub(crate) fn is_finished(&self) -> bool {
        self.body == UnsentBody::Finished
    }

    pub(crate) fn continue_deadline(&self) -> Option<MonotonicTimestamp> {
        self.hold_until
    }

    /// Ends the wait for `100 Continue`, so that the request's body may be sent.
    pub(crate) fn end_continue_wait(&mut self) {
        self.hold_until = None;
    }

    /// Drops the part of the request's body that the caller has not supplied yet: no more is
    /// expected.
    pub(crate) fn abandon_body(&mut self) {
        self.body = UnsentBody::Finished;
        self.hold_until = None;
        self.output.keep_capacity(false);
    }

    pub(crate) fn body_credit(&self) -> Option<u64> {
        let room = self.output.body_room();
        match self.body {
            UnsentBody::Finished => None,
            _ if self.hold_until.is_some() => Some(0),
            UnsentBody::Known { left } | UnsentBody::Chunk { left } => Some(left.min(room as u64)),
            UnsentBody::Chunked => Some(room.saturating_sub(CHUNK_OVERHEAD) as u64),
        }
    }

    pub(crate) fn append_body(&mut self, data: &[u8]) -> Result<usize, SendRequestError> {
        if data.is_empty() {
            // As a chunk this would end the body.
            return Ok(0);
        }
        let Some(credit) = self.body_credit() else { return Err(SendRequestError::NoBodyExpected) };
        if let UnsentBody::Known { left } = self.body
            && data.len() as u64 > left
        {
            return Err(SendRequestError::BodyTooLong { expected: left });
        }
        let data = &data[..data.len().min(credit as usize)];
        self.fill_body(data.len(), |room| {
            room.copy_from_slice(data);
            data.len()
        })
    }

    /// Appends at most `room` bytes of the request's body. `fill` writes the bytes and returns how
    /// many it wrote. This method returns the same number.
    pub(crate) fn fill_body(
        &mut self,
        room: usize,
        fill: impl FnOnce(&mut [u8]) -> usize,
    ) -> Result<usize, SendRequestError> {
        let Some(credit) = self.body_credit() else { return Err(SendRequestError::NoBodyExpected) };
        let room = room.min(credit as usize);
        if room == 0 {
            return Ok(0);
        }
        let out = self.output.append_buffer();
        let at = out.len();
        if self.body == UnsentBody::Chunked {
            let n = fill_chunk(out, room, fill);
            self.output.keep_capacity(true);
            return Ok(n);
        }
        out.resize(at + room, 0);
        let n = fill(&mut out[at..]).min(room);
        out.truncate(at + n);
        self.advance_body(n as u64);
        Ok(n)
    }

    /// Records that `n` bytes of the request's body were appended to the output or written
    /// directly. The bytes belong to a body of known length, or to a chunk that has begun.
    fn advance_body(&mut self, n: u64) {
        self.body = match self.body {
            UnsentBody::Known { left } if n < left => UnsentBody::Known { left: left - n },
            UnsentBody::Chunk { left } if n < left => UnsentBody::Chunk { left: left - n },
            UnsentBody::Chunk { .. } => {
                self.output.append_buffer().extend_from_slice(b"\r\n");
                UnsentBody::Chunked
            }
            UnsentBody::Known { .. } | UnsentBody::Chunked | UnsentBody::Finished => UnsentBody::Finished,
        };
        self.output.keep_capacity(!self.is_finished());
    }

    pub(crate) fn may_begin_chunk(&self) -> bool {
        self.body == UnsentBody::Chunked && self.hold_until.is_none()
    }

    pub(crate) fn is_in_chunk(&self) -> bool {
        matches!(self.body, UnsentBody::Chunk { .. })
    }

    /// Writes the size line of a chunk of `size` bytes, whose payload follows.
    pub(crate) fn begin_chunk(&mut self, size: u64) {
        let may_begin = self.may_begin_chunk() && size > 0;
        debug_assert!(may_begin, "no chunk may begin");
        if may_begin {
            write_chunk_size(self.output.append_buffer(), size);
            self.body = UnsentBody::Chunk { left: size };
        }
    }

    /// Returns the number of bytes of the request's body that may be written directly to the
    /// socket, without the output buffer. 0 if the output buffer must be used.
    pub(crate) fn direct_body_credit(&self) -> u64 {
        match self.body {
            UnsentBody::Known { left } | UnsentBody::Chunk { left }
                if self.hold_until.is_none() && self.output.pending().is_empty() =>
            {
                left
            }
            _ => 0,
        }
    }

    /// Records that `n` bytes of the request's body were written to the socket without the output
    /// buffer.
    pub(crate) fn advance_direct_body(&mut self, n: u64) {
        debug_assert!(n <= self.direct_body_credit(), "more was sent than allowed");
        let n = n.min(self.direct_body_credit());
        if n > 0 {
            self.output.count_direct_bytes(n);
            self.advance_body(n);
        }
    }

    pub(crate) fn finish_body(&mut self, trailers: &[(&str, &[u8])]) -> Result<(), SendRequestError> {
        match self.body {
            UnsentBody::Known { left } | UnsentBody::Chunk { left } => {
                Err(SendRequestError::BodyTooShort { missing: left })
            }
            UnsentBody::Finished if trailers.is_empty() => Ok(()),
            UnsentBody::Finished => Err(SendRequestError::TrailersWithoutChunks),
            UnsentBody::Chunked => {
                request::check_trailers(trailers)?;
                let out = self.output.append_buffer();
                out.extend_from_slice(b"0\r\n");
                request::write_fields(trailers, out);
                out.extend_from_slice(b"\r\n");
                self.abandon_body();
                Ok(())
            }
        }
    }
}

/// Appends a chunk whose content `fill` writes into a slice of `room` bytes. Returns the number of
/// bytes that `fill` has written; if it is 0, no chunk is appended.
fn fill_chunk(out: &mut Vec<u8>, room: usize, fill: impl FnOnce(&mut [u8]) -> usize) -> usize {
    let at = out.len();
    write_chunk_size(out, room as u64);
    let payload = out.len();
    out.resize(payload + room, 0);
    let n = fill(&mut out[payload..]).min(room);
    out.truncate(payload + n);
    if n == 0 {
        // As a chunk this would end the body.
        out.truncate(at);
        return 0;
    }
    if n < room {
        let mut size = Vec::with_capacity(CHUNK_OVERHEAD);
        write_chunk_size(&mut size, n as u64);
        out.splice(at..payload, size);
    }
    out.extend_from_slice(b"\r\n");
    n
}

/// Appends the size line of a chunk (RFC 9112 section 7.1).
fn write_chunk_size(out: &mut Vec<u8>, size: u64) {
    let digits = (u64::BITS - size.leading_zeros()).div_ceil(4);
    out.extend((0..digits).rev().map(|digit| b"0123456789abcdef"[(size >> (4 * digit)) as usize & 15]));
    out.extend_from_slice(b"\r\n");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output_buffer::OUTPUT_LIMIT;

    #[test]
    fn known_length_body_may_bypass_empty_output() {
        let mut sender = RequestSender::default();
        sender.output.append_buffer().extend_from_slice(b"head");
        sender.begin_body(BodyLength::Known(100), None);
        assert_eq!(sender.direct_body_credit(), 0, "the head comes first");
        sender.output.advance(4);
        assert_eq!(sender.direct_body_credit(), 100);
        sender.advance_direct_body(60);
        assert_eq!(
            (sender.direct_body_credit(), sender.body_credit(), sender.output.end_position()),
            (40, Some(40), 64)
        );
        sender.append_body(&[b'x'; 10]).unwrap();
        assert_eq!(sender.direct_body_credit(), 0, "bytes before these wait");
        sender.output.advance(10);
        sender.advance_direct_body(30);
        assert!(sender.is_finished());
        assert_eq!((sender.direct_body_credit(), sender.body_credit(), sender.output.end_position()), (0, None, 104));
    }

    #[test]
    fn chunk_payload_may_bypass_the_output() {
        let mut sender = RequestSender::default();
        sender.begin_body(BodyLength::Chunked, None);
        sender.begin_chunk(0x1_0000);
        assert_eq!((sender.output.pending(), sender.direct_body_credit()), (&b"10000\r\n"[..], 0));
        sender.output.advance(7);
        assert_eq!(sender.direct_body_credit(), 0x1_0000);
        sender.advance_direct_body(0xffff);
        assert_eq!(sender.finish_body(&[]), Err(SendRequestError::BodyTooShort { missing: 1 }));
        assert_eq!(sender.body_credit(), Some(1));
        assert_eq!(sender.append_body(b"xy"), Ok(1), "only the chunk's rest is taken");
        assert_eq!((sender.output.pending(), sender.output.end_position()), (&b"x\r\n"[..], 7 + 0x1_0000 + 2));
        sender.output.advance(3);
        sender.begin_chunk(2);
        sender.output.advance(3);
        sender.advance_direct_body(2);
        sender.finish_body(&[]).unwrap();
        assert_eq!(sender.output.pending(), b"\r\n0\r\n\r\n");
    }

    #[test]
    fn chunk_size_is_the_number_of_filled_bytes() {
        let mut sender = RequestSender::default();
        sender.begin_body(BodyLength::Chunked, None);
        let fill = |room: &mut [u8], n| {
            room[..n].fill(b'x');
            n
        };
        assert_eq!(sender.fill_body(1000, |room| fill(room, 0)), Ok(0));
        assert_eq!(sender.output.pending(), b"");
        assert_eq!(sender.fill_body(1000, |room| fill(room, 3)), Ok(3));
        assert_eq!(sender.output.pending(), b"3\r\nxxx\r\n");
        sender.output.advance(8);
        assert_eq!(sender.fill_body(16, |room| fill(room, 16)), Ok(16));
        assert_eq!(sender.output.pending(), b"10\r\nxxxxxxxxxxxxxxxx\r\n");
    }

    #[test]
    fn chunked_and_waiting_bodies_use_the_output() {
        let mut sender = RequestSender::default();
        sender.begin_body(BodyLength::Chunked, None);
        assert_eq!(sender.direct_body_credit(), 0);
        sender.begin_body(BodyLength::Known(9), Some(MonotonicTimestamp(7)));
        assert_eq!(sender.direct_body_credit(), 0);
        sender.end_continue_wait();
        assert_eq!(sender.direct_body_credit(), 9);
    }

    #[test]
    fn output_keeps_its_memory_during_a_body() {
        let mut sender = RequestSender::default();
        sender.begin_body(BodyLength::Known(100_000), None);
        assert_eq!(sender.append_body(&[0; 100_000]), Ok(OUTPUT_LIMIT));
        sender.output.advance(OUTPUT_LIMIT);
        assert!(sender.output.append_buffer().capacity() >= OUTPUT_LIMIT);
        let rest = 100_000 - OUTPUT_LIMIT;
        assert_eq!(sender.append_body(&[0; 100_000][..rest]), Ok(rest));
        sender.output.advance(rest);
        assert!(sender.output.append_buffer().capacity() < OUTPUT_LIMIT, "the body is over");
    }

    #[test]
    fn body_credit_ends_at_the_output_limit() {
        let mut sender = RequestSender::default();
        assert_eq!(sender.body_credit(), None);
        sender.begin_body(BodyLength::Known(100_000), Some(MonotonicTimestamp(1)));
        assert_eq!((sender.body_credit(), sender.continue_deadline()), (Some(0), Some(MonotonicTimestamp(1))));
        sender.end_continue_wait();
        sender.output.append_buffer().extend_from_slice(&[0; 36]);
        assert_eq!(sender.body_credit(), Some(OUTPUT_LIMIT as u64 - 36));
        assert_eq!(sender.append_body(&[0; 100_001]), Err(SendRequestError::BodyTooLong { expected: 100_000 }));
        sender.begin_body(BodyLength::Chunked, None);
        assert_eq!(sender.body_credit(), Some((OUTPUT_LIMIT - 36 - CHUNK_OVERHEAD) as u64));
        sender.begin_body(BodyLength::Known(0), Some(MonotonicTimestamp(1)));
        assert_eq!((sender.body_credit(), sender.continue_deadline()), (None, None));
    }
}
