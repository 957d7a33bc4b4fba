//! The stapled OCSP response of a server (RFC 6960, RFC 6066 section 8): parses it, and checks that
//! it confirms the server's certificate.
//!
//! A response is accepted if it identifies the certificate by issuer and serial number, is signed
//! by the issuer or by a responder that the issuer has certified for this purpose, is valid at
//! present, and has the status "good".

use std::fmt;

use aws_lc_rs::digest::{SHA1_FOR_LEGACY_USE_ONLY, SHA256, SHA384, SHA512, digest};
use der::asn1::{AnyRef, BitStringRef, GeneralizedTime, ObjectIdentifier, OctetStringRef};
use der::{Decode, Encode, Enumerated, Sequence, Tag, Tagged};
use rustls::crypto::WebPkiSupportedAlgorithms;
use rustls_pki_types::{CertificateDer, TrustAnchor, UnixTime};
use webpki::{EndEntityCert, KeyUsage};
use x509_cert::ext::Extension;
use x509_cert::spki::{AlgorithmIdentifierRef, SubjectPublicKeyInfoRef};

/// The maximum size of an accepted OCSP response, in bytes. Responses of public authorities are
/// smaller than 4 KiB.
const MAX_RESPONSE: usize = 64 << 10;
/// The tolerated difference between the clocks of the client and the OCSP responder, in seconds, as
/// in curl.
const CLOCK_SKEW: u64 = 300;
/// The maximum age, in seconds, of an OCSP response without `nextUpdate`: ten days.
const MAX_AGE: u64 = 10 * 86_400;
/// The maximum number of certificates in an OCSP response that are tried as the signer of the
/// response. The limit bounds the number of signature checks.
const MAX_SIGNERS: usize = 4;

const BASIC_OCSP_RESPONSE: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.6.1.5.5.7.48.1.1");
/// The object identifier of the purpose `id-kp-OCSPSigning`, 1.3.6.1.5.5.7.3.9.
const OCSP_SIGNING: &[u8] = b"\x2b\x06\x01\x05\x05\x07\x03\x09";

/// The reason why a stapled OCSP response does not confirm a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StatusFault {
    /// The server sent no OCSP response.
    Missing,
    /// The OCSP response is malformed, or contains no basic response (RFC 6960 section 4.2.1).
    Malformed,
    /// The OCSP responder reports that it could not process the query.
    Unsuccessful,
    /// The OCSP response contains no status of the server's certificate.
    OtherCertificate,
    /// The OCSP response becomes valid only in the future.
    NotYetValid,
    /// The OCSP response is outdated: its `nextUpdate` has passed, or it is too old.
    Expired,
    /// The OCSP response has no valid signature of the certificate's issuer, or of a responder that
    /// the issuer has certified.
    Signature,
    /// The issuer of the server's certificate is not known, so the signature of the OCSP response
    /// cannot be checked.
    UnknownIssuer,
    /// The server's certificate is revoked.
    Revoked,
    /// The OCSP responder does not know the server's certificate.
    Unknown,
}

impl fmt::Display for StatusFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Missing => "the server sent no OCSP response",
            Self::Malformed => "the server's OCSP response is malformed",
            Self::Unsuccessful => "the server's OCSP response says that the responder failed",
            Self::OtherCertificate => "the server's OCSP response is about another certificate",
            Self::NotYetValid => "the server's OCSP response is not valid yet",
            Self::Expired => "the server's OCSP response has expired",
            Self::Signature => "the server's OCSP response is not signed by the issuer of the certificate",
            Self::UnknownIssuer => "the issuer that would sign the server's OCSP response is not known",
            Self::Revoked => "the server's certificate is revoked, by its OCSP response",
            Self::Unknown => "the responder of the server's OCSP response does not know the certificate",
        })
    }
}

impl std::error::Error for StatusFault {}

#[derive(Clone, Copy, PartialEq, Eq, Enumerated)]
#[asn1(type = "ENUMERATED")]
#[repr(u8)]
enum ResponderStatus {
    Successful = 0,
    MalformedRequest = 1,
    InternalError = 2,
    TryLater = 3,
    SignatureRequired = 5,
    Unauthorized = 6,
}

/// The ASN.1 type `OCSPResponse` of RFC 6960.
#[derive(Sequence)]
struct OcspResponse<'a> {
    status: ResponderStatus,
    #[asn1(context_specific = "0", tag_mode = "EXPLICIT", optional = "true")]
    bytes: Option<ResponseBytes<'a>>,
}

/// The ASN.1 type `ResponseBytes` of RFC 6960.
#[derive(Sequence)]
struct ResponseBytes<'a> {
    kind: ObjectIdentifier,
    response: &'a OctetStringRef,
}

