//! Tests of the verification of certificates against the trusted CAs and the host of the URL.

use crate::common;

use std::fs;

use common::{origin, program, run, run_haul, third_party_servers};
use testkit::unused_port::unused_port;

#[test]
fn untrusted_certificate_is_refused_before_the_request() {
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

/// The host name `a-.-b.test` has hyphens at the edges of its labels. The server has two
/// certificates, and chooses the one for this host by the name in the TLS handshake.
#[test]
fn https_host_with_edge_hyphens_is_fetched() {
    const HOST: &str = "a-.-b.test";
    if third_party_servers::found("openssl", "hosts with hyphens at label ends").is_none() {
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
    let port = unused_port();
    let mut serve = program("openssl");
    serve.args(["s_server", "-quiet", "-www", "-accept", &format!("127.0.0.1:{port}"), "-servername", HOST]);
    serve.args("-cert other.pem -key other.key -cert2 odd.pem -key2 odd.key".split(' ')).current_dir(dir.path());
    let _server = third_party_servers::ExternalServer::start(&mut serve, port);
    let fetch_from = |host: &str, ca: &str, more: &[&str]| {
        let (resolve, url) = (format!("{host}:{port}:127.0.0.1"), format!("https://{host}:{port}/"));
        let ca = dir.path().join(ca).display().to_string();
        run_haul([&["-sS", "--resolve", &*resolve, "--cacert", &*ca], more, &[&*url]].concat())
    };
    for version in ["--tlsv1.3", "--tls-max=1.2"] {
        assert!(fetch_from(HOST, "odd.pem", &[version]).text().contains("TLS"), "{version}");
        fetch_from(HOST, "other.pem", &[version]).failed(60);
        // The server has a trusted certificate, but of another name.
        let refused = fetch_from("c-.test", "other.pem", &[version]);
        assert!(refused.failed(60).contains("use one of its names"), "{version}: {}", refused.stderr);
    }
}

/// The server's page lists the signature algorithms that the client offered.
#[test]
fn sigalgs_restricts_what_the_handshake_offers() {
    if third_party_servers::found("openssl", "signature algorithms").is_none() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let mut make = program("openssl");
    make.args("req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 30 -subj /CN=x".split(' '));
    make.args("-addext subjectAltName=IP:127.0.0.1 -keyout key -out cert".split(' ')).current_dir(dir.path());
    assert_eq!(run(&mut make).code, 0, "openssl makes a certificate");
    let port = unused_port();
    let mut serve = program("openssl");
    serve.args(["s_server", "-quiet", "-www", "-accept", &format!("127.0.0.1:{port}"), "-cert", "cert", "-key", "key"]);
    let _server = third_party_servers::ExternalServer::start(serve.current_dir(dir.path()), port);
    let (ca, url) = (dir.path().join("cert").display().to_string(), format!("https://127.0.0.1:{port}/"));
    let fetch = |algorithms: &str, more: &[&str]| {
        run_haul([&["-sS", "--cacert", &*ca, "--sigalgs", algorithms], more, &[&*url]].concat())
    };
    for version in ["--tlsv1.3", "--tls-max=1.2"] {
        let offered = |algorithms: &str| {
            let page = fetch(algorithms, &[version]).text();
            let line = page.lines().find_map(|line| line.strip_prefix("Signature Algorithms: ")).map(str::to_owned);
            line.unwrap_or_else(|| panic!("{page}"))
        };
        assert_eq!(offered("ecdsa_secp256r1_sha256"), "ECDSA+SHA256");
        assert_eq!(offered("PSS+SHA256:unknown:ECDSA+SHA256"), "RSA-PSS+SHA256:ECDSA+SHA256");
        fetch("rsa_pss_rsae_sha256:rsa_pkcs1_sha256", &[version]).failed(35);
    }
    let ran = fetch("unknown", &[]);
    assert!(ran.failed(59).contains("signature algorithms"), "{}", ran.stderr);
}

#[test]
fn version_1_certificate_is_accepted_without_verification() {
    if third_party_servers::found("openssl", "certificates of version 1").is_none() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    for (name, key) in [("ec", "ec -pkeyopt ec_paramgen_curve:P-256"), ("rsa", "rsa:2048")] {
        for words in [
            format!("req -newkey {key} -nodes -subj /CN=x -keyout {name}.key -out {name}.csr"),
            format!("x509 -req -in {name}.csr -signkey {name}.key -out {name}.pem"),
        ] {
            let ran = run(program("openssl").args(words.split(' ')).current_dir(dir.path()));
            assert_eq!(ran.code, 0, "openssl {words}: {}", ran.stderr);
        }
        let port = unused_port();
        let mut serve = program("openssl");
        serve.args(["s_server", "-quiet", "-www", "-accept", &format!("127.0.0.1:{port}")]);
        serve.args(["-cert", &format!("{name}.pem"), "-key", &format!("{name}.key")]);
        let _server = third_party_servers::ExternalServer::start(serve.current_dir(dir.path()), port);
        let url = format!("https://127.0.0.1:{port}/");
        for version in ["--tlsv1.3", "--tls-max=1.2"] {
            assert!(run_haul(["-sS", "-k", version, &url]).text().contains("TLS"), "{name} {version}");
            let ca = dir.path().join(format!("{name}.pem")).display().to_string();
            run_haul(["-sS", "--cacert", &ca, version, &url]).failed(60);
        }
    }
}
