//! Tests of concurrent HTTP/2 streams: if one stream waits or reaches a limit, the others are not
//! affected.

use crate::common;
use crate::support::http2_replies;

use std::io;
use std::thread;
use std::time::{Duration, Instant};

use common::{
    DRIVERS, DriverKind, http2_origin, item, one_thread, retrying, run, run_reading, single_stage, with_prior_knowledge,
};
use haul::Client;
use haul::fleet::{BodyDestination, FleetItem, FleetOptions};
use haul::request::{RequestOptions, SpeedLimit};
use haul::sink::file::FileOptions;
use http2_replies::{CANCEL, INTERNAL_ERROR, answer, answer_all, body, defaults, send_from};
use testkit::frames::{
    Frame, H2Peer, H2ScriptConnection, data, headers, headers_open, ping, rst, settings, settings_ack,
};

#[test]
fn http2_interim_responses_are_skipped() {
    for driver in DRIVERS {
        let peer = H2Peer::start(|_, conn| {
            conn.greet(&[])?;
            let asked = conn.request()?;
            conn.send(headers(asked.stream, false, &[(":status", "103"), ("link", "</a>; rel=preload")]))?;
            conn.send(headers(asked.stream, false, &[(":status", "100")]))?;
            answer(conn, &asked)?;
            conn.drain()
        });
        let got = driver.get(&Client::new(), &peer.url("/x"), &defaults());
        assert_eq!((got.ok(), got.status), (&b"/x"[..], 200));
    }
}

/// Fills the memory of a fleet with unordered output, so that all other bodies wait for the one
/// that is being output. Checks that, when this body breaks off, its retry is sent before requests
/// that come earlier in the input.
#[test]
fn broken_body_blocking_the_output_is_retried_first() {
    let peer = H2Peer::start(|_, conn| {
        conn.greet(&[(3, 2)])?;
        let warm_up = conn.request()?;
        answer(conn, &warm_up)?;
        let (first, held) = (conn.request()?, conn.request()?);
        assert_eq!((first.path(), held.path()), ("/first", "/held"));
        conn.send(rst(first.stream, INTERNAL_ERROR))?;
        let broken = conn.request()?;
        assert_eq!(broken.path(), "/broken");
        send_from(conn, &broken, &body(900), 300)?;
        // The answer to the ping proves that the client has processed all earlier frames.
        conn.send(ping([6; 8]))?;
        conn.frame_of(6)?;
        conn.send(headers(held.stream, false, &[(":status", "200")]))?;
        conn.send(data(held.stream, false, &[b'h'; 100]))?;
        conn.send(ping([7; 8]))?;
        conn.frame_of(6)?;
        conn.send(rst(broken.stream, INTERNAL_ERROR))?;
        let again = conn.request()?;
        assert_eq!((again.path(), again.get("range")), ("/broken", Some("bytes=300-")));
        send_from(conn, &again, &body(900), 900)?;
        conn.send(data(held.stream, true, &[b'h'; 100]))?;
        answer_all(conn)
    });
    let (client, options) = (Client::new(), with_prior_knowledge(retrying(3)));
    // From then on the connection is known to allow two requests at once.
    run(&client, single_stage(&options), one_thread(), [peer.url("/warm-up")]);
    let way = FleetOptions { unordered: true, max_memory: 1, ..one_thread() };
    let urls = ["/first", "/held", "/broken"].map(|path| peer.url(path));
    let run = run(&client, single_stage(&options), way, urls);
    assert_eq!(peer.connections(), 1);
    assert_eq!(run.exits().into_iter().map(|(_, exit)| exit).collect::<Vec<_>>(), [0; 3]);
    assert_eq!(run.output, [&body(900)[..], &[b'h'; 200], b"/first"].concat());
}

#[test]
fn time_limits_end_only_their_own_stream() {
    let mut late = defaults();
    late.max_time = Some(Duration::from_secs(2));
    let mut slow = defaults();
    slow.speed_limit = Some(SpeedLimit { bytes_per_second: 1000, time: Duration::from_secs(1) });
    for options in [late, slow] {
        let peer = H2Peer::start(|_, conn| {
            conn.greet(&[])?;
            let mut stuck = 0;
            while stuck == 0 {
                let asked = conn.request()?;
                if asked.path() == "/stuck" { stuck = asked.stream } else { answer(conn, &asked)? }
            }
            conn.send(headers(stuck, false, &[(":status", "200")]))?;
            conn.send(data(stuck, false, b"abc"))?;
            answer_all(conn)
        });
        let urls = ["/a", "/stuck", "/b"].map(|path| peer.url(path));
        let run = run(&Client::new(), single_stage(&options), one_thread(), urls);
        let exits: Vec<_> = run.exits().into_iter().map(|(_, exit)| exit).collect();
        assert_eq!((exits, run.output.as_slice()), (vec![0, 0, 28], &b"/aabc/b"[..]));
        assert!(peer.saw(|_, frame| frame.code() == Some(CANCEL)), "the server is told");
        assert_eq!(peer.connections(), 1);
        for driver in DRIVERS {
            assert_eq!(driver.get(&Client::new(), &peer.url("/stuck"), &options).exit, 28, "{driver:?}");
        }
    }
}

