//! Tests of HTTP/3 requests: their bytes, bodies, trailers, `Expect`, and the order of output.

use super::peer::{
    CONTROL, DECODER, H3RecordedEvent, answer, asked, commands, complete, control, data, due, feed, frame, get,
    headers, reset_stream, sent, sent_request, stop_sending, varint, with,
};
use haul_proto::h3::{
    BodyLength, CloseReason, H3Config, H3ErrorCode, H3Machine, H3SendStream, RequestHead, RequestId, SendRequestError,
};
use haul_proto::qpack::QpackDecoder;
use haul_proto::time::MonotonicTimestamp;
use std::time::Duration;

const ID: RequestId = RequestId(0);

/// Decodes a QPACK section that refers to no dynamic entry.
fn fields(section: &[u8]) -> String {
    let mut decoder = QpackDecoder::new(0);
    let (mut section, mut text) = (decoder.begin_section(section).expect("a prefix"), Vec::new());
    while decoder.next_line(&mut section, &mut text).expect("a field").is_some() {}
    String::from_utf8(text).expect("text").replace("\r\n", "\n")
}

#[test]
fn h3_request_is_one_headers_frame() {
    let mut conn = H3Machine::new(H3Config::default());
    let request = RequestHead {
        target: "/a?b",
        authority: "example.org:8443",
        fields: &[
            ("User-Agent", b"x"),
            ("Connection", b"close, X-Hop"),
            ("X-Hop", b"1"),
            ("TE", b"trailers, deflate"),
            ("Authorization", b"Basic secret"),
        ],
        ..RequestHead::default()
    };
    assert_eq!(conn.enqueue(MonotonicTimestamp(0), 0, &request), Ok(ID));
    assert!(!conn.has_sent_any_of(ID));
    let taken = sent(&mut conn);
    assert!(conn.has_sent_any_of(ID) && taken.len() == 3);
    // SETTINGS: the capacity of the QPACK table, 16 blocked streams, 300 KiB of head.
    let expected = [&[0][..], &[4, 10, 1, 0x50, 0, 7, 16, 6, 0x80, 4, 0xb0, 0]].concat();
    assert_eq!(taken[&H3SendStream::Control], (expected, false));
    assert_eq!(taken[&H3SendStream::QpackDecoder], (vec![3], false));
    let (bytes, fin) = &taken[&H3SendStream::Request(ID)];
    assert!(*fin && bytes[0] == 1 && usize::from(bytes[1]) == bytes.len() - 2);
    assert_eq!(
        fields(&bytes[2..]),
        ":method: GET\n:authority: example.org:8443\n:scheme: https\n:path: /a?b\nuser-agent: x\nte: trailers\n\
         authorization: Basic secret\n"
    );
}

#[test]
fn streams_that_cannot_carry_a_request_are_refused() {
    let mut conn = H3Machine::new(H3Config { max_streams: 2, ..H3Config::default() });
    for stream in [1, 2, 3, 1 << 62] {
        assert_eq!(conn.enqueue(MonotonicTimestamp(0), stream, &get()), Err(SendRequestError::StreamIdentifier));
    }
    let bad = RequestHead { method: "G T", ..get() };
    assert_eq!(conn.enqueue(MonotonicTimestamp(0), 4, &bad), Err(SendRequestError::Method));
    assert_eq!(conn.enqueue(MonotonicTimestamp(0), 4, &get()), Ok(RequestId(4)), "the stream is as good as before");
    assert_eq!(conn.enqueue(MonotonicTimestamp(0), 4, &get()), Err(SendRequestError::StreamIdentifier));
    assert_eq!(conn.enqueue(MonotonicTimestamp(0), 0, &get()), Ok(ID), "any order will do");
    assert_eq!(conn.unanswered().map(|id| id.0).collect::<Vec<_>>(), [0, 4]);
    assert!(!conn.can_enqueue());
    assert_eq!(conn.enqueue(MonotonicTimestamp(0), 8, &get()), Err(SendRequestError::TooManyStreams { limit: 2 }));
    conn.go_away();
    assert_eq!(conn.enqueue(MonotonicTimestamp(0), 8, &get()), Err(SendRequestError::Closed(CloseReason::Local)));
    assert!(sent(&mut conn)[&H3SendStream::Control].0.ends_with(&frame(7, &[0])));
}

