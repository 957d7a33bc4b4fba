//! The transport below a stream's own TLS: a socket or, for a tunnel through an https proxy, the
//! proxy's TLS and HTTP/2 connection. The layers above use it like a socket.
//!
//! ```text
//!  Stream:  plain text ◀─ [TLS with the origin] ◀─ SocketOrProxyTls: [bytes ahead] ◀─ [tunnel] ◀─ [TLS with the proxy] ◀─ socket
//! ```
//!
//! A part in brackets exists only if it is needed. `bytes ahead` are bytes that arrived together
//! with the proxy's response to CONNECT.
//!
//! The record layer decrypts in place, so one layer of TLS costs no copy. Two layers cost one copy:
//! this module decrypts the proxy's layer in its own buffer, and copies the plaintext into the
//! buffer of the layer above. Without the copy, that buffer would need room for a partial record of
//! each layer before every read.

use std::io;
use std::ops::Range;

use super::http2_tunnel::{Http2Tunnel, TunnelEvent};
use super::socket::Socket;
use super::tls::{MAX_RECORD, TlsConnection, TlsInputState};

/// The minimum size in bytes of the buffer for ciphertext from an https proxy: the size of four TLS
/// records.
const MIN_BUFFER_SIZE: usize = 4 * MAX_RECORD;

/// The maximum capacity, in bytes, of an empty buffer on an idle connection. Larger buffers are
/// freed.
const MAX_IDLE_CAPACITY: usize = 1024;

/// One layer of TLS on a byte stream: the state of the TLS connection, and buffered ciphertext.
#[derive(Debug)]
pub(super) struct TlsLayer {
    pub(super) tls: TlsConnection,
    /// The received bytes of an incomplete TLS record.
    pub(super) partial: Vec<u8>,
    /// Ciphertext that the layer below has not accepted yet.
    pub(super) outgoing: Vec<u8>,
    pub(super) sent: usize,
}

impl TlsLayer {
    pub(super) fn new(tls: TlsConnection) -> Self {
        Self { tls, partial: Vec::new(), outgoing: Vec::new(), sent: 0 }
    }

    /// Returns true if encrypted bytes are buffered that the layer below has not accepted yet.
    pub(super) fn has_output(&self) -> bool {
        self.sent < self.outgoing.len()
    }

    /// Appends the closing alert (`close_notify`) to the output. If a record was sent only in part,
    /// no alert can follow it, so none is appended.
    pub(super) fn close(&mut self) {
        if !self.has_output() {
            self.tls.take_control_output(&mut self.outgoing);
            self.tls.close_notify(&mut self.outgoing);
        }
    }

    /// Frees empty buffers of more than [`MAX_IDLE_CAPACITY`] bytes. The handshake leaves buffers
    /// of several KiB, and there may be thousands of idle connections.
    pub(super) fn release_buffers(&mut self) {
        for buffer in [&mut self.partial, &mut self.outgoing] {
            if buffer.is_empty() && buffer.capacity() > MAX_IDLE_CAPACITY {
                *buffer = Vec::new();
            }
        }
    }

