//! Prints the progress of a run of many URLs on SIGUSR1 and, on systems that have it, on SIGINFO
//! (Ctrl-T).
//!
//! The signals are blocked, and a thread waits for them. Runs of one URL do not use this module.

use std::sync::Arc;

use nix::sys::signal::{SigSet, Signal};

use crate::plan::RunPlan;
use crate::run::report::progress::ProgressReporter;
use crate::run::transfers::url_count;

/// The signals on which haul prints its progress.
const SIGNALS: &[Signal] = &[
    Signal::SIGUSR1,
    #[cfg(not(target_os = "linux"))]
    Signal::SIGINFO,
];

/// Blocks the signals that request the progress (SIGUSR1, SIGINFO), and starts the thread that
/// waits for them. Must be called before any other thread starts, because new threads inherit the
/// signal mask. Does nothing if no thread can be started.
pub(crate) fn start_signal_thread(plan: &Arc<RunPlan>, progress: &Arc<ProgressReporter>) {
    let set: SigSet = SIGNALS.iter().copied().collect();
    if set.thread_block().is_err() {
        return;
    }
    let (plan, progress) = (Arc::clone(plan), Arc::clone(progress));
    let started = std::thread::Builder::new().name("haul-progress".to_owned()).spawn(move || {
        let Some(mut signals) = SignalWaiter::new(set) else { return };
        while signals.wait() {
            let counts = progress.counts();
            if counts.snapshot().total.is_none()
                && let Some(total) = url_count::total_urls(&plan)
            {
                counts.set_total(total);
            }
            progress.print_line(&format!("haul: {}", counts.snapshot().line()));
        }
    });
    if started.is_err() {
        let _ = set.thread_unblock();
    }
}

/// Waits, with `sigwait`, for the blocked signals on which haul prints its progress.
#[cfg(target_os = "linux")]
struct SignalWaiter(SigSet);

#[cfg(target_os = "linux")]
impl SignalWaiter {
    fn new(set: SigSet) -> Option<Self> {
        Some(Self(set))
    }

    /// Waits for the next signal. Returns false if no further signal can be received.
    fn wait(&mut self) -> bool {
        self.0.wait().is_ok()
    }
}

/// Waits for blocked signals with a kqueue, on macOS and BSD. There, `sigwait` never returns
/// SIGINFO, because a process without a handler ignores it.
#[cfg(not(target_os = "linux"))]
struct SignalWaiter(nix::sys::event::Kqueue);

#[cfg(not(target_os = "linux"))]
impl SignalWaiter {
    fn new(_set: SigSet) -> Option<Self> {
        use nix::sys::event::{EvFlags, EventFilter, FilterFlag, KEvent, Kqueue};

        let queue = Kqueue::new().ok()?;
        let event = |signal: &Signal| {
            KEvent::new(*signal as usize, EventFilter::EVFILT_SIGNAL, EvFlags::EV_ADD, FilterFlag::empty(), 0, 0)
        };
        let events: Vec<KEvent> = SIGNALS.iter().map(event).collect();
        queue.kevent(&events, &mut [], None).ok()?;
        Some(Self(queue))
    }

    /// Waits for the next signal. Returns false if no further signal can be received.
    fn wait(&mut self) -> bool {
        use nix::errno::Errno;
        use nix::sys::event::{EvFlags, EventFilter, FilterFlag, KEvent};

        let none = KEvent::new(0, EventFilter::EVFILT_SIGNAL, EvFlags::empty(), FilterFlag::empty(), 0, 0);
        loop {
            match self.0.kevent(&[], &mut [none], None) {
                Ok(count) => return count > 0,
                Err(Errno::EINTR) => {}
                Err(_) => return false,
            }
        }
    }
}
