//! Tests with hostile or broken HTTP/2 peers, by class of fault. Each must cause exactly the given
//! error, whether its bytes arrive at once or one by one.

use super::peer::{
    CONTINUATION, DATA, END, GOAWAY, H2RecordedEvent, HEADERS, PADDED, PING, PRIORITY, PUSH_PROMISE, RST_STREAM,
    SETTINGS, WHOLE, WINDOW_UPDATE, answer, asked, block, body, data, feed, frame, frames, get, go_away, headers,
    padded, rst, settings, settings_ack, window_update, with,
};
use haul_proto::ResponseError;
use haul_proto::ResponseLimits;
use haul_proto::h2::{
    BodyLength, CloseReason, ContentLengthFault, ErrorCode, FieldFault, FloodKind, FrameFault, H2Config, H2Error,
    H2Machine, RequestId, ResetReason,
};
use haul_proto::hpack;
use haul_proto::time::MonotonicTimestamp;

const OK: &[(&str, &str)] = &[(":status", "200")];

/// Asserts that the connection ends with `error` when it receives these bytes.
fn refused_raw(class: &str, wire: &[u8], error: H2Error) {
    let cuts: Vec<usize> = (1..wire.len()).collect();
    for cuts in [&[][..], &cuts] {
        let mut conn = asked(H2Config::default(), &get(), 3);
        let seen = feed(&mut conn, wire, cuts);
        assert_eq!(seen.last(), Some(&H2RecordedEvent::Error(error)), "{class}");
        assert_eq!(
            conn.step(MonotonicTimestamp(0), &mut [0; 9]),
            Err(H2Error::Response(ResponseError::Closed(CloseReason::Broken))),
            "{class}"
        );
        assert!(!conn.can_enqueue() && !conn.is_idle(), "{class}: never reused");
        let (kind, _, _, payload) = frames(conn.output()).pop().expect("the peer is told");
        assert_eq!((kind, &payload[4..]), (GOAWAY, &error.code().0.to_be_bytes()[..]), "{class}");
        assert!(error.to_string().starts_with("server "), "{class}: says who is to blame: {error}");
    }
}

fn refused(class: &str, wire: &[Vec<u8>], error: H2Error) {
    refused_raw(class, &[settings(&[]), wire.concat()].concat(), error);
}

/// Asserts that a response with these frames ends with `error`, and that the connection continues.
fn reset_for(class: &str, method: &'static str, wire: &[Vec<u8>], error: H2Error) {
    let wire = [settings(&[]), wire.concat(), headers(3, END, OK)].concat();
    let cuts: Vec<usize> = (1..wire.len()).collect();
    for cuts in [&[][..], &cuts] {
        let mut conn = asked(H2Config::default(), &with(method, BodyLength::None), 2);
        let seen = feed(&mut conn, &wire, cuts);
        let expected = H2RecordedEvent::Reset(1, ResetReason::Violation(error), false);
        assert!(seen.contains(&expected), "{class}: {seen:?}");
        assert!(!seen.iter().any(|seen| matches!(seen, H2RecordedEvent::Complete(1, _))), "{class}: no false success");
        assert_eq!(seen.last(), Some(&H2RecordedEvent::Complete(3, None)), "{class}: the next one is well");
        let told = (RST_STREAM, 0, 1, error.code().0.to_be_bytes().to_vec());
        assert!(frames(conn.output()).contains(&told), "{class}: the peer is told");
        assert!(error.to_string().starts_with("server "), "{class}: says who is to blame: {error}");
    }
}

#[test]
fn other_protocols_are_refused_as_http2() {
    refused_raw("HTTP/1", b"HTTP/1.1 200 OK\r\n\r\n", H2Error::NotHttp2 { http1: true });
    refused_raw("another protocol", b"220 mail.example.org ESMTP", H2Error::NotHttp2 { http1: false });
    refused_raw("no preface", &headers(1, END, OK), H2Error::NotHttp2 { http1: false });
    refused_raw("an acknowledgement first", &settings_ack(), H2Error::NotHttp2 { http1: false });
}

#[test]
fn h2_frame_of_the_largest_size_is_accepted() {
    let config = H2Config { max_frame_size: 20_000, ..H2Config::default() };
    let last = |length: usize| {
        let frames = [headers(1, 0, OK), frame(DATA, END, 1, &vec![b'x'; length])];
        answer(&mut asked(config, &get(), 1), &frames).pop()
    };
    assert_eq!(last(20_000), Some(H2RecordedEvent::Complete(1, None)));
    let error = H2Error::FrameSize { kind: DATA, length: 20_001 };
    assert_eq!(last(20_001), Some(H2RecordedEvent::Error(error)));
}

