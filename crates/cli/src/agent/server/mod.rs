//! The agent's process. It serves callers, and sleeps while there are none.
//!
//! ```text
//!  main thread    listener, calls' sockets, full descriptors ─▶ orders ─▶ TransferQueue ─▶ worker thread (the engine's event loop)
//!                 no call for `idle` seconds ─▶ end                               connections, TLS, DNS answers are kept
//! ```
//!
//! An idle agent wakes up only once, at the end of the idle time, and exits. The data of a call
//! (URL, header fields, credentials) is freed when its transfer ends. Connections, TLS sessions and
//! DNS answers are kept, and are used only for requests with the same connection settings.

mod call_output_and_result;
mod transfer_queue;

use std::collections::{HashMap, VecDeque};
use std::io::{self, IoSliceMut, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use haul::body::delivery::BodyDelivery;
use haul::drive::worker::{self, Scheduler, WorkerOptions};
use haul::state::http3::Http3Cache;
use haul::transfer::Transfer;
use haul::{Client, Target};
use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Token};
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};

use super::connect_or_start_agent;
use super::protocol::{AgentFrameSplitter, AgentMessage, CallerMessage, FileIdentity};
use super::request::AgentRequest;
use super::socket::{AgentSocketPath, check_peer};
use call_output_and_result::{AgentCall, AgentCallSink};
use transfer_queue::TransferQueue;

const LISTENER: Token = Token(0);

/// The maximum number of callers that are connected at a time. The agent disconnects further
/// callers, which then fetch without the agent.
const MAX_PEERS: usize = 256;

/// The time limit for receiving the rest of a response after its caller has disconnected.
const DRAIN_TIME: Duration = Duration::from_secs(2);

/// Serves callers until `idle` has passed without a call, or until a caller stops the agent.
/// `listener` is a listening socket that is bound to `place`.
///
/// # Errors
/// The errors of the event loop. An error in one call ends only that call.
pub fn serve(listener: OwnedFd, place: AgentSocketPath, idle: Duration) -> io::Result<()> {
    // Signals of the caller's terminal are not for us. It fails for a leader of a process group:
    // then that is so already.
    let _ = rustix::process::setsid();
    let work = Arc::new(TransferQueue::default());
    let supply: Arc<dyn Scheduler> = work.clone();
    thread::Builder::new().name("haul-agent".to_owned()).spawn(move || {
        // One connection a host would do for most; calls at the same time have one each, or share
        // it by HTTP/2.
        let workers = WorkerOptions { threads: 1, depth: 1, per_host: usize::MAX, connects_at_once: false };
        if let Err(error) = worker::run(&Client::new(), &supply, workers) {
            supply.abort(error);
        }
    })?;
    AgentServer::new(listener, place, idle, work)?.run()
}

/// The state of a running agent, which one thread handles in an event loop.
struct AgentServer {
    poll: Poll,
    listener: Option<UnixListener>,
    place: AgentSocketPath,
    inode: u64,
    idle: Duration,
    began: Instant,
    work: Arc<TransferQueue>,
    peers: HashMap<usize, CallerConnection>,
    outputs: HashMap<usize, Arc<AgentCall>>,
    /// The ids of the calls whose callers have disconnected but whose responses are still received
    /// to the end. Each has a deadline, and the deadlines are in ascending order.
    orphaned: VecDeque<(Instant, u64)>,
    /// The metadata of haul's executable and of the TLS files, as the first caller that named each
    /// file saw it. If a later caller sees other metadata, its call is refused, and the agent
    /// accepts no more callers.
    files: HashMap<PathBuf, [u64; 4]>,
    next_token: usize,
    next_call: u64,
    /// The HTTP/3 endpoints that calls have learned, and the endpoints where HTTP/3 failed.
    http3: Http3Cache,
}

/// A connection on which a caller sends requests to the agent.
struct CallerConnection {
    socket: Arc<UnixStream>,
    frames: AgentFrameSplitter,
    descriptors: VecDeque<OwnedFd>,
    call: Option<Arc<AgentCall>>,
    /// The event loop's token for the descriptor that receives the body of `call`, the call that
    /// this connection has in progress.
    output_token: usize,
}

