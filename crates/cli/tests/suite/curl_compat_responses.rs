//! The curl persona accepts the same responses as curl 8.22. For other responses it fails with
//! curl's exit codes, after it has printed the valid lines of the head.

use crate::common;

use std::fs;

use common::{answering, curl, curl_in, curl_quiet, received};
use testkit::h1_peer::{H1Peer, ScriptStep};

/// Runs the curl persona with `-i` against a server that sends this response and closes. Returns
/// the exit code and the output.
fn printed(reply: &str, options: &[&str]) -> (i32, String) {
    let peer = answering(reply);
    let ran = curl_quiet(&[options, &["-i", &peer.url("/")]].concat());
    (ran.code, String::from_utf8(ran.stdout).unwrap())
}

#[test]
fn repeated_chunked_coding_is_decoded_once() {
    let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked, chunked\r\nTransfer-Encoding: chunked\r\n\r\n";
    let chunks = "3\r\nabc\r\n0\r\n\r\n";
    assert_eq!(printed(&format!("{head}{chunks}"), &[]), (0, format!("{head}abc")));
    let steps = vec![ScriptStep::ReadHead, ScriptStep::send(format!("{head}{chunks}")), ScriptStep::ReadToEnd];
    let peer = H1Peer::always(steps);
    let url = peer.url("/");
    assert_eq!(curl_quiet(&[&url, &url]).text(), "abcabc");
    assert_eq!(peer.connections(), 2, "the connection takes no further request");
}

#[test]
fn broken_head_is_printed_up_to_its_fault() {
    let good = "HTTP/1.1 200 OK\r\nA: b\r\n";
    for (fault, code) in [
        ("Content-Length: -6\r\nC: d\r\n\r\n", 8),
        ("Content-Length: \r-6\r\n\r\n", 8),
        ("Transfer-Encoding: chunked, other\r\n\r\n", 61),
        ("Content-Length : 5\r\n\r\n", 8),
        ("C: \0\r\n\r\n", 8),
    ] {
        assert_eq!(printed(&format!("{good}{fault}"), &[]), (code, good.to_owned()), "{fault:?}");
    }
    let missing = "Content-Length: 5\r\n";
    assert_eq!(printed(&format!("{good}{missing}"), &[]), (18, format!("{good}{missing}")));
    assert_eq!(printed(&format!("{good}C: d"), &[]).1, good, "an incomplete line is not printed");
}

#[test]
fn invalid_responses_have_curls_exit_codes() {
    let too_large = "HTTP/1.1 200 OK\r\nContent-Length: 36893488147419103232\r\n\r\n";
    for (reply, options, code) in [
        ("SSH-2.0-OpenSSH\r\n", &[][..], 1),
        ("HTTP/1.1 100 Continue\r\n\r\nSSH-2.0-OpenSSH\r\n", &[], 8),
        ("HTTP/2 200\r\n\r\n", &[], 8),
        ("HTTP/1.1 200 OK\0\r\n\r\n", &[], 8),
        ("No head\r\n", &["-I", "--http0.9"], 8),
        (too_large, &[], 8),
        (too_large, &["--max-filesize", "5"], 63),
    ] {
        assert_eq!(printed(reply, options).0, code, "{reply:?} {options:?}");
    }
    let many = format!("HTTP/1.1 200 OK\r\n{}\r\n", "A: b\r\n".repeat(5001));
    assert_eq!(printed(&many, &[]).0, 100);
    let long = format!("HTTP/1.1 200 OK\r\nA: {}\r\n\r\n", "b".repeat(100 << 10));
    assert_eq!(printed(&long, &[]).0, 100);
    let field = format!("A: {}", "b".repeat(100 << 10));
    let fields = ["-H", &*field].repeat(11);
    assert_eq!(printed("", &fields).0, 100, "the request is too large");
}

#[test]
fn unsolicited_transfer_encoding_error_names_the_coding() {
    let peer = answering("HTTP/1.1 200 OK\r\nTransfer-Encoding: identityx\r\n\r\n");
    let ran = curl(&["-sS", &peer.url("/")]);
    assert_eq!(ran.stderr, "curl: (61) Unsolicited Transfer-Encoding (identityx) found\n");
}

#[test]
fn header_line_with_leading_blank_is_skipped() {
    let reply = "HTTP/1.1 200 OK\r\n Date: x\r\nContent-Length: 1\r\n\r\na";
    assert_eq!(printed(reply, &[]), (0, reply.to_owned()));
    assert_eq!(printed("HTTP/1.1 200 OK\r\n Content-Length: 5\r\n\r\na", &[]).0, 8);
}

