//! Tests of the blocking response API: reading, metadata, reuse of connections, errors.

use crate::common;

use std::io::{BufRead, Cursor, Read};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use common::{http2_origin, start_origin, trusting_ca, with_time_limit};
use haul::body::request_trailers::Trailers;
use haul::interrupt_callback::InterruptCallback;
use haul::net::pool::PoolLimits;
use haul::request::MultipartForm;
use haul::state::cookie_jar::SharedCookieJar;
use haul::trace::{Milestone, TraceEvent, TransferObserver};
use haul::{Client, ErrorKind, RequestOptions};
use testkit::h1_peer::{H1Peer, ScriptStep};

fn trusted_client(origin: &testkit::origin::Origin) -> (Client, tempfile::NamedTempFile) {
    let (trusted, ca) = trusting_ca(origin.ca_pem());
    (Client::builder().options(|options| options.tls = trusted.tls).build(), ca)
}

#[test]
fn range_request_offers_no_coding_and_is_undecoded() {
    with_time_limit("parts", || {
        let reply = "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 5-9/100\r\nContent-Encoding: gzip\r\n\
                     Content-Length: 5\r\n\r\n\x01\x02\x03\x04\x05";
        let peer = H1Peer::always(vec![ScriptStep::ReadHead, ScriptStep::send(reply)]);
        let client = Client::new();
        let get = || client.get(&peer.url("/"));
        let ways = [get().header("range", "bytes=5-9"), get().options(|options| options.range = Some("5-9".into()))];
        for (i, request) in ways.into_iter().enumerate() {
            let response = request.send().unwrap();
            assert_eq!((response.status(), response.header("content-encoding")), (206, Some("gzip")));
            assert_eq!(response.bytes().unwrap(), [1, 2, 3, 4, 5]);
            let asked = String::from_utf8(peer.received(i)).unwrap();
            assert!(asked.contains("ange: bytes=5-9\r\n") && !asked.contains("Accept-Encoding"), "{asked}");
        }
        // As curl does, whose exit code programs check.
        let request = get()
            .header("Range", "bytes=5-9")
            .options(|options| options.curl_compat.strict_content_coding = true)
            .build()
            .unwrap();
        let error = client.call(request).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ContentCoding, "{error}");
        assert!(peer.saw(2, b"Accept-Encoding: "));
    });
}

#[test]
fn unknown_content_coding_is_delivered_undecoded() {
    with_time_limit("unknown codings", || {
        for coding in ["aws-chunked", "utf-8", "gzip, x-y"] {
            let head = format!("HTTP/1.1 404 Not Found\r\nContent-Encoding: {coding}\r\nContent-Length: 5\r\n\r\n");
            let peer = H1Peer::always(vec![ScriptStep::ReadHead, ScriptStep::send(head + "hello")]);
            let client = Client::new();
            let get = || client.get(&peer.url("/"));
            let response = get().send().unwrap();
            assert_eq!((response.status(), response.header("content-encoding")), (404, Some(coding)));
            assert_eq!(response.text().unwrap(), "hello");
            assert_eq!(client.call(get().build().unwrap()).unwrap().body, b"hello");
            let error = get().options(|options| options.curl_compat.strict_content_coding = true).send().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::ContentCoding, "{error}");
        }
    });
}

/// Checks that public types are `Send` and `Sync`, since callers depend on that.
#[test]
fn public_types_are_send_and_sync() {
    fn anywhere<T: Send + Sync + 'static>() {}
    fn moves<T: Send + 'static>() {}
    anywhere::<Client>();
    anywhere::<haul::ClientBuilder>();
    anywhere::<haul::Request>();
    anywhere::<RequestOptions>();
    anywhere::<haul::BufferedResponse>();
    anywhere::<haul::Error>();
    anywhere::<haul::batch::Batch>();
    anywhere::<SharedCookieJar>();
    moves::<haul::RequestBuilder>();
    moves::<haul::Response>();
    anywhere::<haul::AsyncResponse>();
    moves::<haul::response::ResponseFuture>();
    moves::<MultipartForm>();
    let io: std::io::Error = haul::Error::new(ErrorKind::Timeout, "late").into();
    assert_eq!(io.kind(), std::io::ErrorKind::TimedOut);
    assert!(io.downcast::<haul::Error>().unwrap().is_timeout());
}

