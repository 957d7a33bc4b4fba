//! Unanswered connection attempts: host names that are not resolved yet, connections that no server
//! has accepted yet, and accepted connections whose first response has not begun.
//!
//! ```text
//!   begin ──▶ fresh ──250 ms──▶ late: each transfer that waits for it gets an extra slot
//!               └──── accepted ────┴──▶ awaits a response ──1 s──▶ silent: likewise
//!                                            └─── answered, failed or given up ───┘
//! ```
//!
//! A dead host never answers, and its transfers end only at their time limit. Until then they would
//! occupy the slots of `--parallel-max`, and transfers to live hosts would wait. So each transfer
//! of a late attempt gets an extra slot: while the transfer waits, one transfer more than
//! `--parallel-max` may run. The extra slot is removed when the host answers. The limit for each
//! host gets no extra slots, and still counts the transfers of late attempts.
//!
//! A silent host accepts connections and never answers. It counts as dead, too. But a host that has
//! answered before is only slow. Its transfers on accepted connections get no extra slots, because
//! a slow server would otherwise get more requests at once.
//!
//! The number of fresh attempts has a separate limit, so that a run does not send thousands of SYNs
//! at once. Requests on open connections do not count towards this limit.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::Worker;
use crate::drive::connection::HttpConnection;
use crate::drive::connection_slot::ConnectionState;
use crate::net::proxy::ProxyRoute;
use crate::transfer::Transfer;
use crate::transfer_facts::TransferPhase;

/// The time without an answer after which a connection attempt counts as late. A round trip to the
/// other side of the earth takes about as long.
const LATE_AFTER: Duration = Duration::from_millis(250);
/// The time after which a host counts as silent, if it has accepted the connection but sent no
/// response.
const SILENT_AFTER: Duration = Duration::from_secs(1);
/// The maximum number of a worker's connection attempts that began less than [`LATE_AFTER`] (250
/// ms) ago and have no answer. At this number, the worker takes no further transfer from the queue.
/// Older attempts go on but do not count, so the worker can make 1,024 attempts a second even if no
/// host answers.
const MAX_UNANSWERED_ATTEMPTS: usize = 256;

/// The state of the connection attempt of a connection slot (a connection with its transfers):
/// whether the server has accepted the connection and begun a response, and whether in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum ConnectAnswerState {
    /// No answer is awaited: the attempt has not begun, it has failed, or the server has answered
    /// on the connection.
    #[default]
    Settled,
    /// The attempt with this ID has begun less than [`LATE_AFTER`] ago, and has no answer.
    Fresh(u64),
    /// The attempt is late: it had no answer within [`LATE_AFTER`].
    Late,
    /// The server accepted the attempt with this ID, and no response has begun.
    AwaitsResponse(u64),
    /// The host is silent: it accepted the connection, but sent no response within
    /// [`SILENT_AFTER`].
    Silent,
}

/// A worker's connection attempts without an answer, and its connections without a response.
#[derive(Default)]
pub(super) struct UnansweredConnectAttempts {
    /// The times when connection attempts become late (no answer for [`LATE_AFTER`]), each with the
    /// token of its connection slot and the ID of the attempt. The earliest is first. An attempt
    /// that is answered before its time keeps its entry until then.
    queue: VecDeque<(Instant, usize, u64)>,
    /// The accepted connections that wait for their first response. Each entry contains the time
    /// when the host counts as silent, the token of the connection slot, and the ID of the attempt.
    /// The earliest is first.
    responses: VecDeque<(Instant, usize, u64)>,
    fresh: usize,
    last: u64,
}

impl UnansweredConnectAttempts {
    /// Returns true if the worker may begin another connection attempt.
    pub(super) fn has_room(&self) -> bool {
        self.fresh < MAX_UNANSWERED_ATTEMPTS
    }

    /// Returns the time when the next connection attempt becomes late (no answer for
    /// [`LATE_AFTER`]) or the next host becomes silent (no response for [`SILENT_AFTER`]); `None`
    /// if nothing is awaited.
    pub(super) fn next_timeout(&self) -> Option<Instant> {
        [&self.queue, &self.responses].into_iter().filter_map(|queue| queue.front().map(|(at, ..)| *at)).min()
    }

