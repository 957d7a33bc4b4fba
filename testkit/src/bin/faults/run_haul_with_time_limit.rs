//! Runs haul once, under a hard time limit.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

pub(crate) use testkit::run_with_time_limit::ChildOutcome;
use testkit::run_with_time_limit::run;

use crate::Result;
use crate::fault_cases::TestedVersion;

/// The haul program under test: its path, its environment, and what it supports.
pub(crate) struct HaulProgram {
    path: PathBuf,
    home: PathBuf,
    ca: PathBuf,
    pub(crate) version: String,
    /// True if this build of haul supports `--split`.
    pub(crate) splits: bool,
}

/// A command line of haul, its time limits, and the way in which its output is read.
#[derive(Clone)]
pub(crate) struct HaulCommand {
    pub(crate) url: String,
    /// The file name after `-o`; `None` if haul writes the body to a pipe.
    pub(crate) file: Option<PathBuf>,
    /// Further URLs, each with its output file, that haul fetches in parallel with the first.
    /// Complete files are skipped (`--skip-existing`).
    pub(crate) more: Vec<(String, PathBuf)>,
    /// The version of HTTP. HTTP/2 is chosen by ALPN over TLS, with prior knowledge over plain
    /// HTTP. HTTP/3 needs an https URL.
    pub(crate) version: TestedVersion,
    /// True to add `--split 1` to the command line.
    pub(crate) one_stream: bool,
    pub(crate) max_time: Duration,
    /// The time after which haul counts as hanging and is killed.
    pub(crate) limit: Duration,
    /// The rate at which haul's standard output is read, in bytes a second; `None` for no limit.
    pub(crate) reader: Option<u64>,
}

impl HaulProgram {
    pub(crate) fn probe(path: &Path, work: &Path, ca_pem: &str) -> Result<HaulProgram> {
        let path = path.canonicalize().map_err(|error| format!("{}: {error}", path.display()))?;
        let said = |arguments: &[&str]| -> Result<String> {
            let output = Command::new(&path).args(arguments).stdin(Stdio::null()).output()?;
            Ok(String::from_utf8_lossy(&output.stdout).into_owned())
        };
        let version = said(&["--version"])?.lines().next().unwrap_or_default().to_owned();
        let splits = said(&["--help", "all"])?.contains("--split ");
        let (home, ca) = (work.join("home"), work.join("ca.pem"));
        std::fs::create_dir(&home)?;
        std::fs::write(&ca, ca_pem)?;
        Ok(HaulProgram { path, home, ca, version, splits })
    }

    fn command(&self, job: &HaulCommand) -> Command {
        let mut command = Command::new(&self.path);
        // Without the proxy, config file and language of the user who runs this.
        command.env_clear().env("HOME", &self.home).env("LC_ALL", "C");
        command.args(["-q", "-sS", "--retry", "3", "--retry-delay", "0.01", "--cacert"]).arg(&self.ca);
        command.args(["--max-time", &job.max_time.as_secs_f64().to_string()]);
        if self.splits && job.one_stream {
            command.args(["--split", "1"]);
        }
        command.arg(match (job.version, job.url.starts_with("https:")) {
            (TestedVersion::Http1, _) => "--http1.1",
            (TestedVersion::Http2, true) => "--http2",
            (TestedVersion::Http2, false) => "--http2-prior-knowledge",
            (TestedVersion::Http3, _) => "--http3-only",
        });
        if !job.more.is_empty() {
            command.arg("--skip-existing");
        }
        if let Some(file) = &job.file {
            command.arg("-o").arg(file);
        }
        command.arg(&job.url);
        for (url, file) in &job.more {
            command.arg("-o").arg(file).arg(url);
        }
        command.stdin(Stdio::null()).stderr(Stdio::piped());
        command.stdout(if job.file.is_some() { Stdio::null() } else { Stdio::piped() });
        command
    }

    /// Starts haul without waiting for its end.
    pub(crate) fn spawn(&self, job: &HaulCommand) -> Result<Child> {
        Ok(self.command(job).stderr(Stdio::null()).spawn()?)
    }

    /// Runs haul until it ends. Each piece of its standard output is passed to `on_output`.
    pub(crate) fn run(&self, job: &HaulCommand, mut on_output: impl FnMut(&[u8])) -> Result<ChildOutcome> {
        let mut command = self.command(job);
        Ok(run(&mut command, job.limit, |bytes| {
            on_output(bytes);
            if let Some(rate) = job.reader {
                thread::sleep(Duration::from_secs_f64(bytes.len() as f64 / rate as f64));
            }
        })?)
    }
}
