//! Tests of HTTP/1 requests: heads, bodies, Expect, refused requests, pipelining.

mod common;

use common::{H1Observation, InputEnd, asked, body_of, feed, get, reuse_of, with_method};
use core::time::Duration;
use haul_proto::ResponseError;
use haul_proto::h1::{
    BodyLength, CloseReason, H1Config, H1Error, H1Event, H1Machine, RequestHead, RequestId, SendRequestError,
};
use haul_proto::time::MonotonicTimestamp;

const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

fn post(body: BodyLength) -> RequestHead<'static> {
    RequestHead { body, ..with_method("POST") }
}

fn drain(conn: &mut H1Machine) -> Vec<u8> {
    let sent = conn.output().to_vec();
    conn.advance_output(sent.len());
    sent
}

#[test]
fn request_fields_keep_order_and_spelling() {
    let fields: &[(&str, &[u8])] = &[("hOST", b"h"), ("X-Empty", b""), ("A", b"\xff 1"), ("Cookie", b"a=b; c=d")];
    let mut conn = asked(H1Config::default(), &[]);
    conn.enqueue(MonotonicTimestamp(0), &RequestHead { target: "http://h/p?q=\u{e9}", fields, ..get() }).unwrap();
    let expected = [
        "GET http://h/p?q=\u{e9} HTTP/1.1\r\nhOST: h\r\nX-Empty:\r\nA: ".as_bytes(),
        b"\xff 1\r\nCookie: a=b; c=d\r\n\r\n",
    ];
    assert_eq!(conn.output(), expected.concat());
}

#[test]
fn framing_fields_are_added_only_if_missing() {
    let head = |body, fields: &[(&str, &[u8])]| {
        let mut conn = H1Machine::new(H1Config::default());
        conn.enqueue(MonotonicTimestamp(0), &RequestHead { fields, ..post(body) })
            .map(|_| String::from_utf8(drain(&mut conn)).unwrap())
    };
    let plain = "POST / HTTP/1.1\r\n";
    assert_eq!(head(BodyLength::None, &[]).unwrap(), format!("{plain}\r\n"));
    assert_eq!(head(BodyLength::Known(0), &[]).unwrap(), format!("{plain}Content-Length: 0\r\n\r\n"));
    let max = head(BodyLength::Known(u64::MAX), &[]).unwrap();
    assert_eq!(max, format!("{plain}Content-Length: 18446744073709551615\r\n\r\n"));
    assert_eq!(head(BodyLength::Chunked, &[]).unwrap(), format!("{plain}Transfer-Encoding: chunked\r\n\r\n"));
    let own = head(BodyLength::Known(5), &[("content-length", b"5")]).unwrap();
    assert_eq!(own, format!("{plain}content-length: 5\r\n\r\n"));
    let own = head(BodyLength::Chunked, &[("TE", b"x"), ("transfer-encoding", b"gzip, Chunked")]).unwrap();
    assert_eq!(own, format!("{plain}TE: x\r\ntransfer-encoding: gzip, Chunked\r\n\r\n"));
    assert!(head(BodyLength::None, &[("Content-Length", b"0")]).is_ok());

    for (body, fields) in [
        (BodyLength::Known(5), &[("Content-Length", &b"6"[..])][..]),
        (BodyLength::Known(5), &[("Content-Length", b"+5")]),
        (BodyLength::Known(5), &[("Content-Length", b"5, 5")]),
        (BodyLength::Known(5), &[("Content-Length", b"5"), ("Content-Length", b"5")]),
        (BodyLength::Known(5), &[("Transfer-Encoding", b"chunked")]),
        (BodyLength::Known(5), &[("Content-Length", b"5"), ("Transfer-Encoding", b"chunked")]),
        (BodyLength::None, &[("Content-Length", b"5")]),
        (BodyLength::None, &[("Transfer-Encoding", b"chunked")]),
        (BodyLength::Chunked, &[("Content-Length", b"5")]),
        (BodyLength::Chunked, &[("Transfer-Encoding", b"gzip")]),
        (BodyLength::Chunked, &[("Transfer-Encoding", b"chunked, gzip")]),
        (BodyLength::Chunked, &[("Transfer-Encoding", b"chunked, chunked")]),
        (BodyLength::Chunked, &[("Transfer-Encoding", b"chunked"), ("Transfer-Encoding", b"chunked")]),
    ] {
        let index = fields.len() - 1;
        assert_eq!(head(body, fields), Err(SendRequestError::FramingField { index }), "{body:?} {fields:?}");
    }
}

