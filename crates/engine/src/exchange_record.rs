//! Records of exchanges as they were on the wire, for archives: each request with its response.
//!
//! A transfer has one record for each exchange: redirects, challenges and retries have separate
//! records. A record contains the text of HTTP/1 as it was sent and received, with chunk framing
//! and content codings. The heads of HTTP/2 and HTTP/3 are written in the syntax of HTTP/1.1, and
//! their content without framing.
//!
//! ```text
//!  begin ─▶ request_content* ─▶ response_head ─▶ response_body* ─▶ end
//!    └──────── dropped: there was no response, or the transfer was abandoned
//! ```
//!
//! Left out: interim responses (1xx), CONNECT, and trailer fields of HTTP/2 and HTTP/3.

use std::fmt;
use std::net::IpAddr;

use haul_policy::target::Target;
use haul_proto::response_head::ProtocolVersion;

use crate::transfer_facts::TlsFacts;
#[cfg(doc)]
use crate::transfer_facts::TransferFacts;
use crate::{Error, Result};

/// A factory of [`ExchangeRecordWriter`]s, for example for a WARC archive. The factory must be
/// thread-safe, because any worker thread may call it.
pub trait ExchangeRecorder: Send + Sync + fmt::Debug {
    /// Begins the record of an exchange (a request and its response) whose request is about to be
    /// sent.
    fn begin(&self, start: &ExchangeStart<'_>) -> Box<dyn ExchangeRecordWriter>;

    /// Returns the error that ended all recording, such as a full disk; `None` while recording is
    /// possible. After such an error, transfers fail before they send a request.
    fn failure(&self) -> Option<Error>;
}

/// The record of one exchange (a request and its response). If the record is dropped without a call
/// of [`end`](Self::end), the exchange was abandoned or had no response.
pub trait ExchangeRecordWriter: Send {
    /// Adds content of the request, exactly as it is sent.
    fn request_content(&mut self, bytes: &[u8]);

    /// Adds the head of the final response, as it was received.
    fn response_head(&mut self, head: &[u8]);

    /// Adds bytes of the response after its head, as they were received: with chunk framing and
    /// content codings in HTTP/1, without framing in HTTP/2 and HTTP/3.
    ///
    /// # Errors
    /// The record cannot be kept. The transfer fails with this error.
    fn response_body(&mut self, bytes: &[u8]) -> Result<()>;

    /// Ends the record of an exchange that has a response. Returns `Some(id)` if the recorder holds
    /// the record back until the whole transfer has ended, and `None` otherwise.
    /// [`held_records`](TransferFacts::held_records) lists these ids.
    ///
    /// # Errors
    /// The record cannot be written. The transfer fails with this error.
    fn end(self: Box<Self>, end: ExchangeEnd) -> Result<Option<u64>>;
}

/// A request that is about to be sent, and the connection that carries it.
#[derive(Debug, Clone, Copy)]
pub struct ExchangeStart<'a> {
    /// The target of the request.
    pub target: &'a Target,
    /// The head of the request as it is sent. Secrets such as credentials are not removed.
    pub head: &'a [u8],
    /// The version of the protocol in which the request is sent.
    pub version: ProtocolVersion,
    /// The address of the server; `None` behind a proxy, or if the connection uses a Unix socket.
    pub server: Option<IpAddr>,
    /// The TLS session of the connection; `None` without TLS.
    pub tls: Option<&'a TlsFacts>,
}

/// The way in which an exchange ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExchangeEnd {
    /// The response is complete.
    Complete,
    /// The response ended early, or its remaining part was not received, for this reason.
    Truncated(TruncationReason),
}

/// The reason why the end of a response is missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TruncationReason {
    /// The response is longer than allowed, or longer than the transfer needs.
    Length,
    /// A time limit was reached.
    Time,
    /// The connection or the stream ended.
    Disconnect,
    /// Any other reason.
    Unspecified,
}
