//! A certificate authority and a server certificate for loopback, made on the spot.
//!
//! There are two certificates instead of a self-signed one: webpki refuses a CA's certificate as a
//! server's own.
//!
//! ```
//! let identity = testkit::identity::Identity::generate();
//! assert!(identity.ca_pem().starts_with("-----BEGIN CERTIFICATE-----"));
//! ```

use std::sync::Arc;

use rcgen::{
    BasicConstraints, CertificateParams, CertificateRevocationListParams, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyIdMethod, KeyPair, KeyUsagePurpose, PublicKeyData, RevokedCertParams, SerialNumber, date_time_ymd,
};
use rustls::ServerConfig;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};

/// The names for which the server certificate is valid.
pub const NAMES: [&str; 3] = ["localhost", "127.0.0.1", "::1"];

/// A CA and a server certificate signed by it, for [`NAMES`].
pub struct Identity {
    ca_pem: String,
    leaf_pem: String,
    key_pem: String,
    chain: Vec<CertificateDer<'static>>,
    key: PrivatePkcs8KeyDer<'static>,
    public_key: Vec<u8>,
    issuer: Arc<Issuer<'static, KeyPair>>,
}

/// The serial number of the server's certificate.
const SERIAL: u64 = 4711;

impl Clone for Identity {
    fn clone(&self) -> Identity {
        let Identity { ca_pem, leaf_pem, key_pem, chain, key, public_key, issuer } = self;
        let (ca_pem, leaf_pem, key_pem) = (ca_pem.clone(), leaf_pem.clone(), key_pem.clone());
        let (chain, public_key) = (chain.clone(), public_key.clone());
        Identity { ca_pem, leaf_pem, key_pem, chain, key: key.clone_key(), public_key, issuer: Arc::clone(issuer) }
    }
}

impl Identity {
    /// A new identity with new keys.
    ///
    /// # Panics
    /// If the system has no entropy.
    pub fn generate() -> Identity {
        Identity::for_names(&NAMES)
    }

    /// A new identity for other names, to test that a client refuses it.
    ///
    /// # Panics
    /// If a name is neither a DNS name nor an address, or the system has no entropy.
    pub fn for_names(names: &[&str]) -> Identity {
        Identity::issue(names, "haul testkit origin")
    }

    /// A new identity whose only name is the subject's common name, as in certificates made by
    /// hand.
    ///
    /// # Panics
    /// If the system has no entropy.
    pub fn by_subject(name: &str) -> Identity {
        Identity::issue(&[], name)
    }

    fn issue(names: &[&str], common_name: &str) -> Identity {
        let ca_key = KeyPair::generate().expect("a key");
        let mut ca = CertificateParams::default();
        ca.distinguished_name.push(DnType::CommonName, "haul testkit CA");
        ca.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        ca.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let ca_cert = ca.self_signed(&ca_key).expect("a CA certificate");
        let issuer = Issuer::new(ca, ca_key);

        let key = KeyPair::generate().expect("a key");
        let names: Vec<String> = names.iter().map(ToString::to_string).collect();
        let mut leaf = CertificateParams::new(names).expect("names a certificate can hold");
        leaf.distinguished_name.push(DnType::CommonName, common_name);
        leaf.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        leaf.use_authority_key_identifier_extension = true;
        leaf.serial_number = Some(SerialNumber::from(SERIAL));
        let leaf = leaf.signed_by(&key, &issuer).expect("a server certificate");
        Identity {
            ca_pem: ca_cert.pem(),
            leaf_pem: leaf.pem(),
            key_pem: key.serialize_pem(),
            chain: vec![leaf.der().clone()],
            key: PrivatePkcs8KeyDer::from(key.serialize_der()),
            public_key: key.subject_public_key_info(),
            issuer: Arc::new(issuer),
        }
    }

    /// The server's public key as its certificate has it: a `SubjectPublicKeyInfo` in DER.
    pub fn public_key(&self) -> &[u8] {
        &self.public_key
    }

    /// The CA's list of certificates that it has revoked: none, or the server's.
    ///
    /// # Panics
    /// Never: its CA may sign lists.
    pub fn revocation_list(&self, is_revoked: bool) -> String {
        let revoked = RevokedCertParams {
            serial_number: SerialNumber::from(SERIAL),
            revocation_time: date_time_ymd(2024, 1, 1),
            reason_code: None,
            invalidity_date: None,
        };
        let list = CertificateRevocationListParams {
            this_update: date_time_ymd(2024, 1, 1),
            next_update: date_time_ymd(2100, 1, 1),
            crl_number: SerialNumber::from(1),
            issuing_distribution_point: None,
            revoked_certs: is_revoked.then_some(revoked).into_iter().collect(),
            key_identifier_method: KeyIdMethod::Sha256,
        };
        list.signed_by(&self.issuer).expect("a list").pem().expect("its text")
    }

    /// The CA's certificate, for `--cacert`.
    pub fn ca_pem(&self) -> &str {
        &self.ca_pem
    }

    /// The server's certificate, for servers that read it from a file.
    pub fn chain_pem(&self) -> String {
        self.leaf_pem.clone()
    }

    /// Returns the private key, for the same purpose.
    pub fn key_pem(&self) -> String {
        self.key_pem.clone()
    }

    /// A server's TLS configuration (1.2 and 1.3) with the given ALPN names.
    ///
    /// # Panics
    /// Never: the key fits the certificate.
    pub fn server_config(&self, alpn: &[&[u8]]) -> Arc<ServerConfig> {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("the provider has suites for both versions")
            .with_no_client_auth()
            .with_single_cert(self.chain.clone(), PrivateKeyDer::Pkcs8(self.key.clone_key()))
            .expect("the key fits the certificate");
        config.alpn_protocols = alpn.iter().map(|name| name.to_vec()).collect();
        Arc::new(config)
    }
}
