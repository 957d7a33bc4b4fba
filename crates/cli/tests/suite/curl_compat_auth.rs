//! The curl persona handles signatures, tokens, netrc files and password prompts as curl 8.22 does.

use crate::common;

use std::fs;

use common::{HAUL, curl, curl_in, list, page, program, received, reply_steps, run};
use testkit::h1_peer::H1Peer;

/// The expected AWS signatures are those of curl's own test cases, which sign at the start of 1970.
/// The test sets this time with `X-Amz-Date`.
#[test]
fn aws_signatures_match_curls_test_cases() {
    let (peer, dir) = (page("x"), tempfile::tempdir().unwrap());
    fs::write(dir.path().join("file"), "content").unwrap();
    let to = format!("::127.0.0.1:{}", peer.addr().port());
    // Returns the exit code and the request, if one was sent.
    let signed = |args: &[&str]| {
        let before = peer.connections();
        let shared = ["-s", "--connect-to", &to, "-H", "X-Amz-Date: 19700101T000000Z", "--aws-sigv4"];
        let code = curl_in(dir.path(), &[&shared[..], args].concat()).code;
        (code, if peer.connections() > before { received(&peer, before) } else { String::new() })
    };
    let me = ["-u", "user:secret"];
    let (es, s3) = ("aws:amz:us-east-2:es", "aws:amz:us-east-2:s3");
    for (path, signature) in [
        (
            "/439/?name=me&noval&aim=b%aad&&&weirdo=*.//-",
            "9dd8592929306832a6673d10063491391e486e5f50de4647ea7c2c797277e0a6",
        ),
        ("/472/a=%E3%81%82", "b8783c8387a5249b084642126fe1f8e07e12a2847820fd5b6cd64b2047149da4"),
    ] {
        let (code, sent) = signed(&[es, me[0], me[1], &format!("http://fake.fake.fake:8000{path}")]);
        let line = format!(
            "\r\nAuthorization: AWS4-HMAC-SHA256 Credential=user/19700101/us-east-2/es/aws4_request, \
             SignedHeaders=host;x-amz-date, Signature={signature}\r\n"
        );
        assert!(code == 0 && sent.contains(&line), "{path}: {code} {sent}");
    }

    let url = "http://bucket.example/key";
    let (code, sent) = signed(&[s3, me[0], me[1], "-T", "file", url]);
    assert!(code == 0 && sent.contains("\r\nx-amz-content-sha256: UNSIGNED-PAYLOAD\r\n"), "{sent}");
    // Without a user, or with an Authorization field, nothing is signed.
    let odd = "http://bucket.example/dt=1/a+b?x=a+b";
    for more in [&[][..], &["-u", "user:secret", "-H", "Authorization: mine"]] {
        let (code, sent) = signed(&[&[s3, odd], more].concat());
        assert!(code == 0 && !sent.contains("AWS4") && sent.starts_with("GET /dt=1/a+b?x=a+b "), "{more:?} {sent}");
    }
    // A store is asked in the spelling that is signed, by way of a proxy, too.
    for (more, expected) in [
        (&[s3][..], "GET /dt%3D1/a%2Bb?x=a+b HTTP"),
        (&[es], "GET /dt=1/a+b?x=a+b HTTP"),
        (&[s3, "--request-target", "/mine"], "GET /mine HTTP"),
    ] {
        let (code, sent) = signed(&[more, &me, &[odd]].concat());
        assert!(code == 0 && sent.starts_with(expected) && sent.contains("AWS4"), "{more:?} {sent}");
    }
    let before = peer.connections();
    curl(&["-s", "-x", &peer.url(""), "--aws-sigv4", s3, me[0], me[1], odd]).ok();
    let sent = received(&peer, before);
    assert!(sent.starts_with("GET http://bucket.example/dt%3D1/a%2Bb?x=a+b HTTP") && sent.contains("AWS4"), "{sent}");
    assert_eq!(signed(&[s3, me[0], me[1], "--aws-sigv4", ":amz", url]).0, 2);
    // This check is the last: it opens a connection that later checks would count.
    let upload = signed(&[es, me[0], me[1], "-T", "file", url]);
    assert_eq!(upload, (94, String::new()), "nothing is sent with a signature that is wrong");
}

/// An AWS signature is valid for one origin only, and each request needs a new signature.
#[test]
fn aws_signature_is_dropped_on_cross_origin_redirect() {
    let there = page("x");
    let to = |url: &str| reply_steps(&format!("302 Found\r\nLocation: {url}"), "ok");
    let here = H1Peer::start(vec![to("/again"), to(&there.url("/other"))]);
    let args = ["-sL", "--aws-sigv4", "aws:amz:eu:s3", "-u", "user:secret", &here.url("/first")];
    curl(&args).ok();
    let [first, second] = [0, 1].map(|connection| {
        let head = received(&here, connection);
        head.lines().find_map(|line| line.strip_prefix("Authorization: AWS4-").map(str::to_owned)).expect("a signature")
    });
    assert_ne!(first, second, "of another path");
    assert!(!received(&there, 0).contains("AWS4"));
}

