//! Helper threads: further workers that a busy worker starts.

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::Worker;
use crate::drive::idle_cores::IdleCoreDetector;
use crate::spawn_with_signals_blocked;

/// The minimum duration of one measurement of a worker's sleep, if the run's bodies are expensive
/// to process ([`Scheduler::is_heavy`](super::Scheduler::is_heavy)). At the end of a measurement,
/// the worker starts a helper thread if it slept for less than a sixteenth of the time and a core
/// is idle. Without an idle core, a helper gains nothing: with client and server on the same two
/// cores, a second thread costs up to 40 % more CPU time.
const BUSY_WINDOW: Duration = Duration::from_millis(30);
/// The minimum duration of a measurement of a worker's sleep, in a run whose bodies are cheap to
/// process. It is longer than [`BUSY_WINDOW`], so that fewer helper threads are started: with cheap
/// bodies, the kernel does most of the work, and a single thread is usually best.
const LIGHT_WINDOW: Duration = Duration::from_millis(100);

/// The helper threads of a worker, and the measurement that decides whether to start another one. A
/// helper thread runs a further worker.
pub(super) struct ExtraWorkers {
    threads: Vec<JoinHandle<()>>,
    idle_cores: IdleCoreDetector,
    /// The time that the worker has slept since the measurement began.
    slept: Duration,
    measured_since: Instant,
}

impl ExtraWorkers {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            threads: Vec::new(),
            idle_cores: IdleCoreDetector::default(),
            slept: Duration::ZERO,
            measured_since: now,
        }
    }

    /// Adds the duration of one sleep of the worker to the measurement.
    pub(super) fn add_sleep(&mut self, slept: Duration) {
        self.slept += slept;
    }

    /// Returns true if another helper thread is wanted: a measurement has just ended in which the
    /// worker slept little, and a core was idle. Returns false during a measurement, which lasts at
    /// least [`BUSY_WINDOW`] if bodies are expensive to process (`is_heavy`), and otherwise at
    /// least [`LIGHT_WINDOW`]. Each measurement begins when the previous one ends.
    fn is_helper_wanted(&mut self, now: Instant, is_heavy: bool) -> bool {
        let window = now.saturating_duration_since(self.measured_since);
        if window < if is_heavy { BUSY_WINDOW } else { LIGHT_WINDOW } {
            return false;
        }
        let is_busy = self.slept < window / 16;
        self.slept = Duration::ZERO;
        self.measured_since = now;
        let has_idle_core = self.idle_cores.is_one_idle(window);
        is_busy && has_idle_core
    }

    /// Waits until all helper threads have ended.
    pub(super) fn join(&mut self) {
        for thread in self.threads.drain(..) {
            // A worker that panicked has printed why, and ended the run.
            let _ = thread.join();
        }
    }
}

impl Worker {
    /// Starts a helper thread with another worker, if transfers wait, this worker has slept little
    /// lately, and the limit on threads allows it.
    pub(super) fn start_helper(&mut self) {
        if self.index != 0 || self.helpers.threads.len() + 1 >= self.options.threads {
            return;
        }
        if !self.helpers.is_helper_wanted(self.now, self.scheduler.is_heavy()) || self.scheduler.backlog() == 0 {
            return;
        }
        let index = self.helpers.threads.len() + 1;
        let (client, scheduler, options) = (self.client.clone(), Arc::clone(&self.scheduler), self.options);
        // Without another thread this one continues alone, and tries again.
        let started = spawn_with_signals_blocked::start(format!("haul-{index}"), move || {
            if let Ok(mut worker) = Worker::new(index, &client, &scheduler, options) {
                // Its error reaches the first worker through the scheduler.
                let _ = worker.run();
            }
        });
        if let Ok(thread) = started {
            self.helpers.threads.push(thread);
        }
    }
}