#[test]
fn invalid_method_target_and_fields_are_refused() {
    let refused = |request: RequestHead<'_>| {
        let mut conn = H1Machine::new(H1Config::default());
        let error = conn.enqueue(MonotonicTimestamp(0), &request).expect_err("refused");
        assert!(conn.output().is_empty() && conn.is_idle(), "an error changes nothing");
        error
    };
    for method in ["", "GE T", "GET\r\n", "G\u{e9}T", "GET:", "\0"] {
        assert_eq!(refused(RequestHead { method, ..get() }), SendRequestError::Method, "{method:?}");
    }
    for target in ["", "/a b", "/\r\n", "/\n", "/\0", "/\t", "/\x7f", " /"] {
        assert_eq!(refused(RequestHead { target, ..get() }), SendRequestError::Target, "{target:?}");
    }
    for name in ["", "A B", "A:", "A\r\nB", "A\n", "\u{e9}", "A\0", " A"] {
        let fields: &[(&str, &[u8])] = &[("Host", b"h"), (name, b"x")];
        assert_eq!(refused(RequestHead { fields, ..get() }), SendRequestError::FieldName { index: 1 }, "{name:?}");
    }
    for value in [&b"a\r\nEvil: 1"[..], b"a\n", b"\r", b"\0"] {
        let fields: &[(&str, &[u8])] = &[("Host", value)];
        assert_eq!(refused(RequestHead { fields, ..get() }), SendRequestError::FieldValue { index: 0 }, "{value:?}");
    }
}

#[test]
fn debug_output_of_a_request_has_no_secrets() {
    let fields: &[(&str, &[u8])] = &[("Authorization", b"Bearer sesame")];
    let request = RequestHead { target: "/?key=sesame", fields, ..get() };
    let mut conn = H1Machine::new(H1Config::default());
    conn.enqueue(MonotonicTimestamp(0), &request).unwrap();
    let printed = format!("{request:?} {conn:?}");
    assert!(printed.contains("Authorization") && !printed.contains("sesame"), "{printed}");
    assert!(!printed.contains("115, 101, 115"), "nor as numbers: {printed}");
}

#[test]
fn head_and_small_body_are_one_output_slice() {
    let mut conn = H1Machine::new(H1Config::default());
    conn.enqueue(MonotonicTimestamp(0), &post(BodyLength::Known(5))).unwrap();
    assert_eq!(conn.body_credit(), Some(5));
    assert_eq!(conn.send_body(b"he"), Ok(2));
    assert_eq!(conn.finish_body(&[]), Err(SendRequestError::BodyTooShort { missing: 3 }));
    assert_eq!(conn.send_body(b"llo!"), Err(SendRequestError::BodyTooLong { expected: 3 }));
    assert_eq!(conn.send_body(b"llo"), Ok(3));
    assert_eq!((conn.body_credit(), conn.finish_body(&[])), (None, Ok(())));
    assert_eq!(conn.send_body(b"x"), Err(SendRequestError::NoBodyExpected));
    assert_eq!(conn.finish_body(&[("A", b"b")]), Err(SendRequestError::TrailersWithoutChunks));
    assert_eq!(drain(&mut conn), b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhello");
    assert_eq!(reuse_of(&feed(&mut conn, OK, &[], InputEnd::Open)), Some(Ok(())));
}

#[test]
fn body_is_written_into_the_output() {
    let fill = |bytes: &'static [u8]| {
        move |room: &mut [u8]| {
            let n = bytes.len().min(room.len());
            room[..n].copy_from_slice(&bytes[..n]);
            n
        }
    };
    let mut conn = H1Machine::new(H1Config::default());
    assert!(conn.fill_body(5, fill(b"hello")).is_err(), "no request has a body");
    conn.enqueue(MonotonicTimestamp(0), &post(BodyLength::Known(7))).unwrap();
    drain(&mut conn);
    assert_eq!(conn.fill_body(5, fill(b"hello")), Ok(5));
    assert_eq!(conn.fill_body(5, fill(b"")), Ok(0));
    assert_eq!(conn.fill_body(5, fill(b", world")), Ok(2));
    assert_eq!(drain(&mut conn), b"hello, ");
    assert_eq!(conn.body_credit(), None, "the body is complete");

    let mut conn = H1Machine::new(H1Config::default());
    conn.enqueue(MonotonicTimestamp(0), &post(BodyLength::Chunked)).unwrap();
    drain(&mut conn);
    assert_eq!(conn.fill_body(9, fill(b"hello")), Ok(5));
    assert_eq!(conn.fill_body(9, fill(b"")), Ok(0));
    conn.finish_body(&[]).unwrap();
    let sent = drain(&mut conn);
    let size = sent.iter().position(|&byte| byte == b'\r').expect("a size line");
    assert_eq!(usize::from_str_radix(core::str::from_utf8(&sent[..size]).unwrap(), 16), Ok(5), "zeros may lead");
    assert_eq!(&sent[size..], b"\r\nhello\r\n0\r\n\r\n");
}

