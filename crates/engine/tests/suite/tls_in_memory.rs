//! Tests of TLS against rustls' server, in memory: handshakes, verification, records in pieces of
//! any size, close_notify.

mod certificate_verification;
mod session_results;
mod tls_pair;

use std::io::Write;
use std::path::Path;

use haul::net::dns::AddressFamily;
use haul::net::pool::ConnectionKey;
use haul::net::tls::{Pem, SessionKey, TlsConnection, TlsContexts, TlsInputState, TlsOptions, TlsVersion};
use haul::{ErrorKind, RequestOptions, Target};
use tls_pair::{CertificateAuthority, ServerSetup, TlsPair, options};

const SUITES: [(&str, TlsVersion); 6] = [
    ("TLS13_AES_128_GCM_SHA256", TlsVersion::V1_3),
    ("TLS13_AES_256_GCM_SHA384", TlsVersion::V1_3),
    ("TLS13_CHACHA20_POLY1305_SHA256", TlsVersion::V1_3),
    ("TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256", TlsVersion::V1_2),
    ("TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384", TlsVersion::V1_2),
    ("TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256", TlsVersion::V1_2),
];

/// Returns `len` bytes without repetition, so that a test notices if TLS records are swapped or
/// lost.
fn pattern(len: usize) -> Vec<u8> {
    (0..len as u64).map(|place| (place.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) as u8).collect()
}

#[test]
fn every_cipher_suite_carries_data_both_ways() {
    let authority = CertificateAuthority::new();
    for (suite, version) in SUITES {
        for (piece, len) in [(1, 40_000), (7, 100_000), (5_000, 300_000), (usize::MAX, 300_000)] {
            let setup = ServerSetup { suite: Some(suite), ..ServerSetup::new(authority.issue("localhost")) };
            let mut pair = TlsPair::new(&setup, &options(&authority), "localhost");
            pair.piece = piece;
            pair.complete_handshake().unwrap();
            assert_eq!(pair.client.version(), Some(version));
            assert_eq!(pair.client.cipher(), Some(suite));
            let data = pattern(len);
            assert_eq!(pair.client_to_server(&data), data, "{suite} up, pieces of {piece}");
            assert_eq!(pair.server_to_client(&data).unwrap(), data, "{suite} down, pieces of {piece}");
            assert_eq!(pair.client_to_server(b"again"), b"again");
        }
    }
}

#[test]
fn fragmented_handshake_and_small_records_are_received() {
    let authority = CertificateAuthority::new();
    for version in [TlsVersion::V1_2, TlsVersion::V1_3] {
        let setup = ServerSetup {
            version: Some(version),
            fragment: Some(64),
            ..ServerSetup::new(authority.issue("localhost"))
        };
        for piece in [1, 3, 64, 1000] {
            let mut pair = TlsPair::new(&setup, &options(&authority), "localhost");
            pair.piece = piece;
            pair.complete_handshake().unwrap();
            let data = pattern(9_999);
            assert_eq!(pair.server_to_client(&data).unwrap(), data);
        }
    }
}

#[test]
fn server_data_before_handshake_end_is_delivered() {
    let authority = CertificateAuthority::new();
    for version in [TlsVersion::V1_2, TlsVersion::V1_3] {
        let setup = ServerSetup { version: Some(version), ..ServerSetup::new(authority.issue("localhost")) };
        let mut pair = TlsPair::new(&setup, &options(&authority), "localhost");
        // The server sends first, as HTTP/2 servers do; with TLS 1.3 even before it has the
        // client's Finished.
        pair.server.writer().write_all(b"settings").unwrap();
        pair.complete_handshake().unwrap();
        assert_eq!(pair.server_to_client(b" and more").unwrap(), b"settings and more");
    }
}

