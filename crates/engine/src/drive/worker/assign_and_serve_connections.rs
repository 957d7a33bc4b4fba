//! The connections of a worker: finds connections for transfers, serves the connections, and
//! handles the results of the transfers. A slot is a [`ConnectionSlot`]: a connection with the
//! transfers that wait for it.

use std::sync::Arc;

use haul_policy::http3::Http3Choice;
use haul_policy::queue::HostId;
use rustix::fd::AsFd;

use super::retries_that_keep_slots::DelayReason;
use super::{FreeHostSlotUse, Worker};
use crate::Error;
use crate::drive::connection::{ConnectionWaker, FinishedTransfers, HttpConnection, PipeWriteMode, ReceiveStatus};
use crate::drive::connection_slot::{
    ConnectionSlot, ConnectionSlotContext, ConnectionSlotProgress, ConnectionState, watch,
};
use crate::net::dns::LookupCaller;
use crate::net::event_registration;
use crate::net::http3_discovery_by_dns;
use crate::net::pool::ConnectionKey;
use crate::time_conversions;
use crate::transfer::{ExchangeFailurePoint, Transfer, TransferStep};

/// The maximum number of receive calls on one connection before the other connections are served.
const MAX_RECEIVES_PER_ROUND: usize = 8;

/// Returns true if the peer of connections with this key may support HTTP/2 or HTTP/3, so that
/// transfers could share a connection.
fn may_share_connection(key: &ConnectionKey) -> bool {
    // A proxy that forwards is the peer.
    let tls = key.via.forwarding_hop().map_or(key.tls.as_ref(), |hop| hop.tls.as_ref());
    key.prior_knowledge
        || key.http3 != Http3Choice::Off
        || tls.is_some_and(|tls| tls.alpn.iter().any(|protocol| protocol == b"h2"))
}

impl Worker {
    pub(super) fn assign_all_startable(&mut self) {
        while let Some((transfer, warm)) = self.to_place.pop_front() {
            self.assign_connection(transfer, warm);
        }
    }

    /// Adds an open connection, on which a transfer is in progress, to this worker (a thread with
    /// an event loop). Returns the connection if it cannot be registered with the event loop.
    pub(super) fn add_active_connection(&mut self, connection: HttpConnection) -> Result<(), Box<HttpConnection>> {
        // No request is sent after the current one, unless the connection stays open when the body
        // is left.
        let depth = if connection.is_shared() { self.options.depth } else { 1 };
        let token = self.add_open(connection, depth)?;
        self.deferred.ready_again.push(token);
        Ok(())
    }

    /// Makes a connection slot, the worker's record of a connection, for an open connection.
    /// Returns the slot's token (number). `depth` is the maximum number of outstanding requests on
    /// HTTP/1.1. Returns the connection if it cannot be registered with the event loop.
    pub(super) fn add_open(
        &mut self,
        mut connection: HttpConnection,
        depth: usize,
    ) -> Result<usize, Box<HttpConnection>> {
        let record = self.peers.get(connection.key());
        if let Some(limit) = record.pipeline_limit {
            connection.set_pipeline_limit(limit);
        }
        let token = self.slots.next_token();
        if connection.set_nonblocking(true).is_err() || watch(self.poll.registry(), connection.as_fd(), token).is_err()
        {
            return Err(Box::new(connection));
        }
        let mut slot = ConnectionSlot::from_open_connection(connection, depth, self.now);
        slot.is_serial = record.is_serial;
        Ok(self.slots.insert(slot))
    }

