//! Choice of the next transfer: the queue of all stages, their sources, and the outstanding
//! transfers.
//!
//! Later stages go first, and within a stage the lowest number, inside the caps of [`haul_policy::queue`]. Only as many
//! URLs are taken from the input as keep the queue filled: the list itself is never in memory.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Instant;

use haul_policy::queue::{Caps, HostId, Queue};
use haul_policy::secrets::without_userinfo;
use haul_policy::target::{Origin, Scheme, Target};
use slab::Slab;

use super::outlet::Tail;
use super::pace::Pace;
use super::source::{Pulled, Source};
use super::window::Window;
use super::{FleetOptions, Stage};
use crate::clock;
use crate::sink::file::FileOptions;
use crate::sync::IgnorePoison;
use crate::{Error, ErrorKind, Result};

/// The queue is filled up to this many transfers from the input.
const FILL: usize = 256;
/// A stage with this many waiting transfers takes no more values from the one before, until half of them have started.
const APPETITE: usize = 4096;

/// The destination of one transfer's content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Destination {
    /// The run's output, in its turn.
    Output,
    /// A separate file for this transfer.
    File {
        /// The path of the file.
        path: PathBuf,
        /// The options for writing the file.
        options: FileOptions,
    },
}

/// One transfer to do.
#[derive(Debug, Clone)]
pub struct Job {
    /// The URL as it was given to the stage.
    pub url: String,
    /// The number of the transfer in its stage, from 0.
    pub number: u64,
    /// The position in the input: the numbers of the transfers that led to this one, then its own
    /// number.
    pub order: Arc<[u64]>,
    /// The stage that the transfer belongs to, from 0.
    pub stage: usize,
    /// The destination of the content. For a finished transfer, the path is the file's final one
    /// ([`FileOptions::named_by_response`],
    /// [`Clobber::Number`](crate::sink::naming::Clobber::Number)).
    pub destination: Destination,
    pub(super) slot: u64,
}

/// A waiting job. Boxed in the queue, because the queue moves its entries.
pub(super) struct Waiting {
    job: Job,
    target: Target,
    /// The value that made its URL, if its stage asks for it.
    value: Option<Box<[u8]>>,
}

/// The parts of a job from which its transfer is made. The job itself is kept under its key until
/// it ends.
pub(super) struct Started {
    pub(super) key: usize,
    pub(super) stage: usize,
    pub(super) slot: u64,
    pub(super) order: Arc<[u64]>,
    pub(super) destination: Destination,
    pub(super) target: Target,
    pub(super) value: Option<Box<[u8]>>,
}

/// A job that cannot be begun, and why.
pub(super) struct Broken {
    pub(super) job: Job,
    pub(super) target: Target,
    pub(super) error: Error,
}

pub(super) struct Dispatch {
    state: Mutex<State>,
    stages: usize,
    pace: Option<Pace>,
}

pub(super) struct State {
    queue: Queue<Box<Waiting>>,
    running: Slab<Job>,
    source: Option<Box<dyn Source>>,
    /// Values that a stage can pass to the next only at its end.
    tails: Vec<Option<Tail>>,
    /// Transfers of each stage that wait.
    waiting: Vec<usize>,
    /// Transfers of each stage that wait or run, or are broken and not yet reported.
    outstanding: Vec<usize>,
    broken: VecDeque<Broken>,
    /// True if a stage was full, so that the one before may wait for it.
    full: Vec<bool>,
    numbers: Vec<u64>,
    /// The origin of the first URL of all.
    first_origin: Option<Origin>,
    /// The key of the last one, which the next is likely to have, too.
    last_origin: Option<Origin>,
    pipeline: usize,
    /// Slots of transfers that wait until their host may be asked again, which others use meanwhile.
    lent: usize,
    /// The largest number of lent slots: for each, a transfer is kept in memory.
    lendable: usize,
}

/// The windows and stages, as far as the queue needs them.
pub(super) struct View<'a> {
    pub(super) windows: &'a [Arc<Window>],
    pub(super) stages: &'a [Stage],
}

