//! The adaptive limit on concurrent requests to one host. It grows while more requests are served
//! in the same time, and shrinks when requests queue at the host or the host refuses some.
//!
//! ```text
//!            no queue                 requests queue
//!  6 ──▶ Measuring ──▶ the maximum ──────────────────▶ Testing: fewer ──▶ as fast: stay there
//!            ▲  └──▶ Probing: one more ──▶ faster: stay there           └──▶ slower: as before
//!            └── Recovering: at most 6, until enough requests were served ◀── refused, from any phase
//! ```
//!
//! **Measuring.** A window is a series of served requests, such as 20 if the limit is 20. `mean` is
//! their mean time, and `base` is the mean time of requests that did not queue. By Little's law,
//! the host works on `limit · base / mean` requests, and the others queue: 10 of 20 if `mean` is
//! twice `base`. A request counts only if it began after the last change of the limit, and ended
//! while the limit was fully used.
//!
//! **Growth.** If the first window shows no queue (its slowest response is near the fastest), the
//! limit jumps to the maximum: to double it in each round would make the download of 500 pages from
//! a distant host a fifth longer. Later the limit grows by one request, and stays there only if
//! more requests are served in the same time.
//!
//! **Queues.** A response that takes longer may have waited behind others, or may be a costly page.
//! A test with a lower limit decides: if as many requests are served in the same time, requests had
//! queued, and the lower limit stays. If not, the test is repeated later, after ever longer pauses.
//! The lower limit must also be nearly as fast as the best window so far: on a busy machine, each
//! test may follow a slow window, and a series of such tests would lower the limit to 6. A host
//! that answers within a millisecond is near: 6 connections keep it busy, and more cost only CPU,
//! so no other limit is tried.
//!
//! **Refusals** (429, 503, refused and reset connections). At most 6 requests run until 6 are
//! served without a refusal; each further refusal doubles that number. Then the limit becomes the
//! number of requests that ran besides the refused one. A higher limit is tried only after five
//! seconds, which double with each refusal. A limit below 6 grows by one without that pause, unless
//! the host refused a request just after such a growth.
//!
//! Rejected: a limit from the fastest response alone, as in TCP Vegas. A host whose pages differ in
//! cost would keep 6 connections for ever. Rejected: to double the limit in each round (slow
//! start).
//!
//! ```
//! use core::time::Duration;
//! use haul_policy::MonotonicTime;
//! use haul_policy::concurrency::{CompletionKind, CompletionSample, ConcurrencyLimit};
//!
//! let mut host = ConcurrencyLimit::new(50);
//! let time = Duration::from_millis(100);
//! let served = CompletionSample {
//!     now: MonotonicTime(0) + time, first_byte: time, total: time, in_flight: 6,
//!     on_new_connection: true, kind: CompletionKind::Served,
//! };
//! for _ in 0..6 {
//!     host.on_completion(served);
//! }
//! assert_eq!(host.limit(), 50); // distant, and no request waits for another
//! host.on_completion(CompletionSample { in_flight: 33, kind: CompletionKind::Refused, ..served });
//! assert_eq!(host.limit(), 6);
//! ```

use core::time::Duration;

use crate::time::MonotonicTime;

/// The initial limit on concurrent requests to one host. After a refusal (429, 503, or a refused or
/// reset connection), at most this number of requests run at a time.
pub const INITIAL_LIMIT: usize = 6;
/// The largest value to which the limit on concurrent requests to one host may grow.
pub const MAX_LIMIT: usize = 50;

