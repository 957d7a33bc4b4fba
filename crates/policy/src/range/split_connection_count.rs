//! Chooses the number of connections for one body: more than one only while they are measurably
//! faster.
//!
//! ```text
//!  Single ──worth a try──▶ Probing ──a part came──▶ Measuring ──clear gain──▶ Settled
//!    one stream             + one part               four                   all, two or one
//!                                                      │ little gain           │ ▲
//!                                                      └─────▶ Comparing ◀─────┘ │
//!                                                             with one ──────────┘
//! ```
//!
//! A trial with more connections is worthwhile if three things hold: the first stream mostly waits
//! for the network, it is slow enough that it may not fill the link, and enough bytes are left to
//! make up for the set-up. The gain is measured over all connections together. If four connections
//! are faster than one by half or more, the maximum is allowed. A smaller gain keeps two
//! connections, and no gain keeps one.
//!
//! **Comparison.** The first stream is measured during its slow start. On a link that loses
//! packets, one connection is later much slower than that, and several together may be no faster.
//! So before the planner reduces the connections for want of a gain, it measures one connection
//! again, in the middle of the body: it asks for one connection until the others have completed
//! their parts. The comparison ends early if half of the connections are clearly slower than all.
//! If the first measurement of several connections yields 100 MB/s or more, it decides without a
//! comparison.
//!
//! **Busy machines.** A stream that waits may wait for a server on this machine, or for processor
//! time. More connections then only cost more processor time. So from 50 MB/s on, a trial needs a
//! core that was idle, and a stream that was about as fast in both halves of the window. From
//! 100 MB/s on, several connections need an obvious gain and a core that stays idle. One connection
//! is used again, for the rest of the body, when no core is idle or when several connections are no
//! faster than one.
//!
//! ```
//! use core::time::Duration;
//! use haul_policy::MonotonicTime;
//! use haul_policy::range::split_connection_count::{FirstStreamSample, SplitPlanner};
//!
//! let mut splitter = SplitPlanner::new(6, MonotonicTime(0));
//! // 5 MB/s, and waiting nearly all the time, in both halves of 100 ms.
//! let seen = |ms: u64| FirstStreamSample {
//!     now: MonotonicTime(0) + Duration::from_millis(ms),
//!     received: 5_000 * ms,
//!     remaining: 100_000_000,
//!     waited: Duration::from_millis(ms - 3),
//! };
//! assert!(!splitter.is_worth_trying(seen(50), || None)); // too early to say
//! assert!(splitter.is_worth_trying(seen(100), || None));
//! ```

use core::time::Duration;

use crate::MonotonicTime;

/// The time over which the download rate of one stream is measured before a split. The rate of
/// several streams is first measured over this time, too: that is enough if their rate is obviously
/// higher than the rate of one ([`OBVIOUS_GAIN`]).
const SHORT_MEASUREMENT: Duration = Duration::from_millis(100);
/// The time over which the download rate of several streams is measured, if the first measurement
/// ([`SHORT_MEASUREMENT`]) shows no obvious gain over one stream ([`OBVIOUS_GAIN`]). Also the
/// minimum time for which a single connection is measured again later, to compare its rate with
/// that of several.
const LONG_MEASUREMENT: Duration = Duration::from_millis(200);
/// The time allowed for additional connections to open. After this time, the rate of the open
/// connections together is measured without the others.
const MAX_OPENING_TIME: Duration = Duration::from_secs(1);
/// A stream of at least this rate, in bytes a second, is not split: more connections would cost
/// more than they gain.
const MAX_RATE_TO_SPLIT: u64 = 200_000_000;
/// The rate of one stream, in bytes a second, at or above which the processor may limit the
/// download instead of the network.
const CPU_BOUND_RATE_OF_ONE: u64 = 50_000_000;
/// The combined rate of several connections, in bytes a second, at or above which the processor may
/// limit the download instead of the network.
const CPU_BOUND_RATE_OF_SEVERAL: u64 = 100_000_000;
/// The interval at which the rate of several connections is compared with the rate that one
/// connection had.
const REVIEW_INTERVAL: Duration = Duration::from_millis(500);
/// The time for which a split download is reduced to one connection, to compare the rate of this
/// connection with the earlier rate of several. The comparison ends after [`LONG_MEASUREMENT`] if
/// the one connection is about as fast. Waits for responses do not count.
const COMPARISON_TIME: Duration = Duration::from_millis(500);
/// The minimum remaining time of the download, at the present rate, for which a trial with more
/// connections is worthwhile.
const MIN_REMAINING_TIME: Duration = Duration::from_millis(250);
/// The minimum rate of several connections together, in per cent of the rate of one connection, for
/// the gain to be obvious. The maximum number of connections is then used without a longer
/// measurement, even if the processor may limit the rate.
const OBVIOUS_GAIN: u64 = 250;
/// The minimum rate of several connections together, in per cent of the rate of one connection, for
/// which the maximum number of connections is used.
const CLEAR_GAIN: u64 = 150;
/// The minimum rate of several connections together, in per cent of the rate of one connection, for
/// which at least two connections are used.
const SMALL_GAIN: u64 = 115;
/// The number of connections that are used first to measure whether several connections are faster
/// than one.
const FIRST_CONNECTIONS: usize = 4;