#[test]
fn invalid_h2_frame_sizes_are_refused() {
    let size = |kind, length| H2Error::FrameSize { kind, length };
    refused("SETTINGS of 5", &[frame(SETTINGS, 0, 0, &[0; 5])], size(SETTINGS, 5));
    refused("a long ack", &[frame(SETTINGS, 1, 0, &[0; 6])], size(SETTINGS, 6));
    refused("PING of 7", &[frame(PING, 0, 0, &[0; 7])], size(PING, 7));
    refused("RST_STREAM of 3", &[frame(RST_STREAM, 0, 1, &[0; 3])], size(RST_STREAM, 3));
    refused("WINDOW_UPDATE of 5", &[frame(WINDOW_UPDATE, 0, 0, &[0; 5])], size(WINDOW_UPDATE, 5));
    refused("PRIORITY of 4", &[frame(PRIORITY, 0, 1, &[0; 4])], size(PRIORITY, 4));
    refused("GOAWAY of 7", &[frame(GOAWAY, 0, 0, &[0; 7])], size(GOAWAY, 7));
    let large = [&[1, 0, 1, DATA, 0, 0, 0, 0, 1][..]].concat();
    refused("DATA above the size", &[large], size(DATA, 65_537));
    refused("unknown above the size", &[vec![255, 255, 255, 99, 0, 0, 0, 0, 1]], size(99, 0xff_ffff));
}

#[test]
fn misplaced_h2_frames_are_refused() {
    let fault = H2Error::Frame;
    for kind in [DATA, HEADERS] {
        refused("stream 0", &[frame(kind, 0, 0, &[0; 4])], fault(FrameFault::StreamZero));
    }
    refused("stream 0", &[rst(0, ErrorCode::CANCEL)], fault(FrameFault::StreamZero));
    refused("SETTINGS on a stream", &[frame(SETTINGS, 0, 1, &[])], fault(FrameFault::NotStreamZero));
    refused("PING on a stream", &[frame(PING, 0, 1, &[0; 8])], fault(FrameFault::NotStreamZero));
    refused("GOAWAY on a stream", &[frame(GOAWAY, 0, 1, &[0; 8])], fault(FrameFault::NotStreamZero));
    for id in [2, 7, 0x7fff_ffff] {
        for wire in [data(id, 0, b"x"), headers(id, 0, OK), rst(id, ErrorCode::CANCEL), window_update(id, 1)] {
            refused("an idle stream", &[wire], fault(FrameFault::IdleStream));
        }
    }
    let done = headers(1, END, OK);
    refused("DATA behind the end", &[done.clone(), data(1, 0, b"x")], fault(FrameFault::ClosedStream));
    refused("no DATA behind the end", &[done.clone(), data(1, END, b"")], fault(FrameFault::ClosedStream));
    refused("HEADERS behind the end", &[done.clone(), done], fault(FrameFault::ClosedStream));
    let gone = rst(1, ErrorCode::CANCEL);
    refused("DATA behind the reset", &[gone, data(1, 0, b"x")], fault(FrameFault::ClosedStream));
    let begun = frame(HEADERS, 0, 1, &[0x88]);
    for other in [data(1, 0, b"x"), headers(3, 0, OK), frame(PING, 0, 0, &[0; 8]), frame(99, 0, 0, &[])] {
        refused("within a block", &[begun.clone(), other], fault(FrameFault::Interleaved));
    }
    refused("another's block", &[begun, frame(CONTINUATION, 4, 3, &[])], fault(FrameFault::Interleaved));
    refused("continuation of nothing", &[frame(CONTINUATION, 4, 1, &[])], fault(FrameFault::StrayContinuation));
    refused("push", &[frame(PUSH_PROMISE, 4, 1, &[0, 0, 0, 2, 0x88])], H2Error::Push);
}

