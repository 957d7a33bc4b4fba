//! Tests with HTTP/1 responses of hostile or broken peers, by class of fault. Each must cause
//! exactly the given error, whether its bytes arrive at once or one by one.

mod common;

use common::{H1Observation, InputEnd, answer, asked, body_of, error_of, feed, get, reuse_of};
use haul_proto::ResponseError;
use haul_proto::ResponseLimits;
use haul_proto::h1::{
    ChunkFault, CloseReason, ContentLengthFault, FieldLineFault, H1Config, H1Error, H1Event, H1Machine, RequestId,
    TransferCodingFault,
};
use haul_proto::time::MonotonicTimestamp;

fn refused(class: &str, wire: &[u8], error: H1Error) {
    assert_eq!(error_of(wire, InputEnd::Open), Some(error), "{class}: {:?}", wire.escape_ascii().to_string());
    let cuts: Vec<usize> = (1..wire.len()).collect();
    let mut conn = asked(H1Config::default(), &[get()]);
    let seen = feed(&mut conn, wire, &cuts, InputEnd::Open);
    assert_eq!(seen.last(), Some(&H1Observation::Error(error)), "{class}, byte by byte");
    let reason = conn.close_reason().expect("an error closes");
    assert_eq!(
        conn.step(MonotonicTimestamp(0), &mut [b'H']),
        Err(H1Error::Response(ResponseError::Closed(reason))),
        "{class}: nothing is read afterwards"
    );
    assert!(!conn.can_enqueue() && !conn.is_idle(), "{class}: never reused");
    assert!(error.to_string().starts_with("server "), "{class}: says who is to blame: {error}");
}

#[test]
fn invalid_content_lengths_are_refused() {
    let malformed = [
        "-1", "+5", "42s", "0x2a", "4 2", "42;", "", " ", "42,", ",42", "1e3", "٤٢", "42.0", "\"42\"", "_42",
        "42\u{a0}",
    ];
    for value in malformed {
        let wire = format!("HTTP/1.1 200 OK\r\nContent-Length: {value}\r\n\r\nok");
        refused(
            "malformed length",
            wire.as_bytes(),
            H1Error::Response(ResponseError::ContentLength(ContentLengthFault::Malformed)),
        );
    }
    for fields in [
        "Content-Length: 42,30",
        "Content-Length: 42\r\nContent-Length: 30",
        "Content-Length: 42\r\nX: y\r\ncontent-length: 042, 43",
    ] {
        let wire = format!("HTTP/1.1 200 OK\r\n{fields}\r\n\r\nok");
        refused(
            "conflicting lengths",
            wire.as_bytes(),
            H1Error::Response(ResponseError::ContentLength(ContentLengthFault::Conflicting)),
        );
    }
    for value in ["18446744073709551616", "99999999999999999999999999"] {
        let wire = format!("HTTP/1.1 200 OK\r\nContent-Length: {value}\r\n\r\nok");
        refused(
            "length overflow",
            wire.as_bytes(),
            H1Error::Response(ResponseError::ContentLength(ContentLengthFault::TooLarge)),
        );
    }
    let wire = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 42s\r\n\r\n0\r\n\r\n";
    refused(
        "a bad length beside a coding",
        wire,
        H1Error::Response(ResponseError::ContentLength(ContentLengthFault::Malformed)),
    );
}

