//! A connection that speaks HTTP/2: its transfers run side by side.
//!
//! Bytes that came are handed on at once; what a sink has no credit for is not given back to the peer's window
//! ([`h2::Conn::release`]). So a full sink stops its own stream and no other, and the window of the connection bounds what
//! all of them together may hold.
//!
//! | part | what it is |
//! |---|---|
//! | `uploads` | the content of requests, a part of each in turn |
//! | `reading` | what came: through TLS and the machine to the transfers |
//! | `windows` | what is given back to the peer's windows, and how often the socket wakes us |
//! | `share` | how much of what came may wait for sinks |
//! | `ends` | how streams and the connection end |

mod ends;
mod reading;
mod share;
mod uploads;
mod windows;

use std::io;
use std::ops::Range;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use haul_proto::h2::{self, Conn, ErrorCode, RequestId};
use rustc_hash::FxHashMap;

use super::pace::Pace;
use super::sending::{self, LEAVES_AT_ONCE, Pumped};
use super::{Allowance, Finished, Progress, Waker};
use crate::body::upload::Upload;
use crate::buffer::Buffer;
use crate::clock;
use crate::drive::bulk;
use crate::drive::direct::{Beside, Waited};
use crate::net::pool::Key;
use crate::net::stream::{Received, Stream};
use crate::transfer::{After, Broke, Transfer};
use crate::{Error, ErrorKind};
use ends::from_machine;
pub use share::{Share, Windows};
use uploads::Uploads;

/// Streams by their numbers, of which one is looked up several times for each response. We give them, one after the other, so no
/// peer can choose them to collide, and the hash that guards against that is not needed: with those of origins it took 2,200 of
/// the 52,000 instructions of a small response.
type ByNumber<T> = FxHashMap<u64, T>;

/// An open connection.
pub struct Link {
    stream: Stream,
    conn: Conn,
    active: ByNumber<Active>,
    /// Streams that something came for in this round.
    touched: Vec<u64>,
    /// Streams whose sinks took no more.
    held: Vec<u64>,
    uploads: Uploads,
    /// Transfers with a limit of time or speed.
    limited: usize,
    /// Of all that were ever started.
    highest_rank: u64,
    /// Bounds the received bytes that were not returned to the windows.
    share: Share,
    /// Responses that have begun.
    answered: usize,
    /// The number of complete responses.
    served: usize,
    /// The time when the connection was opened, always in the past.
    born: Instant,
    closing: bool,
    /// True if the connection ends for a violation of the protocol, with a GOAWAY that names it.
    has_objected: bool,
    /// The server has not said yet how many requests it takes at once.
    is_guessing: bool,
    /// The server is closing, but has answered requests or is about to: repeated requests make progress.
    left_some: bool,
    pub(super) pace: Pace,
    pub(super) allowance: Allowance,
    /// The key of the connection: the requests that it may carry.
    pub key: Arc<Key>,
}

/// A transfer under way.
struct Active {
    transfer: Box<Transfer>,
    /// Content that is still to be sent.
    upload: Option<Box<dyn Upload>>,
    /// Bytes that came and were not given back to the window.
    unreleased: u64,
    /// Payload of frames of this receive that is still to be handed on, as places in the receive buffer: one write for
    /// all of them.
    pieces: Vec<Range<usize>>,
    is_touched: bool,
    /// Sent before the server announced how many requests it takes at once.
    is_guess: bool,
    /// Bytes of its body that are still to come, as far as that is known.
    left: u64,
}

impl Link {
    /// A link over an open stream, whose first response may be held to a rate.
    #[must_use]
    pub fn new(stream: Stream, key: Arc<Key>, windows: &Windows, rate: Option<u64>) -> Self {
        let share = windows.share();
        let stream_window = rate.map_or_else(|| share.stream_window(), |rate| share.paced_window(rate));
        let connection_window = share.window();
        let config = h2::Config { connection_window, stream_window, ..h2::Config::default() };
        Self {
            stream,
            conn: Conn::new(config),
            active: ByNumber::default(),
            touched: Vec::new(),
            held: Vec::new(),
            uploads: Uploads::default(),
            limited: 0,
            highest_rank: 0,
            share,
            answered: 0,
            served: 0,
            born: Instant::now(),
            closing: false,
            has_objected: false,
            is_guessing: true,
            left_some: false,
            pace: Pace::of(bulk::SHARED),
            allowance: Allowance::default(),
            key,
        }
    }

