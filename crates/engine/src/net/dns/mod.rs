//! Looks up the addresses of names. Answers are cached, concurrent lookups of one name are merged,
//! and no lookup blocks an event loop.
//!
//! ```
//! use haul::net::dns::{AddressFamily, Resolver};
//!
//! let resolver = Resolver::default();
//! resolver.add_override("example.test:80:127.0.0.1,127.0.0.2")?;
//! let addresses = resolver.resolve("Example.test", 80, AddressFamily::Any, None)?;
//! assert_eq!(addresses.len(), 2);
//! assert_eq!(resolver.lookup_count(), 0);
//! # Ok::<(), haul::Error>(())
//! ```
//!
//! | lookup | source of the answer | code |
//! |---|---|---|
//! | without waiting ([`Resolver::lookup`]) | name servers, all from one thread | `client` |
//! | without waiting, on other systems than Linux, or if only the system knows the sources (mDNS, LDAP) | `getaddrinfo`, on a thread for each | `system_resolver` |
//! | with waiting ([`Resolver::resolve`]) | `getaddrinfo` | `system_resolver` |
//! | of HTTPS records ([`Resolver::https_records`]) | name servers, with the addresses | `https_records` |
//! | any, with name servers that the caller chose ([`ChosenDnsServers`]) | these servers | `client` |
//!
//! Concurrent lookups of one name are one lookup. Answers are cached for their TTL, failures only
//! for a short time. No lookup waits for another one.
//!
//! For overrides (`--resolve`), IP addresses, and `localhost`, `invalid` and the names below them
//! (RFC 6761 §6.3 and §6.4), the resolver asks no server. An error whose source is a
//! [`std::io::Error`] is a failure of the resolver and may be temporary. Any other error means that
//! the name has no address.

mod caller_given_servers;
mod client;
pub mod custom_transport;
mod fixed_and_cached_answers;
mod handle_answers;
mod https_records;
mod lookup_answer;
mod overrides;
mod system_files;
mod system_resolver;

use std::net::IpAddr;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, mpsc};
use std::time::{Duration, Instant};
use std::{fmt, io};

use haul_policy::dns::query_schedule::RequestedRecords;

pub use self::caller_given_servers::ChosenDnsServers;
use self::client::{DnsAnswer, DnsClient, DnsQuestion, DnsQuestionQueue};
use self::custom_transport::DnsTransport;
pub use self::fixed_and_cached_answers::is_onion;
use self::fixed_and_cached_answers::{LookupCallback, ResolverState, normalize_name};
pub use self::https_records::HttpsLookupStatus;
pub(crate) use self::lookup_answer::AvailableAddresses;
use self::lookup_answer::{LookupAnswer, to_caller_result};
use self::system_files::{ResolverFilePaths, ResolverFiles};
use crate::ignore_poison::IgnorePoison;
use crate::{Error, ErrorKind, Result, fork, spawn_with_signals_blocked, time_conversions};

/// The time for which a local failure is cached. A local failure is caused by this process (no
/// descriptors, no memory) or by the network, not by the name. The time is shorter than the pause
/// before a request is retried, so that the retry looks up the name again.
const LOCAL_FAILURE_CACHE_TIME: Duration = Duration::from_millis(250);
/// The minimum and the maximum time for which an answer of a name server is cached.
const CACHE_TIME_BOUNDS: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(3600));

/// The IP address families that a connection may use (curl's `-4` and `-6`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum AddressFamily {
    /// IPv4 and IPv6.
    #[default]
    Any,
    /// IPv4 only.
    V4,
    /// IPv6 only.
    V6,
}

impl AddressFamily {
    /// Returns the records to ask name servers for.
    fn requested_records(self) -> RequestedRecords {
        match self {
            Self::Any => RequestedRecords::Addresses,
            Self::V4 => RequestedRecords::Ipv4Addresses,
            Self::V6 => RequestedRecords::Ipv6Addresses,
        }
    }

    /// Returns true if an address belongs to these families.
    #[must_use]
    pub fn includes(self, address: &IpAddr) -> bool {
        match self {
            Self::Any => true,
            Self::V4 => address.is_ipv4(),
            Self::V6 => address.is_ipv6(),
        }
    }
}

