//! Runs haul on a terminal, and compares what the user sees with the expected screens. A server
//! waits until the test has seen a screen, so that no test depends on time. Words replace rates and
//! times, because these differ from run to run.

use crate::common;

use std::fs::File;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use regex::Regex;
use testkit::h1_peer::{H1Peer, ScriptStep};
use testkit::terminal::{ScreenSnapshot, TerminalSession};

use common::gated_site::GatedSite;
use common::small_site::SmallSite;
use common::{HAUL, REFUSED, program};

/// The usual size of the terminal: columns and rows.
const SIZE: (u16, u16) = (160, 24);

/// The time for which a server delays a response in tests of runs that must not draw progress.
/// Other runs draw progress after 0.4 s. These tests examine the output after the end of the run,
/// so a slow machine cannot make them fail.
const LONG: Duration = Duration::from_millis(600);

/// Returns a command that runs haul with these arguments in a directory, for use on a terminal.
fn haul_in(dir: &Path, args: &[&str]) -> Command {
    let mut command = program(HAUL);
    command.args(args).current_dir(dir).env_remove("NO_COLOR");
    command
}

fn start(dir: &Path, args: &[&str]) -> TerminalSession {
    TerminalSession::start(haul_in(dir, args), SIZE).unwrap()
}

/// Returns the text of a screen in which words replace rates and times.
fn steady(screen: &ScreenSnapshot) -> String {
    steady_text(screen.text())
}

fn steady_text(mut text: String) -> String {
    for (pattern, word) in [
        (r"[0-9.]+ [KMGT]?i?B/s", "RATE"),
        (r"  [0-9]+[a-z]+ left", ""),
        (r"\b[0-9]+(\.[0-9])? s\b", "N s"),
        (r"over [0-9]+ connections?", "over N connections"),
    ] {
        text = Regex::new(pattern).unwrap().replace_all(&text, word).into_owned();
    }
    text
}

#[track_caller]
fn wait_for(session: &TerminalSession, expected: &str) {
    session.wait_for(expected, |screen| steady(screen) == expected);
}

/// Asserts that haul ends with this exit code and leaves these lines on the terminal.
#[track_caller]
fn ends(session: TerminalSession, code: i32, expected: &str) {
    let (ended, screen) = session.end();
    assert_eq!((ended, steady(&screen).as_str()), (Some(code), expected));
}

/// Starts a server that sends the first half of a body of 1 MiB, and the second half after the
/// first release.
fn half_then_rest(head: &str) -> H1Peer {
    let half = vec![b'x'; 1 << 19];
    H1Peer::always(vec![
        ScriptStep::ReadHead,
        ScriptStep::send(format!("HTTP/1.1 200 OK\r\n{head}\r\n")),
        ScriptStep::Send(half.clone()),
        ScriptStep::Await(1),
        ScriptStep::Send(half),
    ])
}

#[test]
fn progress_of_known_body_shows_bar_and_rate() {
    let dir = tempfile::tempdir().unwrap();
    let peer = half_then_rest("Content-Length: 1048576\r\n");
    let session = start(dir.path(), &["-o", "file", &peer.url("/")]);
    wait_for(&session, "50%  [===============>              ]  512.00 KiB of 1.00 MiB  RATE");
    peer.release();
    ends(session, 0, "");
}

#[test]
fn progress_of_unknown_body_shows_size_and_rate() {
    let dir = tempfile::tempdir().unwrap();
    let peer = half_then_rest("Connection: close\r\n");
    let session = start(dir.path(), &["-o", "file", &peer.url("/")]);
    wait_for(&session, "512.00 KiB  RATE");
    peer.release();
    ends(session, 0, "");
}

#[test]
fn progress_line_counts_down_retry_pause() {
    let dir = tempfile::tempdir().unwrap();
    let busy = "HTTP/1.1 503 Busy\r\nRetry-After: 50\r\nContent-Length: 0\r\n\r\n";
    let peer = H1Peer::always(vec![ScriptStep::ReadHead, ScriptStep::send(busy)]);
    let session = start(dir.path(), &["-o", "file", &peer.url("/")]);
    wait_for(&session, "the server answered 503 Busy; again in N s (1 of 3)");
    let first = session.screen();
    session.wait_for("the time goes down", |screen| *screen != first);
}

