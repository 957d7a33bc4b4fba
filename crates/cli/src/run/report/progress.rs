//! The progress line, which is drawn only on a terminal, and only if a run takes longer than
//! [`QUIET`]. curl's meter ([`crate::run::report::progress_meter`]) or bar
//! ([`crate::run::report::progress_bar`]) may replace it.
//!
//! ```text
//! 45%  12.30 MiB of 27.10 MiB  3.20 MiB/s  5s left      one body of known length
//! 17 done  12.30 MiB  3.20 MiB/s  1 failed              many
//! ```
//!
//! The rate is that of the last seconds ([`TransferRate`]). When a download is resumed, the bytes
//! of the partial file count for the percentage, but not for the rate.

use std::io::IsTerminal;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use console::Term;
use haul::transfer_facts::TransferFacts;
use indicatif::{HumanBytes, HumanDuration};

use crate::plan::GlobalArgs;
use crate::run::report::progress_bar::ProgressBar;
use crate::run::report::progress_meter::ProgressMeter;
use crate::run::report::run_counts::RunCounts;
use crate::run::report::transfer_rate::TransferRate;

/// The time from the start of the run until the progress line is first drawn. A shorter run draws
/// none.
const QUIET: Duration = Duration::from_millis(400);

/// The shortest time between two drawings of the progress line. A fast transfer reports its
/// progress many thousand times a second.
const INTERVAL: Duration = Duration::from_millis(100);

/// Collects the progress of a run's transfers, and draws the progress line.
pub(crate) struct ProgressReporter {
    began: Instant,
    counts: Arc<RunCounts>,
    wanted: bool,
    /// True while transfers print to the terminal of the progress line, which is then not drawn.
    is_hidden: AtomicBool,
    over: AtomicU64,
    failed: AtomicU64,
    /// The number of body bytes written since the start of [`ProgressState::measured`].
    bytes: AtomicU64,
    /// The time before which the progress line is not drawn again, in milliseconds since `began`.
    next: AtomicU64,
    display: Mutex<ProgressState>,
    /// curl's progress meter, which replaces the progress line; `None` with the haul persona.
    meter: Option<Mutex<ProgressMeter>>,
    /// The bar of `-#`, which replaces the progress line for a body of known length; `None` without
    /// the option.
    bar: Option<Mutex<ProgressBar>>,
}

/// The state of the progress line: the measured rate, and whether the line is on the terminal.
struct ProgressState {
    /// The measurement of the transfer rate; `None` before the first byte of a body.
    measured: Option<RateMeasurement>,
    /// The terminal while it shows the progress line; `None` while the line is cleared.
    line: Option<Term>,
    body: Option<BodyProgress>,
}

/// A measurement of the transfer rate, which begins when a response body begins.
struct RateMeasurement {
    began: Instant,
    rate: TransferRate,
}

impl RateMeasurement {
    fn begin() -> Self {
        Self { began: Instant::now(), rate: TransferRate::default() }
    }
}

/// The response body whose percentage the progress line shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct BodyProgress {
    /// The number of bytes that the output file already contained when the response body began.
    already: u64,
    /// The length in bytes of the complete content, including `already`; `None` if it is unknown.
    total: Option<u64>,
}

impl ProgressReporter {
    pub(crate) fn new(global: &GlobalArgs) -> Self {
        let is_terminal = std::io::stderr().is_terminal();
        let is_shown = global.progress && !global.silent;
        if global.progress_bar {
            let bar = is_shown.then(Mutex::default);
            return Self { bar, ..Self::with(global, is_terminal) };
        }
        if !global.persona.is_curl() {
            return Self::with(global, is_terminal);
        }
        // curl shows its meter to whomever, and keeps silent where a body comes to the same
        // terminal.
        let meter = is_shown.then(|| Mutex::new(ProgressMeter::new()));
        Self { meter, ..Self::with(global, false) }
    }

