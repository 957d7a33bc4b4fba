//! A descriptor that is readable while any of several descriptors is, or after a time. The
//! program's event loop watches this one descriptor, whatever a batch waits for.

use std::io;
use std::time::Duration;

use rustix::fd::AsFd;
#[cfg(not(linux_calls))]
use rustix::fd::BorrowedFd;

#[cfg(linux_calls)]
pub(super) use linux::ReadinessSet;
#[cfg(not(linux_calls))]
pub(super) use unavailable::ReadinessSet;

#[cfg(linux_calls)]
mod linux {
    use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
    use rustix::fd::{BorrowedFd, OwnedFd};
    use rustix::time::{
        Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
    };

    use super::*;

    /// A set of descriptors that is itself a descriptor, and is readable while any descriptor in
    /// the set is. It is an epoll instance that the program's event loop watches. haul never calls
    /// `epoll_wait` on it, because level-triggered events need no acknowledgement.
    #[derive(Debug)]
    pub(in crate::batch) struct ReadinessSet {
        epoll: OwnedFd,
        timer: OwnedFd,
    }

    impl ReadinessSet {
        /// Makes a set that contains the descriptor `fd` and a timer. The timer is stopped.
        pub(in crate::batch) fn with(fd: impl AsFd) -> io::Result<Self> {
            let epoll = epoll::create(CreateFlags::CLOEXEC)?;
            let timer = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK)?;
            let set = Self { epoll, timer };
            set.add(fd)?;
            set.add(&set.timer)?;
            Ok(set)
        }

        /// Adds a descriptor to the set.
        pub(in crate::batch) fn add(&self, fd: impl AsFd) -> io::Result<()> {
            Ok(epoll::add(&self.epoll, fd, EventData::new_u64(0), EventFlags::IN)?)
        }

        /// Removes a descriptor from the set. Does nothing if the set does not contain it.
        pub(in crate::batch) fn remove(&self, fd: impl AsFd) {
            let _ = epoll::delete(&self.epoll, fd);
        }

        /// Sets the timer, which makes the set readable after the time `after`. `None` stops the
        /// timer.
        pub(in crate::batch) fn set_timer(&self, after: Option<Duration>) -> io::Result<()> {
            // Zero would stop the timer.
            let after = after.map_or(Duration::ZERO, |after| after.max(Duration::from_nanos(1)));
            let it_value = Timespec::try_from(after).unwrap_or(Timespec { tv_sec: i64::MAX, tv_nsec: 0 });
            let times = Itimerspec { it_interval: Timespec { tv_sec: 0, tv_nsec: 0 }, it_value };
            timerfd_settime(&self.timer, TimerfdTimerFlags::empty(), &times)?;
            Ok(())
        }
    }

    impl AsFd for ReadinessSet {
        fn as_fd(&self) -> BorrowedFd<'_> {
            self.epoll.as_fd()
        }
    }
}

#[cfg(not(linux_calls))]
mod unavailable {
    use super::*;

    /// The type in place of the set of descriptors in a build without epoll. It has no values, so
    /// its methods are never called.
    #[derive(Debug)]
    pub(in crate::batch) enum ReadinessSet {}

    impl ReadinessSet {
        /// Returns an error, because this build has no epoll to make a set with.
        pub(in crate::batch) fn with(_fd: impl AsFd) -> io::Result<Self> {
            Err(io::ErrorKind::Unsupported.into())
        }

        /// Is never called, because this build has no sets. With epoll, adds a descriptor.
        pub(in crate::batch) fn add<T>(&self, _fd: T) -> io::Result<()> {
            match *self {}
        }

        /// Is never called, because this build has no sets. With epoll, removes a descriptor.
        pub(in crate::batch) fn remove<T>(&self, _fd: T) {
            match *self {}
        }

        /// Is never called, because this build has no sets. With epoll, sets the timer of the set.
        pub(in crate::batch) fn set_timer(&self, _after: Option<Duration>) -> io::Result<()> {
            match *self {}
        }
    }

    impl AsFd for ReadinessSet {
        fn as_fd(&self) -> BorrowedFd<'_> {
            match *self {}
        }
    }
}
