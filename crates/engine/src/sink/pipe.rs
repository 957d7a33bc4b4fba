//! The capacity of a pipe.
//!
//! ```
//! let (_reader, writer) = std::io::pipe()?;
//! // Where the system has no such call, and the second time, it is no wider than before.
//! haul::sink::pipe::widen(&writer);
//! assert!(!haul::sink::pipe::widen(&writer));
//! # Ok::<(), std::io::Error>(())
//! ```

use std::os::fd::AsFd;

/// The largest capacity that the system allows every user by default.
#[cfg(target_os = "linux")]
const WIDE: usize = 1 << 20;

/// Makes a pipe as wide as may be: one of 64 KiB is full all the time, and each wake-up of its
/// writer or its reader moves less. It may be shared with other processes, but its size is not
/// visible to them. Returns whether it is larger now; if the system refuses, it stays as it was.
pub fn widen(pipe: impl AsFd) -> bool {
    #[cfg(target_os = "linux")]
    return rustix::pipe::fcntl_getpipe_size(&pipe).is_ok_and(|size| size < WIDE)
        && rustix::pipe::fcntl_setpipe_size(pipe, WIDE).is_ok();
    #[cfg(not(target_os = "linux"))]
    {
        let _ = pipe;
        false
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn pipe_is_widened_once_and_file_never() {
        let (_reader, writer) = std::io::pipe().unwrap();
        assert!(widen(&writer));
        assert!(!widen(&writer), "it is as wide as it gets");
        assert!(!widen(tempfile::tempfile().unwrap()));
    }
}
