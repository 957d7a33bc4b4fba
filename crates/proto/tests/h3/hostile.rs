//! Tests with HTTP/3 peers that break the protocol or flood the client: each violation is a typed
//! error with its code.

use super::peer::{
    CANCEL_PUSH, CONTROL, DATA, DECODER, ENCODER, GOAWAY, H3RecordedEvent, HEADERS, MAX_PUSH_ID, PUSH_PROMISE, Piece,
    SETTINGS, answer, asked, commands, complete, control, data, feed, frame, get, headers, section, settings,
    stop_sending, varint, violation,
};
use haul_proto::h3::{
    BodyLength, CloseReason, ContentLengthFault, FieldFault, H3Config, H3Error, H3ErrorCode, H3FloodKind, H3FrameFault,
    H3IllegalStreamOpenOrClose, H3Machine, H3SendStream, RequestHead, RequestId,
};
use haul_proto::qpack::{QpackError, QpackFault};
use haul_proto::time::MonotonicTimestamp;
use haul_proto::{ResponseError, ResponseLimits};

const OK: [(&str, &str); 1] = [(":status", "200")];

/// Passes the pieces to a connection with two requests. Checks that the last event is this error,
/// with this code, and that the connection has ended.
#[track_caller]
fn refused(what: &str, pieces: &[Piece], error: H3Error, code: H3ErrorCode) {
    let mut conn = asked(H3Config::default(), &get(), 2);
    let seen = feed(&mut conn, pieces, usize::MAX);
    assert_eq!(seen.last(), Some(&H3RecordedEvent::Error(error)), "{what}");
    assert_eq!(error.code(), code, "{what}");
    assert!(error.to_string().starts_with("server "), "{error}");
    assert_eq!(conn.close_reason(), Some(CloseReason::Broken));
    let closed = Err(H3Error::Response(ResponseError::Closed(CloseReason::Broken)));
    assert_eq!(conn.step(MonotonicTimestamp(0), 0, b"x", false), closed);
    assert!(!conn.has_output() && !conn.has_pending_event() && conn.next_command().is_none() && !conn.can_enqueue());
    assert!(conn.unanswered().count() > 0 && conn.poll_timeout().is_none());
}

fn on_control(frames: &[Vec<u8>]) -> Vec<Piece> {
    vec![(CONTROL, [control(&[]), frames.concat()].concat(), false)]
}

fn on_request(frames: &[Vec<u8>]) -> Vec<Piece> {
    vec![(0, frames.concat(), false)]
}

#[test]
fn h3_frames_on_wrong_streams_are_refused() {
    let unexpected = H3ErrorCode::FRAME_UNEXPECTED;
    let wrong = |kind| H3Error::Frame(H3FrameFault::WrongStream { kind });
    for kind in [DATA, HEADERS, PUSH_PROMISE, MAX_PUSH_ID, 2, 6, 8, 9] {
        refused("on the control stream", &on_control(&[frame(kind, &[0])]), wrong(kind), unexpected);
    }
    for kind in [CANCEL_PUSH, SETTINGS, GOAWAY, MAX_PUSH_ID, 2, 6, 8, 9] {
        refused("on a request's stream", &on_request(&[frame(kind, &[0])]), wrong(kind), unexpected);
    }
    refused("PUSH_PROMISE", &on_request(&[frame(PUSH_PROMISE, &[0])]), H3Error::Push, H3ErrorCode::ID_ERROR);
    refused("CANCEL_PUSH", &on_control(&[frame(CANCEL_PUSH, &[0])]), H3Error::Push, H3ErrorCode::ID_ERROR);
    refused("a push stream", &[(CONTROL, vec![1, 0], false)], H3Error::Push, H3ErrorCode::ID_ERROR);
}

#[test]
fn h3_frames_out_of_order_are_refused() {
    let unexpected = H3ErrorCode::FRAME_UNEXPECTED;
    let early = H3Error::Frame(H3FrameFault::DataBeforeHead);
    let late = H3Error::Frame(H3FrameFault::AfterTrailers);
    refused("DATA first", &on_request(&[data(b"x")]), early, unexpected);
    let interim = headers(&[(":status", "103")]);
    refused("DATA after an interim head", &on_request(&[interim, data(b"x")]), early, unexpected);
    let trailed = [headers(&OK), headers(&[("a", "b")])].concat();
    refused("DATA after trailers", &on_request(&[trailed.clone(), data(b"x")]), late, unexpected);
    refused("HEADERS after trailers", &on_request(&[trailed, headers(&OK)]), late, unexpected);
}

