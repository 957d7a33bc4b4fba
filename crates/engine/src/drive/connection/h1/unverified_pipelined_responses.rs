//! Responses of pipelined requests, kept until the connection has proved that they are right.
//!
//! A response does not name its request: the n-th response answers the n-th request. A server that
//! sends an extra response (a bug, or content that an attacker made look like a response) shifts
//! all later responses, and each of them looks right. The extra response shows only at the end:
//! after the last expected response, another one arrives. So the responses of a pipeline are kept
//! from the second one on. At the end of the pipeline, haul closes its side of the connection, and
//! the server has to close its own side without another byte.
//!
//! ```text
//!  request on an idle connection ─▶ more requests … all answered ─▶ haul closes its side
//!            │                                                      ├─▶ the peer closes: accepted
//!            │                                                      ├─▶ a second of silence: accepted
//!            └─▶ the first response is accepted at once             └─▶ bytes: fetched again or failed
//! ```
//!
//! Rejected: to look for extra bytes when the last response has arrived. That finds only fast ones:
//! the extra response is the real answer to the last request, and the server may still be working
//! on it.
//!
//! After a peer has sent an extra response, each new connection to it carries only one request. On
//! a connection with several requests, a late extra response would be taken for the answer to the
//! next request, by any HTTP/1.1 client.
//!
//! Three ends of a pipeline prove nothing, and its responses are accepted: a response that
//! announces the end of the connection, a close by the peer, and a body for which there is no
//! memory.

use std::time::{Duration, Instant};

use haul_policy::queue::HostId;
use haul_proto::h1::CloseReason;

use super::super::{FinishedTransfers, ReceiveStatus};
use super::{H1Connection, MAX_TLS_RECORD};
use crate::buffer_pool::Buffer;
use crate::net::stream::ReceiveOutcome;
use crate::transfer::Transfer;

/// The time that the peer has to close its side of the connection, after haul has closed its own
/// side at the end of a pipeline. If no byte arrives in this time, haul accepts the responses in
/// [`UnconfirmedResponses`], as it does when the peer closes.
const PEER_CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

/// The number of kept responses ([`UnconfirmedResponses`]) at which a pipeline takes no further
/// request, as a multiple of the maximum number of outstanding requests. For example, if 10
/// requests may be outstanding, the pipeline takes none after 40 kept responses. The responses that
/// are then outstanding are kept, too.
const MAX_RESPONSES_PER_DEPTH: usize = 4;

/// The complete responses of pipelined requests that are kept until the end of the pipeline. At
/// that time, it is known whether the server sent an extra response, which would shift all later
/// responses. The first response of a pipeline is not kept.
#[derive(Default)]
pub(super) struct UnconfirmedResponses {
    /// The transfers with the kept responses, each with the time when its response was complete.
    held: Vec<(Box<Transfer>, Instant)>,
    /// The time at which the last outstanding request was answered. The pipeline then ends, unless
    /// another request follows at once. `None` while a request is outstanding, or without a
    /// pipeline.
    idle_since: Option<Instant>,
    /// The end of the wait for the peer's close: [`PEER_CLOSE_TIMEOUT`] after haul has closed its
    /// side of the connection. If no byte has arrived by then, the kept responses are accepted.
    /// `None` while haul's side is open.
    closes_by: Option<Instant>,
    /// True if bytes arrived after the responses to all requests.
    has_extra_bytes: bool,
}

impl UnconfirmedResponses {
    /// Returns true if a complete response must be kept until the end of the pipeline, since an
    /// extra response may still follow. `is_pipelined` is true if the request was sent while
    /// another request was outstanding.
    pub(super) fn must_hold_back(&self, is_pipelined: bool) -> bool {
        is_pipelined || !self.held.is_empty()
    }

    /// Keeps the complete response of a transfer. `is_last` is true if all requests on the
    /// connection have been answered.
    pub(super) fn hold_back(&mut self, transfer: Box<Transfer>, is_last: bool, now: Instant) {
        self.held.push((transfer, now));
        self.idle_since = is_last.then_some(now);
    }

    /// Records that another request is sent, so that the pipeline does not end yet.
    pub(super) fn on_next_request(&mut self) {
        self.idle_since = None;
    }

    pub(super) fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    /// Returns true if the pipeline has so many kept responses that it takes no further request.
    /// `depth` is the maximum number of outstanding requests.
    pub(super) fn is_full(&self, depth: usize) -> bool {
        self.held.len() >= depth.saturating_mul(MAX_RESPONSES_PER_DEPTH)
    }

