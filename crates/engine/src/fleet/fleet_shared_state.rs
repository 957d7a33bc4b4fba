//! The state of a running fleet that its workers share. It provides the transfers, receives the
//! results, and decides when the fleet has ended.

mod checksum_queue;
mod finish_jobs_and_stages;
mod new_transfer;
mod next_page;

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Instant;

use haul_policy::concurrency::RefusedLoad;
use haul_policy::queue::{HostId, JobEnd, QueueCaps};
use rustix::fd::RawFd;

use checksum_queue::ChecksumQueue;
use finish_jobs_and_stages::{FinishedJob, FleetTally};
use next_page::ListingContinuation;

use super::dispatch::{Dispatcher, NewJobOrRetry, StageWindowsAndSettings};
use super::item_source::{FleetItems, ImmediateItemSource, InputWaker, ItemSource, ReadAheadItemSource};
use super::known_urls::KnownUrls;
use super::ordered_window::OrderedWindow;
use super::record_memory_sink::WholeOrPiecewiseText;
use super::reported_job_and_destination::{BodyDestination, FleetJob};
use super::sinks_of_stages::new_windows;
use super::{FleetOptions, FleetStage, TransferReporter};
use crate::body::decoder_memory_budget::DecoderMemoryBudget;
use crate::drive::retry_waiting::WaitingRetries;
use crate::drive::worker::{FreeHostSlotUse, Scheduler};
use crate::drive::worker_inbox::{WorkerInbox, WorkerMessage};
use crate::extraction::PageSearch;
use crate::ignore_poison::IgnorePoison;
use crate::interrupt_callback::{CALLBACK_INTERVAL, InterruptCallback};
use crate::request::{RequestOptions, StallLimit, TotalRateLimit};
use crate::sink::descriptor_writer::{DescriptorWriter, OutputReadiness};
use crate::sink::file::OpenDeviceCache;
use crate::sink::temporary_and_final_names::ClobberMode;
use crate::time_conversions;
use crate::transfer::Transfer;
use crate::{Error, ErrorKind, Result};

/// The maximum number of unused [`PageSearch`] values that are kept for later bodies. Keeping them
/// saves allocating their buffers anew.
const MAX_SPARE_SEARCHES: usize = 64;

/// A run of a fleet: many transfers on several worker threads. It is the [`Scheduler`] of these
/// workers, which gives them transfers.
pub(super) struct FleetRun {
    stages: Vec<FleetStage>,
    /// For each stage of the fleet, its request options without credentials. They are used for URLs
    /// that come from pages, not from the user.
    secretless: Vec<Arc<RequestOptions>>,
    windows: Vec<Arc<OrderedWindow>>,
    decoders: Arc<DecoderMemoryBudget>,
    dispatch: Arc<Dispatcher>,
    report: Box<dyn TransferReporter>,
    output_fd: Option<RawFd>,
    fail_early: bool,
    limit_rate_total: Option<TotalRateLimit>,
    stall: Option<StallLimit>,
    interrupt: Option<InterruptCallback>,
    running: Option<Arc<AtomicUsize>>,
    heavy: bool,
    peers: Mutex<Vec<WorkerInboxAndLoad>>,
    searches: Vec<Mutex<Vec<PageSearch>>>,
    /// The number of bytes of memory that the search of one page may use.
    search_memory: u64,
    /// The number of extracted values that were skipped because they are not URLs to fetch.
    skipped_values: Arc<AtomicU64>,
    /// The cache of the open device files to which transfers write, such as `/dev/null`. Each
    /// device is opened only once.
    devices: Arc<OpenDeviceCache>,
    /// The transfers that wait to be tried again and have released their host slot (the permit for
    /// one transfer to a host).
    retries: Mutex<WaitingRetries>,
    checksums: ChecksumQueue,
    tally: Mutex<FleetTally>,
    over: AtomicBool,
}

/// The inbox for messages to a worker thread, and the number of transfers that this worker runs.
/// From these, other workers see whether the worker sleeps and has fewer transfers than they have.
struct WorkerInboxAndLoad {
    inbox: Arc<WorkerInbox>,
    running: usize,
}