#[test]
fn every_read_method_returns_the_whole_body() {
    let origin = start_origin();
    let (client, _ca) = trusted_client(&origin);
    with_time_limit("bodies", move || {
        for size in [0usize, 1, 4095, 100_000, 335_114, 3_000_000] {
            let content = origin.pattern().slice(0, size);
            for path in ["bytes", "chunked", "close"] {
                for base in [origin.url(&format!("/{path}/{size}")), origin.https_url(&format!("/{path}/{size}"))] {
                    let get = || client.get(&base).send().unwrap();
                    assert!(get().bytes().unwrap() == content, "{base}");
                    let mut copied = Vec::new();
                    assert_eq!(get().copy_to(&mut copied).unwrap() as usize, size);
                    assert!(copied == content, "{base}");
                    for step in [1000, 70_000] {
                        let mut response = get();
                        let (mut got, mut piece) = (Vec::new(), vec![0; step]);
                        loop {
                            match response.read(&mut piece).unwrap() {
                                0 => break,
                                n => got.extend_from_slice(&piece[..n]),
                            }
                        }
                        assert!(got == content, "{base} {step}");
                        assert_eq!(response.read(&mut piece).unwrap(), 0, "the end stays the end");
                        assert_eq!(response.facts().body_bytes as usize, size);
                    }
                    // The first bytes by one method, the rest by another.
                    let mut response = get();
                    let mut first = vec![0; size.min(777)];
                    response.read_exact(&mut first).unwrap();
                    first.extend(response.bytes().unwrap());
                    assert!(first == content, "{base}");
                }
            }
        }
    });
}

#[test]
fn http2_bodies_arrive_whole() {
    let origin = http2_origin(10);
    let (trusted, _ca) = trusting_ca(origin.ca_pem());
    let client = Client::builder()
        .options(|options| {
            options.tls = trusted.tls;
            options.tls.alpn = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        })
        .build();
    with_time_limit("bodies", move || {
        for size in [0usize, 1, 335_114, 20_000_000] {
            let mut response = client.get(&origin.https_url(&format!("/bytes/{size}"))).send().unwrap();
            assert_eq!(response.version(), haul::ProtocolVersion::Http2);
            let mut got = Vec::new();
            response.copy_to(&mut got).unwrap();
            assert!(got == origin.pattern().slice(0, size), "{size}");
        }
        assert_eq!(client.stats().totals().connections, 1);
    });
}

#[test]
fn decoding_while_reading_keeps_bombs_out_of_memory() {
    let origin = start_origin();
    let client = Client::new();
    with_time_limit("decoding", move || {
        let plain = client.get(&origin.url("/text/300000")).decode(false).send().unwrap().bytes().unwrap();
        for coding in ["gzip", "deflate", "br", "zstd"] {
            let response = client.get(&origin.url(&format!("/{coding}/300000"))).send().unwrap();
            assert!(response.head().get("content-encoding").is_some());
            assert!(response.bytes().unwrap() == plain, "{coding}");
            let coded = client.get(&origin.url(&format!("/{coding}/300000"))).decode(false).send().unwrap();
            assert!(coded.bytes().unwrap().len() < plain.len(), "{coding}");
        }
        let mut bomb = client
            .get(&origin.url("/bomb/64"))
            .options(|options| options.decode_limits.max_ratio = u64::MAX)
            .send()
            .unwrap();
        let (mut most, mut all) = (0, 0);
        loop {
            let n = bomb.fill_buf().unwrap().len();
            if n == 0 {
                break;
            }
            (most, all) = (most.max(n), all + n);
            bomb.consume(n);
        }
        assert_eq!(all, 64 << 20);
        assert!(most <= 5 << 20, "{most} bytes at once");
    });
}