    /// Returns the transfer whose response was kept last; `None` if no response is kept.
    pub(super) fn last(&self) -> Option<&Transfer> {
        self.held.last().map(|(transfer, _)| &**transfer)
    }

    /// Removes and returns the transfer with this tag (the caller's ID for it). Returns `None` if
    /// its response is not among the kept ones.
    pub(super) fn cancel(&mut self, tag: u64) -> Option<Box<Transfer>> {
        let place = self.held.iter().position(|(transfer, _)| transfer.scheduling.tag == tag)?;
        Some(self.held.remove(place).0)
    }

    /// Returns the host slots of the transfers with kept responses. A host slot is the permit for
    /// one transfer to a host. The transfers lose their slots, so that other transfers can use
    /// them. Each slot is returned once.
    pub(super) fn take_freed_slots(&mut self) -> Vec<HostId> {
        let mut freed = Vec::new();
        for (transfer, _) in self.held.iter_mut().rev() {
            if std::mem::replace(&mut transfer.scheduling.has_given_slot, true) {
                break;
            }
            freed.extend(transfer.scheduling.host_slot);
        }
        freed
    }

    /// Returns the time when [`H1Connection::end_pipeline`] must be called if no event occurs
    /// before; `None` if there is no such time.
    pub(super) fn next_timeout(&self) -> Option<Instant> {
        self.closes_by.or(self.idle_since)
    }

    /// Returns true if haul has closed its side of the connection.
    pub(super) fn is_closing(&self) -> bool {
        self.closes_by.is_some()
    }
}

impl H1Connection {
    /// Ends the pipeline (the sequence of pipelined requests) of the connection in two steps. The
    /// first call, when all requests have been answered, closes haul's side of the connection. The
    /// second call, when the peer's time to close its side has passed, closes the whole connection.
    /// Returns `None` before the time of the next step.
    pub(super) fn end_pipeline(&mut self, now: Instant, finished: &mut FinishedTransfers) -> Option<ReceiveStatus> {
        if self.pipelined.next_timeout().is_none_or(|at| at > now) {
            return None;
        }
        if self.pipelined.is_closing() {
            return Some(self.close(now, finished));
        }
        self.closing = true;
        self.pipelined.closes_by = Some(now + PEER_CLOSE_TIMEOUT);
        // If the close fails, the connection is broken, and the next receive finds that.
        let _ = self.stream.end_sending();
        Some(ReceiveStatus::More)
    }

    /// Receives from the socket after haul has closed its side of the connection. The peer should
    /// now close the other side without sending another byte. If a byte arrives, it belongs to an
    /// extra response.
    pub(super) fn receive_after_close(
        &mut self,
        buffer: &mut Buffer,
        now: Instant,
        finished: &mut FinishedTransfers,
    ) -> ReceiveStatus {
        let room = buffer.len().min(MAX_TLS_RECORD);
        match self.stream.receive(&mut buffer[..room]) {
            Ok(ReceiveOutcome::WouldBlock) => return ReceiveStatus::WouldBlock,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => return ReceiveStatus::Interrupted,
            Ok(ReceiveOutcome::End) | Err(_) => {}
            Ok(ReceiveOutcome::Bytes { filled, more }) => match self.stream.decrypt_next(buffer, &mut 0, filled) {
                Ok((Some(_), _)) => self.pipelined.has_extra_bytes = true,
                Ok((None, true)) | Err(_) => {}
                Ok((None, false)) => return if more { ReceiveStatus::More } else { ReceiveStatus::Drained },
            },
        }
        self.close(now, finished)
    }

    /// Accepts the responses that were kept until the end of the pipeline, and adds their transfers
    /// to `finished`. If extra bytes arrived or the server violated the protocol, discards the
    /// responses instead, and each request is sent again without pipelining.
    pub(super) fn accept_or_retry_pipeline(&mut self, now: Instant, finished: &mut FinishedTransfers) {
        let is_shifted =
            self.pipelined.has_extra_bytes || self.conn.close_reason() == Some(CloseReason::UnsolicitedBytes);
        let is_doubtful = is_shifted || self.peer_violated_protocol;
        self.has_extra_response |= is_shifted && !self.pipelined.is_empty();
        self.breaks_pipelining |= is_doubtful && !self.pipelined.is_empty();
        self.pipelined.idle_since = None;
        for (mut transfer, complete) in self.pipelined.held.drain(..) {
            let after = if is_doubtful { transfer.retract_response(now) } else { transfer.on_complete(complete) };
            finished.push((transfer, after));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pipeline_without_limit_is_never_full() {
        assert!(!UnconfirmedResponses::default().is_full(usize::MAX));
        assert!(!UnconfirmedResponses::default().is_full(1 << 62));
    }
}
