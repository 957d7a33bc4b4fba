//! HTTP/2 connections and streams that end before their time: what the server did not process is sent again, what it
//! began is resumed at the exact byte, and what has nothing to do with it goes on.

mod common;

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::sync::{Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use common::{
    DRIVERS, Driver, PATIENCE, fetching, http2_origin, item, knowing, offering, one_thread, retrying, run, run_reading,
    trusting,
};
use haul::fleet::{Destination, Item};
use haul::request::SpeedLimit;
use haul::sink::file::FileOptions;
use haul::{Client, ErrorKind, RequestOptions, Version};
use testkit::frames::{
    Asked, Conn, Frame, FramePeer, data, goaway, headers, headers_open, ping, rst, settings, settings_ack,
    window_update,
};
use testkit::identity::Identity;
use testkit::pattern::Pattern;

const REFUSED_STREAM: u32 = 7;
const MAX_CONCURRENT_STREAMS: u16 = 3;
const INTERNAL_ERROR: u32 = 2;
const CANCEL: u32 = 8;
const ENHANCE_YOUR_CALM: u32 = 11;
const HTTP_1_1_REQUIRED: u32 = 13;

fn body(len: usize) -> Vec<u8> {
    Pattern::new(3).slice(0, len)
}

fn defaults() -> RequestOptions {
    knowing(RequestOptions::default())
}

/// Answers with the request's path as the body.
fn answer(conn: &mut Conn, asked: &Asked) -> io::Result<()> {
    let length = asked.path().len().to_string();
    conn.send(headers(asked.stream, false, &[(":status", "200"), ("content-length", &length)]))?;
    conn.send(data(asked.stream, true, asked.path().as_bytes()))
}

/// Answers all that comes so.
fn answer_all(conn: &mut Conn) -> io::Result<()> {
    loop {
        let asked = conn.request()?;
        answer(conn, &asked)?;
    }
}

/// Sends the body from where the request wants it, as far as `to`; the stream stays open before the end.
fn send_from(conn: &mut Conn, asked: &Asked, all: &[u8], to: usize) -> io::Result<()> {
    let from = asked.get("range").map_or(0, |range| {
        range.trim_start_matches("bytes=").split('-').next().and_then(|from| from.parse().ok()).expect("a range")
    });
    let (length, range) = ((all.len() - from).to_string(), format!("bytes {from}-{}/{}", all.len() - 1, all.len()));
    let mut fields = vec![(":status", "200"), ("content-length", &length), ("etag", "\"v\"")];
    if from > 0 {
        fields[0].1 = "206";
        fields.push(("content-range", &range));
    }
    conn.send(headers(asked.stream, false, &fields))?;
    let mut at = from;
    for piece in all[from..to].chunks(9_999) {
        at += piece.len();
        conn.send(data(asked.stream, at == all.len(), piece))?;
    }
    Ok(())
}

fn ranges(peer: &FramePeer) -> Vec<Option<String>> {
    peer.requests().iter().map(|asked| asked.get("range").map(str::to_owned)).collect()
}

#[test]
fn after_goaway_those_up_to_last_finish_and_the_others_are_sent_once_more() {
    let peer = FramePeer::start(|number, conn| {
        conn.greet(&[])?;
        if number > 0 {
            return answer_all(conn);
        }
        let asked: Vec<_> = (0..4).map(|_| conn.request()).collect::<io::Result<_>>()?;
        conn.send(goaway(asked[1].stream, 0))?;
        answer(conn, &asked[0])?;
        answer(conn, &asked[1])?;
        conn.drain()
    });
    let run = run(&Client::new(), fetching(&defaults()), one_thread(), (0..4).map(|n| peer.url(&format!("/{n}"))));
    assert_eq!(run.output, b"/0/1/2/3");
    assert_eq!(peer.connections(), 2);
    let mut times = BTreeMap::new();
    for asked in peer.requests() {
        *times.entry(asked.path().to_owned()).or_insert(0) += 1;
    }
    let times: Vec<_> = times.iter().map(|(path, times)| (path.as_str(), *times)).collect();
    assert_eq!(times, [("/0", 1), ("/1", 1), ("/2", 2), ("/3", 2)]);
}

/// nginx with `keepalive_timeout 0`, or few `keepalive_requests`; and one that takes few at once, and says so late.
#[test]
fn a_server_that_takes_one_request_a_connection_is_asked_as_often_as_there_are_requests() {
    const ALL: usize = 12;
    for refuses in [false, true] {
        let peer = FramePeer::start(move |number, conn| {
            conn.preface()?;
            conn.next_frame()?;
            let asked: Vec<_> = (number..ALL).map(|_| conn.request()).collect::<io::Result<_>>()?;
            conn.send([settings(&[(MAX_CONCURRENT_STREAMS, 1)]), settings_ack()].concat())?;
            let (first, others) = asked.split_first().unwrap();
            if refuses {
                others.iter().try_for_each(|asked| conn.send(rst(asked.stream, REFUSED_STREAM)))?;
            }
            conn.send(goaway(first.stream, 0))?;
            answer(conn, first)?;
            conn.drain()
        });
        let mut options = defaults();
        options.retry.max = 0;
        options.max_time = Some(Duration::from_secs(20));
        let urls = (0..ALL).map(|n| peer.url(&format!("/{n}")));
        let run = run(&Client::new(), fetching(&options), one_thread(), urls);
        assert_eq!(String::from_utf8_lossy(&run.output), "/0/1/2/3/4/5/6/7/8/9/10/11", "{refuses}");
        assert_eq!(peer.connections(), ALL);
    }
}

#[test]
fn a_server_that_tells_why_it_goes_is_heard() {
    for driver in DRIVERS {
        let peer = FramePeer::start(|_, conn| {
            conn.greet(&[])?;
            let asked = conn.request()?;
            conn.send(goaway(asked.stream, ENHANCE_YOUR_CALM))
        });
        let got = driver.get(&Client::new(), &peer.url("/"), &defaults());
        assert_eq!(got.kind, Some(ErrorKind::Receive), "{driver:?}: {}", got.message);
        assert!(got.message.contains("ENHANCE_YOUR_CALM"), "{driver:?}: {}", got.message);
    }
}

#[test]
fn a_server_that_wants_http1_is_asked_by_it() {
    for driver in DRIVERS {
        let identity = Identity::for_names(&["localhost"]);
        let peer = FramePeer::start_tls(&identity, |number, conn| {
            if number > 0 {
                conn.send("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nold\n")?;
                return conn.drain();
            }
            conn.greet(&[])?;
            let asked = conn.request()?;
            conn.send(rst(asked.stream, HTTP_1_1_REQUIRED))?;
            conn.drain()
        });
        let (mut options, _ca) = trusting(identity.ca_pem());
        options.method = "POST".into();
        options.retry.max = 0;
        let client = Client::new();
        let got = driver.get(&client, &peer.https_url("/"), &offering(options.clone()));
        assert_eq!((got.ok(), got.facts.version), (&b"old\n"[..], Some(Version::Http11)), "{driver:?}");
        assert_eq!((got.facts.retries, peer.connections()), (0, 2));
    }
}

#[test]
fn requests_that_wait_do_not_wait_for_a_connection_that_takes_no_more() {
    // One stream at a time: the others wait on the connection. It goes away, but its first response does not end before
    // the others are there.
    let peer = FramePeer::start(|number, conn| {
        conn.greet(&[(3, 1)])?;
        if number > 0 {
            return answer_all(conn);
        }
        let asked = conn.request()?;
        conn.send(headers(asked.stream, false, &[(":status", "200")]))?;
        conn.send(goaway(asked.stream, 0))?;
        conn.wait(1);
        conn.send(data(asked.stream, true, b"late"))?;
        conn.drain()
    });
    let peer = std::sync::Arc::new(peer);
    let watched = std::sync::Arc::clone(&peer);
    let watching = thread::spawn(move || {
        // Paths, for how they are spread over the connections is not ours to say.
        while !(1..4)
            .all(|n| watched.requests().iter().any(|asked| asked.path() == format!("/{n}") && asked.connection > 0))
        {
            thread::sleep(Duration::from_millis(5));
        }
        watched.release();
    });
    let mut options = defaults();
    options.max_time = Some(Duration::from_secs(20));
    let run = run(&Client::new(), fetching(&options), one_thread(), (0..4).map(|n| peer.url(&format!("/{n}"))));
    assert_eq!(String::from_utf8_lossy(&run.output), "late/1/2/3");
    watching.join().unwrap();
}

#[test]
fn goaway_with_no_error_and_an_unknown_last_stream_loses_nothing() {
    // The graceful way: first "no more", with the highest number, then the connection's end when all is answered.
    let peer = FramePeer::start(|_, conn| {
        conn.greet(&[])?;
        let asked = conn.request()?;
        conn.send(goaway(0x7fff_ffff, 0))?;
        answer(conn, &asked)?;
        conn.drain()
    });
    for driver in DRIVERS {
        let client = Client::new();
        for n in 0..3 {
            assert_eq!(driver.get(&client, &peer.url(&format!("/{n}")), &defaults()).ok(), format!("/{n}").as_bytes());
        }
    }
    assert_eq!((peer.connections(), peer.requests().len()), (6, 6), "each on a connection of its own, once");
}

#[test]
fn a_refused_stream_is_sent_again_whatever_its_method() {
    for driver in DRIVERS {
        let peer = FramePeer::start(|_, conn| {
            conn.greet(&[])?;
            let first = conn.request()?;
            conn.send(rst(first.stream, REFUSED_STREAM))?;
            answer_all(conn)
        });
        let mut options = defaults();
        options.method = "POST".into();
        options.body = Some(b"once"[..].into());
        assert_eq!(driver.get(&Client::new(), &peer.url("/x"), &options).ok(), b"/x");
        assert_eq!((peer.connections(), peer.requests().len()), (1, 2), "{driver:?}");
    }
}

#[test]
fn a_connection_that_goes_on_refusing_is_left_for_another() {
    for driver in DRIVERS {
        let peer = FramePeer::start(|number, conn| {
            conn.greet(&[])?;
            if number > 0 {
                return answer_all(conn);
            }
            loop {
                let asked = conn.request()?;
                conn.send(rst(asked.stream, REFUSED_STREAM))?;
            }
        });
        let mut options = defaults();
        options.retry.max = 0;
        assert_eq!(driver.get(&Client::new(), &peer.url("/x"), &options).ok(), b"/x", "{driver:?}");
        assert_eq!((peer.connections(), peer.requests().len()), (2, 4), "{driver:?}");
    }
}

#[test]
fn refusing_for_ever_ends_it() {
    for driver in DRIVERS {
        let peer = FramePeer::start(|_, conn| {
            conn.greet(&[])?;
            loop {
                let asked = conn.request()?;
                conn.send(rst(asked.stream, REFUSED_STREAM))?;
            }
        });
        let got = driver.get(&Client::new(), &peer.url("/x"), &defaults());
        assert_eq!((got.exit, got.kind), (92, Some(ErrorKind::Http2Stream)), "{}", got.message);
        assert!(got.message.contains("REFUSED_STREAM"), "{}", got.message);
        assert!(peer.requests().len() <= 5, "{}", peer.requests().len());
    }
}

#[test]
fn a_reset_in_the_body_is_resumed_at_the_exact_byte() {
    for driver in DRIVERS {
        let all = body(100_000);
        let peer = FramePeer::start(move |_, conn| {
            conn.greet(&[])?;
            let asked = conn.request()?;
            send_from(conn, &asked, &all, 30_011)?;
            conn.send(rst(asked.stream, INTERNAL_ERROR))?;
            loop {
                let asked = conn.request()?;
                send_from(conn, &asked, &all, all.len())?;
            }
        });
        let got = driver.get(&Client::new(), &peer.url("/"), &knowing(retrying(1)));
        assert!(got.ok() == body(100_000), "{driver:?}");
        assert_eq!(ranges(&peer), [None, Some("bytes=30011-".into())]);
        assert_eq!(peer.requests()[1].get("if-range"), Some("\"v\""));
        assert_eq!((peer.connections(), got.facts.retries), (1, 1), "the connection is as good as before");
    }
}

#[test]
fn without_retries_the_prefix_is_delivered_and_the_code_says_what_broke() {
    for driver in DRIVERS {
        for (end, exit) in [(Some(INTERNAL_ERROR), 92), (Some(CANCEL), 92), (None, 18)] {
            let all = body(100_000);
            let peer = FramePeer::start(move |_, conn| {
                conn.greet(&[])?;
                let asked = conn.request()?;
                send_from(conn, &asked, &all, 30_011)?;
                if let Some(code) = end {
                    conn.send(rst(asked.stream, code))?;
                    return conn.drain();
                }
                conn.cut()
            });
            let got = driver.get(&Client::new(), &peer.url("/"), &defaults());
            assert_eq!(got.exit, exit, "{driver:?}, {end:?}: {}", got.message);
            assert!(got.body == body(30_011), "{driver:?}, {end:?}: {} bytes", got.body.len());
        }
    }
}

#[test]
fn a_send_that_fails_is_not_the_error_of_a_response_that_broke_off() {
    for ends in [true, false] {
        let (closed, is_closed) = mpsc::channel();
        let peer = FramePeer::start(move |_, conn| {
            conn.greet(&[])?;
            let asked = conn.request()?;
            conn.send(headers(asked.stream, false, &[(":status", "200")]))?;
            conn.wait(1);
            // The pings have to be answered, and nobody is there any more to take that.
            conn.send([ping([1; 8]), data(asked.stream, false, &body(30_011)), ping([2; 8])].concat())?;
            conn.send([data(asked.stream, ends, b"!"), ping([3; 8])].concat())?;
            conn.reset()?;
            closed.send(()).map_err(io::Error::other)
        });
        let client = Client::builder().options(|options| options.prior_knowledge = true).build();
        let mut response = client.get(&peer.url("/")).send().expect("a head");
        // The program takes its time.
        peer.release();
        is_closed.recv().expect("the peer has reset the connection");
        let mut got = Vec::new();
        let outcome = response.read_to_end(&mut got);
        assert!(got == [&body(30_011)[..], b"!"].concat(), "{} bytes, {outcome:?}", got.len());
        assert_eq!(outcome.is_ok(), ends, "{outcome:?}");
        if let Err(error) = outcome {
            let inner = error.get_ref().and_then(|error| error.downcast_ref::<haul::Error>()).expect("haul's");
            assert!(matches!(inner.exit_code(), 18 | 56), "{inner}");
        }
    }
}

#[test]
fn a_lost_connection_is_resumed_on_another() {
    for driver in DRIVERS {
        let all = body(100_000);
        let peer = FramePeer::start(move |number, conn| {
            conn.greet(&[])?;
            let asked = conn.request()?;
            send_from(conn, &asked, &all, [30_011, 70_007, all.len()][number.min(2)])?;
            if number < 2 { conn.cut() } else { conn.drain() }
        });
        let got = driver.get(&Client::new(), &peer.url("/"), &knowing(retrying(2)));
        assert!(got.ok() == body(100_000), "{driver:?}");
        assert_eq!(ranges(&peer), [None, Some("bytes=30011-".into()), Some("bytes=70007-".into())]);
        assert_eq!(peer.connections(), 3);
    }
}

#[test]
fn a_connection_that_breaks_gives_all_its_transfers_back() {
    let all = body(50_000);
    let peer = FramePeer::start(move |number, conn| {
        conn.greet(&[])?;
        if number == 0 {
            let asked: Vec<_> = (0..5).map(|_| conn.request()).collect::<io::Result<_>>()?;
            for (n, asked) in asked.iter().enumerate() {
                send_from(conn, asked, &all, 1 + n * 9_000)?;
            }
            return conn.cut();
        }
        loop {
            let asked = conn.request()?;
            send_from(conn, &asked, &all, all.len())?;
        }
    });
    let urls = (0..5).map(|n| peer.url(&format!("/{n}")));
    let run = run(&Client::new(), fetching(&knowing(retrying(1))), one_thread(), urls);
    assert!(run.output == body(50_000).repeat(5), "{:?}", run.exits());
    assert_eq!((peer.connections(), peer.requests().len()), (2, 10));
}

#[test]
fn a_connection_closed_while_idle_costs_no_retry() {
    for driver in DRIVERS {
        let peer = FramePeer::start(|_, conn| {
            conn.greet(&[])?;
            let asked = conn.request()?;
            answer(conn, &asked)
        });
        let client = Client::new();
        for n in 0..4 {
            let got = driver.get(&client, &peer.url(&format!("/{n}")), &defaults());
            assert_eq!(got.ok(), format!("/{n}").as_bytes(), "{driver:?}");
        }
    }
}

#[test]
fn what_a_kept_connection_lost_is_sent_again_where_that_may_be() {
    for driver in DRIVERS {
        for (method, any_method, exit) in [("GET", false, 0), ("POST", false, 52), ("POST", true, 52)] {
            let peer = FramePeer::start(|number, conn| {
                conn.greet(&[])?;
                let asked = conn.request()?;
                answer(conn, &asked)?;
                if number == 0 {
                    // The second request is read, and then nothing comes.
                    conn.request()?;
                    return conn.cut();
                }
                conn.drain()
            });
            let client = Client::new();
            assert_eq!(driver.get(&client, &peer.url("/1"), &defaults()).ok(), b"/1");
            let mut options = RequestOptions { method: method.into(), ..defaults() };
            (options.retry.max, options.retry.any_method) = (0, any_method);
            let got = driver.get(&client, &peer.url("/2"), &options);
            assert_eq!(got.exit, exit, "{driver:?} {method} {any_method}: {}", got.message);
            assert_eq!(peer.connections(), if exit == 0 { 2 } else { 1 }, "{driver:?} {method} {any_method}");
        }
    }
}

#[test]
fn a_connection_that_closes_at_once_is_an_empty_reply() {
    for driver in DRIVERS {
        let peer = FramePeer::start(|_, conn| {
            conn.greet(&[])?;
            conn.request()?;
            conn.cut()
        });
        let got = driver.get(&Client::new(), &peer.url("/"), &defaults());
        assert_eq!((got.exit, got.body.len()), (52, 0), "{driver:?}: {}", got.message);
        assert_eq!(peer.requests().len(), 1);
    }
}

#[test]
fn interim_responses_are_passed_over() {
    for driver in DRIVERS {
        let peer = FramePeer::start(|_, conn| {
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

#[test]
fn an_answer_before_the_uploads_end_is_an_answer() {
    for driver in DRIVERS {
        let peer = FramePeer::start(|_, conn| {
            conn.greet(&[])?;
            let asked = conn.request()?;
            conn.send(headers(asked.stream, false, &[(":status", "413"), ("content-length", "4")]))?;
            conn.send(data(asked.stream, true, b"much"))?;
            conn.send(rst(asked.stream, 0))?;
            conn.drain()
        });
        let mut options = defaults();
        options.method = "POST".into();
        // More than the window: without the answer it would wait for ever.
        options.body = Some(vec![b'x'; 1_000_000].into());
        let got = driver.get(&Client::new(), &peer.url("/x"), &options);
        assert_eq!((got.exit, got.status, got.body.as_slice()), (0, 413, &b"much"[..]), "{driver:?}: {}", got.message);
    }
}

/// Bodies leave whole, as they are completed, and memory is used up: one has the output to itself, and everything waits for it.
/// It breaks off. What waits for room comes before it in the input, and yet it is that one which is to be sent first.
#[test]
fn a_body_that_has_the_output_to_itself_is_asked_for_again_before_others() {
    let peer = FramePeer::start(|_, conn| {
        conn.greet(&[(3, 2)])?;
        let warm_up = conn.request()?;
        answer(conn, &warm_up)?;
        let (first, held) = (conn.request()?, conn.request()?);
        assert_eq!((first.path(), held.path()), ("/first", "/held"));
        conn.send(rst(first.stream, INTERNAL_ERROR))?;
        let broken = conn.request()?;
        assert_eq!(broken.path(), "/broken");
        send_from(conn, &broken, &body(900), 300)?;
        // It has dealt with all before when it answers.
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
    let (client, options) = (Client::new(), knowing(retrying(3)));
    // From then on the connection is known to take two requests at once.
    run(&client, fetching(&options), one_thread(), [peer.url("/warm-up")]);
    let way = haul::fleet::FleetOptions { unordered: true, max_memory: 1, ..one_thread() };
    let urls = ["/first", "/held", "/broken"].map(|path| peer.url(path));
    let run = run(&client, fetching(&options), way, urls);
    assert_eq!(peer.connections(), 1);
    assert_eq!(run.exits().into_iter().map(|(_, exit)| exit).collect::<Vec<_>>(), [0; 3]);
    assert_eq!(run.output, [&body(900)[..], &[b'h'; 200], b"/first"].concat());
}

/// A connection ends in the midst of one response and before another: the other has nothing in part (it was 18), and is asked for
/// again.
#[test]
fn what_has_no_response_yet_is_asked_for_again_when_others_break_off() {
    let serve = |number: usize, conn: &mut Conn| {
        conn.greet(&[])?;
        if number > 0 {
            return answer_all(conn);
        }
        let (begun, _not_begun) = (conn.request()?, conn.request()?);
        conn.send(headers(begun.stream, false, &[(":status", "200"), ("content-length", "6")]))?;
        conn.send(data(begun.stream, false, b"/beg"))
    };
    let urls = |peer: &FramePeer| ["/begun", "/other"].map(|path| peer.url(path));
    let peer = FramePeer::start(serve);
    let all = run(&Client::new(), fetching(&knowing(retrying(1))), one_thread(), urls(&peer));
    let exits: Vec<_> = all.exits().into_iter().map(|(_, exit)| exit).collect();
    // Of the first a part was printed, and nothing says that the rest would be of the same content.
    assert_eq!((exits, all.output.as_slice()), (vec![18, 0], &b"/beg/other"[..]));

    let peer = FramePeer::start(serve);
    let all = run(&Client::new(), fetching(&knowing(retrying(0))), one_thread(), urls(&peer));
    let exits: Vec<_> = all.exits().into_iter().map(|(_, exit)| exit).collect();
    assert_eq!(exits, [18, 52]);
}

#[test]
fn time_limits_end_their_own_stream_only() {
    let mut late = defaults();
    late.max_time = Some(Duration::from_secs(2));
    let mut slow = defaults();
    slow.speed_limit = Some(SpeedLimit { bytes_per_second: 1000, time: Duration::from_secs(1) });
    for options in [late, slow] {
        let peer = FramePeer::start(|_, conn| {
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
        let run = run(&Client::new(), fetching(&options), one_thread(), urls);
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
fn a_rate_holds_for_each_transfer() {
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
    let run = run(&Client::new(), fetching(&options), one_thread(), urls);
    let expected: Vec<u8> = (0..3).flat_map(|n| origin.pattern().slice(0, 600_000 + n)).collect();
    assert!(run.output == expected);
}

#[test]
fn a_full_output_stops_its_own_stream_only() {
    let origin = http2_origin(100);
    let dir = tempfile::tempdir().unwrap();
    let paths: Vec<_> = (0..5).map(|n| dir.path().join(n.to_string())).collect();
    let mut items = vec![Ok(item(origin.url("/bytes/30000000")))];
    items.extend(paths.iter().map(|path| {
        let destination = Destination::File { path: path.clone(), options: FileOptions::default() };
        Ok(Item { url: origin.url("/bytes/3000000"), destination })
    }));
    let watched = paths.clone();
    let run = run_reading(
        &Client::new(),
        fetching(&defaults()),
        one_thread(),
        Box::new(items.into_iter()),
        move |mut pipe| {
            // Nothing is read before the others are whole.
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
fn a_response_in_one_record_of_many_frames_and_one_in_single_bytes() {
    for driver in DRIVERS {
        for size in [1, 7, 1 << 20] {
            let peer = FramePeer::start(move |_, conn| {
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
fn padding_is_no_body() {
    let peer = FramePeer::start(|_, conn| {
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
    assert_eq!(Driver::Blocking.get(&Client::new(), &peer.url("/"), &defaults()).ok(), b"hello");
}

/// A server that wants no more of a request than it has answered says so by RST_STREAM (RFC 9113 section 8.1).
#[test]
fn a_success_that_comes_early_does_not_end_its_request() {
    const LEN: usize = 2 << 20;
    for driver in DRIVERS {
        for (code, exit) in [(None, 0), (Some(0), 0), (Some(CANCEL), 92)] {
            let (sender, came) = mpsc::channel();
            let sender = Mutex::new(sender);
            let peer = FramePeer::start(move |_, conn| {
                conn.greet(&[])?;
                let asked = conn.request()?;
                conn.send(headers(asked.stream, false, &[(":status", "200")]))?;
                conn.send(data(asked.stream, true, b"early"))?;
                if let Some(code) = code {
                    conn.send(rst(asked.stream, code))?;
                    return conn.drain();
                }
                conn.send([window_update(0, LEN as u32), window_update(asked.stream, LEN as u32)].concat())?;
                let mut bytes = 0;
                loop {
                    let frame = conn.frame_of(Frame::DATA)?;
                    bytes += frame.payload.len();
                    if frame.flags & Frame::END_STREAM != 0 {
                        sender.lock().unwrap().send(bytes).unwrap();
                        return conn.drain();
                    }
                }
            });
            let body = Some(vec![b'x'; LEN].into());
            let options = RequestOptions { method: "PUT".into(), body, ..defaults() };
            let got = driver.get(&Client::new(), &peer.url("/"), &options);
            assert_eq!((got.exit, &got.body[..]), (exit, &b"early"[..]), "{driver:?} {code:?} {}", got.message);
            if code.is_none() {
                assert_eq!(came.recv_timeout(PATIENCE), Ok(LEN), "{driver:?}");
            }
        }
    }
}
