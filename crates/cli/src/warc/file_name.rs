//! The names of an archive's files: a single file with the given name or, with `--warc-max-size`,
//! numbered files.
//!
//! ```
//! use haul_cli::warc::file_name::ArchiveName;
//!
//! let name = ArchiveName::new("crawl.warc.gz".into(), true);
//! assert_eq!(name.file_path(0).to_str(), Some("crawl-00000.warc.gz"));
//! assert!(name.is_compressed());
//! ```

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use haul::sink::temporary_and_final_names::directory_of;

use crate::system::os_text::{OsStrExt, OsStringExt};

/// The minimum number of digits in the name of a numbered file.
const DIGITS: usize = 5;

/// The name of an archive, from which the names of its files are derived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArchiveName {
    path: PathBuf,
    is_numbered: bool,
}

impl ArchiveName {
    /// Creates the name of an archive whose files have numbers if `is_numbered` is true.
    pub fn new(path: PathBuf, is_numbered: bool) -> ArchiveName {
        ArchiveName { path, is_numbered }
    }

    /// Returns true if each record is compressed, because the name ends in `.gz`.
    pub fn is_compressed(&self) -> bool {
        self.path.as_os_str().as_bytes().ends_with(b".gz")
    }

    /// Returns the directory of the archive.
    pub fn directory(&self) -> &Path {
        directory_of(&self.path)
    }

    /// Returns the path of the file with this number, counted from 0.
    pub fn file_path(&self, number: u32) -> PathBuf {
        if !self.is_numbered {
            return self.path.clone();
        }
        let (stem, suffix) = self.parts();
        let name = [stem, format!("-{number:0DIGITS$}").as_bytes(), suffix].concat();
        self.path.with_file_name(OsString::from_vec(name))
    }

    /// Returns true if a file with this name in the archive's directory is, or could be mistaken
    /// for, one of the archive's files.
    pub fn has_file(&self, name: &OsStr) -> bool {
        let (stem, suffix) = self.parts();
        let number = name.as_bytes().strip_prefix(stem).and_then(|rest| rest.strip_suffix(suffix));
        match number {
            Some([b'-', digits @ ..]) if self.is_numbered => {
                digits.len() >= DIGITS && digits.iter().all(u8::is_ascii_digit)
            }
            _ => !self.is_numbered && self.path.file_name() == Some(name),
        }
    }

    /// Returns true if the file at this path is, or could be mistaken for, one of the archive's
    /// files. The path may have any spelling, and may be a symbolic link.
    pub fn has_path(&self, path: &Path) -> bool {
        let linked = path.is_symlink().then(|| path.canonicalize().ok()).flatten();
        let path = linked.as_deref().unwrap_or(path);
        let is_in_directory = || {
            let directories = [directory_of(path), self.directory()].map(Path::canonicalize);
            matches!(directories, [Ok(of_path), Ok(of_archive)] if of_path == of_archive)
        };
        path.file_name().is_some_and(|name| self.has_file(name)) && is_in_directory()
    }

    /// Returns the file's name in two parts, between which the number of a file is inserted. The
    /// second part is `.warc`, `.warc.gz`, or the last extension.
    fn parts(&self) -> (&[u8], &[u8]) {
        let name = self.path.file_name().unwrap_or_default().as_bytes();
        let plain = name.strip_suffix(b".gz").unwrap_or(name);
        let stem = plain.strip_suffix(b".warc").unwrap_or(plain);
        match stem.len() == name.len() {
            false => name.split_at(stem.len()),
            true => name.split_at(self.path.file_stem().unwrap_or_default().len()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn archive_file_number_precedes_the_extension() {
        for (given, first) in [
            ("a.warc", "a-00000.warc"),
            ("d/a.warc.gz", "d/a-00000.warc.gz"),
            ("a.b.gz", "a.b-00000.gz"),
            ("a", "a-00000"),
            ("a.b", "a-00000.b"),
            (".warc", "-00000.warc"),
        ] {
            let name = ArchiveName::new(given.into(), true);
            assert_eq!(name.file_path(0), Path::new(first), "{given}");
            assert!(name.has_file(Path::new(first).file_name().unwrap()), "{given}");
            assert_eq!(ArchiveName::new(given.into(), false).file_path(7), Path::new(given));
        }
        assert_eq!(ArchiveName::new("a.warc".into(), true).file_path(123_456), Path::new("a-123456.warc"));
    }

    #[test]
    fn archive_file_is_recognized_in_any_spelling() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        std::fs::create_dir(path("d")).unwrap();
        let name = ArchiveName::new(path("a.warc"), true);
        assert!(name.has_path(&path("a-00000.warc")) && name.has_path(&path("d/../a-00001.warc")));
        assert!(!name.has_path(&path("d/a-00000.warc")) && !name.has_path(&path("a.warc")));
    }

    #[test]
    fn files_of_other_archives_are_not_matched() {
        let name = ArchiveName::new("a.warc".into(), true);
        for other in ["a.warc", "a-0001.warc", "a-00001.warc.gz", "ab-00001.warc", "a-0000x.warc", "a-.warc"] {
            assert!(!name.has_file(OsStr::new(other)), "{other}");
        }
        let name = ArchiveName::new("d/a.warc".into(), false);
        assert!(name.has_file(OsStr::new("a.warc")) && !name.has_file(OsStr::new("a-00000.warc")));
        assert_eq!(
            (name.directory(), ArchiveName::new("a".into(), false).directory()),
            (Path::new("d"), Path::new("."))
        );
    }
}