#[test]
fn connection_is_reused_only_after_complete_read() {
    let origin = start_origin();
    let client = Client::new();
    with_time_limit("connections", move || {
        for _ in 0..5 {
            client.get(&origin.url("/bytes/300000")).send().unwrap().bytes().unwrap();
        }
        assert_eq!(client.stats().totals().connections, 1);
        let mut response = client.get(&origin.url("/bytes/30000000")).send().unwrap();
        response.read_exact(&mut [0; 1000]).unwrap();
        drop(response);
        client.get(&origin.url("/small")).send().unwrap().bytes().unwrap();
        assert_eq!((client.stats().totals().connections, origin.connections()), (2, 2));
    });
}

#[test]
fn pool_of_zero_connections_keeps_none() {
    let origin = start_origin();
    let client = Client::builder().pool(PoolLimits { connections: 0, ..PoolLimits::default() }).build();
    for _ in 0..3 {
        client.get(&origin.url("/small")).send().unwrap().bytes().unwrap();
    }
    assert_eq!(origin.connections(), 3);
}

#[test]
fn followed_redirects_appear_in_history() {
    let origin = start_origin();
    let client = Client::new();
    let response = client.get(&origin.url("/redirect/301?to=/redirect/302%3Fto=/small")).send().unwrap();
    let steps: Vec<_> =
        response.history().iter().map(|hop| (hop.head.status(), hop.target.path().to_owned())).collect();
    assert_eq!(steps, [(301, "/redirect/301".to_owned()), (302, "/redirect/302".to_owned())]);
    assert!(response.history()[0].head.get("location").is_some());
    assert_eq!((response.status(), response.url()), (200, origin.url("/small")));
    assert_eq!(response.text().unwrap(), "small\n");
    let left = client.get(&origin.url("/redirect/301?to=/small")).follow(false).send().unwrap();
    assert_eq!((left.status(), left.history().len()), (301, 0));
    let error = client.get(&origin.url("/chain/60")).send().unwrap_err();
    assert!(error.is_redirect() && error.url().is_some());
}

#[test]
fn error_for_status_makes_404_an_error() {
    let origin = start_origin();
    let client = Client::new();
    let response = client.get(&origin.url("/status/404")).send().unwrap();
    assert!(!response.is_success());
    let error = response.error_for_status().unwrap_err();
    assert_eq!((error.is_status(), error.exit_code()), (true, 22));
    assert_eq!(error.url(), Some(origin.url("/status/404").as_str()));
    assert!(client.get(&origin.url("/small")).send().unwrap().error_for_status().is_ok());
    // A response to HEAD has no body.
    let head = client.head(&origin.url("/bytes/1000")).send().unwrap();
    assert_eq!((head.content_length(), head.bytes().unwrap()), (Some(1000), Vec::new()));
}

#[test]
fn trailers_and_repeated_headers_are_available() {
    let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n";
    let peer = H1Peer::always(vec![
        ScriptStep::ReadHead,
        ScriptStep::send(head),
        ScriptStep::Await(1),
        ScriptStep::send("0\r\nX-Total: 1\r\n\r\n"),
    ]);
    let mut response = Client::new().get(&peer.url("/")).send().unwrap();
    assert!(response.trailers().is_none());
    peer.release();
    response.copy_to(&mut std::io::sink()).unwrap();
    assert_eq!(response.trailers().and_then(|fields| fields.get("x-total")), Some(&b"1"[..]));
    let reply = "HTTP/1.1 200 OK\r\nX-A: 1\r\nx-a: 2\r\nContent-Length: 0\r\n\r\n";
    let peer = H1Peer::always(vec![ScriptStep::ReadHead, ScriptStep::send(reply)]);
    let response = Client::new().get(&peer.url("/")).send().unwrap();
    assert_eq!(response.head().get_all("X-a").collect::<Vec<_>>(), [b"1", b"2"]);
    assert_eq!(response.header("X-A"), Some("1"));
}

