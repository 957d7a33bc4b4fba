//! The URL of a proxy.

use core::fmt;

use crate::auth::Credentials;
use crate::target::{Host, Scheme, Target, TargetError};

/// The protocol that the client speaks with a proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ProxyKind {
    /// `http`: plain HTTP to the proxy.
    Http,
    /// `https`: TLS to the proxy itself.
    Https,
    /// `socks4` or `socks`: IPv4 only; the client resolves the destination's name.
    Socks4,
    /// `socks4a`: SOCKS 4 in which the proxy resolves the destination's name.
    Socks4a,
    /// `socks5` (RFC 1928): the client resolves the destination's name.
    Socks5,
    /// `socks5h`: SOCKS 5 in which the proxy resolves the destination's name.
    Socks5h,
}

impl ProxyKind {
    /// Returns the scheme of the proxy's URL for this protocol, such as `socks5h`.
    pub fn as_str(self) -> &'static str {
        match self {
            ProxyKind::Http => "http",
            ProxyKind::Https => "https",
            ProxyKind::Socks4 => "socks4",
            ProxyKind::Socks4a => "socks4a",
            ProxyKind::Socks5 => "socks5",
            ProxyKind::Socks5h => "socks5h",
        }
    }

    /// Returns curl's default port for the proxy: 443 for `https`, 1080 for all other schemes, even
    /// `http`.
    pub fn default_port(self) -> u16 {
        match self {
            ProxyKind::Https => 443,
            _ => 1080,
        }
    }

    /// Returns `true` for the four SOCKS protocols.
    pub fn is_socks(self) -> bool {
        !matches!(self, ProxyKind::Http | ProxyKind::Https)
    }

    /// Returns `true` if the proxy resolves the destination's name. Every HTTP proxy does, and so
    /// do `socks4a` and `socks5h`.
    pub fn resolves_names(self) -> bool {
        !matches!(self, ProxyKind::Socks4 | ProxyKind::Socks5)
    }

    fn parse(scheme: &str) -> Option<ProxyKind> {
        let named = |kind: &ProxyKind| scheme.eq_ignore_ascii_case(kind.as_str());
        if scheme.eq_ignore_ascii_case("socks") {
            return Some(ProxyKind::Socks4);
        }
        [
            ProxyKind::Http,
            ProxyKind::Https,
            ProxyKind::Socks4,
            ProxyKind::Socks4a,
            ProxyKind::Socks5,
            ProxyKind::Socks5h,
        ]
        .into_iter()
        .find(named)
    }
}

/// A proxy, as parsed from its URL. Equal proxies may share connections. `Debug` and `Display` do
/// not print the credentials.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Proxy {
    kind: ProxyKind,
    host: Host,
    host_text: Box<str>,
    port: u16,
    credentials: Option<Credentials>,
    socket_path: Option<Box<str>>,
}

impl Proxy {
    /// Parses `[scheme://][user:password@]host[:port]`; user and password are percent-decoded. The
    /// default scheme is `http`; a path is ignored.
    pub fn parse(text: &str) -> Result<Proxy, ProxyParseError> {
        Proxy::parse_with(text, ProxyKind::Http)
    }

    /// Parses `[scheme://][user:password@]host[:port]` like [`parse`](Self::parse). Without a
    /// scheme, the proxy has the kind `default_kind`, as for `--socks5 HOST`.
    ///
    /// As in curl, a SOCKS proxy on `localhost` with a path is the Unix socket of that path.
    pub fn parse_with(text: &str, default_kind: ProxyKind) -> Result<Proxy, ProxyParseError> {
        let (kind, rest) = match text.split_once("://") {
            Some((scheme, rest)) => (ProxyKind::parse(scheme).ok_or(ProxyParseError::Scheme)?, rest),
            None => (default_kind, text),
        };
        // A proxy's authority is parsed like a URL's, with all its refusals. The scheme decides the
        // default port.
        let target =
            Target::parse_with(&format!("http://{rest}"), Scheme::Http, true).map_err(ProxyParseError::Malformed)?;
        // Without a name and a password there are no credentials.
        let userinfo = target.userinfo_bytes().filter(|(user, password)| !(user.is_empty() && password.is_empty()));
        let credentials = userinfo.map(|(user, password)| Credentials::new(user, password)).transpose();
        let is_local = matches!(target.host(), Host::Name(name) if name == "localhost");
        let has_socket = kind.is_socks() && is_local && target.path() != "/";
        Ok(Proxy {
            kind,
            host: target.host().clone(),
            host_text: target.host_text().into(),
            port: target.explicit_port().unwrap_or(kind.default_port()),
            credentials: credentials.map_err(|_| ProxyParseError::Credentials)?,
            socket_path: has_socket.then(|| target.path().into()),
        })
    }

    /// Returns the protocol spoken with the proxy.
    pub fn kind(&self) -> ProxyKind {
        self.kind
    }

    /// Returns the host on which the proxy runs.
    pub fn host(&self) -> &Host {
        &self.host
    }

    /// Returns the proxy's host as used for DNS, SNI and certificates: without brackets and zone.
    pub fn host_text(&self) -> &str {
        &self.host_text
    }

    /// Returns the port of the proxy, by default [`ProxyKind::default_port`].
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Returns the credentials for the proxy; `None` without credentials. These credentials must be
    /// sent to no other peer.
    pub fn credentials(&self) -> Option<&Credentials> {
        self.credentials.as_ref()
    }

    /// Returns the path of the Unix socket that replaces the proxy's host and port; `None` for a
    /// TCP connection.
    pub fn socket_path(&self) -> Option<&str> {
        self.socket_path.as_deref()
    }

    /// Returns the proxy with these credentials instead of those of its URL, as for `-U`.
    #[must_use]
    pub fn with_credentials(self, credentials: Option<Credentials>) -> Proxy {
        Proxy { credentials, ..self }
    }
}

impl fmt::Display for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}:{}", self.kind.as_str(), self.host, self.port)
    }
}

impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Proxy({self})")
    }
}

/// The reason why a text does not name a proxy. The message never repeats the text, which may
/// contain a password.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ProxyParseError {
    /// The scheme of the URL is neither http nor https nor a scheme of SOCKS ([`ProxyKind`]).
    Scheme,
    /// The URL does not name exactly one host.
    Malformed(TargetError),
    /// The user or password contains CR, LF or NUL.
    Credentials,
}

impl ProxyParseError {
    /// Returns curl's exit code: 7 for an unsupported scheme, 5 for the other errors.
    pub fn exit_code(&self) -> u8 {
        match self {
            ProxyParseError::Scheme => 7,
            ProxyParseError::Malformed(_) | ProxyParseError::Credentials => 5,
        }
    }
}

impl fmt::Display for ProxyParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ProxyParseError::Scheme => f.write_str("unsupported proxy scheme"),
            ProxyParseError::Malformed(error) => write!(f, "proxy: {error}"),
            ProxyParseError::Credentials => f.write_str("proxy: a control byte in the user name or password"),
        }
    }
}

impl core::error::Error for ProxyParseError {}
