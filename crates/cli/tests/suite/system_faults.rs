//! Tests of system calls that fail, because strace injects an error. haul works without the
//! optional calls, and reports the failure of the necessary ones.

use crate::common;

use std::fs::{self, File};
use std::path::Path;
use std::process::Command;

use common::agent::TestAgentDirectory;
use common::{CommandOutput, HAUL, RunningCommand, can_trace, eventually, haul, names, origin, program, run, run_haul};
use testkit::h1_peer::{H1Peer, ScriptStep};

/// Runs haul in the directory `dir` under strace, which makes a system call fail. `how` describes
/// the failure for strace, such as `setsockopt:error=ENOPROTOOPT:when=1`. Returns `None` if strace
/// does not work here.
fn run_with_failing_call(dir: &Path, how: &str, args: &[&str]) -> Option<CommandOutput> {
    Some(run(strace_with_failing_call(how)?.arg(HAUL).args(args).current_dir(dir)))
}

/// Returns a strace command that makes a system call fail. The caller must add the program to run.
/// `how` describes the failure for strace. Returns `None` if strace does not work here.
fn strace_with_failing_call(how: &str) -> Option<Command> {
    strace_with_failing_call_into(how, Path::new("/dev/null"))
}

/// Returns a strace command like that of [`strace_with_failing_call`], which writes the report of
/// strace to the file `report`.
fn strace_with_failing_call_into(how: &str, report: &Path) -> Option<Command> {
    if !can_trace("a system that refuses") {
        return None;
    }
    let call = how.split(':').next().unwrap();
    let mut command = program("strace");
    command.args(["-f", "-qq", "-e", &format!("trace={call}"), "-e", &format!("inject={how}"), "-o"]).arg(report);
    Some(command)
}

#[test]
fn unsupported_socket_options_fail_no_transfer() {
    let (origin, dir) = (origin(), tempfile::tempdir().unwrap());
    let small = origin.url("/small");
    for number in 1..9 {
        let how = format!("setsockopt:error=ENOPROTOOPT:when={number}");
        for args in [&["--keepalive-cnt", "3", &small][..], &["--keepalive-cnt", "3", &small, &small]] {
            let Some(ran) = run_with_failing_call(dir.path(), &how, args) else { return };
            assert_eq!(ran.text(), "small\n".repeat(args.len() - 2), "{how}");
        }
    }
}

/// gVisor accepts unknown socket options without applying them. If haul set a time limit with an
/// option that only Linux 5.1 or later has, the wait for a silent server would never end there.
#[test]
fn timeouts_use_only_widely_known_socket_options() {
    if !can_trace("how limits of time are set") {
        return;
    }
    let (origin, dir) = (origin(), tempfile::tempdir().unwrap());
    let trace = dir.path().join("trace");
    let mut command = program("strace");
    command.args(["-f", "-qq", "-e", "trace=setsockopt", "-o"]).arg(&trace).arg(HAUL);
    run(command.args(["--max-time", "30", &origin.url("/small")])).ok();
    let calls = fs::read_to_string(&trace).unwrap();
    for option in ["SO_RCVTIMEO", "SO_SNDTIMEO"] {
        assert!(calls.contains(option), "{calls}");
    }
    assert!(!calls.contains("TIMEO_NEW"), "{calls}");
}

#[test]
fn unlockable_file_system_leaves_no_partial_file() {
    let (origin, dir) = (origin(), tempfile::tempdir().unwrap());
    let args = ["--split", "1", "-o", "out", &origin.url("/bytes/2000000")];
    let Some(ran) = run_with_failing_call(dir.path(), "flock:error=ENOLCK", &args) else { return };
    ran.ok();
    assert_eq!(names(dir.path()), ["out"]);
    assert!(fs::read(dir.path().join("out")).unwrap() == origin.pattern().slice(0, 2_000_000));
}

#[test]
fn file_size_limit_fails_before_the_fetch() {
    let (origin, dir) = (origin(), tempfile::tempdir().unwrap());
    let url = origin.url("/bytes/2000000");
    let sha256 = format!("sha256:{}", "0".repeat(64));
    let script = "ulimit -f 1000; exec \"$0\" \"$@\"";
    for args in [&["--split", "1", &*url][..], &["--split", "4", &url], &["--checksum", &sha256, &url]] {
        let ran = run(program("sh").args(["-c", script, HAUL, "-sS", "-o", "out"]).args(args).current_dir(dir.path()));
        assert!(ran.failed(23).contains("File too large"), "{args:?}: {}", ran.stderr);
        assert_eq!(names(dir.path()).len(), 0, "{args:?}: {:?}", names(dir.path()));
    }
}

