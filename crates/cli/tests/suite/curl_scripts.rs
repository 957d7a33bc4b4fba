//! Runs programs and scripts that call curl, unchanged, with a link from `curl` to haul in the
//! first directory of PATH.

use crate::common;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use common::{CommandOutput, HAUL, installed, page, program, run, skipped};
use tempfile::TempDir;
use testkit::h1_peer::{H1Peer, ScriptStep};

/// Creates a directory that contains a link named `curl` to haul.
fn with_curl() -> TempDir {
    let directory = tempfile::tempdir().expect("a directory");
    symlink(HAUL, directory.path().join("curl")).expect("a link");
    directory
}

/// Returns a command that runs the program `name` in the directory `cwd`, with `bin` as the first
/// directory of PATH.
fn found_first(bin: &Path, name: &str, cwd: &Path) -> Command {
    let path = std::env::var("PATH").unwrap_or_default();
    let mut command = program(name);
    command.env("PATH", format!("{}:{path}", bin.display())).current_dir(cwd);
    command
}

/// Runs a shell script in an empty directory. In PATH, `curl` is a link to haul.
fn sh(script: &str) -> CommandOutput {
    let (bin, cwd) = (with_curl(), tempfile::tempdir().expect("a directory"));
    run(found_first(bin.path(), "sh", cwd.path()).args(["-c", script]))
}

#[test]
fn installer_script_is_piped_into_a_shell() {
    let peer = page("set -e\nmkdir -p prefix/bin\necho installed \"$1\"\n");
    let url = format!("http://{}/install.sh", peer.addr());
    assert_eq!(sh(&format!("curl -fsSL {url} | sh -s -- here")).text(), "installed here\n");
    assert_eq!(sh(&format!("sh -c \"$(curl -fsSL {url})\" x there")).text(), "installed there\n");
    // `--proto =https --tlsv1.2 -sSf`, as one well-known installer has it, refuses plain http.
    let refused = sh(&format!("curl --proto '=https' --tlsv1.2 -sSf {url} | sh"));
    assert_eq!(refused.code, 0, "an empty script is a success");
    assert!(refused.stderr.starts_with("curl: (1) "), "{}", refused.stderr);
}

#[test]
fn missing_installer_script_runs_nothing() {
    let peer = H1Peer::always(vec![
        ScriptStep::ReadHead,
        ScriptStep::send("HTTP/1.1 404 Not Found\r\nContent-Length: 12\r\nConnection: close\r\n\r\necho BROKEN\n"),
    ]);
    let ran = sh(&format!("curl -fsSL http://{}/ | sh", peer.addr()));
    assert_eq!(
        (ran.stdout.as_slice(), ran.stderr.as_str()),
        (&b""[..], "curl: (22) The requested URL returned error: 404\n")
    );
}

#[test]
fn version_output_looks_like_curls() {
    let ran = sh("curl --version");
    let text = ran.text();
    let mut lines = text.lines();
    assert!(lines.next().expect("a line").starts_with("curl 8.22.0 ("), "{text}");
    for start in ["Release-Date: ", "Protocols: file http https", "Features: "] {
        assert!(lines.next().is_some_and(|line| line.starts_with(start)), "{text}");
    }
    let checked = sh("curl -V | sed -n 's/^curl \\([0-9]*\\).*/\\1/p'; curl -V | grep -qw HTTP2 && echo yes");
    assert_eq!(checked.text(), "8\nyes\n");
}

#[test]
fn json_output_can_be_piped_into_jq() {
    if installed("jq", "curl … | jq").is_none() {
        return;
    }
    let peer = page("{\"tag_name\": \"v1.2.3\", \"assets\": [{\"url\": \"u\"}]}\n");
    let url = format!("http://{}/latest", peer.addr());
    assert_eq!(sh(&format!("curl -s {url} | jq -r '.tag_name, .assets[0].url'")).text(), "v1.2.3\nu\n");
    let facts = sh(&format!("curl -s -o /dev/null -w '%{{json}}' {url} | jq -r '.http_code, .size_download, .url'"));
    assert_eq!(facts.text(), format!("200\n49\n{url}\n"));
}

