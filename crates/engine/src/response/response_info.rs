//! The metadata of a response.

use haul_policy::target::Target;
use haul_proto::response_head::{Fields, ProtocolVersion, ResponseHead};

#[cfg(doc)]
use crate::ErrorKind;
use crate::Result;
use crate::transfer::{FollowedRedirect, TransferOutcome, bad_status};
use crate::transfer_facts::TransferFacts;

/// The head of a response, and the facts about its transfer. [`Response`](crate::Response) and
/// [`AsyncResponse`](crate::AsyncResponse) dereference to it.
#[derive(Debug, Clone)]
pub struct ResponseInfo {
    pub(super) head: ResponseHead,
    pub(super) target: Target,
    pub(super) facts: Box<TransferFacts>,
    pub(super) history: Vec<FollowedRedirect>,
    pub(super) trailers: Option<Fields>,
}

impl ResponseInfo {
    /// Returns the status code (RFC 9110 section 15).
    #[must_use]
    pub fn status(&self) -> u16 {
        self.head.status()
    }

    /// Returns true if the status is from 200 to 299.
    #[must_use]
    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status())
    }

    /// Returns the HTTP version of the response.
    #[must_use]
    pub fn version(&self) -> ProtocolVersion {
        self.head.version()
    }

    /// Returns the head of the response: its reason phrase, and all its fields in the received
    /// order and spelling, including repeated fields.
    #[must_use]
    pub fn head(&self) -> &ResponseHead {
        &self.head
    }

    /// Returns the first value of the field with this name (case-insensitive). Returns `None` if
    /// there is no such field, or if the value is not text (visible ASCII or UTF-8).
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        std::str::from_utf8(self.head.get(name)?).ok()
    }

    /// Returns the target of the response, after redirects.
    #[must_use]
    pub fn target(&self) -> &Target {
        &self.target
    }

    /// Returns the URL of the response, without user and password.
    #[must_use]
    pub fn url(&self) -> String {
        self.target.to_url()
    }

    /// Returns the times, addresses and sizes of the transfer so far. They are complete once the
    /// body has been read.
    #[must_use]
    pub fn facts(&self) -> &TransferFacts {
        &self.facts
    }

    /// Returns the redirects that were followed, in order, if
    /// [`keep_history`](crate::RequestOptions::keep_history) is set.
    #[must_use]
    pub fn history(&self) -> &[FollowedRedirect] {
        &self.history
    }

    /// Returns the trailer section of the response (RFC 9110 section 6.5). Returns `None` before
    /// the body has been read to its end, and if the body has no trailers.
    #[must_use]
    pub fn trailers(&self) -> Option<&Fields> {
        self.trailers.as_ref()
    }

    /// Returns the value of `Content-Length`: the length of the body in bytes before decoding.
    /// Returns `None` without a valid value.
    #[must_use]
    pub fn content_length(&self) -> Option<u64> {
        std::str::from_utf8(self.head.get("content-length")?).ok()?.trim().parse().ok()
    }

    /// Returns an error if the status is 400 or above.
    ///
    /// # Errors
    /// [`ErrorKind::Status`] if the status is 400 or above.
    pub(super) fn check_status(&self) -> Result<()> {
        check_status(&self.head, &self.target)
    }

    /// Stores the final facts about a transfer that has ended, such as sizes and times. Returns the
    /// result of the transfer.
    pub(super) fn set_outcome(&mut self, outcome: TransferOutcome) -> Result<()> {
        self.facts = outcome.facts;
        self.trailers = outcome.trailers;
        outcome.result
    }
}

/// Returns an error if the status of this head is 400 or above. The error names `target`.
pub(super) fn check_status(head: &ResponseHead, target: &Target) -> Result<()> {
    if head.status() < 400 { Ok(()) } else { Err(bad_status(head).with_url(target.to_url())) }
}
