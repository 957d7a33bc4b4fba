//! The curl persona sends requests and follows redirects as curl 8.22 does: heads and content.

use crate::common;

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;

use common::{HAUL, answering, curl, curl_in, curl_quiet, page, program, received, reply_steps, run};
use testkit::h1_peer::H1Peer;

/// Runs the curl persona with these options. Returns the header fields after `Accept` in its
/// request, joined by `|`.
fn fields(args: &[&str]) -> String {
    let peer = page("x");
    curl_quiet(&[args, &["-o", "/dev/null", &peer.url("/")]].concat()).ok();
    let request = String::from_utf8(peer.received(0)).expect("text");
    let (_, behind) = request.split_once("Accept: */*\r\n").expect("it accepts all");
    behind.trim_end().replace("\r\n", "|")
}

#[test]
fn connection_field_is_last_and_lists_te() {
    let gzip = "Accept-Encoding: deflate, gzip, br, zstd";
    for (args, expected) in [
        (&["--tr-encoding"][..], "TE: gzip|Connection: TE"),
        (&["--tr-encoding", "-H", "Connection: close", "-H", "X: y"], "TE: gzip|X: y|Connection: close, TE"),
        (&["--tr-encoding", "-H", "Connection: a", "-H", "Connection: b"], "TE: gzip|Connection: a, TE|Connection: b"),
        (&["--tr-encoding", "-H", "Connection:"], "TE: gzip|Connection: TE"),
        (&["--tr-encoding", "-H", "Connection;"], "TE: gzip|Connection: TE"),
        (&["--tr-encoding", "-H", "TE: x"], "TE: x"),
        (&["--tr-encoding", "-H", "TE:"], ""),
        (&["-H", "Connection;"], ""),
        (
            &["-H", "Connection: a", "-H", "X: y", "-d", "z"],
            "X: y|Content-Length: 1|Content-Type: application/x-www-form-urlencoded|Connection: a||z",
        ),
    ] {
        assert_eq!(fields(args), expected, "{args:?}");
    }
    assert_eq!(fields(&["--tr-encoding", "--compressed"]), format!("TE: gzip|{gzip}|Connection: TE"));
}

#[test]
fn header_without_a_name_is_dropped() {
    let peer = page("x");
    let ran = curl(&["-sS", "-H", ": x", "-H", ":", "-H", ";", "-H", "A: b", &peer.url("/")]);
    assert_eq!((ran.code, &*ran.stderr), (0, ""));
    assert!(received(&peer, 0).ends_with("Accept: */*\r\nA: b\r\n\r\n"), "{}", received(&peer, 0));
}

#[test]
fn user_agent_and_referer_may_be_latin1() {
    let peer = page("");
    let latin = OsStr::from_bytes(b"J\xfcrgen");
    let mut command = program(HAUL);
    command.args(["curl", "-q", "-s", "-A"]).arg(latin).arg("-e").arg(latin).arg(peer.url("/"));
    run(&mut command).ok();
    let sent = peer.received(0);
    for field in [&b"User-Agent: J\xfcrgen\r\n"[..], b"Referer: J\xfcrgen\r\n"] {
        assert!(sent.windows(field.len()).any(|window| window == field), "{}", String::from_utf8_lossy(&sent));
    }
}

#[test]
fn chunked_request_without_content_sends_last_chunk() {
    let (dir, peer) = (tempfile::tempdir().unwrap(), page("x"));
    fs::write(dir.path().join("up"), "sent").unwrap();
    let args = ["-s", "-H", "Transfer-Encoding: chunked", "-T", "up", &peer.url("/1"), &peer.url("/2")];
    curl_in(dir.path(), &args).ok();
    assert!(received(&peer, 0).ends_with("\r\n\r\n4\r\nsent\r\n0\r\n\r\n"), "{}", received(&peer, 0));
    let sent = received(&peer, 1);
    assert!(sent.starts_with("GET /2 ") && sent.ends_with("\r\n\r\n0\r\n\r\n"), "{sent}");
    for method in ["POST", "PUT", "DELETE"] {
        let peer = page("x");
        curl(&["-s", "-X", method, "-H", "Transfer-Encoding: chunked", &peer.url("/")]).ok();
        let sent = received(&peer, 0);
        assert!(sent.starts_with(&format!("{method} / ")) && sent.ends_with("\r\n\r\n0\r\n\r\n"), "{sent}");
        assert!(sent.contains("\r\nTransfer-Encoding: chunked\r\n") && !sent.contains("Content-Type"), "{sent}");
    }
}

