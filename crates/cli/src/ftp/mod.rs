//! The personas `ftp` and `fetch`, for package managers that call ftp(1) or fetch(1) for each file.
//! haul is called as `haul ftp ...`, as `haul fetch ...`, or by one of these names.
//!
//! ```text
//!  ftp -o - https://mirror/index/            the index: compressed on the way, plain on standard output
//!  ftp -o - https://mirror/a.tgz             a package: its beginning, and the rest if the reader wants it
//!  fetch -Fpr -S SIZE https://mirror/a.tgz   a file: resumed, of that length, with the server's date
//! ```
//!
//! Programs parse the messages on standard error. pkg_add acts on `Redirected to`, on
//! `Error retrieving` and on `connect: Connection timed out`, and shows its user every line that it
//! does not know. So haul prints the messages of ftp. A reader that closes the output early is no
//! error, and causes no message.
//!
//! ```
//! use haul_cli::ftp::{FtpProgram, called_program};
//!
//! let words = |words: &[&str]| called_program(&words.iter().map(Into::into).collect::<Vec<_>>());
//! assert_eq!(words(&["/usr/bin/ftp", "-V", "u"]), Some((FtpProgram::Ftp, vec!["-V".into(), "u".into()])));
//! assert_eq!(words(&["haul", "fetch", "u"]), Some((FtpProgram::Fetch, vec!["u".into()])));
//! assert_eq!(words(&["haul", "u", "ftp"]), None);
//! ```
//!
//! Not supported: the FTP protocol.

mod copy_file;
pub mod freebsd_fetch_args;
pub mod ftp_command_args;
mod ftp_or_fetch_program;
mod help;
pub(crate) mod signify_first_fetch_length;

use std::ffi::OsString;
use std::io::{self, IsTerminal, Write};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, UNIX_EPOCH};

use haul::net::dns::AddressFamily;
use haul::net::local_address::LocalInterface;
use haul::net::proxy::{ProxyEnvironment, ProxyOptions};
use haul::request::{RequestOptions, SplitDownloadOptions};
use haul::sink::file::{AppendPosition, FileOptions};
use haul::sink::temporary_and_final_names::directory_of;
use haul::state::cookie_jar::SharedCookieJar;
use haul::transfer::TransferOutcome;
use haul::{Client, Error, ErrorKind, Result, Target};
use haul_policy::redirect::RedirectRules;
use haul_policy::retry::RetryRules;
use rustix::fs::{Access, access};

use crate::agent::fetch_via_agent_or_directly::AgentFetcher;
use crate::agent::sinks_without_agent::NOT_MODIFIED;
use crate::file_and_environment_access::{Stdout, print_error_line};
use crate::run::report::file_metadata;
use crate::usage_error::one_line;
use ftp_command_args::{FreebsdFetchArgs, FtpArgs, FtpOutput};
pub use ftp_or_fetch_program::FtpProgram;
pub(crate) use help::{FETCH as FETCH_HELP, FTP as FTP_HELP};

/// The maximum wait before a retry, even if the `Retry-After` of the response is longer. A longer
/// wait would surprise the user, who does not see the reason.
const MAX_RETRY_WAIT: Duration = Duration::from_secs(60);

/// Returns the program and its arguments if the command line calls haul as ftp(1) or fetch(1), and
/// `None` otherwise. The first of `words` is the program's name.
#[must_use]
pub fn called_program(words: &[OsString]) -> Option<(FtpProgram, Vec<OsString>)> {
    if let Some(program) = FtpProgram::from_word(Path::new(words.first()?).file_name()?) {
        return Some((program, words[1..].to_vec()));
    }
    FtpProgram::from_word(words.get(1)?).map(|program| (program, words[2..].to_vec()))
}

