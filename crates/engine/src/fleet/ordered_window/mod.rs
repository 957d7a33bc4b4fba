//! The ordered window of a stage. Bodies arrive in any order, are kept within a memory budget, and
//! leave in the requested order.
//!
//! ```text
//!   slot   7      8       9      10     11
//!        ┌──────┬───────┬──────┬──────┬──────┐
//!        │ head │ kept  │ done │  …   │ kept │ ◀── transfers put bytes, each into its slot
//!        └──┬───┴───────┴──────┴──────┴──────┘
//!           ▼ streams through, nothing is kept
//!         sink (standard output, or the next stage)
//! ```
//!
//! The slot at the head streams: its bytes go directly to the sink. The other slots keep their
//! bytes, within the budget. When the budget is used up, their transfers stop reading, and the
//! bytes wait in the socket. The module [`progress_rule`](super::progress_rule) explains why this
//! cannot deadlock.
//!
//! | order | which slot streams |
//! |---|---|
//! | [`DeliveryOrder::Input`] | the first that is not finished |
//! | [`DeliveryOrder::Whole`] | none; a full budget gives one slot the sink to itself |
//! | [`DeliveryOrder::Free`] | every slot |

mod delivery_reports;
mod lock_guard;
mod slot;
mod stage_sink_trait;
mod value_overflow_file;

use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use rustc_hash::FxHashMap;

use super::progress_rule::OrderedWindowMemory;
use super::record_memory_sink::WholeOrPiecewiseText;
use super::sinks_of_stages::StageEndValues;
use crate::Result;
use crate::body::decoder_memory_budget::DecoderMemoryBudget;
use crate::buffer_pool::OfferedBodyBytes;
use crate::ignore_poison::IgnorePoison;
use crate::sink::TransferWaker;
use crate::sink::descriptor_writer::OutputReadiness;
use crate::sink::extracted_value_list::ExtractedValues;
use delivery_reports::DeliveryReporter;
use lock_guard::OrderedWindowLockGuard;
use slot::{OrderedBodySlot, OrderedSlotPiece};
pub(super) use stage_sink_trait::StageSink;
use value_overflow_file::MAX_BYTES_OVER_BUDGET;

/// The order in which an [`OrderedWindow`] passes bodies to its sink.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DeliveryOrder {
    /// Bodies are output in input order: the first unfinished body goes directly to the sink, and
    /// later bodies are kept in memory.
    Input,
    /// Bodies are output in the order of their completion, without mixing the bytes of two bodies.
    Whole,
    /// Bytes are output as they arrive. The pieces of several bodies may mix.
    Free,
}

/// The number of bytes of the memory budget that an empty slot takes. This cost limits the number
/// of empty bodies that may wait behind a slow one.
const SLOT_COST: usize = 256;

/// The number that stands for "no slot" in atomic fields.
const NO_SLOT: u64 = u64::MAX;

/// The output window of a stage: a queue with one slot for each body. It passes bodies to the
/// stage's sink in the required order, and limits the memory for bodies that wait for their turn.
pub(super) struct OrderedWindow {
    order: DeliveryOrder,
    budget: usize,
    /// The memory of the content decoders of all stages, and the number of stages. Each stage has
    /// one ordered window. With three stages, each window reduces its budget by a third of the
    /// bytes that the decoders use. `None` if the decoders' memory does not count.
    decoders: Option<(Arc<DecoderMemoryBudget>, u64)>,
    /// The number of the next slot that a transfer will reserve.
    next: AtomicU64,
    /// A copy of [`OrderedWindowState::head`] that is readable without the lock.
    head: AtomicU64,
    /// A copy of [`OrderedWindowState::held`] that is readable without the lock.
    held: AtomicUsize,
    /// A copy of [`OrderedWindowState::claimed`], or [`NO_SLOT`], that is readable without the
    /// lock.
    claimed: AtomicU64,
    wants_flush: AtomicBool,
    departures: Option<DeliveryReporter>,
    /// The directory for files with values that exceed the budget; `None` to keep all values in
    /// memory.
    overflow_dir: Option<PathBuf>,
    state: Mutex<OrderedWindowState>,
}

