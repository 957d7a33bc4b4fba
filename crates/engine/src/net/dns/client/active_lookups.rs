//! The lookups in progress: begins them, handles their timers, and sends their queries.

use std::cmp::Ordering;
use std::sync::Arc;
use std::time::{Duration, Instant};

use haul_policy::dns::nsswitch::HostLookupSources;
use haul_policy::dns::query_schedule::{DnsLookupStatus, NameLookup, OutgoingQuery, RequestedRecords};
use haul_policy::dns::resolv_conf::NameServer;

use super::super::system_files::ParsedResolverFiles;
use super::socket::{DnsReceived, DnsSocket};
use super::{BURST_WINDOW, CHANNEL_KEY, DnsAnswer, DnsClient, DnsQuestion, MAX_BURST, sort_addresses};
use crate::net::event_registration;
use crate::time_conversions;

/// The answer for a name that must not be sent to name servers: the name does not exist, and the
/// answer is not cached.
const NO_SUCH_NAME: DnsAnswer = DnsAnswer::NotFound { exists: false, ttl: Duration::ZERO };

/// The answer for a name whose HTTPS records must not be queried: there are none, and the answer is
/// not cached.
const NO_HTTPS_RECORDS: DnsAnswer = DnsAnswer::Https(Vec::new(), Duration::ZERO);

/// The DNS message ID of all queries that a
/// [`DnsChannel`](super::super::custom_transport::DnsChannel) carries. All queries have the same
/// ID, so that HTTP caches see equal requests (RFC 8484 section 4.1). The channel itself matches
/// the responses to the queries.
const CHANNEL_ID: u16 = 0;

/// A lookup in progress: its question, the state machine that decides which queries to send, and
/// the queries that were sent.
pub(super) struct ActiveLookup {
    pub(super) question: DnsQuestion,
    pub(super) machine: NameLookup,
    pub(super) config: ParsedResolverFiles,
    serial: u64,
    /// The keys in [`DnsClient::pending`] of the lookup's queries that were sent and not answered.
    pub(super) queries: Vec<(usize, u64)>,
    /// True once [`DnsAnswer::Early`] has been delivered.
    is_early: bool,
}

/// A query that waits to be sent, or that was sent and has no answer yet.
#[derive(Clone, Copy)]
pub(super) struct PendingDnsQuery {
    lookup: usize,
    serial: u64,
    transmit: OutgoingQuery,
}

/// The time of a lookup's next timeout. Its ordering is reversed, so that the earliest time is at
/// the top of a `BinaryHeap`, which puts the greatest element first.
#[derive(PartialEq, Eq)]
pub(super) struct LookupTimeout {
    pub(super) at: Instant,
    lookup: usize,
    serial: u64,
}

impl PartialOrd for LookupTimeout {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for LookupTimeout {
    fn cmp(&self, other: &Self) -> Ordering {
        (other.at, other.serial).cmp(&(self.at, self.serial))
    }
}

impl DnsClient<'_> {
    /// Begins a lookup. No query is sent for a name in the hosts file: a lookup of addresses
    /// returns the addresses in that file, and a lookup of HTTPS records returns none.
    pub(super) fn begin_lookup(&mut self, question: DnsQuestion, now: Instant) {
        let config = self.config(now);
        let wants_addresses = question.subject != RequestedRecords::HttpsRecords;
        let none = if wants_addresses { NO_SUCH_NAME } else { NO_HTTPS_RECORDS };
        if config.sources == HostLookupSources::SystemOnly {
            return (self.deliver)(&question, if wants_addresses { DnsAnswer::NeedsSystem } else { none });
        }
        let listed = config.hosts.addresses(&question.name);
        if !listed.is_empty() && config.sources != HostLookupSources::DnsThenFiles {
            let found = DnsAnswer::Found(sort_addresses::sort_addresses(listed), Duration::ZERO);
            return (self.deliver)(&question, if wants_addresses { found } else { none });
        }
        if config.sources == HostLookupSources::FilesOnly {
            return (self.deliver)(&question, none);
        }
        if config.resolv_conf.rotate {
            self.first_server = self.first_server.wrapping_add(1);
        }
        let machine = NameLookup::for_records(question.subject, &question.name, &config.resolv_conf, self.first_server);
        let Ok(mut machine) = machine else { return (self.deliver)(&question, none) };
        let transmits = machine.start(time_conversions::to_monotonic_time(now));
        self.serial += 1;
        let serial = self.serial;
        let lookup = self.lookups.insert(ActiveLookup {
            question,
            machine,
            config,
            serial,
            queries: Vec::new(),
            is_early: false,
        });
        self.queue_queries(lookup, serial, transmits);
        self.set_timer(lookup, now);
    }

    fn queue_queries(&mut self, lookup: usize, serial: u64, transmits: Vec<OutgoingQuery>) {
        self.unsent.extend(transmits.into_iter().map(|transmit| PendingDnsQuery { lookup, serial, transmit }));
    }

