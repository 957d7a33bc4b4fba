//! Header blocks: assembles and decodes them, and applies them to their streams (RFC 9113 §8.1).

use super::error::FrameFault;
use super::frame::{FrameHeader, flag};
use super::machine::H2Machine;
use super::{ErrorCode, FloodKind, H2Error, H2Event, RequestId};
use crate::ResponseLimits;
use crate::hpack::{HeaderBlock, HpackDecoder};
use crate::request_id_and_body_framing::ResponseFramingContext;
use crate::response_error::ResponseError;
use crate::response_from_decoded_fields::{
    DecodedFieldSection, FieldSectionError, FieldSectionKind, FieldSectionReader, FieldSectionSizeHint,
};
use crate::response_head::ProtocolVersion;
use crate::stream_exchange_progress::{AnnouncedBody, ResponsePhase};
use alloc::vec::Vec;

/// A header block of which some CONTINUATION frames have not arrived.
#[derive(Debug)]
pub(super) struct PartialHeaderBlock {
    pub(super) id: u32,
    end_stream: bool,
    pub(super) bytes: Vec<u8>,
    continuations: u32,
}

impl H2Machine {
    pub(super) fn on_headers(&mut self, header: FrameHeader, payload: &[u8]) -> Result<(), H2Error> {
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
            return self.on_header_block(header.stream, end_stream, fragment);
        }
        let bytes = fragment.to_vec();
        self.reader.block = Some(PartialHeaderBlock { id: header.stream, end_stream, bytes, continuations: 0 });
        Ok(())
    }

    pub(super) fn on_continuation(&mut self, header: FrameHeader, payload: &[u8]) -> Result<(), H2Error> {
        let Some(mut block) = self.reader.block.take() else {
            return Err(H2Error::Frame(FrameFault::StrayContinuation));
        };
        block.continuations += 1;
        self.tally.check_absolute(FloodKind::Continuation, block.continuations)?;
        block.bytes.extend_from_slice(payload);
        if !header.has(flag::END_HEADERS) {
            self.reader.block = Some(block);
            return Ok(());
        }
        self.on_header_block(block.id, block.end_stream, &block.bytes)
    }

    /// Decodes a complete header block of stream `id`, and processes it as a response head or as
    /// trailers. `end_stream` is true if the stream ends with the block.
    fn on_header_block(&mut self, id: u32, end_stream: bool, bytes: &[u8]) -> Result<(), H2Error> {
        let section = match self.streams.get_mut(id) {
            // Decoded only so that the dynamic table stays equal to the peer's.
            None if self.stale.take_header_block() => None,
            None => return Err(H2Error::Frame(FrameFault::ClosedStream)),
            Some(stream) => {
                stream.started = true;
                Some(match stream.phase {
                    ResponsePhase::Head => FieldSectionKind::Head { before: stream.head_bytes },
                    ResponsePhase::Body { .. } | ResponsePhase::Ended => FieldSectionKind::Trailers,
                })
            }
        };
        let decoded = decode(&mut self.decoder, bytes, section, &self.config.limits, &mut self.reader.hint)?;
        let decoded = match decoded {
            None => return Ok(()),
            Some(Err(fault)) => {
                self.reset_for_violation(id, fault.into());
                return Ok(());
            }
            Some(Ok(decoded)) => decoded,
        };
        self.tally.count_useful(1);
        let judged = if section == Some(FieldSectionKind::Trailers) {
            self.on_trailers(id, end_stream, decoded)
        } else {
            self.on_head(id, end_stream, decoded)
        };
        if let Err(fault) = judged {
            self.reset_for_violation(id, fault);
        }
        Ok(())
    }

    /// Processes the response head of stream `id`. `end_stream` is true if the stream ends with the
    /// head. An error ends only this stream.
    fn on_head(&mut self, id: u32, end_stream: bool, decoded: DecodedFieldSection) -> Result<(), H2Error> {
        let Some(stream) = self.streams.get_mut(id) else { return Ok(()) };
        stream.head_bytes += decoded.size;
        let head = decoded.into_head();
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
                self.clocks.holding -= u32::from(stream.end_continue_wait(true));
            }
            self.due.push_back(H2Event::Interim { id: request, head });
            return Ok(());
        }
        let body = AnnouncedBody::new(&head, stream.response_to)?;
        let AnnouncedBody { expected, none, tunnel } = body;
        if end_stream && let Some(expected @ 1..) = expected {
            return Err(H2Error::Length { expected, got: 0 });
        }
        let framing = body.framing(end_stream);
        stream.phase = ResponsePhase::Body { expected, got: 0, none };
        stream.reads_on = (200..300).contains(&status) && !tunnel;
        stream.is_tunnel = tunnel;
        let wanted = stream.reads_on;
        let was_head = stream.response_to == ResponseFramingContext::Head;
        self.clocks.holding -= u32::from(stream.end_continue_wait(wanted));
        self.due.push_back(H2Event::Head { id: request, head, framing });
        if end_stream {
            self.complete_response(id, None);
        } else if was_head {
            // A HEAD request ends with the head. Some servers never end the stream, or send the
            // body of a GET.
            self.drop_stream(id, Some(ErrorCode::CANCEL));
            self.due.push_back(H2Event::Complete { id: request, trailers: None });
        }
        Ok(())
    }

    fn on_trailers(&mut self, id: u32, end_stream: bool, decoded: DecodedFieldSection) -> Result<(), H2Error> {
        if self.streams.get(id).is_some_and(|stream| stream.is_tunnel) {
            return Err(H2Error::Frame(FrameFault::HeadersInTunnel));
        }
        if !end_stream {
            return Err(H2Error::Frame(FrameFault::HeadInBody));
        }
        if self.streams.get(id).is_some_and(|stream| stream.phase == ResponsePhase::Ended) {
            return Err(H2Error::Frame(FrameFault::ClosedStream));
        }
        if let Some(fault) = self.content_length_error(id) {
            return Err(fault);
        }
        self.complete_response(id, Some(decoded));
        Ok(())
    }
}

