//! Measures the peak memory of a run of haul.
//!
//! ```text
//! a test ──▶ this test program again, small ──▶ haul ──▶ a FIFO ──▶ the test
//!        ◀── figures ──────────── wait4 ◀────────┘
//! ```
//!
//! At exec, the kernel sets a process's `ru_maxrss` to the peak memory of its parent. If haul were
//! a child of the test, whose server holds a large site in memory, it would seem to need as much.
//! A small process between them therefore starts haul.

use std::fs::{self, File};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::{env, io};

use rustix::fs::{CWD, Mode, mkfifoat};

use super::{HAUL, program};

const DIRECTORY: &str = "HAUL_TEST_MEASURE";
/// The name of the test that starts haul and measures its memory. [`measured`] runs this test
/// alone, in a small process of its own.
const TEST: &str = "common::peak_memory::helper_process_measures_peak_memory";

/// Runs haul with these arguments, which must succeed. Returns haul's peak resident memory in KiB.
/// The function `read` reads haul's standard output.
pub fn peak_memory(args: &[&str], read: impl FnOnce(File)) -> u64 {
    let (code, stderr, peak) = measured(args, read);
    assert_eq!((code.as_str(), stderr.as_str()), ("0", ""), "{args:?}");
    peak
}

/// Runs haul with these arguments. Returns haul's exit code, its standard error, and its peak
/// resident memory in KiB. The function `read` reads haul's standard output.
pub fn measured(args: &[&str], read: impl FnOnce(File)) -> (String, String, u64) {
    let dir = tempfile::tempdir().expect("a directory");
    fs::write(dir.path().join("args"), args.join("\n")).expect("arguments can be written");
    let fifo = dir.path().join("stdout");
    mkfifoat(CWD, &fifo, Mode::RUSR | Mode::WUSR).expect("a FIFO");
    let mut helper = program(env::current_exe().expect("this program"))
        .args(["--exact", TEST, "--test-threads", "1"])
        .env(DIRECTORY, dir.path())
        .stdout(Stdio::null())
        .spawn()
        .expect("it starts");
    read(File::open(&fifo).expect("a FIFO can be read"));
    assert!(helper.wait().expect("it can be waited for").success());
    let figures = fs::read_to_string(dir.path().join("figures")).expect("figures");
    let (code, peak) = figures.split_once(' ').expect("two figures");
    let stderr = fs::read_to_string(dir.path().join("stderr")).expect("stderr");
    (code.to_owned(), stderr, peak.parse().expect("a number"))
}

/// The small process that [`measured`] starts runs this test alone, with an environment variable
/// that names a directory. Without the variable it does nothing.
#[test]
#[expect(clippy::zombie_processes, reason = "wait4 waits for it")]
fn helper_process_measures_peak_memory() {
    let Some(dir) = env::var_os(DIRECTORY) else { return };
    let dir = Path::new(&dir);
    let args = fs::read_to_string(dir.join("args")).expect("arguments");
    let stdout = File::options().write(true).open(dir.join("stdout")).expect("a FIFO can be written");
    let stderr = File::create(dir.join("stderr")).expect("a file");
    let mut command = Command::new(HAUL);
    command.args(args.lines()).stdin(Stdio::null()).stdout(stdout).stderr(stderr);
    let child = command.spawn().expect("haul starts");
    drop(command);
    let (status, usage) = wait4(child.id().try_into().expect("a process id")).expect("it can be waited for");
    let code = status.code().unwrap_or(-1);
    fs::write(dir.join("figures"), format!("{code} {}", usage.ru_maxrss)).expect("figures can be written");
}

/// Waits for a child process and returns its exit status and resource usage. The standard library
/// has no such function.
fn wait4(id: i32) -> io::Result<(ExitStatus, libc::rusage)> {
    loop {
        let mut status = 0;
        let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
        // SAFETY: both pointers are to live, writable memory of the right type, and `id` is a child
        // of this process that nobody else waits for.
        let waited = unsafe { libc::wait4(id, &raw mut status, 0, usage.as_mut_ptr()) };
        if waited == id {
            // SAFETY: all-zero bytes are a valid rusage, and the call has filled it in.
            return Ok((ExitStatus::from_raw(status), unsafe { usage.assume_init() }));
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}
