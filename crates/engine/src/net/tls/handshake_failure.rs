//! Converts the errors of failed TLS handshakes to haul's errors and messages.

use rustls::{CertificateError, InvalidMessage, PeerIncompatible};

use super::certificate_status::StatusFault;
use super::ech::EchRejection;
use super::public_key_pin::PinMismatch;
use super::verbose_certificate_text::format_unix_time;
use crate::{Error, ErrorKind};

/// Converts a rustls error. A refused certificate becomes [`ErrorKind::PeerCertificate`].
pub(super) fn handshake_error(error: rustls::Error) -> Error {
    let message = match &error {
        rustls::Error::InvalidCertificate(CertificateError::Other(other)) if other.0.is::<PinMismatch>() => {
            return Error::new(ErrorKind::PinnedKey, other.0.to_string());
        }
        rustls::Error::InvalidCertificate(CertificateError::Other(other)) if other.0.is::<StatusFault>() => {
            return Error::new(ErrorKind::CertificateStatus, other.0.to_string());
        }
        rustls::Error::InvalidCertificate(refusal) => {
            return Error::new(
                ErrorKind::PeerCertificate,
                format!("the server's certificate is not acceptable: {}", refusal_reason(refusal)),
            );
        }
        rustls::Error::InvalidCertRevocationList(_) => {
            let message = "the server's certificate is not acceptable: the list of revoked ones is not good";
            return Error::with_source(ErrorKind::PeerCertificate, message, error);
        }
        rustls::Error::PeerIncompatible(PeerIncompatible::ServerRejectedEncryptedClientHello(keys)) => {
            let message = "the server rejected the Encrypted Client Hello";
            return Error::with_source(ErrorKind::EchRequired, message, EchRejection::new(keys.as_ref()));
        }
        rustls::Error::InvalidMessage(InvalidMessage::InvalidContentType) => {
            "TLS handshake failed: the server does not speak TLS"
        }
        _ => "TLS handshake failed",
    };
    Error::with_source(ErrorKind::TlsHandshake, message, error)
}

/// Returns the reason why a certificate is refused, as text for an error message.
pub(super) fn refusal_reason(refusal: &CertificateError) -> String {
    match refusal {
        CertificateError::UnknownIssuer => "no trusted certificate has signed it".into(),
        CertificateError::BadSignature => "a signature does not fit".into(),
        CertificateError::ExpiredContext { not_after, .. } => match format_unix_time(*not_after) {
            Some(date) => format!("it expired on {date}"),
            None => "it has expired".into(),
        },
        CertificateError::Expired => "it has expired".into(),
        CertificateError::NotValidYetContext { not_before, .. } => match format_unix_time(*not_before) {
            Some(date) => format!("it is not valid before {date}"),
            None => "it is not valid yet".into(),
        },
        CertificateError::NotValidYet => "it is not valid yet".into(),
        CertificateError::NotValidForNameContext { expected, presented } => {
            format!("it is not valid for name \"{}\"; {}", expected.to_str(), name_list(presented))
        }
        CertificateError::NotValidForName => "it is not valid for the host's name".into(),
        CertificateError::InvalidPurpose => "it is not for servers".into(),
        CertificateError::Other(other) => match other.0.downcast_ref() {
            Some(webpki::Error::CaUsedAsEndEntity) => "it is a CA's own and not a trusted one".into(),
            _ => other.0.to_string(),
        },
        other => other.to_string(),
    }
}

/// The maximum number of a certificate's names that an error message lists.
const NAMES_MAX: usize = 6;

