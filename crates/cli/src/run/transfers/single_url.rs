//! Transfers a single URL with the blocking driver, without another thread or an event loop.

use std::borrow::Cow;
use std::io::IoSlice;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use haul::buffer_pool::OfferedBodyBytes;
use haul::fleet::{FinishedTransferContent, RecordMemorySink};
use haul::sink::checksum::{ChecksumSink, ExpectedChecksum};
use haul::sink::descriptor_writer::BlockingOutputSink;
use haul::sink::file::FileSink;
use haul::sink::partial::PartialFile;
use haul::sink::{DirectWriteCounter, ExistingPartialContent, ResponseForSink, Sink, TransferWaker};
use haul::transfer::TransferOutcome;
use haul::{Client, Error, ErrorKind, Result, Target};
use haul_policy::file_url;
use haul_policy::glob::GlobValues;
use haul_policy::output_name_placeholders::no_columns;

use super::file_url_transfer;
use super::state_stores::StateStores;
use crate::agent::eligibility;
use crate::file_and_environment_access::print_error_line;
use crate::plan::{ContinueAt, ExistingFilePolicy, GlobalArgs, UrlGroup, append_query};
use crate::run::engine_options;
use crate::run::engine_options::output_options::{
    append_whole_response, avoid_blocked_path, file_checksum, file_options, options_for, output_file_path,
    record_options, reserve_first_stage_output_name, shows_content, standard_output,
};
use crate::run::engine_options::request_body::UploadContent;
use crate::run::engine_options::url_to_allowed_target::{parse_target, refuse_login};
use crate::run::report::file_metadata;
use crate::run::report::progress::ProgressReporter;
use crate::run::report::reporter::UrlGroupReporter;
use crate::run::report::transfer_report::TransferReport;
use crate::run::report::verbose_and_trace_output::is_trace_on_stdout;

/// The transfer of one URL: a URL to fetch, or one to which content is uploaded.
pub(crate) struct SingleUrlTransfer<'a> {
    /// The URL of the request.
    pub(crate) url: &'a str,
    /// The URL as the user gave it, from which `-O` derives the name of the output file. With
    /// `-T data http://h/a/`, this is `http://h/a/`, and `url` is `http://h/a/data`. A name from
    /// `url` would make the output overwrite the uploaded file.
    pub(crate) given: &'a str,
    /// The index of the source (an argument, or a file of URLs) from which the URL comes.
    pub(crate) index: usize,
    /// The values that this URL has for the globs (such as `{a,b}` or `[1-9]`) of its argument.
    pub(crate) parts: &'a GlobValues,
    /// The content to upload; `None` to fetch the URL.
    pub(crate) upload: Option<UploadContent>,
}

