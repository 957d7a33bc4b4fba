//! Tests of HTTP/2 requests: their encoding, their bodies, and the reasons to refuse them.

use super::peer::{
    CONTINUATION, DATA, END, H2RecordedEvent, HEADERS, RST_STREAM, WHOLE, answer, asked, block, complete, data, feed,
    get, go_away, headers, rst, sent, settings, window_update, with,
};
use haul_proto::h2::{
    BodyLength, ErrorCode, FrameFault, H2Config, H2Error, H2Machine, RequestHead, RequestId, ResetReason,
    SendRequestError,
};
use haul_proto::hpack::{HeaderBlock, HpackDecoder};
use haul_proto::time::MonotonicTimestamp;
use std::time::Duration;

const OK: &[(&str, &str)] = &[(":status", "200")];

fn text(decoder: &mut HpackDecoder, bytes: &[u8]) -> (String, Vec<String>) {
    let (mut block, mut out, mut secret) = (HeaderBlock::new(bytes), Vec::new(), Vec::new());
    while let Some(line) = decoder.next_line(&mut block, &mut out).expect("a valid block") {
        if line.sensitive {
            secret.push(String::from_utf8_lossy(&out[line.name]).into_owned());
        }
    }
    (String::from_utf8(out).expect("text").replace("\r\n", "\n"), secret)
}

/// Encodes the head of a request, decodes it again, and returns it with the names of its sensitive
/// fields.
fn head_of(request: &RequestHead<'_>) -> (String, Vec<String>) {
    let mut conn = H2Machine::new(H2Config::default());
    conn.enqueue(MonotonicTimestamp(0), request).expect("a valid request");
    let frames = sent(&mut conn);
    let (kind, _, 1, payload) = &frames[2] else { panic!("{frames:?}") };
    assert_eq!(*kind, HEADERS);
    text(&mut HpackDecoder::new(4096), payload)
}

/// Encodes two equal requests with this field. Returns the length in bytes of the second request's
/// header block.
fn repeated(name: &str) -> usize {
    let mut conn = H2Machine::new(H2Config::default());
    let fields = [(name, &b"bytes=0-99"[..])];
    let request = RequestHead { fields: &fields, ..get() };
    for _ in 0..2 {
        conn.enqueue(MonotonicTimestamp(0), &request).expect("a valid request");
    }
    sent(&mut conn).last().expect("two requests").3.len()
}

#[test]
fn fields_that_change_enter_no_dynamic_table() {
    let bare = repeated("x-always") - 1;
    for name in ["range", "if-range", "if-none-match", "if-modified-since"] {
        assert!(repeated(name) > bare + 5, "{name} is no index");
    }
    assert_eq!(repeated("accept"), bare + 1);
}

#[test]
fn body_is_written_into_a_frame() {
    let mut conn = asked(H2Config::default(), &with("POST", BodyLength::Known(7)), 1);
    let id = RequestId(1);
    let fill = |bytes: &'static [u8]| {
        move |room: &mut [u8]| {
            let n = bytes.len().min(room.len());
            room[..n].copy_from_slice(&bytes[..n]);
            n
        }
    };
    assert_eq!(conn.fill_body(id, 5, fill(b"")), Ok(0));
    assert!(sent(&mut conn).is_empty(), "no empty frame");
    assert_eq!(conn.fill_body(id, 0, fill(b"hello")), Ok(0));
    assert_eq!(conn.fill_body(id, 5, fill(b"hello")), Ok(5));
    assert_eq!(conn.fill_body(id, 5, fill(b", world")), Ok(2));
    let frames = sent(&mut conn);
    assert_eq!(frames, [(DATA, 0, 1, b"hello".to_vec()), (DATA, END, 1, b", ".to_vec())]);
    assert!(conn.fill_body(id, 5, fill(b"more")).is_err(), "the body is complete");
    assert!(conn.fill_body(RequestId(3), 5, fill(b"x")).is_err(), "no such request");
}