#[test]
fn direct_body_moves_within_a_chunk_only() {
    let mut conn = H1Machine::new(H1Config::default());
    conn.enqueue(MonotonicTimestamp(0), &post(BodyLength::Chunked)).unwrap();
    drain(&mut conn);
    conn.advance_direct_body(0);
    assert!(conn.may_begin_chunk() && !conn.is_in_chunk(), "the body goes on");
    conn.begin_chunk(5);
    assert!(conn.is_in_chunk() && !conn.may_begin_chunk());
    assert_eq!(conn.direct_body_credit(), 0, "the size line is first");
    assert_eq!(drain(&mut conn), b"5\r\n");
    assert_eq!(conn.direct_body_credit(), 5);
    conn.advance_direct_body(3);
    assert_eq!(conn.direct_body_credit(), 2);
    conn.advance_direct_body(2);
    assert!(conn.may_begin_chunk());
    conn.finish_body(&[]).unwrap();
    assert_eq!(drain(&mut conn), b"\r\n0\r\n\r\n");
}

#[test]
fn chunked_body_and_trailers_are_framed() {
    let mut conn = H1Machine::new(H1Config::default());
    conn.enqueue(MonotonicTimestamp(0), &post(BodyLength::Chunked)).unwrap();
    drain(&mut conn);
    assert_eq!(conn.send_body(b""), Ok(0));
    assert!(conn.output().is_empty(), "an empty chunk would be the end");
    assert_eq!(conn.send_body(&[b'x'; 0x1a2]), Ok(0x1a2));
    let bad: &[(&str, &[u8])] = &[("A", b"b"), ("Content-Length", b"5")];
    assert_eq!(conn.finish_body(bad), Err(SendRequestError::FramingField { index: 1 }));
    assert_eq!(conn.finish_body(&[("A", b"b\n")]), Err(SendRequestError::FieldValue { index: 0 }));
    assert_eq!(conn.finish_body(&[("Digest", b"d")]), Ok(()));
    let expected = [&b"1a2\r\n"[..], &[b'x'; 0x1a2], b"\r\n0\r\nDigest: d\r\n\r\n"].concat();
    assert_eq!(drain(&mut conn), expected);
    assert_eq!(conn.body_credit(), None);
    assert_eq!(reuse_of(&feed(&mut conn, OK, &[], InputEnd::Open)), Some(Ok(())));
}

#[test]
fn unsent_request_output_is_bounded() {
    for body in [BodyLength::Known(1 << 20), BodyLength::Chunked] {
        let mut conn = H1Machine::new(H1Config::default());
        conn.enqueue(MonotonicTimestamp(0), &post(body)).unwrap();
        let data = vec![b'x'; 1 << 20];
        let (mut given, mut sent) = (0, Vec::new());
        while given < data.len() {
            let credit = conn.body_credit().unwrap() as usize;
            let taken = conn.send_body(&data[given..]).unwrap();
            assert_eq!(taken, credit.min(data.len() - given), "{body:?}");
            assert!(conn.output().len() <= 64 * 1024, "{body:?}: {}", conn.output().len());
            given += taken;
            // A socket that takes what it likes.
            let n = conn.output().len().min(10_007);
            sent.extend_from_slice(&conn.output()[..n]);
            conn.advance_output(n);
        }
        conn.finish_body(&[]).unwrap();
        sent.extend(drain(&mut conn));
        assert_eq!(sent.iter().filter(|&&byte| byte == b'x').count(), 1 << 20, "{body:?}");
    }
}