#[test]
fn close_notify_is_distinguished_from_plain_close() {
    let authority = CertificateAuthority::new();
    for version in [TlsVersion::V1_2, TlsVersion::V1_3] {
        let setup = ServerSetup { version: Some(version), ..ServerSetup::new(authority.issue("localhost")) };
        let mut pair = TlsPair::new(&setup, &options(&authority), "localhost");
        pair.complete_handshake().unwrap();
        pair.server_to_client(b"hello").unwrap();
        assert_eq!(pair.last_state, TlsInputState::NeedMore, "nothing said, so the end is not seen");
        pair.server.send_close_notify();
        assert_eq!(pair.server_to_client(b"").unwrap(), b"");
        assert_eq!(pair.last_state, TlsInputState::PeerClosed);
        let mut rest = *b"whatever follows";
        let opened = pair.client.decrypt(&mut rest).unwrap();
        assert_eq!((opened.consumed, opened.payload, opened.state), (rest.len(), None, TlsInputState::PeerClosed));

        let mut out = Vec::new();
        pair.client.close_notify(&mut out);
        let once = out.len();
        pair.client.close_notify(&mut out);
        assert_eq!(out.len(), once);
        assert!(pair.server_takes(&out).unwrap().peer_has_closed());
    }
}

#[test]
fn tls_key_updates_are_followed_and_answered() {
    let authority = CertificateAuthority::new();
    let mut pair = TlsPair::new(&ServerSetup::new(authority.issue("localhost")), &options(&authority), "localhost");
    pair.complete_handshake().unwrap();
    for round in 0..5 {
        pair.server.refresh_traffic_keys().unwrap();
        let data = pattern(20_000 + round);
        assert_eq!(pair.server_to_client(&data).unwrap(), data);
        // In even rounds the answer is sent alone, otherwise before the data.
        if round % 2 == 0 {
            let mut out = Vec::new();
            pair.client.take_control_output(&mut out);
            assert!(!out.is_empty(), "our own key update is due");
            pair.server_takes(&out).unwrap();
        }
        assert_eq!(pair.client_to_server(&data), data);
    }
    let mut out = Vec::new();
    pair.client.take_control_output(&mut out);
    assert!(out.is_empty());
}

#[test]
fn key_update_flood_is_refused() {
    let authority = CertificateAuthority::new();
    let mut pair = TlsPair::new(&ServerSetup::new(authority.issue("localhost")), &options(&authority), "localhost");
    pair.complete_handshake().unwrap();
    pair.server_to_client(b"tickets").unwrap();
    let mut answered = Vec::new();
    for _ in 0..3 {
        for _ in 0..20 {
            pair.server.refresh_traffic_keys().unwrap();
        }
        pair.server_to_client(b"data ends the row").unwrap();
        let before = answered.len();
        pair.client.take_control_output(&mut answered);
        assert_eq!(answered.len() - before, 5 + 5 + 1 + 16, "one record, however many were asked for");
    }
    pair.server_takes(&answered).unwrap();
    for _ in 0..65 {
        pair.server.refresh_traffic_keys().unwrap();
    }
    let error = pair.server_to_client(b"").unwrap_err();
    assert!(error.to_string().contains("too many records without data"), "{error}");
}

#[test]
fn every_changed_record_byte_is_detected() {
    let authority = CertificateAuthority::new();
    for (suite, _) in SUITES {
        let setup = ServerSetup { suite: Some(suite), ..ServerSetup::new(authority.issue("localhost")) };
        let mut sample = TlsPair::new(&setup, &options(&authority), "localhost");
        sample.complete_handshake().unwrap();
        sample.server_to_client(b"").unwrap();
        sample.server.writer().write_all(b"secret").unwrap();
        let places = sample.server_flight().len();
        for place in 0..places {
            let mut pair = TlsPair::new(&setup, &options(&authority), "localhost");
            pair.complete_handshake().unwrap();
            pair.server_to_client(b"").unwrap();
            pair.server.writer().write_all(b"secret").unwrap();
            let mut wire = pair.server_flight();
            wire[place] ^= 0x10;
            match pair.client.decrypt(&mut wire) {
                // A longer record length: the client waits for bytes that never arrive.
                Ok(opened) => assert!(
                    matches!(place, 3 | 4) && opened.state == TlsInputState::NeedMore,
                    "{suite}: byte {place} changed unseen: {opened:?}"
                ),
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::Receive);
                    assert!(pair.client.decrypt(&mut wire).is_err(), "it stays broken");
                    let mut alert = Vec::new();
                    pair.client.take_control_output(&mut alert);
                    let told = pair.server_takes(&alert).unwrap_err().to_string();
                    assert!(told.contains("alert"), "{told}");
                }
            }
        }
    }
}

