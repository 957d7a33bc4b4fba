//! DNS messages: queries for the addresses and HTTPS records of a name, and the parsing of
//! responses (RFC 1035 §4).
//!
//! ```
//! use haul_policy::dns::message::{DnsQuery, DnsRecordType};
//!
//! let query = DnsQuery { name: "www.example", record_type: DnsRecordType::A, id: 7, edns: false, trust_ad: false };
//! let bytes = query.to_bytes()?;
//! assert_eq!(&bytes[..2], [0, 7]);
//! assert!(query.parse_response(&bytes).is_none()); // a query is no response
//! # Ok::<(), haul_policy::dns::message::DnsNameError>(())
//! ```

use core::fmt;
use core::time::Duration;
use std::borrow::Cow;
use std::net::IpAddr;

use domain::base::iana::{Class, Opcode, Rcode, Rtype};
use domain::base::name::{NameBuilder, ToName};
use domain::base::wire::ParseError;
use domain::base::{Message, MessageBuilder, Name, ParsedName, ParsedRecord, Ttl};
use domain::rdata::{A, Aaaa, Cname, Https, Soa};

use super::https_record::{self, HttpsRecordSet, ParsedHttpsRecord};

/// The size in bytes of the receive buffer that queries announce (EDNS). Responses of this size are
/// not fragmented on any usual path (RFC 9715).
pub const UDP_PAYLOAD_SIZE: u16 = 1232;
/// The largest number of CNAME records in a chain that are followed.
const MAX_ALIASES: usize = 16;
/// The longest time for which a negative answer is cached (RFC 2308 §5).
const MAX_NEGATIVE_TTL: Duration = Duration::from_secs(3 * 3600);
/// The longest time for which an answer is cached (RFC 8767 §4).
const MAX_TTL: Duration = Duration::from_secs(7 * 24 * 3600);

/// The type of record that a query asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DnsRecordType {
    /// A records: IPv4 addresses.
    A,
    /// AAAA records: IPv6 addresses.
    Aaaa,
    /// HTTPS records: endpoints and protocols (RFC 9460).
    Https,
}

impl DnsRecordType {
    fn rtype(self) -> Rtype {
        match self {
            Self::A => Rtype::A,
            Self::Aaaa => Rtype::AAAA,
            Self::Https => Rtype::HTTPS,
        }
    }
}

/// The error for a name that DNS cannot encode: it has an empty label, a label of over 63 bytes, or
/// over 253 bytes in all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DnsNameError;

impl fmt::Display for DnsNameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not a host name: a label is empty or longer than 63 bytes, or the name longer than 253")
    }
}

impl std::error::Error for DnsNameError {}

/// A query for the records of one type of a name.
#[derive(Clone, Copy, Debug)]
pub struct DnsQuery<'a> {
    /// The absolute name to look up, without a dot at its end.
    pub name: &'a str,
    /// The type of DNS record to ask for.
    pub record_type: DnsRecordType,
    /// The identifier of the query, which the response repeats. It must be random, as a protection
    /// against forged responses (RFC 5452).
    pub id: u16,
    /// True to announce a receive buffer of [`UDP_PAYLOAD_SIZE`] bytes (EDNS).
    pub edns: bool,
    /// True to set the AD bit, which asks the server to report whether it has validated the answer
    /// (RFC 6840 §5.7).
    pub trust_ad: bool,
}

/// The content of a response to a [`DnsQuery`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DnsResponse {
    /// The name exists. The list is empty if the name has no address of the requested type.
    Addresses {
        /// The addresses, in the order of the response.
        addresses: Vec<IpAddr>,
        /// The time for which the answer may be cached.
        ttl: Duration,
    },
    /// The name exists. The list is empty if the name has no HTTPS records.
    HttpsRecords {
        /// The usable records in the response.
        records: HttpsRecordSet,
        /// The time for which the answer may be cached.
        ttl: Duration,
    },
    /// The name does not exist (NXDOMAIN).
    NoSuchName {
        /// The time for which the answer may be cached.
        ttl: Duration,
    },
    /// The response did not fit into a datagram: repeat the query over TCP.
    Truncated,
    /// The server does not understand the query (FORMERR, NOTIMP). It may understand the query
    /// without EDNS.
    NotUnderstood,
    /// The server cannot answer (SERVFAIL, REFUSED …), or its answer makes no sense. Another server
    /// may answer. The text describes the failure.
    ServerFailure(Cow<'static, str>),
}

