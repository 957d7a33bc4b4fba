//! A connected stream, plain or with TLS.
//!
//! Received TLS records are decrypted in place: the plaintext is in the buffer that received the
//! ciphertext. An incomplete record is kept here until the rest arrives.

use std::io;
use std::net::SocketAddr;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fd::{AsFd, BorrowedFd};

use super::http2_tunnel::Http2Tunnel;
use super::lingering_close;
use super::socket::Socket;
use super::socket_or_proxy_tls::{SocketOrProxyTls, TlsLayer};
use super::tls::{HandshakeStatus, NegotiatedSession, TlsConnection};
use crate::transfer_facts::TlsFacts;
use crate::{Error, ErrorKind, Result, fork};

/// The byte stream of a connection: a socket, with TLS or a tunnel if the route needs them.
#[derive(Debug)]
pub struct ConnectionStream {
    transport: SocketOrProxyTls,
    tls: Option<Box<TlsLayer>>,
    /// The address of the peer, or of the proxy if there is one. `None` on a Unix socket.
    pub peer: Option<SocketAddr>,
    /// The local address of the connection; `None` if the connect options did not request it.
    pub local: Option<SocketAddr>,
    /// The sequence number of this connection among all connections of the process, counted from 0.
    pub number: u64,
    /// The fault of the certificate of the last https proxy on the route. `None` if it has no fault,
    /// or if [`TlsOptions::examine`](super::tls::TlsOptions::examine) is not set.
    pub(super) proxy_fault: Option<Box<str>>,
    /// The number of forks ([`crate::fork`]) before the process made the stream. If the current
    /// number differs, this process is a forked child, and dropping the stream sends nothing.
    generation: u32,
}

/// The sequence number of the next connection that this process makes. The first number is 0.
static NEXT_CONNECTION_NUMBER: AtomicU64 = AtomicU64::new(0);

/// Returns the sequence number for a new connection, and increments [`NEXT_CONNECTION_NUMBER`].
pub(in crate::net) fn next_connection_number() -> u64 {
    NEXT_CONNECTION_NUMBER.fetch_add(1, Ordering::Relaxed)
}

/// The result of [`ConnectionStream::receive`]: bytes, or the reason for receiving none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReceiveOutcome {
    /// Bytes were received. They are at the start of the buffer: pass them to
    /// [`ConnectionStream::decrypt_next`].
    Bytes {
        /// The number of received bytes at the start of the buffer.
        filled: usize,
        /// True if the buffer is full, so there may be more to receive.
        more: bool,
    },
    /// No bytes are available (on a blocking socket, none arrived before its timeout).
    WouldBlock,
    /// The peer has closed its direction of the connection.
    End,
}

impl ConnectionStream {
    /// Makes a stream over a connected socket, without TLS.
    #[must_use]
    pub fn plain(socket: Socket, peer: Option<SocketAddr>) -> Self {
        let number = next_connection_number();
        let generation = fork::fork_count();
        Self {
            transport: SocketOrProxyTls::new(socket),
            tls: None,
            peer,
            local: None,
            number,
            proxy_fault: None,
            generation,
        }
    }

    /// Adds a TLS layer. Call [`ConnectionStream::handshake`] next.
    pub fn add_tls(&mut self, tls: TlsConnection) {
        self.tls = Some(Box::new(TlsLayer::new(tls)));
    }

    /// Turns the stream to a proxy into the stream inside the tunnel that the proxy has opened. The
    /// new stream has no TLS layer yet. `ahead` contains the bytes that arrived together with the
    /// proxy's response, and are the first bytes from the tunnel.
    pub(super) fn add_tunnel(&mut self, ahead: Vec<u8>, tunnel: Option<Http2Tunnel>) {
        self.transport.add_tunnel(self.tls.take(), ahead, tunnel);
    }

    /// Returns the socket that carries the stream.
    #[must_use]
    pub fn socket(&self) -> &Socket {
        &self.transport.socket
    }

