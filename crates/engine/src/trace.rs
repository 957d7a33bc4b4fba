//! What a transfer says and hears, for whoever wants to watch. Secrets are left out.
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
use std::fmt;

use haul_policy::secrets::is_secret_field;
use haul_proto::h1::Request;
use haul_proto::head::Head;

/// Something that happened.
#[derive(Debug, Clone)]
pub enum Event<'a> {
    /// For people to read.
    Info(Cow<'a, str>),
    /// A request goes out. Values of secret fields are replaced.
    Request {
        /// Its head.
        head: Cow<'a, str>,
    },
    /// The head of a response has come.
    Response {
        /// The head, as received.
        head: &'a Head,
    },
}

/// Watches transfers, from any worker's thread.
pub trait Trace: Send + Sync + fmt::Debug {
    /// Something happened.
    fn event(&self, event: &Event<'_>);
}

/// A request's head for people, without secrets.
pub(crate) fn request(request: &Request<'_>) -> Event<'static> {
    let mut head = format!("{} {} HTTP/1.1\n", request.method, request.target);
    for (name, value) in request.fields {
        let value = if is_secret_field(name) { "[redacted]".into() } else { String::from_utf8_lossy(value) };
        head.push_str(&format!("{name}: {value}\n"));
    }
    Event::Request { head: head.into() }
}