#[test]
fn excessive_h2_padding_is_refused() {
    let fault = H2Error::Frame(FrameFault::Padding);
    let head = headers(1, 0, OK);
    refused("DATA of padding", &[head.clone(), frame(DATA, PADDED, 1, &[3, 0, 0])], fault);
    refused("DATA without the length", &[head, frame(DATA, PADDED, 1, &[])], fault);
    refused("HEADERS of padding", &[frame(HEADERS, WHOLE | PADDED, 1, &[2, 0x88])], fault);
    refused("HEADERS without the length", &[frame(HEADERS, WHOLE | PADDED, 1, &[])], fault);
    refused("HEADERS without the priority", &[frame(HEADERS, WHOLE | 0x20, 1, &[0; 4])], fault);
}

#[test]
fn flow_control_window_violations_are_refused() {
    let head = headers(1, 0, OK);
    let config = H2Config { connection_window: 1, stream_window: 20_000, ..H2Config::default() };
    for (class, count, stream) in [("a stream's", 2, 20_000), ("the connection's", 4, 65_535)] {
        let config = H2Config { stream_window: stream, ..config };
        let mut conn = asked(config, &get(), 1);
        answer(&mut conn, std::slice::from_ref(&head));
        let mut wire = vec![data(1, 0, &[0; 16_384]); count].concat();
        let error = loop {
            match conn.step(MonotonicTimestamp(0), &mut wire) {
                Ok(step) => drop(wire.drain(..step.consumed)),
                Err(error) => break error,
            }
            assert!(!wire.is_empty(), "{class}: too much was taken");
        };
        assert_eq!(error, H2Error::FlowControl, "{class}");
    }
    refused("zero", &[window_update(0, 0)], H2Error::ZeroIncrement);
    refused("overflow", &[window_update(0, 0x7fff_ffff)], H2Error::WindowOverflow);
    let raised = [window_update(1, 0x7fff_0000), settings(&[(4, 0x7fff_ffff)])];
    refused("overflow by SETTINGS", &raised, H2Error::WindowOverflow);
    reset_for("zero for a stream", "GET", &[window_update(1, 0)], H2Error::ZeroIncrement);
    reset_for("overflow of a stream", "GET", &[window_update(1, 0x7fff_ffff)], H2Error::WindowOverflow);
}

#[test]
fn h2_settings_out_of_range_are_refused() {
    for (id, value) in [(2, 1), (2, 9), (4, 0x8000_0000), (5, 16_383), (5, 0x100_0000)] {
        refused("a setting", &[settings(&[(id, value)])], H2Error::Setting { id, value });
    }
}

/// Sends one useless frame more than each limit of `FloodLimits` allows, which ends the connection.
#[test]
fn useless_h2_frames_end_connection_at_their_limits() {
    let many = |frame: Vec<u8>, count: usize| vec![frame; count];
    let flood = |kind, limit| H2Error::Flood { kind, limit };
    let head = headers(1, 0, OK);
    refused("PING", &many(frame(PING, 0, 0, &[0; 8]), 1_001), flood(FloodKind::Ping, 1_000));
    refused("PING answers", &many(frame(PING, 1, 0, &[0; 8]), 1_001), flood(FloodKind::Ping, 1_000));
    refused("answers to no PING", &many(frame(PING, 1, 0, b"haulping"), 1_001), flood(FloodKind::Ping, 1_000));
    refused("SETTINGS", &many(settings(&[]), 100), flood(FloodKind::Settings, 100));
    refused("SETTINGS answers", &many(settings_ack(), 100), flood(FloodKind::Settings, 100));
    refused("PRIORITY", &many(frame(PRIORITY, 0, 1, &[0; 5]), 1_001), flood(FloodKind::Priority, 1_000));
    refused("unknown", &many(frame(99, 0, 0, &[]), 1_001), flood(FloodKind::Unknown, 1_000));
    refused("WINDOW_UPDATE", &many(window_update(0, 1), 10_001), flood(FloodKind::WindowUpdate, 10_000));
    refused("GOAWAY", &many(go_away(3, ErrorCode::NO_ERROR), 17), flood(FloodKind::GoAway, 16));
    // The head was of use, and the first reset ends a request.
    let empty = [vec![head.clone()], many(data(1, 0, b""), 1_002)].concat();
    refused("empty DATA", &empty, flood(FloodKind::EmptyData, 1_000));
    let empty = [vec![head], many(padded(1, 0, b"", 9), 1_002)].concat();
    refused("padding alone", &empty, flood(FloodKind::EmptyData, 1_000));
    refused("RST_STREAM", &many(rst(1, ErrorCode::CANCEL), 1_002), flood(FloodKind::Reset, 1_000));
    let endless = [vec![frame(HEADERS, 0, 1, &[])], many(frame(CONTINUATION, 0, 1, &[]), 65)].concat();
    refused("CONTINUATION", &endless, flood(FloodKind::Continuation, 64));
}