    fn set_timer(&mut self, lookup: usize, now: Instant) {
        let active = &self.lookups[lookup];
        let Some(at) = active.machine.next_timeout() else { return };
        self.due.push(LookupTimeout { at: time_conversions::to_instant(at).max(now), lookup, serial: active.serial });
    }

    /// Handles the timeouts of lookups that have passed at `now`.
    pub(super) fn on_timers(&mut self, now: Instant) {
        while self.due.peek().is_some_and(|due| due.at <= now) {
            let Some(LookupTimeout { lookup, serial, .. }) = self.due.pop() else { return };
            if self.is_current(lookup, serial) {
                self.advance_lookup(lookup, now, |machine, now| machine.on_timeout(now));
            }
        }
    }

    fn is_current(&self, lookup: usize, serial: u64) -> bool {
        self.lookups.get(lookup).is_some_and(|active| active.serial == serial)
    }

    /// Calls `step` with the state machine of a lookup. Finishes the lookup if it is then complete.
    /// Delivers the addresses of one family once if connecting may begin with them.
    fn advance_lookup(
        &mut self,
        lookup: usize,
        now: Instant,
        step: impl FnOnce(&mut NameLookup, haul_policy::MonotonicTime) -> Vec<OutgoingQuery>,
    ) {
        let active = &mut self.lookups[lookup];
        let serial = active.serial;
        let transmits = step(&mut active.machine, time_conversions::to_monotonic_time(now));
        if *active.machine.status() == DnsLookupStatus::Waiting {
            let early = if active.is_early { None } else { active.machine.early_addresses() };
            if let Some(addresses) = early {
                active.is_early = true;
                let sorted = sort_addresses::sort_addresses(&addresses);
                (self.deliver)(&active.question, DnsAnswer::Early(sorted));
            }
            self.queue_queries(lookup, serial, transmits);
            self.set_timer(lookup, now);
        } else {
            self.finish_lookup(lookup);
        }
    }

    /// Sends waiting queries. Stops when [`MAX_BURST`] queries that were sent within
    /// [`BURST_WINDOW`] are unanswered, so that no server's receive buffer overflows.
    pub(super) fn send_queries(&mut self, now: Instant) {
        while !self.unsent.is_empty() {
            while let Some(&(sent, socket, id)) = self.recent.front()
                && (now.saturating_duration_since(sent) >= BURST_WINDOW || !self.pending.contains_key(&(socket, id)))
            {
                self.recent.pop_front();
            }
            if self.channel.is_none() && self.recent.len() >= MAX_BURST {
                return;
            }
            let Some(query) = self.unsent.pop_front() else { return };
            if self.is_current(query.lookup, query.serial) {
                self.send(query, now);
            }
        }
    }

    fn send(&mut self, query: PendingDnsQuery, now: Instant) {
        if let Err(error) = self.try_send(query, now) {
            self.on_unreachable(query, now, error.to_string());
        }
    }

    /// Reports to a query's lookup that the server of the query cannot be reached.
    fn on_unreachable(&mut self, query: PendingDnsQuery, now: Instant, cause: String) {
        if self.is_current(query.lookup, query.serial) {
            let OutgoingQuery { record_type, server, .. } = query.transmit;
            self.advance_lookup(query.lookup, now, |machine, now| {
                machine.on_unreachable(now, record_type, server, cause.into())
            });
        }
    }

    fn try_send(&mut self, query: PendingDnsQuery, now: Instant) -> std::io::Result<()> {
        let OutgoingQuery { record_type, server, tcp } = query.transmit;
        let machine = &self.lookups[query.lookup].machine;
        let key = if let Some(channel) = &mut self.channel {
            let bytes = machine.query(record_type, CHANNEL_ID).to_bytes().map_err(std::io::Error::other)?;
            (CHANNEL_KEY, channel.send(bytes))
        } else {
            let resolv_conf = Arc::clone(&self.lookups[query.lookup].config.resolv_conf);
            let socket = self.socket_for(&resolv_conf.servers[server], server, tcp)?;
            let id = self.unused_id(socket)?;
            let machine = &self.lookups[query.lookup].machine;
            self.sockets[socket].send(machine.query(record_type, id).to_bytes().map_err(std::io::Error::other)?)?;
            self.recent.push_back((now, socket, id.into()));
            (socket, id.into())
        };
        self.lookups[query.lookup].queries.push(key);
        self.pending.insert(key, query);
        Ok(())
    }

    fn unused_id(&self, socket: usize) -> std::io::Result<u16> {
        loop {
            let mut bytes = [0; 2];
            aws_lc_rs::rand::fill(&mut bytes).map_err(|_| std::io::Error::other("the system gives no entropy"))?;
            let id = u16::from_ne_bytes(bytes);
            if !self.pending.contains_key(&(socket, id.into())) {
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
                Ok(DnsReceived::Nothing) => return,
                Ok(DnsReceived::Message(length)) => self.on_message(key, length, now),
                Err(_) => return self.on_broken_socket(key, now),
            }
        }
    }

