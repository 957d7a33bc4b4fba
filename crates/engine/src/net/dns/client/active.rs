//! The lookups in progress: their start, their timers, and their queries.

use std::cmp::Ordering;
use std::sync::Arc;
use std::time::{Duration, Instant};

use haul_policy::dns::lookup::{LookupState, NameLookup, QueryTransmit};
use haul_policy::dns::message::DnsResponse;
use haul_policy::dns::nsswitch::HostSources;

use super::super::system_files::NameConfig;
use super::socket::{DnsSocket, Received};
use super::{BURST_WINDOW, DnsAnswer, DnsClient, MAX_BURST, routes};
use crate::clock;

/// The answer for a name for which no name server is asked.
const NO_SUCH_NAME: DnsAnswer = DnsAnswer::NotFound { exists: false, ttl: Duration::ZERO };

/// A lookup in progress: its name, its state machine and its queries.
pub(super) struct ActiveLookup {
    pub(super) name: Arc<str>,
    pub(super) machine: NameLookup,
    pub(super) config: NameConfig,
    serial: u64,
    /// The queries that were sent for the lookup, each as the key of its socket and its identifier.
    pub(super) queries: Vec<(usize, u16)>,
}

/// A query that was sent and not answered yet, or that waits to be sent.
#[derive(Clone, Copy)]
pub(super) struct PendingQuery {
    lookup: usize,
    serial: u64,
    transmit: QueryTransmit,
}

/// The time of a lookup's next timeout. The ordering is reversed, so that the earliest is at the
/// top of a `BinaryHeap`.
#[derive(PartialEq, Eq)]
pub(super) struct DueLookup {
    pub(super) at: Instant,
    lookup: usize,
    serial: u64,
}

impl PartialOrd for DueLookup {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for DueLookup {
    fn cmp(&self, other: &Self) -> Ordering {
        (other.at, other.serial).cmp(&(self.at, self.serial))
    }
}

impl DnsClient<'_> {
    /// Begins the lookup of a name. A name from the hosts file is answered at once.
    pub(super) fn begin(&mut self, name: Arc<str>, now: Instant) {
        let config = self.config(now);
        if config.sources == HostSources::SystemOnly {
            return (self.deliver)(&name, DnsAnswer::NeedsSystem);
        }
        let listed = config.hosts.addresses(&name);
        if !listed.is_empty() && config.sources != HostSources::DnsThenFiles {
            return (self.deliver)(&name, DnsAnswer::Found(routes::in_order(listed), Duration::ZERO));
        }
        if config.sources == HostSources::FilesOnly {
            return (self.deliver)(&name, NO_SUCH_NAME);
        }
        if config.resolv_conf.rotate {
            self.first_server = self.first_server.wrapping_add(1);
        }
        let Ok(mut machine) = NameLookup::new(&name, &config.resolv_conf, self.first_server) else {
            return (self.deliver)(&name, NO_SUCH_NAME);
        };
        let transmits = machine.start(clock::policy_time(now));
        self.serial += 1;
        let serial = self.serial;
        let lookup = self.lookups.insert(ActiveLookup { name, machine, config, serial, queries: Vec::new() });
        self.queue(lookup, serial, transmits);
        self.set_timer(lookup, now);
    }

    fn queue(&mut self, lookup: usize, serial: u64, transmits: Vec<QueryTransmit>) {
        self.unsent.extend(transmits.into_iter().map(|transmit| PendingQuery { lookup, serial, transmit }));
    }

    fn set_timer(&mut self, lookup: usize, now: Instant) {
        let active = &self.lookups[lookup];
        let Some(at) = active.machine.next_timeout() else { return };
        self.due.push(DueLookup { at: clock::instant(at).max(now), lookup, serial: active.serial });
    }

    /// Handles the timeouts that have passed.
    pub(super) fn on_timers(&mut self, now: Instant) {
        while self.due.peek().is_some_and(|due| due.at <= now) {
            let Some(DueLookup { lookup, serial, .. }) = self.due.pop() else { return };
            if self.is_current(lookup, serial) {
                self.advance(lookup, now, |machine, now| machine.on_timeout(now));
            }
        }
    }

    fn is_current(&self, lookup: usize, serial: u64) -> bool {
        self.lookups.get(lookup).is_some_and(|active| active.serial == serial)
    }

    /// Runs `step` on the state machine of a lookup. Finishes the lookup if it is then complete.
    fn advance(
        &mut self,
        lookup: usize,
        now: Instant,
        step: impl FnOnce(&mut NameLookup, haul_policy::MonotonicTime) -> Vec<QueryTransmit>,
    ) {
        let active = &mut self.lookups[lookup];
        let serial = active.serial;
        let transmits = step(&mut active.machine, clock::policy_time(now));
        if *active.machine.state() == LookupState::Waiting {
            self.queue(lookup, serial, transmits);
            self.set_timer(lookup, now);
        } else {
            self.finish(lookup);
        }
    }

    /// Sends the waiting queries until [`MAX_BURST`] recent queries are unanswered.
    pub(super) fn send_queries(&mut self, now: Instant) {
        while !self.unsent.is_empty() {
            while let Some(&(sent, socket, id)) = self.recent.front()
                && (now.saturating_duration_since(sent) >= BURST_WINDOW || !self.pending.contains_key(&(socket, id)))
            {
                self.recent.pop_front();
            }
            if self.recent.len() >= MAX_BURST {
                return;
            }
            let Some(query) = self.unsent.pop_front() else { return };
            if self.is_current(query.lookup, query.serial) {
                self.send(query, now);
            }
        }
    }

