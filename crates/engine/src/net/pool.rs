//! Idle connections, by everything that makes a connection another connection.
//!
//! The [`Key`] is the security boundary: two requests share a connection only if scheme, host, port, every TLS setting,
//! the proxies with their credentials, and every setting of how to connect are equal. A connection with unread or unsolicited bytes never comes back here,
//! and before one is handed out a peek makes sure that it is silent and open.
//!
//! While a worker has work for a connection it keeps it; the pool is where connections lie between runs and where one
//! worker leaves them for another.

use std::collections::HashMap;
use std::os::fd::AsFd;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use haul_policy::proxy::Proxy;
use haul_policy::target::{Host, Scheme, Target};

use super::connect::ConnectOptions;
use super::dns::Family;
use super::proxy::{Hop, Via};
use super::socket::{Idle as Peeked, peek_idle};
use super::tls::{Place, TlsOptions};
use crate::request::RequestOptions;

/// What a connection may be used for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Key {
    /// The host, as DNS and TLS see it. Of a proxy that forwards requests it is that proxy's: any origin's may use it.
    pub host: String,
    /// The port.
    pub port: u16,
    /// Where the connection goes: the same host and port, unless told otherwise.
    pub dial: (String, u16),
    /// The zone of the IPv6 address that it goes to (RFC 6874): the same address on another link is another peer.
    pub zone: Option<String>,
    /// How TLS is done; none for `http`.
    pub tls: Option<TlsOptions>,
    /// Which kinds of address it may have gone to.
    pub family: Family,
    /// How the connection is made: interface, local ports and a Unix socket are among it.
    pub connect: ConnectOptions,
    /// HTTP/2 is spoken without being agreed on.
    pub prior_knowledge: bool,
    /// Through whom it goes.
    pub via: Via,
}

impl Key {
    /// The key for a request to this target.
    #[must_use]
    pub fn new(target: &Target, options: &RequestOptions) -> Self {
        let via = Via::of(target, options);
        if let Via::Forward(hop) = &via {
            let (host, port) = (hop.proxy.host_text().to_owned(), hop.proxy.port());
            return Self {
                dial: (host.clone(), port),
                zone: None,
                host,
                port,
                // What is spoken with the proxy is part of `via`.
                tls: None,
                family: options.family,
                connect: options.connect.clone(),
                prior_knowledge: false,
                via,
            };
        }
        let dial = options.dial(target.host_text(), target.port());
        Self {
            host: target.host_text().to_owned(),
            port: target.port(),
            dial: (dial.0.to_owned(), dial.1),
            zone: zone(target, dial.0).map(str::to_owned),
            tls: (target.scheme() == Scheme::Https).then(|| options.tls.clone()),
            family: options.family,
            connect: options.connect.clone(),
            prior_knowledge: options.prior_knowledge,
            via,
        }
    }

    /// The server, as session tickets see it.
    #[must_use]
    pub fn place(&self) -> Place {
        Place {
            host: self.host.clone(),
            port: self.port,
            dial: self.dial.clone(),
            zone: self.zone.clone(),
            family: self.family,
            via: self.via.clone(),
            connect: self.connect.clone(),
        }
    }

    /// An https proxy on the way, as session tickets see it.
    pub(super) fn proxy_place(&self, proxy: &Proxy) -> Place {
        let before = self.via.hop().and_then(|hop| {
            let preproxy = hop.preproxy.clone()?;
            Some(Via::Tunnel(Arc::new(Hop { proxy: preproxy, preproxy: None, ..Hop::clone(hop) })))
        });
        Place {
            host: proxy.host_text().to_owned(),
            port: proxy.port(),
            dial: (proxy.host_text().to_owned(), proxy.port()),
            zone: None,
            family: self.family,
            via: before.unwrap_or_default(),
            connect: self.connect.clone(),
        }
    }

    /// Whether a request to this target may use a connection of this key; without making another key.
    #[must_use]
    pub fn fits(&self, target: &Target, options: &RequestOptions) -> bool {
        if self.family != options.family || self.connect != options.connect {
            return false;
        }
        if options.proxy.is_some() || self.via != Via::Direct {
            let via = Via::of(target, options);
            if self.via != via || matches!(via, Via::Unusable(..)) {
                return false;
            }
            if via.forwards().is_some() {
                return true;
            }
        }
        self.port == target.port()
            && self.host == target.host_text()
            && match (&self.tls, target.scheme()) {
                (Some(tls), Scheme::Https) => *tls == options.tls,
                (None, Scheme::Http) => true,
                _ => false,
            }
            && options.dial(&self.host, self.port) == (self.dial.0.as_str(), self.dial.1)
            && self.zone.as_deref() == zone(target, &self.dial.0)
            && self.prior_knowledge == options.prior_knowledge
    }
}