#[test]
fn h2_request_heads_are_encoded() {
    let fields: &[(&str, &[u8])] = &[
        ("User-Agent", b"haul"),
        ("X-Trimmed", b" a b\t"),
        ("Connection", b"close, X-Hop"),
        ("X-Hop", b"1"),
        ("Keep-Alive", b"5"),
        ("TE", b"gzip"),
        ("te", b"trailers"),
        ("TE", b"gzip;q=0.2;x=\"y,x\", Trailers"),
        ("TE", b"gzip;x=\"trailers\", chunks"),
        ("Upgrade", b"h2c"),
        ("HTTP2-Settings", b"AA"),
        ("Proxy-Connection", b"x"),
        ("Transfer-Encoding", b"chunked"),
        ("Authorization", b"Basic YTpi"),
        ("Cookie", b"a=b"),
        ("Cookie", b"session=0123456789abcdef"),
        ("X-Token", b"t"),
    ];
    let request =
        RequestHead { authority: "example.org:8443", target: "/a?b", fields, sensitive: &["x-token"], ..get() };
    let (text, secret) = head_of(&request);
    let expected = ":method: GET\n:authority: example.org:8443\n:scheme: https\n:path: /a?b\nuser-agent: haul\n\
        x-trimmed: a b\nte: trailers\nte: trailers\nauthorization: Basic YTpi\ncookie: a=b\ncookie: session=0123456789abcdef\n\
        x-token: t\n";
    assert_eq!(text, expected);
    assert_eq!(secret, ["authorization", "cookie", "x-token"], "a long cookie cannot be guessed");
    assert!(!format!("{request:?}").contains("YTpi"));

    let request = RequestHead { fields: &[("Host", b"other")], ..with("CONNECT", BodyLength::Chunked) };
    assert_eq!(head_of(&request).0, ":method: CONNECT\n:authority: other\n");
    let request = RequestHead { expect_continue: true, ..with("POST", BodyLength::Known(12)) };
    let expected = ":method: POST\n:authority: h\n:scheme: https\n:path: /\ncontent-length: 12\nexpect: 100-continue\n";
    assert_eq!(head_of(&request).0, expected);
    let own: &[(&str, &[u8])] = &[("Content-Length", b"12")];
    let request = RequestHead { fields: own, ..with("POST", BodyLength::Known(12)) };
    assert!(head_of(&request).0.ends_with(":path: /\ncontent-length: 12\n"));
}

#[test]
fn repeated_h2_request_head_is_short() {
    let fields: &[(&str, &[u8])] = &[("User-Agent", b"haul/0.1"), ("Accept", b"*/*"), ("X-A", b"some value")];
    let mut conn = asked(H2Config::default(), &RequestHead { fields, ..get() }, 1);
    conn.enqueue(MonotonicTimestamp(0), &RequestHead { fields, target: "/", ..get() }).expect("valid");
    assert_eq!(sent(&mut conn)[0].3.len(), 7, "every field is an index");
}

