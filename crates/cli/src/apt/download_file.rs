//! Writes a download directly to the file that apt names, so that apt can show the progress. The
//! file has the server's modification time from its first byte on, so that an interrupted download
//! can be resumed.

use std::fs::{File, FileTimes, OpenOptions};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::Path;
use std::time::SystemTime;

use haul::sink::checksum::{ChecksumHasher, ExpectedChecksum, HashAlgorithm};
use haul::{Error, ErrorKind, Response};
use haul_policy::range::content_range;
use md5::{Digest as _, Md5};

use super::message::AptMessage;

/// The names of the digests that apt can require. A request of apt can have a field `Expected-NAME`
/// for each of them.
const DIGEST_NAMES: [&str; 4] = ["MD5Sum", "SHA1", "SHA256", "SHA512"];

/// The digests that cannot be forged, unlike MD5 and SHA-1.
const TRUSTED_DIGESTS: [&str; 2] = ["SHA256", "SHA512"];

/// The size and modification time of a partial file from an earlier, interrupted download.
#[derive(Debug, Clone, Copy)]
pub(super) struct PartialFileSizeAndTime {
    pub(super) size: u64,
    pub(super) modified: SystemTime,
}

impl PartialFileSizeAndTime {
    /// Returns the size and modification time of the file at a path. Returns `None` if the file is
    /// missing or empty.
    pub(super) fn read(path: &Path) -> Option<Self> {
        let metadata = path.symlink_metadata().ok().filter(|metadata| metadata.is_file() && metadata.len() > 0)?;
        Some(Self { size: metadata.len(), modified: metadata.modified().ok()? })
    }
}

/// Returns the message fields for apt that contain the size and the digests of the file at `path`.
/// `asked` is apt's request. The digests that this request expects are computed; if none of
/// [`TRUSTED_DIGESTS`] is among them, all of [`DIGEST_NAMES`] are computed.
pub(super) fn file_digests(path: &Path, asked: &AptMessage) -> io::Result<Vec<(String, String)>> {
    let mut hashers = FileHashers::new(asked);
    let size = io::copy(&mut File::open(path)?, &mut hashers)?;
    Ok(hashers.fields(size))
}

/// Returns true if the existing file at `path`, of `size` bytes, has the size and digests that apt
/// expects, so that no request to the server is needed.
pub(super) fn is_complete_file(path: &Path, size: u64, asked: &AptMessage) -> bool {
    expected_size(asked) == Some(size) && has_expected_digest(path, asked)
}

/// Returns true if the file at `path` has the SHA-256 and SHA-512 digests that apt's request `asked`
/// expects. One of them may be missing in the request. Returns false if both are missing.
pub(super) fn has_expected_digest(path: &Path, asked: &AptMessage) -> bool {
    let found = file_digests(path, asked).unwrap_or_default();
    let expected = |name: &&str| Some((format!("{name}-Hash"), expected_digest(asked, name)?.to_ascii_lowercase()));
    has_trusted_digest(asked) && TRUSTED_DIGESTS.iter().filter_map(expected).all(|field| found.contains(&field))
}

/// Returns true if apt's request expects at least one of the digests in [`TRUSTED_DIGESTS`].
pub(super) fn has_trusted_digest(asked: &AptMessage) -> bool {
    TRUSTED_DIGESTS.iter().any(|name| expected_digest(asked, name).is_some())
}

/// Returns the value of the field `Expected-NAME` in apt's request: the expected size or digest.
/// Returns `None` if the request has no such field.
fn expected_digest<'a>(asked: &'a AptMessage, name: &str) -> Option<&'a str> {
    asked.get(&format!("Expected-{name}"))
}

fn expected_size(asked: &AptMessage) -> Option<u64> {
    expected_digest(asked, "Checksum-FileSize").and_then(|size| size.parse().ok()).filter(|size| *size > 0)
}

/// Returns the size in bytes that apt expects of the file, if it differs from `size`, the size that
/// the server announces. Returns `None` if the two are equal, or if apt expects no size.
pub(super) fn wanted_size(asked: &AptMessage, size: u64) -> Option<u64> {
    expected_size(asked).filter(|expected| *expected != size)
}

/// Keeps the partial file of a failed download, or creates an empty file if none exists: apt moves
/// the file aside for inspection.
pub(super) fn keep_partial_file(path: &Path) {
    let _ = OpenOptions::new().create(true).append(true).open(path);
}

/// Returns true if the `Content-Range` of a 416 response says that the complete content has `size`
/// bytes.
pub(super) fn ends_at(response: &Response, size: u64) -> bool {
    let range = response.head().get("content-range").and_then(content_range::parse);
    range.is_some_and(|range| range.span.is_none() && range.total == Some(size))
}

