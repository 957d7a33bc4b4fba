//! TLS 1.3 in QUIC (RFC 9001): implements quinn-proto's session traits with a rustls session.
//!
//! ```text
//! TlsContext ──▶ QuicAttemptTls ──start_session──▶ QuicTlsSession ◀── CRYPTO frames ──▶ quinn-proto
//!                   └── failure: the rustls error, of which QUIC would keep only the alert
//! ```
//!
//! QUIC protects its packets itself, with keys from the handshake; there are no TLS records. All
//! settings are the same as for TLS over TCP.
//!
//! Rejected: quinn-proto's own session for rustls. It keeps only the alert of an error, so that the
//! reason why a certificate is refused would be lost; and it knows no host names with outer hyphens
//! ([`hyphen_host_stand_in`](super::hyphen_host_stand_in)).

use std::any::Any;
use std::io::Cursor;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use aws_lc_rs::aead;
use bytes::BytesMut;
use quinn_proto::coding::Codec;
use quinn_proto::crypto::{self, CryptoError, ExportKeyingMaterialError, KeyPair, Keys, Session};
use quinn_proto::transport_parameters::TransportParameters;
use quinn_proto::{ConnectError, ConnectionId, Side, TransportError, TransportErrorCode, VarInt};
use rustls::crypto::aws_lc_rs::cipher_suite::TLS13_AES_128_GCM_SHA256;
use rustls::quic::{ClientConnection, Connection, HeaderProtectionKey, KeyChange, PacketKey, Secrets, Version};
use rustls_pki_types::ServerName;

use super::TlsContext;
use super::handshake_failure::handshake_error;
use super::hyphen_host_stand_in::{self, HyphenHostName};
use super::negotiated_session::{FaultFinderAndServerName, NegotiatedSession, server_name_of};
use crate::ignore_poison::IgnorePoison;
use crate::{Error, ErrorKind, Result};

/// The fixed key for the integrity tag of Retry packets (RFC 9001 section 5.8).
const RETRY_KEY: [u8; 16] =
    [0xbe, 0x0c, 0x69, 0x0b, 0x9f, 0x66, 0x57, 0x5a, 0x1d, 0x76, 0x6b, 0x54, 0xe3, 0x68, 0xc8, 0x4e];
const RETRY_NONCE: [u8; 12] = [0x46, 0x15, 0x99, 0xd3, 0x5d, 0x63, 0x2b, 0xf2, 0x23, 0x98, 0x25, 0xbb];

/// The TLS configuration of one QUIC connection attempt, and the error if its handshake fails.
pub(crate) struct QuicAttemptTls {
    context: Arc<TlsContext>,
    name: ServerName<'static>,
    hyphen_name: Option<Arc<HyphenHostName>>,
    /// The initial flow-control window of streams, in bytes. The server learns this window instead
    /// of the larger window in quinn-proto's settings.
    first_window: VarInt,
    failure: Mutex<Option<rustls::Error>>,
}

impl QuicAttemptTls {
    /// Makes the TLS side of a connection to the server with this name or IP address, for which the
    /// server's certificate must be valid. `first_window` is the number of bytes of each response
    /// that the server may send before the first window update.
    ///
    /// # Errors
    /// [`ErrorKind::TlsHandshake`] if `host` cannot be the name of a server.
    pub(crate) fn new(context: Arc<TlsContext>, host: &str, first_window: u32) -> Result<Arc<Self>> {
        let (name, hyphen_name) = server_name_of(host).map_err(|error| {
            Error::with_source(ErrorKind::TlsHandshake, format!("cannot start TLS with {host}"), error)
        })?;
        let first_window = VarInt::from_u32(first_window);
        Ok(Arc::new(Self { context, name, hyphen_name, first_window, failure: Mutex::default() }))
    }

    /// Returns the TLS error that made the handshake fail; `None` if there was no TLS error.
    pub(crate) fn failure(&self) -> Option<Error> {
        self.failure.lock().ignore_poison().clone().map(handshake_error)
    }

    fn fail(&self, error: &rustls::Error) {
        self.failure.lock().ignore_poison().get_or_insert_with(|| error.clone());
    }
}

