//! Looks up the addresses of names: cached, merged, and never on an event loop's thread.
//!
//! The system's own resolver (`getaddrinfo`) does the work, since only it knows the machine's
//! files, search lists and address order (RFC 6724). It blocks, so it runs on helper threads:
//! started on demand, at most eight, gone after five idle seconds. Concurrent lookups of one name
//! are one lookup; answers are kept for a while, failures shortly.
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
//! The resolver does not ask the system for overrides (`--resolve`), IP literals, and `localhost`,
//! `invalid` and the names below them (RFC 6761 §6.3 and §6.4). A failure with an [`io::Error`] as
//! its source is a failure of the resolver, which may pass soon. Any other failure is an answer
//! about the name. Rejected: an asynchronous resolver of our own. It would have to repeat nsswitch,
//! mDNS and search lists to give the answers that other programs give.

mod overrides;

use std::{
    collections::{HashMap, VecDeque},
    fmt, io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, ToSocketAddrs},
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Condvar, Mutex, MutexGuard, mpsc},
    time::{Duration, Instant},
};

use self::overrides::DnsOverrides;
use crate::sync::IgnorePoison;
use crate::{Error, ErrorKind, Result, clock, threads};

/// The largest number of threads that ask the system at the same time.
const MAX_THREADS: usize = 8;
/// The time that an idle resolver thread waits for another name before it ends.
const THREAD_IDLE: Duration = Duration::from_secs(5);
/// The number of cached names at which the finished ones are dropped. About 200 bytes each.
const MAX_NAMES: usize = 4096;
/// The time for which a failure is cached that concerns this process (no descriptors, no memory) or
/// the network rather than the name. Retries wait longer than this.
const LOCAL_FAILURE: Duration = Duration::from_millis(250);

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
    /// The lookup is running. `notify` will be called once, from another thread; then a new lookup
    /// is [`LookupStatus::Ready`].
    Pending,
}

/// The lifetimes of cached answers.
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

type Notify = Box<dyn FnOnce() + Send>;
type Ask = dyn Fn(&str) -> io::Result<Vec<IpAddr>> + Send + Sync;

struct ResolverInner {
    ask: Arc<Ask>,
    options: DnsOptions,
    state: Mutex<ResolverState>,
    work: Condvar,
}

#[derive(Default)]
struct ResolverState {
    names: HashMap<Arc<str>, CachedName>,
    overrides: DnsOverrides,
    queue: VecDeque<Arc<str>>,
    threads: usize,
    idle: usize,
    lookups: u64,
}

enum CachedName {
    /// The lookup is running; these callbacks are called at its end.
    Asked(Vec<Notify>),
    Known {
        answer: Answer,
        until: Instant,
    },
}

type Answer = std::result::Result<Arc<[IpAddr]>, LookupFailure>;

/// A failure that can be returned many times.
#[derive(Clone)]
struct LookupFailure {
    os: Option<i32>,
    /// The name servers could not be asked (`EAI_AGAIN`), which says nothing about the name.
    temporary: bool,
    text: Arc<str>,
}

impl Default for Resolver {
    fn default() -> Self {
        Self::new(DnsOptions::default())
    }
}

impl Resolver {
    /// Makes a resolver that asks the system.
    #[must_use]
    pub fn new(options: DnsOptions) -> Self {
        Self::with_lookup(options, system_lookup)
    }

    /// Makes a resolver that calls this function instead of the system, on the same helper threads.
    pub fn with_lookup(
        options: DnsOptions,
        ask: impl Fn(&str) -> io::Result<Vec<IpAddr>> + Send + Sync + 'static,
    ) -> Self {
        let options = DnsOptions {
            ttl: options.ttl.max(Duration::from_secs(1)),
            negative_ttl: options.negative_ttl.max(Duration::from_secs(1)),
        };
        let shared = ResolverInner { ask: Arc::new(ask), options, state: Mutex::default(), work: Condvar::new() };
        Self { shared: Arc::new(shared) }
    }

    /// Makes a copy for a forked child, which has none of the resolver threads. The copy keeps the
    /// fixed answers, unless another thread held their lock at the moment of the fork.
    pub(crate) fn after_fork(&self) -> Self {
        let overrides = self.shared.state.try_lock().map(|state| state.overrides.clone()).unwrap_or_default();
        let shared = ResolverInner {
            ask: Arc::clone(&self.shared.ask),
            options: self.shared.options,
            state: Mutex::new(ResolverState { overrides, ..ResolverState::default() }),
            work: Condvar::new(),
        };
        Self { shared: Arc::new(shared) }
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

    /// Returns the number of lookups that the system's resolver was asked for.
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
        self.lookup_at(Instant::now(), host, port, family, notify)
    }

