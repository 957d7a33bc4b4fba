//! A worker's connections: which of them takes a transfer, what happens on them, and what becomes of the transfer then.

use std::cmp::Reverse;
use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::sync::Arc;
use std::time::Duration;

use haul_policy::queue::HostId;
use mio::unix::SourceFd;

use super::peers::remember;
use super::{Another, Delayed, Worker};
use crate::clock;
use crate::drive::lane::{Advance, Lane, State, Surroundings, watch};
use crate::drive::link::{Finished, Link, Pipes, Progress, Waker};
use crate::facts::Phase;
use crate::net::pool::Key;
use crate::transfer::{After, Broke, Transfer};
use crate::{Error, ErrorKind};

/// Receives on one connection before the others have their turn.
const TURN: usize = 8;
/// The wait of a transfer that found no free descriptor.
const DESCRIPTOR_WAIT: Duration = Duration::from_millis(20);
/// The number of such waits after which the transfer fails, unless other transfers are active.
const MAX_STARVED: u32 = 250;

/// Returns true if the peer may accept concurrent transfers.
fn may_share(key: &Key) -> bool {
    // A proxy that forwards is the peer.
    let tls = key.via.forwards().map_or(key.tls.as_ref(), |hop| hop.tls.as_ref());
    key.prior_knowledge || tls.is_some_and(|tls| tls.alpn.iter().any(|protocol| protocol == b"h2"))
}

/// Returns true if the system refused a descriptor.
fn lacks_descriptors(error: &Error) -> bool {
    matches!(error.io_source().and_then(io::Error::raw_os_error), Some(libc::EMFILE | libc::ENFILE))
}

impl Worker {
    pub(super) fn place_all(&mut self) {
        while let Some((transfer, warm)) = self.to_place.pop_front() {
            self.place(transfer, warm);
        }
    }

    /// Takes over a connection with a transfer under way, and a socket that does not wait.
    pub(super) fn adopt(&mut self, link: Link) -> Result<(), Box<Link>> {
        // No request is sent after the current one.
        let token = self.take_in(link, 1)?;
        self.again.push(token);
        Ok(())
    }

    /// Makes an open connection a lane. It comes back where it cannot be watched.
    pub(super) fn take_in(&mut self, mut link: Link, depth: usize) -> Result<usize, Box<Link>> {
        if let Some(bore) = self.bore.get(link.key()) {
            link.expect(*bore);
        }
        let entry = self.lanes.vacant_entry();
        let token = entry.key();
        if link.stream().socket().set_nonblocking(true).is_err()
            || watch(self.poll.registry(), link.as_fd(), token).is_err()
        {
            return Err(Box::new(link));
        }
        let mut lane = Lane::open(link, depth, self.now);
        lane.is_serial = self.serial.contains(&lane.key);
        self.by_key.entry(Arc::clone(&lane.key)).or_default().push(token);
        entry.insert(lane);
        Ok(token)
    }

    /// Finds a connection for a transfer, or begins to make one.
    pub(super) fn place(&mut self, mut transfer: Box<Transfer>, warm: Option<usize>) {
        self.heed_closings();
        transfer.take_precedence();
        if let Some(token) = warm
            && !transfer.reuse.wants_fresh
            && let Some(lane) = self.lanes.get(token)
            && lane.key.fits(transfer.target(), transfer.options())
            && matches!(lane.state, State::Open(_))
            && lane.takes(&transfer)
            && !self.may_lose(token, &transfer)
        {
            return self.start(token, transfer);
        }
        let key = Key::new(transfer.target(), transfer.options());
        transfer.goes_by(&key);
        if transfer.reuse.wants_own_host() {
            self.keep_apart(&key);
        }
        if let Some(token) = self.lane_for(&key, &transfer)
            && !self.may_lose(token, &transfer)
        {
            return self.start(token, transfer);
        }
        if !transfer.reuse.wants_fresh
            && !self.shifting.contains(&key)
            && let Some(link) = self.client.take_idle(&key, self.now)
            && let Ok(token) = self.take_in(link, self.workers.depth)
        {
            return self.start(token, transfer);
        }
        let key = self.by_key.get_key_value(&key).map_or_else(|| Arc::new(key), |(key, _)| Arc::clone(key));
        let mut lane = Lane::new(Arc::clone(&key), transfer, self.workers.depth, self.now);
        lane.is_serial = self.serial.contains(&key);
        lane.hopes_to_share = may_share(&key) && !self.unshared.contains(&key);
        let token = self.lanes.insert(lane);
        self.by_key.entry(key).or_default().push(token);
        self.serve(token, false);
    }

