//! The receiving half of a request's stream: frames and response bodies.
//!
//! Payload of DATA is never buffered: it is delivered as it arrives, however the frame is cut. A
//! field section is decoded in place if it is complete in the input, else from a buffer.

use super::frame::{H3FrameHeader, H3FrameReadState, kind};
use super::machine::H3Machine;
use super::{
    H3Error, H3ErrorCode, H3Event, H3FloodKind, H3FrameFault, H3IllegalStreamOpenOrClose, H3ResetReason, H3SendStream,
    H3Step, RequestId,
};
use crate::response_error::ResponseError;
use crate::stream_exchange_progress::{RemainingRequestBody, ResponsePhase};
use crate::time::MonotonicTimestamp;
use alloc::borrow::Cow;
use core::mem;

impl H3Machine {
    pub(crate) fn receive(
        &mut self,
        now: MonotonicTimestamp,
        stream: u64,
        input: &[u8],
        fin: bool,
    ) -> Result<H3Step, H3Error> {
        if let Some(event) = self.due.pop_front() {
            return Ok(H3Step { consumed: 0, event });
        }
        // The low bits of an identifier say who opened the stream, and its directions (RFC 9000
        // §2.1).
        let consumed = match stream & 3 {
            0 => return self.receive_response(now, stream, input, fin),
            1 => return Err(H3Error::Stream(H3IllegalStreamOpenOrClose::ServerBidirectional)),
            3 => self.receive_uni_stream(now, stream, input, fin)?,
            _ => input.len(),
        };
        let event = self.due.pop_front().unwrap_or(H3Event::NeedInput);
        Ok(H3Step { consumed, event })
    }

    fn receive_response(
        &mut self,
        now: MonotonicTimestamp,
        id: u64,
        input: &[u8],
        fin: bool,
    ) -> Result<H3Step, H3Error> {
        let mut at = 0;
        loop {
            if let Some(event) = self.due.pop_front() {
                return Ok(H3Step { consumed: at, event });
            }
            let rest = &input[at..];
            let Some(stream) = self.requests.get_mut(id) else {
                return Ok(H3Step { consumed: input.len(), event: H3Event::NeedInput });
            };
            stream.started |= !rest.is_empty();
            if let Some(required) = stream.waits_for {
                if required > self.decoder.insert_count() {
                    return Ok(H3Step { consumed: at, event: H3Event::Blocked { id: RequestId(id) } });
                }
                stream.waits_for = None;
                let payload = mem::take(&mut stream.reader.partial);
                self.buffered -= payload.len();
                self.on_section(id, Cow::Owned(payload), fin && rest.is_empty())?;
                continue;
            }
            if let H3FrameReadState::Data(left) = stream.reader.state
                && !rest.is_empty()
            {
                let take = left.min(rest.len() as u64);
                stream.reader.state =
                    if take < left { H3FrameReadState::Data(left - take) } else { H3FrameReadState::Header };
                let range = at..at + take as usize;
                return Ok(H3Step { consumed: range.end, event: H3Event::Body { id: RequestId(id), range } });
            }
            if !rest.is_empty() {
                at += self.consume_input(now, id, rest, fin)?;
            } else if fin && stream.phase != ResponsePhase::Ended {
                self.on_stream_end(id)?;
            } else {
                return Ok(H3Step { consumed: at, event: H3Event::NeedInput });
            }
        }
    }

    /// Consumes input bytes that are not payload of DATA, and returns their number. `input` must
    /// not be empty. `fin` is true if the stream ends after `input`.
    fn consume_input(&mut self, now: MonotonicTimestamp, id: u64, input: &[u8], fin: bool) -> Result<usize, H3Error> {
        let Some(stream) = self.requests.get_mut(id) else { return Ok(input.len()) };
        match stream.reader.state {
            H3FrameReadState::Header => {
                let (consumed, header) = stream.reader.read_header(input);
                match header {
                    Some(header) => Ok(consumed + self.begin_frame(now, id, header, &input[consumed..], fin)?),
                    None => Ok(consumed),
                }
            }
            H3FrameReadState::Payload(header) => self.gather_section(id, header, input, fin),
            H3FrameReadState::Skip(left) => Ok(stream.reader.skip_payload(left, input)),
            // Not reached: the caller handles it first.
            H3FrameReadState::Data(_) => Ok(0),
        }
    }