/// Returns a sentence that lists the names in a certificate, for an error message. rustls provides
/// the names as text such as `DnsName("h.example")`.
fn name_list(presented: &[String]) -> String {
    let bare = |shown: &String| {
        let inner = shown.split_once('(').map_or(shown.as_str(), |(_, inner)| inner.trim_end_matches(')'));
        inner.trim_matches('"').to_owned()
    };
    let names: Vec<String> = presented.iter().take(NAMES_MAX).map(bare).collect();
    match (presented.len(), presented.len().saturating_sub(NAMES_MAX)) {
        (0, _) => "it contains no name".to_owned(),
        (1, _) => format!("its name is {}", names[0]),
        (_, 0) => format!("its names are {}", names.join(", ")),
        (_, more) => format!("its names are {} and {more} more", names.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use std::fmt;

    use super::*;

    #[test]
    fn certificate_error_lists_plain_host_names() {
        let list = |names: &[&str]| name_list(&names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>());
        assert_eq!(list(&[]), "it contains no name");
        assert_eq!(list(&["DnsName(\"*.h.example\")"]), "its name is *.h.example");
        assert_eq!(list(&["IpAddress(127.0.0.1)", "DnsName(\"h\")"]), "its names are 127.0.0.1, h");
        assert_eq!(list(&["DnsName(\"h\")"; 6]), "its names are h, h, h, h, h, h");
        assert!(list(&["DnsName(\"h\")"; 8]).ends_with(" h and 2 more"));
    }

    fn other(error: impl std::error::Error + Send + Sync + 'static) -> CertificateError {
        CertificateError::Other(rustls::OtherError(std::sync::Arc::new(error)))
    }

    #[test]
    fn handshake_error_kind_follows_its_cause() {
        let refused = rustls::Error::InvalidCertificate;
        for (error, kind, text) in [
            (refused(other(PinMismatch)), ErrorKind::PinnedKey, "not one of those that are pinned"),
            (refused(other(StatusFault::Revoked)), ErrorKind::CertificateStatus, "is revoked"),
            (refused(CertificateError::UnknownIssuer), ErrorKind::PeerCertificate, "no trusted certificate"),
            (refused(other(fmt::Error)), ErrorKind::PeerCertificate, "the server's certificate is not acceptable"),
            (
                rustls::CertRevocationListError::BadSignature.into(),
                ErrorKind::PeerCertificate,
                "the list of revoked ones is not good",
            ),
            (
                PeerIncompatible::ServerRejectedEncryptedClientHello(None).into(),
                ErrorKind::EchRequired,
                "it sent no keys",
            ),
            (InvalidMessage::InvalidContentType.into(), ErrorKind::TlsHandshake, "the server does not speak TLS"),
            (rustls::Error::DecryptError, ErrorKind::TlsHandshake, "TLS handshake failed"),
        ] {
            let error = handshake_error(error);
            assert_eq!(error.kind(), kind, "{error}");
            assert!(error.to_string().contains(text), "{error}");
        }
    }

    #[test]
    fn each_certificate_fault_has_a_reason_in_words() {
        let time = |seconds| rustls_pki_types::UnixTime::since_unix_epoch(std::time::Duration::from_secs(seconds));
        let (early, late) = (time(1_767_225_600), time(1_798_761_600));
        let beyond = time(u64::MAX);
        for (fault, expected) in [
            (CertificateError::UnknownIssuer, "no trusted certificate has signed it"),
            (CertificateError::BadSignature, "a signature does not fit"),
            (
                CertificateError::ExpiredContext { time: late, not_after: early },
                "it expired on Jan  1 00:00:00 2026 GMT",
            ),
            (CertificateError::ExpiredContext { time: late, not_after: beyond }, "it has expired"),
            (CertificateError::Expired, "it has expired"),
            (
                CertificateError::NotValidYetContext { time: early, not_before: late },
                "it is not valid before Jan  1 00:00:00 2027 GMT",
            ),
            (CertificateError::NotValidYetContext { time: early, not_before: beyond }, "it is not valid yet"),
            (CertificateError::NotValidYet, "it is not valid yet"),
            (CertificateError::NotValidForName, "it is not valid for the host's name"),
            (CertificateError::InvalidPurpose, "it is not for servers"),
            (other(webpki::Error::CaUsedAsEndEntity), "it is a CA's own and not a trusted one"),
            (other(PinMismatch), "the server's public key is not one of those that are pinned"),
        ] {
            assert_eq!(refusal_reason(&fault), expected, "{fault:?}");
        }
        let expected = rustls_pki_types::ServerName::try_from("h.example").unwrap();
        let presented = vec!["DnsName(\"other.example\")".to_owned()];
        let reason = refusal_reason(&CertificateError::NotValidForNameContext { expected, presented });
        assert_eq!(reason, "it is not valid for name \"h.example\"; its name is other.example");
        assert_eq!(refusal_reason(&CertificateError::Revoked), CertificateError::Revoked.to_string());
    }
}