    /// A lane of this key that can take a transfer.
    fn lane_for(&self, key: &Key, transfer: &Transfer) -> Option<usize> {
        if transfer.reuse.wants_fresh { self.fresh_lane(key, transfer) } else { self.free_lane(key, transfer) }
    }

    /// A lane of this key that can take a transfer: an idle one, or where requests are pipelined the one with the
    /// fewest, once there are as many lanes as there may be.
    pub(super) fn free_lane(&self, key: &Key, transfer: &Transfer) -> Option<usize> {
        let tokens = self.by_key.get(key)?;
        let free = |token: &&usize| self.lanes[**token].takes(transfer);
        let best = tokens.iter().filter(free).min_by_key(|token| self.lanes[**token].depth()).copied()?;
        let idle = self.lanes[best].depth() == 0;
        let most = self.supply.connections().unwrap_or(self.workers.per_host);
        (idle || tokens.len() >= most || self.lanes[best].is_shared()).then_some(best)
    }

    /// A lane of this key that is not open yet and will be shared: the transfers that a broken connection gave back need not have
    /// one each.
    fn fresh_lane(&self, key: &Key, transfer: &Transfer) -> Option<usize> {
        let is_fresh = |lane: &Lane| !matches!(lane.state, State::Open(_)) && lane.hopes_to_share;
        let mut tokens = self.by_key.get(key)?.iter().copied();
        tokens.find(|token| is_fresh(&self.lanes[*token]) && self.lanes[*token].takes(transfer))
    }

    /// Gives a transfer to a lane.
    pub(super) fn start(&mut self, token: usize, transfer: Box<Transfer>) {
        let now = self.now;
        let lane = &mut self.lanes[token];
        let waits = !lane.waiting.is_empty() || (lane.is_serial && lane.depth() > 0);
        match &mut lane.state {
            State::Open(link) if !waits && link.takes(&transfer) => {
                if link.depth() == 0 && lane.idle_since != 0 {
                    lane.idle_since = 0;
                    self.idle_count -= 1;
                    if let Some(slot) = transfer.scheduling.host_slot.filter(|_| link.is_shared()) {
                        self.supply.shares(slot);
                    }
                }
                let mut finished = std::mem::take(&mut self.finished);
                link.start(transfer, now, Waker { wake: Some(&self.wake), token }, &mut finished);
                self.settle(token, &mut finished);
                self.finished = finished;
                self.send(token);
            }
            _ => {
                // It may have come before one whose sink has no room.
                if lane.wait(transfer) && lane.is_shared() {
                    self.start_waiting(token);
                }
            }
        }
    }

    /// Sends new requests: at once, or, on a shared connection, together with others of this turn.
    fn send(&mut self, token: usize) {
        if !self.lanes.get(token).is_some_and(Lane::is_shared) {
            self.pump(token);
        } else if self.unsent.last() != Some(&token) {
            self.unsent.push(token);
        }
    }

    /// Sends a lane's output.
    pub(super) fn pump(&mut self, token: usize) {
        let Some(Lane { state: State::Open(link), .. }) = self.lanes.get_mut(token) else { return };
        // A failed send is found by the next receive, which may bring the response that explains it.
        let _ = link.pump();
    }

