//! Transfers of `file:` URLs. Only the curl persona accepts them, because scripts for curl use them
//! for local mirrors and test files. The engine speaks only HTTP, so that this module reads the
//! files, but writes to the engine's sinks.
//!
//! ```text
//! path ─┬─▶ head: Content-Length, Accept-ranges, Last-Modified ─▶ sink   -I ends here
//!       ├─▶ bytes (-r, -C), or the names in a directory ────────▶ sink
//!       └◀─ -T
//! ```
//!
//! Not supported: `--limit-rate`, `--max-time`, and several ranges in one request.

use std::fs::{self, File, Metadata};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

use haul::body::upload::BodyUpload;
use haul::buffer_pool::{BufferPool, OfferedBodyBytes};
use haul::sink::{ResponseForSink, Sink};
use haul::system::file_metadata_and_flags::{MetadataExt, OpenOptionsExt};
use haul::transfer::TransferOutcome;
use haul::transfer_facts::TransferFacts;
use haul::{Error, ErrorKind, RequestOptions, ResponseHead, Result, Target};
use haul_policy::file_names_by_system::OsFamily;
use haul_policy::{file_url, urlencode};
use rustix::event::{PollFd, PollFlags, poll};

use crate::date;
use crate::plan::{ContinueAt, StageArgs, UrlGroup};
use crate::run::report::reporter::UrlGroupReporter;
use crate::system::os_text::{OsStrExt, os_str};

/// The size in bytes of the buffer through which a local file is copied.
const BLOCK: usize = 128 << 10;
/// The start of the year 10000 in seconds since 1970. Dates in HTTP header fields end before it.
const YEAR_10000: u64 = 253_402_300_800;

/// The local file that a `file:` URL names.
pub(crate) struct LocalFile {
    path: PathBuf,
    /// An http target with the path of the local file. It is passed to functions that derive a file
    /// name from a target.
    pub(crate) target: Target,
}

/// Returns the local file that a `file:` URL names. Returns `None` if `url` is not a `file:` URL,
/// or if haul does not act as curl.
///
/// # Errors
/// The URL is invalid, or `--proto` does not allow `file`.
pub(crate) fn local_file_of_url(is_curl: bool, stage: &StageArgs, url: &str) -> Result<Option<LocalFile>> {
    let by_default = stage.transfer.redirect.default_file && !url.contains("://");
    let by_default = by_default.then(|| format!("file://{url}"));
    let url = by_default.as_deref().unwrap_or(url);
    if !is_curl || !file_url::is_file_url(url) {
        return Ok(None);
    }
    if !stage.transfer.redirect.protocols.file {
        let message = "file is not among the protocols that --proto allows";
        return Err(Error::new(ErrorKind::UnsupportedScheme, message).with_url(url));
    }
    let bad = |error: &dyn std::fmt::Display| Error::new(ErrorKind::Url, error.to_string()).with_url(url);
    let path = file_url::parse_path(url).map_err(|error| bad(&error))?;
    let local = file_url::local_path(&path, OsFamily::CURRENT).map_err(|error| bad(&error))?;
    let written: String = path
        .split(|&byte| byte == b'/')
        .skip(1)
        .fold(String::new(), |before, part| format!("{before}/{}", urlencode::percent_encode(part)));
    let target = Target::parse_with(&format!("localhost{written}"), haul_policy::Scheme::Http, true);
    let target = target.map_err(|error| bad(&error))?;
    Ok(Some(LocalFile { path: PathBuf::from(os_str(local).into_owned()), target }))
}

impl LocalFile {
    /// Transfers the local file of a `file:` URL. If `uploads` is true, writes the content of `-T`
    /// to the file. If not, copies the file to the output.
    pub(crate) fn transfer(
        self,
        group: &UrlGroup,
        request: &RequestOptions,
        uploads: bool,
        sink: Box<dyn Sink>,
        reporter: &UrlGroupReporter,
    ) -> TransferOutcome {
        let mut reading = LocalFileTransfer {
            request,
            reporter,
            sink,
            target: &self.target,
            head: None,
            facts: TransferFacts::new(Instant::now()),
        };
        let result = match request.body.as_ref().filter(|_| uploads) {
            Some(body) => {
                let written = write_upload(&self.path, group, &mut *body.upload(), &mut reading.facts.upload_bytes);
                written.and_then(|()| reading.sink.finish())
            }
            None => reading.deliver(&self.path),
        };
        let LocalFileTransfer { head, facts, .. } = reading;
        let mut facts = Box::new(facts);
        facts.total = facts.started.elapsed();
        TransferOutcome { result, target: self.target, head, facts, tag: 0, history: Vec::new(), trailers: None }
    }
}

