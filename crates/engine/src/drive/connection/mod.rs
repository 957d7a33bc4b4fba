//! An open HTTP connection with its protocol machine and the transfers that wait for responses on
//! it.
//!
//! The blocking driver and the event loop both use it. A call does what can be done now, and
//! returns why it stopped. On a blocking socket, this includes the wait inside `recv`.
//!
//! ```text
//!  start ──▶ machine ──▶ pump ──▶ ConnectionStream
//!  ConnectionStream ──▶ receive ──▶ machine ──▶ Transfer ──▶ finished
//! ```
//!
//! | protocol | order of its transfers |
//! |---|---|
//! | [`h1`] | one after the other, in the order of their requests |
//! | [`h2`], `h3` | side by side |
//!
//! The module `sending` sends content and output for all protocols, and `uploads` sends the
//! contents of requests that share a connection. The module `replay` decides which of these are
//! sent again. The module `read_pacing` decides how long to wait before the next read.

pub mod h1;
pub mod h2;
#[cfg(feature = "http3")]
pub mod h3;
mod pause_before_next_read;
mod pipeline_limit;
mod replay_decision;
mod sending;
mod socket_and_peer;
mod uploads;

use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use haul_policy::queue::HostId;
pub use pipeline_limit::PipelineLimit;
pub use sending::ProtocolMachine;
use smallvec::SmallVec;

use crate::Error;
use crate::body::upload::BodyUpload;
use crate::buffer_pool::Buffer;
use crate::drive::zero_copy_to_sink::{ZeroCopyMover, ZeroCopyWaitResult};
use crate::net::connecting::OpenedConnection;
use crate::net::pool::ConnectionKey;
use crate::sink::TransferWaker;
use crate::transfer::{Transfer, TransferStep};

/// The method by which bytes are written to a sink that is a pipe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PipeWriteMode {
    /// The kernel moves bytes to the pipe. The driver waits until the pipe has room.
    Awaited,
    /// The sink writes the bytes, and blocks until the pipe has room, because the driver waits for
    /// sockets only.
    Written,
}

/// The result of a receive: whether more bytes may wait, or why receiving stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReceiveStatus {
    /// No bytes were available.
    WouldBlock,
    /// Bytes were received, and there may be more.
    More,
    /// A signal interrupted the call before it received anything: try again.
    Interrupted,
    /// Bytes were received, and no more are available at present.
    Drained,
    /// The sink has no room. Do not read before it wakes the driver.
    Paused,
    /// The transfer has reached its rate limit. Do not read before [`HttpConnection::resumes_at`].
    Throttled,
    /// The connection is closed. Its transfers were added to the finished transfers.
    Closed,
}

/// The waker of a connection: sinks call it when they have room again, and content sources when
/// they have more bytes.
#[derive(Clone, Copy)]
pub struct ConnectionWaker<'a> {
    /// The waker of the driver. `None` if the sink itself blocks the driver's thread until it has
    /// room.
    pub wake: Option<&'a Arc<dyn TransferWaker>>,
    /// The number by which the driver identifies the connection.
    pub token: usize,
}

impl ConnectionWaker<'_> {
    /// Returns true if a read of content may block, because the thread serves no other transfer.
    fn may_block(&self) -> bool {
        self.wake.is_none()
    }

    /// Registers the driver's waker with content that may have to wait. The content's source then
    /// wakes the driver instead of blocking a thread that serves other transfers.
    fn set_waker(&self, upload: Option<Box<dyn BodyUpload>>) -> Option<Box<dyn BodyUpload>> {
        let mut upload = upload?;
        if let Some(wake) = self.wake
            && upload.waits()
        {
            upload.set_waker(Arc::new(UploadWaker { wake: Arc::clone(wake), token: self.token }).into());
        }
        Some(upload)
    }
}

/// A connection's waker as a [`std::task::Waker`], which content sources call.
struct UploadWaker {
    wake: Arc<dyn TransferWaker>,
    token: usize,
}

impl std::task::Wake for UploadWaker {
    fn wake(self: Arc<Self>) {
        self.wake.wake(self.token);
    }
}

/// Transfers whose exchange is over, with the next step of each. Transfers are boxed because they
/// are large and are moved often. The list mostly has one entry, which needs no allocation.
pub type FinishedTransfers = SmallVec<[(Box<Transfer>, TransferStep); 1]>;

/// An open connection over HTTP/1, HTTP/2 or HTTP/3.
pub enum HttpConnection {
    /// A connection over HTTP/1.1 or 1.0.
    H1(Box<h1::H1Connection>),
    /// A connection over HTTP/2.
    H2(Box<h2::H2Connection>),
    /// A connection over HTTP/3.
    #[cfg(feature = "http3")]
    H3(Box<h3::H3Connection>),
}

