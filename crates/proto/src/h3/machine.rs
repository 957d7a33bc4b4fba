//! The state machine of an HTTP/3 connection. It accepts requests and returns events.
//!
//! A driver calls, in this order: [`H3Machine::enqueue`] with the identifier of a QUIC stream that
//! it has opened, with [`H3Machine::send_body`] and [`H3Machine::finish_body`] as
//! [`H3Machine::body_credit`] allows; then [`H3Machine::next_output`], and
//! [`H3Machine::advance_output`] for the bytes that QUIC accepted; then [`H3Machine::step`] with
//! the bytes that a stream delivered, until [`H3Event::NeedInput`]; and [`H3Machine::next_command`]
//! for streams to reset. `receive.rs` reads the streams of requests, `field_sections.rs` processes
//! their heads, `peer_streams.rs` reads the server's own streams, and `upload.rs` sends request
//! bodies. The state diagram and an example are in [`h3`](super).

use super::flood_limits::H3_FLOOD_KINDS;
use super::frame::{self, H3FrameReader, setting, stream_type};
use super::output::H3Outputs;
use super::peer_streams::{H3PeerSettings, ServerStreams};
use super::request_stream::H3RequestStream;
use super::varint;
use super::{
    CloseReason, H3Config, H3Error, H3ErrorCode, H3Event, H3FloodKind, H3ResetReason, H3SendStream, H3Step,
    H3StreamAbortToSend, RequestHead, RequestId, SendRequestError,
};
use crate::flood_counts::FloodCounts;
use crate::open_streams::OpenStreams;
use crate::qpack::{QpackDecoder, QpackEncoder};
use crate::request_section_writer;
use crate::response_error::ResponseError;
use crate::response_from_decoded_fields::FieldSectionSizeHint;
use crate::stream_exchange_progress::{RemainingRequestBody, ResponsePhase};
use crate::time::MonotonicTimestamp;
use alloc::collections::VecDeque;
use alloc::vec::Vec;

/// The size in bytes of the client's own QPACK table, with which it compresses requests. A larger
/// table would help only with very many different cookies.
const ENCODER_TABLE_SIZE: u32 = 4096;

/// The client's side of an HTTP/3 connection, as a state machine without I/O.
#[derive(Debug)]
pub struct H3Machine {
    pub(crate) config: H3Config,
    pub(crate) outputs: H3Outputs,
    pub(crate) requests: OpenStreams<u64, H3RequestStream>,
    pub(crate) peer_streams: ServerStreams,
    pub(crate) encoder: QpackEncoder,
    pub(crate) decoder: QpackDecoder,
    pub(crate) tally: FloodCounts<H3FloodKind, H3_FLOOD_KINDS>,
    pub(crate) peer: H3PeerSettings,
    /// Events that [`H3Machine::step`] returns before it reads more input.
    pub(crate) due: VecDeque<H3Event>,
    pub(crate) commands: VecDeque<H3StreamAbortToSend>,
    pub(crate) closing: Option<CloseReason>,
    /// The lowest stream identifier that the peer's GOAWAY refuses; `u64::MAX` without a GOAWAY.
    pub(crate) first_refused: u64,
    /// The identifiers of the streams on which a field section waits for QPACK table entries.
    pub(crate) blocked: Vec<u64>,
    /// The number of bytes of incomplete or blocked field sections that are buffered, on all
    /// streams together.
    pub(crate) buffered: usize,
    /// The number of request bodies that wait for `100 Continue`.
    pub(crate) holding: u32,
    pub(crate) hint: FieldSectionSizeHint,
    /// A buffer that is reused to convert field names to lower case.
    pub(crate) name: Vec<u8>,
    /// A buffer that is reused to encode field sections.
    pub(crate) section: Vec<u8>,
}

