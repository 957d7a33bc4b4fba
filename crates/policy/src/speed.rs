//! `--speed-limit` and `--speed-time`: detects transfers that are too slow. A limit of 1 byte
//! detects stalls.
//!
//! ```
//! use core::time::Duration;
//! use haul_policy::MonotonicTime;
//! use haul_policy::speed::{SpeedWatch, SpeedVerdict};
//!
//! let at = |seconds: u64| MonotonicTime(seconds * 1_000_000_000);
//! let mut watch = SpeedWatch::new(1000, Duration::from_secs(30), at(0));
//! for second in 1..=40 {
//!     watch.set_received_bytes(at(second), second.min(10) * 5000); // nothing after the tenth second
//!     let verdict = watch.check(at(second));
//!     assert_eq!(verdict == SpeedVerdict::TooSlow, second == 40, "{second}: {verdict:?}");
//! }
//! ```
//!
//! # How speed is measured
//!
//! The speed is the average over a span of 5 seconds, like curl's, or of `time` (`--speed-time`) if
//! that is less. The watch computes it once a second, or four times in a span below 4 seconds.
//!
//! A transfer is too slow if no span within the last `time` has an average that reaches the limit.
//! The watch thus detects a stall when `time` has passed since the last byte of a fast period, or
//! one check later. curl takes up to 5 seconds longer, since it counts `time` from the moment when
//! the average falls below the limit.
//!
//! Example: the limit is 1000 B/s for 30 seconds, and a peer sends 10 KB every 15 seconds. Its mean
//! speed is 667 B/s, but a span of 5 seconds with 10 KB has 2000 B/s. The transfer is not too slow,
//! as in curl.
//!
//! Rejected: the mean over all of `time`. It is simpler and matches the text of curl's manual, but
//! would end transfers that curl finishes.
//!
//! # Time that is not counted
//!
//! Time between [`on_pause`](SpeedWatch::on_pause) and [`on_resume`](SpeedWatch::on_resume) does
//! not count: the output cannot accept more, or the bucket of `--limit-rate` is empty. A pause that
//! is at least as long as the averaging time restarts the watch, since the bytes before it say
//! nothing about the speed after it. libcurl does the same when a program ends a pause. If a check
//! is more than one interval late, the excess does not count either: the process was stopped or the
//! thread was blocked, and bytes that arrived in the meantime were not read yet.

use core::time::Duration;
use std::collections::VecDeque;

use crate::time::MonotonicTime;

/// The time over which the average speed is computed, as in curl.
const AVERAGING_TIME: Duration = Duration::from_secs(5);

/// The time between two checks of the speed, as in curl.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// Measures the speed of one transfer or part of a transfer, and detects when it is too slow. It
/// occupies a few hundred bytes.
#[derive(Clone, Debug)]
pub struct SpeedWatch {
    limit: u64,
    /// The value of `--speed-time`, in nanoseconds: the length of a slow period that makes the
    /// transfer too slow.
    time: u64,
    average: u64,
    check_interval: u64,
    /// The counted time from the start of the watch to its last update (`updated_at`), in
    /// nanoseconds. Pauses of the transfer ([`SpeedWatch::on_pause`]) and time in which the process
    /// was stopped are not counted.
    clock: u64,
    /// The time at which `clock` was last updated.
    updated_at: MonotonicTime,
    /// The time since when the watch is paused; `None` if it is not paused.
    paused_since: Option<MonotonicTime>,
    total: u64,
    /// The values of `clock` (the elapsed time without pauses) and of `total` (the received bytes)
    /// at the latest checks. The average speed is computed over the period since the first entry.
    checks: VecDeque<(u64, u64)>,
    /// The value of `clock` (the counted time) from which a slow period is measured. Each average
    /// that reaches the limit moves this value forward. The transfer is too slow if the average is
    /// below the limit and `clock` is at least `--speed-time` ahead of this value.
    slow_since: u64,
    is_too_slow: bool,
}