impl crypto::ClientConfig for QuicAttemptTls {
    fn start_session(
        self: Arc<Self>,
        _version: u32,
        _server_name: &str,
        parameters: &TransportParameters,
    ) -> std::result::Result<Box<dyn Session>, ConnectError> {
        let mut encoded = Vec::new();
        parameters.write(&mut encoded);
        let encoded = with_first_window(&encoded, self.first_window);
        let (config, name) = (Arc::clone(&self.context.config), self.name.clone());
        let connect = || ClientConnection::new(config, Version::V1, name, encoded);
        match hyphen_host_stand_in::with_real_name_hashes(self.hyphen_name.as_ref(), connect) {
            Ok(connection) => {
                let connection = Connection::Client(connection);
                let examiner = self.context.examiner.clone().map(|examiner| (examiner, self.name.clone()));
                Ok(Box::new(QuicTlsSession { connection, tls: self, examiner, next: None, is_ready: false }))
            }
            Err(error) => {
                self.fail(&error);
                Err(ConnectError::EndpointStopping)
            }
        }
    }
}

/// The ID of the transport parameter that contains the initial window of streams opened by the
/// client (RFC 9000 section 18.2).
const INITIAL_MAX_STREAM_DATA_BIDI_LOCAL: u64 = 0x05;

/// The ID of the transport parameter that contains the idle timeout in milliseconds (RFC 9000
/// section 18.2).
const MAX_IDLE_TIMEOUT: u64 = 0x01;

/// The results of a QUIC handshake.
pub(crate) struct QuicHandshakeData {
    pub(crate) session: NegotiatedSession,
    /// The idle timeout that the server announced; `None` if the server has none.
    pub(crate) peer_idle_timeout: Option<Duration>,
}

/// Removes the first transport parameter from `encoded`, and returns its ID and its value. Returns
/// `None` if no complete parameter is left.
fn take_parameter<'a>(encoded: &mut &'a [u8]) -> Option<(u64, &'a [u8])> {
    let id = VarInt::decode(encoded).ok()?;
    let length = VarInt::decode(encoded).ok()?;
    let (value, rest) = encoded.split_at_checked(usize::try_from(length.into_inner()).ok()?)?;
    *encoded = rest;
    Some((id.into_inner(), value))
}

/// Returns the idle timeout in these encoded transport parameters; `None` if there is none. The
/// value 0 means none, too.
fn idle_timeout(mut encoded: &[u8]) -> Option<Duration> {
    while let Some((id, mut value)) = take_parameter(&mut encoded) {
        if id == MAX_IDLE_TIMEOUT {
            let milliseconds = VarInt::decode(&mut value).ok()?.into_inner();
            return Some(Duration::from_millis(milliseconds)).filter(|timeout| !timeout.is_zero());
        }
    }
    None
}

/// Returns the encoded transport parameters with `window` as the initial receive window of streams.
/// (quinn-proto has only one size for the initial and all later windows. With that size, a stream
/// that nobody reads would buffer as many bytes as a fast stream.)
fn with_first_window(mut encoded: &[u8], window: VarInt) -> Vec<u8> {
    let mut changed = Vec::with_capacity(encoded.len());
    while let Some((id, value)) = take_parameter(&mut encoded) {
        let mut value = value.to_vec();
        if id == INITIAL_MAX_STREAM_DATA_BIDI_LOCAL {
            value.clear();
            window.encode(&mut value);
        }
        VarInt::from_u64(id).unwrap_or(VarInt::MAX).encode(&mut changed);
        VarInt::from_u32(value.len() as u32).encode(&mut changed);
        changed.extend_from_slice(&value);
    }
    changed
}

/// The TLS session of a QUIC connection, through which quinn-proto uses rustls.
struct QuicTlsSession {
    connection: Connection,
    tls: Arc<QuicAttemptTls>,
    examiner: Option<FaultFinderAndServerName>,
    /// The secrets from which the keys after the next key update are derived; `None` until the
    /// handshake provides them.
    next: Option<Secrets>,
    /// True once the handshake is complete and has been reported to quinn-proto.
    is_ready: bool,
}

impl Session for QuicTlsSession {
    fn initial_keys(&self, id: &ConnectionId, side: Side) -> Keys {
        let side = if side.is_client() { rustls::Side::Client } else { rustls::Side::Server };
        // This suite is for Initial packets only, and does not depend on the suites that are
        // offered.
        let suite = match TLS13_AES_128_GCM_SHA256 {
            rustls::SupportedCipherSuite::Tls13(suite) => suite.quic_suite(),
            rustls::SupportedCipherSuite::Tls12(_) => None,
        };
        convert_keys(suite.expect("the suite supports QUIC").keys(id, side, Version::V1))
    }