#[test]
fn limit_rate_applies_to_each_transfer() {
    let origin = http2_origin(100);
    let mut options = defaults();
    options.limit_rate = Some(400_000);
    for driver in DRIVERS {
        let began = Instant::now();
        let got = driver.get(&Client::new(), &origin.url("/bytes/1200000"), &options);
        assert!(got.ok() == origin.pattern().slice(0, 1_200_000));
        assert!(began.elapsed() >= Duration::from_secs(1), "{driver:?}: {:?}", began.elapsed());
    }
    let urls = (0..3).map(|n| origin.url(&format!("/bytes/{}", 600_000 + n)));
    let run = run(&Client::new(), single_stage(&options), one_thread(), urls);
    let expected: Vec<u8> = (0..3).flat_map(|n| origin.pattern().slice(0, 600_000 + n)).collect();
    assert!(run.output == expected);
}

/// Checks that the initial HTTP/2 window of a connection is only what its rate limit allows in a
/// fraction of a second. When a request without a rate limit shares the connection, the window
/// grows.
#[test]
fn initial_window_respects_limit_rate() {
    let paced = RequestOptions { limit_rate: Some(400_000), ..defaults() };
    for driver in DRIVERS {
        let peer = H2Peer::start(|_, conn| {
            conn.greet(&[])?;
            answer_all(conn)
        });
        let client = Client::new();
        for (path, options) in [("/a", &paced), ("/b", &paced), ("/c", &defaults()), ("/d", &paced)] {
            assert_eq!(driver.get(&client, &peer.url(path), options).ok(), path.as_bytes());
        }
        // Initial windows of streams, and opened streams.
        let said: Vec<_> = peer.frames().iter().filter_map(|(_, frame)| begins(frame)).collect();
        let wide = match said.as_slice() {
            [
                InitialWindowOrStream::Window(25_000),
                InitialWindowOrStream::Stream(1),
                InitialWindowOrStream::Stream(3),
                InitialWindowOrStream::Window(wide),
                InitialWindowOrStream::Stream(5),
                ..,
            ] => *wide,
            _ => panic!("{driver:?}: {said:?}"),
        };
        assert_eq!((wide > 100_000, said.len(), peer.connections()), (true, 6, 1), "{driver:?}: {said:?}");
    }
}

/// Checks a body that exactly fills the window of its stream. A server like Apache sends the end of
/// the stream in an empty DATA frame, but only while the window is greater than 0. So the client
/// must enlarge the window.
#[test]
fn http2_body_that_fills_its_window_can_end() {
    for driver in DRIVERS {
        let peer = H2Peer::start(|_, conn| {
            let window = greet(conn)?;
            let asked = conn.request()?;
            let length = window.to_string();
            conn.send(headers(asked.stream, false, &[(":status", "200"), ("content-length", &length)]))?;
            for piece in body(window as usize).chunks(16 << 10) {
                conn.send(data(asked.stream, false, piece))?;
            }
            while conn.frame_of(Frame::WINDOW_UPDATE)?.stream != asked.stream {}
            conn.send(data(asked.stream, true, b""))?;
            conn.drain()
        });
        let limited = RequestOptions { max_time: Some(Duration::from_secs(20)), ..defaults() };
        let got = driver.get(&Client::new(), &peer.url("/"), &limited);
        assert!(got.body == body(got.body.len()) && got.exit == 0, "{driver:?}: {} {:?}", got.exit, got.message);
    }
}

/// Checks that the client enlarges the window before it waits for data. The server sends a whole
/// window at once, and the client consumes it later, at its limited rate.
#[test]
fn rate_limited_h2_window_grows_before_data_arrives() {
    const WINDOWS: usize = 8;
    for driver in DRIVERS {
        let peer = H2Peer::start(|_, conn| {
            let window = greet(conn)?;
            let asked = conn.request()?;
            let body = body(WINDOWS * window as usize);
            let length = body.len().to_string();
            conn.send(headers(asked.stream, false, &[(":status", "200"), ("content-length", &length)]))?;
            for (i, part) in body.chunks(window as usize).enumerate() {
                let mut left = if i == 0 { 0 } else { part.len() };
                while left > 0 {
                    let update = conn.frame_of(Frame::WINDOW_UPDATE)?;
                    let bytes = u32::from_be_bytes(update.payload[..4].try_into().unwrap()) as usize;
                    left = left.saturating_sub(if update.stream == asked.stream { bytes } else { 0 });
                }
                conn.send(
                    part.chunks(16 << 10).flat_map(|piece| data(asked.stream, false, piece)).collect::<Vec<u8>>(),
                )?;
            }
            conn.send(data(asked.stream, true, b""))?;
            conn.drain()
        });
        let limit = Some(Duration::from_secs(20));
        let paced = RequestOptions { limit_rate: Some(400_000), max_time: limit, ..defaults() };
        let got = driver.get(&Client::new(), &peer.url("/"), &paced);
        assert!(got.body == body(WINDOWS * 25_000) && got.exit == 0, "{driver:?}: {} {:?}", got.exit, got.message);
    }
}

