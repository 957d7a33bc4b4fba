//! `--limit-rate`: the number of bytes that may be transferred now, over all connections together;
//! and `--rate`: the time at which the next transfer may start.
//!
//! ```
//! use core::time::Duration;
//! use haul_policy::MonotonicTime;
//! use haul_policy::byte_and_transfer_rates::TokenBucket;
//!
//! let start = MonotonicTime(0);
//! let mut bucket = TokenBucket::new(3_200_000, start);
//! assert_eq!(bucket.available(start), 100_000); // 1/32 s worth: full at first
//! bucket.remove(100_000);
//! assert_eq!(bucket.available(start), 0);
//! let ready = bucket.ready_at(start, 32_000);
//! assert_eq!(ready, start + Duration::from_millis(10));
//! assert_eq!(bucket.available(ready), 32_000);
//! ```
//!
//! The limiter is a token bucket with the capacity of 1/32 s at its rate. In any second, at most
//! `rate + rate/32` bytes are available, 3.1 % above the rate. A transfer may take more than
//! [`available`](TokenBucket::available) returns, because some input arrives in one piece. The
//! promised limit, 5 % above the rate, leaves room for this excess: from 0.9 MB/s on, for one TLS
//! record (16 KiB). A bucket of 1/20 s would leave no such room. A bucket of less than 1/32 s would
//! often be full before a busy thread takes bytes again. A full bucket gains nothing, so the
//! transfers would stay below the rate.
//! Transfers are not distinguished: the first to ask gets the available bytes. They share by
//! calling [`available`](TokenBucket::available) in turn and taking no more than their share.

use core::hash::Hash;
use core::time::Duration;
use std::collections::HashMap;

use crate::time::MonotonicTime;

/// The number of units in a byte. A [`TokenBucket`] counts in units of a billionth of a byte: at a
/// rate of N bytes per second, the bucket gains N units in each nanosecond. This is a whole number,
/// so that frequent calls lose nothing by rounding.
const UNITS_PER_BYTE: i128 = 1_000_000_000;

/// The smallest number of bytes, other than 0, that [`TokenBucket::available`] returns, unless the
/// capacity of the bucket is smaller. A system call and a wake-up for fewer bytes would cost more
/// than the bytes.
const SMALLEST_GRANT: u64 = 4096;

/// The token bucket of one rate limit (`--limit-rate`), shared by all transfers to which the limit
/// applies.
#[derive(Clone, Debug)]
pub struct TokenBucket {
    rate: u64,
    burst: u64,
    grant: u64,
    /// The number of available bytes × [`UNITS_PER_BYTE`] at the time `filled`; negative for a
    /// debt.
    level: i128,
    filled: MonotonicTime,
}

impl TokenBucket {
    /// Creates a full bucket for `bytes_per_second`; 0 counts as 1. For no limit, use no bucket.
    pub fn new(bytes_per_second: u64, now: MonotonicTime) -> TokenBucket {
        let rate = bytes_per_second.max(1);
        let burst = (rate / 32).max(1);
        let grant = (burst / 4).max(SMALLEST_GRANT).min(burst);
        TokenBucket { rate, burst, grant, level: i128::from(burst) * UNITS_PER_BYTE, filled: now }
    }

    /// Returns the bucket's capacity: the number of bytes that the rate allows in 1/32 s, at least
    /// one.
    pub fn burst(&self) -> u64 {
        self.burst
    }

    /// Returns the number of bytes that may be transferred now: 0, or at least a minimum. The
    /// minimum is a quarter of the [`burst`](TokenBucket::burst) (the bytes of 1/32 s) or 4 KiB,
    /// whichever is more, but not more than the burst. The bucket gains a quarter of the burst 128
    /// times a second, so a waiting transfer wakes up at most that often. At rates below 128 KiB/s,
    /// the minimum is the burst, and the transfer wakes up at most 32 times a second.
    pub fn available(&mut self, now: MonotonicTime) -> u64 {
        self.level = self.level_at(now);
        self.filled = self.filled.max(now);
        let whole = u64::try_from(self.level / UNITS_PER_BYTE).unwrap_or(0);
        if whole < self.grant { 0 } else { whole }
    }

    /// Removes the transferred bytes from the bucket. Their number may exceed
    /// [`available`](TokenBucket::available), because some input arrives in one piece. No bytes are
    /// then available until time has made up for the excess (the debt).
    pub fn remove(&mut self, bytes: u64) {
        self.level = self.level.saturating_sub(i128::from(bytes) * UNITS_PER_BYTE);
    }

