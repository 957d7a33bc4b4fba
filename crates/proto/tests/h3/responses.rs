//! Tests of HTTP/3 responses: heads, bodies, trailers, interim responses, ends, and GOAWAY.

use super::peer::{
    CONTROL, GOAWAY, H3RecordedEvent, HEADERS, answer, asked, body, commands, complete, control, data, due, feed,
    frame, get, head, headers, reset_stream, sent, settings, stop_sending, varint, violation, with,
};
use haul_proto::ResponseError;
use haul_proto::h3::{
    BodyLength, CloseReason, H3Config, H3Error, H3ErrorCode, H3Event, H3FrameFault, H3Machine, H3ResetReason,
    H3SendStream, RequestId, ResponseBodyFraming, SendRequestError,
};
use haul_proto::time::MonotonicTimestamp;

const OK: [(&str, &str); 2] = [(":status", "200"), ("server", "x")];

#[test]
fn h3_response_yields_head_body_and_trailers() {
    let mut conn = asked(H3Config::default(), &get(), 2);
    assert_eq!(feed(&mut conn, &[(CONTROL, control(&[(0x33, 1)]), false)], 99), [H3RecordedEvent::Settings]);
    let first = [
        headers(&[(":status", "103"), ("link", "</x>")]),
        headers(&[(":status", "200"), ("content-length", "11")]),
        data(b"hello "),
        frame(0x21, b"greased"),
        data(b"world"),
        headers(&[("digest", "abc")]),
        frame(0x40, b""),
    ];
    assert_eq!(
        answer(&mut conn, 0, &first, true),
        [
            H3RecordedEvent::Interim(0, b"HTTP/3 103 \r\nlink: </x>\r\n\r\n".to_vec()),
            head(0, "HTTP/3 200 \ncontent-length: 11\n\n", ResponseBodyFraming::Length(11)),
            body(0, b"hello world"),
            H3RecordedEvent::Complete(0, Some(b"digest: abc\r\n\r\n".to_vec())),
        ]
    );
    assert_eq!(conn.unanswered().collect::<Vec<_>>(), [RequestId(4)]);
    let second = [headers(&OK), data(b"x")];
    let expected = [head(4, "HTTP/3 200 \nserver: x\n\n", ResponseBodyFraming::Chunked), body(4, b"x")];
    assert_eq!(answer(&mut conn, 4, &second, false), expected);
    assert_eq!(answer(&mut conn, 4, &[], true), [complete(4)], "the end comes alone");
    assert!(conn.is_idle() && commands(&mut conn).is_empty());
    assert!(answer(&mut conn, 4, &[b"late".to_vec()], true).is_empty(), "input of a closed stream is ignored");
}

#[test]
fn h3_responses_without_a_body_complete() {
    for (status, framing) in [
        ("204", ResponseBodyFraming::None),
        ("304", ResponseBodyFraming::None),
        ("500", ResponseBodyFraming::Length(0)),
    ] {
        let mut conn = asked(H3Config::default(), &get(), 1);
        let fields = if status == "500" {
            vec![(":status", status), ("content-length", "0")]
        } else {
            vec![(":status", status)]
        };
        let seen = answer(&mut conn, 0, &[headers(&fields), data(b"")], true);
        assert!(matches!(&seen[..], [H3RecordedEvent::Head(0, _, got), end] if *got == framing && *end == complete(0)));
    }
}

#[test]
fn h3_response_to_head_completes_after_head() {
    for (fin, size) in [(true, 1), (true, 99), (false, 1), (false, 99)] {
        let mut conn = asked(H3Config::default(), &with("HEAD", BodyLength::None), 1);
        let wire = headers(&[(":status", "200"), ("content-length", "9")]);
        let expected = [head(0, "HTTP/3 200 \ncontent-length: 9\n\n", ResponseBodyFraming::None), complete(0)];
        assert_eq!(feed(&mut conn, &[(0, wire, fin)], size), expected);
        let stop = stop_sending(0, H3ErrorCode::REQUEST_CANCELLED);
        assert_eq!(commands(&mut conn), if fin { vec![] } else { vec![stop] });
    }
}

