//! The dispatcher: chooses the next transfer from the queue of all stages.
//!
//! Transfers of later stages come first. Within a stage, the transfer with the lowest number comes
//! first. [`haul_policy::queue`] limits the number of concurrent transfers. The input is read only
//! as far as needed to fill the queue: the list of URLs is never in memory as a whole.

mod input_read_ahead;
mod job_states;
mod later_stage_transfers;
mod listing_pages;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::time::Instant;

use haul_policy::concurrency::MAX_LIMIT;
use haul_policy::queue::{HostId, JobQueue, QueueCaps};
use haul_policy::secret_fields::without_userinfo;
use haul_policy::target::{Origin, Scheme, Target};
use slab::Slab;

use input_read_ahead::{InputReadAhead, QUEUE_TARGET};
pub(super) use job_states::{JobWithError, NewJobOrRetry, QueuedOrRunningJob, TransferInputs};
use job_states::{QueuedJob, placeholder_target};
use later_stage_transfers::NewTransferStage;
pub(super) use later_stage_transfers::StageWindowsAndSettings;
pub(super) use listing_pages::PaginatedListing;

use super::fleet_input_item::FleetItem;
use super::item_source::{ItemSource, NextItem};
use super::known_urls::KnownUrls;
use super::ordered_window::OrderedWindow;
use super::progress_rule::{QueueHead, StartPermission};
use super::reported_job_and_destination::{BodyDestination, FleetJob};
use super::sinks_of_stages::StageEndValues;
use super::stage_value_store_for_resume::{StageValueStore, UnfinishedTransferIterator};
use super::start_rate::StartLimits;
use super::{FleetOptions, FleetStage};
use crate::drive::retry_waiting::MAX_WAITING_RETRIES;
use crate::ignore_poison::IgnorePoison;
use crate::time_conversions;
use crate::{Error, ErrorKind, Result};

/// The maximum number of waiting transfers of a stage. At this number, the stage accepts no more
/// values of the previous stage, until half of these transfers have started. (A stage makes
/// requests from the values that the previous stage extracts.)
const MAX_STAGE_BACKLOG: usize = 4096;
/// The maximum total size, in bytes, of the new transfers in the queue, with their URLs, header
/// fields and request content. An item of the input may contain a whole request body.
const MAX_QUEUED_BYTES: usize = 8 << 20;
/// The bit that is set in the priority of a new transfer, and not set in the priority of a retry.
const NEW_TRANSFER_BIT: u64 = 1 << 55;

/// The dispatcher of a fleet, which chooses the next transfer to start. (A fleet runs many
/// transfers in parallel on several worker threads.) Workers and stage sinks share it.
pub(super) struct Dispatcher {
    state: Mutex<DispatchState>,
    stages: usize,
    limits: StartLimits,
    value_store: Option<Arc<dyn StageValueStore>>,
}

/// The state of the dispatcher of a fleet (a parallel run of transfers), protected by a lock. The
/// fleet has one or more stages: each later stage requests URLs that are made from the values which
/// the previous stage extracted.
pub(super) struct DispatchState {
    queue: JobQueue<QueuedJob>,
    running: Slab<Box<QueuedOrRunningJob>>,
    source: Option<Box<dyn ItemSource>>,
    /// For each stage, the values that the stage passes to the next stage only when it ends, such
    /// as sorted values. `None` before the stage ends, and after all its values have been taken.
    final_values: Vec<Option<StageEndValues>>,
    /// The transfers that earlier runs of the program did not finish: for each stage, its index and
    /// its transfers. The queue takes the transfers of the last entry first, and so those of the
    /// last stage.
    unfinished: Vec<(usize, Box<dyn UnfinishedTransferIterator>)>,
    /// For each stage, the number of new transfers in the queue, without those that are tried
    /// again.
    queued_new: Vec<usize>,
    /// For each stage, the number of transfers that are not finished: waiting, running, or with
    /// an error that is not yet reported.
    outstanding: Vec<usize>,
    /// The jobs that cannot be started. Only their errors are reported.
    errors: VecDeque<JobWithError>,
    /// For each stage, true if it has too many waiting transfers. Such a stage accepts no values,
    /// so the previous stage may have to wait.
    full: Vec<bool>,
    numbers: Vec<u64>,
    /// The origin of the first input URL that the user wrote ([`FleetOptions::first_origin`]). URLs
    /// from a list that somebody else wrote do not count.
    first_origin: Arc<OnceLock<Option<Origin>>>,
    /// The origin of the previous input URL; `None` before the first URL. It speeds up the parsing
    /// of the next URL, which probably has the same origin.
    last_origin: Option<Origin>,
    pipeline: usize,
    /// For each stage, the number of transfers that wait to be tried again and have released their
    /// host slot (the permit for one transfer to a host).
    retrying: Vec<usize>,
    /// The maximum number of transfers of all stages that wait to be tried again (the sum of
    /// `retrying`). It limits the memory for them.
    max_retrying: usize,
    /// The number of waiting transfers at which a stage accepts no more values.
    max_backlog: usize,
    read_ahead: InputReadAhead,
    /// The number of bytes of memory that the queued new jobs take.
    queued_bytes: usize,
    /// The URLs queued so far by a stage that also fetches the links in its pages
    /// ([`FleetStage::depth`]). Each URL is fetched only once. `None` without such a stage.
    known_urls: Option<KnownUrls>,
}