    /// Serves a lane that an event may concern.
    pub(super) fn serve(&mut self, token: usize, ended: bool) {
        let Some(lane) = self.lanes.get_mut(token) else { return };
        // While addresses are raced it may be another socket that ended.
        lane.ended |= ended && !lane.is_racing();
        if !matches!(lane.state, State::Open(_)) {
            self.open(token);
            return;
        }
        let State::Open(link) = &mut lane.state else { return };
        if link.has_output() {
            let _ = link.pump();
        }
        let was_held = link.stream().is_held();
        let mut finished = std::mem::take(&mut self.finished);
        for turn in 1.. {
            let Some(Lane { state: State::Open(link), paused, ended, .. }) = self.lanes.get_mut(token) else { break };
            let ended = *ended;
            if *paused {
                break;
            }
            let waker = Waker { wake: Some(&self.wake), token };
            let progress = if link.is_direct(Pipes::Written) {
                match link.move_body(&mut self.mover, self.now, waker, &mut finished) {
                    // A bulk body's next piece is waited for, not fetched in bits.
                    Progress::More if !link.has_more() => Progress::Drained,
                    progress => progress,
                }
            } else {
                link.receive(&mut self.buffer, self.now, waker, &mut finished)
            };
            match progress {
                Progress::Paused | Progress::Throttled => *paused = true,
                Progress::Closed => {
                    if link.has_misbehaved() {
                        let key = Arc::clone(link.key());
                        let has_shifted = link.has_shifted();
                        self.not_again(key, has_shifted);
                    }
                    self.remove(token);
                }
                Progress::WouldBlock | Progress::More | Progress::Drained | Progress::Interrupted => {}
            }
            self.settle(token, &mut finished);
            match progress {
                Progress::WouldBlock | Progress::Paused | Progress::Throttled | Progress::Closed => break,
                Progress::Drained if !ended => break,
                _ if turn >= TURN => {
                    self.again.push(token);
                    break;
                }
                Progress::More | Progress::Drained | Progress::Interrupted => {}
            }
        }
        self.finished = finished;
        // What was received may have said that a proxy takes more of a tunnel's bytes, or ask TLS for an answer: no event of the
        // socket says so.
        let answers = |lane: &Lane| matches!(&lane.state, State::Open(link) if link.stream().has_output());
        if was_held || self.lanes.get(token).is_some_and(answers) {
            self.pump(token);
        }
    }

    /// Gets on with opening a lane.
    pub(super) fn open(&mut self, token: usize) {
        let Some(lane) = self.lanes.get_mut(token) else { return };
        let mut around = Surroundings {
            client: &self.client,
            registry: self.poll.registry(),
            inbox: &self.inbox,
            buffer: &mut self.buffer,
            now: self.now,
        };
        match lane.advance(token, &mut around) {
            Ok(Advance::Waits) => {}
            Ok(Advance::Resolved) => {
                if !self.join(token) {
                    self.open(token);
                }
            }
            Ok(Advance::Open) => {
                self.is_open(token);
                self.start_waiting(token);
                // Bytes received with the handshake are not in the socket: check once.
                self.serve(token, false);
            }
            Err(error) => {
                let waiting = std::mem::take(&mut lane.waiting);
                self.remove(token);
                self.could_not_open(waiting, error);
            }
        }
    }

    /// Handles a lane that has opened: if it turns out not to be shared, transfers that waited for
    /// sharing go elsewhere.
    fn is_open(&mut self, token: usize) {
        let Some(lane) = self.lanes.get_mut(token) else { return };
        let State::Open(link) = &mut lane.state else { return };
        if let Some(bore) = self.bore.get(&lane.key) {
            link.expect(*bore);
        }
        if self.shifting.contains(&lane.key) {
            link.take_one_only();
        }
        if link.is_shared() {
            if let Some(slot) = lane.waiting.front().and_then(|transfer| transfer.scheduling.host_slot) {
                self.supply.shares(slot);
            }
        } else if std::mem::take(&mut lane.hopes_to_share) {
            remember(&mut self.unshared, &lane.key);
            let others = lane.waiting.split_off(lane.waiting.len().min(1));
            self.to_place.extend(others.into_iter().map(|transfer| (transfer, None)));
        }
    }