#[test]
fn truncated_h3_frames_end_the_connection() {
    let truncated = H3Error::Frame(H3FrameFault::Truncated);
    for frames in [
        vec![headers(&OK), vec![0]],
        vec![headers(&OK), vec![0x40]],
        vec![headers(&OK), data(b"hello")[..4].to_vec()],
        vec![headers(&OK), data(b"hello")[..2].to_vec()],
        vec![headers(&OK)[..5].to_vec()],
        vec![headers(&OK)[..2].to_vec()],
        vec![headers(&OK), vec![0x21, 5, 0]],
    ] {
        let wire = frames.concat();
        refused("cut", &[(0, wire, true)], truncated, H3ErrorCode::FRAME_ERROR);
    }
}

#[test]
fn invalid_h3_settings_are_refused() {
    let first = |frames: &[Vec<u8>]| vec![(CONTROL, [vec![0], frames.concat()].concat(), false)];
    let missing = H3Error::Frame(H3FrameFault::MissingSettings);
    for kind in [GOAWAY, DATA, 0x21] {
        refused("not first", &first(&[frame(kind, &[0])]), missing, H3ErrorCode::MISSING_SETTINGS);
    }
    let second = H3Error::Frame(H3FrameFault::SecondSettings);
    refused("twice", &on_control(&[settings(&[])]), second, H3ErrorCode::FRAME_UNEXPECTED);
    for id in [0, 2, 3, 4, 5] {
        let pieces = first(&[settings(&[(id, 0)])]);
        refused("of HTTP/2", &pieces, H3Error::Setting { id }, H3ErrorCode::SETTINGS_ERROR);
    }
    let twice = first(&[settings(&[(6, 1), (0x21, 1), (6, 1)])]);
    refused("an identifier twice", &twice, H3Error::Setting { id: 6 }, H3ErrorCode::SETTINGS_ERROR);
    let blocked = first(&[settings(&[(7, 1), (7, 1)])]);
    refused("blocked streams twice", &blocked, H3Error::Setting { id: 7 }, H3ErrorCode::SETTINGS_ERROR);
    let layout = H3Error::Frame(H3FrameFault::Layout { kind: SETTINGS });
    for payload in [&[6][..], &[6, 0x40], &[0x40]] {
        refused("cut", &first(&[frame(SETTINGS, payload)]), layout, H3ErrorCode::FRAME_ERROR);
    }
    let giant = H3Error::FrameTooLarge { kind: SETTINGS, length: 16_385, limit: 16_384 };
    let header = [varint(SETTINGS), varint(16_385)].concat();
    refused("giant", &first(&[header]), giant, H3ErrorCode::EXCESSIVE_LOAD);
}

#[test]
fn frame_of_the_largest_size_is_accepted() {
    let config = H3Config { max_frame_size: 5, ..H3Config::default() };
    let seen = |id| feed(&mut H3Machine::new(config), &[(CONTROL, control(&[(id, 0)]), false)], 99);
    assert_eq!(seen(0x4000), [H3RecordedEvent::Settings], "five bytes");
    let error = H3Error::FrameTooLarge { kind: SETTINGS, length: 9, limit: 5 };
    assert_eq!(seen(1 << 30), [H3RecordedEvent::Error(error)], "nine bytes");
}

#[test]
fn invalid_h3_goaways_are_refused() {
    let fault = H3Error::Frame(H3FrameFault::GoAwayId);
    for id in [1, 2, 3] {
        refused("no request's", &on_control(&[frame(GOAWAY, &[id])]), fault, H3ErrorCode::ID_ERROR);
    }
    let raised = [frame(GOAWAY, &[4]), frame(GOAWAY, &[8])];
    refused("raised", &on_control(&raised), fault, H3ErrorCode::ID_ERROR);
    let layout = H3Error::Frame(H3FrameFault::Layout { kind: GOAWAY });
    for payload in [&[][..], &[0x40], &[0, 0]] {
        refused("layout", &on_control(&[frame(GOAWAY, payload)]), layout, H3ErrorCode::FRAME_ERROR);
    }
}

