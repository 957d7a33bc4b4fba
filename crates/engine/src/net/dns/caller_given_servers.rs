//! The name servers that the caller chose, and the local address and interface for queries to them.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use haul_policy::dns::nsswitch::HostLookupSources;
use haul_policy::dns::resolv_conf::NameServer;

use super::system_files::ParsedResolverFiles;
use crate::{Error, ErrorKind, Result};

/// The name servers to ask instead of the system's resolver, and the local address and interface
/// from which to ask them.
///
/// ```
/// use haul::net::dns::ChosenDnsServers;
///
/// let servers = ChosenDnsServers::parse("192.0.2.53,[2001:db8::53]:5353")?;
/// assert_eq!(servers.servers.len(), 2);
/// # Ok::<(), haul::Error>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ChosenDnsServers {
    /// The servers, in order of preference (`--dns-servers`). If the list is empty, the servers of
    /// `/etc/resolv.conf` are used.
    pub servers: Vec<NameServer>,
    /// The network interface from which queries are sent (`--dns-interface`); `None` for any
    /// interface.
    pub interface: Option<String>,
    /// The local address from which queries over IPv4 are sent (`--dns-ipv4-addr`); `None` for any
    /// address.
    pub local_v4: Option<Ipv4Addr>,
    /// The local address from which queries over IPv6 are sent (`--dns-ipv6-addr`); `None` for any
    /// address.
    pub local_v6: Option<Ipv6Addr>,
}

impl ChosenDnsServers {
    /// Parses a list of servers like curl's `--dns-servers`: addresses with or without a port,
    /// separated by commas.
    ///
    /// # Errors
    /// [`ErrorKind::Setup`] if an address is malformed, or the list is empty.
    pub fn parse(list: &str) -> Result<Self> {
        let server = |text: &str| {
            NameServer::parse(text.trim()).ok_or_else(|| {
                let message =
                    format!("'{}' is not a name server; expected ADDRESS, IPV4:PORT or [IPV6]:PORT", text.trim());
                Error::new(ErrorKind::Setup, message)
            })
        };
        let servers = list.split(',').map(server).collect::<Result<_>>()?;
        Ok(Self { servers, ..Self::default() })
    }

    /// Returns true if any field is set. The resolver then queries name servers instead of calling
    /// the system's resolver.
    #[must_use]
    pub fn is_set(&self) -> bool {
        *self != Self::default()
    }

    /// Returns the system's configuration `config` with the name servers replaced by these servers.
    /// If there are none, the system's servers remain.
    pub(super) fn applied_to(&self, mut config: ParsedResolverFiles) -> ParsedResolverFiles {
        if self.is_set() {
            config.sources = HostLookupSources::FilesThenDns;
        }
        if !self.servers.is_empty() {
            Arc::make_mut(&mut config.resolv_conf).servers.clone_from(&self.servers);
        }
        config
    }
}
