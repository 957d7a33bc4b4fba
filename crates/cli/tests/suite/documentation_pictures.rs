//! Tests that the pictures of terminals in the documents are current. The pictures are SVG files of
//! terminal sessions. The tests run each session again, and compare it with the file, except for
//! figures that vary. With `HAUL_PICTURES=1` (`make pictures`) the tests write the files.

use std::fs;
use std::path::Path;

use regex::Regex;
use testkit::terminal::{ScreenSnapshot, TerminalSession, picture};

use crate::guides::{GuideSite, example_command};

/// The width of the terminals in columns.
const COLUMNS: u16 = 100;

/// Runs commands on a terminal, each after a prompt. Returns the last screen of the terminal, or
/// the first screen that contains the text `until`.
fn session(commands: &[&str], until: Option<&str>) -> ScreenSnapshot {
    let quoted = |command: &str| format!("'{}'", command.replace('\'', "'\\''"));
    let script: String = commands
        .iter()
        .map(|command| format!("printf '\\033[32m$\\033[0m %s\\n' {}\n{command} || :\n", quoted(command)))
        .collect();
    let (site, dir) = (GuideSite::start(), tempfile::tempdir().unwrap());
    let authority = tempfile::NamedTempFile::new().unwrap();
    let mut bash = example_command(&script, &site, dir.path(), authority.path());
    bash.env_remove("NO_COLOR");
    let session = TerminalSession::start(bash, (COLUMNS, 60)).unwrap();
    match until {
        Some(text) => session.wait_for(text, |screen| screen.text().contains(text)),
        None => session.end().1,
    }
}

/// Returns a picture in which words replace the figures that differ from run to run.
fn steady(svg: &str) -> String {
    let mut text = svg.to_owned();
    for (pattern, word) in [
        (r"\b(Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)\b", "MONTH"),
        (r"[0-9]+(\.[0-9]+)?", "N"),
        (r"N +[KMGT]?i?B/s", "RATE"),
        (r"  N(ns|us|ms|s|m|h|d) left", ""),
        (r"N (ns|us|µs|ms|s)\b", "TIME"),
        (r"N connections?", "N connections"),
        (r" +", " "),
    ] {
        text = Regex::new(pattern).unwrap().replace_all(&text, word).into_owned();
    }
    text
}

/// Asserts that the picture `docs/pictures/NAME.svg` shows this screen. If the environment variable
/// `HAUL_PICTURES` is set, writes the picture instead.
#[track_caller]
fn check_picture(name: &str, title: &str, screen: &ScreenSnapshot) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/pictures").join(format!("{name}.svg"));
    let today = picture(title, COLUMNS, screen);
    if std::env::var_os("HAUL_PICTURES").is_some() {
        fs::write(&file, today).unwrap();
        return;
    }
    let shown = fs::read_to_string(&file).unwrap_or_default();
    assert!(steady(&shown) == steady(&today), "{name}.svg shows another session: make pictures\n{}", screen.text());
}

#[test]
fn readme_picture_of_first_commands_is_current() {
    let commands = [
        "haul 'https://example.com/items/[1-3]' --extract '<h1>([^<]+)'",
        "haul -O 'https://example.com/items/[1-3]'",
        "haul -O https://example.com/half.iso",
    ];
    check_picture("first-minute", "values, files and progress in a terminal", &session(&commands, Some("50%")));
}

#[test]
fn troubleshooting_guide_picture_of_errors_is_current() {
    let commands = [
        "haul http://127.0.0.1:1/",
        "haul htp://example.com/items/1",
        "haul --retires 5 https://example.com/items/1",
        "haul -o missing/page https://example.com/items/1",
        "SSL_CERT_FILE= haul https://example.com/items/1",
    ];
    check_picture("errors", "messages of failing commands, with their remedies", &session(&commands, None));
}

#[test]
fn troubleshooting_guide_picture_of_doctor_is_current() {
    // The section before is about this machine.
    let commands = ["haul doctor https://example.com/items/1 | grep -A 99 ^TLS"];
    check_picture("doctor", "haul doctor", &session(&commands, None));
}
