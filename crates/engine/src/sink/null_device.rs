//! Detection of the null device, `/dev/null`. Writes to it have no effect, so they can be skipped.
//!
//! People measure downloads with `-o /dev/null`. Without this, each TLS record or HTTP/2 frame
//! would cost a system call.

use std::os::fd::AsFd;

/// Returns true if the descriptor is that of the null device, open for writing. Returns false if
/// that cannot be determined cheaply.
#[cfg(linux_calls)]
pub(crate) fn is_null(fd: impl AsFd) -> bool {
    use rustix::fs::{FileType, OFlags, fcntl_getfl, fstat, makedev};
    // These numbers are in the kernel's Documentation/admin-guide/devices.txt.
    let null = makedev(1, 3);
    let is_null = fstat(&fd)
        .is_ok_and(|stat| stat.st_rdev == null && FileType::from_raw_mode(stat.st_mode) == FileType::CharacterDevice);
    // Writes to a descriptor that is open for reading only must fail.
    is_null && fcntl_getfl(&fd).is_ok_and(|flags| flags.intersects(OFlags::WRONLY | OFlags::RDWR))
}

#[cfg(not(linux_calls))]
pub(crate) fn is_null(_fd: impl AsFd) -> bool {
    false
}

#[cfg(all(test, linux_calls))]
mod tests {
    use std::fs::File;

    use super::*;

    #[test]
    fn null_device_is_detected_for_writing_only() {
        let for_writing = |path: &str| File::options().write(true).open(path).unwrap();
        assert!(is_null(for_writing("/dev/null")));
        assert!(!is_null(File::open("/dev/null").unwrap()));
        assert!(!is_null(for_writing("/dev/zero")));
        assert!(!is_null(tempfile::tempfile().unwrap()));
    }
}
