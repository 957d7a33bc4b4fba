//! The archive of a run: the recorder that the engine calls, and the state that its exchanges
//! share.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;
use std::{fmt, io};

use haul::exchange_record::{ExchangeRecordWriter, ExchangeRecorder, ExchangeStart};
use haul::{Error, ErrorKind, Result};

use super::archive_file::{ArchiveFile, check_new};
use super::digest::Sha1Digest;
use super::exchange::WarcExchange;
use super::file_name::ArchiveName;
use super::message_spool::{EncodedRecords, RecordingResources};
use super::payload_dedup::RememberedPayloads;
use super::record_head::{EarlierRecord, RecordHead, RecordId, RecordType};
use super::records_awaiting_job_commit::UncommittedRecords;
use crate::job_types_in_every_build::{ArchivePosition, ArchivedPayload, HeldBackRecordsArchive};
use crate::plan::WarcArgs;

/// The content of each warcinfo record, which describes the program and the format.
const WARCINFO: &str = concat!(
    "software: haul/",
    env!("CARGO_PKG_VERSION"),
    "\r\nformat: WARC File Format 1.1\r\n",
    "conformsTo: https://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/\r\n",
    "robots: ignore\r\n",
);

/// A WARC archive that is being written.
#[derive(Debug)]
pub struct WarcArchive(Arc<ArchiveState>);

impl WarcArchive {
    /// Creates the archive with the file `path`. At most `memory` bytes are used for the messages
    /// of unfinished transfers and for the list of payloads in the archive.
    ///
    /// # Errors
    /// A file of the archive exists already, or cannot be created.
    pub fn create(path: PathBuf, args: &WarcArgs, memory: usize) -> Result<WarcArchive> {
        let name = ArchiveName::new(path, args.max_size.is_some());
        check_new(&name)?;
        Self::open(name, args, memory, None)
    }

    /// Refuses an archive if one of its files already exists.
    ///
    /// # Errors
    /// A file of the archive already exists.
    pub(crate) fn refuse_existing(path: PathBuf, args: &WarcArgs) -> Result<()> {
        check_new(&ArchiveName::new(path, args.max_size.is_some()))
    }

    /// Opens the archive of a job, which ends at `position`, and removes everything after that
    /// position. The archive holds back the records of each transfer until the job commits the
    /// transfer.
    ///
    /// # Errors
    /// The archive ends before `position`, or cannot be opened.
    pub(crate) fn continue_job(
        path: PathBuf,
        args: &WarcArgs,
        memory: usize,
        position: ArchivePosition,
    ) -> Result<Self> {
        let name = ArchiveName::new(path, args.max_size.is_some());
        Self::open(name, args, memory, Some(position))
    }

    fn open(name: ArchiveName, args: &WarcArgs, memory: usize, position: Option<ArchivePosition>) -> Result<Self> {
        let store = Arc::new(RecordingResources::new(name.directory(), name.is_compressed(), memory / 2));
        let begin = |path: &Path| warcinfo(&store, path);
        let file = match position {
            None => ArchiveFile::create(name, args.max_size, args.keeps_secrets, begin),
            Some(position) => ArchiveFile::reopen(name, args.max_size, args.keeps_secrets, position, begin),
        };
        let file = file?;
        let writer = ArchiveWriter { file, payloads: RememberedPayloads::new(memory / 2), failure: None };
        let held = position.map(|_| UncommittedRecords::new(&store));
        let keeps_secrets = args.keeps_secrets;
        Ok(WarcArchive(Arc::new(ArchiveState { store, keeps_secrets, held, writer: Mutex::new(writer) })))
    }

    /// Returns the maximum number of response payloads whose digests an archive with a memory
    /// budget of `memory` bytes keeps. A later response with such a payload is archived as a
    /// reference to the earlier record, without the payload.
    pub(crate) fn max_payloads(memory: usize) -> u64 {
        RememberedPayloads::max_entries(memory / 2) as u64
    }

    /// Adds a payload that an earlier run of the job has archived, so that later records can refer
    /// to it.
    pub(crate) fn remember_payload(&self, payload: ArchivedPayload) {
        let date = SystemTime::UNIX_EPOCH + std::time::Duration::from_micros(payload.date);
        let record = EarlierRecord { id: RecordId(payload.record), url: payload.url, date };
        self.0.writer().payloads.insert(Sha1Digest(payload.digest), record);
    }
}

