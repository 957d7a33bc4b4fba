//! The connection slots of a worker. Finds slots by token, by connection key and by their next
//! timeout, and shared slots also by the address of the peer.
//!
//! Thousands of slots may be idle, so examining all of them at each wake-up would be slow: the
//! table records which slots have changed, and updates the timers of only these slots.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::net::SocketAddr;
use std::ops::{Index, IndexMut};
use std::sync::Arc;
use std::time::Instant;

use slab::Slab;
use smallvec::SmallVec;

use crate::drive::connection_slot::{ConnectionSlot, ConnectionState};
use crate::net::connection_descriptor_budget::ConnectionDescriptorBudget;
use crate::net::pool::ConnectionKey;

/// The number of outdated timers that may remain in the heap of timers. If there are more, all
/// outdated timers are removed at once.
const MAX_STALE_TIMERS: usize = 64;

/// The connection slots of a worker (a thread with an event loop), found by token. A slot is a
/// connection with the transfers that wait for it. A slot's token also identifies its socket in the
/// event loop.
pub(super) struct ConnectionSlotTable {
    slots: Slab<SlotTableEntry>,
    by_key: HashMap<Arc<ConnectionKey>, SmallVec<[usize; 2]>>,
    /// The tokens of the slots with an open connection that transfers share (HTTP/2 or HTTP/3), by
    /// the address of the peer.
    shared: HashMap<SocketAddr, SmallVec<[usize; 2]>>,
    /// The tokens of the connection slots whose timers must be set again, because the slots were
    /// changed.
    changed: Vec<usize>,
    /// The timers of the connection slots, each with the slot's token. A timer may be earlier than
    /// the next timeout of its slot. The earliest timer is at the top.
    timers: BinaryHeap<Reverse<(Instant, usize)>>,
    budget: Arc<ConnectionDescriptorBudget>,
    idle: usize,
}

/// A connection slot (a connection and the transfers that wait for it) in a
/// [`ConnectionSlotTable`], with its timer.
struct SlotTableEntry {
    slot: ConnectionSlot,
    is_changed: bool,
    /// The time of the connection slot's current timer; `None` if it has none. Any other timer of
    /// the slot in the heap is outdated.
    timer: Option<Instant>,
    /// The peer's address if the connection slot is in [`ConnectionSlotTable::shared`], because
    /// transfers share its open connection (HTTP/2 or HTTP/3); otherwise `None`.
    shared_at: Option<SocketAddr>,
}

impl ConnectionSlotTable {
    /// Makes an empty table. `budget` counts the file descriptors of the table's connections.
    pub(super) fn new(budget: Arc<ConnectionDescriptorBudget>) -> Self {
        Self {
            slots: Slab::new(),
            by_key: HashMap::new(),
            shared: HashMap::new(),
            changed: Vec::new(),
            timers: BinaryHeap::new(),
            budget,
            idle: 0,
        }
    }

    /// Returns the token that the next slot will get from [`ConnectionSlotTable::insert`].
    pub(super) fn next_token(&self) -> usize {
        self.slots.vacant_key()
    }

    /// Adds a connection slot, and returns its token.
    pub(super) fn insert(&mut self, slot: ConnectionSlot) -> usize {
        let key = Arc::clone(&slot.key);
        let token = self.slots.insert(SlotTableEntry { slot, is_changed: true, timer: None, shared_at: None });
        self.changed.push(token);
        self.by_key.entry(key).or_default().push(token);
        self.budget.add_connection();
        self.add_shared_connection(token);
        token
    }

    /// Gives a connection slot the key of its open connection. That key can differ from the slot's
    /// first key: if TCP and QUIC connections were tried at the same time, TCP may have won.
    pub(super) fn update_key(&mut self, token: usize) {
        let Some(SlotTableEntry { slot, .. }) = self.slots.get_mut(token) else { return };
        let ConnectionState::Open(connection) = &slot.state else { return };
        if Arc::ptr_eq(connection.key(), &slot.key) || *connection.key() == slot.key {
            return;
        }
        let key = Arc::clone(connection.key());
        remove_token(&mut self.by_key, &slot.key, token);
        slot.key = Arc::clone(&key);
        self.by_key.entry(key).or_default().push(token);
    }

    /// Removes and returns the connection slot with this token. Returns `None` if there is none.
    pub(super) fn remove(&mut self, token: usize) -> Option<ConnectionSlot> {
        let SlotTableEntry { slot, shared_at, .. } = self.slots.try_remove(token)?;
        remove_token(&mut self.by_key, &slot.key, token);
        if let Some(peer) = shared_at {
            remove_token(&mut self.shared, &peer, token);
        }
        self.idle -= usize::from(slot.is_idle);
        self.budget.remove_connections(1, usize::from(slot.is_idle));
        Some(slot)
    }

    /// Adds a connection slot to the shared connections, if its newly opened connection can carry
    /// concurrent transfers (HTTP/2 or HTTP/3).
    pub(super) fn add_shared_connection(&mut self, token: usize) {
        let Some(entry) = self.slots.get_mut(token) else { return };
        if let ConnectionState::Open(connection) = &entry.slot.state
            && connection.is_shared()
            && entry.shared_at.is_none()
            && let Some(peer) = connection.peer()
        {
            entry.shared_at = Some(peer);
            self.shared.entry(peer).or_default().push(token);
        }
    }

    /// Marks a connection slot as idle or as busy.
    pub(super) fn set_idle(&mut self, token: usize, is_idle: bool) {
        let Some(SlotTableEntry { slot, .. }) = self.slots.get_mut(token) else { return };
        match (std::mem::replace(&mut slot.is_idle, is_idle), is_idle) {
            (false, true) => {
                self.idle += 1;
                self.budget.add_idle();
            }
            (true, false) => {
                self.idle -= 1;
                self.budget.remove_idle();
            }
            _ => {}
        }
    }