    fn begin_attempt(&mut self, token: usize, now: Instant) -> ConnectAnswerState {
        self.last += 1;
        self.fresh += 1;
        self.queue.push_back((now + LATE_AFTER, token, self.last));
        ConnectAnswerState::Fresh(self.last)
    }

    fn await_response(&mut self, token: usize, now: Instant) -> ConnectAnswerState {
        self.last += 1;
        self.responses.push_back((now + SILENT_AFTER, token, self.last));
        ConnectAnswerState::AwaitsResponse(self.last)
    }

    /// Removes the first entry of a queue if its time has come. Returns its connection slot's token
    /// and the ID of its attempt. Returns `None` if no entry is due.
    fn take_due(queue: &mut VecDeque<(Instant, usize, u64)>, now: Instant) -> Option<(usize, u64)> {
        let (_, token, number) = queue.front().copied().filter(|(at, ..)| *at <= now)?;
        queue.pop_front();
        Some((token, number))
    }

    /// Stops counting a connection attempt as unanswered. `state` is the state in which it was
    /// counted.
    pub(super) fn end_attempt(&mut self, state: ConnectAnswerState) {
        self.fresh -= usize::from(matches!(state, ConnectAnswerState::Fresh(_)));
    }
}

impl Worker {
    /// Counts the connection attempt of the slot `token` towards [`MAX_UNANSWERED_ATTEMPTS`],
    /// unless the attempt was answered or failed at once.
    pub(super) fn begin_attempt(&mut self, token: usize) {
        let now = self.now;
        if let Some(slot) = self.slots.get_mut(token).filter(|slot| slot.is_unanswered()) {
            slot.attempt = self.attempts.begin_attempt(token, now);
        }
    }

    /// Stops counting the connection attempt of the connection slot `token` as unanswered, if the
    /// server has accepted the connection. The wait for the first response begins. Removes the
    /// extra slots ([`Scheduler::add_extra_slot`](super::Scheduler::add_extra_slot)) that were
    /// added while the slot's transfers waited.
    pub(super) fn end_attempt_if_accepted(&mut self, token: usize) {
        let now = self.now;
        let Some(slot) = self.slots.get_mut(token).filter(|slot| !slot.is_unanswered()) else { return };
        if !matches!(slot.attempt, ConnectAnswerState::Fresh(_) | ConnectAnswerState::Late) {
            return;
        }
        let state = std::mem::replace(&mut slot.attempt, self.attempts.await_response(token, now));
        self.attempts.end_attempt(state);
        self.remove_extra_slots(token);
    }

    /// Removes the extra slots (each allows one transfer more than the limit) that were added while
    /// the transfers on this connection slot waited.
    fn remove_extra_slots(&mut self, token: usize) {
        let Some(slot) = self.slots.get_mut(token) else { return };
        for transfer in &mut slot.waiting {
            if std::mem::take(&mut transfer.scheduling.has_extra_slot) {
                self.scheduler.remove_extra_slot();
            }
        }
    }

    /// Records that the host has completed the handshake of the HTTP/2 or HTTP/3 connection in the
    /// connection slot `token`. The handshake counts as the host's answer. Removes the extra slots
    /// that were added while the slot's transfers waited for the answer. (An extra slot allows one
    /// transfer more than the limit.)
    pub(super) fn on_shared_connection(&mut self, token: usize) {
        if let Some(slot) = self.slots.get_mut(token) {
            slot.attempt = ConnectAnswerState::Settled;
        }
        self.remove_extra_slots(token);
    }

    /// Records that a response has begun on the connection in this slot. Removes the extra slot (it
    /// allows one transfer more than the limit) that was added while the connection's transfer
    /// waited, if any.
    pub(super) fn on_response_begun(&mut self, token: usize) {
        let Some(slot) = self.slots.get_mut(token) else { return };
        let is_awaited = matches!(slot.attempt, ConnectAnswerState::AwaitsResponse(_) | ConnectAnswerState::Silent);
        let ConnectionState::Open(connection) = &mut slot.state else { return };
        if !is_awaited || awaits_first_response(connection) {
            return;
        }
        slot.attempt = ConnectAnswerState::Settled;
        // The extra slot of a finished transfer is removed already.
        if let Some(transfer) = connection.front_transfer_mut() {
            if let Some(host_slot) = transfer.scheduling.host_slot {
                self.scheduler.on_host_answered(host_slot);
            }
            if std::mem::take(&mut transfer.scheduling.has_extra_slot) {
                self.scheduler.remove_extra_slot();
            }
        }
    }