#[test]
fn full_output_accepts_no_body_bytes() {
    let mut conn = H1Machine::new(H1Config::default());
    conn.enqueue(MonotonicTimestamp(0), &post(BodyLength::Chunked)).unwrap();
    while conn.body_credit() != Some(0) {
        conn.send_body(&[0; 4096]).unwrap();
    }
    let before = conn.output().len();
    assert_eq!(conn.send_body(b"more"), Ok(0));
    assert_eq!(conn.output().len(), before);
}

fn expecting() -> RequestHead<'static> {
    RequestHead { expect_continue: true, ..post(BodyLength::Known(4)) }
}

#[test]
fn request_body_waits_for_100_continue() {
    let mut conn = asked(H1Config::default(), &[expecting()]);
    assert_eq!(conn.body_credit(), Some(0));
    assert_eq!(conn.send_body(b"body"), Ok(0));
    let seen = feed(&mut conn, b"HTTP/1.1 103 Early Hints\r\n\r\n", &[], InputEnd::Open);
    assert!(matches!(seen[..], [H1Observation::Interim(..)]));
    assert_eq!(conn.body_credit(), Some(0), "only 100 is a go-ahead");
    feed(&mut conn, b"HTTP/1.1 100 Continue\r\n\r\n", &[], InputEnd::Open);
    assert_eq!((conn.body_credit(), conn.poll_timeout()), (Some(4), None));
    conn.send_body(b"body").unwrap();
    assert_eq!(drain(&mut conn), b"body");
    assert_eq!(reuse_of(&feed(&mut conn, OK, &[], InputEnd::Open)), Some(Ok(())));
}

#[test]
fn wait_for_100_continue_ends_at_timeout() {
    let config = H1Config { expect_timeout: Duration::from_millis(300), ..H1Config::default() };
    let mut conn = H1Machine::new(config);
    conn.enqueue(MonotonicTimestamp(1_000), &expecting()).unwrap();
    assert!(conn.output().ends_with(b"Content-Length: 4\r\nExpect: 100-continue\r\n\r\n"));
    let deadline = MonotonicTimestamp(1_000) + Duration::from_millis(300);
    assert_eq!(conn.poll_timeout(), Some(deadline));
    conn.handle_timeout(MonotonicTimestamp(deadline.0 - 1));
    assert_eq!(conn.body_credit(), Some(0));
    conn.handle_timeout(deadline);
    assert_eq!((conn.body_credit(), conn.poll_timeout()), (Some(4), None));
}

#[test]
fn refusal_before_100_continue_drops_the_body() {
    let mut conn = asked(H1Config::default(), &[expecting()]);
    let seen = feed(&mut conn, b"HTTP/1.1 417 No\r\nContent-Length: 2\r\n\r\nno", &[], InputEnd::Open);
    assert_eq!((body_of(&seen), reuse_of(&seen)), (b"no".to_vec(), Some(Err(CloseReason::RequestUnfinished))));
    assert_eq!((conn.body_credit(), conn.poll_timeout()), (None, None));
    assert_eq!(conn.send_body(b"body"), Err(SendRequestError::Closed(CloseReason::RequestUnfinished)));
}

#[test]
fn closing_success_does_not_end_the_continue_wait() {
    let config = H1Config { expect_timeout: Duration::from_millis(300), ..H1Config::default() };
    let closing = b"HTTP/1.1 200 OK\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n";
    for (rest, credit) in [(&b""[..], Some(4)), (b"0\r\n\r\n", None)] {
        let mut conn = asked(config, &[expecting()]);
        feed(&mut conn, closing, &[], InputEnd::Open);
        assert_eq!(conn.body_credit(), Some(0));
        feed(&mut conn, rest, &[], InputEnd::Open);
        conn.handle_timeout(MonotonicTimestamp(0) + Duration::from_millis(300));
        assert_eq!((conn.body_credit(), conn.poll_timeout()), (credit, None));
    }
}