#[test]
fn waiting_line_is_erased_before_the_body() {
    let dir = tempfile::tempdir().unwrap();
    let reply = "HTTP/1.1 200 OK\r\nContent-Length: 14\r\n\r\nhello\nto you!\n";
    let peer = H1Peer::always(vec![ScriptStep::ReadHead, ScriptStep::Await(1), ScriptStep::send(reply)]);
    let session = start(dir.path(), &[&peer.url("/")]);
    wait_for(&session, "waiting for the server, N s");
    peer.release();
    ends(session, 0, "hello\nto you!");
}

#[test]
fn body_on_terminal_is_not_mixed_with_progress() {
    let dir = tempfile::tempdir().unwrap();
    let peer = H1Peer::always(vec![
        ScriptStep::ReadHead,
        ScriptStep::send("HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\nfirst\n"),
        ScriptStep::Sleep(LONG),
        ScriptStep::send("second"),
    ]);
    let url = peer.url("/");
    for args in [&[&*url][..], &["curl", "-q", &url], &["curl", "-q", "-#", &url]] {
        let mut session = start(dir.path(), args);
        assert_eq!(session.wait_for_end(), Some(0), "{args:?}");
        assert_eq!(session.output(), b"first\r\nsecond", "{args:?}");
    }
}

#[test]
fn many_urls_show_counts_and_a_summary() {
    let dir = tempfile::tempdir().unwrap();
    let site = GatedSite::start(9);
    let session = start(dir.path(), &["-o", "#1", &site.site.url("/[0-11]")]);
    wait_for(&session, "9 of 12 done  [======================>       ]  3 running  63 B  RATE");
    site.open();
    ends(session, 0, "haul: 12 done, 86 B in N s, 12 requests over N connections");
}

#[test]
fn progress_shows_a_line_for_each_stage() {
    let dir = tempfile::tempdir().unwrap();
    let site = GatedSite::start(2);
    let template = format!("{}{{}}", site.site.url("/"));
    let args = ["--extract", "[0-9]", &site.site.url("/[0-1]"), "--then", &template];
    let null = File::options().write(true).open("/dev/null").unwrap();
    // The pages /0 and /1 name themselves, and the second stage fetches them again.
    let session = TerminalSession::start_with_output(haul_in(dir.path(), &args), SIZE, null).unwrap();
    ends(session, 0, "haul: 4 done, 28 B in N s, 4 requests over N connections");

    let pages = SmallSite::of(&[("/list", "text/plain", "2 3 4\n")]);
    let template = format!("{}{{}}", site.site.url("/"));
    let args = ["--extract", "[0-9]", &pages.url("/list"), "--then", &template];
    let null = File::options().write(true).open("/dev/null").unwrap();
    let session = TerminalSession::start_with_output(haul_in(dir.path(), &args), SIZE, null).unwrap();
    wait_for(&session, "stage 1: 1 of 1 done  6 B\nstage 2: 0 done  0 B\n1 done  3 running  6 B  RATE");
    site.open();
    ends(session, 0, "haul: 4 done, 27 B in N s, 4 requests over N connections");
}

#[test]
fn repeated_errors_are_summarized_in_one_line() {
    let dir = tempfile::tempdir().unwrap();
    let site = SmallSite::of(&[]);
    let url = site.url("/none");
    let session = start(dir.path(), &["--out-null", &url, &url, &url, &url, &url]);
    let line = format!(
        "haul: (22) {url}: the server answered 404 Not Found; the server has nothing there: check the path of the URL\n"
    );
    let (code, screen) = session.end();
    let lines = steady(&screen);
    let (shown, rest) = lines.split_at(3 * line.len());
    assert_eq!((code, shown), (Some(22), line.repeat(3).as_str()), "{lines}");
    let folded = "haul: (22) 2 more of 127.0.0.1: the server answered 404 Not Found";
    let summary = "haul: 0 done, 5 failed (5 x 404), 0 B in N s, 5 requests over N connections";
    assert_eq!(rest, format!("{folded}\n{summary}"));
}

