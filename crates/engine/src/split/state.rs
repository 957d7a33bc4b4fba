//! The state of a [`SplitCoordinator`](super::coordinator::SplitCoordinator), protected by one
//! lock.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use haul_policy::range::part_assignment::PartTracker;
use haul_policy::range::split_connection_count::SplitPlanner;

use super::SplitOutcome;
use crate::Result;
use crate::time_conversions;
use crate::transfer::{SplitMinSpeedCheck, Transfer};

/// The number of bytes that must be received after the last failure of a part, over all connections
/// of the split download together, so that the earlier failures no longer count.
const FAILURES_EXPIRE_AFTER: u64 = 64 << 10;
/// The length of the pause after the first failure of a part (a byte range that one connection
/// requests). No further part is requested in the pause, whose length doubles with each further
/// consecutive failure.
const FIRST_PAUSE: Duration = Duration::from_millis(50);

/// The state of a split download: the assignment of ranges, the transfers, the received bytes and
/// the failures.
pub(super) struct SplitState {
    /// The ranges of the body: which of them are assigned to transfers, and which are still
    /// missing.
    pub(super) window: PartTracker,
    pub(super) splitter: SplitPlanner,
    pub(super) speed: SplitMinSpeedCheck,
    pub(super) first: FirstStream,
    /// A transfer that is never sent. Each transfer for a part is a copy of it with another range.
    pub(super) template: Box<Transfer>,
    pub(super) parts: HashMap<usize, PartInFlight>,
    /// The offsets and bytes of finished parts that cannot be delivered in order yet.
    pub(super) buffered: Vec<(u64, Vec<u8>)>,
    pub(super) received: ReceivedTotals,
    pub(super) failures: PartFailures,
    /// True if the response for any part has begun, which proves that the server supports range
    /// requests.
    pub(super) is_proved: bool,
    /// True if no further parts are requested, because parts have failed. The first transfer then
    /// continues alone.
    pub(super) is_stopped: bool,
    /// The largest number of simultaneous connections so far.
    pub(super) max_connections: usize,
    /// The number of parts requested so far.
    pub(super) requested_parts: usize,
    pub(super) outcome: Option<SplitOutcome>,
}

/// The transfer that began the download on one connection, before the split.
pub(super) struct FirstStream {
    /// The first transfer, once it has ended; `None` while it is active.
    pub(super) transfer: Option<Box<Transfer>>,
    /// The ID of the byte range that [`SplitState::window`] assigns to the first transfer.
    pub(super) id: usize,
    /// The offset in the body up to which the first transfer has delivered, when this was last
    /// recorded. The transfer may be further by now.
    pub(super) position: u64,
    pub(super) connection: FirstConnectionUse,
}

/// The use of a split download's first connection, which carried the whole download before the
/// split.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FirstConnectionUse {
    /// The connection has no special use. If it is open when the first transfer has ended, any part
    /// may use it. This is the case for HTTP/3, and if the download does not offer HTTP/2.
    Shared,
    /// The connection was opened with an offer of HTTP/2. The additional connections for parts
    /// offer only HTTP/1.1, because parts on one HTTP/2 connection would share its speed. After the
    /// end of the first transfer, an HTTP/2 connection stays open and carries one part at a time.
    Separate {
        /// The ID of the part that currently uses the connection; `None` if no part uses it.
        user: Option<usize>,
    },
    /// The connection is closed.
    Closed,
}

impl FirstConnectionUse {
    /// Returns 1 if this connection is open in addition to the connections of the parts, otherwise
    /// 0.
    pub(super) fn extra_connections(self) -> usize {
        usize::from(matches!(self, Self::Separate { .. }))
    }
}

/// A part of a split download whose response has not been received completely.
pub(super) struct PartInFlight {
    /// The offset in the body of the next byte that this transfer will receive.
    pub(super) at: u64,
    pub(super) end: u64,
    pub(super) has_begun: bool,
    /// The received bytes of this part that cannot be delivered in order yet, because earlier bytes
    /// of the body are missing.
    pub(super) buffer: Vec<u8>,
}

impl PartInFlight {
    /// Returns the offset in the body of the first byte in `buffer`.
    pub(super) fn buffered_from(&self) -> u64 {
        self.at - self.buffer.len() as u64
    }
}

/// The number of bytes received by all connections, and the time when the last bytes were received.
pub(super) struct ReceivedTotals {
    pub(super) total: u64,
    /// The number of bytes received by parts, without the bytes that the first transfer received.
    pub(super) by_parts: u64,
    pub(super) last_at: Instant,
}

