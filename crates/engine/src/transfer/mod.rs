//! One transfer: from a target to a delivered body, over as many exchanges as redirects and retries take.
//!
//! It holds no socket and never waits. A driver gives it what a connection says, and it answers what to do:
//!
//! ```text
//!            enqueue              on_head             on_body*           on_complete
//! Transfer ────────▶ h1::Conn ──────────▶ Transfer ───────────▶ sink ──────────────▶ After::Done
//!     ▲                 │ on_failure                                                   After::Again
//!     └─────────────────┴──────────────────────────────────────────────────────────────────┘
//! ```
//!
//! | part | what it is |
//! |---|---|
//! | `send` | the request of the next exchange |
//! | `content` | what the request carries, and whether it can be sent again |
//! | `auth` | in whose name, and how challenges are answered |
//! | `answer` | what a response's head means |
//! | `leaves` | what a response leaves behind for later requests |
//! | `extent` | which bytes are delivered, and how a broken body goes on |
//! | `pace` | how fast it may and must be |
//! | `part`, `cut` | one of several that fetch one body; where it stops because another part begins |
//!
//! What it leaves out: which connection is used ([`crate::net::pool`]), and when (the drivers).

mod answer;
mod auth;
mod content;
mod cut;
mod extent;
mod leaves;
mod pace;
mod part;
mod send;

use std::borrow::Cow;
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::io::{self, IoSlice};
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use haul_policy::queue::HostId;
use haul_policy::redirect::{Hop, Secrets};
use haul_policy::retry::{self, Outcome as Trouble};
use haul_policy::secrets::referer;
use haul_policy::target::{Origin, Target};
use haul_proto::h1::BodyFraming;
use haul_proto::head::{Fields, Head};

use crate::body::path::BodyPath;
use crate::buffer::Lease;
use crate::clock;
use crate::facts::Facts;
use crate::net::proxy::Via;
use crate::net::stream::Stream;
use crate::request::{Particulars, RequestOptions, Span, method};
use crate::sink::{Begin, Wake};
use crate::trace::Event;
use crate::{Error, ErrorKind, Result};
use auth::Login;
use extent::Extent;
use pace::Pace;

pub(crate) use cut::Cut;
pub use pace::Credit;
pub(crate) use part::{Splittable, Watch};

/// A body that nobody wants is read to its end, to keep the connection, if it is no longer than this.
const WORTH_DRAINING: u64 = 64 << 10;

/// A transfer that could be resumed and got so much further since it last failed has all its retries again.
const PROGRESS: u64 = 256 << 10;

/// How often it begins anew because the content changed, or the server does not do ranges after all.
const MAX_RESTARTS: u32 = 2;

/// With more bytes of redirects' heads than this, further ones are not kept for delivery: a hostile server sends as many
/// as it may.
const MOST_HEADS: usize = 1 << 20;

