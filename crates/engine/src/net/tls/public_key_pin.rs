//! Servers whose keys the user knows (RFC 7469's pins, without its field), whatever the issuer of
//! their certificates.
//!
//! A pin is the SHA-256 of the certificate's `SubjectPublicKeyInfo`. It is checked in addition to
//! everything else that the settings require of a certificate, even if they require nothing.

use std::fmt;
use std::sync::Arc;

use aws_lc_rs::digest::{SHA256, digest};
use rustls::crypto::WebPkiSupportedAlgorithms;
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, Error, OtherError};
use rustls_pki_types::SubjectPublicKeyInfoDer;
use rustls_pki_types::pem::PemObject;

use super::certificate_check::{CertificateCheck, PresentedChain};

/// The SHA-256 of a public key as certificates have it.
pub type KeyPin = [u8; 32];

/// Accepts the certificates that the inner check accepts, if their key is one of the pins.
#[derive(Debug)]
pub(super) struct PinCheck {
    pub(super) inner: Arc<dyn CertificateCheck>,
    pub(super) pins: Vec<KeyPin>,
}

/// The server's key is not one of the pinned ones.
#[derive(Debug)]
pub(super) struct PinMismatch;

impl fmt::Display for PinMismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the server's public key is not one of those that are pinned")
    }
}

impl std::error::Error for PinMismatch {}

impl CertificateCheck for PinCheck {
    fn check(&self, chain: &PresentedChain<'_>) -> Result<(), Error> {
        self.inner.check(chain)?;
        let key = ParsedCertificate::try_from(chain.end_entity)?.subject_public_key_info();
        let found = digest(&SHA256, &key);
        if self.pins.iter().any(|pin| pin == found.as_ref()) {
            return Ok(());
        }
        Err(Error::InvalidCertificate(CertificateError::Other(OtherError(Arc::new(PinMismatch)))))
    }

    fn algorithms(&self) -> WebPkiSupportedAlgorithms {
        self.inner.algorithms()
    }
}

/// Returns the pin of a public key's file: PEM or DER. `None` if it contains no key.
#[must_use]
pub fn key_pin(file: &[u8]) -> Option<KeyPin> {
    let der = match SubjectPublicKeyInfoDer::from_pem_slice(file) {
        Ok(key) => key.to_vec(),
        // DER begins as a sequence does.
        Err(_) if file.first() == Some(&0x30) => file.to_vec(),
        Err(_) => return None,
    };
    digest(&SHA256, &der).as_ref().try_into().ok()
}
