//! The pool of idle connections. A connection is found by its key, which contains all settings with
//! which it was made.
//!
//! The [`ConnectionKey`] is the security boundary. Two requests share a connection only if scheme,
//! host, port, all TLS settings, the proxies with their credentials, and all connect options except
//! time limits are equal. A connection with unread or unsolicited bytes never enters the pool.
//! Before the pool returns a connection, it peeks at the socket to check that the connection is
//! open and has no input.
//!
//! Each worker thread keeps the connections for which it has requests. The pool keeps connections
//! between runs, and passes them from one thread to another.

use std::collections::hash_map::Entry;
use std::hash::{Hash, Hasher};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use haul_policy::alt_svc::AlpnProtocol;
use haul_policy::http3::{Http3Choice, QuicEndpoint};
use haul_policy::proxy::Proxy;
use haul_proto::h1::H1Deviations;
use rustc_hash::{FxHashMap, FxHasher};
use slab::Slab;

use super::dns::AddressFamily;
use super::happy_eyeballs::ConnectOptions;
use super::proxy::{ProxyHop, ProxyRoute};
use super::tls::{SessionKey, TlsOptions};
use crate::ignore_poison::IgnorePoison;
use crate::lru::RecencyList;
use crate::state::auth::NegotiateOptions;

/// The key of a pooled connection: every setting that two requests must share to use the same
/// connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectionKey {
    /// The host name for DNS and TLS. With a proxy that forwards requests, this is the proxy's
    /// host, since requests to any origin may use the connection.
    pub host: String,
    /// The port that belongs to `host`: the port of the origin or of the forwarding proxy.
    pub port: u16,
    /// The host and port to which the connection is made. They come from the URL, unless an option
    /// such as `--connect-to` replaces them.
    pub dial: (String, u16),
    /// The zone of the connection's IPv6 address (RFC 6874); `None` without a zone. The same
    /// address in another zone is another peer.
    pub zone: Option<String>,
    /// The protocol of the alternative service (RFC 7838) to which the connection is made, or
    /// `None` for a connection to the origin. With an alternative service, `dial` is its address,
    /// and `tls` offers only this protocol.
    pub alternative: Option<AlpnProtocol>,
    /// The TLS options of the connection; `None` for a connection to an `http` URL.
    pub tls: Option<TlsOptions>,
    /// The address families that the connection may use.
    pub family: AddressFamily,
    /// The options with which the connection is made, such as interface, local ports and Unix
    /// socket. The time limits have their default values, because they do not affect an open
    /// connection.
    pub connect: ConnectOptions,
    /// True if the connection uses HTTP/2 without negotiation (prior knowledge).
    pub prior_knowledge: bool,
    /// The choice whether the connection may or must use HTTP/3, and the HTTP/3 endpoint. A
    /// connection over TCP has [`Http3Choice::Off`], even if it was opened because HTTP/3 failed.
    pub http3: Http3Choice,
    /// The deviations from HTTP/1.1 that are accepted in responses on the connection.
    pub deviations: H1Deviations,
    /// The settings of Negotiate authentication, including the user: servers may bind the user to
    /// the connection (RFC 4559 section 6). `None` for requests that send no token.
    pub negotiate: Option<NegotiateOptions>,
    /// The route of the connection: directly or through proxies.
    pub via: ProxyRoute,
}

impl Hash for ConnectionKey {
    // Keys with the same host and ports seldom differ in other settings. Hashing all settings would
    // take most of the time of a search.
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.host.hash(state);
        (self.port, self.dial.1).hash(state);
    }
}

impl ConnectionKey {
    /// Returns the key under which the session-ticket cache stores the TLS tickets of the server.
    #[must_use]
    pub fn session_key(&self) -> SessionKey {
        SessionKey {
            host: self.host.clone(),
            port: self.port,
            dial: self.dial.clone(),
            zone: self.zone.clone(),
            family: self.family,
            via: self.via.clone(),
            connect: self.connect.clone(),
        }
    }

