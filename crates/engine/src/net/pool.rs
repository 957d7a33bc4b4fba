//! The pool of idle connections. A connection is found by its key, which contains all settings that
//! it was made with.
//!
//! The [`ConnectionKey`] is the security boundary. Two requests share a connection only if scheme,
//! host, port, all TLS settings, the proxies with their credentials, and all connect options except
//! time limits are equal. A connection with unread or unsolicited bytes never enters the pool.
//! Before the pool returns a connection, it checks by a peek that the connection is open and has no
//! input.
//!
//! A thread keeps the connections that it drives while it has requests for them. The pool keeps
//! connections between runs, and passes them from one thread to another.

use std::os::fd::AsFd;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use haul_policy::alt_svc::AlpnProtocol;
use haul_policy::proxy::Proxy;
use haul_proto::h1::H1Deviations;

use super::connect::ConnectOptions;
use super::dns::AddressFamily;
use super::proxy::{ProxyHop, ProxyRoute};
use super::socket::{IdleSocketState, peek_idle};
use super::tls::{SessionKey, TlsOptions};
use crate::ignore_poison::IgnorePoison;

/// The key of a pooled connection: every setting that two requests must share to use the same
/// connection.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ConnectionKey {
    /// The host, as in DNS and TLS. With a proxy that forwards requests, it is the proxy's host,
    /// since requests to any origin may use the connection.
    pub host: String,
    /// The port of that host.
    pub port: u16,
    /// The host and port to which the connection is made: those of the URL, unless an option
    /// replaces them.
    pub dial: (String, u16),
    /// The zone of the connection's IPv6 address (RFC 6874). The same address in another zone is
    /// another peer.
    pub zone: Option<String>,
    /// The protocol of the alternative service to which the connection is made (RFC 7838). If there
    /// is one, `dial` is its address, and `tls` offers only this protocol. `None` for a connection
    /// to the origin.
    pub alternative: Option<AlpnProtocol>,
    /// The TLS options; `None` for `http`.
    pub tls: Option<TlsOptions>,
    /// The address families that the connection may use.
    pub family: AddressFamily,
    /// The options with which the connection is made, such as interface, local ports and Unix
    /// socket. Time limits have their default values here, since each request has its own.
    pub connect: ConnectOptions,
    /// True if HTTP/2 is used without negotiation (prior knowledge).
    pub prior_knowledge: bool,
    /// The deviations from HTTP/1.1 that responses on the connection may have.
    pub deviations: H1Deviations,
    /// The route of the connection through proxies.
    pub via: ProxyRoute,
}

impl ConnectionKey {
    /// Returns the key of the server in the session-ticket cache.
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

    /// Returns the key of an https proxy on the route in the session-ticket cache.
    pub(super) fn proxy_session_key(&self, proxy: &Proxy) -> SessionKey {
        let before = self.via.hop().and_then(|hop| {
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

    /// Returns true if a connection with this key may carry requests for `other`, the key of
    /// another host, once its certificate proves to be valid for that host, too. Both keys must
    /// connect to their hosts directly and differ only in the host, and certificates must be
    /// verified.
    #[must_use]
    pub fn may_carry(&self, other: &Self) -> bool {
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
            && self.prior_knowledge == other.prior_knowledge
    }
}

/// The limits of a pool. They also apply to the idle connections of each event loop, which keeps at
/// most 64.
///
/// ```
/// use haul::net::pool::PoolLimits;
/// let none = PoolLimits { connections: 0, ..PoolLimits::default() };
/// # drop(none);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PoolLimits {
    /// The maximum time that a connection may be idle. Default 118 s, as in curl.
    pub idle: Duration,
    /// The maximum number of idle connections. If there are more, the one that was used longest ago
    /// is closed. Default 256. With 0, each request makes a new connection.
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
        Self { idle: Duration::from_secs(118), connections: 256, per_key: usize::MAX }
    }
}

/// An idle connection in the pool.
#[derive(Debug)]
struct IdleConnection<C> {
    /// A hash of host and port, which excludes most other connections without comparing keys.
    mark: u64,
    key: Arc<ConnectionKey>,
    since: Instant,
    connection: C,
}

/// The idle connections of one client, the one used last at the end. They are in a list, because
/// for a few hundred connections, comparing one number for each is faster than hashing a key.
#[derive(Debug)]
pub struct ConnectionPool<C> {
    idle: Mutex<Vec<IdleConnection<C>>>,
    limits: PoolLimits,
}

impl<C> Default for ConnectionPool<C> {
    fn default() -> Self {
        Self::new(PoolLimits::default())
    }
}

impl<C> ConnectionPool<C> {
    /// Makes an empty pool with these limits.
    #[must_use]
    pub fn new(limits: PoolLimits) -> Self {
        Self { idle: Mutex::default(), limits }
    }

