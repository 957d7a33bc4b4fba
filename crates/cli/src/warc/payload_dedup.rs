//! The payloads in the archive: an equal payload is not stored again, but becomes a revisit record.
//!
//! The memory is limited. When it is full, the oldest payloads are forgotten. A copy of a forgotten
//! payload is then stored again.
//!
//! ```
//! use haul_cli::warc::digest::Sha1Digest;
//! use haul_cli::warc::payload_dedup::RememberedPayloads;
//! use haul_cli::warc::record_head::{EarlierRecord, RecordId};
//!
//! let record = EarlierRecord { id: RecordId([1; 16]), url: "http://h/".into(), date: std::time::UNIX_EPOCH };
//! let mut memory = RememberedPayloads::new(1 << 20);
//! let digest = Sha1Digest::of(&[b"payload"]);
//! memory.insert(digest, record.clone());
//! assert_eq!(memory.get(&digest), Some(&record));
//! ```

use std::collections::{HashMap, VecDeque};

use super::digest::Sha1Digest;
use super::record_head::EarlierRecord;

/// The number of bytes that a remembered payload takes, without its URL: in the map, in the queue,
/// and as overhead of the URL's allocation.
const ENTRY_SIZE: usize = 160;

/// The records of the payloads in the archive, by the digest of the payload. The number of records
/// is limited by their memory.
#[derive(Debug)]
pub struct RememberedPayloads {
    records: HashMap<Sha1Digest, EarlierRecord>,
    oldest: VecDeque<Sha1Digest>,
    bytes: usize,
    limit: usize,
}

impl RememberedPayloads {
    /// Creates an empty set of payloads that takes at most `limit` bytes of memory.
    pub fn new(limit: usize) -> RememberedPayloads {
        RememberedPayloads { records: HashMap::new(), oldest: VecDeque::new(), bytes: 0, limit }
    }

    /// Returns the number of records that fit into `limit` bytes, if their URLs are short.
    pub fn max_entries(limit: usize) -> usize {
        limit / ENTRY_SIZE
    }

    /// Returns the record with this payload; `None` if the payload is unknown.
    pub fn get(&self, digest: &Sha1Digest) -> Option<&EarlierRecord> {
        self.records.get(digest)
    }

    /// Adds the record of a payload. If the payload already has a record, keeps the earlier record.
    pub fn insert(&mut self, digest: Sha1Digest, record: EarlierRecord) {
        if self.records.contains_key(&digest) {
            return;
        }
        self.bytes += ENTRY_SIZE + record.url.len();
        self.records.insert(digest, record);
        self.oldest.push_back(digest);
        while self.bytes > self.limit
            && let Some(digest) = self.oldest.pop_front()
            && let Some(record) = self.records.remove(&digest)
        {
            self.bytes -= ENTRY_SIZE + record.url.len();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

    use super::*;
    use crate::warc::record_head::RecordId;

    fn record(id: u8) -> EarlierRecord {
        EarlierRecord { id: RecordId([id; 16]), url: "http://example.com/".into(), date: UNIX_EPOCH }
    }

    #[test]
    fn first_archived_record_of_a_payload_is_kept() {
        let mut memory = RememberedPayloads::new(1 << 20);
        let digest = Sha1Digest::of(&[b"a"]);
        memory.insert(digest, record(1));
        memory.insert(digest, record(2));
        assert_eq!(memory.get(&digest), Some(&record(1)));
    }

    #[test]
    fn full_payload_memory_forgets_the_oldest() {
        let mut memory = RememberedPayloads::new(100 * ENTRY_SIZE);
        let digest = |n: u32| Sha1Digest::of(&[&n.to_le_bytes()]);
        for n in 0..1000 {
            memory.insert(digest(n), record(0));
            assert!(memory.bytes <= memory.limit && memory.records.len() == memory.oldest.len());
        }
        assert!(memory.get(&digest(999)).is_some() && memory.get(&digest(0)).is_none());
    }
}