#[test]
fn invalid_transfer_codings_are_refused() {
    let cases: &[(&str, TransferCodingFault)] = &[
        ("Transfer-Encoding: chunked, chunked", TransferCodingFault::Repeated),
        ("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked", TransferCodingFault::Repeated),
        ("Transfer-Encoding: gzip, chunked", TransferCodingFault::Unsupported),
        ("Transfer-Encoding: gzip", TransferCodingFault::Unsupported),
        ("Transfer-Encoding: chunked, gzip", TransferCodingFault::Unsupported),
        ("Transfer-Encoding: chunked, identity", TransferCodingFault::Unsupported),
        ("Transfer-Encoding: identity, chunked, chunked", TransferCodingFault::Repeated),
        ("Transfer-Encoding: identity, chunked, identity", TransferCodingFault::Unsupported),
        ("Transfer-Encoding: identity, gzip, chunked", TransferCodingFault::Unsupported),
        ("Transfer-Encoding: identity chunked", TransferCodingFault::Unsupported),
        ("Transfer-Encoding: xchunked", TransferCodingFault::Unsupported),
        ("Transfer-Encoding: chunked;q=1", TransferCodingFault::Unsupported),
        ("Transfer-Encoding: \"chunked\"", TransferCodingFault::Unsupported),
        ("Transfer-Encoding: chunked chunked", TransferCodingFault::Unsupported),
        ("Transfer-Encoding:", TransferCodingFault::Empty),
        ("Transfer-Encoding: ,", TransferCodingFault::Empty),
        ("Transfer-Encoding:\r\nContent-Length: 2", TransferCodingFault::Empty),
        ("Transfer-Encoding: gzip,\r\n chunked", TransferCodingFault::Unsupported),
    ];
    for (fields, fault) in cases {
        let wire = format!("HTTP/1.1 200 OK\r\n{fields}\r\n\r\n0\r\n\r\n");
        refused(fields, wire.as_bytes(), H1Error::TransferCoding(*fault));
    }
}