#[test]
fn disallowed_h3_server_streams_are_refused() {
    let creation = H3ErrorCode::STREAM_CREATION_ERROR;
    let bidirectional = H3Error::Stream(H3IllegalStreamOpenOrClose::ServerBidirectional);
    refused("a bidirectional stream", &[(1, vec![0], false)], bidirectional, creation);
    let duplicate = H3Error::Stream(H3IllegalStreamOpenOrClose::Duplicate);
    for of in [0, 2, 3] {
        let pieces = [(CONTROL, vec![of], false), (15, vec![of], false)];
        refused("a second one", &pieces, duplicate, creation);
        let closed = H3Error::Stream(H3IllegalStreamOpenOrClose::ClosedCritical);
        let code = H3ErrorCode::CLOSED_CRITICAL_STREAM;
        refused("closed", &[(CONTROL, vec![of], true)], closed, code);
        let mut conn = asked(H3Config::default(), &get(), 1);
        feed(&mut conn, &[(CONTROL, vec![of], false)], 9);
        assert_eq!(conn.on_stream_reset(MonotonicTimestamp(0), CONTROL, H3ErrorCode::NO_ERROR), Err(closed));
        assert_eq!(conn.close_reason(), Some(CloseReason::Broken));
    }
    for stream in [H3SendStream::Control, H3SendStream::QpackEncoder, H3SendStream::QpackDecoder] {
        let mut conn = asked(H3Config::default(), &get(), 1);
        let stopped = conn.on_stop_sending(stream, H3ErrorCode::NO_ERROR);
        assert_eq!(stopped, Err(H3Error::Stream(H3IllegalStreamOpenOrClose::ClosedCritical)));
    }
}

#[test]
fn h3_streams_of_unknown_type_are_ignored() {
    let mut conn = asked(H3Config::default(), &get(), 1);
    let grease = [varint(0x21 + 0x1f * 7), b"anything".to_vec()].concat();
    let pieces = [(15, grease, false), (15, vec![0; 50], false), (15, vec![], true), (19, vec![], true)];
    assert!(feed(&mut conn, &pieces, 1).is_empty());
    assert_eq!(commands(&mut conn), [stop_sending(15, H3ErrorCode::STREAM_CREATION_ERROR)]);
    // Closed or reset before its type.
    assert!(feed(&mut conn, &[(23, vec![0x40], true)], 1).is_empty());
    assert_eq!(conn.on_stream_reset(MonotonicTimestamp(0), 27, H3ErrorCode::NO_ERROR), Ok(()));
    assert_eq!(answer(&mut conn, 0, &[headers(&OK)], true).last(), Some(&complete(0)));
}

#[test]
fn useless_h3_data_end_connection_at_their_limits() {
    let flood = |kind, limit| H3Error::Flood { kind, limit };
    let load = H3ErrorCode::EXCESSIVE_LOAD;
    let many = |frame: Vec<u8>, count: usize| vec![frame; count];
    let unknown = flood(H3FloodKind::UnknownFrame, 1_000);
    refused("unknown", &on_control(&many(frame(0x21, b"x"), 1_001)), unknown, load);
    refused("unknown", &on_request(&many(frame(0x21, b""), 1_001)), unknown, load);
    // The head allows one more.
    let empty = [vec![headers(&OK)], many(data(b""), 1_002)].concat();
    refused("empty DATA", &on_request(&empty), flood(H3FloodKind::EmptyData, 1_000), load);
    refused("GOAWAY", &on_control(&many(frame(GOAWAY, &[40]), 17)), flood(H3FloodKind::GoAway, 16), load);
    let streams: Vec<Piece> = (0..101).map(|number| (15 + 4 * number, vec![0x21], true)).collect();
    let streams = [vec![(0, vec![1], false)], streams].concat();
    refused("streams", &streams, flood(H3FloodKind::UnknownStream, 100), load);
    let empty: Vec<Piece> = (0..101).map(|number| (15 + 4 * number, vec![], true)).collect();
    let empty = [vec![(0, vec![1], false)], empty].concat();
    refused("empty streams", &empty, flood(H3FloodKind::UnknownStream, 100), load);
    let cancellations = [vec![3], vec![0x44; 1_001]].concat();
    let cancelled = flood(H3FloodKind::StreamCancellation, 1_000);
    refused("cancellations", &[(DECODER, cancellations, false)], cancelled, load);
    let header = [varint(0x21), varint(1_001 * 16_384)].concat();
    refused("a huge unknown frame", &on_request(&[header]), flood(H3FloodKind::UnknownFrame, 1_000), load);
}