#[test]
fn health_check_script_reads_status_codes() {
    let peer = page("up\n");
    let script = format!(
        "for i in 1 2 3; do\n\
           code=$(curl -s -o /dev/null -w '%{{http_code}}' --max-time 5 http://{}/health)\n\
           [ \"$code\" = 200 ] && echo healthy && break\n\
         done\n\
         curl -s -o /dev/null -w '%{{http_code}}' http://127.0.0.1:1/ || echo \" $?\"",
        peer.addr()
    );
    assert_eq!(sh(&script).text(), "healthy\n000 7\n");
}

#[test]
fn remote_name_download_shows_meter_on_stderr() {
    let peer = page("content\n");
    let ran = sh(&format!("curl -O http://{}/dir/file.txt && cat file.txt", peer.addr()));
    assert_eq!((ran.code, ran.stdout.as_slice()), (0, &b"content\n"[..]));
    assert!(ran.stderr.starts_with("  % Total    % Received % Xferd"), "{}", ran.stderr);
    assert!(ran.stderr.contains("\r100      8 100      8 "), "{:?}", ran.stderr);
}

#[test]
fn curlrc_in_home_sets_options() {
    let peer = page("x\n");
    let (bin, home) = (with_curl(), tempfile::tempdir().expect("a directory"));
    fs::write(home.path().join(".curlrc"), "silent\nuser-agent = \"from rc\"\n").expect("a file");
    let mut command = found_first(bin.path(), "sh", home.path());
    let script = format!("curl http://{}/", peer.addr());
    let ran = run(command.env("HOME", home.path()).args(["-c", &script]));
    assert_eq!(ran.text(), "x\n");
    assert!(String::from_utf8_lossy(&peer.received(0)).contains("User-Agent: from rc\r\n"));
}

#[test]
fn bad_curlrc_line_is_reported_and_run_continues() {
    let peer = page("x\n");
    let (bin, home) = (with_curl(), tempfile::tempdir().expect("a directory"));
    let with = |rc: &str| {
        fs::write(home.path().join(".curlrc"), rc).expect("a file");
        let script = format!("curl -s http://{}/", peer.addr());
        run(found_first(bin.path(), "sh", home.path()).env("HOME", home.path()).args(["-c", &script]))
    };
    let place = home.path().join(".curlrc").display().to_string();
    for (at, (line, why)) in [
        ("of-another-version", "is unknown"),
        ("-s -S", "had unsupported trailing garbage"),
        ("max-time = soon", "expected a proper numerical parameter"),
    ]
    .into_iter()
    .enumerate()
    {
        let ran = with(&format!("header = \"A: 1\"\n{line}\nheader = \"B: 2\"\n"));
        let option = line.split(' ').next().expect("a word");
        assert_eq!(
            (ran.code, ran.stderr.as_str()),
            (0, format!("curl: {place}:2 config file option '{option}' {why}\n").as_str())
        );
        assert_eq!(ran.stdout, b"x\n");
        let request = String::from_utf8_lossy(&peer.received(at)).into_owned();
        assert!(request.contains("A: 1\r\n") && !request.contains("B: 2"), "{request}");
    }
    // An option that curl supports and haul does not is an error.
    let ran = with("doh-cert-status\n");
    assert!(
        ran.stdout.is_empty() && ran.stderr.contains("'doh-cert-status' is not supported by haul"),
        "{}",
        ran.stderr
    );
}

/// yt-dlp passes `--compressed` and `--continue-at -` for every download. haul must not ask for
/// compressed content (`Accept-Encoding`), because such content cannot be resumed.
#[test]
fn resume_with_compressed_asks_for_plain_content() {
    let peer = page("x\n");
    let url = format!("http://{}/", peer.addr());
    let ran = sh(&format!("curl --no-progress-meter --location -o out --compressed --continue-at - {url} && cat out"));
    assert_eq!((ran.stdout.as_slice(), ran.stderr.as_str()), (&b"x\n"[..], ""));
    assert!(!String::from_utf8_lossy(&peer.received(0)).contains("Accept-Encoding"));
}

