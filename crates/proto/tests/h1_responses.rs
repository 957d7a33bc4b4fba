//! Tests of valid HTTP/1 responses: framing, reuse, interim heads, tunnels, and bodies that the
//! driver moves itself.

mod common;

use common::{H1Observation, InputEnd, answer, asked, body_of, error_of, feed, get, reuse_of, with_method};
use haul_proto::ResponseError;
use haul_proto::h1::{
    CloseReason, H1Config, H1Deviations, H1Error, H1Event, H1Machine, RequestHead, RequestId, ResponseBodyFraming,
    TransferCodingFault,
};
use haul_proto::time::MonotonicTimestamp;
use haul_proto::{ResponseHead, ResponseLimits};

#[test]
fn known_length_body_yields_head_body_and_complete() {
    let mut conn = asked(H1Config::default(), &[get()]);
    let mut wire = *b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
    let head = conn.step(MonotonicTimestamp(0), &mut wire).unwrap();
    assert!(matches!(head.event, H1Event::Head { framing: ResponseBodyFraming::Length(5), .. }));
    let body = conn.step(MonotonicTimestamp(0), &mut wire[head.consumed..]).unwrap();
    assert_eq!((body.consumed, body.event), (5, H1Event::Body { id: RequestId(0), range: 0..5 }));
    let end = conn.step(MonotonicTimestamp(0), &mut []).unwrap();
    assert_eq!(end.consumed, 0);
    assert_eq!(end.event, H1Event::Complete { id: RequestId(0), trailers: None, reuse: Ok(()) });
    assert!(conn.is_idle());
}

#[test]
fn empty_body_completes_after_its_head() {
    for wire in [
        &b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"[..],
        b"HTTP/1.1 204 No Content\r\nContent-Length: 7\r\n\r\n",
        b"HTTP/1.1 304 Not Modified\r\nTransfer-Encoding: chunked\r\n\r\n",
    ] {
        let seen = answer(wire, InputEnd::Open);
        assert!(matches!(seen[..], [H1Observation::Head(..), H1Observation::Complete(0, None, Ok(()))]), "{seen:?}");
    }
}

#[test]
fn response_to_head_has_no_body() {
    for fields in ["Content-Length: 500", "Transfer-Encoding: chunked", "Content-Length: 42,30", ""] {
        let wire = format!("HTTP/1.1 200 OK\r\n{fields}{}\r\n", if fields.is_empty() { "" } else { "\r\n" });
        let seen = feed(&mut asked(H1Config::default(), &[with_method("HEAD")]), wire.as_bytes(), &[], InputEnd::Open);
        assert!(
            matches!(
                seen[..],
                [H1Observation::Head(_, _, ResponseBodyFraming::None), H1Observation::Complete(_, None, Ok(()))]
            ),
            "{fields}: {seen:?}"
        );
    }
}

#[test]
fn chunk_extensions_and_trailers_are_accepted() {
    let wire = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\
        5\r\nhello\r\n1;a=b;c=\"d e\"\r\n,\r\n006 ;x\r\n world\r\n0\r\nDigest: x\r\nB:\r\n\r\n";
    let seen = answer(wire, InputEnd::Open);
    assert_eq!(body_of(&seen), b"hello, world");
    assert_eq!(seen.last(), Some(&H1Observation::Complete(0, Some(b"Digest: x\r\nB:\r\n\r\n".to_vec()), Ok(()))));
}

/// Sends heads with lines that real servers send by mistake, such as nginx's `add_header "Feature
/// Policy" ...`. The client skips these lines.
#[test]
fn lines_with_invalid_names_are_skipped() {
    for line in
        ["Feature Policy: x", "en-US Content-Type: text/xml", "X : y", "X\t: y", "A(b)/c,d@e: f", "\u{e9}: x\r\n y"]
    {
        let wire = format!("HTTP/1.1 200 OK\r\nA: 1\r\n{line}\r\nB: \x072\r\nContent-Length: 2\r\n\r\nok");
        let seen = answer(wire.as_bytes(), InputEnd::Open);
        assert_eq!(body_of(&seen), b"ok", "{line}");
        let Some(H1Observation::Head(_, raw, _)) = seen.first() else { panic!("{line}: {seen:?}") };
        assert!(wire.replace("\r\n y", " y").as_bytes().starts_with(raw), "{line}");
        let head = ResponseHead::from_raw(raw).unwrap();
        assert_eq!(head.fields().map(|(name, _)| name).collect::<Vec<_>>(), ["A", "B", "Content-Length"], "{line}");
    }
}

