//! The right answer to the whole job.

use aws_lc_rs::digest;

/// The longest block the expression can find: 15 bytes, a slash, two digits.
const LONGEST: usize = 18;

/// The output of `… | LC_ALL=C sort -u` if the job is done right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownAnswer {
    /// The blocks, one a line, each line ended.
    pub text: Vec<u8>,
    /// The number of blocks.
    pub count: usize,
    /// SHA-256 of `text`, in lower-case hex.
    pub sha256: String,
}

/// Padded with NUL, which sorts before every byte of a block: array order is byte order.
#[derive(Default)]
pub(super) struct BlockCollector {
    blocks: Vec<[u8; LONGEST]>,
}

impl BlockCollector {
    pub(super) fn add(&mut self, block: &[u8]) {
        let mut padded = [0; LONGEST];
        padded[..block.len()].copy_from_slice(block);
        self.blocks.push(padded);
    }

    pub(super) fn finish(mut self) -> KnownAnswer {
        self.blocks.sort_unstable();
        self.blocks.dedup();
        let mut text = Vec::with_capacity(self.blocks.len() * LONGEST);
        for block in &self.blocks {
            let len = block.iter().position(|b| *b == 0).unwrap_or(LONGEST);
            text.extend_from_slice(&block[..len]);
            text.push(b'\n');
        }
        KnownAnswer { count: self.blocks.len(), sha256: sha256_hex(&text), text }
    }
}

fn sha256_hex(bytes: &[u8]) -> String {
    let digest = digest::digest(&digest::SHA256, bytes);
    digest.as_ref().iter().map(|b| format!("{b:02x}")).collect()
}