#[test]
fn h3_body_of_known_length_ends_stream() {
    let mut conn = asked(H3Config::default(), &with("POST", BodyLength::Known(5)), 1);
    assert_eq!(conn.body_credit(ID), Some(5));
    assert_eq!(conn.send_body(ID, b"hello!"), Err(SendRequestError::BodyTooLong { expected: 5 }));
    assert_eq!(conn.send_body(ID, b"hel"), Ok(3));
    assert_eq!(conn.finish_body(ID, &[]), Err(SendRequestError::BodyTooShort { missing: 2 }));
    assert_eq!(conn.send_body(ID, b"lo"), Ok(2));
    assert_eq!(sent_request(&mut conn, 0), ([data(b"hel"), data(b"lo")].concat(), true));
    assert_eq!(conn.body_credit(ID), None);
    assert_eq!(conn.send_body(ID, b"x"), Err(SendRequestError::NoBodyExpected));
    assert_eq!(conn.finish_body(ID, &[("a", b"b")]), Err(SendRequestError::TrailersWithoutChunks));
    assert_eq!(conn.send_body(RequestId(4), b"x"), Err(SendRequestError::UnknownRequest));
}

#[test]
fn h3_body_of_unknown_length_may_have_trailers() {
    let mut conn = asked(H3Config::default(), &with("POST", BodyLength::Chunked), 2);
    assert_eq!(conn.send_body(ID, b"x"), Ok(1));
    assert_eq!(conn.finish_body(ID, &[("Host", b"h")]), Err(SendRequestError::FramingField { index: 0 }));
    assert_eq!(conn.finish_body(ID, &[("Digest", b"abc")]), Ok(()));
    let (bytes, fin) = sent_request(&mut conn, 0);
    assert!(fin && bytes.starts_with(&[0, 1, b'x', 1]));
    assert_eq!(fields(&bytes[5..]), "digest: abc\n");
    assert_eq!(conn.finish_body(RequestId(4), &[]), Ok(()));
    assert_eq!(sent_request(&mut conn, 4), (vec![], true), "an end alone");
}

#[test]
fn buffered_output_of_an_h3_body_is_bounded() {
    let mut conn = asked(H3Config::default(), &with("POST", BodyLength::Chunked), 2);
    let taken = conn.send_body(ID, &[7; 100_000]).expect("some");
    assert_eq!((taken, conn.body_credit(ID)), (32 * 1024, Some(0)));
    assert_eq!(conn.send_body(ID, b"x"), Ok(0));
    assert_eq!(conn.send_body(RequestId(4), b"other"), Ok(5), "others are not stopped");
    // Blocked by QUIC: the other one sends.
    conn.block_output(H3SendStream::Request(ID));
    let taken = sent(&mut conn);
    assert_eq!(taken.len(), 1);
    assert_eq!(taken[&H3SendStream::Request(RequestId(4))].0, data(b"other"));
    conn.unblock_output(H3SendStream::Request(ID));
    let output = conn.next_output().expect("the first one again");
    assert_eq!((output.stream, output.bytes.len()), (H3SendStream::Request(ID), 32 * 1024 + 5));
    conn.advance_output(H3SendStream::Request(ID), 1_005);
    assert_eq!(conn.body_credit(ID), Some(1_000));
}

#[test]
fn blocked_critical_streams_do_not_stop_requests() {
    let mut conn = H3Machine::new(H3Config::default());
    conn.enqueue(MonotonicTimestamp(0), 0, &get()).expect("a valid request");
    conn.block_output(H3SendStream::Control);
    conn.block_output(H3SendStream::QpackDecoder);
    assert_eq!(sent(&mut conn).into_keys().collect::<Vec<_>>(), [H3SendStream::Request(ID)]);
    assert!(!conn.has_output());
    conn.unblock_output(H3SendStream::Control);
    assert_eq!(conn.next_output().map(|output| output.stream), Some(H3SendStream::Control));
}

#[test]
fn h3_body_waits_for_100_continue() {
    let request = RequestHead { expect_continue: true, ..with("PUT", BodyLength::Known(1)) };
    let mut conn = asked(H3Config::default(), &request, 3);
    let timeout = MonotonicTimestamp(0) + Duration::from_secs(1);
    assert_eq!((conn.body_credit(ID), conn.poll_timeout()), (Some(0), Some(timeout)));
    answer(&mut conn, 0, &[headers(&[(":status", "100")])], false);
    assert_eq!(conn.body_credit(ID), Some(1));
    answer(&mut conn, 4, &[headers(&[(":status", "417")])], false);
    assert_eq!(conn.body_credit(RequestId(4)), None, "a final response in place of 100");
    assert_eq!(answer(&mut conn, 4, &[], true), [complete(4)]);
    assert_eq!(commands(&mut conn), [reset_stream(4, H3ErrorCode::REQUEST_CANCELLED)]);
    conn.handle_timeout(timeout);
    assert_eq!((conn.body_credit(RequestId(8)), conn.poll_timeout()), (Some(1), None));
}