#[test]
fn h3_connect_response_opens_a_tunnel() {
    let mut conn = asked(H3Config::default(), &with("CONNECT", BodyLength::Chunked), 1);
    let seen = answer(&mut conn, 0, &[headers(&[(":status", "200"), ("content-length", "1")]), data(b"tunnel")], false);
    assert_eq!(seen[1], body(0, b"tunnel"), "a tunnel has no length");
    assert_eq!(conn.send_body(RequestId(0), b"up"), Ok(2));
}

#[test]
fn headers_in_an_h3_tunnel_are_refused() {
    let fault = H3Error::Frame(H3FrameFault::WrongStream { kind: HEADERS });
    assert_eq!(fault.code(), H3ErrorCode::FRAME_UNEXPECTED);
    for size in [1, usize::MAX] {
        let mut conn = asked(H3Config::default(), &with("CONNECT", BodyLength::Chunked), 1);
        let unknown = frame(0x21, b"skipped");
        let wire = [headers(&[(":status", "200")]), data(b"x"), unknown, headers(&[("a", "b")])].concat();
        assert_eq!(feed(&mut conn, &[(0, wire, false)], size)[2..], [H3RecordedEvent::Error(fault)]);
        // A refused CONNECT has a body with trailers, like any other response.
        let mut conn = asked(H3Config::default(), &with("CONNECT", BodyLength::Chunked), 1);
        let wire = [headers(&[(":status", "407")]), data(b"x"), headers(&[("a", "b")])].concat();
        let seen = feed(&mut conn, &[(0, wire, true)], size);
        assert!(matches!(seen[2], H3RecordedEvent::Complete(0, Some(_))), "{seen:?}");
    }
}

#[test]
fn h3_bodies_of_wrong_length_reset_only_their_stream() {
    let length = |expected, got| H3Error::Length { expected, got };
    let announced = [(":status", "200"), ("content-length", "5")];
    for (frames, error) in [
        (vec![headers(&announced), data(b"hell")], length(5, 4)),
        (vec![headers(&announced), data(b"hello"), data(b"!")], length(5, 6)),
        (vec![headers(&announced), data(b"hell"), headers(&[("a", "b")])], length(5, 4)),
        (vec![headers(&[(":status", "204")]), data(b"x")], H3Error::UnexpectedBody),
        (vec![headers(&[(":status", "103")])], H3Error::MissingHead),
        (vec![], H3Error::MissingHead),
    ] {
        let mut conn = asked(H3Config::default(), &get(), 2);
        let seen = answer(&mut conn, 0, &frames, true);
        assert_eq!(seen.last(), Some(&violation(0, error)), "{seen:?}");
        assert_eq!(error.code(), H3ErrorCode::MESSAGE_ERROR);
        assert_eq!(answer(&mut conn, 4, &[headers(&OK)], true).last(), Some(&complete(4)));
    }
}

#[test]
fn reset_by_h3_peer_tells_whether_to_retry() {
    for (code, retryable) in [(H3ErrorCode::REQUEST_REJECTED, true), (H3ErrorCode::INTERNAL_ERROR, false)] {
        let mut conn = asked(H3Config::default(), &with("POST", BodyLength::Chunked), 1);
        assert_eq!(conn.on_stream_reset(MonotonicTimestamp(0), 0, code), Ok(()));
        assert_eq!(due(&mut conn), [H3RecordedEvent::Reset(0, H3ResetReason::Peer(code), retryable)]);
        assert_eq!(commands(&mut conn), [reset_stream(0, H3ErrorCode::REQUEST_CANCELLED)], "its body ends too");
        assert_eq!(sent(&mut conn)[&H3SendStream::QpackDecoder].0, [0x40], "the stream is cancelled for QPACK");
        assert_eq!(conn.on_stream_reset(MonotonicTimestamp(0), 0, code), Ok(()), "once");
        assert!(!conn.has_pending_event());
    }
}