#[test]
fn error_replaces_the_progress_line() {
    let dir = tempfile::tempdir().unwrap();
    let site = GatedSite::start(1);
    let (found, refused) = (site.site.url("/{0,5}"), format!("{REFUSED}/"));
    let session = start(dir.path(), &["--retry", "0", "-o", "#1", &found, "-o", "none", &refused]);
    let error = format!(
        "haul: (7) {REFUSED}/: failed to connect to 127.0.0.1 port 1: Connection refused (os error 111); nothing listens on that port: check port and server"
    );
    wait_for(
        &session,
        &format!("{error}\n1 of 3 done  [===================>          ]  1 failed  1 running  7 B  RATE"),
    );
    site.open();
    let summary = "haul: 2 done, 1 failed (1 x connect), 14 B in N s, 2 requests over N connections";
    ends(session, 7, &format!("{error}\n{summary}"));
}

#[test]
fn progress_fits_terminals_of_all_widths() {
    let dir = tempfile::tempdir().unwrap();
    let site = GatedSite::start(9);
    let url = site.site.url("/[0-11]");
    let started = |columns: u16| {
        let command = haul_in(dir.path(), &["--out-null", &url]);
        (columns, TerminalSession::start(command, (columns, 10)).unwrap())
    };
    let sessions: Vec<_> = [20, 40, 60, 120, 500].into_iter().map(started).collect();
    for (columns, session) in &sessions {
        let screen = session.wait_for("progress", |screen| screen.text().starts_with("9 of 12 done"));
        assert_eq!(screen.text().lines().count(), 1, "{columns}: {screen:?}");
    }
    site.open();
    for (columns, session) in sessions {
        let (code, screen) = session.end();
        let text = screen.text().replace('\n', "");
        assert!(code == Some(0) && text.starts_with("haul: 12 done"), "{columns}: {text}");
    }
}

#[test]
fn resized_terminal_gets_a_line_of_its_width() {
    let dir = tempfile::tempdir().unwrap();
    let site = GatedSite::start(9);
    let session = start(dir.path(), &["-o", "#1", &site.site.url("/[0-11]")]);
    wait_for(&session, "9 of 12 done  [======================>       ]  3 running  63 B  RATE");
    session.resize(24, 10);
    session.wait_for("a narrow line", |screen| screen.text().starts_with("9 of 12 done") && screen.text().len() < 24);
    session.resize(140, 10);
    wait_for(&session, "9 of 12 done  [======================>       ]  3 running  63 B  RATE");
    site.open();
    ends(session, 0, "haul: 12 done, 86 B in N s, 12 requests over N connections");
}

#[test]
fn silent_and_quiet_runs_show_no_progress() {
    let dir = tempfile::tempdir().unwrap();
    let started = |option: &'static str| {
        let site = GatedSite::start(1);
        let session = start(dir.path(), &[option, "--out-null", &site.site.url("/[0-2]")]);
        (option, site, session)
    };
    let runs = ["-s", "--no-progress-meter"].map(started);
    std::thread::sleep(LONG);
    for (option, site, mut session) in runs {
        site.open();
        assert_eq!((session.wait_for_end(), session.output()), (Some(0), Vec::new()), "{option}");
    }
    let site = GatedSite::start(1);
    let session = start(dir.path(), &["--no-summary", "--out-null", &site.site.url("/[0-2]")]);
    wait_for(&session, "1 of 3 done  [=========>                    ]  2 running  7 B  RATE");
    site.open();
    ends(session, 0, "");
}

#[test]
fn dumb_terminal_gets_plain_lines_only() {
    let dir = tempfile::tempdir().unwrap();
    let site = GatedSite::start(1);
    let url = format!("{REFUSED}/");
    let mut command = haul_in(dir.path(), &["--out-null", &site.site.url("/[0-2]"), &url, "--retry", "0"]);
    command.env("TERM", "dumb");
    let mut session = TerminalSession::start(command, SIZE).unwrap();
    session.wait_for("the error", |screen| screen.text().contains("nothing listens"));
    std::thread::sleep(LONG);
    site.open();
    assert_eq!(session.wait_for_end(), Some(7));
    assert!(!session.output().contains(&0x1b), "{:?}", session.screen().text());
    let error = format!(
        "haul: (7) {url}: failed to connect to 127.0.0.1 port 1: Connection refused (os error 111); nothing listens on that port: check port and server"
    );
    let summary = "haul: 3 done, 1 failed (1 x connect), 21 B in N s, 3 requests over N connections";
    assert_eq!(steady(&session.screen()), format!("{error}\n{summary}"));
}