    /// Finds a connection for a transfer, or begins to open one. If the transfer gets an open
    /// connection, its request is sent. `warm` is the token of a connection slot to try first,
    /// because its connection has just become free; `None` if there is none.
    pub(super) fn assign_connection(&mut self, mut transfer: Box<Transfer>, warm: Option<usize>) {
        self.remove_extra_slot_of(&mut transfer);
        self.close_idle_if_requested();
        transfer.take_precedence_if_awaited();
        transfer.on_connection_search_began(self.now);
        if let Some(token) = warm
            && !transfer.reuse.needs_new_connection
            && let Some(slot) = self.slots.get(token)
            && slot.key.matches_request(transfer.target(), transfer.options())
            && matches!(slot.state, ConnectionState::Open(_))
            && slot.accepts(&transfer)
            && !self.may_lose_request(token, &transfer)
        {
            return self.start(token, transfer);
        }
        let key = ConnectionKey::new(transfer.target(), transfer.options());
        transfer.set_route(&key);
        if transfer.reuse.wants_own_host() {
            self.never_coalesce(&key);
        }
        if let Some(token) = self.slot_for(&key, &transfer)
            && !self.may_lose_request(token, &transfer)
        {
            return self.start(token, transfer);
        }
        let record = self.peers.get(&key);
        if !transfer.reuse.needs_new_connection
            && !record.has_extra_response
            && let Some(connection) = self.client.take_idle_connection(&key, self.now)
            && let Ok(token) = self.add_open(connection, self.options.depth)
        {
            return self.start(token, transfer);
        }
        #[cfg(feature = "http3")]
        if let Some(token) = self.slot_before_http3(&key, &transfer)
            && !self.may_lose_request(token, &transfer)
        {
            return self.start(token, transfer);
        }
        let (target, options) = (transfer.target(), transfer.options());
        http3_discovery_by_dns::begin_lookup(self.client.resolver(), LookupCaller::EventLoop, target, options, &key);
        let may_use_http3 = cfg!(feature = "http3") && key.http3 != Http3Choice::Off;
        let key = self.slots.intern_key(key);
        let may_share = !transfer.wants_own_connection() && !transfer.asks_to_close() && !self.options.connects_at_once;
        let mut slot = ConnectionSlot::new(Arc::clone(&key), transfer, self.options.depth, self.now);
        slot.is_serial = record.is_serial;
        slot.expects_sharing = may_share && may_share_connection(&key) && !record.chose_http1;
        let token = self.slots.insert(slot);
        self.limit_idle();
        if may_use_http3 {
            // QUIC's windows, and with them the number of streams, depend on the number of
            // transfers that wait for the connection. So the other transfers are assigned first.
            self.deferred.ready_again.push(token);
        } else {
            self.on_socket_event(token, false);
        }
        self.begin_attempt(token);
    }

    /// Returns the token (number) of a connection slot (a connection that is open or being opened)
    /// with this key that accepts the transfer. Returns `None` if there is none. A transfer that
    /// must not use an old connection gets only a slot whose connection is still being opened.
    fn slot_for(&self, key: &ConnectionKey, transfer: &Transfer) -> Option<usize> {
        if transfer.reuse.needs_new_connection {
            self.connecting_slot(key, transfer)
        } else {
            self.free_slot(key, transfer)
        }
    }

    /// Returns the token of the connection slot with this key that accepts the transfer and has the
    /// fewest transfers; `None` if there is none. A busy slot is returned only if the transfer can
    /// share its connection, or if the limit on connections to the host is reached: otherwise, a
    /// further connection is better.
    pub(super) fn free_slot(&self, key: &ConnectionKey, transfer: &Transfer) -> Option<usize> {
        let tokens = self.slots.with_key(key);
        let free = |token: &&usize| self.slots[**token].accepts(transfer);
        let best = tokens.iter().filter(free).min_by_key(|token| self.slots[**token].outstanding_count()).copied()?;
        let idle = self.slots[best].outstanding_count() == 0;
        let most = self.scheduler.connections().unwrap_or(self.options.per_host);
        let shares = self.slots[best].is_shared() && !transfer.wants_own_connection();
        (idle || tokens.len() >= most || shares).then_some(best)
    }

