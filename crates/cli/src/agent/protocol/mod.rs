//! The protocol between a call and the agent over the socket.
//!
//! ```text
//!  call                                   agent
//!   Call (request, files) + descriptor ──▶
//!                                      ◀── Began (head, length, validator)     before the first byte is written
//!                   ╌╌╌ the body goes to the descriptor ╌╌╌
//!                                      ◀── Done (facts, error)                 the descriptor is closed by then
//! ```
//!
//! A frame is its length in four bytes, its kind in one, and its content ([`wire`](super::wire)).
//! Nothing here reads or writes a socket: [`Frames`] takes bytes, however they were cut.
//!
//! ```
//! use haul_cli::agent::protocol::{Event, Frames, Order};
//!
//! let bytes = Order::Status.to_frame();
//! let mut frames = Frames::default();
//! frames.push(&bytes[..3]);
//! assert!(frames.next()?.is_none());
//! frames.push(&bytes[3..]);
//! let (kind, content) = frames.next()?.unwrap();
//! assert_eq!(Order::from_frame(kind, &content)?, Order::Status);
//! # Ok::<(), haul_cli::agent::wire::Malformed>(())
//! ```

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use haul::facts::Facts;
use haul::{Error, ErrorKind, Head, Version};
use haul_policy::range::validator::Validator;

use super::wire::{Malformed, Reader, Writer};

/// The longest frame. The longest contents are a request with all its fields and a head, whose own
/// limits are far below.
pub const MAX_FRAME: usize = 1 << 20;

/// The bytes before a frame's content.
const HEADER: usize = 5;

/// A message from a call to the agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Order {
    /// Carry out a request. The descriptor that the body goes to comes with the frame.
    Call {
        /// The request ([`Request::to_bytes`](super::request::Request::to_bytes)).
        request: Vec<u8>,
        /// The files that must be the same for the agent as for the call: the program, then those
        /// that TLS reads.
        files: Vec<Stamp>,
    },
    /// Asks for the agent's status.
    Status,
    /// End once the calls under way are done.
    Stop,
}

/// A message from the agent to a call.
#[derive(Debug)]
pub enum Event {
    /// The response that will be delivered has begun.
    Began(Began),
    /// The call is over, and nothing is written any more.
    Done(Box<Done>),
    /// The agent does not do it; nothing was sent for it, nothing written.
    Refused,
    /// The answer to [`Order::Status`]: lines for people, `name: value`.
    State(String),
    /// The answer to [`Order::Stop`].
    Stops,
}

/// The beginning of a response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Began {
    /// The head of the response, [`Head::raw`].
    pub head: Vec<u8>,
    /// The bytes that will be written, where that is known.
    pub length: Option<u64>,
    /// The length of the whole content.
    pub total: Option<u64>,
    /// The validator by which the content can be resumed, if the response has one.
    pub validator: Option<Validator>,
}

/// The end of a call.
#[derive(Debug)]
pub struct Done {
    /// Sizes, times, addresses.
    pub facts: Facts,
    /// The URL of the last exchange, without user and password.
    pub url: String,
    /// The last response's head.
    pub head: Option<Vec<u8>>,
    /// The error of the transfer; `None` if it succeeded.
    pub error: Option<Failure>,
}

/// An error on its way to the call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    kind: ErrorKind,
    message: String,
    url: Option<String>,
    asked: Option<String>,
}

impl From<&Error> for Failure {
    fn from(error: &Error) -> Self {
        let (url, asked) = (error.url().map(str::to_owned), error.asked_url().map(str::to_owned));
        Self { kind: error.kind(), message: error.cause(), url, asked }
    }
}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Self {
        let error = Error::new(failure.kind, failure.message);
        let error = match failure.url {
            Some(url) => error.with_url(url),
            None => error,
        };
        match failure.asked {
            Some(asked) => error.asked_as(asked),
            None => error,
        }
    }
}

