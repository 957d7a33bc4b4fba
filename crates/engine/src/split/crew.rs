//! Coordination of the parts of one body: the range of each part, the bytes received, and the
//! choice whether another connection would help.
//!
//! The first stream keeps its transfer, and with it the sink, until it reaches the first part. From
//! then on, the crew holds the transfer, and bytes go out through it in order. A part is tried
//! once: any other part may fetch what it did not bring, from the exact byte. When that happens too
//! often, the crew gives up, and the transfer continues alone, with all of its retries.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::time::{Duration, Instant};

use haul_policy::queue::HostId;
use haul_policy::range::spans::Spans;
use haul_policy::range::split::Splitter;
use haul_policy::range::window::{ClaimedPart, Order, Window};

use super::After;
use super::sinks::{FilePart, WindowPart};
use crate::body::path::BodyPath;
use crate::clock;
use crate::drive::inbox::Inbox;
use crate::drive::worker::{Another, Supply};
use crate::sink::partial::PartialFile;
use crate::sink::{Counter, Sink};
use crate::sync::IgnorePoison;
use crate::transfer::{Cut, Splittable, Transfer, Watch};
use crate::{Error, ErrorKind, Result, Version};

/// The smallest parts, at the end, take a connection so long: by so much some end later than others.
const LEAST_TIME: Duration = Duration::from_millis(25);
/// But at least this many bytes, since each is a request.
const LEAST: std::ops::RangeInclusive<u64> = (64 << 10)..=(256 << 10);
/// Parts of a file are about a second of a connection's time, within these bounds.
const FILE_PART: std::ops::RangeInclusive<u64> = (1 << 20)..=(16 << 20);
/// The smallest part for a pipe, where a small memory allows no more.
const LEAST_FOR_PIPE: u64 = 64 << 10;
/// The number of parts that may fail in a row before the crew gives up. A failure is forgotten once
/// as many bytes as `GOT_ON` have arrived since.
const MOST_FAILURES: u32 = 6;
const GOT_ON: u64 = 64 << 10;
/// The time without any byte after which the crew gives up: a single stream does not depend on
/// whatever the parts wait for.
const SILENCE: Duration = Duration::from_secs(10);
/// The time by which a part may take longer to arrive than the first response took.
const SLACK: Duration = Duration::from_millis(20);
/// The pause after a failure. It doubles with each further one.
const PAUSE: Duration = Duration::from_millis(50);

/// Several connections at one body.
pub(super) struct Crew {
    body: Splittable,
    cut: Arc<Cut>,
    file: Option<Arc<PartialFile>>,
    counter: Option<Arc<dyn Counter>>,
    this: Weak<Crew>,
    state: Mutex<State>,
}

struct State {
    window: Window,
    splitter: Splitter,
    watch: Watch,
    memory: u64,
    /// The time to the first response, including the time to connect.
    set_up: Duration,
    /// The first transfer, once its own response is over.
    first: Option<Box<Transfer>>,
    first_id: usize,
    first_at: u64,
    /// The transfer that parts are modelled on.
    model: Box<Transfer>,
    first_line: FirstLine,
    parts: HashMap<usize, Member>,
    /// Bytes of parts that are over and whose turn has not come, by their place.
    waiting: Vec<(u64, Vec<u8>)>,
    /// Bytes that came, of all and of parts alone.
    received: u64,
    of_parts: u64,
    is_proved: bool,
    /// The crew makes no further parts: the first stream continues alone.
    is_off: bool,
    failures: u32,
    came_since: u64,
    not_before: Option<Instant>,
    last_came: Instant,
    /// Most connections that there were at once.
    most: usize,
    ordinal: usize,
    end: Option<After>,
}

/// The state of the first stream's connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FirstLine {
    /// Parts use it as any other, once it is idle.
    Alike,
    /// HTTP/2 was offered on it and is not to parts, which are to have connections of their own; when its first stream has
    /// ended it takes one part at a time.
    Apart {
        /// The part that uses the connection.
        user: Option<usize>,
    },
    /// The connection is closed.
    Gone,
}

