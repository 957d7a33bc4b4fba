//! A connection that speaks HTTP/1.1: its transfers are answered one after the other, in the order of their requests.
//!
//! | part | what it is |
//! |---|---|
//! | `content` | what the last request still has to send |
//! | `reading` | what came: through TLS and the machine to the transfers |
//! | `direct` | the rest of a body on its way past our memory |
//! | `ends` | how exchanges and the connection end |
//! | `turn` | responses of pipelined requests, which wait for the proof that they are right |

mod content;
mod direct;
mod ends;
mod reading;
mod turn;

use std::cell::RefCell;
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use haul_policy::queue::HostId;
use haul_proto::h1::{self, Conn};

use super::pace::{Pace, set_mark};
use super::sending::{self, LEAVES_AT_ONCE, Pumped};
use super::{Allowance, Finished, Progress, Waker};
use crate::buffer::Buffer;
use crate::clock;
use crate::drive::bulk;
use crate::net::pool::Key;
use crate::net::stream::{Received, Stream};
use crate::transfer::{After, Broke, Credit, Transfer};
use crate::{Error, ErrorKind};
use content::Content;
use direct::Direct;
use turn::Turn;

/// The least that is read at once, however small the credit: a head has to fit in.
const LEAST_READ: usize = 4096;

/// An open connection.
pub struct Link {
    stream: Stream,
    conn: Conn,
    /// Plaintext that the machine could not use yet: an incomplete head or chunk line.
    tail: Vec<u8>,
    queue: VecDeque<Box<Transfer>>,
    turn: Turn,
    /// Limits the connection to one request, because the peer has sent an extra response before.
    is_single: bool,
    /// Responses of its last turn may have been another request's.
    has_shifted: bool,
    /// The largest number of outstanding requests.
    most: usize,
    content: Content,
    served: usize,
    closing: bool,
    reset: bool,
    /// The reason why sending failed. `None` if the peer had closed its side before: the system
    /// reports that once, and then a proper end to the next receive.
    send_error: Option<io::Error>,
    misbehaved: bool,
    /// The peer violated the protocol, rather than closing too early.
    violated: bool,
    direct: Direct,
    pub(super) pace: Pace,
    pub(super) allowance: Allowance,
    /// The key of the connection: the requests that it may carry.
    pub key: Arc<Key>,
}

/// A sealed record with its header is no longer (RFC 8446 section 5.2, RFC 5246 section 6.2.3).
const LARGEST_RECORD: usize = 5 + (16 << 10) + 2048;

impl Link {
    /// A link over an open stream.
    #[must_use]
    pub fn new(stream: Stream, key: Arc<Key>, depth: usize) -> Self {
        // How long content is held back is its request's to say: the machine would know one time for all.
        let config = h1::Config {
            max_pipeline: depth,
            expect_timeout: Duration::MAX,
            is_proxy: key.via.forwards().is_some(),
            liberties: key.liberties,
            ..h1::Config::default()
        };
        let pace = Pace::of(if stream.is_secure() { bulk::RECEIVED } else { bulk::MOVED });
        Self {
            stream,
            conn: Conn::new(config),
            tail: Vec::new(),
            queue: VecDeque::new(),
            turn: Turn::default(),
            is_single: false,
            has_shifted: false,
            most: depth.max(1),
            content: Content::default(),
            served: 0,
            closing: false,
            reset: false,
            send_error: None,
            misbehaved: false,
            violated: false,
            direct: Direct::Undecided,
            pace,
            allowance: Allowance::default(),
            key,
        }
    }

    /// The stream.
    #[must_use]
    pub fn stream(&self) -> &Stream {
        &self.stream
    }

    /// Returns the number of transfers that wait on the connection.
    #[must_use]
    pub fn depth(&self) -> usize {
        self.queue.len()
    }

    /// Returns true if the connection can take another request now.
    #[must_use]
    pub fn can_start(&self) -> bool {
        let is_free = !self.closing && !self.content.is_left() && !self.turn.is_full(self.most);
        let is_used_up = self.is_single && !(self.served == 0 && self.queue.is_empty() && self.turn.is_empty());
        is_free && !is_used_up && self.conn.can_enqueue() && !self.is_held_back()
    }

    /// Returns true if this transfer's request can be sent now, after the unanswered ones.
    #[must_use]
    pub fn takes(&self, transfer: &Transfer) -> bool {
        self.can_start() && self.last().is_none_or(|last| transfer.may_follow(last))
    }

    /// Returns the transfer whose request was sent last, among the ones that wait for a response or
    /// for the end of the turn.
    #[must_use]
    pub fn last(&self) -> Option<&Transfer> {
        self.queue.back().map(|transfer| &**transfer).or(self.turn.last())
    }

    /// Returns true if the peer sent an extra response.
    #[must_use]
    pub fn has_shifted(&self) -> bool {
        self.has_shifted
    }

    /// Lets the connection end behind its first response, or with the turn under way.
    pub fn take_one_only(&mut self) {
        self.is_single = true;
    }