/// The result of [`Resolver::lookup`]: the answer, or `Pending` while the lookup is in progress.
#[derive(Debug)]
pub enum LookupStatus {
    /// The lookup has ended with these addresses or this error.
    Ready(Result<Arc<[IpAddr]>>),
    /// The lookup is in progress. `notify` will be called once, from another thread; call
    /// [`Resolver::lookup`] again then.
    Pending,
}

/// The cache lifetimes of lookup results that come without a lifetime, from `getaddrinfo` and
/// [`Resolver::with_lookup`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DnsCacheOptions {
    /// The time for which an answer is cached (curl's `--dns-cache-timeout`). Default 60 s. Values
    /// below one second count as one second.
    pub ttl: Duration,
    /// The time for which a failed lookup is cached. Default 3 s. Values below one second count as
    /// one second.
    pub negative_ttl: Duration,
}

impl Default for DnsCacheOptions {
    fn default() -> Self {
        Self { ttl: Duration::from_secs(60), negative_ttl: Duration::from_secs(3) }
    }
}

/// A resolver for host names that caches answers. Clones share the cache and the threads.
///
/// In a forked child, the clones share a new, empty cache and new threads.
#[derive(Clone)]
pub struct Resolver {
    /// The state of the process that made the resolver.
    first: Arc<ResolverInner>,
}

/// The kind of caller that waits for a lookup: an event loop or a blocking thread. The kind decides
/// whether the lookup asks name servers or calls `getaddrinfo`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LookupCaller {
    /// An event loop, which must not block.
    EventLoop,
    /// A thread that has nothing else to do until the lookup ends, so that it may block.
    BlockingThread,
}

/// A function that looks up the IP addresses of a host name. It may block.
type LookupFunction = dyn Fn(&str) -> io::Result<Vec<IpAddr>> + Send + Sync;

/// The state and the settings that all clones of a [`Resolver`] share.
struct ResolverInner {
    /// The function that looks up a name: `getaddrinfo`, or the function that the program set.
    ask: Arc<LookupFunction>,
    /// True if lookups for an event loop ask the name servers; false if they call `ask`.
    uses_dns: bool,
    files: ResolverFilePaths,
    options: DnsCacheOptions,
    state: Mutex<ResolverState>,
    work: Condvar,
    /// The queue of questions for the thread that asks the name servers; `None` before the first
    /// start of that thread.
    inbox: Mutex<Option<Arc<DnsQuestionQueue>>>,
    /// The fork count of the process whose threads serve this resolver.
    generation: u32,
    /// The state for a forked child of the process to which this state belongs. It is set only in
    /// the memory of the child.
    child: OnceLock<Arc<Self>>,
}

impl Default for Resolver {
    fn default() -> Self {
        Self::new(DnsCacheOptions::default())
    }
}

impl Resolver {
    /// Makes a resolver that calls `getaddrinfo` for blocking callers, and asks the system's name
    /// servers for event loops.
    #[must_use]
    pub fn new(options: DnsCacheOptions) -> Self {
        Self::with_servers(options, ChosenDnsServers::default())
    }

    /// Makes a resolver that asks these name servers instead of the system's name servers. A name
    /// in the hosts file is still found in that file, except on Windows: there, the resolver reads
    /// no hosts file.
    #[must_use]
    pub fn with_servers(options: DnsCacheOptions, servers: ChosenDnsServers) -> Self {
        let resolver = Self::build(
            options,
            ResolverFilePaths::default(),
            cfg!(target_os = "linux"),
            Arc::new(system_resolver::look_up),
        );
        resolver.use_servers(&servers);
        resolver
    }

    /// Makes a resolver that looks up each name by calling the function `ask`, on helper threads.
    pub fn with_lookup(
        options: DnsCacheOptions,
        ask: impl Fn(&str) -> io::Result<Vec<IpAddr>> + Send + Sync + 'static,
    ) -> Self {
        Self::build(options, ResolverFilePaths::default(), false, Arc::new(ask))
    }

    fn build(options: DnsCacheOptions, files: ResolverFilePaths, uses_dns: bool, ask: Arc<LookupFunction>) -> Self {
        let options = DnsCacheOptions {
            ttl: options.ttl.max(Duration::from_secs(1)),
            negative_ttl: options.negative_ttl.max(Duration::from_secs(1)),
        };
        Self { first: Arc::new(ResolverInner::new(options, files, uses_dns, ask)) }
    }

