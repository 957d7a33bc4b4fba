//! Callbacks that end blocking calls. While haul waits in such a call, it runs the callback from
//! time to time, so that Ctrl-C and alarms of a host language can end the wait.
//!
//! Perl and Python run their signal handlers only when the interpreter continues, not when a signal
//! ends a system call (`EINTR`). The callback lets the interpreter continue. haul runs the callback
//! at once if a signal ends a receive, and otherwise about every 50 ms. The interval is needed
//! because another thread may have received the signal, or the system call may be restarted after
//! it (`SA_RESTART`). Without a callback, a wait is one system call.
//!
//! ```
//! use std::sync::Arc;
//! use std::sync::atomic::{AtomicBool, Ordering};
//! use haul::{Client, RequestOptions};
//! use haul::interrupt_callback::InterruptCallback;
//!
//! let stop = Arc::new(AtomicBool::new(false));
//! let seen = Arc::clone(&stop);
//! let hook = InterruptCallback::new(move || seen.load(Ordering::Relaxed));
//! let client = Client::builder().interrupt(hook).build();
//! # drop((client, stop));
//! ```

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::{Error, ErrorKind, Result};

/// The interval between calls of the interrupt callback while a call of the client waits. When a
/// signal arrives, the callback is called at once.
pub(crate) const CALLBACK_INTERVAL: Duration = Duration::from_millis(50);

/// A callback that decides whether a waiting call of the client must end. haul holds no lock while
/// the callback runs. Therefore the callback may send requests, even with the same client.
#[derive(Clone)]
pub struct InterruptCallback(Arc<dyn Fn() -> bool + Send + Sync>);

impl InterruptCallback {
    /// Makes a callback from a function. If the function returns `true`, the waiting call fails
    /// with [`ErrorKind::Interrupted`].
    pub fn new(wants_to_stop: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        Self(Arc::new(wants_to_stop))
    }

    /// Calls the callback. Returns true if the waiting call must end.
    pub(crate) fn wants_to_stop(&self) -> bool {
        (self.0)()
    }

    /// Calls the callback.
    ///
    /// # Errors
    /// [`ErrorKind::Interrupted`] if the callback returns true.
    pub fn check(&self) -> Result<()> {
        if self.wants_to_stop() { Err(Error::new(ErrorKind::Interrupted, "it was interrupted")) } else { Ok(()) }
    }
}

impl fmt::Debug for InterruptCallback {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("InterruptCallback")
    }
}

/// Returns true if the process ignores the signal with this number. For example, a background job
/// of a shell ignores SIGINT.
///
/// ```
/// assert!(!haul::interrupt_callback::is_signal_ignored(15));
/// ```
#[must_use]
#[cfg(unix)]
pub fn is_signal_ignored(signal: i32) -> bool {
    let mut action = std::mem::MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: without a new action, the call only writes the present one to `action`, which is of
    // its type; zeroes are a valid value of it, should the number be no signal.
    let action = unsafe {
        libc::sigaction(signal, std::ptr::null(), action.as_mut_ptr());
        action.assume_init()
    };
    action.sa_sigaction == libc::SIG_IGN
}

/// Returns false, because Windows has no such signals.
#[must_use]
#[cfg(windows)]
pub fn is_signal_ignored(_signal: i32) -> bool {
    false
}

/// A timer for one wait. It calls the interrupt callback at intervals of [`CALLBACK_INTERVAL`]. It
/// does nothing if there is no callback.
#[derive(Debug)]
pub(crate) struct InterruptCallbackTimer {
    hook: Option<InterruptCallback>,
    last_call: Option<Instant>,
}

impl InterruptCallbackTimer {
    pub(crate) fn new(hook: Option<&InterruptCallback>) -> Self {
        Self { hook: hook.cloned(), last_call: None }
    }