impl AgentServer {
    fn new(listener: OwnedFd, place: AgentSocketPath, idle: Duration, work: Arc<TransferQueue>) -> io::Result<Self> {
        let listener = UnixListener::from(listener);
        listener.set_nonblocking(true)?;
        let poll = Poll::new()?;
        poll.registry().register(&mut SourceFd(&listener.as_raw_fd()), LISTENER, Interest::READABLE)?;
        let inode = place.inode().unwrap_or(0);
        let own = FileIdentity::read(&connect_or_start_agent::own_program()?);
        Ok(Self {
            poll,
            listener: Some(listener),
            place,
            inode,
            idle,
            began: Instant::now(),
            work,
            peers: HashMap::new(),
            outputs: HashMap::new(),
            orphaned: VecDeque::new(),
            files: HashMap::from([(own.path, own.metadata)]),
            next_token: LISTENER.0 + 1,
            next_call: 0,
            http3: Http3Cache::new(),
        })
    }

    fn run(mut self) -> io::Result<()> {
        let mut events = Events::with_capacity(64);
        loop {
            // Callers that connected before the socket was removed are served. After them, no one
            // can connect.
            let is_leaving = self.listener.is_none();
            let idle = self.peers.is_empty().then_some(if is_leaving { Duration::ZERO } else { self.idle });
            let until = self.orphaned.front().map(|(until, _)| until.saturating_duration_since(Instant::now()));
            match self.poll.poll(&mut events, idle.into_iter().chain(until).min()) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                outcome => outcome?,
            }
            self.abandon_expired();
            if events.is_empty() && idle.is_some_and(|idle| until.is_none_or(|until| idle <= until)) {
                if is_leaving {
                    return Ok(());
                }
                self.shut_down();
                continue;
            }
            for event in &events {
                match event.token() {
                    LISTENER => self.accept(),
                    Token(token) => match self.outputs.get(&token) {
                        Some(call) => call.on_writable(),
                        None => self.read_messages(token),
                    },
                }
            }
            self.outputs.retain(|_, call| !call.is_finished_or_abandoned());
        }
    }

    /// Cancels each transfer whose caller has disconnected and whose deadline has passed.
    /// Cancelling a transfer closes its connection to the server.
    fn abandon_expired(&mut self) {
        let now = Instant::now();
        while let Some(&(_, id)) = self.orphaned.front().filter(|(until, _)| *until <= now) {
            self.orphaned.pop_front();
            self.work.abandon(id);
        }
    }

    /// Removes the agent's socket file and accepts no more callers, so that the next caller starts
    /// another agent.
    fn shut_down(&mut self) {
        // In this order: no process replaces a socket that still has a listener, so the removed one
        // is ours.
        self.place.remove(self.inode);
        self.accept();
        self.listener = None;
    }

    fn accept(&mut self) {
        while let Some(listener) = &self.listener {
            let stream = match listener.accept() {
                Ok((stream, _)) => stream,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                // With no descriptor left the caller waits in the queue until another one leaves.
                Err(_) => return,
            };
            let is_ours = check_peer(&stream, self.place.socket()).is_ok();
            if !is_ours || self.peers.len() >= MAX_PEERS || stream.set_nonblocking(true).is_err() {
                continue;
            }
            let token = self.next_token;
            self.next_token += 2;
            let watched =
                self.poll.registry().register(&mut SourceFd(&stream.as_raw_fd()), Token(token), Interest::READABLE);
            if watched.is_ok() {
                let peer = CallerConnection {
                    socket: Arc::new(stream),
                    frames: AgentFrameSplitter::default(),
                    descriptors: VecDeque::new(),
                    call: None,
                    output_token: token + 1,
                };
                self.peers.insert(token, peer);
            }
        }
    }

    /// Reads and handles the messages of a caller whose socket is readable or closed. Disconnects
    /// the caller at the end of the connection or after an invalid message.
    fn read_messages(&mut self, token: usize) {
        let Some(peer) = self.peers.get_mut(&token) else { return };
        let mut goes_on = peer.receive();
        loop {
            let Some(peer) = self.peers.get_mut(&token) else { return };
            let order = match peer.frames.next() {
                Ok(Some((kind, content))) => CallerMessage::from_frame(kind, &content),
                Ok(None) => break,
                Err(error) => Err(error),
            };
            let Ok(order) = order else {
                goes_on = false;
                break;
            };
            if !self.handle_message(token, order) {
                goes_on = false;
                break;
            }
        }
        if !goes_on && let Some(peer) = self.peers.remove(&token) {
            self.outputs.remove(&peer.output_token);
            if let Some(call) = peer.call.filter(|call| !call.is_finished_or_abandoned()) {
                match call.on_caller_left() {
                    true => self.orphaned.push_back((Instant::now() + DRAIN_TIME, call.id())),
                    false => self.work.abandon(call.id()),
                }
            }
            let _ = self.poll.registry().deregister(&mut SourceFd(&peer.socket.as_raw_fd()));
        }
    }

    /// Handles a message of a caller. Returns `false` if the caller must be disconnected.
    fn handle_message(&mut self, token: usize, order: CallerMessage) -> bool {
        let answer = match order {
            CallerMessage::Call { request, files } => match self.begin_call(token, &request, &files) {
                Some(true) => return true,
                Some(false) => AgentMessage::Refused,
                None => return false,
            },
            CallerMessage::Status => AgentMessage::State(self.state()),
            CallerMessage::Stop => {
                self.shut_down();
                AgentMessage::Stops
            }
        };
        self.peers.get(&token).is_some_and(|peer| (&*peer.socket).write_all(&answer.to_frame()).is_ok())
    }

    /// Begins the transfer of a call that a caller requests. Returns `Some(true)` if it has begun,
    /// `Some(false)` if the call is refused, and `None` if the caller must be disconnected.
    fn begin_call(&mut self, token: usize, request: &[u8], files: &[FileIdentity]) -> Option<bool> {
        let registry = self.poll.registry().try_clone().ok()?;
        let peer = self.peers.get_mut(&token)?;
        if peer.call.as_ref().is_some_and(|call| !call.is_finished_or_abandoned()) {
            return None;
        }
        let output = peer.descriptors.pop_front()?;
        let is_known = |file: &FileIdentity| self.files.get(&file.path).is_none_or(|known| *known == file.metadata);
        if !files.iter().all(is_known) {
            // The program, or what TLS trusts, is another by now: what we know is of the past.
            self.shut_down();
            return Some(false);
        }
        self.files.extend(files.iter().map(|file| (file.path.clone(), file.metadata)));
        let Ok(AgentRequest { url, mut options }) = AgentRequest::from_bytes(request) else { return Some(false) };
        options.http3_cache = self.http3.clone();
        let Ok(target) = Target::parse_with(&url, haul_policy::target::Scheme::Http, options.path_as_is) else {
            return Some(false);
        };
        self.next_call += 1;
        let call = AgentCall::new(self.next_call, Arc::clone(&peer.socket), output, registry, Token(peer.output_token));
        let call = Arc::new(call);
        peer.call = Some(Arc::clone(&call));
        self.outputs.insert(peer.output_token, Arc::clone(&call));
        let sink = BodyDelivery::new(Box::new(AgentCallSink::new(&call)));
        let transfer = Transfer::new(target, Arc::new(options), sink, Instant::now(), call.id());
        self.work.enqueue(&call, transfer).then_some(true)
    }

    fn state(&self) -> String {
        let counts = &self.work.counts;
        let lines = [
            ("pid", u64::from(std::process::id())),
            ("seconds", self.began.elapsed().as_secs()),
            ("idle-limit", self.idle.as_secs()),
            ("running", self.work.running() as u64),
            ("calls", counts.calls.load(Ordering::Relaxed)),
            ("requests", counts.requests.load(Ordering::Relaxed)),
            ("connections", counts.connections.load(Ordering::Relaxed)),
        ];
        lines.iter().map(|(name, value)| format!("{name}: {value}\n")).collect()
    }
}

