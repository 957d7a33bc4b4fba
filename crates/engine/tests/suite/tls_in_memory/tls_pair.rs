//! A TLS client and a TLS server that are joined by byte vectors, and certificates made for tests.

use std::{
    io::{Read, Write},
    path::{Path, PathBuf},
    sync::Arc,
};

use haul::net::tls::{HandshakeStatus, TlsConnection, TlsContexts, TlsInputState, TlsOptions, TlsVersion};
use rcgen::{
    BasicConstraints, CertificateParams, CertificateRevocationListParams, DnType, GeneralSubtree, IsCa, Issuer,
    KeyIdMethod, KeyPair, NameConstraints, SerialNumber, date_time_ymd,
};
use rustls::{
    IoState, NamedGroup, RootCertStore, ServerConfig, ServerConnection,
    crypto::aws_lc_rs,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    server::{ClientHello, ResolvesServerCert, WebPkiClientVerifier},
    sign::CertifiedKey,
    version::{TLS12, TLS13},
};

/// A certificate authority for tests, with its certificate in a file.
pub(crate) struct CertificateAuthority {
    issuer: Issuer<'static, KeyPair>,
    file: tempfile::NamedTempFile,
}

impl CertificateAuthority {
    pub(crate) fn new() -> Self {
        Self::named("test authority")
    }

    pub(crate) fn named(name: &str) -> Self {
        Self::with(name, |_| {})
    }

    /// Creates a certificate authority that may issue certificates only for names below `domain`.
    pub(crate) fn bound_to(domain: &str) -> Self {
        Self::with("bound", |params| params.name_constraints = Some(permitting(domain)))
    }

    /// Creates a certificate authority. `change` modifies the parameters of its certificate.
    pub(crate) fn with(name: &str, change: impl FnOnce(&mut CertificateParams)) -> Self {
        let mut params = Self::params(name);
        change(&mut params);
        let key = KeyPair::generate().unwrap();
        let pem = params.self_signed(&key).unwrap().pem();
        Self { issuer: Issuer::new(params, key), file: pem_file(&pem) }
    }

    fn params(name: &str) -> CertificateParams {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, name);
        params
    }

    /// Creates an intermediate authority, whose certificate is issued by this authority.
    pub(crate) fn below(&self, name: &str, change: impl FnOnce(&mut CertificateParams)) -> Self {
        let mut params = Self::params(name);
        change(&mut params);
        let key = KeyPair::generate().unwrap();
        let pem = params.signed_by(&key, &self.issuer).unwrap().pem();
        Self { issuer: Issuer::new(params, key), file: pem_file(&pem) }
    }

    /// Adds a renewed certificate of this authority, with the same name and key, to its file.
    pub(crate) fn renew(&self, change: impl FnOnce(&mut CertificateParams)) {
        let mut params = Self::params("test authority");
        change(&mut params);
        let renewed = params.self_signed(self.issuer.key()).unwrap().pem();
        let both = std::fs::read_to_string(self.file.path()).unwrap() + &renewed;
        std::fs::write(self.file.path(), both).unwrap();
    }

    /// Returns an empty revocation list of the issuer `name`, signed by the authority's key, even
    /// if its certificate does not allow it to sign such lists.
    pub(crate) fn revocation_list(&self, name: &str) -> tempfile::NamedTempFile {
        let list = CertificateRevocationListParams {
            this_update: date_time_ymd(2024, 1, 1),
            next_update: date_time_ymd(2100, 1, 1),
            crl_number: SerialNumber::from(1),
            issuing_distribution_point: None,
            revoked_certs: Vec::new(),
            key_identifier_method: KeyIdMethod::Sha256,
        };
        let key = KeyPair::from_pem(&self.issuer.key().serialize_pem()).unwrap();
        let issuer = Issuer::new(Self::params(name), key);
        pem_file(&list.signed_by(&issuer).unwrap().pem().unwrap())
    }

    pub(crate) fn pem(&self) -> String {
        std::fs::read_to_string(self.file.path()).unwrap()
    }

    /// Returns the certificate of the authority.
    pub(crate) fn der(&self) -> CertificateDer<'static> {
        CertificateDer::from_pem_file(self.file.path()).unwrap()
    }

    pub(crate) fn issue(&self, name: &str) -> ServerIdentity {
        self.issue_with(name, |_| {})
    }

    /// Issues a certificate for a server after `change` has changed its parameters.
    pub(crate) fn issue_with(&self, name: &str, change: impl FnOnce(&mut CertificateParams)) -> ServerIdentity {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        change(&mut params);
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        ServerIdentity::new(&certificate.pem(), &key)
    }

    /// Issues a certificate for a server with this common name and these subject alternative names.
    pub(crate) fn issue_by_subject(&self, name: &str, alternatives: &[&str]) -> ServerIdentity {
        let key = KeyPair::generate().unwrap();
        let mut params =
            CertificateParams::new(alternatives.iter().map(|&name| name.to_owned()).collect::<Vec<_>>()).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        ServerIdentity::new(&certificate.pem(), &key)
    }

    pub(crate) fn forget_file(&self) {
        std::fs::remove_file(self.file.path()).unwrap();
    }
}