/// The state of one transfer that copies a local file to a sink.
struct LocalFileTransfer<'a> {
    request: &'a RequestOptions,
    reporter: &'a UrlGroupReporter,
    sink: Box<dyn Sink>,
    target: &'a Target,
    head: Option<ResponseHead>,
    facts: TransferFacts,
}

impl LocalFileTransfer<'_> {
    fn deliver(&mut self, path: &Path) -> Result<()> {
        let unreadable =
            |error| Error::with_source(ErrorKind::LocalFile, format!("Could not open file {}", path.display()), error);
        let mut file = File::open(path).map_err(unreadable)?;
        let metadata = file.metadata().map_err(unreadable)?;
        if metadata.is_dir() {
            // Names are listed anew each time: there is no place in them to go on from.
            if self.resume_offset().is_some_and(|from| from > 0) {
                return Err(resume_error("it is a directory"));
            }
            let names = directory_listing(path).map_err(unreadable)?;
            let is_wanted = self.begin_delivery(&metadata, None, 0)?;
            return if is_wanted { self.copy_rest(&mut &names[..]) } else { self.sink.finish() };
        }
        // Files of the system's own (/proc) have no length that can be relied on.
        let length = Some(metadata.len()).filter(|&length| metadata.is_file() && length > 0);
        let (from, to) = self.offsets_to_copy(length)?;
        if self.request.max_size.is_some_and(|most| to.is_some_and(|to| to - from > most)) {
            return Err(Error::new(ErrorKind::TooLarge, format!("{} is larger than allowed", path.display())));
        }
        if from > 0 {
            file.seek(SeekFrom::Start(from)).map_err(unreadable)?;
        }
        let is_wanted = self.begin_delivery(&metadata, to.map(|to| to - from), from)?;
        match to {
            _ if self.request.head_only || !is_wanted => self.sink.finish(),
            Some(to) => self.copy_rest(&mut file.take(to - from)),
            None => self.copy_rest(&mut file),
        }
    }

    /// Returns the offset in bytes at which `-C` resumes; `None` if the local file is copied from
    /// its start.
    fn resume_offset(&mut self) -> Option<u64> {
        self.request.resume_from.or_else(|| self.sink.partial(self.target).map(|partial| partial.gap.start))
    }

    /// Returns the offsets in the local file at which copying begins and ends according to `-C` and
    /// `-r`. `length` is the length of the file in bytes; `None` if it is unknown. The end is
    /// exclusive; `None` if it is unknown.
    fn offsets_to_copy(&mut self, length: Option<u64>) -> Result<(u64, Option<u64>)> {
        let (from, last) = match (self.resume_offset(), &self.request.range) {
            (Some(from), _) => (from, None),
            (None, Some(range)) => {
                parse_byte_range(range, length).ok_or_else(|| resume_error("it has no such range"))?
            }
            (None, None) => (0, None),
        };
        let end = last.map(|last| last.saturating_add(1));
        let Some(length) = length else {
            return if from == 0 { Ok((0, end)) } else { Err(resume_error("its length is not known")) };
        };
        // The output may be complete already.
        if from > length {
            return Err(resume_error("it is not as long as that"));
        }
        Ok((from, Some(end.map_or(length, |end| length.min(end)))))
    }

    /// Creates the header fields that curl prints for a local file, and passes them to the sink.
    /// Returns false if the condition of `-z` is not met, so that the content must not be copied.
    fn begin_delivery(&mut self, metadata: &Metadata, length: Option<u64>, offset: u64) -> Result<bool> {
        let mut fields = String::new();
        if metadata.is_file() {
            fields = format!("Content-Length: {}\r\nAccept-ranges: bytes\r\n", metadata.len());
        }
        let modified = u64::try_from(metadata.mtime()).ok();
        if let Some(modified) = modified.filter(|&seconds| seconds < YEAR_10000) {
            fields += &format!("Last-Modified: {}\r\n", date::http_date(modified));
        }
        fields += "\r\n";
        let head = ResponseHead::from_raw(format!("HTTP/1.1 200 OK\r\n{fields}").as_bytes())
            .ok_or_else(|| Error::new(ErrorKind::LocalFile, "its head cannot be made"))?;
        self.reporter.dump_head(fields.as_bytes());
        self.facts.fields = u32::try_from(head.fields().count()).unwrap_or(u32::MAX);
        let is_wanted = self.request.wants.as_ref().is_none_or(|wants| wants.wants(&head));
        if !is_wanted {
            self.facts.status = 304;
        }
        if is_wanted || self.request.include_head {
            self.sink.begin(&ResponseForSink {
                head: &head,
                target: self.target,
                place: self.target,
                history: &[],
                facts: &self.facts,
                length,
                offset,
                total: length,
                validator: None,
                deadline: None,
            })?;
        }
        self.head = Some(head);
        if self.request.include_head {
            self.sink.bytes(OfferedBodyBytes::borrowed(fields.as_bytes()))?;
        }
        Ok(is_wanted)
    }

    /// Copies all remaining bytes of the reader `from` to the sink.
    fn copy_rest(&mut self, from: &mut dyn Read) -> Result<()> {
        let mut buffer = BufferPool::new(BLOCK).take_buffer();
        loop {
            let count = match from.read(&mut buffer) {
                Ok(0) => return self.sink.finish(),
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(Error::with_source(ErrorKind::LocalFile, "failed to read the file", error)),
            };
            self.facts.body_bytes += count as u64;
            if self.request.max_size.is_some_and(|most| self.facts.body_bytes > most) {
                return Err(Error::new(ErrorKind::TooLarge, "the file is larger than allowed"));
            }
            self.sink.bytes(OfferedBodyBytes::new(&mut buffer, 0..count))?;
        }
    }
}

