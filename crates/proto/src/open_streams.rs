//! The open streams of a connection, found by identifier, in the order in which they began.
//!
//! Identifiers rise, so that a new stream goes to the end of a sorted list, and a look-up is a
//! binary search; the streams themselves do not move. Rejected: a queue indexed by identifier,
//! which is one step faster but grows without bound while one long download is open. Rejected: a
//! tree, which allocates memory for each stream.

use alloc::vec::Vec;

/// The open streams of a connection, each with an identifier of type `K` and a state of type `T`.
#[derive(Debug)]
pub(crate) struct OpenStreams<K, T> {
    slots: Vec<Option<T>>,
    free: Vec<u32>,
    /// The stream identifiers in rising order, each with the index of its stream in `slots`.
    index: Vec<(K, u32)>,
}

impl<K, T> Default for OpenStreams<K, T> {
    fn default() -> OpenStreams<K, T> {
        OpenStreams { slots: Vec::new(), free: Vec::new(), index: Vec::new() }
    }
}

impl<K: Ord + Copy, T> OpenStreams<K, T> {
    /// Inserts a stream with the identifier `id`, which no other open stream has. The insertion is
    /// cheap if `id` is the highest identifier.
    pub(crate) fn insert(&mut self, id: K, stream: T) {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            self.slots.len() as u32 - 1
        });
        self.slots[slot as usize] = Some(stream);
        let place = self.index.partition_point(|&(other, _)| other < id);
        self.index.insert(place, (id, slot));
    }

    pub(crate) fn get(&self, id: K) -> Option<&T> {
        let (_, slot) = self.index[self.index_of(id)?];
        self.slots[slot as usize].as_ref()
    }

    pub(crate) fn get_mut(&mut self, id: K) -> Option<&mut T> {
        let (_, slot) = self.index[self.index_of(id)?];
        self.slots[slot as usize].as_mut()
    }

    pub(crate) fn remove(&mut self, id: K) -> Option<T> {
        let (_, slot) = self.index.remove(self.index_of(id)?);
        self.free.push(slot);
        self.slots[slot as usize].take()
    }

    fn index_of(&self, id: K) -> Option<usize> {
        self.index.binary_search_by_key(&id, |&(id, _)| id).ok()
    }

    pub(crate) fn len(&self) -> usize {
        self.index.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.index.is_empty()
    }

    /// Iterates over the identifiers of the open streams, in rising order.
    pub(crate) fn ids(&self) -> impl Iterator<Item = K> {
        self.index.iter().map(|&(id, _)| id)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.slots.iter().flatten()
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.slots.iter_mut().flatten()
    }
}
