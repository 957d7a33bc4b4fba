//! Tests with a random model of a fleet that it never deadlocks. The dispatcher, the windows and
//! the stage sinks are real. Transfers, hosts and the reader of the output are simulated. After
//! each step, another step must be possible.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use haul_policy::queue::{HostId, QueueCaps};
use haul_policy::target::Target;
use haul_policy::url_template::UrlTemplate;
use testkit::rng::Rng;

use super::super::dispatch::{Dispatcher, NewJobOrRetry, StageWindowsAndSettings};
use super::super::fleet_input_item::FleetItem;
use super::super::item_source::ImmediateItemSource;
use super::super::ordered_window::{DeliveryOrder, OrderedWindow, StageSink};
use super::super::reported_job_and_destination::{BodyDestination, FleetJob};
use super::super::sinks_of_stages::{NextStageSink, StageEndValues};
use super::super::{FleetOptions, FleetStage};
use super::*;
use crate::Result;
use crate::buffer_pool::OfferedBodyBytes;
use crate::pagination::Pagination;
use crate::sink::TransferWaker;
use crate::sink::extracted_value_list::ExtractedValues;
use crate::time_conversions;

/// The output of the simulated fleet: its content, and whether its reader has stopped reading.
#[derive(Default)]
struct ModelOutput {
    content: Vec<u8>,
    is_full: bool,
}

/// The sink of the simulated fleet's last stage, which writes to a [`ModelOutput`].
#[derive(Clone, Default)]
struct OutputModelSink(Arc<Mutex<ModelOutput>>);

impl StageSink for OutputModelSink {
    fn write_bytes(&mut self, bytes: &[u8]) -> Result<OutputReadiness> {
        self.0.lock().unwrap().content.extend_from_slice(bytes);
        self.flush()
    }

    fn write_records(&mut self, records: &mut ExtractedValues) -> Result<OutputReadiness> {
        let lines = records.to_lines();
        records.clear();
        self.write_bytes(&lines)
    }

    fn flush(&mut self) -> Result<OutputReadiness> {
        Ok(if self.0.lock().unwrap().is_full { OutputReadiness::Full } else { OutputReadiness::Free })
    }

    fn finish(&mut self, values: Option<StageEndValues>) -> Result<Option<StageEndValues>> {
        Ok(values)
    }
}

/// The tokens of the transfers that were woken.
#[derive(Default)]
struct WokenTransfers(Mutex<Vec<usize>>);

impl TransferWaker for WokenTransfers {
    fn wake(&self, token: usize) {
        self.0.lock().unwrap().push(token);
    }
}

/// A simulated transfer that has started.
struct ModelTransfer {
    host: HostId,
    key: usize,
    stage: usize,
    slot: u64,
    /// The number of bytes of the transfer's page, or of the page's values if they feed another
    /// stage.
    size: u64,
    sent: u64,
    /// True while the transfer waits to be woken.
    is_blocked: bool,
}

/// A random fleet. The dispatcher, the windows and the stage sinks are real; the transfers, the
/// hosts and the reader of the output are simulated.
struct FleetModel {
    rng: Rng,
    /// The random number generator for the choices about listings.
    pages: Rng,
    dispatch: Arc<Dispatcher>,
    windows: Vec<Arc<OrderedWindow>>,
    stages: Vec<FleetStage>,
    output: OutputModelSink,
    /// The transfers that hold a host slot (the permit for one transfer to a host).
    transfers: Vec<ModelTransfer>,
    /// The transfers that wait to be tried again and have released their host slot.
    retrying: HashMap<usize, ModelTransfer>,
    total: usize,
    max_retrying: usize,
    woken: Arc<WokenTransfers>,
    budget: u64,
    retries: u64,
    now: Instant,
}

fn one_of<T: Copy>(rng: &mut Rng, choices: &[T]) -> T {
    choices[rng.below(choices.len() as u64) as usize]
}

