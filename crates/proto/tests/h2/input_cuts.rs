//! Checks that the events and the output of an HTTP/2 machine do not depend on how the input is
//! cut.

use super::peer::{
    CONTINUATION, END, H2RecordedEvent, HEADERS, PADDED, PING, PRIORITY, WHOLE, asked, block, data, feed, frame, get,
    go_away, headers, padded, rst, settings, settings_ack, window_update,
};
use haul_proto::h2::{ErrorCode, FrameFault, H2Config, H2Error, ResetReason};
use proptest::prelude::*;

fn sessions() -> Vec<Vec<u8>> {
    let ok = [(":status", "200"), ("server", "x")];
    let split = block(&[(":status", "200"), ("content-length", "5"), ("x-long", &"v".repeat(300))]);
    let prioritised = [&[3, 0, 0, 0, 0, 9][..], &block(&ok), &[0; 3]].concat();
    vec![
        [
            settings(&[(3, 10), (4, 70_000), (0xfff, 1)]),
            settings_ack(),
            headers(1, 0, &ok),
            data(1, 0, b"hello "),
            headers(3, 0, &[(":status", "404"), ("content-length", "3")]),
            data(1, 0, b"wonderful "),
            padded(3, END, b"no\n", 7),
            frame(PING, 0, 0, b"12345678"),
            padded(1, 0, b"", 0),
            data(1, 0, b""),
            data(1, END, b"world"),
            headers(5, END, &[(":status", "204")]),
        ]
        .concat(),
        [
            settings(&[]),
            headers(1, 0, &[(":status", "103"), ("link", "</x>")]),
            frame(HEADERS, 0, 1, &split[..3]),
            frame(CONTINUATION, 0, 1, &split[3..200]),
            frame(CONTINUATION, 0, 1, &[]),
            frame(CONTINUATION, WHOLE, 1, &split[200..]),
            frame(0x77, 0x55, 99, b"what nobody knows"),
            frame(PRIORITY, 0, 3, b"\0\0\0\0\x01"),
            data(1, 0, b"hello"),
            headers(1, END, &[("digest", "abc"), ("etag", "")]),
            frame(HEADERS, WHOLE | PADDED | 0x20 | END, 3, &prioritised),
            window_update(0, 1_000),
            window_update(5, 1_000),
            rst(5, ErrorCode::REFUSED_STREAM),
            go_away(3, ErrorCode::NO_ERROR),
        ]
        .concat(),
        // Faults of one stream, then one of the connection.
        [
            settings(&[]),
            headers(1, 0, &[(":status", "200"), ("content-length", "4")]),
            data(1, 0, b"hello"),
            headers(3, 0, &[(":status", "200"), ("Upper", "case")]),
            data(3, END, b"too late"),
            data(1, 0, b"behind the end"),
            headers(5, 0, &ok),
            data(5, 0, b"fine"),
            padded(5, 0, b"x", 1)[..9].to_vec(),
            vec![3, 0, 0],
        ]
        .concat(),
        [settings(&[]), headers(1, 0, &ok), frame(0, PADDED, 1, &[9, 1, 2])].concat(),
        b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec(),
        [settings(&[]), headers(1, 0, &ok), headers(7, 0, &ok)].concat(),
        Vec::new(),
    ]
}

fn session(wire: &[u8], cuts: &[usize]) -> (Vec<H2RecordedEvent>, Vec<u8>) {
    let mut conn = asked(H2Config::default(), &get(), 3);
    let seen = feed(&mut conn, wire, cuts);
    (seen, conn.output().to_vec())
}

#[test]
fn h2_input_cut_once_gives_the_same_events() {
    for (number, wire) in sessions().iter().enumerate() {
        let whole = session(wire, &[]);
        for cut in 0..=wire.len() {
            assert_eq!(session(wire, &[cut]), whole, "session {number} cut at {cut}");
        }
    }
}

#[test]
fn h2_input_byte_by_byte_gives_same_events() {
    for (number, wire) in sessions().iter().enumerate() {
        let cuts: Vec<usize> = (0..wire.len()).collect();
        assert_eq!(session(wire, &cuts), session(wire, &[]), "session {number}");
    }
}

#[test]
fn h2_test_sessions_cover_every_frame_type() {
    let seen: Vec<Vec<H2RecordedEvent>> = sessions().iter().map(|wire| session(wire, &[]).0).collect();
    let complete =
        |seen: &[H2RecordedEvent]| seen.iter().filter(|event| matches!(event, H2RecordedEvent::Complete(..))).count();
    assert_eq!(complete(&seen[0]), 3);
    assert_eq!(complete(&seen[1]), 2);
    assert_eq!(seen[1].last(), Some(&H2RecordedEvent::GoAway(3, ErrorCode::NO_ERROR)));
    assert!(seen[1].contains(&H2RecordedEvent::Complete(1, Some(b"digest: abc\r\netag: \r\n\r\n".to_vec()))));
    let violations =
        seen[2].iter().filter(|event| matches!(event, H2RecordedEvent::Reset(_, ResetReason::Violation(_), false)));
    assert_eq!(violations.count(), 2);
    let errors: Vec<Option<&H2RecordedEvent>> = seen[2..].iter().map(|seen| seen.last()).collect();
    assert_eq!(
        errors,
        [
            Some(&H2RecordedEvent::Error(H2Error::Frame(FrameFault::Padding))),
            Some(&H2RecordedEvent::Error(H2Error::Frame(FrameFault::Padding))),
            Some(&H2RecordedEvent::Error(H2Error::NotHttp2 { http1: true })),
            Some(&H2RecordedEvent::Error(H2Error::Frame(FrameFault::IdleStream))),
            None
        ]
    );
}

fn any_frame() -> impl Strategy<Value = Vec<u8>> {
    let stream = prop::sample::select(vec![0u32, 1, 1, 3, 5, 2, 7]);
    let payload = prop_oneof![
        Just(block(&[(":status", "200")])),
        Just(block(&[("x", "y")])),
        Just(vec![0x88]),
        Just(vec![0; 4]),
        Just(b"12345678".to_vec()),
        prop::collection::vec(any::<u8>(), 0..20),
    ];
    let flags = prop::sample::select(vec![0u8, 1, 4, 5, 8, 9, 12, 0x24]);
    prop_oneof![
        4 => (0u8..11, flags, stream.clone(), payload).prop_map(|(kind, flags, stream, payload)| {
            frame(kind, flags, stream, &payload)
        }),
        2 => stream.clone().prop_map(|stream| headers(stream, 0, &[(":status", "200")])),
        2 => (stream, 0u8..2, prop::collection::vec(any::<u8>(), 0..30)).prop_map(|(stream, flags, payload)| {
            data(stream, flags, &payload)
        }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_h2_frames_give_same_events_when_cut(
        frames in prop::collection::vec(any_frame(), 0..16),
        raw in prop::collection::vec(any::<u16>(), 0..16),
    ) {
        let wire = [settings(&[]), frames.concat()].concat();
        let mut cuts: Vec<usize> = raw.iter().map(|&cut| usize::from(cut) % (wire.len() + 1)).collect();
        cuts.sort_unstable();
        prop_assert_eq!(session(&wire, &cuts), session(&wire, &[]));
    }
}
