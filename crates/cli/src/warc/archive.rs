//! The archive of a run: the recorder that the engine calls, and what its exchanges share.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use haul::exchange_record::{ExchangeRecord, ExchangeRecorder, ExchangeStart};
use haul::{Error, Result};

use super::archive_file::ArchiveFile;
use super::digest::Sha1Digest;
use super::exchange::WarcExchange;
use super::file_name::ArchiveName;
use super::message::{MessageStore, RecordBytes};
use super::payload_memory::PayloadMemory;
use super::record_head::{EarlierRecord, RecordHead, RecordId, RecordType};
use crate::plan::WarcArgs;

/// The text of a warcinfo record.
const WARCINFO: &str = concat!(
    "software: haul/",
    env!("CARGO_PKG_VERSION"),
    "\r\nformat: WARC File Format 1.1\r\n",
    "conformsTo: https://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/\r\n",
    "robots: ignore\r\n",
);

/// An archive that is being written.
#[derive(Debug)]
pub struct WarcArchive(Arc<ArchiveState>);

/// The end of the last whole record of an archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArchivePosition {
    /// The file that is being written.
    pub path: PathBuf,
    /// The length of the file.
    pub offset: u64,
}

impl WarcArchive {
    /// Creates the archive with the file `path`. Messages that wait for the end of their exchange, and the list of
    /// payloads that the archive has, take at most `memory` bytes.
    ///
    /// # Errors
    /// A file of the archive exists already, or cannot be created.
    pub fn create(path: PathBuf, args: &WarcArgs, memory: usize) -> Result<WarcArchive> {
        let name = ArchiveName::new(path, args.max_size.is_some());
        let store = Arc::new(MessageStore::new(name.directory(), name.is_compressed(), memory / 2));
        let file = ArchiveFile::create(name, args.max_size, args.keeps_secrets, |path| warcinfo(&store, path))?;
        let writer = ArchiveWriter { file, payloads: PayloadMemory::new(memory / 2), failure: None };
        let keeps_secrets = args.keeps_secrets;
        Ok(WarcArchive(Arc::new(ArchiveState { store, keeps_secrets, writer: Mutex::new(writer) })))
    }

    /// Returns the end of the last whole record. Exchanges that ended before the call are in the
    /// archive up to there.
    pub fn position(&self) -> ArchivePosition {
        let writer = self.0.writer();
        ArchivePosition { path: writer.file.path(), offset: writer.file.length() }
    }
}

impl ExchangeRecorder for WarcArchive {
    fn begin(&self, start: &ExchangeStart<'_>) -> Box<dyn ExchangeRecord> {
        Box::new(WarcExchange::begin(&self.0, start))
    }

    fn failure(&self) -> Option<Error> {
        self.0.writer().failure.as_ref().map(Error::again)
    }
}

/// The state that all exchanges of an archive share.
pub(super) struct ArchiveState {
    pub(super) store: Arc<MessageStore>,
    /// True to keep credentials in request records.
    pub(super) keeps_secrets: bool,
    writer: Mutex<ArchiveWriter>,
}

/// The part of an archive's state that one thread changes at a time.
struct ArchiveWriter {
    file: ArchiveFile,
    payloads: PayloadMemory,
    /// The error because of which nothing more is written.
    failure: Option<Error>,
}

impl fmt::Debug for ArchiveState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ArchiveState").field("store", &self.store).finish_non_exhaustive()
    }
}

impl ArchiveState {
    fn writer(&self) -> MutexGuard<'_, ArchiveWriter> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the record in the archive that has this payload.
    pub(super) fn earlier(&self, payload: &Sha1Digest) -> Option<EarlierRecord> {
        self.writer().payloads.get(payload).cloned()
    }

    /// Appends the records of an exchange. `payload` is what later records may refer to.
    ///
    /// # Errors
    /// The archive cannot be written, now or before.
    pub(super) fn append(&self, records: RecordBytes, payload: Option<(Sha1Digest, EarlierRecord)>) -> Result<()> {
        let mut writer = self.writer();
        if let Some(failure) = &writer.failure {
            return Err(failure.again());
        }
        if let Err(error) = writer.file.append(records, |path| warcinfo(&self.store, path)) {
            return Err(writer.failure.insert(error).again());
        }
        if let Some((digest, record)) = payload {
            writer.payloads.insert(digest, record);
        }
        Ok(())
    }

    /// Notes that the archive cannot be continued.
    pub(super) fn fail(&self, error: Error) -> Error {
        self.writer().failure.get_or_insert(error).again()
    }
}

/// Makes the first record of the file with this path.
fn warcinfo(store: &MessageStore, path: &Path) -> RecordBytes {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let head = RecordHead::new(RecordType::Warcinfo, random_id(), SystemTime::now())
        .field("WARC-Filename", name)
        .field("WARC-Block-Digest", Sha1Digest::of(&[WARCINFO.as_bytes()]))
        .end(RecordType::Warcinfo.content_type(), WARCINFO.len() as u64);
    store.encode_block(&head, WARCINFO.as_bytes())
}

/// Returns the identifier of a new record.
pub(super) fn random_id() -> RecordId {
    let mut bytes = [0; 16];
    aws_lc_rs::rand::fill(&mut bytes).expect("the system has random numbers, which TLS needs, too");
    RecordId(bytes)
}