impl FirstLine {
    /// Returns 1 if the first stream's connection is counted separately from the parts'
    /// connections, else 0.
    fn apart(self) -> usize {
        usize::from(matches!(self, Self::Apart { .. }))
    }
}

/// A part under way.
struct Member {
    at: u64,
    end: u64,
    has_begun: bool,
    /// The bytes of the part that arrived before their turn.
    bytes: Vec<u8>,
}

impl Crew {
    /// Makes a crew for a transfer whose body is under way.
    pub(super) fn new(first: &mut Transfer, splitter: Splitter, body: Splittable, memory: u64) -> Arc<Self> {
        let file = first.partial_file();
        let (order, done) = match &file {
            Some(file) => (Order::Anywhere, file.done()),
            None => (Order::InOrder { ahead: memory }, Spans::new()),
        };
        let counter = first.counter();
        let cut = Cut::none();
        let watch = first.begin_split(&cut, Instant::now());
        let mut window = Window::new(body.total, done, order);
        let first_id = window.first(first.position());
        let model = first.part(&body, 0..0, BodyPath::new(Box::new(Nowhere)), 0, 0, Instant::now());
        let state = State {
            window,
            splitter,
            watch,
            memory,
            set_up: first.facts.first_byte.saturating_sub(first.facts.resolved),
            first: None,
            first_id,
            first_at: first.position(),
            first_line: if model.offers_http2() { FirstLine::Apart { user: None } } else { FirstLine::Alike },
            model,
            parts: HashMap::new(),
            waiting: Vec::new(),
            received: 0,
            of_parts: 0,
            is_proved: false,
            is_off: false,
            failures: 0,
            came_since: 0,
            not_before: None,
            last_came: Instant::now(),
            most: 1,
            ordinal: 0,
            end: None,
        };
        Arc::new_cyclic(|this| Self { body, cut, file, counter, this: this.clone(), state: Mutex::new(state) })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().ignore_poison()
    }

    /// A part's response has begun, and is as it should be.
    pub(super) fn began(&self, id: usize) {
        let mut state = self.state();
        if let Some(part) = state.parts.get_mut(&id) {
            part.has_begun = true;
        }
        if !state.is_proved {
            state.is_proved = true;
            state.splitter.on_first_part(clock::policy_time(Instant::now()));
            self.cut.settle();
        }
    }

    /// Bytes of a part whose turn may not have come.
    pub(super) fn takes(&self, id: usize, bytes: &[u8]) -> Result<()> {
        let mut state = self.state();
        let state = &mut *state;
        let Some(part) = state.parts.get_mut(&id) else { return Ok(()) };
        let at = part.at;
        part.at += bytes.len() as u64;
        match &mut state.first {
            // The first stream may have brought some of it, before the part had begun.
            Some(first) if part.bytes.is_empty() && first.position() >= at => {
                let there = bytes.len().min((first.position() - at) as usize);
                first.push(&bytes[there..])?;
            }
            _ => {
                if part.bytes.capacity() == 0 {
                    part.bytes.reserve_exact((part.end - at) as usize);
                }
                part.bytes.extend_from_slice(bytes);
            }
        }
        state.came(id, bytes.len() as u64);
        Ok(())
    }

    /// Bytes of a part that are in the file.
    pub(super) fn wrote(&self, id: usize, bytes: u64) {
        let mut state = self.state();
        if let Some(part) = state.parts.get_mut(&id) {
            part.at += bytes;
        }
        state.came(id, bytes);
        if let Some(counter) = &self.counter {
            counter.count(bytes);
        }
    }