#[test]
fn builder_settings_appear_in_the_request() {
    let origin = start_origin();
    let client =
        Client::builder().header("X-All", "all").header("X-Both", "client").jar(SharedCookieJar::new()).build();
    let url = origin.url("/echo");
    let seen = || origin.log().pop().unwrap();
    client.post(&url).query([("q", "a b"), ("r", "&")]).form([("n", "\u{e9} x")]).send().unwrap();
    assert_eq!((seen().target.as_str(), &seen().body[..]), ("/echo?q=a+b&r=%26", &b"n=%C3%A9+x"[..]));
    assert_eq!(seen().header("content-type"), Some("application/x-www-form-urlencoded"));
    client.put(&url).header("X-Both", "own").body_reader(Cursor::new(b"0123456789"), Some(10)).send().unwrap();
    assert_eq!((seen().header("content-length"), seen().header("x-all")), (Some("10"), Some("all")));
    assert_eq!((seen().header("x-both"), &seen().body[..]), (Some("own"), &b"0123456789"[..]));
    client.patch(&url).body_reader(Cursor::new(b"abc"), None).send().unwrap();
    assert_eq!((seen().header("transfer-encoding"), &seen().body[..]), (Some("chunked"), &b"abc"[..]));
    client.request("REPORT", &url).json(&[1, 2]).basic_auth("me", "pw").send().unwrap();
    assert_eq!((seen().method.as_str(), &seen().body[..]), ("REPORT", &b"[1,2]"[..]));
    assert_eq!(seen().header("authorization"), Some("Basic bWU6cHc="));
    let form =
        MultipartForm::new().text("a", "b").bytes("f", "x.txt", "the file").reader("r", "y", Cursor::new("read"));
    client.post(&url).bearer("tok").multipart(form).send().unwrap();
    assert!(seen().header("content-type").unwrap().starts_with("multipart/form-data; boundary="));
    assert!(String::from_utf8_lossy(&seen().body).contains("filename=\"y\""));
    assert_eq!(seen().header("authorization"), Some("Bearer tok"));
    let value: std::collections::HashMap<String, serde_json::Value> = client.get(&url).send().unwrap().json().unwrap();
    assert_eq!(value["method"], "GET");
    let error = client.get(&url).header("X", "a\r\nb: c").send().unwrap_err();
    assert!(error.is_setup(), "{error}");
}

#[test]
fn explicit_content_type_and_last_auth_take_effect() {
    let origin = start_origin();
    let client = Client::new();
    let url = origin.url("/echo");
    let seen = || {
        let seen = origin.log().pop().unwrap();
        let all = |name: &str| seen.headers.iter().filter(|(other, _)| other == name).map(|(_, v)| v.clone()).collect();
        let (types, names): (Vec<String>, Vec<String>) = (all("content-type"), all("authorization"));
        (types, names, seen.body.to_vec())
    };
    let typed = |request: haul::RequestBuilder| request.header("Content-Type", "application/x-own");
    for request in [typed(client.post(&url)).json(&[1]), typed(client.post(&url).json(&[1]))] {
        let copy = request.clone();
        copy.bearer("tok").basic_auth("me", "pw").send().unwrap();
        assert_eq!(seen(), (vec!["application/x-own".into()], vec!["Basic bWU6cHc=".into()], b"[1]".to_vec()));
        request.basic_auth("me", "pw").bearer("tok").send().unwrap();
        assert_eq!(seen().1, ["Bearer tok"]);
    }
    let (pairs, query) = (vec![("a".to_owned(), "1 2".to_owned())], vec![("q", "x")]);
    for request in [client.post(&url).form(&pairs), client.post(&url).form(pairs.clone())] {
        request.query(&query).send().unwrap();
        assert_eq!(seen().2, b"a=1+2");
    }
    let text = "text".to_owned();
    for request in [client.put(&url).body(&text), client.put(&url).body(text)] {
        request.send().unwrap();
        assert_eq!(seen().2, b"text");
    }
    for request in [client.put(url.clone()), client.put(&url), client.request(String::from("PUT"), url.as_str())] {
        request.body("by a URL of another type").send().unwrap();
        assert_eq!(seen().2, b"by a URL of another type");
    }
    client.put(&url).body(b"text").send().unwrap();
    assert_eq!(seen().2, b"text");
    let error = client.get(&origin.url("/status/404")).send().unwrap().error_for_status().unwrap_err();
    assert_eq!((error.status(), error.is_status()), (Some(404), true));
}

