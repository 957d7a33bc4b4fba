//! Runs each command line with `curl` and with `haul curl`, against the same server. Compares the
//! requests, the output, the files and the exit codes.
//!
//! The cases are in `differential/cases/`. A case lists the differences that are allowed, each with
//! a reason. A listed difference that does not occur is an error, so that the lists stay correct.
//! `HAUL_CASES=word` runs only the cases whose line contains the word.

mod case_file_reader;
use crate::common;
mod origin;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::io::{Seek, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use case_file_reader::DifferentialCase;
use common::{HAUL, installed, program};
use origin::{RequestBytes, ScriptedOrigin};

/// The minimum number of cases (command lines to compare). If there are fewer, a file of cases must
/// be missing.
const LEAST: usize = 400;

/// The results of one run of a case, with curl or with haul.
#[derive(Debug, PartialEq, Eq)]
struct DifferentialResult {
    requests: Vec<(usize, String)>,
    stdout: String,
    files: BTreeMap<String, String>,
    exit: i32,
    stderr: String,
}

#[test]
fn haul_matches_curl_in_every_case() {
    let Some(curl) = installed("curl", "the comparison with curl") else { return };
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/suite/differential/cases");
    let mut files: Vec<PathBuf> =
        fs::read_dir(&directory).expect("the cases").map(|entry| entry.expect("an entry").path()).collect();
    files.sort();
    let mut cases: Vec<DifferentialCase> = files.iter().flat_map(|file| case_file_reader::read(file)).collect();
    assert!(cases.len() >= LEAST, "only {} cases", cases.len());
    if let Ok(word) = std::env::var("HAUL_CASES") {
        cases.retain(|case| case.words.join(" ").contains(&word) || case.place.contains(&word));
    }
    let cases = Arc::new(cases);
    let next = Arc::new(AtomicUsize::new(0));
    let faults = Arc::new(Mutex::new(Vec::new()));
    let workers: Vec<_> = (0..8)
        .map(|_| {
            let (cases, next, faults) = (Arc::clone(&cases), Arc::clone(&next), Arc::clone(&faults));
            thread::spawn(move || {
                let origin = ScriptedOrigin::start();
                while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let theirs = run(curl, &[], case, &origin);
                    let ours = run(HAUL, &["curl"], case, &origin);
                    if let Some(fault) = compared(case, &theirs, &ours) {
                        faults.lock().expect("no panic").push((case.place.clone(), fault));
                    }
                }
            })
        })
        .collect();
    for worker in workers {
        worker.join().expect("a worker");
    }
    let mut faults = std::mem::take(&mut *faults.lock().expect("no panic"));
    faults.sort();
    let text: String = faults.iter().map(|(_, fault)| fault.as_str()).collect();
    assert!(faults.is_empty(), "{} of {} cases differ:\n{text}", faults.len(), cases.len());
}

fn run(name: &str, first: &[&str], case: &DifferentialCase, origin: &ScriptedOrigin) -> DifferentialResult {
    let directory = tempfile::tempdir().expect("a directory");
    for (name, content) in &case.files {
        let path = directory.path().join(name);
        fs::create_dir_all(path.parent().expect("a parent")).expect("a directory");
        fs::write(path, content).expect("a file");
    }
    // curl 7.88 asks the server before each PUT, curl 8 before those of more than 1 MiB.
    let asks = case.words.iter().any(|word| word == "-T") && !case.words.iter().any(|word| word.contains("Expect"));
    let put = |word: &str| {
        word.replace("$U", &format!("http://127.0.0.1:{}", origin.port()))
            .replace("$P", &origin.port().to_string())
            .replace("$D", &directory.path().display().to_string())
    };
    let mut command = program(name);
    command.args(first).args(case.words.iter().map(|word| put(word)));
    command.envs(case.env.iter().map(|(name, value)| (name, put(value))));
    command.current_dir(directory.path());
    let mut stdin = tempfile::tempfile().expect("a file");
    stdin.write_all(&case.stdin).and_then(|()| stdin.rewind()).expect("it can be written");
    let output = common::run(command.stdin(stdin));
    let hide = |text: String| text.replace(&directory.path().display().to_string(), "$D");
    let mut files = BTreeMap::new();
    collect(directory.path(), directory.path(), &mut files);
    DifferentialResult {
        requests: origin.take().into_iter().map(|request| (request.connection, comparable(&request, asks))).collect(),
        stdout: hide(versionless(&String::from_utf8_lossy(&output.stdout))),
        files,
        exit: output.code,
        stderr: hide(output.stderr),
    }
}