    /// Returns the state for the current process. In a forked child, in which the threads of the
    /// parent do not exist, the first call makes a new state.
    fn shared(&self) -> &Arc<ResolverInner> {
        let generation = fork::fork_count();
        let mut shared = &self.first;
        while shared.generation != generation {
            shared = shared.child.get_or_init(|| Arc::new(shared.after_fork()));
        }
        shared
    }

    /// Makes a resolver with the same settings and an empty cache. Later changes of either
    /// resolver's settings do not affect the other.
    #[must_use]
    pub fn with_empty_cache(&self) -> Self {
        let shared = self.shared();
        Self { first: Arc::new(shared.copy_settings(Some(&shared.lock()))) }
    }

    /// Uses these name servers from now on. They replace earlier name servers and DNS over HTTPS.
    /// If `servers` sets nothing, the system's name servers are used again. Cached answers remain
    /// valid.
    pub fn use_servers(&self, servers: &ChosenDnsServers) {
        let mut state = self.shared().lock();
        if state.transport.is_none() && state.servers.as_deref().unwrap_or(&ChosenDnsServers::default()) == servers {
            return;
        }
        state.servers = servers.is_set().then(|| Arc::new(servers.clone()));
        state.transport = None;
        drop(state);
        // A thread that still asks others ends once it is idle.
        *self.shared().inbox.lock().ignore_poison() = None;
    }

    /// Sends all further queries through this transport, for example DNS over HTTPS. If the
    /// transport's server does not answer, the lookup fails, and no other server is asked. Cached
    /// answers remain valid.
    pub fn use_transport(&self, transport: Arc<dyn DnsTransport>) {
        self.shared().lock().transport = Some(transport);
        *self.shared().inbox.lock().ignore_poison() = None;
    }

    /// Makes a resolver with the same overrides that asks only the system's name servers. DNS over
    /// HTTPS uses this resolver to resolve the host name in the DNS server's URL.
    #[must_use]
    pub fn without_servers(&self) -> Self {
        let resolver = Self::new(self.shared().options);
        resolver.shared().lock().overrides = self.shared().lock().overrides.clone();
        resolver
    }

    /// Adds or removes an override: fixed addresses for a host and port. The syntax is that of
    /// curl's `--resolve`: `[+]HOST:PORT:ADDR[,ADDR]...` adds an override, and `-HOST:PORT` removes
    /// it. The HOST `*` stands for every host. With a `+`, the override expires after
    /// [`DnsCacheOptions::ttl`].
    ///
    /// # Errors
    /// [`ErrorKind::Setup`] if the text is not an override.
    pub fn add_override(&self, spec: &str) -> Result<()> {
        let expiry = time_conversions::add_saturating(Instant::now(), self.shared().options.ttl);
        self.shared().lock().overrides.add(spec, expiry)
    }

    /// Returns the number of lookups that were started. A lookup that tries several domains of a
    /// search list counts once.
    #[must_use]
    pub fn lookup_count(&self) -> u64 {
        self.shared().lock().lookups
    }

    /// Looks up a name without waiting. If it returns [`LookupStatus::Pending`], `notify` is called
    /// once, from another thread, when there are addresses or the lookup has ended; the caller must
    /// then call `lookup` again. If it returns [`LookupStatus::Ready`], `notify` is never called.
    ///
    /// If the name servers answer for one family (IPv4 or IPv6) more than 50 ms later than for the
    /// other, the result is the addresses of the other family alone.
    pub fn lookup(
        &self,
        host: &str,
        port: u16,
        family: AddressFamily,
        notify: impl FnOnce() + Send + 'static,
    ) -> LookupStatus {
        self.lookup_at(Instant::now(), host, port, family, LookupCaller::EventLoop, Box::new(notify))
    }

    /// Looks up a name for a connection, without waiting. Returns `None` while no address is known.
    /// `notify` is called once, from another thread, when more becomes known; it is never called
    /// after an answer that is complete.
    ///
    /// # Errors
    /// The name has no address, or the lookup failed.
    pub(crate) fn lookup_for_connection(
        &self,
        (host, port): (&str, u16),
        family: AddressFamily,
        caller: LookupCaller,
        notify: impl FnOnce() + Send + 'static,
    ) -> Result<Option<AvailableAddresses>> {
        self.begin_or_join(Instant::now(), (host, port), family, caller, Box::new(notify))
    }

