//! A queue of jobs. Each job has a number, and the lowest number starts first. The number of
//! running jobs is limited for each host and in total. Hosts can be paused, and jobs can wait for a
//! time.
//!
//! ```
//! use haul_policy::queue::{QueueCaps, JobQueue};
//! use haul_policy::{Target, MonotonicTime};
//!
//! let mut queue = JobQueue::new(QueueCaps { total: 8, per_host: 1 });
//! let (a, b) = (Target::parse("http://a/")?.origin(), Target::parse("http://b/")?.origin());
//! queue.push(&a, 0, "a0");
//! queue.push(&a, 1, "a1");
//! queue.push(&b, 2, "b2");
//! let (host, _, job) = queue.next(MonotonicTime(0), None).unwrap();
//! assert_eq!(job, "a0");
//! assert_eq!(queue.next(MonotonicTime(0), None).unwrap().2, "b2"); // a is full
//! assert_eq!(queue.next_for(host, MonotonicTime(0), None), Some((1, "a1"))); // on a0's warm connection
//! # Ok::<(), haul_policy::TargetError>(())
//! ```
//!
//! [`next`](JobQueue::next) starts a job, which counts as running until
//! [`on_job_end`](JobQueue::on_job_end). [`next_for`](JobQueue::next_for) replaces a finished job
//! by another one of the same host.
//!
//! **Delayed jobs.** A job that must wait for a time (a retry) ends, and is added again by
//! [`push_delayed`](JobQueue::push_delayed). After that time it waits like any other job, in the
//! order of the numbers. Until then the queue remembers its host and the host's cap.
//!
//! **The head.** With output in order, the head is the first unfinished job: the output waits for
//! it. Later jobs may use up both caps and then stall, because their buffers are full until the
//! head has been printed. The head may therefore start above both caps. It may not start on a
//! paused host, since that would answer a Retry-After with a busy loop.
//!
//! **Cost.** A waiting job is in two lines or ordered maps, a delayed job in two ordered maps; a
//! host with a job that may start is in one ordered set. Every operation is O(log n); none visits
//! all hosts. A host is dropped as soon as no job waits or runs there and it is not paused, so
//! memory depends on the jobs in the queue, not on the number of hosts ever seen.

mod adaptive_caps;
mod extra_slots_for_silent_hosts;
mod jobs_by_position;
mod queued_host;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::Hash;

pub use adaptive_caps::JobEnd;
use jobs_by_position::WaitingJobs;
use queued_host::{HostBusyOrIdle, HostSetMembership, HostTableEntry, QueuedHost};

use crate::target::Origin;
use crate::time::MonotonicTime;

/// The maximum numbers of jobs that run at the same time: one number for all hosts together, and
/// one for each host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueCaps {
    /// The maximum number of running jobs on all hosts together; 0 counts as 1.
    pub total: usize,
    /// The maximum number of running jobs on one host; 0 counts as 1.
    pub per_host: usize,
}

/// The identity of a host in the queue. It is valid while the queue remembers the host: while the
/// host has jobs, is paused, or has an adaptive cap (a limit on its running jobs) to keep. A call
/// with an id that is no longer valid has no effect. If another host gets the same `index`, its
/// `generation` differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HostId {
    index: u32,
    generation: u32,
}

/// The maximum number of hosts that are remembered only because they are paused. If there are more,
/// the host whose pause ends first is dropped. These hosts take at most about 1 MiB.
const MAX_HOSTS_WITHOUT_JOBS: usize = 4096;

/// The position of a job in the queue: the caller's number for the job (`seq`), then the number of
/// jobs pushed before it, since several jobs may have the same `seq`.
type JobPosition = (u64, u64);

