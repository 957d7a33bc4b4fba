//! The state machine of an HTTP/2 connection. It accepts requests and returns events.
//!
//! A driver calls, in this order: [`H2Machine::enqueue`], with [`H2Machine::send_body`] and
//! [`H2Machine::finish_body`] as [`H2Machine::body_credit`] allows; then [`H2Machine::output`], and
//! [`H2Machine::advance_output`] for the bytes that the socket accepted; then [`H2Machine::step`]
//! with the bytes that the socket delivered, until [`H2Event::NeedInput`]; and
//! [`H2Machine::release`] for consumed payload. `receive.rs` reads frames, `control.rs` processes
//! frames about the connection, and `send.rs` sends request bodies. The state diagram and an
//! example are in [`h2`](super).

use super::connection_state::{ClosedStreamAllowance, ConnectionTimers, PeerSettings};
use super::flood_limits::FLOOD_KINDS;
use super::frame::{self, FRAME_SIZES, INITIAL_WINDOW, MAX_WINDOW, setting};
use super::receive::H2FrameReader;
use super::receive_windows::ConnectionReceiveWindow;
use super::stream_state::RequestStreamState;
use super::{
    CloseReason, ErrorCode, FloodKind, H2Config, H2Error, H2Event, H2Step, RequestHead, RequestId, ResetReason,
    SendRequestError,
};
use crate::flood_counts::FloodCounts;
use crate::hpack::{HpackDecoder, HpackEncoder, OpenHeaderBlock};
use crate::open_streams::OpenStreams;
use crate::output_buffer::OutputBuffer;
use crate::request_section_writer;
use crate::response_error::ResponseError;
use crate::stream_exchange_progress::{RemainingRequestBody, ResponsePhase};
use crate::time::MonotonicTimestamp;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::time::Duration;

/// The number of parallel streams that the client assumes before the peer's SETTINGS arrive. RFC
/// 9113 §6.5.2 advises peers to allow at least that number.
const ASSUMED_MAX_STREAMS: u32 = 100;

/// The size in bytes of the client's own HPACK table, with which it compresses requests. A larger
/// table would help only with very many different cookies.
const ENCODER_TABLE_SIZE: u32 = 4096;

/// The client's side of an HTTP/2 connection, as a state machine without I/O.
#[derive(Debug)]
pub struct H2Machine {
    pub(crate) config: H2Config,
    pub(crate) output: OutputBuffer,
    pub(crate) streams: OpenStreams<u32, RequestStreamState>,
    pub(crate) encoder: HpackEncoder,
    pub(crate) decoder: HpackDecoder,
    pub(crate) reader: H2FrameReader,
    pub(crate) intake: ConnectionReceiveWindow,
    pub(crate) tally: FloodCounts<FloodKind, FLOOD_KINDS>,
    pub(crate) peer: PeerSettings,
    pub(crate) clocks: ConnectionTimers,
    /// Events that [`H2Machine::step`] returns before it reads more input.
    pub(crate) due: VecDeque<H2Event>,
    /// The number of bytes that the peer allows the client to send on the connection.
    pub(crate) send_window: i64,
    pub(crate) next_id: u32,
    pub(crate) closing: Option<CloseReason>,
    /// The highest stream identifier that the peer's GOAWAY allows; `u32::MAX` without a GOAWAY.
    pub(crate) last_allowed: u32,
    /// The positions in the output at which the unsent acknowledgements (of PING and SETTINGS) end,
    /// counted from the first byte sent on the connection.
    pub(crate) unsent_acks: VecDeque<u64>,
    /// The number of bytes and header blocks that may still arrive on streams that the client has
    /// reset. The peer may have sent them before the RST_STREAM arrived.
    pub(crate) stale: ClosedStreamAllowance,
    pub(crate) name: Vec<u8>,
}

