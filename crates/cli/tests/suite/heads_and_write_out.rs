//! Compares the heads that `-i`, `-I` and `-D` print, and the values of `-w`, with those of curl.

use crate::common;

use std::fs::{self};
use std::io::{Read, Write};
use std::os::unix::net::UnixListener;
use std::thread;

use common::{HAUL, answering, as_curl, haul, installed, list, names, origin, page, run, run_haul, run_in};
use testkit::h1_peer::{H1Peer, ScriptStep};

/// Returns the lines of a response head without the field `Date`, which differs in each run.
fn head(text: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(text);
    let lines = text.lines().filter(|line| !line.to_ascii_lowercase().starts_with("date:"));
    lines.map(str::to_owned).collect()
}

#[test]
fn shown_headers_match_curl() {
    let Some(curl) = installed("curl", "heads as curl shows them") else { return };
    let origin = origin();
    let urls = [origin.url("/small"), origin.url("/bytes/10"), origin.url("/chunked/10"), origin.url("/chain/2")];
    for url in &urls {
        for args in [&["-i"][..], &["-I"], &["-D", "-"], &["-D", "head", "-o", "body"], &["-i", "-D", "head"]] {
            let args = [&["-sL", url], args].concat();
            let results = [HAUL, curl].map(|program| {
                let dir = tempfile::tempdir().unwrap();
                let stdout = run_in(dir.path(), program, &args).ok();
                let files: Vec<_> =
                    names(dir.path()).iter().map(|name| head(&fs::read(dir.path().join(name)).unwrap())).collect();
                (head(&stdout), files)
            });
            assert_eq!(results[0], results[1], "{args:?}");
        }
    }
}

#[test]
fn write_out_values_match_curl() {
    let Some(curl) = installed("curl", "-w as curl has it") else { return };
    let origin = origin();
    let format = "%{http_code} %{response_code} %{size_download} %{content_type} %{url_effective} %{num_redirects} \
                  %{method} %{scheme} %{http_version} %{remote_ip} %{remote_port} %{exitcode} %{errormsg} %{urlnum} \
                  %{filename_effective} %{url} %{num_connects} 100%% \\n\\t|%{stderr}told\\n%{stdout}end\\n";
    let dir = tempfile::tempdir().unwrap();
    for (args, url) in [
        (&[][..], "/small"),
        (&[], "/bytes/1234"),
        (&[], "/chunked/77"),
        (&["-L"], "/chain/3"),
        (&["--no-fail"], "/status/404"),
        (&["-d", "a=b"], "/echo"),
        (&["-I"], "/bytes/1234"),
        (&["-o", "body"], "/bytes/9"),
    ] {
        let url = origin.url(url);
        let [haul, curl] = [HAUL, curl].map(|program| {
            let args: Vec<&str> = args.iter().copied().filter(|arg| program == HAUL || *arg != "--no-fail").collect();
            let ran = run_in(
                dir.path(),
                program,
                &[&["-s", "-A", "x", "-w", format, "-o", "out"], &args[..], &[&url]].concat(),
            );
            (ran.code, String::from_utf8(ran.stdout).unwrap(), ran.stderr)
        });
        // Some versions of curl print the scheme in capitals.
        let same = |text: String| text.replace(" HTTP ", " http ");
        assert_eq!((haul.0, same(haul.1), haul.2), (curl.0, same(curl.1), curl.2), "{url} {args:?}");
    }
    let ran = run_haul([
        "-s",
        "-w",
        "%{http_code} %{exitcode}%{onerror} %{errormsg}",
        &origin.url("/status/500"),
        "--retry",
        "0",
    ]);
    let said = String::from_utf8(ran.stdout).unwrap();
    assert!(said.starts_with("500 22 ") && said.contains("500"), "{said}");
}

#[test]
fn write_out_shows_local_address_of_reused_connections() {
    let origin = origin();
    let url = origin.url("/small/[1-4]");
    for args in [&["-Z"][..], &[]] {
        let got = run(haul(["curl", "-s", "-w", "%{stderr}%{local_ip} %{local_port}\n"]).args(args).arg(&url));
        let told: Vec<_> = got.stderr.lines().map(|line| line.split_once(' ').unwrap()).collect();
        let is_known = |&(ip, port): &(&str, &str)| ip == "127.0.0.1" && port.parse().is_ok_and(|port: u16| port > 0);
        assert!(told.len() == 4 && told.iter().all(is_known), "{args:?}: {told:?}");
    }
}

