//! Large bodies on disk. Their bytes are testkit's pattern, which is incompressible and does not
//! repeat.
//!
//! The embedded server has the same bodies at the same paths (`/bytes/N`), so both servers answer
//! the same URL. A body is generated once; its digest is stored beside it.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use testkit::byte_pattern::BytePattern;

use crate::Result;
use crate::output_digest::{OutputDigest, OutputDigester};

/// The number of bytes of a body that are generated and written at a time.
const PIECE: usize = 1 << 20;

/// Generated large bodies, stored as files in one directory. A seed determines their bytes.
pub(crate) struct LargeBodyFiles {
    root: PathBuf,
    pattern: BytePattern,
}

impl LargeBodyFiles {
    /// Creates the directory below `work` for the bodies that are generated from `seed`.
    pub(crate) fn new(work: &Path, seed: u64) -> Result<LargeBodyFiles> {
        let root = work.join(format!("bodies-{seed}"));
        fs::create_dir_all(root.join("bytes"))?;
        Ok(LargeBodyFiles { root, pattern: BytePattern::new(seed) })
    }

    /// Returns the directory of the body files, from which the server serves them.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// Returns the URL path of the body of `len` bytes.
    pub(crate) fn path(len: u64) -> String {
        format!("/bytes/{len}")
    }

    /// Generates the file of the body of `len` bytes, unless it exists with a stored digest.
    /// Returns the digest of the body.
    pub(crate) fn prepare(&self, len: u64) -> Result<OutputDigest> {
        let file = self.root.join("bytes").join(len.to_string());
        let note = file.with_extension("sha256");
        if let (Ok(meta), Ok(sha256)) = (file.metadata(), fs::read_to_string(&note))
            && meta.len() == len
        {
            return Ok(OutputDigest { len, sha256 });
        }
        println!("making a body of {} MB", len / 1_000_000);
        let print = self.write(len, &file)?;
        // The digest is written last, because a file without a digest is generated again.
        fs::write(note, &print.sha256)?;
        Ok(print)
    }

    /// Creates a sparse file of `len` bytes as a body, if it does not exist yet. No job checks the
    /// bytes of such a body.
    pub(crate) fn create_sparse_body(&self, len: u64) -> Result<()> {
        let file = self.root.join("bytes").join(len.to_string());
        if !file.metadata().is_ok_and(|meta| meta.len() == len) {
            File::create(file)?.set_len(len)?;
        }
        Ok(())
    }

    fn write(&self, len: u64, path: &Path) -> Result<OutputDigest> {
        let mut file = File::create(path)?;
        let mut printer = OutputDigester::new();
        let mut buffer = vec![0; PIECE];
        let mut offset = 0;
        while offset < len {
            let piece = &mut buffer[..(len - offset).min(PIECE as u64) as usize];
            self.pattern.fill(offset, piece);
            file.write_all(piece)?;
            printer.add(piece);
            offset += piece.len() as u64;
        }
        file.sync_all()?;
        Ok(printer.finish())
    }

    /// Returns the digest of `times` concatenated copies of the body of `len` bytes.
    pub(crate) fn repeated(&self, len: u64, times: usize) -> Result<OutputDigest> {
        self.prepare(len)?;
        let mut printer = OutputDigester::new();
        for _ in 0..times {
            printer.read_all(&mut File::open(self.root.join("bytes").join(len.to_string()))?)?;
        }
        Ok(printer.finish())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn truncated_body_is_generated_again() {
        let work = std::env::temp_dir().join(format!("haul-bench-bodies-{}", std::process::id()));
        let bodies = LargeBodyFiles::new(&work, 3).unwrap();
        let len = PIECE as u64 + 5;
        let expected = OutputDigest::from_bytes(&BytePattern::new(3).slice(0, PIECE + 5));
        assert_eq!(bodies.prepare(len).unwrap(), expected);
        let file = bodies.root().join(&LargeBodyFiles::path(len)[1..]);
        File::options().write(true).open(&file).unwrap().set_len(7).unwrap();
        assert_eq!(bodies.prepare(len).unwrap(), expected);
        assert_eq!(OutputDigest::from_file(&file).unwrap(), expected);
        assert_eq!(
            bodies.repeated(len, 2).unwrap(),
            OutputDigest::from_bytes(&BytePattern::new(3).slice(0, PIECE + 5).repeat(2))
        );
        fs::remove_dir_all(work).unwrap();
    }
}
