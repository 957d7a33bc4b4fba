//! One GET, through the agent if possible and without it otherwise. The output is the same either
//! way.
//!
//! ```text
//!  Carrier ─▶ piece ─┬─ by the agent ──── it died ─▶ goes on from the exact byte ─┐
//!                    └─ by the client of this process ◀───────────────────────────┘
//! ```
//!
//! A reader at the end of a pipe may stop early (a package manager that wants the beginning of a
//! package). So content that goes to a pipe by the agent, or to such a caller, is fetched in two
//! pieces: an opening, then the rest once the opening is read and the pipe is still open. A reader
//! that stops then costs no connection, and hardly a byte.

use std::fs::File;
use std::io;
use std::io::IoSlice;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use haul::buffer::Lease;
use haul::facts::Facts;
use haul::request::Span;
use haul::sink::file::{FileOptions, FileSink};
use haul::sink::output::{Output, Waiting};
use haul::sink::partial::PartialFile;
use haul::sink::{Begin, Partial, Sink};
use haul::state::auth::Netrc;
use haul::transfer::Outcome;
use haul::{Client, Error, ErrorKind, Head, RequestOptions, Result, Target};
use haul_policy::range::validator::Validator;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FileType, fstat, makedev, stat};
use rustix::process::{Resource, getrlimit};

use crate::agent::AgentArgs;
use crate::agent::client::{Carried, End, Goal, Session, for_agent, is_own_file};
use crate::agent::protocol::{Began, Done};
use crate::agent::request::Request;
use crate::agent::socket::Refusal;

/// The file that the caller has is still good (RFC 9110 section 15.4.5).
pub(crate) const NOT_MODIFIED: u16 = 304;

/// The first piece of content that a reader may not read to its end: two blocks of signify, and its
/// header for packages of up to 15 MB.
const OPENING: u64 = BLOCKS + (16 << 10);
/// The bytes that a block-checking reader has read before it can notice that its own reader is
/// gone.
const BLOCKS: u64 = 2 * BLOCK;
/// A block that has its own signature (signify's `-z`).
const BLOCK: u64 = 64 << 10;
/// A block's line in the header.
const BLOCK_LINE: u64 = 65;
/// The lines before those.
const HEADER_LINES: u64 = 512;

/// The time that a reader which has read all available bytes may take to close the pipe before more
/// is fetched: it has a block to check.
const GRACE: Duration = Duration::from_millis(10);
/// The longest time between two checks whether the pipe is empty, which no event reports.
const LONGEST_LOOK: Duration = Duration::from_millis(50);

/// Carries requests out.
pub(crate) struct Carrier<'a> {
    client: &'a Client,
    session: Option<Session>,
}

/// A piece of a content that was delivered, or as much of it as came.
struct Piece {
    outcome: Outcome,
    moved: u64,
    told: Told,
}

/// The facts about a response's content.
#[derive(Debug, Clone, Default)]
struct Told {
    total: Option<u64>,
    validator: Option<Validator>,
}

impl<'a> Carrier<'a> {
    /// Without an agent.
    pub(crate) fn alone(client: &'a Client) -> Self {
        Self { client, session: None }
    }

    /// Makes a carrier that uses the agent, and starts the agent if necessary. A call with a limit
    /// on file sizes (`ulimit -f`) uses no agent: the agent, which would write its files, has no
    /// such limit, or has inherited it from the call that started it and would apply it to all.
    ///
    /// # Errors
    /// Why it cannot be used.
    pub(crate) fn with_agent(client: &'a Client, args: &AgentArgs) -> std::result::Result<Self, Refusal> {
        if getrlimit(Resource::Fsize).current.is_some() {
            return Ok(Self::alone(client));
        }
        Ok(Self { client, session: Some(Session::open(args)?) })
    }

