//! Tests of the limits of a whole run: how often transfers begin, the transfer rate, and the time
//! without progress.

use crate::common;

use std::time::{Duration, Instant};

use common::{RunningCommand, eventually, page, run_haul};
use rustix::process::{Signal, kill_process};
use testkit::h1_peer::{H1Peer, ScriptStep};

/// A run takes at least as long as its pauses, even on a slow machine. The test checks only this
/// lower limit.
#[test]
fn rate_host_applies_to_lists_stages_and_groups() {
    let index = page("id=1 id=2 id=3");
    let (peer, other) = (page("x"), page("y"));
    let urls: Vec<String> = (0..4).map(|number| peer.url(&format!("/{number}"))).collect();
    let dir = tempfile::tempdir().unwrap();
    // The URLs of another host come between.
    let listed: Vec<String> = urls.iter().flat_map(|url| [url.clone(), other.url("/")]).collect();
    let list = common::list(dir.path(), "list", &listed).display().to_string();
    let (glob, index, template) = (peer.url("/[0-3]"), index.url("/"), peer.url("/{}"));
    let empty = common::list::<&str>(dir.path(), "empty", []).display().to_string();
    let groups = [&*urls[0], "--next", &urls[1], "--next", &urls[2], "--next", &urls[3]];
    let list_and_glob = [&*list, "--next", &glob];
    let modes: [(&[&str], u32); 7] = [
        (&[&glob], 4),
        (&["--no-parallel", &glob], 4),
        (&["--input-file", &list], 4),
        (&[&index, "--extract", "id=([0-9])", "--then", &template], 3),
        (&groups, 4),
        (&["-T", &empty, &glob], 4),
        (&[&["--input-file"], &list_and_glob[..]].concat(), 8),
    ];
    for persona in [&[][..], &["curl", "-s"]] {
        for (mode, starts) in modes {
            let args: Vec<&str> = [persona, &["--rate-host", "20/s"], mode].concat();
            let began = Instant::now();
            run_haul(&args).ok();
            let took = began.elapsed();
            assert!(took >= (starts - 1) * Duration::from_millis(50), "{args:?}: {took:?}");
        }
    }
}

#[test]
fn rate_host_does_not_delay_other_hosts() {
    let peers: Vec<_> = (0..5).map(|number| page(&format!("{number}\n"))).collect();
    let urls: Vec<_> = peers.iter().map(|peer| peer.url("/")).collect();
    let args: Vec<&str> = ["--rate-host", "1/d"].into_iter().chain(urls.iter().map(String::as_str)).collect();
    assert_eq!(run_haul(&args).text(), "0\n1\n2\n3\n4\n");
}

#[test]
fn limit_rate_total_bounds_all_transfers_together() {
    let body = "x".repeat(64 << 10);
    let peer = page(&body);
    let glob = peer.url("/[1-8]");
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    std::fs::write(&file, &body).unwrap();
    let sink = H1Peer::always(vec![
        ScriptStep::ReadHead,
        ScriptStep::ReadBytes(64 << 10),
        ScriptStep::send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"),
    ]);
    let (file, sink) = (file.display().to_string(), sink.url("/[1-8]"));
    // 512 KiB at 256 KiB a second, but for the full bucket.
    let least = Duration::from_millis(1900);
    for (args, bytes) in [
        (vec!["-s", &*glob], 512 << 10),
        (vec!["-s", "--no-parallel", &*glob], 512 << 10),
        (vec!["curl", "-s", &*glob], 512 << 10),
        (vec!["curl", "-s", "-Z", &*glob], 512 << 10),
        (vec!["-s", "-T", &*file, &*sink], 0),
    ] {
        let args = [&args[..1], &["--limit-rate-total", "256K"], &args[1..]].concat();
        let began = Instant::now();
        assert_eq!(run_haul(&args).ok().len(), bytes, "{args:?}");
        assert!(began.elapsed() >= least, "{args:?}: {:?}", began.elapsed());
    }
}