#[test]
fn bearer_token_with_other_schemes_awaits_a_challenge() {
    let asks = |scheme: &str| {
        let challenged = reply_steps(&format!("401 Who\r\nWWW-Authenticate: {scheme} realm=\"r\""), "ok");
        H1Peer::start(vec![challenged, reply_steps("200 OK", "ok")])
    };
    for others in [&["--anyauth"][..], &["--basic"], &["--digest"], &["--basic", "-u", "me:secret"]] {
        let peer = asks("Bearer");
        let url = peer.url("/");
        let args = [&["-s", "-o", "/dev/null", "-w", "%{http_code}", "--oauth2-bearer", "t"], others, &[&url]].concat();
        assert_eq!(curl(&args).text(), "200", "{others:?}");
        assert!(!received(&peer, 0).contains("Authorization"), "{}", received(&peer, 0));
        assert!(received(&peer, 1).contains("\r\nAuthorization: Bearer t\r\n"), "{}", received(&peer, 1));
    }
    let peer = asks("Basic");
    curl(&["-s", "--oauth2-bearer", "t", "--anyauth", "-u", "me:x", &peer.url("/")]).ok();
    assert!(received(&peer, 1).contains("\r\nAuthorization: Basic bWU6eA==\r\n"), "{}", received(&peer, 1));

    let peer = page("x");
    curl(&["-s", "--oauth2-bearer", "t", "-u", "me:x", &peer.url("/")]).ok();
    assert!(received(&peer, 0).contains("\r\nAuthorization: Bearer t\r\n"), "alone it is sent at once");
}

#[test]
fn password_prompt_without_terminal_ends_with_line_feed() {
    let mut command = program("setsid");
    let ran = run(command.args(["--wait", HAUL, "curl", "-q", "-s", "-u", "me", "http://127.0.0.1:1/"]));
    assert_eq!((ran.code, &*ran.stderr), (7, "Enter host password for user 'me':\n"));
}

#[test]
fn empty_user_and_password_send_no_credentials() {
    let home = tempfile::tempdir().unwrap();
    let netrc = list(home.path(), "netrc", ["machine 127.0.0.1 login me password pw"]);
    let netrc = netrc.to_str().unwrap();
    let sent = |args: &[&str], url: &dyn Fn(&H1Peer) -> String| {
        let peer = page("x");
        curl(&[&["-s"], args, &[&url(&peer)]].concat()).ok();
        let said = received(&peer, 0);
        let field = said.lines().find_map(|line| line.split_once("uthorization: "));
        field.map_or(String::new(), |(_, value)| value.to_owned())
    };
    let plain = |peer: &H1Peer| peer.url("/");
    assert_eq!(sent(&["-u", ":"], &plain), "");
    assert_eq!(sent(&["-u", ":x"], &plain), "Basic Ong=");
    assert_eq!(sent(&["-u", ":", "--netrc-file", netrc], &plain), "Basic bWU6cHc=");
    assert_eq!(sent(&["-u", ":"], &|peer| peer.url("/").replacen("://", "://a:b@", 1)), "Basic YTpi");
    // With a user there need be no file.
    let peer = page("x");
    let at_home =
        |args: &[&str]| run(program(HAUL).args(["curl", "-q", "-s", "-n"]).args(args).env("HOME", home.path()));
    assert_eq!(at_home(&[&peer.url("/")]).code, 26);
    at_home(&["-u", "a:b", &peer.url("/")]).ok();
    assert!(received(&peer, 0).contains("\r\nAuthorization: Basic YTpi\r\n"));
    let through = page("x");
    let proxy = through.url("");
    curl(&["-s", "-U", ":", "-x", &proxy, "http://h.test/"]).ok();
    curl(&["-s", "-x", &proxy.replacen("://", "://:@", 1), "http://h.test/"]).ok();
    assert!((0..2).all(|connection| !received(&through, connection).contains("Authorization")));
}

#[test]
fn netrc_password_without_login_applies_to_any_user() {
    let (dir, peer) = (tempfile::tempdir().unwrap(), page("x"));
    list(dir.path(), "netrc", ["machine 127.0.0.1 login other password 1", "machine 127.0.0.1 password 2"]);
    curl_in(dir.path(), &["-s", "--netrc-file", "netrc", &peer.url("/").replace("//", "//user@")]).ok();
    // user:2
    assert!(received(&peer, 0).contains("Authorization: Basic dXNlcjoy\r\n"), "{}", received(&peer, 0));
}

#[test]
fn netrc_file_may_end_without_a_value() {
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
fn missing_netrc_fails_only_transfers_using_it() {
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
