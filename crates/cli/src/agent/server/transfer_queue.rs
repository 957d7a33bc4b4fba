//! The transfers of the agent's calls. The main thread queues them, the worker thread runs them,
//! and their results are sent to the callers.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use haul::drive::worker::{FreeHostSlotUse, Scheduler};
use haul::drive::worker_inbox::{WorkerInbox, WorkerMessage};
use haul::transfer::Transfer;
use haul::{Error, Result};
use haul_policy::queue::HostId;

use super::call_output_and_result::AgentCall;

/// The queue of transfers that the agent's worker thread has not begun, with a table of all calls
/// that have not ended.
#[derive(Default)]
pub(super) struct TransferQueue {
    state: Mutex<TransferQueueState>,
    /// The counters that `--agent-status` prints.
    pub(super) counts: AgentCounters,
}

#[derive(Default)]
struct TransferQueueState {
    waiting: VecDeque<Box<Transfer>>,
    calls: HashMap<u64, Arc<AgentCall>>,
    inbox: Option<Arc<WorkerInbox>>,
    /// True if the agent's worker thread has ended, so that no further transfer can run.
    is_over: bool,
}

/// The numbers of calls, requests and connections since the agent started, which `--agent-status`
/// prints.
#[derive(Default)]
pub(super) struct AgentCounters {
    /// The number of calls that have ended since the agent started. A call is one request that
    /// another haul process sends to the agent. With redirects or retries, the agent sends several
    /// requests to servers for one call.
    pub(super) calls: AtomicU64,
    /// The number of requests that the agent sent to servers since it started.
    pub(super) requests: AtomicU64,
    /// The number of connections that the agent opened to servers since it started.
    pub(super) connections: AtomicU64,
}

impl TransferQueue {
    fn lock(&self) -> MutexGuard<'_, TransferQueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Queues the transfer of a call and wakes the worker thread. Returns `false` if the worker
    /// thread has ended.
    pub(super) fn enqueue(&self, call: &Arc<AgentCall>, transfer: Box<Transfer>) -> bool {
        let mut state = self.lock();
        if state.is_over {
            return false;
        }
        state.calls.insert(call.id(), Arc::clone(call));
        state.waiting.push_back(transfer);
        let inbox = state.inbox.clone();
        drop(state);
        if let Some(inbox) = inbox {
            inbox.send(WorkerMessage::CheckWork);
        }
        true
    }

    /// Ends a call whose caller has disconnected. The transfer of the call is removed from the
    /// queue, or cancelled if it has begun.
    pub(super) fn abandon(&self, id: u64) {
        let mut state = self.lock();
        if let Some(place) = state.waiting.iter().position(|transfer| transfer.scheduling.tag == id) {
            // The worker has not taken it, and could not find it: it would take it after the
            // message.
            let transfer = state.waiting.remove(place);
            let call = state.calls.remove(&id);
            drop(state);
            drop(transfer);
            if let Some(call) = call {
                call.abort();
            }
        } else if state.calls.contains_key(&id)
            && let Some(inbox) = &state.inbox
        {
            inbox.send(WorkerMessage::Cancel(id));
        }
    }

    /// Returns the number of calls that have begun and not ended.
    pub(super) fn running(&self) -> usize {
        self.lock().calls.len()
    }
}

impl Scheduler for TransferQueue {
    fn next(&self, _worker: usize, _now: Instant) -> Option<Box<Transfer>> {
        self.lock().waiting.pop_front()
    }

    fn next_for_slot(&self, _worker: usize, _slot: HostId, _now: Instant) -> FreeHostSlotUse {
        FreeHostSlotUse::Nothing
    }

    fn on_finished(&self, _worker: usize, transfer: Box<Transfer>, result: Result<()>) {
        let (outcome, path) = transfer.into_outcome(result);
        // It holds the call's descriptor, which must be closed when the call hears that it is over.
        drop(path);
        let Some(call) = self.lock().calls.remove(&outcome.tag) else { return };
        self.counts.calls.fetch_add(1, Ordering::Relaxed);
        self.counts.requests.fetch_add(outcome.facts.requests.into(), Ordering::Relaxed);
        self.counts.connections.fetch_add(outcome.facts.connects.into(), Ordering::Relaxed);
        call.finish(&outcome);
    }

    fn on_out_of_descriptors(&self) {}

    fn next_timeout(&self, _now: Instant) -> Option<Instant> {
        None
    }

    fn is_run_over(&self) -> bool {
        false
    }

    fn abort(&self, _error: Error) {
        // Their callers find the connection closed, and go on by themselves.
        let mut state = self.lock();
        state.is_over = true;
        for (_, call) in state.calls.drain() {
            call.abort();
        }
    }

    fn on_worker_started(&self, inbox: &Arc<WorkerInbox>) {
        self.lock().inbox = Some(Arc::clone(inbox));
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::unix::net::UnixStream;

    use haul::body::delivery::BodyDelivery;
    use haul::{RequestOptions, Target};
    use mio::{Poll, Token};

    use super::super::call_output_and_result::AgentCallSink;
    use super::*;

    #[test]
    fn transfer_abandoned_in_the_queue_never_starts() {
        let (poll, work) = (Poll::new().expect("a poll"), TransferQueue::default());
        let call = |id| {
            let (socket, _) = UnixStream::pair().expect("a pair");
            let output = File::open("/dev/null").expect("the null device").into();
            let registry = poll.registry().try_clone().expect("a registry");
            Arc::new(AgentCall::new(id, Arc::new(socket), output, registry, Token(1)))
        };
        let (first, second) = (call(1), call(2));
        for call in [&first, &second] {
            let target = Target::parse("http://example.test/").expect("a target");
            let sink = BodyDelivery::new(Box::new(AgentCallSink::new(call)));
            let options = Arc::new(RequestOptions::default());
            assert!(work.enqueue(call, Transfer::new(target, options, sink, Instant::now(), call.id())));
        }
        work.abandon(first.id());
        assert!(first.is_finished_or_abandoned() && !second.is_finished_or_abandoned());
        assert_eq!(work.running(), 1);
        assert_eq!(work.next(0, Instant::now()).map(|transfer| transfer.scheduling.tag), Some(2));
        assert!(work.next(0, Instant::now()).is_none());
    }
}