/// Runs the transfer of one URL and reports its outcome. Returns the exit code.
pub(crate) fn run(
    client: &Client,
    global: &GlobalArgs,
    group: &UrlGroup,
    job: SingleUrlTransfer<'_>,
    reporter: &Arc<UrlGroupReporter>,
    stores: &mut StateStores,
) -> Result<u8> {
    let stage = &group.stages[0];
    engine_options::set_resolver_options(client, stage)?;
    let mut request = engine_options::request_options(global, stage, reporter.trace(0), stores)?;
    request.interrupt = reporter.interrupt().cloned();
    request.limit_rate_total = reporter.limit_rate_total().cloned();
    request.pauses = UrlGroupReporter::retry_observer(reporter);
    reporter.set_recorder(&mut request);
    request.escape_head = request.include_head && shows_content(group);
    let uploads = job.upload.is_some();
    if let Some(part) = job.upload {
        request.method = stage.request.method_for(group.upload_of_source(job.index)).to_owned();
        (request.body, request.content_range) = (Some(part.body), part.range);
        // They are about what is sent.
        (request.resume_from, request.range) = (None, None);
    }
    let request = Arc::new(request);
    let url = job.url;
    // curl makes this file before it looks at the URL.
    if let Some(tag) = stage.request.etag_save.as_ref().filter(|_| global.persona.is_curl()) {
        file_metadata::check_can_be_saved(group, tag)?;
    }
    let local = file_url_transfer::local_file_of_url(global.persona.is_curl(), stage, url)?;
    let target = match &local {
        Some(local) => local.target.clone(),
        None => parse_target(stage, url)?,
    };
    let given = match &local {
        None if job.given != url => Some(parse_target(stage, job.given)?),
        _ => None,
    };
    let named_after = given.as_ref().unwrap_or(&target);
    let file = output_file_path(group, job.index, named_after, job.given, job.parts, &no_columns, 1)?;
    let output = group.output_of_source(job.index);
    let file = file.map(|file| avoid_blocked_path(group, reporter.output_names(), output, file));
    if let Some(file) = &file
        && !reserve_first_stage_output_name(group, reporter.output_names(), output, file, url)?
    {
        if global.shows_notes() {
            print_error_line(&format!("Note: skips transfer, \"{}\" exists locally", file.display()));
        }
        reporter.write_out_skipped(url, file, job.index as u64)?;
        return Ok(0);
    }
    if let Some(tag) = stage.request.etag_save.as_ref().filter(|_| !global.persona.is_curl()) {
        file_metadata::check_can_be_saved(group, tag)?;
    }
    refuse_login(stage, &target)?;
    let host = target.origin();
    if local.is_none() {
        reporter.wait_for_host_start_rate(&host)?;
    }
    let to_file = file.as_deref().map(|file| (file, file_options(group, 0, None)));
    if local.is_none()
        && let Some(outcome) = eligibility::fetch(client, global, group, url, &request, to_file, reporter.progress())?
    {
        reporter.count_retries(&host, outcome.facts.retries);
        let body = DownloadedFileOrContent { file: file.as_deref(), content: FinishedTransferContent::default() };
        return report_outcome(group, &outcome, url, job.index, &request.method, body, reporter);
    }
    let checksum = stores.checksums.expected_checksum(client, &request, group, &target, file.as_deref())?;
    let sink: Box<dyn Sink> = match (&file, checksum) {
        (Some(path), checksum) => {
            let options = options_for(group, output, checksum, Some(reporter.output_names()));
            let options = if uploads { append_whole_response(options) } else { options };
            let file = FileSink::with_options(path, options);
            Box::new(file.with_record_checksum(file_checksum(group)))
        }
        (None, checksum) => match record_options(global, group) {
            Some(records) => with_checksum(RecordMemorySink::new(records), checksum),
            None => with_checksum(BlockingOutputSink::new(standard_output(group), None), checksum),
        },
    };
    let named = Arc::new(Mutex::new(file));
    let content = Arc::new(Mutex::new(FinishedTransferContent::default()));
    let progress = Arc::clone(reporter.progress());
    let (named_by_sink, content_of_sink) = (Arc::clone(&named), Arc::clone(&content));
    let waits_for_output = is_trace_on_stdout(&global.trace);
    let sink =
        Box::new(ProgressSink { sink, progress, waits_for_output, named: named_by_sink, content: content_of_sink });
    let to_stdout = named.lock().unwrap_or_else(PoisonError::into_inner).is_none();
    reporter.progress().transfer_begins(to_stdout);
    if let Some(ContinueAt::Offset(offset)) = stage.request.continue_at {
        reporter.progress().set_resume_offset(offset);
    }
    let outcome = match local {
        Some(local) => local.transfer(group, &request, uploads, sink, reporter),
        None => client.fetch(target, Arc::clone(&request), sink),
    };
    reporter.progress().transfer_ends();
    reporter.count_retries(&host, outcome.facts.retries);
    let file = named.lock().unwrap_or_else(PoisonError::into_inner).take();
    let content = std::mem::take(&mut *content.lock().unwrap_or_else(PoisonError::into_inner));
    let body = DownloadedFileOrContent { file: file.as_deref(), content };
    report_outcome(group, &outcome, url, job.index, &request.method, body, reporter)
}

/// Returns a sink that verifies the body against a checksum, if there is one, and passes it on to
/// `sink`.
fn with_checksum(sink: impl Sink, checksum: Option<ExpectedChecksum>) -> Box<dyn Sink> {
    match checksum {
        Some(checksum) => Box::new(ChecksumSink::new(sink, checksum)),
        None => Box::new(sink),
    }
}

/// The body of a finished transfer: the file to which it was written, or the content for a
/// `--jsonl` record.
struct DownloadedFileOrContent<'a> {
    file: Option<&'a Path>,
    content: FinishedTransferContent,
}

/// Reports the outcome of the transfer of one URL. Returns the exit code.
fn report_outcome(
    group: &UrlGroup,
    outcome: &TransferOutcome,
    url: &str,
    index: usize,
    method: &str,
    body: DownloadedFileOrContent<'_>,
    reporter: &UrlGroupReporter,
) -> Result<u8> {
    let DownloadedFileOrContent { file, content } = body;
    let failed_to_write = |kind: std::io::ErrorKind| {
        let is_it = |error: &Error| {
            error.kind() == ErrorKind::Write && error.io_source().is_some_and(|source| source.kind() == kind)
        };
        outcome.result.as_ref().is_err_and(is_it)
    };
    if failed_to_write(std::io::ErrorKind::BrokenPipe) && !reporter.is_curl() {
        return Ok(ErrorKind::Write.exit_code());
    }
    // The file that the response named exists. The name is known only now. Where existing files are
    // skipped, this is no failure.
    if group.existing == ExistingFilePolicy::Skip && failed_to_write(std::io::ErrorKind::AlreadyExists) {
        return Ok(0);
    }
    let query = group.stages[0].request.query.as_ref();
    let queried = query.map_or(Cow::Borrowed(url), |query| Cow::Owned(append_query(url, query)));
    let settings = group.stages.first();
    let report = TransferReport { url: &queried, number: index as u64, stage: 0, method, file, outcome, settings };
    // It may be a local file that was written to.
    let to_output = file.is_none() && !file_url::is_file_url(url);
    let is_unwritable = to_output && outcome.result.as_ref().is_err_and(|error| error.kind() == ErrorKind::Write);
    reporter.print(reporter.report(&report).filter(|_| !is_unwritable))?;
    reporter.print_record(&report, content)?;
    Ok(outcome.result.as_ref().err().map_or(0, Error::exit_code))
}

