//! A TLS connection: the handshake, then encryption and decryption, in the caller's buffers.

use std::fmt;
use std::sync::Arc;

use rustls::{
    CertificateError, HandshakeKind, InvalidMessage, ProtocolVersion, SupportedCipherSuite,
    client::UnbufferedClientConnection,
    unbuffered::{ConnectionState, EncodeError, EncodeTlsData, UnbufferedStatus},
};
use rustls_pki_types::{CertificateDer, InvalidDnsNameError, ServerName};

use super::{
    MAX_RECORD, TlsContext, TlsVersion, certificate_text,
    hyphen_host_stand_in::{self, HyphenHostName},
    public_key_pin::PinMismatch,
    record_key::TlsRecordKey,
    record_layer::{OpenedTlsRecord, RecordLayer, record_len},
    verify::CertificateFaultFinder,
};
use crate::{Error, ErrorKind, Result};

/// The client's side of one TLS connection.
///
/// Call [`handshake`](Self::handshake) until it is done, then [`open`](Self::open) and
/// [`seal`](Self::seal) in any order, and [`close_notify`](Self::close_notify) last. After an
/// error, the connection cannot be used any more, except that [`take_output`](Self::take_output)
/// may return an alert for the peer.
pub struct TlsConnection {
    phase: TlsPhase,
    /// The number of bytes at the start of the input that rustls has parsed but still needs,
    /// because a handshake message continues in the next record.
    held: usize,
    agreed: Option<NegotiatedSession>,
    examiner: Option<(CertificateFaultFinder, ServerName<'static>)>,
    keeps_certificates: bool,
    /// The server's name, if rustls does not accept it because of its hyphens.
    odd_name: Option<Arc<HyphenHostName>>,
}

enum TlsPhase {
    Handshake(Box<UnbufferedClientConnection>),
    Open(Box<RecordLayer>),
    Failed(Vec<u8>),
}

/// The progress of a handshake: whether it needs more bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HandshakeStatus {
    /// The caller must send the output, and receive more bytes after the remaining input.
    NeedRead,
    /// The handshake is complete. The output may be sent together with the first request. Input
    /// that remains is for [`TlsConnection::open`].
    Done,
}

/// The parameters that the handshake negotiated.
struct NegotiatedSession {
    version: TlsVersion,
    cipher: &'static str,
    alpn: Option<Vec<u8>>,
    resumed: bool,
    /// The server's own certificate; `None` if the session was resumed without one.
    certificate: Option<CertificateDer<'static>>,
    /// The server's certificates in DER, if they are requested.
    chain: Option<Arc<[Vec<u8>]>>,
    /// The fault of the server's certificate, if the options ask to report faults instead of
    /// refusing the certificate.
    fault: Option<String>,
}

impl TlsConnection {
    /// Makes a connection to the server with this name or address, which its certificate must
    /// contain.
    ///
    /// # Errors
    /// [`ErrorKind::TlsHandshake`] if this cannot be the name of a server.
    pub fn new(context: &TlsContext, server_name: &str) -> Result<Self> {
        let failed = |error: Box<dyn std::error::Error + Send + Sync>| {
            Error::with_source(ErrorKind::TlsHandshake, format!("cannot start TLS with {server_name}"), error)
        };
        let odd_name = HyphenHostName::of(bare(server_name)).map(Arc::new);
        let name = match odd_name.as_ref().and_then(|odd| odd.stand_in()) {
            Some(stand_in) => stand_in,
            None => name_of(server_name).map_err(|error| failed(error.into()))?.to_owned(),
        };
        let examiner = context.examiner.clone().map(|examiner| (examiner, name.clone()));
        let connect = || UnbufferedClientConnection::new(context.config.clone(), name);
        let connection =
            hyphen_host_stand_in::within(odd_name.as_ref(), connect).map_err(|error| failed(error.into()))?;
        let phase = TlsPhase::Handshake(Box::new(connection));
        let keeps_certificates = context.keeps_certificates;
        Ok(Self { phase, held: 0, agreed: None, examiner, keeps_certificates, odd_name })
    }

    /// Returns the server's certificate as lines of text. Returns no lines if the handshake resumed
    /// a session without a certificate.
    #[must_use]
    pub fn certificate_lines(&self) -> Vec<String> {
        let certificate = self.agreed.as_ref().and_then(|agreed| agreed.certificate.as_deref());
        certificate.map(certificate_text::lines).unwrap_or_default()
    }