/// Opens the connection like [`H2ScriptConnection::greet`], and returns the initial window of the
/// client's streams.
fn greet(conn: &mut H2ScriptConnection) -> io::Result<u32> {
    conn.preface()?;
    let Some(InitialWindowOrStream::Window(window)) = begins(&conn.next_frame()?) else {
        unreachable!("SETTINGS come first")
    };
    conn.send([settings(&[]), settings_ack()].concat())?;
    Ok(window)
}

/// The initial window in a client's SETTINGS frame, or the stream that a HEADERS frame opens.
#[derive(Debug)]
enum InitialWindowOrStream {
    Window(u32),
    Stream(u32),
}

/// Returns the initial window in a SETTINGS frame, or the stream of a HEADERS frame. Returns `None`
/// for other frames.
fn begins(frame: &Frame) -> Option<InitialWindowOrStream> {
    const INITIAL_WINDOW_SIZE: &[u8] = &[0, 4];
    match frame.kind {
        Frame::HEADERS => Some(InitialWindowOrStream::Stream(frame.stream)),
        Frame::SETTINGS => {
            let entry = frame.payload.chunks_exact(6).find(|entry| entry.starts_with(INITIAL_WINDOW_SIZE))?;
            Some(InitialWindowOrStream::Window(u32::from_be_bytes(entry[2..].try_into().unwrap())))
        }
        _ => None,
    }
}

#[test]
fn full_output_stops_only_its_own_stream() {
    let origin = http2_origin(100);
    let dir = tempfile::tempdir().unwrap();
    let paths: Vec<_> = (0..5).map(|n| dir.path().join(n.to_string())).collect();
    let mut items = vec![Ok(item(origin.url("/bytes/30000000")))];
    items.extend(paths.iter().map(|path| {
        let destination = BodyDestination::File { path: path.clone(), options: FileOptions::default() };
        Ok(FleetItem::new(origin.url("/bytes/3000000"), destination))
    }));
    let watched = paths.clone();
    let run = run_reading(
        &Client::new(),
        single_stage(&defaults()),
        one_thread(),
        Box::new(items.into_iter()),
        move |mut pipe| {
            // Reads nothing before the other bodies are whole.
            let is_whole =
                |path: &std::path::PathBuf| std::fs::metadata(path).is_ok_and(|file| file.len() == 3_000_000);
            while !watched.iter().all(is_whole) {
                thread::sleep(Duration::from_millis(5));
            }
            let mut output = Vec::new();
            io::Read::read_to_end(&mut pipe, &mut output).unwrap();
            output
        },
    );
    assert!(run.output == origin.pattern().slice(0, 30_000_000));
    for path in &paths {
        assert!(std::fs::read(path).unwrap() == origin.pattern().slice(0, 3_000_000));
    }
    assert_eq!(origin.connections(), 1);
}

#[test]
fn http2_response_is_parsed_in_any_piece_size() {
    for driver in DRIVERS {
        for size in [1, 7, 1 << 20] {
            let peer = H2Peer::start(move |_, conn| {
                conn.greet(&[])?;
                let asked = conn.request()?;
                let block = testkit::frames::block(&[(":status", "200"), ("x-long", &"y".repeat(3_000))]);
                let mut all = headers_open(asked.stream, &block[..10]);
                all.extend(testkit::frames::continuation(asked.stream, true, &block[10..]));
                for n in 0..200_u8 {
                    all.extend(data(asked.stream, n == 199, &[n; 5]));
                    all.extend(testkit::frames::frame(0x77, 0xff, asked.stream, b"unknown"));
                }
                for piece in all.chunks(size) {
                    conn.send(piece)?;
                }
                conn.drain()
            });
            let expected: Vec<u8> = (0..200).flat_map(|n| [n; 5]).collect();
            assert_eq!(driver.get(&Client::new(), &peer.url("/"), &defaults()).ok(), expected, "{driver:?}, {size}");
        }
    }
}

#[test]
fn http2_padding_is_not_part_of_the_body() {
    let peer = H2Peer::start(|_, conn| {
        conn.greet(&[])?;
        let asked = conn.request()?;
        conn.send(headers(asked.stream, false, &[(":status", "200"), ("content-length", "5")]))?;
        conn.send(testkit::frames::frame(
            Frame::DATA,
            Frame::PADDED | Frame::END_STREAM,
            asked.stream,
            b"\x03hello\0\0\0",
        ))?;
        conn.drain()
    });
    assert_eq!(DriverKind::Blocking.get(&Client::new(), &peer.url("/"), &defaults()).ok(), b"hello");
}
