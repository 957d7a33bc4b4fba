//! Tests of HTTP/2 connections and streams that end early: unprocessed requests are sent again,
//! bodies resume at the exact byte, and other streams continue.

use crate::common;
use crate::support::http2_replies;

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::sync::{Mutex, mpsc};
use std::thread;
use std::time::Duration;

use common::{
    DRIVERS, TEST_TIMEOUT, one_thread, retrying, run, single_stage, trusting_ca, with_h2_alpn, with_prior_knowledge,
};
use haul::fleet::FleetOptions;
use haul::{Client, ErrorKind, ProtocolVersion, RequestOptions};
use http2_replies::{
    CANCEL, ENHANCE_YOUR_CALM, HTTP_1_1_REQUIRED, INTERNAL_ERROR, MAX_CONCURRENT_STREAMS, REFUSED_STREAM, answer,
    answer_all, body, defaults, send_from,
};
use testkit::frames::{
    Frame, H2Peer, H2ScriptConnection, data, goaway, headers, ping, rst, settings, settings_ack, window_update,
};
use testkit::test_certificates::TestCertificates;

fn ranges(peer: &H2Peer) -> Vec<Option<String>> {
    peer.requests().iter().map(|asked| asked.get("range").map(str::to_owned)).collect()
}

#[test]
fn goaway_resends_only_streams_after_last_stream_id() {
    let peer = H2Peer::start(|number, conn| {
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
    let run = run(&Client::new(), single_stage(&defaults()), one_thread(), (0..4).map(|n| peer.url(&format!("/{n}"))));
    assert_eq!(run.output, b"/0/1/2/3");
    assert_eq!(peer.connections(), 2);
    let mut times = BTreeMap::new();
    for asked in peer.requests() {
        *times.entry(asked.path().to_owned()).or_insert(0) += 1;
    }
    let times: Vec<_> = times.iter().map(|(path, times)| (path.as_str(), *times)).collect();
    assert_eq!(times, [("/0", 1), ("/1", 1), ("/2", 2), ("/3", 2)]);
}

/// Checks that all URLs are fetched from servers like nginx with `keepalive_timeout 0` or a small
/// `keepalive_requests`, and from a server that announces a low stream limit late.
#[test]
fn one_request_per_connection_server_serves_all() {
    const ALL: usize = 12;
    for refuses in [false, true] {
        let peer = H2Peer::start(move |number, conn| {
            conn.preface()?;
            conn.next_frame()?;
            // Only the first connection receives more requests than it serves.
            let offered = if number == 0 { ALL } else { 1 };
            let asked: Vec<_> = (0..offered).map(|_| conn.request()).collect::<io::Result<_>>()?;
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
        let run = run(&Client::new(), single_stage(&options), one_thread(), urls);
        assert_eq!(String::from_utf8_lossy(&run.output), "/0/1/2/3/4/5/6/7/8/9/10/11", "{refuses}");
        assert_eq!((peer.connections(), peer.requests().len()), (ALL, 2 * ALL - 1), "{refuses}");
    }
}

#[test]
fn goaway_error_code_is_reported() {
    for driver in DRIVERS {
        let peer = H2Peer::start(|_, conn| {
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
fn http_1_1_required_falls_back_to_http1() {
    for driver in DRIVERS {
        let identity = TestCertificates::for_names(&["localhost"]);
        let peer = H2Peer::start_tls(&identity, |number, conn| {
            if number > 0 {
                conn.send("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nold\n")?;
                return conn.drain();
            }
            conn.greet(&[])?;
            let asked = conn.request()?;
            conn.send(rst(asked.stream, HTTP_1_1_REQUIRED))?;
            conn.drain()
        });
        let (mut options, _ca) = trusting_ca(identity.ca_pem());
        options.method = "POST".into();
        options.retry.max = 0;
        let client = Client::new();
        let got = driver.get(&client, &peer.https_url("/"), &with_h2_alpn(options.clone()));
        assert_eq!((got.ok(), got.facts.version), (&b"old\n"[..], Some(ProtocolVersion::Http11)), "{driver:?}");
        assert_eq!((got.facts.retries, peer.connections()), (0, 2));
    }
}

#[test]
fn goaway_moves_queued_requests_to_another_connection() {
    // One stream at a time, so the others wait for the connection. It goes away, but its first
    // response ends only after the others have arrived elsewhere.
    let peer = H2Peer::start(|number, conn| {
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
        // Only the paths matter, not their distribution over connections.
        while !(1..4)
            .all(|n| watched.requests().iter().any(|asked| asked.path() == format!("/{n}") && asked.connection > 0))
        {
            thread::sleep(Duration::from_millis(5));
        }
        watched.release();
    });
    let mut options = defaults();
    options.max_time = Some(Duration::from_secs(20));
    let run = run(&Client::new(), single_stage(&options), one_thread(), (0..4).map(|n| peer.url(&format!("/{n}"))));
    assert_eq!(String::from_utf8_lossy(&run.output), "late/1/2/3");
    watching.join().unwrap();
}

#[test]
fn graceful_goaway_without_last_stream_loses_nothing() {
    // Graceful shutdown: a GOAWAY with the highest number, then the end of the connection after the
    // last response.
    let peer = H2Peer::start(|_, conn| {
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
fn refused_stream_is_resent_for_any_method() {
    for driver in DRIVERS {
        // The connection ends after the refusal, or when the next request arrives.
        for reads in [0, 1, 2] {
            let peer = H2Peer::start(move |number, conn| {
                conn.greet(&[])?;
                if number > 0 {
                    return answer_all(conn);
                }
                let first = conn.request()?;
                conn.send(rst(first.stream, REFUSED_STREAM))?;
                match reads {
                    0 => Ok(()),
                    1 => conn.request().map(drop),
                    _ => answer_all(conn),
                }
            });
            let mut options = defaults();
            options.method = "POST".into();
            options.body = Some(b"once"[..].into());
            options.retry.max = 0;
            assert_eq!(driver.get(&Client::new(), &peer.url("/x"), &options).ok(), b"/x", "{driver:?}, {reads}");
            assert_eq!((peer.connections(), peer.requests().len()), (2, 2), "{driver:?}, {reads}");
        }
    }
}

#[test]
fn connection_refusing_its_only_request_is_replaced() {
    for driver in DRIVERS {
        let peer = H2Peer::start(|number, conn| {
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
        assert_eq!((peer.connections(), peer.requests().len()), (2, 2), "{driver:?}");
    }
}

#[test]
fn repeatedly_refused_request_moves_to_another_connection() {
    let (tell, told) = mpsc::channel();
    let (tell, told) = (Mutex::new(tell), Mutex::new(told));
    let peer = H2Peer::start(move |number, conn| {
        conn.greet(&[])?;
        if number > 0 {
            let asked = conn.request()?;
            tell.lock().unwrap().send(()).unwrap();
            return answer(conn, &asked);
        }
        let first = conn.request()?;
        // The first refusal counts for nothing, because the request left before the limit was
        // known.
        for _ in 0..4 {
            let asked = conn.request()?;
            conn.send(rst(asked.stream, REFUSED_STREAM))?;
        }
        told.lock().unwrap().recv_timeout(TEST_TIMEOUT).map_err(io::Error::other)?;
        answer(conn, &first)
    });
    let urls = ["/0", "/1"].map(|path| peer.url(path));
    let mut options = defaults();
    options.retry.max = 0;
    let run = run(&Client::new(), single_stage(&options), one_thread(), urls);
    assert_eq!(String::from_utf8_lossy(&run.output), "/0/1", "{:?}", run.exits());
    assert_eq!(peer.connections(), 2);
}

#[test]
fn requests_move_from_connection_without_streams() {
    let peer = H2Peer::start(|number, conn| {
        conn.greet(&[(MAX_CONCURRENT_STREAMS, 1)])?;
        if number > 0 {
            return answer_all(conn);
        }
        let first = conn.request()?;
        conn.send(settings(&[(MAX_CONCURRENT_STREAMS, 0)]))?;
        answer(conn, &first)?;
        conn.drain()
    });
    let urls = (0..3).map(|n| peer.url(&format!("/{n}")));
    let one_at_a_time = FleetOptions { parallel: 1, ..one_thread() };
    let run = run(&Client::new(), single_stage(&defaults()), one_at_a_time, urls);
    assert_eq!(String::from_utf8_lossy(&run.output), "/0/1/2", "{:?}", run.exits());
    assert_eq!(peer.connections(), 2);
}

#[test]
fn connection_that_never_allows_streams_is_an_error() {
    let peer = H2Peer::start(|_, conn| {
        conn.greet(&[(MAX_CONCURRENT_STREAMS, 0)])?;
        loop {
            let asked = conn.request()?;
            conn.send(rst(asked.stream, REFUSED_STREAM))?;
        }
    });
    let mut options = defaults();
    options.retry.max = 0;
    let urls = (0..3).map(|n| peer.url(&format!("/{n}")));
    let run = run(&Client::new(), single_stage(&options), one_thread(), urls);
    let exits = run.exits();
    assert!(exits.len() == 3 && exits.iter().all(|(_, exit)| [16, 92].contains(exit)), "{exits:?}");
    assert!(peer.requests().len() <= 12, "{} requests", peer.requests().len());
}

#[test]
fn endlessly_refused_streams_end_with_an_error() {
    for driver in DRIVERS {
        let peer = H2Peer::start(|_, conn| {
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
fn body_resumes_after_stream_reset_at_exact_byte() {
    for driver in DRIVERS {
        let all = body(100_000);
        let peer = H2Peer::start(move |_, conn| {
            conn.greet(&[])?;
            let asked = conn.request()?;
            send_from(conn, &asked, &all, 30_011)?;
            conn.send(rst(asked.stream, INTERNAL_ERROR))?;
            loop {
                let asked = conn.request()?;
                send_from(conn, &asked, &all, all.len())?;
            }
        });
        let got = driver.get(&Client::new(), &peer.url("/"), &with_prior_knowledge(retrying(1)));
        assert!(got.ok() == body(100_000), "{driver:?}");
        assert_eq!(ranges(&peer), [None, Some("bytes=30011-".into())]);
        assert_eq!(peer.requests()[1].get("if-range"), Some("\"v\""));
        assert_eq!((peer.connections(), got.facts.retries), (1, 1), "the connection is as good as before");
    }
}

#[test]
fn broken_stream_without_retries_delivers_exact_prefix() {
    for driver in DRIVERS {
        for (end, exit) in [(Some(INTERNAL_ERROR), 92), (Some(CANCEL), 92), (None, 18)] {
            let all = body(100_000);
            let peer = H2Peer::start(move |_, conn| {
                conn.greet(&[])?;
                let asked = conn.request()?;
                send_from(conn, &asked, &all, 30_011)?;
                if let Some(code) = end {
                    conn.send(rst(asked.stream, code))?;
                    return conn.drain();
                }
                conn.close_without_notify()
            });
            let got = driver.get(&Client::new(), &peer.url("/"), &defaults());
            assert_eq!(got.exit, exit, "{driver:?}, {end:?}: {}", got.message);
            assert!(got.body == body(30_011), "{driver:?}, {end:?}: {} bytes", got.body.len());
        }
    }
}

#[test]
fn failed_send_does_not_hide_response_truncation() {
    for ends in [true, false] {
        let (closed, is_closed) = mpsc::channel();
        let peer = H2Peer::start(move |_, conn| {
            conn.greet(&[])?;
            let asked = conn.request()?;
            conn.send(headers(asked.stream, false, &[(":status", "200")]))?;
            conn.wait(1);
            // The pings require answers, which the closed peer cannot receive.
            conn.send([ping([1; 8]), data(asked.stream, false, &body(30_011)), ping([2; 8])].concat())?;
            conn.send([data(asked.stream, ends, b"!"), ping([3; 8])].concat())?;
            conn.reset()?;
            closed.send(()).map_err(io::Error::other)
        });
        let client = Client::builder().options(|options| options.prior_knowledge = true).build();
        let mut response = client.get(&peer.url("/")).send().expect("a head");
        // The program reads late.
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
fn body_resumes_on_a_new_connection() {
    for driver in DRIVERS {
        let all = body(100_000);
        let peer = H2Peer::start(move |number, conn| {
            conn.greet(&[])?;
            let asked = conn.request()?;
            send_from(conn, &asked, &all, [30_011, 70_007, all.len()][number.min(2)])?;
            if number < 2 { conn.close_without_notify() } else { conn.drain() }
        });
        let got = driver.get(&Client::new(), &peer.url("/"), &with_prior_knowledge(retrying(2)));
        assert!(got.ok() == body(100_000), "{driver:?}");
        assert_eq!(ranges(&peer), [None, Some("bytes=30011-".into()), Some("bytes=70007-".into())]);
        assert_eq!(peer.connections(), 3);
    }
}

#[test]
fn broken_connection_resumes_all_its_http2_streams() {
    let all = body(50_000);
    let peer = H2Peer::start(move |number, conn| {
        conn.greet(&[])?;
        if number == 0 {
            let asked: Vec<_> = (0..5).map(|_| conn.request()).collect::<io::Result<_>>()?;
            for (n, asked) in asked.iter().enumerate() {
                send_from(conn, asked, &all, 1 + n * 9_000)?;
            }
            return conn.close_without_notify();
        }
        loop {
            let asked = conn.request()?;
            send_from(conn, &asked, &all, all.len())?;
        }
    });
    let urls = (0..5).map(|n| peer.url(&format!("/{n}")));
    let run = run(&Client::new(), single_stage(&with_prior_knowledge(retrying(1))), one_thread(), urls);
    assert!(run.output == body(50_000).repeat(5), "{:?}", run.exits());
    assert_eq!((peer.connections(), peer.requests().len()), (2, 10));
}

#[test]
fn connection_closed_while_idle_costs_no_retry() {
    for driver in DRIVERS {
        let peer = H2Peer::start(|_, conn| {
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
fn idempotent_request_lost_on_reuse_is_resent() {
    for driver in DRIVERS {
        for (method, any_method, exit) in [("GET", false, 0), ("POST", false, 52), ("POST", true, 52)] {
            let peer = H2Peer::start(|number, conn| {
                conn.greet(&[])?;
                let asked = conn.request()?;
                answer(conn, &asked)?;
                if number == 0 {
                    // The server reads the second request and closes.
                    conn.request()?;
                    return conn.close_without_notify();
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
fn http2_close_before_response_is_empty_reply_error() {
    for driver in DRIVERS {
        let peer = H2Peer::start(|_, conn| {
            conn.greet(&[])?;
            conn.request()?;
            conn.close_without_notify()
        });
        let got = driver.get(&Client::new(), &peer.url("/"), &defaults());
        assert_eq!((got.exit, got.body.len()), (52, 0), "{driver:?}: {}", got.message);
        assert_eq!(peer.requests().len(), 1);
    }
}

#[test]
fn response_before_upload_end_is_delivered() {
    for driver in DRIVERS {
        let peer = H2Peer::start(|_, conn| {
            conn.greet(&[])?;
            let asked = conn.request()?;
            conn.send(headers(asked.stream, false, &[(":status", "413"), ("content-length", "4")]))?;
            conn.send(data(asked.stream, true, b"much"))?;
            conn.send(rst(asked.stream, 0))?;
            conn.drain()
        });
        let mut options = defaults();
        options.method = "POST".into();
        // A body larger than the window: without the response it would wait for ever.
        options.body = Some(vec![b'x'; 1_000_000].into());
        let got = driver.get(&Client::new(), &peer.url("/x"), &options);
        assert_eq!((got.exit, got.status, got.body.as_slice()), (0, 413, &b"much"[..]), "{driver:?}: {}", got.message);
    }
}

/// Sends two requests on a connection that the server closes in the middle of one response and
/// before the other response. Checks that the request without a response is sent again, and does
/// not fail with exit code 18.
#[test]
fn request_without_response_is_resent_after_connection_loss() {
    let serve = |number: usize, conn: &mut H2ScriptConnection| {
        conn.greet(&[])?;
        if number > 0 {
            return answer_all(conn);
        }
        let (begun, _not_begun) = (conn.request()?, conn.request()?);
        conn.send(headers(begun.stream, false, &[(":status", "200"), ("content-length", "6")]))?;
        conn.send(data(begun.stream, false, b"/beg"))
    };
    let urls = |peer: &H2Peer| ["/begun", "/other"].map(|path| peer.url(path));
    let peer = H2Peer::start(serve);
    let all = run(&Client::new(), single_stage(&with_prior_knowledge(retrying(1))), one_thread(), urls(&peer));
    let exits: Vec<_> = all.exits().into_iter().map(|(_, exit)| exit).collect();
    // A part of the first was printed, and no validator proves the rest to be of the same content.
    assert_eq!((exits, all.output.as_slice()), (vec![18, 0], &b"/beg/other"[..]));

    let peer = H2Peer::start(serve);
    let all = run(&Client::new(), single_stage(&with_prior_knowledge(retrying(0))), one_thread(), urls(&peer));
    let exits: Vec<_> = all.exits().into_iter().map(|(_, exit)| exit).collect();
    assert_eq!(exits, [18, 52]);
}

/// Checks uploads to servers that send a successful response before they have read the whole body.
/// Such a server may end the upload by RST_STREAM with NO_ERROR (RFC 9113 section 8.1); the
/// response is then a success. Without RST_STREAM, the upload continues to its end.
#[test]
fn early_success_does_not_stop_the_upload() {
    const LEN: usize = 2 << 20;
    for driver in DRIVERS {
        for (code, exit) in [(None, 0), (Some(0), 0), (Some(CANCEL), 92)] {
            let (sender, came) = mpsc::channel();
            let sender = Mutex::new(sender);
            let peer = H2Peer::start(move |_, conn| {
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
            assert_eq!(got.message.contains("before it had all of the request"), exit != 0, "{}", got.message);
            if code.is_none() {
                assert_eq!(came.recv_timeout(TEST_TIMEOUT), Ok(LEN), "{driver:?}");
            }
        }
    }
}
