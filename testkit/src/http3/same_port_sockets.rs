//! The sockets of servers that use the same port number over TCP and UDP.

use std::io;
use std::net::{SocketAddr, TcpListener, UdpSocket};

use socket2::{Domain, Socket, Type};

/// The length of a TCP listener's backlog, which is enough for a burst of connections.
const BACKLOG: i32 = 4096;
/// The maximum number of free TCP ports to try until the UDP port of the same number is free, too.
const PORT_ATTEMPTS: usize = 16;
/// The size of the buffers of a UDP socket in bytes. The system may grant less.
const UDP_BUFFER: usize = 4 << 20;

/// The TCP socket for TLS and, for HTTP/3, the UDP socket with the same port number.
pub(crate) struct HttpsSockets {
    /// A bound socket that does not listen yet.
    pub(crate) tcp: Socket,
    pub(crate) udp: Option<UdpSocket>,
}

impl HttpsSockets {
    pub(crate) fn bind(addr: SocketAddr, with_udp: bool) -> io::Result<HttpsSockets> {
        let mut attempts = PORT_ATTEMPTS;
        loop {
            let tcp = bind_tcp(addr)?;
            if !with_udp {
                return Ok(HttpsSockets { tcp, udp: None });
            }
            let bound = tcp.local_addr()?.as_socket().ok_or(io::ErrorKind::Unsupported)?;
            match bind_udp(bound) {
                Ok(udp) => return Ok(HttpsSockets { tcp, udp: Some(udp) }),
                Err(error) if addr.port() != 0 || attempts == 0 => return Err(error),
                Err(_) => attempts -= 1,
            }
        }
    }
}

/// Creates a non-blocking TCP listener whose backlog holds a burst of connections.
pub(crate) fn listen(addr: SocketAddr) -> io::Result<TcpListener> {
    listen_on(bind_tcp(addr)?)
}

/// Makes the bound socket listen.
pub(crate) fn listen_on(socket: Socket) -> io::Result<TcpListener> {
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}

/// Creates a non-blocking UDP socket on `addr`.
pub(crate) fn bind_udp(addr: SocketAddr) -> io::Result<UdpSocket> {
    let socket = Socket::new(Domain::for_address(addr), Type::DGRAM, None)?;
    // The system's limit counts if it is smaller.
    let _ = socket.set_recv_buffer_size(UDP_BUFFER).and_then(|()| socket.set_send_buffer_size(UDP_BUFFER));
    socket.set_nonblocking(true)?;
    socket.bind(&addr.into())?;
    Ok(socket.into())
}

fn bind_tcp(addr: SocketAddr) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(addr), Type::STREAM, None)?;
    socket.set_reuse_address(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&addr.into())?;
    Ok(socket)
}
