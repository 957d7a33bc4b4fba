//! Fetches a URL through the agent if possible. If not, this process fetches it itself. The output
//! is the same in both cases.
//!
//! ```text
//!  AgentFetcher ─▶ piece ─┬─ agent ─────── the agent died: resume at the exact byte ─┐
//!                         └─ client of this process ◀────────────────────────────────┘
//! ```
//!
//! The reader of a pipe may stop early: a package manager may want only the beginning of a package.
//! Content for a pipe is therefore fetched with two requests: one for its beginning, and one for
//! the rest when the beginning has been read and the pipe is still open. So a reader that stops
//! early causes neither a closed connection nor many needless bytes.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use haul::request::WantedContentRange;
use haul::sink::Sink;
use haul::sink::descriptor_writer::{BlockingOutputSink, DescriptorWriter};
use haul::sink::file::{AppendPosition, FileOptions, FileSink};
use haul::sink::temporary_and_final_names::ClobberMode;
use haul::state::auth::NetrcFileUse;
use haul::transfer::TransferOutcome;
use haul::transfer_facts::TransferFacts;
use haul::{Client, Error, ErrorKind, RequestOptions, ResponseHead, Result, Target};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FileType, fstat, makedev, stat};
use rustix::process::{Resource, getrlimit};

use super::AgentArgs;
use super::client::{
    AgentCallEnd, AgentCallProgressAndEnd, AgentConnection, OutputDescriptor, is_regular_file_without_append,
    prepare_for_agent,
};
use super::protocol::{AgentTransferResult, ResponseStart};
use super::relay_output::{RelayObserver, RelayOutput};
use super::request::AgentRequest;
use super::sinks_without_agent::{
    DeliveredPrefix, KeepFileIfNotModifiedSink, LengthAndValidator, NOT_MODIFIED, TrackingSink, strong_validator,
};
use super::socket::AgentUnavailable;
use crate::ftp::signify_first_fetch_length;

/// The time to wait, after the reader of an output pipe has read everything, before more of the
/// body is fetched. In that time the reader checks what it has read, and may close the pipe.
const READER_GRACE_TIME: Duration = Duration::from_millis(10);
/// The longest interval between two checks whether the output pipe is empty. The pipe must be
/// polled, because no event reports that it is empty.
const MAX_READER_WAIT: Duration = Duration::from_millis(50);

/// Fetches URLs through the agent (the background process that keeps connections open between
/// runs). If the agent cannot be used, `client` fetches them in this process.
pub(crate) struct AgentFetcher<'a> {
    client: &'a Client,
    session: Option<AgentConnection>,
}

/// The outcome of fetching one range of the content of a URL. The range may have been delivered
/// only in part.
struct RangeFetchOutcome {
    outcome: TransferOutcome,
    moved: u64,
    content_facts: LengthAndValidator,
}

impl<'a> AgentFetcher<'a> {
    /// Creates a fetcher that never uses the agent: `client` sends all requests.
    pub(crate) fn without_agent(client: &'a Client) -> Self {
        Self { client, session: None }
    }

    /// Creates a fetcher that uses the agent, and starts the agent if none is running. If this
    /// process has a limit on file sizes (`ulimit -f`), the fetcher does not use the agent: the
    /// limit does not apply to files that the agent writes.
    ///
    /// # Errors
    /// The agent cannot be started, or its socket cannot be trusted.
    pub(crate) fn with_agent(client: &'a Client, args: &AgentArgs) -> std::result::Result<Self, AgentUnavailable> {
        if getrlimit(Resource::Fsize).current.is_some() {
            return Ok(Self::without_agent(client));
        }
        Ok(Self { client, session: Some(AgentConnection::open(args)?) })
    }