    /// Returns the [`QuicHandshakeData`] if the handshake is complete, and `None` otherwise.
    fn handshake_data(&self) -> Option<Box<dyn Any>> {
        let keeps_certificates = self.tls.context.keeps_certificates;
        let (mut session, _) =
            NegotiatedSession::from_handshake(&self.connection, self.examiner.clone(), keeps_certificates)?;
        session.ech = self.tls.context.ech.result_line(&self.tls.name.to_str());
        let peer_idle_timeout = self.connection.quic_transport_parameters().and_then(idle_timeout);
        Some(Box::new(QuicHandshakeData { session, peer_idle_timeout }))
    }

    fn peer_identity(&self) -> Option<Box<dyn Any>> {
        None
    }

    fn early_crypto(&self) -> Option<(Box<dyn crypto::HeaderKey>, Box<dyn crypto::PacketKey>)> {
        None
    }

    fn early_data_accepted(&self) -> Option<bool> {
        Some(false)
    }

    fn is_handshaking(&self) -> bool {
        self.connection.is_handshaking()
    }

    fn read_handshake(&mut self, bytes: &[u8]) -> std::result::Result<bool, TransportError> {
        let read = || self.connection.read_hs(bytes);
        if let Err(error) = hyphen_host_stand_in::with_real_name_hashes(self.tls.hyphen_name.as_ref(), read) {
            self.tls.fail(&error);
            let code = match self.connection.alert() {
                Some(alert) => TransportErrorCode::crypto(alert.into()),
                None => TransportErrorCode::PROTOCOL_VIOLATION,
            };
            return Err(TransportError { code, frame: None, reason: error.to_string() });
        }
        Ok(!self.is_handshaking() && !std::mem::replace(&mut self.is_ready, true))
    }

    fn transport_parameters(&self) -> std::result::Result<Option<TransportParameters>, TransportError> {
        let Some(encoded) = self.connection.quic_transport_parameters() else { return Ok(None) };
        Ok(Some(TransportParameters::read(Side::Client, &mut Cursor::new(encoded))?))
    }

    fn write_handshake(&mut self, output: &mut Vec<u8>) -> Option<Keys> {
        let Some(name) = self.tls.hyphen_name.clone() else { return self.write(output) };
        let mut made = Vec::new();
        let keys = hyphen_host_stand_in::with_real_name_hashes(Some(&name), || self.write(&mut made));
        output.extend_from_slice(&name.with_real_name(&made));
        keys
    }

    fn next_1rtt_keys(&mut self) -> Option<KeyPair<Box<dyn crypto::PacketKey>>> {
        let keys = self.next.as_mut()?.next_packet_keys();
        Some(KeyPair { local: Box::new(QuicPacketKey(keys.local)), remote: Box::new(QuicPacketKey(keys.remote)) })
    }

    fn is_valid_retry(&self, original: &ConnectionId, header: &[u8], payload: &[u8]) -> bool {
        let length = u8::try_from(original.len()).unwrap_or(u8::MAX);
        let mut pseudo_packet = [&[length], &original[..], header, payload].concat();
        let Some(tag_at) = pseudo_packet.len().checked_sub(aead::AES_128_GCM.tag_len()) else { return false };
        let Ok(key) = aead::UnboundKey::new(&aead::AES_128_GCM, &RETRY_KEY) else { return false };
        let (text, tag) = pseudo_packet.split_at_mut(tag_at);
        let nonce = aead::Nonce::assume_unique_for_key(RETRY_NONCE);
        aead::LessSafeKey::new(key).open_in_place(nonce, aead::Aad::from(text), tag).is_ok()
    }

    fn export_keying_material(
        &self,
        output: &mut [u8],
        label: &[u8],
        context: &[u8],
    ) -> std::result::Result<(), ExportKeyingMaterialError> {
        let exported = self.connection.export_keying_material(output, label, Some(context));
        exported.map(drop).map_err(|_| ExportKeyingMaterialError)
    }
}

