//! Errors of transfers: [`Error`], its [`ErrorKind`], and the table of curl's exit codes.
//!
//! The engine's modules return an `Error` with its kind and cause, and the transfer adds the URL.
//! The message is `URL: what happened: why`, or after a redirect `URL (redirected to URL): what
//! happened: why`.
//!
//! ```
//! use haul::{Error, ErrorKind};
//! let error = Error::new(ErrorKind::Connect, "connection refused").with_url("http://127.0.0.1:9/");
//! assert_eq!(error.exit_code(), 7);
//! assert_eq!(error.to_string(), "http://127.0.0.1:9/: connection refused");
//! ```

use std::{error, fmt, io};

/// The result type of this crate: by default, the error is [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The error of a failed transfer: its kind (with curl's exit code), a message, the URL, and the
/// underlying cause.
#[derive(Debug)]
pub struct Error {
    details: Box<ErrorDetails>,
}

/// The contents of an [`Error`], boxed to keep results small.
#[derive(Debug)]
struct ErrorDetails {
    kind: ErrorKind,
    message: String,
    url: Option<String>,
    /// The URL that the program requested, if at least one redirect was followed between that URL
    /// and `url`; otherwise `None`.
    requested_url: Option<String>,
    source: Option<Box<dyn error::Error + Send + Sync>>,
    /// True if the peer rejected the TLS certificate or parameters of this side by an alert.
    is_tls_rejection: bool,
    stage: ErrorStage,
    status: Option<u16>,
}

/// The stages of a transfer, in order. An error stores the last stage that the transfer reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ErrorStage {
    /// No stage was recorded. Such an error counts as one from before the first request.
    Unknown,
    /// The failure occurred while a connection was being made.
    Connecting,
    /// The failure occurred after a request was sent.
    Sent,
    /// The request was redirected, but the redirect cannot be followed.
    Redirected,
}

/// The kinds of errors. Each has one of curl's exit codes ([`ErrorKind::exit_code`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The scheme of the URL or of a redirect is not allowed, or the server's response is not
    /// HTTP/1. Exit 1.
    UnsupportedScheme,
    /// The URL cannot be parsed. In a paginated listing: the next page has another origin. Exit 3.
    Url,
    /// The name of a proxy has no address, or the URL of a proxy is malformed. Exit 5.
    ProxyResolve,
    /// The host's name has no address. Exit 6.
    Resolve,
    /// No address of the host accepted the connection, or a proxy refused the tunnel
    /// ([`Error::status`]). Exit 7.
    Connect,
    /// The head of the response violates HTTP. Exit 8.
    Protocol,
    /// The peer violated the HTTP/2 protocol. Exit 16.
    Http2,
    /// The peer violated the HTTP/3 or the QUIC protocol, or reset an HTTP/3 stream before the
    /// response was complete. Exit 95.
    Http3,
    /// The QUIC handshake failed for another reason than TLS. Exit 96.
    QuicConnect,
    /// The server reset an HTTP/2 stream before the response was complete. Exit 92.
    Http2Stream,
    /// The body ended before its announced length was reached. Exit 18.
    PartialBody,
    /// The status is 400 or above, and the request treats such a status as a failure. Exit 22.
    Status,
    /// The output could not be written. Exit 23.
    Write,
    /// The request content has no known length, which HTTP/1.0 requires. Exit 25.
    Upload,
    /// A local file could not be read. Exit 26.
    Read,
    /// A time limit was reached. Exit 28.
    Timeout,
    /// The transfer needs ranges, but the server does not support them correctly. Exit 33.
    Range,
    /// The TLS handshake failed. Exit 35.
    TlsHandshake,
    /// The content on the server changed during the transfer, after a part of it had been
    /// delivered. Exit 36.
    Changed,
    /// The requested interface, local address or local ports cannot be used. Exit 45.
    Interface,
    /// More redirects were received than are allowed. In a paginated listing: there are more pages
    /// than the default limit. Exit 47.
    TooManyRedirects,
    /// The connection closed before the first line of a response was complete. Exit 52.
    EmptyReply,
    /// The request could not be sent. Exit 55.
    Send,
    /// The response could not be received, or its framing is broken. Exit 56.
    Receive,
    /// The content does not match its checksum. Exit 56.
    Checksum,
    /// The peer's certificate cannot be verified. Exit 60.
    PeerCertificate,
    /// The content coding is broken or unknown. In a paginated JSON listing: a page is not valid
    /// JSON. Exit 61.
    ContentCoding,
    /// The announced, received or decoded body is larger than allowed. Exit 63.
    TooLarge,
    /// A client certificate or its key cannot be used. Exit 58.
    ClientCertificate,
    /// The request content must be sent again, but can be read only once. Exit 65.
    Rewind,
    /// The server requires an authentication scheme that haul does not support. Exit 94.
    Auth,
    /// A URL contains a user name, but user names in URLs are not allowed. Exit 67.
    Login,
    /// None of the requested ciphers or groups is known. Exit 59.
    Cipher,
    /// The head of a request or response has too many fields, or one of its lines is too long. Exit
    /// 100.
    HeadTooLarge,
    /// The file of CA certificates cannot be used. Exit 77.
    CaFile,
    /// The file of revocation lists cannot be used. Exit 82.
    CrlFile,
    /// The file named by a `file:` URL cannot be read. The engine itself does not use this kind; it
    /// is for programs that support such URLs. Exit 37.
    LocalFile,
    /// The server's public key is not among the pinned keys. Exit 90.
    PinnedKey,
    /// The stapled OCSP response of the server is missing, or does not confirm that its certificate
    /// is valid. Exit 91.
    CertificateStatus,
    /// The server did not decrypt the Encrypted Client Hello (RFC 9849). Exit 101.
    EchRequired,
    /// The handshake with a SOCKS proxy failed, or the proxy refused the connection. Exit 97.
    Proxy,
    /// A setting is not valid (a regular expression, a template, a header field). Exit 2.
    Setup,
    /// A signal or the program's own callback ended the transfer. Exit 130.
    Interrupted,
    /// Code of the program (a reader or stream of content, a sink, a trace) or of the engine
    /// panicked. The request may have been sent. A panic of a sink, a trace or the engine on a
    /// thread that serves several requests fails all of them. Exit 255.
    Panicked,
}