/// The zone of a target's address, if it is there that the connection goes.
fn zone<'t>(target: &'t Target, dial: &str) -> Option<&'t str> {
    match target.host() {
        Host::V6(_, Some(zone)) if dial == target.host_text() => Some(zone),
        _ => None,
    }
}

/// How long a connection may lie idle, as curl does by default.
const MAX_IDLE: Duration = Duration::from_secs(118);
/// How many connections lie here at most; the one that has been here longest makes room.
const MAX_CONNECTIONS: usize = 256;

/// The idle connections of one key, each with the time since when it is.
type Idle<C> = Vec<(Instant, C)>;

/// Idle connections of one client.
#[derive(Debug)]
pub struct Pool<C> {
    idle: Mutex<HashMap<Arc<Key>, Idle<C>>>,
}

impl<C> Default for Pool<C> {
    fn default() -> Self {
        Self { idle: Mutex::new(HashMap::new()) }
    }
}

impl<C: AsFd> Pool<C> {
    /// A connection for this key that is silent and open, the one used last first. Others that are found dead are
    /// closed.
    pub fn take(&self, key: &Key, now: Instant) -> Option<C> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let connections = idle.get_mut(key)?;
        let mut found = None;
        while let Some((since, connection)) = connections.pop() {
            let fresh = now.saturating_duration_since(since) < MAX_IDLE;
            if fresh && peek_idle(connection.as_fd()) == Peeked::Silent {
                found = Some(connection);
                break;
            }
        }
        if connections.is_empty() {
            idle.remove(key);
        }
        found
    }

    /// Leaves an idle connection here.
    pub fn put(&self, key: Arc<Key>, connection: C, now: Instant) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.values().map(Vec::len).sum::<usize>() >= MAX_CONNECTIONS {
            let oldest = idle.iter().min_by_key(|(_, list)| list.first().map(|(since, _)| *since));
            if let Some(oldest) = oldest.map(|(key, _)| Arc::clone(key))
                && let Some(list) = idle.get_mut(&oldest)
            {
                list.remove(0);
                if list.is_empty() {
                    idle.remove(&oldest);
                }
            }
        }
        idle.entry(key).or_default().push((now, connection));
    }

    /// Takes all connections out.
    pub fn drain(&self) -> Vec<C> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.drain().flat_map(|(_, list)| list).map(|(_, connection)| connection).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::net::UnixStream;

    use super::*;

    fn key(url: &str, options: &RequestOptions) -> Arc<Key> {
        Arc::new(Key::new(&Target::parse(url).unwrap(), options))
    }

    #[test]
    fn every_part_of_the_key_keeps_connections_apart() {
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
        let pool = Pool::default();
        for (i, a) in keys.iter().enumerate() {
            let (ours, _theirs) = UnixStream::pair().unwrap();
            pool.put(Arc::clone(a), ours, Instant::now());
            for (j, b) in keys.iter().enumerate() {
                assert_eq!(a == b, i == j);
                assert_eq!(pool.take(b, Instant::now()).is_some(), i == j);
            }
        }
    }

    #[test]
    fn a_connection_that_spoke_or_closed_or_aged_is_not_handed_out() {
        let pool = Pool::default();
        let key = key("http://a/", &RequestOptions::default());
        let now = Instant::now();
        let (spoke, mut peer) = UnixStream::pair().unwrap();
        peer.write_all(b"x").unwrap();
        pool.put(Arc::clone(&key), spoke, now);
        let (closed, _) = UnixStream::pair().unwrap();
        pool.put(Arc::clone(&key), closed, now);
        assert!(pool.take(&key, now).is_none());

        let (silent, _peer) = UnixStream::pair().unwrap();
        pool.put(Arc::clone(&key), silent, now);
        assert!(pool.take(&key, now + MAX_IDLE).is_none());
        let (silent, _peer) = UnixStream::pair().unwrap();
        pool.put(Arc::clone(&key), silent, now);
        assert!(pool.take(&key, now).is_some());
        assert!(pool.take(&key, now).is_none());
    }
}
