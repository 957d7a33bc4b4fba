//! The decisions of a DNS stub resolver (RFC 1034 §5.3.1): which question to ask, which server to
//! ask, and how to read the answer.
//!
//! | module | subject |
//! |---|---|
//! | [`resolv_conf`] | name servers, search list and options: `/etc/resolv.conf` |
//! | [`hosts`] | names with fixed addresses: `/etc/hosts` |
//! | [`nsswitch`] | the sources that the system consults for names: `/etc/nsswitch.conf` |
//! | [`message`] | queries and responses on the wire |
//! | [`https_record`] | endpoints and protocols of an origin: HTTPS records (RFC 9460) |
//! | [`query_schedule`] | the queries of one lookup: servers, retries, search list, both address families |
//! | [`address_order`] | the order of the addresses of a name (RFC 6724) |
//!
//! Sockets, files and clocks are the engine's. Messages are written and parsed by the crate
//! `domain`.
//!
//! ```
//! use haul_policy::dns::query_schedule::{DnsLookupStatus, NameLookup};
//! use haul_policy::dns::resolv_conf::ResolvConf;
//! use haul_policy::MonotonicTime;
//!
//! let config = std::sync::Arc::new(ResolvConf::parse("nameserver 192.0.2.53\nsearch example.com\n"));
//! let mut lookup = NameLookup::new("www", &config, 0)?;
//! let queries = lookup.start(MonotonicTime(0));
//! assert_eq!(queries.len(), 2); // A and AAAA of www.example.com
//! assert_eq!(lookup.candidate(), "www.example.com");
//! assert!(matches!(lookup.status(), DnsLookupStatus::Waiting));
//! # Ok::<(), haul_policy::dns::message::DnsNameError>(())
//! ```

pub mod address_order;
pub mod hosts;
pub mod https_record;
pub mod message;
pub mod nsswitch;
pub mod query_schedule;
pub mod resolv_conf;
