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

    /// The set of descriptors, an epoll instance that no one waits in. The event loop asks it
    /// whether a descriptor is readable (level-triggered), so it needs no call after an event.
    #[derive(Debug)]
    pub(in crate::batch) struct ReadinessSet {
        epoll: OwnedFd,
        timer: OwnedFd,
    }

    impl ReadinessSet {
        /// Makes a set of this descriptor and a timer that is not set.
        pub(in crate::batch) fn with(fd: impl AsFd) -> io::Result<Self> {
            let epoll = epoll::create(CreateFlags::CLOEXEC)?;
            let timer = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK)?;
            let set = Self { epoll, timer };
            set.add(fd)?;
            set.add(&set.timer)?;
            Ok(set)
        }

        /// Adds a descriptor.
        pub(in crate::batch) fn add(&self, fd: impl AsFd) -> io::Result<()> {
            Ok(epoll::add(&self.epoll, fd, EventData::new_u64(0), EventFlags::IN)?)
        }

        /// Removes a descriptor. Does nothing if the set does not contain it.
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

    /// A set of descriptors, which this system does not have.
    #[derive(Debug)]
    pub(in crate::batch) enum ReadinessSet {}

    impl ReadinessSet {
        /// Fails, because this system has no such sets.
        pub(in crate::batch) fn with(_fd: impl AsFd) -> io::Result<Self> {
            Err(io::ErrorKind::Unsupported.into())
        }

        /// Adds a descriptor.
        pub(in crate::batch) fn add<T>(&self, _fd: T) -> io::Result<()> {
            match *self {}
        }

        /// Removes a descriptor. Does nothing if the set does not contain it.
        pub(in crate::batch) fn remove<T>(&self, _fd: T) {
            match *self {}
        }

        /// Sets the timer, which makes the set readable after the time `_after`. `None` stops the
        /// timer.
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
