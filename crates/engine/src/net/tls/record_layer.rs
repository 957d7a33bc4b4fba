//! The record layer after the handshake. Encrypts and decrypts data, and handles the few other
//! messages that may occur (RFC 8446 §4.6, §6): tickets, key updates and alerts.

use std::ops::Range;

use rustls::{AlertDescription, client::ClientConnectionData, kernel::KernelConnection};

use super::alert_after_handshake::TlsAlert;
use super::{
    MAX_RECORD, TlsVersion,
    record_cipher::{HEADER_LENGTH, MAX_PLAIN, TlsRecordContent, TlsRecordCryptoError, TlsRecordKey, content},
};
use crate::{Error, ErrorKind, Result};

/// The maximum number of consecutive records without data (tickets, key updates, warnings, empty
/// records). If a peer sends more, the connection fails, so that the peer cannot keep the client
/// busy. Usual servers send only a few tickets.
const MAX_IDLE_RECORDS: u8 = 64;
/// The maximum length in bytes of a handshake message that arrives after the handshake. It may span
/// several records.
const MAX_MESSAGE: usize = 1 << 16;

/// The result of decrypting the first TLS record of the caller's receive buffer in place
/// ([`TlsConnection::decrypt`](super::TlsConnection::decrypt)): the position of the plaintext in
/// that buffer, and the state of the input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenedTlsRecord {
    /// The number of bytes at the start of the buffer that the caller may discard after using the
    /// payload.
    pub consumed: usize,
    /// The range of the plaintext in the buffer. It is never empty and never extends beyond
    /// `consumed`. `None` if the record contained no data.
    pub payload: Option<Range<usize>>,
    /// The state of the TLS input after this record.
    pub state: TlsInputState,
}

/// The state of the TLS input (the incoming stream of records) after a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TlsInputState {
    /// A record was decrypted; there may be more.
    Open,
    /// The buffer contains no complete record: receive more bytes.
    NeedMore,
    /// The peer sent `close_notify`, so the data is not truncated. Later bytes are ignored (RFC
    /// 8446 §6.1).
    PeerClosed,
}

/// Encrypts and decrypts the records of a TLS connection after its handshake.
pub(super) struct RecordLayer {
    version: TlsVersion,
    kernel: KernelConnection<ClientConnectionData>,
    receive: TlsRecordKey,
    transmit: TlsRecordKey,
    /// The number of records that one key may encrypt. After so many records, TLS 1.3 connections
    /// change to a new key.
    seal_limit: u64,
    /// The part of an incomplete handshake message that has arrived. The rest is in the next
    /// record.
    message: Vec<u8>,
    /// Encrypted records (key updates, alerts) to send before the next data.
    output: Vec<u8>,
    /// True if `output` contains a key update that was not sent yet. This one key update answers
    /// all key updates that the peer sends in the meantime (RFC 8446 §4.6.3).
    update_waits: bool,
    idle_records: u8,
    peer_closed: bool,
    we_closed: bool,
}

/// The effect that a received record without application data has on the incoming stream.
enum ControlRecordEffect {
    Nothing,
    PeerClosed,
}

impl RecordLayer {
    pub(super) fn new(
        version: TlsVersion,
        kernel: KernelConnection<ClientConnectionData>,
        receive: TlsRecordKey,
        transmit: TlsRecordKey,
        seal_limit: u64,
    ) -> Self {
        Self {
            version,
            kernel,
            receive,
            transmit,
            seal_limit,
            message: Vec::new(),
            output: Vec::new(),
            update_waits: false,
            idle_records: 0,
            peer_closed: false,
            we_closed: false,
        }
    }

