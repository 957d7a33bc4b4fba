//! Checks of server certificates by webpki, with the additions that curl's users expect.
//!
//! In webpki, a trusted certificate can only be an issuer. webpki refuses a self-signed server
//! certificate that is its own CA (`CaUsedAsEndEntity`), and finds no issuer for a server
//! certificate that is itself listed as trusted. Users of curl put such certificates into
//! `--cacert`, and OpenSSL (with partial chains, as curl configures it) accepts them. Therefore, a
//! server certificate that is listed byte for byte is trusted if webpki finds no other fault and
//! the name matches. The handshake's signature still proves that the peer has the key.

use std::cell::Cell;
use std::sync::Arc;

use rustls::client::verify_server_name;
use rustls::crypto::WebPkiSupportedAlgorithms;
use rustls::server::ParsedCertificate;
use rustls::{CertRevocationListError, CertificateError, Error, OtherError};
use rustls_pki_types::{CertificateDer, ServerName, TrustAnchor, UnixTime};
use webpki::{
    CertRevocationList, EndEntityCert, KeyUsage, RevocationCheckDepth, RevocationOptionsBuilder, UnknownStatusPolicy,
    VerifiedPath,
};

use super::ca_certificate_rules::{self, CaFault};
use super::certificate_check_trait::{CertificateCheck, PresentedChain};
use super::certificate_status::{self, StatusFault};
use super::common_name;

/// A check that accepts a server certificate if it has a valid path to a trusted certificate, or if
/// it is itself trusted.
#[derive(Debug)]
pub(super) struct ChainCheck {
    algorithms: WebPkiSupportedAlgorithms,
    listed: Vec<CertificateDer<'static>>,
    /// The names and keys of those certificates in `listed` that can be parsed. `positions`
    /// contains, in the same order, the indices of these certificates in `listed`.
    anchors: Vec<TrustAnchor<'static>>,
    positions: Vec<usize>,
    revoked: Vec<CertRevocationList<'static>>,
    /// True if a common name may replace a missing `subjectAltName`
    /// ([`TlsOptions::common_name`](super::TlsOptions::common_name)).
    common_name: bool,
}

/// The reason why a certificate chain is refused.
enum ChainRefusal {
    /// webpki found this fault in the certificate path.
    Path(webpki::Error),
    /// webpki found no fault in the certificate path, but one of its CA certificates has this
    /// [`CaFault`].
    Ca(CaFault),
}

impl ChainCheck {
    /// Makes a certificate check that trusts these certificates, except revoked certificates.
    /// Returns `None` if no certificate can be parsed.
    pub(super) fn new(
        listed: Vec<CertificateDer<'static>>,
        revoked: Vec<CertRevocationList<'static>>,
        algorithms: WebPkiSupportedAlgorithms,
    ) -> Option<Self> {
        // Bundles may contain certificates that cannot be parsed; skipping them does no harm.
        let read = |(position, der)| {
            let anchor = webpki::anchor_from_trusted_cert(der).ok()?.to_owned();
            Some((anchor, position))
        };
        let (anchors, positions): (Vec<_>, Vec<_>) = listed.iter().enumerate().filter_map(read).unzip();
        (!anchors.is_empty()).then_some(Self { algorithms, listed, anchors, positions, revoked, common_name: false })
    }

    /// Sets whether the common name of a certificate without `subjectAltName` is accepted as the
    /// server's name ([`TlsOptions::common_name`](super::TlsOptions::common_name)).
    pub(super) fn with_common_name(self, common_name: bool) -> Self {
        Self { common_name, ..self }
    }

