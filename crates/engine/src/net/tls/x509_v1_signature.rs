//! Signatures by the keys of version 1 certificates, which webpki does not parse.
//!
//! Old devices have such certificates. They have no extensions, so certificate verification never
//! accepts one for a server. But even without verification (`-k`), the peer must prove that it has
//! the key.

use rustls::crypto::WebPkiSupportedAlgorithms;
use rustls::{DigitallySignedStruct, SignatureScheme};
use rustls_pki_types::{CertificateDer, SubjectPublicKeyInfoDer};
use webpki::RawPublicKeyEntity;
use x509_cert::certificate::{Certificate, Version};
use x509_cert::der::{Decode, Encode};

/// Returns true if `certificate` is a version 1 certificate and its key has signed `message`.
/// `algorithms` lists the algorithms for each signature scheme. With TLS 1.3 (`is_tls13`), only the
/// first algorithm of the signature's scheme is allowed.
pub(super) fn has_signed(
    certificate: &CertificateDer<'_>,
    message: &[u8],
    signed: &DigitallySignedStruct,
    algorithms: &WebPkiSupportedAlgorithms,
    is_tls13: bool,
) -> bool {
    let Some(key) = public_key(certificate) else { return false };
    let Ok(key) = RawPublicKeyEntity::try_from(&key) else { return false };
    let is_scheme = |(scheme, _): &&(SignatureScheme, _)| *scheme == signed.scheme;
    let Some((_, possible)) = algorithms.mapping.iter().find(is_scheme) else { return false };
    let possible = if is_tls13 { &possible[..possible.len().min(1)] } else { possible };
    possible.iter().any(|algorithm| key.verify_signature(*algorithm, message, signed.signature()).is_ok())
}

/// Returns the public key of a version 1 certificate; `None` for any other certificate.
fn public_key(certificate: &CertificateDer<'_>) -> Option<SubjectPublicKeyInfoDer<'static>> {
    let certificate = Certificate::from_der(certificate).ok()?;
    let content = certificate.tbs_certificate();
    let is_version1 = content.version() == Version::V1;
    is_version1.then(|| content.subject_public_key_info().to_der().ok().map(Into::into))?
}
