//! A scripted HTTP/3 peer. It sends exactly the bytes of its script on its streams, and records the
//! bytes that it receives. It is for tests with frames and QPACK instructions that no honest server
//! sends.
//!
//! The QUIC implementation is quinn; no HTTP/3 library is used. A script runs on its own thread and
//! blocks.
//!
//! ```
//! use testkit::h3_peer::{self, H3Peer};
//!
//! let peer = H3Peer::start(|_, conn| {
//!     conn.greet(&[])?;
//!     let request = conn.request()?;
//!     conn.send(request.stream, h3_peer::headers(&[(":status", "200")]))?;
//!     conn.send(request.stream, h3_peer::data(b"hello"))?;
//!     conn.finish(request.stream)?;
//!     conn.wait_closed()
//! });
//! assert!(peer.url("/a").starts_with("https://localhost:"));
//! assert_eq!(peer.connections(), 0);
//! ```

mod conn;
mod encode;

pub use conn::{H3Request, H3ScriptConnection};
pub use encode::{
    CONTROL_STREAM, DATA, DECODER_STREAM, ENCODER_STREAM, GOAWAY, HEADERS, PUSH_PROMISE, PUSH_STREAM, SETTINGS,
    capacity, data, decode_varint, frame, goaway, headers, insert, prefixed, section, section_prefix, settings, varint,
};

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::panic::{self, AssertUnwindSafe};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use tokio::runtime::{self, Runtime};

use crate::http3::{Http3Settings, QuicListener, bind_udp};
use crate::scripted_peer_listener::ScriptedPeerState;
use crate::test_certificates::TestCertificates;

/// The bytes that a client has sent on one of its unidirectional streams.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReceivedUniStream {
    /// The number of the connection, counted from 0.
    pub connection: usize,
    /// The stream ID.
    pub stream: u64,
    /// The bytes received so far, including the stream type at their start.
    pub bytes: Vec<u8>,
}

/// The data that the scripts record: the requests and streams that the peer has received, and the
/// connections and scripts that have ended. Also counts the calls of [`H3Peer::release`].
#[derive(Default)]
struct H3ScriptState {
    connections: usize,
    requests: Vec<H3Request>,
    uni_streams: Vec<ReceivedUniStream>,
    /// The numbers of the closed connections, each with the HTTP/3 error code that the client sent;
    /// `None` if it sent none.
    closed: Vec<(usize, Option<u64>)>,
    finished: usize,
    released: u64,
    is_stopping: bool,
}

/// A running scripted HTTP/3 peer. Dropping it closes its connections and waits until its scripts
/// end.
pub struct H3Peer {
    addr: SocketAddr,
    ca_pem: String,
    shared: Arc<ScriptedPeerState<H3ScriptState>>,
    listener: Arc<QuicListener>,
    runtime: Option<Runtime>,
}

impl H3Peer {
    /// Starts a peer on a free port of 127.0.0.1 that runs `serve` on each connection after its
    /// handshake. `serve` receives the connection's number, counted from 0. The connection is
    /// closed when `serve` returns: with H3_NO_ERROR if it succeeds, with H3_INTERNAL_ERROR if it
    /// fails.
    ///
    /// # Panics
    /// If no port can be bound on loopback.
    pub fn start(serve: impl Fn(usize, &mut H3ScriptConnection) -> io::Result<()> + Send + Sync + 'static) -> H3Peer {
        H3Peer::start_with(Http3Settings::new(), &TestCertificates::generate(), serve)
    }

    /// Starts a peer as [`H3Peer::start`] does, with these settings and the server certificate of
    /// `identity`.
    ///
    /// # Panics
    /// If no port can be bound on loopback.
    pub fn start_with(
        settings: Http3Settings,
        identity: &TestCertificates,
        serve: impl Fn(usize, &mut H3ScriptConnection) -> io::Result<()> + Send + Sync + 'static,
    ) -> H3Peer {
        let runtime = runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .thread_name("testkit-h3-peer")
            .build()
            .expect("a runtime");
        let socket = bind_udp((Ipv4Addr::LOCALHOST, 0).into()).expect("a port on loopback");
        let addr = socket.local_addr().expect("a bound socket has an address");
        let context = runtime.enter();
        let listener = Arc::new(QuicListener::start(socket, identity, settings).expect("a QUIC endpoint"));
        drop(context);
        let shared = Arc::new(ScriptedPeerState::<H3ScriptState>::new());
        runtime.spawn(accept(listener.clone(), shared.clone(), Arc::new(serve)));
        H3Peer { addr, ca_pem: identity.ca_pem().to_owned(), shared, listener, runtime: Some(runtime) }
    }

