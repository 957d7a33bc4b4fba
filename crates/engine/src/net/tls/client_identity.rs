//! The client's certificate and key, for a server that requests a certificate (RFC 8446 section
//! 4.3.2).
//!
//! ```no_run
//! use haul::RequestOptions;
//! use haul::net::tls::ClientCertificateFiles;
//!
//! let mut options = RequestOptions::default();
//! options.tls.identity = Some(ClientCertificateFiles { certificate: "me.pem".into(), key: Some("me.key".into()) });
//! ```
//!
//! Files may be PEM or DER. An encrypted key
//! ([`TlsOptions::passphrase`](super::TlsOptions::passphrase)) is PKCS#8 (RFC 5958), encrypted by
//! PBES2 (RFC 8018): AES with PBKDF2 or scrypt, which is what current openssl writes. With the
//! feature `old-keys`, the certificate's file may also be PKCS#12, and a key in PEM may be
//! encrypted in the older way (RFC 1421); `pkcs12_and_encrypted_pem` reads them.
//!
//! Left out: engines.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{fmt, fs};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use pkcs8::EncryptedPrivateKeyInfoRef;
use rustls::InconsistentKeys;
use rustls::crypto::CryptoProvider;
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};

#[cfg(feature = "old-keys")]
use super::pkcs12_and_encrypted_pem;
use crate::{Error, ErrorKind, Result};

/// The paths of a client's certificate and key. The files are read at their first use. If they are
/// replaced, new connections use the new files.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ClientCertificateFiles {
    /// The file of the certificate (`--cert`). A PEM file may also contain the intermediate
    /// certificates up to an authority that the server knows.
    pub certificate: PathBuf,
    /// The file of the key (`--key`): PKCS#8, PKCS#1 or SEC 1. `None` if the key is in the
    /// certificate's file.
    pub key: Option<PathBuf>,
}

/// The passphrase of an encrypted key. `Debug` does not show it.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Passphrase(Vec<u8>);

impl Passphrase {
    /// Makes a passphrase of these bytes.
    #[must_use]
    pub fn new(bytes: impl Into<Vec<u8>>) -> Self {
        Self(bytes.into())
    }
}

impl fmt::Debug for Passphrase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Passphrase(..)")
    }
}

/// PEM text (RFC 7468) in memory. `Debug` does not show it, since it may contain a key.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Pem(Arc<[u8]>);

impl Pem {
    /// Makes a PEM text from these bytes. It is parsed at its first use, and errors are reported
    /// then.
    #[must_use]
    pub fn new(pem: impl Into<Arc<[u8]>>) -> Self {
        Self(pem.into())
    }

    pub(super) fn text(&self) -> &[u8] {
        &self.0
    }

    /// Parses this PEM text, which contains the client's certificate, its intermediate
    /// certificates, and the key.
    pub(super) fn load(
        &self,
        provider: &CryptoProvider,
        passphrase: Option<&Passphrase>,
    ) -> Result<Arc<SingleCertAndKey>> {
        let certificate = CertificateOrKeySource { what: CERTIFICATE_WHAT, source: "memory".to_owned() };
        let key = CertificateOrKeySource { what: KEY_WHAT, ..certificate.clone() };
        parse_identity(provider, (self.0.to_vec(), &certificate), (self.0.to_vec(), &key), passphrase)
    }
}

impl fmt::Debug for Pem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Pem(..)")
    }
}

const CERTIFICATE_WHAT: &str = "client certificate";
const KEY_WHAT: &str = "client key";

impl ClientCertificateFiles {
    /// Reads the files, and parses the client's certificate, its intermediate certificates, and the
    /// key.
    pub(super) fn load(
        &self,
        provider: &CryptoProvider,
        passphrase: Option<&Passphrase>,
    ) -> Result<Arc<SingleCertAndKey>> {
        let part = |what, path: &Path| CertificateOrKeySource { what, source: path.display().to_string() };
        let read = |path: &Path, part: &CertificateOrKeySource| {
            fs::read(path)
                .map_err(|error| Error::with_source(ErrorKind::ClientCertificate, part.unusable_message(), error))
        };
        let (certificate, key) = (&self.certificate, self.key.as_ref().unwrap_or(&self.certificate));
        let (of_certificate, of_key) = (part(CERTIFICATE_WHAT, certificate), part(KEY_WHAT, key));
        let chain = read(certificate, &of_certificate)?;
        if is_pkcs12(&chain) {
            let opened = open_pkcs12(&chain, passphrase).map_err(|why| of_certificate.error(&why))?;
            return check_pair(provider, opened, &of_certificate, &of_certificate);
        }
        let key = read(key, &of_key)?;
        parse_identity(provider, (chain, &of_certificate), (key, &of_key), passphrase)
    }
}

