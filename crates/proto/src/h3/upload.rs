//! Sends request bodies: DATA frames, and the end of the stream.

use super::frame::{self, kind};
use super::machine::H3Machine;
use super::{RequestId, SendRequestError};
use crate::request_section_writer;
use crate::stream_exchange_progress::RemainingRequestBody;

/// The number of unsent bytes in a request's output at which no more of its body is accepted. QUIC
/// sends about 45 KiB in one system call, and accepts further bytes soon afterwards.
pub(crate) const OUTPUT_LIMIT: usize = 32 * 1024;

impl H3Machine {
    /// Returns the number of bytes that [`H3Machine::send_body`] accepts now of this request's
    /// body; `None` if no more body bytes are expected. At most 32 KiB of unsent output are
    /// buffered for each request.
    pub fn body_credit(&self, id: RequestId) -> Option<u64> {
        self.requests.get(id.0)?.body_credit(self.body_room(id))
    }

    /// Returns the number of bytes that the output of a request's stream has room for; 0 if the
    /// connection has ended.
    fn body_room(&self, id: RequestId) -> u64 {
        match self.outputs.pending_bytes(id.0) {
            Some(pending) if !self.has_failed_or_ended() => OUTPUT_LIMIT.saturating_sub(pending) as u64,
            _ => 0,
        }
    }

    /// Appends body bytes to the output of the request's stream, in one DATA frame. Returns the
    /// number of bytes accepted: all of `data`, or as much as [`H3Machine::body_credit`] allowed.
    /// The last byte of a body of known length ends the stream.
    pub fn send_body(&mut self, id: RequestId, data: &[u8]) -> Result<usize, SendRequestError> {
        let room = self.body_room(id);
        let Some(stream) = self.requests.get_mut(id.0) else { return Err(self.unknown_request_error()) };
        let credit = stream.body_credit(room).ok_or(SendRequestError::NoBodyExpected)?;
        if let RemainingRequestBody::Known { left } = stream.upload
            && data.len() as u64 > left
        {
            return Err(SendRequestError::BodyTooLong { expected: left });
        }
        let data = &data[..data.len().min(credit as usize)];
        if data.is_empty() {
            return Ok(0);
        }
        if let RemainingRequestBody::Known { left } = &mut stream.upload {
            *left -= data.len() as u64;
            if *left == 0 {
                stream.upload = RemainingRequestBody::Finished;
            }
        }
        let finished = stream.upload == RemainingRequestBody::Finished;
        self.outputs.append(id.0, finished, |out| {
            frame::header(kind::DATA, data.len() as u64, out);
            out.extend_from_slice(data);
        });
        self.tally.count_useful(1);
        if finished {
            self.complete_before_request(id.0);
        }
        Ok(data.len())
    }

    /// Ends the request's body. After a body of unknown length, sends the given trailers. For a
    /// body of known length, checks that the caller gave all bytes.
    pub fn finish_body(&mut self, id: RequestId, trailers: &[(&str, &[u8])]) -> Result<(), SendRequestError> {
        let Some(stream) = self.requests.get_mut(id.0) else { return Err(self.unknown_request_error()) };
        match stream.upload {
            RemainingRequestBody::Known { left } => Err(SendRequestError::BodyTooShort { missing: left }),
            RemainingRequestBody::Finished if !trailers.is_empty() => Err(SendRequestError::TrailersWithoutChunks),
            RemainingRequestBody::Finished | RemainingRequestBody::Abandoned => Ok(()),
            RemainingRequestBody::Open => {
                request_section_writer::check_trailers(trailers)?;
                stream.upload = RemainingRequestBody::Finished;
                let is_held = stream.hold_until.take().is_some();
                self.holding -= u32::from(is_held);
                if trailers.is_empty() {
                    self.outputs.append(id.0, true, |_| {});
                } else {
                    self.encoder.begin_section();
                    request_section_writer::write_trailers(trailers, &mut self.encoder, &mut self.name);
                    self.finish_request_section(id.0, true);
                }
                self.complete_before_request(id.0);
                Ok(())
            }
        }
    }

    /// Returns the error for a request that is not open. A closing connection may have dropped the
    /// request, so that the caller made no mistake.
    fn unknown_request_error(&self) -> SendRequestError {
        self.closing.map_or(SendRequestError::UnknownRequest, SendRequestError::Closed)
    }
}
