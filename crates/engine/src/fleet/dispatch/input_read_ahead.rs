//! Decides how much of its input a fleet reads ahead. Waiting transfers take memory, but the next
//! item of the input may be for another host than all transfers that wait.
//!
//! With one host, the queue of waiting transfers is filled up to [`QUEUE_TARGET`] and, after
//! [`READ_FURTHER_AFTER`], up to [`SECOND_QUEUE_TARGET`]. Only a host that starts few transfers
//! lets the queue grow further, in steps.

use std::time::{Duration, Instant};

/// The number of waiting transfers up to which the queue is filled from the input. Pipelines of n
/// requests multiply the number by n. If the hosts of the waiting transfers allow no further start,
/// the input is read on after [`READ_FURTHER_AFTER`], since the next item may be for another host.
/// The queue then grows to [`SECOND_QUEUE_TARGET`], and later in steps.
pub(super) const QUEUE_TARGET: usize = 256;
pub(super) const SECOND_QUEUE_TARGET: usize = 8 * QUEUE_TARGET;
pub(super) const READ_FURTHER_AFTER: Duration = Duration::from_millis(250);
/// If this many of the first waiting transfers start in [`READ_FURTHER_AFTER`], a queue of
/// [`SECOND_QUEUE_TARGET`] does not grow: all its transfers start within the next eight seconds.
pub(super) const MANY_STARTS: u64 = SECOND_QUEUE_TARGET as u64 / 32;

/// The current period of [`READ_FURTHER_AFTER`], at whose end the input may be read further.
#[derive(Default)]
pub(super) struct InputReadAhead {
    /// The time when transfers could first not start only because of their hosts, or the end of the
    /// last period. `None` if the total limit on concurrent transfers is reached.
    begin: Option<Instant>,
    /// The priority of the first waiting transfer at the start of the period.
    first: u64,
}

impl InputReadAhead {
    /// Ends the current period, because the total limit on concurrent transfers is reached: no
    /// transfer of another host could start.
    pub(super) fn on_total_limit(&mut self) {
        self.begin = None;
    }

    /// Returns the end of the current period.
    pub(super) fn next_time(&self) -> Option<Instant> {
        self.begin.map(|begin| begin + READ_FURTHER_AFTER)
    }

    /// Returns the number of waiting transfers up to which the input is now read, if none of the
    /// `waiting` transfers can start because of their hosts. Returns `None` if the input is not
    /// read now. `first` is the priority of the first waiting transfer.
    pub(super) fn next_target(&mut self, waiting: usize, first: u64, now: Instant) -> Option<usize> {
        let Some(end) = self.next_time() else {
            *self = Self { begin: Some(now), first };
            return None;
        };
        if now < end {
            return None;
        }
        if waiting < SECOND_QUEUE_TARGET {
            return Some(SECOND_QUEUE_TARGET);
        }
        let is_slow = first.saturating_sub(self.first) < MANY_STARTS;
        *self = Self { begin: Some(now), first };
        is_slow.then_some(waiting + SECOND_QUEUE_TARGET / 2)
    }
}
