//! curl's progress meter: two lines of titles, then a line of figures that is drawn over at most once a second and ends with
//! the transfer. Shown whether stderr is a terminal or not, as curl does, because scripts capture it.
//!
//! ```text
//!   % Total    % Received % Xferd  Average Speed   Time    Time     Time  Current
//!                                  Dload  Upload   Total   Spent    Left  Speed
//! 100     6  100     6    0     0   4132      0 --:--:-- --:--:-- --:--:--  6000
//! ```

use std::fmt::Write as _;
use std::io::Write;
use std::time::{Duration, Instant};

const TITLES: &str = "  % Total    % Received % Xferd  Average Speed   Time    Time     Time  Current\n                                 \
                      Dload  Upload   Total   Spent    Left  Speed\n";

/// Between two drawings of one transfer.
const INTERVAL: Duration = Duration::from_secs(1);

/// The meter of the transfer under way.
#[derive(Debug)]
pub(super) struct Meter {
    began: Instant,
    drawn: Option<Instant>,
    has_titles: bool,
    /// The body itself is on the terminal.
    is_hidden: bool,
    figures: Figures,
    /// Bytes when it was drawn last, for the current speed.
    before: u64,
}

/// What a line says.
#[derive(Clone, Copy, Debug, Default)]
struct Figures {
    total: Option<u64>,
    received: u64,
    /// The average, in bytes a second.
    speed: u64,
    current: u64,
    spent: Duration,
}

impl Meter {
    pub(super) fn new() -> Self {
        Meter {
            began: Instant::now(),
            drawn: None,
            has_titles: false,
            is_hidden: false,
            figures: Figures::default(),
            before: 0,
        }
    }

    /// A transfer begins. The titles stand above the first one alone.
    pub(super) fn transfer_begins(&mut self, is_hidden: bool) {
        let has_titles = self.has_titles;
        *self = Meter { has_titles, is_hidden, ..Meter::new() };
    }

    pub(super) fn body_begins(&mut self, total: Option<u64>) {
        self.figures.total = total;
        self.figures.received = 0;
    }

    pub(super) fn body_bytes(&mut self, bytes: u64) {
        self.figures.received += bytes;
        if self.drawn.unwrap_or(self.began).elapsed() >= INTERVAL {
            self.draw(false);
        }
    }

    /// It is over, having received so many bytes.
    pub(super) fn transfer_over(&mut self, bytes: u64) {
        self.figures.received = self.figures.received.max(bytes);
        if self.drawn.is_none() {
            let end = std::mem::take(&mut self.figures);
            self.draw(false);
            self.figures = end;
        }
        self.draw(true);
    }

    fn draw(&mut self, is_last: bool) {
        let now = Instant::now();
        let since = now.duration_since(self.drawn.unwrap_or(self.began));
        let figures = &mut self.figures;
        figures.spent = now.duration_since(self.began);
        figures.speed = rate(figures.received, figures.spent);
        figures.current = rate(figures.received.saturating_sub(self.before), since.max(Duration::from_millis(1)));
        self.before = figures.received;
        self.drawn = Some(now);
        if self.is_hidden {
            return;
        }
        let mut text = String::new();
        if !std::mem::replace(&mut self.has_titles, true) {
            text.push_str(TITLES);
        }
        text.push('\r');
        text.push_str(&line(&self.figures));
        if is_last {
            text.push('\n');
        }
        let _ = std::io::stderr().write_all(text.as_bytes());
    }
}

fn rate(bytes: u64, time: Duration) -> u64 {
    let micros = time.as_micros().max(1);
    u64::try_from(u128::from(bytes) * 1_000_000 / micros).unwrap_or(u64::MAX)
}

fn line(figures: &Figures) -> String {
    let total = figures.total.unwrap_or(figures.received);
    let percent = |of: u64| if of == 0 { 0 } else { u128::from(figures.received.min(of)) * 100 / u128::from(of) };
    let known = figures.total.unwrap_or(0);
    let all = Duration::from_secs(known.checked_div(figures.speed).unwrap_or(0));
    let left = all.saturating_sub(figures.spent);
    let mut text = String::new();
    let _ = write!(
        text,
        "{:3} {}  {:3} {}    0     0  {}  {} {} {} {} {}",
        percent(total),
        five(total),
        percent(total),
        five(figures.received),
        five(figures.speed),
        five(0),
        clock(all),
        clock(Duration::from_secs(figures.spent.as_secs())),
        clock(left),
        five(figures.current),
    );
    text
}

/// A number of bytes in five characters: `99999`, `100k`, `97.6M`.
fn five(bytes: u64) -> String {
    const UNITS: [char; 6] = ['k', 'M', 'G', 'T', 'P', 'E'];
    if bytes < 100_000 {
        return format!("{bytes:5}");
    }
    let mut value = bytes;
    for (at, unit) in UNITS.into_iter().enumerate() {
        let (whole, rest) = (value / 1024, value % 1024);
        if whole < 100 && at > 0 {
            return format!("{whole:2}.{}{unit}", rest * 10 / 1024);
        }
        if whole < 10_000 {
            return format!("{whole:4}{unit}");
        }
        value = whole;
    }
    format!("{value:5}")
}

/// `--:--:--` for nothing, hours with minutes and seconds, days with hours.
fn clock(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds / 3600 {
        _ if seconds == 0 => "--:--:--".to_owned(),
        hours @ 0..=99 => format!("{hours:2}:{:02}:{:02}", seconds / 60 % 60, seconds % 60),
        hours @ 100..=23_999 => format!("{:3}d {:02}h", hours / 24, hours % 24),
        hours => format!("{:7}d", hours / 24),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_as_wide_as_its_titles() {
        let figures = Figures { total: Some(1 << 40), received: 1 << 30, speed: 1 << 20, ..Figures::default() };
        for figures in [figures, Figures::default(), Figures { received: 6, speed: 4132, current: 6000, ..figures }] {
            assert_eq!(line(&figures).len(), 78, "{}", line(&figures));
        }
        assert!(
            line(&Figures { total: Some(10), received: 10, ..Figures::default() }).starts_with("100    10  100    10")
        );
    }

    #[test]
    fn numbers_fit_their_columns() {
        for (bytes, text) in [
            (0, "    0"),
            (99_999, "99999"),
            (100_000, "  97k"),
            (1 << 20, "1024k"),
            (50 << 20, "50.0M"),
            (1 << 40, "1024G"),
        ] {
            assert_eq!(five(bytes), text);
        }
        for bytes in (0..64).map(|shift| 1u64 << shift).chain([u64::MAX]) {
            assert_eq!(five(bytes).len(), 5, "{bytes}");
        }
        for (seconds, text) in [(0, "--:--:--"), (61, " 0:01:01"), (360_000, "  4d 04h"), (86_400_000, "   1000d")] {
            assert_eq!(clock(Duration::from_secs(seconds)), text);
        }
    }
}
