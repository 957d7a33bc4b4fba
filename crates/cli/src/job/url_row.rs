//! The stored row of a finished URL, and how it is written to the job's file.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use haul::fleet::{BodyDestination, FleetJob};
use haul::system::file_metadata_and_flags::NULL_DEVICE;
use haul::transfer::TransferOutcome;
use haul::{Error, ErrorKind};
use haul_policy::range::validator::Validator;
use haul_policy::secret_fields::{drop_userinfo, without_userinfo};
use rusqlite::{Statement, params};

use super::job_error_from_sqlite_or_io::DatabaseResult;
use super::schema::NUMBER_BITS;
use crate::system::os_text::OsStrExt;

/// The maximum length, in bytes, of a `Last-Modified` value that is stored.
const MAX_DATE: usize = 64;

/// The maximum number of characters of an error message that are stored.
const MAX_ERROR_TEXT: usize = 500;

/// The stored state of a URL in a job. A URL without a row has not been fetched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum UrlState {
    /// The URL was fetched successfully.
    Done,
    /// The URL failed, and is fetched again only after `haul job retry`.
    Failed,
    /// The URL failed because of this computer, such as a full disk, or `haul job retry` has reset
    /// it. The next run fetches the URL again.
    Again,
    /// `--skip-existing` skipped the URL.
    Skipped,
}

impl UrlState {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            UrlState::Done => "done",
            UrlState::Failed => "failed",
            UrlState::Again => "again",
            UrlState::Skipped => "skipped",
        }
    }

    /// Returns the state of a URL whose transfer ended with this result.
    fn from_result(result: &Result<(), Error>) -> Self {
        match result {
            Ok(()) => UrlState::Done,
            Err(error) => match error.kind() {
                // Without a system call that failed, the next run would only repeat the error: for
                // example, another URL has the name of the file.
                ErrorKind::Write | ErrorKind::Read if error.io_source().is_none() => UrlState::Failed,
                ErrorKind::Write | ErrorKind::Read | ErrorKind::Interrupted | ErrorKind::Panicked => UrlState::Again,
                _ => UrlState::Failed,
            },
        }
    }
}

/// The result of requesting a URL again in a run with `--refresh`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RefreshResult {
    /// The server has confirmed that the content has not changed (304).
    Fresh,
    /// The content was fetched. The stored word is `new` if the URL was fetched for the first time,
    /// and `changed` if it had been fetched before.
    New,
    /// The URL no longer exists (404 or 410).
    Vanished,
}

impl RefreshResult {
    fn from_status(status: u16, is_failed: bool) -> Option<Self> {
        match (status, is_failed) {
            (304, false) => Some(RefreshResult::Fresh),
            (404 | 410, true) => Some(RefreshResult::Vanished),
            (_, false) => Some(RefreshResult::New),
            (_, true) => None,
        }
    }

    fn as_str(self) -> &'static str {
        match self {
            RefreshResult::Fresh => "fresh",
            RefreshResult::New => "new",
            RefreshResult::Vanished => "vanished",
        }
    }
}

/// The facts about a finished URL that the job stores.
#[derive(Debug)]
pub(super) struct UrlRow {
    pub(super) stage: usize,
    pub(super) number: u64,
    pub(super) state: UrlState,
    /// The URL without user and password.
    url: String,
    status: Option<u16>,
    exit_code: u8,
    error: Option<String>,
    attempts: u32,
    redirects: u32,
    size: Option<u64>,
    etag: Option<String>,
    last_modified: Option<String>,
    sha256: Option<String>,
    file: Option<PathBuf>,
    /// The result of a refresh; `None` in other runs.
    change: Option<RefreshResult>,
    ended: u64,
    times: Option<TransferMilestoneTimes>,
    /// True if the end of the run interrupted the transfer. `--refresh` then still has to request
    /// the URL.
    is_interrupted: bool,
    /// The ids of the transfer's records in the WARC archive, which holds them back until the row
    /// is committed.
    pub(super) records: Vec<u64>,
}

/// The times from the start of a transfer until: name resolved, connected, TLS secured, first byte,
/// end.
#[derive(Debug)]
struct TransferMilestoneTimes {
    resolved: Duration,
    connected: Duration,
    secured: Duration,
    first_byte: Duration,
    total: Duration,
}