/// A transfer under way.
pub struct Transfer {
    options: Arc<RequestOptions>,
    own: Particulars,
    login: Login,
    referer: Option<String>,
    target: Target,
    first: Origin,
    /// What was asked for, once a redirect has led elsewhere.
    asked: Option<Box<Target>>,
    method: Cow<'static, str>,
    with_body: bool,
    secrets: Secrets,
    same_origin: bool,
    /// It was led from TLS into the clear.
    is_downgraded: bool,
    /// The server was asked whether it wants the content under way.
    asked_first: bool,
    /// It does not want to be asked.
    is_refused_to_be_asked: bool,
    hops: u32,
    attempt: u32,
    began: Instant,
    disposition: Disposition,
    extent: Extent,
    /// Whether ranges may be asked for: a GET whose caller has no range of its own in mind.
    may_range: bool,
    /// The sink was asked what it has already.
    has_looked: bool,
    /// The sink has been told of a response, and has what came of it.
    has_begun: bool,
    /// It goes on with what the user has, and cannot be had otherwise.
    is_fixed: bool,
    /// Bytes of the response under way that were delivered from an earlier one.
    skip: u64,
    /// How often it began anew because what it had could not be completed.
    restarts: u32,
    /// How far it was when it last failed.
    failed_at: u64,
    pace: Pace,
    /// Where others make it stop.
    cut: Option<Arc<Cut>>,
    /// It is a part of a split transfer: whether and where it is tried again is decided there, and the sink is not its own.
    is_part: bool,
    /// Which part it is to those who split it; none is the first.
    crew_id: Option<usize>,
    body: BodyPath,
    head: Option<Head>,
    /// How long the last response wants its host to be left alone.
    asked_pause: Option<Duration>,
    /// The request under way tells a proxy who asks.
    proxy_answered: bool,
    /// How often a proxy has asked who that is.
    proxy_rounds: u32,
    /// Heads of the redirects so far, where they are to be delivered.
    heads: Vec<u8>,
    /// The last of them that was no response to a request of its own: a proxy's, or an interim one.
    aside: Option<Box<Head>>,
    /// The redirects so far, where they are to be told of.
    history: Vec<Redirected>,
    trailers: Option<Fields>,
    /// What is known of it so far.
    pub facts: Facts,
    /// The caller's mark: which job this is.
    pub tag: u64,
    /// The host whose slot in the caller's queue it holds.
    pub slot: Option<HostId>,
    /// Its place among those that may have to wait for each other: none may wait behind one of a higher rank.
    pub rank: u64,
    /// The next exchange wants a connection that has carried nothing yet.
    pub wants_fresh: bool,
    /// The connection of its exchange has carried others before, maybe other hosts'.
    pub is_on_used: bool,
    /// A server has said that it does not answer for this host on such a connection.
    pub is_misdirected: bool,
    /// Its request was sent behind others that were not answered yet.
    pub is_pipelined: bool,
    /// How often it has waited for a descriptor.
    pub starved: u32,
    /// How often it was given back unprocessed, by a server that refused or broke off.
    pub replays: u32,
    /// Which of its host's addresses is tried first: parts of one body spread over them.
    pub spread: usize,
}

/// What happens to the body of the response under way.
enum Disposition {
    /// No head has come yet.
    Unknown,
    /// It goes to the sink.
    Deliver,
    /// It is dropped, and the transfer goes on at another target.
    Follow(Box<Hop>),
    /// It is dropped, and the transfer tried again after a while.
    Retry(Duration),
    /// It is dropped, and the transfer goes on with another request at once.
    Again,
    /// It is dropped: all that was wanted is there already.
    Complete,
    /// It is dropped, and the transfer fails.
    Fail(Error),
}

/// What becomes of a transfer when an exchange is over.
#[derive(Debug)]
pub enum After {
    /// It is finished.
    Done(Result<()>),
    /// It needs another exchange, after this while.
    Again(Duration),
}

/// What was going on when an exchange broke.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Broke {
    /// No connection could be made: nothing was sent.
    BeforeSending,
    /// On a connection that had served before, and no byte of the response had come: the peer most likely closed it
    /// while it was idle.
    WhileStale,
    /// No byte of the response had come.
    BeforeResponse,
    /// In the head or the body of the response.
    InResponse,
    /// The peer broke the protocol: it would again.
    ByProtocol,
}

/// A transfer at its end.
#[derive(Debug)]
pub struct Outcome {
    /// Whether the body was delivered whole.
    pub result: Result<()>,
    /// The target of the last exchange.
    pub target: Target,
    /// The head of the last response.
    pub head: Option<Head>,
    /// Sizes, times and addresses.
    pub facts: Facts,
    /// The caller's mark.
    pub tag: u64,
    /// The redirects that were followed, where [`RequestOptions::keep_history`] asks for them.
    pub history: Vec<Redirected>,
    /// The trailer section of the body (RFC 9110 section 6.5), where there was one.
    pub trailers: Option<Fields>,
}

