//! A connection that speaks HTTP/1.1: its transfers are answered one after the other, in the order of their requests.

use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use haul_policy::retry::is_idempotent;
use haul_proto::h1::{self, BodyFraming, CloseReason, Conn, Event};
use haul_proto::time::Time;

use super::{Finished, Machine, Pipes, Progress, Waker};
use crate::body::upload::Upload;
use crate::buffer::{Buffer, Lease};
use crate::clock;
use crate::drive::bulk::Bulk;
use crate::drive::direct::{self, Mover, Stop, Waited, Way};
use crate::net::pool::Key;
use crate::net::stream::{Received, Stream};
use crate::transfer::{After, Broke, Credit, Transfer};
use crate::{Error, ErrorKind, Result};

/// The least that is read at once, however small the credit: a head has to fit in.
const LEAST_READ: u64 = 4096;

/// An open connection.
pub struct Link {
    stream: Stream,
    conn: Conn,
    /// Plaintext that the machine could not use yet: a head or chunk line that came in part.
    tail: Vec<u8>,
    queue: VecDeque<Transfer>,
    /// Content of the last request that is still to be put into the machine.
    upload: Option<Box<dyn Upload>>,
    /// Until when the server is waited for to say whether it wants that.
    held_until: Option<Instant>,
    /// Since when, and why, it cannot be read.
    upload_failed: Option<(Instant, Error)>,
    served: u64,
    closing: bool,
    reset: bool,
    misbehaved: bool,
    /// The peer sent what breaks the protocol, in contrast to closing too early.
    violated: bool,
    direct: Direct,
    bulk: Bulk,
    resumes_at: Option<Instant>,
    waited: Duration,
    /// What it may be used for.
    pub key: Arc<Key>,
}

/// How the rest of the body under way gets to its sink.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Direct {
    /// Nobody has asked yet.
    Undecided,
    /// It is moved.
    Moved(Way),
    /// It is received and written.
    Copied,
}

/// With less than this to come of a body, it is not worth finding out whether it could be moved.
const WORTH_MOVING: u64 = 64 << 10;

/// A sealed record with its header is no longer (RFC 8446 section 5.2, RFC 5246 section 6.2.3).
const LARGEST_RECORD: usize = 5 + (16 << 10) + 2048;

impl Link {
    /// A link over an open stream.
    #[must_use]
    pub fn new(stream: Stream, key: Arc<Key>, depth: usize) -> Self {
        // How long content is held back is its request's to say: the machine would know one time for all.
        let config = h1::Config { max_pipeline: depth, expect_timeout: Duration::MAX, ..h1::Config::default() };
        Self {
            stream,
            conn: Conn::new(config),
            tail: Vec::new(),
            queue: VecDeque::new(),
            upload: None,
            held_until: None,
            upload_failed: None,
            served: 0,
            closing: false,
            reset: false,
            misbehaved: false,
            violated: false,
            direct: Direct::Undecided,
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

    /// How many transfers wait on it.
    #[must_use]
    pub fn depth(&self) -> usize {
        self.queue.len()
    }

    /// Whether it can take a further request now.
    #[must_use]
    pub fn can_start(&self) -> bool {
        !self.closing && self.upload.is_none() && self.conn.can_enqueue()
    }

    /// Whether this transfer's request can be sent now, behind those that are not answered yet.
    #[must_use]
    pub fn takes(&self, transfer: &Transfer) -> bool {
        self.can_start() && self.last().is_none_or(|last| transfer.may_follow(last))
    }

    /// The transfer whose request was sent last, of those that wait.
    #[must_use]
    pub fn last(&self) -> Option<&Transfer> {
        self.queue.back()
    }

    /// Whether the peer left requests unanswered that it should not have had to be sent again: it cannot be trusted with
    /// several at once. One that announces its last response, as servers with a limit for a connection do, is none.
    #[must_use]
    pub fn has_misbehaved(&self) -> bool {
        self.misbehaved
    }

    /// Whether it takes no further request, ever.
    #[must_use]
    pub fn is_closing(&self) -> bool {
        self.closing
    }

    /// Whether it is open and nothing is outstanding.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        let is_read = self.tail.is_empty() && !self.stream.has_ahead();
        !self.closing && self.queue.is_empty() && self.conn.is_idle() && is_read
    }

    /// Whether responses were received on it before.
    #[must_use]
    pub fn has_served(&self) -> bool {
        self.served > 0
    }

    /// The earliest limit of its transfers.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        self.queue.iter().filter_map(Transfer::deadline).min()
    }