    /// Returns the address on which the peer listens.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Returns `https://localhost:PORT` with `path`, which starts with a slash.
    pub fn url(&self, path: &str) -> String {
        format!("https://localhost:{}{path}", self.addr.port())
    }

    /// Returns the certificate of the CA that signed the peer's certificate, in PEM.
    pub fn ca_pem(&self) -> &str {
        &self.ca_pem
    }

    /// Returns the number of connections whose handshake has succeeded.
    pub fn connections(&self) -> usize {
        self.shared.lock().connections
    }

    /// Waits until the handshake of a connection has succeeded. Returns `false` if none has after
    /// 30 seconds.
    pub fn wait_for_connection(&self) -> bool {
        self.shared.wait(|state| state.connections > 0)
    }

    /// Returns the number of scripts that have ended.
    pub fn finished(&self) -> usize {
        self.shared.lock().finished
    }

    /// Waits until scripts have read at least one request. Returns all requests read so far on all
    /// connections, in the order in which they were read.
    pub fn requests(&self) -> Vec<H3Request> {
        self.shared.wait(|state| !state.requests.is_empty());
        self.shared.lock().requests.clone()
    }

    /// Returns the data that clients have sent so far on unidirectional streams, one item for each
    /// stream.
    pub fn uni_streams(&self) -> Vec<ReceivedUniStream> {
        self.shared.lock().uni_streams.clone()
    }

    /// Waits until a client has sent bytes on a unidirectional stream for which `wanted` returns
    /// true. Returns `false` after 30 seconds without such bytes.
    pub fn saw(&self, wanted: impl Fn(&ReceivedUniStream) -> bool) -> bool {
        self.shared.wait(|state| state.uni_streams.iter().any(&wanted))
    }

    /// Waits until the connection with this number has ended. Returns the HTTP/3 error code with
    /// which the client closed it; `None` if it ended otherwise.
    pub fn close_code(&self, connection: usize) -> Option<u64> {
        self.shared.wait(|state| state.closed.iter().any(|(number, _)| *number == connection));
        self.shared.lock().closed.iter().find(|(number, _)| *number == connection)?.1
    }

    /// Allows one more call of [`H3ScriptConnection::wait`] in a script to return.
    pub fn release(&self) {
        self.shared.change(|state| state.released += 1);
    }
}

impl Drop for H3Peer {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            self.shared.change(|state| state.is_stopping = true);
            self.listener.close();
            // The scripts' threads use the runtime until they know that their connections are
            // closed.
            self.shared.wait(|state| state.finished == state.connections);
            runtime.shutdown_timeout(Duration::from_secs(1));
        }
    }
}

type Script = dyn Fn(usize, &mut H3ScriptConnection) -> io::Result<()> + Send + Sync;

async fn accept(listener: Arc<QuicListener>, shared: Arc<ScriptedPeerState<H3ScriptState>>, serve: Arc<Script>) {
    while let Some(incoming) = listener.accept().await {
        let (listener, shared, serve) = (listener.clone(), shared.clone(), serve.clone());
        tokio::spawn(async move {
            let Some(connection) = listener.handshake(incoming).await else { return };
            let mut number = 0;
            shared.change(|state| {
                number = state.connections;
                state.connections += 1;
            });
            conn::record(connection.clone(), number, shared.clone());
            let mut script = H3ScriptConnection::new(connection, number, shared.clone());
            thread::spawn(move || {
                // A script that panics has failed, too.
                let outcome = panic::catch_unwind(AssertUnwindSafe(|| serve(number, &mut script)));
                let outcome = outcome.unwrap_or_else(|_| Err(io::ErrorKind::Other.into()));
                script.close(if outcome.is_ok() { conn::H3_NO_ERROR } else { conn::H3_INTERNAL_ERROR });
                shared.change(|state| state.finished += 1);
            });
        });
    }
}
