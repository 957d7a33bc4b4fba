//! Errors of URL parsing.

use core::fmt;

/// The reason why a text was refused as a [`Target`](super::Target), an http or https URL. The
/// error message never repeats the text, which may contain a password.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TargetError {
    /// The scheme is neither `http` nor `https`. The text is the scheme in lower case.
    UnsupportedScheme(String),
    /// The text is not a URL that names exactly one host.
    Malformed {
        /// The kind of the mistake.
        kind: UrlErrorKind,
    },
}

/// A mistake in a malformed URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum UrlErrorKind {
    /// The text is longer than [`MAX_LEN`](super::MAX_LEN) bytes.
    TooLong,
    /// The byte at this offset is a space or a control byte.
    Byte(usize),
    /// The byte at this offset is NUL. A text in UTF-16 that is read as UTF-8 contains many of
    /// them.
    Nul(usize),
    /// `http:` is not followed by one to three slashes.
    Slashes,
    /// U+FEFF precedes the URL: the text is the first line of a file that begins with a byte order
    /// mark.
    ByteOrderMark,
    /// The URL names no host.
    NoHost,
    /// The host has more than 65,535 bytes, an empty label, or a byte that no host name may have,
    /// such as an encoded `%2F`.
    Host,
    /// The host name cannot be mapped to ASCII by IDNA (UTS 46), or is too long for DNS in ASCII.
    Idna,
    /// The text in `[...]` is not an IPv6 address.
    Ipv6,
    /// The port is not a number from 0 to 65535.
    Port,
    /// The user part contains a second `@`, a backslash, or an encoded CR, LF or NUL.
    Userinfo,
}

impl TargetError {
    /// Returns curl's exit code: 1 for an unsupported scheme, 3 for a malformed URL.
    pub fn exit_code(&self) -> u8 {
        match self {
            TargetError::UnsupportedScheme(_) => 1,
            TargetError::Malformed { .. } => 3,
        }
    }
}

impl From<UrlErrorKind> for TargetError {
    fn from(kind: UrlErrorKind) -> Self {
        TargetError::Malformed { kind }
    }
}

impl fmt::Display for TargetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TargetError::UnsupportedScheme(scheme) => write!(f, "protocol \"{scheme}\" not supported"),
            TargetError::Malformed { kind } => write!(f, "malformed URL: {kind}"),
        }
    }
}

impl fmt::Display for UrlErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            UrlErrorKind::TooLong => "too long",
            UrlErrorKind::Nul(at) => {
                return write!(f, "a NUL byte at offset {at}; if the URL is from a list in UTF-16, save that as UTF-8");
            }
            UrlErrorKind::Byte(at) => return write!(f, "a space or control byte at offset {at}"),
            UrlErrorKind::Slashes => "between the scheme and the host belong two slashes: http://HOST/",
            UrlErrorKind::ByteOrderMark => {
                "it begins with a byte order mark: save the file without one (sed '1s/^\\xEF\\xBB\\xBF//')"
            }
            UrlErrorKind::NoHost => "no host: write http://HOST/PATH",
            UrlErrorKind::Host => "bad host name",
            UrlErrorKind::Idna => "host name not allowed by IDNA",
            UrlErrorKind::Ipv6 => "bad IPv6 address",
            UrlErrorKind::Port => "port number was not a decimal number between 0 and 65535",
            UrlErrorKind::Userinfo => "bad user name or password",
        })
    }
}

impl core::error::Error for TargetError {}