#[test]
fn refused_h2_requests_leave_the_connection_unchanged() {
    let field = |name: &'static str, value: &'static [u8]| -> &'static [(&'static str, &'static [u8])] {
        Box::leak(Box::new([("ok", &b""[..]), (name, value)]))
    };
    let cases = [
        (RequestHead { method: "G T", ..get() }, SendRequestError::Method),
        (RequestHead { scheme: "ftp", ..get() }, SendRequestError::Scheme),
        (RequestHead { authority: "", ..get() }, SendRequestError::Authority),
        (RequestHead { authority: "a b", ..get() }, SendRequestError::Authority),
        (RequestHead { authority: "user@h", ..get() }, SendRequestError::Authority),
        (RequestHead { target: "", ..get() }, SendRequestError::Target),
        (RequestHead { target: "*", ..get() }, SendRequestError::Target),
        (RequestHead { target: "/a b", ..get() }, SendRequestError::Target),
        (RequestHead { target: "/\r\n", ..get() }, SendRequestError::Target),
        (RequestHead { fields: field("a b", b""), ..get() }, SendRequestError::FieldName { index: 1 }),
        (RequestHead { fields: field(":path", b"/"), ..get() }, SendRequestError::FieldName { index: 1 }),
        (RequestHead { fields: field("a", b"x\ny"), ..get() }, SendRequestError::FieldValue { index: 1 }),
        (RequestHead { fields: field("Content-Length", b"5"), ..get() }, SendRequestError::FramingField { index: 1 }),
        (
            RequestHead { fields: field("Content-Length", b"5"), ..with("POST", BodyLength::Chunked) },
            SendRequestError::FramingField { index: 1 },
        ),
        (
            RequestHead {
                fields: &[("Content-Length", b"5"), ("content-length", b"5")],
                ..with("POST", BodyLength::Known(5))
            },
            SendRequestError::FramingField { index: 1 },
        ),
    ];
    let mut conn = asked(H2Config::default(), &get(), 0);
    for (request, error) in cases {
        assert_eq!(conn.enqueue(MonotonicTimestamp(0), &request), Err(error));
        assert!(conn.output().is_empty() && conn.is_idle());
        assert!(error.to_string().starts_with("request refused"));
    }
    assert!(
        conn.enqueue(MonotonicTimestamp(0), &RequestHead { target: "*", ..with("OPTIONS", BodyLength::None) }).is_ok()
    );
    feed(&mut conn, &settings(&[(6, 400)]), &[]);
    let fields = field("x", &[b'v'; 100]);
    assert_eq!(
        conn.enqueue(MonotonicTimestamp(0), &RequestHead { fields, ..get() }),
        Err(SendRequestError::HeadTooLarge { limit: 400 })
    );
    let path = |length: usize| format!("/{}", "p".repeat(length - 1));
    let refused = conn.enqueue(MonotonicTimestamp(0), &RequestHead { target: &path(400), ..get() });
    assert_eq!(refused, Err(SendRequestError::HeadTooLarge { limit: 400 }), "the path counts");
    let target = &path(80);
    assert!(conn.enqueue(MonotonicTimestamp(0), &RequestHead { target, authority: "host", ..get() }).is_ok());
}

#[test]
fn large_h2_head_is_sent_with_continuation() {
    let value = vec![b'~'; 40_000];
    let mut conn = asked(H2Config::default(), &RequestHead { fields: &[("x", &value)], ..get() }, 0);
    conn.enqueue(MonotonicTimestamp(0), &RequestHead { fields: &[("x", &value)], ..get() }).expect("valid");
    let frames = sent(&mut conn);
    let kinds: Vec<_> = frames.iter().map(|(kind, flags, stream, _)| (*kind, *flags, *stream)).collect();
    assert_eq!(kinds, [(HEADERS, END, 1), (CONTINUATION, 0, 1), (CONTINUATION, WHOLE, 1)]);
    let whole: Vec<u8> = frames.into_iter().flat_map(|frame| frame.3).collect();
    assert!(text(&mut HpackDecoder::new(4096), &whole).0.ends_with("~~\n"));
}

#[test]
fn small_h2_body_follows_its_head_in_output() {
    let mut conn = asked(H2Config::default(), &get(), 0);
    let id = conn.enqueue(MonotonicTimestamp(0), &with("POST", BodyLength::Known(3))).expect("valid");
    assert_eq!(conn.body_credit(id), Some(3));
    assert_eq!(conn.send_body(id, b"abcd"), Err(SendRequestError::BodyTooLong { expected: 3 }));
    assert_eq!(conn.finish_body(id, &[]), Err(SendRequestError::BodyTooShort { missing: 3 }));
    assert_eq!(conn.send_body(id, b"abc"), Ok(3));
    assert_eq!(conn.body_credit(id), None);
    assert_eq!(conn.send_body(id, b""), Err(SendRequestError::NoBodyExpected));
    assert_eq!(conn.finish_body(id, &[]), Ok(()));
    let frames = sent(&mut conn);
    assert_eq!((frames[0].0, frames[0].1), (HEADERS, WHOLE));
    assert_eq!(frames[1..], [(DATA, END, 1, b"abc".to_vec())]);
    let id = conn.enqueue(MonotonicTimestamp(0), &with("POST", BodyLength::Known(0))).expect("valid");
    assert_eq!((conn.body_credit(id), sent(&mut conn)[0].1), (None, WHOLE | END));
    assert_eq!(conn.send_body(RequestId(99), b"x"), Err(SendRequestError::UnknownRequest));
}

