//! Formats the statistics of `--stats`, as text or as a JSON object.

use std::time::Duration;

use haul::stats::TransferTotals;
use serde_json::json;

use crate::file_and_environment_access::print_error_line;
use crate::plan::StatsFormat;

/// Prints the statistics of the run (`--stats`) on standard error. `skipped` is the number of
/// extracted values that `--then '{}'` could not fetch because they are not URLs. `elapsed` is the
/// duration of the run.
pub(crate) fn print(totals: &TransferTotals, skipped: u64, elapsed: Duration, format: StatsFormat) {
    print_error_line(&match format {
        StatsFormat::Text => statistics_text(totals, skipped, elapsed),
        StatsFormat::Json => statistics_json(totals, skipped, elapsed).to_string(),
    });
}

fn statistics_text(totals: &TransferTotals, skipped: u64, elapsed: Duration) -> String {
    let phases = &totals.phases;
    let mut lines = vec![
        format!("time         {:.3} s", elapsed.as_secs_f64()),
        format!("transfers    {} done, {} failed", totals.transfers - totals.failed, totals.failed),
        format!("requests     {} ({} redirects, {} retries)", totals.requests, totals.redirects, totals.retries),
        format!("connections  {} opened, {} requests on a warm one", totals.connections, totals.reused),
        format!("bodies       {} bytes", totals.body_bytes),
    ];
    if skipped > 0 {
        lines.push(format!("skipped      {skipped} values that are no http or https URLs"));
    }
    if totals.wire.known {
        let wire = &totals.wire;
        lines.push(format!(
            "wire         {} bytes sent, {} received (TCP payload)",
            wire.bytes_sent, wire.bytes_received
        ));
        lines.push(format!("packets      {} sent, {} received", wire.packets_sent, wire.packets_received));
    }
    lines.push(format!(
        "phases       name {:.3} s, connect {:.3} s, TLS {:.3} s, wait {:.3} s, receive {:.3} s, pauses {:.3} s (summed over \
         transfers)",
        phases.resolve.as_secs_f64(),
        phases.connect.as_secs_f64(),
        phases.tls.as_secs_f64(),
        phases.wait.as_secs_f64(),
        phases.receive.as_secs_f64(),
        phases.pause.as_secs_f64(),
    ));
    lines.join("\n")
}

fn statistics_json(totals: &TransferTotals, skipped: u64, elapsed: Duration) -> serde_json::Value {
    let (wire, phases) = (&totals.wire, &totals.phases);
    let wire = wire.known.then(|| {
        json!({
            "bytes_sent": wire.bytes_sent,
            "bytes_received": wire.bytes_received,
            "packets_sent": wire.packets_sent,
            "packets_received": wire.packets_received,
        })
    });
    json!({
        "time": elapsed.as_secs_f64(),
        "transfers": totals.transfers,
        "failed": totals.failed,
        "skipped_values": skipped,
        "requests": totals.requests,
        "redirects": totals.redirects,
        "retries": totals.retries,
        "connections": totals.connections,
        "reused": totals.reused,
        "body_bytes": totals.body_bytes,
        "wire": wire,
        "phases": {
            "resolve": phases.resolve.as_secs_f64(),
            "connect": phases.connect.as_secs_f64(),
            "tls": phases.tls.as_secs_f64(),
            "wait": phases.wait.as_secs_f64(),
            "receive": phases.receive.as_secs_f64(),
            "pause": phases.pause.as_secs_f64(),
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_json_statistics_have_the_same_numbers() {
        let totals =
            TransferTotals { transfers: 7, failed: 2, requests: 9, connections: 3, ..TransferTotals::default() };
        let people = statistics_text(&totals, 4, Duration::from_millis(1500));
        assert!(people.contains("5 done, 2 failed") && people.contains("3 opened"), "{people}");
        assert!(people.contains("4 values"), "{people}");
        let machine = statistics_json(&totals, 4, Duration::from_millis(1500));
        assert_eq!((&machine["requests"], &machine["skipped_values"]), (&json!(9), &json!(4)));
        assert_eq!(machine["time"], 1.5);
        assert!(machine["wire"].is_null());
    }
}
