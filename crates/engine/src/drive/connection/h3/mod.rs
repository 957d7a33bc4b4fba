//! An HTTP/3 connection. Its transfers run concurrently, each on its own QUIC stream.
//!
//! ```text
//! datagrams ──▶ QuicConnection ──▶ readable streams ──▶ H3Machine ──▶ Transfer ──▶ sink
//! requests  ──▶ H3Machine ──▶ write to streams ──▶ QuicConnection ──▶ datagrams
//! ```
//!
//! A stream is read only while its sink has room. quinn-proto extends a stream's window when the
//! stream is read, so a full sink stops its own stream and no other.
//!
//! | module | what it does |
//! |---|---|
//! | `receive` | reads streams and passes their bytes through the machine to the transfers |
//! | `send` | writes the machine's output to streams |
//! | `flow_control` | stops streams whose sinks are full, and sizes the window of the connection |
//! | `receive_batching_pause` | lets datagrams gather in the socket while a body arrives fast |
//! | `close` | ends streams and the connection |

mod close;
mod flow_control;
mod protocol_machine_impl;
mod receive;
mod receive_batching_pause;
mod send;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use haul_proto::h3::{H3Config, H3ErrorCode, H3Machine, RequestId};
use quinn_proto::{ConnectionError, Dir};
use rustix::fd::{AsFd, BorrowedFd};

use super::pause_before_next_read::ReadPacing;
use super::uploads::{self, StreamMap, UploadingStream, Uploads, only_stream, only_stream_mut};
use super::{ConnectionWaker, FinishedTransfers, PipelineLimit, ReceiveStatus};
use crate::body::upload::BodyUpload;
use crate::buffer_pool::Buffer;
use crate::drive::rcvlowat;
use crate::drive::zero_copy_to_sink::ZeroCopyWaitResult;
use crate::net::pool::ConnectionKey;
use crate::net::quic::{QuicConnection, QuicReceiveResult};
use crate::stats::WireTraffic;
use crate::time_conversions;
use crate::transfer::{ExchangeFailurePoint, Transfer, TransferStep};
use crate::{Error, ErrorKind};
use flow_control::FullSinkStreams;
use protocol_machine_impl::H3MachineForNextStream;
use receive::{PendingDelivery, QpackBlockedInput};
use receive_batching_pause::ReceiveBatchingPause;
use send::ClientUniStreams;

/// The maximum number of receive calls when an idle connection is checked before its reuse.
const MAX_IDLE_RECEIVES: usize = 16;
/// The longest time without a datagram from the server after which a PING is sent, while a request
/// is unanswered. A server closes a silent connection after 10 s to 30 s.
const MAX_KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(8);
/// The shortest time without a datagram from the server after which a PING is sent, while a request
/// is unanswered. Neither side closes the connection before three probe timeouts (RFC 9000 section
/// 10.1), which are longer than twice this time.
const MIN_KEEP_ALIVE_INTERVAL: Duration = Duration::from_millis(30);

/// Returns the time without a datagram from the server after which a PING is sent, while a request
/// is unanswered, on a connection with this idle timeout (RFC 9000 section 10.1.2).
fn keep_alive_interval(idle_timeout: Duration) -> Duration {
    (idle_timeout / 2).clamp(MIN_KEEP_ALIVE_INTERVAL, MAX_KEEP_ALIVE_INTERVAL)
}

/// An open HTTP/3 connection.
pub struct H3Connection {
    quic: Box<QuicConnection>,
    machine: H3Machine,
    active: StreamMap<H3ActiveStream>,
    /// The ID of the stream that the next request will use; `None` while the peer allows no further
    /// stream.
    next_stream: Option<u64>,
    own_streams: ClientUniStreams,
    /// The IDs of the open unidirectional streams of the peer.
    peer_streams: Vec<u64>,
    /// The IDs of request streams that may have bytes to read.
    readable: Vec<u64>,
    stalled: FullSinkStreams,
    gathered: PendingDelivery,
    uploads: Uploads,
    /// True if something was queued for sending since the last output was sent: a request, or
    /// acknowledgements that are sent at the end of the event loop's round.
    has_deferred_output: bool,
    bulk_pause: ReceiveBatchingPause,
    /// The number of transfers on the connection that have a deadline or a minimum speed.
    time_limited: usize,
    /// The highest rank (position in the output order) of all transfers that were ever started on
    /// this connection. [`H3Connection::is_stuck_before`] compares ranks with it.
    highest_rank: u64,
    /// The number of responses whose head has arrived.
    answered: usize,
    /// The number of complete responses received on the connection.
    served: usize,
    /// The time when the connection was opened. [`H3Connection::next_timeout`] returns this past
    /// time if [`H3Connection::end_expired`] must be called immediately.
    opened_at: Instant,
    /// The time from which silence of the server is measured: the time of its last datagram, or of
    /// the last PING.
    heard_at: Instant,
    /// The time without a datagram from the server after which a PING is sent.
    keep_alive_interval: Duration,
    closing: bool,
    /// The error that ended the QUIC connection; `None` while it is open. The error is reported
    /// after all received bytes of the streams have been read.
    lost: Option<ConnectionError>,
    /// True if the server sent a GOAWAY frame, and has answered a request or still has one to
    /// answer. The requests that this frame refuses are then sent again. Such a repetition does not
    /// count towards the limit on replays.
    closes_with_progress: bool,
    /// The HTTP/3 error code with which haul closes the connection.
    close_code: H3ErrorCode,
    pub(super) pacing: ReadPacing,
    pub(super) pipeline_limit: PipelineLimit,
    /// The key of the connection in the pool of idle connections. It decides which requests the
    /// connection may carry.
    pub key: Arc<ConnectionKey>,
}