    /// Removes all connections from the pool and returns them.
    pub fn drain(&self) -> Vec<C> {
        self.lock().drain(..).map(|idle| idle.connection).collect()
    }

    /// Removes and returns all connections, unless another thread holds the lock. In a forked
    /// child, a lock that was held during the fork is never released.
    pub fn try_drain(&self) -> Vec<C> {
        let Ok(mut idle) = self.idle.try_lock() else { return Vec::new() };
        idle.drain(..).map(|idle| idle.connection).collect()
    }

    /// Adds an idle connection. If the pool is then too full, returns the connection that the
    /// caller must close.
    pub fn put(&self, key: Arc<ConnectionKey>, connection: C, now: Instant) -> Option<C> {
        if self.limits.keep_none() {
            return Some(connection);
        }
        let mark = mark(&key.host, key.port);
        let mut idle = self.lock();
        let is_same = |other: &IdleConnection<C>| other.mark == mark && *other.key == *key;
        // The first is the oldest.
        let surplus = if self.limits.per_key < self.limits.connections
            && idle.iter().filter(|other| is_same(other)).count() >= self.limits.per_key
        {
            idle.iter().position(is_same)
        } else {
            (idle.len() >= self.limits.connections).then_some(0)
        };
        let surplus = surplus.map(|index| idle.remove(index).connection);
        idle.push(IdleConnection { mark, key, since: now, connection });
        surplus
    }

    fn lock(&self) -> MutexGuard<'_, Vec<IdleConnection<C>>> {
        self.idle.lock().ignore_poison()
    }
}

impl<C: AsFd> ConnectionPool<C> {
    /// Removes and returns the connection with this key that was used last, provided that it is
    /// open and has no input. Closes connections that turn out to be unusable, and tries the next
    /// one.
    pub fn take(&self, key: &ConnectionKey, now: Instant) -> Option<C> {
        self.take_where((&key.host, key.port), now, |other| other == key)
    }

    /// Returns true if the pool has a connection whose key satisfies `fits`. The connection stays
    /// in the pool.
    pub(crate) fn has_where(&self, now: Instant, fits: impl Fn(&ConnectionKey) -> bool) -> bool {
        self.lock().iter().any(|idle| {
            now.saturating_duration_since(idle.since) < self.limits.idle
                && fits(&idle.key)
                && peek_idle(idle.connection.as_fd()) == IdleSocketState::Silent
        })
    }

    /// Removes and returns a connection to this host and port whose key satisfies `fits`, if there
    /// is one.
    pub(crate) fn take_where(
        &self,
        (host, port): (&str, u16),
        now: Instant,
        fits: impl Fn(&ConnectionKey) -> bool,
    ) -> Option<C> {
        let mark = mark(host, port);
        let mut idle = self.lock();
        loop {
            let index = idle.iter().rposition(|other| other.mark == mark && fits(&other.key))?;
            let IdleConnection { since, connection, .. } = idle.remove(index);
            let fresh = now.saturating_duration_since(since) < self.limits.idle;
            if fresh && peek_idle(connection.as_fd()) == IdleSocketState::Silent {
                return Some(connection);
            }
        }
    }
}

