//! Checks of CA certificates that webpki leaves out (RFC 5280 sections 4.2.1 and 6.1.4).
//!
//! webpki uses only the name, the key and the name constraints of a trusted certificate, as section
//! 6.2 allows. A user of `--cacert` expects OpenSSL's behaviour: a certificate that is expired or
//! not a CA's is not accepted as an issuer, even if it is trusted.
//!
//! The table shows who makes each check of an intermediate and of a trusted certificate.
//!
//! | check | intermediate | trusted |
//! |---|---|---|
//! | validity period, `basicConstraints`, path length, purpose | webpki | this module |
//! | no unknown critical extensions | webpki | this module |
//! | `keyUsage` allows to sign certificates | this module | this module |
//! | names in the certificates below are within the name constraints | webpki | webpki |
//! | a name constraints extension is not empty | this module | this module |
//! | `keyUsage` of a revocation list's issuer allows to sign lists | webpki | this module |

use std::fmt;

use rustls_pki_types::UnixTime;
use x509_cert::certificate::{CertificateInner, Profile, Version};
use x509_cert::der::asn1::ObjectIdentifier;
use x509_cert::der::{Decode, Error as DerError};
use x509_cert::ext::pkix::{BasicConstraints, ExtendedKeyUsage, KeyUsage, NameConstraints};
use x509_cert::serial_number::SerialNumber;

pub(super) const SUBJECT_ALT_NAME: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.5.29.17");
pub(super) const NAME_CONSTRAINTS: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.5.29.30");
const BASIC_CONSTRAINTS: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.5.29.19");
const KEY_USAGE: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.5.29.15");
const EXTENDED_KEY_USAGE: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.5.29.37");
const SERVER_AUTH: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.6.1.5.5.7.3.1");
/// The extensions that may be critical in an acceptable certificate. This module or webpki checks
/// the first five. The last five (CRL distribution points, and four extensions about certificate
/// policies) are accepted without a check, since haul requires no certificate policy.
const SUPPORTED_EXTENSIONS: [ObjectIdentifier; 10] = [
    SUBJECT_ALT_NAME,
    NAME_CONSTRAINTS,
    BASIC_CONSTRAINTS,
    KEY_USAGE,
    EXTENDED_KEY_USAGE,
    ObjectIdentifier::new_unwrap("2.5.29.31"),
    ObjectIdentifier::new_unwrap("2.5.29.32"),
    ObjectIdentifier::new_unwrap("2.5.29.33"),
    ObjectIdentifier::new_unwrap("2.5.29.36"),
    ObjectIdentifier::new_unwrap("2.5.29.54"),
];

/// A parsing profile that accepts serial numbers of any length. Authorities have issued longer
/// serial numbers than RFC 5280 section 4.1.2.2 allows, and the other fields of these certificates
/// must still be read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct AnySerialNumberProfile;

impl Profile for AnySerialNumberProfile {
    fn check_serial_number(_: &SerialNumber<Self>) -> x509_cert::der::Result<()> {
        Ok(())
    }
}

/// A parsed certificate, whose serial number may have any length.
pub(super) type Certificate = CertificateInner<AnySerialNumberProfile>;

/// Parses a certificate in DER. Returns `None` if it is malformed.
pub(super) fn parse(der: &[u8]) -> Option<Certificate> {
    Certificate::from_der(der).ok()
}

/// Returns true if the certificate has the extension with the object identifier `oid`.
pub(super) fn has_extension(certificate: &Certificate, oid: ObjectIdentifier) -> bool {
    let extensions = certificate.tbs_certificate().extensions();
    extensions.is_some_and(|extensions| extensions.iter().any(|extension| extension.extn_id == oid))
}

/// The reason why a CA certificate (trusted or intermediate) may not be the issuer of the next
/// certificate on the path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CaFault {
    Unreadable,
    Expired,
    NotYetValid,
    NotCa,
    PathLength,
    KeyUsage,
    ListSigning,
    Purpose,
    CriticalExtension,
    UsedByServer,
}