    pub(super) fn get(&self, token: usize) -> Option<&ConnectionSlot> {
        self.slots.get(token).map(|entry| &entry.slot)
    }

    pub(super) fn get_mut(&mut self, token: usize) -> Option<&mut ConnectionSlot> {
        let entry = self.slots.get_mut(token)?;
        if !std::mem::replace(&mut entry.is_changed, true) {
            self.changed.push(token);
        }
        Some(&mut entry.slot)
    }

    /// Returns the tokens of the connection slots whose connections have this key.
    pub(super) fn with_key(&self, key: &ConnectionKey) -> &[usize] {
        self.by_key.get(key).map_or(&[], SmallVec::as_slice)
    }

    /// Returns the slots (with their tokens) whose open connections go to this address and carry
    /// concurrent transfers.
    pub(super) fn shared_with(&self, peer: &SocketAddr) -> impl Iterator<Item = (usize, &ConnectionSlot)> {
        let tokens = self.shared.get(peer).map_or(&[][..], SmallVec::as_slice);
        tokens.iter().map(|token| (*token, &self[*token]))
    }

    /// Returns an `Arc` with this key. Slots with equal keys share one `Arc`.
    pub(super) fn intern_key(&self, key: ConnectionKey) -> Arc<ConnectionKey> {
        self.by_key.get_key_value(&key).map_or_else(|| Arc::new(key), |(key, _)| Arc::clone(key))
    }

    /// Returns true if a connection slot has transfers.
    pub(super) fn has_transfers(&self) -> bool {
        self.slots.len() > self.idle && self.slots.iter().any(|(_, entry)| entry.slot.outstanding_count() > 0)
    }

    /// Returns the tokens of all slots.
    pub(super) fn tokens(&self) -> Vec<usize> {
        self.slots.iter().map(|(token, _)| token).collect()
    }

    /// Returns the time at which the event loop must wake up: the time of the earliest timer, or
    /// `None` if no slot has a timer. The wake-up may be needless: received bytes may postpone a
    /// slot's timeout, but the slot's timer moves to the new timeout only when it expires.
    pub(super) fn next_wakeup(&mut self, now: Instant) -> Option<Instant> {
        self.set_timers();
        match self.timers.peek() {
            Some(Reverse((at, _))) if *at > now => Some(*at),
            _ => self.next_timeout(),
        }
    }

    /// Returns the time of the earliest timeout of all slots; `None` if no slot has a timeout.
    pub(super) fn next_timeout(&mut self) -> Option<Instant> {
        self.set_timers();
        while let Some(Reverse((at, token))) = self.timers.peek().copied() {
            let entry = self.slots.get_mut(token).filter(|entry| entry.timer == Some(at));
            let Some(entry) = entry else {
                self.timers.pop();
                continue;
            };
            entry.timer = entry.slot.next_timeout();
            if entry.timer.is_some_and(|next| next <= at) {
                entry.timer = Some(at);
                return Some(at);
            }
            // The timeout was put off, like a limit on silence after each received byte.
            self.timers.pop();
            self.timers.extend(entry.timer.map(|next| Reverse((next, token))));
        }
        None
    }

    /// Returns the tokens of the connection slots whose timeout has passed. Marks these slots as
    /// changed, so that [`set_timers`](Self::set_timers) sets their timers again.
    pub(super) fn take_due(&mut self, now: Instant) -> Vec<usize> {
        let mut due = Vec::new();
        if self.timers.peek().is_none_or(|Reverse((at, _))| *at > now) {
            return due;
        }
        while self.next_timeout().is_some_and(|at| at <= now)
            && let Some(Reverse((_, token))) = self.timers.pop()
        {
            if let Some(entry) = self.slots.get_mut(token) {
                entry.timer = None;
            }
            due.push(token);
        }
        // Set again after the timeouts were handled, not before: that would find them due again.
        for token in &due {
            self.get_mut(*token);
        }
        due
    }

    /// Sets a timer for the next timeout of each connection slot that was changed. The event loop
    /// calls this in each round.
    pub(super) fn set_timers(&mut self) {
        while let Some(token) = self.changed.pop() {
            let Some(entry) = self.slots.get_mut(token) else { continue };
            if std::mem::take(&mut entry.is_changed)
                && let Some(at) = entry.slot.next_timeout()
                && entry.timer.is_none_or(|timer| at < timer)
            {
                entry.timer = Some(at);
                self.timers.push(Reverse((at, token)));
            }
        }
        if self.timers.len() > MAX_STALE_TIMERS + 2 * self.slots.len() {
            let slots = &self.slots;
            self.timers.retain(|Reverse((at, token))| slots.get(*token).is_some_and(|entry| entry.timer == Some(*at)));
        }
    }
}

impl Drop for ConnectionSlotTable {
    fn drop(&mut self) {
        self.budget.remove_connections(self.slots.len(), self.idle);
    }
}

fn remove_token<K: std::hash::Hash + Eq>(tokens: &mut HashMap<K, SmallVec<[usize; 2]>>, key: &K, token: usize) {
    if let Some(of_key) = tokens.get_mut(key) {
        of_key.retain(|other| *other != token);
        if of_key.is_empty() {
            tokens.remove(key);
        }
    }
}

impl Index<usize> for ConnectionSlotTable {
    type Output = ConnectionSlot;

    fn index(&self, token: usize) -> &ConnectionSlot {
        &self.slots[token].slot
    }
}

impl IndexMut<usize> for ConnectionSlotTable {
    fn index_mut(&mut self, token: usize) -> &mut ConnectionSlot {
        self.get_mut(token).expect("a slot with this token")
    }
}
