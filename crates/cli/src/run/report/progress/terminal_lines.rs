//! Lines at the bottom of a terminal that are drawn again and again.
//!
//! The cursor rests at the beginning of the last line. Text that the terminal adds by itself, such as
//! the `^C` of an interrupt, comes on that line, and so does the next prompt after it.

use std::fmt::Write as _;
use std::io::Write as _;

/// Lines that the terminal of standard error shows now.
#[derive(Debug, Default)]
pub(super) struct TerminalLines {
    /// The number of lines that are shown.
    count: usize,
}

impl TerminalLines {
    /// Replaces the lines that are shown. Each new line is narrower than the terminal.
    pub(super) fn draw(&mut self, lines: &[String]) {
        let text = format!("{}{}\r", self.erasure(), lines.join("\r\n"));
        self.count = lines.len();
        // A terminal that has gone shows nothing.
        let _ = std::io::stderr().write_all(text.as_bytes());
    }

    /// Removes the lines, so that another text can be printed in their place.
    pub(super) fn clear(&mut self) {
        let text = self.erasure();
        self.count = 0;
        if !text.is_empty() {
            let _ = std::io::stderr().write_all(text.as_bytes());
        }
    }

    /// Returns the control sequences that erase the lines and move the cursor to the first of them;
    /// an empty text if there are no lines.
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
    fn erasure_moves_up_to_the_first_line() {
        assert_eq!(TerminalLines { count: 0 }.erasure(), "");
        assert_eq!(TerminalLines { count: 1 }.erasure(), "\r\x1b[J");
        assert_eq!(TerminalLines { count: 3 }.erasure(), "\r\x1b[2A\x1b[J");
    }
}
