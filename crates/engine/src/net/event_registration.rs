//! The registration of sockets with an event loop, for edge-triggered events.
//!
//! On Windows, an event loop reports a socket once, and again only after one of two calls:
//! * [`after_short_receive`], for further input, must follow each receive that found fewer bytes
//!   than it could take.
//! * [`after_send`], for room for output, must follow each send.

use std::io;

use mio::{Interest, Registry, Token};
use rustix::fd::{AsFd, AsRawFd, RawFd};

#[cfg(unix)]
pub(crate) use unix::*;
#[cfg(windows)]
pub(crate) use windows::*;

#[cfg(unix)]
mod unix {
    use mio::unix::SourceFd;

    use super::*;

    /// Registers a socket with the event loop, until the socket is closed. Events carry `token`.
    pub(crate) fn register(registry: &Registry, fd: impl AsFd, token: Token, interest: Interest) -> io::Result<()> {
        registry.register(&mut SourceFd(&fd.as_fd().as_raw_fd()), token, interest)
    }

    /// Registers the descriptor of an output. The event loop then reports when the output accepts
    /// bytes.
    pub(crate) fn register_output(registry: &Registry, fd: RawFd, token: Token) -> io::Result<()> {
        let mut source = SourceFd(&fd);
        registry
            .register(&mut source, token, Interest::WRITABLE)
            .or_else(|_| registry.reregister(&mut source, token, Interest::WRITABLE))
    }

    /// Removes a socket from the event loop.
    pub(crate) fn deregister(registry: &Registry, fd: impl AsFd) -> io::Result<()> {
        registry.deregister(&mut SourceFd(&fd.as_fd().as_raw_fd()))
    }

    /// Does nothing: on Unix, the event loop reports further input without this call.
    pub(crate) fn after_short_receive(_fd: impl AsFd) {}

    /// Does nothing: on Unix, the event loop reports that the socket accepts more bytes without
    /// this call.
    pub(crate) fn after_send(_fd: impl AsFd, _took_all: bool) {}
}

#[cfg(windows)]
mod windows {
    use std::collections::HashMap;
    use std::sync::{Mutex, PoisonError};

    use mio::event::Source;
    use mio::net::TcpStream;

    use super::*;

    /// The registrations of all sockets of this process, by the numbers of the sockets.
    static REGISTRATIONS: Mutex<Option<HashMap<RawFd, Registration>>> = Mutex::new(None);

    /// The registration of a socket with an event loop.
    #[derive(Debug)]
    struct Registration {
        /// A duplicate of the socket, because mio registers only sockets that it owns. The type is
        /// `TcpStream` even if the socket is a UDP socket.
        source: TcpStream,
        registry: Registry,
        token: Token,
        /// True if the last send found too little room, so that the event loop must report when the
        /// socket has room. If false, the event loop reports only input: otherwise, it would report
        /// room all the time.
        awaits_room: bool,
    }

    impl Registration {
        fn rearm(&mut self) {
            let interest = if self.awaits_room { Interest::READABLE | Interest::WRITABLE } else { Interest::READABLE };
            // It fails only after the event loop has ended.
            let _ = self.source.reregister(&self.registry, self.token, interest);
        }
    }

    fn with_registrations<T>(action: impl FnOnce(&mut HashMap<RawFd, Registration>) -> T) -> T {
        let mut registrations = REGISTRATIONS.lock().unwrap_or_else(PoisonError::into_inner);
        action(registrations.get_or_insert_default())
    }

    /// Registers a socket with the event loop. The socket must be removed by [`forget`] before it is
    /// closed. Events carry `token`.
    pub(crate) fn register(registry: &Registry, fd: impl AsFd, token: Token, interest: Interest) -> io::Result<()> {
        let fd = fd.as_fd();
        let mut source = TcpStream::from_std(fd.try_clone_to_owned()?.into());
        source.register(registry, token, interest)?;
        let registration = Registration { source, registry: registry.try_clone()?, token, awaits_room: false };
        drop(with_registrations(|registrations| registrations.insert(fd.as_raw_fd(), registration)));
        Ok(())
    }

    /// Returns an error: on Windows, an event loop cannot watch an output. This is never needed,
    /// since a write to an output waits until the output has accepted all bytes.
    pub(crate) fn register_output(_registry: &Registry, _fd: RawFd, _token: Token) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Removes a socket from the event loop.
    pub(crate) fn deregister(registry: &Registry, fd: impl AsFd) -> io::Result<()> {
        match with_registrations(|registrations| registrations.remove(&fd.as_fd().as_raw_fd())) {
            Some(mut registration) => registration.source.deregister(registry),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }

    /// Makes the event loop report the next input of a registered socket. Called after a receive
    /// that did not fill its buffer. Does nothing for a socket that is not registered.
    pub(crate) fn after_short_receive(fd: impl AsFd) {
        with_registrations(|registrations| {
            if let Some(registration) = registrations.get_mut(&fd.as_fd().as_raw_fd()) {
                registration.rearm();
            }
        });
    }

    /// Makes the event loop report a registered socket when the socket accepts more bytes, unless
    /// the last send took all bytes (`took_all`). Does nothing for a socket that is not registered.
    pub(crate) fn after_send(fd: impl AsFd, took_all: bool) {
        with_registrations(|registrations| {
            if let Some(registration) = registrations.get_mut(&fd.as_fd().as_raw_fd()) {
                registration.awaits_room = !took_all;
                if !took_all {
                    registration.rearm();
                }
            }
        });
    }

    /// Removes the registration of a socket that is about to be closed, if the socket has one.
    pub(crate) fn forget(fd: impl AsFd) {
        drop(with_registrations(|registrations| registrations.remove(&fd.as_fd().as_raw_fd())));
    }
}