    /// Returns true if common names are accepted for this chain, and the common name of the
    /// server's certificate matches `name`.
    fn has_common_name(&self, chain: (&CertificateDer<'_>, &[CertificateDer<'_>]), name: &ServerName<'_>) -> bool {
        let (end_entity, intermediates) = chain;
        self.common_name
            && common_name::matches_common_name(end_entity, name)
            && !self.listed.iter().chain(intermediates).any(common_name::has_name_constraints)
    }

    /// Searches for a path from the server's certificate to a trusted certificate, and checks it.
    /// Returns the issuer of the server's certificate on that path.
    fn find_path(
        &self,
        end_entity: &EndEntityCert<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<TrustAnchor<'static>, ChainRefusal> {
        let lists: Vec<_> = self.revoked.iter().collect();
        // As in OpenSSL, only the server's own certificate is looked up, and a certificate that no
        // list covers is accepted.
        let revocation = RevocationOptionsBuilder::new(&lists).ok().map(|options| {
            options.with_depth(RevocationCheckDepth::EndEntity).with_status_policy(UnknownStatusPolicy::Allow).build()
        });
        let ca_fault = Cell::new(None);
        let check = |path: &VerifiedPath<'_>| {
            self.check_path(path, now).map_err(|fault| {
                ca_fault.set(Some(fault));
                // This is the least informative error: another path may be good, or fail with a
                // better one.
                webpki::Error::UnknownIssuer
            })
        };
        let usage = KeyUsage::server_auth();
        let found = end_entity.verify_for_usage(
            self.algorithms.all,
            &self.anchors,
            intermediates,
            now,
            usage,
            revocation,
            Some(&check),
        );
        match (found, ca_fault.get()) {
            (Ok(path), _) => Ok(issuer_in_path(&path)),
            (Err(webpki::Error::UnknownIssuer), Some(fault)) => Err(ChainRefusal::Ca(fault)),
            (Err(fault), _) => Err(ChainRefusal::Path(fault)),
        }
    }

    /// Checks the CA certificates of a path for faults that webpki does not detect ([`ca_certificate_rules`]).
    fn check_path(&self, path: &VerifiedPath<'_>, now: UnixTime) -> Result<(), CaFault> {
        let mut below = 0;
        for intermediate in path.intermediate_certificates() {
            let certificate = ca_certificate_rules::parse(&intermediate.der()).ok_or(CaFault::Unreadable)?;
            ca_certificate_rules::check_intermediate(&certificate)?;
            below += usize::from(!ca_certificate_rules::is_self_issued(&certificate));
        }
        // Compared by address, since a renewed certificate has the name and key of the one that it
        // replaces.
        let anchor = self.anchors.iter().position(|anchor| std::ptr::eq(anchor, path.anchor()));
        let listed = anchor.and_then(|anchor| self.listed.get(*self.positions.get(anchor)?));
        let certificate = listed.and_then(|der| ca_certificate_rules::parse(der)).ok_or(CaFault::Unreadable)?;
        let has_issued_it = path.intermediate_certificates().next().is_none();
        if has_issued_it && self.revoked.iter().any(|list| list.issuer() == &*path.anchor().subject) {
            ca_certificate_rules::check_may_sign_revocation_lists(&certificate)?;
        }
        ca_certificate_rules::check_anchor(&certificate, now, below)
    }

    /// Returns true if this server certificate is itself in the list of trusted certificates, and
    /// its purpose and key usage allow a TLS server. (webpki does not check these two for a
    /// certificate that is its own issuer.)
    fn is_explicitly_trusted(&self, end_entity: &CertificateDer<'_>) -> bool {
        let is_for_servers = || {
            let certificate = ca_certificate_rules::parse(end_entity)?;
            Some(
                ca_certificate_rules::allows_server_authentication(&certificate)?
                    && ca_certificate_rules::allows_digital_signature(&certificate)?,
            )
        };
        self.listed.iter().any(|listed| listed == end_entity) && is_for_servers() == Some(true)
    }
}

