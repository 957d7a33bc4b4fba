//! An open HTTP connection with its protocol machine and the transfers that wait for responses on
//! it.
//!
//! The blocking driver and the event loop both use it. A call does what can be done now, and
//! returns why it stopped. On a blocking socket, this includes the wait inside `recv`.
//!
//! ```text
//!  start ──▶ machine ──▶ send_pending ──▶ ConnectionStream
//!  ConnectionStream ──▶ receive ──▶ machine ──▶ Transfer ──▶ finished
//! ```
//!
//! | protocol | order of its transfers |
//! |---|---|
//! | [`h1`] | one after the other, in the order of their requests |
//! | [`h2`], `h3` | side by side |
//!
//! The module `sending` sends content and output for all protocols, and `uploads` sends the
//! contents of requests that share a connection. The module `replay_decision` decides whether a
//! request on a shared connection is sent again. The module `pause_before_next_read` decides how
//! long to wait before the next read.

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
use std::sync::Arc;
use std::time::{Duration, Instant};

use haul_policy::queue::HostId;
pub use pipeline_limit::PipelineLimit;
use rustix::fd::AsFd;
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

/// The method by which body bytes are written to a sink that is a pipe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PipeWriteMode {
    /// The kernel moves bytes to the pipe. The thread that runs the connection waits in `poll`
    /// until the pipe has room.
    Awaited,
    /// The sink writes the bytes, and blocks until the pipe has room. Event loops use this mode,
    /// because they wait for sockets only.
    Written,
}

/// The result of one receive on a connection: whether more bytes may be available, or why receiving
/// stopped.
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
    /// The sink has no room. The connection must not be read before the sink calls its waker.
    Paused,
    /// The transfer has reached its rate limit. The connection must not be read before the time
    /// [`HttpConnection::resumes_at`].
    Throttled,
    /// The connection is closed. Its transfers were added to the list `finished` of the caller.
    Closed,
}

/// The waker of a connection. Sinks call it when they have room again, and sources of request
/// content call it when they have more bytes.
#[derive(Clone, Copy)]
pub struct ConnectionWaker<'a> {
    /// The waker of the driver, i.e. of the event loop that runs the connection. `None` if the
    /// thread runs a single transfer: sinks and content sources then block it.
    pub wake: Option<&'a Arc<dyn TransferWaker>>,
    /// The number by which the event loop identifies the connection.
    pub token: usize,
}

impl ConnectionWaker<'_> {
    /// Returns true if a read of request content may block, because the thread serves no other
    /// transfer.
    fn may_block(&self) -> bool {
        self.wake.is_none()
    }

    /// Registers this waker with request content that may have to wait for its source. The source
    /// then wakes the event loop instead of blocking the thread, which serves other transfers.
    /// Returns the content.
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

/// A connection's waker in the form of a [`std::task::Waker`], for sources of request content.
struct UploadWaker {
    wake: Arc<dyn TransferWaker>,
    token: usize,
}

impl std::task::Wake for UploadWaker {
    fn wake(self: Arc<Self>) {
        self.wake.wake(self.token);
    }
}

