//! The agent's side of one call: the descriptor to which the worker thread writes the body, and the
//! socket to which the agent sends the head and the result.
//!
//! ```text
//!  worker ──▶ AgentCallSink ──▶ AgentCall { output } ──▶ descriptor
//!                  └──▶ ResponseStart ──▶ socket
//! ```
//!
//! If the descriptor is full, the main thread waits until it is writable, and then wakes the
//! worker. When the whole body is written, the agent closes the descriptor, and then sends the
//! `AgentTransferResult` to the socket.

use std::error::Error as _;
use std::io::{self, IoSlice, Write};
use std::net::Shutdown;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use haul::buffer_pool::OfferedBodyBytes;
use haul::sink::descriptor_writer::{DescriptorWriter, OutputReadiness};
use haul::sink::{ResponseForSink, Sink, TransferWaker};
use haul::transfer::TransferOutcome;
use haul::{Error, ErrorKind, Result};
use mio::unix::SourceFd;
use mio::{Interest, Registry, Token};
use rustix::fs::{FileType, fstat};

use crate::agent::protocol::{AgentMessage, AgentTransferResult, ResponseStart};

/// The maximum length, 256 KiB, of a response that the agent still receives to its end if the
/// caller disconnects. The connection to the server can then be reused. The transfer of a longer
/// response is aborted, because receiving it costs more than a new connection.
const MAX_DRAINED_RESPONSE: u64 = 256 << 10;

/// A call (one request of a caller) whose result the agent has not sent yet.
pub(super) struct AgentCall {
    id: u64,
    socket: Arc<UnixStream>,
    registry: Registry,
    token: Token,
    output: Mutex<AgentCallBodyWriter>,
}

struct AgentCallBodyWriter {
    /// The writer to the descriptor that receives the body; `None` once the descriptor is closed.
    output: Option<DescriptorWriter>,
    /// True while the pipe that receives the body has no room for more bytes. `output` then buffers
    /// the bytes that did not fit, and the main thread watches the pipe.
    is_full: bool,
    is_watched: bool,
    /// True if the response is at most [`MAX_DRAINED_RESPONSE`] bytes long and its body goes to a
    /// pipe.
    is_short: bool,
    /// True if the caller (the process for which the agent sends the request) has disconnected
    /// while the agent still receives the response. The agent discards the response.
    is_orphaned: bool,
    waiting: Option<(Arc<dyn TransferWaker>, usize)>,
    /// The encoded result of the call; `None` until the transfer has ended. The result is sent to
    /// the caller once the whole body is written.
    end: Option<Vec<u8>>,
}

impl AgentCall {
    pub(super) fn new(id: u64, socket: Arc<UnixStream>, output: OwnedFd, registry: Registry, token: Token) -> Self {
        let outlet = AgentCallBodyWriter {
            output: Some(DescriptorWriter::new(output)),
            is_full: false,
            is_watched: false,
            is_short: false,
            is_orphaned: false,
            waiting: None,
            end: None,
        };
        Self { id, socket, registry, token, output: Mutex::new(outlet) }
    }

    /// Returns the id of the call. The worker thread identifies the call's transfer by the same
    /// number.
    pub(super) fn id(&self) -> u64 {
        self.id
    }

    fn output(&self) -> MutexGuard<'_, AgentCallBodyWriter> {
        self.output.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns true if the agent has nothing more to do for the call. Returns false while the
    /// descriptor to which the body is written is open. Also returns false while the agent receives
    /// and discards the rest of a response, because the caller has disconnected.
    pub(super) fn is_finished_or_abandoned(&self) -> bool {
        let outlet = self.output();
        outlet.output.is_none() && !outlet.is_orphaned
    }

    /// Handles the disconnection of the caller. Returns `true` if the response is short enough
    /// ([`MAX_DRAINED_RESPONSE`]) to be received to its end, so that the connection to the server
    /// can be reused.
    pub(super) fn on_caller_left(&self) -> bool {
        let mut outlet = self.output();
        if outlet.is_short {
            self.close_and_discard(&mut outlet);
        }
        outlet.is_short
    }

    /// Closes the descriptor to which the body is written, because nobody reads it any more. If the
    /// transfer has not ended, wakes it, so that the agent receives and discards the rest of the
    /// response.
    fn close_and_discard(&self, outlet: &mut AgentCallBodyWriter) {
        outlet.is_orphaned = outlet.end.is_none();
        outlet.is_full = false;
        let waiting = outlet.waiting.take();
        self.close(outlet);
        if let Some((wake, token)) = waiting {
            wake.wake(token);
        }
    }

