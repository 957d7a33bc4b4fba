//! Lookups of HTTPS records (RFC 9460). Their answers are cached separately from addresses.
//!
//! A connection never waits for HTTPS records: records that arrive after the addresses are used by
//! the next connection. The system's resolver has no function for HTTPS records. Therefore they are
//! looked up only if addresses are looked up by name servers, too.

use std::sync::Arc;
use std::time::{Duration, Instant};

use haul_policy::dns::https_record::{HttpsRecord, query_name};
use haul_policy::dns::query_schedule::RequestedRecords;

use super::client::{DnsAnswer, DnsQuestion};
use super::fixed_and_cached_answers::{LookupCallback, MAX_NAMES, normalize_name};
use super::{CACHE_TIME_BOUNDS, LookupCaller, Resolver, ResolverInner};
use crate::time_conversions;

/// The time for which the HTTPS records of a name are not queried again after its servers gave no
/// answer. Some servers do not answer queries for record types that they do not know.
const UNAVAILABLE_CACHE_TIME: Duration = Duration::from_secs(60);

/// The result of [`Resolver::https_records`]: the records, or `Pending` while the lookup is in
/// progress.
#[derive(Debug)]
pub enum HttpsLookupStatus {
    /// The lookup has ended. There are no records if the origin has no HTTPS records, or if HTTPS
    /// records are not looked up.
    Ready {
        /// The HTTPS records of the looked-up name.
        records: Arc<[HttpsRecord]>,
        /// The time at which the records expire.
        until: Instant,
    },
    /// The lookup is in progress. The callback `notify` will be called once, from another thread.
    Pending,
}

/// The HTTPS records of a name in the cache.
pub(super) enum HttpsRecordsCacheEntry {
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
    /// The name servers are not asked for the records of hosts whose address the user has given
    /// (`--resolve`), IP addresses, names in the hosts file, names without a dot, and special names
    /// such as `localhost`. They are not asked for any records if haul resolves names with the
    /// system's resolver (`getaddrinfo`). The returned list is then empty.
    pub fn https_records(&self, host: &str, port: u16, notify: impl FnOnce() + Send + 'static) -> HttpsLookupStatus {
        self.https_records_for(LookupCaller::EventLoop, host, port, notify)
    }

    /// Looks up HTTPS records like [`https_records`](Self::https_records), for the kind of caller
    /// `waiter`. A blocking caller gets records only if the user chose the name servers. Without
    /// chosen name servers, the addresses for such a caller come from the system's resolver, and
    /// haul asks no name server.
    pub(crate) fn https_records_for(
        &self,
        waiter: LookupCaller,
        host: &str,
        port: u16,
        notify: impl FnOnce() + Send + 'static,
    ) -> HttpsLookupStatus {
        let now = Instant::now();
        let none = || HttpsLookupStatus::Ready { records: Arc::from([]), until: now };
        let name = normalize_name(host);
        let mut state = self.shared().lock();
        let by_dns = state.has_chosen_servers() || (self.shared().uses_dns && waiter == LookupCaller::EventLoop);
        if !by_dns || !name.trim_end_matches('.').contains('.') || state.has_fixed_answer(now, &name, port) {
            return none();
        }
        let name = query_name(&name, port);
        match state.https.get_mut(&*name) {
            Some(HttpsRecordsCacheEntry::Known { records, until }) if *until > now => {
                return HttpsLookupStatus::Ready { records: Arc::clone(records), until: *until };
            }
            Some(HttpsRecordsCacheEntry::Asked(waiting)) => {
                waiting.push(Box::new(notify));
                return HttpsLookupStatus::Pending;
            }
            _ => {}
        }
        if state.https.len() >= MAX_NAMES {
            // Records only hint at endpoints, and can be asked for again.
            state.https.retain(|_, entry| matches!(entry, HttpsRecordsCacheEntry::Asked(_)));
        }
        let name: Arc<str> = name.into();
        state.https.insert(Arc::clone(&name), HttpsRecordsCacheEntry::Asked(vec![Box::new(notify)]));
        drop(state);
        let question = DnsQuestion { name, subject: RequestedRecords::HttpsRecords };
        if let Err(error) = self.shared().ask_name_servers(&question) {
            self.shared().cache_https_and_notify(&question.name, DnsAnswer::Unavailable(error.to_string()));
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
        let until = time_conversions::add_saturating(Instant::now(), life);
        let known = HttpsRecordsCacheEntry::Known { records: records.into(), until };
        let before = self.lock().https.insert(Arc::from(name), known);
        if let Some(HttpsRecordsCacheEntry::Asked(waiting)) = before {
            for notify in waiting {
                notify();
            }
        }
    }
}