/// Fetches the URLs of a command line of ftp(1) or fetch(1). Returns the exit code of the process:
/// 0, or 1 if a URL failed.
#[must_use]
pub fn run(program: FtpProgram, words: Vec<OsString>) -> u8 {
    if words.iter().take_while(|word| *word != "--").any(|word| word == "--help") {
        return u8::from(Stdout.write_all(help_text(program).as_bytes()).is_err());
    }
    let args = match program {
        FtpProgram::Ftp => FtpArgs::parse(words),
        FtpProgram::Fetch => freebsd_fetch_args::parse(words),
    };
    let mut args = match args {
        Ok(args) => args,
        Err(message) => {
            print_error_line(&format!("{}: {message}", program.name()));
            return 1;
        }
    };
    args.agent = args.agent.or_else(|| {
        crate::build_plan::agent_from_variable(haul::trusted_environment_variables::variable("HAUL_AGENT"))
    });
    let fetcher = FtpCommandRun { name: args.name.clone().unwrap_or_else(|| program.name().to_owned()), args };
    match fetcher.run() {
        Ok(code) => code,
        Err(error) => {
            fetcher.print_message(&one_line(&error.to_string()));
            1
        }
    }
}

/// Returns the text that `haul ftp --help` or `haul fetch --help` prints.
fn help_text(program: FtpProgram) -> &'static str {
    match program {
        FtpProgram::Ftp => FTP_HELP,
        FtpProgram::Fetch => FETCH_HELP,
    }
}

struct FtpCommandRun {
    args: FtpArgs,
    name: String,
}

impl FtpCommandRun {
    fn run(&self) -> Result<u8> {
        let options = self.options()?;
        let client = Client::new();
        let mut fetcher = match &self.args.agent {
            None => AgentFetcher::without_agent(&client),
            Some(agent) => AgentFetcher::with_agent(&client, agent).unwrap_or_else(|refusal| {
                self.print_message(&format!("the agent is not used: {}", one_line(&refusal.to_string())));
                AgentFetcher::without_agent(&client)
            }),
        };
        for url in &self.args.urls {
            if self.fetch(&mut fetcher, &options, url)? != 0 {
                return Ok(1);
            }
        }
        Ok(0)
    }

    /// Returns the request options that apply to all URLs of the command line.
    fn options(&self) -> Result<RequestOptions> {
        let args = &self.args;
        let mut options = RequestOptions {
            fail: true,
            redirects: RedirectRules::default(),
            retry: RetryRules { cap: MAX_RETRY_WAIT, ..RetryRules::default() },
            split: SplitDownloadOptions { connections: 1, ..SplitDownloadOptions::default() },
            family: match args.family {
                Some(4) => AddressFamily::V4,
                Some(6) => AddressFamily::V6,
                _ => AddressFamily::Any,
            },
            ..RequestOptions::default()
        };
        if let Some(user_agent) = &args.user_agent {
            options.user_agent = Some(user_agent.as_str().into()).filter(|agent: &Vec<u8>| !agent.is_empty());
        }
        if let Some(limit) = args.connect_timeout {
            options.connect.timeout = limit;
        }
        if let Some(fetch) = &args.fetch {
            options.redirects.permanent_only = fetch.refuses_temporary_redirects;
            options.read_timeout = fetch.timeout;
            if let Some(wait) = fetch.retry_after {
                options.retry = RetryRules { max: u32::MAX, delay: Some(wait), ..RetryRules::default() };
            }
        }
        if let Some(source) = &args.source {
            options.connect.interface = Some(LocalInterface { device: None, host: Some(source.clone()) });
        }
        options.tls.verify = !args.insecure;
        options.tls.common_name = true;
        options.tls.ca_file.clone_from(&args.ca_file);
        options.tls.ca_path.clone_from(&args.ca_path);
        options.tls.require_status = args.requires_status;
        options.tls.min_version = args.min_tls.unwrap_or(options.tls.min_version);
        options.tls.max_version = args.max_tls.unwrap_or(options.tls.max_version);
        options.tls.alpn = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        if !args.fetch.as_ref().is_some_and(|fetch| fetch.direct) {
            options.proxy = Some(match args.fetch {
                None => proxies_from_ftp_variables(),
                Some(_) => ProxyOptions::from_environment(),
            });
        }
        let cookies = args
            .cookies
            .clone()
            .or_else(|| haul::trusted_environment_variables::variable("http_cookies").map(PathBuf::from));
        if let Some(file) = cookies.filter(|file| !file.as_os_str().is_empty()) {
            let jar = SharedCookieJar::new();
            jar.import(&file)?;
            options.jar = Some(jar);
        }
        Ok(options)
    }

