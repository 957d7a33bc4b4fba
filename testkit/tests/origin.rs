//! Tests of the origin's routes and its request log, through plain sockets.

mod common;

use std::io::{Read, Write};
use std::net::TcpStream;

use common::{get, parse, talk, unchunked};
use rustls::{ClientConnection, StreamOwned};
use testkit::byte_pattern;
use testkit::origin::Origin;
use testkit::site::GeneratedSite;

fn start() -> Origin {
    Origin::builder().site(GeneratedSite::scaled(7, 9)).start().unwrap()
}

#[test]
fn origin_serves_every_site_page() {
    let origin = start();
    for path in origin.site().index_paths().into_iter().chain(origin.site().as_paths()) {
        let reply = get(origin.http_addr(), &path, "");
        assert_eq!(reply.status, 200);
        assert_eq!(reply.body, origin.site().page(&path).unwrap());
        assert_eq!(reply.field("content-length").unwrap(), reply.body.len().to_string());
        assert_eq!(origin.hits(&path), 1);
    }
    assert_eq!(get(origin.http_addr(), "/AS0", "").status, 404);
    assert_eq!(origin.requests(), 13);
    assert_eq!(origin.connections(), 13);
}

#[test]
fn bytes_route_honours_ranges_and_validators() {
    let origin = start();
    let (addr, pattern) = (origin.http_addr(), origin.pattern());
    let whole = get(addr, "/bytes/200000", "");
    assert_eq!((whole.status, whole.field("etag")), (200, Some("\"7-200000\"")));
    assert_eq!(whole.body, pattern.slice(0, 200_000));

    let part = get(addr, "/bytes/200000", "Range: bytes=70001-140000\r\nIf-Range: \"7-200000\"\r\n");
    assert_eq!((part.status, part.field("content-range")), (206, Some("bytes 70001-140000/200000")));
    assert_eq!(part.field("content-length"), Some("70000"));
    assert_eq!(part.body, whole.body[70_001..=140_000]);

    let changed = get(addr, "/bytes/200000", "Range: bytes=5-9\r\nIf-Range: \"other\"\r\n");
    assert_eq!((changed.status, changed.body.len()), (200, 200_000));
    let beyond = get(addr, "/bytes/10", "Range: bytes=10-\r\n");
    assert_eq!((beyond.status, beyond.field("content-range")), (416, Some("bytes */10")));
    let same = get(addr, "/bytes/10", "If-None-Match: \"7-10\"\r\n");
    assert_eq!((same.status, same.body.len()), (304, 0));
    assert_eq!(get(addr, "/bytes/0", "").field("content-length"), Some("0"));
}

#[test]
fn head_response_has_length_but_no_body() {
    let origin = start();
    let request = b"HEAD /bytes/1234 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    let reply = talk(&mut TcpStream::connect(origin.http_addr()).unwrap(), request);
    assert_eq!((reply.status, reply.field("content-length"), reply.body.len()), (200, Some("1234"), 0));
}

#[test]
fn chunked_and_close_framing_deliver_the_same_bytes() {
    let origin = start();
    let expected = origin.pattern().slice(0, 150_000);
    let chunked = get(origin.http_addr(), "/chunked/150000?trailer=1", "TE: trailers\r\n");
    assert_eq!((chunked.field("transfer-encoding"), chunked.field("content-length")), (Some("chunked"), None));
    let (body, end) = unchunked(&chunked.body);
    assert_eq!(body, expected);
    assert_eq!(String::from_utf8(end).unwrap(), "x-total: 150000\r\n\r\n");
    assert_eq!(unchunked(&get(origin.http_addr(), "/chunked/0", "").body).0, b"");

    let close = get(origin.http_addr(), "/close/150000", "");
    assert!(close.head.starts_with("HTTP/1.0 200"), "{}", close.head);
    assert_eq!((close.field("transfer-encoding"), close.field("content-length")), (None, None));
    assert_eq!(close.body, expected);
}

#[test]
fn route_or_accept_encoding_selects_the_coding() {
    let origin = start();
    let plain = byte_pattern::compressible_text(7, 50_000);
    for (route, token) in
        [("gzip", "gzip"), ("deflate", "deflate"), ("rawdeflate", "deflate"), ("br", "br"), ("zstd", "zstd")]
    {
        let reply = get(origin.http_addr(), &format!("/{route}/50000"), "");
        assert_eq!(reply.field("content-encoding"), Some(token));
        assert!(reply.body.len() < 25_000);
    }
    let asked = get(origin.http_addr(), "/text/50000", "Accept-Encoding: gzip\r\n");
    let mut back = Vec::new();
    flate2::read::GzDecoder::new(&asked.body[..]).read_to_end(&mut back).unwrap();
    assert_eq!(back, plain);
    assert_eq!(get(origin.http_addr(), "/text/50000", "").body, plain);

    let path = &origin.site().as_paths()[0];
    let twice = get(origin.http_addr(), &format!("{path}?enc=gzip,zstd"), "");
    assert_eq!(twice.field("content-encoding"), Some("gzip, zstd"));
    let inner = zstd::decode_all(&twice.body[..]).unwrap();
    let mut page = Vec::new();
    flate2::read::GzDecoder::new(&inner[..]).read_to_end(&mut page).unwrap();
    assert_eq!(page, origin.site().page(path).unwrap());
    let uncoded = get(origin.http_addr(), path, "Accept-Encoding: gzip\r\n");
    assert_eq!(uncoded.field("content-encoding"), None, "as a server without compression configured");
}

