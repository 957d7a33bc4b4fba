//! Destinations of bodies, and how they limit what they receive.
//!
//! A [`Sink`] gives *credit*: the number of bytes it can take now. A driver never reads more of a
//! body than the credit, so a full sink stops the reads, the socket's buffer fills, and the peer's
//! window closes. That one mechanism bounds memory everywhere. A sink without credit wakes the
//! driver through the [`TransferWaker`] it was given.
//!
//! | sink | for |
//! |---|---|
//! | [`output`] | standard output and other inherited descriptors, never made non-blocking |
//! | [`file`](mod@file) | regular files (written beside the target, then renamed) and devices (written in place) |
//! | [`checksum`] | what a content should come to |
//! | [`naming`] | how a complete file gets its name |
//! | [`partial`] | files that a later run can complete |
//! | [`memory`] | bodies that the program wants as bytes |
//!
//! [`pipe`] says how much a pipe holds.

pub mod checksum;
pub mod file;
pub mod match_list;
pub mod memory;
pub mod naming;
pub(crate) mod null;
pub mod output;
pub mod partial;
pub mod pipe;

use std::any::Any;
use std::io::{self, IoSlice};
use std::ops::Range;
use std::os::fd::BorrowedFd;
use std::time::Instant;

use haul_policy::range::validator::Validator;
use haul_policy::target::Target;
use haul_proto::head::ResponseHead;

use crate::buffer::Lease;
use crate::facts::Facts;
use crate::outcome::FollowedRedirect;
use crate::{Error, ErrorKind, Result};
use match_list::MatchList;

/// Wakes the driver of a transfer whose sink had no credit.
pub trait TransferWaker: Send + Sync {
    /// Reports that the sink can take bytes again, or that asking again is worthwhile.
    fn wake(&self, token: usize);
}

/// Counts bytes that a sink does not see.
pub trait ByteCounter: Send + Sync {
    /// Counts `bytes` more bytes.
    fn count(&self, bytes: u64);
}

/// The facts about a response that its sink receives.
#[derive(Debug, Clone, Copy)]
pub struct BodyInfo<'a> {
    /// The response's head.
    pub head: &'a ResponseHead,
    /// The requested target. Redirects from it may lead elsewhere each time.
    pub target: &'a Target,
    /// The URL that this is the response to, after redirects.
    pub place: &'a Target,
    /// The redirects that were followed, if they are kept.
    pub history: &'a [FollowedRedirect],
    /// Facts known so far.
    pub facts: &'a Facts,
    /// The length of what will be pushed, if known; it is unknown for a decoded or extracted body.
    pub length: Option<u64>,
    /// Offset in the content of the first byte that will be pushed. Earlier bytes exist already.
    pub offset: u64,
    /// The length of the content as transferred, if known.
    pub total: Option<u64>,
    /// A validator that distinguishes the content from every other, if it can be resumed with it.
    pub validator: Option<&'a Validator>,
    /// Deadline of the transfer.
    pub deadline: Option<Instant>,
}

/// The part of a content that an earlier run left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartialContent {
    /// The first missing bytes; the end is open if it is unknown.
    pub gap: Range<u64>,
    /// The length and the validator of the content. Without them, the existing part counts as its
    /// beginning because the user says so.
    pub known: Option<(u64, Validator)>,
}

/// A destination for one body.
pub trait Sink: Any + Send {
    /// Begins a response that will be delivered. Called once an attempt.
    ///
    /// # Errors
    /// When the place where the body goes cannot be opened.
    fn begin(&mut self, _begin: &BodyInfo<'_>) -> Result<()> {
        Ok(())
    }

    /// Returns whether the sink decodes the body itself, whose content has this coding (the fields'
    /// values, joined by commas). If so, the sink gets the bytes as they were received. Called
    /// before [`Sink::begin`]. Default no.
    fn takes_encoded(&mut self, _coding: &[u8]) -> bool {
        false
    }

    /// Returns the number of bytes that the sink can take now. After 0, the sink calls `wake` with
    /// `token` once it can take more.
    fn credit(&mut self, _waker: Option<&std::sync::Arc<dyn TransferWaker>>, _token: usize) -> u64 {
        u64::MAX
    }

