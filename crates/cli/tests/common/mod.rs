//! Runs haul as a user does: the built executable, with real shells, curl and strace if they are
//! installed. Every wait has a time limit.
#![allow(dead_code, unreachable_pub, reason = "each test program uses a part of it")]

pub mod agent;
pub mod daily_site;
pub mod gated_site;
pub mod peak_memory;
pub mod small_site;
pub mod third_party_servers;

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
use testkit::byte_pattern::BytePattern;
use testkit::faulty::FaultPlan;
use testkit::h1_peer::{H1Peer, ScriptStep};
use testkit::origin::Origin;

/// The time limit of every wait in these tests, after which the test fails.
pub const WAIT_TIMEOUT: Duration = Duration::from_secs(60);

/// A URL whose port refuses connections: nothing listens on port 1, and only root could.
pub const REFUSED: &str = "http://127.0.0.1:1";

/// The exit code and the output of a command that has ended.
#[derive(Debug)]
pub struct CommandOutput {
    /// The exit code. After a signal it is 128 plus the signal's number, as in a shell.
    pub code: i32,
    pub stdout: Vec<u8>,
    pub stderr: String,
}

impl CommandOutput {
    /// Asserts that the command succeeded and printed nothing on standard error. Returns its
    /// standard output.
    #[track_caller]
    pub fn ok(self) -> Vec<u8> {
        assert_eq!((self.code, self.stderr.as_str()), (0, ""));
        self.stdout
    }

    /// Asserts that the command succeeded and printed nothing on standard error. Returns its
    /// standard output as text.
    #[track_caller]
    pub fn text(self) -> String {
        String::from_utf8(self.ok()).expect("text")
    }

    /// Asserts that the command ended with this exit code and printed exactly one line on standard
    /// error. Returns this line.
    #[track_caller]
    pub fn failed(&self, code: i32) -> &str {
        assert_eq!(self.code, code, "{}", self.stderr);
        assert_eq!(self.stderr.lines().count(), 1, "one line: {}", self.stderr);
        self.stderr.trim_end()
    }
}

/// Returns a command that does not depend on the user's settings: it has no proxy variables and no
/// config files, and an empty standard input.
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

/// The path of the built executable `haul`.
pub const HAUL: &str = env!("CARGO_BIN_EXE_haul");

/// Returns a command that runs the built executable `haul` with these arguments.
pub fn haul<A: AsRef<OsStr>>(args: impl IntoIterator<Item = A>) -> Command {
    let mut command = program(HAUL);
    command.args(args);
    command
}

/// Runs `haul` with these arguments until it ends, and returns its output.
pub fn run_haul<A: AsRef<OsStr>>(args: impl IntoIterator<Item = A>) -> CommandOutput {
    run(&mut haul(args))
}

