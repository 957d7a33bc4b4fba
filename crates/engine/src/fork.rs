//! Detects that a process is a forked child of the one that made its connections.
//!
//! A forked child has copies of the descriptors of its parent, so both would send on the same connections; and of the
//! threads of its parent it has only the one that forked, so locks that others held stay locked. What a client shares is
//! therefore made anew in a child ([`generation`] has changed by then); what it inherited is closed without a word on the
//! wire.
//!
//! `getpid` would tell as much for a system call a request; a handler of `pthread_atfork` costs nothing before there is a
//! fork. A child made by a bare `clone(2)` or `vfork(2)`, which runs no handlers, may only `exec`.
//!
//! ```
//! let before = haul::fork::generation();
//! assert_eq!(haul::fork::generation(), before);
//! ```

use std::sync::Once;
use std::sync::atomic::{AtomicU32, Ordering};

static GENERATION: AtomicU32 = AtomicU32::new(0);

extern "C" fn in_child() {
    GENERATION.fetch_add(1, Ordering::Relaxed);
}

/// Sees to it that children are counted: before the first connection is made.
pub(crate) fn watch() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: the handler is a function that lives as long as this code is loaded (the C library takes handlers of
        // an unloaded library out), and all it does in the child is one atomic addition, which is safe in a signal
        // handler's circumstances. Where there is no memory for it, forks go unnoticed, as without it.
        unsafe {
            libc::pthread_atfork(None, None, Some(in_child));
        }
    });
}

/// Returns the number of forks between the process that loaded this code and this one.
#[must_use]
pub fn generation() -> u32 {
    GENERATION.load(Ordering::Relaxed)
}
