//! Runs a program to its end, under a hard time limit; returns its exit code, peak memory and last
//! messages.
//!
//! ```
//! use std::process::{Command, Stdio};
//! use std::time::Duration;
//! use testkit::run_with_time_limit;
//!
//! let mut command = Command::new("sh");
//! command.args(["-c", "echo out; echo err >&2; exit 3"]).stdout(Stdio::piped()).stderr(Stdio::piped());
//! let mut out = Vec::new();
//! let outcome = run_with_time_limit::run(&mut command, Duration::from_secs(60), |bytes| out.extend_from_slice(bytes)).unwrap();
//! assert_eq!((outcome.code, outcome.hung, outcome.error_output.as_str()), (Some(3), false, "err"));
//! assert_eq!(out, b"out\n");
//! ```

use std::io::{self, Read};
use std::process::Command;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};
use wait4::Wait4;

/// The maximum number of bytes of the child's standard error that are kept. The last bytes are
/// kept.
const MAX_ERROR_TEXT: usize = 600;

/// The result of running a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChildOutcome {
    /// The exit code; `None` if a signal ended the program.
    pub code: Option<i32>,
    /// True if the run exceeded its time limit and was killed.
    pub hung: bool,
    /// The peak resident memory of the program in bytes. The kernel initialises a child's peak with
    /// its parent's peak, so this is at least the peak of the calling process.
    pub rss: u64,
    /// The last bytes of the program's standard error, with lines joined by ` | `; empty if
    /// standard error is not a pipe.
    pub error_output: String,
}

/// Runs a program until it ends, or kills it after `limit`. If its standard output is a pipe, each
/// piece read from the pipe is passed to `take`.
///
/// # Errors
/// If the program cannot be started or waited for.
pub fn run(command: &mut Command, limit: Duration, mut take: impl FnMut(&[u8])) -> io::Result<ChildOutcome> {
    let mut child = command.spawn()?;
    let pid = Pid::from_child(&child);
    let stderr = child.stderr.take();
    let listener = thread::spawn(move || stderr.map(end_of_text).unwrap_or_default());
    let (done, alarm) = mpsc::channel::<()>();
    let watchdog = thread::spawn(move || {
        let hung = alarm.recv_timeout(limit) == Err(RecvTimeoutError::Timeout);
        // The thread is joined before the child is waited for, so the id was not reused.
        hung && kill_process(pid, Signal::KILL).is_ok()
    });
    if let Some(mut stdout) = child.stdout.take() {
        let mut buffer = vec![0; 128 << 10];
        while let Ok(len @ 1..) = stdout.read(&mut buffer) {
            take(&buffer[..len]);
        }
    }
    waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT)?;
    drop(done);
    let hung = watchdog.join().unwrap_or(false);
    let end = child.wait4()?;
    let error_output = listener.join().unwrap_or_default();
    Ok(ChildOutcome { code: end.status.code(), hung, rss: end.rusage.maxrss, error_output })
}

fn end_of_text(mut from: impl Read) -> String {
    let mut bytes = Vec::new();
    let mut buffer = [0; 4096];
    while let Ok(len @ 1..) = from.read(&mut buffer) {
        bytes.extend_from_slice(&buffer[..len]);
        bytes.drain(..bytes.len().saturating_sub(MAX_ERROR_TEXT));
    }
    String::from_utf8_lossy(&bytes).trim().replace('\n', " | ")
}
