//! The text of the progress line, which fits the width of the terminal.
//!
//! ```text
//! 45%  [=========>           ]  12.30 MiB of 27.10 MiB  3.20 MiB/s  5s left      one body of known length
//! waiting for the server, 3 s
//! the server answered 503; again in 2 s (1 of 3)
//! 17 of 120 done  3 failed  6 running  12.30 MiB  3.20 MiB/s  50s left           many
//! ```
//!
//! A run with several stages has a line for each stage, and below them the line of the whole run.
//!
//! If the terminal is narrow, the line leaves out its less important parts (`fit_parts`).

use std::time::Duration;

use indicatif::{HumanBytes, HumanDuration};

use crate::run::report::run_counts::RunCountsSnapshot;

/// The minimum and the maximum width of the bar in columns, without its brackets.
const BAR_COLUMNS: (usize, usize) = (8, 30);

/// The state of a run that the progress line shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ProgressView {
    /// One transfer whose body is arriving.
    Body(BodyFigures),
    /// One transfer whose body has not begun. `time` is the time since its start.
    Waiting { time: Duration },
    /// One transfer that pauses before its retry.
    Pause(RetryPauseFigures),
    /// A run of many URLs.
    Many(ManyUrlFigures),
}

/// The figures of the progress line for one body.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct BodyFigures {
    /// The number of bytes that the output file already contained, from an earlier run or attempt.
    pub(super) already: u64,
    /// The number of bytes of the body that have arrived so far, without those that the output file
    /// already contained (`already`).
    pub(super) received: u64,
    /// The length of the complete content in bytes; `None` if it is unknown.
    pub(super) total: Option<u64>,
    /// The current transfer rate in bytes per second.
    pub(super) rate: u64,
    pub(super) left: Option<Duration>,
    /// The number of connections over which the body is fetched.
    pub(super) connections: usize,
}

/// The figures of the progress line for a pause before a retry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RetryPauseFigures {
    /// The error that caused the retry, as text.
    pub(super) cause: String,
    /// The time until the retry.
    pub(super) left: Duration,
    /// The number of the coming retry, from 1.
    pub(super) retry: u32,
    /// The maximum number of retries.
    pub(super) most: u32,
}

/// The figures of the progress line for a run of many URLs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ManyUrlFigures {
    pub(super) counts: RunCountsSnapshot,
    /// The counts of each stage. A run without `--then` has one stage.
    pub(super) stages: Vec<StageFigures>,
    /// The current transfer rate of the run in bytes per second.
    pub(super) rate: u64,
    /// The number of transfers that wait for a retry, and the time until the first of these
    /// retries; `None` if no transfer waits.
    pub(super) pauses: Option<(usize, Duration)>,
    /// The host with the longest mean duration of its transfers, and that duration; `None` with
    /// fewer than two hosts.
    pub(super) slowest: Option<(String, Duration)>,
}

/// The counts of URLs and bytes of one stage of a run, for the progress line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct StageFigures {
    pub(super) done: u64,
    pub(super) failed: u64,
    pub(super) bytes: u64,
    /// The number of URLs of the stage; `None` if it is unknown.
    pub(super) total: Option<u64>,
}

/// A part of the progress line, with its rank. If the line is too long, the part with the highest
/// rank is omitted first.
struct LinePart {
    rank: u8,
    text: String,
}

fn line_part(rank: u8, text: impl Into<String>) -> LinePart {
    LinePart { rank, text: text.into() }
}

impl ProgressView {
    /// Returns the progress lines for a terminal with this number of columns and rows.
    pub(super) fn lines(&self, columns: usize, rows: usize) -> Vec<String> {
        match self {
            ProgressView::Body(body) => vec![body.line(columns)],
            ProgressView::Waiting { time } => {
                vec![fit_parts(vec![line_part(0, format!("waiting for the server, {} s", time.as_secs()))], columns)]
            }
            ProgressView::Pause(pause) => vec![pause.line(columns)],
            ProgressView::Many(many) => many.lines(columns, rows),
        }
    }
}

