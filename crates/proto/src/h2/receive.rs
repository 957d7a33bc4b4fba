//! The receiving half of the HTTP/2 machine: frames and response bodies. Heads are in
//! `header_blocks.rs`, other frames in `control.rs`.
//!
//! Payload of DATA is never buffered: it is delivered as it arrives, however the frame is cut.
//! Other frames are decoded in place if they are complete in the input, else from a buffer. All
//! input is therefore consumed, and a driver that decrypts TLS records in place never has to join
//! two of them.

use super::error::FrameFault;
use super::frame::{self, FrameHeader, flag, kind};
use super::header_blocks::PartialHeaderBlock;
use super::machine::H2Machine;
use super::{CloseReason, ErrorCode, FloodKind, H2Error, H2Event, H2Step, RequestId};
use crate::response_error::ResponseError;
use crate::response_from_decoded_fields::{DecodedFieldSection, FieldSectionSizeHint};
use crate::stream_exchange_progress::{RemainingRequestBody, ResponsePhase};
use crate::time::MonotonicTimestamp;
use alloc::vec::Vec;
use core::mem;

/// The part of a frame that the connection expects next in its input.
#[derive(Debug, Default)]
enum FrameReadState {
    /// A frame header. The field `partial` contains the bytes of the header that have arrived.
    #[default]
    Header,
    /// The payload of a frame with this header. The field `partial` contains the bytes of the
    /// payload that have arrived.
    Payload(FrameHeader),
    /// The padding length of a DATA frame with this frame header.
    PadLength(FrameHeader),
    /// The payload of a DATA frame on stream `id`: `left` bytes, at least one, then `padding`
    /// bytes. `end` is true if the frame ends the stream.
    Data {
        id: u32,
        left: u32,
        padding: u32,
        end: bool,
    },
    /// Bytes to skip: padding, or the rest of an unwanted frame. The value is their number.
    Skip(u32),
    Closed,
}

#[derive(Debug, Default)]
pub(crate) struct H2FrameReader {
    state: FrameReadState,
    partial: Vec<u8>,
    pub(super) block: Option<PartialHeaderBlock>,
    pub(super) hint: FieldSectionSizeHint,
}

impl H2FrameReader {
    pub(crate) fn close(&mut self) {
        *self = H2FrameReader { state: FrameReadState::Closed, ..H2FrameReader::default() };
    }

    /// Skips the rest of the current frame if it is on `stream`, which was closed. Returns the
    /// number of payload bytes that are therefore not delivered.
    pub(crate) fn abandon(&mut self, stream: u32) -> u64 {
        match self.state {
            FrameReadState::Data { id, left, padding, .. } if id == stream => {
                self.state = FrameReadState::Skip(left + padding);
                u64::from(left)
            }
            _ => 0,
        }
    }
}

impl H2Machine {
    pub(crate) fn receive(&mut self, now: MonotonicTimestamp, input: &[u8]) -> Result<H2Step, H2Error> {
        if !input.is_empty() {
            self.clocks.heard = now;
        }
        let mut at = 0;
        loop {
            if let Some(event) = self.due.pop_front() {
                return Ok(H2Step { consumed: at, event });
            }
            let rest = &input[at..];
            if let FrameReadState::Closed = self.reader.state {
                return Err(H2Error::Response(ResponseError::Closed(self.closing.unwrap_or(CloseReason::Broken))));
            }
            if rest.is_empty() {
                return Ok(H2Step { consumed: at, event: H2Event::NeedInput });
            }
            if let FrameReadState::Data { id, left, padding, end } = self.reader.state {
                let take = (left as usize).min(rest.len());
                self.on_data_delivered(id, left - take as u32, padding, end);
                let event = H2Event::Body { id: RequestId(u64::from(id)), range: at..at + take };
                return Ok(H2Step { consumed: at + take, event });
            }
            at += self.consume_input(now, rest)?;
        }
    }

    /// Updates the state after payload of stream `id` was delivered. `left` is the number of
    /// payload bytes of the DATA frame that have not arrived, and `padding` the length of the
    /// padding after them. `end` is true if the frame ends the stream.
    fn on_data_delivered(&mut self, id: u32, left: u32, padding: u32, end: bool) {
        if left > 0 {
            self.reader.state = FrameReadState::Data { id, left, padding, end };
            return;
        }
        self.skip_payload(padding);
        if end {
            // The received part of a body that ends early has been delivered by now.
            match self.content_length_error(id) {
                Some(fault) => self.reset_for_violation(id, fault),
                None => self.complete_response(id, None),
            }
        }
    }

    /// Returns an error if the length of the body of stream `id` differs from its Content-Length;
    /// otherwise `None`. Called when the body has ended.
    pub(super) fn content_length_error(&self, id: u32) -> Option<H2Error> {
        match self.streams.get(id)?.phase {
            ResponsePhase::Body { expected: Some(expected), got, .. } if got != expected => {
                Some(H2Error::Length { expected, got })
            }
            _ => None,
        }
    }

