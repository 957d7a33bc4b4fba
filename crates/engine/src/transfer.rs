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
//! What it leaves out: which connection is used ([`crate::net::pool`]), and when (the drivers).

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::io::{self, IoSlice};
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use haul_policy::queue::HostId;
use haul_policy::redirect::{self, Hop, Secrets};
use haul_policy::retry::{self, Outcome as Trouble};
use haul_policy::secrets::{fields_for, referer};
use haul_policy::target::{Origin, Target};
use haul_proto::h1::{self, BodyFraming, BodyLength};
use haul_proto::head::Head;

use crate::body::path::BodyPath;
use crate::buffer::Lease;
use crate::clock;
use crate::facts::Facts;
use crate::request::RequestOptions;
use crate::sink::{Begin, Wake};
use crate::trace::{self, Event};
use crate::{Error, ErrorKind, Result};

/// A body that nobody wants is read to its end, to keep the connection, if it is no longer than this.
const WORTH_DRAINING: u64 = 64 << 10;

/// With more bytes of redirects' heads than this, further ones are not kept for delivery: a hostile server sends as many
/// as it may.
const MOST_HEADS: usize = 1 << 20;

/// A transfer under way.
pub struct Transfer {
    options: Arc<RequestOptions>,
    authorization: Option<Vec<u8>>,
    referer: Option<String>,
    target: Target,
    first: Origin,
    method: String,
    with_body: bool,
    secrets: Secrets,
    same_origin: bool,
    hops: u32,
    attempt: u32,
    began: Instant,
    disposition: Disposition,
    body: BodyPath,
    head: Option<Head>,
    /// How long the last response wants its host to be left alone.
    asked_pause: Option<Duration>,
    /// Heads of the redirects so far, where they are to be delivered.
    heads: Vec<u8>,
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
    /// Its request was sent behind others that were not answered yet.
    pub is_pipelined: bool,
    /// How often it has waited for a descriptor.
    pub starved: u32,
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
}

impl Transfer {
    /// A transfer of `target`'s content along `body`.
    #[must_use]
    pub fn new(target: Target, options: Arc<RequestOptions>, body: BodyPath, now: Instant, tag: u64) -> Self {
        let authorization = options.authorization.clone().or_else(|| {
            let (user, password) = target.userinfo_bytes()?;
            Some(basic(&user, &password))
        });
        Self {
            authorization,
            referer: options.referer.clone(),
            first: target.origin(),
            target,
            method: options.method.clone(),
            with_body: options.body.is_some(),
            options,
            secrets: Secrets::Keep,
            same_origin: true,
            hops: 0,
            attempt: 0,
            began: now,
            disposition: Disposition::Unknown,
            body,
            head: None,
            asked_pause: None,
            heads: Vec::new(),
            facts: Facts::new(now),
            tag,
            slot: None,
            rank: 0,
            wants_fresh: false,
            is_pipelined: false,
            starved: 0,
        }
    }

    /// Makes it ready to be tried again though it is over, as if nothing had come of it. `false` where that cannot be.
    pub fn revive(&mut self) -> bool {
        retry::is_idempotent(&self.method) && self.body.restart()
    }

    /// Whether its request may be sent before `earlier` is answered on the same connection (RFC 9112 section 9.3.2).
    #[must_use]
    pub fn may_follow(&self, earlier: &Self) -> bool {
        let plain = |transfer: &Self| retry::is_idempotent(&transfer.method) && transfer.content().is_none();
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
        self.options.max_time.and_then(|limit| self.began.checked_add(limit))
    }