impl FleetRun {
    pub(super) fn new(
        stages: Vec<FleetStage>,
        options: &FleetOptions,
        caps: QueueCaps,
        items: FleetItems,
        output: DescriptorWriter,
        report: Box<dyn TransferReporter>,
    ) -> Result<Arc<Self>> {
        let waker = InputWaker::default();
        let source: Box<dyn ItemSource> = if options.slow_input {
            let started = ReadAheadItemSource::start(items, Arc::clone(&waker));
            Box::new(started.map_err(|error| Error::with_source(ErrorKind::Read, "no thread for the input", error))?)
        } else {
            Box::new(ImmediateItemSource(items))
        };
        let is_repeated = stages.iter().any(|stage| stage.depth > 0);
        let known_urls = is_repeated.then(|| KnownUrls::new(options.max_memory / 8));
        let dispatch = Arc::new(Dispatcher::new(caps, options, stages.len(), source, known_urls.clone()));
        let output_fd = output.descriptor_to_watch();
        let decoders = Arc::new(DecoderMemoryBudget::new(options.max_memory / 2));
        let windows = new_windows(&stages, options, &dispatch, output, &decoders, known_urls.as_ref())?;
        let run = Arc::new(Self {
            heavy: stages.iter().any(|stage| stage.extract.is_some() || stage.options.decode),
            secretless: stages.iter().map(|stage| Arc::new(stage.options.without_secrets())).collect(),
            searches: stages.iter().map(|_| Mutex::default()).collect(),
            search_memory: options.max_memory / 4,
            skipped_values: Arc::default(),
            stages,
            windows,
            decoders,
            dispatch,
            report,
            output_fd,
            fail_early: options.fail_early,
            limit_rate_total: options.limit_rate_total.clone(),
            stall: options.stall,
            interrupt: options.interrupt.clone(),
            running: options.running.clone(),
            peers: Mutex::default(),
            devices: Arc::default(),
            retries: Mutex::default(),
            checksums: ChecksumQueue::default(),
            tally: Mutex::default(),
            over: AtomicBool::new(false),
        });
        let weak = Arc::downgrade(&run);
        *waker.lock().ignore_poison() = Some(Box::new(move || {
            if let Some(run) = weak.upgrade() {
                run.wake_workers();
            }
        }));
        Ok(run)
    }

    fn stage_view(&self) -> StageWindowsAndSettings<'_> {
        StageWindowsAndSettings { windows: &self.windows, stages: &self.stages }
    }

    fn lock_tally(&self) -> MutexGuard<'_, FleetTally> {
        self.tally.lock().ignore_poison()
    }

    /// Makes all workers look for new transfers. Workers that are awake are notified, too: they may
    /// have looked before, and be about to sleep.
    fn wake_workers(&self) {
        for peer in self.lock_peers().iter() {
            peer.inbox.send(WorkerMessage::CheckWork);
        }
    }

    fn lock_peers(&self) -> MutexGuard<'_, Vec<WorkerInboxAndLoad>> {
        self.peers.lock().ignore_poison()
    }

    fn with_peer(&self, worker: usize, change: impl FnOnce(&mut WorkerInboxAndLoad)) {
        let mut peers = self.lock_peers();
        if let Some(peer) = peers.get_mut(worker) {
            change(peer);
        }
        if let Some(running) = &self.running {
            running.store(peers.iter().map(|peer| peer.running).sum(), Ordering::Relaxed);
        }
    }

    /// Returns true if another worker sleeps and has fewer transfers than the worker `worker`. The
    /// other worker should get the next transfer.
    fn has_idle_peer(&self, worker: usize) -> bool {
        let peers = self.lock_peers();
        let mine = peers.get(worker).map_or(0, |peer| peer.running);
        peers.iter().any(|other| other.running < mine && other.inbox.is_asleep())
    }

    /// Stops the fleet, so that no further transfer starts. `fatal` is the error with which the
    /// whole fleet fails; `None` without one.
    fn stop(&self, fatal: Option<Error>) {
        if let Some(error) = fatal {
            self.lock_tally().fatal.get_or_insert(error);
        }
        self.over.store(true, Ordering::SeqCst);
        self.wake_workers();
    }

    /// Returns the value in `outcome`. If it is an error, stops the fleet with this error and
    /// returns `None`.
    fn stop_on_error<T>(&self, outcome: Result<T>) -> Option<T> {
        outcome.map_err(|error| self.stop(Some(error))).ok()
    }

    fn lock_retries(&self) -> MutexGuard<'_, WaitingRetries> {
        self.retries.lock().ignore_poison()
    }

    /// Returns the transfer of `job` (a new job or a retry), and counts the transfer for `worker`.
    /// Returns `None` if the transfer of a retry has already failed at its deadline.
    fn start_transfer(&self, worker: usize, job: NewJobOrRetry, host: HostId, now: Instant) -> Option<Box<Transfer>> {
        let transfer = match job {
            NewJobOrRetry::New(started) => self.new_transfer(started, host, now),
            NewJobOrRetry::Retry(key) => {
                let mut transfer = self.lock_retries().remove(key as u64)?;
                transfer.resume_with_slot(host, true, now);
                transfer
            }
        };
        self.with_peer(worker, |peer| peer.running += 1);
        Some(transfer)
    }
}