    pub(super) fn decrypt(&mut self, buf: &mut [u8]) -> Result<OpenedTlsRecord> {
        if self.peer_closed {
            return Ok(OpenedTlsRecord { consumed: buf.len(), payload: None, state: TlsInputState::PeerClosed });
        }
        let Some(len) = record_len(buf) else {
            return Ok(OpenedTlsRecord { consumed: 0, payload: None, state: TlsInputState::NeedMore });
        };
        let longest = match self.version {
            TlsVersion::V1_3 => HEADER_LENGTH + MAX_PLAIN + 256,
            TlsVersion::V1_2 => MAX_RECORD,
        };
        if len > longest {
            return Err(self.fail_with_alert(AlertDescription::RecordOverflow, "a record longer than allowed"));
        }
        let Some(record) = buf.get_mut(..len) else {
            return Ok(OpenedTlsRecord { consumed: 0, payload: None, state: TlsInputState::NeedMore });
        };
        let kind = record[0];
        let known = match self.version {
            TlsVersion::V1_3 => kind == content::APPLICATION_DATA,
            TlsVersion::V1_2 => (content::ALERT..=content::APPLICATION_DATA).contains(&kind),
        };
        if !known {
            return Err(
                self.fail_with_alert(AlertDescription::UnexpectedMessage, "a record of a kind that has no place here")
            );
        }
        let TlsRecordContent { kind, range } = match self.receive.decrypt(record) {
            Ok(content) => content,
            Err(TlsRecordCryptoError::Authentication) => {
                return Err(self.fail_with_alert(AlertDescription::BadRecordMac, "a record is not authentic"));
            }
            Err(TlsRecordCryptoError::Overflow) => {
                return Err(self.fail_with_alert(AlertDescription::RecordOverflow, "a record holds more than allowed"));
            }
            Err(TlsRecordCryptoError::NoType | TlsRecordCryptoError::Exhausted) => {
                return Err(
                    self.fail_with_alert(AlertDescription::UnexpectedMessage, "a record without a content type")
                );
            }
        };
        if kind == content::APPLICATION_DATA && !range.is_empty() {
            if !self.message.is_empty() {
                return Err(self.interleaved_message_error());
            }
            self.idle_records = 0;
            return Ok(OpenedTlsRecord { consumed: len, payload: Some(range), state: TlsInputState::Open });
        }
        self.idle_records += 1;
        if self.idle_records > MAX_IDLE_RECORDS {
            return Err(self.fail_with_alert(AlertDescription::UnexpectedMessage, "too many records without data"));
        }
        let state = match self.on_control_record(kind, &record[range])? {
            ControlRecordEffect::Nothing => TlsInputState::Open,
            ControlRecordEffect::PeerClosed => {
                self.peer_closed = true;
                TlsInputState::PeerClosed
            }
        };
        Ok(OpenedTlsRecord { consumed: len, payload: None, state })
    }

    pub(super) fn encrypt(&mut self, plain: &[u8], out: &mut Vec<u8>) -> Result<()> {
        self.take_control_output(out);
        for piece in plain.chunks(MAX_PLAIN) {
            if self.transmit.sequence() >= self.seal_limit {
                self.renew_transmit_key()?;
                self.take_control_output(out);
            }
            self.transmit.encrypt(content::APPLICATION_DATA, piece, out).map_err(|_| key_limit_error())?;
        }
        Ok(())
    }

    pub(super) fn take_control_output(&mut self, out: &mut Vec<u8>) {
        self.update_waits = false;
        if out.is_empty() {
            std::mem::swap(out, &mut self.output);
        } else {
            out.append(&mut self.output);
        }
    }

    pub(super) fn close_notify(&mut self, out: &mut Vec<u8>) {
        self.take_control_output(out);
        if !self.we_closed {
            self.queue_alert(AlertDescription::CloseNotify);
            self.take_control_output(out);
        }
    }

    /// Handles a decrypted record without application data: an alert, a handshake message, or an
    /// empty record. `kind` is the content type, and `plain` the content.
    fn on_control_record(&mut self, kind: u8, plain: &[u8]) -> Result<ControlRecordEffect> {
        if kind == content::HANDSHAKE {
            return self.on_handshake_bytes(plain);
        }
        if !self.message.is_empty() {
            return Err(self.interleaved_message_error());
        }
        match (kind, plain) {
            (content::APPLICATION_DATA, []) => Ok(ControlRecordEffect::Nothing),
            (content::ALERT, &[level, description]) => self.on_alert(level, description),
            (content::ALERT, _) => Err(self.fail_with_alert(AlertDescription::DecodeError, "a malformed alert")),
            _ => {
                Err(self
                    .fail_with_alert(AlertDescription::UnexpectedMessage, "a record of a kind that has no place here"))
            }
        }
    }

    fn on_alert(&mut self, level: u8, description: u8) -> Result<ControlRecordEffect> {
        const WARNING: u8 = 1;
        match AlertDescription::from(description) {
            AlertDescription::CloseNotify => Ok(ControlRecordEffect::PeerClosed),
            // In TLS 1.3, only these two alerts do not end the connection, whatever their level
            // (RFC 8446 §6).
            AlertDescription::UserCanceled => Ok(ControlRecordEffect::Nothing),
            _ if self.version == TlsVersion::V1_2 && level == WARNING => Ok(ControlRecordEffect::Nothing),
            description => {
                self.we_closed = true;
                let alert = TlsAlert(description);
                let is_refusal = alert.is_refusal();
                let error = Error::with_source(ErrorKind::Receive, "the server ended TLS by an alert", alert);
                Err(if is_refusal { error.into_tls_rejection() } else { error })
            }
        }
    }

