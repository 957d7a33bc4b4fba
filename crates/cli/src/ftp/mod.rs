//! The persona `ftp`: what a package manager that calls ftp(1) for each file gets (`haul ftp ...`, or the name `ftp`).
//!
//! ```text
//!  FETCH_CMD -o - https://mirror/index/       the list: compressed on the way, plain on standard output
//!  FETCH_CMD -o - https://mirror/a.tgz        a package: an opening, and the rest when its reader wants it
//! ```
//!
//! What is said on standard error is a protocol of its own: pkg_add acts on `Redirected to`, on `Error retrieving`, on
//! `connect: Connection timed out`, and shows its user every line that it does not know. So the messages are ftp's; and a
//! reader that stops early is no error, and nothing is said of it.
//!
//! ```
//! use haul_cli::ftp::called;
//!
//! let words = |words: &[&str]| called(words.iter().map(Into::into).collect());
//! assert_eq!(words(&["/usr/bin/ftp", "-V", "u"]), Some(vec!["-V".into(), "u".into()]));
//! assert_eq!(words(&["haul", "ftp", "u"]), Some(vec!["u".into()]));
//! assert_eq!(words(&["haul", "u", "ftp"]), None);
//! ```
//!
//! Left out: everything about the FTP protocol.

pub mod args;

