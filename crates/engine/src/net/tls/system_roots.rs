//! The system's trusted certificates, loaded fast. Parsing a bundle of 150 certificates with the
//! full parser would take most of the time of a short request over TLS.
//!
//! ```text
//!  the system's   bundle ──▶ check ── no issuer known ──▶ directories of single files
//! ```
//!
//! On most systems, the directories contain the same certificates as the bundle: 150 files under
//! 300 names. If the bundle does not contain an issuer, OpenSSL looks up the issuer's file name in
//! the directories. This module reads all files, but only in that case.
//!
//! Rejected: a copy of the system's certificates in the program, as some clients have it. The
//! administrator decides which authorities to trust.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rustls::crypto::WebPkiSupportedAlgorithms;
use rustls::{CertificateError, Error};
use rustls_native_certs::CertificateResult;
use rustls_pki_types::{CertificateDer, pem, pem::PemObject};

use crate::trusted_environment_variables;

use super::certificate_check_trait::{CertificateCheck, PresentedChain};

/// The paths of certificate bundles on common systems. A program with more rights than its caller,
/// such as a set-user-ID program, uses these paths and ignores `SSL_CERT_FILE`, with which the
/// caller could choose the trusted certificates.
const WELL_KNOWN_BUNDLES: [&str; 6] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/usr/local/share/certs/ca-root-nss.crt",
    "/etc/ssl/cert.pem",
];

const CERTIFICATE_BEGIN: &[u8] = b"-----BEGIN CERTIFICATE-----";
const CERTIFICATE_END: &[u8] = b"-----END CERTIFICATE-----";
const SECTION_BEGIN: &[u8] = b"-----BEGIN ";

/// Returns the path of the file with all certificates that the system trusts: the file in
/// `SSL_CERT_FILE`, or one of the common paths. Returns `None` if there is no such file.
///
/// The agent, which keeps connections for other processes, uses this file to check whether the
/// system still trusts the same certificates.
#[must_use]
pub fn system_bundle() -> Option<PathBuf> {
    // Windows keeps the certificates in a store. Every user can create the common paths there.
    if cfg!(windows) {
        return trusted_environment_variables::variable("SSL_CERT_FILE").map(PathBuf::from);
    }
    if trusted_environment_variables::is_environment_trusted() {
        return openssl_probe::probe().cert_file;
    }
    WELL_KNOWN_BUNDLES.iter().map(PathBuf::from).find(|path| path.exists())
}

/// Returns all certificates that the system trusts, from its bundle and its directories. Like
/// [`system_bundle`], uses `SSL_CERT_FILE` and `SSL_CERT_DIR` only in a process that may trust its
/// environment variables.
pub(super) fn all_certificates() -> CertificateResult {
    if trusted_environment_variables::is_environment_trusted() {
        return rustls_native_certs::load_native_certs();
    }
    let mut all = rustls_native_certs::load_certs_from_paths(system_bundle().as_deref(), None);
    for directory in openssl_probe::candidate_cert_dirs() {
        all.certs.extend(rustls_native_certs::load_certs_from_paths(None, Some(directory)).certs);
    }
    all
}

/// Returns the certificates in the system's bundle, the file with all trusted certificates. Returns
/// `None` in two cases:
/// * There is no usable bundle.
/// * `SSL_CERT_DIR` is set and `SSL_CERT_FILE` is not, so that directories replace the bundle.
pub(super) fn bundle_certificates() -> Option<Vec<CertificateDer<'static>>> {
    let path = match trusted_environment_variables::variable("SSL_CERT_FILE") {
        Some(file) => file.into(),
        None if trusted_environment_variables::variable("SSL_CERT_DIR").is_some() => return None,
        None => system_bundle()?,
    };
    parse_plain_list(&fs::read(path).ok()?)
}

/// Parses the certificates in a PEM file.
pub(super) fn certificates_in_file(path: &Path) -> Result<Vec<CertificateDer<'static>>, pem::Error> {
    certificates_in_pem(&fs::read(path).map_err(pem::Error::Io)?)
}

/// Parses the certificates in PEM text.
pub(super) fn certificates_in_pem(bytes: &[u8]) -> Result<Vec<CertificateDer<'static>>, pem::Error> {
    match parse_plain_list(bytes) {
        Some(certificates) => Ok(certificates),
        None => CertificateDer::pem_slice_iter(bytes).collect(),
    }
}