/// Returns a hash of a host and a port (FNV-1a). Connections with equal hashes are distinguished by
/// comparing their keys.
fn mark(host: &str, port: u16) -> u64 {
    let bytes = host.bytes().chain(port.to_ne_bytes());
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::net::UnixStream;

    use haul_policy::target::Target;

    use super::*;
    use crate::request::RequestOptions;

    fn key(url: &str, options: &RequestOptions) -> Arc<ConnectionKey> {
        Arc::new(ConnectionKey::new(&Target::parse(url).unwrap(), options))
    }

    #[test]
    fn every_part_of_the_key_separates_connections() {
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
            assert!(pool.put(Arc::clone(a), ours, Instant::now()).is_none());
            for (j, b) in keys.iter().enumerate() {
                assert_eq!(a == b, i == j);
                assert_eq!(pool.take(b, Instant::now()).is_some(), i == j);
            }
        }
    }

    #[test]
    fn connect_timeout_is_not_part_of_the_key() {
        let options = RequestOptions::default();
        let mut hasty = options.clone();
        (hasty.connect.timeout, hasty.connect.attempt_delay) = (Duration::from_secs(1), Duration::from_millis(10));
        let target = Target::parse("http://a/").unwrap();
        let pool = ConnectionPool::default();
        let put = || {
            let (ours, theirs) = UnixStream::pair().unwrap();
            assert!(pool.put(key("http://a/", &options), ours, Instant::now()).is_none());
            theirs
        };
        let _peers = (put(), put());
        assert!(pool.take(&key("http://a/", &hasty), Instant::now()).is_some());
        assert!(pool.take_for(&target, &hasty, Instant::now()).is_some());
    }

    #[test]
    fn connection_carries_another_host_if_all_else_matches() {
        let options = RequestOptions::default();
        let change = |change: &dyn Fn(&mut RequestOptions)| {
            let mut changed = options.clone();
            change(&mut changed);
            changed
        };
        let with = |url: &str, options: &RequestOptions| key(url, options);
        let host = with("https://a/", &options);
        assert!(host.may_carry(&with("https://b/", &options)) && host.may_carry(&host));
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
        ];
        for other in &others {
            assert!(!host.may_carry(&with("https://b/", other)), "{other:?}");
            assert!(!with("https://b/", other).may_carry(&host), "{other:?}");
        }
        // The settings are the same, but the peer is not verified, or it is not reached directly.
        for other in [&others[2], &others[3], &others[8]] {
            assert!(!with("https://a/", other).may_carry(&with("https://b/", other)), "{other:?}");
        }
        assert!(!host.may_carry(&with("https://b:444/", &options)), "another port is another server");
        assert!(!host.may_carry(&with("http://b:443/", &options)));
        assert!(!with("http://a/", &options).may_carry(&with("http://b/", &options)));
    }

    fn proxied() -> crate::net::proxy::ProxyOptions {
        let proxy = Some(Proxy::parse("http://127.0.0.1:3128").unwrap());
        crate::net::proxy::ProxyOptions { proxy, ..Default::default() }
    }

    #[test]
    fn dirty_closed_or_old_connection_is_not_reused() {
        let pool = ConnectionPool::default();
        let key = key("http://a/", &RequestOptions::default());
        let now = Instant::now();
        let (spoke, mut peer) = UnixStream::pair().unwrap();
        peer.write_all(b"x").unwrap();
        assert!(pool.put(Arc::clone(&key), spoke, now).is_none());
        let (closed, _) = UnixStream::pair().unwrap();
        pool.put(Arc::clone(&key), closed, now);
        assert!(pool.take(&key, now).is_none());

        let (silent, _peer) = UnixStream::pair().unwrap();
        pool.put(Arc::clone(&key), silent, now);
        assert!(pool.take(&key, now + PoolLimits::default().idle).is_none());
        let (silent, _peer) = UnixStream::pair().unwrap();
        pool.put(Arc::clone(&key), silent, now);
        let has = |url: &str| pool.has_for(&Target::parse(url).unwrap(), &RequestOptions::default(), now);
        assert!(has("http://a/any") && !has("http://b/") && !has("https://a/"));
        assert!(pool.take(&key, now).is_some());
        assert!(pool.take(&key, now).is_none());
    }

    #[test]
    fn full_pool_returns_its_oldest_connection() {
        let limits = PoolLimits { connections: 3, per_key: 2, ..PoolLimits::default() };
        let pool = ConnectionPool::new(limits);
        let (a, b) = (key("http://a/", &RequestOptions::default()), key("http://b/", &RequestOptions::default()));
        let now = Instant::now();
        let mut peers = Vec::new();
        let mut put = |key: &Arc<ConnectionKey>| {
            let (ours, theirs) = UnixStream::pair().unwrap();
            peers.push(theirs);
            pool.put(Arc::clone(key), ours, now).is_some()
        };
        assert_eq!([put(&a), put(&a), put(&a), put(&b), put(&b)], [false, false, true, false, true]);
        assert!(pool.take(&a, now).is_some() && pool.take(&a, now).is_none());
        assert_eq!(pool.drain().len(), 2);
        let none = ConnectionPool::new(PoolLimits { connections: 0, ..limits });
        assert!(none.put(a, UnixStream::pair().unwrap().0, now).is_some());
    }
}
