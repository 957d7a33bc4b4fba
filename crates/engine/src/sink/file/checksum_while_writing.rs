//! The checksum of a file for the record of its transfer, computed while the file is written.

use super::super::checksum::{ChecksumHasher, HashAlgorithm};

/// The checksum of one file. It is available only if the file is written from its first byte to its
/// last.
#[derive(Debug)]
pub(super) struct WrittenFileChecksum {
    algorithm: HashAlgorithm,
    /// The computation in progress; `None` if bytes may be written in another order.
    hasher: Option<ChecksumHasher>,
    /// The checksum of the complete file; `None` before the file is complete, and if it was not
    /// computed.
    found: Option<Vec<u8>>,
}

impl WrittenFileChecksum {
    pub(super) fn new(algorithm: HashAlgorithm) -> Self {
        Self { algorithm, hasher: None, found: None }
    }

    /// Begins the computation. The caller will write all bytes of the file in order.
    pub(super) fn begin(&mut self) {
        (self.hasher, self.found) = (Some(self.algorithm.hasher()), None);
    }

    /// Stops the computation without a result, because not all bytes of the file are written in
    /// order.
    pub(super) fn stop(&mut self) {
        (self.hasher, self.found) = (None, None);
    }

    /// Returns true while the computation is running. The caller must then pass it all written
    /// bytes.
    #[cfg(unix)]
    pub(super) fn is_running(&self) -> bool {
        self.hasher.is_some()
    }

    pub(super) fn update(&mut self, bytes: &[u8]) {
        if let Some(hasher) = &mut self.hasher {
            hasher.update(bytes);
        }
    }

    /// Ends the computation when the file is complete, and keeps the checksum.
    pub(super) fn finish(&mut self) {
        self.found = self.hasher.take().map(ChecksumHasher::finish);
    }

    pub(super) fn take_checksum(&mut self) -> Option<Vec<u8>> {
        self.found.take()
    }
}
