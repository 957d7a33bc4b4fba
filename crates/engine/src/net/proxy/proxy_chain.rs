//! The route of a connection through proxies, which is a part of the connection's key.

use std::fmt;
use std::sync::Arc;

use haul_policy::proxy::{
    Proxy, ProxyFields, ProxyKind, ProxyMode, ProxyParseError, absolute_form_target, forward_fields,
};
use haul_policy::target::Target;
use haul_proto::response_head::ResponseHead;

use super::{ProxyAuthCache, ProxyAuthScheme, ProxyOptions, SocksGssapi};
use crate::net::tls::TlsOptions;
use crate::state::auth::NegotiateOptions;
use crate::{Error, ErrorKind, Result};

/// The route of a connection: direct, or through proxies.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub enum ProxyRoute {
    /// The connection goes directly to the server.
    #[default]
    Direct,
    /// The connection goes to a proxy that forwards requests to any origin.
    Forward(Arc<ProxyHop>),
    /// The connection goes through a tunnel to one origin, which a proxy opens.
    Tunnel(Arc<ProxyHop>),
    /// The proxy cannot be used. The request fails with this error kind and message, and does not
    /// bypass the proxy.
    Unusable(ErrorKind, String),
}

/// A proxy on a route, with every setting that two requests must share to use the same connection
/// through it. `Debug` shows no secret.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct ProxyHop {
    /// The proxy's scheme and address, with the credentials to send to it.
    pub proxy: Proxy,
    /// The SOCKS proxy through which this proxy is reached; `None` if this proxy is reached
    /// directly.
    pub preproxy: Option<Proxy>,
    /// The TLS options for an https proxy; `None` for other proxies.
    pub tls: Option<TlsOptions>,
    /// The authentication scheme that is used with the proxy.
    pub auth: ProxyAuthScheme,
    /// The settings of Negotiate authentication; `None` if that scheme is not used with the proxy.
    pub negotiate: Option<NegotiateOptions>,
    /// The settings of GSS-API authentication to SOCKS 5 proxies; `None` if GSS-API is not offered
    /// to the proxy.
    pub socks_gssapi: Option<SocksGssapi>,
    /// True to send CONNECT as HTTP/1.0.
    pub http10: bool,
    /// The header fields that the user has set for requests to the proxy.
    pub fields: Vec<(String, Vec<u8>)>,
    /// The names of fields that haul must not add for the proxy.
    pub without: Vec<String>,
    /// The User-Agent of CONNECT requests; `None` to send none.
    pub user_agent: Option<Vec<u8>>,
    /// The cache of the authentication that proxies require, shared with the [`ProxyOptions`].
    pub memory: ProxyAuthCache,
}

impl ProxyRoute {
    /// Selects the route to a target. `given` are the proxy options. `is_elsewhere` is true if
    /// another option replaces the host or port to connect to. `user_agent` is the request's
    /// User-Agent.
    pub(crate) fn select(given: &ProxyOptions, target: &Target, is_elsewhere: bool, user_agent: Option<&[u8]>) -> Self {
        let proxy = match choose_proxy(given, target) {
            Ok(proxy) => proxy,
            Err(error) => {
                let kind = if error.exit_code() == 7 { ErrorKind::Connect } else { ErrorKind::ProxyResolve };
                return Self::Unusable(kind, error.to_string());
            }
        };
        let no_proxy = given.no_proxy.as_ref().unwrap_or(given.environment.no_proxy());
        let preproxy = given.preproxy.clone().filter(|_| !no_proxy.matches(target));
        if preproxy.as_ref().is_some_and(|proxy| !proxy.kind().is_socks()) {
            return Self::Unusable(ErrorKind::Setup, "a proxy before the proxy has to be a SOCKS proxy".into());
        }
        let (proxy, preproxy) = match (proxy, preproxy) {
            (None, None) => return Self::Direct,
            (Some(proxy), preproxy) => (proxy, preproxy),
            (None, Some(preproxy)) => (preproxy, None),
        };
        // A proxy that forwards requests connects to the URL's host, so a replaced host needs a
        // tunnel.
        let mode = proxy.route(target, given.tunnel || is_elsewhere);
        let hop = Arc::new(ProxyHop {
            tls: (proxy.kind() == ProxyKind::Https).then(|| proxy_tls_options(given)),
            proxy,
            preproxy,
            auth: given.auth,
            negotiate: given.auth.may_negotiate().then(|| given.negotiate.clone()),
            socks_gssapi: given.socks_gssapi.clone(),
            http10: given.http10,
            fields: match mode {
                ProxyMode::Forward if given.fields_for_connect_only => Vec::new(),
                _ => given.fields.clone(),
            },
            without: given.without.clone(),
            user_agent: user_agent.map(<[u8]>::to_vec),
            memory: given.memory.clone(),
        });
        match mode {
            ProxyMode::Forward => Self::Forward(hop),
            ProxyMode::Tunnel | ProxyMode::Socks => Self::Tunnel(hop),
        }
    }

