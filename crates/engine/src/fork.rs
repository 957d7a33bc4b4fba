//! Detects whether a process is a forked child of the process that made its connections.
//!
//! A forked child has copies of its parent's descriptors, so both would send on the same
//! connections. The child has only the thread that forked, so locks that other threads held stay
//! locked. In the child, [`fork_count`] returns a new value. A client then creates its shared state
//! anew, and closes the inherited connections without sending anything.
//!
//! A handler of `pthread_atfork` costs nothing without a fork. The alternative, `getpid`, would
//! cost a system call for each request. A child made by a plain `clone(2)` or `vfork(2)`, which run
//! no handlers, may only call `exec`.
//!
//! ```
//! let before = haul::fork::fork_count();
//! assert_eq!(haul::fork::fork_count(), before);
//! ```

use std::sync::atomic::{AtomicU32, Ordering};

static FORK_COUNT: AtomicU32 = AtomicU32::new(0);

#[cfg(unix)]
extern "C" fn on_fork_in_child() {
    FORK_COUNT.fetch_add(1, Ordering::Relaxed);
}

/// Installs the handler that counts forks of this process. Must be called before the first
/// connection is made.
#[cfg(unix)]
pub(crate) fn register_fork_handler() {
    use std::sync::Once;

    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: the handler is a function that lives as long as this code is loaded (the C
        // library takes handlers of an unloaded library out), and all it does in the child is one
        // atomic addition, which is safe in a signal handler's circumstances. Where there is no
        // memory for it, forks go unnoticed, as without it.
        unsafe {
            libc::pthread_atfork(None, None, Some(on_fork_in_child));
        }
    });
}

/// Does nothing, because Windows has no `fork`.
#[cfg(windows)]
pub(crate) fn register_fork_handler() {}

/// Returns the number of times that the current process or its ancestors were forked since the
/// first call of this function or the first client. It is 0 in the process that made that call, 1
/// in its child, and so on.
#[must_use]
pub fn fork_count() -> u32 {
    register_fork_handler();
    FORK_COUNT.load(Ordering::Relaxed)
}