use std::ffi::OsString;
use std::fmt::Write as _;
use std::io::{IsTerminal, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use haul::net::dns::Family;
use haul::net::local::Interface;
use haul::net::proxy::ProxyOptions;
use haul::request::{RequestOptions, Split};
use haul::sink::file::{Append, FileOptions};
use haul::state::jar::Jar;
use haul::transfer::Outcome;
use haul::{Client, Error, ErrorKind, Result, Target};
use haul_policy::proxy::Environment;
use haul_policy::redirect::RedirectRules;
use haul_policy::retry::RetryRules;

use crate::run::carrier::Carrier;
use crate::usage::one_line;
use args::{Args, Output};

/// The arguments, if the program was called by this persona's name.
#[must_use]
pub fn called(mut words: Vec<OsString>) -> Option<Vec<OsString>> {
    let is_name =
        |word: Option<&OsString>| word.is_some_and(|word| Path::new(word).file_name() == Some("ftp".as_ref()));
    if is_name(words.first()) {
        return Some(words.split_off(1));
    }
    (words.get(1)? == "ftp").then(|| words.split_off(2))
}

/// Does what the command line says; the answer is ftp's exit code: 0, or 1 when something failed.
#[must_use]
pub fn run(words: Vec<OsString>) -> u8 {
    let mut args = match Args::parse(words) {
        Ok(args) => args,
        Err(message) => {
            say(&format!("ftp: {message}"));
            return 1;
        }
    };
    args.agent = args.agent.or_else(|| crate::resolve::agent_of(std::env::var("HAUL_AGENT").ok()));
    let fetcher = Fetcher { name: args.name.clone().unwrap_or_else(|| "ftp".to_owned()), args };
    match fetcher.run() {
        Ok(code) => code,
        Err(error) => {
            fetcher.say(&one_line(&error.to_string()));
            1
        }
    }
}

struct Fetcher {
    args: Args,
    name: String,
}

impl Fetcher {
    fn run(&self) -> Result<u8> {
        let options = self.options()?;
        let client = Client::new();
        let mut carrier = match &self.args.agent {
            None => Carrier::alone(&client),
            Some(agent) => Carrier::with_agent(&client, agent).unwrap_or_else(|refusal| {
                self.say(&format!("the agent is not used: {}", one_line(&refusal.to_string())));
                Carrier::alone(&client)
            }),
        };
        for url in &self.args.urls {
            if self.fetch(&mut carrier, &options, url)? != 0 {
                return Ok(1);
            }
        }
        Ok(0)
    }

    /// What all requests have in common.
    fn options(&self) -> Result<RequestOptions> {
        let args = &self.args;
        let mut options = RequestOptions {
            fail: true,
            redirects: RedirectRules::default(),
            retry: RetryRules::default(),
            split: Split { connections: 1, ..Split::default() },
            family: match args.family {
                Some(4) => Family::V4,
                Some(6) => Family::V6,
                _ => Family::Any,
            },
            ..RequestOptions::default()
        };
        if let Some(user_agent) = &args.user_agent {
            options.user_agent = Some(user_agent.clone()).filter(|text| !text.is_empty());
        }
        if let Some(limit) = args.connect_timeout {
            options.connect.timeout = limit;
        }
        if let Some(source) = &args.source {
            options.connect.interface = Some(Interface { device: None, host: Some(source.clone()) });
        }
        options.tls.verify = !args.insecure;
        options.tls.ca_file.clone_from(&args.ca_file);
        options.tls.ca_path.clone_from(&args.ca_path);
        options.tls.alpn = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        let mut proxy = ProxyOptions::default();
        proxy.environment = Environment::read(|name| std::env::var(name).ok());
        options.proxy = Some(proxy);
        let cookies = args.cookies.clone().or_else(|| std::env::var_os("http_cookies").map(PathBuf::from));
        if let Some(file) = cookies.filter(|file| !file.as_os_str().is_empty()) {
            let jar = Jar::new();
            jar.import(&file)?;
            options.jar = Some(jar);
        }
        Ok(options)
    }

    fn fetch(&self, carrier: &mut Carrier<'_>, options: &RequestOptions, url: &str) -> Result<u8> {
        let target = match Target::parse(url) {
            Ok(target) => target,
            Err(error) => {
                self.say(&format!("{}: {error}", crate::usage::shown_url(url)));
                return Ok(1);
            }
        };
        if self.is_verbose() {
            say(&format!("Requesting {}", target.to_url()));
        }
        let outcome = match self.file_for(&target)? {
            Some(path) => {
                let append = self.args.goes_on.then_some(Append::AtEnd);
                carrier.fetch_to_file(url, options, &path, &FileOptions { append, ..FileOptions::default() })
            }
            None => {
                // A list is text, and read to its end.
                let decode = target.path().ends_with('/');
                let options = RequestOptions { decode, ..options.clone() };
                carrier.fetch_to_descriptor(url, &options, std::io::stdout().as_fd(), true)
            }
        };
        Ok(self.tell(&target, &outcome))
    }

    fn file_for(&self, target: &Target) -> Result<Option<PathBuf>> {
        Ok(match &self.args.output {
            Output::Stdout => None,
            Output::File(path) => Some(path.clone()),
            Output::Named => Some(
                haul_policy::filename::from_target(target)
                    .map_err(|error| Error::new(ErrorKind::Write, error.to_string()).with_url(target.to_url()))?
                    .into(),
            ),
        })
    }

    fn is_verbose(&self) -> bool {
        self.args.verbose.unwrap_or_else(|| std::io::stderr().is_terminal())
    }

    /// Says what became of it; the answer is the exit code.
    fn tell(&self, target: &Target, outcome: &Outcome) -> u8 {
        if outcome.facts.redirects > 0 && outcome.target.origin() != target.origin() {
            say(&format!("Redirected to {}", outcome.target.to_url()));
        }
        let Err(error) = &outcome.result else {
            if self.is_verbose() {
                let seconds = outcome.facts.total.as_secs_f64();
                let rate = outcome.facts.body_bytes as f64 / 1024.0 / seconds.max(1e-6);
                say(&format!("{} bytes received in {seconds:.2} seconds ({rate:.2} KB/s)", outcome.facts.body_bytes));
            }
            return 0;
        };
        if let Some(line) = message(target, outcome, error) {
            self.say(&line);
        }
        1
    }

    fn say(&self, message: &str) {
        say(&format!("{}: {message}", self.name));
    }
}

/// ftp's words for a failure; none for a reader that has seen enough.
fn message(target: &Target, outcome: &Outcome, error: &Error) -> Option<String> {
    use std::io::ErrorKind as Io;
    let url = target.to_url();
    let system = error.io_source().map(std::io::Error::kind);
    Some(match error.kind() {
        ErrorKind::Write if system == Some(Io::BrokenPipe) => return None,
        ErrorKind::Status => {
            let head = outcome.head.as_ref();
            let reason = head.map(|head| String::from_utf8_lossy(head.reason()).into_owned()).unwrap_or_default();
            let mut line = format!("Error retrieving {url}: {}", outcome.facts.status);
            if !reason.is_empty() {
                // The server's words: no control character reaches the terminal.
                let _ = write!(line, " {}", one_line(&reason));
            }
            line
        }
        ErrorKind::Timeout => "connect: Connection timed out".to_owned(),
        ErrorKind::Connect if error.to_string().contains("refused") => "connect: Connection refused".to_owned(),
        ErrorKind::Connect => format!("connect: {}", one_line(&error.cause())),
        ErrorKind::Resolve => format!("{}: no address associated with name", target.host_text()),
        _ => one_line(&error.to_string()),
    })
}

/// A line on standard error; nobody is left to tell when that is closed.
fn say(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}
