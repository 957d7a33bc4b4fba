//! The connection that a request needs: its key in the connection pool, its route through proxies,
//! and its look-up in the pool. These methods are not in `net`, because `net` does not depend on
//! requests.

use std::time::Instant;

use haul_policy::target::{Host, Scheme, Target};

use haul_policy::http3::{Http3Choice, Http3Policy, QuicEndpoint};

use super::RequestOptions;
use crate::ErrorKind;
use crate::net::pool::{ConnectionKey, ConnectionPool, PoolableConnection};
use crate::net::proxy::{ProxyOptions, ProxyRoute};
use crate::state::alt_svc::{AlpnProtocol, AlternativeService};

impl ProxyRoute {
    /// Returns the route of a request to this target with these options: direct, or through
    /// proxies.
    #[must_use]
    pub fn for_request(target: &Target, options: &RequestOptions) -> Self {
        let is_used = |given: &&ProxyOptions| {
            let is_given = given.proxy.is_some() || given.preproxy.is_some();
            (is_given || given.environment.has_proxy_for(target.scheme())) && options.connect.unix_socket.is_none()
        };
        let Some(given) = options.proxy.as_ref().filter(is_used) else { return Self::Direct };
        let own = (target.host_text(), target.port());
        Self::select(given, target, options.connect_host_and_port(own.0, own.1) != own, options.user_agent.as_deref())
    }
}

impl ConnectionKey {
    /// Makes the pool key of the connection that a request to this target with these options needs.
    #[must_use]
    pub fn new(target: &Target, options: &RequestOptions) -> Self {
        let mut via = ProxyRoute::for_request(target, options);
        if options.http3 == Http3Policy::Only
            && let Some((kind, reason)) = why_no_http3(target, options, &via)
        {
            via = ProxyRoute::Unusable(kind, reason.to_owned());
        }
        if let ProxyRoute::Forward(hop) = &via {
            let (host, port) = (hop.proxy.host_text().to_owned(), hop.proxy.port());
            return Self {
                dial: (host.clone(), port),
                zone: None,
                alternative: None,
                host,
                port,
                // The protocol with the proxy is a part of `via`.
                tls: None,
                family: options.family,
                connect: options.connect.without_timeouts(),
                prior_knowledge: false,
                http3: Http3Choice::Off,
                deviations: options.deviations,
                negotiate: options.auth.negotiate_on_connection().cloned(),
                via,
            };
        }
        let alternative = alternative_service(target, options, &via);
        let dial = match &alternative {
            Some(other) => (other.host.as_str(), other.port),
            None => options.connect_host_and_port(target.host_text(), target.port()),
        };
        let mut tls = (target.scheme() == Scheme::Https).then(|| options.tls.clone());
        if let (Some(other), Some(tls)) = (&alternative, &mut tls) {
            let name = if other.protocol == AlpnProtocol::H2 { &b"h2"[..] } else { b"http/1.1" };
            tls.alpn.retain(|offered| offered == name);
        }
        let mut http3 = http3_choice(target, options, &via);
        if alternative.is_none() && prefers_http1(target, options, &via) {
            http3 = Http3Choice::Off;
            if let Some(tls) = &mut tls {
                tls.alpn.retain(|offered| offered == b"http/1.1");
            }
        }
        Self {
            host: target.host_text().to_owned(),
            port: target.port(),
            zone: ipv6_zone(target, dial.0).map(str::to_owned),
            dial: (dial.0.to_owned(), dial.1),
            alternative: alternative.map(|other| other.protocol),
            tls,
            family: options.family,
            connect: options.connect.without_timeouts(),
            prior_knowledge: options.prior_knowledge,
            http3,
            deviations: options.deviations,
            negotiate: options.auth.negotiate_on_connection().cloned(),
            via,
        }
    }