    /// Begins a URL group (operation), i.e. the URLs between two `--next`. If `prints` is true, its
    /// transfers print to the terminal, and no progress line is drawn.
    pub(crate) fn operation_begins(&self, prints: bool) {
        self.clear();
        self.is_hidden.store(prints, Ordering::Relaxed);
    }

    /// Begins a transfer. `to_stdout` is true if its body goes to standard output. No meter or bar
    /// is drawn then if standard output is a terminal.
    pub(crate) fn transfer_begins(&self, to_stdout: bool) {
        self.counts.running.store(1, Ordering::Relaxed);
        let is_hidden = || to_stdout && std::io::stdout().is_terminal();
        if let Some(mut meter) = self.meter() {
            meter.transfer_begins(is_hidden());
        }
        if let Some(mut bar) = self.bar() {
            bar.transfer_begins(is_hidden());
        }
    }

    /// Ends a transfer that [`ProgressReporter::transfer_begins`] has begun. Its outcome is reported
    /// by [`ProgressReporter::transfer_over`].
    pub(crate) fn transfer_ends(&self) {
        self.counts.running.store(0, Ordering::Relaxed);
    }

    /// Sets the offset in bytes at which the transfer resumes a partial file, for curl's meter.
    pub(crate) fn set_resume_offset(&self, offset: u64) {
        if let Some(mut meter) = self.meter() {
            meter.set_resume_offset(offset);
        }
    }