/// The progress of the first stream (the response to the request without a range) at the time
/// `now`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FirstStreamSample {
    /// The time at which the progress was measured.
    pub now: MonotonicTime,
    /// The number of body bytes that the first stream has received so far.
    pub received: u64,
    /// The number of body bytes that are still to come.
    pub remaining: u64,
    /// The total time that the stream has waited for the network. Time spent waiting for the output
    /// is not counted.
    pub waited: Duration,
}

/// The progress of all connections together at the time `now`, after the body was split.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SplitSample {
    /// The time at which the progress was measured.
    pub now: MonotonicTime,
    /// The number of body bytes that all connections have received so far.
    pub received: u64,
    /// The number of connections that deliver bytes.
    pub delivering: usize,
    /// The number of requests whose responses are not complete. It may be larger than `delivering`,
    /// because requests may wait behind others on the same connection.
    pub requests: usize,
}

/// Decides how many connections fetch one body.
#[derive(Clone, Debug)]
pub struct SplitPlanner {
    most: usize,
    phase: SplitPhase,
    since: MonotonicTime,
    received: u64,
    waited: Duration,
    /// The download rate of one connection in bytes a second: the rate of the first stream or,
    /// after a comparison of one connection with several, the rate of the one.
    single: u64,
    /// The progress of the first stream in the middle of the period over which its rate is
    /// measured; `None` in the first half of that period.
    middle: Option<MidWindowSample>,
    /// The idle time of all cores together, from the start of the system to the beginning of the
    /// present measurement; `None` if unknown.
    idle: Option<Duration>,
}

/// The progress of the first stream (the response to the request without a range) in the middle of
/// the period over which its download rate is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct MidWindowSample {
    at: MonotonicTime,
    received: u64,
    idle: Option<Duration>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SplitPhase {
    Single,
    Probing,
    /// Additional connections have been opening since this time.
    Opening(MonotonicTime),
    /// Several connections are measured until this time, to find out how much faster they are than
    /// one.
    Measuring(MonotonicTime),
    /// One connection is measured again, to compare its rate with that of several connections.
    Comparing(RateComparison),
    Settled(usize),
}

/// A comparison of the rate of one connection with the rate of several connections, made while the
/// body arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct RateComparison {
    /// The number of connections with which the single connection is compared.
    connections: usize,
    /// The highest measured download rate of several connections together, in bytes a second.
    several: u64,
    /// The number of incomplete requests when the present measurement began.
    requests: usize,
    /// The time since which no connection delivers bytes; `None` if one delivers.
    waiting_since: Option<MonotonicTime>,
}

impl SplitPlanner {
    /// Creates a planner that allows at most `most` connections for a body. Call it when the body
    /// begins.
    pub fn new(most: usize, now: MonotonicTime) -> SplitPlanner {
        SplitPlanner {
            most,
            phase: SplitPhase::Single,
            since: now,
            received: 0,
            waited: Duration::ZERO,
            single: 0,
            middle: None,
            idle: None,
        }
    }

