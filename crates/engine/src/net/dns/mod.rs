//! Looks up the addresses of names: cached, merged, and never on an event loop's thread of a
//! worker.
//!
//! ```
//! use haul::net::dns::{AddressFamily, Resolver};
//!
//! let resolver = Resolver::default();
//! resolver.add_override("example.test:80:127.0.0.1,127.0.0.2")?;
//! let addresses = resolver.resolve("Example.test", 80, AddressFamily::Any, None)?;
//! assert_eq!(addresses.len(), 2);
//! assert_eq!(resolver.lookups(), 0);
//! # Ok::<(), haul::Error>(())
//! ```
//!
//! | lookup | who does it | code |
//! |---|---|---|
//! | of many, not waited for ([`Resolver::lookup`]) | name servers, asked from one thread | `client` |
//! | the same, where only the system knows the sources (mDNS, LDAP), or on other systems than Linux | `getaddrinfo`, on a thread each | `system` |
//! | of one, waited for ([`Resolver::resolve`]) | `getaddrinfo` | `system` |
//! | with servers of the caller's choice ([`DnsServers`]) | these name servers, always | `client` |
//!
//! Concurrent lookups of one name are one lookup. Answers are kept as long as they say, failures
//! shortly. No lookup waits for another's.
//!
//! The resolver asks nobody for overrides (`--resolve`), IP literals, and `localhost`, `invalid`
//! and the names below them (RFC 6761 §6.3 and §6.4). A failure with an [`std::io::Error`] as its
//! source is a failure of the resolver, which may pass soon. Any other failure is an answer about
//! the name.

mod cache;
mod client;
mod failure;
mod overrides;
mod servers;
mod system;
mod system_files;

use std::net::IpAddr;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, mpsc};
use std::time::{Duration, Instant};
use std::{fmt, io};

pub use self::cache::is_onion;
use self::cache::{CachedName, Notify, ResolverState, normal};
use self::client::{DnsAnswer, DnsClient, DnsInbox};
use self::failure::{Answer, LookupFailure, present};
pub use self::servers::DnsServers;
use self::system_files::{FilePaths, NameFiles};
use crate::ignore_poison::IgnorePoison;
use crate::{Error, ErrorKind, Result, clock, threads};

/// The time for which a failure is cached that concerns this process (no descriptors, no memory) or
/// the network rather than the name. Retries wait longer than this.
const LOCAL_FAILURE: Duration = Duration::from_millis(250);
/// The shortest and the longest time for which an answer of a name server is kept.
const KEPT: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(3600));

/// The address families that may be used (curl's `-4` and `-6`).
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
    /// Returns true if this address is of the family.
    #[must_use]
    pub fn admits(self, address: &IpAddr) -> bool {
        match self {
            Self::Any => true,
            Self::V4 => address.is_ipv4(),
            Self::V6 => address.is_ipv6(),
        }
    }
}

/// The state of a lookup.
#[derive(Debug)]
pub enum LookupStatus {
    /// The lookup is complete.
    Ready(Result<Arc<[IpAddr]>>),
    /// Under way; `notify` will be called once, from another thread, and then a new lookup is
    /// answered.
    Pending,
}

/// The lifetimes of cached answers that do not say it themselves: those of the system's resolver
/// and of functions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DnsOptions {
    /// Life of an answer. Default 60 s (curl's `--dns-cache-timeout`); at least one second.
    pub ttl: Duration,
    /// Life of a failure. Default 3 s; at least one second.
    pub negative_ttl: Duration,
}

impl Default for DnsOptions {
    fn default() -> Self {
        Self { ttl: Duration::from_secs(60), negative_ttl: Duration::from_secs(3) }
    }
}

/// A caching resolver. Clones share the cache and the threads.
#[derive(Clone)]
pub struct Resolver {
    shared: Arc<ResolverInner>,
}

/// The code that waits for a lookup.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LookupOrigin {
    /// An event loop with other transfers.
    Worker,
    /// A thread that does nothing else meanwhile.
    Caller,
}

type LookupFunction = dyn Fn(&str) -> io::Result<Vec<IpAddr>> + Send + Sync;

struct ResolverInner {
    /// The system's resolver, or the program's function in its place.
    ask: Arc<LookupFunction>,
    /// Lookups that are not waited for go to name servers.
    uses_dns: bool,
    files: FilePaths,
    options: DnsOptions,
    state: Mutex<ResolverState>,
    work: Condvar,
    /// The inbox of the thread that asks name servers, if it runs.
    inbox: Mutex<Option<Arc<DnsInbox>>>,
}

impl Default for Resolver {
    fn default() -> Self {
        Self::new(DnsOptions::default())
    }
}