    /// Fetches a URL and writes its content to a descriptor. If the descriptor is a pipe and the
    /// request a plain GET, fetches the content in ranges, and ends early if the reader closes the
    /// pipe.
    pub(crate) fn fetch_to_descriptor(
        &mut self,
        url: &str,
        options: &RequestOptions,
        out: BorrowedFd<'_>,
    ) -> TransferOutcome {
        let began = Instant::now();
        let is_plain = options.method == "GET" && options.range.is_none() && !options.decode;
        if !is_plain || !is_pipe(out) {
            return self.fetch_range(url, options, None, out).outcome;
        }
        let first = self.fetch_range(
            url,
            options,
            Some(WantedContentRange::Opening(signify_first_fetch_length::FIRST_FETCH_LENGTH)),
            out,
        );
        let RangeFetchOutcome { mut outcome, moved, content_facts } = first;
        if outcome.facts.status == 206 && outcome.result.is_ok() {
            // The fetcher added the range itself: the requested content is complete.
            outcome.facts.status = 200;
        }
        let (Ok(()), Some(total), Some(validator)) = (&outcome.result, content_facts.total, content_facts.validator)
        else {
            return outcome;
        };
        let mut mirror = mirror_of(url, options, &outcome);
        let mut at = moved;
        let floor = signify_first_fetch_length::bytes_before_stop(total);
        let ends = if at < floor { vec![floor, total] } else { vec![total] };
        for to in ends {
            if at >= to {
                break;
            }
            // The reader always gets the bytes it needs to decide whether it wants more.
            if at >= floor && !reader_wants_more(out) {
                let gone = io::Error::from(io::ErrorKind::BrokenPipe);
                outcome.result = Err(Error::with_source(ErrorKind::Write, "nobody reads the output any more", gone));
                break;
            }
            let span = WantedContentRange::Rest { from: at, to: Some(to), total, validator: validator.clone() };
            let Some(options) = with_time_left(options, began) else {
                outcome.result = Err(timeout_error(&outcome.target));
                break;
            };
            let next = self.fetch_next_range(url, &mut mirror, &options, span, out);
            at += next.moved;
            add_facts(&mut outcome.facts, &next.outcome.facts);
            outcome.result = next.outcome.result;
            if outcome.result.is_err() {
                break;
            }
        }
        outcome
    }

    /// Fetches a further range from the mirror that sent the first range. The URL that the caller
    /// gave may by now redirect to another mirror, whose content may differ. If the fetch from the
    /// first mirror fails before any byte, the caller's URL is requested again.
    fn fetch_next_range(
        &mut self,
        url: &str,
        mirror: &mut Option<String>,
        options: &RequestOptions,
        span: WantedContentRange,
        out: BorrowedFd<'_>,
    ) -> RangeFetchOutcome {
        if let Some(mirror) = mirror.as_deref() {
            let piece = self.fetch_range(mirror, options, Some(span.clone()), out);
            if piece.outcome.result.is_ok() || piece.moved > 0 {
                return piece;
            }
        }
        *mirror = None;
        self.fetch_range(url, options, Some(span), out)
    }

    /// Fetches a URL and writes its content to a file. The content goes to a temporary file, which
    /// is renamed when it is complete.
    pub(crate) fn fetch_to_file(
        &mut self,
        url: &str,
        options: &RequestOptions,
        path: &Path,
        how: &FileOptions,
    ) -> TransferOutcome {
        let started = Instant::now();
        let sink = || Box::new(FileSink::with_options(path, how.clone()));
        let is_new_or_file = path.metadata().map_or(true, |metadata| metadata.is_file());
        let target = match parse(url, options) {
            Ok(target) => target,
            Err(error) => return TransferOutcome::unsent(placeholder_target(), error, started),
        };
        // What an earlier run left is completed by this process, which knows how.
        let has_partial = sink().partial(&target).is_some();
        let may = is_new_or_file && !has_partial && how.append.is_none() && how.checksum.is_none();
        if how.append.is_some()
            && let Some(outcome) = self.relay_to_file(url, options, path, how, None)
        {
            return outcome;
        }
        // What goes nowhere needs no file.
        if self.session.is_some()
            && is_null(path)
            && let Ok(nowhere) = File::options().write(true).open(path)
        {
            return self.fetch_range(url, options, None, nowhere.as_fd()).outcome;
        }
        let request = AgentRequest { url: url.to_owned(), options: prepare_for_agent(options.clone()) };
        if let Some(session) = self.session.as_mut().filter(|_| may && !how.named_by_response) {
            let mut file = sink();
            // An output that cannot be opened causes the same error as without an agent.
            if let Ok(descriptor) = file.open_descriptor()
                && is_regular_file_without_append(descriptor.as_fd())
                && let Some(carried) = session.call(&request, OutputDescriptor::File(descriptor.as_fd()))
            {
                drop(descriptor);
                if let AgentCallEnd::Done(done) = carried.end {
                    let mut outcome = finished_outcome(*done, carried.began, started);
                    let has_content = match &outcome.result {
                        // A conditional request keeps the existing file if the content is unchanged.
                        Ok(()) => outcome.facts.status != NOT_MODIFIED,
                        Err(error) => {
                            error.kind() == ErrorKind::Status && options.fail_with_body && !how.remove_on_error
                        }
                    };
                    if has_content {
                        outcome.result = file.finish().and(outcome.result);
                    }
                    return outcome;
                }
                // No reader has seen the file yet: the transfer begins anew.
                self.session = None;
            }
        }
        let Some(options) = with_time_left(options, started) else {
            let error = timeout_error(&target);
            return TransferOutcome::unsent(target, error, started);
        };
        self.client.fetch(target, Arc::new(options), Box::new(KeepFileIfNotModifiedSink::new(*sink())))
    }

