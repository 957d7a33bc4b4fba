//! Outcome of an exchange and of a transfer.

use std::time::{Duration, Instant};

use haul_policy::target::Target;
use haul_proto::head::{Fields, Head};

use super::Transfer;
use crate::error::Stage;
use crate::facts::Facts;
use crate::{Error, Result};

/// The next step of a transfer when an exchange is over.
#[derive(Debug)]
pub enum After {
    /// The transfer is finished.
    Done(Result<()>),
    /// The transfer needs another exchange, after this delay.
    Again(Duration),
}

/// The stage at which an exchange broke.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Broke {
    /// No connection could be made: nothing was sent.
    BeforeSending,
    /// A connection that had served before broke before the first byte of the response: the peer
    /// most likely closed it while it was idle.
    WhileStale,
    /// No byte of the response had come.
    BeforeResponse,
    /// In the head or the body of the response.
    InResponse,
    /// The peer broke the protocol: it would again.
    ByProtocol,
}

/// A transfer at its end.
#[derive(Debug)]
pub struct Outcome {
    /// `Ok` if the body was delivered completely.
    pub result: Result<()>,
    /// The target of the last exchange.
    pub target: Target,
    /// The head of the last response.
    pub head: Option<Head>,
    /// Sizes, times and addresses.
    pub facts: Box<Facts>,
    /// The caller's mark.
    pub tag: u64,
    /// The redirects that were followed, where [`keep_history`](crate::RequestOptions::keep_history) asks for them.
    pub history: Vec<Redirected>,
    /// The trailer section of the body (RFC 9110 section 6.5), if there was one.
    pub trailers: Option<Fields>,
}

impl Outcome {
    /// The outcome of a transfer that failed before any exchange.
    #[must_use]
    pub fn unsent(target: Target, error: Error, started: Instant) -> Self {
        let facts = Box::new(Facts::new(started));
        Self { result: Err(error), target, head: None, facts, tag: 0, history: Vec::new(), trailers: None }
    }
}

impl Transfer {
    /// An error as this transfer's: it names the URL, and whether a request had been sent.
    pub(crate) fn own(&self, error: Error) -> Error {
        let stage = if self.attempt.has_sent { Stage::Sent } else { Stage::Unknown };
        let error = error.with_url(self.current.target.to_url()).at(stage);
        if self.current.is_redirected() { error.asked_as(self.current.first_target().to_url()) } else { error }
    }
}

/// A redirect that was followed.
#[derive(Debug, Clone)]
pub struct Redirected {
    /// The requested target.
    pub target: Target,
    /// The head that led on.
    pub head: Head,
}
