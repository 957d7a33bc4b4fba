//! Monotonic time, passed in by the caller.
//!
//! A point in time is a number of nanoseconds since a moment that the caller chose. Sums saturate:
//! no sum of durations overflows, and `MonotonicTime(u64::MAX)` means never. Rejected:
//! `std::time::Instant`, which a test cannot choose.
//!
//! ```
//! use core::time::Duration;
//! use haul_policy::MonotonicTime;
//!
//! let later = MonotonicTime(5) + Duration::from_nanos(10);
//! assert_eq!(later, MonotonicTime(15));
//! assert_eq!(later.since(MonotonicTime(5)), Duration::from_nanos(10));
//! assert_eq!(MonotonicTime(5).since(later), Duration::ZERO);
//! ```

use core::ops::Add;
use core::time::Duration;

/// A point in time: nanoseconds on a monotonic clock whose zero the caller chose.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MonotonicTime(pub u64);

impl MonotonicTime {
    /// Returns the time elapsed since `earlier`; zero if `earlier` is later.
    pub fn since(self, earlier: MonotonicTime) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for MonotonicTime {
    type Output = MonotonicTime;

    fn add(self, wait: Duration) -> MonotonicTime {
        let nanos = u64::try_from(wait.as_nanos()).unwrap_or(u64::MAX);
        MonotonicTime(self.0.saturating_add(nanos))
    }
}
