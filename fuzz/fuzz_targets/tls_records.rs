//! Fuzzes the records of a TLS server that has our keys: data arrives unchanged, whatever other
//! records come between and however the input is cut; an invalid record ends the connection.
//!
//! The first byte selects the version and the size of the pieces. Each operation is a byte: a kind
//! of record, or raw bytes.
#![no_main]

use std::sync::{Arc, LazyLock};

use aws_lc_rs::aead::{AES_128_GCM, AES_256_GCM, Aad, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey};
use haul::net::tls::{HandshakeStatus, TlsConnection, TlsContext, TlsContexts, TlsInputState, TlsOptions};
use libfuzzer_sys::fuzz_target;
use rustls::crypto::aws_lc_rs as provider;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::server::NoServerSessionStorage;
use rustls::version::{TLS12, TLS13};
use rustls::{ConnectionTrafficSecrets, ServerConfig, ServerConnection};

const DATA: u8 = 23;

struct TlsPeers {
    server: Arc<ServerConfig>,
    client: Arc<TlsContext>,
}

static ENDS: LazyLock<[TlsPeers; 2]> = LazyLock::new(|| [ends(&TLS13), ends(&TLS12)]);

fn ends(version: &'static rustls::SupportedProtocolVersion) -> TlsPeers {
    let made = rcgen::generate_simple_self_signed(vec!["a.example".to_owned()]).expect("a certificate");
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(made.signing_key.serialize_der()));
    let mut provider = provider::default_provider();
    // Of TLS 1.2 the layout with a nonce in each record.
    provider.cipher_suites.retain(|suite| *version == TLS13 || format!("{suite:?}").contains("GCM"));
    let mut server = ServerConfig::builder_with_provider(Arc::new(provider))
        .with_protocol_versions(&[version])
        .expect("a version")
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .expect("its key");
    server.enable_secret_extraction = true;
    server.send_tls13_tickets = 0;
    server.session_storage = Arc::new(NoServerSessionStorage {});
    let mut options = TlsOptions::default();
    options.verify = false;
    TlsPeers { server: Arc::new(server), client: TlsContexts::default().context(&options).expect("a context") }
}

/// Encrypts records as the server of an established TLS connection does.
struct TlsRecordSealer {
    key: LessSafeKey,
    iv: [u8; 12],
    sequence: u64,
    is_v12: bool,
}

impl TlsRecordSealer {
    /// Returns one encrypted record; in TLS 1.3, padding hides its length.
    fn seal(&mut self, kind: u8, content: &[u8], padding: usize) -> Vec<u8> {
        let sequence = self.sequence.to_be_bytes();
        self.sequence += 1;
        let (mut nonce, mut inner) = (self.iv, content.to_vec());
        let (outer, explicit): (u8, &[u8]) = if self.is_v12 {
            nonce[4..].copy_from_slice(&sequence);
            (kind, &sequence)
        } else {
            nonce[4..].iter_mut().zip(sequence).for_each(|(byte, mask)| *byte ^= mask);
            inner.push(kind);
            inner.resize(inner.len() + padding, 0);
            (DATA, &[])
        };
        let length = (explicit.len() + inner.len() + 16) as u16;
        let header = [&[outer, 3, 3][..], &length.to_be_bytes()].concat();
        let aad = match self.is_v12 {
            true => [&sequence[..], &header[..3], &(inner.len() as u16).to_be_bytes()].concat(),
            false => header.clone(),
        };
        let nonce = Nonce::assume_unique_for_key(nonce);
        self.key.seal_in_place_append_tag(nonce, Aad::from(aad), &mut inner).expect("a short record");
        [&header[..], explicit, &inner].concat()
    }
}

fn established(ends: &TlsPeers, is_v12: bool) -> (TlsConnection, TlsRecordSealer) {
    let mut client = TlsConnection::new(&ends.client, "a.example").expect("a client");
    let mut server = ServerConnection::new(Arc::clone(&ends.server)).expect("a server");
    let (mut inbox, mut flight) = (Vec::new(), Vec::new());
    while client.handshake(&mut inbox, &mut flight).expect("a handshake") != HandshakeStatus::Done || !flight.is_empty()
    {
        server.read_tls(&mut &*flight).expect("all of it");
        flight.clear();
        server.process_new_packets().expect("a handshake");
        while server.wants_write() {
            server.write_tls(&mut inbox).expect("memory");
        }
    }
    let (sequence, secrets) = server.dangerous_extract_secrets().expect("they were asked for").tx;
    let (algorithm, key, iv) = match secrets {
        ConnectionTrafficSecrets::Aes128Gcm { key, iv } => (&AES_128_GCM, key, iv),
        ConnectionTrafficSecrets::Aes256Gcm { key, iv } => (&AES_256_GCM, key, iv),
        ConnectionTrafficSecrets::Chacha20Poly1305 { key, iv } => (&CHACHA20_POLY1305, key, iv),
        _ => unreachable!("no other is offered"),
    };
    let key = LessSafeKey::new(UnboundKey::new(algorithm, key.as_ref()).expect("its length"));
    (client, TlsRecordSealer { key, iv: iv.as_ref().try_into().expect("twelve bytes"), sequence, is_v12 })
}

fuzz_target!(|data: &[u8]| {
    let Some((&pick, mut rest)) = data.split_first() else { return };
    let is_v12 = pick & 1 == 1;
    let (mut client, mut sealer) = established(&ENDS[usize::from(is_v12)], is_v12);
    let (mut wire, mut sealed, mut only_data, mut empty) = (Vec::new(), Vec::new(), true, 0);
    while let [operation, padding, length, behind @ ..] = rest {
        let (content, behind) = behind.split_at(usize::from(*length).min(behind.len()));
        rest = behind;
        let kind = match operation % 8 {
            0..=2 => DATA,
            3 => 21,
            4 | 5 => 22,
            6 => *padding,
            _ => {
                only_data = false;
                wire.extend_from_slice(content);
                continue;
            }
        };
        wire.extend_from_slice(&sealer.seal(kind, content, usize::from(*padding)));
        if kind == DATA {
            sealed.extend_from_slice(content);
        }
        empty += usize::from(content.is_empty());
        only_data &= kind == DATA && empty < 60;
    }

    let (mut buffer, mut opened, mut state) = (Vec::new(), Vec::new(), Ok(TlsInputState::NeedMore));
    'wire: for piece in wire.chunks(usize::from(pick / 2) * 8 + 1) {
        buffer.extend_from_slice(piece);
        loop {
            let length = buffer.len();
            let step = match client.decrypt(&mut buffer) {
                Ok(step) => step,
                Err(error) => {
                    state = Err(error);
                    assert!(client.decrypt(&mut buffer).is_err(), "an error is the end");
                    break 'wire;
                }
            };
            assert!(step.consumed <= length);
            if let Some(range) = step.payload {
                assert!(!range.is_empty() && range.end <= step.consumed);
                opened.extend_from_slice(&buffer[range]);
            }
            buffer.drain(..step.consumed);
            state = Ok(step.state);
            match step.state {
                TlsInputState::Open => {}
                TlsInputState::NeedMore => break,
                TlsInputState::PeerClosed => break 'wire,
            }
        }
    }
    assert!(sealed.starts_with(&opened), "data that nobody sent");
    if only_data {
        assert!(opened == sealed && matches!(state, Ok(TlsInputState::NeedMore)), "{state:?}");
    }
    let mut output = Vec::new();
    client.take_control_output(&mut output);
    assert!(output.len() < 64 * 1024, "a peer makes us say that much");
});