#[test]
fn transfers_succeed_without_optional_system_calls() {
    let (origin, dir) = (origin(), tempfile::tempdir().unwrap());
    let (dir, big) = (dir.path(), origin.url("/bytes/2000000"));
    let content = origin.pattern().slice(0, 2_000_000);
    let agent = TestAgentDirectory::new();
    agent.run(&[&origin.url("/small")]).ok();
    for (call, error) in
        [("splice", "EPERM"), ("splice", "ENOSYS"), ("splice", "EFAULT"), ("pwritev2", "EPERM"), ("pwritev2", "ENOSYS")]
    {
        let how = format!("{call}:error={error}");
        let Some(ran) = run_with_failing_call(dir, &how, &[&big]) else { return };
        assert!(ran.ok() == content, "{how}");
        assert!(
            run_with_failing_call(dir, &how, &[&agent.option(), &big]).unwrap().ok() == content,
            "{how}, by the agent"
        );
        run_with_failing_call(dir, &how, &["--split", "1", "-o", "out", &big]).unwrap().ok();
        assert!(fs::read(dir.join("out")).unwrap() == content, "{how}");
    }
}

/// Makes calls fail that only Linux has, or only its newer versions. In a sandbox that does not
/// know a call, the call fails with `EPERM`, and in an older kernel with `ENOSYS`.
#[test]
#[cfg(linux_calls)]
fn transfers_succeed_without_newer_linux_system_calls() {
    let (origin, dir) = (origin(), tempfile::tempdir().unwrap());
    let (dir, big, small) = (dir.path(), origin.url("/bytes/2000000"), origin.url("/small"));
    let content = origin.pattern().slice(0, 2_000_000);
    let to_file = ["--no-clobber", "-o", "out", &big, "-o", "small", &small];
    let rows: [(&str, &[&str]); 7] = [
        ("splice", &[&big]),
        ("pwritev2", &[&big, &small]),
        ("renameat2", &to_file),
        ("fallocate", &to_file),
        ("statx", &to_file),
        ("splice,pwritev2,renameat2,fallocate,statx", &to_file),
        ("splice,pwritev2,renameat2,fallocate,statx,copy_file_range,close_range,openat2,faccessat2", &[&big, &small]),
    ];
    for (calls, args) in rows {
        for error in ["ENOSYS", "EPERM"] {
            let how = format!("{calls}:error={error}");
            let Some(mut command) = strace_with_failing_call_into(&how, &dir.join("trace")) else { return };
            let ran = run(command.arg(HAUL).arg("-sS").args(args).current_dir(dir));
            assert_eq!(ran.code, 0, "{how}: {}", ran.stderr);
            assert!(fs::read_to_string(dir.join("trace")).unwrap().contains("(INJECTED)"), "{how}: not called");
            if args == to_file {
                assert!(fs::read(dir.join("out")).unwrap() == content, "{how}");
                assert_eq!(fs::read(dir.join("small")).unwrap(), b"small\n", "{how}");
                fs::remove_file(dir.join("out")).unwrap();
                fs::remove_file(dir.join("small")).unwrap();
            } else {
                assert!(ran.stdout.starts_with(&content), "{how}");
                assert_eq!(&ran.stdout[content.len()..], &b"small\n"[..6 * (args.len() - 1)], "{how}");
            }
            assert_eq!(names(dir), ["trace"], "{how}");
        }
    }
}

#[test]
fn no_clobber_keeps_existing_file_without_renameat2() {
    let (origin, dir) = (origin(), tempfile::tempdir().unwrap());
    let (dir, big) = (dir.path(), origin.url("/bytes/2000000"));
    fs::write(dir.join("out"), "old").unwrap();
    for (number, error) in ["ENOSYS", "EPERM", "EINVAL"].into_iter().enumerate() {
        let how = format!("renameat2:error={error}");
        let Some(ran) = run_with_failing_call(dir, &how, &["-sS", "--no-clobber", "-o", "out", &big]) else { return };
        ran.ok();
        let numbered = fs::read(dir.join(format!("out.{}", number + 1))).unwrap();
        assert!(numbered == origin.pattern().slice(0, 2_000_000), "{how}");
    }
    assert_eq!(fs::read(dir.join("out")).unwrap(), b"old");
    assert_eq!(names(dir), ["out", "out.1", "out.2", "out.3"]);
}

