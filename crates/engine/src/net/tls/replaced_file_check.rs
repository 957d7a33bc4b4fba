//! Detects that files named in the TLS options were replaced: programs may run for months, and
//! certificates are renewed meanwhile.
//!
//! ```text
//!   new connection ─▶ context of these options ─▶ its files as they were? ── yes, or looked at within a second ─▶ that context
//!                                                          └────────────── no ─▶ read again, a new context, no old tickets
//! ```
//!
//! Rejected: notifications by the system (inotify), which need a descriptor and a thread. One
//! `stat` per second has the same effect.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use super::options_and_context_cache::TlsOptions;
use crate::system::file_metadata_and_flags::MetadataExt;

/// The time for which files are assumed to be unchanged after a check.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// The part of a file's metadata that shows whether the file was replaced or written to. For a
/// directory, it shows whether an entry was added, removed or renamed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FileStamp {
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

/// The metadata of several files at one time. An entry is `None` for a file that does not exist.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct FileStamps(Vec<Option<FileStamp>>);

impl FileStamps {
    /// Reads the metadata of the files at these paths.
    pub(super) fn read<'a>(paths: impl IntoIterator<Item = &'a Path>) -> Self {
        Self(paths.into_iter().map(FileStamp::read).collect())
    }

    /// Returns true if the metadata of a file is different in `now`. A file that is missing in
    /// `now` counts as unchanged, so its last content stays in use.
    pub(super) fn differs_from(&self, now: &Self) -> bool {
        self.0.iter().zip(&now.0).any(|(then, now)| now.is_some() && now != then)
    }

    /// Appends the metadata in `others`, and returns the result.
    pub(super) fn joined_with(mut self, others: &Self) -> Self {
        self.0.extend_from_slice(&others.0);
        self
    }
}

impl FileStamp {
    fn read(path: &Path) -> Option<Self> {
        let data = fs::metadata(path).ok()?;
        Some(Self {
            device: data.dev(),
            inode: data.ino(),
            size: data.size(),
            modified: (data.mtime(), data.mtime_nsec()),
            changed: (data.ctime(), data.ctime_nsec()),
        })
    }
}

/// Returns the paths of the files and directories with trusted certificates and revocation lists.
/// There are none if the system's certificates are used.
pub(super) fn trust_files(options: &TlsOptions) -> impl Iterator<Item = &Path> {
    let is_used = options.verify || options.examine;
    [&options.ca_file, &options.ca_path, &options.crl_file]
        .into_iter()
        .flatten()
        .filter(move |_| is_used)
        .map(|path| &**path)
}

/// Returns the paths of the files with the client's certificate and key.
pub(super) fn identity_files(options: &TlsOptions) -> impl Iterator<Item = &Path> {
    let identity = options.identity.as_ref().filter(|_| options.identity_pem.is_none());
    identity
        .into_iter()
        .flat_map(|identity| [Some(&identity.certificate), identity.key.as_ref()])
        .flatten()
        .map(|path| &**path)
}

/// A value that was made from the content of files, with the metadata of these files at that time.
/// A change of the metadata means that the value is outdated.
#[derive(Debug)]
pub(super) struct FileBacked<T> {
    pub(super) value: T,
    pub(super) stamps: FileStamps,
    /// The time of the last check whether the files have changed.
    looked: Instant,
}

impl<T> FileBacked<T> {
    pub(super) fn new(value: T, stamps: FileStamps) -> Self {
        Self { value, stamps, looked: Instant::now() }
    }

    /// Returns true if the files at `paths` are unchanged since they were read. Checks them at most
    /// once in [`CHECK_INTERVAL`].
    pub(super) fn is_current<'a>(&mut self, paths: impl IntoIterator<Item = &'a Path>) -> bool {
        if self.stamps.0.is_empty() || self.looked.elapsed() < CHECK_INTERVAL {
            return true;
        }
        self.looked = Instant::now();
        !self.stamps.differs_from(&FileStamps::read(paths))
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    #[test]
    fn only_changed_files_differ() {
        let directory = tempfile::tempdir().unwrap();
        let [one, two] = ["one", "two"].map(|name| directory.path().join(name));
        fs::write(&one, "content").unwrap();
        let read = || FileStamps::read([&*one, &*two]);
        let first = read();
        assert!(!first.differs_from(&read()));
        fs::write(&two, "new").unwrap();
        let second = read();
        assert!(first.differs_from(&second), "the second file is new");
        fs::remove_file(&one).unwrap();
        assert!(!second.differs_from(&read()), "a removed file counts as unchanged");
        assert!(FileStamps::default().joined_with(&first).differs_from(&second));
    }

    #[test]
    fn replaced_file_is_noticed_once_the_check_is_due() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("file");
        fs::write(&file, "first").unwrap();
        let stamps = FileStamps::read([&*file]);
        fs::write(&file, "the second").unwrap();
        let looked_at = |looked| FileBacked { value: (), stamps: stamps.clone(), looked };
        let (now, hour) = (Instant::now(), Duration::from_secs(3600));
        assert!(looked_at(now + hour).is_current([&*file]), "just checked");
        let Some(long_ago) = now.checked_sub(CHECK_INTERVAL) else { return };
        assert!(!looked_at(long_ago).is_current([&*file]));
        let mut without_files = FileBacked { value: (), stamps: FileStamps::default(), looked: long_ago };
        assert!(without_files.is_current([]));
    }

    #[test]
    fn files_that_are_not_used_are_not_checked() {
        let path = |name: &str| Some(PathBuf::from(name));
        let mut options = TlsOptions {
            ca_file: path("ca"),
            ca_path: path("directory"),
            crl_file: path("lists"),
            identity: Some(super::super::ClientCertificateFiles { certificate: "me".into(), key: path("key") }),
            ..TlsOptions::default()
        };
        let trust = |options: &TlsOptions| trust_files(options).map(Path::to_owned).collect::<Vec<_>>();
        let identity = |options: &TlsOptions| identity_files(options).map(Path::to_owned).collect::<Vec<_>>();
        assert_eq!(trust(&options), ["ca", "directory", "lists"].map(PathBuf::from));
        assert_eq!(identity(&options), ["me", "key"].map(PathBuf::from));
        (options.verify, options.examine) = (false, true);
        assert_eq!(trust(&options).len(), 3);
        options.examine = false;
        options.identity_pem = Some(super::super::Pem::new(&b"pem"[..]));
        assert!(trust(&options).is_empty() && identity(&options).is_empty());
    }
}
