//! Damaged checkpoints (torn, truncated, mutated or forged): none of them decodes to the checkpoint
//! that was written.

use haul_policy::range::checkpoint::{MAX_BOOT, SLOT_SIZE, decode, latest};
use haul_policy::range::validator::MAX_ETAG;
use haul_policy::range::{ByteRangeSet, Checkpoint, Validator};
use proptest::collection::vec;
use proptest::prelude::*;

const SIZE: usize = SLOT_SIZE as usize;
const SUM: usize = SIZE - 4;
/// The offset of the version in a checkpoint. The table in [`haul_policy::range::checkpoint`]
/// defines this offset and the ones that follow.
const VERSION: usize = 8;
const BOOT_LEN: usize = 10;
const SPAN_COUNT: usize = 14;
const TOTAL: usize = 24;
const BOOT: usize = 64;

fn spans(ranges: &[(u64, u64)]) -> ByteRangeSet {
    let mut spans = ByteRangeSet::new();
    for (start, end) in ranges {
        spans.insert(*start..*end);
    }
    spans
}

fn checkpoint() -> Checkpoint {
    Checkpoint {
        identity: core::array::from_fn(|index| index as u8),
        boot: b"abcd".to_vec(),
        is_synced: true,
        total: 1000,
        validator: Validator::strong(Some(b"\"v\""), None, None).unwrap(),
        done: spans(&[(0, 10), (20, 30), (990, 1000)]),
    }
}

/// Returns a valid checkpoint that was then changed: `bytes` replace those at the offset `at`, and
/// the checksum is correct again.
fn forged(at: usize, bytes: &[u8]) -> Vec<u8> {
    let mut slot = checkpoint().encode(5);
    slot[at..at + bytes.len()].copy_from_slice(bytes);
    let sum = crc32fast::hash(&slot[..SUM]);
    slot[SUM..].copy_from_slice(&sum.to_le_bytes());
    slot
}

#[test]
fn every_flipped_checkpoint_bit_is_detected() {
    let slot = checkpoint().encode(5);
    assert_eq!(slot.len(), SIZE);
    assert_eq!(decode(&slot), Some((5, checkpoint())));
    for bit in 0..SIZE * 8 {
        let mut flipped = slot.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        assert_eq!(decode(&flipped), None, "bit {bit}");
    }
}

#[test]
fn truncated_and_torn_checkpoints_are_refused() {
    let old = checkpoint().encode(5);
    let new = Checkpoint { is_synced: false, done: spans(&[(0, 900)]), ..checkpoint() }.encode(6);
    for end in 0..SIZE {
        assert_eq!(decode(&old[..end]), None, "{end}");
        assert_eq!(latest(&old[..end]), None, "{end}");
        let torn = [&new[..end], &old[end..]].concat();
        assert!(decode(&torn).is_none() || torn == old || torn == new, "{end}");
        let zeros = [&new[..end], &vec![0; SIZE - end]].concat();
        assert_eq!(decode(&zeros), None, "{end}");
    }
    assert_eq!(decode(&[&old[..], b"\0"].concat()), None);
}

