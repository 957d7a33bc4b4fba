//! Tests of HTTP/2 with testkit's server and with scripted servers: `-w`, heads, extraction, memory
//! and malicious servers. `http2_servers.rs` tests other servers.

use crate::common;

use std::fs;
use std::io::{self, Read};

use common::peak_memory::{measured, peak_memory};
use common::{installed, list, program, run, run_haul};
use testkit::frames::{
    Frame, H2Peer, H2ScriptConnection, block, data, frame, headers, headers_open, rst, window_update,
};
use testkit::origin::Origin;
use testkit::relay::Relay;
use testkit::site::GeneratedSite;

const KNOWING: &str = "--http2-prior-knowledge";
/// The memory in KiB that haul may use in addition to the buffers that `--max-memory` limits.
const OWN: u64 = 36 << 10;

fn origin() -> Origin {
    Origin::builder().http2(100).site(GeneratedSite::scaled(3, 200).cached()).start().unwrap()
}

#[test]
fn http2_write_out_and_headers_match_curl() {
    let origin = origin();
    let dir = tempfile::tempdir().unwrap();
    let ca = dir.path().join("ca");
    fs::write(&ca, origin.ca_pem()).unwrap();
    let ca = ca.to_str().unwrap();
    let format = "%{http_version} %{response_code} %{size_download} %{num_connects} %{content_type}\n";
    let (plain, secure) = (origin.url("/bytes/70000"), origin.https_url("/bytes/70000"));
    let curl = installed("curl", "the comparison with curl's figures");
    for args in [
        &[KNOWING, &*plain][..],
        &["--http2", "--cacert", ca, &secure],
        &["--http1.1", "--cacert", ca, &secure],
        &[KNOWING, "-I", &plain],
    ] {
        let all = [&["-s", "-o", "/dev/null", "-w", format], args].concat();
        let got = run_haul(&all).text();
        let version = if args[0] == "--http1.1" { "1.1 200 " } else { "2 200 " };
        assert!(got.starts_with(version), "{args:?}: {got}");
        if let Some(curl) = curl {
            assert_eq!(got, run(program(curl).args(&all)).text(), "{args:?}");
        }
    }
    let head = dir.path().join("head");
    let body = run_haul([KNOWING, "-D", head.to_str().unwrap(), &plain]).ok();
    assert!(body == origin.pattern().slice(0, 70_000));
    let head = fs::read_to_string(&head).unwrap();
    assert!(head.starts_with("HTTP/2 200 \r\n") && head.ends_with("\r\n\r\n"), "{head}");
    let with = run_haul([KNOWING, "-i", &plain]).ok();
    // The date of another second has the same length.
    assert_eq!(with.len(), head.len() + body.len());
    assert!(with.ends_with(&body) && with.starts_with(b"HTTP/2 200 \r\n"));
}

/// HTTP/2 has no chunked coding. If `-H` asks for it, haul sends `Content-Length` like curl,
/// because lighttpd answers 411 without this field.
#[test]
fn http2_sends_content_length_instead_of_chunks() {
    let origin = origin();
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    fs::write(&file, "abc").unwrap();
    let at = format!("@{}", file.display());
    for (content, length) in
        [(["-d", "abc"], "3"), (["-T", file.to_str().unwrap()], "3"), (["-d", &at], "3"), (["-d", ""], "0")]
    {
        let url = origin.url("/echo");
        let seen = run_haul(["-sS", KNOWING, "-H", "Transfer-Encoding: chunked", content[0], content[1], &url]).text();
        let said = seen.contains(&format!("[\"content-length\",\"{}\"]", length));
        assert!(said && !seen.contains("transfer-encoding"), "{content:?}: {seen}");
    }
}

#[test]
fn http2_extraction_stages_share_one_connection() {
    let origin = origin();
    let args = [
        KNOWING,
        "--threads",
        "1",
        &origin.url("/[1-3]"),
        "--extract",
        "AS[0-9]{1,9}",
        "--then",
        &origin.url("/{}"),
        "--extract",
        "[0-9.]{7,15}/[0-9]{1,2}",
        "--unique",
        "--sort",
    ];
    // Options before the URL also apply to the second stage.
    assert!(run_haul(args).ok() == origin.site().known_answer().text);
    for path in origin.site().as_paths() {
        assert_eq!(origin.hits(&path), 1, "{path}");
    }
    assert_eq!(origin.connections(), 1);
}