/// The identity of a file: its path and the metadata that show whether it has changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stamp {
    /// The path of the file.
    pub path: PathBuf,
    /// Device, inode, length and the time of the last change in nanoseconds; all zero if the file
    /// does not exist.
    pub what: [u64; 4],
}

impl Stamp {
    /// The file as it is now.
    #[must_use]
    pub fn of(path: &Path) -> Self {
        let what = rustix::fs::stat(path).map_or([0; 4], |stat| {
            #[allow(
                clippy::cast_sign_loss,
                clippy::unnecessary_cast,
                reason = "these have other types on other systems"
            )]
            let changed = (stat.st_mtime as u64).wrapping_mul(1_000_000_000).wrapping_add(stat.st_mtime_nsec as u64);
            #[allow(clippy::cast_sign_loss, clippy::unnecessary_cast, reason = "as above")]
            [stat.st_dev as u64, stat.st_ino as u64, stat.st_size as u64, changed]
        });
        Self { path: path.to_owned(), what }
    }
}

/// The kinds of failure that an agent's transfers end with, each at the place that stands for it in
/// a frame. Any other goes as the first of its exit code, or else as the last of all.
const KINDS: [ErrorKind; 33] = [
    ErrorKind::UnsupportedScheme,
    ErrorKind::Setup,
    ErrorKind::Url,
    ErrorKind::ProxyResolve,
    ErrorKind::Resolve,
    ErrorKind::Connect,
    ErrorKind::Protocol,
    ErrorKind::Http2,
    ErrorKind::Http2Stream,
    ErrorKind::PartialBody,
    ErrorKind::Status,
    ErrorKind::Write,
    ErrorKind::Read,
    ErrorKind::Timeout,
    ErrorKind::Range,
    ErrorKind::TlsHandshake,
    ErrorKind::Changed,
    ErrorKind::Interface,
    ErrorKind::TooManyRedirects,
    ErrorKind::EmptyReply,
    ErrorKind::Send,
    ErrorKind::Checksum,
    ErrorKind::PeerCertificate,
    ErrorKind::ContentCoding,
    ErrorKind::TooLarge,
    ErrorKind::ClientCertificate,
    ErrorKind::Rewind,
    ErrorKind::Auth,
    ErrorKind::CaFile,
    ErrorKind::Proxy,
    ErrorKind::Interrupted,
    ErrorKind::Upload,
    ErrorKind::Receive,
];

fn number_of(kind: ErrorKind) -> u64 {
    let exact = KINDS.iter().position(|known| *known == kind);
    let alike = || KINDS.iter().position(|known| known.exit_code() == kind.exit_code());
    exact.or_else(alike).unwrap_or(KINDS.len() - 1) as u64
}

mod kind {
    pub(super) const CALL: u8 = 1;
    pub(super) const STATUS: u8 = 2;
    pub(super) const STOP: u8 = 3;
    pub(super) const BEGAN: u8 = 16;
    pub(super) const DONE: u8 = 17;
    pub(super) const REFUSED: u8 = 18;
    pub(super) const STATE: u8 = 19;
    pub(super) const STOPS: u8 = 20;
}

fn frame(kind: u8, writer: Writer) -> Vec<u8> {
    let content = writer.into_bytes();
    let length = u32::try_from(content.len()).unwrap_or(u32::MAX);
    [&length.to_le_bytes()[..], &[kind], &content].concat()
}

impl Order {
    /// Returns the message as a frame.
    #[must_use]
    pub fn to_frame(&self) -> Vec<u8> {
        let mut writer = Writer::default();
        let kind = match self {
            Self::Call { request, files } => {
                writer.list(files, |writer, file| {
                    writer.path(&file.path);
                    for number in file.what {
                        writer.number(number);
                    }
                });
                writer.bytes(request);
                kind::CALL
            }
            Self::Status => kind::STATUS,
            Self::Stop => kind::STOP,
        };
        frame(kind, writer)
    }

