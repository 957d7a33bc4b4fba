//! The content of the last request, while it is read from its source and sent.

use std::io;
use std::time::Instant;

use haul_proto::h1::{H1Machine, RequestId};
use haul_proto::request::{RequestHead, SendRequestError};
use haul_proto::response_head::ProtocolVersion;
use haul_proto::time::MonotonicTimestamp;
use rustix::fd::BorrowedFd;

use super::super::sending::{
    ByteStreamMachine, ContentReadResult, ProtocolMachine, content_read_error, read_content_into_machine,
};
use crate::Error;
use crate::body::upload::{BodyUpload, FILE_TRUNCATED, FileRange};
use crate::drive::file_sender::{FileSendResult, FileSender, MIN_FILE_BYTES, MIN_PIPE_BYTES, is_pipe};
use crate::time_conversions;

/// The unsent content of the request that was queued last. No further request is sent before the
/// end of this content.
#[derive(Default)]
pub(super) struct UnsentRequestContent {
    upload: Option<Box<dyn BodyUpload>>,
    /// The time until which the content waits for the server's `100 Continue` (`Expect`). At that
    /// time, the content is sent even without that response. `None` if the content need not wait.
    held_until: Option<Instant>,
    /// True if the content's source had no bytes at the last read, and has not ended.
    is_starved: bool,
    /// The time when the content's source may have more bytes; `None` if the source has set no
    /// time.
    resumes_at: Option<Instant>,
    /// True if a read of the content may block the sending thread.
    may_block: bool,
    /// The sender that passes files and pipes of the content to the socket without a copy in this
    /// process. `None` if all content is read and copied.
    file_sender: Option<FileSender>,
    /// The error of the content's source, with the time when it occurred; `None` if the source has
    /// not failed.
    failed: Option<(Instant, Error)>,
}

impl UnsentRequestContent {
    /// Starts to send the content `upload`. If `held_until` is not `None`, the content waits for
    /// the server's `100 Continue`, but at most until that time. `may_block` is true if a read of
    /// the content may block the sending thread.
    pub(super) fn begin(&mut self, upload: Option<Box<dyn BodyUpload>>, may_block: bool, held_until: Option<Instant>) {
        self.upload = upload;
        self.may_block = may_block;
        self.held_until = held_until;
        self.file_sender = None;
        (self.is_starved, self.resumes_at) = (false, None);
    }

    /// Lets the kernel send the content's files and pipes without a copy, if they are large enough
    /// and the system supports it. `is_local_tcp` is true if the connection is a TCP connection to
    /// this machine: files are then read and copied. The copy costs the sender no more than
    /// `sendfile`, and the receiver much less: it need not copy single pages from the page cache
    /// (`docs/design/data-path.md`, uploads).
    pub(super) fn send_without_copy(&mut self, is_local_tcp: bool) {
        let Some(upload) = self.upload.as_deref_mut() else { return };
        let is_worth_it = (!is_local_tcp && has_large_file(upload)) || has_pipe(upload);
        self.file_sender = is_worth_it.then(FileSender::new).flatten();
    }

    /// Sends bytes of the content directly from its file or pipe, with one system call. Returns the
    /// number of bytes sent. Returns `None` if the protocol machine `conn` has output that must be
    /// sent first, or if the next bytes must be read and copied.
    ///
    /// # Errors
    /// The error of the socket; `WouldBlock` if it accepts nothing.
    pub(super) fn send_directly(&mut self, socket: BorrowedFd<'_>, conn: &mut H1Machine) -> io::Result<Option<u64>> {
        let (Some(sender), Some(upload)) = (self.file_sender, &mut self.upload) else { return Ok(None) };
        let credit = conn.direct_body_credit();
        if credit == 0 || self.failed.is_some() {
            return Ok(None);
        }
        if let Ok(Some(pipe)) = upload.pipe() {
            return match sender.send_pipe(socket, pipe, credit)? {
                FileSendResult::Sent(n) => {
                    conn.advance_direct_body(n);
                    Ok(Some(n))
                }
                FileSendResult::Refused => {
                    self.file_sender = None;
                    Ok(Some(0))
                }
            };
        }
        let Ok(Some(FileRange { file, length })) = upload.file() else { return Ok(None) };
        match sender.send(socket, file, length.min(credit))? {
            FileSendResult::Sent(0) => {
                let shorter = io::Error::new(io::ErrorKind::UnexpectedEof, FILE_TRUNCATED);
                self.failed = Some((Instant::now(), content_read_error(shorter)));
                Ok(None)
            }
            FileSendResult::Sent(n) => {
                conn.advance_direct_body(n);
                upload.consume_file(n);
                Ok(Some(n))
            }
            FileSendResult::Refused => {
                self.file_sender = None;
                Ok(Some(0))
            }
        }
    }

