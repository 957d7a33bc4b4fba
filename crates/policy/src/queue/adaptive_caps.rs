//! Adaptive caps: the number of running jobs on each host adapts to the load that the host can
//! handle.

use core::hash::Hash;
use core::time::Duration;

use super::{HostId, JobQueue};
use crate::concurrency::{
    CompletionKind, CompletionSample, ConcurrencyLimit, INITIAL_LIMIT, RefusedLoad, SILENCE_BEFORE_GROWTH,
};
use crate::time::MonotonicTime;

/// The time for which the queue remembers a host's cap (the adaptive maximum number of its running
/// jobs) after the host's last job.
const CAP_REMEMBERED_FOR: Duration = Duration::from_secs(60);

/// The times and the outcome of a job that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobEnd {
    /// The time at which the job ended.
    pub now: MonotonicTime,
    /// The time from the request to the first byte of its response.
    pub first_byte: Duration,
    /// The time from the request to the end of its response.
    pub total: Duration,
    /// True if the request was the first on its connection.
    pub on_new_connection: bool,
    /// The outcome of the job's request: served or refused.
    pub kind: CompletionKind,
}

impl<T, K: Hash + Eq + Clone> JobQueue<T, K> {
    /// Makes the cap of each host (the limit on its running jobs) adapt by [`ConcurrencyLimit`]:
    /// the cap begins at 6, grows to at most `max`, and never exceeds the total cap.
    pub fn adapt_caps(&mut self, max: usize) {
        let max = max.min(self.caps.total);
        self.adaptive_max = Some(max);
        self.caps.per_host = INITIAL_LIMIT.min(max);
    }

    /// Returns an empty queue with the same limits on running jobs, in total and for each host. In
    /// the new queue, the limit of each host adapts to the host's load if it does so in this queue.
    #[must_use]
    pub fn empty_with_same_caps(&self) -> Self {
        Self { adaptive_max: self.adaptive_max, ..Self::new(self.caps) }
    }

    /// Adapts the cap of `host` (the limit on its running jobs) to the end of a job. Call this
    /// before [`on_job_end`](JobQueue::on_job_end).
    ///
    /// If the host refused the job while other jobs ran on it, too many running jobs may be the
    /// reason. The result then says whether their number was above the limit for a new host
    /// ([`RefusedLoad`]), and the job may be tried again as soon as the cap allows. Returns `None`
    /// for other jobs, and if caps do not adapt.
    pub fn adapt_cap_on_end(&mut self, host: HostId, end: JobEnd) -> Option<RefusedLoad> {
        self.on_host_answered(host);
        let max = self.adaptive_max?;
        let index = self.host_index(host)?;
        let per_host = self.caps.per_host;
        let state = self.host_at(index);
        let JobEnd { now, first_byte, total, on_new_connection, kind } = end;
        let sample = CompletionSample { now, first_byte, total, in_flight: state.running, on_new_connection, kind };
        let concurrency = match &mut state.concurrency {
            Some(concurrency) => concurrency,
            // One request after the other says nothing about the limit.
            None if state.running < per_host && kind == CompletionKind::Served => return None,
            none => none.insert(Box::new(ConcurrencyLimit::new(max))),
        };
        let before = concurrency.limit();
        let limit = concurrency.on_completion(sample);
        state.remembered_until = Some(now + CAP_REMEMBERED_FOR);
        if limit != before {
            state.cap = Some(limit);
            self.update_host_state(index);
        }
        sample.refused_load()
    }

    /// Returns true if the silence timeout is set to a time after `now`, or if caps do not adapt.
    /// At the silence timeout, which [`next_wakeup`](JobQueue::next_wakeup) includes, the queue
    /// raises the caps of hosts whose jobs do not end. If the result is false, a caller that has
    /// pushed a job for a host at its cap must call [`next`](JobQueue::next), which sets the
    /// timeout.
    pub fn has_silence_timeout_or_needs_none(&self, now: MonotonicTime) -> bool {
        self.adaptive_max.is_none() || self.silent_at.is_some_and(|at| now < at)
    }

