//! The route to an origin: direct, or through proxies.
//!
//! ```text
//!  ProxyOptions ──ProxyRoute::for_request(target)──▶ ProxyRoute ──in the pool's key──▶ net::connecting (names, addresses, stages)
//!
//!  forward   TCP [TLS with the proxy]                        GET http://origin/ ..      any origin's requests
//!  tunnel    TCP [TLS with the proxy] CONNECT [TLS]          GET / ..                   one origin's
//!  SOCKS     TCP SOCKS [SOCKS] [TLS]                         GET / ..                   one origin's
//!  preproxy  TCP SOCKS, and then any of these
//! ```
//!
//! `haul_policy::proxy` decides which proxy a target uses and which data the proxy may receive;
//! this module applies it to connections.
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
//! let via = |url: &str| ProxyRoute::for_request(&Target::parse(url).unwrap(), &options);
//! assert!(matches!(via("http://example.test/"), ProxyRoute::Forward(_)));
//! assert!(matches!(via("https://example.test/"), ProxyRoute::Tunnel(_)));
//! assert_eq!(via("https://wiki.internal/"), ProxyRoute::Direct);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod auth;
mod proxy_chain;

use std::ffi::OsString;

use haul_policy::auth::Credentials;
pub use haul_policy::proxy::{NoProxy, Proxy, ProxyEnvironment};

pub use auth::{ProxyAuthCache, ProxyAuthScheme};
pub use proxy_chain::{ProxyHop, ProxyRoute};

use crate::net::tls::TlsOptions;
use crate::state::auth::NegotiateOptions;
use crate::trusted_environment_variables;

/// The proxies to use, and the fields and credentials to send to them. `Debug` shows no secret.
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct ProxyOptions {
    /// The proxy to use (`-x`). `None` selects a proxy from [`ProxyOptions::environment`].
    pub proxy: Option<Proxy>,
    /// The proxies that environment variables name. Default: none, since a library should not read
    /// the environment unless the program asks for it. The environment's `no_proxy` applies to
    /// [`ProxyOptions::proxy`], too.
    pub environment: ProxyEnvironment,
    /// The hosts to reach without a proxy (`--noproxy`). `None` uses the `no_proxy` of
    /// [`ProxyOptions::environment`].
    pub no_proxy: Option<NoProxy>,
    /// A SOCKS proxy through which the HTTP proxy is reached (`--preproxy`). If no HTTP proxy is
    /// used, the origin is reached through the SOCKS proxy.
    pub preproxy: Option<Proxy>,
    /// The user and password for the proxy (`-U`), if the proxy's URL contains no user. They are
    /// not sent to the preproxy.
    pub credentials: Option<Credentials>,
    /// The authentication scheme for HTTP proxies (`--proxy-basic`, `--proxy-digest`,
    /// `--proxy-anyauth`). Default: Basic.
    pub auth: ProxyAuthScheme,
    /// The settings of Negotiate authentication, used if [`auth`](Self::auth) allows that scheme.
    pub negotiate: NegotiateOptions,
    /// The settings of GSS-API authentication to SOCKS 5 proxies (RFC 1961), including the preproxy
    /// (`--socks5-gssapi`). `None` does not offer GSS-API. Default: `None`.
    pub socks_gssapi: Option<SocksGssapi>,
    /// True to open a tunnel with CONNECT also for http URLs (`-p`). Default: false; an HTTP proxy
    /// then forwards requests for http URLs.
    pub tunnel: bool,
    /// True to send CONNECT as HTTP/1.0 (`--proxy1.0`). Default: false.
    pub http10: bool,
    /// The fields for HTTP proxies (`--proxy-header`), sent in CONNECT and in forwarded requests.
    /// Each field replaces the field of the same name that haul would send.
    pub fields: Vec<(String, Vec<u8>)>,
    /// True to send [`fields`](Self::fields) only with CONNECT, not with requests that the proxy
    /// forwards.
    pub fields_for_connect_only: bool,
    /// The names of fields that haul must not add for HTTP proxies (`--proxy-header NAME:`). Host
    /// is always sent.
    pub without: Vec<String>,
    /// True to offer HTTP/2 to an https proxy (`--proxy-http2`). Each tunnel is then an HTTP/2
    /// stream (RFC 9113 §8.5), and forwarded requests share a connection. Default: false, since
    /// every proxy supports HTTP/1.1, and HTTP/1.1 has no frame overhead.
    pub http2: bool,
    /// The TLS settings for an https proxy (`--proxy-cacert`, `--proxy-insecure` and similar).
    pub tls: TlsOptions,
    /// The cache of the authentication schemes that proxies require. Clones of the options share
    /// this cache.
    pub memory: ProxyAuthCache,
}

/// The settings of GSS-API authentication to SOCKS 5 proxies.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SocksGssapi {
    /// The Kerberos settings: the service in the proxy's principal name, whether credentials are
    /// delegated, and the user.
    pub negotiate: NegotiateOptions,
    /// True to exchange the GSS-API protection level unencrypted, as NEC's implementation does
    /// (`--socks5-gssapi-nec`).
    pub nec: bool,
}

impl ProxyOptions {
    /// Makes options with the proxies in the environment variables `http_proxy`, `https_proxy`,
    /// `all_proxy` and `no_proxy`. Uses none of them in a set-user-ID program
    /// ([`crate::trusted_environment_variables`]).
    #[must_use]
    pub fn from_environment() -> Self {
        let environment = ProxyEnvironment::from_variables(|name| {
            trusted_environment_variables::variable(name).map(OsString::into_encoded_bytes)
        });
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
