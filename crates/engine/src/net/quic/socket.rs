//! A UDP socket that is connected to one peer: sends and receives many datagrams by one system
//! call.
//!
//! Each QUIC connection has its own socket. A connected socket receives datagrams of its peer only,
//! reports ICMP errors (port unreachable), and needs no table that assigns datagrams to
//! connections.
//!
//! | direction | by one system call |
//! |---|---|
//! | send | the segments of one buffer (`UDP_SEGMENT`) |
//! | receive | several batches of equal datagrams (`recvmmsg`, `UDP_GRO`) |
//!
//! If the options set the type of service or the priority of packets, datagrams are sent one by
//! one: both are socket options, and the ancillary data of a batch would override them.
//!
//! Rejected: one socket for all connections of a worker. It would save descriptors, but each
//! datagram would be looked up, and a refusal would not say which connection it concerns.

use std::io::{self, IoSliceMut};
use std::net::SocketAddr;

use quinn_proto::{EcnCodepoint, Transmit};
use quinn_udp::{RecvMeta, UdpSockRef, UdpSocketState};
use rustix::fd::{AsFd, BorrowedFd};
use rustix::io::{Errno, retry_on_intr};
use rustix::net::{SendFlags, send};
use socket2::{Domain, Protocol, SockAddr, Type};

use crate::net::event_registration;
use crate::net::local_address::LocalBinding;

/// The requested size of the receive buffer in bytes. The system grants less without privileges
/// (`net.core.rmem_max`). A larger buffer loses fewer datagrams while the thread is busy.
const RECEIVE_BUFFER: usize = 4 << 20;
/// The requested size of the send buffer in bytes. The system may grant less.
const SEND_BUFFER: usize = 1 << 20;
/// The bits of a type of service that are the ECN codepoint (RFC 3168 section 5).
const ECN_BITS: u8 = 0b11;

/// The reason why a socket could not be opened, bound or connected.
pub(super) enum QuicSocketOpenError {
    /// The socket cannot be bound to the requested interface, address or port.
    Bind(io::Error),
    /// The socket cannot be opened or connected.
    Connect(io::Error),
}

/// A non-blocking UDP socket, connected to one peer.
#[derive(Debug)]
pub(super) struct QuicSocket {
    socket: socket2::Socket,
    state: UdpSocketState,
    peer: SocketAddr,
    /// The size of the receive buffer in bytes, as the system has granted it.
    receive_buffer: usize,
    /// The type of service and the priority of sent packets; `None` if the options set no such
    /// value.
    marks: Option<SentPacketTosAndPriority>,
}

/// The type of service and the priority of sent packets, as the options set them. Also contains the
/// ECN codepoint, which is a part of the type of service.
#[derive(Debug)]
struct SentPacketTosAndPriority {
    type_of_service: u8,
    priority: Option<u8>,
    ecn: Option<EcnCodepoint>,
}

impl SentPacketTosAndPriority {
    /// Makes the type of service and priority that these options set, without an ECN codepoint.
    /// Returns `None` if the options set neither.
    fn from_options(bind: &LocalBinding) -> Option<Self> {
        let is_set = bind.type_of_service.is_some() || bind.priority.is_some();
        let type_of_service = bind.type_of_service.unwrap_or(0) & !ECN_BITS;
        is_set.then_some(Self { type_of_service, priority: bind.priority, ecn: None })
    }

    /// Sets the type of service and the priority as options of the socket.
    fn apply(&self, socket: &socket2::Socket, peer: SocketAddr) {
        let ecn = self.ecn.map_or(0, |codepoint| codepoint as u8);
        let type_of_service = Some(self.type_of_service | ecn);
        LocalBinding { type_of_service, priority: self.priority, ..LocalBinding::default() }
            .set_packet_marks(socket, &peer);
    }
}

impl QuicSocket {
    /// Opens a socket, binds it to the local address, and connects it to the peer.
    pub(super) fn open(peer: SocketAddr, bind: &LocalBinding) -> Result<Self, QuicSocketOpenError> {
        let domain = if peer.is_ipv4() { Domain::IPV4 } else { Domain::IPV6 };
        let socket =
            socket2::Socket::new(domain, Type::DGRAM, Some(Protocol::UDP)).map_err(QuicSocketOpenError::Connect)?;
        bind.apply(&socket, &peer).map_err(QuicSocketOpenError::Bind)?;
        socket.connect(&SockAddr::from(peer)).map_err(QuicSocketOpenError::Connect)?;
        let state = UdpSocketState::new(UdpSockRef::from(&socket)).map_err(QuicSocketOpenError::Connect)?;
        // A refusal leaves the system's size.
        let _ = socket.set_recv_buffer_size(RECEIVE_BUFFER);
        let _ = socket.set_send_buffer_size(SEND_BUFFER);
        let marks = SentPacketTosAndPriority::from_options(bind);
        if let Some(marks) = &marks {
            marks.apply(&socket, peer);
        }
        let receive_buffer = socket.recv_buffer_size().unwrap_or(0);
        Ok(Self { socket, state, peer, receive_buffer, marks })
    }

    /// Connects the socket to its peer again, so that the system chooses a new local address. The
    /// descriptor stays the same.
    pub(super) fn rebind(&self) -> io::Result<()> {
        // Windows has no such call, so the local address may stay the same.
        #[cfg(unix)]
        rustix::net::connect_unspec(&self.socket)?;
        self.socket.connect(&SockAddr::from(self.peer))
    }

