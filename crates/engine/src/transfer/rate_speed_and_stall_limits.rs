//! The limits on the speed of a transfer: a maximum rate, a minimum speed, and a time limit on
//! silence.

use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use haul_policy::MonotonicTime;
use haul_policy::byte_and_transfer_rates::{SharedBucket, TokenBucket};
use haul_policy::speed::{SpeedVerdict, SpeedWatch};

use crate::fork::{ForkSafeLock, ForkSafeWriteGuard};
use crate::ignore_poison::IgnorePoison;
use crate::interrupt_callback::{InterruptCallback, sleep_until};
use crate::request::{RequestOptions, SpeedLimit, StallLimit};
use crate::time_conversions;
use crate::{Error, ErrorKind, Result};

/// A rate limit, in bytes of content per second, shared by all transfers whose options contain this
/// limit. It applies to each direction separately. Clones share the limit.
///
/// ```
/// use haul::RequestOptions;
/// use haul::request::TotalRateLimit;
///
/// let total = TotalRateLimit::new(1 << 20);
/// let one = RequestOptions { limit_rate_total: Some(total.clone()), ..RequestOptions::default() };
/// assert_eq!(one.limit_rate_total.map(|total| total.bytes_per_second()), Some(1 << 20));
/// ```
#[derive(Clone)]
pub struct TotalRateLimit(Arc<TotalBuckets>);

/// The token buckets of a [`TotalRateLimit`], which measure the transferred bytes in each
/// direction.
struct TotalBuckets {
    rate: u64,
    received: ForkSafeLock<SharedBucket>,
    sent: ForkSafeLock<SharedBucket>,
}

impl TotalRateLimit {
    /// Makes a limit of this number of bytes per second; 0 counts as 1.
    #[must_use]
    pub fn new(bytes_per_second: u64) -> Self {
        let bucket = || {
            ForkSafeLock::new(SharedBucket::new(bytes_per_second, time_conversions::to_monotonic_time(Instant::now())))
        };
        Self(Arc::new(TotalBuckets { rate: bytes_per_second, received: bucket(), sent: bucket() }))
    }

    /// Returns the maximum number of content bytes per second.
    #[must_use]
    pub fn bytes_per_second(&self) -> u64 {
        self.0.rate
    }

    /// Returns the time before which no transfer should start, because too many bytes were received
    /// under this limit. (Small bodies that arrive together with their heads can exceed the limit.)
    /// Returns `None` if a transfer may start now.
    #[must_use]
    pub fn wait_until(&self, now: Instant) -> Option<Instant> {
        self.lock_receive_bucket()
            .debt_until(time_conversions::to_monotonic_time(now))
            .map(time_conversions::to_instant)
    }

    /// Blocks until a transfer may start. Meanwhile, calls `interrupt` at intervals.
    ///
    /// # Errors
    /// [`ErrorKind::Interrupted`] if `interrupt` returns true.
    pub fn wait(&self, interrupt: Option<&InterruptCallback>) -> Result<()> {
        let now = Instant::now();
        sleep_until(self.wait_until(now).unwrap_or(now), interrupt)
    }

    pub(crate) fn lock_receive_bucket(&self) -> ForkSafeWriteGuard<'_, SharedBucket> {
        self.0.received.write()
    }

    pub(crate) fn lock_send_bucket(&self) -> ForkSafeWriteGuard<'_, SharedBucket> {
        self.0.sent.write()
    }
}

impl fmt::Debug for TotalRateLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("TotalRateLimit").field(&self.0.rate).finish()
    }
}

