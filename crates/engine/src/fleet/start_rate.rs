//! The start rate: the minimum time between the starts of two transfers (curl's `--rate`).

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use crate::ignore_poison::IgnorePoison;

/// The maximum interval, so short that every clock can represent the resulting time.
const LONGEST: Duration = Duration::from_secs(1 << 32);

/// The limit on how often a transfer may start. Clones share the limit, so that it can apply to
/// several fleets together.
///
/// ```
/// use std::time::{Duration, Instant};
/// use haul::fleet::StartRate;
///
/// let start_rate = StartRate::new(Duration::from_millis(250));
/// let now = Instant::now();
/// assert_eq!(start_rate.wait_until(now), None);
/// start_rate.begin(now);
/// assert_eq!(start_rate.clone().wait_until(now), Some(now + Duration::from_millis(250)));
/// ```
#[derive(Clone, Debug)]
pub struct StartRate {
    interval: Duration,
    next: Arc<Mutex<Option<Instant>>>,
}

impl StartRate {
    /// Makes a limit of one start in each interval.
    #[must_use]
    pub fn new(interval: Duration) -> Self {
        Self { interval, next: Arc::default() }
    }

    /// Returns the time when the next transfer may start; `None` if one may start now.
    #[must_use]
    pub fn wait_until(&self, now: Instant) -> Option<Instant> {
        self.lock().filter(|next| *next > now)
    }

    /// Notes that a transfer starts at the time `now`.
    pub fn begin(&self, now: Instant) {
        *self.lock() = Some(now + self.interval.min(LONGEST));
    }

    /// Waits until a transfer may start, and notes its start.
    pub fn wait(&self) {
        let mut next = self.lock();
        let now = Instant::now();
        let begins = next.map_or(now, |next| next.max(now));
        std::thread::sleep(begins.saturating_duration_since(now));
        *next = Some(begins + self.interval.min(LONGEST));
    }

    fn lock(&self) -> MutexGuard<'_, Option<Instant>> {
        self.next.lock().ignore_poison()
    }
}