    /// Returns the key under which the session-ticket cache stores the TLS tickets of an https
    /// proxy on the route.
    pub(super) fn proxy_session_key(&self, proxy: &Proxy) -> SessionKey {
        let before = self.via.last_hop().and_then(|hop| {
            let preproxy = hop.preproxy.clone()?;
            Some(ProxyRoute::Tunnel(Arc::new(ProxyHop { proxy: preproxy, preproxy: None, ..ProxyHop::clone(hop) })))
        });
        SessionKey {
            host: proxy.host_text().to_owned(),
            port: proxy.port(),
            dial: (proxy.host_text().to_owned(), proxy.port()),
            zone: None,
            family: self.family,
            via: before.unwrap_or_default(),
            connect: self.connect.clone(),
        }
    }

    /// Returns the key under which the client records failures of HTTP/3: the origin if an
    /// alternative service is used, otherwise the host and port to which the connection is made.
    pub(crate) fn http3_origin(&self) -> QuicEndpoint {
        match self.alternative {
            None => QuicEndpoint::new(&self.dial.0, self.dial.1),
            Some(_) => QuicEndpoint::new(&self.host, self.port),
        }
    }

    /// Returns true if the connection may be opened over TCP before the address of `host` is known:
    /// only the concurrent attempt over HTTP/3 connects to `host`, and TCP connects to another host
    /// (`dial`).
    pub(crate) fn may_connect_without(&self, host: &str) -> bool {
        matches!(&self.http3, Http3Choice::Race(endpoint) if endpoint.host == host && self.dial.0 != host)
    }

    /// Returns the HTTP/3 choice in a form that is equal for two hosts with HTTP/3 at their own
    /// host and port: such an endpoint is replaced with an empty one. Any other is unchanged.
    fn http3_at_origin(&self) -> Http3Choice {
        let is_own = |endpoint: &QuicEndpoint| endpoint.host == self.host && endpoint.port == self.port;
        let nowhere = QuicEndpoint { host: String::new(), port: 0 };
        match &self.http3 {
            Http3Choice::Race(endpoint) if is_own(endpoint) => Http3Choice::Race(nowhere),
            Http3Choice::Only(endpoint) if is_own(endpoint) => Http3Choice::Only(nowhere),
            other => other.clone(),
        }
    }

    /// Returns true if a connection with this key may also carry requests with the key `other`, for
    /// another host. The connection's certificate must be valid for the other host, too, which the
    /// caller checks. Both keys must connect directly, require verified certificates, and differ
    /// only in the host.
    #[must_use]
    pub fn serves_requests_for(&self, other: &Self) -> bool {
        let is_direct = |key: &Self| {
            key.via == ProxyRoute::Direct
                && key.connect.unix_socket.is_none()
                && (key.dial.0.as_str(), key.dial.1) == (key.host.as_str(), key.port)
        };
        // Without SNI, the server may have sent a default certificate.
        self.tls.as_ref().is_some_and(|tls| tls.verify && tls.sni)
            && is_direct(self)
            && is_direct(other)
            && self.port == other.port
            && self.tls == other.tls
            && self.family == other.family
            && self.connect == other.connect
            && self.negotiate == other.negotiate
            && self.prior_knowledge == other.prior_knowledge
            && self.http3_at_origin() == other.http3_at_origin()
    }
}

/// The limits on a client's idle connections. They include the connections in its pool, and the
/// connections that its event loops keep for their next transfers.
///
/// ```
/// use haul::net::pool::PoolLimits;
/// let none = PoolLimits { connections: 0, ..PoolLimits::default() };
/// # drop(none);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PoolLimits {
    /// The time after which an idle connection is closed. Default 118 s, as in curl.
    pub idle: Duration,
    /// The maximum number of idle connections. Beyond it, the least recently used connection is
    /// closed. Default 4,096. With 0, each request makes a new connection.
    ///
    /// Idle connections also use at most half of the file descriptors that the process may open
    /// (`RLIMIT_NOFILE`), and fewer while many connections are busy.
    pub connections: usize,
    /// The maximum number of idle connections with the same key, and thus mostly to the same
    /// server. Default: the limit of the whole pool.
    pub per_key: usize,
}

impl PoolLimits {
    /// Returns true if no idle connection may be kept.
    pub(crate) fn keep_none(&self) -> bool {
        self.connections == 0 || self.per_key == 0 || self.idle.is_zero()
    }
}

impl Default for PoolLimits {
    fn default() -> Self {
        Self { idle: Duration::from_secs(118), connections: 4096, per_key: usize::MAX }
    }
}