    /// Raises the caps (limits on running jobs) of hosts that have waiting jobs but whose running
    /// jobs do not end. Called when no job may start although jobs wait: a higher cap could allow
    /// one.
    pub(super) fn raise_silent_caps(&mut self, now: MonotonicTime) {
        let Some(max) = self.adaptive_max else { return };
        // A time long past is of an earlier wait.
        let Some(at) = self.silent_at.filter(|at| now.since(*at) < SILENCE_BEFORE_GROWTH) else {
            self.silent_at = (self.running < self.total_cap_with_extra_slots()).then_some(now + SILENCE_BEFORE_GROWTH);
            return;
        };
        if now < at {
            return;
        }
        self.silent_at = None;
        for index in 0..self.hosts.len() {
            let per_host = self.caps.per_host;
            let Some(state) = &mut self.hosts[index].host else { continue };
            let is_held_back = !state.waiting.is_empty()
                && state.paused_until.is_none()
                && state.running >= state.cap.unwrap_or(per_host);
            if is_held_back {
                self.silent_at = Some(now + SILENCE_BEFORE_GROWTH);
                let concurrency = state.concurrency.get_or_insert_with(|| Box::new(ConcurrencyLimit::new(max)));
                let limit = concurrency.on_silence(now);
                if state.cap.unwrap_or(per_host) != limit {
                    state.cap = Some(limit);
                    self.update_host_state(u32::try_from(index).expect("an index in use"));
                }
            }
        }
    }

    /// Records whether all jobs of `host` share one connection (HTTP/2).
    ///
    /// On a shared connection, the server itself limits the number of concurrent requests. So the
    /// host may then have as many running jobs as are allowed on all hosts together. This number is
    /// the host's new cap (limit on running jobs). Refused jobs lower the cap if caps adapt. When
    /// the jobs need separate connections again, the cap starts as for a new host.
    pub fn set_shared_connection(&mut self, host: HostId, is_shared: bool) {
        let total = self.caps.total;
        let adapts = self.adaptive_max.is_some();
        if self.shares_connection(host) == is_shared {
            return;
        }
        let Some(index) = self.host_index(host) else { return };
        let state = self.host_at(index);
        (state.concurrency, state.cap) = match (is_shared, adapts) {
            (false, _) => (None, None),
            (true, false) => (None, Some(usize::MAX)),
            (true, true) => (Some(Box::new(ConcurrencyLimit::of_shared_connection(total))), Some(total)),
        };
        self.update_host_state(index);
    }

