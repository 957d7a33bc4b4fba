//! Functions for the two clocks: the monotonic clock for timeouts and waits, and the wall clock for
//! dates.
//!
//! ```
//! use haul::time_conversions::to_monotonic_timestamp;
//! use std::time::{Duration, Instant};
//!
//! let now = Instant::now();
//! assert!(to_monotonic_timestamp(now) <= to_monotonic_timestamp(now + Duration::from_secs(1)));
//! ```

use std::cell::Cell;
use std::sync::OnceLock;
use std::time::{Duration, Instant, SystemTime};

use haul_proto::time::MonotonicTimestamp;

/// Converts an instant to the time format of the protocol machines: nanoseconds since the first
/// call in this process.
pub fn to_monotonic_timestamp(now: Instant) -> MonotonicTimestamp {
    MonotonicTimestamp(nanoseconds(now))
}

/// Converts an instant to the type of time that `haul_policy` uses.
pub fn to_monotonic_time(now: Instant) -> haul_policy::time::MonotonicTime {
    haul_policy::time::MonotonicTime(nanoseconds(now))
}

/// Converts a time of `haul_policy` back to an instant.
pub fn to_instant(time: haul_policy::time::MonotonicTime) -> Instant {
    start_of_process() + Duration::from_nanos(time.0)
}

/// Returns the time `wait` after `now`. If the clock cannot represent that time, returns the time a
/// century after `now`.
pub fn add_saturating(now: Instant, wait: Duration) -> Instant {
    const CENTURY: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);
    now.checked_add(wait).unwrap_or_else(|| now + CENTURY)
}

/// Returns the earlier one of two optional times. If one is `None`, returns the other one.
pub fn earliest(a: Option<Instant>, b: Option<Instant>) -> Option<Instant> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}

/// Returns the current Unix time by the wall clock, in seconds since 1970.
pub fn unix_now() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// Converts an instant to nanoseconds since the first call in this process. The last result is
/// cached for each thread, since an event loop converts the same instant several times.
fn nanoseconds(now: Instant) -> u64 {
    thread_local! {
        static LAST: Cell<Option<(Instant, u64)>> = const { Cell::new(None) };
    }
    if let Some((last, time)) = LAST.get()
        && last == now
    {
        return time;
    }
    let time = u64::try_from(now.saturating_duration_since(start_of_process()).as_nanos()).unwrap_or(u64::MAX);
    LAST.set(Some((now, time)));
    time
}

fn start_of_process() -> Instant {
    static START: OnceLock<Instant> = OnceLock::new();
    // A second early, so that an instant taken just before the first call is not before the start.
    *START.get_or_init(|| Instant::now().checked_sub(Duration::from_secs(1)).unwrap_or_else(Instant::now))
}