impl BodyFigures {
    /// Returns the percentage of the body that is complete. It is rounded down, so that 100 means
    /// complete. Returns `None` if the length of the body is unknown.
    pub(super) fn percent(&self) -> Option<u64> {
        self.total.map(|total| percent(self.received_bytes(), total))
    }

    pub(super) fn received_bytes(&self) -> u64 {
        self.already.saturating_add(self.received)
    }

    fn line(&self, columns: usize) -> String {
        let has = HumanBytes(self.received_bytes());
        let mut parts = Vec::with_capacity(5);
        parts.extend(self.percent().map(|percent| line_part(0, format!("{percent}%"))));
        parts.push(match self.total {
            Some(total) => line_part(3, format!("{has} of {}", HumanBytes(total))),
            None => line_part(0, has.to_string()),
        });
        parts.push(line_part(2, format!("{}/s", HumanBytes(self.rate))));
        parts.extend(self.left.map(|left| line_part(1, format!("{:#} left", HumanDuration(left)))));
        if self.connections > 1 {
            parts.push(line_part(4, format!("{} connections", self.connections)));
        }
        let line = fit_parts(parts, columns);
        match self.percent() {
            Some(percent) => with_bar(&line, percent, columns),
            None => line,
        }
    }
}

impl RetryPauseFigures {
    fn line(&self, columns: usize) -> String {
        let (seconds, most) = (seconds_until(self.left), self.most);
        let again = match self.retry {
            // The repetition does not count.
            0 => format!("again in {seconds} s"),
            retry => format!("again in {seconds} s ({retry} of {most})"),
        };
        let whole = format!("{}; {again}", self.cause);
        // The number of columns of other texts is not known.
        let fits = whole.is_ascii() && whole.len() <= columns;
        fit_parts(vec![line_part(0, if fits { whole } else { again })], columns)
    }
}

impl ManyUrlFigures {
    fn lines(&self, columns: usize, rows: usize) -> Vec<String> {
        let mut lines = Vec::new();
        // Lines that do not fit would move others off the screen.
        if self.stages.len() > 1 && self.stages.len() < rows {
            let stages = self.stages.iter().enumerate();
            lines.extend(stages.map(|(number, stage)| stage.line(number + 1, columns)));
        }
        lines.push(self.line(columns));
        lines
    }

    fn line(&self, columns: usize) -> String {
        let RunCountsSnapshot { done, failed, running, skipped, bytes, total, .. } = self.counts;
        let over = done + failed;
        let mut parts = vec![line_part(0, done_text(done, total))];
        if failed > 0 {
            parts.push(line_part(1, format!("{failed} failed")));
        }
        if skipped > 0 {
            parts.push(line_part(6, format!("{skipped} skipped")));
        }
        parts.push(line_part(5, format!("{running} running")));
        if let Some((count, until)) = self.pauses {
            parts.push(line_part(4, format!("{count} again in {} s", seconds_until(until))));
        }
        parts.push(line_part(5, HumanBytes(bytes).to_string()));
        parts.push(line_part(3, format!("{}/s", HumanBytes(self.rate))));
        parts.extend(self.counts.remaining_time().map(|left| line_part(2, format!("{:#} left", HumanDuration(left)))));
        if let Some((host, time)) = &self.slowest {
            parts.push(line_part(7, format!("slowest: {host} {:.1} s", time.as_secs_f64())));
        }
        let line = fit_parts(parts, columns);
        match total {
            Some(total) => with_bar(&line, percent(over + skipped, total), columns),
            None => line,
        }
    }
}