impl fmt::Display for CaFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unreadable => "a CA certificate of its chain cannot be read",
            Self::Expired => "a CA certificate of its chain has expired",
            Self::NotYetValid => "a CA certificate of its chain is not valid yet",
            Self::NotCa => "a certificate of its chain is no CA's",
            Self::PathLength => "a CA certificate of its chain allows fewer CA certificates below it",
            Self::KeyUsage => "a CA certificate of its chain may not sign certificates",
            Self::ListSigning => "a CA certificate of its chain may not sign revocation lists",
            Self::Purpose => "a CA certificate of its chain is not for servers",
            Self::UsedByServer => "it is a CA's, and a server may use one only if it is itself trusted",
            Self::CriticalExtension => "a CA certificate of its chain has an unknown critical extension",
        })
    }
}

impl std::error::Error for CaFault {}

/// Checks an intermediate certificate for faults that webpki does not detect. webpki must already
/// have accepted the certificate.
pub(super) fn check_intermediate(certificate: &Certificate) -> Result<(), CaFault> {
    check_key_usage(certificate)?;
    check_name_constraints(certificate)
}

/// Checks whether a trusted certificate may be the issuer at the end of a certificate path. `below`
/// is the number of intermediate certificates on the path, not counting self-issued certificates.
pub(super) fn check_anchor(certificate: &Certificate, now: UnixTime, below: usize) -> Result<(), CaFault> {
    let fields = certificate.tbs_certificate();
    let validity = fields.validity();
    if now.as_secs() < validity.not_before.to_unix_duration().as_secs() {
        return Err(CaFault::NotYetValid);
    }
    if now.as_secs() > validity.not_after.to_unix_duration().as_secs() {
        return Err(CaFault::Expired);
    }
    match read_extension::<BasicConstraints>(certificate, BASIC_CONSTRAINTS)? {
        Some(constraints) if !constraints.ca => return Err(CaFault::NotCa),
        Some(constraints) if constraints.path_len_constraint.is_some_and(|most| below > usize::from(most)) => {
            return Err(CaFault::PathLength);
        }
        Some(_) => {}
        // Roots of version 1 have no extensions.
        None if fields.version() == Version::V1 && is_self_issued(certificate) => {}
        None => return Err(CaFault::NotCa),
    }
    check_key_usage(certificate)?;
    check_name_constraints(certificate)?;
    if !allows_server_authentication(certificate).ok_or(CaFault::Unreadable)? {
        return Err(CaFault::Purpose);
    }
    let mut extensions = fields.extensions().into_iter().flatten();
    match extensions.any(|extension| extension.critical && !SUPPORTED_EXTENSIONS.contains(&extension.extn_id)) {
        true => Err(CaFault::CriticalExtension),
        false => Ok(()),
    }
}

/// Returns true if the certificate's subject and issuer are equal (RFC 5280 section 6.1:
/// self-issued).
pub(super) fn is_self_issued(certificate: &Certificate) -> bool {
    certificate.tbs_certificate().subject() == certificate.tbs_certificate().issuer()
}

/// Returns true if a certificate may be used for TLS server authentication, because its
/// `extKeyUsage` lists this purpose or is absent. Returns `None` if the extension cannot be parsed.
/// As in webpki and OpenSSL, `anyExtendedKeyUsage` is not sufficient (RFC 5280 section 4.2.1.12
/// leaves that to the application).
pub(super) fn allows_server_authentication(certificate: &Certificate) -> Option<bool> {
    let purposes = read_extension::<ExtendedKeyUsage>(certificate, EXTENDED_KEY_USAGE).ok()?;
    Some(purposes.is_none_or(|purposes| purposes.0.contains(&SERVER_AUTH)))
}