/// A transfer in progress, with its stream's state.
struct H3ActiveStream {
    transfer: Box<Transfer>,
    /// The request content that must still be read and sent. `None` if no content is left to send.
    upload: Option<Box<dyn BodyUpload>>,
    /// Input of the stream that cannot be parsed before further entries of the QPACK dynamic table
    /// arrive; `None` if there is none. The stream is not read meanwhile.
    kept: Option<QpackBlockedInput>,
    /// True if the stream is in [`H3Connection::readable`].
    is_readable: bool,
    /// The number of bytes received on the stream.
    received: u64,
    /// The number of body bytes still to come; 0 if unknown.
    left: u64,
    /// The number of complete responses received on the connection when the request was queued.
    served_before: usize,
}

impl UploadingStream for H3ActiveStream {
    fn upload(&mut self) -> Option<(&mut dyn BodyUpload, &mut Transfer)> {
        Some((&mut **self.upload.as_mut()?, &mut self.transfer))
    }
}

impl H3Connection {
    /// Makes a connection from a QUIC connection whose handshake is complete.
    #[must_use]
    pub(crate) fn new(mut quic: Box<QuicConnection>, key: Arc<ConnectionKey>) -> Self {
        let now = Instant::now();
        let max_streams = flow_control::max_streams(quic.windows());
        let keep_alive_interval = keep_alive_interval(quic.idle_timeout());
        let next_stream = quic.machine().streams().open(Dir::Bi).map(u64::from);
        Self {
            quic,
            machine: H3Machine::new(H3Config { max_streams, ..H3Config::default() }),
            active: StreamMap::default(),
            next_stream,
            own_streams: ClientUniStreams::default(),
            peer_streams: Vec::new(),
            readable: Vec::new(),
            stalled: FullSinkStreams::default(),
            gathered: PendingDelivery::default(),
            uploads: Uploads::default(),
            has_deferred_output: true,
            bulk_pause: ReceiveBatchingPause::default(),
            time_limited: 0,
            highest_rank: 0,
            answered: 0,
            served: 0,
            opened_at: now,
            heard_at: now,
            keep_alive_interval,
            closing: false,
            lost: None,
            closes_with_progress: false,
            close_code: H3ErrorCode::NO_ERROR,
            pacing: ReadPacing::new(rcvlowat::MARK_FOR_MANY_STREAMS),
            pipeline_limit: PipelineLimit::default(),
            key,
        }
    }