impl ErrorKind {
    /// Returns curl's exit code for this kind.
    #[must_use]
    pub fn exit_code(self) -> u8 {
        match self {
            Self::UnsupportedScheme => 1,
            Self::Setup => 2,
            Self::Url => 3,
            Self::ProxyResolve => 5,
            Self::Resolve => 6,
            Self::Connect => 7,
            Self::Protocol => 8,
            Self::Http2 => 16,
            Self::PartialBody => 18,
            Self::Status => 22,
            Self::Write => 23,
            Self::Upload => 25,
            Self::Read => 26,
            Self::Timeout => 28,
            Self::Range => 33,
            Self::TlsHandshake => 35,
            Self::Changed => 36,
            Self::LocalFile => 37,
            Self::Interface => 45,
            Self::TooManyRedirects => 47,
            Self::EmptyReply => 52,
            Self::Send => 55,
            Self::Receive | Self::Checksum => 56,
            Self::PeerCertificate => 60,
            Self::ContentCoding => 61,
            Self::TooLarge => 63,
            Self::Http2Stream => 92,
            Self::Http3 => 95,
            Self::QuicConnect => 96,
            Self::ClientCertificate => 58,
            Self::Rewind => 65,
            Self::Auth => 94,
            Self::Cipher => 59,
            Self::Login => 67,
            Self::CaFile => 77,
            Self::CrlFile => 82,
            Self::PinnedKey => 90,
            Self::CertificateStatus => 91,
            Self::EchRequired => 101,
            Self::Proxy => 97,
            Self::HeadTooLarge => 100,
            Self::Interrupted => 130,
            Self::Panicked => 255,
        }
    }

