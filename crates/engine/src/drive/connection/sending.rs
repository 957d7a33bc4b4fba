//! Sending on a connection of any protocol: content goes from its source into the protocol machine,
//! and the machine's output to the stream.
//!
//! ```text
//!  BodyUpload ──read_content_into_machine──▶ ProtocolMachine ──send_output──▶ ConnectionStream
//! ```

use std::io;
use std::time::{Duration, Instant};

use haul_proto::RequestId;
use haul_proto::request::{RequestHead, SendRequestError};
use haul_proto::response_head::ProtocolVersion;

use crate::ErrorKind;
use crate::body::upload::{BodyUpload, ContentClaimed, ReaderPanicked};
use crate::net::stream::ConnectionStream;

/// The largest number of bytes that one read requests from a source of request content.
const MAX_CONTENT_READ: usize = 256 << 10;
/// The size in bytes of the pieces of content that are copied into the output of a protocol
/// machine. Used if the content source cannot write into that output itself.
const COPIED_PIECE: usize = 16 << 10;

/// The number of bytes that an empty send buffer of a socket accepts even if its peer does not
/// read. The value is the default of Linux (`tcp_wmem`).
pub(super) const MIN_SEND_BUFFER: usize = 16 << 10;

/// The time after which sending is interrupted so that the connection can be checked for an early
/// response.
pub(super) const RESPONSE_CHECK_INTERVAL: Duration = Duration::from_millis(10);

/// The result of [`send_output`], which sends output to a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SendResult {
    /// All output has been sent.
    All,
    /// The socket has no room for the rest of the output.
    Full,
    /// Sending was interrupted, because the connection must be checked for an early response first.
    CheckForResponse,
}

/// The interface of a protocol machine (HTTP/1, HTTP/2 or HTTP/3) for sending: the machine accepts
/// requests and their content.
pub trait ProtocolMachine {
    /// Returns true if a request with large content waits by default for the server's `100
    /// Continue` (`Expect`, RFC 9110 section 10.1.1). This is true for HTTP/1, where the connection
    /// must be closed if the server refuses the content. HTTP/2 and HTTP/3 can reset the stream at
    /// any time.
    fn may_expect_continue(&self) -> bool;

    /// Returns true if the protocol has the chunked transfer coding. HTTP/2 has no transfer codings
    /// (RFC 9113 section 8.2.2).
    fn supports_chunked_coding(&self) -> bool;

    /// Returns the protocol version of the machine's requests; `http10` selects HTTP/1.0.
    fn version(&self, http10: bool) -> ProtocolVersion;

    /// Returns the unsent output if it is HTTP/1 text. Default: `None`.
    fn text_output(&self) -> Option<&[u8]> {
        None
    }

    /// Queues a request.
    ///
    /// # Errors
    /// The request cannot be sent.
    fn enqueue(&mut self, now: Instant, request: &RequestHead<'_>) -> Result<RequestId, SendRequestError>;

    /// Returns the number of bytes of a request's content that the machine accepts now. Returns
    /// `None` if the machine expects no more content: the content is complete, or the response
    /// arrived before the end of the content.
    fn content_credit(&self, id: RequestId) -> Option<u64>;

    /// Adds a piece of content, which must not exceed [`ProtocolMachine::content_credit`]. If the
    /// length of the content is known, the machine ends the content by itself as soon as all bytes
    /// were added. If bytes are missing, [`ProtocolMachine::end_content`] fails.
    ///
    /// # Errors
    /// The content differs from the announced length.
    fn append_content(&mut self, id: RequestId, piece: &[u8]) -> io::Result<()>;

    /// Adds a piece of content. The function `read` gets a buffer of at most `room` bytes, writes
    /// the piece into it, and returns the number of bytes written. `room` must not exceed
    /// [`ProtocolMachine::content_credit`]. Returns the number of bytes added.
    ///
    /// # Errors
    /// The content differs from the announced length.
    fn fill_content(
        &mut self,
        id: RequestId,
        room: usize,
        read: &mut dyn FnMut(&mut [u8]) -> usize,
    ) -> io::Result<usize> {
        let mut piece = [0; COPIED_PIECE];
        let n = read(&mut piece[..room.min(COPIED_PIECE)]);
        self.append_content(id, &piece[..n])?;
        Ok(n)
    }

    /// Ends the content of the request, and sends these trailer fields after the content.
    ///
    /// # Errors
    /// The errors of [`ProtocolMachine::append_content`], or a field that may not be a trailer
    /// field.
    fn end_content(&mut self, id: RequestId, trailers: &[(&str, &[u8])]) -> io::Result<()>;
}

/// A protocol machine whose output is a single stream of bytes.
pub(super) trait ByteStreamMachine: ProtocolMachine {
    /// Returns the machine's output that must be sent.
    fn output(&self) -> &[u8];

