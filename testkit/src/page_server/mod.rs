//! An HTTP/1.1 server for measurements, far cheaper than its clients: one thread with one epoll
//! instance, and no allocation for a request on a warm connection.
//!
//! A server has several ports, each with its own [`PortService`]: pages at once or after a delay,
//! a limited number of requests at a time, silence, resets, or refusals. Each port accepts
//! connections to every address of 127.0.0.0/8 and none from other machines.
//!
//! A delay stands for the round trip: the response is sent this much later, and the first request
//! of a connection waits twice, since opening a connection also costs a round trip. To the server,
//! a request lasts from its arrival to its response.
//!
//! ```
//! use std::io::{Read, Write};
//! use testkit::page_server::{PageServer, PageTiming, PortService, page};
//!
//! let server = PageServer::start(vec![PortService::Pages(PageTiming::AT_ONCE)], None).unwrap();
//! let mut stream = std::net::TcpStream::connect(("127.0.0.7", server.port(0))).unwrap();
//! stream.write_all(b"GET /300/1 HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n").unwrap();
//! let mut response = Vec::new();
//! stream.read_to_end(&mut response).unwrap();
//! assert!(response.ends_with(&page("a.test", "/300/1")));
//! assert_eq!(server.counts().pages, 1);
//! ```

mod connection;
mod counts;
mod deadlines;
mod event_loop;
mod page_text;
mod ports;
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

use counts::CountRecorder;
use event_loop::EventLoop;
use ports::PagePort;

/// The service of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PortService {
    /// Sends pages.
    Pages(PageTiming),
    /// Answers every request with 503.
    Unavailable,
    /// Accepts connections and reads, but never answers.
    Silent,
    /// Resets each connection as soon as it is accepted.
    ResetAccepted,
    /// Resets each connection after its first request.
    ResetRequest,
    /// Does not answer SYN packets: the accept queue is full and stays so.
    DropSyn,
    /// Refuses connections: nobody listens.
    Refuse,
}

/// The timing of a port with pages, and the number of requests that it serves at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageTiming {
    /// The time from the arrival of a request to its response, if it does not have to queue.
    pub delay: Duration,
    /// The time that a connection's first request takes to arrive.
    pub setup_delay: Duration,
    /// The number of requests that are served at a time.
    pub at_a_time: usize,
    /// The treatment of further requests.
    pub overload: OverloadPolicy,
}

/// The treatment of requests beyond [`PageTiming::at_a_time`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OverloadPolicy {
    /// Lets them wait until others have been served.
    Queue,
    /// Answers them with 503, after the delay.
    Unavailable,
}

impl PageTiming {
    /// Each page at once.
    pub const AT_ONCE: PageTiming = PageTiming::after(Duration::ZERO);

    /// Each page this long after its request.
    pub const fn after(delay: Duration) -> PageTiming {
        PageTiming { delay, setup_delay: Duration::ZERO, at_a_time: usize::MAX, overload: OverloadPolicy::Queue }
    }

    /// A server at this round trip that serves so many requests at a time.
    pub const fn remote(round_trip: Duration, at_a_time: usize, overload: OverloadPolicy) -> PageTiming {
        PageTiming { delay: round_trip, setup_delay: round_trip, at_a_time, overload }
    }
}

/// A running server. It stops when it is dropped.
pub struct PageServer {
    ports: Vec<u16>,
    counts: Arc<CountRecorder>,
    waker: Waker,
    thread: Option<JoinHandle<()>>,
}

impl PageServer {
    /// Starts a server with a port for each service. With `tls`, every port speaks TLS.
    ///
    /// # Errors
    /// If a port cannot be bound or the thread cannot be started.
    pub fn start(services: Vec<PortService>, tls: Option<Arc<ServerConfig>>) -> io::Result<PageServer> {
        let ports = services.into_iter().map(PagePort::open).collect::<io::Result<Vec<_>>>()?;
        let numbers = ports.iter().map(|port| port.number).collect();
        let counts = Arc::new(CountRecorder::new());
        let (event_loop, waker) = EventLoop::new(ports, tls, Arc::clone(&counts))?;
        let thread = thread::Builder::new().name("page-server".to_owned()).spawn(move || event_loop.run())?;
        Ok(PageServer { ports: numbers, counts, waker, thread: Some(thread) })
    }

    /// Returns the port number of the service with this index.
    ///
    /// # Panics
    /// If there is no such service.
    pub fn port(&self, index: usize) -> u16 {
        self.ports[index]
    }

    /// Sets all counts to zero, and the start of the run to now.
    pub fn start_run(&self) {
        self.counts.start_run();
    }

    /// Returns the counts since the server, or the last run, was started.
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
