//! TLS without I/O. Data is decrypted in the buffer that contains the ciphertext.
//!
//! ```text
//!   recv ─► buf ─► TlsConnection::handshake(&mut buf, &mut out)   until Done          out ─► send
//!           buf ─► TlsConnection::decrypt(&mut buf)  → a range of buf, now plain text    (TlsConnection::take_control_output)
//!           plain ─► TlsConnection::encrypt(plain, &mut out)                             out ─► send
//! ```
//!
//! rustls does the handshake: versions, certificates, key schedule, tickets. Records are decrypted
//! and encrypted here, by aws-lc-rs or ring (`fastest_aead`), with the keys that rustls passes on
//! (`dangerous_into_kernel_connection`, which is meant for kernel TLS). The rejected alternative is
//! the unbuffered API of rustls 0.23. It decrypts in place, too, but then copies each record into a
//! new vector, from which the bytes would have to be copied back to the caller's buffer: for each
//! record of 16 KiB, an allocation and 48 KiB of copies.
//!
//! ```
//! use haul::net::tls::{HandshakeStatus, TlsConnection, TlsContexts, TlsOptions};
//!
//! let contexts = TlsContexts::default();
//! let mut options = TlsOptions::default();
//! options.verify = false;
//! let context = contexts.context(&options)?;
//! let mut tls = TlsConnection::new(&context, "example.test")?;
//! let mut hello = Vec::new();
//! let state = tls.handshake(&mut Vec::new(), &mut hello)?;
//! assert_eq!(state, HandshakeStatus::NeedRead);
//! assert!(!hello.is_empty());
//! # Ok::<(), haul::Error>(())
//! ```
//!
//! Left out: early data, renegotiation (RFC 5246 §7.4.1.1, refused), certificate compression, and
//! revocation checks other than by a list that the user provides (CRL, RFC 5280 §5).

mod alert_after_handshake;
mod ca_certificate_rules;
mod certificate_check_trait;
mod certificate_status;
mod cipher_list;
mod client_identity;
mod common_name;
mod connection;
mod ech;
mod fastest_aead;
mod handshake_failure;
mod hyphen_host_stand_in;
mod negotiated_session;
mod options_and_context_cache;
#[cfg(feature = "old-keys")]
mod pkcs12_and_encrypted_pem;
mod public_key_pin;
#[cfg(feature = "http3")]
mod quic;
#[cfg(feature = "http3")]
mod quic_aead;
mod record_cipher;
mod record_layer;
mod replaced_file_check;
mod server_tickets;
mod system_roots;
mod trust;
mod verbose_certificate_text;
mod webpki_chain_check;
#[cfg(all(test, feature = "json"))]
mod x509_limbo;
mod x509_v1_signature;

#[doc(hidden)]
pub use certificate_status::parses_ocsp_response;
pub use client_identity::{ClientCertificateFiles, Passphrase, Pem};
pub use connection::{HandshakeStatus, TlsConnection};
pub(crate) use ech::keys_of_rejection;
pub use ech::{EchOptions, EchPolicy};
pub(crate) use negotiated_session::NegotiatedSession;
pub use options_and_context_cache::{SessionKey, TlsContext, TlsContexts, TlsOptions, TlsVersion};
pub use public_key_pin::{PublicKeyPin, key_pin};
#[cfg(feature = "http3")]
pub(crate) use quic::{QuicAttemptTls, QuicHandshakeData};
pub use record_layer::{OpenedTlsRecord, TlsInputState};
pub use system_roots::system_bundle;
pub use verbose_certificate_text::certificate_details;

/// The maximum length of an encrypted record, in bytes: the header, 2^14 bytes, and the expansion
/// that TLS 1.2 allows (RFC 5246 §6.2.3). A buffer of this size always has room for the next
/// record.
pub const MAX_RECORD: usize = 5 + (1 << 14) + 2048;
