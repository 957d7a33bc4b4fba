//! The DNS client: runs any number of lookups at a time on one thread. A name server that does not
//! answer delays no other lookup.
//!
//! ```text
//! Resolver ── names ──▶ DnsQuestionQueue ──▶ DnsClient ──▶ deliver(name, answer)
//!                                     │  ▲
//!                        NameLookup ──┘  └── DnsSocket: UDP, or TCP for what UDP truncates
//!                                            DnsChannel: another carrier, such as HTTPS
//! ```
//!
//! The thread starts with the first name and ends after five idle seconds. [`haul_policy::dns`]
//! decides which server is asked at which time, and interprets the responses. This module owns the
//! sockets and reads the clock.
//!
//! Three measures protect against forged responses (RFC 5452): each socket is connected to one
//! server and has a port that the kernel chose; it carries at most [`socket::QUERIES_PER_SOCKET`]
//! queries; and each query has a random identifier.

mod active_lookups;
mod socket;
mod sort_addresses;

use std::collections::{BinaryHeap, HashMap, VecDeque};
use std::io;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use haul_policy::dns::https_record::HttpsRecord;
use haul_policy::dns::nsswitch::HostLookupSources;
use haul_policy::dns::query_schedule::{DnsLookupStatus, RequestedRecords};
use haul_policy::dns::resolv_conf::ResolvConf;
use mio::{Events, Interest, Poll, Token, Waker};
use slab::Slab;

use self::active_lookups::{ActiveLookup, LookupTimeout, PendingDnsQuery};
use self::socket::DnsSocket;
use super::ChosenDnsServers;
use super::custom_transport::DnsChannel;
use super::system_files::{ParsedResolverFiles, ResolverFiles};
use crate::ignore_poison::IgnorePoison;
use crate::net::event_registration;

/// The time after which the thread that asks the name servers ends if it has no lookup.
const THREAD_IDLE_TIMEOUT: Duration = Duration::from_secs(5);
/// The maximum number of unanswered queries that were sent within [`BURST_WINDOW`]. A server's
/// receive buffer has room for a few hundred queries. If it is full, the server drops queries, and
/// each dropped query is delayed by a second.
const MAX_BURST: usize = 128;
/// The time after which an unanswered query no longer counts for [`MAX_BURST`]: the server has
/// probably read the query from its receive buffer.
const BURST_WINDOW: Duration = Duration::from_millis(50);
const WAKE_TOKEN: Token = Token(usize::MAX);
/// The key that stands for the [`DnsChannel`] in maps whose other keys identify sockets.
const CHANNEL_KEY: usize = usize::MAX - 1;

/// The answer to a lookup, passed to the `deliver` callback of the [`DnsClient`].
pub(super) enum DnsAnswer {
    /// The addresses in the order in which to try them, and the time for which they may be cached.
    Found(Vec<IpAddr>, Duration),
    /// The addresses of one family (IPv4 or IPv6), with which connecting may begin. Another answer
    /// follows once the lookup has ended.
    Early(Vec<IpAddr>),
    /// The name does not exist (`exists` is false), or it exists but has no address (`exists` is
    /// true). `ttl` is the time for which this answer may be cached.
    NotFound { exists: bool, ttl: Duration },
    /// The HTTPS records of the name, and the time for which they may be cached.
    Https(Vec<HttpsRecord>, Duration),
    /// No name server gave an answer, for this reason.
    Unavailable(String),
    /// The name servers were not asked, because the system's configuration contains sources that
    /// only the system's resolver can query.
    NeedsSystem,
}

/// A question to the name servers: a name, and the type of the records to query.
#[derive(Clone)]
pub(super) struct DnsQuestion {
    pub(super) name: Arc<str>,
    pub(super) subject: RequestedRecords,
}

/// The queue of questions for the thread that asks the name servers.
pub(super) struct DnsQuestionQueue {
    waiting: Mutex<WaitingDnsQuestions>,
    waker: Waker,
}

/// The questions that wait for the thread, and whether the thread accepts further questions.
#[derive(Default)]
struct WaitingDnsQuestions {
    questions: Vec<DnsQuestion>,
    closed: bool,
}

impl DnsQuestionQueue {
    /// Makes an empty queue, and the [`Poll`] of the thread that asks the name servers. The queue
    /// wakes that [`Poll`] when a question is added.
    pub(super) fn new() -> io::Result<(Poll, Arc<Self>)> {
        let poll = Poll::new()?;
        let waker = Waker::new(poll.registry(), WAKE_TOKEN)?;
        Ok((poll, Arc::new(Self { waiting: Mutex::default(), waker })))
    }