/// The speed limits of a transfer: the maximum rate, the minimum speed and the time limit on
/// silence. A transfer and the parts of its split download share one maximum rate.
#[derive(Default)]
pub(super) struct RateSpeedAndStallLimits {
    rate: Option<Arc<Mutex<TokenBucket>>>,
    total: Option<Box<SharedRate>>,
    /// The maximum time for which no byte may move in either direction, in milliseconds; 0 for no
    /// limit.
    stall_ms: u32,
    /// True if `stall_ms`, the limit on the time without any byte, also applies while the head of
    /// the response is awaited.
    stall_awaits_head: bool,
    /// True if the request has a write timeout. The error at a timeout then says that the server
    /// accepted no data, if the request was being sent.
    has_write_timeout: bool,
    min_speed: Option<Box<MinSpeedCheck>>,
    silence: Option<SilenceLimit>,
}

/// A rate limit that the transfer shares with other transfers, and the transfer's last turn in it.
struct SharedRate {
    limit: TotalRateLimit,
    /// The last turn in the bucket of received bytes; time 0 before the first turn.
    turn: MonotonicTime,
}

impl SharedRate {
    fn new(limit: TotalRateLimit) -> Box<Self> {
        Box::new(Self { limit, turn: MonotonicTime(0) })
    }

    /// Returns the number of bytes that may be received now, at most `want`.
    ///
    /// # Errors
    /// Returns the time of the transfer's turn if no bytes may be received now.
    fn request_bytes(&mut self, want: u64, now: Instant) -> Result<u64, Instant> {
        self.limit
            .lock_receive_bucket()
            .request_bytes(want, time_conversions::to_monotonic_time(now), &mut self.turn)
            .map_err(time_conversions::to_instant)
    }
}

/// The limits on the time for which the server may be silent, and the time of the last activity on
/// the connection.
struct SilenceLimit {
    /// The maximum time of silence while a body is being received, in milliseconds; 0 for no limit.
    body_ms: u32,
    /// The maximum time of silence while the head is awaited, in milliseconds; 0 for no limit.
    head_ms: u32,
    /// The maximum time of silence while bytes of the request wait until the server accepts them,
    /// in milliseconds; 0 for no limit.
    send_ms: u32,
    since: Instant,
    is_paused: bool,
    has_head: bool,
    /// True if bytes of the request wait until the server accepts them.
    is_send_blocked: bool,
    /// True if the source of the request's content has no bytes now.
    is_starved: bool,
}

/// Converts a time limit to milliseconds. Returns at least 1, because 0 means no limit.
fn milliseconds(limit: Duration) -> u32 {
    u32::try_from(limit.as_millis()).unwrap_or(u32::MAX).max(1)
}

impl SilenceLimit {
    /// Makes the limits for an exchange that begins now; `None` if silence is not limited.
    fn for_exchange(options: &RequestOptions, limits: &RateSpeedAndStallLimits, now: Instant) -> Option<Self> {
        let read = options.read_timeout.map(milliseconds);
        let on_body = Some(limits.stall_ms).filter(|limit| *limit > 0);
        let on_head = on_body.filter(|_| limits.stall_awaits_head);
        let lowest = |stall: Option<u32>| match (read, stall) {
            (Some(read), Some(stall)) => read.min(stall),
            (read, stall) => read.or(stall).unwrap_or(0),
        };
        let (body_ms, head_ms) = (lowest(on_body), lowest(on_head));
        let write = options.write_timeout.map(milliseconds);
        let send_ms = write.map_or(body_ms, |write| on_body.map_or(write, |stall| write.min(stall)));
        let new = Self {
            body_ms,
            head_ms,
            send_ms,
            since: now,
            is_paused: false,
            has_head: false,
            is_send_blocked: false,
            is_starved: false,
        };
        (body_ms > 0 || send_ms > 0).then_some(new)
    }
}

/// The minimum speed of a transfer, and the period over which the speed is currently measured.
struct MinSpeedCheck {
    watch: SpeedWatch,
    /// The number of bytes received since the measurement began.
    received: u64,
    next_check: Instant,
    is_paused: bool,
    text: String,
}