    /// Returns whether all other bodies of the run must wait for the end of this one, since only
    /// this one may write to the output.
    fn is_awaited(&self) -> bool {
        false
    }

    /// Returns whether the output waits for this body. If not, the sink keeps `waker` and wakes it
    /// when that changes. Default no.
    fn is_first(&mut self, _waker: Option<&std::sync::Arc<dyn TransferWaker>>, _token: usize) -> bool {
        false
    }

    /// Takes body bytes.
    ///
    /// # Errors
    /// When they cannot be written.
    fn bytes(&mut self, lease: Lease<'_>) -> Result<()>;

    /// Takes body bytes that lie in several places, such as the records of a TLS stream. A sink
    /// that writes may do so in one call.
    ///
    /// # Errors
    /// When they cannot be written.
    fn pieces(&mut self, pieces: &mut [IoSlice<'_>]) -> Result<()> {
        pieces.iter().try_for_each(|piece| self.bytes(Lease::borrowed(piece)))
    }

    /// Receives body bytes from a plain socket into the sink's own memory, at most this many, in
    /// one `recv(2)` without flags, and returns its result. A driver without a better way calls
    /// this before it receives the bytes itself; to the sink they count as pushed. Returns `None`,
    /// the default, if the bytes must be pushed.
    fn receive(&mut self, _socket: BorrowedFd<'_>, _most: usize) -> Option<io::Result<usize>> {
        None
    }

    /// Returns the descriptor to which body bytes may be moved directly, bypassing the sink, at the
    /// position of the next byte. A driver that does so reports it by [`Sink::moved`]. Returns
    /// `None`, the default, if the sink must see the bytes.
    fn direct(&mut self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// Counts bytes that were moved to the descriptor of [`Sink::direct`].
    fn moved(&mut self, _bytes: u64) {}

    /// Returns the error for a failure to move bytes to that descriptor.
    fn write_error(&self, error: io::Error) -> Error {
        Error::with_source(ErrorKind::Write, "failed to write the output", error)
    }

    /// Takes extracted values. Default: writes each as a line.
    ///
    /// # Errors
    /// When they cannot be written.
    fn records(&mut self, records: &mut MatchList) -> Result<()> {
        self.bytes(Lease::borrowed(&records.to_lines()))?;
        records.clear();
        Ok(())
    }

    /// Receives the body in which values are searched, piece by piece. Default: ignores it.
    ///
    /// # Errors
    /// When it cannot be written.
    fn page(&mut self, _bytes: &[u8]) -> Result<()> {
        Ok(())
    }

    /// Returns the existing part of this target's content. Called once, before anything is sent.
    /// [`Sink::begin`] then gets the offset at which the response begins, which is 0 if the content
    /// has changed.
    fn partial(&mut self, _target: &Target) -> Option<PartialContent> {
        None
    }

    /// Moves on to the next gap once one is filled, if there is another. Further bytes belong
    /// there.
    fn next_gap(&mut self) -> Option<Range<u64>> {
        None
    }

    /// Returns the file, if its parts may arrive in any order.
    fn partial_file(&mut self) -> Option<std::sync::Arc<partial::PartialFile>> {
        None
    }

    /// Returns the counter for bytes that bypass the sink, since parts of the file are written
    /// directly.
    fn counter(&mut self) -> Option<std::sync::Arc<dyn ByteCounter>> {
        None
    }

    /// Keeps the received part of a body that broke off, for another attempt that continues it
    /// although only the user says that it is the same content. Returns `false`, the default, if
    /// that is not wanted.
    fn keeps(&mut self) -> bool {
        false
    }

    /// Discards the received bytes, for another attempt. Returns `false` if some were output and
    /// cannot be taken back.
    fn restart(&mut self) -> bool;

    /// Completes the body.
    ///
    /// # Errors
    /// When what was written cannot be made to last.
    fn finish(&mut self) -> Result<()> {
        Ok(())
    }

    /// Returns the name of the file written, if there is one.
    fn file_name(&self) -> Option<&std::path::Path> {
        None
    }
}
