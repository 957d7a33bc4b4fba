//! The client of the agent: this process sends one request to the agent, and the agent writes the
//! body of the response to this process's output. If the agent dies, this process knows exactly how
//! many bytes of the body were written, so that it can resume the download.
//!
//! ```text
//!  output is   the body's path                             bytes written so far
//!  a file      agent ──▶ the file                          the file offset, which is shared
//!  a pipe, ..  agent ──▶ new pipe ──splice──▶ the output   counted by this process as it copies
//! ```
//!
//! The agent never writes to an output that is a pipe, although this would save a copy of each
//! block: if the agent were killed, no process would know how many bytes it had written, and the
//! download could not resume.
//!
//! ```no_run
//! use std::os::fd::AsFd;
//! use haul_cli::agent::AgentArgs;
//! use haul_cli::agent::client::{AgentCallEnd, OutputDescriptor, AgentConnection};
//! use haul_cli::agent::request::AgentRequest;
//!
//! let args = AgentArgs { socket: Some("/run/user/1000/haul/agent".into()), idle: haul_cli::agent::DEFAULT_IDLE_TIME };
//! let mut session = AgentConnection::open(&args)?;
//! let request = AgentRequest { url: "https://example.test/".into(), options: haul::RequestOptions::default() };
//! let out = std::io::stdout();
//! let carried = session.call(&request, OutputDescriptor::Relayed(out.as_fd())).expect("it can go by the agent");
//! assert!(matches!(carried.end, AgentCallEnd::Done(_)));
//! # Ok::<(), haul_cli::agent::socket::AgentUnavailable>(())
//! ```

use std::io::{self, IoSlice};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::Instant;

use haul::net::socket::WITHOUT_SIGPIPE;
use haul::sink::pipe_capacity::enlarge;
use haul::{Error, RequestOptions};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{SeekFrom, seek};
use rustix::io::{Errno, ioctl_fionread};
use rustix::net::{RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, recv, sendmsg};

use super::AgentArgs;
use super::connect_or_start_agent;
use super::protocol::{
    AgentFrameSplitter, AgentMessage, AgentTransferResult, CallerMessage, FileIdentity, ResponseStart,
};
use super::relay_output::{RelayObserver, RelayOutput};
use super::request::AgentRequest;
use super::socket::AgentUnavailable;

/// The maximum length, 64 KiB, of a body that this process holds back: it leaves the body in the
/// pipe from the agent until the body is complete. Every pipe can hold this much. Only a body
/// without a validator is held back. If the agent dies before the body is complete, no byte has
/// reached the output, and the request can be repeated from the start.
const MAX_BYTES_HELD_BACK: u64 = 64 << 10;

/// The maximum number of bytes that one call of splice(2) moves from the agent's pipe to the
/// output, 1 MiB. It is the default maximum of a pipe's capacity on Linux.
#[cfg(linux_calls)]
const PIECE: usize = 1 << 20;

