//! The progress rule. It ensures that a fleet never deadlocks while its output has room, although
//! it delivers bodies in order and limits memory and concurrent transfers.
//!
//! The rule has three parts, the functions in the table. The dispatcher and the windows (each an
//! ordered queue of the bodies of one stage) only apply them. A *slot* holds one body of a window.
//! A slot *streams* if its bytes go directly to the sink. In input order, the *head* is the first
//! unfinished slot. The *caps* limit concurrent transfers, each of which takes a slot of the caps.
//!
//! | part | decides | applied by |
//! |---|---|---|
//! | [`QueueHead::permission`] | which transfer may start | the dispatcher |
//! | [`OrderedWindowMemory::credit`] | how many bytes a slot may receive | the window |
//! | [`OrderedWindowMemory::may_continue`] | which waiting transfers are woken | the window |
//!
//! A transfer is *awaited* if the others of its stage wait for its content: its slot is the head,
//! or it has claimed the sink (has exclusive use of it). A transfer that waits to be tried again
//! gives its slot of the caps back, but keeps its slot in the window. If it will resume after the
//! content received so far, it also keeps this content and its claim. So it can be awaited, too.
//!
//! # Proof
//!
//! Suppose that no transfer can continue or start, that transfers are left, and that the output has
//! room. No timer runs, so every transfer that waits to be tried again is in the queue, as a
//! *retry*. Let *s* be the last stage with outstanding transfers. Its sink has room: the next
//! stage, if there is one, has no outstanding transfers and so is not full.
//!
//! 1. *A started transfer whose slot streams is not blocked.* It has credit whatever the budget
//!    (`credit`), and it was woken when its sink got room or when it became the streaming slot
//!    (`may_continue`, called after each change of the window).
//! 2. *If s has an awaited transfer, it has started.* It may start beyond both caps, so it needs no
//!    slot of a cap, and without budget (`permission`). Started, it streams: by 1 it continues.
//!    Finished, it leaves, and the next slot is the head.
//! 3. *If slots of s leave whole, none is awaited, and the budget is used up, a transfer that asks
//!    for credit claims the sink.* It streams from then on: by 1 it continues. If the budget is not
//!    used up, a slot has credit and is not blocked.
//! 4. *If every slot of s streams, every started transfer continues by 1.*
//! 5. *If no transfer of s has started, one may.* In an order with a head, by 2. Otherwise the
//!    first of *s* in the queue has permission: if it is a retry, even without budget, because the
//!    content that uses the budget up may be its own. If there is no retry, the window has no
//!    content and so has budget (it is at least 1). All slots of the caps may belong to pages of
//!    earlier stages that wait because *s* is full. One transfer of *s* may then start beyond the
//!    caps (`permission`). If *s* is not full, the sink of the stage before has room, and the same
//!    argument holds for that stage: its awaited transfer may start beyond the caps, too.
//!
//! In each case a transfer of *s* can continue or start, which contradicts the assumption.
//!
//! The pages of a listing share a slot if the order has a head. Between two pages, the next
//! transfer of the slot is in the queue, so 2 holds for it: the slot is the head until the listing
//! ends.
//!
//! Not part of this rule, and needed besides: a transfer that keeps its slot while it waits to be
//! tried again waits for its timer only; one that keeps memory of the decoders keeps its slot
//! (`Transfer::may_give_up_slot`); no transfer waits behind a later one on its connection
//! (`ConnectionSlot`); a transfer of the streaming slot is always admitted to the decoders' memory
//! (`body::decoder_memory_budget`).
//!
//! The tests run the dispatcher and the windows against random transfers, budgets and caps, and
//! check after each step that another step is possible.

#[cfg(test)]
mod tests;

use crate::sink::descriptor_writer::OutputReadiness;