#[test]
fn get_option_with_form_or_upload_is_refused() {
    let (dir, peer) = (tempfile::tempdir().unwrap(), page("x"));
    let url = peer.url("/");
    fs::write(dir.path().join("f"), "f").unwrap();
    let get = "GET (-G, --get)";
    for (other, asked) in [
        (&["-F", "a=b"][..], format!("{get} and multipart formpost (-F, --form)")),
        (&["-T", "f"], format!("PUT (-T, --upload-file) and {get}")),
    ] {
        let ran = curl_in(dir.path(), &[&["-G", "-d", "c=d"], other, &[&url]].concat());
        let said = format!("You can only select one HTTP request method! You asked for both {asked}.\n");
        let unwrapped = ran.stderr.replace("\nWarning: ", "");
        assert!(ran.code == 2 && unwrapped.ends_with(&said), "{}", ran.stderr);
        // Without data -G says nothing.
        curl_in(dir.path(), &[&["-s", "-G"], other, &[&url]].concat()).ok();
    }
    curl(&["-s", "-G", "-I", "-d", "c=d", &url]).ok();
}

#[test]
fn json_joins_query_data_without_separator() {
    let peer = page("x");
    curl(&["-s", "-G", "-d", "a", "--json", "b", "-d", "c", &peer.url("/")]).ok();
    assert!(peer.received(0).starts_with(b"GET /?ab&c HTTP/1.1\r\n"));
}

#[test]
fn follow_treats_any_method_with_content_as_post() {
    let script = |status: &str| {
        H1Peer::start(vec![reply_steps(&format!("{status}\r\nLocation: /to"), ""), reply_steps("200 OK", "")])
    };
    for (status, method) in [("302 Found", "GET"), ("303 See Other", "GET"), ("307 Temporary Redirect", "IGLOO")] {
        let peer = script(status);
        curl(&["-s", "--follow", "-X", "IGLOO", "-d", "moo", &peer.url("/")]).ok();
        assert!(received(&peer, 1).starts_with(&format!("{method} /to ")), "{status}: {}", received(&peer, 1));
    }
    // Without content none is one, whatever it is called.
    for (status, method) in [("302 Found", "POST"), ("303 See Other", "GET")] {
        let peer = script(status);
        curl(&["-s", "--follow", "-X", "POST", &peer.url("/")]).ok();
        assert!(received(&peer, 1).starts_with(&format!("{method} /to ")), "{status}: {}", received(&peer, 1));
    }
}

#[test]
fn redirected_upload_keeps_its_custom_method() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("up"), "sent").unwrap();
    for (follow, status, lines) in [
        ("--follow", "302 Found", ["POST /1 ", "POST /2 "]),
        ("--follow", "303 See Other", ["POST /1 ", "GET /2 "]),
        ("-L", "303 See Other", ["POST /1 ", "POST /2 "]),
    ] {
        let peer =
            H1Peer::start(vec![reply_steps(&format!("{status}\r\nLocation: /2"), "ok"), reply_steps("200 OK", "ok")]);
        curl_in(dir.path(), &["-s", follow, "-X", "POST", "-T", "up", &peer.url("/1")]).ok();
        for (connection, line) in lines.into_iter().enumerate() {
            let sent = received(&peer, connection);
            assert!(sent.starts_with(line), "{follow} {status}: {sent}");
        }
    }
}

