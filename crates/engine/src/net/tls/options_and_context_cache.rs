//! The settings of a TLS connection, and the cached contexts that are built from these settings.

use std::{
    fmt,
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard},
};

use rustls::{
    ClientConfig, KeyLogFile, SupportedProtocolVersion,
    client::Resumption,
    crypto::CryptoProvider,
    sign::SingleCertAndKey,
    version::{TLS12, TLS13},
};

use super::certificate_check_trait::{CertificateCheck, RustlsCertificateVerifier};
use super::cipher_list;
use super::client_identity::{ClientCertificateFiles, Passphrase, Pem};
use super::ech::{EchOffer, EchOptions};
use super::hyphen_host_stand_in::{self, HyphenNameCheck};
use super::public_key_pin::{PinnedKeyCertificateCheck, PublicKeyPin};
use super::replaced_file_check::{self, FileBacked, FileStamps};
use super::server_tickets::ServerTickets;
use super::trust::TrustSource;
use super::webpki_chain_check::UnverifiedCertFaultFinder;
use crate::ignore_poison::IgnorePoison;
use crate::lru::LruMap;
use crate::net::dns::AddressFamily;
use crate::net::happy_eyeballs::ConnectOptions;
use crate::net::proxy::ProxyRoute;
use crate::{Error, ErrorKind, Result};

/// A version of TLS that haul supports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum TlsVersion {
    /// TLS 1.2 (RFC 5246).
    V1_2,
    /// TLS 1.3 (RFC 8446).
    V1_3,
}

impl TlsVersion {
    /// Returns the usual name of the version, such as `TLSv1.3`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::V1_2 => "TLSv1.2",
            Self::V1_3 => "TLSv1.3",
        }
    }
}

/// The TLS settings of a connection. A pooled connection is reused only for requests with equal
/// settings.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct TlsOptions {
    /// True to require a valid server certificate. Default: true. Without verification (`-k`), an
    /// attacker on the path can read and change everything.
    pub verify: bool,
    /// True to check the server's certificate even without `verify`, but only to report its fault
    /// ([`TransferFacts::certificate_fault`](crate::transfer_facts::TransferFacts::certificate_fault)).
    /// Default: false.
    pub examine: bool,
    /// True to require a stapled OCSP response that confirms the server's certificate
    /// (`--cert-status`), also without `verify`. Default: false.
    pub require_status: bool,
    /// True to keep the server's certificates for
    /// [`TransferFacts::certificates`](crate::transfer_facts::TransferFacts::certificates).
    /// Default: false; haul then keeps only what the connection pool needs to know about the
    /// server's own certificate.
    pub keep_certificates: bool,
    /// True to accept a certificate without `subjectAltName` if the last common name of its subject
    /// is the server's name, as curl does with OpenSSL. Default: false (RFC 9525 section 2).
    ///
    /// There are two conditions:
    /// * The trusted certificates are given by `ca_file`, `ca_path` or `ca_pem`. (The authorities
    ///   that a system trusts always issue certificates with a `subjectAltName`.)
    /// * No authority on the path has name constraints.
    pub common_name: bool,
    /// A PEM file with the certificates to trust instead of the system's certificates (`--cacert`).
    /// Default: none.
    pub ca_file: Option<PathBuf>,
    /// A directory of PEM files with the certificates to trust instead of the system's
    /// (`--capath`). The files are named by subject hash. Default: none.
    pub ca_path: Option<PathBuf>,
    /// The certificates to trust, as PEM text in memory. Together with the file and the directory,
    /// they replace the system's certificates. Default: none.
    pub ca_pem: Option<Pem>,
    /// The client certificate, for servers that request one. Default: none. Hazard: a server to
    /// which a redirect leads can request the certificate and receives it, too.
    pub identity: Option<ClientCertificateFiles>,
    /// The client's certificate, its intermediates and its key, as PEM text in memory, instead of
    /// [`identity`](Self::identity). Default: none.
    pub identity_pem: Option<Pem>,
    /// The passphrase of the client's key, if the key is encrypted (`--pass`). Default: none.
    pub passphrase: Option<Passphrase>,
    /// The lowest TLS version that is accepted. Default: TLS 1.2.
    pub min_version: TlsVersion,
    /// The highest TLS version that is accepted. Default: TLS 1.3.
    pub max_version: TlsVersion,
    /// The protocols to offer by ALPN (RFC 7301), the preferred first. Default: none.
    pub alpn: Vec<Vec<u8>>,
    /// True to send the server's name in the handshake (SNI, RFC 6066 §3). Default: true.
    pub sni: bool,
    /// The hashes of the allowed public keys of the server (`--pinnedpubkey`). The server must have
    /// one of these keys, and all other checks apply, too. Default: empty, any key is allowed.
    pub pins: Vec<PublicKeyPin>,
    /// A PEM file of revocation lists (`--crlfile`). The certificates in these lists are refused.
    /// Default: none.
    pub crl_file: Option<PathBuf>,
    /// The cipher suites of TLS 1.2, by OpenSSL's names (`--ciphers`). Default: `None`, for all
    /// secure suites.
    pub tls12_ciphers: Option<Vec<String>>,
    /// The cipher suites of TLS 1.3, by their standard names (`--tls13-ciphers`). Default: `None`,
    /// for all.
    pub tls13_ciphers: Option<Vec<String>>,
    /// The groups for the key exchange, in order of preference (`--curves`). Default: `None`, for
    /// all.
    pub groups: Option<Vec<String>>,
    /// The algorithms that may sign the handshake, by OpenSSL's names, in order of preference
    /// (`--sigalgs`). Default: `None`, for all. They do not restrict the signatures of
    /// certificates.
    pub signature_algorithms: Option<Vec<String>>,
    /// True to resume TLS sessions with the tickets of earlier connections. Default: true
    /// (`--no-sessionid` disables it).
    pub resume: bool,
    /// The settings of Encrypted Client Hello (`--ech`). Default: off.
    pub ech: EchOptions,
}