impl StageFigures {
    fn line(&self, number: usize, columns: usize) -> String {
        let mut parts = vec![line_part(0, format!("stage {number}: {}", done_text(self.done, self.total)))];
        if self.failed > 0 {
            parts.push(line_part(1, format!("{} failed", self.failed)));
        }
        parts.push(line_part(2, HumanBytes(self.bytes).to_string()));
        fit_parts(parts, columns)
    }
}

fn done_text(done: u64, total: Option<u64>) -> String {
    match total {
        Some(total) => format!("{done} of {total} done"),
        None => format!("{done} done"),
    }
}

/// Returns the remaining time of a pause in whole seconds, at least 1.
fn seconds_until(left: Duration) -> u64 {
    (left.as_secs_f64().ceil() as u64).max(1)
}

fn percent(part: u64, whole: u64) -> u64 {
    let (part, whole) = (u128::from(part).min(whole.into()), u128::from(whole));
    u64::try_from((part * 100).checked_div(whole).unwrap_or(100)).unwrap_or(100)
}

/// Joins the parts of a line. While the line is wider than `columns`, omits the least important
/// part, which has the highest rank. If one part is left, truncates it.
fn fit_parts(mut parts: Vec<LinePart>, columns: usize) -> String {
    loop {
        let texts: Vec<&str> = parts.iter().map(|part| part.text.as_str()).collect();
        let line = texts.join("  ");
        if line.chars().count() <= columns || parts.len() < 2 {
            return line.chars().take(columns).collect();
        }
        let highest = parts.iter().map(|part| part.rank).max().unwrap_or(0);
        let at = parts.iter().rposition(|part| part.rank == highest).unwrap_or(0);
        parts.remove(at);
    }
}

