use std::sync::Arc;

use rustls::crypto::aws_lc_rs;
use rustls::version::{TLS12, TLS13};
use rustls::{ServerConfig, ServerConnection};
use rustls_pki_types::PrivatePkcs8KeyDer;

use super::super::{HandshakeStatus, TlsConnection, TlsContexts, TlsOptions};
use super::*;

const VERSIONS: [TlsVersion; 2] = [TlsVersion::V1_2, TlsVersion::V1_3];
const CHANGE_CIPHER_SPEC: u8 = 20;

/// A client after its handshake, and the key with which the server encrypts records.
struct ClientAndServerKey {
    client: TlsConnection,
    key: TlsRecordKey,
}

impl ClientAndServerKey {
    fn new(version: TlsVersion) -> Self {
        let key = rcgen::KeyPair::generate().unwrap();
        let certificate = rcgen::CertificateParams::new(["h.example".to_owned()]).unwrap().self_signed(&key).unwrap();
        let versions = [if version == TlsVersion::V1_2 { &TLS12 } else { &TLS13 }];
        let mut config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_protocol_versions(&versions)
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], PrivatePkcs8KeyDer::from(key.serialize_der()).into())
            .unwrap();
        (config.enable_secret_extraction, config.send_tls13_tickets) = (true, 0);
        let mut server = ServerConnection::new(Arc::new(config)).unwrap();
        let options = TlsOptions { verify: false, ..TlsOptions::default() };
        let mut client = TlsConnection::new(&TlsContexts::default().context(&options).unwrap(), "h.example").unwrap();
        let mut inbox = Vec::new();
        loop {
            let mut output = Vec::new();
            let status = client.handshake(&mut inbox, &mut output).unwrap();
            let mut wire = &output[..];
            while !wire.is_empty() {
                server.read_tls(&mut wire).unwrap();
                server.process_new_packets().unwrap();
            }
            while server.wants_write() {
                server.write_tls(&mut inbox).unwrap();
            }
            if status == HandshakeStatus::Done {
                break;
            }
        }
        assert!(inbox.is_empty());
        let secrets = server.dangerous_extract_secrets().unwrap();
        Self { client, key: TlsRecordKey::new(version, secrets.tx).unwrap() }
    }

    /// Passes a record with this type and content to the client.
    fn receive(&mut self, kind: u8, content: &[u8]) -> Result<OpenedTlsRecord> {
        let mut record = Vec::new();
        self.key.encrypt(kind, content, &mut record).unwrap();
        self.client.decrypt(&mut record)
    }

    fn control_output(&mut self) -> Vec<u8> {
        let mut output = Vec::new();
        self.client.take_control_output(&mut output);
        output
    }
}

/// Returns the error text of the last of these records. The client must accept the others.
fn refusal(version: TlsVersion, records: &[(u8, &[u8])]) -> String {
    let mut pair = ClientAndServerKey::new(version);
    let (&(kind, content), before) = records.split_last().unwrap();
    for &(kind, content) in before {
        assert!(pair.receive(kind, content).unwrap().payload.is_none());
    }
    let error = pair.receive(kind, content).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Receive, "{error}");
    error.to_string()
}

#[test]
fn alerts_that_end_nothing_are_ignored() {
    const WARNING: u8 = 1;
    const FATAL: u8 = 2;
    const USER_CANCELED: u8 = 90;
    const NO_RENEGOTIATION: u8 = 100;
    for version in VERSIONS {
        let mut pair = ClientAndServerKey::new(version);
        for level in [WARNING, FATAL] {
            assert_eq!(pair.receive(content::ALERT, &[level, USER_CANCELED]).unwrap().state, TlsInputState::Open);
        }
        assert!(refusal(version, &[(content::ALERT, &[FATAL, NO_RENEGOTIATION])]).contains("NoRenegotiation"));
        assert!(refusal(version, &[(content::ALERT, &[1, 0, 0])]).contains("a malformed alert"));
    }
    let mut pair = ClientAndServerKey::new(TlsVersion::V1_2);
    let warned = pair.receive(content::ALERT, &[WARNING, NO_RENEGOTIATION]).unwrap();
    assert_eq!((warned.payload, warned.state), (None, TlsInputState::Open));
    let refused = refusal(TlsVersion::V1_3, &[(content::ALERT, &[WARNING, NO_RENEGOTIATION])]);
    assert!(refused.contains("NoRenegotiation"), "TLS 1.3 has no warnings: {refused}");
}