#[test]
fn tls_alert_instead_of_data_is_an_error() {
    let authority = CertificateAuthority::new();
    for version in [TlsVersion::V1_2, TlsVersion::V1_3] {
        let setup = ServerSetup { version: Some(version), ..ServerSetup::new(authority.issue("localhost")) };
        let mut pair = TlsPair::new(&setup, &options(&authority), "localhost");
        pair.complete_handshake().unwrap();
        pair.server_to_client(b"").unwrap();
        // Garbage makes the server send a fatal alert.
        let mut garbage = [0; 37];
        garbage[..5].copy_from_slice(&[23, 3, 3, 0, 32]);
        assert!(pair.server_takes(&garbage).is_err());
        let mut flight = pair.server_flight();
        let error = pair.client.decrypt(&mut flight).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Receive);
        assert!(error.to_string().ends_with("alert: BadRecordMac"), "{error}");
    }
}

#[test]
fn session_is_not_resumed_on_another_port() {
    let authority = CertificateAuthority::new();
    let setup = ServerSetup::new(authority.issue("localhost"));
    let (contexts, config, options) = (TlsContexts::default(), setup.config(), options(&authority));
    let context = contexts.context(&options).unwrap();
    let place = |port| SessionKey {
        zone: None,
        host: "localhost".into(),
        port,
        dial: ("localhost".into(), port),
        family: AddressFamily::Any,
        via: haul::net::proxy::ProxyRoute::Direct,
        connect: haul::net::happy_eyeballs::ConnectOptions::default(),
    };
    for (port, resumed) in [(443, false), (443, true), (8443, false), (443, true), (8443, true)] {
        let mut pair = TlsPair::with(&config, &contexts, &options, "localhost");
        pair.client = TlsConnection::new(&context.for_server(place(port)), "localhost").unwrap();
        pair.complete_handshake().unwrap();
        assert_eq!(pair.server_to_client(b"tickets").unwrap(), b"tickets");
        assert_eq!(pair.client.resumed(), resumed, "{port}");
    }
}

#[test]
fn sessions_are_resumed_with_equal_settings() {
    let authority = CertificateAuthority::new();
    for version in [TlsVersion::V1_2, TlsVersion::V1_3] {
        let setup = ServerSetup { version: Some(version), ..ServerSetup::new(authority.issue("localhost")) };
        let contexts = TlsContexts::default();
        let config = setup.config();
        for number in 0..3 {
            let mut pair = TlsPair::with(&config, &contexts, &options(&authority), "localhost");
            pair.complete_handshake().unwrap();
            assert_eq!(pair.server_to_client(b"tickets").unwrap(), b"tickets");
            assert_eq!(pair.client.resumed(), number > 0, "{version:?}, connection {number}");
            assert_eq!(pair.client_to_server(b"thanks"), b"thanks");
        }
        let mut other = options(&authority);
        other.verify = false;
        let mut pair = TlsPair::with(&config, &contexts, &other, "localhost");
        pair.complete_handshake().unwrap();
        assert!(!pair.client.resumed(), "other settings, other tickets");
    }
}

