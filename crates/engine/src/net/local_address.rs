//! The local end of a connection: interface, address, ports, and the priority and type of service
//! of packets. Also contains the addresses of Unix sockets.
//!
//! ```
//! use haul::net::local_address::{LocalInterface, PortRange};
//! assert_eq!(LocalInterface::parse("if!eth0")?, LocalInterface { device: Some("eth0".into()), host: None });
//! assert_eq!(LocalInterface::parse("host!10.0.0.2")?, LocalInterface { device: None, host: Some("10.0.0.2".into()) });
//! assert_eq!(PortRange::parse("5000-5009")?, PortRange { first: 5000, last: 5009 });
//! # Ok::<(), haul::Error>(())
//! ```

use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};
use std::path::PathBuf;

use rustix::fd::AsFd;

use super::happy_eyeballs::ConnectOptions;
use super::socket::Socket;
use crate::{Error, ErrorKind, Result};

/// The local network interface and the local address from which connections are made.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct LocalInterface {
    /// The name of the network interface, such as `eth0`; `None` for any interface.
    pub device: Option<String>,
    /// The local IP address, or a name that resolves to it; `None` for any address.
    pub host: Option<String>,
}

impl LocalInterface {
    /// Parses curl's `--interface`: `if!NAME`, `host!ADDRESS_OR_NAME`, or
    /// `ifhost!NAME!ADDRESS_OR_NAME`. Text without a prefix is the name of an interface if an
    /// interface has this name, and otherwise an address or a host name.
    ///
    /// # Errors
    /// [`ErrorKind::Setup`] if a name or an address is empty.
    pub fn parse(text: &str) -> Result<Self> {
        let (device, host) = if let Some(both) = text.strip_prefix("ifhost!") {
            let (device, host) = both.split_once('!').ok_or_else(no_interface)?;
            (Some(device), Some(host))
        } else if let Some(device) = text.strip_prefix("if!") {
            (Some(device), None)
        } else if let Some(host) = text.strip_prefix("host!") {
            (None, Some(host))
        } else if text.parse::<IpAddr>().is_err() && addresses_of(text).next().is_some() {
            (Some(text), None)
        } else {
            (None, Some(text))
        };
        if device.is_some_and(str::is_empty) || host.is_some_and(str::is_empty) {
            return Err(no_interface());
        }
        Ok(Self { device: device.map(str::to_owned), host: host.map(str::to_owned) })
    }
}

fn no_interface() -> Error {
    Error::new(ErrorKind::Setup, "not an interface, address or host name to leave from")
}

/// A range of local ports. They are tried in order, beginning with the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PortRange {
    /// The first port of the range.
    pub first: u16,
    /// The last port of the range.
    pub last: u16,
}

impl PortRange {
    /// Parses curl's `--local-port`: `PORT` or `FIRST-LAST`.
    ///
    /// # Errors
    /// [`ErrorKind::Setup`] if the text is no port or range, a port is 0, or the range ends before
    /// it begins.
    pub fn parse(text: &str) -> Result<Self> {
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        let port = |text: &str| text.trim().parse::<u16>().ok().filter(|port| *port > 0);
        match (port(first), port(last)) {
            (Some(first), Some(last)) if first <= last => Ok(Self { first, last }),
            _ => Err(Error::new(ErrorKind::Setup, "not a range of local ports")),
        }
    }
}

/// The local settings of a socket: the address and ports to bind to, and the priority and type of
/// service of its packets.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LocalBinding {
    /// The name of the network interface to bind to; `None` for any interface.
    pub device: Option<String>,
    /// The local addresses. A socket is bound to the address that has the same family as the peer's
    /// address. `None` for any address.
    pub addresses: Option<Vec<IpAddr>>,
    /// The range of local ports. The socket is bound to the first free port of the range. `None`
    /// for any port.
    pub ports: Option<PortRange>,
    /// The type of service of outgoing packets (eight bits), as in
    /// [`ConnectOptions::type_of_service`]; `None` for the system's default.
    pub type_of_service: Option<u8>,
    /// The priority of outgoing packets (0 to 7), as in [`ConnectOptions::priority`]; `None` for
    /// the system's default.
    pub priority: Option<u8>,
    /// True to use Multipath TCP where possible, as in [`ConnectOptions::multipath`].
    pub multipath: bool,
    /// True to send the first bytes with the SYN, as in [`ConnectOptions::fast_open`].
    pub fast_open: bool,
}

