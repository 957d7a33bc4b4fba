//! `/etc/resolv.conf`: name servers, search list and options, read as glibc reads them
//! (resolv.conf(5)).
//!
//! ```
//! use haul_policy::dns::resolv_conf::ResolvConf;
//!
//! let config = ResolvConf::parse("nameserver 192.0.2.1\nsearch a.example b.example\noptions ndots:2 rotate\n");
//! assert_eq!(config.servers[0].to_string(), "192.0.2.1:53");
//! assert_eq!(config.candidates("www.host"), ["www.host.a.example", "www.host.b.example", "www.host"]);
//! assert_eq!(config.candidates("www.host."), ["www.host"]);
//! ```

use core::fmt;
use core::time::Duration;
use std::net::{IpAddr, Ipv4Addr};

/// The largest number of name servers, as in glibc (`MAXNS`). Further servers are ignored.
pub const MAX_SERVERS: usize = 3;
/// The largest value of the option `ndots`, as in glibc.
const MAX_NDOTS: u32 = 15;
/// The largest value of the option `timeout` in seconds, as in glibc.
const MAX_TIMEOUT: u32 = 30;
/// The largest value of the option `attempts`, as in glibc.
const MAX_ATTEMPTS: u32 = 5;
/// The port of a name server whose address is configured without a port.
const DNS_PORT: u16 = 53;

/// The address of a DNS server.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct NameServer {
    /// The IP address of the DNS server.
    pub address: IpAddr,
    /// The port of the DNS server; 53 if the address is configured without a port.
    pub port: u16,
    /// The interface of a link-local IPv6 address (`eth0` in `fe80::1%eth0`); `None` for other
    /// addresses.
    pub interface: Option<String>,
}

impl NameServer {
    /// Parses `ADDRESS`, `ADDRESS%INTERFACE`, `IPV4:PORT` or `[IPV6]:PORT`. Returns `None` for any
    /// other text.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let with_port = |address: &str, port| {
            let (address, interface) = match address.split_once('%') {
                Some((address, interface)) if !interface.is_empty() => (address, Some(interface.to_owned())),
                _ => (address, None),
            };
            Some(Self { address: address.parse().ok()?, port, interface })
        };
        if let Some(rest) = text.strip_prefix('[') {
            let (address, port) = rest.split_once(']')?;
            let port = if port.is_empty() { DNS_PORT } else { parse_port(port.strip_prefix(':')?)? };
            return with_port(address, port).filter(|server| server.address.is_ipv6());
        }
        match text.split_once(':') {
            Some((address, port)) if !port.contains(':') => {
                with_port(address, parse_port(port)?).filter(|server| server.address.is_ipv4())
            }
            _ => with_port(text, DNS_PORT),
        }
    }
}

fn parse_port(text: &str) -> Option<u16> {
    text.parse().ok().filter(|&port| port > 0)
}

impl fmt::Display for NameServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let zone = self.interface.as_ref().map(|interface| format!("%{interface}")).unwrap_or_default();
        match self.address {
            IpAddr::V4(address) => write!(f, "{address}:{}", self.port),
            IpAddr::V6(address) => write!(f, "[{address}{zone}]:{}", self.port),
        }
    }
}

/// The configuration of a stub resolver, as in `/etc/resolv.conf`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResolvConf {
    /// The servers in order of preference, at least one and at most [`MAX_SERVERS`].
    pub servers: Vec<NameServer>,
    /// Domains that are appended to short names, such as `example.com` to `www`.
    pub search: Vec<String>,
    /// A name with at least this number of dots is tried as it is before the search list. Default
    /// 1, at most 15.
    pub ndots: u32,
    /// The longest time to wait for a response before the query is sent again. Default 5 s, at most
    /// 30 s.
    pub timeout: Duration,
    /// The number of times that a query is sent to each server. Default 2, at most 5.
    pub attempts: u32,
    /// True to rotate the servers: each lookup begins with another server than the lookup before.
    pub rotate: bool,
    /// True to announce a receive buffer for larger responses (EDNS, RFC 6891).
    pub edns0: bool,
    /// True to set the AD bit in queries (RFC 6840 §5.7), because the path to the server is
    /// trusted.
    pub trust_ad: bool,
    /// True to send queries over TCP only.
    pub use_tcp: bool,
    /// True to send no AAAA queries, so that names have no IPv6 addresses.
    pub no_aaaa: bool,
}

impl Default for ResolvConf {
    fn default() -> Self {
        Self {
            servers: vec![NameServer { address: IpAddr::V4(Ipv4Addr::LOCALHOST), port: DNS_PORT, interface: None }],
            search: Vec::new(),
            ndots: 1,
            timeout: Duration::from_secs(5),
            attempts: 2,
            rotate: false,
            edns0: false,
            trust_ad: false,
            use_tcp: false,
            no_aaaa: false,
        }
    }
}