/// A list of transfers whose exchange is over, each with its next step: another exchange, or its
/// end. Transfers are boxed because they are large and are moved often. The list usually has one
/// entry, which needs no allocation.
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
macro_rules! call_on_any_protocol {
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
    /// a receive budget from `recv_memory`. If `rate` limits the first response, in bytes per
    /// second, the HTTP/2 connection begins with a small flow-control window.
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

    /// Returns the key of the connection: the origin, proxy and settings that decide which requests
    /// it may carry.
    #[must_use]
    pub fn key(&self) -> &Arc<ConnectionKey> {
        call_on_any_protocol!(self, connection => &connection.key)
    }

    /// Returns true if the connection carries concurrent transfers (HTTP/2 and HTTP/3). One such
    /// connection suffices for many transfers.
    #[must_use]
    pub fn is_shared(&self) -> bool {
        !matches!(self, Self::H1(_))
    }

    /// Returns the number of transfers on the connection that have no complete response yet.
    #[must_use]
    pub fn outstanding_count(&self) -> usize {
        call_on_any_protocol!(self, connection => connection.outstanding_count())
    }

    /// Returns true if the connection can carry another request now.
    #[must_use]
    pub fn can_start(&self) -> bool {
        call_on_any_protocol!(self, connection => connection.can_start())
    }

    /// Returns true if this transfer's request can be sent now.
    #[must_use]
    pub fn accepts(&self, transfer: &Transfer) -> bool {
        call_on_any_protocol!(self, connection => connection.accepts(transfer))
    }

    /// Returns the unfinished transfer whose request was sent last on an HTTP/1 connection. Returns
    /// `None` if there is none, and always on HTTP/2 and HTTP/3.
    #[must_use]
    pub fn last_transfer(&self) -> Option<&Transfer> {
        match self {
            Self::H1(connection) => connection.last_transfer(),
            _ => None,
        }
    }

    /// Returns true if a transfer of this rank (position in the output order) could wait on this
    /// connection for ever; see [`h2::H2Connection::is_stuck_before`].
    #[must_use]
    pub fn is_stuck_before(&self, rank: u64) -> bool {
        match self {
            Self::H1(_) => false,
            Self::H2(connection) => connection.is_stuck_before(rank),
            #[cfg(feature = "http3")]
            Self::H3(connection) => connection.is_stuck_before(rank),
        }
    }

    /// Returns true if the peer closed an HTTP/1 connection without announcing it, before it had
    /// answered all pipelined requests. The unanswered requests had to be sent again.
    #[must_use]
    pub fn breaks_pipelining(&self) -> bool {
        match self {
            Self::H1(connection) => connection.breaks_pipelining(),
            _ => false,
        }
    }

    /// Returns true if the peer sent more responses than there were pipelined requests.
    #[must_use]
    pub fn has_extra_response(&self) -> bool {
        match self {
            Self::H1(connection) => connection.has_extra_response(),
            _ => false,
        }
    }

    /// Limits an HTTP/1 connection to a single request in all, because the peer sends extra
    /// responses. If the connection has already carried a request, it accepts no further one.
    pub fn limit_to_one_request(&mut self) {
        if let Self::H1(connection) = self {
            connection.limit_to_one_request();
        }
    }

    /// Sets the number of pipelined requests that the previous connection to this peer answered
    /// before it closed; see [`PipelineLimit`].
    pub fn set_pipeline_limit(&mut self, limit: usize) {
        call_on_any_protocol!(self, connection => connection.pipeline_limit.set(limit));
    }

    /// Returns true if the [`PipelineLimit`] forbids another request before a response arrives.
    #[must_use]
    pub fn is_pipeline_limited(&self) -> bool {
        call_on_any_protocol!(self, connection => connection.is_pipeline_limited())
    }

    /// Returns the number of pipelined requests that the next connection to this peer is expected
    /// to answer before it closes. Returns `None` if this connection has shown no such limit.
    #[must_use]
    pub fn learned_pipeline_limit(&self) -> Option<usize> {
        call_on_any_protocol!(self, connection => connection.learned_pipeline_limit())
    }

    /// Returns true if the connection will never take another request.
    #[must_use]
    pub fn is_closing(&self) -> bool {
        call_on_any_protocol!(self, connection => connection.is_closing())
    }

    /// Returns true if the connection is open and has no transfer.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        call_on_any_protocol!(self, connection => connection.is_idle())
    }

    /// Frees memory that an idle connection does not need.
    pub(crate) fn release_buffers(&mut self) {
        call_on_any_protocol!(self, connection => connection.release_buffers());
    }

    /// Returns the number of complete responses received on the connection.
    #[must_use]
    pub fn response_count(&self) -> usize {
        call_on_any_protocol!(self, connection => connection.response_count())
    }

    /// Returns the host slots of transfers whose responses are complete, but are kept until the
    /// server is known to have sent no extra response (only with HTTP/1.1). A host slot is the
    /// permit for one transfer to a host. The transfers give up their slots, so that other
    /// transfers can start. Each slot is returned once.
    pub fn take_freed_slots(&mut self) -> Vec<HostId> {
        match self {
            Self::H1(connection) => connection.take_freed_slots(),
            _ => Vec::new(),
        }
    }

    /// Queues the request of a transfer on the connection. [`HttpConnection::send_pending`] then
    /// sends it. If the request cannot be queued, the transfer is added to `finished`.
    pub fn start(
        &mut self,
        mut transfer: Box<Transfer>,
        now: Instant,
        waker: ConnectionWaker<'_>,
        finished: &mut FinishedTransfers,
    ) {
        transfer.set_open_route(self.key());
        call_on_any_protocol!(self, connection => connection.start(transfer, now, waker, finished));
    }

    /// Sends pending output. Returns false if the socket has no room for all of it.
    ///
    /// # Errors
    /// The error of the socket. Nevertheless, a response may have arrived: receive before the
    /// connection is given up.
    pub fn send_pending(&mut self) -> io::Result<bool> {
        call_on_any_protocol!(self, connection => connection.send_pending())
    }

    /// Returns true if acknowledgements of the last receive are not sent yet. The event loop must
    /// then call [`HttpConnection::send_pending`] at the end of its round.
    #[must_use]
    pub fn has_deferred_output(&self) -> bool {
        match self {
            Self::H1(_) | Self::H2(_) => false,
            #[cfg(feature = "http3")]
            Self::H3(connection) => connection.has_deferred_output(),
        }
    }

    /// Returns true if the content of a request was not read to its end. Over HTTP/1 and HTTP/2,
    /// also returns true if the connection has more unsent output than an empty send buffer of a
    /// socket can hold.
    #[must_use]
    pub fn is_uploading(&self) -> bool {
        call_on_any_protocol!(self, connection => connection.is_uploading())
    }

    /// Returns true if the next [`HttpConnection::receive`] will report a finished transfer even if
    /// no byte arrives.
    #[must_use]
    pub fn has_pending_results(&self) -> bool {
        call_on_any_protocol!(self, connection => connection.has_pending_results())
    }

    /// Returns true if unsent bytes wait for room in the socket.
    #[must_use]
    pub fn has_output(&self) -> bool {
        call_on_any_protocol!(self, connection => connection.has_output())
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
        call_on_any_protocol!(self, connection => connection.receive(buffer, now, waker, finished))
    }

    /// Returns the time when a transfer that has reached its rate limit may receive again; `None`
    /// if no transfer has reached its limit.
    #[must_use]
    pub fn resumes_at(&self) -> Option<Instant> {
        call_on_any_protocol!(self, connection => connection.pacing.resumes_at)
    }

    /// Ends the pause of a transfer that reached its rate limit.
    pub fn resume(&mut self) {
        call_on_any_protocol!(self, connection => connection.pacing.resumes_at = None);
    }

    /// Returns the number of bytes of the body in progress that are still to come. Returns 0 if the
    /// number is unknown, or if there is no body or several bodies are in progress.
    #[must_use]
    pub fn remaining(&self) -> u64 {
        call_on_any_protocol!(self, connection => connection.remaining())
    }

    /// Returns true if the kernel can move the rest of the body to the sink. The caller then calls
    /// [`HttpConnection::move_body`] instead of [`HttpConnection::receive`]. During that call,
    /// nothing else may write to the sink. `pipes` says how the caller waits for a sink that is a
    /// pipe.
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
        let waited = crate::drive::zero_copy_to_sink::wait(self.as_fd(), false, [None; 2], Some(Duration::ZERO), None);
        !matches!(waited, Ok(ZeroCopyWaitResult::Quiet))
    }

    /// Waits in `poll` until the body in progress can continue, but not beyond `deadline`. A caller
    /// that waits in a blocking receive does not need this.
    ///
    /// # Errors
    /// The errors of `poll(2)`.
    pub fn wait(&mut self, deadline: Option<Instant>) -> io::Result<ZeroCopyWaitResult> {
        call_on_any_protocol!(self, connection => connection.wait(deadline))
    }

    /// Returns the time that [`HttpConnection::wait`] has spent waiting for the server.
    #[must_use]
    pub fn waited(&self) -> Duration {
        call_on_any_protocol!(self, connection => connection.pacing.waited)
    }

    /// Has the kernel move available bytes of the body in progress to its sink, once. Call it only
    /// if [`HttpConnection::is_direct`] returns true.
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

    /// Returns the time until which the reader may wait for the bytes that the socket's low-water
    /// mark (`SO_RCVLOWAT`) requires; `None` if the mark is not raised. At that time, the caller
    /// must call [`HttpConnection::reset_low_water_mark`].
    #[must_use]
    pub fn low_water_timeout(&self) -> Option<Instant> {
        call_on_any_protocol!(self, connection => connection.pacing.low_water.timeout())
    }

    /// Resets the socket's low-water mark (`SO_RCVLOWAT`) to 1 byte, because a fast body has slowed
    /// down. From then on, every byte wakes the reader.
    pub fn reset_low_water_mark(&mut self) {
        if let Some(mark) = call_on_any_protocol!(self, connection => connection.pacing.low_water.lower())
            && let Some(stream) = self.stream()
        {
            pause_before_next_read::set_low_water_mark(stream, mark);
        }
    }

    /// Closes a connection after an error. On HTTP/1, the first transfer fails with `error`. The
    /// other transfers are retried where that is safe. All transfers are added to `finished`.
    pub fn abort(&mut self, error: Error, now: Instant, finished: &mut FinishedTransfers) -> ReceiveStatus {
        call_on_any_protocol!(self, connection => connection.abort(error, now, finished))
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

    /// Returns the time of the next timeout of the connection's transfers; `None` if there is none.
    /// The caller must call [`HttpConnection::end_expired`] at that time, even if no event has
    /// occurred.
    #[must_use]
    pub fn next_timeout(&self) -> Option<Instant> {
        call_on_any_protocol!(self, connection => connection.next_timeout())
    }

    /// Ends the transfers that have exceeded a time limit or are too slow, and adds them to
    /// `finished`.
    pub fn end_expired(&mut self, now: Instant, finished: &mut FinishedTransfers) -> ReceiveStatus {
        call_on_any_protocol!(self, connection => connection.end_expired(now, finished))
    }

    /// Cancels the transfer with this tag (the caller's ID for it). Closes an HTTP/1 connection. On
    /// HTTP/2 and HTTP/3, resets the stream. Returns `None` if the transfer is not on this
    /// connection.
    pub(crate) fn cancel(&mut self, tag: u64, now: Instant, finished: &mut FinishedTransfers) -> Option<ReceiveStatus> {
        call_on_any_protocol!(self, connection => connection.cancel(tag, now, finished))
    }

    /// Returns the transfer in progress; `None` if there is none. On HTTP/1, it is the transfer
    /// whose response is being received or comes next. On HTTP/2 and HTTP/3, returns `None` if
    /// several transfers run concurrently. A split download examines this transfer to decide
    /// whether more connections would help.
    pub(crate) fn front_transfer(&self) -> Option<&Transfer> {
        call_on_any_protocol!(self, connection => connection.front_transfer())
    }

    /// Returns a mutable reference to the transfer of [`front_transfer`](Self::front_transfer), for
    /// example to pause it.
    pub(crate) fn front_transfer_mut(&mut self) -> Option<&mut Transfer> {
        call_on_any_protocol!(self, connection => connection.front_transfer_mut())
    }
}