/// A host counts as near if the mean time to the first byte of its responses is below this time.
/// The limit of a near host does not grow: 6 connections keep it busy, and more cost only CPU.
const NEARBY_LATENCY: Duration = Duration::from_millis(1);
/// The minimum number of served requests after which a trial is evaluated. A trial runs with
/// another limit on concurrent requests: a lower one (a test), or one more (a probe).
const MIN_TRIAL_REQUESTS: usize = 8;
/// The limit on concurrent requests during a test if the limit before the test is 6 or less. A test
/// lowers the limit to find out whether requests queue at the host.
const LOW_TEST_LIMIT: usize = 4;
/// The minimum duration of a measurement window, a series of requests whose times are averaged. A
/// shorter window would be distorted by the pauses of a busy machine. The minimum does not apply
/// before the first estimate of the host's speed and after a refusal.
const MIN_WINDOW: Duration = Duration::from_millis(10);
/// The threshold for the request rate in a test with a lower limit: a higher rate shows that
/// requests had queued. 0 is the earlier rate reduced like the limit, and 1 is the earlier rate. If
/// the limit falls from 20 to 10, the threshold is 70 % of the earlier rate.
const QUEUE_SHARE: f64 = 0.4;
/// The share of the best request rate so far that a test with a lower limit must reach to succeed.
/// If a test fails, the former limit returns. Tests from limits of 6 or less need not reach it.
const BEST_SHARE: f64 = 0.9;
/// The time after which the limit on concurrent requests to a host grows if other requests wait to
/// start and no running request ends.
pub(crate) const SILENCE_BEFORE_GROWTH: Duration = Duration::from_secs(1);
/// The pause after the first trial, before the next one. A trial is a test with a lower limit or a
/// probe with a higher one. Each trial that does not change the limit doubles the pause.
const FIRST_TRIAL_PAUSE: Duration = Duration::from_millis(100);
/// The minimum pause after a trial, as a multiple of the trial's duration. A trial is a test with a
/// lower limit on concurrent requests, or a probe with a higher one.
const MIN_PAUSE_PER_TRIAL_TIME: u32 = 16;
/// The pause between the first time that the host refuses a request and the next trial of a higher
/// limit on concurrent requests. Each further refusal doubles the pause.
const FIRST_REFUSAL_PAUSE: Duration = Duration::from_secs(5);
/// The longest pause before another trial of a lower or higher limit, also after a refused request.
const MAX_PAUSE: Duration = Duration::from_secs(320);
/// The maximum number of doublings of the wait after a refusal. The wait is the number of requests
/// that must be served before the limit grows again: [`INITIAL_LIMIT`], doubled by each further
/// refusal.
const MAX_RECOVERY_DOUBLINGS: u32 = 6;
/// If a host refuses no request for this time, its earlier refusals no longer count.
const REFUSALS_EXPIRE_AFTER: Duration = Duration::from_secs(60);

/// The times and the outcome of one request, or of one attempt at it, when it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompletionSample {
    /// The time at which the request ended.
    pub now: MonotonicTime,
    /// The time from the request to the first byte of its response.
    pub first_byte: Duration,
    /// The time from the request to the end of its response.
    pub total: Duration,
    /// The number of requests to the host that were running when this one ended, this one included.
    pub in_flight: usize,
    /// True if the request was the first on its connection.
    pub on_new_connection: bool,
    /// The outcome of the request: served or refused.
    pub kind: CompletionKind,
}

/// The outcome of a request, as far as it tells something about the load of the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompletionKind {
    /// The host has processed the request and responded.
    Served,
    /// The host has refused the request: 429, 503, or a connection that was refused or reset before
    /// a response.
    Refused,
}

impl CompletionSample {
    fn start_time(&self) -> MonotonicTime {
        MonotonicTime(self.now.0.saturating_sub(to_nanos(self.total)))
    }

    /// Returns the load at which the host refused this request: at most [`INITIAL_LIMIT`] running
    /// requests, or more. The request may succeed without a pause once fewer requests run. Returns
    /// `None` if the host did not refuse the request, or if no other request was running.
    pub fn refused_load(&self) -> Option<RefusedLoad> {
        match (self.kind, self.in_flight) {
            (CompletionKind::Served, _) | (CompletionKind::Refused, ..=1) => None,
            (CompletionKind::Refused, ..=INITIAL_LIMIT) => Some(RefusedLoad::Initial),
            (CompletionKind::Refused, _) => Some(RefusedLoad::Grown),
        }
    }
}

