//! Torture tests: the system refuses the n-th descriptor, thread or allocation of a run, for each n
//! that the run reaches. The run must end with the complete output or with an error. It must never
//! report a false success, leave an incomplete file under its final name, or panic. (A Rust program
//! ends by SIGABRT if a small allocation fails, and so does the cryptographic library. This signal
//! is allowed, but only if an allocation is refused.)
//!
//! `HAUL_TORTURE=all` runs every case (`make torture`), and `HAUL_TORTURE=15..30` runs the cases
//! with these numbers. Without the variable only a few cases run, and only every seventh allocation
//! is refused.

mod common;

use std::collections::BTreeMap;
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use common::{CommandOutput, HAUL, installed, program, run, skipped};
use testkit::origin::Origin;

/// The system calls that create a descriptor or thread. Each has the error with which it fails if
/// the system has no more of them.
const CALLS: [(&str, &str); 6] = [
    ("openat", "EMFILE"),
    ("socket", "EMFILE"),
    ("pipe2", "EMFILE"),
    ("epoll_create1", "EMFILE"),
    ("eventfd2", "EMFILE"),
    ("clone3", "EAGAIN"),
];
/// The minimum number of command lines that the tests must have, so that missing ones are noticed.
const LEAST: usize = 50;
/// A number that is greater than the number of system calls or allocations in any run.
const MOST: u64 = 100_000;

/// The standard output of a run of haul, and the files that it left.
#[derive(Debug, PartialEq, Eq)]
struct TortureRunOutput {
    stdout: Vec<u8>,
    /// The content of each file that the run left and whose name starts with `out`.
    files: BTreeMap<String, Vec<u8>>,
}

fn left(ran: &CommandOutput, dir: &Path) -> TortureRunOutput {
    let files = fs::read_dir(dir).unwrap().filter_map(|entry| {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        name.starts_with("out").then(|| (name, fs::read(entry.path()).unwrap()))
    });
    TortureRunOutput { stdout: ran.stdout.clone(), files: files.collect() }
}

/// Returns the command lines of all cases: each kind of transfer with each protocol.
fn cases(origin: &Origin, ca: &Path) -> Vec<Vec<String>> {
    let (plain, tls) = (origin.url(""), origin.https_url(""));
    let ca = ca.to_str().unwrap();
    let ways: [(&str, Vec<&str>); 4] = [
        (&plain, vec!["--http1.1"]),
        (&tls, vec!["--http1.1", "--cacert", ca]),
        (&tls, vec!["--http2", "--cacert", ca]),
        (&plain, vec!["--http2-prior-knowledge"]),
    ];
    let jobs: [&[&str]; 15] = [
        &["/bytes/100000"],
        &["-o", "out", "/bytes/100000"],
        &["/small/1", "/small/2", "/bytes/70000"],
        &["-o", "out1", "/small/1", "-o", "out2", "/bytes/70000", "-o", "out3", "/small/3"],
        &["-b", "", "-c", "jar", "-o", "out", "/small/1"],
        &["--hsts", "hsts", "--alt-svc", "alt", "/small/1"],
        &["-d", "a=1&b=2", "/small/1"],
        &["-F", "f=@upload", "/small/1"],
        &["-T", "upload", "/small/1"],
        &["--compressed", "-o", "out", "/gzip/100000"],
        &["-D", "heads", "--etag-save", "etag", "-o", "out", "/bytes/5000"],
        &["--extract", "small [0-9]", "--unique", "/small/1", "/small/2"],
        &["-Z", "--threads", "2", "/small/1", "/small/2", "/small/3"],
        &["--split", "3", "-o", "out", "/bytes/3000000"],
        &["--create-dirs", "--output-dir", "deep/er", "-o", "out", "/chunked/50000"],
    ];
    let mut all = Vec::new();
    for (base, options) in &ways {
        for job in jobs {
            let word = |word: &&str| if word.starts_with('/') { format!("{base}{word}") } else { (*word).to_owned() };
            let fixed = ["-q", "-sS", "--max-time", "30", "--retry-delay", "0.01"].iter().chain(options);
            all.push(fixed.map(|&word| word.to_owned()).chain(job.iter().map(word)).collect());
        }
    }
    all
}

/// Returns the range of case numbers in the environment variable `HAUL_TORTURE`. Returns `None` if
/// it is not set, which selects a small default set of cases.
fn selected_cases() -> Option<Range<usize>> {
    let text = std::env::var("HAUL_TORTURE").ok()?;
    if text == "all" {
        return Some(0..usize::MAX);
    }
    let (from, to) = text.split_once("..").expect("HAUL_TORTURE is all, or A..B");
    let number = |text: &str| text.parse().expect("HAUL_TORTURE is all, or A..B");
    Some(number(from)..number(to))
}

/// Calls `torture` for each selected case, with its command line and its expected result: the
/// result of a run in which no resource is refused. Returns the number of selected cases.
fn each_case(mut torture: impl FnMut(&[String], &TortureRunOutput)) -> usize {
    let origin = Origin::builder().http2(100).start().unwrap();
    let ca = tempfile::NamedTempFile::new().unwrap();
    fs::write(ca.path(), origin.ca_pem()).unwrap();
    let all = cases(&origin, ca.path());
    assert!(all.len() >= LEAST, "{}", all.len());
    let chosen: Vec<_> = match selected_cases() {
        Some(wanted) => all.into_iter().skip(wanted.start).take(wanted.len()).collect(),
        None => all.into_iter().skip(1).step_by(21).collect(),
    };
    for args in &chosen {
        let dir = scratch();
        let ran = run(&mut haul_in(program(HAUL), dir.path(), args));
        assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{args:?}");
        torture(args, &left(&ran, dir.path()));
    }
    chosen.len()
}