impl Dispatcher {
    pub(super) fn new(
        caps: QueueCaps,
        options: &FleetOptions,
        stages: usize,
        source: Box<dyn ItemSource>,
        known_urls: Option<KnownUrls>,
    ) -> Self {
        let pipeline = options.pipeline.max(1);
        let caps = QueueCaps { total: caps.total * pipeline, per_host: caps.per_host * pipeline };
        let mut queue = JobQueue::new(caps);
        // Pipelined requests wait for each other by intent.
        if options.per_host.is_none() && pipeline == 1 {
            queue.adapt_caps(MAX_LIMIT);
        }
        let value_store = options.stage_memory.clone();
        let of_stages = |value_store: &Arc<dyn StageValueStore>| {
            (1..stages).map(|stage| (stage, value_store.unfinished_transfers(stage))).collect()
        };
        let number = |stage: usize| {
            value_store.as_ref().filter(|_| stage > 0).map_or(0, |value_store| value_store.next_number(stage))
        };
        Self {
            state: Mutex::new(DispatchState {
                unfinished: value_store.as_ref().map(of_stages).unwrap_or_default(),
                queue,
                running: Slab::new(),
                source: Some(source),
                final_values: (0..stages).map(|_| None).collect(),
                queued_new: vec![0; stages],
                outstanding: vec![0; stages],
                errors: VecDeque::new(),
                full: vec![false; stages],
                numbers: (0..stages).map(number).collect(),
                first_origin: options.first_origin.clone().unwrap_or_default(),
                last_origin: None,
                pipeline,
                retrying: vec![0; stages],
                // With one transfer at a time, the order is part of the request.
                max_retrying: if caps.total == pipeline { 0 } else { MAX_WAITING_RETRIES },
                max_backlog: MAX_STAGE_BACKLOG,
                read_ahead: InputReadAhead::default(),
                queued_bytes: 0,
                known_urls,
            }),
            stages,
            value_store,
            limits: StartLimits {
                all: options.start_rate.clone(),
                each_host: options.host_start_rate.clone(),
                bytes: options.limit_rate_total.clone(),
            },
        }
    }