impl Resolver {
    /// Makes a resolver that asks the system, or the name servers that the system would ask.
    #[must_use]
    pub fn new(options: DnsOptions) -> Self {
        Self::with_servers(options, DnsServers::default())
    }

    /// Makes a resolver that asks these name servers; the hosts file still comes first.
    #[must_use]
    pub fn with_servers(options: DnsOptions, servers: DnsServers) -> Self {
        let resolver = Self::build(options, FilePaths::default(), cfg!(target_os = "linux"), Arc::new(system::look_up));
        resolver.use_servers(servers);
        resolver
    }

    /// Makes a resolver that calls this function instead, on helper threads.
    pub fn with_lookup(
        options: DnsOptions,
        ask: impl Fn(&str) -> io::Result<Vec<IpAddr>> + Send + Sync + 'static,
    ) -> Self {
        Self::build(options, FilePaths::default(), false, Arc::new(ask))
    }

    fn build(options: DnsOptions, files: FilePaths, uses_dns: bool, ask: Arc<LookupFunction>) -> Self {
        let options = DnsOptions {
            ttl: options.ttl.max(Duration::from_secs(1)),
            negative_ttl: options.negative_ttl.max(Duration::from_secs(1)),
        };
        let (state, work, inbox) = (Mutex::default(), Condvar::new(), Mutex::default());
        Self { shared: Arc::new(ResolverInner { ask, uses_dns, files, options, state, work, inbox }) }
    }

    /// Makes a copy for a forked child, which has none of the resolver threads. The copy keeps the
    /// fixed answers, unless another thread held their lock at the moment of the fork.
    pub(crate) fn after_fork(&self) -> Self {
        let ResolverInner { ask, uses_dns, files, options, state, .. } = &*self.shared;
        let copy = Self::build(*options, files.clone(), *uses_dns, Arc::clone(ask));
        if let Ok(state) = state.try_lock() {
            let mut copied = copy.shared.lock();
            copied.overrides = state.overrides.clone();
            copied.servers = state.servers.clone();
        }
        copy
    }

    /// Asks these name servers from now on. With nothing set, the system's resolver or its servers
    /// are asked again. Cached answers stay.
    pub fn use_servers(&self, servers: DnsServers) {
        self.shared.lock().servers = servers.is_set().then(|| Arc::new(servers));
        // A thread that still asks others ends once it is idle.
        *self.shared.inbox.lock().ignore_poison() = None;
    }

    /// Adds a fixed answer in curl's `--resolve` syntax: `[+]HOST:PORT:ADDR[,ADDR]...`, or
    /// `-HOST:PORT` to take one back. HOST `*` stands for every host; a `+` lets the answer expire
    /// as a looked-up one would.
    ///
    /// # Errors
    /// [`ErrorKind::Setup`] if the text is not an override.
    pub fn add_override(&self, spec: &str) -> Result<()> {
        let expiry = clock::after(Instant::now(), self.shared.options.ttl);
        self.shared.lock().overrides.add(spec, expiry)
    }

    /// Returns the number of lookups that were begun, each name of a search list within its own.
    #[must_use]
    pub fn lookups(&self) -> u64 {
        self.shared.lock().lookups
    }

    /// Looks a name up without waiting. When the answer is [`LookupStatus::Pending`], `notify` is
    /// called once from another thread, after which a new lookup is [`LookupStatus::Ready`];
    /// otherwise it is dropped uncalled.
    pub fn lookup(
        &self,
        host: &str,
        port: u16,
        family: AddressFamily,
        notify: impl FnOnce() + Send + 'static,
    ) -> LookupStatus {
        self.lookup_at(Instant::now(), host, port, family, LookupOrigin::Worker, Box::new(notify))
    }

    fn lookup_at(
        &self,
        now: Instant,
        host: &str,
        port: u16,
        family: AddressFamily,
        origin: LookupOrigin,
        notify: Notify,
    ) -> LookupStatus {
        let name = normal(host);
        let mut state = self.shared.lock();
        if let Some(answer) = state.known(now, &name, port) {
            return LookupStatus::Ready(present(answer, host, family));
        }
        if let Some(CachedName::Asked(waiting)) = state.names.get_mut(&*name) {
            waiting.push(notify);
            return LookupStatus::Pending;
        }
        let name: Arc<str> = name.into();
        state.ask(now, Arc::clone(&name), vec![notify]);
        state.lookups += 1;
        let by_dns = state.servers.is_some() || (self.shared.uses_dns && origin == LookupOrigin::Worker);
        drop(state);
        if !by_dns || !self.shared.ask_name_servers(&name) {
            self.shared.ask_system(name);
        }
        LookupStatus::Pending
    }