    /// Ends the crew. Returns the transfer and its next step.
    ///
    /// # Panics
    /// If the first stream is still at work.
    pub(super) fn disband(&self, outcome: Result<()>) -> (Box<Transfer>, After) {
        let mut state = self.state();
        let end = match (state.end.take(), outcome) {
            (Some(end), _) => end,
            (None, Err(error)) => After::Done(Err(error)),
            (None, Ok(())) => After::Alone,
        };
        let mut first = state.first.take().expect("a worker gives back the parts that it has");
        // Into a file parts are written by themselves; else all bytes have passed the first.
        let bytes = if self.file.is_some() { state.of_parts } else { 0 };
        first.adds(&state.model.facts, bytes);
        if matches!(end, After::Alone) {
            first.end_split();
        }
        (first, end)
    }

    /// A part for another connection, if there should be one.
    fn next_part(&self, state: &mut State, now: Instant) -> Option<Box<Transfer>> {
        self.follow_first(state);
        if state.end.is_some() || state.is_off || state.not_before.is_some_and(|at| at > now) {
            return None;
        }
        let alive = usize::from(state.first.is_none());
        let delivering = alive + state.parts.values().filter(|part| part.has_begun).count();
        let wanted = state.splitter.wanted(clock::policy_time(now), state.received, delivering);
        if wanted < 2 && state.is_proved {
            // No gain: one stream does as well, by the direct path.
            if state.first.is_some() && state.parts.is_empty() {
                state.end = Some(After::Alone);
            }
            return None;
        }
        // With the last connection open, the next request goes out before the answer to the last has come.
        // (The first line takes one at a time.)
        let lines = wanted - state.first_line.apart();
        let ahead = if state.splitter.is_settled() && wanted >= state.most { lines } else { 0 };
        if alive + state.parts.len() >= wanted + ahead {
            return None;
        }
        let size = self.part_size(state);
        if !state.is_proved && self.file.is_none() {
            // Where the first part begins: further than the first stream gets before it is there.
            let lead = bytes_in(state.splitter.rate(), state.set_up * 3 / 2 + SLACK);
            let lead = lead.min(state.memory / 2).max(LEAST_FOR_PIPE);
            state.window.cut(state.first_id, state.window.first_missing().saturating_add(lead));
        }
        let part = state.window.claim(size, least_part(state).min(size))?;
        let sink = self.sink_for(state, &part)?;
        if state.first.is_none()
            && let Some(end) = state.window.end_of(state.first_id)
        {
            self.cut.set(end);
        }
        state.most = state.most.max((alive + state.parts.len() + 1).min(wanted));
        state.ordinal += 1;
        let transfer =
            state.model.part(&self.body, part.span.clone(), BodyPath::new(sink), part.id, state.ordinal, now);
        let transfer = match &mut state.first_line {
            FirstLine::Apart { user: user @ None } if state.first.is_some() => {
                *user = Some(part.id);
                transfer
            }
            _ => transfer.by_itself(),
        };
        let member = Member { at: part.span.start, end: part.span.end, has_begun: false, bytes: Vec::new() };
        state.parts.insert(part.id, member);
        Some(transfer)
    }

    /// Notes how far the first stream is.
    fn follow_first(&self, state: &mut State) {
        let position = self.cut.position();
        if state.first.is_none() && position > state.first_at {
            state.last_came = Instant::now();
            state.received += position - state.first_at;
            state.came_since += position - state.first_at;
            state.first_at = position;
            state.window.received(state.first_id, position);
            if self.file.is_none() {
                state.window.emitted(position);
            }
        }
    }

    /// Small enough that all connections end together, large enough that requests do not show.
    fn part_size(&self, state: &State) -> u64 {
        let most = state.model.options().split.connections as u64;
        let share = (state.window.to_share() / (2 * most)).max(least_part(state));
        match &self.file {
            Some(_) => state.splitter.rate().clamp(*FILE_PART.start(), *FILE_PART.end()).min(share),
            None => (state.memory / (2 * most + 2)).max(LEAST_FOR_PIPE).min(share),
        }
    }