impl H3Machine {
    /// Creates a connection whose output begins with the client's SETTINGS. Requests may be
    /// enqueued without waiting for the peer's SETTINGS (RFC 9114 §7.2.4.2).
    pub fn new(mut config: H3Config) -> H3Machine {
        // Offsets in a head are 32 bits wide.
        config.limits.head_bytes = config.limits.head_bytes.min(u32::MAX as usize);
        config.limits.trailer_bytes = config.limits.trailer_bytes.min(u32::MAX as usize);
        let mut outputs = H3Outputs::default();
        let out = outputs.control.buffer.append_buffer();
        varint::encode(stream_type::CONTROL, out);
        frame::settings(
            &[
                (setting::QPACK_MAX_TABLE_CAPACITY, u64::from(config.qpack_table_capacity)),
                (setting::QPACK_BLOCKED_STREAMS, u64::from(config.qpack_blocked_streams)),
                (setting::MAX_FIELD_SECTION_SIZE, config.limits.head_bytes as u64),
            ],
            out,
        );
        if config.qpack_table_capacity > 0 {
            varint::encode(stream_type::QPACK_DECODER, outputs.decoder.buffer.append_buffer());
        }
        H3Machine {
            outputs,
            requests: OpenStreams::default(),
            peer_streams: ServerStreams::default(),
            encoder: QpackEncoder::new(ENCODER_TABLE_SIZE),
            decoder: QpackDecoder::new(config.qpack_table_capacity),
            tally: FloodCounts::new(config.floods.by_kind()),
            peer: H3PeerSettings::default(),
            due: VecDeque::new(),
            commands: VecDeque::new(),
            closing: None,
            first_refused: u64::MAX,
            blocked: Vec::new(),
            buffered: 0,
            holding: 0,
            hint: FieldSectionSizeHint::default(),
            name: Vec::new(),
            section: Vec::new(),
            config,
        }
    }

    /// Returns `true` if [`H3Machine::enqueue`] would accept a valid request now: the connection is
    /// open, and no limit requires waiting. The peer's limit on QUIC streams is not considered.
    pub fn can_enqueue(&self) -> bool {
        self.enqueue_error().is_none()
    }

    fn enqueue_error(&self) -> Option<SendRequestError> {
        let limit = self.config.max_streams;
        if let Some(reason) = self.closing {
            Some(SendRequestError::Closed(reason))
        } else if self.requests.len().max(self.outputs.unsent_requests()) >= limit as usize {
            Some(SendRequestError::TooManyStreams { limit })
        } else {
            None
        }
    }

    /// Appends a request head to the output of `stream`, the identifier of a bidirectional QUIC
    /// stream that the caller has opened. Returns the request's id, which is that identifier. If
    /// this call fails, the connection and the stream are unchanged, and the stream may be used for
    /// another request.
    pub fn enqueue(
        &mut self,
        now: MonotonicTimestamp,
        stream: u64,
        request: &RequestHead<'_>,
    ) -> Result<RequestId, SendRequestError> {
        if let Some(refusal) = self.enqueue_error() {
            return Err(refusal);
        }
        if stream & 3 != 0 || stream > varint::MAX_VALUE || self.is_in_use(stream) {
            return Err(SendRequestError::StreamIdentifier);
        }
        let max_head = self.peer.max_head.map(|limit| u32::try_from(limit).unwrap_or(u32::MAX));
        let facts = request_section_writer::check_request(request, max_head)?;
        let upload = RemainingRequestBody::new(request.body);
        let hold = request.expect_continue && upload != RemainingRequestBody::Finished;
        self.holding += u32::from(hold);
        self.encoder.begin_section();
        request_section_writer::write_request(request, &facts, &mut self.encoder, &mut self.name);
        self.outputs.add_request(stream);
        self.finish_request_section(stream, upload == RemainingRequestBody::Finished);
        self.requests.insert(
            stream,
            H3RequestStream {
                response_to: facts.response_to,
                upload,
                hold_until: hold.then(|| now + self.config.expect_timeout),
                phase: ResponsePhase::Head,
                reader: H3FrameReader::default(),
                waits_for: None,
                interim: 0,
                head_bytes: 0,
                started: false,
                reads_on: false,
                is_tunnel: false,
                is_trailed: false,
                trailers: None,
            },
        );
        Ok(RequestId(stream))
    }

    fn is_in_use(&self, stream: u64) -> bool {
        self.requests.get(stream).is_some() || self.outputs.pending_bytes(stream).is_some()
    }

    /// Ends the field section that the encoder has begun, and appends it to the output of `stream`
    /// in a HEADERS frame. If `fin` is true, the stream ends after the frame.
    pub(crate) fn finish_request_section(&mut self, stream: u64, fin: bool) {
        self.section.clear();
        self.encoder.finish_section(stream, &mut self.section);
        let section = &self.section;
        self.outputs.append(stream, fin, |out| {
            frame::header(frame::kind::HEADERS, section.len() as u64, out);
            out.extend_from_slice(section);
        });
        let instructions = self.encoder.encoder_stream_output();
        if !instructions.is_empty() {
            let encoder = &mut self.outputs.encoder.buffer;
            let is_new = encoder.end_position() == 0;
            let out = encoder.append_buffer();
            if is_new {
                varint::encode(stream_type::QPACK_ENCODER, out);
            }
            out.append(instructions);
        }
    }

