//! Jobs in a build without the feature `job`: `--job` is refused.

use std::ffi::OsString;
use std::io::BufRead;
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use haul::fleet::{FleetJob, OutputObserver, RecalledValueKind, StageValueStore, UnfinishedTransferIterator};
use haul::system::file_metadata_and_flags::OwnedFile;
use haul::transfer::TransferOutcome;
use haul::{Error, ErrorKind, Result};

#[cfg(feature = "warc")]
use crate::job_types_in_every_build::{ArchivePosition, ArchivedPayload, HeldBackRecordsArchive};
use crate::parsed_args::ParsedArgs;
use crate::plan::{ResumableJobArgs, UrlGroup};
use crate::record_input::RecordInputFormat;

pub use crate::job_types_in_every_build::JobRefusal;
pub(crate) use crate::job_types_in_every_build::{EarlierFetch, UrlRunState};

/// Returns false, because this build has no `haul job` commands.
#[must_use]
pub fn is_called(_words: &[OsString]) -> bool {
    false
}

/// Returns the exit code for an option that cannot be used. Never called, because [`is_called`]
/// returns false.
#[must_use]
pub fn run(_words: &[OsString]) -> u8 {
    ErrorKind::Setup.exit_code()
}

/// Returns false: a build without jobs has no separate parser for command lines with `--job`.
#[must_use]
pub fn has_job_option(_words: &[OsString]) -> bool {
    false
}

/// Refuses a command line with `--job`.
///
/// # Errors
/// Always.
pub fn parse(_words: Vec<OsString>) -> std::result::Result<ParsedArgs, JobRefusal> {
    Err(JobRefusal::Job(unavailable_error()))
}

fn unavailable_error() -> Error {
    Error::new(ErrorKind::Setup, "--job needs a haul that was built with the feature job")
}

/// Stands in for the run of a job in a build without jobs, so that other code compiles. It has no
/// values.
pub(crate) enum JobRun {}

/// Stands in for the output of a job's run in a build without jobs, so that other code compiles. It
/// has no values.
pub(crate) struct JobRunOutput {
    pub(crate) descriptor: OwnedFile,
    pub(crate) is_new: bool,
    pub(crate) note: Option<String>,
}

/// Stands in for the cursor over the URLs of a job in a build without jobs, so that other code
/// compiles. It has no values.
pub(crate) enum UrlCursor {}

impl UrlCursor {
    pub(crate) fn state_of_url(&mut self, _number: u64) -> Result<UrlRunState> {
        match *self {}
    }
}

impl JobRun {
    pub(crate) fn open(_args: &ResumableJobArgs, _group: &UrlGroup, _refreshes: bool) -> Result<Arc<Self>> {
        Err(unavailable_error())
    }

    pub(crate) fn has_failed(&self) -> bool {
        match *self {}
    }

    pub(crate) fn cursor(&self) -> Result<UrlCursor> {
        match *self {}
    }

    pub(crate) fn open_list(
        &self,
        _source: usize,
        _name: &str,
        _format: Option<RecordInputFormat>,
    ) -> Result<Option<Box<dyn BufRead + Send>>> {
        match *self {}
    }

    pub(crate) fn open_output(&self, _file: Option<(&Path, Option<u32>)>) -> Result<JobRunOutput> {
        match *self {}
    }

    pub(crate) fn output_begins(&self, _output: &JobRunOutput, _header: usize) {
        match *self {}
    }

    pub(crate) fn finished(&self, _: &FleetJob, _: &TransferOutcome, _sha256: Option<&str>, _prints: bool) {
        match *self {}
    }

    #[cfg(feature = "warc")]
    pub(crate) fn archive_position(&self, _begin: impl FnOnce() -> Result<()>) -> Result<ArchivePosition> {
        match *self {}
    }

    #[cfg(feature = "warc")]
    pub(crate) fn archived_payloads(&self, _most: u64, _each: impl FnMut(ArchivedPayload)) -> Result<()> {
        match *self {}
    }

    #[cfg(feature = "warc")]
    pub(crate) fn set_archive(&self, _archive: Arc<dyn HeldBackRecordsArchive>) {
        match *self {}
    }

    pub(crate) fn finished_files(&self, _: bool, _each: impl FnMut(&Path, &str) -> Result<()>) -> Result<()> {
        match *self {}
    }

    pub(crate) fn created(&self) -> SystemTime {
        match *self {}
    }

    pub(crate) fn skipped(&self, _number: u64) {
        match *self {}
    }

    pub(crate) fn list_ended(&self, _total: u64) {
        match *self {}
    }

    pub(crate) fn copied_lines(&self, _source: usize) -> Result<Option<(Box<dyn BufRead + Send>, bool)>> {
        match *self {}
    }

    pub(crate) fn end(&self, _exit_code: u8) -> Result<(u8, Option<String>)> {
        match *self {}
    }
}

impl OutputObserver for JobRun {
    fn on_passed_to_sink(&self, _stage: usize, _number: u64, _end: u64) {
        match *self {}
    }

    fn on_written(&self, _end: u64) {
        match *self {}
    }
}

impl StageValueStore for JobRun {
    fn on_queued(&self, _stage: usize, _number: u64, _value: &[u8]) {
        match *self {}
    }

    fn on_skipped(&self, _stage: usize, _number: u64) {
        match *self {}
    }

    fn on_kept(&self, _stage: usize, _value: &[u8]) {
        match *self {}
    }

    fn on_printed(&self, _stage: usize, _value: &[u8]) {
        match *self {}
    }

    fn recall_values(&self, _: usize, _: RecalledValueKind, _: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        match *self {}
    }

    fn unfinished_transfers(&self, _stage: usize) -> Box<dyn UnfinishedTransferIterator> {
        match *self {}
    }

    fn next_number(&self, _stage: usize) -> u64 {
        match *self {}
    }
}