impl MinSpeedCheck {
    fn new(limit: SpeedLimit, now: Instant) -> Self {
        Self {
            watch: SpeedWatch::new(limit.bytes_per_second, limit.time, time_conversions::to_monotonic_time(now)),
            received: 0,
            next_check: now,
            is_paused: false,
            text: format!(
                "the transfer was slower than {} bytes a second for {} seconds",
                limit.bytes_per_second,
                limit.time.as_secs()
            ),
        }
    }
}

/// The number of body bytes that a driver (the code that receives the response) may receive now, or
/// the reason why it must wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReceiveCredit {
    /// At most this number of bytes may be received. The number is at least one.
    Bytes(u64),
    /// No bytes may be received until the sink wakes the driver.
    Full,
    /// No bytes may be received before this time, because of the rate limit.
    Until(Instant),
}

impl RateSpeedAndStallLimits {
    pub(super) fn new(options: &RequestOptions, now: Instant) -> Self {
        let rate = options
            .limit_rate
            .map(|rate| Arc::new(Mutex::new(TokenBucket::new(rate, time_conversions::to_monotonic_time(now)))));
        let mut limits = Self { rate, ..Self::default() };
        limits.add(options.limit_rate_total.as_ref(), options.stall);
        limits
    }

    /// Makes the limits for a further part of the same split download. All parts together have one
    /// maximum rate.
    pub(super) fn sharing_rate(&self) -> Self {
        let Self { rate, total, stall_ms, stall_awaits_head, .. } = self;
        let total = total.as_ref().map(|total| SharedRate::new(total.limit.clone()));
        let rate = rate.clone();
        Self { rate, total, stall_ms: *stall_ms, stall_awaits_head: *stall_awaits_head, ..Self::default() }
    }

    /// Restarts the measurement of the minimum speed and of the server's silence for an exchange
    /// that begins now.
    pub(super) fn begin_exchange(&mut self, options: &RequestOptions, now: Instant) {
        self.min_speed = options.speed_limit.map(|limit| Box::new(MinSpeedCheck::new(limit, now)));
        self.has_write_timeout = options.write_timeout.is_some();
        self.silence = SilenceLimit::for_exchange(options, self, now);
    }

    /// Adds the limits of the fleet or batch (a group of parallel transfers) to which the transfer
    /// belongs. Limits in the options of the request take precedence.
    pub(super) fn add(&mut self, total: Option<&TotalRateLimit>, stall: Option<StallLimit>) {
        self.total = self.total.take().or_else(|| total.cloned().map(SharedRate::new));
        if let Some(stall) = stall.filter(|_| self.stall_ms == 0) {
            (self.stall_ms, self.stall_awaits_head) = (milliseconds(stall.time), stall.awaits_head);
        }
    }

    /// Returns the maximum rate that this transfer shares with other transfers; `None` if there is
    /// none.
    pub(super) fn total(&self) -> Option<&TotalRateLimit> {
        self.total.as_ref().map(|total| &total.limit)
    }

    /// Records that the head has arrived, so that the limits for the body apply from `now` on.
    pub(super) fn on_head(&mut self, now: Instant) {
        self.on_received(0, now);
        if let Some(silence) = &mut self.silence {
            silence.has_head = true;
        }
    }

    /// Records whether bytes of the request wait because the server accepts no more at present
    /// (`is_send_blocked`).
    pub(super) fn set_send_blocked(&mut self, is_send_blocked: bool, now: Instant) {
        if let Some(silence) = self.silence.as_mut().filter(|silence| silence.is_send_blocked != is_send_blocked) {
            silence.is_send_blocked = is_send_blocked;
            silence.since = now;
        }
    }

    /// Records whether the source of the request's content has no bytes at present. If it has none,
    /// the server cannot respond, so the limits on the server's silence do not apply.
    pub(super) fn set_starved(&mut self, is_starved: bool, now: Instant) {
        if let Some(silence) = self.silence.as_mut().filter(|silence| silence.is_starved != is_starved) {
            silence.is_starved = is_starved;
            silence.since = now;
        }
    }

