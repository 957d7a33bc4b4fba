//! The endpoints that support HTTP/3 according to Alt-Svc fields and HTTPS records, and the
//! endpoints where HTTP/3 has failed.
//!
//! All requests of a program should share one cache ([`RequestOptions::http3_cache`]), so that a
//! network that drops UDP causes a delay only once. The rules are in [`haul_policy::http3`].
//!
//! ```
//! use haul::RequestOptions;
//! use haul::request::Http3Policy;
//!
//! // HTTP/3 where a server has offered it, and TCP elsewhere.
//! let options = RequestOptions { http3: Http3Policy::Learned, ..RequestOptions::default() };
//! assert!(options.http3_cache.is_empty());
//! ```
//!
//! [`RequestOptions::http3_cache`]: crate::RequestOptions::http3_cache

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use haul_policy::alt_svc::{AlpnProtocol, AltSvcStore};
use haul_policy::dns::https_record::HttpsRecord;
use haul_policy::http3::{Http3Choice, Http3Failure, Http3FailureHistory, Http3Policy, QuicEndpoint};
use haul_policy::target::{Scheme, Target};

use super::alt_svc::AltSvcCache;
use crate::fork::{ForkSafeLock, ForkSafeWriteGuard};
use crate::time_conversions;

/// The maximum number of origins whose HTTPS records are kept. If there are more, all records are
/// dropped; they can be looked up again.
const MAX_ORIGINS: usize = 4096;

/// A cache of the known HTTP/3 endpoints and of failures to connect to them. Clones share its
/// contents.
#[derive(Clone, Default)]
pub struct Http3Cache {
    shared: Arc<SharedHttp3State>,
}

/// The state that all clones of an [`Http3Cache`] share.
#[derive(Default)]
struct SharedHttp3State {
    /// True once an Alt-Svc field or HTTPS record has offered HTTP/3.
    has_offers: AtomicBool,
    state: ForkSafeLock<Http3CacheState>,
}

/// The known HTTP/3 endpoints, and the history of failures. The cache's lock protects them.
#[derive(Default)]
struct Http3CacheState {
    memory: Http3FailureHistory,
    /// The HTTP/3 alternatives from Alt-Svc fields, for requests whose options contain no Alt-Svc
    /// cache.
    alternatives: AltSvcStore,
    /// The endpoints from HTTPS records, with their expiry. The key is the origin.
    records: HashMap<QuicEndpoint, (Vec<QuicEndpoint>, Instant)>,
}

impl Http3Cache {
    /// Makes an empty cache.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns true if the cache knows nothing: no endpoint was ever offered, and no failure is
    /// stored.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        !self.has_offers() && self.lock().memory.is_empty()
    }

    /// Returns true if an Alt-Svc field or HTTPS record has ever offered an HTTP/3 endpoint.
    pub(crate) fn has_offers(&self) -> bool {
        self.shared.has_offers.load(Ordering::Relaxed)
    }

    /// Decides whether a connection to `target` may use HTTP/3, and at which endpoint. `own` is the
    /// target's own endpoint; `is_fixed` is true if no other endpoint may be used. If `alt_svc` is
    /// given, alternative services are looked up there, and not in this cache.
    pub(crate) fn choose(
        &self,
        policy: Http3Policy,
        target: &Target,
        own: &QuicEndpoint,
        is_fixed: bool,
        alt_svc: Option<&AltSvcCache>,
    ) -> Http3Choice {
        let now = Instant::now();
        let state = self.lock();
        let mut offered = Vec::new();
        if !is_fixed {
            match alt_svc {
                Some(known) => offered.extend(known.http3_endpoints(target)),
                None => offered.extend(endpoints(&state.alternatives, target)),
            }
            if let Some((endpoints, _)) = state.records.get(&origin(target)).filter(|(_, until)| *until > now) {
                offered.extend_from_slice(endpoints);
            }
        }
        state.memory.choose(policy, own, offered, time_conversions::to_monotonic_time(now))
    }

    /// Stores the HTTP/3 alternatives in `field`, an Alt-Svc field of a response from `target`.
    /// `source` is the protocol of that response. The server generated the response at the time
    /// `generated`, in seconds since 1970.
    pub(crate) fn store_alt_svc(&self, target: &Target, source: AlpnProtocol, field: &[u8], generated: u64) {
        let mut state = self.lock();
        state.alternatives.on_field(target, source, field, generated);
        let has_any = endpoints(&state.alternatives, target).next().is_some();
        drop(state);
        if has_any {
            self.shared.has_offers.store(true, Ordering::Relaxed);
        }
    }

    /// Stores the endpoints that support HTTP/3 according to the HTTPS records of an origin. They
    /// expire at the time `until`.
    pub(crate) fn store_https_records(&self, origin: &QuicEndpoint, records: &[HttpsRecord], until: Instant) {
        let by_http3 = records.iter().filter(|record| record.speaks_http3());
        let found: Vec<_> =
            by_http3.map(|record| QuicEndpoint::new(&record.target, record.port.unwrap_or(origin.port))).collect();
        let mut state = self.lock();
        if found.is_empty() {
            state.records.remove(origin);
            return;
        }
        if state.records.len() >= MAX_ORIGINS {
            state.records.clear();
        }
        state.records.insert(origin.clone(), (found, until));
        drop(state);
        self.shared.has_offers.store(true, Ordering::Relaxed);
    }

    /// Returns true if a connection to `origin` tries QUIC, at `endpoint`, some time before it also
    /// tries TCP. Returns false if it tries both at the same time, because earlier QUIC packets to
    /// `endpoint` or to several servers got no answer.
    #[cfg(feature = "http3")]
    pub(crate) fn has_head_start(&self, origin: &QuicEndpoint, endpoint: &QuicEndpoint) -> bool {
        self.lock().memory.has_head_start(origin, endpoint)
    }

    /// Records that a QUIC connection for `origin` was opened to `endpoint`, so that later
    /// connections may prefer HTTP/3.
    #[cfg(feature = "http3")]
    pub(crate) fn on_connected(&self, origin: &QuicEndpoint, endpoint: &QuicEndpoint) {
        self.lock().memory.on_connected(origin, endpoint);
    }

    /// Records that a QUIC connection for `origin` to `endpoint` failed, so that later connections
    /// avoid HTTP/3 there for some time.
    pub(crate) fn on_failed(&self, origin: &QuicEndpoint, endpoint: &QuicEndpoint, failure: Http3Failure) {
        self.lock().memory.on_failed(origin, endpoint, failure, time_conversions::to_monotonic_time(Instant::now()));
    }

    fn lock(&self) -> ForkSafeWriteGuard<'_, Http3CacheState> {
        self.shared.state.write()
    }
}

impl fmt::Debug for Http3Cache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Http3Cache").field("has_offers", &self.has_offers()).finish_non_exhaustive()
    }
}

/// Returns the host and port of a target as an endpoint.
pub(crate) fn origin(target: &Target) -> QuicEndpoint {
    QuicEndpoint::new(target.host_text(), target.port())
}

/// Returns the HTTP/3 endpoints among the alternatives of a target, the preferred one first.
pub(super) fn endpoints(store: &AltSvcStore, target: &Target) -> impl Iterator<Item = QuicEndpoint> {
    let is_https = target.scheme() == Scheme::Https;
    let all = store.alternatives(target, time_conversions::unix_now());
    all.filter(move |other| is_https && other.protocol == AlpnProtocol::H3)
        .map(|other| QuicEndpoint::new(&other.host, other.port))
}
