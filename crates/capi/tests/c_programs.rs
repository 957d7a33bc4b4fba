//! C and C++ programs (`tests/c`) that use the interface: refused arguments, calls, streams,
//! uploads and batches.

mod common;

use common::{BuildDirectory, has, has_expected};
use testkit::dns_server::DnsServer;
use testkit::h1_peer::{H1Peer, ScriptStep};
use testkit::http3::Http3Settings;
use testkit::origin::Origin;

#[test]
fn invalid_arguments_are_refused_without_crashing() {
    let Some(directory) = BuildDirectory::new() else { return };
    let program = directory.compile("tests/c/refusals.c");
    let jar = directory.path("jar.txt");
    assert_eq!(program.run_well([&jar]), "refused as it should be\n");
}

#[test]
fn c_program_gets_expected_results_of_all_calls() {
    let Some(directory) = BuildDirectory::new() else { return };
    let (_origin, base) = Origin::start_with_base_url();
    let program = directory.compile("tests/c/calls.c");
    assert_eq!(program.run_well([base]), "called as it should be\n");
}

#[test]
fn early_response_ends_a_slow_upload() {
    let Some(directory) = BuildDirectory::new() else { return };
    let reply = "HTTP/1.1 401 Unauthorized\r\nContent-Length: 2\r\nConnection: close\r\n\r\nno";
    let peer = H1Peer::always(vec![ScriptStep::ReadHead, ScriptStep::send(reply), ScriptStep::ReadToEnd]);
    let program = directory.compile("tests/c/early_response.c");
    assert_eq!(program.run_well([peer.url("/")]), "heard early\n");
}

#[test]
fn http3_is_used_on_request() {
    let Some(directory) = BuildDirectory::new() else { return };
    let origin = Origin::builder().http2(100).http3(Http3Settings::new()).start().unwrap();
    let ca = directory.path("ca.pem");
    std::fs::write(&ca, origin.ca_pem()).unwrap();
    let (url, closed_url) =
        (origin.https_url("/small"), format!("https://127.0.0.1:{}/", testkit::unused_port::unused_port()));
    let program = directory.compile("tests/c/http3.c");
    let arguments: [&std::ffi::OsStr; 3] = [url.as_ref(), ca.as_ref(), closed_url.as_ref()];
    assert_eq!(program.run_well(arguments), "by HTTP/3\n");
    assert_eq!(origin.quic_connections(), 1, "both requests share one connection");
}

#[test]
fn steps_are_reported_while_they_happen() {
    let Some(directory) = BuildDirectory::new() else { return };
    let (_origin, base) = Origin::start_with_base_url();
    let program = directory.compile("tests/c/steps.c");
    let closed_url = format!("http://127.0.0.1:{}/", testkit::unused_port::unused_port());
    assert_eq!(program.run_well([base, closed_url]), "told in time\n");
}

#[test]
fn tls_session_is_kept_on_request() {
    let Some(directory) = BuildDirectory::new() else { return };
    let origin = Origin::builder().http2(100).start().unwrap();
    let ca = directory.path("ca.pem");
    std::fs::write(&ca, origin.ca_pem()).unwrap();
    let (url, plain) = (origin.https_url("/small"), origin.url("/small"));
    let program = directory.compile("tests/c/tls_facts.c");
    let arguments: [&std::ffi::OsStr; 3] = [url.as_ref(), ca.as_ref(), plain.as_ref()];
    assert_eq!(program.run_well(arguments), "known\n");
}

#[test]
fn tls_settings_from_memory_are_used() {
    let Some(directory) = BuildDirectory::new() else { return };
    let origin = Origin::builder().http2(100).start().unwrap();
    let names = DnsServer::start(|query| vec![query.addresses(&[std::net::Ipv4Addr::LOCALHOST.into()])]).unwrap();
    let plain = format!("http://named.example:{}/small", origin.http_addr().port());
    let program = directory.compile("tests/c/tls_settings.c");
    let arguments = [origin.https_url("/small"), origin.ca_pem().to_owned(), plain, names.address().to_string()];
    assert_eq!(program.run_well(arguments), "set\n");
}

#[test]
fn batch_delivers_in_input_and_completion_order() {
    let Some(directory) = BuildDirectory::new() else { return };
    let (_origin, base) = Origin::start_with_base_url();
    let program = directory.compile("tests/c/batches.c");
    assert_eq!(program.run_well([base]), "batched as it should be\n");
}

#[test]
fn cpp_program_compiles_and_runs() {
    let (true, Some(directory)) = (has("c++"), BuildDirectory::new()) else { return };
    let (_origin, base) = Origin::start_with_base_url();
    for standard in ["-std=c++11", "-std=c++20"] {
        let program = directory.compile_by("c++", &[standard, "-pedantic", "-Wshadow"], "tests/c/cplusplus.cpp");
        assert_eq!(program.run_well([&base]), "200 small 4\n", "{standard}");
    }
}
#[test]
fn cpp_header_frees_objects_and_returns_failures() {
    let (true, Some(directory)) = (has("c++"), BuildDirectory::new()) else { return };
    if !has_expected() {
        return;
    }
    let (_origin, base) = Origin::start_with_base_url();
    let flags = ["-std=c++23", "-pedantic", "-Wshadow"];
    let program = directory.compile_by("c++", &flags, "tests/c/cplusplus23.cpp");
    assert_eq!(program.run_well([&base]), "right\n");
}
