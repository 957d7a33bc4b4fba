//! The thread of the page server: accepts connections, reads requests, sends responses, and handles
//! deadlines.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, Write};
use std::mem;
use std::sync::Arc;
use std::time::{Duration, Instant};

use mio::event::Event;
use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Token, Waker};
use rustls::{HandshakeKind, ServerConfig, ServerConnection};

use super::connection::{PageConnection, RequestPhase};
use super::counts::PageServerCounts;
use super::deadline_timer::Deadlines;
use super::listening_ports::PagePort;
use super::page_text::{append_page, page_len};
use super::request_head;
use super::{OverloadPolicy, PageTiming, PortBehavior};

const STOP: Token = Token(0);
const CLOCK: Token = Token(1);
const FIRST_PORT: usize = 2;

const UNAVAILABLE: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n";

/// The slot of a connection (its index in the list of connections), and the connection's id. The id
/// distinguishes the connection from later ones that reuse the slot.
type ConnectionSlotAndId = (usize, u64);

/// The event loop of the page server, with its ports and connections.
pub(super) struct EventLoop {
    poll: Poll,
    ports: Vec<PagePort>,
    loads: Vec<PortLoad>,
    tls: Option<Arc<ServerConfig>>,
    counts: Arc<PageServerCounts>,
    deadlines: Deadlines<ConnectionSlotAndId>,
    connections: Vec<Option<NumberedConnection>>,
    free: Vec<usize>,
    /// The indexes of connections whose input may contain another complete request.
    ready: Vec<usize>,
    accepted: u64,
}

struct NumberedConnection {
    number: u64,
    connection: PageConnection,
}

/// The load of a port: the number of requests being served, and the queue of waiting requests.
#[derive(Default)]
struct PortLoad {
    serving: usize,
    queue: VecDeque<ConnectionSlotAndId>,
}

impl EventLoop {
    /// Creates the event loop, and a waker by which another thread stops it.
    pub(super) fn new(
        mut ports: Vec<PagePort>,
        tls: Option<Arc<ServerConfig>>,
        counts: Arc<PageServerCounts>,
    ) -> io::Result<(EventLoop, Waker)> {
        let poll = Poll::new()?;
        let waker = Waker::new(poll.registry(), STOP)?;
        let deadlines = Deadlines::new()?;
        poll.registry().register(&mut SourceFd(&deadlines.descriptor()), CLOCK, Interest::READABLE)?;
        for (index, port) in ports.iter_mut().enumerate() {
            if let Some(listener) = port.listener() {
                poll.registry().register(listener, Token(FIRST_PORT + index), Interest::READABLE)?;
            }
        }
        let event_loop = EventLoop {
            poll,
            loads: ports.iter().map(|_| PortLoad::default()).collect(),
            ports,
            tls,
            counts,
            deadlines,
            connections: Vec::new(),
            free: Vec::new(),
            ready: Vec::new(),
            accepted: 0,
        };
        Ok((event_loop, waker))
    }

    /// Serves requests until the loop is stopped by its waker.
    pub(super) fn run(mut self) {
        let first_connection = FIRST_PORT + self.ports.len();
        let mut events = Events::with_capacity(1024);
        loop {
            match self.poll.poll(&mut events, None) {
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(_) => return,
                Ok(()) => {}
            }
            for event in &events {
                match event.token() {
                    STOP => return,
                    CLOCK => self.handle_deadlines(),
                    Token(token) if token < first_connection => self.accept(token - FIRST_PORT),
                    Token(token) => self.on_event(token - first_connection, event),
                }
                while let Some(index) = self.ready.pop() {
                    self.start_request(index);
                }
            }
        }
    }