#[test]
fn received_h3_goaway_refuses_later_requests() {
    let mut conn = asked(H3Config::default(), &get(), 3);
    let wire = [control(&[]), frame(GOAWAY, &varint(1 << 60)), frame(GOAWAY, &varint(8))].concat();
    assert_eq!(
        feed(&mut conn, &[(CONTROL, wire, false)], 99),
        [
            H3RecordedEvent::Settings,
            H3RecordedEvent::GoAway(1 << 60),
            H3RecordedEvent::GoAway(8),
            H3RecordedEvent::Reset(8, H3ResetReason::GoAway, true),
        ]
    );
    assert_eq!(commands(&mut conn), [stop_sending(8, H3ErrorCode::REQUEST_CANCELLED)]);
    assert!(matches!(conn.close_reason(), Some(CloseReason::GoAway(_))));
    let refused = conn.enqueue(MonotonicTimestamp(0), 12, &get());
    assert!(matches!(refused, Err(SendRequestError::Closed(CloseReason::GoAway(_)))), "{refused:?}");
    for id in [0, 4] {
        assert_eq!(answer(&mut conn, id, &[headers(&OK)], true).last(), Some(&complete(id)));
    }
    assert!(conn.unanswered().next().is_none());
}

#[test]
fn h3_connection_end_error_names_truncated_part() {
    let idle = H3Error::Response(ResponseError::EndedIdle);
    let mut conn = asked(H3Config::default(), &get(), 0);
    assert_eq!(conn.on_connection_end(), idle);
    assert_eq!(conn.on_connection_end(), H3Error::Response(ResponseError::Closed(CloseReason::PeerClosed)));
    let mut conn = asked(H3Config::default(), &get(), 2);
    assert_eq!(conn.on_connection_end(), H3Error::Response(ResponseError::EndedBeforeResponse));
    let mut conn = asked(H3Config::default(), &get(), 2);
    answer(&mut conn, 4, &[vec![1]], false);
    assert!(conn.response_started(RequestId(4)) && !conn.response_started(RequestId(0)));
    assert_eq!(conn.on_connection_end(), H3Error::EndedInResponse { open: 2 });
    assert_eq!(conn.unanswered().count(), 2);
    let closed = Err(H3Error::Response(ResponseError::Closed(CloseReason::PeerClosed)));
    assert_eq!(conn.step(MonotonicTimestamp(0), 0, b"x", false), closed);
}

#[test]
fn cancelled_h3_request_yields_no_more_events() {
    let mut conn = asked(H3Config::default(), &with("POST", BodyLength::Known(9)), 2);
    answer(&mut conn, 0, &[headers(&OK), data(b"x")], false);
    assert!(conn.reset(RequestId(0), H3ErrorCode::REQUEST_CANCELLED));
    assert!(!conn.reset(RequestId(0), H3ErrorCode::REQUEST_CANCELLED));
    let code = H3ErrorCode::REQUEST_CANCELLED;
    assert_eq!(commands(&mut conn), [reset_stream(0, code), stop_sending(0, code)]);
    assert!(answer(&mut conn, 0, &[data(b"more")], true).is_empty());
    // An event that is due already is taken back.
    conn.on_stream_reset(MonotonicTimestamp(0), 4, H3ErrorCode::INTERNAL_ERROR).expect("no fault");
    assert!(conn.has_pending_event() && conn.reset(RequestId(4), code) && !conn.has_pending_event());
}

#[test]
fn h3_settings_may_arrive_after_a_response() {
    let mut conn = asked(H3Config::default(), &get(), 1);
    assert_eq!(answer(&mut conn, 0, &[headers(&OK)], true).last(), Some(&complete(0)));
    let step =
        conn.step(MonotonicTimestamp(0), CONTROL, &[&[0][..], &settings(&[(6, 20)])].concat(), false).expect("valid");
    assert_eq!(step.event, H3Event::Settings);
    assert_eq!(conn.enqueue(MonotonicTimestamp(0), 4, &get()), Err(SendRequestError::HeadTooLarge { limit: 20 }));
}

#[test]
fn h3_response_to_head_ends_an_unsent_body() {
    let mut conn = asked(H3Config::default(), &with("HEAD", BodyLength::Known(9)), 1);
    let seen = answer(&mut conn, 0, &[headers(&OK)], true);
    assert_eq!(seen.last(), Some(&complete(0)));
    assert_eq!(commands(&mut conn), [reset_stream(0, H3ErrorCode::REQUEST_CANCELLED)]);
    assert!(conn.is_idle());
}