    /// Returns true if the jobs of `host` share a connection, as
    /// [`set_shared_connection`](Self::set_shared_connection) has recorded.
    pub fn shares_connection(&self, host: HostId) -> bool {
        let state = self.host_index(host).and_then(|index| self.hosts[index as usize].host.as_ref());
        state.is_some_and(|state| match &state.concurrency {
            Some(concurrency) => concurrency.is_shared(),
            None => self.adaptive_max.is_none() && state.cap.is_some(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::QueueCaps;

    const MS: Duration = Duration::from_millis(1);

    /// A queue with jobs on one host, for tests.
    struct OneHostQueue {
        queue: JobQueue<(), u8>,
        now: MonotonicTime,
        running: Vec<HostId>,
    }

    impl OneHostQueue {
        fn new(total: usize, jobs: u64) -> Self {
            let mut queue = JobQueue::new(QueueCaps { total, per_host: 64 });
            queue.adapt_caps(50);
            (0..jobs).for_each(|job| {
                queue.push(&0, job, ());
            });
            let mut host = Self { queue, now: MonotonicTime(0), running: Vec::new() };
            host.start();
            host
        }

        fn start(&mut self) {
            while let Some((host, _, ())) = self.queue.next(self.now, None) {
                self.running.push(host);
            }
        }

        /// Ends all running jobs after `time`, and starts other jobs.
        fn end_all(&mut self, time: Duration, kind: CompletionKind) {
            self.now = self.now + time;
            for host in std::mem::take(&mut self.running) {
                self.queue.adapt_cap_on_end(
                    host,
                    JobEnd { now: self.now, first_byte: time, total: time, on_new_connection: false, kind },
                );
                if self.queue.next_for(host, self.now, None).is_some() {
                    self.running.push(host);
                } else {
                    self.queue.on_job_end(host);
                }
            }
            self.start();
        }
    }

    #[test]
    fn adaptive_host_cap_grows_within_total_cap() {
        for (total, most) in [(64, 50), (20, 20), (3, 3)] {
            let mut host = OneHostQueue::new(total, 200);
            assert_eq!(host.running.len(), total.min(6));
            host.end_all(100 * MS, CompletionKind::Served);
            assert_eq!(host.running.len(), most);
        }
    }

    #[test]
    fn refused_jobs_lower_the_host_cap() {
        let mut host = OneHostQueue::new(64, 200);
        host.end_all(100 * MS, CompletionKind::Served);
        host.end_all(100 * MS, CompletionKind::Refused);
        assert!(host.running.len() <= 6, "{}", host.running.len());
    }

    #[test]
    fn host_cap_is_remembered_without_jobs() {
        for (pause, most) in [(Duration::from_secs(59), 50), (Duration::from_secs(61), 6)] {
            let mut host = OneHostQueue::new(64, 12);
            host.end_all(100 * MS, CompletionKind::Served);
            host.end_all(100 * MS, CompletionKind::Served);
            assert_eq!((host.running.len(), host.queue.host_count()), (0, 1));
            host.now = host.now + pause;
            host.start();
            (0..100).for_each(|job| {
                host.queue.push(&0, job, ());
            });
            host.start();
            assert_eq!(host.running.len(), most, "{pause:?}");
        }
    }

    #[test]
    fn host_cap_grows_while_no_job_ends() {
        let mut host = OneHostQueue::new(64, 200);
        let at = host.queue.next_wakeup(host.now).expect("jobs wait");
        assert_eq!(at, host.now + SILENCE_BEFORE_GROWTH);
        for expected in [7, 9, 11] {
            host.now = host.now + SILENCE_BEFORE_GROWTH;
            host.start();
            assert_eq!(host.running.len(), expected);
        }
    }

    #[test]
    fn host_with_shared_connection_has_the_total_cap() {
        let mut host = OneHostQueue::new(64, 200);
        assert!(!host.queue.shares_connection(host.running[0]));
        host.queue.set_shared_connection(host.running[0], true);
        assert!(host.queue.shares_connection(host.running[0]));
        host.start();
        assert_eq!(host.running.len(), 64);
        host.end_all(100 * MS, CompletionKind::Refused);
        assert!(host.running.len() <= 6, "{}", host.running.len());
    }

    #[test]
    fn host_cap_drops_without_shared_http2_connection() {
        let mut host = OneHostQueue::new(64, 400);
        let id = host.running[0];
        host.queue.set_shared_connection(id, true);
        host.start();
        assert_eq!(host.running.len(), 64);
        host.queue.set_shared_connection(id, false);
        // Those above the cap go on, and no others take their places.
        for (ended, running) in [(10, 54), (49, 6)] {
            host.running.drain(..ended).for_each(|id| host.queue.on_job_end(id));
            host.start();
            assert_eq!(host.running.len(), running);
        }
    }

    #[test]
    fn separate_connections_restore_a_fixed_host_cap() {
        let mut queue: JobQueue<(), u8> = JobQueue::new(QueueCaps { total: 10, per_host: 2 });
        let now = MonotonicTime(0);
        (0..30).for_each(|job| {
            queue.push(&0, job, ());
        });
        for (is_shared, most) in [(false, 2), (true, 10), (false, 2)] {
            let (host, ..) = queue.next(now, None).expect("a job");
            queue.set_shared_connection(host, is_shared);
            let others = std::iter::from_fn(|| queue.next(now, None)).count();
            assert_eq!(1 + others, most);
            (0..most).for_each(|_| queue.on_job_end(host));
        }
    }

    #[test]
    fn host_state_is_dropped_after_its_last_job() {
        let mut host = OneHostQueue::new(64, 1);
        host.end_all(100 * MS, CompletionKind::Served);
        assert_eq!((host.running.len(), host.queue.host_count()), (0, 0));
    }

    #[test]
    fn silence_is_awaited_only_by_adaptive_queues() {
        let now = MonotonicTime(0);
        let fixed: JobQueue<(), u8> = JobQueue::new(QueueCaps { total: 10, per_host: 2 });
        assert!(fixed.has_silence_timeout_or_needs_none(now));
        let host = OneHostQueue::new(64, 200);
        let at = now + SILENCE_BEFORE_GROWTH;
        assert!(host.queue.has_silence_timeout_or_needs_none(now), "a cap may be raised in a second");
        assert!(!host.queue.has_silence_timeout_or_needs_none(at));
        assert_eq!(host.queue.next_wakeup(at), None);
        assert!(!OneHostQueue::new(64, 2).queue.has_silence_timeout_or_needs_none(now), "no job waits");
    }

    #[test]
    fn refused_job_below_the_cap_lowers_it() {
        let mut host = OneHostQueue::new(64, 3);
        host.end_all(100 * MS, CompletionKind::Refused);
        (0..20).for_each(|job| {
            host.queue.push(&0, job, ());
        });
        host.start();
        assert!(host.running.len() < INITIAL_LIMIT, "{}", host.running.len());
    }

    #[test]
    fn cap_is_not_raised_before_a_second() {
        let mut host = OneHostQueue::new(64, 200);
        host.now = host.now + (SILENCE_BEFORE_GROWTH - Duration::from_nanos(1));
        host.start();
        assert_eq!(host.running.len(), 6);
        host.now = host.now + Duration::from_nanos(1);
        host.start();
        assert_eq!(host.running.len(), 7);
    }

    #[test]
    fn total_shrinks_to_one_job_less() {
        let mut queue: JobQueue<(), u8> = JobQueue::new(QueueCaps { total: 10, per_host: 10 });
        (0..20).for_each(|job| {
            queue.push(&0, job, ());
        });
        let running = |queue: &mut JobQueue<(), u8>| {
            std::iter::from_fn(|| queue.next(MonotonicTime(0), None)).collect::<Vec<_>>()
        };
        let hosts = running(&mut queue);
        assert_eq!(hosts.len(), 10);
        queue.shrink();
        hosts.iter().take(3).for_each(|(host, ..)| queue.on_job_end(*host));
        assert_eq!(running(&mut queue).len(), 2);
        assert!(!queue.has_free_slot());
    }

    #[test]
    fn limit_of_job_numbers_is_exclusive() {
        let mut queue: JobQueue<(), u8> = JobQueue::new(QueueCaps { total: 10, per_host: 10 });
        (0..5).for_each(|job| {
            queue.push(&0, job, ());
        });
        let numbers: Vec<u64> =
            std::iter::from_fn(|| queue.next_below(3, MonotonicTime(0), None).map(|(_, number, ())| number)).collect();
        assert_eq!(numbers, [0, 1, 2]);
    }

    #[test]
    fn empty_queue_with_same_caps_adapts() {
        let mut queue = OneHostQueue::new(64, 0).queue.empty_with_same_caps();
        assert_eq!((queue.caps(), queue.adaptive_max), (QueueCaps { total: 64, per_host: 6 }, Some(50)));
        queue.push(&0, 0, ());
        assert_eq!(queue.len(), 1);
    }

    #[test]
    fn cap_is_not_raised_at_the_total_cap() {
        let host = OneHostQueue::new(6, 200);
        assert_eq!((host.running.len(), host.queue.next_wakeup(host.now)), (6, None));
    }

    #[test]
    fn silence_of_an_earlier_wait_is_forgotten() {
        let second = MonotonicTime(0) + SILENCE_BEFORE_GROWTH;
        let before = |nanoseconds| {
            let mut host = OneHostQueue::new(64, 200);
            host.now = second + (SILENCE_BEFORE_GROWTH - Duration::from_nanos(nanoseconds));
            host.start();
            (host.running.len(), host.queue.next_wakeup(host.now).map(|at| at.since(host.now)))
        };
        assert_eq!(before(1), (7, Some(SILENCE_BEFORE_GROWTH)));
        assert_eq!(before(0), (6, Some(SILENCE_BEFORE_GROWTH)));
    }

    #[test]
    fn silence_raises_no_paused_or_idle_host() {
        let mut host = OneHostQueue::new(64, 200);
        let later = host.now + SILENCE_BEFORE_GROWTH * 2;
        host.queue.pause_host_until(host.running[0], later);
        host.queue.push(&1, 500, ());
        host.start();
        assert_eq!(host.running.len(), 7);
        host.now = host.now + SILENCE_BEFORE_GROWTH;
        host.start();
        host.now = later;
        (501..520).for_each(|job| {
            host.queue.push(&1, job, ());
        });
        host.start();
        assert_eq!(host.running.len(), 12, "six on each host");
    }
}