/// The source of a certificate or a key, for error messages: the path of the file, or `memory`.
#[derive(Clone)]
struct CertificateOrKeySource {
    what: &'static str,
    source: String,
}

impl CertificateOrKeySource {
    fn unusable_message(&self) -> String {
        format!("cannot use the {} in {}", self.what, self.source)
    }

    fn error(&self, why: &str) -> Error {
        Error::new(ErrorKind::ClientCertificate, format!("{}: {why}", self.unusable_message()))
    }
}

/// Parses a certificate chain and its key. Returns the rustls resolver that sends them when a
/// server requests a certificate.
fn parse_identity(
    provider: &CryptoProvider,
    (chain, of_chain): (Vec<u8>, &CertificateOrKeySource),
    (key, of_key): (Vec<u8>, &CertificateOrKeySource),
    passphrase: Option<&Passphrase>,
) -> Result<Arc<SingleCertAndKey>> {
    let chain = parse_chain(chain).map_err(|why| of_chain.error(&why))?;
    let parsed = parse_key(key, passphrase).map_err(|why| of_key.error(&why))?;
    check_pair(provider, (chain, parsed), of_chain, of_key)
}

/// Makes the rustls resolver for a parsed certificate chain and its key. Returns an error, which
/// names the files, if chain and key do not match.
fn check_pair(
    provider: &CryptoProvider,
    (chain, parsed): (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>),
    of_chain: &CertificateOrKeySource,
    of_key: &CertificateOrKeySource,
) -> Result<Arc<SingleCertAndKey>> {
    let signer = provider.key_provider.load_private_key(parsed).map_err(|error| of_key.error(&error.to_string()))?;
    let known = CertifiedKey::new(chain, signer);
    let is_anothers = match known.keys_match() {
        Ok(()) | Err(rustls::Error::InconsistentKeys(InconsistentKeys::Unknown)) => false,
        Err(rustls::Error::InconsistentKeys(_)) => true,
        // rustls cannot parse this certificate. It may be of version 1, as openssl makes it if no
        // extension is requested, and servers accept it. The check is only whether it contains the
        // public key.
        Err(_) => known.key.public_key().is_some_and(|public| !contains_bytes(&known.cert[0], &public)),
    };
    if is_anothers {
        return Err(of_chain.error("the key is another's"));
    }
    Ok(Arc::new(SingleCertAndKey::from(known)))
}

fn parse_chain(bytes: Vec<u8>) -> std::result::Result<Vec<CertificateDer<'static>>, String> {
    if !is_pem(&bytes) && !bytes.is_empty() {
        return Ok(vec![CertificateDer::from(bytes)]);
    }
    let chain: std::result::Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&bytes).collect();
    match chain {
        Ok(chain) if chain.is_empty() => Err("there is none".to_owned()),
        chain => chain.map_err(|error| error.to_string()),
    }
}

/// Parses a key, in PEM or DER. A passphrase for an unencrypted key is ignored.
fn parse_key(bytes: Vec<u8>, passphrase: Option<&Passphrase>) -> std::result::Result<PrivateKeyDer<'static>, String> {
    if !is_pem(&bytes) {
        return match EncryptedPrivateKeyInfoRef::try_from(bytes.as_slice()) {
            Ok(sealed) => decrypt_key(&sealed, passphrase),
            Err(_) => PrivateKeyDer::try_from(bytes).map_err(str::to_owned),
        };
    }
    if contains_bytes(&bytes, b"Proc-Type: 4,ENCRYPTED") {
        return parse_old_pem_key(&bytes, passphrase);
    }
    match pem_section(&bytes, "ENCRYPTED PRIVATE KEY") {
        Some(_) if passphrase.is_none() => Err(NEEDS_PASSPHRASE.to_owned()),
        Some(text) => {
            let text: Vec<u8> = text.iter().copied().filter(|byte| !byte.is_ascii_whitespace()).collect();
            let der = STANDARD.decode(text).map_err(|error| error.to_string())?;
            let sealed = EncryptedPrivateKeyInfoRef::try_from(der.as_slice()).map_err(|error| error.to_string())?;
            decrypt_key(&sealed, passphrase)
        }
        None => PrivateKeyDer::from_pem_slice(&bytes).map_err(|error| error.to_string()),
    }
}

