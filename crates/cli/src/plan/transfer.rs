//! The transfer settings: limits, retries, addresses, TLS.
//!
//! ```
//! use haul_cli::plan::{GlobalArgs, TransferArgs};
//!
//! let mut transfer = TransferArgs::default();
//! transfer.speed_limit.bytes_per_second = 1000;
//! assert!(transfer.slowest().is_none(), "slow for how long?");
//! assert_eq!(transfer.connections(&GlobalArgs::default()), 6);
//! ```

use std::net::IpAddr;
use std::time::Duration;

use haul::RequestOptions;
use haul::net::dns::DnsServers;
use haul::net::tls::TlsOptions;
use haul::request::{RedirectRules, RetryRules, SpeedLimit};

use super::{ClientCert, CookieArgs, GlobalArgs, KeepaliveArgs, ProtocolArgs, StateFileArg};
use crate::persona::Persona;

/// The transfer settings of a stage.
#[derive(Clone, Debug)]
pub struct TransferArgs {
    /// The settings that have the same form in the engine: `--fail`, `--fail-with-body`, the
    /// redirects and retries, `--limit-rate`, `--max-filesize`, `--path-as-is`, `-4` and `-6`,
    /// `--connect-to`, `--connect-timeout` and the sockets, `-0`, `--http0.9`, `--raw`,
    /// `--ignore-content-length` and `--expect100-timeout`. The other fields of these options are
    /// not used.
    pub options: RequestOptions,
    /// The schemes that URLs and redirects may have.
    pub redirect: ProtocolArgs,
    /// The cookie settings, without `-b TEXT`.
    pub cookies: CookieArgs,
    /// `--hsts`: where the hosts are kept that are only reached by https (RFC 6797).
    pub hsts: StateFileArg,
    /// `--alt-svc`: where the alternative services of origins are kept (RFC 7838).
    pub alt_svc: StateFileArg,
    /// The time limit of one transfer: including retries for the haul persona, for each try for the
    /// curl persona. Default none.
    pub max_time: Option<Duration>,
    /// `--compressed` or `--no-compressed`; see
    /// [`StageArgs::asks_compressed`](super::StageArgs::asks_compressed).
    pub compressed: Option<bool>,
    /// `--split`: the most connections for one body, from 1 (no splitting) to 256; see
    /// [`TransferArgs::connections`].
    pub split: Option<usize>,
    /// `-Y` and `-y`; zero is no limit. See [`TransferArgs::slowest`].
    pub speed_limit: SpeedLimit,
    /// The HTTP versions that may be used.
    pub http_version: HttpVersion,
    /// `--resolve`, in order. A later entry replaces earlier ones for the same host and port.
    pub resolve: Vec<ResolveArg>,
    /// `--dns-servers` and similar options.
    pub dns: DnsServers,
    /// `--interface`, with the syntax of
    /// [`Interface::parse`](haul::net::local_address::LocalInterface::parse).
    pub interface: Option<String>,
    /// TCP keepalive; `None` is `--no-keepalive`.
    pub keepalive: Option<KeepaliveArgs>,
    /// TLS settings. Connections are shared only between requests whose TLS settings are equal.
    pub tls: TlsArgs,
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
            redirect: ProtocolArgs::default(),
            cookies: CookieArgs::default(),
            hsts: StateFileArg::Off,
            alt_svc: StateFileArg::Off,
            max_time: None,
            compressed: None,
            split: None,
            speed_limit: SpeedLimit { bytes_per_second: 0, time: Duration::ZERO },
            http_version: HttpVersion::Any,
            resolve: Vec::new(),
            dns: DnsServers::default(),
            interface: None,
            keepalive: Some(KeepaliveArgs::default()),
            tls: TlsArgs::default(),
        }
    }
}

impl TransferArgs {
    /// Returns the default transfer settings of a persona.
    pub fn of(persona: Persona) -> Self {
        let mut transfer = TransferArgs::default();
        if persona.is_curl() {
            let options = &mut transfer.options;
            (options.redirects.follow, options.fail, options.resume) = (false, false, false);
            options.retry =
                RetryRules { max: 0, resets: false, any_method: true, waits_as_curl: true, ..RetryRules::default() };
            transfer.cookies.as_curl = true;
            transfer.split = Some(1);
        }
        transfer
    }

    /// Returns the most connections for one body: `--split`, else the limit for one host. Never 0.
    pub fn connections(&self, global: &GlobalArgs) -> usize {
        self.split.unwrap_or(global.parallel_max_host)
    }

    /// Returns the rules for the redirects of a request. `keep_method`: the method comes from `-X`
    /// and does not change. `is_post`: whether redirects treat the method as a POST.
    pub fn redirect_rules(&self, keep_method: bool, is_post: Option<bool>) -> RedirectRules {
        RedirectRules { keep_method, is_post, ..self.options.redirects.clone() }
            .with_protocols(self.redirect.protocols.and(self.redirect.redirected))
    }

    /// Returns the speed limit, or `None` unless both its speed and its time are set. A transfer
    /// that is slower for this time fails (exit 28).
    pub fn slowest(&self) -> Option<SpeedLimit> {
        Some(self.speed_limit).filter(|limit| limit.bytes_per_second > 0 && !limit.time.is_zero())
    }
}

/// `--http1.0`, `--http1.1`, `--http2`, `--http2-prior-knowledge`: the last one counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HttpVersion {
    /// The highest version that both sides support.
    #[default]
    Any,
    /// HTTP/1.0 only.
    Http10,
    /// HTTP/1.1 only.
    Http11,
    /// HTTP/2 without negotiation (RFC 9113 section 3.3).
    Http2PriorKnowledge,
}

/// TLS settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsArgs {
    /// The settings that have the same form in the engine: `-k`, `--cacert`, `--capath`,
    /// `--crlfile`, `--ciphers`, `--tls13-ciphers`, `--curves`, `--no-sessionid` and the versions.
    /// The other fields of these options are not used.
    pub options: TlsOptions,
    /// `--pinnedpubkey`: a key file, or hashes.
    pub pins: Option<String>,
    /// `--no-alpn` turns ALPN off. Default on.
    pub alpn: bool,
    /// The client certificate. The next stage does not inherit it.
    pub client: ClientCert,
}

impl Default for TlsArgs {
    fn default() -> Self {
        let mut options = TlsOptions::default();
        options.common_name = true;
        TlsArgs { options, pins: None, alpn: true, client: ClientCert::default() }
    }
}

/// The value of one `--resolve`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResolveArg {
    /// The host name in lower case, without brackets; `*` is every host.
    pub host: String,
    /// The port.
    pub port: u16,
    /// The addresses to use. Empty removes the entry of an earlier `--resolve` (`-HOST:PORT`).
    pub addresses: Vec<IpAddr>,
}
