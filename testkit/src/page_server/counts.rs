//! The page server's counts during a measurement run.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use crate::lock_even_if_poisoned::lock;

/// The time after the first request during which a client may find out how many concurrent requests
/// the server can handle. The peak number of concurrent requests in this time is counted
/// separately.
const WARM_UP_TIME: Duration = Duration::from_secs(1);

/// The page server's counts since the start of a measurement run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ServerCounts {
    /// The number of accepted connections.
    pub connections: u64,
    /// The number of full TLS handshakes, in which the server sends its certificates.
    pub full_handshakes: u64,
    /// The number of TLS handshakes that resumed a session.
    pub resumed_handshakes: u64,
    /// The number of requests that arrived.
    pub requests: u64,
    /// The time from the start of the run to the first request; `None` if there was no request.
    pub first_request: Option<Duration>,
    /// The time from the start of the run to the last request; `None` if there was no request.
    pub last_request: Option<Duration>,
    /// The number of pages sent.
    pub pages: u64,
    /// The total length of the pages sent, in bytes.
    pub page_bytes: u64,
    /// The number of responses with status 503.
    pub refusals: u64,
    /// The time from the start of the run to the last page sent; `None` if no page was sent.
    pub last_page: Option<Duration>,
    /// The largest number of concurrent requests (served or queued) in the first second after the
    /// first request.
    pub peak_at_first: usize,
    /// The largest number of concurrent requests (served or queued) later than one second after the
    /// first request; `None` if there was no request then.
    pub peak_later: Option<usize>,
}

/// The counts of the current run. The server's thread changes them, and a thread of the test reads
/// them.
pub(super) struct PageServerCounts(Mutex<RunCounts>);

/// The counts of a measurement run, and the time at which the run started.
struct RunCounts {
    counts: ServerCounts,
    started: Instant,
    /// The number of requests that are currently being served or queued.
    at_a_time: usize,
}

impl PageServerCounts {
    pub(super) fn new() -> PageServerCounts {
        let counts = ServerCounts::default();
        PageServerCounts(Mutex::new(RunCounts { counts, started: Instant::now(), at_a_time: 0 }))
    }

    pub(super) fn start_run(&self) {
        let mut state = lock(&self.0);
        state.counts = ServerCounts::default();
        state.started = Instant::now();
    }

    pub(super) fn read(&self) -> ServerCounts {
        lock(&self.0).counts
    }

    pub(super) fn connected(&self) {
        lock(&self.0).counts.connections += 1;
    }

    pub(super) fn handshake(&self, is_full: bool) {
        let counts = &mut lock(&self.0).counts;
        *(if is_full { &mut counts.full_handshakes } else { &mut counts.resumed_handshakes }) += 1;
    }

    /// Counts a request that has arrived, and adds it to the requests that are served or queued.
    pub(super) fn arrived(&self, now: Instant) {
        let mut state = lock(&self.0);
        let since = now.saturating_duration_since(state.started);
        state.counts.requests += 1;
        state.counts.first_request.get_or_insert(since);
        state.counts.last_request = Some(since);
        state.change(now, |at_a_time| at_a_time + 1);
    }

    /// Stops counting a request as served or queued: its response was sent, or its client has
    /// closed the connection.
    pub(super) fn left(&self, now: Instant) {
        lock(&self.0).change(now, |at_a_time| at_a_time.saturating_sub(1));
    }

    pub(super) fn sent_page(&self, now: Instant, len: usize) {
        let mut state = lock(&self.0);
        state.counts.pages += 1;
        state.counts.page_bytes += len as u64;
        state.counts.last_page = Some(now.saturating_duration_since(state.started));
    }

    pub(super) fn sent_refusal(&self) {
        lock(&self.0).counts.refusals += 1;
    }
}

impl RunCounts {
    fn change(&mut self, now: Instant, next: impl Fn(usize) -> usize) {
        let since = now.saturating_duration_since(self.started);
        let first = self.counts.first_request.unwrap_or(since);
        let before = self.at_a_time;
        self.at_a_time = next(before);
        if since.saturating_sub(first) < WARM_UP_TIME {
            self.counts.peak_at_first = self.counts.peak_at_first.max(self.at_a_time);
        } else {
            // The number at the end of the first second was still there afterwards.
            let peak = self.counts.peak_later.unwrap_or(0).max(before).max(self.at_a_time);
            self.counts.peak_later = Some(peak);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peak_after_warm_up_includes_earlier_open_requests() {
        let recorder = PageServerCounts::new();
        let start = Instant::now();
        for _ in 0..3 {
            recorder.arrived(start);
        }
        recorder.left(start + WARM_UP_TIME / 2);
        assert_eq!((recorder.read().peak_at_first, recorder.read().peak_later), (3, None));
        recorder.left(start + WARM_UP_TIME);
        assert_eq!((recorder.read().peak_at_first, recorder.read().peak_later), (3, Some(2)));
        recorder.start_run();
        recorder.arrived(start + 3 * WARM_UP_TIME);
        assert_eq!((recorder.read().peak_at_first, recorder.read().peak_later), (2, None));
    }
}