    /// Fetches to a descriptor. The reader at the end of a pipe may stop early.
    pub(crate) fn fetch_to_descriptor(&mut self, url: &str, options: &RequestOptions, out: BorrowedFd<'_>) -> Outcome {
        let began = Instant::now();
        let is_plain = options.method == "GET" && options.range.is_none() && !options.decode;
        if !is_plain || !is_pipe(out) {
            return self.piece(url, options, None, out).outcome;
        }
        let first = self.piece(url, options, Some(Span::Opening(OPENING)), out);
        let Piece { mut outcome, moved, told } = first;
        if outcome.facts.status == 206 && outcome.result.is_ok() {
            // The carrier added the range itself: the requested content is complete.
            outcome.facts.status = 200;
        }
        let (Ok(()), Some(total), Some(validator)) = (&outcome.result, told.total, told.validator) else {
            return outcome;
        };
        let mut mirror = mirror_of(url, options, &outcome);
        let mut at = moved;
        let floor = BLOCKS + HEADER_LINES + BLOCK_LINE * total.div_ceil(BLOCK);
        let ends = if at < floor.min(total) { vec![floor.min(total), total] } else { vec![total] };
        for to in ends {
            if at >= to {
                break;
            }
            // The reader always gets the bytes it needs to decide whether it wants more.
            if at >= floor && !wants_more(out) {
                let gone = io::Error::from(io::ErrorKind::BrokenPipe);
                outcome.result = Err(Error::with_source(ErrorKind::Write, "nobody reads the output any more", gone));
                break;
            }
            let span = Span::Rest { from: at, to: Some(to), total, validator: validator.clone() };
            let Some(options) = with_time_left(options, began) else {
                outcome.result =
                    Err(Error::new(ErrorKind::Timeout, "the operation timed out").with_url(outcome.target.to_url()));
                break;
            };
            let next = self.next_piece(url, &mut mirror, &options, span, out);
            at += next.moved;
            add(&mut outcome.facts, &next.outcome.facts);
            outcome.result = next.outcome.result;
            if outcome.result.is_err() {
                break;
            }
        }
        outcome
    }

    /// Fetches a further piece from the mirror that sent the first one: the caller's URL may lead
    /// to another mirror by now, whose content may differ. If the first mirror does not have the
    /// content any more, the carrier requests the caller's URL again.
    fn next_piece(
        &mut self,
        url: &str,
        mirror: &mut Option<String>,
        options: &RequestOptions,
        span: Span,
        out: BorrowedFd<'_>,
    ) -> Piece {
        if let Some(mirror) = mirror.as_deref() {
            let piece = self.piece(mirror, options, Some(span.clone()), out);
            if piece.outcome.result.is_ok() || piece.moved > 0 {
                return piece;
            }
        }
        *mirror = None;
        self.piece(url, options, Some(span), out)
    }

    /// Fetches to a file that gets its name when it is complete.
    pub(crate) fn fetch_to_file(
        &mut self,
        url: &str,
        options: &RequestOptions,
        path: &Path,
        how: &FileOptions,
    ) -> Outcome {
        let started = Instant::now();
        let sink = || Box::new(FileSink::with(path, how.clone()));
        let is_new_or_file = path.metadata().map_or(true, |metadata| metadata.is_file());
        let target = match parse(url, options) {
            Ok(target) => target,
            Err(error) => return Outcome::unsent(nowhere(), error, started),
        };
        // What an earlier run left is completed by this process, which knows how.
        let has_partial = sink().partial(&target).is_some();
        let may = is_new_or_file && !has_partial && how.append.is_none() && how.checksum.is_none();
        // What goes nowhere needs no file.
        if self.session.is_some()
            && is_null(path)
            && let Ok(nowhere) = File::options().write(true).open(path)
        {
            return self.piece(url, options, None, nowhere.as_fd()).outcome;
        }
        let request = Request { url: url.to_owned(), options: for_agent(options.clone()) };
        if let Some(session) = self.session.as_mut().filter(|_| may && !how.named_by_response) {
            let mut file = sink();
            // An output that cannot be opened causes the same error as without an agent.
            if let Ok(descriptor) = file.open_descriptor()
                && is_own_file(descriptor.as_fd())
                && let Some(carried) = session.call(&request, Goal::File(descriptor.as_fd()))
            {
                drop(descriptor);
                if let End::Done(done) = carried.end {
                    let mut outcome = finished(*done, carried.began, started);
                    // A conditional request keeps the existing file if the content is unchanged.
                    if outcome.result.is_ok() && outcome.facts.status != NOT_MODIFIED {
                        outcome.result = file.finish();
                    }
                    return outcome;
                }
                // No reader has seen the file yet: the transfer begins anew.
                self.session = None;
            }
        }
        self.client.fetch(
            target,
            Arc::new(options.clone()),
            Box::new(UnlessUnchanged { sink: *sink(), is_unchanged: false }),
        )
    }