    /// Returns the fault of the server's certificate, if there is one and it was accepted
    /// nevertheless ([`TlsOptions::examine`](super::TlsOptions::examine)).
    #[must_use]
    pub fn certificate_fault(&self) -> Option<&str> {
        self.agreed.as_ref()?.fault.as_deref()
    }

    /// Returns the server's certificates in DER, the server's own first, if they are requested
    /// ([`TlsOptions::keep_certificates`](super::TlsOptions::keep_certificates)).
    #[must_use]
    pub fn certificates(&self) -> Option<&Arc<[Vec<u8>]>> {
        self.agreed.as_ref()?.chain.as_ref()
    }

    /// Returns true if the server's certificate contains this host, too.
    #[must_use]
    pub fn is_for(&self, host: &str) -> bool {
        let Some(certificate) = self.agreed.as_ref().and_then(|agreed| agreed.certificate.as_ref()) else {
            return false;
        };
        let (Ok(certificate), Ok(name)) = (webpki::EndEntityCert::try_from(certificate), name_of(host)) else {
            return false;
        };
        certificate.verify_is_valid_for_subject_name(&name).is_ok()
    }

    /// Advances the handshake as far as the input allows, and appends the bytes to send to the
    /// output. Removes processed bytes from the input; the caller must leave the rest unchanged.
    ///
    /// # Errors
    /// [`ErrorKind::PeerCertificate`] if the server's certificate is refused,
    /// [`ErrorKind::TlsHandshake`] for any other failure. The output may then contain an alert,
    /// which should be sent if possible.
    pub fn handshake(&mut self, input: &mut Vec<u8>, output: &mut Vec<u8>) -> Result<HandshakeStatus> {
        let Some(name) = self.odd_name.clone() else { return self.go_on(input, output) };
        let mut made = Vec::new();
        let outcome = hyphen_host_stand_in::within(Some(&name), || self.go_on(input, &mut made));
        output.extend_from_slice(&name.spell(&made));
        outcome
    }

    fn go_on(&mut self, input: &mut Vec<u8>, output: &mut Vec<u8>) -> Result<HandshakeStatus> {
        let mut connection = match std::mem::replace(&mut self.phase, TlsPhase::Failed(Vec::new())) {
            TlsPhase::Handshake(connection) => connection,
            phase => {
                self.phase = phase;
                return if self.agreed.is_some() { Ok(HandshakeStatus::Done) } else { Err(failed()) };
            }
        };
        // rustls gets one complete record at a time. Thus the handshake ends before rustls has
        // consumed a record of application data, and all of these are decrypted with the keys that
        // rustls passes on.
        let (mut consumed, mut shown) = (0, self.held);
        loop {
            let window = input.get_mut(consumed..consumed + shown).ok_or_else(failed)?;
            let UnbufferedStatus { discard, state } = connection.process_tls_records(window);
            let step = match state {
                Err(error) => {
                    drain_alert(&mut connection, output);
                    return Err(refused(error));
                }
                Ok(ConnectionState::EncodeTlsData(mut chunk)) => {
                    encode(&mut chunk, output)?;
                    HandshakeStep::Again
                }
                Ok(ConnectionState::TransmitTlsData(transmit)) => {
                    transmit.done();
                    HandshakeStep::Again
                }
                Ok(ConnectionState::BlockedHandshake) => HandshakeStep::Blocked,
                Ok(ConnectionState::WriteTraffic(_)) => HandshakeStep::Done,
                Ok(ConnectionState::PeerClosed | ConnectionState::Closed) => {
                    return Err(Error::new(ErrorKind::TlsHandshake, "the server closed during the TLS handshake"));
                }
                Ok(_) => return Err(failed()),
            };
            consumed += discard;
            shown = shown.checked_sub(discard).ok_or_else(failed)?;
            match step {
                HandshakeStep::Again => {}
                HandshakeStep::Blocked => match record_len(&input[consumed + shown..]) {
                    // A header that is not valid is passed to rustls, which reports the error
                    // without further bytes.
                    Some(len) if len > MAX_RECORD => shown = input.len() - consumed,
                    Some(len) if consumed + shown + len <= input.len() => shown += len,
                    _ => {
                        self.held = shown;
                        self.phase = TlsPhase::Handshake(connection);
                        input.drain(..consumed);
                        return Ok(HandshakeStatus::NeedRead);
                    }
                },
                HandshakeStep::Done if shown == 0 => {
                    self.establish(*connection)?;
                    input.drain(..consumed);
                    return Ok(HandshakeStatus::Done);
                }
                HandshakeStep::Done => return Err(failed()),
            }
        }
    }