#[test]
fn invalid_chunk_framing_is_refused() {
    let cases: &[(&str, &[u8], ChunkFault)] = &[
        ("no size", b"\r\nhello", ChunkFault::Size),
        ("extension without size", b";a\r\n", ChunkFault::Size),
        ("minus", b"-5\r\nhello\r\n", ChunkFault::Size),
        ("plus", b"+5\r\nhello\r\n", ChunkFault::Size),
        ("space before", b" 5\r\nhello\r\n", ChunkFault::Size),
        ("0x", b"0x5\r\nhello\r\n", ChunkFault::SizeEnd),
        ("unit", b"5h\r\nhello\r\n", ChunkFault::SizeEnd),
        ("comma", b"5,5\r\nhello\r\n", ChunkFault::SizeEnd),
        ("underscore", b"1_0\r\n", ChunkFault::SizeEnd),
        ("NUL", b"5\0\r\n", ChunkFault::SizeEnd),
        ("17 digits", b"10000000000000005\r\nhello\r\n", ChunkFault::SizeOverflow),
        ("17 zeros", b"00000000000000005\r\nhello\r\n", ChunkFault::SizeOverflow),
        ("space between", b"1 0\r\n", ChunkFault::SizeSpaced),
        ("blanks and NUL", b"5 \0\r\nhello\r\n", ChunkFault::SizeSpaced),
        ("LF instead of a size", b"\nhello\r\n", ChunkFault::Size),
        ("blanks instead of a size", b"5\r\nhello\r\n \r\n", ChunkFault::Size),
        ("an empty line between chunks", b"5\r\nhello\n\r\n0\r\n\r\n", ChunkFault::Size),
        ("an empty line of LF between chunks", b"5\nhello\n\n0\n\n", ChunkFault::Size),
        ("blanks, then CR without LF", b"5 \rhello\r\n", ChunkFault::BareCr),
        ("blanks behind the payload", b"5\r\nhello \n0\r\n\r\n", ChunkFault::DataEnd),
        ("CR behind the size", b"5\rhello\r\n", ChunkFault::BareCr),
        ("CR behind an extension", b"5;a\rb\r\n", ChunkFault::BareCr),
        ("CR behind the payload", b"5\r\nhello\r0\r\n", ChunkFault::BareCr),
        ("CR as the end", b"0\r\n\rx", ChunkFault::BareCr),
        ("CR CR LF", b"5\r\r\nhello\r\n", ChunkFault::BareCr),
        ("NUL in an extension", b"5;a\0b\r\nhello\r\n", ChunkFault::Extension),
        ("DEL in an extension", b"5;a\x7f\r\nhello\r\n", ChunkFault::Extension),
        ("payload longer than its size", b"5\r\nhello!\r\n", ChunkFault::DataEnd),
        ("payload shorter than its size", b"7\r\nhello\r\n0\r\n\r\n", ChunkFault::DataEnd),
        ("no line end between chunks", b"5\r\nhello5\r\nhello\r\n", ChunkFault::DataEnd),
    ];
    for (class, body, fault) in cases {
        let wire = [b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", *body].concat();
        refused(class, &wire, H1Error::Chunk(*fault));
    }
}

/// Sends responses whose framing breaks the RFC but can be read in one way only. The body is
/// delivered, and the connection is not reused.
#[test]
fn unambiguous_framing_faults_are_tolerated_without_reuse() {
    let chunked = "Transfer-Encoding: chunked";
    let cases: &[(&str, &[u8])] = &[
        (chunked, b"5 \r\nhello\r\n0\r\n\r\n"),
        (chunked, b"5\t \t\r\nhello\r\n0\r\n\r\n"),
        (chunked, b"5\r\nhello\r\n0 \r\n\r\n"),
        (chunked, b"5\nhello\r\n0\r\n\r\n"),
        (chunked, b"5 \nhello\r\n0\r\n\r\n"),
        (chunked, b"5;a=b\nhello\r\n0\r\n\r\n"),
        (chunked, b"5\r\nhello\n0\r\n\r\n"),
        (chunked, b"5\r\nhello\r\n0\n\r\n"),
        (chunked, b"5\r\nhello\r\n0\r\n\n"),
        (chunked, b"5\r\nhello\r\n0\r\nA: b\n\r\n"),
        (chunked, b"5\r\nhello\r\n0\r\nA: b\r\n\n"),
        (chunked, b"2\nhe\n3\nllo\n0\n\n"),
        ("Transfer-Encoding: identity, chunked", b"5\r\nhello\r\n0\r\n\r\n"),
        ("Transfer-Encoding: Identity\r\nTransfer-Encoding: chunked", b"5\r\nhello\r\n0\r\n\r\n"),
        ("Transfer-Encoding: identity, identity, chunked", b"5\r\nhello\r\n0\r\n\r\n"),
    ];
    for (fields, body) in cases {
        let reply = [format!("HTTP/1.1 200 OK\r\n{fields}\r\n\r\n").as_bytes(), *body].concat();
        let behind = [&reply[..], b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil"].concat();
        let shown = reply.escape_ascii().to_string();
        // Nothing is read of the second response, whether it was asked for or not.
        for (wire, requests) in [(&reply, 1), (&behind, 2)] {
            let whole = feed(&mut asked(H1Config::default(), &vec![get(); requests]), wire, &[], InputEnd::Open);
            assert_eq!(body_of(&whole), b"hello", "{shown}");
            assert_eq!(reuse_of(&whole), Some(Err(CloseReason::LooseFraming)), "{shown}");
            for cut in 0..=reply.len() {
                let seen = feed(&mut asked(H1Config::default(), &vec![get(); requests]), wire, &[cut], InputEnd::Open);
                assert_eq!(seen, whole, "{shown} cut at {cut}");
            }
        }
        for end in 0..reply.len() {
            let seen = answer(&reply[..end], InputEnd::Clean);
            assert!(matches!(seen.last(), Some(H1Observation::Error(_))), "{shown} ended at {end}: {seen:?}");
        }
    }
}

#[test]
fn well_formed_chunks_allow_connection_reuse() {
    let wire = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5 ;a=b\r\nhello\r\n0\r\nA: b\r\n\r\n";
    let seen = answer(wire, InputEnd::Open);
    assert_eq!((&body_of(&seen)[..], reuse_of(&seen)), (&b"hello"[..], Some(Ok(()))));
}

#[test]
fn largest_chunk_size_does_not_overflow() {
    let wire = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nFFFFFFFFFFFFFFFF\r\nabc";
    assert_eq!(body_of(&answer(wire, InputEnd::Open)), b"abc");
    assert_eq!(error_of(wire, InputEnd::Clean), Some(H1Error::EndedInChunks { got: 3 }));
}

#[test]
fn malformed_h1_heads_are_refused() {
    let line = |line: &[u8]| [b"HTTP/1.1 200 OK\r\nA: b\r\n", line, b"\r\nContent-Length: 0\r\n\r\n"].concat();
    let cases: &[(&str, Vec<u8>, H1Error)] = &[
        ("space before the colon", line(b"Content-Length : 5"), H1Error::Field(FieldLineFault::Name)),
        ("blanks in a name", line(b"Transfer - Encoding: chunked"), H1Error::Field(FieldLineFault::Name)),
        ("a word before a name", line(b"x content-length: 5"), H1Error::Field(FieldLineFault::Name)),
        ("no colon", line(b"hello"), H1Error::Field(FieldLineFault::Name)),
        ("no name", line(b": hello"), H1Error::Field(FieldLineFault::Name)),
        ("space in a name", line(b"Content Length: 5"), H1Error::Field(FieldLineFault::Name)),
        ("NUL in a name", line(b"Content\0: 5"), H1Error::Field(FieldLineFault::Name)),
        ("CR in a name", line(b"Content\rX: 5"), H1Error::Field(FieldLineFault::Name)),
        ("NUL in a value", line(b"X: a\0b"), H1Error::Field(FieldLineFault::Value)),
        ("CR in a value", line(b"X: a\rContent-Length: 5"), H1Error::Field(FieldLineFault::Value)),
        ("NUL beside a harmless control byte", line(b"X: \x07\0"), H1Error::Field(FieldLineFault::Value)),
        ("BEL in a name", line(b"X\x07: a"), H1Error::Field(FieldLineFault::Name)),
        ("CR alone as a line", line(b"\rX: y"), H1Error::Field(FieldLineFault::LineEnd)),
        (
            "a framing field that begins with a blank",
            b"HTTP/1.1 200 OK\r\n Content-Length: 5\r\n\r\n".to_vec(),
            H1Error::Field(FieldLineFault::Name),
        ),
        ("no code", b"HTTP/1.1 OK\r\n\r\n".to_vec(), H1Error::StatusLine),
        ("two digits", b"HTTP/1.1 20 OK\r\n\r\n".to_vec(), H1Error::StatusLine),
        ("four digits", b"HTTP/1.1 2000 OK\r\n\r\n".to_vec(), H1Error::StatusLine),
        ("code below 100", b"HTTP/1.1 099 OK\r\n\r\n".to_vec(), H1Error::StatusLine),
        ("two spaces", b"HTTP/1.1  200 OK\r\n\r\n".to_vec(), H1Error::StatusLine),
        ("no space", b"HTTP/1.1200 OK\r\n\r\n".to_vec(), H1Error::StatusLine),
        ("NUL in the reason", b"HTTP/1.1 200 O\0K\r\n\r\n".to_vec(), H1Error::Field(FieldLineFault::Value)),
        ("another protocol", b"SSH-2.0-OpenSSH_9.2\r\n".to_vec(), H1Error::NotHttp { first: true }),
        ("HTTP/0.9", b"<html>hello</html>".to_vec(), H1Error::NotHttp { first: true }),
        ("lower case", b"http/1.1 200 OK\r\n\r\n".to_vec(), H1Error::NotHttp { first: true }),
        ("CR alone before", b"\rHTTP/1.1 200 OK\r\n\r\n".to_vec(), H1Error::NotHttp { first: true }),
        ("HTTP/2", b"HTTP/2 200\r\n\r\n".to_vec(), H1Error::UnsupportedVersion { major: 2, minor: None }),
        ("HTTP/1.2", b"HTTP/1.2 200\r\n\r\n".to_vec(), H1Error::UnsupportedVersion { major: 1, minor: Some(2) }),
        ("empty lines", b"\r\n\r\n\r\n\r\n\r\nHTTP/1.1 200 OK\r\n\r\n".to_vec(), H1Error::EmptyLines { limit: 4 }),
    ];
    for (class, wire, error) in cases {
        refused(class, wire, *error);
    }
}

#[test]
fn malformed_h1_trailers_are_refused() {
    let cases: &[(&str, &[u8], FieldLineFault)] = &[
        ("space before the colon", b"A : b\r\n\r\n", FieldLineFault::Name),
        ("no colon", b"A\r\n\r\n", FieldLineFault::Name),
        ("NUL", b"A: \0\r\n\r\n", FieldLineFault::Value),
        ("CR in a value", b"A: b\rc\r\n\r\n", FieldLineFault::Value),
        ("fold", b"A: b\r\n c\r\n\r\n", FieldLineFault::Folded),
        ("fold first", b" A: b\r\n\r\n", FieldLineFault::Name),
    ];
    for (class, section, fault) in cases {
        let wire = [b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n", *section].concat();
        refused(class, &wire, H1Error::Field(*fault));
    }
}

fn small_limits() -> ResponseLimits {
    ResponseLimits {
        head_bytes: 100,
        head_fields: 3,
        chunk_line: 20,
        chunk_extensions_total: 30,
        trailer_bytes: 60,
        trailer_fields: 2,
        ..ResponseLimits::default()
    }
}

/// Each part of the response has exactly the size that its limit allows.
#[test]
fn input_at_the_limits_is_accepted() {
    let head = format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\na:\r\nX: {}\r\n\r\n", "y".repeat(44));
    let chunks = format!("1;{}\r\n.\r\n1;{}\r\n.\r\n0\r\n", "x".repeat(16), "x".repeat(14));
    let trailers = format!("A: {}\r\nB:\r\n\r\n", "x".repeat(49));
    assert_eq!((head.len(), trailers.len()), (100, 60));
    let wire = [head, chunks, trailers].concat();
    for cuts in [vec![], (1..wire.len()).collect::<Vec<_>>()] {
        let mut conn = asked(H1Config { limits: small_limits(), ..H1Config::default() }, &[get()]);
        let seen = feed(&mut conn, wire.as_bytes(), &cuts, InputEnd::Open);
        assert!(matches!(seen.last(), Some(H1Observation::Complete(0, Some(_), Ok(())))), "{seen:?}");
    }
}

#[test]
fn input_above_the_limits_is_refused() {
    let limits = small_limits();
    let ends_in = |wire: &[u8], error: H1Error| {
        for cuts in [vec![], (1..wire.len()).collect::<Vec<_>>()] {
            let mut conn = asked(H1Config { limits, ..H1Config::default() }, &[get()]);
            let seen = feed(&mut conn, wire, &cuts, InputEnd::Open);
            assert_eq!(seen.last(), Some(&H1Observation::Error(error)), "{}", wire.escape_ascii());
        }
    };
    let chunked = |body: &[u8]| [b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", body].concat();
    ends_in(
        &[&b"HTTP/1.1 200 "[..], &[b'x'; 100]].concat(),
        H1Error::Response(ResponseError::HeadTooLarge { limit: 100 }),
    );
    let large = format!("HTTP/1.1 200 OK\r\nX: {}\r\n\r\n", "y".repeat(100));
    ends_in(large.as_bytes(), H1Error::Response(ResponseError::HeadTooLarge { limit: 100 }));
    ends_in(
        b"HTTP/1.1 200 OK\r\na:\r\nb:\r\nc:\r\nd:\r\n\r\n",
        H1Error::Response(ResponseError::TooManyFields { limit: 3 }),
    );
    ends_in(&chunked(&[&b"5;"[..], &[b'x'; 30]].concat()), H1Error::ChunkLineTooLong { limit: 20 });
    ends_in(&chunked(&b"1;xxxxxxxxxx\r\n.\r\n".repeat(5)), H1Error::ChunkExtensionsTooLarge { limit: 30 });
    let section = [&b"0\r\nA: "[..], &[b'x'; 80]].concat();
    ends_in(&chunked(&section), H1Error::Response(ResponseError::TrailersTooLarge { limit: 60 }));
    ends_in(&chunked(b"0\r\na:\r\nb:\r\nc:\r\n\r\n"), H1Error::Response(ResponseError::TooManyTrailers { limit: 2 }));
}

#[test]
fn head_exactly_at_the_limits_is_accepted() {
    let head = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
    for (head_bytes, fits) in [(head.len(), true), (head.len() - 1, false)] {
        let limits = ResponseLimits { head_bytes, head_fields: 1, ..ResponseLimits::default() };
        let seen = feed(&mut asked(H1Config { limits, ..H1Config::default() }, &[get()]), head, &[], InputEnd::Open);
        assert_eq!(matches!(seen[0], H1Observation::Head(..)), fits, "{seen:?}");
    }
    let field_limit = |limit| {
        let limits = ResponseLimits { head_fields: limit, ..ResponseLimits::default() };
        let fields: String = (0..200).map(|number| format!("X{number}:\r\n")).collect();
        let wire = format!("HTTP/1.1 204 OK\r\n{fields}\r\n");
        feed(&mut asked(H1Config { limits, ..H1Config::default() }, &[get()]), wire.as_bytes(), &[], InputEnd::Open)
    };
    assert!(matches!(field_limit(200)[0], H1Observation::Head(..)));
    assert_eq!(
        field_limit(199)[0],
        H1Observation::Error(H1Error::Response(ResponseError::TooManyFields { limit: 199 }))
    );
}

#[test]
fn head_over_the_default_limits_is_refused() {
    let wire =
        [&b"HTTP/1.1 200 OK\r\n"[..], &b"X: yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy\r\n".repeat(6_000)]
            .concat();
    assert_eq!(
        error_of(&wire, InputEnd::Open),
        Some(H1Error::Response(ResponseError::HeadTooLarge { limit: 307_200 }))
    );
    let wire = [&b"HTTP/1.1 200 OK\r\n"[..], &b"X:\r\n".repeat(5_001), b"\r\n"].concat();
    let error = error_of(&wire, InputEnd::Open).unwrap();
    assert_eq!(error, H1Error::Response(ResponseError::TooManyFields { limit: 5_000 }));
    assert_eq!(error.to_string(), "server sent a head above the limit of 5000 fields");
}

#[test]
fn bytes_on_an_idle_connection_close_it() {
    let mut fresh = H1Machine::new(H1Config::default());
    assert_eq!(fresh.step(MonotonicTimestamp(0), &mut []).unwrap().event, H1Event::NeedInput);
    assert_eq!(
        fresh.step(MonotonicTimestamp(0), b"HTTP/1.1 408 \r\n\r\n".to_vec().as_mut_slice()),
        Err(H1Error::UnsolicitedBytes)
    );
    assert_eq!(fresh.close_reason(), Some(CloseReason::UnsolicitedBytes));

    let mut used = asked(H1Config::default(), &[get()]);
    let reply = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
    feed(&mut used, reply, &[], InputEnd::Open);
    assert!(used.is_idle());
    assert_eq!(
        used.step(MonotonicTimestamp(0), &mut b"\r\n".to_vec()),
        Err(H1Error::UnsolicitedBytes),
        "not even an empty line"
    );
    assert!(!used.is_idle());
}

#[test]
fn bytes_after_the_last_response_prevent_reuse() {
    for wire in [
        &b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil"[..],
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n\r\n",
        b"HTTP/1.1 204 No Content\r\n\r\nHTTP/1.1 200 OK\r\n\r\n",
    ] {
        let seen = answer(wire, InputEnd::Open);
        assert_eq!(reuse_of(&seen), Some(Err(CloseReason::UnsolicitedBytes)), "{}", wire.escape_ascii());
        assert_ne!(body_of(&seen), b"okevil");
    }
}

#[test]
fn response_before_its_request_is_sent_is_refused() {
    let mut conn = H1Machine::new(H1Config::default());
    conn.enqueue(MonotonicTimestamp(0), &get()).unwrap();
    let mut early = *b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
    assert_eq!(conn.step(MonotonicTimestamp(0), &mut early), Err(H1Error::UnsolicitedBytes));
    assert_eq!(conn.unanswered().collect::<Vec<_>>(), [RequestId(0)], "it may be replayed");
    assert!(!conn.response_started());
}

#[test]
fn chunk_line_of_the_largest_size_is_accepted() {
    let config =
        H1Config { limits: ResponseLimits { chunk_line: 20, ..ResponseLimits::default() }, ..H1Config::default() };
    let seen = |extension: usize| {
        let wire = format!(
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;{}\r\nhello\r\n0\r\n\r\n",
            "x".repeat(extension)
        );
        feed(&mut asked(config, &[get()]), wire.as_bytes(), &[], InputEnd::Open).pop()
    };
    assert!(matches!(seen(16), Some(H1Observation::Complete(0, None, _))), "20 bytes with the line's end");
    assert_eq!(seen(17), Some(H1Observation::Error(H1Error::ChunkLineTooLong { limit: 20 })));
}
