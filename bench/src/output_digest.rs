//! The length and the SHA-256 digest of a program's output. The bench compares them with those of
//! the expected output.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use aws_lc_rs::digest::{Context, SHA256};

/// The length and the SHA-256 digest of an output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OutputDigest {
    pub(crate) len: u64,
    pub(crate) sha256: String,
}

/// Computes an [`OutputDigest`] from pieces of output.
pub(crate) struct OutputDigester {
    len: u64,
    context: Context,
}

impl OutputDigester {
    pub(crate) fn new() -> OutputDigester {
        OutputDigester { len: 0, context: Context::new(&SHA256) }
    }

    pub(crate) fn add(&mut self, bytes: &[u8]) {
        self.len += bytes.len() as u64;
        self.context.update(bytes);
    }

    /// Reads `reader` to its end, and adds all bytes to the digest.
    pub(crate) fn read_all(&mut self, reader: &mut impl Read) -> io::Result<()> {
        let mut buffer = vec![0; 256 << 10];
        loop {
            match reader.read(&mut buffer)? {
                0 => return Ok(()),
                len => self.add(&buffer[..len]),
            }
        }
    }

    pub(crate) fn finish(self) -> OutputDigest {
        let sha256 = self.context.finish().as_ref().iter().map(|b| format!("{b:02x}")).collect();
        OutputDigest { len: self.len, sha256 }
    }
}

impl OutputDigest {
    pub(crate) fn from_bytes(bytes: &[u8]) -> OutputDigest {
        let mut printer = OutputDigester::new();
        printer.add(bytes);
        printer.finish()
    }

    /// Returns the digest as one line, which another process can [`parse`](OutputDigest::parse).
    pub(crate) fn to_line(&self) -> String {
        format!("{} {}\n", self.len, self.sha256)
    }

    pub(crate) fn parse(line: &str) -> Option<OutputDigest> {
        let (len, sha256) = line.trim().split_once(' ')?;
        Some(OutputDigest { len: len.parse().ok()?, sha256: sha256.to_owned() })
    }

    pub(crate) fn from_file(path: &Path) -> io::Result<OutputDigest> {
        OutputDigest::from_reader(&mut File::open(path)?)
    }

    pub(crate) fn from_reader(reader: &mut impl Read) -> io::Result<OutputDigest> {
        let mut printer = OutputDigester::new();
        printer.read_all(reader)?;
        Ok(printer.finish())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_digest_equals_the_published_one() {
        let print = OutputDigest::from_bytes(b"");
        assert_eq!(print.len, 0);
        assert!(print.sha256.starts_with("e3b0c44298fc1c14"));
        assert_ne!(print, OutputDigest::from_bytes(b"a"));
        assert_eq!(OutputDigest::parse(&print.to_line()), Some(print));
        assert_eq!(OutputDigest::parse(""), None);
    }
}
