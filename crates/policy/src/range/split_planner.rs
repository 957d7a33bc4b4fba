//! Chooses the number of connections for one body: more than one only while they measurably help.
//!
//! ```text
//!  Single ──worth a try──▶ Probing ──a part came──▶ Growing ──measured──▶ Settled
//!    one stream             + one part               four          all, four, two or one
//! ```
//!
//! A trial with more connections is worthwhile if three things hold: the first stream mostly waits
//! for the network, it is slow enough that it may not fill the link, and enough bytes are left to
//! make up for the set-up. The gain is measured over all connections together. If four connections
//! bring half as much again, the maximum is allowed; a small gain keeps two, no gain keeps one.
//!
//! ```
//! use core::time::Duration;
//! use haul_policy::MonotonicTime;
//! use haul_policy::range::split_planner::{FirstStreamSample, SplitPlanner};
//!
//! let mut splitter = SplitPlanner::new(6, MonotonicTime(0));
//! let later = MonotonicTime(0) + Duration::from_millis(100);
//! // 5 MB/s, and waiting nearly all the time.
//! let seen = FirstStreamSample { now: later, received: 500_000, remaining: 100_000_000, waited: Duration::from_millis(95) };
//! assert!(splitter.is_worth_trying(seen));
//! ```

use core::time::Duration;

use crate::MonotonicTime;

/// The time over which the rate of one stream is measured. The rate of several streams is measured
/// over the same time if the gain is obvious.
const WINDOW: Duration = Duration::from_millis(100);
/// The time over which the rate of several streams is measured if the gain is not obvious.
const MEASURED: Duration = Duration::from_millis(200);
/// The time allowed for new connections to open. After it, the measurement begins without the
/// missing ones.
const OPENING: Duration = Duration::from_secs(1);
/// The rate in bytes a second from which more connections would cost more than they gain.
const FAST: u64 = 200_000_000;
/// The least remaining time, at the present rate, for which a trial is worthwhile.
const WORTH: Duration = Duration::from_millis(250);
/// The number of connections during the first measurement.
const FIRST: usize = 4;

/// A measurement of the first stream at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FirstStreamSample {
    /// The time of the measurement.
    pub now: MonotonicTime,
    /// The number of body bytes received so far.
    pub received: u64,
    /// The number of body bytes still to come.
    pub remaining: u64,
    /// The total time spent waiting for the network. Time spent waiting for the output is not
    /// counted.
    pub waited: Duration,
}

/// Decides the number of connections for one body.
#[derive(Clone, Debug)]
pub struct SplitPlanner {
    most: usize,
    phase: SplitPhase,
    since: MonotonicTime,
    received: u64,
    waited: Duration,
    /// The rate of the first stream in bytes a second.
    single: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SplitPhase {
    Single,
    Probing,
    /// Further connections are opening since this time.
    Opening(MonotonicTime),
    /// The gain is measured until this time.
    Measuring(MonotonicTime),
    Settled(usize),
}

impl SplitPlanner {
    /// Creates a planner for at most `most` connections. Call it when the body begins.
    pub fn new(most: usize, now: MonotonicTime) -> SplitPlanner {
        SplitPlanner { most, phase: SplitPhase::Single, since: now, received: 0, waited: Duration::ZERO, single: 0 }
    }

    /// Returns `true` if a trial with more connections is worthwhile. Call it from time to time
    /// while there is one stream.
    pub fn is_worth_trying(&mut self, seen: FirstStreamSample) -> bool {
        let elapsed = seen.now.since(self.since);
        if self.most < 2 || elapsed < WINDOW {
            return false;
        }
        let waited = seen.waited.saturating_sub(self.waited);
        let rate = per_second(seen.received.saturating_sub(self.received), elapsed);
        (self.since, self.received, self.waited) = (seen.now, seen.received, seen.waited);
        let is_worth = waited * 2 >= elapsed && rate < FAST && is_long(seen.remaining, rate);
        if is_worth {
            self.single = rate;
            self.phase = SplitPhase::Probing;
        }
        is_worth
    }

    /// Records that the first part arrived as requested: the server supports ranges.
    pub fn on_first_part(&mut self, now: MonotonicTime) {
        if self.phase == SplitPhase::Probing {
            self.phase = SplitPhase::Opening(now);
        }
    }

    /// Returns the rate of the first stream in bytes a second, which is also the assumed rate of
    /// each further one.
    pub fn rate(&self) -> u64 {
        self.single
    }

    /// Returns the number of connections that should be used now. `received` is the number of bytes
    /// that all connections received so far. `delivering` is the number of connections that deliver
    /// bytes.
    pub fn wanted(&mut self, now: MonotonicTime, received: u64, delivering: usize) -> usize {
        let first = self.most.min(FIRST);
        match self.phase {
            SplitPhase::Single => 1,
            SplitPhase::Probing => 2.min(self.most),
            SplitPhase::Opening(since) => {
                if delivering >= first || now.since(since) >= OPENING {
                    (self.phase, self.since, self.received) = (SplitPhase::Measuring(now + WINDOW), now, received);
                }
                first
            }
            SplitPhase::Measuring(look) => {
                if now < look {
                    return first;
                }
                let elapsed = now.since(self.since);
                let rate = per_second(received.saturating_sub(self.received), elapsed);
                let wanted = match () {
                    // Nearly each delivers as much as the one did: measuring longer would not
                    // change the result.
                    () if rate >= self.single.saturating_mul(5) / 2 => self.most,
                    () if elapsed < MEASURED => {
                        self.phase = SplitPhase::Measuring(self.since + MEASURED);
                        return first;
                    }
                    () if rate >= self.single.saturating_mul(3) / 2 => self.most,
                    () if rate >= self.single.saturating_mul(23) / 20 => 2,
                    () => 1,
                };
                self.phase = SplitPhase::Settled(wanted.min(self.most));
                wanted.min(self.most)
            }
            SplitPhase::Settled(wanted) => wanted,
        }
    }