impl H2Machine {
    /// Creates a connection whose output begins with the preface and the client's SETTINGS.
    /// Requests may be enqueued without waiting for the peer's SETTINGS (RFC 9113 §3.4).
    pub fn new(mut config: H2Config) -> H2Machine {
        // Offsets in a head are 32 bits wide.
        config.limits.head_bytes = config.limits.head_bytes.min(u32::MAX as usize);
        config.limits.trailer_bytes = config.limits.trailer_bytes.min(u32::MAX as usize);
        config.max_frame_size = config.max_frame_size.clamp(*FRAME_SIZES.start(), *FRAME_SIZES.end());
        config.connection_window = config.connection_window.clamp(INITIAL_WINDOW, MAX_WINDOW as u32);
        config.stream_window = config.stream_window.clamp(1, config.connection_window);
        let mut intake = ConnectionReceiveWindow::new(config.connection_window, config.stream_window);
        let mut output = OutputBuffer::default();
        let out = output.append_buffer();
        out.extend_from_slice(frame::PREFACE);
        frame::settings(
            &[
                (setting::HEADER_TABLE_SIZE, config.header_table_size),
                (setting::ENABLE_PUSH, 0),
                (setting::INITIAL_WINDOW_SIZE, config.stream_window),
                (setting::MAX_FRAME_SIZE, config.max_frame_size),
                (setting::MAX_HEADER_LIST_SIZE, config.limits.head_bytes as u32),
            ],
            out,
        );
        if let Some(increment) = intake.first_increment() {
            frame::window_update(0, increment, out);
        }
        H2Machine {
            output,
            streams: OpenStreams::default(),
            encoder: HpackEncoder::new(ENCODER_TABLE_SIZE),
            // Until our SETTINGS are acknowledged, the peer may use the defaults.
            decoder: HpackDecoder::new(config.header_table_size.max(ENCODER_TABLE_SIZE)),
            reader: H2FrameReader::default(),
            intake,
            tally: FloodCounts::new(config.floods.by_kind()),
            peer: PeerSettings {
                seen: false,
                max_streams: ASSUMED_MAX_STREAMS,
                window: INITIAL_WINDOW,
                max_frame: *FRAME_SIZES.start(),
                max_head: None,
            },
            clocks: ConnectionTimers::default(),
            due: VecDeque::new(),
            send_window: i64::from(INITIAL_WINDOW),
            next_id: 1,
            closing: None,
            last_allowed: u32::MAX,
            unsent_acks: VecDeque::new(),
            stale: ClosedStreamAllowance::default(),
            name: Vec::new(),
            config,
        }
    }

    /// Returns `true` if [`H2Machine::enqueue`] would accept a valid request now: the connection is
    /// open, and no limit requires waiting.
    pub fn can_enqueue(&self) -> bool {
        self.enqueue_error().is_none()
    }

    fn enqueue_error(&self) -> Option<SendRequestError> {
        let limit = self.max_concurrent();
        if let Some(reason) = self.closing {
            Some(SendRequestError::Closed(reason))
        } else if self.next_id > MAX_WINDOW as u32 {
            Some(SendRequestError::Closed(CloseReason::StreamsExhausted))
        } else if self.streams.len() >= limit as usize {
            Some(SendRequestError::TooManyStreams { limit })
        } else if !self.intake.admits_stream(self.streams.len()) {
            Some(SendRequestError::NoWindow)
        } else {
            None
        }
    }

    /// Returns the number of requests that may be unanswered at the same time: the smaller of the
    /// peer's limit (100 until its SETTINGS arrive) and [`H2Config::max_streams`].
    pub fn max_concurrent(&self) -> u32 {
        self.peer.max_streams.min(self.config.max_streams)
    }

    /// Raises the initial receive window of responses to `stream_window` bytes, also for open
    /// requests. Does nothing if the initial window is already as large, or if the connection's
    /// window is too small for it. A window never shrinks, since the peer may be using all of it.
    pub fn raise_stream_window(&mut self, stream_window: u32) {
        if self.is_over() {
            return;
        }
        let Some(difference) = self.intake.raise_initial_window(stream_window, self.streams.len()) else { return };
        frame::settings(&[(setting::INITIAL_WINDOW_SIZE, stream_window)], self.output.append_buffer());
        self.streams.iter_mut().for_each(|stream| stream.inbound.widen(difference));
    }