    /// Puts the request into the connection's machine.
    ///
    /// # Errors
    /// [`ErrorKind::Setup`] if a field or the method cannot be sent.
    pub fn enqueue(&mut self, conn: &mut h1::Conn, now: Instant) -> Result<h1::RequestId> {
        self.disposition = Disposition::Unknown;
        self.asked_pause = None;
        self.wants_fresh = false;
        let options = &*self.options;
        let authority = self.target.authority();
        let keep_secrets = matches!(self.secrets, Secrets::Keep);
        let range = options.range.as_ref().map(|range| format!("bytes={range}"));
        let own = |name: &str| {
            !options.fields.iter().any(|(field, _)| field.eq_ignore_ascii_case(name))
                && !options.without.iter().any(|field| field.eq_ignore_ascii_case(name))
        };
        let made: [(&str, Option<&[u8]>); 8] = [
            ("Host", Some(authority.as_bytes())),
            ("Authorization", self.authorization.as_deref().filter(|_| keep_secrets)),
            ("Range", range.as_deref().map(str::as_bytes)),
            ("User-Agent", options.user_agent.as_deref().map(str::as_bytes)),
            ("Accept", Some(b"*/*")),
            ("Accept-Encoding", options.decode.then(|| crate::body::accept_encoding().as_bytes())),
            ("Referer", self.referer.as_deref().map(str::as_bytes)),
            ("Cookie", options.cookie.as_deref().filter(|_| keep_secrets)),
        ];
        let mut fields: Vec<(&str, &[u8])> = Vec::with_capacity(made.len() + options.fields.len());
        fields.extend(made.iter().filter(|(name, _)| own(name)).filter_map(|&(name, value)| Some((name, value?))));
        // A Host of the caller's own belongs to the first origin only.
        let is_host = |name: &str| name.eq_ignore_ascii_case("host");
        // What describes content goes where the content goes (RFC 9110 section 15.4).
        let orphan = |name: &str| {
            options.body.is_some()
                && !self.with_body
                && name.get(..8).is_some_and(|start| start.eq_ignore_ascii_case("content-"))
        };
        let given = fields_for(&options.fields, self.secrets)
            .filter(|(name, _)| (self.same_origin || !is_host(name)) && !orphan(name));
        fields.extend(given.map(|(name, value)| (name.as_str(), value.as_slice())));
        if !self.same_origin && !own("Host") {
            fields.insert(0, ("Host", authority.as_bytes()));
        }
        let content = options.body.as_deref().filter(|_| self.with_body);
        let request = h1::Request {
            method: &self.method,
            target: self.target.path_and_query(),
            fields: &fields,
            body: content.map_or(BodyLength::None, |content| BodyLength::Known(content.len() as u64)),
            expect_continue: false,
        };
        self.facts.exchange_began(now);
        if let Some(trace) = &options.trace {
            trace.event(&trace::request(&request));
        }
        conn.enqueue(clock::time(now), &request).map_err(|error| {
            Error::with_source(ErrorKind::Setup, "the request cannot be sent", error).with_url(self.target.to_url())
        })
    }

    /// The content that goes with the request.
    #[must_use]
    pub fn content(&self) -> Option<&Arc<[u8]>> {
        self.options.body.as_ref().filter(|_| self.with_body)
    }

    /// The head of the final response. Decides what becomes of the body.
    pub fn on_head(&mut self, head: Head, framing: BodyFraming, now: Instant) {
        self.facts.head_came(&head, now);
        if let Some(trace) = &self.options.trace {
            trace.event(&Event::Response { head: &head });
        }
        self.asked_pause = self.pause_in(&head);
        let earlier = self.heads.len();
        if self.options.include_head {
            self.heads.extend_from_slice(head.raw());
        }
        self.disposition = self.decide(&head, framing);
        if !matches!(self.disposition, Disposition::Follow(_)) || earlier > MOST_HEADS {
            self.heads.truncate(earlier);
        }
        self.head = Some(head);
    }

    fn decide(&mut self, head: &Head, framing: BodyFraming) -> Disposition {
        let options = Arc::clone(&self.options);
        let status = head.status();
        let hop = redirect::decide(
            &options.redirects,
            self.hops,
            status,
            head.get("location"),
            &self.method,
            &self.target,
            &self.first,
        );
        match hop {
            Ok(Some(hop)) => return Disposition::Follow(Box::new(hop)),
            Ok(None) => {}
            Err(error) => {
                let kind = match error.exit_code() {
                    1 => ErrorKind::UnsupportedScheme,
                    47 => ErrorKind::TooManyRedirects,
                    _ => ErrorKind::Url,
                };
                return Disposition::Fail(Error::with_source(kind, "the redirect cannot be followed", error));
            }
        }
        if status >= 400 {
            let retry_after =
                head.get("retry-after").and_then(|value| retry::parse_retry_after(value, clock::unix_now()));
            if let Some(wait) = self.may_retry(Trouble::Status(status), retry_after) {
                return Disposition::Retry(wait);
            }
            if options.fail {
                let reason = String::from_utf8_lossy(head.reason());
                let message = format!("the server answered {status} {}", reason.escape_debug());
                return Disposition::Fail(Error::new(ErrorKind::Status, message.trim_end()));
            }
        }
        match self.begin(head, framing) {
            Ok(()) => Disposition::Deliver,
            Err(error) => Disposition::Fail(error),
        }
    }

    fn begin(&mut self, head: &Head, framing: BodyFraming) -> Result<()> {
        let length = match framing {
            BodyFraming::Length(length) => Some(length),
            BodyFraming::None => Some(0),
            _ => None,
        };
        self.check_size(length.unwrap_or(0))?;
        let coding = if self.options.decode && length != Some(0) {
            let values: Vec<&[u8]> = head.get_all("content-encoding").collect();
            values.join(&b", "[..])
        } else {
            Vec::new()
        };
        self.body.begin(
            &Begin { head, length, deadline: self.deadline() },
            &self.heads,
            &coding,
            self.options.decode_limits,
        )
    }

