//! Tests of HTTP/3 with a correct origin: bodies, fields and uploads arrive as with HTTP/2, on one
//! QUIC connection.

use crate::common;

use std::sync::Arc;

use common::{DRIVERS, DriverKind, following, one_thread, run, single_stage, trusting_ca};
use haul::body::upload::RequestBody;
use haul::fleet::FleetOptions;
use haul::request::Http3Policy;
use haul::{Client, ErrorKind, ProtocolVersion, RequestOptions};
use testkit::byte_pattern::compressible_text;
use testkit::h3_peer::{H3Peer, data, headers};
use testkit::http3::Http3Settings;
use testkit::origin::Origin;

/// Starts an origin that speaks HTTP/3 with these settings.
fn http3_origin(settings: Http3Settings) -> Origin {
    Origin::builder().http3(settings).start().expect("an origin")
}

/// Returns options that use only HTTP/3 and trust the origin, and the file with the CA certificate.
/// The file must outlive the options.
fn only_http3(origin: &Origin) -> (RequestOptions, tempfile::NamedTempFile) {
    let (options, ca) = trusting_ca(origin.ca_pem());
    (RequestOptions { http3: Http3Policy::Only, ..options }, ca)
}

#[test]
fn http3_bodies_of_any_length_arrive_whole() {
    let origin = http3_origin(Http3Settings::new());
    let (options, _ca) = only_http3(&origin);
    for driver in DRIVERS {
        let client = Client::new();
        for len in [0, 1, 1_199, 16_384, 65_536, 1_000_000, 20_000_000] {
            for route in ["bytes", "chunked"] {
                let got = driver.get(&client, &origin.https_url(&format!("/{route}/{len}")), &options);
                assert!(got.ok() == origin.pattern().slice(0, len), "{driver:?}, {route} of {len}");
                assert_eq!((got.status, got.facts.version), (200, Some(ProtocolVersion::Http3)), "{driver:?}");
                assert_eq!(got.facts.body_bytes, len as u64);
            }
        }
    }
    assert_eq!(origin.quic_connections(), 2, "one for each client");
}