/// The load at which a host refused a request, in two classes: up to [`INITIAL_LIMIT`] running
/// requests, which is the limit for a new host, or more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefusedLoad {
    /// At most as many requests as a new host is allowed ([`INITIAL_LIMIT`]).
    Initial,
    /// More than [`INITIAL_LIMIT`] requests: the growth of the limit may have caused the refusal.
    Grown,
}

/// The adaptive limit on concurrent requests to one host.
#[derive(Clone, Debug)]
pub struct ConcurrencyLimit {
    limit: usize,
    max: usize,
    /// True if all requests to the host share one connection.
    is_shared: bool,
    /// The highest limit that a step by several requests may reach: `max` or, after a refusal, the
    /// number of requests that ran besides the refused one. A step by one request may exceed it.
    bound: usize,
    phase: SearchPhase,
    window: SampleWindow,
    /// The mean time of a request that does not queue at the host, in nanoseconds; 0 if not known
    /// yet.
    base: u64,
    /// The value of `base` before a test that found no queue, and replaced it by the mean time of
    /// the requests before the test; `None` if no value was replaced. The process may have been
    /// paused during the test. So the lower of both values becomes `base` when a new test may
    /// begin, if the limit is then above 6.
    doubted_base: Option<u64>,
    /// The shortest time to the first byte of any response of the host, in nanoseconds.
    fastest: u64,
    /// The highest rate, in requests per nanosecond, since the limit was last raised in one step to
    /// `bound`. A test that does not lower the limit sets this rate to the one before the test.
    best_rate: f64,
    /// The time since which the host has been silent: the end of the last request or, if later, the
    /// last time at which [`on_silence`](Self::on_silence) raised the limit.
    last_end: MonotonicTime,
    /// The duration of the last served request, up to the end of its response.
    last_total: Duration,
    /// True if only probes raise the limit, by one request at a time. False if it may jump to
    /// `bound`: before the first jump, and after a first test of a limit up to 6 found no queue.
    has_jumped: bool,
    /// The sums of the first 6 requests on reused connections after the limit jumped to `bound`. If
    /// their mean time is much below `base`, it replaces `base`. `None` if nothing is being summed.
    warm: Option<WarmConnectionSums>,
    trial_pause: Duration,
    /// The time before which no test of a lower limit and no probe of a higher limit starts.
    try_at: MonotonicTime,
    refusals: Refusals,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SearchPhase {
    Measuring,
    /// The limit is reduced, to find out whether requests queue at the host. `usual` and `mean` are
    /// the limit and the mean request time before the test. `is_second_test` is true for the second
    /// of two tests in a row, after the first has shown that requests queue.
    Testing {
        usual: usize,
        mean: u64,
        is_second_test: bool,
    },
    /// The limit is raised by one, to find out whether more requests are served in the same time.
    /// `usual` and `mean` are the limit and the mean time of a request before the probe.
    Probing {
        usual: usize,
        mean: u64,
    },
    /// The host has refused a request. For now, at most 6 requests to this host may run at a time.
    Recovering,
}

/// The present measurement window: the number of its requests, and the sums of their times.
#[derive(Clone, Copy, Debug, Default)]
struct SampleWindow {
    since: MonotonicTime,
    /// The time at which the first request that counts in this window ended.
    begin: MonotonicTime,
    count: usize,
    first_byte: u64,
    /// The longest time to the first byte of any response in this window, in nanoseconds.
    slowest: u64,
    total: u64,
}

/// The number and the total duration of the requests on connections that had already served a
/// request.
#[derive(Clone, Copy, Debug, Default)]
struct WarmConnectionSums {
    count: usize,
    /// The sum of the requests' durations, in nanoseconds.
    total: u64,
}

/// The history of a host's refusals: 429, 503, and refused or reset connections.
#[derive(Clone, Copy, Debug, Default)]
struct Refusals {
    /// The number of refusals that lowered the limit. It returns to 0 if no such refusal occurs for
    /// 60 s.
    count: u32,
    /// The time of the last refusal that lowered the limit. A refused request that began before
    /// this time does not lower the limit again.
    last: MonotonicTime,
    /// True if the limit on concurrent requests has been raised by one since the last refusal, from
    /// a value below [`INITIAL_LIMIT`].
    has_grown: bool,
    /// True if the last refusal followed a growth of the limit by one, and the limit was fully
    /// used. Served requests then raise the limit again only after [`ConcurrencyLimit::try_at`].
    at_growth: bool,
}

impl ConcurrencyLimit {
    /// Creates the limit for a host. It starts at [`INITIAL_LIMIT`] and never exceeds `max`.
    pub fn new(max: usize) -> ConcurrencyLimit {
        let max = max.max(1);
        ConcurrencyLimit {
            limit: INITIAL_LIMIT.min(max),
            max,
            is_shared: false,
            bound: max,
            phase: SearchPhase::Measuring,
            window: SampleWindow::default(),
            base: 0,
            doubted_base: None,
            fastest: u64::MAX,
            best_rate: 0.0,
            last_end: MonotonicTime(0),
            last_total: Duration::ZERO,
            has_jumped: false,
            warm: None,
            trial_pause: FIRST_TRIAL_PAUSE,
            try_at: MonotonicTime(0),
            refusals: Refusals::default(),
        }
    }

