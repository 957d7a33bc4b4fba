//! The dynamic table of HPACK and QPACK (RFC 7541 §2.3.2, §4; RFC 9204 §3.2).

use alloc::collections::VecDeque;
use alloc::vec::Vec;

/// The number of bytes that an entry counts in addition to the length of its name and value (RFC
/// 7541 §4.1).
pub(crate) const ENTRY_OVERHEAD: usize = 32;

#[derive(Copy, Clone, Debug)]
struct DynamicTableEntry {
    /// The position of the entry's name, counted from the first byte ever inserted into the table.
    /// The entry's value follows the name.
    at: u64,
    name: u32,
    value: u32,
}

impl DynamicTableEntry {
    fn size(&self) -> usize {
        self.name as usize + self.value as usize + ENTRY_OVERHEAD
    }
}

/// The dynamic table of an encoder or decoder. The names and values of all entries are in one
/// buffer, in the order of insertion.
#[derive(Debug)]
pub(crate) struct DynamicTable {
    bytes: Vec<u8>,
    /// The position of the first byte of the buffer `bytes`, counted from the first byte ever
    /// inserted into the table.
    base: u64,
    entries: VecDeque<DynamicTableEntry>,
    size: usize,
    max: usize,
    /// The number of entries that were ever inserted. Entries that were too large to keep do not
    /// count.
    inserted: u64,
}

impl DynamicTable {
    pub(crate) fn new(max: usize) -> DynamicTable {
        DynamicTable { bytes: Vec::new(), base: 0, entries: VecDeque::new(), size: 0, max, inserted: 0 }
    }

    pub(crate) fn max(&self) -> usize {
        self.max
    }

    #[cfg(test)]
    pub(crate) fn size(&self) -> usize {
        self.size
    }

    pub(crate) fn resize(&mut self, max: usize) {
        self.max = max;
        self.evict_down_to(max);
    }

    /// Returns the name and value of the table entry with this index. `None` if no entry has it.
    /// The newest entry has index 0.
    pub(crate) fn get(&self, index: usize) -> Option<(&[u8], &[u8])> {
        self.entries.get(index).map(|entry| self.name_and_value(entry))
    }

    /// Returns the number of entries that were ever inserted, evicted ones included. Entries that
    /// were too large to keep do not count.
    pub(crate) fn insert_count(&self) -> u64 {
        self.inserted
    }

    /// Returns the name and value of the entry with this absolute index: the number of entries that
    /// were inserted before it (RFC 9204 §3.2.4). `None` if the table does not contain the entry.
    pub(crate) fn get_absolute(&self, index: u64) -> Option<(&[u8], &[u8])> {
        let place = self.inserted.checked_sub(1)?.checked_sub(index)?;
        self.get(usize::try_from(place).ok()?)
    }

    /// Returns the absolute index of the oldest entry that would remain in the table after the
    /// insertion of an entry of `size` bytes. `size` must not exceed the size of the table in
    /// bytes.
    pub(crate) fn first_index_after_insert(&self, size: usize) -> u64 {
        let mut index = self.inserted - self.entries.len() as u64;
        let mut kept = self.size;
        for entry in self.entries.iter().rev() {
            if kept + size <= self.max {
                break;
            }
            kept -= entry.size();
            index += 1;
        }
        index
    }

    /// Iterates over the names and values of all entries, newest first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.entries.iter().map(|entry| self.name_and_value(entry))
    }

    /// Inserts an entry. An entry that is larger than the whole table empties the table and is not
    /// kept (RFC 7541 §4.4).
    pub(crate) fn insert(&mut self, name: &[u8], value: &[u8]) {
        let size = name.len() + value.len() + ENTRY_OVERHEAD;
        if size > self.max {
            self.evict_down_to(0);
            return;
        }
        self.evict_down_to(self.max - size);
        self.compact();
        let at = self.base + self.bytes.len() as u64;
        self.bytes.extend_from_slice(name);
        self.bytes.extend_from_slice(value);
        self.entries.push_front(DynamicTableEntry { at, name: name.len() as u32, value: value.len() as u32 });
        self.size += size;
        self.inserted += 1;
    }

    fn evict_down_to(&mut self, allowed: usize) {
        while self.size > allowed
            && let Some(entry) = self.entries.pop_back()
        {
            self.size -= entry.size();
        }
    }

    /// Removes the bytes of evicted entries from the buffer once these bytes fill more than half of
    /// the buffer. Because of this threshold, each byte is moved at most once on average.
    fn compact(&mut self) {
        let gone = self.entries.back().map_or(self.bytes.len(), |oldest| (oldest.at - self.base) as usize);
        if gone > self.bytes.len() / 2 {
            self.bytes.drain(..gone);
            self.base += gone as u64;
        }
    }

    fn name_and_value(&self, entry: &DynamicTableEntry) -> (&[u8], &[u8]) {
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
        let mut table = DynamicTable::new(3 * (ENTRY_OVERHEAD + 4));
        for number in 0..1_000 {
            table.insert(b"n", format!("{number:03}").as_bytes());
            assert_eq!(table.get(0), Some((&b"n"[..], format!("{number:03}").as_bytes())));
            assert!(table.size() <= table.max() && table.bytes.len() <= 2 * 3 * 4 + 4);
        }
        assert_eq!(table.get(2), Some((&b"n"[..], &b"997"[..])));
        assert_eq!(table.get(3), None);
        table.resize(ENTRY_OVERHEAD + 4);
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

    #[test]
    fn first_index_after_insert_matches_the_insertion() {
        for length in 0..=4 * ENTRY_OVERHEAD {
            let mut table = DynamicTable::new(5 * ENTRY_OVERHEAD);
            for length in [1, 20, 3, 30, 2] {
                table.insert(&[b'n'; 40][..length], b"");
            }
            let predicted = table.first_index_after_insert(length + ENTRY_OVERHEAD);
            table.insert(&[b'n'; 4 * ENTRY_OVERHEAD][..length], b"");
            assert_eq!(predicted, table.inserted - table.entries.len() as u64, "{length}");
        }
    }

    #[test]
    fn bytes_of_evicted_entries_are_removed() {
        let mut table = DynamicTable::new(ENTRY_OVERHEAD + 10);
        for _ in 0..100 {
            table.insert(b"name", b"value");
            assert!(table.bytes.len() <= 18);
        }
    }
}