impl QuicTlsSession {
    fn write(&mut self, output: &mut Vec<u8>) -> Option<Keys> {
        match self.connection.write_hs(output)? {
            KeyChange::Handshake { keys: made } => Some(convert_keys(made)),
            KeyChange::OneRtt { keys: made, next } => {
                self.next = Some(next);
                Some(convert_keys(made))
            }
        }
    }
}

fn convert_keys(keys: rustls::quic::Keys) -> Keys {
    let (local, remote) = (keys.local, keys.remote);
    Keys {
        header: KeyPair {
            local: Box::new(QuicHeaderKey(local.header)),
            remote: Box::new(QuicHeaderKey(remote.header)),
        },
        packet: KeyPair {
            local: Box::new(QuicPacketKey(local.packet)),
            remote: Box::new(QuicPacketKey(remote.packet)),
        },
    }
}

/// A key that protects the headers of packets (RFC 9001 section 5.4).
struct QuicHeaderKey(Box<dyn HeaderProtectionKey>);

impl QuicHeaderKey {
    /// Splits a packet into the parts that header protection needs. Returns the sample, the first
    /// byte, and the bytes that may contain the packet number. `number_at` is the offset of the
    /// packet number.
    fn split_packet<'a>(&self, number_at: usize, packet: &'a mut [u8]) -> (&'a [u8], &'a mut u8, &'a mut [u8]) {
        let (header, sample) = packet.split_at_mut(number_at + 4);
        let (first, rest) = header.split_at_mut(1);
        (&sample[..self.0.sample_len()], &mut first[0], &mut rest[number_at - 1..])
    }
}

impl crypto::HeaderKey for QuicHeaderKey {
    fn decrypt(&self, number_at: usize, packet: &mut [u8]) {
        let (sample, first, number) = self.split_packet(number_at, packet);
        // A failure leaves the packet as it is, and then its payload cannot be decrypted.
        let _ = self.0.decrypt_in_place(sample, first, number);
    }

    fn encrypt(&self, number_at: usize, packet: &mut [u8]) {
        let (sample, first, number) = self.split_packet(number_at, packet);
        let _ = self.0.encrypt_in_place(sample, first, number);
    }

    fn sample_size(&self) -> usize {
        self.0.sample_len()
    }
}

/// A key that protects the payload of packets (RFC 9001 section 5.3).
struct QuicPacketKey(Box<dyn PacketKey>);

impl crypto::PacketKey for QuicPacketKey {
    fn encrypt(&self, number: u64, packet: &mut [u8], header_len: usize) {
        let (header, payload) = packet.split_at_mut(header_len);
        let (payload, tag) = payload.split_at_mut(payload.len() - self.0.tag_len());
        // It fails only for a payload that is longer than any packet.
        let made = self.0.encrypt_in_place(number, header, payload).expect("a packet can be encrypted");
        tag.copy_from_slice(made.as_ref());
    }

    fn decrypt(&self, number: u64, header: &[u8], payload: &mut BytesMut) -> std::result::Result<(), CryptoError> {
        let plain = self.0.decrypt_in_place(number, header, payload).map_err(|_| CryptoError)?.len();
        payload.truncate(plain);
        Ok(())
    }

    fn tag_len(&self) -> usize {
        self.0.tag_len()
    }

    fn confidentiality_limit(&self) -> u64 {
        self.0.confidentiality_limit()
    }

    fn integrity_limit(&self) -> u64 {
        self.0.integrity_limit()
    }
}

#[cfg(test)]
mod tests {
    use crypto::ClientConfig as _;

    use super::super::{TlsContexts, TlsOptions};
    use super::*;

    /// Returns the TLS of a connection attempt, and its session.
    fn started() -> (Arc<QuicAttemptTls>, Box<dyn Session>) {
        let options = TlsOptions { verify: false, alpn: vec![b"h3".to_vec()], ..TlsOptions::default() };
        let context = TlsContexts::default().context(&options).unwrap();
        let tls = QuicAttemptTls::new(context, "example.org", 1 << 16).unwrap();
        let parameters = TransportParameters::read(Side::Client, &mut Cursor::new(&[][..])).unwrap();
        let session = Arc::clone(&tls).start_session(1, "", &parameters).map_err(drop).unwrap();
        (tls, session)
    }

