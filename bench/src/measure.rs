//! Measures wall time, CPU time and peak memory of a command with all its processes.
//!
//! ```text
//! bench --measure figures.json 300 to sh -c 'curl … | grep …'
//! bench --measure figures.json 300 cat curl -s http://…
//! bench --measure figures.json 300 watch=seen curl -s http://…
//! bench --measure figures.json 300 times=20 curl -s http://…       the mean of 20 in a row
//! ```
//!
//! Each run goes through a small helper process (this program again, with `--measure`). The peak
//! memory would be wrong if the bench started the command itself: on exec the kernel starts a
//! child's `ru_maxrss` at its parent's peak, and the bench uses much memory, perhaps for a whole
//! server.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Child, Command, ExitCode, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};
use serde::{Deserialize, Serialize};

use crate::fetched_page_check::FetchedPageCounts;
use crate::jobs::{JobEnvironment, SYSTEM_CURL};
use crate::output_digest::{OutputDigest, OutputDigester};
use crate::{Result, installed_programs};

/// The longest time that a run of any program may take.
const LIMIT: Duration = Duration::from_secs(900);

/// The command that the helper process (`bench --measure`) runs and measures.
pub(crate) struct MeasuredCommand {
    pub(crate) figures: PathBuf,
    pub(crate) limit: Duration,
    pub(crate) reader: OutputReaderKind,
    pub(crate) program: OsString,
    pub(crate) arguments: Vec<OsString>,
}

/// The reader of the standard output of a measured command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum OutputReaderKind {
    /// No reader: the command writes to the standard output of the helper process that started it.
    /// The command runs `times` times in a row.
    None { times: u32 },
    /// A second process, `cat >/dev/null`, reads the output.
    Cat,
    /// The helper process that started the command reads the output, records the time of the first
    /// byte, and writes the output's digest to this file.
    Watch(PathBuf),
}

impl OutputReaderKind {
    /// Parses an argument of `bench --measure`: `to`, `times=NUMBER`, `cat` or `watch=FILE`.
    /// Returns `None` for any other text.
    pub(crate) fn parse(word: &str) -> Option<OutputReaderKind> {
        match word.split_once('=').unwrap_or((word, "")) {
            ("to", "") => Some(OutputReaderKind::None { times: 1 }),
            ("times", times) => {
                times.parse().ok().filter(|times| *times > 0).map(|times| OutputReaderKind::None { times })
            }
            ("cat", "") => Some(OutputReaderKind::Cat),
            ("watch", file) => Some(OutputReaderKind::Watch(file.into())),
            _ => None,
        }
    }
}

/// The destination of the standard output of a run.
pub(crate) enum RunOutputDestination {
    To(File),
    /// The output goes to this file. The command runs the given number of times in a row, and each
    /// result is the mean over these runs.
    ToRepeatedly(File, u32),
    /// The output goes through a pipe to `cat >/dev/null`. The CPU time of `cat` is part of the
    /// results, and is also reported separately.
    Cat,
    /// The output goes through a pipe to the helper process, which writes the output's digest to
    /// this file. The helper's CPU time is not part of the results. Use this for transfers that are
    /// slower than computing the digest.
    Watch(PathBuf),
}

/// The measured cost of one run of a program, such as its wall time, CPU time and peak memory.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct RunMetrics {
    /// The time from the start of the run to its end, in seconds.
    #[serde(rename = "wall_s")]
    pub(crate) wall: f64,
    /// User time of all processes, in seconds.
    #[serde(rename = "user_s")]
    pub(crate) user: f64,
    /// System time of all processes, in seconds.
    #[serde(rename = "sys_s")]
    pub(crate) sys: f64,
    /// Peak memory (resident set size) of the largest process, in KiB.
    #[serde(rename = "rss_kib")]
    pub(crate) rss: f64,
    /// The user and system time of the command alone, in seconds, if `user` and `sys` also contain
    /// the time of the `cat` that reads the command's output. `None` if no `cat` reads it.
    #[serde(rename = "client_cpu_s", skip_serializing_if = "Option::is_none", default)]
    pub(crate) client: Option<f64>,
    /// The time from the start to the first byte of output, in seconds; `None` if it was not
    /// recorded.
    #[serde(rename = "first_byte_s", skip_serializing_if = "Option::is_none", default)]
    pub(crate) first_byte: Option<f64>,
    /// The pages that the client got; `None` if the check of the output does not count pages.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) pages: Option<FetchedPageCounts>,
    /// The bytes of content that the server sent; `None` if the check of the output does not count
    /// them.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) served_bytes: Option<u64>,
}

impl RunMetrics {
    /// Returns the sum of user and system time, in seconds.
    pub(crate) fn cpu(&self) -> f64 {
        self.user + self.sys
    }
}

