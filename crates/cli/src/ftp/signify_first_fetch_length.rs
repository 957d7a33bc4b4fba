//! Chooses how many bytes of a signed package to fetch first. The package is a gzip file with a
//! header by signify(1) (`-z`), which contains a digest for each block of 64 KiB. The reader of the
//! package checks each block as it arrives, and may stop after any block.

/// The number of bytes of a package that one signed block of signify(1) covers.
const BLOCK: u64 = 64 << 10;
/// The number of bytes that each block of a package adds to its signature header: a line with the
/// digest of the block.
const BLOCK_LINE: u64 = 65;
/// The number of bytes that are assumed for the first lines of a package's signature header. The
/// rest of the header has one line with a digest for each block of the package.
const FIRST_LINES_BYTES: u64 = 512;

/// The number of bytes after the signature header that the reader of a package, such as signify(1),
/// has read before it can stop early: two blocks. The reader passes each block on to the next
/// program of the pipeline. If that program exits after the first block, the reader notices this
/// only when it passes on the second block.
const BLOCKS_READ_AHEAD: u64 = 2 * BLOCK;

/// The number of bytes at the beginning of a package to fetch first if the reader of the package
/// may stop early. The signature header grows with the package. For a package of up to 15 MB, these
/// bytes contain the header and the two blocks that the reader needs before it can stop.
pub(crate) const FIRST_FETCH_LENGTH: u64 = BLOCKS_READ_AHEAD + (16 << 10);

/// Returns the number of bytes at the beginning of a package that a reader such as signify(1) needs
/// before it can stop: the signature header and two signed blocks of 64 KiB. `length` is the length
/// of the whole package in bytes.
pub(crate) fn bytes_before_stop(length: u64) -> u64 {
    (BLOCKS_READ_AHEAD + FIRST_LINES_BYTES + BLOCK_LINE * length.div_ceil(BLOCK)).min(length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_fetch_covers_signature_of_15_mb_package() {
        assert_eq!(bytes_before_stop(100), 100);
        assert!(bytes_before_stop(15_000_000) <= FIRST_FETCH_LENGTH);
        assert!(bytes_before_stop(16_000_000) > FIRST_FETCH_LENGTH);
    }
}