#[test]
fn body_until_close_needs_a_clean_end() {
    let wire = b"HTTP/1.1 200 OK\r\n\r\nall of it";
    let seen = answer(wire, InputEnd::Clean);
    assert_eq!(body_of(&seen), b"all of it");
    assert_eq!(reuse_of(&seen), Some(Err(CloseReason::UntilClose)));
    assert_eq!(error_of(wire, InputEnd::Cut), Some(H1Error::EndedUncleanly { got: 9 }));
    assert_eq!(reuse_of(&answer(b"HTTP/1.1 200 OK\r\n\r\n", InputEnd::Clean)), Some(Err(CloseReason::UntilClose)));
}

#[test]
fn early_close_error_names_the_truncated_part() {
    let chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    let in_chunks = |body: &[u8]| error_of(&[chunked, body].concat(), InputEnd::Clean);
    assert_eq!(error_of(b"", InputEnd::Clean), Some(H1Error::Response(ResponseError::EndedBeforeResponse)));
    let head = b"HTTP/1.1 200 OK\r\nA: b\r\n\r";
    for (at, got) in (1..head.len()).zip(1..) {
        let is_line = at < b"HTTP/1.1 200 OK\r\n".len();
        let expected = if is_line { H1Error::EndedInStatusLine { got } } else { H1Error::EndedInHead { got } };
        assert_eq!(error_of(&head[..at], InputEnd::Clean), Some(expected));
    }
    let behind = b"HTTP/1.1 100 Go\r\n\r\nHTTP/1.1 2";
    assert_eq!(error_of(behind, InputEnd::Clean), Some(H1Error::EndedInStatusLine { got: 29 }));
    assert_eq!(
        error_of(b"HTTP/1.1 100 Go\r\n\r\n", InputEnd::Clean),
        Some(H1Error::Response(ResponseError::EndedBeforeResponse))
    );
    let short = b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n1234";
    assert_eq!(error_of(short, InputEnd::Clean), Some(H1Error::EndedInBody { expected: 10, got: 4 }));
    assert_eq!(in_chunks(b"5\r\nhel"), Some(H1Error::EndedInChunks { got: 3 }));
    assert_eq!(in_chunks(b"5\r\nhello\r\n"), Some(H1Error::EndedInChunks { got: 5 }));
    assert_eq!(in_chunks(b"5\r\nhello\r\n0\r\n"), Some(H1Error::EndedInChunks { got: 5 }));
    assert_eq!(in_chunks(b"5\r\nhello\r\n0\r\nA: b\r\n"), Some(H1Error::EndedInChunks { got: 5 }));
    let mut idle = H1Machine::new(H1Config::default());
    assert_eq!(idle.end_of_input(true), Err(H1Error::Response(ResponseError::EndedIdle)));
    assert!(!idle.can_enqueue());
}

#[test]
fn close_right_after_the_body_completes_response() {
    let mut conn = asked(H1Config::default(), &[get()]);
    let mut wire = *b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
    let head = conn.step(MonotonicTimestamp(0), &mut wire).unwrap().consumed;
    conn.step(MonotonicTimestamp(0), &mut wire[head..]).unwrap();
    let event = conn.end_of_input(false).unwrap();
    assert!(matches!(event, H1Event::Complete { reuse: Err(CloseReason::PeerClosed), .. }));
}

