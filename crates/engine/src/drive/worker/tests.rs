use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use haul_policy::queue::HostId;

use super::*;

/// A supply without transfers that fails as told.
#[derive(Default)]
struct Faulty {
    panics: bool,
    ends: Mutex<Vec<String>>,
    full: bool,
    flushes: AtomicUsize,
    over_after: usize,
    inbox: Mutex<Option<Arc<Inbox>>>,
    pause: Option<Mutex<Pause>>,
}

/// Nothing is to be had before a moment that comes while the worker is busy.
#[derive(Default)]
struct Pause {
    until: Option<Instant>,
    is_slept_through: bool,
}

impl Supply for Faulty {
    fn next(&self, _: usize, now: Instant) -> Option<Box<Transfer>> {
        assert!(!self.panics, "on purpose");
        if let Some(pause) = &self.pause {
            let mut pause = pause.lock().unwrap();
            match pause.until {
                Some(until) if until <= now => self.end(Error::new(ErrorKind::Interrupted, "asked again")),
                _ => {
                    let until = now + Duration::from_millis(1);
                    pause.until = Some(until);
                    while Instant::now() <= until {}
                }
            }
        }
        None
    }

    fn another(&self, _: usize, _: HostId, _: Instant) -> Another {
        Another::Nothing
    }

    fn finished(&self, _: usize, _: Box<Transfer>, _: Result<()>) {}

    fn fewer(&self) {}

    fn flush(&self, _: usize) -> Result<Room> {
        let flushes = self.flushes.fetch_add(1, Ordering::SeqCst) + 1;
        if !self.full {
            return Err(Error::new(ErrorKind::Write, "gone"));
        }
        if flushes < self.over_after
            && let Some(inbox) = &*self.inbox.lock().unwrap()
        {
            inbox.send(Message::Look);
        }
        Ok(Room::Full)
    }

    fn wants_flush(&self) -> bool {
        self.pause.is_none()
    }

    fn wakes_at(&self, now: Instant) -> Option<Instant> {
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

    fn is_over(&self) -> bool {
        !self.ends.lock().unwrap().is_empty()
    }

    fn end(&self, error: Error) {
        self.ends.lock().unwrap().push(error.to_string());
    }

    fn joined(&self, inbox: &Arc<Inbox>) {
        *self.inbox.lock().unwrap() = Some(Arc::clone(inbox));
    }
}

const WORKERS: Workers = Workers { threads: 2, depth: 1, per_host: 1 };

fn worker(supply: &Arc<Faulty>) -> Worker {
    let supply: Arc<dyn Supply> = supply.clone();
    Worker::new(1, &Client::new(), &supply, WORKERS).unwrap()
}

#[test]
fn a_worker_that_fails_ends_the_run_for_all() {
    let supply = Arc::new(Faulty::default());
    assert!(worker(&supply).run().is_err());
    assert_eq!(*supply.ends.lock().unwrap(), ["gone"]);
}

#[test]
fn a_worker_that_panics_ends_the_run_for_all() {
    let supply = Arc::new(Faulty { panics: true, ..Faulty::default() });
    let mut worker = worker(&supply);
    assert!(std::thread::spawn(move || worker.run().is_ok()).join().is_err());
    assert_eq!(*supply.ends.lock().unwrap(), ["a worker panicked"]);
}

#[test]
fn a_worker_does_not_poll_an_output_that_is_full() {
    let supply = Arc::new(Faulty { full: true, over_after: 3, ..Faulty::default() });
    let ending = Arc::clone(&supply);
    let mut worker = worker(&supply);
    let inbox = supply.inbox.lock().unwrap().clone().unwrap();
    let running = std::thread::spawn(move || worker.run().is_ok());
    while supply.flushes.load(Ordering::SeqCst) < 3 {
        std::thread::yield_now();
    }
    std::thread::sleep(Duration::from_millis(100));
    // The third was the last that a message asked for; a timer may have added one or two, a poll adds a hundred.
    let flushes = supply.flushes.load(Ordering::SeqCst);
    assert!(flushes < 20, "{flushes}");
    ending.end(Error::new(ErrorKind::Interrupted, "enough"));
    inbox.send(Message::Look);
    assert!(running.join().unwrap());
}

#[test]
fn a_pause_that_ends_while_the_worker_is_busy_is_not_slept_through() {
    let supply = Arc::new(Faulty { pause: Some(Mutex::default()), ..Faulty::default() });
    assert!(worker(&supply).run().is_ok());
    assert_eq!(*supply.ends.lock().unwrap(), ["asked again"]);
    assert!(!supply.pause.as_ref().unwrap().lock().unwrap().is_slept_through);
}