impl UrlRow {
    /// Creates the row of a finished transfer. `sha256` is the checksum of the transfer's file, if
    /// it is known. `refreshes` is true in a run with `--refresh`.
    pub(super) fn new(job: &FleetJob, outcome: &TransferOutcome, sha256: Option<&str>, refreshes: bool) -> Self {
        let facts = &*outcome.facts;
        let error = outcome.result.as_ref().err();
        let field = |name: &str| {
            let head = outcome.head.as_ref().filter(|_| error.is_none())?;
            let value = head.get_all(name).last()?;
            std::str::from_utf8(value).ok().map(str::to_owned)
        };
        let file = match &job.destination {
            BodyDestination::File { path, .. } if path != Path::new(NULL_DEVICE) && error.is_none() => Some(path),
            _ => None,
        };
        Self {
            stage: job.stage,
            number: job.number,
            state: UrlState::from_result(&outcome.result),
            url: match error {
                Some(error) if error.kind() == ErrorKind::Url => without_userinfo(&job.url).into_owned(),
                _ => drop_userinfo(&job.url).into_owned(),
            },
            status: (facts.status > 0).then_some(facts.status),
            exit_code: error.map_or(0, Error::exit_code),
            error: error.map(|error| shortened(&error.cause())),
            attempts: facts.retries + 1,
            redirects: facts.redirects,
            size: error.is_none().then(|| facts.decoded_bytes.unwrap_or(facts.body_bytes)),
            etag: field("etag").filter(|tag| is_entity_tag(tag)),
            last_modified: field("last-modified").filter(|date| date.len() <= MAX_DATE),
            sha256: sha256.map(str::to_owned),
            file: file.cloned(),
            change: RefreshResult::from_status(facts.status, error.is_some()).filter(|_| refreshes),
            ended: now_ms(),
            times: (facts.requests > 0).then_some(TransferMilestoneTimes {
                resolved: facts.resolved,
                connected: facts.connected,
                secured: facts.secured,
                first_byte: facts.first_byte,
                total: facts.total,
            }),
            is_interrupted: error.is_some_and(Error::is_interrupted),
            records: facts.held_records.clone(),
        }
    }

    /// Adds the facts of a later page of the same paginated listing.
    pub(super) fn add_page(&mut self, page: UrlRow) {
        self.attempts += page.attempts;
        self.size = Some(self.size.unwrap_or(0) + page.size.unwrap_or(0));
        self.ended = page.ended;
        self.records.extend(page.records);
        if page.exit_code != 0 {
            let UrlRow { state, status, exit_code, error, .. } = page;
            (self.state, self.status, self.exit_code, self.error) = (state, status, exit_code, error);
        }
    }

    /// Creates the row of a URL that `--skip-existing` skipped.
    pub(super) fn skipped(stage: usize, number: u64) -> Self {
        Self {
            stage,
            number,
            state: UrlState::Skipped,
            url: String::new(),
            status: None,
            exit_code: 0,
            error: None,
            attempts: 0,
            redirects: 0,
            size: None,
            etag: None,
            last_modified: None,
            sha256: None,
            file: None,
            change: None,
            ended: now_ms(),
            times: None,
            is_interrupted: false,
            records: Vec::new(),
        }
    }

    /// Returns true if the stored file and validators of an earlier transfer remain valid, because
    /// the content has not changed or the transfer failed.
    fn keeps_earlier_file(&self) -> bool {
        self.status == Some(304) || self.exit_code != 0
    }

    /// Returns the key of the row: the index of the stage, and the number of the transfer in this
    /// stage.
    pub(super) fn key(&self) -> (usize, u64) {
        (self.stage, self.number)
    }

    /// Returns the output file of the URL; `None` if its body was not written to a separate file.
    pub(super) fn file(&self) -> Option<&Path> {
        self.file.as_deref()
    }

    /// Writes the row to the job's file with the statement [`UPSERT`]. `commit` is the sequence
    /// number of the commit, and `round` the number of refreshes (`--refresh`) that the job's runs
    /// have begun; the row contains both. If an earlier run has stored a row for the URL, the new
    /// row replaces it, and its number of attempts is the sum of both.
    pub(super) fn write(&self, statement: &mut Statement<'_>, commit: u64, round: u64) -> DatabaseResult<()> {
        let micros = |time: fn(&TransferMilestoneTimes) -> Duration| {
            let time = time(self.times.as_ref()?).as_micros();
            i64::try_from(time).ok().filter(|&time| time > 0)
        };
        statement.execute(params![
            row_id(self.stage, self.number),
            self.state.as_str(),
            self.url,
            self.status,
            self.exit_code,
            self.error,
            self.attempts,
            self.redirects,
            self.size.map(|size| size as i64),
            self.etag,
            self.last_modified,
            self.sha256,
            self.file.as_ref().map(|file| file.as_os_str().as_bytes()),
            self.ended as i64,
            micros(|times| times.resolved),
            micros(|times| times.connected),
            micros(|times| times.secured),
            micros(|times| times.first_byte),
            micros(|times| times.total),
            commit as i64,
            if self.is_interrupted { 0 } else { round as i64 },
            self.change.map(RefreshResult::as_str),
            self.keeps_earlier_file(),
        ])?;
        Ok(())
    }
}

