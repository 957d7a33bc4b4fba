//! A scripted HTTP/2 peer on plain threads: it sends exactly the frames it is told to, and keeps
//! those it received. For frames that no honest server sends, and for those sent at a moment of the
//! test's choice.
//!
//! ```
//! use std::io::{Read, Write};
//! use testkit::frames::{self, FramePeer};
//!
//! let peer = FramePeer::start(|_, conn| {
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

mod conn;
mod wire;

pub use conn::{Asked, Conn};
pub use wire::{
    Frame, block, continuation, data, frame, goaway, headers, headers_open, ping, rst, settings, settings_ack,
    window_update,
};

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustls::ServerConfig;

use crate::identity::Identity;
use crate::wire::Wire;

/// The time for which a read waits for a silent client before the script is given up.
const PATIENCE: Duration = Duration::from_secs(30);

/// A running peer. Dropping it stops it from accepting; scripts under way end with their
/// connections.
pub struct FramePeer {
    addr: SocketAddr,
    shared: Arc<FramePeerState>,
}

/// The state shared by the threads of a peer.
struct FramePeerState {
    state: Mutex<FrameScriptState>,
    changed: Condvar,
    stop: AtomicBool,
}

#[derive(Default)]
struct FrameScriptState {
    connections: usize,
    requests: Vec<Asked>,
    frames: Vec<(usize, Frame)>,
    released: u64,
}

impl FramePeer {
    /// Every connection is served by this, which is told its number (from 0). An error, such as a
    /// client that disconnects, ends the connection; at the end of the script it is closed
    /// properly.
    ///
    /// # Panics
    /// If no port can be bound on loopback.
    pub fn start(serve: impl Fn(usize, &mut Conn) -> io::Result<()> + Send + Sync + 'static) -> FramePeer {
        FramePeer::run(None, Arc::new(serve))
    }

    /// The same over TLS with the identity's certificate, by ALPN: a client that offers no HTTP/2
    /// gets HTTP/1.1, if the script speaks it.
    ///
    /// # Panics
    /// If no port can be bound on loopback.
    pub fn start_tls(
        identity: &Identity,
        serve: impl Fn(usize, &mut Conn) -> io::Result<()> + Send + Sync + 'static,
    ) -> FramePeer {
        FramePeer::run(Some(identity.server_config(&[b"h2", b"http/1.1"])), Arc::new(serve))
    }

    fn run(tls: Option<Arc<ServerConfig>>, serve: Arc<Serve>) -> FramePeer {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port on loopback");
        let addr = listener.local_addr().expect("a bound socket has an address");
        let shared =
            Arc::new(FramePeerState { state: Mutex::default(), changed: Condvar::new(), stop: AtomicBool::new(false) });
        let accepting = shared.clone();
        thread::spawn(move || accept(&listener, tls.as_ref(), &serve, &accepting));
        FramePeer { addr, shared }
    }

    /// Returns the address.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// `http://ADDRESS` and `path`, which starts with a slash.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.addr)
    }

    /// `https://localhost:PORT` and `path`, which starts with a slash.
    pub fn https_url(&self, path: &str) -> String {
        format!("https://localhost:{}{path}", self.addr.port())
    }

    /// Returns the number of connections accepted so far.
    pub fn connections(&self) -> usize {
        self.shared.lock().connections
    }

    /// The requests that scripts read so far, of all connections, in order.
    pub fn requests(&self) -> Vec<Asked> {
        self.shared.wait(|state| !state.requests.is_empty());
        self.shared.lock().requests.clone()
    }

    /// The frames that scripts read so far, each with the number of its connection.
    pub fn frames(&self) -> Vec<(usize, Frame)> {
        self.shared.lock().frames.clone()
    }

    /// Waits until a frame arrived for which `wanted` is true; false if that takes longer than 30
    /// seconds.
    pub fn saw(&self, wanted: impl Fn(usize, &Frame) -> bool) -> bool {
        self.shared.wait(|state| state.frames.iter().any(|(connection, frame)| wanted(*connection, frame)))
    }

    /// Lets the next [`Conn::wait`] pass.
    pub fn release(&self) {
        self.shared.lock().released += 1;
        self.shared.changed.notify_all();
    }
}

impl Drop for FramePeer {
    fn drop(&mut self) {
        self.shared.stop.store(true, SeqCst);
        // Wakes the accept call; if it fails there is nobody to wake.
        let _ = TcpStream::connect(self.addr);
    }
}

impl FramePeerState {
    fn lock(&self) -> MutexGuard<'_, FrameScriptState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait(&self, done: impl Fn(&FrameScriptState) -> bool) -> bool {
        let end = Instant::now() + PATIENCE;
        let mut state = self.lock();
        while !done(&state) {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            state = self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }
}

type Serve = dyn Fn(usize, &mut Conn) -> io::Result<()> + Send + Sync;

fn accept(listener: &TcpListener, tls: Option<&Arc<ServerConfig>>, serve: &Arc<Serve>, shared: &Arc<FramePeerState>) {
    for number in 0.. {
        let Ok((stream, _)) = listener.accept() else { return };
        if shared.stop.load(SeqCst) {
            return;
        }
        shared.lock().connections += 1;
        let (tls, serve, shared) = (tls.cloned(), serve.clone(), shared.clone());
        thread::spawn(move || {
            let _ = stream.set_read_timeout(Some(PATIENCE));
            let Ok(wire) = Wire::over(stream, tls.as_ref()) else { return };
            let mut conn = Conn::new(wire, number, shared);
            let outcome = serve(number, &mut conn);
            conn.finish(outcome.is_ok());
        });
    }
}
