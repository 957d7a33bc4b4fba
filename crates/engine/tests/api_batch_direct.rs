//! Tests of batches whose lone requests the program's own thread sends and receives
//! ([`BatchOptions::direct`]).

#![cfg(linux_calls)]

mod common;

use std::io::Write;
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex};
use std::thread::ThreadId;
use std::time::Duration;

use common::{start_origin, with_time_limit};
use haul::batch::{Batch, BatchOptions, BatchOrder, FinishedRequest};
use haul::buffer_pool::OfferedBodyBytes;
use haul::request::{Request, StallLimit};
use haul::sink::Sink;
use haul::{Client, ErrorKind};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::ioctl_fionread;
use rustix::net::getpeername;
use rustix::process::{PidfdFlags, PidfdGetfdFlags, getpid, pidfd_getfd, pidfd_open};
use testkit::h1_peer::{H1Peer, ScriptStep};
use testkit::origin::Origin;

const REPLY: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/// A sink that stores which threads gave it a body, and how much of it. It panics if `panics` is
/// set, and takes coded bodies undecoded if `takes_encoded` is set.
#[derive(Default, Clone)]
struct ThreadSink {
    pieces: Arc<Mutex<Vec<(ThreadId, usize)>>>,
    panics: bool,
    takes_encoded: bool,
}

impl ThreadSink {
    fn length(&self) -> usize {
        self.pieces.lock().unwrap().iter().map(|(_, length)| length).sum()
    }

    /// Returns true if this thread gave the sink its last piece.
    fn ends_here(&self) -> bool {
        self.pieces.lock().unwrap().last().expect("there is a body").0 == std::thread::current().id()
    }
}

impl Sink for ThreadSink {
    fn bytes(&mut self, lease: OfferedBodyBytes<'_>) -> haul::Result<()> {
        assert!(!self.panics, "on purpose");
        self.pieces.lock().unwrap().push((std::thread::current().id(), lease.bytes().len()));
        Ok(())
    }

    fn takes_encoded(&mut self, _coding: &[u8]) -> bool {
        self.takes_encoded
    }

    fn restart(&mut self) -> bool {
        self.pieces.lock().unwrap().clear();
        true
    }
}

/// A batch whose descriptor the test watches.
struct WatchedBatch {
    client: Client,
    batch: Batch,
    fd: OwnedFd,
}

impl WatchedBatch {
    fn new(client: Client) -> Self {
        Self::with(client, BatchOptions::default())
    }

    fn with(client: Client, options: BatchOptions) -> Self {
        let batch = client.batch(BatchOptions { direct: true, order: BatchOrder::Completion, ..options });
        let fd = batch.fd().unwrap();
        Self { client, batch, fd }
    }

    fn get(&self, url: &str) -> Request {
        self.client.get(url).build().unwrap()
    }

    fn is_readable(&self, wait: Duration) -> bool {
        is_readable(&self.fd, wait)
    }

    /// Waits for the descriptor, and takes the next result.
    fn next(&self) -> FinishedRequest {
        loop {
            assert!(self.is_readable(Duration::from_secs(30)));
            if let Some(finished) = self.batch.try_next() {
                return finished;
            }
        }
    }

    /// Opens a connection with a request, and uses it for another one. It is in the pool
    /// afterwards.
    fn warm_up(&self, url: &str) {
        for _ in 0..2 {
            self.batch.submit(self.get(url));
            self.next().into_reply().unwrap();
            assert!(!self.is_readable(Duration::ZERO));
        }
    }

    /// Waits until this thread has something to receive.
    fn await_bytes(&self) {
        assert!(self.is_readable(Duration::from_secs(30)));
    }

    /// Sends a request, and returns the sink of its response.
    fn fetch(&self, request: Request) -> ThreadSink {
        let sink = ThreadSink::default();
        self.batch.submit_into(request, Box::new(sink.clone()));
        assert!(self.next().outcome().result.is_ok());
        sink
    }
}