/// Returns name constraints that permit certificates only for names below `domain`.
pub(crate) fn permitting(domain: &str) -> NameConstraints {
    NameConstraints {
        permitted_subtrees: vec![GeneralSubtree::DnsName(domain.to_owned())],
        excluded_subtrees: Vec::new(),
    }
}

/// Returns TLS options that trust only this authority.
pub(crate) fn options(authority: &CertificateAuthority) -> TlsOptions {
    let mut options = TlsOptions::default();
    options.ca_file = Some(authority.file.path().to_owned());
    options
}

/// A server's certificate and key, and the intermediate certificates that it sends.
#[derive(Clone)]
pub(crate) struct ServerIdentity {
    certificate: CertificateDer<'static>,
    intermediates: Vec<CertificateDer<'static>>,
    key: Arc<PrivateKeyDer<'static>>,
    file: Arc<tempfile::NamedTempFile>,
}

impl ServerIdentity {
    fn new(pem: &str, key: &KeyPair) -> Self {
        Self {
            certificate: CertificateDer::from_pem_slice(pem.as_bytes()).unwrap(),
            intermediates: Vec::new(),
            key: Arc::new(PrivateKeyDer::from_pem_slice(key.serialize_pem().as_bytes()).unwrap()),
            file: Arc::new(pem_file(pem)),
        }
    }

    pub(crate) fn identity(&self) -> Self {
        self.clone()
    }

    pub(crate) fn der(&self) -> CertificateDer<'static> {
        self.certificate.clone()
    }

    pub(crate) fn pem(&self) -> String {
        std::fs::read_to_string(self.file.path()).unwrap()
    }

    /// Writes the certificate in PEM and its key in DER to these files.
    pub(crate) fn write(&self, certificate: &Path, key: &Path) {
        std::fs::write(certificate, self.pem()).unwrap();
        std::fs::write(key, self.key.secret_der()).unwrap();
    }

    /// Makes the server also send the certificate of `authority`, which issued its certificate.
    pub(crate) fn shown_with(mut self, authority: &CertificateAuthority) -> Self {
        self.intermediates.push(authority.der());
        self
    }

    /// Returns TLS options that trust only this server's certificate.
    pub(crate) fn trusted(&self) -> TlsOptions {
        let mut options = TlsOptions::default();
        options.ca_file = Some(PathBuf::from(self.file.path()));
        options
    }

    /// Replaces the server's key, as if an attacker had stolen only the certificate.
    pub(crate) fn with_other_key(mut self) -> Self {
        let key = KeyPair::generate().unwrap();
        self.key = Arc::new(PrivateKeyDer::from_pem_slice(key.serialize_pem().as_bytes()).unwrap());
        self
    }
}

pub(crate) fn self_signed(name: &str, is_ca: bool, expired: bool) -> ServerIdentity {
    self_signed_with(name, |params| {
        params.is_ca = if is_ca { IsCa::Ca(BasicConstraints::Unconstrained) } else { IsCa::ExplicitNoCa };
        if expired {
            params.not_before = date_time_ymd(2001, 1, 1);
            params.not_after = date_time_ymd(2002, 1, 1);
        }
    })
}

