//! One run: what its workers share. It gives them transfers, takes back what became of them, and ends it all.

use std::collections::BTreeMap;
use std::os::fd::{AsFd, AsRawFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Instant;

use haul_policy::queue::{Caps, HostId};
use haul_policy::redirect::Secrets;
use haul_policy::secrets::may_send;
use haul_policy::target::Target;

use super::dispatch::{Broken, Destination, Dispatch, Job, Started, View};
use super::outlet::{Feed, Print, Sift};
use super::sink::{KeptPage, WindowSink};
use super::source::{Bell, Items, ReadAhead, Ready, Source};
use super::window::{Order, Outlet, Window};
use super::{FleetOptions, Report, Stage, Summary};
use crate::body::memory::DecoderMemory;
use crate::body::path::BodyPath;
use crate::buffer::Lease;
use crate::clock;
use crate::drive::inbox::{Inbox, Message};
use crate::drive::worker::{Another, Supply};
use crate::interrupt::{Interrupt, TICK};
use crate::pipeline::Extractor;
use crate::request::RequestOptions;
use crate::sink::Sink;
use crate::sink::file::{Devices, FileSink};
use crate::sink::naming::Clobber;
use crate::sink::output::{Output, Room};
use crate::sync::IgnorePoison;
use crate::transfer::{Outcome, Transfer};
use crate::{Error, ErrorKind, Result};

/// The number of extractors kept for later bodies; each has its own scratch space.
const SPARE_EXTRACTORS: usize = 64;

pub(super) struct Run {
    stages: Vec<Stage>,
    /// The options of each stage without its secrets, for targets that were not given by hand.
    bare: Vec<Arc<RequestOptions>>,
    windows: Vec<Arc<Window>>,
    decoders: Arc<DecoderMemory>,
    dispatch: Arc<Dispatch>,
    report: Box<dyn Report>,
    output_fd: i32,
    fail_early: bool,
    interrupt: Option<Interrupt>,
    heavy: bool,
    colleagues: Mutex<Vec<Colleague>>,
    extractors: Vec<Mutex<Vec<Extractor>>>,
    /// Devices that transfers write to, such as /dev/null: opened once.
    devices: Arc<Devices>,
    tally: Mutex<Tally>,
    over: AtomicBool,
}

/// A worker, as the others see it.
struct Colleague {
    inbox: Arc<Inbox>,
    running: usize,
}

#[derive(Default)]
struct Tally {
    succeeded: u64,
    causes: BTreeMap<u8, u64>,
    first_failure: Option<(Arc<[u64]>, u8)>,
    /// The error that ended the run as a whole.
    fatal: Option<Error>,
    /// Stages whose end has been dealt with.
    ended: usize,
}

impl Run {
    pub(super) fn new(
        stages: Vec<Stage>,
        options: &FleetOptions,
        caps: Caps,
        items: Items,
        output: Output,
        report: Box<dyn Report>,
    ) -> Result<Arc<Self>> {
        let bell = Bell::default();
        let source: Box<dyn Source> = if options.slow_input {
            let started = ReadAhead::start(items, Arc::clone(&bell));
            Box::new(started.map_err(|error| Error::with_source(ErrorKind::Read, "no thread for the input", error))?)
        } else {
            Box::new(Ready(items))
        };
        let dispatch = Arc::new(Dispatch::new(caps, options, stages.len(), source));
        let output_fd = output.as_fd().as_raw_fd();
        let decoders = Arc::new(DecoderMemory::new(options.max_memory / 2));
        let windows = windows(&stages, options, &dispatch, output, &decoders);
        let run = Arc::new(Self {
            heavy: stages.iter().any(|stage| stage.extract.is_some() || stage.options.decode),
            bare: stages.iter().map(|stage| without_secrets(&stage.options)).collect(),
            extractors: stages.iter().map(|_| Mutex::default()).collect(),
            stages,
            windows,
            decoders,
            dispatch,
            report,
            output_fd,
            fail_early: options.fail_early,
            interrupt: options.interrupt.clone(),
            colleagues: Mutex::default(),
            devices: Arc::default(),
            tally: Mutex::default(),
            over: AtomicBool::new(false),
        });
        let weak = Arc::downgrade(&run);
        *bell.lock().ignore_poison() = Some(Box::new(move || {
            if let Some(run) = weak.upgrade() {
                run.rouse();
            }
        }));
        Ok(run)
    }

    /// The end of it all, when the workers are gone.
    pub(super) fn conclude(&self) -> Result<Summary> {
        let fatal = self.tally().fatal.take();
        if let Some(error) = fatal {
            if let Some(window) = self.windows.last().filter(|_| error.is_interrupted()) {
                window.rest()?;
            }
            return Err(error);
        }
        if let Some(window) = self.windows.last() {
            window.rest()?;
        }
        let tally = self.tally();
        Ok(Summary {
            succeeded: tally.succeeded,
            failed: tally.causes.values().sum(),
            exit_code: tally.first_failure.as_ref().map_or(0, |(_, code)| *code),
            causes: tally.causes.iter().map(|(&code, &times)| (code, times)).collect(),
        })
    }

    fn view(&self) -> View<'_> {
        View { windows: &self.windows, stages: &self.stages }
    }

    fn tally(&self) -> MutexGuard<'_, Tally> {
        self.tally.lock().ignore_poison()
    }

    /// Makes all workers look for work, including those that are awake: one may have looked already
    /// and be about to sleep.
    fn rouse(&self) {
        for colleague in self.colleagues().iter() {
            colleague.inbox.send(Message::Look);
        }
    }

    fn colleagues(&self) -> MutexGuard<'_, Vec<Colleague>> {
        self.colleagues.lock().ignore_poison()
    }

    fn colleague(&self, worker: usize, change: impl FnOnce(&mut Colleague)) {
        if let Some(colleague) = self.colleagues().get_mut(worker) {
            change(colleague);
        }
    }

    /// Returns true if a sleeping worker has fewer transfers than this one, so that it should get
    /// the next.
    fn has_hungry_colleague(&self, worker: usize) -> bool {
        let colleagues = self.colleagues();
        let mine = colleagues.get(worker).map_or(0, |colleague| colleague.running);
        colleagues.iter().any(|other| other.running < mine && other.inbox.is_asleep())
    }

    /// Ends the run: nothing more is begun.
    fn stop(&self, fatal: Option<Error>) {
        if let Some(error) = fatal {
            self.tally().fatal.get_or_insert(error);
        }
        self.over.store(true, Ordering::SeqCst);
        self.rouse();
    }

    /// Stops the run if `outcome` is an error, and returns the value otherwise.
    fn guard<T>(&self, outcome: Result<T>) -> Option<T> {
        outcome.map_err(|error| self.stop(Some(error))).ok()
    }

    fn transfer(&self, started: Started, host: HostId, now: Instant) -> Box<Transfer> {
        let Started { key, stage: number, slot, order, destination, target, value } = started;
        let stage = &self.stages[number];
        let options = if self.is_trusted(number, &target) { &stage.options } else { &self.bare[number] };
        let filled = match (&stage.by_value, value) {
            (Some(by_value), Some(value)) => by_value.options(&value, options),
            _ => None,
        };
        let options = filled.map_or_else(|| Arc::clone(options), Arc::new);
        let feeds = number + 1 < self.stages.len();
        let in_window = || WindowSink::new(Arc::clone(&self.windows[number]), slot, order);
        let sink: Box<dyn Sink> = match destination {
            Destination::Output => Box::new(in_window()),
            Destination::File { path, options } => {
                let file = FileSink::with(path, options).sharing(&self.devices);
                if feeds { Box::new(KeptPage::new(in_window(), file)) } else { Box::new(file) }
            }
        };
        let mut path = BodyPath::new(sink).sharing(&self.decoders);
        if let Some(pattern) = &stage.extract {
            let spare = self.spare_extractors(number).pop();
            let extractor = spare.unwrap_or_else(|| Extractor::new(pattern.clone()));
            path = path.extracting(extractor, stage.searches);
        }
        let mut transfer = Transfer::new(target, options, path, now, key as u64);
        transfer.scheduling.host_slot = Some(host);
        transfer.scheduling.rank = self.dispatch.priority(number, slot) + 1;
        transfer
    }

    /// Returns true if a target's origin may receive the secrets of its stage. The user must have
    /// given the URL or its origin, as part of the first URL or of the stage's template. Pages
    /// choose all other URLs.
    fn is_trusted(&self, stage: usize, target: &Target) -> bool {
        let Some(template) = &self.stages[stage].template else { return true };
        let origin = target.origin();
        template.literal_origin().is_some_and(|literal| literal == origin)
            || self.dispatch.lock().first_origin() == Some(&origin)
    }

    fn spare_extractors(&self, stage: usize) -> MutexGuard<'_, Vec<Extractor>> {
        self.extractors[stage].lock().ignore_poison()
    }

    /// Counts a finished job, prints its report after its body, and closes its place in the window.
    fn settle(&self, job: &Job, outcome: &Outcome, told: Option<Vec<u8>>) {
        {
            let mut tally = self.tally();
            match &outcome.result {
                Ok(()) => tally.succeeded += 1,
                Err(error) => {
                    let code = error.exit_code();
                    *tally.causes.entry(code).or_default() += 1;
                    if tally.first_failure.as_ref().is_none_or(|(first, _)| job.order < *first) {
                        tally.first_failure = Some((Arc::clone(&job.order), code));
                    }
                }
            }
        }
        let window = &self.windows[job.stage];
        if let Some(more) = told {
            self.guard(window.bytes(job.slot, Lease::borrowed(&more)));
        }
        self.guard(window.finish(job.slot));
        self.dispatch.lock().settled(job.stage);
        if self.fail_early && outcome.result.is_err() {
            self.dispatch.lock().stop();
            self.stop(None);
        }
    }

    /// Reports jobs that could not be begun; whether there were any.
    fn settle_broken(&self) -> bool {
        let mut any = false;
        while let Some(Broken { job, target, error }) = self.dispatch.take_broken() {
            any = true;
            let outcome = Outcome::unsent(target, error, Instant::now());
            self.settle(&job, &outcome, self.report.finished(&job, &outcome));
        }
        any
    }

    /// Deals with the ends of stages that have nothing left to do.
    fn end_stages(&self) {
        loop {
            let stage = self.tally().ended;
            if stage + 1 >= self.stages.len() {
                break;
            }
            if !self.dispatch.is_exhausted(stage) || !self.windows[stage].is_empty() {
                return;
            }
            {
                let mut tally = self.tally();
                if tally.ended != stage {
                    continue;
                }
                tally.ended += 1;
            }
            if let Some(Some(tail)) = self.guard(self.windows[stage].rest()) {
                self.dispatch.lock().set_tail(stage, tail);
                self.rouse();
                return;
            }
        }
        let last = self.stages.len() - 1;
        if self.dispatch.is_exhausted(last) && self.windows[last].is_empty() {
            self.stop(None);
        }
    }
}