fn scratch() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("upload"), "x".repeat(20_000)).unwrap();
    dir
}

/// Sets the directory and the arguments of a command that runs haul. Removes two environment
/// variables: `LD_LIBRARY_PATH`, with which Cargo makes the loader search more directories, and
/// `RUST_BACKTRACE`, because a backtrace takes very long if memory is refused.
fn haul_in(mut command: Command, dir: &Path, args: &[String]) -> Command {
    command.env_remove("LD_LIBRARY_PATH").env_remove("RUST_BACKTRACE").current_dir(dir).args(args);
    command
}

/// Asserts that a run of haul has the expected result, or that it failed and left no incomplete
/// file. If `may_abort` is true, the run may also end by SIGABRT. `what` names the case in
/// messages.
fn check(ran: &CommandOutput, dir: &Path, expected: &TortureRunOutput, may_abort: bool, what: &str) {
    let found = left(ran, dir);
    // The cryptographic library's callers panic where it has no memory: where a digest is copied,
    // where a key is made. So does the decoder of gzip where it is made.
    let at = |place| ran.stderr.contains(place);
    let is_the_librarys =
        may_abort && ran.code == 101 && (at("/aws-lc-rs-") || at("/crypto/aws_lc_rs/") || at("/zlib-rs-"));
    assert!(is_the_librarys || !ran.stderr.contains("panicked"), "{what}: {}", ran.stderr);
    if ran.code == 0 {
        assert!(found == *expected, "a false success: {what}: {}", ran.stderr);
        return;
    }
    let has_aborted = may_abort && ran.code == 128 + 6;
    assert!(has_aborted || ran.code < 128, "a signal: {what}: {} {}", ran.code, ran.stderr);
    assert!(has_aborted || !ran.stderr.trim().is_empty(), "nothing is said: {what}: {}", ran.code);
    for (name, content) in &found.files {
        assert!(expected.files.get(name) == Some(content), "{name} is torn: {what}: {}", ran.stderr);
    }
}

#[test]
fn refused_descriptors_or_threads_never_fake_success() {
    let works = program("strace").args(["-f", "-o", "/dev/null", "true"]).stderr(Stdio::null()).status();
    if !works.is_ok_and(|status| status.success()) {
        return skipped("refused descriptors: strace is not installed or may not trace");
    }
    let mut refusals = 0;
    let count = each_case(|args, expected| {
        for (call, error) in CALLS {
            for number in 1..MOST {
                let dir = scratch();
                let report = dir.path().join("report");
                let mut strace = program("strace");
                strace.args(["-f", "-qq", "-e", &format!("trace={call}"), "-e"]);
                strace.arg(format!("inject={call}:error={error}:when={number}")).arg("-o").arg(&report).arg(HAUL);
                let ran = run(&mut haul_in(strace, dir.path(), args));
                if !fs::read_to_string(&report).unwrap().contains("(INJECTED)") {
                    break;
                }
                refusals += 1;
                // The loader's own files come first, and it says so itself.
                if ran.code == 127 && ran.stderr.contains("error while loading shared libraries") {
                    continue;
                }
                check(&ran, dir.path(), expected, false, &format!("{call} {number} of {args:?}"));
            }
        }
    });
    println!("{count} command lines, {refusals} refused descriptors and threads");
    assert!(refusals > count, "nothing was refused");
}

/// Builds a library that refuses allocations, with the C compiler of this machine. The tests
/// preload the library into haul. Returns `None` if there is no compiler, or the C library is not
/// glibc.
fn preload(dir: &Path) -> Option<PathBuf> {
    let cc = installed("cc", "refused allocations")?;
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/torture/refuse.c");
    let library = dir.join("refuse.so");
    let made =
        program(cc).args(["-shared", "-fPIC", "-O1", "-o"]).arg(&library).arg(source).stderr(Stdio::null()).status();
    if !made.is_ok_and(|status| status.success()) {
        skipped("refused allocations: the C library here is not glibc");
        return None;
    }
    Some(library)
}

#[test]
fn refused_allocations_never_fake_success() {
    let dir = tempfile::tempdir().unwrap();
    let Some(library) = preload(dir.path()) else { return };
    let step = if selected_cases().is_some() { 1 } else { 7 };
    let (mut refusals, mut aborts) = (0, 0);
    let count = each_case(|args, expected| {
        for number in (1..MOST).step_by(step) {
            let dir = scratch();
            let mut haul = program(HAUL);
            haul.env("LD_PRELOAD", &library).env("HAUL_REFUSE", number.to_string());
            let mut ran = run(&mut haul_in(haul, dir.path(), args));
            if !ran.stderr.contains("[refused]") {
                break;
            }
            refusals += 1;
            aborts += u32::from(ran.code == 128 + 6);
            ran.stderr = ran.stderr.replace("[refused]\n", "");
            check(&ran, dir.path(), expected, true, &format!("allocation {number} of {args:?}"));
        }
    });
    println!("{count} command lines, {refusals} refused allocations, {aborts} of them ended the process");
    assert!(refusals > 0, "nothing was refused");
}
