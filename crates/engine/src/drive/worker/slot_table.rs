//! The connection slots of a worker, by token and by connection key.

use std::collections::HashMap;
use std::ops::{Index, IndexMut};
use std::sync::Arc;

use slab::Slab;

use crate::drive::connection_slot::ConnectionSlot;
use crate::net::pool::ConnectionKey;

/// A worker's connection slots. The token of a slot is also its token in the event loop.
#[derive(Default)]
pub(super) struct ConnectionSlotTable {
    slots: Slab<ConnectionSlot>,
    by_key: HashMap<Arc<ConnectionKey>, Vec<usize>>,
}

impl ConnectionSlotTable {
    /// Returns the token that the next call of [`ConnectionSlotTable::insert`] returns.
    pub(super) fn next_token(&self) -> usize {
        self.slots.vacant_key()
    }

    /// Adds a slot, and returns its token.
    pub(super) fn insert(&mut self, slot: ConnectionSlot) -> usize {
        let key = Arc::clone(&slot.key);
        let token = self.slots.insert(slot);
        self.by_key.entry(key).or_default().push(token);
        token
    }

    /// Removes the slot with this token and returns it.
    pub(super) fn remove(&mut self, token: usize) -> Option<ConnectionSlot> {
        let slot = self.slots.try_remove(token)?;
        if let Some(tokens) = self.by_key.get_mut(&slot.key) {
            tokens.retain(|&other| other != token);
            if tokens.is_empty() {
                self.by_key.remove(&slot.key);
            }
        }
        Some(slot)
    }

    pub(super) fn get(&self, token: usize) -> Option<&ConnectionSlot> {
        self.slots.get(token)
    }

    pub(super) fn get_mut(&mut self, token: usize) -> Option<&mut ConnectionSlot> {
        self.slots.get_mut(token)
    }

    /// Returns the tokens of the slots whose connections have this key.
    pub(super) fn with_key(&self, key: &ConnectionKey) -> &[usize] {
        self.by_key.get(key).map_or(&[], Vec::as_slice)
    }

    /// Returns the key in an `Arc`: the one that slots with an equal key already share, or a new
    /// one.
    pub(super) fn shared_key(&self, key: ConnectionKey) -> Arc<ConnectionKey> {
        self.by_key.get_key_value(&key).map_or_else(|| Arc::new(key), |(key, _)| Arc::clone(key))
    }

    /// Returns all slots with their tokens.
    pub(super) fn iter(&self) -> impl Iterator<Item = (usize, &ConnectionSlot)> {
        self.slots.iter()
    }

    /// Returns the tokens of all slots.
    pub(super) fn tokens(&self) -> Vec<usize> {
        self.slots.iter().map(|(token, _)| token).collect()
    }
}

impl Index<usize> for ConnectionSlotTable {
    type Output = ConnectionSlot;

    fn index(&self, token: usize) -> &ConnectionSlot {
        &self.slots[token]
    }
}

impl IndexMut<usize> for ConnectionSlotTable {
    fn index_mut(&mut self, token: usize) -> &mut ConnectionSlot {
        &mut self.slots[token]
    }
}
