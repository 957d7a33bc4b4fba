//! The transfer settings: limits, retries, addresses, TLS.
//!
//! ```
//! use haul_cli::plan::{GlobalArgs, TransferArgs};
//!
//! let transfer = TransferArgs { speed_limit: 1000, ..TransferArgs::default() };
//! assert!(transfer.slowest().is_none(), "slow for how long?");
//! assert_eq!(transfer.connections(&GlobalArgs::default()), 6);
//! ```

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use haul::request::Liberties;

use super::{ClientCert, ConnectionArgs, CookieArgs, GlobalArgs, RedirectArgs, StoreArg};
use crate::persona::Persona;

/// The transfer settings of a stage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TransferArgs {
    /// The redirects that are followed, and the schemes that may be used.
    pub redirect: RedirectArgs,
    /// Cookies, `-b TEXT` apart.
    pub cookies: CookieArgs,
    /// `--hsts`: which hosts are reached by https alone (RFC 6797).
    pub hsts: StoreArg,
    /// `--alt-svc`: where else origins are served (RFC 7838).
    pub alt_svc: StoreArg,
    /// A status of 400 or more is a failure (exit 22) without a body. Default on.
    pub fail: bool,
    /// `--fail-with-body`: the failure's body is still delivered.
    pub fail_with_body: bool,
    /// `-0`, `--http0.9`, `--raw`, `--ignore-content-length`.
    pub liberties: Liberties,
    /// Limit of one transfer from start to end, retries apart. Default none.
    pub max_time: Option<Duration>,
    /// Limit of name resolution, connection and TLS handshake together. Default 300 s.
    pub connect_timeout: Duration,
    /// The conditions and the number of retries.
    pub retry: RetryArgs,
    /// `--compressed` or `--no-compressed`; see
    /// [`StageArgs::asks_compressed`](super::StageArgs::asks_compressed).
    pub compressed: Option<bool>,
    /// Largest body taken (exit 63). Default no limit.
    pub max_filesize: Option<u64>,
    /// `--split`: most connections for one body, from 1 (no splitting) to 256; see
    /// [`TransferArgs::connections`].
    pub split: Option<usize>,
    /// `--limit-rate`: most body bytes a second of one transfer, all its parts together. Default no
    /// limit.
    pub limit_rate: Option<u64>,
    /// `-Y` in bytes a second, 0 where there is no limit; see [`TransferArgs::slowest`].
    pub speed_limit: u64,
    /// `-y`, zero where there is no limit; see [`TransferArgs::slowest`].
    pub speed_time: Duration,
    /// Keep `.` and `..` in URL paths.
    pub path_as_is: bool,
    /// The IP versions that may be used.
    pub ip_version: IpVersion,
    /// The HTTP versions that may be used.
    pub http_version: HttpVersion,
    /// `--resolve`, in order; a later one for the same host and port wins.
    pub resolve: Vec<ResolveArg>,
    /// `--connect-to`, in order; the first that fits is used.
    pub connect_to: Vec<ConnectToArg>,
    /// Sockets, own addresses, keepalive.
    pub connection: ConnectionArgs,
    /// The time to wait for a 100 before the body is sent anyway (RFC 9110 section 10.1.1). Default
    /// 1 s.
    pub expect100_timeout: Duration,
    /// TLS settings; part of the pool's key.
    pub tls: TlsArgs,
}

impl Default for TransferArgs {
    fn default() -> Self {
        TransferArgs {
            redirect: RedirectArgs::default(),
            cookies: CookieArgs::default(),
            hsts: StoreArg::Off,
            alt_svc: StoreArg::Off,
            fail: true,
            fail_with_body: false,
            liberties: Liberties::default(),
            max_time: None,
            connect_timeout: Duration::from_secs(300),
            retry: RetryArgs::default(),
            compressed: None,
            max_filesize: None,
            split: None,
            limit_rate: None,
            speed_limit: 0,
            speed_time: Duration::ZERO,
            path_as_is: false,
            ip_version: IpVersion::Any,
            http_version: HttpVersion::Any,
            resolve: Vec::new(),
            connect_to: Vec::new(),
            connection: ConnectionArgs::default(),
            expect100_timeout: Duration::from_secs(1),
            tls: TlsArgs::default(),
        }
    }
}