    /// Returns the token of a connection slot with this key that is still connecting, is expected
    /// to carry several transfers at a time, and accepts this transfer. `None` if there is none.
    /// Transfers whose connection broke can thus wait together for one new connection.
    fn connecting_slot(&self, key: &ConnectionKey, transfer: &Transfer) -> Option<usize> {
        let is_fresh = |slot: &ConnectionSlot| !matches!(slot.state, ConnectionState::Open(_)) && slot.expects_sharing;
        let mut tokens = self.slots.with_key(key).iter().copied();
        tokens.find(|token| is_fresh(&self.slots[*token]) && self.slots[*token].accepts(transfer))
    }

    /// Sends a transfer's request on the connection in slot `token`. If that is not possible now,
    /// queues the transfer until the connection is ready for it.
    pub(super) fn start(&mut self, token: usize, mut transfer: Box<Transfer>) {
        let now = self.now;
        self.remove_extra_slot_of(&mut transfer);
        self.mark_busy(token);
        let slot = &mut self.slots[token];
        let waits = !slot.waiting.is_empty() || (slot.is_serial && slot.outstanding_count() > 0);
        match &mut slot.state {
            ConnectionState::Open(connection) if !waits && connection.accepts(&transfer) => {
                if connection.outstanding_count() == 0
                    && let Some(host_slot) = transfer.scheduling.host_slot.filter(|_| connection.is_shared())
                {
                    self.scheduler.set_host_multiplexes(host_slot, true);
                }
                let mut finished = std::mem::take(&mut self.scratch.finished);
                connection.start(transfer, now, ConnectionWaker { wake: Some(&self.wake), token }, &mut finished);
                self.handle_finished(token, &mut finished);
                self.scratch.finished = finished;
                self.send(token);
            }
            _ => {
                // The transfer may have been placed before one whose sink has no room.
                if slot.enqueue(transfer, now) && slot.is_shared() {
                    self.start_waiting(token);
                }
                self.add_extra_slots_for(token);
            }
        }
    }

    /// Sends the new requests of the connection in slot `token`. On a shared connection (HTTP/2 or
    /// HTTP/3), all requests of this round of the event loop are sent together at its end. On any
    /// other connection, they are sent immediately.
    fn send(&mut self, token: usize) {
        if !self.slots.get(token).is_some_and(ConnectionSlot::is_shared) {
            self.send_pending(token);
        } else if self.deferred.unsent.last() != Some(&token) {
            self.deferred.unsent.push(token);
        }
    }

    /// Sends the pending output of the connection in slot `token`, if it is open.
    pub(super) fn send_pending(&mut self, token: usize) {
        let Some(ConnectionSlot { state: ConnectionState::Open(connection), .. }) = self.slots.get_mut(token) else {
            return;
        };
        // The next receive finds a failed send, and may bring the response that explains it.
        let _ = connection.send_pending();
    }