#[test]
fn forged_checkpoints_with_valid_checksum_are_refused() {
    let span = |index: usize| BOOT + 4 + 3 + index * 16;
    let number = |n: u64| n.to_le_bytes();
    assert_eq!(decode(&forged(VERSION, &[1])), Some((5, checkpoint())), "the sum is right");
    let table: &[(&str, usize, &[u8])] = &[
        ("magic", 0, b"Haulnote"),
        ("version 0", VERSION, &[0]),
        ("version 2", VERSION, &[2]),
        ("a synced that is no boolean", VERSION + 1, &[2]),
        ("a boot that is too long", BOOT_LEN, &[65]),
        ("a boot of another length", BOOT_LEN, &[3]),
        ("the reserved byte", BOOT_LEN + 1, &[1]),
        ("no validator", 12, &[0, 0]),
        ("half a validator", 12, &[2, 0]),
        ("a validator longer than the slot", 12, &[0xff, 0xff]),
        ("a weak validator", BOOT + 4, b"W/\""),
        ("fewer spans than are there", SPAN_COUNT, &[2, 0]),
        ("more spans than are there", SPAN_COUNT, &[4, 0]),
        ("more spans than fit", SPAN_COUNT, &[0xff, 0xff]),
        ("a span behind the end", span(2) + 8, &number(1001)),
        ("the end before a span", TOTAL, &number(999)),
        ("an empty span", span(1) + 8, &number(20)),
        ("a reversed span", span(1) + 8, &number(19)),
        ("an overlap", span(1), &number(9)),
        ("a span that touches", span(1), &number(10)),
        ("the same span twice", span(1), &[number(0), number(10)].concat()),
        ("spans out of order", span(0), &[number(40), number(50)].concat()),
        ("something behind", span(3), &[1]),
        ("something at the very end", SUM - 1, &[1]),
    ];
    for (what, at, bytes) in table {
        assert_eq!(decode(&forged(*at, bytes)), None, "{what}");
    }
}

#[test]
fn newest_valid_checkpoint_is_used() {
    let (old, new) = (checkpoint(), Checkpoint { done: spans(&[(0, 1000)]), ..checkpoint() });
    let bad = vec![0xff; SIZE];
    let (first, second) = (old.encode(7), new.encode(8));
    let both = |a: &[u8], b: &[u8]| latest(&[a, b].concat()).map(|(sequence, _)| sequence);
    assert_eq!(both(&first, &second), Some(8));
    assert_eq!(both(&second, &first), Some(8));
    assert_eq!(both(&first, &bad), Some(7));
    assert_eq!(both(&bad, &first), Some(7));
    assert_eq!(both(&first, &second[..SIZE - 1]), Some(7));
    assert_eq!(both(&bad, &bad), None);
    assert_eq!(latest(&first), Some((7, old)));
    assert_eq!(latest(&[]), None);
    assert_eq!(both(&checkpoint().encode(u64::MAX), &checkpoint().encode(0)), Some(u64::MAX));
}

#[test]
fn smallest_ranges_are_left_out_of_full_checkpoint() {
    let mut done = ByteRangeSet::new();
    let mut at = 0;
    for index in 0..1000u64 {
        let length = 1 + (index * 7919) % 1000; // each length once
        done.insert(at..at + length);
        at += length + 1;
    }
    let tag = format!("\"{}\"", "x".repeat(MAX_ETAG - 2));
    for (tag, boot, fit) in [(&b"\"v\""[..], 4, 251), (tag.as_bytes(), MAX_BOOT, 183)] {
        let validator = Validator::strong(Some(tag), None, None).unwrap();
        let full = Checkpoint { total: at, done: done.clone(), boot: vec![b'b'; boot], validator, ..checkpoint() };
        let slot = full.encode(1);
        let (_, read) = decode(&slot).unwrap();
        assert_eq!(read.done.iter().count(), fit);
        assert!(
            read.done.iter().all(|span| done.contains_range(span.clone()) && span.end - span.start > 1000 - fit as u64)
        );
        assert_eq!(Checkpoint { done: done.clone(), ..read }, full);
    }
}

#[test]
fn ranges_beyond_the_total_are_not_stored() {
    let long = Checkpoint { boot: vec![b'b'; MAX_BOOT + 1], ..checkpoint() };
    let (_, read) = decode(&long.encode(1)).unwrap();
    assert_eq!(read, Checkpoint { boot: Vec::new(), ..checkpoint() });
    let behind = Checkpoint { done: spans(&[(0, 10), (990, 2000), (3000, u64::MAX)]), ..checkpoint() };
    let (_, read) = decode(&behind.encode(1)).unwrap();
    assert_eq!(read.done, spans(&[(0, 10), (990, 1000)]));
    let all = Checkpoint { total: u64::MAX, done: spans(&[(0, u64::MAX)]), ..checkpoint() };
    assert_eq!(decode(&all.encode(u64::MAX)), Some((u64::MAX, all)));
    let none = Checkpoint { total: 0, done: ByteRangeSet::new(), ..checkpoint() };
    assert_eq!(decode(&none.encode(0)), Some((0, none)));
}

