//! Accepts connections and serves each connection on its own thread.

use std::collections::HashMap;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use rustls::ServerConfig;

use super::faulty_body_sender::{self, BodySendOutcome};
use super::h2;
use super::plan::FaultPlan;
use super::reply_choice::{FaultyResource, PlannedReply};
use super::request::FaultyOriginRequest;
use super::request_log::FaultyRequestLog;
use crate::lock_even_if_poisoned::lock;
use crate::peer_stream::PeerStream;

/// The maximum length in bytes of a request head that the fault origin reads.
const MAX_HEAD: usize = 64 << 10;
/// The interval at which a stalled body checks whether the client has closed the connection.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// The state that all connections of a fault origin (a test server that injects faults) share.
#[derive(Default)]
pub(super) struct FaultyOriginState {
    pub(super) resources: Mutex<HashMap<String, Arc<FaultyResource>>>,
    pub(super) accepted: AtomicU64,
    pub(super) limit: Option<usize>,
    pub(super) stop: AtomicBool,
    /// The sockets of the open connections. The origin closes them when it stops.
    pub(super) open: Mutex<HashMap<u64, TcpStream>>,
}

impl FaultyOriginState {
    /// Returns the resource under this name. The query of the first request for the name determines
    /// its fault plan (the faults to simulate); an error means that this query is malformed.
    pub(super) fn resource(&self, name: &str, query: &str) -> Result<Arc<FaultyResource>, String> {
        let mut resources = lock(&self.resources);
        if let Some(known) = resources.get(name) {
            return Ok(known.clone());
        }
        let resource = Arc::new(FaultyResource::new(FaultPlan::parse(query)?));
        resources.insert(name.to_owned(), resource.clone());
        Ok(resource)
    }

    pub(super) fn seen(&self, name: &str) -> FaultyRequestLog {
        let resource = lock(&self.resources).get(name).cloned();
        resource.map_or_else(FaultyRequestLog::default, |resource| resource.seen())
    }

    pub(super) fn set_plan(&self, name: &str, plan: FaultPlan) {
        lock(&self.resources).insert(name.to_owned(), Arc::new(FaultyResource::new(plan)));
    }

    pub(super) fn remove_plan(&self, name: &str) {
        lock(&self.resources).remove(name);
    }

    /// Records that the connection with this number has been closed.
    pub(super) fn on_connection_closed(&self, number: u64) {
        lock(&self.open).remove(&number);
    }

    pub(super) fn end_connections(&self) {
        for socket in lock(&self.open).values() {
            // The connection may already have ended.
            let _ = socket.shutdown(Shutdown::Both);
        }
    }
}

pub(super) fn accept(listener: &TcpListener, tls: Option<&Arc<ServerConfig>>, shared: &Arc<FaultyOriginState>) {
    loop {
        let Ok((stream, _)) = listener.accept() else {
            thread::sleep(Duration::from_millis(10));
            continue;
        };
        if shared.stop.load(SeqCst) {
            return;
        }
        let number = shared.accepted.fetch_add(1, SeqCst);
        let Ok(twin) = stream.try_clone() else { continue };
        let Ok(wire) = PeerStream::from_socket(stream, tls) else { continue };
        let mut open = lock(&shared.open);
        if shared.limit.is_some_and(|most| open.len() >= most) {
            // Dropping the socket closes the connection; the option only turns the close into a
            // reset.
            let _ = wire.reset();
            continue;
        }
        open.insert(number, twin);
        drop(open);
        let shared = shared.clone();
        thread::spawn(move || {
            // A client that disconnects is the point of many tests.
            let _ = (FaultyConnection { wire, number, ahead: Vec::new(), shared: &shared }).run();
            shared.on_connection_closed(number);
        });
    }
}

struct FaultyConnection<'a> {
    wire: PeerStream,
    number: u64,
    /// Bytes received from the client after the request head that is being answered.
    ahead: Vec<u8>,
    shared: &'a FaultyOriginState,
}