#[test]
fn alpn_and_sni_follow_the_options() {
    let authority = CertificateAuthority::new();
    let setup = ServerSetup { alpn: vec![b"http/1.1".to_vec()], ..ServerSetup::new(authority.issue("localhost")) };
    let mut offer = options(&authority);
    offer.alpn = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let mut pair = TlsPair::new(&setup, &offer, "localhost.");
    pair.complete_handshake().unwrap();
    assert_eq!(pair.client.alpn(), Some(&b"http/1.1"[..]));
    assert_eq!(pair.server.server_name(), Some("localhost"));

    let mut quiet = options(&authority);
    quiet.sni = false;
    let mut pair = TlsPair::new(&setup, &quiet, "localhost");
    pair.complete_handshake().unwrap();
    assert_eq!(pair.client.alpn(), None);
    assert_eq!(pair.server.server_name(), None);

    offer.alpn = vec![b"h2".to_vec()];
    let error = TlsPair::new(&setup, &offer, "localhost").complete_handshake().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TlsHandshake);
}

#[test]
fn certificate_of_unknown_issuer_is_refused() {
    let (authority, stranger) = (CertificateAuthority::new(), CertificateAuthority::named("a stranger"));
    let setup = ServerSetup::new(stranger.issue("localhost"));
    let mut pair = TlsPair::new(&setup, &options(&authority), "localhost");
    let error = pair.complete_handshake().unwrap_err();
    assert_eq!((error.kind(), error.exit_code()), (ErrorKind::PeerCertificate, 60));
    assert!(error.to_string().contains("no trusted certificate has signed it"), "{error}");
    let alert = std::mem::take(&mut pair.to_server);
    let told = pair.server_takes(&alert).unwrap_err().to_string();
    assert!(told.contains("UnknownCA"), "the server is told by an alert: {told}");
    assert!(pair.client.encrypt(b"secret", &mut Vec::new()).is_err());

    let mut anyone = options(&authority);
    anyone.verify = false;
    TlsPair::new(&setup, &anyone, "localhost").complete_handshake().unwrap();
}

#[test]
fn certificate_for_another_name_is_refused() {
    let authority = CertificateAuthority::new();
    let setup = ServerSetup::new(authority.issue("localhost"));
    for name in ["other.test", "127.0.0.1"] {
        let error = TlsPair::new(&setup, &options(&authority), name).complete_handshake().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::PeerCertificate, "{name}");
    }
    let setup = ServerSetup::new(authority.issue("127.0.0.1"));
    TlsPair::new(&setup, &options(&authority), "127.0.0.1").complete_handshake().unwrap();
}

#[test]
fn certificate_in_the_ca_file_is_trusted() {
    for is_ca in [true, false] {
        for expired in [false, true] {
            let own = tls_pair::self_signed("localhost", is_ca, expired);
            let setup = ServerSetup::new(own.identity());
            let error = TlsPair::new(&setup, &options(&CertificateAuthority::new()), "localhost")
                .complete_handshake()
                .unwrap_err();
            assert_eq!(error.kind(), ErrorKind::PeerCertificate, "not listed");
            let trusting = own.trusted();
            let shaken = TlsPair::new(&setup, &trusting, "localhost").complete_handshake();
            if expired {
                let error = shaken.unwrap_err();
                assert_eq!(error.kind(), ErrorKind::PeerCertificate);
                assert!(error.to_string().contains("expired"), "{error}");
            } else {
                shaken.unwrap();
            }
            let error = TlsPair::new(&setup, &trusting, "other.test").complete_handshake().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::PeerCertificate, "listed, but for another name");
        }
    }
    // A certificate of an unknown issuer, listed itself.
    let issued = CertificateAuthority::named("unknown").issue("localhost");
    let trusting = issued.trusted();
    TlsPair::new(&ServerSetup::new(issued), &trusting, "localhost").complete_handshake().unwrap();
}