    fn send(&mut self, query: PendingQuery, now: Instant) {
        let sent = self.try_send(query, now);
        if sent.is_err() && self.is_current(query.lookup, query.serial) {
            let QueryTransmit { record_type, server, .. } = query.transmit;
            self.advance(query.lookup, now, |machine, now| machine.on_unreachable(now, record_type, server));
        }
    }

    fn try_send(&mut self, query: PendingQuery, now: Instant) -> std::io::Result<()> {
        let QueryTransmit { record_type, server, tcp } = query.transmit;
        let key = self.socket_for(&self.lookups[query.lookup].config.clone(), server, tcp)?;
        let id = self.unused_id(key)?;
        let active = &mut self.lookups[query.lookup];
        let bytes = active.machine.query(record_type, id).to_bytes().map_err(std::io::Error::other)?;
        self.sockets[key].send(bytes)?;
        active.queries.push((key, id));
        self.pending.insert((key, id), query);
        self.recent.push_back((now, key, id));
        Ok(())
    }

    fn unused_id(&self, socket: usize) -> std::io::Result<u16> {
        loop {
            let mut bytes = [0; 2];
            aws_lc_rs::rand::fill(&mut bytes).map_err(|_| std::io::Error::other("the system gives no entropy"))?;
            let id = u16::from_ne_bytes(bytes);
            if !self.pending.contains_key(&(socket, id)) {
                return Ok(id);
            }
        }
    }

    /// Receives all available messages of a socket, and passes the responses to their lookups.
    pub(super) fn on_ready(&mut self, key: usize, now: Instant) {
        // A socket stays in its place until its queries are over, so that an event is never another
        // socket's.
        while let Some(socket) = self.sockets.get_mut(key) {
            match socket.receive(&mut self.buffer) {
                Ok(Received::Nothing) => return,
                Ok(Received::Message(length)) => self.on_message(key, length, now),
                Err(_) => return self.on_broken(key, now),
            }
        }
    }

    fn on_message(&mut self, key: usize, length: usize, now: Instant) {
        let Some(id) = self.buffer[..length].first_chunk::<2>().map(|id| u16::from_be_bytes(*id)) else { return };
        let Some(&PendingQuery { lookup, serial, transmit }) = self.pending.get(&(key, id)) else { return };
        if !self.is_current(lookup, serial) {
            return;
        }
        let query = self.lookups[lookup].machine.query(transmit.record_type, id);
        let Some(response) = query.parse_response(&self.buffer[..length]) else { return };
        // An answer that only part of a TCP message has come of is none that TCP would truncate.
        let response = match response {
            DnsResponse::Truncated if transmit.tcp => DnsResponse::ServerFailure("a truncated answer over TCP"),
            response => response,
        };
        self.forget((key, id));
        self.advance(lookup, now, |machine, now| {
            machine.on_response(now, transmit.record_type, transmit.server, response)
        });
    }

    /// Closes a broken socket, and reports its server as unreachable to the lookups that used it.
    fn on_broken(&mut self, key: usize, now: Instant) {
        let broken: Vec<u16> = self.pending.keys().filter(|(socket, _)| *socket == key).map(|(_, id)| *id).collect();
        self.retire(key);
        for id in broken {
            let Some(query) = self.pending.get(&(key, id)).copied() else { continue };
            self.forget((key, id));
            if self.is_current(query.lookup, query.serial) {
                let QueryTransmit { record_type, server, .. } = query.transmit;
                self.advance(query.lookup, now, |machine, now| machine.on_unreachable(now, record_type, server));
            }
        }
        self.close_if_unused(key);
    }

    /// Removes a query that was sent. Closes its socket if no other query uses it or will use it.
    pub(super) fn forget(&mut self, (key, id): (usize, u16)) {
        if self.pending.remove(&(key, id)).is_some()
            && let Some(socket) = self.sockets.get_mut(key)
        {
            socket.open_queries = socket.open_queries.saturating_sub(1);
            self.close_if_unused(key);
        }
    }

    fn close_if_unused(&mut self, key: usize) {
        let is_current = self.current_socket.contains(&Some(key));
        if !is_current && self.sockets.get(key).is_some_and(|socket| socket.open_queries == 0) {
            self.sockets.remove(key);
        }
    }

    /// Stops the use of a socket for further queries.
    fn retire(&mut self, key: usize) {
        for current in &mut self.current_socket {
            current.take_if(|current| *current == key);
        }
    }

    /// Returns the key of a socket that can carry one more query to this server. Opens one if
    /// needed.
    fn socket_for(&mut self, config: &NameConfig, server: usize, tcp: bool) -> std::io::Result<usize> {
        let address = &config.resolv_conf.servers[server];
        if tcp {
            let socket = DnsSocket::tcp(address, &self.servers)?;
            return self.add(socket);
        }
        if self.current_socket.len() <= server {
            self.current_socket.resize(server + 1, None);
        }
        if let Some(key) = self.current_socket[server] {
            if self.sockets[key].takes_another(address) {
                return Ok(key);
            }
            self.current_socket[server] = None;
            self.close_if_unused(key);
        }
        let socket = DnsSocket::udp(address, &self.servers)?;
        let key = self.add(socket)?;
        self.current_socket[server] = Some(key);
        Ok(key)
    }

    fn add(&mut self, socket: DnsSocket) -> std::io::Result<usize> {
        let entry = self.sockets.vacant_entry();
        let key = entry.key();
        entry.insert(socket).register(self.poll.registry(), mio::Token(key))?;
        Ok(key)
    }
}
