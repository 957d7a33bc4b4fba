//! A network of thousands of hosts on loopback, some of them broken: a name server, and hosts that
//! send pages, refuse, stay silent, reset connections, or are slow.
//!
//! The hosts are `h0.hosts.test`, `h1.hosts.test`, …, each with its own address. The
//! [`HostBehaviour`] of a host determines the port in its URLs, and thus which server answers.
//!
//! ```
//! use testkit::host_network::{FaultShares, HostBehaviour, HostMix, HostNetwork};
//!
//! let network = HostNetwork::builder(100).mix(HostMix::Shares(FaultShares::COMMON)).start().unwrap();
//! assert_eq!(network.behaviour(99), HostBehaviour::Good);
//! assert!(network.url(99, 0).starts_with("http://h99.hosts.test:"));
//! assert!(network.name_server().ip().is_loopback());
//! ```

mod certificates;
mod host_behaviour;
#[cfg(test)]
mod tests;

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use crate::dns_server::{DnsReply, DnsServer, ReceivedQuery};
use crate::page_server::{PageServer, PageTiming, PortBehavior, page_key};
use crate::rng::Rng;

use certificates::HostCertificates;
pub use host_behaviour::{FaultShares, HostBehaviour, HostMix, LATE_NAME_DELAY, SLOW_HOST_DELAY};

/// The length of each page of the network's hosts, in bytes.
pub const PAGE_LEN: usize = 300;
/// The domain of all hosts.
const DOMAIN: &str = "hosts.test";
/// The address of host 0. The address of host N is higher by N.
const FIRST_HOST: Ipv4Addr = Ipv4Addr::new(127, 16, 0, 1);
/// The first three bytes of the addresses on which the name server tries to bind port 53. Only root
/// may bind this port.
const NAME_SERVERS: [u8; 3] = [127, 31, 53];
/// The DNS response code SERVFAIL: the name server failed.
const SERVFAIL: u8 = 2;
const NXDOMAIN: u8 = 3;

/// The settings of a [`HostNetwork`]; made by [`HostNetwork::builder`].
pub struct HostNetworkBuilder {
    hosts: usize,
    mix: HostMix,
    tls: bool,
}

impl HostNetworkBuilder {
    /// Sets the behaviour of each host. Default: all hosts are good.
    pub fn mix(mut self, mix: HostMix) -> HostNetworkBuilder {
        self.mix = mix;
        self
    }

    /// Sets whether the hosts use TLS, each one with a certificate for its name. Default: no.
    pub fn tls(mut self, tls: bool) -> HostNetworkBuilder {
        self.tls = tls;
        self
    }

    /// Starts the name server and the servers of the hosts.
    ///
    /// # Errors
    /// If a port cannot be bound or a thread cannot be started.
    pub fn start(self) -> io::Result<HostNetwork> {
        let HostNetworkBuilder { hosts, mix, tls } = self;
        let certificates = tls.then(|| HostCertificates::generate((0..hosts).map(host_name)));
        let config = certificates.as_ref().map(HostCertificates::server_config);
        let pages = Arc::new(PageServer::start(HostBehaviour::ALL.map(port_behavior).to_vec(), config)?);
        let names = start_name_server(hosts, mix.clone())?;
        Ok(HostNetwork { hosts, mix, ca_pem: certificates.map(|made| made.ca_pem), pages, names })
    }
}

/// A running network of hosts with its name server. Dropping it stops all its servers.
pub struct HostNetwork {
    hosts: usize,
    mix: HostMix,
    ca_pem: Option<String>,
    pages: Arc<PageServer>,
    names: DnsServer,
}

/// The URL of a page in a network of hosts, with the data that a test needs to check the page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageOnHost {
    /// The URL of the page.
    pub url: String,
    /// The behaviour of the URL's host.
    pub behaviour: HostBehaviour,
    /// The hash of the page's URL ([`page_key`]), with which a test checks the page.
    pub key: u64,
}

impl HostNetwork {
    /// Returns the default settings of a network with this many hosts.
    pub fn builder(hosts: usize) -> HostNetworkBuilder {
        HostNetworkBuilder { hosts, mix: HostMix::Shares(FaultShares::default()), tls: false }
    }

    /// Returns the behaviour of the host with this index.
    pub fn behaviour(&self, host: usize) -> HostBehaviour {
        self.mix.behaviour(host)
    }

    /// Returns the URL of a page: `host` is the index of the host, `page` the number of the page on
    /// that host.
    pub fn url(&self, host: usize, page: usize) -> String {
        self.host_url(host, page).url
    }

    /// Returns `count` URLs, ordered by page number: the first page of every host, then the second
    /// page of every host, and so on.
    pub fn urls_in_turn(&self, count: usize) -> Vec<PageOnHost> {
        (0..count).map(|index| self.host_url(index % self.hosts, index / self.hosts)).collect()
    }