    fn meter(&self) -> Option<MutexGuard<'_, ProgressMeter>> {
        Some(self.meter.as_ref()?.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn bar(&self) -> Option<MutexGuard<'_, ProgressBar>> {
        Some(self.bar.as_ref()?.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn with(global: &GlobalArgs, is_terminal: bool) -> Self {
        Self {
            began: Instant::now(),
            counts: Arc::new(RunCounts::new()),
            wanted: global.progress && !global.silent && is_terminal,
            is_hidden: AtomicBool::new(false),
            over: AtomicU64::new(0),
            failed: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            next: AtomicU64::new(millis(QUIET)),
            display: Mutex::new(ProgressState { measured: None, line: None, body: None }),
            meter: None,
            bar: None,
        }
    }

    /// Returns the counts of the run.
    pub(crate) fn counts(&self) -> &Arc<RunCounts> {
        &self.counts
    }

    /// Returns the time since the run began.
    pub(crate) fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }

    /// Ends a transfer. Counts its bytes, if [`ProgressReporter::body_bytes`] has not done so.
    /// `was_reached` is false if the transfer had no connection to a server.
    pub(crate) fn transfer_over(&self, facts: &TransferFacts, was_reached: bool, failed: bool) {
        self.counts.add(facts.body_bytes, failed);
        if let Some(mut meter) = self.meter() {
            meter.transfer_over(facts, was_reached);
        }
        let bytes = facts.body_bytes;
        let has_bar = self.bar().is_some_and(|mut bar| bar.transfer_over());
        if has_bar || !self.wanted {
            return;
        }
        self.over.fetch_add(1, Ordering::Relaxed);
        self.failed.fetch_add(u64::from(failed), Ordering::Relaxed);
        {
            let mut display = self.display();
            match display.body.take() {
                Some(_) => display.measured = None,
                None => {
                    display.measured.get_or_insert_with(RateMeasurement::begin);
                    self.bytes.fetch_add(bytes, Ordering::Relaxed);
                }
            }
        }
        self.draw();
    }

    /// Begins the body of a response, or begins it again after a retry. `length` is the number of
    /// bytes that will arrive; `None` if it is unknown. `already` is the number of bytes that the
    /// output has from an earlier run or try.
    pub(crate) fn body_begins(&self, length: Option<u64>, already: u64) {
        self.counts.body_begins();
        if let Some(mut meter) = self.meter() {
            meter.body_begins(length);
        }
        let has_bar = self.bar().is_some_and(|mut bar| bar.body_begins(length, already));
        if has_bar || !self.wanted {
            return;
        }
        let mut display = self.display();
        display.measured = Some(RateMeasurement::begin());
        display.body = Some(BodyProgress { already, total: length.map(|length| length.saturating_add(already)) });
        self.bytes.store(0, Ordering::Relaxed);
    }

    /// Adds `bytes` to the number of body bytes that were written to the output.
    pub(crate) fn body_bytes(&self, bytes: usize) {
        self.counts.body_bytes(bytes as u64);
        if let Some(mut meter) = self.meter() {
            meter.body_bytes(bytes as u64);
        }
        let has_bar = self.bar().is_some_and(|mut bar| bar.body_bytes(bytes as u64));
        if self.wanted && !has_bar {
            self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
            self.draw();
        }
    }

    /// Clears the progress line (or ends the terminal line of the bar), so that another text can be
    /// printed.
    pub(crate) fn clear(&self) {
        if let Some(mut bar) = self.bar() {
            bar.end_line();
        }
        if !self.wanted {
            return;
        }
        if let Some(line) = self.display().line.take() {
            // A terminal that has gone needs no clearing.
            let _ = line.clear_line().and_then(|()| line.flush());
        }
    }

    fn display(&self) -> MutexGuard<'_, ProgressState> {
        self.display.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn draw(&self) {
        let now = millis(self.began.elapsed());
        if self.is_hidden.load(Ordering::Relaxed) || now < self.next.load(Ordering::Relaxed) {
            return;
        }
        self.next.store(now + millis(INTERVAL), Ordering::Relaxed);
        let mut display = self.display();
        let text = self.figures(&mut display).text();
        let line = display.line.get_or_insert_with(Term::buffered_stderr);
        // One that fills the last column would be two.
        let columns = usize::from(line.size().1.saturating_sub(1));
        let text: String = text.chars().take(columns).collect();
        let _ = line.clear_line().and_then(|()| line.write_str(&text)).and_then(|()| line.flush());
    }

    fn figures(&self, display: &mut ProgressState) -> ProgressFigures {
        let moved = self.bytes.load(Ordering::Relaxed);
        let mut rate = TransferRate::default();
        if let Some(measured) = &mut display.measured {
            measured.rate.seen(measured.began.elapsed(), moved);
            rate = measured.rate;
        }
        let body = display.body.unwrap_or_default();
        let missing = body.total.map(|total| total.saturating_sub(body.already.saturating_add(moved)));
        ProgressFigures {
            moved,
            body,
            rate: rate.per_second(),
            left: missing.and_then(|missing| rate.time_for(missing)).filter(|left| !left.is_zero()),
            over: self.over.load(Ordering::Relaxed),
            failed: self.failed.load(Ordering::Relaxed),
        }
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// The figures that the progress line shows.
#[derive(Clone, Copy, Debug, Default)]
struct ProgressFigures {
    moved: u64,
    body: BodyProgress,
    /// The transfer rate in bytes per second.
    rate: u64,
    left: Option<Duration>,
    over: u64,
    failed: u64,
}

impl ProgressFigures {
    /// Returns the percentage of the body that is complete. It is rounded down, so that 100 means
    /// complete. Returns `None` if the length of the body is unknown.
    fn percent(&self) -> Option<u64> {
        let total = u128::from(self.body.total?);
        let has = u128::from(self.has()).min(total);
        u64::try_from((has * 100).checked_div(total).unwrap_or(100)).ok()
    }

    fn has(&self) -> u64 {
        self.body.already.saturating_add(self.moved)
    }

    fn text(&self) -> String {
        let has = HumanBytes(self.has());
        let mut parts = Vec::with_capacity(6);
        if self.over > 0 {
            parts.push(format!("{} done", self.over));
        }
        if let Some(percent) = self.percent() {
            parts.push(format!("{percent}%"));
        }
        parts.push(match self.body.total {
            Some(total) => format!("{has} of {}", HumanBytes(total)),
            None => has.to_string(),
        });
        parts.push(format!("{}/s", HumanBytes(self.rate)));
        parts.extend(self.left.map(|left| format!("{:#} left", HumanDuration(left))));
        if self.failed > 0 {
            parts.push(format!("{} failed", self.failed));
        }
        parts.join("  ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(already: u64, moved: u64, total: u64) -> ProgressFigures {
        ProgressFigures { moved, body: BodyProgress { already, total: Some(total) }, ..ProgressFigures::default() }
    }

    #[test]
    fn progress_line_shows_known_figures() {
        let body =
            ProgressFigures { rate: 2 << 20, left: Some(Duration::from_secs(5)), ..known(0, 10 << 20, 20 << 20) };
        assert_eq!(body.text(), "50%  10.00 MiB of 20.00 MiB  2.00 MiB/s  5s left");
        let endless = ProgressFigures { moved: 1 << 20, rate: 1 << 10, ..ProgressFigures::default() };
        assert_eq!(endless.text(), "1.00 MiB  1.00 KiB/s");
        let many = ProgressFigures { over: 17, failed: 1, ..endless };
        assert_eq!(many.text(), "17 done  1.00 MiB  1.00 KiB/s  1 failed");
        let stalled = known(0, 5, 10);
        assert_eq!(stalled.text(), "50%  5 B of 10 B  0 B/s");
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
        assert_eq!(ProgressFigures::default().percent(), None);
    }

    /// Returns a progress reporter for tests, which behaves as on a terminal but never draws.
    fn shown() -> ProgressReporter {
        let progress = ProgressReporter::with(&GlobalArgs::default(), true);
        progress.next.store(u64::MAX, Ordering::Relaxed);
        progress
    }

    fn figures(progress: &ProgressReporter) -> ProgressFigures {
        progress.figures(&mut progress.display())
    }

    fn facts(body_bytes: u64) -> TransferFacts {
        TransferFacts { body_bytes, ..TransferFacts::new(Instant::now()) }
    }

    #[test]
    fn resumed_body_starts_at_its_offset() {
        let progress = shown();
        progress.body_begins(Some(400), 600);
        assert_eq!((figures(&progress).has(), figures(&progress).percent()), (600, Some(60)));
        assert_eq!(figures(&progress).rate, 0, "what was there before has no rate");
        progress.body_bytes(100);
        assert_eq!((figures(&progress).has(), figures(&progress).percent()), (700, Some(70)));
        // A second try begins at 650 of the same body: nothing is counted twice.
        progress.body_begins(Some(350), 650);
        assert_eq!((figures(&progress).has(), figures(&progress).percent()), (650, Some(65)));
        progress.body_begins(None, 650);
        assert_eq!((figures(&progress).has(), figures(&progress).percent()), (650, None));
    }

    #[test]
    fn observed_body_bytes_are_counted_once() {
        let progress = shown();
        progress.body_begins(None, 0);
        progress.body_bytes(70);
        progress.transfer_over(&facts(70), true, false);
        progress.transfer_over(&facts(30), true, true);
        let figures = figures(&progress);
        assert_eq!((figures.moved, figures.over, figures.failed), (100, 2, 1));
    }

    #[test]
    fn progress_line_is_hidden_during_terminal_output() {
        let progress = ProgressReporter::with(&GlobalArgs::default(), true);
        progress.next.store(0, Ordering::Relaxed);
        progress.operation_begins(true);
        progress.body_begins(None, 0);
        progress.body_bytes(1);
        progress.transfer_over(&facts(1), true, false);
        assert!(progress.display().line.is_none());
        progress.operation_begins(false);
        progress.body_bytes(1);
        assert!(progress.display().line.is_some());
    }

    #[test]
    fn hidden_progress_counts_nothing() {
        for global in [
            GlobalArgs { silent: true, ..GlobalArgs::default() },
            GlobalArgs { progress: false, ..GlobalArgs::default() },
        ] {
            assert!(!ProgressReporter::with(&global, true).wanted);
        }
        let progress = ProgressReporter::with(&GlobalArgs::default(), false);
        progress.body_begins(Some(1), 0);
        progress.body_bytes(1);
        progress.transfer_over(&facts(1), true, false);
        assert!(progress.display().measured.is_none() && progress.bytes.load(Ordering::Relaxed) == 0);
    }
}