/// The state of an [`OrderedWindow`], which its lock protects.
struct OrderedWindowState {
    sink: Box<dyn StageSink>,
    room: OutputReadiness,
    head: u64,
    slots: VecDeque<OrderedBodySlot>,
    /// The slots by number, in all orders other than [`DeliveryOrder::Input`]; otherwise empty.
    /// Peers do not choose the numbers, so a fast hash is safe.
    unordered: FxHashMap<u64, OrderedBodySlot>,
    /// The numbers of the slots in `unordered` whose complete bodies were not passed to the sink
    /// yet.
    ready: VecDeque<u64>,
    /// The number of the slot whose body goes directly to the sink, while all other slots wait.
    /// Used only with [`DeliveryOrder::Whole`]. `None` if there is no such slot.
    claimed: Option<u64>,
    held: usize,
    finished: u64,
    /// The wakers of the transfers that wait for room or for their turn, by slot number. Each is
    /// stored with the token of the transfer's connection. A later wait replaces the waker of its
    /// slot. For example, a transfer on a shared connection asks for room at each receive.
    waiting: BTreeMap<u64, (Arc<dyn TransferWaker>, usize)>,
    /// True if the sink has received content since the last flush.
    dirty: bool,
    /// The number of written bytes that was reported to the observer last.
    reported: u64,
}

impl OrderedWindow {
    /// Makes a window that keeps at most `budget` bytes of bodies in memory. Even with a budget of
    /// 0, a transfer may start while the window is empty.
    #[must_use]
    pub(super) fn new(order: DeliveryOrder, budget: usize, sink: Box<dyn StageSink>) -> Self {
        Self {
            order,
            budget: budget.max(1),
            decoders: None,
            next: AtomicU64::new(0),
            head: AtomicU64::new(0),
            held: AtomicUsize::new(0),
            claimed: AtomicU64::new(NO_SLOT),
            wants_flush: AtomicBool::new(false),
            departures: None,
            overflow_dir: None,
            state: Mutex::new(OrderedWindowState {
                sink,
                room: OutputReadiness::Free,
                head: 0,
                slots: VecDeque::new(),
                unordered: FxHashMap::default(),
                ready: VecDeque::new(),
                claimed: None,
                held: 0,
                finished: 0,
                waiting: BTreeMap::new(),
                dirty: false,
                reported: 0,
            }),
        }
    }

    /// Counts the memory of the body decoders against the window's budget. If `windows` windows
    /// share the decoders, each of them counts an equal part.
    pub(super) fn with_decoder_memory(mut self, decoders: &Arc<DecoderMemoryBudget>, windows: usize) -> Self {
        self.decoders = Some((Arc::clone(decoders), windows as u64));
        self
    }

    /// Makes the window write extracted values that exceed its memory budget to files in the
    /// directory `dir`.
    pub(super) fn with_overflow_directory(mut self, dir: &Path) -> Self {
        self.overflow_dir = Some(dir.to_owned());
        self
    }

    /// Returns the maximum number of body bytes that the window may keep in memory now: its budget
    /// minus the decoders' memory, but at least a quarter of the budget.
    fn byte_budget(&self) -> usize {
        let Some((decoders, windows)) = &self.decoders else { return self.budget };
        let taken = usize::try_from(decoders.used_bytes() / windows).unwrap_or(usize::MAX);
        self.budget.saturating_sub(taken).max(self.budget / 4).max(1)
    }

    /// Returns the window's memory use and budget, by which the [progress
    /// rule](super::progress_rule) decides whether a transfer may continue.
    fn memory_use(&self, state: &OrderedWindowState) -> OrderedWindowMemory {
        OrderedWindowMemory {
            held: state.held,
            budget: self.byte_budget(),
            room: state.room,
            may_run_ahead: state.sink.may_receive_while_full(),
        }
    }