    /// Slots of transfers whose responses are complete and wait for the end of their turn: others may use them.
    pub fn take_freed(&mut self) -> Vec<HostId> {
        self.turn.take_freed()
    }

    /// Returns true if the peer left requests unanswered without reason, so that it gets no more
    /// than one at once. A peer that announces its last response, like servers with a limit for
    /// each connection, does not count.
    #[must_use]
    pub fn has_misbehaved(&self) -> bool {
        self.misbehaved
    }

    /// Returns true if other requests must be answered before the next one may be sent.
    #[must_use]
    pub fn is_held_back(&self) -> bool {
        !self.allowance.allows(self.served, || self.queue.len())
    }

    /// Returns the number of requests that the next connection to this peer is expected to answer:
    /// see [`Allowance::bore`].
    #[must_use]
    pub fn bore(&self) -> Option<usize> {
        self.allowance.bore(self.served, self.queue.len())
    }

    /// Returns true if the connection takes no more requests, ever.
    #[must_use]
    pub fn is_closing(&self) -> bool {
        self.closing
    }

    /// Returns true if the connection is open and nothing is outstanding.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        let is_read = self.tail.is_empty() && !self.stream.has_ahead() && self.turn.is_empty();
        !self.closing && self.queue.is_empty() && self.conn.is_idle() && is_read
    }

    /// Returns the number of responses received on the connection.
    #[must_use]
    pub fn served(&self) -> usize {
        self.served
    }

    /// The earliest limit of its transfers.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        self.queue.iter().filter_map(|transfer| transfer.deadline()).min()
    }

    /// Puts a transfer's request into the machine; [`Link::pump`] sends it.
    pub fn start(&mut self, mut transfer: Box<Transfer>, now: Instant, waker: Waker<'_>, finished: &mut Finished) {
        transfer.facts.peer = self.stream.peer;
        transfer.reuse.on_connection(self.served > 0, !self.queue.is_empty());
        transfer.on_connection(&self.stream, self.served > 0 || !self.queue.is_empty());
        match transfer.enqueue(&mut self.conn, now) {
            Ok(_) => {
                if self.queue.is_empty() {
                    self.allowance.begins_anew(self.served);
                }
                self.turn.goes_on();
                let held_until = transfer.asks_for().map(|wait| clock::after(now, wait));
                self.content.begin(waker.attend(transfer.upload()), waker.may_block(), held_until);
                self.queue.push_back(transfer);
                let last = self.queue.back_mut().map(|transfer| &mut **transfer);
                self.content.feed(&mut self.conn, told(&RefCell::new(last)));
            }
            Err(error) => {
                let after = transfer.on_failure(error, Broke::BeforeSending, now);
                finished.push((transfer, after));
            }
        }
    }

    /// Sends pending output. `false` if the socket has no room for all of it.
    ///
    /// # Errors
    /// The socket's. A response may have arrived anyway: receive before giving up.
    pub fn pump(&mut self) -> io::Result<bool> {
        let Self { stream, conn, content, queue, send_error, .. } = self;
        // Bytes that are sent at once do not show that the peer is alive.
        let may_block = content.may_block();
        let takes_a_while = content.is_left() || conn.output().len() > LEAVES_AT_ONCE;
        let last = RefCell::new(queue.back_mut().map(|transfer| &mut **transfer));
        let sent = || {
            if takes_a_while && let Some(transfer) = last.borrow_mut().as_deref_mut() {
                transfer.took_content();
            }
        };
        let pumped = sending::pump(stream, conn, may_block, |conn| content.feed(conn, told(&last)), sent);
        let pumped = pumped.inspect_err(|error| {
            if error.kind() != io::ErrorKind::BrokenPipe {
                *send_error = Some(error.kind().into());
            }
        })?;
        Ok(pumped != Pumped::Full)
    }

    /// Returns true if more of a request is left to send than a socket takes while its peer does
    /// not read.
    #[must_use]
    pub fn is_uploading(&self) -> bool {
        self.content.is_left() || self.conn.output().len() > LEAVES_AT_ONCE
    }

    /// Returns true if something is to be sent, given room in the socket and content from the
    /// source.
    #[must_use]
    pub fn has_output(&self) -> bool {
        self.wants_room() || self.content.is_due(&self.conn)
    }

    /// Returns true if something waits for room in the socket.
    fn wants_room(&self) -> bool {
        let is_content = !self.content.is_starved() && self.content.is_due(&self.conn);
        !self.conn.output().is_empty() || self.stream.has_output() || is_content
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
        if self.turn.is_closing() {
            return self.receive_surplus(buffer, now, finished);
        }
        if self.conn.has_due() {
            return self.finish_early(now, finished);
        }
        let credit = match self.credit(now, waker) {
            Credit::Bytes(credit) => credit,
            stopped => return self.stop(stopped, now, finished),
        };
        if let Some(progress) = self.receive_past(credit, waker, finished) {
            return progress;
        }
        // A sealed record must fit, however small the credit.
        let least = if self.stream.is_secure() { LARGEST_RECORD } else { LEAST_READ };
        let room = buffer.len().min(usize::try_from(credit).unwrap_or(usize::MAX).max(least));
        let outcome = self.stream.receive(&mut buffer[..room]);
        // On a blocking socket the call has waited: the bytes arrived now.
        let now = if waker.wake.is_none() { Instant::now() } else { now };
        match outcome {
            Ok(Received::WouldBlock) => Progress::WouldBlock,
            Ok(Received::Bytes { filled, more }) => match self.take(buffer, filled, now, finished) {
                Ok(()) if self.closing => self.close(now, finished),
                Ok(()) if self.queue.front().is_some_and(|transfer| transfer.is_satisfied()) => {
                    self.leave_off(now, finished)
                }
                Ok(()) => {
                    self.came(filled as u64, now);
                    if more { Progress::More } else { Progress::Drained }
                }
                Err(error) => self.break_off(error, now, finished),
            },
            Ok(Received::End) => self.end(self.stream.end_is_said(), now, finished),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Progress::Interrupted,
            Err(error) => self.broke(error, now, finished),
        }
    }

    /// Returns true if [`Link::receive`] has results even if nothing was received.
    #[must_use]
    pub fn has_due(&self) -> bool {
        self.conn.has_due()
    }

    /// Finishes a response that was complete before its request had been sent, which it is now.
    fn finish_early(&mut self, now: Instant, finished: &mut Finished) -> Progress {
        match self.step_over_tail(now, finished) {
            Ok(()) if self.closing => self.close(now, finished),
            Ok(()) => Progress::Drained,
            Err(error) => self.break_off(error, now, finished),
        }
    }

    /// Returns the number of bytes that the transfer under way may receive.
    fn credit(&mut self, now: Instant, waker: Waker<'_>) -> Credit {
        let credit = self.queue.front_mut().map(|transfer| transfer.credit(now, waker.wake, waker.token));
        credit.unwrap_or(Credit::Bytes(u64::MAX))
    }

    /// The transfer under way takes nothing now.
    fn stop(&mut self, stopped: Credit, now: Instant, finished: &mut Finished) -> Progress {
        if self.queue.front().is_some_and(|transfer| transfer.is_satisfied()) {
            return self.leave_off(now, finished);
        }
        match stopped {
            Credit::Until(at) => {
                self.pace.resumes_at = Some(at);
                Progress::Throttled
            }
            _ => {
                // What would make room may be among those that wait here.
                self.settle_turn(now, finished);
                Progress::Paused
            }
        }
    }

    /// Notes that `bytes` were received. Makes the socket wake the reader rarely for a bulk body,
    /// and at once for any other.
    fn came(&mut self, bytes: u64, now: Instant) {
        if self.queue.front().is_some_and(|transfer| transfer.is_paced()) {
            return;
        }
        if let Some(mark) = self.pace.bulk.came(bytes, self.remaining(), now) {
            set_mark(&self.stream, mark);
        }
    }

    /// Returns the time of the next timeout: call [`Link::expire`] then, even without an event.
    #[must_use]
    pub fn look_at(&self) -> Option<Instant> {
        let look = self.queue.front().and_then(|transfer| transfer.look_at());
        [self.deadline(), look, self.content.look_at(&self.conn), self.turn.ends_at()].into_iter().flatten().min()
    }

    /// Ends transfers that took too long or are too slow.
    pub fn expire(&mut self, now: Instant, finished: &mut Finished) -> Progress {
        if let Some(progress) = self.end_turn(now, finished) {
            return progress;
        }
        let overdue = if let Some(error) = self.content.take_failure() {
            Some(error)
        } else if self.deadline().is_some_and(|deadline| deadline <= now) {
            Some(Error::new(ErrorKind::Timeout, "the operation timed out"))
        } else {
            self.queue.front_mut().and_then(|transfer| transfer.look(now))
        };
        match overdue {
            Some(error) => self.break_off(error, now, finished),
            None => Progress::More,
        }
    }

    /// Gives up the transfer of this mark, and the connection with it: the requests after it are sent again.
    pub(crate) fn cancel(&mut self, tag: u64, now: Instant, finished: &mut Finished) -> Option<Progress> {
        let place = self.queue.iter().position(|transfer| transfer.scheduling.tag == tag);
        let cancelled = place.and_then(|place| self.queue.remove(place)).or_else(|| self.turn.cancel(tag))?;
        finished.push((cancelled, After::Again(Duration::ZERO)));
        Some(self.close(now, finished))
    }

    /// The transfer in progress, to decide whether more connections would help.
    pub(crate) fn front(&self) -> Option<&Transfer> {
        self.queue.front().map(|transfer| &**transfer)
    }

    /// Returns the transfer under way, mutably, to report to it.
    pub(crate) fn front_mut(&mut self) -> Option<&mut Transfer> {
        self.queue.front_mut().map(|transfer| &mut **transfer)
    }
}

/// Reports the content that is sent for a transfer to that transfer.
fn told<'a>(transfer: &'a RefCell<Option<&mut Transfer>>) -> impl FnMut(&[u8]) + 'a {
    move |piece| {
        if let Some(transfer) = transfer.borrow_mut().as_deref_mut() {
            transfer.on_sent(piece);
        }
    }
}