impl TlsOptions {
    /// Removes the client certificate, its key and its passphrase.
    pub fn remove_identity(&mut self) {
        // Every field is named, so that a new one cannot be forgotten here.
        let Self {
            identity,
            identity_pem,
            passphrase,
            verify: _,
            examine: _,
            require_status: _,
            keep_certificates: _,
            common_name: _,
            ca_file: _,
            ca_path: _,
            ca_pem: _,
            min_version: _,
            max_version: _,
            alpn: _,
            sni: _,
            pins: _,
            crl_file: _,
            tls12_ciphers: _,
            tls13_ciphers: _,
            groups: _,
            signature_algorithms: _,
            resume: _,
            ech: _,
        } = self;
        (*identity, *identity_pem, *passphrase) = (None, None, None);
    }
}

impl Default for TlsOptions {
    fn default() -> Self {
        Self {
            verify: true,
            examine: false,
            require_status: false,
            keep_certificates: false,
            common_name: false,
            ca_file: None,
            ca_path: None,
            ca_pem: None,
            identity: None,
            identity_pem: None,
            passphrase: None,
            min_version: TlsVersion::V1_2,
            max_version: TlsVersion::V1_3,
            alpn: Vec::new(),
            sni: true,
            pins: Vec::new(),
            crl_file: None,
            tls12_ciphers: None,
            tls13_ciphers: None,
            groups: None,
            signature_algorithms: None,
            resume: true,
            ech: EchOptions::default(),
        }
    }
}

/// The rustls configuration and session tickets that connections with the same [`TlsOptions`]
/// share.
pub struct TlsContext {
    pub(super) config: Arc<ClientConfig>,
    /// The copies of this context: one for each server, with the session tickets of that server
    /// only.
    servers: Mutex<LruMap<Arc<SessionKey>, Arc<TlsContext>>>,
    resumes: bool,
    pub(super) examiner: Option<UnverifiedCertFaultFinder>,
    pub(super) keeps_certificates: bool,
    pub(super) ech: EchOffer,
}

/// The key of a server in the session-ticket cache (RFC 8446 §4.6.1). A ticket is used only for
/// connections with an equal key. For example, another port makes another key, and so does another
/// host to which `--connect-to` redirects connections.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SessionKey {
    /// The host of the server, as in the URL.
    pub host: String,
    /// The port of the server, as in the URL.
    pub port: u16,
    /// The host and port to which connections are made, after options such as `--connect-to`.
    pub dial: (String, u16),
    /// The zone of the IPv6 address to which connections are made; `None` without a zone.
    pub zone: Option<String>,
    /// The address families that connections to the server may use.
    pub family: AddressFamily,
    /// The proxies through which the server is reached.
    pub via: ProxyRoute,
    /// The options with which connections to the server are made, including a Unix socket.
    pub connect: ConnectOptions,
}

/// The maximum number of servers whose session tickets are kept for one TLS context. Beyond it, the
/// tickets of the least recently used server are dropped. The tickets of a server take about 2 KiB
/// and the size of its certificates.
const MAX_SERVERS_WITH_TICKETS: usize = 2048;
/// The maximum size of each of three caches: TLS contexts, certificate checks, and client
/// certificates. A small size suffices, because connections to different servers with the same
/// options share a context.
const MAX_CONTEXTS: usize = 64;