#[test]
fn http2_list_output_is_whole_and_ordered() {
    let origin = origin();
    let dir = tempfile::tempdir().unwrap();
    let file = list(dir.path(), "list", (0..5_000).map(|n| origin.url(&format!("/small/{n}"))));
    let got = run_haul([KNOWING, "--threads", "1", "--input-file", file.to_str().unwrap()]).text();
    assert_eq!(got, (0..5_000).map(|n| format!("small {n}\n")).collect::<String>());
    assert_eq!(origin.connections(), 1);
}

#[test]
fn parallel_immediate_opens_connections_without_waiting() {
    let origin = origin();
    let dir = tempfile::tempdir().unwrap();
    let ca = dir.path().join("ca");
    fs::write(&ca, origin.ca_pem()).unwrap();
    let url = origin.https_url("/bytes/10?[1-4]");
    let connections = |words: &[&str], options: &[&str]| {
        let args = ["-s", "--cacert", ca.to_str().unwrap(), "-o", "/dev/null", "-w", "%{num_connects}\n", &url];
        let printed = run_haul(words.iter().chain(options).chain(&args)).text();
        printed.lines().map(|count| count.parse::<usize>().unwrap()).sum::<usize>()
    };
    for words in [&["curl", "-q", "-Z"][..], &["--threads", "1"]] {
        assert_eq!(connections(words, &[]), 1, "{words:?}");
        let at_once = connections(words, &["--parallel-immediate"]);
        assert!(at_once > 1, "{words:?}: {at_once}");
        assert_eq!(connections(words, &["--parallel-immediate", "--no-parallel-immediate"]), 1, "{words:?}");
    }
}

#[test]
fn http2_memory_is_bounded_with_many_streams() {
    let origin = Origin::builder().http2(1_000).record(false).start().unwrap();
    let dir = tempfile::tempdir().unwrap();
    let file = list(dir.path(), "list", (0..1_000).map(|n| origin.url(&format!("/bytes/{}", 300_000 + n))));
    let expected = origin.pattern().slice(0, 301_000);
    for (memory, budget) in [("64M", 64 << 10), ("1M", 1 << 10)] {
        let args = [KNOWING, "--parallel-max", "1000", "--max-memory", memory, "--input-file", file.to_str().unwrap()];
        let peak = peak_memory(&args, |mut from| {
            // Until nothing more comes: all that may run ahead has.
            let mut before = 0;
            common::eventually("the windows are full", || {
                std::thread::sleep(std::time::Duration::from_millis(100));
                let now = origin.requests();
                std::mem::replace(&mut before, now) == now && now > 0
            });
            let mut body = Vec::new();
            for n in 0..1_000 {
                body.clear();
                from.by_ref().take(300_000 + n).read_to_end(&mut body).unwrap();
                assert!(body == expected[..300_000 + n as usize], "body {n}: {} bytes", body.len());
            }
            assert_eq!(from.read(&mut [0]).unwrap(), 0, "no more than the bodies");
        });
        assert!(peak <= budget + OWN, "{memory}: {peak} KiB");
    }
}

#[test]
fn http2_memory_is_bounded_with_many_connections() {
    // Of each size: one that its windows hold back, and one that is complete before anybody asks.
    let origins: Vec<_> = (0..10).map(|_| Origin::builder().http2(1_000).record(false).start().unwrap()).collect();
    let dir = tempfile::tempdir().unwrap();
    for size in [400_000, 200_000] {
        let urls = (0..1_000).map(|n| origins[n % 10].url(&format!("/bytes/{size}")));
        let file = list(dir.path(), "list", urls);
        let expected = origins[0].pattern().slice(0, size);
        let args = [KNOWING, "--parallel-max", "1000", "--max-memory", "1M", "--input-file", file.to_str().unwrap()];
        let peak = peak_memory(&args, |mut from| {
            let mut before = 0;
            common::eventually("the windows are full", || {
                std::thread::sleep(std::time::Duration::from_millis(200));
                let now = origins.iter().map(Origin::requests).sum();
                std::mem::replace(&mut before, now) == now && now > 0
            });
            let mut body = Vec::new();
            for n in 0..1_000 {
                body.clear();
                from.by_ref().take(size as u64).read_to_end(&mut body).unwrap();
                assert!(body == expected, "body {n} of {size}: {} bytes", body.len());
            }
            assert_eq!(from.read(&mut [0]).unwrap(), 0, "no more than the bodies");
        });
        assert!(peak <= (1 << 10) + OWN, "{size}: {peak} KiB");
    }
}

