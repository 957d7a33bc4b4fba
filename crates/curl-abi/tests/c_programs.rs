//! C programs (`tests/c`), compiled against the system's `curl/curl.h`, that use the library of
//! this build.

mod common;

use std::ffi::OsStr;

use common::BuildDirectory;
use testkit::h1_peer::{H1Peer, ScriptStep};
use testkit::origin::Origin;
use testkit::unused_port::unused_port;

#[test]
fn easy_requests_work_as_with_libcurl() {
    let Some(directory) = BuildDirectory::new() else { return };
    let (_origin, base) = Origin::start_with_base_url();
    let program = directory.compile("easy");
    let closed = format!("http://127.0.0.1:{}/", unused_port());
    let files = directory.path("");
    let arguments: [&OsStr; 3] = [base.as_ref(), files.as_ref(), closed.as_ref()];
    assert_eq!(program.run_well(arguments), "as libcurl\n");
}

#[test]
fn callbacks_are_called_in_libcurls_order() {
    let Some(directory) = BuildDirectory::new() else { return };
    let (_origin, base) = Origin::start_with_base_url();
    assert_eq!(directory.compile("callbacks").run_well([base]), "called as by libcurl\n");
}

#[test]
fn multi_transfers_work_in_every_event_loop() {
    let Some(directory) = BuildDirectory::new() else { return };
    let (_origin, base) = Origin::start_with_base_url();
    let closed = format!("http://127.0.0.1:{}/", unused_port());
    assert_eq!(directory.compile("multi").run_well([base, closed]), "many at once\n");
}

#[test]
fn forms_are_sent_as_libcurl_sends_them() {
    let Some(directory) = BuildDirectory::new() else { return };
    let (_origin, base) = Origin::start_with_base_url();
    let files = directory.path("");
    let arguments: [&OsStr; 2] = [base.as_ref(), files.as_ref()];
    assert_eq!(directory.compile("forms").run_well(arguments), "formed\n");
}

#[test]
fn cookies_shares_urls_and_invalid_handles_work() {
    let Some(directory) = BuildDirectory::new() else { return };
    let (_origin, base) = Origin::start_with_base_url();
    let files = directory.path("");
    let arguments: [&OsStr; 2] = [base.as_ref(), files.as_ref()];
    assert_eq!(directory.compile("state").run_well(arguments), "kept\n");
}

#[test]
fn tls_options_and_http2_requests_succeed() {
    let Some(directory) = BuildDirectory::new() else { return };
    let origin = Origin::builder().http2(100).start().unwrap();
    let ca = directory.path("ca.pem");
    std::fs::write(&ca, origin.ca_pem()).unwrap();
    let url = origin.https_url("/small");
    let arguments: [&OsStr; 2] = [url.as_ref(), ca.as_ref()];
    assert_eq!(directory.compile("secure").run_well(arguments), "secured\n");
}

#[test]
fn transfer_reports_equal_those_of_libcurl() {
    let Some(directory) = BuildDirectory::new() else { return };
    let (origin, base) = Origin::start_with_base_url();
    let reply = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 4\r\n\r\nonce";
    let once = H1Peer::always(vec![ScriptStep::ReadHead, ScriptStep::send(reply), ScriptStep::ReadToEnd]);
    assert_eq!(directory.compile("reports").run_well([base, once.url("/")]), "reported\n");
    // After a challenge, a handle sends Basic credentials to the whole origin.
    assert_eq!((origin.hits("/private/small/1"), origin.hits("/private/bytes/7")), (2, 1));
}

#[test]
fn connect_head_belongs_to_the_request_after_it() {
    let Some(directory) = BuildDirectory::new() else { return };
    let tunnel = "HTTP/1.1 200 OK\r\nX-Proxy: tunnel\r\n\r\n";
    let reply = "HTTP/1.1 200 OK\r\nX-Server: origin\r\nContent-Length: 7\r\n\r\nthrough";
    let peer = H1Peer::always(vec![
        ScriptStep::ReadHead,
        ScriptStep::send(tunnel),
        ScriptStep::ReadHead,
        ScriptStep::send(reply),
        ScriptStep::ReadToEnd,
    ]);
    assert_eq!(directory.compile("tunneled").run_well([peer.url("")]), "tunneled\n");
}

#[test]
fn proxies_receive_requests_and_credentials() {
    let Some(directory) = BuildDirectory::new() else { return };
    let reply = "HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nby proxy";
    let peer = H1Peer::always(vec![ScriptStep::ReadHead, ScriptStep::send(reply), ScriptStep::ReadToEnd]);
    assert_eq!(directory.compile("proxied").run_well([peer.url("")]), "proxied\n");
    let request = String::from_utf8(peer.received(0).to_vec()).unwrap();
    assert!(request.starts_with("GET http://h.example/page?x HTTP/1.1\r\n"), "{request}");
    assert!(request.contains("\r\nProxy-Authorization: Basic bWU6c2VjcmV0\r\n"), "{request}");
    assert!(request.contains("\r\nX-Proxy: 1\r\n"), "{request}");
}