    /// Returns the proxy that forwards the requests; `None` if the route is direct or a tunnel.
    #[must_use]
    pub fn forwarding_hop(&self) -> Option<&Arc<ProxyHop>> {
        match self {
            Self::Forward(hop) => Some(hop),
            _ => None,
        }
    }

    /// Returns the proxy of the route, which forwards requests or opens a tunnel. Returns `None` if
    /// the route is direct or unusable. A SOCKS proxy before that proxy ([`ProxyHop::preproxy`]) is
    /// not returned.
    #[must_use]
    pub fn last_hop(&self) -> Option<&Arc<ProxyHop>> {
        match self {
            Self::Forward(hop) | Self::Tunnel(hop) => Some(hop),
            Self::Direct | Self::Unusable(..) => None,
        }
    }

    /// Returns an error if the route contains a proxy that cannot be used.
    ///
    /// # Errors
    /// The reason why the proxy cannot be used.
    pub fn check(&self) -> Result<()> {
        match self {
            Self::Unusable(kind, why) => Err(Error::new(*kind, why.clone())),
            _ => Ok(()),
        }
    }
}

/// Returns the TLS options for an https proxy: those that the user gave, with the application
/// protocols to offer.
fn proxy_tls_options(given: &ProxyOptions) -> TlsOptions {
    let mut tls = given.tls.clone();
    if given.http2 {
        tls.alpn = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    }
    tls
}

fn choose_proxy(given: &ProxyOptions, target: &Target) -> std::result::Result<Option<Proxy>, ProxyParseError> {
    let no_proxy = given.no_proxy.as_ref().unwrap_or(given.environment.no_proxy());
    let proxy = match &given.proxy {
        Some(_) if no_proxy.matches(target) => None,
        Some(proxy) => Some(proxy.clone()),
        None => given.environment.proxy_unless(target, no_proxy).map(Proxy::parse).transpose()?,
    };
    // As in curl, credentials in the proxy's URL take precedence.
    Ok(proxy.map(|proxy| match &given.credentials {
        Some(credentials) if proxy.credentials().is_none() => proxy.with_credentials(Some(credentials.clone())),
        _ => proxy,
    }))
}

impl ProxyHop {
    /// Returns the request-target of a request that the proxy forwards, and the fields for the
    /// proxy. If `is_curl` is true, follows curl: the host is spelled as in the URL, and Digest
    /// credentials cover only the path and query. `negotiated` is the value of Proxy-Authorization
    /// with a Negotiate token; `None` without Negotiate.
    ///
    /// # Errors
    /// [`ErrorKind::Setup`] if the credentials cannot be sent to the proxy.
    pub(crate) fn forwarded_target_and_fields(
        &self,
        negotiated: Option<Vec<u8>>,
        method: &str,
        target: &Target,
        is_curl: bool,
    ) -> Result<(String, ProxyFields)> {
        let uri = absolute_form_target(target, is_curl);
        let digested = if is_curl { target.path_and_query() } else { &uri };
        let authorization = match negotiated {
            None => self.memory.authorization(&self.proxy, self.auth, method, digested)?,
            negotiated => negotiated,
        };
        let mut fields = forward_fields(authorization.as_deref(), &self.fields);
        self.remove_unwanted(&mut fields);
        // The request has its own Host; this one is for CONNECT.
        fields.retain(|(name, _)| !name.eq_ignore_ascii_case("Host"));
        Ok((uri, fields))
    }

    /// Removes the fields that haul generates but the user excluded ([`ProxyHop::without`]).
    pub(in crate::net) fn remove_unwanted(&self, fields: &mut ProxyFields) {
        let is = |name: &str, other: &str| name.eq_ignore_ascii_case(other);
        let is_left_out = |name: &str| self.without.iter().any(|field| is(name, field)) && !is(name, "Host");
        let is_given = |name: &str| self.fields.iter().any(|(field, _)| is(name, field));
        fields.retain(|(name, _)| !is_left_out(name) || is_given(name));
    }

    /// Returns true if credentials can be sent to the proxy only after a challenge.
    #[must_use]
    pub fn awaits_challenge(&self) -> bool {
        match self.auth {
            ProxyAuthScheme::Basic | ProxyAuthScheme::Negotiate => false,
            ProxyAuthScheme::Digest | ProxyAuthScheme::Any => self.proxy.credentials().is_some(),
            ProxyAuthScheme::AnyOrNegotiate => true,
        }
    }

    /// Decides what follows a 407 response to a forwarded request. `answered` is true if the
    /// request contained Proxy-Authorization. Returns true if the request should be repeated with a
    /// new value of that field.
    #[must_use]
    pub fn may_answer(&self, head: &ResponseHead, answered: bool) -> bool {
        head.status() == 407 && self.memory.on_challenge(&self.proxy, self.auth, head, answered).unwrap_or(false)
    }
}

impl fmt::Debug for ProxyHop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProxyHop")
            .field("proxy", &self.proxy)
            .field("preproxy", &self.preproxy)
            .field("tls", &self.tls)
            .field("auth", &self.auth)
            .finish_non_exhaustive()
    }
}
