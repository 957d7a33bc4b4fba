//! A descriptor that is readable while a batch has results to take. Other event loops can watch it.

use std::io;

use rustix::fd::{AsFd, BorrowedFd, OwnedFd};

/// The descriptor that is readable while a batch has results: an `eventfd` counter, a pipe on
/// Unix systems without `eventfd`, or a socket on Windows.
#[derive(Debug)]
pub(super) struct ResultsDescriptor {
    read: OwnedFd,
    #[cfg(not(any(linux_calls, target_os = "android", target_os = "freebsd")))]
    write: OwnedFd,
}

impl ResultsDescriptor {
    #[cfg(any(linux_calls, target_os = "android", target_os = "freebsd"))]
    pub(super) fn new() -> io::Result<Self> {
        use rustix::event::{EventfdFlags, eventfd};
        let read = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Self { read })
    }

    /// Makes a pair of sockets, because Windows can wait for sockets only.
    #[cfg(windows)]
    pub(super) fn new() -> io::Result<Self> {
        use std::net::{Ipv4Addr, UdpSocket};

        let [read, write] = [(); 2].map(|()| UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)));
        let (read, write) = (read?, write?);
        read.connect(write.local_addr()?)?;
        write.connect(read.local_addr()?)?;
        read.set_nonblocking(true)?;
        write.set_nonblocking(true)?;
        Ok(Self { read: read.into(), write: write.into() })
    }

    #[cfg(all(unix, not(any(linux_calls, target_os = "android", target_os = "freebsd"))))]
    pub(super) fn new() -> io::Result<Self> {
        let (read, write) = rustix::pipe::pipe()?;
        for end in [&read, &write] {
            rustix::io::fcntl_setfd(end, rustix::io::FdFlags::CLOEXEC)?;
            rustix::io::ioctl_fionbio(end, true)?;
        }
        Ok(Self { read, write })
    }

    /// Makes the descriptor readable. Wakes the threads that watch it, so the caller should hold no
    /// lock that they need.
    pub(super) fn make_readable(&self) {
        // It cannot fail: the counter is 0.
        let _ = rustix::io::write(self.write_end(), &1u64.to_ne_bytes());
    }

    /// Makes the descriptor not readable. Returns `false` if it was not readable.
    pub(super) fn clear(&self) -> bool {
        rustix::io::read(&self.read, &mut [0; 8]).is_ok()
    }

    #[cfg(any(linux_calls, target_os = "android", target_os = "freebsd"))]
    fn write_end(&self) -> BorrowedFd<'_> {
        self.read.as_fd()
    }

    #[cfg(not(any(linux_calls, target_os = "android", target_os = "freebsd")))]
    fn write_end(&self) -> BorrowedFd<'_> {
        self.write.as_fd()
    }
}

impl AsFd for ResultsDescriptor {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.read.as_fd()
    }
}
