use std::fs;
use std::time::Duration;

use haul::net::dns::AddressFamily;
use haul::net::proxy::{ProxyAuthScheme, ProxyOptions};
use haul::net::socket::TcpKeepalive;
use haul::net::tls::{ClientCertificateFiles, TlsOptions, TlsVersion};
use haul::request::{ConnectToRule, CurlCompat, H1Deviations, SpeedLimit, StallLimit, WantedContentRange};
use haul::state::auth::{AllowedAuthSchemes, AuthOptions, Credentials};
use haul_policy::proxy::{NoProxy, Proxy, ProxyEnvironment};
use haul_policy::range::validator::Validator;
use haul_policy::redirect::RedirectRules;
use haul_policy::retry::RetryRules;

use super::*;
use crate::agent::message_encoding::AgentFieldEncodingForTests;
use crate::agent::protocol::{CallerMessage, FileIdentity};

const SECOND: Duration = Duration::from_secs(1);

fn login() -> Option<Credentials> {
    Credentials::new("me", "secret").ok()
}

fn tls() -> TlsOptions {
    let mut tls = TlsOptions::default();
    (tls.verify, tls.examine, tls.keep_certificates, tls.common_name) = (false, true, true, true);
    (tls.ca_file, tls.ca_path) = (Some("/ca".into()), Some("/certs".into()));
    tls.identity = Some(ClientCertificateFiles { certificate: "/c".into(), key: Some("/k".into()) });
    (tls.min_version, tls.max_version) = (TlsVersion::V1_3, TlsVersion::V1_2);
    (tls.alpn, tls.sni) = (vec![b"h2".to_vec()], false);
    tls
}

fn proxy() -> ProxyOptions {
    let variables = [("http_proxy", "http://e:1"), ("no_proxy", "d")];
    let mut proxy = ProxyOptions::default();
    proxy.proxy = Proxy::parse("socks5h://p:1").ok().map(|proxy| proxy.with_credentials(login()));
    proxy.environment = ProxyEnvironment::from_variables(|name| {
        variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
    });
    proxy.no_proxy = Some(NoProxy::parse("d,10.0.0.0/8"));
    proxy.credentials = login();
    (proxy.auth, proxy.tunnel, proxy.http2, proxy.tls) = (ProxyAuthScheme::Any, true, true, tls());
    proxy
}

/// Returns a request to the agent in which every encoded field of every option struct differs from
/// its default. The tests therefore notice a field that is lost in the encoding.
fn request() -> AgentRequest {
    let mut options = RequestOptions {
        method: "PUT".into(),
        fields: vec![("Accept".into(), b"*/*".to_vec())],
        without: vec!["TE".into()],
        user_agent: None,
        authorization: Some(b"Negotiate x".to_vec()),
        cookie: Some(b"a=b".to_vec()),
        referer: Some("http://r/".into()),
        auth: AuthOptions {
            user: login(),
            bearer: Some(b"token".to_vec().into()),
            allowed: AllowedAuthSchemes { digest: true, bearer: true, ..AllowedAuthSchemes::NONE },
            ..AuthOptions::default()
        },
        range: Some("0-9".into()),
        request_target: Some("*".into()),
        decode: true,
        fail: true,
        fail_with_body: true,
        resume: false,
        path_as_is: true,
        prior_knowledge: true,
        http3: haul::request::Http3Policy::Race,
        auto_referer: true,
        curl_compat: CurlCompat {
            omits_zero_content_length: true,
            strict_content_coding: true,
            accepts_unreliable_responses: true,
            refused_tunnel_is_status_error: true,
            head_limits: true,
            spells_as_curl: true,
            redirect_logins: true,
            ..CurlCompat::default()
        },
        deviations: H1Deviations {
            tolerant: true,
            follows_http10: true,
            verbatim_fields: true,
            ..H1Deviations::default()
        },
        redirects: RedirectRules {
            follow: false,
            permanent_only: true,
            max: 3,
            post301: true,
            post302: true,
            post303: true,
            keep_method: true,
            is_post: Some(true),
            allow_http: false,
            allow_https: false,
            location_trusted: true,
        },
        retry: RetryRules {
            max: 7,
            delay: Some(SECOND),
            max_time: Some(SECOND),
            connrefused: true,
            all_errors: true,
            resets: false,
            only_resets: true,
            unknown_names: true,
            any_method: true,
            waits_as_curl: true,
            cap: SECOND,
        },
        max_time: Some(SECOND),
        total_time: Some(SECOND),
        read_timeout: Some(SECOND),
        write_timeout: Some(SECOND),
        stall: Some(StallLimit { time: SECOND, awaits_head: true }),
        max_size: Some(1),
        limit_rate: Some(2),
        speed_limit: Some(SpeedLimit { bytes_per_second: 3, time: SECOND }),
        span: Validator::from_bytes(b"\"x\"").map(|validator| WantedContentRange::Rest {
            from: 4,
            to: Some(6),
            total: 7,
            validator,
        }),
        family: AddressFamily::V6,
        connect: ConnectOptions {
            attempt_delay: SECOND,
            timeout: SECOND,
            keepalive: Some(TcpKeepalive { idle: SECOND, interval: SECOND, count: Some(5) }),
            ..ConnectOptions::default()
        },
        connect_to: vec![ConnectToRule {
            host: Some("h".into()),
            port: Some(443),
            to_host: Some("o".into()),
            to_port: Some(1),
        }],
        tls: tls(),
        proxy: Some(proxy()),
        ..RequestOptions::default()
    };
    options.decode_limits.max_output = Some(8);
    AgentRequest { url: "https://h/".into(), options }
}

