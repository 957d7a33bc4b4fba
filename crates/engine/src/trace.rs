//! Events of a transfer for observers: what it sends and receives, without secrets.
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

/// An event of a transfer.
#[derive(Debug, Clone)]
pub enum Event<'a> {
    /// For people to read.
    Info(Cow<'a, str>),
    /// A request goes out. Values of [fields that hold secrets, or may](haul_policy::secrets::is_hidden_field), are replaced.
    Request {
        /// The request's head.
        head: Cow<'a, str>,
    },
    /// The head of a response has come.
    Response {
        /// The head, as received.
        head: &'a Head,
    },
    /// An interim response (1xx) has come.
    Interim {
        /// The response's head, as received.
        head: &'a Head,
    },
    /// A proxy has answered a CONNECT.
    Connect {
        /// The head of its answer, as received.
        head: &'a Head,
    },
    /// The trailer section of a body has come (RFC 9110 section 6.5).
    Trailers {
        /// The trailer fields, as received.
        fields: &'a Fields,
    },
    /// The last try failed, and there is another after a wait.
    Retry {
        /// The result of the last try.
        trouble: retry::Outcome,
        /// Time until the next try.
        wait: Duration,
        /// Number of tries left, including this one.
        left: u32,
        /// The outcome to report if the last try ends the transfer; `None` for a status that is not
        /// a failure.
        failed: Option<&'a Outcome>,
    },
    /// Content is sent. Reported only if [`Trace::wants_content`] says so.
    Sent(&'a [u8]),
    /// Content is received, before decoding. Reported only if [`Trace::wants_content`] says so.
    Received(&'a [u8]),
}

/// Watches transfers, from any worker's thread.
pub trait Trace: Send + Sync + fmt::Debug {
    /// Reports an event.
    fn event(&self, event: &Event<'_>);

    /// Returns whether the content itself is reported, which rules out the direct path. Default no.
    fn wants_content(&self) -> bool {
        false
    }

    /// Returns the error that makes a transfer fail because part of a head could not be kept as
    /// wanted. Called after each head of a final response and after trailers. Default none.
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