/// Runs `argv` in the job's working directory. Returns the measured cost, or a message that says
/// why the command failed. A shell command finds the paths of haul, curl and the bench program in
/// `$HAUL`, `$CURL`, `$SYSTEM_CURL` and `$BENCH`, and the competitors that were built for the bench
/// in PATH.
pub(crate) fn run(
    bench: &JobEnvironment,
    argv: &[String],
    out: RunOutputDestination,
) -> Result<Result<RunMetrics, String>> {
    run_within(bench, argv, out, LIMIT)
}

/// Runs `argv` in the job's working directory, and kills it if it runs longer than `limit`. Returns
/// the measured cost, or a message that says why the command failed.
pub(crate) fn run_within(
    bench: &JobEnvironment,
    argv: &[String],
    out: RunOutputDestination,
    limit: Duration,
) -> Result<Result<RunMetrics, String>> {
    let dir = &bench.work;
    let figures = dir.join("figures.json");
    let [name, arguments @ ..] = argv else { return Ok(Err("no program".to_owned())) };
    let program = bench.program(name).unwrap_or_else(|| name.into());
    let mut helper = Command::new(std::env::current_exe()?);
    for (variable, tool) in [("HAUL", "haul"), ("CURL", "curl"), ("SYSTEM_CURL", SYSTEM_CURL), ("BENCH", "bench")] {
        helper.envs(bench.program(tool).map(|path| (variable, path)));
    }
    let null = || File::create("/dev/null");
    let (mode, stdout) = match out {
        RunOutputDestination::To(file) => ("to".to_owned(), file),
        RunOutputDestination::ToRepeatedly(file, times) => (format!("times={times}"), file),
        RunOutputDestination::Cat => ("cat".to_owned(), null()?),
        RunOutputDestination::Watch(file) => (format!("watch={}", file.display()), null()?),
    };
    let helper = helper
        .arg("--measure")
        .args([figures.as_os_str(), limit.as_secs().to_string().as_ref(), mode.as_ref()])
        .arg(program)
        .args(arguments)
        .current_dir(dir)
        .env("LC_ALL", "C")
        .env("PATH", installed_programs::search_path()?)
        .stdin(Stdio::null())
        .stdout(stdout)
        .stderr(File::create(dir.join("stderr"))?)
        .status()?;
    if !helper.success() {
        let said = std::fs::read(dir.join("stderr"))?;
        let said = String::from_utf8_lossy(&said[said.len().saturating_sub(200)..]).trim().replace('\n', " | ");
        return Ok(Err(format!("exit {}: {said}", helper.code().unwrap_or(-1))));
    }
    Ok(serde_json::from_slice(&std::fs::read(figures)?).map_err(|error| format!("no figures: {error}")))
}

/// Runs and measures the command of `run`, and writes the measurements to the file `run.figures`.
/// Returns the exit code of the command. The caller is the helper process (`bench --measure`) that
/// measures one command.
pub(crate) fn measure_in_this_process(run: &MeasuredCommand) -> Result<ExitCode> {
    let mut client = Command::new(&run.program);
    client.args(&run.arguments).process_group(0);
    let (mut cat, mut watcher) = (None, None);
    let mut times = 1;
    match &run.reader {
        OutputReaderKind::None { times: asked } => times = *asked,
        OutputReaderKind::Cat => cat = Some(pipe_to_cat(&mut client)?),
        OutputReaderKind::Watch(_) => {
            let (reader, writer) = io::pipe()?;
            client.stdout(writer);
            watcher = Some(thread::spawn(move || read_output(reader)));
        }
    }
    let start = Instant::now();
    let (mut status, mut used) = run_client(&mut client, run.limit)?;
    for _ in 1..times {
        let (next, by_it) = run_client(&mut client, run.limit)?;
        used = used.and(by_it);
        if !next.success() {
            status = next;
        }
    }
    // The command holds the writing end of the pipe, which must be closed so that the reader sees
    // the end.
    drop(client);
    let client = cat.is_some().then(|| used.cpu());
    if let Some(cat) = cat {
        let (status, by_cat) = wait4(i32::try_from(cat.id())?)?;
        if !status.success() {
            return Err(format!("cat: {status}").into());
        }
        used = used.and(by_cat);
    }
    let wall = start.elapsed().as_secs_f64() / f64::from(times);
    let mut first_byte = None;
    if let (Some(watcher), OutputReaderKind::Watch(file)) = (watcher, &run.reader) {
        let (first, print) = watcher.join().map_err(|_| "the reader panicked")??;
        first_byte = first.map(|first| first.duration_since(start).as_secs_f64());
        std::fs::write(file, print.to_line())?;
    }
    let [user, sys] = [used.user, used.sys].map(|time| time / f64::from(times));
    let figures = RunMetrics { wall, user, sys, rss: used.rss, client, first_byte, pages: None, served_bytes: None };
    std::fs::write(&run.figures, serde_json::to_vec(&figures)?)?;
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or(1);
    Ok(ExitCode::from(u8::try_from(code).unwrap_or(1)))
}