impl TlsContext {
    fn new(config: ClientConfig) -> Self {
        Self {
            config: Arc::new(config),
            servers: Mutex::new(LruMap::new(MAX_SERVERS_WITH_TICKETS)),
            resumes: true,
            examiner: None,
            keeps_certificates: false,
            ech: EchOffer::Off,
        }
    }

    /// Returns the copy of this context that contains the session tickets of one server only. Makes
    /// the copy at its first use.
    #[must_use]
    pub fn for_server(self: &Arc<Self>, server: SessionKey) -> Arc<Self> {
        if !self.resumes {
            return Arc::clone(self);
        }
        let mut servers = self.servers.lock().ignore_poison();
        if let Some(context) = servers.get(&server) {
            return Arc::clone(context);
        }
        let mut config = ClientConfig::clone(&self.config);
        config.resumption = Resumption::store(Arc::new(ServerTickets::default()));
        let context = Arc::new(Self {
            examiner: self.examiner.clone(),
            keeps_certificates: self.keeps_certificates,
            ech: self.ech.clone(),
            ..Self::new(config)
        });
        servers.insert(Arc::new(server), Arc::clone(&context));
        context
    }
}

/// A cache of TLS contexts, by their [`TlsOptions`]. A context is made when the first connection
/// needs it, and made again when a file in its options has been replaced. Clones share the cache.
#[derive(Clone, Default)]
pub struct TlsContexts {
    built: Arc<Mutex<ContextCache>>,
}

/// The contents of a [`TlsContexts`] cache: contexts, certificate checks and client certificates.
struct ContextCache {
    contexts: LruMap<TlsOptions, FileBacked<Arc<TlsContext>>>,
    checks: LruMap<TrustSource, FileBacked<Arc<dyn CertificateCheck>>>,
    identities: LruMap<(ClientCertificateFiles, Option<Passphrase>), FileBacked<Arc<SingleCertAndKey>>>,
    provider: Option<Arc<CryptoProvider>>,
    key_log: Option<Arc<KeyLogFile>>,
}

impl Default for ContextCache {
    fn default() -> Self {
        Self {
            contexts: LruMap::new(MAX_CONTEXTS),
            checks: LruMap::new(MAX_CONTEXTS),
            identities: LruMap::new(MAX_CONTEXTS),
            provider: None,
            key_log: None,
        }
    }
}

impl TlsContexts {
    /// Returns the TLS context for these options. `rustls-native-certs` loads the system's
    /// certificates; it uses `SSL_CERT_FILE` and `SSL_CERT_DIR`. `SSLKEYLOGFILE` names the file to
    /// which keys are logged.
    ///
    /// The files that the options name are checked for changes at most once a second:
    /// * If a changed client certificate cannot be used, the last usable certificate remains in
    ///   use. This happens, for example, if the certificate's file is replaced before the key's
    ///   file.
    /// * A changed CA file that cannot be used is an error.
    /// * A file that was removed counts as unchanged.
    ///
    /// # Errors
    /// * [`ErrorKind::ClientCertificate`] if the client's certificate or key cannot be used.
    /// * [`ErrorKind::CaFile`] if the file, the directory or the system has no certificate to
    ///   trust.
    /// * [`ErrorKind::CrlFile`] if the revocation lists cannot be parsed.
    /// * [`ErrorKind::Cipher`] if no cipher or group is known.
    /// * [`ErrorKind::Setup`] if the lowest version is above the highest.
    pub fn context(&self, options: &TlsOptions) -> Result<Arc<TlsContext>> {
        // Locked while a context is made, so that many first connections load the certificates
        // once.
        let mut built = self.lock();
        if let Some(made) = built.contexts.get(options) {
            if made.is_current(
                replaced_file_check::trust_files(options).chain(replaced_file_check::identity_files(options)),
            ) {
                return Ok(Arc::clone(&made.value));
            }
            built.contexts.remove(options);
        }
        let made = built.build(options)?;
        let context = Arc::clone(&made.value);
        built.contexts.insert(options.clone(), made);
        Ok(context)
    }

    fn lock(&self) -> MutexGuard<'_, ContextCache> {
        self.built.lock().ignore_poison()
    }
}