/// Secrets are dropped, and a Host of the user's own, which names a host that the user knew; everything else stays.
fn without_secrets(options: &Arc<RequestOptions>) -> Arc<RequestOptions> {
    let mut bare = RequestOptions::clone(options);
    bare.authorization = None;
    bare.auth = bare.auth.without_first();
    bare.cookie = None;
    bare.tls.identity = None;
    bare.tls.passphrase = None;
    bare.fields.retain(|(name, _)| may_send(name, Secrets::Drop));
    Arc::new(bare)
}

/// The windows of all stages, made from the last to the first, for each feeds the next.
fn windows(
    stages: &[Stage],
    options: &FleetOptions,
    dispatch: &Arc<Dispatch>,
    output: Output,
    decoders: &Arc<DecoderMemory>,
) -> Vec<Arc<Window>> {
    let share = options.max_memory / stages.len() as u64;
    let mut windows: Vec<Arc<Window>> = Vec::new();
    let mut output = Some(output);
    // Where a later stage sorts, or order does not matter, the stages before it need keep none.
    let mut order_matters = true;
    for (number, stage) in stages.iter().enumerate().rev() {
        let outlet: Box<dyn Outlet> = match (windows.last(), output.take()) {
            (Some(window), _) => Box::new(Feed {
                dispatch: Arc::clone(dispatch),
                stage: stages[number + 1].clone(),
                window: Arc::clone(window),
                number: number + 1,
            }),
            (None, Some(output)) => Box::new(Print::new(output)),
            (None, None) => unreachable!("the output is taken once, by the last stage"),
        };
        let feeds = !windows.is_empty();
        let sifts = stage.extract.is_some() && (feeds || stage.unique || stage.sort);
        let outlet = if sifts {
            Box::new(Sift::new(feeds || stage.unique, stage.sort, share / 2, &options.temporary, outlet))
        } else {
            outlet
        };
        order_matters &= !(sifts && stage.sort);
        let order = match (order_matters, options.unordered) {
            (false, _) => Order::Free,
            (true, true) if feeds => Order::Free,
            (true, true) => Order::Whole,
            (true, false) => Order::Input,
        };
        let memory = if sifts { share / 2 } else { share };
        let window = Window::new(order, usize::try_from(memory).unwrap_or(usize::MAX), outlet);
        windows.push(Arc::new(window.counting(decoders, stages.len())));
    }
    windows.reverse();
    windows
}