#[test]
fn conn_id_counts_connections_from_zero() {
    let closing = vec![
        ScriptStep::ReadHead,
        ScriptStep::send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"),
    ];
    let answer = || ScriptStep::send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    let kept = vec![ScriptStep::ReadHead, answer(), ScriptStep::ReadHead, answer()];
    let peer = H1Peer::start(vec![closing, kept]);
    let (dir, url) = (tempfile::tempdir().unwrap(), peer.url("/[1-3]"));
    let got = as_curl(dir.path(), &["-v", "-w", "%{conn_id} ", &url, "http://127.0.0.1:1/"]);
    assert_eq!(String::from_utf8_lossy(&got.stdout), "0 1 1 -1 ");
    assert!(got.stderr.contains("* Connection #1 to host 127.0.0.1 left intact"), "{}", got.stderr);
}

#[test]
fn write_out_urls_keep_the_written_port() {
    let peer = page("x");
    let (dir, to) = (tempfile::tempdir().unwrap(), peer.url(""));
    let to = to.strip_prefix("http://").unwrap();
    let told = |url: &str| {
        let args = ["-o", "out", "-w", "%{url_effective}", "--connect-to", &format!("::{to}"), url];
        String::from_utf8(as_curl(dir.path(), &args).stdout).unwrap()
    };
    for url in ["http://h.test:80/a?b#c", "http://[::1]:80/", "http://h.test/", "http://h.test:8080/"] {
        assert_eq!(told(url), url);
    }
    let moved = "HTTP/1.1 302 Found\r\nLocation: //h.test:80/b\r\nContent-Length: 0\r\n\r\n";
    let peer = H1Peer::start(vec![vec![ScriptStep::ReadHead, ScriptStep::send(moved)]]);
    let got = as_curl(dir.path(), &["-w", "%{redirect_url}", &peer.url("/")]);
    assert_eq!(got.stdout, b"http://h.test:80/b");
}

#[test]
fn write_out_names_the_unix_socket() {
    let dir = tempfile::tempdir().unwrap();
    let listener = UnixListener::bind(dir.path().join("socket")).unwrap();
    let server = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let _ = stream.read(&mut [0; 4096]);
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").unwrap();
    });
    let got = as_curl(dir.path(), &["--unix-socket", "socket", "-w", "%{remote_ip} %{remote_port}", "http://h/"]);
    assert_eq!(got.stdout, b"socket -1");
    server.join().unwrap();
}

#[test]
fn write_out_ports_are_minus_one_without_connection() {
    let dir = tempfile::tempdir().unwrap();
    let args = ["-w", "%{remote_port} %{local_port}", "--unix-socket", "nosuch", "http://h/"];
    assert_eq!(as_curl(dir.path(), &args).stdout, b"-1 -1");
}

#[test]
fn size_request_counts_the_content() {
    let (origin, dir) = (origin(), tempfile::tempdir().unwrap());
    let size = |content: &str| {
        let args = ["-o", "out", "-w", "%{size_request}", "-d", content, &origin.url("/echo")];
        String::from_utf8(as_curl(dir.path(), &args).stdout).unwrap().parse::<usize>().unwrap()
    };
    // A digit more for the length.
    assert_eq!(size(&"x".repeat(1_000)) - size(&"x".repeat(999)), 2);
}

#[test]
fn glob_urls_share_one_urlnum() {
    let origin = origin();
    let urls = [origin.url("/small/[1-3]"), origin.url("/small/4")];
    let got = run_haul(["curl", "-s", "-w", "%{urlnum}\\n", &urls[0], &urls[1]]).text();
    assert_eq!(got, "small 1\n0\nsmall 2\n0\nsmall 3\n0\nsmall 4\n1\n");
}

#[test]
fn curl_urlnum_and_xfer_id_continue_after_next() {
    let origin = origin();
    let (glob, other) = (origin.url("/small/[1-2]"), origin.url("/small/3"));
    let format = "%{urlnum} %{xfer_id}\\n";
    let words =
        ["curl", "-s", "-o", "/dev/null", "-w", format, &glob, "--next", "-s", "-o", "/dev/null", "-w", format, &other];
    assert_eq!(run_haul(words).text(), "0 0\n0 1\n1 2\n");
}

#[test]
fn write_out_follows_each_body_in_order() {
    let (origin, dir) = (origin(), tempfile::tempdir().unwrap());
    let file = list(dir.path(), "list", (0..50).map(|n| origin.url(&format!("/small/{n}"))));
    let got = run_haul(["-w", "%{http_code} %{urlnum}\\n", "--input-file", file.to_str().unwrap()]).text();
    let expected: String = (0..50).map(|n| format!("small {n}\n200 {n}\n")).collect();
    assert_eq!(got, expected);
}