#[test]
fn stalled_body_exits_28_and_is_retried() {
    let stalled = || {
        vec![
            ScriptStep::ReadHead,
            ScriptStep::send("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nabc"),
            ScriptStep::Await(1),
        ]
    };
    let good = page("good\n");
    for many in [false, true] {
        let peer = H1Peer::start(vec![stalled(), stalled()]);
        let (url, other) = (peer.url("/"), good.url("/"));
        // A retry can start over in a file, but not on a standard output that has a part already.
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("body");
        let to_file = ["-o", file.to_str().unwrap()];
        let urls = if many { vec![&*url, "-o", "/dev/null", &*other] } else { vec![&*url] };
        let limits = ["-sS", "--stall-time", "0.5", "--retry", "1", "--retry-delay", "1"];
        let args = [&limits[..], &to_file, &urls].concat();
        let ran = run_haul(&args);
        assert!(ran.failed(28).contains("silent for 500ms"), "{}", ran.stderr);
        assert_eq!(peer.connections(), 2, "it is retried");
    }
}

#[test]
fn stall_time_of_many_urls_includes_waiting_for_heads() {
    let slow = || {
        let wait = vec![ScriptStep::ReadHead, ScriptStep::Sleep(Duration::from_secs(3))];
        H1Peer::start(vec![
            [wait, vec![ScriptStep::send("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nlate\n")]].concat(),
        ])
    };
    let alone = slow();
    assert_eq!(run_haul(["--stall-time", "0.5", &alone.url("/")]).text(), "late\n");
    let good = page("good\n");
    let args = |limit, peer: &H1Peer| {
        ["-sS", "--retry", "0", "--stall-time", limit, &peer.url("/"), &good.url("/")].map(String::from)
    };
    let (listed, patient) = (slow(), slow());
    let ran = run_haul(args("0.5", &listed));
    assert_eq!(ran.failed(28).matches("silent for 500ms").count(), 1, "{}", ran.stderr);
    assert_eq!(run_haul(args("0", &patient)).text(), "late\ngood\n", "0 is no limit");
}

#[test]
fn stalled_upload_exits_28() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    std::fs::File::create(&file).unwrap().set_len(64 << 20).unwrap();
    // The server reads nothing of the content.
    let peer = H1Peer::start(vec![vec![ScriptStep::ReadHead, ScriptStep::Await(1)]]);
    let file = file.display().to_string();
    let ran = run_haul(["-sS", "--retry", "0", "--stall-time", "1", "-T", &file, &peer.url("/")]);
    assert!(ran.failed(28).contains("silent for 1s"), "{}", ran.stderr);
}

#[test]
fn slow_upload_input_is_not_a_stall() {
    let peer = H1Peer::start(vec![vec![
        ScriptStep::ReadHead,
        ScriptStep::ReadBytes(12),
        ScriptStep::send("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok\n"),
    ]]);
    let command = format!("{{ printf ab; sleep 2; }} | {} -sS --stall-time 0.5 -T - {}", common::HAUL, peer.url("/"));
    let ran = common::run(std::process::Command::new("sh").args(["-c", &command]));
    assert_eq!(ran.text(), "ok\n");
}

#[test]
fn retries_of_failing_hosts_delay_no_others() {
    let busy: Vec<_> = (0..12)
        .map(|_| {
            H1Peer::start(vec![vec![
                ScriptStep::ReadHead,
                ScriptStep::send("HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n"),
                ScriptStep::ReadHead,
                ScriptStep::send("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nbad\n"),
            ]])
        })
        .collect();
    let good = page("good\n");
    let urls: Vec<_> = busy.iter().map(|peer| peer.url("/")).chain([good.url("/[1-50]")]).collect();
    let options = ["-s", "--unordered", "--parallel-max", "3", "--retry-delay", "5"].map(String::from);
    let text = run_haul(options.into_iter().chain(urls)).text();
    assert_eq!(text, "good\n".repeat(50) + &"bad\n".repeat(12));
}

#[test]
fn signal_ends_a_wait_for_the_start_rate() {
    let dir = tempfile::tempdir().unwrap();
    let file = common::list(dir.path(), "file", ["x"]).display().to_string();
    for option in ["--rate", "--rate-host"] {
        for uploads in [&[][..], &["-T", &file]] {
            let peer = page("x");
            let (first, second) = (peer.url("/1"), peer.url("/2"));
            let mut args = vec!["--stats=json", option, "1/h"];
            args.extend(uploads.iter().chain(&[&*first]));
            args.extend(if uploads.is_empty() { vec!["--next", &second] } else { vec![&*second] });
            let running = RunningCommand::start(&mut common::haul(&args));
            eventually("the first URL is fetched", || !peer.received(0).is_empty());
            kill_process(running.pid(), Signal::TERM).unwrap();
            let ran = running.wait();
            assert_eq!(ran.code, 143, "{args:?}: {}", ran.stderr);
            assert_eq!(peer.connections(), 1, "{args:?}");
        }
    }
}
