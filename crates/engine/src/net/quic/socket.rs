//! A UDP socket that is connected to one peer: sends and receives many datagrams by one system call.
//!
//! Each QUIC connection has its own socket. A connected socket receives datagrams of its peer only,
//! reports that nobody listens at the peer's port (ICMP), and needs no table that assigns datagrams
//! to connections.
//!
//! | direction | by one system call |
//! |---|---|
//! | send | the segments of one buffer (`UDP_SEGMENT`) |
//! | receive | several batches of equal datagrams (`recvmmsg`, `UDP_GRO`) |
//!
//! The type of service of each datagram carries ECN, so the options' type of service has no effect.
//!
//! Rejected: one socket for all connections of a worker. It would save descriptors, but each
//! datagram would be looked up, and a refusal would not say which connection it concerns.

use std::io::{self, IoSliceMut};
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};

use quinn_proto::{EcnCodepoint, Transmit};
use quinn_udp::{RecvMeta, UdpSockRef, UdpSocketState};
use socket2::{Domain, Protocol, SockAddr, Type};

use crate::net::local_address::LocalBinding;

/// The requested size of the receive buffer in bytes. The system grants less without privileges
/// (`net.core.rmem_max`). A larger buffer loses fewer datagrams while the thread is busy.
const RECEIVE_BUFFER: usize = 4 << 20;
/// The requested size of the send buffer in bytes.
const SEND_BUFFER: usize = 1 << 20;

/// The reason why a local socket could not be made ready.
pub(super) enum QuicSocketError {
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
}

impl QuicSocket {
    /// Opens a socket, binds it to the local address, and connects it to the peer.
    pub(super) fn open(peer: SocketAddr, bind: &LocalBinding) -> Result<Self, QuicSocketError> {
        let domain = if peer.is_ipv4() { Domain::IPV4 } else { Domain::IPV6 };
        let socket =
            socket2::Socket::new(domain, Type::DGRAM, Some(Protocol::UDP)).map_err(QuicSocketError::Connect)?;
        bind.apply(&socket, &peer).map_err(QuicSocketError::Bind)?;
        socket.connect(&SockAddr::from(peer)).map_err(QuicSocketError::Connect)?;
        let state = UdpSocketState::new(UdpSockRef::from(&socket)).map_err(QuicSocketError::Connect)?;
        // A refusal leaves the system's size.
        let _ = socket.set_recv_buffer_size(RECEIVE_BUFFER);
        let _ = socket.set_send_buffer_size(SEND_BUFFER);
        Ok(Self { socket, state, peer })
    }

    /// Connects the socket to its peer again, so that the system chooses the local address anew. The
    /// descriptor stays the same.
    pub(super) fn rebind(&self) -> io::Result<()> {
        rustix::net::connect_unspec(&self.socket)?;
        self.socket.connect(&SockAddr::from(self.peer))
    }

    /// Returns the address of the peer.
    pub(super) fn peer(&self) -> SocketAddr {
        self.peer
    }

    /// Returns the local address.
    pub(super) fn local(&self) -> Option<SocketAddr> {
        self.socket.local_addr().ok()?.as_socket()
    }

    /// Returns the largest number of datagrams that one send may have.
    pub(super) fn max_segments(&self) -> usize {
        self.state.max_gso_segments()
    }

    /// Returns true if the path may fragment datagrams, so that their largest size cannot be found.
    pub(super) fn may_fragment(&self) -> bool {
        self.state.may_fragment()
    }

    /// Sends the datagrams of `transmit`, whose contents are `bytes`.
    pub(super) fn send(&self, transmit: &Transmit, bytes: &[u8]) -> io::Result<()> {
        let ecn = transmit.ecn.map(|codepoint| match codepoint {
            EcnCodepoint::Ect0 => quinn_udp::EcnCodepoint::Ect0,
            EcnCodepoint::Ect1 => quinn_udp::EcnCodepoint::Ect1,
            EcnCodepoint::Ce => quinn_udp::EcnCodepoint::Ce,
        });
        self.state.try_send(
            UdpSockRef::from(&self.socket),
            &quinn_udp::Transmit {
                destination: self.peer,
                ecn,
                contents: bytes,
                segment_size: transmit.segment_size,
                src_ip: None,
            },
        )
    }

    /// Receives available datagrams into `buffers`, and describes the content of each buffer in
    /// `meta`. Returns the number of filled buffers.
    pub(super) fn receive(&self, buffers: &mut [IoSliceMut<'_>], meta: &mut [RecvMeta]) -> io::Result<usize> {
        self.state.recv(UdpSockRef::from(&self.socket), buffers, meta)
    }
}

impl AsFd for QuicSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