    /// Lowers the limits on waiting transfers, so that small tests reach them.
    #[cfg(test)]
    pub(super) fn set_limits(&self, max_backlog: usize, max_retrying: usize) {
        let mut state = self.lock();
        (state.max_backlog, state.max_retrying) = (max_backlog, max_retrying);
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, DispatchState> {
        self.state.lock().ignore_poison()
    }

    /// Returns the priority of a new transfer as a number. The transfer with the lowest number
    /// starts first. Transfers of later stages have lower numbers than those of earlier stages.
    /// `slot` is the transfer's place in the output order of its stage.
    pub(super) fn priority(&self, stage: usize, slot: u64) -> u64 {
        self.retry_priority(stage, slot) | NEW_TRANSFER_BIT
    }

    /// Returns the priority of a transfer that waits to be tried again. The number is lower than
    /// that of any new transfer of the same stage, so the transfer starts earlier.
    fn retry_priority(&self, stage: usize, slot: u64) -> u64 {
        ((self.stages - 1 - stage) as u64) << 56 | slot
    }

    /// Adds a job (a transfer with its report data) to the queue. A job that cannot be started is
    /// added to the list of jobs with errors instead, which are only reported.
    fn enqueue_job(&self, state: &mut DispatchState, job: Result<Box<QueuedOrRunningJob>, Box<JobWithError>>) {
        match job {
            Ok(job) => self.push(state, job),
            Err(job) => state.errors.push_back(*job),
        }
    }

    fn push(&self, state: &mut DispatchState, waiting: Box<QueuedOrRunningJob>) {
        let (stage, priority) = (waiting.job.stage, self.priority(waiting.job.stage, waiting.job.slot));
        state.queued_new[stage] += 1;
        state.queued_bytes += waiting.queued_bytes();
        let origin = waiting.target.as_ref().expect("a job that has not started has a target").origin();
        let host = state.queue.push(&origin, priority, QueuedJob::New(waiting));
        if self.limits.each_host.is_some() {
            self.limits.on_push(&mut state.queue, host, Instant::now());
        }
        if state.queued_new[stage] >= state.max_backlog {
            state.full[stage] = true;
        }
    }

    /// Returns true if a stage accepts more values of the previous stage.
    pub(super) fn accepts_values(&self, stage: usize) -> bool {
        let state = self.lock();
        !state.full[stage] && state.errors.len() < state.max_backlog
    }

    /// Adds new transfers to the queue until `target` × `pipeline` wait, or until they take
    /// [`MAX_QUEUED_BYTES`]. Takes the unfinished transfers of earlier runs first, then the values
    /// that an ended stage held back (to sort them, for example), then the input. Stops earlier if
    /// the input has no item now.
    ///
    /// # Errors
    /// A value or an unfinished transfer cannot be read back from disk.
    fn fill_queue(&self, state: &mut DispatchState, target: usize, view: &StageWindowsAndSettings<'_>) -> Result<()> {
        while state.queue.len() + state.errors.len() < target * state.pipeline && state.queued_bytes < MAX_QUEUED_BYTES
        {
            if let Some((stage, transfers)) = state.unfinished.last_mut() {
                let stage = *stage;
                match transfers.next_transfer()? {
                    Some(transfer) => self.add_unfinished(state, stage, transfer, view),
                    None => drop(state.unfinished.pop()),
                }
                continue;
            }
            if let Some(stage) = state.final_values.iter().rposition(Option::is_some) {
                let value = match &mut state.final_values[stage] {
                    Some(tail) => tail.next_value()?.map(<[u8]>::to_vec),
                    None => None,
                };
                let Some(value) = value else {
                    state.final_values[stage] = None;
                    continue;
                };
                if let Some(next) = view.stages.get(stage + 1) {
                    // These values come after all that the stage passed on immediately.
                    let order = [u64::MAX, state.numbers[stage + 1]].into();
                    let window = &view.windows[stage + 1];
                    self.add_value(
                        state,
                        NewTransferStage { number: stage + 1, stage: next, window, order },
                        &value,
                        None,
                    );
                }
                continue;
            }
            let Some(source) = &mut state.source else { break };
            if !view.windows[0].has_budget() && state.outstanding[0] > 0 {
                break;
            }
            match source.next_item() {
                NextItem::Item(item) => self.add_item(state, item, view),
                NextItem::Later => break,
                NextItem::End => state.source = None,
            }
        }
        Ok(())
    }

    /// Adds a transfer for an item of the input to the first stage. If the item cannot be
    /// requested, adds a job with an error instead, which is only reported.
    fn add_item(&self, state: &mut DispatchState, item: Result<FleetItem>, view: &StageWindowsAndSettings<'_>) {
        let slot = view.windows[0].reserve_slot();
        let mut item = item.unwrap_or_else(FleetItem::failed);
        state.numbers[0] = item.number.unwrap_or(state.numbers[0]);
        let order: Arc<[u64]> = [state.numbers[0]].into();
        let last = state.last_origin.as_ref();
        let parsed = match item.error.take() {
            Some(error) => Err(error),
            None => Target::parse_near(&item.url, last, Scheme::Http, view.stages[0].options.path_as_is)
                .map_err(|error| url_error(&item.url, error)),
        };
        let request_bytes = item.kept_bytes();
        let FleetItem { url, destination, request, id, context, is_users_origin, later_pages, .. } = item;
        let job = |state: &mut DispatchState, url, destination| {
            let method = request.as_ref().and_then(|request| request.overrides.method.clone());
            FleetJob { method, id, context, ..state.new_job(0, url, order, destination, slot) }
        };
        match parsed {
            Ok(target) => {
                if is_users_origin {
                    state.first_origin.get_or_init(|| Some(target.origin()));
                }
                state.last_origin = Some(target.origin());
                state.remember_url(&view.stages[0], &target);
                let job = job(state, url, destination);
                let job =
                    Box::new(QueuedOrRunningJob { job, target: Some(target), value: None, request, request_bytes });
                self.enqueue_job(state, job.in_listing(&view.stages[0], later_pages));
            }
            Err(error) => {
                let url = error.url().unwrap_or_default().to_owned();
                let job = job(state, url, BodyDestination::Output);
                state.errors.push_back(JobWithError { job, target: placeholder_target(), error });
            }
        }
    }

    /// Returns the next job (a transfer with its report data) that may start, and the host slot (a
    /// permit for one transfer to a host) that the job uses; `None` if no job may start now.
    ///
    /// # Errors
    /// A value or an unfinished transfer, needed to fill the queue, cannot be read back from disk.
    pub(super) fn next(
        &self,
        now: Instant,
        view: &StageWindowsAndSettings<'_>,
    ) -> Result<Option<(HostId, NewJobOrRetry)>> {
        let mut state = self.lock();
        // Pauses end even if nothing may start: `next_timeout` reports their end only once.
        state.queue.end_expired_pauses(time_conversions::to_monotonic_time(now));
        let mut target = QUEUE_TARGET;
        loop {
            self.fill_queue(&mut state, target, view)?;
            if self.limits.earliest_start(now).is_some() {
                return Ok(None);
            }
            let Some(permission) = self.start_permission(&state, view) else { return Ok(None) };
            let StartPermission { below, beyond_caps } = permission;
            if let Some((host, _, waiting)) =
                state.queue.next_below(below, time_conversions::to_monotonic_time(now), beyond_caps)
            {
                self.limits.on_start(&mut state.queue, host, now);
                return Ok(Some((host, state.start_job(waiting))));
            }
            if state.queue.len() < target {
                return Ok(None);
            }
            let Some(further) = state.next_queue_target(now) else { return Ok(None) };
            target = further;
        }
    }

    /// Returns a job for the host slot (the permit for one transfer to a host) that a finished
    /// transfer to `host` has held. If there is no such job, releases the slot and returns `None`.
    ///
    /// # Errors
    /// A value or an unfinished transfer, needed to fill the queue, cannot be read back from disk.
    pub(super) fn next_for(
        &self,
        host: HostId,
        now: Instant,
        view: &StageWindowsAndSettings<'_>,
    ) -> Result<Option<NewJobOrRetry>> {
        let mut state = self.lock();
        self.fill_queue(&mut state, QUEUE_TARGET, view)?;
        let found = match self.start_permission(&state, view) {
            Some(_) if self.limits.earliest_start(now).is_some() => None,
            Some(StartPermission { below, beyond_caps }) => {
                state.queue.next_for_below(host, below, time_conversions::to_monotonic_time(now), beyond_caps)
            }
            None => None,
        };
        let Some((_, waiting)) = found else {
            state.queue.on_job_end(host);
            return Ok(None);
        };
        self.limits.on_start(&mut state.queue, host, now);
        Ok(Some(state.start_job(waiting)))
    }

    /// Puts a job back into the queue, to be tried again from the time `until` on. `key` is its key
    /// among the jobs in progress. `slot` is its host slot (the permit for one transfer to its
    /// host), which the caller must then release. Returns false, and does nothing, if too many jobs
    /// wait already. The job then keeps its host slot.
    pub(super) fn delay_retry(&self, key: usize, slot: HostId, until: Instant) -> bool {
        let mut state = self.lock();
        let state = &mut *state;
        if state.retrying.iter().sum::<usize>() >= state.max_retrying {
            return false;
        }
        let FleetJob { stage, slot: body_slot, .. } = state.running[key].job;
        let priority = self.retry_priority(stage, body_slot);
        let is_added = state
            .queue
            .push_delayed(slot, time_conversions::to_monotonic_time(until), priority, QueuedJob::Retry(key))
            .is_ok();
        state.retrying[stage] += usize::from(is_added);
        is_added
    }

    /// Removes a retry from the queue. `key` is the key of its job (a transfer with its report
    /// data) in `DispatchState::running`.
    pub(super) fn cancel_retry(&self, key: usize) {
        let mut state = self.lock();
        let FleetJob { stage, slot, .. } = state.running[key].job;
        if state.queue.remove(self.retry_priority(stage, slot)).is_some() {
            state.retrying[stage] -= 1;
        }
    }

    /// Returns the time from which the limits on the start rate allow the retry of a transfer to
    /// `host`. The transfer must still hold its host slot (the permit for one transfer to the
    /// host). If the retry is allowed now, counts the retry as a start and returns `None`.
    pub(super) fn retry_wait(&self, host: HostId, now: Instant) -> Option<Instant> {
        self.limits.retry_wait(&mut self.lock().queue, host, now)
    }

    /// Decides which queued transfers may start within the limits on concurrent transfers: all, or
    /// only retries if the stage's bodies in memory use up its budget. A transfer for which others
    /// wait may start beyond the limits. Returns `None` if the queue is empty, or if no transfer
    /// may start until a body is output ([`progress_rule`](super::progress_rule)).
    fn start_permission(&self, state: &DispatchState, view: &StageWindowsAndSettings<'_>) -> Option<StartPermission> {
        let last = state.outstanding.iter().rposition(|&outstanding| outstanding > 0)?;
        let first = state.queue.first_seq()?;
        let stage = self.stages - 1 - usize::try_from(first >> 56).unwrap_or(0);
        let awaited = |stage: usize| {
            let slot = view.windows[stage].awaited_slot()?;
            let retry = || Some(self.retry_priority(stage, slot)).filter(|_| state.retrying[stage] > 0);
            let all = [retry(), Some(self.priority(stage, slot))];
            all.into_iter().flatten().find(|priority| state.queue.contains(*priority))
        };
        let queue_head = QueueHead {
            first,
            first_new: self.priority(stage, 0),
            has_budget: view.windows[stage].has_budget(),
            awaited: (0..=last).rev().find_map(awaited),
            is_last_stuck: state.full[last] && state.outstanding[last] == state.queued_new[last] + state.retrying[last],
        };
        queue_head.permission()
    }

    /// Returns the next time at which a waiting transfer may become able to start, even if no
    /// transfer ends before. Examples are the end of a host's pause, and the time when the start
    /// rate allows a start. Returns `None` if there is no such time.
    pub(super) fn next_timeout(&self, now: Instant, view: &StageWindowsAndSettings<'_>) -> Option<Instant> {
        let state = self.lock();
        let time = time_conversions::to_monotonic_time(now);
        let wakeup = match (self.start_permission(&state, view), self.limits.earliest_start(now)) {
            (None, _) => state.queue.next_due(time),
            (Some(_), Some(at)) => return Some(at),
            (Some(_), None) => state.queue.next_wakeup(time),
        };
        // Later than `now`: otherwise the queue has just been filled.
        let fills = state.read_ahead.next_time().filter(|at| *at > now);
        [wakeup.map(time_conversions::to_instant), fills].into_iter().flatten().min()
    }

    /// Removes and returns a job with an error, which the caller reports as failed. Returns `None`
    /// if there is none.
    pub(super) fn take_job_with_error(&self) -> Option<JobWithError> {
        self.lock().errors.pop_front()
    }

    /// Releases a host slot (the permit for one transfer to a host), because its transfer is
    /// finished.
    pub(super) fn release_host_slot(&self, host: HostId) {
        self.lock().queue.on_job_end(host);
    }

    /// Returns true if this stage and all stages before it have finished all their transfers and
    /// will get no more.
    pub(super) fn is_exhausted(&self, stage: usize) -> bool {
        let state = self.lock();
        state.source.is_none()
            && state.unfinished.is_empty()
            && state.outstanding[..=stage].iter().all(|&outstanding| outstanding == 0)
            && state.final_values[..stage].iter().all(Option::is_none)
    }
}

impl DispatchState {
    /// Records the URL of a transfer of a repeated stage ([`FleetStage::depth`]), so that no
    /// repetition of the stage fetches the URL again.
    fn remember_url(&self, stage: &FleetStage, target: &Target) {
        if let Some(known) = self.known_urls.as_ref().filter(|_| stage.depth > 0) {
            // A URL for which there is no memory is reported when a page names it.
            let _ = known.is_new(target.to_url().as_bytes());
        }
    }

