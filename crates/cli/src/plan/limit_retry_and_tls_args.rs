//! The transfer settings: limits, retries, addresses, TLS.
//!
//! ```
//! use haul_cli::plan::{GlobalArgs, TransferArgs};
//!
//! let mut transfer = TransferArgs::default();
//! transfer.speed_limit.bytes_per_second = 1000;
//! assert!(transfer.min_speed().is_none(), "slow for how long?");
//! assert_eq!(transfer.connections(&GlobalArgs::default()), 6);
//! ```

use std::net::IpAddr;
use std::time::Duration;

use haul::RequestOptions;
use haul::net::dns::ChosenDnsServers;
use haul::net::happy_eyeballs::ConnectOptions;
use haul::net::tls::{EchPolicy, TlsOptions};
use haul::request::{RedirectRules, RetryRules, SpeedLimit, StallLimit};

use super::{AllowedProtocols, ClientCert, CookieArgs, GlobalArgs, KeepaliveArgs, StateFileArg};
use crate::program_persona::ProgramPersona;

/// The maximum number of connections for one body if no option sets it.
const DEFAULT_CONNECTIONS: usize = 6;

/// The transfer settings of a stage (`--then` separates stages): limits, retries, connections and
/// TLS.
#[derive(Clone, Debug)]
pub struct TransferArgs {
    /// The settings that are stored as options of the engine: `--fail`, `--fail-with-body`, the
    /// redirects and retries, `--limit-rate`, `--max-filesize`, `--path-as-is`, `-4` and `-6`,
    /// `--connect-to`, `--connect-timeout`, the socket options, `-0`, `--http0.9`, `--raw`,
    /// `--ignore-content-length` and `--expect100-timeout`. All other request options keep their
    /// defaults and are ignored.
    pub options: RequestOptions,
    /// `--proto` and similar options: the schemes that URLs and redirects may have.
    pub redirect: AllowedProtocols,
    /// The cookie files and jar. (The cookies of `-b TEXT` are part of the request.)
    pub cookies: CookieArgs,
    /// `--hsts`: the storage of the hosts that must be reached by https (RFC 6797).
    pub hsts: StateFileArg,
    /// `--alt-svc`: the storage of the alternative services of origins (RFC 7838).
    pub alt_svc: StateFileArg,
    /// `-m`: the time limit of one transfer; `None` is no limit. The limit includes retries, unless
    /// haul acts as curl: then each try has this limit.
    pub max_time: Option<Duration>,
    /// `--connect-timeout`: the time limit for making a connection; `None` without the option.
    /// [`TransferArgs::connect_limit`] returns the limit that applies.
    pub connect_timeout: Option<Duration>,
    /// `--stall-time`: the maximum time without progress, zero for no limit; `None` without the
    /// option. [`TransferArgs::stall_limit`] returns the limit that applies.
    pub stall_time: Option<Duration>,
    /// `--compressed` (true) or `--no-compressed` (false). `None` without either option:
    /// [`StageArgs::requests_compression`](super::StageArgs::requests_compression) then decides
    /// whether compressed content is requested.
    pub compressed: Option<bool>,
    /// `--split`: the maximum number of connections for one body, from 1 (no splitting) to 256.
    /// `None` without the option: [`TransferArgs::connections`] then returns the default.
    pub split: Option<usize>,
    /// `-Y` and `-y`: the speed in bytes per second, and the time for which a transfer may be
    /// slower. If either is zero, there is no limit ([`TransferArgs::min_speed`]).
    pub speed_limit: SpeedLimit,
    /// The HTTP versions that the transfers may use.
    pub http_version: HttpVersion,
    /// `--resolve`: addresses of hosts, in order. A later entry replaces an earlier one for the
    /// same host and port.
    pub resolve: Vec<ResolveArg>,
    /// `--dns-servers` and similar options: the DNS servers to ask.
    pub dns: ChosenDnsServers,
    /// `--doh-url`: the https URL of the server that resolves host names (DNS over HTTPS). `None`
    /// without the option.
    pub doh_url: Option<String>,
    /// `--doh-insecure`: does not verify the certificate of the `--doh-url` server.
    pub doh_insecure: bool,
    /// `--interface`: the local interface or address of connections, in the syntax of
    /// [`LocalInterface::parse`](haul::net::local_address::LocalInterface::parse). `None` leaves
    /// the choice to the system.
    pub interface: Option<String>,
    /// The settings of TCP keepalive; `None` for `--no-keepalive`.
    pub keepalive: Option<KeepaliveArgs>,
    /// TLS settings. Connections are shared only between requests whose TLS settings are equal.
    pub tls: TlsArgs,
}

