//! A TLS connection: the handshake, then encryption and decryption, in the caller's buffers.

use std::fmt;
use std::sync::Arc;

use rustls::{
    client::UnbufferedClientConnection,
    unbuffered::{ConnectionState, EncodeError, EncodeTlsData, UnbufferedStatus},
};

use super::{
    MAX_RECORD, TlsContext, TlsVersion,
    handshake_failure::handshake_error,
    hyphen_host_stand_in::{self, HyphenHostName},
    negotiated_session::{FaultFinderAndServerName, NegotiatedSession, confidentiality_limit, server_name_of},
    record_cipher::TlsRecordKey,
    record_layer::{OpenedTlsRecord, RecordLayer, record_len},
};
use crate::{Error, ErrorKind, Result};

/// The client's side of one TLS connection.
///
/// Call [`handshake`](Self::handshake) until it is done, then [`decrypt`](Self::decrypt) and
/// [`encrypt`](Self::encrypt) in any order, and [`close_notify`](Self::close_notify) last. After an
/// error, only [`take_control_output`](Self::take_control_output) may be called, which returns an
/// alert for the peer if there is one.
pub struct TlsConnection {
    phase: TlsPhase,
    /// The number of bytes at the start of the input that rustls has parsed but still needs: the
    /// beginning of a handshake message that continues in the next record.
    held: usize,
    agreed: Option<NegotiatedSession>,
    examiner: Option<FaultFinderAndServerName>,
    keeps_certificates: bool,
    /// The server's name and its stand-in, if a label of the name begins or ends with a hyphen
    /// (rustls rejects such names); `None` for any other name.
    hyphen_name: Option<Arc<HyphenHostName>>,
    /// The trace line about Encrypted Client Hello after the handshake; `None` if Encrypted Client
    /// Hello is not wanted.
    ech: Option<String>,
}

/// The state of a TLS connection: in its handshake, open, or failed.
enum TlsPhase {
    Handshake(Box<UnbufferedClientConnection>),
    Open(Box<RecordLayer>),
    /// The connection has failed. The bytes are the alert to send to the peer.
    Failed(Vec<u8>),
}

/// The progress of a handshake: whether it needs more bytes from the peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HandshakeStatus {
    /// The handshake needs more bytes from the peer. The caller must send the output, and append
    /// the next received bytes to the input.
    NeedRead,
    /// The handshake is complete. The output may be sent together with the first request. Input
    /// that remains is for [`TlsConnection::decrypt`].
    Done,
}

impl TlsConnection {
    /// Makes a TLS connection to the server with this name or IP address, for which the server's
    /// certificate must be valid.
    ///
    /// # Errors
    /// [`ErrorKind::TlsHandshake`] if `server_name` cannot be the name of a server.
    pub fn new(context: &TlsContext, server_name: &str) -> Result<Self> {
        let failed = |error: Box<dyn std::error::Error + Send + Sync>| {
            Error::with_source(ErrorKind::TlsHandshake, format!("cannot start TLS with {server_name}"), error)
        };
        let (name, hyphen_name) = server_name_of(server_name).map_err(|error| failed(error.into()))?;
        let examiner = context.examiner.clone().map(|examiner| (examiner, name.clone()));
        let connect = || UnbufferedClientConnection::new(context.config.clone(), name);
        let connection = hyphen_host_stand_in::with_real_name_hashes(hyphen_name.as_ref(), connect)
            .map_err(|error| failed(error.into()))?;
        let phase = TlsPhase::Handshake(Box::new(connection));
        let keeps_certificates = context.keeps_certificates;
        let ech = context.ech.result_line(server_name);
        Ok(Self { phase, held: 0, agreed: None, examiner, keeps_certificates, hyphen_name, ech })
    }

    /// Returns the results of the handshake. `None` before the handshake has ended.
    pub(crate) fn negotiated(&self) -> Option<&NegotiatedSession> {
        self.agreed.as_ref()
    }

    /// Returns the fault of a server certificate that was accepted nevertheless
    /// ([`TlsOptions::examine`](super::TlsOptions::examine)); `None` if it has no fault.
    #[must_use]
    pub fn certificate_fault(&self) -> Option<&str> {
        self.agreed.as_ref()?.fault.as_deref()
    }

    /// Returns the server's certificates in DER, beginning with the server's own; `None` if
    /// [`TlsOptions::keep_certificates`](super::TlsOptions::keep_certificates) is not set.
    #[must_use]
    pub fn certificates(&self) -> Option<&Arc<[Vec<u8>]>> {
        self.agreed.as_ref()?.chain.as_ref()
    }

    /// Returns true if the server's certificate is also valid for this host.
    #[must_use]
    pub fn is_certified_for(&self, host: &str) -> bool {
        self.agreed.as_ref().is_some_and(|agreed| agreed.is_certified_for(host))
    }

    /// Advances the handshake as far as the input allows, and appends the bytes to send to
    /// `output`. Removes processed bytes from `input`; the caller must leave the remaining bytes
    /// there, and append further input after them.
    ///
    /// # Errors
    /// [`ErrorKind::PeerCertificate`] if the server's certificate is refused,
    /// [`ErrorKind::TlsHandshake`] for any other failure. The output may then contain an alert,
    /// which should be sent if possible.
    pub fn handshake(&mut self, input: &mut Vec<u8>, output: &mut Vec<u8>) -> Result<HandshakeStatus> {
        let Some(name) = self.hyphen_name.clone() else { return self.continue_handshake(input, output) };
        let mut made = Vec::new();
        let outcome =
            hyphen_host_stand_in::with_real_name_hashes(Some(&name), || self.continue_handshake(input, &mut made));
        output.extend_from_slice(&name.with_real_name(&made));
        outcome
    }