    /// Fetches a URL through the agent and writes its content to a file, which is opened for the
    /// first byte, as curl opens its output. Returns `None`, without any effect on the file, if the
    /// agent cannot fetch the URL for this file, for example because the file has content that the
    /// transfer continues. Also returns `None` if the agent dies; the file may then have the
    /// beginning of the content.
    pub(crate) fn relay_to_file(
        &mut self,
        url: &str,
        options: &RequestOptions,
        path: &Path,
        how: &FileOptions,
        observer: Option<&dyn RelayObserver>,
    ) -> Option<TransferOutcome> {
        let started = Instant::now();
        let metadata = path.metadata().ok();
        let begins_at_start = match how.append {
            None => true,
            Some(AppendPosition::AtEnd) => metadata.as_ref().is_none_or(|metadata| metadata.len() == 0),
            Some(_) => false,
        };
        let may = metadata.is_none_or(|metadata| metadata.is_file())
            && begins_at_start
            && matches!(how.clobber, ClobberMode::Own | ClobberMode::OwnSince(_) | ClobberMode::Replace)
            && how.checksum.is_none()
            && !how.named_by_response
            && !how.remove_on_error
            && !how.statuses_fail;
        if !may {
            return None;
        }
        let mut file = FileSink::with_options(path, how.clone());
        let request = AgentRequest { url: url.to_owned(), options: prepare_for_agent(options.clone()) };
        let mut out = RelayOutput::postponed(&mut file);
        let call = self.session.as_mut()?.relay(&request, &mut out, observer)?;
        let mut outcome = match call.end {
            AgentCallEnd::Done(done) => finished_outcome(*done, call.began, started),
            AgentCallEnd::Output(error) => {
                self.session = None;
                let mut outcome = unfinished_outcome(url, options, call.began, call.moved, started);
                outcome.result = Err(error);
                return Some(outcome);
            }
            AgentCallEnd::Refused | AgentCallEnd::Died => {
                self.session = None;
                return None;
            }
        };
        if outcome.result.is_ok() && outcome.facts.status != NOT_MODIFIED {
            // Content without bytes makes an empty file.
            outcome.result = out.open().map(|_| ()).and_then(|()| file.finish());
        }
        Some(outcome)
    }

