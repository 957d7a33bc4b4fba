//! One URL: the blocking driver, no thread, no event loop.

use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::io::{IoSlice, IsTerminal};
use std::ops::Range;
use std::os::fd::BorrowedFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use haul::buffer::Lease;
use haul::sink::checksum::{Checksum, Verified};
use haul::sink::file::{Append, FileOptions, FileSink};
use haul::sink::naming::Clobber;
use haul::sink::output::{Output as Descriptor, Waiting};
use haul::sink::partial::PartialFile;
use haul::sink::{Begin, Counter, Partial, Sink};
use haul::transfer::Outcome;
use haul::{Client, Error, ErrorKind, Result, Target};
use haul_policy::file_url;
use haul_policy::glob::{GlobValues, fill_template};

use super::by_value::takes_name;
use super::carried::Part;
use super::output_names::OutputNames;
use super::progress::Progress;
use super::report::Reporter;
use super::stores::Stores;
use super::told::Told;
use super::{by_agent, local, options, say, stamps};
use crate::plan::{ContinueAt, Existing, Global, Netrc, Operation, Output, StageArgs, append_query};

/// The output file of a URL whose path has no name, as in curl.
const NAMELESS: &str = "curl_response";

/// The file that discards the content of `--out-null`.
pub(super) const NULL: &str = "/dev/null";

/// One URL to fetch, or to send something to.
pub(super) struct Job<'a> {
    /// The URL.
    pub(super) url: &'a str,
    /// The URL as it was given: without the appended name of the uploaded file, which `-O` would
    /// otherwise overwrite.
    pub(super) given: &'a str,
    /// The index of the URL's source.
    pub(super) index: usize,
    /// The values of its source's globs.
    pub(super) parts: &'a GlobValues,
    /// The content of the upload, if there is one.
    pub(super) upload: Option<Part>,
}

/// The target that a URL of a stage names: with the query that is added to each, if its scheme may
/// be used.
pub(super) fn target_of(stage: &StageArgs, url: &str) -> Result<Target> {
    let redirect = &stage.transfer.redirect;
    let shown = || crate::usage::shown_url(url);
    let queried = stage.request.query.as_ref().map(|query| append_query(url, query));
    let text = queried.as_deref().unwrap_or(url);
    let target = Target::parse_with(text, redirect.default_scheme, stage.transfer.path_as_is).map_err(|error| {
        let kind = if error.exit_code() == 1 { ErrorKind::UnsupportedScheme } else { ErrorKind::Url };
        Error::with_source(kind, "the URL cannot be used", error).with_url(shown())
    })?;
    refuse_protocol(stage, &target).map_err(|error| error.with_url(shown()))?;
    Ok(target)
}

/// A scheme that `--proto` does not allow.
pub(super) fn refuse_protocol(stage: &StageArgs, target: &Target) -> Result<()> {
    if stage.transfer.redirect.protocols.allows(target.scheme()) {
        return Ok(());
    }
    let message = format!("{} is not among the protocols that --proto allows", target.scheme().as_str());
    Err(Error::new(ErrorKind::UnsupportedScheme, message))
}

/// Takes a file's name for a URL of the first stage. Returns `false` if the file exists and
/// existing files are skipped. In curl's place the last URL of a name gets the file.
///
/// # Errors
/// When another URL of the run has taken it.
pub(super) fn has_its_name(
    operation: &Operation,
    names: &OutputNames,
    output: &Output,
    file: &Path,
    url: &str,
) -> Result<bool> {
    match operation.in_place {
        true => Ok(operation.existing_of(output) != Existing::Skip || !file.exists()),
        false => takes_name(operation, names, output, file, url),
    }
}

/// Returns true if responses choose the file names of an output.
pub(super) fn is_named_by_response(operation: &Operation, output: &Output) -> bool {
    operation.remote_header_name && *output == Output::RemoteName
}

/// Refuses a login in the URL that is not allowed (`--disallow-username-in-url`), and a missing
/// netrc file that `-n` requires.
pub(super) fn refuse_login(stage: &StageArgs, target: &Target) -> Result<()> {
    if stage.request.auth.netrc == Netrc::Missing {
        return Err(Error::new(ErrorKind::Read, ".netrc error: no such file"));
    }
    if stage.request.no_user_in_url && target.userinfo_bytes().is_some() {
        return Err(Error::new(ErrorKind::Login, "the URL has a user name, which is not allowed"));
    }
    Ok(())
}

