//! Drains connections in separate threads before closing them, so that the peer receives the last
//! output. (A socket closed with unread input resets the connection.)

use rustix::fd::AsFd;

use super::Worker;
use crate::drive::connection::HttpConnection;
use crate::net::event_registration;
use crate::spawn_with_signals_blocked;

/// The maximum number of connections that are drained at the same time, each by a separate thread.
/// Any further connection is closed without draining.
const MAX_DRAINING: usize = 16;

impl Worker {
    /// Closes a connection. If the peer must still receive the last output
    /// ([`HttpConnection::needs_drain`]), a separate thread drains and closes it.
    pub(super) fn close(&mut self, connection: HttpConnection) {
        if !connection.needs_drain() {
            return;
        }
        self.draining.retain(|thread| !thread.is_finished());
        if self.draining.len() < MAX_DRAINING
            && event_registration::deregister(self.poll.registry(), connection.as_fd()).is_ok()
        {
            // Without a thread, the connection is closed at once.
            self.draining.extend(spawn_with_signals_blocked::start("haul-linger", move || connection.drain()));
        }
    }

    /// Waits until the threads that [`Worker::close`] started have ended. Each of them discards the
    /// input of one connection until the peer has received the last output, and then closes the
    /// connection. If the process ended before, that output might be lost.
    pub(super) fn join_draining(&mut self) {
        for thread in self.draining.drain(..) {
            let _ = thread.join();
        }
    }
}
