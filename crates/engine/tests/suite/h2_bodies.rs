//! Tests of HTTP/2 with a correct origin: bodies, fields and uploads arrive as with HTTP/1.1, on
//! one connection.

use crate::common;

use std::sync::Arc;

use common::{
    DRIVERS, DriverKind, following, http2_origin, one_thread, run, single_stage, start_origin, trusting_ca,
    with_h2_alpn, with_prior_knowledge,
};
use haul::body::upload::RequestBody;
use haul::fleet::FleetOptions;
use haul::{Client, ProtocolVersion, RequestOptions};
use testkit::byte_pattern::compressible_text;
use testkit::origin::Origin;

/// Runs `test` twice: with HTTP/2 by prior knowledge without TLS, and with HTTP/2 by ALPN over TLS.
fn both(origin: &Origin, test: impl Fn(&str, &dyn Fn(&str) -> String, &RequestOptions)) {
    test("prior knowledge", &|path| origin.url(path), &with_prior_knowledge(RequestOptions::default()));
    let (options, _ca) = trusting_ca(origin.ca_pem());
    test("ALPN", &|path| origin.https_url(path), &with_h2_alpn(options));
}

#[test]
fn http2_bodies_of_any_length_arrive_whole() {
    let origin = http2_origin(100);
    both(&origin, |how, url, options| {
        for driver in DRIVERS {
            let client = Client::new();
            for len in [0, 1, 16_383, 16_384, 16_385, 65_536, 1_000_000, 20_000_000] {
                for route in ["bytes", "chunked"] {
                    let got = driver.get(&client, &url(&format!("/{route}/{len}")), options);
                    assert!(got.ok() == origin.pattern().slice(0, len), "{how}, {driver:?}, {route} of {len}");
                    assert_eq!(
                        (got.status, got.facts.version),
                        (200, Some(ProtocolVersion::Http2)),
                        "{how}, {driver:?}"
                    );
                    assert_eq!(got.facts.body_bytes, len as u64);
                }
            }
        }
    });
    assert_eq!(origin.connections(), 4, "one for each client");
}

