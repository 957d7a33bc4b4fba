//! Connection attempts without an answer: name lookups and connects that may never get one, and
//! connections whose first response does not come.
//!
//! ```text
//!   begin ──▶ fresh ──250 ms──▶ late: other transfers may use the slots of those that wait for it
//!               └──── accepted ────┴──▶ awaits a response ──1 s──▶ silent: likewise
//!                                            └─── answered, failed or given up ───┘
//! ```
//!
//! A dead host answers nothing, and its transfers end by their time limit. Without these rules they
//! would hold the slots of `--parallel-max` meanwhile, and live hosts would wait for dead ones. A
//! slot that is lent is taken back when the host answers; until then one transfer more than the
//! limit runs. The limits of hosts count late attempts as before.
//!
//! A host that accepts connections and never answers is as dead. But one that has answered before is
//! only slow, and its transfers lend nothing: otherwise a slow server would get more at once.
//!
//! Fresh attempts have a limit of their own, so that a run does not send thousands of SYNs at once.
//! Requests on open connections do not count.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::Worker;
use crate::drive::connection::HttpConnection;
use crate::drive::connection_slot::ConnectionState;
use crate::net::proxy::ProxyRoute;
use crate::transfer::Transfer;
use crate::transfer_facts::TransferPhase;

/// The time without an answer after which an attempt is late. An answer from the other side of the
/// earth takes about as long.
const LATE_AFTER: Duration = Duration::from_millis(250);
/// A host counts as silent if it sends no response within this time after it accepted the
/// connection.
const SILENT_AFTER: Duration = Duration::from_secs(1);
/// The maximum number of fresh attempts of a worker. Above it, the worker takes no further transfer
/// from the queue. Even if no host answers, this is 1,024 attempts a second.
const MAX_UNANSWERED_ATTEMPTS: usize = 256;

/// The state of a slot's connection attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum ConnectAttemptState {
    /// The attempt has not begun, its first response has begun, or it has failed.
    #[default]
    Settled,
    /// The attempt with this number has begun just now.
    Fresh(u64),
    /// The attempt is late.
    Late,
    /// The attempt with this number was accepted, and no response has begun.
    AwaitsResponse(u64),
    /// The host has accepted the connection and stays silent.
    Silent,
}

/// The connection attempts of a worker that have no answer yet.
#[derive(Default)]
pub(super) struct ConnectionAttempts {
    /// The time when each attempt becomes late, its slot and its number. Settled attempts remain
    /// until their time.
    queue: VecDeque<(Instant, usize, u64)>,
    /// The accepted connections that wait for their first response, with the times when their hosts
    /// become silent.
    responses: VecDeque<(Instant, usize, u64)>,
    fresh: usize,
    last: u64,
}

impl ConnectionAttempts {
    /// Returns true if another attempt may begin.
    pub(super) fn has_room(&self) -> bool {
        self.fresh < MAX_UNANSWERED_ATTEMPTS
    }

    /// Returns the time when the next attempt becomes late, or the next host silent.
    pub(super) fn next_timeout(&self) -> Option<Instant> {
        [&self.queue, &self.responses].into_iter().filter_map(|queue| queue.front().map(|(at, ..)| *at)).min()
    }

    fn begin_attempt(&mut self, token: usize, now: Instant) -> ConnectAttemptState {
        self.last += 1;
        self.fresh += 1;
        self.queue.push_back((now + LATE_AFTER, token, self.last));
        ConnectAttemptState::Fresh(self.last)
    }

    fn await_response(&mut self, token: usize, now: Instant) -> ConnectAttemptState {
        self.last += 1;
        self.responses.push_back((now + SILENT_AFTER, token, self.last));
        ConnectAttemptState::AwaitsResponse(self.last)
    }

    /// Removes the next entry of a queue if its time has come. Returns the slot and the number of
    /// the entry.
    fn take_due(queue: &mut VecDeque<(Instant, usize, u64)>, now: Instant) -> Option<(usize, u64)> {
        let (_, token, number) = queue.front().copied().filter(|(at, ..)| *at <= now)?;
        queue.pop_front();
        Some((token, number))
    }

    /// Ends an attempt.
    pub(super) fn end_attempt(&mut self, state: ConnectAttemptState) {
        self.fresh -= usize::from(matches!(state, ConnectAttemptState::Fresh(_)));
    }
}

impl Worker {
    /// Begins to count the attempt of a slot.
    pub(super) fn begin_attempt(&mut self, token: usize) {
        let now = self.now;
        if let Some(slot) = self.slots.get_mut(token).filter(|slot| slot.is_unanswered()) {
            slot.attempt = self.attempts.begin_attempt(token, now);
        }
    }