    /// Creates the limit for a host whose requests share one connection (HTTP/2). The limit starts
    /// at `max`, since the peer itself announces how many requests it accepts. It shrinks only
    /// after refusals.
    pub fn of_shared_connection(max: usize) -> ConcurrencyLimit {
        let max = max.max(1);
        ConcurrencyLimit { limit: max, is_shared: true, ..ConcurrencyLimit::new(max) }
    }

    /// Returns true if all requests to the host share one connection (HTTP/2).
    pub fn is_shared(&self) -> bool {
        self.is_shared
    }

    /// Returns the number of requests to the host that may run at a time.
    pub fn limit(&self) -> usize {
        self.limit
    }

    /// Adapts the limit after a request has ended. `sample` describes that request. Returns the new
    /// limit.
    pub fn on_completion(&mut self, sample: CompletionSample) -> usize {
        self.last_end = sample.now;
        match sample.kind {
            CompletionKind::Refused => self.on_refusal(sample),
            CompletionKind::Served => self.on_served(sample),
        }
        self.limit
    }

    /// Raises the limit after a silence, i.e. a time in which no request ends. Returns the new
    /// limit. Call this repeatedly while requests wait to start.
    ///
    /// A silence lasts at least 1 s, and at least twice the duration of the last served request.
    /// The limit grows by a sixth. Without this growth, a host could block all waiting requests: it
    /// may answer the running ones only after some event, such as the arrival of another request.
    ///
    /// During the recovery from a refusal, the limit grows by one instead, to 6 at most, but not in
    /// the first 5 s. Without this growth, refused requests could wait for the ends of long bodies.
    pub fn on_silence(&mut self, now: MonotonicTime) -> usize {
        if now.since(self.last_end) < SILENCE_BEFORE_GROWTH.max(self.last_total * 2) {
            return self.limit;
        }
        if self.phase != SearchPhase::Recovering {
            self.last_end = now;
            let limit = (self.limit + self.limit.div_ceil(6)).min(self.bound.max(self.limit));
            self.begin_window(SearchPhase::Measuring, limit, now);
        } else if now.since(self.refusals.last) >= FIRST_REFUSAL_PAUSE {
            self.last_end = now;
            let limit = (self.limit + 1).min(INITIAL_LIMIT.min(self.max));
            self.bound = self.bound.max(limit);
            self.begin_window(SearchPhase::Recovering, limit, now);
        }
        self.limit
    }

