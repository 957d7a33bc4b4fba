//! A socket that is connected to one name server: UDP for many queries, or TCP for one.

use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, SocketAddrV6};

use haul_policy::dns::resolv_conf::NameServer;
use mio::{Interest, Registry, Token};
use socket2::{Domain, Protocol, Socket, Type};

use super::super::ChosenDnsServers;
use crate::net::event_registration;
use crate::net::local_address::{bind_device, zone_index};
use crate::system::socket_error_codes::is_connect_in_progress;

/// The maximum number of queries that are sent from one local port. A new socket has another random
/// port, which makes forged responses less likely to match.
pub(super) const QUERIES_PER_SOCKET: u32 = 64;
/// The size of the largest DNS message, in bytes (RFC 1035 §4.2.2).
pub(super) const MAX_MESSAGE: usize = 65_535;

/// A socket that is connected to a name server.
pub(super) struct DnsSocket {
    socket: Socket,
    server: NameServer,
    /// The query and its response, if the socket is a TCP socket; `None` for UDP.
    stream: Option<DnsTcpExchange>,
    uses: u32,
    /// The number of queries that were sent on the socket and not answered.
    pub(super) open_queries: u32,
}

/// One query and its response over TCP. Each message is preceded by its length.
#[derive(Default)]
struct DnsTcpExchange {
    unsent: Vec<u8>,
    received: Vec<u8>,
}

/// The result of [`DnsSocket::receive`]: whether a message was received.
pub(super) enum DnsReceived {
    /// No further message is available on the socket now.
    Nothing,
    /// A message of this length is in the buffer.
    Message(usize),
}

impl DnsSocket {
    pub(super) fn udp(server: &NameServer, servers: &ChosenDnsServers) -> io::Result<Self> {
        Self::open(server, servers, Type::DGRAM, Protocol::UDP, None)
    }

    pub(super) fn tcp(server: &NameServer, servers: &ChosenDnsServers) -> io::Result<Self> {
        Self::open(server, servers, Type::STREAM, Protocol::TCP, Some(DnsTcpExchange::default()))
    }

    fn open(
        server: &NameServer,
        servers: &ChosenDnsServers,
        kind: Type,
        protocol: Protocol,
        stream: Option<DnsTcpExchange>,
    ) -> io::Result<Self> {
        let address = socket_address(server)?;
        let socket = Socket::new(Domain::for_address(address), kind, Some(protocol))?;
        socket.set_nonblocking(true)?;
        if let Some(device) = &servers.interface {
            bind_device(&socket, device)?;
        }
        let local = if address.is_ipv4() { servers.local_v4.map(IpAddr::V4) } else { servers.local_v6.map(IpAddr::V6) };
        if let Some(local) = local {
            socket.bind(&SocketAddr::new(local, 0).into())?;
        }
        match socket.connect(&address.into()) {
            Err(error) if !is_connect_in_progress(&error) => Err(error),
            _ => Ok(Self { socket, server: server.clone(), stream, uses: 0, open_queries: 0 }),
        }
    }

    pub(super) fn register(&self, registry: &Registry, token: Token) -> io::Result<()> {
        let interest = if self.stream.is_some() { Interest::READABLE | Interest::WRITABLE } else { Interest::READABLE };
        event_registration::register(registry, &self.socket, token, interest)
    }

    /// Returns true if the socket is connected to this server and may carry another query.
    pub(super) fn accepts_query_to(&self, server: &NameServer) -> bool {
        self.uses < QUERIES_PER_SOCKET && self.server == *server
    }

    /// Sends a query. If the send buffer of a UDP socket is full, the query is dropped, and sent
    /// again later like a query that the network has lost.
    pub(super) fn send(&mut self, message: Vec<u8>) -> io::Result<()> {
        if let Some(stream) = &mut self.stream {
            let length = u16::try_from(message.len()).map_err(io::Error::other)?;
            stream.unsent.extend(length.to_be_bytes());
            stream.unsent.extend(message);
            self.write()?;
        } else {
            match self.socket.send(&message) {
                Err(error) if error.kind() != io::ErrorKind::WouldBlock => return Err(error),
                _ => {}
            }
        }
        self.uses += 1;
        self.open_queries += 1;
        Ok(())
    }

    /// Sends the unsent bytes of a TCP query, as far as the socket allows. Does nothing for UDP.
    fn write(&mut self) -> io::Result<()> {
        let Some(stream) = &mut self.stream else { return Ok(()) };
        while !stream.unsent.is_empty() {
            match (&self.socket).write(&stream.unsent) {
                Ok(sent) => {
                    event_registration::after_send(&self.socket, sent == stream.unsent.len());
                    drop(stream.unsent.drain(..sent));
                }
                Err(error) if is_not_ready(&error) => {
                    event_registration::after_send(&self.socket, false);
                    return Ok(());
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Receives a message into `buffer`, which has room for [`MAX_MESSAGE`] bytes. The result tells
    /// whether there was a message.
    pub(super) fn receive(&mut self, buffer: &mut [u8]) -> io::Result<DnsReceived> {
        self.write()?;
        let Some(stream) = &mut self.stream else {
            return match (&self.socket).read(buffer) {
                Ok(length) => Ok(DnsReceived::Message(length)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    event_registration::after_short_receive(&self.socket);
                    Ok(DnsReceived::Nothing)
                }
                Err(error) => Err(error),
            };
        };
        loop {
            if let Some((length, rest)) = stream.received.split_first_chunk::<2>() {
                let length = usize::from(u16::from_be_bytes(*length));
                if let Some(message) = rest.get(..length) {
                    buffer[..length].copy_from_slice(message);
                    stream.received.drain(..2 + length);
                    return Ok(DnsReceived::Message(length));
                }
            }
            match (&self.socket).read(buffer) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(length) => stream.received.extend(&buffer[..length]),
                Err(error) if is_not_ready(&error) => {
                    event_registration::after_short_receive(&self.socket);
                    return Ok(DnsReceived::Nothing);
                }
                Err(error) => return Err(error),
            }
        }
    }
}

#[cfg(windows)]
impl Drop for DnsSocket {
    fn drop(&mut self) {
        event_registration::forget(&self.socket);
    }
}

/// Returns true if a call failed only because the socket is not connected or not ready yet, or
/// because of a signal.
fn is_not_ready(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::NotConnected | io::ErrorKind::Interrupted)
}

fn socket_address(server: &NameServer) -> io::Result<SocketAddr> {
    Ok(match (server.address, &server.interface) {
        (IpAddr::V6(address), Some(interface)) => {
            let scope = zone_index(interface).ok_or(io::ErrorKind::NotFound)?;
            SocketAddrV6::new(address, server.port, 0, scope).into()
        }
        (address, _) => SocketAddr::new(address, server.port),
    })
}