impl Supply for Run {
    fn next(&self, worker: usize, now: Instant) -> Option<Box<Transfer>> {
        if self.over.load(Ordering::SeqCst) {
            return None;
        }
        // Behind a run of URLs that cannot be begun there may be others.
        loop {
            let found = self.guard(self.dispatch.next(now, &self.view())).flatten();
            let more = self.settle_broken();
            match found {
                Some((host, started)) => {
                    self.colleague(worker, |colleague| colleague.running += 1);
                    return Some(self.transfer(started, host, now));
                }
                None if more && !self.over.load(Ordering::SeqCst) => {}
                None => return None,
            }
        }
    }

    fn another(&self, worker: usize, slot: HostId, now: Instant) -> Another {
        if self.over.load(Ordering::SeqCst) {
            self.dispatch.release(slot);
            return Another::Nothing;
        }
        if self.has_hungry_colleague(worker) && self.backlog() > 0 {
            return Another::GiveAway;
        }
        let found = self.guard(self.dispatch.next_for(slot, now, &self.view())).flatten();
        self.settle_broken();
        match found {
            Some(started) => {
                self.colleague(worker, |colleague| colleague.running += 1);
                Another::Transfer(self.transfer(started, slot, now))
            }
            None => Another::Nothing,
        }
    }