#[test]
fn keep_alive_follows_version_and_connection_field() {
    let cases: &[(&str, &str, Result<(), CloseReason>)] = &[
        ("1.1", "", Ok(())),
        ("1.1", "Connection: close\r\n", Err(CloseReason::ServerClose)),
        ("1.1", "Connection: Upgrade, CLOSE\r\n", Err(CloseReason::ServerClose)),
        ("1.1", "Connection: x\r\nConnection: close\r\n", Err(CloseReason::ServerClose)),
        ("1.1", "Connection: closed\r\n", Ok(())),
        ("1.1", "Connection: keep-alive\r\n", Ok(())),
        ("1.0", "", Err(CloseReason::Http10)),
        ("1.0", "Connection: keep-alive\r\n", Ok(())),
        ("1.0", "Connection: Keep-Alive, close\r\n", Err(CloseReason::ServerClose)),
    ];
    for (version, fields, reuse) in cases {
        let wire = format!("HTTP/{version} 200 OK\r\nContent-Length: 2\r\n{fields}\r\nok");
        assert_eq!(reuse_of(&answer(wire.as_bytes(), InputEnd::Open)), Some(*reuse), "{version} {fields:?}");
    }
    let fields: &[(&str, &[u8])] = &[("Connection", b"close")];
    let mut conn = asked(H1Config::default(), &[haul_proto::h1::RequestHead { fields, ..get() }]);
    let seen = feed(&mut conn, b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", &[], InputEnd::Open);
    assert_eq!(reuse_of(&seen), Some(Err(CloseReason::ClientClose)));
}

#[test]
fn proxy_connection_field_counts_only_from_a_proxy() {
    let cases: &[(&str, &str, Result<(), CloseReason>)] = &[
        ("1.1", "Proxy-Connection: close\r\n", Err(CloseReason::ServerClose)),
        ("1.1", "Proxy-Connection: Keep-Alive\r\n", Ok(())),
        ("1.1", "Connection: keep-alive\r\nProxy-Connection: close\r\n", Err(CloseReason::ServerClose)),
        ("1.0", "Proxy-Connection: keep-alive\r\n", Ok(())),
    ];
    for (version, fields, reuse) in cases {
        let wire = format!("HTTP/{version} 200 OK\r\nContent-Length: 2\r\n{fields}\r\nok");
        let mut conn = asked(H1Config { is_proxy: true, ..H1Config::default() }, &[get()]);
        assert_eq!(
            reuse_of(&feed(&mut conn, wire.as_bytes(), &[], InputEnd::Open)),
            Some(*reuse),
            "{version} {fields:?}"
        );
    }
    let origin = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nProxy-Connection: close\r\n\r\nok";
    assert_eq!(reuse_of(&answer(origin, InputEnd::Open)), Some(Ok(())), "it means nothing from an origin");
}

#[test]
fn close_reason_is_known_after_the_head() {
    let mut conn = asked(H1Config { max_pipeline: 4, ..H1Config::default() }, &[get()]);
    let mut wire = *b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\nConnection: close\r\n\r\n";
    conn.step(MonotonicTimestamp(0), &mut wire).unwrap();
    assert_eq!(conn.close_reason(), Some(CloseReason::ServerClose));
    assert!(!conn.can_enqueue());
    assert!(conn.response_started());
}

#[test]
fn transfer_encoding_overrides_content_length_without_reuse() {
    for (version, fields, reason) in [
        ("1.1", "Transfer-Encoding: chunked\r\nContent-Length: 999\r\n", CloseReason::LengthAndCoding),
        ("1.1", "Content-Length: 3\r\ntransfer-encoding:  Chunked \r\n", CloseReason::LengthAndCoding),
        ("1.0", "Transfer-Encoding: chunked\r\nConnection: keep-alive\r\n", CloseReason::CodingInHttp10),
    ] {
        let wire = format!("HTTP/{version} 200 OK\r\n{fields}\r\n2\r\nok\r\n0\r\n\r\n");
        let seen = answer(wire.as_bytes(), InputEnd::Open);
        assert_eq!((body_of(&seen), reuse_of(&seen)), (b"ok".to_vec(), Some(Err(reason))), "{fields}");
    }
}

#[test]
fn identity_transfer_coding_is_ignored() {
    let seen = answer(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: identity\r\n\r\nrest", InputEnd::Clean);
    assert_eq!(body_of(&seen), b"rest");
    let wire = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: identity\r\nContent-Length: 2\r\n\r\nok";
    let seen = answer(wire, InputEnd::Open);
    assert_eq!((body_of(&seen), reuse_of(&seen)), (b"ok".to_vec(), Some(Err(CloseReason::LengthAndCoding))));
}

#[test]
fn equal_content_lengths_count_as_one() {
    for fields in ["Content-Length: 2, 2", "Content-Length: 2\r\nContent-Length: 2", "content-length: 02"] {
        let wire = format!("HTTP/1.1 200 OK\r\n{fields}\r\n\r\nok");
        let seen = answer(wire.as_bytes(), InputEnd::Open);
        assert_eq!((body_of(&seen), reuse_of(&seen)), (b"ok".to_vec(), Some(Ok(()))), "{fields}");
    }
}

#[test]
fn heads_with_minor_deviations_are_accepted() {
    // LF alone (RFC 9112 §2.2), no reason, empty lines before the status line, folds.
    let wire = b"\r\n\nHTTP/1.1 200\nContent-Length:2\nX-Folded: a\r\n\t b\n\nok";
    let mut conn = asked(H1Config::default(), &[get()]);
    let mut input = wire.to_vec();
    let step = conn.step(MonotonicTimestamp(0), &mut input).unwrap();
    let H1Event::Head { head, framing, .. } = step.event else { panic!("{:?}", step.event) };
    assert_eq!(framing, ResponseBodyFraming::Length(2));
    assert_eq!(head.reason(), b"");
    assert_eq!(head.get("x-folded"), Some(&b"a b"[..]), "a fold is a space (RFC 9112 §5.2)");
    assert_eq!(head.raw(), b"HTTP/1.1 200\nContent-Length:2\nX-Folded: a b\n\n", "raw is as received but for folds");
    assert_eq!(step.consumed, wire.len() - 2);
}

#[test]
fn folded_header_lines_are_joined() {
    let head = |text: &str| {
        let mut conn = asked(H1Config::default(), &[get()]);
        let mut input = format!("HTTP/1.1 200 OK\r\n{text}Content-Length: 0\r\n\r\n").into_bytes();
        match conn.step(MonotonicTimestamp(0), &mut input).unwrap().event {
            H1Event::Head { head, .. } => head,
            event => panic!("{text:?} {event:?}"),
        }
    };
    for (folded, line, value) in [
        ("A: x/\r\n y\r\n z\r\n", "A: x/ y z\r\n", "x/ y z"),
        ("A: x/\t\r\n\ty\r\n\t z\r\n", "A: x/ y z\r\n", "x/ y z"),
        ("A:          \r\n   x\r\n", "A: x\r\n", "x"),
        ("A:\r\n \r\n\t\r\n", "A: \r\n", ""),
        ("A: x\r\n \r\nB: y\r\n", "A: x \r\nB: y\r\n", "x"),
        ("A: x;\n  y\r\n", "A: x; y\r\n", "x; y"),
        ("A: x\x01\r\n y\r\n", "A: x\x01 y\r\n", "x\x01 y"),
    ] {
        let head = head(folded);
        assert_eq!(head.get("A"), Some(value.as_bytes()), "{folded:?}");
        let expected = format!("HTTP/1.1 200 OK\r\n{line}Content-Length: 0\r\n\r\n");
        assert_eq!(String::from_utf8_lossy(head.raw()), expected, "{folded:?}");
    }
}

#[test]
fn response_head_accessors_return_its_parts() {
    let mut conn = asked(H1Config::default(), &[get()]);
    let mut wire =
        b"HTTP/1.0 299 Tr\xc3\xa8s bien\r\nSet-Cookie: a=1\r\nserver:x \r\nSET-COOKIE: b=2\r\nE:\r\n\r\n".to_vec();
    let H1Event::Head { head, .. } = conn.step(MonotonicTimestamp(0), &mut wire).unwrap().event else { panic!() };
    assert_eq!(head.version().to_string(), "HTTP/1.0");
    assert_eq!((head.status(), head.reason()), (299, &b"Tr\xc3\xa8s bien"[..]));
    assert_eq!(head.get("Server"), Some(&b"x"[..]));
    assert_eq!(head.get("E"), Some(&b""[..]));
    assert_eq!(head.get("none"), None);
    assert_eq!(head.get_all("set-cookie").collect::<Vec<_>>(), [b"a=1", b"b=2"]);
    let names: Vec<&str> = head.fields().map(|(name, _)| name).collect();
    assert_eq!(names, ["Set-Cookie", "server", "SET-COOKIE", "E"]);
    let shown = format!("{head:?}");
    assert!(shown.contains("status: 299") && !shown.contains("a=1"), "values stay out of Debug: {shown}");
}

#[test]
fn heads_with_thousands_of_fields_are_parsed() {
    let fields: String = (0..4_999).map(|number| format!("X{number}: {number}\r\n")).collect();
    let wire = format!("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n{fields}\r\n");
    let mut conn = asked(H1Config::default(), &[get()]);
    let H1Event::Head { head, .. } = conn.step(MonotonicTimestamp(0), &mut wire.into_bytes()).unwrap().event else {
        panic!()
    };
    assert_eq!(head.fields().count(), 5_000);
    assert_eq!(head.get("x4998"), Some(&b"4998"[..]));
}

#[test]
fn interim_heads_come_before_the_final_head() {
    let wire = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n\
        HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
    let seen = answer(wire, InputEnd::Open);
    assert!(
        matches!(
            seen[..],
            [
                H1Observation::Interim(..),
                H1Observation::Interim(..),
                H1Observation::Head(..),
                H1Observation::Body(..),
                H1Observation::Complete(_, _, Ok(()))
            ]
        ),
        "{seen:?}"
    );
}

#[test]
fn number_of_interim_heads_is_limited() {
    let limits = ResponseLimits { interim: 3, ..ResponseLimits::default() };
    let wire = b"HTTP/1.1 102 Processing\r\n\r\n".repeat(4);
    let seen = feed(&mut asked(H1Config { limits, ..H1Config::default() }, &[get()]), &wire, &[], InputEnd::Open);
    assert_eq!(seen.len(), 4);
    assert_eq!(seen.last(), Some(&H1Observation::Error(H1Error::Response(ResponseError::TooManyInterim { limit: 3 }))));
    let limits = ResponseLimits { head_bytes: 60, ..ResponseLimits::default() };
    let seen = feed(&mut asked(H1Config { limits, ..H1Config::default() }, &[get()]), &wire, &[], InputEnd::Open);
    assert_eq!(
        seen.last(),
        Some(&H1Observation::Error(H1Error::Response(ResponseError::HeadTooLarge { limit: 60 }))),
        "interim heads count"
    );
}

#[test]
fn bytes_after_tunnel_head_stay_for_the_caller() {
    let connect = with_method("CONNECT");
    let wire = b"HTTP/1.1 200 Connection established\r\nContent-Length: 5\r\nTransfer-Encoding: x\r\n\r\n\x16\x03\x01";
    let mut conn = asked(H1Config::default(), &[connect]);
    let seen = feed(&mut conn, wire, &[], InputEnd::Open);
    assert!(matches!(&seen[..], [H1Observation::Tunnel(0, _, rest)] if rest == b"\x16\x03\x01"), "{seen:?}");
    assert_eq!(conn.close_reason(), Some(CloseReason::Tunnel));
    assert_eq!(
        conn.step(MonotonicTimestamp(0), &mut [1]),
        Err(H1Error::Response(ResponseError::Closed(CloseReason::Tunnel)))
    );

    let refused = b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 2\r\n\r\nno";
    let seen = feed(&mut asked(H1Config::default(), &[connect]), refused, &[], InputEnd::Open);
    assert_eq!((body_of(&seen), reuse_of(&seen)), (b"no".to_vec(), Some(Ok(()))), "a refusal is a plain response");

    let fields: &[(&str, &[u8])] = &[("Connection", b"Upgrade"), ("Upgrade", b"websocket")];
    let upgrade = haul_proto::h1::RequestHead { fields, ..get() };
    let switch = b"HTTP/1.1 101 Switching Protocols\r\n\r\n\x81\x00";
    let seen = feed(&mut asked(H1Config::default(), &[upgrade]), switch, &[], InputEnd::Open);
    assert!(matches!(&seen[..], [H1Observation::Tunnel(0, _, rest)] if rest == b"\x81\x00"), "{seen:?}");
    assert_eq!(error_of(switch, InputEnd::Open), Some(H1Error::UnexpectedUpgrade), "nobody asked");

    let deviations = H1Deviations { upgraded: true, ..H1Deviations::default() };
    let config = || H1Config { deviations, ..H1Config::default() };
    let seen = feed(&mut asked(config(), &[upgrade]), switch, &[], InputEnd::Clean);
    assert_eq!(body_of(&seen), b"\x81\0", "all that follows is content: {seen:?}");
    assert_eq!(reuse_of(&seen), Some(Err(CloseReason::UntilClose)));
    let seen = feed(&mut asked(config(), &[get()]), switch, &[], InputEnd::Clean);
    assert_eq!(seen.last(), Some(&H1Observation::Error(H1Error::UnexpectedUpgrade)), "nobody asked");
}

/// Checks that a field value keeps control bytes other than CR, LF and NUL, as RFC 9110 section 5.5
/// allows.
#[test]
fn control_bytes_in_field_values_are_kept() {
    let wire = b"HTTP/1.1 200 O\x07K\r\nX: \x01a\x7f \r\nY: b\r\nContent-Length: 0\r\n\r\n";
    let mut conn = asked(H1Config::default(), &[get()]);
    let H1Event::Head { head, .. } = conn.step(MonotonicTimestamp(0), &mut wire.clone()).unwrap().event else {
        panic!("no head")
    };
    assert_eq!((head.get("x"), head.get("y")), (Some(&b"\x01a\x7f"[..]), Some(&b"b"[..])));
    assert_eq!((head.reason(), head.raw()), (&b"O\x07K"[..], &wire[..]));
}

#[test]
fn driver_may_move_body_bytes_itself() {
    let mut conn = asked(H1Config::default(), &[get()]);
    assert_eq!(conn.direct_body(), None);
    let mut wire = *b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n123";
    let head = conn.step(MonotonicTimestamp(0), &mut wire).unwrap().consumed;
    assert_eq!(conn.direct_body(), Some(10));
    conn.step(MonotonicTimestamp(0), &mut wire[head..]).unwrap();
    assert_eq!(conn.direct_body(), Some(7));
    assert_eq!(conn.advance_body(0), None);
    assert_eq!(conn.advance_body(6), None);
    let end = conn.advance_body(1);
    assert!(matches!(end, Some(H1Event::Complete { reuse: Ok(()), .. })));
    assert!(conn.is_idle());
    assert_eq!((conn.direct_body(), conn.advance_body(0)), (None, None));
}

#[test]
fn driver_moves_only_bodies_of_known_length() {
    for wire in [
        &b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"[..],
        b"HTTP/1.1 200 OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
    ] {
        let mut conn = asked(H1Config::default(), &[get()]);
        conn.step(MonotonicTimestamp(0), &mut wire.to_vec()).unwrap();
        assert_eq!(conn.direct_body(), None);
    }
}

#[test]
fn head_is_parsed_from_its_raw_bytes() {
    use haul_proto::response_head::ResponseHead;
    let texts: [&[u8]; 5] = [
        b"HTTP/1.1 200 OK\r\nA: b\r\nSet-Cookie: x\r\n\r\n",
        b"HTTP/1.0 404 No\xff\nA:  b\n\n",
        b"HTTP/1.1 200 OK\r\nA: b c\r\n\r\n",
        b"HTTP/2 599 \r\na: b\r\na: c\r\n\r\n",
        b"HTTP/3 200 \r\na: b\r\na: c\r\n\r\n",
    ];
    for raw in texts {
        let head = ResponseHead::from_raw(raw).unwrap();
        assert_eq!(head.raw(), raw);
        assert!(head.get("a").unwrap().starts_with(b"b"));
        for cut in 0..raw.len() {
            assert!(ResponseHead::from_raw(&raw[..cut]).is_none(), "{cut}");
        }
        assert!(ResponseHead::from_raw(&[raw, b"x"].concat()).is_none());
    }
    for bad in [&b"HTTP/2 20 \r\n\r\n"[..], b"HTTP/2 200\r\n\r\n", b"HTTP/2 +20 \r\n\r\n", b"HTTP/4 200 \r\n\r\n"] {
        assert!(ResponseHead::from_raw(bad).is_none());
    }
}

#[test]
fn te_of_the_request_allows_other_codings() {
    let asking = |value: &'static [u8]| {
        let fields: &'static [(&str, &[u8])] = Box::leak(Box::new([("Host", &b"h"[..]), ("TE", value)]));
        RequestHead { fields, ..get() }
    };
    let wire = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n";
    let answered = |value| feed(&mut asked(H1Config::default(), &[asking(value)]), wire, &[], InputEnd::Open);
    for value in [&b"gzip"[..], b"trailers, deflate;q=0.5, gzip"] {
        let seen = answered(value);
        assert_eq!((&body_of(&seen)[..], reuse_of(&seen)), (&b"ok"[..], Some(Ok(()))), "undecoded, for the caller");
    }
    for value in [&b"trailers"[..], b""] {
        let refused = Some(&H1Observation::Error(H1Error::TransferCoding(TransferCodingFault::Unsupported)));
        assert_eq!(answered(value).last(), refused, "{}", value.escape_ascii());
    }
    // The next request on the connection did not ask.
    let mut conn = asked(H1Config::default(), &[asking(b"gzip"), get()]);
    let seen = feed(&mut conn, &wire.repeat(2), &[], InputEnd::Open);
    assert_eq!(seen.last(), Some(&H1Observation::Error(H1Error::TransferCoding(TransferCodingFault::Unsupported))));
}

#[test]
fn close_reason_tells_a_fault_from_an_end() {
    let reason = |wire: &[u8]| {
        let mut conn = asked(H1Config::default(), &[get()]);
        let seen = feed(&mut conn, wire, &[], InputEnd::Clean);
        assert!(matches!(seen.last(), Some(H1Observation::Error(_))), "{seen:?}");
        conn.close_reason()
    };
    assert_eq!(reason(b"HTTP/1.1 2x0 OK\r\n\r\n"), Some(CloseReason::Broken));
    assert_eq!(reason(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nx"), Some(CloseReason::PeerClosed));
    assert_eq!(reason(b""), Some(CloseReason::PeerClosed));
}

#[test]
fn second_response_that_is_no_http_is_refused() {
    let config =
        H1Config { deviations: H1Deviations { http09: true, ..H1Deviations::default() }, ..H1Config::default() };
    let mut conn = asked(config, &[get(), get()]);
    let wire = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\ngarbage, not a response";
    let seen = feed(&mut conn, wire, &[], InputEnd::Open);
    assert_eq!(seen.last(), Some(&H1Observation::Error(H1Error::NotHttp { first: false })));
}

#[test]
fn four_empty_lines_before_a_response_are_skipped() {
    for lines in [&b"\r\n\r\n\r\n\r\n"[..], b"\n\r\n\n\n"] {
        let wire = [lines, b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"].concat();
        assert_eq!(reuse_of(&answer(&wire, InputEnd::Open)), Some(Ok(())));
        let more = [b"\n", &wire[..]].concat();
        assert_eq!(error_of(&more, InputEnd::Open), Some(H1Error::EmptyLines { limit: 4 }));
    }
}

#[test]
fn coded_body_ends_at_the_close_despite_its_length() {
    let framing = |raw, tolerant| {
        let deviations = H1Deviations { codings: true, raw, tolerant, ..H1Deviations::default() };
        let config = H1Config { deviations, ..H1Config::default() };
        let wire = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\nContent-Length: 5\r\n\r\nhello";
        match feed(&mut asked(config, &[get()]), wire, &[], InputEnd::Clean).first() {
            Some(H1Observation::Head(_, _, framing)) => *framing,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(
        [framing(false, false), framing(true, false), framing(false, true)],
        [ResponseBodyFraming::UntilClose; 3]
    );
    assert_eq!(framing(true, true), ResponseBodyFraming::Length(5));
}

#[test]
fn names_of_the_same_length_determine_no_framing() {
    let config = H1Config { is_proxy: true, ..H1Config::default() };
    let wire = b"HTTP/1.1 200 OK\r\nX-ABCDEFGH: close\r\nX-ABCDEFGHIJKL: 7\r\nX-ABCDEFGHIJKLMN: close\r\n\
        X-ABCDEFGHIJKLMNO: gzip\r\nContent-Length: 2\r\n\r\nok";
    let seen = feed(&mut asked(config, &[get()]), wire, &[], InputEnd::Open);
    assert_eq!((&body_of(&seen)[..], reuse_of(&seen)), (&b"ok"[..], Some(Ok(()))));
}

/// A line with an invalid name makes the machine look for such names in all lines.
#[test]
fn colon_in_a_reason_phrase_ends_no_name() {
    let wire = b"HTTP/1.1 200 all (is): well\r\nBad Name: x\r\nContent-Length: 2\r\n\r\nok";
    let seen = answer(wire, InputEnd::Open);
    let Some(H1Observation::Head(_, raw, ResponseBodyFraming::Length(2))) = seen.first() else { panic!("{seen:?}") };
    let head = ResponseHead::from_raw(raw).unwrap();
    assert_eq!((head.status(), head.reason()), (200, &b"all (is): well"[..]));
    assert_eq!(head.fields().map(|(name, _)| name).collect::<Vec<_>>(), ["Content-Length"]);
}