    /// Returns the time from which [`available`](TokenBucket::available) returns at least `want`
    /// bytes, if no transfer takes bytes earlier. Returns `now` if these bytes are available
    /// already. `available` returns 0, or a number from its minimum to the
    /// [`burst`](TokenBucket::burst): at 3.2 MB/s, from 25,000 to 100,000. A `want` outside this
    /// range counts as the nearer end of the range.
    pub fn ready_at(&self, now: MonotonicTime, want: u64) -> MonotonicTime {
        let missing = i128::from(want.clamp(self.grant, self.burst)) * UNITS_PER_BYTE - self.level_at(now);
        if missing <= 0 {
            return now;
        }
        let rate = i128::from(self.rate);
        let wait = u64::try_from((missing + rate - 1) / rate).unwrap_or(u64::MAX);
        MonotonicTime(now.max(self.filled).0.saturating_add(wait))
    }

    /// Returns the time at which the debt of the bucket is paid, if no transfer takes bytes
    /// earlier; `None` without a debt. A debt is a level below zero.
    fn debt_paid_at(&self, now: MonotonicTime) -> Option<MonotonicTime> {
        let debt = u128::try_from(-self.level_at(now)).ok().filter(|debt| *debt > 0)?;
        let wait = u64::try_from(debt.div_ceil(u128::from(self.rate))).unwrap_or(u64::MAX);
        Some(MonotonicTime(now.max(self.filled).0.saturating_add(wait)))
    }

    /// Returns the level of the bucket at `now`: the number of available bytes ×
    /// [`UNITS_PER_BYTE`]. If the clock went backwards, returns the last level.
    fn level_at(&self, now: MonotonicTime) -> i128 {
        let nanos = i128::from(now.0.saturating_sub(self.filled.0));
        let came = nanos.saturating_mul(i128::from(self.rate));
        self.level.saturating_add(came).min(i128::from(self.burst) * UNITS_PER_BYTE)
    }
}

/// The longest time for which a transfer waits for its turn in a [`SharedBucket`] behind other
/// transfers.
const LONGEST_TURN: Duration = Duration::from_secs(5);

/// A [`TokenBucket`] that many transfers share. A transfer that finds no bytes gets a turn: the
/// time at which to ask again. Between two turns, the bucket gains the smallest number of bytes
/// that one request may get, usually a quarter of the bucket's capacity. If all transfers had the
/// same turn, the first one would take all bytes. A transfer waits at most 5 s for the turns of
/// others.
///
/// ```
/// use core::time::Duration;
/// use haul_policy::MonotonicTime;
/// use haul_policy::byte_and_transfer_rates::SharedBucket;
///
/// let now = MonotonicTime(0);
/// let mut bucket = SharedBucket::new(3_200_000, now);
/// let mut turns = [MonotonicTime(0); 2];
/// assert_eq!(bucket.request_bytes(u64::MAX, now, &mut turns[0]), Ok(100_000)); // all bytes of the bucket
/// bucket.remove(100_000);
/// let [first, second] = turns.each_mut().map(|turn| bucket.request_bytes(1 << 20, now, turn).unwrap_err());
/// assert_eq!(second.since(first), first.since(now));
/// assert_eq!(bucket.request_bytes(1 << 20, now, &mut turns[0]), Err(first)); // the turn is kept
/// assert_eq!(bucket.request_bytes(1 << 20, first, &mut turns[0]), Ok(25_000)); // a quarter of that
/// ```
#[derive(Clone, Debug)]
pub struct SharedBucket {
    bucket: TokenBucket,
    next_turn: MonotonicTime,
}

impl SharedBucket {
    /// Creates a full bucket for `bytes_per_second`; 0 counts as 1. `now` is the current time.
    pub fn new(bytes_per_second: u64, now: MonotonicTime) -> Self {
        SharedBucket { bucket: TokenBucket::new(bytes_per_second, now), next_turn: now }
    }

    /// Returns the number of bytes that a transfer may take now, at most `want`. If the bucket is
    /// empty, gives the transfer a turn: the time at which it should ask again. `turn` is the
    /// transfer's last turn; time 0 for a transfer that had none. A transfer that asks before its
    /// turn gets the same turn again, not a later one.
    ///
    /// # Errors
    /// Returns the time of the transfer's turn, and stores it in `turn`, if the transfer may take
    /// no bytes now.
    pub fn request_bytes(
        &mut self,
        want: u64,
        now: MonotonicTime,
        turn: &mut MonotonicTime,
    ) -> Result<u64, MonotonicTime> {
        if now < *turn {
            return Err(*turn);
        }
        let available = self.bucket.available(now);
        if available > 0 {
            return Ok(want.min(available));
        }
        let TokenBucket { grant, rate, .. } = self.bucket;
        let nanos = u128::from(grant) * 1_000_000_000 / u128::from(rate);
        let each = Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX));
        *turn = self.bucket.ready_at(now, grant).max(self.next_turn.min(now + LONGEST_TURN));
        self.next_turn = *turn + each;
        Err(*turn)
    }

    /// Returns the time before which no transfer should start, because transfers took more bytes
    /// than were available. `None` if a transfer may start now. A small body arrives together with
    /// its head and cannot be delayed; the start of the next transfer is delayed instead.
    pub fn debt_until(&self, now: MonotonicTime) -> Option<MonotonicTime> {
        self.bucket.debt_paid_at(now)
    }

    /// Removes tokens for `bytes` transferred bytes from the bucket.
    pub fn remove(&mut self, bytes: u64) {
        self.bucket.remove(bytes);
    }
}