    fn new_job(
        &mut self,
        stage: usize,
        url: String,
        order: Arc<[u64]>,
        destination: BodyDestination,
        slot: u64,
    ) -> FleetJob {
        let number = self.numbers[stage];
        self.numbers[stage] += 1;
        self.outstanding[stage] += 1;
        FleetJob {
            url,
            number,
            order,
            stage,
            page: 1,
            destination,
            method: None,
            id: None,
            context: None,
            slot,
            listing: None,
        }
    }

    /// Returns the number of waiting transfers up to which the caller now fills the queue. The
    /// caller has found that the hosts of all waiting transfers allow no start, but the next item
    /// of the input may be for another host. Returns `None` if the total limit on concurrent
    /// transfers is reached, if the waiting transfers take too much memory, if the input has ended,
    /// or if it is too early ([`InputReadAhead`]).
    fn next_queue_target(&mut self, now: Instant) -> Option<usize> {
        if !self.queue.has_free_slot() {
            self.read_ahead.on_total_limit();
            return None;
        }
        if self.source.is_none() || self.queued_bytes >= MAX_QUEUED_BYTES {
            return None;
        }
        self.read_ahead.next_target(self.queue.len(), self.queue.first_seq()?, now)
    }

    fn start_job(&mut self, waiting: QueuedJob) -> NewJobOrRetry {
        let mut started = match waiting {
            QueuedJob::New(waiting) => waiting,
            QueuedJob::Retry(key) => {
                self.retrying[self.running[key].job.stage] -= 1;
                return NewJobOrRetry::Retry(key);
            }
        };
        let target = started.target.take().expect("a job that has not started has a target");
        let (value, request) = (started.value.take(), started.request.take());
        let FleetJob { stage, slot, .. } = started.job;
        self.queued_new[stage] -= 1;
        self.queued_bytes -= started.queued_bytes();
        if self.queued_new[stage] < self.max_backlog / 2 {
            self.full[stage] = false;
        }
        let job = &started.job;
        let (order, destination, listing) = (Arc::clone(&job.order), job.destination.clone(), job.listing.clone());
        let key = self.running.insert(started);
        NewJobOrRetry::New(TransferInputs { key, stage, slot, order, destination, target, value, request, listing })
    }