    /// Puts a transfer's request into the machine; [`Link::pump`] sends it.
    pub fn start(&mut self, mut transfer: Transfer, now: Instant, finished: &mut Finished) {
        transfer.facts.peer = self.stream.peer;
        match transfer.enqueue(&mut self.conn, now) {
            Ok(_) => {
                transfer.is_pipelined = !self.queue.is_empty();
                self.upload = transfer.upload();
                self.held_until = transfer.asks_for().map(|wait| clock::after(now, wait));
                self.queue.push_back(transfer);
                self.feed();
            }
            Err(error) => {
                let after = transfer.on_failure(error, Broke::BeforeSending, now);
                finished.push((transfer, after));
            }
        }
    }

    /// Puts content into the machine as far as it takes it, so that a head and a small body leave in one write. What waits
    /// for its source is not waited for before the rest has left.
    fn feed(&mut self) {
        let Some(upload) = self.upload.as_mut().filter(|_| self.upload_failed.is_none()) else { return };
        if self.held_until.is_some_and(|until| until <= Instant::now()) {
            self.held_until = None;
            self.conn.handle_timeout(Time(u64::MAX));
        }
        let mut piece = [0; 16 << 10];
        while let Some(credit) = self.conn.body_credit().filter(|&credit| credit > 0) {
            let room = piece.len().min(usize::try_from(credit).unwrap_or(usize::MAX));
            // The machine takes what it gave credit for, and of the end it says itself whether it is too early.
            let fed = upload.read(&mut piece[..room]).and_then(|n| match n {
                0 => self.conn.finish_body(&[]).map_err(io::Error::other).map(|()| 0),
                n => self.conn.send_body(&piece[..n]).map_err(io::Error::other),
            });
            match fed {
                Ok(n) if n == room => {}
                Ok(_) => break,
                Err(error) => {
                    let error = Error::with_source(ErrorKind::Read, "the content to send cannot be read", error);
                    self.upload_failed = Some((Instant::now(), error));
                    return;
                }
            }
        }
        if self.conn.body_credit().is_none() {
            self.upload = None;
            self.held_until = None;
        }
    }

