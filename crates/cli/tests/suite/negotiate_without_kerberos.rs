//! Tests of `--negotiate` without a Kerberos realm: without the library, and without a ticket.
//! `scripts/negotiate-suite.sh` tests it with tickets and servers.

use std::fs;
use std::path::Path;

use testkit::h1_peer::{H1Peer, ScriptStep};

use crate::common::{CommandOutput, answering, page, program, received, run};

/// Runs haul with these arguments, an empty ticket cache, and a Kerberos configuration without
/// servers.
fn without_ticket(dir: &Path, args: &[&str]) -> CommandOutput {
    fs::write(dir.join("krb5.conf"), "[libdefaults]\ndefault_realm = HAUL.TEST\ndns_lookup_kdc = false\n").unwrap();
    let mut haul = program(env!("CARGO_BIN_EXE_haul"));
    haul.args(args).env("KRB5_CONFIG", dir.join("krb5.conf"));
    run(haul.env("KRB5CCNAME", format!("FILE:{}", dir.join("ticket").display())))
}

/// Returns true if the output of haul shows that the Kerberos library is installed.
fn has_library(ran: &CommandOutput) -> bool {
    let is_missing = ran.stderr.contains("libgssapi-krb5-2");
    if is_missing {
        eprintln!("skipped: the Kerberos library is not installed");
    }
    !is_missing
}

#[test]
fn negotiate_error_without_ticket_names_kinit() {
    let (dir, peer) = (tempfile::tempdir().unwrap(), page("x"));
    let ran = without_ticket(dir.path(), &["-sS", "--negotiate", &peer.url("/")]);
    if has_library(&ran) {
        assert_eq!(ran.code, 94, "{}", ran.stderr);
        assert!(ran.stderr.contains("kinit"), "{}", ran.stderr);
    }
    assert!((0..peer.connections()).all(|connection| received(&peer, connection).is_empty()));
}

#[test]
fn curl_mode_sends_request_without_kerberos_ticket() {
    let dir = tempfile::tempdir().unwrap();
    let peer = answering("HTTP/1.1 401 No\r\nWWW-Authenticate: Negotiate\r\nContent-Length: 2\r\n\r\nno");
    let ran = without_ticket(dir.path(), &["curl", "-sSv", "--negotiate", "-u", ":", &peer.url("/")]);
    if has_library(&ran) {
        assert_eq!((ran.code, &*ran.stdout), (0, &b"no"[..]), "{}", ran.stderr);
        assert!(ran.stderr.contains("* gss_init_sec_context() failed: "), "{}", ran.stderr);
        assert!(!received(&peer, 0).contains("Authorization"));
    }
}

#[test]
fn anyauth_without_ticket_sends_the_request_once() {
    let dir = tempfile::tempdir().unwrap();
    let peer = answering("HTTP/1.1 401 No\r\nWWW-Authenticate: Negotiate\r\nContent-Length: 2\r\n\r\nno");
    let ran = without_ticket(dir.path(), &["curl", "-sS", "--anyauth", "-u", "u:p", "-d", "x=1", &peer.url("/")]);
    assert_eq!((ran.code, &*ran.stdout), (0, &b"no"[..]), "{}", ran.stderr);
    let requests: usize = (0..peer.connections()).map(|at| received(&peer, at).matches("POST ").count()).sum();
    assert_eq!(requests, 1);
}

#[test]
fn missing_kerberos_library_error_names_the_package() {
    let (dir, peer) = (tempfile::tempdir().unwrap(), page("x"));
    // The loader finds this file first.
    fs::write(dir.path().join("libgssapi_krb5.so.2"), "no library").unwrap();
    let proxy = peer.url("");
    for options in [
        &["--negotiate", "-u", ":"][..],
        &["--negotiate", "--service-name", "web", "--delegation", "policy"],
        &["-x", &proxy, "--proxy-negotiate", "--proxy-service-name", "web"],
        &["-x", &proxy, "--proxy-negotiate", "-p"],
    ] {
        let mut haul = program(env!("CARGO_BIN_EXE_haul"));
        haul.args(["curl", "-sS", &peer.url("/")]).args(options).env("LD_LIBRARY_PATH", dir.path());
        let ran = run(&mut haul);
        assert_eq!(ran.code, 2, "{options:?}: {}", ran.stderr);
        assert!(ran.stderr.contains("libgssapi-krb5-2"), "{}", ran.stderr);
    }
    assert!((0..peer.connections()).all(|connection| received(&peer, connection).is_empty()));
}

#[test]
fn socks_gssapi_without_a_ticket_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let greeting = vec![ScriptStep::ReadBytes(4), ScriptStep::send([5, 1]), ScriptStep::ReadToEnd];
    let peer = H1Peer::always(greeting);
    let proxy = peer.addr().to_string();
    let gssapi = ["--socks5-gssapi", "--socks5-gssapi-nec", "--socks5-gssapi-service", "socks"];
    let ran = without_ticket(
        dir.path(),
        &[&gssapi[..], &["-sS", "--socks5", &proxy, "--retry", "0", "http://127.0.0.1:9/"]].concat(),
    );
    if has_library(&ran) {
        assert_eq!(ran.code, 97, "{}", ran.stderr);
        assert!(ran.stderr.contains("kinit"), "{}", ran.stderr);
    }
    assert_eq!(peer.received(0), [5, 2, 0, 1]);
}
