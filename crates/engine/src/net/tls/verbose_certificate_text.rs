//! A server's certificate as text, for `-v`: the lines that `curl -v` prints about it.
//!
//! ```text
//! Server certificate:
//!  subject: CN=www.example.com
//!  start date: Jan  2 03:04:05 2026 GMT
//!  expire date: Apr  2 03:04:05 2026 GMT
//!  issuer: C=US; O=Authority; CN=R3
//! ```
//!
//! This module does not verify certificates; webpki does that (`webpki_chain_check.rs`).

use std::time::Duration;

use rustls_pki_types::UnixTime;
use x509_cert::Certificate;
use x509_cert::attr::AttributeTypeAndValue;
use x509_cert::der::{DateTime, Decode};
use x509_cert::ext::pkix::name::DirectoryString;
use x509_cert::name::Name;
use x509_cert::time::Time;

/// The short names of the attribute types that occur in server certificates, by object identifier
/// (RFC 4519 section 2, RFC 2985 section 5.2.1).
const ATTRIBUTE_NAMES: [(&str, &str); 7] = [
    ("2.5.4.3", "CN"),
    ("2.5.4.6", "C"),
    ("2.5.4.7", "L"),
    ("2.5.4.8", "ST"),
    ("2.5.4.10", "O"),
    ("2.5.4.11", "OU"),
    ("1.2.840.113549.1.9.1", "emailAddress"),
];
const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// Describes a certificate in DER as lines of text. Returns no lines if it cannot be parsed.
pub(super) fn certificate_lines(der: &[u8]) -> Vec<String> {
    let Ok(certificate) = Certificate::from_der(der) else { return Vec::new() };
    let certificate = certificate.tbs_certificate();
    let validity = certificate.validity();
    vec![
        "Server certificate:".to_owned(),
        format!(" subject: {}", format_name(certificate.subject(), "=", "; ")),
        format!(" start date: {}", format_time(validity.not_before)),
        format!(" expire date: {}", format_time(validity.not_after)),
        format!(" issuer: {}", format_name(certificate.issuer(), "=", "; ")),
    ]
}

/// Returns the fields of a DER certificate under curl's names (`CURLINFO_CERTINFO`): subject,
/// issuer, version (as encoded: 2 means version 3), serial number, and dates. Returns an empty list
/// if `der` cannot be parsed as a certificate.
#[must_use]
pub fn certificate_details(der: &[u8]) -> Vec<(&'static str, String)> {
    let Ok(certificate) = Certificate::from_der(der) else { return Vec::new() };
    let certificate = certificate.tbs_certificate();
    let validity = certificate.validity();
    // A positive number whose first bit is set has a zero byte before it.
    let serial = match certificate.serial_number().as_bytes() {
        [0, rest @ ..] if !rest.is_empty() => rest,
        all => all,
    };
    vec![
        ("Subject", format_name(certificate.subject(), " = ", ", ")),
        ("Issuer", format_name(certificate.issuer(), " = ", ", ")),
        ("Version", (certificate.version() as u8).to_string()),
        ("Serial Number", serial.iter().map(|byte| format!("{byte:02x}")).collect()),
        ("Start date", format_time(validity.not_before)),
        ("Expire date", format_time(validity.not_after)),
    ]
}

/// Formats a distinguished name in the order of the certificate, which usually begins with the
/// country. (RFC 4514 prescribes the reverse order.) `equals` is the text between the type and the
/// value of an attribute; `between` is the text between two attributes.
fn format_name(name: &Name, equals: &str, between: &str) -> String {
    name.iter().map(|each| format_attribute(each, equals)).collect::<Vec<_>>().join(between)
}

/// Formats an attribute of a distinguished name. Does not use the attribute's `Display`, because
/// that needs a table of all object identifiers. Relocating the table would add 44,000 instructions
/// to the start of every program that uses haul.
fn format_attribute(attribute: &AttributeTypeAndValue, equals: &str) -> String {
    let oid = attribute.oid.to_string();
    let kind = ATTRIBUTE_NAMES.iter().find(|(known, _)| *known == oid).map_or(oid.as_str(), |(_, kind)| kind);
    let value = attribute.value.decode_as::<DirectoryString>();
    // A mail address is an IA5String, which is ASCII.
    let text = value
        .map_or_else(|_| String::from_utf8_lossy(attribute.value.value()).into(), |text| text.value().into_owned());
    format!("{kind}{equals}{text}")
}

/// Formats the time at which a certificate is verified. Returns `None` if X.509 dates cannot
/// express it.
pub(super) fn format_unix_time(time: UnixTime) -> Option<String> {
    Some(format_date_time(DateTime::from_unix_duration(Duration::from_secs(time.as_secs())).ok()?))
}

fn format_time(time: Time) -> String {
    format_date_time(time.to_date_time())
}

fn format_date_time(time: DateTime) -> String {
    let month = MONTHS[usize::from(time.month() - 1) % MONTHS.len()];
    let (hour, minutes, seconds) = (time.hour(), time.minutes(), time.seconds());
    format!("{month} {:>2} {hour:02}:{minutes:02}:{seconds:02} {} GMT", time.day(), time.year())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made() -> rcgen::Certificate {
        let mut params = rcgen::CertificateParams::new(["a.example".to_owned()]).unwrap();
        params.not_before = rcgen::date_time_ymd(2026, 1, 2);
        params.not_after = rcgen::date_time_ymd(2026, 11, 22);
        params.serial_number = Some(rcgen::SerialNumber::from(vec![0x80, 0xff]));
        params.distinguished_name = rcgen::DistinguishedName::new();
        params.distinguished_name.push(rcgen::DnType::CountryName, "US");
        params.distinguished_name.push(rcgen::DnType::CommonName, "a.example");
        params.self_signed(&rcgen::KeyPair::generate().unwrap()).unwrap()
    }

    #[test]
    fn certificate_lines_equal_those_of_curl() {
        let expected = [
            "Server certificate:",
            " subject: C=US; CN=a.example",
            " start date: Jan  2 00:00:00 2026 GMT",
            " expire date: Nov 22 00:00:00 2026 GMT",
            " issuer: C=US; CN=a.example",
        ];
        assert_eq!(certificate_lines(made().der()), expected);
    }

    #[test]
    fn certificate_details_have_curls_names() {
        let details = certificate_details(made().der());
        let of = |wanted| details.iter().find(|(name, _)| *name == wanted).unwrap().1.as_str();
        assert_eq!((of("Subject"), of("Issuer")), ("C = US, CN = a.example", "C = US, CN = a.example"));
        assert_eq!((of("Version"), of("Serial Number")), ("2", "80ff"));
        assert_eq!((of("Start date"), of("Expire date")), ("Jan  2 00:00:00 2026 GMT", "Nov 22 00:00:00 2026 GMT"));
    }

    #[test]
    fn truncated_certificate_has_no_text_lines() {
        let certificate = made();
        let der = certificate.der();
        for cut in 0..der.len() {
            assert!(
                certificate_lines(&der[..cut]).is_empty() && certificate_details(&der[..cut]).is_empty(),
                "cut at {cut}"
            );
        }
    }
}
