//! Detection of the null device, `/dev/null`. Writes to it have no effect, so they can be skipped.
//!
//! People measure downloads with `-o /dev/null`. Without this detection, each TLS record or HTTP/2
//! frame would cost a system call. Another benefit: a body that is written to the null device can
//! be fetched again after a failure, while one that was written to another device cannot.

#[cfg(unix)]
use rustix::fs::{FileType, OFlags, fcntl_getfl, fstat};

/// Returns true if the descriptor is the null device and is open for writing.
#[cfg(unix)]
pub(crate) fn is_null_device(fd: impl rustix::fd::AsFd) -> bool {
    let is_null = fstat(&fd).is_ok_and(|stat| {
        FileType::from_raw_mode(stat.st_mode) == FileType::CharacterDevice && has_null_device_number(&stat)
    });
    // Writes to a descriptor that is open for reading only must fail.
    is_null && fcntl_getfl(&fd).is_ok_and(|flags| flags.intersects(OFlags::WRONLY | OFlags::RDWR))
}

/// Returns false: a file on Windows does not tell whether it is the null device.
#[cfg(windows)]
pub(crate) fn is_null_device(_file: &std::fs::File) -> bool {
    false
}

/// Returns true if the file of `stat` has the device number of `/dev/null`. Linux documents the
/// number in Documentation/admin-guide/devices.txt.
#[cfg(linux_calls)]
fn has_null_device_number(stat: &rustix::fs::Stat) -> bool {
    stat.st_rdev == rustix::fs::makedev(1, 3)
}

/// Returns true if the file of `stat` has the device number of `/dev/null`, which differs between
/// systems.
#[cfg(all(unix, not(linux_calls)))]
fn has_null_device_number(stat: &rustix::fs::Stat) -> bool {
    use std::sync::OnceLock;

    static NULL_DEVICE: OnceLock<Option<rustix::fs::Stat>> = OnceLock::new();
    let null = NULL_DEVICE.get_or_init(|| rustix::fs::stat("/dev/null").ok());
    null.as_ref().is_some_and(|null| null.st_rdev == stat.st_rdev)
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;

    #[test]
    fn null_device_is_detected_only_for_writing() {
        let for_writing = |path: &str| File::options().write(true).open(path).unwrap();
        assert!(is_null_device(for_writing("/dev/null")));
        assert!(!is_null_device(File::open("/dev/null").unwrap()));
        assert!(!is_null_device(for_writing("/dev/zero")));
        assert!(!is_null_device(tempfile::tempfile().unwrap()));
    }
}
