//! An HTTP/2 connection. Its transfers run concurrently.
//!
//! Received bytes go to their sink at once. While a sink has no room for more, its bytes are not
//! returned to the peer's window ([`h2::H2Machine::release`]). So a full sink stops its own stream
//! and no other, and the window of the connection bounds the memory of all streams together.
//!
//! | module | what it does |
//! |---|---|
//! | `receive` | passes received bytes through TLS and the machine to the transfers |
//! | `flow_control` | returns credit to the peer's windows, and sets the socket's low-water mark |
//! | `close` | ends streams and the connection |

mod close;
mod flow_control;
mod protocol_machine;
mod receive;

use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use haul_proto::h2::{self, ErrorCode, H2Machine, RequestId};
use rustix::fd::{AsFd, BorrowedFd};

use super::pause_before_next_read::ReadPacing;
use super::sending::{self, MIN_SEND_BUFFER, SendResult};
use super::uploads::{self, StreamMap, UploadingStream, Uploads, only_stream, only_stream_mut};
use super::{ConnectionWaker, FinishedTransfers, PipelineLimit, ReceiveStatus};
use crate::body::upload::BodyUpload;
use crate::buffer_pool::Buffer;
use crate::drive::rcvlowat;
use crate::drive::zero_copy_to_sink::ZeroCopyWaitResult;
use crate::net::pool::ConnectionKey;
pub use crate::net::receive_memory_budget::{ConnectionReceiveBudget, SharedRecvMemory};
use crate::net::stream::{ConnectionStream, ReceiveOutcome};
use crate::time_conversions;
use crate::transfer::{ExchangeFailurePoint, Transfer, TransferStep};
use crate::{Error, ErrorKind};
use close::protocol_error;

/// An open HTTP/2 connection.
pub struct H2Connection {
    stream: ConnectionStream,
    conn: H2Machine,
    active: StreamMap<H2ActiveStream>,
    /// The IDs of streams that received bytes in the last call of [`H2Connection::receive`].
    touched: Vec<u64>,
    /// The IDs of streams that may not receive now, because their sinks have no room or their rate
    /// limit is reached.
    stalled: Vec<u64>,
    uploads: Uploads,
    /// The number of transfers on the connection that have a deadline or a minimum speed.
    time_limited: usize,
    /// The highest rank (position in the output order) of all transfers that were ever started on
    /// this connection. [`H2Connection::is_stuck_before`] compares ranks with it.
    highest_rank: u64,
    /// The budget that limits the number of received bytes that no sink has accepted. The windows
    /// of the streams are derived from it.
    recv_budget: ConnectionReceiveBudget,
    /// The number of responses whose head has arrived.
    answered: usize,
    /// The number of complete responses received on the connection.
    served: usize,
    /// The time when the connection was opened. After the source of an upload has failed,
    /// [`H2Connection::next_timeout`] returns this time. It is in the past, so the caller calls
    /// [`H2Connection::end_expired`] immediately.
    opened_at: Instant,
    closing: bool,
    /// True if the peer violated the protocol. The last frame sent is then a GOAWAY with the error
    /// code.
    peer_violated_protocol: bool,
    /// True until the server's SETTINGS frame says how many concurrent requests it accepts.
    awaits_settings: bool,
    /// True if the server sent a GOAWAY frame but made progress: it had answered at least one
    /// request, or still had one to answer. The requests that it refused are then sent again.
    closes_with_progress: bool,
    pub(super) pacing: ReadPacing,
    pub(super) pipeline_limit: PipelineLimit,
    /// The key of the connection in the pool of idle connections. It decides which requests the
    /// connection may carry.
    pub key: Arc<ConnectionKey>,
}

/// A transfer in progress, with its stream's state.
struct H2ActiveStream {
    transfer: Box<Transfer>,
    /// The request content that must still be read and sent. `None` if no content is left to send.
    upload: Option<Box<dyn BodyUpload>>,
    /// The number of received bytes that still count against the flow-control window.
    unreleased: u64,
    /// Ranges of the receive buffer with body bytes of the stream that were not delivered yet. One
    /// call delivers all of them to the sink.
    pieces: Vec<Range<usize>>,
    is_touched: bool,
    /// True if the request was sent before the server's SETTINGS frame arrived. The server may then
    /// refuse it.
    sent_before_settings: bool,
    /// The number of body bytes still to come; 0 if unknown.
    left: u64,
}

