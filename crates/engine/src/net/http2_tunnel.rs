//! A tunnel through a proxy that speaks HTTP/2 (RFC 9113 §8.5): one stream of the connection to the
//! proxy carries the bytes.
//!
//! ```text
//!  reader ◀── DATA of the stream ◀── machine ◀── [TLS with the proxy] ◀── socket
//!  writer ──▶ waiting ──▶ DATA ────▶ machine ──▶ [TLS with the proxy] ──▶ socket
//! ```
//!
//! Each tunnel has its own connection. Sharing one would gain little: requests to the same origin
//! share a tunnel, and there are rarely many origins behind one proxy.

use std::io;
use std::ops::Range;
use std::time::Instant;

use haul_proto::h2::{self, H2Event, H2Machine, RequestId};

use crate::time_conversions;

/// The flow-control window in bytes for data from the proxy. The window takes no memory of this
/// process: unread bytes stay in the socket, and the window is extended when the reader consumes
/// bytes.
const RECEIVE_WINDOW: u32 = 4 << 20;
/// The maximum number of bytes that wait for the proxy's flow-control window. If this number is
/// reached, [`Http2Tunnel::send`] accepts no more bytes.
const MAX_UNSENT: usize = 64 << 10;

/// An open tunnel to an origin, on one HTTP/2 stream of a connection to a proxy.
#[derive(Debug)]
pub(super) struct Http2Tunnel {
    conn: Box<H2Machine>,
    id: RequestId,
    /// The bytes that wait to be sent until the proxy's flow-control window allows them.
    waiting: Vec<u8>,
}

/// The result of [`Http2Tunnel::receive`]: the next event in the received bytes.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum TunnelEvent {
    /// Data from the tunnel for its reader: the number of processed input bytes, and the range of
    /// the data in the input. The caller must then call `receive` again with the remaining input.
    Bytes(usize, Range<usize>),
    /// All input was processed. More input is needed for the next event.
    Nothing,
    /// The origin at the other end of the tunnel has closed the tunnel.
    End,
}

/// Returns the settings of an HTTP/2 connection to a proxy. The connection carries only one tunnel.
pub(super) fn config() -> h2::H2Config {
    h2::H2Config { connection_window: RECEIVE_WINDOW, stream_window: RECEIVE_WINDOW, ..h2::H2Config::default() }
}

impl Http2Tunnel {
    /// Makes a tunnel on the stream `id` of `conn`. The proxy must have answered the CONNECT
    /// request on that stream with a 2xx response.
    pub(super) fn new(conn: Box<H2Machine>, id: RequestId) -> Self {
        Self { conn, id, waiting: Vec::new() }
    }

    /// Processes received bytes up to the next event. The caller calls this repeatedly until the
    /// result is [`TunnelEvent::Nothing`].
    ///
    /// # Errors
    /// The proxy reset the stream, or violated the protocol.
    pub(super) fn receive(&mut self, input: &mut [u8]) -> io::Result<TunnelEvent> {
        let step = self
            .conn
            .step(time_conversions::to_monotonic_timestamp(Instant::now()), input)
            .map_err(io::Error::other)?;
        let taken = match step.event {
            H2Event::NeedInput => TunnelEvent::Nothing,
            H2Event::Body { id, range } if id == self.id => TunnelEvent::Bytes(step.consumed, range),
            H2Event::Complete { id, .. } if id == self.id => TunnelEvent::End,
            H2Event::Reset { id, reason, .. } if id == self.id => {
                let message = format!("the proxy has closed the tunnel: {reason}");
                return Err(io::Error::new(io::ErrorKind::ConnectionReset, message));
            }
            _ => TunnelEvent::Bytes(step.consumed, 0..0),
        };
        // The proxy may have extended its window.
        self.move_unsent_to_machine()?;
        Ok(taken)
    }

    /// Extends the flow-control window for data from the proxy by `n` bytes, which the reader has
    /// consumed.
    pub(super) fn release_window(&mut self, n: usize) {
        self.conn.release(time_conversions::to_monotonic_timestamp(Instant::now()), self.id, n as u64);
    }

    /// Queues all of `bytes` for sending. Queues nothing if too many bytes wait for the proxy's
    /// flow-control window.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] if too many bytes wait, and [`io::ErrorKind::BrokenPipe`] if
    /// the tunnel is closed.
    pub(super) fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.waits_for_proxy() {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        self.waiting.extend_from_slice(bytes);
        self.move_unsent_to_machine()
    }

    /// Returns true if [`Http2Tunnel::send`] refuses bytes until the proxy extends its window.
    pub(super) fn waits_for_proxy(&self) -> bool {
        self.waiting.len() >= MAX_UNSENT
    }

    /// Returns the bytes to send to the proxy, if there are any.
    pub(super) fn output(&mut self) -> Option<&[u8]> {
        Some(self.conn.output()).filter(|output| !output.is_empty())
    }

    /// Marks the bytes of the last [`Http2Tunnel::output`] as sent. Then queues bytes that waited
    /// for the proxy's flow-control window, as far as the window allows.
    pub(super) fn on_output_sent(&mut self) -> io::Result<()> {
        self.conn.advance_output(self.conn.output().len());
        self.move_unsent_to_machine()
    }

    fn move_unsent_to_machine(&mut self) -> io::Result<()> {
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
