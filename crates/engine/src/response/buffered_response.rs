//! Responses with their complete bodies.

use std::time::Instant;

use haul_policy::target::Target;
use haul_proto::response_head::{Fields, ResponseHead};

use super::charset::{self, charset};
use super::missing_head_error;
use super::response_info::check_status;
#[cfg(doc)]
use crate::ErrorKind;
use crate::body::delivery::BodyDelivery;
use crate::drive::blocking;
use crate::request::Request;
use crate::sink::Sink;
use crate::sink::memory::MemorySink;
use crate::transfer::{FollowedRedirect, Transfer, TransferOutcome};
use crate::transfer_facts::TransferFacts;
use crate::{Client, Result};

/// A response with its complete body.
///
/// ```
/// # let origin = testkit::origin::Origin::builder().start().unwrap();
/// # let url = origin.url("/small");
/// let client = haul::Client::new();
/// let reply = client.call(client.get(&url).build()?)?;
/// assert_eq!((reply.status(), &reply.body[..]), (200, &b"small\n"[..]));
/// assert_eq!(reply.into_text(), "small\n");
/// # Ok::<(), haul::Error>(())
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub struct BufferedResponse {
    /// The head of the final response.
    pub head: ResponseHead,
    /// The target of the final response, after redirects.
    pub target: Target,
    /// Facts about the transfer of this response: sizes, times and addresses.
    pub facts: Box<TransferFacts>,
    /// The redirects that were followed, if [`keep_history`](crate::RequestOptions::keep_history)
    /// is set.
    pub history: Vec<FollowedRedirect>,
    /// The trailer section of the body (RFC 9110 section 6.5); `None` if there was none.
    pub trailers: Option<Fields>,
    /// The complete body, decoded if decoding was requested.
    pub body: Vec<u8>,
}

impl BufferedResponse {
    /// Returns the status code (RFC 9110 section 15).
    #[must_use]
    pub fn status(&self) -> u16 {
        self.head.status()
    }

    /// Returns this response if its status is below 400, and an error otherwise.
    ///
    /// # Errors
    /// [`ErrorKind::Status`] if the status is 400 or above.
    pub fn error_for_status(self) -> Result<Self> {
        check_status(&self.head, &self.target).map(|()| self)
    }

    /// Returns the body as text. The encoding is determined as by
    /// [`Response::text`](super::Response::text): from the byte order mark or the `Content-Type`.
    #[must_use]
    pub fn into_text(self) -> String {
        let charset = self.head.get("content-type").and_then(charset);
        charset::decode(self.body, charset.as_deref())
    }

    /// Returns the body, parsed as JSON.
    ///
    /// # Errors
    /// [`ErrorKind::ContentCoding`] if the body is not valid JSON or does not fit the type `T`.
    #[cfg(feature = "json")]
    pub fn json<T: serde::de::DeserializeOwned>(&self) -> Result<T> {
        super::from_json(&self.body, self.target.to_url())
    }

    /// Makes a response from a transfer's outcome and the received body.
    ///
    /// # Errors
    /// The error of the transfer.
    pub(crate) fn from_outcome(outcome: TransferOutcome, body: Vec<u8>) -> Result<Self> {
        let TransferOutcome { result, target, head, facts, history, trailers, .. } = outcome;
        result?;
        Ok(Self { head: head.ok_or_else(missing_head_error)?, target, facts, history, trailers, body })
    }
}

/// Sends a request, and waits for the complete response.
pub(crate) fn call(client: &Client, request: Request) -> Result<BufferedResponse> {
    let (outcome, memory) = perform(client, request, MemorySink::default());
    BufferedResponse::from_outcome(outcome, memory.into_bytes())
}

/// Sends a request, and receives the body of its response into `sink`. Returns the outcome and the
/// sink.
pub(crate) fn perform<S: Sink>(client: &Client, request: Request, sink: S) -> (TransferOutcome, S) {
    let Request { target, options, own } = request;
    let path = BodyDelivery::new(Box::new(sink));
    let transfer = Transfer::with_overrides(target, options, own, path, Instant::now(), 0);
    let (outcome, path) = blocking::run_transfer(client, transfer).into_outcome();
    let sink: Box<dyn std::any::Any> = path.into_sink();
    let sink = sink.downcast::<S>().unwrap_or_else(|_| unreachable!("a path gives back the sink that it was made of"));
    (outcome, *sink)
}
