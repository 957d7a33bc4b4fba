//! `/etc/hosts`: names with fixed addresses (hosts(5)).
//!
//! ```
//! use haul_policy::dns::hosts::HostsFile;
//!
//! let hosts = HostsFile::parse("192.0.2.7 web.example web # the web server\n2001:db8::7 web\n");
//! assert_eq!(hosts.addresses("WEB").len(), 2);
//! assert!(hosts.addresses("other").is_empty());
//! ```

use std::collections::HashMap;
use std::net::IpAddr;

/// The parsed content of a hosts file, such as `/etc/hosts`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostsFile {
    by_name: HashMap<Box<str>, Vec<IpAddr>>,
}

impl HostsFile {
    /// Parses the text of a hosts file. Lines that do not begin with an address are ignored.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let mut by_name: HashMap<Box<str>, Vec<IpAddr>> = HashMap::new();
        for line in text.lines() {
            let line = line.split_once('#').map_or(line, |(line, _)| line);
            let mut words = line.split_ascii_whitespace();
            let Some(Ok(address)) = words.next().map(str::parse::<IpAddr>) else { continue };
            for name in words {
                let addresses = by_name.entry(normalize_name(name).into()).or_default();
                if !addresses.contains(&address) {
                    addresses.push(address);
                }
            }
        }
        Self { by_name }
    }

    /// Returns the addresses of a name in the order of the hosts file; empty if the file does not
    /// list the name. Case is ignored.
    #[must_use]
    pub fn addresses(&self, name: &str) -> &[IpAddr] {
        self.by_name.get(&*normalize_name(name)).map_or(&[], Vec::as_slice)
    }
}

fn normalize_name(name: &str) -> String {
    name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_address_in_hosts_file_is_kept_once() {
        let hosts = HostsFile::parse("127.0.0.1 a b\n127.0.0.1 a\n127.0.0.2\ta.\n");
        assert_eq!(hosts.addresses("a."), ["127.0.0.1".parse::<IpAddr>().unwrap(), "127.0.0.2".parse().unwrap()]);
        assert_eq!(hosts.addresses("b").len(), 1);
    }

    #[test]
    fn comments_and_broken_hosts_lines_are_ignored() {
        let hosts = HostsFile::parse("# 1.1.1.1 a\nnonsense a\n1.1.1.1#a\n300.1.1.1 a\n\n");
        assert_eq!(hosts, HostsFile::default());
    }
}