    /// Adds a question for the thread that asks the name servers. Returns false if the thread has
    /// ended.
    pub(super) fn push(&self, question: DnsQuestion) -> bool {
        let mut waiting = self.waiting.lock().ignore_poison();
        if waiting.closed {
            return false;
        }
        waiting.questions.push(question);
        // The first of several has woken the thread.
        waiting.questions.len() > 1 || self.waker.wake().is_ok()
    }

    fn take_questions(&self) -> Vec<DnsQuestion> {
        std::mem::take(&mut self.waiting.lock().ignore_poison().questions)
    }

    /// Closes the queue if it contains no questions, so that no further question is accepted.
    /// Returns true if it was closed.
    fn close(&self) -> bool {
        let mut waiting = self.waiting.lock().ignore_poison();
        waiting.closed = waiting.questions.is_empty();
        waiting.closed
    }
}

/// The DNS client: the sockets and the lookups of the thread that asks the name servers.
pub(super) struct DnsClient<'a> {
    poll: Poll,
    inbox: &'a DnsQuestionQueue,
    servers: ChosenDnsServers,
    /// The channel that carries the queries; `None` if sockets carry the queries.
    channel: Option<Box<dyn DnsChannel>>,
    /// The resolver configuration of lookups whose queries are sent on the [`DnsChannel`].
    channel_conf: Arc<ResolvConf>,
    files: ResolverFiles,
    deliver: &'a dyn Fn(&DnsQuestion, DnsAnswer),
    lookups: Slab<ActiveLookup>,
    /// The number of lookups so far. Because keys in `lookups` are reused, this number
    /// distinguishes successive lookups with the same key.
    serial: u64,
    sockets: Slab<DnsSocket>,
    /// For each server, by its index: the key of the socket on which the next UDP query to that
    /// server is sent. `None` if a new socket must be opened.
    current_socket: Vec<Option<usize>>,
    /// The queries that were sent and not answered. The key of a query is the key of its socket and
    /// its message ID. For a query on the channel, it is [`CHANNEL_KEY`] and the ID that the
    /// channel returned.
    pending: HashMap<(usize, u64), PendingDnsQuery>,
    due: BinaryHeap<LookupTimeout>,
    unsent: VecDeque<PendingDnsQuery>,
    /// The most recently sent queries, each with the time of sending, the key of its socket and its
    /// message ID.
    recent: VecDeque<(Instant, usize, u64)>,
    /// A counter of lookups, by which the resolver option `rotate` selects the server to ask first.
    first_server: usize,
    buffer: Box<[u8]>,
}

#[cfg(windows)]
impl Drop for DnsClient<'_> {
    fn drop(&mut self) {
        if let Some(channel) = &self.channel {
            event_registration::forget(channel.fd());
        }
    }
}

impl<'a> DnsClient<'a> {
    pub(super) fn new(
        poll: Poll,
        inbox: &'a DnsQuestionQueue,
        servers: ChosenDnsServers,
        files: ResolverFiles,
        deliver: &'a dyn Fn(&DnsQuestion, DnsAnswer),
    ) -> Self {
        Self {
            poll,
            inbox,
            servers,
            channel: None,
            channel_conf: Arc::new(ResolvConf { use_tcp: true, ..ResolvConf::default() }),
            files,
            deliver,
            lookups: Slab::new(),
            serial: 0,
            sockets: Slab::new(),
            current_socket: Vec::new(),
            pending: HashMap::new(),
            due: BinaryHeap::new(),
            unsent: VecDeque::new(),
            recent: VecDeque::new(),
            first_server: 0,
            buffer: vec![0; socket::MAX_MESSAGE].into_boxed_slice(),
        }
    }

    /// Makes the client send all queries on `channel`, instead of sending them on sockets to the
    /// configured servers.
    ///
    /// # Errors
    /// The system cannot watch the channel.
    pub(super) fn use_channel(&mut self, channel: Box<dyn DnsChannel>) -> io::Result<()> {
        event_registration::register(self.poll.registry(), channel.fd(), Token(CHANNEL_KEY), Interest::READABLE)?;
        self.channel = Some(channel);
        Ok(())
    }