#[test]
fn h2_body_of_unknown_length_ends_with_trailers() {
    let mut conn = asked(H2Config::default(), &get(), 0);
    let id = conn.enqueue(MonotonicTimestamp(0), &with("POST", BodyLength::Chunked)).expect("valid");
    assert_eq!(conn.send_body(id, &[7; 20_000]), Ok(20_000));
    for name in ["Content-Length", "Connection", "Host"] {
        assert_eq!(conn.finish_body(id, &[(name, b"x")]), Err(SendRequestError::FramingField { index: 0 }));
    }
    assert_eq!(conn.finish_body(id, &[("X-Sum", b"5")]), Ok(()));
    let frames = sent(&mut conn);
    assert_eq!((frames[1].3.len(), frames[2].3.len()), (16_384, 3_616), "the frame size of the peer");
    assert_eq!((frames[3].0, frames[3].1), (HEADERS, WHOLE | END));
    let id = conn.enqueue(MonotonicTimestamp(0), &with("POST", BodyLength::Chunked)).expect("valid");
    assert_eq!(conn.finish_body(id, &[]), Ok(()));
    assert_eq!(sent(&mut conn).pop(), Some((DATA, END, 3, vec![])));
}

#[test]
fn peer_windows_bound_an_h2_request_body() {
    let mut conn = asked(H2Config::default(), &get(), 0);
    let id = conn.enqueue(MonotonicTimestamp(0), &with("POST", BodyLength::Known(200_000))).expect("valid");
    assert_eq!(conn.send_body(id, &[0; 100_000]).map(|taken| taken > 60_000), Ok(true), "64 KiB wait at most");
    sent(&mut conn);
    conn.send_body(id, &[0; 100_000]).expect("the rest of the window");
    sent(&mut conn);
    assert_eq!(conn.body_credit(id), Some(0), "65,535 are gone");
    answer(&mut conn, &[window_update(1, 100)]);
    assert_eq!(conn.body_credit(id), Some(0), "the connection's");
    feed(&mut conn, &window_update(0, 50), &[]);
    assert_eq!(conn.body_credit(id), Some(50));
    feed(&mut conn, &settings(&[(4, 65_500)]), &[]);
    assert_eq!(conn.body_credit(id), Some(50), "35 less, of 100");
    feed(&mut conn, &settings(&[(4, 0)]), &[]);
    assert_eq!(conn.body_credit(id), Some(0), "below zero");
    feed(&mut conn, &settings(&[(4, 65_535)]), &[]);
    assert_eq!(conn.body_credit(id), Some(50));
}

#[test]
fn h2_body_waits_for_100_continue() {
    let config = H2Config { expect_timeout: Duration::from_nanos(10), ..H2Config::default() };
    let request = RequestHead { expect_continue: true, ..with("POST", BodyLength::Known(3)) };
    let (a, b, c) = (RequestId(1), RequestId(3), RequestId(5));
    let mut conn = asked(config, &request, 3);
    assert_eq!(conn.poll_timeout(), Some(MonotonicTimestamp(10)));
    assert_eq!(conn.send_body(a, b"abc"), Ok(0));
    let refused = [(":status", "417")];
    answer(&mut conn, &[headers(1, 0, &[(":status", "100")]), headers(3, 0, &refused)]);
    assert_eq!((conn.body_credit(a), conn.body_credit(b), conn.body_credit(c)), (Some(3), None, Some(0)));
    assert_eq!(conn.handle_timeout(MonotonicTimestamp(9)), Ok(()));
    assert_eq!(conn.body_credit(c), Some(0), "too early");
    assert_eq!(conn.handle_timeout(MonotonicTimestamp(10)), Ok(()));
    assert_eq!(conn.body_credit(c), Some(3));
    sent(&mut conn);
    assert_eq!(feed(&mut conn, &data(3, END, b""), &[]), [complete(3)]);
    let cancel = ErrorCode::CANCEL.0.to_be_bytes().to_vec();
    assert_eq!(sent(&mut conn), [(RST_STREAM, 0, 3, cancel)], "our half is closed, too");
}

