//! A response with its whole body, for programs that want it at once.

use std::time::Instant;

use haul_policy::target::Target;
use haul_proto::head::{Fields, Head};

use super::no_head;
use crate::body::path::BodyPath;
use crate::drive::blocking;
use crate::facts::Facts;
use crate::request::Request;
use crate::sink::Sink;
use crate::sink::memory::Memory;
use crate::transfer::{Outcome, Redirected, Transfer};
use crate::{Client, Result};

/// A response and its body, which was read to its end.
///
/// ```no_run
/// let client = haul::Client::new();
/// let reply = client.call(client.get("http://example.test/").build()?)?;
/// assert_eq!((reply.head.status(), &reply.body[..]), (200, &b"hello"[..]));
/// # Ok::<(), haul::Error>(())
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub struct Reply {
    /// The head of the response.
    pub head: Head,
    /// What it is of: where redirects led to.
    pub target: Target,
    /// Sizes, times and addresses.
    pub facts: Facts,
    /// The redirects that led there, where they are kept.
    pub history: Vec<Redirected>,
    /// The trailer section of the body (RFC 9110 section 6.5), where there was one.
    pub trailers: Option<Fields>,
    /// The body, decoded if that was asked for.
    pub body: Vec<u8>,
}

impl Reply {
    /// Of an outcome and the body that came.
    ///
    /// # Errors
    /// The outcome's.
    pub(crate) fn of(outcome: Outcome, body: Vec<u8>) -> Result<Self> {
        let Outcome { result, target, head, facts, history, trailers, .. } = outcome;
        result?;
        Ok(Self { head: head.ok_or_else(no_head)?, target, facts, history, trailers, body })
    }
}

/// Sends a request, and waits for all of its response.
pub(crate) fn call(client: &Client, request: Request) -> Result<Reply> {
    let (outcome, memory) = perform(client, request, Memory::default());
    Reply::of(outcome, memory.into_bytes())
}

/// The same into a sink, which is given back.
pub(crate) fn perform<S: Sink>(client: &Client, request: Request, sink: S) -> (Outcome, S) {
    let Request { target, options, own } = request;
    let path = BodyPath::new(Box::new(sink));
    let transfer = Transfer::with(target, options, own, path, Instant::now(), 0);
    let (outcome, path) = blocking::run_to_end(client, transfer);
    let sink: Box<dyn std::any::Any> = path.into_sink();
    let sink = sink.downcast::<S>().unwrap_or_else(|_| unreachable!("a path gives back the sink that it was made of"));
    (outcome, *sink)
}