    fn continue_handshake(&mut self, input: &mut Vec<u8>, output: &mut Vec<u8>) -> Result<HandshakeStatus> {
        let mut connection = match std::mem::replace(&mut self.phase, TlsPhase::Failed(Vec::new())) {
            TlsPhase::Handshake(connection) => connection,
            phase => {
                self.phase = phase;
                return if self.agreed.is_some() { Ok(HandshakeStatus::Done) } else { Err(already_failed_error()) };
            }
        };
        // rustls gets one complete record at a time. Thus the handshake ends before rustls has
        // consumed a record of application data, and all of these are decrypted with the keys that
        // rustls passes on.
        let (mut consumed, mut shown) = (0, self.held);
        loop {
            let window = input.get_mut(consumed..consumed + shown).ok_or_else(already_failed_error)?;
            let UnbufferedStatus { discard, state } = connection.process_tls_records(window);
            let step = match state {
                Err(error) => {
                    drain_alert(&mut connection, output);
                    return Err(handshake_error(error));
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
                Ok(_) => return Err(already_failed_error()),
            };
            consumed += discard;
            shown = shown.checked_sub(discard).ok_or_else(already_failed_error)?;
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
                    self.begin_traffic(*connection)?;
                    input.drain(..consumed);
                    return Ok(HandshakeStatus::Done);
                }
                HandshakeStep::Done => return Err(already_failed_error()),
            }
        }
    }

    /// Decrypts the first record of the buffer in place. The result contains the range of the
    /// plaintext and the number of processed bytes.
    ///
    /// # Errors
    /// [`ErrorKind::Receive`] if the stream is malformed or the peer ended it with an alert.
    pub fn decrypt(&mut self, buf: &mut [u8]) -> Result<OpenedTlsRecord> {
        let TlsPhase::Open(records) = &mut self.phase else { return Err(already_failed_error()) };
        match records.decrypt(buf) {
            Ok(opened) => Ok(opened),
            Err(error) => {
                let mut alert = Vec::new();
                records.take_control_output(&mut alert);
                self.phase = TlsPhase::Failed(alert);
                Err(error)
            }
        }
    }

    /// Encrypts `plain`, and appends the records to `out`. First appends pending control output, as
    /// [`take_control_output`](Self::take_control_output) does.
    ///
    /// # Errors
    /// [`ErrorKind::Send`] if the key may not encrypt more (TLS 1.2 after 2^24 records).
    pub fn encrypt(&mut self, plain: &[u8], out: &mut Vec<u8>) -> Result<()> {
        match &mut self.phase {
            TlsPhase::Open(records) => records.encrypt(plain, out),
            TlsPhase::Handshake(_) | TlsPhase::Failed(_) => Err(Error::new(ErrorKind::Send, "TLS is not established")),
        }
    }

    /// Appends pending key updates and, after an error, alerts to `out`. Usually, nothing is
    /// pending.
    pub fn take_control_output(&mut self, out: &mut Vec<u8>) {
        match &mut self.phase {
            TlsPhase::Open(records) => records.take_control_output(out),
            TlsPhase::Failed(alert) => out.append(alert),
            TlsPhase::Handshake(_) => {}
        }
    }

    /// Appends a `close_notify` alert to `out`. No data may be sent after it. A second call appends
    /// nothing.
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

    /// Returns the negotiated TLS version; `None` while the handshake is in progress.
    #[must_use]
    pub fn version(&self) -> Option<TlsVersion> {
        Some(self.agreed.as_ref()?.version)
    }

    /// Returns the name of the negotiated cipher suite; `None` while the handshake is in progress.
    #[must_use]
    pub fn cipher(&self) -> Option<&'static str> {
        Some(self.agreed.as_ref()?.cipher)
    }

    /// Returns true if the handshake resumed an earlier session.
    #[must_use]
    pub fn resumed(&self) -> bool {
        self.agreed.as_ref().is_some_and(|agreed| agreed.resumed)
    }

    fn begin_traffic(&mut self, connection: UnbufferedClientConnection) -> Result<()> {
        let (mut agreed, suite) =
            NegotiatedSession::from_handshake(&connection, self.examiner.take(), self.keeps_certificates)
                .ok_or_else(already_failed_error)?;
        let version = agreed.version;
        let (secrets, kernel) = connection.dangerous_into_kernel_connection().map_err(handshake_error)?;
        let receive = TlsRecordKey::new(version, secrets.rx).ok_or_else(already_failed_error)?;
        let transmit = TlsRecordKey::new(version, secrets.tx).ok_or_else(already_failed_error)?;
        self.phase = TlsPhase::Open(Box::new(RecordLayer::new(
            version,
            kernel,
            receive,
            transmit,
            confidentiality_limit(suite),
        )));
        agreed.ech = self.ech.take();
        self.agreed = Some(agreed);
        Ok(())
    }
}

/// The result of one step of a handshake: whether the next step needs more input.
enum HandshakeStep {
    /// The next step of the handshake can follow immediately.
    Again,
    /// The next step of the handshake needs more bytes from the peer.
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
                return Err(already_failed_error());
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

fn already_failed_error() -> Error {
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
