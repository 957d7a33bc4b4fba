//! Compares the queue with a simple model: one list that is searched from the beginning each time.

mod common;

use std::collections::HashMap;
use std::time::Duration;

use haul_policy::MonotonicTime;
use haul_policy::queue::{HostId, JobQueue, QueueCaps};
use proptest::collection::vec;
use proptest::prelude::*;

#[derive(Clone, Debug)]
enum QueueOp {
    Push {
        host: u8,
        seq: u64,
    },
    Next {
        head: Option<u64>,
    },
    /// Ends the running job with index `which`. Another job of its host replaces it, or its slot
    /// becomes free.
    Done {
        which: usize,
        head: Option<u64>,
    },
    Release {
        which: usize,
    },
    Pause {
        which: usize,
        nanos: u64,
    },
    Wait {
        nanos: u64,
    },
    Total {
        total: usize,
    },
    Remove {
        seq: u64,
    },
    /// Delays a job of the host of the running job with index `which`.
    Delay {
        which: usize,
        seq: u64,
        nanos: u64,
    },
}

fn ops() -> impl Strategy<Value = Vec<QueueOp>> {
    let head = || prop_oneof![Just(None), (0..20u64).prop_map(Some)];
    let op = prop_oneof![
        6 => (0..6u8, 0..20u64).prop_map(|(host, seq)| QueueOp::Push { host, seq }),
        5 => head().prop_map(|head| QueueOp::Next { head }),
        4 => (0..8usize, head()).prop_map(|(which, head)| QueueOp::Done { which, head }),
        2 => (0..8usize).prop_map(|which| QueueOp::Release { which }),
        2 => (0..8usize, 0..20u64).prop_map(|(which, nanos)| QueueOp::Pause { which, nanos }),
        2 => (0..15u64).prop_map(|nanos| QueueOp::Wait { nanos }),
        1 => (0..6usize).prop_map(|total| QueueOp::Total { total }),
        2 => (0..20u64).prop_map(|seq| QueueOp::Remove { seq }),
        3 => (0..8usize, 0..20u64, 0..20u64).prop_map(|(which, seq, nanos)| QueueOp::Delay { which, seq, nanos }),
    ];
    vec(op, 0..120)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct ModelJob {
    seq: u64,
    number: usize,
    host: u8,
}

struct QueueModel {
    caps: QueueCaps,
    now: MonotonicTime,
    waiting: Vec<ModelJob>,
    delayed: Vec<(MonotonicTime, ModelJob)>,
    running: Vec<(u8, HostId)>,
    paused: HashMap<u8, MonotonicTime>,
}

impl QueueModel {
    fn is_paused(&self, host: u8) -> bool {
        self.paused.get(&host).is_some_and(|until| *until > self.now)
    }

    fn running_on(&self, host: u8) -> usize {
        self.running.iter().filter(|(on, _)| *on == host).count()
    }

    fn awake(&self) -> impl Iterator<Item = ModelJob> {
        self.waiting.iter().copied().filter(|job| !self.is_paused(job.host))
    }

    fn head(&self, head: Option<u64>) -> Option<ModelJob> {
        let first = self.waiting.iter().copied().filter(|job| Some(job.seq) == head).min()?;
        (!self.is_paused(first.host)).then_some(first)
    }

    fn next(&self, head: Option<u64>) -> Option<ModelJob> {
        let room = self.running.len() < self.caps.total;
        let below = self.awake().filter(|job| self.running_on(job.host) < self.caps.per_host);
        self.head(head).or_else(|| below.min().filter(|_| room))
    }

    fn next_for(&self, host: u8, head: Option<u64>) -> Option<ModelJob> {
        let first = self.awake().filter(|job| job.host == host).min()?;
        if let Some(head) = self.head(head).filter(|job| job.host == host) {
            return Some(head);
        }
        let full = self.running.len() >= self.caps.total;
        let starved = self.awake().filter(|job| self.running_on(job.host) == 0).min();
        let yields = full && starved.is_some_and(|job| job < first);
        let over = self.running_on(host) > self.caps.per_host || self.running.len() > self.caps.total;
        (!yields && !over).then_some(first)
    }

    fn take(&mut self, job: ModelJob) {
        self.waiting.retain(|other| *other != job);
        self.delayed.retain(|(_, other)| *other != job);
    }

    /// Makes the delayed jobs whose time has come wait like other jobs.
    fn wake(&mut self) {
        let (due, rest) = self.delayed.drain(..).partition(|(until, _)| *until <= self.now);
        self.delayed = rest;
        self.waiting.extend(Vec::into_iter(due).map(|(_, job)| job));
    }
}

fn run(caps: QueueCaps, ops: &[QueueOp]) -> Result<(), TestCaseError> {
    let mut queue: JobQueue<ModelJob, u8> = JobQueue::new(caps);
    let caps = queue.caps();
    let mut model = QueueModel {
        caps,
        now: MonotonicTime(0),
        waiting: Vec::new(),
        delayed: Vec::new(),
        running: Vec::new(),
        paused: HashMap::new(),
    };
    for (number, op) in ops.iter().enumerate() {
        match *op {
            QueueOp::Push { host, seq } => {
                let job = ModelJob { seq, number, host };
                queue.push(&host, seq, job);
                model.waiting.push(job);
            }
            QueueOp::Next { head } => {
                model.wake();
                let expected = model.next(head);
                let got = queue.next(model.now, head);
                prop_assert_eq!(got.map(|(_, seq, job)| (seq, job)), expected.map(|job| (job.seq, job)));
                if let Some((id, seq, job)) = got {
                    model.take(job);
                    model.running.push((job.host, id));
                    let above = model.running.len() > model.caps.total || model.running_on(job.host) > caps.per_host;
                    prop_assert!(!above || Some(seq) == head, "only the head goes above a cap");
                }
            }
            QueueOp::Done { which, head } => {
                let Some((host, id)) = model.running.get(which).copied() else { continue };
                model.wake();
                let expected = model.next_for(host, head);
                let got = queue.next_for(id, model.now, head);
                prop_assert_eq!(got.map(|(_, job)| job), expected);
                match got {
                    Some((_, job)) => model.take(job),
                    None => {
                        queue.on_job_end(id);
                        model.running.remove(which);
                    }
                }
            }
            QueueOp::Release { which } => {
                if which < model.running.len() {
                    queue.on_job_end(model.running.remove(which).1);
                }
            }
            QueueOp::Pause { which, nanos } => {
                if let Some((host, id)) = model.running.get(which).copied() {
                    let until = model.now + Duration::from_nanos(nanos);
                    queue.pause_host_until(id, until);
                    let known = model.paused.entry(host).or_insert(until);
                    *known = until.max(*known);
                }
            }
            QueueOp::Wait { nanos } => model.now = model.now + Duration::from_nanos(nanos),
            QueueOp::Total { total } => {
                queue.set_total(total);
                model.caps.total = total.max(1);
            }
            QueueOp::Remove { seq } => {
                let first = model.waiting.iter().copied().filter(|job| job.seq == seq).min();
                let delayed = || model.delayed.iter().map(|(_, job)| *job).filter(|job| job.seq == seq).min();
                let first = first.or_else(delayed);
                prop_assert_eq!(queue.remove(seq), first);
                first.into_iter().for_each(|job| model.take(job));
            }
            QueueOp::Delay { which, seq, nanos } => {
                let Some((host, id)) = model.running.get(which).copied() else { continue };
                let (job, until) = (ModelJob { seq, number, host }, model.now + Duration::from_nanos(nanos));
                prop_assert_eq!(queue.push_delayed(id, until, seq, job), Ok(()));
                model.delayed.push((until, job));
            }
        }
        prop_assert_eq!(queue.len(), model.waiting.len());
        prop_assert_eq!(queue.is_empty(), model.waiting.is_empty());
        prop_assert_eq!(queue.delayed_jobs(), model.delayed.len());
        prop_assert_eq!(queue.next_due(MonotonicTime(0)), model.delayed.iter().map(|(until, _)| *until).min());
        prop_assert!((0..20).all(|seq| queue.contains(seq) == model.waiting.iter().any(|job| job.seq == seq)));
        prop_assert_eq!(queue.running_jobs(), model.running.len());
        prop_assert_eq!(queue.first_seq(), model.waiting.iter().map(|job| job.seq).min());
        for (host, id) in &model.running {
            prop_assert_eq!(queue.running_jobs_of_host(*id), model.running_on(*host));
            let is_full = model.running.len() >= model.caps.total || model.running_on(*host) >= model.caps.per_host;
            prop_assert_eq!(queue.is_full(*id), is_full);
            prop_assert_eq!(queue.paused_until(*id).is_some_and(|until| until > model.now), model.is_paused(*host));
            let mut there: Vec<_> = model.waiting.iter().filter(|job| job.host == *host).map(|job| job.seq).collect();
            there.sort_unstable();
            prop_assert!(queue.waiting_jobs_of_host(*id).eq(there));
        }
    }
    drain(queue, model)
}

/// Starts and ends all jobs. Checks that each pushed job is returned once, and that the queue
/// remembers no host afterwards.
fn drain(mut queue: JobQueue<ModelJob, u8>, mut model: QueueModel) -> Result<(), TestCaseError> {
    while !queue.is_empty() || queue.delayed_jobs() > 0 {
        model.wake();
        match queue.next(model.now, None) {
            Some((id, _, job)) => {
                prop_assert!(model.waiting.contains(&job), "twice or never pushed: {job:?}");
                model.take(job);
                model.running.push((job.host, id));
            }
            None if !model.running.is_empty() => queue.on_job_end(model.running.remove(0).1),
            None => {
                let wake = queue.next_wakeup(model.now).expect("only a pause or a delay can hold the rest back");
                prop_assert!(wake > model.now);
                model.now = wake;
            }
        }
    }
    prop_assert!(model.waiting.is_empty(), "lost: {:?}", model.waiting);
    model.running.drain(..).for_each(|(_, id)| queue.on_job_end(id));
    prop_assert!(queue.next(MonotonicTime(u64::MAX), None).is_none());
    prop_assert_eq!((queue.host_count(), queue.running_jobs()), (0, 0));
    Ok(())
}

proptest! {
    #![proptest_config(common::config(6000))]

    #[test]
    fn job_queue_behaves_like_the_model(total in 0..8usize, per_host in 0..4usize, ops in ops()) {
        run(QueueCaps { total, per_host }, &ops)?;
    }
}

#[test]
fn hosts_without_jobs_are_dropped() {
    let mut queue: JobQueue<(), u32> = JobQueue::new(QueueCaps { total: 4, per_host: 2 });
    let mut ids = std::collections::HashSet::new();
    for host in 0..200_000 {
        queue.push(&host, u64::from(host), ());
        let (id, ..) = queue.next(MonotonicTime(0), None).unwrap();
        queue.on_job_end(id);
        assert_eq!(queue.host_count(), 0);
        assert!(ids.insert(id), "an id was used twice");
        // A stale id does nothing.
        queue.on_job_end(id);
        queue.pause_host_until(id, MonotonicTime(9));
        assert_eq!((queue.running_jobs_of_host(id), queue.next_for(id, MonotonicTime(0), None)), (0, None));
    }
    assert_eq!(queue.running_jobs(), 0);
}

#[test]
fn number_of_remembered_pauses_is_bounded() {
    let mut queue: JobQueue<(), u32> = JobQueue::new(QueueCaps { total: 4, per_host: 2 });
    for host in 0..10_000 {
        queue.push(&host, 0, ());
        let (id, ..) = queue.next(MonotonicTime(0), None).unwrap();
        queue.pause_host_until(id, MonotonicTime(1000 + u64::from(host)));
        queue.on_job_end(id);
    }
    assert_eq!(queue.host_count(), 4096);
    // The last ones are still held back, until their time.
    queue.push(&9_999, 1, ());
    assert_eq!(queue.next(MonotonicTime(10_998), Some(1)), None);
    assert_eq!(queue.next_wakeup(MonotonicTime(0)), Some(MonotonicTime(10_999)));
    assert!(queue.next(MonotonicTime(10_999), None).is_some());
}

#[test]
fn host_of_delayed_job_is_remembered() {
    let mut queue: JobQueue<u64, u32> = JobQueue::new(QueueCaps { total: 1, per_host: 1 });
    queue.push(&7, 0, 0);
    let (id, ..) = queue.next(MonotonicTime(0), None).unwrap();
    queue.set_shared_connection(id, true);
    queue.pause_host_until(id, MonotonicTime(50));
    assert_eq!(queue.push_delayed(id, MonotonicTime(20), 0, 1), Ok(()));
    queue.on_job_end(id);
    assert_eq!((queue.host_count(), queue.running_jobs(), queue.len(), queue.delayed_jobs()), (1, 0, 0, 1));
    // It holds no slot: another host's job runs.
    queue.push(&8, 1, 2);
    let (other, _, job) = queue.next(MonotonicTime(10), None).unwrap();
    assert_eq!((job, queue.next_wakeup(MonotonicTime(10))), (2, Some(MonotonicTime(20))));
    queue.on_job_end(other);
    // At its time, it still waits for its host.
    assert_eq!(queue.next(MonotonicTime(20), None), None);
    assert_eq!(queue.next_wakeup(MonotonicTime(20)), Some(MonotonicTime(50)));
    assert_eq!(queue.next(MonotonicTime(50), None), Some((id, 0, 1)));
    queue.on_job_end(id);
    assert_eq!(queue.host_count(), 0);
    assert_eq!(queue.push_delayed(id, MonotonicTime(60), 0, 3), Err(3));
}

#[test]
fn delayed_job_starts_before_later_numbers() {
    let mut queue: JobQueue<&str, u32> = JobQueue::new(QueueCaps { total: 1, per_host: 1 });
    queue.push(&7, 1, "first try");
    let (id, ..) = queue.next(MonotonicTime(0), None).unwrap();
    queue.push_delayed(id, MonotonicTime(20), 1, "retry").unwrap();
    for seq in 2..5 {
        queue.push(&7, seq, "new");
    }
    assert_eq!(queue.next_for(id, MonotonicTime(10), None), Some((2, "new")));
    assert_eq!(queue.next_for(id, MonotonicTime(20), None), Some((1, "retry")));
    assert_eq!(queue.next_for(id, MonotonicTime(20), None), Some((3, "new")));
}

#[test]
fn job_of_held_host_waits_for_its_time() {
    let mut queue: JobQueue<u64, &str> = JobQueue::new(QueueCaps { total: 4, per_host: 4 });
    for seq in [0, 2, 4] {
        queue.push(&"held", seq, seq);
        queue.push(&"other", seq + 1, seq + 1);
    }
    let (host, ..) = queue.next(MonotonicTime(0), None).unwrap();
    assert_eq!(queue.host_key(host), Some(&"held"));
    queue.hold_host_until(host, MonotonicTime(10));
    assert_eq!(queue.next(MonotonicTime(9), None).unwrap().1, 1);
    assert_eq!(queue.next_for(host, MonotonicTime(9), Some(2)), None, "a head waits, too");
    assert_eq!((queue.paused_until(host), queue.next_wakeup(MonotonicTime(9))), (None, Some(MonotonicTime(10))));
    // A pause that the server asked for is longer.
    queue.pause_host_until(host, MonotonicTime(20));
    assert_eq!(queue.next_for(host, MonotonicTime(10), None), None);
    assert_eq!(queue.next_for(host, MonotonicTime(20), None), Some((2, 2)));
    assert_eq!(queue.remove(4), Some(4));
    queue.hold_host_until(host, MonotonicTime(40));
    queue.on_job_end(host);
    assert_eq!(queue.host_key(host), None, "the caller knows the time");
}

#[test]
fn head_job_starts_above_both_caps() {
    let mut queue: JobQueue<u64, &str> = JobQueue::new(QueueCaps { total: 3, per_host: 2 });
    for seq in 1..=3 {
        queue.push(&["x", "y"][seq as usize % 2], seq, seq);
    }
    for _ in 0..3 {
        queue.next(MonotonicTime(0), Some(0)).unwrap();
    }
    queue.push(&"x", 0, 0);
    queue.push(&"y", 9, 9);
    assert_eq!(queue.next(MonotonicTime(0), None), None);
    assert_eq!(queue.next(MonotonicTime(0), Some(0)).unwrap().1, 0);
    assert_eq!(queue.running_jobs(), 4);
    assert_eq!(queue.next(MonotonicTime(0), Some(0)), None);
}

#[test]
fn host_with_earliest_job_gets_the_free_slot() {
    let mut queue: JobQueue<(), &str> = JobQueue::new(QueueCaps { total: 1, per_host: 1 });
    for seq in [0, 1, 5, 6] {
        queue.push(&"long", seq, ());
    }
    queue.push(&"short", 3, ());
    let (long, ..) = queue.next(MonotonicTime(0), None).unwrap();
    assert_eq!(queue.next_for(long, MonotonicTime(0), None), Some((1, ())));
    assert_eq!(queue.next_for(long, MonotonicTime(0), None), None);
    queue.on_job_end(long);
    assert_eq!(queue.next(MonotonicTime(0), None).unwrap().1, 3);
}

#[test]
fn extra_slots_let_other_jobs_start() {
    let mut queue: JobQueue<(), u32> = JobQueue::new(QueueCaps { total: 2, per_host: 1 });
    (0..20).for_each(|host| {
        queue.push(&host, u64::from(host), ());
    });
    let start = |queue: &mut JobQueue<(), u32>| queue.next(MonotonicTime(0), None).map(|(host, ..)| host);
    let first = start(&mut queue).unwrap();
    let second = start(&mut queue).unwrap();
    assert!(start(&mut queue).is_none());
    assert!(queue.add_extra_slot());
    let third = start(&mut queue).unwrap();
    assert!(start(&mut queue).is_none());
    // The host has answered: three jobs run where two may.
    queue.remove_extra_slot();
    assert_eq!((queue.running_jobs(), start(&mut queue)), (3, None));
    queue.on_job_end(first);
    assert!(start(&mut queue).is_none());
    assert!(queue.next_for(second, MonotonicTime(0), None).is_none());
    queue.on_job_end(second);
    assert!(start(&mut queue).is_some());
    queue.on_job_end(third);
    let added = (0..100).filter(|_| queue.add_extra_slot()).count();
    assert_eq!(added, 8, "four for each slot");
}

#[test]
fn number_of_extra_slots_is_bounded() {
    for (total, most) in [(1, 0), (2, 8), (64, 256), (300, 1024), (65_535, 1024)] {
        let mut queue: JobQueue<(), u32> = JobQueue::new(QueueCaps { total, per_host: 1 });
        assert_eq!((0..5000).filter(|_| queue.add_extra_slot()).count(), most, "{total}");
    }
}

#[test]
fn extra_slot_is_only_for_unanswering_host() {
    let mut queue: JobQueue<(), u32> = JobQueue::new(QueueCaps { total: 2, per_host: 2 });
    let hosts = [1, 2].map(|host| queue.push(&host, u64::from(host), ()));
    while queue.next(MonotonicTime(0), None).is_some() {}
    queue.on_host_answered(hosts[1]);
    assert!(!queue.has_free_slot());
    assert_eq!(hosts.map(|host| queue.add_extra_slot_for_silent_host(host)), [true, false]);
    assert!(queue.has_free_slot());
    // A stale id has no answer and no slot.
    queue.on_job_end(hosts[0]);
    queue.remove_extra_slot();
    assert!(!queue.add_extra_slot_for_silent_host(hosts[0]));
}

#[test]
fn surplus_job_end_frees_no_slot() {
    let mut queue: JobQueue<(), u32> = JobQueue::new(QueueCaps { total: 4, per_host: 1 });
    let id = queue.push(&1, 0, ());
    queue.push(&1, 1, ());
    queue.push(&1, 2, ());
    let now = MonotonicTime(0);
    assert_eq!(queue.next_for(id, now, None), None, "no job of the host runs");
    assert!(queue.next(now, None).is_some());
    queue.on_job_end(id);
    queue.on_job_end(id);
    assert_eq!(queue.running_jobs(), 0);
    assert!(queue.next(now, None).is_some());
    assert_eq!((queue.next(now, None), queue.running_jobs()), (None, 1));
}

#[test]
fn job_at_the_limit_replaces_no_other() {
    let mut queue: JobQueue<(), u32> = JobQueue::new(QueueCaps { total: 4, per_host: 1 });
    let (id, now) = (queue.push(&1, 0, ()), MonotonicTime(0));
    queue.push(&1, 5, ());
    assert!(queue.next(now, None).is_some());
    assert_eq!(queue.next_for_below(id, 5, now, None), None);
    assert_eq!(queue.next_for_below(id, 6, now, None), Some((5, ())));
}