/// The ASN.1 type `BasicOCSPResponse` of RFC 6960.
#[derive(Sequence)]
struct BasicResponse<'a> {
    data: AnyRef<'a>,
    algorithm: AlgorithmIdentifierRef<'a>,
    signature: BitStringRef<'a>,
    #[asn1(context_specific = "0", tag_mode = "EXPLICIT", optional = "true")]
    certificates: Option<Vec<AnyRef<'a>>>,
}

/// The ASN.1 type `ResponseData` of RFC 6960, without the version. The version has only one value,
/// which DER omits.
#[derive(Sequence)]
struct ResponseData<'a> {
    /// The name or the key of the responder. This module ignores it, because the check of the
    /// signature identifies the responder.
    responder: AnyRef<'a>,
    produced_at: GeneralizedTime,
    responses: Vec<SingleResponse<'a>>,
    #[asn1(context_specific = "1", tag_mode = "EXPLICIT", optional = "true")]
    extensions: Option<Vec<Extension>>,
}

/// The ASN.1 type `SingleResponse` of RFC 6960: the status of one certificate.
#[derive(Sequence)]
struct SingleResponse<'a> {
    id: CertificateId<'a>,
    status: AnyRef<'a>,
    this_update: GeneralizedTime,
    #[asn1(context_specific = "0", tag_mode = "EXPLICIT", optional = "true")]
    next_update: Option<GeneralizedTime>,
    #[asn1(context_specific = "1", tag_mode = "EXPLICIT", optional = "true")]
    extensions: Option<Vec<Extension>>,
}

/// The ASN.1 type `CertID` of RFC 6960, which identifies a certificate.
#[derive(Sequence)]
struct CertificateId<'a> {
    algorithm: AlgorithmIdentifierRef<'a>,
    issuer_name_hash: &'a OctetStringRef,
    issuer_key_hash: &'a OctetStringRef,
    serial: AnyRef<'a>,
}

/// Checks that an OCSP response confirms the server's certificate `leaf`, which `issuer` has
/// issued.
///
/// # Errors
/// The reason why the response does not confirm the certificate.
pub(super) fn check(
    response: &[u8],
    leaf: &EndEntityCert<'_>,
    issuer: &TrustAnchor<'_>,
    algorithms: &WebPkiSupportedAlgorithms,
    now: UnixTime,
) -> Result<(), StatusFault> {
    if response.is_empty() {
        return Err(StatusFault::Missing);
    }
    if response.len() > MAX_RESPONSE {
        return Err(StatusFault::Malformed);
    }
    let malformed = |_| StatusFault::Malformed;
    let response = OcspResponse::from_der(response).map_err(malformed)?;
    if response.status != ResponderStatus::Successful {
        return Err(StatusFault::Unsuccessful);
    }
    let bytes = response.bytes.filter(|bytes| bytes.kind == BASIC_OCSP_RESPONSE).ok_or(StatusFault::Malformed)?;
    let basic = BasicResponse::from_der(bytes.response.as_bytes()).map_err(malformed)?;
    let signed = basic.data.to_der().map_err(malformed)?;
    check_signature(&basic, &signed, issuer, algorithms, now)?;
    let data = ResponseData::from_der(&signed).map_err(malformed)?;
    if has_critical_extension(data.extensions.as_deref()) {
        return Err(StatusFault::Malformed);
    }
    let mut about = data.responses.iter().filter(|single| single.id.matches_certificate(leaf, issuer));
    let single = about.next().ok_or(StatusFault::OtherCertificate)?;
    single.check(now)
}

impl SingleResponse<'_> {
    fn check(&self, now: UnixTime) -> Result<(), StatusFault> {
        if has_critical_extension(self.extensions.as_deref()) {
            return Err(StatusFault::Malformed);
        }
        let (now, this_update) = (now.as_secs(), self.this_update.to_unix_duration().as_secs());
        if this_update > now.saturating_add(CLOCK_SKEW) {
            return Err(StatusFault::NotYetValid);
        }
        let until = self.next_update.map_or(this_update.saturating_add(MAX_AGE), |at| at.to_unix_duration().as_secs());
        if until.saturating_add(CLOCK_SKEW) < now {
            return Err(StatusFault::Expired);
        }
        match self.status.tag() {
            Tag::ContextSpecific { constructed: false, number }
                if number.value() == 0 && self.status.value().is_empty() =>
            {
                Ok(())
            }
            Tag::ContextSpecific { constructed: true, number } if number.value() == 1 => Err(StatusFault::Revoked),
            Tag::ContextSpecific { constructed: false, number } if number.value() == 2 => Err(StatusFault::Unknown),
            _ => Err(StatusFault::Malformed),
        }
    }
}