/// Creates a self-signed certificate for a server. `change` modifies its parameters.
pub(crate) fn self_signed_with(name: &str, change: impl FnOnce(&mut CertificateParams)) -> ServerIdentity {
    let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
    change(&mut params);
    let key = KeyPair::generate().unwrap();
    ServerIdentity::new(&params.self_signed(&key).unwrap().pem(), &key)
}

fn pem_file(pem: &str) -> tempfile::NamedTempFile {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(pem.as_bytes()).unwrap();
    file
}

/// The settings of the server in a [`TlsPair`].
pub(crate) struct ServerSetup {
    pub(crate) identity: ServerIdentity,
    pub(crate) version: Option<TlsVersion>,
    pub(crate) suite: Option<&'static str>,
    pub(crate) alpn: Vec<Vec<u8>>,
    pub(crate) fragment: Option<usize>,
    /// The only key-exchange group of the server; `None` for all groups.
    pub(crate) group: Option<NamedGroup>,
    /// The certificate of the authority from which the server requests a client certificate; `None`
    /// to request no client certificate.
    pub(crate) asks: Option<CertificateDer<'static>>,
}

#[derive(Debug)]
struct FixedCertResolver(Arc<CertifiedKey>);

impl ResolvesServerCert for FixedCertResolver {
    fn resolve(&self, _hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.0))
    }
}

impl ServerSetup {
    pub(crate) fn new(identity: ServerIdentity) -> Self {
        Self { identity, version: None, suite: None, alpn: Vec::new(), fragment: None, group: None, asks: None }
    }

    pub(crate) fn config(&self) -> Arc<ServerConfig> {
        let mut provider = aws_lc_rs::default_provider();
        if let Some(suite) = self.suite {
            provider.cipher_suites.retain(|known| known.suite().as_str() == Some(suite));
            assert_eq!(provider.cipher_suites.len(), 1, "{suite}");
        }
        if let Some(group) = self.group {
            provider.kx_groups.retain(|known| known.name() == group);
        }
        let versions = match (self.version, self.suite) {
            (Some(TlsVersion::V1_2), _) => vec![&TLS12],
            (Some(_), _) => vec![&TLS13],
            (None, Some(suite)) if !suite.starts_with("TLS13") => vec![&TLS12],
            (None, Some(_)) => vec![&TLS13],
            (None, None) => vec![&TLS13, &TLS12],
        };
        let key = provider.key_provider.load_private_key(self.identity.key.clone_key()).unwrap();
        let certified =
            CertifiedKey::new([&[self.identity.certificate.clone()][..], &self.identity.intermediates].concat(), key);
        let provider = Arc::new(provider);
        let builder =
            ServerConfig::builder_with_provider(Arc::clone(&provider)).with_protocol_versions(&versions).unwrap();
        let builder = match &self.asks {
            Some(authority) => {
                let mut roots = RootCertStore::empty();
                roots.add(authority.clone()).unwrap();
                let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
                builder.with_client_cert_verifier(verifier.build().unwrap())
            }
            None => builder.with_no_client_auth(),
        };
        let mut config = builder.with_cert_resolver(Arc::new(FixedCertResolver(Arc::new(certified))));
        config.alpn_protocols.clone_from(&self.alpn);
        config.max_fragment_size = self.fragment;
        config.ticketer = aws_lc_rs::Ticketer::new().unwrap();
        config.send_half_rtt_data = true;
        Arc::new(config)
    }
}

/// A TLS client, a TLS server, and the bytes in transit between them.
pub(crate) struct TlsPair {
    pub(crate) client: TlsConnection,
    pub(crate) server: ServerConnection,
    pub(crate) to_server: Vec<u8>,
    /// The bytes that have arrived from the server and that the client has not processed yet.
    pub(crate) inbox: Vec<u8>,
    /// The maximum number of bytes that the client receives in one call.
    pub(crate) piece: usize,
    pub(crate) last_state: TlsInputState,
    received: Vec<u8>,
}

impl TlsPair {
    pub(crate) fn new(setup: &ServerSetup, options: &TlsOptions, name: &str) -> Self {
        Self::with(&setup.config(), &TlsContexts::default(), options, name)
    }

