//! Encryption and decryption of records in one direction, for TLS 1.3 and the AEAD suites of TLS
//! 1.2 (the only ones that rustls negotiates).
//!
//! | | nonce | additional data | plaintext |
//! |---|---|---|---|
//! | 1.3 (RFC 8446 §5.2, §5.3) | iv xor sequence | the record's header | content, type, zeros |
//! | 1.2 AES-GCM (RFC 5288 §3) | salt, 8 record bytes | sequence, type, version, length | content |
//! | 1.2 ChaCha20 (RFC 7905 §2) | iv xor sequence | sequence, type, version, length | content |

use std::ops::Range;

use rustls::ConnectionTrafficSecrets;

use super::TlsVersion;
use super::fastest_aead::{TAG_LENGTH, TlsAeadAlgorithm, TlsRecordAead};

/// The length of a record's header in bytes: type, version, length (RFC 8446 §5.1).
pub(super) const HEADER_LENGTH: usize = 5;
/// The maximum length of a record's plaintext in bytes (RFC 8446 §5.1).
pub(super) const MAX_PLAIN: usize = 1 << 14;
const EXPLICIT_NONCE_LENGTH: usize = 8;
/// The version in the header of every record: TLS 1.2. TLS 1.3 records contain the same value as
/// `legacy_record_version`.
const VERSION: [u8; 2] = [3, 3];

/// The content types of TLS records (RFC 8446 §5.1).
pub(super) mod content {
    pub(in super::super) const ALERT: u8 = 21;
    pub(in super::super) const HANDSHAKE: u8 = 22;
    pub(in super::super) const APPLICATION_DATA: u8 = 23;
}

/// The reason why a record cannot be decrypted or encrypted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TlsRecordCryptoError {
    /// The record is not authentic, or too short.
    Authentication,
    /// The record is longer than the protocol allows.
    Overflow,
    /// A TLS 1.3 record contains nothing but padding.
    NoType,
    /// The key has encrypted the maximum number of records, and may not be used any more.
    Exhausted,
}

/// The key for the records of one direction, and the sequence number of the next record.
pub(super) struct TlsRecordKey {
    aead: TlsRecordAead,
    iv: [u8; 12],
    sequence: u64,
    layout: TlsRecordLayout,
}

/// The layout of an encrypted record, which depends on the TLS version and the cipher.
#[derive(Clone, Copy, PartialEq, Eq)]
enum TlsRecordLayout {
    V13,
    V12Gcm,
    V12ChaCha,
}

/// The content of a decrypted record: its type, and its range within the record.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TlsRecordContent {
    pub(super) kind: u8,
    pub(super) range: Range<usize>,
}

impl TlsRecordKey {
    /// Makes a key from the traffic secrets of one direction. `sequence` is the sequence number of
    /// the next record. Returns `None` for an unknown cipher.
    pub(super) fn new(version: TlsVersion, (sequence, secrets): (u64, ConnectionTrafficSecrets)) -> Option<Self> {
        let (cipher, key, iv) = match secrets {
            ConnectionTrafficSecrets::Aes128Gcm { key, iv } => (TlsAeadAlgorithm::Aes128Gcm, key, iv),
            ConnectionTrafficSecrets::Aes256Gcm { key, iv } => (TlsAeadAlgorithm::Aes256Gcm, key, iv),
            ConnectionTrafficSecrets::Chacha20Poly1305 { key, iv } => (TlsAeadAlgorithm::ChaCha20Poly1305, key, iv),
            _ => return None,
        };
        let layout = match version {
            TlsVersion::V1_3 => TlsRecordLayout::V13,
            TlsVersion::V1_2 if cipher == TlsAeadAlgorithm::ChaCha20Poly1305 => TlsRecordLayout::V12ChaCha,
            TlsVersion::V1_2 => TlsRecordLayout::V12Gcm,
        };
        Some(Self {
            aead: TlsRecordAead::new(cipher, key.as_ref())?,
            iv: iv.as_ref().try_into().ok()?,
            sequence,
            layout,
        })
    }

    /// Returns the sequence number of the next record, which is the number of records so far.
    pub(super) fn sequence(&self) -> u64 {
        self.sequence
    }