/// Parses a list of PEM certificates (RFC 7468 section 5), which may have other text between them.
/// Returns `None` for any other input: the caller must then use the full parser, which takes ten
/// times as long.
fn parse_plain_list(bytes: &[u8]) -> Option<Vec<CertificateDer<'static>>> {
    let (begin, end) = (memchr::memmem::Finder::new(CERTIFICATE_BEGIN), memchr::memmem::Finder::new(CERTIFICATE_END));
    let mut certificates = Vec::new();
    let mut text = Vec::new();
    let mut rest = bytes;
    while let Some(at) = begin.find(rest) {
        let (before, behind) = rest.split_at(at);
        let stands_alone = before.last().is_none_or(|byte| *byte == b'\n') && !contains_section(before);
        let length = end.find(behind)?;
        let body = behind.get(CERTIFICATE_BEGIN.len()..length).filter(|_| stands_alone)?;
        if !matches!(body.first(), Some(b'\r' | b'\n')) || body.last() != Some(&b'\n') {
            return None;
        }
        text.clear();
        let mut start = 0;
        for line_end in memchr::memchr_iter(b'\n', body) {
            let line = &body[start..line_end];
            text.extend_from_slice(line.strip_suffix(b"\r").unwrap_or(line));
            start = line_end + 1;
        }
        certificates.push(STANDARD.decode(&text).ok()?.into());
        rest = &behind[length + CERTIFICATE_END.len()..];
    }
    (!certificates.is_empty() && !contains_section(rest)).then_some(certificates)
}

fn contains_section(bytes: &[u8]) -> bool {
    memchr::memmem::find(bytes, SECTION_BEGIN).is_some()
}

/// A function that makes a check which trusts all certificates of the system, from its bundle file
/// and its directories. Returns `None` if no such check can be made; only the certificates of the
/// bundle file are trusted then.
type MakeSystemCheck = dyn Fn() -> Option<Arc<dyn CertificateCheck>> + Send + Sync;

/// A certificate check with two steps. It first trusts only the certificates in the system's bundle
/// file. If a certificate's issuer is not among them, it trusts all certificates that the system
/// trusts.
pub(super) struct BundleThenSystemRootsCheck {
    bundle: Arc<dyn CertificateCheck>,
    make: Box<MakeSystemCheck>,
    whole: OnceLock<Option<Arc<dyn CertificateCheck>>>,
}

impl BundleThenSystemRootsCheck {
    pub(super) fn new(bundle: Arc<dyn CertificateCheck>, make: Box<MakeSystemCheck>) -> Self {
        Self { bundle, make, whole: OnceLock::new() }
    }
}

impl std::fmt::Debug for BundleThenSystemRootsCheck {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BundleThenSystemRootsCheck").finish_non_exhaustive()
    }
}

impl CertificateCheck for BundleThenSystemRootsCheck {
    fn check(&self, chain: &PresentedChain<'_>) -> Result<(), Error> {
        match self.bundle.check(chain) {
            // This also handles a self-signed certificate that is its own CA and is listed in a
            // directory.
            Err(Error::InvalidCertificate(CertificateError::UnknownIssuer | CertificateError::Other(_))) => {}
            result => return result,
        }
        self.whole.get_or_init(|| (self.make)()).as_ref().unwrap_or(&self.bundle).check(chain)
    }

    fn algorithms(&self) -> WebPkiSupportedAlgorithms {
        self.bundle.algorithms()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use std::sync::atomic::{AtomicUsize, Ordering};

    use rustls_pki_types::{ServerName, UnixTime};

    /// A check that returns a given result for all certificates.
    #[derive(Debug)]
    struct FixedResultCheck(Option<CertificateError>);

    impl CertificateCheck for FixedResultCheck {
        fn check(&self, _: &PresentedChain<'_>) -> Result<(), Error> {
            self.0.clone().map_or(Ok(()), |error| Err(error.into()))
        }

        fn algorithms(&self) -> WebPkiSupportedAlgorithms {
            WebPkiSupportedAlgorithms { all: &[], mapping: &[] }
        }
    }

    /// Checks a certificate twice with a [`BundleThenSystemRootsCheck`]. Returns true if it is
    /// accepted, and the number of times that all certificates of the system were read. `by_bundle`
    /// is the error that the check with the bundle finds. `by_rest` is the error that the check
    /// with all certificates finds; the outer `None` if that check cannot be made.
    fn judged(by_bundle: Option<CertificateError>, by_rest: Option<Option<CertificateError>>) -> (bool, usize) {
        let reads = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&reads);
        let make = move || {
            counted.fetch_add(1, Ordering::Relaxed);
            by_rest.clone().map(|says| Arc::new(FixedResultCheck(says)) as Arc<dyn CertificateCheck>)
        };
        let lazily = BundleThenSystemRootsCheck::new(Arc::new(FixedResultCheck(by_bundle)), Box::new(make));
        let verify = || {
            let end_entity = CertificateDer::from(vec![0]);
            let server_name = ServerName::try_from("h").unwrap();
            let chain = PresentedChain {
                end_entity: &end_entity,
                intermediates: &[],
                server_name: &server_name,
                now: UnixTime::now(),
                status: None,
            };
            lazily.check(&chain).is_ok()
        };
        let both = [verify(), verify()];
        assert_eq!(both[0], both[1]);
        (both[0], reads.load(Ordering::Relaxed))
    }

