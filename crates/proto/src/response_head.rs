//! Heads of responses, the same for every HTTP version.
//!
//! ```
//! # use haul_proto::{h1, time::MonotonicTimestamp};
//! # let mut conn = h1::H1Machine::new(h1::H1Config::default());
//! # conn.enqueue(MonotonicTimestamp(0), &h1::RequestHead::default()).unwrap();
//! # conn.advance_output(conn.output().len());
//! # let mut wire = *b"HTTP/1.1 404 Not Found\r\nServer: x\r\nContent-Length: 0\r\n\r\n";
//! # let h1::H1Event::Head { head, .. } = conn.step(MonotonicTimestamp(0), &mut wire).unwrap().event else { panic!() };
//! use haul_proto::response_head::ProtocolVersion;
//!
//! assert_eq!((head.version(), head.status(), head.reason()), (ProtocolVersion::Http11, 404, &b"Not Found"[..]));
//! assert_eq!(head.get("server"), Some(&b"x"[..]));
//! assert!(head.raw().ends_with(b"\r\n\r\n"));
//! ```

pub use crate::fields::Fields;
use alloc::vec::Vec;
use core::fmt;
use core::ops::Range;

/// The HTTP version of a response.
#[derive(Copy, Clone, PartialEq, Eq, Debug, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum ProtocolVersion {
    /// HTTP/1.0 (RFC 1945).
    Http10,
    /// HTTP/1.1 (RFC 9112).
    Http11,
    /// HTTP/2 (RFC 9113).
    Http2,
    /// HTTP/3 (RFC 9114).
    Http3,
}

impl ProtocolVersion {
    /// Returns the number of the version: `1.0`, `1.1`, `2` or `3`.
    #[must_use]
    pub fn number(self) -> &'static str {
        match self {
            ProtocolVersion::Http10 => "1.0",
            ProtocolVersion::Http11 => "1.1",
            ProtocolVersion::Http2 => "2",
            ProtocolVersion::Http3 => "3",
        }
    }
}

impl fmt::Display for ProtocolVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HTTP/")?;
        f.write_str(self.number())
    }
}

/// The head of a response: its status and header fields.
///
/// The head is one buffer with the bytes as received and one list of offsets: two allocations for
/// any number of fields.
#[derive(Clone, PartialEq, Eq)]
pub struct ResponseHead {
    version: ProtocolVersion,
    status: u16,
    reason: (u32, u32),
    fields: Fields,
}

impl ResponseHead {
    /// Creates a response head. `reason` is the start and end of the reason phrase, as offsets in
    /// the raw bytes of `fields`.
    pub(crate) fn new(version: ProtocolVersion, status: u16, reason: (u32, u32), fields: Fields) -> ResponseHead {
        ResponseHead { version, status, reason, fields }
    }

    /// Returns the head without the empty line at the end of its bytes.
    pub(crate) fn without_last_line(mut self) -> ResponseHead {
        self.fields.remove_last_line();
        self
    }

    /// Returns the head for an HTTP/0.9 response, which has no head on the wire: version HTTP/1.0,
    /// status 200 and no fields.
    pub(crate) fn without_text() -> ResponseHead {
        ResponseHead::new(ProtocolVersion::Http10, 200, (0, 0), Fields::new(Vec::new(), Vec::new()))
    }

    /// Parses the bytes that [`ResponseHead::raw`] returned, for example in another process or
    /// after they were stored in a file. Returns `None` if the bytes are not a response head.
    pub fn from_raw(raw: &[u8]) -> Option<ResponseHead> {
        // Offsets have 32 bits.
        (raw.len() <= u32::MAX as usize).then(|| crate::h1::parse_stored_head(raw))?
    }

    /// Returns the HTTP version of the response.
    pub fn version(&self) -> ProtocolVersion {
        self.version
    }

    /// Returns the status code, 100 to 999. Treat a code above 599 like a 5xx (RFC 9110 §15).
    pub fn status(&self) -> u16 {
        self.status
    }

    /// Returns the reason phrase, which is often empty. The peer chooses the text: escape it before
    /// you print it on a terminal.
    pub fn reason(&self) -> &[u8] {
        let reason: Range<usize> = self.reason.0 as usize..self.reason.1 as usize;
        &self.fields.raw()[reason]
    }

    /// Iterates over the names and values of the header fields, in the order and spelling received.
    pub fn fields(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.fields.iter()
    }

    /// Iterates over the names and values of the header fields as bytes. The iterator knows the
    /// number of fields.
    pub fn field_bytes(&self) -> impl ExactSizeIterator<Item = (&[u8], &[u8])> {
        self.fields.iter_bytes()
    }

    /// Iterates over the header fields whose name has a length for which `is_wanted` returns true.
    pub(crate) fn fields_of_length(&self, is_wanted: impl Fn(usize) -> bool) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.fields.iter_of_length(is_wanted)
    }

    /// Returns the value of the first header field with this name. `None` if no field has it. The
    /// letter case of `name` does not matter.
    pub fn get(&self, name: &str) -> Option<&[u8]> {
        self.fields.get(name)
    }

    /// Iterates over the values of all header fields of this name, in the order received. The
    /// letter case of `name` does not matter.
    pub fn get_all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a [u8]> {
        self.fields.get_all(name)
    }

    /// Returns the head as received, from the status line to the empty line at its end. A folded
    /// field is on one line, with a space for each fold (RFC 9112 §5.2).
    ///
    /// HTTP/2 and HTTP/3 have no such text. For them, returns the head in the syntax of HTTP/1:
    /// `HTTP/2 200 ` or `HTTP/3 200 ` (with the space at the end), then the fields with their names
    /// in lower case. Each line ends in CR LF.
    pub fn raw(&self) -> &[u8] {
        self.fields.raw()
    }
}

/// Prints the lengths of field values in place of the values, because a value may be a secret.
impl fmt::Debug for ResponseHead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseHead")
            .field("version", &self.version)
            .field("status", &self.status)
            .field("fields", &self.fields)
            .finish()
    }
}
