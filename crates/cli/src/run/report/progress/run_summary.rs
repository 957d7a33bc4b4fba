//! The summary at the end of a run: one line on standard error.
//!
//! ```text
//! haul: 118 done, 2 failed (1 x 404, 1 x timeout), 10.20 MiB in 3.1 s, 120 requests over 6 connections
//! ```

use haul::stats::TransferTotals;
use indicatif::HumanBytes;

use crate::run::report::run_counts::RunCountsSnapshot;

/// Returns the summary of a run. `causes` is the text with the causes of failures and their
/// numbers.
pub(super) fn summary_line(counts: &RunCountsSnapshot, causes: &str, totals: &TransferTotals) -> String {
    let mut parts = vec![format!("{} done", counts.done)];
    match (counts.failed, causes) {
        (0, _) => {}
        (failed, "") => parts.push(format!("{failed} failed")),
        (failed, causes) => parts.push(format!("{failed} failed ({causes})")),
    }
    if counts.skipped > 0 {
        parts.push(format!("{} skipped", counts.skipped));
    }
    parts.push(format!("{} in {:.1} s", HumanBytes(counts.bytes), counts.elapsed.as_secs_f64()));
    let plural = |count: u64| if count == 1 { "" } else { "s" };
    if totals.requests > 0 {
        let (requests, connections) = (totals.requests, totals.connections);
        let (of_requests, of_connections) = (plural(requests), plural(connections));
        parts.push(format!("{requests} request{of_requests} over {connections} connection{of_connections}"));
    }
    format!("haul: {}", parts.join(", "))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn summary_has_counts_causes_and_connections() {
        let counts = RunCountsSnapshot {
            elapsed: Duration::from_millis(3120),
            done: 118,
            failed: 2,
            bytes: 5 << 20,
            ..RunCountsSnapshot::default()
        };
        let totals = TransferTotals { requests: 120, connections: 6, ..TransferTotals::default() };
        assert_eq!(
            summary_line(&counts, "1 x 404, 1 x timeout", &totals),
            "haul: 118 done, 2 failed (1 x 404, 1 x timeout), 5.00 MiB in 3.1 s, 120 requests over 6 connections"
        );
        let one = RunCountsSnapshot { done: 1, ..RunCountsSnapshot::default() };
        let totals = TransferTotals { requests: 1, connections: 1, ..TransferTotals::default() };
        assert_eq!(summary_line(&one, "", &totals), "haul: 1 done, 0 B in 0.0 s, 1 request over 1 connection");
    }
}
