//! The inbox of a worker: messages from other threads, for example that a sink has room again, that
//! a name is resolved, or that there are new transfers.
//!
//! A message to a worker that is awake costs a lock and no system call, since the worker checks its
//! inbox before it sleeps. A message to a sleeping worker costs one system call.

use std::io;

use mio::{Registry, Token};

use crate::ignore_poison::IgnorePoison;
use crate::sink::TransferWaker;
use crate::std_or_loom_sync::Mutex;
use crate::std_or_loom_sync::atomic::{AtomicBool, Ordering};

/// A message to a worker (a thread with an event loop) from another thread. Numbers in `Resume` and
/// `Resolved` identify a connection slot of the worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkerMessage {
    /// The sink of a transfer on this connection slot has room again, so its connection may be
    /// read.
    Resume(usize),
    /// The host name for which this connection slot waits is resolved.
    Resolved(usize),
    /// New transfers may be ready to start, or the run may be over. The worker asks its scheduler
    /// for transfers.
    CheckWork,
    /// The transfer with this ID, which the caller chose, was cancelled and must be ended.
    Cancel(u64),
    /// Another thread has handed over a transfer that it began. The worker asks its scheduler for
    /// it.
    TakeHandedOverWork,
    /// Another worker needs a file descriptor: close an idle connection.
    FreeDescriptor,
    /// The descriptor to which the run writes its output has no room. The receiver, the first
    /// worker, flushes the output, and then watches the descriptor until it is writable.
    WatchOutput,
}

/// The inbox of a worker: its unread messages, and the means to wake it.
#[derive(Debug)]
pub struct WorkerInbox {
    messages: Mutex<Vec<WorkerMessage>>,
    /// True while the worker sleeps. All changes use `swap`, never `store`: in the model checker
    /// loom, a `swap` may miss an earlier `store` of another thread and return an older value. A
    /// `swap` costs no more than a sequentially consistent `store`: on x86, both are `xchg`.
    asleep: AtomicBool,
    waker: mio::Waker,
}

impl WorkerInbox {
    /// Makes an inbox. A message to it wakes the event loop of `registry` with an event for
    /// `token`.
    ///
    /// # Errors
    /// The system has no descriptor left for the inbox.
    pub fn new(registry: &Registry, token: Token) -> io::Result<Self> {
        let waker = mio::Waker::new(registry, token)?;
        Ok(Self { messages: Mutex::new(Vec::new()), asleep: AtomicBool::new(false), waker })
    }

    /// Adds a message, and wakes the worker if it sleeps.
    pub fn send(&self, message: WorkerMessage) {
        let mut messages = self.messages.lock().ignore_poison();
        if messages.last() != Some(&message) {
            messages.push(message);
        }
        drop(messages);
        if self.asleep.swap(false, Ordering::SeqCst) {
            // It fails only if the counter overflows, and then the worker is being woken already.
            let _ = self.waker.wake();
        }
    }

    /// Returns true if the worker sleeps, so that a message must wake it.
    #[must_use]
    pub fn is_asleep(&self) -> bool {
        self.asleep.load(Ordering::SeqCst)
    }

    /// Marks the worker as asleep if it has no unread messages, and returns true. Otherwise returns
    /// false, and the worker stays awake.
    pub fn try_sleep(&self) -> bool {
        self.asleep.swap(true, Ordering::SeqCst);
        let empty = self.messages.lock().ignore_poison().is_empty();
        if !empty {
            self.asleep.swap(false, Ordering::SeqCst);
        }
        empty
    }

    /// Marks the worker as awake, and moves its messages into `to`.
    pub fn take_all(&self, to: &mut Vec<WorkerMessage>) {
        self.asleep.swap(false, Ordering::SeqCst);
        to.append(&mut self.messages.lock().ignore_poison());
    }
}

impl TransferWaker for WorkerInbox {
    fn wake(&self, token: usize) {
        self.send(WorkerMessage::Resume(token));
    }
}
