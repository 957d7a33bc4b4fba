//! What is known of a response besides its body.

use haul_policy::target::Target;
use haul_proto::head::{Fields, Head, Version};

use crate::facts::Facts;
use crate::transfer::{Outcome, Redirected};
use crate::{Error, ErrorKind, Result};

/// The head of a response, and how it came: what [`Response`](crate::Response) and
/// [`AsyncResponse`](crate::AsyncResponse) show of theirs.
#[derive(Debug, Clone)]
pub struct About {
    pub(super) head: Head,
    pub(super) target: Target,
    pub(super) facts: Facts,
    pub(super) history: Vec<Redirected>,
    pub(super) trailers: Option<Fields>,
}

impl About {
    /// The status code (RFC 9110 section 15).
    #[must_use]
    pub fn status(&self) -> u16 {
        self.head.status()
    }

    /// Whether the status is from 200 to 299.
    #[must_use]
    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status())
    }

    /// The version that the server answered in.
    #[must_use]
    pub fn version(&self) -> Version {
        self.head.version()
    }

    /// The head: the reason phrase, all fields in their order and spelling, several of a name.
    #[must_use]
    pub fn head(&self) -> &Head {
        &self.head
    }

    /// The first value under this name, in any case, if it is text (visible ASCII or UTF-8).
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        std::str::from_utf8(self.head.get(name)?).ok()
    }

    /// What the response is of: where redirects led to.
    #[must_use]
    pub fn target(&self) -> &Target {
        &self.target
    }

    /// The same as text; never with a user or a password.
    #[must_use]
    pub fn url(&self) -> String {
        self.target.to_url()
    }

    /// Times, addresses and sizes, as far as they are known: complete when the body was read.
    #[must_use]
    pub fn facts(&self) -> &Facts {
        &self.facts
    }

    /// The redirects that led here, the first one first.
    #[must_use]
    pub fn history(&self) -> &[Redirected] {
        &self.history
    }

    /// The trailer section (RFC 9110 section 6.5), when the body was read to its end and had one.
    #[must_use]
    pub fn trailers(&self) -> Option<&Fields> {
        self.trailers.as_ref()
    }

    /// The length of the body as announced; not of what it decodes to.
    #[must_use]
    pub fn content_length(&self) -> Option<u64> {
        std::str::from_utf8(self.head.get("content-length")?).ok()?.trim().parse().ok()
    }

    /// What is wrong with it, if its status is 400 or above.
    ///
    /// # Errors
    /// [`ErrorKind::Status`] then.
    pub(super) fn check_status(&self) -> Result<()> {
        match self.status() {
            400.. => {
                let reason = String::from_utf8_lossy(self.head.reason());
                let message = format!("the server answered {} {}", self.status(), reason.escape_debug());
                Err(Error::new(ErrorKind::Status, message.trim_end()).with_url(self.url()))
            }
            _ => Ok(()),
        }
    }

    /// The exchange is over: all is known now. What it was comes back.
    pub(super) fn complete(&mut self, outcome: Outcome) -> Result<()> {
        self.facts = outcome.facts;
        self.trailers = outcome.trailers;
        outcome.result
    }
}