#[test]
fn h2_acknowledgements_the_peer_does_not_read_are_bounded() {
    let mut conn = asked(H2Config::default(), &get(), 1);
    let mut wire = [settings(&[]), vec![frame(PING, 0, 0, &[0; 8]); 900].concat()].concat();
    let mut now = MonotonicTimestamp(0);
    let error = loop {
        now = MonotonicTimestamp(now.0 + 11_000_000_000);
        let mut at = 0;
        let result = loop {
            match conn.step(now, &mut wire[at..]) {
                Ok(step) if step.consumed == 0 => break Ok(()),
                Ok(step) => at += step.consumed,
                Err(error) => break Err(error),
            }
        };
        if let Err(error) = result {
            break error;
        }
        wire = vec![frame(PING, 0, 0, &[0; 8]); 900].concat();
    };
    assert_eq!(error, H2Error::Flood { kind: FloodKind::Unread, limit: 2_000 });
    assert!(conn.output().len() < 40_000);
}

#[test]
fn sent_h2_acknowledgements_during_an_upload_are_not_counted() {
    let mut conn = asked(H2Config::default(), &with("POST", BodyLength::Chunked), 1);
    feed(&mut conn, &[settings(&[]), window_update(0, 1 << 30), window_update(1, 1 << 30)].concat(), &[]);
    let ping = frame(PING, 0, 0, &[0; 8]);
    let mut now = MonotonicTimestamp(0);
    for _ in 0..3_000 {
        now = MonotonicTimestamp(now.0 + 1_000_000_000);
        let sent = conn.output().len();
        let step = conn.step(now, &mut ping.clone()).expect("the peer reads its acknowledgements");
        assert_eq!(step.consumed, ping.len());
        // The body keeps the output non-empty, but everything up to the acknowledgement is sent.
        conn.send_body(RequestId(1), b"x").expect("the window is open");
        conn.advance_output(sent + ping.len());
        assert!(!conn.output().is_empty());
    }
}

#[test]
fn data_after_reset_stays_within_the_old_window() {
    let config = H2Config { stream_window: 20_000, ..H2Config::default() };
    let mut conn = asked(config, &get(), 1);
    answer(&mut conn, &[headers(1, 0, OK)]);
    conn.reset(RequestId(1), ErrorCode::CANCEL);
    assert_eq!(feed(&mut conn, &data(1, 0, &[0; 20_000]), &[]), [], "as much as the window was");
    let fault = H2RecordedEvent::Error(H2Error::Frame(FrameFault::ClosedStream));
    assert_eq!(feed(&mut conn, &data(1, 0, b"x"), &[]), [fault]);
}

#[test]
fn malformed_h2_heads_reset_the_stream() {
    let field = |fault| H2Error::Field(fault);
    let with_ok = |name: &'static str, value: &'static str| headers(1, END, &[(":status", "200"), (name, value)]);
    let cases: &[(&str, &str, FieldFault)] = &[
        ("", "x", FieldFault::Name),
        ("a b", "x", FieldFault::Name),
        ("a:", "x", FieldFault::Name),
        ("a\r\nb", "x", FieldFault::Name),
        ("é", "x", FieldFault::Name),
        ("Server", "x", FieldFault::Uppercase),
        ("x", "a\r\nb: c", FieldFault::Value),
        ("x", "a\nb", FieldFault::Value),
        ("x", "a\0b", FieldFault::Value),
        ("x", "\u{1b}[2J", FieldFault::Value),
        ("connection", "close", FieldFault::ConnectionSpecific),
        ("keep-alive", "x", FieldFault::ConnectionSpecific),
        ("proxy-connection", "x", FieldFault::ConnectionSpecific),
        ("transfer-encoding", "chunked", FieldFault::ConnectionSpecific),
        ("upgrade", "x", FieldFault::ConnectionSpecific),
        (":status", "200", FieldFault::RepeatedPseudo),
        (":path", "/", FieldFault::UnknownPseudo),
        (":", "", FieldFault::UnknownPseudo),
    ];
    for &(name, value, fault) in cases {
        reset_for(name, "GET", &[with_ok(name, value)], field(fault));
    }
    for status in ["", "20", "2000", "099", "20x", "+20", "101"] {
        reset_for("a status", "GET", &[headers(1, END, &[(":status", status)])], field(FieldFault::Status));
    }
    reset_for("no status", "GET", &[headers(1, END, &[("a", "b")])], field(FieldFault::MissingStatus));
    reset_for("nothing", "GET", &[headers(1, END, &[])], field(FieldFault::MissingStatus));
    let late = headers(1, END, &[("a", "b"), (":status", "200")]);
    reset_for("a late status", "GET", &[late], field(FieldFault::LatePseudo));
    let head = headers(1, 0, OK);
    let pseudo = headers(1, END, &[(":status", "200")]);
    reset_for("a status in trailers", "GET", &[head.clone(), pseudo], field(FieldFault::PseudoInTrailers));
    let open = headers(1, 0, &[("a", "b")]);
    reset_for("trailers that go on", "GET", &[head, open], H2Error::Frame(FrameFault::HeadInBody));
    let interim = headers(1, END, &[(":status", "103")]);
    reset_for("an interim end", "GET", &[interim], H2Error::Frame(FrameFault::InterimEnd));
    reset_for("a body first", "GET", &[data(1, 0, b"x")], H2Error::Frame(FrameFault::DataBeforeHead));
}