impl HeldBackRecordsArchive for WarcArchive {
    fn append(&self, records: &[u64]) -> Result<Vec<ArchivedPayload>> {
        let mut payloads = Vec::new();
        for records in self.0.held.iter().flat_map(|held| held.take_records(records)) {
            if let Some((digest, record)) = &records.payload {
                let since = record.date.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
                let date = u64::try_from(since.as_micros()).unwrap_or(u64::MAX);
                let url = record.url.clone();
                payloads.push(ArchivedPayload { digest: digest.0, record: record.id.0, url, date });
            }
            self.0.append(records.bytes, records.payload)?;
        }
        Ok(payloads)
    }

    fn discard(&self, records: &[u64]) {
        self.0.held.iter().for_each(|held| held.take_records(records).for_each(drop));
    }

    fn position(&self) -> ArchivePosition {
        self.0.writer().file.position()
    }

    fn sync(&self) -> io::Result<()> {
        let files = self.0.writer().file.unsynced();
        files.iter().try_for_each(|file| file.sync_data())
    }
}

impl ExchangeRecorder for WarcArchive {
    fn begin(&self, start: &ExchangeStart<'_>) -> Box<dyn ExchangeRecordWriter> {
        Box::new(WarcExchange::begin(&self.0, start))
    }

    fn failure(&self) -> Option<Error> {
        self.0.writer().failure.as_ref().map(Error::duplicate)
    }
}

/// The state of an archive, which the recorders of all requests and responses share.
pub(super) struct ArchiveState {
    pub(super) store: Arc<RecordingResources>,
    /// True to keep credentials in request records.
    pub(super) keeps_secrets: bool,
    /// The records that are held back until a job commits their transfers; `None` without a job.
    held: Option<UncommittedRecords>,
    writer: Mutex<ArchiveWriter>,
}

/// The part of an archive's state that only one thread at a time may use.
struct ArchiveWriter {
    file: ArchiveFile,
    payloads: RememberedPayloads,
    /// The first error of a write, after which the archive writes no more records. `None` if there
    /// was none.
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

    /// Returns the record in the archive that has this payload; `None` if none is remembered.
    pub(super) fn earlier_record(&self, payload: &Sha1Digest) -> Option<EarlierRecord> {
        self.writer().payloads.get(payload).cloned()
    }

    /// Appends the records of a request and its response to the archive. If the run has a job
    /// (`--job`), holds the records back until the job commits their transfer, and returns the id
    /// of the held-back records; otherwise returns `None`.
    ///
    /// `payload` is the digest of the response's payload, and the record that contains this
    /// payload. A later response with an equal payload is archived as a reference to that record.
    /// `payload` is `None` if no record may refer to this response.
    ///
    /// # Errors
    /// The archive cannot be written, or an earlier write failed.
    pub(super) fn add(
        &self,
        records: EncodedRecords,
        payload: Option<(Sha1Digest, EarlierRecord)>,
    ) -> Result<Option<u64>> {
        let Some(held) = &self.held else { return self.append(records, payload).map(|()| None) };
        let number = held.add(records, payload).map_err(|cause| {
            let message = "a temporary file beside the archive cannot be written";
            self.fail(Error::with_source(ErrorKind::Write, message, cause))
        })?;
        Ok(Some(number))
    }

    fn append(&self, records: EncodedRecords, payload: Option<(Sha1Digest, EarlierRecord)>) -> Result<()> {
        let mut writer = self.writer();
        if let Some(failure) = &writer.failure {
            return Err(failure.duplicate());
        }
        if let Err(error) = writer.file.append(records, |path| warcinfo(&self.store, path)) {
            return Err(writer.failure.insert(error).duplicate());
        }
        if let Some((digest, record)) = payload {
            writer.payloads.insert(digest, record);
        }
        Ok(())
    }

    /// Records an error after which the archive cannot be continued. Returns the first error that
    /// was recorded.
    pub(super) fn fail(&self, error: Error) -> Error {
        self.writer().failure.get_or_insert(error).duplicate()
    }
}

/// Returns the warcinfo record, with which the file at this path begins.
fn warcinfo(store: &RecordingResources, path: &Path) -> EncodedRecords {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let head = RecordHead::new(RecordType::Warcinfo, random_id(), SystemTime::now())
        .with_field("WARC-Filename", name)
        .with_field("WARC-Block-Digest", Sha1Digest::of(&[WARCINFO.as_bytes()]))
        .finish(RecordType::Warcinfo.content_type(), WARCINFO.len() as u64);
    store.encode_block(&head, WARCINFO.as_bytes())
}

/// Returns a random identifier for a new record.
pub(super) fn random_id() -> RecordId {
    let mut bytes = [0; 16];
    aws_lc_rs::rand::fill(&mut bytes).expect("the system has random numbers, which TLS needs, too");
    RecordId(bytes)
}
