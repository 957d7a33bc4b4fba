//! State of a split download that its [`Coordinator`](super::coordinator::Coordinator) guards by
//! one lock.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use haul_policy::range::part_window::PartWindow;
use haul_policy::range::split_planner::SplitPlanner;

use super::SplitOutcome;
use crate::Result;
use crate::transfer::{SplitSpeedCheck, Transfer};

/// The number of bytes after whose arrival earlier failures are forgotten.
const FORGIVEN_AFTER: u64 = 64 << 10;
/// The pause after a failure. It doubles with each further one.
const FIRST_PAUSE: Duration = Duration::from_millis(50);

/// The ranges, streams and decisions of one split download.
pub(super) struct CoordinatorState {
    /// The range of each stream, and the ranges that are still missing.
    pub(super) window: PartWindow,
    pub(super) splitter: SplitPlanner,
    pub(super) speed: SplitSpeedCheck,
    pub(super) first: FirstStream,
    /// The transfer that parts are modelled on.
    pub(super) template: Box<Transfer>,
    pub(super) parts: HashMap<usize, PartInFlight>,
    /// The positions and bytes of finished parts whose turn has not come.
    pub(super) buffered: Vec<(u64, Vec<u8>)>,
    pub(super) received: ReceivedBytes,
    pub(super) failures: PartFailures,
    /// A part's response has begun: the server supports ranges.
    pub(super) is_proved: bool,
    /// No further part is requested: the first stream continues alone.
    pub(super) is_stopped: bool,
    /// The highest number of simultaneous connections so far.
    pub(super) max_connections: usize,
    /// The number of parts requested so far.
    pub(super) requested_parts: usize,
    pub(super) outcome: Option<SplitOutcome>,
}

/// The stream that was under way before the split.
pub(super) struct FirstStream {
    /// The transfer, once its own response is over.
    pub(super) transfer: Option<Box<Transfer>>,
    /// The number of its part in the window.
    pub(super) id: usize,
    /// Its last noted position.
    pub(super) position: u64,
    pub(super) connection: FirstConnection,
}

/// The state of the first stream's connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FirstConnection {
    /// Parts use the connection like any other, once it is idle.
    Shared,
    /// The connection has HTTP/2 on offer, unlike those of parts, which need connections of their
    /// own. When its first stream has ended, it carries one part at a time.
    Separate {
        /// The part that uses the connection.
        user: Option<usize>,
    },
    /// The connection is closed.
    Closed,
}

impl FirstConnection {
    /// Returns 1 if the first stream's connection is counted separately from the parts'
    /// connections, else 0.
    pub(super) fn separate(self) -> usize {
        usize::from(matches!(self, Self::Separate { .. }))
    }
}

/// A part that is being fetched.
pub(super) struct PartInFlight {
    /// The position of the next byte.
    pub(super) at: u64,
    pub(super) end: u64,
    pub(super) has_begun: bool,
    /// The bytes of the part that arrived before their turn.
    pub(super) buffer: Vec<u8>,
}

impl PartInFlight {
    /// Returns the position of the first buffered byte.
    pub(super) fn buffered_from(&self) -> u64 {
        self.at - self.buffer.len() as u64
    }
}

/// The number of bytes received, and the time of the last ones.
pub(super) struct ReceivedBytes {
    pub(super) total: u64,
    /// The bytes of parts, without those of the first stream.
    pub(super) by_parts: u64,
    pub(super) last_at: Instant,
}

impl ReceivedBytes {
    pub(super) fn new(now: Instant) -> Self {
        Self { total: 0, by_parts: 0, last_at: now }
    }
}

/// Failures of parts in a row, and the pause that follows them.
#[derive(Default)]
pub(super) struct PartFailures {
    pub(super) count: u32,
    /// Bytes received since the last failure.
    received_since: u64,
    /// The time before which no part is requested.
    pub(super) paused_until: Option<Instant>,
}

impl PartFailures {
    /// Counts a failure.
    pub(super) fn add(&mut self, now: Instant) {
        self.received_since = 0;
        self.paused_until = now.checked_add(FIRST_PAUSE * 2_u32.saturating_pow(self.count.min(10)));
        self.count += 1;
    }
}

impl CoordinatorState {
    /// Notes the position of the first stream. Returns true if the stream has advanced.
    pub(super) fn on_first_position(&mut self, position: u64) -> bool {
        if self.first.transfer.is_some() || position <= self.first.position {
            return false;
        }
        let bytes = position - self.first.position;
        self.received.last_at = Instant::now();
        self.received.total += bytes;
        self.failures.received_since += bytes;
        self.first.position = position;
        self.window.received(self.first.id, position);
        true
    }

    /// Notes that `bytes` of a part were received.
    pub(super) fn on_part_bytes(&mut self, id: usize, bytes: u64) {
        self.received.total += bytes;
        self.received.by_parts += bytes;
        self.received.last_at = Instant::now();
        self.failures.received_since += bytes;
        if self.failures.received_since >= FORGIVEN_AFTER {
            self.failures.count = 0;
        }
        if let Some(part) = self.parts.get(&id) {
            self.window.received(id, part.at);
        }
    }

    /// Returns the number of parts whose response has begun.
    pub(super) fn delivering_parts(&self) -> usize {
        self.parts.values().filter(|part| part.has_begun).count()
    }

    /// Delivers the buffered bytes whose turn has come: of finished parts, and of the part at the
    /// output's position.
    pub(super) fn emit(&mut self) -> Result<()> {
        let Some(first) = &mut self.first.transfer else { return Ok(()) };
        loop {
            let at = first.position();
            let finished = self.buffered.iter().position(|(position, _)| *position <= at);
            let (position, bytes) = match finished {
                Some(index) => self.buffered.swap_remove(index),
                None => {
                    let has_turn = |part: &&mut PartInFlight| !part.buffer.is_empty() && part.buffered_from() <= at;
                    let Some(part) = self.parts.values_mut().find(has_turn) else { break };
                    (part.buffered_from(), std::mem::take(&mut part.buffer))
                }
            };
            // The first stream may have brought some of it, before the part had begun.
            let present = bytes.len().min((at - position) as usize);
            first.push(&bytes[present..])?;
        }
        self.window.emitted(first.position());
        Ok(())
    }
}