    fn accept(&mut self, port: usize) {
        let first_connection = FIRST_PORT + self.ports.len();
        loop {
            let Some(listener) = self.ports[port].listener() else { return };
            let stream = match listener.accept() {
                Ok((stream, _)) => stream,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                // The client has gone; without descriptors, the connection waits for the next
                // event.
                Err(error) if error.kind() == ErrorKind::ConnectionAborted => continue,
                Err(_) => return,
            };
            self.counts.connected();
            let tls = self.tls.as_ref().map(|config| ServerConnection::new(Arc::clone(config)));
            let Ok(tls) = tls.transpose() else { continue };
            let mut connection = PageConnection::new(stream, tls, port);
            if self.ports[port].behavior == PortBehavior::ResetAccepted {
                connection.reset_on_drop();
                continue;
            }
            let index = self.free.pop().unwrap_or_else(|| {
                self.connections.push(None);
                self.connections.len() - 1
            });
            let token = Token(first_connection + index);
            if self.poll.registry().register(&mut connection.stream, token, Interest::READABLE).is_err() {
                self.free.push(index);
                continue;
            }
            self.accepted += 1;
            self.connections[index] = Some(NumberedConnection { number: self.accepted, connection });
        }
    }

    /// Handles a socket event of the connection with this index: reads and writes as much as the
    /// socket allows.
    fn on_event(&mut self, index: usize, event: &Event) {
        let Some(Some(NumberedConnection { connection, .. })) = self.connections.get_mut(index) else { return };
        if event.is_readable() {
            let is_open = connection.read().unwrap_or(false) && !event.is_read_closed();
            match connection.finished_handshake() {
                Some(HandshakeKind::Resumed) => self.counts.handshake(false),
                Some(_) => self.counts.handshake(true),
                None => {}
            }
            if !is_open {
                return self.drop_connection(index);
            }
        }
        if connection.waits_to_write {
            self.write(index);
        } else {
            self.ready.push(index);
        }
    }

    /// Starts the next request of the connection with this index, if no request is in progress and
    /// the next request has arrived completely.
    fn start_request(&mut self, index: usize) {
        let Some(Some(NumberedConnection { number, connection })) = self.connections.get_mut(index) else { return };
        if connection.phase != RequestPhase::Idle {
            return;
        }
        let behavior = self.ports[connection.port].behavior;
        if behavior == PortBehavior::Silent {
            connection.input.clear();
            return;
        }
        let input = mem::take(&mut connection.input);
        let Some(head) = request_head::parse(&input) else {
            connection.input = input;
            return;
        };
        let len = head.len;
        connection.closes = head.closes;
        let is_first = mem::replace(&mut connection.is_new, false);
        match behavior {
            PortBehavior::ResetRequest => {
                connection.reset_on_drop();
                return self.drop_connection(index);
            }
            PortBehavior::Pages(_) => {
                let fields = "Content-Type: text/plain\r\nContent-Length: ";
                let length = page_len(head.host, head.path);
                connection.page_len = length;
                // Writing to memory does not fail.
                let _ = write!(connection.output, "HTTP/1.1 200 OK\r\n{fields}{length}\r\n\r\n");
                append_page(&mut connection.output, head.host, head.path);
            }
            _ => connection.output.extend(UNAVAILABLE),
        }
        connection.input = input;
        connection.input.drain(..len);
        let key = (index, *number);
        match behavior {
            PortBehavior::Pages(timing) if is_first && !timing.setup_delay.is_zero() => {
                connection.phase = RequestPhase::Opening;
                self.deadlines.add(Instant::now() + timing.setup_delay, key);
            }
            PortBehavior::Pages(timing) => self.on_request_arrived(key, timing, Instant::now()),
            _ => {
                connection.phase = RequestPhase::Refused;
                self.counts.arrived(Instant::now());
                self.respond(index, Instant::now());
            }
        }
    }

    /// Serves, queues or refuses a request that has arrived on the connection `key`.
    fn on_request_arrived(&mut self, key: ConnectionSlotAndId, timing: PageTiming, now: Instant) {
        let Some(connection) = connection_of(&mut self.connections, key) else { return };
        self.counts.arrived(now);
        let load = &mut self.loads[connection.port];
        if load.serving < timing.at_a_time {
            load.serving += 1;
            connection.phase = RequestPhase::Serving;
            self.finish_after(key, timing.delay, now);
        } else if timing.overload == OverloadPolicy::Queue {
            connection.phase = RequestPhase::Queued;
            load.queue.push_back(key);
        } else {
            connection.phase = RequestPhase::Refused;
            connection.output.clear();
            connection.output.extend(UNAVAILABLE);
            self.finish_after(key, timing.delay, now);
        }
    }

