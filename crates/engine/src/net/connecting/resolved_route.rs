//! Resolves the names on a connection's route: the first host to connect to, and the destinations
//! that the proxies are asked to connect to.

use std::net::{IpAddr, SocketAddr};
use std::time::Instant;

use haul_policy::proxy::{Proxy, ProxyKind};

use crate::net::dns::{AddressFamily, AvailableAddresses};
use crate::net::happy_eyeballs::{ConnectOptions, ConnectRace, with_port};
use crate::net::local_address::{LocalBinding, UnixSocketAddress, zone_index};
use crate::net::pool::ConnectionKey;
#[cfg(feature = "http3")]
use crate::net::proxy::ProxyRoute;
#[cfg(feature = "http3")]
use crate::net::quic::QuicAddressRace;
#[cfg(feature = "http3")]
use crate::net::tls::TlsOptions;
use crate::{Error, ErrorKind, Result};

/// The route to the server (directly or through proxies), with names resolved to addresses.
#[derive(Debug)]
pub(super) struct ResolvedRoute {
    /// The name of the first host on the route, for error messages.
    entry: String,
    to: FirstHopAddresses,
    /// False if the lookup of the first host or of the local address continues, so that further
    /// addresses may follow.
    pub(super) is_complete: bool,
    pub(super) bind: LocalBinding,
    /// The destination addresses to request from the proxies on the route, one entry for each
    /// proxy. An entry is `None` if the proxy itself resolves the destination's name.
    pub(super) proxy_destinations: Vec<Option<IpAddr>>,
}

/// The addresses of the first host on the route (a proxy or the origin).
#[derive(Debug)]
enum FirstHopAddresses {
    Addresses(Vec<SocketAddr>),
    /// A Unix socket, to which all connections go.
    Local(UnixSocketAddress),
}

impl ResolvedRoute {
    /// Returns the addresses of the first host on the route; none for a Unix socket.
    pub(super) fn addresses(&self) -> &[SocketAddr] {
        match &self.to {
            FirstHopAddresses::Local(_) => &[],
            FirstHopAddresses::Addresses(addresses) => addresses,
        }
    }

    /// Resolves the host names that are needed for a new connection with the key `key`: the names
    /// of the proxies, of the destination, and of the local interface. A name that a proxy resolves
    /// is not looked up. `ask` looks up one name, and returns `None` while that lookup is pending.
    /// This function then returns `None`, too, and the caller must call it again later.
    ///
    /// # Errors
    /// A name has no address, or a proxy cannot be used.
    pub(super) fn resolve(
        key: &ConnectionKey,
        mut ask: impl FnMut(&str, u16, AddressFamily) -> Result<Option<AvailableAddresses>>,
    ) -> Result<Option<Self>> {
        key.via.check()?;
        let mut resolve = |host: &str, port, family, kind| {
            // An address is asked for, too: `--resolve` may replace it.
            let (host, family) = match parse_ip_literal(host) {
                Some(_) => (host.trim_matches(['[', ']']), AddressFamily::Any),
                None => (host, family),
            };
            ask(host, port, family).map_err(|error| with_kind(error, kind))
        };
        let mut bind = LocalBinding::from_options(&key.connect);
        let mut bind_is_complete = true;
        if let Some(interface) = &key.connect.interface {
            bind.device.clone_from(&interface.device);
            if let Some(host) = &interface.host {
                let Some(found) = resolve(host, 0, key.family, ErrorKind::Interface)? else { return Ok(None) };
                bind_is_complete = found.is_complete;
                bind.addresses = Some(found.addresses.to_vec());
            }
        }
        let local = |socket: UnixSocketAddress, proxy_destinations, bind| Self {
            entry: socket.to_string(),
            to: FirstHopAddresses::Local(socket),
            is_complete: true,
            bind,
            proxy_destinations,
        };
        if let Some(socket) = &key.connect.unix_socket {
            return Ok(Some(local(socket.clone(), Vec::new(), bind)));
        }
        let proxies = proxies(key);
        let mut proxy_destinations = Vec::with_capacity(proxies.len());
        for (index, proxy) in proxies.iter().enumerate() {
            // Each proxy is asked to connect to the next one, and the last one to the origin. A
            // proxy that forwards requests is not asked to connect.
            let (host, port, kind) = match proxies.get(index + 1) {
                Some(next) => (next.host_text(), next.port(), ErrorKind::ProxyResolve),
                None if key.via.forwarding_hop().is_some() => break,
                None => (key.dial.0.as_str(), key.dial.1, ErrorKind::Resolve),
            };
            proxy_destinations.push(match parse_ip_literal(host) {
                address if proxy.kind().resolves_names() => address,
                _ => {
                    let Some(found) = resolve(host, port, key.family, kind)? else { return Ok(None) };
                    let addresses = &found.addresses;
                    // Only one address can be requested, and more proxies can reach IPv4 (SOCKS 4
                    // nothing else).
                    let v4 = addresses.iter().find(|address| address.is_ipv4());
                    let needs_v4 = matches!(proxy.kind(), ProxyKind::Socks4);
                    if v4.is_none() && needs_v4 && !found.is_complete {
                        return Ok(None);
                    }
                    v4.or(addresses.first()).copied()
                }
            });
        }
        if let Some(path) = proxies.first().and_then(|proxy| proxy.socket_path()) {
            return Ok(Some(local(UnixSocketAddress::Path(path.into()), proxy_destinations, bind)));
        }
        let (host, port, kind) = match proxies.first() {
            Some(proxy) => (proxy.host_text(), proxy.port(), ErrorKind::ProxyResolve),
            None => (key.dial.0.as_str(), key.dial.1, ErrorKind::Resolve),
        };
        let Some(found) = resolve(host, port, key.family, kind)? else { return Ok(None) };
        let mut addresses = with_port(&found.addresses, port);
        if let (Some(zone), true) = (&key.zone, proxies.is_empty()) {
            let scope = zone_index(zone).ok_or_else(|| {
                Error::new(ErrorKind::Resolve, format!("there is no interface {zone} for the address"))
            })?;
            for address in &mut addresses {
                if let SocketAddr::V6(address) = address {
                    address.set_scope_id(scope);
                }
            }
        }
        if !bind_is_complete {
            // An address whose family has no local address yet is connected to later.
            addresses.retain(|address| bind.has_family_of(address));
            if addresses.is_empty() {
                return Ok(None);
            }
        }
        let is_complete = found.is_complete && bind_is_complete;
        let (entry, to) = (host.to_owned(), FirstHopAddresses::Addresses(addresses));
        Ok(Some(Self { entry, to, is_complete, bind, proxy_destinations }))
    }

