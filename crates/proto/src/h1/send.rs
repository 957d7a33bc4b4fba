//! The sending half of the HTTP/1 machine: the output buffer, the body being sent, and the wait for
//! `100 Continue`.

use super::request;
use super::{BodyLength, RequestError};
use crate::output_buffer::OutputBuffer;
use crate::time::Timestamp;

/// The number of unsent bytes in the output from which on no more body bytes are accepted. 64 KiB
/// fill a socket's buffer in one write and bound the memory of a connection.
pub(crate) const OUTPUT_LIMIT: usize = 64 * 1024;

/// The number of bytes that the framing of a chunk adds to its payload: the longest possible size
/// line of a chunk within [`OUTPUT_LIMIT`], and the line end after the payload.
const CHUNK_OVERHEAD: usize = "10000\r\n".len() + "\r\n".len();

#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
enum UnsentBody {
    /// The request has no body, or all of its body is in the output.
    #[default]
    Finished,
    Known {
        left: u64,
    },
    Chunked,
}

#[derive(Default, Debug)]
pub(crate) struct RequestSender {
    pub(crate) output: OutputBuffer,
    body: UnsentBody,
    /// The time at which the wait for `100 Continue` ends; `None` if the request's body does not
    /// wait.
    hold_until: Option<Timestamp>,
}

impl RequestSender {
    /// Prepares for the body of the request whose head was just written. If there is a
    /// `hold_until`, the body waits for `100 Continue` until that time.
    pub(crate) fn begin(&mut self, body: BodyLength, hold_until: Option<Timestamp>) {
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

    pub(crate) fn hold_until(&self) -> Option<Timestamp> {
        self.hold_until
    }

    /// Ends the wait for `100 Continue`, so that the request's body may be sent.
    pub(crate) fn release(&mut self) {
        self.hold_until = None;
    }

    /// Gives up the part of the request's body that the caller has not given yet.
    pub(crate) fn abandon(&mut self) {
        self.body = UnsentBody::Finished;
        self.hold_until = None;
    }

    pub(crate) fn credit(&self) -> Option<u64> {
        let room = OUTPUT_LIMIT.saturating_sub(self.output.pending().len());
        match self.body {
            UnsentBody::Finished => None,
            _ if self.hold_until.is_some() => Some(0),
            UnsentBody::Known { left } => Some(left.min(room as u64)),
            UnsentBody::Chunked => Some(room.saturating_sub(CHUNK_OVERHEAD) as u64),
        }
    }

    pub(crate) fn send(&mut self, data: &[u8]) -> Result<usize, RequestError> {
        if data.is_empty() {
            // As a chunk this would end the body.
            return Ok(0);
        }
        let Some(credit) = self.credit() else { return Err(RequestError::NoBodyExpected) };
        if let UnsentBody::Known { left } = self.body
            && data.len() as u64 > left
        {
            return Err(RequestError::BodyTooLong { expected: left });
        }
        let data = &data[..data.len().min(credit as usize)];
        if data.is_empty() {
            return Ok(0);
        }
        match &mut self.body {
            UnsentBody::Known { left } => {
                *left -= data.len() as u64;
                if *left == 0 {
                    self.body = UnsentBody::Finished;
                }
                self.output.tail().extend_from_slice(data);
            }
            _ => self.chunk(data),
        }
        Ok(data.len())
    }

    /// Returns the number of body bytes that may be sent past the output; 0 if none may.
    pub(crate) fn direct_credit(&self) -> u64 {
        match self.body {
            UnsentBody::Known { left } if self.hold_until.is_none() && self.output.pending().is_empty() => left,
            _ => 0,
        }
    }

    /// Records body bytes that were sent past the output.
    pub(crate) fn advance_direct(&mut self, n: u64) {
        debug_assert!(n <= self.direct_credit(), "more was sent than allowed");
        let UnsentBody::Known { left } = self.body else { return };
        let n = n.min(left);
        self.output.skip(n);
        self.body = if n == left { UnsentBody::Finished } else { UnsentBody::Known { left: left - n } };
    }

    fn chunk(&mut self, data: &[u8]) {
        let out = self.output.tail();
        out.reserve(data.len() + CHUNK_OVERHEAD);
        let digits = (usize::BITS - data.len().leading_zeros()).div_ceil(4);
        out.extend((0..digits).rev().map(|digit| b"0123456789abcdef"[(data.len() >> (4 * digit)) & 15]));
        out.extend_from_slice(b"\r\n");
        out.extend_from_slice(data);
        out.extend_from_slice(b"\r\n");
    }

    pub(crate) fn finish(&mut self, trailers: &[(&str, &[u8])]) -> Result<(), RequestError> {
        match self.body {
            UnsentBody::Known { left } => Err(RequestError::BodyTooShort { missing: left }),
            UnsentBody::Finished if trailers.is_empty() => Ok(()),
            UnsentBody::Finished => Err(RequestError::TrailersWithoutChunks),
            UnsentBody::Chunked => {
                request::check_trailers(trailers)?;
                let out = self.output.tail();
                out.extend_from_slice(b"0\r\n");
                request::write_fields(trailers, out);
                out.extend_from_slice(b"\r\n");
                self.abandon();
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn body_of_known_length_is_sent_past_an_empty_output() {
        let mut sender = RequestSender::default();
        sender.output.tail().extend_from_slice(b"head");
        sender.begin(BodyLength::Known(100), None);
        assert_eq!(sender.direct_credit(), 0, "the head comes first");
        sender.output.advance(4);
        assert_eq!(sender.direct_credit(), 100);
        sender.advance_direct(60);
        assert_eq!((sender.direct_credit(), sender.credit(), sender.output.position()), (40, Some(40), 64));
        sender.send(&[b'x'; 10]).unwrap();
        assert_eq!(sender.direct_credit(), 0, "bytes before these wait");
        sender.output.advance(10);
        sender.advance_direct(30);
        assert!(sender.is_finished());
        assert_eq!((sender.direct_credit(), sender.credit(), sender.output.position()), (0, None, 104));
    }

    #[test]
    fn chunked_and_held_bodies_are_not_sent_past_the_output() {
        let mut sender = RequestSender::default();
        sender.begin(BodyLength::Chunked, None);
        assert_eq!(sender.direct_credit(), 0);
        sender.begin(BodyLength::Known(9), Some(Timestamp(7)));
        assert_eq!(sender.direct_credit(), 0);
        sender.release();
        assert_eq!(sender.direct_credit(), 9);
    }
}
