//! Messages to a worker from other threads: a sink has room again, a name is resolved, there is work.
//!
//! A worker that is awake is not woken: it looks into its inbox before it sleeps, so a message costs a lock and, only
//! when the worker sleeps, one system call.

use std::io;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use mio::{Registry, Token};

use crate::sink::Wake;
use crate::sync::IgnorePoison;

/// Messages to a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Message {
    /// The sink of this lane's transfer has credit again.
    Resume(usize),
    /// The name that this lane waits for is resolved.
    Resolved(usize),
    /// The worker is to check for work, and for the end of the run.
    Look,
    /// The transfer of this mark is not wanted any more.
    Cancel(u64),
    /// The output is full: watch for room.
    WatchOutput,
}

/// A worker's inbox.
#[derive(Debug)]
pub struct Inbox {
    messages: Mutex<Vec<Message>>,
    asleep: AtomicBool,
    waker: mio::Waker,
}

impl Inbox {
    /// An inbox for the loop of this registry.
    ///
    /// # Errors
    /// When the system has no descriptor left for the inbox.
    pub fn new(registry: &Registry, token: Token) -> io::Result<Self> {
        let waker = mio::Waker::new(registry, token)?;
        Ok(Self { messages: Mutex::new(Vec::new()), asleep: AtomicBool::new(false), waker })
    }

    /// Leaves a message, and wakes the worker if it sleeps.
    pub fn send(&self, message: Message) {
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

    /// Returns true if the worker sleeps.
    #[must_use]
    pub fn is_asleep(&self) -> bool {
        self.asleep.load(Ordering::SeqCst)
    }

    /// The worker goes to sleep; `false` if there are messages.
    pub fn falls_asleep(&self) -> bool {
        self.asleep.store(true, Ordering::SeqCst);
        let empty = self.messages.lock().ignore_poison().is_empty();
        if !empty {
            self.asleep.store(false, Ordering::SeqCst);
        }
        empty
    }

    /// The worker is awake: its messages, moved into `to`.
    pub fn collect(&self, to: &mut Vec<Message>) {
        self.asleep.store(false, Ordering::SeqCst);
        to.append(&mut self.messages.lock().ignore_poison());
    }
}

impl Wake for Inbox {
    fn wake(&self, token: usize) {
        self.send(Message::Resume(token));
    }
}
