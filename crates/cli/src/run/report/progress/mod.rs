//! The progress of a run: a line on a terminal, which a thread redraws while the run takes longer
//! than [`DELAY_BEFORE_FIRST_DRAW`], and the summary at the end. A run with several stages has a
//! line for each stage. curl's meter ([`progress_meter`]) or bar ([`progress_bar`]) may replace the
//! line.
//!
//! Transfers only add to counters. The thread draws the line from these counters, so that the line
//! also changes while no data arrive, as in a pause before a retry. The rate is that of the last
//! seconds ([`MovingAverageRate`]). When a download is resumed, the bytes of the partial file count
//! for the percentage, but not for the rate.

mod failure_cause_summary;
mod parallel_meter;
mod progress_bar;
mod progress_line;
mod progress_meter;
mod run_summary;
mod slowest_host;
mod terminal_lines;

use std::io::IsTerminal;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use haul::Error;
use haul::request::RetryPause;
use haul::stats::TransferTotals;

use crate::file_and_environment_access::print_error_line;
use crate::plan::{GlobalArgs, RunPlan};
use crate::program_persona::ProgramPersona;
use crate::run::report::error_message;
use crate::run::report::moving_average_rate::MovingAverageRate;
use crate::run::report::run_counts::RunCounts;
use crate::run::report::transfer_report::TransferReport;
use crate::run::transfers::url_count;
use crate::stderr_terminal::{self, MessageColors};
use failure_cause_summary::FailureCounts;
use parallel_meter::ParallelMeter;
use progress_bar::ProgressBar;
use progress_line::{BodyFigures, ManyUrlFigures, ProgressView, RetryPauseFigures, StageFigures};
use progress_meter::ProgressMeter;
use slowest_host::HostTimes;
use terminal_lines::TerminalLines;

/// The time from the start of the run until the progress line is first drawn. A shorter run does
/// not draw it.
const DELAY_BEFORE_FIRST_DRAW: Duration = Duration::from_millis(400);

/// The time between two drawings of the progress line.
const INTERVAL: Duration = Duration::from_millis(100);

/// The minimum wait for a response body that the progress line reports.
const SHORT_WAIT: Duration = Duration::from_secs(1);

/// The kind of output that a URL group prints on the terminal besides the progress line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OutputBesideProgress {
    /// The terminal shows only the progress line while transfers run.
    None = 0,
    /// Only the body of a single transfer is printed. The progress line may be drawn until the body
    /// begins.
    Body = 1,
    /// Texts, such as records or several bodies, may be printed at any time. The progress line is
    /// not drawn.
    Texts = 2,
}

/// Collects the progress of a run's transfers, and draws the progress line.
pub(crate) struct ProgressReporter {
    began: Instant,
    counts: Arc<RunCounts>,
    /// True if the progress line may be drawn: standard error is a terminal, and neither an option
    /// nor the persona forbids it.
    wanted: bool,
    /// True if repeated error lines are suppressed. This is the case if errors are printed and
    /// standard error is a terminal.
    folds: bool,
    /// `--summary`: true prints the summary, false does not; `None` prints it after many URLs on a
    /// terminal.
    summary: Option<bool>,
    persona: ProgramPersona,
    /// The colours in which error messages are printed.
    colors: MessageColors,
    /// The [`OutputBesideProgress`] of the current URL group.
    output: AtomicU8,
    /// The number of body bytes that were written since the current measurement of the transfer
    /// rate began.
    bytes: AtomicU64,
    display: Mutex<ProgressState>,
    /// Wakes the thread that draws, at the end of the run.
    ended: Condvar,
    failures: Mutex<FailureCounts>,
    /// curl's progress meter, which replaces the progress line; `None` unless haul acts as curl.
    meter: Option<Mutex<ProgressMeter>>,
    /// curl's progress meter for parallel transfers (`-Z`), which replaces the meter for single
    /// transfers; `None` without the option.
    parallel_meter: Option<Mutex<ParallelMeter>>,
    /// The bar of `-#`, which replaces the progress line for a body of known length; `None` without
    /// the option.
    bar: Option<Mutex<ProgressBar>>,
}