    /// From a frame.
    ///
    /// # Errors
    /// [`Malformed`] when it is no order.
    pub fn from_frame(kind: u8, content: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(content);
        let order = match kind {
            kind::CALL => {
                let files = reader.list(|reader| {
                    let path = reader.path()?;
                    Ok(Stamp { path, what: [reader.number()?, reader.number()?, reader.number()?, reader.number()?] })
                })?;
                Self::Call { files, request: reader.bytes()?.to_vec() }
            }
            kind::STATUS => Self::Status,
            kind::STOP => Self::Stop,
            _ => return Err(Malformed),
        };
        reader.end()?;
        Ok(order)
    }
}

impl Event {
    /// Returns the message as a frame.
    #[must_use]
    pub fn to_frame(&self) -> Vec<u8> {
        let mut writer = Writer::default();
        let kind = match self {
            Self::Began(began) => {
                writer.bytes(&began.head).maybe(began.length, Writer::number).maybe(began.total, Writer::number);
                let validator = began.validator.as_ref().map(Validator::to_bytes);
                writer.maybe(validator.as_deref(), Writer::bytes);
                kind::BEGAN
            }
            Self::Done(done) => {
                put_facts(&mut writer, &done.facts);
                writer.text(&done.url).maybe(done.head.as_deref(), Writer::bytes);
                writer.maybe(done.error.as_ref(), |writer, error| {
                    writer.number(number_of(error.kind)).text(&error.message);
                    writer.maybe(error.url.as_deref(), Writer::text).maybe(error.asked.as_deref(), Writer::text)
                });
                kind::DONE
            }
            Self::Refused => kind::REFUSED,
            Self::State(text) => {
                writer.text(text);
                kind::STATE
            }
            Self::Stops => kind::STOPS,
        };
        frame(kind, writer)
    }

    /// From a frame; times count from `started`.
    ///
    /// # Errors
    /// [`Malformed`] when it is no event.
    pub fn from_frame(kind: u8, content: &[u8], started: Instant) -> Result<Self, Malformed> {
        let mut reader = Reader::new(content);
        let event = match kind {
            kind::BEGAN => Self::Began(Began {
                head: reader.bytes()?.to_vec(),
                length: reader.maybe(Reader::number)?,
                total: reader.maybe(Reader::number)?,
                validator: reader.maybe(|reader| Validator::from_bytes(reader.bytes()?).ok_or(Malformed))?,
            }),
            kind::DONE => Self::Done(Box::new(Done {
                facts: get_facts(&mut reader, started)?,
                url: reader.text()?,
                head: reader.maybe(Reader::bytes)?.map(<[u8]>::to_vec),
                error: reader.maybe(|reader| {
                    let number: usize = reader.small()?;
                    let kind = *KINDS.get(number).ok_or(Malformed)?;
                    let (message, url, asked) =
                        (reader.text()?, reader.maybe(Reader::text)?, reader.maybe(Reader::text)?);
                    Ok(Failure { kind, message, url, asked })
                })?,
            })),
            kind::REFUSED => Self::Refused,
            kind::STATE => Self::State(reader.text()?),
            kind::STOPS => Self::Stops,
            _ => return Err(Malformed),
        };
        reader.end()?;
        Ok(event)
    }
}

