//! Server names that a certificate contains only as the common name of its subject.
//!
//! Clients look for a server's name in `subjectAltName` (RFC 9525 section 2), and webpki supports
//! nothing else. Private authorities and hand-made certificates (`openssl req -x509 -subj
//! /CN=localhost`) often omit that extension, and curl with OpenSSL, apt and Perl's LWP then use
//! the common name. With [`TlsOptions::common_name`](super::TlsOptions::common_name), haul uses it,
//! too, by the rules of RFC 6125 section 6.4.4, if webpki finds no other fault.

use std::net::IpAddr;

use rustls_pki_types::{CertificateDer, ServerName};
use x509_cert::attr::AttributeTypeAndValue;
use x509_cert::der::asn1::ObjectIdentifier;
use x509_cert::ext::pkix::name::DirectoryString;

use super::ca_certificate_rules::{self, NAME_CONSTRAINTS, SUBJECT_ALT_NAME, has_extension};

const COMMON_NAME: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.5.4.3");

/// Returns true if the certificate has no `subjectAltName`, and the last common name of its subject
/// is `name`, or a wildcard that stands for the first label of `name`.
pub(super) fn matches_common_name(certificate: &CertificateDer<'_>, name: &ServerName<'_>) -> bool {
    let Some(certificate) = ca_certificate_rules::parse(certificate) else { return false };
    if has_extension(&certificate, SUBJECT_ALT_NAME) {
        return false;
    }
    let is_common_name = |attribute: &&AttributeTypeAndValue| attribute.oid == COMMON_NAME;
    let subject = certificate.tbs_certificate().subject();
    let Some(common) = subject.iter().filter(is_common_name).last() else { return false };
    let Ok(common) = common.value.decode_as::<DirectoryString>() else { return false };
    name_matches(&common.value(), name)
}

fn name_matches(common: &str, name: &ServerName<'_>) -> bool {
    match name {
        ServerName::IpAddress(address) => common.parse() == Ok(IpAddr::from(*address)),
        ServerName::DnsName(name) => {
            let name = name.as_ref();
            let name = name.strip_suffix('.').unwrap_or(name);
            let is_below = |parent: &str| {
                // A name such as `*.example` does not match: no certificate covers a whole
                // top-level domain.
                let rest = name.split_once('.').map(|(_, rest)| rest);
                parent.contains('.') && rest.is_some_and(|rest| rest.eq_ignore_ascii_case(parent))
            };
            common.eq_ignore_ascii_case(name) || common.strip_prefix("*.").is_some_and(is_below)
        }
        _ => false,
    }
}

/// Returns true if a CA certificate has name constraints or cannot be parsed. A name constraint
/// restricts the names for which an authority may issue certificates. webpki applies constraints to
/// alternative names only, never to common names.
pub(super) fn has_name_constraints(certificate: &CertificateDer<'_>) -> bool {
    ca_certificate_rules::parse(certificate).is_none_or(|certificate| has_extension(&certificate, NAME_CONSTRAINTS))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(common: &str, name: &str) -> bool {
        name_matches(common, &ServerName::try_from(name.to_owned()).unwrap())
    }

    #[test]
    fn unparsable_ca_certificate_counts_as_name_constrained() {
        let key = rcgen::KeyPair::generate().unwrap();
        let certificate = rcgen::CertificateParams::new(["a.example".to_owned()]).unwrap().self_signed(&key).unwrap();
        let der = certificate.der();
        assert!(!has_name_constraints(der));
        for cut in 0..der.len() {
            assert!(has_name_constraints(&CertificateDer::from(&der[..cut])), "cut at {cut}");
        }
    }

    #[test]
    fn common_name_matches_host_exactly_or_by_wildcard() {
        for (common, name) in [
            ("localhost", "localhost"),
            ("LocalHost", "localhost"),
            ("www.example.com", "www.example.com."),
            ("*.example.com", "www.Example.com"),
            ("127.0.0.1", "127.0.0.1"),
            ("::1", "::1"),
        ] {
            assert!(named(common, name), "{common} is {name}");
        }
        for (common, name) in [
            ("", "localhost"),
            ("localhost", "localhost.example"),
            ("localhost ", "localhost"),
            ("localhost\0.example", "localhost"),
            ("*.example.com", "example.com"),
            ("*.example.com", "a.b.example.com"),
            ("*.com", "example.com"),
            ("*", "localhost"),
            ("w*.example.com", "www.example.com"),
            ("*.*.com", "www.example.com"),
            ("*.0.0.1", "127.0.0.1"),
            ("127.0.0.1", "127.0.0.2"),
            ("example.com", "127.0.0.1"),
        ] {
            assert!(!named(common, name), "{common} is not {name}");
        }
    }
}
