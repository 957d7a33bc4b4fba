//! The reasons for which a connection is closed, as one type for every HTTP version.

use crate::h2::ErrorCode;
use core::fmt;

/// The reason why a connection accepts no further request.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Hash)]
#[non_exhaustive]
pub enum CloseReason {
    /// The server's response contains `Connection: close`.
    ServerClose,
    /// The client's request contained `Connection: close`.
    ClientClose,
    /// The response is HTTP/1.0 without `Connection: keep-alive`.
    Http10,
    /// The response's body ends where the connection ends (RFC 9112 §6.3).
    UntilClose,
    /// The response has both Transfer-Encoding and Content-Length, which two parties may read
    /// differently (RFC 9112 §6.1).
    LengthAndCoding,
    /// The HTTP/1.0 response has Transfer-Encoding, which that version lacks (RFC 9112 §6.1).
    CodingInHttp10,
    /// The framing of the response breaks RFC 9112, but is unambiguous: chunk lines with blanks or
    /// without CR, or `Transfer-Encoding: identity, chunked`. A proxy on the way may still read it
    /// differently.
    LooseFraming,
    /// The response was complete before all of the request had been sent.
    RequestUnfinished,
    /// Bytes arrived while no request was waiting for a response.
    UnsolicitedBytes,
    /// The peer closed the connection.
    PeerClosed,
    /// The peer broke the protocol, closed the connection within a response, or was silent until a
    /// timeout.
    Broken,
    /// The connection became a tunnel (101, or 2xx to CONNECT).
    Tunnel,
    /// HTTP/2 and HTTP/3: the peer sent GOAWAY with this code. GOAWAY of HTTP/3 has no code, and
    /// counts as [`ErrorCode::NO_ERROR`].
    GoAway(ErrorCode),
    /// HTTP/2 and HTTP/3: the client itself sent GOAWAY, for example by
    /// [`H2Machine::go_away`](crate::h2::H2Machine::go_away).
    Local,
    /// HTTP/2: all 2³⁰ stream identifiers of the connection are used up.
    StreamsExhausted,
}

impl fmt::Display for CloseReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            CloseReason::GoAway(code) => return write!(f, "the server went away: {code}"),
            CloseReason::Local => "it was shut down",
            CloseReason::StreamsExhausted => "its stream numbers are used up",
            CloseReason::ServerClose => "the server asked for it",
            CloseReason::ClientClose => "the request asked for it",
            CloseReason::Http10 => "an HTTP/1.0 server did not offer to keep it",
            CloseReason::UntilClose => "the body lasted until the connection ended",
            CloseReason::LengthAndCoding => "the response had both Transfer-Encoding and Content-Length",
            CloseReason::CodingInHttp10 => "an HTTP/1.0 server sent Transfer-Encoding",
            CloseReason::LooseFraming => "the framing of the response was not what RFC 9112 allows",
            CloseReason::RequestUnfinished => "the response was complete before the request was",
            CloseReason::UnsolicitedBytes => "the server sent bytes that no request had asked for",
            CloseReason::PeerClosed => "the server closed it",
            CloseReason::Broken => "the server broke the protocol",
            CloseReason::Tunnel => "it became a tunnel",
        })
    }
}