    fn fetch(&self, fetcher: &mut AgentFetcher<'_>, options: &RequestOptions, url: &str) -> Result<u8> {
        if let Some(path) = copy_file::file_url_path(url).filter(|_| self.args.fetch.is_none()) {
            return Ok(self.copy(path));
        }
        let target = match Target::parse(url) {
            Ok(target) => target,
            Err(error) => {
                self.print_message(&format!("{}: {error}", crate::usage_error::shown_url(url)));
                return Ok(1);
            }
        };
        if self.is_verbose() {
            print_error_line(&format!("Requesting {}", target.to_url()));
        }
        let is_list = target.path().ends_with('/');
        if is_list && self.args.output == FtpOutput::Named && self.args.fetch.is_none() {
            self.print_message(&unnamed_file_message(&target.to_url()));
            return Ok(1);
        }
        let Some(path) = self.output_path(&target)? else {
            // A list is text, and read to its end.
            let mut options = RequestOptions { decode: is_list, ..options.clone() };
            if !is_list && self.args.fetch.is_none() {
                // pkg_add itself tries six times, for each package and each mirror. But it does not
                // repair a connection that breaks.
                options.retry.only_resets = true;
            }
            let outcome = fetcher.fetch_to_descriptor(url, &options, io::stdout().as_fd());
            return Ok(self.report(&target, &outcome));
        };
        let outcome = self.fetch_to_file(fetcher, options, url, &path);
        let code = self.report(&target, &outcome);
        match &self.args.fetch {
            _ if code != 0 => Ok(code),
            Some(fetch) => self.check_fetched_file(fetch, url, &path, &outcome),
            None if outcome.facts.status == NOT_MODIFIED => {
                self.print_message("File is not modified on the server");
                Ok(1)
            }
            None => self.set_modification_time(&path, &outcome).map(|()| 0),
        }
    }

    /// Copies the local file `from` of a `file:PATH` URL to the output. Returns the exit code of
    /// the process: 0, or 1 after a failure.
    fn copy(&self, from: &str) -> u8 {
        let started = Instant::now();
        match copy_file::copy(from, &self.args.output) {
            Ok(bytes) => {
                self.print_rate(bytes, started.elapsed());
                0
            }
            Err(line) => {
                if let Some(line) = line {
                    self.print_message(&line);
                }
                1
            }
        }
    }

    /// Sets the modification time of the downloaded file to the server's `Last-Modified`. Does
    /// nothing if `-u` of ftp(1) or `-n` of fetch(1) is given.
    fn set_modification_time(&self, path: &Path, outcome: &TransferOutcome) -> Result<()> {
        if !self.args.ignores_server_date
            && let Some(head) = &outcome.head
            && path.metadata().is_ok_and(|metadata| metadata.is_file())
        {
            file_metadata::set_modification_time(path, head)
                .map_err(|error| Error::with_source(ErrorKind::Write, path.display().to_string(), error))?;
        }
        Ok(())
    }

    fn fetch_to_file(
        &self,
        fetcher: &mut AgentFetcher<'_>,
        options: &RequestOptions,
        url: &str,
        path: &Path,
    ) -> TransferOutcome {
        let there = path.metadata().ok().filter(std::fs::Metadata::is_file);
        let mut options = options.clone();
        // sysupgrade and syspatch create the file for a user who may write it, in a directory that
        // this user may not write.
        let in_place = there.is_some() && !may_create_files_beside(path);
        if self.args.resumes && there.is_some() {
            let how = FileOptions { append: Some(AppendPosition::AtEnd), ..FileOptions::default() };
            let outcome = fetcher.fetch_to_file(url, &options, path, &how);
            // A server without ranges has to send it all.
            if outcome.result.as_ref().err().is_none_or(|error| error.kind() != ErrorKind::Range) {
                return outcome;
            }
        }
        if let Some(changed) = there.filter(|_| self.args.newer).and_then(|there| there.modified().ok())
            && let Ok(since) = changed.duration_since(UNIX_EPOCH)
        {
            let date = crate::date::http_date(since.as_secs());
            options.fields.push(("If-Modified-Since".to_owned(), date.into_bytes()));
        }
        options.max_size = self.args.fetch.as_ref().and_then(|fetch| fetch.length);
        fetcher.fetch_to_file(url, &options, path, &FileOptions { in_place, ..FileOptions::default() })
    }

