//! The origin of a URL: scheme, host and port. Secrets, connection pools and queues are kept per
//! origin (RFC 6454 §4, RFC 9110 §4.3.1).

use core::fmt::{self, Write};
use core::hash::{Hash, Hasher};
use core::net::{Ipv4Addr, Ipv6Addr};
use std::borrow::Cow;
use std::sync::Arc;

/// The two schemes that haul supports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Scheme {
    /// Plain HTTP: `http`.
    Http,
    /// HTTP over TLS: `https`.
    Https,
}

impl Scheme {
    /// Returns the scheme's default port: 80 or 443.
    pub fn default_port(self) -> u16 {
        match self {
            Scheme::Http => 80,
            Scheme::Https => 443,
        }
    }

    /// Returns the scheme's name: `http` or `https`.
    pub fn as_str(self) -> &'static str {
        match self {
            Scheme::Http => "http",
            Scheme::Https => "https",
        }
    }
}

/// A host in normalised form. The same form serves for DNS, the Host field, SNI, cookies and
/// comparison.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Host {
    /// A host name in lower-case ASCII, after IDNA. A trailing dot is kept.
    Name(String),
    /// An IPv4 address. URLs may write it in other forms, such as `0x7f.1`.
    V4(Ipv4Addr),
    /// An IPv6 address and its zone (RFC 6874), percent-decoded.
    V6(Ipv6Addr, Option<String>),
}

impl fmt::Display for Host {
    /// Formats the host as in a URL: IPv6 in brackets with its zone.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Host::Name(name) => f.write_str(name),
            Host::V4(ip) => write!(f, "{ip}"),
            Host::V6(ip, None) => write!(f, "[{ip}]"),
            Host::V6(ip, Some(zone)) => write!(f, "[{ip}%25{zone}]"),
        }
    }
}

/// An origin: scheme, host and port. A clone only increments a reference count. Origins that were
/// parsed from different spellings compare equal.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Origin(Arc<OriginParts>);

/// The data of an [`Origin`], which all its clones share.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct OriginParts {
    scheme: Scheme,
    port: u16,
    host: Host,
    /// The text with which URLs of the origin begin, such as `http://[::1%25lo]:8080`. It is stored
    /// because every request needs parts of it.
    text: Box<str>,
    /// The length in bytes of the host in `text`, without brackets and zone.
    host_len: usize,
}

/// Hashes only the text, which determines all other fields. The hash should be cheap, because a
/// queue looks up each URL by its origin.
impl Hash for OriginParts {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.text.hash(state);
    }
}

impl Origin {
    /// Creates an origin from normalised parts, as [`Target::parse`](super::Target::parse) produces
    /// them.
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
        Origin(Arc::new(OriginParts { scheme, port, host, text: text.into_boxed_str(), host_len }))
    }

    /// Returns `true` if both origins share one allocation.
    pub(super) fn is_same_as(&self, other: &Origin) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Returns the scheme, `http` or `https`.
    pub fn scheme(&self) -> Scheme {
        self.0.scheme
    }

    /// Returns the host in normalised form.
    pub fn host(&self) -> &Host {
        &self.0.host
    }

    /// Returns the host as used for DNS, SNI and certificates: without brackets and zone.
    pub fn host_text(&self) -> &str {
        let bracket = usize::from(matches!(self.0.host, Host::V6(..)));
        &self.authority_text()[bracket..][..self.0.host_len]
    }

    /// Returns the text with which URLs of this origin begin, such as `http://h.example:8080`.
    pub fn url_prefix(&self) -> &str {
        &self.0.text
    }

    pub(super) fn authority_text(&self) -> &str {
        &self.0.text[self.0.scheme.as_str().len() + "://".len()..]
    }

    /// Returns the port, by default the scheme's.
    pub fn port(&self) -> u16 {
        self.0.port
    }

    /// Returns the value of the Host field (RFC 9110 §7.2). IPv6 is in brackets and has no zone,
    /// which means nothing to the peer (RFC 6874 §1). The port is left out if it is the default.
    pub fn authority(&self) -> Cow<'_, str> {
        let text = self.authority_text();
        match &self.0.host {
            Host::V6(_, Some(_)) => {
                let port = text.rsplit_once(']').map_or("", |(_, port)| port);
                Cow::Owned(["[", self.host_text(), "]", port].concat())
            }
            _ => Cow::Borrowed(text),
        }
    }

    /// Writes the [`authority`](Self::authority) to `out`.
    pub fn write_authority(&self, out: &mut impl Write) -> fmt::Result {
        out.write_str(&self.authority())
    }
}

/// Appends `number` in decimal.
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
    /// Formats the ASCII serialisation of the origin (RFC 6454 §6.2), with which its URLs begin.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.url_prefix())
    }
}

impl fmt::Debug for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Origin({self})")
    }
}
