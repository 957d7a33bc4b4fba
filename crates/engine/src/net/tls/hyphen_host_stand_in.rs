//! Host names that rustls does not accept, because a label begins or ends with a hyphen. RFC 952
//! does not allow them, but they exist in DNS, and browsers and curl connect to them.
//!
//! rustls gets a stand-in of the same length, with an `x` for each such hyphen. The real name
//! replaces the stand-in in the ClientHello that is sent and in the bytes that are hashed, so that
//! both sides have the same transcript. [`HyphenNameCheck`] checks the certificate against the real
//! name, since webpki does not accept such names either.
//!
//! ```text
//!  rustls ── ClientHello, stand-in ─┬─▶ output ──▶ real name ──▶ server
//!                                   └─▶ hash ────▶ real name
//! ```
//!
//! A hash does not know for which connection rustls calls it, so the name is in a thread-local
//! variable during each call of rustls. Rejected: to send no name, since servers with many hosts
//! would send the wrong certificate.
//!
//! Not supported: a client certificate in TLS 1.2, since rustls signs its own copy of the
//! handshake, which contains the stand-in.

use std::borrow::Cow;
use std::cell::RefCell;
use std::sync::{Arc, OnceLock};

use memchr::memmem;
use rustls::crypto::hash::{Context, Hash, HashAlgorithm, Output};
use rustls::crypto::{CryptoProvider, WebPkiSupportedAlgorithms};
use rustls::{CertificateError, CipherSuiteCommon, Error, SupportedCipherSuite, Tls12CipherSuite, Tls13CipherSuite};
use rustls_pki_types::{CertificateDer, ServerName};
use x509_cert::Certificate;
use x509_cert::der::Decode;
use x509_cert::ext::pkix::SubjectAltName;
use x509_cert::ext::pkix::name::GeneralName;

use super::certificate_check_trait::{CertificateCheck, PresentedChain};
#[cfg(feature = "http3")]
use super::quic_aead::packet_protection;
use super::webpki_chain_check::is_name_mismatch;

thread_local! {
    /// The host name of the connection for which this thread is currently calling rustls.
    static CURRENT_NAME: RefCell<Option<Arc<HyphenHostName>>> = const { RefCell::new(None) };
}

/// A host name with a label that begins or ends with a hyphen, together with its stand-in: a valid
/// name of equal length that is passed to rustls instead.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct HyphenHostName {
    real: String,
    stand_in: String,
}

impl HyphenHostName {
    /// Returns the host name with its stand-in. Returns `None` if the name is valid, or if it is
    /// invalid for a reason other than a hyphen at the beginning or end of a label.
    pub(super) fn parse(host: &str) -> Option<Self> {
        let mut labels: Vec<String> = host.split('.').map(str::to_owned).collect();
        for label in labels.iter_mut().filter(|label| label.is_ascii() && !label.is_empty()) {
            let last = label.len() - 1;
            for at in [0, last] {
                if label.as_bytes()[at] == b'-' {
                    label.replace_range(at..=at, "x");
                }
            }
        }
        let stand_in = labels.join(".");
        let is_odd = stand_in != host && ServerName::try_from(&*stand_in).is_ok();
        is_odd.then(|| Self { real: host.to_owned(), stand_in })
    }

    /// Returns the stand-in: the valid name that is passed to rustls instead of the real name.
    /// Returns `None` if rustls rejects the stand-in, too.
    pub(super) fn stand_in(&self) -> Option<ServerName<'static>> {
        ServerName::try_from(self.stand_in.clone()).ok()
    }

    /// Replaces the stand-in with the real name in an encoded ClientHello. Other handshake messages
    /// contain no name and are returned unchanged.
    pub(super) fn with_real_name<'a>(&self, bytes: &'a [u8]) -> Cow<'a, [u8]> {
        let mut extension = server_name(&self.stand_in);
        match memmem::find(bytes, &extension) {
            Some(at) => {
                let mut spelled = bytes.to_vec();
                extension = server_name(&self.real);
                spelled[at..at + extension.len()].copy_from_slice(&extension);
                Cow::Owned(spelled)
            }
            None => Cow::Borrowed(bytes),
        }
    }

    /// Returns true if this name is among the alternative names in the certificate. A wildcard may
    /// stand for the first label of the name.
    fn matches_certificate(&self, certificate: &CertificateDer<'_>) -> bool {
        let Ok(certificate) = Certificate::from_der(certificate) else { return false };
        let Ok(Some((_, names))) = certificate.tbs_certificate().get_extension::<SubjectAltName>() else {
            return false;
        };
        names.0.iter().any(|name| matches!(name, GeneralName::DnsName(name) if self.matches_name(name.as_str())))
    }

    fn matches_name(&self, presented: &str) -> bool {
        let is_below = |parent: &str| {
            // A name such as `*.example` does not match: no certificate covers a whole top-level
            // domain.
            let rest = self.real.split_once('.').map(|(_, rest)| rest);
            parent.contains('.') && rest.is_some_and(|rest| rest.eq_ignore_ascii_case(parent))
        };
        presented.eq_ignore_ascii_case(&self.real) || presented.strip_prefix("*.").is_some_and(is_below)
    }
}