#[test]
fn interrupted_and_empty_handshake_messages_are_refused() {
    for version in VERSIONS {
        let begun: (u8, &[u8]) = (content::HANDSHAKE, &[4, 0, 1, 0, 7]);
        for (kind, content) in
            [(content::APPLICATION_DATA, &b"x"[..]), (content::APPLICATION_DATA, b""), (content::ALERT, &[1, 90])]
        {
            assert!(refusal(version, &[begun, (kind, content)]).contains("a handshake message was interrupted"));
        }
        assert!(refusal(version, &[(content::HANDSHAKE, b"")]).contains("an empty handshake record"));
        assert!(refusal(version, &[(content::HANDSHAKE, &[99, 0, 0, 0])]).contains("a message that has no place here"));
    }
    let inside = refusal(TlsVersion::V1_3, &[(CHANGE_CIPHER_SPEC, &[1])]);
    assert!(inside.contains("a record of a kind that has no place here"), "{inside}");
}

#[test]
fn long_handshake_message_is_refused() {
    let mut record = vec![0; MAX_PLAIN];
    // The message announces 2^24 - 1 bytes.
    record[..4].copy_from_slice(&[4, 255, 255, 255]);
    let whole = MAX_MESSAGE / MAX_PLAIN;
    let mut records = vec![(content::HANDSHAKE, &record[..]); whole];
    records.push((content::HANDSHAKE, &[0]));
    assert!(refusal(TlsVersion::V1_3, &records).contains("a handshake message longer than allowed"));
}

#[test]
fn key_update_must_be_well_formed_and_last() {
    let update = |wants| [24, 0, 0, 1, wants];
    for malformed in [&update(2)[..], &[24, 0, 0, 2, 0, 0], &[24, 0, 0, 0], &[update(0), update(0)].concat()] {
        let refused = refusal(TlsVersion::V1_3, &[(content::HANDSHAKE, malformed)]);
        assert!(refused.contains("a message that has no place here"), "{malformed:?}: {refused}");
    }
    assert!(refusal(TlsVersion::V1_2, &[(content::HANDSHAKE, &update(0))]).contains("no place here"));
    for (wants, answers) in [(0, false), (1, true)] {
        let mut pair = ClientAndServerKey::new(TlsVersion::V1_3);
        pair.receive(content::HANDSHAKE, &update(wants)).unwrap();
        assert_eq!(!pair.control_output().is_empty(), answers, "{wants}");
    }
}

#[test]
fn renegotiation_is_declined() {
    let mut pair = ClientAndServerKey::new(TlsVersion::V1_2);
    assert_eq!(pair.receive(content::HANDSHAKE, &[0, 0, 0, 0]).unwrap().state, TlsInputState::Open);
    assert_eq!(pair.control_output()[0], content::ALERT);
    assert_eq!(pair.receive(content::APPLICATION_DATA, b"data").unwrap().state, TlsInputState::Open);
    assert!(refusal(TlsVersion::V1_3, &[(content::HANDSHAKE, &[0, 0, 0, 0])]).contains("no place here"));
}

#[test]
fn contents_of_records_are_bounded() {
    for version in VERSIONS {
        let mut pair = ClientAndServerKey::new(version);
        let (longest, before) = (vec![7; MAX_PLAIN], pair.key.sequence());
        let opened = pair.receive(content::APPLICATION_DATA, &longest).unwrap();
        assert_eq!(opened.payload.map(|range| range.len()), Some(MAX_PLAIN));
        assert_eq!(pair.key.sequence(), before + 1);
        let refused = refusal(version, &[(content::APPLICATION_DATA, &[7; MAX_PLAIN + 1])]);
        assert!(refused.contains("a record holds more than allowed"), "{refused}");
        let mut pair = ClientAndServerKey::new(version);
        for _ in 0..MAX_IDLE_RECORDS {
            assert_eq!(pair.receive(content::APPLICATION_DATA, b"").unwrap().payload, None);
        }
        pair.receive(content::APPLICATION_DATA, b"x").unwrap();
        for _ in 0..MAX_IDLE_RECORDS {
            pair.receive(content::APPLICATION_DATA, b"").unwrap();
        }
        let error = pair.receive(content::APPLICATION_DATA, b"").unwrap_err();
        assert!(error.to_string().contains("too many records without data"), "{error}");
    }
    assert!(refusal(TlsVersion::V1_3, &[(0, b"")]).contains("a record without a content type"));
}