/// A queue of jobs of type `T`. Each job belongs to a host `K`, and the numbers of running jobs are
/// limited.
#[derive(Debug)]
pub struct JobQueue<T, K = Origin> {
    caps: QueueCaps,
    /// The maximum to which the cap of a host (the limit on its running jobs) may grow; `None` if
    /// caps do not adapt.
    adaptive_max: Option<usize>,
    /// The next time at which the queue raises the caps (limits on running jobs) of hosts that have
    /// waiting jobs but whose running jobs do not end; `None` if no such time is set.
    silent_at: Option<MonotonicTime>,
    hosts: Vec<HostTableEntry<T, K>>,
    free: Vec<u32>,
    by_key: HashMap<K, u32>,
    /// The index in `hosts` of the host to which the last job was added. The next job probably has
    /// the same host.
    last: u32,
    /// All waiting jobs, each with the index of its host.
    waiting: WaitingJobs<u32>,
    /// Hosts that may start a job now, each with the position of its first job.
    ready: BTreeSet<(JobPosition, u32)>,
    /// The entries of `ready` (hosts that may start a job now) whose hosts have no running job.
    ready_idle: BTreeSet<(JobPosition, u32)>,
    /// Paused hosts with waiting jobs, by the end of the pause.
    paused: BTreeSet<(MonotonicTime, u32)>,
    /// Hosts without jobs that the queue remembers because of their pause or their cap, sorted by
    /// the time at which the queue forgets them.
    resting: BTreeSet<(MonotonicTime, u32)>,
    /// Delayed jobs, each with the time until which it waits, and the index of its host.
    delayed: BTreeMap<JobPosition, (MonotonicTime, u32, T)>,
    /// The times until which the delayed jobs wait, earliest first.
    due: BTreeSet<(MonotonicTime, JobPosition)>,
    running: usize,
    /// The number of extra slots: permits for one running job each, beyond the total cap. A slot is
    /// added for each running job that only waits for a host that does not answer.
    extra_slots: usize,
    pushes: u64,
}

impl<T, K: Hash + Eq + Clone> JobQueue<T, K> {
    /// Creates an empty queue. `caps` are the maximum numbers of running jobs.
    pub fn new(caps: QueueCaps) -> Self {
        JobQueue {
            caps: QueueCaps { total: caps.total.max(1), per_host: caps.per_host.max(1) },
            adaptive_max: None,
            silent_at: None,
            hosts: Vec::new(),
            free: Vec::new(),
            by_key: HashMap::new(),
            last: 0,
            waiting: WaitingJobs::default(),
            ready: BTreeSet::new(),
            ready_idle: BTreeSet::new(),
            paused: BTreeSet::new(),
            resting: BTreeSet::new(),
            delayed: BTreeMap::new(),
            due: BTreeSet::new(),
            running: 0,
            extra_slots: 0,
            pushes: 0,
        }
    }

    /// Adds a job of `host`, and returns the id of the host in the queue. `seq` is the caller's
    /// number for the job: the waiting job with the lowest number starts first. The number may be
    /// lower than those in the queue, and several jobs may have the same number (a retry, for
    /// example).
    pub fn push(&mut self, host: &K, seq: u64, item: T) -> HostId {
        let index = self.find_or_add_host(host);
        let place = (seq, self.pushes);
        self.pushes += 1;
        self.waiting.insert(place, index);
        self.host_at(index).waiting.insert(place, item);
        self.update_host_state(index);
        HostId { index, generation: self.hosts[index as usize].generation }
    }

    /// Adds a job of `host` that cannot start before `until`. `seq` is the caller's number for the
    /// job, as in [`push`](JobQueue::push).
    ///
    /// # Errors
    /// Returns the job if the queue has forgotten the host, so that its id is no longer valid
    /// ([`HostId`]).
    pub fn push_delayed(&mut self, host: HostId, until: MonotonicTime, seq: u64, item: T) -> Result<(), T> {
        let Some(index) = self.host_index(host) else { return Err(item) };
        let place = (seq, self.pushes);
        self.pushes += 1;
        self.delayed.insert(place, (until, index, item));
        self.due.insert((until, place));
        self.host_at(index).delayed += 1;
        self.update_host_state(index);
        Ok(())
    }