impl ResolvConf {
    /// Parses the text of a `resolv.conf` file. Unknown and malformed lines are ignored, as by
    /// glibc. If the file names no server, the server is 127.0.0.1.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let mut config = Self::default();
        let mut servers = Vec::new();
        for line in text.lines() {
            // Comments begin in the first column; a keyword, too.
            if line.starts_with(['#', ';', ' ', '\t']) {
                continue;
            }
            let mut words = line.split_ascii_whitespace();
            match words.next() {
                Some("nameserver") => servers.extend(words.next().and_then(NameServer::parse)),
                Some("domain") => config.search = words.next().and_then(parse_domain).into_iter().collect(),
                Some("search") => config.search = words.filter_map(parse_domain).collect(),
                Some("options") => config.apply_options(words),
                _ => {}
            }
        }
        servers.truncate(MAX_SERVERS);
        if !servers.is_empty() {
            config.servers = servers;
        }
        config
    }

    /// Applies the words of an `options` line, or of the environment variable `RES_OPTIONS`, which
    /// has the same syntax.
    pub fn apply_options<'a>(&mut self, options: impl IntoIterator<Item = &'a str>) {
        for option in options {
            let (name, value) = option.split_once(':').unwrap_or((option, ""));
            let number = value.parse::<u32>();
            match (name, number) {
                ("ndots", Ok(number)) => self.ndots = number.min(MAX_NDOTS),
                ("timeout", Ok(number)) => self.timeout = Duration::from_secs(number.clamp(1, MAX_TIMEOUT).into()),
                ("attempts", Ok(number)) => self.attempts = number.clamp(1, MAX_ATTEMPTS),
                ("rotate", _) => self.rotate = true,
                ("edns0", _) => self.edns0 = true,
                ("trust-ad", _) => self.trust_ad = true,
                ("use-vc", _) => self.use_tcp = true,
                ("no-aaaa", _) => self.no_aaaa = true,
                _ => {}
            }
        }
    }

    /// Sets the search list to the value of the environment variable `LOCALDOMAIN`: domains
    /// separated by blanks.
    pub fn set_search(&mut self, domains: &str) {
        self.search = domains.split_ascii_whitespace().filter_map(parse_domain).collect();
    }

    /// Returns the names to look up for `name`, in order: `name` with each domain of the search
    /// list, and `name` itself. If `name` ends with a dot, returns only `name`.
    #[must_use]
    pub fn candidates(&self, name: &str) -> Vec<String> {
        if let Some(absolute) = name.strip_suffix('.') {
            return vec![absolute.to_owned()];
        }
        let dots = name.bytes().filter(|&byte| byte == b'.').count();
        let searched = self.search.iter().map(|domain| format!("{name}.{domain}"));
        let as_it_is = || std::iter::once(name.to_owned());
        if u32::try_from(dots).unwrap_or(u32::MAX) >= self.ndots {
            as_it_is().chain(searched).collect()
        } else {
            searched.chain(as_it_is()).collect()
        }
    }
}

/// Returns a domain of a search list without leading and trailing dots; `None` for the root domain,
/// which adds nothing.
fn parse_domain(text: &str) -> Option<String> {
    let domain = text.trim_matches('.');
    (!domain.is_empty()).then(|| domain.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_servers_beyond_the_third_are_ignored() {
        let config = ResolvConf::parse(
            "nameserver 1.1.1.1\nnameserver ::1\nnameserver bad\nnameserver fe80::1%eth0\nnameserver 4.4.4.4\n",
        );
        let servers: Vec<_> = config.servers.iter().map(ToString::to_string).collect();
        assert_eq!(servers, ["1.1.1.1:53", "[::1]:53", "[fe80::1%eth0]:53"]);
    }

    #[test]
    fn last_search_or_domain_line_replaces_earlier_lines() {
        assert_eq!(ResolvConf::parse("search a b\ndomain c.\n").search, ["c"]);
        assert_eq!(ResolvConf::parse("domain c\nsearch A. .b\nsearch\n").search, Vec::<String>::new());
    }

    #[test]
    fn resolver_options_are_bounded_as_in_glibc() {
        let config = ResolvConf::parse(
            "options ndots:99 timeout:0 attempts:77 rotate edns0 trust-ad use-vc no-aaaa timeout:x new\n",
        );
        assert_eq!((config.ndots, config.timeout, config.attempts), (15, Duration::from_secs(1), 5));
        assert!(config.rotate && config.edns0 && config.trust_ad && config.use_tcp && config.no_aaaa);
    }

    #[test]
    fn file_without_servers_means_server_on_localhost() {
        assert_eq!(
            ResolvConf::parse("# nameserver 1.1.1.1\n; nameserver 2.2.2.2\n").servers[0].to_string(),
            "127.0.0.1:53"
        );
    }

    #[test]
    fn name_with_enough_dots_is_tried_before_search() {
        let config = ResolvConf { search: vec!["example".into()], ..ResolvConf::default() };
        assert_eq!(config.candidates("www.host"), ["www.host", "www.host.example"]);
        assert_eq!(config.candidates("www"), ["www.example", "www"]);
    }

    #[test]
    fn name_server_with_port_is_parsed() {
        let server = |text| NameServer::parse(text).map(|server| server.to_string());
        assert_eq!(server("127.0.0.1:5353").as_deref(), Some("127.0.0.1:5353"));
        assert_eq!(server("[::1]:5353").as_deref(), Some("[::1]:5353"));
        assert_eq!(server("[::1]").as_deref(), Some("[::1]:53"));
        assert_eq!(server("::1").as_deref(), Some("[::1]:53"));
        for wrong in ["", "1.2.3.4:", "1.2.3.4:0", "1.2.3.4:70000", "[1.2.3.4]:5", "host", "[::1]x", "[::1"] {
            assert_eq!(server(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn name_with_final_dot_skips_search_list() {
        let mut config = ResolvConf::parse("search old\n");
        config.set_search(" a.  .b. . ");
        assert_eq!(config.candidates("h"), ["h.a", "h.b", "h"]);
        assert_eq!(config.candidates("h.x"), ["h.x", "h.x.a", "h.x.b"]);
        assert_eq!(config.candidates("h."), ["h"]);
    }
}
