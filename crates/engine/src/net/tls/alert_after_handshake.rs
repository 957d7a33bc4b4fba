//! Alerts with which a server closes a TLS connection after the handshake (RFC 8446 section 6.2).
//! In TLS 1.3, a server rejects the client's certificate only at that time.

use std::fmt;

use rustls::AlertDescription;

/// The TLS alert with which the server closed the connection after the handshake.
#[derive(Debug)]
pub(crate) struct TlsAlert(pub(super) AlertDescription);

impl TlsAlert {
    /// Returns true if the alert rejects the client's certificate or parameters. The server would
    /// then close the next connection with the same alert.
    pub(crate) fn is_refusal(&self) -> bool {
        matches!(
            self.0,
            AlertDescription::HandshakeFailure
                | AlertDescription::NoCertificate
                | AlertDescription::BadCertificate
                | AlertDescription::UnsupportedCertificate
                | AlertDescription::CertificateRevoked
                | AlertDescription::CertificateExpired
                | AlertDescription::CertificateUnknown
                | AlertDescription::CertificateRequired
                | AlertDescription::UnknownCA
                | AlertDescription::AccessDenied
                | AlertDescription::ProtocolVersion
                | AlertDescription::InsufficientSecurity
        )
    }
}

impl fmt::Display for TlsAlert {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.0)?;
        match self.0 {
            AlertDescription::CertificateRequired => f.write_str(", it wants a client certificate"),
            _ => Ok(()),
        }
    }
}

impl std::error::Error for TlsAlert {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alert_text_names_a_missing_client_certificate() {
        let required = TlsAlert(AlertDescription::CertificateRequired);
        assert_eq!(required.to_string(), "CertificateRequired, it wants a client certificate");
        assert_eq!(TlsAlert(AlertDescription::UnknownCA).to_string(), "UnknownCA");
    }

    #[test]
    fn only_alerts_about_the_client_are_refusals() {
        for (alert, is_refusal) in [
            (AlertDescription::HandshakeFailure, true),
            (AlertDescription::AccessDenied, true),
            (AlertDescription::InternalError, false),
            (AlertDescription::BadRecordMac, false),
        ] {
            assert_eq!(TlsAlert(alert).is_refusal(), is_refusal, "{alert:?}");
        }
    }
}
