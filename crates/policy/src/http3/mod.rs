//! The choice between HTTP/3 and TCP for a new connection, and the record of HTTP/3 failures.
//!
//! ```
//! use haul_policy::MonotonicTime;
//! use haul_policy::http3::{Http3Choice, Http3Failure, Http3FailureHistory, Http3Policy, QuicEndpoint};
//!
//! let mut memory = Http3FailureHistory::default();
//! let site = QuicEndpoint::new("example.com", 443);
//! let now = MonotonicTime(0);
//! assert_eq!(memory.choose(Http3Policy::Learned, &site, [], now), Http3Choice::Off);
//! assert_eq!(memory.choose(Http3Policy::Race, &site, [], now), Http3Choice::Race(site.clone()));
//! memory.on_failed(&site, &site, Http3Failure::Silent, now);
//! assert_eq!(memory.choose(Http3Policy::Race, &site, [], now), Http3Choice::Off);
//! ```
//!
//! | policy | candidate endpoints, of which the first that is not broken is tried |
//! |---|---|
//! | [`Off`](Http3Policy::Off) | none |
//! | [`Learned`](Http3Policy::Learned) | the endpoints of Alt-Svc fields and HTTPS records |
//! | [`Race`](Http3Policy::Race) | as `Learned`, then the origin itself |
//! | [`Only`](Http3Policy::Only) | as `Race`; the origin even if it is broken |
//!
//! An endpoint that fails counts as broken for [`FIRST_BROKEN_TIME`], and twice as long after each
//! further failure (RFC 7838 §2.4). An attempt with QUIC has a head start: it starts some time
//! before TCP. An endpoint that has not answered gets no head start any more, so that a network
//! that drops UDP costs that time once. After [`UDP_BLOCKED_AFTER_ENDPOINTS`] endpoints in a row
//! have not answered, the network is assumed to drop UDP: no endpoint has a head start, and none is
//! tried for [`FIRST_BROKEN_TIME`].
//!
//! The record has no clock: the caller passes in the time.

#[cfg(test)]
mod tests;

use core::time::Duration;
use std::collections::HashMap;

use crate::time::MonotonicTime;

/// The time for which an HTTP/3 endpoint is not tried after its first failure.
pub const FIRST_BROKEN_TIME: Duration = Duration::from_secs(300);
/// The longest time for which an HTTP/3 endpoint is not tried after failures.
pub const MAX_BROKEN_TIME: Duration = Duration::from_secs(2 * 24 * 3600);
/// The number of endpoints in a row that do not answer, after which the network is assumed to drop
/// UDP.
pub const UDP_BLOCKED_AFTER_ENDPOINTS: u32 = 4;
/// The largest number of endpoints whose failures are remembered. At the limit, the endpoint that
/// may be tried again soonest is forgotten.
pub const MAX_FAILURES: usize = 4096;

/// The use of HTTP/3 that the user allows or requires.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Http3Policy {
    /// HTTP/3 is not used.
    #[default]
    Off,
    /// HTTP/3 is used where an Alt-Svc field or an HTTPS record offers it. TCP is used where HTTP/3
    /// fails.
    Learned,
    /// HTTP/3 is tried first, and TCP is used where it fails (`--http3`).
    Race,
    /// Only HTTP/3 is used (`--http3-only`).
    Only,
}

/// The host and port of a QUIC server, or of an origin.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct QuicEndpoint {
    /// The host name or address, without brackets.
    pub host: String,
    /// The UDP port of a QUIC server; the port of an origin.
    pub port: u16,
}

impl QuicEndpoint {
    /// Creates an endpoint from a host without brackets and a port.
    #[must_use]
    pub fn new(host: &str, port: u16) -> Self {
        Self { host: host.to_owned(), port }
    }
}

/// The decision whether a new connection uses QUIC or TCP.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum Http3Choice {
    /// TCP only: HTTP/3 is not tried.
    #[default]
    Off,
    /// QUIC to this endpoint and TCP to the origin: the connection that opens first is used.
    Race(QuicEndpoint),
    /// QUIC only, to this endpoint.
    Only(QuicEndpoint),
}

impl Http3Choice {
    /// Returns the QUIC endpoint to try; `None` if only TCP is used.
    #[must_use]
    pub fn endpoint(&self) -> Option<&QuicEndpoint> {
        match self {
            Self::Off => None,
            Self::Race(endpoint) | Self::Only(endpoint) => Some(endpoint),
        }
    }
}

/// The manner in which an attempt to use HTTP/3 failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Http3Failure {
    /// The endpoint sent no packet, and TCP was connected first.
    Silent,
    /// The endpoint answered, but HTTP/3 could not be used. The connection failed or broke the
    /// protocol, or TCP connected first although it started later.
    Broken,
}

#[derive(Clone, Copy, Debug)]
struct Http3FailureRecord {
    /// The number of failures since the endpoint last worked.
    count: u32,
    /// The earliest time at which the endpoint may be tried again.
    until: MonotonicTime,
    /// True if the endpoint has sent no packet in some attempt ([`Http3Failure::Silent`]) since it
    /// last worked.
    was_silent: bool,
}