    #[test]
    fn ca_directories_are_read_once_for_unknown_issuers() {
        let unknown = || Some(CertificateError::UnknownIssuer);
        assert_eq!(judged(None, Some(None)), (true, 0));
        assert_eq!(judged(Some(CertificateError::Expired), Some(None)), (false, 0));
        assert_eq!(judged(Some(CertificateError::NotValidForName), Some(None)), (false, 0));
        assert_eq!(judged(unknown(), Some(None)), (true, 1));
        assert_eq!(judged(unknown(), Some(unknown())), (false, 1));
        assert_eq!(judged(unknown(), None), (false, 1));
    }

    fn parse_strictly(bytes: &[u8]) -> Option<Vec<CertificateDer<'static>>> {
        CertificateDer::pem_slice_iter(bytes).collect::<Result<_, _>>().ok()
    }

    /// Returns a realistic bundle: certificates whose lengths modulo 3 are 0, 1 and 2, with text
    /// between them.
    fn bundle(line_end: &str) -> Vec<u8> {
        let mut text = String::new();
        for length in [0_usize, 1, 2, 3, 100, 101, 1000] {
            text.push_str(&format!("# a name{line_end}-----BEGIN CERTIFICATE-----{line_end}"));
            let der: Vec<u8> = (0..length).map(|at| (at * 7) as u8).collect();
            for line in STANDARD.encode(der).as_bytes().chunks(64) {
                text.push_str(std::str::from_utf8(line).unwrap());
                text.push_str(line_end);
            }
            text.push_str(&format!("-----END CERTIFICATE-----{line_end}"));
        }
        text.into_bytes()
    }

    #[test]
    fn fast_and_strict_pem_parsers_agree() {
        for line_end in ["\n", "\r\n"] {
            let bytes = bundle(line_end);
            assert_eq!(parse_plain_list(&bytes).expect("it is plain").len(), 7);
            assert_eq!(parse_plain_list(&bytes), parse_strictly(&bytes));
        }
        let whole = bundle("\n");
        for end in 0..whole.len() {
            if let Some(read) = parse_plain_list(&whole[..end]) {
                assert_eq!(Some(read), parse_strictly(&whole[..end]), "the first {end} bytes");
            }
        }
    }

    #[test]
    fn fast_pem_parser_never_misreads_malformed_input() {
        let whole = bundle("\n");
        for at in 0..whole.len() {
            for byte in [b'\n', b'-', b'=', b' ', b'!', 0, b'A'] {
                let mut broken = whole.clone();
                broken[at] = byte;
                if let Some(read) = parse_plain_list(&broken) {
                    assert_eq!(Some(read), parse_strictly(&broken), "{byte} at {at}");
                }
            }
        }
        for other in [&b""[..], b"text", b"-----BEGIN PRIVATE KEY-----\nAA==\n-----END PRIVATE KEY-----\n"] {
            assert!(parse_plain_list(other).is_none());
            assert!(parse_plain_list(&[&whole, other].concat()).is_none() || !contains_section(other));
        }
    }

    #[test]
    fn certificates_in_a_file_are_all_read() {
        use std::io::Write;

        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(&bundle("\n")).unwrap();
        let read = certificates_in_file(file.path()).unwrap();
        assert_eq!(read, parse_strictly(&bundle("\n")).unwrap());
        assert!(certificates_in_file(Path::new("/nonexistent/file")).is_err());
        assert_eq!(certificates_in_pem(b"text").unwrap(), []);
    }

    #[test]
    fn check_with_system_roots_hides_its_certificates() {
        let check = BundleThenSystemRootsCheck::new(Arc::new(FixedResultCheck(None)), Box::new(|| None));
        assert_eq!(format!("{check:?}"), "BundleThenSystemRootsCheck { .. }");
    }

    #[test]
    fn system_bundle_is_part_of_all_certificates() {
        // Without a bundle, there is nothing to compare.
        let Some(path) = system_bundle() else { return };
        assert!(path.exists(), "{path:?}");
        if let Some(bundle) = bundle_certificates() {
            assert!(!bundle.is_empty());
            let all = all_certificates().certs;
            assert!(bundle.iter().all(|certificate| all.contains(certificate)));
        }
    }
}