    /// Fails the transfers of a lane that could not be opened, or makes them wait for free
    /// descriptors.
    pub(super) fn could_not_open(&mut self, waiting: VecDeque<Box<Transfer>>, error: Error) {
        let exhausted = lacks_descriptors(&error);
        let alike = error.again();
        let mut error = Some(error);
        for mut transfer in waiting {
            if exhausted && self.may_starve(&transfer) {
                self.starve(transfer);
                continue;
            }
            // The first transfer gets the error itself; to the others it says the same.
            let error = error.take().unwrap_or_else(|| alike.again());
            let after = transfer.on_failure(error, Broke::BeforeSending, self.now);
            self.go_on(transfer, after, None);
        }
    }

    /// Ends transfers that have waited for a connection, or for their turn on it, longer than they
    /// may. The connection stays open for the others.
    pub(super) fn end_late(&mut self, token: usize) {
        let Some(lane) = self.lanes.get_mut(token) else { return };
        let late = lane.overdue(self.now);
        let why = match &mut lane.state {
            State::Open(_) => Error::new(ErrorKind::Timeout, "the operation timed out"),
            State::Connecting(connecting) => connecting.timed_out(),
        };
        let is_open = matches!(lane.state, State::Open(_));
        if !is_open && !late.is_empty() && lane.waiting.is_empty() {
            self.remove(token);
        }
        for mut transfer in late {
            let after = transfer.on_failure(why.again(), Broke::BeforeSending, self.now);
            self.go_on(transfer, after, None);
        }
    }

    /// Returns true if a wait for a descriptor makes sense: as long as other transfers are active,
    /// which will free theirs, and else for a limited time.
    pub(super) fn may_starve(&self, transfer: &Transfer) -> bool {
        let is_late = transfer.deadline().is_some_and(|at| at <= self.now);
        !is_late
            && (transfer.attempt.descriptor_waits < MAX_STARVED || self.lanes.iter().any(|(_, lane)| lane.depth() > 0))
    }

    /// Lets a transfer wait until there are descriptors again.
    pub(super) fn starve(&mut self, mut transfer: Box<Transfer>) {
        transfer.attempt.descriptor_waits += 1;
        transfer.facts.enter(Phase::Idle, self.now);
        self.close_idle_lanes();
        self.supply.fewer();
        let at = self.now + DESCRIPTOR_WAIT;
        self.delayed.push(Reverse(Delayed { at, is_lent: false, transfer }));
    }

    /// Handles transfers whose exchange on a lane is over.
    pub(super) fn settle(&mut self, token: usize, finished: &mut Finished) {
        let any = !finished.is_empty();
        for (transfer, after) in finished.drain(..) {
            self.go_on(transfer, after, Some(token));
        }
        if let Some(Lane { state: State::Open(link), .. }) = self.lanes.get_mut(token) {
            link.take_freed().into_iter().for_each(|slot| self.use_slot(slot, Some(token)));
        }
        if any || self.lanes.get(token).is_some_and(|lane| lane.is_shared() && !lane.waiting.is_empty()) {
            // A server may also have raised the number of streams that it takes.
            self.start_waiting(token);
        }
        self.move_on(token);
        self.rest(token);
    }

    /// Moves waiting transfers off a shared connection that takes no more requests, however long
    /// its last responses take.
    fn move_on(&mut self, token: usize) {
        self.remember_what_it_bore(token);
        if let Some(lane) = self.lanes.get_mut(token)
            && !lane.waiting.is_empty()
        {
            self.to_place.extend(lane.evicted().into_iter().map(|transfer| (transfer, None)));
        }
    }

