//! The sources of trusted certificates. Makes the certificate check for a source.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::crypto::CryptoProvider;
use rustls_pki_types::{CertificateDer, CertificateRevocationListDer, pem::PemObject};
use webpki::{CertRevocationList, OwnedCertRevocationList};

use super::certificate_check_trait::CertificateCheck;
use super::client_identity::Pem;
use super::options_and_context_cache::TlsOptions;
use super::system_roots::{self, BundleThenSystemRootsCheck};
use super::webpki_chain_check::{AcceptAnyCheck, ChainCheck};
use crate::{Error, ErrorKind, Result};

/// The source of the trusted certificates, according to the [`TlsOptions`].
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum TrustSource {
    Anyone,
    System,
    Given {
        file: Option<PathBuf>,
        directory: Option<PathBuf>,
        pem: Option<Pem>,
        common_name: bool,
    },
    /// The certificates of the source `trust`, except those in the revocation lists of the file
    /// `lists`.
    Unrevoked {
        trust: Box<TrustSource>,
        lists: PathBuf,
    },
}

impl TrustSource {
    pub(super) fn from_options(options: &TlsOptions) -> Self {
        let trust = match options {
            TlsOptions { verify: false, .. } => TrustSource::Anyone,
            TlsOptions { ca_file: None, ca_path: None, ca_pem: None, .. } => TrustSource::System,
            TlsOptions { ca_file, ca_path, ca_pem, common_name, .. } => TrustSource::Given {
                file: ca_file.clone(),
                directory: ca_path.clone(),
                pem: ca_pem.clone(),
                common_name: *common_name,
            },
        };
        match &options.crl_file {
            Some(lists) if trust != TrustSource::Anyone => {
                TrustSource::Unrevoked { trust: Box::new(trust), lists: lists.clone() }
            }
            _ => trust,
        }
    }

    /// Makes a certificate check that trusts the certificates of this source, except certificates
    /// on the lists `revoked`.
    ///
    /// # Errors
    /// [`ErrorKind::CaFile`] or [`ErrorKind::CrlFile`], if a file cannot be used or contains no
    /// certificate to trust.
    pub(super) fn check(
        &self,
        provider: &Arc<CryptoProvider>,
        revoked: &[CertificateRevocationListDer<'static>],
    ) -> Result<Arc<dyn CertificateCheck>> {
        Ok(match self {
            TrustSource::Unrevoked { trust, lists } => trust.check(provider, &read_revocation_lists(lists)?)?,
            TrustSource::Anyone => Arc::new(AcceptAnyCheck::new(provider.signature_verification_algorithms)),
            TrustSource::System => {
                let none = || Error::new(ErrorKind::CaFile, "no usable CA certificate in the system's bundle");
                let bundle = system_roots::bundle_certificates()
                    .and_then(|certificates| chain_check(certificates, provider, revoked, none).ok());
                match bundle {
                    Some(bundle) => {
                        let (provider, revoked) = (Arc::clone(provider), revoked.to_vec());
                        Arc::new(BundleThenSystemRootsCheck::new(
                            Arc::new(bundle),
                            Box::new(move || system_roots_check(&provider, &revoked).ok()),
                        ))
                    }
                    None => system_roots_check(provider, revoked)?,
                }
            }
            TrustSource::Given { file, directory, pem, common_name } => {
                let mut certificates = Vec::new();
                if let Some(pem) = pem {
                    certificates.extend(system_roots::certificates_in_pem(pem.text()).map_err(|error| {
                        Error::with_source(ErrorKind::CaFile, "cannot use the CA certificates in memory", error)
                    })?);
                }
                if let Some(file) = file {
                    certificates.extend(system_roots::certificates_in_file(file).map_err(|error| {
                        let message = format!("cannot use the CA certificates in {}", file.display());
                        Error::with_source(ErrorKind::CaFile, message, error)
                    })?);
                }
                if let Some(directory) = directory {
                    certificates.extend(read_directory(directory)?);
                }
                let place = file.as_ref().or(directory.as_ref());
                let check = chain_check(certificates, provider, revoked, || {
                    let place = place.map_or_else(|| "memory".to_owned(), |path| path.display().to_string());
                    Error::new(ErrorKind::CaFile, format!("no usable CA certificate in {place}"))
                })?;
                Arc::new(check.with_common_name(*common_name))
            }
        })
    }
}

fn chain_check(
    certificates: Vec<CertificateDer<'static>>,
    provider: &Arc<CryptoProvider>,
    revoked: &[CertificateRevocationListDer<'static>],
    none: impl FnOnce() -> Error,
) -> Result<ChainCheck> {
    let lists = revoked.iter().map(|der| OwnedCertRevocationList::from_der(der).map(CertRevocationList::from));
    let lists = lists
        .collect::<std::result::Result<Vec<_>, _>>()
        .map_err(|error| Error::with_source(ErrorKind::CrlFile, "cannot use the revocation lists", error))?;
    ChainCheck::new(certificates, lists, provider.signature_verification_algorithms).ok_or_else(none)
}

fn system_roots_check(
    provider: &Arc<CryptoProvider>,
    revoked: &[CertificateRevocationListDer<'static>],
) -> Result<Arc<dyn CertificateCheck>> {
    let found = system_roots::all_certificates();
    let check = chain_check(found.certs, provider, revoked, || {
        let message = "found no CA certificates on this system";
        match found.errors.into_iter().next() {
            Some(error) => Error::with_source(ErrorKind::CaFile, message, error),
            None => Error::new(ErrorKind::CaFile, message),
        }
    })?;
    Ok(Arc::new(check))
}

fn read_directory(path: &Path) -> Result<Vec<CertificateDer<'static>>> {
    let place = || format!("cannot use the CA certificates in {}", path.display());
    fs::read_dir(path).map_err(|error| Error::with_source(ErrorKind::CaFile, place(), error))?;
    Ok(rustls_native_certs::load_certs_from_paths(None, Some(path)).certs)
}

fn read_revocation_lists(path: &Path) -> Result<Vec<CertificateRevocationListDer<'static>>> {
    let place = || format!("cannot use the revocation lists in {}", path.display());
    let pem = fs::read(path).map_err(|error| Error::with_source(ErrorKind::CrlFile, place(), error))?;
    let lists = CertificateRevocationListDer::pem_slice_iter(&pem)
        .collect::<std::result::Result<Vec<_>, _>>()
        .map_err(|error| Error::with_source(ErrorKind::CrlFile, place(), error))?;
    if lists.is_empty() { Err(Error::new(ErrorKind::CrlFile, place())) } else { Ok(lists) }
}