    /// Returns `true` if a trial with more connections is worthwhile. Call this from time to time
    /// while there is one stream. `idle` returns the total idle time of all processor cores since
    /// any fixed moment, or `None` if the idle time is unknown. `idle` is called twice in each
    /// measurement.
    pub fn is_worth_trying(&mut self, seen: FirstStreamSample, idle: impl FnOnce() -> Option<Duration>) -> bool {
        let elapsed = seen.now.since(self.since);
        if self.most < 2 || elapsed < SHORT_MEASUREMENT / 2 {
            return false;
        }
        let Some(middle) = self.middle.filter(|_| elapsed >= SHORT_MEASUREMENT) else {
            if self.middle.is_none() {
                self.middle = Some(MidWindowSample { at: seen.now, received: seen.received, idle: idle() });
            }
            return false;
        };
        let first_half = per_second(middle.received.saturating_sub(self.received), middle.at.since(self.since));
        let rest = seen.now.since(middle.at);
        let second_half = per_second(seen.received.saturating_sub(middle.received), rest);
        self.middle = None;
        let waited = seen.waited.saturating_sub(self.waited);
        let rate = per_second(seen.received.saturating_sub(self.received), elapsed);
        (self.since, self.received, self.waited) = (seen.now, seen.received, seen.waited);
        let is_steady = first_half.max(second_half) / 2 <= first_half.min(second_half);
        let is_limited = rate < CPU_BOUND_RATE_OF_ONE || is_steady && is_core_idle(middle.idle, idle(), rest);
        let is_worth =
            waited * 2 >= elapsed && rate < MAX_RATE_TO_SPLIT && lasts_long_enough(seen.remaining, rate) && is_limited;
        if is_worth {
            self.single = rate;
            self.phase = SplitPhase::Probing;
        }
        is_worth
    }

    /// Records that the first part of the body arrives as requested: the server supports range
    /// requests.
    pub fn on_first_part(&mut self, now: MonotonicTime) {
        if self.phase == SplitPhase::Probing {
            self.phase = SplitPhase::Opening(now);
        }
    }

    /// Returns the rate of one connection in bytes a second, as it was last measured. Each
    /// connection is assumed to have this rate.
    pub fn rate(&self) -> u64 {
        self.single
    }

    /// Returns the highest measured rate of several connections together, in bytes a second, while
    /// a single connection is measured to be compared with them. Returns `None` if no comparison is
    /// in progress, or before the other connections have completed their requests.
    pub fn rate_to_compare_with(&self) -> Option<u64> {
        match self.phase {
            SplitPhase::Comparing(comparison) if comparison.requests <= 1 => Some(comparison.several),
            _ => None,
        }
    }

    /// Returns the number of connections that should be used now. `idle` returns the total idle
    /// time of all processor cores, or `None` if it is unknown. `idle` is called only when a
    /// measurement begins or ends.
    pub fn wanted_connections(&mut self, seen: SplitSample, idle: impl FnOnce() -> Option<Duration>) -> usize {
        let first = self.most.min(FIRST_CONNECTIONS);
        match self.phase {
            SplitPhase::Single => 1,
            SplitPhase::Probing => 2.min(self.most),
            SplitPhase::Opening(since) => {
                if seen.delivering >= first || seen.now.since(since) >= MAX_OPENING_TIME {
                    self.phase = SplitPhase::Measuring(seen.now + SHORT_MEASUREMENT);
                    (self.since, self.received, self.idle) = (seen.now, seen.received, idle());
                }
                first
            }
            SplitPhase::Measuring(look) if seen.now < look => first,
            SplitPhase::Measuring(_) => self.measure(first, seen, idle()),
            SplitPhase::Comparing(comparison) => self.compare(comparison, seen, idle),
            SplitPhase::Settled(wanted) => {
                let elapsed = seen.now.since(self.since);
                if wanted < 2 || elapsed < REVIEW_INTERVAL {
                    return wanted;
                }
                let rate = self.measured_rate(seen);
                self.begin_measurement(seen);
                let idle_before = core::mem::replace(&mut self.idle, idle());
                // Fewer may deliver for a while, at the end of the body and after failures. A time
                // without any byte does not show that one connection is as fast.
                let is_slow = (1..=self.single).contains(&rate) && seen.delivering >= wanted;
                if rate >= CPU_BOUND_RATE_OF_SEVERAL && !is_core_idle(idle_before, self.idle, elapsed) {
                    self.finish_measurement(1)
                } else if is_slow {
                    self.begin_comparison(wanted, rate, seen)
                } else {
                    wanted
                }
            }
        }
    }

