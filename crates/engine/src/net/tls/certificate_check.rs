//! The trait of checks of server certificates, and the rustls verifier that applies them.
//!
//! ```text
//!  rustls ──▶ CheckVerifier ──▶ [PinCheck ─▶] [HyphenNameCheck ─▶] ChainCheck, LazyRootsCheck or AcceptAnyCheck
//! ```
//!
//! A check examines certificates and names only. [`CheckVerifier`] verifies the handshake's
//! signature, which proves that the peer has the key.

use std::fmt;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature};
use rustls::{DigitallySignedStruct, Error, SignatureScheme};
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};

/// The certificates that a server sent, and the name that they must contain.
pub(super) struct PresentedChain<'a> {
    pub(super) end_entity: &'a CertificateDer<'a>,
    pub(super) intermediates: &'a [CertificateDer<'a>],
    pub(super) server_name: &'a ServerName<'a>,
    pub(super) now: UnixTime,
}

/// A check that accepts or refuses the certificates that a server sent.
pub(super) trait CertificateCheck: fmt::Debug + Send + Sync {
    /// Checks the certificates and the server's name.
    ///
    /// # Errors
    /// The reason why the certificates are refused.
    fn check(&self, chain: &PresentedChain<'_>) -> Result<(), Error>;

    /// Returns the algorithms that are allowed for the handshake's signature.
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
