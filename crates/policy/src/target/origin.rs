//! Scheme, host and port: the key of secrets, pools and queues (RFC 6454 §4, RFC 9110 §4.3.1).

use core::fmt::{self, Write};
use core::hash::{Hash, Hasher};
use core::net::{Ipv4Addr, Ipv6Addr};
use std::borrow::Cow;
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

#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Parts {
    scheme: Scheme,
    port: u16,
    host: Host,
    /// The beginning of its URLs: `http://[::1%25lo]:8080`. Made once, since every request needs parts of it.
    text: Box<str>,
    /// Which part of it is the host without brackets and zone.
    host_len: usize,
}

/// By the text alone, which holds everything; each URL of a queue is looked up by its origin.
impl Hash for Parts {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.text.hash(state);
    }
}

impl Origin {
    /// Makes an origin of normalised parts, as [`Target::parse`](super::Target::parse) makes them.
    pub(super) fn new(scheme: Scheme, host: Host, port: u16) -> Origin {
        let name_len = if let Host::Name(name) = &host { name.len() } else { 0 };
        let mut text = String::with_capacity("https://255.255.255.255:65535".len() + name_len);
        text.push_str(scheme.as_str());
        text.push_str("://");
        let start = text.len();
        let host_len = match &host {
            Host::Name(name) => {
                text.push_str(name);
                name.len()
            }
            // Not with `Display`, which would take a quarter of the time for parsing a URL.
            Host::V4(ip) => {
                for (index, octet) in ip.octets().into_iter().enumerate() {
                    if index > 0 {
                        text.push('.');
                    }
                    push_number(&mut text, octet.into());
                }
                text.len() - start
            }
            Host::V6(ip, _) => {
                write!(text, "{host}").expect("a String takes all");
                ip.to_string().len()
            }
        };
        if port != scheme.default_port() {
            text.push(':');
            push_number(&mut text, port);
        }
        Origin(Arc::new(Parts { scheme, port, host, text: text.into_boxed_str(), host_len }))
    }

    /// Whether both share one allocation.
    pub(super) fn is_same_as(&self, other: &Origin) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
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
        let bracket = usize::from(matches!(self.0.host, Host::V6(..)));
        &self.after_scheme()[bracket..][..self.0.host_len]
    }

    /// The beginning of its URLs.
    pub fn text(&self) -> &str {
        &self.0.text
    }

    fn after_scheme(&self) -> &str {
        &self.0.text[self.0.scheme.as_str().len() + "://".len()..]
    }

    /// The port, the scheme's default where none was written.
    pub fn port(&self) -> u16 {
        self.0.port
    }

    /// The value of the Host field (RFC 9110 §7.2): brackets round IPv6, no zone (RFC 6874 §1: it means nothing to the
    /// peer), the port only if it is not the scheme's default.
    pub fn authority(&self) -> Cow<'_, str> {
        let text = self.after_scheme();
        match &self.0.host {
            Host::V6(_, Some(_)) => {
                let port = text.rsplit_once(']').map_or("", |(_, port)| port);
                Cow::Owned(["[", self.host_text(), "]", port].concat())
            }
            _ => Cow::Borrowed(text),
        }
    }

    /// Writes [`authority`](Self::authority).
    pub fn write_authority(&self, out: &mut impl Write) -> fmt::Result {
        out.write_str(&self.authority())
    }
}

/// In decimal.
fn push_number(text: &mut String, number: u16) {
    let mut power = 10_000;
    while power > 1 && number < power {
        power /= 10;
    }
    while power > 0 {
        text.push(char::from(b'0' + (number / power % 10) as u8));
        power /= 10;
    }
}

impl fmt::Display for Origin {
    /// The ASCII serialisation (RFC 6454 §6.2), which is also a URL's beginning.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

impl fmt::Debug for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Origin({self})")
    }
}