    /// Returns true if the kernel can send the next bytes of the content directly: bytes of a file,
    /// or bytes that wait in a pipe. For a pipe, begins a chunk of the chunked coding with the
    /// number of waiting bytes as its size.
    fn is_sent_directly(&mut self, conn: &mut H1Machine) -> bool {
        let (Some(sender), Some(upload)) = (self.file_sender, &mut self.upload) else { return false };
        if conn.body_credit().is_none() {
            return false;
        }
        if matches!(upload.file(), Ok(Some(_))) {
            return true;
        }
        let Ok(Some(pipe)) = upload.pipe() else { return false };
        if !conn.may_begin_chunk() {
            return conn.is_in_chunk();
        }
        let waiting = sender.bytes_in_pipe(pipe);
        if waiting < MIN_PIPE_BYTES {
            return false;
        }
        conn.begin_chunk(waiting);
        true
    }

    /// Returns true if the request's content has not been read to its end.
    pub(super) fn has_unread_content(&self) -> bool {
        self.upload.is_some()
    }

    /// Ends the content, because the response is complete.
    pub(super) fn end(&mut self) {
        self.upload = None;
        self.held_until = None;
        (self.is_starved, self.resumes_at) = (false, None);
    }

    /// Returns true if nothing of the request's content is left to read or to wait for.
    pub(super) fn is_finished(&self) -> bool {
        self.upload.is_none() && self.held_until.is_none()
    }

    /// Returns true if a read of the content may block the sending thread.
    pub(super) fn may_block(&self) -> bool {
        self.may_block && self.has_unread_content()
    }

    /// Reads content from its source into the protocol machine `conn`, as much as the machine
    /// accepts, and calls `given` with each piece. A read that returns fewer bytes than requested
    /// shows that the source has no more at present. Reading then stops, so that these bytes are
    /// sent first.
    pub(super) fn read_into_machine(&mut self, conn: &mut H1Machine, given: impl FnMut(&[u8])) {
        if self.failed.is_some() {
            return;
        }
        if self.held_until.is_some_and(|until| until <= Instant::now()) {
            self.held_until = None;
            conn.handle_timeout(MonotonicTimestamp(u64::MAX));
        }
        (self.is_starved, self.resumes_at) = (false, None);
        if self.is_sent_directly(conn) {
            return;
        }
        let Some(upload) = &mut self.upload else { return };
        match read_content_into_machine(conn, CONTENT_REQUEST_ID, &mut **upload, given) {
            Ok(ContentReadResult::Waits) => {}
            Ok(ContentReadResult::Starved(until)) => (self.is_starved, self.resumes_at) = (true, until),
            Ok(ContentReadResult::All) => {
                self.upload = None;
                self.held_until = None;
            }
            Err(error) => {
                self.failed = Some((Instant::now(), content_read_error(error)));
            }
        }
    }

    /// Returns true if the protocol machine accepts content now.
    pub(super) fn is_accepted_now(&self, conn: &H1Machine) -> bool {
        let is_due = || self.held_until.is_some_and(|until| until <= Instant::now());
        // Without a credit, a source that had no bytes is checked again ([`BodyUpload::check_empty`]).
        let may_feed = || conn.body_credit().map_or(self.is_starved, |credit| credit > 0) || is_due();
        self.upload.is_some() && self.failed.is_none() && may_feed()
    }