    fn lookup_at(
        &self,
        now: Instant,
        host: &str,
        port: u16,
        family: AddressFamily,
        notify: impl FnOnce() + Send + 'static,
    ) -> LookupStatus {
        let name = normal(host);
        let mut state = self.shared.lock();
        if let Some(answer) = state.known(now, &name, port) {
            return LookupStatus::Ready(present(answer, host, family));
        }
        if let Some(CachedName::Asked(waiting)) = state.names.get_mut(&*name) {
            waiting.push(Box::new(notify));
            return LookupStatus::Pending;
        }
        let name: Arc<str> = name.into();
        state.ask(now, Arc::clone(&name), vec![Box::new(notify)]);
        state.queue.push_back(name);
        if state.queue.len() <= state.idle {
            drop(state);
            self.shared.work.notify_one();
        } else if state.threads < MAX_THREADS {
            state.threads += 1;
            drop(state);
            self.start_thread();
        }
        LookupStatus::Pending
    }

    /// Looks a name up and waits for the answer, until the deadline if there is one. Without a
    /// deadline the calling thread does the work itself.
    ///
    /// # Errors
    /// [`ErrorKind::Resolve`] when there is no address of the family, [`ErrorKind::Timeout`] when
    /// the deadline passes first. In that case the system's lookup continues, and its result is
    /// cached.
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
            match self.lookup(host, port, family, move || {
                // The receiver is gone if the deadline has passed.
                let _ = sender.send(());
            }) {
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
    /// lookup.
    fn resolve_here(&self, host: &str, port: u16) -> Option<Answer> {
        let now = Instant::now();
        let name = normal(host);
        let mut state = self.shared.lock();
        if let Some(answer) = state.known(now, &name, port) {
            return Some(answer);
        }
        if matches!(state.names.get(&*name), Some(CachedName::Asked(_))) {
            return None;
        }
        let name: Arc<str> = name.into();
        state.ask(now, Arc::clone(&name), Vec::new());
        state.lookups += 1;
        drop(state);
        Some(self.shared.answer(&name))
    }

    fn start_thread(&self) {
        let shared = Arc::clone(&self.shared);
        let started = threads::start("haul-dns", move || shared.work());
        if let Err(error) = started {
            let mut state = self.shared.lock();
            state.threads -= 1;
            // As long as another thread runs, it will get to the name; the last hope gone, the
            // names fail.
            let orphans = if state.threads == 0 { std::mem::take(&mut state.queue) } else { VecDeque::new() };
            drop(state);
            for name in orphans {
                self.shared.settle(&name, Err(LookupFailure::from(&error)));
            }
        }
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

    /// Runs a helper thread: looks up names until none has come for a while.
    fn work(&self) {
        let mut state = self.lock();
        loop {
            if let Some(name) = state.queue.pop_front() {
                state.lookups += 1;
                drop(state);
                let _ = self.answer(&name);
                state = self.lock();
                continue;
            }
            state.idle += 1;
            let (guard, wait) = self.work.wait_timeout(state, THREAD_IDLE).ignore_poison();
            state = guard;
            state.idle -= 1;
            if wait.timed_out() && state.queue.is_empty() {
                state.threads -= 1;
                return;
            }
        }
    }

    /// Looks up a name, caches the answer, and wakes all who wait for it.
    fn answer(&self, name: &str) -> Answer {
        let answer = match self.look_up(name) {
            Ok(addresses) if addresses.is_empty() => Err(LookupFailure::about_name("the name has no address")),
            Ok(mut addresses) => {
                let mut seen = std::collections::HashSet::new();
                addresses.retain(|address| seen.insert(*address));
                Ok(Arc::from(addresses))
            }
            Err(error) => Err(LookupFailure::from(&error)),
        };
        self.settle(name, answer.clone());
        answer
    }

    /// The answer of the system or of the program's own function. A panic counts as a failure, so
    /// that no thread waits for ever.
    fn look_up(&self, name: &str) -> io::Result<Vec<IpAddr>> {
        let asked = catch_unwind(AssertUnwindSafe(|| (self.ask)(name)));
        asked.unwrap_or_else(|_| Err(io::Error::other("the look-up panicked")))
    }

    fn settle(&self, name: &str, answer: Answer) {
        let life = match &answer {
            Ok(_) => self.options.ttl,
            Err(failure) if failure.os.is_some() || failure.temporary => LOCAL_FAILURE,
            Err(_) => self.options.negative_ttl,
        };
        let known = CachedName::Known { answer, until: clock::after(Instant::now(), life) };
        let before = self.lock().names.insert(Arc::from(name), known);
        if let Some(CachedName::Asked(waiting)) = before {
            for notify in waiting {
                notify();
            }
        }
    }
}

impl ResolverState {
    /// Returns the answer if no lookup is needed: for overrides, literals, localhost, and cached
    /// answers that are fresh.
    fn known(&self, now: Instant, name: &str, port: u16) -> Option<Answer> {
        if let Some(addresses) = self.overrides.get(now, name, port) {
            return Some(Ok(addresses));
        }
        if let Ok(address) = name.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>() {
            return Some(Ok(Arc::from([address])));
        }
        if is_below(name, "localhost") {
            return Some(Ok(Arc::from([IpAddr::V6(Ipv6Addr::LOCALHOST), IpAddr::V4(Ipv4Addr::LOCALHOST)])));
        }
        if is_below(name, "invalid") {
            return Some(Err(LookupFailure::about_name("the name is reserved for what does not exist")));
        }
        if is_onion(name) {
            return Some(Err(LookupFailure::about_name(".onion names are not looked up (RFC 7686)")));
        }
        match self.names.get(name) {
            Some(CachedName::Known { answer, until }) if *until > now => Some(answer.clone()),
            _ => None,
        }
    }

    /// Marks a name as being asked for, and keeps the number of names bounded.
    fn ask(&mut self, now: Instant, name: Arc<str>, waiting: Vec<Notify>) {
        if self.names.len() >= MAX_NAMES {
            let before = self.names.len();
            self.names.retain(|_, entry| !matches!(entry, CachedName::Known { until, .. } if *until <= now));
            if self.names.len() == before {
                self.names.retain(|_, entry| matches!(entry, CachedName::Asked(_)));
            }
        }
        self.names.insert(name, CachedName::Asked(waiting));
    }
}

impl From<&io::Error> for LookupFailure {
    fn from(error: &io::Error) -> Self {
        let text = error.to_string();
        let text = text.strip_prefix("failed to lookup address information: ").unwrap_or(&text);
        // The resolver's own number is lost in the standard library; these are the words of glibc,
        // BSD and musl for it.
        let lower = text.to_ascii_lowercase();
        let temporary = lower.starts_with("temporary failure") || lower == "try again";
        Self { os: error.raw_os_error(), temporary, text: Arc::from(text) }
    }
}

impl LookupFailure {
    fn about_name(text: &str) -> Self {
        Self { os: None, temporary: false, text: Arc::from(text) }
    }
}

/// Returns the answer for one caller: only the addresses of the family, or an error with the name
/// as the caller wrote it.
fn present(answer: Answer, host: &str, family: AddressFamily) -> Result<Arc<[IpAddr]>> {
    let message = || format!("could not resolve host: {host}");
    match answer {
        Ok(addresses) if addresses.iter().all(|address| family.admits(address)) => Ok(addresses),
        Ok(addresses) => {
            let admitted: Arc<[IpAddr]> = addresses.iter().filter(|address| family.admits(address)).copied().collect();
            if admitted.is_empty() {
                let cause =
                    if family == AddressFamily::V4 { "it has no IPv4 address" } else { "it has no IPv6 address" };
                return Err(Error::with_source(ErrorKind::Resolve, message(), cause));
            }
            Ok(admitted)
        }
        Err(LookupFailure { os: Some(os), .. }) => {
            Err(Error::with_source(ErrorKind::Resolve, message(), io::Error::from_raw_os_error(os)))
        }
        // An error of the system, as above: a retry can distinguish it from an answer.
        Err(LookupFailure { temporary: true, text, .. }) => {
            Err(Error::with_source(ErrorKind::Resolve, message(), io::Error::other(text.to_string())))
        }
        Err(LookupFailure { text, .. }) => Err(Error::with_source(ErrorKind::Resolve, message(), text.to_string())),
    }
}

/// The key of a name: names have no case (RFC 4343).
fn normal(host: &str) -> String {
    host.to_ascii_lowercase()
}

/// Returns true for a name below .onion (RFC 7686). Such a name is never looked up: no resolver
/// knows it, and the query would disclose it to the name servers.
#[must_use]
pub fn is_onion(name: &str) -> bool {
    is_below(name, "onion")
}

/// Returns true if a name is this domain or below it.
fn is_below(name: &str, domain: &str) -> bool {
    let name = name.strip_suffix('.').unwrap_or(name);
    name.strip_suffix(domain).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
}

fn system_lookup(host: &str) -> io::Result<Vec<IpAddr>> {
    Ok((host, 0).to_socket_addrs()?.map(|address| address.ip()).collect())
}

#[cfg(test)]
mod tests;
