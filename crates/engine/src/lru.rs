//! Least recently used (LRU) order: a list of indices, and a map that drops the least recently used
//! entry.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::Hash;

use slab::Slab;

/// The value that stands for "no index": in the links at the ends of the list, and for both ends of
/// an empty list.
const NO_INDEX: usize = usize::MAX;

/// A list of small indices, such as those of a [`Slab`], in the order of their last use. Every
/// operation takes constant time.
#[derive(Debug)]
pub(crate) struct RecencyList {
    links: Vec<RecencyLink>,
    oldest: usize,
    newest: usize,
    len: usize,
}

/// The links from an index of a [`RecencyList`] to the next older and the next newer index.
#[derive(Debug, Clone, Copy)]
struct RecencyLink {
    is_listed: bool,
    older: usize,
    newer: usize,
}

const UNLISTED_LINK: RecencyLink = RecencyLink { is_listed: false, older: NO_INDEX, newer: NO_INDEX };

impl Default for RecencyList {
    fn default() -> Self {
        Self { links: Vec::new(), oldest: NO_INDEX, newest: NO_INDEX, len: 0 }
    }
}

impl RecencyList {
    /// Returns the number of indices in the list.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Returns the least recently used index, or `None` if the list is empty.
    pub(crate) fn oldest(&self) -> Option<usize> {
        (self.oldest != NO_INDEX).then_some(self.oldest)
    }

    /// Moves an index to the newest end of the list, or adds it there.
    pub(crate) fn mark_newest(&mut self, index: usize) {
        self.remove(index);
        if index >= self.links.len() {
            self.links.resize(index + 1, UNLISTED_LINK);
        }
        self.links[index] = RecencyLink { is_listed: true, older: self.newest, newer: NO_INDEX };
        match self.links.get_mut(self.newest) {
            Some(before) => before.newer = index,
            None => self.oldest = index,
        }
        self.newest = index;
        self.len += 1;
    }

    /// Removes an index. Returns false if it is not in the list.
    pub(crate) fn remove(&mut self, index: usize) -> bool {
        let Some(link) = self.links.get_mut(index).filter(|link| link.is_listed) else { return false };
        let RecencyLink { older, newer, .. } = std::mem::replace(link, UNLISTED_LINK);
        match self.links.get_mut(older) {
            Some(before) => before.newer = newer,
            None => self.oldest = newer,
        }
        match self.links.get_mut(newer) {
            Some(after) => after.older = older,
            None => self.newest = older,
        }
        self.len -= 1;
        true
    }
}

/// A map with a maximum number of entries. If the map is full, inserting a new key removes the
/// least recently used entry.
#[derive(Debug)]
pub(crate) struct LruMap<K, V> {
    indices: HashMap<K, usize>,
    entries: Slab<(K, V)>,
    order: RecencyList,
    limit: usize,
}

impl<K: Hash + Eq + Clone, V> LruMap<K, V> {
    /// Makes an empty map for at most `limit` entries. Allocates no memory.
    pub(crate) fn new(limit: usize) -> Self {
        Self { indices: HashMap::new(), entries: Slab::new(), order: RecencyList::default(), limit: limit.max(1) }
    }

    /// Returns the number of entries.
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns the value of a key, or `None` if the key is not in the map. Marks the entry as the
    /// most recently used.
    pub(crate) fn get<Q: Hash + Eq + ?Sized>(&mut self, key: &Q) -> Option<&mut V>
    where
        K: Borrow<Q>,
    {
        let index = *self.indices.get(key)?;
        self.order.mark_newest(index);
        Some(&mut self.entries[index].1)
    }

    /// Sets the value of a key, and marks the entry as the most recently used. Returns the old
    /// value; `None` if the key was not in the map.
    pub(crate) fn insert(&mut self, key: K, value: V) -> Option<V> {
        if let Some(known) = self.get(&key) {
            return Some(std::mem::replace(known, value));
        }
        while self.entries.len() >= self.limit
            && let Some(oldest) = self.order.oldest()
        {
            self.remove_index(oldest);
        }
        let index = self.entries.insert((key.clone(), value));
        self.indices.insert(key, index);
        self.order.mark_newest(index);
        None
    }

    /// Removes a key. Returns its value; `None` if the key was not in the map.
    pub(crate) fn remove<Q: Hash + Eq + ?Sized>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        let index = *self.indices.get(key)?;
        Some(self.remove_index(index))
    }

    fn remove_index(&mut self, index: usize) -> V {
        self.order.remove(index);
        let (key, value) = self.entries.remove(index);
        self.indices.remove(&key);
        value
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn lru_map_drops_the_least_recently_used_entry() {
        let mut map = LruMap::new(3);
        for key in ["a", "b", "c"] {
            map.insert(key, key.len());
        }
        assert!(map.get("a").is_some());
        map.insert("d", 4);
        assert_eq!(["a", "b", "c", "d"].map(|key| map.get(key).is_some()), [true, false, true, true]);
        assert_eq!(map.insert("c", 9), Some(1));
        assert_eq!((map.remove("c"), map.remove("c"), map.len()), (Some(9), None, 2));
    }

    proptest! {
        #[test]
        fn recency_list_agrees_with_a_model_queue(steps in prop::collection::vec((any::<bool>(), 0_usize..12), 0..200)) {
            let (mut list, mut model) = (RecencyList::default(), VecDeque::new());
            for (is_touched, index) in steps {
                let had = model.iter().position(|other| *other == index);
                if let Some(at) = had {
                    model.remove(at);
                }
                if is_touched {
                    list.mark_newest(index);
                    model.push_back(index);
                } else {
                    prop_assert_eq!(list.remove(index), had.is_some());
                }
                prop_assert_eq!((list.oldest(), list.len()), (model.front().copied(), model.len()));
            }
            while let Some(oldest) = list.oldest() {
                prop_assert_eq!(Some(oldest), model.pop_front());
                list.remove(oldest);
            }
            prop_assert!(model.is_empty());
        }
    }
}
