//! A connected stream, plain or TLS, as the drivers see it: bytes in, bytes out, and the plaintext
//! in the caller's buffer.
//!
//! Received TLS records are decrypted in place: the plaintext lies in the buffer that the
//! ciphertext was read into. A record that came only in part stays here until the rest arrives.

use std::io;
use std::net::SocketAddr;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::http2_tunnel::Http2Tunnel;
use super::lingering_close;
use super::socket::Socket;
use super::tls::{HandshakeStatus, TlsConnection};
use super::transport::{TlsLayer, Transport};
use crate::{Error, ErrorKind, Result, fork};

/// A connection's byte stream.
#[derive(Debug)]
pub struct ConnectionStream {
    transport: Transport,
    tls: Option<Box<TlsLayer>>,
    /// The peer's address: through a proxy, the proxy's. None on a Unix socket.
    pub peer: Option<SocketAddr>,
    /// The local address, if it was asked for.
    pub local: Option<SocketAddr>,
    /// The number of this stream among all streams of the process, from 0.
    pub number: u64,
    /// The process that speaks on it: a forked child has a copy, and is silent.
    generation: u32,
}

/// The number of streams made so far.
static STREAMS: AtomicU64 = AtomicU64::new(0);

/// The result of one receive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReceiveOutcome {
    /// Bytes at the start of the buffer: pass them to [`ConnectionStream::open`].
    Bytes {
        /// The number of bytes.
        filled: usize,
        /// The buffer was filled, so there may be more to receive.
        more: bool,
    },
    /// No bytes are available (on a blocking socket: none came within its time limit).
    WouldBlock,
    /// The peer has closed its side.
    End,
}

impl ConnectionStream {
    /// Makes a plain stream.
    #[must_use]
    pub fn plain(socket: Socket, peer: Option<SocketAddr>) -> Self {
        let number = STREAMS.fetch_add(1, Ordering::Relaxed);
        let generation = fork::generation();
        Self { transport: Transport::new(socket), tls: None, peer, local: None, number, generation }
    }

    /// Adds a layer of TLS. [`ConnectionStream::handshake`] begins its handshake.
    pub fn secure(&mut self, tls: TlsConnection) {
        self.tls = Some(Box::new(TlsLayer::new(tls)));
    }

    /// The peer so far was a proxy, which has opened a tunnel: from now on this is a plain stream
    /// again, inside the previous one. It begins with these bytes, which followed the proxy's
    /// answer.
    pub(super) fn nest(&mut self, ahead: Vec<u8>, tunnel: Option<Http2Tunnel>) {
        self.transport.nest(self.tls.take(), ahead, tunnel);
    }

    /// Returns the socket.
    #[must_use]
    pub fn socket(&self) -> &Socket {
        &self.transport.socket
    }

    /// Returns true if TLS is in use with the origin or with a proxy, so that the socket's bytes
    /// are not plain text.
    #[must_use]
    pub fn is_secure(&self) -> bool {
        self.tls.is_some() || self.transport.is_secure()
    }

    /// Returns true if the peer announced the end of the stream ([`ReceiveOutcome::End`]) properly.
    /// For plain HTTP through an https proxy, the TLS of the proxy connection decides.
    #[must_use]
    pub fn ended_properly(&self) -> bool {
        self.tls.is_none() && self.transport.ended_properly()
    }

    /// Returns true if a receive yields bytes that have already left the socket. A driver must not
    /// wait for the socket then: the wait may never end.
    #[must_use]
    pub fn has_buffered_input(&self) -> bool {
        self.transport.has_buffered_input()
    }

    /// Returns true if output waits for the proxy rather than for room in the socket.
    #[must_use]
    pub fn waits_for_proxy(&self) -> bool {
        self.transport.waits_for_proxy()
    }

    /// The protocol that was agreed on in the TLS handshake (RFC 7301), if any.
    #[must_use]
    pub fn alpn(&self) -> Option<&[u8]> {
        self.tls.as_ref()?.tls.alpn()
    }

