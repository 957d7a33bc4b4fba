//! Writes the certificates and keys of the TLS servers to files, which nginx needs.
//!
//! The key of testkit's own servers stays in memory, but a server in another process must read it
//! from disk.

use std::fs;
use std::path::Path;

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose,
};
use testkit::ip_relay::FAR_ADDR;
use testkit::test_certificates::NAMES;

use crate::Result;

/// The name of the file with the certificate of the test CA, which signs the server's certificate.
/// The file is for `--cacert`.
pub(crate) const CA: &str = "ca.pem";
/// The name of the file with all root certificates of the system and the certificate of the test
/// CA. With this file, programs have to load as many roots as from the system's own file.
pub(crate) const ROOTS: &str = "roots.pem";
/// The name of the file with the server's certificate.
pub(crate) const LEAF: &str = "leaf.pem";
/// The name of the file with the server's key.
pub(crate) const KEY: &str = "key.pem";

/// Generates a CA and a server certificate for loopback and for testkit's network namespaces, and
/// writes [`CA`], [`LEAF`] and [`KEY`] into `dir`.
pub(crate) fn write_to(dir: &Path) -> Result<()> {
    let ca_key = KeyPair::generate()?;
    let mut ca = CertificateParams::default();
    ca.distinguished_name.push(DnType::CommonName, "haul bench CA");
    ca.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    ca.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    fs::write(dir.join(CA), ca.self_signed(&ca_key)?.pem())?;
    let issuer = Issuer::new(ca, ca_key);

    let key = KeyPair::generate()?;
    let names = NAMES.into_iter().map(str::to_owned).chain([FAR_ADDR.to_string()]);
    let mut leaf = CertificateParams::new(names.collect::<Vec<_>>())?;
    leaf.distinguished_name.push(DnType::CommonName, "haul bench origin");
    leaf.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    leaf.use_authority_key_identifier_extension = true;
    fs::write(dir.join(LEAF), leaf.signed_by(&key, &issuer)?.pem())?;
    fs::write(dir.join(KEY), key.serialize_pem())?;
    Ok(())
}

/// Writes the file [`ROOTS`] in `dir`: the system's root certificates and the test CA's
/// certificate. If the system has no file of root certificates, prints a message and returns
/// `false`.
pub(crate) fn write_roots(dir: &Path) -> Result<bool> {
    const STORE: &str = "/etc/ssl/certs/ca-certificates.crt";
    let Ok(mut roots) = fs::read(STORE) else {
        println!("skipped with the system's roots: there is no {STORE}");
        return Ok(false);
    };
    roots.extend(fs::read(dir.join(CA))?);
    fs::write(dir.join(ROOTS), roots)?;
    Ok(true)
}