#[test]
fn compressed_bomb_is_small_and_decodes_to_zeros() {
    let origin = start();
    let reply = get(origin.http_addr(), "/bomb/64", "");
    assert_eq!(reply.field("content-encoding"), Some("gzip"));
    assert!(reply.body.len() < 128 << 10, "{}", reply.body.len());
    let mut decoder = flate2::read::GzDecoder::new(&reply.body[..]);
    assert_eq!(std::io::copy(&mut decoder, &mut std::io::sink()).unwrap(), 64 << 20);
}

#[test]
fn status_and_redirect_routes_answer_as_documented() {
    let origin = start();
    let addr = origin.http_addr();
    assert_eq!(get(addr, "/status/404", "").text(), "404 Not Found\n");
    assert_eq!(get(addr, "/status/204", "").body, b"");
    for bad in ["/status/100", "/status/99999", "/redirect/302", "/redirect/abc?to=/1"] {
        assert!(matches!(get(addr, bad, "").status, 400 | 404), "{bad}");
    }
    let away = get(addr, "/redirect/307?to=http%3A//other.example/a?b=1&c=%25", "");
    assert_eq!((away.status, away.field("location")), (307, Some("http://other.example/a?b=1&c=%")));
    assert_eq!(get(addr, "/chain/2", "").field("location"), Some("/chain/1"));
    assert_eq!(get(addr, "/chain/0", "").text(), "end of chain\n");
    assert_eq!(get(addr, "/redirect/302?to=a%0d%0aX:y", "").status, 400, "no field can be smuggled in");
}

#[test]
fn flaky_and_retry_after_routes_recover() {
    let origin = start();
    let addr = origin.http_addr();
    let statuses: Vec<u16> = (0..4).map(|_| get(addr, "/flaky/2/small/1", "").status).collect();
    assert_eq!(statuses, [503, 503, 200, 200]);
    assert_eq!(get(addr, "/flaky/2/small/2", "").status, 503, "each path counts for itself");
    let first = get(addr, "/retry-after/3/delay/1/small/5", "");
    assert_eq!((first.status, first.field("retry-after")), (503, Some("3")));
    assert_eq!(get(addr, "/retry-after/3/delay/1/small/5", "").text(), "small 5\n");
    origin.forget();
    assert_eq!(get(addr, "/flaky/2/small/1", "").status, 503);
    assert_eq!((origin.hits("/flaky/2/small/1"), origin.log().len()), (1, 1));
}

#[test]
fn echo_reply_agrees_with_the_request_log() {
    let origin = start();
    let request = b"POST /echo?x=1 HTTP/1.1\r\nHost: h\r\nX-Two: b\r\nTransfer-Encoding: chunked\r\n\
        Connection: close\r\n\r\n3\r\nabc\r\n0\r\n\r\n";
    let reply = talk(&mut TcpStream::connect(origin.http_addr()).unwrap(), request);
    let json: serde_json::Value = serde_json::from_slice(&reply.body).unwrap();
    assert_eq!((&json["method"], &json["target"], &json["body"]), (&"POST".into(), &"/echo?x=1".into(), &"abc".into()));
    assert_eq!(json["headers"][1], serde_json::json!(["x-two", "b"]));
    let log = origin.log();
    assert_eq!((log[0].header("x-two"), &log[0].body[..], log[0].connection), (Some("b"), &b"abc"[..], 0));
}

#[test]
fn pipelined_requests_are_answered_in_order() {
    let origin = start();
    let mut stream = TcpStream::connect(origin.http_addr()).unwrap();
    let mut requests = String::new();
    for n in 0..20 {
        requests += &format!("GET /delay/0/small/{n} HTTP/1.1\r\nHost: x\r\n\r\n");
    }
    requests += "GET /small/last HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    stream.write_all(requests.as_bytes()).unwrap();
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).unwrap();
    let text = String::from_utf8(bytes).unwrap();
    let mut at = 0;
    for n in 0..20 {
        at += text[at..].find(&format!("\r\n\r\nsmall {n}\n")).expect("in order");
    }
    assert_eq!((origin.connections(), origin.peak_connections(), origin.peak_requests()), (1, 1, 1));
    assert!(origin.log().iter().all(|request| request.connection == 0));
}

#[test]
fn tls_certificate_is_valid_under_the_authority() {
    let origin = start();
    let config = testkit::test_certificates::client_config(origin.ca_pem());
    for name in testkit::test_certificates::NAMES {
        let session = ClientConnection::new(config.clone(), name.try_into().unwrap()).unwrap();
        let stream = TcpStream::connect(origin.https_addr()).unwrap();
        let request = format!("GET /close/100000 HTTP/1.1\r\nHost: {name}\r\n\r\n");
        // Reading to the end without an error proves that close_notify was sent.
        let reply = talk(&mut StreamOwned::new(session, stream), request.as_bytes());
        assert_eq!(reply.body, origin.pattern().slice(0, 100_000));
    }
    assert!(origin.log().iter().all(|request| request.tls));
}

#[test]
fn dropping_the_origin_frees_the_port() {
    let origin = start();
    let addr = origin.http_addr();
    drop(origin);
    assert!(TcpStream::connect(addr).is_err());
}

#[test]
fn malformed_request_does_not_stop_the_origin() {
    let origin = start();
    for request in
        ["OPTIONS * HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", "CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n"]
    {
        let mut stream = TcpStream::connect(origin.http_addr()).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).unwrap();
        assert!(bytes.is_empty() || parse(&bytes).status >= 400);
    }
    assert_eq!(get(origin.http_addr(), "/small", "").text(), "small\n");
}