/// The flag of recvmsg(2) that closes received descriptors at `exec`. Apple's systems have no such
/// flag. There it is empty, which does no harm because the agent runs no other program.
#[cfg(not(target_vendor = "apple"))]
const CLOSED_AT_EXEC: RecvFlags = RecvFlags::CMSG_CLOEXEC;
#[cfg(target_vendor = "apple")]
const CLOSED_AT_EXEC: RecvFlags = RecvFlags::empty();

impl CallerConnection {
    /// Reads the bytes and descriptors that have arrived from the caller. Returns `false` if the
    /// caller has closed the connection.
    fn receive(&mut self) -> bool {
        let mut bytes = [0; 16 << 10];
        let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(4))];
        loop {
            let mut control = RecvAncillaryBuffer::new(&mut space);
            let flags = RecvFlags::DONTWAIT | CLOSED_AT_EXEC;
            match recvmsg(&self.socket, &mut [IoSliceMut::new(&mut bytes)], &mut control, flags) {
                Ok(message) if message.bytes == 0 => return false,
                Ok(message) => {
                    self.frames.push(&bytes[..message.bytes]);
                    for part in control.drain() {
                        if let RecvAncillaryMessage::ScmRights(descriptors) = part {
                            self.descriptors.extend(descriptors);
                        }
                    }
                    if self.descriptors.len() > 4 {
                        return false;
                    }
                }
                Err(rustix::io::Errno::INTR) => {}
                Err(rustix::io::Errno::AGAIN) => return true,
                Err(_) => return false,
            }
        }
    }
}