    fn delayed(&self, transfer: &Transfer) -> bool {
        let (Some(pause), Some(slot)) = (transfer.host_pause(), transfer.scheduling.host_slot) else { return false };
        let mut state = self.dispatch.lock();
        state.queue().pause(slot, clock::policy_time(clock::after(Instant::now(), pause)));
        state.lend()
    }

    fn resumed(&self) {
        self.dispatch.lock().take_back();
    }

    fn gave_away(&self, slot: HostId) {
        self.dispatch.release(slot);
        self.rouse();
    }

    fn shares(&self, slot: HostId) {
        self.dispatch.lock().queue().set_host_cap(slot, usize::MAX);
        self.rouse();
    }

    fn is_heavy(&self) -> bool {
        self.heavy
    }

    fn finished(&self, worker: usize, transfer: Box<Transfer>, result: Result<()>) {
        self.colleague(worker, |colleague| colleague.running -= 1);
        let pause = transfer.host_pause();
        let slot = transfer.scheduling.host_slot;
        let (mut outcome, mut path) = transfer.into_outcome(result);
        // Released before its slot is finished, which wakes transfers that wait for memory.
        path.release();
        let mut job = {
            let mut state = self.dispatch.lock();
            if let (Some(pause), Some(slot)) = (pause, slot) {
                state.queue().pause(slot, clock::policy_time(clock::after(Instant::now(), pause)));
            }
            state.ended(usize::try_from(outcome.tag).unwrap_or(usize::MAX))
        };
        if let (Destination::File { path: given, .. }, Some(named)) = (&mut job.destination, path.sink().file_name())
            && given.as_os_str() != named.as_os_str()
        {
            named.clone_into(given);
        }
        let is_passed_over = outcome.result.as_ref().is_err_and(|error| is_passed_over(&job, error));
        if is_passed_over {
            outcome.result = Ok(());
        }
        // Where one body cannot be written no other can.
        let to_output = job.destination == Destination::Output;
        if to_output && matches!(&outcome.result, Err(error) if error.kind() == ErrorKind::Write) {
            self.stop(outcome.result.err());
            return;
        }
        if let Some(extractor) = path.into_extractor() {
            let mut spare = self.spare_extractors(job.stage);
            if spare.len() < SPARE_EXTRACTORS {
                spare.push(extractor);
            }
        }
        // The file is another's: there is nothing to tell of it.
        let told = (!is_passed_over).then(|| self.report.finished(&job, &outcome)).flatten();
        self.settle(&job, &outcome, told);
    }