impl LocalBinding {
    /// Makes the settings for these options. Leaves out the interface or address (`--interface`),
    /// which must be looked up first.
    #[must_use]
    pub fn from_options(options: &ConnectOptions) -> Self {
        Self {
            ports: options.local_ports,
            type_of_service: options.type_of_service,
            priority: options.priority,
            multipath: options.multipath,
            fast_open: options.fast_open,
            ..Self::default()
        }
    }

    /// Returns true if a local address has the same family as `peer`, or if any local address may
    /// be used.
    pub(super) fn has_family_of(&self, peer: &SocketAddr) -> bool {
        self.addresses.as_ref().is_none_or(|all| all.iter().any(|address| address.is_ipv4() == peer.is_ipv4()))
    }

    /// Binds a socket that will connect to `peer`, and sets the priority and type of service of its
    /// packets.
    ///
    /// # Errors
    /// The system's error, or `AddrNotAvailable` if no local address is of the same family as
    /// `peer`.
    pub fn apply(&self, socket: &impl AsFd, peer: &SocketAddr) -> io::Result<()> {
        self.set_packet_marks(socket, peer);
        let mut address =
            self.addresses.as_ref().map(|addresses| address_for_peer(addresses.iter().copied(), peer)).transpose()?;
        if let Some(device) = &self.device {
            // If binding to the interface is not permitted (older kernels, other systems), binds to
            // its address instead.
            if bind_device(socket, device).is_err() && address.is_none() {
                address = Some(address_for_peer(addresses_of(device), peer)?);
            }
        }
        if address.is_none() && self.ports.is_none() {
            return Ok(());
        }
        let any = if peer.is_ipv4() { IpAddr::V4(Ipv4Addr::UNSPECIFIED) } else { IpAddr::V6(Ipv6Addr::UNSPECIFIED) };
        let ip = address.unwrap_or(any);
        let PortRange { first, last } = self.ports.unwrap_or(PortRange { first: 0, last: 0 });
        for port in first..=last {
            match rustix::net::bind(socket.as_fd(), &with_scope(ip, port, peer)) {
                Ok(()) => return Ok(()),
                Err(rustix::io::Errno::ADDRINUSE) if port < last => {}
                Err(errno) => return Err(errno.into()),
            }
        }
        Err(io::ErrorKind::AddrInUse.into())
    }

    /// Sets the type of service and the priority of packets to `peer`. Ignores a refusal by the
    /// system, as curl does.
    #[cfg(unix)]
    pub(super) fn set_packet_marks(&self, socket: &impl AsFd, peer: &SocketAddr) {
        let socket = socket2::SockRef::from(socket);
        if let Some(service) = self.type_of_service.map(u32::from) {
            let _ = if peer.is_ipv4() { socket.set_tos_v4(service) } else { socket.set_tclass_v6(service) };
        }
        #[cfg(target_os = "linux")]
        if let Some(priority) = self.priority {
            let _ = socket.set_priority(priority.into());
        }
    }

    /// Does nothing: on Windows, haul sets neither the type of service nor the priority of packets.
    #[cfg(windows)]
    pub(super) fn set_packet_marks(&self, _socket: &impl AsFd, _peer: &SocketAddr) {}

    /// Returns the error for a socket that could not be bound to its local address or port.
    pub(super) fn bind_error(&self, peer: SocketAddr, error: io::Error) -> Error {
        let from = match (&self.device, &self.addresses, self.ports) {
            (Some(device), _, _) => format!("by {device}"),
            (None, Some(addresses), _) => match addresses.first() {
                Some(address) => format!("from {address}"),
                None => "from there".to_owned(),
            },
            (None, None, Some(PortRange { first, last })) => format!("from ports {first} to {last}"),
            (None, None, None) => "from here".to_owned(),
        };
        Error::with_source(ErrorKind::Interface, format!("cannot connect to {} {from}", peer.ip()), error)
    }
}

/// Returns the first address that has the same family as `peer`. For a link-local peer, the address
/// must be link-local, too.
fn address_for_peer(addresses: impl Iterator<Item = IpAddr>, peer: &SocketAddr) -> io::Result<IpAddr> {
    let is_local = |ip: &IpAddr| matches!(ip, IpAddr::V6(ip) if ip.is_unicast_link_local());
    let peer_is_local = is_local(&peer.ip());
    let fitting = addresses.filter(|ip| ip.is_ipv4() == peer.is_ipv4());
    fitting.min_by_key(|ip| is_local(ip) != peer_is_local).ok_or_else(|| io::ErrorKind::AddrNotAvailable.into())
}

