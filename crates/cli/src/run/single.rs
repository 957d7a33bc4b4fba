//! One URL: the blocking driver, no thread, no event loop.

use std::io::IoSlice;
use std::os::fd::BorrowedFd;
use std::path::PathBuf;
use std::sync::Arc;

use haul::buffer::Lease;
use haul::sink::file::FileSink;
use haul::sink::output::{Output as Descriptor, Waiting};
use haul::sink::{Begin, Sink};
use haul::{Client, Error, ErrorKind, Result, Target};
use haul_policy::target::Scheme;

use super::options;
use super::progress::Progress;
use super::report::{Reporter, Told};
use crate::plan::{Operation, Output};

/// Fetches it; the answer is the exit code.
pub(super) fn run(client: &Client, operation: &Operation, url: &str, reporter: &Arc<Reporter>) -> Result<u8> {
    let stage = &operation.stages[0];
    options::resolve(client, stage)?;
    let request = Arc::new(options::request(stage, reporter.trace(0)));
    let target = Target::parse_with(url, Scheme::Http, request.path_as_is).map_err(|error| {
        let kind = if error.exit_code() == 1 { ErrorKind::UnsupportedScheme } else { ErrorKind::Url };
        Error::with_source(kind, "the URL cannot be used", error).with_url(crate::usage::shown_url(url))
    })?;
    let file = file_for(operation, 0, &target, &[])?;
    let sink: Box<dyn Sink> = match &file {
        Some(path) => Box::new(FileSink::new(path).create_dirs(operation.create_dirs)),
        None => Box::new(Waiting::new(Descriptor::stdout(), None)),
    };
    let sink = Box::new(Counted { sink, progress: Arc::clone(reporter.progress()) });
    let outcome = client.fetch(target, Arc::clone(&request), sink);
    let closed = |error: &Error| {
        error.kind() == ErrorKind::Write
            && error.io_source().is_some_and(|source| source.kind() == std::io::ErrorKind::BrokenPipe)
    };
    if outcome.result.as_ref().is_err_and(closed) {
        return Ok(ErrorKind::Write.exit_code());
    }
    let told = Told { url, number: 0, stage: 0, method: &request.method, file: file.as_deref(), outcome: &outcome };
    let is_unwritable = file.is_none() && outcome.result.as_ref().is_err_and(|error| error.kind() == ErrorKind::Write);
    if let Some(more) = reporter.tell(&told).filter(|_| !is_unwritable) {
        let mut output = Descriptor::stdout();
        output.write(&more)?;
        output.drain(None)?;
    }
    Ok(outcome.result.err().map_or(0, |error| error.exit_code()))
}

/// The file that a source's content goes to; none for standard output.
pub(super) fn file_for(
    operation: &Operation,
    source: usize,
    target: &Target,
    parts: &[String],
) -> Result<Option<PathBuf>> {
    let name = match operation.output_of(source) {
        Output::Stdout => return Ok(None),
        Output::File(template) if template == "-" => return Ok(None),
        Output::File(template) => haul_policy::glob::fill_template(template, parts),
        Output::RemoteName => haul_policy::filename::from_target(target)
            .map_err(|error| Error::new(ErrorKind::Write, error.to_string()).with_url(target.to_url()))?,
    };
    Ok(Some(match &operation.output_dir {
        Some(dir) => dir.join(name),
        None => name.into(),
    }))
}

/// Shows how far a body is.
struct Counted {
    sink: Box<dyn Sink>,
    progress: Arc<Progress>,
}

impl Sink for Counted {
    fn begin(&mut self, begin: &Begin<'_>) -> Result<()> {
        self.progress.body_begins(begin.length, 0);
        self.sink.begin(begin)
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

    fn restart(&mut self) -> bool {
        self.sink.restart()
    }

    fn finish(&mut self) -> Result<()> {
        self.sink.finish()
    }
}
