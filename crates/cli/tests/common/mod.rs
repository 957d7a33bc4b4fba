//! The command run as a user runs it: the built binary, real shells, curl and strace where they are installed; every wait
//! ends.
#![allow(dead_code, unreachable_pub, reason = "each test program uses a part of it")]

pub mod agent;
pub mod measure;
pub mod servers;

use std::ffi::OsStr;
use std::fs;
use std::io::Read;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use testkit::faulty::Plan;
use testkit::origin::Origin;
use testkit::pattern::Pattern;
use testkit::raw::{RawPeer, Step};

/// Longer than anything here takes; only a hang waits for it.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// A port that nobody listens on: only root may bind it.
pub const REFUSED: &str = "http://127.0.0.1:1";

/// How a command ended and what it said.
#[derive(Debug)]
pub struct CommandOutput {
    /// The exit code; 128 and the signal's number, as a shell puts it, for one that a signal ended.
    pub code: i32,
    pub stdout: Vec<u8>,
    pub stderr: String,
}

impl CommandOutput {
    /// Standard output of a success that said nothing on stderr.
    #[track_caller]
    pub fn ok(self) -> Vec<u8> {
        assert_eq!((self.code, self.stderr.as_str()), (0, ""));
        self.stdout
    }

    /// As [`CommandOutput::ok`], as text.
    #[track_caller]
    pub fn text(self) -> String {
        String::from_utf8(self.ok()).expect("text")
    }

    /// The one line on stderr of a failure with this code.
    #[track_caller]
    pub fn failed(&self, code: i32) -> &str {
        assert_eq!(self.code, code, "{}", self.stderr);
        assert_eq!(self.stderr.lines().count(), 1, "one line: {}", self.stderr);
        self.stderr.trim_end()
    }
}

/// A program that knows nothing of the user's settings.
pub fn program(name: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(name);
    for name in
        ["CURL_CA_BUNDLE", "SSL_CERT_FILE", "http_proxy", "https_proxy", "all_proxy", "ALL_PROXY", "HTTPS_PROXY"]
    {
        command.env_remove(name);
    }
    command.env("HOME", "/nonexistent").env("LC_ALL", "C").stdin(Stdio::null()).process_group(0);
    command
}

/// The path of the command under test.
pub const HAUL: &str = env!("CARGO_BIN_EXE_haul");

/// `haul` with these arguments.
pub fn haul<A: AsRef<OsStr>>(args: impl IntoIterator<Item = A>) -> Command {
    let mut command = program(HAUL);
    command.args(args);
    command
}

/// Runs `haul` with these arguments.
pub fn run_haul<A: AsRef<OsStr>>(args: impl IntoIterator<Item = A>) -> CommandOutput {
    run(&mut haul(args))
}

/// The program's name if it can be run; says on stderr what is left out if not.
pub fn installed(name: &'static str, what: &str) -> Option<&'static str> {
    let found = Command::new(name).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok();
    if !found {
        skipped(&format!("{what}: {name} is not installed"));
    }
    found.then_some(name)
}

/// Says on stderr that something is left out. Not by `eprintln`, which the test harness keeps to itself.
pub fn skipped(what: &str) {
    use std::io::Write;
    let _ = writeln!(std::io::stderr(), "skipped: {what}");
}

/// A line of bash in which `$GET` is this program, and `$0` too.
pub fn bash(get: &str, script: &str) -> CommandOutput {
    let mut command = program("bash");
    command.args(["-c", script, get]).env("GET", get);
    run(&mut command)
}

/// Runs it to its end.
pub fn run(command: &mut Command) -> CommandOutput {
    RunningCommand::start(command).wait()
}

/// A command under way, in a process group of its own.
pub struct RunningCommand {
    child: Child,
    stdout: JoinHandle<Vec<u8>>,
    stderr: JoinHandle<Vec<u8>>,
    what: String,
}

impl RunningCommand {
    pub fn start(command: &mut Command) -> RunningCommand {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
        let stdout = drain(child.stdout.take().expect("a pipe"));
        let stderr = drain(child.stderr.take().expect("a pipe"));
        RunningCommand { child, stdout, stderr, what: format!("{command:?}") }
    }

    pub fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// Its end, which comes within [`PATIENCE`] or is made to come.
    pub fn wait(mut self) -> CommandOutput {
        let group = self.pid();
        let (done, alarm) = mpsc::channel::<()>();
        let watchdog = thread::spawn(move || {
            let late = alarm.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout);
            // Its pipes are read below before it is waited for, so the group cannot be another's yet.
            late.then(|| kill_process_group(group, Signal::KILL)).is_some()
        });
        let stdout = self.stdout.join().expect("stdout can be read");
        let stderr = self.stderr.join().expect("stderr can be read");
        drop(done);
        assert!(!watchdog.join().expect("a watchdog"), "it hangs: {}", self.what);
        let status = self.child.wait().expect("it can be waited for");
        CommandOutput {
            code: status.code().or_else(|| status.signal().map(|signal| 128 + signal)).expect("an end"),
            stdout,
            stderr: String::from_utf8_lossy(&stderr).into_owned(),
        }
    }
}