    /// Writes the buffered bytes of the body to the output descriptor that the caller has sent. The
    /// main thread calls this after that descriptor has become writable, or its reader has closed
    /// it. Once all bytes are written, wakes the transfer or, if the transfer has ended, sends its
    /// result.
    pub(super) fn on_writable(&self) {
        let mut outlet = self.output();
        let Some(output) = &mut outlet.output else { return };
        match output.flush() {
            Ok(OutputReadiness::Full) => return,
            // The worker finds the same error when it writes, and says it.
            Ok(OutputReadiness::Free) | Err(_) => outlet.is_full = false,
        }
        if outlet.end.is_some() {
            self.close(&mut outlet);
        } else if let Some((wake, token)) = outlet.waiting.take() {
            wake.wake(token);
        }
    }

    /// Sends the result of the call's transfer to the caller.
    pub(super) fn finish(&self, outcome: &TransferOutcome) {
        let error = outcome.result.as_ref().err();
        let done = AgentMessage::Done(Box::new(AgentTransferResult {
            facts: (*outcome.facts).clone(),
            url: outcome.target.to_url(),
            head: outcome.head.as_ref().map(|head| head.raw().to_vec()),
            error: error.map(Into::into),
        }));
        let mut outlet = self.output();
        if std::mem::take(&mut outlet.is_orphaned) {
            let _ = self.socket.shutdown(Shutdown::Both);
            return;
        }
        outlet.end = Some(done.to_frame());
        let is_gone = error.is_some_and(|error| error.kind() == ErrorKind::Write);
        if is_gone || !outlet.is_full {
            self.close(&mut outlet);
        }
    }

    /// Disconnects the caller without a result, because the agent cannot finish the call.
    pub(super) fn abort(&self) {
        self.output().end = None;
        self.close(&mut self.output());
        let _ = self.socket.shutdown(Shutdown::Both);
    }

    /// Closes the descriptor of the body, then sends the result of the call if there is one. In
    /// this order, the agent writes nothing more once the caller has the result.
    fn close(&self, outlet: &mut AgentCallBodyWriter) {
        if let Some(output) = outlet.output.take()
            && outlet.is_watched
        {
            // Its other holders may keep the description open, and then epoll would keep it too.
            let _ = self.registry.deregister(&mut SourceFd(&output.as_fd().as_raw_fd()));
        }
        outlet.waiting = None;
        if let Some(end) = outlet.end.take() {
            self.send(&end);
        }
    }

    /// Sends a message (frame) to the caller, and returns whether it was sent. Disconnects the
    /// caller if the socket's buffer is full. The messages are few and small, so that this happens
    /// only if the caller does not read them.
    fn send(&self, frame: &[u8]) -> bool {
        let sent = (&*self.socket).write_all(frame).is_ok();
        if !sent {
            let _ = self.socket.shutdown(Shutdown::Both);
        }
        sent
    }

    fn watch(&self, outlet: &mut AgentCallBodyWriter) -> bool {
        if outlet.is_watched {
            return true;
        }
        let Some(output) = &outlet.output else { return false };
        let fd = output.as_fd().as_raw_fd();
        outlet.is_watched = self.registry.register(&mut SourceFd(&fd), self.token, Interest::WRITABLE).is_ok();
        outlet.is_watched
    }
}

/// The sink that writes the response body of a call to the output descriptor that the caller has
/// sent to the agent. (A call is one request that another haul process, the caller, sends to the
/// agent.)
pub(super) struct AgentCallSink {
    call: Arc<AgentCall>,
    /// A duplicate of the output descriptor if the output is a regular file: the kernel can move
    /// bytes directly to it. `None` for a pipe, because writing to a full pipe would block.
    file: Option<OwnedFd>,
    written: bool,
}

impl AgentCallSink {
    pub(super) fn new(call: &Arc<AgentCall>) -> Self {
        let outlet = call.output();
        let file = outlet.output.as_ref().and_then(|output| {
            let kind = fstat(output).map(|stat| FileType::from_raw_mode(stat.st_mode)).ok()?;
            (kind == FileType::RegularFile).then(|| output.as_fd().try_clone_to_owned().ok())?
        });
        drop(outlet);
        Self { call: Arc::clone(call), file, written: false }
    }

