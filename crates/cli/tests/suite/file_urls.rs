//! Tests of `file:` URLs with the curl persona: downloads, ranges, uploads and errors. The haul
//! persona and redirects refuse them.

use crate::common;

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Stdio;

use common::{CommandOutput, HAUL, eventually, names, program, run, run_haul};
use testkit::h1_peer::{H1Peer, ScriptStep};
use testkit::origin::Origin;

const TEXT: &str = "hello world\n";
const HEAD: &str = "Content-Length: 12\r\nAccept-ranges: bytes\r\nLast-Modified: Wed, 21 Oct 2015 07:28:00 GMT\r\n\r\n";

/// Creates a temporary directory with a file named `a b`. Returns the directory, and the `file:`
/// URL of the file.
fn fixture() -> (tempfile::TempDir, String) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a b");
    fs::write(&path, TEXT).unwrap();
    let modified = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_445_412_480);
    fs::File::options().write(true).open(&path).unwrap().set_modified(modified).unwrap();
    let url = format!("file://{}/a%20b", dir.path().display());
    (dir, url)
}

fn curl(dir: &Path, args: &[&str]) -> CommandOutput {
    run(program(HAUL).args(["curl", "-q", "-sS"]).args(args).current_dir(dir))
}

#[test]
fn file_url_output_matches_curl() {
    let (dir, url) = fixture();
    let get = |args: &[&str]| curl(dir.path(), args).text();
    assert_eq!(get(&[&url]), TEXT);
    assert_eq!(get(&["-fL", "--compressed", "-d", "a=b", &format!("{url}?query#fragment")]), TEXT);
    assert_eq!(get(&["-i", &url]), format!("{HEAD}{TEXT}"));
    assert_eq!(get(&["-I", &url]), HEAD);
    assert_eq!(get(&["-D", "-", "-o", "/dev/null", &url]), HEAD);
    assert_eq!(get(&["-z", "1 Jan 2020", &url]), "");
    assert_eq!(get(&["-z", "1 Jan 2010", &url]), TEXT);
    assert_eq!(get(&["-Z", &url, &url]), TEXT.repeat(2));
    assert_eq!(
        get(&["-w", "%{http_code} %{scheme} %{size_download} %{num_connects} %{url_effective}", &url]),
        format!("{TEXT}000 file 12 0 {url}")
    );
    assert_eq!(get(&["file:///dev/null"]), "");
    assert!(get(&["file:///proc/self/status"]).starts_with("Name:\thaul"), "of no known length");
}

#[test]
fn file_url_supports_ranges_and_resume() {
    let (dir, url) = fixture();
    for (range, expected) in [("0-4", "hello"), ("6-", "world\n"), ("-6", "world\n"), ("6-99", "world\n"), ("12-", "")]
    {
        assert_eq!(curl(dir.path(), &["-r", range, &url]).text(), expected, "{range}");
    }
    for range in ["13-", "-13", "4-2", "0-1,3-4", "x"] {
        assert_eq!(curl(dir.path(), &["-r", range, &url]).code, 36, "{range}");
    }
    fs::write(dir.path().join("part"), "hello ").unwrap();
    curl(dir.path(), &["-C", "-", "-o", "part", &url]).ok();
    curl(dir.path(), &["-C", "-", "-o", "part", &url]).ok();
    assert_eq!(fs::read_to_string(dir.path().join("part")).unwrap(), TEXT);
    fs::write(dir.path().join("part"), "x".repeat(13)).unwrap();
    assert_eq!(curl(dir.path(), &["-C", "-", "-o", "part", &url]).code, 36);
    assert_eq!(fs::read_to_string(dir.path().join("part")).unwrap(), "x".repeat(13));
    // Of the names of a directory none is the one to go on with.
    let directory = format!("file://{}/", dir.path().display());
    assert_eq!(curl(dir.path(), &["-C", "-", "-o", "part", &directory]).code, 36);
    assert_eq!(fs::read_to_string(dir.path().join("part")).unwrap(), "x".repeat(13));
}

#[test]
fn file_url_download_keeps_name_and_date() {
    let (dir, url) = fixture();
    curl(dir.path(), &["-O", "--output-dir", "got", "--create-dirs", "-R", &url]).ok();
    let got = dir.path().join("got/a%20b");
    assert_eq!(fs::read_to_string(&got).unwrap(), TEXT, "{:?}", names(&dir.path().join("got")));
    let modified = got.metadata().unwrap().modified().unwrap();
    assert_eq!(modified.duration_since(std::time::UNIX_EPOCH).unwrap().as_secs(), 1_445_412_480);
}