impl FleetModel {
    fn new(seed: u64) -> (Self, DeliveryOrder) {
        let mut rng = Rng::new(seed);
        let urls = one_of(&mut rng, &[1, 3, 20, 60]);
        let hosts = one_of(&mut rng, &[1, 2, 5]);
        let caps = QueueCaps { total: one_of(&mut rng, &[1, 2, 3, 8]), per_host: one_of(&mut rng, &[1, 2, 6]) };
        let budget = one_of(&mut rng, &[1, 600, 5_000, 100_000]);
        let has_next_stage = rng.below(2) == 0;
        let order = one_of(&mut rng, &[DeliveryOrder::Input, DeliveryOrder::Whole, DeliveryOrder::Free]);
        let items = (0..urls).map(move |number: u64| {
            let url = format!("http://h{}.test/{number}", number % hosts);
            Ok(FleetItem::new(url, BodyDestination::Output))
        });
        // Draws of their own, so that the other choices of a seed do not depend on them.
        let mut pages = Rng::new(!seed);
        let mut pagination = || (pages.below(2) == 0).then(|| Arc::new(Pagination::by_link()));
        let mut stages = vec![FleetStage { pagination: pagination(), ..FleetStage::default() }];
        if has_next_stage {
            let template = UrlTemplate::parse("http://h0.test/{}").unwrap();
            let template = Some(Arc::new(template));
            stages.push(FleetStage { template, pagination: pagination(), ..FleetStage::default() });
        }
        let source = Box::new(ImmediateItemSource(Box::new(items)));
        let dispatch = Arc::new(Dispatcher::new(caps, &FleetOptions::default(), stages.len(), source, None));
        let max_retrying = one_of(&mut rng, &[0, 1, 4, 4096]);
        dispatch.set_limits(one_of(&mut rng, &[2, 7, 4096]), max_retrying);
        let output = OutputModelSink::default();
        let last = Arc::new(OrderedWindow::new(order, budget, Box::new(output.clone())));
        let mut windows = vec![Arc::clone(&last)];
        if has_next_stage {
            let feed =
                NextStageSink { dispatch: Arc::clone(&dispatch), stage: stages[1].clone(), window: last, number: 1 };
            let order = one_of(&mut rng, &[DeliveryOrder::Input, DeliveryOrder::Free]);
            windows.insert(0, Arc::new(OrderedWindow::new(order, budget, Box::new(feed))));
        }
        let model = Self {
            rng,
            pages,
            dispatch,
            windows,
            stages,
            output,
            transfers: Vec::new(),
            retrying: HashMap::new(),
            total: caps.total,
            max_retrying,
            woken: Arc::default(),
            budget: budget as u64,
            retries: 0,
            now: Instant::now(),
        };
        (model, order)
    }

    /// Starts a simulated transfer. Returns false if no transfer may start.
    fn start(&mut self) -> bool {
        let view = StageWindowsAndSettings { windows: &self.windows, stages: &self.stages };
        let Some((host, job)) = self.dispatch.next(self.now, &view).unwrap() else { return false };
        let started = match job {
            NewJobOrRetry::New(started) => started,
            NewJobOrRetry::Retry(key) => {
                let transfer = self.retrying.remove(&key).expect("it waits");
                self.transfers.push(ModelTransfer { host, ..transfer });
                return true;
            }
        };
        let feeds = started.stage + 1 < self.stages.len();
        let most = if feeds { 12 } else { (3 * self.budget).min(20_000) };
        let size = self.rng.below(most + 1);
        let (key, stage, slot) = (started.key, started.stage, started.slot);
        self.transfers.push(ModelTransfer { host, key, stage, slot, size, sent: 0, is_blocked: false });
        true
    }

