//! The dynamic table (RFC 7541 §2.3.2, §4).

use alloc::collections::VecDeque;
use alloc::vec::Vec;

/// The number of bytes that each entry counts in addition to its name and value (RFC 7541 §4.1).
const OVERHEAD: usize = 32;

#[derive(Copy, Clone, Debug)]
struct DynamicTableEntry {
    /// The position of the entry's name, counted from the first byte ever inserted into the table.
    /// The value follows the name.
    at: u64,
    name: u32,
    value: u32,
}

/// The dynamic table of an HPACK encoder or decoder. The names and values of all entries are in one
/// buffer, in the order of insertion.
#[derive(Debug)]
pub(super) struct DynamicTable {
    bytes: Vec<u8>,
    /// The position of the buffer's first byte, counted like [`DynamicTableEntry::at`].
    base: u64,
    entries: VecDeque<DynamicTableEntry>,
    size: usize,
    max: usize,
}

impl DynamicTable {
    pub(super) fn new(max: usize) -> DynamicTable {
        DynamicTable { bytes: Vec::new(), base: 0, entries: VecDeque::new(), size: 0, max }
    }

    pub(super) fn max(&self) -> usize {
        self.max
    }

    #[cfg(test)]
    pub(super) fn size(&self) -> usize {
        self.size
    }

    pub(super) fn resize(&mut self, max: usize) {
        self.max = max;
        self.evict(max);
    }

    /// Returns the name and value of the table entry with this index; `None` if there is none.
    /// Index 0 is the newest entry.
    pub(super) fn get(&self, index: usize) -> Option<(&[u8], &[u8])> {
        self.entries.get(index).map(|entry| self.parts(entry))
    }

    /// Iterates over the names and values of all entries, newest first.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.entries.iter().map(|entry| self.parts(entry))
    }

    /// Inserts an entry. An entry that is larger than the whole table empties the table and is not
    /// kept (RFC 7541 §4.4).
    pub(super) fn insert(&mut self, name: &[u8], value: &[u8]) {
        let size = name.len() + value.len() + OVERHEAD;
        if size > self.max {
            self.evict(0);
            return;
        }
        self.evict(self.max - size);
        self.compact();
        let at = self.base + self.bytes.len() as u64;
        self.bytes.extend_from_slice(name);
        self.bytes.extend_from_slice(value);
        self.entries.push_front(DynamicTableEntry { at, name: name.len() as u32, value: value.len() as u32 });
        self.size += size;
    }

    fn evict(&mut self, allowed: usize) {
        while self.size > allowed
            && let Some(entry) = self.entries.pop_back()
        {
            self.size -= entry.name as usize + entry.value as usize + OVERHEAD;
        }
    }

    /// Removes the bytes of evicted entries from the buffer once they are more than half of it. On
    /// average each byte is moved at most once.
    fn compact(&mut self) {
        let gone = self.entries.back().map_or(self.bytes.len(), |oldest| (oldest.at - self.base) as usize);
        if gone > self.bytes.len() / 2 {
            self.bytes.drain(..gone);
            self.base += gone as u64;
        }
    }

    fn parts(&self, entry: &DynamicTableEntry) -> (&[u8], &[u8]) {
        let start = (entry.at - self.base) as usize;
        let field = &self.bytes[start..start + entry.name as usize + entry.value as usize];
        field.split_at(entry.name as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;

    #[test]
    fn oldest_table_entries_are_evicted() {
        let mut table = DynamicTable::new(3 * (OVERHEAD + 4));
        for number in 0..1_000 {
            table.insert(b"n", format!("{number:03}").as_bytes());
            assert_eq!(table.get(0), Some((&b"n"[..], format!("{number:03}").as_bytes())));
            assert!(table.size() <= table.max() && table.bytes.len() <= 2 * 3 * 4 + 4);
        }
        assert_eq!(table.get(2), Some((&b"n"[..], &b"997"[..])));
        assert_eq!(table.get(3), None);
        table.resize(OVERHEAD + 4);
        assert_eq!(table.get(0), Some((&b"n"[..], &b"999"[..])));
        assert_eq!(table.get(1), None);
        table.insert(b"too", b"large");
        assert_eq!((table.get(0), table.size()), (None, 0));
        table.insert(b"", b"");
        assert_eq!(table.get(0), Some((&b""[..], &b""[..])));
        table.resize(0);
        table.insert(b"", b"");
        assert_eq!((table.get(0), table.size()), (None, 0));
    }
}
