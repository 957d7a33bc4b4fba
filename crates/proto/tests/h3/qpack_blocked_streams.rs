//! Tests of responses that wait for the QPACK table, and of the limits on their memory.

use super::peer::{
    ENCODER, H3RecordedEvent, HEADERS, answer, asked, body, capacity, commands, complete, data, feed, frame, get, head,
    headers, insertion, sent, stop_sending, violation, with,
};
use haul_proto::h3::{
    BodyLength, H3Config, H3Error, H3ErrorCode, H3Event, H3FloodKind, H3FloodLimits, H3Machine, H3SendStream,
    RequestId, ResponseBodyFraming,
};
use haul_proto::qpack::{QpackError, QpackFault};
use haul_proto::time::MonotonicTimestamp;

/// Returns a HEADERS frame with `:status: 200` from the static table and the first entry of the
/// dynamic table.
fn dynamic_head() -> Vec<u8> {
    frame(HEADERS, &[2, 0, 0xd9, 0x80])
}

fn table() -> Vec<u8> {
    [vec![2], capacity(220), insertion("x-table", "yes")].concat()
}

fn decoder_output(conn: &mut H3Machine) -> Vec<u8> {
    sent(conn).remove(&H3SendStream::QpackDecoder).unwrap_or_default().0
}

#[test]
fn qpack_insertion_unblocks_waiting_responses() {
    let mut conn = asked(H3Config::default(), &get(), 3);
    let now = MonotonicTimestamp(0);
    let wire = [dynamic_head(), data(b"hello")].concat();
    let step = conn.step(now, 0, &wire, true).expect("valid");
    assert_eq!(step.event, H3Event::Blocked { id: RequestId(0) });
    assert_eq!(step.consumed, dynamic_head().len(), "the rest is the driver's");
    let rest = &wire[step.consumed..];
    let again = conn.step(now, 0, rest, true).expect("valid");
    assert_eq!((again.consumed, again.event), (0, H3Event::Blocked { id: RequestId(0) }));
    // Others go on.
    assert_eq!(answer(&mut conn, 4, &[headers(&[(":status", "204")])], true).last(), Some(&complete(4)));

    let step = conn.step(now, ENCODER, &table(), false).expect("valid");
    assert_eq!(step.event, H3Event::Unblocked { id: RequestId(0) });
    assert_eq!(
        feed(&mut conn, &[(0, rest.to_vec(), true)], 99),
        [head(0, "HTTP/3 200 \nx-table: yes\n\n", ResponseBodyFraming::Chunked), body(0, b"hello"), complete(0)]
    );
    assert_eq!(decoder_output(&mut conn), [1, 0x80], "the insertion, then the section");
    // The entry is there: nobody waits.
    assert_eq!(answer(&mut conn, 8, &[dynamic_head()], true).last(), Some(&complete(8)));
    assert_eq!(decoder_output(&mut conn), [0x88]);
}

#[test]
fn too_many_qpack_blocked_streams_end_the_connection() {
    let config = H3Config { qpack_blocked_streams: 2, ..H3Config::default() };
    let mut conn = asked(config, &get(), 4);
    for id in [0, 4] {
        assert!(answer(&mut conn, id, &[dynamic_head()], false).is_empty());
    }
    // A stream that is reset blocks no more.
    assert!(conn.reset(RequestId(0), H3ErrorCode::REQUEST_CANCELLED));
    assert!(answer(&mut conn, 8, &[dynamic_head()], false).is_empty());
    let error = H3Error::Qpack(QpackError::Section(QpackFault::BlockedStreams { limit: 2 }));
    assert_eq!(answer(&mut conn, 12, &[dynamic_head()], false), [H3RecordedEvent::Error(error)]);
    assert_eq!(error.code(), H3ErrorCode::QPACK_DECOMPRESSION_FAILED);
}

#[test]
fn reset_of_qpack_blocked_stream_sends_cancellation() {
    let mut conn = asked(H3Config::default(), &get(), 1);
    assert!(answer(&mut conn, 0, &[dynamic_head()], true).is_empty());
    conn.on_stream_reset(MonotonicTimestamp(0), 0, H3ErrorCode::INTERNAL_ERROR).expect("no fault");
    assert_eq!(decoder_output(&mut conn), [0x40]);
    assert_eq!(feed(&mut conn, &[(ENCODER, table(), false)], 99).len(), 1, "the reset, and no stream to unblock");
}