#[test]
fn request_trailers_are_computed_after_each_body() {
    let (origin, http2) = (start_origin(), http2_origin(10));
    let knowing = Client::builder().options(|options| options.prior_knowledge = true).build();
    let times = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&times);
    let trailers = Trailers::new(move || {
        let time = count.fetch_add(1, Ordering::Relaxed) + 1;
        Ok(vec![("X-Time".into(), time.to_string().into_bytes()), ("X-Sum".into(), b"a b".to_vec())])
    });
    for (client, url) in [(Client::new(), origin.url("/echo")), (knowing, http2.url("/echo"))] {
        let seen = || [&origin, &http2].iter().find_map(|origin| origin.log().pop()).unwrap();
        for (content, length) in [("0123456789", 10), ("", 0)] {
            origin.forget();
            http2.forget();
            times.store(0, Ordering::Relaxed);
            client.put(&url).body(content).trailers(trailers.clone()).send().unwrap().bytes().unwrap();
            let seen = seen();
            let wanted = [("x-time", "1"), ("x-sum", "a b")].map(|(name, value)| (name.to_owned(), value.to_owned()));
            assert_eq!((seen.body.len(), &seen.trailers[..]), (length, &wanted[..]), "{url}");
            assert_eq!(seen.header("content-length"), None);
        }
    }
    // A request sent again computes its trailers again; one without a body has none.
    for (status, method, made) in [(307, "PUT", 2), (303, "GET", 1)] {
        origin.forget();
        times.store(0, Ordering::Relaxed);
        let url = origin.url(&format!("/redirect/{status}?to=/echo"));
        Client::new().put(&url).body("x").trailers(trailers.clone()).send().unwrap();
        let last = origin.log().pop().unwrap();
        assert_eq!((last.method.as_str(), last.trailers.len()), (method, if made == 2 { 2 } else { 0 }));
        assert_eq!(times.load(Ordering::Relaxed), made);
    }
    for (name, value) in [("X-A", "1\r\nX-B: 2"), ("Content-Length", "3"), ("X A", "1")] {
        let bad = Trailers::new(move || Ok(vec![(name.to_owned(), value.into())]));
        let error = Client::new().put(&origin.url("/echo")).body("x").trailers(bad).send().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Read, "{name}: {error}");
    }
    let error = Client::new()
        .put(&origin.url("/echo"))
        .body("x")
        .header("Content-Length", "1")
        .trailers(trailers)
        .send()
        .unwrap_err();
    assert!(error.is_setup(), "{error}");
}

#[test]
fn redirect_to_another_host_drops_bearer_token() {
    let origin = start_origin();
    let to = origin.url("/echo").replace("127.0.0.1", "localhost");
    let client = Client::new();
    client.get(&origin.url(&format!("/redirect/302?to={to}"))).bearer("tok").header("X-Y", "z").send().unwrap();
    let seen = origin.log().pop().unwrap();
    assert_eq!((seen.header("authorization"), seen.header("x-y")), (None, Some("z")));
}