impl CertificateCheck for ChainCheck {
    fn check(&self, chain: &PresentedChain<'_>) -> Result<(), Error> {
        let PresentedChain { end_entity, intermediates, server_name, now, status } = *chain;
        let parsed = EndEntityCert::try_from(end_entity).map_err(path_error)?;
        let issuer = match self.find_path(&parsed, intermediates, now) {
            Ok(issuer) => Some(issuer),
            Err(
                ChainRefusal::Ca(_)
                | ChainRefusal::Path(webpki::Error::UnknownIssuer | webpki::Error::CaUsedAsEndEntity),
            ) if self.is_explicitly_trusted(end_entity) => None,
            Err(ChainRefusal::Ca(fault)) => {
                return Err(CertificateError::Other(OtherError(Arc::new(fault))).into());
            }
            Err(ChainRefusal::Path(webpki::Error::CaUsedAsEndEntity)) if !is_self_issued(end_entity) => {
                return Err(CertificateError::Other(OtherError(Arc::new(CaFault::UsedByServer))).into());
            }
            Err(ChainRefusal::Path(fault)) => return Err(path_error(fault)),
        };
        check_server_key_usage(end_entity)?;
        if let Some(response) = status {
            check_status(response, &parsed, issuer.as_ref(), &self.algorithms, now)?;
        }
        // The name is examined last.
        match verify_server_name(&ParsedCertificate::try_from(end_entity)?, server_name) {
            Err(refusal) if !self.has_common_name((end_entity, intermediates), server_name) => Err(refusal),
            _ => Ok(()),
        }
    }

    fn algorithms(&self) -> WebPkiSupportedAlgorithms {
        self.algorithms
    }
}

/// Returns true if the certificate names itself as its issuer, or cannot be parsed.
fn is_self_issued(certificate: &CertificateDer<'_>) -> bool {
    ca_certificate_rules::parse(certificate)
        .is_none_or(|certificate| ca_certificate_rules::is_self_issued(&certificate))
}

/// Returns an error if the key usage of the server's certificate excludes TLS, as in OpenSSL (RFC
/// 5280 section 4.2.1.3). webpki does not read the key usage.
fn check_server_key_usage(end_entity: &CertificateDer<'_>) -> Result<(), Error> {
    let certificate = ca_certificate_rules::parse(end_entity);
    match certificate.and_then(|certificate| ca_certificate_rules::allows_digital_signature(&certificate)) {
        Some(false) => Err(CertificateError::InvalidPurpose.into()),
        // A certificate that only webpki can read is accepted, as before.
        Some(true) | None => Ok(()),
    }
}

/// Returns the issuer of the server's certificate on this certificate path.
fn issuer_in_path(path: &VerifiedPath<'_>) -> TrustAnchor<'static> {
    let first = path.intermediate_certificates().next();
    let of_first = first.and_then(|first| Some(webpki::anchor_from_trusted_cert(&first.der()).ok()?.to_owned()));
    of_first.unwrap_or_else(|| path.anchor().to_owned())
}

/// Checks that the stapled OCSP response `response` confirms the server's certificate. Called only
/// if the options require such a response. An empty `response` (the server sent none) and an
/// unknown `issuer` (`None`) are errors.
fn check_status(
    response: &[u8],
    end_entity: &EndEntityCert<'_>,
    issuer: Option<&TrustAnchor<'_>>,
    algorithms: &WebPkiSupportedAlgorithms,
    now: UnixTime,
) -> Result<(), Error> {
    let checked = match issuer {
        None if !response.is_empty() => Err(StatusFault::UnknownIssuer),
        None => Err(StatusFault::Missing),
        Some(issuer) => certificate_status::check(response, end_entity, issuer, algorithms, now),
    };
    checked.map_err(|fault| CertificateError::Other(OtherError(Arc::new(fault))).into())
}

/// Converts a webpki error to a rustls error, since the conversion in rustls is private.
fn path_error(fault: webpki::Error) -> Error {
    use webpki::Error as Fault;
    let error = match fault {
        Fault::BadDer | Fault::BadDerTime | Fault::TrailingData(_) => CertificateError::BadEncoding,
        Fault::CertNotValidYet { time, not_before } => CertificateError::NotValidYetContext { time, not_before },
        Fault::CertExpired { time, not_after } => CertificateError::ExpiredContext { time, not_after },
        Fault::InvalidCertValidity => CertificateError::Expired,
        Fault::UnknownIssuer => CertificateError::UnknownIssuer,
        Fault::CertRevoked => CertificateError::Revoked,
        Fault::UnknownRevocationStatus => CertificateError::UnknownRevocationStatus,
        Fault::InvalidSignatureForPublicKey => CertificateError::BadSignature,
        Fault::RequiredEkuNotFoundContext(_) => CertificateError::InvalidPurpose,
        Fault::InvalidCrlSignatureForPublicKey => return CertRevocationListError::BadSignature.into(),
        Fault::IssuerNotCrlSigner => return CertRevocationListError::IssuerInvalidForCrl.into(),
        other => CertificateError::Other(OtherError(Arc::new(other))),
    };
    error.into()
}

/// Returns true if the certificate is refused only because it is not valid for the server's name.
/// The name is checked last, so the certificate has no other fault.
pub(super) fn is_name_mismatch(refusal: &CertificateError) -> bool {
    matches!(refusal, CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. })
}

