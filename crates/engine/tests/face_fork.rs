//! A forked child opens connections of its own, and its parent's go on as if nothing had happened.
#![cfg(unix)]

mod common;

use std::panic::AssertUnwindSafe;

use common::start_origin;
use haul::Client;

#[test]
fn a_child_has_connections_of_its_own_and_leaves_its_parent_s_alone() {
    let origin = start_origin();
    let client = Client::new();
    let get = |client: &Client| client.get(&origin.url("/small")).send().and_then(haul::Response::text).unwrap();
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
    assert_eq!(half_read.copy_to(&mut std::io::sink()).unwrap(), 3_000_000);
    assert_eq!(origin.connections(), 3);
}