    fn lookup_at(
        &self,
        now: Instant,
        host: &str,
        port: u16,
        family: AddressFamily,
        caller: LookupCaller,
        notify: LookupCallback,
    ) -> LookupStatus {
        // The callback of a caller that has its addresses is dropped.
        let notify = Arc::new(Mutex::new(Some(notify)));
        let shared = Arc::clone(&notify);
        let call = move || {
            let notify = shared.lock().ignore_poison().take();
            if let Some(notify) = notify {
                notify();
            }
        };
        match self.begin_or_join(now, (host, port), family, caller, Box::new(call)) {
            Ok(None) => LookupStatus::Pending,
            Ok(Some(found)) => {
                *notify.lock().ignore_poison() = None;
                LookupStatus::Ready(Ok(found.addresses))
            }
            Err(error) => LookupStatus::Ready(Err(error)),
        }
    }

    /// Returns the known addresses, joins the lookup of the name that is in progress, or begins
    /// one.
    fn begin_or_join(
        &self,
        now: Instant,
        (host, port): (&str, u16),
        family: AddressFamily,
        origin: LookupCaller,
        notify: LookupCallback,
    ) -> Result<Option<AvailableAddresses>> {
        let name = normalize_name(host);
        let mut state = self.shared().lock();
        if let Some(answer) = state.answer_without_lookup(now, &name, port, family) {
            return to_caller_result(answer, host, family).map(|found| Some(AvailableAddresses::complete(found)));
        }
        if let Some((waiting, early)) = state.lookup_in_progress(&name, family) {
            let found = early.and_then(|early| to_caller_result(Ok(Arc::clone(early)), host, family).ok());
            // All addresses of one family arrive together.
            let is_complete = found.is_some() && family != AddressFamily::Any;
            if !is_complete {
                waiting.push(notify);
            }
            return Ok(found.map(|addresses| AvailableAddresses { addresses, is_complete }));
        }
        let chosen = state.has_chosen_servers();
        let by_dns = chosen || (self.shared().uses_dns && origin == LookupCaller::EventLoop);
        // The system's resolver looks up both families.
        let family = if by_dns { family } else { AddressFamily::Any };
        state.begin_lookup(now, (Arc::clone(&name), family), vec![notify]);
        state.lookups += 1;
        drop(state);
        if !by_dns {
            self.shared().ask_system(name);
            return Ok(None);
        }
        let question = DnsQuestion { name, subject: family.requested_records() };
        if let Err(error) = self.shared().ask_name_servers(&question) {
            let answer = match chosen {
                // Another resolver would learn a name that is meant for the chosen one.
                true => DnsAnswer::Unavailable(error.to_string()),
                false => DnsAnswer::NeedsSystem,
            };
            self.shared().handle_answer(&question, answer);
        }
        Ok(None)
    }

    /// Looks up a name and waits for the answer, until the deadline if there is one. Without a
    /// deadline, the lookup may run on the calling thread.
    ///
    /// # Errors
    /// [`ErrorKind::Resolve`] if the name has no address of the family, and [`ErrorKind::Timeout`]
    /// if the deadline passes first. After a timeout, the lookup continues, and its result is
    /// cached.
    pub fn resolve(
        &self,
        host: &str,
        port: u16,
        family: AddressFamily,
        deadline: Option<Instant>,
    ) -> Result<Arc<[IpAddr]>> {
        self.resolve_for_connection(host, port, family, deadline).map(|found| found.addresses)
    }

    /// Looks up a name like [`resolve`](Self::resolve), and reports whether further addresses may
    /// follow.
    pub(crate) fn resolve_for_connection(
        &self,
        host: &str,
        port: u16,
        family: AddressFamily,
        deadline: Option<Instant>,
    ) -> Result<AvailableAddresses> {
        loop {
            if deadline.is_none()
                && let Some(answer) = self.resolve_in_this_thread(host, port, family)
            {
                return to_caller_result(answer, host, family).map(AvailableAddresses::complete);
            }
            let (sender, receiver) = mpsc::channel();
            let notify = Box::new(move || {
                // The receiver is gone if the deadline has passed.
                let _ = sender.send(());
            });
            let known =
                self.begin_or_join(Instant::now(), (host, port), family, LookupCaller::BlockingThread, notify)?;
            if let Some(found) = known {
                return Ok(found);
            }
            let answered = match deadline {
                Some(deadline) => receiver.recv_timeout(deadline.saturating_duration_since(Instant::now())).is_ok(),
                None => receiver.recv().is_ok(),
            };
            if !answered {
                return Err(Error::new(ErrorKind::Timeout, format!("resolving timed out: {host}")));
            }
        }
    }