#[test]
fn content_length_mismatches_reset_the_stream() {
    let says = |length: &'static str, flags| headers(1, flags, &[(":status", "200"), ("content-length", length)]);
    let differ = |expected, got| H2Error::Length { expected, got };
    reset_for("too long", "GET", &[says("5", 0), data(1, 0, b"hel"), data(1, END, b"lo!")], differ(5, 6));
    reset_for("too short", "GET", &[says("5", 0), data(1, 0, b"hel"), data(1, END, b"l")], differ(5, 4));
    reset_for("empty end", "GET", &[says("5", 0), data(1, 0, b"hell"), data(1, END, b"")], differ(5, 4));
    reset_for("at once", "GET", &[says("5", END)], differ(5, 0));
    let trailers = headers(1, END, &[("a", "b")]);
    reset_for("by trailers", "GET", &[says("5", 0), data(1, 0, b"hell"), trailers], differ(5, 4));
    for length in ["", "-1", "+5", "5x", "0x5", "5,"] {
        let error = H2Error::Response(ResponseError::ContentLength(ContentLengthFault::Malformed));
        reset_for("malformed", "GET", &[says(length, 0)], error);
    }
    reset_for(
        "too large",
        "GET",
        &[says("18446744073709551616", 0)],
        H2Error::Response(ResponseError::ContentLength(ContentLengthFault::TooLarge)),
    );
    let two = headers(1, 0, &[(":status", "200"), ("content-length", "5"), ("content-length", "6")]);
    reset_for("two", "GET", &[two], H2Error::Response(ResponseError::ContentLength(ContentLengthFault::Conflicting)));
    let empty = headers(1, 0, &[(":status", "204")]);
    reset_for("a body with 204", "GET", &[empty, data(1, 0, b"x")], H2Error::UnexpectedBody);
}

#[test]
fn truncated_h2_body_is_delivered_before_its_error() {
    let head = headers(1, 0, &[(":status", "200"), ("content-length", "5")]);
    let wire = [settings(&[]), head, data(1, END, b"hell")].concat();
    let mut conn = asked(H2Config::default(), &get(), 1);
    let seen = feed(&mut conn, &wire, &[]);
    let short = ResetReason::Violation(H2Error::Length { expected: 5, got: 4 });
    assert!(seen.ends_with(&[body(1, b"hell"), H2RecordedEvent::Reset(1, short, false)]), "{seen:?}");
}