/// The result of [`SpeedWatch::check`]: whether the transfer is too slow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpeedVerdict {
    /// The transfer is fast enough, or it has not been slow for long enough to give up.
    Fine {
        /// The time of the next check; `MonotonicTime(u64::MAX)` without a limit.
        next_look: MonotonicTime,
    },
    /// The speed was below the limit for the whole `--speed-time`. Give up (curl's error 28), or
    /// retry with a new watch.
    TooSlow,
}

impl SpeedWatch {
    /// Creates a watch that starts at `now`. `limit_bytes_per_second` is `--speed-limit`; `time` is
    /// `--speed-time`, by default 30 s in curl. Zero in either means no limit.
    pub fn new(limit_bytes_per_second: u64, time: Duration, now: MonotonicTime) -> SpeedWatch {
        let nanos = |duration: Duration| u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        let average = nanos(time.min(AVERAGING_TIME));
        SpeedWatch {
            limit: limit_bytes_per_second,
            time: nanos(time),
            average,
            check_interval: (average / 4).min(nanos(CHECK_INTERVAL)).max(1),
            clock: 0,
            updated_at: now,
            paused_since: None,
            total: 0,
            checks: VecDeque::from([(0, 0)]),
            slow_since: 0,
            is_too_slow: false,
        }
    }

    /// Records the total number of bytes received since the watch began. This is cheap: call it
    /// after each read, or before each check.
    pub fn set_received_bytes(&mut self, now: MonotonicTime, total_bytes_so_far: u64) {
        self.run_due_checks(now);
        self.total = self.total.max(total_bytes_so_far);
    }

    /// Checks whether the transfer is too slow. Call this at the `next_look` time of the last
    /// verdict; calls at other times do no harm. While the watch is paused, the verdict does not
    /// change.
    pub fn check(&mut self, now: MonotonicTime) -> SpeedVerdict {
        if self.limit == 0 || self.time == 0 {
            return SpeedVerdict::Fine { next_look: MonotonicTime(u64::MAX) };
        }
        self.run_due_checks(now);
        let last = self.checks.back().map_or(0, |look| look.0);
        if self.clock - last >= self.check_interval {
            self.compute_average();
        }
        if self.is_too_slow {
            return SpeedVerdict::TooSlow;
        }
        if self.paused_since.is_some() {
            // The clock stands still, so the rest of the interval would never pass.
            return SpeedVerdict::Fine { next_look: now + Duration::from_nanos(self.check_interval) };
        }
        let last = self.checks.back().map_or(0, |look| look.0);
        SpeedVerdict::Fine { next_look: now + Duration::from_nanos(self.check_interval - (self.clock - last)) }
    }

    /// Stops counting time, because the delay is not the peer's fault: the output cannot accept
    /// more, or `--limit-rate` delays the transfer. A second call has no effect.
    pub fn on_pause(&mut self, now: MonotonicTime) {
        self.run_due_checks(now);
        self.paused_since.get_or_insert(now);
    }

    /// Continues counting time after [`on_pause`](SpeedWatch::on_pause). Restarts the watch if the
    /// pause was at least as long as the averaging time.
    pub fn on_resume(&mut self, now: MonotonicTime) {
        self.run_due_checks(now);
        let Some(since) = self.paused_since.take() else { return };
        if now.0.saturating_sub(since.0) >= self.average {
            self.checks = VecDeque::from([(self.clock, self.total)]);
            self.slow_since = self.clock;
            self.is_too_slow = false;
        }
    }

    fn run_due_checks(&mut self, now: MonotonicTime) {
        let passed = now.0.saturating_sub(self.updated_at.0);
        self.updated_at = self.updated_at.max(now);
        if self.paused_since.is_none() {
            self.clock += passed.min(self.check_interval.saturating_mul(2));
        }
    }

