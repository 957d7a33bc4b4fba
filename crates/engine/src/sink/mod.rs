//! Sinks: the destinations of bodies. They limit how much is received.
//!
//! A [`Sink`] grants *credit*: the number of bytes that it accepts now. A driver never reads more
//! of a body than the credit, so a full sink stops the reads, the socket's buffer fills, and the
//! peer's flow-control window closes. This mechanism alone bounds memory everywhere. When a sink
//! without credit accepts bytes again, it wakes the driver through the [`TransferWaker`] that it
//! was given.
//!
//! | sink | for |
//! |---|---|
//! | [`descriptor_writer`] | standard output and other inherited descriptors, never made non-blocking |
//! | [`file`](mod@file) | regular files (written beside the target, then renamed) and devices (written in place) |
//! | [`checksum`] | any sink, with its content verified against a checksum |
//! | [`memory`] | bodies that the program wants as bytes |
//!
//! [`temporary_and_final_names`] names complete files, [`partial`] keeps files that a later run can
//! complete, and [`pipe_capacity`] sets the capacity of pipes.

mod boot_id;
pub mod checksum;
pub mod descriptor_writer;
pub mod extracted_value_list;
pub mod file;
pub mod memory;
pub(crate) mod null_device_detection;
pub mod partial;
pub mod pipe_capacity;
pub mod temporary_and_final_names;

use std::any::Any;
use std::io::{self, IoSlice};
use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use haul_policy::range::validator::Validator;
use haul_policy::target::Target;
use haul_proto::response_head::ResponseHead;
use rustix::fd::BorrowedFd;

use crate::buffer_pool::OfferedBodyBytes;
use crate::fleet::FinishedTransferContent;
use crate::transfer_facts::TransferFacts;
use crate::transfer_outcome::FollowedRedirect;
use crate::{Error, ErrorKind, Result};
use extracted_value_list::ExtractedValues;

/// The handle by which a sink that has no room wakes the driver of its transfer when it accepts
/// bytes again.
pub trait TransferWaker: Send + Sync {
    /// Reports that the sink of the transfer with this token may accept bytes again. The driver
    /// then calls [`Sink::credit`].
    fn wake(&self, token: usize);
}

/// Adds a waker, with the token of its transfer, to the list of wakers that wait for room, unless
/// this pair is already in the list. (A transfer on a shared connection asks for room at each
/// receive.)
pub(crate) fn add_waiting_transfer(
    waiting: &mut Vec<(Arc<dyn TransferWaker>, usize)>,
    waker: &Arc<dyn TransferWaker>,
    token: usize,
) {
    if !waiting.iter().any(|(other, at)| *at == token && Arc::ptr_eq(other, waker)) {
        waiting.push((Arc::clone(waker), token));
    }
}

/// A counter of the body bytes that are written directly to the file, without the body's sink.
pub trait DirectWriteCounter: Send + Sync {
    /// Adds `bytes` to the number of bytes that were written directly.
    fn count(&self, bytes: u64);

    /// Reports the number of connections over which the body is currently fetched. By default, does
    /// nothing.
    fn set_connections(&self, _connections: usize) {}
}

/// The properties of a response that its sink receives before the body.
#[derive(Debug, Clone, Copy)]
pub struct ResponseForSink<'a> {
    /// The head of the response that is delivered.
    pub head: &'a ResponseHead,
    /// The target that the caller requested, before redirects. It is the same in each attempt,
    /// while [`place`](Self::place) may differ.
    pub target: &'a Target,
    /// The target that sent this response, after redirects.
    pub place: &'a Target,
    /// The redirects that were followed, if [`keep_history`](crate::RequestOptions::keep_history)
    /// is set.
    pub history: &'a [FollowedRedirect],
    /// The sizes, times and addresses of the transfer so far.
    pub facts: &'a TransferFacts,
    /// The number of bytes that will be passed to the sink. `None` if it is unknown, for example
    /// because the body is decoded or searched.
    pub length: Option<u64>,
    /// The offset in the content of the first byte that will be passed to the sink. It is above 0
    /// if the sink already has the earlier bytes.
    pub offset: u64,
    /// The full length of the content in bytes, before decoding; `None` if it is unknown.
    pub total: Option<u64>,
    /// The strong validator of the content, with which a later request can fetch the rest. `None`
    /// if the content has no such validator.
    pub validator: Option<&'a Validator>,
    /// The deadline of the current attempt, if there is one.
    pub deadline: Option<Instant>,
}

