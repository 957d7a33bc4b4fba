//! Fuzzes the decoder of checkpoints: a decoded checkpoint is valid and has only one encoding.
//!
//! The input is the beginning of an encoded checkpoint. It is decoded unchanged, and again with a
//! valid checksum, since no mutation would find one.
#![no_main]

use haul_policy::range::checkpoint::{SLOT_SIZE, decode, latest};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let _ = (decode(data), latest(data));

    let mut slot = data.to_vec();
    slot.resize(SLOT_SIZE as usize, 0);
    let body = SLOT_SIZE as usize - 4;
    let sum = crc32fast::hash(&slot[..body]);
    slot[body..].copy_from_slice(&sum.to_le_bytes());
    let Some((sequence, checkpoint)) = decode(&slot) else { return };
    assert!(checkpoint.done.byte_count() <= checkpoint.total);
    let mut free = 0;
    for span in checkpoint.done.iter() {
        assert!(span.start >= free && span.start < span.end && span.end <= checkpoint.total);
        free = span.end.saturating_add(1);
    }
    assert!(!checkpoint.validator.if_range().iter().any(|byte| b"\r\n\0".contains(byte)));
    assert_eq!(checkpoint.encode(sequence), slot);
    assert_eq!(latest(&slot), Some((sequence, checkpoint)));
});