impl TransferArgs {
    /// Returns the transfer settings of a stage before any option.
    pub fn of(persona: Persona) -> Self {
        let mut transfer = TransferArgs::default();
        if persona.is_curl() {
            transfer.redirect.follow = false;
            transfer.fail = false;
            transfer.cookies.as_curl = true;
            transfer.split = Some(1);
            transfer.retry = RetryArgs { count: 0, ..RetryArgs::default() };
        }
        transfer
    }

    /// Most connections for one body: `--split`, else as many as one host may have. Never 0.
    pub fn connections(&self, global: &GlobalArgs) -> usize {
        self.split.unwrap_or(global.parallel_max_host)
    }

    /// The slowest that a transfer may be; it fails (exit 28) when it is slower for all of the
    /// time. `None` is no limit.
    pub fn slowest(&self) -> Option<Slowest> {
        let slowest = Slowest { bytes_per_second: self.speed_limit, time: self.speed_time };
        (slowest.bytes_per_second > 0 && !slowest.time.is_zero()).then_some(slowest)
    }
}

/// `-Y` and `-y` together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slowest {
    /// Bytes a second, at least 1.
    pub bytes_per_second: u64,
    /// For how long a transfer may be slower; whole seconds, at least 1.
    pub time: Duration,
}

/// Retries of one transfer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RetryArgs {
    /// The number of retries after a transient failure. Default 3.
    pub count: u32,
    /// A fixed pause; `None` backs off, with jitter.
    pub delay: Option<Duration>,
    /// No retry starts later than this after the first try; `None` is no limit.
    pub max_time: Option<Duration>,
    /// A refused connection is transient.
    pub connrefused: bool,
    /// Every failure is transient.
    pub all_errors: bool,
}

impl Default for RetryArgs {
    fn default() -> Self {
        RetryArgs { count: 3, delay: None, max_time: None, connrefused: false, all_errors: false }
    }
}

/// `-4`, `-6`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IpVersion {
    /// Both, the faster one wins (RFC 8305).
    #[default]
    Any,
    /// IPv4 only.
    V4,
    /// IPv6 only.
    V6,
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
    /// `-k`: do not verify the server. Default off.
    pub insecure: bool,
    /// `--cacert`: trust these roots (PEM) instead of the system's.
    pub cacert: Option<PathBuf>,
    /// `--capath`: trust the roots of this directory (PEM) instead of the system's.
    pub capath: Option<PathBuf>,
    /// `--crlfile`: a file of revocation lists (PEM).
    pub crlfile: Option<PathBuf>,
    /// `--pinnedpubkey`: a file, or hashes.
    pub pins: Option<String>,
    /// `--ciphers`: suites of TLS 1.2.
    pub ciphers: Option<Vec<String>>,
    /// `--tls13-ciphers`.
    pub tls13_ciphers: Option<Vec<String>>,
    /// `--curves`.
    pub curves: Option<Vec<String>>,
    /// `--no-alpn` takes it away. Default on.
    pub alpn: bool,
    /// `--no-sessionid` takes it away. Default on.
    pub resume: bool,
    /// The newest version spoken. Default 1.3.
    pub max_version: TlsVersion,
    /// The oldest version spoken. Default 1.2.
    pub min_version: TlsVersion,
    /// The client certificate. The next stage does not inherit it.
    pub client: ClientCert,
}

impl Default for TlsArgs {
    fn default() -> Self {
        TlsArgs {
            insecure: false,
            cacert: None,
            capath: None,
            crlfile: None,
            pins: None,
            ciphers: None,
            tls13_ciphers: None,
            curves: None,
            alpn: true,
            resume: true,
            max_version: TlsVersion::V1_3,
            min_version: TlsVersion::V1_2,
            client: ClientCert::default(),
        }
    }
}

/// TLS versions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum TlsVersion {
    /// TLS 1.2.
    #[default]
    V1_2,
    /// TLS 1.3.
    V1_3,
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

/// One `--connect-to`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectToArg {
    /// Requests for this host (lower case, no brackets); `None` is any.
    pub host: Option<String>,
    /// Requests for this port; `None` is any.
    pub port: Option<u16>,
    /// Connect to this host instead; `None` keeps the request's.
    pub to_host: Option<String>,
    /// Connect to this port instead; `None` keeps the request's.
    pub to_port: Option<u16>,
}