/// An idle connection in the pool, with its key and the time since which it is idle.
#[derive(Debug)]
struct IdleConnection<C> {
    /// A hash of the key's host and port. Comparing it is faster than comparing keys, and excludes
    /// most other connections.
    host_port_hash: u64,
    key: Arc<ConnectionKey>,
    since: Instant,
    connection: C,
    /// The index of the previously added connection with the same `host_port_hash`; `None` if there
    /// is none.
    previous: Option<usize>,
}

/// The pool of a client's idle connections, from which requests take a connection to reuse.
#[derive(Debug)]
pub struct ConnectionPool<C> {
    idle: Mutex<PooledConnectionTable<C>>,
    /// The number of connections in `idle`.
    len: AtomicUsize,
    limits: PoolLimits,
}

/// The connections of a pool. A hash of host and port finds the candidates, whose keys are then
/// compared. Hashing the whole key would be slower, and most servers have only one key.
#[derive(Debug)]
struct PooledConnectionTable<C> {
    entries: Slab<IdleConnection<C>>,
    /// The index of the most recently added connection for each `host_port_hash`.
    newest: FxHashMap<u64, usize>,
    order: RecencyList,
}

impl<C> Default for PooledConnectionTable<C> {
    fn default() -> Self {
        Self { entries: Slab::new(), newest: FxHashMap::default(), order: RecencyList::default() }
    }
}

impl<C> PooledConnectionTable<C> {
    /// Returns the connections with this `host_port_hash`, with their indices, beginning with the
    /// most recently added connection.
    fn with_hash(&self, hash: u64) -> impl Iterator<Item = (usize, &IdleConnection<C>)> {
        let entry = |index: usize| Some((index, self.entries.get(index)?));
        let first = self.newest.get(&hash).and_then(|index| entry(*index));
        std::iter::successors(first, move |(_, idle)| idle.previous.and_then(entry))
    }

    fn insert(&mut self, mut idle: IdleConnection<C>) {
        let entry = self.entries.vacant_entry();
        let index = entry.key();
        idle.previous = self.newest.insert(idle.host_port_hash, index);
        entry.insert(idle);
        self.order.mark_newest(index);
    }

    fn remove(&mut self, index: usize) -> IdleConnection<C> {
        let idle = self.entries.remove(index);
        if let Entry::Occupied(mut newest) = self.newest.entry(idle.host_port_hash) {
            let mut next = *newest.get();
            if next != index {
                while let Some(at) = self.entries[next].previous.filter(|at| *at != index) {
                    next = at;
                }
                self.entries[next].previous = idle.previous;
            } else if let Some(previous) = idle.previous {
                newest.insert(previous);
            } else {
                newest.remove();
            }
        }
        self.order.remove(index);
        idle
    }
}

impl<C> Default for ConnectionPool<C> {
    fn default() -> Self {
        Self::new(PoolLimits::default())
    }
}

impl<C> ConnectionPool<C> {
    /// Makes an empty pool with these limits on the number and age of its connections.
    #[must_use]
    pub fn new(limits: PoolLimits) -> Self {
        Self { idle: Mutex::default(), len: AtomicUsize::new(0), limits }
    }

    /// Returns the number of connections in the pool. Does not take the lock.
    pub(crate) fn len(&self) -> usize {
        self.len.load(Ordering::Relaxed)
    }

    /// Removes all connections from the pool and returns them.
    pub fn drain(&self) -> Vec<C> {
        self.drain_locked(self.lock())
    }

    /// Removes all connections from the pool and returns them. Returns an empty list if another
    /// thread holds the lock. A forked child can thus call this function, although a lock that was
    /// held during the fork is never released in the child.
    pub fn try_drain(&self) -> Vec<C> {
        self.idle.try_lock().map(|idle| self.drain_locked(idle)).unwrap_or_default()
    }

    fn drain_locked(&self, mut idle: MutexGuard<'_, PooledConnectionTable<C>>) -> Vec<C> {
        self.len.store(0, Ordering::Relaxed);
        std::mem::take(&mut *idle).entries.into_iter().map(|(_, idle)| idle.connection).collect()
    }