#[test]
fn errors_have_colors_except_with_no_color_or_curl() {
    let dir = tempfile::tempdir().unwrap();
    let url = format!("{REFUSED}/");
    let (code, screen) = start(dir.path(), &["--retry", "0", &url]).end();
    let colored = format!(
        "{{red}}haul:{{}} (7) {url}: failed to connect to 127.0.0.1 port 1: Connection refused (os error 111); {{cyan}}nothing listens on that port: check port and server{{}}"
    );
    assert_eq!((code, screen.marked_text()), (Some(7), colored));
    let (_, screen) = start(dir.path(), &["--no-such-option"]).end();
    assert!(screen.marked_text().starts_with("{red}haul:{} there is no option --no-such-option"), "{screen:?}");
    let mut plain = haul_in(dir.path(), &["--retry", "0", &url]);
    plain.env("NO_COLOR", "1");
    let mut session = TerminalSession::start(plain, SIZE).unwrap();
    assert_eq!(session.wait_for_end(), Some(7));
    assert!(
        session.screen().text().contains("nothing listens on that port: check port and server"),
        "{:?}",
        session.screen()
    );
    assert!(!session.output().contains(&0x1b));
    let mut as_curl = start(dir.path(), &["curl", "-q", &url]);
    assert_eq!(as_curl.wait_for_end(), Some(7));
    assert!(as_curl.screen().text().contains("curl: (7) Failed to connect"), "{:?}", as_curl.screen());
    assert!(!as_curl.output().contains(&0x1b));
}

#[test]
fn curl_persona_draws_the_meter_of_curl() {
    let dir = tempfile::tempdir().unwrap();
    let peer = half_then_rest("Content-Length: 1048576\r\n");
    let session = start(dir.path(), &["curl", "-q", "-o", "file", &peer.url("/")]);
    peer.release();
    let (code, screen) = session.end();
    assert_eq!(code, Some(0));
    assert!(screen.text().starts_with("  % Total    % Received % Xferd"), "{}", screen.text());
    assert!(screen.text().contains("\n100  1.00M 100  1.00M   0      0"), "{}", screen.text());
}

#[test]
fn curl_persona_draws_one_meter_for_parallel_transfers() {
    let dir = tempfile::tempdir().unwrap();
    let site = GatedSite::start(1);
    let urls = site.site.url("/[0-1]");
    let session = start(dir.path(), &["curl", "-q", "-Z", "-o", "#1", &urls]);
    let titles = "DL% UL%  Dled  Uled  Xfers  Live Total     Current  Left    Speed\n";
    session.wait_for("the meter", |screen| screen.text().starts_with(titles));
    site.open();
    let (code, screen) = session.end();
    let text = screen.text();
    assert!(code == Some(0) && text.starts_with(&format!("{titles}100 --     14     0     2     0 ")), "{text}");
    assert_eq!(text.lines().count(), 2, "{text}");
    let mut silent = start(dir.path(), &["curl", "-q", "-s", "-Z", "-o", "#1", &urls]);
    assert_eq!((silent.wait_for_end(), silent.output()), (Some(0), Vec::new()));
}

#[test]
fn summary_option_prints_the_summary_to_a_file() {
    let dir = tempfile::tempdir().unwrap();
    let site = GatedSite::start(9);
    let errors = dir.path().join("errors");
    for (args, expected) in
        [(&[][..], ""), (&["--summary"][..], "haul: 2 done, 14 B in N s, 2 requests over N connections")]
    {
        let mut command = haul_in(dir.path(), args);
        command.args(["--out-null", &site.site.url("/[0-1]")]).stderr(File::create(&errors).unwrap());
        assert!(command.stdout(Stdio::null()).status().unwrap().success());
        let text = std::fs::read_to_string(&errors).unwrap();
        assert_eq!(steady_text(text.trim_end().to_owned()), expected);
    }
}