    /// Returns the job to start now, with its host and number; `None` if no job may start. The job
    /// then counts as running.
    ///
    /// `head` is the number of the job whose output must come next, if the output is ordered. This
    /// job may start beyond the caps, but not while its host is paused.
    pub fn next(&mut self, now: MonotonicTime, head: Option<u64>) -> Option<(HostId, u64, T)> {
        self.next_below(u64::MAX, now, head)
    }

    /// Returns the job to start now, like [`next`](JobQueue::next), but only a job whose number is
    /// below `limit`, or the job with the number `head` (whose output must come next). Returns
    /// `None` if no such job may start.
    pub fn next_below(&mut self, limit: u64, now: MonotonicTime, head: Option<u64>) -> Option<(HostId, u64, T)> {
        self.end_expired_pauses(now);
        if self.ready.is_empty() && !self.waiting.is_empty() {
            self.raise_silent_caps(now);
        }
        let (place, index) = self.startable_head(head).or_else(|| {
            let (place, index) = self.ready.first()?;
            (self.running < self.total_cap_with_extra_slots() && place.0 < limit).then_some((*place, *index))
        })?;
        let item = self.remove_at(place, index);
        self.running += 1;
        self.host_at(index).running += 1;
        self.update_host_state(index);
        Some((HostId { index, generation: self.hosts[index as usize].generation }, place.0, item))
    }

    /// Returns another job of `host` in place of a job that has just finished, so that the new job
    /// can use the open connection. The number of running jobs stays the same. After `None`, call
    /// [`on_job_end`](JobQueue::on_job_end).
    ///
    /// `head` is the number of the job whose output must come next, if the output is ordered. This
    /// job may start unless the host is paused. For other jobs, returns `None` in these cases:
    ///
    /// * No job of the host waits, or the host is paused.
    /// * More jobs run than are allowed on this host, or on all hosts together.
    /// * As many jobs run as are allowed on all hosts together, and a host without running jobs has
    ///   a job with a lower number. Otherwise, a few hosts with many jobs would keep such a host
    ///   waiting.
    pub fn next_for(&mut self, host: HostId, now: MonotonicTime, head: Option<u64>) -> Option<(u64, T)> {
        self.next_for_below(host, u64::MAX, now, head)
    }

    /// Returns another job of `host` in place of a job that has just finished, like
    /// [`next_for`](JobQueue::next_for), but only a job whose number is below `limit`, or the job
    /// with the number `head` (whose output must come next). Returns `None` if no such job may
    /// start.
    pub fn next_for_below(
        &mut self,
        host: HostId,
        limit: u64,
        now: MonotonicTime,
        head: Option<u64>,
    ) -> Option<(u64, T)> {
        self.end_expired_pauses(now);
        let index = self.host_index(host)?;
        let state = self.host_at(index);
        if state.running == 0 || state.held_until().is_some() {
            return None;
        }
        let over_cap = state.running > state.cap.unwrap_or(self.caps.per_host);
        let (first, _) = self.host_at(index).waiting.first()?;
        let head = self.startable_head(head).filter(|(_, at)| *at == index).map(|(place, _)| place);
        let ready_idle = self.running >= self.total_cap_with_extra_slots()
            && self.ready_idle.first().is_some_and(|(place, _)| *place < first);
        let place = match head {
            Some(head) => head,
            None if over_cap || self.running > self.total_cap_with_extra_slots() || ready_idle || first.0 >= limit => {
                return None;
            }
            None => first,
        };
        let item = self.remove_at(place, index);
        self.update_host_state(index);
        Some((place.0, item))
    }