    fn on_served(&mut self, sample: CompletionSample) {
        self.last_total = sample.total;
        self.fastest = self.fastest.min(to_nanos(sample.first_byte)).max(1);
        if !sample.on_new_connection {
            self.correct_base(to_nanos(sample.total));
        }
        let holds_back = sample.in_flight >= self.limit || self.phase == SearchPhase::Recovering;
        if !holds_back || sample.start_time() < self.window.since {
            return;
        }
        if self.window.count == 0 {
            self.window.begin = sample.now;
        }
        self.window.count += 1;
        self.window.first_byte = self.window.first_byte.saturating_add(to_nanos(sample.first_byte));
        self.window.slowest = self.window.slowest.max(to_nanos(sample.first_byte));
        self.window.total = self.window.total.saturating_add(to_nanos(sample.total));
        let may_be_short = self.base == 0 || self.phase == SearchPhase::Recovering;
        let is_short = sample.now.since(self.window.begin) < MIN_WINDOW;
        if self.window.count < self.window_size() || is_short && !may_be_short {
            return;
        }
        let mean = (self.window.total / self.window.count as u64).max(1);
        let first_byte = self.window.first_byte / self.window.count as u64;
        match self.phase {
            SearchPhase::Measuring if self.base == 0 => self.measure_first(mean, first_byte, sample.now),
            SearchPhase::Measuring => self.measure(mean, sample.now),
            SearchPhase::Testing { usual, mean: before, is_second_test } => {
                self.end_test(usual, before, mean, is_second_test, sample.now);
            }
            SearchPhase::Probing { usual, mean: before } => self.end_probe(usual, before, mean, sample.now),
            SearchPhase::Recovering => self.recover(sample.now),
        }
    }

    /// Returns the number of served requests that a measurement window must have to be evaluated.
    fn window_size(&self) -> usize {
        match self.phase {
            SearchPhase::Measuring => self.limit,
            SearchPhase::Testing { .. } | SearchPhase::Probing { .. } => (2 * self.limit).max(MIN_TRIAL_REQUESTS),
            SearchPhase::Recovering => {
                INITIAL_LIMIT << self.refusals.count.saturating_sub(1).min(MAX_RECOVERY_DOUBLINGS)
            }
        }
    }

    /// Evaluates a window of served requests while `base`, the time of a request that does not wait
    /// in the host's queue, is unknown. If none seems to have waited, sets `base` and raises the
    /// limit. Otherwise, tests a lower limit, once the window has 2 · `limit` requests. `mean` and
    /// `first_byte` are the mean request time and mean time to the first byte, in nanoseconds.
    fn measure_first(&mut self, mean: u64, first_byte: u64, now: MonotonicTime) {
        let needs_nothing = if self.is_shared { self.limit == self.max } else { first_byte < to_nanos(NEARBY_LATENCY) };
        if needs_nothing || now < self.try_at {
            return self.begin_window(SearchPhase::Measuring, self.limit, MonotonicTime(0));
        }
        let is_even = self.window.slowest <= self.fastest / 5 * 7 && first_byte <= self.fastest / 10 * 13;
        if self.is_shared || is_even {
            self.base = mean;
            self.raise_to_bound(now);
        } else if self.window.count >= 2 * self.limit {
            self.begin_test(mean, now);
        }
    }

