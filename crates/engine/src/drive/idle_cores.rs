//! Detects idle cores from the kernel's total of idle time (`/proc/stat`, proc(5)). Where that
//! total is not available, a core is assumed to be idle.

use std::time::Duration;

/// The unit of the times in `/proc/stat`, in milliseconds (`USER_HZ` is 100 on every Linux that
/// Rust runs on).
const TICK_MS: u64 = 10;

/// A detector of idle processor cores. Contains the system's total idle time at the last check;
/// `None` before the first check.
#[derive(Debug, Default)]
pub(super) struct IdleCoreDetector {
    idle: Option<Duration>,
}

impl IdleCoreDetector {
    /// Returns true if at least one core was mostly idle since the last call: the idle times of all
    /// cores add up to at least three quarters of `since`, the time since that call. The first call
    /// returns false, since there is no earlier total to compare with. If the idle time is unknown,
    /// returns true.
    pub(super) fn is_one_idle(&mut self, since: Duration) -> bool {
        let Some(idle) = idle_time() else { return true };
        let before = self.idle.replace(idle);
        before.is_some_and(|before| idle.saturating_sub(before) >= since * 3 / 4)
    }
}

/// Returns the sum of the idle times of all cores since the system started; `None` if it is
/// unknown.
pub(crate) fn idle_time() -> Option<Duration> {
    let ticks = idle_ticks(&std::fs::read_to_string("/proc/stat").ok()?)?;
    Some(Duration::from_millis(ticks.saturating_mul(TICK_MS)))
}

/// Returns the number of ticks for which all cores together were idle or waited for a disk. `stat`
/// is the content of `/proc/stat`. Returns `None` if it cannot be parsed.
fn idle_ticks(stat: &str) -> Option<u64> {
    let mut figures = stat.lines().next()?.strip_prefix("cpu ")?.split_whitespace().skip(3);
    let (idle, waiting): (u64, u64) = (figures.next()?.parse().ok()?, figures.next()?.parse().ok()?);
    Some(idle + waiting)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_time_is_read_from_proc_stat() {
        assert_eq!(idle_ticks("cpu  10 20 30 400 50 6 7 0 0 0\ncpu0 1 2 3 4 5\n"), Some(450));
        assert_eq!(idle_ticks("intr 1 2 3"), None);
    }

    #[test]
    fn first_idle_core_check_returns_false() {
        let mut cores = IdleCoreDetector { idle: None };
        if std::fs::exists("/proc/stat").unwrap_or(false) {
            assert!(!cores.is_one_idle(Duration::from_secs(1)));
        }
    }
}