impl Dispatch {
    pub(super) fn new(caps: Caps, options: &FleetOptions, stages: usize, source: Box<dyn Source>) -> Self {
        let pipeline = options.pipeline.max(1);
        let caps = Caps { total: caps.total * pipeline, per_host: caps.per_host * pipeline };
        Self {
            state: Mutex::new(State {
                queue: Queue::new(caps),
                running: Slab::new(),
                source: Some(source),
                tails: (0..stages).map(|_| None).collect(),
                waiting: vec![0; stages],
                outstanding: vec![0; stages],
                broken: VecDeque::new(),
                full: vec![false; stages],
                numbers: vec![0; stages],
                first_origin: None,
                last_origin: None,
                pipeline,
                lent: 0,
                // One at a time means that they are wanted one after the other.
                lendable: if caps.total == pipeline { 0 } else { caps.total },
            }),
            stages,
            pace: options.pace.clone(),
        }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().ignore_poison()
    }

    /// Later stages go first.
    pub(super) fn priority(&self, stage: usize, slot: u64) -> u64 {
        ((self.stages - 1 - stage) as u64) << 56 | slot
    }

    /// Adds a value of the stage before to the transfers of the stage with this number.
    pub(super) fn feed(&self, number: usize, stage: &Stage, window: &Window, value: &[u8], order: Arc<[u64]>) {
        self.enlist(&mut self.lock(), number, stage, window, value, order);
    }

    fn enlist(
        &self,
        state: &mut State,
        number: usize,
        stage: &Stage,
        window: &Window,
        value: &[u8],
        order: Arc<[u64]>,
    ) {
        match made_by(stage, value) {
            Ok(Some((url, target, destination))) => {
                let job = state.job(number, url, order, destination, window.reserve());
                let value = stage.by_value.is_some().then(|| value.into());
                self.push(state, Waiting { job, target, value });
            }
            Ok(None) => {}
            Err(error) => {
                let shown = without_userinfo(&String::from_utf8_lossy(value)).escape_debug().to_string();
                let error = error.with_url(shown.clone());
                let job = state.job(number, shown, order, Destination::Output, window.reserve());
                state.broken.push_back(Broken { job, target: nowhere(), error });
            }
        }
    }

    fn push(&self, state: &mut State, waiting: Waiting) {
        let (stage, priority) = (waiting.job.stage, self.priority(waiting.job.stage, waiting.job.slot));
        state.waiting[stage] += 1;
        let origin = waiting.target.origin();
        state.queue.push(&origin, priority, Box::new(waiting));
        if state.waiting[stage] >= APPETITE {
            state.full[stage] = true;
        }
    }

    /// Returns true if a stage takes more values.
    pub(super) fn has_appetite(&self, stage: usize) -> bool {
        let state = self.lock();
        !state.full[stage] && state.broken.len() < APPETITE
    }

    /// Takes URLs from the input, or from the values that a stage kept to its end, until the queue
    /// is filled.
    ///
    /// # Errors
    /// When a value cannot be read back from disk.
    fn fill(&self, state: &mut State, view: &View<'_>) -> Result<()> {
        while state.queue.len() + state.broken.len() < FILL * state.pipeline {
            if let Some(stage) = state.tails.iter().rposition(Option::is_some) {
                let value = match &mut state.tails[stage] {
                    Some(tail) => tail.next_value()?.map(<[u8]>::to_vec),
                    None => None,
                };
                let Some(value) = value else {
                    state.tails[stage] = None;
                    continue;
                };
                if let Some(next) = view.stages.get(stage + 1) {
                    // These come after all that the stage passed on at once.
                    let order = [u64::MAX, state.numbers[stage + 1]].into();
                    self.enlist(state, stage + 1, next, &view.windows[stage + 1], &value, order);
                }
                continue;
            }
            let Some(source) = &mut state.source else { break };
            if !view.windows[0].has_budget() && state.outstanding[0] > 0 {
                break;
            }
            match source.pull() {
                Pulled::Item(item) => {
                    let slot = view.windows[0].reserve();
                    let number = state.numbers[0];
                    let last = state.last_origin.as_ref();
                    let parse =
                        |url: &str| Target::parse_near(url, last, Scheme::Http, view.stages[0].options.path_as_is);
                    let parsed = item.and_then(|item| match parse(&item.url) {
                        Ok(target) => Ok((item, target)),
                        Err(error) => Err(url_error(&item.url, error)),
                    });
                    match parsed {
                        Ok((item, target)) => {
                            state.first_origin.get_or_insert_with(|| target.origin());
                            state.last_origin = Some(target.origin());
                            let job = state.job(0, item.url, [number].into(), item.destination, slot);
                            self.push(state, Waiting { job, target, value: None });
                        }
                        Err(error) => {
                            let url = error.url().unwrap_or_default().to_owned();
                            let job = state.job(0, url, [number].into(), Destination::Output, slot);
                            state.broken.push_back(Broken { job, target: nowhere(), error });
                        }
                    }
                }
                Pulled::Later => break,
                Pulled::End => state.source = None,
            }
        }
        Ok(())
    }

