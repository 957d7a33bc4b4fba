//! The commands `haul job …`, which show and change a job.
//!
//! ```
//! use haul_cli::job::is_called;
//!
//! let words = |words: &[&str]| is_called(&words.iter().map(Into::into).collect::<Vec<_>>());
//! assert!(words(&["haul", "job", "status", "f"]));
//! assert!(!words(&["haul", "http://job/"]));
//! ```

mod finished_or_failed_urls;
mod retry;
mod status;
mod url_counts_by_state;

use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};

use haul::{Error, ErrorKind, Result};

use super::job_error_from_sqlite_or_io::{database_error, job_error};
use super::open_and_lock_job_file::JobFile;
use crate::file_and_environment_access::print_error_line;
use crate::program_persona::ProgramPersona;
use crate::run::report::error_message;

const HELP: &str = "\
Usage: haul job <command> [options] <file>

 status [--json] FILE    Show the state of a job: counts, causes of failures, rate, time left
 list FILE               Print the finished URLs with their states
   --failed              the failed URLs alone, one a line, as --input-file reads them
   --changed, --vanished, --new, --fresh
                         the URLs with this result in the last refresh alone, one a line
 retry [options] FILE    Set URLs back, so that the next run fetches them again. Without an option
                         all failed ones.
   --status N            those that failed with the status N, or 5xx for a class
   --cause N             those that failed with the exit code N
   --url TEXT            those whose URL contains TEXT
   --all                 everything; the output begins anew
 report FILE             Print a page about the job, as one HTML file: haul job report FILE > report.html
 vacuum FILE             Give unused space of the file back to the disk

A job is the file of --job FILE. `haul --job FILE` goes on with it.
";

/// Returns true if the command line of a program is `haul job …`.
#[must_use]
pub fn is_called(words: &[OsString]) -> bool {
    let (persona, rest) = ProgramPersona::from_words(words.iter().cloned());
    !persona.is_curl() && rest.first().is_some_and(|first| first == "job")
}

/// Runs the command `haul job …`. `words` is the whole command line. Returns the exit code.
#[must_use]
pub fn run(words: &[OsString]) -> u8 {
    match run_subcommand(&words[2.min(words.len())..]) {
        Ok(text) => print(text.as_bytes()),
        Err(error) => {
            print_error_line(&error_message::error_line(ProgramPersona::Haul, &error, None));
            error.exit_code()
        }
    }
}

/// Prints a text on standard output. Returns 0, or the exit code for a write error. A pipe that its
/// reader has closed is not an error.
fn print(text: &[u8]) -> u8 {
    match std::io::stdout().write_all(text).and_then(|()| std::io::stdout().flush()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            print_error_line(&format!("haul: (23) failed to write the output: {error}"));
            ErrorKind::Write.exit_code()
        }
        _ => 0,
    }
}

fn run_subcommand(words: &[OsString]) -> Result<String> {
    let Some((command, rest)) = words.split_first() else { return Ok(HELP.to_owned()) };
    let arguments = JobCommandArguments::parse(rest)?;
    match command.to_str().unwrap_or_default() {
        "--help" | "-h" | "help" => Ok(HELP.to_owned()),
        _ if arguments.asks_help => Ok(HELP.to_owned()),
        "status" => status::status_text(&arguments.only_path(&["json"])?, arguments.has("json")),
        "list" => {
            let path = arguments.only_path(&["failed", "fresh", "changed", "new", "vanished"])?;
            finished_or_failed_urls::print(&path, &arguments).map(|()| String::new())
        }
        "report" => super::report::page(&arguments.only_path(&[])?),
        "retry" => retry::reset_urls(&arguments.only_path(&["status", "cause", "url", "all"])?, &arguments),
        "vacuum" => vacuum(&arguments.only_path(&[])?),
        other => Err(misuse_error(format!(
            "{}: no such command of 'haul job', which has status, list, retry, report and vacuum",
            crate::usage_error::printable(other.as_bytes())
        ))),
    }
}

fn misuse_error(text: impl Into<String>) -> Error {
    Error::new(ErrorKind::Setup, text.into())
}

/// The arguments of a `haul job` command: options with their values, and one file.
struct JobCommandArguments {
    options: Vec<(String, Option<String>)>,
    files: Vec<PathBuf>,
    asks_help: bool,
}

/// The options of `haul job` commands that take a value.
const OPTIONS_WITH_VALUE: [&str; 3] = ["status", "cause", "url"];

impl JobCommandArguments {
    fn parse(words: &[OsString]) -> Result<Self> {
        let mut parsed = Self { options: Vec::new(), files: Vec::new(), asks_help: false };
        let mut words = words.iter();
        let mut takes_options = true;
        while let Some(word) = words.next() {
            let text = word.to_str().unwrap_or_default();
            let name = text.strip_prefix("--").filter(|_| takes_options);
            match name {
                Some("") => takes_options = false,
                Some("help") => parsed.asks_help = true,
                Some(name) => {
                    let (name, value) = match name.split_once('=') {
                        Some((name, value)) => (name, Some(value.to_owned())),
                        None if OPTIONS_WITH_VALUE.contains(&name) => {
                            let value = words.next().and_then(|value| value.to_str()).map(str::to_owned);
                            (
                                name,
                                Some(value.ok_or_else(|| misuse_error(format!("option --{name}: requires a value")))?),
                            )
                        }
                        None => (name, None),
                    };
                    parsed.options.push((name.to_owned(), value));
                }
                None if takes_options && text == "-h" => parsed.asks_help = true,
                None => parsed.files.push(word.into()),
            }
        }
        Ok(parsed)
    }

    /// Returns the path of the job's file, the only argument of a `haul job` command besides the
    /// options. Refuses options that are not in `options`.
    fn only_path(&self, options: &[&str]) -> Result<PathBuf> {
        if let Some((name, _)) = self.options.iter().find(|(name, _)| !options.contains(&name.as_str())) {
            let name = crate::usage_error::printable(name.as_bytes());
            return Err(misuse_error(format!("option --{name}: is unknown to this command; see 'haul job --help'")));
        }
        match self.files.as_slice() {
            [file] => Ok(file.clone()),
            [] => Err(misuse_error("no job specified; name its file")),
            _ => Err(misuse_error("one job at a time; name one file")),
        }
    }

    fn has(&self, option: &str) -> bool {
        self.options.iter().any(|(name, _)| name == option)
    }

    fn value(&self, option: &str) -> Option<&str> {
        self.options.iter().rev().find(|(name, _)| name == option)?.1.as_deref()
    }
}

/// Shrinks a job's file by its unused space (SQLite's `VACUUM`). Returns a text for the user.
fn vacuum(path: &Path) -> Result<String> {
    let (file, _) = JobFile::open(path, false)?;
    let size = || std::fs::metadata(path).map_or(0, |metadata| metadata.len());
    let before = size();
    let done = file.connection.execute_batch("PRAGMA temp_store = FILE; VACUUM; PRAGMA wal_checkpoint(TRUNCATE);");
    done.map_err(|error| database_error(path, error))?;
    let after = size();
    drop(file);
    let name = super::shown_name(path.as_os_str());
    Ok(format!("{name}: {after} bytes, {} fewer\n", before.saturating_sub(after)))
}

/// Returns the error for a refused change of the job at `path`.
fn refused_change_error(path: &Path, text: &str) -> Error {
    job_error(path, text)
}
