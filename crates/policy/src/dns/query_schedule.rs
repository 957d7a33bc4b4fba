//! The schedule of the queries for one name: decides which server is asked at what time, and when
//! the result of the lookup is final.
//!
//! The A and AAAA queries are sent at the same time. If one of them has been answered with
//! addresses and the other has not been answered for 50 ms more, connecting may begin with these
//! addresses ([`NameLookup::early_addresses`], RFC 8305 §3). The lookup itself continues, and its
//! result has the addresses of both families.
//!
//! | event | reaction |
//! |---|---|
//! | no response for 1 s, then 2 s, 4 s … (at most `timeout`) | the next server is asked as well; a late response still counts |
//! | the server fails, refuses or cannot be reached | the next server is asked at once |
//! | the response is truncated | the same query is sent over TCP |
//! | the server does not understand the query | the same query is sent without EDNS |
//! | the name does not exist, or has no address | the next name of the search list is looked up |
//!
//! A query fails after the time `timeout` × `attempts` × number of servers, or after `attempts` ×
//! number of servers failures. A lost datagram thus costs one second, not the five of `timeout`.
//!
//! This state machine sends nothing and reads no clock. Its caller sends the queries that
//! [`NameLookup::start`] and the other methods return, passes in the responses, and calls
//! [`NameLookup::on_timeout`] at the time of [`NameLookup::next_timeout`].

use core::time::Duration;
use std::borrow::Cow;
use std::net::IpAddr;
use std::sync::Arc;

use super::https_record::{HttpsRecord, HttpsRecordSet};
use super::message::{DnsNameError, DnsQuery, DnsRecordType, DnsResponse};
use super::resolv_conf::ResolvConf;
use crate::time::MonotonicTime;

/// The time for which connecting waits for the addresses of one family after those of the other
/// family have arrived (RFC 8305 §3).
const RESOLUTION_DELAY: Duration = Duration::from_millis(50);
/// The maximum time for which addresses may be cached if no server answered the query for the other
/// family. The list is then incomplete.
const INCOMPLETE_CACHE_TIME: Duration = Duration::from_secs(3);
/// The largest number of HTTPS records in AliasMode that one lookup follows.
const MAX_HTTPS_ALIASES: u32 = 8;
/// The time without a response after which a UDP query is also sent to a second server. The time
/// doubles for each further server, up to the configured timeout.
const FIRST_RETRY_DELAY: Duration = Duration::from_secs(1);

/// A query to send. [`NameLookup::query`] returns its contents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutgoingQuery {
    /// The type of DNS record to ask for.
    pub record_type: DnsRecordType,
    /// The index of the server to ask in [`ResolvConf::servers`].
    pub server: usize,
    /// True to send the query over TCP instead of UDP.
    pub tcp: bool,
}

/// The status of a lookup: it waits, or it has a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DnsLookupStatus {
    /// The lookup waits for at least one response.
    Waiting,
    /// The name exists and has these addresses.
    Found {
        /// The addresses: IPv6 first, then IPv4.
        addresses: Vec<IpAddr>,
        /// The time for which the addresses may be cached.
        ttl: Duration,
    },
    /// The name has these HTTPS records. Only a lookup of HTTPS records gives this result.
    FoundHttps {
        /// The endpoints, the preferred endpoint first. Empty if the name has no HTTPS records.
        records: Vec<HttpsRecord>,
        /// The time for which the records may be cached.
        ttl: Duration,
    },
    /// Servers answered that the name does not exist, or that it has no address.
    NotFound {
        /// True if the name exists but has no address; false if it does not exist.
        exists: bool,
        /// The time for which this answer may be cached.
        ttl: Duration,
    },
    /// No server gave an answer, but a later lookup may succeed. The text describes the last
    /// failure.
    Unavailable(Cow<'static, str>),
}

/// The records that a lookup asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RequestedRecords {
    /// The addresses of a name: A and AAAA.
    Addresses,
    /// The IPv4 addresses of a name: A.
    Ipv4Addresses,
    /// The IPv6 addresses of a name: AAAA.
    Ipv6Addresses,
    /// The HTTPS records of a name (RFC 9460).
    HttpsRecords,
}