#[test]
fn expect_is_added_once_and_only_with_body() {
    let mut conn = H1Machine::new(H1Config::default());
    conn.enqueue(MonotonicTimestamp(0), &RequestHead { expect_continue: true, ..get() }).unwrap();
    assert_eq!(conn.output(), b"GET / HTTP/1.1\r\nHost: h\r\n\r\n");
    assert_eq!(conn.poll_timeout(), None);

    let mut conn = H1Machine::new(H1Config::default());
    let fields: &[(&str, &[u8])] = &[("expect", b"100-continue")];
    conn.enqueue(MonotonicTimestamp(0), &RequestHead { fields, ..expecting() }).unwrap();
    assert_eq!(conn.output(), b"POST / HTTP/1.1\r\nexpect: 100-continue\r\nContent-Length: 4\r\n\r\n");
}

#[test]
fn response_before_request_end_prevents_reuse() {
    const NO: &[u8] = b"HTTP/1.1 403 No\r\nContent-Length: 2\r\n\r\nno";
    // The body was not given in full.
    let mut conn = asked(H1Config::default(), &[post(BodyLength::Known(10))]);
    conn.send_body(b"12345").unwrap();
    drain(&mut conn);
    assert_eq!(reuse_of(&feed(&mut conn, NO, &[], InputEnd::Open)), Some(Err(CloseReason::RequestUnfinished)));
    // It was given, but has not left.
    let mut conn = asked(H1Config::default(), &[post(BodyLength::Known(5))]);
    conn.send_body(b"12345").unwrap();
    conn.advance_output(4);
    assert_eq!(reuse_of(&feed(&mut conn, NO, &[], InputEnd::Open)), Some(Err(CloseReason::RequestUnfinished)));
    // A chunked one without its end.
    let mut conn = asked(H1Config::default(), &[post(BodyLength::Chunked)]);
    conn.send_body(b"12345").unwrap();
    drain(&mut conn);
    assert_eq!(reuse_of(&feed(&mut conn, NO, &[], InputEnd::Open)), Some(Err(CloseReason::RequestUnfinished)));
}

