use std::io::Write;
use std::net::{Ipv4Addr, TcpListener, TcpStream};

use super::*;
use crate::body::delivery::BodyDelivery;
use crate::buffer_pool::BufferPool;
use crate::sink::memory::MemorySink;
use crate::{ErrorKind, RequestOptions, Target};

/// A connection on which requests are pipelined, and the peer's socket.
struct Pipeline {
    connection: H1Connection,
    peer: TcpStream,
    finished: FinishedTransfers,
    started: Instant,
}

impl Pipeline {
    /// Starts a request for each time limit, in this order. The tags of the transfers count from 0.
    fn with_time_limits(limits: &[Option<Duration>]) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let socket = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let peer = listener.accept().unwrap().0;
        let target = Target::parse("http://127.0.0.1:9/").unwrap();
        let key = ConnectionKey::new(&target, &RequestOptions::default());
        let stream = ConnectionStream::plain(socket.try_into().unwrap(), None);
        let connection = H1Connection::new(stream, Arc::new(key), limits.len());
        let started = Instant::now();
        let mut pipeline = Self { connection, peer, finished: FinishedTransfers::new(), started };
        for (tag, limit) in (0..).zip(limits) {
            let options = RequestOptions { max_time: *limit, ..RequestOptions::default() };
            let body = BodyDelivery::new(Box::new(MemorySink::default()));
            let transfer = Transfer::new(target.clone(), Arc::new(options), body, started, tag);
            pipeline.connection.start(transfer, started, WAKER, &mut pipeline.finished);
        }
        assert!(pipeline.connection.send_pending().unwrap());
        pipeline
    }

    fn expire(&mut self, after: Duration) -> ReceiveStatus {
        self.connection.end_expired(self.started + after, &mut self.finished)
    }

    /// Sends an empty response from the peer, and receives it.
    fn answer(&mut self) -> ReceiveStatus {
        self.peer.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").unwrap();
        self.connection.receive(&mut BufferPool::new(16 << 10).take_buffer(), Instant::now(), WAKER, &mut self.finished)
    }

    /// Removes the finished transfers, and returns the tag and the outcome of each.
    fn ends(&mut self) -> Vec<(u64, Outcome)> {
        let outcome = |step| match step {
            TransferStep::Done(Ok(())) => Outcome::Complete,
            TransferStep::Done(Err(error)) => Outcome::Failed(error.kind()),
            TransferStep::Again(_) => Outcome::Again,
        };
        self.finished.drain(..).map(|(transfer, step)| (transfer.scheduling.tag, outcome(step))).collect()
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Outcome {
    Complete,
    Failed(ErrorKind),
    Again,
}

const WAKER: ConnectionWaker<'static> = ConnectionWaker { wake: None, token: 0 };
const SHORT: Option<Duration> = Some(Duration::from_secs(100));
const AFTER_SHORT: Duration = Duration::from_secs(101);

#[test]
fn deadline_of_a_later_request_spares_earlier_ones() {
    let mut pipeline = Pipeline::with_time_limits(&[None, SHORT, None]);
    assert!(matches!(pipeline.expire(AFTER_SHORT), ReceiveStatus::More));
    assert_eq!(pipeline.ends(), [(1, Outcome::Failed(ErrorKind::Timeout)), (2, Outcome::Again)]);
    assert!(!pipeline.connection.can_start());
    assert!(matches!(pipeline.answer(), ReceiveStatus::Closed));
    assert_eq!(pipeline.ends(), [(0, Outcome::Complete)]);
}

#[test]
fn cut_pipeline_closes_after_its_last_response() {
    let mut pipeline = Pipeline::with_time_limits(&[None, None, SHORT]);
    pipeline.expire(AFTER_SHORT);
    assert_eq!(pipeline.ends(), [(2, Outcome::Failed(ErrorKind::Timeout))]);
    assert!(!matches!(pipeline.answer(), ReceiveStatus::Closed));
    assert_eq!(pipeline.ends(), [(0, Outcome::Complete)]);
    assert!(matches!(pipeline.answer(), ReceiveStatus::Closed));
    assert_eq!(pipeline.ends(), [(1, Outcome::Complete)]);
}

#[test]
fn deadline_of_the_front_request_closes_the_connection() {
    let mut pipeline = Pipeline::with_time_limits(&[SHORT, None]);
    assert!(matches!(pipeline.expire(AFTER_SHORT), ReceiveStatus::Closed));
    assert_eq!(pipeline.ends(), [(0, Outcome::Failed(ErrorKind::Timeout)), (1, Outcome::Again)]);
}
