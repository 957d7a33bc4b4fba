//! The results of a TLS handshake: its parameters and the server's certificate. Handshakes over TCP
//! and over QUIC have the same results.

use std::sync::Arc;

use rustls::{CommonState, HandshakeKind, ProtocolVersion, SupportedCipherSuite};
use rustls_pki_types::{CertificateDer, InvalidDnsNameError, ServerName};

use super::TlsVersion;
use super::handshake_failure::refusal_reason;
use super::hyphen_host_stand_in::HyphenHostName;
use super::verbose_certificate_text;
use super::webpki_chain_check::UnverifiedCertFaultFinder;
use crate::transfer_facts::TlsFacts;

/// The results of a TLS handshake: the version, the cipher suite, the application protocol, and the
/// server's certificate.
#[derive(Debug)]
pub(crate) struct NegotiatedSession {
    pub(super) version: TlsVersion,
    pub(super) cipher: &'static str,
    pub(super) alpn: Option<Vec<u8>>,
    pub(super) resumed: bool,
    /// The server's own certificate; `None` if the session was resumed without one.
    certificate: Option<CertificateDer<'static>>,
    /// The server's certificates in DER; `None` if the options do not request them.
    pub(super) chain: Option<Arc<[Vec<u8>]>>,
    /// The fault of the server's certificate if haul does not verify certificates (`-k`), but
    /// examines them for a report ([`TlsOptions::examine`](super::TlsOptions::examine)). `None` if
    /// the certificate was not examined, or has no fault other than a wrong name.
    pub(super) fault: Option<String>,
    /// The trace line about Encrypted Client Hello; `None` if Encrypted Client Hello is off.
    pub(super) ech: Option<String>,
}

/// The check that finds the fault of a certificate accepted without verification, and the server's
/// name for that check.
pub(super) type FaultFinderAndServerName = (UnverifiedCertFaultFinder, ServerName<'static>);

impl NegotiatedSession {
    /// Returns the results of a complete handshake, including its cipher suite. Returns `None`
    /// while the handshake is in progress.
    pub(super) fn from_handshake(
        state: &CommonState,
        examiner: Option<FaultFinderAndServerName>,
        keeps_certificates: bool,
    ) -> Option<(Self, SupportedCipherSuite)> {
        let version = match state.protocol_version()? {
            ProtocolVersion::TLSv1_3 => TlsVersion::V1_3,
            ProtocolVersion::TLSv1_2 => TlsVersion::V1_2,
            _ => return None,
        };
        let suite = state.negotiated_cipher_suite()?;
        let chain = state.peer_certificates().unwrap_or_default();
        let session = Self {
            version,
            cipher: suite.suite().as_str().unwrap_or("unknown"),
            alpn: state.alpn_protocol().map(<[u8]>::to_vec),
            resumed: state.handshake_kind() == Some(HandshakeKind::Resumed),
            chain: keeps_certificates.then(|| chain.iter().map(|shown| shown.to_vec()).collect()),
            certificate: chain.first().map(|leaf| leaf.clone().into_owned()),
            fault: examiner.and_then(|(examiner, name)| Some(refusal_reason(&examiner.fault(chain, &name)?))),
            ech: None,
        };
        Some((session, suite))
    }

    /// Returns a description of the server's certificate as lines of text. Returns no lines if the
    /// session was resumed without a certificate.
    pub(super) fn certificate_lines(&self) -> Vec<String> {
        self.certificate.as_deref().map(verbose_certificate_text::certificate_lines).unwrap_or_default()
    }

    /// Returns the parameters of the TLS session for the program. The cipher suite has its standard
    /// name (RFC 8446, section B.4), not its name in rustls.
    pub(crate) fn facts(&self) -> TlsFacts {
        TlsFacts {
            version: self.version.name(),
            cipher: self.cipher.replacen("TLS13_", "TLS_", 1),
            alpn: self.alpn.as_deref().map(|alpn| String::from_utf8_lossy(alpn).into_owned()),
            resumed: self.resumed,
        }
    }

    /// Returns lines of text that describe the TLS session and the server's certificate.
    pub(crate) fn lines(&self) -> Vec<String> {
        let TlsFacts { version, cipher, alpn, .. } = self.facts();
        let mut lines = vec![format!("SSL connection using {version} / {cipher}")];
        lines.extend(self.ech.clone());
        lines.extend(alpn.map(|alpn| format!("ALPN: server accepted {alpn}")));
        lines.extend(self.certificate_lines());
        lines
    }

    /// Returns true if the server's certificate is also valid for this host.
    pub(crate) fn is_certified_for(&self, host: &str) -> bool {
        let Some(certificate) = &self.certificate else { return false };
        let (Ok(certificate), Ok(name)) = (webpki::EndEntityCert::try_from(certificate), name_of(host)) else {
            return false;
        };
        certificate.verify_is_valid_for_subject_name(&name).is_ok()
    }

    /// Returns the protocol that ALPN selected, if any.
    #[cfg(feature = "http3")]
    pub(crate) fn alpn(&self) -> Option<&[u8]> {
        self.alpn.as_deref()
    }

    /// Returns the fault of a server certificate that was accepted without verification; `None` if
    /// it has no fault, or if it was not examined.
    #[cfg(feature = "http3")]
    pub(crate) fn certificate_fault(&self) -> Option<&str> {
        self.fault.as_deref()
    }

    /// Returns the server's certificates in DER; `None` if the options do not request them.
    #[cfg(feature = "http3")]
    pub(crate) fn certificates(&self) -> Option<&Arc<[Vec<u8>]>> {
        self.chain.as_ref()
    }
}

/// Returns the number of TLS records or QUIC packets that one key of this cipher suite may encrypt.
pub(super) fn confidentiality_limit(suite: SupportedCipherSuite) -> u64 {
    match suite {
        SupportedCipherSuite::Tls12(suite) => suite.common.confidentiality_limit,
        SupportedCipherSuite::Tls13(suite) => suite.common.confidentiality_limit,
    }
}

/// Returns the name of this host to pass to rustls. rustls rejects a host with a label that begins
/// or ends with a hyphen. For such a host, the first value is a stand-in (another name, which
/// rustls accepts), and the second value contains the real name and the stand-in. For other hosts,
/// the second value is `None`.
pub(super) fn server_name_of(
    host: &str,
) -> Result<(ServerName<'static>, Option<Arc<HyphenHostName>>), InvalidDnsNameError> {
    let hyphen_name = HyphenHostName::parse(without_dot_and_brackets(host)).map(Arc::new);
    let name = match hyphen_name.as_ref().and_then(|name| name.stand_in()) {
        Some(stand_in) => stand_in,
        None => name_of(host)?.to_owned(),
    };
    Ok((name, hyphen_name))
}

/// Parses a host as a server name. Ignores the brackets of an IPv6 address, and a final dot, which
/// SNI does not allow (RFC 6066 §3).
fn name_of(host: &str) -> Result<ServerName<'_>, InvalidDnsNameError> {
    ServerName::try_from(without_dot_and_brackets(host))
}

