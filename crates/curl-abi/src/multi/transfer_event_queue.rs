//! The event queue of one transfer. The engine's thread adds events, and the program's thread takes
//! them and calls the callbacks.

use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use haul::buffer_pool::{BULK_BUFFER_SIZE, KeptBodyBytes, OfferedBodyBytes};
use haul::sink::{ResponseForSink, Sink, TransferWaker};
use haul::trace::{Milestone, TraceEvent, TransferObserver};
use haul::transfer_facts::TransferFacts;
use haul::{Error, ErrorKind, ResponseHead, Result, Target};

use super::wakeup_descriptor::WakeupDescriptor;
use crate::handle_table::lock;
use crate::headers::HeaderMessageKind;
use crate::transfer::running::is_connect;

/// The maximum number of body bytes in a queue. The engine reads no more until the C program has
/// taken them.
const QUEUE_LIMIT: u64 = BULK_BUFFER_SIZE as u64;

/// The maximum number of body bytes in a queue while the queues of all transfers together have at
/// least [`MAX_BYTES_OF_ALL_QUEUES`].
const SMALL_QUEUE_LIMIT: u64 = 256 << 10;

/// The number of bytes in all queues above which each queue may hold at most [`SMALL_QUEUE_LIMIT`]
/// bytes.
const MAX_BYTES_OF_ALL_QUEUES: u64 = 32 << 20;

/// The number of body bytes in the queues of all transfers of the process.
static QUEUED_BYTES_OF_ALL: AtomicU64 = AtomicU64::new(0);

/// An event of a transfer, which the engine's thread passes to the C program's thread.
pub(super) enum TransferEvent {
    /// A message for the debug callback.
    Info(String),
    /// The head of a request that is being sent.
    Request(String),
    /// The facts about an exchange, and its target, when the head of its response was received.
    Exchange(Box<(TransferFacts, Target)>),
    /// The head of a response.
    Head(ResponseHead, HeaderMessageKind),
    /// The trailer section of a response.
    Trailers(Vec<u8>),
    /// The body of a response begins.
    Begin(Box<BodyBegin>),
    /// Bytes of the response body.
    Body(KeptBodyBytes),
    /// Content that was sent, for the debug callback.
    Sent(Vec<u8>),
    /// Content that was received, for the debug callback.
    Received(Vec<u8>),
}

/// The facts that are known when a response body begins.
pub(super) struct BodyBegin {
    pub(super) facts: TransferFacts,
    pub(super) head: ResponseHead,
    pub(super) target: Target,
    pub(super) length: Option<u64>,
}

#[derive(Default)]
struct TransferEventQueueState {
    events: VecDeque<TransferEvent>,
    /// The number of bytes of the response body in the queue.
    bytes: u64,
    has_body: bool,
    /// The engine's driver, which runs the transfer in another thread, and the token by which the
    /// driver identifies the transfer. `None` until the driver first asks how many bytes it may
    /// receive.
    driver: Option<(Arc<dyn TransferWaker>, usize)>,
    /// True if the engine's driver may receive no bytes now, because the queue is full or the
    /// transfer is paused. The driver then waits to be woken.
    is_full: bool,
    /// True if the C program has paused the transfer.
    is_paused: bool,
    /// True if the C program takes no more events of this transfer.
    is_closed: bool,
}

/// The queue of events of one transfer, from the engine's thread to the C program's thread.
pub(super) struct TransferEventQueue {
    state: Mutex<TransferEventQueueState>,
    /// True if the C program's thread has work to do for this transfer.
    is_ready: AtomicBool,
    notifier: Arc<WakeupDescriptor>,
}

impl TransferEventQueue {
    pub(super) fn new(notifier: Arc<WakeupDescriptor>) -> Arc<Self> {
        Arc::new(Self { state: Mutex::default(), is_ready: AtomicBool::new(false), notifier })
    }

    /// Records that the C program's thread has work to do for this transfer, and notifies it.
    pub(super) fn set_ready(&self) {
        self.is_ready.store(true, Ordering::SeqCst);
        self.notifier.notify();
    }

    /// Returns the flag `is_ready`, which is true if the C program's thread has work to do for this
    /// transfer, and sets the flag to false. The caller must look for the work after this call.
    pub(super) fn take_ready(&self) -> bool {
        self.is_ready.swap(false, Ordering::SeqCst)
    }

    /// Adds an event, unless the C program takes no more events, and notifies the program.
    pub(super) fn push(&self, event: TransferEvent) {
        let mut state = lock(&self.state);
        if state.is_closed {
            return;
        }
        state.events.push_back(event);
        drop(state);
        self.set_ready();
    }

    /// Removes and returns the next event; `None` if the queue is empty.
    pub(super) fn next(&self) -> Option<TransferEvent> {
        let mut state = lock(&self.state);
        let event = state.events.pop_front()?;
        let TransferEvent::Body(chunk) = &event else { return Some(event) };
        let length = chunk.bytes().len() as u64;
        state.bytes -= length;
        QUEUED_BYTES_OF_ALL.fetch_sub(length, Ordering::Relaxed);
        // Few large reads cost least, so the driver may continue only when the queue is empty.
        let driver = if state.bytes == 0 { state.waiting_driver() } else { None };
        drop(state);
        wake(driver);
        Some(event)
    }

    pub(super) fn is_empty(&self) -> bool {
        lock(&self.state).events.is_empty()
    }

    /// Pauses the engine's reads, or continues them. A pause does not count towards the time limits
    /// on slow servers.
    pub(super) fn set_paused(&self, is_paused: bool) {
        let mut state = lock(&self.state);
        if state.is_paused == is_paused {
            return;
        }
        state.is_paused = is_paused;
        // The driver asks again how many bytes it may receive.
        let driver = state.driver.clone();
        drop(state);
        wake(driver);
    }