#[test]
fn bytes_received_before_a_failure_are_delivered_first() {
    for reply in [
        "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\nx",
    ] {
        let peer = H1Peer::always(vec![ScriptStep::ReadHead, ScriptStep::send(reply)]);
        let mut response = Client::new().get(&peer.url("/")).send().unwrap();
        let mut got = Vec::new();
        let error = response.read_to_end(&mut got).unwrap_err();
        assert_eq!(got, b"half");
        let inner = error.get_ref().and_then(|error| error.downcast_ref::<haul::Error>()).unwrap();
        assert!(inner.is_connection() && !inner.is_timeout(), "{inner}");
        assert!(Client::new().get(&peer.url("/")).send().unwrap().bytes().is_err());
    }
}

#[test]
fn timeouts_apply_before_and_within_a_body() {
    let part = "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf";
    let limit = Duration::from_millis(200);
    for steps in [vec![ScriptStep::ReadHead], vec![ScriptStep::ReadHead, ScriptStep::send(part)]] {
        let peer = H1Peer::always([steps, vec![ScriptStep::Await(1)]].concat());
        let client = Client::new();
        for request in [client.get(&peer.url("/")).timeout(limit), client.get(&peer.url("/")).read_timeout(limit)] {
            let began = Instant::now();
            let error = request.send().and_then(haul::Response::bytes).unwrap_err();
            assert!(error.is_timeout(), "{error}");
            assert!(began.elapsed() >= limit - limit / 10);
        }
    }
    // Time used by the program is not silence of the server.
    let peer = H1Peer::always(vec![
        ScriptStep::ReadHead,
        ScriptStep::send(part),
        ScriptStep::Await(1),
        ScriptStep::send("x".repeat(96)),
    ]);
    let mut response = Client::new().get(&peer.url("/")).read_timeout(limit).send().unwrap();
    response.read_exact(&mut [0; 4]).unwrap();
    std::thread::sleep(limit * 2);
    peer.release();
    assert_eq!(response.bytes().unwrap().len(), 96);
}

#[test]
fn timeout_does_not_affect_the_next_request() {
    let origin = start_origin();
    let client = Client::new();
    client.get(&origin.url("/small")).timeout(Duration::from_millis(50)).send().unwrap().bytes().unwrap();
    let slow = client.get(&origin.url("/delay/200/small")).send().unwrap();
    assert_eq!(slow.text().unwrap(), "small\n");
    assert_eq!(client.stats().totals().connections, 1);
}

#[test]
fn body_read_after_callback_panic_is_error() {
    let head = "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello";
    let peer = H1Peer::start(vec![vec![ScriptStep::ReadHead, ScriptStep::send(head), ScriptStep::Await(1)]]);
    let panics = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&panics);
    let hook = InterruptCallback::new(move || {
        assert!(!seen.load(Ordering::Relaxed), "on purpose");
        false
    });
    let mut response = Client::builder().interrupt(hook).build().get(&peer.url("/")).send().unwrap();
    let mut start = [0; 5];
    response.read_exact(&mut start).unwrap();
    panics.store(true, Ordering::Relaxed);
    assert!(catch_unwind(AssertUnwindSafe(|| response.read(&mut [0; 5]))).is_err());
    panics.store(false, Ordering::Relaxed);
    for _ in 0..2 {
        let error = response.read(&mut [0; 5]).unwrap_err();
        let error = error.get_ref().and_then(|cause| cause.downcast_ref::<haul::Error>());
        assert_eq!(error.map(haul::Error::kind), Some(ErrorKind::Panicked));
    }
    peer.release();
}

