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
//! | `aim` | what the next exchange asks for, and where redirects lead |
//! | `send`, `fields` | the request of the next exchange, and which fields it has |
//! | `content` | what the request carries, and whether it can be sent again |
//! | `coding` | whether compressed content is asked for, and decoded |
//! | `auth` | in whose name, and how challenges are answered |
//! | `answer` | what a response's head means |
//! | `connecting` | the milestones of its connection |
//! | `leaves` | what a response leaves behind for later requests |
//! | `delivery` | the body on its way to the sink |
//! | `ending`, `outcome` | what becomes of it when an exchange is over |
//! | `retract` | a response that may be another request's |
//! | `told` | what is noted on the way, and shown to who watches |
//! | `extent` | which bytes are delivered, and how a broken body goes on |
//! | `pace` | how fast it may and must be |
//! | `part`, `cut` | one of several that fetch one body; where it stops because another part begins |
//!
//! What it leaves out: which connection is used ([`crate::net::pool`]), and when (the drivers).

mod aim;
mod alternative;
mod answer;
mod auth;
mod coding;
mod connecting;
mod content;
mod cut;
mod delivery;
mod ending;
mod extent;
mod fields;
mod leaves;
mod outcome;
mod pace;
mod part;
mod retract;
mod send;
mod told;

use std::sync::Arc;
use std::time::{Duration, Instant};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use haul_policy::queue::HostId;
use haul_policy::redirect::Hop;
use haul_policy::retry;
use haul_policy::target::Target;
use haul_proto::head::{Fields, Head};

use crate::Error;
use crate::body::path::BodyPath;
use crate::facts::Facts;
use crate::request::{Particulars, RequestOptions, Span, method};
use aim::Aim;
use auth::Login;
use extent::Extent;
use pace::Pace;

use alternative::Door;
pub(crate) use answer::bad_status;
pub(crate) use cut::Cut;
pub use outcome::{After, Broke, Outcome, Redirected};
pub use pace::Credit;
pub(crate) use part::{Splittable, Watch};

/// The number of times a transfer may begin anew because the content changed, or the server does
/// not support ranges after all.
const MAX_RESTARTS: u32 = 2;

/// The size of redirects' heads from which further ones are not kept for delivery: a hostile server
/// sends as many as it may.
const MOST_HEADS: usize = 1 << 20;