/// Runs the client once, and kills it if it runs longer than `limit`. Returns the client's exit
/// status and the resources that it used.
fn run_client(client: &mut Command, limit: Duration) -> Result<(ExitStatus, ProcessUsage)> {
    let child = client.spawn()?;
    let pid = Pid::from_child(&child);
    if !ends_within(pid, limit)? {
        // The child has not been waited for yet, so the id of its process group was not reused.
        kill_process_group(pid, Signal::KILL)?;
    }
    Ok(wait4(pid.as_raw_nonzero().get())?)
}

/// Returns `true` if the process ends within the limit. This thread sleeps in poll(2) meanwhile: a
/// thread that waits actively would compete with the process for a single processor.
fn ends_within(pid: Pid, limit: Duration) -> io::Result<bool> {
    let process = pidfd_open(pid, PidfdFlags::empty())?;
    let limit = limit.try_into().map_err(io::Error::other)?;
    loop {
        match poll(&mut [PollFd::new(&process, PollFlags::IN)], Some(&limit)) {
            Ok(over) => return Ok(over > 0),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Starts a `cat` that reads the output of `client` and discards it.
fn pipe_to_cat(client: &mut Command) -> io::Result<Child> {
    let (reader, writer) = io::pipe()?;
    client.stdout(writer);
    Command::new("cat").stdin(reader).stdout(Stdio::null()).spawn()
}

/// Reads all of a client's output. Returns the time when the first byte arrived (`None` if the
/// output is empty), and the digest of the output.
fn read_output(mut from: impl Read) -> io::Result<(Option<Instant>, OutputDigest)> {
    let mut first = [0];
    let mut printer = OutputDigester::new();
    match from.read(&mut first)? {
        0 => return Ok((None, printer.finish())),
        _ => printer.add(&first),
    }
    let came = Instant::now();
    printer.read_all(&mut from)?;
    Ok((Some(came), printer.finish()))
}

/// The resources that a process and its children have used: CPU times in seconds, and the peak
/// memory of the largest process in KiB.
struct ProcessUsage {
    user: f64,
    sys: f64,
    rss: f64,
}

impl ProcessUsage {
    fn new(raw: &libc::rusage) -> ProcessUsage {
        let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
        ProcessUsage { user: seconds(raw.ru_utime), sys: seconds(raw.ru_stime), rss: raw.ru_maxrss as f64 }
    }

    fn cpu(&self) -> f64 {
        self.user + self.sys
    }

    fn and(self, other: ProcessUsage) -> ProcessUsage {
        ProcessUsage { user: self.user + other.user, sys: self.sys + other.sys, rss: self.rss.max(other.rss) }
    }
}

/// Waits for a child process. Returns its exit status, and the resources that the child and its own
/// children have used. `std` has no such function.
fn wait4(id: i32) -> io::Result<(ExitStatus, ProcessUsage)> {
    loop {
        let mut status = 0;
        let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
        // SAFETY: both pointers are to live, writable memory of the right type, and `id` is a child
        // of this process that nobody else waits for.
        let waited = unsafe { libc::wait4(id, &raw mut status, 0, usage.as_mut_ptr()) };
        if waited == id {
            // SAFETY: all-zero bytes are a valid rusage, and the call has filled it in.
            return Ok((ExitStatus::from_raw(status), ProcessUsage::new(&unsafe { usage.assume_init() })));
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_byte_read_is_included_in_the_digest() {
        let (first, print) = read_output(&b"abc"[..]).unwrap();
        assert!(first.is_some());
        assert_eq!(print, OutputDigest::from_bytes(b"abc"));
        let (first, print) = read_output(&b""[..]).unwrap();
        assert_eq!((first, print), (None, OutputDigest::from_bytes(b"")));
    }

    #[test]
    fn running_and_ended_processes_are_distinguished() {
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let pid = Pid::from_child(&child);
        assert!(!ends_within(pid, Duration::from_millis(1)).unwrap());
        child.kill().unwrap();
        assert!(ends_within(pid, Duration::from_secs(60)).unwrap());
        child.wait().unwrap();
    }

    #[test]
    fn output_reader_names_are_parsed() {
        assert_eq!(OutputReaderKind::parse("to"), Some(OutputReaderKind::None { times: 1 }));
        assert_eq!(OutputReaderKind::parse("times=20"), Some(OutputReaderKind::None { times: 20 }));
        assert_eq!(OutputReaderKind::parse("times=0"), None);
        assert_eq!(OutputReaderKind::parse("cat"), Some(OutputReaderKind::Cat));
        assert_eq!(OutputReaderKind::parse("watch=a b"), Some(OutputReaderKind::Watch("a b".into())));
        assert_eq!(OutputReaderKind::parse("dog"), None);
    }
}