impl UploadingStream for H2ActiveStream {
    fn upload(&mut self) -> Option<(&mut dyn BodyUpload, &mut Transfer)> {
        Some((&mut **self.upload.as_mut()?, &mut self.transfer))
    }
}

impl H2Connection {
    /// Makes a connection over an open stream. `rate` is the rate limit of the first response, in
    /// bytes per second; `None` without a limit.
    #[must_use]
    pub fn new(
        stream: ConnectionStream,
        key: Arc<ConnectionKey>,
        recv_memory: &SharedRecvMemory,
        rate: Option<u64>,
    ) -> Self {
        let recv_budget = recv_memory.reserve();
        let stream_window = rate.map_or_else(|| recv_budget.stream_window(), |rate| recv_budget.paced_window(rate));
        let connection_window = recv_budget.connection_window();
        let config = h2::H2Config { connection_window, stream_window, ..h2::H2Config::default() };
        Self {
            stream,
            conn: H2Machine::new(config),
            active: StreamMap::default(),
            touched: Vec::new(),
            stalled: Vec::new(),
            uploads: Uploads::default(),
            time_limited: 0,
            highest_rank: 0,
            recv_budget,
            answered: 0,
            served: 0,
            opened_at: Instant::now(),
            closing: false,
            peer_violated_protocol: false,
            awaits_settings: true,
            closes_with_progress: false,
            pacing: ReadPacing::new(rcvlowat::MARK_FOR_MANY_STREAMS),
            pipeline_limit: PipelineLimit::default(),
            key,
        }
    }