    /// Ends the connection attempt of a slot if the server has accepted the connection. The slot
    /// then waits for a response. Takes lent slots back.
    pub(super) fn end_attempt_if_accepted(&mut self, token: usize) {
        let now = self.now;
        let Some(slot) = self.slots.get_mut(token).filter(|slot| !slot.is_unanswered()) else { return };
        if !matches!(slot.attempt, ConnectAttemptState::Fresh(_) | ConnectAttemptState::Late) {
            return;
        }
        let state = std::mem::replace(&mut slot.attempt, self.attempts.await_response(token, now));
        self.attempts.end_attempt(state);
        self.reclaim_lent_slots(token);
    }

    /// Takes back the lent slots of the transfers that wait on a connection slot.
    fn reclaim_lent_slots(&mut self, token: usize) {
        let Some(slot) = self.slots.get_mut(token) else { return };
        for transfer in &mut slot.waiting {
            if std::mem::take(&mut transfer.scheduling.is_slot_lent) {
                self.scheduler.return_lent_slot();
            }
        }
    }

    /// Ends the wait for the first response on a connection that transfers share: its host has
    /// answered during the handshake.
    pub(super) fn on_shared_connection(&mut self, token: usize) {
        if let Some(slot) = self.slots.get_mut(token) {
            slot.attempt = ConnectAttemptState::Settled;
        }
        self.reclaim_lent_slots(token);
    }

    /// Records that a response has begun on a slot's connection. Takes the lent slot of the
    /// connection back.
    pub(super) fn on_response_begun(&mut self, token: usize) {
        let Some(slot) = self.slots.get_mut(token) else { return };
        let is_awaited = matches!(slot.attempt, ConnectAttemptState::AwaitsResponse(_) | ConnectAttemptState::Silent);
        let ConnectionState::Open(connection) = &mut slot.state else { return };
        if !is_awaited || awaits_first_response(connection) {
            return;
        }
        slot.attempt = ConnectAttemptState::Settled;
        // A finished transfer has given its lent slot back already.
        if let Some(transfer) = connection.front_transfer_mut() {
            if let Some(host_slot) = transfer.scheduling.host_slot {
                self.scheduler.on_host_answered(host_slot);
            }
            if std::mem::take(&mut transfer.scheduling.is_slot_lent) {
                self.scheduler.return_lent_slot();
            }
        }
    }

    /// Lends the slots of the attempts that have become late, and of hosts that have become silent.
    pub(super) fn lend_late_slots(&mut self) {
        while let Some((token, number)) = ConnectionAttempts::take_due(&mut self.attempts.queue, self.now) {
            if self.lend_slots_of_late_attempt(token, ConnectAttemptState::Fresh(number), ConnectAttemptState::Late) {
                self.attempts.end_attempt(ConnectAttemptState::Fresh(number));
            }
        }
        while let Some((token, number)) = ConnectionAttempts::take_due(&mut self.attempts.responses, self.now) {
            self.lend_slots_of_late_attempt(
                token,
                ConnectAttemptState::AwaitsResponse(number),
                ConnectAttemptState::Silent,
            );
        }
    }

    /// Lends the slots of an attempt that is still in the state `from`. Returns false if it is not.
    fn lend_slots_of_late_attempt(&mut self, token: usize, from: ConnectAttemptState, to: ConnectAttemptState) -> bool {
        let Some(slot) = self.slots.get_mut(token).filter(|slot| slot.attempt == from) else { return false };
        slot.attempt = to;
        self.lend_slots_of_waiting(token);
        true
    }

    /// Lends the host slots of transfers that wait for a late attempt or a silent host to other
    /// transfers. A proxy's silence concerns all transfers, so it lends none. A connection that
    /// transfers share has been answered, or it would not be known to be shared.
    pub(super) fn lend_slots_of_waiting(&mut self, token: usize) {
        let Some(slot) = self.slots.get_mut(token) else { return };
        let is_silent = slot.attempt == ConnectAttemptState::Silent;
        if !is_silent && slot.attempt != ConnectAttemptState::Late
            || slot.key.via != ProxyRoute::Direct
            || !self.client.descriptor_budget().is_half_free()
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
            if !scheduling.has_given_slot && !scheduling.is_slot_lent {
                scheduling.is_slot_lent =
                    if is_silent { self.scheduler.lend_slot_of_silent(host_slot) } else { self.scheduler.lend_slot() };
            }
        }
    }

    /// Takes back the lent slot of a transfer, because the transfer continues or ends.
    pub(super) fn reclaim_lent_slot(&self, transfer: &mut Transfer) {
        if std::mem::take(&mut transfer.scheduling.is_slot_lent) {
            self.scheduler.return_lent_slot();
        }
    }
}

/// Returns true if this connection waits for its first response.
fn awaits_first_response(connection: &HttpConnection) -> bool {
    connection.response_count() == 0
        && connection.front_transfer().is_some_and(|transfer| transfer.facts.phase == TransferPhase::Wait)
}
