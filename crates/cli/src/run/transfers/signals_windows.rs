//! Handles Ctrl-C, Ctrl-Break and the closing of the console in runs that print something at their
//! end or write files, so that no unfinished file remains. Other runs end immediately.
//!
//! The system calls the handler in a thread of its own. The first event ends the transfers. After the
//! last output is written, the process ends itself with the exit code that Ctrl-C has on Windows. A
//! second event ends the process immediately.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use haul::interrupt_callback::InterruptCallback;
use windows_sys::Win32::Foundation::STATUS_CONTROL_C_EXIT;
use windows_sys::Win32::System::Console::{CTRL_BREAK_EVENT, CTRL_C_EVENT, CTRL_CLOSE_EVENT, SetConsoleCtrlHandler};
use windows_sys::core::BOOL;

use crate::system::terminal;

/// True once a console event, such as Ctrl-C, has arrived.
static HAS_ARRIVED: AtomicBool = AtomicBool::new(false);
/// The time that Windows leaves a process whose console is closed. Windows ends the process after
/// this time, or as soon as the handler returns.
const TIME_TO_END: Duration = Duration::from_secs(5);

/// The handler of the console's events.
pub(crate) struct BlockedSignals(());

impl BlockedSignals {
    /// Installs the handler. Returns `None` if the system refuses it.
    pub(crate) fn install_handlers() -> Option<Self> {
        // SAFETY: the handler is a function of the program, and uses atomic variables only.
        let is_set = unsafe { SetConsoleCtrlHandler(Some(on_event), 1) };
        (is_set != 0).then_some(Self(()))
    }

    /// Returns a callback by which the engine learns that an event has arrived, so that it stops
    /// waiting.
    pub(crate) fn interrupt_callback(&self) -> InterruptCallback {
        InterruptCallback::new(|| HAS_ARRIVED.load(Ordering::SeqCst))
    }

    /// Returns a callback by which the engine learns that an event has arrived, or that `must_stop`
    /// returns true. The engine then stops waiting.
    pub(crate) fn interrupt_callback_or(
        &self,
        must_stop: impl Fn() -> bool + Send + Sync + 'static,
    ) -> InterruptCallback {
        InterruptCallback::new(move || HAS_ARRIVED.load(Ordering::SeqCst) || must_stop())
    }

    /// Returns true if an event has arrived.
    pub(crate) fn has_arrived(&self) -> bool {
        HAS_ARRIVED.load(Ordering::SeqCst)
    }

    /// Ends the process as Ctrl-C does if an event has arrived. Does nothing if none has arrived.
    pub(crate) fn end_process_by_signal(self) {
        if self.has_arrived() {
            terminal::restore_character_set();
            std::process::exit(STATUS_CONTROL_C_EXIT);
        }
    }
}

/// Notes the first event. Leaves the next ones, and events that haul does not know, to the system.
extern "system" fn on_event(event: u32) -> BOOL {
    if !matches!(event, CTRL_C_EVENT | CTRL_BREAK_EVENT | CTRL_CLOSE_EVENT) {
        return 0;
    }
    let is_first = !HAS_ARRIVED.swap(true, Ordering::SeqCst);
    if event == CTRL_CLOSE_EVENT {
        std::thread::sleep(TIME_TO_END);
    }
    BOOL::from(is_first)
}