/// Decrypts a PEM key in the old encrypted format (RFC 1421), which has the cipher in header
/// fields.
#[cfg(feature = "old-keys")]
fn parse_old_pem_key(
    pem: &[u8],
    passphrase: Option<&Passphrase>,
) -> std::result::Result<PrivateKeyDer<'static>, String> {
    let Some(Passphrase(passphrase)) = passphrase else { return Err(NEEDS_PASSPHRASE.to_owned()) };
    let found = ["RSA PRIVATE KEY", "EC PRIVATE KEY", "PRIVATE KEY"]
        .into_iter()
        .find_map(|label| Some((label, pem_section(pem, label)?)));
    let (label, text) = found.ok_or("its kind is not supported")?;
    let text = std::str::from_utf8(text).map_err(|_| "it is not ASCII".to_owned())?;
    pkcs12_and_encrypted_pem::open_pem(label, text, passphrase)
}

#[cfg(not(feature = "old-keys"))]
fn parse_old_pem_key(_: &[u8], _: Option<&Passphrase>) -> std::result::Result<PrivateKeyDer<'static>, String> {
    Err("it is encrypted in the older way of PEM, `openssl pkey` writes it in that of PKCS#8".to_owned())
}

/// Returns true if these bytes begin like a PKCS#12 file: with a SEQUENCE whose first element is
/// the version number 3. (The first element of a certificate or of an encrypted key is a SEQUENCE,
/// and the version number of a key is 0 or 1.)
fn is_pkcs12(bytes: &[u8]) -> bool {
    let content = match bytes {
        [0x30, 0x80, rest @ ..] => rest,
        [0x30, length @ 0x81..=0x84, rest @ ..] => rest.get(usize::from(length & 0x7f)..).unwrap_or_default(),
        [0x30, _, rest @ ..] => rest,
        _ => return false,
    };
    content.starts_with(&[0x02, 0x01, 0x03])
}

#[cfg(feature = "old-keys")]
fn open_pkcs12(
    bytes: &[u8],
    passphrase: Option<&Passphrase>,
) -> std::result::Result<pkcs12_and_encrypted_pem::Pkcs12Contents, String> {
    pkcs12_and_encrypted_pem::open_pkcs12(bytes, passphrase.map(|Passphrase(text)| &text[..]).unwrap_or_default())
}

#[cfg(not(feature = "old-keys"))]
fn open_pkcs12(
    _: &[u8],
    _: Option<&Passphrase>,
) -> std::result::Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>), String> {
    Err("it is PKCS#12, which this build does not read; `openssl pkcs12 -nodes` writes it as PEM".to_owned())
}

const NEEDS_PASSPHRASE: &str = "it needs a passphrase";

fn decrypt_key(
    sealed: &EncryptedPrivateKeyInfoRef<'_>,
    passphrase: Option<&Passphrase>,
) -> std::result::Result<PrivateKeyDer<'static>, String> {
    let Some(Passphrase(passphrase)) = passphrase else { return Err(NEEDS_PASSPHRASE.to_owned()) };
    // The error does not tell reliably whether the passphrase is wrong or the cipher unsupported.
    let key = sealed.decrypt(passphrase).map_err(|error| format!("the passphrase does not open it ({error})"))?;
    Ok(PrivatePkcs8KeyDer::from(key.as_bytes().to_vec()).into())
}

/// Returns the text of the first PEM section with this label (RFC 7468), without the boundary
/// lines. Returns `None` if there is no such section.
fn pem_section<'a>(pem: &'a [u8], label: &str) -> Option<&'a [u8]> {
    let (begin, end) = (format!("-----BEGIN {label}-----"), format!("-----END {label}-----"));
    let from = find_bytes(pem, begin.as_bytes())? + begin.len();
    let length = find_bytes(&pem[from..], end.as_bytes())?;
    Some(&pem[from..from + length])
}

fn is_pem(bytes: &[u8]) -> bool {
    contains_bytes(bytes, b"-----BEGIN ")
}

fn contains_bytes(bytes: &[u8], mark: &[u8]) -> bool {
    find_bytes(bytes, mark).is_some()
}