#[test]
fn early_error_response_ends_the_h2_upload() {
    let mut conn = asked(H2Config::default(), &with("POST", BodyLength::Known(9)), 1);
    let seen = answer(&mut conn, &[headers(1, END, &[(":status", "413")])]);
    assert_eq!(seen.last(), Some(&complete(1)), "the answer counts");
    assert_eq!(conn.send_body(RequestId(1), b"x"), Err(SendRequestError::UnknownRequest));
    assert_eq!(sent(&mut conn).pop().map(|frame| (frame.0, frame.2)), Some((RST_STREAM, 1)));
}

#[test]
fn early_success_does_not_end_the_h2_upload() {
    let (id, ok) = (RequestId(1), headers(1, END, &[(":status", "200")]));
    let answered = |length| {
        let mut conn = asked(H2Config::default(), &with("PUT", length), 1);
        let seen = answer(&mut conn, std::slice::from_ref(&ok));
        assert!(!seen.contains(&complete(1)), "{seen:?}");
        conn
    };
    let mut conn = answered(BodyLength::Known(9));
    assert_eq!((conn.send_body(id, b"12345"), conn.has_pending_event()), (Ok(5), false));
    assert_eq!((conn.send_body(id, b"6789"), conn.has_pending_event()), (Ok(4), true));
    assert_eq!(feed(&mut conn, b"", &[]), [complete(1)]);
    assert!(sent(&mut conn).iter().all(|frame| frame.0 != RST_STREAM));
    let mut conn = answered(BodyLength::Chunked);
    assert_eq!((conn.finish_body(id, &[]), conn.has_pending_event()), (Ok(()), true));
    assert_eq!(feed(&mut conn, b"", &[]), [complete(1)]);
    // A peer that wants no more of it says so; anything else is a failure, and so is what comes
    // behind the end.
    assert_eq!(feed(&mut answered(BodyLength::Known(9)), &rst(1, ErrorCode::NO_ERROR), &[]), [complete(1)]);
    let seen = feed(&mut answered(BodyLength::Known(9)), &rst(1, ErrorCode::CANCEL), &[]);
    assert_eq!(seen, [H2RecordedEvent::Reset(1, ResetReason::InRequest(ErrorCode::CANCEL), false)]);
    for behind in [data(1, 0, b"x"), headers(1, END, &[("a", "b")])] {
        let seen = feed(&mut answered(BodyLength::Known(9)), &behind, &[]);
        assert!(matches!(seen[..], [H2RecordedEvent::Reset(1, ResetReason::Violation(_), false)]), "{seen:?}");
    }
}

#[test]
fn close_after_an_early_response_is_named_rightly() {
    let mut conn = asked(H2Config::default(), &with("POST", BodyLength::Known(9)), 1);
    answer(&mut conn, &[headers(1, END, OK), go_away(1, ErrorCode::NO_ERROR)]);
    assert_eq!(conn.end_of_input(), H2Error::EndedInRequest);
    let mut conn = asked(H2Config::default(), &with("POST", BodyLength::Known(9)), 2);
    answer(&mut conn, &[headers(1, END, OK)]);
    assert_eq!(conn.end_of_input(), H2Error::EndedInResponse { open: 1 }, "the other has no response");
}

#[test]
fn h2_connect_opens_a_tunnel() {
    let mut conn = asked(H2Config::default(), &with("CONNECT", BodyLength::Chunked), 1);
    let seen =
        answer(&mut conn, &[headers(1, 0, &[(":status", "200"), ("content-length", "3")]), data(1, 0, b"hello")]);
    assert_eq!(seen[1], H2RecordedEvent::Body(1, b"hello".to_vec()));
    assert_eq!(conn.send_body(RequestId(1), b"and back"), Ok(8));
    assert_eq!(feed(&mut conn, &data(1, END, b""), &[]), [complete(1)]);
}

