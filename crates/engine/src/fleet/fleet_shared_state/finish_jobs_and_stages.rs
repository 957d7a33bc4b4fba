//! The end of jobs, of stages and of the fleet: counting, reports and output.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use super::FleetRun;
use super::next_page::ListingContinuation;
use crate::fleet::FleetSummary;
use crate::fleet::dispatch::{JobWithError, QueuedOrRunningJob};
use crate::fleet::record_memory_sink::{FinishedTransferContent, WholeOrPiecewiseText};
use crate::fleet::reported_job_and_destination::FleetJob;
use crate::transfer::TransferOutcome;
use crate::{Error, Result};

/// The counts of a fleet (a parallel run of transfers): the finished transfers, and the stages that
/// have ended. Each later stage of a fleet requests URLs that are made from the values which the
/// previous stage extracted.
#[derive(Default)]
pub(super) struct FleetTally {
    succeeded: u64,
    causes: BTreeMap<u8, u64>,
    first_failure: Option<(Arc<[u64]>, u8)>,
    /// The exit code of the transfer that was the first to fail; `None` before a failure.
    earliest_exit_code: Option<u8>,
    /// The error that ended all transfers of the fleet; `None` if there was no such error.
    pub(super) fatal: Option<Error>,
    /// The number of stages that have ended. Stages end in order, beginning with the first.
    ended: usize,
    /// True while a worker ends a stage, and adds the values that the stage held until its end to
    /// the queue of the next stage. Meanwhile, no other worker ends a stage or the fleet.
    is_ending_stage: bool,
}

/// The next end of a stage: of all stages but the last, which ends with the fleet.
enum NextStageEnd {
    /// The caller must now end this stage ([`FleetRun::end_stage`]).
    Begun(usize),
    /// Transfers remain in the stage, or another worker ends it.
    NotYet,
    /// All stages but the last have ended.
    OnlyLastLeft,
}

/// A job of a fleet (a transfer with the data for its report) whose transfer has ended, and that
/// has not been reported yet.
pub(super) struct FinishedJob {
    pub(super) dispatched: Box<QueuedOrRunningJob>,
    pub(super) outcome: TransferOutcome,
    pub(super) content: FinishedTransferContent,
    pub(super) end: ListingContinuation,
}

impl FleetRun {
    /// Finishes the output of the fleet's last stage after all workers have ended, and returns the
    /// summary. Returns the error that ended all transfers, if there was one.
    pub(in crate::fleet) fn finish(&self) -> Result<FleetSummary> {
        let fatal = self.lock_tally().fatal.take();
        if let Some(error) = fatal {
            if let Some(window) = self.windows.last().filter(|_| error.is_interrupted()) {
                window.finish_stage()?;
            }
            return Err(error);
        }
        if let Some(window) = self.windows.last() {
            window.finish_stage()?;
        }
        let tally = self.lock_tally();
        Ok(FleetSummary {
            succeeded: tally.succeeded,
            failed: tally.causes.values().sum(),
            exit_code: tally.first_failure.as_ref().map_or(0, |(_, code)| *code),
            earliest_exit_code: tally.earliest_exit_code.unwrap_or(0),
            causes: tally.causes.iter().map(|(&code, &times)| (code, times)).collect(),
            skipped_values: self.skipped_values.load(Ordering::Relaxed),
        })
    }

    /// Counts a finished job (a transfer), and appends `text`, the report of the job, to the job's
    /// body in the output window (an ordered queue of bodies). If `end` contains the next page of a
    /// paginated listing, then adds a job for that page. Otherwise, marks the body as complete.
    /// Does not count a page beyond the end of its listing.
    pub(super) fn finish_job(
        &self,
        job: &FleetJob,
        outcome: &TransferOutcome,
        text: WholeOrPiecewiseText,
        end: ListingContinuation,
    ) {
        if !matches!(end, ListingContinuation::Beyond) {
            let mut tally = self.lock_tally();
            match &outcome.result {
                Ok(()) => tally.succeeded += 1,
                Err(error) => {
                    let code = error.exit_code();
                    *tally.causes.entry(code).or_default() += 1;
                    tally.earliest_exit_code.get_or_insert(code);
                    if tally.first_failure.as_ref().is_none_or(|(first, _)| job.order < *first) {
                        tally.first_failure = Some((Arc::clone(&job.order), code));
                    }
                }
            }
        }
        let window = &self.windows[job.stage];
        self.stop_on_error(window.set_record(job.slot, text));
        match end {
            ListingContinuation::Next(next) => self.begin_next_page(job, next),
            ListingContinuation::Last | ListingContinuation::Beyond => {
                window.set_transfer(job.slot, job.number);
                self.stop_on_error(window.finish_slot(job.slot));
            }
        }
        self.dispatch.lock().on_job_reported(job.stage);
        if self.fail_early && outcome.result.is_err() {
            self.dispatch.lock().stop();
            self.stop(None);
        }
    }

