//! An HTTP/1.1 connection. The server answers its transfers one after the other, in the order of
//! their requests.
//!
//! | module | what it does |
//! |---|---|
//! | `request_content` | reads the content of the last request and passes it to the machine |
//! | `receive` | passes received bytes through TLS and the machine to the transfers |
//! | `zero_copy_to_sink` | lets the kernel move the rest of a body to its sink |
//! | `close` | ends exchanges and the connection |
//! | `unverified_pipelined_responses` | keeps responses of pipelined requests until they are verified |

mod close;
mod receive;
mod request_content;
#[cfg(test)]
mod tests;
mod unverified_pipelined_responses;
mod zero_copy_to_sink;

use std::cell::RefCell;
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use haul_policy::queue::HostId;
use haul_proto::h1::{self, H1Machine};
use rustix::fd::{AsFd, BorrowedFd};

use super::pause_before_next_read::{ReadPacing, set_low_water_mark};
use super::sending::{self, MIN_SEND_BUFFER, RESPONSE_CHECK_INTERVAL, SendResult};
use super::{ConnectionWaker, FinishedTransfers, PipelineLimit, ReceiveStatus};
use crate::Error;
use crate::buffer_pool::{BULK_BUFFER_SIZE, Buffer};
use crate::drive::rcvlowat;
use crate::net::pool::ConnectionKey;
use crate::net::stream::{ConnectionStream, ReceiveOutcome};
use crate::time_conversions;
use crate::transfer::{ExchangeFailurePoint, ReceiveCredit, Transfer, TransferStep};
use request_content::UnsentRequestContent;
use unverified_pipelined_responses::UnconfirmedResponses;
use zero_copy_to_sink::ZeroCopyDecision;

/// The minimum number of bytes to request in a read, even if the sink has less room. A response
/// head must fit.
const MIN_READ: usize = 4096;

/// The number of bytes to request for the head of a response whose body the sink probably receives
/// into its own memory. Most heads are shorter. The bytes of the body behind the head are copied,
/// so a larger read would cost a longer copy.
const READ_FOR_HEAD: usize = 8 << 10;
/// The minimum number of bytes in a large receive by a sink. After such a receive, the next head is
/// read with [`READ_FOR_HEAD`]: a copy of fewer bytes costs less than another system call.
const MIN_LARGE_RECEIVE: usize = 32 << 10;

/// An open HTTP/1.1 or HTTP/1.0 connection.
pub struct H1Connection {
    stream: ConnectionStream,
    conn: H1Machine,
    /// Received plaintext that the protocol machine could not parse yet: an incomplete head or
    /// chunk line.
    tail: Vec<u8>,
    queue: VecDeque<Box<Transfer>>,
    pipelined: UnconfirmedResponses,
    /// True if the connection may carry only a single request, because an earlier connection to the
    /// peer received an extra response (one that no request asked for).
    is_one_request_only: bool,
    /// True if a passed deadline has removed sent requests from the end of the queue
    /// ([`Self::cut_queue`]). The connection closes after the last response of the queue, so the
    /// responses to the removed requests are not read.
    is_cut: bool,
    /// True if the server sent an extra response (one that no request asked for). The responses
    /// before it may then belong to other requests.
    has_extra_response: bool,
    /// The maximum number of outstanding requests (more than one only with pipelining).
    max_outstanding: usize,
    content: UnsentRequestContent,
    served: usize,
    closing: bool,
    was_reset: bool,
    /// The error with which sending failed; `None` if sending has not failed. Also `None` if the
    /// peer had closed the connection (`BrokenPipe`), because the next receive reports the close.
    send_error: Option<io::Error>,
    breaks_pipelining: bool,
    /// True if the peer violated the protocol. Closing the connection too early is not a violation.
    peer_violated_protocol: bool,
    /// True if an HTTP/0.9 response, which has no head, arrived after responses with a head.
    is_headless: bool,
    direct: ZeroCopyDecision,
    /// True if the sink of the last response received many bytes into its own memory. The next
    /// response is then expected to be as large, so the read of its head is limited to
    /// [`READ_FOR_HEAD`]. That read clears the flag.
    expects_body_in_sink: bool,
    pub(super) pacing: ReadPacing,
    pub(super) pipeline_limit: PipelineLimit,
    /// The key of the connection in the pool of idle connections. It decides which requests the
    /// connection may carry.
    pub key: Arc<ConnectionKey>,
}