    fn piece(&mut self, url: &str, options: &RequestOptions, span: Option<Span>, out: BorrowedFd<'_>) -> Piece {
        let started = Instant::now();
        let options = RequestOptions { span, ..options.clone() };
        if let Some(session) = &mut self.session {
            let request = Request { url: url.to_owned(), options: for_agent(options.clone()) };
            let goal = if is_own_file(out) { Goal::File(out) } else { Goal::Relayed(out) };
            match session.call(&request, goal) {
                None => {}
                Some(Carried { moved, began, end: End::Done(done) }) => {
                    let told = Told::of(began.as_ref());
                    return Piece { outcome: finished(*done, began, started), moved, told };
                }
                Some(Carried { moved, began, end: End::Output(error) }) => {
                    // The agent hears of it by the end of the connection.
                    self.session = None;
                    let told = Told::of(began.as_ref());
                    let mut outcome = broken(url, &options, began, moved, started);
                    outcome.result = Err(Error::with_source(ErrorKind::Write, "failed to write the output", error));
                    return Piece { outcome, moved, told };
                }
                Some(Carried { end: End::Refused, .. }) => self.session = None,
                Some(Carried { moved, began, end: End::Died }) => {
                    self.session = None;
                    if let Some(began) = began.filter(|_| moved > 0) {
                        return self.go_on(url, &options, began, moved, out, started);
                    }
                }
            }
        }
        self.directly(url, &options, out, None)
    }

    /// Goes on where the agent died.
    fn go_on(
        &self,
        url: &str,
        options: &RequestOptions,
        began: Began,
        moved: u64,
        out: BorrowedFd<'_>,
        started: Instant,
    ) -> Piece {
        let told = Told::of(Some(&began));
        let mut outcome = broken(url, options, Some(began), moved, started);
        let head = outcome.head.as_ref();
        let rest = match (told.total, &told.validator) {
            (Some(total), Some(validator)) => {
                let is_part = head.is_some_and(|head| head.status() == 206);
                let (from, to) = match &options.span {
                    Some(Span::Rest { from, to, .. }) => (*from, to.unwrap_or(total)),
                    Some(Span::Opening(bytes)) if is_part => (0, total.min(*bytes)),
                    _ => (0, total),
                };
                let at = from + moved;
                if at >= to {
                    return Piece { outcome, moved, told };
                }
                let span = Span::Rest { from: at, to: Some(to), total, validator: validator.clone() };
                Some((RequestOptions { span: Some(span), ..options.clone() }, None))
            }
            // Decoded content is fetched again, without the part already output, if it is certainly
            // the same content.
            _ => head
                .filter(|_| options.decode)
                .and_then(strong_validator)
                .map(|validator| (options.clone(), Some(Skipped { left: moved, of: validator }))),
        };
        let Some((options, skipped)) = rest else {
            let message = "the agent died, and nothing tells whether the rest would be of the same content";
            outcome.result = Err(Error::new(ErrorKind::PartialBody, message).with_url(outcome.target.to_url()));
            return Piece { outcome, moved, told };
        };
        let Some(options) = with_time_left(&options, started) else {
            outcome.result =
                Err(Error::new(ErrorKind::Timeout, "the operation timed out").with_url(outcome.target.to_url()));
            return Piece { outcome, moved, told };
        };
        let rest = self.directly(url, &options, out, skipped);
        add(&mut outcome.facts, &rest.outcome.facts);
        outcome.result = rest.outcome.result;
        outcome.target = rest.outcome.target;
        Piece { outcome, moved: moved + rest.moved, told }
    }

    fn directly(&self, url: &str, options: &RequestOptions, out: BorrowedFd<'_>, skipped: Option<Skipped>) -> Piece {
        let started = Instant::now();
        let target = match parse(url, options) {
            Ok(target) => target,
            Err(error) => {
                return Piece { outcome: Outcome::unsent(nowhere(), error, started), moved: 0, told: Told::default() };
            }
        };
        let output = match out.try_clone_to_owned() {
            Ok(output) => output,
            Err(error) => {
                let error = Error::with_source(ErrorKind::Write, "failed to open the output", error);
                return Piece { outcome: Outcome::unsent(nowhere(), error, started), moved: 0, told: Told::default() };
            }
        };
        let noted = Arc::new(Mutex::new((Told::default(), 0)));
        let sink = Noting { sink: Waiting::new(Output::new(output), None), noted: Arc::clone(&noted), skipped };
        let outcome = self.client.fetch(target, Arc::new(options.clone()), Box::new(sink));
        let (told, moved) = noted.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Piece { outcome, moved, told }
    }
}

impl Told {
    fn of(began: Option<&Began>) -> Self {
        began.map_or_else(Self::default, |began| Self { total: began.total, validator: began.validator.clone() })
    }
}

