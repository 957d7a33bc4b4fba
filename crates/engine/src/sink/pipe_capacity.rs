//! Sets the capacity of a pipe.
//!
//! ```
//! let (_reader, writer) = std::io::pipe()?;
//! // If the system cannot do it, and at the second call, the capacity does not change.
//! haul::sink::pipe_capacity::enlarge(&writer);
//! assert!(!haul::sink::pipe_capacity::enlarge(&writer));
//! # Ok::<(), std::io::Error>(())
//! ```

use rustix::fd::AsFd;

/// The largest pipe capacity in bytes that Linux allows every user by default.
#[cfg(linux_calls)]
const MAX_USER_CAPACITY: usize = 1 << 20;

/// Enlarges the capacity of a pipe to the maximum that every user may set. With 64 KiB, a pipe
/// would always be full, so its writer and its reader would wake often to move few bytes. Other
/// processes that share the pipe are not affected. Returns true if the capacity has become larger.
/// If the system refuses, the capacity is unchanged.
pub fn enlarge(pipe: impl AsFd) -> bool {
    #[cfg(linux_calls)]
    return rustix::pipe::fcntl_getpipe_size(&pipe).is_ok_and(|size| size < MAX_USER_CAPACITY)
        && rustix::pipe::fcntl_setpipe_size(pipe, MAX_USER_CAPACITY).is_ok();
    #[cfg(not(linux_calls))]
    {
        let _ = pipe;
        false
    }
}

#[cfg(all(test, linux_calls))]
mod tests {
    use super::*;

    #[test]
    fn pipe_is_enlarged_once_and_file_never() {
        let (_reader, writer) = std::io::pipe().unwrap();
        assert!(enlarge(&writer));
        assert!(!enlarge(&writer), "it is as wide as it gets");
        assert!(!enlarge(tempfile::tempfile().unwrap()));
    }
}
