//! Compares options with one URL and with two. The blocking driver fetches a single URL, and the
//! fleet several, but every option must have the same effect.

use crate::common;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use common::{HAUL, page, run_haul, run_in};
use testkit::h1_peer::{H1Peer, ScriptStep};

/// The sets of options whose effects on one URL and on two URLs are compared. For two URLs, `-O` is
/// given twice. The directory contains the file `there` with two bytes.
const LINES: &[&str] = &[
    "",
    "-i",
    "-I",
    "-I -O",
    "-i -O",
    "-O -R",
    "-O -J",
    "-O -J -R",
    "-O --no-clobber",
    "-O --no-clobber -R",
    "-O --skip-existing",
    "-O --output-dir new",
    "-O --output-dir new --create-dirs",
    "-O --remove-on-error --max-filesize 3",
    "-O --create-file-mode 0600",
    "-O --xattr",
    "-O -z 2000-01-01",
    "-O -C -",
    "-O -r 1-2",
    "-z 2000-01-01",
    "-z 1990-01-01",
    "-z 2000-01-01 -i",
    "-r 1-2",
    "-C 2",
    "--max-filesize 3",
    "--disallow-username-in-url",
    "--proto =https",
    "--proto-default https",
    "--url-query a=b",
    "-d a=b",
    "-G -d a=b",
    "--json {}",
    "-X PATCH",
    "-u me:word",
    "--oauth2-bearer token",
    "-b a=b",
    "-e http://elsewhere/",
    "-H Accept:",
    "-0",
    "--compressed",
    "--raw",
    "--ignore-content-length",
    "--path-as-is",
    "--request-target /x",
    "--extract l+",
    "-x http://127.0.0.1:1 --retry 0",
    "--unix-socket /nonexistent",
    "--interface nonesuch",
    "--cookie nofile",
    "-d @nofile",
    "-c nodir/jar",
];

/// The format of `-w` in all runs of these tests.
const TOLD: &str =
    "[%{url_effective} %{http_code} %{exitcode} %{method} %{filename_effective} %{size_download} %{num_headers}]\n";

/// Starts a server that ignores conditions and ranges, and closes each connection. Its response
/// suggests the file name `name`.
fn peer(name: &str) -> H1Peer {
    let head =
        "HTTP/1.1 200 OK\r\nLast-Modified: Sun, 06 Nov 1994 08:49:37 GMT\r\nContent-Length: 5\r\nConnection: close\r\n";
    let reply = format!("{head}Content-Disposition: attachment; filename={name}\r\n\r\nhello");
    H1Peer::always(vec![ScriptStep::ReadHead, ScriptStep::send(reply)])
}

/// Returns the files of a directory, except `second`, by name. Each has its content, a flag that is
/// true if it is more than a day old, and its permissions.
fn files(dir: &Path) -> BTreeMap<String, (String, bool, String)> {
    let entries = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap()).filter(|entry| entry.file_name() != "second");
    let told = |entry: fs::DirEntry| {
        let (path, metadata) = (entry.path(), entry.metadata().unwrap());
        let is_dated = metadata.modified().unwrap().elapsed().is_ok_and(|age| age.as_secs() > 86_400);
        let content = fs::read_to_string(&path).unwrap_or_else(|_| format!("{:?}", files(&path)));
        (entry.file_name().into_string().unwrap(), (content, is_dated, format!("{:?}", metadata.permissions())))
    };
    entries.map(told).collect()
}

#[test]
fn options_affect_one_and_two_urls_equally() {
    // Each alone, then with some of the others; with `HAUL_MODELS` set, with all.
    let partners = if std::env::var_os("HAUL_MODELS").is_some() { LINES.len() } else { 3 };
    for partner in 0..partners {
        for (at, line) in LINES.iter().enumerate() {
            let other = if partner == 0 { "" } else { LINES[(at + partner * 7) % LINES.len()] };
            compare(&format!("{line} {other}"));
        }
    }
}

fn compare(line: &str) {
    let options: Vec<&str> = line.split_whitespace().collect();
    let run = |is_one: bool| {
        let (dir, first, second) = (tempfile::tempdir().unwrap(), peer("first"), peer("second"));
        fs::write(dir.path().join("there"), "th").unwrap();
        let urls = [first.url("/there"), second.url("/second")].map(|url| url.replace("//", "//you:secret@"));
        let mut args = vec!["-s", "-S", "-w", TOLD];
        args.extend(&options);
        args.extend(["--url", &urls[0]]);
        if !is_one {
            args.extend(["--url", &urls[1]]);
            args.extend(options.contains(&"-O").then_some("-O"));
        }
        let ran = run_in(dir.path(), HAUL, &args);
        let of_host = |text: Vec<u8>| String::from_utf8(text).unwrap().replace(&first.addr().to_string(), "HOST");
        let request = (first.connections() > 0).then(|| of_host(first.received(0)));
        (ran.code, request, files(dir.path()), of_host(ran.stdout))
    };
    let (one, many) = (run(true), run(false));
    assert_eq!((&one.1, &one.2), (&many.1, &many.2), "{line}");
    // A skipped URL leaves the exit code to the other.
    assert!(one.0 == many.0 || (one.0 == 0 && one.3.is_empty()), "{line}: {} and {}", one.0, many.0);
    assert!(many.3.starts_with(&one.3), "{line}: {} is not the beginning of {}", one.3, many.3);
}

/// A run takes at least as long as the pauses that `--rate` demands, even on a slow machine. The
/// test checks only this lower limit.
#[test]
fn rate_applies_to_arguments_lists_stages_and_groups() {
    let index = page("id=1 id=2 id=3");
    let peer = page("x");
    let urls: Vec<String> = (0..4).map(|number| peer.url(&format!("/{number}"))).collect();
    let dir = tempfile::tempdir().unwrap();
    let list = common::list(dir.path(), "list", &urls).display().to_string();
    let (glob, index, template) = (peer.url("/[0-3]"), index.url("/"), peer.url("/{}"));
    let empty = common::list::<&str>(dir.path(), "empty", []).display().to_string();
    let groups = [&*urls[0], "--next", &urls[1], "--next", &urls[2], "--next", &urls[3]];
    let config = dir.path().join("config").display().to_string();
    let listed: Vec<String> = urls.iter().map(|url| format!("url = {url}\nrate = 20/s\n")).collect();
    std::fs::write(&config, listed.join("next\n")).unwrap();
    let modes: [&[&str]; 7] = [
        &[&glob],
        &["--no-parallel", &glob],
        &["--input-file", &list],
        &[&index, "--extract", "id=([0-9])", "--then", &template],
        &groups,
        &["-K", &config],
        &["-T", &empty, &glob],
    ];
    for persona in [&[][..], &["curl", "-s"]] {
        for mode in modes {
            let args: Vec<&str> = [persona, &["--rate", "20/s"], mode].concat();
            let began = Instant::now();
            run_haul(&args).ok();
            let took = began.elapsed();
            assert!(took >= 3 * Duration::from_millis(50), "{args:?}: {took:?}");
        }
    }
}