    /// Starts the waiting transfers of a lane that can start now.
    pub(super) fn start_waiting(&mut self, token: usize) {
        let mut failed = Finished::new();
        let waker = Waker { wake: Some(&self.wake), token };
        while let Some(lane) = self.lanes.get_mut(token)
            && let Some(transfer) = lane.next_waiting(waker)
            && let State::Open(link) = &mut lane.state
        {
            link.start(transfer, self.now, waker, &mut failed);
        }
        for (transfer, after) in failed {
            self.go_on(transfer, after, Some(token));
        }
        self.send(token);
    }

    pub(super) fn go_on(&mut self, mut transfer: Box<Transfer>, after: After, warm: Option<usize>) {
        match after {
            // The file that it should have gone to could not be opened.
            After::Done(Err(error)) if lacks_descriptors(&error) && self.may_starve(&transfer) && transfer.revive() => {
                self.starve(transfer);
            }
            After::Again(wait) if wait.is_zero() => self.to_place.push_back((transfer, warm)),
            After::Again(wait) => {
                let is_lent = self.supply.delayed(&transfer);
                let at = clock::after(self.now, wait);
                self.delayed.push(Reverse(Delayed { at, is_lent, transfer }));
            }
            After::Done(result) => {
                let slot = transfer.scheduling.host_slot.filter(|_| !transfer.scheduling.has_given_slot);
                // Parts are counted with the transfer that they belong to.
                if !transfer.is_part() {
                    self.totals.transfer_finished(&transfer.facts, result.is_err());
                }
                self.supply.finished(self.index, transfer, result);
                if let Some(slot) = slot {
                    self.use_slot(slot, warm);
                }
            }
        }
    }

    /// Finds another transfer for a slot that is free, or gives the slot back.
    fn use_slot(&mut self, slot: HostId, warm: Option<usize>) {
        match self.supply.another(self.index, slot, self.now) {
            Another::Transfer(transfer) => self.to_place.push_back((transfer, warm)),
            Another::GiveAway => {
                if let Some(token) = warm {
                    self.give_away(token);
                }
                // Only now: the other worker must find the connection when it has the slot.
                self.supply.gave_away(slot);
            }
            Another::Nothing => {}
        }
    }

    /// Leaves an idle connection where another worker finds it.
    pub(super) fn give_away(&mut self, token: usize) {
        let Some(lane) = self.lanes.get(token) else { return };
        let since = if lane.idle_since == 0 { self.now } else { lane.rested };
        let idle = matches!(&lane.state, State::Open(link) if link.is_idle());
        if idle && let Some(link) = self.take_out(token) {
            let fd = link.stream().socket().as_raw_fd();
            // In the pool all connections are blocking ones.
            if self.poll.registry().deregister(&mut SourceFd(&fd)).is_ok()
                && link.stream().socket().set_nonblocking(false).is_ok()
            {
                self.client.put_idle(link, since);
            }
        }
    }

    pub(super) fn remove(&mut self, token: usize) {
        if let Some(link) = self.take_out(token) {
            self.totals.connection_closed(&link);
            self.close(link);
        }
    }

    /// Takes a lane out of all lists; answers its connection if it was open.
    pub(super) fn take_out(&mut self, token: usize) -> Option<Link> {
        self.remember_what_it_bore(token);
        let lane = self.lanes.try_remove(token)?;
        if lane.idle_since != 0 {
            self.idle_count -= 1;
        }
        if let Some(tokens) = self.by_key.get_mut(&lane.key) {
            tokens.retain(|&other| other != token);
            if tokens.is_empty() {
                self.by_key.remove(&lane.key);
            }
        }
        self.to_place.extend(lane.waiting.into_iter().map(|transfer| (transfer, None)));
        match lane.state {
            State::Open(link) => Some(*link),
            _ => None,
        }
    }
}