/// A transfer under way. Rare state, and state that is handed on, is boxed: glibc's malloc has
/// memory of up to 1,032 bytes at hand, and takes much longer for more.
pub struct Transfer {
    options: Arc<RequestOptions>,
    own: Particulars,
    login: Login,
    aim: Aim,
    /// The server was asked whether it wants the content under way.
    asked_first: bool,
    /// The server rejects `Expect: 100-continue`.
    is_refused_to_be_asked: bool,
    attempt: u32,
    /// The start of the first try.
    began: Instant,
    /// The deadline of the try under way.
    deadline: Option<Instant>,
    disposition: Disposition,
    extent: Extent,
    /// The caller wants a part.
    wants_part: bool,
    /// Allows requests for ranges: the method is GET, and the caller has no range of its own.
    may_range: bool,
    /// True once the sink was asked for its existing content.
    has_looked: bool,
    /// A request of this transfer was handed to a connection, whatever its result.
    has_sent: bool,
    /// The sink has received a head, and holds the content that followed.
    has_begun: bool,
    /// The transfer continues the user's existing content, and cannot start without it.
    is_fixed: bool,
    /// The first byte to fetch, if not 0: an earlier file is extended, and later tries begin there,
    /// too.
    from: u64,
    /// Bytes of the response under way that were delivered from an earlier one.
    skip: u64,
    /// The number of times the transfer began anew because the existing part could not be
    /// completed.
    restarts: u32,
    /// Continues at the target of an earlier redirect, without a request to the caller's target
    /// first.
    is_shortcut: bool,
    /// The position at the last failure.
    failed_at: u64,
    pace: Pace,
    /// The end that other parts of a split set for this transfer.
    cut: Option<Arc<Cut>>,
    /// The transfer is a part of a split one: the split decides about retries, and owns the sink.
    is_part: bool,
    /// The number of this part in its split; `None` for the first.
    crew_id: Option<usize>,
    body: BodyPath,
    head: Option<Head>,
    /// The delay of the try that follows the delivered response.
    tries_behind: Option<Duration>,
    /// The pause that the last response asks for on behalf of its host.
    asked_pause: Option<Duration>,
    /// The request under way contains credentials for a proxy.
    proxy_answered: bool,
    /// The number of challenges from a proxy.
    proxy_rounds: u32,
    /// The origin under way has answered with HTTP/1.0.
    is_http10: bool,
    /// The alternative service that its connection goes to.
    alternative: Option<Box<Door>>,
    /// The proxy that its connection goes to, for traces.
    proxy_host: Option<Box<str>>,
    /// Heads of the redirects so far, where they are to be delivered.
    heads: Vec<u8>,
    /// The last of these heads that is no final response of the origin: a proxy's, or an interim
    /// one.
    aside: Option<Box<Head>>,
    /// The redirects so far, if they are to be reported.
    history: Vec<Redirected>,
    /// Boxed, since few responses have any.
    trailers: Option<Box<Fields>>,
    /// The facts known so far.
    pub facts: Box<Facts>,
    /// The caller's mark: which job this is.
    pub tag: u64,
    /// The host whose slot in the caller's queue this transfer holds.
    pub slot: Option<HostId>,
    /// The rank among transfers that may have to wait for each other: none may wait behind one of a
    /// higher rank. A transfer that all others wait for has rank 0.
    pub rank: u64,
    /// The next exchange wants a connection that has carried nothing yet.
    pub wants_fresh: bool,
    /// The connection of its exchange has carried others before, maybe other hosts'.
    pub is_on_used: bool,
    /// A server has said that it does not answer for this host on such a connection.
    pub is_misdirected: bool,
    /// The request was sent behind others that were not answered yet.
    pub is_pipelined: bool,
    /// The slot was given to another transfer while the response waits for the end of its turn.
    pub gave_slot: bool,
    /// The number of waits for a descriptor.
    pub starved: u32,
    /// The number of times a server returned the request unprocessed, by a refusal or a broken
    /// connection.
    pub replays: u32,
    /// The index of the host's address to try first: the parts of one body spread over the
    /// addresses.
    pub spread: usize,
}

/// The use of the body of the response under way.
enum Disposition {
    /// No head has come yet.
    Unknown,
    /// The body goes to the sink.
    Deliver,
    /// The body is dropped, and the transfer continues at another target.
    Follow(Box<Hop>),
    /// The body is dropped, and the transfer is tried again after a while.
    Retry(Duration),
    /// The body is dropped, and the transfer sends another request at once.
    Again,
    /// The body is dropped, and the transfer requests the caller's target at once.
    Anew,
    /// The body is dropped: all wanted bytes exist already.
    Complete,
    /// The body is dropped, and the transfer fails.
    Fail(Error),
}

impl Transfer {
    /// Makes a transfer of `target`'s content along `body`, in the box that it is handed on in.
    #[must_use]
    pub fn new(target: Target, options: Arc<RequestOptions>, body: BodyPath, now: Instant, tag: u64) -> Box<Self> {
        Self::with(target, options, Particulars::default(), body, now, tag)
    }