    /// Reserves a slot of the window for the next body, and returns the number of the slot.
    pub(super) fn reserve_slot(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    /// Returns the number of the slot whose content is output next, in input order. Returns `None`
    /// if another order than [`DeliveryOrder::Input`] applies.
    #[must_use]
    pub(super) fn head_slot(&self) -> Option<u64> {
        (self.order == DeliveryOrder::Input).then(|| self.head.load(Ordering::Relaxed))
    }

    /// Returns the slot whose content must be output before that of all other slots: the
    /// [head](Self::head), or the slot with exclusive use of the sink. Returns `None` if there is
    /// no such slot.
    #[must_use]
    pub(super) fn awaited_slot(&self) -> Option<u64> {
        let claimed = || Some(self.claimed.load(Ordering::Relaxed)).filter(|slot| *slot != NO_SLOT);
        self.head_slot().or_else(claimed)
    }

    /// Returns true if all content of all reserved slots has been passed to the sink, and the sink
    /// has room.
    #[must_use]
    pub(super) fn is_empty(&self) -> bool {
        let state = self.lock();
        state.finished == self.next.load(Ordering::Relaxed) && state.room == OutputReadiness::Free
    }

    /// Returns true if the kept bodies do not use up the memory budget, so that another transfer
    /// may start. Takes no lock, because it is called before every transfer.
    #[must_use]
    pub(super) fn has_budget(&self) -> bool {
        self.held.load(Ordering::Relaxed) < self.byte_budget()
    }

    /// Returns true if the caller should call [`OrderedWindow::flush`].
    #[must_use]
    pub(super) fn wants_flush(&self) -> bool {
        self.wants_flush.load(Ordering::Relaxed)
    }

    /// Ends the stage, whose slots receive no more content, and returns the values that the sink
    /// has not output ([`StageSink::finish`]). If the program was interrupted during the output of
    /// a record, first outputs the rest of that record.
    ///
    /// # Errors
    /// The sink fails.
    pub(super) fn finish_stage(&self) -> Result<Option<StageEndValues>> {
        let mut guard = self.lock();
        let state = &mut *guard;
        if let Some(front) = state.front_slot(self.order)
            && state.slot_mut(self.order, front).may_have_output()
            && let Some(OrderedSlotPiece::Pieces(rest)) = state.slot_mut(self.order, front).content.pop_front()
        {
            for piece in rest.pieces {
                state.sink.write_bytes(&piece)?;
            }
        }
        let tail = state.sink.finish(None)?;
        self.report_written(state);
        Ok(tail)
    }

    /// Returns the number of body bytes that the window accepts now for a slot. If the number is 0,
    /// the window later calls `waker` with `token`, and the caller then calls this function again.
    /// A call with a waker may also give the slot exclusive use of the sink
    /// ([`DeliveryOrder::Whole`]). A call without a waker only returns the number.
    pub(super) fn credit(&self, slot: u64, waker: Option<&Arc<dyn TransferWaker>>, token: usize) -> u64 {
        let mut state = self.lock();
        if waker.is_some() {
            self.claim_output(&mut state, slot);
        }
        let credit = self.memory_use(&state).credit(self.is_streaming(&state, slot));
        if credit == 0
            && let Some(waker) = waker
        {
            state.waiting.insert(slot, (Arc::clone(waker), token));
        }
        credit
    }

    /// Returns true if the body of this slot streams: its bytes go directly to the sink.
    fn is_streaming(&self, state: &OrderedWindowState, slot: u64) -> bool {
        match self.order {
            DeliveryOrder::Input => state.head == slot,
            DeliveryOrder::Free => true,
            DeliveryOrder::Whole => state.claimed == Some(slot),
        }
    }

    /// Returns true if this slot has exclusive use of the sink, so that the bodies of all other
    /// slots wait.
    pub(super) fn is_claimed_by(&self, slot: u64) -> bool {
        self.order == DeliveryOrder::Whole && self.lock().claimed == Some(slot)
    }

    /// Returns true if the content of this slot is output next. Otherwise, the window later calls
    /// `waker` with `token`, and the caller then calls this function again.
    pub(super) fn is_first(&self, slot: u64, waker: Option<&Arc<dyn TransferWaker>>, token: usize) -> bool {
        let mut state = self.lock();
        if self.order != DeliveryOrder::Free && self.is_streaming(&state, slot) {
            return true;
        }
        if let Some(waker) = waker {
            state.waiting.insert(slot, (Arc::clone(waker), token));
        }
        false
    }

    /// Gives this slot exclusive use of the sink if the order is [`DeliveryOrder::Whole`], the kept
    /// bodies use up the memory budget, no other slot has this use, and no complete body waits for
    /// the sink.
    fn claim_output(&self, state: &mut OrderedWindowState, slot: u64) {
        let is_full = self.order == DeliveryOrder::Whole && state.claimed.is_none() && state.held >= self.byte_budget();
        // A complete slot may have left in part when the sink became full, so it goes first.
        if is_full && state.ready.is_empty() {
            state.claimed = Some(slot);
        }
    }

    /// Adds received bytes of a body to its slot, or passes them directly to the sink if the slot
    /// streams.
    ///
    /// # Errors
    /// The sink fails.
    pub(super) fn add_bytes(&self, slot: u64, offered: OfferedBodyBytes<'_>) -> Result<()> {
        let mut guard = self.lock();
        let state = &mut *guard;
        if self.try_stream(state, slot)? {
            state.slot_mut(self.order, slot).has_left = true;
            state.dirty = true;
            state.room = state.sink.write_bytes(offered.bytes())?;
        } else {
            let chunk = offered.into_kept_bytes();
            state.held += chunk.memory_size();
            state.slot_mut(self.order, slot).content.push_back(OrderedSlotPiece::Bytes(chunk));
        }
        Ok(())
    }

    /// Appends extracted values to the content of a slot, and empties `records`.
    ///
    /// # Errors
    /// The sink fails.
    pub(super) fn add_records(&self, slot: u64, records: &mut ExtractedValues) -> Result<()> {
        let mut guard = self.lock();
        let state = &mut *guard;
        if self.try_stream(state, slot)? {
            state.slot_mut(self.order, slot).has_left = true;
            state.dirty = true;
            state.room = state.sink.write_records(records)?;
        } else {
            let values = std::mem::take(records);
            let is_beyond = state.held + values.memory_size() > self.byte_budget() + MAX_BYTES_OVER_BUDGET;
            let content = match self.overflow_dir.as_ref().filter(|_| is_beyond) {
                Some(dir) => state.slot_mut(self.order, slot).store(values, dir),
                None => OrderedSlotPiece::Records(values),
            };
            state.held += content.cost();
            state.slot_mut(self.order, slot).content.push_back(content);
        }
        Ok(())
    }

    /// Appends the output text of a finished transfer to the content of its slot.
    ///
    /// # Errors
    /// The sink fails.
    pub(super) fn set_record(&self, slot: u64, text: WholeOrPiecewiseText) -> Result<()> {
        match text {
            WholeOrPiecewiseText::Whole(bytes) if bytes.is_empty() => Ok(()),
            WholeOrPiecewiseText::Whole(bytes) => self.add_bytes(slot, OfferedBodyBytes::borrowed(&bytes)),
            WholeOrPiecewiseText::Lines(mut lines) => self.add_records(slot, &mut lines),
            WholeOrPiecewiseText::Pieces(pieces) => {
                let mut guard = self.lock();
                let state = &mut *guard;
                state.held += pieces.cost;
                state.slot_mut(self.order, slot).content.push_back(OrderedSlotPiece::Pieces(pieces));
                self.try_stream(state, slot).map(drop)
            }
        }
    }

    /// Updates the memory that a slot's body uses outside of the window while its record is being
    /// built: `before` bytes until now, `now` bytes from now on. These bytes count against the
    /// window's budget until the slot is finished.
    pub(super) fn count_outside(&self, slot: u64, before: usize, now: usize) {
        let mut state = self.lock();
        state.held = state.held + now - before;
        state.slot_mut(self.order, slot).outside = now;
    }

    /// Passes the stored content of a slot to the sink if the slot streams (its bytes go directly
    /// to the sink). Returns true if the sink has taken all this content and has room for more.
    fn try_stream(&self, state: &mut OrderedWindowState, slot: u64) -> Result<bool> {
        self.claim_output(state, slot);
        if !self.is_streaming(state, slot) {
            return Ok(false);
        }
        self.output_slot_content(state, slot)?;
        Ok(state.room == OutputReadiness::Free)
    }

    /// Passes the stored content of a slot to the sink, as long as the sink has room.
    fn output_slot_content(&self, state: &mut OrderedWindowState, slot: u64) -> Result<()> {
        while state.room == OutputReadiness::Free {
            let entry = state.slot_mut(self.order, slot);
            let Some(content) = entry.content.pop_front() else { break };
            let is_complete = entry.complete > 0;
            entry.complete -= usize::from(is_complete);
            entry.has_left |= !is_complete;
            state.dirty = true;
            let cost = content.cost();
            state.room = match content {
                OrderedSlotPiece::Bytes(chunk) => state.sink.write_bytes(chunk.bytes())?,
                OrderedSlotPiece::Records(mut records) => state.sink.write_records(&mut records)?,
                OrderedSlotPiece::Stored(values) => state.sink.write_records(&mut values.read()?)?,
                OrderedSlotPiece::Pieces(mut rest) => {
                    if let Some(piece) = rest.pieces.next() {
                        state.room = state.sink.write_bytes(&piece)?;
                        let entry = state.slot_mut(self.order, slot);
                        entry.content.push_front(OrderedSlotPiece::Pieces(rest));
                        entry.complete += usize::from(is_complete);
                        continue;
                    }
                    state.room
                }
            };
            state.held -= cost;
        }
        Ok(())
    }

    /// Returns true if all pages of a listing share one slot, so that no other body is output
    /// between them. Otherwise, each page has its own slot.
    pub(super) fn pages_share_slot(&self) -> bool {
        self.order == DeliveryOrder::Input
    }

    /// Marks the present content of a slot as complete: it consists of whole pages of a listing.
    /// The next page of the listing follows in the same slot.
    pub(super) fn end_page(&self, slot: u64) {
        let mut state = self.lock();
        let entry = state.slot_mut(self.order, slot);
        (entry.complete, entry.has_left) = (entry.content.len(), false);
        let outside = std::mem::take(&mut entry.outside);
        state.held -= outside;
    }

    /// Removes the content of a slot, because its transfer is repeated. Keeps the complete pages in
    /// the slot. Returns false and removes nothing if the sink has already received part of the
    /// current page.
    pub(super) fn restart_slot(&self, slot: u64) -> bool {
        let mut state = self.lock();
        let entry = state.slot_mut(self.order, slot);
        if entry.has_left {
            return false;
        }
        let content = entry.content.split_off(entry.complete);
        state.held -= content.iter().map(OrderedSlotPiece::cost).sum::<usize>();
        // A transfer that waits to be tried again does not keep the sink: the next flush passes
        // complete bodies on.
        let gave_up = state.claimed == Some(slot);
        if gave_up {
            state.claimed = None;
            state.dirty = true;
        }
        self.wake_transfers(&mut state, gave_up);
        true
    }

    /// Marks a slot as finished: its body receives no more content.
    ///
    /// # Errors
    /// The sink fails.
    pub(super) fn finish_slot(&self, slot: u64) -> Result<()> {
        let mut state = self.lock();
        let entry = state.slot_mut(self.order, slot);
        entry.done = true;
        let outside = std::mem::take(&mut entry.outside);
        state.held -= outside;
        if self.order != DeliveryOrder::Input && state.claimed != Some(slot) {
            state.ready.push_back(slot);
        }
        self.output_ready_content(&mut state)
    }

    /// Flushes the sink, and passes it all content for which it has room. Returns
    /// [`OutputReadiness::Full`] if the sink then has no room for more content.
    ///
    /// # Errors
    /// The sink fails.
    pub(super) fn flush(&self) -> Result<OutputReadiness> {
        let mut state = self.lock();
        if state.dirty || state.room == OutputReadiness::Full {
            state.dirty = false;
            state.room = state.sink.flush()?;
            self.output_ready_content(&mut state)?;
        }
        Ok(state.room)
    }

    /// Passes all content to the sink that may be output now. Then removes finished slots, and
    /// wakes the transfers that may continue.
    fn output_ready_content(&self, state: &mut OrderedWindowState) -> Result<()> {
        let mut moved = false;
        while let Some(front) = state.front_slot(self.order) {
            self.output_slot_content(state, front)?;
            let slot = state.slot_mut(self.order, front);
            if !slot.done || !slot.content.is_empty() {
                break;
            }
            let transfer = slot.transfer;
            state.remove(self.order, front);
            self.report_departure(transfer);
            moved = true;
        }
        self.report_written(state);
        self.head.store(state.head, Ordering::Relaxed);
        self.wake_transfers(state, moved);
        Ok(())
    }

    /// Wakes the waiting transfers that have room now. `moved` is true if a slot was just removed
    /// from the window.
    fn wake_transfers(&self, state: &mut OrderedWindowState, moved: bool) {
        if state.waiting.is_empty() {
            return;
        }
        let memory = self.memory_use(state);
        let unclaimed = self.order == DeliveryOrder::Whole && state.claimed.is_none() && moved;
        let mut waiting = std::mem::take(&mut state.waiting);
        waiting.retain(|slot, (waker, token)| {
            let is_streaming = self.is_streaming(state, *slot);
            let may_continue = memory.may_continue(is_streaming) || unclaimed && !is_streaming;
            if may_continue {
                waker.wake(*token);
            }
            !may_continue
        });
        state.waiting = waiting;
    }

    fn lock(&self) -> OrderedWindowLockGuard<'_> {
        OrderedWindowLockGuard { state: self.state.lock().ignore_poison(), window: self }
    }
}