    /// Compares the measured rate of several connections with the rate of one, and returns the
    /// number of connections to use from now on. `connections` is the number of connections
    /// measured, and `seen` their progress. `idle` is the total idle time of all processor cores;
    /// `None` if it is unknown.
    fn measure(&mut self, connections: usize, seen: SplitSample, idle: Option<Duration>) -> usize {
        let elapsed = seen.now.since(self.since);
        let rate = self.measured_rate(seen);
        let is_brisk = rate >= CPU_BOUND_RATE_OF_SEVERAL;
        let is_starved = is_brisk && !is_core_idle(self.idle, idle, elapsed);
        // Nearly each delivers as much as the one did: measuring longer would not change the
        // result.
        let is_obvious = has_gain(rate, self.single, OBVIOUS_GAIN);
        if !is_starved && !is_obvious && elapsed < LONG_MEASUREMENT {
            self.phase = SplitPhase::Measuring(self.since + LONG_MEASUREMENT);
            return connections;
        }
        (self.since, self.received, self.idle) = (seen.now, seen.received, idle);
        match connections_worth_using(rate, self.single, self.most) {
            _ if is_starved => self.finish_measurement(1),
            wanted if wanted == self.most => self.finish_measurement(wanted),
            _ if is_brisk => self.finish_measurement(1),
            _ => self.begin_comparison(connections, rate, seen),
        }
    }

    /// Begins the comparison of one connection with several: `connections` connections had the rate
    /// `several` together. `seen` is the present progress. Returns the number of connections to use
    /// during the comparison: 1.
    fn begin_comparison(&mut self, connections: usize, several: u64, seen: SplitSample) -> usize {
        let waiting_since = (seen.delivering == 0).then_some(seen.now);
        let comparison = RateComparison { connections, several, requests: seen.requests, waiting_since };
        self.phase = SplitPhase::Comparing(comparison);
        1
    }

    /// Continues the comparison of one connection with several, and returns the number of
    /// connections to use now. Until the comparison ends, this number is 1: the other connections
    /// complete their requests and get no new ones. The comparison ends in one of these cases:
    /// * A single connection has been measured for [`COMPARISON_TIME`].
    /// * A single connection has been measured for [`LONG_MEASUREMENT`], and is about as fast as
    ///   all connections together were.
    /// * At most half of the connections still have requests, and have been measured for
    ///   [`COMPARISON_TIME`]. All connections together were so much faster than these that the
    ///   maximum number of connections is worth using.
    fn compare(
        &mut self,
        comparison: RateComparison,
        seen: SplitSample,
        idle: impl FnOnce() -> Option<Duration>,
    ) -> usize {
        let RateComparison { connections, several, requests, waiting_since } = comparison;
        let half = (connections / 2).max(1);
        let has_fewer = |limit| seen.requests <= limit && requests > limit;
        if has_fewer(half) || has_fewer(1) {
            self.begin_measurement(seen);
            return self.begin_comparison(connections, several, seen);
        }
        // The measured connection has one request at a time. Otherwise the next request is sent
        // before the last response is complete, so the wait for a response is not counted.
        if let Some(at) = waiting_since {
            self.since = self.since + seen.now.since(at);
        }
        let elapsed = seen.now.since(self.since);
        let rate = self.measured_rate(seen);
        let is_as_fast = requests <= 1 && elapsed >= LONG_MEASUREMENT && !has_gain(several, rate, SMALL_GAIN);
        if elapsed < COMPARISON_TIME && !is_as_fast {
            let waiting_since = (seen.delivering == 0).then_some(seen.now);
            self.phase = SplitPhase::Comparing(RateComparison { waiting_since, ..comparison });
            return 1;
        }
        self.begin_measurement(seen);
        // The rate before the comparison may have been low for a moment only. More connections are
        // assumed to be at least as fast as those that are left.
        let several = if requests > 1 { several.max(rate) } else { several };
        let wanted = connections_worth_using(several, rate, self.most);
        // Without any byte, the measurement is repeated: nothing shows that all are faster.
        if rate > 0 && (requests <= 1 || requests <= half && wanted == self.most) {
            self.single = rate / requests.max(1) as u64;
            self.idle = idle();
            return self.finish_measurement(wanted);
        }
        self.begin_comparison(connections, several, seen)
    }

    /// Begins the present measurement of the download rate again, from the progress `seen`. Call
    /// this after a time in which no connection could be added, so that this time does not lower
    /// the measured rate. `idle` returns the total idle time of all processor cores, or `None` if
    /// it is unknown.
    pub fn restart_measurement(&mut self, seen: SplitSample, idle: impl FnOnce() -> Option<Duration>) {
        match self.phase {
            SplitPhase::Single | SplitPhase::Probing | SplitPhase::Opening(_) => return,
            SplitPhase::Measuring(_) => self.phase = SplitPhase::Measuring(seen.now + SHORT_MEASUREMENT),
            SplitPhase::Comparing(RateComparison { connections, several, .. }) => {
                self.begin_comparison(connections, several, seen);
            }
            SplitPhase::Settled(_) => {}
        }
        (self.since, self.received, self.idle) = (seen.now, seen.received, idle());
    }