/// The record of HTTP/3 failures. Each failure belongs to an origin and a QUIC endpoint.
#[derive(Clone, Debug, Default)]
pub struct Http3FailureHistory {
    failures: HashMap<(QuicEndpoint, QuicEndpoint), Http3FailureRecord>,
    /// The number of endpoints in a row that sent no packet.
    silent: u32,
    /// The time until which no endpoint is tried, because the network seems to drop UDP; otherwise
    /// `None`.
    blocked_until: Option<MonotonicTime>,
}

impl Http3FailureHistory {
    /// Decides how to connect to `origin`. `offered` contains the HTTP/3 endpoints from the
    /// origin's Alt-Svc field and HTTPS records, the preferred one first.
    #[must_use]
    pub fn choose(
        &self,
        policy: Http3Policy,
        origin: &QuicEndpoint,
        offered: impl IntoIterator<Item = QuicEndpoint>,
        now: MonotonicTime,
    ) -> Http3Choice {
        let is_usable = |endpoint: &QuicEndpoint| !self.is_broken(origin, endpoint, now);
        match policy {
            Http3Policy::Off => Http3Choice::Off,
            Http3Policy::Only => {
                Http3Choice::Only(offered.into_iter().find(is_usable).unwrap_or_else(|| origin.clone()))
            }
            Http3Policy::Learned | Http3Policy::Race => {
                let own = (policy == Http3Policy::Race).then(|| origin.clone());
                let is_blocked = self.blocked_until.is_some_and(|until| now < until);
                let mut offered = offered.into_iter().chain(own).filter(|_| !is_blocked);
                offered.find(is_usable).map_or(Http3Choice::Off, Http3Choice::Race)
            }
        }
    }

    /// Returns true if QUIC to this endpoint may start some time before TCP. If false, both start
    /// at the same time.
    #[must_use]
    pub fn has_head_start(&self, origin: &QuicEndpoint, endpoint: &QuicEndpoint) -> bool {
        let was_silent = self.record(origin, endpoint).is_some_and(|record| record.was_silent);
        !was_silent && self.blocked_until.is_none()
    }

    /// Returns true if the endpoint has failed and is not to be tried yet.
    #[must_use]
    pub fn is_broken(&self, origin: &QuicEndpoint, endpoint: &QuicEndpoint, now: MonotonicTime) -> bool {
        self.record(origin, endpoint).is_some_and(|record| now < record.until)
    }

    /// Returns true if no HTTP/3 failure is recorded.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.failures.is_empty()
    }

    /// Records that a QUIC connection to the endpoint was opened. Forgets its failures.
    pub fn on_connected(&mut self, origin: &QuicEndpoint, endpoint: &QuicEndpoint) {
        (self.silent, self.blocked_until) = (0, None);
        if !self.failures.is_empty() {
            self.failures.remove(&(origin.clone(), endpoint.clone()));
        }
    }

    /// Records that a QUIC connection to the endpoint could not be opened, lost the race against
    /// TCP, or broke. The endpoint then counts as broken for some time. A second report within that
    /// time changes nothing.
    pub fn on_failed(
        &mut self,
        origin: &QuicEndpoint,
        endpoint: &QuicEndpoint,
        failure: Http3Failure,
        now: MonotonicTime,
    ) {
        let before = self.record(origin, endpoint).copied();
        if before.is_some_and(|record| now < record.until) {
            return;
        }
        if before.is_none() && self.failures.len() >= MAX_FAILURES {
            let first = self.failures.iter().min_by_key(|(_, record)| record.until).map(|(key, _)| key.clone());
            first.and_then(|key| self.failures.remove(&key));
        }
        let is_silent = failure == Http3Failure::Silent;
        let was_silent = before.is_some_and(|record| record.was_silent);
        let count = before.map_or(0, |record| record.count).saturating_add(1);
        let life = FIRST_BROKEN_TIME.saturating_mul(1 << (count - 1).min(16)).min(MAX_BROKEN_TIME);
        let record = Http3FailureRecord { count, until: now + life, was_silent: is_silent || was_silent };
        self.failures.insert((origin.clone(), endpoint.clone()), record);
        match failure {
            Http3Failure::Broken => (self.silent, self.blocked_until) = (0, None),
            Http3Failure::Silent if was_silent => {}
            Http3Failure::Silent => {
                self.silent = self.silent.saturating_add(1);
                if self.silent >= UDP_BLOCKED_AFTER_ENDPOINTS {
                    self.blocked_until = Some(now + FIRST_BROKEN_TIME);
                }
            }
        }
    }

    fn record(&self, origin: &QuicEndpoint, endpoint: &QuicEndpoint) -> Option<&Http3FailureRecord> {
        if self.failures.is_empty() {
            return None;
        }
        self.failures.get(&(origin.clone(), endpoint.clone()))
    }
}