/// Panics with the name of the first encoded field that has the same value in `sample` and `other`.
fn assert_all_differ<T: AgentFieldEncodingForTests>(sample: &T, other: &T) {
    let fields = sample.encoded_fields().into_iter().zip(other.encoded_fields());
    for ((name, ours), (_, theirs)) in fields {
        assert_ne!(ours, theirs, "the sample does not try {name}");
    }
}

/// Panics with the name of the first encoded field that differs between `actual` and `expected`.
fn assert_same<T: AgentFieldEncodingForTests>(actual: &T, expected: &T) {
    for (actual, expected) in actual.encoded_fields().into_iter().zip(expected.encoded_fields()) {
        assert_eq!(actual, expected);
    }
}

#[test]
fn sample_request_changes_every_encoded_field() {
    let (ours, other) = (request().options, RequestOptions::default());
    assert_all_differ(&ours, &other);
    assert_all_differ(&ours.auth, &other.auth);
    assert_all_differ(&ours.auth.allowed, &other.auth.allowed);
    assert_all_differ(&ours.curl_compat, &other.curl_compat);
    assert_all_differ(&ours.redirects, &RedirectRules::default());
    assert_all_differ(&ours.retry, &RetryRules::default());
    assert_all_differ(&ours.speed_limit.unwrap(), &SpeedLimit { bytes_per_second: 0, time: Duration::ZERO });
    assert_all_differ(&ours.stall.unwrap(), &StallLimit { time: Duration::ZERO, awaits_head: false });
    assert_all_differ(&ours.connect, &other.connect);
    assert_all_differ(
        &ours.connect.keepalive.unwrap(),
        &TcpKeepalive { idle: Duration::ZERO, interval: Duration::ZERO, count: None },
    );
    assert_all_differ(&ours.connect_to[0], &ConnectToRule { host: None, port: None, to_host: None, to_port: None });
    assert_all_differ(&ours.decode_limits, &other.decode_limits);
    assert_all_differ(&ours.tls, &other.tls);
    assert_all_differ(&ours.tls.identity.unwrap(), &ClientCertificateFiles { certificate: "/other".into(), key: None });
    assert_all_differ(&ours.proxy.unwrap(), &ProxyOptions::default());
}

#[test]
fn request_survives_the_round_trip_field_by_field() {
    let bytes = request().to_bytes().expect("all of it can go by the agent");
    let again = AgentRequest::from_bytes(&bytes).expect("it was just written");
    assert_same(&again, &request());
    assert_same(&again.options, &request().options);
    assert_eq!(format!("{:?}", again.options), format!("{:?}", request().options));
    assert_eq!(again.to_bytes(), Some(bytes));
}

#[test]
fn truncated_or_extended_request_is_malformed() {
    let bytes = request().to_bytes().expect("all of it can go by the agent");
    for cut in 0..bytes.len() {
        assert!(AgentRequest::from_bytes(&bytes[..cut]).is_err(), "{cut}");
    }
    assert!(AgentRequest::from_bytes(&[&bytes[..], &[0]].concat()).is_err());
}

/// Checks that the seed of the fuzzer is a request that this version can decode; otherwise the
/// fuzzer would never reach the decoding of the fields. To write a new seed after a change of the
/// encoding, run the test with `UPDATE=1`.
#[test]
fn fuzz_seed_decodes_as_an_agent_request() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus/agent_frames/call");
    if std::env::var_os("UPDATE").is_some() {
        let files = vec![FileIdentity { path: "/a b".into(), metadata: [1, 2, 3, u64::MAX] }];
        let message = CallerMessage::Call { request: request().to_bytes().unwrap(), files };
        // The target cuts the frames after this many bytes.
        fs::write(path, [&[9][..], &message.to_frame()].concat()).unwrap();
    }
    let seed = fs::read(path).unwrap();
    // A frame is its length in four bytes, its kind in one, and its content.
    let message = CallerMessage::from_frame(seed[5], &seed[6..]).unwrap();
    let CallerMessage::Call { request, .. } = &message else { panic!("no call") };
    assert_eq!(AgentRequest::from_bytes(request).unwrap().to_bytes().as_ref(), Some(request));
    assert_eq!(message.to_frame(), seed[1..]);
}
