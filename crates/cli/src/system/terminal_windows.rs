//! The system calls for the console of standard error on Windows: its size, its mode (for escape
//! sequences) and its character set.

use std::io::{self, IsTerminal};
use std::sync::atomic::{AtomicU32, Ordering};

use winapi_util::HandleRef;
use winapi_util::console::{mode, screen_buffer_info, set_mode};
use windows_sys::Win32::System::Console::{
    ENABLE_VIRTUAL_TERMINAL_PROCESSING, GetConsoleOutputCP, SetConsoleCtrlHandler, SetConsoleOutputCP,
};
use windows_sys::core::BOOL;

/// The number of UTF-8 among the character sets of Windows.
const UTF8: u32 = 65_001;

/// Returns the size of the console window of standard error in columns and rows; `None` if standard
/// error is no console.
pub(crate) fn size_of_stderr() -> Option<(usize, usize)> {
    let window = screen_buffer_info(HandleRef::stderr()).ok()?.window_rect();
    let extent = |from: i16, to: i16| usize::try_from(i32::from(to) - i32::from(from) + 1).unwrap_or(0);
    Some((extent(window.left, window.right), extent(window.top, window.bottom)))
}

/// Returns true if the console can redraw a line that it shows, after switching it to escape
/// sequences. Consoles before Windows 10 cannot do this.
pub(crate) fn can_redraw() -> bool {
    mode(HandleRef::stderr()).is_ok_and(|before| {
        let wanted = before | ENABLE_VIRTUAL_TERMINAL_PROCESSING;
        before == wanted || set_mode(HandleRef::stderr(), wanted).is_ok()
    })
}

/// Returns false, because Windows has no process groups of a console.
pub(crate) fn is_in_background() -> bool {
    false
}

/// The character set that the console had before [`Utf8Console::begin`] set UTF-8; 0 while the
/// console has its former character set.
static FORMER_CHARACTER_SET: AtomicU32 = AtomicU32::new(0);

/// The character set in which the console reads the output of programs: UTF-8 while this value
/// exists, and the former one afterwards.
pub struct Utf8Console(());

impl Utf8Console {
    /// Makes the console read the output of programs as UTF-8, until this value is dropped or
    /// Ctrl-C ends the process. Has no effect if standard output is no console: std converts the
    /// text for standard error itself. So in `haul A | haul B`, the first process does not change
    /// the character set, and its end does not disturb the output of the second.
    #[must_use]
    pub fn begin() -> Self {
        // SAFETY: the call takes no pointer.
        let before = if io::stdout().is_terminal() { unsafe { GetConsoleOutputCP() } } else { 0 };
        if ![0, UTF8].contains(&before) {
            FORMER_CHARACTER_SET.store(before, Ordering::SeqCst);
            // SAFETY: the handler is a function of the program, and uses an atomic variable only.
            unsafe { SetConsoleCtrlHandler(Some(on_event), 1) };
            // SAFETY: the call takes no pointer.
            unsafe { SetConsoleOutputCP(UTF8) };
        }
        Self(())
    }
}

impl Drop for Utf8Console {
    fn drop(&mut self) {
        restore_character_set();
    }
}

/// Gives the console its former character set. Call this before the process is ended without
/// destructors.
pub(crate) fn restore_character_set() {
    let before = FORMER_CHARACTER_SET.swap(0, Ordering::SeqCst);
    if before != 0 {
        // SAFETY: the call takes no pointer.
        unsafe { SetConsoleOutputCP(before) };
    }
}

/// Restores the character set on a console event, such as Ctrl-C, and leaves the event to the
/// system, which ends the process. The handler of a run is installed later. Windows calls the
/// latest handler first.
extern "system" fn on_event(_event: u32) -> BOOL {
    restore_character_set();
    0
}
