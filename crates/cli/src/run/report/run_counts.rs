//! The counts of a run, for the progress line that SIGUSR1 prints and for `--events`.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use indicatif::{HumanBytes, HumanDuration};

/// The value of [`RunCounts::total`] for an unknown number of URLs.
const UNKNOWN_TOTAL: u64 = u64::MAX;

/// The numbers of finished, failed and skipped URLs, of received bytes, and of running transfers in
/// a run. Every run counts them, because a signal can request them at any time.
#[derive(Debug)]
pub(crate) struct RunCounts {
    began: Instant,
    done: AtomicU64,
    failed: AtomicU64,
    skipped: AtomicU64,
    bytes: AtomicU64,
    /// The number of body bytes of the running transfer received so far. Used only if transfers run
    /// one after the other.
    current: AtomicU64,
    /// The number of transfers in progress.
    pub(crate) running: Arc<AtomicUsize>,
    /// The number of URLs of the run, or [`UNKNOWN_TOTAL`].
    total: AtomicU64,
}

/// The numbers of URLs and bytes of a run at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RunCountsSnapshot {
    pub(crate) elapsed: Duration,
    /// The number of URLs whose transfers succeeded so far.
    pub(crate) done: u64,
    /// The number of URLs whose transfers failed so far.
    pub(crate) failed: u64,
    /// The number of transfers in progress.
    pub(crate) running: usize,
    /// The number of URLs that are not fetched: an earlier run of the job has finished them, their
    /// file exists, or they belong to another shard.
    pub(crate) skipped: u64,
    /// The number of body bytes that the run has received so far.
    pub(crate) bytes: u64,
    /// The number of URLs of the run; `None` if it is unknown.
    pub(crate) total: Option<u64>,
}

impl RunCounts {
    pub(crate) fn new() -> Self {
        Self {
            began: Instant::now(),
            done: AtomicU64::new(0),
            failed: AtomicU64::new(0),
            skipped: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            current: AtomicU64::new(0),
            running: Arc::default(),
            total: AtomicU64::new(UNKNOWN_TOTAL),
        }
    }

    /// Sets the number of URLs of the run.
    pub(crate) fn set_total(&self, total: u64) {
        self.total.store(total, Ordering::Relaxed);
    }

    /// Counts a finished transfer with `bytes` body bytes. `has_failed` is true if the transfer
    /// failed.
    pub(crate) fn add(&self, bytes: u64, has_failed: bool) {
        let count = if has_failed { &self.failed } else { &self.done };
        count.fetch_add(1, Ordering::Relaxed);
        self.current.store(0, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Counts a URL of the run that is not fetched.
    pub(crate) fn count_skipped(&self) {
        self.skipped.fetch_add(1, Ordering::Relaxed);
    }

    /// Records that the body of the running transfer begins, possibly again after a retry. Used
    /// only if transfers run one after the other.
    pub(crate) fn body_begins(&self) {
        self.current.store(0, Ordering::Relaxed);
    }

    /// Counts body bytes of the running transfer. Used only if transfers run one after the other.
    pub(crate) fn body_bytes(&self, bytes: u64) {
        self.current.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Returns the current counts.
    pub(crate) fn snapshot(&self) -> RunCountsSnapshot {
        let total = self.total.load(Ordering::Relaxed);
        RunCountsSnapshot {
            elapsed: self.began.elapsed(),
            done: self.done.load(Ordering::Relaxed),
            failed: self.failed.load(Ordering::Relaxed),
            running: self.running.load(Ordering::Relaxed),
            skipped: self.skipped.load(Ordering::Relaxed),
            bytes: self.bytes.load(Ordering::Relaxed) + self.current.load(Ordering::Relaxed),
            total: Some(total).filter(|total| *total != UNKNOWN_TOTAL),
        }
    }
}

impl RunCountsSnapshot {
    /// Returns the average number of body bytes per second since the run began.
    pub(crate) fn byte_rate(&self) -> u64 {
        (self.bytes as f64 / self.seconds()) as u64
    }

    fn seconds(&self) -> f64 {
        self.elapsed.as_secs_f64().max(0.001)
    }

    /// Returns the time that the remaining URLs will take if they are as fast as the finished ones;
    /// `None` if the number of URLs is unknown, or no URL has finished.
    pub(crate) fn remaining_time(&self) -> Option<Duration> {
        let over = self.done + self.failed;
        let missing = self.total?.saturating_sub(over + self.skipped);
        let seconds = self.elapsed.as_secs_f64() * missing as f64 / over as f64;
        (over > 0).then(|| Duration::from_secs(seconds.ceil() as u64))
    }

    /// Returns the counts of the run as one line of text for the user.
    #[cfg_attr(windows, expect(dead_code, reason = "no signal asks for it there"))]
    pub(crate) fn line(&self) -> String {
        let done = match self.total {
            Some(total) => format!("{} of {total} done", self.done),
            None => format!("{} done", self.done),
        };
        let mut parts = vec![done, format!("{} failed", self.failed)];
        if self.skipped > 0 {
            parts.push(format!("{} skipped", self.skipped));
        }
        parts.push(format!("{} running", self.running));
        parts.push(format!("{:.1} URLs/s", (self.done + self.failed) as f64 / self.seconds()));
        parts.push(HumanBytes(self.bytes).to_string());
        parts.push(format!("{}/s", HumanBytes(self.byte_rate())));
        parts.extend(self.remaining_time().map(|left| format!("{:#} left", HumanDuration(left))));
        parts.join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_line_has_the_counts() {
        let progress = RunCountsSnapshot {
            elapsed: Duration::from_secs(10),
            done: 17,
            failed: 3,
            running: 6,
            skipped: 0,
            bytes: 10 << 20,
            total: None,
        };
        assert_eq!(progress.line(), "17 done, 3 failed, 6 running, 2.0 URLs/s, 10.00 MiB, 1.00 MiB/s");
        let known = RunCountsSnapshot { total: Some(200), skipped: 80, ..progress };
        assert_eq!(
            known.line(),
            "17 of 200 done, 3 failed, 80 skipped, 6 running, 2.0 URLs/s, 10.00 MiB, 1.00 MiB/s, 50s left"
        );
        assert_eq!(RunCountsSnapshot { total: Some(5), ..RunCountsSnapshot::default() }.remaining_time(), None);
        assert_eq!(RunCountsSnapshot { total: Some(5), done: 9, ..known }.remaining_time(), Some(Duration::ZERO));
    }

    #[test]
    fn run_counts_include_done_failed_and_skipped_urls() {
        let counts = RunCounts::new();
        counts.add(5, false);
        counts.add(7, true);
        counts.count_skipped();
        let now = counts.snapshot();
        assert_eq!((now.done, now.failed, now.skipped, now.bytes, now.total), (1, 1, 1, 12, None));
        counts.set_total(9);
        assert_eq!(counts.snapshot().total, Some(9));
    }

    #[test]
    fn retried_body_bytes_are_not_counted_twice() {
        let counts = RunCounts::new();
        counts.body_bytes(30);
        assert_eq!(counts.snapshot().bytes, 30);
        counts.body_begins();
        counts.body_bytes(40);
        counts.add(40, false);
        assert_eq!(counts.snapshot().bytes, 40);
    }
}
