//! The block sizes of signify(1), whose gzip signatures (`-z`) cover a package block by block. The
//! reader of a package checks each block as it comes, and may stop after any of them.

/// The bytes that one signed block covers.
const BLOCK: u64 = 64 << 10;
/// The length of a block's line in the signature header.
const BLOCK_LINE: u64 = 65;
/// The length of the header lines before the lines of the blocks.
const HEADER_LINES: u64 = 512;

/// The bytes that a block-checking reader has read before it can notice that its own reader is
/// gone.
const BLOCKS_READ_AHEAD: u64 = 2 * BLOCK;

/// The length of the first piece of content that its reader may not read to the end: two blocks,
/// and the signature header of packages of up to 15 MB.
pub(crate) const OPENING: u64 = BLOCKS_READ_AHEAD + (16 << 10);

/// Returns how many bytes of a package of this length its reader needs before it can decide to
/// stop: the signature header and two blocks.
pub(crate) fn bytes_before_stop(length: u64) -> u64 {
    (BLOCKS_READ_AHEAD + HEADER_LINES + BLOCK_LINE * length.div_ceil(BLOCK)).min(length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn opening_covers_the_signature_header_of_15_mb() {
        assert_eq!(bytes_before_stop(100), 100);
        assert!(bytes_before_stop(15_000_000) <= OPENING);
        assert!(bytes_before_stop(16_000_000) > OPENING);
    }
}
