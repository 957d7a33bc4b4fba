//! `--limit-rate`: the number of bytes that may be transferred now, over all connections together.
//!
//! ```
//! use core::time::Duration;
//! use haul_policy::MonotonicTime;
//! use haul_policy::rate::TokenBucket;
//!
//! let start = MonotonicTime(0);
//! let mut bucket = TokenBucket::new(3_200_000, start);
//! assert_eq!(bucket.available(start), 100_000); // 1/32 s worth: full at first
//! bucket.take(100_000);
//! assert_eq!(bucket.available(start), 0);
//! let ready = bucket.ready_at(start, 32_000);
//! assert_eq!(ready, start + Duration::from_millis(10));
//! assert_eq!(bucket.available(ready), 32_000);
//! ```
//!
//! The limiter is a token bucket with the capacity of 1/32 s at its rate. At most `rate + rate/32`
//! bytes pass in any second, 3.1 % above the rate, plus the bytes that transfers take beyond
//! [`available`](TokenBucket::available). The promised limit is 5 %. The difference is for such
//! excess: one TLS record (16 KiB) fits in from 0.9 MB/s on. A bucket of 1/20 s would leave no room
//! for it. A smaller bucket would lose rate whenever a busy thread is later than the time in which
//! the bucket fills, since a full bucket gains nothing.
//!
//! Transfers are not distinguished: the first to ask gets the available bytes. They share by
//! calling [`available`](TokenBucket::available) in turn and taking no more than their share.

use crate::time::MonotonicTime;

/// The factor by which bytes are multiplied: counts are in bytes × nanoseconds, so frequent calls
/// lose nothing by rounding.
const SCALE: i128 = 1_000_000_000;

/// The smallest number of bytes that [`TokenBucket::available`] returns, other than 0, if the
/// bucket is large enough. A system call and a wake-up for a few bytes would cost more than the
/// bytes.
const SMALLEST_GRANT: u64 = 4096;

/// The token bucket of one rate limit, shared by every transfer under it.
#[derive(Clone, Debug)]
pub struct TokenBucket {
    rate: u64,
    burst: u64,
    grant: u64,
    /// The available bytes × [`SCALE`] at the time `filled`; negative for a debt.
    level: i128,
    filled: MonotonicTime,
}

impl TokenBucket {
    /// Creates a full bucket for `bytes_per_second`; 0 counts as 1. For no limit, use no bucket.
    pub fn new(bytes_per_second: u64, now: MonotonicTime) -> TokenBucket {
        let rate = bytes_per_second.max(1);
        let burst = (rate / 32).max(1);
        let grant = (burst / 4).max(SMALLEST_GRANT).min(burst);
        TokenBucket { rate, burst, grant, level: i128::from(burst) * SCALE, filled: now }
    }

    /// Returns the capacity in bytes: 1/32 s at the rate, at least one byte.
    pub fn burst(&self) -> u64 {
        self.burst
    }

    /// Returns the number of bytes that may be transferred now. It is 0, or at least a minimum: a
    /// quarter of the [`burst`](TokenBucket::burst), or up to 4 KiB if that is more. A waiting
    /// transfer therefore wakes up at most 128 times a second, at slow rates 32 times.
    pub fn available(&mut self, now: MonotonicTime) -> u64 {
        self.level = self.level_at(now);
        self.filled = self.filled.max(now);
        let whole = u64::try_from(self.level / SCALE).unwrap_or(0);
        if whole < self.grant { 0 } else { whole }
    }

    /// Removes the transferred bytes from the bucket. They may exceed
    /// [`available`](TokenBucket::available) if the input could not be cut: no bytes are available
    /// then until the debt is paid.
    pub fn take(&mut self, bytes: u64) {
        self.level = self.level.saturating_sub(i128::from(bytes) * SCALE);
    }

    /// Returns the time at which [`available`](TokenBucket::available) will return `want`, if
    /// nobody takes any bytes before; `now` if it already does. `want` is first limited to the
    /// range from the minimum of `available` to the burst.
    pub fn ready_at(&self, now: MonotonicTime, want: u64) -> MonotonicTime {
        let missing = i128::from(want.clamp(self.grant, self.burst)) * SCALE - self.level_at(now);
        if missing <= 0 {
            return now;
        }
        let rate = i128::from(self.rate);
        let wait = u64::try_from((missing + rate - 1) / rate).unwrap_or(u64::MAX);
        MonotonicTime(now.max(self.filled).0.saturating_add(wait))
    }