    /// Checks that a downloaded file has the length that fetch(1)'s `-S` requires, and sets its
    /// modification time. Returns the exit code of the process.
    fn check_fetched_file(
        &self,
        fetch: &FreebsdFetchArgs,
        url: &str,
        path: &Path,
        outcome: &TransferOutcome,
    ) -> Result<u8> {
        let failed = |error| Error::with_source(ErrorKind::Write, path.display().to_string(), error);
        let actual = path.metadata().map_err(failed)?.len();
        if let Some(expected) = fetch.length.filter(|expected| *expected != actual) {
            self.print_message(&size_mismatch_message(
                &crate::usage_error::shown_url(url),
                expected,
                &actual.to_string(),
            ));
            // The file is not the one that the caller expects. But a resumed file belongs to the
            // caller.
            if !self.args.resumes {
                std::fs::remove_file(path).map_err(failed)?;
            }
            return Ok(1);
        }
        self.set_modification_time(path, outcome)?;
        Ok(0)
    }

    fn output_path(&self, target: &Target) -> Result<Option<PathBuf>> {
        Ok(match &self.args.output {
            FtpOutput::Stdout => None,
            // fetch(1) puts the file into a directory.
            FtpOutput::File(path) if self.args.fetch.is_some() && path.is_dir() => Some(path.join(file_name(target)?)),
            FtpOutput::File(path) => Some(path.clone()),
            FtpOutput::Named => Some(file_name(target)?),
        })
    }

    fn is_verbose(&self) -> bool {
        self.args.verbose.unwrap_or_else(|| io::stderr().is_terminal())
    }

    /// Prints a message if the transfer was redirected to another origin, and another if it failed.
    /// If it succeeded, prints its rate if messages are verbose. Returns the exit code of the
    /// process.
    fn report(&self, target: &Target, outcome: &TransferOutcome) -> u8 {
        if self.args.verbose != Some(false) && outcome.facts.redirects > 0 && outcome.target.origin() != target.origin()
        {
            print_error_line(&format!("Redirected to {}", outcome.target.to_url()));
        }
        let Err(error) = &outcome.result else {
            self.print_rate(outcome.facts.body_bytes, outcome.facts.total);
            return 0;
        };
        let line = match &self.args.fetch {
            None => error_message(target, outcome, error),
            Some(fetch) => fetch_error_message(fetch, target, outcome, error),
        };
        if let Some(line) = line {
            self.print_message(&line);
        }
        1
    }

    fn print_rate(&self, bytes: u64, took: Duration) {
        if self.is_verbose() {
            let seconds = took.as_secs_f64();
            let rate = bytes as f64 / 1024.0 / seconds.max(1e-6);
            print_error_line(&format!("{bytes} bytes received in {seconds:.2} seconds ({rate:.2} KB/s)"));
        }
    }

    fn print_message(&self, message: &str) {
        print_error_line(&format!("{}: {message}", self.name));
    }
}

/// Returns the name of the file for a URL: the last segment of its path.
fn file_name(target: &Target) -> Result<PathBuf> {
    haul_policy::filename::from_target(target)
        .map(PathBuf::from)
        .map_err(|error| Error::new(ErrorKind::Write, error.to_string()).with_url(target.to_url()))
}

/// Returns true if this process may create files in the directory of `path`. This is needed to
/// write a download to a new file and rename the file to `path`.
fn may_create_files_beside(path: &Path) -> bool {
    access(directory_of(path), Access::WRITE_OK | Access::EXEC_OK).is_ok()
}

/// Returns the proxies that the environment variables name. For https URLs, `http_proxy` is used if
/// no variable for https is set, as in ftp(1): pkg_add does not set `https_proxy`.
fn proxies_from_ftp_variables() -> ProxyOptions {
    let variable = |name: &str| haul::trusted_environment_variables::variable(name).filter(|value| !value.is_empty());
    let environment = ProxyEnvironment::from_variables(|name| {
        // What https looks for last.
        let value = variable(name).or_else(|| if name == "ALL_PROXY" { variable("http_proxy") } else { None });
        value.map(OsString::into_vec)
    });
    let mut proxies = ProxyOptions::default();
    proxies.environment = environment;
    proxies
}