/// The state from which the progress line is drawn.
#[derive(Default)]
struct ProgressState {
    /// The measurement of the transfer rate; `None` before the first byte of a body.
    measured: Option<RateMeasurement>,
    /// The progress lines that the terminal shows.
    lines: TerminalLines,
    body: Option<BodyProgress>,
    /// The start of the single transfer that runs; `None` in a run of many URLs.
    waiting: Option<Instant>,
    /// The pauses before retries that are in progress.
    pauses: Vec<ShownPause>,
    /// The number of connections over which the body is fetched, if the download is split.
    connections: usize,
    /// The counts of each stage, by the index of the stage.
    stages: Vec<StageFigures>,
    hosts: HostTimes,
    is_over: bool,
}

/// A measurement of the transfer rate: the time of its start, and a moving average.
struct RateMeasurement {
    began: Instant,
    rate: MovingAverageRate,
}

impl RateMeasurement {
    fn start_now() -> Self {
        Self { began: Instant::now(), rate: MovingAverageRate::default() }
    }
}

/// The progress of the response body whose percentage the progress line shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct BodyProgress {
    /// The number of bytes that the output file already contained when the response body began.
    already: u64,
    /// The length in bytes of the complete content, including `already`; `None` if it is unknown.
    total: Option<u64>,
}

/// A pause before a retry, which the progress line shows.
struct ShownPause {
    until: Instant,
    cause: String,
    retry: u32,
    most: u32,
}

impl ProgressReporter {
    pub(crate) fn new(global: &GlobalArgs) -> Self {
        let is_terminal = std::io::stderr().is_terminal();
        let is_shown = global.progress && !global.silent;
        if global.persona.is_curl() && global.parallel {
            // As in curl, whatever kind of progress is asked for.
            let parallel_meter = is_shown.then(Mutex::default);
            return Self { parallel_meter, ..Self::with_terminal(global, false) };
        }
        if global.progress_bar {
            let bar = is_shown.then(Mutex::default);
            return Self { bar, ..Self::with_terminal(global, is_terminal) };
        }
        if !global.persona.is_curl() {
            return Self::with_terminal(global, is_terminal);
        }
        // curl shows its meter to whomever, and keeps silent where a body comes to the same
        // terminal.
        let meter = is_shown.then(|| Mutex::new(ProgressMeter::new()));
        Self { meter, ..Self::with_terminal(global, false) }
    }

    fn with_terminal(global: &GlobalArgs, is_terminal: bool) -> Self {
        Self {
            began: Instant::now(),
            counts: Arc::new(RunCounts::new()),
            wanted: global.progress && !global.silent && is_terminal && stderr_terminal::can_redraw(),
            folds: !global.persona.is_curl() && is_terminal && global.shows_errors(),
            summary: match global.summary {
                _ if global.persona.is_curl() => Some(false),
                None if global.silent || !global.progress || !is_terminal => Some(false),
                given => given,
            },
            persona: global.persona,
            colors: MessageColors::of_stderr(global.persona),
            output: AtomicU8::new(OutputBesideProgress::None as u8),
            bytes: AtomicU64::new(0),
            display: Mutex::default(),
            ended: Condvar::new(),
            failures: Mutex::default(),
            meter: None,
            parallel_meter: None,
            bar: None,
        }
    }

    /// Starts the thread that draws the progress line, if it may be drawn. Called after signals are
    /// blocked, because threads inherit the mask.
    pub(crate) fn start(self: &Arc<Self>, plan: &Arc<RunPlan>) {
        if !self.wanted && self.parallel_meter.is_none() {
            return;
        }
        let (progress, plan) = (Arc::clone(self), Arc::clone(plan));
        // Without a thread there is no line, and the run is the same.
        let _ = std::thread::Builder::new().name("haul-line".to_owned()).spawn(move || progress.draw_until_end(&plan));
    }

    fn draw_until_end(&self, plan: &RunPlan) {
        let (mut wait, interval) = match self.parallel_meter {
            Some(_) => (parallel_meter::INTERVAL, parallel_meter::INTERVAL),
            None => (DELAY_BEFORE_FIRST_DRAW, INTERVAL),
        };
        let mut asks_total = true;
        loop {
            {
                let display = self.lock_state();
                let waited = self.ended.wait_timeout_while(display, wait, |display| !display.is_over);
                if waited.unwrap_or_else(PoisonError::into_inner).0.is_over {
                    return;
                }
            }
            wait = interval;
            self.draw_parallel(false);
            if self.wanted && std::mem::take(&mut asks_total) {
                // Here, because reading a long list takes time.
                self.count_total_urls(plan);
            }
            self.draw();
        }
    }