    /// Removes and returns the first waiting job with the caller's number `seq`. If no such job
    /// waits, removes and returns the first delayed job (whose start time has not come) with that
    /// number. Returns `None` if there is no such job.
    pub fn remove(&mut self, seq: u64) -> Option<T> {
        let (index, item) = if let Some((place, &index)) = self.waiting.first_with_number(seq) {
            (index, self.remove_at(place, index))
        } else {
            let (&place, _) = self.delayed.range((seq, 0)..=(seq, u64::MAX)).next()?;
            let (until, index, item) = self.delayed.remove(&place)?;
            self.due.remove(&(until, place));
            self.host_at(index).delayed -= 1;
            (index, item)
        };
        self.update_host_state(index);
        Some(item)
    }

    /// Records that a job of `host` has ended. To [pause](JobQueue::pause_host_until) the host, do
    /// so before this call: the queue may forget the host when its last job ends.
    pub fn on_job_end(&mut self, host: HostId) {
        let Some(index) = self.host_index(host) else { return };
        let state = self.host_at(index);
        if state.running == 0 {
            return;
        }
        state.running -= 1;
        self.running -= 1;
        self.update_host_state(index);
    }

    /// Pauses `host`: no job starts there before `until`. Of several pauses, the longest counts.
    /// Running jobs continue.
    pub fn pause_host_until(&mut self, host: HostId, until: MonotonicTime) {
        let Some(index) = self.host_index(host) else { return };
        let state = self.host_at(index);
        state.paused_until = state.paused_until.max(Some(until));
        self.update_host_state(index);
    }

    /// Prevents jobs from starting on `host` before `until`, because the caller limits the rate at
    /// which requests start. Unlike a [pause](JobQueue::pause_host_until), this limit is forgotten
    /// with the last job of the host.
    pub fn hold_host_until(&mut self, host: HostId, until: MonotonicTime) {
        let Some(index) = self.host_index(host) else { return };
        self.host_at(index).rate_limited_until = Some(until);
        self.update_host_state(index);
    }

    /// Returns the key of the host with the id `host`, as the caller passed it to
    /// [`push`](JobQueue::push). Returns `None` if the queue has forgotten the host.
    pub fn host_key(&self, host: HostId) -> Option<&K> {
        self.host_index(host).and_then(|index| self.hosts[index as usize].host.as_ref()).map(|state| &state.key)
    }

    /// Returns the end of the pause of `host`; `None` if it is not paused.
    pub fn paused_until(&self, host: HostId) -> Option<MonotonicTime> {
        self.host_index(host).and_then(|index| self.hosts[index as usize].host.as_ref())?.paused_until
    }

    /// Returns the caller's numbers (`seq`) of the jobs of `host` that wait to start, in ascending
    /// order. Delayed jobs, whose start time has not come, are not included.
    pub fn waiting_jobs_of_host(&self, host: HostId) -> impl Iterator<Item = u64> {
        let state = self.host_index(host).and_then(|index| self.hosts[index as usize].host.as_ref());
        state.into_iter().flat_map(|state| state.waiting.positions().map(|(seq, _)| seq))
    }

    /// Returns the time at which to call [`next`](JobQueue::next) again, even if no job is pushed
    /// or ends until then. It is the earliest of these times: the end of the pause of a host with
    /// waiting jobs, the end of the wait of a delayed job, and the time at which the queue may
    /// raise the cap of a host on which no job ends. `None` if there is no such time.
    pub fn next_wakeup(&self, now: MonotonicTime) -> Option<MonotonicTime> {
        let resumes = self.paused.first().map(|(until, _)| (*until).max(now));
        let raised = self.silent_at.filter(|at| *at > now && self.ready.is_empty() && !self.waiting.is_empty());
        [resumes, raised, self.next_due(now)].into_iter().flatten().min()
    }

    /// Returns the earliest time at which a delayed job may start; `None` without delayed jobs.
    pub fn next_due(&self, now: MonotonicTime) -> Option<MonotonicTime> {
        self.due.first().map(|(until, _)| (*until).max(now))
    }

    /// Sets the maximum number of running jobs on all hosts together; 0 counts as 1. Running jobs
    /// continue. Lower the maximum if the process runs out of file descriptors (EMFILE).
    pub fn set_total(&mut self, total: usize) {
        self.caps.total = total.max(1);
    }