    /// Returns the descriptor of the socket.
    pub(super) fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }

    /// Returns the byte stream that carries the connection: a socket, TLS, or a tunnel through a
    /// proxy.
    #[must_use]
    pub fn stream(&self) -> &ConnectionStream {
        &self.stream
    }

    /// Frees memory that an idle connection does not need.
    pub(crate) fn release_buffers(&mut self) {
        self.stream.release_buffers();
    }

    /// Returns the byte stream that carries the connection: a socket, TLS, or a tunnel through a
    /// proxy. Drops the state of the protocol and the transfers.
    pub(super) fn into_stream(self) -> ConnectionStream {
        self.stream
    }

    /// Returns true if the last frame sent is a GOAWAY with an error code, because the peer
    /// violated the protocol.
    pub(super) fn needs_drain(&self) -> bool {
        self.peer_violated_protocol
    }

    /// Returns the number of transfers in progress on the connection.
    #[must_use]
    pub fn outstanding_count(&self) -> usize {
        self.active.len()
    }

    /// Returns true if the connection can carry another request now.
    #[must_use]
    pub fn can_start(&self) -> bool {
        !self.closing && self.conn.can_enqueue() && !self.is_pipeline_limited()
    }

    /// Returns true if the [`PipelineLimit`] forbids another request before a response arrives.
    #[must_use]
    pub fn is_pipeline_limited(&self) -> bool {
        !self.pipeline_limit.allows(self.answered, || self.unanswered_up_to(u64::MAX))
    }

    /// Returns the number of requests with a stream ID of at most `last` whose response head has
    /// not arrived.
    fn unanswered_up_to(&self, last: u64) -> usize {
        self.active.keys().filter(|&&id| id <= last && !self.conn.response_started(RequestId(id))).count()
    }

    /// Returns the number of requests that the next connection to this peer is expected to answer
    /// before it closes; `None` if no limit is known. See [`PipelineLimit::for_next_connection`].
    /// The result is at most the number of concurrent streams that the peer accepts.
    #[must_use]
    pub fn learned_pipeline_limit(&self) -> Option<usize> {
        let at_once = usize::try_from(self.conn.max_concurrent()).unwrap_or(usize::MAX);
        self.pipeline_limit
            .for_next_connection(self.answered, self.unanswered_up_to(u64::MAX))
            .map(|limit| limit.min(at_once))
    }

    /// Returns true if this transfer's request can be sent now. Before the server has announced how
    /// many streams it accepts, it may refuse all streams but the first. Therefore, a request that
    /// cannot be repeated waits for the announcement.
    #[must_use]
    pub fn accepts(&self, transfer: &Transfer) -> bool {
        let is_risky = self.awaits_settings && !self.active.is_empty() && transfer.has_one_shot_content();
        self.can_start() && !is_risky
    }

    /// Returns true if a transfer of this rank (position in the output order) must not wait for
    /// this connection, because the connection itself waits for the body of the transfer. All of
    /// these must be true:
    /// - the connection accepts no further request;
    /// - the sinks of all its streams are full;
    /// - one of these sinks is for a later body, and waits for the body of this transfer.
    #[must_use]
    pub fn is_stuck_before(&self, rank: u64) -> bool {
        self.highest_rank > rank
            && self.stalled.len() == self.active.len()
            && self.pacing.resumes_at.is_none()
            && !self.can_start()
            && self.active.values().any(|active| active.transfer.scheduling.rank > rank)
    }

    /// Returns true if the connection will never take another request.
    #[must_use]
    pub fn is_closing(&self) -> bool {
        self.closing
    }

    /// Returns true if the connection is open, has no stream, and nothing to send or to process.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        !self.closing && self.active.is_empty() && self.conn.output().is_empty() && !self.stream.has_buffered_input()
    }

    /// Returns the number of complete responses received on the connection.
    #[must_use]
    pub fn response_count(&self) -> usize {
        self.served
    }

    /// Queues the request of a transfer on the connection. [`H2Connection::send_pending`] then
    /// sends it. If the request cannot be queued, the transfer is added to `finished`.
    pub fn start(
        &mut self,
        mut transfer: Box<Transfer>,
        now: Instant,
        waker: ConnectionWaker<'_>,
        finished: &mut FinishedTransfers,
    ) {
        transfer.facts.peer = self.stream.peer;
        let is_reused = self.served > 0 || !self.active.is_empty();
        transfer.reuse.on_connection(is_reused, false);
        transfer.on_connection(&self.stream, is_reused);
        if !transfer.has_rate_limit() {
            self.conn.raise_stream_window(self.recv_budget.stream_window());
        }
        match transfer.enqueue(&mut self.conn, now) {
            Ok(id) => {
                // HTTP/2 has no Connection field, so only haul can close the connection.
                // The identifiers of streams may be used up.
                self.closing |= transfer.asks_to_close() || self.conn.close_reason().is_some();
                if self.active.is_empty() {
                    self.pipeline_limit.start_from_idle(self.answered);
                }
                let upload = waker.set_waker(transfer.upload());
                if upload.is_some() {
                    self.uploads.begin(id, waker.may_block());
                }
                self.time_limited += usize::from(transfer.has_time_limit());
                self.highest_rank = self.highest_rank.max(transfer.scheduling.rank);
                let (pieces, sent_before_settings) = (Vec::new(), self.awaits_settings);
                let active = H2ActiveStream {
                    transfer,
                    upload,
                    unreleased: 0,
                    pieces,
                    is_touched: false,
                    sent_before_settings,
                    left: 0,
                };
                self.active.insert(id.0, active);
                self.uploads.read_into_machine(&mut self.conn, &mut self.active);
            }
            Err(error) => {
                let after = transfer.on_failure(error, ExchangeFailurePoint::BeforeSending, now);
                finished.push((transfer, after));
            }
        }
    }

    /// Sends pending output. Returns false if the socket has no room for all of it.
    ///
    /// # Errors
    /// The error of the socket.
    pub fn send_pending(&mut self) -> io::Result<bool> {
        let Self { stream, conn, active, uploads, .. } = self;
        let may_block = uploads.may_block();
        let pumped =
            sending::send_output(stream, conn, may_block, |conn| uploads.read_into_machine(conn, active), || {})?;
        uploads.is_interrupted = pumped == SendResult::CheckForResponse;
        Ok(pumped != SendResult::Full)
    }

    /// Returns true if a request is not sent completely: its content was not read to the end, or
    /// the unsent output of the connection is larger than an empty send buffer.
    #[must_use]
    pub fn is_uploading(&self) -> bool {
        self.uploads.is_not_empty() || self.conn.output().len() > MIN_SEND_BUFFER
    }

    /// Returns true if the next [`H2Connection::receive`] will report a finished transfer even if
    /// no byte arrives.
    #[must_use]
    pub fn has_pending_results(&self) -> bool {
        self.conn.has_pending_event()
    }

    /// Returns true if unsent bytes wait for room in the socket. Content that waits for the peer's
    /// flow-control window does not count.
    #[must_use]
    pub fn has_output(&self) -> bool {
        !self.conn.output().is_empty() || self.stream.has_output() || self.uploads.is_interrupted
    }

    /// Receives bytes once into `buffer`, and passes them to the transfers. Adds finished transfers
    /// to `finished`.
    pub fn receive(
        &mut self,
        buffer: &mut Buffer,
        now: Instant,
        waker: ConnectionWaker<'_>,
        finished: &mut FinishedTransfers,
    ) -> ReceiveStatus {
        if self.conn.has_pending_event() {
            return self.finish_step(ReceiveStatus::More, now, finished);
        }
        let had_stalled = !self.stalled.is_empty();
        self.release_stalled(now, waker, finished);
        if !self.active.is_empty() && self.stalled.len() == self.active.len() && self.pacing.resumes_at.is_some() {
            // All streams have reached their rate limits.
            return self.send_and_finish(ReceiveStatus::Throttled, now, finished);
        }
        // The window updates must be sent before this receive, which may block: the peer may have
        // used up its windows. If the connection is broken, the receive reports it.
        if had_stalled {
            let _ = self.send_pending();
        }
        let progress = match self.stream.receive(buffer) {
            Ok(ReceiveOutcome::WouldBlock) => ReceiveStatus::WouldBlock,
            Ok(ReceiveOutcome::Bytes { filled, more }) => match self.process(buffer, filled, now, finished) {
                Ok(true) => {
                    self.release_received(now, waker, finished);
                    self.on_received(filled as u64, now);
                    if more { ReceiveStatus::More } else { ReceiveStatus::Drained }
                }
                Ok(false) => return self.on_peer_close(now, finished),
                Err(error) => return self.abort(error, now, finished),
            },
            Ok(ReceiveOutcome::End) => return self.on_peer_close(now, finished),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => ReceiveStatus::Interrupted,
            Err(error) => {
                let error = Error::with_source(ErrorKind::Receive, "the connection broke", error);
                return self.abort(error, now, finished);
            }
        };
        // The output of this step may be sent together with that of the next one, which wakes the
        // peer once.
        if progress == ReceiveStatus::More && !self.uploads.is_not_empty() {
            return self.finish_step(progress, now, finished);
        }
        self.send_and_finish(progress, now, finished)
    }

    /// Sends the protocol machine's output after a receive. Then handles the results of the sending
    /// ([`H2Connection::finish_step`]).
    fn send_and_finish(
        &mut self,
        progress: ReceiveStatus,
        now: Instant,
        finished: &mut FinishedTransfers,
    ) -> ReceiveStatus {
        match self.send_pending() {
            // The peer has closed. The bytes that it sent before are received first, and then its
            // close, which is the error.
            Err(error) if matches!(error.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset) => {}
            Err(error) => {
                let error = Error::with_source(ErrorKind::Send, "the connection broke", error);
                return self.abort(error, now, finished);
            }
            Ok(_) => {}
        }
        self.finish_step(progress, now, finished)
    }

    /// Handles the results of sending: responses that are finished because the rest of their
    /// request has been sent, and uploads whose source failed. Returns `Closed` if the connection
    /// accepts no more requests and has no streams, and `progress` otherwise.
    fn finish_step(
        &mut self,
        progress: ReceiveStatus,
        now: Instant,
        finished: &mut FinishedTransfers,
    ) -> ReceiveStatus {
        if self.conn.has_pending_event()
            && let Err(error) = self.process_step(&mut [], 0..0, now, finished)
        {
            return self.abort(error, now, finished);
        }
        for (id, error) in self.uploads.take_failed() {
            self.fail(id, error, ExchangeFailurePoint::BeforeResponse, now, finished);
        }
        if self.closing && self.active.is_empty() { ReceiveStatus::Closed } else { progress }
    }

    /// Returns the number of body bytes of the only stream that are still to come. Returns 0 if the
    /// number is unknown, or if there is not exactly one stream.
    #[must_use]
    pub fn remaining(&self) -> u64 {
        only_stream(&self.active).map_or(0, |active| active.left)
    }

    /// Waits until there is something to receive, or room to send, but not beyond `deadline`.
    ///
    /// # Errors
    /// The errors of `poll(2)`.
    pub fn wait(&mut self, deadline: Option<Instant>) -> io::Result<ZeroCopyWaitResult> {
        let sends = self.has_output() && !self.stream.waits_for_proxy();
        // A stream that reached its rate limit receives nothing until its window is opened again at
        // this time.
        let until = [deadline, self.pacing.resumes_at].into_iter().flatten().min();
        let awaits_source = self.uploads.is_waiting_for_source();
        let extra_descriptors = only_stream_mut(&mut self.active).map_or([None; 2], |active| {
            uploads::extra_descriptors(&mut active.transfer, active.upload.as_deref().filter(|_| awaits_source))
        });
        match self.pacing.wait(self.stream.as_fd(), sends, extra_descriptors, until) {
            Ok(ZeroCopyWaitResult::Late) if self.pacing.resumes_at.is_some_and(|at| at <= Instant::now()) => {
                Ok(ZeroCopyWaitResult::Ready)
            }
            waited => waited,
        }
    }

    /// Returns the time of the next timeout of the connection's transfers; `None` if there is none.
    /// The caller must call [`H2Connection::end_expired`] at that time, even if no event has
    /// occurred.
    #[must_use]
    pub fn next_timeout(&self) -> Option<Instant> {
        let limits = || {
            let each = |active: &H2ActiveStream| [active.transfer.deadline(), active.transfer.next_speed_check()];
            self.active.values().flat_map(each).flatten().min()
        };
        let limit = if self.time_limited > 0 { limits() } else { None };
        let machine = self.conn.poll_timeout().map(|at| time_conversions::to_instant(haul_policy::MonotonicTime(at.0)));
        let failed = self.uploads.has_failed().then_some(self.opened_at);
        [limit, machine, failed, self.uploads.resumes_at()].into_iter().flatten().min()
    }

    /// Ends the transfers that have exceeded a time limit or are too slow, and adds them to
    /// `finished`.
    pub fn end_expired(&mut self, now: Instant, finished: &mut FinishedTransfers) -> ReceiveStatus {
        if let Err(error) = self.conn.handle_timeout(time_conversions::to_monotonic_timestamp(now)) {
            return self.abort(protocol_error(error), now, finished);
        }
        let overdue = |(id, active): (&u64, &mut H2ActiveStream)| {
            if active.transfer.deadline().is_some_and(|deadline| deadline <= now) {
                return Some((*id, Error::timed_out()));
            }
            active.transfer.check_speed(now).map(|error| (*id, error))
        };
        let late: Vec<_> =
            if self.time_limited > 0 { self.active.iter_mut().filter_map(overdue).collect() } else { vec![] };
        for (id, error) in late {
            let broke = if self.conn.response_started(RequestId(id)) {
                ExchangeFailurePoint::InResponse
            } else {
                ExchangeFailurePoint::BeforeResponse
            };
            self.fail(id, error, broke, now, finished);
        }
        self.send_and_finish(ReceiveStatus::More, now, finished)
    }

    /// Cancels the transfer with this tag (the caller's ID for it), and resets its stream. Returns
    /// `None` if the transfer is not on this connection.
    pub(crate) fn cancel(&mut self, tag: u64, now: Instant, finished: &mut FinishedTransfers) -> Option<ReceiveStatus> {
        let id = self.active.iter().find(|(_, active)| active.transfer.scheduling.tag == tag).map(|(id, _)| *id)?;
        self.conn.reset(RequestId(id), ErrorCode::CANCEL);
        if let Some(active) = self.remove_stream(id, now) {
            finished.push((active.transfer, TransferStep::Again(Duration::ZERO)));
        }
        Some(if self.closing && self.active.is_empty() { ReceiveStatus::Closed } else { ReceiveStatus::More })
    }

    /// Returns the transfer in progress if there is exactly one; otherwise `None`.
    pub(crate) fn front_transfer(&self) -> Option<&Transfer> {
        only_stream(&self.active).map(|active| &*active.transfer)
    }

    /// Returns a mutable reference to the transfer of [`H2Connection::front_transfer`], for example
    /// to pause it.
    pub(crate) fn front_transfer_mut(&mut self) -> Option<&mut Transfer> {
        only_stream_mut(&mut self.active).map(|active| &mut *active.transfer)
    }
}