/// The maximum number of frames that a malicious server in these tests sends. haul must end the
/// connection long before.
const FOREVER: u64 = 200_000;

/// A function that attacks haul from the server's end of an HTTP/2 connection.
type Http2Attack = fn(&mut H2ScriptConnection) -> io::Result<()>;

/// Sends the same HTTP/2 frame to haul again and again, until haul closes the connection.
fn flood(conn: &mut H2ScriptConnection, kind: u8, flags: u8, stream: u32, payload: &[u8]) -> io::Result<()> {
    conn.flood(kind, flags, stream, payload, FOREVER);
    Ok(())
}

const OK: (&str, &str) = (":status", "200");

/// The attacks of malicious HTTP/2 servers. Each has its name, the exit code that haul must have, a
/// part of haul's error message, and the function that attacks.
const HOSTILE: [(&str, &str, &str, Http2Attack); 20] = [
    ("PING", "16", "PING", |conn| flood(conn, Frame::PING, 0, 0, &[0; 8])),
    ("SETTINGS", "16", "SETTINGS", |conn| flood(conn, Frame::SETTINGS, 0, 0, &[0, 3, 0, 0, 0, 9])),
    ("WINDOW_UPDATE", "16", "WINDOW_UPDATE", |conn| flood(conn, Frame::WINDOW_UPDATE, 0, 0, &[0, 0, 0, 1])),
    ("PRIORITY", "16", "PRIORITY", |conn| flood(conn, Frame::PRIORITY, 0, 1, &[0, 0, 0, 0, 1])),
    ("GOAWAY", "16", "GOAWAY", |conn| flood(conn, Frame::GOAWAY, 0, 0, &[0x7f, 0xff, 0xff, 0xff, 0, 0, 0, 0])),
    ("unknown frames", "16", "unknown", |conn| flood(conn, 0xee, 0, 0, &[7; 16_000])),
    ("empty DATA", "16", "DATA", |conn| {
        conn.send(headers(1, false, &[OK]))?;
        flood(conn, Frame::DATA, 0, 1, &[])
    }),
    ("interim heads", "92", "limit", |conn| {
        flood(conn, Frame::HEADERS, Frame::END_HEADERS, 1, &block(&[(":status", "103"), ("a", "b")]))
    }),
    ("CONTINUATION", "16", "limit", |conn| {
        conn.send(headers_open(1, &block(&[OK])))?;
        flood(conn, Frame::CONTINUATION, 0, 1, &block(&[("x", &"y".repeat(10_000))]))
    }),
    ("empty CONTINUATION", "16", "CONTINUATION", |conn| {
        conn.send(headers_open(1, &block(&[OK])))?;
        flood(conn, Frame::CONTINUATION, 0, 1, &[])
    }),
    ("HPACK bomb", "16", "limit", |conn| {
        // A field of 4,000 bytes in the table, named by a byte each: 60 MB of head in 15 KB.
        let mut bomb = vec![0x88, 0x40, 1, b'x', 127, 0xa1, 0x1e];
        bomb.extend([b'y'; 4_000]);
        bomb.extend([0xbe; 12_000]);
        flood(conn, Frame::HEADERS, Frame::END_HEADERS, 1, &bomb)
    }),
    ("RST_STREAM", "92", "INTERNAL_ERROR", |conn| flood(conn, Frame::RST_STREAM, 0, 1, &[0, 0, 0, 2])),
    ("a window above 2^31-1", "16", "window", |conn| conn.send(window_update(0, 0x7fff_ffff))),
    ("a window raised by nothing", "16", "nothing", |conn| conn.send(window_update(0, 0))),
    ("a stream's window raised by nothing", "92", "nothing", |conn| conn.send(window_update(1, 0))),
    ("padding above the payload", "16", "padding", |conn| {
        conn.send(headers(1, false, &[OK]))?;
        conn.send(frame(Frame::DATA, Frame::PADDED, 1, &[200, 0, 0]))
    }),
    ("CR and LF in a field", "92", "server sent", |conn| conn.send(headers(1, true, &[OK, ("a", "b\r\nc: d")]))),
    ("a pseudo-field of requests", "92", "server sent", |conn| conn.send(headers(1, true, &[OK, (":path", "/")]))),
    ("a length that is not the body's", "92", "announced", |conn| {
        conn.send(headers(1, false, &[OK, ("content-length", "9")]))?;
        conn.send(data(1, true, b""))
    }),
    ("a push", "16", "push", |conn| conn.send(frame(Frame::PUSH_PROMISE, 4, 1, &[0, 0, 0, 2, 0x82]))),
];

