//! Events of a transfer for observers: everything that it sends and receives, without secrets.
//!
//! ```
//! use haul::trace::{TraceEvent, TransferObserver};
//!
//! #[derive(Debug)]
//! struct Printer;
//!
//! impl TransferObserver for Printer {
//!     fn event(&self, event: &TraceEvent<'_>) {
//!         if let TraceEvent::Response { head } = event {
//!             eprintln!("{}", head.status());
//!         }
//!     }
//! }
//! ```

use std::borrow::Cow;
use std::time::Duration;
use std::{fmt, io};

use haul_policy::retry;
use haul_policy::secret_fields::is_hidden_field;
use haul_policy::target::Target;

use haul_proto::request::RequestHead;
use haul_proto::response_head::{Fields, ProtocolVersion, ResponseHead};

use crate::Error;
use crate::transfer_facts::TransferFacts;
use crate::transfer_outcome::TransferOutcome;

/// An event during a transfer, which is reported to an observer.
#[derive(Debug, Clone)]
pub enum TraceEvent<'a> {
    /// A message for people. Its text may change.
    Info(Cow<'a, str>),
    /// A request is being sent. The values of [fields that may hold
    /// secrets](haul_policy::secret_fields::is_hidden_field) are replaced by `[redacted]`.
    Request {
        /// The request line and the header fields. Each line ends in a line feed.
        head: Cow<'a, str>,
    },
    /// The head of a response was received. [`Milestone::Head`] is reported before it.
    Response {
        /// The head of the response, as received.
        head: &'a ResponseHead,
    },
    /// An interim response (1xx) was received.
    Interim {
        /// The head of the interim response, as received.
        head: &'a ResponseHead,
    },
    /// The server sent something other than HTTP. Its first line is reported, and the transfer
    /// fails.
    NotHttp {
        /// The line as received, without its end.
        line: &'a [u8],
    },
    /// A proxy has responded to a CONNECT.
    Connect {
        /// The head of the proxy's response, as received.
        head: &'a ResponseHead,
    },
    /// The trailer section of a body was received (RFC 9110 section 6.5).
    Trailers {
        /// The trailer fields, as received.
        fields: &'a Fields,
    },
    /// The last attempt failed. Another attempt follows after a pause.
    Retry {
        /// The result of the last attempt, which is the reason for another attempt.
        trouble: retry::AttemptOutcome,
        /// The time until the next attempt.
        wait: Duration,
        /// The number of attempts that the retry rules still allow, including the next one.
        left: u32,
        /// The outcome of the failed attempt. `None` if the attempt received a response whose
        /// status is the reason for the retry.
        failed: Option<&'a TransferOutcome>,
    },
    /// Content of a request is being sent. This is reported only if
    /// [`TransferObserver::wants_content`] returns true.
    Sent(&'a [u8]),
    /// Content of a response was received. It is not decoded yet. This is reported only if
    /// [`TransferObserver::wants_content`] returns true.
    Received(&'a [u8]),
    /// The transfer has reached a milestone, such as an open connection or the head of the
    /// response.
    Milestone {
        /// The milestone that was reached.
        milestone: Milestone,
        /// The time since the current attempt of the transfer began.
        at: Duration,
        /// The target of the exchange. After a redirect, the new target.
        target: &'a Target,
        /// The sizes, times and addresses of the transfer so far.
        facts: &'a TransferFacts,
        /// The failure that ended the transfer or its last attempt; `None` if there was none.
        error: Option<&'a Error>,
    },
}

/// A milestone of a transfer. The milestones of an exchange are reported in the order of the
/// variants. [`Resolved`](Self::Resolved), [`Connected`](Self::Connected) and
/// [`Secured`](Self::Secured) are left out if the connection is already open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Milestone {
    /// The host name was resolved.
    Resolved,
    /// The TCP connection was established.
    Connected,
    /// The TLS handshake is complete.
    Secured,
    /// The head of the request is being sent.
    Sent,
    /// The head of the response was received.
    Head,
    /// A redirect will be followed.
    Redirected,
    /// The last attempt failed. Another attempt follows after this pause.
    Retry(Duration),
    /// The transfer has ended: its body was received, or it failed.
    Done,
}

/// An observer of transfers. Any worker thread may call it.
pub trait TransferObserver: Send + Sync + fmt::Debug {
    /// Receives an event of a transfer. haul calls this method for each event.
    fn event(&self, event: &TraceEvent<'_>);

    /// Returns true if the observer needs [`TraceEvent::Sent`] and [`TraceEvent::Received`]. If so,
    /// bodies pass through user space, and the kernel cannot move them directly (`splice`,
    /// `sendfile`). By default, returns false.
    fn wants_content(&self) -> bool {
        false
    }

    /// Returns an error to make the transfer fail, for example because the observer cannot write to
    /// its file. The transfer calls this after the head of each final response and after trailers.
    /// By default, returns `None`.
    fn failure(&self) -> Option<Error> {
        None
    }
}

/// Returns the text of a system error as `strerror(3)` returns it, without the error number that
/// Rust appends.
///
/// ```
/// use std::io::Error;
/// assert_eq!(haul::trace::system_error_text(&Error::from_raw_os_error(111)), "Connection refused");
/// ```
#[must_use]
pub fn system_error_text(error: &io::Error) -> String {
    let mut text = error.to_string();
    if let Some(end) = text.find(" (os error") {
        text.truncate(end);
    }
    text
}

/// Returns the lines of a trailer section without the final empty line. Each line ends in CR LF,
/// even if it was received with a different line ending.
///
/// ```
/// assert_eq!(haul::trace::trailer_lines(b"A: b\nC: d\r\n\n"), b"A: b\r\nC: d\r\n");
/// ```
#[must_use]
pub fn trailer_lines(raw: &[u8]) -> Vec<u8> {
    let lines = raw.split(|&byte| byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line));
    lines.filter(|line| !line.is_empty()).flat_map(|line| [line, b"\r\n"]).flatten().copied().collect()
}

/// Makes the trace event for a request that is sent in the protocol version `version`. The values
/// of secret fields are replaced by `[redacted]`.
pub(crate) fn request_event(request: &RequestHead<'_>, version: ProtocolVersion) -> TraceEvent<'static> {
    let mut head = format!("{} {} {version}\n", request.method, request.target);
    for (name, value) in request.fields {
        let value = if is_hidden_field(name) { "[redacted]".into() } else { String::from_utf8_lossy(value) };
        // Nothing follows the colon of an empty field.
        let blank = if value.is_empty() { "" } else { " " };
        head.push_str(&format!("{name}:{blank}{value}\n"));
    }
    TraceEvent::Request { head: head.into() }
}
