//! HTTPS records (RFC 9460): the endpoints at which an origin is served, and their protocols.
//!
//! A client learns from them, before its first connection, that an origin speaks HTTP/3, and on
//! which host and port.
//!
//! ```
//! use haul_policy::dns::https_record::query_name;
//!
//! assert_eq!(query_name("example.com", 443), "example.com");
//! assert_eq!(query_name("example.com", 8443), "_8443._https.example.com");
//! ```
//!
//! | record | treatment |
//! |---|---|
//! | one record is malformed | all records are dropped (section 2.2) |
//! | a mandatory key of a record is not supported | that record is dropped (section 8) |
//! | one record is in AliasMode | all other records are dropped, and its target is looked up (section 2.4.1) |
//!
//! Left out: the upgrade of http URLs (section 9.5).

use std::net::IpAddr;

use domain::base::ParsedName;
use domain::base::name::{ToLabelIter, ToName};
use domain::rdata::Https;
use domain::rdata::svcb::value::AllValues;

use crate::alt_svc::AlpnProtocol;

/// The largest number of HTTPS records that are used from one response. Further records are
/// ignored.
const MAX_RECORDS: usize = 16;
/// The largest number of address hints that are used from one record, for IPv4 and for IPv6 each.
const MAX_HINTS: usize = 8;
/// The largest `ech` value in bytes that is used. A longer list of Encrypted Client Hello keys is
/// ignored.
const MAX_ECH_LIST: usize = 8192;
/// The SvcParamKeys that may be mandatory: alpn, no-default-alpn, port, ipv4hint, ech and ipv6hint.
const SUPPORTED_KEYS: [u16; 6] = [1, 2, 3, 4, 5, 6];

/// An HTTPS record in ServiceMode: an endpoint that serves the origin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpsRecord {
    /// The priority of the endpoint. A client uses the endpoint with the lowest priority value
    /// first.
    pub priority: u16,
    /// The host name of the endpoint, in lower case without a final dot.
    pub target: String,
    /// The port of the endpoint; `None` for the port of the origin.
    pub port: Option<u16>,
    /// The endpoint's protocols, as far as haul supports them. They include HTTP/1.1 unless the
    /// record has `no-default-alpn`.
    pub protocols: Vec<AlpnProtocol>,
    /// Addresses of the endpoint, for use until its own A and AAAA records are known.
    pub hints: Vec<IpAddr>,
    /// The endpoint's keys for Encrypted Client Hello (RFC 9848): an ECHConfigList, which TLS
    /// parses. `None` if the record has no usable keys.
    pub ech: Option<Vec<u8>>,
}

impl HttpsRecord {
    /// Returns true if the endpoint speaks HTTP/3.
    #[must_use]
    pub fn speaks_http3(&self) -> bool {
        self.protocols.contains(&AlpnProtocol::H3)
    }
}

/// The HTTPS records of a name, either in AliasMode or in ServiceMode (RFC 9460).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HttpsRecordSet {
    /// AliasMode: use the records of another name instead. The string is that name.
    Alias(String),
    /// ServiceMode: the endpoints, the preferred one first. Empty if the name has no usable record.
    Services(Vec<HttpsRecord>),
}

/// Returns the name to look up for the HTTPS records of an origin (RFC 9460 section 9.1): the host,
/// preceded by `_PORT._https.` if the port is not 443.
#[must_use]
pub fn query_name(host: &str, port: u16) -> String {
    let host = host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase();
    if port == 443 { host } else { format!("_{port}._https.{host}") }
}

/// One HTTPS record of a response, after parsing: an alias, an endpoint, or a record that cannot be
/// used.
pub(super) enum ParsedHttpsRecord {
    Alias(Option<String>),
    Service(HttpsRecord),
    /// The record has a mandatory key that is not supported, so it must be ignored.
    Unusable,
    Malformed,
}