fn is_readable(fd: &OwnedFd, wait: Duration) -> bool {
    let wait = Timespec::try_from(wait).unwrap();
    poll(&mut [PollFd::new(&fd.as_fd(), PollFlags::IN)], Some(&wait)).unwrap() > 0
}

/// Returns copies of this process's sockets that are connected to `peer`.
fn sockets_to(peer: SocketAddr) -> Vec<OwnedFd> {
    let process = pidfd_open(getpid(), PidfdFlags::empty()).unwrap();
    let copy = |number: i32| pidfd_getfd(&process, number, PidfdGetfdFlags::empty()).ok();
    let is_to_peer = |socket: &OwnedFd| {
        let address = getpeername(socket).ok().flatten();
        address.and_then(|address| SocketAddr::try_from(address).ok()) == Some(peer)
    };
    let open = std::fs::read_dir("/proc/self/fd").unwrap();
    let numbers: Vec<i32> = open.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect();
    numbers.into_iter().filter_map(copy).filter(is_to_peer).collect()
}

fn gzip(content: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(content).unwrap();
    encoder.finish().unwrap()
}

fn warm_batch(origin: &Origin) -> WatchedBatch {
    let batch = WatchedBatch::new(Client::new());
    batch.warm_up(&origin.url("/small"));
    batch
}

#[test]
fn direct_batch_receives_lone_requests_on_this_thread() {
    let origin = start_origin();
    with_time_limit("lone requests", move || {
        let batch = WatchedBatch::new(Client::new());
        for i in 0..2 {
            let sink = batch.fetch(batch.get(&origin.url(&format!("/small/{i}"))));
            assert!(!sink.ends_here(), "there is no connection that two requests have used");
        }
        for i in 2..5 {
            let sink = batch.fetch(batch.get(&origin.url(&format!("/small/{i}"))));
            assert!(sink.ends_here() && sink.length() == 8, "{i}");
        }
        let form = batch.client.post(&origin.url("/echo")).body(b"a=b".as_slice()).build().unwrap();
        assert!(batch.fetch(form).ends_here());
        assert_eq!(origin.connections(), 1);
        assert_eq!(batch.batch.outstanding(), 0);
    });
}

#[test]
fn direct_batch_gives_long_bodies_to_its_thread() {
    let origin = start_origin();
    with_time_limit("long bodies", move || {
        let batch = warm_batch(&origin);
        for path in ["/bytes/3000000", "/chunked/3000000"] {
            let sink = batch.fetch(batch.get(&origin.url(path)));
            assert!(!sink.ends_here() && sink.length() == 3_000_000, "{path}");
            let next = batch.fetch(batch.get(&origin.url("/small/1")));
            assert!(!next.ends_here(), "the last body was long");
            assert!(batch.fetch(batch.get(&origin.url("/small/2"))).ends_here(), "the connection is idle again");
        }
        let body = vec![b'x'; 1 << 20];
        let large = batch.client.post(&origin.url("/discard")).body(body).build().unwrap();
        batch.batch.submit(large);
        assert!(batch.next().into_reply().is_ok());
        assert_eq!(origin.connections(), 1);
    });
}

/// Starts a peer that sends the first bytes of a body of `length` bytes, `first` of them, and the
/// rest when the test calls [`H1Peer::release`]. It then answers one more request.
fn peer_that_sends_body_in_two_parts(first: usize, length: usize) -> H1Peer {
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n");
    peer_that_then_does(vec![
        ScriptStep::ReadHead,
        ScriptStep::send([head.as_bytes(), &vec![b'x'; first]].concat()),
        ScriptStep::Await(1),
        ScriptStep::send(vec![b'x'; length - first]),
        ScriptStep::ReadHead,
        ScriptStep::send(REPLY),
        ScriptStep::ReadToEnd,
    ])
}