/// Checks a server certificate that is accepted without verification, only to report its fault.
#[derive(Clone, Debug)]
pub(super) struct UnverifiedCertFaultFinder {
    /// The check of the certificate's issuer and validity period; `None` if no certificate is
    /// trusted.
    check: Option<Arc<dyn CertificateCheck>>,
}

impl UnverifiedCertFaultFinder {
    pub(super) fn new(check: Option<Arc<dyn CertificateCheck>>) -> Self {
        Self { check }
    }

    /// Checks the issuer and the validity period of the server's certificate. Returns the fault, or
    /// `None` if there is none. Ignores a wrong name.
    pub(super) fn fault(&self, chain: &[CertificateDer<'_>], name: &ServerName<'_>) -> Option<CertificateError> {
        let (Some(check), Some((end_entity, intermediates))) = (&self.check, chain.split_first()) else {
            return Some(CertificateError::UnknownIssuer);
        };
        let now = UnixTime::now();
        match check.check(&PresentedChain { end_entity, intermediates, server_name: name, now, status: None }) {
            Ok(()) => None,
            Err(Error::InvalidCertificate(fault)) => (!is_name_mismatch(&fault)).then_some(fault),
            Err(_) => Some(CertificateError::BadEncoding),
        }
    }
}

/// A check that accepts any certificate (`-k`). The peer must still prove that it has the key.
#[derive(Debug)]
pub(super) struct AcceptAnyCheck {
    algorithms: WebPkiSupportedAlgorithms,
}

impl AcceptAnyCheck {
    pub(super) fn new(algorithms: WebPkiSupportedAlgorithms) -> Self {
        Self { algorithms }
    }
}

impl CertificateCheck for AcceptAnyCheck {
    fn check(&self, chain: &PresentedChain<'_>) -> Result<(), Error> {
        let Some(response) = chain.status else { return Ok(()) };
        let parsed = EndEntityCert::try_from(chain.end_entity).map_err(path_error)?;
        // Nobody has verified the issuer; its signature is checked all the same.
        let mut anchors = chain.intermediates.iter().filter_map(|der| webpki::anchor_from_trusted_cert(der).ok());
        let issuer = anchors.find(|anchor| *anchor.subject == *parsed.issuer());
        check_status(response, &parsed, issuer.as_ref(), &self.algorithms, chain.now)
    }

