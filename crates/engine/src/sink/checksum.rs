//! Checksums, and a sink that verifies the checksum of a body while it delivers the body.
//!
//! ```
//! use haul::sink::checksum::{HashAlgorithm, ExpectedChecksum};
//! let empty = ExpectedChecksum::parse(HashAlgorithm::Sha256, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855").unwrap();
//! assert!(empty.check(&empty.hasher().finish()).is_ok());
//! ```

use std::fs::File;
use std::io;

use aws_lc_rs::digest::{self, Context};
use haul_policy::target::Target;

use super::{ResponseForSink, Sink, TransferWaker};
use crate::buffer_pool::OfferedBodyBytes;
use crate::fleet::FinishedTransferContent;
use crate::system::file_metadata_and_flags::FileExt;
use crate::{Error, ErrorKind, Result};

/// The hash algorithm of a checksum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HashAlgorithm {
    /// SHA-256.
    Sha256,
    /// SHA-384.
    Sha384,
    /// SHA-512.
    Sha512,
    /// SHA-1. It can be forged, so use it only if the publisher provides no stronger checksum.
    Sha1,
}

impl HashAlgorithm {
    /// Computes the checksum of a file's content.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn hash_file(self, file: &File) -> io::Result<Vec<u8>> {
        let mut hash = IncrementalFileHash::new(self);
        hash.hash_next(file, u64::MAX)?;
        Ok(hash.finish())
    }

    /// Makes a hasher that uses this algorithm.
    #[must_use]
    pub fn hasher(self) -> ChecksumHasher {
        ChecksumHasher { context: Context::new(self.digest_algorithm()) }
    }

    fn digest_algorithm(self) -> &'static digest::Algorithm {
        match self {
            Self::Sha256 => &digest::SHA256,
            Self::Sha384 => &digest::SHA384,
            Self::Sha512 => &digest::SHA512,
            Self::Sha1 => &digest::SHA1_FOR_LEGACY_USE_ONLY,
        }
    }
}

/// The checksum that content must have, with its hash algorithm.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExpectedChecksum {
    algorithm: HashAlgorithm,
    expected: Vec<u8>,
}

impl ExpectedChecksum {
    /// Makes an expected checksum for this algorithm. Returns `None` if the length of `expected` is
    /// wrong for the algorithm.
    #[must_use]
    pub fn new(algorithm: HashAlgorithm, expected: Vec<u8>) -> Option<Self> {
        (expected.len() == algorithm.digest_algorithm().output_len()).then_some(Self { algorithm, expected })
    }

    /// Parses a checksum from hexadecimal digits. Returns `None` if `hex` has other characters, or
    /// a wrong number of digits for the algorithm.
    #[must_use]
    pub fn parse(algorithm: HashAlgorithm, hex: &str) -> Option<Self> {
        let digits: Vec<u8> =
            hex.chars().map(|digit| digit.to_digit(16).map(|value| value as u8)).collect::<Option<_>>()?;
        let pairs = digits.chunks_exact(2);
        let whole = pairs.remainder().is_empty();
        Self::new(algorithm, pairs.map(|pair| pair[0] << 4 | pair[1]).collect()).filter(|_| whole)
    }

    /// Makes a hasher for the algorithm of this checksum.
    #[must_use]
    pub fn hasher(&self) -> ChecksumHasher {
        self.algorithm.hasher()
    }

    /// Computes the checksum of a file's content with the algorithm of this checksum.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn hash_file(&self, file: &File) -> io::Result<Vec<u8>> {
        self.algorithm.hash_file(file)
    }

    /// Compares a computed checksum with the expected one.
    ///
    /// # Errors
    /// [`ErrorKind::Checksum`] if they differ.
    pub fn check(&self, found: &[u8]) -> Result<()> {
        if found == self.expected {
            return Ok(());
        }
        let message = format!("the checksum should be {} and is {}", hex(&self.expected), hex(found));
        Err(Error::new(ErrorKind::Checksum, message))
    }
}

/// Returns a checksum as hexadecimal digits, in lower case.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A checksum computation in progress.
pub struct ChecksumHasher {
    context: Context,
}