impl ContextCache {
    fn build(&mut self, options: &TlsOptions) -> Result<FileBacked<Arc<TlsContext>>> {
        let versions = versions(options)?;
        let mut provider = Arc::clone(self.provider.get_or_insert_with(|| Arc::new(hyphen_host_stand_in::provider())));
        if options.tls12_ciphers.is_some() || options.tls13_ciphers.is_some() || options.groups.is_some() {
            cipher_list::apply_cipher_lists(Arc::make_mut(&mut provider), options)?;
        }
        let (mut check, mut stamps) = self.check(options, &provider)?;
        let examiner = (options.examine && !options.verify).then(|| {
            let strict = TlsOptions { verify: true, ..options.clone() };
            UnverifiedCertFaultFinder::new(self.check(&strict, &provider).ok().map(|(strict, _)| strict))
        });
        if options.verify {
            check = Arc::new(HyphenNameCheck { inner: check });
        }
        if !options.pins.is_empty() {
            check = Arc::new(PinnedKeyCertificateCheck { inner: check, pins: options.pins.clone() });
        }
        let schemes = cipher_list::signature_schemes(options, &check.algorithms())?;
        let identity = self.identity(options, &provider)?;
        let (ech, mode) = EchOffer::new(&options.ech)?;
        let builder = ClientConfig::builder_with_provider(provider);
        let config = match mode {
            Some(_) if options.max_version < TlsVersion::V1_3 => {
                let message = "Encrypted Client Hello needs TLS 1.3, which the options exclude";
                return Err(Error::new(ErrorKind::Setup, message));
            }
            Some(mode) => builder.with_ech(mode),
            None => builder.with_protocol_versions(&versions),
        };
        let config = config
            .map_err(|error| Error::with_source(ErrorKind::Setup, "cannot set up TLS", error))?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(RustlsCertificateVerifier {
                check,
                schemes,
                requires_status: options.require_status,
            }));
        let mut config = match identity {
            Some((identity, seen)) => {
                stamps = stamps.joined_with(&seen);
                config.with_client_cert_resolver(identity)
            }
            None => config.with_no_client_auth(),
        };
        config.alpn_protocols.clone_from(&options.alpn);
        config.enable_sni = options.sni;
        config.enable_secret_extraction = true;
        if crate::trusted_environment_variables::variable("SSLKEYLOGFILE").is_some() {
            config.key_log = Arc::clone(self.key_log.get_or_insert_with(|| Arc::new(KeyLogFile::new()))) as _;
        }
        if !options.resume {
            config.resumption = Resumption::disabled();
        }
        let context = TlsContext {
            resumes: options.resume,
            examiner,
            keeps_certificates: options.keep_certificates,
            ech,
            ..TlsContext::new(config)
        };
        Ok(FileBacked::new(Arc::new(context), stamps))
    }

    /// Returns the certificate check for these options, and the metadata ([`FileStamps`]) of the
    /// files that it needs. The metadata is read before the files, so that a later change is
    /// detected.
    fn check(
        &mut self,
        options: &TlsOptions,
        provider: &Arc<CryptoProvider>,
    ) -> Result<(Arc<dyn CertificateCheck>, FileStamps)> {
        let trust = TrustSource::from_options(options);
        let stamps = FileStamps::read(replaced_file_check::trust_files(options));
        if let Some(made) = self.checks.get(&trust).filter(|made| !made.stamps.differs_from(&stamps)) {
            return Ok((Arc::clone(&made.value), made.stamps.clone()));
        }
        let check = trust.check(provider, &[])?;
        self.checks.insert(trust, FileBacked::new(Arc::clone(&check), stamps.clone()));
        Ok((check, stamps))
    }

    /// Returns the client's certificate and key, and the metadata ([`FileStamps`]) of their files,
    /// which is read before the files. If certificate and key do not match, because their files are
    /// being replaced, returns the last pair that matched.
    fn identity(
        &mut self,
        options: &TlsOptions,
        provider: &CryptoProvider,
    ) -> Result<Option<(Arc<SingleCertAndKey>, FileStamps)>> {
        let passphrase = options.passphrase.as_ref();
        if let Some(pem) = &options.identity_pem {
            return Ok(Some((pem.load(provider, passphrase)?, FileStamps::default())));
        }
        let Some(identity) = &options.identity else { return Ok(None) };
        let key = (identity.clone(), options.passphrase.clone());
        let stamps = FileStamps::read(replaced_file_check::identity_files(options));
        let last = self.identities.get(&key);
        let made = match (identity.load(provider, passphrase), last) {
            (Ok(loaded), _) => FileBacked::new(loaded, stamps),
            (Err(_), Some(last)) => FileBacked::new(Arc::clone(&last.value), last.stamps.clone()),
            (Err(error), None) => return Err(error),
        };
        let found = (Arc::clone(&made.value), made.stamps.clone());
        self.identities.insert(key, made);
        Ok(Some(found))
    }
}

