use std::io;

use super::*;

#[test]
fn failure_is_classified_by_kind_and_point() {
    use ExchangeFailurePoint::{BeforeResponse, BeforeSending, ByProtocol, InResponse, WhileStale};
    for (kind, broke, expected) in [
        (ErrorKind::Receive, ByProtocol, Trouble::Permanent),
        (ErrorKind::Timeout, BeforeSending, Trouble::ConnectTimeout),
        (ErrorKind::Timeout, BeforeResponse, Trouble::Timeout),
        (ErrorKind::Connect, BeforeSending, Trouble::ConnectRefused),
        (ErrorKind::TlsHandshake, BeforeSending, Trouble::Permanent),
        (ErrorKind::Resolve, BeforeSending, Trouble::Dns { transient: false }),
        (ErrorKind::ProxyResolve, BeforeSending, Trouble::Dns { transient: false }),
        (ErrorKind::Receive, InResponse, Trouble::ResetInBody),
        (ErrorKind::PartialBody, InResponse, Trouble::ResetInBody),
        (ErrorKind::PartialBody, BeforeResponse, Trouble::Permanent),
        (ErrorKind::Http2Stream, InResponse, Trouble::ResetInBody),
        (ErrorKind::EmptyReply, WhileStale, Trouble::ResetBeforeResponse),
        (ErrorKind::Send, BeforeResponse, Trouble::ResetBeforeResponse),
        (ErrorKind::Receive, BeforeSending, Trouble::Permanent),
        (ErrorKind::Protocol, WhileStale, Trouble::ResetBeforeResponse),
        (ErrorKind::Protocol, InResponse, Trouble::Permanent),
    ] {
        assert_eq!(trouble_of(&Error::new(kind, "x"), broke), expected, "{kind:?} {broke:?}");
    }
    let reset = || io::Error::from(io::ErrorKind::ConnectionReset);
    for (kind, broke, expected) in [
        (ErrorKind::TlsHandshake, BeforeSending, Trouble::ResetBeforeRequest),
        (ErrorKind::TlsHandshake, InResponse, Trouble::Permanent),
        (ErrorKind::Resolve, BeforeSending, Trouble::Dns { transient: true }),
    ] {
        assert_eq!(trouble_of(&Error::with_source(kind, "x", reset()), broke), expected, "{kind:?} {broke:?}");
    }
    let tunnel = Error::new(ErrorKind::Connect, "x").with_status(403);
    assert_eq!(trouble_of(&tunnel, BeforeSending), Trouble::Permanent);
    let rejected = Error::new(ErrorKind::Receive, "x").into_tls_rejection();
    assert_eq!(trouble_of(&rejected, BeforeResponse), Trouble::Permanent);
}

#[test]
fn pauses_vary_between_programs() {
    assert!((0..4).map(|_| entropy()).any(|number| number != entropy()));
}
