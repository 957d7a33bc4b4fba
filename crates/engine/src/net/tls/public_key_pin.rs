//! Servers whose keys the user knows (RFC 7469's pins, without its field), whatever the issuer of their certificates.
//!
//! A pin is the SHA-256 of the certificate's `SubjectPublicKeyInfo`. It is checked in addition to everything else that
//! the settings require of a certificate, even if they require nothing.

use std::fmt;
use std::sync::Arc;

use aws_lc_rs::digest::{SHA256, digest};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, DigitallySignedStruct, Error, OtherError, SignatureScheme};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, ServerName, SubjectPublicKeyInfoDer, UnixTime};

/// The SHA-256 of a public key as certificates have it.
pub type KeyPin = [u8; 32];

/// A verifier that accepts the certificates accepted by another verifier, if their key is one of
/// these.
#[derive(Debug)]
pub(super) struct PinVerifier {
    pub(super) verifier: Arc<dyn ServerCertVerifier>,
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

impl ServerCertVerifier for PinVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let verified = self.verifier.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now)?;
        let key = ParsedCertificate::try_from(end_entity)?.subject_public_key_info();
        let found = digest(&SHA256, &key);
        if self.pins.iter().any(|pin| pin == found.as_ref()) {
            return Ok(verified);
        }
        Err(Error::InvalidCertificate(CertificateError::Other(OtherError(Arc::new(PinMismatch)))))
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.verifier.verify_tls12_signature(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.verifier.verify_tls13_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.verifier.supported_verify_schemes()
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
