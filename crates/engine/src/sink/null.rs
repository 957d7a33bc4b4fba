//! Detects the null device. Bytes written to it are lost, so they need not be written.
//!
//! A download that is thrown away (`-o /dev/null`) is how people measure. Over TLS or HTTP/2 it
//! would be a call of the system for each record or frame.

use std::os::fd::AsFd;

/// Returns whether a write to this descriptor does nothing and succeeds. Returns false if that
/// cannot be found out cheaply.
#[cfg(target_os = "linux")]
pub(crate) fn is_null(fd: impl AsFd) -> bool {
    use rustix::fs::{FileType, OFlags, fcntl_getfl, fstat, makedev};
    // The kernel's Documentation/admin-guide/devices.txt gives it these numbers.
    let null = makedev(1, 3);
    let is_null = fstat(&fd)
        .is_ok_and(|stat| stat.st_rdev == null && FileType::from_raw_mode(stat.st_mode) == FileType::CharacterDevice);
    // A descriptor opened for reading refuses writes.
    is_null && fcntl_getfl(&fd).is_ok_and(|flags| flags.intersects(OFlags::WRONLY | OFlags::RDWR))
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn is_null(_fd: impl AsFd) -> bool {
    false
}

#[cfg(all(test, target_os = "linux"))]
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