#[test]
fn write_out_urls_hide_the_password() {
    let peer = page("x");
    let url = peer.url("/a@b").replacen("://", "://me:secret@", 1);
    let got = run_haul(["-w", " %{url} %{url_effective}", &url]).text();
    let plain = peer.url("/a@b");
    assert_eq!(got, format!("x {plain} {plain}"));
}

#[test]
fn redirect_fragment_is_shown_and_error_etag_dropped() {
    let moved = "HTTP/1.1 302 Found\r\nLocation: /b?x=1#there\r\nContent-Length: 0\r\n\r\n";
    let page = "HTTP/1.1 404 No\r\nETag: \"tag\"\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
    let script = vec![ScriptStep::ReadHead, ScriptStep::send(moved), ScriptStep::ReadHead, ScriptStep::send(page)];
    let peer = H1Peer::always(script);
    let dir = tempfile::tempdir().unwrap();
    let told = |args: &[&str]| as_curl(dir.path(), &[args, &[&peer.url("/a")]].concat()).text();
    assert_eq!(told(&["-w", "%{redirect_url}"]), peer.url("/b?x=1#there"));
    assert_eq!(told(&["-L", "-w", "%{url_effective}", "--etag-save", "tag"]), peer.url("/b?x=1#there"));
    assert_eq!(fs::read(dir.path().join("tag")).unwrap_or_default(), b"");
}

#[test]
fn write_out_corner_cases_match_curl() {
    let dir = tempfile::tempdir().unwrap();
    let told = |fields: &str, status: &str, args: &[&str]| {
        let peer =
            answering(format!("HTTP/1.1 {status}\r\n{fields}Content-Length: 4\r\nConnection: close\r\n\r\nbody"));
        let ran = as_curl(dir.path(), &[args, &[&peer.url("/")]].concat());
        (ran.code, String::from_utf8_lossy(&ran.stdout).replace(&peer.url(""), ""))
    };
    let text = |code: i32, text: &str| (code, text.to_owned());
    assert_eq!(told("Location: \r\n", "302 F", &["-w", "[%{redirect_url}]"]), text(0, "body[]"));
    // The status does not matter.
    assert_eq!(told("Location: /new\r\n", "201 C", &["-w", "[%{redirect_url}]"]), text(0, "body[/new]"));
    assert_eq!(told("Location: /new\r\n", "201 C", &["-L", "-w", "[%{redirect_url}]"]), text(0, "body[/new]"));
    let two = "Content-Type: a/b\r\nContent-Type: c/d\r\n";
    assert_eq!(told(two, "200 O", &["-w", "[%{content_type}]"]), text(0, "body[c/d]"));
    assert_eq!(told("", "200 O", &["-G", "-d", "q=1", "-w", "[%{url}]"]), text(0, "body[/?q=1]"));
    assert_eq!(told("", "200 O", &["-I", "--max-filesize", "3", "-o", "/dev/null"]).0, 63);
    // A challenge that haul cannot answer is the result, not a failure.
    let asks = "WWW-Authenticate: NTLM\r\n";
    assert_eq!(told(asks, "401 U", &["--anyauth", "-u", "a:b"]), text(0, "body"));
    assert_eq!(told(asks, "401 U", &["--anyauth", "-u", "a:b", "-f"]).0, 22);
    let hop = "Location: /a\tb\x01\r\n";
    assert_eq!(told(hop, "302 F", &["-w", "[%{redirect_url}]"]), text(0, "body[/a%09b%01]"));
    // Neither content nor transfer coding is undone.
    assert_eq!(told("Content-Encoding: gzip\r\n", "200 O", &["--compressed", "--raw"]), text(0, "body"));
}

#[test]
fn etag_save_forgets_tag_of_replaced_content() {
    let dir = tempfile::tempdir().unwrap();
    let tag = dir.path().join("tag");
    for (status, saved) in [("200", ""), ("304", "\"old\"\n"), ("404", "\"old\"\n")] {
        fs::write(&tag, "\"old\"\n").unwrap();
        let response = format!("HTTP/1.1 {status} \r\nContent-Length: 0\r\n\r\n");
        let peer = H1Peer::always(vec![ScriptStep::ReadHead, ScriptStep::send(response)]);
        run_in(dir.path(), HAUL, &["-s", "--etag-save", "tag", &peer.url("/")]);
        assert_eq!(fs::read_to_string(&tag).unwrap(), saved, "{status}");
    }
}
