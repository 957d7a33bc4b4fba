//! curl's progress meter, as curl 8.22 draws it: two lines of titles for each transfer, then a line
//! of figures. The line is redrawn at most once a second, and when the transfer ends. As in curl,
//! it is drawn even if standard error is not a terminal, because scripts capture it. A transfer
//! without a connection to a server has no meter.
//!
//! ```text
//!   % Total    % Received % Xferd  Average Speed  Time    Time    Time   Current
//!                                  Dload  Upload  Total   Spent   Left   Speed
//! 100 100.0k 100 100.0k   0      0 12.20M      0                              0
//! ```

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::io::Write;
use std::time::{Duration, Instant};

use haul::transfer_facts::TransferFacts;

const TITLES: &str = "  % Total    % Received % Xferd  Average Speed  Time    Time    Time   Current\n                                 \
                      Dload  Upload  Total   Spent   Left   Speed\n";

/// The minimum time between two drawings of the meter during a transfer.
const INTERVAL: Duration = Duration::from_secs(1);

/// The number of samples, one per second, from which the current speed of a transfer is computed.
const SPEED_SAMPLES: usize = 6;

/// The state of curl's progress meter for the current transfer.
#[derive(Debug)]
pub(crate) struct ProgressMeter {
    began: Instant,
    drawn: Option<Instant>,
    /// True if the response body itself is printed on the terminal. The meter is not drawn then.
    is_hidden: bool,
    /// The offset in bytes at which the transfer resumes a partial file; 0 if it does not resume.
    resumes_at: u64,
    figures: MeterFigures,
    /// The last samples of the transfer's progress: the time since the start of the transfer, and
    /// the number of bytes transferred until then.
    records: VecDeque<(Duration, u64)>,
}

/// The figures in one line of curl's progress meter.
#[derive(Clone, Copy, Debug, Default)]
struct MeterFigures {
    total: Option<u64>,
    received: u64,
    sent: u64,
    /// The current transfer rate in bytes per second.
    current: u64,
    spent: Duration,
}

impl ProgressMeter {
    pub(crate) fn new() -> Self {
        ProgressMeter {
            began: Instant::now(),
            drawn: None,
            is_hidden: false,
            resumes_at: 0,
            figures: MeterFigures::default(),
            records: VecDeque::new(),
        }
    }

    pub(crate) fn transfer_begins(&mut self, is_hidden: bool) {
        *self = ProgressMeter { is_hidden, ..ProgressMeter::new() };
    }

    /// Sets the offset in bytes at which the transfer resumes a partial file. The heading of the
    /// meter mentions it.
    pub(crate) fn set_resume_offset(&mut self, offset: u64) {
        self.resumes_at = offset;
    }

    /// Records that the body of a response begins, possibly again after a retry. `total` is the
    /// length of the body in bytes; `None` if it is unknown.
    pub(crate) fn body_begins(&mut self, total: Option<u64>) {
        self.figures.total = total;
        self.figures.received = 0;
    }

    pub(crate) fn body_bytes(&mut self, bytes: u64) {
        self.figures.received += bytes;
        if self.drawn.unwrap_or(self.began).elapsed() >= INTERVAL {
            self.draw(false);
        }
    }

    /// Draws the final figures of a transfer. Does nothing if `was_reached` is false, because the
    /// transfer then had no connection to a server.
    pub(crate) fn transfer_over(&mut self, facts: &TransferFacts, was_reached: bool) {
        if !was_reached {
            return;
        }
        if self.drawn.is_none() {
            let total = std::mem::take(&mut self.figures).total;
            self.draw(false);
            self.figures.total = total;
        }
        // The bytes counted so far may be heads, or decoded content.
        (self.figures.received, self.figures.sent) = (facts.body_bytes, facts.upload_bytes);
        self.draw(true);
    }

    fn draw(&mut self, is_last: bool) {
        let now = Instant::now();
        self.figures.spent = now.duration_since(self.began);
        self.record();
        let is_first = self.drawn.replace(now).is_none();
        if self.is_hidden {
            return;
        }
        let mut text = String::new();
        if is_first {
            if self.resumes_at > 0 {
                let _ = writeln!(text, "** Resuming transfer from byte position {}", self.resumes_at);
            }
            text.push_str(TITLES);
        }
        text.push('\r');
        text.push_str(&meter_line(&self.figures));
        if is_last {
            text.push('\n');
        }
        let _ = std::io::stderr().write_all(text.as_bytes());
    }

    /// Adds a sample of the transfer's progress if [`INTERVAL`] has passed since the last one, and
    /// computes the current speed.
    fn record(&mut self) {
        let MeterFigures { spent, received, sent, .. } = self.figures;
        if self.records.back().is_some_and(|(at, _)| spent.saturating_sub(*at) < INTERVAL) {
            return;
        }
        self.records.push_back((spent, received.saturating_add(sent)));
        if self.records.len() > SPEED_SAMPLES {
            self.records.pop_front();
        }
        if let (Some(first), Some(last)) = (self.records.front(), self.records.back()) {
            self.figures.current = rate(last.1.saturating_sub(first.1), last.0.saturating_sub(first.0));
        }
    }
}

fn rate(bytes: u64, time: Duration) -> u64 {
    let micros = time.as_micros().max(1);
    u64::try_from(u128::from(bytes) * 1_000_000 / micros).unwrap_or(u64::MAX)
}