    fn fewer(&self) {
        let mut state = self.dispatch.lock();
        let running = state.queue().running();
        state.queue().set_total(running.saturating_sub(1).max(1));
    }

    fn flush(&self, worker: usize) -> Result<Room> {
        let mut room = Room::Free;
        for window in &self.windows {
            if window.wants_flush() {
                let full_at = (!window.has_budget()).then(|| window.head());
                room = self.guard(window.flush()).unwrap_or(Room::Free);
                // Where all that had begun is complete no transfer is woken, and what may begin now waits for a worker that looks.
                if full_at.is_some_and(|head| window.has_budget() || window.head() != head) {
                    self.rouse();
                }
            } else {
                room = Room::Free;
            }
        }
        if room == Room::Full
            && worker != 0
            && let Some(first) = self.colleagues().first()
        {
            first.inbox.send(Message::WatchOutput);
        }
        Ok(room)
    }

    fn wants_flush(&self) -> bool {
        self.windows.iter().any(|window| window.wants_flush())
    }

    fn output(&self) -> Option<i32> {
        Some(self.output_fd)
    }

    fn wakes_at(&self, now: Instant) -> Option<Instant> {
        let wakes_at = self.dispatch.wakes_at(now, &self.view());
        let asks_at = self.interrupt.as_ref().map(|_| now + TICK);
        [wakes_at, asks_at].into_iter().flatten().min()
    }

    fn backlog(&self) -> usize {
        self.dispatch.lock().backlog()
    }

    fn is_over(&self) -> bool {
        if !self.over.load(Ordering::SeqCst) {
            if self.interrupt.as_ref().is_some_and(Interrupt::wants_to_stop) {
                self.stop(Some(Error::new(ErrorKind::Interrupted, "it was interrupted")));
            } else {
                self.end_stages();
            }
        }
        self.over.load(Ordering::SeqCst)
    }

    fn end(&self, error: Error) {
        self.stop(Some(error));
    }

    fn joined(&self, inbox: &Arc<Inbox>) {
        self.colleagues().push(Colleague { inbox: Arc::clone(inbox), running: 0 });
    }
}

/// Returns true if the error only reports an existing file, and the options say to skip such files.
fn is_passed_over(job: &Job, error: &Error) -> bool {
    matches!(&job.destination, Destination::File { options, .. } if options.clobber == Clobber::Skip)
        && error.io_source().is_some_and(|source| source.kind() == std::io::ErrorKind::AlreadyExists)
}
