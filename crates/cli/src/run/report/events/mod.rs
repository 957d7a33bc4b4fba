//! The events of a run (`--events`), for programs that watch it.
//!
//! ```text
//!  UrlGroupReporter ─▶ event_lines ─▶ queue of 1,024 lines ─▶ thread haul-events ─▶ FILE or descriptor
//!                                                       └ a progress line each second
//! ```
//!
//! A watcher that stops reading blocks the transfers once the queue is full, as a reader of
//! standard output does. A watcher that closes the output does not: the events end, and the run
//! continues.

mod event_lines;
mod event_output;

use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime};

use haul::interrupt_callback::InterruptCallback;
use haul::{Error, ErrorKind, Result};

use super::progress::ProgressReporter;
use super::run_counts::RunCounts;
use super::transfer_report::TransferReport;
use crate::plan::RunPlan;
use crate::program_persona::ProgramPersona;
use crate::run::report::remedy::remedy;
use crate::run::transfers::url_count;
use event_lines::EndedTransfer;
use event_output::EventOutput;

/// The time between two event lines about the progress of the run.
const INTERVAL: Duration = Duration::from_secs(1);

/// The maximum number of lines that wait in the queue.
const QUEUE_LENGTH: usize = 1024;

/// The log of events of `--events`: a queue of lines, and a thread that writes them.
pub(crate) struct EventLog {
    /// The queue of lines. `None` ends the queue.
    lines: SyncSender<Option<Vec<u8>>>,
    writer: Mutex<Option<JoinHandle<Result<()>>>>,
    counts: Arc<RunCounts>,
}

impl EventLog {
    /// Opens the output of the option `--events`, and starts the thread that writes to it. Returns
    /// `None` without the option. `interrupt` ends the wait for the reader of a FIFO.
    ///
    /// # Errors
    /// The output cannot be opened, or no thread can be started.
    pub(crate) fn open(
        plan: &Arc<RunPlan>,
        progress: &ProgressReporter,
        interrupt: Option<&InterruptCallback>,
    ) -> Result<Option<Arc<Self>>> {
        let Some(path) = &plan.global.events else { return Ok(None) };
        let output = EventOutput::open(path, interrupt)?;
        let (lines, queue) = sync_channel(QUEUE_LENGTH);
        let counts = Arc::clone(progress.counts());
        let (plan, watched, start) = (Arc::clone(plan), Arc::clone(&counts), SystemTime::now());
        let writer = std::thread::Builder::new()
            .name("haul-events".to_owned())
            .spawn(move || write_all(output, &queue, &plan, &watched, start))
            .map_err(|cause| Error::with_source(ErrorKind::Setup, "no thread for --events can be started", cause))?;
        Ok(Some(Arc::new(Self { lines, writer: Mutex::new(Some(writer)), counts })))
    }

    /// Queues the event line of a transfer that has ended. `file` is the file with its body; `None`
    /// if there is none.
    pub(crate) fn write_ended(&self, report: &TransferReport<'_>, persona: ProgramPersona, file: Option<&Path>) {
        let facts = &report.outcome.facts;
        let was_sent = facts.requests > 0 || report.is_local(persona);
        let effective_url = was_sent.then(|| report.effective_scheme_and_url(persona).1);
        let file = file.filter(|_| report.error().is_none()).map(Path::to_string_lossy);
        let remedy = report.error().map(|error| remedy(error, Some(report))).unwrap_or_default();
        self.send(event_lines::transfer_ended_line(&EndedTransfer {
            // In curl's place, too: the lines are for logs.
            url: &report.shown_url(ProgramPersona::Haul),
            effective_url: effective_url.as_deref(),
            stage: report.stage,
            status: (facts.status > 0).then_some(facts.status),
            bytes: facts.body_bytes,
            time: facts.total,
            attempts: facts.retries + 1,
            file: file.as_deref(),
            error: report.error(),
            remedy: &remedy,
        }));
    }

    /// Queues the line of a failed attempt that will be retried after `pause`.
    pub(crate) fn write_retried(&self, url: &str, pause: Duration, cause: &str) {
        self.send(event_lines::retry_line(url, pause, cause));
    }

    /// Queues the line for the end of the run, and waits until all lines are written.
    ///
    /// # Errors
    /// Lines are missing, because the output cannot be written.
    pub(crate) fn finish(&self, exit_code: u8) -> Result<()> {
        self.send(event_lines::run_finished_line(&self.counts.snapshot(), exit_code));
        // The thread has ended if the output cannot be written.
        let _ = self.lines.send(None);
        let writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner).take();
        match writer.map(JoinHandle::join) {
            None => Ok(()),
            Some(Ok(written)) => written,
            Some(Err(_)) => Err(Error::new(ErrorKind::Panicked, "the thread that writes the events panicked")),
        }
    }

    fn send(&self, line: Vec<u8>) {
        // Not sent if the thread has ended, because the watcher has gone or the output is full.
        let _ = self.lines.send(Some(line));
    }
}

/// Writes the line for the start of the run, all lines of the queue, and a progress line each
/// second. Returns at the end of the queue, or when the reader of the output has closed it.
fn write_all(
    mut output: EventOutput,
    queue: &Receiver<Option<Vec<u8>>>,
    plan: &RunPlan,
    counts: &RunCounts,
    start: SystemTime,
) -> Result<()> {
    // Here, because reading a long list takes time.
    let total = url_count::total_urls(plan);
    total.inspect(|total| counts.set_total(*total));
    output.add(&event_lines::run_started_line(start, total))?;
    let mut next = Instant::now() + INTERVAL;
    while output.has_reader() {
        let now = Instant::now();
        if now >= next {
            next = now + INTERVAL;
            output.add(&event_lines::progress_line(&counts.snapshot()))?;
        }
        let line = match queue.try_recv() {
            Ok(line) => line,
            Err(_) => {
                // No other line waits, so the watcher gets all that there is.
                output.flush()?;
                match queue.recv_timeout(next.saturating_duration_since(Instant::now())) {
                    Ok(line) => line,
                    Err(RecvTimeoutError::Timeout) => continue,
                    Err(RecvTimeoutError::Disconnected) => None,
                }
            }
        };
        match line {
            Some(line) => output.add(&line)?,
            None => return output.flush(),
        }
    }
    Ok(())
}
