//! The curl persona handles `-F` as curl 8.22 does: encoders, header files, missing files and
//! Content-Disposition.

use crate::common;

use std::fs;

use common::{HAUL, curl, curl_in, page, program, received, reply_steps, run};
use testkit::h1_peer::H1Peer;

/// Runs the curl persona with `-F` and this value. Returns the request that the server received,
/// with `BOUNDARY` in place of the boundary.
fn form(dir: &std::path::Path, part: &str) -> String {
    let peer = page("x");
    curl_in(dir, &["-sS", "-F", part, &peer.url("/")]).ok();
    let sent = received(&peer, 0);
    let boundary = sent.split_once("boundary=").unwrap().1.split("\r\n").next().unwrap().to_owned();
    sent.replace(&boundary, "BOUNDARY")
}

#[test]
fn form_encoders_transform_part_content() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    fs::write(dir.join("f.txt"), [b'x'; 58]).unwrap();
    let line = "eHh4".repeat(19);
    for (part, head, content) in [
        (
            "a=@f.txt;encoder=base64",
            "Content-Type: text/plain\r\nContent-Transfer-Encoding: base64",
            &*format!("{line}\r\neA=="),
        ),
        ("a=\u{e9} =;encoder=quoted-printable", "Content-Transfer-Encoding: quoted-printable", "=C3=A9 =3D"),
        ("a=b;encoder=7bit;headers=\"X: y\"", "Content-Transfer-Encoding: 7bit\r\nX: y", "b"),
        ("a=\u{e9};encoder=BINARY", "Content-Transfer-Encoding: binary", "\u{e9}"),
        ("a=b;encoder=base64;headers=\"content-transfer-encoding: x\"", "content-transfer-encoding: x", "Yg=="),
    ] {
        let sent = form(dir, part);
        let own = format!("{head}\r\n\r\n{content}\r\n--BOUNDARY--\r\n");
        assert!(sent.ends_with(&own) && sent.contains("\r\nContent-Length: "), "{part}: {sent}");
    }
    // A list has no encoder; each of its files has its own.
    fs::write(dir.join("g"), "g").unwrap();
    let sent = form(dir, "a=@f.txt,g;encoder=base64");
    assert!(sent.contains(&"x".repeat(58)) && sent.contains("\r\n\r\nZw==\r\n"), "{sent}");

    let peer = page("x");
    fs::write(dir.join("high"), b"\xff").unwrap();
    for (part, code) in [("a=@high;encoder=7bit", 26), ("a=\u{e9};encoder=7bit", 26), ("a=b;encoder=rot13", 43)] {
        let ran = curl_in(dir, &["-sS", "-F", part, &peer.url("/")]);
        assert_eq!(ran.code, code, "{part}: {}", ran.stderr);
    }
}

#[test]
fn missing_form_header_file_is_a_warning() {
    let peer = page("x");
    let ran = curl(&["--no-progress-meter", "-F", "a=b;headers=@/none;type=text/x", &peer.url("/")]);
    assert_eq!(
        (ran.code, &*ran.stderr),
        (0, "Warning: Cannot read from /none: No such file or directory (os error 2)\n")
    );
    assert!(received(&peer, 0).contains("name=\"a\"\r\nContent-Type: text/x\r\n\r\nb\r\n"));
    let own = run(program(HAUL).args(["-F", "a=b;headers=@/none", &peer.url("/")]));
    assert_eq!(own.code, 26);
}

/// curl opens the files of a form only when it sends the form. So `-s` suppresses the message about
/// a missing file. The URLs after `--next` are not fetched.
#[test]
fn missing_form_file_ends_all_groups() {
    let (dir, peer) = (tempfile::tempdir().unwrap(), page("x"));
    let url = peer.url("/");
    for (form, said) in [("a=@none", "none: No such file"), ("a=<none", "none: No such file"), ("a=@.", ".: ")] {
        let ran = curl_in(dir.path(), &["-sS", "-F", form, &url, "--next", "-s", &url]);
        assert_eq!((ran.code, ran.stdout.as_slice()), (26, &b""[..]), "{form}");
        assert!(ran.stderr.starts_with(&format!("curl: (26) failed to read {said}")), "{}", ran.stderr);
        let ran = curl_in(dir.path(), &["-s", "-F", form, &url]);
        assert_eq!((ran.code, &*ran.stderr), (26, ""), "{form}");
    }
    assert_eq!(peer.connections(), 0, "nothing was sent");
}

#[test]
fn form_value_keeps_its_trailing_line_end() {
    let (dir, peer) = (tempfile::tempdir().unwrap(), page(""));
    fs::write(dir.path().join("fields"), "X-Long: a\n  b\n").unwrap();
    curl_in(dir.path(), &["-s", "-F", "a= line\r\n", "-F", "b=c\t;headers=@fields", &peer.url("/")]).ok();
    let sent = received(&peer, 0);
    assert!(sent.contains("name=\"a\"\r\n\r\nline\r\n\r\n--"), "{sent}");
    assert!(sent.contains("name=\"b\"\r\nX-Long: a  b\r\n\r\nc\r\n--"), "{sent}");
}

#[test]
fn multipart_mixed_parts_have_disposition_attachment() {
    let peer = H1Peer::always(reply_steps("200 OK", ""));
    curl(&["-s", "-F", "n=v", "-H", "Content-Type: multipart/mixed", &peer.url("/")]).ok();
    curl(&["-s", "-F", "n=v", "-H", "Content-Type: Multipart/Form-Data; charset=x", &peer.url("/")]).ok();
    let has =
        |connection, kind: &str| peer.saw(connection, format!("Content-Disposition: {kind}; name=\"n\"").as_bytes());
    assert!(has(0, "attachment") && has(1, "form-data"));
}

#[test]
fn missing_form_file_stops_further_urls() {
    let peer = page("x");
    let url = peer.url("/");
    let ran = curl(&["-sS", "-w", "[%{exitcode}]", "-F", "f=@none.txt", &url, &url]);
    assert_eq!((ran.code, ran.stdout.as_slice(), ran.stderr.lines().count()), (26, &b"[26]"[..], 1), "{}", ran.stderr);
    assert_eq!(peer.connections(), 0);
}
