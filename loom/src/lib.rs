//! Sources of the engine, compiled against loom's locks and atomics, and the models that run them.
//!
//! A model fails on a lost wake-up (loom reports the deadlock) and on each assertion, in any order
//! of the threads' steps.

// The parts that no model uses.
#![allow(dead_code)]
#![cfg(test)]

// The included sources name the crate mio, and mean this one.
extern crate self as mio;

#[path = "../../crates/engine/src/ignore_poison.rs"]
mod ignore_poison;
#[path = "../../crates/engine/src/drive/worker_inbox.rs"]
mod worker_inbox;

mod batch;
mod inbox_model;

/// A stand-in for the engine's module `std_or_loom_sync`, with loom's locks and atomics.
mod std_or_loom_sync {
    pub(crate) use loom::sync::{Mutex, atomic};
}

/// A stand-in for the engine's module `sink`, with the only items that the included sources use.
mod sink {
    use std::sync::Arc;

    pub trait TransferWaker: Send + Sync {
        fn wake(&self, token: usize);
    }

    pub(crate) fn add_waiting_transfer(
        waiting: &mut Vec<(Arc<dyn TransferWaker>, usize)>,
        waker: &Arc<dyn TransferWaker>,
        token: usize,
    ) {
        if !waiting.iter().any(|(other, at)| *at == token && Arc::ptr_eq(other, waker)) {
            waiting.push((Arc::clone(waker), token));
        }
    }
}

/// A stand-in for `mio::Registry`: a flag that a [`Waker`] sets, and for which a worker waits.
#[derive(Debug, Default)]
pub struct Registry(std::sync::Arc<(loom::sync::Mutex<bool>, loom::sync::Condvar)>);

/// A stand-in for `mio::Token`, which identifies the source of an event.
#[derive(Debug)]
pub struct Token(pub usize);

/// A stand-in for `mio::Waker`, made of loom's types.
#[derive(Debug)]
pub struct Waker(std::sync::Arc<(loom::sync::Mutex<bool>, loom::sync::Condvar)>);

impl Registry {
    /// Waits until a waker has set the flag, and clears it.
    fn wait(&self) {
        let mut set = self.0.0.lock().unwrap();
        while !*set {
            set = self.0.1.wait(set).unwrap();
        }
        *set = false;
    }
}

impl Waker {
    /// Creates a waker that sets the flag of this registry.
    ///
    /// # Errors
    /// None.
    pub fn new(registry: &Registry, _: Token) -> std::io::Result<Self> {
        Ok(Self(std::sync::Arc::clone(&registry.0)))
    }

    /// Sets the flag of the registry, which ends a worker's wait.
    ///
    /// # Errors
    /// None.
    pub fn wake(&self) -> std::io::Result<()> {
        *self.0.0.lock().unwrap() = true;
        self.0.1.notify_one();
        Ok(())
    }
}