    /// Handles an event of the event loop for the connection slot `token` (a connection with its
    /// transfers): sends and receives on the connection, or continues to open it. `ended` is true
    /// if the event reports that the peer has closed its side, or an error.
    pub(super) fn on_socket_event(&mut self, token: usize, ended: bool) {
        let Some(slot) = self.slots.get_mut(token) else { return };
        // While several addresses are tried, the event may concern another socket.
        slot.peer_closed |= ended && !slot.is_racing();
        if !matches!(slot.state, ConnectionState::Open(_)) {
            self.continue_opening(token);
            return;
        }
        let ConnectionState::Open(connection) = &mut slot.state else { return };
        if connection.has_output() {
            let _ = connection.send_pending();
        }
        let was_held = connection.waits_for_proxy();
        let mut finished = std::mem::take(&mut self.scratch.finished);
        for receives in 1.. {
            let Some(ConnectionSlot { state: ConnectionState::Open(connection), paused, peer_closed: ended, .. }) =
                self.slots.get_mut(token)
            else {
                break;
            };
            let ended = *ended;
            if *paused {
                break;
            }
            let waker = ConnectionWaker { wake: Some(&self.wake), token };
            let progress = if connection.is_direct(PipeWriteMode::Written) {
                match connection.move_body(&mut self.scratch.mover, self.now, waker, &mut finished) {
                    // The next piece of a bulk body is waited for, not moved in small parts.
                    ReceiveStatus::More if !connection.has_more() => ReceiveStatus::Drained,
                    progress => progress,
                }
            } else {
                connection.receive(&mut self.scratch.buffer, self.now, waker, &mut finished)
            };
            match progress {
                ReceiveStatus::Paused | ReceiveStatus::Throttled => *paused = true,
                ReceiveStatus::Closed => {
                    if connection.breaks_pipelining() {
                        let key = Arc::clone(connection.key());
                        let has_extra_response = connection.has_extra_response();
                        self.stop_pipelining(key, has_extra_response);
                    }
                    self.remove(token);
                }
                ReceiveStatus::WouldBlock
                | ReceiveStatus::More
                | ReceiveStatus::Drained
                | ReceiveStatus::Interrupted => {}
            }
            self.handle_finished(token, &mut finished);
            match progress {
                ReceiveStatus::WouldBlock
                | ReceiveStatus::Paused
                | ReceiveStatus::Throttled
                | ReceiveStatus::Closed => break,
                ReceiveStatus::Drained if !ended => break,
                _ if receives >= MAX_RECEIVES_PER_ROUND => {
                    self.deferred.ready_again.push(token);
                    break;
                }
                ReceiveStatus::More | ReceiveStatus::Drained | ReceiveStatus::Interrupted => {}
            }
        }
        self.scratch.finished = finished;
        self.on_response_begun(token);
        // The received bytes may have opened the window of a tunnel, or TLS may have to respond. No
        // event of the socket reports either.
        let answers = |slot: &ConnectionSlot| matches!(&slot.state, ConnectionState::Open(connection) if connection.has_encrypted_output());
        if was_held || self.slots.get(token).is_some_and(answers) {
            self.send_pending(token);
        }
        let defers = |slot: &ConnectionSlot| matches!(&slot.state, ConnectionState::Open(connection) if connection.has_deferred_output());
        if self.slots.get(token).is_some_and(defers) {
            self.send(token);
        }
    }

    /// Continues to open the connection of the connection slot `token`, and handles its success or
    /// failure.
    pub(super) fn continue_opening(&mut self, token: usize) {
        let Some(slot) = self.slots.get_mut(token) else { return };
        let mut around = ConnectionSlotContext {
            client: &self.client,
            registry: self.poll.registry(),
            inbox: &self.inbox,
            buffer: &mut self.scratch.buffer,
            now: self.now,
        };
        match slot.continue_opening(token, &mut around) {
            Ok(ConnectionSlotProgress::Waits) => self.end_attempt_if_accepted(token),
            Ok(ConnectionSlotProgress::Resolved) => {
                if !self.coalesce(token) {
                    self.continue_opening(token);
                }
            }
            Ok(ConnectionSlotProgress::Open) => {
                self.end_attempt_if_accepted(token);
                self.on_open(token);
                self.start_waiting(token);
                // Bytes that arrived with the handshake cause no event, so check once.
                self.on_socket_event(token, false);
            }
            Err(error) => {
                let waiting = std::mem::take(&mut slot.waiting);
                self.remove(token);
                self.on_open_failure(waiting, error);
            }
        }
    }

    /// Handles a connection that has just opened. If the connection was expected to carry
    /// concurrent transfers (HTTP/2 or HTTP/3) but cannot, moves all waiting transfers but the
    /// first to other connections.
    fn on_open(&mut self, token: usize) {
        self.slots.update_key(token);
        let Some(slot) = self.slots.get_mut(token) else { return };
        let ConnectionState::Open(connection) = &mut slot.state else { return };
        let record = self.peers.get(&slot.key);
        if let Some(limit) = record.pipeline_limit {
            connection.set_pipeline_limit(limit);
        }
        if record.has_extra_response {
            connection.limit_to_one_request();
        }
        if connection.is_shared() {
            if let Some(host_slot) = slot.waiting.front().and_then(|transfer| transfer.scheduling.host_slot) {
                self.scheduler.set_host_multiplexes(host_slot, true);
            }
            if record.chose_http1 {
                self.peers.update(&slot.key, |record| record.chose_http1 = false);
            }
            self.slots.add_shared_connection(token);
            self.on_shared_connection(token);
        } else if std::mem::take(&mut slot.expects_sharing) {
            self.peers.update(&slot.key, |record| record.chose_http1 = true);
            if let Some(host_slot) = slot.waiting.front().and_then(|transfer| transfer.scheduling.host_slot) {
                self.scheduler.set_host_multiplexes(host_slot, false);
            }
            let others = slot.waiting.split_off(slot.waiting.len().min(1));
            self.to_place.extend(others.into_iter().map(|transfer| (transfer, None)));
        }
    }