/// The longest time by which a request may start late without shifting the starts after it. A
/// waiting thread wakes up late by a fraction of a millisecond, and by more on a busy machine. If
/// this shifted the later starts, the rate would be lower than the user's.
const MAX_CATCH_UP: Duration = Duration::from_millis(100);

/// The longest interval between two starts: 136 years. With this limit, every clock can represent
/// the time of the next start.
const LONGEST_INTERVAL: Duration = Duration::from_secs(1 << 32);

/// The times at which requests may start: once in each interval, on average (`--rate`).
///
/// A request that starts at most 100 ms late does not delay later requests. A request that starts
/// later than that begins the schedule anew: the next interval begins with it.
///
/// ```
/// use core::time::Duration;
/// use haul_policy::MonotonicTime;
/// use haul_policy::byte_and_transfer_rates::StartSchedule;
///
/// let (zero, interval) = (MonotonicTime(0), Duration::from_millis(500));
/// let mut schedule = StartSchedule::default();
/// assert_eq!(schedule.record_start(zero, interval), zero + interval);
/// let late = zero + Duration::from_millis(502);
/// assert_eq!(schedule.record_start(late, interval), zero + interval * 2);
/// let much_later = zero + Duration::from_secs(9);
/// assert_eq!(schedule.record_start(much_later, interval), much_later + interval);
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct StartSchedule {
    next: Option<MonotonicTime>,
}

impl StartSchedule {
    /// Returns the time before which no request may start; `None` before the first start.
    pub fn next_start(&self) -> Option<MonotonicTime> {
        self.next
    }

    /// Records that a request starts now. Returns the time at which the next request may start, if
    /// requests may start once in each `interval`.
    pub fn record_start(&mut self, now: MonotonicTime, interval: Duration) -> MonotonicTime {
        let from = self.next.filter(|next| *next + MAX_CATCH_UP >= now).unwrap_or(now);
        let next = from + interval.min(LONGEST_INTERVAL);
        self.next = Some(next);
        next
    }
}

/// The maximum number of hosts in [`HostSchedules`], which limits its memory. If there are more,
/// the quarter of the hosts on which the next request may start earliest is dropped.
const MAX_HOSTS: usize = 1 << 16;

/// A [`StartSchedule`] for each host `K`, for at most 65,536 hosts. Hosts whose next start time has
/// passed are dropped from time to time.
#[derive(Debug)]
pub struct HostSchedules<K> {
    interval: Duration,
    hosts: HashMap<K, StartSchedule>,
    /// The number of remembered hosts at which the next call drops the hosts whose next start time
    /// has passed.
    sweep_at: usize,
}

impl<K: Hash + Eq + Clone> HostSchedules<K> {
    /// Creates schedules that allow each host one request in each interval.
    pub fn new(interval: Duration) -> Self {
        HostSchedules { interval, hosts: HashMap::new(), sweep_at: 64 }
    }

    /// Returns the time before which no request may start on `host`; `None` if no start on this
    /// host is remembered.
    pub fn next_start(&self, host: &K) -> Option<MonotonicTime> {
        self.hosts.get(host)?.next_start()
    }

    /// Records that a request starts on `host` now. Returns the time at which the next request may
    /// start there.
    pub fn record_start(&mut self, host: &K, now: MonotonicTime) -> MonotonicTime {
        if let Some(schedule) = self.hosts.get_mut(host) {
            return schedule.record_start(now, self.interval);
        }
        if self.hosts.len() >= self.sweep_at {
            self.remove_expired(now);
        }
        self.hosts.entry(host.clone()).or_default().record_start(now, self.interval)
    }

    /// Drops the hosts whose next start time has passed. If [`MAX_HOSTS`] or more hosts are left,
    /// also drops a quarter of them.
    fn remove_expired(&mut self, now: MonotonicTime) {
        let is_needed =
            |schedule: &StartSchedule, now| schedule.next_start().is_some_and(|next| next + MAX_CATCH_UP >= now);
        self.hosts.retain(|_, schedule| is_needed(schedule, now));
        if self.hosts.len() >= MAX_HOSTS {
            let mut times: Vec<_> = self.hosts.values().filter_map(StartSchedule::next_start).collect();
            let (_, quarter, _) = times.select_nth_unstable(MAX_HOSTS / 4);
            let quarter = *quarter;
            self.hosts.retain(|_, schedule| schedule.next_start().is_some_and(|next| next > quarter));
        }
        self.sweep_at = (self.hosts.len() * 2).clamp(64, MAX_HOSTS);
    }

    /// Returns the number of remembered hosts.
    pub fn host_count(&self) -> usize {
        self.hosts.len()
    }
}

#[cfg(test)]
mod tests;
