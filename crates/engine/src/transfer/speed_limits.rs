//! The limits on the speed of a transfer: a maximum rate, a minimum speed, and a time limit on
//! silence.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use haul_policy::rate::TokenBucket;
use haul_policy::speed::{SpeedVerdict, SpeedWatch};

use crate::clock;
use crate::ignore_poison::IgnorePoison;
use crate::request::{RequestOptions, SpeedLimit};
use crate::{Error, ErrorKind};

/// The speed limits of a transfer: the maximum rate, the minimum speed and the time for which the
/// server may be silent. A transfer and the parts of its split download share one maximum rate.
#[derive(Default)]
pub(super) struct SpeedLimits {
    rate: Option<Arc<Mutex<TokenBucket>>>,
    min_speed: Option<Box<MinSpeed>>,
    silence: Option<SilenceLimit>,
}

/// The time for which the server may be silent, and the time when the connection was last active.
struct SilenceLimit {
    limit: Duration,
    since: Instant,
    is_paused: bool,
}

/// The minimum speed of a transfer, and the current period over which the speed is measured.
struct MinSpeed {
    watch: SpeedWatch,
    next_check: Instant,
    is_paused: bool,
    text: String,
}

impl MinSpeed {
    fn new(limit: SpeedLimit, now: Instant) -> Self {
        Self {
            watch: SpeedWatch::new(limit.bytes_per_second, limit.time, clock::policy_time(now)),
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

/// The number of body bytes that a driver may receive now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReceiveCredit {
    /// At most this number of bytes may be received. The number is at least one.
    Bytes(u64),
    /// No bytes may be received until the sink wakes the driver.
    Full,
    /// No bytes may be received before this time, because of the rate limit.
    Until(Instant),
}

impl SpeedLimits {
    pub(super) fn new(options: &RequestOptions, now: Instant) -> Self {
        let rate = options.limit_rate.map(|rate| Arc::new(Mutex::new(TokenBucket::new(rate, clock::policy_time(now)))));
        Self { rate, min_speed: None, silence: None }
    }

    /// Makes speed limits for a further part of the same split download. The parts share one
    /// maximum rate.
    pub(super) fn sharing_rate(&self) -> Self {
        Self { rate: self.rate.clone(), min_speed: None, silence: None }
    }

    /// Restarts the measurement of the minimum speed and of the server's silence for an exchange
    /// that begins now.
    pub(super) fn begin_exchange(&mut self, options: &RequestOptions, now: Instant) {
        self.min_speed = options.speed_limit.map(|limit| Box::new(MinSpeed::new(limit, now)));
        self.silence = options.read_timeout.map(|limit| SilenceLimit { limit, since: now, is_paused: false });
    }

    /// Replaces the minimum speed by `limit`, and restarts the measurement.
    pub(super) fn set_min_speed(&mut self, limit: SpeedLimit, now: Instant) {
        self.min_speed = Some(Box::new(MinSpeed::new(limit, now)));
    }

    /// Returns true if the transfer has a maximum rate.
    pub(super) fn is_limited(&self) -> bool {
        self.rate.is_some()
    }

    /// Returns how many bytes the maximum rate allows to receive now. It is at most `credit`, the
    /// number that the sink accepts.
    pub(super) fn allow(&mut self, credit: u64, now: Instant) -> ReceiveCredit {
        let time = clock::policy_time(now);
        let allowed = match &self.rate {
            Some(bucket) if credit > 0 => {
                let mut bucket = bucket.lock().ignore_poison();
                match bucket.available(time) {
                    0 => ReceiveCredit::Until(clock::instant(bucket.ready_at(time, credit))),
                    tokens => ReceiveCredit::Bytes(credit.min(tokens)),
                }
            }
            _ if credit == 0 => ReceiveCredit::Full,
            _ => ReceiveCredit::Bytes(credit),
        };
        self.set_paused(!matches!(allowed, ReceiveCredit::Bytes(_)), now);
        allowed
    }

    /// Returns the number of body bytes, at most `credit`, that may arrive together with a head.
    /// They need not wait for the maximum rate.
    pub(super) fn allow_with_head(&self, credit: u64, now: Instant) -> u64 {
        let Some(bucket) = &self.rate else { return credit };
        credit.min(bucket.lock().ignore_poison().available(clock::policy_time(now)))
    }

    /// Pauses (`paused`) or resumes the minimum speed and the time limit on silence. They are
    /// paused while the transfer does not wait for the server.
    pub(super) fn set_paused(&mut self, paused: bool, now: Instant) {
        if let Some(silence) = self.silence.as_mut().filter(|silence| silence.is_paused != paused) {
            silence.is_paused = paused;
            silence.since = now;
        }
        if let Some(min_speed) = self.min_speed.as_mut().filter(|min_speed| min_speed.is_paused != paused) {
            min_speed.is_paused = paused;
            let time = clock::policy_time(now);
            if paused { min_speed.watch.paused(time) } else { min_speed.watch.resumed(time) }
        }
    }

    /// Records for all limits that `bytes` bytes have arrived.
    pub(super) fn on_received(&mut self, bytes: u64, now: Instant) {
        self.on_activity(now);
        if let Some(bucket) = &self.rate {
            bucket.lock().ignore_poison().take(bytes);
        }
    }

    /// Records that bytes were sent or received, which restarts the time limit on silence.
    pub(super) fn on_activity(&mut self, now: Instant) {
        if let Some(silence) = &mut self.silence {
            silence.since = now;
        }
    }

    /// Returns the time at which [`SpeedLimits::check`] must be called next. Returns `None` if
    /// there is no limit to check.
    pub(super) fn next_check(&self) -> Option<Instant> {
        [self.min_speed.as_ref().map(|min_speed| min_speed.next_check), self.silence_deadline()]
            .into_iter()
            .flatten()
            .min()
    }

    /// Returns the time at which the server will have been silent for too long. Returns `None` if
    /// silence is not limited.
    pub(super) fn silence_deadline(&self) -> Option<Instant> {
        let silence = self.silence.as_ref().filter(|silence| !silence.is_paused)?;
        silence.since.checked_add(silence.limit)
    }

    /// Returns true if the time for which the server may be silent is limited.
    pub(super) fn has_silence_limit(&self) -> bool {
        self.silence.is_some()
    }

    /// Returns an error if the transfer is too slow or the server silent for too long. `bytes` is
    /// the number of bytes received so far.
    pub(super) fn check(&mut self, bytes: u64, now: Instant) -> Option<Error> {
        if self.silence_deadline().is_some_and(|at| at <= now) {
            let limit = self.silence.as_ref().map_or(Duration::ZERO, |silence| silence.limit);
            return Some(Error::new(ErrorKind::Timeout, format!("the server was silent for {limit:?}")));
        }
        let min_speed = self.min_speed.as_mut().filter(|min_speed| min_speed.next_check <= now)?;
        let time = clock::policy_time(now);
        min_speed.watch.received(time, bytes);
        match min_speed.watch.check(time) {
            SpeedVerdict::Fine { next_look } => {
                min_speed.next_check = clock::instant(next_look);
                None
            }
            SpeedVerdict::TooSlow => Some(Error::new(ErrorKind::Timeout, min_speed.text.clone())),
        }
    }
}
