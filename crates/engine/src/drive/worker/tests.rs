use std::io::Write;
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use haul_policy::queue::HostId;

use super::*;
use crate::body::path::BodyPath;
use crate::drive::link::h2::Windows;
use crate::net::socket::{Idle, peek_idle};
use crate::net::stream::Stream;
use crate::sink::memory::Memory;
use crate::{RequestOptions, Target};

/// A supply without transfers that fails in the given way.
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

/// A supply that has nothing before a time that comes while the worker is busy.
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

/// A worker with an idle connection, and the peer's end of that.
fn with_idle_lane() -> (Worker, usize, TcpStream) {
    let mut worker = worker(&Arc::new(Faulty::default()));
    let (lane, peer) = idle_lane(&mut worker);
    (worker, lane, peer)
}

fn idle_lane(worker: &mut Worker) -> (usize, TcpStream) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let socket = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let key = Key::new(&target(), &RequestOptions::default());
    let stream = Stream::plain(socket.try_into().unwrap(), None);
    let link = Link::new(stream, Arc::new(key), 1, &Windows::default(), None);
    let lane = worker.take_in(link, 1).unwrap_or_else(|_| panic!("it can be watched"));
    worker.rest(lane);
    (lane, listener.accept().unwrap().0)
}

/// A target without a listener: only the existing lanes can be used.
fn target() -> Target {
    Target::parse("http://127.0.0.1:9/").unwrap()
}

/// Finds a connection for a request; whether it is this one.
fn is_placed(worker: &mut Worker, lane: usize, method: &str) -> bool {
    let options = RequestOptions { method: method.into(), ..RequestOptions::default() };
    let body = BodyPath::new(Box::new(Memory::default()));
    worker.place(Transfer::new(target(), Arc::new(options), body, Instant::now(), 0), Some(lane));
    // One that is opened instead may have the same number.
    worker.lanes.get(lane).is_some_and(|lane| matches!(&lane.state, State::Open(link) if link.depth() > 0))
}

/// Waits until input has arrived. The worker has not slept since, so it has seen no event for it.
fn wait_for_news(worker: &Worker, lane: usize) {
    let State::Open(link) = &worker.lanes[lane].state else { panic!("it is open") };
    while peek_idle(link.stream().socket()) == Idle::Silent {
        std::thread::yield_now();
    }
}

#[test]
fn what_could_not_be_sent_again_is_not_sent_to_a_peer_that_has_left() {
    for (method, leaves, is_sent) in
        [("POST", true, false), ("POST", false, true), ("GET", true, true), ("PUT", true, true)]
    {
        let (mut worker, lane, peer) = with_idle_lane();
        if leaves {
            peer.shutdown(Shutdown::Write).unwrap();
            wait_for_news(&worker, lane);
        }
        assert_eq!(is_placed(&mut worker, lane, method), is_sent, "{method}, {leaves}");
    }
}

#[test]
fn what_could_not_be_sent_again_goes_behind_no_response_of_a_peer_that_leaves_behind_them() {
    let (mut worker, first, mut peer) = with_idle_lane();
    assert!(is_placed(&mut worker, first, "POST"));
    peer.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").unwrap();
    wait_for_news(&worker, first);
    worker.serve(first, false);
    peer.shutdown(Shutdown::Write).unwrap();
    wait_for_news(&worker, first);
    assert!(!is_placed(&mut worker, first, "POST"));
    let (second, _peer) = idle_lane(&mut worker);
    assert!(!is_placed(&mut worker, second, "POST"), "it may be about to leave");
    assert!(is_placed(&mut worker, second, "GET"));
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
