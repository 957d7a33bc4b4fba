//! Upper and lower limits on the speed of a transfer.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use haul_policy::rate::TokenBucket;
use haul_policy::speed::{SpeedVerdict, SpeedWatch};

use crate::clock;
use crate::request::{RequestOptions, SpeedLimit};
use crate::sync::IgnorePoison;
use crate::{Error, ErrorKind};

/// The speed limits of one transfer. A transfer and the parts of its split share one rate.
#[derive(Default)]
pub(super) struct SpeedLimits {
    rate: Option<Arc<Mutex<TokenBucket>>>,
    min_speed: Option<Box<MinSpeed>>,
    silence: Option<SilenceLimit>,
}

/// The time limit on the server's silence.
struct SilenceLimit {
    limit: Duration,
    since: Instant,
    is_paused: bool,
}

/// The speed that the transfer must not fall below.
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

/// The number of bytes that may be received now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Credit {
    /// At most this many bytes, at least one.
    Bytes(u64),
    /// No bytes before the sink has woken the driver.
    Full,
    /// No bytes before this time.
    Until(Instant),
}

impl SpeedLimits {
    pub(super) fn new(options: &RequestOptions, now: Instant) -> Self {
        let rate = options.limit_rate.map(|rate| Arc::new(Mutex::new(TokenBucket::new(rate, clock::policy_time(now)))));
        Self { rate, min_speed: None, silence: None }
    }

    /// The limits of another transfer that shares the rate.
    pub(super) fn sharing_rate(&self) -> Self {
        Self { rate: self.rate.clone(), min_speed: None, silence: None }
    }

    /// Starts the limits of an exchange that begins now.
    pub(super) fn begin_exchange(&mut self, options: &RequestOptions, now: Instant) {
        self.min_speed = options.speed_limit.map(|limit| Box::new(MinSpeed::new(limit, now)));
        self.silence = options.read_timeout.map(|limit| SilenceLimit { limit, since: now, is_paused: false });
    }

    /// Replaces the minimum speed.
    pub(super) fn set_min_speed(&mut self, limit: SpeedLimit, now: Instant) {
        self.min_speed = Some(Box::new(MinSpeed::new(limit, now)));
    }

    /// Returns true if there is a rate limit.
    pub(super) fn is_limited(&self) -> bool {
        self.rate.is_some()
    }

    /// Returns the part of the sink's credit that the rate allows.
    pub(super) fn allow(&mut self, credit: u64, now: Instant) -> Credit {
        let time = clock::policy_time(now);
        let allowed = match &self.rate {
            Some(bucket) if credit > 0 => {
                let mut bucket = bucket.lock().ignore_poison();
                match bucket.available(time) {
                    0 => Credit::Until(clock::instant(bucket.ready_at(time, credit))),
                    tokens => Credit::Bytes(credit.min(tokens)),
                }
            }
            _ if credit == 0 => Credit::Full,
            _ => Credit::Bytes(credit),
        };
        self.set_paused(!matches!(allowed, Credit::Bytes(_)), now);
        allowed
    }

    /// Returns the credit for bytes that come together with a head, without a wait for the rate.
    pub(super) fn allow_with_head(&self, credit: u64, now: Instant) -> u64 {
        let Some(bucket) = &self.rate else { return credit };
        credit.min(bucket.lock().ignore_poison().available(clock::policy_time(now)))
    }

    /// Pauses the limits on slowness while the transfer waits for anything but the server, and
    /// resumes them.
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

    /// Notes that `bytes` arrived.
    pub(super) fn on_received(&mut self, bytes: u64, now: Instant) {
        self.on_activity(now);
        if let Some(bucket) = &self.rate {
            bucket.lock().ignore_poison().take(bytes);
        }
    }

    /// Notes activity on the connection: the time limit on silence starts anew.
    pub(super) fn on_activity(&mut self, now: Instant) {
        if let Some(silence) = &mut self.silence {
            silence.since = now;
        }
    }

    /// Returns the time of the next call to [`SpeedLimits::check`], if one is needed.
    pub(super) fn next_check(&self) -> Option<Instant> {
        [self.min_speed.as_ref().map(|min_speed| min_speed.next_check), self.silence_deadline()]
            .into_iter()
            .flatten()
            .min()
    }

    /// Returns the time when the server will have been silent for too long, if that is limited.
    pub(super) fn silence_deadline(&self) -> Option<Instant> {
        let silence = self.silence.as_ref().filter(|silence| !silence.is_paused)?;
        silence.since.checked_add(silence.limit)
    }

    /// Returns true if silence has a time limit.
    pub(super) fn has_silence_limit(&self) -> bool {
        self.silence.is_some()
    }

    /// Returns an error if the transfer is too slow, with `bytes` received so far.
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
