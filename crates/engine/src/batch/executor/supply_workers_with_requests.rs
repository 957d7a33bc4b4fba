//! The implementation of [`Scheduler`] through which an executor's event loop gets its requests.

use std::sync::Arc;
use std::time::Instant;

use haul_policy::concurrency::RefusedLoad;
use haul_policy::queue::{HostId, JobEnd};

use super::{ExecutorLoad, IDLE_TIMEOUT, RequestExecutor, StartableRequests, WaitsCountedInTimeout};
use crate::drive::worker::{FreeHostSlotUse, HandedOverWork, Scheduler};
use crate::drive::worker_inbox::{WorkerInbox, WorkerMessage};
use crate::time_conversions;
use crate::transfer::Transfer;
use crate::{Error, Result};

impl Scheduler for RequestExecutor {
    fn next(&self, _worker: usize, now: Instant) -> Option<Box<Transfer>> {
        let mut state = self.lock();
        if state.due.first().is_some_and(|(at, _)| *at <= now) {
            drop(state);
            self.fail_timed_out(now);
            state = self.lock();
        }
        self.next_transfer(&mut state, now)
    }

    fn next_for_slot(&self, _worker: usize, slot: HostId, now: Instant) -> FreeHostSlotUse {
        let mut state = self.lock();
        loop {
            let StartableRequests { beyond_caps, below } = if self.limits.earliest_start(now).is_some() {
                StartableRequests::NONE
            } else {
                self.startable_requests(&state)
            };
            let found = state.queue.next_for_below(slot, below, time_conversions::to_monotonic_time(now), beyond_caps);
            let Some((id, ())) = found else {
                if state.pools_last_connection
                    && state.has_reused_connection
                    && !state.had_long_body
                    && state.has_no_request_but(0)
                    && !state.queue.shares_connection(slot)
                {
                    return FreeHostSlotUse::GiveAway;
                }
                state.queue.on_job_end(slot);
                return FreeHostSlotUse::Nothing;
            };
            if let Some(transfer) = self.start_transfer(&mut state, slot, id, now) {
                self.limits.on_start(&mut state.queue, slot, now);
                return FreeHostSlotUse::Transfer(transfer);
            }
        }
    }

    fn on_finished(&self, _worker: usize, transfer: Box<Transfer>, result: Result<()>) {
        self.finish(transfer, result);
    }

    fn delay_retry(&self, _worker: usize, mut transfer: Box<Transfer>, at: Instant) -> Option<Box<Transfer>> {
        let Some(slot) = transfer.scheduling.host_slot else { return Some(transfer) };
        let id = transfer.scheduling.tag;
        let mut state = self.lock();
        if let Some(pause) = transfer.host_pause() {
            state.pause_host(slot, pause);
        }
        let may_wait = state.retrying.len() < state.max_retrying && transfer.may_give_up_slot();
        if !may_wait || state.queue.push_delayed(slot, time_conversions::to_monotonic_time(at), id, ()).is_err() {
            return Some(transfer);
        }
        transfer.give_up_slot();
        let deadline =
            if self.counts == WaitsCountedInTimeout::All { transfer.deadline() } else { transfer.total_deadline() };
        state.retries.insert(transfer, deadline);
        let entry = state.running.remove_entry(&id);
        state.retrying.extend(entry);
        self.report_in_progress(&state);
        None
    }

    fn retry_wait(&self, transfer: &Transfer, now: Instant) -> Option<Instant> {
        self.limits.retry_wait(&mut self.lock().queue, transfer.scheduling.host_slot?, now)
    }

    fn cancelled_retry(&self, _worker: usize, tag: u64) -> Option<Box<Transfer>> {
        let mut state = self.lock();
        let transfer = state.take_retry(tag)?;
        state.queue.remove(tag);
        Some(transfer)
    }

    fn overdue_retry(&self, _worker: usize, now: Instant) -> Option<Box<Transfer>> {
        let mut state = self.lock();
        let tag = state.retries.overdue(now)?;
        state.queue.remove(tag);
        state.take_retry(tag)
    }

    fn add_extra_slot(&self) -> bool {
        self.lock().queue.add_extra_slot()
    }

    fn add_extra_slot_for_silent_host(&self, slot: HostId) -> bool {
        self.lock().queue.add_extra_slot_for_silent_host(slot)
    }

    fn on_host_answered(&self, slot: HostId) {
        self.lock().queue.on_host_answered(slot);
    }

    fn remove_extra_slot(&self) {
        self.lock().queue.remove_extra_slot();
    }

    fn on_refused(&self, slot: HostId, end: JobEnd) -> Option<RefusedLoad> {
        self.lock().queue.adapt_cap_on_end(slot, end)
    }

    fn release_slot_for_other_worker(&self, slot: HostId) {
        self.lock().queue.on_job_end(slot);
    }

    fn on_out_of_descriptors(&self) {
        self.lock().queue.shrink();
    }

    fn next_timeout(&self, now: Instant) -> Option<Instant> {
        let state = self.lock();
        let pause = match self.limits.earliest_start(now).filter(|_| !state.queue.is_empty()) {
            None => state.queue.next_wakeup(time_conversions::to_monotonic_time(now)).map(time_conversions::to_instant),
            starts => starts,
        };
        let end = state.idle_since.map(|since| since + IDLE_TIMEOUT);
        let due = state.due.first().map(|(at, _)| *at);
        let deadline = state.retries.next_deadline();
        [pause, due, deadline, end].into_iter().flatten().min()
    }

    fn on_round_end(&self, now: Instant) -> Option<Instant> {
        let admission = self.admission.as_ref()?;
        let load = {
            let state = self.lock();
            ExecutorLoad { waiting: state.waiting.len(), running: state.running.len() }
        };
        // Called without the lock, which a thread that takes results may need meanwhile.
        admission.end_round(load, now)
    }

    fn take_handed_over_work(&self) -> Vec<HandedOverWork> {
        std::mem::take(&mut self.lock().handed_over)
    }

    fn backlog(&self) -> usize {
        self.lock().waiting.len()
    }

    fn set_host_multiplexes(&self, slot: HostId, multiplexes: bool) {
        let mut state = self.lock();
        state.queue.set_shared_connection(slot, multiplexes);
        let inboxes = state.inboxes.clone();
        drop(state);
        for inbox in inboxes {
            inbox.send(WorkerMessage::CheckWork);
        }
    }

    fn is_run_over(&self) -> bool {
        let mut state = self.lock();
        if !state.is_over && state.is_event_loop_free() {
            let now = Instant::now();
            let since = *state.idle_since.get_or_insert(now);
            let is_late = now.saturating_duration_since(since) >= IDLE_TIMEOUT;
            if state.running.is_empty() {
                state.is_over = state.is_retired || is_late;
            } else if is_late {
                // The event loop may have to take over the request of another thread. It looks
                // again later, because nothing wakes it when that request ends.
                state.idle_since = Some(now);
            }
        }
        state.is_over
    }

    fn abort(&self, error: Error) {
        // From now on, no request starts. The waiting requests are handled when the event loop has
        // ended.
        self.lock().is_over = true;
        self.fail_running(&error);
        self.wake_workers();
    }

    fn on_worker_started(&self, inbox: &Arc<WorkerInbox>) {
        let mut state = self.lock();
        state.inboxes.push(Arc::clone(inbox));
        if !state.handed_over.is_empty() {
            inbox.send(WorkerMessage::TakeHandedOverWork);
        }
    }
}