    /// Evaluates a complete measurement window (a series of finished requests). If many requests
    /// queued at the host, a test with a lower limit may begin. If hardly any queued, the limit may
    /// rise: the first time to `bound`, later by one as a probe. Otherwise, the limit stays. `mean`
    /// is the window's mean request time in nanoseconds.
    fn measure(&mut self, mean: u64, now: MonotonicTime) {
        if self.limit > INITIAL_LIMIT
            && now >= self.try_at
            && let Some(base) = self.doubted_base.take()
        {
            self.base = self.base.min(base);
        }
        if mean < self.base {
            // Slowly, since one window of fast pages is no proof.
            self.base -= (self.base - mean) / 4;
        }
        self.best_rate = self.best_rate.max(self.limit as f64 / mean as f64);
        let busy = requests_in_service(self.limit, self.base, mean);
        let queued = if self.is_shared { 0.0 } else { self.limit as f64 - busy };
        let tolerated = 1.0 + self.limit as f64 / 16.0;
        // After a refusal, the limit is what the host has borne.
        let may_test = now >= self.try_at || self.limit > INITIAL_LIMIT && self.bound == self.max;
        if queued > tolerated && may_test {
            // A short queue may be chance.
            if queued > self.limit as f64 / 4.0 || self.window.count >= 3 * self.limit {
                self.begin_test(mean, now);
            }
        } else if queued <= tolerated / 2.0 && now >= self.try_at && self.limit < self.max {
            if !self.has_jumped && self.limit < self.bound {
                return self.raise_to_bound(now);
            }
            let limit = self.limit + 1;
            self.begin_window(SearchPhase::Probing { usual: self.limit, mean }, limit, now);
        } else {
            self.begin_window(SearchPhase::Measuring, self.limit, MonotonicTime(0));
        }
    }

    /// Corrects `base`, the mean time of a request that does not queue, after the limit was raised
    /// to `bound` in one step. `total` is the duration in nanoseconds of a request on a reused
    /// connection. The mean of the first six calls becomes `base` if it is less than 80% of `base`:
    /// earlier requests were then slow only because their connections were new. The six requests do
    /// not queue, because they reach the host before requests on the connections that are opened
    /// after the raise.
    fn correct_base(&mut self, total: u64) {
        let Some(warm) = &mut self.warm else { return };
        warm.count += 1;
        warm.total = warm.total.saturating_add(total);
        if warm.count == INITIAL_LIMIT {
            let mean = (warm.total / INITIAL_LIMIT as u64).max(1);
            if mean.saturating_add(mean / 4) < self.base {
                self.base = mean;
            }
            self.warm = None;
        }
    }

    /// Raises the limit in one step to `bound`: `max`, or less after a refused request.
    fn raise_to_bound(&mut self, now: MonotonicTime) {
        self.has_jumped = true;
        self.best_rate = 0.0;
        self.warm = Some(WarmConnectionSums::default());
        // New connections take a round trip, and so do their first requests.
        let since = now + Duration::from_nanos(self.base.saturating_mul(2));
        self.begin_window(SearchPhase::Measuring, self.bound.max(self.limit), since);
    }

    /// Lowers the limit, to find out whether requests queue at the host. If no lower limit makes
    /// sense, begins a new measurement window (a series of requests whose times are averaged) with
    /// the same limit. `mean` is the mean request time before the test, in nanoseconds.
    fn begin_test(&mut self, mean: u64, now: MonotonicTime) {
        let fewer = match self.limit {
            ..=INITIAL_LIMIT => LOW_TEST_LIMIT,
            limit => (requests_in_service(limit, self.base, mean) as usize).max(INITIAL_LIMIT),
        };
        if fewer >= self.limit {
            return self.begin_window(SearchPhase::Measuring, self.limit, MonotonicTime(0));
        }
        self.begin_window(SearchPhase::Testing { usual: self.limit, mean, is_second_test: false }, fewer, now);
    }

    fn end_test(&mut self, usual: usize, before: u64, mean: u64, is_second_test: bool, now: MonotonicTime) {
        let (fewer, usual_rate) = (self.limit as f64, usual as f64 / before as f64);
        // Between the rate of a host that is not busy with fewer requests, and that of one that is.
        let share = fewer / usual as f64;
        let rate = fewer / mean as f64;
        let queues = rate > usual_rate * (share + (1.0 - share) * QUEUE_SHARE);
        let is_slow = usual > INITIAL_LIMIT && rate < self.best_rate * BEST_SHARE;
        if queues && !is_slow {
            self.best_rate = self.best_rate.max(rate);
            if self.base == 0 || is_second_test {
                self.base = mean;
            }
            if usual > INITIAL_LIMIT && self.limit == INITIAL_LIMIT {
                // The base may be of requests that queued: fewer than six will tell.
                let phase = SearchPhase::Testing { usual: INITIAL_LIMIT, mean, is_second_test: true };
                return self.begin_window(phase, LOW_TEST_LIMIT, now);
            }
            if usual <= INITIAL_LIMIT {
                self.pause_trials(now);
            }
            self.begin_window(SearchPhase::Measuring, self.limit.max(INITIAL_LIMIT.min(usual)), now);
        } else {
            self.best_rate = usual_rate;
            self.doubted_base = self.doubted_base.or((self.base > 0).then_some(self.base));
            self.base = before;
            if usual <= INITIAL_LIMIT {
                self.has_jumped = is_second_test;
            } else {
                self.pause_trials(now);
            }
            self.begin_window(SearchPhase::Measuring, usual, now);
        }
    }

