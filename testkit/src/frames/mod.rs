//! A scripted HTTP/2 peer on plain threads. It sends exactly the frames of its script and records
//! the frames that it receives. It is for tests with frames that no honest server sends, or that
//! must be sent at a moment that the test chooses.
//!
//! ```
//! use std::io::{Read, Write};
//! use testkit::frames::{self, H2Peer};
//!
//! let peer = H2Peer::start(|_, conn| {
//!     conn.greet(&[])?;
//!     let asked = conn.request()?;
//!     conn.send(frames::headers(asked.stream, false, &[(":status", "200")]))?;
//!     conn.send(frames::data(asked.stream, true, b"hello"))?;
//!     conn.drain()
//! });
//! let mut stream = std::net::TcpStream::connect(peer.addr()).unwrap();
//! stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").unwrap();
//! stream.write_all(&frames::settings(&[])).unwrap();
//! let fields = [(":method", "GET"), (":scheme", "http"), (":authority", "x"), (":path", "/a")];
//! stream.write_all(&frames::headers(1, true, &fields)).unwrap();
//! let expected = [frames::settings(&[]), frames::settings_ack()].concat();
//! let mut got = vec![0; expected.len()];
//! stream.read_exact(&mut got).unwrap();
//! assert_eq!(got, expected);
//! assert_eq!(peer.requests()[0].path(), "/a");
//! ```

mod h2_frame_encoding;
mod h2_peer_connection;

pub use h2_frame_encoding::{
    Frame, block, continuation, data, frame, goaway, headers, headers_open, ping, rst, settings, settings_ack,
    window_update,
};
pub use h2_peer_connection::{H2PeerRequest, H2ScriptConnection};

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use rustls::ServerConfig;

use crate::peer_stream::PeerStream;
use crate::scripted_peer_listener::{ScriptedPeer, ScriptedPeerState};
use crate::test_certificates::TestCertificates;

/// A running scripted HTTP/2 peer. Dropping it stops accepting connections; running scripts
/// continue until their connections end.
pub struct H2Peer(ScriptedPeer<H2ScriptState>);

#[derive(Default)]
struct H2ScriptState {
    connections: usize,
    requests: Vec<H2PeerRequest>,
    frames: Vec<(usize, Frame)>,
    released: u64,
}

impl H2Peer {
    /// Starts a peer that runs `serve` on each connection. `serve` receives the connection's
    /// number, counted from 0. If `serve` succeeds, the connection is closed properly; if it
    /// returns an error, the connection is cut off without close_notify.
    ///
    /// # Panics
    /// If no port can be bound on loopback.
    pub fn start(serve: impl Fn(usize, &mut H2ScriptConnection) -> io::Result<()> + Send + Sync + 'static) -> H2Peer {
        H2Peer::run(None, serve)
    }

    /// Starts a peer over TLS, with the server certificate of `identity`, that runs `serve` on each
    /// connection. ALPN selects `h2`, or `http/1.1` for a client that does not offer `h2`; the
    /// script then has to send HTTP/1.1.
    ///
    /// # Panics
    /// If no port can be bound on loopback.
    pub fn start_tls(
        identity: &TestCertificates,
        serve: impl Fn(usize, &mut H2ScriptConnection) -> io::Result<()> + Send + Sync + 'static,
    ) -> H2Peer {
        H2Peer::run(Some(identity.server_config(&[b"h2", b"http/1.1"])), serve)
    }

    fn run(
        tls: Option<Arc<ServerConfig>>,
        serve: impl Fn(usize, &mut H2ScriptConnection) -> io::Result<()> + Send + Sync + 'static,
    ) -> H2Peer {
        let play = move |stream, number, shared: &Arc<ScriptedPeerState<H2ScriptState>>| {
            let Ok(wire) = PeerStream::from_socket(stream, tls.as_ref()) else { return };
            let mut conn = H2ScriptConnection::new(wire, number, shared.clone());
            let outcome = serve(number, &mut conn);
            conn.finish(outcome.is_ok());
        };
        H2Peer(ScriptedPeer::start(|state: &mut H2ScriptState| state.connections += 1, play))
    }

    /// Returns the address on which the peer listens.
    pub fn addr(&self) -> SocketAddr {
        self.0.addr
    }

    /// Returns `http://ADDRESS` with `path`, which starts with a slash.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.addr())
    }

    /// Returns `https://localhost:PORT` with `path`, which starts with a slash.
    pub fn https_url(&self, path: &str) -> String {
        format!("https://localhost:{}{path}", self.addr().port())
    }

    /// Returns the number of connections accepted so far.
    pub fn connections(&self) -> usize {
        self.0.shared.lock().connections
    }

    /// Waits until scripts have read at least one request. Returns all requests read so far on all
    /// connections, in the order in which they were read.
    pub fn requests(&self) -> Vec<H2PeerRequest> {
        self.0.shared.wait(|state| !state.requests.is_empty());
        self.0.shared.lock().requests.clone()
    }

    /// Returns the frames that scripts have read so far, each with the number of its connection
    /// (counted from 0).
    pub fn frames(&self) -> Vec<(usize, Frame)> {
        self.0.shared.lock().frames.clone()
    }

    /// Waits until scripts have read a frame for which `wanted` returns true. `wanted` receives the
    /// number of the connection and the frame. Returns `false` after 30 seconds without such a
    /// frame.
    pub fn saw(&self, wanted: impl Fn(usize, &Frame) -> bool) -> bool {
        self.0.shared.wait(|state| state.frames.iter().any(|(connection, frame)| wanted(*connection, frame)))
    }

    /// Allows one more call of [`H2ScriptConnection::wait`] in a script to return.
    pub fn release(&self) {
        self.0.shared.change(|state| state.released += 1);
    }
}
