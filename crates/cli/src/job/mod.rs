//! Jobs: runs that record their progress in a file (`--job FILE`), so that a later run continues
//! after a kill, and the commands that show and change them (`haul job status FILE`).
//!
//! ```text
//!  list ─▶ UrlCursor (skips what is finished) ─▶ fleet ─▶ JobRun ─▶ JobWriter ─▶ SQLite
//!                                                  │ output observer      └▶ Syncer, once a second
//! ```
//!
//! `docs/design/jobs.md` describes what survives a kill, a full disk and a loss of power.

mod command;
mod event_queue;
mod job_error_from_sqlite_or_io;
mod job_run;
mod leftover_files;
mod list_change_check;
mod list_copy;
mod list_credentials;
mod open_and_lock_job_file;
mod output_file;
#[cfg_attr(windows, path = "permissions_windows.rs")]
mod permissions;
mod refresh;
mod report;
mod schema;
mod stage_values;
mod stored_command_line;
mod stored_url_state_cursor;
mod sync_thread;
mod url_row;
mod values_as_escaped_lines;
mod warc_end_and_payloads;
mod writer;

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use haul::{Error, ErrorKind, Result};

use crate::file_and_environment_access::SystemFilesAndEnvironment;
use crate::parse::parse_recorded;
use crate::parsed_args::ParsedArgs;
use crate::plan::ResumableJobArgs;

pub use crate::job_types_in_every_build::JobRefusal;
pub(crate) use crate::job_types_in_every_build::{EarlierFetch, UrlRunState};
pub use command::{is_called, run};
pub(crate) use job_run::{JobRun, JobRunOutput};
use open_and_lock_job_file::StoredJobSettings;
pub(crate) use stored_url_state_cursor::UrlCursor;

/// Returns true if a word of haul's command line is `--job` or begins with `--job=`, so that the
/// command line may belong to a job.
#[must_use]
pub fn has_job_option(words: &[OsString]) -> bool {
    words.iter().any(|word| {
        let word = word.as_encoded_bytes();
        word == b"--job" || word.starts_with(b"--job=")
    })
}

/// Parses the command line of a job. If no URL is given, uses the options that the job has stored,
/// and changes to the directory in which the job was begun.
///
/// # Errors
/// An option is wrong, or the job's file cannot be read.
pub fn parse(words: Vec<OsString>) -> std::result::Result<ParsedArgs, JobRefusal> {
    let mut parsed = parse_recorded(words, &mut SystemFilesAndEnvironment).map_err(JobRefusal::Usage)?;
    let given = parsed.given.take().unwrap_or_default();
    let Some(job) = &parsed.global.job else { return Ok(parsed) };
    if parsed.info.is_some() || parsed.agent_command.is_some() {
        return Ok(parsed);
    }
    let path = job.file.clone();
    if stored_command_line::has_only_changeable_options(&given) || lacks_urls(&parsed) {
        return continue_job(&path, &given, parsed).map_err(JobRefusal::Job);
    }
    let command = stored_command_line::unchangeable_options(&given);
    if let Some((option, reason)) = stored_command_line::first_unstorable(&command) {
        let text = match option.name.as_str() {
            crate::given_option::URL => reason.to_owned(),
            name => format!("--{name}: {reason}"),
        };
        return Err(JobRefusal::Job(job_error_from_sqlite_or_io::job_error(&path, text)));
    }
    let directory = job_directory(&path).map_err(JobRefusal::Job)?;
    parsed.global.job = Some(ResumableJobArgs { file: path, command, directory, is_stored_command: false });
    Ok(parsed)
}

/// Returns the command line that the job has stored, completed by the secrets and limits of this
/// run. Changes to the directory of the job.
fn continue_job(path: &Path, given: &[crate::given_option::GivenOption], parsed: ParsedArgs) -> Result<ParsedArgs> {
    if !path.exists() {
        let text = "there is no such job; give the URLs to begin one";
        return Err(job_error_from_sqlite_or_io::job_error(path, text));
    }
    let (connection, settings) = open_and_lock_job_file::open_to_read(path)?;
    drop(connection);
    let given = &stored_command_line::with_absolute_files(given)
        .map_err(|error| job_error_from_sqlite_or_io::io_error(path, error))?;
    let words = stored_command_line::continued_command_line(&settings.command, given)
        .map_err(|text| job_error_from_sqlite_or_io::job_error(path, text))?;
    if !stored_command_line::has_only_changeable_options(given) {
        // Its relative file names would be those of another directory.
        open_and_lock_job_file::check_same_directory(path, &settings, &job_directory(path)?)?;
    }
    let file = absolute(path)?;
    std::env::set_current_dir(&settings.directory).map_err(|error| {
        let text = format!("{}: failed to enter its directory {}", path.display(), settings.directory.display());
        Error::with_source(ErrorKind::Setup, text, error)
    })?;
    let stored = parse_recorded(words, &mut SystemFilesAndEnvironment).map_err(|error| {
        let text = format!("its command line is refused by this haul: {error}");
        job_error_from_sqlite_or_io::job_error(path, text)
    })?;
    let mut all = ParsedArgs { given: None, secrets: parsed.secrets, ..stored };
    let StoredJobSettings { command, directory, .. } = settings;
    all.global.job = Some(ResumableJobArgs { file, command, directory, is_stored_command: true });
    Ok(all)
}

/// Returns true if a command line has no URL and no list of URLs.
fn lacks_urls(parsed: &ParsedArgs) -> bool {
    parsed.groups.iter().all(|group| group.urls.is_empty())
}

/// Returns the working directory of this process. Error messages name `path`, the job's file.
fn job_directory(path: &Path) -> Result<PathBuf> {
    std::env::current_dir().map_err(|error| job_error_from_sqlite_or_io::io_error(path, error))
}

fn absolute(path: &Path) -> Result<PathBuf> {
    std::path::absolute(path).map_err(|error| job_error_from_sqlite_or_io::io_error(path, error))
}

/// Returns the name of a job's file for a message, without control characters.
fn shown_name(path: &OsStr) -> String {
    crate::usage_error::remove_control_characters(&path.to_string_lossy())
}
