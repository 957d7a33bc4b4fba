use std::io::Write;
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, mpsc};

use haul_policy::queue::{HostId, JobQueue, QueueCaps};

use super::*;
use crate::body::delivery::BodyDelivery;
use crate::drive::connection::h2::SharedRecvMemory;
use crate::net::connecting::OpenedConnection;
use crate::net::dns::{DnsCacheOptions, Resolver};
use crate::net::pool::ConnectionKey;
use crate::net::proxy::{Proxy, ProxyOptions};
use crate::net::stream::ConnectionStream;
use crate::sink::descriptor_writer::OutputReadiness;
use crate::sink::memory::MemorySink;
use crate::{RequestOptions, Target};

/// A scheduler without transfers that fails or panics in its first call.
#[derive(Default)]
struct FailingScheduler {
    panics: bool,
    ends: Mutex<Vec<String>>,
    full: bool,
    flushes: AtomicUsize,
    over_after: usize,
    inbox: Mutex<Option<Arc<WorkerInbox>>>,
    pause: Option<Mutex<SchedulerPause>>,
    extra_slots: AtomicUsize,
}

/// The state of a scheduler that has nothing to do before a given time.
#[derive(Default)]
struct SchedulerPause {
    until: Option<Instant>,
    is_slept_through: bool,
}

impl Scheduler for FailingScheduler {
    fn next(&self, _: usize, now: Instant) -> Option<Box<Transfer>> {
        assert!(!self.panics, "on purpose");
        if let Some(pause) = &self.pause {
            let mut pause = pause.lock().unwrap();
            match pause.until {
                Some(until) if until <= now => self.abort(Error::new(ErrorKind::Interrupted, "asked again")),
                _ => {
                    let until = now + Duration::from_millis(1);
                    pause.until = Some(until);
                    while Instant::now() <= until {}
                }
            }
        }
        None
    }

    fn next_for_slot(&self, _: usize, _: HostId, _: Instant) -> FreeHostSlotUse {
        FreeHostSlotUse::Nothing
    }

    fn on_finished(&self, _: usize, _: Box<Transfer>, _: Result<()>) {}

    fn add_extra_slot(&self) -> bool {
        self.extra_slots.fetch_add(1, Ordering::SeqCst);
        true
    }

    fn remove_extra_slot(&self) {
        self.extra_slots.fetch_sub(1, Ordering::SeqCst);
    }

    fn on_out_of_descriptors(&self) {}

    fn flush(&self, _: usize) -> Result<OutputReadiness> {
        let flushes = self.flushes.fetch_add(1, Ordering::SeqCst) + 1;
        if !self.full {
            return Err(Error::new(ErrorKind::Write, "gone"));
        }
        if flushes < self.over_after
            && let Some(inbox) = &*self.inbox.lock().unwrap()
        {
            inbox.send(WorkerMessage::CheckWork);
        }
        Ok(OutputReadiness::Full)
    }

    fn wants_flush(&self) -> bool {
        self.pause.is_none()
    }

    fn next_timeout(&self, now: Instant) -> Option<Instant> {
        if let Some(pause) = &self.pause {
            let mut pause = pause.lock().unwrap();
            if let Some(until) = pause.until.filter(|until| *until > now) {
                return Some(until);
            }
            pause.is_slept_through = true;
        }
        // Long enough for a worker that polls to show it; it is over then.
        Some(now + Duration::from_millis(200))
    }

    fn is_run_over(&self) -> bool {
        !self.ends.lock().unwrap().is_empty()
    }

    fn abort(&self, error: Error) {
        self.ends.lock().unwrap().push(error.to_string());
    }

    fn on_worker_started(&self, inbox: &Arc<WorkerInbox>) {
        *self.inbox.lock().unwrap() = Some(Arc::clone(inbox));
    }
}

/// Makes a worker with an idle connection. Returns the worker, the slot and the peer's socket.
fn with_idle_slot() -> (Worker, usize, TcpStream) {
    let mut worker = worker(&Arc::new(FailingScheduler::default()));
    let (slot, peer) = idle_slot(&mut worker);
    (worker, slot, peer)
}

fn idle_slot(worker: &mut Worker) -> (usize, TcpStream) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let socket = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let key = ConnectionKey::new(&target(), &RequestOptions::default());
    let stream = ConnectionStream::plain(socket.try_into().unwrap(), None);
    let connection = HttpConnection::new(
        OpenedConnection::Stream(Box::new(stream)),
        Arc::new(key),
        1,
        &SharedRecvMemory::default(),
        None,
    );
    let slot = worker.add_open(connection, 1).unwrap_or_else(|_| panic!("it can be watched"));
    worker.mark_idle_if_unused(slot);
    (slot, listener.accept().unwrap().0)
}

/// Returns a target on which nothing listens, so that only existing slots can be used.
fn target() -> Target {
    Target::parse("http://127.0.0.1:9/").unwrap()
}

