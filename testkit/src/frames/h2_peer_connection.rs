//! One connection of the scripted HTTP/2 peer.

use std::io::{self, Read, Write};
use std::sync::Arc;

use super::h2_frame_encoding::{Frame, settings, settings_ack};
use super::{H2ScriptState, frame};
use crate::peer_stream::PeerStream;
use crate::scripted_peer_listener::ScriptedPeerState;

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// A connection that a script reads from and writes to.
pub struct H2ScriptConnection {
    wire: Option<PeerStream>,
    number: usize,
    shared: Arc<ScriptedPeerState<H2ScriptState>>,
    ahead: Vec<u8>,
    decoder: loona_hpack::Decoder<'static>,
}

/// A request that the script has read, as a decoded HEADERS frame.
#[derive(Clone, Debug)]
pub struct H2PeerRequest {
    /// The number of the connection, counted from 0.
    pub connection: usize,
    /// The HTTP/2 stream id.
    pub stream: u32,
    /// All fields in order, including the pseudo-fields.
    pub fields: Vec<(String, String)>,
    /// True if the HEADERS frame of the request has END_STREAM, so that the request has no body.
    pub ends: bool,
}

impl H2PeerRequest {
    /// Returns the value of the first field with this name; `None` if there is no such field. The
    /// names of pseudo-fields begin with a colon.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.fields.iter().find(|(n, _)| n == name).map(|(_, value)| value.as_str())
    }

    /// Returns the value of `:path`; empty if the request has no such field.
    pub fn path(&self) -> &str {
        self.get(":path").unwrap_or_default()
    }
}

impl H2ScriptConnection {
    pub(super) fn new(
        wire: PeerStream,
        number: usize,
        shared: Arc<ScriptedPeerState<H2ScriptState>>,
    ) -> H2ScriptConnection {
        H2ScriptConnection { wire: Some(wire), number, shared, ahead: Vec::new(), decoder: loona_hpack::Decoder::new() }
    }

    /// Reads the client's preface and SETTINGS frame, then sends a SETTINGS frame with these
    /// identifiers and values and acknowledges the client's.
    ///
    /// # Errors
    /// If the socket fails, or the client sends something else first.
    pub fn greet(&mut self, values: &[(u16, u32)]) -> io::Result<()> {
        self.preface()?;
        if self.next_frame()?.kind != Frame::SETTINGS {
            return Err(io::Error::other("the client does not begin with SETTINGS"));
        }
        self.send([settings(values), settings_ack()].concat())
    }

    /// Reads the client's preface, and sends nothing.
    ///
    /// # Errors
    /// If the socket fails, or the client sends something else first.
    pub fn preface(&mut self) -> io::Result<()> {
        if self.read_bytes(PREFACE.len())? == PREFACE { Ok(()) } else { Err(io::Error::other("no HTTP/2 preface")) }
    }

    /// Reads the next frame of any type.
    ///
    /// # Errors
    /// If the socket fails or the client has closed.
    pub fn next_frame(&mut self) -> io::Result<Frame> {
        let head = self.read_bytes(9)?;
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
        let stream = u32::from_be_bytes([head[5], head[6], head[7], head[8]]) & 0x7fff_ffff;
        let frame = Frame { kind: head[3], flags: head[4], stream, payload: self.read_bytes(length)? };
        self.shared.change(|state| state.frames.push((self.number, frame.clone())));
        Ok(frame)
    }

    /// Returns the next frame of this type. Frames of other types that arrive before it are not
    /// returned, but [`super::H2Peer::frames`] lists them.
    ///
    /// # Errors
    /// If the socket fails or the client has closed.
    pub fn frame_of(&mut self, kind: u8) -> io::Result<Frame> {
        loop {
            let frame = self.next_frame()?;
            if frame.kind == kind {
                return Ok(frame);
            }
        }
    }

    /// Returns the next request. Frames of other types that arrive before its HEADERS frame are not
    /// returned, but [`super::H2Peer::frames`] lists them.
    ///
    /// # Errors
    /// If the socket fails, the client has closed, or a head cannot be decoded.
    pub fn request(&mut self) -> io::Result<H2PeerRequest> {
        let first = self.frame_of(Frame::HEADERS)?;
        let (mut block, mut flags) = (first.payload, first.flags);
        while flags & Frame::END_HEADERS == 0 {
            let more = self.next_frame()?;
            block.extend(more.payload);
            flags |= more.flags & Frame::END_HEADERS;
        }
        let decoded = self.decoder.decode(&block).map_err(|error| io::Error::other(format!("{error:?}")))?;
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        let fields = decoded.into_iter().map(|(name, value)| (text(name), text(value))).collect();
        let ends = first.flags & Frame::END_STREAM != 0;
        let asked = H2PeerRequest { connection: self.number, stream: first.stream, fields, ends };
        self.shared.change(|state| state.requests.push(asked.clone()));
        Ok(asked)
    }

    /// Sends these bytes in one write.
    ///
    /// # Errors
    /// If the socket fails.
    pub fn send(&mut self, bytes: impl AsRef<[u8]>) -> io::Result<()> {
        let wire = self.wire()?;
        wire.write_all(bytes.as_ref())?;
        wire.flush()
    }

    /// Sends a frame up to `times` times, or until a write fails. Returns the number of frames
    /// sent.
    pub fn flood(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8], times: u64) -> u64 {
        let bytes = frame(kind, flags, stream, payload);
        (0..times).take_while(|_| self.send(&bytes).is_ok()).count() as u64
    }

    /// Reads everything from the client until it closes.
    ///
    /// # Errors
    /// Never: a read error counts as the end of the client's data.
    pub fn drain(&mut self) -> io::Result<()> {
        while self.next_frame().is_ok() {}
        Ok(())
    }

    /// Waits until the test has called [`super::H2Peer::release`] `count` times. The test can
    /// thus determine the order of events without timers.
    pub fn wait(&self, count: u64) {
        self.shared.wait(|state| state.released >= count);
    }

    /// Closes the connection without a TLS close_notify.
    ///
    /// # Errors
    /// If the socket fails.
    pub fn close_without_notify(&mut self) -> io::Result<()> {
        self.wire.take().map_or(Ok(()), PeerStream::close_without_notify)
    }

    /// Resets the TCP connection.
    ///
    /// # Errors
    /// If the socket fails.
    pub fn reset(&mut self) -> io::Result<()> {
        self.wire.take().map_or(Ok(()), PeerStream::reset)
    }

    pub(super) fn finish(mut self, in_order: bool) {
        if let Some(wire) = self.wire.take() {
            // A client that disconnects is often the point of the test.
            let _ = if in_order { wire.close() } else { wire.close_without_notify() };
        }
    }

    fn wire(&mut self) -> io::Result<&mut PeerStream> {
        self.wire.as_mut().ok_or_else(|| io::ErrorKind::NotConnected.into())
    }

    fn read_bytes(&mut self, length: usize) -> io::Result<Vec<u8>> {
        let mut buffer = [0; 16 << 10];
        while self.ahead.len() < length {
            let got = self.wire()?.read(&mut buffer)?;
            if got == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            self.ahead.extend_from_slice(&buffer[..got]);
        }
        Ok(self.ahead.drain(..length).collect())
    }
}
