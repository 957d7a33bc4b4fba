//! The checkpoint of a partial file, from which a later run continues after kill -9 or a power
//! failure.
//!
//! ```
//! use haul_policy::range::checkpoint::{Checkpoint, SLOT_SIZE, latest};
//! use haul_policy::range::{ByteRangeSet, Validator};
//!
//! let mut checkpoint = Checkpoint {
//!     identity: [7; 32],
//!     boot: b"0f1e".to_vec(),
//!     is_synced: false,
//!     total: 1_000_000,
//!     validator: Validator::strong(Some(b"\"v1\""), None, None).unwrap(),
//!     done: ByteRangeSet::new(),
//! };
//! let mut slots = checkpoint.encode(1);
//! checkpoint.done.insert(0..65_536);
//! slots.extend(checkpoint.encode(2));
//! assert_eq!(latest(&slots), Some((2, checkpoint.clone())));
//!
//! slots[SLOT_SIZE as usize + 100] ^= 1; // the second write was torn: the one before it still holds
//! let (sequence, before) = latest(&slots).unwrap();
//! assert_eq!((sequence, before.done.byte_count()), (1, 0));
//! assert!(before.is_reliable_in_boot(b"0f1e") && !before.is_reliable_in_boot(b"2d3c"));
//! ```
//!
//! Checkpoints alternate between two slots of [`SLOT_SIZE`] bytes after the end of the partial
//! file, so a torn write destroys only the checkpoint that it replaces. A reader decodes both
//! slots, and the valid checkpoint with the higher sequence number counts. The slots are in the
//! partial file and not in a second file: there is only one name to rename or remove, and no second
//! file can be forgotten.
//!
//! # Format
//!
//! A checkpoint fills its slot, with zeros at the end. Numbers are little-endian.
//!
//! | bytes | content |
//! |---|---|
//! | 8 | `haulnote` |
//! | 1 | version: 1 |
//! | 1 | 1 if synced, else 0 |
//! | 1 | length of the boot id, at most [`MAX_BOOT`] |
//! | 1 | zero |
//! | 2 | length of the validator |
//! | 2 | number of received ranges |
//! | 8 | sequence number |
//! | 8 | length of the whole body |
//! | 32 | identity of the body |
//! | … | boot id, validator, then start and end of each range in 8 bytes each |
//! | … | zeros |
//! | 4 | CRC-32 (IEEE) of all bytes before it |
//!
//! The encoding is canonical: a decoded checkpoint encodes to the same bytes. The checksum detects
//! accidents and is not a signature. A program that may write the file may write the body too.
//!
//! Left out: the decision when to write a checkpoint, and syncing (the engine does both).

use core::ops::Range;

use super::{ByteRangeSet, Validator};

/// The size in bytes of one checkpoint in the file. A memory page has the same size, and file
/// systems usually write a page as a whole.
pub const SLOT_SIZE: u64 = 4096;

/// The largest length in bytes of a boot id: the text that identifies one start of the machine.
pub const MAX_BOOT: usize = 64;

const ENCODED_SIZE: usize = SLOT_SIZE as usize;
const MAGIC: &[u8; 8] = b"haulnote";
const VERSION: u8 = 1;
const ENCODED_RANGE_SIZE: usize = 16;
const CHECKSUM_SIZE: usize = 4;

/// The state of a file that is partly downloaded. It is stored at the end of that file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checkpoint {
    /// The identity of the body: a digest that the engine makes from the URL and everything else
    /// that selects the body.
    pub identity: [u8; 32],
    /// The boot id of the machine when the checkpoint was written; at most [`MAX_BOOT`] bytes. It
    /// changes with each start of the machine. Empty if unknown.
    pub boot: Vec<u8>,
    /// True if the bytes of `done` were synced to the disk before the checkpoint was written.
    pub is_synced: bool,
    /// The length of the whole body in bytes.
    pub total: u64,
    /// The validator (entity-tag or date) of the representation to which the bytes in `done`
    /// belong.
    pub validator: Validator,
    /// The received bytes as offsets in the body, all below `total`.
    pub done: ByteRangeSet,
}

impl Checkpoint {
    /// Encodes the checkpoint into [`SLOT_SIZE`] bytes. Of two checkpoints in a file, the one with
    /// the higher `sequence` counts.
    ///
    /// Ranges are cut at the length of the whole body. If there are more ranges than fit (about
    /// 250, or 183 with the longest validator), the smallest ranges are left out, and their bytes
    /// will be fetched again. A `boot` (the text that identifies one start of the machine) that is
    /// too long is left out, since a shortened text could equal another.
    pub fn encode(&self, sequence: u64) -> Vec<u8> {
        let boot = if self.boot.len() <= MAX_BOOT { &self.boot[..] } else { &[] };
        let validator = self.validator.to_bytes();
        let mut out = Vec::with_capacity(ENCODED_SIZE);
        out.extend(MAGIC);
        out.extend([VERSION, u8::from(self.is_synced), boot.len() as u8, 0]);
        // At most `validator::MAX_ETAG` and `SIZE / SPAN`: both fit.
        out.extend((validator.len() as u16).to_le_bytes());
        let room = (ENCODED_SIZE - CHECKSUM_SIZE - (out.len() + 2 + 8 + 8 + 32) - boot.len() - validator.len())
            / ENCODED_RANGE_SIZE;
        let spans = self.largest_ranges(room);
        out.extend((spans.len() as u16).to_le_bytes());
        out.extend(sequence.to_le_bytes());
        out.extend(self.total.to_le_bytes());
        out.extend(self.identity);
        out.extend(boot);
        out.extend(validator);
        for span in spans {
            out.extend(span.start.to_le_bytes());
            out.extend(span.end.to_le_bytes());
        }
        out.resize(ENCODED_SIZE - CHECKSUM_SIZE, 0);
        out.extend(crc32fast::hash(&out).to_le_bytes());
        out
    }