    fn skip_payload(&mut self, bytes: u32) {
        self.reader.state = if bytes > 0 { FrameReadState::Skip(bytes) } else { FrameReadState::Header };
    }

    /// Consumes input bytes that are not payload of DATA, and returns their number. `input` must
    /// not be empty.
    fn consume_input(&mut self, now: MonotonicTimestamp, input: &[u8]) -> Result<usize, H2Error> {
        match self.reader.state {
            FrameReadState::Header => self.read_header(now, input),
            FrameReadState::Payload(header) => {
                let missing = header.length as usize - self.reader.partial.len();
                let take = missing.min(input.len());
                self.reader.partial.extend_from_slice(&input[..take]);
                if take == missing {
                    self.reader.state = FrameReadState::Header;
                    let mut payload = mem::take(&mut self.reader.partial);
                    self.on_frame(now, header, &payload)?;
                    payload.clear();
                    // A large frame is rare, and a connection in a pool should cost little.
                    payload.shrink_to(1024);
                    self.reader.partial = payload;
                }
                Ok(take)
            }
            FrameReadState::PadLength(header) => {
                self.on_data_header(now, header, Some(input[0]))?;
                Ok(1)
            }
            FrameReadState::Skip(left) => {
                let take = (left as usize).min(input.len());
                self.skip_payload(left - take as u32);
                Ok(take)
            }
            // Not reached: the caller handles these first.
            FrameReadState::Data { .. } | FrameReadState::Closed => Ok(0),
        }
    }

    fn read_header(&mut self, now: MonotonicTimestamp, input: &[u8]) -> Result<usize, H2Error> {
        if self.reader.partial.is_empty()
            && let Some((bytes, behind)) = input.split_first_chunk()
        {
            let header = self.parse_header(bytes)?;
            let length = header.length as usize;
            return match is_buffered_frame(header.kind) {
                true if behind.len() >= length => {
                    self.on_frame(now, header, &behind[..length])?;
                    Ok(frame::HEADER_LENGTH + length)
                }
                _ => self.begin_frame(now, header).map(|()| frame::HEADER_LENGTH),
            };
        }
        let take = (frame::HEADER_LENGTH - self.reader.partial.len()).min(input.len());
        self.reader.partial.extend_from_slice(&input[..take]);
        if let Ok(bytes) = <&[u8; frame::HEADER_LENGTH]>::try_from(&self.reader.partial[..]) {
            let bytes = *bytes;
            self.reader.partial.clear();
            let header = self.parse_header(&bytes)?;
            self.begin_frame(now, header)?;
        }
        Ok(take)
    }

    /// Begins a frame whose header has been read. Processes the frame if it is complete, or sets
    /// the state for reading its payload.
    fn begin_frame(&mut self, now: MonotonicTimestamp, header: FrameHeader) -> Result<(), H2Error> {
        match header.kind {
            kind::DATA if header.has(flag::PADDED) && header.length == 0 => Err(H2Error::Frame(FrameFault::Padding)),
            kind::DATA if header.has(flag::PADDED) => {
                self.reader.state = FrameReadState::PadLength(header);
                Ok(())
            }
            kind::DATA => self.on_data_header(now, header, None),
            _ if is_buffered_frame(header.kind) && header.length > 0 => {
                self.reader.state = FrameReadState::Payload(header);
                Ok(())
            }
            _ if is_buffered_frame(header.kind) => self.on_frame(now, header, &[]),
            other => {
                let of = if other == kind::PRIORITY { FloodKind::Priority } else { FloodKind::Unknown };
                self.tally.count(now, of)?;
                self.skip_payload(header.length);
                Ok(())
            }
        }
    }

    fn parse_header(&self, bytes: &[u8; frame::HEADER_LENGTH]) -> Result<FrameHeader, H2Error> {
        let header = FrameHeader::read(bytes);
        // The server's preface is a SETTINGS frame (RFC 9113 §3.4).
        if !self.peer.seen && (header.kind != kind::SETTINGS || header.has(flag::ACK)) {
            return Err(H2Error::NotHttp2 { http1: bytes.starts_with(b"HTTP/") });
        }
        match &self.reader.block {
            Some(block) if header.kind != kind::CONTINUATION || header.stream != block.id => {
                return Err(H2Error::Frame(FrameFault::Interleaved));
            }
            None if header.kind == kind::CONTINUATION => return Err(H2Error::Frame(FrameFault::StrayContinuation)),
            _ => {}
        }
        self.check_header(header)?;
        // Before any of it is buffered.
        if matches!(header.kind, kind::HEADERS | kind::CONTINUATION) {
            let before = self.reader.block.as_ref().map_or(0, |block| block.bytes.len());
            let limit = self.config.limits.head_bytes.max(self.config.limits.trailer_bytes);
            if before + header.length as usize > limit {
                return Err(H2Error::Response(ResponseError::HeadTooLarge { limit }));
            }
        }
        Ok(header)
    }

