//! One connection of the scripted HTTP/3 peer.

use std::collections::HashMap;
use std::future::Future;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use quinn::{Connection, ConnectionError, RecvStream, SendStream, VarInt};
use tokio::runtime::Handle;

use super::encode::{CONTROL_STREAM, DECODER_STREAM, HEADERS, decode_varint, settings, varint};
use super::{H3ScriptState, ReceivedUniStream};
use crate::scripted_peer_listener::{ScriptedPeerState, WAIT_TIMEOUT};

pub(super) const H3_NO_ERROR: u64 = 0x100;
pub(super) const H3_INTERNAL_ERROR: u64 = 0x102;

/// The maximum length in bytes of a request's HEADERS frame that a script reads.
const LONGEST_HEAD: usize = 1 << 20;

/// A connection that a script reads from and writes to. A read that waits for more than 30 seconds
/// fails.
pub struct H3ScriptConnection {
    connection: Connection,
    number: usize,
    shared: Arc<ScriptedPeerState<H3ScriptState>>,
    runtime: Handle,
    sending: HashMap<u64, SendStream>,
    receiving: HashMap<u64, RecvStream>,
}

/// A request that the script has read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct H3Request {
    /// The number of the connection, counted from 0.
    pub connection: usize,
    /// The ID of the request stream.
    pub stream: u64,
    /// The encoded field section of the request's HEADERS frame.
    pub section: Vec<u8>,
}

impl H3ScriptConnection {
    /// Creates the connection of a script. Must be called inside a tokio runtime.
    pub(super) fn new(
        connection: Connection,
        number: usize,
        shared: Arc<ScriptedPeerState<H3ScriptState>>,
    ) -> H3ScriptConnection {
        let (sending, receiving) = (HashMap::new(), HashMap::new());
        H3ScriptConnection { connection, number, shared, runtime: Handle::current(), sending, receiving }
    }

    /// Opens a control stream that begins with a SETTINGS frame. Returns the stream's ID.
    ///
    /// # Errors
    /// If the connection has ended.
    pub fn greet(&mut self, values: &[(u64, u64)]) -> io::Result<u64> {
        self.open(CONTROL_STREAM, settings(values))
    }

    /// Opens a unidirectional stream of this type, and sends these bytes on it. Returns the
    /// stream's ID. The stream stays open.
    ///
    /// # Errors
    /// If the connection has ended, or the client allows no further stream.
    pub fn open(&mut self, kind: u64, bytes: impl AsRef<[u8]>) -> io::Result<u64> {
        let opening = self.connection.open_uni();
        let stream = self.runtime.block_on(with_timeout(async { opening.await.map_err(io::Error::from) }))?;
        let id = u64::from(VarInt::from(stream.id()));
        self.sending.insert(id, stream);
        self.send(id, [&varint(kind)[..], bytes.as_ref()].concat())?;
        Ok(id)
    }

    /// Waits for a request, and reads it up to the end of its HEADERS frame.
    ///
    /// # Errors
    /// If the connection ends first, or the client sends something else on the stream.
    pub fn request(&mut self) -> io::Result<H3Request> {
        let connection = self.connection.clone();
        let (sending, mut receiving) =
            self.runtime.block_on(with_timeout(async { connection.accept_bi().await.map_err(io::Error::from) }))?;
        let stream = u64::from(VarInt::from(receiving.id()));
        let section = self.runtime.block_on(with_timeout(read_section(&mut receiving)))?;
        self.sending.insert(stream, sending);
        self.receiving.insert(stream, receiving);
        let request = H3Request { connection: self.number, stream, section };
        self.shared.change(|state| state.requests.push(request.clone()));
        Ok(request)
    }

    /// Reads the request stream to its end, and returns the bytes that follow its first HEADERS
    /// frame.
    ///
    /// # Errors
    /// If the client resets the stream, or the connection ends.
    pub fn read_to_end(&mut self, stream: u64) -> io::Result<Vec<u8>> {
        let receiving = self.receiving.get_mut(&stream).ok_or(io::ErrorKind::NotFound)?;
        let reading = async { receiving.read_to_end(1 << 30).await.map_err(io::Error::other) };
        self.runtime.block_on(with_timeout(reading))
    }

    /// Sends these bytes on a stream.
    ///
    /// # Errors
    /// If the client has stopped the stream, or the connection has ended.
    pub fn send(&mut self, stream: u64, bytes: impl AsRef<[u8]>) -> io::Result<()> {
        let sending = self.sending.get_mut(&stream).ok_or(io::ErrorKind::NotFound)?;
        self.runtime.block_on(with_timeout(async { sending.write_all(bytes.as_ref()).await.map_err(io::Error::from) }))
    }

    /// Sends these bytes on a stream up to `times` times, or until sending fails. Returns the
    /// number of times that the bytes were sent.
    pub fn flood(&mut self, stream: u64, bytes: &[u8], times: u64) -> u64 {
        (0..times).take_while(|_| self.send(stream, bytes).is_ok()).count() as u64
    }

    /// Ends the sending direction of a stream: the script sends no more bytes on the stream.
    ///
    /// # Errors
    /// If this direction has already ended, or the stream does not exist.
    pub fn finish(&mut self, stream: u64) -> io::Result<()> {
        let sending = self.sending.get_mut(&stream).ok_or(io::ErrorKind::NotFound)?;
        sending.finish().map_err(io::Error::other)
    }

    /// Resets the sending direction of a stream with this error code, by RESET_STREAM.
    ///
    /// # Errors
    /// If this direction has already ended, or the stream does not exist.
    pub fn reset(&mut self, stream: u64, code: u64) -> io::Result<()> {
        let sending = self.sending.get_mut(&stream).ok_or(io::ErrorKind::NotFound)?;
        sending.reset(varint_of(code)).map_err(io::Error::other)
    }