/// Parses one HTTPS record of the name `owner`.
pub(super) fn parse(data: &Https<&[u8], ParsedName<&[u8]>>, owner: &impl ToName) -> ParsedHttpsRecord {
    let is_root = data.target().is_root();
    if data.is_alias() {
        return if is_root {
            ParsedHttpsRecord::Alias(None)
        } else {
            host_text(data.target()).map_or(ParsedHttpsRecord::Malformed, |name| ParsedHttpsRecord::Alias(Some(name)))
        };
    }
    let target = if is_root { host_text(owner) } else { host_text(data.target()) };
    let Some(target) = target else { return ParsedHttpsRecord::Malformed };
    let (mut mandatory, mut present) = (Vec::new(), Vec::new());
    let (mut alpn, mut has_default) = (None, true);
    let mut record = HttpsRecord {
        priority: data.priority(),
        target,
        port: None,
        protocols: Vec::new(),
        hints: Vec::new(),
        ech: None,
    };
    for value in data.params().iter_all() {
        let Ok(value) = value else { return ParsedHttpsRecord::Malformed };
        match value {
            AllValues::Mandatory(keys) => {
                mandatory = keys.iter().map(|key| key.to_int()).collect();
                continue;
            }
            AllValues::Alpn(names) => {
                present.push(1);
                if names.iter().next().is_none() || names.iter().any(<[u8]>::is_empty) {
                    return ParsedHttpsRecord::Malformed;
                }
                alpn = Some(names.iter().filter_map(AlpnProtocol::from_alpn).collect::<Vec<_>>());
            }
            AllValues::NoDefaultAlpn(_) => {
                present.push(2);
                has_default = false;
            }
            AllValues::Port(port) => {
                present.push(3);
                record.port = Some(port.port());
            }
            AllValues::Ipv4Hint(hints) if hints.iter().next().is_none() => return ParsedHttpsRecord::Malformed,
            AllValues::Ipv6Hint(hints) if hints.iter().next().is_none() => return ParsedHttpsRecord::Malformed,
            AllValues::Ipv4Hint(hints) => {
                present.push(4);
                record.hints.extend(hints.iter().take(MAX_HINTS).map(IpAddr::V4));
            }
            AllValues::Ipv6Hint(hints) => {
                present.push(6);
                record.hints.extend(hints.iter().take(MAX_HINTS).map(IpAddr::V6));
            }
            AllValues::Ech(list) if list.as_slice().is_empty() => return ParsedHttpsRecord::Malformed,
            AllValues::Ech(list) => {
                present.push(5);
                record.ech = (list.as_slice().len() <= MAX_ECH_LIST).then(|| list.as_slice().to_vec());
            }
            other => present.push(domain::rdata::svcb::SvcParamValue::key(&other).to_int()),
        }
    }
    let is_ascending = mandatory.windows(2).all(|pair| pair[0] < pair[1]);
    if !is_ascending || !mandatory.iter().all(|key| present.contains(key)) || (alpn.is_none() && !has_default) {
        return ParsedHttpsRecord::Malformed;
    }
    if !mandatory.iter().all(|key| SUPPORTED_KEYS.contains(key)) || record.port == Some(0) {
        return ParsedHttpsRecord::Unusable;
    }
    record.protocols = alpn.unwrap_or_default();
    if has_default && !record.protocols.contains(&AlpnProtocol::H1) {
        record.protocols.push(AlpnProtocol::H1);
    }
    record.protocols.dedup();
    ParsedHttpsRecord::Service(record)
}

/// Returns the usable result of the HTTPS records of one response. A record in AliasMode takes
/// precedence over records in ServiceMode. A malformed record makes all records unusable.
pub(super) fn choose_record_set(records: Vec<ParsedHttpsRecord>) -> HttpsRecordSet {
    let (mut services, mut alias) = (Vec::new(), None);
    for record in records {
        match record {
            ParsedHttpsRecord::Malformed => return HttpsRecordSet::Services(Vec::new()),
            ParsedHttpsRecord::Alias(target) => alias = Some(alias.flatten().or(target)),
            ParsedHttpsRecord::Service(record) => services.push(record),
            ParsedHttpsRecord::Unusable => {}
        }
    }
    match alias {
        Some(Some(target)) => HttpsRecordSet::Alias(target),
        // A target of "." says that the service does not exist (section 2.5.1).
        Some(None) => HttpsRecordSet::Services(Vec::new()),
        None => {
            services.sort_by_key(|record| record.priority);
            services.truncate(MAX_RECORDS);
            HttpsRecordSet::Services(services)
        }
    }
}

/// Returns a DNS name as text in lower case; `None` if it contains a byte other than letters,
/// digits, `-` and `_`.
fn host_text(name: &(impl ToLabelIter + ?Sized)) -> Option<String> {
    let mut text = String::new();
    for label in name.iter_labels().filter(|label| !label.is_root()) {
        let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        if !label.as_slice().iter().all(is_plain) {
            return None;
        }
        if !text.is_empty() {
            text.push('.');
        }
        text.extend(label.as_slice().iter().map(|byte| char::from(byte.to_ascii_lowercase())));
    }
    (!text.is_empty()).then_some(text)
}

#[cfg(test)]
mod tests;