/// Fetches it; the answer is the exit code.
pub(super) fn run(
    client: &Client,
    global: &Global,
    operation: &Operation,
    job: Job<'_>,
    reporter: &Arc<Reporter>,
    stores: &mut Stores,
) -> Result<u8> {
    let stage = &operation.stages[0];
    options::resolve(client, stage)?;
    let mut request = options::request(global, stage, reporter.trace(0), stores)?;
    request.interrupt = reporter.interrupt().cloned();
    request.pauses = Reporter::pauses(reporter);
    request.escape_head = request.include_head && shows_content(operation);
    let uploads = job.upload.is_some();
    if let Some(part) = job.upload {
        request.method = stage.request.method_for(operation.upload_of(job.index)).to_owned();
        (request.body, request.content_range) = (Some(part.body), part.range);
        // They are about what is sent.
        (request.resume_from, request.range) = (None, None);
    }
    let request = Arc::new(request);
    let url = job.url;
    let local = local::find(global.persona.is_curl(), stage, url)?;
    let target = match &local {
        Some(local) => local.target.clone(),
        None => target_of(stage, url)?,
    };
    let given = match &local {
        None if job.given != url => Some(target_of(stage, job.given)?),
        _ => None,
    };
    let file = file_for(operation, job.index, given.as_ref().unwrap_or(&target), job.given, job.parts)?;
    let output = operation.output_of(job.index);
    if let Some(file) = &file
        && !has_its_name(operation, reporter.names(), output, file, url)?
    {
        if global.shows_notes() {
            say(&format!("Note: skips transfer, \"{}\" exists locally", file.display()));
        }
        return Ok(0);
    }
    if let Some(tag) = &stage.request.etag_save {
        stamps::can_be_saved(operation, tag)?;
    }
    refuse_login(stage, &target)?;
    if local.is_none()
        && let Some(outcome) = by_agent::fetch(client, global, operation, url, &request, file.as_deref())?
    {
        return conclude(operation, &outcome, url, job.index, &request.method, file.as_deref(), reporter);
    }
    let checksum = stores.checksums.of(client, &request, operation, &target, file.as_deref())?;
    let sink: Box<dyn Sink> = match (&file, checksum) {
        (Some(path), checksum) => {
            let options = options_for(operation, output, checksum, Some(reporter.names()));
            let append = options.append.filter(|_| !uploads);
            Box::new(FileSink::with(path, FileOptions { append, ..options }))
        }
        (None, None) => Box::new(Waiting::new(standard_output(operation), None)),
        (None, Some(checksum)) => Box::new(Verified::new(Waiting::new(standard_output(operation), None), checksum)),
    };
    let named = Arc::new(Mutex::new(file));
    let progress = Arc::clone(reporter.progress());
    let sink = Box::new(Counted { sink, progress, named: Arc::clone(&named) });
    let to_stdout = named.lock().unwrap_or_else(PoisonError::into_inner).is_none();
    reporter.progress().transfer_begins(to_stdout);
    if let Some(ContinueAt::Offset(offset)) = stage.request.continue_at {
        reporter.progress().goes_on_at(offset);
    }
    let outcome = match local {
        Some(local) => local.carry_out(operation, &request, uploads, sink, reporter),
        None => client.fetch(target, Arc::clone(&request), sink),
    };
    let file = named.lock().unwrap_or_else(PoisonError::into_inner).take();
    conclude(operation, &outcome, url, job.index, &request.method, file.as_deref(), reporter)
}