    fn sink_for(&self, state: &mut State, part: &ClaimedPart) -> Option<Box<dyn Sink>> {
        let crew = self.this.upgrade()?;
        let Some(file) = &self.file else { return Some(Box::new(WindowPart { crew, id: part.id })) };
        match file.writer(part.span.clone()) {
            Ok(writer) => Some(Box::new(FilePart { crew, id: part.id, writer })),
            Err(_) => {
                // Nothing is lost without the part: the active parts continue.
                state.window.release(part.id);
                state.failed(Instant::now());
                None
            }
        }
    }

    /// Handles the end of the first stream, or its stop where a part begins.
    fn first_is_back(&self, state: &mut State, first: Box<Transfer>, result: Result<()>) {
        self.follow_first(state);
        state.window.release(state.first_id);
        // An answer by HTTP/1.1 that is not read to its end takes its connection along.
        let is_open = result.is_ok() && first.facts.version == Some(Version::Http2);
        if state.first_line != FirstLine::Alike && !is_open {
            state.first_line = FirstLine::Gone;
        }
        state.first = Some(first);
        if let Err(error) = result {
            self.hear_failure(state, error);
        }
    }

    fn hear_failure(&self, state: &mut State, error: Error) {
        if state.end.is_some() {
            return;
        }
        let now = Instant::now();
        let is_late = error.is_timeout() && state.model.deadline().is_some_and(|at| at <= now);
        match error.kind() {
            ErrorKind::Write | ErrorKind::TooLarge | ErrorKind::Interrupted | ErrorKind::Setup => {
                state.end = Some(After::Done(Err(error)));
            }
            _ if is_late => state.end = Some(After::Done(Err(error))),
            _ if !state.is_proved => {
                // No part has arrived yet: as if none had been requested.
                state.is_off = true;
                state.window.extend(state.first_id);
                self.cut.set(u64::MAX);
            }
            // The remaining stream finds out whether the server can still be reached.
            ErrorKind::Changed => state.end = Some(After::Alone),
            kind => {
                let is_refusal = matches!(
                    kind,
                    ErrorKind::Status | ErrorKind::Connect | ErrorKind::EmptyReply | ErrorKind::TlsHandshake
                );
                let at_work = state.parts.values().filter(|part| part.has_begun).count();
                if is_refusal && at_work > 0 {
                    state.splitter.refused(at_work + 1);
                }
                state.failed(now);
                // The address may be good for a few requests: one stream asks the caller's URL for another.
                let is_stale = at_work == 0 && matches!(error.status(), Some(401 | 403 | 404 | 410));
                if is_stale || state.failures >= MOST_FAILURES {
                    state.end = Some(After::Alone);
                }
            }
        }
    }

    /// Passes on the bytes whose turn has come, and checks whether the body is complete.
    fn drain(&self, state: &mut State) {
        if self.file.is_none()
            && state.end.is_none()
            && let Err(error) = state.emit()
        {
            state.end = Some(After::Done(Err(error)));
        }
        let is_back = state.first.is_some();
        if state.end.is_none() && is_back && state.window.missing() == 0 {
            let finished = state.first.as_mut().map_or(Ok(()), |first| first.finish());
            state.end = Some(After::Done(finished));
        }
        if state.end.is_none() && is_back && state.is_off && state.parts.is_empty() {
            state.end = Some(After::Alone);
        }
    }
}

impl State {
    fn came(&mut self, id: usize, bytes: u64) {
        self.received += bytes;
        self.of_parts += bytes;
        self.last_came = Instant::now();
        self.came_since += bytes;
        if self.came_since >= GOT_ON {
            self.failures = 0;
        }
        if let Some(part) = self.parts.get(&id) {
            self.window.received(id, part.at);
        }
    }

    fn failed(&mut self, now: Instant) {
        self.came_since = 0;
        self.not_before = now.checked_add(PAUSE * 2_u32.saturating_pow(self.failures.min(10)));
        self.failures += 1;
    }

