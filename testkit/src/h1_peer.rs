//! A scripted HTTP/1 peer on plain threads. It follows its script when it reads, sends exactly the
//! bytes of the script, and records the bytes that it receives. It is for tests with message
//! framing that no honest server sends.
//!
//! ```
//! use std::io::{Read, Write};
//! use testkit::h1_peer::{H1Peer, ScriptStep};
//!
//! let peer = H1Peer::start(vec![vec![
//!     ScriptStep::ReadHead,
//!     ScriptStep::send("HTTP/1.1 200 OK\r\nContent-Length: 42, 30\r\n\r\n"),
//!     ScriptStep::Close,
//! ]]);
//! let mut stream = std::net::TcpStream::connect(peer.addr()).unwrap();
//! stream.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
//! let mut reply = String::new();
//! stream.read_to_string(&mut reply).unwrap();
//! assert!(reply.contains("42, 30"));
//! assert_eq!(peer.received(0), b"GET / HTTP/1.1\r\nHost: x\r\n\r\n");
//! ```

use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use rustls::ServerConfig;

use crate::peer_stream::PeerStream;
use crate::scripted_peer_listener::{ScriptedPeer, ScriptedPeerState};
use crate::test_certificates::TestCertificates;

/// A step of a script, performed on one connection.
#[derive(Clone, Debug)]
pub enum ScriptStep {
    /// Reads up to the end of a request head (`\r\n\r\n`). Bytes that were read beyond it are kept
    /// for the next reading step.
    ReadHead,
    /// Reads this many bytes.
    ReadBytes(usize),
    /// Reads until the client closes its sending side.
    ReadToEnd,
    /// Sends these bytes in one write.
    Send(Vec<u8>),
    /// Sends these bytes one at a time, with a pause after each byte. Each byte is a separate TCP
    /// segment.
    SendSlowly(Vec<u8>, Duration),
    /// Sends these bytes the given number of times, or until a write fails.
    SendRepeatedly(Vec<u8>, u64),
    /// Waits for this duration.
    Sleep(Duration),
    /// Waits until the test has called [`H1Peer::release`] this many times. The test can thus
    /// determine the order of events without timers.
    Await(u64),
    /// Shuts down the peer's side of the connection (over TLS: close_notify first) and continues
    /// the script.
    HalfClose,
    /// Closes the connection properly (over TLS: close_notify first). This also happens at the end
    /// of a script.
    Close,
    /// Closes without close_notify. On a plain connection this is the same as `Close`.
    Cut,
    /// Closes with a reset (SO_LINGER of zero).
    Reset,
}

impl ScriptStep {
    /// Creates [`ScriptStep::Send`] from text or bytes.
    pub fn send(bytes: impl AsRef<[u8]>) -> ScriptStep {
        ScriptStep::Send(bytes.as_ref().to_vec())
    }

    /// Creates [`ScriptStep::SendSlowly`] from text or bytes, with no pause between the single
    /// bytes.
    pub fn send_bytewise(bytes: impl AsRef<[u8]>) -> ScriptStep {
        ScriptStep::SendSlowly(bytes.as_ref().to_vec(), Duration::ZERO)
    }
}

/// The steps that the peer performs on one connection, in order.
pub type PeerScript = Vec<ScriptStep>;

/// A running scripted peer. Dropping it stops accepting connections; running scripts continue until
/// their connections end.
pub struct H1Peer(ScriptedPeer<H1ScriptState>);

/// The data that the scripts record: for each connection, the bytes received and whether its script
/// has ended; and the number of calls of [`H1Peer::release`].
#[derive(Default)]
struct H1ScriptState {
    received: Vec<Vec<u8>>,
    finished: Vec<bool>,
    released: u64,
}

enum AfterLastScript {
    /// A connection without a script is closed as soon as it is accepted.
    Close,
    /// A connection without a script runs the last script again.
    Repeat,
}

impl H1Peer {
    /// Starts a peer. The first connection runs the first script, the second connection the second
    /// script, and so on. Connections for which no script is left are closed as soon as they are
    /// accepted.
    ///
    /// # Panics
    /// If no port can be bound on loopback.
    pub fn start(scripts: Vec<PeerScript>) -> H1Peer {
        H1Peer::run(scripts, AfterLastScript::Close, None)
    }

    /// Starts a peer that runs this script on every connection.
    ///
    /// # Panics
    /// If no port can be bound on loopback.
    pub fn always(script: PeerScript) -> H1Peer {
        H1Peer::run(vec![script], AfterLastScript::Repeat, None)
    }

    /// Starts a peer over TLS, with the server certificate of `identity` and these ALPN names. The
    /// first connection runs the first script, and so on. Connections for which no script is left
    /// are closed as soon as they are accepted.
    ///
    /// # Panics
    /// If no port can be bound on loopback.
    pub fn start_tls(scripts: Vec<PeerScript>, identity: &TestCertificates, alpn: &[&[u8]]) -> H1Peer {
        H1Peer::run(scripts, AfterLastScript::Close, Some(identity.server_config(alpn)))
    }

