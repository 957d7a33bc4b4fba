//! The records of exchanges that are held back until a job commits their transfers. They are held
//! in memory or, if memory is short, in a shared temporary file.
//!
//! ```text
//!  exchange ends ─▶ add ─▶ number ─▶ the transfer's outcome ─▶ the job's writer ─▶ take ─▶ archive
//! ```
//!
//! A run that is killed loses the held records, and the next run makes their requests again. So the
//! archive never contains the records of a transfer that the job has not committed.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Seek, SeekFrom};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::digest::Sha1Digest;
use super::memory_budget::ReservedMemory;
use super::message_spool::{EncodedRecords, RecordBytesSource, RecordingResources};
use super::record_head::EarlierRecord;

/// The maximum number of exchanges (a request and its response each) whose records have a separate
/// temporary file. It is limited because each file needs a descriptor.
const MAX_FILES: usize = 64;

/// The records of requests and responses whose transfers are not committed to the job's file yet.
pub(super) struct UncommittedRecords {
    store: Arc<RecordingResources>,
    state: Mutex<UncommittedRecordsState>,
}

/// The state of [`UncommittedRecords`], the records that wait until their transfers are committed
/// to the job's file. Its lock protects this state.
#[derive(Default)]
struct UncommittedRecordsState {
    next: u64,
    records: HashMap<u64, UncommittedExchange>,
    /// The number of exchanges whose records have a separate temporary file.
    files: usize,
    /// The temporary file that the records of several exchanges share, and the offset of the end of
    /// its content. `None` if no records share a file.
    shared: Option<(Arc<File>, u64)>,
}

/// The records of a request and its response, which wait until the transfer is committed to the
/// file of the run's job (`--job`).
pub(super) struct UncommittedExchange {
    pub(super) bytes: EncodedRecords,
    /// The digest of the response's payload, and the record that contains the payload. Records of
    /// later responses with the same payload refer to this record instead of repeating the payload.
    /// `None` if they must not refer to it.
    pub(super) payload: Option<(Sha1Digest, EarlierRecord)>,
    has_file: bool,
    _reserved: Option<ReservedMemory>,
}

impl UncommittedRecords {
    pub(super) fn new(store: &Arc<RecordingResources>) -> Self {
        Self { store: Arc::clone(store), state: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, UncommittedRecordsState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stores the records of a request and its response until their transfer is committed to the
    /// job's file. `payload` is the digest of the response's payload, and the record that contains
    /// the payload; `None` if no later record may refer to that record. Returns the id for
    /// [`UncommittedRecords::take_records`].
    ///
    /// # Errors
    /// Neither memory nor disk space is left for the records.
    pub(super) fn add(&self, bytes: EncodedRecords, payload: Option<(Sha1Digest, EarlierRecord)>) -> io::Result<u64> {
        let in_memory = bytes.parts.iter().filter(|part| matches!(part, RecordBytesSource::Memory(_)));
        let in_memory: u64 = in_memory.map(RecordBytesSource::length).sum();
        let has_file = bytes.parts.iter().any(|part| matches!(part, RecordBytesSource::File(..)));
        let mut state = self.lock();
        let may_stay = !has_file || state.files < MAX_FILES;
        let reserved = match may_stay {
            true => self.store.reserve(usize::try_from(in_memory).unwrap_or(usize::MAX)),
            false => None,
        };
        let exchange = match reserved {
            Some(_) => UncommittedExchange { bytes, payload, has_file, _reserved: reserved },
            None => {
                let bytes = state.share(bytes, &self.store)?;
                UncommittedExchange { bytes, payload, has_file: false, _reserved: None }
            }
        };
        state.files += usize::from(exchange.has_file);
        let number = state.next;
        state.next += 1;
        state.records.insert(number, exchange);
        Ok(number)
    }

    /// Removes and returns the records with these ids. The caller writes them to the archive if
    /// their transfers are committed to the job's file, and drops them otherwise.
    pub(super) fn take_records<'a>(&'a self, numbers: &'a [u64]) -> impl Iterator<Item = UncommittedExchange> + 'a {
        numbers.iter().filter_map(|number| {
            let mut state = self.lock();
            let exchange = state.records.remove(number)?;
            state.files -= usize::from(exchange.has_file);
            Some(exchange)
        })
    }
}

impl UncommittedRecordsState {
    /// Moves records to the temporary file that several exchanges share. Returns them as a part of
    /// that file.
    fn share(&mut self, bytes: EncodedRecords, store: &RecordingResources) -> io::Result<EncodedRecords> {
        let (file, from) = match self.shared.take() {
            // Nobody refers to its content any more, so it is used from its beginning.
            Some((file, _)) if Arc::strong_count(&file) == 1 => {
                file.set_len(0)?;
                (file, 0)
            }
            Some(shared) => shared,
            None => (Arc::new(store.temporary_file()?), 0),
        };
        let length = bytes.length();
        (&*file).seek(SeekFrom::Start(from))?;
        bytes.parts.into_iter().try_for_each(|part| part.write_to(&file))?;
        self.shared = Some((Arc::clone(&file), from + length));
        Ok(EncodedRecords { parts: vec![RecordBytesSource::Slice(file, from, length)] })
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Seek};

    use super::*;

    fn held(records: &UncommittedRecords, text: &[u8]) -> u64 {
        let bytes = EncodedRecords { parts: vec![RecordBytesSource::Memory(text.to_vec())] };
        records.add(bytes, None).unwrap()
    }

    fn taken(records: &UncommittedRecords, numbers: &[u64]) -> Vec<u8> {
        let mut file = tempfile::tempfile().unwrap();
        for exchange in records.take_records(numbers) {
            exchange.bytes.parts.into_iter().for_each(|part| part.write_to(&file).unwrap());
        }
        let mut text = Vec::new();
        file.rewind().unwrap();
        file.read_to_end(&mut text).unwrap();
        text
    }

    #[test]
    fn held_records_beyond_memory_limit_share_a_file() {
        let dir = tempfile::tempdir().unwrap();
        let store = Arc::new(RecordingResources::new(dir.path(), false, 100));
        let records = UncommittedRecords::new(&store);
        let texts: Vec<Vec<u8>> = (0..10).map(|number| vec![b'a' + number; 40]).collect();
        for _ in 0..2 {
            let numbers: Vec<u64> = texts.iter().map(|text| held(&records, text)).collect();
            let shared = records.lock().shared.as_ref().map(|(_, end)| *end);
            assert_eq!(shared, Some(8 * 40));
            let (first, rest) = numbers.split_at(4);
            assert_eq!(taken(&records, rest), texts[4..].concat());
            assert_eq!(taken(&records, first), texts[..4].concat());
            assert_eq!(taken(&records, &numbers), b"");
        }
        assert!(records.lock().records.is_empty());
    }

    #[test]
    fn number_of_separate_record_files_is_limited() {
        let dir = tempfile::tempdir().unwrap();
        let store = Arc::new(RecordingResources::new(dir.path(), false, 1 << 20));
        let records = UncommittedRecords::new(&store);
        let numbers: Vec<u64> = (0..2 * MAX_FILES)
            .map(|_| {
                let file = store.temporary_file().unwrap();
                RecordBytesSource::Memory(b"content".to_vec()).write_to(&file).unwrap();
                let bytes = EncodedRecords { parts: vec![RecordBytesSource::File(file, 7)] };
                records.add(bytes, None).unwrap()
            })
            .collect();
        assert_eq!(records.lock().files, MAX_FILES);
        assert_eq!(taken(&records, &numbers), b"content".repeat(2 * MAX_FILES));
        assert_eq!(records.lock().files, 0);
    }
}