/// Returns true if the certificate's key usage allows digital signature, key encipherment or key
/// agreement: OpenSSL requires one of these for the certificate of a server. Returns `None` if the
/// key usage cannot be parsed.
pub(super) fn allows_digital_signature(certificate: &Certificate) -> Option<bool> {
    let usage = read_extension::<KeyUsage>(certificate, KEY_USAGE).ok()?;
    Some(usage.is_none_or(|usage| usage.digital_signature() || usage.key_encipherment() || usage.key_agreement()))
}

/// Returns an error if the issuer's key may not sign revocation lists (RFC 5280 section 6.3.3).
pub(super) fn check_may_sign_revocation_lists(certificate: &Certificate) -> Result<(), CaFault> {
    match read_extension::<KeyUsage>(certificate, KEY_USAGE)? {
        Some(usage) if !usage.crl_sign() => Err(CaFault::ListSigning),
        _ => Ok(()),
    }
}

fn check_key_usage(certificate: &Certificate) -> Result<(), CaFault> {
    match read_extension::<KeyUsage>(certificate, KEY_USAGE)? {
        Some(usage) if !usage.key_cert_sign() => Err(CaFault::KeyUsage),
        _ => Ok(()),
    }
}

/// Returns an error if a certificate has an empty name constraints extension (RFC 5280 section
/// 4.2.1.10). The authority that issued the certificate must have intended some constraints.
fn check_name_constraints(certificate: &Certificate) -> Result<(), CaFault> {
    let Some(constraints) = read_extension::<NameConstraints>(certificate, NAME_CONSTRAINTS)? else { return Ok(()) };
    let sides = [&constraints.permitted_subtrees, &constraints.excluded_subtrees];
    match sides.into_iter().flatten().any(|subtrees| !subtrees.is_empty()) {
        true => Ok(()),
        false => Err(CaFault::Unreadable),
    }
}