    fn run(scripts: Vec<PeerScript>, after: AfterLastScript, tls: Option<Arc<ServerConfig>>) -> H1Peer {
        let accepted = |state: &mut H1ScriptState| {
            state.received.push(Vec::new());
            state.finished.push(false);
        };
        let play = move |stream, number: usize, shared: &Arc<ScriptedPeerState<H1ScriptState>>| {
            let script = match after {
                AfterLastScript::Close => scripts.get(number).cloned().unwrap_or_default(),
                AfterLastScript::Repeat => scripts[number.min(scripts.len() - 1)].clone(),
            };
            if let Ok(wire) = PeerStream::from_socket(stream, tls.as_ref()) {
                // A client that disconnects ends the script: that is often the point of the test.
                let _ = ScriptPlayer { wire, number, shared, ahead: Vec::new() }.play(&script);
            }
            shared.change(|state| state.finished[number] = true);
        };
        H1Peer(ScriptedPeer::start(accepted, play))
    }

    /// Returns the address on which the peer listens.
    pub fn addr(&self) -> SocketAddr {
        self.0.addr
    }

    /// Returns `http://ADDRESS` with `path`, which starts with a slash.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.addr())
    }

    /// Returns the number of connections accepted so far.
    pub fn connections(&self) -> usize {
        self.0.shared.lock().received.len()
    }

    /// Returns the bytes that the peer has read so far on the connection with this number, counted
    /// from 0.
    pub fn received(&self, connection: usize) -> Vec<u8> {
        self.0.shared.lock().received.get(connection).cloned().unwrap_or_default()
    }

    /// Adds one to the number of releases. A script continues when this number reaches the number
    /// for which its [`ScriptStep::Await`] waits.
    pub fn release(&self) {
        self.0.shared.change(|state| state.released += 1);
    }

    /// Waits until the scripts of the first `connections` connections have ended. Returns `false`
    /// if that takes more than 30 seconds.
    pub fn finished(&self, connections: usize) -> bool {
        let done = |state: &H1ScriptState| state.finished.iter().filter(|f| **f).count() >= connections;
        self.0.shared.wait(done)
    }

    /// Waits until the bytes that the peer has read on the connection with this number contain
    /// `needle`. Returns `false` if that takes more than 30 seconds.
    pub fn saw(&self, connection: usize, needle: &[u8]) -> bool {
        self.0.shared.wait(|state| {
            let received = state.received.get(connection);
            received.is_some_and(|bytes| bytes.windows(needle.len()).any(|window| window == needle))
        })
    }
}

struct ScriptPlayer<'a> {
    wire: PeerStream,
    number: usize,
    shared: &'a ScriptedPeerState<H1ScriptState>,
    /// Bytes that were read from the client and recorded, but that no step of the script has used
    /// yet.
    ahead: Vec<u8>,
}

impl ScriptPlayer<'_> {
    fn play(mut self, script: &[ScriptStep]) -> io::Result<()> {
        for step in script {
            match step {
                ScriptStep::ReadHead => {
                    let mut from = 0;
                    let end = loop {
                        match find(&self.ahead[from..], b"\r\n\r\n") {
                            Some(at) => break from + at + 4,
                            None => from = self.ahead.len().saturating_sub(3),
                        }
                        self.read_more()?;
                    };
                    self.ahead.drain(..end);
                }
                ScriptStep::ReadBytes(len) => {
                    while self.ahead.len() < *len {
                        self.read_more()?;
                    }
                    self.ahead.drain(..len);
                }
                ScriptStep::ReadToEnd => while self.read_more().is_ok() {},
                ScriptStep::Send(bytes) => self.send(bytes)?,
                ScriptStep::SendSlowly(bytes, pause) => {
                    for byte in bytes.chunks(1) {
                        self.send(byte)?;
                        thread::sleep(*pause);
                    }
                }
                ScriptStep::SendRepeatedly(bytes, times) => {
                    for _ in 0..*times {
                        self.send(bytes)?;
                    }
                }
                ScriptStep::Sleep(time) => thread::sleep(*time),
                ScriptStep::Await(count) => {
                    self.shared.wait(|state| state.released >= *count);
                }
                ScriptStep::HalfClose => self.wire.half_close()?,
                ScriptStep::Close => break,
                ScriptStep::Cut => return self.wire.close_without_notify(),
                ScriptStep::Reset => return self.wire.reset(),
            }
        }
        self.wire.close()
    }

    fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.wire.write_all(bytes)?;
        self.wire.flush()
    }

    fn read_more(&mut self) -> io::Result<()> {
        let mut buffer = [0; 16 << 10];
        let len = self.wire.read(&mut buffer)?;
        if len == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.ahead.extend_from_slice(&buffer[..len]);
        self.shared.change(|state| state.received[self.number].extend_from_slice(&buffer[..len]));
        Ok(())
    }
}

fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    haystack.windows(needle.len()).position(|window| window == needle)
}