#[test]
fn incomplete_h3_heads_share_a_size_limit() {
    let config = H3Config { partial_head_bytes: 1_000, ..H3Config::default() };
    let mut conn = asked(config, &get(), 4);
    let long = headers(&[(":status", "200"), ("x-long", &"v".repeat(600))]);
    let (first, second) = long.split_at(500);
    for id in [0, 4] {
        assert!(answer(&mut conn, id, &[first.to_vec()], false).is_empty());
    }
    let error = H3Error::PartialHeads { limit: 1_000 };
    assert_eq!(answer(&mut conn, 8, &[first.to_vec()], false), [violation(8, error)]);
    assert_eq!(commands(&mut conn), [stop_sending(8, H3ErrorCode::EXCESSIVE_LOAD)]);
    for id in [0, 4] {
        assert_eq!(answer(&mut conn, id, &[second.to_vec()], true).last(), Some(&complete(id)));
    }
    assert!(answer(&mut conn, 12, &[first.to_vec()], false).is_empty(), "there is room again");
}

#[test]
fn reset_streams_leave_room_for_incomplete_heads() {
    let config = H3Config { partial_head_bytes: 1_000, ..H3Config::default() };
    let mut conn = asked(config, &get(), 4);
    let part = headers(&[(":status", "200"), ("x-long", &"v".repeat(600))])[..500].to_vec();
    for id in [0, 4, 8, 12] {
        assert!(answer(&mut conn, id, core::slice::from_ref(&part), false).is_empty(), "{id}");
        assert!(conn.reset(RequestId(id), H3ErrorCode::REQUEST_CANCELLED));
    }
}

#[test]
fn reset_streams_leave_room_for_blocked_heads() {
    let config = H3Config { partial_head_bytes: 10, ..H3Config::default() };
    let mut conn = asked(config, &get(), 4);
    for id in [0, 4, 8, 12] {
        assert!(answer(&mut conn, id, &[dynamic_head()], false).is_empty(), "four bytes wait: {id}");
        assert!(conn.reset(RequestId(id), H3ErrorCode::REQUEST_CANCELLED));
    }
}

#[test]
fn qpack_acknowledgements_the_peer_does_not_read_are_bounded() {
    let config = H3Config { floods: H3FloodLimits { unread: 50, ..H3FloodLimits::default() }, ..H3Config::default() };
    let mut conn = asked(config, &get(), 1);
    conn.block_output(H3SendStream::QpackDecoder);
    let begin = [vec![2], capacity(220)].concat();
    assert!(feed(&mut conn, &[(ENCODER, begin, false)], 99).is_empty());
    let insertions: Vec<_> = (0..99).map(|_| (ENCODER, insertion("a", "b"), false)).collect();
    let error = H3Error::Flood { kind: H3FloodKind::Unread, limit: 50 };
    assert_eq!(feed(&mut conn, &insertions, 99), [H3RecordedEvent::Error(error)]);
    assert_eq!(error.code(), H3ErrorCode::EXCESSIVE_LOAD);
}

#[test]
fn number_of_qpack_table_changes_is_limited() {
    let config =
        H3Config { floods: H3FloodLimits { table_change: 100, ..H3FloodLimits::default() }, ..H3Config::default() };
    let mut conn = asked(config, &get(), 1);
    let wire = [table(), vec![0; 99]].concat();
    let error = H3Error::Flood { kind: H3FloodKind::TableChange, limit: 100 };
    assert_eq!(feed(&mut conn, &[(ENCODER, wire, false)], 99), [H3RecordedEvent::Error(error)]);
}

#[test]
fn expanding_qpack_section_is_stopped_at_the_limit() {
    let mut conn = asked(H3Config::default(), &get(), 2);
    let value = "v".repeat(4_000);
    let wire = [vec![2], capacity(4_096), insertion("x", &value)].concat();
    assert!(feed(&mut conn, &[(ENCODER, wire, false)], usize::MAX).is_empty());
    let bomb = frame(HEADERS, &[vec![2, 0, 0xd9], vec![0x80; 100_000]].concat());
    let seen = answer(&mut conn, 0, &[bomb], true);
    assert!(matches!(seen[..], [H3RecordedEvent::Reset(0, _, false)]), "{seen:?}");
    assert_eq!(commands(&mut conn), [stop_sending(0, H3ErrorCode::EXCESSIVE_LOAD)]);
    assert_eq!(answer(&mut conn, 4, &[dynamic_head()], true).last(), Some(&complete(4)), "the connection goes on");
}

#[test]
fn unblocked_response_to_head_stops_an_open_stream() {
    let stopped = stop_sending(0, H3ErrorCode::REQUEST_CANCELLED);
    for (fin, expected) in [(true, vec![]), (false, vec![stopped])] {
        let mut conn = asked(H3Config::default(), &with("HEAD", BodyLength::None), 1);
        let pieces = [(0, dynamic_head(), fin), (ENCODER, table(), false)];
        assert_eq!(feed(&mut conn, &pieces, 99).last(), Some(&complete(0)));
        assert_eq!(commands(&mut conn), expected, "the stream ends: {fin}");
    }
}