    pub(crate) fn with(config: &Arc<ServerConfig>, contexts: &TlsContexts, options: &TlsOptions, name: &str) -> Self {
        Self {
            client: TlsConnection::new(&contexts.context(options).unwrap(), name).unwrap(),
            server: ServerConnection::new(Arc::clone(config)).unwrap(),
            to_server: Vec::new(),
            inbox: Vec::new(),
            piece: usize::MAX,
            last_state: TlsInputState::NeedMore,
            received: Vec::new(),
        }
    }

    /// Creates a client and a server with the given contexts. Fails if the client's context cannot
    /// be made.
    pub(crate) fn within(
        setup: &ServerSetup,
        contexts: &TlsContexts,
        options: &TlsOptions,
        name: &str,
    ) -> haul::Result<Self> {
        contexts.context(options)?;
        Ok(Self::with(&setup.config(), contexts, options, name))
    }

    /// Returns the certificate that the client has sent to the server.
    pub(crate) fn shown_by_client(&self) -> CertificateDer<'static> {
        self.server.peer_certificates().unwrap()[0].clone().into_owned()
    }

    /// Runs the handshake to its end, including the client's last handshake messages.
    pub(crate) fn complete_handshake(&mut self) -> haul::Result<()> {
        let mut wire: Vec<u8> = Vec::new();
        loop {
            let done = self.client.handshake(&mut self.inbox, &mut self.to_server)? == HandshakeStatus::Done;
            let flight = std::mem::take(&mut self.to_server);
            // A server that refuses has an alert in its next flight, which the client reports.
            let _ = self.server_takes(&flight);
            wire.extend(self.server_flight());
            if done {
                self.inbox.append(&mut wire);
                return Ok(());
            }
            let next = self.piece.min(wire.len());
            assert!(next > 0 || !flight.is_empty(), "both wait");
            self.inbox.extend(wire.drain(..next));
        }
    }

    /// Passes the received bytes `wire` to the server, and returns the server's state.
    pub(crate) fn server_takes(&mut self, mut wire: &[u8]) -> Result<IoState, rustls::Error> {
        let mut state = self.server.process_new_packets()?;
        while !wire.is_empty() {
            self.server.read_tls(&mut wire).unwrap();
            state = self.server.process_new_packets()?;
            let mut chunk = Vec::new();
            // Without data, std's reader returns an error.
            let _ = self.server.reader().read_to_end(&mut chunk);
            self.received.extend(chunk);
        }
        Ok(state)
    }

    /// Returns the TLS bytes that the server has to send.
    pub(crate) fn server_flight(&mut self) -> Vec<u8> {
        let mut wire = Vec::new();
        while self.server.wants_write() {
            self.server.write_tls(&mut wire).unwrap();
        }
        wire
    }

    pub(crate) fn client_to_server(&mut self, data: &[u8]) -> Vec<u8> {
        let mut wire = Vec::new();
        self.client.encrypt(data, &mut wire).unwrap();
        self.server_takes(&wire).unwrap();
        std::mem::take(&mut self.received)
    }

    /// Sends `data` from the server to the client, which decrypts it in pieces. Returns the
    /// decrypted bytes.
    pub(crate) fn server_to_client(&mut self, mut data: &[u8]) -> haul::Result<Vec<u8>> {
        let mut plain = Vec::new();
        loop {
            // The server's buffer is bounded.
            let taken = self.server.writer().write(data).unwrap();
            data = &data[taken..];
            let wire = self.server_flight();
            let mut pieces = wire.chunks(self.piece.min(wire.len().max(1)));
            loop {
                let mut at = 0;
                loop {
                    let opened = self.client.decrypt(&mut self.inbox[at..])?;
                    self.last_state = opened.state;
                    if let Some(range) = opened.payload {
                        assert!(!range.is_empty() && range.end <= opened.consumed);
                        plain.extend_from_slice(&self.inbox[at..][range]);
                    }
                    at += opened.consumed;
                    if opened.state != TlsInputState::Open {
                        break;
                    }
                    assert!(opened.consumed > 0);
                }
                self.inbox.drain(..at);
                match pieces.next() {
                    Some(piece) => self.inbox.extend_from_slice(piece),
                    None => break,
                }
            }
            if data.is_empty() {
                assert!(self.inbox.is_empty());
                return Ok(plain);
            }
        }
    }
}