fn put_facts(writer: &mut Writer, facts: &Facts) {
    let Facts {
        started: _,
        method,
        referer,
        status,
        connect_status,
        // It is the head's.
        version: _,
        request_bytes,
        upload_bytes,
        fields,
        proxy_used,
        redirected,
        head_bytes,
        body_bytes,
        decoded_bytes,
        redirects,
        retries,
        requests,
        // Only programs that use the engine itself ask for it.
        progress: _,
        connects,
        connection,
        peer,
        certificate_fault,
        certificates,
        local,
        resolved,
        connected,
        secured,
        sent,
        first_byte,
        total,
        // What --stats tells is of this process alone: with it the agent is not used.
        phases: _,
        earlier: _,
        now: _,
    } = facts;
    writer.number((*status).into()).number((*connect_status).into()).flag(*proxy_used);
    writer.maybe(method.as_deref(), Writer::text).maybe(referer.as_deref(), Writer::text);
    writer.maybe(certificate_fault.as_deref(), Writer::text);
    writer.maybe(certificates.as_deref(), |writer, shown| {
        writer.list(shown, |writer, certificate| {
            writer.bytes(certificate);
        })
    });
    for count in [request_bytes, upload_bytes, head_bytes, body_bytes] {
        writer.number(*count);
    }
    writer.maybe(*decoded_bytes, Writer::number);
    for count in [fields, redirects, retries, requests, connects] {
        writer.number((*count).into());
    }
    writer.maybe(*connection, Writer::number);
    for address in [peer, local] {
        writer.maybe(address.map(|address| address.to_string()).as_deref(), Writer::text);
    }
    for time in [redirected, resolved, connected, secured, sent, first_byte, total] {
        writer.time(*time);
    }
}

fn get_facts(reader: &mut Reader<'_>, started: Instant) -> Result<Facts, Malformed> {
    let address = |reader: &mut Reader<'_>| reader.text()?.parse::<SocketAddr>().map_err(|_| Malformed);
    Ok(Facts {
        status: reader.small()?,
        connect_status: reader.small()?,
        proxy_used: reader.flag()?,
        method: reader.maybe(Reader::text)?.map(Box::from),
        referer: reader.maybe(Reader::text)?.map(Box::from),
        certificate_fault: reader.maybe(Reader::text)?.map(Box::from),
        certificates: reader.maybe(|reader| reader.list(|reader| Ok(reader.bytes()?.to_vec())))?.map(Arc::from),
        request_bytes: reader.number()?,
        upload_bytes: reader.number()?,
        head_bytes: reader.number()?,
        body_bytes: reader.number()?,
        decoded_bytes: reader.maybe(Reader::number)?,
        fields: reader.small()?,
        redirects: reader.small()?,
        retries: reader.small()?,
        requests: reader.small()?,
        connects: reader.small()?,
        connection: reader.maybe(Reader::number)?,
        peer: reader.maybe(address)?,
        local: reader.maybe(address)?,
        redirected: reader.time()?,
        resolved: reader.time()?,
        connected: reader.time()?,
        secured: reader.time()?,
        sent: reader.time()?,
        first_byte: reader.time()?,
        total: reader.time()?,
        ..Facts::new(started)
    })
}

impl Done {
    /// The head, and with it the version among the facts.
    #[must_use]
    pub fn take_head(&mut self) -> Option<Head> {
        let head = self.head.take().and_then(|raw| Head::from_raw(&raw));
        self.facts.version = head.as_ref().map(Head::version).filter(|version: &Version| *version >= Version::Http10);
        head
    }
}

/// Bytes of a stream on their way to frames.
#[derive(Debug, Default)]
pub struct Frames {
    bytes: Vec<u8>,
}

impl Frames {
    /// Bytes that came.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Returns the next complete frame: its kind and content.
    ///
    /// # Errors
    /// [`Malformed`] for a frame that is too long: no later frame can be read.
    #[expect(clippy::should_implement_trait, reason = "it can fail, and after `None` there may be more")]
    pub fn next(&mut self) -> Result<Option<(u8, Vec<u8>)>, Malformed> {
        let Some((header, rest)) = self.bytes.split_at_checked(HEADER) else { return Ok(None) };
        let length = u32::from_le_bytes([header[0], header[1], header[2], header[3]]) as usize;
        if length > MAX_FRAME {
            return Err(Malformed);
        }
        let Some(content) = rest.get(..length) else { return Ok(None) };
        let found = (header[4], content.to_vec());
        self.bytes.drain(..HEADER + length);
        if self.bytes.is_empty() {
            // Secrets of the last one do not lie about in what was reserved for it.
            self.bytes = Vec::new();
        }
        Ok(Some(found))
    }
}

#[cfg(test)]
mod tests;
