//! Lines at the bottom of a terminal that are redrawn again and again.
//!
//! The cursor stays at the beginning of the last line. So text that the terminal adds itself, such
//! as the `^C` of an interrupt, appears on that line, as does the next prompt of the shell.

use std::fmt::Write as _;
use std::io::Write as _;

/// The redrawn lines that the terminal of standard error shows.
#[derive(Debug, Default)]
pub(super) struct TerminalLines {
    /// The number of lines that the terminal shows.
    count: usize,
}

impl TerminalLines {
    /// Replaces the shown lines by `lines`, each of which must be narrower than the terminal.
    pub(super) fn draw(&mut self, lines: &[String]) {
        let text = format!("{}{}\r", self.erasure(), lines.join("\r\n"));
        self.count = lines.len();
        // A terminal that has gone shows nothing.
        let _ = std::io::stderr().write_all(text.as_bytes());
    }

    /// Erases the shown lines, so that another text can be printed in their place.
    pub(super) fn clear(&mut self) {
        let text = self.erasure();
        self.count = 0;
        if !text.is_empty() {
            let _ = std::io::stderr().write_all(text.as_bytes());
        }
    }

    /// Returns the control sequences that erase the shown lines and move the cursor to the first of
    /// them. Returns an empty text if no lines are shown.
    fn erasure(&self) -> String {
        let mut text = String::new();
        match self.count {
            0 => {}
            1 => text.push_str("\r\x1b[J"),
            count => {
                let _ = write!(text, "\r\x1b[{}A\x1b[J", count - 1);
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn erasing_progress_lines_moves_to_the_first() {
        assert_eq!(TerminalLines { count: 0 }.erasure(), "");
        assert_eq!(TerminalLines { count: 1 }.erasure(), "\r\x1b[J");
        assert_eq!(TerminalLines { count: 3 }.erasure(), "\r\x1b[2A\x1b[J");
    }
}