    fn compute_average(&mut self) {
        self.checks.push_back((self.clock, self.total));
        while self.checks.len() > 2 && self.checks[1].0.saturating_add(self.average) <= self.clock {
            self.checks.pop_front();
        }
        let (begun, before) = self.checks[0];
        let window = self.clock - begun;
        if window < self.average {
            return;
        }
        let received = u128::from(self.total - before) * 1_000_000_000;
        if received >= u128::from(self.limit) * u128::from(window) {
            self.slow_since = self.checks[1].0;
            self.is_too_slow = false;
        } else {
            self.is_too_slow = self.clock - self.slow_since >= self.time;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SECOND: u64 = 1_000_000_000;

    fn seconds(seconds: f64) -> Duration {
        Duration::from_secs_f64(seconds)
    }

    /// Runs a watch that is checked at the times that it requests. `total` returns the number of
    /// bytes received up to a time in seconds. Returns the time in seconds at which the transfer
    /// was too slow, if that is before `end`.
    fn run(limit: u64, time: f64, end: u64, total: impl Fn(f64) -> f64) -> Option<f64> {
        let start = MonotonicTime(77 * SECOND);
        let mut watch = SpeedWatch::new(limit, seconds(time), start);
        let mut now = start;
        let mut looks = 0;
        loop {
            let passed = now.since(start).as_secs_f64();
            watch.set_received_bytes(now, total(passed) as u64);
            match watch.check(now) {
                SpeedVerdict::TooSlow => return Some(passed),
                SpeedVerdict::Fine { next_look } if next_look > start + Duration::from_secs(end) => return None,
                SpeedVerdict::Fine { next_look } => {
                    assert!(next_look > now && next_look.since(now) <= CHECK_INTERVAL);
                    now = next_look;
                }
            }
            looks += 1;
            assert!(looks <= 100_000);
            assert!(watch.checks.len() <= 8, "bounded");
        }
    }

    #[test]
    fn transfer_without_bytes_is_too_slow() {
        for time in [0.5, 1.0, 2.0, 3.0, 5.0, 7.0, 30.0, 1000.0] {
            assert_eq!(run(1, time, 2000, |_| 0.0), Some(time), "{time}");
        }
    }

    #[test]
    fn stalled_transfer_is_detected_within_one_check() {
        for time in [0.5, 1.0, 2.5, 4.0, 5.0, 6.0, 30.0] {
            for stop in [0.1, 1.0, 3.3, 9.99, 64.0] {
                let seen = run(1, time, 200, |at| at.min(stop) * 1e6).expect("a stall");
                let after = seen - stop;
                assert!(after >= time - 1e-6 && after <= time + 1.0 + 1e-6, "{time} {stop}: {after}");
            }
        }
    }

    #[test]
    fn fast_transfers_are_never_too_slow() {
        for time in [1.0, 3.0, 30.0] {
            assert_eq!(run(1000, time, 5000, |at| at * 1000.0), None);
            assert_eq!(run(1000, time, 5000, |at| at * 980.0), Some(time));
        }
    }

    #[test]
    fn slow_transfers_with_bursts_continue_as_in_curl() {
        // 10 KB every 15 s: above 1000 B/s on the 5 s around the burst.
        assert_eq!(run(1000, 30.0, 3000, |at| (at / 15.0).floor() * 10_000.0), None);
        // 4 KB every 15 s is below at any time.
        assert_eq!(run(1000, 30.0, 3000, |at| (at / 15.0).floor() * 4000.0), Some(30.0));
        // A burst that comes too seldom.
        assert_eq!(run(1000, 10.0, 3000, |at| (at / 15.0).floor() * 10_000.0), Some(10.0));
    }

    #[test]
    fn transfer_without_speed_limit_is_never_slow() {
        for (limit, time) in [(0, Duration::from_secs(30)), (1000, Duration::ZERO)] {
            let mut watch = SpeedWatch::new(limit, time, MonotonicTime(0));
            assert_eq!(
                watch.check(MonotonicTime(100 * SECOND)),
                SpeedVerdict::Fine { next_look: MonotonicTime(u64::MAX) }
            );
        }
        let mut watch = SpeedWatch::new(u64::MAX, Duration::MAX, MonotonicTime(0));
        watch.set_received_bytes(MonotonicTime(1), u64::MAX);
        for second in 0..100 {
            assert!(matches!(watch.check(MonotonicTime(second * SECOND)), SpeedVerdict::Fine { .. }));
        }
        watch.set_received_bytes(MonotonicTime(u64::MAX), u64::MAX);
        watch.check(MonotonicTime(u64::MAX));
    }

    #[test]
    fn paused_time_does_not_count_as_slow() {
        let mut watch = SpeedWatch::new(1, Duration::from_secs(3), MonotonicTime(0));
        let mut now = 0;
        // Two of three seconds in pause: nine seconds for three.
        for turn in 1..=3 {
            watch.on_resume(MonotonicTime(now));
            watch.on_resume(MonotonicTime(now));
            now += SECOND;
            watch.on_pause(MonotonicTime(now));
            watch.on_pause(MonotonicTime(now + 1));
            assert_eq!(watch.check(MonotonicTime(now)) == SpeedVerdict::TooSlow, turn == 3);
            now += 2 * SECOND;
        }
        let mut watch = SpeedWatch::new(1, Duration::from_secs(3), MonotonicTime(0));
        watch.on_pause(MonotonicTime(0));
        for second in 1..1000 {
            let verdict = watch.check(MonotonicTime(second * SECOND));
            assert!(matches!(verdict, SpeedVerdict::Fine { next_look } if next_look > MonotonicTime(second * SECOND)));
        }
        watch.on_resume(MonotonicTime(1000 * SECOND));
        assert_eq!(stalls_from(&mut watch, MonotonicTime(1000 * SECOND)), Some(3));
    }

    #[test]
    fn paused_watch_is_checked_at_whole_intervals() {
        let mut watch = SpeedWatch::new(1, Duration::from_secs(30), MonotonicTime(0));
        let mut now = MonotonicTime(SECOND - 1);
        watch.on_pause(now);
        for _ in 0..3 {
            let next_look = now + Duration::from_secs(1);
            assert_eq!(watch.check(now), SpeedVerdict::Fine { next_look });
            now = next_look;
        }
    }

    #[test]
    fn long_pause_restarts_the_speed_watch() {
        let mut watch = SpeedWatch::new(1, Duration::from_secs(3), MonotonicTime(0));
        assert!(matches!(watch.check(MonotonicTime(2 * SECOND)), SpeedVerdict::Fine { .. }));
        watch.on_pause(MonotonicTime(2 * SECOND));
        watch.on_resume(MonotonicTime(5 * SECOND));
        assert_eq!(stalls_from(&mut watch, MonotonicTime(5 * SECOND)), Some(3), "all of the time");
    }

    /// Returns the number of seconds without bytes after which the transfer counts as too slow.
    fn stalls_from(watch: &mut SpeedWatch, start: MonotonicTime) -> Option<u64> {
        let mut now = start;
        for _ in 0..10_000 {
            match watch.check(now) {
                SpeedVerdict::TooSlow => return Some(now.since(start).as_secs()),
                SpeedVerdict::Fine { next_look } => now = next_look,
            }
        }
        None
    }

    #[test]
    fn time_of_a_stopped_process_does_not_count() {
        let mut watch = SpeedWatch::new(1000, Duration::from_secs(30), MonotonicTime(0));
        for second in 1..=10 {
            watch.set_received_bytes(MonotonicTime(second * SECOND), second * 5000);
            watch.check(MonotonicTime(second * SECOND));
        }
        let woken = MonotonicTime(4000 * SECOND);
        assert!(matches!(watch.check(woken), SpeedVerdict::Fine { .. }));
        assert_eq!(stalls_from(&mut watch, woken), Some(28), "two seconds of the gap count");
    }

    #[test]
    fn late_and_repeated_speed_checks_are_harmless() {
        let mut watch = SpeedWatch::new(1000, Duration::from_secs(2), MonotonicTime(50 * SECOND));
        watch.set_received_bytes(MonotonicTime(51 * SECOND), 10_000);
        watch.set_received_bytes(MonotonicTime(49 * SECOND), 5_000); // back in time and in bytes
        for _ in 0..100 {
            assert!(matches!(watch.check(MonotonicTime(50 * SECOND)), SpeedVerdict::Fine { .. }));
        }
        assert!(matches!(watch.check(MonotonicTime(52 * SECOND)), SpeedVerdict::Fine { .. }));
        // Too slow stays too slow until it is not.
        let mut watch = SpeedWatch::new(1000, Duration::from_secs(2), MonotonicTime(0));
        stalls_from(&mut watch, MonotonicTime(0)).unwrap();
        assert_eq!(watch.check(MonotonicTime(2 * SECOND)), SpeedVerdict::TooSlow);
        watch.set_received_bytes(MonotonicTime(2 * SECOND + SECOND / 2), 10_000);
        assert!(matches!(watch.check(MonotonicTime(2 * SECOND + SECOND / 2)), SpeedVerdict::Fine { .. }));
    }

    proptest! {
        /// Compares the verdicts with the definition, computed from the list of all arrivals. A
        /// transfer is too slow if the average of each 5 s within the last `time` is below the
        /// limit. A `time` below 5 s is itself the span; only "too slow" is compared then.
        #[test]
        fn speed_verdict_follows_the_definition(
            limit in 1..2000u64,
            time in 1..20u64,
            received in proptest::collection::vec(prop_oneof![3 => Just(0), 1 => 0..20_000u64], 1..80),
        ) {
            let mut watch = SpeedWatch::new(limit, Duration::from_secs(time), MonotonicTime(0));
            let mut total = vec![0];
            for (index, bytes) in received.iter().enumerate() {
                let now = index as u64 + 1;
                total.push(total[index] + bytes);
                let mut verdict = SpeedVerdict::TooSlow;
                for quarter in 1..=4 {
                    // All of a second's bytes come with its first quarter.
                    watch.set_received_bytes(MonotonicTime((4 * now - 4 + quarter) * SECOND / 4), total[index + 1]);
                    verdict = watch.check(MonotonicTime((4 * now - 4 + quarter) * SECOND / 4));
                }
                let average = time.min(5);
                let slow = now >= time && (now - time..=now - average).all(|begin| {
                    total[(begin + average) as usize] - total[begin as usize] < limit * average
                });
                if verdict == SpeedVerdict::TooSlow {
                    prop_assert!(slow, "second {now}");
                }
                if time >= 5 {
                    prop_assert_eq!(verdict == SpeedVerdict::TooSlow, slow, "second {}", now);
                }
            }
        }
    }

    #[test]
    fn next_check_is_an_interval_after_the_last() {
        let start = MonotonicTime(5 * SECOND);
        let mut watch = SpeedWatch::new(10, seconds(100.0), start);
        let mut now = start;
        for _ in 0..5 {
            watch.set_received_bytes(now, 1_000_000);
            assert_eq!(watch.check(now), SpeedVerdict::Fine { next_look: now + CHECK_INTERVAL });
            now = now + CHECK_INTERVAL;
        }
        now = now + CHECK_INTERVAL / 4;
        watch.check(now);
        watch.check(now + CHECK_INTERVAL / 4);
        assert_eq!(watch.check(now + CHECK_INTERVAL / 2), SpeedVerdict::Fine { next_look: now + CHECK_INTERVAL });
    }
}
