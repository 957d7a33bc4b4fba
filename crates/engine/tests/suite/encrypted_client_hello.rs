//! Tests of Encrypted Client Hello with servers that do not know the key. The tests of the command
//! use servers that know it.

use crate::common;

use common::{DRIVERS, DriverKind, FetchOutcome, retrying, trusting_ca, with_h2_alpn};
use haul::net::dns::ChosenDnsServers;
use haul::net::tls::{EchOptions, EchPolicy, TlsVersion};
use haul::request::Http3Policy;
use haul::{Client, ErrorKind, RequestOptions};
use tempfile::NamedTempFile;
use testkit::dns_server::{DnsServer, HttpsRecordData};
use testkit::http3::Http3Settings;
use testkit::origin::Origin;
use testkit::test_certificates::TestCertificates;

/// An origin without keys for Encrypted Client Hello, and options that trust its certificate.
struct OriginWithoutEch {
    origin: Origin,
    options: RequestOptions,
    _ca: NamedTempFile,
}

impl OriginWithoutEch {
    fn start(http3: Http3Policy) -> Self {
        let identity = TestCertificates::for_names(&["web.example", "public.example"]);
        let builder = Origin::builder().http2(100).http3(Http3Settings::new()).identity(identity);
        let origin = builder.start().expect("an origin");
        let (options, ca) = trusting_ca(origin.ca_pem());
        let options = RequestOptions { http3, retry: retrying(0).retry, ..with_h2_alpn(options) };
        Self { origin, options, _ca: ca }
    }

    /// Fetches a page of `web.example`. Its HTTPS record contains the ECH keys `record`.
    fn get(&self, driver: DriverKind, ech: EchOptions, record: Vec<u8>) -> FetchOutcome {
        let dns = DnsServer::start(move |query| {
            let record = HttpsRecordData { ech: record.clone(), ..HttpsRecordData::with_alpn("h2") };
            match query.record_type {
                65 => vec![query.https(&[record])],
                _ => vec![query.addresses(&["127.0.0.1".parse().unwrap()])],
            }
        })
        .unwrap();
        let client = Client::new();
        client.resolver().use_servers(&ChosenDnsServers::parse(&dns.address().to_string()).unwrap());
        let mut options = self.options.clone();
        options.tls.ech = ech;
        driver.get(&client, &format!("https://web.example:{}/small", self.origin.https_addr().port()), &options)
    }
}

fn ech(policy: EchPolicy, config_list: Option<Vec<u8>>) -> EchOptions {
    let mut ech = EchOptions::default();
    (ech.policy, ech.config_list) = (policy, config_list);
    ech
}

/// Returns an ECHConfigList with one X25519 key (RFC 9849 section 4).
fn config_list(public_name: &str) -> Vec<u8> {
    let mut contents = vec![7, 0, 0x20, 0, 32];
    contents.extend([9; 32]);
    contents.extend([0, 4, 0, 1, 0, 1, 0, public_name.len() as u8]);
    contents.extend(public_name.as_bytes());
    contents.extend([0, 0]);
    let length = |bytes: &[u8]| (bytes.len() as u16).to_be_bytes();
    let config = [&[0xfe, 0x0d][..], &length(&contents), &contents].concat();
    [&length(&config)[..], &config].concat()
}

/// The policies with which the tests of both transports run.
const HTTP3_POLICIES: &[Http3Policy] =
    if cfg!(feature = "http3") { &[Http3Policy::Off, Http3Policy::Only] } else { &[Http3Policy::Off] };

#[test]
fn rejected_encrypted_client_hello_is_an_error() {
    let keys = config_list("public.example");
    for &http3 in HTTP3_POLICIES {
        let site = OriginWithoutEch::start(http3);
        for driver in DRIVERS {
            for (policy, given, record) in [
                (EchPolicy::Require, Some(keys.clone()), Vec::new()),
                (EchPolicy::Try, Some(keys.clone()), Vec::new()),
                (EchPolicy::Try, None, keys.clone()),
                (EchPolicy::Require, None, keys.clone()),
            ] {
                let got = site.get(driver, ech(policy, given), record);
                let facts = (got.kind, got.exit);
                assert_eq!(
                    facts,
                    (Some(ErrorKind::EchRequired), 101),
                    "{driver:?} {http3:?} {policy:?}: {}",
                    got.message
                );
            }
        }
    }
}

#[test]
fn ech_rejection_with_wrong_certificate_is_refused() {
    let site = OriginWithoutEch::start(Http3Policy::Off);
    for driver in DRIVERS {
        let keys = Some(config_list("elsewhere.example"));
        let got = site.get(driver, ech(EchPolicy::Require, keys), Vec::new());
        assert_eq!(got.kind, Some(ErrorKind::PeerCertificate), "{driver:?}: {}", got.message);
    }
}

#[test]
fn grease_ech_is_accepted_by_every_server() {
    for &http3 in HTTP3_POLICIES {
        let site = OriginWithoutEch::start(http3);
        for driver in DRIVERS {
            let got = site.get(driver, ech(EchPolicy::Grease, None), Vec::new());
            assert_eq!(got.ok(), b"small\n", "{driver:?} {http3:?}");
        }
    }
}

#[test]
fn missing_ech_key_is_an_error_only_if_required() {
    let site = OriginWithoutEch::start(Http3Policy::Off);
    for driver in DRIVERS {
        // The second list has a key of an unknown version.
        for (given, record) in [(None, Vec::new()), (Some(vec![0, 4, 0xfe, 0x0a, 0, 0]), Vec::new()), (None, vec![1])] {
            let got = site.get(driver, ech(EchPolicy::Try, given.clone()), record.clone());
            assert_eq!(got.ok(), b"small\n", "{driver:?} {given:?}");
            let got = site.get(driver, ech(EchPolicy::Require, given), record);
            assert_eq!((got.kind, got.exit), (Some(ErrorKind::TlsHandshake), 35), "{driver:?}: {}", got.message);
        }
    }
}

#[test]
fn encrypted_client_hello_needs_tls13() {
    let mut site = OriginWithoutEch::start(Http3Policy::Off);
    site.options.tls.max_version = TlsVersion::V1_2;
    let got = site.get(DriverKind::Blocking, ech(EchPolicy::Grease, None), Vec::new());
    assert_eq!(got.kind, Some(ErrorKind::Setup), "{}", got.message);
}
