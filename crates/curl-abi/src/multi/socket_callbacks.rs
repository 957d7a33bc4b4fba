//! The callbacks by which a program watches the descriptors itself: `CURLMOPT_SOCKETFUNCTION` and
//! `CURLMOPT_TIMERFUNCTION`.
//!
//! The program never sees the sockets of connections. It watches two descriptors of the multi
//! handle, for reading, while there are transfers.

use std::ffi::c_int;
use std::os::fd::RawFd;

use super::locked;
use super::state::Multi;
use crate::codes::{CURLM_ABORTED_BY_CALLBACK, CURLM_BAD_SOCKET, CURLM_OK, CURLMcode};
use crate::handle_table::UserPointer;

const POLL_IN: c_int = 1;
const POLL_REMOVE: c_int = 4;

impl Multi {
    /// Calls the socket and timer callbacks if the descriptors to watch or the timeout have
    /// changed. Returns an error if a callback has failed.
    pub(super) fn update(&self) -> CURLMcode {
        let goes_on = self.update_sockets() & self.update_timer();
        if goes_on { CURLM_OK } else { CURLM_ABORTED_BY_CALLBACK }
    }

    /// Calls the socket and timer callbacks, as [`update`](Self::update) does, after an easy handle
    /// was removed. As in libcurl, an error of the socket callback is ignored.
    pub(super) fn update_after_removal(&self) -> CURLMcode {
        self.update_sockets();
        if self.update_timer() { CURLM_OK } else { CURLM_ABORTED_BY_CALLBACK }
    }

    fn update_sockets(&self) -> bool {
        let wanted = if self.unfinished() > 0 { self.descriptors() } else { Vec::new() };
        self.watch(&wanted)
    }

    /// Makes the program watch these descriptors and no others. Returns false if a callback has
    /// failed.
    pub(super) fn watch(&self, wanted: &[RawFd]) -> bool {
        let state = locked(self);
        let (settings, watched) = (state.settings, state.watched.clone());
        drop(state);
        let Some(socket) = settings.socket else { return true };
        let mut goes_on = true;
        let added = wanted.iter().filter(|fd| !watched.contains(fd)).map(|fd| (*fd, POLL_IN));
        let removed = watched.iter().filter(|fd| !wanted.contains(fd)).map(|fd| (*fd, POLL_REMOVE));
        let changes: Vec<_> = added.chain(removed).collect();
        for (fd, what) in changes {
            let easy = std::ptr::without_provenance_mut(self.any_easy().unwrap_or(0));
            let pointer = locked(self).assigned.get(&fd).copied().unwrap_or_default();
            // SAFETY: the program's function with its pointers and one of its handles.
            let result = unsafe { socket(easy, fd, what, settings.socket_data.0, pointer.0) };
            goes_on &= result != -1;
            let mut state = locked(self);
            if what == POLL_IN {
                state.watched.push(fd);
            } else {
                state.watched.retain(|known| *known != fd);
                state.assigned.remove(&fd);
            }
        }
        goes_on
    }

    fn update_timer(&self) -> bool {
        let timeout = self.timeout();
        let mut state = locked(self);
        let Some(timer) = state.settings.timer else { return true };
        // A timer that has fired must be told again.
        if state.last_timeout == Some(timeout) && timeout <= 0 || state.last_timeout.is_none() && timeout < 0 {
            return true;
        }
        state.last_timeout = Some(timeout);
        let user = state.settings.timer_data;
        drop(state);
        let multi = std::ptr::without_provenance_mut(self.number());
        // SAFETY: the program's function with its pointer and its handle.
        unsafe { timer(multi, timeout, user.0) != -1 }
    }

    /// Associates a pointer of the C program with a descriptor. The socket callback receives the
    /// pointer.
    pub(super) fn assign(&self, fd: RawFd, pointer: UserPointer) -> CURLMcode {
        if !self.descriptors().contains(&fd) {
            return CURLM_BAD_SOCKET;
        }
        locked(self).assigned.insert(fd, pointer);
        CURLM_OK
    }
}
