//! The copy of a URL list that comes from a pipe. A later run cannot read the pipe again. Therefore
//! one thread copies the list into the job as fast as it arrives, and the URLs are read from there.
//!
//! ```text
//!  pipe ─▶ copier ─▶ channel ─▶ table list_text ─▶ reader ─▶ URLs
//! ```
//!
//! A URL is only fetched after its line is committed. If a run was killed before the pipe ended,
//! the next run must be given the same list again: the copier compares it with the lines in the
//! job. A list that is given again although its copy is complete is compared, too. An empty list
//! then counts as no list.

use std::io::{self, Read};
use std::path::PathBuf;
use std::sync::Arc;

use haul::{Error, ErrorKind, Result};
use rusqlite::{Connection, OptionalExtension, params};

use super::event_queue::EventQueue;
use super::job_error_from_sqlite_or_io::{DatabaseResult, database_error};
use super::list_credentials::has_credentials;
use super::schema::NUMBER_BITS;
use super::writer::{CommittedListChunks, JobEvent, JobShared};
use crate::record_input::RecordInputFormat;
use crate::url_sources::without_byte_order_mark;

/// The size, in bytes, of the chunks in which a list of URLs from a pipe is stored in the job's
/// file.
const CHUNK: usize = 64 << 10;

/// Stores a chunk of a list in the job. `is_last` marks the list as complete.
pub(super) fn write(
    connection: &Connection,
    source: i64,
    chunk: u64,
    text: &[u8],
    is_last: bool,
) -> DatabaseResult<()> {
    if !text.is_empty() {
        let insert = "INSERT OR REPLACE INTO list_text (id, text) VALUES (?1, ?2)";
        connection.prepare_cached(insert)?.execute(params![chunk_id(source, chunk), text])?;
    }
    let update = "UPDATE list SET size = size + ?2, is_complete = ?3 WHERE source = ?1";
    connection.prepare_cached(update)?.execute(params![source, text.len() as i64, is_last])?;
    Ok(())
}

fn chunk_id(source: i64, chunk: u64) -> i64 {
    (source << NUMBER_BITS) | chunk as i64
}

/// Returns a chunk of a list; `None` if the job does not have it.
pub(super) fn read_chunk(connection: &Connection, source: i64, chunk: u64) -> DatabaseResult<Option<Vec<u8>>> {
    let mut select = connection.prepare_cached("SELECT text FROM list_text WHERE id = ?1")?;
    select.query_row(params![chunk_id(source, chunk)], |row| row.get(0)).optional()
}

/// Returns true if the job has the list to its end. Returns `None` for an unknown list.
pub(super) fn is_complete(connection: &Connection, source: i64) -> DatabaseResult<Option<bool>> {
    let select = "SELECT is_complete FROM list WHERE source = ?1";
    connection.query_row(select, params![source], |row| row.get(0)).optional()
}

/// Returns the number of chunks of a list that earlier runs have copied into the job. The result
/// also says whether these chunks are the complete list. Adds the list to the job if it is new.
pub(super) fn begin_copy(connection: &Connection, source: i64, name: &str) -> DatabaseResult<CommittedListChunks> {
    let note = "INSERT OR IGNORE INTO list (source, name, is_copied, is_complete, size) VALUES (?1, ?2, 1, 0, 0)";
    connection.execute(note, params![source, name])?;
    let is_complete = is_complete(connection, source)?.unwrap_or(false);
    let count = "SELECT count(*) FROM list_text WHERE id BETWEEN ?1 AND ?2";
    let ends = params![chunk_id(source, 0), chunk_id(source + 1, 0) - 1];
    let chunks = connection.query_row(count, ends, |row| row.get::<_, i64>(0))?;
    Ok(CommittedListChunks { chunks: chunks as u64, is_complete })
}

/// Copies a list of URLs from a pipe into the job, so that later runs can read it again. Runs in a
/// separate thread.
pub(super) struct ListCopier {
    pub(super) input: Box<dyn Read + Send>,
    pub(super) name: String,
    pub(super) source: i64,
    /// The format of the lines; `None` if each line is a URL.
    pub(super) format: Option<RecordInputFormat>,
    pub(super) copied: CommittedListChunks,
    pub(super) connection: Connection,
    pub(super) path: PathBuf,
    pub(super) shared: Arc<JobShared>,
    pub(super) events: Arc<EventQueue>,
}

impl ListCopier {
    /// Copies the list to its end. An error stops the run.
    pub(super) fn run(mut self) {
        let ended = self.compare().and_then(|line| self.copy(line));
        let has_failed = ended.is_err();
        if let Err(error) = ended {
            self.shared.failure.set(error);
        }
        if self.copied.is_complete {
            // The job has the whole list. After an error, only compared lines are given out.
            let list = if has_failed { CommittedListChunks::default() } else { self.copied };
            self.shared.lists.set(self.source, CommittedListChunks { is_complete: true, ..list });
        } else if has_failed {
            let _ = self.send(Vec::new(), self.copied.chunks, true);
        }
    }

