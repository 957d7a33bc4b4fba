//! Tests of `--stats=json`: the numbers equal those that the server counted.

use crate::common;

use std::time::Duration;

use common::{HAUL, RunningCommand, eventually, list, page, program, run_haul};
use rustix::process::{Signal, kill_process};
use serde_json::Value;
use testkit::h1_peer::{H1Peer, ScriptStep};
use testkit::origin::Origin;

/// Runs haul with `--stats=json`. Returns the statistics and the exit code.
fn stats(args: &[&str]) -> (Value, i32) {
    let ran = run_haul(["--stats=json"].iter().chain(args));
    let line = ran.stderr.lines().last().expect("the figures come last");
    (serde_json::from_str(line).expect("JSON"), ran.code)
}

fn number(stats: &Value, name: &str) -> u64 {
    stats[name].as_u64().unwrap_or_else(|| panic!("{name} of {stats}"))
}

#[track_caller]
fn agrees(stats: &Value, origin: &Origin) {
    let (requests, connections) = (number(stats, "requests"), number(stats, "connections"));
    assert_eq!((requests, connections), (origin.requests(), origin.connections()), "{stats}");
    assert_eq!(number(stats, "reused"), requests - connections, "{stats}");
    assert!(connections <= 50, "{stats}");
    if cfg!(target_os = "linux") {
        let wire = &stats["wire"];
        for name in ["packets_sent", "packets_received"] {
            assert!(number(wire, name) > 0, "{stats}");
        }
        assert!(number(wire, "bytes_received") > number(stats, "body_bytes"), "{stats}");
        assert!(number(wire, "bytes_sent") > 20 * requests, "{stats}");
    }
}

#[test]
fn stats_count_one_request() {
    let origin = Origin::builder().start().unwrap();
    let (stats, code) = stats(&[&origin.url("/bytes/1000")]);
    assert_eq!(code, 0);
    agrees(&stats, &origin);
    assert_eq!((number(&stats, "transfers"), number(&stats, "body_bytes")), (1, 1000));
}

#[test]
fn stats_count_a_list_over_warm_connections() {
    let origin = Origin::builder().start().unwrap();
    let dir = tempfile::tempdir().unwrap();
    let urls = (0..600).map(|n| origin.url(&format!("/bytes/{n}")));
    let file = list(dir.path(), "list", urls);
    for threads in ["1", "3"] {
        let origin_before = (origin.requests(), origin.connections());
        let (stats, code) =
            stats(&["--threads", threads, "--parallel-max-host", "6", "--input-file", file.to_str().unwrap()]);
        assert_eq!(code, 0);
        let (requests, connections) = (number(&stats, "requests"), number(&stats, "connections"));
        assert_eq!(
            (origin.requests(), origin.connections()),
            (origin_before.0 + requests, origin_before.1 + connections)
        );
        assert!(requests == 600 && connections <= 6, "{stats}");
        assert_eq!(number(&stats, "reused"), requests - connections);
        assert_eq!(number(&stats, "body_bytes"), 600 * 599 / 2);
        assert_eq!((number(&stats, "transfers"), number(&stats, "failed")), (600, 0));
    }
}

#[test]
fn stats_count_redirects_failures_and_stages() {
    let origin = Origin::builder().start().unwrap();
    let (first, code) = stats(&[&origin.url("/chain/4"), &origin.url("/status/404"), &origin.url("/small")]);
    assert_eq!(code, 22);
    agrees(&first, &origin);
    let figures = ["transfers", "failed", "redirects", "retries", "requests"].map(|name| number(&first, name));
    assert_eq!(figures, [3, 1, 4, 0, 7]);

    let origin = Origin::builder().start().unwrap();
    let (index, pages) = (origin.url("/[1-3]"), origin.url("/{}"));
    let (second, code) = stats(&[&index, "--extract", "AS[0-9]{1,9}", "--then", &pages, "--extract", "nothing at all"]);
    assert_eq!(code, 0);
    agrees(&second, &origin);
    assert_eq!(number(&second, "transfers") as usize, 3 + origin.site().as_paths().len());
}