    /// Fetches a URL through the agent with a single request, and copies its content to a
    /// descriptor. Returns `None`, without any effect, if the agent does not support the request.
    pub(crate) fn relay_to_descriptor(
        &mut self,
        url: &str,
        options: &RequestOptions,
        out: BorrowedFd<'_>,
        observer: Option<&dyn RelayObserver>,
    ) -> Option<TransferOutcome> {
        let started = Instant::now();
        let request = AgentRequest { url: url.to_owned(), options: prepare_for_agent(options.clone()) };
        let call = self.session.as_mut()?.relay(&request, &mut RelayOutput::Open(out), observer)?;
        let AgentCallProgressAndEnd { moved, began, end } = call;
        match end {
            AgentCallEnd::Done(done) => Some(finished_outcome(*done, began, started)),
            AgentCallEnd::Output(error) => {
                let mut outcome = unfinished_outcome(url, options, began, moved, started);
                outcome.result = Err(error);
                Some(outcome)
            }
            AgentCallEnd::Refused => None,
            AgentCallEnd::Died => {
                let began = began.filter(|_| moved > 0)?;
                Some(self.resume_without_agent(url, options, began, moved, out, started).outcome)
            }
        }
    }

    fn fetch_range(
        &mut self,
        url: &str,
        options: &RequestOptions,
        span: Option<WantedContentRange>,
        out: BorrowedFd<'_>,
    ) -> RangeFetchOutcome {
        let started = Instant::now();
        let options = RequestOptions { span, ..options.clone() };
        if let Some(session) = &mut self.session {
            let request = AgentRequest { url: url.to_owned(), options: prepare_for_agent(options.clone()) };
            let goal = if is_regular_file_without_append(out) {
                OutputDescriptor::File(out)
            } else {
                OutputDescriptor::Relayed(out)
            };
            match session.call(&request, goal) {
                None => {}
                Some(AgentCallProgressAndEnd { moved, began, end: AgentCallEnd::Done(done) }) => {
                    let content_facts = LengthAndValidator::from_response_start(began.as_ref());
                    return RangeFetchOutcome {
                        outcome: finished_outcome(*done, began, started),
                        moved,
                        content_facts,
                    };
                }
                Some(AgentCallProgressAndEnd { moved, began, end: AgentCallEnd::Output(error) }) => {
                    // The agent hears of it by the end of the connection.
                    self.session = None;
                    let content_facts = LengthAndValidator::from_response_start(began.as_ref());
                    let mut outcome = unfinished_outcome(url, &options, began, moved, started);
                    outcome.result = Err(error);
                    return RangeFetchOutcome { outcome, moved, content_facts };
                }
                Some(AgentCallProgressAndEnd { end: AgentCallEnd::Refused, .. }) => self.session = None,
                Some(AgentCallProgressAndEnd { moved, began, end: AgentCallEnd::Died }) => {
                    self.session = None;
                    if let Some(began) = began.filter(|_| moved > 0) {
                        return self.resume_without_agent(url, &options, began, moved, out, started);
                    }
                }
            }
        }
        let Some(options) = with_time_left(&options, started) else {
            let mut outcome = unfinished_outcome(url, &options, None, 0, started);
            outcome.result = Err(timeout_error(&outcome.target));
            return RangeFetchOutcome { outcome, moved: 0, content_facts: LengthAndValidator::default() };
        };
        self.fetch_without_agent(url, &options, out, None)
    }

    /// Fetches the rest of the content of a URL in this process, after the agent has died in the
    /// middle of the body. The bytes that the agent has delivered are not fetched or written again.
    fn resume_without_agent(
        &self,
        url: &str,
        options: &RequestOptions,
        began: ResponseStart,
        moved: u64,
        out: BorrowedFd<'_>,
        started: Instant,
    ) -> RangeFetchOutcome {
        let content_facts = LengthAndValidator::from_response_start(Some(&began));
        let mut outcome = unfinished_outcome(url, options, Some(began), moved, started);
        let head = outcome.head.as_ref();
        let rest = match (content_facts.total, &content_facts.validator) {
            (Some(total), Some(validator)) => {
                let is_part = head.is_some_and(|head| head.status() == 206);
                let (from, to) = match &options.span {
                    Some(WantedContentRange::Rest { from, to, .. }) => (*from, to.unwrap_or(total)),
                    Some(WantedContentRange::Opening(bytes)) if is_part => (0, total.min(*bytes)),
                    _ => (0, total),
                };
                let at = from + moved;
                if at >= to {
                    return RangeFetchOutcome { outcome, moved, content_facts };
                }
                let span = WantedContentRange::Rest { from: at, to: Some(to), total, validator: validator.clone() };
                Some((RequestOptions { span: Some(span), ..options.clone() }, None))
            }
            // Decoded content is fetched again, without the part already output, if it is certainly
            // the same content.
            _ => head
                .filter(|_| options.decode)
                .and_then(strong_validator)
                .map(|validator| (options.clone(), Some(DeliveredPrefix { left: moved, of: validator }))),
        };
        let Some((options, skipped)) = rest else {
            let message = "the agent died, and the response has no validator to resume it by; try again";
            outcome.result = Err(Error::new(ErrorKind::PartialBody, message).with_url(outcome.target.to_url()));
            return RangeFetchOutcome { outcome, moved, content_facts };
        };
        let Some(options) = with_time_left(&options, started) else {
            outcome.result = Err(timeout_error(&outcome.target));
            return RangeFetchOutcome { outcome, moved, content_facts };
        };
        let rest = self.fetch_without_agent(url, &options, out, skipped);
        add_facts(&mut outcome.facts, &rest.outcome.facts);
        outcome.result = rest.outcome.result;
        outcome.target = rest.outcome.target;
        RangeFetchOutcome { outcome, moved: moved + rest.moved, content_facts }
    }

