//! Who we are to a server that asks (RFC 8446 section 4.3.2): a certificate with its chain, and its key.
//!
//! ```no_run
//! use haul::RequestOptions;
//! use haul::net::tls::Identity;
//!
//! let mut options = RequestOptions::default();
//! options.tls.identity = Some(Identity { certificate: "me.pem".into(), key: Some("me.key".into()) });
//! ```
//!
//! Left out: keys with a passphrase, DER, PKCS#12, engines. `openssl pkey` makes a plain PEM of any of them.

use std::fs;
use std::path::{Path, PathBuf};

use rustls::client::WantsClientCert;
use rustls::{ClientConfig, ConfigBuilder};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};

use crate::{Error, ErrorKind, Result};

/// A client's certificate and key, by their files. Read once, when first used.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Identity {
    /// A PEM file (`--cert`): the certificate, then those between it and an authority that the server knows.
    pub certificate: PathBuf,
    /// A PEM file of the key (`--key`): PKCS#8, PKCS#1 or SEC 1, without passphrase. None: it is in the certificate's file.
    pub key: Option<PathBuf>,
}

impl Identity {
    pub(super) fn give(&self, config: ConfigBuilder<ClientConfig, WantsClientCert>) -> Result<ClientConfig> {
        let unusable = |path: &Path, what: &str| format!("cannot use the {what} in {}", path.display());
        let read = |path: &Path, what: &str| {
            fs::read(path)
                .map_err(|error| Error::with_source(ErrorKind::ClientCertificate, unusable(path, what), error))
        };
        let fails = |path: &Path, what: &str, why: &str| {
            Error::new(ErrorKind::ClientCertificate, format!("{}: {why}", unusable(path, what)))
        };
        let (certificate, key) = (&self.certificate, self.key.as_ref().unwrap_or(&self.certificate));
        let (certificate_name, key_name) = ("client certificate", "client key");
        let chain = CertificateDer::pem_slice_iter(&read(certificate, certificate_name)?)
            .collect::<std::result::Result<Vec<_>, _>>()
            .map_err(|error| fails(certificate, certificate_name, &error.to_string()))?;
        if chain.is_empty() {
            return Err(fails(certificate, certificate_name, "there is none"));
        }
        let pem = read(key, key_name)?;
        if is_encrypted(&pem) {
            return Err(fails(key, key_name, "it has a passphrase, which haul does not do"));
        }
        let parsed = PrivateKeyDer::from_pem_slice(&pem).map_err(|error| fails(key, key_name, &error.to_string()))?;
        config
            .with_client_auth_cert(chain, parsed)
            .map_err(|error| fails(certificate, certificate_name, &error.to_string()))
    }
}

/// PKCS#8's way and the older one of PEM (RFC 1421 section 4.6.1.1).
fn is_encrypted(pem: &[u8]) -> bool {
    let has = |mark: &[u8]| pem.windows(mark.len()).any(|window| window == mark);
    has(b"BEGIN ENCRYPTED PRIVATE KEY") || has(b"Proc-Type: 4,ENCRYPTED")
}