/// The descriptor that receives the body of a response, and the process that writes to it.
#[derive(Debug, Clone, Copy)]
pub enum OutputDescriptor<'a> {
    /// A regular file that no other process has open, and that is not open for appending. The agent
    /// writes the body to this file.
    File(BorrowedFd<'a>),
    /// Any other descriptor. The agent writes the body to a new pipe, from which this process
    /// copies it.
    Relayed(BorrowedFd<'a>),
}

/// The progress and the end of one request that this process sent to the agent, a background
/// process that sends requests for other haul processes.
#[derive(Debug)]
pub struct AgentCallProgressAndEnd {
    /// The number of body bytes that were written to the output of the request.
    pub moved: u64,
    /// The head and the length of the response, which the agent reports before the body. `None` if
    /// the agent has not reported them.
    pub began: Option<ResponseStart>,
    /// The end of the call: success, a refusal, or an error.
    pub end: AgentCallEnd,
}

impl AgentCallProgressAndEnd {
    fn without_bytes(end: AgentCallEnd) -> Self {
        Self { moved: 0, began: None, end }
    }
}

/// The end of a call to the agent: success, a refusal or an error.
#[derive(Debug)]
pub enum AgentCallEnd {
    /// The agent finished the transfer, with success or an error.
    Done(Box<AgentTransferResult>),
    /// The agent refused the request and sent nothing to the server.
    Refused,
    /// The connection to the agent broke before the agent sent the result of the request.
    Died,
    /// This process could not write the body to its output.
    Output(Error),
}

/// A connection of a caller to the agent. It carries one request at a time.
#[derive(Debug)]
pub struct AgentConnection {
    socket: UnixStream,
    frames: AgentFrameSplitter,
}

impl AgentConnection {
    /// Connects to the agent, and starts it if none is running.
    ///
    /// # Errors
    /// The agent cannot be started, or its socket cannot be trusted.
    pub fn open(args: &AgentArgs) -> Result<Self, AgentUnavailable> {
        Ok(Self::from_socket(connect_or_start_agent::connect_or_start(&args.socket_path()?, args.idle)?))
    }

    /// Wraps a socket that is already connected to the agent.
    #[must_use]
    pub fn from_socket(socket: UnixStream) -> Self {
        Self { socket, frames: AgentFrameSplitter::default() }
    }

    /// Sends a request to the agent, which writes the body of the response to `goal`. Returns
    /// `None`, without any effect, if the agent does not support the request's options.
    pub fn call(&mut self, request: &AgentRequest, goal: OutputDescriptor<'_>) -> Option<AgentCallProgressAndEnd> {
        match goal {
            OutputDescriptor::File(file) => Some(self.call_with_file(&call_message(request)?, file)),
            OutputDescriptor::Relayed(out) => self.relay(request, &mut RelayOutput::Open(out), None),
        }
    }

    /// Sends a request to the agent, and copies the body of the response to `out`. Returns `None`,
    /// without any effect, if the agent does not support the request's options.
    pub fn relay(
        &mut self,
        request: &AgentRequest,
        out: &mut RelayOutput<'_>,
        observer: Option<&dyn RelayObserver>,
    ) -> Option<AgentCallProgressAndEnd> {
        Some(self.call_with_pipe_relay(&call_message(request)?, out, observer))
    }

    /// Sends a status or stop message, waits for the agent's answer, and returns it.
    ///
    /// # Errors
    /// The error of the socket, or [`io::ErrorKind::UnexpectedEof`] if the agent closes the
    /// connection.
    pub fn send_and_receive(&mut self, order: &CallerMessage) -> io::Result<AgentMessage> {
        self.send(order, None)?;
        loop {
            if let Some(event) = self.next_event(Instant::now())? {
                return Ok(event);
            }
            if !self.receive()? {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }

    fn call_with_file(&mut self, order: &CallerMessage, file: BorrowedFd<'_>) -> AgentCallProgressAndEnd {
        let position = || seek(file, SeekFrom::Current(0)).unwrap_or(0);
        let (started, before) = (Instant::now(), position());
        let mut began = None;
        let mut end = AgentCallEnd::Died;
        if self.send(order, Some(file)).is_ok() {
            loop {
                match self.next_event(started) {
                    Ok(Some(AgentMessage::Began(now))) => began = Some(now),
                    Ok(Some(AgentMessage::Done(done))) => {
                        end = AgentCallEnd::Done(done);
                        break;
                    }
                    Ok(Some(AgentMessage::Refused)) => {
                        end = AgentCallEnd::Refused;
                        break;
                    }
                    Ok(None) if matches!(self.receive(), Ok(true)) => {}
                    _ => break,
                }
            }
        }
        AgentCallProgressAndEnd { moved: position().saturating_sub(before), began, end }
    }

    fn call_with_pipe_relay(
        &mut self,
        order: &CallerMessage,
        out: &mut RelayOutput<'_>,
        observer: Option<&dyn RelayObserver>,
    ) -> AgentCallProgressAndEnd {
        let started = Instant::now();
        let Ok((pipe, ours)) = io::pipe() else {
            return AgentCallProgressAndEnd::without_bytes(AgentCallEnd::Refused);
        };
        let (pipe, ours) = (OwnedFd::from(pipe), OwnedFd::from(ours));
        // For all of an opening, so that its reader holds up no connection. One that stays small
        // has the agent wait for us.
        enlarge(&pipe);
        if self.send(order, Some(ours.as_fd())).is_err() {
            return AgentCallProgressAndEnd::without_bytes(AgentCallEnd::Died);
        }
        // From now on the agent alone can write to it, so its end is the agent's word or death.
        drop(ours);
        let mut relay = AgentBodyReceiver {
            session: self,
            pipe,
            out,
            observer,
            started,
            moved: 0,
            began: None,
            done: None,
            is_alive: true,
            is_drained: false,
        };
        let end = relay.run();
        AgentCallProgressAndEnd { moved: relay.moved, began: relay.began, end }
    }

    fn is_readable(&self) -> bool {
        let mut fds = [PollFd::new(&self.socket, PollFlags::IN)];
        poll(&mut fds, Some(&rustix::event::Timespec::default())).is_ok_and(|count| count > 0)
    }

    fn send(&self, order: &CallerMessage, descriptor: Option<BorrowedFd<'_>>) -> io::Result<()> {
        let frame = order.to_frame();
        let mut rest = &frame[..];
        let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        let descriptors = descriptor.map(|descriptor| [descriptor]);
        if let Some(descriptors) = &descriptors {
            control.push(SendAncillaryMessage::ScmRights(descriptors));
        }
        while !rest.is_empty() {
            match sendmsg(&self.socket, &[IoSlice::new(rest)], &mut control, WITHOUT_SIGPIPE) {
                Ok(sent) => {
                    rest = &rest[sent..];
                    control.clear();
                }
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Reads the bytes that the agent has sent on its socket, with one system call. Returns `false`
    /// if the agent has closed the connection.
    fn receive(&mut self) -> io::Result<bool> {
        let mut bytes = [0; 16 << 10];
        loop {
            match recv(&self.socket, &mut bytes, RecvFlags::empty()) {
                Ok((_, 0)) => return Ok(false),
                Ok((_, count)) => {
                    self.frames.push(&bytes[..count]);
                    return Ok(true);
                }
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn next_event(&mut self, started: Instant) -> io::Result<Option<AgentMessage>> {
        let malformed = |error| io::Error::new(io::ErrorKind::InvalidData, error);
        let Some((kind, content)) = self.frames.next().map_err(malformed)? else { return Ok(None) };
        AgentMessage::from_frame(kind, &content, started).map(Some).map_err(malformed)
    }
}

/// Copies the body of a response to the output of this process. It reads the body from a pipe to
/// which the agent (a background process that sends requests for other haul processes) writes.
struct AgentBodyReceiver<'a, 'b> {
    session: &'a mut AgentConnection,
    pipe: OwnedFd,
    out: &'a mut RelayOutput<'b>,
    observer: Option<&'a dyn RelayObserver>,
    started: Instant,
    moved: u64,
    began: Option<ResponseStart>,
    done: Option<Box<AgentTransferResult>>,
    /// True while the agent may still send messages about the request.
    is_alive: bool,
    /// True once all bytes of the pipe have been read and the agent has closed its end.
    is_drained: bool,
}

impl AgentBodyReceiver<'_, '_> {
    /// Copies the body and reads the agent's messages until the pipe has ended and the agent has
    /// sent the result or died.
    fn run(&mut self) -> AgentCallEnd {
        let mut mover = PipeMover::default();
        while !self.is_drained || (self.done.is_none() && self.is_alive) {
            if self.is_held_back() && !self.is_alive {
                return AgentCallEnd::Died;
            }
            if let Err(error) = self.wait() {
                return AgentCallEnd::Output(self.out.write_error(error));
            }
            if self.is_alive && self.session.is_readable() {
                if let Some(refused) = self.read_agent_messages() {
                    return refused;
                }
            } else if self.may_move_bytes()
                && let Err(error) = self.move_bytes(&mut mover)
            {
                return AgentCallEnd::Output(error);
            }
        }
        self.done.take().map_or(AgentCallEnd::Died, AgentCallEnd::Done)
    }

    /// Copies the bytes that the pipe holds to the output, or notes that the pipe has ended.
    fn move_bytes(&mut self, mover: &mut PipeMover) -> haul::Result<()> {
        // The wait has ended, so a pipe without bytes has ended, too.
        if self.out.descriptor().is_none() && ioctl_fionread(&self.pipe).is_ok_and(|bytes| bytes == 0) {
            self.is_drained = true;
            return Ok(());
        }
        let moved = mover.step(&self.pipe, self.out.open()?).map_err(|error| self.out.write_error(error))?;
        self.is_drained = moved == 0;
        self.moved += moved as u64;
        if let Some(observer) = self.observer {
            observer.body_bytes(moved);
        }
        Ok(())
    }

    /// Returns true if the body must stay in the pipe, and must not be copied to the output yet.
    /// There are two such cases before the agent reports the result of the request:
    ///
    /// * The response has not begun.
    /// * The body has no validator, and is known to have at most [`MAX_BYTES_HELD_BACK`] bytes.
    ///
    /// After that report, returns false.
    fn is_held_back(&self) -> bool {
        let may_begin_anew = |began: &ResponseStart| {
            began.validator.is_none() && began.length.is_some_and(|length| length <= MAX_BYTES_HELD_BACK)
        };
        self.done.is_none() && self.began.as_ref().is_none_or(may_begin_anew)
    }

    fn may_move_bytes(&self) -> bool {
        !self.is_drained && !self.is_held_back()
    }

    /// Waits for a message of the agent, or for bytes in the pipe. Bytes in the pipe do not end the
    /// wait while the body is held back ([`AgentBodyReceiver::is_held_back`]).
    ///
    /// # Errors
    /// [`io::ErrorKind::BrokenPipe`] if the reader of the output has closed it.
    fn wait(&self) -> io::Result<()> {
        let mut fds = Vec::with_capacity(3);
        fds.extend(self.out.descriptor().map(|out| PollFd::from_borrowed_fd(out, PollFlags::empty())));
        let has_output = !fds.is_empty();
        // poll always reports a descriptor that has hung up. So a descriptor that must not be
        // watched is left out.
        if self.is_alive {
            fds.push(PollFd::new(&self.session.socket, PollFlags::IN));
        }
        if self.may_move_bytes() || !self.is_alive {
            fds.push(PollFd::new(&self.pipe, PollFlags::IN));
        }
        rustix::io::retry_on_intr(|| poll(&mut fds, None))?;
        if has_output && fds[0].revents().contains(PollFlags::ERR) {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        Ok(())
    }

    /// Reads and handles the agent's messages about the request. Returns [`AgentCallEnd::Refused`]
    /// if one of the messages is a refusal, and `None` if not.
    fn read_agent_messages(&mut self) -> Option<AgentCallEnd> {
        self.is_alive = self.session.receive().unwrap_or(false);
        loop {
            match self.session.next_event(self.started) {
                Ok(Some(AgentMessage::Began(began))) => {
                    if let Some(observer) = self.observer {
                        observer.body_begins(began.length);
                    }
                    self.began = Some(began);
                }
                Ok(Some(AgentMessage::Done(done))) => self.done = Some(done),
                Ok(Some(AgentMessage::Refused)) => return Some(AgentCallEnd::Refused),
                Ok(Some(AgentMessage::State(_) | AgentMessage::Stops)) => self.is_alive = false,
                Ok(None) => return None,
                Err(_) => {
                    self.is_alive = false;
                    return None;
                }
            }
        }
    }
}

/// Returns the message that sends a request to the agent; `None` if the agent does not support the
/// request's options.
fn call_message(request: &AgentRequest) -> Option<CallerMessage> {
    Some(CallerMessage::Call { request: request.to_bytes()?, files: tls_file_identities(&request.options)? })
}

/// Returns the identities (path, inode, length and date) of haul's executable and of the TLS files,
/// such as CA certificates. The agent (the background process that sends the request) compares them
/// with the identities of the files that the agent finds under these paths. Returns `None` if
/// `SSLKEYLOGFILE` is set or a path is relative, because the agent does not support these cases.
fn tls_file_identities(options: &RequestOptions) -> Option<Vec<FileIdentity>> {
    // Its secrets would be the agent's to write.
    if haul::trusted_environment_variables::variable("SSLKEYLOGFILE").is_some() {
        return None;
    }
    let tls = [Some(&options.tls), options.proxy.as_ref().map(|proxy| &proxy.tls)];
    let named = tls.into_iter().flatten().flat_map(|tls| {
        let identity = tls.identity.as_ref();
        let key = identity.and_then(|identity| identity.key.as_deref());
        let certificate = identity.map(|identity| identity.certificate.as_path());
        [tls.ca_file.as_deref(), tls.ca_path.as_deref(), certificate, key]
    });
    let program = connect_or_start_agent::own_program().ok()?;
    let mut files = vec![FileIdentity::read(&program)];
    // The system's trusted certificates may have changed, and a busy agent lives long.
    files.extend(haul::net::tls::system_bundle().as_deref().map(FileIdentity::read));
    for path in named.flatten() {
        // The agent is at home in the root directory.
        path.is_absolute().then_some(())?;
        files.push(FileIdentity::read(path));
    }
    Some(files)
}

/// Returns the request options in the form that the agent needs. Paths are absolute, because the
/// agent has another working directory. If the options name no CA files, the files of
/// `SSL_CERT_FILE` and `SSL_CERT_DIR` are added.
#[must_use]
pub fn prepare_for_agent(mut options: RequestOptions) -> RequestOptions {
    let absolute = |path: &mut std::path::PathBuf| {
        if let Ok(whole) = std::path::absolute(&*path) {
            *path = whole;
        }
    };
    let variable = |name: &str| {
        haul::trusted_environment_variables::variable(name).filter(|value| !value.is_empty()).map(Into::into)
    };
    let proxy = options.proxy.as_mut().map(|proxy| &mut proxy.tls);
    for tls in [Some(&mut options.tls), proxy].into_iter().flatten() {
        if tls.verify && tls.ca_file.is_none() && tls.ca_path.is_none() {
            (tls.ca_file, tls.ca_path) = (variable("SSL_CERT_FILE"), variable("SSL_CERT_DIR"));
        }
        let identity = tls.identity.as_mut().map(|identity| (&mut identity.certificate, identity.key.as_mut()));
        let (certificate, key) = identity.map_or((None, None), |(certificate, key)| (Some(certificate), key));
        [tls.ca_file.as_mut(), tls.ca_path.as_mut(), certificate, key].into_iter().flatten().for_each(absolute);
    }
    options
}

/// Returns true if the descriptor is a regular file that is not open for appending. Only then can
/// the agent write the body to the file itself ([`OutputDescriptor::File`]).
#[must_use]
pub fn is_regular_file_without_append(fd: BorrowedFd<'_>) -> bool {
    use rustix::fs::{FileType, OFlags, fcntl_getfl, fstat};
    let is_file = fstat(fd).is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile);
    is_file && fcntl_getfl(fd).is_ok_and(|flags| !flags.contains(OFlags::APPEND))
}

/// Moves bytes from a pipe to the output, with splice(2) if the system and the output support it,
/// and through a buffer if they do not.
#[derive(Debug, Default)]
struct PipeMover {
    buffer: Option<Vec<u8>>,
}

impl PipeMover {
    /// Moves the bytes that the pipe holds to `out`, and waits for the first byte if the pipe is
    /// empty. Returns the number of moved bytes, which is 0 at the end of the pipe.
    fn step(&mut self, pipe: &OwnedFd, out: BorrowedFd<'_>) -> io::Result<usize> {
        #[cfg(linux_calls)]
        while self.buffer.is_none() {
            use haul::drive::zero_copy_to_sink;
            use rustix::pipe::{SpliceFlags, splice};
            match splice(pipe, None, out, None, PIECE, SpliceFlags::MOVE) {
                Ok(moved) => return Ok(moved),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => wait_for_room(out)?,
                // A terminal, a file for appending, a sandbox: by hand.
                Err(error) if zero_copy_to_sink::requires_copying(error) => break,
                Err(error) => return Err(error.into()),
            }
        }
        let buffer = self.buffer.get_or_insert_with(|| vec![0; 64 << 10]);
        let count = rustix::io::retry_on_intr(|| rustix::io::read(pipe, &mut buffer[..]))?;
        let mut rest = &buffer[..count];
        while !rest.is_empty() {
            match rustix::io::write(out, rest) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => rest = &rest[written..],
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => wait_for_room(out)?,
                Err(error) => return Err(error.into()),
            }
        }
        Ok(count)
    }
}

/// Waits until `out` is writable. The descriptor may be non-blocking even if this process has not
/// made it so: the mode belongs to the open file description, which other processes may share.
fn wait_for_room(out: BorrowedFd<'_>) -> io::Result<()> {
    match poll(&mut [PollFd::from_borrowed_fd(out, PollFlags::OUT)], None) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
