//! Errors of authentication.

use core::fmt;

/// The reason why a request cannot be authenticated. The error message never repeats a credential.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AuthError {
    /// The user name, password or token contains CR, LF or NUL, or the token contains anything but
    /// visible ASCII.
    ControlByte,
    /// The user name contains a colon. Basic cannot express that, since the server would split the
    /// name there (RFC 7617 §2).
    ColonInUser,
    /// The server offers only unsupported schemes, such as NTLM or Negotiate. The strings are their
    /// names as the server wrote them.
    Unsupported(Vec<String>),
    /// The Digest challenge names an unknown algorithm, or has a malformed `algorithm`.
    DigestAlgorithm,
    /// The Digest challenge lacks a realm or a nonce, or offers only unknown values of `qop`.
    DigestChallenge,
    /// [`SigV4Parameters`](super::SigV4Parameters) cannot sign the request; the text is the reason.
    SigV4(&'static str),
}

impl fmt::Display for AuthError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AuthError::ControlByte => f.write_str("a control byte in a user name, password or token"),
            AuthError::ColonInUser => {
                f.write_str("a colon in the user name, which Basic authentication cannot express")
            }
            AuthError::Unsupported(names) => {
                write!(f, "the server offers only {}, which the request may not use", names.join(" or ").escape_debug())
            }
            AuthError::DigestAlgorithm => f.write_str("the server's Digest challenge has an unknown algorithm"),
            AuthError::SigV4(why) => write!(f, "no AWS signature: {why}"),
            AuthError::DigestChallenge => f.write_str("the server's Digest challenge is incomplete"),
        }
    }
}

impl core::error::Error for AuthError {}