fn collect(root: &Path, directory: &Path, into: &mut BTreeMap<String, String>) {
    for entry in fs::read_dir(directory).expect("a directory") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            collect(root, &path, into);
        } else {
            let name = path.strip_prefix(root).expect("below it").display().to_string();
            let content = fs::read(&path).unwrap_or_default();
            // The first lines of files that curl writes name its version and where to read about
            // it.
            let lines = String::from_utf8_lossy(&content);
            let kept: Vec<&str> = lines.lines().filter(|line| !line.starts_with("# ")).collect();
            let end = if lines.ends_with('\n') { "\n" } else { "" };
            into.insert(name, kept.join("\n") + end);
        }
    }
}

/// Returns the text of a request in a form that is equal for haul and curl: without versions,
/// boundaries and nonces, which differ in each run. If `asks` is true, also removes `Expect:
/// 100-continue`.
fn comparable(request: &RequestBytes, asks: bool) -> String {
    let mut text = versionless(&String::from_utf8_lossy(&request.bytes));
    if asks {
        text = text.replace("Expect: 100-continue\r\n", "");
    }
    if text.contains("boundary=") {
        while let Some(boundary) = between(&text, "boundary=-", "\r\n").map(str::to_owned) {
            text = text.replace(&format!("-{boundary}"), "BOUNDARY");
        }
        let length = between(&text, "Content-Length: ", "\r\n").map(str::to_owned).unwrap_or_default();
        text = text.replace(&format!("Content-Length: {length}\r\n"), "Content-Length: OF-FORM\r\n");
    }
    for (start, end) in [("cnonce=\"", "\""), ("response=\"", "\"")] {
        if let Some(value) = between(&text, start, end).map(str::to_owned) {
            text = text.replace(&format!("{start}{value}"), &format!("{start}CHANCE"));
        }
    }
    text
}

fn between<'a>(text: &'a str, start: &str, end: &str) -> Option<&'a str> {
    let from = text.find(start)? + start.len();
    let to = text[from..].find(end)?;
    Some(&text[from..from + to])
}

fn versionless(text: &str) -> String {
    text.replace("curl/7.88.1", "curl/VERSION").replace("curl/8.22.0", "curl/VERSION")
}

/// Compares the results of curl (`theirs`) and haul (`ours`) for one case. Returns a description of
/// the differences that the case does not allow. `None` without such differences.
fn compared(case: &DifferentialCase, theirs: &DifferentialResult, ours: &DifferentialResult) -> Option<String> {
    let shown = |seen: &DifferentialResult, part: &str| match part {
        "request" => seen.requests.iter().map(|(number, text)| format!("[{number}]\n{text}\n")).collect::<String>(),
        "stdout" => seen.stdout.clone(),
        "files" => format!("{:#?}", seen.files),
        _ => seen.exit.to_string(),
    };
    let mut fault = String::new();
    for part in ["request", "stdout", "files", "exit"] {
        let (theirs, ours) = (shown(theirs, part), shown(ours, part));
        let allowed = case.allowed.iter().any(|(other, _)| other == part);
        match (theirs == ours, allowed) {
            (true, true) => writeln!(fault, "  {part} is allowed to differ and does not").expect("a string"),
            (false, false) => {
                writeln!(fault, "  {part} of curl:\n{theirs}\n  {part} of haul:\n{ours}").expect("a string");
            }
            _ => {}
        }
    }
    if fault.is_empty() {
        return None;
    }
    Some(format!(
        "\n{}: {}\n{fault}  stderr of curl: {}\n  stderr of haul: {}\n",
        case.place,
        case.words.join(" "),
        theirs.stderr.trim(),
        ours.stderr.trim(),
    ))
}