    /// Draws curl's progress meter for parallel transfers, if it is used.
    fn draw_parallel(&self, is_last: bool) {
        if let Some(mut meter) = self.parallel_meter() {
            meter.draw(self.counts.snapshot(), is_last);
        }
    }

    fn count_total_urls(&self, plan: &RunPlan) {
        let is_staged = plan.groups.iter().any(|group| group.stages.len() > 1);
        if is_staged {
            let total = url_count::urls_of_first_stage(plan);
            self.lock_state().stage(0).total = total;
        } else if self.counts.snapshot().total.is_none() {
            url_count::total_urls(plan).inspect(|total| self.counts.set_total(*total));
        }
    }

    /// Begins a URL group (`--next` separates groups) with this number of stages. `output` is the
    /// kind of output that the group prints on the terminal besides the progress line.
    pub(crate) fn group_begins(&self, output: OutputBesideProgress, stages: usize) {
        if self.wanted {
            self.lock_state().stage(stages.saturating_sub(1));
        }
        if let Some(mut meter) = self.parallel_meter() {
            meter.is_hidden |= output != OutputBesideProgress::None;
        }
        self.draw_parallel(false);
        self.output_begins(output);
    }

    fn output_begins(&self, output: OutputBesideProgress) {
        self.clear();
        self.output.store(output as u8, Ordering::Relaxed);
    }

    /// Returns true if the progress line may be drawn, and can thus show pauses and waits.
    pub(crate) fn is_drawn(&self) -> bool {
        self.wanted && self.output.load(Ordering::Relaxed) != OutputBesideProgress::Texts as u8
    }

    /// Begins a transfer in a run of one transfer at a time. `to_stdout` is true if the body goes
    /// to standard output. If standard output is a terminal, no meter or bar is then drawn.
    pub(crate) fn transfer_begins(&self, to_stdout: bool) {
        self.counts.running.store(1, Ordering::Relaxed);
        let is_hidden = || to_stdout && std::io::stdout().is_terminal();
        if let Some(mut meter) = self.meter() {
            meter.transfer_begins(is_hidden());
        }
        if let Some(mut bar) = self.bar() {
            bar.transfer_begins(is_hidden());
        }
        if self.wanted {
            self.lock_state().waiting = Some(Instant::now());
        }
    }

    /// Ends a transfer that [`ProgressReporter::transfer_begins`] has begun. Its outcome is
    /// reported by [`ProgressReporter::transfer_over`].
    pub(crate) fn transfer_ends(&self) {
        self.counts.running.store(0, Ordering::Relaxed);
    }