    /// Runs lookups until there has been no lookup for [`THREAD_IDLE_TIMEOUT`].
    pub(super) fn run(mut self) {
        let mut events = Events::with_capacity(64);
        let mut idle_since = Instant::now();
        loop {
            let wait = self.wait_time(Instant::now(), idle_since);
            if let Err(error) = self.poll.poll(&mut events, Some(wait))
                && error.kind() != io::ErrorKind::Interrupted
            {
                self.fail_all(&error);
            }
            for event in &events {
                match event.token() {
                    WAKE_TOKEN => {}
                    Token(CHANNEL_KEY) => self.on_channel_ready(Instant::now()),
                    Token(socket) => self.on_ready(socket, Instant::now()),
                }
            }
            let now = Instant::now();
            for question in self.inbox.take_questions() {
                self.begin_lookup(question, now);
            }
            self.on_timers(now);
            self.send_queries(now);
            if !self.lookups.is_empty() {
                idle_since = now;
            } else if now.saturating_duration_since(idle_since) >= THREAD_IDLE_TIMEOUT && self.inbox.close() {
                return;
            }
        }
    }

    /// Answers all waiting questions with this error, and closes the question queue.
    pub(super) fn refuse_all(self, error: &str) {
        while !self.inbox.close() {
            for question in self.inbox.take_questions() {
                (self.deliver)(&question, DnsAnswer::Unavailable(error.to_owned()));
            }
        }
    }

    /// Returns the time for which the thread waits for an event, until the next timeout of a lookup
    /// or until the idle thread ends.
    fn wait_time(&self, now: Instant, idle_since: Instant) -> Duration {
        let until = |at: Instant| at.saturating_duration_since(now);
        if self.lookups.is_empty() {
            return until(idle_since + THREAD_IDLE_TIMEOUT);
        }
        let mut wait = self.due.peek().map_or(THREAD_IDLE_TIMEOUT, |due| until(due.at));
        if let (false, Some((sent, ..))) = (self.unsent.is_empty(), self.recent.front()) {
            wait = wait.min(until(*sent + BURST_WINDOW));
        }
        // Timers of mio have milliseconds: rounded down, the loop would spin until the time has
        // come.
        wait + Duration::from_millis(1)
    }

    /// Ends a lookup, and passes its answer to the `deliver` callback.
    fn finish_lookup(&mut self, key: usize) {
        let lookup = self.lookups.remove(key);
        for query in &lookup.queries {
            self.forget_query(*query);
        }
        let answer = match lookup.machine.status() {
            DnsLookupStatus::Waiting => DnsAnswer::Unavailable("the lookup was given up".to_owned()),
            DnsLookupStatus::Found { addresses, ttl } => {
                DnsAnswer::Found(sort_addresses::sort_addresses(addresses), *ttl)
            }
            DnsLookupStatus::FoundHttps { records, ttl } => DnsAnswer::Https(records.clone(), *ttl),
            DnsLookupStatus::NotFound { exists, ttl } => {
                // Where DNS comes first, the file is for what DNS lacks.
                let listed = lookup.config.hosts.addresses(&lookup.question.name).to_vec();
                if self.channel.is_some() || self.servers.is_set() || listed.is_empty() {
                    DnsAnswer::NotFound { exists: *exists, ttl: *ttl }
                } else {
                    DnsAnswer::Found(sort_addresses::sort_addresses(&listed), Duration::ZERO)
                }
            }
            DnsLookupStatus::Unavailable(cause) => {
                let servers = self.channel.as_ref().map_or_else(
                    || lookup.config.resolv_conf.servers.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "),
                    |channel| channel.server().to_owned(),
                );
                DnsAnswer::Unavailable(format!("no answer from the name servers ({servers}): {cause}"))
            }
        };
        (self.deliver)(&lookup.question, answer);
    }

    fn fail_all(&mut self, error: &io::Error) {
        for lookup in self.lookups.drain() {
            (self.deliver)(&lookup.question, DnsAnswer::Unavailable(error.to_string()));
        }
        self.pending.clear();
        self.unsent.clear();
        self.recent.clear();
        self.due.clear();
        self.sockets.clear();
        self.current_socket.clear();
    }

    /// Returns the resolver configuration for a new lookup, from the system's files. If the user
    /// chose name servers, they replace the system's servers.
    fn config(&mut self, now: Instant) -> ParsedResolverFiles {
        let config = self.files.config(now).clone();
        if self.channel.is_some() {
            // The search list is for the network's own names, which are not the server's business.
            let resolv_conf = Arc::clone(&self.channel_conf);
            return ParsedResolverFiles { resolv_conf, sources: HostLookupSources::FilesThenDns, ..config };
        }
        self.servers.applied_to(config)
    }
}
