//! Monotonic time, passed in by the caller.
//!
//! A point in time is a number of nanoseconds since a moment that the caller chose. Sums saturate:
//! no sum of durations overflows, and `Time(u64::MAX)` means never. Rejected: `std::time::Instant`,
//! which a test cannot choose.
//!
//! ```
//! use core::time::Duration;
//! use haul_policy::Time;
//!
//! let later = Time(5) + Duration::from_nanos(10);
//! assert_eq!(later, Time(15));
//! assert_eq!(later.since(Time(5)), Duration::from_nanos(10));
//! assert_eq!(Time(5).since(later), Duration::ZERO);
//! ```

use core::ops::Add;
use core::time::Duration;

/// Nanoseconds on a monotonic clock whose zero the caller chose.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(pub u64);

impl Time {
    /// Returns the time elapsed since `earlier`; zero if `earlier` is later.
    pub fn since(self, earlier: Time) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for Time {
    type Output = Time;

    fn add(self, wait: Duration) -> Time {
        let nanos = u64::try_from(wait.as_nanos()).unwrap_or(u64::MAX);
        Time(self.0.saturating_add(nanos))
    }
}
