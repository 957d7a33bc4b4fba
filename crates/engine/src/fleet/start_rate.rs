//! The rates at which transfers start: for all hosts together (curl's `--rate`), and for each host.

use std::sync::Arc;
use std::time::{Duration, Instant};

use haul_policy::byte_and_transfer_rates::{HostSchedules, StartSchedule};
use haul_policy::queue::{HostId, JobQueue};
use haul_policy::target::Origin;

use crate::Result;
use crate::fork::{ForkSafeLock, ForkSafeWriteGuard};
use crate::interrupt_callback::{InterruptCallback, sleep_until};
use crate::request::TotalRateLimit;
use crate::time_conversions;

/// A maximum rate at which transfers start. Clones share the limit, so that it can apply to several
/// fleets (parallel runs of transfers) together.
///
/// ```
/// use std::time::{Duration, Instant};
/// use haul::fleet::StartRate;
///
/// let start_rate = StartRate::new(Duration::from_millis(250));
/// let now = Instant::now();
/// assert_eq!(start_rate.wait_until(now), None);
/// start_rate.record_start(now);
/// assert_eq!(start_rate.clone().wait_until(now), Some(now + Duration::from_millis(250)));
/// ```
#[derive(Clone, Debug)]
pub struct StartRate {
    interval: Duration,
    schedule: Arc<ForkSafeLock<StartSchedule>>,
}

impl StartRate {
    /// Makes a limit of one start per `interval`, on average. A transfer that starts at most 100 ms
    /// late does not delay later transfers. If it starts later than that, the next interval begins
    /// with its start. For example, let the interval be 500 ms, and let a transfer be allowed to
    /// start at 500 ms. If it starts at 550 ms, the next one may start at 1,000 ms; if it starts at
    /// 700 ms, at 1,200 ms.
    #[must_use]
    pub fn new(interval: Duration) -> Self {
        Self { interval, schedule: Arc::default() }
    }

    /// Returns the time when the next transfer may start. Returns `None` if a transfer may start
    /// now.
    #[must_use]
    pub fn wait_until(&self, now: Instant) -> Option<Instant> {
        self.lock().next_start().map(time_conversions::to_instant).filter(|next| *next > now)
    }

    /// Records that a transfer has started at the time `now`.
    pub fn record_start(&self, now: Instant) {
        self.lock().record_start(time_conversions::to_monotonic_time(now), self.interval);
    }

    /// Records the start of a transfer at the next time at which it may start, and blocks until
    /// then. Meanwhile, calls `interrupt` at intervals.
    ///
    /// # Errors
    /// [`ErrorKind::Interrupted`](crate::ErrorKind::Interrupted) if `interrupt` returns true.
    pub fn wait(&self, interrupt: Option<&InterruptCallback>) -> Result<()> {
        let mut schedule = self.lock();
        let now = Instant::now();
        let begins = schedule.next_start().map_or(now, |next| time_conversions::to_instant(next).max(now));
        schedule.record_start(time_conversions::to_monotonic_time(begins), self.interval);
        drop(schedule);
        sleep_until(begins, interrupt)
    }

    fn lock(&self) -> ForkSafeWriteGuard<'_, StartSchedule> {
        self.schedule.write()
    }
}

/// A maximum rate at which transfers to each host start. Clones share the limit, so that it can
/// apply to several fleets (parallel runs of transfers) together. It remembers the starts of at
/// most 65,536 hosts.
///
/// ```
/// use std::time::{Duration, Instant};
/// use haul::Target;
/// use haul::fleet::HostStartRate;
///
/// let (a, b) = (Target::parse("http://a/")?.origin(), Target::parse("http://b/")?.origin());
/// let rate = HostStartRate::new(Duration::from_millis(250));
/// let now = Instant::now();
/// rate.record_start(&a, now);
/// assert_eq!(rate.clone().wait_until(&a, now), Some(now + Duration::from_millis(250)));
/// assert_eq!(rate.wait_until(&b, now), None);
/// # Ok::<(), haul_policy::TargetError>(())
/// ```
#[derive(Clone, Debug)]
pub struct HostStartRate {
    hosts: Arc<ForkSafeLock<HostSchedules<Origin>>>,
}

impl HostStartRate {
    /// Makes a limit of one start for each host per `interval`, on average. A transfer that starts
    /// at most 100 ms after the time at which it was allowed does not delay later transfers to its
    /// host.
    #[must_use]
    pub fn new(interval: Duration) -> Self {
        Self { hosts: Arc::new(ForkSafeLock::new(HostSchedules::new(interval))) }
    }

    /// Returns the time when the next transfer to this host may start. Returns `None` if a transfer
    /// may start now.
    #[must_use]
    pub fn wait_until(&self, host: &Origin, now: Instant) -> Option<Instant> {
        self.lock().next_start(host).map(time_conversions::to_instant).filter(|next| *next > now)
    }

