//! `--limit-rate`: how many bytes may be moved now, over all connections together.
//!
//! ```
//! use core::time::Duration;
//! use haul_policy::Time;
//! use haul_policy::rate::Bucket;
//!
//! let start = Time(0);
//! let mut bucket = Bucket::new(3_200_000, start);
//! assert_eq!(bucket.available(start), 100_000); // 1/32 s worth: full at first
//! bucket.take(100_000);
//! assert_eq!(bucket.available(start), 0);
//! let ready = bucket.ready_at(start, 32_000);
//! assert_eq!(ready, start + Duration::from_millis(10));
//! assert_eq!(bucket.available(ready), 32_000);
//! ```
//!
//! A token bucket that holds 1/32 s worth of its rate. In any second at most `rate + rate/32` bytes go, and what takers took
//! beyond their grant at its end: 3.1 % above the rate. The rest of the 5 % that are promised is left to those
//! overshoots: one TLS record (16 KiB) fits in at 0.9 MB/s and more. A bucket of 1/20 s would leave nothing; a smaller one loses rate each
//! time a busy thread is late by more than it holds, as time that nobody used is never made up for.
//!
//! Takers are not told apart: who asks first gets what is there. They share by taking turns at [`available`](Bucket::available), each of
//! them taking no more than its share.

use crate::time::Time;

/// Fractions of bytes are kept as bytes × nanoseconds, so that nothing is lost by rounding however often it is asked.
const SCALE: i128 = 1_000_000_000;

/// Grants below this are held back while the bucket can hold more: a system call and a wake-up for a few bytes cost more than
/// the bytes.
const SMALLEST_GRANT: u64 = 4096;

/// The tokens of one rate limit, shared by all it applies to.
#[derive(Clone, Debug)]
pub struct Bucket {
    rate: u64,
    burst: u64,
    grant: u64,
    /// Bytes × [`SCALE`] as of `filled`; below zero: debt.
    level: i128,
    filled: Time,
}

impl Bucket {
    /// A full bucket for this many bytes per second. 0 counts as 1; to have no limit, have no bucket.
    pub fn new(bytes_per_second: u64, now: Time) -> Bucket {
        let rate = bytes_per_second.max(1);
        let burst = (rate / 32).max(1);
        let grant = (burst / 4).max(SMALLEST_GRANT).min(burst);
        Bucket { rate, burst, grant, level: i128::from(burst) * SCALE, filled: now }
    }

    /// The most that is ever there at once: 1/32 s worth, at least one byte.
    pub fn burst(&self) -> u64 {
        self.burst
    }

    /// Bytes that may be taken now: none, or at least the smallest grant. That is a quarter of the [`burst`](Bucket::burst), or up to 4 KiB
    /// if that is more: whoever waits wakes up at most 128 times a second, at slow rates 32 times.
    pub fn available(&mut self, now: Time) -> u64 {
        self.level = self.level_at(now);
        self.filled = self.filled.max(now);
        let whole = u64::try_from(self.level / SCALE).unwrap_or(0);
        if whole < self.grant { 0 } else { whole }
    }

    /// Takes what was moved. It may be more than was [`available`](Bucket::available), where what arrives cannot be cut: the debt is paid
    /// before anybody gets more.
    pub fn take(&mut self, bytes: u64) {
        self.level = self.level.saturating_sub(i128::from(bytes) * SCALE);
    }

    /// When [`available`](Bucket::available) will give `want`, if nobody takes before; now, if it is there. What is more than the burst counts as the
    /// burst, what is less than the smallest grant as that.
    pub fn ready_at(&self, now: Time, want: u64) -> Time {
        let missing = i128::from(want.clamp(self.grant, self.burst)) * SCALE - self.level_at(now);
        if missing <= 0 {
            return now;
        }
        let rate = i128::from(self.rate);
        let wait = u64::try_from((missing + rate - 1) / rate).unwrap_or(u64::MAX);
        Time(now.max(self.filled).0.saturating_add(wait))
    }

    /// A clock that goes backwards stands still.
    fn level_at(&self, now: Time) -> i128 {
        let nanos = i128::from(now.0.saturating_sub(self.filled.0));
        let came = nanos.saturating_mul(i128::from(self.rate));
        self.level.saturating_add(came).min(i128::from(self.burst) * SCALE)
    }
}