fn drain(mut pipe: impl Read + Send + 'static) -> JoinHandle<Vec<u8>> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        pipe.read_to_end(&mut bytes).expect("a pipe can be read");
        bytes
    })
}

/// Waits until `holds`; only a hang waits for long.
#[track_caller]
pub fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let mut waited = Duration::ZERO;
    let step = Duration::from_millis(5);
    while !holds() {
        assert!(waited < PATIENCE, "it never comes to this: {what}");
        thread::sleep(step);
        waited += step;
    }
}

/// A peer that answers everything with this page.
pub fn page(body: &str) -> RawPeer {
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len());
    RawPeer::always(vec![Step::ReadHead, Step::send(head + body)])
}

/// A peer that breaks every body off after three of ten bytes.
pub fn short_body() -> RawPeer {
    RawPeer::always(vec![Step::ReadHead, Step::send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc")])
}

/// A file of these lines.
pub fn list<L: AsRef<str>>(dir: &Path, name: &str, lines: impl IntoIterator<Item = L>) -> PathBuf {
    let path = dir.join(name);
    let text: String = lines.into_iter().map(|line| format!("{}\n", line.as_ref())).collect();
    fs::write(&path, text).expect("a list can be written");
    path
}

/// Whether strace can be used here; otherwise what is not tested is reported.
pub fn can_trace(what: &str) -> bool {
    let works = program("strace").args(["-f", "-o", "/dev/null", "true"]).stderr(Stdio::null()).status();
    let works = works.is_ok_and(|status| status.success());
    if !works {
        skipped(&format!("{what}: strace is not installed or may not trace"));
    }
    works
}

/// The first bytes of what `testkit::faulty` serves by default.
pub fn content(size: u64) -> Vec<u8> {
    Pattern::new(Plan::default().seed).slice(0, usize::try_from(size).unwrap())
}

/// The names in a directory, hidden ones too, sorted.
pub fn names(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).expect("a directory").map(|entry| entry.expect("an entry").file_name());
    let mut names: Vec<String> = entries.map(|name| name.to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

pub fn origin() -> Origin {
    Origin::builder().start().unwrap()
}

/// haul, or curl, in this directory.
pub fn run_in(dir: &Path, name: &str, args: &[&str]) -> CommandOutput {
    run(program(name).args(args).current_dir(dir))
}

/// haul in curl's place, silent, in this directory.
pub fn as_curl(dir: &Path, args: &[&str]) -> CommandOutput {
    run_in(dir, HAUL, &[&["curl", "-q", "-s"], args].concat())
}

/// haul in curl's place, in this directory, without the user's settings; it says what curl says.
pub fn curl_in(dir: &Path, args: &[&str]) -> CommandOutput {
    run(program(HAUL).arg("curl").arg("-q").args(args).current_dir(dir))
}

/// The same where nothing is written.
pub fn curl(args: &[&str]) -> CommandOutput {
    curl_in(Path::new("/"), args)
}

/// What came over a connection, as text.
pub fn received(peer: &RawPeer, connection: usize) -> String {
    String::from_utf8_lossy(&peer.received(connection)).into_owned()
}

/// A peer that answers each connection so, and closes.
pub fn answering(reply: impl AsRef<[u8]>) -> RawPeer {
    RawPeer::always(vec![Step::ReadHead, Step::send(reply)])
}

/// haul in curl's place with `-sS`.
pub fn curl_quiet(args: &[&str]) -> CommandOutput {
    curl(&[&["-sS"], args].concat())
}

/// The script of a connection: a request's head is read, and a response with this status, fields and
/// body closes the connection.
pub fn reply_steps(head: &str, body: &str) -> Vec<Step> {
    let length = body.len();
    let text = format!("HTTP/1.1 {head}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}");
    vec![Step::ReadHead, Step::send(text)]
}