#[test]
fn common_name_is_used_only_if_allowed_without_alternatives() {
    let authority = CertificateAuthority::new();
    let shake = |identity: tls_pair::ServerIdentity, trust: TlsOptions, common_name, name| {
        let mut options = trust;
        options.common_name = common_name;
        let shaken = TlsPair::new(&ServerSetup::new(identity), &options, name).complete_handshake();
        shaken.map(|_| ()).map_err(|error| error.kind())
    };
    let refused = Err(ErrorKind::PeerCertificate);
    let by_subject = || authority.issue_by_subject("server.test", &[]);
    assert_eq!(shake(by_subject(), options(&authority), true, "server.test"), Ok(()));
    assert_eq!(shake(by_subject(), options(&authority), false, "server.test"), refused);
    assert_eq!(shake(by_subject(), options(&authority), true, "other.test"), refused);
    assert_eq!(shake(by_subject(), options(&CertificateAuthority::named("other")), true, "server.test"), refused);
    // The certificate is listed itself.
    assert_eq!(shake(by_subject(), by_subject().trusted(), true, "server.test"), refused);
    let own = by_subject();
    let trusted = own.trusted();
    assert_eq!(shake(own.clone(), trusted.clone(), true, "server.test"), Ok(()));
    assert_eq!(shake(own, trusted, true, "other.test"), refused);
    let with_another = authority.issue_by_subject("server.test", &["other.test"]);
    assert_eq!(shake(with_another, options(&authority), true, "server.test"), refused);
    // An authority with name constraints cannot vouch for a common name, which no constraint
    // covers.
    let bound = CertificateAuthority::bound_to("example.test");
    assert_eq!(shake(bound.issue_by_subject("server.test", &[]), options(&bound), true, "server.test"), refused);
}

#[test]
fn unverified_peer_must_still_prove_its_private_key() {
    let authority = CertificateAuthority::new();
    let stolen = authority.issue("localhost").with_other_key();
    let mut anyone = TlsOptions::default();
    anyone.verify = false;
    for version in [TlsVersion::V1_2, TlsVersion::V1_3] {
        let setup = ServerSetup { version: Some(version), ..ServerSetup::new(stolen.clone()) };
        let error = TlsPair::new(&setup, &anyone, "localhost").complete_handshake().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::PeerCertificate);
    }
}

#[test]
fn unusable_ca_files_are_errors() {
    let directory = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = directory.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    let broken = "-----BEGIN CERTIFICATE-----\n????\n-----END CERTIFICATE-----\n";
    let hollow = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    for path in [
        directory.path().join("missing"),
        directory.path().to_owned(),
        write("empty", ""),
        write("text", "not a certificate"),
        write("broken", broken),
        write("hollow", hollow),
    ] {
        let mut options = TlsOptions::default();
        options.ca_file = Some(path.clone());
        let error = TlsContexts::default().context(&options).unwrap_err();
        assert_eq!((error.kind(), error.exit_code()), (ErrorKind::CaFile, 77), "{path:?}");
        options.verify = false;
        assert!(TlsContexts::default().context(&options).is_ok(), "not read when nothing is verified");
    }
    for pem in ["", "not a certificate", broken, hollow] {
        let mut options = TlsOptions::default();
        options.ca_pem = Some(Pem::new(pem.as_bytes()));
        let error = TlsContexts::default().context(&options).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::CaFile, "{pem}");
        assert!(error.to_string().contains("memory"), "{error}");
    }
    let mut options = TlsOptions::default();
    options.ca_path = Some(Path::new("/nonexistent/directory").to_owned());
    assert_eq!(TlsContexts::default().context(&options).unwrap_err().kind(), ErrorKind::CaFile);
}