    /// Looks up a name with the system's resolver on this thread and returns the answer. Returns
    /// `None` if another thread already looks up this name, or if the user chose the name servers.
    fn resolve_in_this_thread(&self, host: &str, port: u16, family: AddressFamily) -> Option<LookupAnswer> {
        let now = Instant::now();
        let name = normalize_name(host);
        let mut state = self.shared().lock();
        if let Some(answer) = state.answer_without_lookup(now, &name, port, family) {
            return Some(answer);
        }
        if state.has_chosen_servers() || state.lookup_in_progress(&name, family).is_some() {
            return None;
        }
        state.begin_lookup(now, (Arc::clone(&name), AddressFamily::Any), Vec::new());
        state.lookups += 1;
        drop(state);
        Some(self.shared().look_up_with_system(&name))
    }
}

impl fmt::Debug for Resolver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.shared().lock();
        f.debug_struct("Resolver")
            .field("names", &state.names.len())
            .field("threads", &state.threads)
            .field("lookups", &state.lookups)
            .finish_non_exhaustive()
    }
}

impl ResolverInner {
    fn new(options: DnsCacheOptions, files: ResolverFilePaths, uses_dns: bool, ask: Arc<LookupFunction>) -> Self {
        let (state, work, inbox) = (Mutex::default(), Condvar::new(), Mutex::default());
        let (generation, child) = (fork::fork_count(), OnceLock::new());
        Self { ask, uses_dns, files, options, state, work, inbox, generation, child }
    }

    /// Makes the state for a forked child process. It contains the overrides and the chosen name
    /// servers, or nothing if another thread held their lock during the fork.
    fn after_fork(&self) -> Self {
        self.copy_settings(self.state.try_lock().ok().as_deref())
    }

    /// Makes a copy of this resolver with an empty cache. The overrides, the chosen name servers
    /// and the transport come from `state`; they are not set if `state` is `None`.
    fn copy_settings(&self, state: Option<&ResolverState>) -> Self {
        let Self { ask, uses_dns, files, options, .. } = self;
        let copy = Self::new(*options, files.clone(), *uses_dns, Arc::clone(ask));
        if let Some(state) = state {
            let mut copied = copy.lock();
            copied.overrides = state.overrides.clone();
            copied.servers = state.servers.clone();
            copied.transport = state.transport.clone();
        }
        copy
    }

    fn lock(&self) -> MutexGuard<'_, ResolverState> {
        self.state.lock().ignore_poison()
    }

    /// Passes a question to the thread that asks the name servers. Starts that thread if it is not
    /// running.
    ///
    /// # Errors
    /// The system cannot start the thread.
    fn ask_name_servers(self: &Arc<Self>, question: &DnsQuestion) -> io::Result<()> {
        let mut inbox = self.inbox.lock().ignore_poison();
        if inbox.as_ref().is_some_and(|inbox| inbox.push(question.clone())) {
            return Ok(());
        }
        let (poll, made) = DnsQuestionQueue::new()?;
        made.push(question.clone());
        let (shared, for_thread) = (Arc::clone(self), Arc::clone(&made));
        let state = self.lock();
        let (servers, transport) = (state.servers.as_deref().cloned().unwrap_or_default(), state.transport.clone());
        drop(state);
        spawn_with_signals_blocked::start("haul-dns", move || {
            let files = ResolverFiles::read(shared.files.clone(), Instant::now());
            let deliver = |question: &DnsQuestion, answer| shared.handle_answer(question, answer);
            let mut client = DnsClient::new(poll, &for_thread, servers, files, &deliver);
            let opened = transport.map_or(Ok(()), |transport| {
                transport.open().and_then(|channel| {
                    client.use_channel(channel).map_err(|error| {
                        Error::with_source(ErrorKind::Resolve, "the DNS channel cannot be watched", error)
                    })
                })
            });
            match opened {
                Ok(()) => client.run(),
                Err(error) => client.refuse_all(&error.to_string()),
            }
        })?;
        *inbox = Some(made);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
