//! The curl persona reads URLs, globs and URL lists as curl 8.22 does.

use crate::common;

use std::fs;

use common::{HAUL, curl, curl_in, list, names, page, program, received, run};

#[test]
fn output_and_upload_names_may_use_named_globs() {
    let (dir, peer) = (tempfile::tempdir().unwrap(), page("x"));
    let dir = dir.path();
    curl_in(dir, &["-s", &peer.url("/{<a>x,y}/[<n>1-2]"), "-o", "#<n>-#<a>-#1"]).ok();
    assert_eq!(names(dir), ["1-x-x", "1-y-y", "2-x-x", "2-y-y"]);
    fs::write(dir.join("up1"), "1").unwrap();
    fs::write(dir.join("up2"), "2").unwrap();
    curl_in(dir, &["-s", "-T", "up{<which>1,2}", &peer.url("/"), "-o", "got#<which>"]).ok();
    assert!(dir.join("got1").exists() && dir.join("got2").exists());

    let ran = curl(&["-s", "-S", "http://h/{<a>1}{<a>2}"]);
    let said = "curl: (3) Duplicate glob name in position 19:\nhttp://h/{<a>1}{<a>2}\n                  ^\n";
    assert_eq!((ran.code, ran.stderr.as_str()), (3, said));
    let ran = curl(&["-s", "http://h/{<a>1}", "-o", "x/#<b>"]);
    let said = "curl: (43) no glob exists with this name in position 6:\nx/#<b>\n     ^\n";
    assert_eq!((ran.code, ran.stderr.as_str()), (43, said));
    // haul itself says the same on one line.
    let ran = run(program(HAUL).args(["http://h/[1-3:5]"]));
    assert!(ran.failed(3).contains("bad range in position 17"), "{}", ran.stderr);
}

#[test]
fn url_list_entries_pair_with_outputs_and_uploads() {
    let (dir, peer) = (tempfile::tempdir().unwrap(), page("x"));
    let dir = dir.path();
    fs::write(dir.join("up"), "sent").unwrap();
    list(dir, "urls", ["# none".into(), peer.url("/[1]"), String::new(), peer.url("/2")]);
    curl_in(dir, &["-s", "-T", "up", "--url", "@urls", "-o", "first"]).ok();
    assert_eq!(names(dir), ["2", "first", "up", "urls"]);
    assert!(received(&peer, 0).starts_with("PUT /[1] HTTP/1.1\r\n"), "{}", received(&peer, 0));
    assert!(received(&peer, 1).starts_with("GET /2 "));
    // To curl an argument is the value of a --url.
    fs::remove_file(dir.join("2")).unwrap();
    curl_in(dir, &["-s", "@urls", "-o", "first"]).ok();
    assert!(dir.join("2").exists());
    assert_eq!(curl_in(dir, &["-s", "@none"]).code, 26);
}

#[test]
fn empty_url_is_a_usage_error() {
    let peer = page("x");
    for args in [&[""][..], &["--url", ""], &["", &peer.url("/")]] {
        let ran = curl(&[&["-s", "-S"], args].concat());
        assert_eq!((ran.code, ran.stdout.as_slice()), (2, &b""[..]), "{args:?}");
        assert!(ran.stderr.contains("blank argument where content is expected"), "{}", ran.stderr);
    }
}

#[test]
fn malformed_url_needed_for_output_name_stops_run() {
    let (dir, peer) = (tempfile::tempdir().unwrap(), page("x"));
    fs::write(dir.path().join("up"), "sent").unwrap();
    let (bad, good) = ("http://h:99999/x", peer.url("/"));
    for args in [
        &["-O", bad][..],
        &["-T", "up", bad],
        &["-G", "-d", "q", bad],
        &["-O", bad, "--next"],
        &["http://h/[1-", "--next"],
    ] {
        let ran = curl_in(dir.path(), &[&["-s"], args, &["-s", &good]].concat());
        assert_eq!((ran.code, ran.stdout), (3, Vec::new()), "{args:?}");
    }
    assert_eq!(peer.connections(), 0);
    assert_eq!(curl(&["-s", bad, &good]).text(), "x", "alone it is one failure among others");
}

#[test]
fn proto_default_file_accepts_a_path() {
    let dir = tempfile::tempdir().unwrap();
    let file = list(dir.path(), "f", ["x"]);
    assert_eq!(curl(&["-s", "--proto-default", "file", file.to_str().unwrap()]).ok(), b"x\n");
    assert_eq!(run(program(HAUL).args(["--proto-default", "file", "x"])).code, 1);
}

#[test]
fn onion_names_are_not_resolved() {
    let ran = curl(&["-sS", "http://red.onion/"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (6, "curl: (6) Not resolving .onion address (RFC 7686)\n"));
}

#[test]
fn invalid_glob_opens_no_file_and_sends_nothing() {
    let (dir, peer) = (tempfile::tempdir().unwrap(), page("x"));
    let (url, bad) = (peer.url("/"), format!("{}{{unclosed", peer.url("/")));
    for dumped in ["head", "none/head"] {
        let ran = curl_in(dir.path(), &["-sS", "-D", dumped, &bad]);
        assert!(ran.code == 3 && ran.stderr.starts_with("curl: (3) unmatched brace in position"), "{}", ran.stderr);
    }
    assert_eq!(names(dir.path()), [""; 0]);
    let ran = curl(&["-sSZ", &url, &bad]);
    assert_eq!((ran.code, ran.stdout.len(), peer.connections()), (3, 0, 0), "{}", ran.stderr);
    assert!(ran.stderr.ends_with("\ncurl: (3) URL using bad/illegal format or missing URL\n"), "{}", ran.stderr);
    let ran = curl(&["-sS", &url, &bad]);
    assert_eq!((ran.code, ran.stdout.as_slice()), (3, &b"x"[..]), "one after the other, the first is fetched");
}

#[test]
fn output_without_a_url_ends_the_run() {
    let (dir, peer) = (tempfile::tempdir().unwrap(), page("x"));
    let url = peer.url("/");
    let ran = curl_in(dir.path(), &["-s", "-o", "a", "-o", "b", &url, "-:", "-s", &url]);
    assert_eq!((ran.code, ran.stdout.len(), peer.connections()), (0, 0, 1), "{}", ran.stderr);
    let ran = curl_in(dir.path(), &["-s", "-o", "a", &url, "-:", "-s", &url]);
    assert_eq!((ran.code, ran.stdout.as_slice()), (0, &b"x"[..]));
}

#[test]
fn resolve_replaces_addresses_like_names() {
    let peer = page("x");
    let port = peer.addr().port();
    let format = ["-sS", "-w", " %{remote_ip}", "--connect-timeout", "5"];
    for (host, entry) in [
        ("192.0.2.1", format!("192.0.2.1:{port}:127.0.0.1")),
        ("192.0.2.1", format!("*:{port}:127.0.0.1")),
        ("[2001:db8::1]", format!("[2001:db8::1]:{port}:127.0.0.1")),
    ] {
        let url = format!("http://{host}:{port}/");
        assert_eq!(curl(&[&format[..], &["--resolve", &entry, &url]].concat()).text(), "x 127.0.0.1", "{entry}");
        let proxy = [&format[..], &["--resolve", &entry, "-x", &url, "http://h.test/"]].concat();
        assert_eq!(curl(&proxy).text(), "x 127.0.0.1", "{entry} as a proxy");
    }
}