    /// The stream.
    #[must_use]
    pub fn stream(&self) -> &Stream {
        &self.stream
    }

    /// The stream alone.
    pub(super) fn into_stream(self) -> Stream {
        self.stream
    }

    /// Returns true if the last frame sent is a GOAWAY that names the peer's violation.
    pub(super) fn owes_drain(&self) -> bool {
        self.has_objected
    }

    /// Returns the number of transfers that run on the connection.
    #[must_use]
    pub fn depth(&self) -> usize {
        self.active.len()
    }

    /// Returns true if the connection can take another request now.
    #[must_use]
    pub fn can_start(&self) -> bool {
        !self.closing && self.conn.can_enqueue() && !self.is_held_back()
    }

    /// Returns true if other requests must be answered before the next one may be sent.
    #[must_use]
    pub fn is_held_back(&self) -> bool {
        !self.allowance.allows(self.answered, || self.unanswered_up_to(u64::MAX))
    }

    /// Returns the number of requests up to and including `last` that have no response yet.
    fn unanswered_up_to(&self, last: u64) -> usize {
        self.active.keys().filter(|&&id| id <= last && !self.conn.response_started(RequestId(id))).count()
    }

    /// Returns the number of requests that the next connection to this peer is expected to answer,
    /// until the peer announces how many it takes at once: see [`Allowance::bore`].
    #[must_use]
    pub fn bore(&self) -> Option<usize> {
        let at_once = usize::try_from(self.conn.max_concurrent()).unwrap_or(usize::MAX);
        self.allowance.bore(self.answered, self.unanswered_up_to(u64::MAX)).map(|bore| bore.min(at_once))
    }

    /// Returns true if this transfer's request can be sent now. Before the server announces its
    /// limit of streams, it may refuse all but the first, so a request that cannot be repeated
    /// waits for that.
    #[must_use]
    pub fn takes(&self, transfer: &Transfer) -> bool {
        let is_risky = self.is_guessing && !self.active.is_empty() && transfer.is_once();
        self.can_start() && !is_risky
    }

    /// Returns true if a request of this rank may never find room: the connection has none, the
    /// sinks of all streams are full, and at least one of them comes later in the output.
    #[must_use]
    pub fn is_stuck_before(&self, rank: u64) -> bool {
        self.highest_rank > rank
            && self.held.len() == self.active.len()
            && self.pace.resumes_at.is_none()
            && !self.can_start()
            && self.active.values().any(|active| active.transfer.scheduling.rank > rank)
    }

    /// Returns true if the connection takes no more requests, ever.
    #[must_use]
    pub fn is_closing(&self) -> bool {
        self.closing
    }