    fn write(&mut self, write: impl FnOnce(&mut DescriptorWriter) -> Result<OutputReadiness>) -> Result<()> {
        self.written = true;
        let mut outlet = self.call.output();
        if outlet.is_orphaned {
            return Ok(());
        }
        let gone = || Error::new(ErrorKind::Write, "the caller has closed the output");
        let output = outlet.output.as_mut().ok_or_else(gone)?;
        // Small writes would be collected, but the next bytes may take long.
        match write(output).and_then(|_| output.flush()) {
            // Watched now and not at the next `credit`: the server may send nothing more, and the
            // driver would not ask.
            Ok(room) => outlet.is_full = room == OutputReadiness::Full && self.call.watch(&mut outlet),
            Err(error) if outlet.is_short && is_broken_pipe(&error) => self.call.close_and_discard(&mut outlet),
            Err(error) => return Err(error),
        }
        Ok(())
    }
}

/// Returns true if the error is `EPIPE`: the reader of a pipe has closed it.
fn is_broken_pipe(error: &Error) -> bool {
    let cause = error.source().and_then(|cause| cause.downcast_ref::<io::Error>());
    cause.is_some_and(|cause| cause.kind() == io::ErrorKind::BrokenPipe)
}

impl Sink for AgentCallSink {
    fn begin(&mut self, begin: &ResponseForSink<'_>) -> Result<()> {
        let began = AgentMessage::Began(ResponseStart {
            head: begin.head.raw().to_vec(),
            length: begin.length,
            total: begin.total,
            validator: begin.validator.cloned(),
        });
        let mut outlet = self.call.output();
        // Another process may own a file that its caller has left.
        outlet.is_short = self.file.is_none() && begin.length.is_some_and(|length| length <= MAX_DRAINED_RESPONSE);
        if !outlet.is_orphaned && !self.call.send(&began.to_frame()) {
            if !outlet.is_short {
                return Err(Error::new(ErrorKind::Interrupted, "the call is gone"));
            }
            self.call.close_and_discard(&mut outlet);
        }
        Ok(())
    }

    fn credit(&mut self, waker: Option<&Arc<dyn TransferWaker>>, token: usize) -> u64 {
        let mut outlet = self.call.output();
        if !outlet.is_full {
            return u64::MAX;
        }
        outlet.waiting = waker.map(|wake| (Arc::clone(wake), token));
        0
    }

    fn bytes(&mut self, offered: OfferedBodyBytes<'_>) -> Result<()> {
        self.write(|output| output.write(offered.bytes()))
    }

    fn pieces(&mut self, pieces: &mut [IoSlice<'_>]) -> Result<()> {
        self.write(|output| output.write_pieces(pieces))
    }

    fn direct(&mut self) -> Option<BorrowedFd<'_>> {
        self.file.as_ref().map(AsFd::as_fd)
    }

    fn moved(&mut self, bytes: u64) {
        self.written |= bytes > 0;
    }

    fn restart(&mut self) -> bool {
        !self.written
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::time::Duration;

    use mio::{Events, Poll};

    use super::*;

    #[test]
    fn agent_writes_buffered_body_when_pipe_has_room() {
        const LENGTH: usize = 2 << 20;
        let (mut reader, writer) = io::pipe().unwrap();
        let (socket, _caller) = UnixStream::pair().unwrap();
        let mut poll = Poll::new().unwrap();
        let registry = poll.registry().try_clone().unwrap();
        let call = Arc::new(AgentCall::new(1, Arc::new(socket), writer.into(), registry, Token(1)));
        let mut sink = AgentCallSink::new(&call);
        let bytes = vec![b'x'; LENGTH];
        sink.pieces(&mut [IoSlice::new(&bytes)]).unwrap();
        assert!(call.output().is_full, "more than any pipe holds");
        let reading = std::thread::spawn(move || {
            let mut received = vec![0; LENGTH];
            reader.read_exact(&mut received).unwrap();
        });
        let mut events = Events::with_capacity(4);
        while call.output().is_full {
            poll.poll(&mut events, Some(Duration::from_secs(60))).unwrap();
            assert!(events.iter().any(|event| event.token() == Token(1)), "the pipe is watched");
            call.on_writable();
        }
        reading.join().unwrap();
    }
}