impl std::fmt::Debug for ChecksumHasher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ChecksumHasher").finish_non_exhaustive()
    }
}

impl ChecksumHasher {
    /// Adds the next bytes of the content to the computation.
    pub fn update(&mut self, bytes: &[u8]) {
        self.context.update(bytes);
    }

    /// Ends the computation, and returns the checksum.
    #[must_use]
    pub fn finish(self) -> Vec<u8> {
        self.context.finish().as_ref().to_vec()
    }
}

/// The computation of a file's checksum, piece by piece.
#[derive(Debug)]
pub(crate) struct IncrementalFileHash {
    hasher: ChecksumHasher,
    at: u64,
}

impl IncrementalFileHash {
    pub(crate) fn new(algorithm: HashAlgorithm) -> Self {
        Self { hasher: algorithm.hasher(), at: 0 }
    }

    /// Adds up to about `most` further bytes of the file to the computation. Returns true at the
    /// end of the file.
    ///
    /// # Errors
    /// The file cannot be read.
    pub(crate) fn hash_next(&mut self, file: &File, most: u64) -> io::Result<bool> {
        let mut buffer = vec![0; 64 << 10];
        let end = self.at.saturating_add(most);
        while self.at < end {
            match file.read_at(&mut buffer, self.at) {
                Ok(0) => return Ok(true),
                Ok(n) => {
                    self.hasher.update(&buffer[..n]);
                    self.at += n as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(false)
    }

    /// Ends the computation, and returns the checksum.
    pub(crate) fn finish(self) -> Vec<u8> {
        self.hasher.finish()
    }
}

/// A sink that passes a body on to another sink, and verifies the checksum of the body. It is for
/// outputs that cannot be undone, such as standard output: a wrong checksum is reported only at the
/// end, after all bytes have been output.
pub struct ChecksumSink<S> {
    sink: S,
    checksum: ExpectedChecksum,
    hasher: ChecksumHasher,
}

impl<S: Sink> ChecksumSink<S> {
    /// Makes a sink that passes all bytes to `sink`. At the end of the body, it compares their
    /// digest with `checksum`.
    pub fn new(sink: S, checksum: ExpectedChecksum) -> Self {
        Self { hasher: checksum.hasher(), sink, checksum }
    }
}

impl<S: Sink> Sink for ChecksumSink<S> {
    fn begin(&mut self, begin: &ResponseForSink<'_>) -> Result<()> {
        self.hasher = self.checksum.hasher();
        self.sink.begin(begin)
    }

    fn credit(&mut self, waker: Option<&std::sync::Arc<dyn TransferWaker>>, token: usize) -> u64 {
        self.sink.credit(waker, token)
    }

    fn bytes(&mut self, offered: OfferedBodyBytes<'_>) -> Result<()> {
        self.hasher.update(offered.bytes());
        self.sink.bytes(offered)
    }

    fn keep_unwritten(&mut self, keeps: bool) {
        self.sink.keep_unwritten(keeps);
    }

    fn full_output(&mut self) -> Option<rustix::fd::BorrowedFd<'_>> {
        self.sink.full_output()
    }

    fn write_kept(&mut self) -> Result<()> {
        self.sink.write_kept()
    }

    fn write_error(&self, error: io::Error) -> Error {
        self.sink.write_error(error)
    }

    fn keeps_in_memory(&self) -> bool {
        self.sink.keeps_in_memory()
    }

    fn partial(&mut self, _target: &Target) -> Option<super::ExistingPartialContent> {
        None
    }

    fn restart(&mut self) -> bool {
        self.sink.restart()
    }

    fn finish(&mut self) -> Result<()> {
        let fresh = self.checksum.hasher();
        self.checksum.check(&std::mem::replace(&mut self.hasher, fresh).finish())?;
        self.sink.finish()
    }

    fn take_record(&mut self) -> Option<FinishedTransferContent> {
        self.sink.take_record()
    }

    fn file_name(&self) -> Option<&std::path::Path> {
        self.sink.file_name()
    }
}
