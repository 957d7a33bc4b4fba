//! Tests of the results of a handshake, of the limits of records, and of kept session tickets.

use std::sync::Arc;

use haul::ErrorKind;
use haul::net::dns::AddressFamily;
use haul::net::tls::{SessionKey, TlsConnection, TlsContexts, TlsInputState, TlsVersion};
use rustls::{HandshakeKind, NamedGroup};

use super::tls_pair::{CertificateAuthority, ServerSetup, TlsPair, options};

fn server() -> SessionKey {
    SessionKey {
        zone: None,
        host: "localhost".into(),
        port: 443,
        dial: ("localhost".into(), 443),
        family: AddressFamily::Any,
        via: haul::net::proxy::ProxyRoute::Direct,
        connect: haul::net::happy_eyeballs::ConnectOptions::default(),
    }
}

#[test]
fn server_certificates_are_kept_only_on_request() {
    let authority = CertificateAuthority::new();
    let identity = authority.issue("localhost").shown_with(&authority);
    let (leaf, issuer) = (identity.der(), authority.der());
    let setup = ServerSetup::new(identity);
    let mut keeping = options(&authority);
    keeping.keep_certificates = true;
    for (options, expected) in [(options(&authority), None), (keeping, Some(vec![leaf.to_vec(), issuer.to_vec()]))] {
        let mut pair = TlsPair::new(&setup, &options, "localhost");
        assert_eq!(pair.client.certificates(), None, "before the handshake");
        pair.complete_handshake().unwrap();
        assert_eq!(pair.client.certificates().map(|all| all.to_vec()), expected);
        assert_eq!(pair.client.certificate_fault(), None);
    }
}

#[test]
fn connection_is_certified_for_names_of_its_certificate() {
    let authority = CertificateAuthority::new();
    let setup = ServerSetup::new(authority.issue_by_subject("x", &["localhost", "*.example.test", "127.0.0.1"]));
    let mut pair = TlsPair::new(&setup, &options(&authority), "localhost");
    assert!(!pair.client.is_certified_for("localhost"), "before the handshake");
    pair.complete_handshake().unwrap();
    for (host, is_certified) in [
        ("localhost", true),
        ("localhost.", true),
        ("www.example.test", true),
        ("127.0.0.1", true),
        ("example.test", false),
        ("x", false),
        ("[::1]", false),
        ("", false),
    ] {
        assert_eq!(pair.client.is_certified_for(host), is_certified, "{host}");
    }
}

#[test]
fn examined_certificate_fault_is_reported() {
    let (authority, stranger) = (CertificateAuthority::new(), CertificateAuthority::named("a stranger"));
    let mut examining = options(&authority);
    (examining.verify, examining.examine) = (false, true);
    for (issuer, name, expected) in [
        (&authority, "localhost", None),
        (&authority, "other.test", None),
        (&stranger, "localhost", Some("no trusted certificate has signed it")),
    ] {
        let mut pair = TlsPair::new(&ServerSetup::new(issuer.issue(name)), &examining, "localhost");
        assert_eq!(pair.client.certificate_fault(), None, "before the handshake");
        pair.complete_handshake().unwrap();
        assert_eq!(pair.client.certificate_fault(), expected, "{name}");
    }
}

#[test]
fn debug_text_of_connection_names_its_phase() {
    let authority = CertificateAuthority::new();
    let mut pair = TlsPair::new(&ServerSetup::new(authority.issue("localhost")), &options(&authority), "localhost");
    let begun = format!("{:?}", pair.client);
    assert!(begun.contains("\"handshake\"") && begun.contains("None"), "{begun}");
    pair.complete_handshake().unwrap();
    let open = format!("{:?}", pair.client);
    assert!(open.contains("\"open\"") && open.contains("V1_3"), "{open}");
    pair.client.decrypt(&mut [0; 5]).unwrap_err();
    assert!(format!("{:?}", pair.client).contains("\"failed\""));
}

