//! Checks that the events and the output of an HTTP/3 machine do not depend on how the input is
//! cut.

use super::peer::{
    CONTROL, DECODER, ENCODER, GOAWAY, H3RecordedEvent, HEADERS, Piece, asked, capacity, commands, control, data, feed,
    frame, get, headers, insertion, sent, varint,
};
use haul_proto::h3::{H3Config, H3Error, H3FrameFault, H3ResetReason, H3SendStream, H3StreamAbortToSend};
use proptest::prelude::*;
use std::collections::BTreeMap;

fn sessions() -> Vec<Vec<Piece>> {
    let ok = [(":status", "200"), ("server", "x")];
    vec![
        vec![
            (CONTROL, [control(&[(1, 4_096), (6, 70_000), (0x21, 1)]), frame(0x21, b"grease")].concat(), false),
            (0, [headers(&[(":status", "103"), ("link", "</x>")]), headers(&ok), data(b"hello ")].concat(), false),
            (4, headers(&[(":status", "404"), ("content-length", "3")]), false),
            (0, [frame(0x40, b"what nobody knows"), data(&[b'w'; 300]), data(b""), data(b"orld")].concat(), false),
            (4, data(b"no\n"), true),
            (0, headers(&[("digest", "abc"), ("etag", "")]), true),
            (8, headers(&[(":status", "204")]), true),
        ],
        // A blocked head, its insertion, and a stream of an unknown type.
        vec![
            (0, [frame(HEADERS, &[2, 0, 0xd9, 0x80]), data(b"hello")].concat(), true),
            (15, [varint(0x21), b"ignored".to_vec()].concat(), true),
            (DECODER, vec![3, 0x44], false),
            (4, frame(HEADERS, &[3, 0, 0xd9, 0x80, 0x81]), true),
            (
                ENCODER,
                [vec![2], capacity(220), insertion("x-one", "1"), insertion("x-two", &"2".repeat(100))].concat(),
                false,
            ),
            (CONTROL, [control(&[]), frame(GOAWAY, &varint(8))].concat(), false),
        ],
        // Faults of streams, then one of the connection.
        vec![
            (0, [headers(&[(":status", "200"), ("content-length", "4")]), data(b"hello")].concat(), true),
            (4, [headers(&[(":status", "200"), ("Upper", "case")]), data(b"too late")].concat(), true),
            (8, [headers(&ok), data(b"fine"), vec![0, 9]].concat(), true),
        ],
        vec![(CONTROL, [vec![0], frame(GOAWAY, &[0])].concat(), false)],
        vec![(1, vec![0], false)],
        Vec::new(),
    ]
}

type SessionResult = (Vec<H3RecordedEvent>, BTreeMap<H3SendStream, (Vec<u8>, bool)>, Vec<H3StreamAbortToSend>);

fn session(pieces: &[Piece], size: usize) -> SessionResult {
    let mut conn = asked(H3Config::default(), &get(), 3);
    let seen = feed(&mut conn, pieces, size);
    let mut output = sent(&mut conn);
    // Insertions may be acknowledged one by one or together.
    if let Some((acknowledgements, _)) = output.get_mut(&H3SendStream::QpackDecoder) {
        acknowledgements.retain(|&byte| byte >= 0x40);
    }
    (seen, output, commands(&mut conn))
}

#[test]
fn h3_input_in_small_parts_gives_same_events() {
    for (number, pieces) in sessions().iter().enumerate() {
        let whole = session(pieces, usize::MAX);
        for size in 1..80 {
            assert_eq!(session(pieces, size), whole, "session {number} in parts of {size}");
        }
    }
}

#[test]
fn h3_pieces_cut_once_give_same_events() {
    for (number, pieces) in sessions().iter().enumerate() {
        let whole = session(pieces, usize::MAX);
        for (place, (stream, bytes, fin)) in pieces.iter().enumerate() {
            for cut in 0..=bytes.len() {
                let (first, second) = bytes.split_at(cut);
                let mut cut_pieces = pieces.clone();
                cut_pieces[place] = (*stream, second.to_vec(), *fin);
                cut_pieces.insert(place, (*stream, first.to_vec(), false));
                assert_eq!(session(&cut_pieces, usize::MAX), whole, "session {number}, piece {place} cut at {cut}");
            }
        }
    }
}

#[test]
fn h3_test_sessions_cover_every_kind_of_event() {
    let seen: Vec<Vec<H3RecordedEvent>> = sessions().iter().map(|pieces| session(pieces, usize::MAX).0).collect();
    let complete =
        |seen: &[H3RecordedEvent]| seen.iter().filter(|event| matches!(event, H3RecordedEvent::Complete(..))).count();
    assert_eq!((complete(&seen[0]), complete(&seen[1])), (3, 2));
    assert!(seen[1].contains(&H3RecordedEvent::Reset(8, H3ResetReason::GoAway, true)));
    let violations =
        seen[2].iter().filter(|event| matches!(event, H3RecordedEvent::Reset(_, H3ResetReason::Violation(_), false)));
    assert_eq!(violations.count(), 2);
    let truncated = H3Error::Frame(H3FrameFault::Truncated);
    assert_eq!(seen[2].last(), Some(&H3RecordedEvent::Error(truncated)));
}

fn any_piece() -> impl Strategy<Value = Piece> {
    let stream = prop::sample::select(vec![0u64, 0, 4, 8, 3, 7, 11, 15]);
    let payload = prop_oneof![
        Just(vec![]),
        Just(vec![0, 0, 0xd9]),
        Just(vec![2, 0, 0xd9, 0x80]),
        Just(super::peer::section(&[(":status", "200"), ("content-length", "3")])),
        prop::collection::vec(any::<u8>(), 0..20),
    ];
    let kind = prop::sample::select(vec![0u64, 0, 1, 1, 3, 4, 5, 7, 13, 0x21]);
    let bytes = prop_oneof![
        4 => (kind, payload).prop_map(|(kind, payload)| frame(kind, &payload)),
        1 => Just(control(&[(1, 100)])),
        1 => Just([vec![2], capacity(100), insertion("a", "b")].concat()),
        1 => Just(vec![3]),
        1 => prop::collection::vec(any::<u8>(), 0..8),
    ];
    (stream, bytes, prop::bool::weighted(0.1))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_h3_input_gives_same_events_when_cut(
        pieces in prop::collection::vec(any_piece(), 0..16),
        size in 1usize..30,
    ) {
        let (mut ended, mut pieces) = (Vec::new(), pieces);
        // A stream ends once.
        pieces.retain(|(stream, _, fin)| {
            let goes_on = !ended.contains(stream);
            if *fin {
                ended.push(*stream);
            }
            goes_on
        });
        // If an insertion unblocks a response and the next one is malformed, the response can be
        // read only if the two arrive apart. They always do here.
        let apart = |(stream, bytes, fin): Piece| match (stream, bytes.len().checked_sub(1)) {
            (7, Some(last)) => {
                bytes.iter().enumerate().map(|(at, &byte)| (stream, vec![byte], fin && at == last)).collect()
            }
            _ => vec![(stream, bytes, fin)],
        };
        let pieces: Vec<Piece> = pieces.into_iter().flat_map(apart).collect();
        let ((whole, ..), (cut, ..)) = (session(&pieces, usize::MAX), session(&pieces, size));
        prop_assert_eq!(cut, whole);
    }
}
