//! The outcome of a transfer.

use std::time::Instant;

use haul_policy::target::Target;
use haul_proto::response_head::{Fields, ResponseHead};

use crate::transfer_facts::TransferFacts;
use crate::{Error, Result};

/// The outcome of a finished transfer: success or an error, the head of the last response, and
/// facts about the transfer such as its sizes and times.
#[derive(Debug)]
pub struct TransferOutcome {
    /// `Ok` if the body was delivered completely, otherwise the error that ended the transfer.
    pub result: Result<()>,
    /// The target of the last request. After redirects, the target of the last redirect.
    pub target: Target,
    /// The head of the last response; `None` if there was none.
    pub head: Option<ResponseHead>,
    /// Facts about the transfer: sizes, times and addresses.
    pub facts: Box<TransferFacts>,
    /// The number by which the caller identifies the transfer. The transfer itself does not use it.
    pub tag: u64,
    /// The redirects that were followed, if [`keep_history`](crate::RequestOptions::keep_history)
    /// is set.
    pub history: Vec<FollowedRedirect>,
    /// The trailer fields of the body (RFC 9110 section 6.5); `None` if there were none.
    pub trailers: Option<Fields>,
}

impl TransferOutcome {
    /// Makes the outcome of a transfer that failed before it sent a request. It has no response
    /// head.
    #[must_use]
    pub fn unsent(target: Target, error: Error, started: Instant) -> Self {
        let facts = Box::new(TransferFacts::new(started));
        Self { result: Err(error), target, head: None, facts, tag: 0, history: Vec::new(), trailers: None }
    }
}

/// A redirect that was followed.
#[derive(Debug, Clone)]
pub struct FollowedRedirect {
    /// The target of the request to which the server responded with the redirect.
    pub target: Target,
    /// The head of the redirect response.
    pub head: ResponseHead,
}