    /// Returns the name of the kind in snake case, such as `partial_body`. The name never changes,
    /// so that programs can compare it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::UnsupportedScheme => "unsupported_scheme",
            Self::Url => "url",
            Self::ProxyResolve => "proxy_resolve",
            Self::Resolve => "resolve",
            Self::Connect => "connect",
            Self::Protocol => "protocol",
            Self::Http2 => "http2",
            Self::Http3 => "http3",
            Self::QuicConnect => "quic_connect",
            Self::Http2Stream => "http2_stream",
            Self::PartialBody => "partial_body",
            Self::Status => "status",
            Self::Write => "write",
            Self::Upload => "upload",
            Self::Read => "read",
            Self::Timeout => "timeout",
            Self::Range => "range",
            Self::TlsHandshake => "tls_handshake",
            Self::Changed => "changed",
            Self::Interface => "interface",
            Self::TooManyRedirects => "too_many_redirects",
            Self::EmptyReply => "empty_reply",
            Self::Send => "send",
            Self::Receive => "receive",
            Self::Checksum => "checksum",
            Self::PeerCertificate => "peer_certificate",
            Self::ContentCoding => "content_coding",
            Self::TooLarge => "too_large",
            Self::HeadTooLarge => "head_too_large",
            Self::ClientCertificate => "client_certificate",
            Self::Rewind => "rewind",
            Self::Auth => "auth",
            Self::Login => "login",
            Self::Cipher => "cipher",
            Self::CaFile => "ca_file",
            Self::CrlFile => "crl_file",
            Self::LocalFile => "local_file",
            Self::PinnedKey => "pinned_key",
            Self::CertificateStatus => "certificate_status",
            Self::EchRequired => "ech_required",
            Self::Proxy => "proxy",
            Self::Setup => "setup",
            Self::Interrupted => "interrupted",
            Self::Panicked => "panicked",
        }
    }
}