    /// Processes a complete frame of any type but DATA.
    fn on_frame(&mut self, now: MonotonicTimestamp, header: FrameHeader, payload: &[u8]) -> Result<(), H2Error> {
        match header.kind {
            kind::HEADERS => self.on_headers(header, payload),
            kind::CONTINUATION => self.on_continuation(header, payload),
            kind::SETTINGS => self.on_settings(now, header, payload),
            kind::PING => self.on_ping(now, header, payload),
            kind::GOAWAY => self.on_go_away(now, payload),
            kind::WINDOW_UPDATE => self.on_window_update(now, header, payload),
            _ => self.on_rst_stream(now, header, payload),
        }
    }

    /// Processes the header of a DATA frame, and the length of its padding if it has one.
    fn on_data_header(
        &mut self,
        now: MonotonicTimestamp,
        header: FrameHeader,
        padding: Option<u8>,
    ) -> Result<(), H2Error> {
        let (id, length) = (header.stream, header.length);
        let behind = u32::from(padding.unwrap_or(0));
        let overhead = behind + u32::from(padding.is_some());
        let payload = length.checked_sub(overhead).ok_or(H2Error::Frame(FrameFault::Padding))?;
        if !self.intake.consume(length) {
            return Err(H2Error::FlowControl);
        }
        self.release_without_stream(0);
        let end = header.has(flag::END_STREAM);
        if payload > 0 {
            self.tally.count_useful(1);
        } else if !end || self.streams.get(id).is_none() {
            self.tally.count(now, FloodKind::EmptyData)?;
        }
        let Some(stream) = self.streams.get_mut(id) else {
            if !self.stale.take_data(length) {
                return Err(H2Error::Frame(FrameFault::ClosedStream));
            }
            self.release_without_stream(u64::from(length));
            self.skip_payload(payload + behind);
            return Ok(());
        };
        stream.started = true;
        if !stream.inbound.consume(length) {
            return Err(H2Error::FlowControl);
        }
        let fault = match &mut stream.phase {
            ResponsePhase::Head => Some(H2Error::Frame(FrameFault::DataBeforeHead)),
            ResponsePhase::Ended => Some(H2Error::Frame(FrameFault::ClosedStream)),
            ResponsePhase::Body { none: true, .. } if payload > 0 => Some(H2Error::UnexpectedBody),
            ResponsePhase::Body { expected, got, .. } => {
                *got = got.saturating_add(u64::from(payload));
                let (known, got) = (*expected, *got);
                known.filter(|&expected| got > expected).map(|expected| H2Error::Length { expected, got })
            }
        };
        if let Some(fault) = fault {
            self.reset_for_violation(id, fault);
            self.release_without_stream(u64::from(length));
            self.skip_payload(payload + behind);
            return Ok(());
        }
        stream.inbound.held += u64::from(length);
        if overhead > 0 {
            // Padding is released as soon as its length is known.
            self.release(now, RequestId(u64::from(id)), u64::from(overhead));
        }
        self.on_data_delivered(id, payload, behind, end);
        Ok(())
    }

    /// Ends the response on stream `id`. If its request was also sent completely, reports that the
    /// exchange is complete.
    pub(super) fn complete_response(&mut self, id: u32, trailers: Option<DecodedFieldSection>) {
        let Some(stream) = self.streams.get_mut(id) else { return };
        let trailers = trailers.map(DecodedFieldSection::into_fields);
        let unfinished = stream.upload != RemainingRequestBody::Finished;
        if unfinished && stream.reads_on {
            // A server that wants no more of the request says so by RST_STREAM (RFC 9113 §8.1).
            (stream.phase, stream.trailers) = (ResponsePhase::Ended, trailers);
            return;
        }
        // The rest of a refused request is useless.
        self.drop_stream(id, unfinished.then_some(ErrorCode::CANCEL));
        self.due.push_back(H2Event::Complete { id: RequestId(u64::from(id)), trailers });
    }

    /// Reports the completion of a response that ended before the request was sent completely.
    /// Called when the caller has supplied the rest of the request.
    pub(super) fn complete_before_request(&mut self, id: u32) {
        if self.streams.get(id).is_some_and(|stream| stream.phase == ResponsePhase::Ended)
            && let Some(stream) = self.drop_stream(id, None)
        {
            self.due.push_back(H2Event::Complete { id: RequestId(u64::from(id)), trailers: stream.trailers });
        }
    }

    /// Returns `true` if [`H2Machine::step`] has an event to report without any input.
    pub fn has_pending_event(&self) -> bool {
        !self.due.is_empty()
    }
}

/// Returns `true` if a frame of this type is buffered until all of it has arrived.
fn is_buffered_frame(of: u8) -> bool {
    matches!(
        of,
        kind::HEADERS
            | kind::CONTINUATION
            | kind::SETTINGS
            | kind::PING
            | kind::GOAWAY
            | kind::WINDOW_UPDATE
            | kind::RST_STREAM
    )
}
