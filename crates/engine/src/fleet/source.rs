//! Source of a run's URLs: an iterator, pulled as transfers start.
//!
//! An iterator that may block (standard input, a FIFO) is read on a separate thread, a bounded
//! number of items ahead. A slow producer then delays no transfer of an earlier item.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::sync::{Arc, Mutex};

use super::dispatch::Destination;
use crate::sync::IgnorePoison;
use crate::{Error, ErrorKind, Result, threads};

/// One URL, and where its content goes.
#[derive(Debug, Clone)]
pub struct Item {
    /// The URL, as the user wrote it.
    pub url: String,
    /// The destination of the content.
    pub destination: Destination,
}

/// The items of a run. An error takes the place of an item that cannot be had, and is reported as one that failed.
pub type Items = Box<dyn Iterator<Item = Result<Item>> + Send>;

pub(super) enum Pulled {
    Item(Result<Item>),
    /// No item for now; the source wakes the run when it has one.
    Later,
    End,
}

pub(super) trait Source: Send {
    fn pull(&mut self) -> Pulled;
}

/// An iterator that never waits.
pub(super) struct Ready(pub(super) Items);

impl Source for Ready {
    fn pull(&mut self) -> Pulled {
        self.0.next().map_or(Pulled::End, Pulled::Item)
    }
}

/// Items read ahead from a producer that may be slow.
const AHEAD: usize = 512;

/// An iterator that may wait, on its own thread.
pub(super) struct ReadAhead {
    items: Receiver<Result<Item>>,
}

/// The callback for when there is something to pull, once it is set.
pub(super) type Bell = Arc<Mutex<Option<Box<dyn Fn() + Send>>>>;

impl ReadAhead {
    pub(super) fn start(items: Items, bell: Bell) -> std::io::Result<Self> {
        let (sender, receiver) = sync_channel(AHEAD);
        // It is not joined: a read that never returns must not keep the program from ending.
        threads::start("haul-input", move || {
            if catch_unwind(AssertUnwindSafe(|| feed(items, &sender, &bell))).is_err() {
                // It has printed why; a list that ends early must not look complete.
                let _ = sender.send(Err(Error::new(ErrorKind::Read, "reading the list panicked")));
            }
            drop(sender);
            // The end is something to pull, too.
            ring(&bell);
        })?;
        Ok(Self { items: receiver })
    }
}

/// Sends all items.
fn feed(items: Items, sender: &SyncSender<Result<Item>>, bell: &Bell) {
    for item in items {
        if sender.send(item).is_err() {
            return;
        }
        ring(bell);
    }
}

fn ring(bell: &Bell) {
    if let Some(ring) = &*bell.lock().ignore_poison() {
        ring();
    }
}

impl Source for ReadAhead {
    fn pull(&mut self) -> Pulled {
        match self.items.try_recv() {
            Ok(item) => Pulled::Item(item),
            Err(TryRecvError::Empty) => Pulled::Later,
            Err(TryRecvError::Disconnected) => Pulled::End,
        }
    }
}