    /// Returns the race to connect to the addresses of the first host on the route. `spread` is the
    /// index of the address to try first; callers vary it so that connections are distributed over
    /// the addresses.
    #[must_use]
    pub(super) fn connect_race(&self, options: &ConnectOptions, spread: usize, now: Instant) -> ConnectRace {
        match &self.to {
            FirstHopAddresses::Local(socket) => ConnectRace::for_unix_socket(socket.clone(), options, now),
            FirstHopAddresses::Addresses(addresses) => {
                let mut addresses = addresses.clone();
                let others = spread % addresses.len().max(1);
                addresses.rotate_left(others);
                ConnectRace::new(&self.entry, addresses, options, now).from(self.bind.clone())
            }
        }
    }
}

#[cfg(feature = "http3")]
impl ResolvedRoute {
    /// Returns the race of QUIC handshakes with `addresses`. `spread` is the index of the address
    /// to try first.
    ///
    /// # Errors
    /// The route leads through a Unix socket or a proxy, or the options exclude TLS 1.3.
    pub(super) fn quic_race(
        &self,
        key: &ConnectionKey,
        tls: Option<&TlsOptions>,
        mut addresses: Vec<SocketAddr>,
        options: &ConnectOptions,
        spread: usize,
        now: Instant,
    ) -> Result<QuicAddressRace> {
        match &self.to {
            FirstHopAddresses::Addresses(_) if key.via == ProxyRoute::Direct => {
                let others = spread % addresses.len().max(1);
                addresses.rotate_left(others);
                QuicAddressRace::new(key, tls, addresses, options, self.bind.clone(), now)
            }
            _ => Err(Error::new(ErrorKind::Setup, "HTTP/3 cannot go through a proxy or a Unix socket")),
        }
    }
}

/// Returns the proxies on the route of a connection key, in the order in which the connection
/// passes through them.
pub(super) fn proxies(key: &ConnectionKey) -> Vec<&Proxy> {
    key.via.last_hop().map(|hop| hop.preproxy.iter().chain([&hop.proxy]).collect()).unwrap_or_default()
}

/// Parses a host as an IP address. Returns `None` if it is a name.
pub(super) fn parse_ip_literal(host: &str) -> Option<IpAddr> {
    host.trim_matches(['[', ']']).parse().ok()
}

fn with_kind(error: Error, kind: ErrorKind) -> Error {
    if error.kind() == ErrorKind::Resolve && kind != ErrorKind::Resolve {
        let what = if kind == ErrorKind::ProxyResolve { "the proxy's name" } else { "the name to leave from" };
        return error.into_kind(kind, what);
    }
    error
}
