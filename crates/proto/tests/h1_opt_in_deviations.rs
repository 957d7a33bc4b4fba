//! Tests of deviations from RFC 9112 that the user asked for: raw bodies, other codings, HTTP/0.9.

mod common;

use common::{H1Observation, InputEnd, asked, feed, get, with_method};
use haul_proto::h1::{
    BodyLength, CloseReason, H1Config, H1Deviations, H1Error, H1Machine, RequestHead, ResponseBodyFraming,
    SendRequestError, TransferCodingFault,
};
use haul_proto::time::MonotonicTimestamp;

/// Returns the events of one response. Checks that a response which arrives byte by byte has the
/// same events.
fn response(deviations: H1Deviations, request: RequestHead<'_>, wire: &[u8], end: InputEnd) -> Vec<H1Observation> {
    let config = H1Config { deviations, ..H1Config::default() };
    let whole = feed(&mut asked(config, &[request]), wire, &[], end);
    let cuts: Vec<usize> = (1..wire.len()).collect();
    assert_eq!(feed(&mut asked(config, &[request]), wire, &cuts, end), whole);
    whole
}

#[test]
fn raw_chunked_body_keeps_its_framing() {
    let raw = H1Deviations { raw: true, ..H1Deviations::default() };
    let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    let coded = "5;x=y\r\nhello\r\n0\r\nA: b\r\n\r\n";
    let seen = response(raw, get(), format!("{head}{coded}").as_bytes(), InputEnd::Open);
    let expected = [
        H1Observation::Head(0, head.into(), ResponseBodyFraming::Chunked),
        H1Observation::Body(0, coded.into()),
        H1Observation::Complete(0, None, Ok(())),
    ];
    assert_eq!(seen, expected);
}

#[test]
fn other_codings_last_until_the_connection_ends() {
    let wire = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, identity\r\nContent-Length: 2\r\n\r\nhello";
    let refused = H1Error::TransferCoding(TransferCodingFault::Unsupported);
    let plain = H1Deviations::default();
    assert_eq!(response(plain, get(), wire, InputEnd::Clean).last(), Some(&H1Observation::Error(refused)));
    let codings = H1Deviations { codings: true, ..plain };
    let seen = response(codings, get(), wire, InputEnd::Clean);
    assert!(matches!(seen[0], H1Observation::Head(0, _, ResponseBodyFraming::UntilClose)), "{seen:?}");
    assert_eq!(seen[1], H1Observation::Body(0, b"hello".to_vec()));
    let both = H1Deviations { raw: true, tolerant: true, ..codings };
    let seen = response(both, get(), &wire[..wire.len() - 3], InputEnd::Open);
    assert!(matches!(seen[0], H1Observation::Head(0, _, ResponseBodyFraming::Length(2))), "{seen:?}");
    assert_eq!(seen.last(), Some(&H1Observation::Complete(0, None, Err(CloseReason::LengthAndCoding))));
}

#[test]
fn http09_body_is_taken_if_allowed() {
    let http09 = H1Deviations { http09: true, ..H1Deviations::default() };
    let seen = response(http09, get(), b"<html>", InputEnd::Clean);
    assert!(
        matches!(&seen[0], H1Observation::Head(0, head, ResponseBodyFraming::UntilClose) if head.is_empty()),
        "{seen:?}"
    );
    assert_eq!(seen[1], H1Observation::Body(0, b"<html>".to_vec()));
    assert_eq!(seen[2], H1Observation::Complete(0, None, Err(CloseReason::UntilClose)));
    let refused = |deviations, request, first| {
        let seen = response(deviations, request, b"<html>", InputEnd::Clean);
        assert_eq!(seen, [H1Observation::Error(H1Error::NotHttp { first })]);
    };
    refused(H1Deviations::default(), get(), true);
    refused(http09, with_method("HEAD"), false);
}

#[test]
fn chunks_in_http10_are_refused() {
    let deviations = H1Deviations { http10: true, ..H1Deviations::default() };
    let mut conn = H1Machine::new(H1Config { deviations, ..H1Config::default() });
    let request = RequestHead { body: BodyLength::Chunked, ..with_method("POST") };
    assert_eq!(conn.enqueue(MonotonicTimestamp(0), &request), Err(SendRequestError::ChunksInHttp10));
    assert!(conn.enqueue(MonotonicTimestamp(0), &get()).is_ok());
    assert!(conn.output().starts_with(b"GET / HTTP/1.0\r\n"));
}

#[test]
fn body_with_ignored_length_ends_at_the_close() {
    let head = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n";
    let wire = format!("{head}hello");
    let ignoring = H1Deviations { ignore_length: true, ..H1Deviations::default() };
    let expected = [
        H1Observation::Head(0, head.into(), ResponseBodyFraming::UntilClose),
        H1Observation::Body(0, b"hello".to_vec()),
        H1Observation::Complete(0, None, Err(CloseReason::UntilClose)),
    ];
    assert_eq!(response(ignoring, get(), wire.as_bytes(), InputEnd::Clean), expected);
    let seen = response(H1Deviations::default(), get(), head.as_bytes(), InputEnd::Open);
    assert_eq!(seen, [H1Observation::Head(0, head.into(), ResponseBodyFraming::Length(2))]);
}