#[test]
fn direct_batch_receives_all_arrived_bytes_at_once() {
    let (first, length) = (50_000, 110_000);
    let peer = peer_that_sends_body_in_two_parts(first, length);
    with_time_limit("body in two parts", move || {
        let batch = WatchedBatch::new(Client::new());
        batch.warm_up(&peer.url("/"));
        let sink = ThreadSink::default();
        batch.batch.submit_into(batch.get(&peer.url("/")), Box::new(sink.clone()));
        let socket = sockets_to(peer.addr()).pop().unwrap();
        let await_arrival_of = |bytes: usize| {
            while ioctl_fionread(&socket).unwrap() < bytes as u64 {
                std::thread::sleep(Duration::from_millis(1));
            }
        };
        await_arrival_of(first);
        assert!(batch.batch.try_next().is_none());
        assert!(sink.length() == first && sink.ends_here(), "{} bytes", sink.length());
        peer.release();
        await_arrival_of(length - first);
        assert!(batch.next().outcome().result.is_ok());
        assert!(sink.length() == length && sink.ends_here(), "the socket can hold the rest");
    });
}

#[test]
fn direct_batch_gives_a_long_rest_to_its_thread() {
    let length = 300_000;
    let peer = peer_that_sends_body_in_two_parts(1000, length);
    with_time_limit("long rest", move || {
        let batch = WatchedBatch::new(Client::new());
        batch.warm_up(&peer.url("/"));
        let sink = ThreadSink::default();
        batch.batch.submit_into(batch.get(&peer.url("/")), Box::new(sink.clone()));
        batch.await_bytes();
        assert!(batch.batch.try_next().is_none());
        peer.release();
        assert!(batch.next().outcome().result.is_ok());
        assert!(sink.length() == length && !sink.ends_here());
        assert!(batch.fetch(batch.get(&peer.url("/"))).ends_here(), "the next body may have arrived as a whole");
    });
}

#[test]
fn direct_batch_gives_concurrent_requests_to_its_thread() {
    let origin = start_origin();
    with_time_limit("concurrent requests", move || {
        let batch = warm_batch(&origin);
        let sinks: Vec<_> = (0..20).map(|_| ThreadSink::default()).collect();
        for (i, sink) in sinks.iter().enumerate() {
            batch.batch.submit_into(batch.get(&origin.url(&format!("/small/{i}"))), Box::new(sink.clone()));
        }
        for _ in 0..20 {
            assert!(batch.next().outcome().result.is_ok());
        }
        assert_eq!(sinks.iter().filter(|sink| sink.ends_here()).count(), 1);
        // The batch's thread may not have pooled its connection yet.
        batch.warm_up(&origin.url("/small"));
        assert!(batch.fetch(batch.get(&origin.url("/small/1"))).ends_here());
    });
}

#[test]
fn direct_request_ends_at_its_timeout() {
    let origin = start_origin();
    with_time_limit("timeouts", move || {
        let batch = warm_batch(&origin);
        let slow = |milliseconds| {
            let limit = Duration::from_millis(milliseconds);
            batch.client.get(&origin.url("/delay/60000/small")).timeout(limit).build().unwrap()
        };
        for limit in [50, 20] {
            batch.batch.submit(slow(limit));
            assert_eq!(batch.next().into_reply().unwrap_err().kind(), ErrorKind::Timeout);
            batch.warm_up(&origin.url("/small"));
        }
        // The timer of a request that has ended does not stay.
        let fast = batch.client.get(&origin.url("/small/1")).timeout(Duration::from_secs(5)).build().unwrap();
        assert!(batch.fetch(fast).ends_here());
        assert!(batch.is_readable(Duration::from_secs(30)));
        assert!(batch.batch.try_next().is_none() && !batch.is_readable(Duration::ZERO));
        assert!(batch.fetch(batch.get(&origin.url("/small/2"))).ends_here());
    });
}