    /// Adds an idle connection. Returns a connection that the caller must close, if any: an old one
    /// because of a limit or its idle time, or `connection` itself if the pool may keep none.
    pub fn add_idle(&self, key: Arc<ConnectionKey>, connection: C, now: Instant) -> Option<C> {
        if self.limits.keep_none() {
            return Some(connection);
        }
        let hash = host_port_hash(&key.host, key.port);
        let mut idle = self.lock();
        let surplus = (self.limits.per_key < self.limits.connections)
            .then(|| {
                let same = idle.with_hash(hash).filter(|(_, other)| *other.key == *key);
                same.skip(self.limits.per_key.saturating_sub(1)).last().map(|(index, _)| index)
            })
            .flatten();
        let must_go = |oldest: &usize| {
            now.saturating_duration_since(idle.entries[*oldest].since) >= self.limits.idle
                || idle.entries.len() >= self.limits.connections
        };
        let surplus = surplus.or(idle.order.oldest().filter(must_go)).map(|index| idle.remove(index).connection);
        idle.insert(IdleConnection { host_port_hash: hash, key, since: now, connection, previous: None });
        self.len.store(idle.entries.len(), Ordering::Relaxed);
        surplus
    }

    /// Removes and returns the connection that has been in the pool for the longest time. Returns
    /// `None` if the pool is empty.
    pub(crate) fn take_oldest(&self) -> Option<C> {
        if self.len() == 0 {
            return None;
        }
        let mut idle = self.lock();
        let oldest = idle.order.oldest().map(|index| idle.remove(index).connection);
        self.len.store(idle.entries.len(), Ordering::Relaxed);
        oldest
    }

    fn lock(&self) -> MutexGuard<'_, PooledConnectionTable<C>> {
        self.idle.lock().ignore_poison()
    }
}

/// A connection in a pool, which can check whether it may be reused.
pub trait PoolableConnection {
    /// Returns true if the idle connection is open and has received no unsolicited bytes. Does not
    /// wait.
    fn is_reusable(&mut self, now: Instant) -> bool;
}

impl<C: PoolableConnection> ConnectionPool<C> {
    /// Removes and returns the most recently added connection with this key that is reusable, if
    /// there is one. Closes unusable connections with this key that were added later.
    pub fn take_by_key(&self, key: &ConnectionKey, now: Instant) -> Option<C> {
        self.take_where((&key.host, key.port), now, |other| other == key)
    }

    /// Returns true if the pool has a reusable connection to this host and port whose key satisfies
    /// `fits`. The connection stays in the pool.
    pub(crate) fn has_where(
        &self,
        (host, port): (&str, u16),
        now: Instant,
        fits: impl Fn(&ConnectionKey) -> bool,
    ) -> bool {
        let mut pool = self.lock();
        let is_candidate = |(_, idle): &(usize, &IdleConnection<C>)| {
            now.saturating_duration_since(idle.since) < self.limits.idle && fits(&idle.key)
        };
        let candidates: Vec<usize> =
            pool.with_hash(host_port_hash(host, port)).filter(is_candidate).map(|(index, _)| index).collect();
        candidates.into_iter().any(|index| pool.entries[index].connection.is_reusable(now))
    }

    /// Removes and returns a reusable connection to this host and port whose key satisfies `fits`,
    /// if there is one. Closes unusable connections that it finds during the search.
    pub(crate) fn take_where(
        &self,
        (host, port): (&str, u16),
        now: Instant,
        fits: impl Fn(&ConnectionKey) -> bool,
    ) -> Option<C> {
        if self.len() == 0 {
            return None;
        }
        let hash = host_port_hash(host, port);
        let mut idle = self.lock();
        loop {
            let index = idle.with_hash(hash).find(|(_, other)| fits(&other.key))?.0;
            let IdleConnection { since, mut connection, .. } = idle.remove(index);
            self.len.store(idle.entries.len(), Ordering::Relaxed);
            let fresh = now.saturating_duration_since(since) < self.limits.idle;
            if fresh && connection.is_reusable(now) {
                return Some(connection);
            }
        }
    }
}