/// Returns true if a request with this method is placed on the slot.
fn is_placed(worker: &mut Worker, slot: usize, method: &str) -> bool {
    let options = RequestOptions { method: method.into(), ..RequestOptions::default() };
    let body = BodyDelivery::new(Box::new(MemorySink::default()));
    worker.assign_connection(Transfer::new(target(), Arc::new(options), body, Instant::now(), 0), Some(slot));
    // One that is opened instead may have the same number.
    worker.slots.get(slot).is_some_and(
        |slot| matches!(&slot.state, ConnectionState::Open(connection) if connection.outstanding_count() > 0),
    )
}

/// Waits until the slot's socket has input, or the peer has closed the connection. The worker does
/// not notice either event, since it handles events only when it sleeps.
fn wait_for_news(worker: &Worker, slot: usize) {
    let ConnectionState::Open(connection) = &worker.slots[slot].state else { panic!("it is open") };
    while connection.is_open_without_input() {
        std::thread::yield_now();
    }
}

#[test]
fn unrepeatable_request_avoids_closed_connections() {
    for (method, leaves, is_sent) in
        [("POST", true, false), ("POST", false, true), ("GET", true, true), ("PUT", true, true)]
    {
        let (mut worker, slot, peer) = with_idle_slot();
        if leaves {
            peer.shutdown(Shutdown::Write).unwrap();
            wait_for_news(&worker, slot);
        }
        assert_eq!(is_placed(&mut worker, slot, method), is_sent, "{method}, {leaves}");
    }
}

#[test]
fn unrepeatable_request_avoids_peers_that_close_after_responses() {
    let (mut worker, first, mut peer) = with_idle_slot();
    assert!(is_placed(&mut worker, first, "POST"));
    peer.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").unwrap();
    wait_for_news(&worker, first);
    worker.on_socket_event(first, false);
    peer.shutdown(Shutdown::Write).unwrap();
    wait_for_news(&worker, first);
    assert!(!is_placed(&mut worker, first, "POST"));
    let (second, _peer) = idle_slot(&mut worker);
    assert!(!is_placed(&mut worker, second, "POST"), "it may be about to leave");
    assert!(is_placed(&mut worker, second, "GET"));
}

const WORKERS: WorkerOptions = WorkerOptions { threads: 2, depth: 1, per_host: 1, connects_at_once: false };

fn worker(scheduler: &Arc<FailingScheduler>) -> Worker {
    let scheduler: Arc<dyn Scheduler> = scheduler.clone();
    Worker::new(1, &Client::new(), &scheduler, WORKERS).unwrap()
}

#[test]
fn failed_worker_ends_the_run() {
    let scheduler = Arc::new(FailingScheduler::default());
    assert!(worker(&scheduler).run().is_err());
    assert_eq!(*scheduler.ends.lock().unwrap(), ["gone"]);
}

#[test]
fn panicking_worker_ends_the_run() {
    let scheduler = Arc::new(FailingScheduler { panics: true, ..FailingScheduler::default() });
    let mut worker = worker(&scheduler);
    assert!(std::thread::spawn(move || worker.run().is_ok()).join().is_err());
    assert_eq!(*scheduler.ends.lock().unwrap(), ["a worker panicked"]);
}

#[test]
fn worker_does_not_busy_poll_a_full_output() {
    let scheduler = Arc::new(FailingScheduler { full: true, over_after: 3, ..FailingScheduler::default() });
    let ending = Arc::clone(&scheduler);
    let mut worker = worker(&scheduler);
    let inbox = scheduler.inbox.lock().unwrap().clone().unwrap();
    let running = std::thread::spawn(move || worker.run().is_ok());
    while scheduler.flushes.load(Ordering::SeqCst) < 3 {
        std::thread::yield_now();
    }
    std::thread::sleep(Duration::from_millis(100));
    // The third was the last that a message asked for; a timer may have added one or two, a poll
    // adds a hundred.
    let flushes = scheduler.flushes.load(Ordering::SeqCst);
    assert!(flushes < 20, "{flushes}");
    ending.abort(Error::new(ErrorKind::Interrupted, "enough"));
    inbox.send(WorkerMessage::CheckWork);
    assert!(running.join().unwrap());
}

#[test]
fn worker_handles_timeout_that_passed_before_sleep() {
    let scheduler = Arc::new(FailingScheduler { pause: Some(Mutex::default()), ..FailingScheduler::default() });
    assert!(worker(&scheduler).run().is_ok());
    assert_eq!(*scheduler.ends.lock().unwrap(), ["asked again"]);
    assert!(!scheduler.pause.as_ref().unwrap().lock().unwrap().is_slept_through);
}