#[test]
fn direct_request_can_be_cancelled() {
    let origin = start_origin();
    with_time_limit("cancellation", move || {
        let batch = warm_batch(&origin);
        let id = batch.batch.submit(batch.get(&origin.url("/delay/60000/small")));
        assert!(batch.batch.cancel(id) && !batch.batch.cancel(id));
        let finished = batch.next();
        assert_eq!((finished.id(), finished.into_reply().unwrap_err().kind()), (id, ErrorKind::Interrupted));
        assert_eq!(batch.batch.outstanding(), 0);
        batch.warm_up(&origin.url("/small"));
        assert!(batch.fetch(batch.get(&origin.url("/small/1"))).ends_here());
        assert_eq!(origin.connections(), 2, "the connection of the cancelled request was closed");
    });
}

#[test]
fn request_can_be_cancelled_while_another_thread_submits_it() {
    let origin = start_origin();
    with_time_limit("cancellation in submit", move || {
        let batch = warm_batch(&origin);
        for first in (2..).step_by(3).take(200) {
            let finished = std::thread::scope(|scope| {
                // Ids are counted from 0, and each round has three requests.
                let cancels = scope.spawn(|| while !batch.batch.cancel(first) {});
                assert_eq!(batch.batch.submit(batch.get(&origin.url("/delay/60000/small"))), first);
                cancels.join().unwrap();
                batch.next()
            });
            assert_eq!(finished.into_reply().unwrap_err().kind(), ErrorKind::Interrupted);
            batch.warm_up(&origin.url("/small"));
        }
    });
}

#[test]
fn direct_request_on_a_broken_connection_is_retried() {
    let reply = [ScriptStep::ReadHead, ScriptStep::send(REPLY)];
    let close = [&reply[..], &reply[..], &[ScriptStep::ReadHead]].concat();
    let peer = H1Peer::start(vec![close, [&reply[..], &[ScriptStep::ReadToEnd]].concat()]);
    with_time_limit("broken connection", move || {
        let batch = WatchedBatch::new(Client::new());
        batch.warm_up(&peer.url("/"));
        assert_eq!(batch.fetch(batch.get(&peer.url("/"))).length(), 2);
        assert_eq!(peer.connections(), 2);
    });
}

#[test]
fn blocking_wait_gives_direct_request_to_the_thread() {
    let origin = start_origin();
    with_time_limit("blocking wait", move || {
        let batch = warm_batch(&origin);
        let sink = ThreadSink::default();
        batch.batch.submit_into(batch.get(&origin.url("/delay/20/small")), Box::new(sink.clone()));
        assert!(batch.batch.next().unwrap().unwrap().outcome().result.is_ok());
        assert!(!sink.ends_here());
    });
}

#[test]
fn panic_of_a_sink_fails_the_direct_request() {
    let origin = start_origin();
    with_time_limit("panic", move || {
        let batch = warm_batch(&origin);
        let sink = ThreadSink { panics: true, ..ThreadSink::default() };
        let id = batch.batch.submit_into(batch.get(&origin.url("/small")), Box::new(sink));
        assert!(batch.is_readable(Duration::from_secs(30)));
        assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| batch.batch.try_next())).is_err());
        let finished = batch.next();
        assert_eq!((finished.id(), finished.into_reply().unwrap_err().kind()), (id, ErrorKind::Panicked));
        batch.warm_up(&origin.url("/small"));
        assert!(batch.fetch(batch.get(&origin.url("/small/1"))).ends_here());
    });
}

#[test]
fn dropped_batch_closes_its_direct_request() {
    let peer = peer_that_then_does(vec![ScriptStep::ReadHead, ScriptStep::ReadToEnd]);
    with_time_limit("drop", move || {
        let batch = WatchedBatch::new(Client::new());
        batch.warm_up(&peer.url("/"));
        batch.batch.submit(batch.get(&peer.url("/")));
        drop(batch);
        assert!(peer.finished(1));
    });
}

/// A reply with the first byte of a body of two bytes.
const PART_OF_REPLY: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\no";