    /// Decrypts one complete record in place. Returns the type and the range of its content.
    pub(super) fn decrypt(&mut self, record: &mut [u8]) -> Result<TlsRecordContent, TlsRecordCryptoError> {
        let (header, body) = record.split_at_mut_checked(HEADER_LENGTH).ok_or(TlsRecordCryptoError::Authentication)?;
        let next = self.sequence.checked_add(1).ok_or(TlsRecordCryptoError::Exhausted)?;
        let explicit = if self.layout == TlsRecordLayout::V12Gcm { EXPLICIT_NONCE_LENGTH } else { 0 };
        let (nonce_sent, sealed) = body.split_at_mut_checked(explicit).ok_or(TlsRecordCryptoError::Authentication)?;
        let len = sealed.len().checked_sub(TAG_LENGTH).ok_or(TlsRecordCryptoError::Authentication)?;
        let nonce = match self.layout {
            TlsRecordLayout::V12Gcm => {
                let mut nonce = self.iv;
                nonce[4..].copy_from_slice(nonce_sent);
                nonce
            }
            TlsRecordLayout::V13 | TlsRecordLayout::V12ChaCha => self.nonce(),
        };
        let opened = match self.layout {
            TlsRecordLayout::V13 => self.aead.open(nonce, header, sealed),
            TlsRecordLayout::V12Gcm | TlsRecordLayout::V12ChaCha => {
                let aad = self.aad_v12([header[0], header[1], header[2]], len);
                self.aead.open(nonce, &aad, sealed)
            }
        };
        let plain = opened.ok_or(TlsRecordCryptoError::Authentication)?;
        self.sequence = next;
        let (kind, len) = match self.layout {
            TlsRecordLayout::V13 => {
                // The content type is the last byte that is not padding (RFC 8446 §5.4).
                let end = plain.iter().rposition(|&byte| byte != 0).ok_or(TlsRecordCryptoError::NoType)?;
                (plain[end], end)
            }
            TlsRecordLayout::V12Gcm | TlsRecordLayout::V12ChaCha => (header[0], plain.len()),
        };
        if len > MAX_PLAIN {
            return Err(TlsRecordCryptoError::Overflow);
        }
        let start = HEADER_LENGTH + explicit;
        Ok(TlsRecordContent { kind, range: start..start + len })
    }

    /// Encrypts `content` (at most [`MAX_PLAIN`] bytes) as one record of the content type `kind`,
    /// and appends the record to `out`.
    pub(super) fn encrypt(&mut self, kind: u8, content: &[u8], out: &mut Vec<u8>) -> Result<(), TlsRecordCryptoError> {
        let next = self.sequence.checked_add(1).ok_or(TlsRecordCryptoError::Exhausted)?;
        let nonce = self.nonce();
        let (outer, explicit, inner_kind): (u8, &[u8], &[u8]) = match self.layout {
            TlsRecordLayout::V13 => (content::APPLICATION_DATA, &[], &[kind]),
            // The explicit part of the nonce must only be unique; this one is a counter (RFC 5288
            // §3).
            TlsRecordLayout::V12Gcm => (kind, &nonce[4..], &[]),
            TlsRecordLayout::V12ChaCha => (kind, &[], &[]),
        };
        let length = explicit.len() + content.len() + inner_kind.len() + TAG_LENGTH;
        let Ok(length) = u16::try_from(length) else { return Err(TlsRecordCryptoError::Overflow) };
        let start = out.len();
        out.reserve(HEADER_LENGTH + usize::from(length));
        out.push(outer);
        out.extend_from_slice(&VERSION);
        out.extend_from_slice(&length.to_be_bytes());
        out.extend_from_slice(explicit);
        let plain = out.len();
        out.extend_from_slice(content);
        out.extend_from_slice(inner_kind);
        let (before, in_out) = out.split_at_mut(plain);
        let sealed = match self.layout {
            TlsRecordLayout::V13 => self.aead.seal(nonce, &before[start..], in_out),
            TlsRecordLayout::V12Gcm | TlsRecordLayout::V12ChaCha => {
                let aad = self.aad_v12([kind, VERSION[0], VERSION[1]], content.len());
                self.aead.seal(nonce, &aad, in_out)
            }
        };
        match sealed {
            Some(tag) => {
                out.extend_from_slice(&tag);
                self.sequence = next;
                Ok(())
            }
            None => {
                // The appended bytes may still be plaintext.
                out.truncate(start);
                Err(TlsRecordCryptoError::Exhausted)
            }
        }
    }

    fn nonce(&self) -> [u8; 12] {
        let mut nonce = self.iv;
        for (byte, sequence) in nonce[4..].iter_mut().zip(self.sequence.to_be_bytes()) {
            *byte ^= sequence;
        }
        nonce
    }

    /// Returns the additional data for the AEAD of a TLS 1.2 record (RFC 5246 §6.2.3.3).
    fn aad_v12(&self, kind_and_version: [u8; 3], len: usize) -> [u8; 13] {
        let mut aad = [0; 13];
        aad[..8].copy_from_slice(&self.sequence.to_be_bytes());
        aad[8..11].copy_from_slice(&kind_and_version);
        // A record's length field has two bytes, and its content is shorter.
        aad[11..].copy_from_slice(&(len as u16).to_be_bytes());
        aad
    }
}