    /// Returns true if TLS is in use with the origin or with a proxy, so that the socket carries
    /// encrypted bytes.
    #[must_use]
    pub fn is_secure(&self) -> bool {
        self.tls.is_some() || self.transport.is_secure()
    }

    /// Returns true if the peer announced the end of the stream ([`ReceiveOutcome::End`]). The data
    /// is then not truncated. For plain HTTP through an https proxy, the proxy's `close_notify`
    /// counts.
    #[must_use]
    pub fn ended_properly(&self) -> bool {
        self.tls.is_none() && self.transport.ended_properly()
    }

    /// Returns true if the next receive returns bytes that were already read from the socket. The
    /// caller must not wait for the socket then, since the wait may never end.
    #[must_use]
    pub fn has_buffered_input(&self) -> bool {
        self.transport.has_buffered_input()
    }

    /// Returns true if output cannot be sent before the proxy extends its flow-control window, even
    /// if the socket has room.
    #[must_use]
    pub fn waits_for_proxy(&self) -> bool {
        self.transport.waits_for_proxy()
    }

    /// Returns the protocol that ALPN selected (RFC 7301), if any.
    #[must_use]
    pub fn alpn(&self) -> Option<&[u8]> {
        self.tls.as_ref()?.tls.alpn()
    }

    /// Returns true if the server's certificate is also valid for this host. (The handshake has
    /// already verified that the certificate is trusted.)
    #[must_use]
    pub fn is_certified_for(&self, host: &str) -> bool {
        self.tls.as_ref().is_some_and(|secured| secured.tls.is_certified_for(host))
    }

    /// Returns the fault of the server's certificate. `None` if the certificate has no fault, or if
    /// [`TlsOptions::examine`](super::tls::TlsOptions::examine) is not set.
    #[must_use]
    pub fn certificate_fault(&self) -> Option<&str> {
        self.tls.as_ref()?.tls.certificate_fault()
    }

    /// Returns the server's certificates in DER; `None` if
    /// [`TlsOptions::keep_certificates`](super::tls::TlsOptions::keep_certificates) is not set.
    #[must_use]
    pub fn certificates(&self) -> Option<&Arc<[Vec<u8>]>> {
        self.tls.as_ref()?.tls.certificates()
    }

    /// Returns the parameters of the TLS session; `None` without TLS.
    #[must_use]
    pub fn tls_facts(&self) -> Option<TlsFacts> {
        self.tls.as_ref()?.tls.negotiated().map(NegotiatedSession::facts)
    }

    /// Returns lines of text that describe the TLS session and the server's certificate. The cipher
    /// suite has its standard name (RFC 8446, section B.4), not its name in rustls.
    #[must_use]
    pub fn session_lines(&self) -> Vec<String> {
        self.tls.as_ref().and_then(|secured| secured.tls.negotiated()).map(NegotiatedSession::lines).unwrap_or_default()
    }

