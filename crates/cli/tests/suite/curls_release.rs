//! What the release of curl that haul takes the place of does otherwise than older ones, which the differential test may meet.

use crate::common;

use std::fs;

use common::{HAUL, Ran, answering, page, program, run};

fn as_curl(args: &[&str]) -> Ran {
    run(program(HAUL).args(["curl", "-q", "-sS"]).args(args))
}

/// The fields behind Accept of the request that these options make.
fn fields(args: &[&str]) -> String {
    let peer = page("x");
    as_curl(&[args, &["-o", "/dev/null", &peer.url("/")]].concat()).ok();
    let request = String::from_utf8(peer.received(0)).expect("text");
    let (_, behind) = request.split_once("Accept: */*\r\n").expect("it accepts all");
    behind.trim_end().replace("\r\n", "|")
}

#[test]
fn connection_stands_last_and_names_te() {
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
fn a_proxy_that_opens_no_tunnel_is_one_that_cannot_be_reached() {
    let proxy = answering("HTTP/1.1 405 No\r\nContent-Length: 0\r\n\r\n");
    let proxy = proxy.url("");
    let through = ["-p", "-x", &proxy, "http://h.example/"];
    assert_eq!(as_curl(&through).failed(7), "curl: (7) CONNECT tunnel failed, response 405");
    // It was asked, and said no: what is tried again is a refused connection.
    let again = [&["--retry", "2", "--retry-connrefused"], &through[..]].concat();
    assert_eq!(as_curl(&again).failed(7), "curl: (7) CONNECT tunnel failed, response 405");
    assert_eq!(
        as_curl(&[&["-f"], &through[..]].concat()).failed(22),
        "curl: (22) The requested URL returned error: 405"
    );

    let broken = answering("HTTP/1.1 200 OK\r\nX-Evil: he\0llo\r\n\r\n");
    assert_eq!(as_curl(&["-p", "-x", &broken.url(""), "http://h.example/"]).code, 8);
}

#[test]
fn a_reply_that_points_to_two_places_is_none() {
    for (fields, code) in [
        ("Location: /a\r\nLocation: /b\r\n", 8),
        ("Location: /a\r\nX: y\r\nlocation: /a\r\n", 0),
        ("Location:\r\nLocation: /a\r\n", 0),
    ] {
        for status in ["200 OK", "302 Found"] {
            let peer = answering(format!("HTTP/1.1 {status}\r\n{fields}Content-Length: 2\r\n\r\nok"));
            let ran = as_curl(&[&peer.url("/")]);
            assert_eq!(ran.code, code, "{status} {fields:?} {}", ran.stderr);
            assert_eq!(ran.stdout, if code == 0 { &b"ok"[..] } else { b"" }, "{status} {fields:?}");
        }
    }
    let peer = answering("HTTP/1.1 302 Found\r\nLocation:\r\nLocation: /next\r\nContent-Length: 0\r\n\r\n");
    let ran = as_curl(&["-w", "%{redirect_url}", &peer.url("/")]);
    assert_eq!(ran.text(), peer.url("/next"));
}

#[test]
fn folded_fields_are_shown_on_one_line() {
    let peer = answering("HTTP/1.1 200 OK\r\nServer: a/\t\r\n b\r\n\tc\r\nContent-Length: 0\r\n\r\n");
    let url = peer.url("/");
    let head = "HTTP/1.1 200 OK\r\nServer: a/ b c\r\nContent-Length: 0\r\n\r\n";
    assert_eq!(as_curl(&["-i", &url]).text(), head);
    assert_eq!(as_curl(&["-D", "-", &url]).text(), head);
    assert_eq!(as_curl(&["-w", "%header{server} %{size_header}", &url]).text(), format!("a/ b c {}", head.len()));
}

#[test]
fn what_is_delivered_is_counted_and_limited_decoded() {
    let deflated: &[u8] =
        b"\x1f\x8b\x08\x08\x79\x9e\xab\x41\x00\x03\x6c\x61\x6c\x61\x6c\x61\x00\xcb\xc9\xcc\x4b\x55\x30\xe4\x52\
        \xc8\x01\xd1\x46\x5c\x0a\x10\x86\x31\x17\x00\x0a\x02\x71\x60\x18\x00\x00\x00";
    let head = format!("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: {}\r\n\r\n", deflated.len());
    let peer = answering([head.as_bytes(), deflated].concat());
    let url = peer.url("/");
    let sizes = ["-o", "/dev/null", "-w", "%{size_download} %{size_delivered}", &url];
    assert_eq!(as_curl(&sizes).text(), "44 44");
    assert_eq!(as_curl(&[&["--compressed"], &sizes[..]].concat()).text(), "44 24");

    let bomb = b"\x81\xfa\x7f\x0c\xfc\x13\x00\xf1\x58\x20\x90\x7b\x18\x00";
    let head = format!("HTTP/1.1 200 OK\r\nContent-Encoding: br\r\nContent-Length: {}\r\n\r\n", bomb.len());
    let peer = answering([head.as_bytes(), bomb].concat());
    let url = peer.url("/");
    for name in ["curl", ""] {
        let first: &[&str] = if name.is_empty() { &[] } else { &[name] };
        let args = [first, &["-q", "-sS", "--compressed", "--max-filesize", "1000", &url]].concat();
        let ran = run(program(HAUL).args(args));
        assert_eq!((ran.code, ran.stdout.len()), (63, 0), "{}", ran.stderr);
    }
}

#[test]
fn files_of_cookies_and_of_hsts_are_curls() {
    let dir = tempfile::tempdir().expect("a directory");
    let peer =
        answering("HTTP/1.1 200 OK\r\nSet-Cookie: a=1\r\nSet-Cookie: b=2; Path=/p/\r\nContent-Length: 0\r\n\r\n");
    let (jar, hsts) = (dir.path().join("jar"), dir.path().join("hsts"));
    fs::write(&hsts, "h.example. \"20391001 04:47:41\"\n.h.example \"20291001 04:47:41\"\n").expect("a file");
    let [jar_name, hsts_name] = [&jar, &hsts].map(|path| path.to_str().expect("text"));
    as_curl(&["-c", jar_name, "--hsts", hsts_name, &peer.url("/dir/page")]).ok();
    let jar = fs::read_to_string(&jar).expect("the jar");
    assert!(jar.ends_with("\n127.0.0.1\tFALSE\t/p\tFALSE\t0\tb\t2\n127.0.0.1\tFALSE\t/dir\tFALSE\t0\ta\t1\n"), "{jar}");
    let expected = "# Your HSTS cache. https://curl.se/docs/hsts.html\n\
        # This file was generated by libcurl! Edit at your own risk.\n.h.example \"20391001 04:47:41\"\n";
    assert_eq!(fs::read_to_string(&hsts).expect("the hosts"), expected);
}