#[test]
fn long_h3_frames_of_unknown_type_are_skipped() {
    let mut conn = asked(H3Config::default(), &get(), 1);
    let long = frame(0x21, &[0; 100_000]);
    let seen = answer(&mut conn, 0, &[long.clone(), headers(&OK), long, data(b"x")], true);
    assert!(seen.last() == Some(&complete(0)), "{seen:?}");
}

#[test]
fn h3_interim_responses_above_limit_reset_the_stream() {
    let mut conn = asked(H3Config::default(), &get(), 2);
    let seen = answer(&mut conn, 0, &vec![headers(&[(":status", "102")]); 65], false);
    assert_eq!(seen.len(), 65);
    let error = H3Error::Response(ResponseError::TooManyInterim { limit: 64 });
    assert_eq!(seen.last(), Some(&violation(0, error)));
    assert_eq!(error.code(), H3ErrorCode::EXCESSIVE_LOAD);
}

#[test]
fn oversized_h3_sections_reset_only_their_stream() {
    let limits = ResponseLimits {
        head_bytes: 500,
        head_fields: 3,
        trailer_bytes: 100,
        trailer_fields: 2,
        ..ResponseLimits::default()
    };
    let response = |error| H3Error::Response(error);
    let field = ("a", "b");
    let long = "v".repeat(470);
    let cases = [
        (vec![headers(&[OK[0], ("x", &long)])], response(ResponseError::HeadTooLarge { limit: 500 })),
        // Before any of it is buffered.
        (vec![[varint(HEADERS), varint(1 << 40)].concat()], response(ResponseError::HeadTooLarge { limit: 500 })),
        (vec![headers(&[OK[0], field, field, field, field])], response(ResponseError::TooManyFields { limit: 3 })),
        (vec![headers(&OK), headers(&[("x", &long[..80])])], response(ResponseError::TrailersTooLarge { limit: 100 })),
        (vec![headers(&OK), headers(&[field, field, field])], response(ResponseError::TrailersTooLarge { limit: 100 })),
    ];
    for (frames, error) in cases {
        let mut conn = asked(H3Config { limits, ..H3Config::default() }, &get(), 2);
        let seen = answer(&mut conn, 0, &frames, false);
        assert_eq!(seen.last(), Some(&violation(0, error)));
        assert_eq!(commands(&mut conn), [stop_sending(0, H3ErrorCode::EXCESSIVE_LOAD)]);
        assert_eq!(answer(&mut conn, 4, &[headers(&OK)], true).last(), Some(&complete(4)));
    }
    // Interim heads count together.
    let mut conn = asked(H3Config { limits, ..H3Config::default() }, &get(), 1);
    let interim = headers(&[(":status", "103"), ("x", &long[..200])]);
    let seen = answer(&mut conn, 0, &[interim.clone(), interim], false);
    assert_eq!(seen.last(), Some(&violation(0, response(ResponseError::HeadTooLarge { limit: 500 }))));
}

