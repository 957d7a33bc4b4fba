//! Proxies: selection for a request, the protocol spoken with the proxy, and the data that the
//! proxy learns.
//!
//! ```
//! use haul_policy::Target;
//! use haul_policy::proxy::{ProxyEnvironment, Proxy, ProxyMode};
//!
//! let variables = |name: &str| match name {
//!     "https_proxy" => Some("socks5h://me:pw@127.0.0.1:9050".to_owned()),
//!     "no_proxy" => Some(".internal, 10.0.0.0/8".to_owned()),
//!     _ => None,
//! };
//! let environment = ProxyEnvironment::from_variables(variables);
//! let target = Target::parse("https://example.com/")?;
//! let proxy = Proxy::parse(environment.proxy_for(&target).unwrap())?;
//! assert_eq!((proxy.kind().as_str(), proxy.port()), ("socks5h", 9050));
//! assert_eq!(proxy.route(&target, false), ProxyMode::Socks);
//! assert_eq!(environment.proxy_for(&Target::parse("https://10.1.2.3/")?), None);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | module | subject |
//! |---|---|
//! | `url` | the URL of a proxy: `-x`, `--preproxy`, the environment |
//! | `environment` | the variables `http_proxy`, `https_proxy`, `all_proxy` |
//! | `no_proxy` | `--noproxy`, `no_proxy` |
//! | `tunnel_or_forward` | forwarding, tunnel or SOCKS; the contents of a CONNECT and of a forwarded request (RFC 9110 §9.3.6, RFC 9112 §3.2.2) |
//! | [`socks`] | the handshakes of SOCKS 4, 4a and 5, as a state machine without I/O |
//!
//! Left out: PAC files, WPAD, and the sockets.

mod environment;
mod no_proxy;
pub mod socks;
#[cfg(test)]
mod tests;
mod tunnel_or_forward;
mod url;

pub use environment::ProxyEnvironment;
pub use no_proxy::NoProxy;
pub use tunnel_or_forward::{
    ProxyFields, ProxyMode, absolute_form_target, connect_authority, connect_fields, forward_fields,
};
pub use url::{Proxy, ProxyKind, ProxyParseError};