#[test]
fn refused_hard_links_fail_no_download() {
    let origin = origin();
    let small = origin.url("/small");
    for error in ["EPERM", "EACCES", "ENOSYS", "EXDEV"] {
        let dir = tempfile::tempdir().unwrap();
        let (dir, how) = (dir.path(), format!("linkat:error={error}"));
        fs::write(dir.join("old"), "old\n").unwrap();
        let Some(ran) = run_with_failing_call(dir, &how, &["-o", "old", &small, "-o", "new", &small]) else { return };
        ran.ok();
        run_with_failing_call(dir, &how, &["--fsync", "--no-clobber", "-o", "new", &small]).unwrap().ok();
        assert_eq!(names(dir), ["new", "new.1", "old"], "{how}");
        for name in names(dir) {
            assert_eq!(fs::read_to_string(dir.join(&name)).unwrap(), "small\n", "{how} {name}");
        }
    }
}

#[test]
fn replaced_partial_file_is_never_renamed() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let first = format!("HTTP/1.1 200 OK\r\nETag: \"a\"\r\nContent-Length: 1200000\r\n\r\n{}", "x".repeat(600_000));
    let script = vec![
        ScriptStep::ReadHead,
        ScriptStep::send(first),
        ScriptStep::Await(1),
        ScriptStep::send("x".repeat(600_000)),
    ];
    let peer = H1Peer::start(vec![script]);
    let running = RunningCommand::start(haul(["--split", "1", "-o", "out", &peer.url("/x")]).current_dir(dir));
    let part = dir.join(".out.haul-part");
    eventually("half of it is there", || fs::metadata(&part).is_ok_and(|part| part.len() >= 500_000));
    fs::rename(&part, dir.join("ours")).unwrap();
    fs::write(&part, "theirs").unwrap();
    peer.release();
    let ran = running.wait();
    assert!(ran.failed(23).contains("was replaced by another"), "{}", ran.stderr);
    assert_eq!(
        (names(dir), fs::read_to_string(&part).unwrap()),
        (vec![".out.haul-part".into(), "ours".to_owned()], "theirs".into())
    );
}

#[test]
fn unwritable_header_dump_is_a_failure() {
    let (origin, dir) = (origin(), tempfile::tempdir().unwrap());
    let small = origin.url("/small");
    for who in [&[][..], &["curl", "-sS"]] {
        for urls in [&["-o", "out", &*small][..], &["-o", "out", &small, "-o", "other", &small]] {
            let mut command = haul(who.iter().chain(&["-D", "/dev/full"]).chain(urls));
            let ran = run(command.current_dir(dir.path()));
            assert_eq!(ran.code, 23, "{who:?} {urls:?}: {}", ran.stderr);
            assert_eq!(ran.stderr.lines().count(), urls.len() / 3, "{}", ran.stderr);
            assert!(ran.stderr.lines().all(|line| line.contains("/dev/full: No space left")), "{}", ran.stderr);
            // No body under its name whose head is missing.
            assert_eq!(names(dir.path()), [""; 0]);
        }
    }
}

#[test]
fn unwritable_side_output_fails_haul_but_not_curl() {
    let origin = origin();
    let small = origin.url("/bytes/6");
    for asked in ["-c/dev/full", "-cno/such/jar", "--etag-save=/dev/full", "-w%output{/dev/full}x"] {
        for urls in [&[&*small][..], &[&small, &small]] {
            let several = urls.len() == 2;
            if several && asked.starts_with("--etag") {
                continue;
            }
            let words = || asked.split('=').chain(urls.iter().copied());
            for silent in ["-S", "-sS"] {
                let ran = run_haul([silent].into_iter().chain(words()));
                assert_eq!((ran.code, ran.stdout.len()), (23, 6 * urls.len()), "{asked}: {}", ran.stderr);
                assert!(ran.stderr.lines().all(|line| line.starts_with("haul: (23) ")), "{asked}: {}", ran.stderr);
            }
            // To curl it is no failure; silence is its own.
            let ran = run_haul(["curl", "-sS"].into_iter().chain(words()));
            assert_eq!(ran.code, 0, "{asked}: {}", ran.stderr);
            assert!(ran.stderr.starts_with("Warning: "), "{asked}: {}", ran.stderr);
        }
    }
    let ran = run_haul(["-sS", "--trace", "/dev/full", &small]);
    assert_eq!((ran.code, ran.stderr.lines().count()), (0, 1), "{}", ran.stderr);
}