/// Returns `name` if the program with this name is installed. If not, prints on standard error that
/// `what` is not tested, and returns `None`.
pub fn installed(name: &'static str, what: &str) -> Option<&'static str> {
    let found = Command::new(name).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok();
    if !found {
        skipped(&format!("{what}: {name} is not installed"));
    }
    found.then_some(name)
}

/// Prints on standard error that `what` is not tested. `eprintln` is not used, because the test
/// harness captures its output.
pub fn skipped(what: &str) {
    use std::io::Write;
    let _ = writeln!(std::io::stderr(), "skipped: {what}");
}

/// Runs a bash script until it ends. `get` is the path of the program to test, which the script
/// calls as `$GET` or `$0`.
pub fn bash(get: &str, script: &str) -> CommandOutput {
    let mut command = program("bash");
    command.args(["-c", script, get]).env("GET", get);
    run(&mut command)
}

/// Runs the command until it ends, and returns its output.
pub fn run(command: &mut Command) -> CommandOutput {
    RunningCommand::start(command).wait()
}

/// A running command, in a process group that contains only this command and its children.
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

    /// Waits until the command ends. If it runs longer than [`WAIT_TIMEOUT`], kills the process group
    /// and fails the test.
    pub fn wait(self) -> CommandOutput {
        self.wait_within(WAIT_TIMEOUT)
    }

    /// Waits until the command ends. If it runs longer than `limit`, kills the process group and
    /// fails the test.
    pub fn wait_within(mut self, limit: Duration) -> CommandOutput {
        let group = self.pid();
        let (done, alarm) = mpsc::channel::<()>();
        let watchdog = thread::spawn(move || {
            let late = alarm.recv_timeout(limit) == Err(RecvTimeoutError::Timeout);
            // Its pipes are read below before it is waited for, so the group cannot be another's
            // yet.
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

/// Waits until `holds` returns true. After [`WAIT_TIMEOUT`], fails the test with `what` in the
/// message.
#[track_caller]
pub fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let mut waited = Duration::ZERO;
    let step = Duration::from_millis(5);
    while !holds() {
        assert!(waited < WAIT_TIMEOUT, "it never comes to this: {what}");
        thread::sleep(step);
        waited += step;
    }
}

/// Starts a server that answers each connection with status 200 and this body, and then closes the
/// connection.
pub fn page(body: &str) -> H1Peer {
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len());
    H1Peer::always(vec![ScriptStep::ReadHead, ScriptStep::send(head + body)])
}

/// Starts a server whose response announces ten bytes of body, and which closes the connection
/// after three.
pub fn short_body() -> H1Peer {
    H1Peer::always(vec![ScriptStep::ReadHead, ScriptStep::send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc")])
}

/// Writes the lines to the file `name` in the directory `dir`. Returns the path of the file.
pub fn list<L: AsRef<str>>(dir: &Path, name: &str, lines: impl IntoIterator<Item = L>) -> PathBuf {
    let path = dir.join(name);
    let text: String = lines.into_iter().map(|line| format!("{}\n", line.as_ref())).collect();
    fs::write(&path, text).expect("a list can be written");
    path
}

/// Returns `true` if strace is installed and may trace processes. If not, prints that `what` is not
/// tested, and returns false.
pub fn can_trace(what: &str) -> bool {
    let works = program("strace").args(["-f", "-o", "/dev/null", "true"]).stderr(Stdio::null()).status();
    let works = works.is_ok_and(|status| status.success());
    if !works {
        skipped(&format!("{what}: strace is not installed or may not trace"));
    }
    works
}

/// Returns the first `size` bytes of the content that `testkit::faulty` serves by default.
pub fn content(size: u64) -> Vec<u8> {
    BytePattern::new(FaultPlan::default().seed).slice(0, usize::try_from(size).unwrap())
}

/// Returns the names of the files in a directory, including hidden ones, sorted.
pub fn names(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).expect("a directory").map(|entry| entry.expect("an entry").file_name());
    let mut names: Vec<String> = entries.map(|name| name.to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

pub fn origin() -> Origin {
    Origin::builder().start().unwrap()
}

/// Runs the program `name` in the directory `dir` until it ends, and returns its output.
pub fn run_in(dir: &Path, name: &str, args: &[&str]) -> CommandOutput {
    run(program(name).args(args).current_dir(dir))
}

/// Runs `haul curl -q -s` with these arguments in the directory `dir`.
pub fn as_curl(dir: &Path, args: &[&str]) -> CommandOutput {
    run_in(dir, HAUL, &[&["curl", "-q", "-s"], args].concat())
}

/// Runs `haul curl -q` with these arguments in the directory `dir`.
pub fn curl_in(dir: &Path, args: &[&str]) -> CommandOutput {
    run(program(HAUL).arg("curl").arg("-q").args(args).current_dir(dir))
}

/// Runs `haul curl -q` with these arguments, which must not write files.
pub fn curl(args: &[&str]) -> CommandOutput {
    curl_in(Path::new("/"), args)
}

/// Returns the text that the test server `peer` received on the connection with this number.
pub fn received(peer: &H1Peer, connection: usize) -> String {
    String::from_utf8_lossy(&peer.received(connection)).into_owned()
}

/// Starts a server that answers each connection with these bytes, and then closes the connection.
pub fn answering(reply: impl AsRef<[u8]>) -> H1Peer {
    H1Peer::always(vec![ScriptStep::ReadHead, ScriptStep::send(reply)])
}

/// Runs `haul curl -q -sS` with these arguments, which must not write files.
pub fn curl_quiet(args: &[&str]) -> CommandOutput {
    curl(&[&["-sS"], args].concat())
}

/// Returns the script of a test server for one connection: read the head of a request, send a
/// response, close. `head` is the status code, the reason phrase and any header fields.
pub fn reply_steps(head: &str, body: &str) -> Vec<ScriptStep> {
    let length = body.len();
    let text = format!("HTTP/1.1 {head}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}");
    vec![ScriptStep::ReadHead, ScriptStep::send(text)]
}
