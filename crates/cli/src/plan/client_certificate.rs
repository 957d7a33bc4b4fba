//! Client certificates: their files, formats and passphrases.
//!
//! ```
//! use haul_cli::plan::{CertFormat, ClientCert};
//!
//! let none = ClientCert::default();
//! assert!(none.certificate.is_none() && none.key_format == CertFormat::Pem);
//! ```

use std::path::PathBuf;

use super::Secret;

/// A client certificate and its key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientCert {
    /// `-E`: the PEM file of the certificate and its chain. The file also contains the key if `key`
    /// is `None`.
    pub certificate: Option<PathBuf>,
    /// `--cert-type`: the format of the certificate.
    pub format: CertFormat,
    /// `--key`: the file of the private key. Always `None` if `certificate` is `None`.
    pub key: Option<PathBuf>,
    /// `--key-type`: the format of the key.
    pub key_format: CertFormat,
    /// `--pass`, or the text after the colon of `-E`: the passphrase that decrypts the key. `None`
    /// without a passphrase.
    pub passphrase: Option<Secret>,
}

/// The file format of a certificate or a key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CertFormat {
    /// PEM (RFC 7468): the file may contain several certificates or keys. The default.
    #[default]
    Pem,
    /// DER: the file contains exactly one certificate or key.
    Der,
    /// PKCS#12: the file contains certificates and a key.
    P12,
}