    /// Sends waiting encrypted bytes with `send`. Returns true if all have been sent.
    pub(super) fn flush(&mut self, mut send: impl FnMut(&[u8]) -> io::Result<usize>) -> io::Result<bool> {
        while self.sent < self.outgoing.len() {
            match send(&self.outgoing[self.sent..]) {
                Ok(n) => self.sent += n,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.outgoing.clear();
        self.sent = 0;
        Ok(true)
    }
}

/// The byte stream on which the TLS layer to the origin runs: a socket, or a tunnel through an
/// https proxy.
#[derive(Debug)]
pub(super) struct SocketOrProxyTls {
    pub(super) socket: Socket,
    /// The first bytes from inside the tunnel, which arrived together with the proxy's response to
    /// CONNECT, and the number of these bytes that were already read.
    ahead: (Vec<u8>, usize),
    outer: Option<Box<ProxyTls>>,
    /// True if the last receive emptied the socket's receive buffer.
    is_drained: bool,
}

/// The TLS connection to an https proxy, and the tunnel through that proxy.
#[derive(Debug)]
struct ProxyTls {
    secured: TlsLayer,
    /// The tunnel on an HTTP/2 stream of the proxy; `None` if the proxy speaks HTTP/1.1.
    tunnel: Option<Http2Tunnel>,
    wire: Box<[u8]>,
    /// The range of `wire` that contains ciphertext which is not decrypted yet.
    sealed: Range<usize>,
    /// The range of `wire` that contains decrypted bytes which the tunnel has not processed yet.
    opened: Range<usize>,
    /// The range of `wire` that contains bytes for the caller, decrypted and not read yet. (`wire`
    /// is the receive buffer; its TLS records are decrypted in place.)
    plain: Range<usize>,
    /// The reason why the input ended: the proxy closed its direction, or its bytes could not be
    /// decrypted. `None` while the input continues.
    over: Option<ProxyTlsInputEndReason>,
}

/// The reason why no more bytes can be received from an https proxy.
#[derive(Debug)]
enum ProxyTlsInputEndReason {
    /// The input has ended. `is_announced` is true if the proxy has announced the end: for a tunnel
    /// on an HTTP/2 stream, by the end of that stream; for any other tunnel, by a `close_notify`.
    /// Without an announcement, the data may be truncated.
    Ended {
        is_announced: bool,
    },
    Broken(String),
}

impl SocketOrProxyTls {
    pub(super) fn new(socket: Socket) -> Self {
        Self { socket, ahead: (Vec::new(), 0), outer: None, is_drained: true }
    }

    /// Inserts the proxy's TLS layer `outer` and the HTTP/2 tunnel, if they are given, above the
    /// socket. `ahead` contains the bytes that followed the proxy's response to CONNECT, without
    /// the proxy's encryption: the first bytes from the origin or, with a tunnel, HTTP/2 frames for
    /// the tunnel.
    pub(super) fn add_tunnel(&mut self, outer: Option<Box<TlsLayer>>, ahead: Vec<u8>, tunnel: Option<Http2Tunnel>) {
        let Some(mut secured) = outer else {
            self.ahead = (ahead, 0);
            return;
        };
        let first = if tunnel.is_some() { ahead.len() } else { 0 };
        let partial = std::mem::take(&mut secured.partial);
        let mut wire = vec![0; MIN_BUFFER_SIZE.max(first + 2 * partial.len())].into_boxed_slice();
        wire[..first].copy_from_slice(&ahead[..first]);
        let sealed = first..first + partial.len();
        wire[sealed.clone()].copy_from_slice(&partial);
        let mut outer = ProxyTls { secured: *secured, tunnel, wire, sealed, opened: 0..first, plain: 0..0, over: None };
        // These bytes are processed now, since no socket event will cause it.
        while outer.plain.is_empty() && outer.over.is_none() && outer.pass_to_tunnel() {}
        self.outer = Some(Box::new(outer));
        if first == 0 {
            self.ahead = (ahead, 0);
        }
    }

    pub(super) fn is_secure(&self) -> bool {
        self.outer.is_some()
    }

    /// Returns true if the next receive returns bytes or the end without reading from the socket.
    /// The caller must not wait for the socket then.
    pub(super) fn has_buffered_input(&self) -> bool {
        self.ahead.1 < self.ahead.0.len()
            || self
                .outer
                .as_ref()
                .is_some_and(|outer| !outer.plain.is_empty() || !outer.opened.is_empty() || outer.over.is_some())
    }

    /// Returns true if the socket may contain more input although the last receive did not fill the
    /// caller's buffer. The caller must then receive again. Otherwise, the caller could wait for
    /// ever, because edge-triggered events do not announce old input.
    pub(super) fn may_have_more(&self) -> bool {
        self.has_buffered_input() || !self.is_drained
    }

    /// Returns true if an https proxy announced the end of the stream, so that the stream is not
    /// truncated. Returns false for a connection without an https proxy.
    pub(super) fn ended_properly(&self) -> bool {
        self.outer
            .as_ref()
            .is_some_and(|outer| matches!(outer.over, Some(ProxyTlsInputEndReason::Ended { is_announced: true })))
    }

    /// Returns true if a tunnel accepts no output before the proxy extends its flow-control window.
    /// The socket itself may have room.
    pub(super) fn waits_for_proxy(&self) -> bool {
        self.outer.as_ref().is_some_and(|outer| {
            !outer.secured.has_output() && outer.tunnel.as_ref().is_some_and(Http2Tunnel::waits_for_proxy)
        })
    }

    /// Receives bytes for the layer above, and returns their number; 0 means the end.
    pub(super) fn recv(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.is_drained = false;
        let (bytes, taken) = &mut self.ahead;
        if *taken < bytes.len() {
            let n = buffer.len().min(bytes.len() - *taken);
            buffer[..n].copy_from_slice(&bytes[*taken..*taken + n]);
            *taken += n;
            if *taken == bytes.len() {
                self.ahead = (Vec::new(), 0);
            }
            return Ok(n);
        }
        match &mut self.outer {
            None => {
                self.is_drained = true;
                self.socket.recv(buffer)
            }
            Some(outer) => outer.recv(&self.socket, buffer, &mut self.is_drained),
        }
    }

    /// Sends as many bytes as the socket accepts, and returns their number. With an outer TLS
    /// layer, all bytes are encrypted, and the layer keeps the bytes that the socket does not
    /// accept.
    pub(super) fn send(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let Some(outer) = &mut self.outer else { return self.socket.send(bytes) };
        let socket = &self.socket;
        if !outer.send_pending(socket)? {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        match &mut outer.tunnel {
            None => outer.secured.tls.encrypt(bytes, &mut outer.secured.outgoing).map_err(io::Error::other)?,
            Some(tunnel) => tunnel.send(bytes)?,
        }
        outer.send_pending(socket)?;
        Ok(bytes.len())
    }

    /// Sends encrypted bytes that the socket has not accepted yet. Returns true if all have been
    /// sent.
    pub(super) fn flush(&mut self) -> io::Result<bool> {
        let Some(outer) = &mut self.outer else { return Ok(true) };
        outer.send_pending(&self.socket)
    }

    pub(super) fn has_output(&self) -> bool {
        self.outer.as_ref().is_some_and(|outer| outer.secured.has_output())
    }

    /// Sends the closing alerts (`close_notify`) of `above`, the TLS layer on this stream, and of
    /// the proxy's TLS layer. Does not wait.
    pub(super) fn close(&mut self, above: Option<Box<TlsLayer>>) -> io::Result<()> {
        if self.outer.is_some() {
            self.socket.set_nonblocking(true)?;
        }
        if let Some(mut above) = above {
            above.close();
            above.flush(|sealed| match self.outer.is_some() {
                true => self.send(sealed),
                false => self.socket.send_nonblocking(sealed),
            })?;
        }
        if let Some(outer) = &mut self.outer {
            outer.secured.close();
            outer.secured.flush(|sealed| self.socket.send(sealed))?;
        }
        Ok(())
    }
}

impl ProxyTls {
    /// Receives decrypted bytes, and returns their number; 0 means the end. Reads from the socket
    /// only if no decrypted bytes are buffered. Returns the error `WouldBlock`, even in blocking
    /// mode, if the read bytes contain none for the caller (only an HTTP/2 PING, for example) and
    /// the socket has no more.
    /// Each read sets `is_drained`: to true if the read emptied the socket's receive buffer, and to
    /// false if the socket may have more bytes.
    fn recv(&mut self, socket: &Socket, buffer: &mut [u8], is_drained: &mut bool) -> io::Result<usize> {
        let mut filled = 0;
        let mut has_emptied = false;
        loop {
            let n = self.plain.len().min(buffer.len() - filled);
            buffer[filled..filled + n].copy_from_slice(&self.wire[self.plain.start..self.plain.start + n]);
            self.plain.start += n;
            filled += n;
            if let Some(tunnel) = &mut self.tunnel
                && n > 0
            {
                tunnel.release_window(n);
            }
            if filled == buffer.len() {
                break;
            }
            match &self.over {
                Some(_) if filled > 0 => break,
                // The end is not cleared, so that it is reported again.
                Some(ProxyTlsInputEndReason::Ended { .. }) => return Ok(0),
                Some(ProxyTlsInputEndReason::Broken(why)) => {
                    return Err(io::Error::new(io::ErrorKind::InvalidData, why.clone()));
                }
                None => {}
            }
            if self.pass_to_tunnel() || self.decrypt_next() {
                continue;
            }
            if filled > 0 {
                break;
            }
            self.send_pending(socket)?;
            self.wire.copy_within(self.sealed.clone(), 0);
            self.sealed = 0..self.sealed.len();
            // A blocking read would wait again, with its whole time limit. Bytes without content,
            // such as a PING, must not extend the caller's limits. An end that waits must be found.
            let room = &mut self.wire[self.sealed.end..];
            match if has_emptied { socket.recv_nonblocking(room)? } else { socket.recv(room)? } {
                // The stream inside must decide whether that was the end or a truncation.
                0 => self.over = Some(ProxyTlsInputEndReason::Ended { is_announced: false }),
                n => self.sealed.end += n,
            }
            *is_drained = self.sealed.end < self.wire.len();
            has_emptied = *is_drained && self.over.is_none();
        }
        // A proxy that waits for a WINDOW_UPDATE must get it now. If sending fails, the next call
        // returns the error.
        if self.tunnel.is_some() {
            let _ = self.send_pending(socket);
        }
        Ok(filled)
    }

    /// Sends encrypted bytes, TLS key updates, and the output of the tunnel. Returns true if all
    /// have been sent.
    fn send_pending(&mut self, socket: &Socket) -> io::Result<bool> {
        self.secured.tls.take_control_output(&mut self.secured.outgoing);
        loop {
            if !self.secured.flush(|sealed| socket.send(sealed))? {
                return Ok(false);
            }
            let Some(tunnel) = &mut self.tunnel else { return Ok(true) };
            let Some(output) = tunnel.output() else { return Ok(true) };
            self.secured.tls.encrypt(output, &mut self.secured.outgoing).map_err(io::Error::other)?;
            // If the tunnel is closed, the reader gets the error.
            let _ = tunnel.on_output_sent();
        }
    }

    /// Passes decrypted bytes to the tunnel until it reports an event (bytes of the stream, its end,
    /// or an error). Returns false if the tunnel needs more bytes than are available.
    fn pass_to_tunnel(&mut self) -> bool {
        let Some(tunnel) = &mut self.tunnel else { return false };
        let base = self.opened.start;
        match tunnel.receive(&mut self.wire[self.opened.clone()]) {
            Ok(TunnelEvent::Bytes(consumed, range)) => {
                self.opened.start += consumed;
                self.plain = base + range.start..base + range.end;
            }
            Ok(TunnelEvent::Nothing) => {
                self.opened = 0..0;
                return false;
            }
            Ok(TunnelEvent::End) => self.over = Some(ProxyTlsInputEndReason::Ended { is_announced: true }),
            Err(error) => self.over = Some(ProxyTlsInputEndReason::Broken(error.to_string())),
        }
        true
    }

    /// Decrypts the next TLS record of the proxy. Returns false if it is not completely received.
    fn decrypt_next(&mut self) -> bool {
        if self.sealed.is_empty() {
            return false;
        }
        match self.secured.tls.decrypt(&mut self.wire[self.sealed.clone()]) {
            Ok(opened) => {
                let base = self.sealed.start;
                self.sealed.start += opened.consumed;
                let range = opened.payload.map(|range| base + range.start..base + range.end);
                let has_any = range.is_some();
                if let Some(range) = range {
                    *if self.tunnel.is_some() { &mut self.opened } else { &mut self.plain } = range;
                }
                match opened.state {
                    TlsInputState::Open => true,
                    TlsInputState::NeedMore => has_any,
                    TlsInputState::PeerClosed => {
                        // The end of a tunnel on an HTTP/2 stream is END_STREAM, not the end of the
                        // connection (RFC 9113 §8.5).
                        let is_announced = self.tunnel.is_none();
                        self.over = Some(ProxyTlsInputEndReason::Ended { is_announced });
                        true
                    }
                }
            }
            Err(error) => {
                self.over = Some(ProxyTlsInputEndReason::Broken(error.cause()));
                self.secured.tls.take_control_output(&mut self.secured.outgoing);
                true
            }
        }
    }
}