/// Returns a hash of a host and a port. Connections with equal hashes are distinguished by
/// comparing their keys.
fn host_port_hash(host: &str, port: u16) -> u64 {
    let mut hasher = FxHasher::default();
    hasher.write(host.as_bytes());
    hasher.write_u16(port);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::net::UnixStream;

    use haul_policy::target::Target;

    use super::*;
    use crate::net::socket::{IdleSocketState, peek_idle};
    use crate::request::RequestOptions;

    impl PoolableConnection for UnixStream {
        fn is_reusable(&mut self, _: Instant) -> bool {
            peek_idle(self) == IdleSocketState::Silent
        }
    }

    fn key(url: &str, options: &RequestOptions) -> Arc<ConnectionKey> {
        Arc::new(ConnectionKey::new(&Target::parse(url).unwrap(), options))
    }

    #[test]
    fn connections_are_reused_only_for_equal_keys() {
        let options = RequestOptions::default();
        let unverified = RequestOptions { tls: TlsOptions { verify: false, ..options.tls.clone() }, ..options.clone() };
        let keys = [
            key("http://a/", &options),
            key("http://b/", &options),
            key("http://a:81/", &options),
            key("https://a/", &options),
            key("https://a/", &unverified),
            key("https://a:80/", &options),
        ];
        let pool = ConnectionPool::default();
        for (i, a) in keys.iter().enumerate() {
            let (ours, _theirs) = UnixStream::pair().unwrap();
            assert!(pool.add_idle(Arc::clone(a), ours, Instant::now()).is_none());
            for (j, b) in keys.iter().enumerate() {
                assert_eq!(a == b, i == j);
                assert_eq!(pool.take_by_key(b, Instant::now()).is_some(), i == j);
            }
        }
    }

    #[test]
    fn connect_timeout_is_not_part_of_connection_key() {
        let options = RequestOptions::default();
        let mut hasty = options.clone();
        (hasty.connect.timeout, hasty.connect.attempt_delay) = (Duration::from_secs(1), Duration::from_millis(10));
        let target = Target::parse("http://a/").unwrap();
        let pool = ConnectionPool::default();
        let put = || {
            let (ours, theirs) = UnixStream::pair().unwrap();
            assert!(pool.add_idle(key("http://a/", &options), ours, Instant::now()).is_none());
            theirs
        };
        let _peers = (put(), put());
        assert!(pool.take_by_key(&key("http://a/", &hasty), Instant::now()).is_some());
        assert!(pool.take_for_request(&target, &hasty, Instant::now()).is_some());
    }

    #[test]
    fn connection_serves_another_host_only_if_settings_match() {
        let options = RequestOptions::default();
        let change = |change: &dyn Fn(&mut RequestOptions)| {
            let mut changed = options.clone();
            change(&mut changed);
            changed
        };
        let with = |url: &str, options: &RequestOptions| key(url, options);
        let host = with("https://a/", &options);
        assert!(host.serves_requests_for(&with("https://b/", &options)) && host.serves_requests_for(&host));
        let others = [
            change(&|options| options.tls.alpn = vec![b"h2".to_vec()]),
            change(&|options| options.tls.ca_file = Some("ca".into())),
            change(&|options| options.tls.verify = false),
            change(&|options| options.tls.sni = false),
            change(&|options| options.tls.max_version = crate::net::tls::TlsVersion::V1_2),
            change(&|options| options.family = AddressFamily::V4),
            change(&|options| options.prior_knowledge = true),
            change(&|options| options.connect.haproxy_protocol = true),
            change(&|options| options.proxy = Some(proxied())),
            change(&|options| options.http3 = haul_policy::http3::Http3Policy::Only),
        ];
        for other in &others {
            assert!(!host.serves_requests_for(&with("https://b/", other)), "{other:?}");
            assert!(!with("https://b/", other).serves_requests_for(&host), "{other:?}");
        }
        // The settings are the same, but the peer is not verified, or it is not reached directly.
        for other in [&others[2], &others[3], &others[8]] {
            assert!(!with("https://a/", other).serves_requests_for(&with("https://b/", other)), "{other:?}");
        }
        assert!(!host.serves_requests_for(&with("https://b:444/", &options)), "another port is another server");
        assert!(!host.serves_requests_for(&with("http://b:443/", &options)));
        assert!(!with("http://a/", &options).serves_requests_for(&with("http://b/", &options)));
    }

    fn proxied() -> crate::net::proxy::ProxyOptions {
        let proxy = Some(Proxy::parse("http://127.0.0.1:3128").unwrap());
        crate::net::proxy::ProxyOptions { proxy, ..Default::default() }
    }

    #[test]
    fn pool_keeps_connections_to_thousands_of_hosts() {
        const HOSTS: usize = 3000;
        let pool = ConnectionPool::new(PoolLimits { connections: HOSTS, ..PoolLimits::default() });
        let options = RequestOptions::default();
        let keys: Vec<_> = (0..HOSTS + 10).map(|host| key(&format!("http://h{host}/"), &options)).collect();
        let now = Instant::now();
        // No test opens thousands of descriptors: a pool keeps anything.
        let surplus: Vec<_> =
            keys.iter().enumerate().filter_map(|(host, key)| pool.add_idle(Arc::clone(key), host, now)).collect();
        assert_eq!(surplus, (0..10).collect::<Vec<_>>(), "the oldest go first");
        assert_eq!((pool.len(), pool.take_oldest(), pool.len()), (HOSTS, Some(10), HOSTS - 1));
        let mut rest = pool.drain();
        rest.sort_unstable();
        assert_eq!(rest, (11..HOSTS + 10).collect::<Vec<_>>());
        assert_eq!(pool.len(), 0);
    }

    #[test]
    fn pool_removes_connections_of_one_server_by_key() {
        let pool = ConnectionPool::default();
        let now = Instant::now();
        let mut peers = Vec::new();
        let change = |version| RequestOptions { prior_knowledge: version, ..RequestOptions::default() };
        let keys = [key("http://a/", &change(false)), key("http://a/", &change(true))];
        for (i, is_second) in [0, 1, 0, 1, 1].into_iter().enumerate() {
            let (ours, theirs) = UnixStream::pair().unwrap();
            peers.push(theirs);
            assert!(pool.add_idle(Arc::clone(&keys[is_second]), ours, now).is_none(), "{i}");
        }
        let count = |which: usize| (0..9).take_while(|_| pool.take_by_key(&keys[which], now).is_some()).count();
        assert_eq!((count(0), pool.len(), count(1), pool.len()), (2, 3, 3, 0));
    }

    #[test]
    fn readable_closed_or_expired_connection_is_not_reused() {
        let pool = ConnectionPool::default();
        let key = key("http://a/", &RequestOptions::default());
        let now = Instant::now();
        let (spoke, mut peer) = UnixStream::pair().unwrap();
        peer.write_all(b"x").unwrap();
        assert!(pool.add_idle(Arc::clone(&key), spoke, now).is_none());
        let (closed, _) = UnixStream::pair().unwrap();
        pool.add_idle(Arc::clone(&key), closed, now);
        assert!(pool.take_by_key(&key, now).is_none());

        let (silent, _peer) = UnixStream::pair().unwrap();
        pool.add_idle(Arc::clone(&key), silent, now);
        assert!(pool.take_by_key(&key, now + PoolLimits::default().idle).is_none());
        let (silent, _peer) = UnixStream::pair().unwrap();
        pool.add_idle(Arc::clone(&key), silent, now);
        let has = |url: &str| pool.has_for_request(&Target::parse(url).unwrap(), &RequestOptions::default(), now);
        assert!(has("http://a/any") && !has("http://b/") && !has("https://a/"));
        assert!(pool.take_by_key(&key, now).is_some());
        assert!(pool.take_by_key(&key, now).is_none());
    }

    #[test]
    fn full_pool_evicts_a_connection() {
        let limits = PoolLimits { connections: 3, per_key: 2, ..PoolLimits::default() };
        let pool = ConnectionPool::new(limits);
        let (a, b) = (key("http://a/", &RequestOptions::default()), key("http://b/", &RequestOptions::default()));
        let now = Instant::now();
        let mut peers = Vec::new();
        let mut put = |key: &Arc<ConnectionKey>| {
            let (ours, theirs) = UnixStream::pair().unwrap();
            peers.push(theirs);
            pool.add_idle(Arc::clone(key), ours, now).is_some()
        };
        assert_eq!([put(&a), put(&a), put(&a), put(&b), put(&b)], [false, false, true, false, true]);
        assert!(pool.take_by_key(&a, now).is_some() && pool.take_by_key(&a, now).is_none());
        assert_eq!(pool.drain().len(), 2);
        let none = ConnectionPool::new(PoolLimits { connections: 0, ..limits });
        assert!(none.add_idle(a, UnixStream::pair().unwrap().0, now).is_some());
    }
}
