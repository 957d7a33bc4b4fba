//! Details of libcurl's behaviour on which programs depend: the cases of `tests/c/details.c`.

mod common;

use std::ffi::OsStr;

use common::BuildDirectory;
use testkit::h1_peer::{H1Peer, ScriptStep};
use testkit::origin::Origin;

/// Runs a case of `details.c` with a base URL.
fn run_with(case: &str, base: &str) {
    let Some(directory) = BuildDirectory::new() else { return };
    let files = directory.path("");
    let arguments: [&OsStr; 3] = [case.as_ref(), base.as_ref(), files.as_ref()];
    assert_eq!(directory.compile("details").run_well(arguments), "as libcurl\n");
}

/// Runs a case of the C program `details.c` with the base URL of a new [`Origin`].
fn run(case: &str) {
    let (_origin, base) = Origin::start_with_base_url();
    run_with(case, &base);
}

/// Starts a peer that answers up to two requests of each connection with `reply`.
fn peer(reply: &str) -> H1Peer {
    let turn = [ScriptStep::ReadHead, ScriptStep::send(reply)];
    H1Peer::always([&turn[..], &turn, &[ScriptStep::ReadToEnd]].concat())
}

#[test]
fn socket_callbacks_are_accepted() {
    run("socket_options");
}

#[test]
fn form_callbacks_are_rewound_for_each_transfer() {
    run("forms");
}

#[test]
fn callback_of_encoded_part_may_use_its_handle() {
    run("encoded_part");
}

#[test]
fn multi_upload_is_sent_again_after_a_redirect() {
    run("multi_redirects");
}

#[test]
fn nobody_decides_beside_other_methods() {
    run("nobody");
}

#[test]
fn redirect_url_has_the_fragment() {
    run("redirect_url");
}

#[test]
fn effective_method_is_the_custom_request() {
    run("effective_method");
}

#[test]
fn download_size_is_that_of_encoded_content() {
    run("encoded_size");
}

#[test]
fn download_size_grows_during_a_transfer() {
    run("size_while_running");
}

#[test]
fn upload_length_is_that_of_the_content() {
    run("upload_length");
}

#[test]
fn cookiesession_skips_session_cookies_of_files_only() {
    run("session_cookies");
}

#[test]
fn header_callback_may_set_the_output() {
    run("output_set_by_header_callback");
}

#[test]
fn paused_header_lines_are_passed_again() {
    run("paused_head");
}

#[test]
fn read_only_altsvc_file_is_not_written() {
    run("read_only_files");
}

#[test]
fn url_with_two_at_signs_is_refused() {
    run("two_at_signs");
}

#[test]
fn effective_url_has_the_default_protocol() {
    run("default_protocol");
}

#[test]
fn empty_user_agent_sends_no_field() {
    run("empty_user_agent");
}

#[test]
fn unsupported_options_can_be_turned_off() {
    run("options_turned_off");
}

#[test]
fn write_callback_may_look_for_header_fields() {
    run("fields_in_write_callback");
}

#[test]
fn form_array_may_have_many_entries() {
    run("long_form_array");
}

#[test]
fn multi_upload_is_sent_again_after_a_stale_connection() {
    let reply = || ScriptStep::send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    let stale = vec![ScriptStep::ReadHead, reply(), ScriptStep::ReadHead, ScriptStep::Close];
    let fresh = vec![ScriptStep::ReadHead, ScriptStep::ReadBytes(5), reply(), ScriptStep::ReadToEnd];
    let peer = H1Peer::start(vec![stale, fresh]);
    run_with("stale_connection", &peer.url("/"));
    assert!(peer.received(1).ends_with(b"hello"));
}

#[test]
fn unmet_time_condition_is_reported_as_304() {
    let modified = "Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT\r\n";
    let peer = peer(&format!("HTTP/1.1 200 OK\r\n{modified}Content-Length: 3\r\n\r\nold"));
    run_with("time_condition", &peer.url("/"));
}

#[test]
fn cookie_commands_do_not_start_cookies() {
    let peer = peer("HTTP/1.1 200 OK\r\nSet-Cookie: a=b\r\nContent-Length: 0\r\n\r\n");
    run_with("cookies_stay_off", &peer.url("/"));
}

#[test]
fn all_challenges_of_a_field_are_reported() {
    let peer = peer(
        "HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Negotiate, Basic realm=\"a, digest\"\r\nContent-Length: 0\r\n\r\n",
    );
    run_with("offered_schemes", &peer.url("/"));
}

#[test]
fn proxy_userpwd_is_percent_decoded() {
    let peer = peer("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    run_with("proxy_credentials", &peer.url(""));
    // me:p@ss
    assert!(peer.saw(0, b"Proxy-Authorization: Basic bWU6cEBzcw==\r\n"));
}
