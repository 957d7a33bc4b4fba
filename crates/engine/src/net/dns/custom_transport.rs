//! The interface for transports of DNS messages other than UDP and TCP, such as HTTPS
//! ([`DnsOverHttps`]). A program can implement it.
//!
//! [`DnsOverHttps`]: crate::dns_over_https::DnsOverHttps

use std::time::Duration;

use rustix::fd::BorrowedFd;

use crate::Result;

/// Opens channels to a DNS server. Each thread that runs lookups opens one channel.
pub trait DnsTransport: Send + Sync {
    /// Opens a channel to the server. Nothing is sent before the first query.
    ///
    /// # Errors
    /// The system has no descriptor or thread left.
    fn open(&self) -> Result<Box<dyn DnsChannel>>;
}

/// A connection to one DNS server that carries any number of queries at the same time.
pub trait DnsChannel {
    /// Returns the name of the server for error messages, such as its URL.
    fn server(&self) -> &str;

    /// Starts sending a query, and returns its ID. Never blocks. If the query cannot be sent,
    /// [`receive`](Self::receive) returns the error.
    fn send(&mut self, query: Vec<u8>) -> u64;

    /// Returns the ID of a finished query, with its response or error. Returns `None` if no further
    /// query has finished.
    fn receive(&mut self) -> Option<(u64, Result<DnsMessage>)>;

    /// Cancels the query with this ID.
    fn cancel(&mut self, number: u64);

    /// Returns the descriptor that is readable while [`receive`](Self::receive) has a result.
    fn fd(&self) -> BorrowedFd<'_>;
}

/// A DNS message as a transport received it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DnsMessage {
    /// The bytes of the message (RFC 1035 section 4).
    pub bytes: Vec<u8>,
    /// The time that the response has spent in caches on the path from the server. The remaining
    /// TTL of its records is shorter by this time.
    pub age: Duration,
}
