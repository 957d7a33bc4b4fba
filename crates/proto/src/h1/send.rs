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
