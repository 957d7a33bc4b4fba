//! The errors of a failed handshake, in haul's words.

use rustls::{CertificateError, InvalidMessage};

use super::certificate_text::date_of;
use super::public_key_pin::PinMismatch;
use crate::{Error, ErrorKind};

/// Converts an error of rustls. A refused certificate becomes [`ErrorKind::PeerCertificate`].
pub(super) fn refused(error: rustls::Error) -> Error {
    let message = match &error {
        rustls::Error::InvalidCertificate(CertificateError::Other(other)) if other.0.is::<PinMismatch>() => {
            return Error::new(ErrorKind::PinnedKey, other.0.to_string());
        }
        rustls::Error::InvalidCertificate(refusal) => {
            return Error::new(
                ErrorKind::PeerCertificate,
                format!("the server's certificate is not acceptable: {}", why(refusal)),
            );
        }
        rustls::Error::InvalidCertRevocationList(_) => {
            let message = "the server's certificate is not acceptable: the list of revoked ones is not good";
            return Error::with_source(ErrorKind::PeerCertificate, message, error);
        }
        rustls::Error::InvalidMessage(InvalidMessage::InvalidContentType) => {
            "TLS handshake failed: the server does not speak TLS"
        }
        _ => "TLS handshake failed",
    };
    Error::with_source(ErrorKind::TlsHandshake, message, error)
}

/// Returns the reason why a certificate is refused, as text.
pub(super) fn why(refusal: &CertificateError) -> String {
    match refusal {
        CertificateError::UnknownIssuer => "no trusted certificate has signed it".into(),
        CertificateError::BadSignature => "a signature does not fit".into(),
        CertificateError::ExpiredContext { not_after, .. } => match date_of(*not_after) {
            Some(date) => format!("it expired on {date}"),
            None => "it has expired".into(),
        },
        CertificateError::Expired => "it has expired".into(),
        CertificateError::NotValidYetContext { not_before, .. } => match date_of(*not_before) {
            Some(date) => format!("it is not valid before {date}"),
            None => "it is not valid yet".into(),
        },
        CertificateError::NotValidYet => "it is not valid yet".into(),
        CertificateError::InvalidPurpose => "it is not for servers".into(),
        CertificateError::Other(other) => match other.0.downcast_ref() {
            Some(webpki::Error::CaUsedAsEndEntity) => "it is a CA's own and not a trusted one".into(),
            _ => other.0.to_string(),
        },
        other => other.to_string(),
    }
}
