//! Detects idle cores by the kernel's count of idle time (`/proc/stat`, proc(5)). Without that
//! count, a core is assumed to be idle.

use std::time::Duration;

/// The unit of the times in `/proc/stat` (`USER_HZ` is 100 on every Linux that Rust runs on).
const TICK: Duration = Duration::from_millis(10);

/// The system's idle time at the last check.
#[derive(Debug, Default)]
pub(super) struct IdleCoreDetector {
    ticks: Option<u64>,
}

impl IdleCoreDetector {
    /// Returns true if the idle time of all cores since the last call adds up to three quarters of
    /// one core's time or more. `since` is the time since that call. The first call has nothing to
    /// compare with and returns false.
    pub(super) fn is_one_idle(&mut self, since: Duration) -> bool {
        let Some(ticks) = std::fs::read_to_string("/proc/stat").ok().as_deref().and_then(idle_ticks) else {
            return true;
        };
        let before = self.ticks.replace(ticks);
        before.is_some_and(|before| {
            TICK * u32::try_from(ticks.saturating_sub(before)).unwrap_or(u32::MAX) >= since * 3 / 4
        })
    }
}

/// Returns the number of ticks that all cores together were idle or waited for a disk.
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
    fn first_check_finds_no_idle_core() {
        let mut cores = IdleCoreDetector { ticks: None };
        if std::fs::exists("/proc/stat").unwrap_or(false) {
            assert!(!cores.is_one_idle(Duration::from_secs(1)));
        }
    }
}
