//! The executor's implementation of [`Scheduler`], by which its event loop gets requests.

use std::sync::Arc;
use std::time::Instant;

use haul_policy::queue::HostId;

use super::{ExecutorLoad, IDLE_TIMEOUT, RequestExecutor};
use crate::clock;
use crate::drive::worker::{HostSlotDecision, Scheduler};
use crate::drive::worker_inbox::{WorkerInbox, WorkerMessage};
use crate::transfer::Transfer;
use crate::{Error, Result};

impl Scheduler for RequestExecutor {
    fn next(&self, _worker: usize, now: Instant) -> Option<Box<Transfer>> {
        let mut state = self.lock();
        if state.due.first().is_some_and(|(at, _)| *at <= now) {
            drop(state);
            self.end_late(now);
            state = self.lock();
        }
        loop {
            let head = self.allowed(&state)?;
            let (host, id, ()) = state.queue.next(clock::policy_time(now), head)?;
            if let Some(transfer) = self.start_transfer(&mut state, host, id, now) {
                return Some(transfer);
            }
            state.queue.release(host);
        }
    }

    fn next_for_slot(&self, _worker: usize, slot: HostId, now: Instant) -> HostSlotDecision {
        let mut state = self.lock();
        loop {
            let found = self.allowed(&state).and_then(|head| state.queue.next_for(slot, clock::policy_time(now), head));
            let Some((id, ())) = found else {
                state.queue.release(slot);
                return HostSlotDecision::Nothing;
            };
            if let Some(transfer) = self.start_transfer(&mut state, slot, id, now) {
                return HostSlotDecision::Transfer(transfer);
            }
        }
    }

    fn finished(&self, _worker: usize, transfer: Box<Transfer>, result: Result<()>) {
        let (pause, slot) = (transfer.host_pause(), transfer.scheduling.host_slot);
        let (outcome, path) = transfer.into_outcome(result);
        let mut state = self.lock();
        if let (Some(pause), Some(slot)) = (pause, slot) {
            state.pause(slot, pause);
        }
        let done = state.running.remove(&outcome.tag);
        self.report_first(&state);
        drop(state);
        if let Some((done, _)) = done {
            done(outcome, Some(path.into_sink()));
        }
    }

    fn retry_delayed(&self, transfer: &Transfer) -> bool {
        if let (Some(pause), Some(slot)) = (transfer.host_pause(), transfer.scheduling.host_slot) {
            self.lock().pause(slot, pause);
        }
        false
    }

    fn slot_given_away(&self, slot: HostId) {
        self.lock().queue.release(slot);
    }

    fn out_of_descriptors(&self) {
        let mut state = self.lock();
        let running = state.queue.running();
        state.queue.set_total(running.saturating_sub(1).max(1));
    }

    fn next_timeout(&self, now: Instant) -> Option<Instant> {
        let state = self.lock();
        let pause = state.queue.next_wakeup(clock::policy_time(now)).map(clock::instant);
        let end = state.idle_since.map(|since| since + IDLE_TIMEOUT);
        let due = state.due.first().map(|(at, _)| *at);
        [pause, due, end].into_iter().flatten().min()
    }

    fn end_turn(&self, now: Instant) -> Option<Instant> {
        let admission = self.admission.as_ref()?;
        let load = {
            let state = self.lock();
            ExecutorLoad { waiting: state.waiting.len(), running: state.running.len() }
        };
        // Called without the lock, which a thread that takes results may need meanwhile.
        admission.end_turn(load, now)
    }

    fn backlog(&self) -> usize {
        self.lock().waiting.len()
    }

    fn host_multiplexes(&self, slot: HostId) {
        let mut state = self.lock();
        state.queue.set_host_cap(slot, usize::MAX);
        let inboxes = state.inboxes.clone();
        drop(state);
        for inbox in inboxes {
            inbox.send(WorkerMessage::CheckWork);
        }
    }

    fn is_over(&self) -> bool {
        let mut state = self.lock();
        if !state.is_over && state.waiting.is_empty() && state.running.is_empty() {
            let now = Instant::now();
            let since = *state.idle_since.get_or_insert(now);
            state.is_over = state.is_retired || now.saturating_duration_since(since) >= IDLE_TIMEOUT;
        }
        state.is_over
    }

    fn abort(&self, error: Error) {
        // The waiting requests are handled when the event loop has ended.
        self.fail_running(&error);
        self.lock().is_over = true;
        self.wake_workers();
    }

    fn worker_started(&self, inbox: &Arc<WorkerInbox>) {
        self.lock().inboxes.push(Arc::clone(inbox));
    }
}