    /// Fails those transfers that wait for the connection in slot `token` and have reached their
    /// deadline. If no transfer waits any more and the connection is not open yet, gives the
    /// connection up.
    pub(super) fn end_overdue(&mut self, token: usize) {
        let Some(slot) = self.slots.get_mut(token) else { return };
        let late = slot.take_overdue(self.now);
        if late.is_empty() {
            return;
        }
        let why = match &mut slot.state {
            ConnectionState::Open(_) => Error::timed_out(),
            ConnectionState::Connecting(connecting) => connecting.timed_out(),
        };
        let is_open = matches!(slot.state, ConnectionState::Open(_));
        if !is_open && slot.waiting.is_empty() {
            self.remove(token);
        }
        for mut transfer in late {
            let after = transfer.on_failure(why.duplicate(), ExchangeFailurePoint::BeforeSending, self.now);
            self.handle_next_step(transfer, after, None);
        }
    }

    /// Starts the next step (another exchange, or the end) of each transfer in `finished`, whose
    /// exchange (request and response) on the connection in slot `token` is over. Then starts
    /// transfers that wait for this connection.
    pub(super) fn handle_finished(&mut self, token: usize, finished: &mut FinishedTransfers) {
        let any = !finished.is_empty();
        for (transfer, after) in finished.drain(..) {
            self.handle_next_step(transfer, after, Some(token));
        }
        if let Some(ConnectionSlot { state: ConnectionState::Open(connection), .. }) = self.slots.get_mut(token) {
            connection
                .take_freed_slots()
                .into_iter()
                .for_each(|host_slot| self.start_next_for_slot(host_slot, Some(token)));
        }
        if any || self.slots.get(token).is_some_and(|slot| slot.is_shared() && !slot.waiting.is_empty()) {
            // A server may also have raised the number of streams that it takes.
            self.start_waiting(token);
        }
        self.requeue_unservable(token);
        self.mark_idle_if_unused(token);
    }

    /// Moves transfers that wait for the connection in slot `token` to other connections, if this
    /// connection will never take their requests ([`ConnectionSlot::take_unservable`]). Otherwise
    /// the transfers would wait at least until this connection closes.
    fn requeue_unservable(&mut self, token: usize) {
        self.remember_pipeline_limit(token);
        if let Some(slot) = self.slots.get_mut(token)
            && !slot.waiting.is_empty()
        {
            self.to_place.extend(slot.take_unservable(self.now).into_iter().map(|transfer| (transfer, None)));
        }
    }

    /// Starts the transfers that wait on a connection slot (a connection with its transfers) and
    /// whose requests can be sent now.
    pub(super) fn start_waiting(&mut self, token: usize) {
        let mut failed = FinishedTransfers::new();
        let waker = ConnectionWaker { wake: Some(&self.wake), token };
        while let Some(slot) = self.slots.get_mut(token)
            && let Some(transfer) = slot.next_waiting(waker)
            && let ConnectionState::Open(connection) = &mut slot.state
        {
            connection.start(transfer, self.now, waker, &mut failed);
        }
        for (transfer, after) in failed {
            self.handle_next_step(transfer, after, Some(token));
        }
        self.send(token);
    }

