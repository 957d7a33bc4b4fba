//! What a server says by an alert when it ends TLS (RFC 8446 section 6.2), after the handshake: in TLS 1.3, the client's own certificate is judged
//! only then.

use std::fmt;

use rustls::AlertDescription;

/// An alert of the server's.
#[derive(Debug)]
pub(crate) struct Alert(pub(super) AlertDescription);

impl Alert {
    /// Whether it is about who we are, or what we can: the next connection would be ended by the same.
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

impl fmt::Display for Alert {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.0)?;
        match self.0 {
            AlertDescription::CertificateRequired => f.write_str(", it wants a client certificate"),
            _ => Ok(()),
        }
    }
}

impl std::error::Error for Alert {}