    /// Reads the next event of the QUIC stream `stream`. `input` must begin at the first byte of
    /// the stream that earlier calls did not consume; `fin` is true if `input` reaches the end of
    /// the stream. The stream may also be new: opened by the server, and named by no earlier call.
    ///
    /// Call `step` until [`H3Event::NeedInput`], when all input is consumed, or until
    /// [`H3Event::Blocked`], when the rest must be kept. An event may concern a request on another
    /// stream than `stream`. Input of a stream that has ended is consumed and ignored.
    ///
    /// After an error no more input can be read ([`ResponseError::Closed`]). Close the QUIC
    /// connection with [`H3Error::code`]; [`H3Machine::unanswered`] lists the lost requests.
    pub fn step(&mut self, now: MonotonicTimestamp, stream: u64, input: &[u8], fin: bool) -> Result<H3Step, H3Error> {
        if self.has_failed_or_ended() {
            let reason = self.closing.unwrap_or(CloseReason::Broken);
            return Err(H3Error::Response(ResponseError::Closed(reason)));
        }
        let result = self.receive(now, stream, input, fin);
        self.close_on_error(result)
    }

    /// Returns `result`. If it is an error, ends the connection first.
    pub(crate) fn close_on_error<T>(&mut self, result: Result<T, H3Error>) -> Result<T, H3Error> {
        if result.is_err() {
            self.due.clear();
            self.commands.clear();
            self.closing = Some(CloseReason::Broken);
        }
        result
    }

    /// Returns the next event that needs no input, for example after [`H3Machine::on_stream_reset`]
    /// or [`H3Machine::send_body`]; `None` if there is none.
    pub fn next_event(&mut self) -> Option<H3Event> {
        self.due.pop_front()
    }

    /// Returns `true` if [`H3Machine::next_event`] has an event.
    pub fn has_pending_event(&self) -> bool {
        !self.due.is_empty()
    }

    /// Returns the next command for a QUIC stream (to reset it or to stop reading it); `None` if
    /// there is none. After a call of another method, call this until it returns `None`. If the
    /// stream has ended in the meantime, the command has no effect.
    pub fn next_command(&mut self) -> Option<H3StreamAbortToSend> {
        self.commands.pop_front()
    }

    /// Cancels a response: resets its stream in both directions with this code, usually
    /// [`H3ErrorCode::REQUEST_CANCELLED`]. No event with the id of this request follows. Returns
    /// `true` if the request was open.
    pub fn reset(&mut self, id: RequestId, code: H3ErrorCode) -> bool {
        let is_open = self.abandon(id.0, code).is_some();
        // Its last events may be due already.
        let before = self.due.len();
        self.due.retain(|event| event.id() != Some(id));
        is_open || self.due.len() < before
    }

    /// Removes a request, and returns its state; `None` if the request is not open. If the stream
    /// has not ended, it is reset in both directions.
    pub(crate) fn abandon(&mut self, id: u64, code: H3ErrorCode) -> Option<H3RequestStream> {
        let stream = self.remove_request(id)?;
        self.abandon_upload(id, code);
        if stream.phase != ResponsePhase::Ended {
            self.abandon_response(id, code);
        }
        Some(stream)
    }

    /// Removes a request from the open requests, and returns its state; `None` if the request is
    /// not open. The output of its stream remains.
    pub(crate) fn remove_request(&mut self, id: u64) -> Option<H3RequestStream> {
        let stream = self.requests.remove(id)?;
        self.holding -= u32::from(stream.hold_until.is_some());
        self.buffered -= stream.buffered_bytes();
        if stream.waits_for.is_some() {
            self.blocked.retain(|&other| other != id);
        }
        Some(stream)
    }

    /// Resets the sending half of a request's stream, unless the request was sent completely.
    pub(crate) fn abandon_upload(&mut self, id: u64, code: H3ErrorCode) {
        if self.outputs.drop_request(id) {
            self.commands.push_back(H3StreamAbortToSend::ResetStream { id: RequestId(id), code });
        }
    }

