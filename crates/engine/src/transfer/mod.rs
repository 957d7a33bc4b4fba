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
//! | `state` | groups of its fields, each with one reset |
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
//! | `part`, `end_offset` | one of several that fetch one body; where it stops because another part begins |
//!
//! What it leaves out: which connection is used ([`crate::net::pool`]), and when (the drivers).

mod aim;
mod alternative;
mod answer;
mod auth;
mod coding;
mod connecting;
mod content;
mod delivery;
mod end_offset;
mod ending;
mod extent;
mod fields;
mod leaves;
mod outcome;
mod pace;
mod part;
mod retract;
mod send;
mod state;
mod told;

use std::sync::Arc;
use std::time::{Duration, Instant};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use haul_policy::retry;
use haul_policy::target::Target;
use haul_proto::head::{Fields, Head};

use crate::Error;
use crate::body::path::BodyPath;
use crate::facts::Facts;
use crate::request::{Particulars, RequestOptions, Span, method};
use aim::Aim;
use alternative::ConnectionRoute;
use auth::Login;
use content::Expectation;
use extent::Extent;
use pace::Pace;
use part::SplitRole;
use state::{
    AttemptState, ConnectionReuse, ExchangeState, ProxyChallenges, RangeMode, RangeState, RedirectHistory, ResumeState,
};