#[test]
fn h2_heads_and_trailers_above_limits_are_refused() {
    let long = "v".repeat(60_000);
    let fields: Vec<(&str, &str)> = [(":status", "200")].into_iter().chain(vec![("x", &*long); 6]).collect();
    let whole = block(&fields);
    let parts: Vec<&[u8]> = whole.chunks(60_000).collect();
    let mut wire = vec![frame(HEADERS, 0, 1, parts[0])];
    wire.extend(parts[1..].iter().map(|part| frame(CONTINUATION, 0, 1, part)));
    refused("a block above 300 KiB", &wire, H2Error::Response(ResponseError::HeadTooLarge { limit: 300 * 1024 }));

    // Small on the wire: an entry of 4,000 bytes, then its index again and again.
    let mut bomb = vec![0x88, 0x40, 1, b'x', 0x7f, 0xa1, 0x1e];
    bomb.extend_from_slice(&[b'v'; 4_000]);
    let small = [&bomb[..], &[0xbe; 1_000]].concat();
    let error = H2Error::Response(ResponseError::HeadTooLarge { limit: 300 * 1024 });
    reset_for("a bomb", "GET", &[frame(HEADERS, WHOLE | END, 1, &small)], error);
    bomb.extend_from_slice(&[0xbe; 50_000]);
    refused("200 MB in a block", &[frame(HEADERS, WHOLE | END, 1, &bomb)], error);

    let mut fields = vec![0x88];
    fields.extend(block(&[("a", "")]).repeat(5_001));
    let many = frame(HEADERS, WHOLE | END, 1, &fields);
    reset_for("5,001 fields", "GET", &[many], H2Error::Response(ResponseError::TooManyFields { limit: 5_000 }));

    let trailers = block(&[("a", "")]).repeat(1_001);
    let many = [headers(1, 0, OK), frame(HEADERS, WHOLE | END, 1, &trailers)];
    reset_for("1,001 trailers", "GET", &many, H2Error::Response(ResponseError::TooManyTrailers { limit: 1_000 }));
    let long = [headers(1, 0, OK), headers(1, END, &[("a", &"v".repeat(65_400)), ("b", &"v".repeat(100))])];
    let large = H2Config { max_frame_size: 1 << 20, ..H2Config::default() };
    let seen = answer(&mut asked(large, &get(), 1), &long);
    let error = H2Error::Response(ResponseError::TrailersTooLarge { limit: 65_536 });
    assert_eq!(seen.last(), Some(&H2RecordedEvent::Reset(1, ResetReason::Violation(error), false)));
}

/// Sends only the frame header of HEADERS. A header block that is too large is refused at once,
/// before any of it is buffered.
#[test]
fn large_block_is_refused_at_its_frame_header() {
    let limits = ResponseLimits { head_bytes: 1_000, trailer_bytes: 500, ..ResponseLimits::default() };
    let last = |length: usize| {
        let wire = [settings(&[]), frame(HEADERS, WHOLE | END, 1, &vec![0; length])[..9].to_vec()].concat();
        feed(&mut asked(H2Config { limits, ..H2Config::default() }, &get(), 1), &wire, &[]).pop()
    };
    assert_eq!(last(1_000), Some(H2RecordedEvent::Settings(100)));
    let error = H2Error::Response(ResponseError::HeadTooLarge { limit: 1_000 });
    assert_eq!(last(1_001), Some(H2RecordedEvent::Error(error)));
}

#[test]
fn h2_interim_heads_above_the_limit_are_refused() {
    let wire = vec![headers(1, 0, &[(":status", "102")]); 65];
    reset_for("65 interim heads", "GET", &wire, H2Error::Response(ResponseError::TooManyInterim { limit: 64 }));
    let limits = ResponseLimits { head_bytes: 1_000, interim: 1_000, ..ResponseLimits::default() };
    let mut conn = asked(H2Config { limits, ..H2Config::default() }, &get(), 1);
    let seen = answer(&mut conn, &vec![headers(1, 0, &[(":status", "102"), ("x", &"v".repeat(57))]); 9]);
    let error = H2Error::Response(ResponseError::HeadTooLarge { limit: 1_000 });
    assert_eq!(seen.last(), Some(&H2RecordedEvent::Reset(1, ResetReason::Violation(error), false)));
    assert_eq!(seen.len(), 8, "seven of 132 bytes fit");
}

#[test]
fn invalid_hpack_block_ends_the_connection() {
    let block = |bytes: &[u8]| [frame(HEADERS, WHOLE | END, 1, bytes)];
    refused("an index", &block(&[0xbe]), H2Error::Hpack(hpack::HpackError::Index { index: 62 }));
    refused("cut", &block(&[0x88, 0x40, 9, b'x']), H2Error::Hpack(hpack::HpackError::Truncated));
    let error = hpack::HpackError::TableSize { size: 4_097, limit: 4_096 };
    refused("a table", &block(&[0x3f, 0xe2, 0x1f, 0x88]), H2Error::Hpack(error));
}