    pub(super) fn handle_next_step(&mut self, mut transfer: Box<Transfer>, after: TransferStep, warm: Option<usize>) {
        self.remove_extra_slot_of(&mut transfer);
        let after = self.retry_refused(&mut transfer, after);
        match after {
            // The file of the body could not be opened.
            TransferStep::Done(Err(error))
                if error.lacks_descriptors()
                    && self.may_wait_for_descriptor(&transfer)
                    && transfer.reset_for_retry() =>
            {
                self.wait_for_descriptor(transfer);
            }
            TransferStep::Again(wait) if wait.is_zero() => self.to_place.push_back((transfer, warm)),
            TransferStep::Again(wait) => {
                let host_slot = transfer.scheduling.host_slot.filter(|_| !transfer.scheduling.has_given_slot);
                let at = time_conversions::add_saturating(self.now, wait);
                match self.scheduler.delay_retry(self.index, transfer, at) {
                    Some(transfer) => self.delayed.push(at, DelayReason::Retry, transfer),
                    None => {
                        if let Some(host_slot) = host_slot {
                            self.start_next_for_slot(host_slot, warm);
                        }
                    }
                }
            }
            TransferStep::Done(result) => {
                let host_slot = transfer.scheduling.host_slot.filter(|_| !transfer.scheduling.has_given_slot);
                // A part is counted with the transfer that it belongs to.
                if !transfer.is_part() {
                    self.totals.transfer_finished(&transfer.facts, result.is_err());
                }
                self.scheduler.on_finished(self.index, transfer, result);
                if let Some(host_slot) = host_slot {
                    self.start_next_for_slot(host_slot, warm);
                }
            }
        }
    }

    /// Asks the scheduler for another transfer for a free host slot (a permit for one transfer to a
    /// host). `warm` is the token of a connection slot whose connection became free at the same
    /// time, so that the transfer can use it; `None` if there is none.
    fn start_next_for_slot(&mut self, host_slot: HostId, warm: Option<usize>) {
        match self.scheduler.next_for_slot(self.index, host_slot, self.now) {
            FreeHostSlotUse::Transfer(transfer) => self.to_place.push_back((transfer, warm)),
            FreeHostSlotUse::GiveAway => {
                if let Some(token) = warm {
                    if let Some(ConnectionSlot { state: ConnectionState::Open(connection), .. }) =
                        self.slots.get_mut(token)
                    {
                        connection.release_buffers();
                    }
                    self.move_to_pool(token);
                }
                // Reported after the connection is in the pool, since the other worker must find it
                // there.
                self.scheduler.release_slot_for_other_worker(host_slot);
            }
            FreeHostSlotUse::Nothing => {}
        }
    }

    /// Moves the idle connection of this slot to the client's pool, where another worker finds it.
    /// Removes the slot.
    pub(super) fn move_to_pool(&mut self, token: usize) {
        let Some(slot) = self.slots.get(token) else { return };
        let since = if slot.is_idle { slot.idle_since } else { self.now };
        if slot.is_unused()
            && let Some(connection) = self.remove_slot(token)
        {
            // In the pool all connections are blocking ones.
            if event_registration::deregister(self.poll.registry(), connection.as_fd()).is_ok()
                && connection.set_nonblocking(false).is_ok()
            {
                self.client.put_idle_connection(connection, since);
            }
        }
    }

    pub(super) fn remove(&mut self, token: usize) {
        if let Some(connection) = self.remove_slot(token) {
            self.totals.connection_closed(&connection);
            self.close(connection);
        }
    }

    /// Removes the connection slot `token` (a connection and the transfers that wait for it).
    /// Returns its connection if it was open, and `None` otherwise.
    pub(super) fn remove_slot(&mut self, token: usize) -> Option<HttpConnection> {
        self.remember_pipeline_limit(token);
        self.idle.remove(token);
        let slot = self.slots.remove(token)?;
        self.attempts.end_attempt(slot.attempt);
        self.to_place.extend(slot.waiting.into_iter().map(|transfer| (transfer, None)));
        match slot.state {
            ConnectionState::Open(connection) => Some(*connection),
            _ => None,
        }
    }
}