impl OrderedWindowState {
    /// Returns the slot with the number `slot`. Creates it if it does not exist yet.
    fn slot_mut(&mut self, order: DeliveryOrder, slot: u64) -> &mut OrderedBodySlot {
        if order != DeliveryOrder::Input {
            return self.unordered.entry(slot).or_insert_with(|| {
                self.held += SLOT_COST;
                OrderedBodySlot::default()
            });
        }
        let entry = usize::try_from(slot - self.head).expect("slots near the head");
        while self.slots.len() <= entry {
            self.slots.push_back(OrderedBodySlot::default());
            self.held += SLOT_COST;
        }
        &mut self.slots[entry]
    }

    /// Returns the number of the slot whose content is passed to the sink next; `None` if no slot's
    /// content may be output.
    fn front_slot(&self, order: DeliveryOrder) -> Option<u64> {
        match order {
            DeliveryOrder::Input => (!self.slots.is_empty()).then_some(self.head),
            DeliveryOrder::Whole | DeliveryOrder::Free => self.claimed.or_else(|| self.ready.front().copied()),
        }
    }

    fn remove(&mut self, order: DeliveryOrder, slot: u64) {
        if order == DeliveryOrder::Input {
            self.slots.pop_front();
            self.head += 1;
        } else {
            self.unordered.remove(&slot);
            if self.claimed == Some(slot) {
                self.claimed = None;
            } else {
                self.ready.pop_front();
            }
        }
        self.held -= SLOT_COST;
        self.finished += 1;
    }
}

#[cfg(test)]
mod tests;