/// Inserts a progress bar for `percent` percent after the first word of a line. Returns the line
/// unchanged if a line of `columns` columns has no room for the bar.
fn with_bar(line: &str, percent: u64, columns: usize) -> String {
    let (least, most) = BAR_COLUMNS;
    let room = columns.saturating_sub(line.chars().count() + 4).min(most);
    if room < least {
        return line.to_owned();
    }
    let full = room * usize::try_from(percent).unwrap_or(100) / 100;
    let tip = if full < room { ">" } else { "" };
    let bar = format!("[{:<room$}]", format!("{}{tip}", "=".repeat(full)));
    match line.split_once("  ") {
        Some((first, rest)) => format!("{first}  {bar}  {rest}"),
        None => format!("{line}  {bar}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(already: u64, received: u64, total: u64) -> BodyFigures {
        BodyFigures { already, received, total: Some(total), ..BodyFigures::default() }
    }

    #[test]
    fn progress_line_shows_percentage_size_rate_and_time() {
        let body = BodyFigures { rate: 2 << 20, left: Some(Duration::from_secs(5)), ..known(0, 10 << 20, 20 << 20) };
        let bar = format!("[{}>{}]", "=".repeat(15), " ".repeat(14));
        assert_eq!(body.line(90), format!("50%  {bar}  10.00 MiB of 20.00 MiB  2.00 MiB/s  5s left"));
        let endless = BodyFigures { received: 1 << 20, rate: 1 << 10, ..BodyFigures::default() };
        assert_eq!(endless.line(90), "1.00 MiB  1.00 KiB/s");
        assert!(known(0, 10, 10).line(90).contains(&format!("[{}]", "=".repeat(30))));
    }

    #[test]
    fn narrow_progress_line_omits_less_important_parts() {
        let body = BodyFigures { rate: 2 << 20, left: Some(Duration::from_secs(5)), ..known(0, 10 << 20, 20 << 20) };
        assert_eq!(body.line(50), "50%  10.00 MiB of 20.00 MiB  2.00 MiB/s  5s left");
        assert_eq!(body.line(30), "50%  2.00 MiB/s  5s left");
        assert_eq!(body.line(20), "50%  5s left");
        assert_eq!(body.line(3), "50%");
        let many = ManyUrlFigures {
            counts: RunCountsSnapshot {
                done: 17,
                failed: 3,
                running: 6,
                total: Some(120),
                ..RunCountsSnapshot::default()
            },
            ..ManyUrlFigures::default()
        };
        assert_eq!(many.line(19), "17 of 120 done");
        let stages = vec![StageFigures { done: 17, failed: 3, bytes: 1 << 40, total: Some(120) }; 3];
        let slowest = Some(("h.example".to_owned(), Duration::from_secs(5)));
        let view = ProgressView::Many(ManyUrlFigures { stages, slowest, ..many });
        for columns in 0..=500 {
            let lines = view.lines(columns, 24);
            assert!(lines.len() == 4 && lines.iter().all(|line| line.chars().count() <= columns), "{columns}");
        }
    }

    #[test]
    fn progress_of_many_urls_shows_counts_per_stage() {
        let counts = RunCountsSnapshot {
            elapsed: Duration::from_secs(10),
            done: 17,
            failed: 3,
            running: 6,
            skipped: 1,
            bytes: 10 << 20,
            total: None,
        };
        let first = StageFigures { done: 4, failed: 0, bytes: 2 << 20, total: Some(9) };
        let second = StageFigures { done: 13, failed: 3, bytes: 8 << 20, total: None };
        let many = ManyUrlFigures {
            counts,
            stages: vec![first, second],
            rate: 1 << 20,
            pauses: Some((2, Duration::from_millis(1500))),
            slowest: Some(("h.example".to_owned(), Duration::from_millis(2100))),
        };
        let whole =
            "17 done  3 failed  1 skipped  6 running  2 again in 2 s  10.00 MiB  1.00 MiB/s  slowest: h.example 2.1 s";
        let view = ProgressView::Many(many);
        let of_stages = ["stage 1: 4 of 9 done  2.00 MiB", "stage 2: 13 done  3 failed  8.00 MiB"];
        assert_eq!(view.lines(200, 24), [&of_stages[..], &[whole]].concat());
        assert_eq!(view.lines(200, 2), [whole], "two rows have no room for three lines");
    }

    #[test]
    fn progress_line_shows_connections_of_split_download() {
        let body = BodyFigures { connections: 4, ..known(0, 5, 10) };
        assert!(body.line(90).ends_with("5 B of 10 B  0 B/s  4 connections"), "{}", body.line(90));
        assert!(!BodyFigures { connections: 1, ..body }.line(90).contains("connection"));
    }

    #[test]
    fn progress_line_shows_seconds_until_the_retry() {
        let pause = RetryPauseFigures {
            cause: "the server answered 503".to_owned(),
            left: Duration::from_millis(1200),
            retry: 1,
            most: 3,
        };
        assert_eq!(pause.line(80), "the server answered 503; again in 2 s (1 of 3)");
        assert_eq!(pause.line(30), "again in 2 s (1 of 3)");
        let other = |cause: &str, retry| RetryPauseFigures { cause: cause.to_owned(), retry, ..pause };
        assert_eq!(other("\u{65e5}", 1).line(80), "again in 2 s (1 of 3)");
        assert_eq!(seconds_until(Duration::ZERO), 1);
        assert_eq!(other("refused", 0).line(80), "refused; again in 2 s");
    }

    #[test]
    fn percent_includes_resumed_bytes_and_ends_at_100() {
        assert_eq!(known(600, 0, 1000).percent(), Some(60));
        assert_eq!(known(600, 200, 1000).percent(), Some(80));
        assert_eq!(known(600, 399, 1000).percent(), Some(99));
        assert_eq!(known(600, 400, 1000).percent(), Some(100));
        assert_eq!(known(0, 0, 0).percent(), Some(100));
        assert_eq!(known(0, 2000, 1000).percent(), Some(100));
        assert_eq!(known(u64::MAX, u64::MAX, u64::MAX).percent(), Some(100));
        assert_eq!(BodyFigures::default().percent(), None);
    }
}