#[test]
fn malformed_h3_fields_reset_only_their_stream() {
    let cases: &[(&[(&str, &str)], FieldFault)] = &[
        (&[OK[0], ("", "x")], FieldFault::Name),
        (&[OK[0], ("a b", "x")], FieldFault::Name),
        (&[OK[0], ("Server", "x")], FieldFault::Uppercase),
        (&[OK[0], ("a", "b\r\nc: d")], FieldFault::Value),
        (&[OK[0], ("a", "\0")], FieldFault::Value),
        (&[OK[0], ("connection", "close")], FieldFault::ConnectionSpecific),
        (&[OK[0], ("transfer-encoding", "chunked")], FieldFault::ConnectionSpecific),
        (&[OK[0], (":path", "/")], FieldFault::UnknownPseudo),
        (&[OK[0], OK[0]], FieldFault::RepeatedPseudo),
        (&[("a", "b"), OK[0]], FieldFault::LatePseudo),
        (&[("a", "b")], FieldFault::MissingStatus),
        (&[(":status", "20")], FieldFault::Status),
        (&[(":status", "101")], FieldFault::Status),
    ];
    for &(fields, fault) in cases {
        let mut conn = asked(H3Config::default(), &get(), 2);
        let seen = answer(&mut conn, 0, &[headers(fields)], false);
        assert_eq!(seen, [violation(0, H3Error::Field(fault))]);
        assert_eq!(commands(&mut conn), [stop_sending(0, H3ErrorCode::MESSAGE_ERROR)]);
        assert_eq!(answer(&mut conn, 4, &[headers(&OK)], true).last(), Some(&complete(4)));
    }
    let mut conn = asked(H3Config::default(), &get(), 1);
    let seen = answer(&mut conn, 0, &[headers(&OK), headers(&OK)], true);
    assert_eq!(seen.last(), Some(&violation(0, H3Error::Field(FieldFault::PseudoInTrailers))));
}

#[test]
fn invalid_content_length_resets_only_its_stream() {
    for (values, fault) in [
        (vec!["x"], ContentLengthFault::Malformed),
        (vec!["1", "2"], ContentLengthFault::Conflicting),
        (vec!["99999999999999999999"], ContentLengthFault::TooLarge),
    ] {
        let mut conn = asked(H3Config::default(), &get(), 1);
        let fields: Vec<(&str, &str)> =
            [OK[0]].into_iter().chain(values.into_iter().map(|value| ("content-length", value))).collect();
        let error = H3Error::Response(ResponseError::ContentLength(fault));
        assert_eq!(answer(&mut conn, 0, &[headers(&fields)], false), [violation(0, error)]);
        assert_eq!(error.code(), H3ErrorCode::MESSAGE_ERROR);
    }
}

#[test]
fn invalid_qpack_data_end_the_connection() {
    let section_fault = |fault| H3Error::Qpack(QpackError::Section(fault));
    let failed = H3ErrorCode::QPACK_DECOMPRESSION_FAILED;
    refused("empty", &on_request(&[frame(HEADERS, &[])]), section_fault(QpackFault::Truncated), failed);
    let index = section_fault(QpackFault::Index { index: 0 });
    refused("an entry", &on_request(&[frame(HEADERS, &[0, 0, 0x80])]), index, failed);
    let cut = section(&OK);
    let cut = frame(HEADERS, &cut[..cut.len() - 1]);
    refused("cut", &on_request(&[cut]), section_fault(QpackFault::Truncated), failed);
    let capacity = H3Error::Qpack(QpackError::EncoderStream(QpackFault::Capacity { size: 4_097, limit: 4_096 }));
    let pieces = [(ENCODER, vec![2, 0x3f, 0xe2, 0x1f], false)];
    refused("a large table", &pieces, capacity, H3ErrorCode::QPACK_ENCODER_STREAM_ERROR);
    let increment = H3Error::Qpack(QpackError::DecoderStream(QpackFault::Increment { increment: 1 }));
    refused("an increment", &[(DECODER, vec![3, 1], false)], increment, H3ErrorCode::QPACK_DECODER_STREAM_ERROR);
}

#[test]
fn answered_but_unsent_uploads_count_as_open_requests() {
    let request = RequestHead { method: "POST", authority: "h", body: BodyLength::Known(1_000), ..get() };
    let mut conn = H3Machine::new(H3Config { max_streams: 3, ..H3Config::default() });
    for number in 0..3 {
        let id = conn.enqueue(MonotonicTimestamp(0), 4 * number, &request).expect("a valid request");
        conn.block_output(H3SendStream::Request(id));
        assert_eq!(conn.send_body(id, &[0; 1_000]), Ok(1_000));
        assert_eq!(answer(&mut conn, id.0, &[headers(&OK)], true).last(), Some(&complete(id.0)));
    }
    assert!(conn.unanswered().next().is_none() && !conn.can_enqueue(), "the peer reads none of them");
    assert_eq!(conn.on_stop_sending(H3SendStream::Request(RequestId(4)), H3ErrorCode::NO_ERROR), Ok(()));
    assert!(conn.can_enqueue());
}
