//! HTTP/3 for the servers of this crate: settings, faults that affect whole connections, and the
//! listener.
//!
//! QUIC is implemented by quinn, and HTTP/3 by the crate h3, whose frame and QPACK code is
//! independent of haul. [`origin`](crate::origin) and [`faulty`](crate::faulty) answer over HTTP/3
//! on the UDP port that has the number of their TLS port.
//!
//! ```
//! use testkit::http3::Http3Settings;
//! use testkit::origin::Origin;
//!
//! let origin = Origin::builder().http3(Http3Settings::new().retry()).start().unwrap();
//! assert_eq!(origin.quic_connections(), 0);
//! ```

use std::time::Duration;

mod connection_id_generator;
mod counting_socket;
mod quic_listener;
mod same_port_sockets;
mod session_counter;

pub(crate) use quic_listener::{CLOSE_TIME, QuicListener};
pub(crate) use same_port_sockets::{HttpsSockets, bind_udp, listen, listen_on};

/// The HTTP/3 settings of a server.
#[derive(Clone, Debug)]
pub struct Http3Settings {
    streams: u32,
    retry: bool,
    key_updates: bool,
    reset_key: Option<[u8; 64]>,
    idle_timeout: Option<Duration>,
    fault: Option<Http3Fault>,
}

impl Default for Http3Settings {
    fn default() -> Http3Settings {
        Http3Settings {
            streams: 100,
            retry: false,
            key_updates: false,
            reset_key: None,
            idle_timeout: None,
            fault: None,
        }
    }
}

impl Http3Settings {
    /// Returns the default settings: 100 concurrent requests on a connection, and no fault.
    pub fn new() -> Http3Settings {
        Http3Settings::default()
    }

    /// Sets the maximum number of concurrent requests that the server allows on a connection.
    /// Default: 100.
    pub fn streams(mut self, streams: u32) -> Http3Settings {
        self.streams = streams;
        self
    }

    /// Validates the address of each client by a Retry packet (RFC 9000 section 8.1.2). Default:
    /// no.
    pub fn retry(mut self) -> Http3Settings {
        self.retry = true;
        self
    }

    /// Starts a key update (RFC 9001 section 6) with each request that arrives, unless one is in
    /// progress. Default: no.
    pub fn key_updates(mut self) -> Http3Settings {
        self.key_updates = true;
        self
    }

    /// Derives the tokens of stateless resets (RFC 9000 section 10.3) from `key`. Also makes the
    /// server send no CONNECTION_CLOSE when it is dropped, so that clients keep their connections.
    /// A second server on the same port with the same key then answers the packets of these clients
    /// with stateless resets. Default: a random key, and CONNECTION_CLOSE is sent.
    pub fn reset_key(mut self, key: [u8; 64]) -> Http3Settings {
        self.reset_key = Some(key);
        self
    }

    /// Makes the server announce this `max_idle_timeout` (RFC 9000 section 18.2). Default: 30
    /// seconds, as in quinn. Also makes it announce a `max_udp_payload_size` of 1,200 bytes, so
    /// that clients send no PING frames to probe for larger datagrams. Their only PING frames are
    /// those that keep the connection open.
    pub fn idle_timeout(mut self, timeout: Duration) -> Http3Settings {
        self.idle_timeout = Some(timeout);
        self
    }

    /// Applies `fault` to every connection. Default: none.
    pub fn fault(mut self, fault: Http3Fault) -> Http3Settings {
        self.fault = Some(fault);
        self
    }

    pub(crate) fn has_key_updates(&self) -> bool {
        self.key_updates
    }

    /// Returns true if a server with these settings sends CONNECTION_CLOSE to its clients when it
    /// is dropped.
    pub(crate) fn closes_on_drop(&self) -> bool {
        self.reset_key.is_none()
    }
}

/// A fault that affects every QUIC connection to a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Http3Fault {
    /// The server reads no datagram, as if a firewall dropped all of them.
    Silent,
    /// The server refuses the connection: CONNECTION_CLOSE with CONNECTION_REFUSED.
    Refused,
    /// The server offers only an unknown version of QUIC, in a Version Negotiation packet.
    VersionNegotiation,
    /// The server knows no protocol named `h3`: the handshake fails with the TLS alert
    /// no_application_protocol.
    WrongAlpn,
    /// The handshake succeeds. Then the server opens no stream and answers no request.
    NoHttp3,
    /// The handshake succeeds. Then the server closes the connection with this HTTP/3 error code.
    Closed(u64),
}