/// Starts a peer that answers two requests on its first connection, and then does the steps `then`.
fn peer_that_then_does(then: Vec<ScriptStep>) -> H1Peer {
    let mut script = Vec::new();
    for _ in 0..2 {
        script.extend([ScriptStep::ReadHead, ScriptStep::send(REPLY)]);
    }
    script.extend(then);
    H1Peer::start(vec![script])
}

#[test]
fn direct_response_counts_however_late_it_is_looked_for() {
    let peer = peer_that_then_does(vec![ScriptStep::ReadHead, ScriptStep::send(REPLY), ScriptStep::ReadToEnd]);
    with_time_limit("late program", move || {
        let batch = WatchedBatch::new(Client::new());
        batch.warm_up(&peer.url("/"));
        let limit = Duration::from_secs(1);
        let request = batch.client.get(&peer.url("/")).timeout(limit).build().unwrap();
        let sink = ThreadSink::default();
        batch.batch.submit_into(request, Box::new(sink.clone()));
        batch.await_bytes();
        // The response is there. The program does something else until its time is over.
        std::thread::sleep(limit);
        assert!(batch.next().outcome().result.is_ok());
        assert!(sink.ends_here() && peer.connections() == 1);
    });
}

#[test]
fn stall_limit_ends_a_direct_response() {
    let steps = vec![ScriptStep::ReadHead, ScriptStep::send(PART_OF_REPLY), ScriptStep::ReadToEnd];
    let peer = peer_that_then_does(steps);
    with_time_limit("stall limit", move || {
        let stall = Some(StallLimit { time: Duration::from_millis(50), awaits_head: false });
        let batch = WatchedBatch::with(Client::new(), BatchOptions { stall, ..BatchOptions::default() });
        batch.warm_up(&peer.url("/"));
        let sink = ThreadSink::default();
        batch.batch.submit_into(batch.get(&peer.url("/")), Box::new(sink.clone()));
        assert_eq!(batch.next().outcome().result.as_ref().unwrap_err().kind(), ErrorKind::Timeout);
        assert!(sink.ends_here());
    });
}

#[test]
fn cancelled_direct_request_leaves_the_descriptor_quiet() {
    let steps = vec![ScriptStep::ReadHead, ScriptStep::Await(1), ScriptStep::send(REPLY), ScriptStep::ReadToEnd];
    let peer = peer_that_then_does(steps);
    with_time_limit("cancellation with a copy of the socket", move || {
        let batch = WatchedBatch::new(Client::new());
        batch.warm_up(&peer.url("/"));
        let id = batch.batch.submit(batch.get(&peer.url("/")));
        // Copies of the descriptors, as a forked child has them.
        let copies = sockets_to(peer.addr());
        assert!(!copies.is_empty() && batch.batch.cancel(id));
        assert!(batch.next().outcome().result.is_err());
        peer.release();
        // The response arrives in the copies.
        assert!(copies.iter().any(|copy| is_readable(copy, Duration::from_secs(30))));
        assert!(batch.batch.try_next().is_none() && !batch.is_readable(Duration::ZERO));
    });
}

#[test]
fn panicking_direct_request_leaves_the_descriptor_quiet() {
    let steps =
        vec![ScriptStep::ReadHead, ScriptStep::send(PART_OF_REPLY), ScriptStep::Await(1), ScriptStep::send("k")];
    let peer = peer_that_then_does(steps);
    with_time_limit("panic with a copy of the socket", move || {
        let batch = WatchedBatch::new(Client::new());
        batch.warm_up(&peer.url("/"));
        let sink = ThreadSink { panics: true, ..ThreadSink::default() };
        batch.batch.submit_into(batch.get(&peer.url("/")), Box::new(sink));
        let copies = sockets_to(peer.addr());
        assert!(!copies.is_empty());
        batch.await_bytes();
        assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| batch.batch.try_next())).is_err());
        assert!(batch.next().outcome().result.is_err());
        assert!(batch.batch.try_next().is_none() && !batch.is_readable(Duration::ZERO));
        peer.release();
        assert!(peer.finished(1) && !batch.is_readable(Duration::ZERO));
    });
}