#[test]
fn early_success_completes_after_its_request() {
    let chunked: &[u8] = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nX-T: t\r\n\r\n";
    for wire in [OK, chunked] {
        let mut conn = asked(H1Config::default(), &[post(BodyLength::Known(10))]);
        conn.send_body(b"12345").unwrap();
        drain(&mut conn);
        assert_eq!(reuse_of(&feed(&mut conn, wire, &[], InputEnd::Open)), None);
        assert!(!conn.has_completion_to_report() && conn.body_credit() == Some(5) && conn.close_reason().is_none());
        conn.send_body(b"67890").unwrap();
        assert!(!conn.has_completion_to_report());
        drain(&mut conn);
        assert!(conn.has_completion_to_report());
        assert_eq!(reuse_of(&feed(&mut conn, b"", &[], InputEnd::Open)), Some(Ok(())));
        assert!(conn.is_idle());
    }
    // So it is where the content went past the machine.
    let mut conn = asked(H1Config::default(), &[post(BodyLength::Known(5))]);
    feed(&mut conn, b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n", &[], InputEnd::Open);
    assert_eq!((conn.direct_body(), conn.advance_body(2)), (Some(2), None));
    conn.send_body(b"12345").unwrap();
    drain(&mut conn);
    assert_eq!(reuse_of(&feed(&mut conn, b"", &[], InputEnd::Open)), Some(Ok(())));
    // Where the server says that it closes, or has, it reads no further.
    let closing = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok";
    let mut conn = asked(H1Config::default(), &[post(BodyLength::Known(10))]);
    assert_eq!(reuse_of(&feed(&mut conn, closing, &[], InputEnd::Open)), Some(Err(CloseReason::ServerClose)));
    let mut conn = asked(H1Config::default(), &[post(BodyLength::Known(10))]);
    feed(&mut conn, OK, &[], InputEnd::Open);
    assert_eq!(conn.end_of_input(true), Err(H1Error::EndedInRequest));
    // In the place of 100 it lets the body go.
    let mut conn = asked(H1Config::default(), &[expecting()]);
    feed(&mut conn, OK, &[], InputEnd::Open);
    assert_eq!((conn.body_credit(), conn.poll_timeout()), (Some(4), None));
}

#[test]
fn pipelined_responses_are_matched_in_order() {
    let requests = [get(), with_method("HEAD"), get(), get()];
    let mut conn = asked(H1Config::default(), &requests);
    assert_eq!(conn.unanswered().map(|id| id.0).collect::<Vec<_>>(), [0, 1, 2, 3]);
    let wire = b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\naHTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n\
        HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nc\r\n0\r\n\r\nHTTP/1.1 404 No\r\nContent-Length: 1\r\n\r\nd";
    let seen = feed(&mut conn, wire, &[], InputEnd::Open);
    let bodies: Vec<(u64, &[u8])> = seen
        .iter()
        .filter_map(|event| match event {
            H1Observation::Body(id, bytes) => Some((*id, bytes.as_slice())),
            _ => None,
        })
        .collect();
    assert_eq!(bodies, [(0, &b"a"[..]), (2, b"c"), (3, b"d")]);
    let done: Vec<u64> = seen
        .iter()
        .filter_map(|event| match event {
            H1Observation::Complete(id, _, Ok(())) => Some(*id),
            _ => None,
        })
        .collect();
    assert_eq!(done, [0, 1, 2, 3]);
    assert!(conn.is_idle());
}

#[test]
fn broken_pipeline_reports_unanswered_requests() {
    let mut conn = asked(H1Config::default(), &[get(); 3]);
    let wire = b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nConnection: close\r\n\r\naHTTP/1.1 200 OK\r\n\r\n";
    let seen = feed(&mut conn, wire, &[], InputEnd::Open);
    assert_eq!(seen.len(), 3);
    assert_eq!(reuse_of(&seen), Some(Err(CloseReason::ServerClose)));
    assert_eq!(conn.unanswered().collect::<Vec<_>>(), [RequestId(1), RequestId(2)]);
    assert!(!conn.response_started());
    assert_eq!(
        conn.step(MonotonicTimestamp(0), &mut [b'H']),
        Err(H1Error::Response(ResponseError::Closed(CloseReason::ServerClose)))
    );

    let mut conn = asked(H1Config::default(), &[get(); 3]);
    let wire = b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\naHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab";
    let seen = feed(&mut conn, wire, &[], InputEnd::Clean);
    assert_eq!(seen.last(), Some(&H1Observation::Error(H1Error::EndedInBody { expected: 5, got: 2 })));
    assert_eq!((conn.current_request(), conn.response_started()), (Some(RequestId(1)), true));
    assert_eq!(conn.unanswered().collect::<Vec<_>>(), [RequestId(1), RequestId(2)]);
}

#[test]
fn enqueue_names_the_reason_for_refusal() {
    let mut conn = H1Machine::new(H1Config { max_pipeline: 2, ..H1Config::default() });
    conn.enqueue(MonotonicTimestamp(0), &get()).unwrap();
    conn.enqueue(MonotonicTimestamp(0), &get()).unwrap();
    assert!(!conn.can_enqueue());
    assert_eq!(conn.enqueue(MonotonicTimestamp(0), &get()), Err(SendRequestError::PipelineFull { limit: 2 }));

    let full = |first: RequestHead<'_>| {
        let mut conn = H1Machine::new(H1Config { max_pipeline: 0, ..H1Config::default() });
        conn.enqueue(MonotonicTimestamp(0), &first).unwrap();
        conn.enqueue(MonotonicTimestamp(0), &get())
    };
    assert_eq!(full(get()), Err(SendRequestError::PipelineFull { limit: 1 }));
    assert_eq!(full(post(BodyLength::Known(1))), Err(SendRequestError::BodyPending));
    assert_eq!(full(with_method("CONNECT")), Err(SendRequestError::TunnelPending));
    assert_eq!(full(RequestHead { fields: &[("Upgrade", b"x")], ..get() }), Err(SendRequestError::TunnelPending));
    let last = RequestHead { fields: &[("Connection", b"x, Close")], ..get() };
    assert_eq!(full(last), Err(SendRequestError::Closed(CloseReason::ClientClose)));
}

#[test]
fn one_connection_serves_many_sequential_requests() {
    let mut conn = H1Machine::new(H1Config::default());
    for number in 0..1_000 {
        assert!(conn.is_idle() && conn.can_enqueue());
        assert_eq!(conn.enqueue(MonotonicTimestamp(number), &get()), Ok(RequestId(number)));
        assert!(!conn.is_idle());
        drain(&mut conn);
        let mut wire = OK.to_vec();
        let head = conn.step(MonotonicTimestamp(number), &mut wire).unwrap().consumed;
        conn.step(MonotonicTimestamp(number), &mut wire[head..]).unwrap();
        let end = conn.step(MonotonicTimestamp(number), &mut []).unwrap().event;
        assert_eq!(end, H1Event::Complete { id: RequestId(number), trailers: None, reuse: Ok(()) });
    }
}