/// The maximum size of a TLS record with its header (RFC 8446 section 5.2, RFC 5246 section 6.2.3).
const MAX_TLS_RECORD: usize = 5 + (16 << 10) + 2048;

impl H1Connection {
    /// Makes a connection over an open stream. `depth` is the maximum number of outstanding
    /// requests.
    #[must_use]
    pub fn new(stream: ConnectionStream, key: Arc<ConnectionKey>, depth: usize) -> Self {
        // The request decides how long its content is held back. The machine's limit would be the
        // same for all requests.
        let config = h1::H1Config {
            max_pipeline: depth,
            expect_timeout: Duration::MAX,
            is_proxy: key.via.forwarding_hop().is_some(),
            deviations: key.deviations,
            ..h1::H1Config::default()
        };
        let pacing =
            ReadPacing::new(if stream.is_secure() { rcvlowat::MARK_WHEN_DECRYPTED } else { rcvlowat::MARK_WHEN_MOVED });
        Self {
            stream,
            conn: H1Machine::new(config),
            tail: Vec::new(),
            queue: VecDeque::new(),
            pipelined: UnconfirmedResponses::default(),
            is_one_request_only: false,
            is_cut: false,
            has_extra_response: false,
            max_outstanding: depth.max(1),
            content: UnsentRequestContent::default(),
            served: 0,
            closing: false,
            was_reset: false,
            send_error: None,
            breaks_pipelining: false,
            peer_violated_protocol: false,
            is_headless: false,
            direct: ZeroCopyDecision::Undecided,
            expects_body_in_sink: false,
            pacing,
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

    /// Returns the number of transfers on the connection that have no complete response yet.
    #[must_use]
    pub fn outstanding_count(&self) -> usize {
        self.queue.len()
    }

    /// Returns true if the connection can carry another request now.
    #[must_use]
    pub fn can_start(&self) -> bool {
        let is_free = !self.closing
            && !self.is_cut
            && !self.content.has_unread_content()
            && !self.pipelined.is_full(self.max_outstanding);
        let is_used_up =
            self.is_one_request_only && !(self.served == 0 && self.queue.is_empty() && self.pipelined.is_empty());
        is_free && !is_used_up && self.conn.can_enqueue() && !self.is_pipeline_limited()
    }

    /// Returns true if this transfer's request can be sent now, pipelined after the unanswered
    /// requests.
    #[must_use]
    pub fn accepts(&self, transfer: &Transfer) -> bool {
        self.can_start() && self.last_transfer().is_none_or(|last| transfer.may_pipeline_after(last))
    }

    /// Returns the transfer whose request was sent last. Returns `None` if that transfer is
    /// finished. Otherwise, it waits for its response or for the end of the pipeline.
    #[must_use]
    pub fn last_transfer(&self) -> Option<&Transfer> {
        self.queue.back().map(|transfer| &**transfer).or(self.pipelined.last())
    }

    /// Returns true if the peer sent an extra response (one that no request asked for).
    #[must_use]
    pub fn has_extra_response(&self) -> bool {
        self.has_extra_response
    }

    /// Limits the connection to a single request in all. A connection that has already carried a
    /// request then accepts no further one.
    pub fn limit_to_one_request(&mut self) {
        self.is_one_request_only = true;
    }

    /// Returns the host slots of complete responses that are kept until the end of the pipeline. A
    /// host slot is the permit for one transfer to a host. The responses lose their slots, so that
    /// other transfers can use them.
    pub fn take_freed_slots(&mut self) -> Vec<HostId> {
        self.pipelined.take_freed_slots()
    }

    /// Returns true if the peer closed the connection without announcing it, before it had answered
    /// all requests. The caller should then send this peer only one request at a time.
    #[must_use]
    pub fn breaks_pipelining(&self) -> bool {
        self.breaks_pipelining
    }

    /// Returns true if the [`PipelineLimit`] forbids another request before a response arrives.
    #[must_use]
    pub fn is_pipeline_limited(&self) -> bool {
        !self.pipeline_limit.allows(self.served, || self.queue.len())
    }

    /// Returns the number of requests that the next connection to this peer is expected to answer
    /// before it closes; `None` if no limit is known. See [`PipelineLimit::for_next_connection`].
    #[must_use]
    pub fn learned_pipeline_limit(&self) -> Option<usize> {
        self.pipeline_limit.for_next_connection(self.served, self.queue.len())
    }

    /// Returns true if the connection will never take another request.
    #[must_use]
    pub fn is_closing(&self) -> bool {
        self.closing
    }

    /// Returns true if the connection is open, all responses are complete, and all received bytes
    /// have been parsed.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        let is_read = self.tail.is_empty() && !self.stream.has_buffered_input() && self.pipelined.is_empty();
        !self.closing && self.queue.is_empty() && self.conn.is_idle() && is_read
    }

    /// Returns the number of complete responses received on the connection.
    #[must_use]
    pub fn response_count(&self) -> usize {
        self.served
    }

    /// Returns the earliest deadline of the transfers on the connection; `None` if none has a
    /// deadline.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        self.queue.iter().filter_map(|transfer| transfer.deadline()).min()
    }

