//! The interface from C: what is refused, and requests and replies in all their ways (`tests/c`).

mod common;

use common::{Workshop, has, origin};
use testkit::raw::{RawPeer, Step};

#[test]
fn what_cannot_be_used_is_refused_and_nothing_crashes() {
    let Some(workshop) = Workshop::new() else { return };
    let program = workshop.compile("tests/c/refusals.c");
    let jar = workshop.path("jar.txt");
    assert_eq!(program.run_well([&jar]), "refused as it should be\n");
}

#[test]
fn calls_streams_uploads_interrupts_and_forks() {
    let Some(workshop) = Workshop::new() else { return };
    let (_origin, base) = origin();
    let program = workshop.compile("tests/c/calls.c");
    assert_eq!(program.run_well([base]), "called as it should be\n");
}

#[test]
fn an_early_answer_ends_a_slow_upload() {
    let Some(workshop) = Workshop::new() else { return };
    let reply = "HTTP/1.1 401 Unauthorized\r\nContent-Length: 2\r\nConnection: close\r\n\r\nno";
    let peer = RawPeer::always(vec![Step::ReadHead, Step::send(reply), Step::ReadToEnd]);
    let program = workshop.compile("tests/c/early.c");
    assert_eq!(program.run_well([peer.url("/")]), "heard early\n");
}

#[test]
fn batches_in_both_orders_with_callbacks_and_a_descriptor() {
    let Some(workshop) = Workshop::new() else { return };
    let (_origin, base) = origin();
    let program = workshop.compile("tests/c/batches.c");
    assert_eq!(program.run_well([base]), "batched as it should be\n");
}

#[test]
fn a_program_in_cpp() {
    let (true, Some(workshop)) = (has("c++"), Workshop::new()) else { return };
    let (_origin, base) = origin();
    for standard in ["-std=c++11", "-std=c++20"] {
        let program = workshop.compile_by("c++", &[standard, "-pedantic", "-Wshadow"], "tests/c/plus.cpp");
        assert_eq!(program.run_well([&base]), "200 small 4\n", "{standard}");
    }
}