#[test]
fn early_h3_success_completes_after_its_request() {
    let mut conn = asked(H3Config::default(), &with("POST", BodyLength::Chunked), 3);
    let ok = [headers(&[(":status", "200")])];
    assert_eq!(answer(&mut conn, 0, &ok, true).len(), 1, "the head alone");
    assert_eq!(conn.send_body(ID, b"rest"), Ok(4));
    conn.finish_body(ID, &[]).expect("a body of unknown length");
    assert_eq!(due(&mut conn), [complete(0)]);
    assert_eq!(sent_request(&mut conn, 0), (data(b"rest"), true), "it is still sent");
    // The server wants no more of the second one, before and after its response.
    let second = H3SendStream::Request(RequestId(4));
    assert_eq!(answer(&mut conn, 4, &ok, true).len(), 1);
    assert_eq!(conn.on_stop_sending(second, H3ErrorCode::NO_ERROR), Ok(()));
    assert_eq!(due(&mut conn), [complete(4)]);
    let third = H3SendStream::Request(RequestId(8));
    assert_eq!(conn.send_body(RequestId(8), b"unsent"), Ok(6));
    assert_eq!(conn.on_stop_sending(third, H3ErrorCode::NO_ERROR), Ok(()));
    assert_eq!((conn.body_credit(RequestId(8)), conn.has_pending_event(), conn.has_output()), (None, false, false));
    assert_eq!(answer(&mut conn, 8, &ok, true).last(), Some(&complete(8)));
    let no_error = H3ErrorCode::NO_ERROR;
    assert_eq!(commands(&mut conn), [reset_stream(4, no_error), reset_stream(8, no_error)]);
}

#[test]
fn connection_is_idle_only_without_request_and_output() {
    let mut conn = asked(H3Config::default(), &get(), 1);
    assert!(!conn.is_idle(), "a request is open");
    answer(&mut conn, 0, &[headers(&[(":status", "204")])], true);
    assert!(conn.is_idle());
    conn.go_away();
    assert!(!conn.is_idle(), "it is closing");
    assert!(!H3Machine::new(H3Config::default()).is_idle(), "SETTINGS are to be sent");
}

#[test]
fn early_error_response_ends_the_h3_upload() {
    let mut conn = asked(H3Config::default(), &with("POST", BodyLength::Chunked), 1);
    assert_eq!(answer(&mut conn, 0, &[headers(&[(":status", "401")])], true).last(), Some(&complete(0)));
    assert_eq!(commands(&mut conn), [reset_stream(0, H3ErrorCode::REQUEST_CANCELLED)]);
    assert!(conn.is_idle());
}

#[test]
fn repeated_h3_requests_use_the_qpack_table() {
    let mut conn = H3Machine::new(H3Config::default());
    let seen = feed(&mut conn, &[(CONTROL, control(&[(1, 4_096), (7, 0)]), false)], 99);
    assert_eq!(seen, [H3RecordedEvent::Settings]);
    let request = RequestHead { fields: &[("User-Agent", b"example/1.0"), ("Cookie", &[b'c'; 40])], ..get() };
    let mut sizes = Vec::new();
    let mut insertions = Vec::new();
    for number in 0..4 {
        conn.enqueue(MonotonicTimestamp(0), 4 * number, &request).expect("a valid request");
        let taken = sent(&mut conn);
        sizes.push(taken[&H3SendStream::Request(RequestId(4 * number))].0.len());
        if let Some((bytes, _)) = taken.get(&H3SendStream::QpackEncoder) {
            insertions.extend_from_slice(bytes);
        }
        if number == 2 {
            assert_eq!(insertions[..4], [2, 0x3f, 0xe1, 0x1f], "the type of the stream, a capacity of 4,096 bytes");
            let acknowledged = [varint(3), vec![3]].concat();
            assert!(feed(&mut conn, &[(DECODER, acknowledged, false)], 99).is_empty());
        }
    }
    assert_eq!(sizes[0], sizes[2]);
    assert_eq!(sizes[3], 2 + 2 + 6, "a byte for each field");
    let acknowledged = [0x80 | 12];
    assert!(feed(&mut conn, &[(DECODER, acknowledged.to_vec(), false)], 99).is_empty());
}

#[test]
fn completely_sent_h3_request_needs_no_reset() {
    let mut conn = asked(H3Config::default(), &get(), 1);
    assert!(conn.reset(ID, H3ErrorCode::REQUEST_CANCELLED));
    assert_eq!(commands(&mut conn), [stop_sending(0, H3ErrorCode::REQUEST_CANCELLED)]);
}

