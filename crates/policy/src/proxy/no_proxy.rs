//! `no_proxy`: which hosts are reached directly.

use core::net::IpAddr;

use crate::target::Host;

/// A list of hosts, between commas or blanks.
///
/// | entry | hosts |
/// |---|---|
/// | `*` | all |
/// | `example.com`, `.example.com`, `example.com.` | that name and all names under it, in any case |
/// | `10.0.0.0/8`, `fd00::/8`, `[::1]` | addresses of that network |
/// | `10.0.0.1`, `::1` | that address |
///
/// As by curl: an entry with a port matches nothing (`example.com:80`), and no name is resolved to compare it with a network. Unlike in curl, a
/// prefix of length 0 matches all addresses of its family.
///
/// ```
/// use haul_policy::Target;
/// use haul_policy::proxy::NoProxy;
///
/// let direct = NoProxy::parse("example.com .Internal,10.0.0.0/8");
/// let matches = |url: &str| direct.matches(Target::parse(url).unwrap().host());
/// assert!(matches("http://www.example.com/") && matches("http://internal/") && matches("http://10.9.8.7:81/"));
/// assert!(!matches("http://badexample.com/") && !matches("http://11.0.0.1/"));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NoProxy {
    entries: Vec<Entry>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Entry {
    All,
    /// In lower case, without a dot at either end.
    Name(String),
    Network(IpAddr, u8),
}

impl NoProxy {
    /// Reads a list. Entries that are neither a name nor a network are left out.
    pub fn parse(text: &str) -> NoProxy {
        let words = text.split([',', ' ', '\t']).filter(|word| !word.is_empty());
        NoProxy { entries: words.filter_map(parse_entry).collect() }
    }

    /// Whether `host` is reached directly.
    pub fn matches(&self, host: &Host) -> bool {
        self.entries.iter().any(|entry| match (entry, host) {
            (Entry::All, _) => true,
            (Entry::Name(suffix), Host::Name(name)) => is_under(name.strip_suffix('.').unwrap_or(name), suffix),
            (Entry::Network(network, bits), Host::V4(ip)) => contains(*network, *bits, IpAddr::V4(*ip)),
            (Entry::Network(network, bits), Host::V6(ip, _)) => contains(*network, *bits, IpAddr::V6(*ip)),
            _ => false,
        })
    }
}

/// The list as text from which [`NoProxy::parse`] makes the same. Names stand between the dots that are removed there, since one that was `.*` or
/// `.10.0.0.1` would match all hosts without them, or be an address.
impl core::fmt::Display for NoProxy {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        for (number, entry) in self.entries.iter().enumerate() {
            f.write_str(if number == 0 { "" } else { "," })?;
            match entry {
                Entry::All => f.write_str("*")?,
                Entry::Name(name) => write!(f, ".{name}.")?,
                Entry::Network(network, bits) => write!(f, "{network}/{bits}")?,
            }
        }
        Ok(())
    }
}

fn parse_entry(word: &str) -> Option<Entry> {
    if word == "*" {
        return Some(Entry::All);
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
        return (bits <= width).then_some(Entry::Network(network, bits));
    }
    // One dot at each end, as by curl.
    let name = word.strip_prefix('.').unwrap_or(word);
    let name = name.strip_suffix('.').unwrap_or(name);
    (!name.is_empty()).then(|| Entry::Name(name.to_ascii_lowercase()))
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