    /// Returns the descriptor of the socket.
    pub(super) fn as_fd(&self) -> BorrowedFd<'_> {
        self.quic.as_fd()
    }

    /// Returns the address of the peer, as QUIC knows it at present.
    pub(super) fn peer(&self) -> SocketAddr {
        self.quic.peer()
    }

    /// Returns true if the server's certificate is also valid for the host name `host`.
    pub(super) fn is_certified_for(&self, host: &str) -> bool {
        self.quic.session().is_some_and(|session| session.is_certified_for(host))
    }

    /// Returns the numbers of bytes and datagrams that the connection has sent and received so far.
    pub(super) fn wire_traffic(&self) -> WireTraffic {
        self.quic.traffic()
    }

    /// Returns true if the idle connection can be used again. First handles the datagrams that have
    /// arrived meanwhile, such as a GOAWAY. Returns false if the connection is closed, or if
    /// datagrams keep arriving.
    pub(super) fn is_reusable(&mut self, now: Instant) -> bool {
        let mut finished = FinishedTransfers::new();
        let waker = ConnectionWaker { wake: None, token: 0 };
        self.quic.handle_timeout(now);
        for _ in 0..MAX_IDLE_RECEIVES {
            if self.closing || self.receive_step(now, waker, &mut finished) != ReceiveStatus::More {
                return self.is_idle() && !self.quic.is_closed();
            }
        }
        false
    }

    /// Frees memory that an idle connection does not need.
    pub(crate) fn release_buffers(&mut self) {
        self.gathered = PendingDelivery::default();
    }

    /// Returns the number of transfers in progress on the connection.
    #[must_use]
    pub fn outstanding_count(&self) -> usize {
        self.active.len()
    }

    /// Returns true if the connection can carry another request now.
    #[must_use]
    pub fn can_start(&self) -> bool {
        !self.closing && self.next_stream.is_some() && self.machine.can_enqueue() && !self.is_pipeline_limited()
    }

    /// Returns true if a request can be sent now. The result is the same for all transfers.
    #[must_use]
    pub fn accepts(&self, _: &Transfer) -> bool {
        self.can_start()
    }

    /// Returns true if the [`PipelineLimit`] forbids another request before a response arrives.
    #[must_use]
    pub fn is_pipeline_limited(&self) -> bool {
        !self.pipeline_limit.allows(self.answered, || self.unanswered_before(u64::MAX))
    }

    /// Returns the number of requests whose response head has not arrived and whose stream ID is
    /// below `end`.
    fn unanswered_before(&self, end: u64) -> usize {
        self.machine.unanswered().filter(|id| id.0 < end && self.active.contains_key(&id.0)).count()
    }

    /// Returns the number of requests that the next connection to this peer is expected to answer
    /// before it closes; `None` if no limit is known. See [`PipelineLimit::for_next_connection`].
    #[must_use]
    pub fn learned_pipeline_limit(&self) -> Option<usize> {
        self.pipeline_limit.for_next_connection(self.answered, self.unanswered_before(u64::MAX))
    }

    /// Returns true if a transfer of this rank (position in the output order) could wait on this
    /// connection for ever; see
    /// [`H2Connection::is_stuck_before`](super::h2::H2Connection::is_stuck_before).
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

    /// Returns true if the connection is open, has no stream, and nothing to send.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        !self.closing && self.active.is_empty() && !self.machine.has_output()
    }

    /// Returns the number of complete responses received on the connection.
    #[must_use]
    pub fn response_count(&self) -> usize {
        self.served
    }

    /// Queues the request of a transfer on the connection. [`H3Connection::send_pending`] then
    /// sends it. If the request cannot be queued, the transfer is added to `finished`.
    pub fn start(
        &mut self,
        mut transfer: Box<Transfer>,
        now: Instant,
        waker: ConnectionWaker<'_>,
        finished: &mut FinishedTransfers,
    ) {
        transfer.facts.peer = Some(self.quic.peer());
        let is_reused = self.served > 0 || !self.active.is_empty();
        transfer.reuse.on_connection(is_reused, false);
        transfer.on_connection(&*self.quic, is_reused);
        if self.active.is_empty() {
            self.heard_at = now;
        }
        self.has_deferred_output = true;
        let enqueued = match self.next_stream {
            Some(stream) => transfer.enqueue(&mut H3MachineForNextStream { machine: &mut self.machine, stream }, now),
            None => Err(Error::new(ErrorKind::Http3, "the connection takes no further request")),
        };
        match enqueued {
            Ok(id) => {
                self.next_stream = self.quic.machine().streams().open(Dir::Bi).map(u64::from);
                // HTTP/3 has no Connection field, so only haul can close the connection.
                self.closing |= transfer.asks_to_close();
                if self.active.is_empty() {
                    self.pipeline_limit.start_from_idle(self.answered);
                }
                let upload = waker.set_waker(transfer.upload());
                if upload.is_some() {
                    self.uploads.begin(id, waker.may_block());
                }
                self.time_limited += usize::from(transfer.has_time_limit());
                self.highest_rank = self.highest_rank.max(transfer.scheduling.rank);
                let active = H3ActiveStream {
                    transfer,
                    upload,
                    kept: None,
                    is_readable: false,
                    received: 0,
                    left: 0,
                    served_before: self.served,
                };
                self.active.insert(id.0, active);
                self.read_content_into_machine();
            }
            Err(error) => {
                let after = transfer.on_failure(error, ExchangeFailurePoint::BeforeSending, now);
                finished.push((transfer, after));
            }
        }
    }

    /// Returns true if the content of a request is not read and sent completely.
    #[must_use]
    pub fn is_uploading(&self) -> bool {
        self.uploads.is_not_empty()
    }

    /// Returns true if the next [`H3Connection::receive`] will report a finished transfer even if
    /// no datagram arrives.
    #[must_use]
    pub fn has_pending_results(&self) -> bool {
        self.machine.has_pending_event() || !self.readable.is_empty() || self.lost.is_some()
    }

    /// Returns true if output was queued but not sent. The event loop must then call
    /// [`H3Connection::send_pending`] at the end of its round.
    #[must_use]
    pub fn has_deferred_output(&self) -> bool {
        self.has_deferred_output
    }

    /// Returns true if unsent datagrams wait for room in the socket. Content that waits for the
    /// peer's flow-control window does not count.
    #[must_use]
    pub fn has_output(&self) -> bool {
        self.quic.has_output() || self.uploads.is_interrupted
    }

    /// Receives datagrams once, and passes their bytes to the transfers. Adds finished transfers to
    /// `finished`.
    pub fn receive(
        &mut self,
        _: &mut Buffer,
        now: Instant,
        waker: ConnectionWaker<'_>,
        finished: &mut FinishedTransfers,
    ) -> ReceiveStatus {
        self.receive_step(now, waker, finished)
    }

    fn receive_step(
        &mut self,
        now: Instant,
        waker: ConnectionWaker<'_>,
        finished: &mut FinishedTransfers,
    ) -> ReceiveStatus {
        let received = match self.quic.receive(now) {
            Ok(received) => received,
            Err(error) => {
                let error = Error::with_source(ErrorKind::Receive, "the connection broke", error);
                return self.abort(error, now, finished);
            }
        };
        let status = match received {
            QuicReceiveResult::WouldBlock => ReceiveStatus::WouldBlock,
            QuicReceiveResult::More => ReceiveStatus::More,
            QuicReceiveResult::Drained => ReceiveStatus::Drained,
        };
        if received != QuicReceiveResult::WouldBlock {
            self.heard_at = now;
        }
        self.bulk_pause.on_received(self.quic.last_received(), self.quic.receive_buffer(), now);
        match self.handle_events(now, waker, finished) {
            Ok(()) if self.defers_output(waker, finished) => self.write_and_finish(status, now, finished),
            Ok(()) => self.send_and_finish(status, now, finished),
            Err(error) => self.abort(error, now, finished),
        }
    }

    /// Returns true if the acknowledgements of the last receive should be sent later, together with
    /// new requests. All of these must hold: transfers have finished, so that others may start; an
    /// event loop, which sends at the end of its round, drives the connection; and the connection
    /// is neither closing nor uploading content.
    fn defers_output(&self, waker: ConnectionWaker<'_>, finished: &FinishedTransfers) -> bool {
        !waker.may_block() && !finished.is_empty() && !self.closing && !self.is_uploading()
    }

    /// Writes output to the QUIC streams without sending datagrams, and handles the results of the
    /// writing ([`H3Connection::finish_step`]).
    fn write_and_finish(
        &mut self,
        status: ReceiveStatus,
        now: Instant,
        finished: &mut FinishedTransfers,
    ) -> ReceiveStatus {
        self.write_streams();
        self.has_deferred_output = true;
        self.finish_step(status, now, finished)
    }

    /// Sends pending output, and handles the results of the sending
    /// ([`H3Connection::finish_step`]).
    fn send_and_finish(
        &mut self,
        status: ReceiveStatus,
        now: Instant,
        finished: &mut FinishedTransfers,
    ) -> ReceiveStatus {
        if let Err(error) = self.send_pending_at(now) {
            let error = Error::with_source(ErrorKind::Send, "the connection broke", error);
            return self.abort(error, now, finished);
        }
        self.finish_step(status, now, finished)
    }

    /// Handles the results of sending: responses that are finished because the rest of their
    /// request has been sent, and uploads whose source failed. Returns `Closed` if the connection
    /// accepts no more requests and has no streams, and `status` otherwise.
    fn finish_step(&mut self, status: ReceiveStatus, now: Instant, finished: &mut FinishedTransfers) -> ReceiveStatus {
        if let Err(error) = self.handle_pending_events(now, finished) {
            return self.abort(error, now, finished);
        }
        for (id, error) in self.uploads.take_failed() {
            self.fail(id, error, ExchangeFailurePoint::BeforeResponse, now, finished);
        }
        if self.closing && self.active.is_empty() { ReceiveStatus::Closed } else { status }
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
    pub fn wait(&mut self, deadline: Option<Instant>) -> std::io::Result<ZeroCopyWaitResult> {
        // A stream that reached its rate limit is not read before this time.
        let until = [deadline, self.pacing.resumes_at].into_iter().flatten().min();
        if !self.has_output()
            && !self.is_uploading()
            && !self.stalled.waits_for_output
            && let Some(pause) = self.bulk_pause.next(self.remaining())
        {
            self.pacing.pause(pause, until);
            return Ok(ZeroCopyWaitResult::Ready);
        }
        let (sends, awaits_source) = (self.has_output(), self.uploads.is_waiting_for_source());
        let extra_descriptors = only_stream_mut(&mut self.active).map_or([None; 2], |active| {
            uploads::extra_descriptors(&mut active.transfer, active.upload.as_deref().filter(|_| awaits_source))
        });
        match self.pacing.wait(self.quic.as_fd(), sends, extra_descriptors, until) {
            Ok(ZeroCopyWaitResult::Late) if self.pacing.resumes_at.is_some_and(|at| at <= Instant::now()) => {
                Ok(ZeroCopyWaitResult::Ready)
            }
            waited => waited,
        }
    }

    /// Returns the time of the next timeout of QUIC or of the connection's transfers; `None` if
    /// there is none. The caller must call [`H3Connection::end_expired`] at that time, even if no
    /// event has occurred.
    #[must_use]
    pub fn next_timeout(&self) -> Option<Instant> {
        let limits = || {
            let each = |active: &H3ActiveStream| [active.transfer.deadline(), active.transfer.next_speed_check()];
            self.active.values().flat_map(each).flatten().min()
        };
        let limit = if self.time_limited > 0 { limits() } else { None };
        let machine =
            self.machine.poll_timeout().map(|at| time_conversions::to_instant(haul_policy::MonotonicTime(at.0)));
        let failed = self.uploads.has_failed().then_some(self.opened_at);
        let ping = (!self.active.is_empty()).then(|| self.heard_at + self.keep_alive_interval);
        [limit, machine, failed, self.uploads.resumes_at(), self.quic.next_timeout(), ping].into_iter().flatten().min()
    }

    /// Handles the timeouts of QUIC, and sends a PING if the server has been silent. Ends the
    /// transfers that have exceeded a time limit or are too slow, and adds them to `finished`.
    pub fn end_expired(&mut self, now: Instant, finished: &mut FinishedTransfers) -> ReceiveStatus {
        self.quic.handle_timeout(now);
        self.machine.handle_timeout(time_conversions::to_monotonic_timestamp(now));
        if !self.active.is_empty() && self.heard_at + self.keep_alive_interval <= now {
            self.quic.machine().ping();
            self.heard_at = now;
        }
        // Streams are read by the next receive, which has the waker for their sinks. It also reads
        // the last bytes of a lost connection whose driver waits for the output of a sink.
        let waits_for_output = self.stalled.waits_for_output;
        let check = |connection: &mut Self| if waits_for_output { Ok(()) } else { connection.check_connection_lost() };
        if let Err(error) = self.poll_events().and_then(|()| check(self)) {
            return self.abort(error, now, finished);
        }
        let overdue = |(id, active): (&u64, &mut H3ActiveStream)| {
            if active.transfer.deadline().is_some_and(|deadline| deadline <= now) {
                return Some((*id, Error::timed_out()));
            }
            active.transfer.check_speed(now).map(|error| (*id, error))
        };
        let late: Vec<_> =
            if self.time_limited > 0 { self.active.iter_mut().filter_map(overdue).collect() } else { vec![] };
        for (id, error) in late {
            let broke = if self.machine.response_started(RequestId(id)) {
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
        self.machine.reset(RequestId(id), H3ErrorCode::REQUEST_CANCELLED);
        if let Some(active) = self.remove_stream(id) {
            finished.push((active.transfer, TransferStep::Again(Duration::ZERO)));
        }
        // If the socket has no room, the next call of a driver sends the rest.
        let _ = self.send_pending_at(now);
        Some(if self.closing && self.active.is_empty() { ReceiveStatus::Closed } else { ReceiveStatus::More })
    }

    /// Returns the transfer in progress if there is exactly one; otherwise `None`.
    pub(crate) fn front_transfer(&self) -> Option<&Transfer> {
        only_stream(&self.active).map(|active| &*active.transfer)
    }

    /// Returns a mutable reference to the transfer of [`H3Connection::front_transfer`], for example
    /// to pause it.
    pub(crate) fn front_transfer_mut(&mut self) -> Option<&mut Transfer> {
        only_stream_mut(&mut self.active).map(|active| &mut *active.transfer)
    }
}

/// Consecutive bytes of a stream, as QUIC delivered them.
type StreamChunk = Bytes;
