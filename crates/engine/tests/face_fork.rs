//! A forked child opens connections of its own, and its parent's go on as if nothing had happened.
#![cfg(unix)]

mod common;

use std::panic::AssertUnwindSafe;

use common::start_origin;
use haul::{Client, Response};

#[test]
fn a_child_has_connections_of_its_own_and_leaves_its_parent_s_alone() {
    let read_on = |response: &mut Response| response.copy_to(&mut std::io::sink());
    let origin = start_origin();
    let client = Client::new();
    let get = |client: &Client| client.get(&origin.url("/small")).send().and_then(Response::text).unwrap();
    let mut half_read = client.get(&origin.url("/bytes/3000000")).send().unwrap();
    get(&client);
    assert_eq!(origin.connections(), 2);
    // SAFETY: the child runs the code below alone, takes no lock that another thread of this test could hold but those
    // of the allocator, which the C library takes care of, and leaves by `_exit`.
    match unsafe { libc::fork() } {
        0 => {
            let is_fine = std::panic::catch_unwind(AssertUnwindSafe(|| (get(&client), get(&client)))).is_ok();
            // Its own, once, and not the inherited one.
            let is_own = client.stats().totals().connections == 1;
            // What it took of this body, the parent would miss.
            let is_refused = |error: haul::Error| error.to_string().contains("belongs to the parent");
            let is_own = is_own && read_on(&mut half_read).is_err_and(is_refused);
            let is_own = is_own && half_read.bytes().is_err_and(is_refused);
            // SAFETY: ends this process without running anything of the test harness.
            unsafe { libc::_exit(if is_fine && is_own { 0 } else { 1 }) }
        }
        child => {
            let mut status = -1;
            // SAFETY: waits for the child that was just made; `status` is a valid place for its state.
            let waited = unsafe { libc::waitpid(child, &raw mut status, 0) };
            assert_eq!((waited, status), (child, 0));
        }
    }
    assert_eq!(origin.connections(), 3);
    // The child's copies were closed; ours are as they were.
    get(&client);
    assert_eq!(read_on(&mut half_read).unwrap(), 3_000_000);
    assert_eq!(origin.connections(), 3);
}
