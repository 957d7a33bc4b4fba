//! How a request goes through a proxy, and what that proxy is told.
//!
//! An http proxy that forwards sees the whole request, as does every router on the way, since it is not encrypted. A tunnel or SOCKS proxy gets host,
//! port and its own credentials, nothing of the request.

use super::{Proxy, ProxyKind};
use crate::target::{Scheme, Target};

/// How a request goes through a proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Route {
    /// The proxy is sent the request in absolute form.
    Forward,
    /// A tunnel by CONNECT, which carries what a direct connection would.
    Tunnel,
    /// A tunnel by SOCKS.
    Socks,
}

impl Proxy {
    /// How a request to `target` goes; `tunnel` is `-p`.
    pub fn route(&self, target: &Target, tunnel: bool) -> Route {
        match (self.kind(), target.scheme()) {
            (ProxyKind::Http | ProxyKind::Https, Scheme::Http) if !tunnel => Route::Forward,
            (ProxyKind::Http | ProxyKind::Https, _) => Route::Tunnel,
            _ => Route::Socks,
        }
    }
}

/// Fields of a request, in order.
pub type Fields = Vec<(String, Vec<u8>)>;

/// The request target of a CONNECT, and its Host: host and port, always with the port (RFC 9110 §9.3.6).
pub fn connect_authority(target: &Target) -> String {
    format!("{}:{}", without_zone(target), target.port())
}

/// The fields of a CONNECT, as curl orders them: Host, Proxy-Authorization, User-Agent, `Proxy-Connection`, then the user's fields for proxies
/// (`--proxy-header`), which replace these. `authorization` is the proxy's credentials: by Digest from [`Digest`](crate::auth::Digest), else
/// [`Credentials::basic`](crate::auth::Credentials::basic). Nothing of the request is in it.
pub fn connect_fields(
    target: &Target,
    authorization: Option<&[u8]>,
    user_agent: Option<&[u8]>,
    proxy_fields: &[(String, Vec<u8>)],
) -> Fields {
    let mut fields = vec![("Host".to_owned(), connect_authority(target).into_bytes())];
    fields.extend(authorization.map(|value| ("Proxy-Authorization".to_owned(), value.to_vec())));
    fields.extend(user_agent.map(|value| ("User-Agent".to_owned(), value.to_vec())));
    fields.push(("Proxy-Connection".to_owned(), b"Keep-Alive".to_vec()));
    replaced(fields, proxy_fields)
}

/// What a forwarded request carries besides its own fields: Proxy-Authorization, `Proxy-Connection`, and the user's fields for proxies.
/// Only a request that really goes to the proxy may have them.
pub fn forward_fields(authorization: Option<&[u8]>, proxy_fields: &[(String, Vec<u8>)]) -> Fields {
    let mut fields: Fields = Vec::new();
    fields.extend(authorization.map(|value| ("Proxy-Authorization".to_owned(), value.to_vec())));
    fields.push(("Proxy-Connection".to_owned(), b"Keep-Alive".to_vec()));
    replaced(fields, proxy_fields)
}

/// The request target of a forwarded request (RFC 9112 §3.2.2): the URL without userinfo and fragment.
pub fn absolute_form(target: &Target) -> String {
    format!("{}://{}{}", target.scheme().as_str(), target.authority(), target.path_and_query())
}

fn without_zone(target: &Target) -> String {
    if target.host_text().contains(':') { format!("[{}]", target.host_text()) } else { target.host_text().to_owned() }
}

fn replaced(mut fields: Fields, by: &[(String, Vec<u8>)]) -> Fields {
    fields.retain(|(name, _)| !by.iter().any(|(other, _)| other.eq_ignore_ascii_case(name)));
    fields.extend_from_slice(by);
    fields
}