    /// Drops all queued events and all later events.
    pub(super) fn close(&self) {
        let mut state = lock(&self.state);
        state.is_closed = true;
        QUEUED_BYTES_OF_ALL.fetch_sub(std::mem::take(&mut state.bytes), Ordering::Relaxed);
        let events = std::mem::take(&mut state.events);
        let driver = state.driver.take();
        drop(state);
        drop(events);
        wake(driver);
    }
}

/// The engine's driver, which runs a transfer in another thread, and the token by which the driver
/// identifies the transfer. `None` if there is no driver to wake.
type DriverToken = Option<(Arc<dyn TransferWaker>, usize)>;

/// Wakes the thread that runs a transfer, so that it asks the transfer's sink again how many bytes
/// of the body it may receive.
fn wake(driver: DriverToken) {
    if let Some((driver, token)) = driver {
        driver.wake(token);
    }
}

impl TransferEventQueueState {
    /// Returns the engine's driver (the event loop that runs the transfer) if it waits for room in
    /// the queue. Records that the driver no longer waits, so the caller must wake it. Returns
    /// `None` if the driver does not wait, or if the C program has paused the transfer.
    fn waiting_driver(&mut self) -> DriverToken {
        if !self.is_full || self.is_paused {
            return None;
        }
        self.is_full = false;
        self.driver.clone()
    }
}

/// The sink that puts the bytes of a body into the event queue of the body's transfer.
pub(super) struct QueueSink(pub(super) Arc<TransferEventQueue>);

impl Sink for QueueSink {
    fn begin(&mut self, begin: &ResponseForSink<'_>) -> Result<()> {
        self.0.push(TransferEvent::Begin(Box::new(BodyBegin {
            facts: begin.facts.clone(),
            head: begin.head.clone(),
            target: begin.place.clone(),
            length: begin.length.or(begin.total),
        })));
        Ok(())
    }

    fn credit(&mut self, waker: Option<&Arc<dyn TransferWaker>>, token: usize) -> u64 {
        let mut state = lock(&self.0.state);
        let Some(waker) = waker.filter(|_| !state.is_closed) else { return u64::MAX };
        if !matches!(&state.driver, Some((known, at)) if *at == token && Arc::ptr_eq(known, waker)) {
            state.driver = Some((Arc::clone(waker), token));
        }
        let most = if QUEUED_BYTES_OF_ALL.load(Ordering::Relaxed) < MAX_BYTES_OF_ALL_QUEUES {
            QUEUE_LIMIT
        } else {
            SMALL_QUEUE_LIMIT
        };
        let room = if state.is_paused { 0 } else { most.saturating_sub(state.bytes) };
        state.is_full = room == 0;
        room
    }

    fn bytes(&mut self, offered: OfferedBodyBytes<'_>) -> Result<()> {
        if offered.bytes().is_empty() {
            return Ok(());
        }
        let chunk = offered.into_kept_bytes();
        let mut state = lock(&self.0.state);
        if state.is_closed {
            return Err(Error::new(ErrorKind::Write, "the program ended the transfer"));
        }
        let length = chunk.bytes().len() as u64;
        state.bytes += length;
        QUEUED_BYTES_OF_ALL.fetch_add(length, Ordering::Relaxed);
        state.has_body = true;
        state.events.push_back(TransferEvent::Body(chunk));
        drop(state);
        self.0.set_ready();
        Ok(())
    }

    fn restart(&mut self) -> bool {
        !lock(&self.0.state).has_body
    }
}

/// The observer that puts response heads and debug events into the queue.
pub(super) struct QueueingObserver {
    pub(super) queue: Arc<TransferEventQueue>,
    pub(super) is_verbose: bool,
    pub(super) wants_content: bool,
}

impl fmt::Debug for QueueingObserver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("QueueingObserver")
    }
}

impl TransferObserver for QueueingObserver {
    fn event(&self, event: &TraceEvent<'_>) {
        let event = match event {
            TraceEvent::Info(text) if self.is_verbose => TransferEvent::Info(text.clone().into_owned()),
            TraceEvent::Request { head } if self.is_verbose => TransferEvent::Request(head.clone().into_owned()),
            TraceEvent::Request { head } if is_connect(head) => return,
            // It counts the requests.
            TraceEvent::Request { .. } => TransferEvent::Request(String::new()),
            TraceEvent::Response { head } => TransferEvent::Head((*head).clone(), HeaderMessageKind::Header),
            TraceEvent::Interim { head } => TransferEvent::Head((*head).clone(), HeaderMessageKind::Interim),
            TraceEvent::Connect { head } => TransferEvent::Head((*head).clone(), HeaderMessageKind::Connect),
            TraceEvent::Trailers { fields } => TransferEvent::Trailers(fields.raw().to_vec()),
            TraceEvent::Sent(bytes) => TransferEvent::Sent(bytes.to_vec()),
            TraceEvent::Received(bytes) => TransferEvent::Received(bytes.to_vec()),
            TraceEvent::Milestone { milestone: Milestone::Head, facts, target, .. } => {
                TransferEvent::Exchange(Box::new(((*facts).clone(), (*target).clone())))
            }
            TraceEvent::Info(_)
            | TraceEvent::NotHttp { .. }
            | TraceEvent::Retry { .. }
            | TraceEvent::Milestone { .. } => return,
        };
        self.queue.push(event);
    }

    fn wants_content(&self) -> bool {
        self.wants_content
    }
}
