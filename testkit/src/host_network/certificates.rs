//! A certificate for each name, signed by one CA.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose,
};
use rustls::ServerConfig;
use rustls::crypto::aws_lc_rs::cipher_suite::TLS13_AES_128_GCM_SHA256;
use rustls::crypto::aws_lc_rs::{self as crypto, Ticketer};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::version::TLS13;

/// The TLS certificates of all hosts of a [`HostNetwork`](super::HostNetwork), signed by one CA.
pub(super) struct HostCertificates {
    pub(super) ca_pem: String,
    by_name: Arc<CertificateTable>,
}

struct CertificateTable(HashMap<String, Arc<CertifiedKey>>);

impl fmt::Debug for CertificateTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "certificates of {} names", self.0.len())
    }
}

impl ResolvesServerCert for CertificateTable {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.0.get(hello.server_name()?).cloned()
    }
}

impl HostCertificates {
    /// Makes a CA, and a certificate for each of these host names. All certificates have one key.
    ///
    /// # Panics
    /// If the system has no entropy, or a name is not a DNS name.
    pub(super) fn generate(names: impl Iterator<Item = String>) -> HostCertificates {
        let ca_key = KeyPair::generate().expect("a key");
        let mut ca = CertificateParams::default();
        ca.distinguished_name.push(DnType::CommonName, "haul testkit CA of a network");
        ca.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        ca.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let ca_pem = ca.self_signed(&ca_key).expect("a CA certificate").pem();
        let issuer = Issuer::new(ca, ca_key);

        let key = KeyPair::generate().expect("a key");
        let der = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let signing_key = crypto::sign::any_ecdsa_type(&der).expect("a key for ECDSA");
        let certify = |name: String| {
            let mut leaf = CertificateParams::new(vec![name.clone()]).expect("a DNS name");
            leaf.distinguished_name.push(DnType::CommonName, &name);
            leaf.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
            leaf.use_authority_key_identifier_extension = true;
            let chain = vec![leaf.signed_by(&key, &issuer).expect("a server certificate").der().clone()];
            (name, Arc::new(CertifiedKey::new(chain, Arc::clone(&signing_key))))
        };
        HostCertificates { ca_pem, by_name: Arc::new(CertificateTable(names.map(certify).collect())) }
    }

    /// Returns the TLS configuration of the hosts: TLS 1.3 only, one cipher suite, ALPN `http/1.1`.
    /// Clients may resume any number of sessions with tickets.
    ///
    /// # Panics
    /// If the system has no entropy.
    pub(super) fn server_config(&self) -> Arc<ServerConfig> {
        let mut provider = crypto::default_provider();
        provider.cipher_suites = vec![TLS13_AES_128_GCM_SHA256];
        let mut config = ServerConfig::builder_with_provider(Arc::new(provider))
            .with_protocol_versions(&[&TLS13])
            .expect("the provider has a suite for TLS 1.3")
            .with_no_client_auth()
            .with_cert_resolver(Arc::clone(&self.by_name) as Arc<dyn ResolvesServerCert>);
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        config.ticketer = Ticketer::new().expect("a key for tickets");
        Arc::new(config)
    }
}