/// A redirect that was followed.
#[derive(Debug, Clone)]
pub struct Redirected {
    /// What was asked for.
    pub target: Target,
    /// The head that led on.
    pub head: Head,
}

impl Transfer {
    /// A transfer of `target`'s content along `body`.
    #[must_use]
    pub fn new(target: Target, options: Arc<RequestOptions>, body: BodyPath, now: Instant, tag: u64) -> Self {
        Self::with(target, options, Particulars::default(), body, now, tag)
    }

    /// The same with what this request has of its own.
    #[must_use]
    pub fn with(
        target: Target,
        options: Arc<RequestOptions>,
        mut own: Particulars,
        body: BodyPath,
        now: Instant,
        tag: u64,
    ) -> Self {
        let target = options.hsts.as_ref().and_then(|hsts| hsts.upgrade(&target)).unwrap_or(target);
        let is_range = |(name, _): &(String, Vec<u8>)| name.eq_ignore_ascii_case("range");
        let method = own.method.take().unwrap_or_else(|| method(&options.method));
        let with_body = own.body.is_some() || options.body.is_some();
        let is_ranged = options.range.is_some() || options.fields.iter().chain(&own.fields).any(is_range);
        let may_range = method == "GET" && !is_ranged && !with_body;
        Self {
            login: Login::new(&target),
            referer: options.referer.clone(),
            first: target.origin(),
            asked: None,
            target,
            method,
            with_body,
            own,
            extent: Extent::of(&options),
            may_range,
            has_looked: options.resume_from.is_some() || options.span.is_some(),
            has_begun: false,
            is_fixed: options.resume_from.is_some() || matches!(options.span, Some(Span::Rest { .. })),
            skip: 0,
            restarts: 0,
            failed_at: 0,
            pace: Pace::new(&options, now),
            cut: None,
            is_part: false,
            crew_id: None,
            options,
            secrets: Secrets::Keep,
            same_origin: true,
            is_downgraded: false,
            asked_first: false,
            is_refused_to_be_asked: false,
            hops: 0,
            attempt: 0,
            began: now,
            disposition: Disposition::Unknown,
            body,
            head: None,
            asked_pause: None,
            proxy_answered: false,
            proxy_rounds: 0,
            heads: Vec::new(),
            aside: None,
            history: Vec::new(),
            trailers: None,
            facts: Facts::new(now),
            tag,
            slot: None,
            rank: 0,
            wants_fresh: false,
            is_on_used: false,
            is_misdirected: false,
            is_pipelined: false,
            starved: 0,
            replays: 0,
            spread: 0,
        }
    }

    /// Makes it ready to be tried again though it is over, as if nothing had come of it. `false` where that cannot be.
    pub fn revive(&mut self) -> bool {
        let may = retry::is_idempotent(&self.method) && self.body.restart();
        if may {
            self.start_over();
        }
        may
    }

    /// As if nothing had come of it yet.
    fn start_over(&mut self) {
        self.extent = match self.options.span {
            Some(Span::Rest { .. }) => Extent::of(&self.options),
            // That a range is asked for was the engine's idea: now it is all of it.
            _ => Extent::from(self.options.resume_from.unwrap_or(0)),
        };
        self.has_begun = false;
        self.skip = 0;
        self.failed_at = 0;
        self.facts.body_bytes = 0;
    }

    /// Whether its request may be sent before `earlier` is answered on the same connection (RFC 9112 section 9.3.2).
    #[must_use]
    pub fn may_follow(&self, earlier: &Self) -> bool {
        let plain = |transfer: &Self| retry::is_idempotent(&transfer.method) && !transfer.has_content();
        plain(self) && plain(earlier) && earlier.rank <= self.rank
    }

    /// Where the next exchange goes.
    #[must_use]
    pub fn target(&self) -> &Target {
        &self.target
    }

    /// The method of the next exchange.
    #[must_use]
    pub fn method(&self) -> &str {
        &self.method
    }