#[test]
fn type_of_the_qpack_encoder_stream_is_sent_once() {
    let mut conn = H3Machine::new(H3Config::default());
    feed(&mut conn, &[(CONTROL, control(&[(1, 4_096), (7, 0)]), false)], 99);
    let (mut decoder, mut insertions) = (QpackDecoder::new(4_096), Vec::new());
    for (number, name) in ["x-first", "x-first", "x-second", "x-second"].into_iter().enumerate() {
        let fields = [(name, &b"value"[..])];
        conn.enqueue(MonotonicTimestamp(0), 4 * number as u64, &RequestHead { fields: &fields, ..get() })
            .expect("valid");
        let bytes = sent(&mut conn).remove(&H3SendStream::QpackEncoder).unwrap_or_default().0;
        let instructions = if insertions.is_empty() { bytes.strip_prefix(&[2]).unwrap_or(&bytes) } else { &bytes };
        if !instructions.is_empty() {
            insertions.push(decoder.on_encoder_stream(instructions).expect("instructions alone"));
        }
    }
    // The capacity of the table, `:authority` and the first name; then the second name.
    assert_eq!(insertions, [3, 1]);
}

#[test]
fn no_decoder_stream_without_a_qpack_table() {
    for (capacity, expected) in [(0, None), (4_096, Some(vec![3, 0x40]))] {
        let mut conn = H3Machine::new(H3Config { qpack_table_capacity: capacity, ..H3Config::default() });
        conn.enqueue(MonotonicTimestamp(0), 0, &get()).expect("a valid request");
        assert!(conn.reset(ID, H3ErrorCode::REQUEST_CANCELLED));
        assert_eq!(sent(&mut conn).remove(&H3SendStream::QpackDecoder).map(|output| output.0), expected);
    }
}

#[test]
fn blocked_h3_request_is_sent_after_unblocking() {
    let mut conn = H3Machine::new(H3Config::default());
    let (first, second) = (H3SendStream::Request(ID), H3SendStream::Request(RequestId(4)));
    for id in [0, 4] {
        conn.enqueue(MonotonicTimestamp(0), id, &get()).expect("a valid request");
    }
    conn.block_output(first);
    let taken = sent(&mut conn);
    assert!(!taken.contains_key(&first) && taken.contains_key(&second));
    // QUIC may say so twice.
    conn.unblock_output(first);
    conn.unblock_output(first);
    assert_eq!(sent(&mut conn).get(&first).map(|(_, fin)| *fin), Some(true));
    assert!(!conn.has_output(), "once");
}

#[test]
fn h3_body_continues_after_a_block_without_output() {
    let mut conn = asked(H3Config::default(), &with("POST", BodyLength::Chunked), 1);
    let stream = H3SendStream::Request(ID);
    assert_eq!(conn.send_body(ID, b"one"), Ok(3));
    // QUIC takes all of it, but no more.
    conn.block_output(stream);
    conn.advance_output(stream, data(b"one").len());
    conn.unblock_output(stream);
    assert!(!conn.has_output(), "nothing to send");
    assert_eq!(conn.send_body(ID, b"two"), Ok(3));
    assert_eq!(sent_request(&mut conn, 0), (data(b"two"), false));
}

#[test]
fn late_reports_about_a_reset_request_are_ignored() {
    let mut conn = H3Machine::new(H3Config::default());
    for id in [0, 4] {
        conn.enqueue(MonotonicTimestamp(0), id, &get()).expect("a valid request");
    }
    assert!(conn.reset(ID, H3ErrorCode::REQUEST_CANCELLED) && !conn.has_sent_any_of(ID));
    conn.block_output(H3SendStream::Request(ID));
    conn.advance_output(H3SendStream::Request(ID), 5);
    conn.unblock_output(H3SendStream::Request(ID));
    let taken = sent(&mut conn);
    assert!(!taken.contains_key(&H3SendStream::Request(ID)));
    assert!(taken[&H3SendStream::Request(RequestId(4))].1, "the other request is complete");
}

#[test]
fn stop_sending_of_a_finished_request_awaits_the_response() {
    let mut conn = H3Machine::new(H3Config::default());
    conn.enqueue(MonotonicTimestamp(0), 0, &get()).expect("a valid request");
    assert_eq!(conn.on_stop_sending(H3SendStream::Request(ID), H3ErrorCode::NO_ERROR), Ok(()));
    assert_eq!(commands(&mut conn), [reset_stream(0, H3ErrorCode::NO_ERROR)]);
    assert_eq!(answer(&mut conn, 0, &[headers(&[(":status", "204")])], true).last(), Some(&complete(0)));
}

#[test]
fn repeated_go_away_is_sent_once() {
    let mut conn = asked(H3Config::default(), &get(), 0);
    conn.go_away();
    let taken = sent(&mut conn);
    assert_eq!(taken.into_keys().collect::<Vec<_>>(), [H3SendStream::Control]);
    conn.go_away();
    assert!(!conn.has_output());
}
