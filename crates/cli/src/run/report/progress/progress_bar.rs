//! curl's progress bar (`-#`), for one body of known length. As in curl, it is drawn even if
//! standard error is not a terminal, because programs read the percentages from a pipe.
//!
//! ```text
//! ####################################                                      50.0%
//! ```

use std::io::Write;
use std::time::{Duration, Instant};

use crate::wrap_message::columns;

/// The minimum time between two drawings of the bar.
const INTERVAL: Duration = Duration::from_millis(100);

/// The number of columns to the right of the bar's `#` marks, for a text such as ` 100.0%`.
const PERCENT: usize = 7;

/// The state of the progress bar (`-#`): the progress of one response body, and the time of the
/// last drawing.
#[derive(Debug, Default)]
pub(crate) struct ProgressBar {
    /// True if the response body itself is printed on the terminal. The bar is not drawn then.
    is_hidden: bool,
    body: Option<BarByteCounts>,
    drawn: Option<Instant>,
    /// True if the transfer ended without drawing its bar: curl then prints an empty line after the
    /// error.
    owes_line: bool,
}

/// The number of bytes that the output already has, and the total length of the body.
#[derive(Clone, Copy, Debug)]
struct BarByteCounts {
    has: u64,
    total: u64,
}

impl ProgressBar {
    pub(crate) fn transfer_begins(&mut self, is_hidden: bool) {
        self.is_hidden = is_hidden;
    }

    /// Begins the body of a response, or begins it again after a retry. `already` is the number of
    /// bytes that the output already contains from an earlier run or try. Returns `false` if
    /// `length` is `None` (unknown), because there is then no bar.
    pub(crate) fn body_begins(&mut self, length: Option<u64>, already: u64) -> bool {
        self.body = length.map(|length| BarByteCounts { has: already, total: length.saturating_add(already) });
        if self.body.is_none() {
            self.end_line();
        }
        self.body.is_some()
    }

    /// Returns true if there is a bar for the current body.
    pub(crate) fn is_drawn(&self) -> bool {
        self.body.is_some()
    }

    /// Adds to the number of received body bytes, and draws the bar if the last drawing is long
    /// enough ago. Returns `false` if the length of the body is unknown, because there is then no
    /// bar.
    pub(crate) fn body_bytes(&mut self, bytes: u64) -> bool {
        let Some(body) = &mut self.body else { return false };
        body.has = body.has.saturating_add(bytes);
        let is_due = self.drawn.is_none_or(|drawn| drawn.elapsed() >= INTERVAL) || body.has >= body.total;
        if is_due && !self.is_hidden && body.total > 0 {
            self.drawn = Some(Instant::now());
            let text = format!("\r{}", body.drawn(columns().min(400)));
            let _ = std::io::stderr().write_all(text.as_bytes());
        }
        true
    }

    /// Ends a transfer, and the terminal line that shows its bar. Returns `false` if the transfer
    /// has no bar, for example because the length of its body is unknown. The next
    /// [`ProgressBar::end_undrawn`] prints an empty line if the transfer had a connection to a
    /// server (`was_reached`), and its bar is neither hidden nor drawn.
    pub(crate) fn transfer_over(&mut self, was_reached: bool) -> bool {
        self.owes_line = was_reached && !self.is_hidden && self.drawn.is_none();
        self.end_line();
        self.body.take().is_some()
    }

    /// Prints the empty line that curl prints after a transfer that has not drawn its bar.
    pub(crate) fn end_undrawn(&mut self) {
        if std::mem::take(&mut self.owes_line) {
            let _ = std::io::stderr().write_all(b"\n");
        }
    }

    /// Ends the terminal line that shows the bar, so that another text can be printed.
    pub(crate) fn end_line(&mut self) {
        if self.drawn.take().is_some() {
            let _ = std::io::stderr().write_all(b"\n");
        }
    }
}

impl BarByteCounts {
    fn drawn(self, columns: usize) -> String {
        let part = self.has.min(self.total) as f64 / self.total.max(1) as f64;
        let width = columns - PERCENT;
        let marks = "#".repeat((width as f64 * part) as usize);
        format!("{marks:width$} {:5.1}%", part * 100.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_bar_matches_curl() {
        let drawn = |has, total, columns| BarByteCounts { has, total }.drawn(columns);
        assert_eq!(drawn(6, 6, 79), format!("{} 100.0%", "#".repeat(72)));
        assert_eq!(drawn(10, 60, 79), format!("{}{}  16.7%", "#".repeat(12), " ".repeat(60)));
        assert_eq!(drawn(1, 2, 40), format!("{}{}  50.0%", "#".repeat(16), " ".repeat(17)));
        assert_eq!(drawn(9, 6, 40), format!("{} 100.0%", "#".repeat(33)), "more than was announced");
    }

    #[test]
    fn body_of_unknown_length_has_no_bar() {
        let mut bar = ProgressBar::default();
        bar.transfer_begins(true);
        assert!(!bar.body_begins(None, 5) && !bar.body_bytes(5) && !bar.transfer_over(true));
        assert!(bar.body_begins(Some(5), 5) && bar.body_bytes(5) && bar.transfer_over(true));
        assert!(!bar.transfer_over(true));
    }
}
