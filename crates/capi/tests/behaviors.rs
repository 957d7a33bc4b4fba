//! Single behaviours that haul.h promises, each tested by a run of the C program
//! `tests/c/behaviors.c`.

mod common;

use common::BuildDirectory;
use testkit::dns_server::DnsServer;
use testkit::h1_peer::{H1Peer, ScriptStep};
use testkit::http3::Http3Settings;
use testkit::origin::Origin;
use testkit::unused_port::unused_port;

/// Runs the C program with the name of a behaviour and these arguments. Does nothing if there is no
/// C compiler.
fn check(name: &str, arguments: &[&str]) {
    let Some(directory) = BuildDirectory::new() else { return };
    let program = directory.compile("tests/c/behaviors.c");
    let arguments = [&[name], arguments].concat();
    assert_eq!(program.run_well(arguments), format!("{name}\n"));
}

/// Returns a URL at which nothing listens.
fn closed_url() -> String {
    format!("http://127.0.0.1:{}/", unused_port())
}

#[test]
fn failed_call_stores_error_in_response() {
    let (_origin, base) = Origin::start_with_base_url();
    check("call-error", &[&base, &closed_url()]);
}

#[test]
fn failed_read_stores_error_in_response() {
    let reply = "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\npart";
    let peer = H1Peer::always(vec![ScriptStep::ReadHead, ScriptStep::send(reply)]);
    check("read-error", &[&peer.url("/")]);
}

#[test]
fn failed_call_with_on_head_reports_last_reply() {
    let (_origin, base) = Origin::start_with_base_url();
    check("last-head", &[&base]);
}

#[test]
fn http2_connection_is_closed_without_keep_alive() {
    let origin = Origin::builder().http2(100).start().unwrap();
    check("close-http2", &[&origin.url("/small")]);
    assert!([0, 13].contains(&origin.connections()), "{}", origin.connections());
}

#[test]
fn http3_connection_is_closed_without_keep_alive() {
    let origin = Origin::builder().http2(100).http3(Http3Settings::new()).start().unwrap();
    let dir = tempfile::TempDir::new().unwrap();
    let ca = dir.path().join("ca.pem");
    std::fs::write(&ca, origin.ca_pem()).unwrap();
    check("close-http3", &[&origin.https_url("/small"), ca.to_str().unwrap()]);
    assert!([0, 13].contains(&origin.quic_connections()), "{}", origin.quic_connections());
}

#[test]
fn new_pool_keeps_chosen_name_servers() {
    let origin = Origin::builder().start().unwrap();
    let names = DnsServer::start(|query| vec![query.addresses(&[std::net::Ipv4Addr::LOCALHOST.into()])]).unwrap();
    let url = format!("http://named.example:{}/small", origin.http_addr().port());
    check("name-servers", &[&url, &names.address().to_string()]);
}

#[test]
fn no_proxy_list_stays_when_proxy_changes() {
    let origin = Origin::builder().start().unwrap();
    check("no-proxy", &[&origin.url("/small"), &closed_url()]);
}

#[test]
fn environment_replaces_no_proxy_list() {
    let origin = Origin::builder().start().unwrap();
    check("environment", &[&origin.url("/small"), &closed_url()]);
}

#[test]
fn cookie_with_negative_expiry_has_expired() {
    check("expired", &["http://127.0.0.1/"]);
}

#[test]
fn cookie_with_any_bytes_can_be_removed() {
    check("remove", &["http://127.0.0.1/"]);
}

#[test]
fn user_agent_may_have_any_bytes() {
    let (_origin, base) = Origin::start_with_base_url();
    check("user-agent", &[&base]);
}

#[test]
fn lowest_tls_version_above_highest_is_refused() {
    check("tls-versions", &["http://127.0.0.1/"]);
}