    /// The next job that may start, with its host's slot.
    ///
    /// # Errors
    /// As `fill`.
    pub(super) fn next(&self, now: Instant, view: &View<'_>) -> Result<Option<(HostId, Started)>> {
        let mut state = self.lock();
        self.fill(&mut state, view)?;
        if self.may_begin_at(now).is_some() {
            return Ok(None);
        }
        let Some(head) = self.allowed_head(&state, view) else { return Ok(None) };
        let Some((host, _, waiting)) = state.queue.next(clock::policy_time(now), head) else { return Ok(None) };
        self.begins(now);
        Ok(Some((host, state.started(*waiting))))
    }

    /// Another job for a slot that is free now; without one the slot is given back.
    ///
    /// # Errors
    /// As `fill`.
    pub(super) fn next_for(&self, host: HostId, now: Instant, view: &View<'_>) -> Result<Option<Started>> {
        let mut state = self.lock();
        self.fill(&mut state, view)?;
        let found = match self.allowed_head(&state, view) {
            Some(_) if self.may_begin_at(now).is_some() => None,
            Some(head) => state.queue.next_for(host, clock::policy_time(now), head),
            None => None,
        };
        let Some((_, waiting)) = found else {
            state.queue.release(host);
            return Ok(None);
        };
        self.begins(now);
        Ok(Some(state.started(*waiting)))
    }

    /// The time before which the pace lets no transfer begin.
    fn may_begin_at(&self, now: Instant) -> Option<Instant> {
        self.pace.as_ref()?.wait_until(now)
    }

    fn begins(&self, now: Instant) {
        if let Some(pace) = &self.pace {
            pace.begin(now);
        }
    }

    /// The number that may start whatever the caps say: the head of the last stage that has something outstanding. Where
    /// its order does not matter there is no head; one goes on all the same when the stage takes no more and nothing of it
    /// runs, for then all slots may belong to pages that wait for it. The outer `None`: nothing may start, for the window
    /// is full and what waits is not its head.
    #[expect(clippy::option_option, reason = "the outer one is a verdict, the inner one a number")]
    fn allowed_head(&self, state: &State, view: &View<'_>) -> Option<Option<u64>> {
        let stage = state.outstanding.iter().rposition(|&outstanding| outstanding > 0)?;
        let first = state.queue.first_seq()?;
        let is_stuck = state.full[stage] && state.outstanding[stage] == state.waiting[stage];
        let head = match view.windows[stage].head() {
            Some(slot) => Some(self.priority(stage, slot)),
            None => is_stuck.then_some(first),
        };
        let its_stage = self.stages - 1 - usize::try_from(first >> 56).unwrap_or(0);
        let window = &view.windows[its_stage];
        let is_awaited = head == Some(first) || window.head().map(|slot| self.priority(its_stage, slot)) == Some(first);
        (window.has_budget() || is_awaited).then_some(head)
    }

    /// Returns the time of the next attempt to start a transfer, even without an event: the end of
    /// a host's pause, or the time when the pace allows another transfer. `None` if no transfer may
    /// start in any case: a pause that has ended by then would leave no time to sleep.
    pub(super) fn wakes_at(&self, now: Instant, view: &View<'_>) -> Option<Instant> {
        let state = self.lock();
        self.allowed_head(&state, view)?;
        if let Some(at) = self.may_begin_at(now) {
            return Some(at);
        }
        state.queue.next_wakeup(clock::policy_time(now)).map(clock::instant)
    }

    /// A job that could not be begun, to be reported.
    pub(super) fn take_broken(&self) -> Option<Broken> {
        self.lock().broken.pop_front()
    }