    /// Decrypts the first record of the buffer in place.
    ///
    /// # Errors
    /// [`ErrorKind::Receive`] if the stream is malformed or the peer ended it by an alert.
    pub fn open(&mut self, buf: &mut [u8]) -> Result<OpenedTlsRecord> {
        let TlsPhase::Open(records) = &mut self.phase else { return Err(failed()) };
        match records.open(buf) {
            Ok(opened) => Ok(opened),
            Err(error) => {
                let mut alert = Vec::new();
                records.take_output(&mut alert);
                self.phase = TlsPhase::Failed(alert);
                Err(error)
            }
        }
    }

    /// Encrypts `plain`, and appends the records to `out`. Output that
    /// [`take_output`](Self::take_output) would return is appended before them.
    ///
    /// # Errors
    /// [`ErrorKind::Send`] if the key may not encrypt more (TLS 1.2 after 2^24 records).
    pub fn seal(&mut self, plain: &[u8], out: &mut Vec<u8>) -> Result<()> {
        match &mut self.phase {
            TlsPhase::Open(records) => records.seal(plain, out),
            TlsPhase::Handshake(_) | TlsPhase::Failed(_) => Err(Error::new(ErrorKind::Send, "TLS is not established")),
        }
    }

    /// Appends pending output that is not data to `out`: key updates, and alerts after an error.
    /// Usually there is none.
    pub fn take_output(&mut self, out: &mut Vec<u8>) {
        match &mut self.phase {
            TlsPhase::Open(records) => records.take_output(out),
            TlsPhase::Failed(alert) => out.append(alert),
            TlsPhase::Handshake(_) => {}
        }
    }

    /// Appends a `close_notify` alert to `out`. A second call appends nothing. No data may be sent
    /// after it.
    pub fn close_notify(&mut self, out: &mut Vec<u8>) {
        match &mut self.phase {
            TlsPhase::Open(records) => records.close_notify(out),
            TlsPhase::Handshake(_) | TlsPhase::Failed(_) => {}
        }
    }

    /// Returns the protocol that ALPN selected, if any.
    #[must_use]
    pub fn alpn(&self) -> Option<&[u8]> {
        self.agreed.as_ref()?.alpn.as_deref()
    }

    /// Returns the negotiated TLS version; `None` before the end of the handshake.
    #[must_use]
    pub fn version(&self) -> Option<TlsVersion> {
        Some(self.agreed.as_ref()?.version)
    }

    /// Returns the name of the negotiated cipher suite; `None` before the end of the handshake.
    #[must_use]
    pub fn cipher(&self) -> Option<&'static str> {
        Some(self.agreed.as_ref()?.cipher)
    }

    /// Returns true if the handshake resumed an earlier session.
    #[must_use]
    pub fn resumed(&self) -> bool {
        self.agreed.as_ref().is_some_and(|agreed| agreed.resumed)
    }

    fn establish(&mut self, connection: UnbufferedClientConnection) -> Result<()> {
        let version = match connection.protocol_version() {
            Some(ProtocolVersion::TLSv1_3) => TlsVersion::V1_3,
            Some(ProtocolVersion::TLSv1_2) => TlsVersion::V1_2,
            _ => return Err(failed()),
        };
        let suite = connection.negotiated_cipher_suite().ok_or_else(failed)?;
        let common = match suite {
            SupportedCipherSuite::Tls12(suite) => &suite.common,
            SupportedCipherSuite::Tls13(suite) => &suite.common,
        };
        let chain = connection.peer_certificates().unwrap_or_default();
        let agreed = NegotiatedSession {
            version,
            cipher: common.suite.as_str().unwrap_or("unknown"),
            alpn: connection.alpn_protocol().map(<[u8]>::to_vec),
            resumed: connection.handshake_kind() == Some(HandshakeKind::Resumed),
            chain: self.keeps_certificates.then(|| chain.iter().map(|shown| shown.to_vec()).collect()),
            certificate: chain.first().map(|leaf| leaf.clone().into_owned()),
            fault: self.examiner.take().and_then(|(examiner, name)| Some(why(&examiner.fault(chain, &name)?))),
        };
        let (secrets, kernel) = connection.dangerous_into_kernel_connection().map_err(refused)?;
        let receive = TlsRecordKey::new(version, secrets.rx).ok_or_else(failed)?;
        let transmit = TlsRecordKey::new(version, secrets.tx).ok_or_else(failed)?;
        self.phase = TlsPhase::Open(Box::new(RecordLayer::new(
            version,
            kernel,
            receive,
            transmit,
            common.confidentiality_limit,
        )));
        self.agreed = Some(agreed);
        Ok(())
    }
}