    fn check_size(&self, size: u64) -> Result<()> {
        match self.options.max_size {
            Some(limit) if size > limit => {
                let message = format!("the body is larger than the {limit} bytes that are allowed");
                Err(Error::new(ErrorKind::TooLarge, message))
            }
            _ => Ok(()),
        }
    }

    /// How many body bytes may be read now.
    pub fn credit(&mut self, waker: Option<&Arc<dyn Wake>>, token: usize) -> u64 {
        match self.disposition {
            Disposition::Deliver => self.body.credit(waker, token),
            _ => u64::MAX,
        }
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

    /// Body bytes.
    ///
    /// # Errors
    /// What the decoder, the extraction or the sink says; the transfer cannot go on then.
    pub fn on_body(&mut self, lease: Lease<'_>) -> Result<()> {
        self.facts.body_bytes += lease.bytes().len() as u64;
        match self.disposition {
            Disposition::Deliver => {
                self.check_size(self.facts.body_bytes)?;
                self.body.push(lease)
            }
            _ => Ok(()),
        }
    }

    /// Body bytes that lie in several places.
    ///
    /// # Errors
    /// As [`Transfer::on_body`].
    pub fn on_pieces(&mut self, pieces: &mut [IoSlice<'_>]) -> Result<()> {
        self.facts.body_bytes += pieces.iter().map(|piece| piece.len() as u64).sum::<u64>();
        match self.disposition {
            Disposition::Deliver => {
                self.check_size(self.facts.body_bytes)?;
                self.body.push_pieces(pieces)
            }
            _ => Ok(()),
        }
    }

    /// The descriptor that body bytes may be moved to, if nobody has to see them.
    pub fn direct(&mut self) -> Option<BorrowedFd<'_>> {
        match self.disposition {
            Disposition::Deliver => self.body.direct(),
            _ => None,
        }
    }

    /// So many bytes were moved to the descriptor that [`Transfer::direct`] gave.
    ///
    /// # Errors
    /// The transfer cannot go on: the body is larger than is allowed.
    pub fn on_moved(&mut self, bytes: u64) -> Result<()> {
        self.facts.body_bytes += bytes;
        self.body.moved(bytes);
        self.check_size(self.facts.body_bytes)
    }

    /// What it means that nothing (more) can be moved there.
    #[must_use]
    pub fn cannot_write(&self, error: io::Error) -> Error {
        self.body.sink().cannot_write(error)
    }

    /// The response is complete, or the rest of it is not read ([`Transfer::is_cut_short`]).
    pub fn on_complete(&mut self, now: Instant) -> After {
        match std::mem::replace(&mut self.disposition, Disposition::Unknown) {
            Disposition::Deliver => {
                let result = self.body.finish();
                self.done(result, now)
            }
            Disposition::Follow(hop) => {
                self.hops += 1;
                self.facts.redirects = self.hops;
                if self.options.auto_referer {
                    self.referer = referer(&self.target, &hop.target);
                }
                self.target = hop.target;
                self.method = hop.method;
                self.same_origin = hop.same_origin;
                self.with_body &= hop.keep_body;
                self.secrets = hop.secrets;
                After::Again(Duration::ZERO)
            }
            Disposition::Retry(wait) => self.again(wait, now),
            Disposition::Fail(error) => self.done(Err(error), now),
            Disposition::Unknown => self.done(Err(Error::new(ErrorKind::EmptyReply, "the response has no head")), now),
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
            (ErrorKind::Resolve, _) => Trouble::Dns { transient: error.io_source().is_some() },
            (
                ErrorKind::EmptyReply | ErrorKind::Send | ErrorKind::Receive | ErrorKind::PartialBody,
                Broke::InResponse,
            ) => Trouble::ResetInBody,
            (
                ErrorKind::EmptyReply | ErrorKind::Send | ErrorKind::Receive,
                Broke::WhileStale | Broke::BeforeResponse,
            ) => Trouble::ResetBeforeResponse,
            _ => Trouble::Permanent,
        };
        let idempotent = retry::is_idempotent(&self.method);
        if broke == Broke::WhileStale && idempotent && trouble == Trouble::ResetBeforeResponse {
            // The request was most likely never seen (RFC 9112 section 9.3.1); this is no attempt of its own.
            self.wants_fresh = true;
            return After::Again(Duration::ZERO);
        }
        match self.may_retry(trouble, None) {
            Some(wait) if self.body.restart() => self.again(wait, now),
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
        self.facts.retries = self.attempt;
        self.facts.body_bytes = 0;
        self.began = clock::after(now, wait);
        After::Again(wait)
    }

    fn done(&mut self, result: Result<()>, now: Instant) -> After {
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
        let outcome = Outcome { result, target: self.target, head: self.head, facts: self.facts, tag: self.tag };
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