    fn fetch_without_agent(
        &self,
        url: &str,
        options: &RequestOptions,
        out: BorrowedFd<'_>,
        skipped: Option<DeliveredPrefix>,
    ) -> RangeFetchOutcome {
        let started = Instant::now();
        let target = match parse(url, options) {
            Ok(target) => target,
            Err(error) => {
                return RangeFetchOutcome {
                    outcome: TransferOutcome::unsent(placeholder_target(), error, started),
                    moved: 0,
                    content_facts: LengthAndValidator::default(),
                };
            }
        };
        let output = match out.try_clone_to_owned() {
            Ok(output) => output,
            Err(error) => {
                let error = Error::with_source(ErrorKind::Write, "failed to open the output", error);
                return RangeFetchOutcome {
                    outcome: TransferOutcome::unsent(placeholder_target(), error, started),
                    moved: 0,
                    content_facts: LengthAndValidator::default(),
                };
            }
        };
        let noted = Arc::new(Mutex::new((LengthAndValidator::default(), 0)));
        let sink = TrackingSink {
            sink: BlockingOutputSink::new(DescriptorWriter::new(output), None),
            noted: Arc::clone(&noted),
            skipped,
        };
        let outcome = self.client.fetch(target, Arc::new(options.clone()), Box::new(sink));
        let (content_facts, moved) = noted.lock().unwrap_or_else(PoisonError::into_inner).clone();
        RangeFetchOutcome { outcome, moved, content_facts }
    }
}

/// Returns the URL of the last redirect, which is the mirror that sent the content. Returns `None`
/// if no redirect was followed. Also returns `None` for a request with header fields, cookies or
/// credentials, because only the origin of `url` may receive these.
fn mirror_of(url: &str, options: &RequestOptions, outcome: &TransferOutcome) -> Option<String> {
    let RequestOptions { fields, authorization, auth, cookie, tls, .. } = options;
    let is_open = fields.is_empty()
        && authorization.is_none()
        && auth.user.is_none()
        && auth.bearer.is_none()
        && matches!(auth.netrc, NetrcFileUse::Off)
        && cookie.is_none()
        && tls.identity.is_none();
    let has_user = |target: Target| target.userinfo_bytes().is_some();
    let may = is_open && outcome.facts.redirects > 0 && !parse(url, options).is_ok_and(has_user);
    may.then(|| outcome.target.to_url())
}

/// Returns a copy of the options whose `total_time` is reduced by the time since `began`. Returns
/// `None` if that time limit has passed.
fn with_time_left(options: &RequestOptions, began: Instant) -> Option<RequestOptions> {
    let total_time = match options.total_time {
        Some(limit) => Some(limit.checked_sub(began.elapsed()).filter(|left| !left.is_zero())?),
        None => None,
    };
    Some(RequestOptions { total_time, ..options.clone() })
}

/// Returns the error of a transfer to `target` whose total time limit has passed.
fn timeout_error(target: &Target) -> Error {
    Error::timed_out().with_url(target.to_url())
}

