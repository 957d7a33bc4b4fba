//! The names that the resolver can answer without a lookup: overrides (`--resolve`), special names
//! such as `localhost`, and cached answers.

use std::collections::{HashMap, VecDeque};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;
use std::time::Instant;

use super::AddressFamily;
use super::caller_given_servers::ChosenDnsServers;
use super::custom_transport::DnsTransport;
use super::https_records::HttpsRecordsCacheEntry;
use super::lookup_answer::{LookupAnswer, LookupFailure};
use super::overrides::DnsOverrides;

/// The maximum number of cached names. When it is reached, the least recently used quarter of the
/// names is dropped. A name takes about 200 bytes.
pub(super) const MAX_NAMES: usize = 8192;

/// A callback that is called when a lookup has ended.
pub(super) type LookupCallback = Box<dyn FnOnce() + Send>;

/// The data that all clones of a resolver share: cached answers, overrides and settings.
#[derive(Default)]
pub(super) struct ResolverState {
    /// The cached addresses of names, and the lookups in progress, by name and requested records.
    pub(super) names: HashMap<DnsCacheKey, DnsCacheEntry>,
    /// The cached HTTPS records, by the queried name.
    pub(super) https: HashMap<Arc<str>, HttpsRecordsCacheEntry>,
    pub(super) overrides: DnsOverrides,
    /// The name servers that the user chose; `None` for the system's name servers.
    pub(super) servers: Option<Arc<ChosenDnsServers>>,
    /// The transport that the user chose for queries; `None` for UDP and TCP.
    pub(super) transport: Option<Arc<dyn DnsTransport>>,
    /// The names that wait until a thread looks them up with `getaddrinfo`.
    pub(super) queue: VecDeque<Arc<str>>,
    pub(super) threads: usize,
    pub(super) idle: usize,
    pub(super) lookups: u64,
}

/// The key of a name's cached addresses: the name in lower case, and the families of the addresses.
pub(super) type DnsCacheKey = (Arc<str>, AddressFamily);

/// The cached addresses of a name, or the lookup in progress.
pub(super) enum DnsCacheEntry {
    /// The name is being looked up. The callbacks are called when the lookup ends, or when
    /// connecting may begin with the addresses `early` of one family.
    Asked {
        waiting: Vec<LookupCallback>,
        early: Option<Arc<[IpAddr]>>,
    },
    Known {
        answer: LookupAnswer,
        until: Instant,
        used: Instant,
    },
}

/// The waiting callbacks and the early addresses of a lookup in progress.
type LookupInProgress<'a> = (&'a mut Vec<LookupCallback>, Option<&'a Arc<[IpAddr]>>);

impl DnsCacheEntry {
    /// Returns the time of the last use of the cached answer; `None` while the name is being looked
    /// up.
    fn last_used(&self) -> Option<Instant> {
        match self {
            Self::Asked { .. } => None,
            Self::Known { used, .. } => Some(*used),
        }
    }
}

impl ResolverState {
    /// Returns true if the user has chosen the name servers or the transport. No other server may
    /// then be asked.
    pub(super) fn has_chosen_servers(&self) -> bool {
        self.servers.is_some() || self.transport.is_some()
    }

    /// Returns true if this name and port have a fixed answer without a lookup: there is an
    /// override (`--resolve`), or the name is an IP address or a special name such as `localhost`.
    pub(super) fn has_fixed_answer(&mut self, now: Instant, name: &str, port: u16) -> bool {
        self.fixed_answer(now, name, port).is_some()
    }

    /// Returns the answer if no lookup is needed: for overrides (addresses that the user gave by
    /// `--resolve`), IP addresses, special names such as `localhost`, and cached answers that have
    /// not expired. Otherwise, returns `None`.
    /// An answer with the addresses of both families serves a lookup of one `family`, too.
    pub(super) fn answer_without_lookup(
        &mut self,
        now: Instant,
        name: &Arc<str>,
        port: u16,
        family: AddressFamily,
    ) -> Option<LookupAnswer> {
        if let Some(answer) = self.fixed_answer(now, name, port) {
            return Some(answer);
        }
        [AddressFamily::Any, family].into_iter().find_map(|family| {
            match self.names.get_mut(&(Arc::clone(name), family)) {
                Some(DnsCacheEntry::Known { answer, until, used }) if *until > now => {
                    *used = now;
                    Some(answer.clone())
                }
                _ => None,
            }
        })
    }

