//! The trait of checks of server certificates, and the rustls verifier that applies them.
//!
//! ```text
//!  rustls ──▶ RustlsCertificateVerifier ──▶ [PinnedKeyCertificateCheck ─▶] [HyphenNameCheck ─▶] ─┐
//!            ChainCheck, BundleThenSystemRootsCheck or AcceptAnyCheck ◀──────────────────────────┘
//! ```
//!
//! A check examines certificates and names only. [`RustlsCertificateVerifier`] verifies the
//! handshake's signature, which proves that the peer has the key.

use std::fmt;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature};
use rustls::{DigitallySignedStruct, Error, PeerMisbehaved, SignatureScheme};
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};

use super::x509_v1_signature;

/// The certificates that a server sent, and the server name that they must contain.
pub(super) struct PresentedChain<'a> {
    pub(super) end_entity: &'a CertificateDer<'a>,
    pub(super) intermediates: &'a [CertificateDer<'a>],
    pub(super) server_name: &'a ServerName<'a>,
    pub(super) now: UnixTime,
    /// The stapled OCSP response, or an empty slice if the server sent no response. `None` if the
    /// response must not be checked.
    pub(super) status: Option<&'a [u8]>,
}

/// A check that accepts or refuses the certificates that a server sent.
pub(super) trait CertificateCheck: fmt::Debug + Send + Sync {
    /// Checks that the certificates lead to a trusted one, and that the server's own certificate
    /// contains the server's name.
    ///
    /// # Errors
    /// The reason why the certificates are refused.
    fn check(&self, chain: &PresentedChain<'_>) -> Result<(), Error>;

    /// Returns the signature algorithms that a server may use to sign the handshake.
    fn algorithms(&self) -> WebPkiSupportedAlgorithms;
}

/// The rustls verifier that applies a certificate check and verifies the handshake's signature.
#[derive(Debug)]
pub(super) struct RustlsCertificateVerifier {
    pub(super) check: Arc<dyn CertificateCheck>,
    /// The signature schemes that were offered for the handshake's signature, in order of
    /// preference. `None` offers all schemes that the check allows.
    pub(super) schemes: Option<Vec<SignatureScheme>>,
    /// True if the server must send a stapled OCSP response that confirms its certificate.
    pub(super) requires_status: bool,
}

impl RustlsCertificateVerifier {
    /// Returns an error if the server signed the handshake with a signature scheme that was not
    /// offered.
    fn check_scheme(&self, dss: &DigitallySignedStruct) -> Result<(), Error> {
        match &self.schemes {
            Some(schemes) if !schemes.contains(&dss.scheme) => {
                Err(PeerMisbehaved::SignedHandshakeWithUnadvertisedSigScheme.into())
            }
            _ => Ok(()),
        }
    }
}

impl ServerCertVerifier for RustlsCertificateVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let status = self.requires_status.then_some(ocsp_response);
        let chain = PresentedChain { end_entity, intermediates, server_name, now, status };
        self.check.check(&chain).map(|()| ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.check_scheme(dss)?;
        let algorithms = self.check.algorithms();
        match verify_tls12_signature(message, cert, dss, &algorithms) {
            Err(Error::InvalidCertificate(_))
                if x509_v1_signature::has_signed(cert, message, dss, &algorithms, false) =>
            {
                Ok(HandshakeSignatureValid::assertion())
            }
            outcome => outcome,
        }
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.check_scheme(dss)?;
        let algorithms = self.check.algorithms();
        match verify_tls13_signature(message, cert, dss, &algorithms) {
            Err(Error::InvalidCertificate(_))
                if x509_v1_signature::has_signed(cert, message, dss, &algorithms, true) =>
            {
                Ok(HandshakeSignatureValid::assertion())
            }
            outcome => outcome,
        }
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.schemes.clone().unwrap_or_else(|| self.check.algorithms().supported_schemes())
    }
}