fn versions(options: &TlsOptions) -> Result<Vec<&'static SupportedProtocolVersion>> {
    let range = options.min_version..=options.max_version;
    let known = [(TlsVersion::V1_3, &TLS13), (TlsVersion::V1_2, &TLS12)];
    let versions: Vec<_> =
        known.into_iter().filter(|(version, _)| range.contains(version)).map(|(_, version)| version).collect();
    if versions.is_empty() {
        return Err(Error::new(ErrorKind::Setup, "the lowest TLS version is above the highest"));
    }
    Ok(versions)
}

impl fmt::Debug for TlsContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TlsContext").finish_non_exhaustive()
    }
}

impl fmt::Debug for TlsContexts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TlsContexts").field("contexts", &self.lock().contexts.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tickets_of_least_recently_used_server_are_dropped() {
        let options = TlsOptions { verify: false, ..TlsOptions::default() };
        let context = TlsContexts::default().context(&options).unwrap();
        let server = |number: usize| SessionKey {
            host: format!("h{number}.test"),
            port: 443,
            dial: (format!("h{number}.test"), 443),
            zone: None,
            family: AddressFamily::Any,
            via: ProxyRoute::Direct,
            connect: ConnectOptions::default(),
        };
        let first: Vec<_> = (0..MAX_SERVERS_WITH_TICKETS).map(|number| context.for_server(server(number))).collect();
        let is_kept = |number: usize| Arc::ptr_eq(&context.for_server(server(number)), &first[number]);
        assert!(is_kept(0));
        drop(context.for_server(server(MAX_SERVERS_WITH_TICKETS)));
        // Each one that is not kept takes the place of the next.
        assert!(is_kept(0) && is_kept(MAX_SERVERS_WITH_TICKETS - 1) && !is_kept(1) && !is_kept(2));
        assert_eq!(context.servers.lock().unwrap().len(), MAX_SERVERS_WITH_TICKETS);
    }

    #[test]
    fn number_of_cached_tls_contexts_is_bounded() {
        let contexts = TlsContexts::default();
        let options = |number: usize| {
            let alpn = vec![format!("p{number}").into_bytes()];
            TlsOptions { verify: false, resume: false, alpn, ..TlsOptions::default() }
        };
        let first = contexts.context(&options(0)).unwrap();
        for number in 1..2 * MAX_CONTEXTS {
            contexts.context(&options(number)).unwrap();
            assert!(Arc::ptr_eq(&first, &contexts.context(&options(0)).unwrap()), "it is in use");
        }
        assert_eq!(contexts.lock().contexts.len(), MAX_CONTEXTS);
    }

    #[test]
    fn each_list_of_unknown_algorithms_is_an_error() {
        let unknown = || Some(vec!["unknown".to_owned()]);
        let plain = || TlsOptions { verify: false, ..TlsOptions::default() };
        for options in [
            TlsOptions { tls12_ciphers: unknown(), ..plain() },
            TlsOptions { tls13_ciphers: unknown(), ..plain() },
            TlsOptions { groups: unknown(), ..plain() },
            TlsOptions { signature_algorithms: unknown(), ..plain() },
        ] {
            assert_eq!(TlsContexts::default().context(&options).unwrap_err().kind(), ErrorKind::Cipher, "{options:?}");
        }
        assert!(TlsContexts::default().context(&plain()).is_ok());
    }

    #[test]
    fn version_range_selects_the_versions() {
        use TlsVersion::{V1_2, V1_3};
        for (min_version, max_version, expected) in [(V1_2, V1_3, 2), (V1_2, V1_2, 1), (V1_3, V1_3, 1)] {
            let options = TlsOptions { min_version, max_version, ..TlsOptions::default() };
            assert_eq!(versions(&options).unwrap().len(), expected);
        }
        let reversed = TlsOptions { min_version: V1_3, max_version: V1_2, ..TlsOptions::default() };
        assert_eq!(versions(&reversed).unwrap_err().kind(), ErrorKind::Setup);
    }

    #[test]
    fn debug_text_of_contexts_counts_them() {
        let contexts = TlsContexts::default();
        assert!(format!("{contexts:?}").contains("contexts: 0"));
        let context = contexts.context(&TlsOptions { verify: false, ..TlsOptions::default() }).unwrap();
        assert!(format!("{contexts:?}").contains("contexts: 1"));
        assert_eq!(format!("{context:?}"), "TlsContext { .. }");
    }
}