/// Encodes the extension `server_name` for one host name (RFC 6066 section 3).
fn server_name(name: &str) -> Vec<u8> {
    let length = |more: usize| u16::try_from(name.len() + more).unwrap_or(u16::MAX).to_be_bytes();
    let mut extension = vec![0, 0];
    extension.extend(length(5));
    extension.extend(length(3));
    extension.push(0);
    extension.extend(length(0));
    extension.extend_from_slice(name.as_bytes());
    extension
}

/// Calls `work`, which calls rustls for one connection, and returns the result of `work`. Until
/// `work` returns, all handshake hashes that this thread computes cover the real host name, such as
/// `-a.example`, and not the stand-in `xa.example`, which rustls gets. If `name` is `None`, only
/// calls `work`.
pub(super) fn with_real_name_hashes<R>(name: Option<&Arc<HyphenHostName>>, work: impl FnOnce() -> R) -> R {
    struct CurrentNameGuard;
    impl Drop for CurrentNameGuard {
        fn drop(&mut self) {
            CURRENT_NAME.set(None);
        }
    }
    let Some(name) = name else { return work() };
    CURRENT_NAME.set(Some(Arc::clone(name)));
    let _ended = CurrentNameGuard;
    work()
}

fn current_name() -> Option<Arc<HyphenHostName>> {
    CURRENT_NAME.with_borrow(Clone::clone)
}

/// Returns the default crypto provider with a changed handshake hash, for host names that rustls
/// rejects, such as `-a.example`. rustls gets the stand-in `xa.example`, and the server receives
/// the real name. The changed hash covers the real name, as the server's hash does.
pub(super) fn provider() -> CryptoProvider {
    static SUITES: OnceLock<Vec<SupportedCipherSuite>> = OnceLock::new();
    let provider = rustls::crypto::aws_lc_rs::default_provider();
    let suites =
        SUITES.get_or_init(|| provider.cipher_suites.iter().map(|suite| with_real_name_hash(*suite)).collect());
    CryptoProvider { cipher_suites: suites.clone(), ..provider }
}

/// Returns a copy of the cipher suite with another handshake hash. The hash covers the real host
/// name, such as `-a.example`, and not the stand-in `xa.example`, which rustls gets.
/// [`with_real_name_hashes`] provides the real name during a call of rustls. The copy is never
/// freed.
fn with_real_name_hash(suite: SupportedCipherSuite) -> SupportedCipherSuite {
    let common = |common: &CipherSuiteCommon| CipherSuiteCommon {
        suite: common.suite,
        hash_provider: Box::leak(Box::new(HandshakeHashWithRealName(common.hash_provider))),
        confidentiality_limit: common.confidentiality_limit,
    };
    match suite {
        SupportedCipherSuite::Tls12(suite) => SupportedCipherSuite::Tls12(Box::leak(Box::new(Tls12CipherSuite {
            common: common(&suite.common),
            prf_provider: suite.prf_provider,
            kx: suite.kx,
            sign: suite.sign,
            aead_alg: suite.aead_alg,
        }))),
        SupportedCipherSuite::Tls13(suite) => SupportedCipherSuite::Tls13(Box::leak(Box::new(Tls13CipherSuite {
            common: common(&suite.common),
            hkdf_provider: suite.hkdf_provider,
            aead_alg: suite.aead_alg,
            quic: packet_protection(suite),
        }))),
    }
}

/// Returns the QUIC packet protection of rustls for this suite; `None` in a build without HTTP/3.
#[cfg(not(feature = "http3"))]
fn packet_protection(suite: &Tls13CipherSuite) -> Option<&'static dyn rustls::quic::Algorithm> {
    suite.quic
}