    fn end_probe(&mut self, usual: usize, before: u64, mean: u64, now: MonotonicTime) {
        let added = self.limit as f64 / usual as f64 - 1.0;
        let gain = self.limit as f64 * before as f64 / (usual as f64 * mean as f64);
        if gain >= 1.0 + added / 2.0 {
            self.bound = self.bound.max(self.limit);
            self.begin_window(SearchPhase::Measuring, self.limit, now);
        } else {
            self.pause_trials(now);
            self.begin_window(SearchPhase::Measuring, usual, now);
        }
    }

    fn on_refusal(&mut self, sample: CompletionSample) {
        let now = sample.now;
        if sample.start_time() < self.refusals.last {
            self.bound = (self.bound - 1).max(1);
        } else {
            if now.since(self.refusals.last) > REFUSALS_EXPIRE_AFTER {
                self.refusals.count = 0;
            }
            self.bound = sample.in_flight.saturating_sub(1).min(self.limit).max(1);
            self.refusals = Refusals {
                count: self.refusals.count.saturating_add(1),
                last: now,
                has_grown: false,
                at_growth: self.refusals.has_grown && sample.in_flight >= self.limit,
            };
            let doublings = self.refusals.count.saturating_sub(1).min(16);
            self.try_at = now + (FIRST_REFUSAL_PAUSE * (1 << doublings)).min(MAX_PAUSE);
        }
        self.begin_window(SearchPhase::Recovering, self.bound.min(INITIAL_LIMIT), now);
    }

    /// Raises the limit after a refusal. Called when enough requests were served without another
    /// refusal.
    fn recover(&mut self, now: MonotonicTime) {
        if self.bound > self.limit {
            self.begin_window(SearchPhase::Measuring, self.bound, now);
        } else if self.limit < INITIAL_LIMIT.min(self.max) {
            if self.refusals.at_growth && now < self.try_at {
                return self.begin_window(SearchPhase::Recovering, self.limit, MonotonicTime(0));
            }
            self.refusals.has_grown = true;
            self.bound = self.limit + 1;
            self.begin_window(SearchPhase::Recovering, self.bound, now);
        } else {
            self.begin_window(SearchPhase::Measuring, self.limit, now);
        }
    }

    fn pause_trials(&mut self, now: MonotonicTime) {
        let pause = self.trial_pause.max(now.since(self.window.begin) * MIN_PAUSE_PER_TRIAL_TIME);
        self.try_at = self.try_at.max(now + pause);
        self.trial_pause = (self.trial_pause * 2).min(MAX_PAUSE);
    }

    /// Changes the phase and the limit, and begins a measurement window that counts only requests
    /// started at `since` or later.
    fn begin_window(&mut self, phase: SearchPhase, limit: usize, since: MonotonicTime) {
        self.window = SampleWindow { since: self.window.since.max(since), ..SampleWindow::default() };
        (self.phase, self.limit) = (phase, limit);
    }
}

/// Returns the number of requests that the host works on when `limit` requests run; the others
/// queue. `mean` is the mean time of all, and `base` is the time of a request that does not queue.
fn requests_in_service(limit: usize, base: u64, mean: u64) -> f64 {
    limit as f64 * (base as f64 / mean as f64).min(1.0)
}

fn to_nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