    /// What is asked for.
    #[must_use]
    pub fn options(&self) -> &Arc<RequestOptions> {
        &self.options
    }

    /// When this attempt must be over.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        self.own.max_time.or(self.options.max_time).and_then(|limit| self.began.checked_add(limit))
    }

    /// The head of the response that is delivered, once it has come.
    #[must_use]
    pub fn head(&self) -> Option<&Head> {
        self.head.as_ref()
    }

    /// The redirects that were followed, where they are kept.
    #[must_use]
    pub fn history(&self) -> &[Redirected] {
        &self.history
    }

    /// The trailer section of the response under way.
    ///
    /// # Errors
    /// What the sink says, where heads are delivered and these with them.
    pub fn on_trailers(&mut self, trailers: Option<Fields>) -> Result<()> {
        if !matches!(self.disposition, Disposition::Deliver) {
            return Ok(());
        }
        if let (Some(trace), Some(fields)) = (&self.options.trace, &trailers) {
            trace.event(&Event::Trailers { fields });
        }
        let shown = trailers.as_ref().map(Fields::raw).filter(|raw| self.options.include_head && !raw.is_empty());
        // Behind the body, as it came; the empty line that ends it is none of its fields.
        let outcome = shown.map_or(Ok(()), |raw| self.body.append(raw.strip_suffix(b"\r\n").unwrap_or(raw)));
        self.trailers = trailers;
        outcome
    }

    /// How many body bytes may be read now.
    pub fn credit(&mut self, now: Instant, waker: Option<&Arc<dyn Wake>>, token: usize) -> Credit {
        let Disposition::Deliver = self.disposition else { return Credit::Bytes(u64::MAX) };
        let mut credit = self.body.credit(waker, token);
        if let Some(cut) = &self.cut {
            credit = credit.min(cut.room(self.extent.at, waker, token));
        }
        self.pace.allow(credit.saturating_add(if credit == 0 { 0 } else { self.skip }), now)
    }

    /// Whether what its server sends next would be taken, as far as that can be known before a response has begun.
    pub fn is_ready(&mut self, waker: Option<&Arc<dyn Wake>>, token: usize) -> bool {
        match self.disposition {
            Disposition::Unknown | Disposition::Deliver => self.body.credit(waker, token) > 0,
            _ => true,
        }
    }

    /// Whether it has got to where another part begins: the rest of the response is not wanted.
    #[must_use]
    pub fn is_satisfied(&self) -> bool {
        let is_delivered = matches!(self.disposition, Disposition::Deliver);
        is_delivered && self.cut.as_ref().is_some_and(|cut| cut.is_reached(self.extent.at))
    }

    /// Whether it is bound to a rate.
    #[must_use]
    pub fn is_paced(&self) -> bool {
        self.pace.is_limited()
    }

    /// A part of its request has left: the server is not silent while it is being sent to.
    pub fn took_content(&mut self) {
        self.pace.stirs();
    }

    /// Whether the server's silence is limited.
    #[must_use]
    pub fn is_timed(&self) -> bool {
        self.pace.is_timed()
    }

    /// When the server has been silent for too long, if that is limited.
    #[must_use]
    pub fn silent_until(&self) -> Option<Instant> {
        self.pace.silent_until()
    }

    /// When [`Transfer::look`] is to be called, if ever.
    #[must_use]
    pub fn look_at(&self) -> Option<Instant> {
        self.pace.look_at()
    }

    /// Whether it has been too slow for too long.
    pub fn look(&mut self, now: Instant) -> Option<Error> {
        self.pace.look(self.facts.body_bytes, now)
    }

    /// It waits for its sink, not for the server, or no longer.
    pub fn is_held_up(&mut self, paused: bool, now: Instant) {
        self.pace.is_held_up(paused, now);
    }

    /// Whether a body that nobody wants is not worth reading (any further): the connection is better closed.
    #[must_use]
    pub fn is_cut_short(&self, framing: BodyFraming) -> bool {
        let unwanted = !matches!(self.disposition, Disposition::Unknown | Disposition::Deliver);
        unwanted
            && match framing {
                BodyFraming::None => false,
                BodyFraming::Length(length) => length > WORTH_DRAINING,
                BodyFraming::Chunked => self.facts.body_bytes > WORTH_DRAINING,
                BodyFraming::UntilClose => true,
            }
    }

    /// It has a connection; `again` if that has served before.
    pub fn on_connection(&mut self, stream: &Stream, again: bool) {
        self.facts.local = self.facts.local.or(stream.local);
        self.facts.proxy_used = !matches!(Via::of(&self.target, &self.options), Via::Direct);
        let Some(trace) = &self.options.trace else { return };
        let host = self.target.host_text();
        let text = match stream.peer {
            _ if again => format!("Reusing existing connection with host {host}"),
            Some(peer) => format!("Connected to {host} ({}) port {}", peer.ip(), peer.port()),
            None => format!("Connected to {host} by a local socket"),
        };
        trace.event(&Event::Info(text.into()));
        if let Some(agreed) = stream.agreed().filter(|_| !again) {
            trace.event(&Event::Info(agreed.into()));
        }
    }

    /// Content of its request goes out.
    pub fn on_sent(&mut self, content: &[u8]) {
        self.facts.upload_bytes += content.len() as u64;
        if let Some(trace) = self.options.trace.as_ref().filter(|trace| trace.wants_content()) {
            trace.event(&Event::Sent(content));
        }
    }

    /// What a proxy has answered to CONNECT.
    pub fn on_connect_answer(&mut self, head: &Head) {
        self.facts.head_bytes += head.raw().len() as u64;
        if let Some(trace) = &self.options.trace {
            trace.event(&Event::Connect { head });
        }
        if self.options.include_head && self.options.connect_heads && self.heads.len() <= MOST_HEADS {
            self.heads.extend_from_slice(head.raw());
            self.aside = Some(Box::new(head.clone()));
        }
    }

    /// An interim response (1xx).
    pub fn on_interim(&mut self, head: &Head) {
        self.facts.head_bytes += head.raw().len() as u64;
        if let Some(trace) = &self.options.trace {
            trace.event(&Event::Interim { head });
        }
        if self.options.include_head && !self.has_begun && self.heads.len() <= MOST_HEADS {
            self.heads.extend_from_slice(head.raw());
            self.aside = Some(Box::new(head.clone()));
        }
    }

    /// Whoever watches the content has to see it.
    fn show(&self, content: &[u8]) {
        if let Some(trace) = self.options.trace.as_ref().filter(|trace| trace.wants_content()) {
            trace.event(&Event::Received(content));
        }
    }

    /// Body bytes.
    ///
    /// # Errors
    /// What the decoder, the extraction or the sink says; the transfer cannot go on then.
    pub fn on_body(&mut self, lease: Lease<'_>) -> Result<()> {
        let bytes = lease.bytes().len() as u64;
        self.show(lease.bytes());
        self.pace.came(bytes);
        if !matches!(self.disposition, Disposition::Deliver) {
            self.facts.body_bytes += bytes;
            return Ok(());
        }
        let wanted = self.wanted(bytes)?;
        if wanted.end - wanted.start == bytes {
            return self.body.push(lease);
        }
        let wanted = wanted.start as usize..wanted.end as usize;
        if wanted.is_empty() { Ok(()) } else { self.body.push(Lease::borrowed(&lease.bytes()[wanted])) }
    }

    /// Of so many bytes that came, which are to be delivered: not those that were before, and none behind the end.
    fn wanted(&mut self, bytes: u64) -> Result<std::ops::Range<u64>> {
        let start = self.skip.min(bytes);
        self.skip -= start;
        let at = self.extent.at;
        let came_to = at.saturating_add(bytes - start);
        if self.may_range && self.extent.goal().is_some_and(|goal| came_to > goal) {
            return Err(Error::new(ErrorKind::Receive, "the server sent more than the range it announced"));
        }
        let end = self.cut.as_ref().map_or(came_to, |cut| cut.shorten(at, came_to));
        self.moved_to(end);
        self.facts.body_bytes += end - at;
        self.check_size(end)?;
        Ok(start..start + (end - at))
    }

    fn moved_to(&mut self, at: u64) {
        self.extent.at = at;
        if let Some(cut) = &self.cut {
            cut.moved_to(at);
        }
    }

    /// Body bytes that lie in several places.
    ///
    /// # Errors
    /// As [`Transfer::on_body`].
    pub fn on_pieces(&mut self, pieces: &mut [IoSlice<'_>]) -> Result<()> {
        let bytes = pieces.iter().map(|piece| piece.len() as u64).sum::<u64>();
        let (at, to) = (self.extent.at, self.extent.at + bytes);
        let is_whole = self.skip == 0 && self.cut.as_ref().is_none_or(|cut| cut.shorten(at, to) == to);
        if !is_whole || !matches!(self.disposition, Disposition::Deliver) {
            return pieces.iter().try_for_each(|piece| self.on_body(Lease::borrowed(piece)));
        }
        pieces.iter().for_each(|piece| self.show(piece));
        self.pace.came(bytes);
        self.wanted(bytes)?;
        self.body.push_pieces(pieces)
    }

    /// Whether somebody looks at the content on its way.
    fn is_watched(&self) -> bool {
        self.options.trace.as_ref().is_some_and(|trace| trace.wants_content())
    }

    /// The descriptor that body bytes may be moved to, if nobody has to see them.
    pub fn direct(&mut self) -> Option<BorrowedFd<'_>> {
        match self.disposition {
            Disposition::Deliver if self.skip == 0 && !self.is_watched() => self.body.direct(),
            _ => None,
        }
    }

    /// Receives body bytes into memory of the sink; see [`Sink::receive`](crate::sink::Sink::receive). What came is to be
    /// counted by [`Transfer::on_moved`].
    pub fn receive(&mut self, socket: BorrowedFd<'_>, most: usize) -> Option<io::Result<usize>> {
        match self.disposition {
            Disposition::Deliver if self.skip == 0 && self.cut.is_none() && !self.is_watched() => {
                self.body.receive(socket, most)
            }
            _ => None,
        }
    }

    /// So many bytes were moved to the descriptor that [`Transfer::direct`] gave.
    ///
    /// # Errors
    /// The transfer cannot go on: the body is larger than is allowed.
    pub fn on_moved(&mut self, bytes: u64) -> Result<()> {
        self.pace.came(bytes);
        self.moved_to(self.extent.at + bytes);
        self.facts.body_bytes += bytes;
        self.body.moved(bytes);
        self.check_size(self.extent.at)
    }

    /// What it means that nothing (more) can be moved there.
    #[must_use]
    pub fn cannot_write(&self, error: io::Error) -> Error {
        self.body.sink().cannot_write(error)
    }

    /// The response is complete, or the rest of it is not read ([`Transfer::is_cut_short`]).
    pub fn on_complete(&mut self, now: Instant) -> After {
        match std::mem::replace(&mut self.disposition, Disposition::Unknown) {
            Disposition::Deliver => self.delivered(now),
            Disposition::Complete => {
                self.show_heads();
                let result = self.body.finish();
                self.done(result, now)
            }
            Disposition::Again => After::Again(Duration::ZERO),
            Disposition::Follow(hop) => {
                self.hops += 1;
                self.facts.redirects = self.hops;
                self.facts.redirected = now.saturating_duration_since(self.facts.started);
                if self.options.auto_referer {
                    self.referer = referer(&self.target, &hop.target);
                    self.facts.referer = self.referer.as_deref().map(Box::from);
                }
                let left = std::mem::replace(&mut self.target, hop.target);
                self.asked.get_or_insert_with(|| Box::new(left));
                if self.method != hop.method {
                    self.facts.method = Some(hop.method.as_str().into());
                }
                self.method = method(&hop.method);
                self.same_origin = hop.same_origin;
                self.is_downgraded = hop.downgraded;
                self.with_body &= hop.keep_body;
                self.secrets = hop.secrets;
                self.is_refused_to_be_asked = false;
                self.login = self.login.elsewhere();
                if let Some(error) = self.cannot_send_again() {
                    return self.done(Err(error), now);
                }
                After::Again(Duration::ZERO)
            }
            Disposition::Retry(wait) => self.again(wait, now),
            Disposition::Fail(error) => self.done(Err(error), now),
            Disposition::Unknown => self.done(Err(Error::new(ErrorKind::EmptyReply, "the response has no head")), now),
        }
    }

    /// A response was delivered to its end: whether that was all.
    fn delivered(&mut self, now: Instant) -> After {
        if self.is_part && self.cut.as_ref().is_some_and(|cut| cut.is_reached(self.extent.at)) {
            return self.done(Ok(()), now);
        }
        let is_short = self.may_range && self.extent.goal().is_some_and(|goal| self.extent.at < goal);
        if is_short {
            self.disposition = Disposition::Deliver;
            let error = Error::new(ErrorKind::PartialBody, "the server sent less than the range it announced");
            return self.on_failure(error, Broke::InResponse, now);
        }
        if self.is_part {
            return self.done(Ok(()), now);
        }
        if self.may_range
            && let Some(gap) = self.body.next_gap()
        {
            self.extent.moves_to(gap);
            return After::Again(Duration::ZERO);
        }
        let result = self.body.finish().and_then(|()| self.failed_status());
        self.done(result, now)
    }

    /// The error that a response's status is, where its body was wanted all the same.
    fn failed_status(&self) -> Result<()> {
        let is_failure = self.options.fail && self.options.fail_with_body && self.facts.status >= 400;
        match &self.head {
            Some(head) if is_failure => Err(answer::bad_status(head)),
            _ => Ok(()),
        }
    }

    /// The exchange broke: whether the transfer is over, or tried again.
    pub fn on_failure(&mut self, error: Error, broke: Broke, now: Instant) -> After {
        // What was decided on the head stands, whatever happens to a body that nobody wants.
        if !matches!(self.disposition, Disposition::Unknown | Disposition::Deliver) {
            return self.on_complete(now);
        }
        let trouble = match (error.kind(), broke) {
            (_, Broke::ByProtocol) => Trouble::Permanent,
            (ErrorKind::Timeout, Broke::BeforeSending) => Trouble::ConnectTimeout,
            (ErrorKind::Timeout, _) => Trouble::Timeout,
            (ErrorKind::Connect, _) => Trouble::ConnectRefused,
            // An answer that there is no such name stands; that the resolver could not ask does not (as to curl).
            (ErrorKind::Resolve | ErrorKind::ProxyResolve, _) => {
                Trouble::Dns { transient: error.io_source().is_some() }
            }
            (
                ErrorKind::EmptyReply
                | ErrorKind::Send
                | ErrorKind::Receive
                | ErrorKind::PartialBody
                | ErrorKind::Http2Stream,
                Broke::InResponse,
            ) => Trouble::ResetInBody,
            (
                ErrorKind::EmptyReply | ErrorKind::Send | ErrorKind::Receive | ErrorKind::Http2Stream,
                Broke::WhileStale | Broke::BeforeResponse,
            ) => Trouble::ResetBeforeResponse,
            _ => Trouble::Permanent,
        };
        if let (Some(_), true) = (self.cannot_send_again(), broke != Broke::BeforeSending) {
            return self.done(Err(error), now);
        }
        let idempotent = retry::is_idempotent(&self.method);
        if broke == Broke::WhileStale && idempotent && trouble == Trouble::ResetBeforeResponse {
            // The request was most likely never seen (RFC 9112 section 9.3.1); this is no attempt of its own.
            self.wants_fresh = true;
            return After::Again(Duration::ZERO);
        }
        if self.is_part {
            return self.done(Err(error), now);
        }
        if self.extent.at.saturating_sub(self.failed_at) >= PROGRESS {
            // It got on: this is the first failure here.
            self.attempt = 0;
        }
        let resumes = self.options.resume && self.has_begun && self.may_range && self.extent.is_resumable();
        match self.may_retry(trouble, None) {
            Some(wait) if resumes || !self.has_begun => {
                self.failed_at = self.extent.at;
                self.again(wait, now)
            }
            Some(wait) if self.body.restart() => {
                self.start_over();
                self.again(wait, now)
            }
            _ => self.done(Err(error), now),
        }
    }

    fn may_retry(&self, trouble: Trouble, retry_after: Option<Duration>) -> Option<Duration> {
        let elapsed = self.facts.started.elapsed();
        let idempotent = retry::is_idempotent(&self.method);
        retry::decide(&self.options.retry, trouble, self.attempt, idempotent, retry_after, elapsed, entropy())
    }

    fn again(&mut self, wait: Duration, now: Instant) -> After {
        self.attempt += 1;
        self.facts.retries += 1;
        self.began = clock::after(now, wait);
        After::Again(wait)
    }

    /// Heads are delivered where they are wanted, though no body follows them.
    fn show_heads(&mut self) {
        if !self.options.include_head || self.has_begun || self.is_part || self.heads.is_empty() {
            return;
        }
        let Some(head) = self.head.as_ref().or(self.aside.as_deref()) else { return };
        self.has_begun = true;
        let begin = Begin {
            head,
            target: self.asked.as_deref().unwrap_or(&self.target),
            place: &self.target,
            history: &self.history,
            facts: &self.facts,
            length: Some(0),
            offset: self.extent.at,
            total: None,
            validator: None,
            deadline: self.deadline(),
        };
        // What made it end is told; that this could not be shown either, is the lesser trouble.
        let _ = self.body.begin(&begin, &self.heads, b"", self.options.decode_limits);
    }

    fn done(&mut self, result: Result<()>, now: Instant) -> After {
        if result.is_err() {
            self.show_heads();
        }
        self.facts.finished(now);
        After::Done(result.map_err(|error| error.with_url(self.target.to_url())))
    }

    /// What a pause asked for by the server (429 or 503 with Retry-After) means for other requests to the host of
    /// [`Transfer::slot`]; it is none's when the last exchange brought no such answer, or another host did.
    #[must_use]
    pub fn host_pause(&self) -> Option<Duration> {
        self.asked_pause
    }

    fn pause_in(&self, head: &Head) -> Option<Duration> {
        if !matches!(head.status(), 429 | 503) || !self.same_origin || self.options.retry.max == 0 {
            return None;
        }
        let asked = retry::parse_retry_after(head.get("retry-after")?, clock::unix_now())?;
        Some(asked.min(self.options.retry.cap))
    }

    /// The end: the body path gives back what it holds.
    #[must_use]
    pub fn into_outcome(self, result: Result<()>) -> (Outcome, BodyPath) {
        let outcome = Outcome {
            result,
            target: self.target,
            head: self.head,
            facts: self.facts,
            tag: self.tag,
            history: self.history,
            trailers: self.trailers,
        };
        (outcome, self.body)
    }
}

/// The value of `Authorization` for the Basic scheme (RFC 7617).
#[must_use]
pub fn basic(user: &[u8], password: &[u8]) -> Vec<u8> {
    let pair = [user, b":", password].concat();
    format!("Basic {}", STANDARD.encode(pair)).into_bytes()
}

/// A number that no peer can guess, to spread retries.
fn entropy() -> u64 {
    let mut hasher = RandomState::new().build_hasher();
    hasher.write_u128(SystemTime::now().elapsed().map_or(0, |elapsed| elapsed.as_nanos()));
    hasher.finish()
}
