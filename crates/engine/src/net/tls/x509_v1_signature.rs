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

/// Returns a certificate of version 1 (no version field, no extensions). `issuer` is the name and
/// the key of its issuer; `None` makes a self-issued certificate. The signature is invalid, because
/// it was made with a version field.
#[cfg(test)]
pub(super) fn version1_certificate(
    key: &rcgen::KeyPair,
    name: &str,
    issuer: Option<(&str, &rcgen::KeyPair)>,
) -> CertificateDer<'static> {
    use der::asn1::AnyRef;
    use der::{Tag, Tagged};

    let params = |name: &str| {
        let mut params = rcgen::CertificateParams::new([]).unwrap();
        params.distinguished_name = rcgen::DistinguishedName::new();
        params.distinguished_name.push(rcgen::DnType::CommonName, name);
        params
    };
    let certificate = match issuer {
        Some((issuer, signer)) => params(name).signed_by(key, &rcgen::Issuer::from_params(&params(issuer), signer)),
        None => params(name).self_signed(key),
    };
    let certificate = certificate.unwrap();
    let parts = Vec::<AnyRef<'_>>::from_der(certificate.der()).unwrap();
    let content = parts[0].to_der().unwrap();
    let mut fields = Vec::<AnyRef<'_>>::from_der(&content).unwrap();
    fields.retain(|field| !matches!(field.tag(), Tag::ContextSpecific { .. }));
    let content = fields.to_der().unwrap();
    let parts = vec![AnyRef::from_der(&content).unwrap(), parts[1], parts[2]];
    CertificateDer::from(parts.to_der().unwrap())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use rcgen::{KeyPair, SigningKey};
    use rustls::client::danger::ServerCertVerifier;
    use rustls::crypto::aws_lc_rs;
    use rustls::internal::msgs::codec::{Codec, Reader};

    use super::super::certificate_check_trait::RustlsCertificateVerifier;
    use super::super::webpki_chain_check::AcceptAnyCheck;
    use super::*;

    const SCHEME: SignatureScheme = SignatureScheme::ECDSA_NISTP256_SHA256;

    fn version1(key: &KeyPair) -> CertificateDer<'static> {
        version1_certificate(key, "old.example", None)
    }

    fn version3(key: &KeyPair) -> CertificateDer<'static> {
        let params = rcgen::CertificateParams::new(["old.example".to_owned()]).unwrap();
        params.self_signed(key).unwrap().der().clone()
    }

    fn signature(key: &KeyPair, message: &[u8]) -> DigitallySignedStruct {
        let bytes = key.sign(message).unwrap();
        let mut encoded = Vec::new();
        SCHEME.encode(&mut encoded);
        encoded.extend((bytes.len() as u16).to_be_bytes());
        encoded.extend(bytes);
        DigitallySignedStruct::read(&mut Reader::init(&encoded)).unwrap()
    }

    #[test]
    fn version_1_key_proves_itself_by_signature() {
        let (key, other) = (KeyPair::generate().unwrap(), KeyPair::generate().unwrap());
        let algorithms = aws_lc_rs::default_provider().signature_verification_algorithms;
        let verifier = RustlsCertificateVerifier {
            check: Arc::new(AcceptAnyCheck::new(algorithms)),
            schemes: None,
            requires_status: false,
        };
        let certificate = version1(&key);
        for (signer, is_good) in [(&key, true), (&other, false)] {
            let signed = signature(signer, b"handshake");
            for is_tls13 in [false, true] {
                let outcome = has_signed(&certificate, b"handshake", &signed, &algorithms, is_tls13);
                assert_eq!(outcome, is_good, "{is_tls13}");
                assert!(!has_signed(&version3(&key), b"handshake", &signed, &algorithms, is_tls13), "of version 3");
            }
            assert_eq!(verifier.verify_tls12_signature(b"handshake", &certificate, &signed).is_ok(), is_good);
            assert_eq!(verifier.verify_tls13_signature(b"handshake", &certificate, &signed).is_ok(), is_good);
        }
    }

    #[test]
    fn tls13_allows_only_the_first_algorithm_of_a_scheme() {
        let key = KeyPair::generate().unwrap();
        let known = aws_lc_rs::default_provider().signature_verification_algorithms;
        let first_of = |scheme| known.mapping.iter().find(|(known, _)| *known == scheme).unwrap().1[0];
        let both = vec![first_of(SignatureScheme::ECDSA_NISTP384_SHA384), first_of(SCHEME)];
        let mapping: &'static [_] = vec![(SCHEME, &*both.leak())].leak();
        let algorithms = WebPkiSupportedAlgorithms { mapping, ..known };
        let signed = signature(&key, b"handshake");
        assert!(has_signed(&version1(&key), b"handshake", &signed, &algorithms, false));
        assert!(!has_signed(&version1(&key), b"handshake", &signed, &algorithms, true));
    }
}