/// A hash function for handshake messages that hashes the real host name in place of its stand-in.
/// rustls rejects a name such as `-a.example`, and gets the stand-in `xa.example` instead. The
/// server receives the real name, and both sides must hash the same bytes.
struct HandshakeHashWithRealName(&'static dyn Hash);

impl Hash for HandshakeHashWithRealName {
    fn start(&self) -> Box<dyn Context> {
        Box::new(RealNameHashContext(self.0.start()))
    }

    fn hash(&self, data: &[u8]) -> Output {
        self.0.hash(data)
    }

    fn output_len(&self) -> usize {
        self.0.output_len()
    }

    fn algorithm(&self) -> HashAlgorithm {
        self.0.algorithm()
    }
}

/// A hash of the handshake messages of one connection, in progress. The hash covers the real host
/// name, such as `-a.example`, which the server receives. It does not cover the stand-in
/// `xa.example`, which rustls gets.
struct RealNameHashContext(Box<dyn Context>);

impl Context for RealNameHashContext {
    fn fork_finish(&self) -> Output {
        self.0.fork_finish()
    }

    fn fork(&self) -> Box<dyn Context> {
        Box::new(Self(self.0.fork()))
    }

    fn finish(self: Box<Self>) -> Output {
        self.0.finish()
    }

    fn update(&mut self, data: &[u8]) {
        match current_name() {
            Some(name) => self.0.update(&name.with_real_name(data)),
            None => self.0.update(data),
        }
    }
}

/// A certificate check that also supports the host names that rustls rejects: names with a label
/// that begins or ends with a hyphen, such as `-a.example`. For these names, `inner` checks the
/// certificate path, and this check compares the certificate's names with the host name. For other
/// names, `inner` checks both.
#[derive(Debug)]
pub(super) struct HyphenNameCheck {
    /// The check of the certificate path and then of the name. For a host name with a hyphen at the
    /// beginning or end of a label, [`HyphenNameCheck`] ignores a name mismatch that this check
    /// finds, and compares the real name itself. This check must examine the name last: a name
    /// mismatch then shows that nothing else is wrong.
    pub(super) inner: Arc<dyn CertificateCheck>,
}

impl CertificateCheck for HyphenNameCheck {
    fn check(&self, chain: &PresentedChain<'_>) -> Result<(), Error> {
        let result = self.inner.check(chain);
        let Some(name) = current_name() else { return result };
        match result {
            Err(Error::InvalidCertificate(refusal)) if is_name_mismatch(&refusal) => {}
            Err(error) => return Err(error),
            Ok(()) => {}
        }
        if name.matches_certificate(chain.end_entity) {
            Ok(())
        } else {
            Err(Error::InvalidCertificate(CertificateError::NotValidForName))
        }
    }

    fn algorithms(&self) -> WebPkiSupportedAlgorithms {
        self.inner.algorithms()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stand_in_host_name_replaces_only_outer_hyphens() {
        for (host, stand_in) in [
            ("-a.example", Some("xa.example")),
            ("a-.example", Some("ax.example")),
            ("-.--.b-c.example", Some("x.xx.b-c.example")),
            ("a-b.example", None),
            ("a_b.example", None),
            ("-a~.example", None),
            ("-", Some("x")),
            ("", None),
        ] {
            assert_eq!(HyphenHostName::parse(host).map(|name| name.stand_in).as_deref(), stand_in, "{host}");
        }
    }

    #[test]
    fn real_host_name_replaces_the_stand_in() {
        let name = HyphenHostName::parse("-a.example").unwrap();
        let hello = [&b"\x01xa.example"[..], &server_name("xa.example"), b"rest"].concat();
        let spelled = [&b"\x01xa.example"[..], &server_name("-a.example"), b"rest"].concat();
        assert_eq!(*name.with_real_name(&hello), *spelled);
        assert_eq!(*name.with_real_name(b"xa.example"), *b"xa.example", "elsewhere it is another text");
    }

    #[test]
    fn hyphen_name_matches_exactly_or_by_wildcard() {
        let name = HyphenHostName::parse("-a.b.example").unwrap();
        for (presented, is_named) in [
            ("-a.b.example", true),
            ("-A.B.Example", true),
            ("*.b.example", true),
            ("xa.b.example", false),
            ("*.example", false),
            ("*", false),
            ("b.example", false),
            ("-*.b.example", false),
        ] {
            assert_eq!(name.matches_name(presented), is_named, "{presented}");
        }
        assert!(!HyphenHostName::parse("-a.example").unwrap().matches_name("*.example"));
    }

    #[test]
    fn real_name_is_set_only_during_the_call() {
        let name = Arc::new(HyphenHostName::parse("-a.example").unwrap());
        with_real_name_hashes(Some(&name), || assert_eq!(current_name().as_ref(), Some(&name)));
        assert_eq!(current_name(), None);
        with_real_name_hashes(None, || assert_eq!(current_name(), None));
    }

    #[test]
    fn hash_covers_the_real_name_in_every_form() {
        let name = Arc::new(HyphenHostName::parse("-a.example").unwrap());
        let (sent, hashed) = (server_name("xa.example"), server_name("-a.example"));
        for suite in provider().cipher_suites {
            let plain = match suite {
                SupportedCipherSuite::Tls12(suite) => suite.common.hash_provider,
                SupportedCipherSuite::Tls13(suite) => suite.common.hash_provider,
            };
            let expected = plain.hash(&hashed);
            assert_eq!(expected.as_ref().len(), plain.output_len());
            let mut context = plain.start();
            with_real_name_hashes(Some(&name), || context.update(&sent));
            assert_eq!(context.fork_finish().as_ref(), expected.as_ref());
            assert_eq!(context.fork().finish().as_ref(), expected.as_ref());
            assert_eq!(context.finish().as_ref(), expected.as_ref());
            let mut context = plain.start();
            context.update(&sent);
            assert_eq!(context.finish().as_ref(), plain.hash(&sent).as_ref(), "outside the call");
        }
    }

    #[test]
    fn server_name_extension_has_three_lengths() {
        assert_eq!(server_name("ab"), [0, 0, 0, 7, 0, 5, 0, 0, 2, b'a', b'b']);
    }
}
