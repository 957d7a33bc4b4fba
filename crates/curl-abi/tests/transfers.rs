//! Pauses, heads, connections and facts of transfers: the cases of `tests/c/transfers.c`.

mod common;

use common::BuildDirectory;
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