fn with_scope(ip: IpAddr, port: u16, peer: &SocketAddr) -> SocketAddr {
    match (ip, peer) {
        (IpAddr::V6(ip), SocketAddr::V6(peer)) if ip.is_unicast_link_local() => {
            SocketAddr::V6(SocketAddrV6::new(ip, port, 0, peer.scope_id()))
        }
        _ => SocketAddr::new(ip, port),
    }
}

/// Binds a socket to a network interface.
///
/// # Errors
/// The system's error, or `Unsupported` on systems that cannot bind to an interface.
#[cfg(target_os = "linux")]
pub(super) fn bind_device(socket: &impl AsFd, device: &str) -> io::Result<()> {
    socket2::SockRef::from(socket).bind_device(Some(device.as_bytes()))
}

#[cfg(not(target_os = "linux"))]
pub(super) fn bind_device(_socket: &impl AsFd, _device: &str) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Returns the index of an IPv6 zone, which is given as a number or as the name of an interface
/// (RFC 4007 section 11.2). Returns `None` if no interface has this name.
pub(super) fn zone_index(zone: &str) -> Option<u32> {
    let number = zone.parse().ok().filter(|&number| number != 0);
    number.or_else(|| if_addrs::get_if_addrs().ok()?.into_iter().find(|found| found.name == zone)?.index)
}

fn addresses_of(device: &str) -> impl Iterator<Item = IpAddr> {
    let device = device.to_owned();
    let all = if_addrs::get_if_addrs().unwrap_or_default().into_iter();
    all.filter(move |interface| interface.name == device).map(|interface| interface.ip())
}

/// The address of a Unix socket: a path, or a name in the abstract namespace.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum UnixSocketAddress {
    /// A path in the file system (`--unix-socket`).
    Path(PathBuf),
    /// A name in Linux's abstract namespace (`--abstract-unix-socket`), without the leading NUL.
    Abstract(Vec<u8>),
}

impl UnixSocketAddress {
    #[cfg(unix)]
    fn address(&self) -> io::Result<rustix::net::SocketAddrUnix> {
        use rustix::net::SocketAddrUnix;
        use std::os::unix::ffi::OsStrExt;

        match self {
            Self::Path(path) => Ok(SocketAddrUnix::new(path.as_os_str().as_bytes())?),
            #[cfg(target_os = "linux")]
            Self::Abstract(name) => Ok(SocketAddrUnix::new_abstract_name(name)?),
            #[cfg(not(target_os = "linux"))]
            Self::Abstract(_) => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    /// Connects to the Unix socket. The new socket is non-blocking if `nonblocking` is true.
    #[cfg(unix)]
    pub(super) fn connect(&self, nonblocking: bool) -> io::Result<Socket> {
        let address = self.address()?;
        let socket = Socket::open_unix(nonblocking)?;
        socket.connect_unix(&address)?;
        Ok(socket)
    }

    /// Fails, because haul has no Unix sockets on Windows.
    #[cfg(windows)]
    pub(super) fn connect(&self, _nonblocking: bool) -> io::Result<Socket> {
        Err(io::Error::new(
            io::ErrorKind::Unsupported,
            "Unix sockets are not supported on Windows; name a host and port",
        ))
    }

    pub(super) fn failed(&self, error: io::Error) -> Error {
        Error::with_source(ErrorKind::Connect, format!("failed to connect to the socket {self}"), error)
    }
}

impl fmt::Display for UnixSocketAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Path(path) => write!(f, "{}", path.display()),
            Self::Abstract(name) => write!(f, "@{}", name.escape_ascii()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_os = "linux")]
    #[test]
    fn local_binding_sets_type_of_service_and_priority() {
        let options = ConnectOptions { type_of_service: Some(0xb8), priority: Some(5), ..ConnectOptions::default() };
        for peer in ["127.0.0.1:9", "[::1]:9"] {
            let peer = peer.parse().unwrap();
            let socket = Socket::open(&peer, false).unwrap();
            LocalBinding::from_options(&options).apply(&socket, &peer).unwrap();
            let socket = socket2::SockRef::from(&socket);
            let service = if peer.is_ipv4() { socket.tos_v4() } else { socket.tclass_v6() };
            assert_eq!((service.unwrap(), socket.priority().unwrap()), (0xb8, 5), "{peer}");
        }
    }
}