    /// Appends a request head to the output, and returns the request's id. If the request is
    /// refused, the connection is unchanged.
    pub fn enqueue(
        &mut self,
        now: MonotonicTimestamp,
        request: &RequestHead<'_>,
    ) -> Result<RequestId, SendRequestError> {
        if let Some(refusal) = self.enqueue_error() {
            return Err(refusal);
        }
        let facts = request_section_writer::check_request(request, self.peer.max_head)?;
        self.start_clocks(now);
        let id = self.next_id;
        self.next_id += 2;
        let upload = RemainingRequestBody::new(request.body);
        let hold = request.expect_continue && upload != RemainingRequestBody::Finished;
        self.clocks.holding += u32::from(hold);
        let start = self.output.end_position();
        let out = self.output.append_buffer();
        let place = out.len();
        out.resize(place + frame::HEADER_LENGTH, 0);
        let mut block = OpenHeaderBlock::begin(&mut self.encoder, out);
        request_section_writer::write_request(request, &facts, &mut block, &mut self.name);
        frame::split_into_frames(place, id, upload == RemainingRequestBody::Finished, self.peer.max_frame, out);
        self.streams.insert(
            id,
            RequestStreamState {
                response_to: facts.response_to,
                upload,
                hold_until: hold.then(|| now + self.config.expect_timeout),
                send_window: i64::from(self.peer.window),
                inbound: self.intake.begin_stream(),
                phase: ResponsePhase::Head,
                interim: 0,
                head_bytes: 0,
                started: false,
                reads_on: false,
                is_tunnel: false,
                trailers: None,
                start,
            },
        );
        Ok(RequestId(u64::from(id)))
    }

    /// Returns all bytes that are ready to send, as one slice. Also call this after every round of
    /// [`H2Machine::step`] and [`H2Machine::release`], since both append window updates and
    /// acknowledgements.
    pub fn output(&self) -> &[u8] {
        self.output.pending()
    }

    /// Records that the transport accepted `n` bytes of [`H2Machine::output`].
    pub fn advance_output(&mut self, n: usize) {
        self.output.advance(n);
        let sent = self.output.sent_bytes();
        while self.unsent_acks.front().is_some_and(|end| *end <= sent) {
            self.unsent_acks.pop_front();
        }
    }

    /// Reads the next event from `input`, which must begin at the first byte that earlier calls did
    /// not consume.
    ///
    /// Call `step` until [`H2Event::NeedInput`]: all input is consumed then, even an incomplete
    /// frame, so that the caller never keeps a remainder. After an error no more input can be read
    /// ([`ResponseError::Closed`]). The output then ends with a GOAWAY that tells the peer the
    /// reason, and [`H2Machine::unanswered`] lists the lost requests.
    pub fn step(&mut self, now: MonotonicTimestamp, input: &mut [u8]) -> Result<H2Step, H2Error> {
        self.start_clocks(now);
        let result = self.receive(now, input);
        if let Err(error) = result {
            self.fail(error);
        }
        result
    }

    /// Records that the caller has consumed `n` bytes of the response's body. The bytes no longer
    /// count against the receive windows. WINDOW_UPDATE frames announce the released bytes in large
    /// steps.
    ///
    /// Release every byte of every [`H2Event::Body`] eventually, even after the response is
    /// complete or was reset. The peer stops when too many bytes are unreleased; this limits the
    /// memory.
    pub fn release(&mut self, now: MonotonicTimestamp, id: RequestId, n: u64) {
        let (open, max_streams) = (self.streams.len(), u64::from(self.max_concurrent()));
        let number = stream_id(id);
        let (stream, conn) = match self.streams.get_mut(number) {
            Some(stream) => {
                let left = stream.remaining_body();
                self.intake.release_of_stream(&mut stream.inbound, n, now, left, (open, max_streams))
            }
            None => (None, self.intake.release_orphaned(n)),
        };
        if self.is_over() {
            return;
        }
        for (number, increment) in [(number, stream), (0, conn)] {
            if let Some(increment) = increment {
                frame::window_update(number, increment, self.output.append_buffer());
            }
        }
    }