/// Returns the value of an extension; `None` if the certificate does not have it. Returns an error
/// if the extension is malformed or occurs twice (RFC 5280 section 4.2).
fn read_extension<T>(certificate: &Certificate, oid: ObjectIdentifier) -> Result<Option<T>, CaFault>
where
    T: for<'a> Decode<'a, Error = DerError>,
{
    let extensions = certificate.tbs_certificate().extensions().into_iter().flatten();
    let mut found = extensions.filter(|extension| extension.extn_id == oid);
    let Some(extension) = found.next() else { return Ok(None) };
    if found.next().is_some() {
        return Err(CaFault::Unreadable);
    }
    T::from_der(extension.extn_value.as_bytes()).map(Some).map_err(|_| CaFault::Unreadable)
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, CustomExtension, IsCa, KeyPair, KeyUsagePurpose, date_time_ymd};

    use super::*;

    /// The validity period of the certificates of these tests: 2026-01-01 to 2027-01-01.
    const NOT_BEFORE: u64 = 1_767_225_600;
    const NOT_AFTER: u64 = 1_798_761_600;

    fn at(seconds: u64) -> UnixTime {
        UnixTime::since_unix_epoch(std::time::Duration::from_secs(seconds))
    }

    fn authority(change: impl FnOnce(&mut CertificateParams)) -> Certificate {
        let mut params = CertificateParams::new([]).unwrap();
        params.is_ca = IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        params.not_before = date_time_ymd(2026, 1, 1);
        params.not_after = date_time_ymd(2027, 1, 1);
        change(&mut params);
        parse(params.self_signed(&KeyPair::generate().unwrap()).unwrap().der()).unwrap()
    }

    #[test]
    fn trusted_authority_is_valid_from_first_to_last_second() {
        let authority = authority(|_| {});
        for (now, expected) in [
            (NOT_BEFORE - 1, Err(CaFault::NotYetValid)),
            (NOT_BEFORE, Ok(())),
            (NOT_AFTER, Ok(())),
            (NOT_AFTER + 1, Err(CaFault::Expired)),
        ] {
            assert_eq!(check_anchor(&authority, at(now), 0), expected, "{now}");
        }
    }

    #[test]
    fn path_length_counts_the_authorities_below() {
        let authority = authority(|ca| ca.is_ca = IsCa::Ca(rcgen::BasicConstraints::Constrained(1)));
        for (below, expected) in [(0, Ok(())), (1, Ok(())), (2, Err(CaFault::PathLength))] {
            assert_eq!(check_anchor(&authority, at(NOT_BEFORE), below), expected, "{below}");
        }
    }

    #[test]
    fn authority_of_version_1_must_be_self_issued() {
        let (key, other) = (KeyPair::generate().unwrap(), KeyPair::generate().unwrap());
        let root = super::super::x509_v1_signature::version1_certificate(&key, "root", None);
        let issued = super::super::x509_v1_signature::version1_certificate(&other, "below", Some(("root", &key)));
        assert_eq!(check_anchor(&parse(&root).unwrap(), at(NOT_BEFORE), 0), Ok(()));
        assert_eq!(check_anchor(&parse(&issued).unwrap(), at(NOT_BEFORE), 0), Err(CaFault::NotCa));
        assert_eq!(check_anchor(&authority(|ca| ca.is_ca = IsCa::NoCa), at(NOT_BEFORE), 0), Err(CaFault::NotCa));
    }

    #[test]
    fn each_key_usage_permits_its_own_signatures() {
        use KeyUsagePurpose as Usage;
        for (usage, signs_handshakes, signs_lists, signs_certificates) in [
            (Usage::DigitalSignature, true, false, false),
            (Usage::KeyEncipherment, true, false, false),
            (Usage::KeyAgreement, true, false, false),
            (Usage::CrlSign, false, true, false),
            (Usage::KeyCertSign, false, false, true),
        ] {
            let certificate = authority(|ca| ca.key_usages = vec![usage]);
            assert_eq!(allows_digital_signature(&certificate), Some(signs_handshakes), "{usage:?}");
            assert_eq!(check_may_sign_revocation_lists(&certificate).is_ok(), signs_lists, "{usage:?}");
            assert_eq!(check_intermediate(&certificate).is_ok(), signs_certificates, "{usage:?}");
        }
        let any = authority(|_| {});
        assert_eq!(allows_digital_signature(&any), Some(true));
        assert_eq!((check_may_sign_revocation_lists(&any), check_intermediate(&any)), (Ok(()), Ok(())));
    }

    #[test]
    fn repeated_or_malformed_extension_is_unreadable() {
        let usage = |content: &[u8]| CustomExtension::from_oid_content(&[2, 5, 29, 15], content.to_vec());
        let once = authority(|ca| ca.custom_extensions = vec![usage(&[3, 2, 2, 4])]);
        assert_eq!(check_intermediate(&once), Ok(()));
        let twice = authority(|ca| ca.custom_extensions = vec![usage(&[3, 2, 2, 4]), usage(&[3, 2, 2, 4])]);
        let malformed = authority(|ca| ca.custom_extensions = vec![usage(&[3])]);
        for certificate in [twice, malformed] {
            assert_eq!(check_intermediate(&certificate), Err(CaFault::Unreadable));
            assert_eq!(check_may_sign_revocation_lists(&certificate), Err(CaFault::Unreadable));
            assert_eq!(allows_digital_signature(&certificate), None);
        }
    }

    #[test]
    fn certificates_of_system_bundle_pass_ca_checks() {
        // Without a bundle, there is nothing to check.
        for der in super::super::system_roots::bundle_certificates().unwrap_or_default() {
            let certificate = parse(&der).expect("a certificate");
            let checked = check_anchor(&certificate, UnixTime::now(), 0);
            let name = certificate.tbs_certificate().subject().to_string();
            assert!(matches!(checked, Ok(()) | Err(CaFault::Expired)), "{name}: {checked:?}");
        }
    }
}
