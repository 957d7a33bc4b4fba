//! A low limit on file descriptors does not reduce the connections of a run over many hosts.

use crate::common;

use common::{HAUL, list, origin, program, run};

/// The number of hosts. It is far greater than the number of parallel transfers, so that no host
/// has two transfers at a time.
const HOSTS: usize = 100;

#[test]
fn low_soft_descriptor_limit_costs_no_connections() {
    let (origin, dir) = (origin(), tempfile::tempdir().unwrap());
    let port = origin.http_addr().port();
    let urls = list(dir.path(), "list", (0..3 * HOSTS).map(|i| format!("http://h{}.test:{port}/small", i % HOSTS)));
    let resolve = format!("*:{port}:127.0.0.1");
    let mut command = program("sh");
    // Half of these would be too few for a connection to each host.
    command.args(["-c", "ulimit -S -n 120; exec \"$0\" \"$@\"", HAUL, "-sS", "--parallel-max", "8"]);
    command.args(["--resolve", &resolve, "--input-file"]);
    run(command.arg(urls)).ok();
    assert_eq!(origin.requests(), 3 * HOSTS as u64);
    // A reply that takes as long as 92 others costs its host one more connection.
    let connections = origin.connections();
    assert!((HOSTS as u64..=HOSTS as u64 + 8).contains(&connections), "{connections}");
}