    fn finish_after(&mut self, key: ConnectionSlotAndId, delay: Duration, now: Instant) {
        if delay.is_zero() {
            self.respond(key.0, now);
        } else {
            self.deadlines.add(now + delay, key);
        }
    }

    /// Handles all deadlines that have passed.
    fn handle_deadlines(&mut self) {
        let now = Instant::now();
        while let Some(key) = self.deadlines.expired(now) {
            let Some(connection) = connection_of(&mut self.connections, key) else { continue };
            match (connection.phase, self.ports[connection.port].behavior) {
                (RequestPhase::Opening, PortBehavior::Pages(timing)) => self.on_request_arrived(key, timing, now),
                _ => self.respond(key.0, now),
            }
        }
    }

    /// Sends the response of the connection with this index, then serves the oldest request in the
    /// port's queue.
    fn respond(&mut self, index: usize, now: Instant) {
        let Some(Some(NumberedConnection { connection, .. })) = self.connections.get_mut(index) else { return };
        let (port, len) = (connection.port, connection.page_len);
        let phase = mem::replace(&mut connection.phase, RequestPhase::Writing);
        // Counted before it is sent: the next request may follow at once.
        self.counts.left(now);
        match phase {
            RequestPhase::Serving => self.counts.sent_page(now, len),
            _ => self.counts.sent_refusal(),
        }
        self.write(index);
        if phase == RequestPhase::Serving {
            self.serve_next(port, now);
        }
    }

    /// Starts to serve the oldest request in the port's queue, after another request is finished.
    fn serve_next(&mut self, port: usize, now: Instant) {
        self.loads[port].serving -= 1;
        let PortBehavior::Pages(timing) = self.ports[port].behavior else { return };
        while let Some(key) = self.loads[port].queue.pop_front() {
            let Some(connection) = connection_of(&mut self.connections, key) else { continue };
            connection.phase = RequestPhase::Serving;
            self.loads[port].serving += 1;
            return self.finish_after(key, timing.delay, now);
        }
    }

    /// Writes the response of the connection with this index. When the response is complete, starts
    /// the next request of the connection if one has arrived.
    fn write(&mut self, index: usize) {
        let first_connection = FIRST_PORT + self.ports.len();
        let Some(Some(NumberedConnection { connection, .. })) = self.connections.get_mut(index) else { return };
        let Ok(is_written) = connection.write() else { return self.drop_connection(index) };
        if is_written && connection.closes {
            return self.drop_connection(index);
        }
        if connection.waits_to_write == is_written {
            connection.waits_to_write = !is_written;
            let interest = if is_written { Interest::READABLE } else { Interest::READABLE | Interest::WRITABLE };
            let token = Token(first_connection + index);
            if self.poll.registry().reregister(&mut connection.stream, token, interest).is_err() {
                return self.drop_connection(index);
            }
        }
        if is_written {
            connection.phase = RequestPhase::Idle;
            if !connection.input.is_empty() {
                self.ready.push(index);
            }
        }
    }

    /// Closes the connection with this index. If it has an unanswered request, the server no longer
    /// counts that request as open. If that request was being served, the port starts to serve the
    /// oldest request in its queue.
    fn drop_connection(&mut self, index: usize) {
        let Some(NumberedConnection { connection, .. }) = self.connections[index].take() else { return };
        self.free.push(index);
        let (port, phase) = (connection.port, connection.phase);
        drop(connection);
        let now = Instant::now();
        match phase {
            RequestPhase::Idle | RequestPhase::Opening | RequestPhase::Writing => {}
            RequestPhase::Queued | RequestPhase::Refused => self.counts.left(now),
            RequestPhase::Serving => {
                self.counts.left(now);
                self.serve_next(port, now);
            }
        }
    }
}

/// Returns the connection that `key` names by its index in `connections` and its id; `None` if the
/// connection has been closed. (The index may be used again, the id never.)
fn connection_of(
    connections: &mut [Option<NumberedConnection>],
    key: ConnectionSlotAndId,
) -> Option<&mut PageConnection> {
    let there = connections.get_mut(key.0)?.as_mut()?;
    (there.number == key.1).then_some(&mut there.connection)
}