    /// Returns the download rate since the present measurement began, in bytes a second.
    fn measured_rate(&self, seen: SplitSample) -> u64 {
        per_second(seen.received.saturating_sub(self.received), seen.now.since(self.since))
    }

    /// Begins a new measurement of the download rate, from the progress `seen`.
    fn begin_measurement(&mut self, seen: SplitSample) {
        (self.since, self.received) = (seen.now, seen.received);
    }

    /// Ends the measurement of the download rate, and returns the number of connections to use from
    /// now on: `wanted`, or fewer if the server has refused that many. If `wanted` is below 2, the
    /// planner never asks for more than one connection again.
    fn finish_measurement(&mut self, wanted: usize) -> usize {
        if wanted < 2 {
            self.most = 1;
        }
        let wanted = wanted.min(self.most);
        self.phase = SplitPhase::Settled(wanted);
        wanted
    }

    /// Returns `true` if the planner has decided on a number of connections, and is not measuring
    /// whether to change it.
    pub fn has_finished_measuring(&self) -> bool {
        matches!(self.phase, SplitPhase::Settled(_))
    }

    /// Records that the server refused one of `connections` connections. From now on, the planner
    /// asks for at most `connections` - 1 connections, but for at least one.
    ///
    /// During a comparison of one connection with several, fewer connections are in use than
    /// before. The earlier number then replaces a smaller `connections`: if 6 connections are
    /// compared with one, and one of 2 is refused, the new maximum is 5. The comparison goes on if
    /// the new maximum is at least 2.
    pub fn on_connection_refused(&mut self, connections: usize) {
        let compared = match self.phase {
            SplitPhase::Comparing(comparison) => comparison.connections,
            _ => 0,
        };
        self.most = self.most.min(connections.max(compared).saturating_sub(1)).max(1);
        if compared == 0 || self.most < 2 {
            self.phase = SplitPhase::Settled(self.most);
        }
    }

    /// Returns the time at which to call [`SplitPlanner::wanted_connections`] even without an
    /// event, or `None` if there is no such time.
    pub fn next_timeout(&self) -> Option<MonotonicTime> {
        match self.phase {
            SplitPhase::Opening(since) => Some(since + MAX_OPENING_TIME),
            SplitPhase::Measuring(look) => Some(look),
            SplitPhase::Comparing(_) => Some(self.since + COMPARISON_TIME),
            SplitPhase::Settled(wanted) if wanted > 1 => Some(self.since + REVIEW_INTERVAL),
            SplitPhase::Single | SplitPhase::Probing | SplitPhase::Settled(_) => None,
        }
    }
}

/// Returns the number of connections to use, at most `most`, if several connections together have
/// the rate `several` and one has the rate `one`, in bytes a second.
fn connections_worth_using(several: u64, one: u64, most: usize) -> usize {
    let least_gain = if several >= CPU_BOUND_RATE_OF_SEVERAL { OBVIOUS_GAIN } else { CLEAR_GAIN };
    match () {
        () if has_gain(several, one, least_gain) => most,
        () if several < CPU_BOUND_RATE_OF_SEVERAL && has_gain(several, one, SMALL_GAIN) => 2.min(most),
        () => 1,
    }
}

/// Returns true if the rate `several` is at least `percent` per cent of the rate `one`.
fn has_gain(several: u64, one: u64, percent: u64) -> bool {
    u128::from(several) * 100 >= u128::from(one) * u128::from(percent)
}

fn lasts_long_enough(bytes: u64, rate: u64) -> bool {
    rate > 0 && u128::from(bytes) * 1000 >= u128::from(rate) * MIN_REMAINING_TIME.as_millis()
}

/// Returns true if a core was idle for most of the time `elapsed`. `before` and `after` are the
/// total idle times of all cores at the start and at the end of that time. If either is unknown
/// (`None`), returns true.
fn is_core_idle(before: Option<Duration>, after: Option<Duration>, elapsed: Duration) -> bool {
    match (before, after) {
        (Some(before), Some(after)) => after.saturating_sub(before) >= elapsed * 3 / 4,
        _ => true,
    }
}

fn per_second(bytes: u64, time: Duration) -> u64 {
    let nanos = time.as_nanos().max(1);
    u64::try_from(u128::from(bytes) * 1_000_000_000 / nanos).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