#[test]
fn http2_request_fields_reach_the_server() {
    let origin = http2_origin(100);
    both(&origin, |how, url, options| {
        let mut options = options.clone();
        options.fields = vec![("X-Mixed-Case".into(), b"Yes".to_vec()), ("Connection".into(), b"close".to_vec())];
        options.cookie = Some(b"a=b".to_vec());
        let got = DriverKind::Blocking.get(&Client::new(), &url("/echo?q=1"), &options);
        let said = String::from_utf8(got.ok().to_vec()).unwrap();
        for part in [r#""version":"HTTP/2.0""#, r#"["x-mixed-case","Yes"]"#, r#"["cookie","a=b"]"#, "/echo?q=1"] {
            assert!(said.contains(part), "{how}: {part} in {said}");
        }
        assert!(!said.contains(r#""connection","close""#), "{how}: HTTP/2 has no such field: {said}");
    });
}

#[test]
fn http2_uploads_wait_for_flow_control_windows() {
    let origin = http2_origin(100);
    let content: Arc<[u8]> = compressible_text(5, 20_000_000).into();
    both(&origin, |how, url, options| {
        for driver in DRIVERS {
            for len in [0, 1, 65_535, 65_536, 20_000_000] {
                origin.forget();
                let mut options = options.clone();
                options.method = "POST".into();
                options.body = Some(content[..len].into());
                assert_eq!(driver.get(&Client::new(), &url("/small/1"), &options).ok(), b"small 1\n");
                let log = origin.log();
                assert_eq!((log.len(), log[0].method.as_str()), (1, "POST"));
                assert!(log[0].body == content[..len], "{how}, {driver:?}: {len}");
            }
        }
    });
}

#[test]
fn http2_uploads_share_one_connection() {
    let origin = http2_origin(100);
    let mut options = with_prior_knowledge(RequestOptions::default());
    options.method = "PUT".into();
    options.body = Some(compressible_text(6, 1_000_000).into());
    let run =
        run(&Client::new(), single_stage(&options), one_thread(), (0..20).map(|n| origin.url(&format!("/small/{n}"))));
    assert_eq!(run.output, (0..20).map(|n| format!("small {n}\n")).collect::<String>().into_bytes());
    assert!(
        origin.log().iter().all(|request| Some(&*request.body) == options.body.as_ref().and_then(RequestBody::bytes))
    );
    assert_eq!((origin.log().len(), origin.connections()), (20, 1));
}

#[test]
fn thousand_requests_respect_the_servers_stream_limit() {
    for limit in [100, 7, 1] {
        let origin = http2_origin(limit);
        let options = with_prior_knowledge(RequestOptions::default());
        let fleet = FleetOptions { parallel: 1000, ..one_thread() };
        let count = if limit == 1 { 50 } else { 1000 };
        let urls = (0..count).map(|n| origin.url(&format!("/delay/5/small/{n}")));
        let run = run(&Client::new(), single_stage(&options), fleet, urls);
        assert_eq!(run.output, (0..count).map(|n| format!("small {n}\n")).collect::<String>().into_bytes());
        assert_eq!(origin.requests(), count, "limit {limit}");
        // Requests refused before the limit was known may be first in the output, so they get
        // another connection.
        let connections = origin.connections();
        assert!(connections == 1 || connections == 2 && limit < 100, "{connections} with a limit of {limit}");
        let most = u64::from(limit) * connections;
        assert!(origin.peak_requests() <= most, "{} of {most}", origin.peak_requests());
        assert!(origin.peak_requests() >= u64::from(limit.min(20)), "{} of {limit}", origin.peak_requests());
    }
}

#[test]
fn many_large_bodies_share_one_connection() {
    let origin = http2_origin(100);
    both(&origin, |how, url, options| {
        let len = |n: usize| 1_000_000 + n * 7919;
        let run = run(
            &Client::new(),
            single_stage(options),
            one_thread(),
            (0..30).map(|n| url(&format!("/bytes/{}", len(n)))),
        );
        let expected: Vec<u8> = (0..30).flat_map(|n| origin.pattern().slice(0, len(n))).collect();
        assert!(run.output == expected, "{how}: {} of {}", run.output.len(), expected.len());
    });
    assert_eq!(origin.connections(), 2);
}

#[test]
fn http1_only_server_gets_several_connections() {
    let origin = start_origin();
    let (options, _ca) = trusting_ca(origin.ca_pem());
    let urls = (0..40).map(|n| origin.https_url(&format!("/delay/20/small/{n}")));
    let limited = FleetOptions { per_host: Some(6), ..one_thread() };
    let run = run(&Client::new(), single_stage(&with_h2_alpn(options)), limited, urls);
    assert_eq!(run.output, (0..40).map(|n| format!("small {n}\n")).collect::<String>().into_bytes());
    assert!(run.reports.iter().all(|got| got.facts.version == Some(ProtocolVersion::Http11)));
    assert!((2..=6).contains(&origin.peak_connections()), "{}", origin.peak_connections());
}

#[test]
fn http1_is_used_when_h2_is_not_offered() {
    let origin = http2_origin(100);
    let (options, _ca) = trusting_ca(origin.ca_pem());
    for url in [origin.url("/small"), origin.https_url("/small")] {
        let got = DriverKind::Reactor.get(&Client::new(), &url, &options);
        assert_eq!((got.ok(), got.facts.version), (&b"small\n"[..], Some(ProtocolVersion::Http11)));
    }
}

#[test]
fn redirects_between_http1_and_http2_are_followed() {
    let (two, one) = (http2_origin(100), start_origin());
    // The client trusts the authorities of both servers.
    let (first, _a) = trusting_ca(&format!("{}{}", two.ca_pem(), one.ca_pem()));
    let options = RequestOptions { redirects: following().redirects, ..with_h2_alpn(first) };
    for driver in DRIVERS {
        let client = Client::new();
        for (from, to, version) in [(&two, &one, ProtocolVersion::Http11), (&one, &two, ProtocolVersion::Http2)] {
            let url = from.https_url(&format!("/redirect/302?to={}", to.https_url("/small/3")));
            let got = driver.get(&client, &url, &options);
            assert_eq!((got.ok(), got.facts.version, got.facts.redirects), (&b"small 3\n"[..], Some(version), 1));
        }
        let got = driver.get(&client, &two.https_url("/chain/5"), &options);
        assert_eq!((got.ok(), got.facts.redirects), (&b"end of chain\n"[..], 5));
    }
}

#[test]
fn included_http2_heads_precede_bodies() {
    let origin = http2_origin(100);
    let mut options = with_prior_knowledge(following());
    options.include_head = true;
    for driver in DRIVERS {
        let got = driver.get(&Client::new(), &origin.url("/redirect/302?to=/bytes/3"), &options);
        let all = String::from_utf8_lossy(got.ok()).into_owned();
        let heads: Vec<&str> = all.split("\r\n\r\n").collect();
        assert_eq!(heads.len(), 3, "{all}");
        assert!(heads[0].starts_with("HTTP/2 302 \r\n") && heads[0].contains("\r\nlocation: /bytes/3"), "{all}");
        assert!(heads[1].starts_with("HTTP/2 200 \r\n") && heads[1].contains("\r\ncontent-length: 3"), "{all}");
        assert_eq!(got.facts.head_bytes as usize, heads[0].len() + heads[1].len() + 8);
    }
}

#[test]
fn http2_trailers_are_not_part_of_body() {
    let origin = http2_origin(100);
    for driver in DRIVERS {
        let got = driver.get(
            &Client::new(),
            &origin.url("/chunked/100000?trailer=1"),
            &with_prior_knowledge(RequestOptions::default()),
        );
        assert!(got.ok() == origin.pattern().slice(0, 100_000));
    }
}

#[test]
fn http2_responses_without_body_are_empty() {
    let origin = http2_origin(100);
    let client = Client::new();
    for driver in DRIVERS {
        for (method, path, status) in
            [("GET", "/status/204", 204), ("HEAD", "/bytes/5", 200), ("GET", "/status/404", 404)]
        {
            let options = RequestOptions { method: method.into(), ..with_prior_knowledge(RequestOptions::default()) };
            let got = driver.get(&client, &origin.url(path), &options);
            assert_eq!((got.exit, got.status), (0, status), "{method} {path}: {}", got.message);
            assert_eq!(got.body.is_empty(), status != 404);
        }
    }
}

#[test]
fn http2_content_codings_are_decoded() {
    let origin = http2_origin(100);
    let options = RequestOptions { decode: true, ..with_prior_knowledge(RequestOptions::default()) };
    for driver in DRIVERS {
        for coding in ["gzip", "br", "zstd", "deflate"] {
            let got = driver.get(&Client::new(), &origin.url(&format!("/{coding}/500000")), &options);
            assert!(got.ok() == compressible_text(origin.site().seed(), 500_000), "{coding}");
        }
    }
}

#[test]
fn http2_503_is_retried_on_the_same_connection() {
    let origin = http2_origin(100);
    let mut options = with_prior_knowledge(common::retrying(3));
    options.fail = true;
    let urls: Vec<_> = (0..20).map(|n| origin.url(&format!("/flaky/2/small/{n}"))).collect();
    let run = run(&Client::new(), single_stage(&options), one_thread(), urls);
    assert_eq!(run.output, (0..20).map(|n| format!("small {n}\n")).collect::<String>().into_bytes());
    assert_eq!((origin.connections(), origin.requests()), (1, 60));
}

#[test]
fn each_host_has_one_http2_connection() {
    let origins: Vec<_> = (0..3).map(|_| http2_origin(100)).collect();
    let options = with_prior_knowledge(RequestOptions::default());
    let urls = (0..90).map(|n| origins[n % 3].url(&format!("/small/{n}")));
    let run = run(&Client::new(), single_stage(&options), one_thread(), urls);
    assert_eq!(run.output, (0..90).map(|n| format!("small {n}\n")).collect::<String>().into_bytes());
    for origin in &origins {
        assert_eq!((origin.connections(), origin.requests()), (1, 30));
    }
}

#[test]
fn whole_site_uses_one_http2_connection() {
    let origin = http2_origin(100);
    let paths = origin.site().as_paths();
    let options = with_prior_knowledge(RequestOptions::default());
    let run = run(&Client::new(), single_stage(&options), one_thread(), paths.iter().map(|path| origin.url(path)));
    let expected: Vec<u8> = paths.iter().flat_map(|path| origin.site().page(path).unwrap()).collect();
    assert!(run.output == expected);
    assert!(run.reports.iter().all(|got| got.facts.version == Some(ProtocolVersion::Http2)));
    assert_eq!(origin.connections(), 1);
}
