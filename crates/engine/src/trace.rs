//! What a transfer sends and receives, for observers. Secrets are left out.
//!
//! ```
//! use haul::trace::{Event, Trace};
//!
//! #[derive(Debug)]
//! struct Printer;
//!
//! impl Trace for Printer {
//!     fn event(&self, event: &Event<'_>) {
//!         if let Event::Response { head } = event {
//!             eprintln!("{}", head.status());
//!         }
//!     }
//! }
//! ```

use std::borrow::Cow;
use std::time::Duration;
use std::{fmt, io};

use haul_policy::retry;
use haul_policy::secrets::is_hidden_field;

use haul_proto::head::{Fields, Head};
use haul_proto::request::Request;

use crate::Error;
use crate::transfer::Outcome;

/// Something that happened.
#[derive(Debug, Clone)]
pub enum Event<'a> {
    /// For people to read.
    Info(Cow<'a, str>),
    /// A request goes out. Values of [fields that hold secrets, or may](haul_policy::secrets::is_hidden_field), are replaced.
    Request {
        /// Its head.
        head: Cow<'a, str>,
    },
    /// The head of a response has come.
    Response {
        /// The head, as received.
        head: &'a Head,
    },
    /// An interim response (1xx) has come.
    Interim {
        /// Its head, as received.
        head: &'a Head,
    },
    /// A proxy has answered a CONNECT.
    Connect {
        /// The head of its answer, as received.
        head: &'a Head,
    },
    /// The trailer section of a body has come (RFC 9110 section 6.5).
    Trailers {
        /// Its fields, as received.
        fields: &'a Fields,
    },
    /// The last try failed, and there is another after a wait.
    Retry {
        /// The result of the last try.
        trouble: retry::Outcome,
        /// How long is waited.
        wait: Duration,
        /// How many tries are left, including this one.
        left: u32,
        /// The last try as it would be told of, were it the last of all; none for a status that is no failure.
        failed: Option<&'a Outcome>,
    },
    /// Content goes out. Only for those who want it: [`Trace::wants_content`].
    Sent(&'a [u8]),
    /// Content has come, before decoding. Only for those who want it.
    Received(&'a [u8]),
}

/// Watches transfers, from any worker's thread.
pub trait Trace: Send + Sync + fmt::Debug {
    /// Something happened.
    fn event(&self, event: &Event<'_>);

    /// Whether the content itself is reported, which rules out the direct path. Default no.
    fn wants_content(&self) -> bool {
        false
    }

    /// What keeps a transfer from being a success, for what was to be kept of a head could not be kept. Asked for behind each
    /// head of a final response and behind trailers. Default nothing.
    fn failure(&self) -> Option<Error> {
        None
    }
}

/// The system's words for an error, as `strerror(3)` has them: without the number that Rust puts behind.
///
/// ```
/// use std::io::Error;
/// assert_eq!(haul::trace::system_words(&Error::from_raw_os_error(111)), "Connection refused");
/// ```
#[must_use]
pub fn system_words(error: &io::Error) -> String {
    let mut text = error.to_string();
    if let Some(end) = text.find(" (os error") {
        text.truncate(end);
    }
    text
}

/// A request's head for people, without secrets.
pub(crate) fn request(request: &Request<'_>, version: &str) -> Event<'static> {
    let mut head = format!("{} {} {version}\n", request.method, request.target);
    for (name, value) in request.fields {
        let value = if is_hidden_field(name) { "[redacted]".into() } else { String::from_utf8_lossy(value) };
        head.push_str(&format!("{name}: {value}\n"));
    }
    Event::Request { head: head.into() }
}