/// Returns a host without a final dot and without brackets.
pub(super) fn without_dot_and_brackets(host: &str) -> &str {
    let name = host.strip_suffix('.').unwrap_or(host);
    name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(certificate: Option<CertificateDer<'static>>) -> NegotiatedSession {
        NegotiatedSession {
            version: TlsVersion::V1_3,
            cipher: "TLS13_AES_128_GCM_SHA256",
            alpn: Some(b"h2".to_vec()),
            resumed: true,
            certificate,
            chain: Some(vec![vec![1]].into()),
            fault: Some("a fault".to_owned()),
            ech: Some("ECH: off".to_owned()),
        }
    }

    fn certificate() -> CertificateDer<'static> {
        let key = rcgen::KeyPair::generate().unwrap();
        let params = rcgen::CertificateParams::new(["a.example".to_owned()]).unwrap();
        params.self_signed(&key).unwrap().der().clone()
    }

    #[test]
    fn session_is_described_by_lines() {
        let facts = session(None).facts();
        assert_eq!((facts.version, &*facts.cipher, facts.resumed), ("TLSv1.3", "TLS_AES_128_GCM_SHA256", true));
        assert_eq!(facts.alpn.as_deref(), Some("h2"));
        let first = ["SSL connection using TLSv1.3 / TLS_AES_128_GCM_SHA256", "ECH: off", "ALPN: server accepted h2"];
        assert_eq!(session(None).lines(), first);
        assert!(session(None).certificate_lines().is_empty());
        let lines = session(Some(certificate())).lines();
        assert_eq!((&lines[..3], &*lines[3], lines.len()), (&first.map(str::to_owned)[..], "Server certificate:", 8));
    }

    #[test]
    fn session_is_certified_for_names_of_its_certificate() {
        let certified = session(Some(certificate()));
        assert!(certified.is_certified_for("a.example") && certified.is_certified_for("a.example."));
        assert!(!certified.is_certified_for("b.example") && !certified.is_certified_for(""));
        assert!(!session(None).is_certified_for("a.example"));
        assert!(!session(Some(CertificateDer::from(vec![0]))).is_certified_for("a.example"));
    }

    #[cfg(feature = "http3")]
    #[test]
    fn results_are_the_same_over_quic() {
        let session = session(None);
        assert_eq!((session.alpn(), session.certificate_fault()), (Some(&b"h2"[..]), Some("a fault")));
        assert_eq!(session.certificates().map(|all| all.to_vec()), Some(vec![vec![1]]));
    }

    #[test]
    fn brackets_and_final_dot_are_no_part_of_the_name() {
        for (host, expected) in
            [("a.example.", "a.example"), ("[::1]", "::1"), ("[::1", "[::1"), ("a.example", "a.example")]
        {
            assert_eq!(without_dot_and_brackets(host), expected);
        }
        let (name, hyphen) = server_name_of("a.example.").unwrap();
        assert!(name.to_str() == "a.example" && hyphen.is_none());
        let (name, hyphen) = server_name_of("-a.example").unwrap();
        assert!(name.to_str() == "xa.example" && hyphen.is_some());
        assert!(server_name_of("").is_err());
    }
}
