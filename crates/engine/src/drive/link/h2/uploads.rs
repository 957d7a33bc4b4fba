//! The content of requests that share a connection: a part of each in turn, as far as the peer's windows go.

use std::io;
use std::time::Instant;

use haul_proto::h2::{Conn, RequestId};
use haul_proto::request::{Request, RequestError};
use haul_proto::time::Time;

use super::super::sending::{Fed, Machine, feed, unreadable};
use super::{Active, ByNumber};
use crate::Error;

/// Uploads under way.
#[derive(Default)]
pub(super) struct Uploads {
    /// Their streams, in turn.
    turns: Vec<u64>,
    /// Those whose source failed.
    failed: Vec<(u64, Error)>,
    /// The source of one had nothing when it was asked last.
    is_starved: bool,
    /// When it may have more.
    resumes_at: Option<Instant>,
    /// A read of one may block the thread that sends it.
    may_block: bool,
    /// More could be read and sent, but the driver wanted to look for an early answer first.
    pub(super) is_interrupted: bool,
}

impl Uploads {
    /// One more.
    pub(super) fn begin(&mut self, id: RequestId, may_block: bool) {
        self.turns.push(id.0);
        self.may_block = may_block;
    }

    /// Whether a read of one may block the thread that sends it.
    pub(super) fn may_block(&self) -> bool {
        self.may_block && self.are_left()
    }

    /// Whether there are any.
    pub(super) fn are_left(&self) -> bool {
        !self.turns.is_empty()
    }

    /// Whether [`Uploads::take_failed`] has something to tell.
    pub(super) fn has_failed(&self) -> bool {
        !self.failed.is_empty()
    }

    /// Those whose source failed since the last call.
    pub(super) fn take_failed(&mut self) -> Vec<(u64, Error)> {
        std::mem::take(&mut self.failed)
    }

    /// Whether there will be no more of one of them before its source has something.
    pub(super) fn is_starved(&self) -> bool {
        self.is_starved
    }

    /// When [`Uploads::feed`] is worth calling though nothing happened.
    pub(super) fn resumes_at(&self) -> Option<Instant> {
        self.resumes_at
    }

    /// Puts content into the machine as far as it takes it.
    pub(super) fn feed(&mut self, conn: &mut Conn, active: &mut ByNumber<Active>) {
        let Self { turns, failed, is_starved, resumes_at, .. } = self;
        (*is_starved, *resumes_at) = (false, None);
        turns.retain(|&id| {
            let Some(Active { upload: Some(upload), transfer, .. }) = active.get_mut(&id) else { return false };
            match feed(conn, RequestId(id), &mut **upload, |piece| {
                transfer.took_content();
                transfer.on_sent(piece);
            }) {
                Ok(Fed::All) => false,
                Ok(Fed::Waits) => true,
                Ok(Fed::Starved(until)) => {
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

impl Machine for Conn {
    fn asks_first(&self) -> bool {
        false
    }

    fn has_chunks(&self) -> bool {
        false
    }

    fn version(&self, _http10: bool) -> &'static str {
        "HTTP/2"
    }

    fn take(&mut self, now: Time, request: &Request<'_>) -> Result<RequestId, RequestError> {
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
        Conn::output(self)
    }

    fn advance_output(&mut self, n: usize) {
        Conn::advance_output(self, n);
    }
}
