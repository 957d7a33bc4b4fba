//! Pinned public keys: the server must have a public key that the user has specified.
//!
//! A pin is the SHA-256 of the certificate's `SubjectPublicKeyInfo`, as in RFC 7469. It is checked
//! in addition to all other checks of the certificate, and also if these checks are turned off.

use std::fmt;
use std::sync::Arc;

use aws_lc_rs::digest::{SHA256, digest};
use rustls::crypto::WebPkiSupportedAlgorithms;
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, Error, OtherError};
use rustls_pki_types::SubjectPublicKeyInfoDer;
use rustls_pki_types::pem::PemObject;

use super::certificate_check_trait::{CertificateCheck, PresentedChain};

/// The pin of a public key: the SHA-256 hash of its `SubjectPublicKeyInfo`.
pub type PublicKeyPin = [u8; 32];

/// A certificate check that requires a pinned public key: it accepts certificates if the server's
/// key is one of the pins and the inner check accepts them, too.
#[derive(Debug)]
pub(super) struct PinnedKeyCertificateCheck {
    pub(super) inner: Arc<dyn CertificateCheck>,
    pub(super) pins: Vec<PublicKeyPin>,
}

/// The error for a server whose public key is not one of the pinned keys.
#[derive(Debug)]
pub(super) struct PinMismatch;

impl fmt::Display for PinMismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the server's public key is not one of those that are pinned")
    }
}

impl std::error::Error for PinMismatch {}

impl CertificateCheck for PinnedKeyCertificateCheck {
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

/// Returns the pin of the public key in the content of a PEM or DER file. Returns `None` if the
/// file contains no key.
#[must_use]
pub fn key_pin(file: &[u8]) -> Option<PublicKeyPin> {
    let der = match SubjectPublicKeyInfoDer::from_pem_slice(file) {
        Ok(key) => key.to_vec(),
        // DER begins with the tag of a SEQUENCE.
        Err(_) if file.first() == Some(&0x30) => file.to_vec(),
        Err(_) => return None,
    };
    digest(&SHA256, &der).as_ref().try_into().ok()
}

#[cfg(test)]
mod tests {
    use rcgen::PublicKeyData;

    use super::*;

    #[test]
    fn pin_of_pem_and_der_key_is_the_same() {
        let key = rcgen::KeyPair::generate().unwrap();
        let der = key.subject_public_key_info();
        let pin = PublicKeyPin::try_from(digest(&SHA256, &der).as_ref()).unwrap();
        assert_eq!(key_pin(&der), Some(pin));
        assert_eq!(key_pin(key.public_key_pem().as_bytes()), Some(pin));
        for other in [&b""[..], b"text", &der[1..]] {
            assert_eq!(key_pin(other), None, "{other:?}");
        }
    }
}
