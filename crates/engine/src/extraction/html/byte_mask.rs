//! Operations on many bytes at once: a bit mask of the positions of certain bytes in a block of
//! text, and comparisons of the first bytes of a 64-bit word.

/// The 64-bit number in which each byte is 1.
pub(super) const ONES: u64 = 0x0101_0101_0101_0101;
/// The 64-bit number in which the highest bit of each byte is set, and no other bit.
pub(super) const HIGHEST: u64 = 0x80 * ONES;

/// The first one to eight bytes of a word, to compare with other words. The default value equals
/// the beginning of no word.
#[derive(Clone, Copy, Debug)]
pub(super) struct WordPrefix {
    bytes: u64,
    /// The mask of the bits of a word that belong to the prefix.
    mask: u64,
}

impl Default for WordPrefix {
    fn default() -> Self {
        Self { bytes: 1, mask: 0 }
    }
}

impl WordPrefix {
    /// Makes a prefix of the first `length` bytes (one to eight) of `word`. The first byte of a
    /// word is in its lowest bits.
    pub(super) fn new(word: u64, length: usize) -> Self {
        let mask = u64::MAX >> (64 - 8 * length);
        Self { bytes: word & mask, mask }
    }

    /// Returns true if `word` begins with the bytes of this prefix.
    pub(super) fn begins(self, word: u64) -> bool {
        word & self.mask == self.bytes
    }

    /// Returns the number of bytes of the prefix, one to eight.
    pub(super) fn length(self) -> usize {
        8 - self.mask.leading_zeros() as usize / 8
    }
}

/// The number of bytes in a block that is examined at once.
pub(super) const BLOCK_SIZE: usize = 64;

/// Returns the block of `bytes` that begins at the index `from`, with null bytes after the end of
/// `bytes`. `padded` is memory for a block that needs null bytes.
pub(super) fn block_at<'b>(bytes: &'b [u8], from: usize, padded: &'b mut [u8; BLOCK_SIZE]) -> &'b [u8; BLOCK_SIZE] {
    let rest = &bytes[from..];
    match rest.first_chunk() {
        Some(block) => block,
        None => {
            padded[..rest.len()].copy_from_slice(rest);
            padded[rest.len()..].fill(0);
            padded
        }
    }
}

/// Returns a bit mask of the bytes in a block for which `is_it` returns true. Bit 0 stands for the
/// first byte. The compiler turns the loop into vector instructions if `is_it` has no branches.
pub(super) fn mask_of(block: &[u8; BLOCK_SIZE], is_it: impl Fn(u8) -> bool) -> u64 {
    let mut flags = [0; BLOCK_SIZE];
    for (flag, byte) in flags.iter_mut().zip(block) {
        *flag = u8::from(is_it(*byte));
    }
    // The product has the lowest bits of eight bytes in its highest byte.
    let part = |index: usize| {
        let word = u64::from_le_bytes(std::array::from_fn(|at| flags[8 * index + at]));
        (word.wrapping_mul(0x0102_0408_1020_4080) >> 56) << (8 * index)
    };
    (0..8).fold(0, |bits, index| bits | part(index))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn word_prefix_is_compared_with_its_bytes() {
        let word = u64::from_le_bytes(*b"abcdefgh");
        for length in 1..=8 {
            let start = WordPrefix::new(word, length);
            assert_eq!(start.length(), length);
            for at in 0..8 {
                assert_eq!(start.begins(word ^ 1 << (8 * at)), at >= length);
            }
        }
        assert!(!WordPrefix::default().begins(0));
    }

    #[test]
    fn mask_has_a_bit_for_each_matching_byte() {
        let text: Vec<u8> = (0..150).map(|index| b"ab\0>"[(index * index / 3) % 4]).collect();
        for from in 0..text.len() {
            let mut padded = [1; BLOCK_SIZE];
            let block = block_at(&text, from, &mut padded);
            for wanted in [b'a', b'b', b'>', b'x'] {
                let is_it = |byte: u8| (byte == wanted) | (byte == b'x');
                let is_there = |at: &usize| text.get(from + at).is_some_and(|byte| is_it(*byte));
                let expected = (0..BLOCK_SIZE).filter(is_there).fold(0, |bits, at| bits | 1 << at);
                assert_eq!(mask_of(block, is_it), expected, "{wanted} from {from}");
            }
        }
    }
}