/// A macro that calls the same method on a connection of any protocol.
macro_rules! any {
    ($connection:expr, $inner:ident => $call:expr) => {
        match $connection {
            HttpConnection::H1($inner) => $call,
            HttpConnection::H2($inner) => $call,
            #[cfg(feature = "http3")]
            HttpConnection::H3($inner) => $call,
        }
    };
}

impl HttpConnection {
    /// Makes an HTTP connection over an open transport connection, for the negotiated protocol.
    /// `depth` is the maximum number of outstanding requests on HTTP/1.1. An HTTP/2 connection gets
    /// a receive budget from `recv_memory`, and a small initial window if the first response is
    /// limited to `rate` bytes per second.
    #[must_use]
    pub(crate) fn new(
        opened: OpenedConnection,
        key: Arc<ConnectionKey>,
        depth: usize,
        recv_memory: &h2::SharedRecvMemory,
        rate: Option<u64>,
    ) -> Self {
        let stream = match opened {
            OpenedConnection::Stream(stream) => *stream,
            #[cfg(feature = "http3")]
            OpenedConnection::Quic(quic) => return Self::H3(Box::new(h3::H3Connection::new(quic, key))),
        };
        if key.prior_knowledge || stream.alpn() == Some(b"h2") {
            Self::H2(Box::new(h2::H2Connection::new(stream, key, recv_memory, rate)))
        } else {
            Self::H1(Box::new(h1::H1Connection::new(stream, key, depth)))
        }
    }

    /// Returns the key of the connection, which decides which requests it may carry.
    #[must_use]
    pub fn key(&self) -> &Arc<ConnectionKey> {
        any!(self, connection => &connection.key)
    }

    /// Returns true if transfers run concurrently (HTTP/2 and HTTP/3). One connection is then
    /// enough for many transfers.
    #[must_use]
    pub fn is_shared(&self) -> bool {
        !matches!(self, Self::H1(_))
    }

    /// Returns the number of transfers on the connection that have no complete response yet.
    #[must_use]
    pub fn outstanding_count(&self) -> usize {
        any!(self, connection => connection.outstanding_count())
    }

    /// Returns true if a request can be sent now.
    #[must_use]
    pub fn can_start(&self) -> bool {
        any!(self, connection => connection.can_start())
    }

    /// Returns true if this transfer's request can be sent now.
    #[must_use]
    pub fn accepts(&self, transfer: &Transfer) -> bool {
        any!(self, connection => connection.accepts(transfer))
    }

    /// Returns the transfer whose response must come before the response to a further request;
    /// `None` if transfers run concurrently.
    #[must_use]
    pub fn last_transfer(&self) -> Option<&Transfer> {
        match self {
            Self::H1(connection) => connection.last_transfer(),
            _ => None,
        }
    }

    /// Returns true if a transfer of this rank (position in the output order) could wait here for
    /// ever: see [`h2::H2Connection::is_stuck_before`].
    #[must_use]
    pub fn is_stuck_before(&self, rank: u64) -> bool {
        match self {
            Self::H1(_) => false,
            Self::H2(connection) => connection.is_stuck_before(rank),
            #[cfg(feature = "http3")]
            Self::H3(connection) => connection.is_stuck_before(rank),
        }
    }

    /// Returns true if the peer closed the connection with requests unanswered, and without
    /// announcing the close. The requests had to be sent again.
    #[must_use]
    pub fn breaks_pipelining(&self) -> bool {
        match self {
            Self::H1(connection) => connection.breaks_pipelining(),
            _ => false,
        }
    }

    /// Returns true if the peer sent a further response after the responses to all pipelined
    /// requests.
    #[must_use]
    pub fn has_extra_response(&self) -> bool {
        match self {
            Self::H1(connection) => connection.has_extra_response(),
            _ => false,
        }
    }

    /// Limits an HTTP/1 connection to one request. A connection that has already carried several
    /// requests accepts no further request.
    pub fn limit_to_one_request(&mut self) {
        if let Self::H1(connection) = self {
            connection.limit_to_one_request();
        }
    }

    /// Sets the number of requests that the last connection to this peer answered: see
    /// [`PipelineLimit`].
    pub fn set_pipeline_limit(&mut self, limit: usize) {
        any!(self, connection => connection.pipeline_limit.set(limit));
    }

