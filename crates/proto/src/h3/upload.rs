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
        let stream = self.requests.get(id.0)?;
        let room = OUTPUT_LIMIT.saturating_sub(self.outputs.pending_bytes(id.0).unwrap_or(OUTPUT_LIMIT)) as u64;
        match stream.upload {
            RemainingRequestBody::Finished | RemainingRequestBody::Abandoned => None,
            _ if stream.hold_until.is_some() || self.has_failed_or_ended() => Some(0),
            RemainingRequestBody::Known { left } => Some(left.min(room)),
            RemainingRequestBody::Open => Some(room),
        }
    }

    /// Appends body bytes to the output of the request's stream, in one DATA frame. Returns the
    /// number of bytes accepted: all of `data`, or as much as [`H3Machine::body_credit`] allowed.
    /// The last byte of a body of known length ends the stream.
    pub fn send_body(&mut self, id: RequestId, data: &[u8]) -> Result<usize, SendRequestError> {
        let credit = self.body_credit(id).ok_or_else(|| self.missing_body_error(id))?;
        let Some(stream) = self.requests.get_mut(id.0) else { return Err(SendRequestError::UnknownRequest) };
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
        let Some(stream) = self.requests.get_mut(id.0) else { return Err(self.missing_body_error(id)) };
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

    fn missing_body_error(&self, id: RequestId) -> SendRequestError {
        match self.closing {
            _ if self.requests.get(id.0).is_some() => SendRequestError::NoBodyExpected,
            Some(reason) => SendRequestError::Closed(reason),
            None => SendRequestError::UnknownRequest,
        }
    }
}