#[test]
fn record_of_the_greatest_length_is_awaited() {
    let authority = CertificateAuthority::new();
    for (version, greatest) in [(TlsVersion::V1_3, (1_u16 << 14) + 256), (TlsVersion::V1_2, (1 << 14) + 2048)] {
        let setup = ServerSetup { version: Some(version), ..ServerSetup::new(authority.issue("localhost")) };
        let mut pair = TlsPair::new(&setup, &options(&authority), "localhost");
        pair.complete_handshake().unwrap();
        pair.server_to_client(b"").unwrap();
        let header = |length: u16| [&[23, 3, 3][..], &length.to_be_bytes()].concat();
        let opened = pair.client.decrypt(&mut header(greatest)).unwrap();
        assert_eq!((opened.consumed, opened.payload, opened.state), (0, None, TlsInputState::NeedMore));
        let error = pair.client.decrypt(&mut header(greatest + 1)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Receive);
        assert!(error.to_string().contains("longer than allowed"), "{error}");
    }
}

#[test]
fn at_most_eight_tls13_tickets_are_kept() {
    let authority = CertificateAuthority::new();
    let mut config = (*ServerSetup::new(authority.issue("localhost")).config()).clone();
    config.send_tls13_tickets = 12;
    let (config, contexts, options) = (Arc::new(config), TlsContexts::default(), options(&authority));
    let context = contexts.context(&options).unwrap().for_server(server());
    let connect = || {
        let mut pair = TlsPair::with(&config, &contexts, &options, "localhost");
        pair.client = TlsConnection::new(&context, "localhost").unwrap();
        pair.complete_handshake().unwrap();
        pair
    };
    assert_eq!(connect().server_to_client(b"tickets").unwrap(), b"tickets");
    // The later connections do not read the tickets that the server sends them.
    let resumed: Vec<bool> = (0..9).map(|_| connect().client.resumed()).collect();
    assert_eq!(resumed, [[true; 8].as_slice(), &[false]].concat());
}

#[test]
fn tls12_session_of_a_server_is_resumed() {
    let authority = CertificateAuthority::new();
    let setup = ServerSetup { version: Some(TlsVersion::V1_2), ..ServerSetup::new(authority.issue("localhost")) };
    let (config, contexts, options) = (setup.config(), TlsContexts::default(), options(&authority));
    let context = contexts.context(&options).unwrap().for_server(server());
    for resumed in [false, true, true] {
        let mut pair = TlsPair::with(&config, &contexts, &options, "localhost");
        pair.client = TlsConnection::new(&context, "localhost").unwrap();
        pair.complete_handshake().unwrap();
        assert_eq!(pair.client.resumed(), resumed);
    }
}

#[test]
fn next_handshake_begins_with_the_group_of_the_last() {
    let authority = CertificateAuthority::new();
    let setup = ServerSetup { group: Some(NamedGroup::secp384r1), ..ServerSetup::new(authority.issue("localhost")) };
    let mut config = (*setup.config()).clone();
    config.send_tls13_tickets = 0;
    let (config, contexts, options) = (Arc::new(config), TlsContexts::default(), options(&authority));
    let context = contexts.context(&options).unwrap().for_server(server());
    for expected in [HandshakeKind::FullWithHelloRetryRequest, HandshakeKind::Full] {
        let mut pair = TlsPair::with(&config, &contexts, &options, "localhost");
        pair.client = TlsConnection::new(&context, "localhost").unwrap();
        pair.complete_handshake().unwrap();
        assert_eq!(pair.server.handshake_kind(), Some(expected));
    }
}

#[test]
fn session_facts_have_standard_names() {
    let authority = CertificateAuthority::new();
    let mut pair = TlsPair::new(&ServerSetup::new(authority.issue("localhost")), &options(&authority), "localhost");
    assert_eq!((pair.client.version(), pair.client.cipher(), pair.client.alpn()), (None, None, None));
    assert!(!pair.client.resumed());
    pair.complete_handshake().unwrap();
    assert_eq!(pair.client.version().map(TlsVersion::name), Some("TLSv1.3"));
    assert_eq!(TlsVersion::V1_2.name(), "TLSv1.2");
}