pub(crate) use answer::bad_status;
pub(crate) use end_offset::EndOffset;
pub use outcome::{After, Broke, Outcome, Redirected};
pub use pace::Credit;
pub(crate) use part::{SplitSpeedCheck, SplittableBody};
pub use state::Scheduling;

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
    auth: Login,
    /// The target of the next exchange.
    current: Aim,
    expectation: Expectation,
    pub(crate) attempt: AttemptState,
    exchange: ExchangeState,
    resume: ResumeState,
    ranges: RangeState,
    speed: Pace,
    split: SplitRole,
    body: BodyPath,
    /// The head of the first response that is delivered.
    head: Option<Head>,
    /// Boxed, since few responses have any.
    trailers: Option<Box<Fields>>,
    route: ConnectionRoute,
    proxy_auth: ProxyChallenges,
    history: RedirectHistory,
    /// The facts known so far.
    pub facts: Box<Facts>,
    /// Marks of the caller's queue.
    pub scheduling: Scheduling,
    pub(crate) reuse: ConnectionReuse,
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
            auth: Login::new(&target),
            current: Aim::new(target, method, with_body, options.referer.clone()),
            own,
            expectation: Expectation::None,
            attempt: AttemptState::new(now),
            exchange: ExchangeState::default(),
            resume: ResumeState::of(Extent::of(&options)),
            ranges: RangeState {
                mode: match (may_range, is_ranged || options.resume_from.is_some()) {
                    (false, false) => RangeMode::None,
                    (false, true) => RangeMode::Caller,
                    (true, false) => RangeMode::Engine,
                    (true, true) => RangeMode::EngineFromOffset,
                },
                start: options.resume_from.unwrap_or(0),
                must_continue: options.resume_from.is_some() || matches!(options.span, Some(Span::Rest { .. })),
                sink_was_asked: options.resume_from.is_some() || options.span.is_some(),
            },
            speed: Pace::new(&options, now),
            split: SplitRole::None,
            body,
            head: None,
            trailers: None,
            route: ConnectionRoute::default(),
            proxy_auth: ProxyChallenges::default(),
            history: RedirectHistory::default(),
            facts: Box::new(Facts::new(now)),
            scheduling: Scheduling { tag, ..Scheduling::default() },
            reuse: ConnectionReuse::default(),
            options,
        };
        let mut transfer = Box::write(place, transfer);
        transfer.begins_at(now);
        transfer
    }

    /// Prepares a finished transfer for another try, as if it had received nothing. Returns false
    /// if that is impossible.
    pub fn revive(&mut self) -> bool {
        let may = retry::is_idempotent(&self.current.method) && self.body.restart();
        if may {
            self.start_over();
            self.go_back();
        }
        may
    }

    /// Resets the state of the response, as if nothing had been received.
    fn start_over(&mut self) {
        self.resume = ResumeState::fresh(&self.options, self.ranges.start);
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
        if self.current.is_led() && self.current.keeps_method() && !is_spent() {
            self.leave_redirects();
        }
    }

    fn leave_redirects(&mut self) {
        let with_body = self.own.content(&self.options).is_some();
        self.current.begin_anew(with_body, self.options.referer.clone());
        self.auth = Login::new(&self.current.target);
        self.facts.forget_redirects();
        self.proxy_auth = ProxyChallenges::default();
        self.history = RedirectHistory::default();
    }

    /// Returns true if the request may be sent before `earlier` is answered on the same connection
    /// (RFC 9112 section 9.3.2).
    #[must_use]
    pub fn may_follow(&self, earlier: &Self) -> bool {
        let plain = |transfer: &Self| retry::is_idempotent(&transfer.current.method) && !transfer.has_content();
        plain(self) && plain(earlier) && earlier.scheduling.rank <= self.scheduling.rank
    }

    /// Returns true if the request may be sent again when its connection proves to have been closed
    /// before.
    #[must_use]
    pub(crate) fn may_be_repeated(&self) -> bool {
        self.options.retry.may_repeat(&self.current.method) && !self.is_once()
    }

    /// Gives the transfer rank 0, so that it waits behind no other, if all others wait for it.
    pub fn take_precedence(&mut self) {
        if self.body.is_awaited() {
            self.scheduling.rank = 0;
        }
    }

    /// Returns the target of the next exchange.
    #[must_use]
    pub fn target(&self) -> &Target {
        &self.current.target
    }

    /// The method of the next exchange.
    #[must_use]
    pub fn method(&self) -> &str {
        &self.current.method
    }

    /// Returns the options of the request.
    #[must_use]
    pub fn options(&self) -> &Arc<RequestOptions> {
        &self.options
    }

    /// Returns the deadline of this attempt.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        self.attempt.deadline
    }

    /// An attempt begins.
    fn begins_at(&mut self, at: Instant) {
        let of_attempt = self.max_time().and_then(|limit| at.checked_add(limit));
        self.attempt.deadline = [of_attempt, self.ends_by()].into_iter().flatten().min();
    }

    /// The time limit of each attempt.
    fn max_time(&self) -> Option<Duration> {
        self.own.max_time.or(self.options.max_time)
    }

    /// The moment by which all attempts, with the pauses between them, must be over.
    fn ends_by(&self) -> Option<Instant> {
        self.options.total_time.and_then(|limit| self.attempt.first_started.checked_add(limit))
    }

    /// Returns the head of the delivered response, once it has arrived.
    #[must_use]
    pub fn head(&self) -> Option<&Head> {
        self.head.as_ref()
    }

    /// Returns the followed redirects, if they are kept.
    #[must_use]
    pub fn history(&self) -> &[Redirected] {
        &self.history.redirects
    }

    /// Returns true if the transfer has a rate limit.
    #[must_use]
    pub fn is_paced(&self) -> bool {
        self.speed.is_limited()
    }

    /// Notes that a part of the request was sent: the server does not count as silent meanwhile.
    pub fn took_content(&mut self) {
        self.speed.stirs(Instant::now());
    }

    /// Returns true if the server's silence has a time limit.
    #[must_use]
    pub fn is_timed(&self) -> bool {
        self.speed.is_timed()
    }

    /// Returns the time when the server will have been silent for too long, if that is limited.
    #[must_use]
    pub fn silent_until(&self) -> Option<Instant> {
        self.speed.silent_until()
    }

    /// Returns the time of the next call to [`Transfer::look`], if one is needed.
    #[must_use]
    pub fn look_at(&self) -> Option<Instant> {
        self.speed.look_at()
    }

    /// Returns an error if the transfer has been too slow for too long.
    pub fn look(&mut self, now: Instant) -> Option<Error> {
        self.speed.look(self.facts.body_bytes, now)
    }

    /// Pauses the limits on slowness while the transfer waits for its sink instead of the server,
    /// and resumes them.
    pub fn is_held_up(&mut self, paused: bool, now: Instant) {
        self.speed.is_held_up(paused, now);
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