#[test]
fn body_is_delivered_up_to_the_size_limit() {
    let reply = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nabcd\r\n4\r\nefgh\r\n0\r\n\r\n";
    let (code, text) = printed(reply, &["--max-filesize", "6"]);
    assert!(code == 63 && text.ends_with("\r\n\r\nabcdef"), "{code}: {text}");
}

#[test]
fn trailer_lines_end_in_crlf() {
    let reply = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\nA: b\n\n";
    assert!(printed(reply, &[]).1.ends_with("\r\n\r\naA: b\r\n"));
    let (dir, peer) = (tempfile::tempdir().unwrap(), answering(reply));
    curl_in(dir.path(), &["-s", "-D", "heads", "-o", "body", &peer.url("/")]).ok();
    assert!(fs::read_to_string(dir.path().join("heads")).unwrap().ends_with("\r\n\r\nA: b\r\n"));
}

#[test]
fn requests_use_http10_after_http10_response() {
    let reply = "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 1\r\n\r\na";
    let steps = vec![ScriptStep::ReadHead, ScriptStep::send(reply), ScriptStep::ReadHead, ScriptStep::send(reply)];
    let peer = H1Peer::start(vec![steps]);
    let url = peer.url("/");
    assert_eq!(curl_quiet(&[&url, &url]).text(), "aa");
    let sent = received(&peer, 0);
    assert_eq!(
        (sent.matches("GET / HTTP/1.1\r\n").count(), sent.matches("GET / HTTP/1.0\r\n").count()),
        (1, 1),
        "{sent}"
    );
    // Also within one transfer, over another connection.
    let redirect = "HTTP/1.0 302 Found\r\nLocation: /b\r\nContent-Length: 0\r\n\r\n";
    let peer = H1Peer::start(vec![
        vec![ScriptStep::ReadHead, ScriptStep::send(redirect)],
        vec![ScriptStep::ReadHead, ScriptStep::send("HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n")],
    ]);
    curl_quiet(&["-L", &peer.url("/")]).ok();
    assert!(received(&peer, 1).starts_with("GET /b HTTP/1.0\r\n"), "{}", received(&peer, 1));
}

#[test]
fn content_range_without_end_allows_resuming() {
    let reply = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Range: bytes 5-\r\n\r\nabc";
    let (code, text) = printed(reply, &["-C", "5"]);
    assert!(code == 0 && text.ends_with("\r\n\r\nabc"), "{code}: {text}");
    assert_eq!(printed(reply, &["-C", "6"]).0, 33);
}

#[test]
fn include_and_dump_header_print_head_lines_twice() {
    let (code, text) = printed("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na", &["-D", "-"]);
    let doubled = "HTTP/1.1 200 OK\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n\r\na";
    assert_eq!((code, &*text), (0, doubled));
}

#[test]
fn retried_output_keeps_heads_of_bodiless_responses() {
    let dir = tempfile::tempdir().unwrap();
    let busy = "HTTP/1.1 503 Busy\r\nRetry-After: 0\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
    let fine = "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nConnection: close\r\n\r\na";
    for options in [&[][..], &["--fail"]] {
        let peer = H1Peer::start(vec![
            vec![ScriptStep::ReadHead, ScriptStep::send(busy)],
            vec![ScriptStep::ReadHead, ScriptStep::send(fine)],
        ]);
        let args = ["-s", "-i", "--retry", "1", "--retry-delay", "0", "-o", "out", &peer.url("/")];
        curl_in(dir.path(), &[options, &args].concat()).ok();
        assert_eq!(fs::read_to_string(dir.path().join("out")).unwrap(), format!("{busy}{fine}"), "{options:?}");
    }
    let with_body = "HTTP/1.1 503 Busy\r\nRetry-After: 0\r\nContent-Length: 1\r\nConnection: close\r\n\r\nb";
    let peer = H1Peer::start(vec![
        vec![ScriptStep::ReadHead, ScriptStep::send(with_body)],
        vec![ScriptStep::ReadHead, ScriptStep::send(fine)],
    ]);
    let args = ["-s", "-i", "--retry", "1", "--retry-delay", "0", "-o", "out", &peer.url("/")];
    curl_in(dir.path(), &args).ok();
    assert_eq!(fs::read_to_string(dir.path().join("out")).unwrap(), fine);
}

#[test]
fn digest_probe_without_challenge_prints_both_heads() {
    let head = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
    let steps = vec![
        ScriptStep::ReadHead,
        ScriptStep::send(head),
        ScriptStep::ReadHead,
        ScriptStep::ReadBytes(1),
        ScriptStep::send(head),
    ];
    let peer = H1Peer::start(vec![steps]);
    let ran = curl_quiet(&["-i", "--digest", "-u", "me:word", "-d", "x", &peer.url("/")]);
    assert_eq!(ran.text(), head.repeat(2));
}