    /// Adds extra slots for transfers whose hosts do not answer in time. Each extra slot allows one
    /// transfer more than the limit, until the host answers. The waiting transfers go on. A host
    /// must accept a connection within [`LATE_AFTER`], and begin its first response within
    /// [`SILENT_AFTER`] after that. [`Self::add_extra_slots_for`] lists exceptions.
    pub(super) fn add_extra_slots_for_unanswered(&mut self) {
        while let Some((token, number)) = UnansweredConnectAttempts::take_due(&mut self.attempts.queue, self.now) {
            if self.mark_late_or_silent(token, ConnectAnswerState::Fresh(number), ConnectAnswerState::Late) {
                self.attempts.end_attempt(ConnectAnswerState::Fresh(number));
            }
        }
        while let Some((token, number)) = UnansweredConnectAttempts::take_due(&mut self.attempts.responses, self.now) {
            self.mark_late_or_silent(token, ConnectAnswerState::AwaitsResponse(number), ConnectAnswerState::Silent);
        }
    }

    /// Changes the state of a connection attempt from `from` to `to` ([`ConnectAnswerState::Late`]
    /// or [`ConnectAnswerState::Silent`]), and adds extra slots for its transfers. Returns false,
    /// and does nothing, if the attempt is no longer in the state `from`.
    fn mark_late_or_silent(&mut self, token: usize, from: ConnectAnswerState, to: ConnectAnswerState) -> bool {
        let Some(slot) = self.slots.get_mut(token).filter(|slot| slot.attempt == from) else { return false };
        slot.attempt = to;
        self.add_extra_slots_for(token);
        true
    }

    /// Adds an extra slot (it allows one transfer more than the limit) for each transfer on the
    /// connection slot `token`, because their host does not answer. Does nothing in these cases:
    /// * The state of the slot's connection attempt is neither [`ConnectAnswerState::Late`] (not
    ///   accepted in time) nor [`ConnectAnswerState::Silent`] (accepted, but no response in time).
    /// * The connection goes through a proxy. (A silent proxy delays the other transfers, too.)
    /// * The connection is open and uses HTTP/2 or HTTP/3. Its host has answered the handshake, so
    ///   the host is not dead.
    /// * The connection is open and is sending the content of a request.
    /// * Busy connections use at least half of the file descriptors that the process may open.
    pub(super) fn add_extra_slots_for(&mut self, token: usize) {
        let Some(slot) = self.slots.get_mut(token) else { return };
        let is_silent = slot.attempt == ConnectAnswerState::Silent;
        if !is_silent && slot.attempt != ConnectAnswerState::Late
            || slot.key.via != ProxyRoute::Direct
            || !self.client.connection_descriptor_budget().is_half_free()
        {
            return;
        }
        let in_progress = match &mut slot.state {
            ConnectionState::Open(connection) if connection.is_shared() || connection.is_uploading() => return,
            ConnectionState::Open(connection) => connection.front_transfer_mut(),
            ConnectionState::Connecting(_) => None,
        };
        for transfer in in_progress.into_iter().chain(slot.waiting.iter_mut().map(|transfer| &mut **transfer)) {
            let scheduling = &mut transfer.scheduling;
            let Some(host_slot) = scheduling.host_slot else { continue };
            if !scheduling.has_given_slot && !scheduling.has_extra_slot {
                scheduling.has_extra_slot = if is_silent {
                    self.scheduler.add_extra_slot_for_silent_host(host_slot)
                } else {
                    self.scheduler.add_extra_slot()
                };
            }
        }
    }

    /// Removes the extra slot of this transfer, if it has one. An extra slot allows one transfer
    /// more than the limit while this transfer waits. Call this when the transfer goes on or ends.
    pub(super) fn remove_extra_slot_of(&self, transfer: &mut Transfer) {
        if std::mem::take(&mut transfer.scheduling.has_extra_slot) {
            self.scheduler.remove_extra_slot();
        }
    }
}

/// Returns true if no response has begun on this connection, and a request waits for one.
fn awaits_first_response(connection: &HttpConnection) -> bool {
    connection.response_count() == 0
        && connection.front_transfer().is_some_and(|transfer| transfer.facts.phase == TransferPhase::Wait)
}