    /// Handles the bytes of handshake messages, such as tickets and key updates, that arrive after
    /// the handshake. A message may span several records, and a record may contain several
    /// messages.
    fn on_handshake_bytes(&mut self, plain: &[u8]) -> Result<ControlRecordEffect> {
        if plain.is_empty() {
            return Err(self.fail_with_alert(AlertDescription::UnexpectedMessage, "an empty handshake record"));
        }
        if self.message.len() + plain.len() > MAX_MESSAGE {
            return Err(
                self.fail_with_alert(AlertDescription::UnexpectedMessage, "a handshake message longer than allowed")
            );
        }
        let mut bytes = std::mem::take(&mut self.message);
        bytes.extend_from_slice(plain);
        let mut rest = &bytes[..];
        while let [kind, a, b, c, after @ ..] = rest {
            let len = u32::from_be_bytes([0, *a, *b, *c]) as usize;
            let Some((body, after)) = after.split_at_checked(len) else { break };
            self.on_handshake_message(*kind, body, after.is_empty())?;
            rest = after;
        }
        self.message = rest.to_vec();
        Ok(ControlRecordEffect::Nothing)
    }

    fn on_handshake_message(&mut self, kind: u8, body: &[u8], last_of_record: bool) -> Result<()> {
        const HELLO_REQUEST: u8 = 0;
        const NEW_SESSION_TICKET: u8 = 4;
        const KEY_UPDATE: u8 = 24;
        match (self.version, kind, body) {
            (TlsVersion::V1_3, NEW_SESSION_TICKET, _) => match self.kernel.handle_new_session_ticket(body) {
                Ok(()) => Ok(()),
                Err(error) => {
                    self.queue_alert(AlertDescription::DecodeError);
                    Err(Error::with_source(ErrorKind::Receive, "the server sent a bad session ticket", error))
                }
            },
            // The next record must use the new key (RFC 8446 §5.1).
            (TlsVersion::V1_3, KEY_UPDATE, &[wants @ 0..=1]) if last_of_record => {
                let secrets = self.kernel.update_rx_secret().map_err(missing_keys_error)?;
                self.receive = TlsRecordKey::new(self.version, secrets).ok_or_else(key_limit_error)?;
                if wants == 1 && !self.update_waits {
                    self.renew_transmit_key()?;
                    self.update_waits = true;
                }
                Ok(())
            }
            (TlsVersion::V1_2, HELLO_REQUEST, []) => {
                self.encrypt_alert(1, AlertDescription::NoRenegotiation);
                Ok(())
            }
            _ => Err(self.fail_with_alert(AlertDescription::UnexpectedMessage, "a message that has no place here")),
        }
    }

    /// Queues a key update. Later records are encrypted with the new key (RFC 8446 §4.6.3).
    fn renew_transmit_key(&mut self) -> Result<()> {
        const UPDATE_NOT_REQUESTED: [u8; 5] = [24, 0, 0, 1, 0];
        if self.version != TlsVersion::V1_3 {
            return Err(key_limit_error());
        }
        self.transmit
            .encrypt(content::HANDSHAKE, &UPDATE_NOT_REQUESTED, &mut self.output)
            .map_err(|_| key_limit_error())?;
        let secrets = self.kernel.update_tx_secret().map_err(missing_keys_error)?;
        self.transmit = TlsRecordKey::new(self.version, secrets).ok_or_else(key_limit_error)?;
        Ok(())
    }

    fn interleaved_message_error(&mut self) -> Error {
        self.fail_with_alert(AlertDescription::UnexpectedMessage, "a handshake message was interrupted")
    }

    /// Queues a fatal alert, and returns the error for the peer's protocol violation.
    fn fail_with_alert(&mut self, alert: AlertDescription, why: &str) -> Error {
        self.queue_alert(alert);
        Error::new(ErrorKind::Receive, format!("broken TLS stream: {why}"))
    }

    /// Queues a fatal alert.
    fn queue_alert(&mut self, description: AlertDescription) {
        const WARNING: u8 = 1;
        const FATAL: u8 = 2;
        if !self.we_closed {
            let level = if description == AlertDescription::CloseNotify { WARNING } else { FATAL };
            self.encrypt_alert(level, description);
            self.we_closed = true;
        }
    }

    fn encrypt_alert(&mut self, level: u8, description: AlertDescription) {
        // If the key cannot encrypt any more, the connection closes without an alert.
        let _ = self.transmit.encrypt(content::ALERT, &[level, description.into()], &mut self.output);
    }
}

/// Returns the length of the first record in `bytes`, including its header. Returns `None` if the
/// header is incomplete.
pub(super) fn record_len(bytes: &[u8]) -> Option<usize> {
    let &[_, _, _, high, low, ..] = bytes else { return None };
    Some(HEADER_LENGTH + usize::from(u16::from_be_bytes([high, low])))
}

fn key_limit_error() -> Error {
    Error::new(ErrorKind::Send, "the TLS key cannot be used any longer")
}

fn missing_keys_error(error: rustls::Error) -> Error {
    Error::with_source(ErrorKind::Receive, "cannot renew the TLS key", error)
}

#[cfg(test)]
mod tests;