    /// Returns the time until which a wait may last: `end`, or the time of the next call of the
    /// callback if that is earlier. Returns `None` if there is neither an end nor a callback.
    pub(crate) fn limit_wait(&self, end: Option<Instant>, now: Instant) -> Option<Instant> {
        match &self.hook {
            Some(_) => Some(end.map_or(now + CALLBACK_INTERVAL, |end| end.min(now + CALLBACK_INTERVAL))),
            None => end,
        }
    }

    /// Returns true if there is a callback and the interval since its last call has almost passed.
    /// (A wait may end slightly before its time, so three quarters of the interval suffice.) The
    /// first call of this method starts the first interval.
    pub(crate) fn is_callback_due(&mut self, now: Instant) -> bool {
        // A wait may end slightly before its time.
        self.hook.is_some()
            && now.saturating_duration_since(*self.last_call.get_or_insert(now)) >= CALLBACK_INTERVAL * 3 / 4
    }

    /// Calls the callback, because a signal has arrived.
    ///
    /// # Errors
    /// [`ErrorKind::Interrupted`] if the callback returns true.
    pub(crate) fn on_signal(&mut self, now: Instant) -> Result<()> {
        self.last_call = Some(now);
        self.hook.as_ref().map_or(Ok(()), InterruptCallback::check)
    }

    /// Calls the callback if [`is_callback_due`](Self::is_callback_due) returns true.
    ///
    /// # Errors
    /// The error of [`InterruptCallbackTimer::on_signal`].
    pub(crate) fn call_if_due(&mut self, now: Instant) -> Result<()> {
        if self.is_callback_due(now) { self.on_signal(now) } else { Ok(()) }
    }

    /// Sleeps until the time `until`. Meanwhile, calls the callback at intervals.
    ///
    /// # Errors
    /// The error of [`InterruptCallbackTimer::on_signal`].
    pub(crate) fn sleep(&mut self, until: Instant) -> Result<()> {
        loop {
            let now = Instant::now();
            if now >= until {
                return Ok(());
            }
            let end = self.limit_wait(Some(until), now).unwrap_or(until);
            std::thread::sleep(end.saturating_duration_since(now));
            self.call_if_due(Instant::now())?;
        }
    }
}

/// Sleeps until the time `until`. Calls the callback at intervals, and also after the last of them.
///
/// # Errors
/// [`ErrorKind::Interrupted`] if the callback returns true.
pub(crate) fn sleep_until(until: Instant, interrupt: Option<&InterruptCallback>) -> Result<()> {
    InterruptCallbackTimer::new(interrupt).sleep(until)?;
    interrupt.map_or(Ok(()), InterruptCallback::check)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    #[test]
    fn interrupt_callback_runs_periodically_and_after_signals() {
        let asked = Arc::new(AtomicU32::new(0));
        let count = Arc::clone(&asked);
        let hook = InterruptCallback::new(move || count.fetch_add(1, Ordering::Relaxed) == 1);
        let mut timer = InterruptCallbackTimer::new(Some(&hook));
        let now = Instant::now();
        timer.call_if_due(now).unwrap();
        timer.call_if_due(now + CALLBACK_INTERVAL / 2).unwrap();
        assert_eq!(asked.load(Ordering::Relaxed), 0);
        timer.call_if_due(now + CALLBACK_INTERVAL).unwrap();
        assert_eq!(asked.load(Ordering::Relaxed), 1);
        assert_eq!(timer.on_signal(now + CALLBACK_INTERVAL).unwrap_err().kind(), ErrorKind::Interrupted);
        assert_eq!(timer.limit_wait(None, now), Some(now + CALLBACK_INTERVAL));
        assert_eq!(timer.limit_wait(Some(now), now), Some(now));
        let mut no_hook = InterruptCallbackTimer::new(None);
        assert_eq!(no_hook.limit_wait(None, now), None);
        no_hook.call_if_due(now + CALLBACK_INTERVAL * 100).unwrap();
    }
}