    /// Returns true if the content's source must deliver more bytes before anything can be sent.
    pub(super) fn is_waiting_for_source(&self) -> bool {
        self.is_starved
    }

    /// Returns the source's descriptor if the connection waits for the source, so that the caller
    /// can poll it. Returns `None` otherwise, or if the source has no descriptor.
    pub(super) fn source_to_poll(&self) -> Option<BorrowedFd<'_>> {
        self.upload.as_ref().filter(|_| self.is_starved && self.failed.is_none())?.source()
    }

    /// Returns the earliest of three times: the end of the wait for `100 Continue`, the time when
    /// the source may have more bytes, and the time when a failure of the source must be reported.
    /// Returns `None` if there is no such time.
    pub(super) fn next_timeout(&self, conn: &H1Machine) -> Option<Instant> {
        let held = self.held_until.filter(|_| conn.poll_timeout().is_some());
        let failed = self.failed.as_ref().map(|(since, _)| *since);
        time_conversions::earliest(time_conversions::earliest(held, self.resumes_at), failed)
    }

    /// Removes and returns the error of the content's source; `None` if it has not failed.
    pub(super) fn take_failure(&mut self) -> Option<Error> {
        self.failed.take().map(|(_, error)| error)
    }
}

/// Returns true if an upload begins with a file that is large enough for the kernel to send it. If
/// the file cannot be opened, returns false: the error occurs again when the content is read.
fn has_large_file(upload: &mut dyn BodyUpload) -> bool {
    matches!(upload.file(), Ok(Some(range)) if range.length >= MIN_FILE_BYTES)
}

/// Returns true if the upload has no known length, and its next bytes come from a pipe.
fn has_pipe(upload: &mut dyn BodyUpload) -> bool {
    upload.length().is_none() && matches!(upload.pipe(), Ok(Some(pipe)) if is_pipe(pipe))
}

/// The request ID for the HTTP/1 machine. The machine sends the content of one request at a time,
/// so one ID suffices.
const CONTENT_REQUEST_ID: RequestId = RequestId(0);

impl ProtocolMachine for H1Machine {
    fn may_expect_continue(&self) -> bool {
        true
    }

    fn supports_chunked_coding(&self) -> bool {
        true
    }

    fn version(&self, http10: bool) -> ProtocolVersion {
        if http10 || self.sends_http10() { ProtocolVersion::Http10 } else { ProtocolVersion::Http11 }
    }

    fn text_output(&self) -> Option<&[u8]> {
        Some(H1Machine::output(self))
    }

    fn enqueue(&mut self, now: Instant, request: &RequestHead<'_>) -> Result<RequestId, SendRequestError> {
        // The machine needs the time only to limit the wait for `100 Continue`.
        let time =
            if request.expect_continue { time_conversions::to_monotonic_timestamp(now) } else { MonotonicTimestamp(0) };
        self.enqueue(time, request)
    }

    fn content_credit(&self, _id: RequestId) -> Option<u64> {
        self.body_credit()
    }

    fn append_content(&mut self, _id: RequestId, piece: &[u8]) -> io::Result<()> {
        self.send_body(piece).map(drop).map_err(io::Error::other)
    }

    fn fill_content(
        &mut self,
        _id: RequestId,
        room: usize,
        read: &mut dyn FnMut(&mut [u8]) -> usize,
    ) -> io::Result<usize> {
        self.fill_body(room, read).map_err(io::Error::other)
    }

    fn end_content(&mut self, _id: RequestId, trailers: &[(&str, &[u8])]) -> io::Result<()> {
        self.finish_body(trailers).map_err(io::Error::other)
    }
}

impl ByteStreamMachine for H1Machine {
    fn output(&self) -> &[u8] {
        H1Machine::output(self)
    }

    fn advance_output(&mut self, n: usize) {
        H1Machine::advance_output(self, n);
    }
}