    /// Returns true if the server's certificate is valid for this host, too. (The handshake has
    /// already decided whether it is trusted.)
    #[must_use]
    pub fn is_for(&self, host: &str) -> bool {
        self.tls.as_ref().is_some_and(|secured| secured.tls.is_for(host))
    }

    /// Returns the fault of the server's certificate, if faults are reported instead of refused.
    #[must_use]
    pub fn certificate_fault(&self) -> Option<&str> {
        self.tls.as_ref()?.tls.certificate_fault()
    }

    /// Returns the server's certificates, if they were to be kept.
    #[must_use]
    pub fn certificates(&self) -> Option<&Arc<[Vec<u8>]>> {
        self.tls.as_ref()?.tls.certificates()
    }

    /// The result of the TLS handshake and the server's certificate, in lines for people; the
    /// cipher by its name of RFC 8446, section B.4, which is not rustls's.
    #[must_use]
    pub fn agreed(&self) -> Vec<String> {
        let Some(tls) = self.tls.as_ref().map(|secured| &secured.tls) else { return Vec::new() };
        let (Some(version), Some(cipher)) = (tls.version(), tls.cipher()) else { return Vec::new() };
        let cipher = cipher.replacen("TLS13_", "TLS_", 1);
        let mut lines = vec![format!("SSL connection using {} / {cipher}", version.name())];
        lines.extend(tls.alpn().map(|alpn| format!("ALPN: server accepted {}", String::from_utf8_lossy(alpn))));
        lines.extend(tls.certificate_lines());
        lines
    }

    /// Continues the TLS handshake as far as the non-blocking socket allows. Returns whether it is
    /// complete.
    ///
    /// # Errors
    /// A refused certificate, a broken handshake, a broken connection.
    pub fn handshake(&mut self, buffer: &mut [u8]) -> Result<bool> {
        loop {
            let Some(secured) = &mut self.tls else { return Ok(true) };
            let outcome = secured.tls.handshake(&mut secured.partial, &mut secured.outgoing);
            // An alert that tells the peer why goes out before the error is returned.
            let flushed = self.flush();
            let state = outcome?;
            if !flushed.map_err(|error| tls_error("the connection broke in the TLS handshake", error))? {
                return Ok(false);
            }
            match state {
                HandshakeStatus::Done => return Ok(true),
                HandshakeStatus::NeedRead => {
                    let broke = "the connection broke in the TLS handshake";
                    match self.transport.recv(buffer) {
                        Ok(0) => {
                            let message = "the server closed the connection in the TLS handshake";
                            return Err(tls_error(message, io::ErrorKind::UnexpectedEof.into()));
                        }
                        Ok(n) => {
                            if let Some(secured) = &mut self.tls {
                                secured.partial.extend_from_slice(&buffer[..n]);
                            }
                        }
                        Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                        Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                        Err(error) => return Err(tls_error(broke, error)),
                    }
                }
            }
        }
    }