#[test]
fn stats_count_packets_over_tls() {
    let origin = Origin::builder().start().unwrap();
    let (stats, code) = stats(&["-k", &origin.https_url("/bytes/1000"), &origin.https_url("/small")]);
    assert_eq!(code, 0);
    agrees(&stats, &origin);
}

#[test]
fn interrupted_run_prints_figures_and_sorted_values() {
    let first = page("<b> <a>");
    let extracts = ["--no-parallel", "--extract", "<(.)>", "--sort", &first.url("/")];
    for (options, values) in [(&extracts[..], "a\nb\n"), (&[], "")] {
        for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143)] {
            let hanging = H1Peer::always(vec![ScriptStep::ReadHead, ScriptStep::ReadToEnd]);
            // A shell ignores SIGINT in its background processes and their children: the tests, and
            // haul.
            let mut command = program("env");
            command.args(["--default-signal=INT", HAUL, "--stats=json"]).args(options).arg(hanging.url("/"));
            let running = RunningCommand::start(&mut command);
            eventually("the second page is asked for", || !hanging.received(0).is_empty());
            kill_process(running.pid(), signal).unwrap();
            let ran = running.wait();
            assert_eq!((ran.code, &*String::from_utf8_lossy(&ran.stdout)), (code, values), "{}", ran.stderr);
            let figures: Value = serde_json::from_str(&ran.stderr).expect("the figures alone");
            assert_eq!(number(&figures, "transfers"), 1, "{figures}");
        }
    }
}

#[test]
fn stats_count_unanswered_wait_and_pauses_as_phases() {
    let silent = H1Peer::always(vec![ScriptStep::ReadHead, ScriptStep::Await(1)]);
    let busy = ScriptStep::send("HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n");
    let ok = ScriptStep::send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    let phase = |stats: &Value, name: &str| stats["phases"][name].as_f64().unwrap();
    for together in [false, true] {
        let run = |args: &[&str], url: &str| {
            let mut args = args.to_vec();
            args.extend(if together { vec![url; 2] } else { vec![url] });
            stats(&args)
        };
        let (unanswered, code) = run(&["-m", "0.5", "--retry", "0"], &silent.url("/"));
        assert!(code == 28 && phase(&unanswered, "wait") > 0.4, "{unanswered}");
        assert!(phase(&unanswered, "receive") == 0.0, "nothing came: {unanswered}");
        let (unresolved, code) = run(&["--retry", "0"], "http://haul-test.invalid/");
        assert!(code == 6 && phase(&unresolved, "receive") == 0.0, "{unresolved}");
        let tries = vec![ScriptStep::ReadHead, busy.clone(), ScriptStep::ReadHead, ok.clone()];
        let peer = H1Peer::always(tries);
        let (retried, code) = run(&["--retry-delay", "1"], &peer.url("/"));
        assert!(code == 0 && phase(&retried, "pause") >= 0.9, "{retried}");
        assert!(phase(&retried, "resolve") < 0.9 && phase(&retried, "connect") < 0.9, "{retried}");
    }
}

#[test]
fn curl_mode_stats_cover_earlier_attempts() {
    let wait = ScriptStep::Sleep(Duration::from_millis(300));
    let busy = ScriptStep::send("HTTP/1.1 503 Busy\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    let ok = ScriptStep::send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    let peer = H1Peer::start(vec![vec![ScriptStep::ReadHead, wait, busy], vec![ScriptStep::ReadHead, ok]]);
    let ran = run_haul(["curl", "--stats=json", "-s", "--retry", "1", "--retry-delay", "0.001", &peer.url("/")]);
    assert_eq!((ran.code, &*ran.stdout), (0, &b"ok"[..]), "{}", ran.stderr);
    let figures: Value = serde_json::from_str(&ran.stderr).expect("the figures alone");
    assert_eq!((number(&figures, "connections"), number(&figures, "retries")), (2, 1), "{figures}");
    assert!(figures["phases"]["wait"].as_f64().unwrap() >= 0.2, "{figures}");
}