    /// Queues the request of a transfer on the connection. [`H1Connection::send_pending`] then
    /// sends it. If the request cannot be queued, the transfer is added to `finished`.
    pub fn start(
        &mut self,
        mut transfer: Box<Transfer>,
        now: Instant,
        waker: ConnectionWaker<'_>,
        finished: &mut FinishedTransfers,
    ) {
        transfer.facts.peer = self.stream.peer;
        transfer.reuse.on_connection(self.served > 0, !self.queue.is_empty());
        transfer.on_connection(&self.stream, self.served > 0 || !self.queue.is_empty());
        match transfer.enqueue(&mut self.conn, now) {
            Ok(_) => {
                if self.queue.is_empty() {
                    self.pipeline_limit.start_from_idle(self.served);
                }
                self.pipelined.on_next_request();
                let held_until = transfer.expect_timeout().map(|wait| time_conversions::add_saturating(now, wait));
                self.content.begin(waker.set_waker(transfer.upload()), waker.may_block(), held_until);
                if !self.stream.is_secure() && !transfer.traces_content() {
                    let is_local_tcp = self.stream.peer.is_some_and(|peer| peer.ip().to_canonical().is_loopback());
                    self.content.send_without_copy(is_local_tcp);
                }
                self.queue.push_back(transfer);
                let last = RefCell::new(self.queue.back_mut().map(|transfer| &mut **transfer));
                read_content_into_machine(&mut self.content, &mut self.conn, &last);
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
    /// The error of the socket. Nevertheless, a response may have arrived: receive before the
    /// connection is given up.
    pub fn send_pending(&mut self) -> io::Result<bool> {
        let Self { stream, conn, content, queue, send_error, .. } = self;
        // A send that fits into the socket's memory does not show that the peer is alive.
        let may_block = content.may_block();
        let takes_a_while = content.has_unread_content() || conn.output().len() > MIN_SEND_BUFFER;
        let last = RefCell::new(queue.back_mut().map(|transfer| &mut **transfer));
        let sent = || {
            if takes_a_while && let Some(transfer) = last.borrow_mut().as_deref_mut() {
                transfer.on_upload_progress();
            }
        };
        let mut looks_at = None;
        let mut pumped = sending::send_output(
            stream,
            conn,
            may_block,
            |conn| read_content_into_machine(content, conn, &last),
            &sent,
        );
        while matches!(pumped, Ok(SendResult::All)) {
            pumped = match content.send_directly(stream.as_fd(), conn) {
                Ok(None) => break,
                Ok(Some(n)) => {
                    if let Some(transfer) = last.borrow_mut().as_deref_mut() {
                        transfer.on_moved_content(n);
                    }
                    sent();
                    let now = Instant::now();
                    if *looks_at.get_or_insert(now + RESPONSE_CHECK_INTERVAL) <= now {
                        break;
                    }
                    sending::send_output(
                        stream,
                        conn,
                        may_block,
                        |conn| read_content_into_machine(content, conn, &last),
                        &sent,
                    )
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(SendResult::Full),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => Err(error),
            };
        }
        let pumped = pumped.inspect_err(|error| {
            if error.kind() != io::ErrorKind::BrokenPipe {
                *send_error = Some(error.kind().into());
            }
        })?;
        // The last bytes may have left in a call that had little to send.
        let waits = self.waits_to_send();
        if takes_a_while || !waits {
            let is_starved = self.content.is_waiting_for_source();
            if let Some(transfer) = self.queue.back_mut() {
                transfer.set_sending(waits);
                transfer.set_starved(is_starved);
            }
        }
        Ok(pumped != SendResult::Full)
    }

    /// Returns true if the rest of a request may take long to send: content is unread, or the
    /// unsent output does not fit into an empty send buffer of the socket (16 KiB).
    #[must_use]
    pub fn is_uploading(&self) -> bool {
        self.content.has_unread_content() || self.conn.output().len() > MIN_SEND_BUFFER
    }

    /// Returns true if there is something to send: bytes that wait for room in the socket, or
    /// content that can be read from its source.
    #[must_use]
    pub fn has_output(&self) -> bool {
        self.waits_to_send() || self.content.is_accepted_now(&self.conn)
    }

    /// Returns true if bytes to send wait for room in the socket.
    fn waits_to_send(&self) -> bool {
        let is_content = !self.content.is_waiting_for_source() && self.content.is_accepted_now(&self.conn);
        !self.conn.output().is_empty() || self.stream.has_output() || is_content
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
        if self.pipelined.is_closing() {
            return self.receive_after_close(buffer, now, finished);
        }
        if self.conn.has_completion_to_report() {
            return self.finish_early(now, finished);
        }
        let credit = match self.credit(now, waker) {
            ReceiveCredit::Bytes(credit) => credit,
            stopped => return self.on_no_credit(stopped, now, finished),
        };
        if let Some(progress) = self.receive_into_sink(credit, waker, finished) {
            return progress;
        }
        // A sealed record must fit, however small the credit.
        let least = if self.stream.is_secure() { MAX_TLS_RECORD } else { MIN_READ };
        let mut bulk = self.is_bulk(credit).then(|| buffer.take_bulk_buffer());
        let buffer = bulk.as_mut().unwrap_or(buffer);
        let accepted = usize::try_from(credit).unwrap_or(usize::MAX).max(least);
        let reads_head = std::mem::take(&mut self.expects_body_in_sink) && self.remaining() == 0;
        let most = if reads_head { READ_FOR_HEAD } else { buffer.len() };
        let room = buffer.len().min(most).min(accepted);
        let outcome = self.stream.receive(&mut buffer[..room]);
        // On a blocking socket the call has waited, so the bytes arrived now.
        let now = if waker.wake.is_none() { Instant::now() } else { now };
        match outcome {
            Ok(ReceiveOutcome::WouldBlock) => ReceiveStatus::WouldBlock,
            Ok(ReceiveOutcome::Bytes { filled, more }) => match self.process(buffer, filled, now, finished) {
                Ok(()) if self.closing => self.close(now, finished),
                Ok(()) if self.queue.front().is_some_and(|transfer| transfer.has_all_wanted_bytes()) => {
                    self.stop_response(now, finished)
                }
                Ok(()) => {
                    self.set_raised_mark(rcvlowat::MARK_WHEN_COPIED);
                    self.on_received(filled as u64, now);
                    if more { ReceiveStatus::More } else { ReceiveStatus::Drained }
                }
                Err(error) => self.abort(error, now, finished),
            },
            Ok(ReceiveOutcome::End) => self.on_peer_close(self.stream.ended_properly(), now, finished),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => ReceiveStatus::Interrupted,
            Err(error) => self.on_io_error(error, now, finished),
        }
    }

    /// Returns true if the next receive should request many bytes in one system call, since few
    /// large receives cost less than many small ones. This requires that the body arrives fast and
    /// without TLS, and that at least [`BULK_BUFFER_SIZE`] more bytes of the body may be received.
    /// `credit` is the number of bytes that the sink accepts.
    fn is_bulk(&self, credit: u64) -> bool {
        !self.stream.is_secure()
            && self.pacing.low_water.is_raised()
            && self.remaining().min(credit) >= BULK_BUFFER_SIZE as u64
    }

    /// Sets the value to which the socket's low-water mark (`SO_RCVLOWAT`) is raised while a body
    /// arrives fast: [`rcvlowat::MARK_WHEN_MOVED`] if the kernel moves the body to the sink, else
    /// [`rcvlowat::MARK_WHEN_COPIED`]. Does nothing over TLS, where the value is always
    /// [`rcvlowat::MARK_WHEN_DECRYPTED`].
    pub(super) fn set_raised_mark(&mut self, raised_mark: usize) {
        if self.stream.is_secure() {
            return;
        }
        if let Some(mark) = self.pacing.low_water.set_raised_mark(raised_mark) {
            set_low_water_mark(&self.stream, mark);
        }
    }

    /// Returns true if the next [`H1Connection::receive`] will report a finished transfer even if
    /// no byte arrives.
    #[must_use]
    pub fn has_pending_results(&self) -> bool {
        self.conn.has_completion_to_report()
    }

    /// Finishes a response that was complete before its request was sent completely. Call this as
    /// soon as the request has been sent.
    fn finish_early(&mut self, now: Instant, finished: &mut FinishedTransfers) -> ReceiveStatus {
        match self.process_chunk_tail(now, finished) {
            Ok(()) if self.closing => self.close(now, finished),
            Ok(()) => ReceiveStatus::Drained,
            Err(error) => self.abort(error, now, finished),
        }
    }

    /// Returns the number of bytes that the transfer in progress may receive now, or the reason why
    /// it may receive none. If its sink has no room, the sink wakes `waker` later.
    fn credit(&mut self, now: Instant, waker: ConnectionWaker<'_>) -> ReceiveCredit {
        let credit = self.queue.front_mut().map(|transfer| transfer.credit(now, waker.wake, waker.token));
        credit.unwrap_or(ReceiveCredit::Bytes(u64::MAX))
    }

    /// Handles a transfer that may receive nothing now. `stopped` is the reason: its sink has no
    /// room, or it has reached its rate limit. If the transfer needs no more of the body, ends the
    /// response instead.
    fn on_no_credit(
        &mut self,
        stopped: ReceiveCredit,
        now: Instant,
        finished: &mut FinishedTransfers,
    ) -> ReceiveStatus {
        if self.queue.front().is_some_and(|transfer| transfer.has_all_wanted_bytes()) {
            return self.stop_response(now, finished);
        }
        match stopped {
            ReceiveCredit::Until(at) => {
                self.pacing.resumes_at = Some(at);
                ReceiveStatus::Throttled
            }
            _ => {
                // A response that waits here for the end of the pipeline may be the one that would
                // make room.
                self.accept_or_retry_pipeline(now, finished);
                ReceiveStatus::Paused
            }
        }
    }

    /// Records that `bytes` bytes were received, and sets the socket's low-water mark
    /// (`SO_RCVLOWAT`). The mark is high for a body that arrives fast, so that the socket seldom
    /// wakes the reader. For any other body, each byte wakes the reader.
    fn on_received(&mut self, bytes: u64, now: Instant) {
        if self.queue.front().is_some_and(|transfer| transfer.has_rate_limit()) {
            return;
        }
        if let Some(mark) = self.pacing.low_water.on_received(bytes, self.remaining(), now) {
            set_low_water_mark(&self.stream, mark);
        }
    }

    /// Returns the time of the next timeout of the connection's transfers; `None` if there is none.
    /// The caller must call [`H1Connection::end_expired`] at that time, even if no event has
    /// occurred.
    #[must_use]
    pub fn next_timeout(&self) -> Option<Instant> {
        let look = self.queue.front().and_then(|transfer| transfer.next_speed_check());
        let of_transfer = time_conversions::earliest(self.deadline(), look);
        let of_request = time_conversions::earliest(of_transfer, self.content.next_timeout(&self.conn));
        time_conversions::earliest(of_request, self.pipelined.next_timeout())
    }

    /// Ends the transfers that have exceeded a time limit or are too slow, and adds them to
    /// `finished`.
    pub fn end_expired(&mut self, now: Instant, finished: &mut FinishedTransfers) -> ReceiveStatus {
        if let Some(progress) = self.end_pipeline(now, finished) {
            return progress;
        }
        let overdue = if let Some(error) = self.content.take_failure() {
            Some(error)
        } else {
            match self.first_overdue(now) {
                None => self.queue.front_mut().and_then(|transfer| transfer.check_speed(now)),
                Some(0) => Some(Error::timed_out()),
                Some(at) => return self.cut_queue(at, now, finished),
            }
        };
        match overdue {
            Some(error) => self.abort(error, now, finished),
            None => ReceiveStatus::More,
        }
    }

    /// Cancels the transfer with this tag (the caller's ID for it), and closes the connection. The
    /// requests after it are sent again on another connection. Returns `None` if the transfer is
    /// not on this connection.
    pub(crate) fn cancel(&mut self, tag: u64, now: Instant, finished: &mut FinishedTransfers) -> Option<ReceiveStatus> {
        let place = self.queue.iter().position(|transfer| transfer.scheduling.tag == tag);
        let cancelled = place.and_then(|place| self.queue.remove(place)).or_else(|| self.pipelined.cancel(tag))?;
        finished.push((cancelled, TransferStep::Again(Duration::ZERO)));
        Some(self.close(now, finished))
    }

    /// Returns the transfer whose response is being received or comes next; `None` if there is
    /// none. A split download examines this transfer to decide whether more connections would help.
    pub(crate) fn front_transfer(&self) -> Option<&Transfer> {
        self.queue.front().map(|transfer| &**transfer)
    }

    /// Returns a mutable reference to the transfer of [`H1Connection::front_transfer`], for example
    /// to pause it.
    pub(crate) fn front_transfer_mut(&mut self) -> Option<&mut Transfer> {
        self.queue.front_mut().map(|transfer| &mut **transfer)
    }
}

/// Reads request content into the protocol machine, and reports each piece to the transfer. The
/// machine adds framing to the content. If the transfer is traced, it also gets these encoded
/// bytes.
fn read_content_into_machine(
    content: &mut UnsentRequestContent,
    conn: &mut H1Machine,
    transfer: &RefCell<Option<&mut Transfer>>,
) {
    if content.is_finished() {
        return;
    }
    let before = conn.output().len();
    content.read_into_machine(conn, report_sent(transfer));
    if let Some(transfer) = transfer.borrow_mut().as_deref_mut() {
        transfer.record_request_content(&conn.output()[before..]);
    }
}

/// Returns a function that reports each sent piece of content to the transfer.
fn report_sent<'a>(transfer: &'a RefCell<Option<&mut Transfer>>) -> impl FnMut(&[u8]) + 'a {
    move |piece| {
        if let Some(transfer) = transfer.borrow_mut().as_deref_mut() {
            transfer.on_sent(piece);
        }
    }
}
