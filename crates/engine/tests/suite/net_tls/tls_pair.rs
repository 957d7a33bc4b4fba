//! A client and a server joined by two vectors of bytes, and certificates made to order.

use std::{
    io::{Read, Write},
    path::{Path, PathBuf},
    sync::Arc,
};

use haul::net::tls::{Handshake, State, Tls, TlsContexts, TlsOptions, TlsVersion};
use rcgen::{
    BasicConstraints, CertificateParams, CertificateRevocationListParams, DnType, GeneralSubtree, IsCa, Issuer,
    KeyIdMethod, KeyPair, NameConstraints, SerialNumber, date_time_ymd,
};
use rustls::{
    IoState, RootCertStore, ServerConfig, ServerConnection,
    crypto::aws_lc_rs,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    server::{ClientHello, ResolvesServerCert, WebPkiClientVerifier},
    sign::CertifiedKey,
    version::{TLS12, TLS13},
};

/// A CA with its certificate in a file.
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

    /// It may issue for names below this one alone.
    pub(crate) fn bound_to(domain: &str) -> Self {
        Self::with("bound", |params| params.name_constraints = Some(permitting(domain)))
    }

    /// One whose certificate is changed in some way before it is made.
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

    /// An authority below this one.
    pub(crate) fn below(&self, name: &str, change: impl FnOnce(&mut CertificateParams)) -> Self {
        let mut params = Self::params(name);
        change(&mut params);
        let key = KeyPair::generate().unwrap();
        let pem = params.signed_by(&key, &self.issuer).unwrap().pem();
        Self { issuer: Issuer::new(params, key), file: pem_file(&pem) }
    }

    /// Adds a certificate of the same name and key, as when one is renewed.
    pub(crate) fn renew(&self, change: impl FnOnce(&mut CertificateParams)) {
        let mut params = Self::params("test authority");
        change(&mut params);
        let renewed = params.self_signed(self.issuer.key()).unwrap().pem();
        let both = std::fs::read_to_string(self.file.path()).unwrap() + &renewed;
        std::fs::write(self.file.path(), both).unwrap();
    }

    /// A revocation list that revokes nothing, signed by this key under this name, whether the
    /// certificate allows that or not.
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

    /// The certificate of the authority.
    pub(crate) fn der(&self) -> CertificateDer<'static> {
        CertificateDer::from_pem_file(self.file.path()).unwrap()
    }

    pub(crate) fn issue(&self, name: &str) -> ServerIdentity {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        ServerIdentity::new(&certificate.pem(), &key)
    }

    /// For a server that has its name as the subject's common name, beside these alternative ones.
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

/// Bounds names to those below this one.
pub(crate) fn permitting(domain: &str) -> NameConstraints {
    NameConstraints {
        permitted_subtrees: vec![GeneralSubtree::DnsName(domain.to_owned())],
        excluded_subtrees: Vec::new(),
    }
}

/// Options that trust this authority alone.
pub(crate) fn options(authority: &CertificateAuthority) -> TlsOptions {
    let mut options = TlsOptions::default();
    options.ca_file = Some(authority.file.path().to_owned());
    options
}

/// A server's certificate and key.
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

    /// Writes the certificate and its key, in DER, to these files.
    pub(crate) fn write(&self, certificate: &Path, key: &Path) {
        std::fs::write(certificate, self.pem()).unwrap();
        std::fs::write(key, self.key.secret_der()).unwrap();
    }

    /// The same, shown with the certificate of the authority that issued it.
    pub(crate) fn shown_with(mut self, authority: &CertificateAuthority) -> Self {
        self.intermediates.push(authority.der());
        self
    }

    /// Options that trust just this certificate.
    pub(crate) fn trusted(&self) -> TlsOptions {
        let mut options = TlsOptions::default();
        options.ca_file = Some(PathBuf::from(self.file.path()));
        options
    }

    /// The same certificate in the hands of somebody without its key.
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

/// A certificate that is its own issuer, changed in some way before it is made.
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