fn resume_error(why: &str) -> Error {
    Error::new(ErrorKind::Changed, format!("failed to resume file:// transfer: {why}"))
}

/// Returns the offsets of the first and the last byte of a range such as `0-499` (RFC 9110 section
/// 14.1.2). The second value is `None` if the range extends to the end of the file. Returns `None`
/// for an invalid range.
fn parse_byte_range(range: &str, length: Option<u64>) -> Option<(u64, Option<u64>)> {
    match (range.split_once('-')?, length) {
        (("", last), length) => Some((length?.checked_sub(last.parse().ok()?)?, None)),
        ((from, ""), _) => Some((from.parse().ok()?, None)),
        ((from, last), _) => {
            let (from, last) = (from.parse().ok()?, last.parse().ok()?);
            (from <= last).then_some((from, Some(last)))
        }
    }
}

/// Returns the names of the files in a directory, sorted, one per line. As in curl, hidden files
/// are left out.
fn directory_listing(directory: &Path) -> io::Result<Vec<u8>> {
    let mut names = fs::read_dir(directory)?.map(|entry| Ok(entry?.file_name())).collect::<io::Result<Vec<_>>>()?;
    names.retain(|name| !name.as_bytes().starts_with(b"."));
    names.sort();
    Ok(names.iter().flat_map(|name| [name.as_bytes(), b"\n"]).flatten().copied().collect())
}

/// Writes `content`, the upload of `-T`, to the file `path`, or appends it with `-C`. Adds the
/// number of written bytes to `sent`.
fn write_upload(path: &Path, group: &UrlGroup, content: &mut dyn BodyUpload, sent: &mut u64) -> Result<()> {
    let unwritable =
        |error| Error::with_source(ErrorKind::Write, format!("cannot open {} for writing", path.display()), error);
    let goes_on = group.stages[0].request.continue_at;
    let mut options = File::options();
    options.create(true).append(goes_on.is_some()).write(true).truncate(goes_on.is_none());
    let mut file = options.mode(group.create_file_mode.unwrap_or(0o644)).open(path).map_err(unwritable)?;
    // An offset is subtracted where the content is opened; the size of the output is known only
    // here.
    let mut there = match goes_on {
        Some(ContinueAt::OutputSize) => file.metadata().map_err(unwritable)?.len(),
        _ => 0,
    };
    let mut buffer = vec![0; BLOCK];
    loop {
        let read = read_upload(content, &mut buffer);
        let count = read.map_err(|error| Error::with_source(ErrorKind::Read, "failed to read what is sent", error))?;
        if count == 0 {
            return Ok(());
        }
        let skipped = there.min(count as u64);
        there -= skipped;
        #[expect(clippy::cast_possible_truncation, reason = "at most a block")]
        let rest = &buffer[skipped as usize..count];
        file.write_all(rest).map_err(|error| {
            Error::with_source(ErrorKind::Write, format!("failed to write {}", path.display()), error)
        })?;
        *sent += rest.len() as u64;
    }
}

/// Reads bytes of the content to upload. Returns 0 at its end. Waits while a non-blocking pipe has
/// no bytes.
fn read_upload(content: &mut dyn BodyUpload, buffer: &mut [u8]) -> io::Result<usize> {
    loop {
        match (content.read(buffer), content.source()) {
            (Err(error), Some(source)) if error.kind() == io::ErrorKind::WouldBlock => {
                let ready = PollFd::from_borrowed_fd(source, PollFlags::IN);
                rustix::io::retry_on_intr(|| poll(&mut [ready.clone()], None))?;
            }
            (read, _) => return read,
        }
    }
}