/// The state of looking up one name: the queries, the servers to ask, and the answers so far.
#[derive(Debug)]
pub struct NameLookup {
    subject: RequestedRecords,
    candidates: Vec<String>,
    candidate: usize,
    config: Arc<ResolvConf>,
    first_server: usize,
    questions: Vec<RecordQuestion>,
    /// The time at which connecting may begin without the addresses of the other family (IPv4 or
    /// IPv6). `None` until the addresses of one family have arrived.
    begins_early: Option<MonotonicTime>,
    /// True once the time `begins_early` has passed.
    is_early: bool,
    /// The last failure to get an answer for a candidate name (the requested name, alone or with a
    /// domain of the search list); `None` if there was none.
    failure: Option<Cow<'static, str>>,
    /// True if a candidate name (the requested name, alone or with a domain of the search list)
    /// exists but has no address.
    exists: bool,
    negative_ttl: Option<Duration>,
    /// The number of AliasMode records (RFC 9460) in the responses so far, and the smallest of
    /// their TTLs; [`Duration::MAX`] before the first record.
    https_aliases: (u32, Duration),
    status: DnsLookupStatus,
}

/// The query for the records of one type of the name that is being looked up, and the state of its
/// retries.
#[derive(Debug)]
struct RecordQuestion {
    record_type: DnsRecordType,
    server: usize,
    tcp: bool,
    edns: bool,
    /// The number of failures so far: a server refused, failed or could not be reached.
    failures: u32,
    /// The time to wait for a response before the next server is also asked.
    patience: Duration,
    /// The time at which the next server is also asked, if the servers asked so far have not
    /// responded.
    due: MonotonicTime,
    /// The time at which the question fails if it is still unanswered.
    ends: MonotonicTime,
    answer: Option<DnsResponse>,
}

impl NameLookup {
    /// Prepares a lookup of the addresses of `name`, IPv4 and IPv6. The first query goes to the
    /// server with the index
    /// `first_server`, modulo the number of servers.
    ///
    /// # Errors
    /// [`DnsNameError`] if no name of the search list can be written as a DNS name.
    pub fn new(name: &str, config: &Arc<ResolvConf>, first_server: usize) -> Result<Self, DnsNameError> {
        Self::for_records(RequestedRecords::Addresses, name, config, first_server)
    }

    /// Prepares a lookup of the records `subject` of `name`. The search list is used for addresses
    /// and not for HTTPS records. The first query goes to the server with the index `first_server`,
    /// modulo the number of servers.
    ///
    /// # Errors
    /// [`DnsNameError`] if no name of the search list can be written as a DNS name.
    pub fn for_records(
        subject: RequestedRecords,
        name: &str,
        config: &Arc<ResolvConf>,
        first_server: usize,
    ) -> Result<Self, DnsNameError> {
        let candidates = match subject {
            RequestedRecords::HttpsRecords => vec![name.to_owned()],
            _ => config.candidates(name),
        };
        Self::with_candidates(subject, candidates, config, first_server)
    }

    fn with_candidates(
        subject: RequestedRecords,
        mut candidates: Vec<String>,
        config: &Arc<ResolvConf>,
        first_server: usize,
    ) -> Result<Self, DnsNameError> {
        candidates.retain(|name| fits_dns_name_syntax(name));
        if candidates.is_empty() {
            return Err(DnsNameError);
        }
        Ok(Self {
            subject,
            candidates,
            candidate: 0,
            config: Arc::clone(config),
            first_server: first_server % config.servers.len().max(1),
            questions: Vec::new(),
            begins_early: None,
            is_early: false,
            failure: None,
            exists: false,
            negative_ttl: None,
            https_aliases: (0, Duration::MAX),
            status: DnsLookupStatus::Waiting,
        })
    }

    /// Returns the kind of records that the lookup asks for: addresses or HTTPS records.
    #[must_use]
    pub fn subject(&self) -> RequestedRecords {
        self.subject
    }

