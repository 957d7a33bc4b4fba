//! One connection of a server on plain threads, with or without TLS, and the methods that end it.
//!
//! [`h1_peer`](crate::h1_peer) and [`faulty`](crate::faulty) use it. A connection can be closed
//! properly, cut off without close_notify, or reset. An ordinary server cannot choose between
//! these.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use rustls::{ServerConfig, ServerConnection, StreamOwned};
use socket2::SockRef;

pub(crate) enum PeerStream {
    Plain(TcpStream),
    Tls(Box<StreamOwned<ServerConnection, TcpStream>>),
}

impl PeerStream {
    /// Wraps an accepted socket. If there is a TLS configuration, the first read or write performs
    /// the handshake.
    pub(crate) fn from_socket(stream: TcpStream, tls: Option<&Arc<ServerConfig>>) -> io::Result<PeerStream> {
        stream.set_nodelay(true)?;
        Ok(match tls {
            None => PeerStream::Plain(stream),
            Some(config) => {
                let session = ServerConnection::new(config.clone()).map_err(io::Error::other)?;
                PeerStream::Tls(Box::new(StreamOwned::new(session, stream)))
            }
        })
    }

    pub(crate) fn socket(&self) -> &TcpStream {
        match self {
            PeerStream::Plain(stream) => stream,
            PeerStream::Tls(stream) => &stream.sock,
        }
    }

    /// Shuts down the sending side. Over TLS, close_notify is sent first.
    pub(crate) fn half_close(&mut self) -> io::Result<()> {
        self.notify()?;
        self.socket().shutdown(Shutdown::Write)
    }

    /// Closes the connection properly. Over TLS, close_notify is sent first.
    pub(crate) fn close(mut self) -> io::Result<()> {
        self.notify()?;
        self.close_without_notify()
    }

    /// Closes the connection without a TLS close_notify. First reads the data that the client has
    /// sent, because unread data would turn the close into a reset, and a reset can overtake bytes
    /// in flight to the client.
    pub(crate) fn close_without_notify(self) -> io::Result<()> {
        let mut socket = self.socket();
        socket.shutdown(Shutdown::Write)?;
        socket.set_nonblocking(true)?;
        let mut sink = [0; 4096];
        while socket.read(&mut sink)? > 0 {}
        Ok(())
    }

    /// Resets the TCP connection. Bytes still in the socket's send buffer are lost, as on a real
    /// network.
    pub(crate) fn reset(self) -> io::Result<()> {
        SockRef::from(self.socket()).set_linger(Some(Duration::ZERO))
    }

    fn notify(&mut self) -> io::Result<()> {
        if let PeerStream::Tls(stream) = self {
            stream.conn.send_close_notify();
            stream.flush()?;
        }
        Ok(())
    }
}

impl Read for PeerStream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            PeerStream::Plain(stream) => stream.read(buffer),
            PeerStream::Tls(stream) => stream.read(buffer),
        }
    }
}

impl Write for PeerStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            PeerStream::Plain(stream) => stream.write(bytes),
            PeerStream::Tls(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            PeerStream::Plain(stream) => stream.flush(),
            PeerStream::Tls(stream) => stream.flush(),
        }
    }
}
