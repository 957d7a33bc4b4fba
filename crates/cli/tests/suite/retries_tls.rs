//! What is tried again and what is not; whom TLS trusts.

use crate::common;

use std::fs;

use common::{names, origin, program, run, run_haul, servers};
use testkit::raw::{RawPeer, Script, Step};

/// A reply of ten bytes that ends after so many.
fn cut_after(len: usize) -> Script {
    let body = &"0123456789"[..len];
    vec![Step::ReadHead, Step::send(format!("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n{body}"))]
}

#[test]
fn a_server_that_is_not_ready_is_asked_again() {
    let origin = origin();
    let url = origin.url("/flaky/2/small");
    for urls in [&[&url][..], &[&url, &url]] {
        origin.forget();
        let retry = ["--retry", "4", "--retry-delay", "0.01"];
        let got = run_haul(retry.into_iter().chain(urls.iter().map(|url| url.as_str()))).text();
        assert_eq!(got, "small\n".repeat(urls.len()));
        assert_eq!(origin.hits("/flaky/2/small") as usize, 2 + urls.len());
    }
    origin.forget();
    run_haul(["--retry", "1", "--retry-delay", "0.01", &url]).failed(22);
    assert_eq!(origin.hits("/flaky/2/small"), 2);
    origin.forget();
    run_haul(["--retry", "0", &url]).failed(22);
    assert_eq!(origin.hits("/flaky/2/small"), 1);
}

#[test]
fn a_post_is_not_replayed() {
    let origin = origin();
    run_haul(["--retry-delay", "0.01", "-d", "x", &origin.url("/flaky/1/echo")]).failed(22);
    assert_eq!(origin.requests(), 1);
    let peer = RawPeer::always(vec![Step::ReadHead]);
    run_haul(["--retry-delay", "0.01", "-d", "", &peer.url("/")]).failed(52);
    assert_eq!(peer.connections(), 1);
}

#[test]
fn a_post_that_a_kept_connection_lost_is_sent_again_in_curls_place() {
    let answer = || Step::send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    for (persona, code, connections) in [("curl", 0, 2), ("--silent", 52, 1)] {
        let lost = vec![Step::ReadHead, answer(), Step::ReadHead, Step::ReadBytes(3), Step::Close];
        let peer = RawPeer::start(vec![lost, vec![Step::ReadHead, Step::ReadBytes(3), answer()]]);
        let args = [persona, "-s", "--retry", "0", &peer.url("/"), "--next", "-s", "-d", "a=1", &peer.url("/")];
        let ran = run_haul(args);
        assert_eq!((ran.code, peer.connections()), (code, connections), "{persona}: {}", ran.stderr);
        let last = peer.received(connections - 1);
        assert!(last.ends_with(b"\r\n\r\na=1"), "{persona}: {}", String::from_utf8_lossy(&last));
    }
    // A fresh connection that does the same is no reason for another.
    let peer = RawPeer::always(vec![Step::ReadHead, Step::ReadBytes(3), Step::Close]);
    run_haul(["curl", "-sS", "-d", "a=1", &peer.url("/")]).failed(52);
    assert_eq!(peer.connections(), 1);
}

#[test]
fn a_body_that_broke_begins_anew_where_nothing_of_it_was_delivered() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    let args = ["--retry-delay", "0.01", "-o", file.to_str().unwrap()];
    for also in [None, Some("--no-parallel")] {
        // A glob takes the way of many URLs.
        let path = if also.is_some() { "/[1-1]" } else { "/" };
        let peer = RawPeer::start(vec![cut_after(3), cut_after(0), cut_after(9), cut_after(10)]);
        run_haul(args.into_iter().chain(also).chain([&*peer.url(path)])).ok();
        assert_eq!(fs::read(&file).unwrap(), b"0123456789", "each byte once");
        assert_eq!(names(dir.path()), ["file"]);
        fs::remove_file(&file).unwrap();
    }
    let peer = RawPeer::start(vec![cut_after(3), cut_after(10)]);
    let ran = run_haul(["--retry-delay", "0.01", &peer.url("/")]);
    ran.failed(18);
    assert_eq!((&ran.stdout[..], peer.connections()), (&b"012"[..], 1));
}

#[test]
fn certificates_are_verified() {
    let origin = origin();
    let dir = tempfile::tempdir().unwrap();
    let ca = dir.path().join("ca.pem");
    fs::write(&ca, origin.ca_pem()).unwrap();
    let ca = ca.to_str().unwrap();
    let url = origin.https_url("/small");
    let elsewhere = format!("elsewhere.example:{}:127.0.0.1", origin.https_addr().port());
    let other = url.replace("localhost", "elsewhere.example");
    for count in [1, 2] {
        let fetch =
            |args: &[&str], url: &str| run_haul(args.iter().copied().chain([url].into_iter().cycle().take(count)));
        assert_eq!(fetch(&["--cacert", ca], &url).text(), "small\n".repeat(count));
        assert_eq!(fetch(&["-k"], &url).text(), "small\n".repeat(count));
        assert_eq!(fetch(&["-k", "--tlsv1.3"], &url).text(), "small\n".repeat(count));
        for (args, url, code) in [
            (&[][..], &url, 60),
            (&["--cacert", ca, "--resolve", &elsewhere], &other, 60),
            (&["--cacert", "/nonexistent"], &url, 77),
            (&["-k"], &origin.url("/small").replace("http:", "https:"), 35),
        ] {
            let ran = fetch(args, url);
            assert_eq!(ran.code, code, "{args:?}: {}", ran.stderr);
            assert_eq!(ran.stderr.lines().filter(|line| line.contains(url.as_str())).count(), count, "{}", ran.stderr);
            assert_eq!(ran.stdout, b"");
        }
    }
    let log = origin.log();
    assert_eq!(log.len(), 9, "nothing was said before the certificate was good");
    assert!(log.iter().all(|request| request.tls));
}

/// The server shows the right certificate to who asks for that name alone.
#[test]
fn https_host_with_hyphens_at_label_ends_is_fetched() {
    const HOST: &str = "a-.-b.test";
    if servers::found("openssl", "hosts with hyphens at label ends").is_none() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    for (name, host) in [("odd", HOST), ("other", "other.test")] {
        let mut make = program("openssl");
        make.args("req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 30 -subj /CN=x".split(' '));
        make.args(["-addext", &format!("subjectAltName=DNS:{host}")]).current_dir(dir.path());
        make.args(["-keyout", &format!("{name}.key"), "-out", &format!("{name}.pem")]);
        assert_eq!(run(&mut make).code, 0, "openssl makes a certificate");
    }
    let port = servers::free_port();
    let mut serve = program("openssl");
    serve.args(["s_server", "-quiet", "-www", "-accept", &format!("127.0.0.1:{port}"), "-servername", HOST]);
    serve.args("-cert other.pem -key other.key -cert2 odd.pem -key2 odd.key".split(' ')).current_dir(dir.path());
    let _server = servers::Server::start(&mut serve, port);
    let fetch = |ca: &str, more: &[&str]| {
        let (resolve, url) = (format!("{HOST}:{port}:127.0.0.1"), format!("https://{HOST}:{port}/"));
        let ca = dir.path().join(ca).display().to_string();
        run_haul([&["-sS", "--resolve", &*resolve, "--cacert", &*ca], more, &[&*url]].concat())
    };
    for version in ["--tlsv1.3", "--tls-max=1.2"] {
        assert!(fetch("odd.pem", &[version]).text().contains("TLS"), "{version}");
        fetch("other.pem", &[version]).failed(60);
    }
}
