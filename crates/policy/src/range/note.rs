//! The state note of a partial file: what a later run needs to go on after kill -9 or a power cut.
//!
//! ```
//! use haul_policy::range::note::{Note, SLOT, latest};
//! use haul_policy::range::{Spans, Validator};
//!
//! let mut note = Note {
//!     identity: [7; 32],
//!     boot: b"0f1e".to_vec(),
//!     is_synced: false,
//!     total: 1_000_000,
//!     validator: Validator::strong(Some(b"\"v1\""), None, None).unwrap(),
//!     done: Spans::new(),
//! };
//! let mut slots = note.encode(1);
//! note.done.insert(0..65_536);
//! slots.extend(note.encode(2));
//! assert_eq!(latest(&slots), Some((2, note.clone())));
//!
//! slots[SLOT as usize + 100] ^= 1; // the second write was torn: the one before it still holds
//! let (sequence, before) = latest(&slots).unwrap();
//! assert_eq!((sequence, before.done.covered()), (1, 0));
//! assert!(before.holds_after(b"0f1e") && !before.holds_after(b"2d3c"));
//! ```
//!
//! Notes are written by turns to two slots of [`SLOT`] bytes behind the end of the partial file, so that a torn write destroys only the note that it
//! replaces. Both are read, and the valid one with the higher number counts. They are in the file itself and not beside it: there is one name to
//! rename or remove, and none can be left over.
//!
//! # Format
//!
//! A note fills its slot, zeros behind it. Numbers are little-endian.
//!
//! | bytes | what |
//! |---|---|
//! | 8 | `haulnote` |
//! | 1 | version: 1 |
//! | 1 | 1 if synced, else 0 |
//! | 1 | length of the boot's name, at most [`MAX_BOOT`] |
//! | 1 | zero |
//! | 2 | length of the validator |
//! | 2 | number of spans |
//! | 8 | sequence number |
//! | 8 | total |
//! | 32 | identity |
//! | … | boot, validator, then start and end of each span in 8 bytes each |
//! | … | zeros |
//! | 4 | the slot's last: CRC-32 (IEEE) of all before it |
//!
//! There is one way to write a note: what decodes encodes to the same bytes. A checksum detects accidents; it is not a signature. Whoever may write
//! the file may write the body too.
//!
//! Left out: when to write one, and syncing (the engine's).

use core::ops::Range;

use super::{Spans, Validator};

/// The size of a slot in bytes: a page, which file systems usually write as a whole.
pub const SLOT: u64 = 4096;

/// The longest name of a boot in bytes.
pub const MAX_BOOT: usize = 64;

const SIZE: usize = SLOT as usize;
const MAGIC: &[u8; 8] = b"haulnote";
const VERSION: u8 = 1;
const SPAN: usize = 16;
const SUM: usize = 4;

/// What is known about a partial file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// Identifies the body: a digest, made by the engine, of the URL and everything else that selects the body.
    pub identity: [u8; 32],
    /// Which boot of the machine wrote it; at most [`MAX_BOOT`] bytes. Empty: not known.
    pub boot: Vec<u8>,
    /// Whether the bytes of `done` were on the disk before this was written.
    pub is_synced: bool,
    /// The length of the whole body in bytes.
    pub total: u64,
    /// What the bytes of `done` belong to.
    pub validator: Validator,
    /// What is there, all below `total`.
    pub done: Spans,
}

impl Note {
    /// The note as it goes into a slot: always [`SLOT`] bytes. Of two notes in a file, the one with the higher `sequence` counts.
    ///
    /// It never claims more than `done`: spans are cut at `total`, and if there are more than fit (about 250; 183 beside the longest validator), the
    /// smallest are left out and will be fetched again. A boot's name that is too long is left out, too: shortened, it could be taken for another
    /// one.
    pub fn encode(&self, sequence: u64) -> Vec<u8> {
        let boot = if self.boot.len() <= MAX_BOOT { &self.boot[..] } else { &[] };
        let validator = self.validator.to_bytes();
        let mut out = Vec::with_capacity(SIZE);
        out.extend(MAGIC);
        out.extend([VERSION, u8::from(self.is_synced), boot.len() as u8, 0]);
        // At most `validator::MAX_ETAG` and `SIZE / SPAN`: both fit.
        out.extend((validator.len() as u16).to_le_bytes());
        let room = (SIZE - SUM - (out.len() + 2 + 8 + 8 + 32) - boot.len() - validator.len()) / SPAN;
        let spans = self.largest(room);
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
        out.resize(SIZE - SUM, 0);
        out.extend(crc32fast::hash(&out).to_le_bytes());
        out
    }

    /// Whether the bytes it claims are surely in the file, read during this boot of the machine. After kill -9 they are, in the page
    /// cache; after a power cut only if they were synced first. A boot that is not known is never the same.
    pub fn holds_after(&self, boot: &[u8]) -> bool {
        self.is_synced || (!boot.is_empty() && self.boot == boot)
    }

    /// At most this many spans below the total, the largest if there are more, in rising order.
    fn largest(&self, most: usize) -> Vec<Range<u64>> {
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

/// Reads what [`Note::encode`] wrote, with its sequence number; `None` for anything else: torn, cut short, longer, changed, or of another version.
/// The spans of a note that is read are in order, apart from each other and below its total.
pub fn decode(bytes: &[u8]) -> Option<(u64, Note)> {
    if bytes.len() != SIZE {
        return None;
    }
    let (body, sum) = bytes.split_last_chunk::<SUM>()?;
    let mut rest = Reader(body);
    // The magic is checked first: most of what is read is not a note, and needs no checksum.
    if &rest.array()? != MAGIC || crc32fast::hash(body) != u32::from_le_bytes(*sum) {
        return None;
    }
    let [version, synced, boot, zero] = rest.array()?;
    if version != VERSION || synced > 1 || usize::from(boot) > MAX_BOOT || zero != 0 {
        return None;
    }
    let validator = u16::from_le_bytes(rest.array()?);
    let count = u16::from_le_bytes(rest.array()?);
    let sequence = u64::from_le_bytes(rest.array()?);
    let total = u64::from_le_bytes(rest.array()?);
    let identity = rest.array()?;
    let boot = rest.take(boot.into())?.to_vec();
    let validator = Validator::from_bytes(rest.take(validator.into())?)?;
    let mut done = Spans::new();
    let mut free = 0;
    for _ in 0..count {
        let span = u64::from_le_bytes(rest.array()?)..u64::from_le_bytes(rest.array()?);
        if span.start < free || span.is_empty() || span.end > total {
            return None;
        }
        // A span that touches the last one would have been joined to it. Nothing lies beyond u64::MAX, so saturating is harmless.
        free = span.end.saturating_add(1);
        done.insert(span);
    }
    let is_clean = rest.0.iter().all(|byte| *byte == 0);
    is_clean.then_some((sequence, Note { identity, boot, is_synced: synced == 1, total, validator, done }))
}

/// The newest valid note among consecutive slots; `None` if there is none. A slot that is cut short is not valid.
///
/// The caller knows where the slots begin. A note found at `at` belongs to this file only if its `total` is `at`: the last bytes of a whole body may
/// look like one.
pub fn latest(slots: &[u8]) -> Option<(u64, Note)> {
    slots.chunks(SIZE).filter_map(decode).max_by_key(|(sequence, _)| *sequence)
}

struct Reader<'b>(&'b [u8]);

impl<'b> Reader<'b> {
    fn take(&mut self, count: usize) -> Option<&'b [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*taken)
    }
}
