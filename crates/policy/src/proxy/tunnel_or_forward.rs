//! The route of a request through a proxy, and the data that the proxy learns.
//!
//! An http proxy that forwards sees the whole request, as does every router before it, since the
//! request is not encrypted. A tunnel or SOCKS proxy learns the host, the port and its own
//! credentials, but nothing of the request.

use super::{Proxy, ProxyKind};
use crate::target::{Scheme, Target};

/// The manner in which a request is sent through a proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ProxyMode {
    /// The proxy receives the request with the whole URL as its target (absolute form) and forwards
    /// it.
    Forward,
    /// The proxy opens a tunnel by CONNECT. The request is then sent as on a direct connection.
    Tunnel,
    /// The proxy opens a tunnel by SOCKS. The request is then sent as on a direct connection.
    Socks,
}

impl Proxy {
    /// Returns the manner in which a request to `target` is sent through this proxy. `tunnel` is
    /// true if the user wants a tunnel even for plain HTTP (`-p`).
    pub fn route(&self, target: &Target, tunnel: bool) -> ProxyMode {
        match (self.kind(), target.scheme()) {
            (ProxyKind::Http | ProxyKind::Https, Scheme::Http) if !tunnel => ProxyMode::Forward,
            (ProxyKind::Http | ProxyKind::Https, _) => ProxyMode::Tunnel,
            _ => ProxyMode::Socks,
        }
    }
}

/// The names and values of header fields for a request sent to a proxy, in order.
pub type ProxyFields = Vec<(String, Vec<u8>)>;

/// Returns the request target of a CONNECT, which is also the value of its Host field: host and
/// port, even if the port is the default (RFC 9110 §9.3.6).
pub fn connect_authority(target: &Target) -> String {
    format!("{}:{}", without_zone(target), target.port())
}

/// Returns the fields of a CONNECT in curl's order: Host, Proxy-Authorization, User-Agent,
/// `Proxy-Connection`, then the user's fields for proxies (`--proxy-header`). A field of the user
/// replaces any other field of the same name.
///
/// `authorization` is the value of Proxy-Authorization: from
/// [`DigestSession`](crate::auth::DigestSession) or
/// [`Credentials::basic_authorization`](crate::auth::Credentials::basic_authorization). No field of
/// the request to the target is included.
pub fn connect_fields(
    target: &Target,
    authorization: Option<&[u8]>,
    user_agent: Option<&[u8]>,
    proxy_fields: &[(String, Vec<u8>)],
) -> ProxyFields {
    let mut fields = vec![("Host".to_owned(), connect_authority(target).into_bytes())];
    fields.extend(authorization.map(|value| ("Proxy-Authorization".to_owned(), value.to_vec())));
    fields.extend(user_agent.map(|value| ("User-Agent".to_owned(), value.to_vec())));
    fields.push(("Proxy-Connection".to_owned(), b"Keep-Alive".to_vec()));
    replace_fields(fields, proxy_fields)
}

/// Returns the fields to add to a forwarded request: Proxy-Authorization, `Proxy-Connection`, and
/// the user's fields for proxies (`--proxy-header`). Add them only to a request that is sent to the
/// proxy itself, not through a tunnel.
pub fn forward_fields(authorization: Option<&[u8]>, proxy_fields: &[(String, Vec<u8>)]) -> ProxyFields {
    let mut fields: ProxyFields = Vec::new();
    fields.extend(authorization.map(|value| ("Proxy-Authorization".to_owned(), value.to_vec())));
    fields.push(("Proxy-Connection".to_owned(), b"Keep-Alive".to_vec()));
    replace_fields(fields, proxy_fields)
}

/// Returns the request target of a forwarded request (RFC 9112 §3.2.2): the URL without userinfo
/// and fragment. With `as_written`, the host keeps the user's spelling.
pub fn absolute_form_target(target: &Target, as_written: bool) -> String {
    let authority = if as_written { target.written_authority() } else { target.authority() };
    format!("{}://{}{}", target.scheme().as_str(), authority, target.path_and_query())
}

fn without_zone(target: &Target) -> String {
    if target.host_text().contains(':') { format!("[{}]", target.host_text()) } else { target.host_text().to_owned() }
}

fn replace_fields(mut fields: ProxyFields, by: &[(String, Vec<u8>)]) -> ProxyFields {
    fields.retain(|(name, _)| !by.iter().any(|(other, _)| other.eq_ignore_ascii_case(name)));
    fields.extend_from_slice(by);
    fields
}