    /// Returns true if the [`PipelineLimit`] forbids another request before a response arrives.
    #[must_use]
    pub fn is_pipeline_limited(&self) -> bool {
        any!(self, connection => connection.is_pipeline_limited())
    }

    /// Returns the number of requests that the next connection to this peer is expected to answer;
    /// `None` if this connection has shown no limit.
    #[must_use]
    pub fn learned_pipeline_limit(&self) -> Option<usize> {
        any!(self, connection => connection.learned_pipeline_limit())
    }

    /// Returns true if the connection will never take another request.
    #[must_use]
    pub fn is_closing(&self) -> bool {
        any!(self, connection => connection.is_closing())
    }

    /// Returns true if the connection is open and has no transfer.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        any!(self, connection => connection.is_idle())
    }

    /// Frees memory that an idle connection does not need.
    pub(crate) fn release_buffers(&mut self) {
        any!(self, connection => connection.release_buffers());
    }

    /// Returns the number of complete responses received on the connection.
    #[must_use]
    pub fn response_count(&self) -> usize {
        any!(self, connection => connection.response_count())
    }

    /// Removes the host slots from complete responses that wait to be verified, and returns the
    /// slots. A host slot is the permit for one transfer to a host. Other transfers may use these
    /// slots.
    pub fn take_freed_slots(&mut self) -> Vec<HostId> {
        match self {
            Self::H1(connection) => connection.take_freed_slots(),
            _ => Vec::new(),
        }
    }

    /// Queues a transfer's request in the protocol machine; [`HttpConnection::send_pending`] sends
    /// it.
    pub fn start(
        &mut self,
        mut transfer: Box<Transfer>,
        now: Instant,
        waker: ConnectionWaker<'_>,
        finished: &mut FinishedTransfers,
    ) {
        transfer.set_open_route(self.key());
        any!(self, connection => connection.start(transfer, now, waker, finished));
    }

    /// Sends pending output. Returns false if the socket has no room for all of it.
    ///
    /// # Errors
    /// The error of the socket. A response may have arrived anyway: receive before giving up.
    pub fn send_pending(&mut self) -> io::Result<bool> {
        any!(self, connection => connection.send_pending())
    }

    /// Returns true if the last receive left acknowledgements that [`HttpConnection::send_pending`]
    /// sends: the driver must call it at the end of its turn.
    #[must_use]
    pub fn has_deferred_output(&self) -> bool {
        match self {
            Self::H1(_) | Self::H2(_) => false,
            #[cfg(feature = "http3")]
            Self::H3(connection) => connection.has_deferred_output(),
        }
    }

    /// Returns true if content of a request is unread, or if more output is unsent than a socket's
    /// send buffer accepts while the peer does not read.
    #[must_use]
    pub fn is_uploading(&self) -> bool {
        any!(self, connection => connection.is_uploading())
    }

    /// Returns true if [`HttpConnection::receive`] will report a finished transfer even if no byte
    /// arrives.
    #[must_use]
    pub fn has_pending_results(&self) -> bool {
        any!(self, connection => connection.has_pending_results())
    }

    /// Returns true if bytes to send wait for room in the socket.
    #[must_use]
    pub fn has_output(&self) -> bool {
        any!(self, connection => connection.has_output())
    }

    /// Receives once, and passes the bytes to the transfers. Finished transfers are added to
    /// `finished`.
    pub fn receive(
        &mut self,
        buffer: &mut Buffer,
        now: Instant,
        waker: ConnectionWaker<'_>,
        finished: &mut FinishedTransfers,
    ) -> ReceiveStatus {
        any!(self, connection => connection.receive(buffer, now, waker, finished))
    }

    /// Returns the time when the transfer that reached its rate limit continues; `None` if no
    /// transfer has reached its limit.
    #[must_use]
    pub fn resumes_at(&self) -> Option<Instant> {
        any!(self, connection => connection.pacing.resumes_at)
    }

    /// Ends the pause of a transfer that reached its rate limit.
    pub fn resume(&mut self) {
        any!(self, connection => connection.pacing.resumes_at = None);
    }

    /// Returns the number of body bytes still to come; 0 if unknown, or if there is not exactly one
    /// body.
    #[must_use]
    pub fn remaining(&self) -> u64 {
        any!(self, connection => connection.remaining())
    }

    /// Returns true if the kernel can move the rest of the body to the sink. Call
    /// [`HttpConnection::move_body`] instead of [`HttpConnection::receive`] in that case. While
    /// that method runs, nothing else may write to the sink.
    pub fn is_direct(&mut self, pipes: PipeWriteMode) -> bool {
        match self {
            Self::H1(connection) => connection.is_direct(pipes),
            _ => false,
        }
    }

    /// Returns true if received bytes are available now. If the socket's low-water mark
    /// (`SO_RCVLOWAT`) is raised, at least as many bytes as the mark must be available.
    #[must_use]
    pub fn has_more(&self) -> bool {
        let waited = crate::drive::zero_copy_to_sink::wait(self.as_fd(), false, None, Some(Duration::ZERO), None);
        !matches!(waited, Ok(ZeroCopyWaitResult::Quiet))
    }

    /// Waits until the body in progress can continue. For drivers that wait in `poll`, and not in
    /// the receive call.
    ///
    /// # Errors
    /// The errors of `poll(2)`.
    pub fn wait(&mut self, deadline: Option<Instant>) -> io::Result<ZeroCopyWaitResult> {
        any!(self, connection => connection.wait(deadline))
    }

    /// Returns the time that [`HttpConnection::wait`] has spent waiting for the server.
    #[must_use]
    pub fn waited(&self) -> Duration {
        any!(self, connection => connection.pacing.waited)
    }

    /// Has the kernel move available bytes of the body in progress to its sink, once: see
    /// [`HttpConnection::is_direct`].
    pub fn move_body(
        &mut self,
        mover: &mut ZeroCopyMover,
        now: Instant,
        waker: ConnectionWaker<'_>,
        finished: &mut FinishedTransfers,
    ) -> ReceiveStatus {
        match self {
            Self::H1(connection) => connection.move_body(mover, now, waker, finished),
            _ => ReceiveStatus::More,
        }
    }

    /// Returns the time by which the bytes for the socket's low-water mark (`SO_RCVLOWAT`) should
    /// have arrived. At that time, the caller must call [`HttpConnection::reset_low_water_mark`].
    #[must_use]
    pub fn low_water_timeout(&self) -> Option<Instant> {
        any!(self, connection => connection.pacing.low_water.timeout())
    }

    /// Resets the socket's low-water mark (`SO_RCVLOWAT`) because a bulk body has slowed down. From
    /// then on, every byte wakes the driver.
    pub fn reset_low_water_mark(&mut self) {
        if let Some(mark) = any!(self, connection => connection.pacing.low_water.lower())
            && let Some(stream) = self.stream()
        {
            pause_before_next_read::set_low_water_mark(stream, mark);
        }
    }

    /// Closes a connection after an error. On HTTP/1, the first transfer fails with `error`. The
    /// other transfers are retried where that is safe.
    pub fn abort(&mut self, error: Error, now: Instant, finished: &mut FinishedTransfers) -> ReceiveStatus {
        any!(self, connection => connection.abort(error, now, finished))
    }

    /// Returns true if the connection must be [drained](Self::drain), so that the peer receives the
    /// error code of the last frame.
    #[must_use]
    pub(crate) fn needs_drain(&self) -> bool {
        match self {
            Self::H2(connection) => connection.needs_drain(),
            _ => false,
        }
    }

    /// Closes the connection. First discards input until the peer has received the last output.
    pub(crate) fn drain(self) {
        if let Self::H2(connection) = self {
            connection.into_stream().drain();
        }
    }

    /// Returns the time of the next timeout: the caller must call [`HttpConnection::end_expired`]
    /// then, even without an event.
    #[must_use]
    pub fn next_timeout(&self) -> Option<Instant> {
        any!(self, connection => connection.next_timeout())
    }

    /// Ends the transfers that have exceeded a time limit or are too slow.
    pub fn end_expired(&mut self, now: Instant, finished: &mut FinishedTransfers) -> ReceiveStatus {
        any!(self, connection => connection.end_expired(now, finished))
    }

    /// Cancels the transfer with this tag (the caller's ID for it), if it is on this connection.
    /// Closes an HTTP/1 connection; on HTTP/2 and HTTP/3, resets the stream.
    pub(crate) fn cancel(&mut self, tag: u64, now: Instant, finished: &mut FinishedTransfers) -> Option<ReceiveStatus> {
        any!(self, connection => connection.cancel(tag, now, finished))
    }

    /// Returns the transfer in progress; `None` if several transfers run concurrently. A split
    /// download uses it to decide whether more connections would help.
    pub(crate) fn front_transfer(&self) -> Option<&Transfer> {
        any!(self, connection => connection.front_transfer())
    }

    /// Returns the transfer in progress, mutably, if there is only one. The caller can report
    /// events to it.
    pub(crate) fn front_transfer_mut(&mut self) -> Option<&mut Transfer> {
        any!(self, connection => connection.front_transfer_mut())
    }
}
