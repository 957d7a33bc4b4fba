//! The parts of Unix and Windows that differ, under the same names, so that most code elsewhere needs
//! no condition. On Unix, they are those of the standard library, or a few system calls.

#[cfg_attr(windows, path = "files_windows.rs")]
pub mod files;
pub(crate) mod socket_errors;

/// Descriptors of this system; on Windows, of sockets.
pub use rustix::fd;

#[cfg(test)]
mod tests {
    use std::fs::{self, File, OpenOptions};
    use std::io;

    use super::files::{self, FileExt};

    #[test]
    fn lock_excludes_other_opens_of_the_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        let open = || OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path).unwrap();
        let (held, other) = (open(), open());
        files::lock(&held).unwrap();
        assert_eq!(files::try_lock(&other).unwrap_err().kind(), io::ErrorKind::WouldBlock);
        // The content stays accessible.
        other.write_all_at(b"content", 3).unwrap();
        let mut found = [0; 7];
        held.read_exact_at(&mut found, 3).unwrap();
        assert_eq!(&found, b"content");
        drop(held);
        files::try_lock(&other).unwrap();
    }

    #[test]
    fn identity_tells_files_with_equal_content_apart() {
        let dir = tempfile::tempdir().unwrap();
        let [one, other, link] = ["one", "other", "link"].map(|name| dir.path().join(name));
        fs::write(&one, "same").unwrap();
        fs::write(&other, "same").unwrap();
        fs::hard_link(&one, &link).unwrap();
        let file = File::open(&one).unwrap();
        assert!(files::is_file_at(&file, &link).unwrap() && files::is_file_itself_at(&file, &one).unwrap());
        assert!(!files::is_file_at(&file, &other).unwrap());
        assert!(!files::has_one_name(&file, &file.metadata().unwrap()));
        assert!(!files::is_same_file(&file, &File::open(&other).unwrap()).unwrap());
    }
}
