//! Lookups of HTTPS records (RFC 9460). Their answers are kept apart from the addresses of names.
//!
//! A connection never waits for them: an answer that comes after the addresses counts from the next
//! connection on. The system's resolver has no function for them, so that they are asked for only
//! where the name servers are asked for addresses, too.

use std::sync::Arc;
use std::time::{Duration, Instant};

use haul_policy::dns::https_record::{HttpsRecord, query_name};
use haul_policy::dns::lookup::LookupSubject;

use super::cache::{LookupCallback, MAX_NAMES, normalize_name};
use super::client::{DnsAnswer, DnsQuestion};
use super::{CACHE_TIME_BOUNDS, LookupWaiter, Resolver, ResolverInner};
use crate::clock;

/// The time for which a name is not asked for again after its servers gave no answer. Some servers
/// do not answer queries for types that they do not know.
const UNAVAILABLE_CACHE_TIME: Duration = Duration::from_secs(60);

/// The result of [`Resolver::https_records`]: the records, or that they are being looked up.
#[derive(Debug)]
pub enum HttpsLookupStatus {
    /// The endpoints of the origin, the preferred endpoint first. Empty if the origin has none, or
    /// if HTTPS records are not looked up.
    Ready {
        /// The HTTPS records of the name.
        records: Arc<[HttpsRecord]>,
        /// The time until which the records may be used.
        until: Instant,
    },
    /// The lookup is in progress. `notify` will be called once, from another thread.
    Pending,
}

/// The HTTPS records of a name in the cache.
pub(super) enum CachedHttpsRecords {
    /// The records are being looked up. These callbacks are called when the lookup ends.
    Asked(Vec<LookupCallback>),
    Known {
        records: Arc<[HttpsRecord]>,
        until: Instant,
    },
}

impl Resolver {
    /// Returns the HTTPS records of an origin if they are known, and asks the name servers for them
    /// otherwise. Never waits. If it returns [`HttpsLookupStatus::Pending`], `notify` is called
    /// once, from another thread, when the lookup has ended.
    ///
    /// There are none for overrides, IP addresses, names in the hosts file, names without a dot and
    /// special names such as `localhost`, nor if addresses are looked up by the system's resolver.
    pub fn https_records(&self, host: &str, port: u16, notify: impl FnOnce() + Send + 'static) -> HttpsLookupStatus {
        self.https_records_for(LookupWaiter::Worker, host, port, notify)
    }

    /// Looks up HTTPS records as [`https_records`](Self::https_records) does, for this kind of
    /// caller. A caller that blocks gets records only if the user chose the name servers, because
    /// otherwise the system's resolver looks up its addresses.
    pub(crate) fn https_records_for(
        &self,
        waiter: LookupWaiter,
        host: &str,
        port: u16,
        notify: impl FnOnce() + Send + 'static,
    ) -> HttpsLookupStatus {
        let now = Instant::now();
        let none = || HttpsLookupStatus::Ready { records: Arc::from([]), until: now };
        let name = normalize_name(host);
        let mut state = self.shared.lock();
        let by_dns = state.has_chosen_servers() || (self.shared.uses_dns && waiter == LookupWaiter::Worker);
        if !by_dns || !name.trim_end_matches('.').contains('.') || state.has_fixed_answer(now, &name, port) {
            return none();
        }
        let name = query_name(&name, port);
        match state.https.get_mut(&*name) {
            Some(CachedHttpsRecords::Known { records, until }) if *until > now => {
                return HttpsLookupStatus::Ready { records: Arc::clone(records), until: *until };
            }
            Some(CachedHttpsRecords::Asked(waiting)) => {
                waiting.push(Box::new(notify));
                return HttpsLookupStatus::Pending;
            }
            _ => {}
        }
        if state.https.len() >= MAX_NAMES {
            // Records only hint at endpoints, and can be asked for again.
            state.https.retain(|_, entry| matches!(entry, CachedHttpsRecords::Asked(_)));
        }
        let name: Arc<str> = name.into();
        state.https.insert(Arc::clone(&name), CachedHttpsRecords::Asked(vec![Box::new(notify)]));
        drop(state);
        let question = DnsQuestion { name, subject: LookupSubject::HttpsRecords };
        if let Err(error) = self.shared.ask_name_servers(&question) {
            self.shared.cache_https_and_notify(&question.name, DnsAnswer::Unavailable(error.to_string()));
        }
        HttpsLookupStatus::Pending
    }
}

impl ResolverInner {
    /// Caches the HTTPS records of a name, and notifies all callers that wait for them.
    pub(super) fn cache_https_and_notify(&self, name: &str, answer: DnsAnswer) {
        let (records, life) = match answer {
            DnsAnswer::Https(records, ttl) => (records, ttl.clamp(CACHE_TIME_BOUNDS.0, CACHE_TIME_BOUNDS.1)),
            _ => (Vec::new(), UNAVAILABLE_CACHE_TIME),
        };
        let until = clock::add_saturating(Instant::now(), life);
        let known = CachedHttpsRecords::Known { records: records.into(), until };
        let before = self.lock().https.insert(Arc::from(name), known);
        if let Some(CachedHttpsRecords::Asked(waiting)) = before {
            for notify in waiting {
                notify();
            }
        }
    }
}