    /// Returns the URL of the job in progress with this key.
    pub(super) fn url_of_running(&self, key: usize) -> String {
        self.running[key].job.url.clone()
    }

    /// Removes and returns the finished job with this key from the jobs in progress.
    pub(super) fn remove_running(&mut self, key: usize) -> Box<QueuedOrRunningJob> {
        self.running.remove(key)
    }

    /// Lowers the number of unfinished transfers of this stage by one, because the result of one of
    /// them has been reported.
    pub(super) fn on_job_reported(&mut self, stage: usize) {
        self.outstanding[stage] -= 1;
    }

    pub(super) fn set_final_values(&mut self, stage: usize, tail: StageEndValues) {
        self.final_values[stage] = Some(tail);
    }

    pub(super) fn queue(&mut self) -> &mut JobQueue<QueuedJob> {
        &mut self.queue
    }

    /// Returns the origin of the first URL that the user wrote. Only this origin may receive the
    /// credentials of later stages. `None` if there is no such URL yet.
    pub(super) fn first_origin(&self) -> Option<&Origin> {
        self.first_origin.get()?.as_ref()
    }

    pub(super) fn backlog(&self) -> usize {
        self.queue.len()
    }

    /// Stops reading the input, so that no further jobs are added.
    pub(super) fn stop(&mut self) {
        self.source = None;
    }
}

fn url_error(url: &str, error: haul_policy::target::TargetError) -> Error {
    let kind = if error.exit_code() == 1 { ErrorKind::UnsupportedScheme } else { ErrorKind::Url };
    Error::with_source(kind, "the URL cannot be used", error).with_url(without_userinfo(url).escape_debug().to_string())
}
