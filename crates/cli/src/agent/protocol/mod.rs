//! The protocol between a caller, which is a haul process with `--agent`, and the agent. It runs
//! over a Unix socket.
//!
//! ```text
//!  caller                                 agent
//!   Call (request, files) + descriptor ──▶
//!                                      ◀── Began (head, length, validator)     before the first byte is written
//!                   ╌╌╌ the body goes to the descriptor ╌╌╌
//!                                      ◀── Done (facts, error)                 the descriptor is closed by then
//! ```
//!
//! A frame is its length in four bytes, its kind in one, and its content
//! ([`message_encoding`](super::message_encoding)). This module does no I/O: [`AgentFrameSplitter`]
//! accepts received bytes in pieces of any size.
//!
//! ```
//! use haul_cli::agent::protocol::{CallerMessage, AgentFrameSplitter};
//!
//! let bytes = CallerMessage::Status.to_frame();
//! let mut frames = AgentFrameSplitter::default();
//! frames.push(&bytes[..3]);
//! assert!(frames.next()?.is_none());
//! frames.push(&bytes[3..]);
//! let (kind, content) = frames.next()?.unwrap();
//! assert_eq!(CallerMessage::from_frame(kind, &content)?, CallerMessage::Status);
//! # Ok::<(), haul_cli::agent::message_encoding::MalformedAgentValue>(())
//! ```

use std::path::{Path, PathBuf};
use std::time::Instant;

use haul::transfer_facts::TransferFacts;
use haul::{Error, ErrorKind, ProtocolVersion, ResponseHead};
use haul_policy::range::validator::Validator;

use super::message_encoding::{AgentValue, AgentValueDecoder, AgentValueEncoder, MalformedAgentValue, frame_fields};

/// The length limit of one message (frame) between caller and agent, 1 MiB. It is far above the
/// limits of requests and response heads.
pub const MAX_FRAME: usize = 1 << 20;

/// The number of bytes before the content of a message (frame): four for its length and one for its
/// kind.
const HEADER_LENGTH: usize = 5;

/// A message that a caller sends to the agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallerMessage {
    /// Requests a transfer. The message is sent together with the descriptor that receives the body
    /// of the response.
    Call {
        /// The encoded request
        /// ([`AgentRequest::to_bytes`](super::request::AgentRequest::to_bytes)).
        request: Vec<u8>,
        /// The identities of haul's executable and of the TLS files, such as CA certificates, as
        /// the calling process sees them. The agent must see the same files.
        files: Vec<FileIdentity>,
    },
    /// Asks for the agent's status, which [`AgentMessage::State`] answers.
    Status,
    /// Asks the agent to exit once its transfers are complete.
    Stop,
}

/// A message that the agent sends to a caller.
#[derive(Debug)]
pub enum AgentMessage {
    /// The final response has begun. Interim responses (1xx) are not reported.
    Began(ResponseStart),
    /// The transfer has ended, and the agent has closed the descriptor that received the body.
    Done(Box<AgentTransferResult>),
    /// The agent refuses the request. It has sent nothing to the server and has written nothing to
    /// the descriptor.
    Refused,
    /// The answer to [`CallerMessage::Status`]: the agent's status, in lines of `name: value`.
    State(String),
    /// The answer to [`CallerMessage::Stop`]: the agent will exit.
    Stops,
}

/// The beginning of a response, which the agent reports before it writes the first byte of the
/// body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResponseStart {
    /// The head of the response as the server sent it ([`ResponseHead::raw`]).
    pub head: Vec<u8>,
    /// The number of body bytes that the agent will write; `None` if it is unknown.
    pub length: Option<u64>,
    /// The complete length of the content, of which the response may be only a range; `None` if it
    /// is unknown.
    pub total: Option<u64>,
    /// The strong validator with which the rest of the content can be requested. `None` if the
    /// response has no strong validator.
    pub validator: Option<Validator>,
}

/// The result of a call, which the agent sends after the whole body.
#[derive(Debug)]
pub struct AgentTransferResult {
    /// The sizes, times and addresses of the transfer that the agent ran.
    pub facts: TransferFacts,
    /// The URL of the transfer's last request, without user and password.
    pub url: String,
    /// The head of the final response, as received; `None` if no final response arrived.
    pub head: Option<Vec<u8>>,
    /// The error of the transfer that the agent ran; `None` if it succeeded.
    pub error: Option<AgentTransferError>,
}

/// The error of a transfer that the agent ran, in the form in which the agent sends it to the
/// caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentTransferError {
    kind: ErrorKind,
    message: String,
    url: Option<String>,
    asked: Option<String>,
}