    /// Continues the TLS handshake as far as the non-blocking socket allows. Returns true if the
    /// handshake is complete.
    ///
    /// # Errors
    /// The certificate is refused, the handshake fails, or the connection breaks.
    pub fn handshake(&mut self, buffer: &mut [u8]) -> Result<bool> {
        loop {
            let Some(secured) = &mut self.tls else { return Ok(true) };
            let outcome = secured.tls.handshake(&mut secured.partial, &mut secured.outgoing);
            // The alert that tells the peer the reason is sent before the error is returned.
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

    /// Receives available bytes into `buffer` with one system call. With TLS, the bytes are
    /// ciphertext.
    ///
    /// # Errors
    /// The socket fails.
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

    /// Decrypts the next record of `buffer[*at..filled]`, the received bytes, in place. Returns the
    /// range of the plaintext in `buffer`, and true if the peer has announced the end of the
    /// stream. Moves `at` to the first byte that was not processed. The range is `None` if no
    /// complete record is left; an incomplete record is kept for the next receive.
    ///
    /// # Errors
    /// A record is not authentic, or the peer violated TLS.
    pub fn decrypt_next(
        &mut self,
        buffer: &mut [u8],
        at: &mut usize,
        filled: usize,
    ) -> Result<(Option<Range<usize>>, bool)> {
        let Some(secured) = &mut self.tls else {
            let range = *at..filled;
            *at = filled;
            return Ok(((!range.is_empty()).then_some(range), false));
        };
        loop {
            let opened = secured.tls.decrypt(&mut buffer[*at..filled])?;
            let base = *at;
            *at += opened.consumed;
            if let Some(range) = opened.payload.filter(|range| !range.is_empty()) {
                return Ok((Some(base + range.start..base + range.end), false));
            }
            match opened.state {
                super::tls::TlsInputState::PeerClosed => return Ok((None, true)),
                super::tls::TlsInputState::NeedMore => {
                    secured.partial.extend_from_slice(&buffer[*at..filled]);
                    *at = filled;
                    secured.tls.take_control_output(&mut secured.outgoing);
                    return Ok((None, false));
                }
                super::tls::TlsInputState::Open => {}
            }
        }
    }

    /// Sends as many of `bytes` as the socket accepts, and returns their number. With TLS, encrypts
    /// all of `bytes` and returns their full number: [`ConnectionStream::flush`] later sends the
    /// encrypted bytes that the socket has not accepted.
    ///
    /// # Errors
    /// The error of the socket; [`io::ErrorKind::WouldBlock`] if none of `bytes` was accepted.
    pub fn send(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let Some(secured) = &mut self.tls else { return self.transport.send(bytes) };
        let transport = &mut self.transport;
        if !secured.flush(|sealed| transport.send(sealed))? {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        secured.tls.encrypt(bytes, &mut secured.outgoing).map_err(io::Error::other)?;
        secured.flush(|sealed| transport.send(sealed))?;
        Ok(bytes.len())
    }

    /// Sends encrypted bytes that the socket did not accept before. Returns true if all have been
    /// sent.
    ///
    /// # Errors
    /// The error of the socket.
    pub fn flush(&mut self) -> io::Result<bool> {
        let transport = &mut self.transport;
        if let Some(secured) = &mut self.tls
            && !secured.flush(|sealed| transport.send(sealed))?
        {
            return Ok(false);
        }
        transport.flush()
    }

    /// Shuts down the sending direction; the stream can still receive. In a tunnel through an https
    /// proxy, the connection to the proxy stays open.
    ///
    /// # Errors
    /// The error of the socket.
    pub fn end_sending(&mut self) -> io::Result<()> {
        let transport = &mut self.transport;
        if let Some(secured) = &mut self.tls {
            secured.close();
            secured.flush(|sealed| transport.send(sealed))?;
        }
        if transport.is_secure() { Ok(()) } else { transport.socket.shutdown_write() }
    }

    /// Returns true if encrypted bytes wait until the socket accepts them.
    #[must_use]
    pub fn has_output(&self) -> bool {
        self.tls.as_ref().is_some_and(|secured| secured.has_output()) || self.transport.has_output()
    }
}

impl ConnectionStream {
    /// Frees buffers of the TLS layers that an idle connection does not need.
    pub(crate) fn release_buffers(&mut self) {
        if let Some(secured) = &mut self.tls {
            secured.release_buffers();
        }
    }

    /// Closes the stream gently: waits for a short time until the peer has received the last
    /// output, even if there is unread input ([`lingering_close`]).
    pub(crate) fn drain(mut self) {
        if self.generation != fork::fork_count() {
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
    /// Sends the closing alert of each TLS layer (RFC 8446 section 6.1), or an alert about an
    /// error. Does not wait: if the socket does not accept the alert, the alert is lost.
    fn drop(&mut self) {
        if self.is_secure() && self.generation == fork::fork_count() {
            let _ = self.transport.close(self.tls.take());
        }
    }
}

impl AsFd for ConnectionStream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.transport.socket.as_fd()
    }
}
