//! A tunnel through a proxy that speaks HTTP/2: the bytes of one stream of the connection with it
//! (RFC 9113 §8.5).
//!
//! ```text
//!  reader ◀── DATA of the stream ◀── machine ◀── [TLS with the proxy] ◀── socket
//!  writer ──▶ waiting ──▶ DATA ────▶ machine ──▶ [TLS with the proxy] ──▶ socket
//! ```
//!
//! Each tunnel has its own connection. Several in one would gain nothing: requests to the same
//! origin share a tunnel, and there are rarely so many origins behind a proxy that handshakes with
//! it matter.

use std::io;
use std::ops::Range;
use std::time::Instant;

use haul_proto::h2::{self, H2Event, H2Machine, RequestId};

use crate::clock;

/// The number of bytes that the proxy may send ahead of the reader. The window takes no memory:
/// unread bytes wait in the socket, and read ones are released when the reader takes them.
const WINDOW: u32 = 4 << 20;
/// The number of bytes that the writer may write ahead of the proxy's window.
const AHEAD: usize = 64 << 10;

/// An open tunnel.
#[derive(Debug)]
pub(super) struct Http2Tunnel {
    conn: Box<H2Machine>,
    id: RequestId,
    /// Bytes from the writer that the proxy's window does not admit yet.
    waiting: Vec<u8>,
}

/// The result of [`Http2Tunnel::take`].
#[derive(Debug, PartialEq, Eq)]
pub(super) enum TunnelInput {
    /// A number of processed bytes, and the reader's part of them. Further events may follow.
    Bytes(usize, Range<usize>),
    /// More input is needed. All input so far has been processed.
    Nothing,
    /// The other end has closed the tunnel.
    End,
}

/// The HTTP/2 settings of a connection that carries one tunnel.
pub(super) fn config() -> h2::H2Config {
    h2::H2Config { connection_window: WINDOW, stream_window: WINDOW, ..h2::H2Config::default() }
}

impl Http2Tunnel {
    /// Makes a tunnel over this connection, whose CONNECT with this id was answered with a 2xx.
    pub(super) fn new(conn: Box<H2Machine>, id: RequestId) -> Self {
        Self { conn, id, waiting: Vec::new() }
    }

    /// Takes the next event from received bytes. Call it until it returns [`TunnelInput::Nothing`].
    ///
    /// # Errors
    /// The proxy has broken the tunnel, or the protocol.
    pub(super) fn take(&mut self, input: &mut [u8]) -> io::Result<TunnelInput> {
        let step = self.conn.step(clock::time(Instant::now()), input).map_err(io::Error::other)?;
        let taken = match step.event {
            H2Event::NeedInput => TunnelInput::Nothing,
            H2Event::Body { id, range } if id == self.id => TunnelInput::Bytes(step.consumed, range),
            H2Event::Complete { id, .. } if id == self.id => TunnelInput::End,
            H2Event::Reset { id, reason, .. } if id == self.id => {
                let message = format!("the proxy has closed the tunnel: {reason}");
                return Err(io::Error::new(io::ErrorKind::ConnectionReset, message));
            }
            _ => TunnelInput::Bytes(step.consumed, 0..0),
        };
        // The proxy's window may be open again.
        self.give()?;
        Ok(taken)
    }

    /// Records that the reader took this many bytes.
    pub(super) fn release(&mut self, n: usize) {
        self.conn.release(clock::time(Instant::now()), self.id, n as u64);
    }

    /// Takes the writer's bytes: all of them, or none as long as too much waits for the proxy's
    /// window.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] then, and [`io::ErrorKind::BrokenPipe`] where the tunnel is
    /// closed.
    pub(super) fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.waits_for_proxy() {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        self.waiting.extend_from_slice(bytes);
        self.give()
    }

    /// Returns true if [`AHEAD`] bytes wait. If all output was sent, the proxy has to respond
    /// first.
    pub(super) fn waits_for_proxy(&self) -> bool {
        self.waiting.len() >= AHEAD
    }

    /// Returns bytes to send to the proxy, if there are any.
    pub(super) fn output(&mut self) -> Option<&[u8]> {
        Some(self.conn.output()).filter(|output| !output.is_empty())
    }

    /// Marks the output as sent, and queues waiting bytes.
    pub(super) fn sent(&mut self) -> io::Result<()> {
        self.conn.advance_output(self.conn.output().len());
        self.give()
    }

    fn give(&mut self) -> io::Result<()> {
        if self.waiting.is_empty() {
            return Ok(());
        }
        let closed = || io::Error::new(io::ErrorKind::BrokenPipe, "the tunnel through the proxy is closed");
        let credit = self.conn.body_credit(self.id).ok_or_else(closed)?;
        let n = self.waiting.len().min(usize::try_from(credit).unwrap_or(usize::MAX));
        if n > 0 {
            let n = self.conn.send_body(self.id, &self.waiting[..n]).map_err(io::Error::other)?;
            self.waiting.drain(..n);
        }
        Ok(())
    }
}
