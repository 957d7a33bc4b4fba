//! Which server certificates are acceptable, beyond what webpki alone would say.
//!
//! webpki takes a trust anchor for an issuer only: a self-signed certificate that is its own CA is refused as a
//! server's (`CaUsedAsEndEntity`), and a server's certificate listed by itself has an unknown issuer. Users of curl
//! put just these into `--cacert`, and OpenSSL (with partial chains, as curl sets it) accepts them. So: what is listed
//! byte for byte is trusted, if webpki found no other fault and the name fits. The handshake's signature still proves
//! that the peer holds the key.

use std::sync::Arc;

use rustls::{
    CertificateError, DigitallySignedStruct, Error, SignatureScheme,
    client::{
        WebPkiServerVerifier,
        danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
        verify_server_name,
    },
    crypto::{WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature},
    server::ParsedCertificate,
};
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};

use super::subject;

/// Accepts a chain to a trusted certificate, or a trusted certificate itself.
#[derive(Debug)]
pub(super) struct ListedOrSigned {
    pub(super) signed: Arc<WebPkiServerVerifier>,
    pub(super) listed: Vec<CertificateDer<'static>>,
    /// As [`TlsOptions::common_name`](super::TlsOptions::common_name).
    pub(super) common_name: bool,
}

impl ListedOrSigned {
    /// Whether the name is the subject's, and that may count.
    fn names_by_subject(&self, chain: (&CertificateDer<'_>, &[CertificateDer<'_>]), name: &ServerName<'_>) -> bool {
        let (end_entity, intermediates) = chain;
        self.common_name
            && subject::names(end_entity, name)
            && !self.listed.iter().chain(intermediates).any(subject::is_constraining)
    }
}

impl ServerCertVerifier for ListedOrSigned {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let refusal = match self.signed.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now) {
            Err(Error::InvalidCertificate(refusal)) => refusal,
            other => return other,
        };
        // The name is looked at last.
        let is_trusted = is_of_the_name(&refusal)
            || only_lacks_an_issuer(&refusal) && self.listed.iter().any(|listed| listed == end_entity);
        if !is_trusted {
            return Err(Error::InvalidCertificate(refusal));
        }
        match verify_server_name(&ParsedCertificate::try_from(end_entity)?, server_name) {
            Err(refusal) if !self.names_by_subject((end_entity, intermediates), server_name) => Err(refusal),
            _ => Ok(ServerCertVerified::assertion()),
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.signed.verify_tls12_signature(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.signed.verify_tls13_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.signed.supported_verify_schemes()
    }
}

/// Whether this refusal is about the chain alone. webpki looks at the validity period before either, so an expired
/// certificate never comes here.
fn only_lacks_an_issuer(refusal: &CertificateError) -> bool {
    match refusal {
        CertificateError::UnknownIssuer => true,
        CertificateError::Other(other) => {
            matches!(other.0.downcast_ref(), Some(webpki::Error::CaUsedAsEndEntity))
        }
        _ => false,
    }
}

/// Whether this refusal is about the name alone, which is looked at last.
pub(super) fn is_of_the_name(refusal: &CertificateError) -> bool {
    matches!(refusal, CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. })
}

/// Finds the fault of a certificate that was accepted without verification.
#[derive(Clone, Debug)]
pub(super) struct Examiner {
    /// None where there is nothing to trust.
    verifier: Option<Arc<dyn ServerCertVerifier>>,
}

impl Examiner {
    pub(super) fn new(verifier: Option<Arc<dyn ServerCertVerifier>>) -> Self {
        Self { verifier }
    }

    /// A missing name is not a fault of the certificate: only its issuer and validity are checked.
    pub(super) fn fault(&self, chain: &[CertificateDer<'_>], name: &ServerName<'_>) -> Option<CertificateError> {
        let (Some(verifier), Some((end_entity, others))) = (&self.verifier, chain.split_first()) else {
            return Some(CertificateError::UnknownIssuer);
        };
        match verifier.verify_server_cert(end_entity, others, name, &[], UnixTime::now()) {
            Ok(_) => None,
            Err(Error::InvalidCertificate(fault)) => (!is_of_the_name(&fault)).then_some(fault),
            Err(_) => Some(CertificateError::BadEncoding),
        }
    }
}

/// Accepts any certificate (`-k`), but only from a peer that holds its key.
#[derive(Debug)]
pub(super) struct AcceptAll {
    algorithms: WebPkiSupportedAlgorithms,
}

impl AcceptAll {
    pub(super) fn new(algorithms: WebPkiSupportedAlgorithms) -> Self {
        Self { algorithms }
    }
}

impl ServerCertVerifier for AcceptAll {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, cert, dss, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, cert, dss, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}