    /// Begins a frame whose header has been read. `behind` is the input after the header. `fin` is
    /// true if the stream ends after `behind`. Returns the number of bytes of `behind` that were
    /// consumed.
    fn begin_frame(
        &mut self,
        now: MonotonicTimestamp,
        id: u64,
        header: H3FrameHeader,
        behind: &[u8],
        fin: bool,
    ) -> Result<usize, H3Error> {
        let H3FrameHeader { kind, length } = header;
        let Some(stream) = self.requests.get_mut(id) else { return Ok(behind.len()) };
        match kind {
            kind::DATA | kind::HEADERS if stream.is_trailed => Err(H3Error::Frame(H3FrameFault::AfterTrailers)),
            kind::HEADERS if stream.is_tunnel => Err(H3Error::Frame(H3FrameFault::WrongStream { kind })),
            kind::DATA => self.on_data_header(now, id, length).map(|()| 0),
            kind::HEADERS => {
                let limit = self.config.limits.head_bytes.max(self.config.limits.trailer_bytes);
                // Before any of it is buffered.
                if length > limit as u64 {
                    self.reset_for_violation(id, H3Error::Response(ResponseError::HeadTooLarge { limit }));
                    return Ok(0);
                }
                let length = length as usize;
                if let Some((payload, after)) = behind.split_at_checked(length) {
                    self.on_section(id, Cow::Borrowed(payload), fin && after.is_empty())?;
                    return Ok(length);
                }
                stream.reader.state = H3FrameReadState::Payload(header);
                Ok(0)
            }
            kind::PUSH_PROMISE => Err(H3Error::Push),
            kind::CANCEL_PUSH | kind::SETTINGS | kind::GOAWAY | kind::MAX_PUSH_ID => {
                Err(H3Error::Frame(H3FrameFault::WrongStream { kind }))
            }
            _ => {
                if length > 0 {
                    stream.reader.state = H3FrameReadState::Skip(length);
                }
                self.check_unknown_frame(now, header).map(|()| 0)
            }
        }
    }

    /// Counts a frame, on any stream, whose type RFC 9114 does not define. Fails if too many such
    /// frames arrived, or if the type is that of an HTTP/2 frame that HTTP/3 forbids.
    pub(crate) fn check_unknown_frame(
        &mut self,
        now: MonotonicTimestamp,
        header: H3FrameHeader,
    ) -> Result<(), H3Error> {
        let H3FrameHeader { kind, length } = header;
        if kind::is_of_http2(kind) {
            return Err(H3Error::Frame(H3FrameFault::WrongStream { kind }));
        }
        // A frame of any length is skipped (RFC 9114 §9). A long one counts like many.
        let further = length / u64::from(self.config.max_frame_size).max(1);
        let count = u32::try_from(further).unwrap_or(u32::MAX).saturating_add(1);
        self.tally.count_many(now, H3FloodKind::UnknownFrame, count)
    }

    /// Fails if a frame is longer than the configured limit. Called for the frames that are
    /// buffered as a whole, except HEADERS.
    pub(crate) fn check_frame_size(&self, header: H3FrameHeader) -> Result<(), H3Error> {
        let H3FrameHeader { kind, length } = header;
        let limit = u64::from(self.config.max_frame_size);
        if length > limit { Err(H3Error::FrameTooLarge { kind, length, limit }) } else { Ok(()) }
    }

    /// Buffers bytes of a field section in a HEADERS frame, and processes the section when it is
    /// complete. `fin` is true if the stream ends after `input`. Returns the number of bytes
    /// consumed.
    fn gather_section(&mut self, id: u64, header: H3FrameHeader, input: &[u8], fin: bool) -> Result<usize, H3Error> {
        let Some(stream) = self.requests.get_mut(id) else { return Ok(input.len()) };
        let before = stream.reader.partial.len();
        let (consumed, payload) = stream.reader.buffer_payload(header.length, input);
        match payload {
            Some(payload) => {
                self.buffered -= before;
                self.on_section(id, Cow::Owned(payload), fin && consumed == input.len())?;
            }
            None => {
                self.buffered += consumed;
                self.abandon_if_over_limit(id);
            }
        }
        Ok(consumed)
    }

    /// Resets the response on stream `id` if the buffered field sections of all responses exceed
    /// their limit.
    pub(crate) fn abandon_if_over_limit(&mut self, id: u64) {
        let limit = self.config.partial_head_bytes;
        if self.buffered > limit {
            self.reset_for_violation(id, H3Error::PartialHeads { limit });
        }
    }

    /// Processes the header of a DATA frame on stream `id`, whose payload has `length` bytes.
    fn on_data_header(&mut self, now: MonotonicTimestamp, id: u64, length: u64) -> Result<(), H3Error> {
        if length == 0 {
            self.tally.count(now, H3FloodKind::EmptyData)?;
        } else {
            self.tally.count_useful(1);
        }
        let Some(stream) = self.requests.get_mut(id) else { return Ok(()) };
        let fault = match &mut stream.phase {
            ResponsePhase::Head | ResponsePhase::Ended => return Err(H3Error::Frame(H3FrameFault::DataBeforeHead)),
            ResponsePhase::Body { none: true, .. } if length > 0 => Some(H3Error::UnexpectedBody),
            ResponsePhase::Body { expected, got, .. } => {
                *got = got.saturating_add(length);
                let (known, got) = (*expected, *got);
                known.filter(|&expected| got > expected).map(|expected| H3Error::Length { expected, got })
            }
        };
        if let Some(fault) = fault {
            self.reset_for_violation(id, fault);
        } else if length > 0 {
            stream.reader.state = H3FrameReadState::Data(length);
        }
        Ok(())
    }