    /// Sends STOP_SENDING on a request stream, which asks the client to send no more data on it.
    ///
    /// # Errors
    /// If the client's side of the stream has ended.
    pub fn stop_sending(&mut self, stream: u64, code: u64) -> io::Result<()> {
        let receiving = self.receiving.get_mut(&stream).ok_or(io::ErrorKind::NotFound)?;
        receiving.stop(varint_of(code)).map_err(io::Error::other)
    }

    /// Waits until the client sends STOP_SENDING for a stream on which the script sends. Returns
    /// the error code; `None` if the client has received the whole stream.
    ///
    /// # Errors
    /// If the connection ends first.
    pub fn stop_sending_code(&mut self, stream: u64) -> io::Result<Option<u64>> {
        let sending = self.sending.get_mut(&stream).ok_or(io::ErrorKind::NotFound)?;
        let code = self.runtime.block_on(with_timeout(async { sending.stopped().await.map_err(io::Error::other) }))?;
        Ok(code.map(VarInt::into_inner))
    }

    /// Waits until the client has sent `count` PING frames on the connection.
    ///
    /// # Errors
    /// If the connection ends first, or after 30 seconds.
    pub fn wait_for_pings(&self, count: u64) -> io::Result<()> {
        let connection = self.connection.clone();
        self.runtime.block_on(with_timeout(async {
            while connection.stats().frame_rx.ping < count {
                if let Some(reason) = connection.close_reason() {
                    return Err(reason.into());
                }
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            Ok(())
        }))
    }

    /// Starts a key update (RFC 9001 section 6), unless one is in progress.
    pub fn update_keys(&self) {
        self.connection.force_key_update();
    }

    /// Closes the connection with this HTTP/3 error code, unless it has ended.
    pub fn close(&mut self, code: u64) {
        // quinn would report that the connection was closed here, whoever closed it first.
        if self.connection.close_reason().is_none() {
            self.connection.close(varint_of(code), b"");
        }
    }

    /// Waits until the connection ends.
    ///
    /// # Errors
    /// If the connection does not end within 30 seconds.
    pub fn wait_closed(&mut self) -> io::Result<()> {
        let connection = self.connection.clone();
        self.runtime.block_on(with_timeout(async {
            connection.closed().await;
            Ok(())
        }))
    }

    /// Waits until the client acknowledges the field section on this stream (RFC 9204 section
    /// 4.4.1): it has decoded a response head that refers to the dynamic table. Works for stream
    /// IDs below 127.
    pub fn wait_section_acknowledged(&self, stream: u64) {
        let acknowledgement = u8::try_from(stream).map_or(0xff, |id| 0x80 | id);
        self.shared.wait(|state| {
            let mut streams = state.uni_streams.iter().filter(|stream| stream.connection == self.number);
            streams.any(|stream| {
                stream.bytes.starts_with(&varint(DECODER_STREAM)) && stream.bytes.contains(&acknowledgement)
            })
        });
    }

    /// Waits until the test has called [`super::H3Peer::release`] `count` times. The test can thus
    /// determine the order of events without timers.
    pub fn wait(&self, count: u64) {
        self.shared.wait(|state| state.is_stopping || state.released >= count);
    }
}

/// Records the data that the client sends on unidirectional streams, and how it closes the
/// connection. Must be called inside a tokio runtime.
pub(super) fn record(connection: Connection, number: usize, shared: Arc<ScriptedPeerState<H3ScriptState>>) {
    let (closing, ending) = (connection.clone(), shared.clone());
    tokio::spawn(async move {
        let code = match closing.closed().await {
            ConnectionError::ApplicationClosed(close) => Some(close.error_code.into_inner()),
            _ => None,
        };
        ending.change(|state| state.closed.push((number, code)));
    });
    tokio::spawn(async move {
        while let Ok(mut receiving) = connection.accept_uni().await {
            let stream = u64::from(VarInt::from(receiving.id()));
            let shared = shared.clone();
            shared.change(|state| {
                state.uni_streams.push(ReceivedUniStream { connection: number, stream, bytes: Vec::new() });
            });
            tokio::spawn(async move {
                while let Ok(Some(chunk)) = receiving.read_chunk(usize::MAX, true).await {
                    shared.change(|state| {
                        let is_same =
                            |seen: &&mut ReceivedUniStream| (seen.connection, seen.stream) == (number, stream);
                        if let Some(seen) = state.uni_streams.iter_mut().find(is_same) {
                            seen.bytes.extend_from_slice(&chunk.bytes);
                        }
                    });
                }
            });
        }
    });
}

/// Reads a HEADERS frame and returns its payload.
async fn read_section(stream: &mut RecvStream) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    loop {
        let kind = decode_varint(&bytes);
        let length = kind.and_then(|(_, used)| Some((used, decode_varint(&bytes[used..])?)));
        if let (Some((kind, _)), Some((used, (length, more)))) = (kind, length) {
            let start = used + more;
            let end = start + usize::try_from(length).unwrap_or(usize::MAX).min(LONGEST_HEAD);
            if kind != HEADERS {
                return Err(io::Error::other(format!("a request begins with a frame of type {kind:#x}")));
            }
            if bytes.len() >= end {
                return Ok(bytes[start..end].to_vec());
            }
        }
        let mut byte = [0];
        stream.read_exact(&mut byte).await.map_err(io::Error::other)?;
        bytes.push(byte[0]);
    }
}

fn varint_of(code: u64) -> VarInt {
    VarInt::from_u64(code).unwrap_or(VarInt::MAX)
}

/// Waits for the result of `work`, and fails after 30 seconds.
async fn with_timeout<T>(work: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    tokio::time::timeout(WAIT_TIMEOUT, work).await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}
