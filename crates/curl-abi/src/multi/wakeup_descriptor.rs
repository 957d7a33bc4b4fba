//! A descriptor by which one thread notifies another that there is work to do.

use std::io::{ErrorKind, Read, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};

/// A notification for which a program can wait with `poll` and similar functions.
pub(crate) struct WakeupDescriptor {
    reader: UnixStream,
    writer: UnixStream,
    /// True if the descriptor is already readable, so that another notification writes nothing.
    is_set: AtomicBool,
}

impl WakeupDescriptor {
    /// Makes a notifier. Returns `None` if there are no descriptors left.
    pub(crate) fn new() -> Option<Self> {
        let (reader, writer) = UnixStream::pair().ok()?;
        reader.set_nonblocking(true).ok()?;
        writer.set_nonblocking(true).ok()?;
        Some(Self { reader, writer, is_set: AtomicBool::new(false) })
    }

    /// Makes the descriptor readable until it is cleared.
    pub(crate) fn notify(&self) {
        if !self.is_set.swap(true, Ordering::SeqCst) {
            // The only failure is a full buffer, which is readable.
            let _ = (&self.writer).write(&[1]);
        }
    }

    /// Clears the notification, so that the descriptor is no longer readable. The caller must look
    /// for work after this call, because the call also removes a notification that has just
    /// arrived.
    pub(crate) fn clear(&self) {
        let mut bytes = [0; 16];
        loop {
            match (&self.reader).read(&mut bytes) {
                Ok(n) if n == bytes.len() => {}
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                _ => break,
            }
        }
        self.is_set.store(false, Ordering::SeqCst);
    }

    /// Replaces the two descriptors by new ones with the same numbers. A forked child calls this,
    /// because it shares the old ones with its parent.
    pub(crate) fn replace(&self) {
        // Without free descriptors, the old ones still work, shared with the parent.
        let Some(new) = Self::new() else { return };
        for (from, to) in [(&new.reader, &self.reader), (&new.writer, &self.writer)] {
            // SAFETY: system calls with descriptors that are open during the calls.
            unsafe {
                libc::dup2(from.as_raw_fd(), to.as_raw_fd());
                libc::fcntl(to.as_raw_fd(), libc::F_SETFD, libc::FD_CLOEXEC);
            }
        }
        self.is_set.store(false, Ordering::SeqCst);
    }

    /// Returns the descriptor to poll.
    pub(crate) fn fd(&self) -> RawFd {
        self.reader.as_raw_fd()
    }
}

#[cfg(test)]
mod tests {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};

    use super::*;

    fn is_readable(notifier: &WakeupDescriptor) -> bool {
        poll(&mut [PollFd::new(&notifier.reader, PollFlags::IN)], Some(&Timespec::default())).unwrap() > 0
    }

    #[test]
    fn notifier_is_readable_until_it_is_cleared() {
        let notifier = WakeupDescriptor::new().unwrap();
        assert!(!is_readable(&notifier));
        for _ in 0..100 {
            notifier.notify();
        }
        assert!(is_readable(&notifier));
        notifier.clear();
        assert!(!is_readable(&notifier));
        notifier.notify();
        assert!(is_readable(&notifier));
    }
}