fn find_bytes(bytes: &[u8], mark: &[u8]) -> Option<usize> {
    bytes.windows(mark.len()).position(|window| window == mark)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pkcs12_files_are_recognised() {
        for (bytes, expected) in [
            (&[0x30, 0x82, 0x01, 0x00, 0x02, 0x01, 0x03][..], true),
            (&[0x30, 0x80, 0x02, 0x01, 0x03], true),
            (&[0x30, 0x05, 0x02, 0x01, 0x03, 0, 0], true),
            // A certificate, a key of PKCS#8, a key of PKCS#1.
            (&[0x30, 0x82, 0x01, 0x00, 0x30, 0x82], false),
            (&[0x30, 0x82, 0x01, 0x00, 0x02, 0x01, 0x00], false),
            (&[0x30, 0x84], false),
            (&[], false),
        ] {
            assert_eq!(is_pkcs12(bytes), expected, "{bytes:x?}");
        }
    }

    #[test]
    fn malformed_client_keys_are_refused() {
        let pem = b"text\n-----BEGIN ENCRYPTED PRIVATE KEY-----\nMIIBvTBXBgkqhkiG9w0BBQ0w\n-----END ENCRYPTED PRIVATE KEY-----\n";
        assert_eq!(pem_section(pem, "ENCRYPTED PRIVATE KEY"), Some(&b"\nMIIBvTBXBgkqhkiG9w0BBQ0w\n"[..]));
        let passphrase = Passphrase::new("x");
        for end in 0..pem.len() {
            assert!(parse_key(pem[..end].to_vec(), Some(&passphrase)).is_err(), "{end}");
        }
        assert!(parse_key(vec![0x30, 0x82], None).is_err());
        assert_eq!(format!("{passphrase:?}"), "Passphrase(..)");
    }

    #[test]
    fn error_names_the_part_and_its_source() {
        let source = CertificateOrKeySource { what: KEY_WHAT, source: "me.key".to_owned() };
        let error = source.error("why");
        assert_eq!(error.kind(), ErrorKind::ClientCertificate);
        assert_eq!(error.to_string(), "cannot use the client key in me.key: why");
        assert_eq!(format!("{:?}", Pem::new(&b"secret"[..])), "Pem(..)");
    }

    #[test]
    fn pem_section_is_found_only_with_both_boundaries() {
        assert!(is_pem(b"text -----BEGIN X-----") && !is_pem(b"-----BEGI") && !is_pem(b""));
        assert_eq!(find_bytes(b"abcabc", b"ca"), Some(2));
        assert_eq!(pem_section(b"-----END X----- -----BEGIN X-----", "X"), None);
        assert_eq!(pem_section(b"-----BEGIN X-----a-----END Y-----", "X"), None);
        assert_eq!(pem_section(b"..-----BEGIN X-----a-----END X-----", "X"), Some(&b"a"[..]));
    }

    #[test]
    fn certificate_chain_is_read_from_pem_and_der() {
        let key = rcgen::KeyPair::generate().unwrap();
        let certificate = rcgen::CertificateParams::new([]).unwrap().self_signed(&key).unwrap();
        let (pem, der) = (certificate.pem(), certificate.der().clone());
        assert_eq!(parse_chain(pem.repeat(2).into_bytes()), Ok(vec![der.clone(), der.clone()]));
        assert_eq!(parse_chain(der.to_vec()), Ok(vec![der]));
        for none in [String::new(), key.serialize_pem()] {
            assert_eq!(parse_chain(none.into_bytes()), Err("there is none".to_owned()));
        }
    }

    #[cfg(feature = "old-keys")]
    #[test]
    fn old_encrypted_key_needs_passphrase_and_known_label() {
        let pem = |label: &str| format!("-----BEGIN {label}-----\nProc-Type: 4,ENCRYPTED\n-----END {label}-----\n");
        let refusal = |label: &str, passphrase| parse_key(pem(label).into_bytes(), passphrase).unwrap_err();
        let passphrase = Passphrase::new("x");
        assert_eq!(refusal("RSA PRIVATE KEY", None), NEEDS_PASSPHRASE);
        assert_eq!(refusal("RSA PRIVATE KEY", Some(&passphrase)), "its header is broken");
        assert_eq!(refusal("DSA PRIVATE KEY", Some(&passphrase)), "its kind is not supported");
    }
}