    /// Makes a simulated transfer deliver a piece of its page, restart or finish. Returns false if
    /// the transfer is blocked.
    fn advance(&mut self, index: usize) -> bool {
        let ModelTransfer { key, stage, slot, size, sent, is_blocked, host } = self.transfers[index];
        let window = Arc::clone(&self.windows[stage]);
        if is_blocked {
            return false;
        }
        if sent == size {
            let job = self.dispatch.lock().remove_running(key).job;
            if self.stages[stage].pagination.is_some() && job.page < 4 && self.pages.below(3) > 0 {
                self.begin_next_page(&job);
            } else {
                window.finish_slot(slot).unwrap();
            }
            self.dispatch.lock().on_job_reported(stage);
            self.dispatch.release_host_slot(host);
            self.transfers.swap_remove(index);
            return true;
        }
        if self.retries < 60 && self.rng.below(8) == 0 {
            self.retry(index);
            return true;
        }
        let waker: Arc<dyn TransferWaker> = self.woken.clone();
        let credit = window.credit(slot, Some(&waker), key);
        if credit == 0 {
            self.transfers[index].is_blocked = true;
            return true;
        }
        let count = (size - sent).min(credit).min(1 + self.rng.below(700));
        if stage + 1 < self.stages.len() {
            let mut records = ExtractedValues::default();
            (sent..sent + count).for_each(|value| records.push(format!("{slot}-{value}").as_bytes()));
            window.add_records(slot, &mut records).unwrap();
        } else {
            window.add_bytes(slot, OfferedBodyBytes::borrowed(&vec![slot as u8; count as usize])).unwrap();
        }
        self.transfers[index].sent += count;
        true
    }

    /// Adds the next page of a listing to the queue, as a fleet does.
    fn begin_next_page(&mut self, job: &FleetJob) {
        let window = &self.windows[job.stage];
        let slot = if window.pages_share_slot() {
            window.end_page(job.slot);
            job.slot
        } else {
            window.finish_slot(job.slot).unwrap();
            window.reserve_slot()
        };
        let target = Target::parse(&format!("http://h{}.test/page", self.pages.below(3))).unwrap();
        self.dispatch.push_page(job, slot, Ok(target), &self.stages[job.stage]);
    }

    /// Makes a transfer fail and wait to be tried again. It then either starts again or resumes.
    fn retry(&mut self, index: usize) {
        self.retries += 1;
        let ModelTransfer { key, stage, slot, host, .. } = self.transfers[index];
        if self.rng.below(2) == 0 && self.windows[stage].restart_slot(slot) {
            self.transfers[index].sent = 0;
        }
        let until = self.now + Duration::from_millis(self.rng.below(30));
        if self.rng.below(3) == 0 {
            self.dispatch.lock().queue().pause_host_until(host, time_conversions::to_monotonic_time(until));
        }
        if self.dispatch.delay_retry(key, host, until) {
            self.retrying.insert(key, self.transfers.swap_remove(index));
            self.dispatch.release_host_slot(host);
        }
    }

    /// Advances the clock, if a transfer waits for a time. Returns false if no transfer waits for a
    /// time.
    fn wait(&mut self) -> bool {
        let view = StageWindowsAndSettings { windows: &self.windows, stages: &self.stages };
        let next_timeout = self.dispatch.next_timeout(self.now, &view);
        self.now = next_timeout.unwrap_or(self.now);
        next_timeout.is_some()
    }

    /// Flushes the windows as a worker does. Returns true if that changed anything.
    fn flush(&mut self) -> bool {
        let before = self.output.0.lock().unwrap().content.len();
        let mut has_changed = false;
        for window in &self.windows {
            if window.wants_flush() {
                let kept = (window.has_budget(), window.head_slot());
                window.flush().unwrap();
                has_changed |= kept != (window.has_budget(), window.head_slot());
            }
        }
        has_changed || self.output.0.lock().unwrap().content.len() != before
    }

    fn unblock_woken(&mut self) -> bool {
        let woken = std::mem::take(&mut *self.woken.0.lock().unwrap());
        let mut any = false;
        for transfer in &mut self.transfers {
            if transfer.is_blocked && woken.contains(&transfer.key) {
                transfer.is_blocked = false;
                any = true;
            }
        }
        any
    }

    fn is_over(&self) -> bool {
        let last = self.stages.len() - 1;
        self.dispatch.is_exhausted(last) && self.windows.iter().all(|window| window.is_empty())
    }