    /// Cancels a response: sends RST_STREAM with this code, usually [`ErrorCode::CANCEL`]. No event
    /// with the id of this request follows. Returns `true` if the request was open.
    pub fn reset(&mut self, id: RequestId, code: ErrorCode) -> bool {
        let open = self.drop_stream(stream_id(id), Some(code)).is_some();
        // Its last events may be due already.
        let before = self.due.len();
        self.due.retain(|event| event.id() != Some(id));
        open || self.due.len() < before
    }

    /// Removes a stream, and returns its state; `None` if the stream is not open. Give a `code` if
    /// the exchange may be incomplete: RST_STREAM with this code is then sent, and frames that
    /// still arrive on the stream are tolerated.
    pub(crate) fn drop_stream(&mut self, id: u32, code: Option<ErrorCode>) -> Option<RequestStreamState> {
        let mut stream = self.streams.remove(id)?;
        self.clocks.holding -= u32::from(stream.hold_until.is_some());
        if let Some(code) = code {
            if !self.is_over() {
                frame::rst_stream(id, code, self.output.append_buffer());
            }
            self.stale.add_closed_stream(stream.inbound.window);
        }
        let undelivered = self.reader.abandon(id);
        stream.inbound.held -= undelivered.min(stream.inbound.held);
        self.intake.end_stream(&stream.inbound);
        self.release_without_stream(undelivered);
        Some(stream)
    }

    /// Gives received bytes that belong to no open stream (padding, and payload of closed streams)
    /// back to the connection's receive window.
    pub(crate) fn release_without_stream(&mut self, bytes: u64) {
        if let Some(increment) = self.intake.release_without_stream(bytes) {
            frame::window_update(0, increment, self.output.append_buffer());
        }
    }

    /// Resets the stream of a malformed response and reports the error as an event. The connection
    /// continues.
    pub(crate) fn reset_for_violation(&mut self, id: u32, error: H2Error) {
        if self.drop_stream(id, Some(error.code())).is_some() {
            let reason = ResetReason::Violation(error);
            self.due.push_back(H2Event::Reset { id: RequestId(u64::from(id)), reason, retryable: false });
        }
    }

    /// Records that the peer closed its side of the connection. Pass all input to
    /// [`H2Machine::step`] first.
    ///
    /// An HTTP/2 response cannot end in this way, so the result is always an error that names the
    /// truncated part ([`ResponseError::EndedIdle`] if nothing was lost).
    pub fn end_of_input(&mut self) -> H2Error {
        let error = match self.closing {
            Some(reason @ (CloseReason::Broken | CloseReason::PeerClosed)) => {
                return H2Error::Response(ResponseError::Closed(reason));
            }
            _ if self.streams.is_empty() => H2Error::Response(ResponseError::EndedIdle),
            _ => self.lost_requests_error(),
        };
        self.reader.close();
        self.closing = Some(CloseReason::PeerClosed);
        error
    }

    /// Returns the error for the open requests of a connection that the peer has closed.
    fn lost_requests_error(&self) -> H2Error {
        let is_complete = |stream: &RequestStreamState| stream.phase == ResponsePhase::Ended;
        match self.streams.iter().filter(|stream| !is_complete(stream)).count() {
            0 => H2Error::EndedInRequest,
            open if self.streams.iter().any(|stream| stream.started) => H2Error::EndedInResponse { open },
            _ => H2Error::Response(ResponseError::EndedBeforeResponse),
        }
    }