    /// Returns the address of the peer.
    pub(super) fn peer(&self) -> SocketAddr {
        self.peer
    }

    /// Returns the local address; `None` if the system does not report it.
    pub(super) fn local(&self) -> Option<SocketAddr> {
        self.socket.local_addr().ok()?.as_socket()
    }

    /// Returns the size of the receive buffer in bytes.
    pub(super) fn receive_buffer(&self) -> usize {
        self.receive_buffer
    }

    /// Returns the maximum number of datagrams that the system sends in one call.
    pub(super) fn max_segments(&self) -> usize {
        if self.marks.is_some() { 1 } else { self.state.max_gso_segments() }
    }

    /// Returns true if datagrams may be fragmented on the path. The path MTU can then not be
    /// discovered.
    pub(super) fn may_fragment(&self) -> bool {
        self.state.may_fragment()
    }

    /// Sends the datagrams that `transmit` describes. `bytes` contains their payloads.
    pub(super) fn send(&mut self, transmit: &Transmit, bytes: &[u8]) -> io::Result<()> {
        if let Some(marks) = &mut self.marks {
            if marks.ecn != transmit.ecn {
                marks.ecn = transmit.ecn;
                marks.apply(&self.socket, self.peer);
            }
            let sent = retry_on_intr(|| send(&self.socket, bytes, SendFlags::empty()));
            event_registration::after_send(&self.socket, sent != Err(Errno::WOULDBLOCK));
            return Ok(sent.map(drop)?);
        }
        let ecn = transmit.ecn.map(|codepoint| match codepoint {
            EcnCodepoint::Ect0 => quinn_udp::EcnCodepoint::Ect0,
            EcnCodepoint::Ect1 => quinn_udp::EcnCodepoint::Ect1,
            EcnCodepoint::Ce => quinn_udp::EcnCodepoint::Ce,
        });
        let sent = self.state.try_send(
            UdpSockRef::from(&self.socket),
            &quinn_udp::Transmit {
                destination: self.peer,
                ecn,
                contents: bytes,
                segment_size: transmit.segment_size,
                src_ip: None,
            },
        );
        let is_full = sent.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock);
        event_registration::after_send(&self.socket, !is_full);
        sent
    }

    /// Receives available datagrams into `buffers`, and writes a description of each buffer's
    /// content into `meta`. Returns the number of filled buffers.
    pub(super) fn receive(&self, buffers: &mut [IoSliceMut<'_>], meta: &mut [RecvMeta]) -> io::Result<usize> {
        let received = self.state.recv(UdpSockRef::from(&self.socket), buffers, meta);
        // The caller does not always receive until there is nothing left.
        event_registration::after_short_receive(&self.socket);
        received
    }
}

#[cfg(windows)]
impl Drop for QuicSocket {
    fn drop(&mut self) {
        event_registration::forget(&self.socket);
    }
}

impl AsFd for QuicSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::UdpSocket;

    use super::*;
    use crate::net::happy_eyeballs::ConnectOptions;

    /// Opens a raw socket, which receives packets with their IP headers. If this process may not do
    /// so, prints the reason and returns `None`.
    fn raw_socket() -> Option<socket2::Socket> {
        match socket2::Socket::new(Domain::IPV4, Type::RAW, Some(Protocol::UDP)) {
            Ok(socket) => Some(socket),
            Err(error) => {
                let _ = writeln!(io::stderr(), "skipped: a raw socket: {error}");
                None
            }
        }
    }

    /// Receives the next packet to this UDP port, and returns its type of service.
    fn type_of_service(mut raw: &socket2::Socket, port: u16) -> u8 {
        let mut packet = [0; 2048];
        loop {
            let len = raw.read(&mut packet).unwrap();
            let header = usize::from(packet[0] & 0xf) * 4;
            if packet[..len].get(header + 2..header + 4) == Some(&port.to_be_bytes()[..]) {
                return packet[1];
            }
        }
    }

    #[test]
    fn datagrams_carry_type_of_service_and_ecn() {
        let Some(raw) = raw_socket() else { return };
        let listener = UdpSocket::bind("127.0.0.1:0").unwrap();
        let peer = listener.local_addr().unwrap();
        let of = |type_of_service, priority| {
            LocalBinding::from_options(&ConnectOptions { type_of_service, priority, ..ConnectOptions::default() })
        };
        for (bind, expected) in [(of(None, None), 0), (of(Some(0xbb), Some(5)), 0xb8), (of(None, Some(5)), 0)] {
            let open = QuicSocket::open(peer, &bind);
            let open = open.map_err(|(QuicSocketOpenError::Bind(error) | QuicSocketOpenError::Connect(error))| error);
            let mut socket = open.unwrap();
            for ecn in [Some(EcnCodepoint::Ect0), None] {
                let transmit = Transmit { destination: peer, ecn, size: 2, segment_size: None, src_ip: None };
                socket.send(&transmit, b"ab").unwrap();
                let bits = ecn.map_or(0, |ecn| ecn as u8);
                assert_eq!(type_of_service(&raw, peer.port()), expected | bits, "{bind:?}");
            }
            #[cfg(target_os = "linux")]
            assert_eq!(socket.socket.priority().unwrap(), bind.priority.map_or(0, u32::from));
        }
    }
}
