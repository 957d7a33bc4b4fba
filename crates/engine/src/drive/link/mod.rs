//! One open connection with its protocol machine and the transfers that wait for responses on it.
//!
//! Both drivers use it, the one that waits and the one that does not: a link only ever does what can be done now, and
//! says what it stopped at. On a blocking socket "now" includes the wait inside `recv`.
//!
//! ```text
//!  start ──▶ machine ──▶ pump ──▶ Stream      Stream ──▶ receive ──▶ machine ──▶ Transfer ──▶ finished
//! ```
//!
//! | protocol | its transfers |
//! |---|---|
//! | [`h1`] | one after the other, in the order of their requests |
//! | [`h2`] | side by side |
//!
//! What both do with content and output is in `sending`, what both wait for in `pace`.

mod allowance;
pub mod h1;
pub mod h2;
mod pace;
mod sending;

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

pub use allowance::Allowance;
use haul_policy::queue::HostId;
pub use sending::Machine;
use smallvec::SmallVec;

use crate::Error;
use crate::body::upload::Upload;
use crate::buffer::Buffer;
use crate::drive::direct::{Mover, Waited};
use crate::net::pool::Key;
use crate::net::stream::Stream;
use crate::sink::Wake;
use crate::transfer::{After, Transfer};

/// The ways in which a driver treats a sink that is a pipe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pipes {
    /// The driver waits until the pipe has room, so bytes can be moved to it.
    Awaited,
    /// The driver watches sockets only. The sink writes the bytes, and itself waits for room.
    Written,
}

/// The reasons why a link stops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// No bytes were received.
    WouldBlock,
    /// Bytes were received, and there may be more.
    More,
    /// A signal came before anything else: try again.
    Interrupted,
    /// Bytes were received, and no more are available for now.
    Drained,
    /// The sink takes nothing: do not read before it wakes us.
    Paused,
    /// The transfer is at its rate: do not read before [`Link::resumes_at`].
    Throttled,
    /// The connection is of no further use. Its transfers have been given back.
    Closed,
}

/// The party to wake when a sink has credit again, or a source of content has more.
#[derive(Clone, Copy)]
pub struct Waker<'a> {
    /// The driver; `None` for one that waits in the sink itself.
    pub wake: Option<&'a Arc<dyn Wake>>,
    /// The driver's name for the connection.
    pub token: usize,
}

impl Waker<'_> {
    /// Returns true if a read of content may block: no other transfer waits for this thread.
    fn may_block(&self) -> bool {
        self.wake.is_none()
    }

    /// Registers the driver with content that may have to wait, so that its source wakes the driver
    /// instead of blocking a thread that serves other transfers.
    fn attend(&self, upload: Option<Box<dyn Upload>>) -> Option<Box<dyn Upload>> {
        let mut upload = upload?;
        if let Some(wake) = self.wake
            && upload.waits()
        {
            upload.attend(Arc::new(DriverWaker { wake: Arc::clone(wake), token: self.token }).into());
        }
        Some(upload)
    }
}

/// A driver's waker, in the form that a task's content calls.
struct DriverWaker {
    wake: Arc<dyn Wake>,
    token: usize,
}

impl std::task::Wake for DriverWaker {
    fn wake(self: Arc<Self>) {
        self.wake.wake(self.token);
    }
}

/// Transfers whose exchange is over, and the next step of each. (Boxed, here and wherever a
/// transfer is handed on: a transfer is large, and is moved often. The list mostly has one entry,
/// which needs no allocation.)
pub type Finished = SmallVec<[(Box<Transfer>, After); 1]>;

/// An open connection.
pub enum Link {
    /// HTTP/1.1 or 1.0.
    H1(Box<h1::Link>),
    /// HTTP/2.
    H2(Box<h2::Link>),
}

/// Makes the same call on either kind of link.
macro_rules! either {
    ($link:expr, $inner:ident => $call:expr) => {
        match $link {
            Link::H1($inner) => $call,
            Link::H2($inner) => $call,
        }
    };
}

impl AsFd for Link {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream().as_fd()
    }
}

impl Link {
    /// A link over an open stream, by the protocol that was agreed on; `depth` is how many requests may be outstanding on HTTP/1.1. An HTTP/2
    /// connection gets its share of `windows`, with small initial ones if the first response has a `rate`.
    #[must_use]
    pub fn new(stream: Stream, key: Arc<Key>, depth: usize, windows: &h2::Windows, rate: Option<u64>) -> Self {
        if key.prior_knowledge || stream.alpn() == Some(b"h2") {
            Self::H2(Box::new(h2::Link::new(stream, key, windows, rate)))
        } else {
            Self::H1(Box::new(h1::Link::new(stream, key, depth)))
        }
    }

    /// Returns the key of the connection: the requests that it may carry.
    #[must_use]
    pub fn key(&self) -> &Arc<Key> {
        either!(self, link => &link.key)
    }