#[test]
fn body_for_closed_stdout_exits_23() {
    let origin = origin();
    let small = origin.url("/small");
    for args in
        [&[&*small][..], &[&small, &small], &["--split", "2", &small], &["-I", &small], &["curl", "-sS", &small]]
    {
        for closing in [">&-", "<&- >&-"] {
            let ran = closed(closing, args);
            assert_eq!(ran.code, 23, "{closing} {args:?}: {}", ran.stderr);
            let words = if args[0] == "curl" { "Failed writing body" } else { "failed to write" };
            assert!(ran.stderr.contains(words), "{}", ran.stderr);
        }
    }
    closed(">&-", &["-o", "/dev/null", &small]).ok();
    closed(">/dev/null", &[&small]).ok();
}

/// Runs haul with standard descriptors that are closed. `closing` is a redirection in the syntax of
/// a shell, such as `>&-`.
fn closed(closing: &str, args: &[&str]) -> CommandOutput {
    let script = format!("exec {closing}; exec \"$0\" \"$@\"");
    run(program("sh").args(["-c", &script, HAUL]).args(args))
}

#[test]
fn side_output_for_closed_stdout_is_reported() {
    let origin = origin();
    let url = origin.url("/bytes/5");
    for option in ["-D", "-c", "--etag-save"] {
        for closing in [">&-", "1</dev/null"] {
            let args = [option, "-", "-sS", "-o", "/dev/null", &url];
            let ran = closed(closing, &args);
            assert!(ran.failed(23).contains("failed to write"), "{closing} {option}: {}", ran.stderr);
            let ran = closed(closing, &[&["curl", "-q"], &args[..]].concat());
            assert_eq!(ran.code, if option == "-D" { 23 } else { 0 }, "{closing} {option}");
            assert!(ran.stderr.contains("failed to write"), "{closing} {option}: {}", ran.stderr);
        }
    }
}

#[test]
fn unreadable_stdin_is_not_taken_for_empty() {
    let origin = origin();
    let url = origin.url("/echo");
    for option in ["-d@-", "-T-", "-Ff=@-", "-H@-", "-b-", "--input-file=-", "-K-"] {
        for closing in ["<&-", "0>/dev/null"] {
            for persona in [&[][..], &["curl", "-q"]] {
                let ran = closed(closing, &[persona, &["-sS", option, &url]].concat());
                assert_eq!(ran.code, 26, "{closing} {persona:?} {option}: {}", ran.stderr);
                assert!(!ran.stderr.is_empty(), "{closing} {persona:?} {option}");
            }
        }
    }
    assert!(
        closed("<&-", &["-sS", &origin.url("/small")]).ok() == b"small\n",
        "who does not read there has no need of it"
    );
}

#[test]
fn closed_descriptors_without_dev_null_are_harmless() {
    let (origin, dir) = (origin(), tempfile::tempdir().unwrap());
    let Some(mut command) = strace_with_failing_call("openat:error=ENOENT") else { return };
    command.args(["-P", "/dev/null", "sh", "-c", "exec \"$@\" <&- >&- 2>&-", "sh", HAUL, "-o", "out"]);
    run(command.arg(origin.url("/small")).current_dir(dir.path())).ok();
    assert_eq!(fs::read(dir.path().join("out")).unwrap(), b"small\n");
}

#[test]
fn apt_files_download_serially_without_threads() {
    let (origin, dir) = (origin(), tempfile::tempdir().unwrap());
    let (asked, names) = (dir.path().join("asked"), ["a", "b", "c"]);
    let url = origin.url("/small");
    let acquire =
        |name: &str| format!("600 URI Acquire\nURI: {url}\nFilename: {}\n\n", dir.path().join(name).display());
    fs::write(&asked, format!("601 Configuration\n\n{}", names.map(acquire).concat())).unwrap();
    for (how, which) in [("clone3:error=EAGAIN", "none"), ("clone3:error=EAGAIN:when=2+", "one")] {
        let Some(mut command) = strace_with_failing_call(how) else { return };
        let ran = run(command.args([HAUL, "apt-method"]).stdin(File::open(&asked).unwrap())).text();
        assert_eq!(ran.matches("201 URI Done").count(), names.len(), "{which}: {ran}");
        for name in names {
            assert_eq!(fs::read(dir.path().join(name)).unwrap(), b"small\n");
            fs::remove_file(dir.path().join(name)).unwrap();
        }
    }
}
