//! Header blocks: assembly, decoding, and the effect on their stream (RFC 9113 §8.1).

use super::error::FrameFault;
use super::frame::{FrameHeader, flag};
use super::machine::H2Machine;
use super::response::{self, FieldSectionKind};
use super::streams::ResponsePhase;
use super::{BodyFraming, ContentLengthFault, ErrorCode, FloodKind, H2Error, H2Event, RequestId};
use crate::framing::{ResponseFramingContext, content_length};
use crate::head::ResponseHead;
use crate::response_error::ResponseError;
use alloc::vec::Vec;

/// A header block that continues in further CONTINUATION frames.
#[derive(Debug)]
pub(super) struct PartialHeaderBlock {
    pub(super) id: u32,
    end_stream: bool,
    pub(super) bytes: Vec<u8>,
    continuations: u32,
}

impl H2Machine {
    pub(super) fn headers(&mut self, header: FrameHeader, payload: &[u8]) -> Result<(), H2Error> {
        let fault = H2Error::Frame(FrameFault::Padding);
        let mut fragment = payload;
        let mut padding = 0;
        if header.has(flag::PADDED) {
            let (&length, behind) = fragment.split_first().ok_or(fault)?;
            (padding, fragment) = (usize::from(length), behind);
        }
        if header.has(flag::PRIORITY) {
            // Five bytes of priority, a scheme that was deprecated (RFC 9113 §5.3.2).
            fragment = fragment.get(5..).ok_or(fault)?;
        }
        let end = fragment.len().checked_sub(padding).ok_or(fault)?;
        let fragment = &fragment[..end];
        let end_stream = header.has(flag::END_STREAM);
        if header.has(flag::END_HEADERS) {
            return self.block(header.stream, end_stream, fragment);
        }
        let bytes = fragment.to_vec();
        self.reader.block = Some(PartialHeaderBlock { id: header.stream, end_stream, bytes, continuations: 0 });
        Ok(())
    }

    pub(super) fn continuation(&mut self, header: FrameHeader, payload: &[u8]) -> Result<(), H2Error> {
        let Some(block) = &mut self.reader.block else {
            return Err(H2Error::Frame(FrameFault::StrayContinuation));
        };
        block.continuations += 1;
        self.tally.check_absolute(FloodKind::Continuation, block.continuations)?;
        block.bytes.extend_from_slice(payload);
        if !header.has(flag::END_HEADERS) {
            return Ok(());
        }
        let Some(block) = self.reader.block.take() else { return Ok(()) };
        self.block(block.id, block.end_stream, &block.bytes)
    }

    /// Decodes a complete header block of stream `id`, and processes it as a response head or as
    /// trailers.
    fn block(&mut self, id: u32, end_stream: bool, bytes: &[u8]) -> Result<(), H2Error> {
        let section = match self.streams.get_mut(id) {
            None if self.stale.block() => FieldSectionKind::Unwanted,
            None => return Err(H2Error::Frame(FrameFault::ClosedStream)),
            Some(stream) => {
                stream.started = true;
                match stream.phase {
                    ResponsePhase::Head => FieldSectionKind::Head { before: stream.head_bytes },
                    ResponsePhase::Body { .. } | ResponsePhase::Ended => FieldSectionKind::Trailers,
                }
            }
        };
        let reader = &mut self.reader;
        let decoded = match response::decode(&mut self.decoder, bytes, section, &self.config.limits, &mut reader.hint) {
            Err(fault) => return Err(fault),
            Ok(_) if section == FieldSectionKind::Unwanted => return Ok(()),
            Ok(Err(fault)) => {
                self.violated(id, fault);
                return Ok(());
            }
            Ok(Ok(decoded)) => decoded,
        };
        self.tally.useful(1);
        let judged = if section == FieldSectionKind::Trailers {
            self.trailers(id, end_stream, decoded)
        } else {
            if let Some(stream) = self.streams.get_mut(id) {
                stream.head_bytes += decoded.size;
            }
            self.head(id, end_stream, decoded.into_head())
        };
        if let Err(fault) = judged {
            self.violated(id, fault);
        }
        Ok(())
    }

    /// Processes the response head of stream `id`. An error ends only this stream.
    fn head(&mut self, id: u32, end_stream: bool, head: ResponseHead) -> Result<(), H2Error> {
        let Some(stream) = self.streams.get_mut(id) else { return Ok(()) };
        let request = RequestId(u64::from(id));
        let status = head.status();
        if status < 200 {
            if end_stream {
                return Err(H2Error::Frame(FrameFault::InterimEnd));
            }
            stream.interim += 1;
            let limit = self.config.limits.interim;
            if stream.interim > limit {
                return Err(H2Error::Response(ResponseError::TooManyInterim { limit }));
            }
            if status == 100 {
                self.stop_holding(id, true);
            }
            self.due.push_back(H2Event::Interim { id: request, head });
            return Ok(());
        }
        // A successful response to CONNECT is a tunnel, which has no length (RFC 9110 §9.3.6).
        let tunnel = stream.response_to == ResponseFramingContext::Connect && status < 300;
        let none = stream.response_to == ResponseFramingContext::Head || matches!(status, 204 | 304);
        let mut expected = None;
        if !none && !tunnel {
            for value in head.get_all("content-length") {
                let one = content_length(value).map_err(ResponseError::ContentLength)?;
                if expected.is_some_and(|known| known != one) {
                    return Err(H2Error::Response(ResponseError::ContentLength(ContentLengthFault::Conflicting)));
                }
                expected = Some(one);
            }
        }
        if end_stream && let Some(expected @ 1..) = expected {
            return Err(H2Error::Length { expected, got: 0 });
        }
        let framing = match expected {
            _ if none => BodyFraming::None,
            Some(length) => BodyFraming::Length(length),
            None if end_stream => BodyFraming::Length(0),
            None => BodyFraming::Chunked,
        };
        stream.phase = ResponsePhase::Body { expected, got: 0, none };
        stream.reads_on = (200..300).contains(&status) && !tunnel;
        let wanted = stream.reads_on;
        let was_head = stream.response_to == ResponseFramingContext::Head;
        self.stop_holding(id, wanted);
        self.due.push_back(H2Event::Head { id: request, head, framing });
        if end_stream {
            self.complete(id, None);
        } else if was_head {
            // A HEAD request ends with the head. Some servers never end the stream, or send the
            // body of a GET.
            self.drop_stream(id, Some(ErrorCode::CANCEL));
            self.due.push_back(H2Event::Complete { id: request, trailers: None });
        }
        Ok(())
    }

    fn trailers(&mut self, id: u32, end_stream: bool, decoded: response::DecodedFieldSection) -> Result<(), H2Error> {
        if !end_stream {
            return Err(H2Error::Frame(FrameFault::HeadInBody));
        }
        if self.streams.get(id).is_some_and(|stream| stream.phase == ResponsePhase::Ended) {
            return Err(H2Error::Frame(FrameFault::ClosedStream));
        }
        if let Some(fault) = self.shortfall(id) {
            return Err(fault);
        }
        self.complete(id, Some(decoded));
        Ok(())
    }
}