    pub(crate) fn fail(&mut self, error: H2Error) {
        if matches!(error, H2Error::Response(ResponseError::Closed(_))) {
            return;
        }
        frame::go_away(error.code(), self.output.append_buffer());
        self.reader.close();
        self.due.clear();
        self.closing = Some(CloseReason::Broken);
    }

    /// Sends GOAWAY, unless it was sent before. The connection then accepts no further requests;
    /// open requests continue.
    pub fn go_away(&mut self) {
        if self.closing.is_none() {
            self.closing = Some(CloseReason::Local);
            frame::go_away(ErrorCode::NO_ERROR, self.output.append_buffer());
        }
    }

    /// Iterates over the ids of the requests without a complete response, in the order in which
    /// they were enqueued.
    pub fn unanswered(&self) -> impl Iterator<Item = RequestId> {
        self.streams.ids().map(|id| RequestId(u64::from(id)))
    }

    /// Returns `true` if any part of the response to this open request was received.
    pub fn response_started(&self, id: RequestId) -> bool {
        self.streams.get(stream_id(id)).is_some_and(|stream| stream.started)
    }

    /// Returns `true` if at least one byte of this open request was sent. If no byte was sent, the
    /// request may be sent on another connection, whatever its method.
    pub fn has_sent_any_of(&self, id: RequestId) -> bool {
        self.streams.get(stream_id(id)).is_some_and(|stream| self.output.sent_bytes() > stream.start)
    }

    /// Returns the shortest round-trip time measured so far; `None` before the first measurement.
    pub fn rtt(&self) -> Option<Duration> {
        self.intake.rtt()
    }

    /// Returns `true` if the connection is open, has nothing to send, and has no unanswered
    /// request.
    pub fn is_idle(&self) -> bool {
        self.closing.is_none() && self.streams.is_empty() && self.output().is_empty()
    }

    /// Returns the reason why the connection accepts no further request; `None` if it accepts more.
    /// After [`CloseReason::GoAway`] and [`CloseReason::Local`], close the connection when the last
    /// open request is complete.
    pub fn close_reason(&self) -> Option<CloseReason> {
        match self.closing {
            None if self.next_id > MAX_WINDOW as u32 => Some(CloseReason::StreamsExhausted),
            closing => closing,
        }
    }
}

/// Returns the stream identifier of a request. For an id above 2³²−1 it returns 0, which is the
/// identifier of no request.
pub(crate) fn stream_id(id: RequestId) -> u32 {
    u32::try_from(id.0).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::BodyLength;

    #[test]
    fn largest_stream_identifier_is_used() {
        let request = RequestHead { authority: "h", ..RequestHead::default() };
        let mut conn = H2Machine::new(H2Config::default());
        conn.next_id = MAX_WINDOW as u32;
        assert!(conn.can_enqueue() && conn.close_reason().is_none());
        assert_eq!(conn.enqueue(MonotonicTimestamp(0), &request), Ok(RequestId(0x7fff_ffff)));
        assert_eq!(conn.close_reason(), Some(CloseReason::StreamsExhausted));
        let refused = Err(SendRequestError::Closed(CloseReason::StreamsExhausted));
        assert_eq!(conn.enqueue(MonotonicTimestamp(0), &request), refused);
    }

    #[test]
    fn output_keeps_its_memory_during_a_body() {
        let request =
            RequestHead { method: "POST", authority: "h", body: BodyLength::Known(40_001), ..RequestHead::default() };
        let mut conn = H2Machine::new(H2Config::default());
        let id = conn.enqueue(MonotonicTimestamp(0), &request).expect("a valid request");
        let mut capacity_after = |bytes: &[u8]| {
            assert_eq!(conn.send_body(id, bytes), Ok(bytes.len()));
            conn.advance_output(conn.output().len());
            conn.output.append_buffer().capacity()
        };
        assert!(capacity_after(&[0; 40_000]) >= 40_000);
        assert!(capacity_after(&[0; 1]) < 40_000, "the body is over");
    }
}