impl From<&Error> for AgentTransferError {
    fn from(error: &Error) -> Self {
        let (url, asked) = (error.url().map(str::to_owned), error.asked_url().map(str::to_owned));
        Self { kind: error.kind(), message: error.cause(), url, asked }
    }
}

impl From<AgentTransferError> for Error {
    fn from(failure: AgentTransferError) -> Self {
        let error = Error::new(failure.kind, failure.message);
        let error = match failure.url {
            Some(url) => error.with_url(url),
            None => error,
        };
        match failure.asked {
            Some(asked) => error.with_requested_url(asked),
            None => error,
        }
    }
}

/// The identity of a file: its path, and the metadata that change when its content changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileIdentity {
    /// The path of the file, as the calling process has it.
    pub path: PathBuf,
    /// Device number, inode number, length in bytes, and the time of the last modification in
    /// nanoseconds since 1970. All are zero if the file does not exist.
    pub metadata: [u64; 4],
}

impl FileIdentity {
    /// Returns the current identity of the file.
    #[must_use]
    pub fn read(path: &Path) -> Self {
        let metadata = rustix::fs::stat(path).map_or([0; 4], |stat| {
            #[allow(
                clippy::cast_sign_loss,
                clippy::unnecessary_cast,
                reason = "these have other types on other systems"
            )]
            let changed = (stat.st_mtime as u64).wrapping_mul(1_000_000_000).wrapping_add(stat.st_mtime_nsec as u64);
            #[allow(clippy::cast_sign_loss, clippy::unnecessary_cast, reason = "as above")]
            [stat.st_dev as u64, stat.st_ino as u64, stat.st_size as u64, changed]
        });
        Self { path: path.to_owned(), metadata }
    }
}

