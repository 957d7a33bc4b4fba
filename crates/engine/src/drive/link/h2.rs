//! A connection that speaks HTTP/2: its transfers run side by side.
//!
//! Bytes that came are handed on at once; what a sink has no credit for is not given back to the peer's window
//! ([`h2::Conn::release`]). So a full sink stops its own stream and no other, and the window of the connection bounds what
//! all of them together may hold.

use std::collections::HashMap;
use std::io::{self, IoSlice};
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use haul_policy::retry::is_idempotent;
use haul_proto::h1;
use haul_proto::h2::{self, BodyFraming, Conn, ErrorCode, Event, RequestId, ResetReason};

use super::{Finished, Machine, Progress, Waker};
use crate::body::upload::Upload;
use crate::buffer::{Buffer, Lease};
use crate::clock;
use crate::drive::bulk::Bulk;
use crate::drive::direct::{self, Waited};
use crate::net::pool::Key;
use crate::net::stream::{Received, Stream};
use crate::transfer::{After, Broke, Credit, Transfer};
use crate::{Error, ErrorKind, Result};

/// What all streams of a connection together may hold that no sink has taken.
const WINDOW: u32 = 16 << 20;

/// Pieces of one body that are handed on together at most.
const GATHERED: usize = 64;

/// So many refusals of one transfer cost it no retry: a server may restart, or take fewer streams than it said.
const FREE_REPLAYS: u32 = 3;

/// An open connection.
pub struct Link {
    stream: Stream,
    conn: Conn,
    active: HashMap<u64, Active>,
    /// Streams that something came for in this round.
    touched: Vec<u64>,
    /// Streams whose sinks took no more.
    held: Vec<u64>,
    /// Uploads under way, in turn.
    uploads: Vec<u64>,
    /// Uploads whose source failed.
    unreadable: Vec<(u64, Error)>,
    /// Transfers with a limit of time or speed.
    limited: usize,
    served: u64,
    /// When it was opened: a moment that is over.
    born: Instant,
    closing: bool,
    bulk: Bulk,
    resumes_at: Option<Instant>,
    waited: Duration,
    /// What it may be used for.
    pub key: Arc<Key>,
}

/// A transfer under way.
struct Active {
    transfer: Transfer,
    /// Content that is still to be sent.
    upload: Option<Box<dyn Upload>>,
    /// Bytes that came and were not given back to the window.
    unreleased: u64,
    /// Payload of frames of this receive that is still to be handed on, as places in the receive buffer: one write for
    /// all of them.
    pieces: Vec<Range<usize>>,
    is_touched: bool,
    /// Bytes of its body that are still to come, as far as that is known.
    left: u64,
}

impl Link {
    /// A link over an open stream.
    #[must_use]
    pub fn new(stream: Stream, key: Arc<Key>) -> Self {
        let config = h2::Config { connection_window: WINDOW, ..h2::Config::default() };
        Self {
            stream,
            conn: Conn::new(config),
            active: HashMap::new(),
            touched: Vec::new(),
            held: Vec::new(),
            uploads: Vec::new(),
            unreadable: Vec::new(),
            limited: 0,
            served: 0,
            born: Instant::now(),
            closing: false,
            bulk: Bulk::default(),
            resumes_at: None,
            waited: Duration::ZERO,
            key,
        }
    }

    /// The stream.
    #[must_use]
    pub fn stream(&self) -> &Stream {
        &self.stream
    }

    /// How many transfers run on it.
    #[must_use]
    pub fn depth(&self) -> usize {
        self.active.len()
    }

    /// Whether it can take a further request now.
    #[must_use]
    pub fn can_start(&self) -> bool {
        !self.closing && self.conn.can_enqueue()
    }

    /// Whether it takes no further request, ever.
    #[must_use]
    pub fn is_closing(&self) -> bool {
        self.closing
    }

