//! The route to an origin: direct, or through proxies.
//!
//! ```text
//!  ProxyOptions ──ProxyRoute::of(target)──▶ ProxyRoute ──in the pool's key──▶ net::connecting (names, addresses, stages)
//!
//!  forward   TCP [TLS with the proxy]                        GET http://origin/ ..      any origin's requests
//!  tunnel    TCP [TLS with the proxy] CONNECT [TLS]          GET / ..                   one origin's
//!  SOCKS     TCP SOCKS [SOCKS] [TLS]                         GET / ..                   one origin's
//!  preproxy  TCP SOCKS, and then any of these
//! ```
//!
//! `haul_policy::proxy` decides which proxy a target takes and which data it may receive; this
//! module does the I/O.
//!
//! ```
//! use haul::net::proxy::{ProxyOptions, ProxyRoute};
//! use haul::{RequestOptions, Target};
//! use haul_policy::proxy::{NoProxy, Proxy};
//!
//! let mut proxy = ProxyOptions::default();
//! proxy.proxy = Some(Proxy::parse("http://127.0.0.1:3128")?);
//! proxy.no_proxy = Some(NoProxy::parse(".internal"));
//! let options = RequestOptions { proxy: Some(proxy), ..RequestOptions::default() };
//! let via = |url: &str| ProxyRoute::of(&Target::parse(url).unwrap(), &options);
//! assert!(matches!(via("http://example.test/"), ProxyRoute::Forward(_)));
//! assert!(matches!(via("https://example.test/"), ProxyRoute::Tunnel(_)));
//! assert_eq!(via("https://wiki.internal/"), ProxyRoute::Direct);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod auth;
mod route;

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

use haul_policy::auth::Credentials;
pub use haul_policy::proxy::{NoProxy, Proxy, ProxyEnvironment};

pub use auth::{ProxyAuth, ProxyAuthCache};
pub use route::{ProxyHop, ProxyRoute};

use crate::net::tls::TlsOptions;

/// The proxies to use, and the fields and credentials to send to them. `Debug` shows no secret.
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct ProxyOptions {
    /// The proxy (`-x`); without one, the environment's.
    pub proxy: Option<Proxy>,
    /// The variables of the environment. Default: none; a library does not read its host's
    /// environment unasked. Its `no_proxy` counts for [`ProxyOptions::proxy`], too.
    pub environment: ProxyEnvironment,
    /// Hosts to reach directly (`--noproxy`), instead of the ones that the environment names.
    pub no_proxy: Option<NoProxy>,
    /// A SOCKS proxy to reach the proxy by (`--preproxy`); without one, the way to the origin.
    pub preproxy: Option<Proxy>,
    /// User and password for the proxy (`-U`), where its URL has none; not for the preproxy.
    pub credentials: Option<Credentials>,
    /// The authentication schemes for HTTP proxies (`--proxy-basic`, `--proxy-digest`,
    /// `--proxy-anyauth`).
    pub auth: ProxyAuth,
    /// Tunnel http, too (`-p`). Default: HTTP proxies are sent the request itself.
    pub tunnel: bool,
    /// Sends CONNECT as HTTP/1.0 (`--proxy1.0`). Default no.
    pub http10: bool,
    /// Fields for HTTP proxies (`--proxy-header`): in a CONNECT, and in forwarded requests. They
    /// replace generated fields of the same name.
    pub fields: Vec<(String, Vec<u8>)>,
    /// Fields that are made for HTTP proxies and left out (`--proxy-header NAME:`), by name; Host
    /// never is.
    pub without: Vec<String>,
    /// Offer HTTP/2 to an https proxy (`--proxy-http2`): a tunnel is a stream then (RFC 9113 §8.5),
    /// and requests that are forwarded share a connection. Default: HTTP/1.1, which every proxy
    /// speaks and which costs a frame less.
    pub http2: bool,
    /// TLS with an https proxy (`--proxy-cacert`, `--proxy-insecure` and their like).
    pub tls: TlsOptions,
    /// The challenges that proxies have sent; clones share it.
    pub memory: ProxyAuthCache,
}

impl ProxyOptions {
    /// Proxies from this process's variables `http_proxy`, `https_proxy`, `all_proxy` and
    /// `no_proxy`.
    #[must_use]
    pub fn from_environment() -> Self {
        let environment = ProxyEnvironment::read(|name| std::env::var_os(name).map(OsString::into_vec));
        Self { environment, ..Self::default() }
    }
}

impl std::fmt::Debug for ProxyOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ProxyOptions")
            .field("proxy", &self.proxy)
            .field("no_proxy", &self.no_proxy)
            .field("preproxy", &self.preproxy)
            .field("auth", &self.auth)
            .field("tunnel", &self.tunnel)
            .field("http2", &self.http2)
            .field("tls", &self.tls)
            .finish_non_exhaustive()
    }
}