    /// Makes a transfer with the particulars of this request.
    #[must_use]
    pub fn with(
        target: Target,
        options: Arc<RequestOptions>,
        mut own: Particulars,
        body: BodyPath,
        now: Instant,
        tag: u64,
    ) -> Box<Self> {
        let place = Box::new_uninit();
        let target = options.hsts.as_ref().and_then(|hsts| hsts.upgrade(&target)).unwrap_or(target);
        let is_range = |(name, _): &(String, Vec<u8>)| name.eq_ignore_ascii_case("range");
        let method = own.method.take().unwrap_or_else(|| method(&options.method));
        let with_body = own.content(&options).is_some();
        let is_ranged = options.range.is_some() || options.fields.iter().chain(&own.fields).any(is_range);
        let may_range = method == "GET" && !is_ranged && !with_body && !options.head_only;
        // Not `Box::new`, which would have it made elsewhere and copied.
        let transfer = Self {
            login: Login::new(&target),
            aim: Aim::new(target, method, with_body, options.referer.clone()),
            own,
            extent: Extent::of(&options),
            wants_part: is_ranged || options.resume_from.is_some(),
            may_range,
            has_looked: options.resume_from.is_some() || options.span.is_some(),
            has_sent: false,
            has_begun: false,
            is_fixed: options.resume_from.is_some() || matches!(options.span, Some(Span::Rest { .. })),
            from: options.resume_from.unwrap_or(0),
            skip: 0,
            restarts: 0,
            is_shortcut: false,
            failed_at: 0,
            pace: Pace::new(&options, now),
            cut: None,
            is_part: false,
            crew_id: None,
            options,
            asked_first: false,
            is_refused_to_be_asked: false,
            attempt: 0,
            began: now,
            deadline: None,
            disposition: Disposition::Unknown,
            body,
            head: None,
            tries_behind: None,
            asked_pause: None,
            proxy_answered: false,
            proxy_rounds: 0,
            is_http10: false,
            alternative: None,
            proxy_host: None,
            heads: Vec::new(),
            aside: None,
            history: Vec::new(),
            trailers: None,
            facts: Box::new(Facts::new(now)),
            tag,
            slot: None,
            rank: 0,
            wants_fresh: false,
            is_on_used: false,
            is_misdirected: false,
            is_pipelined: false,
            gave_slot: false,
            starved: 0,
            replays: 0,
            spread: 0,
        };
        let mut transfer = Box::write(place, transfer);
        transfer.begins_at(now);
        transfer
    }

    /// Prepares a finished transfer for another try, as if it had received nothing. Returns false
    /// if that is impossible.
    pub fn revive(&mut self) -> bool {
        let may = retry::is_idempotent(&self.aim.method) && self.body.restart();
        if may {
            self.start_over();
            self.go_back();
        }
        may
    }

    /// Resets the state of the response, as if nothing had been received.
    fn start_over(&mut self) {
        self.extent = match self.options.span {
            Some(Span::Rest { .. }) => Extent::of(&self.options),
            // That a range is asked for was the engine's idea: now it is all of it.
            _ => Extent::from(self.from),
        };
        self.has_begun = false;
        self.skip = 0;
        self.failed_at = 0;
        self.facts.body_bytes = 0;
    }

    /// Resets the state of the request, as if nothing had been sent: redirects are forgotten.
    fn ask_anew(&mut self) {
        self.start_over();
        self.leave_redirects();
    }

    /// Asks the caller's target for the missing rest, instead of the target of a redirect: that may
    /// be down, or its address good for one request. Content that was read once, and a request that
    /// a redirect turned into another (303), are not sent again.
    fn go_back(&mut self) {
        let is_spent = || self.own.content(&self.options).is_some_and(crate::body::upload::Body::is_spent);
        if self.aim.is_led() && self.aim.keeps_method() && !is_spent() {
            self.leave_redirects();
        }
    }

    fn leave_redirects(&mut self) {
        let with_body = self.own.content(&self.options).is_some();
        self.aim.begin_anew(with_body, self.options.referer.clone());
        self.login = Login::new(&self.aim.target);
        self.facts.forget_redirects();
        self.proxy_rounds = 0;
        self.is_http10 = false;
        self.is_shortcut = false;
        self.heads.clear();
        self.aside = None;
        self.history.clear();
    }

