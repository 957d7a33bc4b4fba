//! Information about an open connection that its transfers report.

use std::net::SocketAddr;
use std::sync::Arc;

use super::stream::ConnectionStream;
use crate::transfer_facts::TlsFacts;

/// The properties of an open connection, which is either a byte stream or a QUIC connection.
pub trait ConnectionInfo {
    /// Returns the sequence number of the connection among all connections of the process, counted
    /// from 0.
    fn number(&self) -> u64;

    /// Returns the address of the peer, or of the proxy if there is one. `None` on a Unix socket.
    fn peer(&self) -> Option<SocketAddr>;

    /// Returns the local address of the connection; `None` if the connect options did not request
    /// it.
    fn local(&self) -> Option<SocketAddr>;

    /// Returns the fault of the server's certificate. `None` if the certificate has no fault, or if
    /// [`TlsOptions::examine`](super::tls::TlsOptions::examine) is not set.
    fn certificate_fault(&self) -> Option<&str>;

    /// Returns the fault of the certificate of the last https proxy on the route. `None` if there
    /// is no such proxy or no fault, or without
    /// [`TlsOptions::examine`](super::tls::TlsOptions::examine). By default, returns `None`.
    fn proxy_certificate_fault(&self) -> Option<&str> {
        None
    }

    /// Returns the server's certificates, or `None` if
    /// [`TlsOptions::keep_certificates`](super::tls::TlsOptions::keep_certificates) is not set.
    fn certificates(&self) -> Option<&Arc<[Vec<u8>]>>;

    /// Returns the parameters of the TLS session; `None` without TLS.
    fn tls(&self) -> Option<TlsFacts>;

    /// Returns lines of text that describe the TLS session and the server's certificate, for
    /// verbose output.
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

    fn proxy_certificate_fault(&self) -> Option<&str> {
        self.proxy_fault.as_deref()
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
