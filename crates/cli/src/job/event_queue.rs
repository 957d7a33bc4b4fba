//! The queue of events from the threads of a run to the thread that writes the job's file.
//!
//! A channel would wake the writer thread for each event, thousands of times a second. This queue
//! wakes it only for the first event, and then lets it sleep until the next commit is due. The
//! writer then takes all queued events at once.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use super::writer::JobEvent;

/// The maximum number of queued events. When the queue is full, the sending threads wait for the
/// writer.
const MAX_EVENTS: usize = 4096;

/// The total size of the queued events, in bytes, at which the queue is full. Only extracted values
/// and the texts of URL lists count.
const MAX_BYTES: usize = 4 << 20;

/// The queue of events for the thread that writes the file of a job (`--job`).
#[derive(Default)]
pub(super) struct EventQueue {
    state: Mutex<JobEventQueueState>,
    /// Wakes the writer thread when an event has arrived.
    arrived: Condvar,
    /// Wakes the threads that wait for room in the queue.
    taken: Condvar,
}

#[derive(Default)]
struct JobEventQueueState {
    events: Vec<JobEvent>,
    /// The size, in bytes, of the extracted values and of the texts of URL lists in the queued
    /// events.
    bytes: usize,
    has_end: bool,
    sleep: WriterThreadWait,
    /// The number of threads that wait for room in the queue.
    waiting: usize,
    is_closed: bool,
}

/// The activity of the writer thread, or the event for which it waits.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum WriterThreadWait {
    /// The writer thread handles events, and waits for nothing.
    #[default]
    Awake,
    /// The writer thread waits for the first event.
    Idle,
    /// The writer thread waits until the next commit is due.
    Pausing,
}

impl JobEventQueueState {
    fn is_full(&self) -> bool {
        self.events.len() >= MAX_EVENTS || self.bytes >= MAX_BYTES
    }

    /// Returns true if the writer thread must take the queued events now, even if the next commit
    /// is not due yet. This is the case if the queue is half full or the run has ended.
    fn is_urgent(&self) -> bool {
        self.has_end || self.events.len() >= MAX_EVENTS / 2 || self.bytes >= MAX_BYTES / 2
    }
}

impl EventQueue {
    fn lock(&self) -> MutexGuard<'_, JobEventQueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds an event to the queue. Waits while the queue is full. Returns false if the writer has
    /// ended.
    pub(super) fn send(&self, event: JobEvent) -> bool {
        let mut state = self.lock();
        while state.is_full() && !state.is_closed {
            state.waiting += 1;
            state = self.taken.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.waiting -= 1;
        }
        if state.is_closed {
            return false;
        }
        state.bytes += event.bytes();
        state.has_end |= matches!(event, JobEvent::End { .. });
        match (state.events.last_mut(), event) {
            // Only the last position counts.
            (Some(JobEvent::Written(last)), JobEvent::Written(end)) => *last = end.max(*last),
            (_, event) => state.events.push(event),
        }
        let wakes = match state.sleep {
            WriterThreadWait::Awake => false,
            WriterThreadWait::Idle => true,
            WriterThreadWait::Pausing => state.is_urgent(),
        };
        if wakes {
            state.sleep = WriterThreadWait::Awake;
            self.arrived.notify_one();
        }
        true
    }

    /// Moves all queued events to `events`, which must be empty. Waits for the first event, and
    /// then until the time `earliest`. The second wait ends early if the queue is half full or the
    /// run has ended.
    pub(super) fn wait_for_events(&self, events: &mut Vec<JobEvent>, earliest: Instant) {
        let mut state = self.lock();
        loop {
            if state.events.is_empty() {
                state.sleep = WriterThreadWait::Idle;
                state = self.arrived.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            let left = earliest.saturating_duration_since(Instant::now());
            if left.is_zero() || state.is_urgent() {
                break;
            }
            state.sleep = WriterThreadWait::Pausing;
            (state, _) = self.arrived.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner);
        }
        state.sleep = WriterThreadWait::Awake;
        std::mem::swap(&mut state.events, events);
        state.bytes = 0;
        if state.waiting > 0 {
            self.taken.notify_all();
        }
    }

    /// Refuses all further events, because the writer ends.
    pub(super) fn close(&self) {
        let mut state = self.lock();
        state.is_closed = true;
        state.events.clear();
        self.taken.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::thread;

    use super::*;

    #[test]
    fn event_queue_delivers_all_events_in_order() {
        let queue = Arc::new(EventQueue::default());
        let sender = Arc::clone(&queue);
        let sending = thread::spawn(move || (0..20_000).all(|total| sender.send(JobEvent::ListEnded(total))));
        let (mut events, mut next) = (Vec::new(), 0);
        while next < 20_000 {
            queue.wait_for_events(&mut events, Instant::now());
            assert!(!events.is_empty() && events.len() <= MAX_EVENTS);
            for event in events.drain(..) {
                assert!(matches!(event, JobEvent::ListEnded(total) if total == next));
                next += 1;
            }
        }
        assert!(sending.join().unwrap());
    }

    #[test]
    fn full_event_queue_blocks_until_events_are_taken() {
        let queue = Arc::new(EventQueue::default());
        let text = || JobEvent::ListText { source: 0, chunk: 0, text: vec![0; MAX_BYTES / 4], is_last: false };
        (0..4).for_each(|_| assert!(queue.send(text())));
        let sender = Arc::clone(&queue);
        let sending = thread::spawn(move || sender.send(JobEvent::ListEnded(1)));
        while queue.lock().waiting == 0 {
            thread::yield_now();
        }
        let mut events = Vec::new();
        queue.wait_for_events(&mut events, Instant::now());
        assert_eq!(events.len(), 4);
        assert!(sending.join().unwrap());
        queue.close();
        assert!(!queue.send(JobEvent::ListEnded(2)));
    }

    #[test]
    fn queued_output_positions_merge_into_one_event() {
        let queue = EventQueue::default();
        (0..9).for_each(|end| assert!(queue.send(JobEvent::Written(end))));
        let mut events = Vec::new();
        queue.wait_for_events(&mut events, Instant::now());
        assert!(matches!(events[..], [JobEvent::Written(8)]));
    }
}