    /// Starts the lookup, and returns the first queries to send.
    pub fn start(&mut self, now: MonotonicTime) -> Vec<OutgoingQuery> {
        let types: &[DnsRecordType] = match self.subject {
            RequestedRecords::HttpsRecords => &[DnsRecordType::Https],
            RequestedRecords::Ipv4Addresses => &[DnsRecordType::A],
            _ if self.config.no_aaaa => &[DnsRecordType::A],
            RequestedRecords::Ipv6Addresses => &[DnsRecordType::Aaaa],
            RequestedRecords::Addresses => &[DnsRecordType::A, DnsRecordType::Aaaa],
        };
        let (server, tcp, edns) = (self.first_server, self.config.use_tcp, self.config.edns0);
        // Over TCP nothing is lost, so that a server is not asked twice within its time.
        let patience = if tcp { self.config.timeout } else { self.config.timeout.min(FIRST_RETRY_DELAY) };
        let (due, ends) = (now + patience, now + self.config.timeout * self.max_tries());
        let question = |&record_type| RecordQuestion {
            record_type,
            server,
            tcp,
            edns,
            failures: 0,
            patience,
            due,
            ends,
            answer: None,
        };
        self.questions = types.iter().map(question).collect();
        (self.begins_early, self.is_early) = (None, false);
        self.questions.iter().map(RecordQuestion::transmit).collect()
    }

    /// Returns the candidate name that is being looked up: the requested name, alone or followed by
    /// a domain of the search list.
    #[must_use]
    pub fn candidate(&self) -> &str {
        &self.candidates[self.candidate]
    }

    /// Returns the status of the lookup.
    #[must_use]
    pub fn status(&self) -> &DnsLookupStatus {
        &self.status
    }

    /// Returns the addresses with which connecting may begin although the addresses of the other
    /// family (IPv4 or IPv6) may still arrive. Returns `None` if there are no addresses yet, if the
    /// time to wait for the other family is not over, or if the lookup has ended.
    #[must_use]
    pub fn early_addresses(&self) -> Option<Vec<IpAddr>> {
        if self.status != DnsLookupStatus::Waiting || !self.is_early {
            return None;
        }
        match self.found_addresses() {
            DnsLookupStatus::Found { addresses, .. } => Some(addresses),
            _ => None,
        }
    }