impl ReceivedTotals {
    pub(super) fn new(now: Instant) -> Self {
        Self { total: 0, by_parts: 0, last_at: now }
    }
}

/// The consecutive failures of parts. After each failure, further requests are paused.
#[derive(Default)]
pub(super) struct PartFailures {
    pub(super) count: u32,
    /// The number of bytes that all connections together have received since the last failure.
    received_since: u64,
    /// The time before which no further part is requested; `None` if requests are not paused.
    pub(super) paused_until: Option<Instant>,
}

impl PartFailures {
    /// Counts a failure of a part, and sets the time until which no further part is requested.
    pub(super) fn record_failure(&mut self, now: Instant) {
        self.received_since = 0;
        self.paused_until = now.checked_add(FIRST_PAUSE * 2_u32.saturating_pow(self.count.min(10)));
        self.count += 1;
    }

    /// Ends the pause if it is over at the time `now`. Returns true if this call has ended the
    /// pause.
    pub(super) fn end_pause(&mut self, now: Instant) -> bool {
        self.paused_until.take_if(|at| *at <= now).is_some()
    }

    /// Returns the time at which a further part may be requested without another event, such as
    /// received bytes or the end of a transfer. During a pause after a failure, this is the end of
    /// the pause. At other times, it is the next timeout of `splitter`, which plans the number of
    /// connections. Returns `None` without a pause and without such a timeout.
    pub(super) fn next_request(&self, splitter: &SplitPlanner) -> Option<Instant> {
        self.paused_until.or_else(|| splitter.next_timeout().map(time_conversions::to_instant))
    }
}

impl SplitState {
    /// Records the offset that the first transfer has reached in the body. Returns true if this
    /// offset is greater than the last recorded one.
    pub(super) fn on_first_position(&mut self, position: u64) -> bool {
        if self.first.transfer.is_some() || position <= self.first.position {
            return false;
        }
        let bytes = position - self.first.position;
        self.received.last_at = Instant::now();
        self.received.total += bytes;
        self.failures.received_since += bytes;
        self.first.position = position;
        self.window.on_received(self.first.id, position);
        true
    }

    /// Records that `bytes` further bytes of the part `id` were received.
    pub(super) fn on_part_bytes(&mut self, id: usize, bytes: u64) {
        self.received.total += bytes;
        self.received.by_parts += bytes;
        self.received.last_at = Instant::now();
        self.failures.received_since += bytes;
        if self.failures.received_since >= FAILURES_EXPIRE_AFTER {
            self.failures.count = 0;
        }
        if let Some(part) = self.parts.get(&id) {
            self.window.on_received(id, part.at);
        }
    }

    /// Returns the number of parts whose response has begun and is not complete.
    pub(super) fn delivering_parts(&self) -> usize {
        self.parts.values().filter(|part| part.has_begun).count()
    }

    /// Delivers the buffered bytes that come next in the body. They belong to finished parts, or to
    /// a part that is still being received.
    pub(super) fn output_contiguous_bytes(&mut self) -> Result<()> {
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
            // The first stream may have received some of these bytes before the part began.
            let present = bytes.len().min((at - position) as usize);
            first.push(&bytes[present..])?;
        }
        self.window.on_output(first.position());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pause_replaces_the_timeout_of_the_planner() {
        let begin = Instant::now();
        let mut splitter = SplitPlanner::new(6, time_conversions::to_monotonic_time(begin));
        splitter.on_connection_refused(6);
        let mut failures = PartFailures::default();
        let review = failures.next_request(&splitter).expect("several connections are judged again");
        // The timeout of the planner has passed when the part fails.
        let failed_at = review + FIRST_PAUSE;
        failures.record_failure(failed_at);
        let until = failed_at + FIRST_PAUSE;
        assert_eq!(failures.next_request(&splitter), Some(until));
        assert!(!failures.end_pause(failed_at));
        assert_eq!(failures.next_request(&splitter), Some(until));
        assert_eq!([failures.end_pause(until), failures.end_pause(until)], [true, false]);
        assert_eq!(failures.next_request(&splitter), Some(review));
    }

    #[test]
    fn pause_doubles_with_each_failure() {
        let begin = Instant::now();
        let mut failures = PartFailures::default();
        let mut pause = || {
            failures.record_failure(begin);
            failures.paused_until.unwrap() - begin
        };
        assert_eq!([(); 4].map(|()| pause()), [1, 2, 4, 8].map(|times| FIRST_PAUSE * times));
    }
}
