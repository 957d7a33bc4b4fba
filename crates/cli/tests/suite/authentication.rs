//! Tests of credentials with Apache and nginx, over HTTP/1.1 and HTTP/2, with and without TLS. If
//! curl is installed, the results must equal those of curl.

use crate::common;
use crate::servers;

use std::fs;
use std::process::Command;

use common::{haul, installed, program, run};
use servers::compare_with_curl::{both, both_with, text};
use servers::start_apache::{ApacheServer, LOGIN};
use servers::start_nginx::NginxServer;
use testkit::test_certificates::TestCertificates;

fn with<'a>(way: &'a [String], more: &[&'a str]) -> Vec<&'a str> {
    way.iter().map(String::as_str).chain(more.iter().copied()).collect()
}

#[test]
fn auth_options_authenticate_with_basic_and_digest() {
    let Some(apache) = ApacheServer::start("credentials") else { return };
    for (port, way) in apache.ways() {
        let version = if way[0].contains("http2") { "HTTP/2" } else { "HTTP/1.1" };
        for (options, scheme) in [
            (&["-u", LOGIN][..], "basic"),
            (&["--basic", "-u", LOGIN], "basic"),
            (&["--digest", "-u", LOGIN], "digest"),
            (&["--anyauth", "-u", LOGIN], "basic"),
            (&["--anyauth", "-u", LOGIN], "digest"),
        ] {
            let url = apache.url(port, &format!("/{scheme}/echo"));
            let got = text(&both_with(&with(&way, &[options, &[&*url]].concat()), without_authorization));
            assert!(got.contains("REMOTE_USER=me\n"), "{way:?} {options:?} {got}");
            assert!(got.contains(&format!("SERVER_PROTOCOL={version}")), "{way:?} {got}");
            let kind = if scheme == "basic" { "AUTH_TYPE=Basic" } else { "AUTH_TYPE=Digest" };
            assert!(got.contains(kind), "{way:?} {got}");
        }
    }
}

#[test]
fn wrong_credentials_exit_22() {
    let Some(apache) = ApacheServer::start("credentials") else { return };
    for (port, way) in apache.ways() {
        for (options, scheme) in [
            (&["-u", "me:wrong"][..], "basic"),
            (&["--digest", "-u", "me:wrong"], "digest"),
            (&["--anyauth", "-u", "me:wrong"], "digest"),
            (&["--digest", "-u", LOGIN], "basic"),
            (&["-u", LOGIN], "digest"),
            (&[], "digest"),
        ] {
            let url = apache.url(port, &format!("/{scheme}/echo"));
            let got = both(&with(&way, &[options, &["-w", "%{response_code}", &url]].concat()));
            assert_eq!((got.code, got.stdout.as_slice()), (22, &b"401"[..]), "{way:?} {options:?}: {}", got.stderr);
        }
    }
}

/// Returns the request that the server echoes, without the Digest credentials, which differ each
/// time, and without `Expect`, which older versions of curl send with every PUT.
fn without_authorization(ran: &common::CommandOutput) -> String {
    let text = String::from_utf8_lossy(&ran.stdout).into_owned();
    let differs = |line: &str| line.starts_with("HTTP_AUTHORIZATION=Digest") || line.starts_with("HTTP_EXPECT");
    text.lines().filter(|line| !differs(line)).map(|line| format!("{line}\n")).collect()
}

#[test]
fn request_content_is_resent_after_auth_challenge() {
    let Some(apache) = ApacheServer::start("content behind a challenge") else { return };
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    fs::write(&file, "some content of a file\n").unwrap();
    let file = file.to_str().unwrap();
    for (port, way) in apache.ways() {
        for content in [&["-d", "a=1&b=2"][..], &["-T", file], &["-X", "POST", "-T", file]] {
            for how in ["--digest", "--anyauth"] {
                let url = apache.url(port, "/digest/echo");
                let args = with(&way, &[&[how, "-u", LOGIN], content, &[&*url]].concat());
                let got = both_with(&args, without_authorization);
                let got = text(&got);
                let expected = if content[0] == "-d" { "a=1&b=2" } else { "some content of a file\n" };
                assert!(got.ends_with(&format!("\n\n{expected}")), "{way:?} {how} {got}");
                assert!(got.contains("REMOTE_USER=me"), "{got}");
            }
        }
        // Content that can be read only once is sent only with the second request.
        let url = apache.url(port, "/dav/digest/stdin");
        let script = format!("printf 'from a pipe\\n' | \"$GET\" -sS --digest -u {LOGIN} -T - {} {url}", way.join(" "));
        let got = common::bash(common::HAUL, &script);
        assert_eq!(got.code, 0, "{way:?} {}", got.stderr);
        assert_eq!(fs::read_to_string(apache.path("root/dav/digest/stdin")).unwrap(), "from a pipe\n", "{way:?}");
        fs::remove_file(apache.path("root/dav/digest/stdin")).unwrap();
    }
}

#[test]
fn credentials_come_from_token_netrc_or_url() {
    let Some(apache) = ApacheServer::start("tokens, netrc, URLs with a user") else { return };
    let home = tempfile::tempdir().unwrap();
    let netrc = home.path().join(".netrc");
    fs::write(
        &netrc,
        "machine example.test login x password y\nmachine localhost\n  login me\n  password \"secret\"\n",
    )
    .unwrap();
    let netrc_path = netrc.to_str().unwrap();
    let curl = installed("curl", "the comparison with curl");
    for (port, way) in apache.ways() {
        let token = text(&both(&with(&way, &["--oauth2-bearer", "t0ken", &apache.url(port, "/open/echo")])));
        assert!(token.contains("HTTP_AUTHORIZATION=Bearer t0ken\n"), "{token}");

        let url = apache.url(port, "/basic/echo");
        let of_user = url.replacen("://", "://me:secret@", 1);
        let of_other = url.replacen("://", "://other:secret@", 1);
        let wrong = url.replacen("://", "://me:wrong@", 1);
        for (options, url, code) in [
            (&["--netrc-file", netrc_path][..], &url, 0),
            (&["--netrc-file", netrc_path, "--digest"], &apache.url(port, "/digest/echo"), 0),
            (&[], &of_user, 0),
            (&["--digest"], &of_user.replace("basic", "digest"), 0),
            (&[], &of_other, 22),
            (&["--netrc-optional", "--netrc-file", netrc_path], &wrong, 22),
            (&["-u", LOGIN], &of_other, 0),
        ] {
            let args = with(&way, &[options, &[url]].concat());
            let got = both_with(&args, without_authorization);
            assert_eq!(got.code, code, "{way:?} {options:?} {url}: {}", got.stderr);
            assert!(code != 0 || text(&got).contains("REMOTE_USER=me\n"));
        }
        // The .netrc in the home directory.
        for option in ["-n", "--netrc-optional"] {
            let args = with(&way, &["-sS", "-f", option, &url]);
            let with_home = |mut command: Command| run(command.env("HOME", home.path()).args(&args));
            assert!(text(&with_home(program(common::HAUL))).contains("REMOTE_USER=me\n"), "{way:?} {option}");
            if let Some(curl) = curl {
                assert!(text(&with_home(program(curl))).contains("REMOTE_USER=me\n"), "curl: {way:?} {option}");
            }
        }
    }
    // Without a home directory there is no .netrc; only -n requires one.
    let url = apache.url(apache.port, "/open/echo");
    assert_eq!(run(haul(["-s", "--netrc-optional", &url]).env("HOME", "/nonexistent")).code, 0);
}

#[test]
fn nginx_accepts_basic_credentials() {
    let made = |dir: &std::path::Path| {
        let identity = TestCertificates::generate();
        fs::write(dir.join("ca"), identity.ca_pem()).unwrap();
        fs::write(dir.join("clients"), identity.ca_pem()).unwrap();
        fs::write(dir.join("leaf"), identity.chain_pem()).unwrap();
        fs::write(dir.join("key"), identity.key_pem()).unwrap();
    };
    let Some(nginx) = NginxServer::start("Basic", made) else { return };
    let ca = nginx.path("ca").display().to_string();
    for (way, url) in [
        (&["--http1.1"][..], format!("http://localhost:{}/basic/page", nginx.port)),
        (&["--http2-prior-knowledge"], format!("http://localhost:{}/basic/page", nginx.h2_port)),
        (&["--http1.1", "--cacert", &ca], format!("https://localhost:{}/basic/page", nginx.tls_port)),
        (&["--http2", "--cacert", &ca], format!("https://localhost:{}/basic/page", nginx.tls_port)),
    ] {
        for options in [&["-u", LOGIN][..], &["--anyauth", "-u", LOGIN]] {
            let args = [way, options, &["-i", &url]].concat();
            let status_and_body = |ran: &common::CommandOutput| {
                let text = String::from_utf8_lossy(&ran.stdout).into_owned();
                (text.contains("x-user: me\r\n") && text.ends_with("\r\n\r\nfor me\n")).to_string()
            };
            let got = both_with(&args, status_and_body);
            assert_eq!((got.code, status_and_body(&got).as_str()), (0, "true"), "{way:?} {options:?}");
        }
        assert_eq!(both(&[way, &["-u", "me:wrong", &url]].concat()).code, 22);
    }
}