/// Returns true if the `Content-Range` of the response begins at the offset `first`.
pub(super) fn begins_at(response: &Response, first: u64) -> bool {
    let range = response.head().get("content-range").and_then(content_range::parse);
    range.and_then(|range| range.span).is_some_and(|span| span.start == first)
}

/// Writes the content of a response to the file at `path`, after the first `start` bytes of the
/// file, and sets the file's modification time to `date`. Returns the message fields for apt with
/// the size and the digests of the whole file.
pub(super) fn receive_to_file(
    response: &mut Response,
    path: &Path,
    start: u64,
    date: Option<SystemTime>,
    asked: &AptMessage,
) -> Result<Vec<(String, String)>, Error> {
    let cannot =
        |error: io::Error| Error::with_source(ErrorKind::Write, format!("failed to write {}", path.display()), error);
    let mut writer = DatedHashingFile::open(path, start, date, FileHashers::new(asked)).map_err(cannot)?;
    let taken = response.copy_to(&mut writer);
    if taken.is_err() && date.is_none() {
        // Nothing could tell later whether it is the same content.
        let _ = std::fs::remove_file(path);
    }
    let length = taken?;
    // Also where nothing was written.
    writer.set_modification_time().map_err(cannot)?;
    Ok(writer.hashers.fields(start + length))
}

/// A file that is being written with a fixed modification time, which is set again after each
/// write. The digests of the written content are computed, too.
struct DatedHashingFile {
    file: File,
    hashers: FileHashers,
    times: Option<FileTimes>,
}

impl DatedHashingFile {
    fn open(path: &Path, start: u64, date: Option<SystemTime>, mut hashers: FileHashers) -> io::Result<Self> {
        let mut file = OpenOptions::new().read(true).write(true).create(true).truncate(start == 0).open(path)?;
        if start > 0 {
            file.set_len(start)?;
            io::copy(&mut file, &mut hashers)?;
        }
        file.seek(SeekFrom::Start(start))?;
        Ok(Self { file, hashers, times: date.map(|date| FileTimes::new().set_modified(date).set_accessed(date)) })
    }

    fn set_modification_time(&self) -> io::Result<()> {
        self.times.map_or(Ok(()), |times| self.file.set_times(times))
    }
}

impl Write for DatedHashingFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write_all(bytes)?;
        self.set_modification_time()?;
        self.hashers.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Computes several digests (MD5 to SHA-512) of the same bytes of a file.
struct FileHashers(Vec<(&'static str, RunningDigest)>);

/// The state of one digest that is being computed.
enum RunningDigest {
    Md5(Md5),
    Sha(ChecksumHasher),
}

impl RunningDigest {
    fn from_name(name: &str) -> Option<Self> {
        // Only apt knows the expected hash.
        let sha = |algorithm, length| Some(Self::Sha(ExpectedChecksum::new(algorithm, vec![0; length])?.hasher()));
        match name {
            "SHA512" => sha(HashAlgorithm::Sha512, 64),
            "SHA256" => sha(HashAlgorithm::Sha256, 32),
            "SHA1" => sha(HashAlgorithm::Sha1, 20),
            _ => Some(Self::Md5(Md5::new())),
        }
    }

    fn update(&mut self, bytes: &[u8]) {
        match self {
            Self::Md5(md5) => md5.update(bytes),
            Self::Sha(hasher) => hasher.update(bytes),
        }
    }

    fn finish(self) -> String {
        let bytes = match self {
            Self::Md5(md5) => md5.finalize().to_vec(),
            Self::Sha(hasher) => hasher.finish(),
        };
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

impl FileHashers {
    /// Creates the hashers for the digests that apt expects. If apt expects none of
    /// [`TRUSTED_DIGESTS`], all digests are computed.
    fn new(asked: &AptMessage) -> Self {
        let asked_for =
            DIGEST_NAMES.iter().filter(|name| !has_trusted_digest(asked) || expected_digest(asked, name).is_some());
        Self(asked_for.filter_map(|name| Some((*name, RunningDigest::from_name(name)?))).collect())
    }

    fn fields(self, size: u64) -> Vec<(String, String)> {
        let size = [("Size".to_owned(), size.to_string()), ("Checksum-FileSize-Hash".to_owned(), size.to_string())];
        let digests = self.0.into_iter().map(|(name, hasher)| (format!("{name}-Hash"), hasher.finish()));
        size.into_iter().chain(digests).collect()
    }
}

impl Write for FileHashers {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.iter_mut().for_each(|(_, hasher)| hasher.update(bytes));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