    /// Gives a slot back.
    pub(super) fn release(&self, host: HostId) {
        self.lock().queue.release(host);
    }

    /// Returns true if no transfer of the stages up to this one is left, and none will come.
    pub(super) fn is_exhausted(&self, stage: usize) -> bool {
        let state = self.lock();
        state.source.is_none()
            && state.outstanding[..=stage].iter().all(|&outstanding| outstanding == 0)
            && state.tails[..stage].iter().all(Option::is_none)
    }
}

impl State {
    fn job(&mut self, stage: usize, url: String, order: Arc<[u64]>, destination: Destination, slot: u64) -> Job {
        let number = self.numbers[stage];
        self.numbers[stage] += 1;
        self.outstanding[stage] += 1;
        Job { url, number, order, stage, destination, slot }
    }

    fn started(&mut self, Waiting { job, target, value }: Waiting) -> Started {
        let Job { stage, slot, .. } = job;
        self.waiting[stage] -= 1;
        if self.waiting[stage] < APPETITE / 2 {
            self.full[stage] = false;
        }
        let (order, destination) = (Arc::clone(&job.order), job.destination.clone());
        Started { key: self.running.insert(job), stage, slot, order, destination, target, value }
    }

    /// Removes a finished job, and returns it.
    pub(super) fn ended(&mut self, key: usize) -> Job {
        self.running.remove(key)
    }

    /// Notes that a job has been reported, and that its slot in the window is closed.
    pub(super) fn settled(&mut self, stage: usize) {
        self.outstanding[stage] -= 1;
    }

    pub(super) fn set_tail(&mut self, stage: usize, tail: Tail) {
        self.tails[stage] = Some(tail);
    }

    pub(super) fn queue(&mut self) -> &mut Queue<Box<Waiting>> {
        &mut self.queue
    }

    /// Returns the origin of the first URL. It was given by hand, so it may receive secrets given
    /// for a later stage.
    pub(super) fn first_origin(&self) -> Option<&Origin> {
        self.first_origin.as_ref()
    }

    /// A transfer waits for its paused host: the others go on, so there is a slot more for them (its host's own stays
    /// taken). `false` when too many wait already.
    pub(super) fn lend(&mut self) -> bool {
        let may = self.lent < self.lendable;
        if may {
            self.lent += 1;
            let total = self.queue.caps().total;
            self.queue.set_total(total + 1);
        }
        may
    }

    /// Takes a lent slot back, because its transfer continues.
    pub(super) fn take_back(&mut self) {
        self.lent -= 1;
        let total = self.queue.caps().total;
        self.queue.set_total(total.saturating_sub(1));
    }

    pub(super) fn backlog(&self) -> usize {
        self.queue.len()
    }

    /// Takes no more from the input.
    pub(super) fn stop(&mut self) {
        self.source = None;
    }
}

/// The URL that a value makes in a stage, its target and the destination of its page; `None` if the page need not be fetched.
fn made_by(stage: &Stage, value: &[u8]) -> Result<Option<(String, Target, Destination)>> {
    let template = stage.template.as_ref().expect("every stage but the first has a template");
    let url = template
        .expand(value)
        .map_err(|error| Error::with_source(ErrorKind::Url, "the value cannot be made a URL", error))?;
    let url = match &stage.by_value {
        Some(by_value) => by_value.url(value, url),
        None => url,
    };
    let target = Target::parse_with(&url, Scheme::Http, stage.options.path_as_is);
    let target = target.map_err(|error| url_error(&url, error))?;
    let destination = match &stage.by_value {
        Some(by_value) => by_value.destination(value, &target)?,
        None => Some(Destination::Output),
    };
    Ok(destination.map(|destination| (url, target, destination)))
}

fn url_error(url: &str, error: haul_policy::target::TargetError) -> Error {
    let kind = if error.exit_code() == 1 { ErrorKind::UnsupportedScheme } else { ErrorKind::Url };
    Error::with_source(kind, "the URL cannot be used", error).with_url(without_userinfo(url).escape_debug().to_string())
}

/// Stands in for the target of a job that has none.
fn nowhere() -> Target {
    Target::parse("http://invalid/").expect("a URL")
}