    /// Returns true if the request may be sent before `earlier` is answered on the same connection
    /// (RFC 9112 section 9.3.2).
    #[must_use]
    pub fn may_follow(&self, earlier: &Self) -> bool {
        let plain = |transfer: &Self| retry::is_idempotent(&transfer.aim.method) && !transfer.has_content();
        plain(self) && plain(earlier) && earlier.rank <= self.rank
    }

    /// Returns true if the request may be sent again when its connection proves to have been closed
    /// before.
    #[must_use]
    pub(crate) fn may_be_repeated(&self) -> bool {
        self.options.retry.may_repeat(&self.aim.method) && !self.is_once()
    }

    /// Gives the transfer rank 0, so that it waits behind no other, if all others wait for it.
    pub fn take_precedence(&mut self) {
        if self.body.is_awaited() {
            self.rank = 0;
        }
    }

    /// Returns the target of the next exchange.
    #[must_use]
    pub fn target(&self) -> &Target {
        &self.aim.target
    }

    /// The method of the next exchange.
    #[must_use]
    pub fn method(&self) -> &str {
        &self.aim.method
    }

    /// Returns the options of the request.
    #[must_use]
    pub fn options(&self) -> &Arc<RequestOptions> {
        &self.options
    }

    /// Returns the deadline of this attempt.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    /// An attempt begins.
    fn begins_at(&mut self, at: Instant) {
        let of_attempt = self.max_time().and_then(|limit| at.checked_add(limit));
        self.deadline = [of_attempt, self.ends_by()].into_iter().flatten().min();
    }

    /// The time limit of each attempt.
    fn max_time(&self) -> Option<Duration> {
        self.own.max_time.or(self.options.max_time)
    }

    /// The moment by which all attempts, with the pauses between them, must be over.
    fn ends_by(&self) -> Option<Instant> {
        self.options.total_time.and_then(|limit| self.began.checked_add(limit))
    }

    /// Returns the head of the delivered response, once it has arrived.
    #[must_use]
    pub fn head(&self) -> Option<&Head> {
        self.head.as_ref()
    }

    /// Returns the followed redirects, if they are kept.
    #[must_use]
    pub fn history(&self) -> &[Redirected] {
        &self.history
    }

    /// Returns true if the transfer has a rate limit.
    #[must_use]
    pub fn is_paced(&self) -> bool {
        self.pace.is_limited()
    }

    /// Notes that a part of the request was sent: the server does not count as silent meanwhile.
    pub fn took_content(&mut self) {
        self.pace.stirs(Instant::now());
    }

    /// Returns true if the server's silence has a time limit.
    #[must_use]
    pub fn is_timed(&self) -> bool {
        self.pace.is_timed()
    }

    /// Returns the time when the server will have been silent for too long, if that is limited.
    #[must_use]
    pub fn silent_until(&self) -> Option<Instant> {
        self.pace.silent_until()
    }

    /// Returns the time of the next call to [`Transfer::look`], if one is needed.
    #[must_use]
    pub fn look_at(&self) -> Option<Instant> {
        self.pace.look_at()
    }

    /// Returns an error if the transfer has been too slow for too long.
    pub fn look(&mut self, now: Instant) -> Option<Error> {
        self.pace.look(self.facts.body_bytes, now)
    }

    /// Pauses the limits on slowness while the transfer waits for its sink instead of the server,
    /// and resumes them.
    pub fn is_held_up(&mut self, paused: bool, now: Instant) {
        self.pace.is_held_up(paused, now);
    }
}

/// The value of `Authorization` for the Basic scheme (RFC 7617).
#[must_use]
pub fn basic(user: &[u8], password: &[u8]) -> Vec<u8> {
    let pair = [user, b":", password].concat();
    format!("Basic {}", STANDARD.encode(pair)).into_bytes()
}

#[cfg(test)]
mod tests {
    use super::Transfer;

    #[test]
    fn a_transfer_is_of_a_size_that_malloc_has_at_hand() {
        assert!(size_of::<Transfer>() <= 1032, "{}", size_of::<Transfer>());
    }
}
