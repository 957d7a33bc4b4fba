//! Name servers of the caller's choice, and how they are reached.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use haul_policy::dns::nsswitch::HostSources;
use haul_policy::dns::resolv_conf::NameServer;

use super::system_files::NameConfig;
use crate::{Error, ErrorKind, Result};

/// Name servers to ask instead of the system's resolver, and the local end of the queries.
///
/// ```
/// use haul::net::dns::DnsServers;
///
/// let servers = DnsServers::parse("192.0.2.53,[2001:db8::53]:5353")?;
/// assert_eq!(servers.servers.len(), 2);
/// # Ok::<(), haul::Error>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DnsServers {
    /// The servers, in order of preference (`--dns-servers`). Empty: those of `/etc/resolv.conf`.
    pub servers: Vec<NameServer>,
    /// The network interface that queries leave by (`--dns-interface`).
    pub interface: Option<String>,
    /// The local address of queries over IPv4 (`--dns-ipv4-addr`).
    pub local_v4: Option<Ipv4Addr>,
    /// The local address of queries over IPv6 (`--dns-ipv6-addr`).
    pub local_v6: Option<Ipv6Addr>,
}

impl DnsServers {
    /// Parses curl's `--dns-servers`: addresses with or without a port, between commas.
    ///
    /// # Errors
    /// [`ErrorKind::Setup`] if an address is wrong, or there is none.
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

    /// Returns true if anything is set: then the system's resolver is not asked.
    #[must_use]
    pub fn is_set(&self) -> bool {
        *self != Self::default()
    }

    /// Returns the system's configuration with these servers in place of its own.
    pub(super) fn applied_to(&self, mut config: NameConfig) -> NameConfig {
        if self.is_set() {
            config.sources = HostSources::FilesThenDns;
        }
        if !self.servers.is_empty() {
            Arc::make_mut(&mut config.resolv_conf).servers.clone_from(&self.servers);
        }
        config
    }
}