    /// Looks a name up and waits for the answer, until the deadline if there is one. Without a
    /// deadline the calling thread does the work itself.
    ///
    /// # Errors
    /// [`ErrorKind::Resolve`] when there is no address of the family, [`ErrorKind::Timeout`] when
    /// the deadline passes first. In that case the lookup continues, and its result is cached.
    pub fn resolve(
        &self,
        host: &str,
        port: u16,
        family: AddressFamily,
        deadline: Option<Instant>,
    ) -> Result<Arc<[IpAddr]>> {
        loop {
            if deadline.is_none()
                && let Some(answer) = self.resolve_here(host, port)
            {
                return present(answer, host, family);
            }
            let (sender, receiver) = mpsc::channel();
            let notify = Box::new(move || {
                // The receiver is gone if the deadline has passed.
                let _ = sender.send(());
            });
            match self.lookup_at(Instant::now(), host, port, family, LookupOrigin::Caller, notify) {
                LookupStatus::Ready(answer) => return answer,
                LookupStatus::Pending => {}
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

    /// Returns the answer by a lookup on this thread; `None` if another thread already runs that
    /// lookup, or name servers are to be asked.
    fn resolve_here(&self, host: &str, port: u16) -> Option<Answer> {
        let now = Instant::now();
        let name = normal(host);
        let mut state = self.shared.lock();
        if let Some(answer) = state.known(now, &name, port) {
            return Some(answer);
        }
        if state.servers.is_some() || matches!(state.names.get(&*name), Some(CachedName::Asked(_))) {
            return None;
        }
        let name: Arc<str> = name.into();
        state.ask(now, Arc::clone(&name), Vec::new());
        state.lookups += 1;
        drop(state);
        Some(self.shared.answer(&name))
    }
}

impl fmt::Debug for Resolver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.shared.lock();
        f.debug_struct("Resolver")
            .field("names", &state.names.len())
            .field("threads", &state.threads)
            .field("lookups", &state.lookups)
            .finish_non_exhaustive()
    }
}

impl ResolverInner {
    fn lock(&self) -> MutexGuard<'_, ResolverState> {
        self.state.lock().ignore_poison()
    }

    /// Hands a name to the thread that asks name servers, and starts that if there is none. Returns
    /// false if the system has nothing left to start it with.
    fn ask_name_servers(self: &Arc<Self>, name: &Arc<str>) -> bool {
        let mut inbox = self.inbox.lock().ignore_poison();
        if inbox.as_ref().is_some_and(|inbox| inbox.push(Arc::clone(name))) {
            return true;
        }
        let Ok((poll, made)) = DnsInbox::new() else { return false };
        let (shared, for_thread) = (Arc::clone(self), Arc::clone(&made));
        let servers = self.lock().servers.as_deref().cloned().unwrap_or_default();
        let started = threads::start("haul-dns", move || {
            let files = NameFiles::read(shared.files.clone(), Instant::now());
            let deliver = |name: &str, answer| shared.deliver(name, answer);
            DnsClient::new(poll, &for_thread, servers, files, &deliver).run();
        });
        if started.is_err() {
            return false;
        }
        made.push(Arc::clone(name));
        *inbox = Some(made);
        true
    }

    /// Takes an answer of the thread that asks name servers.
    fn deliver(self: &Arc<Self>, name: &str, answer: DnsAnswer) {
        let kept = |ttl: Duration| ttl.clamp(KEPT.0, KEPT.1);
        match answer {
            DnsAnswer::Found(addresses, ttl) => self.settle(name, Ok(Arc::from(addresses)), kept(ttl)),
            DnsAnswer::NotFound { exists, ttl } => {
                let text = if exists { "the name has no address" } else { "the name does not exist (NXDOMAIN)" };
                self.settle(name, Err(LookupFailure::about_name(text)), kept(ttl).min(self.options.negative_ttl));
            }
            DnsAnswer::Unavailable(text) => self.settle(name, Err(LookupFailure::about_servers(&text)), LOCAL_FAILURE),
            DnsAnswer::NeedsSystem => self.ask_system(Arc::from(name)),
        }
    }

    /// Caches an answer for a while, and wakes all who wait for it.
    fn settle(&self, name: &str, answer: Answer, life: Duration) {
        let known = CachedName::Known { answer, until: clock::after(Instant::now(), life) };
        let before = self.lock().names.insert(Arc::from(name), known);
        if let Some(CachedName::Asked(waiting)) = before {
            for notify in waiting {
                notify();
            }
        }
    }
}

#[cfg(test)]
mod tests;