/// The beginning of the dispatcher's queue, from which the dispatcher decides whether a transfer
/// may start. Transfers are identified by their priority in the queue
/// ([`Dispatcher::priority`](super::dispatch::Dispatcher::priority)).
#[derive(Debug, Clone, Copy)]
pub(super) struct QueueHead {
    /// The priority of the first transfer in the queue.
    pub(super) first: u64,
    /// The smallest priority number that a new transfer of the first transfer's stage can have. The
    /// first transfer is a retry exactly if `first` is smaller than this number.
    pub(super) first_new: u64,
    /// True if the window of the first transfer's stage may keep more bytes.
    pub(super) has_budget: bool,
    /// The queued transfer whose content must be output before that of all other transfers of its
    /// stage: the first unfinished one in input order, or the one with exclusive use of the sink.
    /// If several stages have such a transfer in the queue, the one of the last stage applies.
    /// `None` if no stage has one.
    pub(super) awaited: Option<u64>,
    /// True if the last stage with unfinished transfers has a full queue, and none of its transfers
    /// is running. Earlier stages wait for this stage, and may occupy all slots.
    pub(super) is_last_stuck: bool,
}

/// The permission to start a queued transfer. Within the limits on concurrent transfers, that
/// transfer must have a priority number smaller than `below`. The transfer `beyond_caps` may start
/// even beyond these limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct StartPermission {
    /// The priority of the transfer that may start even beyond the limits on concurrent transfers;
    /// `None` if no transfer may exceed them.
    pub(super) beyond_caps: Option<u64>,
    /// The priority below which transfers may start within the limits on concurrent transfers.
    pub(super) below: u64,
}

impl QueueHead {
    /// Returns the permission to start a transfer. Returns `None` if no transfer may start, because
    /// all of these hold: the output window may keep no more bytes, the first transfer in the queue
    /// is not a retry, no queued transfer is `awaited`, and `is_last_stuck` is false.
    pub(super) fn permission(self) -> Option<StartPermission> {
        let stuck = self.is_last_stuck.then_some(self.first);
        let beyond_caps = self.awaited.or(stuck);
        let below = if self.has_budget { u64::MAX } else { self.first_new };
        (beyond_caps.is_some() || self.first < below).then_some(StartPermission { beyond_caps, below })
    }
}

/// The memory use of a stage's output window, and whether the window's sink has room.
#[derive(Debug, Clone, Copy)]
pub(super) struct OrderedWindowMemory {
    /// The number of body bytes that the window keeps in memory at present.
    pub(super) held: usize,
    /// The maximum number of body bytes that the window may keep in memory.
    pub(super) budget: usize,
    /// The state of the sink: whether it has room for more output.
    pub(super) room: OutputReadiness,
    /// True if a streaming slot (one whose bytes go directly to the sink) may keep content while
    /// the sink has no room.
    pub(super) may_run_ahead: bool,
}

impl OrderedWindowMemory {
    /// Returns the number of body bytes that a slot of the window may receive now. `is_streaming`
    /// is true if the slot's bytes go directly to the sink.
    pub(super) fn credit(self, is_streaming: bool) -> u64 {
        let left = self.budget.saturating_sub(self.held) as u64;
        match self.room {
            OutputReadiness::Free if is_streaming => u64::MAX,
            OutputReadiness::Full if is_streaming && !self.may_run_ahead => 0,
            OutputReadiness::Free | OutputReadiness::Full => left,
        }
    }

    /// Returns true if a transfer that waits to receive more bytes must be woken. `is_streaming` is
    /// true if its bytes go directly to the sink. A transfer whose bytes are kept in memory is
    /// woken only when a quarter of the budget is free: otherwise, every free byte would wake all
    /// such transfers.
    pub(super) fn may_continue(self, is_streaming: bool) -> bool {
        let has_quarter = self.held < self.budget - self.budget / 4;
        if is_streaming { self.room == OutputReadiness::Free || self.may_run_ahead && has_quarter } else { has_quarter }
    }
}
