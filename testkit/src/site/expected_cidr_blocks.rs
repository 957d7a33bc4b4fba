//! The correct output of the first job of the bench, which collects the CIDR blocks of all pages.

use aws_lc_rs::digest;

/// The length in bytes of the longest CIDR block (an IPv4 address, a slash and a mask length) that
/// the benchmark's regular expression can match: 15 bytes, a slash, two digits.
const LONGEST: usize = 18;

/// The correct output of the benchmark that collects CIDR blocks: the distinct CIDR blocks of all
/// pages, in byte order (as by `sort -u`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExpectedCidrBlocks {
    /// The CIDR blocks, one on each line. Every line ends with a line feed.
    pub text: Vec<u8>,
    /// The number of distinct CIDR blocks.
    pub count: usize,
    /// The SHA-256 of `text`, in lower-case hex.
    pub sha256: String,
}

/// A collector of the CIDR blocks of a site. The blocks are stored as arrays padded with NUL. NUL
/// sorts before every byte of a block, so the arrays sort like the texts.
#[derive(Default)]
pub(super) struct CidrBlockCollector {
    blocks: Vec<[u8; LONGEST]>,
}

impl CidrBlockCollector {
    pub(super) fn add(&mut self, block: &[u8]) {
        let mut padded = [0; LONGEST];
        padded[..block.len()].copy_from_slice(block);
        self.blocks.push(padded);
    }

    pub(super) fn finish(mut self) -> ExpectedCidrBlocks {
        self.blocks.sort_unstable();
        self.blocks.dedup();
        let mut text = Vec::with_capacity(self.blocks.len() * LONGEST);
        for block in &self.blocks {
            let len = block.iter().position(|b| *b == 0).unwrap_or(LONGEST);
            text.extend_from_slice(&block[..len]);
            text.push(b'\n');
        }
        ExpectedCidrBlocks { count: self.blocks.len(), sha256: sha256_hex(&text), text }
    }
}

fn sha256_hex(bytes: &[u8]) -> String {
    let digest = digest::digest(&digest::SHA256, bytes);
    digest.as_ref().iter().map(|b| format!("{b:02x}")).collect()
}
