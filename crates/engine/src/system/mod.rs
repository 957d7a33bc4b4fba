//! The parts of Unix and Windows that differ, under the same names, so that most code elsewhere needs
//! no condition. On Unix, they are those of the standard library, or a few system calls.

#[cfg_attr(windows, path = "file_metadata_and_flags_windows.rs")]
pub mod file_metadata_and_flags;
pub(crate) mod socket_error_codes;

/// Descriptors of this system; on Windows, of sockets.
pub use rustix::fd;

#[cfg(test)]
mod tests {
    use std::fs::{self, File, OpenOptions};
    use std::io;

    use super::file_metadata_and_flags::{self, FileExt};

    #[test]
    fn lock_excludes_other_opens_of_the_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        let open = || OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path).unwrap();
        let (held, other) = (open(), open());
        file_metadata_and_flags::lock(&held).unwrap();
        assert_eq!(file_metadata_and_flags::try_lock(&other).unwrap_err().kind(), io::ErrorKind::WouldBlock);
        // The content stays accessible.
        other.write_all_at(b"content", 3).unwrap();
        let mut found = [0; 7];
        held.read_exact_at(&mut found, 3).unwrap();
        assert_eq!(&found, b"content");
        drop(held);
        file_metadata_and_flags::try_lock(&other).unwrap();
    }

    #[test]
    fn identity_tells_files_with_equal_content_apart() {
        let dir = tempfile::tempdir().unwrap();
        let [one, other, link] = ["one", "other", "link"].map(|name| dir.path().join(name));
        fs::write(&one, "same").unwrap();
        fs::write(&other, "same").unwrap();
        fs::hard_link(&one, &link).unwrap();
        let file = File::open(&one).unwrap();
        assert!(
            file_metadata_and_flags::is_file_at(&file, &link).unwrap()
                && file_metadata_and_flags::is_file_itself_at(&file, &one).unwrap()
        );
        assert!(!file_metadata_and_flags::is_file_at(&file, &other).unwrap());
        assert!(!file_metadata_and_flags::has_one_name(&file, &file.metadata().unwrap()));
        assert!(!file_metadata_and_flags::is_same_file(&file, &File::open(&other).unwrap()).unwrap());
    }
}
