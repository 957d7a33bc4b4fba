//! Source of a run's URLs: an iterator, pulled as transfers start.
//!
//! An iterator that may block (standard input, a FIFO) is read on a separate thread, a bounded
//! number of items ahead. A slow producer then delays no transfer of an earlier item.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::sync::{Arc, Mutex};

use super::dispatch::BodyDestination;
use crate::sync::IgnorePoison;
use crate::{Error, ErrorKind, Result, threads};

/// One URL, and where its content goes.
#[derive(Debug, Clone)]
pub struct FleetItem {
    /// The URL, as the user wrote it.
    pub url: String,
    /// The destination of the content.
    pub destination: BodyDestination,
}

/// The items of a run. An error takes the place of an item that cannot be had, and is reported as one that failed.
pub type FleetItems = Box<dyn Iterator<Item = Result<FleetItem>> + Send>;

pub(super) enum NextItem {
    Item(Result<FleetItem>),
    /// No item for now; the source wakes the run when it has one.
    Later,
    End,
}

pub(super) trait ItemSource: Send {
    fn pull(&mut self) -> NextItem;
}

/// An iterator that never waits.
pub(super) struct ImmediateSource(pub(super) FleetItems);

impl ItemSource for ImmediateSource {
    fn pull(&mut self) -> NextItem {
        self.0.next().map_or(NextItem::End, NextItem::Item)
    }
}

/// Items read ahead from a producer that may be slow.
const AHEAD: usize = 512;

/// An iterator that may wait, on its own thread.
pub(super) struct ReadAheadSource {
    items: Receiver<Result<FleetItem>>,
}

/// The callback for when there is something to pull, once it is set.
pub(super) type InputWaker = Arc<Mutex<Option<Box<dyn Fn() + Send>>>>;

impl ReadAheadSource {
    pub(super) fn start(items: FleetItems, waker: InputWaker) -> std::io::Result<Self> {
        let (sender, receiver) = sync_channel(AHEAD);
        // It is not joined: a read that never returns must not keep the program from ending.
        threads::start("haul-input", move || {
            if catch_unwind(AssertUnwindSafe(|| send_items(items, &sender, &waker))).is_err() {
                // It has printed why; a list that ends early must not look complete.
                let _ = sender.send(Err(Error::new(ErrorKind::Read, "reading the list panicked")));
            }
            drop(sender);
            // The end is something to pull, too.
            wake(&waker);
        })?;
        Ok(Self { items: receiver })
    }
}

/// Sends all items.
fn send_items(items: FleetItems, sender: &SyncSender<Result<FleetItem>>, waker: &InputWaker) {
    for item in items {
        if sender.send(item).is_err() {
            return;
        }
        wake(waker);
    }
}

fn wake(waker: &InputWaker) {
    if let Some(wake) = &*waker.lock().ignore_poison() {
        wake();
    }
}

impl ItemSource for ReadAheadSource {
    fn pull(&mut self) -> NextItem {
        match self.items.try_recv() {
            Ok(item) => NextItem::Item(item),
            Err(TryRecvError::Empty) => NextItem::Later,
            Err(TryRecvError::Disconnected) => NextItem::End,
        }
    }
}
