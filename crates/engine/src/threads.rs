//! Threads of the library's own. They take no signals: those are the program's, whose handlers may run only where the program knows of
//! the thread. (Perl's handler reads memory that belongs to an interpreter, and a thread that Perl did not start has none.)

use std::io;
use std::thread::{Builder, JoinHandle};

/// Starts a thread of this name.
///
/// # Errors
/// The system has no thread left.
pub(crate) fn start(name: impl Into<String>, work: impl FnOnce() + Send + 'static) -> io::Result<JoinHandle<()>> {
    // A thread begins with the mask of the one that starts it: there is no moment in which it takes any.
    #[cfg(unix)]
    let _deaf = Deaf::new();
    Builder::new().name(name.into()).spawn(work)
}

/// As long as it lives this thread takes no signals.
#[cfg(unix)]
struct Deaf {
    before: libc::sigset_t,
}

#[cfg(unix)]
impl Deaf {
    /// Those that say what the thread itself did wrong cannot be put off.
    const OWN: [libc::c_int; 5] = [libc::SIGBUS, libc::SIGFPE, libc::SIGILL, libc::SIGSEGV, libc::SIGTRAP];

    fn new() -> Option<Self> {
        let mut all = std::mem::MaybeUninit::uninit();
        let mut before = std::mem::MaybeUninit::uninit();
        // SAFETY: `sigfillset` makes the set that `sigdelset` and `pthread_sigmask` read, and cannot fail; `before` is written
        // where the latter answers 0, and read only then.
        unsafe {
            libc::sigfillset(all.as_mut_ptr());
            for signal in Self::OWN {
                libc::sigdelset(all.as_mut_ptr(), signal);
            }
            let outcome = libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr());
            (outcome == 0).then(|| Self { before: before.assume_init() })
        }
    }
}

#[cfg(unix)]
impl Drop for Deaf {
    fn drop(&mut self) {
        // SAFETY: the set was filled in when this was made; nothing is written.
        unsafe {
            libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.before, std::ptr::null_mut());
        }
    }
}