    #[test]
    fn retry_integrity_tag_of_rfc_9001_is_accepted() {
        // RFC 9001 appendix A.4.
        let original = ConnectionId::new(&[0x83, 0x94, 0xc8, 0xf0, 0x3e, 0x51, 0x57, 0x08]);
        let header = b"\xff\x00\x00\x00\x01\x00\x08\xf0\x67\xa5\x50\x2a\x42\x62\xb5";
        let payload = b"token\x04\xa2\x65\xba\x2e\xff\x4d\x82\x90\x58\xfb\x3f\x0f\x24\x96\xba";
        let (_, session) = started();
        assert!(session.is_valid_retry(&original, header, payload));
        let mut changed = *payload;
        changed[0] ^= 1;
        assert!(!session.is_valid_retry(&original, header, &changed));
        assert!(!session.is_valid_retry(&original, header, b"short"));
        assert_eq!(session.initial_keys(&original, Side::Client).header.local.sample_size(), 16);
    }

    #[test]
    fn only_the_stream_window_parameter_is_replaced() {
        let window = VarInt::from_u32(0x3fff);
        // max_idle_timeout 9, the window 1, initial_source_connection_id without bytes.
        let encoded = [0x01, 1, 9, 0x05, 1, 1, 0x0f, 0];
        assert_eq!(with_first_window(&encoded, window), [0x01, 1, 9, 0x05, 2, 0x7f, 0xff, 0x0f, 0]);
        assert_eq!(with_first_window(&[0x01, 9, 9], window), b"");
    }

    #[test]
    fn idle_timeout_is_read_from_transport_parameters() {
        assert_eq!(idle_timeout(&[0x05, 1, 1, 0x01, 2, 0x47, 0xd0]), Some(Duration::from_secs(2)));
        assert_eq!(idle_timeout(&[0x01, 1, 0]), None, "0 means none");
        assert_eq!(idle_timeout(&[0x05, 1, 1]), None);
        assert_eq!(idle_timeout(&[0x01, 9, 9]), None);
    }

    #[test]
    fn unfinished_handshake_has_no_results() {
        let (tls, mut session) = started();
        assert!(session.export_keying_material(&mut [0; 8], b"label", b"").is_err());
        assert!(session.handshake_data().is_none() && session.peer_identity().is_none());
        assert!(session.early_crypto().is_none() && session.early_data_accepted() == Some(false));
        assert!(session.is_handshaking() && session.next_1rtt_keys().is_none());
        assert!(matches!(session.transport_parameters(), Ok(None)));
        assert!(tls.failure().is_none());
        // A part of a message, which continues below.
        assert!(matches!(session.read_handshake(b"\x02"), Ok(false)));
        let error = session.read_handshake(b"\0\0\x01\0").unwrap_err();
        assert_ne!(error.code, TransportErrorCode::PROTOCOL_VIOLATION, "the code is that of the alert");
        assert_eq!(tls.failure().unwrap().kind(), ErrorKind::TlsHandshake);
        assert!(QuicAttemptTls::new(Arc::clone(&tls.context), "", 1).is_err());
    }

    #[test]
    fn packet_keys_of_both_sides_fit() {
        let (_, session) = started();
        let id = ConnectionId::new(&[7; 8]);
        let [client, server] = [Side::Client, Side::Server].map(|side| session.initial_keys(&id, side));
        let (header, payload) = (b"\xc1\0\0\0\x01\0\0\x02", [5; 32]);
        let key = &client.packet.local;
        assert_eq!((key.tag_len(), client.header.local.sample_size()), (16, 16));
        assert_eq!((key.confidentiality_limit(), key.integrity_limit()), (1 << 23, 1 << 52));
        let mut packet = [&header[..], &payload, &[0; 16]].concat();
        key.encrypt(2, &mut packet, header.len());
        let number_at = header.len() - 2;
        let sealed = packet.clone();
        client.header.local.encrypt(number_at, &mut packet);
        assert_ne!(packet[..header.len()], *header, "the header is protected");
        assert_eq!(packet[header.len()..], sealed[header.len()..]);
        server.header.remote.decrypt(number_at, &mut packet);
        assert_eq!(packet, sealed);
        let mut opened = BytesMut::from(&packet[header.len()..]);
        assert!(server.packet.remote.decrypt(2, header, &mut opened).is_ok());
        assert_eq!(opened, payload[..]);
        assert!(server.packet.remote.decrypt(3, header, &mut BytesMut::from(&packet[header.len()..])).is_err());
    }
}