    /// Returns the maximum numbers of jobs that run at the same time, on all hosts together and on
    /// each host.
    pub fn caps(&self) -> QueueCaps {
        self.caps
    }

    /// Returns the number of waiting jobs, without delayed jobs (whose start time has not come).
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Returns `true` if no job waits. Delayed jobs, whose start time has not come, do not count.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Returns the number of delayed jobs, whose time has not come.
    pub fn delayed_jobs(&self) -> usize {
        self.delayed.len()
    }

    /// Returns `true` if a job with the caller's number `seq` waits. Delayed jobs, whose start time
    /// has not come, do not count.
    pub fn contains(&self, seq: u64) -> bool {
        self.waiting.first_with_number(seq).is_some()
    }

    /// Returns the number of running jobs.
    pub fn running_jobs(&self) -> usize {
        self.running
    }

    /// Returns the number of running jobs of `host`; 0 if the queue does not remember it.
    pub fn running_jobs_of_host(&self, host: HostId) -> usize {
        self.host_index(host)
            .and_then(|index| self.hosts[index as usize].host.as_ref())
            .map_or(0, |state| state.running)
    }

    /// Returns `true` if a new job for `host` would have to wait until another job ends.
    pub fn is_full(&self, host: HostId) -> bool {
        let state = self.host_index(host).and_then(|index| self.hosts[index as usize].host.as_ref());
        let is_at_cap = state.is_some_and(|state| state.running >= state.cap.unwrap_or(self.caps.per_host));
        self.running >= self.total_cap_with_extra_slots() || is_at_cap
    }

    /// Returns the number of hosts that the queue remembers.
    pub fn host_count(&self) -> usize {
        self.by_key.len()
    }

    /// Returns the lowest of the caller's numbers (`seq`) of the waiting jobs; `None` if no job
    /// waits.
    pub fn first_seq(&self) -> Option<u64> {
        self.waiting.first().map(|(place, _)| place.0)
    }

    fn startable_head(&self, head: Option<u64>) -> Option<(JobPosition, u32)> {
        let head = head?;
        let (place, index) = self.waiting.first_with_number(head)?;
        let is_held = self.hosts[*index as usize].host.as_ref()?.held_until().is_some();
        (!is_held).then_some((place, *index))
    }

    fn remove_at(&mut self, place: JobPosition, index: u32) -> T {
        self.waiting.remove(place);
        self.host_at(index).waiting.remove(place).expect("a place in `waiting` is in its host's too")
    }

    /// Ends the pauses of hosts and the waits of delayed jobs whose time has come at `now`, so that
    /// the jobs can start.
    pub fn end_expired_pauses(&mut self, now: MonotonicTime) {
        while let Some((_, place)) = self.due.first().copied().filter(|(until, _)| *until <= now) {
            self.due.pop_first();
            let (_, index, item) = self.delayed.remove(&place).expect("a place in `due` is in `delayed` too");
            self.waiting.insert(place, index);
            let state = self.host_at(index);
            state.delayed -= 1;
            state.waiting.insert(place, item);
            self.update_host_state(index);
        }
        while let Some((_, index)) = self.paused.first().copied().filter(|(until, _)| *until <= now) {
            self.end_pause(index);
        }
        while let Some((_, index)) = self.resting.first().copied().filter(|(until, _)| *until <= now) {
            self.host_at(index).remembered_until = None;
            self.end_pause(index);
        }
    }

    fn end_pause(&mut self, index: u32) {
        let state = self.host_at(index);
        (state.paused_until, state.rate_limited_until) = (None, None);
        self.update_host_state(index);
    }

