//! Tests of HTTP/2 responses, alone and in parallel.

use super::peer::{
    DATA, END, GOAWAY, H2RecordedEvent, PING, RST_STREAM, SETTINGS, WINDOW_UPDATE, answer, asked, body, complete, data,
    feed, frame, get, go_away, head, headers, padded, rst, sent, settings, settings_ack, window_update, with,
};
use haul_proto::ResponseError;
use haul_proto::h2::{
    BodyLength, CloseReason, ErrorCode, H2Config, H2Error, H2Event, H2Machine, RequestId, ResetReason,
    ResponseBodyFraming, SendRequestError,
};
use haul_proto::response_head::ProtocolVersion;
use haul_proto::time::MonotonicTimestamp;
use std::time::Duration;

const OK: &[(&str, &str)] = &[(":status", "200")];

#[test]
fn first_h2_output_is_preface_and_settings() {
    let conn = H2Machine::new(H2Config::default());
    assert!(conn.output().starts_with(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"));
    let frames = super::peer::frames(conn.output());
    let kinds: Vec<u8> = frames.iter().map(|frame| frame.0).collect();
    assert_eq!(kinds, [SETTINGS, WINDOW_UPDATE]);
    assert!(frames[0].3.chunks(6).any(|entry| entry == [0, 2, 0, 0, 0, 0]), "push is off");
    assert_eq!(frames[1].3, (32 * 1024 * 1024 - 65_535u32).to_be_bytes());
    assert!(!conn.is_idle(), "there is something to send");
}

#[test]
fn h2_body_framing_follows_content_length_and_end_stream() {
    let mut conn = asked(H2Config::default(), &get(), 5);
    let seen = answer(
        &mut conn,
        &[
            headers(1, 0, &[(":status", "200"), ("content-length", "5")]),
            data(1, END, b"hello"),
            headers(3, 0, OK),
            data(3, 0, b"some"),
            data(3, END, b""),
            headers(5, END, OK),
            headers(7, 0, &[(":status", "304"), ("content-length", "42")]),
            data(7, END, b""),
            headers(9, END, &[(":status", "200"), ("content-length", "0")]),
        ],
    );
    let expected = [
        head(1, "HTTP/2 200 \ncontent-length: 5\n\n", ResponseBodyFraming::Length(5)),
        body(1, b"hello"),
        complete(1),
        head(3, "HTTP/2 200 \n\n", ResponseBodyFraming::Chunked),
        body(3, b"some"),
        complete(3),
        head(5, "HTTP/2 200 \n\n", ResponseBodyFraming::Length(0)),
        complete(5),
        head(7, "HTTP/2 304 \ncontent-length: 42\n\n", ResponseBodyFraming::None),
        complete(7),
        head(9, "HTTP/2 200 \ncontent-length: 0\n\n", ResponseBodyFraming::Length(0)),
        complete(9),
    ];
    assert_eq!(seen, expected);
    assert_eq!(sent(&mut conn), [(SETTINGS, 1, 0, vec![])]);
    assert!(conn.is_idle());
}

#[test]
fn h2_response_heads_have_version_status_and_fields() {
    let mut conn = asked(H2Config::default(), &with("HEAD", BodyLength::None), 1);
    let wire = [settings(&[]), headers(1, END, &[(":status", "418"), ("x-a", " 1\t"), ("x-a", "")])].concat();
    let mut wire = wire;
    let first = conn.step(MonotonicTimestamp(0), &mut wire).expect("settings");
    let step = conn.step(MonotonicTimestamp(0), &mut wire[first.consumed..]).expect("a head");
    let H2Event::Head { id: RequestId(1), head, framing: ResponseBodyFraming::None } = step.event else { panic!() };
    assert_eq!((head.version(), head.status(), head.reason()), (ProtocolVersion::Http2, 418, &b""[..]));
    assert_eq!(head.version().to_string(), "HTTP/2");
    assert_eq!(head.get_all("X-A").collect::<Vec<_>>(), [&b"1"[..], b""]);
    assert_eq!(head.raw(), b"HTTP/2 418 \r\nx-a:  1\t\r\nx-a: \r\n\r\n");
}

#[test]
fn h2_response_to_head_completes_without_end_stream() {
    let says = headers(1, 0, &[(":status", "200"), ("content-length", "5")]);
    let expected = [head(1, "HTTP/2 200 \ncontent-length: 5\n\n", ResponseBodyFraming::None), complete(1)];
    let trailers = headers(1, END, &[("a", "b")]);
    for behind in [vec![], data(1, END, b""), data(1, END, b"hello"), [data(1, 0, b"hel"), trailers].concat()] {
        let mut conn = asked(H2Config::default(), &with("HEAD", BodyLength::None), 2);
        assert_eq!(answer(&mut conn, &[says.clone(), behind]), expected);
        let told = (RST_STREAM, 0, 1, ErrorCode::CANCEL.0.to_be_bytes().to_vec());
        assert_eq!(sent(&mut conn), [(SETTINGS, 1, 0, vec![]), told]);
        assert_eq!(feed(&mut conn, &headers(3, END, OK), &[]).last(), Some(&complete(3)), "the next one is well");
        assert!(conn.is_idle());
    }
}

#[test]
fn h2_interim_heads_precede_the_final_head() {
    let mut conn = asked(H2Config::default(), &get(), 1);
    let early = [(":status", "103"), ("link", "</x>")];
    let seen = answer(&mut conn, &[headers(1, 0, &early), headers(1, 0, &early), headers(1, END, OK)]);
    let interim = H2RecordedEvent::Interim(1, b"HTTP/2 103 \r\nlink: </x>\r\n\r\n".to_vec());
    let last = head(1, "HTTP/2 200 \n\n", ResponseBodyFraming::Length(0));
    assert_eq!(seen, [interim.clone(), interim, last, complete(1)]);
}

#[test]
fn number_of_h2_requests_respects_the_peers_limit() {
    let mut conn = asked(H2Config::default(), &get(), 100);
    assert!(!conn.can_enqueue());
    assert_eq!(conn.enqueue(MonotonicTimestamp(0), &get()), Err(SendRequestError::TooManyStreams { limit: 100 }));
    assert_eq!(feed(&mut conn, &settings(&[(3, 101)]), &[]), [H2RecordedEvent::Settings(101)]);
    assert_eq!(conn.enqueue(MonotonicTimestamp(0), &get()), Ok(RequestId(201)));
    assert!(!conn.can_enqueue());
    feed(&mut conn, &settings(&[(3, 50)]), &[]);
    for id in (1..=199).step_by(2) {
        assert_eq!(conn.can_enqueue(), id > 103, "{id}: fewer than 50 are open");
        feed(&mut conn, &headers(id, END, OK), &[]);
    }
    assert_eq!(conn.unanswered().collect::<Vec<_>>(), [RequestId(201)]);
}

#[test]
fn number_of_h2_requests_respects_the_window() {
    let config = H2Config { connection_window: 1 << 20, stream_window: 400_000, ..H2Config::default() };
    let mut conn = asked(config, &get(), 2);
    assert_eq!(conn.enqueue(MonotonicTimestamp(0), &get()), Err(SendRequestError::NoWindow));
    assert!(conn.reset(RequestId(1), ErrorCode::CANCEL));
    assert!(conn.can_enqueue());
}

#[test]
fn refused_and_reset_h2_requests_are_reported() {
    let mut conn = asked(H2Config::default(), &get(), 3);
    let seen = answer(
        &mut conn,
        &[
            rst(1, ErrorCode::REFUSED_STREAM),
            headers(3, 0, OK),
            data(3, 0, b"half"),
            rst(3, ErrorCode::INTERNAL_ERROR),
            rst(5, ErrorCode::HTTP_1_1_REQUIRED),
            rst(5, ErrorCode::NO_ERROR),
        ],
    );
    let reset = |id, code, retryable| H2RecordedEvent::Reset(id, ResetReason::Peer(code), retryable);
    assert_eq!(seen[0], reset(1, ErrorCode::REFUSED_STREAM, true));
    assert_eq!(seen[3], reset(3, ErrorCode::INTERNAL_ERROR, false));
    assert_eq!(seen[4], reset(5, ErrorCode::HTTP_1_1_REQUIRED, false));
    assert_eq!((seen.len(), conn.can_enqueue()), (5, true));
}

#[test]
fn refused_request_with_a_response_is_not_retryable() {
    let mut conn = asked(H2Config::default(), &get(), 2);
    let head = |stream| headers(stream, 0, OK);
    let seen = answer(
        &mut conn,
        &[head(1), rst(1, ErrorCode::REFUSED_STREAM), head(3), go_away(1, ErrorCode::ENHANCE_YOUR_CALM)],
    );
    assert!(seen.contains(&H2RecordedEvent::Reset(1, ResetReason::Peer(ErrorCode::REFUSED_STREAM), false)), "{seen:?}");
    let reason = ResetReason::GoAway(ErrorCode::ENHANCE_YOUR_CALM);
    assert_eq!(seen.last(), Some(&H2RecordedEvent::Reset(3, reason, false)));
}

#[test]
fn received_goaway_lets_earlier_requests_finish() {
    let mut conn = asked(H2Config::default(), &get(), 4);
    let last = 0x7fff_ffff;
    let seen = answer(&mut conn, &[headers(1, 0, OK), go_away(last, ErrorCode::NO_ERROR)]);
    assert_eq!(seen[1..], [H2RecordedEvent::GoAway(u64::from(last), ErrorCode::NO_ERROR)], "a warning");
    let reason = CloseReason::GoAway(ErrorCode::NO_ERROR);
    assert_eq!(conn.enqueue(MonotonicTimestamp(0), &get()), Err(SendRequestError::Closed(reason)));
    let seen = feed(&mut conn, &go_away(3, ErrorCode::ENHANCE_YOUR_CALM), &[]);
    let left_out = |id| H2RecordedEvent::Reset(id, ResetReason::GoAway(ErrorCode::ENHANCE_YOUR_CALM), true);
    assert_eq!(seen, [H2RecordedEvent::GoAway(3, ErrorCode::ENHANCE_YOUR_CALM), left_out(5), left_out(7)]);
    let seen = feed(&mut conn, &[data(1, END, b"x"), headers(3, END, OK)].concat(), &[]);
    assert_eq!((seen.first(), seen.last()), (Some(&body(1, b"x")), Some(&complete(3))));
    assert_eq!(conn.close_reason(), Some(CloseReason::GoAway(ErrorCode::ENHANCE_YOUR_CALM)));
    assert!(!conn.is_idle());
    assert_eq!(conn.end_of_input(), H2Error::Response(ResponseError::EndedIdle), "nothing was lost");
}

#[test]
fn sent_goaway_lets_open_requests_finish() {
    let mut conn = asked(H2Config::default(), &get(), 1);
    conn.go_away();
    conn.go_away();
    assert_eq!(sent(&mut conn), [(GOAWAY, 0, 0, vec![0; 8])]);
    assert!(!conn.can_enqueue());
    assert_eq!(answer(&mut conn, &[headers(1, END, OK)]).last(), Some(&complete(1)));
}

#[test]
fn frames_sent_before_a_reset_are_ignored() {
    let mut conn = asked(H2Config::default(), &get(), 2);
    answer(&mut conn, &[headers(1, 0, OK), data(1, 0, b"some")]);
    assert!(conn.reset(RequestId(1), ErrorCode::CANCEL));
    assert!(!conn.reset(RequestId(1), ErrorCode::CANCEL), "once");
    let reset = sent(&mut conn).pop();
    assert_eq!(reset, Some((RST_STREAM, 0, 1, ErrorCode::CANCEL.0.to_be_bytes().to_vec())));
    let late = [
        data(1, 0, &[7; 5_000]),
        padded(1, 0, b"", 200),
        window_update(1, 5),
        headers(1, END, &[("x", "y")]),
        rst(1, ErrorCode::CANCEL),
        headers(3, END, OK),
    ];
    let seen = feed(&mut conn, &late.concat(), &[]);
    assert_eq!(seen, [head(3, "HTTP/2 200 \n\n", ResponseBodyFraming::Length(0)), complete(3)]);
}

#[test]
fn stream_reset_within_a_frame_drops_later_events() {
    let mut conn = asked(H2Config::default(), &get(), 2);
    let mut wire = [settings(&[]), headers(1, 0, OK), data(1, END, b"0123456789"), headers(3, END, OK)].concat();
    let cut = wire.len() - headers(3, END, OK).len() - 4;
    let mut rest = wire.split_off(cut);
    let mut at = 0;
    loop {
        let step = conn.step(MonotonicTimestamp(0), &mut wire[at..]).expect("valid");
        at += step.consumed;
        if let H2Event::Body { id, range } = step.event {
            assert_eq!(range.len(), 6);
            assert!(conn.reset(id, ErrorCode::CANCEL));
            conn.release(MonotonicTimestamp(0), id, 6);
            break;
        }
    }
    assert_eq!(conn.step(MonotonicTimestamp(0), &mut wire[at..]).map(|step| step.event), Ok(H2Event::NeedInput));
    let step = conn.step(MonotonicTimestamp(0), &mut rest).expect("valid");
    let H2Event::Head { id: RequestId(3), .. } = step.event else { panic!("{step:?}") };
    assert!(conn.reset(RequestId(3), ErrorCode::CANCEL), "its Complete is due and does not come");
    assert_eq!(conn.step(MonotonicTimestamp(0), &mut []).map(|step| step.event), Ok(H2Event::NeedInput));
}

#[test]
fn h2_pings_and_settings_are_acknowledged() {
    let mut conn = asked(H2Config::default(), &get(), 1);
    let seen = answer(&mut conn, &[frame(PING, 0, 0, b"abcdefgh"), settings(&[(1, 0), (5, 20_000)])]);
    assert_eq!(seen, [H2RecordedEvent::Settings(100)]);
    assert_eq!(
        sent(&mut conn),
        [(SETTINGS, 1, 0, vec![]), (PING, 1, 0, b"abcdefgh".to_vec()), (SETTINGS, 1, 0, vec![])]
    );
}

#[test]
fn h2_timeouts_follow_the_configuration() {
    let config = H2Config {
        settings_timeout: Duration::from_nanos(100),
        keepalive: Some(Duration::from_nanos(30)),
        ..H2Config::default()
    };
    let mut conn = asked(config, &get(), 1);
    conn.step(MonotonicTimestamp(10), &mut settings(&[])).expect("settings");
    sent(&mut conn);
    assert_eq!(conn.poll_timeout(), Some(MonotonicTimestamp(40)), "silence since 10");
    assert_eq!(conn.handle_timeout(MonotonicTimestamp(40)), Ok(()));
    assert_eq!(sent(&mut conn), [(PING, 0, 0, b"haulping".to_vec())]);
    assert_eq!(conn.poll_timeout(), Some(MonotonicTimestamp(70)));
    conn.step(MonotonicTimestamp(45), &mut frame(PING, 1, 0, b"haulping")).expect("an answer");
    assert_eq!(conn.rtt(), Some(Duration::from_nanos(5)));
    assert_eq!(conn.poll_timeout(), Some(MonotonicTimestamp(75)));
    conn.step(MonotonicTimestamp(99), &mut settings(&[])).expect("settings");
    assert_eq!(conn.poll_timeout(), Some(MonotonicTimestamp(100)), "since the request at 0");
    let end = MonotonicTimestamp(100) + Duration::from_secs(1);
    assert_eq!(conn.handle_timeout(MonotonicTimestamp(100)), Ok(()), "the acknowledgement may wait unread");
    conn.step(MonotonicTimestamp(end.0 - 1), &mut settings(&[])).expect("settings");
    assert_eq!(conn.poll_timeout(), Some(end));
    assert_eq!(conn.handle_timeout(end), Err(H2Error::SettingsTimeout));
    assert_eq!(sent(&mut conn).pop().map(|frame| frame.0), Some(GOAWAY));
    assert_eq!((conn.poll_timeout(), conn.handle_timeout(MonotonicTimestamp(900))), (None, Ok(())));

    let mut conn = asked(config, &get(), 1);
    conn.step(MonotonicTimestamp(10), &mut [settings(&[]), settings_ack()].concat()).expect("settings");
    conn.step(MonotonicTimestamp(10), &mut settings_ack()).expect("settings");
    assert_eq!(conn.rtt(), Some(Duration::from_nanos(10)));
    assert_eq!(conn.handle_timeout(MonotonicTimestamp(50)), Ok(()));
    assert_eq!(conn.handle_timeout(MonotonicTimestamp(79)), Ok(()));
    assert_eq!(conn.handle_timeout(MonotonicTimestamp(80)), Err(H2Error::PingTimeout));
}

#[test]
fn settings_acknowledgement_read_after_its_timeout_counts() {
    let mut conn = asked(H2Config::default(), &get(), 1);
    // The process was stopped for an hour, and the acknowledgement waits in the socket.
    let late = MonotonicTimestamp(0) + Duration::from_secs(3600);
    assert_eq!(conn.handle_timeout(late), Ok(()));
    let seen = feed(&mut conn, &[settings(&[]), settings_ack(), headers(1, END, OK)].concat(), &[]);
    assert!(matches!(
        seen[..],
        [H2RecordedEvent::Settings(_), H2RecordedEvent::Head(..), H2RecordedEvent::Complete(..)]
    ));
    assert_eq!((conn.poll_timeout(), conn.handle_timeout(late + Duration::from_secs(60))), (None, Ok(())));
}

#[test]
fn early_h2_close_error_names_truncated_part() {
    let mut conn = asked(H2Config::default(), &get(), 2);
    assert!(conn.has_sent_any_of(RequestId(1)) && !conn.response_started(RequestId(1)));
    assert_eq!(conn.end_of_input(), H2Error::Response(ResponseError::EndedBeforeResponse));
    assert_eq!(conn.end_of_input(), H2Error::Response(ResponseError::Closed(CloseReason::PeerClosed)));
    assert_eq!(
        conn.step(MonotonicTimestamp(0), &mut []),
        Err(H2Error::Response(ResponseError::Closed(CloseReason::PeerClosed)))
    );
    let mut conn = asked(H2Config::default(), &get(), 2);
    answer(&mut conn, &[headers(1, 0, OK)]);
    assert!(conn.response_started(RequestId(1)) && !conn.response_started(RequestId(3)));
    assert_eq!(conn.end_of_input(), H2Error::EndedInResponse { open: 2 });
    assert_eq!(conn.unanswered().count(), 2, "what was lost");
    let mut conn = H2Machine::new(H2Config::default());
    conn.enqueue(MonotonicTimestamp(0), &get()).expect("valid");
    assert!(!conn.has_sent_any_of(RequestId(1)));
}

#[test]
fn reset_of_another_h2_stream_keeps_the_body() {
    let mut conn = asked(H2Config::default(), &get(), 2);
    let frame = data(1, END, b"0123456789");
    let (first, second) = frame.split_at(frame.len() - 6);
    assert_eq!(answer(&mut conn, &[headers(1, 0, OK), first.to_vec()]).last(), Some(&body(1, b"0123")));
    assert!(conn.reset(RequestId(3), ErrorCode::CANCEL));
    assert_eq!(feed(&mut conn, second, &[]), [body(1, b"456789"), complete(1)]);
}

/// Makes the same calls on an open connection, where each of them writes a frame.
#[test]
fn ended_h2_connection_writes_no_frames() {
    let (now, upload, other) = (MonotonicTimestamp(0), RequestId(1), RequestId(3));
    for is_open in [true, false] {
        let mut conn = asked(H2Config::default(), &with("POST", BodyLength::Chunked), 2);
        let mut wire = [settings(&[]), headers(1, 0, OK)].concat();
        (0..4).for_each(|_| wire.extend(data(1, 0, &[0; 50_000])));
        let mut at = 0;
        loop {
            let step = conn.step(now, &mut wire[at..]).expect("valid");
            at += step.consumed;
            if step.event == H2Event::NeedInput {
                break;
            }
        }
        sent(&mut conn);
        if !is_open {
            assert_eq!(conn.end_of_input(), H2Error::EndedInResponse { open: 2 });
        }
        assert_eq!(conn.send_body(upload, b"x"), Ok(usize::from(is_open)));
        conn.release(now, upload, 200_000);
        conn.raise_stream_window(1 << 20);
        assert!(conn.reset(other, ErrorCode::CANCEL));
        let kinds: Vec<u8> = sent(&mut conn).iter().map(|frame| frame.0).collect();
        assert_eq!(kinds, if is_open { &[DATA, WINDOW_UPDATE, SETTINGS, RST_STREAM][..] } else { &[] });
        let gone =
            if is_open { SendRequestError::UnknownRequest } else { SendRequestError::Closed(CloseReason::PeerClosed) };
        assert_eq!((conn.send_body(other, b"x"), conn.finish_body(other, &[])), (Err(gone), Err(gone)));
    }
}
