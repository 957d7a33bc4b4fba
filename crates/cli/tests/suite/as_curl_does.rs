//! More of what curl 8.22 does with its options, found by running it and haul side by side.

use crate::common;

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;

use common::{HAUL, curl, curl_in, names, page, program, received, run};
use testkit::raw::{RawPeer, Step};

/// The fields and the content of what `curl -F` sends for this part, with `BOUNDARY` for the boundary.
fn form(dir: &std::path::Path, part: &str) -> String {
    let peer = page("x");
    curl_in(dir, &["-sS", "-F", part, &peer.url("/")]).ok();
    let sent = received(&peer, 0);
    let boundary = sent.split_once("boundary=").unwrap().1.split("\r\n").next().unwrap().to_owned();
    sent.replace(&boundary, "BOUNDARY")
}

#[test]
fn parts_of_a_form_go_through_encoders() {
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
fn a_file_of_a_parts_fields_need_not_be_there() {
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

#[test]
fn without_any_argument_curl_only_says_where_help_is() {
    let hint = "curl: try 'curl --help' or 'curl --manual' for more information\n";
    let home = tempfile::tempdir().unwrap();
    let bare = |args: &[&str]| run(program(HAUL).arg("curl").args(args).env("HOME", home.path()));
    let ran = bare(&[]);
    assert_eq!((ran.code, &*ran.stderr), (2, hint));
    assert_eq!(bare(&["-s"]).stderr, format!("curl: (2) no URL specified\n{hint}"));
    // What .curlrc names is fetched.
    let peer = page("x");
    fs::write(home.path().join(".curlrc"), format!("-s\nurl = {}", peer.url("/"))).unwrap();
    assert_eq!(bare(&[]).text(), "x");
}

#[test]
fn a_netrc_without_a_last_value_is_one() {
    let dir = tempfile::tempdir().unwrap();
    for (text, field) in [
        ("machine 127.0.0.1 login me password", "Authorization: Basic bWU6\r\n"),
        ("machine 127.0.0.1 login a password b login me password x", "Authorization: Basic bWU6eA==\r\n"),
        ("machine 127.0.0.1 login", "Accept: */*\r\n\r\n"),
    ] {
        let peer = page("x");
        fs::write(dir.path().join("n"), text).unwrap();
        curl_in(dir.path(), &["-sS", "--netrc-file", "n", &peer.url("/")]).ok();
        let sent = received(&peer, 0);
        assert!(sent.contains(field) && sent.contains("Authorization") == field.starts_with("Auth"), "{text}: {sent}");
    }
}

#[test]
fn without_a_netrc_the_transfers_that_need_it_fail() {
    let (home, peer) = (tempfile::tempdir().unwrap(), page("x"));
    let url = peer.url("/");
    let at_home = |args: &[&str]| run(program(HAUL).args(["curl", "-q"]).args(args).env("HOME", home.path()));
    let said = "curl: (26) .netrc error: no such file\n";
    let ran = at_home(&["-sS", "-n", &url, &url]);
    assert_eq!((ran.code, ran.stderr), (26, said.repeat(2)));
    let ran = at_home(&["-sS", "-n", "-w", "%{exitcode} ", &url, "--next", "-s", &url]);
    assert_eq!((ran.code, &*ran.stderr, &*ran.stdout), (0, said, &b"26 x"[..]));
    let ran = at_home(&["-sS", "-Z", "-n", &url, &url]);
    assert_eq!((ran.code, ran.stderr), (26, said.repeat(2)));
    let own = run(program(HAUL).args(["-n", &url]).env("HOME", home.path()));
    assert!(own.code == 26 && own.stderr.contains("cannot read"), "{}", own.stderr);
}

#[test]
fn help_in_a_config_file_is_shown_and_the_file_read_on() {
    let (dir, peer) = (tempfile::tempdir().unwrap(), page("x"));
    fs::write(dir.path().join("c"), format!("-h category\n-V\nsilent\nurl = {}", peer.url("/"))).unwrap();
    let printed = curl_in(dir.path(), &["-K", "c"]).text();
    assert!(
        printed.contains(" verbose ") && printed.ends_with("\nx") && !printed.contains("Release-Date"),
        "{printed}"
    );
    fs::write(dir.path().join("c"), "-h all").unwrap();
    let ran = curl_in(dir.path(), &["-K", "c"]);
    assert!(ran.code == 2 && ran.stdout.starts_with(b"Usage: "), "{}", ran.stderr);
}

#[test]
fn a_switch_may_have_a_value_that_counts_for_nothing() {
    let peer = page("x");
    let ran = curl(&["--silent=0", "--location=", "--no-fail=1", &peer.url("/")]);
    assert_eq!((ran.code, &*ran.stderr), (0, ""));
    let own = run(program(HAUL).args(["--silent=0", &peer.url("/")]));
    assert!(own.code == 2 && own.stderr.contains("trailing garbage"), "{}", own.stderr);
}

#[test]
fn behind_seconds_there_may_be_anything() {
    let peer = page("x");
    for limit in ["5m", "5 s", "5.5.5", "5,5", "0x", "2.5 seconds"] {
        curl(&["-sS", "-m", limit, "--connect-timeout", limit, "--retry-delay", limit, &peer.url("/")]).ok();
    }
    for limit in ["", "x5", " 5", "-5"] {
        assert_eq!(curl(&["-sS", "-m", limit, &peer.url("/")]).code, 2, "{limit:?}");
    }
    assert_eq!(run(program(HAUL).args(["-m", "5m", &peer.url("/")])).code, 2);
    let silent = RawPeer::always(vec![Step::ReadToEnd]);
    assert_eq!(curl(&["-sS", "-m", "0.2m", &silent.url("/")]).code, 28);
}

#[test]
fn data_in_the_url_goes_with_no_other_content() {
    let (dir, peer) = (tempfile::tempdir().unwrap(), page("x"));
    let url = peer.url("/");
    fs::write(dir.path().join("f"), "f").unwrap();
    for other in [&["-F", "a=b"][..], &["-T", "f"]] {
        let ran = curl_in(dir.path(), &[&["-G", "-d", "c=d"], other, &[&url]].concat());
        let said = "You can only select one HTTP request method! You asked for both GET (-G, --get) and ";
        assert!(ran.code == 2 && ran.stderr.contains(said), "{}", ran.stderr);
        // Without data -G says nothing.
        curl_in(dir.path(), &[&["-s", "-G"], other, &[&url]].concat()).ok();
    }
    curl(&["-s", "-G", "-I", "-d", "c=d", &url]).ok();
}

#[test]
fn credentials_in_a_proxys_url_go_before_those_of_proxy_user() {
    let sent = |proxy_of: fn(&RawPeer) -> String, in_environment: bool| {
        let peer = page("x");
        let proxy = proxy_of(&peer);
        let mut command = program(HAUL);
        command.args(["curl", "-q", "-s", "-U", "a:b", "http://h.test/"]);
        match in_environment {
            true => command.env("http_proxy", proxy),
            false => command.args(["-x", &proxy]),
        };
        run(&mut command).ok();
        received(&peer, 0)
    };
    let with_user = |peer: &RawPeer| peer.url("").replacen("://", "://u:p@", 1);
    for in_environment in [false, true] {
        let said = sent(with_user, in_environment);
        assert!(said.contains("Proxy-Authorization: Basic dTpw\r\n"), "{said}");
        let said = sent(|peer| peer.url(""), in_environment);
        assert!(said.contains("Proxy-Authorization: Basic YTpi\r\n"), "{said}");
    }
}

#[test]
fn names_of_files_are_bytes() {
    let (dir, peer) = (tempfile::tempdir().unwrap(), page("x"));
    let dir = dir.path();
    let in_latin1 = |name: &[u8]| OsStr::from_bytes(name).to_owned();
    let with = |args: &[&OsStr]| run(program(HAUL).args(["curl", "-q", "-s"]).args(args).current_dir(dir));
    let glob = peer.url("/[1-2]");
    with(&["-o".as_ref(), &in_latin1(b"\xfc#1"), glob.as_ref()]).ok();
    assert!(dir.join(in_latin1(b"\xfc1")).exists() && dir.join(in_latin1(b"\xfc2")).exists(), "{:?}", names(dir));
    assert_eq!(with(&["-o".as_ref(), &in_latin1(b"\xfc/"), glob.as_ref()]).code, 23);

    fs::write(dir.join(in_latin1(b"up\xfc")), "sent").unwrap();
    let peer = page("x");
    with(&["-T".as_ref(), &in_latin1(b"up\xfc"), peer.url("/").as_ref()]).ok();
    let sent = received(&peer, 0);
    assert!(sent.starts_with("PUT /up%FC ") && sent.ends_with("sent"), "{sent}");
}

#[test]
fn a_redirect_that_is_not_followed_names_the_file_too() {
    let named = |location: &str| {
        let dir = tempfile::tempdir().unwrap();
        let head = format!("HTTP/1.1 302 Found\r\nLocation: {location}\r\nContent-Length: 1\r\n\r\nx");
        let peer = RawPeer::always(vec![Step::ReadHead, Step::send(head)]);
        curl_in(dir.path(), &["-s", "-O", "-J", &peer.url("/from")]).ok();
        names(dir.path()).join(" ")
    };
    assert_eq!(named("/a/to%20x?q=/y#f"), "to%20x");
    assert_eq!(named("to.txt"), "to.txt");
    // curl fails for want of a name then.
    assert_eq!(named("/a/"), "from");
}

#[test]
fn a_header_without_a_name_is_left_out() {
    let peer = page("x");
    let ran = curl(&["-sS", "-H", ": x", "-H", ":", "-H", ";", "-H", "A: b", &peer.url("/")]);
    assert_eq!((ran.code, &*ran.stderr), (0, ""));
    assert!(received(&peer, 0).ends_with("Accept: */*\r\nA: b\r\n\r\n"), "{}", received(&peer, 0));
}

#[test]
fn a_pin_for_a_proxy_matters_where_a_proxy_has_tls() {
    let peer = page("x");
    let (url, proxy) = (peer.url("/"), peer.url(""));
    let bad = ["-sS", "--proxy-pinnedpubkey", "sha256//none"];
    curl(&[&bad[..], &[&url]].concat()).ok();
    curl(&[&bad[..], &["-x", &proxy, "http://h.test/"]].concat()).ok();
    let with_tls = proxy.replacen("http:", "https:", 1);
    assert_eq!(curl(&[&bad[..], &["-x", &with_tls, "http://h.test/"]].concat()).code, 90);
    let mut command = program(HAUL);
    command.args(["curl", "-q"]).args(bad).arg("http://h.test/").env("http_proxy", with_tls);
    assert_eq!(run(&mut command).code, 90);
}