    /// Whether it is open and nothing is outstanding.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        !self.closing && self.active.is_empty() && self.conn.output().is_empty() && !self.stream.has_ahead()
    }

    /// Whether responses were received on it before.
    #[must_use]
    pub fn has_served(&self) -> bool {
        self.served > 0
    }

    /// Puts a transfer's request into the machine; [`Link::pump`] sends it.
    pub fn start(&mut self, mut transfer: Transfer, now: Instant, finished: &mut Finished) {
        transfer.facts.peer = self.stream.peer;
        transfer.is_pipelined = false;
        match transfer.enqueue(&mut self.conn, now) {
            Ok(id) => {
                let upload = transfer.upload();
                if upload.is_some() {
                    self.uploads.push(id.0);
                }
                self.limited += usize::from(is_limited(&transfer));
                let pieces = Vec::new();
                self.active
                    .insert(id.0, Active { transfer, upload, unreleased: 0, pieces, is_touched: false, left: 0 });
                self.feed();
            }
            Err(error) => {
                let after = transfer.on_failure(error, Broke::BeforeSending, now);
                finished.push((transfer, after));
            }
        }
    }

    /// Puts content into the machine as far as it takes it, a part of each upload in turn.
    fn feed(&mut self) {
        let Self { conn, active, uploads, unreadable, .. } = self;
        uploads.retain(|&id| {
            let Some(upload) = active.get_mut(&id).and_then(|active| active.upload.as_mut()) else { return false };
            let mut piece = [0; 16 << 10];
            // Nothing is expected any more where all was sent, or the response came first.
            while let Some(credit) = conn.body_credit(RequestId(id)) {
                let room = piece.len().min(usize::try_from(credit).unwrap_or(usize::MAX));
                if room == 0 {
                    return true;
                }
                let fed = upload.read(&mut piece[..room]).and_then(|n| match n {
                    0 => conn.finish_body(RequestId(id), &[]).map_err(io::Error::other).map(|()| 0),
                    n => conn.send_body(RequestId(id), &piece[..n]).map_err(io::Error::other),
                });
                match fed {
                    Ok(n) if n == room || n == 0 => {}
                    Ok(_) => return true,
                    Err(error) => {
                        let message = "the content to send cannot be read";
                        unreadable.push((id, Error::with_source(ErrorKind::Read, message, error)));
                        return false;
                    }
                }
            }
            false
        });
    }

    /// Sends what there is to send. `false` when the socket has no room for all of it.
    ///
    /// # Errors
    /// The socket's.
    pub fn pump(&mut self) -> io::Result<bool> {
        loop {
            self.feed();
            let output = self.conn.output();
            if output.is_empty() {
                return self.stream.flush();
            }
            match self.stream.send(output) {
                Ok(n) => self.conn.advance_output(n),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Whether more of a request's content is to be sent than was taken at once.
    #[must_use]
    pub fn is_uploading(&self) -> bool {
        !self.uploads.is_empty()
    }

    /// Whether something is waiting for room in the socket. An upload that waits for the peer's window is not.
    #[must_use]
    pub fn has_output(&self) -> bool {
        !self.conn.output().is_empty() || self.stream.has_output()
    }

    /// Receives once, and gives what came to the transfers. Those that are over are added to `finished`.
    pub fn receive(
        &mut self,
        buffer: &mut Buffer,
        now: Instant,
        waker: Waker<'_>,
        finished: &mut Finished,
    ) -> Progress {
        self.release_held(now, waker, finished);
        if !self.active.is_empty() && self.held.len() == self.active.len() && self.resumes_at.is_some() {
            // All are at their rate.
            return self.after(Progress::Throttled, now, finished);
        }
        let progress = match self.stream.receive(buffer) {
            Ok(Received::WouldBlock) => Progress::WouldBlock,
            Ok(Received::Bytes { filled, more }) => match self.take(buffer, filled, now, finished) {
                Ok(true) => {
                    self.settle(now, waker, finished);
                    self.pace(filled as u64, now);
                    if more { Progress::More } else { Progress::Drained }
                }
                Ok(false) => return self.end(now, finished),
                Err(error) => return self.break_off(error, now, finished),
            },
            Ok(Received::End) => return self.end(now, finished),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Progress::More,
            Err(error) => {
                let error = Error::with_source(ErrorKind::Receive, "the connection broke", error);
                return self.break_off(error, now, finished);
            }
        };
        self.after(progress, now, finished)
    }

    /// Sends what the machine has to say by now; a connection that takes no more requests and has none is over.
    fn after(&mut self, progress: Progress, now: Instant, finished: &mut Finished) -> Progress {
        if let Err(error) = self.pump() {
            let error = Error::with_source(ErrorKind::Send, "the connection broke", error);
            return self.break_off(error, now, finished);
        }
        for (id, error) in std::mem::take(&mut self.unreadable) {
            self.fail(id, error, Broke::BeforeResponse, now, finished);
        }
        if self.closing && self.active.is_empty() { Progress::Closed } else { progress }
    }

    /// Passes received bytes through TLS and the machine. `false` when the peer has ended the stream.
    fn take(&mut self, buffer: &mut Buffer, filled: usize, now: Instant, finished: &mut Finished) -> Result<bool> {
        let mut at = 0;
        let outcome = loop {
            match self.stream.open(buffer, &mut at, filled) {
                Ok((Some(range), _)) => {
                    if let Err(error) = self.step(buffer, range, now, finished) {
                        break Err(error);
                    }
                }
                Ok((None, ended)) => break Ok(!ended),
                Err(error) => break Err(error),
            }
        };
        // What came before a breach is delivered all the same.
        for n in 0..self.touched.len() {
            self.hand_on(self.touched[n], buffer, now, finished);
        }
        outcome
    }

    /// Hands on what was gathered of a body.
    fn hand_on(&mut self, id: u64, buffer: &[u8], now: Instant, finished: &mut Finished) {
        let Some(Active { transfer, pieces, .. }) = self.active.get_mut(&id) else { return };
        let outcome = match pieces.as_slice() {
            [] => return,
            [piece] => transfer.on_body(Lease::borrowed(&buffer[piece.clone()])),
            pieces => {
                let mut slices = [IoSlice::new(&[]); GATHERED];
                for (slice, piece) in slices.iter_mut().zip(pieces) {
                    *slice = IoSlice::new(&buffer[piece.clone()]);
                }
                transfer.on_pieces(&mut slices[..pieces.len()])
            }
        };
        pieces.clear();
        let is_left = transfer.is_satisfied() || transfer.is_cut_short(BodyFraming::Chunked);
        match outcome {
            Err(error) => self.fail(id, error, Broke::InResponse, now, finished),
            Ok(()) if is_left => self.leave(id, now, finished),
            Ok(()) => {}
        }
    }

    /// Steps the machine over `buffer[input]`. Payload stays where it is until it is handed on.
    fn step(&mut self, buffer: &mut [u8], input: Range<usize>, now: Instant, finished: &mut Finished) -> Result<()> {
        let time = clock::time(now);
        let mut at = input.start;
        loop {
            let step = self.conn.step(time, &mut buffer[at..input.end]).map_err(from_machine)?;
            let base = at;
            at += step.consumed;
            match step.event {
                Event::NeedInput => return Ok(()),
                Event::Interim { id, head } => {
                    if let Some(active) = self.active.get_mut(&id.0) {
                        active.transfer.facts.head_bytes += head.raw().len() as u64;
                    }
                }
                Event::Head { id, head, framing } => {
                    let Some(active) = self.active.get_mut(&id.0) else { continue };
                    if let BodyFraming::Length(length) = framing {
                        active.left = length;
                    }
                    active.transfer.on_head(head, framing, now);
                    if active.transfer.is_cut_short(framing) {
                        self.leave(id.0, now, finished);
                    }
                }
                Event::Body { id, range } => {
                    let Some(active) = self.active.get_mut(&id.0) else {
                        self.conn.release(time, id, (range.end - range.start) as u64);
                        continue;
                    };
                    let bytes = (range.end - range.start) as u64;
                    active.unreleased += bytes;
                    active.left = active.left.saturating_sub(bytes);
                    if !std::mem::replace(&mut active.is_touched, true) {
                        self.touched.push(id.0);
                    }
                    active.pieces.push(base + range.start..base + range.end);
                    if active.pieces.len() == GATHERED {
                        self.hand_on(id.0, buffer, now, finished);
                    }
                }
                Event::Complete { id, .. } => {
                    self.hand_on(id.0, buffer, now, finished);
                    self.served += 1;
                    if let Some(mut active) = self.take_out(id.0, now) {
                        let after = active.transfer.on_complete(now);
                        finished.push((active.transfer, after));
                    }
                }
                Event::Reset { id, reason, retryable } => {
                    self.hand_on(id.0, buffer, now, finished);
                    self.was_reset(id.0, reason, retryable, now, finished);
                }
                Event::GoAway { .. } => self.closing = true,
                // Settings say how many streams there may be: the driver asks that anyway.
                _ => {}
            }
        }
    }

    fn was_reset(&mut self, id: u64, reason: ResetReason, retryable: bool, now: Instant, finished: &mut Finished) {
        let started = self.active.get(&id).is_some_and(|active| active.transfer.facts.body_bytes > 0);
        let Some(mut active) = self.take_out(id, now) else { return };
        active.transfer.replays += u32::from(retryable);
        let after = if retryable && active.transfer.replays <= FREE_REPLAYS {
            After::Again(Duration::ZERO)
        } else {
            let broke = match reason {
                ResetReason::Violation(error) if !error.is_early_end() => Broke::ByProtocol,
                _ if started => Broke::InResponse,
                _ => Broke::BeforeResponse,
            };
            active.transfer.on_failure(Error::new(ErrorKind::Http2Stream, reason.to_string()), broke, now)
        };
        finished.push((active.transfer, after));
    }

    /// The rest of a response is not wanted.
    fn leave(&mut self, id: u64, now: Instant, finished: &mut Finished) {
        self.conn.reset(RequestId(id), ErrorCode::CANCEL);
        if let Some(mut active) = self.take_out(id, now) {
            let after = active.transfer.on_complete(now);
            finished.push((active.transfer, after));
        }
    }

    fn fail(&mut self, id: u64, error: Error, broke: Broke, now: Instant, finished: &mut Finished) {
        self.conn.reset(RequestId(id), ErrorCode::CANCEL);
        if let Some(mut active) = self.take_out(id, now) {
            let after = active.transfer.on_failure(error, broke, now);
            finished.push((active.transfer, after));
        }
    }

    /// A transfer is no longer on this connection: the window has its bytes back.
    fn take_out(&mut self, id: u64, now: Instant) -> Option<Active> {
        let active = self.active.remove(&id)?;
        self.limited -= usize::from(is_limited(&active.transfer));
        if active.unreleased > 0 {
            self.conn.release(clock::time(now), RequestId(id), active.unreleased);
        }
        self.held.retain(|&other| other != id);
        Some(active)
    }

    /// Gives back to the windows what came in this round, as far as the sinks have credit.
    fn settle(&mut self, now: Instant, waker: Waker<'_>, finished: &mut Finished) {
        let mut touched = std::mem::take(&mut self.touched);
        for id in touched.drain(..) {
            self.release(id, now, waker, finished);
        }
        self.touched = touched;
    }

    /// The same for those whose sinks had none before.
    fn release_held(&mut self, now: Instant, waker: Waker<'_>, finished: &mut Finished) {
        if self.held.is_empty() {
            return;
        }
        self.resumes_at = None;
        for id in std::mem::take(&mut self.held) {
            self.release(id, now, waker, finished);
        }
    }

    fn release(&mut self, id: u64, now: Instant, waker: Waker<'_>, finished: &mut Finished) {
        let Some(active) = self.active.get_mut(&id) else { return };
        active.is_touched = false;
        match active.transfer.credit(now, waker.wake, waker.token) {
            Credit::Bytes(_) => {
                let bytes = std::mem::take(&mut active.unreleased);
                self.conn.release(clock::time(now), RequestId(id), bytes);
            }
            _ if active.transfer.is_satisfied() => self.leave(id, now, finished),
            stopped => {
                if let Credit::Until(at) = stopped {
                    self.resumes_at = Some(self.resumes_at.map_or(at, |other| other.min(at)));
                }
                if !self.held.contains(&id) {
                    self.held.push(id);
                }
            }
        }
    }

    /// When a transfer that was at its rate goes on.
    #[must_use]
    pub fn resumes_at(&self) -> Option<Instant> {
        self.resumes_at
    }

    /// It goes on; the next [`Link::receive`] sees to it.
    pub fn resume(&mut self) {
        self.resumes_at = None;
    }

    /// How many bytes of the body under way are still to come, where there is just one.
    #[must_use]
    pub fn remaining(&self) -> u64 {
        self.only().map_or(0, |active| active.left)
    }

    /// Waits until there is something to receive, or room to send.
    ///
    /// # Errors
    /// Those of `poll(2)`.
    pub fn wait(&mut self, deadline: Option<Instant>) -> io::Result<Waited> {
        let began = Instant::now();
        let quiet = self.bulk.quiet_at().map(|at| at.saturating_duration_since(began));
        let sends = self.has_output();
        let waited = direct::wait(std::os::fd::AsFd::as_fd(&self.stream), sends, None, quiet, deadline);
        self.waited += began.elapsed();
        waited
    }

    /// How long [`Link::wait`] has waited for the server.
    #[must_use]
    pub fn waited(&self) -> Duration {
        self.waited
    }

    /// So many bytes came: sees to it that bulk bodies wake us seldom. The mark stays below what the peer may send without
    /// hearing from us, which is half a window of each stream at least.
    fn pace(&mut self, bytes: u64, now: Instant) {
        let left = self.active.values().map(|active| active.left).fold(0, u64::saturating_add);
        let bulky = self.active.values().filter(|active| active.left > BULKY).take(MOST_BULKY).count();
        let left = if bulky == 0 || !self.held.is_empty() { 0 } else { left };
        if let Some(mark) = self.bulk.came(bytes, left, now) {
            self.set_mark(mark.min(bulky * MARK_A_STREAM).max(1));
        }
    }

    fn set_mark(&mut self, mark: usize) {
        // Where the system has no such mark, every byte wakes us: no harm is done.
        let _ = self.stream.socket().set_recv_lowat(mark);
    }

    /// Until when a bulk body must have brought its next piece, or [`Link::hurry`].
    #[must_use]
    pub fn quiet_at(&self) -> Option<Instant> {
        self.bulk.quiet_at()
    }

    /// Bulk bodies have slowed down: from now on every byte wakes us.
    pub fn hurry(&mut self) {
        if let Some(mark) = self.bulk.quiet() {
            self.set_mark(mark);
        }
    }

    /// The peer has ended the stream.
    fn end(&mut self, now: Instant, finished: &mut Finished) -> Progress {
        let error = from_machine(self.conn.end_of_input());
        self.break_off(error, now, finished)
    }

    /// The connection cannot go on: its transfers are given back, to be tried again where that is safe.
    pub fn break_off(&mut self, error: Error, now: Instant, finished: &mut Finished) -> Progress {
        // What the machine still has to say is why.
        let _ = self.pump();
        self.closing = true;
        let (kind, cause) = (error.kind(), error.cause());
        let by_protocol = kind == ErrorKind::Http2;
        let mut error = Some(error);
        let mut ids: Vec<u64> = self.active.keys().copied().collect();
        ids.sort_unstable();
        for id in ids {
            let started = self.conn.response_started(RequestId(id));
            let was_seen = self.conn.request_left(RequestId(id));
            let Some(mut active) = self.active.remove(&id) else { continue };
            let is_new = !was_seen || (!started && self.served > 0 && is_idempotent(active.transfer.method()));
            active.transfer.replays += 1;
            let after = if is_new && !by_protocol && active.transfer.replays <= FREE_REPLAYS {
                active.transfer.wants_fresh = true;
                After::Again(Duration::ZERO)
            } else {
                let broke = match (by_protocol, started) {
                    (true, _) => Broke::ByProtocol,
                    (_, true) => Broke::InResponse,
                    _ => Broke::BeforeResponse,
                };
                let error = error.take().unwrap_or_else(|| Error::new(kind, cause.clone()));
                active.transfer.on_failure(error, broke, now)
            };
            finished.push((active.transfer, after));
        }
        self.limited = 0;
        Progress::Closed
    }

    /// When [`Link::expire`] is to be called though nothing happened.
    #[must_use]
    pub fn look_at(&self) -> Option<Instant> {
        let limits = || {
            let each = |active: &Active| [active.transfer.deadline(), active.transfer.look_at()];
            self.active.values().flat_map(each).flatten().min()
        };
        let limit = if self.limited > 0 { limits() } else { None };
        let machine = self.conn.poll_timeout().map(|at| clock::instant(haul_policy::Time(at.0)));
        let failed = if self.unreadable.is_empty() { None } else { Some(self.born) };
        [limit, machine, failed].into_iter().flatten().min()
    }

    /// Ends what took too long or is too slow.
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

    /// Nobody waits any more for the transfer with this tag: its stream is reset, the others go on.
    pub fn abandon(&mut self, tag: u64, error: Error, now: Instant, finished: &mut Finished) -> Progress {
        let found = self.active.iter().find(|(_, active)| active.transfer.tag == tag).map(|(id, _)| *id);
        let Some(id) = found else { return Progress::More };
        let broke = if self.conn.response_started(RequestId(id)) { Broke::InResponse } else { Broke::BeforeResponse };
        self.fail(id, error, broke, now, finished);
        self.after(Progress::More, now, finished)
    }

    fn only(&self) -> Option<&Active> {
        if self.active.len() == 1 { self.active.values().next() } else { None }
    }

    /// The one transfer under way.
    pub(crate) fn front(&self) -> Option<&Transfer> {
        self.only().map(|active| &active.transfer)
    }

    /// The same, to be told so.
    pub(crate) fn front_mut(&mut self) -> Option<&mut Transfer> {
        if self.active.len() == 1 { self.active.values_mut().next().map(|active| &mut active.transfer) } else { None }
    }
}

/// A stream with so much to come counts for the mark, so many of them at most, each with so much.
const BULKY: u64 = 1 << 20;
const MOST_BULKY: usize = 8;
const MARK_A_STREAM: usize = 64 << 10;

fn is_limited(transfer: &Transfer) -> bool {
    transfer.options().max_time.is_some() || transfer.options().speed_limit.is_some()
}

impl Machine for Conn {
    fn take(
        &mut self,
        now: haul_proto::time::Time,
        scheme: &'static str,
        request: &h1::Request<'_>,
    ) -> Result<h1::RequestId, Box<dyn std::error::Error + Send + Sync>> {
        let host = request.fields.iter().find(|(name, _)| name.eq_ignore_ascii_case("host")).map(|(_, value)| *value);
        let authority = std::str::from_utf8(host.unwrap_or_default())?;
        Ok(self.enqueue(
            now,
            &h2::Request {
                method: request.method,
                scheme,
                authority,
                path: request.target,
                fields: request.fields,
                body: request.body,
                expect_continue: request.expect_continue,
                sensitive: &[],
            },
        )?)
    }
}

/// The kind, and so the exit code, of what the machine objects to.
fn from_machine(error: h2::Error) -> Error {
    let kind = match error {
        h2::Error::EndedIdle | h2::Error::EndedBeforeResponse => ErrorKind::EmptyReply,
        h2::Error::EndedInResponse { .. } => ErrorKind::PartialBody,
        _ if error.is_early_end() => ErrorKind::Receive,
        _ => ErrorKind::Http2,
    };
    Error::new(kind, error.to_string())
}