    /// Replaces the minimum speed with `limit`, and restarts the measurement of the speed.
    pub(super) fn set_min_speed(&mut self, limit: SpeedLimit, now: Instant) {
        self.min_speed = Some(Box::new(MinSpeedCheck::new(limit, now)));
    }

    /// Removes the minimum speed from these limits, and returns it as limits of their own, whose
    /// measurement starts at `now`. The caller applies them to several transfers together. The
    /// maximum rate and the limit on silence remain in `self`.
    pub(super) fn take_min_speed(&mut self, now: Instant) -> Self {
        let mut taken = Self { min_speed: self.min_speed.take(), ..Self::default() };
        taken.set_paused(false, now);
        taken
    }

    /// Returns true if a maximum rate applies to the transfer.
    pub(super) fn is_limited(&self) -> bool {
        self.rate.is_some() || self.total.is_some()
    }

    /// Returns the number of bytes that may be received now under the maximum rate. The result is
    /// at most `credit`, the number of bytes that the sink accepts.
    pub(super) fn allow(&mut self, credit: u64, now: Instant) -> ReceiveCredit {
        let allowed = match &self.rate {
            Some(bucket) if credit > 0 => {
                let mut bucket = bucket.lock().ignore_poison();
                let time = time_conversions::to_monotonic_time(now);
                match bucket.available(time) {
                    0 => ReceiveCredit::Until(time_conversions::to_instant(bucket.ready_at(time, credit))),
                    tokens => ReceiveCredit::Bytes(credit.min(tokens)),
                }
            }
            _ if credit == 0 => ReceiveCredit::Full,
            _ => ReceiveCredit::Bytes(credit),
        };
        let allowed = match (&mut self.total, allowed) {
            (Some(total), ReceiveCredit::Bytes(credit)) => match total.request_bytes(credit, now) {
                Ok(bytes) => ReceiveCredit::Bytes(bytes),
                Err(turn) => ReceiveCredit::Until(turn),
            },
            (_, allowed) => allowed,
        };
        self.set_paused(!matches!(allowed, ReceiveCredit::Bytes(_)), now);
        allowed
    }

    /// Returns the number of bytes that may be received together with a response head: at least
    /// one, and at most `credit`, the number of bytes that the sink accepts. The transfer's own
    /// maximum rate does not delay these bytes. A rate limit that the transfer shares with others
    /// delays them, because such a limit would otherwise have no effect on small bodies.
    pub(super) fn allow_with_head(&mut self, mut credit: u64, now: Instant) -> ReceiveCredit {
        if let Some(total) = &mut self.total {
            let asked = total.request_bytes(credit.max(1), now);
            self.set_paused(asked.is_err(), now);
            match asked {
                Ok(bytes) => credit = credit.min(bytes),
                Err(turn) => return ReceiveCredit::Until(turn),
            }
        }
        if let Some(bucket) = &self.rate {
            let time = time_conversions::to_monotonic_time(now);
            credit = credit.min(bucket.lock().ignore_poison().available(time));
        }
        ReceiveCredit::Bytes(credit.max(1))
    }

    /// Pauses the minimum speed and the time limit on silence if `paused` is true, and resumes them
    /// otherwise. They are paused while the transfer does not wait for the server.
    pub(super) fn set_paused(&mut self, paused: bool, now: Instant) {
        if let Some(silence) = self.silence.as_mut().filter(|silence| silence.is_paused != paused) {
            silence.is_paused = paused;
            silence.since = now;
        }
        if let Some(min_speed) = self.min_speed.as_mut().filter(|min_speed| min_speed.is_paused != paused) {
            min_speed.is_paused = paused;
            let time = time_conversions::to_monotonic_time(now);
            if paused { min_speed.watch.on_pause(time) } else { min_speed.watch.on_resume(time) }
        }
    }