#[test]
fn h3_stream_of_an_open_request_is_refused() {
    let mut conn = asked(H3Config::default(), &get(), 1);
    assert_eq!(conn.enqueue(MonotonicTimestamp(0), 0, &get()), Err(SendRequestError::StreamIdentifier));
    // The request was answered before its body was sent.
    let mut conn = H3Machine::new(H3Config::default());
    conn.enqueue(MonotonicTimestamp(0), 0, &get()).expect("a valid request");
    assert_eq!(answer(&mut conn, 0, &[headers(&OK)], true).last(), Some(&complete(0)));
    assert_eq!(
        conn.enqueue(MonotonicTimestamp(0), 0, &get()),
        Err(SendRequestError::StreamIdentifier),
        "its head is unsent"
    );
    assert_eq!(conn.enqueue(MonotonicTimestamp(0), 4, &get()), Ok(RequestId(4)));
}

#[test]
fn unknown_frames_on_the_control_stream_are_skipped() {
    for size in [1, 99] {
        let mut conn = asked(H3Config::default(), &get(), 1);
        // Read as frames, the payload would be an error.
        let unknown = [frame(0x21, &[0, 0]), frame(0x21, &[])].concat();
        let wire = [control(&[]), unknown, frame(GOAWAY, &[8])].concat();
        assert_eq!(
            feed(&mut conn, &[(CONTROL, wire, false)], size),
            [H3RecordedEvent::Settings, H3RecordedEvent::GoAway(8)]
        );
    }
}

#[test]
fn reset_of_a_waiting_request_keeps_the_others() {
    let mut conn = H3Machine::new(H3Config::default());
    for id in [0, 4, 8] {
        conn.enqueue(MonotonicTimestamp(0), id, &get()).expect("a valid request");
    }
    assert!(conn.reset(RequestId(4), H3ErrorCode::REQUEST_CANCELLED));
    let requests = |stream: &H3SendStream| matches!(stream, H3SendStream::Request(_));
    let streams: Vec<H3SendStream> = sent(&mut conn).into_keys().filter(requests).collect();
    assert_eq!(streams, [0, 8].map(|id| H3SendStream::Request(RequestId(id))));
}

#[test]
fn finished_h3_body_may_be_finished_again() {
    let mut conn = asked(H3Config::default(), &with("POST", BodyLength::Known(2)), 1);
    assert_eq!(conn.send_body(RequestId(0), b"ok"), Ok(2));
    assert_eq!(conn.finish_body(RequestId(0), &[]), Ok(()));
    assert_eq!(conn.finish_body(RequestId(0), &[("a", b"b")]), Err(SendRequestError::TrailersWithoutChunks));
}

#[test]
fn reset_after_an_h3_response_ends_only_the_upload() {
    let code = H3ErrorCode::REQUEST_CANCELLED;
    for (is_answered, rest) in [(true, vec![]), (false, vec![stop_sending(0, code)])] {
        let mut conn = asked(H3Config::default(), &with("POST", BodyLength::Chunked), 1);
        answer(&mut conn, 0, &[headers(&OK)], is_answered);
        assert!(conn.reset(RequestId(0), code));
        assert_eq!(commands(&mut conn), [vec![reset_stream(0, code)], rest].concat());
    }
}

/// Makes the same calls on an open connection, where the closed control stream is an error.
#[test]
fn ended_h3_connection_ignores_late_reports() {
    let now = MonotonicTimestamp(0);
    for is_open in [true, false] {
        let mut conn = asked(H3Config::default(), &with("POST", BodyLength::Chunked), 1);
        assert_eq!(feed(&mut conn, &[(CONTROL, control(&[]), false)], 99), [H3RecordedEvent::Settings]);
        let closed = if is_open {
            SendRequestError::UnknownRequest
        } else {
            conn.on_connection_end();
            SendRequestError::Closed(CloseReason::PeerClosed)
        };
        let accepted = if is_open { (Some(32 * 1024), Ok(1)) } else { (Some(0), Ok(0)) };
        assert_eq!((conn.body_credit(RequestId(0)), conn.send_body(RequestId(0), b"x")), accepted);
        let unknown = RequestId(4);
        assert_eq!((conn.send_body(unknown, b"x"), conn.finish_body(unknown, &[])), (Err(closed), Err(closed)));
        assert_eq!(conn.on_stop_sending(H3SendStream::Control, H3ErrorCode::NO_ERROR).is_err(), is_open);
        assert_eq!(conn.on_stream_reset(now, CONTROL, H3ErrorCode::NO_ERROR), Ok(()), "the connection has ended");
        assert!(!conn.has_pending_event() && !conn.has_output());
    }
}