    /// Returns the URLs of [`urls_in_turn`](HostNetwork::urls_in_turn) in a random order that
    /// depends only on the seed.
    pub fn urls_shuffled(&self, count: usize, seed: u64) -> Vec<PageOnHost> {
        let mut urls = self.urls_in_turn(count);
        let mut rng = Rng::new(seed);
        for last in (1..urls.len()).rev() {
            urls.swap(last, rng.below(last as u64 + 1) as usize);
        }
        urls
    }

    /// Returns the server that sends the pages of all hosts.
    pub fn pages(&self) -> &Arc<PageServer> {
        &self.pages
    }

    /// Returns the address of the name server for both UDP and TCP. Its port is 53 if the process
    /// may bind port 53.
    pub fn name_server(&self) -> SocketAddr {
        self.names.address()
    }

    /// Removes and returns the queries that the name server received since the last call of this
    /// function.
    ///
    /// # Panics
    /// If the name server has panicked.
    pub fn take_queries(&self) -> Vec<ReceivedQuery> {
        self.names.take_queries()
    }

    /// Returns the certificate of the CA in PEM; `None` if the hosts do not use TLS.
    pub fn ca_pem(&self) -> Option<&str> {
        self.ca_pem.as_deref()
    }

    fn host_url(&self, host: usize, page: usize) -> PageOnHost {
        let (behaviour, name) = (self.behaviour(host), host_name(host));
        let port = self.pages.port(HostBehaviour::ALL.iter().position(|known| *known == behaviour).unwrap_or_default());
        let scheme = if self.ca_pem.is_some() { "https" } else { "http" };
        let path = format!("/{PAGE_LEN}/{page}");
        PageOnHost { key: page_key(&name, &path), url: format!("{scheme}://{name}:{port}{path}"), behaviour }
    }
}

fn host_name(host: usize) -> String {
    format!("h{host}.{DOMAIN}")
}

/// Returns the index of the host with this name; `None` if the name is not one of a host of
/// [`DOMAIN`], such as `h7.hosts.test`. The index may be too large for the network.
fn host_index(name: &str) -> Option<usize> {
    let (host, domain) = name.split_once('.')?;
    let digits = host.strip_prefix(['h', 'H']).filter(|_| domain.eq_ignore_ascii_case(DOMAIN))?;
    digits.parse().ok()
}

/// Returns the behaviour of the page server's port that serves all hosts with this behaviour.
fn port_behavior(behaviour: HostBehaviour) -> PortBehavior {
    match behaviour {
        HostBehaviour::Slow => PortBehavior::Pages(PageTiming::after(SLOW_HOST_DELAY)),
        HostBehaviour::Unavailable => PortBehavior::Unavailable,
        HostBehaviour::Refusing => PortBehavior::Refuse,
        HostBehaviour::DropsSyn => PortBehavior::DropSyn,
        HostBehaviour::Silent => PortBehavior::Silent,
        HostBehaviour::ResetsConnections => PortBehavior::ResetAccepted,
        HostBehaviour::ResetsRequests => PortBehavior::ResetRequest,
        // No client connects to hosts whose names have no address.
        _ => PortBehavior::Pages(PageTiming::AT_ONCE),
    }
}

/// Starts the name server on port 53 of the first free address in [`NAME_SERVERS`], or else on any
/// port.
fn start_name_server(hosts: usize, mix: HostMix) -> io::Result<DnsServer> {
    let answer = Arc::new(move |query: &ReceivedQuery| answer(query, hosts, &mix));
    let [a, b, c] = NAME_SERVERS;
    for last in 1..=254 {
        let answer = Arc::clone(&answer);
        match DnsServer::start_at((Ipv4Addr::new(a, b, c, last), 53).into(), move |query| answer(query)) {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {}
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => break,
            started => return started,
        }
    }
    DnsServer::start(move |query| answer(query))
}

fn answer(query: &ReceivedQuery, hosts: usize, mix: &HostMix) -> Vec<DnsReply> {
    let Some(host) = host_index(&query.name).filter(|host| *host < hosts) else {
        return vec![query.error(NXDOMAIN)];
    };
    let address = Ipv4Addr::from(u32::from(FIRST_HOST) + host as u32);
    let found = query.addresses(&[IpAddr::V4(address)]);
    match mix.behaviour(host) {
        HostBehaviour::NameMissing => vec![query.error(NXDOMAIN)],
        HostBehaviour::NameFails => vec![query.error(SERVFAIL)],
        HostBehaviour::NameUnanswered => Vec::new(),
        HostBehaviour::LateName => vec![found.with_delay(LATE_NAME_DELAY)],
        _ => vec![found],
    }
}