impl Scheduler for FleetRun {
    fn next(&self, worker: usize, now: Instant) -> Option<Box<Transfer>> {
        if self.over.load(Ordering::SeqCst) {
            return None;
        }
        // After URLs that cannot be started, there may be others that can.
        loop {
            let found = self.stop_on_error(self.dispatch.next(now, &self.stage_view())).flatten();
            let more = self.report_jobs_with_errors();
            match found {
                Some((host, job)) => match self.start_transfer(worker, job, host, now) {
                    Some(transfer) => return Some(transfer),
                    // It has just failed, at its deadline.
                    None => self.dispatch.release_host_slot(host),
                },
                None if more && !self.over.load(Ordering::SeqCst) => {}
                None => return None,
            }
        }
    }

    fn next_for_slot(&self, worker: usize, slot: HostId, now: Instant) -> FreeHostSlotUse {
        if self.over.load(Ordering::SeqCst) {
            self.dispatch.release_host_slot(slot);
            return FreeHostSlotUse::Nothing;
        }
        if self.has_idle_peer(worker) && self.backlog() > 0 {
            return FreeHostSlotUse::GiveAway;
        }
        let found = self.stop_on_error(self.dispatch.next_for(slot, now, &self.stage_view())).flatten();
        self.report_jobs_with_errors();
        match found.map(|job| self.start_transfer(worker, job, slot, now)) {
            Some(Some(transfer)) => FreeHostSlotUse::Transfer(transfer),
            Some(None) => {
                self.dispatch.release_host_slot(slot);
                FreeHostSlotUse::Nothing
            }
            None => FreeHostSlotUse::Nothing,
        }
    }

    fn delay_retry(&self, worker: usize, mut transfer: Box<Transfer>, at: Instant) -> Option<Box<Transfer>> {
        let Some(slot) = transfer.scheduling.host_slot else { return Some(transfer) };
        if let Some(pause) = transfer.host_pause() {
            let until = time_conversions::add_saturating(Instant::now(), pause);
            self.dispatch.lock().queue().pause_host_until(slot, time_conversions::to_monotonic_time(until));
        }
        // Another worker may find the job in the queue at once. It waits here for the transfer.
        let mut retries = self.lock_retries();
        let key = usize::try_from(transfer.scheduling.tag).unwrap_or(usize::MAX);
        if !transfer.may_give_up_slot() || !self.dispatch.delay_retry(key, slot, at) {
            return Some(transfer);
        }
        transfer.give_up_slot();
        let deadline = transfer.total_deadline();
        retries.insert(transfer, deadline);
        drop(retries);
        self.with_peer(worker, |peer| peer.running -= 1);
        None
    }

    fn retry_wait(&self, transfer: &Transfer, now: Instant) -> Option<Instant> {
        self.dispatch.retry_wait(transfer.scheduling.host_slot?, now)
    }

    fn overdue_retry(&self, worker: usize, now: Instant) -> Option<Box<Transfer>> {
        let mut retries = self.lock_retries();
        let tag = retries.overdue(now)?;
        let transfer = retries.remove(tag)?;
        drop(retries);
        self.dispatch.cancel_retry(usize::try_from(tag).unwrap_or(usize::MAX));
        self.with_peer(worker, |peer| peer.running += 1);
        Some(transfer)
    }

    fn add_extra_slot(&self) -> bool {
        self.dispatch.lock().queue().add_extra_slot()
    }

    fn add_extra_slot_for_silent_host(&self, slot: HostId) -> bool {
        self.dispatch.lock().queue().add_extra_slot_for_silent_host(slot)
    }

    fn on_host_answered(&self, slot: HostId) {
        self.dispatch.lock().queue().on_host_answered(slot);
    }

    fn remove_extra_slot(&self) {
        self.dispatch.lock().queue().remove_extra_slot();
    }

    fn release_slot_for_other_worker(&self, slot: HostId) {
        self.dispatch.release_host_slot(slot);
        self.wake_workers();
    }

    fn set_host_multiplexes(&self, slot: HostId, multiplexes: bool) {
        self.dispatch.lock().queue().set_shared_connection(slot, multiplexes);
        self.wake_workers();
    }

    fn on_refused(&self, slot: HostId, end: JobEnd) -> Option<RefusedLoad> {
        self.dispatch.lock().queue().adapt_cap_on_end(slot, end)
    }

    fn is_heavy(&self) -> bool {
        self.heavy
    }