/// What kind of server.
pub(crate) struct ServerSetup {
    pub(crate) identity: ServerIdentity,
    pub(crate) version: Option<TlsVersion>,
    pub(crate) suite: Option<&'static str>,
    pub(crate) alpn: Vec<Vec<u8>>,
    pub(crate) fragment: Option<usize>,
    /// Asks for a client's certificate that this authority has issued.
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
        Self { identity, version: None, suite: None, alpn: Vec::new(), fragment: None, asks: None }
    }

    pub(crate) fn config(&self) -> Arc<ServerConfig> {
        let mut provider = aws_lc_rs::default_provider();
        if let Some(suite) = self.suite {
            provider.cipher_suites.retain(|known| known.suite().as_str() == Some(suite));
            assert_eq!(provider.cipher_suites.len(), 1, "{suite}");
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

/// Both ends, and the bytes on their way.
pub(crate) struct TlsPair {
    pub(crate) client: Tls,
    pub(crate) server: ServerConnection,
    pub(crate) to_server: Vec<u8>,
    /// What the client has received and not used yet.
    pub(crate) inbox: Vec<u8>,
    /// The client receives so many bytes at a time.
    pub(crate) piece: usize,
    pub(crate) last_state: State,
    received: Vec<u8>,
}

impl TlsPair {
    pub(crate) fn new(setup: &ServerSetup, options: &TlsOptions, name: &str) -> Self {
        Self::with(&setup.config(), &TlsContexts::default(), options, name)
    }

    pub(crate) fn with(config: &Arc<ServerConfig>, contexts: &TlsContexts, options: &TlsOptions, name: &str) -> Self {
        Self {
            client: Tls::new(&contexts.context(options).unwrap(), name).unwrap(),
            server: ServerConnection::new(Arc::clone(config)).unwrap(),
            to_server: Vec::new(),
            inbox: Vec::new(),
            piece: usize::MAX,
            last_state: State::NeedMore,
            received: Vec::new(),
        }
    }

    /// With contexts of one's own, which may fail.
    pub(crate) fn within(
        setup: &ServerSetup,
        contexts: &TlsContexts,
        options: &TlsOptions,
        name: &str,
    ) -> haul::Result<Self> {
        contexts.context(options)?;
        Ok(Self::with(&setup.config(), contexts, options, name))
    }

    /// The certificate that the client has shown.
    pub(crate) fn shown_by_client(&self) -> CertificateDer<'static> {
        self.server.peer_certificates().unwrap()[0].clone().into_owned()
    }

    /// Shakes hands; our last flight reaches the server too.
    pub(crate) fn shake(&mut self) -> haul::Result<()> {
        let mut wire: Vec<u8> = Vec::new();
        loop {
            let done = self.client.handshake(&mut self.inbox, &mut self.to_server)? == Handshake::Done;
            let flight = std::mem::take(&mut self.to_server);
            // A server that refuses has an alert in its next flight; that is for the client to say.
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

    /// The server gets these bytes, and says what it makes of them.
    pub(crate) fn server_takes(&mut self, mut wire: &[u8]) -> Result<IoState, rustls::Error> {
        let mut state = self.server.process_new_packets()?;
        while !wire.is_empty() {
            self.server.read_tls(&mut wire).unwrap();
            state = self.server.process_new_packets()?;
            let mut chunk = Vec::new();
            // No data yet is an error to std's reader.
            let _ = self.server.reader().read_to_end(&mut chunk);
            self.received.extend(chunk);
        }
        Ok(state)
    }

    /// What the server wants to send now.
    pub(crate) fn server_flight(&mut self) -> Vec<u8> {
        let mut wire = Vec::new();
        while self.server.wants_write() {
            self.server.write_tls(&mut wire).unwrap();
        }
        wire
    }

    pub(crate) fn client_to_server(&mut self, data: &[u8]) -> Vec<u8> {
        let mut wire = Vec::new();
        self.client.seal(data, &mut wire).unwrap();
        self.server_takes(&wire).unwrap();
        std::mem::take(&mut self.received)
    }

    /// The server sends, the client opens piece by piece until nothing is on its way.
    pub(crate) fn server_to_client(&mut self, mut data: &[u8]) -> haul::Result<Vec<u8>> {
        let mut plain = Vec::new();
        loop {
            // The server's own buffer is bounded.
            let taken = self.server.writer().write(data).unwrap();
            data = &data[taken..];
            let wire = self.server_flight();
            let mut pieces = wire.chunks(self.piece.min(wire.len().max(1)));
            loop {
                let mut at = 0;
                loop {
                    let opened = self.client.open(&mut self.inbox[at..])?;
                    self.last_state = opened.state;
                    if let Some(range) = opened.payload {
                        assert!(!range.is_empty() && range.end <= opened.consumed);
                        plain.extend_from_slice(&self.inbox[at..][range]);
                    }
                    at += opened.consumed;
                    if opened.state != State::Open {
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