/// Reports the outcome of the transfer. Returns the exit code.
fn conclude(
    operation: &Operation,
    outcome: &Outcome,
    url: &str,
    index: usize,
    method: &str,
    file: Option<&Path>,
    reporter: &Reporter,
) -> Result<u8> {
    let failed_to_write = |kind: std::io::ErrorKind| {
        let is_it = |error: &Error| {
            error.kind() == ErrorKind::Write && error.io_source().is_some_and(|source| source.kind() == kind)
        };
        outcome.result.as_ref().is_err_and(is_it)
    };
    if failed_to_write(std::io::ErrorKind::BrokenPipe) {
        return Ok(ErrorKind::Write.exit_code());
    }
    // The file that the response named exists. The name is known only now. Where existing files are
    // skipped, this is no failure.
    if operation.existing == Existing::Skip && failed_to_write(std::io::ErrorKind::AlreadyExists) {
        return Ok(0);
    }
    let query = operation.stages[0].request.query.as_ref();
    let queried = query.map_or(Cow::Borrowed(url), |query| Cow::Owned(append_query(url, query)));
    let told = Told { url: &queried, number: index as u64, stage: 0, method, file, outcome };
    // It may be a local file that was written to.
    let to_output = file.is_none() && !file_url::is_file_url(url);
    let is_unwritable = to_output && outcome.result.as_ref().is_err_and(|error| error.kind() == ErrorKind::Write);
    reporter.print(reporter.tell(&told).filter(|_| !is_unwritable))?;
    Ok(outcome.result.as_ref().err().map_or(0, Error::exit_code))
}

/// Returns true if content, and heads with `-i`, go to a terminal that no option names as the
/// output.
pub(super) fn shows_content(operation: &Operation) -> bool {
    let is_unnamed = (0..operation.urls.len()).all(|source| *operation.output_of(source) == Output::Stdout);
    is_unnamed && operation.stages.iter().all(|stage| stage.output == Output::Stdout) && std::io::stdout().is_terminal()
}

/// Standard output: of text only where it is a terminal and not asked for by name (`-o -`).
pub(super) fn standard_output(operation: &Operation) -> Descriptor {
    let output = Descriptor::stdout();
    let of_stages = operation.stages.iter().map(|stage| &stage.output).filter(|output| **output != Output::Stdout);
    if operation.outputs.iter().chain(of_stages).any(Output::is_stdout) { output } else { output.text_on_terminal() }
}

/// The file that a source's content goes to; none for standard output.
pub(super) fn file_for(
    operation: &Operation,
    source: usize,
    target: &Target,
    url: &str,
    parts: &GlobValues,
) -> Result<Option<PathBuf>> {
    let name = match operation.output_of(source) {
        Output::Stdout => return Ok(None),
        Output::File(template) if template == "-" => return Ok(None),
        Output::File(template) => filled(template, parts),
        Output::Null => return Ok(Some(NULL.into())),
        Output::RemoteName if operation.in_place => {
            haul_policy::filename::as_written(target, url).unwrap_or_else(|_| NAMELESS.to_owned()).into()
        }
        Output::RemoteName => match haul_policy::filename::from_target(target) {
            Ok(name) => name.into(),
            Err(error) => return Err(Error::new(ErrorKind::Write, error.to_string()).with_url(target.to_url())),
        },
    };
    let path = placed(operation, name);
    refuse_to_go_on(operation, source, &path)?;
    Ok(Some(path))
}

/// A name below the directory of `--output-dir`.
pub(super) fn placed(operation: &Operation, name: OsString) -> PathBuf {
    match &operation.output_dir {
        // As by curl: a name that begins with a slash is below the directory, too.
        Some(dir) if operation.in_place => {
            let mut path = dir.clone().into_os_string();
            path.push("/");
            path.push(name);
            path.into()
        }
        Some(dir) => dir.join(name),
        None => name.into(),
    }
}

/// Fills the values of the globs into a name. Bytes that are no UTF-8 stay unchanged.
fn filled(template: &OsStr, parts: &GlobValues) -> OsString {
    let mut name = Vec::new();
    for chunk in template.as_bytes().utf8_chunks() {
        name.extend_from_slice(fill_template(chunk.valid(), parts).as_bytes());
        name.extend_from_slice(chunk.invalid());
    }
    OsString::from_vec(name)
}

/// Refuses `-C -` with request content for an existing file, whose rest cannot be fetched.
fn refuse_to_go_on(operation: &Operation, source: usize, path: &Path) -> Result<()> {
    let request = &operation.stages[0].request;
    let has_content = request.body.is_some() && operation.upload_of(source).is_none();
    let goes_on = has_content && request.continue_at == Some(ContinueAt::OutputSize);
    if goes_on && path.metadata().is_ok_and(|metadata| metadata.len() > 0) {
        return Err(Error::new(ErrorKind::Setup, "cannot mix --continue-at with --data"));
    }
    Ok(())
}