    /// Removes the `n` bytes that were sent from the front of the output.
    fn advance_output(&mut self, n: usize);
}

/// The reason why [`read_content_into_machine`] stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ContentReadResult {
    /// The content is complete: there is no more to send.
    All,
    /// Reading has stopped for the moment. Either the protocol machine accepts no more content, or
    /// the source returned fewer bytes than requested. In the second case, the bytes read so far
    /// must be sent before the source is read again.
    Waits,
    /// The source has no bytes now. It wakes the sender when it has bytes. The field is the time at
    /// which the source must be read again even without a wake-up; `None` if there is no such time.
    Starved(Option<Instant>),
}

/// Reads content from its source into the protocol machine. Stops when the content ends, the
/// machine accepts no more, or the source has no bytes at present. Called before output is sent, so
/// that a head and a small body are sent in one write. `given` is called with each piece.
///
/// # Errors
/// The error of the source, or content that differs from the announced length.
pub(super) fn read_content_into_machine(
    machine: &mut impl ProtocolMachine,
    id: RequestId,
    upload: &mut dyn BodyUpload,
    mut given: impl FnMut(&[u8]),
) -> io::Result<ContentReadResult> {
    // Content in memory is not copied on its way, and needs no buffer.
    while !upload.ready().is_empty()
        && let Some(credit) = machine.content_credit(id)
    {
        let n = upload.ready().len().min(usize::try_from(credit).unwrap_or(usize::MAX));
        if n == 0 {
            return Ok(ContentReadResult::Waits);
        }
        let ready = &upload.ready()[..n];
        machine.append_content(id, ready)?;
        given(ready);
        upload.consume(n);
    }
    if machine.content_credit(id).is_none() {
        return match upload.check_empty() {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                Ok(ContentReadResult::Starved(upload.resumes_at()))
            }
            checked => checked.map(|()| ContentReadResult::All),
        };
    }
    while let Some(credit) = machine.content_credit(id) {
        let room = MAX_CONTENT_READ.min(usize::try_from(credit).unwrap_or(usize::MAX));
        if room == 0 {
            return Ok(ContentReadResult::Waits);
        }
        let (mut requested, mut outcome) = (0, Ok(0));
        let n = machine.fill_content(id, room, &mut |piece| {
            requested = piece.len();
            outcome = upload.read(piece);
            let n = *outcome.as_ref().unwrap_or(&0);
            if n > 0 {
                given(&piece[..n]);
            }
            n
        })?;
        match outcome {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                return Ok(ContentReadResult::Starved(upload.resumes_at()));
            }
            outcome => outcome?,
        };
        if n == 0 {
            let trailers = upload.trailers()?;
            let fields: Vec<_> = trailers.iter().map(|(name, value)| (name.as_str(), value.as_slice())).collect();
            machine.end_content(id, &fields)?;
            given(&[]);
            continue;
        }
        if n < requested && machine.content_credit(id).is_some() {
            return Ok(ContentReadResult::Waits);
        }
    }
    Ok(ContentReadResult::All)
}

/// Returns the error of a transfer whose content source failed with `error`.
pub(super) fn content_read_error(error: io::Error) -> crate::Error {
    match error.kind() {
        _ if error.get_ref().is_some_and(|cause| cause.is::<ReaderPanicked>()) => {
            crate::Error::new(ErrorKind::Panicked, ReaderPanicked.to_string())
        }
        _ if error.get_ref().is_some_and(|cause| cause.is::<ContentClaimed>()) => {
            crate::Error::new(ErrorKind::Rewind, ContentClaimed.to_string())
        }
        _ => crate::Error::with_source(ErrorKind::Read, "the content to send cannot be read", error),
    }
}

/// Sends the machine's output. Calls `feed` before each write to add content, and `sent` after each
/// write. If `may_block` is true, a read of the content may block this thread. Sending then stops
/// after [`RESPONSE_CHECK_INTERVAL`], so that the caller can check for an early response.
///
/// # Errors
/// The error of the socket. Nevertheless, a response may have arrived: receive before the
/// connection is given up.
pub(super) fn send_output<M: ByteStreamMachine>(
    stream: &mut ConnectionStream,
    machine: &mut M,
    may_block: bool,
    mut feed: impl FnMut(&mut M),
    mut sent: impl FnMut(),
) -> io::Result<SendResult> {
    let next_timeout = may_block.then(|| Instant::now() + RESPONSE_CHECK_INTERVAL);
    loop {
        feed(machine);
        let output = machine.output();
        if output.is_empty() {
            return Ok(if stream.flush()? { SendResult::All } else { SendResult::Full });
        }
        match stream.send(output) {
            Ok(n) => {
                machine.advance_output(n);
                sent();
                if next_timeout.is_some_and(|at| at <= Instant::now()) {
                    return Ok(if stream.flush()? { SendResult::CheckForResponse } else { SendResult::Full });
                }
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(SendResult::Full),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}
