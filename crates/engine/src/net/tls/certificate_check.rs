//! Checks of server certificates, and the one rustls verifier that all of them share.
//!
//! ```text
//!  rustls ──▶ CheckVerifier ──▶ [PinCheck ─▶] [HyphenNameCheck ─▶] ChainCheck, LazyRootsCheck or AcceptAnyCheck
//! ```
//!
//! A check decides about certificates and names only. The handshake's signature, which proves that
//! the peer holds the key, is verified in the same way for all of them.

use std::fmt;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature};
use rustls::{DigitallySignedStruct, Error, SignatureScheme};
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};

/// The certificates that a server presented, and the name that it must have.
pub(super) struct PresentedChain<'a> {
    pub(super) end_entity: &'a CertificateDer<'a>,
    pub(super) intermediates: &'a [CertificateDer<'a>],
    pub(super) server_name: &'a ServerName<'a>,
    pub(super) now: UnixTime,
}

/// A rule that accepts or refuses a server's certificates.
pub(super) trait CertificateCheck: fmt::Debug + Send + Sync {
    /// Checks the certificates and the server's name.
    ///
    /// # Errors
    /// The reason for the refusal.
    fn check(&self, chain: &PresentedChain<'_>) -> Result<(), Error>;

    /// Returns the algorithms that the handshake's signature may use.
    fn algorithms(&self) -> WebPkiSupportedAlgorithms;
}

/// The rustls verifier that applies a check and verifies the handshake's signature.
#[derive(Debug)]
pub(super) struct CheckVerifier(pub(super) Arc<dyn CertificateCheck>);

impl ServerCertVerifier for CheckVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let chain = PresentedChain { end_entity, intermediates, server_name, now };
        self.0.check(&chain).map(|()| ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, cert, dss, &self.0.algorithms())
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, cert, dss, &self.0.algorithms())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.algorithms().supported_schemes()
    }
}