#[test]
fn unsupported_tls_versions_are_errors() {
    let authority = CertificateAuthority::new();
    let setup = ServerSetup { version: Some(TlsVersion::V1_2), ..ServerSetup::new(authority.issue("localhost")) };
    let mut new_only = options(&authority);
    new_only.min_version = TlsVersion::V1_3;
    let error = TlsPair::new(&setup, &new_only, "localhost").complete_handshake().unwrap_err();
    assert_eq!((error.kind(), error.exit_code()), (ErrorKind::TlsHandshake, 35));
    new_only.max_version = TlsVersion::V1_2;
    assert_eq!(TlsContexts::default().context(&new_only).unwrap_err().kind(), ErrorKind::Setup);
}

#[test]
fn non_tls_peers_are_handshake_errors() {
    let authority = CertificateAuthority::new();
    let setup = ServerSetup::new(authority.issue("localhost"));
    let hostile: [&[u8]; 6] = [
        b"HTTP/1.1 400 Bad Request\r\n\r\n",
        &[0; 64],
        &[22, 3, 3, 255, 255, 0, 0, 0],
        &[22, 3, 3, 0, 0],
        &[21, 3, 3, 0, 2, 2, 40],
        &[23, 3, 3, 0, 1, 0],
    ];
    for bytes in hostile {
        let mut pair = TlsPair::new(&setup, &options(&authority), "localhost");
        let mut out = Vec::new();
        pair.client.handshake(&mut Vec::new(), &mut out).unwrap();
        let error = pair.client.handshake(&mut bytes.to_vec(), &mut out).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TlsHandshake, "{bytes:?}");
        assert!(pair.client.handshake(&mut Vec::new(), &mut out).is_err(), "it stays failed");
    }
}

#[test]
fn illegal_records_are_receive_errors() {
    let authority = CertificateAuthority::new();
    for (version, hostile) in [
        (TlsVersion::V1_3, &[23, 3, 3, 0x41, 1][..]),
        (TlsVersion::V1_2, &[23, 3, 3, 0x48, 1]),
        (TlsVersion::V1_3, &[20, 3, 3, 0, 1, 1]),
        (TlsVersion::V1_2, &[20, 3, 3, 0, 1, 1]),
        (TlsVersion::V1_3, &[21, 3, 3, 0, 2, 1, 0]),
        (TlsVersion::V1_2, &[21, 3, 3, 0, 2, 1, 0]),
        (TlsVersion::V1_3, &[23, 3, 3, 0, 0]),
        (TlsVersion::V1_2, &[23, 3, 3, 0, 7, 0, 0, 0, 0, 0, 0, 0]),
    ] {
        let setup = ServerSetup { version: Some(version), ..ServerSetup::new(authority.issue("localhost")) };
        let mut pair = TlsPair::new(&setup, &options(&authority), "localhost");
        pair.complete_handshake().unwrap();
        pair.server_to_client(b"").unwrap();
        let error = pair.client.decrypt(&mut hostile.to_vec()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Receive, "{hostile:?}");
    }
}

#[test]
fn tls_context_reads_its_ca_file_once() {
    let authority = CertificateAuthority::new();
    let contexts = TlsContexts::default();
    let first = contexts.context(&options(&authority)).unwrap();
    // The file was read once and may be removed.
    authority.forget_file();
    let mut other = options(&authority);
    other.alpn = vec![b"h2".to_vec()];
    contexts.context(&other).unwrap();
    drop((first, contexts.context(&options(&authority)).unwrap()));
}

#[test]
fn session_tickets_are_separate_by_port_and_connect_to() {
    let mut options = RequestOptions::default();
    let key =
        |url: &str, options: &RequestOptions| ConnectionKey::new(&Target::parse(url).unwrap(), options).session_key();
    let plain = key("https://a.test/", &options);
    assert_eq!(plain, key("https://A.test:443/x", &options));
    assert_ne!(plain, key("https://a.test:8443/", &options));
    assert_ne!(plain, key("https://b.test/", &options));
    let detour = haul::request::ConnectToRule { host: None, port: None, to_host: Some("c.test".into()), to_port: None };
    options.connect_to.push(detour);
    assert_ne!(plain, key("https://a.test/", &options));
}