/// Returns the error message of ftp(1) for a URL that ends without a file name, if `-o` does not
/// name the file.
fn unnamed_file_message(url: &str) -> String {
    format!("No filename after directory (use -o): {url}")
}

/// Returns the error message of ftp(1) for a failed transfer. Returns `None` if the transfer failed
/// because the reader of standard output closed it early.
fn error_message(target: &Target, outcome: &TransferOutcome, error: &Error) -> Option<String> {
    let url = target.to_url();
    Some(match error.kind() {
        ErrorKind::Write if is_broken_pipe(error) => return None,
        // It was a proxy's.
        ErrorKind::Status if outcome.facts.status == 0 => one_line(&error.to_string()),
        ErrorKind::Status => {
            format!("Error retrieving {url}: {} {}", outcome.facts.status, reason_phrase(outcome)).trim_end().into()
        }
        ErrorKind::Timeout => "connect: Connection timed out".to_owned(),
        ErrorKind::Connect if outcome.facts.connect_status >= 300 => one_line(&error.to_string()),
        ErrorKind::Connect if error.to_string().contains("refused") => "connect: Connection refused".to_owned(),
        ErrorKind::Connect => format!("connect: {}", one_line(&error.cause())),
        ErrorKind::Resolve => format!("{}: no address associated with name", target.host_text()),
        _ => one_line(&error.to_string()),
    })
}

/// Returns the error message of fetch(1) for a failed transfer, which begins with the URL. Returns
/// `None` if the transfer failed because the reader of standard output closed it early.
fn fetch_error_message(
    fetch: &FreebsdFetchArgs,
    target: &Target,
    outcome: &TransferOutcome,
    error: &Error,
) -> Option<String> {
    let url = target.to_url();
    Some(match error.kind() {
        ErrorKind::Write if is_broken_pipe(error) => return None,
        ErrorKind::TooManyRedirects if fetch.refuses_temporary_redirects => match outcome.facts.status {
            302 => format!("{url}: Moved Temporarily"),
            303 => format!("{url}: See Other"),
            307 => format!("{url}: Temporary Redirect"),
            _ => format!("{url}: {}", one_line(&error.cause())),
        },
        ErrorKind::Status => match reason_phrase(outcome) {
            reason if reason.is_empty() => format!("{url}: {}", outcome.facts.status),
            reason => format!("{url}: {reason}"),
        },
        ErrorKind::TooLarge if fetch.length.is_some() => {
            let length = outcome.head.as_ref().and_then(|head| head.get("content-length"));
            let actual = length.map_or("more".into(), |length| one_line(&String::from_utf8_lossy(length)));
            size_mismatch_message(&url, fetch.length.unwrap_or_default(), &actual)
        }
        _ => format!("{url}: {}", one_line(&error.cause())),
    })
}

fn size_mismatch_message(url: &str, expected: u64, actual: &str) -> String {
    format!("{url}: size mismatch: expected {expected}, actual {actual}")
}

/// Returns true if the error is `EPIPE`: the reader of standard output has closed it early.
fn is_broken_pipe(error: &Error) -> bool {
    error.io_source().map(io::Error::kind) == Some(io::ErrorKind::BrokenPipe)
}

/// Returns the reason phrase of the response's status line, without control characters. If the
/// response has none, as in HTTP/2, returns the standard phrase for the status. Callers search for
/// the phrase (fw_update for "404 Not Found").
fn reason_phrase(outcome: &TransferOutcome) -> String {
    let head = outcome.head.as_ref();
    let given = head.map(|head| one_line(&String::from_utf8_lossy(head.reason()))).unwrap_or_default();
    if !given.is_empty() {
        return given;
    }
    let usual = match outcome.facts.status {
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        410 => "Gone",
        429 => "Too Many Requests",
        500 => "Internal Server Error",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        _ => "",
    };
    usual.to_owned()
}
