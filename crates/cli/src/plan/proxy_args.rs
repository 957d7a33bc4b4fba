//! The proxy settings of a stage.
//!
//! ```
//! use haul_cli::plan::{ProxyArgs, ProxyChoice};
//! use haul_policy::{Target, proxy::{ProxyEnvironment, Proxy}};
//!
//! let proxy = Proxy::parse("http://squid.example:3128").unwrap();
//! let choice = ProxyChoice::Given { proxy: proxy.clone(), environment: ProxyEnvironment::default() };
//! let args = ProxyArgs { choice, ..ProxyArgs::default() };
//! let target = Target::parse("https://example.com/").unwrap();
//! assert_eq!(args.proxy_for(&target), Ok(Some(proxy)));
//! ```

use haul_policy::Target;
use haul_policy::auth::{AllowedAuthSchemes, Credentials};
use haul_policy::proxy::{NoProxy, Proxy, ProxyEnvironment, ProxyParseError};

use super::{HeaderArg, NegotiateArgs, TlsArgs};

/// The proxy settings of a stage (the URLs of the command line, or of one `--then`). They are
/// inherited from the previous stage. `Debug` shows no secret.
#[derive(Clone)]
pub struct ProxyArgs {
    /// The choice between the environment's proxy, a given proxy, and none.
    pub choice: ProxyChoice,
    /// `--preproxy`: the SOCKS proxy through which the proxy is reached. `None` without the option.
    pub preproxy: Option<Proxy>,
    /// `-U`: the user name and password for the proxy. `None` without the option. Credentials in
    /// the URL of the proxy take precedence.
    pub user: Option<Credentials>,
    /// The schemes that may be used with the user and password. The default is Basic alone: its
    /// credentials are sent in the first request. With any other set of schemes, credentials are
    /// sent only after a challenge.
    pub allowed: AllowedAuthSchemes,
    /// The settings for Negotiate authentication with the proxy: `--proxy-service-name` and
    /// `--delegation`.
    pub negotiate: NegotiateArgs,
    /// `--socks5-gssapi`: allows GSS-API with SOCKS 5 proxies.
    pub socks_gssapi: bool,
    /// `--socks5-gssapi-nec`: exchanges the GSS-API protection level with the SOCKS 5 proxy without
    /// encryption.
    pub socks_nec: bool,
    /// `-p`: also uses a `CONNECT` tunnel for http URLs.
    pub tunnel: bool,
    /// `--proxy-http2`: offers HTTP/2 to an https proxy.
    pub http2: bool,
    /// `--proxy1.0`: sends CONNECT as HTTP/1.0.
    pub http10: bool,
    /// `--suppress-connect-headers`: does not print the heads of the proxy's responses to
    /// `CONNECT`.
    pub suppress_connect_headers: bool,
    /// `--proxy-header`: fields that are sent only to the proxy.
    pub fields: Vec<HeaderArg>,
    /// `--noproxy`: the hosts that are reached without a proxy. They replace the hosts in the
    /// environment variable `no_proxy`. `None` without the option.
    pub no_proxy: Option<NoProxy>,
    /// The TLS settings for an https proxy.
    pub tls: TlsArgs,
}

impl Default for ProxyArgs {
    fn default() -> Self {
        ProxyArgs {
            choice: ProxyChoice::Environment(ProxyEnvironment::default()),
            preproxy: None,
            user: None,
            allowed: AllowedAuthSchemes::BASIC,
            negotiate: NegotiateArgs::default(),
            socks_gssapi: false,
            socks_nec: false,
            tunnel: false,
            http2: false,
            http10: false,
            suppress_connect_headers: false,
            fields: Vec::new(),
            no_proxy: None,
            tls: TlsArgs::default(),
        }
    }
}

/// The choice of a proxy: from the environment, from an option, or none.
#[derive(Clone)]
pub enum ProxyChoice {
    /// The proxy that the environment variables name for the scheme of the URL, such as
    /// `https_proxy`.
    Environment(ProxyEnvironment),
    /// The proxy of `-x`, `--socks5` or a similar option. Hosts in `--noproxy` or `no_proxy` are
    /// reached without it.
    Given {
        /// The proxy that the option names.
        proxy: Proxy,
        /// The proxy settings of the environment. Only `no_proxy` is used, and only if `--noproxy`
        /// is not given.
        environment: ProxyEnvironment,
    },
    /// `-x ''`: no proxy, even if environment variables name one.
    Direct,
}

impl ProxyArgs {
    /// Returns the proxy for a target, with its credentials. Returns `None` for a direct
    /// connection. The target of each redirect needs another call.
    ///
    /// # Errors
    /// The environment variable for the target names an invalid proxy. The variables are parsed
    /// only here.
    pub fn proxy_for(&self, target: &Target) -> Result<Option<Proxy>, ProxyParseError> {
        let proxy = match &self.choice {
            ProxyChoice::Direct => return Ok(None),
            ProxyChoice::Given { proxy, environment } => {
                let no_proxy = self.no_proxy.as_ref().unwrap_or(environment.no_proxy());
                if no_proxy.matches(target) {
                    return Ok(None);
                }
                proxy.clone()
            }
            ProxyChoice::Environment(environment) => {
                let text = match &self.no_proxy {
                    Some(no_proxy) => environment.proxy_unless(target, no_proxy),
                    None => environment.proxy_for(target),
                };
                match text {
                    Some(text) => Proxy::parse(text)?,
                    None => return Ok(None),
                }
            }
        };
        // As in curl: those in the proxy's URL go first.
        Ok(Some(match &self.user {
            Some(user) if proxy.credentials().is_none() => proxy.with_credentials(Some(user.clone())),
            _ => proxy,
        }))
    }
}

impl std::fmt::Debug for ProxyArgs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<_> = self.fields.iter().map(HeaderArg::name).collect();
        f.debug_struct("ProxyArgs")
            .field("choice", &self.choice)
            .field("preproxy", &self.preproxy)
            .field("user", &self.user)
            .field("tunnel", &self.tunnel)
            .field("http2", &self.http2)
            .field("fields", &names)
            .field("no_proxy", &self.no_proxy)
            .finish_non_exhaustive()
    }
}

impl std::fmt::Debug for ProxyChoice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ProxyChoice::Environment(_) => f.write_str("Environment(..)"),
            ProxyChoice::Given { proxy, .. } => write!(f, "Given({proxy})"),
            ProxyChoice::Direct => f.write_str("Direct"),
        }
    }
}
