//! A connection of the page server: its socket, its TLS session, and its buffers.

use std::io::{self, ErrorKind, Read, Write};
use std::time::Duration;

use mio::net::TcpStream;
use rustls::{HandshakeKind, ServerConnection};
use socket2::SockRef;

/// The number of bytes that the page server reads from a socket in one call.
const PIECE: usize = 16 << 10;

/// A connection of a client to the page server.
pub(super) struct PageConnection {
    pub(super) stream: TcpStream,
    tls: Option<Box<ServerConnection>>,
    /// The index of the server's port that accepted the connection.
    pub(super) port: usize,
    pub(super) phase: RequestPhase,
    /// True until the first request on the connection has arrived.
    pub(super) is_new: bool,
    /// True if the server closes the connection after the current response.
    pub(super) closes: bool,
    /// True if the rest of the response cannot be written before the socket is writable again.
    pub(super) waits_to_write: bool,
    handshake_reported: bool,
    /// The received bytes of requests that are not served yet.
    pub(super) input: Vec<u8>,
    /// The bytes of the response to the current request.
    pub(super) output: Vec<u8>,
    /// The length of the page that is requested, in bytes.
    pub(super) page_len: usize,
    sent: usize,
}

/// The progress of the current request of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RequestPhase {
    /// No request is being served.
    Idle,
    /// The first request of the connection has arrived, but is treated as still in transit for
    /// [`PageTiming::setup_delay`](super::PageTiming::setup_delay).
    Opening,
    /// The request waits until the server has finished other requests.
    Queued,
    Serving,
    /// The request will be answered with 503, after the delay.
    Refused,
    /// The response is being written.
    Writing,
}

impl PageConnection {
    pub(super) fn new(stream: TcpStream, tls: Option<ServerConnection>, port: usize) -> PageConnection {
        PageConnection {
            stream,
            handshake_reported: tls.is_none(),
            tls: tls.map(Box::new),
            port,
            phase: RequestPhase::Idle,
            is_new: true,
            closes: false,
            waits_to_write: false,
            input: Vec::new(),
            output: Vec::new(),
            page_len: 0,
            sent: 0,
        }
    }

    /// Reads all bytes that have arrived into `input`. Returns false if the client has closed its
    /// side.
    pub(super) fn read(&mut self) -> io::Result<bool> {
        match &mut self.tls {
            None => read_all(&mut self.stream, &mut self.input),
            Some(tls) => {
                let is_open = loop {
                    match tls.read_tls(&mut self.stream) {
                        Ok(0) => break false,
                        Ok(_) => {}
                        Err(error) if error.kind() == ErrorKind::WouldBlock => break true,
                        Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                        Err(error) => return Err(error),
                    }
                    let state = tls.process_new_packets().map_err(io::Error::other)?;
                    let arrived = state.plaintext_bytes_to_read();
                    let before = self.input.len();
                    self.input.resize(before + arrived, 0);
                    tls.reader().read_exact(&mut self.input[before..])?;
                };
                while tls.wants_write() {
                    match tls.write_tls(&mut self.stream) {
                        Ok(_) => {}
                        // The next response is sent together with these bytes.
                        Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                        Err(error) => return Err(error),
                    }
                }
                Ok(is_open)
            }
        }
    }

    /// Returns whether the finished TLS handshake was full or resumed. Only the first call after
    /// the handshake returns this. Returns `None` before the end of the handshake, in later calls,
    /// and without TLS.
    pub(super) fn finished_handshake(&mut self) -> Option<HandshakeKind> {
        let tls = self.tls.as_ref().filter(|tls| !self.handshake_reported && !tls.is_handshaking())?;
        self.handshake_reported = true;
        tls.handshake_kind()
    }

    /// Writes the remaining bytes of the response. Returns false if the socket accepts no more
    /// bytes now.
    pub(super) fn write(&mut self) -> io::Result<bool> {
        if let Some(tls) = &mut self.tls {
            if self.sent < self.output.len() {
                tls.set_buffer_limit(None);
                tls.writer().write_all(&self.output[self.sent..])?;
                self.sent = self.output.len();
            }
            while tls.wants_write() {
                match tls.write_tls(&mut self.stream) {
                    Ok(_) => {}
                    Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                    Err(error) => return Err(error),
                }
            }
        }
        while self.sent < self.output.len() {
            match self.stream.write(&self.output[self.sent..]) {
                Ok(len) => self.sent += len,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.output.clear();
        self.sent = 0;
        Ok(true)
    }

    /// Sets the socket so that dropping the connection resets it.
    pub(super) fn reset_on_drop(&self) {
        // Fails only if the client has reset it already.
        let _ = SockRef::from(&self.stream).set_linger(Some(Duration::ZERO));
    }
}

/// Appends all bytes that have arrived on the socket to `input`. Returns false if the client has
/// closed its side.
fn read_all(stream: &mut TcpStream, input: &mut Vec<u8>) -> io::Result<bool> {
    let mut piece = [0; PIECE];
    loop {
        match stream.read(&mut piece) {
            Ok(0) => return Ok(false),
            Ok(len) => {
                input.extend(&piece[..len]);
                // A read that does not fill the buffer has emptied the socket.
                if len < PIECE {
                    return Ok(true);
                }
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(true),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}