#[test]
fn verbose_names_ignored_fields_of_connect_response() {
    let opened = "HTTP/1.1 200 Fine\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n";
    let reply = "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na";
    let steps = vec![ScriptStep::ReadHead, ScriptStep::send(opened), ScriptStep::ReadHead, ScriptStep::send(reply)];
    let peer = H1Peer::start(vec![steps]);
    let ran = curl(&["-v", "-p", "-x", &peer.url(""), "http://h.test/"]);
    for name in ["Content-Length", "Transfer-Encoding"] {
        let line = format!("* Ignoring {name} in CONNECT 200 response\n");
        assert!(ran.stderr.contains(&line), "{}", ran.stderr);
    }
}

#[test]
fn not_modified_response_cannot_resume_a_file() {
    let peer = answering("HTTP/1.1 304 Not Modified\r\n\r\n");
    let said = "curl: (33) HTTP server does not seem to support byte ranges. Cannot resume.";
    assert_eq!(curl_quiet(&["-C", "9", &peer.url("/")]).failed(33), said);
}

#[test]
fn time_cond_drops_body_of_equal_date() {
    let peer =
        answering("HTTP/1.1 200 OK\r\nLast-Modified: Wed, 21 Oct 2015 07:28:00 GMT\r\nContent-Length: 1\r\n\r\nx");
    for (date, body) in [("07:28:00", ""), ("07:28:01", "x")] {
        let ran = curl_quiet(&["-z", &format!("-Wed, 21 Oct 2015 {date} GMT"), &peer.url("/")]);
        assert_eq!(ran.text(), body, "{date}");
    }
}

#[test]
fn entity_tag_is_printed_before_the_body() {
    let peer = answering("HTTP/1.1 200 OK\r\nETag: \"one\"\r\nContent-Length: 1\r\n\r\nx");
    assert_eq!(curl_quiet(&["--etag-save", "-", &peer.url("/")]).text(), "\"one\"\nx");
    let gone = answering("HTTP/1.1 404 No\r\nETag: \"one\"\r\nContent-Length: 1\r\n\r\nx");
    assert_eq!(curl_quiet(&["--etag-save", "-", &gone.url("/")]).text(), "x");
}

#[test]
fn http09_is_refused_on_reused_connection() {
    let head = "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx";
    let steps = vec![ScriptStep::ReadHead, ScriptStep::send(head), ScriptStep::ReadHead, ScriptStep::send("no head\n")];
    let peer = H1Peer::start(vec![steps]);
    let url = peer.url("/");
    let ran = curl_quiet(&["--http0.9", &url, &url]);
    assert_eq!((ran.code, ran.stdout.as_slice(), &*ran.stderr), (8, &b"x"[..], "curl: (8) Invalid status line\n"));
}

#[test]
fn verbose_shows_invalid_response_line() {
    let peer = answering("this is \x1bno HTTP\r\nnor this\r\n");
    let ran = curl(&["-sv", &peer.url("/")]);
    assert!(ran.code == 1 && ran.stderr.contains("\n< this is ?no HTTP\n"), "{}", ran.stderr);
    assert!(!ran.stderr.contains("nor this"), "{}", ran.stderr);
}

#[test]
fn time_cond_does_not_apply_to_a_part() {
    let part = "HTTP/1.1 206 Partial Content\r\nLast-Modified: Thu, 01 Jan 2015 00:00:00 GMT\r\n\
                Content-Range: bytes 0-1/5\r\nContent-Length: 2\r\n\r\nab";
    let whole = "HTTP/1.1 200 OK\r\nLast-Modified: Thu, 01 Jan 2015 00:00:00 GMT\r\nContent-Length: 5\r\n\r\nabcde";
    let later = ["-z", "Fri, 01 Jan 2016 00:00:00 GMT"];
    for (reply, body) in [(part, "ab"), (whole, "abcde")] {
        let peer = answering(reply);
        assert_eq!(curl_quiet(&[&later[..], &["-r", "0-1", &peer.url("/")]].concat()).text(), body);
    }
    assert_eq!(curl_quiet(&[&later[..], &[&answering(whole).url("/")]].concat()).text(), "");
}

#[test]
fn max_filesize_does_not_count_the_existing_part() {
    let peer = answering("HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 5-7/8\r\nContent-Length: 3\r\n\r\nabc");
    let with = |limit: &str| curl_quiet(&["-C", "5", "--max-filesize", limit, &peer.url("/")]);
    assert_eq!(with("3").text(), "abc");
    assert_eq!(with("2").code, 63);
}
