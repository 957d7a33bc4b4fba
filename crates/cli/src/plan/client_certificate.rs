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
    /// `-E`: the certificate, in PEM with its chain; also the key if `key` is not given.
    pub certificate: Option<PathBuf>,
    /// `--cert-type`: the format of the certificate.
    pub format: CertFormat,
    /// `--key`. Set only with `certificate`.
    pub key: Option<PathBuf>,
    /// `--key-type`: the format of the key.
    pub key_format: CertFormat,
    /// `--pass`, or the text after the colon of `-E`: decrypts the key.
    pub passphrase: Option<Secret>,
}

/// The file format of a certificate or a key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CertFormat {
    /// PEM (RFC 7468). The default.
    #[default]
    Pem,
    /// DER: one certificate or key alone.
    Der,
}
