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
use haul_policy::auth::{AllowedSchemes, Credentials};
use haul_policy::proxy::{NoProxy, Proxy, ProxyEnvironment, ProxyError};

use super::{FieldArg, TlsArgs};

/// The proxies of a stage. Begins as that of the stage before. `Debug` shows no secret.
#[derive(Clone)]
pub struct ProxyArgs {
    /// The choice of the proxy.
    pub choice: ProxyChoice,
    /// `--preproxy`: the SOCKS proxy through which the proxy is reached.
    pub preproxy: Option<Proxy>,
    /// `-U`; takes precedence over the login in a proxy's URL.
    pub user: Option<Credentials>,
    /// The schemes that may be used with user and password. The default is Basic alone, which is
    /// sent at once.
    pub allowed: AllowedSchemes,
    /// `-p`: CONNECT for http URLs too.
    pub tunnel: bool,
    /// `--proxy-http2`: HTTP/2 is offered to an https proxy.
    pub http2: bool,
    /// `--proxy1.0`: sends CONNECT as HTTP/1.0.
    pub http10: bool,
    /// `--suppress-connect-headers`: a proxy's answers to CONNECT are not among the heads that are
    /// printed.
    pub suppress_connect_headers: bool,
    /// `--proxy-header`: fields for the proxy alone.
    pub fields: Vec<FieldArg>,
    /// `--noproxy`, in place of the variable `no_proxy`.
    pub no_proxy: Option<NoProxy>,
    /// TLS with an https proxy.
    pub tls: TlsArgs,
}

impl Default for ProxyArgs {
    fn default() -> Self {
        ProxyArgs {
            choice: ProxyChoice::Environment(ProxyEnvironment::default()),
            preproxy: None,
            user: None,
            allowed: AllowedSchemes::BASIC,
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

/// The source of the proxy's name.
#[derive(Clone)]
pub enum ProxyChoice {
    /// The variables of the environment, by the URL's scheme.
    Environment(ProxyEnvironment),
    /// `-x`, `--socks5` and their like; the variable `no_proxy` counts for it too.
    Given {
        /// The proxy that the option names.
        proxy: Proxy,
        /// The environment, whose `no_proxy` applies unless `--noproxy` is given.
        environment: ProxyEnvironment,
    },
    /// `-x ''`: no proxy, whatever the environment says.
    Direct,
}

impl ProxyArgs {
    /// The proxy for this target, with its credentials; `None` goes direct. Redirects ask anew.
    ///
    /// Returns the proxy for a target. An error is that of a proxy in the environment, which is
    /// only read when it is needed.
    pub fn proxy_for(&self, target: &Target) -> Result<Option<Proxy>, ProxyError> {
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
        let names: Vec<_> = self.fields.iter().map(FieldArg::name).collect();
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
