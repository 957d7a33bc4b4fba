//! Tests of the lists of a job (`--job`) that are missing or of another kind in a later run, and of
//! secrets in lists from pipes.

use crate::common;

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::Stdio;

use common::small_site::SmallSite;
use common::{HAUL, haul, list, run_in};
use rustix::fs::{CWD, Mode, mkfifoat};

fn pages() -> SmallSite {
    SmallSite::start(|target| Some(("text/plain", format!("page {target}\n").into_bytes())))
}

/// Runs haul in the directory `dir` with `text` as its standard input. Returns its exit code, and
/// its standard error.
fn piped(dir: &Path, args: &[&str], text: &[u8]) -> (Option<i32>, String) {
    let mut command = haul(args);
    command.current_dir(dir).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // It need not read all of it.
    let _ = child.stdin.take().unwrap().write_all(text);
    let ended = child.wait_with_output().unwrap();
    (ended.status.code(), String::from_utf8_lossy(&ended.stderr).into_owned())
}

#[test]
fn job_refuses_missing_or_replaced_list_file() {
    let (dir, site) = (tempfile::tempdir().unwrap(), pages());
    let dir = dir.path();
    list(dir, "list", [site.url("/0"), site.url("/1")]);
    fs::write(dir.join("config"), "silent\n").unwrap();
    let args = ["--job", "j", "-sS", "-K", "config", "-O", "--remote-name-all", "--input-file", "list"];
    run_in(dir, HAUL, &args).ok();
    let text = "list has changed since the job began (it was a regular file, and is none)";
    fs::rename(dir.join("list"), dir.join("moved")).unwrap();
    let refused = run_in(dir, HAUL, &args);
    assert!(refused.failed(26).contains("failed to read the list list"), "{}", refused.stderr);
    mkfifoat(CWD, dir.join("list"), Mode::RUSR | Mode::WUSR).unwrap();
    let refused = run_in(dir, HAUL, &args);
    assert!(refused.failed(2).contains(text), "{}", refused.stderr);
    fs::remove_file(dir.join("list")).unwrap();
    fs::rename(dir.join("moved"), dir.join("list")).unwrap();
    run_in(dir, HAUL, &args).ok();
    fs::remove_file(dir.join("config")).unwrap();
    let refused = run_in(dir, HAUL, &args);
    assert_ne!(refused.code, 0, "{}", refused.stderr);
}

#[test]
fn copied_list_may_become_a_file() {
    let (dir, site) = (tempfile::tempdir().unwrap(), pages());
    let dir = dir.path();
    let args = ["--job", "j", "-sS", "-O", "--remote-name-all", "--input-file", "/dev/stdin"];
    let (code, errors) = piped(dir, &args, format!("{}\n", site.url("/0")).as_bytes());
    assert_eq!(code, Some(0), "{errors}");
    let with_file = |path: &str| {
        let file = list(dir, "file", [site.url(path)]);
        let ran = haul(&args).current_dir(dir).stdin(fs::File::open(file).unwrap()).output().unwrap();
        (ran.status.code(), String::from_utf8_lossy(&ran.stderr).into_owned())
    };
    assert_eq!(with_file("/0"), (Some(0), String::new()));
    let (code, errors) = with_file("/1");
    assert!(code == Some(26) && errors.contains("differs in line 1"), "{errors}");
    assert_eq!(site.requests(), ["/0"]);
}

