//! Bytes whose value is a function of their offset, so that any slice of a body can be checked by
//! itself, regardless of the body's size.
//!
//! ```
//! use testkit::byte_pattern::BytePattern;
//!
//! let pattern = BytePattern::new(1);
//! let whole = pattern.slice(0, 100);
//! assert_eq!(pattern.slice(13, 50), &whole[13..63]);
//! ```

use crate::rng::mix;

/// An endless sequence of pseudo-random bytes, addressed by offset.
///
/// No part of the sequence occurs twice, so a test notices bytes that are at a wrong offset. In a
/// periodic sequence, an error of a whole period would stay hidden.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BytePattern {
    seed: u64,
}

impl BytePattern {
    /// Creates the sequence for this seed.
    pub fn new(seed: u64) -> BytePattern {
        BytePattern { seed }
    }

    /// Fills `out` with the bytes of the sequence that begin at `offset`.
    pub fn fill(&self, offset: u64, out: &mut [u8]) {
        let skip = (offset % 8) as usize;
        let mut word = offset / 8;
        let head = if skip == 0 { 0 } else { (8 - skip).min(out.len()) };
        let (first, rest) = out.split_at_mut(head);
        if head > 0 {
            first.copy_from_slice(&self.word_at(word)[skip..skip + head]);
            word += 1;
        }
        let mut chunks = rest.chunks_exact_mut(8);
        for chunk in &mut chunks {
            chunk.copy_from_slice(&self.word_at(word));
            word += 1;
        }
        let tail = chunks.into_remainder();
        let last = self.word_at(word);
        tail.copy_from_slice(&last[..tail.len()]);
    }

    /// Returns the `len` bytes of the sequence that begin at `offset`.
    pub fn slice(&self, offset: u64, len: usize) -> Vec<u8> {
        let mut out = vec![0; len];
        self.fill(offset, &mut out);
        out
    }

    #[inline]
    fn word_at(&self, index: u64) -> [u8; 8] {
        mix(self.seed, index).to_le_bytes()
    }
}

/// Returns `len` bytes of readable text that compresses about as well as HTML. The test origin
/// sends this text, content-coded, for paths such as `/text/N` and `/gzip/N`.
///
/// ```
/// let text = testkit::byte_pattern::compressible_text(1, 500);
/// assert_eq!(text.len(), 500);
/// assert!(text.is_ascii());
/// ```
pub fn compressible_text(seed: u64, len: usize) -> Vec<u8> {
    const WORDS: [&str; 16] = [
        "route", "prefix", "origin", "window", "credit", "stream", "frame", "socket", "part", "field", "line", "table",
        "peer", "chunk", "reply", "body",
    ];
    let mut rng = crate::rng::Rng::new(mix(seed, 0x7465_7874));
    let mut out = Vec::with_capacity(len + 32);
    let mut line = 1u64;
    while out.len() < len {
        out.extend_from_slice(format!("<p id=\"{line}\">").as_bytes());
        for _ in 0..6 {
            out.extend_from_slice(rng.pick(&WORDS).as_bytes());
            out.push(b' ');
        }
        out.extend_from_slice(b"</p>\n");
        line += 1;
    }
    out.truncate(len);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slice_equals_same_range_of_whole_pattern() {
        let pattern = BytePattern::new(42);
        let whole = pattern.slice(0, 64);
        for from in 0..40 {
            for len in 0..24 {
                assert_eq!(pattern.slice(from as u64, len), &whole[from..from + len], "from {from} len {len}");
            }
        }
        assert_ne!(BytePattern::new(1).slice(0, 64), BytePattern::new(2).slice(0, 64));
    }

    #[test]
    fn shorter_text_is_a_prefix_of_longer_text() {
        assert_eq!(compressible_text(3, 1000), &compressible_text(3, 5000)[..1000]);
    }
}
