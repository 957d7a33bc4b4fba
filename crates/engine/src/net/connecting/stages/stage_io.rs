//! The connection on which the stages send and receive. Contains its output queue, and the proxies'
//! responses to CONNECT requests.

use std::io;

use crate::net::connecting::ConnectRequestOrReplyHead;
use crate::net::stream::{ConnectionStream, ReceiveOutcome};
use crate::{Error, ErrorKind, Result};

/// The connection on which the stages of connecting send and receive, one stage after the other.
pub(in crate::net::connecting) struct ConnectStageIo {
    /// The byte stream of the connection, with the TLS layers that earlier stages have added.
    pub stream: ConnectionStream,
    /// The status of the last response to a CONNECT; 0 before the first response.
    pub connect_status: u16,
    /// The scheme of the last credentials in a CONNECT request; `None` without credentials.
    pub auth_scheme: Option<&'static str>,
    /// The heads of CONNECT requests and responses that were not reported to the trace yet.
    pub connect_heads: Vec<ConnectRequestOrReplyHead>,
    /// True if the proxy sent a challenge and closed the connection. A request with credentials may
    /// succeed on another connection.
    pub needs_new_connection: bool,
    outgoing: Vec<u8>,
    sent: usize,
}

impl ConnectStageIo {
    /// Wraps a newly connected stream, on which the stages will send and receive.
    pub(crate) fn new(stream: ConnectionStream) -> Self {
        Self {
            stream,
            connect_status: 0,
            auth_scheme: None,
            connect_heads: Vec::new(),
            needs_new_connection: false,
            outgoing: Vec::new(),
            sent: 0,
        }
    }

    /// Returns true if queued or encrypted bytes must still be sent.
    pub(crate) fn has_output(&self) -> bool {
        self.sent < self.outgoing.len() || self.stream.has_output()
    }

    /// Sets the bytes that [`ConnectStageIo::flush`] sends. All earlier bytes must have been sent.
    pub(super) fn queue(&mut self, bytes: Vec<u8>) {
        self.outgoing = bytes;
        self.sent = 0;
    }

    /// Sends the queued bytes, as far as the socket allows. Returns true if all were sent.
    pub(super) fn flush(&mut self) -> Result<bool> {
        let broke = |error| Error::with_source(ErrorKind::Send, "the connection to the proxy broke", error);
        while self.sent < self.outgoing.len() {
            match self.stream.send(&self.outgoing[self.sent..]) {
                Ok(n) => self.sent += n,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(broke(error)),
            }
        }
        self.stream.flush().map_err(broke)
    }

    /// Receives once into `buffer`. Returns `None` if no bytes are available, and `Some(0)` at the
    /// end of the stream.
    pub(super) fn receive(&mut self, buffer: &mut [u8]) -> Result<Option<usize>> {
        loop {
            match self.stream.receive(buffer) {
                Ok(ReceiveOutcome::Bytes { filled, .. }) => return Ok(Some(filled)),
                Ok(ReceiveOutcome::WouldBlock) => return Ok(None),
                Ok(ReceiveOutcome::End) => return Ok(Some(0)),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    return Err(Error::with_source(ErrorKind::Receive, "the connection to the proxy broke", error));
                }
            }
        }
    }
}