    /// Returns `true` if the number of connections will not grow any more.
    pub fn is_settled(&self) -> bool {
        matches!(self.phase, SplitPhase::Settled(_))
    }

    /// Records that the server refused one of `connections` connections. The limit then becomes one
    /// less than `connections`, but at least 1.
    pub fn refused(&mut self, connections: usize) {
        self.most = self.most.min(connections.saturating_sub(1)).max(1);
        self.phase = SplitPhase::Settled(self.most);
    }

    /// Returns the time of the next timeout; `None` if there is none. Call [`SplitPlanner::wanted`]
    /// then, even without an event.
    pub fn next_timeout(&self) -> Option<MonotonicTime> {
        match self.phase {
            SplitPhase::Opening(since) => Some(since + OPENING),
            SplitPhase::Measuring(look) => Some(look),
            SplitPhase::Single | SplitPhase::Probing | SplitPhase::Settled(_) => None,
        }
    }
}

fn is_long(bytes: u64, rate: u64) -> bool {
    rate > 0 && u128::from(bytes) * 1000 >= u128::from(rate) * WORTH.as_millis()
}

fn per_second(bytes: u64, time: Duration) -> u64 {
    let nanos = time.as_nanos().max(1);
    u64::try_from(u128::from(bytes) * 1_000_000_000 / nanos).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn seen(ms: u32, received: u64, waited_ms: u32) -> FirstStreamSample {
        FirstStreamSample { now: MonotonicTime(0) + MS * ms, received, remaining: 1 << 30, waited: MS * waited_ms }
    }

    fn probing(most: usize, rate_of_one: u64) -> SplitPlanner {
        let mut splitter = SplitPlanner::new(most, MonotonicTime(0));
        assert!(splitter.is_worth_trying(seen(100, rate_of_one / 10, 90)));
        splitter
    }

    /// Returns the final number of connections. `one` is the rate of one connection, `rate(n)` that
    /// of `n` connections together, both in bytes a second.
    fn settles_at(most: usize, one: u64, rate: impl Fn(usize) -> u64) -> usize {
        let mut splitter = probing(most, one);
        let mut received = 0;
        splitter.on_first_part(MonotonicTime(0) + MS * 150);
        let mut wanted = 2;
        for ms in 150..2000 {
            received += rate(wanted) / 1000;
            wanted = splitter.wanted(MonotonicTime(0) + MS * ms, received, wanted);
        }
        assert!(splitter.is_settled());
        wanted
    }

    #[test]
    fn rate_limited_streams_get_all_connections() {
        assert_eq!(settles_at(6, 5_000_000, |n| 5_000_000 * n as u64), 6);
        assert_eq!(settles_at(3, 36_000_000, |n| 36_000_000 * n as u64), 3);
    }

    #[test]
    fn obvious_gain_is_decided_in_half_time() {
        let settles_by = |rate: u64| {
            let mut splitter = probing(6, 5_000_000);
            splitter.on_first_part(MonotonicTime(0));
            assert_eq!(splitter.wanted(MonotonicTime(0), 0, 4), 4);
            let look = |ms: u32| (MonotonicTime(0) + MS * ms, rate * u64::from(ms) / 1000);
            (1..).find(|&ms| {
                let (now, received) = look(ms);
                splitter.wanted(now, received, 4);
                splitter.is_settled()
            })
        };
        assert_eq!(settles_by(20_000_000), Some(100));
        assert_eq!(settles_by(12_000_000), Some(200));
    }

    #[test]
    fn full_link_stays_with_one_connection() {
        assert_eq!(settles_at(6, 10_000_000, |_| 10_000_000), 1);
        assert_eq!(settles_at(6, 10_000_000, |n| 10_000_000 / n as u64), 1);
    }

    #[test]
    fn small_gain_keeps_two_connections() {
        assert_eq!(settles_at(6, 10_000_000, |n| if n > 1 { 13_000_000 } else { 10_000_000 }), 2);
    }

    #[test]
    fn fast_busy_and_short_streams_are_not_split() {
        let mut splitter = SplitPlanner::new(6, MonotonicTime(0));
        assert!(!splitter.is_worth_trying(seen(100, FAST / 10, 100)));
        assert!(!splitter.is_worth_trying(seen(200, FAST / 10 + 500_000, 120)), "it waits for the output, not for us");
        let short = FirstStreamSample { remaining: 1_000_000, ..seen(300, FAST / 10 + 1_000_000, 220) };
        assert!(!splitter.is_worth_trying(short));
        assert!(!splitter.is_worth_trying(seen(400, FAST / 10 + 1_000_000, 320)), "nothing came at all");
        assert!(!SplitPlanner::new(1, MonotonicTime(0)).is_worth_trying(seen(100, 500_000, 100)));
    }

    #[test]
    fn refused_connections_lower_the_limit() {
        let mut splitter = probing(6, 5_000_000);
        splitter.on_first_part(MonotonicTime(1));
        splitter.refused(4);
        assert_eq!(splitter.wanted(MonotonicTime(2), 0, 3), 3);
        splitter.refused(1);
        assert_eq!(splitter.wanted(MonotonicTime(3), 0, 0), 1);
    }
}
