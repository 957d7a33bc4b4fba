//! Uploads of the requests that share a connection. They take turns to send, within the peer's
//! flow-control windows.

use std::io;
use std::time::Instant;

use haul_proto::h2::{H2Machine, RequestId};
use haul_proto::request::{RequestError, RequestHead};
use haul_proto::time::Timestamp;

use super::super::sending::{FeedResult, ProtocolMachine, feed, unreadable};
use super::{ActiveStream, StreamMap};
use crate::Error;

/// The uploads in progress on a connection, and the state of their content sources.
#[derive(Default)]
pub(super) struct Uploads {
    /// The streams with uploads, in the order in which they send in each round.
    turns: Vec<u64>,
    /// The streams whose content source failed, each with its error.
    failed: Vec<(u64, Error)>,
    /// True if the content source of an upload had no bytes at the last read, and has not ended.
    is_starved: bool,
    /// The time when a content source may have more bytes.
    resumes_at: Option<Instant>,
    /// True if a read of content may block the sending thread.
    may_block: bool,
    /// True if there is content that could be sent now. Sending was interrupted, because the driver
    /// must check for an early response first.
    pub(super) is_interrupted: bool,
}

impl Uploads {
    /// Adds the upload of this request to those in progress.
    pub(super) fn begin(&mut self, id: RequestId, may_block: bool) {
        self.turns.push(id.0);
        self.may_block = may_block;
    }

    /// Returns true if a read of content may block the sending thread.
    pub(super) fn may_block(&self) -> bool {
        self.may_block && self.are_left()
    }

    /// Returns true if an upload is in progress.
    pub(super) fn are_left(&self) -> bool {
        !self.turns.is_empty()
    }

    /// Returns true if [`Uploads::take_failed`] has anything to return.
    pub(super) fn has_failed(&self) -> bool {
        !self.failed.is_empty()
    }

    /// Returns the streams whose source has failed since the last call, with the errors.
    pub(super) fn take_failed(&mut self) -> Vec<(u64, Error)> {
        std::mem::take(&mut self.failed)
    }

    /// Returns true if the content source of an upload had no bytes at the last read.
    pub(super) fn is_starved(&self) -> bool {
        self.is_starved
    }

    /// Returns the time of the next timeout: call [`Uploads::feed`] then, even without an event.
    pub(super) fn resumes_at(&self) -> Option<Instant> {
        self.resumes_at
    }

    /// Reads content into the protocol machine, as much as the machine accepts.
    pub(super) fn feed(&mut self, conn: &mut H2Machine, active: &mut StreamMap<ActiveStream>) {
        let Self { turns, failed, is_starved, resumes_at, .. } = self;
        (*is_starved, *resumes_at) = (false, None);
        turns.retain(|&id| {
            let Some(ActiveStream { upload: Some(upload), transfer, .. }) = active.get_mut(&id) else { return false };
            match feed(conn, RequestId(id), &mut **upload, |piece| {
                transfer.on_upload_progress();
                transfer.on_sent(piece);
            }) {
                Ok(FeedResult::All) => {
                    transfer.set_sending(false);
                    false
                }
                Ok(FeedResult::Waits) => {
                    transfer.set_sending(true);
                    true
                }
                Ok(FeedResult::Starved(until)) => {
                    transfer.set_sending(false);
                    *is_starved = true;
                    *resumes_at = [*resumes_at, until].into_iter().flatten().min();
                    true
                }
                Err(error) => {
                    failed.push((id, unreadable(error)));
                    false
                }
            }
        });
    }
}

impl ProtocolMachine for H2Machine {
    fn asks_first(&self) -> bool {
        false
    }

    fn has_chunks(&self) -> bool {
        false
    }

    fn version(&self, _http10: bool) -> &'static str {
        "HTTP/2"
    }

    fn take(&mut self, now: Timestamp, request: &RequestHead<'_>) -> Result<RequestId, RequestError> {
        self.enqueue(now, request)
    }

    fn content_credit(&self, id: RequestId) -> Option<u64> {
        self.body_credit(id)
    }

    fn give_content(&mut self, id: RequestId, piece: &[u8]) -> io::Result<()> {
        self.send_body(id, piece).map(drop).map_err(io::Error::other)
    }

    fn end_content(&mut self, id: RequestId, trailers: &[(&str, &[u8])]) -> io::Result<()> {
        self.finish_body(id, trailers).map_err(io::Error::other)
    }

    fn output(&self) -> &[u8] {
        H2Machine::output(self)
    }

    fn advance_output(&mut self, n: usize) {
        H2Machine::advance_output(self, n);
    }
}
