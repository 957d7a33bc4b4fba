//! The terminal of standard error on Windows: a console.

use winapi_util::HandleRef;
use winapi_util::console::{mode, screen_buffer_info, set_mode};
use windows_sys::Win32::System::Console::{ENABLE_VIRTUAL_TERMINAL_PROCESSING, GetConsoleOutputCP, SetConsoleOutputCP};

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

/// The character set in which the console reads the output of programs: UTF-8 while this value
/// exists, and the former one afterwards.
pub struct Utf8Console(u32);

impl Utf8Console {
    /// Makes the console read UTF-8. Without a console, this has no effect.
    #[must_use]
    pub fn begin() -> Self {
        // SAFETY: neither call takes a pointer.
        let before = unsafe { GetConsoleOutputCP() };
        if ![0, UTF8].contains(&before) {
            // SAFETY: the call takes no pointer.
            unsafe { SetConsoleOutputCP(UTF8) };
        }
        Self(before)
    }
}

impl Drop for Utf8Console {
    fn drop(&mut self) {
        if ![0, UTF8].contains(&self.0) {
            // SAFETY: the call takes no pointer.
            unsafe { SetConsoleOutputCP(self.0) };
        }
    }
}