/// Checks that the HPACK table stays equal to the peer's if a head is refused or its stream is
/// closed.
#[test]
fn hpack_table_stays_correct_after_refused_heads() {
    let entry = [&[0x40, 1, b'x', 1, b'y'][..]].concat();
    let bad = [&[0x88][..], &block(&[("UPPER", "case")]), &entry].concat();
    let late = [&[0x88][..], &[0x40, 1, b'z', 1, b'w']].concat();
    let mut conn = asked(H2Config::default(), &get(), 3);
    conn.reset(RequestId(3), ErrorCode::CANCEL);
    let seen = answer(
        &mut conn,
        &[
            frame(HEADERS, WHOLE | END, 1, &bad),
            frame(HEADERS, WHOLE | END, 3, &late),
            frame(HEADERS, WHOLE | END, 5, &[0x88, 0xbe, 0xbf]),
        ],
    );
    let Some(H2RecordedEvent::Head(5, text, _)) = seen.get(1) else { panic!("{seen:?}") };
    assert_eq!(text, b"HTTP/2 200 \r\nz: w\r\nx: y\r\n\r\n");
}

#[test]
fn h2_input_just_within_the_limits_is_accepted() {
    let mut conn: H2Machine = asked(H2Config::default(), &get(), 3);
    let seen = answer(
        &mut conn,
        &[
            vec![frame(PING, 0, 0, &[0; 8]); 1_000].concat(),
            vec![headers(1, 0, &[(":status", "102")]); 64].concat(),
            frame(HEADERS, 0, 1, &[0x88]),
            vec![frame(CONTINUATION, 0, 1, &[]); 63].concat(),
            frame(CONTINUATION, WHOLE, 1, &[]),
            frame(DATA, PADDED | END, 1, &[2, 0, 0]),
            frame(HEADERS, WHOLE | END, 3, &[&[0x88][..], &block(&[("a", "")]).repeat(5_000)].concat()),
        ],
    );
    assert_eq!(seen.iter().filter(|seen| matches!(seen, H2RecordedEvent::Complete(..))).count(), 2);
}

#[test]
fn largest_h2_windows_and_frame_sizes_are_accepted() {
    let mut conn = asked(H2Config::default(), &with("POST", BodyLength::Chunked), 1);
    let limits = settings(&[(4, 0x7fff_ffff), (5, 16_384), (5, 0xff_ffff)]);
    let widest = 0x7fff_ffff - 65_535;
    let seen = answer(&mut conn, &[window_update(0, widest), limits]);
    assert_eq!(seen, [H2RecordedEvent::Settings(100)]);
    assert_eq!(feed(&mut conn, &window_update(0, 1), &[]), [H2RecordedEvent::Error(H2Error::WindowOverflow)]);
    let mut conn = asked(H2Config::default(), &with("POST", BodyLength::Chunked), 1);
    assert_eq!(answer(&mut conn, &[window_update(1, widest)]), []);
    let overflow = H2RecordedEvent::Error(H2Error::WindowOverflow);
    assert_eq!(feed(&mut conn, &settings(&[(4, 65_536)]), &[]), [overflow]);
}

/// A block for a stream that was reset is decoded only for the table, up to 16 times the size of a
/// head.
#[test]
fn unwanted_block_expands_to_a_limit() {
    let limits = ResponseLimits { head_bytes: 200, ..ResponseLimits::default() };
    let seen = |lines: usize| {
        let mut conn = asked(H2Config { limits, ..H2Config::default() }, &get(), 2);
        conn.reset(RequestId(1), ErrorCode::CANCEL);
        // A line of 100 bytes: its entry, then its index again and again.
        let block = [&[0x40, 1, b'x', 97][..], &[b'v'; 97], &vec![0xbe; lines - 1]].concat();
        answer(&mut conn, &[frame(HEADERS, WHOLE | END, 1, &block), headers(3, END, OK)]).pop()
    };
    assert_eq!(seen(32), Some(H2RecordedEvent::Complete(3, None)));
    let error = H2Error::Response(ResponseError::HeadTooLarge { limit: 200 });
    assert_eq!(seen(33), Some(H2RecordedEvent::Error(error)));
}

#[test]
fn peer_may_confirm_that_push_is_off() {
    let mut conn = asked(H2Config::default(), &get(), 1);
    assert_eq!(answer(&mut conn, &[settings(&[(2, 0)])]), [H2RecordedEvent::Settings(100)]);
}
