//! The source of a fleet's URLs: an iterator that is read while transfers run.
//!
//! An iterator that may block (standard input, a FIFO) is read on a separate thread, a limited
//! number of items ahead. So a slow producer does not delay the transfers of earlier items.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::sync::{Arc, Condvar, Mutex};

use super::fleet_input_item::FleetItem;
use crate::ignore_poison::IgnorePoison;
use crate::{Error, ErrorKind, Result, spawn_with_signals_blocked};

/// An iterator over the input items of a fleet. An `Err` is an item that cannot be read. It is
/// reported as a failed transfer.
pub type FleetItems = Box<dyn Iterator<Item = Result<FleetItem>> + Send>;

/// The result of asking an [`ItemSource`] for its next item, without waiting.
#[expect(clippy::large_enum_variant, reason = "it is moved once, into a job")]
pub(super) enum NextItem {
    Item(Result<FleetItem>),
    /// No item is ready at present. When an item is ready, the source wakes the fleet (the threads
    /// that run the transfers).
    Later,
    End,
}

/// A source of input items that never blocks.
pub(super) trait ItemSource: Send {
    fn next_item(&mut self) -> NextItem;
}

/// A source of items (transfers to run) from an iterator that never blocks.
pub(super) struct ImmediateItemSource(pub(super) FleetItems);

impl ItemSource for ImmediateItemSource {
    fn next_item(&mut self) -> NextItem {
        self.0.next().map_or(NextItem::End, NextItem::Item)
    }
}

/// The maximum number of items that the reading thread may read before the fleet (which runs the
/// transfers) has taken them.
const MAX_ITEMS_AHEAD: usize = 512;

/// The maximum total size in bytes of the items that are read ahead. When it is reached, the
/// reading thread waits until the fleet (which runs the transfers) has taken items. A limit on the
/// number of items is not enough, because one line of a list can contain a whole request body.
const MAX_BYTES_AHEAD: usize = 8 << 20;

/// A source of items from an iterator that may block. A separate thread calls the iterator and
/// reads items ahead.
pub(super) struct ReadAheadItemSource {
    items: Receiver<Result<FleetItem>>,
    ahead: Arc<ReadAheadByteLimiter>,
}

/// A limit on the total size of the items (transfers to run) that the reading thread has read and
/// the fleet has not taken yet.
#[derive(Default)]
struct ReadAheadByteLimiter {
    bytes: Mutex<usize>,
    pulled: Condvar,
}

impl ReadAheadByteLimiter {
    /// Adds the bytes of an item. If the total would exceed the limit, first waits until the fleet
    /// has taken enough items; a single item may exceed the limit.
    fn add(&self, bytes: usize) {
        let mut ahead = self.bytes.lock().ignore_poison();
        while *ahead > 0 && *ahead + bytes > MAX_BYTES_AHEAD {
            ahead = self.pulled.wait(ahead).ignore_poison();
        }
        *ahead += bytes;
    }

    fn remove(&self, bytes: usize) {
        let mut ahead = self.bytes.lock().ignore_poison();
        *ahead = ahead.saturating_sub(bytes);
        self.pulled.notify_one();
    }
}

fn kept_bytes(item: &Result<FleetItem>) -> usize {
    item.as_ref().map_or(0, FleetItem::kept_bytes)
}

/// The callback that wakes the fleet when the source has an item (a transfer to run); `None` until
/// the fleet sets the callback.
pub(super) type InputWaker = Arc<Mutex<Option<Box<dyn Fn() + Send>>>>;

impl ReadAheadItemSource {
    pub(super) fn start(items: FleetItems, waker: InputWaker) -> std::io::Result<Self> {
        let (sender, receiver) = sync_channel(MAX_ITEMS_AHEAD);
        let ahead = Arc::<ReadAheadByteLimiter>::default();
        let counter = Arc::clone(&ahead);
        // The thread is not joined: a read that never returns must not keep the program from
        // ending.
        spawn_with_signals_blocked::start("haul-input", move || {
            if catch_unwind(AssertUnwindSafe(|| send_items(items, &sender, &counter, &waker))).is_err() {
                // The panic message is printed. A list that ends early must not look complete.
                let _ = sender.send(Err(Error::new(ErrorKind::Read, "reading the list panicked")));
            }
            drop(sender);
            // The fleet must be woken for the end of the list, too.
            wake(&waker);
        })?;
        Ok(Self { items: receiver, ahead })
    }
}

/// Sends all items of the iterator through the channel `sender` to their [`ReadAheadItemSource`],
/// and wakes the fleet (which runs the transfers) after each item. Runs in the reading thread.
fn send_items(
    items: FleetItems,
    sender: &SyncSender<Result<FleetItem>>,
    ahead: &ReadAheadByteLimiter,
    waker: &InputWaker,
) {
    for item in items {
        ahead.add(kept_bytes(&item));
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

impl ItemSource for ReadAheadItemSource {
    fn next_item(&mut self) -> NextItem {
        match self.items.try_recv() {
            Ok(item) => {
                self.ahead.remove(kept_bytes(&item));
                NextItem::Item(item)
            }
            Err(TryRecvError::Empty) => NextItem::Later,
            Err(TryRecvError::Disconnected) => NextItem::End,
        }
    }
}