    /// Returns true if a request to this target with these options may use a connection with this
    /// pool key. Usually needs no memory allocation.
    #[must_use]
    pub fn matches_request(&self, target: &Target, options: &RequestOptions) -> bool {
        // The reason why HTTP/3 is impossible is a part of the key.
        let is_impossible = || options.http3 == Http3Policy::Only && why_no_http3(target, options, &self.via).is_some();
        if options.alt_svc.is_some() || self.alternative.is_some() || is_impossible() {
            return *self == Self::new(target, options);
        }
        if self.family != options.family
            || !self.connect.make_equal_connections(&options.connect)
            || self.deviations != options.deviations
            || self.negotiate.as_ref() != options.auth.negotiate_on_connection()
        {
            return false;
        }
        if options.proxy.is_some() || self.via != ProxyRoute::Direct {
            let via = ProxyRoute::for_request(target, options);
            if self.via != via || matches!(via, ProxyRoute::Unusable(..)) {
                return false;
            }
            if via.forwarding_hop().is_some() {
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
            && options.connect_host_and_port(&self.host, self.port) == (self.dial.0.as_str(), self.dial.1)
            && self.zone.as_deref() == ipv6_zone(target, &self.dial.0)
            && self.prior_knowledge == options.prior_knowledge
            && self.http3 == http3_choice(target, options, &self.via)
    }
}

impl<C: PoolableConnection> ConnectionPool<C> {
    /// Removes and returns a connection for a request to this target with these options. Returns
    /// `None` if the pool has no such connection. Usually needs no memory allocation.
    pub fn take_for_request(&self, target: &Target, options: &RequestOptions, now: Instant) -> Option<C> {
        if options.proxy.is_some() {
            return self.take_by_key(&ConnectionKey::new(target, options), now);
        }
        self.take_where((target.host_text(), target.port()), now, |key| key.matches_request(target, options))
    }

    /// Returns true if the pool has a connection for a request to this target with these options.
    /// The connection stays in the pool.
    pub fn has_for_request(&self, target: &Target, options: &RequestOptions, now: Instant) -> bool {
        if options.proxy.is_some() {
            let wanted = ConnectionKey::new(target, options);
            return self.has_where((&wanted.host, wanted.port), now, |key| *key == wanted);
        }
        self.has_where((target.host_text(), target.port()), now, |key| key.matches_request(target, options))
    }
}

/// Returns the reason why a request cannot use HTTP/3, and the error kind to report if HTTP/3 is
/// required. Returns `None` if the request can use HTTP/3.
fn why_no_http3(target: &Target, options: &RequestOptions, via: &ProxyRoute) -> Option<(ErrorKind, &'static str)> {
    if options.connect.unix_socket.is_some() {
        Some((ErrorKind::QuicConnect, "HTTP/3 cannot go through a Unix socket"))
    } else if target.scheme() != Scheme::Https {
        Some((ErrorKind::Url, "HTTP/3 needs an https URL"))
    } else if *via != ProxyRoute::Direct {
        Some((ErrorKind::Url, "HTTP/3 cannot go through a proxy: no proxy forwards UDP"))
    } else {
        None
    }
}

/// Decides whether the connection for a request to this target may or must use HTTP/3. Only direct
/// connections for `https` can use HTTP/3.
fn http3_choice(target: &Target, options: &RequestOptions, via: &ProxyRoute) -> Http3Choice {
    let is_out = match options.http3 {
        Http3Policy::Off => true,
        Http3Policy::Learned => !options.http3_cache.has_offers() && options.alt_svc.is_none(),
        Http3Policy::Race | Http3Policy::Only => false,
    };
    if is_out || options.prior_knowledge || !cfg!(feature = "http3") && options.http3 != Http3Policy::Only {
        return Http3Choice::Off;
    }
    if why_no_http3(target, options, via).is_some() {
        return Http3Choice::Off;
    }
    let own = (target.host_text(), target.port());
    let dial = options.connect_host_and_port(own.0, own.1);
    // Without verification, another endpoint cannot prove that it serves the origin.
    let is_fixed = dial != own || !options.tls.verify;
    let endpoint = QuicEndpoint::new(dial.0, dial.1);
    options.http3_cache.choose(options.http3, target, &endpoint, is_fixed, options.alt_svc.as_ref())
}

/// Returns the alternative service (RFC 7838) to use for a request to this target. Returns `None`
/// if no alternative service is known or usable, or if its host and port are those of the target.
fn alternative_service(target: &Target, options: &RequestOptions, via: &ProxyRoute) -> Option<AlternativeService> {
    // At the origin's own host and port, ALPN chooses the protocol.
    preferred_alternative(target, options, via).filter(|other| !is_own(other, target))
}

/// Returns true if only HTTP/1.1 may be offered to the origin: the alternative service to use for
/// the target (RFC 7838) is HTTP/1.1 at the origin's own host and port.
fn prefers_http1(target: &Target, options: &RequestOptions, via: &ProxyRoute) -> bool {
    options.http3 != Http3Policy::Only
        && preferred_alternative(target, options, via)
            .is_some_and(|other| other.protocol == AlpnProtocol::H1 && is_own(&other, target))
}

fn is_own(other: &AlternativeService, target: &Target) -> bool {
    (other.host.as_str(), other.port) == (target.host_text(), target.port())
}

/// Returns the preferred alternative service for a request to this target. Returns `None` if none
/// is known, or if the options do not allow alternative services.
fn preferred_alternative(target: &Target, options: &RequestOptions, via: &ProxyRoute) -> Option<AlternativeService> {
    let known = options.alt_svc.as_ref().filter(|_| target.scheme() == Scheme::Https && options.tls.verify)?;
    let is_told =
        options.connect_host_and_port(target.host_text(), target.port()) != (target.host_text(), target.port());
    if is_told || *via != ProxyRoute::Direct || options.connect.unix_socket.is_some() || options.prior_knowledge {
        return None;
    }
    known.find(target, &options.tls.alpn)
}

/// Returns the IPv6 zone in the target's host, such as `eth0`. Returns `None` if the host has no
/// zone, or if the connection is made to another host (`dial`).
fn ipv6_zone<'t>(target: &'t Target, dial: &str) -> Option<&'t str> {
    match target.host() {
        Host::V6(_, Some(zone)) if dial == target.host_text() => Some(zone),
        _ => None,
    }
}