    fn on_message(&mut self, socket: usize, length: usize, now: Instant) {
        let Some(id) = self.buffer[..length].first_chunk::<2>().map(|id| u16::from_be_bytes(*id)) else { return };
        let key = (socket, u64::from(id));
        let Some(&PendingDnsQuery { lookup, serial, transmit }) = self.pending.get(&key) else { return };
        if !self.is_current(lookup, serial) {
            return;
        }
        let query = self.lookups[lookup].machine.query(transmit.record_type, id);
        let Some(response) = query.parse_response(&self.buffer[..length]) else { return };
        self.forget_query(key);
        self.advance_lookup(lookup, now, |machine, now| machine.on_response(now, transmit, response));
    }

    /// Handles the responses to queries that were sent on the
    /// [`DnsChannel`](super::super::custom_transport::DnsChannel).
    pub(super) fn on_channel_ready(&mut self, now: Instant) {
        while let Some((number, response)) = self.channel.as_mut().and_then(|channel| channel.receive()) {
            let Some(query) = self.pending.remove(&(CHANNEL_KEY, number)) else { continue };
            if !self.is_current(query.lookup, query.serial) {
                continue;
            }
            let asked = self.lookups[query.lookup].machine.query(query.transmit.record_type, CHANNEL_ID);
            let parsed = response.map(|message| Some(asked.parse_response(&message.bytes)?.with_age(message.age)));
            match parsed {
                Ok(Some(response)) => {
                    self.advance_lookup(query.lookup, now, |machine, now| {
                        machine.on_response(now, query.transmit, response)
                    });
                }
                Ok(None) => self.on_unreachable(query, now, "a message that is no response to the query".to_owned()),
                Err(error) => self.on_unreachable(query, now, format!("{error:#}")),
            }
        }
        if let Some(channel) = &self.channel {
            event_registration::after_short_receive(channel.fd());
        }
    }

    /// Closes a broken socket. Informs the lookups that have queries on the socket that their name
    /// server is unreachable.
    fn on_broken_socket(&mut self, socket: usize, now: Instant) {
        let broken: Vec<_> = self.pending.keys().filter(|key| key.0 == socket).copied().collect();
        self.stop_reusing_socket(socket);
        for key in broken {
            let Some(query) = self.pending.get(&key).copied() else { continue };
            self.forget_query(key);
            self.on_unreachable(query, now, "it cannot be reached".to_owned());
        }
        self.close_if_unused(socket);
    }

    /// Removes a query that was sent. Closes its socket if no other query waits on that socket and
    /// no further query will be sent on it.
    pub(super) fn forget_query(&mut self, key: (usize, u64)) {
        if self.pending.remove(&key).is_none() {
            return;
        }
        if let (CHANNEL_KEY, number) = key {
            self.channel.as_mut().expect("its queries are pending").cancel(number);
        } else if let Some(socket) = self.sockets.get_mut(key.0) {
            socket.open_queries = socket.open_queries.saturating_sub(1);
            self.close_if_unused(key.0);
        }
    }

    fn close_if_unused(&mut self, key: usize) {
        let is_current = self.current_socket.contains(&Some(key));
        if !is_current && self.sockets.get(key).is_some_and(|socket| socket.open_queries == 0) {
            self.sockets.remove(key);
        }
    }

    /// Marks a socket so that no further query is sent on it.
    fn stop_reusing_socket(&mut self, key: usize) {
        for current in &mut self.current_socket {
            current.take_if(|current| *current == key);
        }
    }

    /// Returns the key of a socket that can carry one more query to this server. Opens a new socket
    /// for each TCP query, and for a UDP query if the server's current socket accepts no more.
    fn socket_for(&mut self, address: &NameServer, server: usize, tcp: bool) -> std::io::Result<usize> {
        if tcp {
            let socket = DnsSocket::tcp(address, &self.servers)?;
            return self.add_socket(socket);
        }
        if self.current_socket.len() <= server {
            self.current_socket.resize(server + 1, None);
        }
        if let Some(key) = self.current_socket[server] {
            if self.sockets[key].accepts_query_to(address) {
                return Ok(key);
            }
            self.current_socket[server] = None;
            self.close_if_unused(key);
        }
        let socket = DnsSocket::udp(address, &self.servers)?;
        let key = self.add_socket(socket)?;
        self.current_socket[server] = Some(key);
        Ok(key)
    }

    fn add_socket(&mut self, socket: DnsSocket) -> std::io::Result<usize> {
        let entry = self.sockets.vacant_entry();
        let key = entry.key();
        entry.insert(socket).register(self.poll.registry(), mio::Token(key))?;
        Ok(key)
    }
}