    fn on_finished(&self, worker: usize, transfer: Box<Transfer>, result: Result<()>) {
        self.with_peer(worker, |peer| peer.running -= 1);
        let pause = transfer.host_pause();
        let slot = transfer.scheduling.host_slot;
        let served = transfer.served_job_end(&result);
        let (mut outcome, mut path) = transfer.into_outcome(result);
        // Released before the slot is finished, since that wakes transfers that wait for memory.
        path.release_decoder();
        let mut dispatched = {
            let mut state = self.dispatch.lock();
            if let (Some(pause), Some(slot)) = (pause, slot) {
                state.queue().pause_host_until(
                    slot,
                    time_conversions::to_monotonic_time(time_conversions::add_saturating(Instant::now(), pause)),
                );
            }
            if let (Some(end), Some(slot)) = (served, slot) {
                state.queue().adapt_cap_on_end(slot, end);
            }
            state.remove_running(usize::try_from(outcome.tag).unwrap_or(usize::MAX))
        };
        let job = &mut dispatched.job;
        if let (BodyDestination::File { path: given, .. }, Some(named)) =
            (&mut job.destination, path.sink().file_name())
            && given.as_os_str() != named.as_os_str()
        {
            named.clone_into(given);
        }
        let is_skipped = outcome.result.as_ref().is_err_and(|error| is_skipped(job, error));
        if is_skipped {
            outcome.result = Ok(());
        }
        // Without a place for its records, no exchange may be made.
        if outcome.result.is_err()
            && let Some(error) = self.stages[job.stage].options.recorder.as_ref().and_then(|one| one.failure())
        {
            self.stop(Some(error));
            return;
        }
        // If one body cannot be written to the output, no other can.
        let to_output = job.destination == BodyDestination::Output && self.stages[job.stage].records.is_none();
        if to_output && matches!(&outcome.result, Err(error) if error.kind() == ErrorKind::Write) {
            self.stop(outcome.result.err());
            return;
        }
        let end = self.end_of_page(job, &mut outcome, path.take_page_observer());
        let content = path.take_record();
        if let Some(search) = path.into_search() {
            let mut spare = self.spare_searches(job.stage);
            if spare.len() < MAX_SPARE_SEARCHES {
                spare.push(search);
            }
        }
        // A skipped file is not this transfer's, so it is not reported.
        if is_skipped || matches!(end, ListingContinuation::Beyond) {
            self.finish_job(job, &outcome, WholeOrPiecewiseText::Whole(Vec::new()), end);
        } else {
            self.report_with_checksum(FinishedJob { dispatched, outcome, content: content.unwrap_or_default(), end });
        }
    }

    fn on_out_of_descriptors(&self) {
        self.dispatch.lock().queue().shrink();
    }

    fn flush(&self, worker: usize) -> Result<OutputReadiness> {
        let mut room = OutputReadiness::Free;
        for window in &self.windows {
            if window.wants_flush() {
                let full_at = (!window.has_budget()).then(|| window.head_slot());
                room = self.stop_on_error(window.flush()).unwrap_or(OutputReadiness::Free);
                // If all started transfers are complete, the window wakes none. A worker must check
                // for transfers that may start now.
                if full_at.is_some_and(|head| window.has_budget() || window.head_slot() != head) {
                    self.wake_workers();
                }
            } else {
                room = OutputReadiness::Free;
            }
        }
        if room == OutputReadiness::Full
            && worker != 0
            && let Some(first) = self.lock_peers().first()
        {
            first.inbox.send(WorkerMessage::WatchOutput);
        }
        Ok(room)
    }

    fn wants_flush(&self) -> bool {
        self.windows.iter().any(|window| window.wants_flush())
    }

    fn output_fd(&self) -> Option<RawFd> {
        self.output_fd
    }

    fn next_timeout(&self, now: Instant) -> Option<Instant> {
        let next_timeout = self.dispatch.next_timeout(now, &self.stage_view());
        let deadline = self.lock_retries().next_deadline();
        let asks_at = self.interrupt.as_ref().map(|_| now + CALLBACK_INTERVAL);
        [next_timeout, deadline, asks_at].into_iter().flatten().min()
    }

    fn on_round_end(&self, now: Instant) -> Option<Instant> {
        self.hash_piece().then_some(now)
    }

    fn backlog(&self) -> usize {
        self.dispatch.lock().backlog()
    }

    fn is_run_over(&self) -> bool {
        if !self.over.load(Ordering::SeqCst) {
            if self.interrupt.as_ref().is_some_and(InterruptCallback::wants_to_stop) {
                self.stop(Some(Error::new(ErrorKind::Interrupted, "it was interrupted")));
            } else {
                self.finish_stages();
            }
        }
        self.over.load(Ordering::SeqCst)
    }

    fn abort(&self, error: Error) {
        self.stop(Some(error));
    }

    fn on_worker_started(&self, inbox: &Arc<WorkerInbox>) {
        self.lock_peers().push(WorkerInboxAndLoad { inbox: Arc::clone(inbox), running: 0 });
    }
}

/// Returns true if the transfer failed only because its file already exists and the user has asked
/// to skip existing files.
fn is_skipped(job: &FleetJob, error: &Error) -> bool {
    matches!(&job.destination, BodyDestination::File { options, .. } if options.clobber == ClobberMode::Skip)
        && error.io_source().is_some_and(|source| source.kind() == std::io::ErrorKind::AlreadyExists)
}
