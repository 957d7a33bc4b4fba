//! The system calls `tcgetwinsize` and `tcgetpgrp` for the terminal of standard error, which return
//! its size and its foreground process group; and the check of `TERM`.

use rustix::termios::{tcgetpgrp, tcgetwinsize};

/// Returns the size of the terminal of standard error in columns and rows; `None` if standard error
/// is no terminal.
pub(crate) fn size_of_stderr() -> Option<(usize, usize)> {
    let size = tcgetwinsize(std::io::stderr()).ok()?;
    Some((usize::from(size.ws_col), usize::from(size.ws_row)))
}

/// Returns true if the terminal can redraw a line that it shows. This is the case if `TERM` is set
/// and not `dumb`.
pub(crate) fn can_redraw() -> bool {
    std::env::var_os("TERM").is_some_and(|name| name != "dumb" && !name.is_empty())
}

/// Returns true if this process is in a background process group of the terminal of standard error.
pub(crate) fn is_in_background() -> bool {
    // A terminal that does not control this process has no foreground group for it.
    tcgetpgrp(std::io::stderr()).is_ok_and(|group| group != rustix::process::getpgrp())
}
