//! Stores the answers of lookups in the cache, and notifies the callers that wait for them.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use haul_policy::dns::query_schedule::RequestedRecords;

use super::client::{DnsAnswer, DnsQuestion};
use super::fixed_and_cached_answers::DnsCacheEntry;
use super::lookup_answer::{LookupAnswer, LookupFailure};
use super::{AddressFamily, CACHE_TIME_BOUNDS, LOCAL_FAILURE_CACHE_TIME, ResolverInner};
use crate::time_conversions;

impl ResolverInner {
    /// Caches an answer of the name servers and notifies the waiting callers. If only the system's
    /// resolver can answer the question, passes the question to that resolver.
    pub(super) fn handle_answer(self: &Arc<Self>, question: &DnsQuestion, answer: DnsAnswer) {
        let name = &*question.name;
        if question.subject == RequestedRecords::HttpsRecords {
            return self.cache_https_and_notify(name, answer);
        }
        let family = match question.subject {
            RequestedRecords::Ipv4Addresses => AddressFamily::V4,
            RequestedRecords::Ipv6Addresses => AddressFamily::V6,
            _ => AddressFamily::Any,
        };
        let kept = |ttl: Duration| ttl.clamp(CACHE_TIME_BOUNDS.0, CACHE_TIME_BOUNDS.1);
        let (answer, life) = match answer {
            DnsAnswer::Found(addresses, ttl) => (Ok(Arc::from(addresses)), kept(ttl)),
            DnsAnswer::Early(addresses) => return self.notify_early(name, addresses),
            DnsAnswer::NotFound { exists, ttl } => {
                let text = match (exists, family) {
                    (false, _) => "the name does not exist (NXDOMAIN)",
                    (true, AddressFamily::Any) => "the name has no address",
                    (true, AddressFamily::V4) => "it has no IPv4 address",
                    (true, AddressFamily::V6) => "it has no IPv6 address",
                };
                (Err(LookupFailure::about_name(text)), kept(ttl).min(self.options.negative_ttl))
            }
            DnsAnswer::Unavailable(text) => (Err(LookupFailure::about_servers(&text)), LOCAL_FAILURE_CACHE_TIME),
            DnsAnswer::NeedsSystem | DnsAnswer::Https(..) => return self.pass_to_system(&question.name, family),
        };
        self.cache_and_notify(name, family, answer, life);
    }

    /// Passes a lookup to the system's resolver, which looks up both families.
    fn pass_to_system(self: &Arc<Self>, name: &Arc<str>, family: AddressFamily) {
        if family != AddressFamily::Any {
            let mut state = self.lock();
            let Some(DnsCacheEntry::Asked { waiting: moved, .. }) = state.names.remove(&(Arc::clone(name), family))
            else {
                return;
            };
            if let Some((waiting, _)) = state.lookup_in_progress(name, AddressFamily::Any) {
                waiting.extend(moved);
                return;
            }
            state.begin_lookup(Instant::now(), (Arc::clone(name), AddressFamily::Any), moved);
        }
        self.ask_system(Arc::clone(name));
    }

    /// Makes the addresses of one family available although the lookup continues, and notifies all
    /// callers that wait for it.
    fn notify_early(&self, name: &str, addresses: Vec<IpAddr>) {
        let mut state = self.lock();
        let key = (Arc::from(name), AddressFamily::Any);
        let Some(DnsCacheEntry::Asked { waiting, early }) = state.names.get_mut(&key) else { return };
        *early = Some(Arc::from(addresses));
        let notified = std::mem::take(waiting);
        drop(state);
        for notify in notified {
            notify();
        }
    }

    /// Caches an answer for the duration `life`, and notifies all callers that wait for it.
    pub(super) fn cache_and_notify(&self, name: &str, family: AddressFamily, answer: LookupAnswer, life: Duration) {
        let used = Instant::now();
        let known = DnsCacheEntry::Known { answer, until: time_conversions::add_saturating(used, life), used };
        let before = self.lock().names.insert((Arc::from(name), family), known);
        if let Some(DnsCacheEntry::Asked { waiting, .. }) = before {
            for notify in waiting {
                notify();
            }
        }
    }
}