impl DnsResponse {
    /// Returns the response with its TTL reduced by `age`, the time that the response has spent in
    /// an HTTP cache (RFC 8484 section 5.1).
    #[must_use]
    pub fn with_age(mut self, age: Duration) -> Self {
        if let Self::Addresses { ttl, .. } | Self::HttpsRecords { ttl, .. } | Self::NoSuchName { ttl } = &mut self {
            *ttl = ttl.saturating_sub(age);
        }
        self
    }
}

impl DnsQuery<'_> {
    /// Encodes the query.
    ///
    /// # Errors
    /// [`DnsNameError`] if the name cannot be encoded.
    pub fn to_bytes(&self) -> Result<Vec<u8>, DnsNameError> {
        let name = self.wire_name()?;
        let mut builder = MessageBuilder::new_vec();
        let header = builder.header_mut();
        header.set_id(self.id);
        header.set_rd(true);
        header.set_ad(self.trust_ad);
        let mut builder = builder.question();
        builder.push((&name, self.record_type.rtype())).map_err(|_| DnsNameError)?;
        if !self.edns {
            return Ok(builder.finish());
        }
        let mut builder = builder.additional();
        builder
            .opt(|opt| {
                opt.set_udp_payload_size(UDP_PAYLOAD_SIZE);
                Ok(())
            })
            .map_err(|_| DnsNameError)?;
        Ok(builder.finish())
    }

    fn wire_name(&self) -> Result<Name<Vec<u8>>, DnsNameError> {
        let mut builder = NameBuilder::new_vec();
        for label in self.name.split('.') {
            if label.is_empty() {
                return Err(DnsNameError);
            }
            builder.append_label(label.as_bytes()).map_err(|_| DnsNameError)?;
        }
        builder.into_name().map_err(|_| DnsNameError)
    }

    /// Parses a received message. Returns `None` if the message does not answer this query: it has
    /// another identifier or another question, or is malformed before the end of the question. Drop
    /// such a message and continue to wait for the true response (RFC 5452 §4).
    #[must_use]
    pub fn parse_response(&self, bytes: &[u8]) -> Option<DnsResponse> {
        let message = Message::from_octets(bytes).ok()?;
        let header = message.header();
        let name = self.wire_name().ok()?;
        if header.id() != self.id || !header.qr() || header.opcode() != Opcode::QUERY {
            return None;
        }
        match message.sole_question() {
            Ok(question)
                if question.qname().name_eq(&name)
                    && question.qtype() == self.record_type.rtype()
                    && question.qclass() == Class::IN => {}
            // Some servers send an error without the question.
            Err(_) if message.header_counts().qdcount() == 0 && header.rcode() != Rcode::NOERROR => {}
            _ => return None,
        }
        Some(match header.rcode() {
            _ if header.tc() => DnsResponse::Truncated,
            Rcode::NOERROR => self.records(&message, &name),
            Rcode::NXDOMAIN => DnsResponse::NoSuchName { ttl: negative_ttl(&message) },
            Rcode::FORMERR | Rcode::NOTIMP => DnsResponse::NotUnderstood,
            Rcode::SERVFAIL => DnsResponse::ServerFailure("SERVFAIL".into()),
            Rcode::REFUSED => DnsResponse::ServerFailure("REFUSED".into()),
            _ => DnsResponse::ServerFailure("an unknown error".into()),
        })
    }

    /// Returns the records at the end of the CNAME chain that starts at `name`. Records of other
    /// names are ignored.
    fn records(&self, message: &Message<&[u8]>, name: &Name<Vec<u8>>) -> DnsResponse {
        let malformed = DnsResponse::ServerFailure("a malformed answer".into());
        let Ok(answer) = message.answer() else { return malformed };
        let mut owner = QueriedOrParsedDnsName::Own(name);
        let mut ttl = MAX_TTL;
        for _ in 0..=MAX_ALIASES {
            let (mut found, mut alias) = (FoundRecords::default(), None);
            for record in answer {
                let Ok(record) = record else { return malformed };
                if record.class() != Class::IN || !owner.matches(&record.owner()) {
                    continue;
                }
                match (found.add_if_wanted(self.record_type, &record), record.to_record::<Cname<ParsedName<&[u8]>>>()) {
                    (Ok(true), _) => {}
                    (_, Ok(Some(cname))) => alias = Some(*cname.data().cname()),
                    (Err(_), _) | (_, Err(_)) => return malformed,
                    _ => continue,
                }
                ttl = ttl.min(capped_ttl(record.ttl()));
            }
            match alias {
                Some(next) if found.is_empty() => owner = QueriedOrParsedDnsName::Parsed(next),
                None if found.is_empty() => {
                    return found.into_response(self.record_type, ttl.min(negative_ttl(message)));
                }
                _ => return found.into_response(self.record_type, ttl),
            }
        }
        DnsResponse::ServerFailure("an endless chain of aliases".into())
    }
}