#[test]
fn headers_in_an_h2_tunnel_are_refused() {
    let refused = ResetReason::Violation(H2Error::Frame(FrameFault::HeadersInTunnel));
    for flags in [0, END] {
        let mut conn = asked(H2Config::default(), &with("CONNECT", BodyLength::Chunked), 1);
        answer(&mut conn, &[headers(1, 0, OK), data(1, 0, b"x")]);
        let seen = feed(&mut conn, &headers(1, flags, &[("a", "b")]), &[]);
        assert_eq!(seen, [H2RecordedEvent::Reset(1, refused, false)]);
        // A refused CONNECT has a body with trailers, like any other response.
        let mut conn = asked(H2Config::default(), &with("CONNECT", BodyLength::Chunked), 1);
        answer(&mut conn, &[headers(1, 0, &[(":status", "407")]), data(1, 0, b"x")]);
        let seen = feed(&mut conn, &headers(1, END, &[("a", "b")]), &[]);
        assert!(matches!(seen[..], [H2RecordedEvent::Complete(1, Some(_))]), "{seen:?}");
    }
}

#[test]
fn hpack_encoder_table_size_follows_peer_settings() {
    let mut conn = asked(H2Config::default(), &get(), 1);
    feed(&mut conn, &settings(&[(1, 0)]), &[]);
    sent(&mut conn);
    conn.enqueue(MonotonicTimestamp(0), &get()).expect("valid");
    let head = sent(&mut conn).remove(0).3;
    assert_eq!(head[0], 0x20, "the table is emptied first");
    let mut decoder = HpackDecoder::new(4096);
    decoder.set_limit(0);
    assert!(text(&mut decoder, &head).0.contains(":authority: h"));
    assert_eq!(feed(&mut conn, &super::peer::frame(HEADERS, WHOLE | END, 1, &block(OK)), &[]).len(), 2);
}

#[test]
fn h2_body_frames_have_at_most_the_peers_size() {
    let mut conn = asked(H2Config::default(), &with("POST", BodyLength::Known(50_000)), 1);
    feed(&mut conn, &settings(&[(5, 20_000)]), &[]);
    sent(&mut conn);
    assert_eq!(conn.send_body(RequestId(1), &[0; 50_000]), Ok(50_000));
    assert_eq!(sent(&mut conn).iter().map(|frame| frame.3.len()).collect::<Vec<_>>(), [20_000, 20_000, 10_000]);
}

#[test]
fn expect_field_of_the_caller_is_sent_once() {
    for fields in [&[][..], &[("Expect", &b"100-continue"[..])]] {
        let request = RequestHead { fields, expect_continue: true, ..with("PUT", BodyLength::Known(3)) };
        assert_eq!(head_of(&request).0.matches("expect: 100-continue\n").count(), 1);
    }
}

#[test]
fn only_te_is_left_out_of_two_letter_names() {
    let request = RequestHead { fields: &[("TE", b"deflate"), ("XY", b"deflate")], ..get() };
    let (text, _) = head_of(&request);
    assert!(text.ends_with(":path: /\nxy: deflate\n"), "{text}");
}

#[test]
fn finished_h2_body_takes_no_trailers() {
    let mut conn = asked(H2Config::default(), &with("POST", BodyLength::Known(2)), 1);
    assert_eq!(conn.send_body(RequestId(1), b"ok"), Ok(2));
    sent(&mut conn);
    assert_eq!(conn.finish_body(RequestId(1), &[("a", b"b")]), Err(SendRequestError::TrailersWithoutChunks));
    assert_eq!(conn.finish_body(RequestId(1), &[]), Ok(()));
    assert!(conn.output().is_empty(), "the end was sent with the body");
}

#[test]
fn h2_connection_is_idle_only_without_requests() {
    let mut conn = asked(H2Config::default(), &get(), 1);
    assert!(!conn.is_idle(), "a request is open");
    answer(&mut conn, &[headers(1, END, OK)]);
    assert!(!conn.is_idle(), "an acknowledgement is to be sent");
    sent(&mut conn);
    assert!(conn.is_idle());
}
