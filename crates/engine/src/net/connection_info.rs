//! The facts of an open connection that its transfers report.

use std::net::SocketAddr;
use std::sync::Arc;

use super::stream::ConnectionStream;
use crate::transfer_facts::TlsFacts;

/// The facts of an open connection, of a byte stream or of QUIC.
pub trait ConnectionInfo {
    /// Returns the number of the connection among all connections of the process, counted from 0.
    fn number(&self) -> u64;

    /// Returns the address of the peer, or of the proxy if there is one. `None` on a Unix socket.
    fn peer(&self) -> Option<SocketAddr>;

    /// Returns the local address, if it was requested.
    fn local(&self) -> Option<SocketAddr>;

    /// Returns the fault of the server's certificate, if there is one and
    /// [`TlsOptions::examine`](super::tls::TlsOptions::examine) is set.
    fn certificate_fault(&self) -> Option<&str>;

    /// Returns the server's certificates, if
    /// [`TlsOptions::keep_certificates`](super::tls::TlsOptions::keep_certificates) is set.
    fn certificates(&self) -> Option<&Arc<[Vec<u8>]>>;

    /// Returns the parameters of the TLS session; `None` without TLS.
    fn tls(&self) -> Option<TlsFacts>;

    /// Describes the TLS session and the server's certificate in lines of text.
    fn lines(&self) -> Vec<String>;
}

impl ConnectionInfo for ConnectionStream {
    fn number(&self) -> u64 {
        self.number
    }

    fn peer(&self) -> Option<SocketAddr> {
        self.peer
    }

    fn local(&self) -> Option<SocketAddr> {
        self.local
    }

    fn certificate_fault(&self) -> Option<&str> {
        self.certificate_fault()
    }

    fn certificates(&self) -> Option<&Arc<[Vec<u8>]>> {
        self.certificates()
    }

    fn tls(&self) -> Option<TlsFacts> {
        self.tls_facts()
    }

    fn lines(&self) -> Vec<String> {
        self.session_lines()
    }
}

#[cfg(feature = "http3")]
impl ConnectionInfo for super::quic::QuicConnection {
    fn number(&self) -> u64 {
        self.number
    }

    fn peer(&self) -> Option<SocketAddr> {
        Some(self.peer())
    }

    fn local(&self) -> Option<SocketAddr> {
        self.local
    }

    fn certificate_fault(&self) -> Option<&str> {
        self.session()?.certificate_fault()
    }

    fn certificates(&self) -> Option<&Arc<[Vec<u8>]>> {
        self.session()?.certificates()
    }

    fn tls(&self) -> Option<TlsFacts> {
        self.session().map(|session| session.facts())
    }

    fn lines(&self) -> Vec<String> {
        self.session().map(|session| session.lines()).unwrap_or_default()
    }
}
