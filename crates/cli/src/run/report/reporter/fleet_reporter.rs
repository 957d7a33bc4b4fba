//! Reports the transfers of a URL group that run in parallel in the engine's fleet.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use haul::Target;
use haul::fleet::{BodyDestination, FinishedTransferContent, FleetJob, TransferReporter, WholeOrPiecewiseText};
use haul::pagination::ListingEnd;
use haul::transfer::TransferOutcome;

use super::UrlGroupReporter;
use crate::file_and_environment_access::print_error_line;
use crate::plan::StageArgs;
use crate::run::report::error_message;
use crate::run::report::transfer_report::TransferReport;
use crate::run::report::urlnum_variable::UrlNumbers;

/// The reporter of the transfers that run in parallel in the engine's fleet. The reporter of a
/// transfer's URL group (`--next` separates groups) prints the transfer's result: the
/// [`UrlGroupReporter`] in the [`FleetJob::context`], or `reporter` if there is no context.
pub(crate) struct FleetReporter {
    reporter: Arc<UrlGroupReporter>,
    numbers: UrlNumbers,
    /// True if all response bodies are written to one file. The text of `-w` for each transfer is
    /// then printed on standard output as soon as the transfer ends.
    has_file: bool,
    /// The number of transfers that the run began before the first transfer of the engine's fleet.
    first_transfer: u64,
}

impl FleetReporter {
    /// Creates a fleet reporter. `reporter` is the reporter of the URL group. `has_file` is true if
    /// all response bodies are written to one file.
    pub(crate) fn new(reporter: &Arc<UrlGroupReporter>, numbers: UrlNumbers, has_file: bool) -> Self {
        let first_transfer = reporter.before.transfers.load(Ordering::Relaxed);
        Self { reporter: Arc::clone(reporter), numbers, has_file, first_transfer }
    }

    /// Reports the end of a transfer under the number (`%{xfer_id}`) that curl would assign to it.
    /// Returns the text of `-w` for standard output; `None` if there is none.
    fn report(&self, job: &FleetJob, report: &TransferReport<'_>) -> Option<Vec<u8>> {
        let reporter = self.reporter_of(job);
        let ended = reporter.before.transfers.fetch_add(1, Ordering::Relaxed);
        let number = if job.stage == 0 { self.first_transfer + job.number } else { ended };
        reporter.report_numbered(report, number)
    }

    /// Returns the facts about a finished transfer, for its report.
    fn report_of<'t>(&'t self, job: &'t FleetJob, outcome: &'t TransferOutcome) -> TransferReport<'t> {
        let file = match &job.destination {
            BodyDestination::File { path, .. } => Some(path.as_path()),
            BodyDestination::Output => None,
        };
        // A repeated stage (`--depth`) has the options of the last one.
        let stage = job.stage.min(self.reporter.group.stages.len().saturating_sub(1));
        let settings = self.reporter_of(job).group.stages.get(stage);
        let method = match (&job.method, settings) {
            (Some(method), _) => method,
            (None, Some(settings)) => settings.request.method.as_str(),
            (None, None) => "GET",
        };
        let number = match job.stage {
            0 if self.reporter.persona.is_curl() => self.numbers.source_of_transfer(job.number),
            _ => job.number,
        };
        TransferReport { url: &job.url, number, stage, method, file, outcome, settings }
    }

    /// Returns true if values are extracted from the response of a transfer.
    fn has_values(&self, job: &FleetJob) -> bool {
        let stages = &self.reporter.group.stages;
        stages.get(job.stage.min(stages.len() - 1)).is_some_and(StageArgs::takes_values)
    }

    /// Returns the reporter of the URL group to which a transfer belongs.
    fn reporter_of<'t>(&'t self, job: &'t FleetJob) -> &'t UrlGroupReporter {
        job.context.as_ref().and_then(|context| context.get::<UrlGroupReporter>()).unwrap_or(&self.reporter)
    }
}

impl TransferReporter for FleetReporter {
    fn listing_ended(&self, _job: &FleetJob, url: &Target, end: &ListingEnd) {
        if end.needs_warning() && self.reporter.shows_errors {
            self.reporter.progress.print_warning(&format!("{}: {end}", url.to_url()));
        }
    }

    fn finished(&self, job: &FleetJob, outcome: &TransferOutcome) -> Option<Vec<u8>> {
        let text = self.report(job, &self.report_of(job, outcome));
        if let Some(notes) = self.reporter.job() {
            notes.finished(job, outcome, None, !self.has_file && text.is_some() || self.has_values(job));
        }
        if !self.has_file {
            return text;
        }
        if let Err(error) = self.reporter.print(text) {
            self.reporter.has_unwritten_output.store(true, Ordering::Relaxed);
            if self.reporter.shows_errors {
                print_error_line(&error_message::side_output_error(self.reporter.persona, &error));
            }
        }
        None
    }

    fn record(
        &self,
        job: &FleetJob,
        outcome: &mut TransferOutcome,
        mut content: FinishedTransferContent,
    ) -> WholeOrPiecewiseText {
        let reporter = self.reporter_of(job);
        let rows = reporter.csv_rows(&self.report_of(job, outcome), &mut content);
        let rows = rows.transpose().unwrap_or_else(|error| {
            outcome.result = Err(error);
            Some(WholeOrPiecewiseText::Whole(Vec::new()))
        });
        let report = self.report_of(job, outcome);
        self.report(job, &report);
        let id = job.id.as_deref();
        let (text, sha256) = match rows {
            Some(rows) => (rows, None),
            None => reporter.json_line(&report, id, content).unwrap_or((WholeOrPiecewiseText::Whole(Vec::new()), None)),
        };
        if let Some(notes) = self.reporter.job() {
            notes.finished(job, outcome, sha256.as_deref(), true);
        }
        text
    }
}