#[test]
fn http3_request_fields_reach_the_server() {
    let origin = http3_origin(Http3Settings::new());
    let (mut options, _ca) = only_http3(&origin);
    options.fields = vec![("X-Mixed-Case".into(), b"Yes".to_vec()), ("Connection".into(), b"close".to_vec())];
    options.cookie = Some(b"a=b".to_vec());
    let got = DriverKind::Blocking.get(&Client::new(), &origin.https_url("/echo?q=1"), &options);
    let said = String::from_utf8(got.ok().to_vec()).unwrap();
    for part in [r#""version":"HTTP/3.0""#, r#"["x-mixed-case","Yes"]"#, r#"["cookie","a=b"]"#, "/echo?q=1"] {
        assert!(said.contains(part), "{part} in {said}");
    }
    assert!(!said.contains(r#""connection","close""#), "HTTP/3 has no such field: {said}");
}

#[test]
fn http3_uploads_wait_for_flow_control_windows() {
    let origin = http3_origin(Http3Settings::new());
    let (options, _ca) = only_http3(&origin);
    let content: Arc<[u8]> = compressible_text(5, 20_000_000).into();
    for driver in DRIVERS {
        for len in [0, 1, 65_535, 65_536, 20_000_000] {
            origin.forget();
            let mut options = options.clone();
            options.method = "POST".into();
            options.body = Some(content[..len].into());
            assert_eq!(driver.get(&Client::new(), &origin.https_url("/small/1"), &options).ok(), b"small 1\n");
            let log = origin.log();
            assert_eq!((log.len(), log[0].method.as_str()), (1, "POST"));
            assert!(log[0].body == content[..len], "{driver:?}: {len}");
        }
    }
}

#[test]
fn http3_uploads_share_one_connection() {
    let origin = http3_origin(Http3Settings::new());
    let (mut options, _ca) = only_http3(&origin);
    options.method = "PUT".into();
    options.body = Some(compressible_text(6, 1_000_000).into());
    let urls = (0..20).map(|n| origin.https_url(&format!("/small/{n}")));
    let run = run(&Client::new(), single_stage(&options), one_thread(), urls);
    assert_eq!(run.output, (0..20).map(|n| format!("small {n}\n")).collect::<String>().into_bytes());
    assert!(
        origin.log().iter().all(|request| Some(&*request.body) == options.body.as_ref().and_then(RequestBody::bytes))
    );
    assert_eq!((origin.log().len(), origin.quic_connections()), (20, 1));
}

#[test]
fn thousand_http3_requests_respect_the_stream_limit() {
    for limit in [100, 7, 1] {
        let origin = http3_origin(Http3Settings::new().streams(limit));
        let (options, _ca) = only_http3(&origin);
        let fleet = FleetOptions { parallel: 1000, ..one_thread() };
        let count = if limit == 1 { 50 } else { 1000 };
        let urls = (0..count).map(|n| origin.https_url(&format!("/delay/5/small/{n}")));
        let run = run(&Client::new(), single_stage(&options), fleet, urls);
        assert_eq!(run.output, (0..count).map(|n| format!("small {n}\n")).collect::<String>().into_bytes());
        assert_eq!((origin.requests(), origin.quic_connections()), (count, 1), "limit {limit}");
        assert!(origin.peak_requests() <= u64::from(limit), "{} of {limit}", origin.peak_requests());
        assert!(origin.peak_requests() >= u64::from(limit.min(20)), "{} of {limit}", origin.peak_requests());
    }
}

#[test]
fn http3_to_an_ip_address_runs_many_requests_at_once() {
    let origin = http3_origin(Http3Settings::new());
    let (options, _ca) = only_http3(&origin);
    let fleet = FleetOptions { parallel: 50, ..one_thread() };
    // No transfer waits for a name to be resolved.
    let urls = (0..200).map(|n| format!("https://{}/delay/20/small/{n}", origin.https_addr()));
    let run = run(&Client::new(), single_stage(&options), fleet, urls);
    assert_eq!(run.output, (0..200).map(|n| format!("small {n}\n")).collect::<String>().into_bytes());
    assert!(origin.peak_requests() >= 20, "{}", origin.peak_requests());
    assert_eq!(origin.quic_connections(), 1);
}

#[test]
fn many_large_http3_bodies_share_one_connection() {
    let origin = http3_origin(Http3Settings::new());
    let (options, _ca) = only_http3(&origin);
    let len = |n: usize| 1_000_000 + n * 7919;
    let urls = (0..30).map(|n| origin.https_url(&format!("/bytes/{}", len(n))));
    let run = run(&Client::new(), single_stage(&options), one_thread(), urls);
    let expected: Vec<u8> = (0..30).flat_map(|n| origin.pattern().slice(0, len(n))).collect();
    assert!(run.output == expected, "{} of {}", run.output.len(), expected.len());
    assert_eq!(origin.quic_connections(), 1);
}

#[test]
fn ordered_large_and_small_http3_bodies_end() {
    let origin = http3_origin(Http3Settings::new());
    let (options, _ca) = only_http3(&origin);
    // The large bodies fill the windows of their streams while an earlier one is printed.
    let len = |n: usize| if n < 12 { 3_000_000 } else { 300 };
    let expected: Vec<u8> = (0..200).flat_map(|n| origin.pattern().slice(0, len(n))).collect();
    // The second run starts without a lookup of the name.
    for host in [origin.https_url(""), format!("https://{}", origin.https_addr())] {
        let fleet = FleetOptions { parallel: 50, ..one_thread() };
        let urls = (0..200).map(|n| format!("{host}/bytes/{}", len(n)));
        let run = run(&Client::new(), single_stage(&options), fleet, urls);
        assert!(run.output == expected, "{host}: {} of {}", run.output.len(), expected.len());
    }
    assert_eq!(origin.quic_connections(), 2);
}

#[test]
fn http3_redirects_and_heads_are_delivered() {
    let origin = http3_origin(Http3Settings::new());
    let (trusting, _ca) = only_http3(&origin);
    let options = RequestOptions { include_head: true, redirects: following().redirects, ..trusting };
    for driver in DRIVERS {
        let got = driver.get(&Client::new(), &origin.https_url("/redirect/302?to=/bytes/3"), &options);
        let all = String::from_utf8_lossy(got.ok()).into_owned();
        let heads: Vec<&str> = all.split("\r\n\r\n").collect();
        assert_eq!(heads.len(), 3, "{all}");
        assert!(heads[0].starts_with("HTTP/3 302 \r\n") && heads[0].contains("\r\nlocation: /bytes/3"), "{all}");
        assert!(heads[1].starts_with("HTTP/3 200 \r\n") && heads[1].contains("\r\ncontent-length: 3"), "{all}");
    }
}

#[test]
fn http3_trailers_are_not_part_of_body() {
    let origin = http3_origin(Http3Settings::new());
    let (options, _ca) = only_http3(&origin);
    for driver in DRIVERS {
        let got = driver.get(&Client::new(), &origin.https_url("/chunked/100000?trailer=1"), &options);
        assert!(got.ok() == origin.pattern().slice(0, 100_000));
    }
}

#[test]
fn http3_responses_without_body_are_empty() {
    let origin = http3_origin(Http3Settings::new());
    let (options, _ca) = only_http3(&origin);
    let client = Client::new();
    for driver in DRIVERS {
        for (method, path, status) in
            [("GET", "/status/204", 204), ("HEAD", "/bytes/5", 200), ("GET", "/status/404", 404)]
        {
            let options = RequestOptions { method: method.into(), ..options.clone() };
            let got = driver.get(&client, &origin.https_url(path), &options);
            assert_eq!((got.exit, got.status), (0, status), "{method} {path}: {}", got.message);
            assert_eq!(got.body.is_empty(), status != 404);
        }
    }
}

#[test]
fn early_hints_over_http3_precede_the_response() {
    let origin = http3_origin(Http3Settings::new());
    let (options, _ca) = only_http3(&origin);
    for driver in DRIVERS {
        let got = driver.get(&Client::new(), &origin.https_url("/hints/3/bytes/1000"), &options);
        assert!(got.ok() == origin.pattern().slice(0, 1000));
        assert_eq!(got.status, 200);
    }
}

#[test]
fn client_answers_a_quic_retry_packet() {
    let origin = http3_origin(Http3Settings::new().retry());
    let (options, _ca) = only_http3(&origin);
    for driver in DRIVERS {
        assert_eq!(driver.get(&Client::new(), &origin.https_url("/small"), &options).ok(), b"small\n");
    }
    assert_eq!(origin.quic_retries(), 2);
}

#[test]
fn http3_bodies_survive_key_updates() {
    let origin = http3_origin(Http3Settings::new().key_updates());
    let (options, _ca) = only_http3(&origin);
    for driver in DRIVERS {
        let client = Client::new();
        for _ in 0..10 {
            let got = driver.get(&client, &origin.https_url("/bytes/300000"), &options);
            assert!(got.ok() == origin.pattern().slice(0, 300_000), "{driver:?}");
        }
    }
    assert_eq!(origin.quic_connections(), 2);
}

#[test]
fn later_quic_connections_resume_the_session() {
    let origin = http3_origin(Http3Settings::new());
    let (options, _ca) = only_http3(&origin);
    let client = Client::new();
    for _ in 0..3 {
        assert_eq!(DriverKind::Blocking.get(&client, &origin.https_url("/small"), &options).ok(), b"small\n");
        client.close_idle();
    }
    assert_eq!((origin.quic_connections(), origin.full_handshakes()), (3, 1));
}

#[test]
fn untrusted_quic_server_is_refused_as_over_tcp() {
    let origin = http3_origin(Http3Settings::new());
    let options = RequestOptions { http3: Http3Policy::Only, ..RequestOptions::default() };
    for driver in DRIVERS {
        let got = driver.get(&Client::new(), &origin.https_url("/small"), &options);
        assert_eq!((got.exit, got.kind), (60, Some(ErrorKind::PeerCertificate)), "{}", got.message);
        assert!(got.message.contains("no trusted certificate has signed it"), "{}", got.message);
        let mut blind = options.clone();
        blind.tls.verify = false;
        assert_eq!(driver.get(&Client::new(), &origin.https_url("/small"), &blind).ok(), b"small\n");
    }
}

#[test]
fn response_before_upload_end_survives_stop_sending() {
    const CODES: [u64; 2] = [0x100, 0x10c];
    for (driver, code) in DRIVERS.into_iter().flat_map(|driver| CODES.map(|code| (driver, code))) {
        for stops_first in [false, true] {
            let peer = H3Peer::start(move |_, conn| {
                conn.greet(&[])?;
                let request = conn.request()?;
                if stops_first {
                    conn.stop_sending(request.stream, code)?;
                }
                conn.send(request.stream, [headers(&[(":status", "200")]), data(b"early")].concat())?;
                conn.finish(request.stream)?;
                if !stops_first {
                    conn.stop_sending(request.stream, code)?;
                }
                conn.wait_closed()
            });
            let (options, _ca) = trusting_ca(peer.ca_pem());
            // More than the flow-control window of the server.
            let body = Some(vec![b'x'; 8 << 20].into());
            let options = RequestOptions { http3: Http3Policy::Only, method: "PUT".into(), body, ..options };
            let got = driver.get(&Client::new(), &peer.url("/"), &options);
            assert_eq!((got.ok(), got.status), (&b"early"[..], 200), "{driver:?} {code:#x} {stops_first}");
        }
    }
}