    /// Returns true if the connection is open and nothing is outstanding.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        !self.closing && self.active.is_empty() && self.conn.output().is_empty() && !self.stream.has_ahead()
    }

    /// Returns the number of responses received on the connection.
    #[must_use]
    pub fn served(&self) -> usize {
        self.served
    }

    /// Puts a transfer's request into the machine; [`Link::pump`] sends it.
    pub fn start(&mut self, mut transfer: Box<Transfer>, now: Instant, waker: Waker<'_>, finished: &mut Finished) {
        transfer.facts.peer = self.stream.peer;
        let is_reused = self.served > 0 || !self.active.is_empty();
        transfer.reuse.on_connection(is_reused, false);
        transfer.on_connection(&self.stream, is_reused);
        if !transfer.is_paced() {
            self.conn.widen(self.share.stream_window());
        }
        match transfer.enqueue(&mut self.conn, now) {
            Ok(id) => {
                if self.active.is_empty() {
                    self.allowance.begins_anew(self.answered);
                }
                let upload = waker.attend(transfer.upload());
                if upload.is_some() {
                    self.uploads.begin(id, waker.may_block());
                }
                self.limited += usize::from(is_limited(&transfer));
                self.highest_rank = self.highest_rank.max(transfer.scheduling.rank);
                let (pieces, is_guess) = (Vec::new(), self.is_guessing);
                let active = Active { transfer, upload, unreleased: 0, pieces, is_touched: false, is_guess, left: 0 };
                self.active.insert(id.0, active);
                self.uploads.feed(&mut self.conn, &mut self.active);
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
    /// The socket's.
    pub fn pump(&mut self) -> io::Result<bool> {
        let Self { stream, conn, active, uploads, .. } = self;
        let may_block = uploads.may_block();
        let pumped = sending::pump(stream, conn, may_block, |conn| uploads.feed(conn, active), || {})?;
        uploads.is_interrupted = pumped == Pumped::Looks;
        Ok(pumped != Pumped::Full)
    }

    /// Returns true if more of a request is left to send than a socket takes while its peer does
    /// not read.
    #[must_use]
    pub fn is_uploading(&self) -> bool {
        self.uploads.are_left() || self.conn.output().len() > LEAVES_AT_ONCE
    }

    /// Returns true if [`Link::receive`] has results even if nothing was received.
    #[must_use]
    pub fn has_due(&self) -> bool {
        self.conn.has_due()
    }

    /// Returns true if something waits for room in the socket. An upload that waits for the peer's
    /// window does not count.
    #[must_use]
    pub fn has_output(&self) -> bool {
        !self.conn.output().is_empty() || self.stream.has_output() || self.uploads.is_interrupted
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
        if self.conn.has_due() {
            return self.conclude(Progress::More, now, finished);
        }
        let was_held = !self.held.is_empty();
        self.release_held(now, waker, finished);
        if !self.active.is_empty() && self.held.len() == self.active.len() && self.pace.resumes_at.is_some() {
            // All are at their rate.
            return self.after(Progress::Throttled, now, finished);
        }
        // What that announced must not wait for this receive, which may block: the peer may have used up its windows. If the connection is broken,
        // the receive reports it.
        if was_held {
            let _ = self.pump();
        }
        let progress = match self.stream.receive(buffer) {
            Ok(Received::WouldBlock) => Progress::WouldBlock,
            Ok(Received::Bytes { filled, more }) => match self.take(buffer, filled, now, finished) {
                Ok(true) => {
                    self.settle(now, waker, finished);
                    self.came(filled as u64, now);
                    if more { Progress::More } else { Progress::Drained }
                }
                Ok(false) => return self.end(now, finished),
                Err(error) => return self.break_off(error, now, finished),
            },
            Ok(Received::End) => return self.end(now, finished),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Progress::Interrupted,
            Err(error) => {
                let error = Error::with_source(ErrorKind::Receive, "the connection broke", error);
                return self.break_off(error, now, finished);
            }
        };
        // The machine's output for this may be sent with that for the next, so that the peer is woken once.
        if progress == Progress::More && !self.uploads.are_left() {
            return self.conclude(progress, now, finished);
        }
        self.after(progress, now, finished)
    }

    /// Sends the machine's output after a step.
    fn after(&mut self, progress: Progress, now: Instant, finished: &mut Finished) -> Progress {
        match self.pump() {
            // The peer has closed. What it sent before that is received first, and then its end, which is the error.
            Err(error) if matches!(error.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset) => {}
            Err(error) => {
                let error = Error::with_source(ErrorKind::Send, "the connection broke", error);
                return self.break_off(error, now, finished);
            }
            Ok(_) => {}
        }
        self.conclude(progress, now, finished)
    }

    /// Ends a connection that accepts no more requests and has none left. Sending may have
    /// completed responses.
    fn conclude(&mut self, progress: Progress, now: Instant, finished: &mut Finished) -> Progress {
        if self.conn.has_due()
            && let Err(error) = self.step(&mut [], 0..0, now, finished)
        {
            return self.break_off(error, now, finished);
        }
        for (id, error) in self.uploads.take_failed() {
            self.fail(id, error, Broke::BeforeResponse, now, finished);
        }
        if self.closing && self.active.is_empty() { Progress::Closed } else { progress }
    }

    /// Returns the number of bytes of the body under way that are still to come; 0 unless there is
    /// exactly one body.
    #[must_use]
    pub fn remaining(&self) -> u64 {
        only(&self.active).map_or(0, |active| active.left)
    }

    /// Waits until there is something to receive, or room to send.
    ///
    /// # Errors
    /// Those of `poll(2)`.
    pub fn wait(&mut self, deadline: Option<Instant>) -> io::Result<Waited> {
        let sends = self.has_output() && !self.stream.is_held();
        // A stream at its rate has its window opened again when its time has come, and until then nothing may come.
        let until = [deadline, self.pace.resumes_at].into_iter().flatten().min();
        let upload = only(&self.active).and_then(|active| active.upload.as_ref()).filter(|_| self.uploads.is_starved());
        let beside = upload.and_then(|upload| upload.source()).map(Beside::Source);
        match self.pace.wait(self.stream.as_fd(), sends, beside, until) {
            Ok(Waited::Late) if self.pace.resumes_at.is_some_and(|at| at <= Instant::now()) => Ok(Waited::Ready),
            waited => waited,
        }
    }

    /// Returns the time of the next timeout: call [`Link::expire`] then, even without an event.
    #[must_use]
    pub fn look_at(&self) -> Option<Instant> {
        let limits = || {
            let each = |active: &Active| [active.transfer.deadline(), active.transfer.look_at()];
            self.active.values().flat_map(each).flatten().min()
        };
        let limit = if self.limited > 0 { limits() } else { None };
        let machine = self.conn.poll_timeout().map(|at| clock::instant(haul_policy::Time(at.0)));
        let failed = self.uploads.has_failed().then_some(self.born);
        [limit, machine, failed, self.uploads.resumes_at()].into_iter().flatten().min()
    }

    /// Ends transfers that took too long or are too slow.
    pub fn expire(&mut self, now: Instant, finished: &mut Finished) -> Progress {
        if let Err(error) = self.conn.handle_timeout(clock::time(now)) {
            return self.break_off(from_machine(error), now, finished);
        }
        let overdue = |(id, active): (&u64, &mut Active)| {
            if active.transfer.deadline().is_some_and(|deadline| deadline <= now) {
                return Some((*id, Error::new(ErrorKind::Timeout, "the operation timed out")));
            }
            active.transfer.look(now).map(|error| (*id, error))
        };
        let late: Vec<_> = if self.limited > 0 { self.active.iter_mut().filter_map(overdue).collect() } else { vec![] };
        for (id, error) in late {
            let broke =
                if self.conn.response_started(RequestId(id)) { Broke::InResponse } else { Broke::BeforeResponse };
            self.fail(id, error, broke, now, finished);
        }
        self.after(Progress::More, now, finished)
    }

    /// Gives up the transfer of this mark.
    pub(crate) fn cancel(&mut self, tag: u64, now: Instant, finished: &mut Finished) -> Option<Progress> {
        let id = self.active.iter().find(|(_, active)| active.transfer.scheduling.tag == tag).map(|(id, _)| *id)?;
        self.conn.reset(RequestId(id), ErrorCode::CANCEL);
        if let Some(active) = self.take_out(id, now) {
            finished.push((active.transfer, After::Again(Duration::ZERO)));
        }
        Some(Progress::More)
    }

    /// The one transfer under way.
    pub(crate) fn front(&self) -> Option<&Transfer> {
        only(&self.active).map(|active| &*active.transfer)
    }

    /// Returns the transfer under way, mutably, to report to it; `None` unless there is exactly
    /// one.
    pub(crate) fn front_mut(&mut self) -> Option<&mut Transfer> {
        if self.active.len() == 1 { self.active.values_mut().next().map(|active| &mut *active.transfer) } else { None }
    }
}

/// Returns the active stream if there is exactly one.
fn only(active: &ByNumber<Active>) -> Option<&Active> {
    if active.len() == 1 { active.values().next() } else { None }
}

fn is_limited(transfer: &Transfer) -> bool {
    transfer.deadline().is_some() || transfer.options().speed_limit.is_some() || transfer.is_timed()
}