/// The mirror that redirects have led to, if it may be asked by itself: a request with secrets
/// would take it for their origin.
fn mirror_of(url: &str, options: &RequestOptions, outcome: &Outcome) -> Option<String> {
    let RequestOptions { fields, authorization, auth, cookie, tls, .. } = options;
    let is_open = fields.is_empty()
        && authorization.is_none()
        && auth.user.is_none()
        && auth.bearer.is_none()
        && matches!(auth.netrc, Netrc::Off)
        && cookie.is_none()
        && tls.identity.is_none();
    let has_user = |target: Target| target.userinfo_bytes().is_some();
    let may = is_open && outcome.facts.redirects > 0 && !parse(url, options).is_ok_and(has_user);
    may.then(|| outcome.target.to_url())
}

/// Returns the options with the time that is left for all requests together. `None` if none is
/// left.
fn with_time_left(options: &RequestOptions, began: Instant) -> Option<RequestOptions> {
    let total_time = match options.total_time {
        Some(limit) => Some(limit.checked_sub(began.elapsed()).filter(|left| !left.is_zero())?),
        None => None,
    };
    Some(RequestOptions { total_time, ..options.clone() })
}

fn parse(url: &str, options: &RequestOptions) -> Result<Target> {
    Target::parse_with(url, haul_policy::target::Scheme::Http, options.path_as_is)
        .map_err(|error| Error::with_source(ErrorKind::Url, "the URL cannot be used", error))
}

fn nowhere() -> Target {
    Target::parse("http://invalid/").expect("a URL")
}

/// The end of a call that the agent carried out.
fn finished(mut done: Done, began: Option<Began>, started: Instant) -> Outcome {
    let head = done.take_head().or_else(|| began.and_then(|began| Head::from_raw(&began.head)));
    let mut facts = Box::new(done.facts);
    facts.version = head.as_ref().map(Head::version);
    facts.total = started.elapsed();
    let target = Target::parse(&done.url).unwrap_or_else(|_| nowhere());
    let result = done.error.map_or(Ok(()), |error| Err(error.into()));
    Outcome { result, target, head, facts, tag: 0, history: Vec::new(), trailers: None }
}

/// A call that was not carried out to its end; as far as it is known here.
fn broken(url: &str, options: &RequestOptions, began: Option<Began>, moved: u64, started: Instant) -> Outcome {
    let head = began.and_then(|began| Head::from_raw(&began.head));
    let facts = Box::new(Facts {
        status: head.as_ref().map_or(0, Head::status),
        version: head.as_ref().map(Head::version),
        body_bytes: moved,
        total: started.elapsed(),
        ..Facts::new(started)
    });
    let target = parse(url, options).unwrap_or_else(|_| nowhere());
    Outcome { result: Ok(()), target, head, facts, tag: 0, history: Vec::new(), trailers: None }
}

/// Adds the cost of a further request for the same content.
fn add(facts: &mut Facts, more: &Facts) {
    facts.body_bytes += more.body_bytes;
    facts.head_bytes += more.head_bytes;
    facts.requests += more.requests;
    facts.connects += more.connects;
    facts.retries += more.retries;
    facts.total = facts.started.elapsed();
}

fn strong_validator(head: &Head) -> Option<Validator> {
    Validator::strong(head.get("etag"), head.get("last-modified"), head.get("date"))
}

/// Returns true if the path is the null device.
fn is_null(path: &Path) -> bool {
    stat(path).is_ok_and(|stat| {
        stat.st_rdev == makedev(1, 3) && FileType::from_raw_mode(stat.st_mode) == FileType::CharacterDevice
    })
}

fn is_pipe(fd: BorrowedFd<'_>) -> bool {
    fstat(fd).is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Fifo)
}

/// Waits until a pipe is read empty, and a little longer. Returns `false` once its reader is gone.
fn wants_more(pipe: BorrowedFd<'_>) -> bool {
    let mut look = Duration::from_millis(1);
    let mut was_empty = false;
    loop {
        let is_empty = rustix::io::ioctl_fionread(pipe).map_or(true, |bytes| bytes == 0);
        if is_empty && was_empty {
            return true;
        }
        was_empty = is_empty;
        let wait = if is_empty { GRACE } else { look };
        look = (look * 2).min(LONGEST_LOOK);
        let timeout = Timespec { tv_sec: 0, tv_nsec: i64::from(wait.subsec_nanos()) };
        // The only event is the end of the reader, which poll always reports.
        match poll(&mut [PollFd::from_borrowed_fd(pipe, PollFlags::empty())], Some(&timeout)) {
            Ok(0) | Err(rustix::io::Errno::INTR) => {}
            _ => return false,
        }
    }
}