/// A sink that passes the response body on to another sink. It reports the progress, and stores the
/// name of the file to which the body is written.
struct ProgressSink {
    sink: Box<dyn Sink>,
    progress: Arc<ProgressReporter>,
    /// True if the sink keeps no bytes that the output does not accept, because the trace goes to
    /// the same file as the body. The trace would get into the middle of the body.
    waits_for_output: bool,
    named: Arc<Mutex<Option<PathBuf>>>,
    /// The content of the response for the `--jsonl` record; stored when the response is complete.
    content: Arc<Mutex<FinishedTransferContent>>,
}

impl ProgressSink {
    fn report_file_name(&self) {
        if let Some(name) = self.sink.file_name() {
            *self.named.lock().unwrap_or_else(PoisonError::into_inner) = Some(name.to_owned());
        }
    }
}

impl Sink for ProgressSink {
    fn begin(&mut self, begin: &ResponseForSink<'_>) -> Result<()> {
        self.progress.body_begins(begin.length, begin.offset);
        let outcome = self.sink.begin(begin);
        self.report_file_name();
        outcome
    }

    fn bytes(&mut self, offered: OfferedBodyBytes<'_>) -> Result<()> {
        self.progress.body_bytes(offered.bytes().len());
        self.sink.bytes(offered)
    }

    fn pieces(&mut self, pieces: &mut [IoSlice<'_>]) -> Result<()> {
        self.progress.body_bytes(pieces.iter().map(|piece| piece.len()).sum());
        self.sink.pieces(pieces)
    }

    #[cfg(unix)]
    fn direct(&mut self) -> Option<rustix::fd::BorrowedFd<'_>> {
        self.sink.direct()
    }

    fn moved(&mut self, bytes: u64) {
        self.progress.body_bytes(usize::try_from(bytes).unwrap_or(usize::MAX));
        self.sink.moved(bytes);
    }

    fn credit(&mut self, waker: Option<&Arc<dyn TransferWaker>>, token: usize) -> u64 {
        self.sink.credit(waker, token)
    }

    fn keep_unwritten(&mut self, keeps: bool) {
        self.sink.keep_unwritten(keeps && !self.waits_for_output);
    }

    fn full_output(&mut self) -> Option<rustix::fd::BorrowedFd<'_>> {
        self.sink.full_output()
    }

    fn write_kept(&mut self) -> Result<()> {
        self.sink.write_kept()
    }

    fn write_error(&self, error: std::io::Error) -> Error {
        self.sink.write_error(error)
    }

    fn partial(&mut self, target: &Target) -> Option<ExistingPartialContent> {
        let partial = self.sink.partial(target);
        if let Some(partial) = &partial {
            self.progress.set_resume_offset(partial.gap.start);
        }
        partial
    }

    fn continues_file(&self) -> bool {
        self.sink.continues_file()
    }

    fn next_gap(&mut self) -> Option<Range<u64>> {
        self.sink.next_gap()
    }

    fn partial_file(&mut self) -> Option<Arc<PartialFile>> {
        self.sink.partial_file()
    }

    fn counter(&mut self) -> Option<Arc<dyn DirectWriteCounter>> {
        Some(Arc::new(SplitProgressCounter(Arc::clone(&self.progress))))
    }

    fn keeps(&mut self) -> bool {
        self.sink.keeps()
    }

    fn restart(&mut self) -> bool {
        self.sink.restart()
    }

    fn finish(&mut self) -> Result<()> {
        let outcome = self.sink.finish();
        self.report_file_name();
        if let Some(content) = self.sink.take_record() {
            *self.content.lock().unwrap_or_else(PoisonError::into_inner) = content;
        }
        outcome
    }

    fn file_name(&self) -> Option<&Path> {
        self.sink.file_name()
    }
}

/// Counts the received bytes of a split download, whose parts are written to the file without a
/// [`ProgressSink`].
struct SplitProgressCounter(Arc<ProgressReporter>);

impl DirectWriteCounter for SplitProgressCounter {
    fn count(&self, bytes: u64) {
        self.0.body_bytes(usize::try_from(bytes).unwrap_or(usize::MAX));
    }

    fn set_connections(&self, connections: usize) {
        self.0.set_connections(connections);
    }
}