impl Error {
    /// Makes an error of this kind. `message` is a phrase that says what happened.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self {
            details: Box::new(ErrorDetails {
                kind,
                message: message.into(),
                url: None,
                requested_url: None,
                source: None,
                is_tls_rejection: false,
                stage: ErrorStage::Unknown,
                status: None,
            }),
        }
    }

    /// Makes the error of an operation whose time limit has passed.
    pub fn timed_out() -> Self {
        Self::new(ErrorKind::Timeout, "the operation timed out")
    }

    /// Makes an error with an underlying cause. The cause's text is appended to the message.
    pub fn with_source(
        kind: ErrorKind,
        message: impl Into<String>,
        source: impl Into<Box<dyn error::Error + Send + Sync>>,
    ) -> Self {
        let mut error = Self::new(kind, message);
        error.details.source = Some(source.into());
        error
    }

    /// Makes the error for a transfer that the program has cancelled.
    pub(crate) fn cancelled() -> Self {
        Self::new(ErrorKind::Interrupted, "it was cancelled")
    }

    /// Changes the kind of the error, and puts the text `what` before its message.
    #[must_use]
    pub(crate) fn into_kind(mut self, kind: ErrorKind, what: &str) -> Self {
        self.details.kind = kind;
        self.about(what)
    }

    /// Puts the text `what`, followed by a colon, before the error's message.
    #[must_use]
    pub(crate) fn about(mut self, what: &str) -> Self {
        self.details.message = format!("{what}: {}", self.details.message);
        self
    }

    /// Sets the URL at which the transfer failed, unless one is set already.
    #[must_use]
    pub fn with_url(mut self, url: impl Into<String>) -> Self {
        self.details.url.get_or_insert_with(|| url.into());
        self
    }

    /// Sets the URL that the program requested. Call this only if a redirect has led from that URL
    /// to the error's URL.
    #[must_use]
    pub fn with_requested_url(mut self, url: impl Into<String>) -> Self {
        self.details.requested_url.get_or_insert_with(|| url.into());
        self
    }

    /// Sets the stage that the transfer had reached, unless a later stage is set already.
    #[must_use]
    pub(crate) fn with_stage(mut self, stage: ErrorStage) -> Self {
        self.details.stage = self.details.stage.max(stage);
        self
    }

    /// Sets the status of the response that caused the error.
    #[must_use]
    pub(crate) fn with_status(mut self, status: u16) -> Self {
        self.details.status = Some(status);
        self
    }

    /// Returns a copy of the error, for another caller or for another request that failed for the
    /// same reason. If the cause is an [`io::Error`], the copy contains one of the same kind and
    /// text, and with the same code of the operating system; any other cause becomes text.
    #[must_use]
    pub fn duplicate(&self) -> Self {
        let ErrorDetails { kind, message, url, requested_url, stage, status, is_tls_rejection, .. } = &*self.details;
        let copy = |error: &io::Error| match error.raw_os_error() {
            Some(code) => io::Error::from_raw_os_error(code),
            // The text of an error without a cause is that of its kind.
            None if error.get_ref().is_none() => error.kind().into(),
            None => io::Error::new(error.kind(), error.to_string()),
        };
        let mut again = match self.io_source() {
            Some(source) => Self::with_source(*kind, message.clone(), copy(source)),
            None => Self::new(*kind, self.cause()),
        };
        again.details.url.clone_from(url);
        again.details.requested_url.clone_from(requested_url);
        again.details.status = *status;
        again.details.is_tls_rejection = *is_tls_rejection;
        again.with_stage(*stage)
    }

    /// Returns the kind of the failure.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.details.kind
    }

    /// Returns curl's exit code for the failure.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        self.details.kind.exit_code()
    }

    /// Returns the URL at which the transfer failed; `None` if it is not known. The URL never
    /// contains credentials.
    #[must_use]
    pub fn url(&self) -> Option<&str> {
        self.details.url.as_deref()
    }

    /// Returns the URL that the program requested, if a redirect has led from that URL to
    /// [`Error::url`]. Returns `None` if there was no redirect.
    #[must_use]
    pub fn asked_url(&self) -> Option<&str> {
        self.details.requested_url.as_deref()
    }

    /// Returns true if the program's own callback
    /// ([`InterruptCallback`](crate::interrupt_callback::InterruptCallback)) or a signal ended the
    /// transfer.
    #[must_use]
    pub fn is_interrupted(&self) -> bool {
        self.kind() == ErrorKind::Interrupted
    }

    /// Returns true if the name of the server or of the proxy has no address.
    #[must_use]
    pub fn is_dns(&self) -> bool {
        matches!(self.kind(), ErrorKind::Resolve | ErrorKind::ProxyResolve)
    }

    /// Returns true if TLS could not be set up: the handshake failed, one side did not accept the
    /// other's certificate or key, or the TLS settings cannot be used. It is also true if the
    /// server rejected the client's certificate after the request was sent, as is possible in TLS
    /// 1.3.
    #[must_use]
    pub fn is_tls(&self) -> bool {
        self.is_tls_setup() || self.is_tls_rejection()
    }

    fn is_tls_setup(&self) -> bool {
        matches!(
            self.kind(),
            ErrorKind::TlsHandshake
                | ErrorKind::PeerCertificate
                | ErrorKind::PinnedKey
                | ErrorKind::CertificateStatus
                | ErrorKind::EchRequired
                | ErrorKind::ClientCertificate
                | ErrorKind::CaFile
                | ErrorKind::CrlFile
                | ErrorKind::Cipher
        )
    }

    /// Returns true if the connection was refused, closed or reset, or the response ended too
    /// early. The same request may succeed next time, but the server may have processed it already.
    #[must_use]
    pub fn is_connection(&self) -> bool {
        matches!(
            self.kind(),
            ErrorKind::Connect
                | ErrorKind::EmptyReply
                | ErrorKind::Send
                | ErrorKind::Receive
                | ErrorKind::PartialBody
                | ErrorKind::Http2Stream
                | ErrorKind::QuicConnect
        )
    }

    /// Returns true if the request failed because of the status of its response (400 or above).
    #[must_use]
    pub fn is_status(&self) -> bool {
        self.kind() == ErrorKind::Status
    }

    /// Returns the status of the response that made the request fail
    /// ([`is_status`](Self::is_status)), or the status with which a proxy refused a tunnel. Returns
    /// `None` for other errors.
    #[must_use]
    pub fn status(&self) -> Option<u16> {
        self.details.status
    }

    /// Returns true if a redirect cannot be followed: there were too many, or the target is
    /// malformed or not http.
    #[must_use]
    pub fn is_redirect(&self) -> bool {
        self.kind() == ErrorKind::TooManyRedirects || self.details.stage == ErrorStage::Redirected
    }

    /// Returns true if the request was never sent because its URL, its settings or its content are
    /// wrong.
    #[must_use]
    pub fn is_setup(&self) -> bool {
        let is_wrong =
            matches!(self.kind(), ErrorKind::Url | ErrorKind::UnsupportedScheme | ErrorKind::Setup | ErrorKind::Read);
        is_wrong && self.details.stage < ErrorStage::Sent
    }

    /// Returns true if a time limit was reached.
    #[must_use]
    pub fn is_timeout(&self) -> bool {
        self.kind() == ErrorKind::Timeout
    }

    /// Returns true if no connection could be made, or not within the time limits. The cause may be
    /// a name, an address, an interface, a proxy or TLS. No part of the request was sent, so a
    /// request with any method may be repeated. Returns false for failures after a redirect or in a
    /// retry.
    #[must_use]
    pub fn is_connect(&self) -> bool {
        let is_of_connections = match self.kind() {
            ErrorKind::Resolve
            | ErrorKind::ProxyResolve
            | ErrorKind::Connect
            | ErrorKind::QuicConnect
            | ErrorKind::Interface
            | ErrorKind::Proxy => true,
            // These count if a proxy caused them, or if time ran out before the request.
            ErrorKind::Timeout
            | ErrorKind::Receive
            | ErrorKind::Send
            | ErrorKind::Protocol
            | ErrorKind::Http2
            | ErrorKind::Http2Stream
            | ErrorKind::Http3 => self.details.stage == ErrorStage::Connecting,
            _ => self.is_tls_setup(),
        };
        is_of_connections && self.details.stage < ErrorStage::Sent
    }

    /// Returns the underlying cause if it is an error of the operating system, and `None`
    /// otherwise.
    #[must_use]
    pub fn io_source(&self) -> Option<&io::Error> {
        self.details.source.as_deref().and_then(|source| source.downcast_ref())
    }

    /// Returns true if the process or the system has no file descriptor left.
    #[must_use]
    pub(crate) fn lacks_descriptors(&self) -> bool {
        self.io_source().is_some_and(crate::system::socket_error_codes::lacks_descriptors)
    }

    /// Marks this error as a rejection: the peer rejected this side's TLS certificate or parameters
    /// by an alert (RFC 8446 section 6.2).
    #[must_use]
    pub(crate) fn into_tls_rejection(mut self) -> Self {
        self.details.is_tls_rejection = true;
        self
    }

    /// Returns true if the peer rejected this side's TLS certificate or parameters by an alert. The
    /// peer would reject them again.
    pub(crate) fn is_tls_rejection(&self) -> bool {
        self.details.is_tls_rejection
    }

    /// Returns the message and the text of the underlying cause, without the URL.
    #[must_use]
    pub fn cause(&self) -> String {
        match &self.details.source {
            Some(source) => format!("{}: {source}", self.details.message),
            None => self.details.message.clone(),
        }
    }
}

/// Wraps an [`Error`] in an [`io::Error`], for programs that read a [`Response`](crate::Response)
/// through [`io::Read`]; `get_ref` and `downcast` return the original. The [`io::ErrorKind`] is
/// never `Interrupted` or `WouldBlock`, so that no reader repeats the read.
impl From<Error> for io::Error {
    fn from(error: Error) -> Self {
        let kind = match error.kind() {
            ErrorKind::Timeout => io::ErrorKind::TimedOut,
            ErrorKind::PartialBody => io::ErrorKind::UnexpectedEof,
            ErrorKind::ContentCoding | ErrorKind::TooLarge => io::ErrorKind::InvalidData,
            _ => io::ErrorKind::Other,
        };
        Self::new(kind, error)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.details.requested_url, &self.details.url) {
            (Some(requested_url), Some(url)) => write!(f, "{requested_url} (redirected to {url}): ")?,
            (_, Some(url)) => write!(f, "{url}: ")?,
            (_, None) => {}
        }
        f.write_str(&self.details.message)?;
        match &self.details.source {
            Some(source) => write!(f, ": {source}"),
            None => Ok(()),
        }
    }
}

impl error::Error for Error {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        self.details.source.as_deref().map(|source| source as _)
    }
}