    /// Performs a random step. Returns false if no step is possible.
    fn step(&mut self) -> bool {
        if self.rng.below(8) == 0 {
            self.output.0.lock().unwrap().is_full = self.rng.below(2) == 0;
        }
        // The awaited transfer of each stage may run beyond the limit, and one of the last stage
        // that started when that stage was stuck. A retry that keeps its slot may keep one beyond
        // it, too.
        let beyond = self.transfers.len().saturating_sub(self.total);
        assert!(beyond <= self.stages.len() + 1 || self.max_retrying < 60, "{beyond} transfers beyond the limit");
        let count = self.transfers.len() as u64 + 2;
        let first = self.rng.below(count);
        for offset in 0..count {
            let has_moved = match (first + offset) % count {
                0 => self.start(),
                1 => self.flush(),
                index => self.advance(index as usize - 2),
            };
            let is_unblocked = self.unblock_woken();
            if has_moved || is_unblocked {
                return true;
            }
        }
        self.wait()
    }
}

#[test]
fn fleet_always_progresses_while_its_output_has_room() {
    for seed in 0..600 {
        let (mut model, order) = FleetModel::new(seed);
        while !model.is_over() {
            if model.step() {
                continue;
            }
            // Standing still is right only while the reader has stopped.
            let was_full = std::mem::replace(&mut model.output.0.lock().unwrap().is_full, false);
            let is_possible = model.flush() || model.unblock_woken() || model.step();
            assert!(was_full || model.is_over(), "seed {seed}: deadlock");
            assert!(is_possible || model.is_over(), "seed {seed}: deadlock behind a full output");
        }
        if model.stages.len() == 1 {
            let mut content = model.output.0.lock().unwrap().content.clone();
            content.dedup();
            let mut slots = content.clone();
            slots.sort_unstable();
            slots.dedup();
            assert!(order != DeliveryOrder::Input || content == slots, "seed {seed}: bodies are out of order");
            assert!(order != DeliveryOrder::Whole || content.len() == slots.len(), "seed {seed}: bodies are mixed");
        }
    }
}

#[test]
fn only_awaited_transfer_starts_without_budget() {
    let queue_head = QueueHead { first: 7, first_new: 5, has_budget: false, awaited: None, is_last_stuck: false };
    assert_eq!(queue_head.permission(), None);
    let within = QueueHead { has_budget: true, ..queue_head };
    assert_eq!(within.permission(), Some(StartPermission { beyond_caps: None, below: u64::MAX }));
    let awaited = QueueHead { awaited: Some(9), ..queue_head };
    assert_eq!(awaited.permission(), Some(StartPermission { beyond_caps: Some(9), below: 5 }));
}

#[test]
fn retry_starts_without_budget_within_limits() {
    let queue_head = QueueHead { first: 4, first_new: 5, has_budget: false, awaited: None, is_last_stuck: false };
    assert_eq!(queue_head.permission(), Some(StartPermission { beyond_caps: None, below: 5 }));
}

#[test]
fn stuck_stage_starts_one_transfer_beyond_limits() {
    let queue_head = QueueHead { first: 7, first_new: 5, has_budget: false, awaited: None, is_last_stuck: true };
    assert_eq!(queue_head.permission(), Some(StartPermission { beyond_caps: Some(7), below: 5 }));
    assert_eq!(QueueHead { is_last_stuck: false, ..queue_head }.permission(), None);
}

#[test]
fn streaming_body_gets_credit_without_budget() {
    let memory = OrderedWindowMemory { held: 100, budget: 100, room: OutputReadiness::Free, may_run_ahead: false };
    assert_eq!((memory.credit(true), memory.credit(false)), (u64::MAX, 0));
    assert!(memory.may_continue(true) && !memory.may_continue(false));
    let full = OrderedWindowMemory { room: OutputReadiness::Full, held: 40, ..memory };
    assert_eq!((full.credit(true), full.credit(false)), (0, 60));
    assert!(!full.may_continue(true) && full.may_continue(false));
    let ahead = OrderedWindowMemory { may_run_ahead: true, ..full };
    assert_eq!(ahead.credit(true), 60);
    assert!(ahead.may_continue(true));
}