#[test]
fn missing_url_after_next_fails_after_other_transfers() {
    let peer = page("x\n");
    let url = format!("http://{}/", peer.addr());
    let config = format!("printf 'url = %s\\nnext\\n' {url} {url} | curl -sK -");
    for script in [config, format!("curl -s {url} {url} --next -o out")] {
        let ran = sh(&script);
        assert_eq!((ran.stdout.as_slice(), ran.code), (&b"x\nx\n"[..], 2), "{script}");
        assert!(ran.stderr.starts_with("curl: (2) no URL specified\n"), "{}", ran.stderr);
    }
    assert_eq!(sh(&format!("haul=$(readlink \"$(command -v curl)\"); $haul -s {url} --next -o out")).stdout, b"");
}

/// The script wcurl, if it is installed, downloads a file with haul as its `curl`. It is part of
/// the curl package in recent Debian releases, and is not on PyPI.
#[test]
fn wcurl_downloads_a_file() {
    let Some(wcurl) = installed("wcurl", "wcurl") else { return };
    let peer = page("content\n");
    let (bin, cwd) = (with_curl(), tempfile::tempdir().expect("a directory"));
    let url = format!("http://{}/a%20b.txt", peer.addr());
    let ran = run(found_first(bin.path(), wcurl, cwd.path()).arg(&url));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(fs::read(cwd.path().join("a b.txt")).expect("its file"), b"content\n");
}

/// Runs a command line that the script wcurl uses. The test does not need wcurl itself.
#[test]
fn command_line_of_wcurl_is_accepted() {
    let peer = page("content\n");
    let ran = sh(&format!(
        "curl -q --fail --globoff --location --proto-default https --remote-time --retry 5 --no-clobber --parallel \
         --silent --show-error --output file http://{0}/a --next --fail --output other http://{0}/b && cat file other",
        peer.addr()
    ));
    assert_eq!((ran.code, ran.stdout.as_slice()), (0, &b"content\ncontent\n"[..]), "{}", ran.stderr);
}

/// Vagrant always passes `--continue-at -`, even with `-I`, which requests only a head.
#[test]
fn continue_at_is_ignored_for_heads_and_stdout() {
    let peer = page("content");
    let options = "curl -q --fail --location --max-redirs 10 --verbose --user-agent Vagrant/2.3.4 --continue-at -";
    for (line, said) in
        [(format!("{options} -I"), "200 OK"), (options.into(), "content"), (format!("{options} -o -"), "content")]
    {
        let ran = sh(&format!("{line} {}", peer.url("/x.box")));
        assert_eq!(ran.code, 0, "{line}: {}", ran.stderr);
        let printed = String::from_utf8_lossy(&ran.stdout);
        assert!(printed.contains(said), "{line}: {printed}");
    }
    assert!(!String::from_utf8_lossy(&peer.received(1)).contains("Range"));
}

/// The URLs and data in the script, and the file of URLs, contain bytes of Latin-1, which are not
/// UTF-8.
#[test]
fn urls_and_data_may_hold_any_bytes() {
    let peer = page("");
    let (url, cwd) = (peer.url(""), tempfile::tempdir().expect("a directory"));
    let list = cwd.path().join("list");
    fs::write(&list, [url.as_bytes(), b"/listed\xe9\n"].concat()).expect("a list");
    let list = list.display();
    let script = format!(
        "e=$(printf '\\351')\n\
         curl -q -sS \"{url}/caf$e?q=$e\" || exit\n\
         printf 'url = {url}/config%s' \"$e\" | curl -q -sS -K - || exit\n\
         curl -q -sS --url @{list} || exit\n\
         curl -q -sS --data-urlencode \"n=$e\" {url}/form || exit\n\
         curl -q -sS -G --data-urlencode \"$e\" --url-query \"x=$e\" {url}/query || exit\n\
         {HAUL} -q -sS --input-file {list}"
    );
    let ran = sh(&script);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let received = |at| String::from_utf8_lossy(&peer.received(at)).into_owned();
    let lines: Vec<_> = (0..6).map(|at| received(at).split(" HTTP").next().unwrap_or_default().to_owned()).collect();
    let expected = [
        "GET /caf%E9?q=%E9",
        "GET /config%E9",
        "GET /listed%E9",
        "POST /form",
        "GET /query?x=%E9&%E9",
        "GET /listed%E9",
    ];
    assert_eq!(lines, expected);
    assert!(received(3).ends_with("n=%E9"), "{}", received(3));
}

