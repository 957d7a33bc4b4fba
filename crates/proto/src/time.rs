//! The time type of the state machines: a number that the caller passes in.
//!
//! No machine of this crate reads a clock. A driver converts its monotonic clock to a
//! [`MonotonicTimestamp`] and passes it in; a test passes any numbers and so has virtual time for
//! free.
//!
//! ```
//! use core::time::Duration;
//! use haul_proto::time::MonotonicTimestamp;
//!
//! let start = MonotonicTimestamp(0);
//! let later = start + Duration::from_millis(5);
//! assert_eq!(later.as_nanos(), 5_000_000);
//! assert_eq!(later - start, Duration::from_millis(5));
//! assert_eq!(start - later, Duration::ZERO, "a clock that steps back gives nothing, never a panic");
//! ```

use core::ops::{Add, AddAssign, Sub};
use core::time::Duration;

/// A point in time: nanoseconds since an arbitrary start, from a clock that never runs backwards.
///
/// 64 bits last 584 years. All arithmetic saturates: a deadline "in 10¹⁰ years" becomes the last
/// representable time.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Hash, Default)]
pub struct MonotonicTimestamp(pub u64);

impl MonotonicTimestamp {
    /// Returns the nanoseconds since the start of the clock.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }
}

fn to_nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

impl Add<Duration> for MonotonicTimestamp {
    type Output = MonotonicTimestamp;

    fn add(self, duration: Duration) -> MonotonicTimestamp {
        MonotonicTimestamp(self.0.saturating_add(to_nanos(duration)))
    }
}

impl AddAssign<Duration> for MonotonicTimestamp {
    fn add_assign(&mut self, duration: Duration) {
        *self = *self + duration;
    }
}

impl Sub<Duration> for MonotonicTimestamp {
    type Output = MonotonicTimestamp;

    fn sub(self, duration: Duration) -> MonotonicTimestamp {
        MonotonicTimestamp(self.0.saturating_sub(to_nanos(duration)))
    }
}

impl Sub for MonotonicTimestamp {
    type Output = Duration;

    fn sub(self, earlier: MonotonicTimestamp) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamp_arithmetic_saturates() {
        assert_eq!(MonotonicTimestamp(u64::MAX) + Duration::from_secs(1), MonotonicTimestamp(u64::MAX));
        assert_eq!(MonotonicTimestamp(1) + Duration::MAX, MonotonicTimestamp(u64::MAX));
        assert_eq!(MonotonicTimestamp(1) - Duration::from_secs(1), MonotonicTimestamp(0));
        assert_eq!(MonotonicTimestamp(1) - MonotonicTimestamp(2), Duration::ZERO);
    }
}