/// The default of `--connect-timeout` in a run of many URLs, unless haul acts as curl. In all other
/// runs, curl's default applies.
const CONNECT_LIMIT_FOR_MANY_URLS: Duration = Duration::from_secs(30);
/// The default of `--stall-time` (the maximum time without progress) in a run of many URLs, unless
/// haul acts as curl.
const STALL_LIMIT_FOR_MANY_URLS: Duration = Duration::from_secs(60);
/// The default of `--stall-time` (the maximum time without progress) in a run that transfers one
/// URL after the other, unless haul acts as curl.
const STALL_LIMIT_FOR_ONE_URL: Duration = Duration::from_secs(300);

/// The size of a run: one URL at a time, or possibly many URLs. The size decides the default time
/// limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunSize {
    /// The run sends one request at a time: it has a single URL, or uploads that run one after the
    /// other.
    OneUrl,
    /// The run may have many URLs, because it has a list of URLs, a glob or several stages.
    ManyUrls,
}

impl Default for TransferArgs {
    fn default() -> Self {
        TransferArgs {
            options: RequestOptions {
                fail: true,
                redirects: RedirectRules::default(),
                retry: RetryRules::default(),
                ..RequestOptions::default()
            },
            redirect: AllowedProtocols::default(),
            cookies: CookieArgs::default(),
            hsts: StateFileArg::Off,
            alt_svc: StateFileArg::Off,
            max_time: None,
            connect_timeout: None,
            stall_time: None,
            compressed: None,
            split: None,
            speed_limit: SpeedLimit { bytes_per_second: 0, time: Duration::ZERO },
            http_version: HttpVersion::Any,
            resolve: Vec::new(),
            dns: ChosenDnsServers::default(),
            doh_url: None,
            doh_insecure: false,
            interface: None,
            keepalive: Some(KeepaliveArgs::default()),
            tls: TlsArgs::default(),
        }
    }
}

impl TransferArgs {
    /// Returns the default transfer settings of haul or, if haul acts as curl, of curl.
    pub fn with_defaults(persona: ProgramPersona) -> Self {
        let mut transfer = TransferArgs::default();
        if persona.is_curl() {
            let options = &mut transfer.options;
            (options.redirects.follow, options.fail, options.resume) = (false, false, false);
            options.retry = RetryRules {
                max: 0,
                resets: false,
                unknown_names: true,
                any_method: true,
                waits_as_curl: true,
                ..RetryRules::default()
            };
            transfer.cookies.as_curl = true;
            transfer.split = Some(1);
        }
        transfer
    }

    /// Returns the maximum number of connections for one body: the value of `--split`, else the
    /// limit for one host if it is given, else 6. Never 0.
    pub fn connections(&self, global: &GlobalArgs) -> usize {
        self.split.or(global.parallel_max_host).unwrap_or(DEFAULT_CONNECTIONS)
    }

    /// Returns the redirect rules for a request. `keep_method` is true if the method comes from
    /// `-X` and redirects must not change it. `is_post` is `Some(true)` if redirects treat the
    /// method as POST, whatever its name, `Some(false)` if they never do, and `None` if the name
    /// decides.
    pub fn redirect_rules(&self, keep_method: bool, is_post: Option<bool>) -> RedirectRules {
        RedirectRules { keep_method, is_post, ..self.options.redirects.clone() }
            .with_protocols(self.redirect.protocols.intersection(self.redirect.redirected))
    }