#[test]
fn complete_copied_list_refuses_another_list() {
    let (dir, site) = (tempfile::tempdir().unwrap(), pages());
    let dir = dir.path();
    let args = ["--job", "j", "-sS", "--out-null", "--input-file", "-"];
    let text = |paths: &[&str]| paths.iter().map(|path| format!("{}\n", site.url(path))).collect::<String>();
    let given = text(&["/0", "/1"]);
    assert_eq!(piped(dir, &args, given.as_bytes()), (Some(0), String::new()));
    for (list, expected) in [
        (text(&["/0", "/2"]), "standard input differs in line 2 from the one that the job has copied; "),
        (text(&["/0", "/1", "/2"]), "standard input differs in line 3 from the one that the job has copied; "),
        (text(&["/0"]), "standard input ends at line 2, before the end of what the job has copied; "),
    ] {
        let (code, errors) = piped(dir, &args, list.as_bytes());
        assert_eq!(code, Some(26), "{list}: {errors}");
        assert!(errors.contains(expected), "{list}: {errors}");
    }
    assert_eq!(piped(dir, &args, given.as_bytes()), (Some(0), String::new()));
    assert_eq!(piped(dir, &args, b""), (Some(0), String::new()), "no list was given again");
    let other = text(&["/3"]);
    assert_eq!(piped(dir, &args[..3], other.as_bytes()), (Some(0), String::new()), "the list is not named again");
    assert_eq!(site.requests(), ["/0", "/1"]);
}

#[test]
fn job_refuses_credentials_in_any_spelling() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let has_secret = || {
        let files = fs::read_dir(dir).unwrap().map(|entry| fs::read(entry.unwrap().path()).unwrap());
        files.collect::<Vec<_>>().concat().windows(8).any(|window| window == b"secretpw")
    };
    for (format, line) in [
        (None, &b"me:secretpw@127.0.0.1:1/a\n"[..]),
        (None, b"http:/me:secretpw@127.0.0.1:1/\n"),
        (None, b"http://me\xff:secretpw@127.0.0.1:1/\n"),
        (Some("--jsonl-in"), b"{\"url\":\"http:\\/\\/me:secretpw@127.0.0.1:1\\/a\"}\n"),
        (Some("--jsonl-in"), b"\xef\xbb\xbf{\"url\":\"http://me:secretpw\\u0040127.0.0.1:1/\"}\n"),
        (Some("--csv-in"), b"url\n\"http:///me:secretpw@127.0.0.1:1/\"\n"),
    ] {
        let args = ["--job", "j", "-sS", "--out-null", "--input-file", "-"];
        let url = Some("{url}").filter(|_| format == Some("--csv-in"));
        let args: Vec<&str> = args.into_iter().chain(format).chain(url).collect();
        let (code, errors) = piped(dir, &args, line);
        assert_eq!(code, Some(2), "{}: {errors}", String::from_utf8_lossy(line));
        assert!(errors.contains("has credentials in its URL"), "{errors}");
        assert!(!has_secret(), "{}", String::from_utf8_lossy(line));
        for name in common::names(dir) {
            fs::remove_file(dir.join(name)).unwrap();
        }
    }
    for url in ["http:/me:secretpw@h/", "http:///me:secretpw@h/", "me:secretpw@h"] {
        let refused = run_in(dir, HAUL, &["--job", "j", "-sS", url]);
        assert!(refused.failed(2).contains("does not store the credentials"), "{url}: {}", refused.stderr);
    }
    for option in ["--doh-url", "--checksum"] {
        let refused = run_in(dir, HAUL, &["--job", "j", "-sS", option, "https://me:secretpw@h/x", "http://h/"]);
        assert!(refused.failed(2).contains("does not store the credentials"), "{option}: {}", refused.stderr);
    }
    assert!(!has_secret());
}

#[test]
fn records_show_no_password_with_other_slashes() {
    let site = pages();
    for slashes in [":/", "://", ":///"] {
        let url = site.url("/0").replace("://", &format!("{slashes}me:secretpw@"));
        for options in [&["--jsonl=no-body"][..], &["-w", "%{url}"], &["--events", "-", "--out-null"]] {
            let text = run_in(Path::new("."), HAUL, &[&["-s"], options, &[&url]].concat()).text();
            assert!(text.contains("127.0.0.1") && !text.contains("secretpw"), "{url} {options:?}: {text}");
        }
    }
}