/// The error kinds that the agent can send to a caller. The index of a kind in this list is the
/// number that is sent. A kind that is not in the list is sent as the first listed kind with the
/// same exit code. If there is none, the last kind of the list is sent.
const ERROR_KINDS: [ErrorKind; 33] = [
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

fn error_kind_number(kind: ErrorKind) -> u64 {
    let exact = ERROR_KINDS.iter().position(|known| *known == kind);
    let alike = || ERROR_KINDS.iter().position(|known| known.exit_code() == kind.exit_code());
    exact.or_else(alike).unwrap_or(ERROR_KINDS.len() - 1) as u64
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

fn encode_frame(kind: u8, writer: AgentValueEncoder) -> Vec<u8> {
    let content = writer.into_bytes();
    let length = u32::try_from(content.len()).unwrap_or(u32::MAX);
    [&length.to_le_bytes()[..], &[kind], &content].concat()
}

impl CallerMessage {
    /// Encodes this message of a caller as a frame: length, kind and content.
    #[must_use]
    pub fn to_frame(&self) -> Vec<u8> {
        let mut writer = AgentValueEncoder::default();
        let kind = match self {
            Self::Call { request, files } => {
                files.encode(&mut writer);
                request.encode(&mut writer);
                kind::CALL
            }
            Self::Status => kind::STATUS,
            Self::Stop => kind::STOP,
        };
        encode_frame(kind, writer)
    }

    /// Decodes a message of a caller from the kind and the content of a frame.
    ///
    /// # Errors
    /// [`MalformedAgentValue`] if the kind is unknown or the content is not valid for it.
    pub fn from_frame(kind: u8, content: &[u8]) -> Result<Self, MalformedAgentValue> {
        let mut reader = AgentValueDecoder::new(content);
        let message = match kind {
            kind::CALL => {
                let files = AgentValue::decode(&mut reader)?;
                Self::Call { files, request: AgentValue::decode(&mut reader)? }
            }
            kind::STATUS => Self::Status,
            kind::STOP => Self::Stop,
            _ => return Err(MalformedAgentValue),
        };
        reader.check_end()?;
        Ok(message)
    }
}

impl AgentMessage {
    /// Encodes this message of the agent as a frame: length, kind and content.
    #[must_use]
    pub fn to_frame(&self) -> Vec<u8> {
        let mut writer = AgentValueEncoder::default();
        let kind = match self {
            Self::Began(start) => {
                start.encode(&mut writer);
                kind::BEGAN
            }
            Self::Done(result) => {
                result.encode(&mut writer);
                kind::DONE
            }
            Self::Refused => kind::REFUSED,
            Self::State(text) => {
                text.encode(&mut writer);
                kind::STATE
            }
            Self::Stops => kind::STOPS,
        };
        encode_frame(kind, writer)
    }

    /// Decodes a message of the agent from the kind and the content of a frame. The times in its
    /// [`TransferFacts`] are relative to `started`, the start of the call.
    ///
    /// # Errors
    /// [`MalformedAgentValue`] if the kind is unknown or the content is not valid for it.
    pub fn from_frame(kind: u8, content: &[u8], started: Instant) -> Result<Self, MalformedAgentValue> {
        let mut reader = AgentValueDecoder::new(content);
        let message = match kind {
            kind::BEGAN => Self::Began(AgentValue::decode(&mut reader)?),
            kind::DONE => {
                let mut result = AgentTransferResult::decode(&mut reader)?;
                (result.facts.started, result.facts.phase_began) = (started, started);
                result.facts.placed_at = started;
                Self::Done(Box::new(result))
            }
            kind::REFUSED => Self::Refused,
            kind::STATE => Self::State(AgentValue::decode(&mut reader)?),
            kind::STOPS => Self::Stops,
            _ => return Err(MalformedAgentValue),
        };
        reader.check_end()?;
        Ok(message)
    }
}

frame_fields!(FileIdentity { path, metadata });
frame_fields!(ResponseStart { head, length, total, validator });
frame_fields!(AgentTransferResult { facts, url, head, error });
frame_fields!(AgentTransferError { kind, message, url, asked });

frame_fields! {
    TransferFacts {
        status,
        connect_status,
        proxy_used,
        method,
        referer,
        certificate_fault,
        proxy_certificate_fault,
        certificates,
        request_bytes,
        upload_bytes,
        head_bytes,
        body_bytes,
        decoded_bytes,
        fields,
        redirects,
        retries,
        requests,
        connects,
        connection,
        peer,
        local,
        redirected,
        resolved,
        connected,
        secured,
        sent,
        content_sent,
        first_byte,
        total,
    }
    unsent {
        // The caller's own.
        started,
        // It is in the head.
        version,
        // Only libcurl's interface asks for them.
        auth_scheme,
        proxy_auth_scheme,
        // Only programs that use the engine itself ask for it.
        phase,
        phase_began,
        placed_at,
        // The figures of --stats are of this process alone: with it the agent is not used.
        phase_times,
        earlier,
        // Only records have them: with records the agent is not used.
        tls,
        failed_attempts,
        held_records,
    }
    from TransferFacts::new(Instant::now())
}

impl AgentValue for ErrorKind {
    fn encode(&self, writer: &mut AgentValueEncoder) {
        error_kind_number(*self).encode(writer);
    }

    fn decode(reader: &mut AgentValueDecoder<'_>) -> Result<Self, MalformedAgentValue> {
        ERROR_KINDS.get(usize::decode(reader)?).copied().ok_or(MalformedAgentValue)
    }
}

impl AgentTransferResult {
    /// Removes the head from the result, and returns it decoded. Also copies the HTTP version of
    /// the head to `facts`. Returns `None` if there is no valid head.
    #[must_use]
    pub fn take_head(&mut self) -> Option<ResponseHead> {
        let head = self.head.take().and_then(|raw| ResponseHead::from_raw(&raw));
        self.facts.version = head
            .as_ref()
            .map(ResponseHead::version)
            .filter(|version: &ProtocolVersion| *version >= ProtocolVersion::Http10);
        head
    }
}

/// Splits the byte stream that caller or agent receives into messages (frames).
#[derive(Debug, Default)]
pub struct AgentFrameSplitter {
    bytes: Vec<u8>,
}

impl AgentFrameSplitter {
    /// Appends bytes that were received from the socket.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Removes the next complete message (frame) from the buffer, and returns its kind and content.
    /// Returns `None` if more bytes are needed.
    ///
    /// # Errors
    /// [`MalformedAgentValue`] for a frame that is longer than [`MAX_FRAME`]. Later frames cannot
    /// be read either.
    #[expect(clippy::should_implement_trait, reason = "it can fail, and after `None` there may be more")]
    pub fn next(&mut self) -> Result<Option<(u8, Vec<u8>)>, MalformedAgentValue> {
        let Some((header, rest)) = self.bytes.split_at_checked(HEADER_LENGTH) else { return Ok(None) };
        let length = u32::from_le_bytes([header[0], header[1], header[2], header[3]]) as usize;
        if length > MAX_FRAME {
            return Err(MalformedAgentValue);
        }
        let Some(content) = rest.get(..length) else { return Ok(None) };
        let found = (header[4], content.to_vec());
        self.bytes.drain(..HEADER_LENGTH + length);
        if self.bytes.is_empty() {
            // Secrets of the last one do not lie about in what was reserved for it.
            self.bytes = Vec::new();
        }
        Ok(Some(found))
    }
}

#[cfg(test)]
mod tests;