    /// Returns the waiting callbacks and the early addresses of a lookup in progress whose answer
    /// will have the addresses of `family`; `None` if there is no such lookup.
    pub(super) fn lookup_in_progress(
        &mut self,
        name: &Arc<str>,
        family: AddressFamily,
    ) -> Option<LookupInProgress<'_>> {
        let asked = |entry: Option<&DnsCacheEntry>| matches!(entry, Some(DnsCacheEntry::Asked { .. }));
        let families = [AddressFamily::Any, family];
        let key =
            families.map(|family| (Arc::clone(name), family)).into_iter().find(|key| asked(self.names.get(key)))?;
        match self.names.get_mut(&key) {
            Some(DnsCacheEntry::Asked { waiting, early }) => Some((waiting, early.as_ref())),
            _ => None,
        }
    }

    /// Returns the answer for an override (`--resolve`), an IP address, or a special name such as
    /// `localhost`. Returns `None` for any other name.
    fn fixed_answer(&mut self, now: Instant, name: &str, port: u16) -> Option<LookupAnswer> {
        if let Some(addresses) = self.overrides.get(now, name, port) {
            return Some(Ok(addresses));
        }
        if let Ok(address) = name.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>() {
            return Some(Ok(Arc::from([address])));
        }
        if is_subdomain(name, "localhost") {
            return Some(Ok(Arc::from([IpAddr::V6(Ipv6Addr::LOCALHOST), IpAddr::V4(Ipv4Addr::LOCALHOST)])));
        }
        if is_subdomain(name, "invalid") {
            return Some(Err(LookupFailure::about_name("the name is reserved for what does not exist")));
        }
        if is_onion(name) {
            return Some(Err(LookupFailure::about_name(".onion names are not looked up (RFC 7686)")));
        }
        None
    }

    /// Marks a name as being looked up. The callbacks in `waiting` are called when the lookup ends.
    /// If the cache contains too many names, first drops the least recently used answers.
    pub(super) fn begin_lookup(&mut self, now: Instant, key: DnsCacheKey, waiting: Vec<LookupCallback>) {
        if self.names.len() >= MAX_NAMES {
            self.names.retain(|_, entry| !matches!(entry, DnsCacheEntry::Known { until, .. } if *until <= now));
        }
        if self.names.len() >= MAX_NAMES {
            let mut uses: Vec<Instant> = self.names.values().filter_map(DnsCacheEntry::last_used).collect();
            let surplus = (MAX_NAMES / 4).min(uses.len().saturating_sub(1));
            if let Some((_, oldest_kept, _)) = (!uses.is_empty()).then(|| uses.select_nth_unstable(surplus)) {
                self.names.retain(|_, entry| entry.last_used().is_none_or(|used| used >= *oldest_kept));
            }
        }
        self.names.insert(key, DnsCacheEntry::Asked { waiting, early: None });
    }
}

/// Returns a host name in lower case, as the key of its cached answer: names are case-insensitive
/// (RFC 4343).
pub(super) fn normalize_name(host: &str) -> Arc<str> {
    host.to_ascii_lowercase().into()
}

/// Returns true for a name below .onion (RFC 7686). Such a name is never looked up: no resolver
/// knows it, and the query would disclose it to the name servers.
#[must_use]
pub fn is_onion(name: &str) -> bool {
    is_subdomain(name, "onion")
}

/// Returns true if `name` is the domain `domain` or a subdomain of it.
fn is_subdomain(name: &str, domain: &str) -> bool {
    let name = name.strip_suffix('.').unwrap_or(name);
    name.strip_suffix(domain).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
}