    /// Returns `true` if the bytes that `done` lists are certain to be in the file while the
    /// machine has the boot id `boot`. After the program was killed, these bytes are still in the
    /// page cache. After a power failure, they are in the file only if they were synced first. An
    /// unknown (empty) boot id equals no other boot id.
    pub fn is_reliable_in_boot(&self, boot: &[u8]) -> bool {
        self.is_synced || (!boot.is_empty() && self.boot == boot)
    }

    /// Returns the received ranges, cut at the total length. If there are more than `most`, only
    /// the largest `most` are returned, sorted by position.
    fn largest_ranges(&self, most: usize) -> Vec<Range<u64>> {
        let inside = self.done.iter().map(|span| span.start..span.end.min(self.total));
        let mut spans: Vec<_> = inside.filter(|span| !span.is_empty()).collect();
        if spans.len() > most {
            spans.sort_by_key(|span| core::cmp::Reverse(span.end - span.start));
            spans.truncate(most);
            spans.sort_by_key(|span| span.start);
        }
        spans
    }
}

/// Decodes the [`SLOT_SIZE`] bytes that [`Checkpoint::encode`] wrote. Returns the sequence number
/// and the checkpoint. Returns `None` for any other bytes: partly written, truncated, too long,
/// changed, or of another version. The ranges of the result are in order, not adjacent, and below
/// the total.
pub fn decode(bytes: &[u8]) -> Option<(u64, Checkpoint)> {
    if bytes.len() != ENCODED_SIZE {
        return None;
    }
    let (body, sum) = bytes.split_last_chunk::<CHECKSUM_SIZE>()?;
    let mut rest = CheckpointReader(body);
    // The magic is checked first: most of what is read is not a checkpoint, and needs no checksum.
    if &rest.read_array()? != MAGIC || crc32fast::hash(body) != u32::from_le_bytes(*sum) {
        return None;
    }
    let [version, synced, boot, zero] = rest.read_array()?;
    if version != VERSION || synced > 1 || usize::from(boot) > MAX_BOOT || zero != 0 {
        return None;
    }
    let validator = u16::from_le_bytes(rest.read_array()?);
    let count = u16::from_le_bytes(rest.read_array()?);
    let sequence = u64::from_le_bytes(rest.read_array()?);
    let total = u64::from_le_bytes(rest.read_array()?);
    let identity = rest.read_array()?;
    let boot = rest.read_bytes(boot.into())?.to_vec();
    let validator = Validator::from_bytes(rest.read_bytes(validator.into())?)?;
    let mut done = ByteRangeSet::new();
    let mut free = 0;
    for _ in 0..count {
        let span = u64::from_le_bytes(rest.read_array()?)..u64::from_le_bytes(rest.read_array()?);
        if span.start < free || span.is_empty() || span.end > total {
            return None;
        }
        // A span that touches the last one would have been joined to it. Nothing lies beyond
        // u64::MAX, so saturating is harmless.
        free = span.end.saturating_add(1);
        done.insert(span);
    }
    let is_clean = rest.0.iter().all(|byte| *byte == 0);
    is_clean.then_some((sequence, Checkpoint { identity, boot, is_synced: synced == 1, total, validator, done }))
}

/// Returns the newest valid checkpoint in `slots`, preceded by its sequence number; `None` if no
/// checkpoint is valid. `slots` is a sequence of slots of [`SLOT_SIZE`] bytes. A truncated slot is
/// not valid.
///
/// The slots begin in the file at the end of the body. The caller must therefore ignore a
/// checkpoint whose `total` is not the file offset from which `slots` was read: the last bytes of a
/// complete body may look like a checkpoint.
pub fn latest(slots: &[u8]) -> Option<(u64, Checkpoint)> {
    slots.chunks(ENCODED_SIZE).filter_map(decode).max_by_key(|(sequence, _)| *sequence)
}

/// The bytes of an encoded checkpoint that have not been read yet.
struct CheckpointReader<'b>(&'b [u8]);

impl<'b> CheckpointReader<'b> {
    fn read_bytes(&mut self, count: usize) -> Option<&'b [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn read_array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*taken)
    }
}