    fn find_or_add_host(&mut self, key: &K) -> u32 {
        let is_last = |slot: &HostTableEntry<T, K>| slot.host.as_ref().is_some_and(|host| host.key == *key);
        if self.hosts.get(self.last as usize).is_some_and(is_last) {
            return self.last;
        }
        if let Some(index) = self.by_key.get(key) {
            self.last = *index;
            return *index;
        }
        let host = QueuedHost::without_jobs(key.clone());
        let index = match self.free.pop() {
            Some(index) => {
                self.hosts[index as usize].host = Some(host);
                index
            }
            None => {
                self.hosts.push(HostTableEntry { generation: 0, host: Some(host) });
                u32::try_from(self.hosts.len() - 1).expect("fewer than 2^32 hosts at a time")
            }
        };
        self.by_key.insert(key.clone(), index);
        index
    }

    fn host_index(&self, host: HostId) -> Option<u32> {
        let slot = self.hosts.get(host.index as usize)?;
        (slot.generation == host.generation && slot.host.is_some()).then_some(host.index)
    }

    fn host_at(&mut self, index: u32) -> &mut QueuedHost<T, K> {
        self.hosts[index as usize].host.as_mut().expect("an index in use")
    }

    /// Moves a host to the set that matches its present state, or drops the host if the queue no
    /// longer needs it.
    fn update_host_state(&mut self, index: u32) {
        let per_host = self.caps.per_host;
        let state = self.hosts[index as usize].host.as_mut().expect("an index in use");
        let first = state.waiting.first().map(|(place, _)| place);
        let activity = if state.running == 0 { HostBusyOrIdle::Idle } else { HostBusyOrIdle::Busy };
        let held_until = state.held_until();
        let is_idle = first.is_none() && activity == HostBusyOrIdle::Idle && state.delayed == 0;
        let wanted = match (first, held_until) {
            (Some(_), Some(until)) => HostSetMembership::Paused(until),
            (Some(first), None) if state.running < state.cap.unwrap_or(per_host) => {
                HostSetMembership::Ready(first, activity)
            }
            (None, _) if is_idle => {
                state.retained_until().map_or(HostSetMembership::Nowhere, HostSetMembership::Resting)
            }
            _ => HostSetMembership::Nowhere,
        };
        let before = core::mem::replace(&mut state.listed, wanted);
        if before != wanted {
            self.remove_from_state_set(before, index);
            self.add_to_state_set(wanted, index);
        }
        if is_idle && matches!(wanted, HostSetMembership::Nowhere) {
            self.remove_host(index);
        } else if self.resting.len() > MAX_HOSTS_WITHOUT_JOBS
            && let Some((_, first)) = self.resting.pop_first()
        {
            self.host_at(first).listed = HostSetMembership::Nowhere;
            self.remove_host(first);
        }
    }

    fn add_to_state_set(&mut self, wanted: HostSetMembership, index: u32) {
        match wanted {
            HostSetMembership::Nowhere => {}
            HostSetMembership::Ready(place, activity) => {
                self.ready.insert((place, index));
                if activity == HostBusyOrIdle::Idle {
                    self.ready_idle.insert((place, index));
                }
            }
            HostSetMembership::Paused(until) => {
                self.paused.insert((until, index));
            }
            HostSetMembership::Resting(until) => {
                self.resting.insert((until, index));
            }
        }
    }

    fn remove_from_state_set(&mut self, before: HostSetMembership, index: u32) {
        match before {
            HostSetMembership::Nowhere => {}
            HostSetMembership::Ready(place, activity) => {
                self.ready.remove(&(place, index));
                if activity == HostBusyOrIdle::Idle {
                    self.ready_idle.remove(&(place, index));
                }
            }
            HostSetMembership::Paused(until) => {
                self.paused.remove(&(until, index));
            }
            HostSetMembership::Resting(until) => {
                self.resting.remove(&(until, index));
            }
        }
    }

    fn remove_host(&mut self, index: u32) {
        let slot = &mut self.hosts[index as usize];
        slot.generation = slot.generation.wrapping_add(1);
        if let Some(state) = slot.host.take() {
            self.by_key.remove(&state.key);
        }
        self.free.push(index);
    }
}