    /// Returns an error if the length of the body of stream `id` differs from its Content-Length;
    /// otherwise `None`. Called when the body has ended.
    pub(crate) fn content_length_error(&self, id: u64) -> Option<H3Error> {
        match self.requests.get(id)?.phase {
            ResponsePhase::Body { expected: Some(expected), got, .. } if got != expected => {
                Some(H3Error::Length { expected, got })
            }
            _ => None,
        }
    }

    /// Processes the end of the receiving half of stream `id`.
    fn on_stream_end(&mut self, id: u64) -> Result<(), H3Error> {
        let Some(stream) = self.requests.get(id) else { return Ok(()) };
        if !stream.reader.is_at_boundary() {
            return Err(H3Error::Frame(H3FrameFault::Truncated));
        }
        let fault = match stream.phase {
            ResponsePhase::Head => Some(H3Error::MissingHead),
            _ => self.content_length_error(id),
        };
        match fault {
            Some(error) => self.reset_for_incomplete_response(id, error),
            None => self.complete_response(id),
        }
        Ok(())
    }

    /// Ends a request whose response ended but is incomplete, and reports the error as an event.
    fn reset_for_incomplete_response(&mut self, id: u64, error: H3Error) {
        if self.remove_request(id).is_some() {
            self.abandon_upload(id, error.code());
            let reason = H3ResetReason::Violation(error);
            self.due.push_back(H3Event::Reset { id: RequestId(id), reason, retryable: false });
        }
    }

    /// Ends the response on stream `id`. If its request was also sent completely, reports that the
    /// exchange is complete.
    pub(crate) fn complete_response(&mut self, id: u64) {
        let Some(stream) = self.requests.get_mut(id) else { return };
        let is_unfinished = matches!(stream.upload, RemainingRequestBody::Known { .. } | RemainingRequestBody::Open);
        if is_unfinished && stream.reads_on {
            // A server that wants no more of the request says so by STOP_SENDING (RFC 9114 §4.1).
            stream.phase = ResponsePhase::Ended;
            return;
        }
        if stream.upload != RemainingRequestBody::Finished {
            // The rest of a refused request is useless.
            self.abandon_upload(id, H3ErrorCode::REQUEST_CANCELLED);
        }
        self.remove_finished_request(id);
    }

    /// Reports that the exchange on stream `id` is complete, if its response has already ended.
    /// Called when the end of the request has been added to the output.
    pub(crate) fn complete_before_request(&mut self, id: u64) {
        if self.requests.get(id).is_some_and(|stream| stream.phase == ResponsePhase::Ended) {
            self.remove_finished_request(id);
        }
    }

    pub(crate) fn remove_finished_request(&mut self, id: u64) {
        if let Some(stream) = self.remove_request(id) {
            self.due.push_back(H3Event::Complete { id: RequestId(id), trailers: stream.trailers });
        }
    }

    /// Records that the peer reset a stream (RESET_STREAM), so that no more of it can be read. An
    /// error ends the connection.
    pub fn on_stream_reset(&mut self, now: MonotonicTimestamp, stream: u64, code: H3ErrorCode) -> Result<(), H3Error> {
        if self.has_failed_or_ended() {
            return Ok(());
        }
        let result = match stream & 3 {
            0 => {
                self.on_response_reset(stream, code);
                Ok(())
            }
            3 => self.on_uni_stream_end(now, stream),
            _ => Ok(()),
        };
        self.close_on_error(result)
    }

    fn on_response_reset(&mut self, id: u64, code: H3ErrorCode) {
        // A response that has ended cannot be reset.
        let Some(stream) = self.requests.get(id).filter(|stream| stream.phase != ResponsePhase::Ended) else { return };
        let has_begun = stream.started;
        self.remove_request(id);
        self.abandon_upload(id, H3ErrorCode::REQUEST_CANCELLED);
        self.decoder.cancel_stream(id, self.outputs.decoder.buffer.append_buffer());
        // A request with the beginning of a response was processed, whatever the code says (RFC
        // 9114 §4.1.1).
        let (reason, retryable) = (H3ResetReason::Peer(code), code == H3ErrorCode::REQUEST_REJECTED && !has_begun);
        self.due.push_back(H3Event::Reset { id: RequestId(id), reason, retryable });
    }

    pub(crate) fn on_stopped(&mut self, stream: H3SendStream, code: H3ErrorCode) -> Result<(), H3Error> {
        let H3SendStream::Request(RequestId(id)) = stream else {
            return Err(H3Error::Stream(H3IllegalStreamOpenOrClose::ClosedCritical));
        };
        // RFC 9000 §3.5: a reset with the same code is the answer.
        self.abandon_upload(id, code);
        let Some(stream) = self.requests.get_mut(id) else { return Ok(()) };
        if stream.phase == ResponsePhase::Ended {
            // The peer has answered, and wants no more of the request (RFC 9114 §4.1).
            self.remove_finished_request(id);
        } else if stream.upload != RemainingRequestBody::Finished {
            stream.upload = RemainingRequestBody::Abandoned;
            self.holding -= u32::from(stream.hold_until.take().is_some());
        }
        Ok(())
    }
}
