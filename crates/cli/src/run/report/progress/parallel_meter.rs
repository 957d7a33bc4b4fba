//! curl's progress meter for parallel transfers (`-Z`), as curl 8.21 draws it: a line of titles,
//! then one line of figures for all transfers. The line is redrawn at most twice a second, and at
//! the end.
//!
//! ```text
//! DL% UL%  Dled  Uled  Xfers  Live Total     Current  Left    Speed
//! 100 --     20     0     2     0  00:00:03 00:00:03              6
//! ```

use std::collections::VecDeque;
use std::io::Write;
use std::time::Duration;

use crate::run::report::run_counts::RunCountsSnapshot;

const TITLES: &str = "DL% UL%  Dled  Uled  Xfers  Live Total     Current  Left    Speed\n";

/// The minimum time between two drawings of the meter.
pub(super) const INTERVAL: Duration = Duration::from_millis(500);

/// The number of last drawings of the meter over which the shown speed is the average.
const SPEED_SAMPLES: usize = 10;

/// The state of curl's progress meter for parallel transfers.
#[derive(Debug, Default)]
pub(super) struct ParallelMeter {
    /// The time of the last drawing, from the start of the run; `None` before the first drawing.
    drawn: Option<Duration>,
    /// True if a body is printed on the terminal. The meter is not drawn then.
    pub(super) is_hidden: bool,
    /// The number of content bytes of requests that were sent.
    pub(super) sent: u64,
    /// The times of the last drawings, each with the numbers of received and sent bytes until then.
    samples: VecDeque<(Duration, u64, u64)>,
}

/// The figures in one line of curl's progress meter for parallel transfers.
#[derive(Clone, Copy, Debug, Default)]
struct ParallelFigures {
    received: u64,
    sent: u64,
    /// The number of transfers that have begun.
    begun: u64,
    running: u64,
    spent: Duration,
    /// The current transfer rate in bytes per second, in the direction that is faster.
    speed: u64,
}

impl ParallelMeter {
    /// Draws the meter if more than [`INTERVAL`] has passed since the last drawing, or if `is_last`
    /// is true.
    pub(super) fn draw(&mut self, counts: RunCountsSnapshot, is_last: bool) {
        let spent = counts.elapsed;
        let is_due = self.drawn.is_none_or(|drawn| spent.saturating_sub(drawn) > INTERVAL);
        if self.is_hidden || !(is_due || is_last) {
            return;
        }
        let titles = if self.drawn.replace(spent).is_none() { TITLES } else { "" };
        let running = if is_last { 0 } else { counts.running as u64 };
        let begun = counts.done + counts.failed + running;
        let speed = self.speed(spent, counts.bytes);
        let figures = ParallelFigures { received: counts.bytes, sent: self.sent, begun, running, spent, speed };
        let _ = std::io::stderr().write_all(format!("{titles}{}", meter_line(&figures, is_last)).as_bytes());
    }

    /// Returns the average speed over the last [`SPEED_SAMPLES`] drawings, in bytes per second: the
    /// speed of receiving or of sending, whichever is higher.
    fn speed(&mut self, spent: Duration, received: u64) -> u64 {
        self.samples.push_back((spent, received, self.sent));
        let (since, before, sent_before) = match self.samples.len() > SPEED_SAMPLES {
            true => self.samples.pop_front().unwrap_or_default(),
            false => (Duration::ZERO, 0, 0),
        };
        let millis = spent.saturating_sub(since).as_millis().max(1);
        let bytes = received.saturating_sub(before).max(self.sent.saturating_sub(sent_before));
        u64::try_from(u128::from(bytes) * 1000 / millis).unwrap_or(u64::MAX)
    }
}

fn meter_line(figures: &ParallelFigures, is_last: bool) -> String {
    let ParallelFigures { received, sent, begun, running, spent, speed } = *figures;
    // The length of a running transfer is not known here, so a total is that of ended transfers.
    let is_known = running == 0 && received > 0;
    let percent = |is_known: bool| if is_known { "100" } else { "--" };
    let total = if is_known { received.checked_div(speed).unwrap_or(0) } else { 0 };
    format!(
        "\r{:<3} {:<3} {} {} {begun:5} {running:5}  {} {} {} {} {:>5}",
        percent(is_known),
        percent(running == 0 && sent > 0),
        size_text(received),
        size_text(sent),
        clock_text(total),
        clock_text(spent.as_secs()),
        clock_text(0),
        size_text(speed),
        if is_last { "\n" } else { "" },
    )
}

/// Formats a number of bytes in five columns: ` 9999`, `97.6k`, ` 585k`.
fn size_text(bytes: u64) -> String {
    if bytes < 100_000 {
        return format!("{bytes:5}");
    }
    let mut bytes = bytes;
    for unit in "kMGTP".chars() {
        let (whole, rest) = (bytes / 1024, bytes % 1024);
        match whole {
            0..=99 => return format!("{whole:2}.{}{unit}", rest * 10 / 1024),
            100..=9999 => return format!("{whole:4}{unit}"),
            _ => bytes = whole,
        }
    }
    format!("{bytes:4}E")
}

/// Formats seconds in eight columns as hours, minutes and seconds, or as days and hours. Returns
/// blanks for zero.
fn clock_text(seconds: u64) -> String {
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    match hours {
        _ if seconds == 0 => " ".repeat(8),
        0..=99 => format!("{hours:02}:{:02}:{:02}", minutes % 60, seconds % 60),
        _ if days <= 999 => format!("{days:3}d {:02}h", hours % 24),
        _ => format!("{days:7}d"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parallel_meter_line_matches_curl() {
        let mut figures = ParallelFigures { begun: 2, running: 1, ..ParallelFigures::default() };
        assert_eq!(
            meter_line(&figures, false),
            "\r--  --      0     0     2     1                                 0      "
        );
        (figures.received, figures.speed, figures.spent) = (10, 6, Duration::from_millis(1600));
        assert_eq!(
            meter_line(&figures, false),
            "\r--  --     10     0     2     1           00:00:01              6      "
        );
        let last = ParallelFigures { received: 20, running: 0, spent: Duration::from_secs(3), ..figures };
        assert_eq!(
            meter_line(&last, true),
            "\r100 --     20     0     2     0  00:00:03 00:00:03              6     \n"
        );
    }

    #[test]
    fn parallel_meter_numbers_fit_their_columns() {
        for (bytes, text) in [(99_999, "99999"), (100_000, "97.6k"), (600_000, " 585k"), (50 << 20, "50.0M")] {
            assert_eq!(size_text(bytes), text);
        }
        for bytes in (0..64).map(|shift| 1u64 << shift) {
            assert_eq!(size_text(bytes).len(), 5, "{bytes}");
        }
        for (seconds, text) in [(3_661, "01:01:01"), (400_000, "  4d 15h"), (100_000_000, "   1157d")] {
            assert_eq!(clock_text(seconds), text);
        }
    }

    #[test]
    fn parallel_meter_speed_covers_the_last_drawings() {
        let mut meter = ParallelMeter::default();
        let mut speed = 0;
        for second in 1..=20 {
            speed = meter.speed(Duration::from_secs(second), second.saturating_sub(10) * 100);
        }
        assert_eq!((speed, meter.samples.len()), (100, SPEED_SAMPLES));
    }
}