#[test]
fn surplus_after_an_early_success_ends_the_exchange() {
    let mut conn = asked(H1Config::default(), &[post(BodyLength::Known(4))]);
    assert_eq!(reuse_of(&feed(&mut conn, OK, &[], InputEnd::Open)), None, "the body must be sent first");
    let line = conn.step(MonotonicTimestamp(0), &mut [b'\r', b'\n']).unwrap();
    assert_eq!((line.consumed, line.event), (2, H1Event::NeedInput), "an empty line is no response");
    let surplus = conn.step(MonotonicTimestamp(0), &mut [b'x']).unwrap();
    assert_eq!(surplus.consumed, 0);
    assert!(matches!(surplus.event, H1Event::Complete { reuse: Err(CloseReason::RequestUnfinished), .. }));
    assert_eq!(conn.send_body(b"body"), Err(SendRequestError::Closed(CloseReason::RequestUnfinished)));
}

#[test]
fn http1_text_takes_path_from_absolute_target() {
    let text = |target| {
        haul_proto::request::to_http1_text(&RequestHead { target, fields: &[("Host", b"h"), ("X-A", b"1")], ..get() })
    };
    let expected = |path: &str| Ok(format!("GET {path} HTTP/1.1\r\nhost: h\r\nx-a: 1\r\n\r\n").into_bytes());
    assert_eq!(text("/p"), expected("/p"));
    assert_eq!(text("http://h/p?q"), expected("/p?q"));
    assert_eq!(text("http://h"), expected("/"));
}

#[test]
fn request_authority_with_userinfo_is_refused() {
    let text = |host: &[u8]| {
        haul_proto::request::to_http1_text(&RequestHead { fields: &[("Host", host)], ..get() }).map(|_| ())
    };
    assert_eq!(text(b"h:1"), Ok(()));
    for host in [&b"u@h"[..], b"", b"h h", b"\xff"] {
        assert_eq!(text(host), Err(SendRequestError::Authority), "{host:?}");
    }
}

#[test]
fn names_as_long_as_framing_fields_are_plain() {
    // As long as Connection, TE, Content-Length and Transfer-Encoding.
    let fields: &[(&str, &[u8])] =
        &[("User-Agent", b"close"), ("AB", b"gzip"), ("Accept-Charset", b"7"), ("If-Modified-Since", b"chunked")];
    let mut conn = H1Machine::new(H1Config::default());
    conn.enqueue(MonotonicTimestamp(0), &RequestHead { fields, ..post(BodyLength::Known(2)) }).unwrap();
    assert_eq!(conn.send_body(b"ok"), Ok(2));
    let expected = "POST / HTTP/1.1\r\nUser-Agent: close\r\nAB: gzip\r\nAccept-Charset: 7\r\n\
        If-Modified-Since: chunked\r\nContent-Length: 2\r\n\r\nok";
    assert_eq!(String::from_utf8_lossy(&drain(&mut conn)), expected);
    assert_eq!(reuse_of(&feed(&mut conn, OK, &[], InputEnd::Open)), Some(Ok(())), "the client does not close");
}

#[test]
fn http10_request_has_no_chunked_body() {
    let mut conn = H1Machine::new(H1Config::default());
    let chunked = RequestHead { http10: true, ..post(BodyLength::Chunked) };
    assert_eq!(conn.enqueue(MonotonicTimestamp(0), &chunked), Err(SendRequestError::ChunksInHttp10));
    conn.enqueue(MonotonicTimestamp(0), &RequestHead { http10: true, ..get() }).unwrap();
    assert_eq!(conn.output(), b"GET / HTTP/1.0\r\nHost: h\r\n\r\n");
}

#[test]
fn finish_body_without_a_request_sends_nothing() {
    let mut conn = H1Machine::new(H1Config::default());
    assert_eq!(conn.finish_body(&[]), Ok(()));
    assert_eq!(conn.finish_body(&[("A", b"b")]), Err(SendRequestError::TrailersWithoutChunks));
    assert!(conn.output().is_empty() && conn.is_idle());
}
