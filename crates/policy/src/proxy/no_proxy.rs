//! `no_proxy`: hosts that are reached without the proxy.

use core::net::IpAddr;

use crate::target::{Host, Target};

/// A list of hosts to reach without a proxy, separated by commas or blanks (`--noproxy`,
/// `no_proxy`).
///
/// | entry | hosts |
/// |---|---|
/// | `*` | all |
/// | `example.com`, `.example.com`, `example.com.` | that name and all names under it, in upper or lower case |
/// | `10.0.0.0/8`, `fd00::/8`, `[::1]` | the addresses of that network |
/// | `10.0.0.1`, `::1` | that address |
///
/// An entry with a port, `example.com:8080` or `[::1]:8080`, matches that port only. As in curl, no
/// name is resolved to compare it with a network. [`NoProxy::parse_as_curl`] reads a list as curl
/// does.
///
/// ```
/// use haul_policy::Target;
/// use haul_policy::proxy::NoProxy;
///
/// let direct = NoProxy::parse("example.com .Internal,10.0.0.0/8 other.example:81");
/// let matches = |url: &str| direct.matches(&Target::parse(url).unwrap());
/// assert!(matches("http://www.example.com/") && matches("http://internal/") && matches("http://10.9.8.7:81/"));
/// assert!(!matches("http://badexample.com/") && !matches("http://11.0.0.1/"));
/// assert!(matches("http://other.example:81/") && !matches("http://other.example/"));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NoProxy {
    entries: Vec<NoProxyEntry>,
}

/// An entry of a [`NoProxy`] list: hosts, and optionally a port.
#[derive(Clone, Debug, PartialEq, Eq)]
struct NoProxyEntry {
    hosts: NoProxyHostPattern,
    /// The port that the entry matches; `None` for all ports.
    port: Option<u16>,
}

/// The hosts that an entry of a [`NoProxy`] list matches: all, a name with its subdomains, or a
/// network.
#[derive(Clone, Debug, PartialEq, Eq)]
enum NoProxyHostPattern {
    All,
    /// A host name in lower case, without a leading or trailing dot.
    Name(String),
    Network(IpAddr, u8),
}

impl NoProxy {
    /// Parses a list of hosts. Entries that are neither a name nor a network are skipped.
    pub fn parse(text: &str) -> NoProxy {
        let words = text.split([',', ' ', '\t']).filter(|word| !word.is_empty());
        NoProxy { entries: words.filter_map(parse_entry).collect() }
    }

    /// Parses a list of hosts as curl 8.22 does. The differences from [`parse`](Self::parse) are:
    ///
    /// * `*` matches all hosts only if it is the whole text.
    /// * An entry with a port or with brackets matches nothing.
    /// * A prefix of length 0 matches one address: `10.0.0.0/0` matches only 10.0.0.0.
    /// * Entries are separated by commas. A blank without a comma ends the list: `a b` is only `a`.
    pub fn parse_as_curl(text: &str) -> NoProxy {
        if text == "*" {
            return NoProxy::parse(text);
        }
        let is_blank = |c: char| c == ' ' || c == '\t';
        let (mut entries, mut rest) = (Vec::new(), text);
        loop {
            rest = rest.trim_start_matches(is_blank);
            let (word, behind) = rest.split_at(rest.find([' ', '\t', ',']).unwrap_or(rest.len()));
            entries.extend(parse_curl_entry(word));
            let behind = behind.trim_start_matches(is_blank);
            if !behind.starts_with(',') {
                return NoProxy { entries };
            }
            rest = behind.trim_start_matches(',');
        }
    }

    /// Returns `true` if an entry of the list matches `target`, so that it is reached without a
    /// proxy.
    pub fn matches(&self, target: &Target) -> bool {
        let is_for_port = |entry: &&NoProxyEntry| entry.port.is_none_or(|port| port == target.port());
        self.entries.iter().filter(is_for_port).any(|entry| match (&entry.hosts, target.host()) {
            (NoProxyHostPattern::All, _) => true,
            (NoProxyHostPattern::Name(suffix), Host::Name(name)) => {
                is_under(name.strip_suffix('.').unwrap_or(name), suffix)
            }
            (NoProxyHostPattern::Network(network, bits), Host::V4(ip)) => contains(*network, *bits, IpAddr::V4(*ip)),
            (NoProxyHostPattern::Network(network, bits), Host::V6(ip, _)) => contains(*network, *bits, IpAddr::V6(*ip)),
            _ => false,
        })
    }
}