#[test]
fn file_url_of_a_directory_lists_names() {
    let (dir, _) = fixture();
    fs::write(dir.path().join("c"), "").unwrap();
    fs::write(dir.path().join(".hidden"), "").unwrap();
    assert_eq!(curl(dir.path(), &[&format!("file://{}/", dir.path().display())]).text(), "a b\nc\n");
}

#[test]
fn file_url_upload_writes_the_file() {
    let (dir, url) = fixture();
    let to = format!("file://{}/up", dir.path().display());
    let up = dir.path().join("up");
    assert_eq!(curl(dir.path(), &["-T", "a b", "-w", "%{size_upload}", &to]).text(), "12");
    assert_eq!(fs::read_to_string(&up).unwrap(), TEXT);
    fs::write(&up, "hello ").unwrap();
    curl(dir.path(), &["-T", "a b", "-C", "-", &to]).ok();
    assert_eq!(fs::read_to_string(&up).unwrap(), TEXT);
    curl(dir.path(), &["-T", "a b", "-C", "6", &to]).ok();
    assert_eq!(fs::read_to_string(&up).unwrap(), format!("{TEXT}world\n"));
    fs::remove_file(&up).unwrap();
    curl(dir.path(), &["-T", "a b", "--create-file-mode", "0600", &to]).ok();
    assert_eq!(up.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(curl(dir.path(), &["-T", "a b", &format!("{url}/none")]).code, 23);
}

/// The upload is read from a pipe that is empty at the first read. haul must wait for input, and
/// not fail with exit code 26.
#[test]
fn file_url_upload_waits_for_slow_pipe() {
    let (dir, _) = fixture();
    let up = dir.path().join("up");
    let mut command = program(HAUL);
    command.args(["curl", "-q", "-sS", "-T", "-"]).arg(format!("file://{}", up.display())).stdin(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    for (piece, all) in [("hello ", "hello "), ("world\n", TEXT)] {
        stdin.write_all(piece.as_bytes()).unwrap();
        eventually("what was piped is in the file", || fs::read_to_string(&up).is_ok_and(|text| text == all));
    }
    drop(stdin);
    assert!(child.wait().unwrap().success());
}

#[test]
fn file_url_errors_name_the_cause() {
    let (dir, url) = fixture();
    for (args, code, words) in [
        (&["file:///no/such/file"][..], 37, "Could not open file /no/such/file"),
        (&["file://elsewhere.example/etc/passwd"], 3, "it names another host"),
        (&["file:///a%00"], 3, "a NUL"),
        (&["--proto", "=https", &url], 1, "Protocol \"file\""),
        (&["--max-filesize", "11", &url], 63, "Maximum file size exceeded"),
        (&["-o", "no/such/dir", &url], 23, "no/such/dir"),
    ] {
        let ran = curl(dir.path(), args);
        assert!(ran.failed(code).contains(words), "{args:?}: {}", ran.stderr);
        assert_eq!(ran.stdout, b"", "{args:?}");
    }
}

/// A web page must not make haul read local files by a redirect.
#[test]
fn haul_persona_and_redirects_refuse_file_urls() {
    let (dir, url) = fixture();
    let head = format!("HTTP/1.1 302 Found\r\nLocation: {url}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    let peer = H1Peer::always(vec![ScriptStep::ReadHead, ScriptStep::send(head)]);
    let ran = curl(dir.path(), &["-L", &format!("http://{}/", peer.addr())]);
    assert_eq!((ran.code, ran.stdout.as_slice()), (1, &b""[..]), "{}", ran.stderr);
    let ran = run_haul([&url]);
    assert_eq!((ran.code, ran.stdout.as_slice()), (1, &b""[..]), "{}", ran.stderr);
    let origin = Origin::builder().start().unwrap();
    let ran = run_haul([&origin.url("/small"), &url]);
    assert_eq!((ran.code, ran.stdout.as_slice()), (1, &b"small\n"[..]), "{}", ran.stderr);
}

#[test]
fn write_out_of_file_urls_has_curls_parts() {
    let dir = tempfile::tempdir().unwrap();
    let format = "%{url.scheme}|%{url.host}|%{url.port}|%{urle.path}|%{url.query}|%{url.fragment}|%{url_effective}";
    for (url, expected) in [
        ("file:///none/a", "file||0|/none/a|||file:///none/a"),
        ("FILE://localhost/none/../a?q#f", "file||0|/a|q|f|file:///a?q#f"),
        ("file:/none/%2e/a", "file||0|/none/a|||file:///none/a"),
        ("file://elsewhere.example/a", "||||||file://elsewhere.example/a"),
    ] {
        let ran = run(program(HAUL).args(["curl", "-q", "-s", "-w", format, url]).current_dir(dir.path()));
        assert_eq!(String::from_utf8_lossy(&ran.stdout), expected, "{url}");
    }
}
