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
use haul::net::tls::TlsOptions;
use haul::request::{RedirectRules, RetryRules, SpeedLimit};

use super::{ClientCert, CookieArgs, GlobalArgs, KeepaliveArgs, RedirectArgs, StoreArg};
use crate::persona::Persona;

/// The transfer settings of a stage.
#[derive(Clone, Debug)]
pub struct TransferArgs {
    /// The settings that are the engine's one to one: `--fail`, `--fail-with-body`, the redirects
    /// and retries, `--limit-rate`, `--max-filesize`, `--path-as-is`, `-4` and `-6`,
    /// `--connect-to`, `--connect-timeout` and the sockets, `-0`, `--http0.9`, `--raw`,
    /// `--ignore-content-length` and `--expect100-timeout`. The other fields of these options are
    /// not used.
    pub options: RequestOptions,
    /// The schemes that URLs and redirects may have.
    pub redirect: RedirectArgs,
    /// Cookies, `-b TEXT` apart.
    pub cookies: CookieArgs,
    /// `--hsts`: the hosts that are reached by https alone (RFC 6797).
    pub hsts: StoreArg,
    /// `--alt-svc`: the alternative services of origins (RFC 7838).
    pub alt_svc: StoreArg,
    /// The limit of one transfer from start to end: with retries in haul's own name, of each try in
    /// curl's place. Default none.
    pub max_time: Option<Duration>,
    /// `--compressed` or `--no-compressed`; see
    /// [`StageArgs::asks_compressed`](super::StageArgs::asks_compressed).
    pub compressed: Option<bool>,
    /// `--split`: the most connections for one body, from 1 (no splitting) to 256; see
    /// [`TransferArgs::connections`].
    pub split: Option<usize>,
    /// `-Y` and `-y`; zero where there is no limit; see [`TransferArgs::slowest`].
    pub speed_limit: SpeedLimit,
    /// The HTTP versions that may be used.
    pub http_version: HttpVersion,
    /// `--resolve`, in order; a later one for the same host and port wins.
    pub resolve: Vec<ResolveArg>,
    /// `--interface`, with the syntax of
    /// [`Interface::parse`](haul::net::local_address::LocalInterface::parse).
    pub interface: Option<String>,
    /// TCP keepalive; `None` is `--no-keepalive`.
    pub keepalive: Option<KeepaliveArgs>,
    /// TLS settings; part of the pool's key.
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
            redirect: RedirectArgs::default(),
            cookies: CookieArgs::default(),
            hsts: StoreArg::Off,
            alt_svc: StoreArg::Off,
            max_time: None,
            compressed: None,
            split: None,
            speed_limit: SpeedLimit { bytes_per_second: 0, time: Duration::ZERO },
            http_version: HttpVersion::Any,
            resolve: Vec::new(),
            interface: None,
            keepalive: Some(KeepaliveArgs::default()),
            tls: TlsArgs::default(),
        }
    }
}

impl TransferArgs {
    /// Returns the transfer settings of a stage before any option.
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

    /// Most connections for one body: `--split`, else as many as one host may have. Never 0.
    pub fn connections(&self, global: &GlobalArgs) -> usize {
        self.split.unwrap_or(global.parallel_max_host)
    }

    /// Returns the rules for redirects of a request. `keep_method` says that its method came from
    /// `-X`, and `is_post` that redirects take it for a POST, or for no POST.
    pub fn redirect_rules(&self, keep_method: bool, is_post: Option<bool>) -> RedirectRules {
        RedirectRules { keep_method, is_post, ..self.options.redirects.clone() }
            .with_protocols(self.redirect.protocols.and(self.redirect.redirected))
    }

    /// Returns the speed limit; `None` unless both its parts are set. A transfer fails (exit 28)
    /// when it is slower for all of the time.
    pub fn slowest(&self) -> Option<SpeedLimit> {
        Some(self.speed_limit).filter(|limit| limit.bytes_per_second > 0 && !limit.time.is_zero())
    }
}

/// `--http1.0`, `--http1.1`, `--http2`, `--http2-prior-knowledge`: the last of them counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HttpVersion {
    /// The best that both sides speak.
    #[default]
    Any,
    /// HTTP/1.0 only.
    Http10,
    /// HTTP/1.1 only.
    Http11,
    /// HTTP/2 without asking whether the server speaks it.
    Http2PriorKnowledge,
}

/// TLS settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsArgs {
    /// The settings that are the engine's one to one: `-k`, `--cacert`, `--capath`, `--crlfile`,
    /// `--ciphers`, `--tls13-ciphers`, `--curves`, `--no-sessionid` and the versions. The other
    /// fields of these options are not used.
    pub options: TlsOptions,
    /// `--pinnedpubkey`: a file, or hashes.
    pub pins: Option<String>,
    /// `--no-alpn` takes it away. Default on.
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

/// One `--resolve`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResolveArg {
    /// Host name in lower case, without brackets; `*` is every host.
    pub host: String,
    /// Port.
    pub port: u16,
    /// The addresses to use; empty takes an earlier `--resolve` back (`-HOST:PORT`).
    pub addresses: Vec<IpAddr>,
}