impl FaultyConnection<'_> {
    fn run(mut self) -> io::Result<()> {
        while let Some(head) = self.head()? {
            if head == h2::PREFACE {
                return h2::serve(self.wire, self.ahead, self.number, self.shared);
            }
            let Some(request) = FaultyOriginRequest::parse(&head) else {
                self.refuse("400 Bad Request", "not a GET or HEAD of HTTP/1")?;
                break;
            };
            let (path, query) = request.target.split_once('?').unwrap_or((&request.target, ""));
            if let Some(name) = path.strip_prefix("/f/") {
                match self.shared.resource(name, query) {
                    Ok(resource) => match self.reply(&resource, &request)? {
                        BodySendOutcome::KeepOpen if !request.close => {}
                        BodySendOutcome::KeepOpen | BodySendOutcome::Close => break,
                        BodySendOutcome::Reset => return self.finish_with_reset(),
                    },
                    Err(why) => self.refuse("400 Bad Request", &why)?,
                }
            } else if let Some(name) = path.strip_prefix("/seen/") {
                let text = self.shared.seen(name).to_json().to_string();
                self.refuse("200 OK", &text)?;
            } else {
                self.refuse("404 Not Found", "there is /f/NAME and /seen/NAME")?;
            }
            if request.close {
                break;
            }
        }
        // Counted as closed before the client can know.
        self.shared.on_connection_closed(self.number);
        self.wire.close()
    }

    fn finish_with_reset(self) -> io::Result<()> {
        self.shared.on_connection_closed(self.number);
        self.wire.reset()
    }

    /// Reads the head of the next HTTP/1 request; `None` if the client has closed the connection.
    fn head(&mut self) -> io::Result<Option<String>> {
        loop {
            if let Some(at) = self.ahead.windows(4).position(|window| window == b"\r\n\r\n") {
                let head = self.ahead.drain(..at + 4).collect();
                return String::from_utf8(head).map(Some).map_err(io::Error::other);
            }
            if self.ahead.len() > MAX_HEAD || !self.read_more()? {
                return Ok(None);
            }
        }
    }

    fn read_more(&mut self) -> io::Result<bool> {
        let mut buffer = [0; 4096];
        let len = self.wire.read(&mut buffer)?;
        self.ahead.extend_from_slice(&buffer[..len]);
        Ok(len > 0)
    }

    fn refuse(&mut self, status: &str, text: &str) -> io::Result<()> {
        let head = format!("HTTP/1.1 {status}\r\nContent-Type: text/plain\r\nContent-Length: {}\r\n\r\n", text.len());
        self.wire.write_all(&[head.as_bytes(), text.as_bytes()].concat())?;
        self.wire.flush()
    }

    fn reply(&mut self, resource: &Arc<FaultyResource>, request: &FaultyOriginRequest) -> io::Result<BodySendOutcome> {
        match resource.answer(request, self.number) {
            PlannedReply::Reset => Ok(BodySendOutcome::Reset),
            PlannedReply::Empty { head } => {
                self.wire.write_all(head.as_bytes())?;
                self.wire.flush()?;
                Ok(BodySendOutcome::KeepOpen)
            }
            PlannedReply::Body { head, send } => {
                let close = send.close;
                let sent = self.wire.write_all(head.as_bytes()).and_then(|()| {
                    let (shared, ahead) = (self.shared, &mut self.ahead);
                    let stall = |wire: &mut PeerStream| stall(wire, ahead, shared, resource.plan.stall);
                    faulty_body_sender::body(&mut self.wire, resource, send, stall)
                });
                resource.on_body_end();
                Ok(match sent? {
                    BodySendOutcome::KeepOpen if close => BodySendOutcome::Close,
                    end => end,
                })
            }
        }
    }
}

/// Waits for `time`, or without a limit if it is `None`. Bytes that arrive in the meantime are
/// appended to `ahead`. Returns `false` if the client closes the connection meanwhile, or if the
/// origin stops.
fn stall(wire: &mut PeerStream, ahead: &mut Vec<u8>, shared: &FaultyOriginState, time: Option<Duration>) -> bool {
    let end = time.map(|time| Instant::now() + time);
    let mut buffer = [0; 4096];
    let stays = loop {
        let left = end.map_or(POLL_INTERVAL, |end| end.saturating_duration_since(Instant::now()).min(POLL_INTERVAL));
        if left.is_zero() {
            break true;
        }
        if shared.stop.load(SeqCst) || wire.socket().set_read_timeout(Some(left)).is_err() {
            break false;
        }
        match wire.read(&mut buffer) {
            Ok(0) => break false,
            Ok(len) => ahead.extend_from_slice(&buffer[..len]),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
            Err(_) => break false,
        }
    };
    // If it fails, the next read shows it.
    let _ = wire.socket().set_read_timeout(None);
    stays
}