    /// Returns the time limit for making a connection. The default is that of curl, or a shorter
    /// one for a run of many URLs if haul does not act as curl.
    pub fn connect_limit(&self, persona: ProgramPersona, size: RunSize) -> Duration {
        match (self.connect_timeout, size) {
            (Some(limit), _) => limit,
            (None, RunSize::ManyUrls) if !persona.is_curl() => CONNECT_LIMIT_FOR_MANY_URLS,
            (None, _) => ConnectOptions::default().timeout,
        }
    }

    /// Returns the limit on the time without progress; `None` is no limit. If haul acts as curl,
    /// there is no limit by default. A single request has no limit while it waits for the response
    /// head, because a server may need long to compute the response.
    pub fn stall_limit(&self, persona: ProgramPersona, size: RunSize) -> Option<StallLimit> {
        let default = match size {
            _ if persona.is_curl() => Duration::ZERO,
            RunSize::OneUrl => STALL_LIMIT_FOR_ONE_URL,
            RunSize::ManyUrls => STALL_LIMIT_FOR_MANY_URLS,
        };
        let time = self.stall_time.unwrap_or(default);
        (!time.is_zero()).then_some(StallLimit { time, awaits_head: size == RunSize::ManyUrls })
    }

    /// Returns the speed limit; `None` if its speed or its time is zero. A transfer that is slower
    /// than this speed for this time fails with exit code 28.
    pub fn min_speed(&self) -> Option<SpeedLimit> {
        Some(self.speed_limit).filter(|limit| limit.bytes_per_second > 0 && !limit.time.is_zero())
    }
}

/// The HTTP versions that may be used: `--http1.0`, `--http1.1`, `--http2`,
/// `--http2-prior-knowledge`, `--http3` or `--http3-only`. If several are given, the last one
/// counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HttpVersion {
    /// HTTP/2 or HTTP/1.1, and HTTP/3 where the server offers it. The default.
    #[default]
    Any,
    /// HTTP/2 or HTTP/1.1.
    Http2,
    /// Tries HTTP/3, and uses HTTP/2 or HTTP/1.1 if HTTP/3 does not connect.
    Http3,
    /// HTTP/3 only.
    Http3Only,
    /// HTTP/1.0 only.
    Http10,
    /// HTTP/1.1 only.
    Http11,
    /// HTTP/2 without negotiation (RFC 9113 section 3.3).
    Http2PriorKnowledge,
}

/// The TLS settings for a server or an https proxy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsArgs {
    /// The engine's TLS options, with the values of `-k`, `--cacert`, `--capath`, `--crlfile`,
    /// `--ciphers`, `--tls13-ciphers`, `--curves`, `--no-sessionid` and the TLS versions. All other
    /// options in this value have the engine's defaults, because the other fields of [`TlsArgs`]
    /// contain them.
    pub options: TlsOptions,
    /// `--pinnedpubkey`: the file of a public key, or the hashes of public keys. `None` without the
    /// option.
    pub pins: Option<String>,
    /// `--ech`: the settings of Encrypted Client Hello.
    pub ech: EchArgs,
    /// True if ALPN is used to negotiate the HTTP version. False for `--no-alpn`. Default true.
    pub alpn: bool,
    /// The client certificate. The next stage does not inherit it.
    pub client: ClientCert,
}

impl Default for TlsArgs {
    fn default() -> Self {
        let mut options = TlsOptions::default();
        options.common_name = true;
        TlsArgs { options, pins: None, ech: EchArgs::default(), alpn: true, client: ClientCert::default() }
    }
}

/// The values of `--ech` (Encrypted Client Hello).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EchArgs {
    /// The use of Encrypted Client Hello that `--ech` demands. With `None`, ECH is required if
    /// `config_list` is given, and off otherwise.
    pub policy: Option<EchPolicy>,
    /// The server's keys: an ECHConfigList in base64, or `@` and the name of a file with it. `None`
    /// if no keys are given.
    pub config_list: Option<String>,
}

/// The value of one `--resolve`: a host and a port, and the addresses to use for them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResolveArg {
    /// The host name in lower case, without brackets; `*` stands for every host.
    pub host: String,
    /// The port of the URLs to which the addresses apply.
    pub port: u16,
    /// The addresses of the host. Empty for `-HOST:PORT`, which removes an earlier entry.
    pub addresses: Vec<IpAddr>,
}