/// The SQL statement that writes the row of a finished URL. A file name need not be UTF-8: SQLite
/// stores its bytes unchanged.
pub(super) const UPSERT: &str = "INSERT INTO url (id, state, url, status, exit_code, error, attempts, redirects, size, etag, \
     last_modified, sha256, file, ended, resolved_us, connected_us, secured_us, first_byte_us, total_us, \
     commit_number, refresh_round, change) \
     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, CAST(?13 AS TEXT), ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22) \
     ON CONFLICT (id) DO UPDATE SET state = excluded.state, url = excluded.url, status = excluded.status, \
     exit_code = excluded.exit_code, error = excluded.error, attempts = attempts + excluded.attempts, \
     redirects = excluded.redirects, size = iif(?23, size, excluded.size), \
     etag = iif(?23, coalesce(excluded.etag, etag), excluded.etag), \
     last_modified = iif(?23, coalesce(excluded.last_modified, last_modified), excluded.last_modified), \
     sha256 = iif(?23, sha256, excluded.sha256), file = iif(?23, file, excluded.file), ended = excluded.ended, \
     resolved_us = excluded.resolved_us, connected_us = excluded.connected_us, secured_us = excluded.secured_us, \
     first_byte_us = excluded.first_byte_us, total_us = excluded.total_us, commit_number = excluded.commit_number, \
     refresh_round = excluded.refresh_round, \
     change = CASE excluded.change WHEN 'new' THEN iif(state = 'queued', 'new', 'changed') \
     WHEN 'vanished' THEN iif(size IS NULL, NULL, 'vanished') ELSE excluded.change END";

/// Returns true if a text is a strong or weak entity tag. In a later conditional request, any other
/// text could cause an error or match everything.
fn is_entity_tag(text: &str) -> bool {
    let opaque = text.strip_prefix("W/").unwrap_or(text);
    opaque.starts_with('"') && Validator::from_bytes(opaque.as_bytes()).is_some()
}

/// Shortens an error message, which may contain a long text from the server, to [`MAX_ERROR_TEXT`]
/// characters and `…`.
fn shortened(message: &str) -> String {
    match message.char_indices().nth(MAX_ERROR_TEXT) {
        Some((end, _)) => format!("{}…", &message[..end]),
        None => message.to_owned(),
    }
}

/// Returns the id of a URL's row in the job's database. The id combines the index of the stage
/// (`--then` begins a further stage) that requests the URL with the URL's number in that stage.
pub(super) fn row_id(stage: usize, number: u64) -> i64 {
    ((stage as i64) << NUMBER_BITS) | number as i64
}

/// Returns the current time in milliseconds since 1970-01-01 00:00 UTC.
pub(super) fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use haul_policy::range::validator::MAX_ETAG;

    use super::*;

    #[test]
    fn only_quoted_entity_tags_are_kept() {
        for tag in ["\"\"", "\"a\"", "W/\"a-1\"", "\"ä\""] {
            assert!(is_entity_tag(tag), "{tag}");
        }
        let long = format!("\"{}\"", "e".repeat(MAX_ETAG));
        for other in ["", "*", "a", "\"", "\"a", "\"a\", \"b\"", "w/\"a\"", "\"a b\"", "\"a\tb\"", &long] {
            assert!(!is_entity_tag(other), "{other}");
        }
    }

    #[test]
    fn long_error_messages_are_shortened() {
        assert_eq!(shortened("ä"), "ä");
        assert_eq!(shortened(&"ä".repeat(MAX_ERROR_TEXT)).chars().count(), MAX_ERROR_TEXT);
        assert_eq!(shortened(&"ä".repeat(MAX_ERROR_TEXT + 1)).chars().count(), MAX_ERROR_TEXT + 1);
    }
}