/// Writes the list as text from which [`NoProxy::parse`] reads an equal list. Each name is written
/// with a leading and a trailing dot, which `parse` removes. Without the dots, a name parsed from
/// `.*` or `.10.0.0.1` would match all hosts or become an address.
impl core::fmt::Display for NoProxy {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        for (number, entry) in self.entries.iter().enumerate() {
            f.write_str(if number == 0 { "" } else { "," })?;
            match (&entry.hosts, entry.port) {
                (NoProxyHostPattern::All, _) => f.write_str("*")?,
                (NoProxyHostPattern::Name(name), _) => write!(f, ".{name}.")?,
                (NoProxyHostPattern::Network(network, bits), Some(_)) => write!(f, "[{network}]/{bits}")?,
                (NoProxyHostPattern::Network(network, bits), None) => write!(f, "{network}/{bits}")?,
            }
            if let Some(port) = entry.port {
                write!(f, ":{port}")?;
            }
        }
        Ok(())
    }
}

fn parse_entry(word: &str) -> Option<NoProxyEntry> {
    let (hosts, port) = split_port(word);
    parse_hosts(hosts).map(|hosts| NoProxyEntry { hosts, port })
}

/// Parses an entry as curl does. Returns `None` if it matches no host in curl.
fn parse_curl_entry(word: &str) -> Option<NoProxyEntry> {
    let hosts = match parse_hosts(word)? {
        NoProxyHostPattern::All => return None,
        NoProxyHostPattern::Name(name) if name.contains(':') => return None,
        NoProxyHostPattern::Network(..) if word.starts_with('[') => return None,
        NoProxyHostPattern::Network(network, 0) => {
            NoProxyHostPattern::Network(network, if network.is_ipv4() { 32 } else { 128 })
        }
        hosts => hosts,
    };
    Some(NoProxyEntry { hosts, port: None })
}

/// Splits an entry into host and port; the port is `None` if the entry has no port. Digits after a
/// colon in an IPv6 address without brackets are part of the address.
fn split_port(word: &str) -> (&str, Option<u16>) {
    let Some((hosts, digits)) = word.rsplit_once(':') else { return (word, None) };
    let is_port = digits.bytes().all(|b| b.is_ascii_digit()) && (!hosts.contains(':') || hosts.starts_with('['));
    match digits.parse() {
        Ok(port) if is_port && !hosts.is_empty() => (hosts, Some(port)),
        _ => (word, None),
    }
}

fn parse_hosts(word: &str) -> Option<NoProxyHostPattern> {
    if word == "*" {
        return Some(NoProxyHostPattern::All);
    }
    let (address, bits) = word.split_once('/').map_or((word, None), |(address, bits)| (address, Some(bits)));
    let bare = address.strip_prefix('[').and_then(|inner| inner.strip_suffix(']')).unwrap_or(address);
    if let Ok(network) = bare.parse::<IpAddr>() {
        let width = if network.is_ipv4() { 32 } else { 128 };
        let bits = match bits {
            None => width,
            Some(digits) if digits.bytes().all(|b| b.is_ascii_digit()) => digits.parse().ok()?,
            Some(_) => return None,
        };
        return (bits <= width).then_some(NoProxyHostPattern::Network(network, bits));
    }
    // One dot at each end, as by curl.
    let name = word.strip_prefix('.').unwrap_or(word);
    let name = name.strip_suffix('.').unwrap_or(name);
    (!name.is_empty()).then(|| NoProxyHostPattern::Name(name.to_ascii_lowercase()))
}

fn is_under(name: &str, suffix: &str) -> bool {
    name.strip_suffix(suffix).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
}

fn contains(network: IpAddr, bits: u8, ip: IpAddr) -> bool {
    // Both in the high bits of 128, so that one shift works for either family.
    let high = |ip: IpAddr| match ip {
        IpAddr::V4(ip) => u128::from(ip.to_bits()) << 96,
        IpAddr::V6(ip) => ip.to_bits(),
    };
    let differing = high(network) ^ high(ip);
    network.is_ipv4() == ip.is_ipv4() && differing.leading_zeros() >= u32::from(bits)
}