fn parse(url: &str, options: &RequestOptions) -> Result<Target> {
    Target::parse_with(url, haul_policy::target::Scheme::Http, options.path_as_is)
        .map_err(|error| Error::with_source(ErrorKind::Url, "the URL cannot be used", error))
}

fn placeholder_target() -> Target {
    Target::parse("http://invalid/").expect("a URL")
}

/// Converts the result that the agent has sent for a call to a [`TransferOutcome`]. `began` contains
/// the head that the agent sent earlier, if it did; `started` is the time of the call.
fn finished_outcome(mut done: AgentTransferResult, began: Option<ResponseStart>, started: Instant) -> TransferOutcome {
    let head = done.take_head().or_else(|| began.and_then(|began| ResponseHead::from_raw(&began.head)));
    let mut facts = Box::new(done.facts);
    facts.version = head.as_ref().map(ResponseHead::version);
    facts.total = started.elapsed();
    let target = Target::parse(&done.url).unwrap_or_else(|_| placeholder_target());
    let result = done.error.map_or(Ok(()), |error| Err(error.into()));
    TransferOutcome { result, target, head, facts, tag: 0, history: Vec::new(), trailers: None }
}

/// Returns the outcome of a transfer that the agent did not finish. It contains the response head,
/// if the agent reported one, and the number of delivered bytes.
fn unfinished_outcome(
    url: &str,
    options: &RequestOptions,
    began: Option<ResponseStart>,
    moved: u64,
    started: Instant,
) -> TransferOutcome {
    let head = began.and_then(|began| ResponseHead::from_raw(&began.head));
    let facts = Box::new(TransferFacts {
        status: head.as_ref().map_or(0, ResponseHead::status),
        version: head.as_ref().map(ResponseHead::version),
        body_bytes: moved,
        total: started.elapsed(),
        ..TransferFacts::new(started)
    });
    let target = parse(url, options).unwrap_or_else(|_| placeholder_target());
    TransferOutcome { result: Ok(()), target, head, facts, tag: 0, history: Vec::new(), trailers: None }
}

/// Adds the byte counts, the request counts and the time of `more` to `facts`. `more` has the facts
/// of a further request for the same content.
fn add_facts(facts: &mut TransferFacts, more: &TransferFacts) {
    facts.body_bytes += more.body_bytes;
    facts.head_bytes += more.head_bytes;
    facts.requests += more.requests;
    facts.connects += more.connects;
    facts.retries += more.retries;
    facts.total = facts.started.elapsed();
}

/// Returns true if the path is `/dev/null` or another name of this device.
pub(super) fn is_null(path: &Path) -> bool {
    stat(path).is_ok_and(|stat| {
        stat.st_rdev == makedev(1, 3) && FileType::from_raw_mode(stat.st_mode) == FileType::CharacterDevice
    })
}

fn is_pipe(fd: BorrowedFd<'_>) -> bool {
    fstat(fd).is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Fifo)
}

/// Waits until the reader of an output pipe has read everything, and then for another
/// [`READER_GRACE_TIME`]. Returns true if the pipe is still open after this time, and false as soon
/// as the reader closes it.
fn reader_wants_more(pipe: BorrowedFd<'_>) -> bool {
    let mut look = Duration::from_millis(1);
    let mut was_empty = false;
    loop {
        let is_empty = rustix::io::ioctl_fionread(pipe).map_or(true, |bytes| bytes == 0);
        if is_empty && was_empty {
            return true;
        }
        was_empty = is_empty;
        let wait = if is_empty { READER_GRACE_TIME } else { look };
        look = (look * 2).min(MAX_READER_WAIT);
        let timeout = Timespec { tv_sec: 0, tv_nsec: i64::from(wait.subsec_nanos()) };
        // The only event is the end of the reader, which poll always reports.
        match poll(&mut [PollFd::from_borrowed_fd(pipe, PollFlags::empty())], Some(&timeout)) {
            Ok(0) | Err(rustix::io::Errno::INTR) => {}
            _ => return false,
        }
    }
}