/// The part of the content that the sink has before the request is sent, for example from an
/// earlier run of the program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExistingPartialContent {
    /// The first range of bytes that the sink does not have. Its end is [`u64::MAX`] if the length
    /// of the content is unknown.
    pub gap: Range<u64>,
    /// The length in bytes and the validator of the whole content. `None` if they are
    /// unknown: then only the caller knows that the existing part is the beginning of the content.
    pub known: Option<(u64, Validator)>,
}

/// The bytes that [`Sink::receive`] received from a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceivedIntoSink {
    /// The number of received bytes. 0 means the end of the stream.
    pub bytes: usize,
    /// True if the bytes filled all the memory that the sink offered. If it is false and fewer
    /// bytes were received than requested, the socket was empty.
    pub filled_memory: bool,
}

impl ReceivedIntoSink {
    /// Returns the result of a `recv(2)` with room for `room` bytes that received `bytes` bytes.
    #[must_use]
    pub fn new(bytes: usize, room: usize) -> Self {
        Self { bytes, filled_memory: bytes == room }
    }
}

/// A destination for the body of one response, such as a file or a buffer.
pub trait Sink: Any + Send {
    /// Begins the body of a response that is delivered. The driver calls this once in each attempt.
    ///
    /// # Errors
    /// The destination cannot be opened.
    fn begin(&mut self, _begin: &ResponseForSink<'_>) -> Result<()> {
        Ok(())
    }

    /// Returns true if the sink itself decodes a body with this coding (the values of
    /// `Content-Encoding`, joined by commas). The sink then receives the bytes undecoded. The
    /// driver calls this before [`Sink::begin`]. By default, returns false.
    fn takes_encoded(&mut self, _coding: &[u8]) -> bool {
        false
    }

    /// Returns the number of body bytes that the sink accepts now. If it is 0, the sink calls
    /// [`TransferWaker::wake`] with `_token` once it accepts more. By default, there is no limit.
    fn credit(&mut self, _waker: Option<&Arc<dyn TransferWaker>>, _token: usize) -> u64 {
        u64::MAX
    }

    /// Returns true if only this body may be written to the output at present, so that all other
    /// bodies wait for its end. By default, returns false.
    fn is_awaited(&self) -> bool {
        false
    }

    /// Returns true if this body is the next one in the output, so that the output cannot continue
    /// without it. Otherwise, the sink wakes `_waker` with `_token` when this body becomes the next
    /// one. By default, returns false.
    fn is_first(&mut self, _waker: Option<&Arc<dyn TransferWaker>>, _token: usize) -> bool {
        false
    }