/// Returns the file options for the output of a source.
pub(super) fn file_options(operation: &Operation, source: usize, checksum: Option<Checksum>) -> FileOptions {
    options_for(operation, operation.output_of(source), checksum, None)
}

/// Returns the file options for an output. Names that responses choose are checked against `names`,
/// unless the file is written in place or numbered.
pub(super) fn options_for(
    operation: &Operation,
    output: &Output,
    checksum: Option<Checksum>,
    names: Option<&OutputNames>,
) -> FileOptions {
    let existing = operation.existing_of(output);
    let is_checked = !operation.in_place && existing != Existing::Number;
    FileOptions {
        create_dirs: operation.create_dirs,
        named_by_response: is_named_by_response(operation, output),
        name_check: names.filter(|_| is_checked).map(|names| names.check(existing == Existing::Skip)),
        clobber: match existing {
            Existing::ReplaceOwn => Clobber::Own,
            Existing::Skip => Clobber::Skip,
            Existing::Replace => Clobber::Replace,
            Existing::Number => Clobber::Number,
        },
        sync: operation.fsync,
        mode: operation.create_file_mode,
        remove_on_error: operation.remove_on_error,
        statuses_fail: operation.stages[0].transfer.fail_with_body,
        append: operation.stages[0].request.continue_at.map(|at| match at {
            ContinueAt::Offset(offset) => Append::At(offset),
            ContinueAt::OutputSize => Append::AtEnd,
        }),
        in_place: operation.in_place,
        checksum,
    }
}

/// Shows how far a body is, and notes the name that its file got.
struct Counted {
    sink: Box<dyn Sink>,
    progress: Arc<Progress>,
    named: Arc<Mutex<Option<PathBuf>>>,
}

impl Counted {
    fn note_name(&self) {
        if let Some(name) = self.sink.file_name() {
            *self.named.lock().unwrap_or_else(PoisonError::into_inner) = Some(name.to_owned());
        }
    }
}

impl Sink for Counted {
    fn begin(&mut self, begin: &Begin<'_>) -> Result<()> {
        self.progress.body_begins(begin.length, begin.offset);
        let outcome = self.sink.begin(begin);
        self.note_name();
        outcome
    }

    fn bytes(&mut self, lease: Lease<'_>) -> Result<()> {
        self.progress.body_bytes(lease.bytes().len());
        self.sink.bytes(lease)
    }

    fn pieces(&mut self, pieces: &mut [IoSlice<'_>]) -> Result<()> {
        self.progress.body_bytes(pieces.iter().map(|piece| piece.len()).sum());
        self.sink.pieces(pieces)
    }

    fn direct(&mut self) -> Option<BorrowedFd<'_>> {
        self.sink.direct()
    }

    fn moved(&mut self, bytes: u64) {
        self.progress.body_bytes(usize::try_from(bytes).unwrap_or(usize::MAX));
        self.sink.moved(bytes);
    }

    fn cannot_write(&self, error: std::io::Error) -> Error {
        self.sink.cannot_write(error)
    }

    fn partial(&mut self, target: &Target) -> Option<Partial> {
        let partial = self.sink.partial(target);
        if let Some(partial) = &partial {
            self.progress.goes_on_at(partial.gap.start);
        }
        partial
    }

    fn next_gap(&mut self) -> Option<Range<u64>> {
        self.sink.next_gap()
    }

    fn partial_file(&mut self) -> Option<Arc<PartialFile>> {
        self.sink.partial_file()
    }

    fn counter(&mut self) -> Option<Arc<dyn Counter>> {
        Some(Arc::new(PartsCounted(Arc::clone(&self.progress))))
    }

    fn keeps(&mut self) -> bool {
        self.sink.keeps()
    }

    fn restart(&mut self) -> bool {
        self.sink.restart()
    }

    fn finish(&mut self) -> Result<()> {
        let outcome = self.sink.finish();
        self.note_name();
        outcome
    }

    fn file_name(&self) -> Option<&Path> {
        self.sink.file_name()
    }
}

/// Shows bytes that parts of a file are written with.
struct PartsCounted(Arc<Progress>);

impl Counter for PartsCounted {
    fn count(&self, bytes: u64) {
        self.0.body_bytes(usize::try_from(bytes).unwrap_or(usize::MAX));
    }
}
