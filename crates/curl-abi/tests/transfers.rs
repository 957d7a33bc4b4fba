//! Pauses, heads, connections and facts of transfers: the cases of `tests/c/transfers.c`.

mod common;

use common::BuildDirectory;
use testkit::dns_server::DnsServer;
use testkit::h1_peer::{H1Peer, ScriptStep};
use testkit::origin::Origin;

/// Runs a case of `transfers.c` with a base URL.
fn run_with(case: &str, base: &str) {
    let Some(directory) = BuildDirectory::new() else { return };
    assert_eq!(directory.compile("transfers").run_well([case, base]), "as libcurl\n");
}

/// Runs a case of `transfers.c` with the embedded origin.
fn run(case: &str) {
    let (_origin, base) = Origin::start_with_base_url();
    run_with(case, &base);
}

#[test]
fn paused_transfer_ends_at_its_time_limit() {
    run("paused_until_timeout");
}

/// Starts a peer that reads a request with content of this length, and responds with a trailer
/// section.
fn peer_with_trailers(content_length: usize) -> H1Peer {
    let head = "HTTP/1.1 200 OK\r\nX-Early: 1\r\nTransfer-Encoding: chunked\r\n\r\n";
    let reply = format!("{head}3\r\nabc\r\n0\r\nX-Late: 1\r\n\r\n");
    let request = [ScriptStep::ReadHead, ScriptStep::ReadBytes(content_length)];
    H1Peer::always([&request[..], &[ScriptStep::send(reply), ScriptStep::ReadToEnd]].concat())
}

#[test]
fn header_function_set_during_transfer_gets_later_lines() {
    run_with("header_function_in_write_callback", &peer_with_trailers(0).url("/"));
    run_with("header_function_in_read_callback", &peer_with_trailers(1).url("/"));
}

#[test]
fn headers_api_finds_trailers_without_header_callback() {
    run_with("stored_trailers", &peer_with_trailers(0).url("/"));
}

#[test]
fn transfer_ids_count_the_transfers_of_a_handle() {
    run("transfer_ids");
}

#[test]
fn connection_options_leave_other_idle_connections_open() {
    run("connection_reuse");
}

#[test]
fn request_refused_by_progress_callback_is_not_sent() {
    let (origin, base) = Origin::start_with_base_url();
    run_with("refused_by_progress", &base);
    assert_eq!(origin.hits("/echo"), 0);
}

#[test]
fn multi_handle_works_in_a_forked_child() {
    run("multi_after_fork");
}

#[test]
fn forked_child_looks_up_names_of_a_share() {
    let Some(directory) = BuildDirectory::new() else { return };
    let (_origin, base) = Origin::start_with_base_url();
    let server = DnsServer::start(|query| vec![query.addresses(&["127.0.0.1".parse().unwrap()])]).unwrap();
    let program = directory.compile("transfers").with_env("NAME_SERVER", server.address().to_string());
    assert_eq!(program.run_well(["names_after_fork", &base]), "as libcurl\n");
    let asked = |name: &str| server.queries().iter().any(|query| query.name.eq_ignore_ascii_case(name));
    assert!(["first", "second", "third", "fourth", "fifth"].iter().all(|host| asked(&format!("{host}.example"))));
}

#[test]
fn header_callback_knows_the_facts_of_its_response() {
    run("facts_in_header_callback");
}

#[test]
fn texts_taken_in_header_callback_stay_valid() {
    run("pointers_in_header_callback");
}

#[test]
fn offered_schemes_of_all_challenges_are_reported() {
    let challenge = |status: &str, scheme: &str| {
        let head = format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\nWWW-Authenticate: {scheme} realm=\"r\"");
        ScriptStep::send(format!("{head}, nonce=\"n\"\r\n\r\n"))
    };
    let peer = H1Peer::start(vec![
        vec![
            ScriptStep::ReadHead,
            challenge("401 Unauthorized", "Digest"),
            ScriptStep::ReadHead,
            challenge("401 Unauthorized", "Basic"),
            ScriptStep::ReadToEnd,
        ],
        vec![ScriptStep::ReadHead, challenge("403 Forbidden", "Bearer"), ScriptStep::ReadToEnd],
    ]);
    run_with("schemes_of_all_challenges", &peer.url("/"));
}

#[test]
fn offered_schemes_are_known_after_the_login() {
    run("schemes_after_login");
}

#[test]
fn unified_fields_are_sent_once_to_a_proxy() {
    let reply = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
    let peer = H1Peer::always(vec![ScriptStep::ReadHead, ScriptStep::send(reply), ScriptStep::ReadToEnd]);
    run_with("unified_fields", &peer.url(""));
    let count = |connection: usize| {
        let received = String::from_utf8(peer.received(connection).to_vec()).unwrap();
        received.split("\r\n\r\n").next().unwrap().matches("\r\nX-Own: 1").count()
    };
    // The second connection begins with a CONNECT.
    assert_eq!((count(0), count(1)), (1, 1));
}

#[test]
fn range_of_a_post_is_that_of_its_content() {
    run("content_ranges");
}

#[test]
fn not_modified_is_an_unmet_condition() {
    let reply = "HTTP/1.1 304 Not Modified\r\n\r\n";
    let peer = H1Peer::always(vec![ScriptStep::ReadHead, ScriptStep::send(reply), ScriptStep::ReadToEnd]);
    run_with("own_condition", &peer.url("/"));
}

#[test]
fn type_of_a_part_precedes_its_header_line() {
    run("part_types");
}

#[test]
fn invalid_small_options_are_refused() {
    run("small_options");
}
