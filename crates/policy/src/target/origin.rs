//! Scheme, host and port: what secrets, pools and queues are keyed by (RFC 6454 §4, RFC 9110 §4.3.1).

use core::fmt::{self, Write};
use core::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

/// The two schemes haul speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Scheme {
    /// Plain HTTP.
    Http,
    /// HTTP over TLS.
    Https,
}

impl Scheme {
    /// 80 or 443.
    pub fn default_port(self) -> u16 {
        match self {
            Scheme::Http => 80,
            Scheme::Https => 443,
        }
    }

    /// `http` or `https`.
    pub fn as_str(self) -> &'static str {
        match self {
            Scheme::Http => "http",
            Scheme::Https => "https",
        }
    }
}

/// One host, in the one form used for DNS, Host, SNI, cookies and comparison.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Host {
    /// A name in lower-case ASCII, after IDNA. A trailing dot stays.
    Name(String),
    /// An IPv4 address, whichever form it was written in.
    V4(Ipv4Addr),
    /// An IPv6 address and its zone (RFC 6874), percent-decoded.
    V6(Ipv6Addr, Option<String>),
}

impl fmt::Display for Host {
    /// As in a URL: IPv6 in brackets with its zone.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Host::Name(name) => f.write_str(name),
            Host::V4(ip) => write!(f, "{ip}"),
            Host::V6(ip, None) => write!(f, "[{ip}]"),
            Host::V6(ip, Some(zone)) => write!(f, "[{ip}%25{zone}]"),
        }
    }
}

/// Scheme + host + port. Cloning it is a reference count; equal origins compare equal however they were written.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Origin(Arc<Parts>);

#[derive(PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Parts {
    scheme: Scheme,
    port: u16,
    host: Host,
    /// The address as text; empty for names, which are their own text.
    ip_text: Box<str>,
}

impl Origin {
    /// An origin of parts that are already normalised, as [`Target::parse`](super::Target::parse) makes them.
    pub(super) fn new(scheme: Scheme, host: Host, port: u16) -> Origin {
        let ip_text = match &host {
            Host::Name(_) => Box::default(),
            Host::V4(ip) => ip.to_string().into_boxed_str(),
            Host::V6(ip, _) => ip.to_string().into_boxed_str(),
        };
        Origin(Arc::new(Parts { scheme, port, host, ip_text }))
    }

    /// The scheme.
    pub fn scheme(&self) -> Scheme {
        self.0.scheme
    }

    /// The host.
    pub fn host(&self) -> &Host {
        &self.0.host
    }

    /// The host as DNS, SNI and certificates see it: no brackets, no zone.
    pub fn host_text(&self) -> &str {
        match &self.0.host {
            Host::Name(name) => name,
            Host::V4(_) | Host::V6(..) => &self.0.ip_text,
        }
    }

    /// The port, the scheme's default where none was written.
    pub fn port(&self) -> u16 {
        self.0.port
    }

    /// Writes the value of the Host field (RFC 9110 §7.2): brackets round IPv6, no zone (RFC 6874 §1: it means
    /// nothing to the peer), the port only when it is not the scheme's default.
    pub fn write_authority(&self, out: &mut impl Write) -> fmt::Result {
        match &self.0.host {
            Host::V6(..) => {
                out.write_char('[')?;
                out.write_str(self.host_text())?;
                out.write_char(']')?;
            }
            Host::Name(_) | Host::V4(_) => out.write_str(self.host_text())?,
        }
        self.write_port(out)
    }

    /// The value of the Host field; see [`write_authority`](Self::write_authority).
    pub fn authority(&self) -> String {
        let mut text = String::with_capacity(self.host_text().len() + 8);
        self.write_authority(&mut text).expect("a String takes all");
        text
    }

    fn write_port(&self, out: &mut impl Write) -> fmt::Result {
        if self.0.port == self.0.scheme.default_port() {
            return Ok(());
        }
        write!(out, ":{}", self.0.port)
    }
}

impl fmt::Display for Origin {
    /// The ASCII serialisation (RFC 6454 §6.2), which is also a URL's beginning.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", self.0.scheme.as_str(), self.0.host)?;
        self.write_port(f)
    }
}

impl fmt::Debug for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Origin({self})")
    }
}