/// Returns a worker whose name lookups get no answer until the returned sender is dropped, and the
/// worker's scheduler.
fn worker_without_names() -> (Worker, Arc<FailingScheduler>, mpsc::Sender<()>) {
    let (open, gate) = mpsc::channel::<()>();
    let gate = Mutex::new(gate);
    let resolver = Resolver::with_lookup(DnsCacheOptions::default(), move |_| {
        let _ = gate.lock().unwrap().recv();
        Err(io::Error::other("no answer"))
    });
    let scheduler = Arc::new(FailingScheduler::default());
    let shared: Arc<dyn Scheduler> = scheduler.clone();
    (Worker::new(1, &Client::with_resolver(resolver), &shared, WORKERS).unwrap(), scheduler, open)
}

/// Places a transfer that waits for the lookup of its name.
fn place_waiting(worker: &mut Worker, tag: u64, max_time: Duration) {
    let mut queue = JobQueue::new(QueueCaps { total: 1, per_host: 1 });
    let options = RequestOptions { max_time: Some(max_time), ..RequestOptions::default() };
    let body = BodyDelivery::new(Box::new(MemorySink::default()));
    let target = Target::parse("http://dead.test/").unwrap();
    let mut transfer = Transfer::new(target, Arc::new(options), body, worker.now, tag);
    transfer.scheduling.host_slot = Some(queue.push(&(), 0, ()));
    worker.assign_connection(transfer, None);
}

const LONG: Duration = Duration::from_secs(600);

#[test]
fn late_connection_attempts_add_extra_slots() {
    let (mut worker, scheduler, _open) = worker_without_names();
    let extra_slots = || scheduler.extra_slots.load(Ordering::SeqCst);
    (0..3).for_each(|tag| place_waiting(&mut worker, tag, LONG));
    worker.add_extra_slots_for_unanswered();
    assert_eq!(extra_slots(), 0);
    worker.now += Duration::from_secs(1);
    place_waiting(&mut worker, 3, LONG);
    worker.add_extra_slots_for_unanswered();
    assert_eq!(extra_slots(), 3);
    worker.cancel(0);
    worker.cancel(3);
    assert_eq!(extra_slots(), 2);
    // Time limits end the others. A round of the event loop sets their timers before it sleeps.
    worker.slots.set_timers();
    worker.now += LONG;
    worker.handle_timers();
    assert_eq!((extra_slots(), worker.slots.tokens().len()), (0, 0));
    worker.now += LONG;
    worker.add_extra_slots_for_unanswered();
    assert_eq!((extra_slots(), worker.attempts.next_timeout()), (0, None));
}

#[test]
fn proxied_connection_attempts_add_no_extra_slots() {
    let (mut worker, scheduler, _open) = worker_without_names();
    let proxy = Some(Proxy::parse("http://proxy.test:3128").unwrap());
    let proxy = ProxyOptions { proxy, ..ProxyOptions::default() };
    let options = RequestOptions { proxy: Some(proxy), ..RequestOptions::default() };
    let body = BodyDelivery::new(Box::new(MemorySink::default()));
    let mut transfer = Transfer::new(target(), Arc::new(options), body, worker.now, 0);
    transfer.scheduling.host_slot = Some(JobQueue::new(QueueCaps { total: 1, per_host: 1 }).push(&(), 0, ()));
    worker.assign_connection(transfer, None);
    worker.now += Duration::from_secs(1);
    worker.add_extra_slots_for_unanswered();
    assert_eq!((scheduler.extra_slots.load(Ordering::SeqCst), worker.slots.tokens().len()), (0, 1));
}

#[test]
fn unanswered_connection_attempts_are_limited() {
    let (mut worker, _scheduler, _open) = worker_without_names();
    for tag in 0..300 {
        assert_eq!(worker.attempts.has_room(), tag < 256);
        place_waiting(&mut worker, tag, LONG);
    }
    worker.now += Duration::from_secs(1);
    worker.add_extra_slots_for_unanswered();
    assert!(worker.attempts.has_room());
}

#[test]
fn slot_timers_agree_with_timeouts_of_slots() {
    let (mut worker, _scheduler, _open) = worker_without_names();
    let mut rng = testkit::rng::Rng::new(7);
    for step in 0..600 {
        match rng.below(4) {
            0 | 1 => place_waiting(&mut worker, step, Duration::from_millis(1 + rng.below(500))),
            2 => worker.cancel(rng.below(step + 1)),
            _ => worker.now += Duration::from_millis(rng.below(40)),
        }
        let timeouts = |worker: &Worker| -> Vec<(Instant, usize)> {
            let slots = worker.slots.tokens().into_iter();
            slots.filter_map(|token| Some((worker.slots[token].next_timeout()?, token))).collect()
        };
        let all = timeouts(&worker);
        assert_eq!(worker.slots.next_timeout(), all.iter().map(|(at, _)| *at).min());
        let mut due = worker.slots.take_due(worker.now);
        let mut expected: Vec<_> = all.iter().filter(|(at, _)| *at <= worker.now).map(|(_, token)| *token).collect();
        due.sort_unstable();
        expected.sort_unstable();
        assert_eq!(due, expected);
        due.into_iter().for_each(|token| worker.end_overdue(token));
        worker.assign_all_startable();
    }
    assert!(worker.slots.tokens().len() > 3);
}
