//! Starts the library's threads with all signals blocked. Signals are for the program, whose
//! handlers may run only in the program's threads. (Perl's handler accesses memory of an
//! interpreter, and a thread that Perl did not start has no interpreter.)

use std::io;
use std::thread::{Builder, JoinHandle};

#[cfg(unix)]
use nix::sys::signal::{SigSet, SigmaskHow, Signal};

/// Starts a thread with the name `name` that runs `work`. All signals are blocked in the thread.
///
/// # Errors
/// The system cannot start another thread.
pub(crate) fn start(name: impl Into<String>, work: impl FnOnce() + Send + 'static) -> io::Result<JoinHandle<()>> {
    // A thread inherits the signal mask of the thread that starts it, so it never receives a
    // signal. Windows runs handlers in a thread that it starts for them.
    #[cfg(unix)]
    let _deaf = SignalBlockGuard::new();
    Builder::new().name(name.into()).spawn(work)
}

/// A guard that blocks signals in the current thread until it is dropped.
#[cfg(unix)]
struct SignalBlockGuard {
    before: SigSet,
}

#[cfg(unix)]
impl SignalBlockGuard {
    /// The signals that report a fault of the thread itself, such as an invalid memory access. They
    /// are never blocked.
    const FAULT_SIGNALS: [Signal; 5] =
        [Signal::SIGBUS, Signal::SIGFPE, Signal::SIGILL, Signal::SIGSEGV, Signal::SIGTRAP];

    fn new() -> Option<Self> {
        let mut all = SigSet::all();
        Self::FAULT_SIGNALS.into_iter().for_each(|signal| all.remove(signal));
        all.thread_swap_mask(SigmaskHow::SIG_SETMASK).ok().map(|before| Self { before })
    }
}

#[cfg(unix)]
impl Drop for SignalBlockGuard {
    fn drop(&mut self) {
        let _ = self.before.thread_set_mask();
    }
}