/// Runs the examples from httpbin's README and front page, with httpbin as the server.
#[test]
fn httpbin_examples_give_expected_answers() {
    let is_there = Command::new("python3").args(["-c", "import httpbin"]).output();
    if !is_there.is_ok_and(|output| output.status.success()) {
        skipped("httpbin's examples: python3 has no httpbin");
        return;
    }
    let script = "import socket, threading, time\n\
                  from wsgiref.simple_server import make_server\n\
                  import httpbin\n\
                  server = make_server('127.0.0.1', 0, httpbin.app)\n\
                  print(server.server_port, flush=True)\n\
                  threading.Thread(target=server.serve_forever, daemon=True).start()\n\
                  input()\n";
    let mut server = Command::new("python3")
        .args(["-c", script])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::null())
        .spawn()
        .expect("python3");
    let mut port = String::new();
    let mut stdout = std::io::BufReader::new(server.stdout.take().expect("a pipe"));
    std::io::BufRead::read_line(&mut stdout, &mut port).expect("its port");
    let host = format!("http://127.0.0.1:{}", port.trim());
    let examples: &[(&str, &str)] = &[
        ("curl -s $H/ip", "127.0.0.1"),
        ("curl -s $H/user-agent", "curl/8.22.0"),
        ("curl -s $H/get?show_env=1", "\"args\""),
        ("curl -s -X POST -F 'name=value' $H/post", "\"name\": \"value\""),
        ("curl -s -d a=b $H/post", "\"a\": \"b\""),
        ("curl -s --json '{\"k\": 1}' $H/anything", "\"k\": 1"),
        ("curl -s -X PUT -d x $H/put", "\"x\": \"\""),
        ("curl -s -X DELETE $H/delete", "\"data\": \"\""),
        ("curl -s --compressed $H/gzip", "\"gzipped\": true"),
        ("curl -s --compressed $H/deflate", "\"deflated\": true"),
        ("curl -s -o /dev/null -w '%{http_code}' $H/status/418", "418"),
        ("curl -s -u user:passwd $H/basic-auth/user/passwd", "\"authenticated\": true"),
        ("curl -s --digest -u user:passwd $H/digest-auth/auth/user/passwd", "\"authenticated\": true"),
        ("curl -s -L $H/redirect/3", "\"url\""),
        ("curl -s -L -b '' $H/cookies/set/k1/v1", "\"k1\": \"v1\""),
        ("curl -s -o /dev/null -w '%{http_code}' -H 'If-None-Match: x' $H/etag/x", "304"),
        ("curl -s -r 0-4 -o /dev/null -w '%{http_code} %{size_download}' $H/range/10", "206 5"),
        ("curl -s $H/stream/2", "\"id\": 1"),
        ("curl -s -H 'X-A: b' $H/headers", "\"X-A\": \"b\""),
    ];
    let mut wrong = Vec::new();
    for (line, expected) in examples {
        let ran = sh(&line.replace("$H", &host));
        let text = String::from_utf8_lossy(&ran.stdout).into_owned();
        if ran.code != 0 || !text.contains(expected) {
            wrong.push(format!("{line}: {} {text} {}", ran.code, ran.stderr));
        }
    }
    drop(server.stdin.take());
    let _ = server.wait();
    assert!(wrong.is_empty(), "{wrong:#?}");
}