    /// Returns true if transfers run concurrently, so that one connection is enough for many.
    #[must_use]
    pub fn is_shared(&self) -> bool {
        matches!(self, Self::H2(_))
    }

    /// The stream.
    #[must_use]
    pub fn stream(&self) -> &Stream {
        either!(self, link => link.stream())
    }

    /// Returns the number of transfers that wait on the connection.
    #[must_use]
    pub fn depth(&self) -> usize {
        either!(self, link => link.depth())
    }

    /// Returns true if the connection can take another request now.
    #[must_use]
    pub fn can_start(&self) -> bool {
        either!(self, link => link.can_start())
    }

    /// Returns true if this transfer's request can be sent now.
    #[must_use]
    pub fn takes(&self, transfer: &Transfer) -> bool {
        either!(self, link => link.takes(transfer))
    }

    /// The transfer that a further one would have to wait for.
    #[must_use]
    pub fn last(&self) -> Option<&Transfer> {
        match self {
            Self::H1(link) => link.last(),
            Self::H2(_) => None,
        }
    }

    /// Returns true if a transfer of this rank and the concurrent ones in progress would wait for
    /// each other: see [`h2::Link::is_stuck_before`].
    #[must_use]
    pub fn is_stuck_before(&self, rank: u64) -> bool {
        match self {
            Self::H1(_) => false,
            Self::H2(link) => link.is_stuck_before(rank),
        }
    }

    /// Returns true if the peer left requests unanswered without reason, so that they had to be
    /// sent again.
    #[must_use]
    pub fn has_misbehaved(&self) -> bool {
        match self {
            Self::H1(link) => link.has_misbehaved(),
            Self::H2(_) => false,
        }
    }

    /// Returns true if the peer sent an extra response among pipelined ones.
    #[must_use]
    pub fn has_shifted(&self) -> bool {
        match self {
            Self::H1(link) => link.has_shifted(),
            Self::H2(_) => false,
        }
    }

    /// Ends the connection after its first response, or after the ones under way.
    pub fn take_one_only(&mut self) {
        match self {
            Self::H1(link) => link.take_one_only(),
            Self::H2(_) => {}
        }
    }

    /// Sets the number of requests that the last connection to this peer answered: see
    /// [`Allowance`].
    pub fn expect(&mut self, bore: usize) {
        either!(self, link => link.allowance.expect(bore));
    }

    /// Returns true if other requests must be answered before the next one may be sent, because the
    /// last connection answered no more.
    #[must_use]
    pub fn is_held_back(&self) -> bool {
        either!(self, link => link.is_held_back())
    }

    /// Returns the number of requests that the next connection to this peer is expected to answer,
    /// when this one has ended; `None` if no limit is known.
    #[must_use]
    pub fn bore(&self) -> Option<usize> {
        either!(self, link => link.bore())
    }

    /// Returns true if the connection takes no more requests, ever.
    #[must_use]
    pub fn is_closing(&self) -> bool {
        either!(self, link => link.is_closing())
    }