    fn algorithms(&self) -> WebPkiSupportedAlgorithms {
        self.algorithms
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn time(seconds: u64) -> UnixTime {
        UnixTime::since_unix_epoch(std::time::Duration::from_secs(seconds))
    }

    #[test]
    fn webpki_faults_become_rustls_faults() {
        use webpki::Error as Fault;
        for (fault, expected) in [
            (Fault::BadDer, CertificateError::BadEncoding),
            (Fault::BadDerTime, CertificateError::BadEncoding),
            (
                Fault::CertNotValidYet { time: time(1), not_before: time(2) },
                CertificateError::NotValidYetContext { time: time(1), not_before: time(2) },
            ),
            (
                Fault::CertExpired { time: time(2), not_after: time(1) },
                CertificateError::ExpiredContext { time: time(2), not_after: time(1) },
            ),
            (Fault::InvalidCertValidity, CertificateError::Expired),
            (Fault::UnknownIssuer, CertificateError::UnknownIssuer),
            (Fault::CertRevoked, CertificateError::Revoked),
            (Fault::UnknownRevocationStatus, CertificateError::UnknownRevocationStatus),
            (Fault::InvalidSignatureForPublicKey, CertificateError::BadSignature),
        ] {
            assert_eq!(path_error(fault), Error::InvalidCertificate(expected));
        }
        let list = |fault| Error::InvalidCertRevocationList(fault);
        assert_eq!(path_error(Fault::InvalidCrlSignatureForPublicKey), list(CertRevocationListError::BadSignature));
        assert_eq!(path_error(Fault::IssuerNotCrlSigner), list(CertRevocationListError::IssuerInvalidForCrl));
        let Error::InvalidCertificate(CertificateError::Other(other)) = path_error(Fault::CaUsedAsEndEntity) else {
            panic!("another error");
        };
        assert!(other.0.is::<Fault>());
    }

    #[test]
    fn missing_status_is_told_from_unknown_issuer() {
        let key = rcgen::KeyPair::generate().unwrap();
        let certificate = rcgen::CertificateParams::new([]).unwrap().self_signed(&key).unwrap();
        let parsed = EndEntityCert::try_from(certificate.der()).unwrap();
        let algorithms = rustls::crypto::aws_lc_rs::default_provider().signature_verification_algorithms;
        let anyone = AcceptAnyCheck::new(algorithms);
        let name = ServerName::try_from("h").unwrap();
        for (status, expected) in [
            (None, None),
            (Some(&b""[..]), Some(StatusFault::Missing)),
            (Some(b"response"), Some(StatusFault::UnknownIssuer)),
        ] {
            let chain = PresentedChain {
                end_entity: certificate.der(),
                intermediates: &[],
                server_name: &name,
                now: UnixTime::now(),
                status,
            };
            let fault = anyone.check(&chain).err().map(|error| match error {
                Error::InvalidCertificate(CertificateError::Other(other)) => *other.0.downcast_ref().unwrap(),
                other => panic!("{other}"),
            });
            assert_eq!(fault, expected);
            if let Some(response) = status {
                assert!(check_status(response, &parsed, None, &algorithms, UnixTime::now()).is_err());
            }
        }
        assert_eq!(anyone.algorithms().mapping.len(), algorithms.mapping.len());
    }

    #[test]
    fn fault_finder_ignores_only_a_wrong_name() {
        let of = |name: &str| {
            let key = rcgen::KeyPair::generate().unwrap();
            let params = rcgen::CertificateParams::new([name.to_owned()]).unwrap();
            params.self_signed(&key).unwrap().der().clone()
        };
        let trusted = of("h.example");
        let algorithms = rustls::crypto::aws_lc_rs::default_provider().signature_verification_algorithms;
        let check = ChainCheck::new(vec![trusted.clone()], Vec::new(), algorithms).unwrap();
        let finder = UnverifiedCertFaultFinder::new(Some(Arc::new(check)));
        let name = |name: &'static str| ServerName::try_from(name).unwrap();
        assert_eq!(finder.fault(std::slice::from_ref(&trusted), &name("h.example")), None);
        assert_eq!(finder.fault(std::slice::from_ref(&trusted), &name("other.example")), None);
        assert!(finder.fault(&[of("h.example")], &name("h.example")).is_some(), "another certificate");
        assert_eq!(finder.fault(&[], &name("h.example")), Some(CertificateError::UnknownIssuer));
        let nothing = UnverifiedCertFaultFinder::new(None);
        assert_eq!(nothing.fault(&[trusted], &name("h.example")), Some(CertificateError::UnknownIssuer));
    }
}
