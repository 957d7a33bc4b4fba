//! Tests of jumps of the wall clock, which libfaketime simulates. Time limits depend on the
//! monotonic clock, and the expiry of cookies on the wall clock.

use crate::common;

use std::fs;
use std::path::Path;
use std::process::Command;

use common::{HAUL, RunningCommand, installed, program, run, run_haul};
use testkit::h1_peer::{H1Peer, ScriptStep};

const OK: &str = "HTTP/1.1 200 OK\r\nConnection: close\r\n";

/// Returns the path of the library libfaketime; `None` if it is not installed.
fn library() -> Option<String> {
    let faketime = installed("faketime", "clocks that jump")?;
    let ran = run(program(faketime).args(["-f", "+0", "printenv", "LD_PRELOAD"]));
    Some(ran.text().trim().to_owned())
}

/// Returns the command `haul` with a simulated wall clock. `file` contains the offset of the clock.
/// libfaketime reads the file whenever haul gets the time, so that the test can change the offset.
fn at_the_time_of(library: &str, file: &Path) -> Command {
    let mut command = program(HAUL);
    command.env("LD_PRELOAD", library).env("FAKETIME_TIMESTAMP_FILE", file).env("FAKETIME_NO_CACHE", "1");
    command.env("FAKETIME_DONT_FAKE_MONOTONIC", "1").env("DONT_FAKE_MONOTONIC", "1").arg("-sS");
    command
}

#[test]
fn timeouts_ignore_wall_clock_jumps() {
    let Some(library) = library() else { return };
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("time");
    for jump in ["+2d", "-2d"] {
        fs::write(&file, "+0\n").unwrap();
        let peer = H1Peer::start(vec![vec![
            ScriptStep::ReadHead,
            ScriptStep::send(format!("{OK}Content-Length: 6\r\n\r\nabc")),
            ScriptStep::Await(1),
            ScriptStep::send("def"),
        ]]);
        let mut command = at_the_time_of(&library, &file);
        command.args(["-m", "100", "--speed-limit", "1", "--speed-time", "100", &peer.url("/")]);
        let running = RunningCommand::start(&mut command);
        assert!(peer.saw(0, b"\r\n\r\n"), "{jump}");
        fs::write(&file, format!("{jump}\n")).unwrap();
        peer.release();
        assert_eq!(running.wait().text(), "abcdef", "{jump}");
    }
}

#[test]
fn cookies_expire_by_the_wall_clock() {
    let Some(library) = library() else { return };
    let dir = tempfile::tempdir().unwrap();
    let (file, jar) = (dir.path().join("time"), dir.path().join("jar"));
    let setting = H1Peer::always(vec![
        ScriptStep::ReadHead,
        ScriptStep::send(format!("{OK}Set-Cookie: sid=1; Max-Age=3600; Path=/\r\nContent-Length: 0\r\n\r\n")),
    ]);
    run_haul(["-sS", "-c", jar.to_str().unwrap(), &setting.url("/")]).ok();
    for (time, is_sent) in [("+0", true), ("+30m", true), ("+2h", false), ("-2d", true)] {
        fs::write(&file, format!("{time}\n")).unwrap();
        // Cookies are of hosts, whatever the port.
        let peer =
            H1Peer::always(vec![ScriptStep::ReadHead, ScriptStep::send(format!("{OK}Content-Length: 2\r\n\r\nok"))]);
        let mut command = at_the_time_of(&library, &file);
        command.args(["-b", jar.to_str().unwrap(), &peer.url("/")]);
        assert_eq!(run(&mut command).text(), "ok", "{time}");
        let asked = String::from_utf8(peer.received(0)).unwrap();
        assert_eq!(asked.contains("sid=1"), is_sent, "{time}: {asked}");
    }
}