#[test]
fn interrupt_hook_is_polled_only_while_waiting() {
    let origin = start_origin();
    let asked = Arc::new(AtomicU32::new(0));
    let stop = Arc::new(AtomicBool::new(false));
    let (count, flag) = (Arc::clone(&asked), Arc::clone(&stop));
    let hook = InterruptCallback::new(move || {
        count.fetch_add(1, Ordering::Relaxed);
        flag.load(Ordering::Relaxed)
    });
    let client = Client::builder().interrupt(hook).build();
    for _ in 0..20 {
        client.get(&origin.url("/small")).send().unwrap().bytes().unwrap();
    }
    let before = asked.load(Ordering::Relaxed);
    let slow = client.get(&origin.url("/delay/300/small")).send().unwrap();
    assert_eq!(slow.text().unwrap(), "small\n");
    assert!(asked.load(Ordering::Relaxed) >= before + 3, "it is asked in a wait");
    stop.store(true, Ordering::Relaxed);
    let error = with_time_limit("interrupt", move || client.get(&origin.url("/delay/30000/small")).send().unwrap_err());
    assert_eq!((error.kind(), error.is_interrupted()), (ErrorKind::Interrupted, true));
    assert!(!RequestOptions::default().keep_history);
}

/// An observer that records the milestones of transfers.
#[derive(Debug, Default)]
struct Milestones(std::sync::Mutex<Vec<(Milestone, String)>>);

impl TransferObserver for Milestones {
    fn event(&self, event: &TraceEvent<'_>) {
        if let TraceEvent::Milestone { milestone, at, target, error, .. } = event {
            assert!(*at > Duration::ZERO);
            let what = error.map_or_else(|| target.path().to_owned(), |error| error.kind().name().to_owned());
            self.0.lock().unwrap().push((*milestone, what));
        }
    }
}

impl Milestones {
    fn take(&self) -> Vec<(Milestone, String)> {
        let mut all = std::mem::take(&mut *self.0.lock().unwrap());
        // An address need not be resolved.
        all.retain(|(milestone, _)| *milestone != Milestone::Resolved);
        all
    }
}

#[test]
fn milestones_of_a_transfer_come_in_order() {
    let origin = http2_origin(10);
    with_time_limit("milestones", move || {
        let (client, _ca) = trusted_client(&origin);
        let seen = Arc::new(Milestones::default());
        let get = |url: &str| client.get(url).options(|options| options.trace = Some(seen.clone()));
        let expected = |all: &[(Milestone, &str)]| {
            let all: Vec<_> = all.iter().map(|(milestone, what)| (*milestone, (*what).to_owned())).collect();
            assert_eq!(seen.take(), all);
        };

        let response = get(&origin.https_url("/redirect/302?to=/bytes/300000")).send().unwrap();
        let begun = seen.take();
        let names: Vec<_> = begun.iter().map(|(milestone, _)| *milestone).collect();
        assert_eq!(names[..3], [Milestone::Connected, Milestone::Secured, Milestone::Sent]);
        assert_eq!(names[3..], [Milestone::Head, Milestone::Redirected, Milestone::Sent, Milestone::Head]);
        assert_eq!((begun[3].1.as_str(), begun[4].1.as_str()), ("/redirect/302", "/bytes/300000"));
        assert_eq!(response.bytes().unwrap().len(), 300_000);
        expected(&[(Milestone::Done, "/bytes/300000")]);

        get(&origin.url("/small")).send().unwrap().bytes().unwrap();
        seen.take();
        let retried = get(&origin.url("/flaky/1/small")).options(|options| {
            options.retry.max = 1;
            options.retry.delay = Some(Duration::from_millis(1));
        });
        retried.send().unwrap().bytes().unwrap();
        let names: Vec<_> = seen.take().into_iter().map(|(milestone, _)| milestone).collect();
        let retry = Milestone::Retry(Duration::from_millis(1));
        assert_eq!(names, [Milestone::Sent, Milestone::Head, retry, Milestone::Sent, Milestone::Head, Milestone::Done]);

        let closed = format!("http://127.0.0.1:{}/", testkit::unused_port::unused_port());
        assert!(get(&closed).send().is_err());
        expected(&[(Milestone::Done, ErrorKind::Connect.name())]);
    });
}