/// The maximum decoded size of the dropped field lines of a header block, as a multiple of
/// [`ResponseLimits::head_bytes`]. Lines after an error (such as a head above its limit) are
/// dropped. Dropped lines are decoded only to keep the dynamic table equal to the peer's. A larger
/// size ends the connection, because a block of 300 KiB can expand to a gigabyte.
const MAX_BLOCK_FACTOR: usize = 16;

/// Decodes a header block. The outer error ends the connection, the inner one only the stream.
///
/// A malformed block is still decoded to its end, so that the dynamic table stays the same as the
/// peer's, but its fields are dropped. `section` is `None` for a block of a closed stream.
fn decode(
    decoder: &mut HpackDecoder,
    block: &[u8],
    section: Option<FieldSectionKind>,
    limits: &ResponseLimits,
    hint: &mut FieldSectionSizeHint,
) -> Result<Option<Result<DecodedFieldSection, FieldSectionError>>, H2Error> {
    let mut block = HeaderBlock::new(block);
    let (mut reading, mut fault, mut text, mut unwanted) = (None, None, Vec::new(), 0);
    if let Some(section) = section {
        reading = Some(FieldSectionReader::new(section, ProtocolVersion::Http2, limits, hint));
    }
    loop {
        if let Some(reader) = &mut reading {
            let Some(line) = decoder.next_line(&mut block, reader.line_buffer()).map_err(H2Error::Hpack)? else {
                break;
            };
            if let Err(error) = reader.push_line(line) {
                (fault, reading) = (Some(error), None);
            }
        } else {
            text.clear();
            let Some(line) = decoder.next_line(&mut block, &mut text).map_err(H2Error::Hpack)? else { break };
            unwanted += line.value.end;
            if unwanted > limits.head_bytes.saturating_mul(MAX_BLOCK_FACTOR) {
                return Err(H2Error::Response(ResponseError::HeadTooLarge { limit: limits.head_bytes }));
            }
        }
    }
    Ok(match (reading, fault) {
        (Some(reader), _) => Some(reader.finish(hint)),
        (None, Some(fault)) => Some(Err(fault)),
        (None, None) => None,
    })
}