    /// Receives available bytes into `buffer`, once.
    ///
    /// # Errors
    /// The socket's.
    pub fn receive(&mut self, buffer: &mut [u8]) -> io::Result<ReceiveOutcome> {
        let kept = match &mut self.tls {
            Some(secured) => {
                let kept = secured.partial.len();
                buffer[..kept].copy_from_slice(&secured.partial);
                kept
            }
            None => 0,
        };
        let room = buffer.len() - kept;
        match self.transport.recv(&mut buffer[kept..]) {
            Ok(0) => Ok(ReceiveOutcome::End),
            Ok(n) => {
                if let Some(secured) = &mut self.tls {
                    secured.partial.clear();
                }
                Ok(ReceiveOutcome::Bytes { filled: kept + n, more: n == room || self.transport.may_have_more() })
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(ReceiveOutcome::WouldBlock),
            Err(error) => Err(error),
        }
    }

    /// Returns the next run of plaintext in `buffer[at..filled]`, received before, and advances
    /// `at`. `None` when all complete records are decrypted; the rest is kept for the next receive.
    /// The flag is true if the peer has ended the stream properly.
    ///
    /// # Errors
    /// A record that does not authenticate, or a breach of TLS.
    pub fn open(&mut self, buffer: &mut [u8], at: &mut usize, filled: usize) -> Result<(Option<Range<usize>>, bool)> {
        let Some(secured) = &mut self.tls else {
            let range = *at..filled;
            *at = filled;
            return Ok(((!range.is_empty()).then_some(range), false));
        };
        loop {
            let opened = secured.tls.open(&mut buffer[*at..filled])?;
            let base = *at;
            *at += opened.consumed;
            if let Some(range) = opened.payload.filter(|range| !range.is_empty()) {
                return Ok((Some(base + range.start..base + range.end), false));
            }
            match opened.state {
                super::tls::TlsStreamState::PeerClosed => return Ok((None, true)),
                super::tls::TlsStreamState::NeedMore => {
                    secured.partial.extend_from_slice(&buffer[*at..filled]);
                    *at = filled;
                    secured.tls.take_output(&mut secured.outgoing);
                    return Ok((None, false));
                }
                super::tls::TlsStreamState::Open => {}
            }
        }
    }

    /// Sends as much of `bytes` as there is room for. With TLS, all bytes are encrypted, and
    /// [`ConnectionStream::flush`] sends the ones that the socket has no room for.
    ///
    /// # Errors
    /// The socket's; [`io::ErrorKind::WouldBlock`] when there is no room at all.
    pub fn send(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let Some(secured) = &mut self.tls else { return self.transport.send(bytes) };
        let transport = &mut self.transport;
        if !secured.flush(|sealed| transport.send(sealed))? {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        secured.tls.seal(bytes, &mut secured.outgoing).map_err(io::Error::other)?;
        secured.flush(|sealed| transport.send(sealed))?;
        Ok(bytes.len())
    }

    /// Sends waiting encrypted bytes. Returns true when none are left.
    ///
    /// # Errors
    /// The socket's.
    pub fn flush(&mut self) -> io::Result<bool> {
        let transport = &mut self.transport;
        if let Some(secured) = &mut self.tls
            && !secured.flush(|sealed| transport.send(sealed))?
        {
            return Ok(false);
        }
        transport.flush()
    }

    /// Ends the sending direction; input can still be received. Inside a proxy's TLS, the
    /// connection itself stays open.
    ///
    /// # Errors
    /// The socket's.
    pub fn end_sending(&mut self) -> io::Result<()> {
        let transport = &mut self.transport;
        if let Some(secured) = &mut self.tls {
            secured.close();
            secured.flush(|sealed| transport.send(sealed))?;
        }
        if transport.is_secure() { Ok(()) } else { transport.socket.shutdown_write() }
    }

    /// Returns true if encrypted bytes wait for room in the socket.
    #[must_use]
    pub fn has_output(&self) -> bool {
        self.tls.as_ref().is_some_and(|secured| secured.has_output()) || self.transport.has_output()
    }
}

impl ConnectionStream {
    /// Closes the stream so that the peer receives the last output, even if unread input is left:
    /// see [`lingering_close`].
    pub(crate) fn drain(mut self) {
        if self.generation != fork::generation() {
            return;
        }
        if self.is_secure() {
            let _ = self.transport.close(self.tls.take());
        }
        lingering_close::drain(&self.transport.socket);
    }
}

fn tls_error(message: &str, error: io::Error) -> Error {
    Error::with_source(ErrorKind::TlsHandshake, message, error)
}

impl Drop for ConnectionStream {
    /// Sends the closing alert of each TLS layer (RFC 8446 section 6.1), or the alert for a
    /// failure. Does not wait: if the socket has no room, the alert is lost.
    fn drop(&mut self) {
        if self.is_secure() && self.generation == fork::generation() {
            let _ = self.transport.close(self.tls.take());
        }
    }
}

impl AsFd for ConnectionStream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.transport.socket.as_fd()
    }
}