#[test]
fn conflicting_location_headers_are_an_error() {
    for (fields, code) in [
        ("Location: /a\r\nLocation: /b\r\n", 8),
        ("Location: /a\r\nX: y\r\nlocation: /a\r\n", 0),
        ("Location:\r\nLocation: /a\r\n", 0),
    ] {
        for status in ["200 OK", "302 Found"] {
            let peer = answering(format!("HTTP/1.1 {status}\r\n{fields}Content-Length: 2\r\n\r\nok"));
            let ran = curl_quiet(&[&peer.url("/")]);
            assert_eq!(ran.code, code, "{status} {fields:?} {}", ran.stderr);
            assert_eq!(ran.stdout, if code == 0 { &b"ok"[..] } else { b"" }, "{status} {fields:?}");
        }
    }
    let peer = answering("HTTP/1.1 302 Found\r\nLocation:\r\nLocation: /next\r\nContent-Length: 0\r\n\r\n");
    let ran = curl_quiet(&["-w", "%{redirect_url}", &peer.url("/")]);
    assert_eq!(ran.text(), peer.url("/next"));
}

#[test]
fn header_fields_are_sent_as_written() {
    let peer = page("x");
    let odd = ["-H", "Odd name : a", "-H", "X: b; ", "-H", "Y;  ", "-H", "Z:  "];
    curl_quiet(&[&odd[..], &["-o", "/dev/null", &peer.url("/")]].concat()).ok();
    assert!(received(&peer, 0).ends_with("Accept: */*\r\nOdd name : a\r\nX: b; \r\n\r\n"), "{}", received(&peer, 0));
    for framing in ["Content-Length : 5", "Transfer Encoding: chunked", " content_length: 5"] {
        let peer = page("x");
        let ran = curl(&["-sS", "-H", framing, &peer.url("/")]);
        assert_eq!((ran.code, peer.received(0).len()), (2, 0), "{framing}: {}", ran.stderr);
    }
}

#[test]
fn secret_field_with_blank_name_stays_with_origin() {
    let other = page("x");
    let first = answering(format!(
        "HTTP/1.1 302 Found\r\nLocation: {}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
        other.url("/")
    ));
    curl_quiet(&["-L", "-H", "Authorization : sesame", "-o", "/dev/null", &first.url("/")]).ok();
    assert!(received(&first, 0).contains("Authorization : sesame\r\n"));
    assert!(!received(&other, 0).contains("sesame"), "{}", received(&other, 0));
}

#[test]
fn host_field_keeps_its_letter_case() {
    let peer = page("x");
    let port = peer.addr().port();
    let (url, resolve) = (format!("http://MiXeD.Test:{port}/"), format!("mixed.test:{port}:127.0.0.1"));
    let ran = curl_quiet(&["--resolve", &resolve, "-w", "%{url_effective}", "-o", "/dev/null", &url]);
    assert_eq!(ran.text(), url);
    assert!(received(&peer, 0).contains(&format!("\r\nHost: MiXeD.Test:{port}\r\n")), "{}", received(&peer, 0));
    let proxy = page("x");
    curl_quiet(&["-x", &proxy.url(""), "-o", "/dev/null", "http://MiXeD.Test/a"]).ok();
    assert!(received(&proxy, 0).starts_with("GET http://MiXeD.Test/a HTTP/1.1\r\nHost: MiXeD.Test\r\n"));
}

#[test]
fn redirect_to_first_origin_may_name_another_user() {
    let redirect = "302 Found\r\nLocation: http://you:open@h.test/b";
    let peer = H1Peer::start(vec![reply_steps(redirect, ""), reply_steps("200 OK", "x")]);
    curl_quiet(&["-L", "-x", &peer.url(""), "-o", "/dev/null", "http://me:sesame@h.test/"]).ok();
    assert!(received(&peer, 1).contains("Authorization: Basic eW91Om9wZW4=\r\n"), "{}", received(&peer, 1));
}

#[test]
fn url_query_option_has_uppercase_escapes() {
    let peer = page("x");
    curl_quiet(&["--url-query", "+%3d%zz%e4", "-o", "/dev/null", &peer.url("/%3d?%3d")]).ok();
    assert!(received(&peer, 0).starts_with("GET /%3d?%3d&%3D%zz%E4 HTTP/1.1\r\n"), "{}", received(&peer, 0));
}

#[test]
fn verbose_shows_empty_field_without_trailing_blank() {
    let peer = page("");
    let ran = curl(&["-sv", "-H", "X-Empty;", &peer.url("/")]);
    assert!(ran.stderr.contains("> X-Empty:\r\n"), "{}", ran.stderr);
}
