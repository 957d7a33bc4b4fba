//! The listening sockets. Each accepts connections to every address of 127.0.0.0/8, but only from
//! this machine, because it is bound to the loopback interface.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};

use mio::net::TcpListener;
use socket2::{Domain, Protocol, Socket, Type};

use super::PortBehavior;

const LOOPBACK: &[u8] = b"lo";
/// The maximum number of connections that wait in a listener's accept queue.
const BACKLOG: i32 = 4096;

/// A port of the page server, with the behaviour that it shows to clients, such as sending pages or
/// refusing connections.
pub(super) struct PagePort {
    pub(super) number: u16,
    pub(super) behavior: PortBehavior,
    socket: ListeningOrClosedSocket,
}

/// The socket of a port of the page server.
enum ListeningOrClosedSocket {
    Listening(TcpListener),
    /// A bound port that accepts no connections, kept so that no other program can bind it. The
    /// stream, if any, fills the accept queue, so that the kernel drops further SYN packets.
    #[expect(dead_code, reason = "held for their Drop")]
    Closed(Socket, Option<TcpStream>),
}

impl PagePort {
    /// Binds a free port with this behaviour. The system chooses the port.
    pub(super) fn open(behavior: PortBehavior) -> io::Result<PagePort> {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP))?;
        socket.bind_device(Some(LOOPBACK))?;
        socket.bind(&SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)).into())?;
        let address = socket.local_addr()?.as_socket_ipv4().ok_or_else(|| io::Error::other("no IPv4 address"))?;
        let number = address.port();
        let socket = match behavior {
            PortBehavior::Refuse => ListeningOrClosedSocket::Closed(socket, None),
            PortBehavior::DropSyn => {
                // A queue of length 0 holds one connection. Then the kernel drops SYN packets.
                socket.listen(0)?;
                ListeningOrClosedSocket::Closed(socket, Some(TcpStream::connect((Ipv4Addr::LOCALHOST, number))?))
            }
            _ => {
                // Accepted sockets inherit it.
                socket.set_tcp_nodelay(true)?;
                socket.set_nonblocking(true)?;
                socket.listen(BACKLOG)?;
                ListeningOrClosedSocket::Listening(TcpListener::from_std(socket.into()))
            }
        };
        Ok(PagePort { number, behavior, socket })
    }

    /// Returns the port's listener; `None` if the port accepts no connections.
    pub(super) fn listener(&mut self) -> Option<&mut TcpListener> {
        match &mut self.socket {
            ListeningOrClosedSocket::Listening(listener) => Some(listener),
            ListeningOrClosedSocket::Closed(..) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn closed_ports_refuse_or_drop_at_any_address() {
        let refusing = PagePort::open(PortBehavior::Refuse).unwrap();
        let dropping = PagePort::open(PortBehavior::DropSyn).unwrap();
        let connect = |port: &PagePort, address: [u8; 4]| {
            let address = SocketAddr::from((address, port.number));
            TcpStream::connect_timeout(&address, Duration::from_millis(200)).unwrap_err().kind()
        };
        for address in [[127, 0, 0, 1], [127, 16, 3, 4]] {
            assert_eq!(connect(&refusing, address), io::ErrorKind::ConnectionRefused);
            assert_eq!(connect(&dropping, address), io::ErrorKind::TimedOut);
        }
    }
}