impl CertificateId<'_> {
    /// Returns true if this response entry is about the certificate `leaf` of `issuer`.
    fn matches_certificate(&self, leaf: &EndEntityCert<'_>, issuer: &TrustAnchor<'_>) -> bool {
        let algorithm = match self.algorithm.oid.to_string().as_str() {
            "1.3.14.3.2.26" => &SHA1_FOR_LEGACY_USE_ONLY,
            "2.16.840.1.101.3.4.2.1" => &SHA256,
            "2.16.840.1.101.3.4.2.2" => &SHA384,
            "2.16.840.1.101.3.4.2.3" => &SHA512,
            _ => return false,
        };
        let hash = |bytes: &[u8]| digest(algorithm, bytes);
        let (Some(name), Some(key)) = (sequence(&issuer.subject), public_key(issuer)) else { return false };
        self.serial.tag() == Tag::Integer
            && self.serial.value() == leaf.serial()
            && self.issuer_name_hash.as_bytes() == hash(&name).as_ref()
            && self.issuer_key_hash.as_bytes() == hash(&key.1).as_ref()
    }
}

/// Checks that the response is signed by the issuer, or by a responder that the issuer has
/// certified.
fn check_signature(
    basic: &BasicResponse<'_>,
    signed: &[u8],
    issuer: &TrustAnchor<'_>,
    algorithms: &WebPkiSupportedAlgorithms,
    now: UnixTime,
) -> Result<(), StatusFault> {
    let (Ok(algorithm), Some(signature)) = (basic.algorithm.to_der(), basic.signature.as_bytes()) else {
        return Err(StatusFault::Malformed);
    };
    let is_signed_by = |(key_algorithm, key): &(Vec<u8>, Vec<u8>)| {
        let fits = algorithms.all.iter().filter(|known| {
            content(&algorithm) == Some(&*known.signature_alg_id())
                && content(key_algorithm) == Some(&*known.public_key_alg_id())
        });
        let mut fits = fits.peekable();
        fits.any(|known| known.verify_signature(key, signed, signature).is_ok())
    };
    if public_key(issuer).is_some_and(|key| is_signed_by(&key)) {
        return Ok(());
    }
    let certificates = basic.certificates.as_deref().unwrap_or_default();
    for certificate in certificates.iter().take(MAX_SIGNERS) {
        let Ok(der) = certificate.to_der() else { continue };
        let der = CertificateDer::from(der);
        let Ok(responder) = EndEntityCert::try_from(&der) else { continue };
        let key = split_public_key_info(&responder.subject_public_key_info());
        if !key.is_some_and(|key| is_signed_by(&key)) {
            continue;
        }
        // The issuer itself has to have certified the responder, for this purpose.
        let usage = KeyUsage::required(OCSP_SIGNING);
        let anchors = std::slice::from_ref(issuer);
        if responder.verify_for_usage(algorithms.all, anchors, &[], now, usage, None, None).is_ok() {
            return Ok(());
        }
    }
    Err(StatusFault::Signature)
}

/// Returns the public key of the issuer in two parts: the algorithm in DER, and the key as a bit
/// string. Returns `None` if the key cannot be parsed.
fn public_key(issuer: &TrustAnchor<'_>) -> Option<(Vec<u8>, Vec<u8>)> {
    split_public_key_info(&sequence(&issuer.subject_public_key_info)?)
}

fn split_public_key_info(info: &[u8]) -> Option<(Vec<u8>, Vec<u8>)> {
    let info = SubjectPublicKeyInfoRef::from_der(info).ok()?;
    Some((info.algorithm.to_der().ok()?, info.subject_public_key.as_bytes()?.to_vec()))
}

/// Encodes a SEQUENCE with this content in DER. Returns `None` if the content is too long.
fn sequence(content: &[u8]) -> Option<Vec<u8>> {
    AnyRef::new(Tag::Sequence, content).ok()?.to_der().ok()
}

/// Returns the content of a DER element, without tag and length. Returns `None` if the element is
/// malformed.
fn content(der: &[u8]) -> Option<&[u8]> {
    AnyRef::from_der(der).ok().map(|element| element.value())
}

fn has_critical_extension(extensions: Option<&[Extension]>) -> bool {
    extensions.is_some_and(|extensions| extensions.iter().any(|extension| extension.critical))
}

/// Parses a stapled OCSP response; used by the fuzz target. Returns true if the response is
/// well-formed and contains the status of at least one certificate.
#[doc(hidden)]
#[must_use]
pub fn parses_ocsp_response(response: &[u8]) -> bool {
    let basic = |response| {
        let bytes = OcspResponse::from_der(response).ok()?.bytes?;
        let basic = BasicResponse::from_der(bytes.response.as_bytes()).ok()?;
        let signed = basic.data.to_der().ok()?;
        let data = ResponseData::from_der(&signed).ok()?;
        Some(data.responses.iter().any(|single| single.check(UnixTime::now()).is_ok()))
    };
    basic(response).is_some()
}

#[cfg(test)]
mod tests;