    /// Returns the level at `now`. If the clock went backwards, returns the last level.
    fn level_at(&self, now: MonotonicTime) -> i128 {
        let nanos = i128::from(now.0.saturating_sub(self.filled.0));
        let came = nanos.saturating_mul(i128::from(self.rate));
        self.level.saturating_add(came).min(i128::from(self.burst) * SCALE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::time::Duration;
    use proptest::prelude::*;

    const SECOND: u64 = 1_000_000_000;
    const RECORD: u64 = 16 * 1024;

    /// A random number generator: xorshift.
    struct TestRng(u64);

    impl TestRng {
        fn up_to(&mut self, most: u64) -> u64 {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            if most == u64::MAX { self.0 } else { self.0 % (most + 1) }
        }
    }

    /// Returns the largest number of bytes taken in any window of one second. Such a window begins
    /// and ends with a take, so only those are checked.
    fn busiest_second(takes: &[(MonotonicTime, u64)]) -> u64 {
        let (mut oldest, mut sum, mut most) = (0, 0, 0);
        for (at, bytes) in takes {
            sum += bytes;
            while takes[oldest].0.0 + SECOND <= at.0 {
                sum -= takes[oldest].1;
                oldest += 1;
            }
            most = most.max(sum);
        }
        most
    }

    /// Returns the smallest number of bytes taken in any whole second up to `end`. Such a window
    /// begins just after a take.
    fn idlest_second(takes: &[(MonotonicTime, u64)], end: MonotonicTime) -> u64 {
        let until = |time: u64| takes.partition_point(|(at, _)| at.0 <= time);
        let starts = takes.iter().map(|(at, _)| at.0).take_while(|at| at + SECOND <= end.0);
        starts.map(|at| takes[until(at)..until(at + SECOND)].iter().map(|(_, n)| n).sum()).min().unwrap_or(0)
    }

    /// Simulates transfers that always want bytes, for ten seconds. They wake at most `late` after
    /// bytes become available, and round the number of bytes up to a multiple of `whole`.
    fn run(
        rate: u64,
        takers: u64,
        late: Duration,
        whole: u64,
        seed: u64,
    ) -> (Vec<(MonotonicTime, u64)>, MonotonicTime) {
        let mut dice = TestRng(seed | 1);
        let mut now = MonotonicTime(7 * SECOND);
        let end = MonotonicTime(17 * SECOND);
        let mut bucket = TokenBucket::new(rate, now);
        let mut takes = Vec::new();
        while now <= end {
            for _ in 0..takers {
                let there = bucket.available(now);
                if there > 0 {
                    let moved = (1 + dice.up_to(there - 1)).next_multiple_of(whole);
                    bucket.take(moved);
                    takes.push((now, moved));
                }
            }
            let ready = bucket.ready_at(now, dice.up_to(rate));
            assert!(bucket.clone().available(ready) > 0);
            now = ready.max(now + Duration::from_nanos(dice.up_to(late.as_nanos() as u64)));
        }
        (takes, end)
    }

    #[test]
    fn any_second_is_within_five_percent() {
        for (seed, rate) in [3_000, 10_240, 100_000, 1 << 20, 36_000_000, 1 << 30].into_iter().enumerate() {
            for takers in [1, 2, 7, 64] {
                let (takes, end) = run(rate, takers, Duration::from_millis(2), 1, seed as u64 + 1000 * takers);
                let (low, high) = (idlest_second(&takes, end), busiest_second(&takes));
                assert!(high <= rate + rate / 20, "{rate} B/s, {takers} takers: {high}");
                assert!(low >= rate - rate / 20, "{rate} B/s, {takers} takers: {low}");
            }
        }
    }

    #[test]
    fn whole_records_fit_within_the_rate() {
        for rate in [900_000, 1 << 20, 10 << 20, 500 << 20] {
            for takers in [1, 5] {
                let (takes, end) = run(rate, takers, Duration::from_millis(1), RECORD, rate + takers);
                let (low, high) = (idlest_second(&takes, end), busiest_second(&takes));
                assert!(high <= rate + rate / 20, "{rate} B/s, {takers} takers: {high}");
                assert!(low >= rate - rate / 20, "{rate} B/s, {takers} takers: {low}");
            }
        }
        // At a slow rate one record is seconds: then it is exact on the whole, to one record.
        let (takes, _) = run(1000, 3, Duration::ZERO, RECORD, 5);
        let sum: u64 = takes.iter().map(|(_, bytes)| bytes).sum();
        assert!(sum <= 10_000 + RECORD + 31 && takes.len() == 1, "{takes:?}");
    }

    #[test]
    fn debt_is_paid_by_all_transfers() {
        let start = MonotonicTime(0);
        let mut bucket = TokenBucket::new(1000, start);
        bucket.take(3031);
        let ready = bucket.ready_at(start, 1);
        assert_eq!(ready, MonotonicTime(3 * SECOND + 31 * SECOND / 1000));
        assert_eq!(bucket.available(MonotonicTime(ready.0 - 1)), 0);
        assert_eq!(bucket.available(ready), 31);
    }

    #[test]
    fn unused_time_is_not_saved_up() {
        for rate in [1, 31, 1000, 1 << 20, u64::MAX] {
            let mut bucket = TokenBucket::new(rate, MonotonicTime(0));
            let full = bucket.available(MonotonicTime(0));
            assert_eq!(full, bucket.burst());
            assert!(full <= (rate / 20).max(1));
            assert_eq!(bucket.available(MonotonicTime(3600 * SECOND)), full);
            assert_eq!(bucket.available(MonotonicTime(u64::MAX)), full);
        }
    }

    #[test]
    fn slow_rates_wake_up_seldom() {
        for (rate, most) in
            [(1, 1), (20, 20), (100, 34), (1000, 33), (50_000, 33), (200_000, 50), (1 << 20, 129), (1 << 40, 129)]
        {
            let mut bucket = TokenBucket::new(rate, MonotonicTime(0));
            bucket.take(bucket.burst());
            let (mut now, mut wakes) = (MonotonicTime(0), 0);
            while now < MonotonicTime(10 * SECOND) {
                now = bucket.ready_at(now, 1);
                let there = bucket.available(now);
                assert!(there > 0, "a wake-up for nothing at {rate} B/s");
                bucket.take(there);
                wakes += 1;
            }
            assert!(wakes <= 10 * most, "{wakes} at {rate} B/s");
        }
    }

    #[test]
    fn clock_that_goes_backwards_adds_no_tokens() {
        let mut bucket = TokenBucket::new(1_000_000, MonotonicTime(SECOND));
        bucket.take(bucket.burst());
        assert_eq!(bucket.available(MonotonicTime(SECOND + SECOND / 100)), 10_000);
        bucket.take(10_000);
        assert_eq!(bucket.available(MonotonicTime(0)), 0);
        assert_eq!(bucket.available(MonotonicTime(SECOND + SECOND / 100)), 0);
        let ready = bucket.ready_at(MonotonicTime(0), 10_000);
        assert_eq!(ready, MonotonicTime(SECOND + SECOND / 50));
        assert_eq!(bucket.available(ready), 10_000);
    }

    #[test]
    fn largest_rates_do_not_overflow() {
        let mut bucket = TokenBucket::new(1, MonotonicTime(0));
        for _ in 0..3 {
            bucket.take(u64::MAX);
        }
        assert_eq!(bucket.ready_at(MonotonicTime(0), 1), MonotonicTime(u64::MAX));
        assert_eq!(bucket.available(MonotonicTime(u64::MAX)), 0);
        let mut bucket = TokenBucket::new(u64::MAX, MonotonicTime(0));
        bucket.take(u64::MAX);
        assert!(bucket.ready_at(MonotonicTime(0), u64::MAX) <= MonotonicTime(SECOND + SECOND / 16));
        assert_eq!(TokenBucket::new(0, MonotonicTime(0)).burst(), 1);
    }

    proptest! {
        #[test]
        fn promised_bytes_are_available_in_time(
            rate in prop_oneof![1..100u64, 1..10_000_000u64, any::<u64>()],
            ops in proptest::collection::vec((0..SECOND, 0..200_000u64, any::<u64>()), 1..20),
        ) {
            let (mut now, mut bucket) = (MonotonicTime(0), TokenBucket::new(rate, MonotonicTime(0)));
            for (pause, bytes, want) in ops {
                now = now + Duration::from_nanos(pause);
                bucket.take(bytes);
                let ready = bucket.ready_at(now, want);
                let want = want.clamp(1, bucket.burst());
                prop_assert!(ready >= now);
                if ready > now && ready < MonotonicTime(u64::MAX) {
                    prop_assert!(bucket.clone().available(MonotonicTime(ready.0 - 1)) < want.max(bucket.grant), "too late");
                }
                prop_assert!(ready == MonotonicTime(u64::MAX) || bucket.clone().available(ready) >= want, "too early");
            }
        }
    }
}
