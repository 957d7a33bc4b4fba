//! A turn: responses of pipelined requests, which count only once their connection has proved silent.
//!
//! Responses carry no name: the n-th answers the n-th request. A server that sends one too many (a
//! bug, or content that an attacker made look like a response) shifts all that follow, and each looks
//! right. The surplus shows at the end: behind the last response that was asked for, another one
//! comes. So the responses of a turn are kept from the second one on. At its end we close our side,
//! and the server has to close its own without another byte.
//!
//! ```text
//!  request on an idle connection ─▶ others behind it … all answered ─▶ our end ─▶ the peer's end: they count
//!            │                                                           ├─▶ silence for a while: they count
//!            └─▶ the first response counts at once                       └─▶ bytes: fetched again alone, or failed
//! ```
//!
//! The rejected alternative, to look for surplus bytes when the last response has come, sees them
//! only if they are quick: the surplus response is the real answer to the last request, and the
//! server may still be working on it.
//!
//! Such a peer gets one request for each connection from then on: a surplus response that comes late
//! is the answer to the next request to any client of HTTP/1.1.
//!
//! Three ends of a turn prove nothing, and what it delivered counts: a response that announces the
//! end of the connection, an end by the peer, and a body for which there is no memory.

use std::time::{Duration, Instant};

use haul_policy::queue::HostId;
use haul_proto::h1::CloseReason;

use super::super::{Finished, Progress};
use super::{LARGEST_RECORD, Link};
use crate::buffer::Buffer;
use crate::net::stream::Received;
use crate::transfer::Transfer;

/// The time that a server has to close its side after ours. After that, its silence counts as its
/// end.
const CLOSING: Duration = Duration::from_secs(1);

/// A turn has at most this many requests for each that may be outstanding.
const LENGTH: usize = 4;

/// The turn of a connection.
#[derive(Default)]
pub(super) struct Turn {
    /// Complete responses, and when they were.
    held: Vec<(Box<Transfer>, Instant)>,
    /// The time when all requests had been answered. Unless another request follows at once, the
    /// turn ends.
    rests_since: Option<Instant>,
    /// Our side is closed; when the peer's silence counts as its end.
    closes_by: Option<Instant>,
    /// Bytes came that no request had asked for.
    has_surplus: bool,
}

impl Turn {
    /// Returns true if a response has to wait for the end of the turn.
    pub(super) fn holds(&self, is_pipelined: bool) -> bool {
        is_pipelined || !self.held.is_empty()
    }

    /// Keeps a complete response.
    pub(super) fn hold(&mut self, transfer: Box<Transfer>, is_last: bool, now: Instant) {
        self.held.push((transfer, now));
        self.rests_since = is_last.then_some(now);
    }

    /// A request follows.
    pub(super) fn goes_on(&mut self) {
        self.rests_since = None;
    }

    pub(super) fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    /// Returns true if another request would make the turn too long, where `depth` may be
    /// outstanding.
    pub(super) fn is_full(&self, depth: usize) -> bool {
        self.held.len() >= LENGTH * depth
    }

    /// The response that was complete last.
    pub(super) fn last(&self) -> Option<&Transfer> {
        self.held.last().map(|(transfer, _)| &**transfer)
    }

    /// Takes out the transfer of this mark.
    pub(super) fn cancel(&mut self, tag: u64) -> Option<Box<Transfer>> {
        let place = self.held.iter().position(|(transfer, _)| transfer.scheduling.tag == tag)?;
        Some(self.held.remove(place).0)
    }

    /// Slots of held transfers, which others may use; each is named once.
    pub(super) fn take_freed(&mut self) -> Vec<HostId> {
        let mut freed = Vec::new();
        for (transfer, _) in self.held.iter_mut().rev() {
            if std::mem::replace(&mut transfer.scheduling.has_given_slot, true) {
                break;
            }
            freed.extend(transfer.scheduling.host_slot);
        }
        freed
    }

    /// Returns the time when the turn ends even without an event.
    pub(super) fn ends_at(&self) -> Option<Instant> {
        self.closes_by.or(self.rests_since)
    }

    /// Returns true if our side of the connection is closed.
    pub(super) fn is_closing(&self) -> bool {
        self.closes_by.is_some()
    }
}

impl Link {
    /// Ends the turn if its time has come. `None`: it has not.
    pub(super) fn end_turn(&mut self, now: Instant, finished: &mut Finished) -> Option<Progress> {
        if self.turn.ends_at().is_none_or(|at| at > now) {
            return None;
        }
        if self.turn.is_closing() {
            return Some(self.close(now, finished));
        }
        self.closing = true;
        self.turn.closes_by = Some(now + CLOSING);
        // Where the end cannot be said, the connection is broken, and the next receive finds that.
        let _ = self.stream.end_sending();
        Some(Progress::More)
    }

    /// Receives after the end of our side: the peer's end, or unsolicited bytes.
    pub(super) fn receive_surplus(&mut self, buffer: &mut Buffer, now: Instant, finished: &mut Finished) -> Progress {
        let room = buffer.len().min(LARGEST_RECORD);
        match self.stream.receive(&mut buffer[..room]) {
            Ok(Received::WouldBlock) => return Progress::WouldBlock,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => return Progress::Interrupted,
            Ok(Received::End) | Err(_) => {}
            Ok(Received::Bytes { filled, more }) => match self.stream.open(buffer, &mut 0, filled) {
                Ok((Some(_), _)) => self.turn.has_surplus = true,
                Ok((None, true)) | Err(_) => {}
                Ok((None, false)) => return if more { Progress::More } else { Progress::Drained },
            },
        }
        self.close(now, finished)
    }

    /// Accepts the results of the turn. If surplus bytes came or the framing broke, fetches each of
    /// them again alone.
    pub(super) fn settle_turn(&mut self, now: Instant, finished: &mut Finished) {
        let is_shifted = self.turn.has_surplus || self.conn.close_reason() == Some(CloseReason::UnsolicitedBytes);
        let is_doubtful = is_shifted || self.violated;
        self.has_shifted |= is_shifted && !self.turn.is_empty();
        self.misbehaved |= is_doubtful && !self.turn.is_empty();
        self.turn.rests_since = None;
        for (mut transfer, complete) in self.turn.held.drain(..) {
            let after = if is_doubtful { transfer.retract(now) } else { transfer.on_complete(complete) };
            finished.push((transfer, after));
        }
    }
}