    /// Counts `bytes` received bytes in the maximum rate, the minimum speed and the limit on
    /// silence.
    pub(super) fn on_received(&mut self, bytes: u64, now: Instant) {
        self.on_activity(now);
        self.add_to_measurement(bytes);
        if let Some(bucket) = &self.rate {
            bucket.lock().ignore_poison().remove(bytes);
        }
        if let Some(total) = &self.total {
            total.limit.lock_receive_bucket().remove(bytes);
        }
    }

    /// Counts `bytes` received bytes in the minimum speed only.
    pub(super) fn add_to_measurement(&mut self, bytes: u64) {
        if let Some(min_speed) = &mut self.min_speed {
            min_speed.received += bytes;
        }
    }

    /// Records that bytes were sent or received, which restarts the time limit on silence.
    pub(super) fn on_activity(&mut self, now: Instant) {
        if let Some(silence) = &mut self.silence {
            silence.since = now;
        }
    }

    /// Returns the time at which [`RateSpeedAndStallLimits::check`] must be called next. Returns
    /// `None` if there is no limit to check.
    pub(super) fn next_check(&self) -> Option<Instant> {
        time_conversions::earliest(
            self.min_speed.as_ref().map(|min_speed| min_speed.next_check),
            self.silence_deadline(),
        )
    }

    /// Returns the time at which the server's silence exceeds the limit. Returns `None` if silence
    /// is not limited.
    pub(super) fn silence_deadline(&self) -> Option<Instant> {
        self.silence.as_ref()?.since.checked_add(self.silence_limit()?)
    }

    /// Returns the maximum time for which the server may be silent in the current state of the
    /// exchange; `None` if there is no limit.
    fn silence_limit(&self) -> Option<Duration> {
        let silence = self.silence.as_ref()?;
        let ms = match silence.is_send_blocked {
            true => silence.send_ms,
            // The server cannot respond, so its own limits do not apply.
            false if silence.is_starved && !silence.has_head && !self.stall_awaits_head => 0,
            false if silence.is_starved => self.stall_ms,
            false if silence.has_head => silence.body_ms,
            false => silence.head_ms,
        };
        (ms > 0 && !silence.is_paused).then(|| Duration::from_millis(ms.into()))
    }

    /// Returns true if there is a minimum speed or a limit on silence, so that the server's speed
    /// must be measured.
    pub(super) fn is_measured(&self) -> bool {
        self.min_speed.is_some() || self.silence.is_some()
    }

    /// Returns true if the time for which the server may be silent is limited.
    pub(super) fn has_silence_limit(&self) -> bool {
        self.silence.is_some()
    }

    /// Returns an error if the transfer was too slow, or the server silent, for too long; otherwise
    /// `None`.
    pub(super) fn check(&mut self, now: Instant) -> Option<Error> {
        if self.silence_deadline().is_some_and(|at| at <= now) {
            let limit = self.silence_limit().unwrap_or_default();
            let is_send_blocked = self.silence.as_ref().is_some_and(|silence| silence.is_send_blocked);
            let what = if is_send_blocked && self.has_write_timeout { "took no data" } else { "was silent" };
            return Some(Error::new(ErrorKind::Timeout, format!("the server {what} for {limit:?}")));
        }
        let min_speed = self.min_speed.as_mut().filter(|min_speed| min_speed.next_check <= now)?;
        let time = time_conversions::to_monotonic_time(now);
        min_speed.watch.set_received_bytes(time, min_speed.received);
        match min_speed.watch.check(time) {
            SpeedVerdict::Fine { next_look } => {
                min_speed.next_check = time_conversions::to_instant(next_look);
                None
            }
            SpeedVerdict::TooSlow => Some(Error::new(ErrorKind::Timeout, min_speed.text.clone())),
        }
    }
}

#[cfg(test)]
mod tests;