    /// Returns true if the connection is open and nothing is outstanding.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        either!(self, link => link.is_idle())
    }

    /// Returns the number of responses received on the connection.
    #[must_use]
    pub fn served(&self) -> usize {
        either!(self, link => link.served())
    }

    /// Slots of transfers whose responses are complete and wait until it is certain that they are right: others may use
    /// them. They are not freed again.
    pub fn take_freed(&mut self) -> Vec<HostId> {
        match self {
            Self::H1(link) => link.take_freed(),
            Self::H2(_) => Vec::new(),
        }
    }

    /// Puts a transfer's request into the machine; [`Link::pump`] sends it.
    pub fn start(&mut self, mut transfer: Box<Transfer>, now: Instant, waker: Waker<'_>, finished: &mut Finished) {
        transfer.goes_by(self.key());
        either!(self, link => link.start(transfer, now, waker, finished));
    }

    /// Sends pending output. `false` if the socket has no room for all of it.
    ///
    /// # Errors
    /// The socket's. A response may have arrived anyway: receive before giving up.
    pub fn pump(&mut self) -> io::Result<bool> {
        either!(self, link => link.pump())
    }

    /// Returns true if more of a request is left to send than a socket takes while its peer does
    /// not read.
    #[must_use]
    pub fn is_uploading(&self) -> bool {
        either!(self, link => link.is_uploading())
    }

    /// Returns true if [`Link::receive`] has results even if nothing was received.
    #[must_use]
    pub fn has_due(&self) -> bool {
        either!(self, link => link.has_due())
    }

    /// Returns true if something waits for room in the socket.
    #[must_use]
    pub fn has_output(&self) -> bool {
        either!(self, link => link.has_output())
    }

    /// Receives once, and passes the bytes to the transfers. Finished transfers are added to
    /// `finished`.
    pub fn receive(
        &mut self,
        buffer: &mut Buffer,
        now: Instant,
        waker: Waker<'_>,
        finished: &mut Finished,
    ) -> Progress {
        either!(self, link => link.receive(buffer, now, waker, finished))
    }

    /// Returns the time when a transfer that reached its rate continues.
    #[must_use]
    pub fn resumes_at(&self) -> Option<Instant> {
        either!(self, link => link.pace.resumes_at)
    }

    /// Ends the pause of a transfer that reached its rate: the time has come, or the wait was for
    /// something else.
    pub fn resume(&mut self) {
        either!(self, link => link.pace.resumes_at = None);
    }

    /// Returns the number of bytes of the body under way that are still to come; 0 if unknown, or
    /// unless there is exactly one body.
    #[must_use]
    pub fn remaining(&self) -> u64 {
        either!(self, link => link.remaining())
    }

    /// Returns true if the kernel can move the rest of the body under way to the sink: by
    /// [`Link::move_body`] in place of [`Link::receive`]. Nothing else may write to the transfer's
    /// sink meanwhile.
    pub fn is_direct(&mut self, pipes: Pipes) -> bool {
        match self {
            Self::H1(link) => link.is_direct(pipes),
            Self::H2(_) => false,
        }
    }

    /// Returns true if there is something to receive now: for a bulk body, a large piece.
    #[must_use]
    pub fn has_more(&self) -> bool {
        let waited = crate::drive::direct::wait(self.as_fd(), false, None, Some(Duration::ZERO), None);
        !matches!(waited, Ok(Waited::Quiet))
    }

    /// Waits until there is something to do for the body under way; for a driver that waits in no receive.
    ///
    /// # Errors
    /// Those of `poll(2)`.
    pub fn wait(&mut self, deadline: Option<Instant>) -> io::Result<Waited> {
        either!(self, link => link.wait(deadline))
    }

    /// Returns the time that [`Link::wait`] has spent waiting for the server.
    #[must_use]
    pub fn waited(&self) -> Duration {
        either!(self, link => link.pace.waited)
    }

    /// Moves available bytes of the body under way to its sink, once; see [`Link::is_direct`].
    pub fn move_body(
        &mut self,
        mover: &mut Mover,
        now: Instant,
        waker: Waker<'_>,
        finished: &mut Finished,
    ) -> Progress {
        match self {
            Self::H1(link) => link.move_body(mover, now, waker, finished),
            Self::H2(_) => Progress::More,
        }
    }

    /// Until when a bulk body must have brought its next piece, or [`Link::hurry`].
    #[must_use]
    pub fn quiet_at(&self) -> Option<Instant> {
        either!(self, link => link.pace.bulk.quiet_at())
    }

    /// A bulk body has slowed down: from now on every byte wakes us.
    pub fn hurry(&mut self) {
        if let Some(mark) = either!(self, link => link.pace.bulk.quiet()) {
            pace::set_mark(self.stream(), mark);
        }
    }

    /// Closes a connection that cannot continue: the transfer under way fails with `error`, the
    /// others with it.
    pub fn break_off(&mut self, error: Error, now: Instant, finished: &mut Finished) -> Progress {
        either!(self, link => link.break_off(error, now, finished))
    }

    /// Returns true if the connection must be [drained](Self::drain) for the peer to learn why it
    /// ends.
    #[must_use]
    pub(crate) fn owes_drain(&self) -> bool {
        match self {
            Self::H1(_) => false,
            Self::H2(link) => link.owes_drain(),
        }
    }

    /// Closes the connection so that the peer receives the last output.
    pub(crate) fn drain(self) {
        match self {
            Self::H1(_) => {}
            Self::H2(link) => link.into_stream().drain(),
        }
    }

    /// Returns the time of the next timeout: call [`Link::expire`] then, even without an event.
    #[must_use]
    pub fn look_at(&self) -> Option<Instant> {
        either!(self, link => link.look_at())
    }

    /// Ends transfers that took too long or are too slow.
    pub fn expire(&mut self, now: Instant, finished: &mut Finished) -> Progress {
        either!(self, link => link.expire(now, finished))
    }

    /// Gives up the transfer of this mark, if it is under way here: a connection that it does not share is closed.
    pub(crate) fn cancel(&mut self, tag: u64, now: Instant, finished: &mut Finished) -> Option<Progress> {
        either!(self, link => link.cancel(tag, now, finished))
    }

    /// The only transfer in progress, to decide whether more connections would help.
    pub(crate) fn front(&self) -> Option<&Transfer> {
        either!(self, link => link.front())
    }

    /// Returns the transfer under way, mutably, to report to it.
    pub(crate) fn front_mut(&mut self) -> Option<&mut Transfer> {
        either!(self, link => link.front_mut())
    }
}