    /// Writes the next bytes of the body.
    ///
    /// # Errors
    /// The bytes cannot be written.
    fn bytes(&mut self, offered: OfferedBodyBytes<'_>) -> Result<()>;

    /// Writes body bytes that lie in several buffers, such as the records of a TLS stream. A sink
    /// may write them in one system call.
    ///
    /// # Errors
    /// The bytes cannot be written.
    fn pieces(&mut self, pieces: &mut [IoSlice<'_>]) -> Result<()> {
        pieces.iter().try_for_each(|piece| self.bytes(OfferedBodyBytes::borrowed(piece)))
    }

    /// Receives at most `_most` body bytes from a socket without TLS into the sink's own memory, by
    /// one `recv(2)` without flags. Returns the result of that call. The bytes then count as passed
    /// to the sink. If the call had room for fewer than `_most` bytes and filled it, the result
    /// must say so: more bytes may wait in the socket, for which no further event comes. A driver
    /// calls this if the kernel cannot move the bytes to a descriptor ([`Sink::direct`]).
    ///
    /// Returns `None`, the default, if the driver must receive the bytes itself and pass them to
    /// [`Sink::bytes`].
    fn receive(&mut self, _socket: BorrowedFd<'_>, _most: usize) -> Option<io::Result<ReceivedIntoSink>> {
        None
    }

    /// Returns a descriptor to which the kernel may move body bytes directly, for example by
    /// `splice(2)`. The descriptor is positioned at the next byte. The driver reports moved bytes
    /// with [`Sink::moved`]. Returns `None`, the default, if all bytes must be passed to the sink.
    fn direct(&mut self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// Makes a sink that waits for its output keep the bytes that the output does not accept now,
    /// if `_keeps` is true; the driver then waits for the output ([`Sink::full_output`]). If
    /// `_keeps` is false, the sink waits itself again. A driver calls this before each exchange on
    /// a connection that must be served while the output is full. By default, does nothing.
    fn keep_unwritten(&mut self, _keeps: bool) {}

    /// Returns the descriptor of the output if the sink keeps bytes that the output has not
    /// accepted ([`Sink::keep_unwritten`]). Once the descriptor is writable, the driver calls
    /// [`Sink::write_kept`]. Returns `None`, the default, if the sink keeps no bytes.
    fn full_output(&mut self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// Writes the kept bytes, as far as the output accepts them now. If the sink waits itself
    /// ([`Sink::keep_unwritten`]), writes all of them. By default, does nothing.
    ///
    /// # Errors
    /// The bytes cannot be written, for example because the pipe has lost its reader.
    fn write_kept(&mut self) -> Result<()> {
        Ok(())
    }

    /// Reports that `_bytes` body bytes were moved directly to the descriptor that [`Sink::direct`]
    /// returned.
    fn moved(&mut self, _bytes: u64) {}

    /// Makes the error for bytes that could not be moved to the descriptor of [`Sink::direct`].
    fn write_error(&self, error: io::Error) -> Error {
        Error::with_source(ErrorKind::Write, "failed to write the output", error)
    }

    /// Writes extracted values. By default, writes each value as a line.
    ///
    /// # Errors
    /// The values cannot be written.
    fn records(&mut self, records: &mut ExtractedValues) -> Result<()> {
        self.bytes(OfferedBodyBytes::borrowed(&records.to_lines()))?;
        records.clear();
        Ok(())
    }

    /// Receives a piece of a body from which values are extracted. The sink receives the values,
    /// too, by [`Sink::records`]. By default, ignores the piece.
    ///
    /// # Errors
    /// The body cannot be written.
    fn page(&mut self, _bytes: &[u8]) -> Result<()> {
        Ok(())
    }

    /// Returns the part of this target's content that the sink already has. The driver calls this
    /// once, before the request is sent. Later, it calls [`Sink::begin`] with the offset at which
    /// the response begins; the offset is 0 if the content has changed. By default, returns `None`.
    fn partial(&mut self, _target: &Target) -> Option<ExistingPartialContent> {
        None
    }

    /// Returns true if the sink keeps the bytes of the body in memory until the program takes them.
    /// The bytes count towards the memory budget of a [batch](crate::batch). By default, returns
    /// true.
    fn keeps_in_memory(&self) -> bool {
        true
    }

    /// Returns true if the sink keeps the existing content of its file and writes the body after it
    /// (`-C`). By default, returns false.
    fn continues_file(&self) -> bool {
        false
    }

    /// Advances to the next missing range of the sink's file, once the current range is complete.
    /// Further bytes belong to the new range. Returns `None`, the default, if nothing more is
    /// missing.
    fn next_gap(&mut self) -> Option<Range<u64>> {
        None
    }

    /// Returns the sink's file, if ranges of the body may be written to it in any order. By
    /// default, returns `None`.
    fn partial_file(&mut self) -> Option<Arc<partial::PartialFile>> {
        None
    }

    /// Returns the counter of the body bytes that a split download writes directly to the sink's
    /// file, not through the sink. By default, returns `None`.
    fn counter(&mut self) -> Option<Arc<dyn DirectWriteCounter>> {
        None
    }

    /// Keeps the received part of a body that broke off, so that a retry can continue after it.
    /// (The caller must make sure that the content has not changed in the meantime.) Returns false,
    /// the default, if the sink cannot keep the part.
    fn keeps(&mut self) -> bool {
        false
    }

    /// Discards the received bytes, so that a retry can start from the beginning. Returns false if
    /// the sink has already output some of the bytes.
    fn restart(&mut self) -> bool;

    /// Completes the output after the last byte of the body.
    ///
    /// # Errors
    /// The output cannot be completed, for example because the file cannot be synced or renamed.
    fn finish(&mut self) -> Result<()> {
        Ok(())
    }

    /// Removes and returns the content that belongs in the transfer's record. Returns `None`, the
    /// default, if the sink collects no content for a record.
    fn take_record(&mut self) -> Option<FinishedTransferContent> {
        None
    }

    /// Returns the path of the file that the sink has written. Returns `None` if the sink writes no
    /// file.
    fn file_name(&self) -> Option<&std::path::Path> {
        None
    }
}