    /// Sends what there is to send. `false` when the socket has no room for all of it.
    ///
    /// # Errors
    /// The socket's. A response may have come all the same: receive before giving up.
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
        self.upload.is_some()
    }

    /// Whether something is waiting for room in the socket.
    #[must_use]
    pub fn has_output(&self) -> bool {
        let is_due = || self.held_until.is_some_and(|until| until <= Instant::now());
        let may_feed = || self.conn.body_credit().is_some_and(|credit| credit > 0) || is_due();
        let is_fed = self.upload.is_some() && self.upload_failed.is_none() && may_feed();
        !self.conn.output().is_empty() || self.stream.has_output() || is_fed
    }

    /// Receives once, and gives what came to the transfers. Those that are over are added to `finished`.
    pub fn receive(
        &mut self,
        buffer: &mut Buffer,
        now: Instant,
        waker: Waker<'_>,
        finished: &mut Finished,
    ) -> Progress {
        let credit = match self.credit(now, waker) {
            Credit::Bytes(credit) => credit,
            stopped => return self.stop(stopped, now, finished),
        };
        // A sealed record must fit, however small the credit.
        let room = if self.stream.is_secure() {
            let paced = self.queue.front().is_some_and(Transfer::is_paced);
            if paced { buffer.len().min(LARGEST_RECORD.max(credit as usize)) } else { buffer.len() }
        } else {
            buffer.len().min(usize::try_from(credit.max(LEAST_READ)).unwrap_or(usize::MAX))
        };
        let outcome = self.stream.receive(&mut buffer[..room]);
        // On a blocking socket the call has waited: what came came now.
        let now = if waker.wake.is_none() { Instant::now() } else { now };
        match outcome {
            Ok(Received::WouldBlock) => Progress::WouldBlock,
            Ok(Received::Bytes { filled, more }) => match self.take(buffer, filled, now, finished) {
                Ok(()) if self.closing => self.close(now, finished),
                Ok(()) if self.queue.front().is_some_and(Transfer::is_satisfied) => self.leave_off(now, finished),
                Ok(()) => {
                    self.pace(filled as u64, now);
                    if more { Progress::More } else { Progress::Drained }
                }
                Err(error) => self.break_off(error, now, finished),
            },
            Ok(Received::End) => self.end(false, now, finished),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Progress::More,
            Err(error) => self.broke(error, now, finished),
        }
    }

    /// How much the transfer under way may receive.
    fn credit(&mut self, now: Instant, waker: Waker<'_>) -> Credit {
        let credit = self.queue.front_mut().map(|transfer| transfer.credit(now, waker.wake, waker.token));
        credit.unwrap_or(Credit::Bytes(u64::MAX))
    }

    /// The transfer under way takes nothing now.
    fn stop(&mut self, stopped: Credit, now: Instant, finished: &mut Finished) -> Progress {
        if self.queue.front().is_some_and(Transfer::is_satisfied) {
            return self.leave_off(now, finished);
        }
        match stopped {
            Credit::Until(at) => {
                self.resumes_at = Some(at);
                Progress::Throttled
            }
            _ => Progress::Paused,
        }
    }

    /// When a transfer that was at its rate goes on.
    #[must_use]
    pub fn resumes_at(&self) -> Option<Instant> {
        self.resumes_at
    }

    /// It goes on: the moment has come, or the wait was for something else.
    pub fn resume(&mut self) {
        self.resumes_at = None;
    }

    /// The transfer under way has all that it wants of a response that goes on.
    fn leave_off(&mut self, now: Instant, finished: &mut Finished) -> Progress {
        self.closing = true;
        self.finish_front(now, finished);
        self.close(now, finished)
    }

    fn broke(&mut self, error: io::Error, now: Instant, finished: &mut Finished) -> Progress {
        self.reset = true;
        // The peer's reset ends a body that lasts until then, too: never as a success.
        let error = if self.conn.response_started() {
            Error::with_source(ErrorKind::Receive, "the connection broke", error)
        } else {
            Error::with_source(ErrorKind::Receive, "the connection broke before the response", error)
        };
        self.break_off(error, now, finished)
    }

    /// How many bytes of the body under way are still to come, as far as that is known.
    #[must_use]
    pub fn remaining(&self) -> u64 {
        self.conn.direct_body().unwrap_or(0)
    }

    /// Whether the rest of the body under way can go past our memory: [`Link::move_body`] in place of
    /// [`Link::receive`]. The transfer's sink must be one that nobody else writes to meanwhile.
    pub fn is_direct(&mut self, pipes: Pipes) -> bool {
        if self.direct == Direct::Undecided {
            let is_bare = !self.stream.is_secure() && !self.stream.has_ahead();
            let granted = self.remaining() >= WORTH_MOVING && is_bare && !self.has_output();
            if !granted {
                return false;
            }
            let output = self.queue.front_mut().and_then(Transfer::direct);
            self.direct = output
                .and_then(direct::way)
                .filter(|way| *way == Way::Through || pipes == Pipes::Awaited)
                .map_or(Direct::Copied, Direct::Moved);
        }
        matches!(self.direct, Direct::Moved(_))
    }

    /// Waits until there is something to do for the body under way; for a driver that waits in no receive.
    ///
    /// # Errors
    /// Those of `poll(2)`.
    pub fn wait(&mut self, deadline: Option<Instant>) -> io::Result<Waited> {
        let sends = self.has_output();
        let socket = self.stream.as_fd();
        let pipe = match self.queue.front_mut() {
            Some(transfer) if self.direct == Direct::Moved(Way::Pipe) => {
                if !transfer.direct().map_or(Ok(true), direct::has_room)? {
                    transfer.is_held_up(true, Instant::now());
                    if !transfer.direct().map_or(Ok(true), |pipe| direct::wait_for_room(pipe, deadline))? {
                        return Ok(Waited::Late);
                    }
                    transfer.is_held_up(false, Instant::now());
                }
                transfer.direct()
            }
            _ => None,
        };
        let began = Instant::now();
        let quiet = self.bulk.quiet_at().map(|at| at.saturating_duration_since(began));
        let waited = direct::wait(socket, sends, pipe, quiet, deadline);
        self.waited += began.elapsed();
        waited
    }

    /// How long [`Link::wait`] has waited for the server.
    #[must_use]
    pub fn waited(&self) -> Duration {
        self.waited
    }

    /// Moves once what has come of the body under way to its sink. There may be more whatever it answers, but for
    /// [`Progress::WouldBlock`], which can also mean that the sink's pipe is full.
    pub fn move_body(
        &mut self,
        mover: &mut Mover,
        now: Instant,
        waker: Waker<'_>,
        finished: &mut Finished,
    ) -> Progress {
        let remaining = self.remaining();
        let (Direct::Moved(way), Some(transfer)) = (self.direct, self.queue.front_mut()) else {
            return Progress::More;
        };
        let credit = match transfer.credit(now, waker.wake, waker.token) {
            Credit::Bytes(credit) => credit,
            stopped => return self.stop(stopped, now, finished),
        };
        let Some(output) = transfer.direct() else {
            self.direct = Direct::Copied;
            return Progress::More;
        };
        let step = mover.step(self.stream.as_fd(), output, way, remaining.min(credit));
        let outcome = transfer.on_moved(step.moved);
        if self.advance(step.moved, now, finished) {
            self.pace(step.moved, now);
            return if self.closing { self.close(now, finished) } else { Progress::More };
        }
        self.pace(step.moved, now);
        match (outcome, step.stop) {
            (Err(error), _) => self.break_off(error, now, finished),
            (Ok(()), None) => Progress::More,
            (Ok(()), Some(Stop::WouldBlock)) => Progress::WouldBlock,
            (Ok(()), Some(Stop::Refused)) => {
                self.direct = Direct::Copied;
                Progress::More
            }
            (Ok(()), Some(Stop::Socket(error))) => self.broke(error, now, finished),
            (Ok(()), Some(Stop::Output(error))) => {
                let Some(transfer) = self.queue.front() else { return self.close(now, finished) };
                self.break_off(transfer.cannot_write(error), now, finished)
            }
        }
    }

    /// So many bytes came: sees to it that a bulk body wakes us seldom, and any other at once.
    fn pace(&mut self, bytes: u64, now: Instant) {
        if self.queue.front().is_some_and(Transfer::is_paced) {
            return;
        }
        if let Some(mark) = self.bulk.came(bytes, self.remaining(), now) {
            self.set_mark(mark);
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

    /// A bulk body has slowed down: from now on every byte wakes us.
    pub fn hurry(&mut self) {
        if let Some(mark) = self.bulk.quiet() {
            self.set_mark(mark);
        }
    }

    /// Passes received bytes through TLS and the machine.
    fn take(&mut self, buffer: &mut Buffer, filled: usize, now: Instant, finished: &mut Finished) -> Result<()> {
        let mut at = 0;
        let mut gathered = Gathered::default();
        loop {
            let opened = self.stream.open(buffer, &mut at, filled);
            if let Ok((Some(range), _)) = &opened
                && self.stream.is_secure()
                && self.tail.is_empty()
                && gathered.add(range, self.remaining())
            {
                continue;
            }
            self.deliver(buffer, &mut gathered, now, finished)?;
            if self.closing {
                return Ok(());
            }
            let (range, ended) = opened?;
            if let Some(range) = range {
                let last = at == filled;
                if self.tail.is_empty() {
                    let left = self.step(Input::Buffer(buffer, last), range.start, range.end, now, finished)?;
                    if left < range.end && !self.closing {
                        self.tail.extend_from_slice(&buffer[left..range.end]);
                    }
                } else {
                    let mut joined = std::mem::take(&mut self.tail);
                    joined.extend_from_slice(&buffer[range]);
                    let end = joined.len();
                    let left = self.step(Input::Memory(&mut joined), 0, end, now, finished)?;
                    if !self.closing {
                        joined.drain(..left);
                        self.tail = joined;
                    }
                }
            } else if ended {
                self.end(true, now, finished);
                return Ok(());
            } else {
                return Ok(());
            }
            if self.closing {
                return Ok(());
            }
        }
    }

    /// Passes on what was gathered of the body under way.
    fn deliver(&mut self, buffer: &[u8], gathered: &mut Gathered, now: Instant, finished: &mut Finished) -> Result<()> {
        let Gathered { ranges, count, bytes } = std::mem::take(gathered);
        if let Some(transfer) = self.queue.front_mut().filter(|_| count > 0) {
            let mut pieces = [IoSlice::new(&[]); GATHERED];
            for (piece, &(start, end)) in pieces.iter_mut().zip(&ranges[..count]) {
                *piece = IoSlice::new(&buffer[start..end]);
            }
            transfer.on_pieces(&mut pieces[..count])?;
            self.advance(bytes, now, finished);
        }
        Ok(())
    }

    /// So many bytes of the body under way went past the machine. `true` when that was all.
    fn advance(&mut self, bytes: u64, now: Instant, finished: &mut Finished) -> bool {
        let Some(Event::Complete { reuse, .. }) = self.conn.advance_body(bytes) else { return false };
        self.closing |= reuse.is_err();
        self.served += 1;
        self.finish_front(now, finished);
        true
    }

    /// Steps the machine over `input[at..end]`; answers how far it got.
    fn step(
        &mut self,
        mut input: Input<'_>,
        mut at: usize,
        end: usize,
        now: Instant,
        finished: &mut Finished,
    ) -> Result<usize> {
        let time = clock::time(now);
        loop {
            let step = self.conn.step(time, &mut input.bytes()[at..end]).map_err(|error| {
                self.violated |= is_violation(error);
                from_machine(error)
            })?;
            let base = at;
            at += step.consumed;
            let Some(transfer) = self.queue.front_mut() else {
                // Nothing is outstanding, so all that can be said is that nothing came.
                return Ok(at);
            };
            match step.event {
                Event::NeedInput => return Ok(at),
                Event::Interim { head, .. } => {
                    transfer.facts.head_bytes += head.raw().len() as u64;
                    // It may have let the content go. A failure is found by the next receive.
                    let _ = self.pump();
                }
                Event::Head { head, framing, .. } => {
                    transfer.on_head(head, framing, now);
                    if transfer.is_cut_short(framing) {
                        self.closing = true;
                        self.finish_front(now, finished);
                        return Ok(at);
                    }
                }
                Event::Body { range, .. } => {
                    let range = base + range.start..base + range.end;
                    transfer.on_body(input.lease(range, at == end))?;
                    if transfer.is_cut_short(BodyFraming::Chunked) {
                        self.closing = true;
                        self.finish_front(now, finished);
                        return Ok(at);
                    }
                }
                Event::Complete { reuse, .. } => {
                    self.closing |= reuse.is_err();
                    self.served += 1;
                    self.finish_front(now, finished);
                    if self.closing {
                        return Ok(at);
                    }
                }
                Event::Tunnel { .. } => {
                    return Err(Error::new(ErrorKind::Protocol, "the server switched protocols"));
                }
            }
        }
    }

    fn finish_front(&mut self, now: Instant, finished: &mut Finished) {
        self.direct = Direct::Undecided;
        if let Some(mut transfer) = self.queue.pop_front() {
            let after = transfer.on_complete(now);
            finished.push((transfer, after));
        }
    }

    /// The peer has ended the stream; `clean` when TLS said so.
    fn end(&mut self, clean: bool, now: Instant, finished: &mut Finished) -> Progress {
        if self.queue.is_empty() {
            return self.close(now, finished);
        }
        match self.conn.end_of_input(clean || !self.stream.is_secure()) {
            Ok(Event::Complete { .. }) => {
                self.finish_front(now, finished);
                self.close(now, finished)
            }
            Ok(_) => self.close(now, finished),
            Err(error) => self.break_off(from_machine(error), now, finished),
        }
    }

    /// The connection cannot go on: the transfer at the front fails with `error`, the others with it.
    pub fn break_off(&mut self, error: Error, now: Instant, finished: &mut Finished) -> Progress {
        if let Some(mut transfer) = self.queue.pop_front() {
            let broke = match (self.conn.response_started(), self.served) {
                _ if self.violated => Broke::ByProtocol,
                (true, _) => Broke::InResponse,
                (false, 0) => Broke::BeforeResponse,
                (false, _) => Broke::WhileStale,
            };
            self.misbehaved |= transfer.is_pipelined && self.has_broken_its_word();
            let after = transfer.on_failure(error, broke, now);
            finished.push((transfer, after));
        }
        self.close(now, finished)
    }

    /// Whether the peer ended the connection, and not in a way that may be expected.
    fn has_broken_its_word(&self) -> bool {
        match self.conn.close_reason() {
            Some(CloseReason::PeerClosed | CloseReason::Broken | CloseReason::UnsolicitedBytes) => true,
            Some(_) => self.served < 2,
            None => self.reset,
        }
    }

    /// Gives back the transfers that were not answered: their requests may be sent again where that is safe
    /// (RFC 9112 section 9.3.2).
    fn close(&mut self, now: Instant, finished: &mut Finished) -> Progress {
        self.closing = true;
        self.misbehaved |= !self.queue.is_empty() && self.has_broken_its_word();
        for mut transfer in self.queue.drain(..) {
            let after = if is_idempotent(transfer.method()) {
                After::Again(Duration::ZERO)
            } else {
                let error = Error::new(ErrorKind::EmptyReply, "the connection closed before the response");
                transfer.on_failure(error, Broke::BeforeResponse, now)
            };
            finished.push((transfer, after));
        }
        Progress::Closed
    }

    /// When [`Link::expire`] is to be called though nothing happened.
    #[must_use]
    pub fn look_at(&self) -> Option<Instant> {
        let look = self.queue.front().and_then(Transfer::look_at);
        let held = self.held_until.filter(|_| self.conn.poll_timeout().is_some());
        let failed = self.upload_failed.as_ref().map(|(since, _)| *since);
        [self.deadline(), look, held, failed].into_iter().flatten().min()
    }

    /// Ends what took too long or is too slow.
    pub fn expire(&mut self, now: Instant, finished: &mut Finished) -> Progress {
        let overdue = if let Some((_, error)) = self.upload_failed.take() {
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

    /// Nobody waits any more for the transfer with this tag, so it fails. The connection goes with it: the rest of a
    /// response cannot be refused (RFC 9112 section 9.6).
    pub fn abandon(&mut self, tag: u64, error: Error, now: Instant, finished: &mut Finished) -> Progress {
        if self.queue.front().is_some_and(|transfer| transfer.tag == tag) {
            return self.break_off(error, now, finished);
        }
        Progress::More
    }

    /// The transfer under way, for who is to decide whether more connections would help.
    pub(crate) fn front(&self) -> Option<&Transfer> {
        self.queue.front()
    }

    /// The same, to be told so.
    pub(crate) fn front_mut(&mut self) -> Option<&mut Transfer> {
        self.queue.front_mut()
    }
}

/// How many records are passed on at once: more than a read buffer holds of full ones.
const GATHERED: usize = 16;

/// Places in a read buffer that hold a body's bytes, one behind the other: the contents of TLS records. They lie apart, for
/// each was opened in place; but one call can write them.
#[derive(Default)]
struct Gathered {
    ranges: [(usize, usize); GATHERED],
    count: usize,
    bytes: u64,
}

impl Gathered {
    /// Adds one, if the body has `remaining` bytes with those that were added before. `false` when it does not belong to
    /// them, or there is no room.
    fn add(&mut self, range: &std::ops::Range<usize>, remaining: u64) -> bool {
        let bytes = self.bytes + range.len() as u64;
        let fits = self.count < GATHERED && bytes <= remaining;
        if fits {
            self.ranges[self.count] = (range.start, range.end);
            self.count += 1;
            self.bytes = bytes;
        }
        fits
    }
}

impl Machine for Conn {
    fn take(
        &mut self,
        now: haul_proto::time::Time,
        _scheme: &'static str,
        request: &h1::Request<'_>,
    ) -> Result<h1::RequestId, Box<dyn std::error::Error + Send + Sync>> {
        Ok(self.enqueue(now, request)?)
    }
}

/// Where the bytes lie that the machine steps over.
enum Input<'a> {
    /// In a read buffer; the flag says that nothing behind them is still needed.
    Buffer(&'a mut Buffer, bool),
    /// In memory of our own.
    Memory(&'a mut Vec<u8>),
}

impl Input<'_> {
    fn bytes(&mut self) -> &mut [u8] {
        match self {
            Self::Buffer(buffer, _) => buffer,
            Self::Memory(bytes) => bytes,
        }
    }

    fn lease(&mut self, range: std::ops::Range<usize>, last: bool) -> Lease<'_> {
        match self {
            Self::Buffer(buffer, whole) => {
                if *whole && last {
                    Lease::new(buffer, range)
                } else {
                    Lease::borrowed(&buffer[range])
                }
            }
            Self::Memory(bytes) => Lease::borrowed(&bytes[range]),
        }
    }
}

/// Whether the peer is to blame: it sent what no peer may. Bytes that nobody asked for are mostly a goodbye that crossed
/// the request (a 408 on an idle connection), so these are not.
fn is_violation(error: h1::Error) -> bool {
    !error.is_early_end() && !matches!(error, h1::Error::UnsolicitedBytes | h1::Error::Closed(_))
}

/// The kind, and so the exit code, of what the machine objects to.
fn from_machine(error: h1::Error) -> Error {
    let kind = match error {
        h1::Error::EndedIdle | h1::Error::EndedBeforeResponse => ErrorKind::EmptyReply,
        h1::Error::EndedInBody { .. } | h1::Error::EndedInChunks { .. } => ErrorKind::PartialBody,
        h1::Error::NotHttp | h1::Error::UnsupportedVersion { .. } => ErrorKind::UnsupportedScheme,
        h1::Error::StatusLine | h1::Error::Field(_) | h1::Error::ContentLength(_) | h1::Error::UnexpectedUpgrade => {
            ErrorKind::Protocol
        }
        h1::Error::TransferCoding(_) => ErrorKind::ContentCoding,
        _ => ErrorKind::Receive,
    };
    Error::new(kind, error.to_string())
}