    /// Records that a transfer to this host has started. Returns the time when the next transfer to
    /// the host may start.
    pub fn record_start(&self, host: &Origin, now: Instant) -> Instant {
        time_conversions::to_instant(self.lock().record_start(host, time_conversions::to_monotonic_time(now)))
    }

    /// Records the start of a transfer to this host at the next time at which it may start, and
    /// blocks until then. Meanwhile, calls `interrupt` at intervals.
    ///
    /// # Errors
    /// [`ErrorKind::Interrupted`](crate::ErrorKind::Interrupted) if `interrupt` returns true.
    pub fn wait(&self, host: &Origin, interrupt: Option<&InterruptCallback>) -> Result<()> {
        let now = Instant::now();
        let mut hosts = self.lock();
        let begins = hosts.next_start(host).map_or(now, |next| time_conversions::to_instant(next).max(now));
        hosts.record_start(host, time_conversions::to_monotonic_time(begins));
        drop(hosts);
        sleep_until(begins, interrupt)
    }

    fn lock(&self) -> ForkSafeWriteGuard<'_, HostSchedules<Origin>> {
        self.hosts.write()
    }
}

/// The limits on the start of transfers: the start rate of all transfers, the start rate for each
/// host, and the total rate of bytes.
#[derive(Clone, Debug, Default)]
pub(crate) struct StartLimits {
    pub(crate) all: Option<StartRate>,
    pub(crate) each_host: Option<HostStartRate>,
    pub(crate) bytes: Option<TotalRateLimit>,
}

impl StartLimits {
    /// Returns the time when the limits that apply to all hosts together allow another start.
    /// Returns `None` if they allow a start now.
    pub(crate) fn earliest_start(&self, now: Instant) -> Option<Instant> {
        let all = self.all.as_ref().and_then(|all| all.wait_until(now));
        all.max(self.bytes.as_ref().and_then(|bytes| bytes.wait_until(now)))
    }

    /// Records a start of a transfer to `host`. Makes the queue delay the other jobs of this host
    /// until the host's start rate allows another start.
    pub(crate) fn on_start<T>(&self, queue: &mut JobQueue<T>, host: HostId, now: Instant) {
        if let Some(all) = &self.all {
            all.record_start(now);
        }
        if let (Some(each_host), Some(origin)) = (&self.each_host, queue.host_key(host)) {
            let next = each_host.record_start(origin, now);
            queue.hold_host_until(host, time_conversions::to_monotonic_time(next));
        }
    }

    /// Makes the queue delay the jobs of a host until the start rate of the host allows a start.
    /// Call this after a job for the host was added.
    pub(crate) fn on_push<T>(&self, queue: &mut JobQueue<T>, host: HostId, now: Instant) {
        if let (Some(each_host), Some(origin)) = (&self.each_host, queue.host_key(host))
            && let Some(next) = each_host.wait_until(origin, now)
        {
            queue.hold_host_until(host, time_conversions::to_monotonic_time(next));
        }
    }

    /// Returns the time from which the limits allow the retry of a transfer that still holds its
    /// host slot (the permit for one transfer to `host`). If the retry is allowed now, records the
    /// retry as a start and returns `None`.
    pub(crate) fn retry_wait<T>(&self, queue: &mut JobQueue<T>, host: HostId, now: Instant) -> Option<Instant> {
        let on_host =
            self.each_host.as_ref().zip(queue.host_key(host)).and_then(|(rate, host)| rate.wait_until(host, now));
        let wait = self.earliest_start(now).max(on_host);
        if wait.is_none() {
            self.on_start(queue, host, now);
        }
        wait
    }
}

#[cfg(test)]
mod tests {
    use haul_policy::target::Target;

    use super::*;
    use crate::ErrorKind;

    const HOUR: Duration = Duration::from_secs(3600);

    #[test]
    fn interrupt_ends_every_wait_for_a_start() {
        let origin = Target::parse("http://h/").unwrap().origin();
        let (rate, of_host, bytes) = (StartRate::new(HOUR), HostStartRate::new(HOUR), TotalRateLimit::new(1));
        let continues = InterruptCallback::new(|| false);
        rate.wait(Some(&continues)).unwrap();
        of_host.wait(&origin, Some(&continues)).unwrap();
        bytes.wait(Some(&continues)).unwrap();
        bytes.lock_receive_bucket().remove(1 << 20);
        let stops = InterruptCallback::new(|| true);
        let waits = [rate.wait(Some(&stops)), of_host.wait(&origin, Some(&stops)), bytes.wait(Some(&stops))];
        assert!(waits.iter().all(|wait| wait.as_ref().is_err_and(|error| error.kind() == ErrorKind::Interrupted)));
    }
}