    /// Reports a finished job to the program, counts the job, and outputs the text that the program
    /// returned for it.
    pub(super) fn report_and_finish(&self, finished: FinishedJob) {
        let FinishedJob { dispatched, mut outcome, content, end } = finished;
        let text = self.report_finished(&dispatched.job, &mut outcome, content);
        self.finish_job(&dispatched.job, &outcome, text, end);
    }

    /// Reports a finished job to the program. Returns the text that the program outputs for the
    /// job: a text that follows the job's body in the output or, if the job's stage outputs records
    /// ([`FleetStage::records`](crate::fleet::FleetStage::records)), the record, which replaces the
    /// body.
    pub(super) fn report_finished(
        &self,
        job: &FleetJob,
        outcome: &mut TransferOutcome,
        content: FinishedTransferContent,
    ) -> WholeOrPiecewiseText {
        match self.stages[job.stage].records {
            Some(_) => self.report.record(job, outcome, content),
            None => WholeOrPiecewiseText::Whole(self.report.finished(job, outcome).unwrap_or_default()),
        }
    }

    /// Reports the jobs that could not be started, with their errors. Returns true if there were
    /// any.
    pub(super) fn report_jobs_with_errors(&self) -> bool {
        let mut any = false;
        while let Some(JobWithError { job, target, error }) = self.dispatch.take_job_with_error() {
            any = true;
            let mut outcome = TransferOutcome::unsent(target, error, Instant::now());
            let text = self.report_finished(&job, &mut outcome, FinishedTransferContent::default());
            self.finish_job(&job, &outcome, text, ListingContinuation::Last);
        }
        any
    }

    /// Ends the stages in which no transfer remains. When the last stage has ended, stops the
    /// fleet. Does nothing while another worker ends a stage.
    pub(super) fn finish_stages(&self) {
        loop {
            match self.begin_stage_end() {
                NextStageEnd::NotYet => return,
                NextStageEnd::Begun(stage) => {
                    if self.end_stage(stage) {
                        self.wake_workers();
                        return;
                    }
                }
                NextStageEnd::OnlyLastLeft => break,
            }
        }
        let last = self.stages.len() - 1;
        if self.dispatch.is_exhausted(last) && self.windows[last].is_empty() {
            self.stop(None);
        }
    }

    /// Begins to end the first stage that has not ended, if no transfer remains in it.
    fn begin_stage_end(&self) -> NextStageEnd {
        loop {
            let stage = {
                let tally = self.lock_tally();
                if tally.is_ending_stage {
                    return NextStageEnd::NotYet;
                }
                tally.ended
            };
            if stage + 1 >= self.stages.len() {
                return NextStageEnd::OnlyLastLeft;
            }
            if !self.dispatch.is_exhausted(stage) || !self.windows[stage].is_empty() {
                return NextStageEnd::NotYet;
            }
            let mut tally = self.lock_tally();
            // Another worker may have ended the stage meanwhile.
            if tally.ended == stage && !tally.is_ending_stage {
                tally.is_ending_stage = true;
                return NextStageEnd::Begun(stage);
            }
        }
    }

    /// Passes the values that a stage holds until its end to the next stage, and then counts the
    /// stage as ended. Returns true if there were such values.
    fn end_stage(&self, stage: usize) -> bool {
        let values = self.stop_on_error(self.windows[stage].finish_stage()).flatten();
        let has_values = values.is_some();
        if let Some(values) = values {
            self.dispatch.lock().set_final_values(stage, values);
        }
        let mut tally = self.lock_tally();
        tally.ended += 1;
        tally.is_ending_stage = false;
        has_values
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::extraction::{ExtractRegexes, PageQuery};
    use crate::fleet::{FleetOptions, FleetStage, NoReport};
    use crate::sink::descriptor_writer::DescriptorWriter;
    use haul_policy::queue::QueueCaps;

    #[test]
    fn fleet_runs_until_stage_has_passed_its_values() {
        let query = PageQuery::from(ExtractRegexes::new("x").expect("an expression"));
        let first = FleetStage { extract: Some(query), sort: true, ..FleetStage::default() };
        let stages = vec![first, FleetStage::default()];
        let caps = QueueCaps { total: 1, per_host: 1 };
        let output = DescriptorWriter::new(tempfile::tempfile().expect("a file").into());
        let no_items = Box::new(std::iter::empty());
        let run =
            FleetRun::new(stages, &FleetOptions::default(), caps, no_items, output, Box::new(NoReport)).expect("a run");
        run.dispatch.lock().stop();
        // A worker ends the first stage while another looks whether the run is over.
        assert!(matches!(run.begin_stage_end(), NextStageEnd::Begun(0)));
        run.finish_stages();
        assert!(!run.over.load(Ordering::SeqCst));
        assert!(run.end_stage(0), "the sorted values of the stage, if there are any");
        run.finish_stages();
        assert!(!run.over.load(Ordering::SeqCst), "the next stage has not taken them");
    }
}