    /// Records that a transfer pauses before a retry.
    pub(crate) fn pause_begins(&self, pause: &RetryPause<'_>) {
        if !self.wanted {
            return;
        }
        let now = Instant::now();
        let Some(until) = now.checked_add(pause.wait) else { return };
        let mut display = self.lock_state();
        // What has arrived so far may arrive again.
        (display.body, display.measured) = (None, None);
        display.pauses.retain(|pause| pause.until > now);
        let cause = crate::usage_error::one_line(pause.cause);
        display.pauses.push(ShownPause { until, cause, retry: pause.retry, most: pause.most });
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

    fn parallel_meter(&self) -> Option<MutexGuard<'_, ParallelMeter>> {
        Some(self.parallel_meter.as_ref()?.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn bar(&self) -> Option<MutexGuard<'_, ProgressBar>> {
        Some(self.bar.as_ref()?.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn failures(&self) -> MutexGuard<'_, FailureCounts> {
        self.failures.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the counts of the run.
    pub(crate) fn counts(&self) -> &Arc<RunCounts> {
        &self.counts
    }

    /// Returns the time since the run began.
    pub(crate) fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }

    /// Counts the end of a transfer. `was_reached` is false if the transfer had no connection to a
    /// server. Returns true if the error line of the transfer must be printed, and false if a
    /// terminal has shown enough lines with this cause.
    pub(crate) fn transfer_over(&self, report: &TransferReport<'_>, was_reached: bool) -> bool {
        let facts = &report.outcome.facts;
        let error = report.error();
        self.counts.add(facts.body_bytes, error.is_some());
        if let Some(mut meter) = self.meter() {
            meter.transfer_over(facts, was_reached);
        }
        if let Some(mut meter) = self.parallel_meter() {
            meter.sent = meter.sent.saturating_add(facts.upload_bytes);
        }
        self.draw_parallel(false);
        let _ = self.bar().is_some_and(|mut bar| bar.transfer_over(was_reached));
        let needs_failures = self.folds || self.summary != Some(false);
        let is_printed = match error.filter(|error| needs_failures && !error.is_interrupted()) {
            Some(error) => self.failures().add(report.outcome.target.host_text(), error),
            None => true,
        };
        if self.wanted {
            let mut display = self.lock_state();
            let stage = display.stage(report.stage);
            stage.done += u64::from(error.is_none());
            stage.failed += u64::from(error.is_some());
            stage.bytes = stage.bytes.saturating_add(facts.body_bytes);
            display.hosts.add(report.outcome.target.host_text(), facts.total);
            (display.body, display.waiting, display.connections) = (None, None, 0);
            display.pauses.retain(|pause| pause.until > Instant::now());
        }
        is_printed || !self.folds
    }

    /// Prints the empty line that curl prints after a transfer that has not drawn its bar. Does
    /// nothing unless haul acts as curl. If the transfer failed, the caller prints its error first.
    pub(crate) fn end_bar(&self) {
        if let Some(mut bar) = self.bar().filter(|_| self.persona.is_curl()) {
            bar.end_undrawn();
        }
    }

    /// Begins the body of a response, or begins it again after a retry. `length` is the number of
    /// bytes that will arrive; `None` if it is unknown. `already` is the number of bytes that the
    /// output already contains from an earlier run or try.
    pub(crate) fn body_begins(&self, length: Option<u64>, already: u64) {
        self.counts.body_begins();
        if let Some(mut meter) = self.meter() {
            meter.body_begins(length);
        }
        let has_bar = self.bar().is_some_and(|mut bar| bar.body_begins(length, already));
        if !self.wanted {
            return;
        }
        // Also with a bar, because the bar's body ends before the run does.
        if self.output.load(Ordering::Relaxed) == OutputBesideProgress::Body as u8 {
            self.output_begins(OutputBesideProgress::Texts);
        }
        if has_bar {
            return;
        }
        let mut display = self.lock_state();
        display.measured = Some(RateMeasurement::start_now());
        display.body = Some(BodyProgress { already, total: length.map(|length| length.saturating_add(already)) });
        display.pauses.clear();
        self.bytes.store(0, Ordering::Relaxed);
    }

    /// Adds `bytes` to the number of body bytes that were written to the output.
    pub(crate) fn body_bytes(&self, bytes: usize) {
        self.counts.body_bytes(bytes as u64);
        if let Some(mut meter) = self.meter() {
            meter.body_bytes(bytes as u64);
        }
        if let Some(mut bar) = self.bar() {
            bar.body_bytes(bytes as u64);
        }
        self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Sets the number of connections over which the body is fetched.
    pub(crate) fn set_connections(&self, connections: usize) {
        if self.wanted {
            self.lock_state().connections = connections;
        }
    }

    /// Clears the progress line (or ends the terminal line of the bar), so that another text can be
    /// printed.
    pub(crate) fn clear(&self) {
        if let Some(mut bar) = self.bar() {
            bar.end_line();
        }
        if self.wanted {
            self.lock_state().lines.clear();
        }
    }

    /// Prints a line on standard error, without the progress line.
    pub(crate) fn print_line(&self, line: &str) {
        if let Some(mut bar) = self.bar() {
            bar.end_line();
        }
        let mut display = self.lock_state();
        display.lines.clear();
        print_error_line(line);
    }

    /// Prints the error line for an error. `failed` is the failed transfer; `None` if it did not
    /// begin.
    pub(crate) fn print_error(&self, error: &Error, failed: Option<&TransferReport<'_>>) {
        self.print_line(&error_message::colored_line(self.persona, error, failed, self.colors));
    }

    /// Prints a warning on standard error.
    pub(crate) fn print_warning(&self, text: &str) {
        self.print_line(&self.colors.message(&format!("Warning: {text}")));
    }

    /// Ends the progress of the run: removes the progress line, and prints the numbers of
    /// suppressed errors and the summary. `totals` returns the statistics of the run.
    pub(crate) fn finish(&self, totals: impl FnOnce() -> TransferTotals) {
        self.clear();
        self.lock_state().is_over = true;
        self.ended.notify_all();
        self.draw_parallel(true);
        if self.folds {
            let folded = self.failures().folded_lines();
            folded.iter().for_each(|line| print_error_line(&self.colors.message(line)));
        }
        let counts = self.counts.snapshot();
        let is_long = counts.done + counts.failed > 1;
        if self.summary.unwrap_or(is_long) {
            let causes = self.failures().causes();
            print_error_line(&run_summary::summary_line(&counts, &causes, &totals()));
        }
    }

    fn lock_state(&self) -> MutexGuard<'_, ProgressState> {
        self.display.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn draw(&self) {
        let mut display = self.lock_state();
        let has_bar = self.bar().is_some_and(|bar| bar.is_drawn());
        if display.is_over || has_bar || !self.is_drawn() || stderr_terminal::is_in_background() {
            return;
        }
        let Some(view) = self.progress_view(&mut display, Instant::now()) else { return };
        let (columns, rows) = stderr_terminal::size();
        // A line that fills the last column would be two.
        let lines = view.lines(columns.saturating_sub(1), rows);
        display.lines.draw(&lines);
    }

    /// Returns the content of the progress line at the time `now`; `None` if there is nothing to
    /// show yet.
    fn progress_view(&self, display: &mut ProgressState, now: Instant) -> Option<ProgressView> {
        let is_many = display.waiting.is_none() && display.body.is_none();
        if is_many {
            return Some(ProgressView::Many(self.figures_of_many(display, now)));
        }
        if let Some(body) = display.body {
            return Some(ProgressView::Body(self.figures_of_body(display, body)));
        }
        if let Some(pause) = display.pauses.last().filter(|pause| pause.until > now) {
            let left = pause.until.saturating_duration_since(now);
            let ShownPause { cause, retry, most, .. } = pause;
            return Some(ProgressView::Pause(RetryPauseFigures {
                cause: cause.clone(),
                left,
                retry: *retry,
                most: *most,
            }));
        }
        let time = display.waiting.map(|since| now.saturating_duration_since(since))?;
        (time >= SHORT_WAIT).then_some(ProgressView::Waiting { time })
    }

    fn figures_of_many(&self, display: &mut ProgressState, now: Instant) -> ManyUrlFigures {
        let counts = self.counts.snapshot();
        let measured = display.measured.get_or_insert_with(RateMeasurement::start_now);
        measured.rate.add_sample(counts.elapsed, counts.bytes);
        let rate = measured.rate.per_second();
        display.pauses.retain(|pause| pause.until > now);
        let first = display.pauses.iter().map(|pause| pause.until.saturating_duration_since(now)).min();
        ManyUrlFigures {
            counts,
            stages: display.stages.clone(),
            rate,
            pauses: first.map(|until| (display.pauses.len(), until)),
            slowest: display.hosts.slowest(),
        }
    }

    fn figures_of_body(&self, display: &mut ProgressState, body: BodyProgress) -> BodyFigures {
        let received = self.bytes.load(Ordering::Relaxed);
        let mut rate = MovingAverageRate::default();
        if let Some(measured) = &mut display.measured {
            measured.rate.add_sample(measured.began.elapsed(), received);
            rate = measured.rate;
        }
        let missing = body.total.map(|total| total.saturating_sub(body.already.saturating_add(received)));
        BodyFigures {
            already: body.already,
            received,
            total: body.total,
            rate: rate.per_second(),
            left: missing.and_then(|missing| rate.time_for(missing)).filter(|left| !left.is_zero()),
            connections: display.connections,
        }
    }
}

impl ProgressState {
    /// Returns the counts of the stage with this index. Creates them, as 0, if they do not exist
    /// yet.
    fn stage(&mut self, number: usize) -> &mut StageFigures {
        if self.stages.len() <= number {
            self.stages.resize(number + 1, StageFigures::default());
        }
        &mut self.stages[number]
    }
}

#[cfg(test)]
mod tests;