/// A sink that uses its batch when it gets bytes.
struct ReentrantSink {
    batch: Arc<WatchedBatch>,
    own_id: u64,
    has_cancelled: Arc<Mutex<Option<bool>>>,
}

impl Sink for ReentrantSink {
    fn bytes(&mut self, _lease: OfferedBodyBytes<'_>) -> haul::Result<()> {
        let batch = &self.batch.batch;
        assert!(batch.try_next().is_none() && batch.fd().is_ok() && !batch.cancel(self.own_id + 1));
        *self.has_cancelled.lock().unwrap() = Some(batch.cancel(self.own_id));
        Ok(())
    }

    fn restart(&mut self) -> bool {
        false
    }
}

#[test]
fn sink_of_a_direct_request_may_use_its_batch() {
    let steps = vec![ScriptStep::ReadHead, ScriptStep::send(PART_OF_REPLY), ScriptStep::ReadToEnd];
    let peer = peer_that_then_does(steps);
    with_time_limit("re-entrant sink", move || {
        let batch = Arc::new(WatchedBatch::new(Client::new()));
        batch.warm_up(&peer.url("/"));
        let has_cancelled = Arc::default();
        let sink = ReentrantSink { batch: Arc::clone(&batch), own_id: 2, has_cancelled: Arc::clone(&has_cancelled) };
        assert_eq!(batch.batch.submit_into(batch.get(&peer.url("/")), Box::new(sink)), 2);
        let finished = batch.next();
        assert_eq!(finished.outcome().result.as_ref().unwrap_err().kind(), ErrorKind::Interrupted);
        assert_eq!(*has_cancelled.lock().unwrap(), Some(true));
        assert!(peer.finished(1), "the connection is closed");
    });
}

#[test]
fn direct_batch_gives_coded_bodies_to_its_thread() {
    let body = vec![b'x'; 1 << 20];
    let coded = gzip(&body);
    for takes_encoded in [false, true] {
        let head = format!("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: {}\r\n\r\n", coded.len());
        let (first, rest) = coded.split_at(20);
        let steps = vec![
            ScriptStep::ReadHead,
            ScriptStep::send([head.as_bytes(), first].concat()),
            ScriptStep::Await(1),
            ScriptStep::send(rest),
            ScriptStep::ReadToEnd,
        ];
        let peer = peer_that_then_does(steps);
        let length = if takes_encoded { coded.len() } else { body.len() };
        with_time_limit("coded bodies", move || {
            let batch = WatchedBatch::new(Client::new());
            batch.warm_up(&peer.url("/"));
            let sink = ThreadSink { takes_encoded, ..ThreadSink::default() };
            batch.batch.submit_into(batch.get(&peer.url("/")), Box::new(sink.clone()));
            batch.await_bytes();
            assert!(batch.batch.try_next().is_none());
            peer.release();
            assert!(batch.next().outcome().result.is_ok());
            assert!(!sink.ends_here() && sink.length() == length, "takes_encoded: {takes_encoded}");
        });
    }
}

#[test]
fn direct_batch_keeps_connections_of_single_requests_watched() {
    let peer = H1Peer::start(vec![vec![ScriptStep::ReadHead, ScriptStep::send(REPLY), ScriptStep::Await(1)]]);
    with_time_limit("closed idle connection", move || {
        let batch = WatchedBatch::new(Client::new());
        batch.batch.submit(batch.get(&peer.url("/")));
        batch.next().into_reply().unwrap();
        assert!(!sockets_to(peer.addr()).is_empty());
        peer.release();
        // The batch's thread closes its end when the server has closed the other.
        while !sockets_to(peer.addr()).is_empty() {
            std::thread::sleep(Duration::from_millis(1));
        }
    });
}