/// Bytes that are out already, of the content that this validator names.
struct Skipped {
    left: u64,
    of: Validator,
}

/// A sink that notes the response's facts about its content, and the number of bytes written.
struct Noting {
    sink: Waiting,
    noted: Arc<Mutex<(Told, u64)>>,
    skipped: Option<Skipped>,
}

impl Noting {
    fn note(&self, note: impl FnOnce(&mut (Told, u64))) {
        note(&mut self.noted.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

impl Sink for Noting {
    fn begin(&mut self, begin: &Begin<'_>) -> Result<()> {
        if self.skipped.as_ref().is_some_and(|skipped| strong_validator(begin.head).as_ref() != Some(&skipped.of)) {
            return Err(Error::new(ErrorKind::Changed, "the content changed while it was fetched"));
        }
        self.note(|(told, _)| *told = Told { total: begin.total, validator: begin.validator.cloned() });
        self.sink.begin(begin)
    }

    fn bytes(&mut self, lease: Lease<'_>) -> Result<()> {
        let all = lease.bytes().len();
        let Some(skipped) = self.skipped.as_mut().filter(|skipped| skipped.left > 0) else {
            self.sink.bytes(lease)?;
            self.note(|(_, moved)| *moved += all as u64);
            return Ok(());
        };
        let left_out = usize::try_from(skipped.left).map_or(all, |left| left.min(all));
        skipped.left -= left_out as u64;
        self.sink.bytes(Lease::borrowed(&lease.bytes()[left_out..]))?;
        self.note(|(_, moved)| *moved += (all - left_out) as u64);
        Ok(())
    }

    fn pieces(&mut self, pieces: &mut [IoSlice<'_>]) -> Result<()> {
        if self.skipped.is_some() {
            return pieces.iter().try_for_each(|piece| self.bytes(Lease::borrowed(piece)));
        }
        let all: usize = pieces.iter().map(|piece| piece.len()).sum();
        self.sink.pieces(pieces)?;
        self.note(|(_, moved)| *moved += all as u64);
        Ok(())
    }

    fn direct(&mut self) -> Option<BorrowedFd<'_>> {
        if self.skipped.is_some() { None } else { self.sink.direct() }
    }

    fn moved(&mut self, bytes: u64) {
        self.note(|(_, moved)| *moved += bytes);
        self.sink.moved(bytes);
    }

    fn restart(&mut self) -> bool {
        self.skipped.is_none() && self.sink.restart()
    }

    fn finish(&mut self) -> Result<()> {
        self.sink.finish()
    }
}

/// A file sink that keeps the file if the server reports unchanged content.
struct UnlessUnchanged {
    sink: FileSink,
    is_unchanged: bool,
}

impl Sink for UnlessUnchanged {
    fn begin(&mut self, begin: &Begin<'_>) -> Result<()> {
        self.is_unchanged = begin.head.status() == NOT_MODIFIED;
        if self.is_unchanged { Ok(()) } else { self.sink.begin(begin) }
    }

    fn bytes(&mut self, lease: Lease<'_>) -> Result<()> {
        if self.is_unchanged { Ok(()) } else { self.sink.bytes(lease) }
    }

    fn pieces(&mut self, pieces: &mut [IoSlice<'_>]) -> Result<()> {
        if self.is_unchanged { Ok(()) } else { self.sink.pieces(pieces) }
    }

    fn direct(&mut self) -> Option<BorrowedFd<'_>> {
        if self.is_unchanged { None } else { self.sink.direct() }
    }

    fn moved(&mut self, bytes: u64) {
        self.sink.moved(bytes);
    }

    fn cannot_write(&self, error: io::Error) -> Error {
        self.sink.cannot_write(error)
    }

    fn partial(&mut self, target: &Target) -> Option<Partial> {
        self.sink.partial(target)
    }

    fn next_gap(&mut self) -> Option<Range<u64>> {
        self.sink.next_gap()
    }

    fn partial_file(&mut self) -> Option<Arc<PartialFile>> {
        self.sink.partial_file()
    }

    fn restart(&mut self) -> bool {
        self.sink.restart()
    }

    fn finish(&mut self) -> Result<()> {
        if self.is_unchanged { Ok(()) } else { self.sink.finish() }
    }

    fn file_name(&self) -> Option<&Path> {
        self.sink.file_name()
    }
}