    /// Stops reading a request's stream, with STOP_SENDING.
    pub(crate) fn abandon_response(&mut self, id: u64, code: H3ErrorCode) {
        self.commands.push_back(H3StreamAbortToSend::StopSending { stream: id, code });
        self.decoder.cancel_stream(id, self.outputs.decoder.buffer.append_buffer());
    }

    /// Resets the stream of a malformed response and reports the error as an event. The connection
    /// continues.
    pub(crate) fn reset_for_violation(&mut self, id: u64, error: H3Error) {
        if self.abandon(id, error.code()).is_some() {
            let reason = H3ResetReason::Violation(error);
            self.due.push_back(H3Event::Reset { id: RequestId(id), reason, retryable: false });
        }
    }

    /// Records that the QUIC connection has ended. Pass all input to [`H3Machine::step`] first.
    ///
    /// Always returns an error, which names the truncated part ([`ResponseError::EndedIdle`] if
    /// nothing was lost).
    pub fn on_connection_end(&mut self) -> H3Error {
        let error = match self.closing {
            Some(reason @ (CloseReason::Broken | CloseReason::PeerClosed)) => {
                return H3Error::Response(ResponseError::Closed(reason));
            }
            _ if self.requests.is_empty() => H3Error::Response(ResponseError::EndedIdle),
            _ if self.requests.iter().any(|stream| stream.started) => {
                H3Error::EndedInResponse { open: self.requests.len() }
            }
            _ => H3Error::Response(ResponseError::EndedBeforeResponse),
        };
        self.closing = Some(CloseReason::PeerClosed);
        error
    }

    /// Sends GOAWAY, unless the connection is closing already. The connection then accepts no
    /// further requests; open requests continue.
    pub fn go_away(&mut self) {
        if self.closing.is_none() {
            self.closing = Some(CloseReason::Local);
            frame::go_away(self.outputs.control.buffer.append_buffer());
        }
    }

    /// Iterates over the ids of the requests without a complete response, in rising order.
    pub fn unanswered(&self) -> impl Iterator<Item = RequestId> {
        self.requests.ids().map(RequestId)
    }

    /// Returns `true` if any part of the response to this open request was received.
    pub fn response_started(&self, id: RequestId) -> bool {
        self.requests.get(id.0).is_some_and(|stream| stream.started)
    }

    /// Returns `true` if QUIC has accepted at least one byte of this open request. If it has
    /// accepted none, the request may be sent on another connection, whatever its method.
    pub fn has_sent_any_of(&self, id: RequestId) -> bool {
        self.requests.get(id.0).is_some() && self.outputs.has_sent_any_of(id.0)
    }

    /// Returns `true` if the connection is open, has nothing to send, and has no unanswered
    /// request.
    pub fn is_idle(&self) -> bool {
        self.closing.is_none() && self.requests.is_empty() && !self.has_output()
    }

    /// Returns the reason why the connection accepts no further request; `None` if it accepts more.
    /// After [`CloseReason::GoAway`] and [`CloseReason::Local`], close the connection when the last
    /// open request is complete.
    pub fn close_reason(&self) -> Option<CloseReason> {
        self.closing
    }

    pub(crate) fn has_failed_or_ended(&self) -> bool {
        matches!(self.closing, Some(CloseReason::Broken | CloseReason::PeerClosed))
    }

    /// Returns the time at which to call [`H3Machine::handle_timeout`]; `None` if no timeout is
    /// running. Only bodies that wait for `100 Continue` have timeouts.
    pub fn poll_timeout(&self) -> Option<MonotonicTimestamp> {
        if self.has_failed_or_ended() || self.holding == 0 {
            return None;
        }
        self.requests.iter().filter_map(|stream| stream.hold_until).min()
    }

    /// Handles the timeouts that have passed at `now`: bodies that waited for `100 Continue` may be
    /// sent.
    pub fn handle_timeout(&mut self, now: MonotonicTimestamp) {
        if self.holding > 0 {
            for stream in self.requests.iter_mut() {
                if stream.hold_until.is_some_and(|until| until <= now) {
                    stream.hold_until = None;
                    self.holding -= 1;
                }
            }
        }
    }

    /// Records that the peer stopped reading a stream of the client (STOP_SENDING). An error ends
    /// the connection.
    pub fn on_stop_sending(&mut self, stream: H3SendStream, code: H3ErrorCode) -> Result<(), H3Error> {
        if self.has_failed_or_ended() {
            return Ok(());
        }
        let result = self.on_stopped(stream, code);
        self.close_on_error(result)
    }
}
