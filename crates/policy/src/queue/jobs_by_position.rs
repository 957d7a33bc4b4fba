//! Waiting jobs by their position in the queue.

use std::collections::{BTreeMap, VecDeque};

use super::JobPosition;

/// The number by which the empty entries in the `line` of a [`WaitingJobs`] may exceed the jobs
/// there: beside 34 jobs, 66 entries may be empty. A removed job leaves an empty entry. At a larger
/// excess, all empty entries are removed.
const MAX_EXCESS_GAPS: usize = 32;

/// Waiting jobs, sorted by position. Most jobs are added in the order of their positions. They are
/// in `line`, a double-ended queue: to add a job there, or to remove the first one, costs a few
/// instructions. A job whose position is lower than that of the last job in `line` is in `others`,
/// an ordered map.
#[derive(Debug)]
pub(super) struct WaitingJobs<T> {
    /// Jobs in the order of their positions. `None` is an empty entry, left by a removed job. The
    /// first and the last entry are never empty.
    line: VecDeque<(JobPosition, Option<T>)>,
    /// The number of jobs in `line`.
    line_jobs: usize,
    others: BTreeMap<JobPosition, T>,
}

impl<T> Default for WaitingJobs<T> {
    fn default() -> Self {
        Self { line: VecDeque::new(), line_jobs: 0, others: BTreeMap::new() }
    }
}

impl<T> WaitingJobs<T> {
    /// Adds a job. No other waiting job may have this position.
    pub(super) fn insert(&mut self, position: JobPosition, job: T) {
        if self.line.back().is_none_or(|(last, _)| *last < position) {
            self.line.push_back((position, Some(job)));
            self.line_jobs += 1;
        } else {
            self.others.insert(position, job);
        }
    }

    /// Returns the number of waiting jobs.
    pub(super) fn len(&self) -> usize {
        self.line_jobs + self.others.len()
    }

    /// Returns true if no job waits.
    pub(super) fn is_empty(&self) -> bool {
        self.line.is_empty() && self.others.is_empty()
    }

    /// Returns the position of the first job, and the job; `None` if no job waits.
    pub(super) fn first(&self) -> Option<(JobPosition, &T)> {
        let in_line = self.line.front().and_then(as_job);
        if self.others.is_empty() {
            return in_line;
        }
        first_of(in_line, self.others.first_key_value().map(|(position, job)| (*position, job)))
    }

    /// Returns the position and the value of the first waiting job that has the caller's number
    /// `seq`; `None` if no such job waits.
    pub(super) fn first_with_number(&self, seq: u64) -> Option<(JobPosition, &T)> {
        let begin = self.line.partition_point(|(position, _)| position.0 < seq);
        let in_line = self.line.range(begin..).take_while(|(position, _)| position.0 == seq).find_map(as_job);
        let other = self.others.range((seq, 0)..=(seq, u64::MAX)).next().map(|(position, job)| (*position, job));
        first_of(in_line, other)
    }

    /// Removes and returns the job at this position; `None` if no job is there.
    pub(super) fn remove(&mut self, position: JobPosition) -> Option<T> {
        let is_first = self.line.front().is_some_and(|(first, _)| *first == position);
        let index = if is_first { Ok(0) } else { self.line.binary_search_by_key(&position, |(other, _)| *other) };
        let Some(job) = index.ok().and_then(|index| self.line[index].1.take()) else {
            return self.others.remove(&position);
        };
        self.line_jobs -= 1;
        while self.line.front().is_some_and(|(_, job)| job.is_none()) {
            self.line.pop_front();
        }
        while self.line.back().is_some_and(|(_, job)| job.is_none()) {
            self.line.pop_back();
        }
        if self.line.len() > MAX_EXCESS_GAPS + 2 * self.line_jobs {
            self.line.retain(|(_, job)| job.is_some());
        }
        Some(job)
    }

    /// Returns the positions of the waiting jobs, in order.
    pub(super) fn positions(&self) -> impl Iterator<Item = JobPosition> {
        let mut line = self.line.iter().filter_map(as_job).map(|(position, _)| position).peekable();
        let mut others = self.others.keys().copied().peekable();
        core::iter::from_fn(move || match (line.peek(), others.peek()) {
            (Some(first), Some(other)) if first < other => line.next(),
            (_, Some(_)) => others.next(),
            (_, None) => line.next(),
        })
    }
}

fn as_job<T>((position, job): &(JobPosition, Option<T>)) -> Option<(JobPosition, &T)> {
    Some((*position, job.as_ref()?))
}

fn first_of<'a, T>(
    one: Option<(JobPosition, &'a T)>,
    other: Option<(JobPosition, &'a T)>,
) -> Option<(JobPosition, &'a T)> {
    match (one, other) {
        (Some(one), Some(other)) => Some(if one.0 < other.0 { one } else { other }),
        (one, other) => one.or(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_jobs_agree_with_an_ordered_map() {
        let mut state = 7_u64;
        let mut below = |limit: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % limit
        };
        let (mut jobs, mut model) = (WaitingJobs::default(), BTreeMap::new());
        for step in 0..20_000_u64 {
            match below(8) {
                0..=3 => {
                    let seq = if below(4) == 0 { below(step + 1) } else { step };
                    jobs.insert((seq, step), step);
                    model.insert((seq, step), step);
                }
                4..=5 => {
                    let first = model.pop_first();
                    let position = jobs.first().map(|(position, job)| (position, *job));
                    assert_eq!(position, first);
                    assert_eq!(first.and_then(|(position, _)| jobs.remove(position)), first.map(|(_, job)| job));
                }
                6 => {
                    let seq = below(step + 1);
                    let expected = model.range((seq, 0)..).next().map(|(position, job)| (*position, *job));
                    let expected = expected.filter(|(position, _)| position.0 == seq);
                    assert_eq!(jobs.first_with_number(seq).map(|(position, job)| (position, *job)), expected);
                    let gone = expected.map_or((seq, 0), |(position, _)| position);
                    assert_eq!(jobs.remove(gone), model.remove(&gone));
                }
                _ => {
                    let count = model.len() as u64;
                    let gone = model.keys().nth(below(count.max(1)) as usize).copied().unwrap_or_default();
                    assert_eq!(jobs.remove(gone), model.remove(&gone));
                }
            }
            assert_eq!((jobs.len(), jobs.is_empty()), (model.len(), model.is_empty()));
            assert!(jobs.line.len() <= MAX_EXCESS_GAPS + 2 * jobs.line_jobs);
        }
        assert!(!jobs.others.is_empty());
        assert!(jobs.positions().eq(model.into_keys()));
    }

    #[test]
    fn gaps_are_closed_above_their_limit() {
        let mut jobs = WaitingJobs::default();
        (0..100).for_each(|seq| jobs.insert((seq, 0), seq));
        for seq in 1..=66 {
            jobs.remove((seq, 0));
        }
        assert_eq!((jobs.line.len(), jobs.len()), (100, 34));
        jobs.remove((67, 0));
        assert_eq!((jobs.line.len(), jobs.len()), (33, 33));
    }
}