#[test]
fn unsynced_checkpoint_is_unreliable_after_reboot() {
    let synced = checkpoint();
    let cached = Checkpoint { is_synced: false, ..checkpoint() };
    let unknown = Checkpoint { boot: Vec::new(), ..cached.clone() };
    let table = [(&synced, true, true, true), (&cached, true, false, false), (&unknown, false, false, false)];
    for (checkpoint, same, other, none) in table {
        assert_eq!(
            (
                checkpoint.is_reliable_in_boot(b"abcd"),
                checkpoint.is_reliable_in_boot(b"abce"),
                checkpoint.is_reliable_in_boot(b"")
            ),
            (same, other, none)
        );
    }
}

fn any_checkpoint() -> impl Strategy<Value = Checkpoint> {
    let validator = prop_oneof![
        "\"[!#-~]{0,40}\"".prop_map(|tag| Validator::strong(Some(tag.as_bytes()), None, None).unwrap()),
        Just(Validator::from_bytes(b"Sun, 06 Nov 1994 08:49:37 GMT").unwrap()),
    ];
    let done = vec((any::<u32>(), any::<u16>()), 0..400);
    (any::<[u8; 32]>(), vec(any::<u8>(), 0..MAX_BOOT), any::<bool>(), any::<u64>(), validator, done).prop_map(
        |(identity, boot, is_synced, total, validator, done)| {
            let ranges: Vec<_> = done.iter().map(|(at, n)| (u64::from(*at), u64::from(*at) + u64::from(*n))).collect();
            Checkpoint { identity, boot, is_synced, total: total >> (total % 40), validator, done: spans(&ranges) }
        },
    )
}

proptest! {
    #[test]
    fn written_checkpoints_are_read_back(checkpoint in any_checkpoint(), sequence in any::<u64>()) {
        let slot = checkpoint.encode(sequence);
        let (read_sequence, read) = decode(&slot).unwrap();
        prop_assert_eq!(read_sequence, sequence);
        prop_assert!(read.done.iter().all(|span| checkpoint.done.contains_range(span.clone()) && span.end <= checkpoint.total));
        prop_assert_eq!(read.encode(sequence), slot);
        let total = checkpoint.total;
        let whole = checkpoint.done.iter().count() <= 200 && checkpoint.done.iter().all(|span| span.end <= total);
        prop_assert!(!whole || read == checkpoint);
    }

    #[test]
    fn several_changed_checkpoint_bytes_are_detected(checkpoint in any_checkpoint(), changes in vec((0..SIZE, 1..=255u8), 1..30)) {
        let slot = checkpoint.encode(1);
        let mut changed = slot.clone();
        for (at, by) in changes {
            changed[at] ^= by;
        }
        prop_assert!(changed == slot || decode(&changed).is_none());
    }

    #[test]
    fn forged_checkpoints_are_refused_or_consistent(checkpoint in any_checkpoint(), changes in vec((8..400usize, any::<u8>()), 0..6)) {
        let mut slot = checkpoint.encode(9);
        for (at, byte) in changes {
            slot[at] = byte;
        }
        let sum = crc32fast::hash(&slot[..SUM]);
        slot[SUM..].copy_from_slice(&sum.to_le_bytes());
        if let Some((sequence, read)) = decode(&slot) {
            prop_assert_eq!(read.encode(sequence), slot);
            prop_assert!(read.done.iter().all(|span| span.end <= read.total));
        }
    }
}
