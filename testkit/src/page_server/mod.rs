//! An HTTP/1.1 server for measurements, which needs far less CPU time than its clients: one thread
//! with one epoll instance, and no allocation for a request on an open connection.
//!
//! A server has several ports, each with its own [`PortBehavior`]: pages immediately or after a
//! delay, a limited number of concurrent requests, silence, resets, or refusals. Each port accepts
//! connections to every address of 127.0.0.0/8, but none from other machines.
//!
//! A delay simulates a round trip: each response is sent this much later, and the first response on
//! a connection twice as much, since opening a connection also takes a round trip. For the limit on
//! concurrent requests, a request lasts from its arrival to its response.
//!
//! ```
//! use std::io::{Read, Write};
//! use testkit::page_server::{PageServer, PageTiming, PortBehavior, page};
//!
//! let server = PageServer::start(vec![PortBehavior::Pages(PageTiming::AT_ONCE)], None).unwrap();
//! let mut stream = std::net::TcpStream::connect(("127.0.0.7", server.port(0))).unwrap();
//! stream.write_all(b"GET /300/1 HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n").unwrap();
//! let mut response = Vec::new();
//! stream.read_to_end(&mut response).unwrap();
//! assert!(response.ends_with(&page("a.test", "/300/1")));
//! assert_eq!(server.counts().pages, 1);
//! ```

mod connection;
mod counts;
mod deadline_timer;
mod event_loop;
mod listening_ports;
mod page_text;
mod request_head;
#[cfg(test)]
mod tests;

use std::io;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use mio::Waker;
use rustls::ServerConfig;

pub use counts::ServerCounts;
pub use page_text::{page, page_key};

use counts::PageServerCounts;
use event_loop::EventLoop;
use listening_ports::PagePort;

/// The behaviour of one port of the page server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PortBehavior {
    /// Sends a page for every request, with this timing.
    Pages(PageTiming),
    /// Answers every request with status 503.
    Unavailable,
    /// Accepts connections and reads requests, but never answers.
    Silent,
    /// Resets each connection as soon as it is accepted.
    ResetAccepted,
    /// Resets each connection when its first request has arrived, without an answer.
    ResetRequest,
    /// Does not answer SYN packets, since the accept queue of the listener is full and stays full.
    DropSyn,
    /// Refuses connections, since no socket listens on the port.
    Refuse,
}

/// The delays of a port that sends pages, and its limit on concurrent requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageTiming {
    /// The time from the arrival of a request to its response, not counting time in the queue.
    pub delay: Duration,
    /// The additional time that the first request of a connection takes to arrive: the round trip
    /// that opens the connection.
    pub setup_delay: Duration,
    /// The largest number of requests that the port serves at the same time.
    pub at_a_time: usize,
    /// The treatment of requests that exceed `at_a_time`.
    pub overload: OverloadPolicy,
}

/// The treatment of requests that exceed [`PageTiming::at_a_time`] on a port of the page server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OverloadPolicy {
    /// Requests that exceed the limit wait in a queue until others have been served.
    Queue,
    /// Requests that exceed the limit are answered with status 503, after the delay.
    Unavailable,
}

impl PageTiming {
    /// The timing of a port that sends each page without a delay and without a limit on concurrent
    /// requests.
    pub const AT_ONCE: PageTiming = PageTiming::after(Duration::ZERO);

    /// Returns the timing of a port that sends each page `delay` after its request, without a limit
    /// on concurrent requests.
    pub const fn after(delay: Duration) -> PageTiming {
        PageTiming { delay, setup_delay: Duration::ZERO, at_a_time: usize::MAX, overload: OverloadPolicy::Queue }
    }

    /// Returns the timing of a server at a distance of `round_trip` that serves `at_a_time`
    /// requests at the same time. `overload` determines the treatment of requests that exceed this
    /// number.
    pub const fn remote(round_trip: Duration, at_a_time: usize, overload: OverloadPolicy) -> PageTiming {
        PageTiming { delay: round_trip, setup_delay: round_trip, at_a_time, overload }
    }
}

/// A running page server. Dropping it stops it.
pub struct PageServer {
    ports: Vec<u16>,
    counts: Arc<PageServerCounts>,
    waker: Waker,
    thread: Option<JoinHandle<()>>,
}

impl PageServer {
    /// Starts a page server with one port for each behaviour. If there is a TLS configuration,
    /// every port uses TLS.
    ///
    /// # Errors
    /// If a port cannot be bound or the thread cannot be started.
    pub fn start(behaviors: Vec<PortBehavior>, tls: Option<Arc<ServerConfig>>) -> io::Result<PageServer> {
        let ports = behaviors.into_iter().map(PagePort::open).collect::<io::Result<Vec<_>>>()?;
        let numbers = ports.iter().map(|port| port.number).collect();
        let counts = Arc::new(PageServerCounts::new());
        let (event_loop, waker) = EventLoop::new(ports, tls, Arc::clone(&counts))?;
        let thread = thread::Builder::new().name("page-server".to_owned()).spawn(move || event_loop.run())?;
        Ok(PageServer { ports: numbers, counts, waker, thread: Some(thread) })
    }

    /// Returns the TCP port of the behaviour with this index in the list given to
    /// [`start`](PageServer::start).
    ///
    /// # Panics
    /// If there is no such behaviour.
    pub fn port(&self, index: usize) -> u16 {
        self.ports[index]
    }

    /// Starts a new measurement run: sets all counts to zero, and the start of the run to now.
    pub fn start_run(&self) {
        self.counts.start_run();
    }

    /// Returns the counts since the last call of [`start_run`](PageServer::start_run), or since the
    /// server was started.
    pub fn counts(&self) -> ServerCounts {
        self.counts.read()
    }
}

impl Drop for PageServer {
    fn drop(&mut self) {
        // Fails only if the thread has ended already.
        let _ = self.waker.wake();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
