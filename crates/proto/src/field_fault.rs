//! The mistakes that make a field malformed in HTTP/2 and HTTP/3.

use core::fmt;

/// A mistake in a field that makes the whole message malformed.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum FieldFault {
    /// The name of the field is not a token.
    Name,
    /// The name of the field contains an upper-case letter.
    Uppercase,
    /// The value of the field contains CR, LF, NUL or another control byte.
    Value,
    /// The field belongs to an HTTP/1 connection (such as Connection or Transfer-Encoding).
    ConnectionSpecific,
    /// The field is a pseudo-field that is not allowed in responses.
    UnknownPseudo,
    /// The head has more than one `:status`.
    RepeatedPseudo,
    /// The field is a pseudo-field after a regular field.
    LatePseudo,
    /// The head of the response has no `:status`.
    MissingStatus,
    /// The field is a pseudo-field in the trailer section.
    PseudoInTrailers,
    /// `:status` is not a number from 100 to 999, or is 101, which HTTP/2 and HTTP/3 do not have.
    Status,
}

impl fmt::Display for FieldFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            FieldFault::Name => "a name that is not a token",
            FieldFault::Uppercase => "a name with an upper-case letter",
            FieldFault::Value => "a control byte in a value",
            FieldFault::ConnectionSpecific => "a field of HTTP/1 connections",
            FieldFault::UnknownPseudo => "an unknown pseudo-field",
            FieldFault::RepeatedPseudo => "a pseudo-field twice",
            FieldFault::LatePseudo => "a pseudo-field behind a regular one",
            FieldFault::MissingStatus => "no status",
            FieldFault::PseudoInTrailers => "a pseudo-field among trailers",
            FieldFault::Status => "an impossible status",
        })
    }
}
