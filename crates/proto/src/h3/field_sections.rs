//! Field sections: decodes them and applies them to their streams (RFC 9114 §4.1).

use super::machine::H3Machine;
use super::{H3Error, H3ErrorCode, H3Event, H3FloodKind, RequestId};
use crate::qpack::{QpackError, QpackFault};
use crate::request_id_and_body_framing::ResponseFramingContext;
use crate::response_error::ResponseError;
use crate::response_from_decoded_fields::{DecodedFieldSection, FieldSectionKind, FieldSectionReader};
use crate::response_head::{Fields, ProtocolVersion};
use crate::stream_exchange_progress::{AnnouncedBody, RemainingRequestBody, ResponsePhase};
use alloc::borrow::Cow;

impl H3Machine {
    /// Decodes a complete field section of stream `id`, and processes it as a response head or as
    /// trailers. If the section needs QPACK insertions that have not arrived, the stream waits for
    /// them. `is_last` is true if the stream is known to end after the section.
    pub(crate) fn on_section(&mut self, id: u64, payload: Cow<'_, [u8]>, is_last: bool) -> Result<(), H3Error> {
        let mut section = self.decoder.begin_section(&payload)?;
        let required = section.required_insert_count();
        if required > self.decoder.insert_count() {
            return self.wait_for_insertions(id, required, payload);
        }
        let Some(stream) = self.requests.get(id) else { return Ok(()) };
        let section_kind = match stream.phase {
            ResponsePhase::Head => FieldSectionKind::Head { before: stream.head_bytes },
            ResponsePhase::Body { .. } | ResponsePhase::Ended => FieldSectionKind::Trailers,
        };
        let mut reader = FieldSectionReader::new(section_kind, ProtocolVersion::Http3, &self.config.limits, &self.hint);
        let fault = loop {
            let Some(line) = self.decoder.next_line(&mut section, reader.line_buffer())? else { break None };
            if let Err(fault) = reader.push_line(line) {
                break Some(fault);
            }
        };
        let decoded = match fault.map_or_else(|| reader.finish(&mut self.hint), Err) {
            Ok(decoded) => decoded,
            Err(fault) => {
                self.reset_for_violation(id, fault.into());
                return Ok(());
            }
        };
        if required > 0 {
            self.decoder.acknowledge_section(id, required, self.outputs.decoder.buffer.append_buffer());
            self.check_unsent_instructions()?;
        }
        self.tally.count_useful(1);
        let judged = if section_kind == FieldSectionKind::Trailers {
            self.on_trailers(id, decoded.into_fields())
        } else {
            self.on_head(id, decoded, is_last)
        };
        if let Err(fault) = judged {
            self.reset_for_violation(id, fault);
        }
        Ok(())
    }

    /// Keeps the encoded field section of a blocked stream until the peer has inserted `required`
    /// entries into the QPACK table.
    fn wait_for_insertions(&mut self, id: u64, required: u64, payload: Cow<'_, [u8]>) -> Result<(), H3Error> {
        let Some(stream) = self.requests.get_mut(id) else { return Ok(()) };
        let limit = self.config.qpack_blocked_streams;
        if self.blocked.len() >= limit as usize {
            return Err(H3Error::Qpack(QpackError::Section(QpackFault::BlockedStreams { limit })));
        }
        self.blocked.push(id);
        self.buffered += payload.len();
        stream.waits_for = Some(required);
        stream.reader.partial = payload.into_owned();
        self.abandon_if_over_limit(id);
        Ok(())
    }

    /// Queues an event for each stream that can continue, because the insertions into the dynamic
    /// table for which its field section waited have arrived.
    pub(crate) fn unblock_streams(&mut self) {
        let inserted = self.decoder.insert_count();
        let (requests, due) = (&self.requests, &mut self.due);
        self.blocked.retain(|&id| {
            let waits =
                requests.get(id).and_then(|stream| stream.waits_for).is_some_and(|required| required > inserted);
            if !waits {
                due.push_back(H3Event::Unblocked { id: RequestId(id) });
            }
            waits
        });
    }

    /// Fails if too many QPACK decoder instructions are unsent because the peer gives no
    /// flow-control credit for them.
    pub(crate) fn check_unsent_instructions(&self) -> Result<(), H3Error> {
        let unsent = self.outputs.decoder.buffer.pending().len();
        self.tally.check_absolute(H3FloodKind::Unread, u32::try_from(unsent).unwrap_or(u32::MAX))
    }

    /// Processes the response head of stream `id`. An error ends only this stream. `is_last` is
    /// true if the stream is known to end after the head.
    fn on_head(&mut self, id: u64, decoded: DecodedFieldSection, is_last: bool) -> Result<(), H3Error> {
        let Some(stream) = self.requests.get_mut(id) else { return Ok(()) };
        stream.head_bytes += decoded.size;
        let head = decoded.into_head();
        let request = RequestId(id);
        let status = head.status();
        if status < 200 {
            stream.interim += 1;
            let limit = self.config.limits.interim;
            if stream.interim > limit {
                return Err(H3Error::Response(ResponseError::TooManyInterim { limit }));
            }
            if status == 100 {
                self.holding -= u32::from(stream.end_continue_wait(true));
            }
            self.due.push_back(H3Event::Interim { id: request, head });
            return Ok(());
        }
        let body = AnnouncedBody::new(&head, stream.response_to)?;
        let AnnouncedBody { expected, none, tunnel } = body;
        stream.phase = ResponsePhase::Body { expected, got: 0, none };
        stream.reads_on = (200..300).contains(&status) && !tunnel;
        stream.is_tunnel = tunnel;
        let is_wanted = stream.reads_on;
        let was_head = stream.response_to == ResponseFramingContext::Head;
        self.holding -= u32::from(stream.end_continue_wait(is_wanted));
        self.due.push_back(H3Event::Head { id: request, head, framing: body.framing(false) });
        if was_head {
            // A HEAD request ends with the head. Some servers never end the stream, or send the
            // body of a GET.
            if !is_last {
                self.abandon_response(id, H3ErrorCode::REQUEST_CANCELLED);
            }
            if self.requests.get(id).is_some_and(|stream| stream.upload != RemainingRequestBody::Finished) {
                self.abandon_upload(id, H3ErrorCode::REQUEST_CANCELLED);
            }
            self.remove_finished_request(id);
        }
        Ok(())
    }

    fn on_trailers(&mut self, id: u64, trailers: Fields) -> Result<(), H3Error> {
        if let Some(fault) = self.content_length_error(id) {
            return Err(fault);
        }
        if let Some(stream) = self.requests.get_mut(id) {
            (stream.is_trailed, stream.trailers) = (true, Some(trailers));
        }
        Ok(())
    }
}