    /// Bytes go out, in order: of parts that are over, and of the one whose turn it is.
    fn emit(&mut self) -> Result<()> {
        let Some(first) = &mut self.first else { return Ok(()) };
        loop {
            let at = first.position();
            let over = self.waiting.iter().position(|(place, _)| *place <= at);
            let (place, bytes) = match over {
                Some(index) => self.waiting.swap_remove(index),
                None => {
                    let has_turn = |part: &&mut Member| !part.bytes.is_empty() && part.held_from() <= at;
                    let Some(part) = self.parts.values_mut().find(has_turn) else { break };
                    (part.held_from(), std::mem::take(&mut part.bytes))
                }
            };
            // The first stream may have brought some of it, before the part had begun.
            let there = bytes.len().min((at - place) as usize);
            first.push(&bytes[there..])?;
        }
        self.window.emitted(first.position());
        Ok(())
    }
}

impl Member {
    /// The place of the first byte that waits for its turn.
    fn held_from(&self) -> u64 {
        self.at - self.bytes.len() as u64
    }
}

impl Supply for Crew {
    fn next(&self, _worker: usize, now: Instant) -> Option<Box<Transfer>> {
        let mut state = self.state();
        self.drain(&mut state);
        self.next_part(&mut state, now)
    }

    fn another(&self, _worker: usize, _slot: HostId, _now: Instant) -> Another {
        Another::Nothing
    }

    fn finished(&self, _worker: usize, transfer: Box<Transfer>, result: Result<()>) {
        let mut guard = self.state();
        let state = &mut *guard;
        match transfer.part_id() {
            None => self.first_is_back(state, transfer, result),
            Some(id) => {
                state.model.adds(&transfer.facts, 0);
                state.window.release(id);
                if state.first_line == (FirstLine::Apart { user: Some(id) }) {
                    state.first_line = if result.is_ok() { FirstLine::Apart { user: None } } else { FirstLine::Gone };
                }
                if let Some(part) = state.parts.remove(&id)
                    && !part.bytes.is_empty()
                {
                    state.waiting.push((part.held_from(), part.bytes));
                }
                if let Err(error) = result {
                    self.hear_failure(state, error);
                }
            }
        }
        self.drain(state);
    }

    fn fewer(&self) {
        let mut state = self.state();
        let connections = state.parts.len() + 1;
        state.splitter.refused(connections);
    }

    fn wakes_at(&self, now: Instant) -> Option<Instant> {
        let mut state = self.state();
        let bytes = state.received;
        if let Some(error) = state.watch.look(bytes, now) {
            state.end.get_or_insert(After::Done(Err(error)));
            return Some(now);
        }
        let silent_at = clock::after(state.last_came, SILENCE);
        if silent_at <= now {
            state.end.get_or_insert(After::Alone);
            return Some(now);
        }
        let look = state.splitter.next_timeout().map(clock::instant);
        let pause = state.not_before.filter(|&at| at > now);
        [look, pause, state.watch.look_at(), Some(silent_at)].into_iter().flatten().min()
    }

    fn is_over(&self) -> bool {
        self.state().end.is_some()
    }

    fn end(&self, error: Error) {
        self.state().end.get_or_insert(After::Done(Err(error)));
    }

    fn joined(&self, _inbox: &Arc<Inbox>) {}

    fn connections(&self) -> Option<usize> {
        let state = self.state();
        Some(state.most.saturating_sub(state.first_line.apart()).max(1))
    }
}

/// Returns the smallest size of a part.
fn least_part(state: &State) -> u64 {
    bytes_in(state.splitter.rate(), LEAST_TIME).clamp(*LEAST.start(), *LEAST.end())
}

fn bytes_in(rate: u64, time: Duration) -> u64 {
    u64::try_from(u128::from(rate) * time.as_micros() / 1_000_000).unwrap_or(u64::MAX)
}

/// The sink of the model transfer, which is never written to.
struct Nowhere;

impl Sink for Nowhere {
    fn bytes(&mut self, _lease: crate::buffer::Lease<'_>) -> Result<()> {
        Ok(())
    }

    fn restart(&mut self) -> bool {
        false
    }
}