/// The records of the requested type that a response contains for one name.
#[derive(Default)]
struct FoundRecords {
    addresses: Vec<IpAddr>,
    https: Vec<ParsedHttpsRecord>,
}

impl FoundRecords {
    /// Adds the record to `self` if its type is `wanted`. Returns true if the record was added.
    fn add_if_wanted(&mut self, wanted: DnsRecordType, record: &ParsedRecord<'_, &[u8]>) -> Result<bool, ParseError> {
        match wanted {
            DnsRecordType::A => {
                let Some(found) = record.to_record::<A>()? else { return Ok(false) };
                self.addresses.push(IpAddr::V4(found.data().addr()));
            }
            DnsRecordType::Aaaa => {
                let Some(found) = record.to_record::<Aaaa>()? else { return Ok(false) };
                self.addresses.push(IpAddr::V6(found.data().addr()));
            }
            DnsRecordType::Https if record.rtype() != Rtype::HTTPS => return Ok(false),
            DnsRecordType::Https => self.https.push(match record.to_record::<Https<&[u8], ParsedName<&[u8]>>>() {
                Ok(Some(found)) => https_record::parse(found.data(), &record.owner()),
                _ => ParsedHttpsRecord::Malformed,
            }),
        }
        Ok(true)
    }

    fn is_empty(&self) -> bool {
        self.addresses.is_empty() && self.https.is_empty()
    }

    fn into_response(self, wanted: DnsRecordType, ttl: Duration) -> DnsResponse {
        match wanted {
            DnsRecordType::Https => {
                DnsResponse::HttpsRecords { records: https_record::choose_record_set(self.https), ttl }
            }
            _ => DnsResponse::Addresses { addresses: self.addresses, ttl },
        }
    }
}

/// A reference to a DNS name: the queried name, or a name that was parsed from a response.
enum QueriedOrParsedDnsName<'a> {
    Own(&'a Name<Vec<u8>>),
    Parsed(ParsedName<&'a [u8]>),
}

impl QueriedOrParsedDnsName<'_> {
    fn matches(&self, other: &impl ToName) -> bool {
        match self {
            Self::Own(name) => name.name_eq(other),
            Self::Parsed(name) => name.name_eq(other),
        }
    }
}

/// Returns the time for which a record may be cached. A TTL with the highest bit set counts as 0
/// (RFC 2181 §8).
fn capped_ttl(ttl: Ttl) -> Duration {
    let seconds = ttl.as_secs();
    if seconds > i32::MAX as u32 { Duration::ZERO } else { Duration::from_secs(seconds.into()).min(MAX_TTL) }
}

/// Returns the time for which a negative answer may be cached, from the zone's SOA record (RFC 2308
/// §5). Without an SOA record, the time is zero.
fn negative_ttl(message: &Message<&[u8]>) -> Duration {
    let Ok(authority) = message.authority() else { return Duration::ZERO };
    let zone = authority.limit_to::<Soa<ParsedName<&[u8]>>>().flatten().next();
    zone.map_or(Duration::ZERO, |record| {
        capped_ttl(record.ttl()).min(capped_ttl(record.data().minimum())).min(MAX_NEGATIVE_TTL)
    })
}

#[cfg(test)]
mod tests;