fn meter_line(figures: &MeterFigures) -> String {
    let MeterFigures { total, received, sent, current, spent } = *figures;
    let percent = |part: u64, of: u64| (u128::from(part) * 100).checked_div(u128::from(of)).unwrap_or(0).min(100);
    let (down, up) = (rate(received, spent), rate(sent, spent));
    let all = total.unwrap_or(received).saturating_add(sent);
    let whole = Duration::from_secs(total.unwrap_or(0).checked_div(down).unwrap_or(0));
    format!(
        "{:3} {} {:3} {} {:3} {} {} {} {} {} {} {}",
        percent(received.saturating_add(sent), all),
        size_text(all),
        total.map_or(0, |total| percent(received, total)),
        size_text(received),
        percent(sent, sent),
        size_text(sent),
        size_text(down),
        size_text(up),
        clock_text(whole),
        clock_text(spent),
        clock_text(whole.saturating_sub(spent)),
        size_text(current),
    )
}

/// Formats a number of bytes in six columns: ` 99999`, `100.0k`, `97.60M`.
fn size_text(bytes: u64) -> String {
    if bytes < 100_000 {
        return format!("{bytes:6}");
    }
    let mut bytes = bytes;
    let mut units = "kMGTPE".chars();
    loop {
        let (unit, whole, rest) = (units.next().unwrap_or('?'), bytes / 1024, bytes % 1024);
        match whole {
            0..=99 => return format!("{whole:2}.{:02}{unit}", rest * 100 / 1024),
            100..=999 => return format!("{whole:3}.{}{unit}", rest * 10 / 1024),
            _ => bytes = whole,
        }
    }
}

/// Formats a duration in seven columns, with units from seconds to years. Returns blanks for zero.
fn clock_text(time: Duration) -> String {
    let seconds = time.as_secs();
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    match hours {
        _ if seconds == 0 => " ".repeat(7),
        0 => format!("  {minutes:02}:{:02}", seconds % 60),
        1..=9 => format!("{hours}:{:02}:{:02}", minutes % 60, seconds % 60),
        10..=99 => format!("{hours}h {:02}m", minutes % 60),
        _ if days <= 99 => format!("{days:2}d {:02}h", hours % 24),
        _ if days <= 999 => format!("{days:6}d"),
        _ if days / 30 <= 999 => format!("{:6}m", days / 30),
        _ => match days / 365 {
            years @ 0..=99_999 => format!("{years:6}y"),
            _ => ">99999y".to_owned(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn meter_line_is_as_wide_as_its_heading() {
        let spent = Duration::from_secs(1000);
        let large = MeterFigures { total: Some(1 << 40), received: 1 << 30, spent, ..MeterFigures::default() };
        for figures in [large, MeterFigures::default(), MeterFigures { sent: 6, current: 6000, ..large }] {
            assert_eq!(meter_line(&figures).len(), 77, "{}", meter_line(&figures));
        }
        let known =
            MeterFigures { total: Some(100), received: 50, sent: 0, current: 5, spent: Duration::from_secs(10) };
        assert_eq!(meter_line(&known), " 50    100  50     50   0      0      5      0   00:20   00:10   00:10      5");
        let unknown = MeterFigures { total: None, ..known };
        assert_eq!(
            meter_line(&unknown),
            "100     50   0     50   0      0      5      0           00:10              5"
        );
        let sent = MeterFigures { total: Some(2), received: 2, sent: 2258, current: 0, spent };
        assert_eq!(meter_line(&sent), "100   2260 100      2 100   2258      0      2           16:40              0");
    }

    #[test]
    fn meter_numbers_fit_their_columns() {
        for (bytes, text) in [
            (0, "     0"),
            (99_999, " 99999"),
            (100_000, "97.65k"),
            (102_400, "100.0k"),
            (1 << 20, " 1.00M"),
            (999 << 10, "999.0k"),
            (50 << 20, "50.00M"),
            (1 << 40, " 1.00T"),
        ] {
            assert_eq!(size_text(bytes), text);
        }
        for bytes in (0..64).map(|shift| 1u64 << shift).chain([u64::MAX]) {
            assert_eq!(size_text(bytes).len(), 6, "{bytes}");
        }
        for (seconds, text) in [
            (0, "       "),
            (61, "  01:01"),
            (3_661, "1:01:01"),
            (36_060, "10h 01m"),
            (360_000, " 4d 04h"),
            (8_640_000, "   100d"),
            (86_400_000, "    33m"),
            (1 << 40, " 34865y"),
            (u64::MAX, ">99999y"),
        ] {
            assert_eq!(clock_text(Duration::from_secs(seconds)), text);
        }
    }

    #[test]
    fn meter_speed_covers_the_last_six_samples() {
        let mut meter = ProgressMeter::new();
        for second in 0..10 {
            meter.figures.spent = Duration::from_secs(second);
            meter.figures.received = if second < 5 { 0 } else { (second - 4) * 100 };
            meter.record();
        }
        assert_eq!((meter.figures.current, meter.records.len()), (100, SPEED_SAMPLES));
        meter.figures.received = 1 << 40;
        meter.record();
        assert_eq!(meter.figures.current, 100);
    }
}