#[test]
fn hostile_http2_peers_fail_within_bounded_memory() {
    for (what, code, says, worst) in HOSTILE {
        let peer = H2Peer::start(move |_, conn| {
            conn.greet(&[])?;
            conn.request()?;
            worst(conn)?;
            conn.drain()
        });
        let args = [KNOWING, "--retry", "0", &peer.url("/")];
        let (ended, said, peak) = measured(&args, |mut from| {
            let mut body = Vec::new();
            from.read_to_end(&mut body).unwrap();
            assert!(body.is_empty(), "{what}");
        });
        assert_eq!((ended.as_str(), said.lines().count()), (code, 1), "{what}: {said}");
        assert!(said.contains(says), "{what}: {said}");
        assert!(peak <= 64 << 10, "{what}: {peak} KiB");
    }
}

#[test]
fn large_http2_body_is_split_over_connections() {
    let origin = origin();
    let relay = Relay::to(origin.https_addr()).rate(4 << 20).start().unwrap();
    let dir = tempfile::tempdir().unwrap();
    let ca = dir.path().join("ca");
    fs::write(&ca, origin.ca_pem()).unwrap();
    let url = format!("https://localhost:{}/bytes/40000000", relay.addr().port());
    for split in ["1", "4"] {
        let before = relay.connections();
        let got = run_haul(["--split", split, "--http2", "--cacert", ca.to_str().unwrap(), &url]).ok();
        assert!(got == origin.pattern().slice(0, 40_000_000), "{split}: {} bytes", got.len());
        let used = relay.connections() - before;
        // Parts go by HTTP/1.1, and one at a time by the first connection, once its share is done.
        let fits = if split == "1" { 1..=1 } else { 2..=4 };
        assert!(fits.contains(&used), "{used} connections for --split {split}");
    }
}

#[test]
fn http2_failures_exit_with_curls_codes() {
    let broken = H2Peer::start(|_, conn| {
        conn.greet(&[])?;
        loop {
            let asked = conn.request()?;
            conn.send(headers(asked.stream, false, &[(":status", "200"), ("content-length", "10")]))?;
            conn.send(data(asked.stream, false, b"abc"))?;
            match asked.path() {
                "/reset" => conn.send(rst(asked.stream, 2))?,
                "/breach" => conn.send(window_update(0, 0))?,
                _ => return conn.close_without_notify(),
            }
        }
    });
    for (path, code, times) in [("/reset", 92, 1), ("/reset", 92, 2), ("/breach", 16, 1), ("/lost", 18, 1)] {
        let urls = vec![broken.url(path); times];
        let ran = run_haul([KNOWING, "--retry", "0"].into_iter().chain(urls.iter().map(String::as_str)));
        assert_eq!(ran.code, code, "{path}: {}", ran.stderr);
        assert_eq!(ran.stderr.lines().count(), times, "{path}: {}", ran.stderr);
        assert_eq!(ran.stdout, b"abc".repeat(times), "{path}: the exact prefix");
    }
}