/// Parses a host as a server name. Removes the brackets of an IPv6 address and a final dot, which
/// SNI does not allow (RFC 6066 §3).
fn name_of(host: &str) -> std::result::Result<ServerName<'_>, InvalidDnsNameError> {
    ServerName::try_from(bare(host))
}

/// Returns a host without a final dot and without brackets.
fn bare(host: &str) -> &str {
    let name = host.strip_suffix('.').unwrap_or(host);
    name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name)
}

enum HandshakeStep {
    Again,
    Blocked,
    Done,
}

fn encode(chunk: &mut EncodeTlsData<'_, rustls::client::ClientConnectionData>, output: &mut Vec<u8>) -> Result<()> {
    let start = output.len();
    // The size is not known before; a call with an empty buffer returns it.
    let mut room = 0;
    loop {
        output.resize(start + room, 0);
        match chunk.encode(&mut output[start..]) {
            Ok(written) => {
                output.truncate(start + written);
                return Ok(());
            }
            Err(EncodeError::InsufficientSize(size)) if size.required_size > room => room = size.required_size,
            Err(_) => {
                output.truncate(start);
                return Err(failed());
            }
        }
    }
}

/// Appends the alert that rustls has prepared after an error to `output`. rustls processes no
/// further input before the alert is taken.
fn drain_alert(connection: &mut UnbufferedClientConnection, output: &mut Vec<u8>) {
    while connection.wants_write() {
        let UnbufferedStatus { state: Ok(ConnectionState::EncodeTlsData(mut chunk)), .. } =
            connection.process_tls_records(&mut [])
        else {
            return;
        };
        if encode(&mut chunk, output).is_err() {
            return;
        }
    }
}

/// Converts an error of rustls. A refused certificate becomes [`ErrorKind::PeerCertificate`].
fn refused(error: rustls::Error) -> Error {
    let message = match &error {
        rustls::Error::InvalidCertificate(CertificateError::Other(other)) if other.0.is::<PinMismatch>() => {
            return Error::new(ErrorKind::PinnedKey, other.0.to_string());
        }
        rustls::Error::InvalidCertificate(refusal) => {
            return Error::new(
                ErrorKind::PeerCertificate,
                format!("the server's certificate is not acceptable: {}", why(refusal)),
            );
        }
        rustls::Error::InvalidCertRevocationList(_) => {
            let message = "the server's certificate is not acceptable: the list of revoked ones is not good";
            return Error::with_source(ErrorKind::PeerCertificate, message, error);
        }
        rustls::Error::InvalidMessage(InvalidMessage::InvalidContentType) => {
            "TLS handshake failed: the server does not speak TLS"
        }
        _ => "TLS handshake failed",
    };
    Error::with_source(ErrorKind::TlsHandshake, message, error)
}

fn why(refusal: &CertificateError) -> String {
    match refusal {
        CertificateError::UnknownIssuer => "no trusted certificate has signed it".into(),
        CertificateError::BadSignature => "a signature does not fit".into(),
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => "it has expired".into(),
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => "it is not valid yet".into(),
        CertificateError::InvalidPurpose => "it is not for servers".into(),
        CertificateError::Other(other) => match other.0.downcast_ref() {
            Some(webpki::Error::CaUsedAsEndEntity) => "it is a CA's own and not a trusted one".into(),
            _ => other.0.to_string(),
        },
        other => other.to_string(),
    }
}

fn failed() -> Error {
    Error::new(ErrorKind::TlsHandshake, "the TLS connection is not usable")
}

impl fmt::Debug for TlsConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let phase = match self.phase {
            TlsPhase::Handshake(_) => "handshake",
            TlsPhase::Open(_) => "open",
            TlsPhase::Failed(_) => "failed",
        };
        f.debug_struct("TlsConnection").field("phase", &phase).field("version", &self.version()).finish_non_exhaustive()
    }
}