    /// Reads the beginning of the URL list, and compares it with the copy that earlier runs of the
    /// job have stored. Fails if a line has changed. Returns the number of the first line that is
    /// not copied yet.
    fn compare(&mut self) -> Result<usize> {
        let mut line = 1;
        let mut is_given = false;
        for chunk in 0..self.copied.chunks {
            let known = read_chunk(&self.connection, self.source, chunk);
            let known = known.map_err(|error| database_error(&self.path, error))?.unwrap_or_default();
            let mut given = vec![0; known.len()];
            let read = read_full(&mut self.input, &mut given).map_err(|error| self.read_error(error))?;
            is_given |= read > 0;
            if self.copied.is_complete && !is_given {
                break;
            }
            if given[..read] != known[..] {
                let same = given[..read].iter().zip(&known).take_while(|(a, b)| a == b).count();
                line += known[..same].iter().filter(|&&byte| byte == b'\n').count();
                return Err(self.difference_error(line, read < known.len() && same == read));
            }
            line += known.iter().filter(|&&byte| byte == b'\n').count();
            self.shared.lists.set(self.source, CommittedListChunks { chunks: chunk + 1, is_complete: false });
        }
        Ok(line)
    }

    fn difference_error(&self, line: usize, is_short: bool) -> Error {
        let job = self.path.display();
        let part = if self.copied.is_complete { "" } else { " in part" };
        let what = match is_short {
            true => format!("ends at line {line}, before the end of what the job has copied"),
            false => format!("differs in line {line} from the one that the job has copied{part}"),
        };
        Error::new(
            ErrorKind::Read,
            format!("{job}: the list from {} {what}; give it the same list again, or begin a new job", self.name),
        )
    }

    fn copy(&mut self, mut line: usize) -> Result<()> {
        let mut text = Vec::with_capacity(CHUNK);
        let mut buffer = vec![0; CHUNK];
        let mut chunk = self.copied.chunks;
        loop {
            let read = match self.input.read(&mut buffer) {
                Ok(read) => read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(self.read_error(error)),
            };
            text.extend_from_slice(&buffer[..read]);
            let is_last = read == 0;
            if self.copied.is_complete {
                return if is_last { Ok(()) } else { Err(self.difference_error(line, false)) };
            }
            // A part ends with a line, unless the line is longer than a part.
            let whole = match text.iter().rposition(|&byte| byte == b'\n') {
                _ if is_last => text.len(),
                Some(at) => at + 1,
                None if text.len() >= CHUNK => text.len(),
                None => continue,
            };
            let rest = text.split_off(whole);
            self.check_lines(&text, &mut line)?;
            let is_sent = self.send(std::mem::replace(&mut text, rest), chunk, is_last);
            chunk += 1;
            if is_last || !is_sent {
                return Ok(());
            }
        }
    }

    /// Refuses URLs with credentials, which must not be stored. `line` is the line number of the
    /// first line in `text`. The function advances `line` to the line after `text`.
    fn check_lines(&self, text: &[u8], line: &mut usize) -> Result<()> {
        for given in text.split_inclusive(|&byte| byte == b'\n') {
            if has_credentials(without_byte_order_mark(given, *line as u64), self.format) {
                let text = format!(
                    "{}: line {line} of the list from {} has credentials in its URL, which a job does not store; give \
                     them by -u or --netrc, or name the list as a file",
                    self.path.display(),
                    self.name
                );
                return Err(Error::new(ErrorKind::Setup, text));
            }
            *line += usize::from(given.ends_with(b"\n"));
        }
        Ok(())
    }

    fn send(&self, text: Vec<u8>, chunk: u64, is_last: bool) -> bool {
        self.events.send(JobEvent::ListText { source: self.source, chunk, text, is_last })
    }

    fn read_error(&self, error: io::Error) -> Error {
        Error::with_source(ErrorKind::Read, format!("failed to read the list {}", self.name), error)
    }
}

fn read_full(input: &mut dyn Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut read = 0;
    while read < buffer.len() {
        match input.read(&mut buffer[read..]) {
            Ok(0) => break,
            Ok(count) => read += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(read)
}

/// A reader of a list of URLs that came from a pipe and that [`ListCopier`] copies into the job's
/// file. A read waits until the writer thread has committed the next chunk of the list, unless the
/// reader is for the chunks in the job only.
pub(super) struct CopiedListReader {
    connection: Connection,
    source: i64,
    /// The state of the copy, to wait for further chunks; `None` to read only the chunks that are in
    /// the job.
    shared: Option<Arc<JobShared>>,
    /// The number of the next chunk.
    chunk: u64,
    text: io::Cursor<Vec<u8>>,
}

impl CopiedListReader {
    pub(super) fn new(connection: Connection, source: i64, shared: Option<Arc<JobShared>>) -> Self {
        Self { connection, source, shared, chunk: 0, text: io::Cursor::default() }
    }
}

impl Read for CopiedListReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let read = self.text.read(buffer)?;
            if read > 0 || buffer.is_empty() {
                return Ok(read);
            }
            if self.shared.as_ref().is_some_and(|shared| !shared.lists.wait_for(self.source, self.chunk)) {
                return Ok(0);
            }
            let text = read_chunk(&self.connection, self.source, self.chunk).map_err(io::Error::other)?;
            if text.is_none() && self.shared.is_none() {
                return Ok(0);
            }
            self.text = io::Cursor::new(text.unwrap_or_default());
            self.chunk += 1;
        }
    }
}