    /// Returns the query for records of this type. The query has EDNS if the configuration asks for
    /// EDNS and the server understands EDNS. The caller chooses a random `id`.
    #[must_use]
    pub fn query(&self, record_type: DnsRecordType, id: u16) -> DnsQuery<'_> {
        let edns = self.questions.iter().any(|question| question.record_type == record_type && question.edns);
        DnsQuery { name: self.candidate(), record_type, id, edns, trust_ad: self.config.trust_ad }
    }

    /// Processes the response to the query `to`. Returns the next queries to send.
    pub fn on_response(&mut self, now: MonotonicTime, to: OutgoingQuery, response: DnsResponse) -> Vec<OutgoingQuery> {
        let OutgoingQuery { record_type, server, tcp } = to;
        let Some(question) = self.questions.iter_mut().find(|question| question.record_type == record_type) else {
            return Vec::new();
        };
        if question.answer.is_some() {
            return Vec::new();
        }
        match response {
            // The query was already repeated over TCP.
            DnsResponse::Truncated if !tcp && question.tcp => Vec::new(),
            DnsResponse::Truncated if !tcp => {
                question.tcp = true;
                question.server = server;
                vec![question.transmit_at(now)]
            }
            DnsResponse::NotUnderstood if question.edns => {
                question.edns = false;
                vec![question.transmit_at(now)]
            }
            DnsResponse::Truncated => self.on_failure(now, record_type, server, "a truncated answer over TCP".into()),
            DnsResponse::NotUnderstood => {
                self.on_failure(now, record_type, server, "a query that it does not understand".into())
            }
            DnsResponse::ServerFailure(cause) => self.on_failure(now, record_type, server, cause),
            answer => {
                question.answer = Some(answer);
                self.finish_candidate(now)
            }
        }
    }

    /// Records that `server` cannot be reached. `cause` is the reason, for the error message.
    /// Returns the next queries to send.
    pub fn on_unreachable(
        &mut self,
        now: MonotonicTime,
        record_type: DnsRecordType,
        server: usize,
        cause: Cow<'static, str>,
    ) -> Vec<OutgoingQuery> {
        self.on_failure(now, record_type, server, cause)
    }

    /// Returns the time at which to call [`NameLookup::on_timeout`]; `None` once the lookup has
    /// ended.
    #[must_use]
    pub fn next_timeout(&self) -> Option<MonotonicTime> {
        if self.status != DnsLookupStatus::Waiting {
            return None;
        }
        let open = self.questions.iter().filter(|question| question.answer.is_none());
        open.map(|question| question.due).chain(self.begins_early.filter(|_| !self.is_early)).min()
    }

    /// Processes all timeouts up to `now`: asks further servers, lets connecting begin
    /// ([`early_addresses`](Self::early_addresses)), or ends the lookup. Returns the next queries
    /// to send.
    pub fn on_timeout(&mut self, now: MonotonicTime) -> Vec<OutgoingQuery> {
        self.is_early |= self.begins_early.is_some_and(|at| at <= now);
        let mut transmits = Vec::new();
        for question in self.questions.iter_mut().filter(|question| question.answer.is_none()) {
            if question.ends <= now {
                question.answer = Some(DnsResponse::ServerFailure("no answer in time".into()));
            } else if question.due <= now {
                question.patience = (question.patience * 2).min(self.config.timeout);
                question.server = (question.server + 1) % self.config.servers.len().max(1);
                transmits.push(question.transmit_at(now));
            }
        }
        transmits.extend(self.finish_candidate(now));
        transmits
    }

    /// Records that the server `failed` did not answer the query for `record_type`, and asks the
    /// next server. Does nothing if `failed` is not the server that was asked last. After
    /// [`max_tries`](Self::max_tries) failures, the query for `record_type` is given up.
    fn on_failure(
        &mut self,
        now: MonotonicTime,
        record_type: DnsRecordType,
        failed: usize,
        cause: Cow<'static, str>,
    ) -> Vec<OutgoingQuery> {
        let most = self.max_tries();
        let Some(question) = self.questions.iter_mut().find(|question| question.record_type == record_type) else {
            return Vec::new();
        };
        if question.answer.is_some() || question.server != failed {
            return Vec::new();
        }
        question.failures += 1;
        if question.failures >= most {
            question.answer = Some(DnsResponse::ServerFailure(cause));
            return self.finish_candidate(now);
        }
        question.server = (question.server + 1) % self.config.servers.len().max(1);
        question.tcp = self.config.use_tcp;
        question.edns = self.config.edns0;
        vec![question.transmit_at(now)]
    }

    /// Returns the number of failures after which the query for one record type is given up: the
    /// configured number of attempts multiplied by the number of servers.
    fn max_tries(&self) -> u32 {
        let servers = u32::try_from(self.config.servers.len()).unwrap_or(u32::MAX);
        self.config.attempts.max(1).saturating_mul(servers.max(1))
    }

    /// Ends the lookup if the answers suffice. Otherwise, if all answers are in, starts the lookup
    /// of the next candidate name. Returns the queries to send.
    fn finish_candidate(&mut self, now: MonotonicTime) -> Vec<OutgoingQuery> {
        if self.status != DnsLookupStatus::Waiting {
            return Vec::new();
        }
        if self.subject == RequestedRecords::HttpsRecords {
            return self.finish_https_candidate(now);
        }
        let found = self.questions.iter().any(
            |question| matches!(&question.answer, Some(DnsResponse::Addresses { addresses, .. }) if !addresses.is_empty()),
        );
        let open = self.questions.iter().any(|question| question.answer.is_none());
        if open {
            if found && self.begins_early.is_none() {
                self.begins_early = Some(now + RESOLUTION_DELAY);
            }
            return Vec::new();
        }
        if found {
            self.status = self.found_addresses();
            return Vec::new();
        }
        for question in &self.questions {
            match &question.answer {
                Some(DnsResponse::Addresses { ttl, .. }) => {
                    self.exists = true;
                    self.negative_ttl = Some(self.negative_ttl.map_or(*ttl, |least| least.min(*ttl)));
                }
                Some(DnsResponse::NoSuchName { ttl }) => {
                    self.negative_ttl = Some(self.negative_ttl.map_or(*ttl, |least| least.min(*ttl)));
                }
                Some(DnsResponse::ServerFailure(cause)) => self.failure = Some(cause.clone()),
                _ => {}
            }
        }
        if self.candidate + 1 < self.candidates.len() {
            self.candidate += 1;
            return self.start(now);
        }
        self.status = match (self.failure.take(), self.negative_ttl) {
            (Some(cause), _) => DnsLookupStatus::Unavailable(cause),
            (None, ttl) => DnsLookupStatus::NotFound { exists: self.exists, ttl: ttl.unwrap_or_default() },
        };
        Vec::new()
    }

    /// Ends a lookup of HTTPS records, or continues with the name to which a record in AliasMode
    /// points. Returns the queries to send.
    fn finish_https_candidate(&mut self, now: MonotonicTime) -> Vec<OutgoingQuery> {
        let Some(answer) = self.questions.first_mut().and_then(|question| question.answer.take()) else {
            return Vec::new();
        };
        self.status = match answer {
            DnsResponse::HttpsRecords { records: HttpsRecordSet::Services(records), ttl } => {
                DnsLookupStatus::FoundHttps { records, ttl: ttl.min(self.https_aliases.1) }
            }
            DnsResponse::HttpsRecords { records: HttpsRecordSet::Alias(target), ttl } => {
                self.https_aliases = (self.https_aliases.0 + 1, ttl.min(self.https_aliases.1));
                if self.https_aliases.0 <= MAX_HTTPS_ALIASES && fits_dns_name_syntax(&target) {
                    self.candidates = vec![target];
                    return self.start(now);
                }
                DnsLookupStatus::FoundHttps { records: Vec::new(), ttl: self.https_aliases.1 }
            }
            DnsResponse::NoSuchName { ttl } | DnsResponse::Addresses { ttl, .. } => {
                DnsLookupStatus::FoundHttps { records: Vec::new(), ttl: ttl.min(self.https_aliases.1) }
            }
            DnsResponse::ServerFailure(cause) => DnsLookupStatus::Unavailable(cause),
            DnsResponse::Truncated | DnsResponse::NotUnderstood => DnsLookupStatus::Unavailable("no answer".into()),
        };
        Vec::new()
    }

    fn found_addresses(&self) -> DnsLookupStatus {
        let mut all = Vec::new();
        let mut least: Option<Duration> = None;
        // IPv6 is asked second and comes first.
        for question in self.questions.iter().rev() {
            match &question.answer {
                Some(DnsResponse::Addresses { addresses, ttl }) if !addresses.is_empty() => {
                    all.extend_from_slice(addresses);
                    least = Some(least.map_or(*ttl, |least| least.min(*ttl)));
                }
                Some(DnsResponse::ServerFailure(_)) => {
                    least = Some(least.map_or(INCOMPLETE_CACHE_TIME, |least| least.min(INCOMPLETE_CACHE_TIME)));
                }
                _ => {}
            }
        }
        DnsLookupStatus::Found { addresses: all, ttl: least.unwrap_or_default() }
    }
}

fn fits_dns_name_syntax(name: &str) -> bool {
    let query = DnsQuery { name, record_type: DnsRecordType::A, id: 0, edns: false, trust_ad: false };
    query.to_bytes().is_ok()
}

impl RecordQuestion {
    /// Returns the query to send at `now`, and sets the time at which the next server is asked.
    fn transmit_at(&mut self, now: MonotonicTime) -> OutgoingQuery {
        self.due = (now + self.patience).min(self.ends);
        self.transmit()
    }

    fn transmit(&self) -> OutgoingQuery {
        OutgoingQuery { record_type: self.record_type, server: self.server, tcp: self.tcp }
    }
}

#[cfg(test)]
mod tests;
