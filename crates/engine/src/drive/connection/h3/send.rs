//! Writes the output of the protocol machine to QUIC streams, and sends datagrams.

use std::io;
use std::time::Instant;

use haul_proto::h3::{H3ErrorCode, H3SendStream, H3StreamAbortToSend};
use quinn_proto::{Dir, StreamId, VarInt, WriteError};

use super::super::sending::RESPONSE_CHECK_INTERVAL;
use super::H3Connection;
use super::protocol_machine_impl::H3MachineForNextStream;

/// The IDs of the client's unidirectional QUIC streams; `None` before a stream is open.
#[derive(Default)]
pub(super) struct ClientUniStreams {
    control: Option<StreamId>,
    encoder: Option<StreamId>,
    decoder: Option<StreamId>,
}

impl ClientUniStreams {
    fn entry(&mut self, stream: H3SendStream) -> Option<&mut Option<StreamId>> {
        match stream {
            H3SendStream::Control => Some(&mut self.control),
            H3SendStream::QpackEncoder => Some(&mut self.encoder),
            H3SendStream::QpackDecoder => Some(&mut self.decoder),
            H3SendStream::Request(_) => None,
        }
    }

    /// Returns the value by which the HTTP/3 machine identifies a QUIC stream on which the client
    /// sends: a control or QPACK stream, or the stream of a request.
    pub(super) fn to_send_stream(&self, id: StreamId) -> H3SendStream {
        match Some(id) {
            id if id == self.control => H3SendStream::Control,
            id if id == self.encoder => H3SendStream::QpackEncoder,
            id if id == self.decoder => H3SendStream::QpackDecoder,
            _ => H3SendStream::Request(haul_proto::RequestId(id.into())),
        }
    }
}

/// Returns the QUIC stream ID with the number `id`.
pub(super) fn stream_id(id: u64) -> StreamId {
    VarInt::from_u64(id).map_or_else(|_| VarInt::MAX.into(), StreamId::from)
}

/// Returns an HTTP/3 error code as a QUIC variable-length integer.
pub(super) fn var_int(code: H3ErrorCode) -> VarInt {
    VarInt::from_u64(code.0).unwrap_or(VarInt::MAX)
}

impl H3Connection {
    /// Sends pending output. Returns false if the socket has no room for all of it.
    ///
    /// # Errors
    /// The error of the socket.
    pub fn send_pending(&mut self) -> io::Result<bool> {
        // Each timeout ends by sending, and so does each receive that defers nothing.
        if !self.has_deferred_output && !self.uploads.is_not_empty() && !self.quic.has_output() {
            return Ok(true);
        }
        self.send_pending_at(Instant::now())
    }

    pub(super) fn send_pending_at(&mut self, now: Instant) -> io::Result<bool> {
        self.write_streams();
        self.has_deferred_output = false;
        self.quic.transmit(now)
    }

    /// Writes the output of the protocol machine to the streams of QUIC.
    pub(super) fn write_streams(&mut self) {
        let next_look = self.uploads.may_block().then(|| Instant::now() + RESPONSE_CHECK_INTERVAL);
        self.uploads.is_interrupted = false;
        loop {
            self.read_content_into_machine();
            self.run_machine_commands();
            if !self.write_output() {
                break;
            }
            if next_look.is_some_and(|at| at <= Instant::now()) {
                self.uploads.is_interrupted = self.uploads.is_not_empty();
                break;
            }
        }
    }

    /// Reads content of requests into the protocol machine.
    pub(super) fn read_content_into_machine(&mut self) {
        if self.uploads.is_not_empty() {
            self.uploads.read_into_machine(
                &mut H3MachineForNextStream { machine: &mut self.machine, stream: 0 },
                &mut self.active,
            );
        }
    }

    /// Executes the commands of the HTTP/3 machine: resets streams that haul sends on, and asks the
    /// peer to stop sending on other streams.
    pub(super) fn run_machine_commands(&mut self) {
        while let Some(command) = self.machine.next_command() {
            // A stream that QUIC has already closed needs neither.
            let _ = match command {
                H3StreamAbortToSend::ResetStream { id, code } => {
                    self.quic.machine().send_stream(stream_id(id.0)).reset(var_int(code))
                }
                H3StreamAbortToSend::StopSending { stream, code } => {
                    self.quic.machine().recv_stream(stream_id(stream)).stop(var_int(code))
                }
            };
        }
    }

    /// Writes the output of the HTTP/3 protocol machine to the QUIC streams, as far as they accept
    /// it. Returns true if anything was written.
    fn write_output(&mut self) -> bool {
        let mut has_written = false;
        while let Some(output) = self.machine.next_output() {
            let (name, fin) = (output.stream, output.fin);
            let id = match (name, self.own_streams.entry(name)) {
                (H3SendStream::Request(id), _) => Some(stream_id(id.0)),
                (_, Some(entry)) => {
                    if entry.is_none() {
                        *entry = self.quic.machine().streams().open(Dir::Uni);
                    }
                    *entry
                }
                (_, None) => None,
            };
            let Some(id) = id else {
                // The peer allows no further stream yet.
                self.machine.block_output(name);
                continue;
            };
            let mut stream = self.quic.machine().send_stream(id);
            let written = if output.bytes.is_empty() { Ok(0) } else { stream.write(output.bytes) };
            let len = output.bytes.len();
            match written {
                Ok(n) => {
                    if n == len && fin {
                        // Fails only for a stream that the peer has stopped.
                        let _ = stream.finish();
                    }
                    self.machine.advance_output(name, n);
                    has_written = true;
                }
                // A stopped stream has an event, which ends its output.
                Err(WriteError::Blocked | WriteError::Stopped(_)) => self.machine.block_output(name),
                Err(WriteError::ClosedStream) => self.machine.advance_output(name, len),
            }
        }
        has_written
    }
}
