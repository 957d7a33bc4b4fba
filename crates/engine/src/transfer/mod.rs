//! One transfer: fetches a target and delivers its body. Redirects and retries may take several
//! exchanges.
//!
//! A transfer has no socket and never blocks. A driver reports what happens on a connection, and
//! the transfer returns the next step:
//!
//! ```text
//!            enqueue              on_head             on_body*           on_complete
//! Transfer ────────▶ H1Machine ─────────▶ Transfer ───────────▶ sink ──────────────▶ TransferStep::Done
//!     ▲                 │ on_failure                                                   TransferStep::Again
//!     └─────────────────┴──────────────────────────────────────────────────────────────────┘
//! ```
//!
//! | module | contents |
//! |---|---|
//! | `resettable_state` | groups of the transfer's fields that are reset together |
//! | `next_target_and_secrets` | the target of the next exchange, and the redirects that led to it |
//! | `send_request`, `request_fields` | the request of the next exchange, and its fields |
//! | `content_framing_and_expect` | the content of the request, and sending it again |
//! | `content_coding_choice` | compressed content: requesting and decoding it |
//! | `auth`, `negotiate` | credentials, and responses to challenges |
//! | `response` | the decision whether the body of a response is delivered |
//! | `store_response_cookies_and_redirect` | state that a response leaves for later requests |
//! | `connect_milestones` | milestones of the connection, recorded as facts |
//! | `proxy_or_alt_svc_route` | the route of the connection: an alternative service, a proxy |
//! | `delivery` | the body on its way to the sink |
//! | `delivery_range` | the delivered bytes, and the continuation of a broken body |
//! | `end_of_exchange` | the end of an exchange: done, redirected, retried |
//! | `host_overload` | the load of a host, derived from the results of its requests |
//! | `misattributed_response` | discarding a response that may belong to another request |
//! | `trace` | events for observers |
//! | `wire_record` | the record of the exchange for an archive |
//! | `rate_speed_and_stall_limits` | upper and lower limits on the speed |
//! | `split_transfers`, `first_stream_end` | one stream of a split download, and its end |
//!
//! Not part of this module: the choice of the connection ([`crate::net::pool`]), and waiting for
//! time limits, which the drivers do.

mod auth;
mod connect_milestones;
mod content_coding_choice;
mod content_framing_and_expect;
mod delivery;
mod delivery_range;
mod end_of_exchange;
mod first_stream_end;
mod host_overload;
mod misattributed_response;
mod negotiate;
mod next_target_and_secrets;
mod proxy_or_alt_svc_route;
mod rate_speed_and_stall_limits;
mod request_fields;
mod resettable_state;
mod response;
mod send_request;
mod split_transfers;
mod store_response_cookies_and_redirect;
mod trace;
mod wire_record;

use std::sync::Arc;
use std::time::{Duration, Instant};

use haul_policy::retry::is_idempotent;
use haul_policy::target::Target;
use haul_proto::response_head::{Fields, ResponseHead};

use crate::Error;
use crate::body::delivery::BodyDelivery;
use crate::request::{RequestOptions, RequestOverrides, StallLimit, WantedContentRange, method};
use crate::time_conversions;
use crate::transfer_facts::TransferFacts;
use auth::AuthState;
use content_framing_and_expect::ExpectContinueState;
use delivery_range::DeliveryRange;
use next_target_and_secrets::TargetState;
use proxy_or_alt_svc_route::ConnectionRoute;
use rate_speed_and_stall_limits::RateSpeedAndStallLimits;
use resettable_state::{
    AttemptCountsAndDeadline, DeliveryProgress, EarlierResponses, ExchangeConnectionState, ForwardProxyAuthState,
    RangeFieldOwner, RangeRequestSettings, ResponseDecisions,
};
use split_transfers::SplitRole;
use wire_record::ExchangeWireRecord;

pub use crate::transfer_outcome::{FollowedRedirect, TransferOutcome};
pub use end_of_exchange::{ExchangeFailurePoint, TransferStep};
pub(crate) use first_stream_end::FirstStreamEnd;
pub use rate_speed_and_stall_limits::{ReceiveCredit, TotalRateLimit};
pub use resettable_state::TransferSchedulingData;
pub(crate) use response::bad_status;
pub(crate) use split_transfers::{SplitMinSpeedCheck, SplittableBody};

/// The maximum number of times that a transfer starts from the beginning because the content
/// changed or ranges failed. Without a limit, content that changes all the time would never be
/// complete.
const MAX_RESTARTS: u32 = 2;

/// The maximum total size in bytes of response heads that are stored for delivery. Without a limit,
/// redirects from a hostile server would use much memory.
const MAX_KEPT_HEAD_BYTES: usize = 1 << 20;

/// A transfer in progress: one request of the caller, with all redirects and retries. Rarely used
/// fields are boxed, and so are fields that are moved to another owner. A transfer thus has at most
/// 1,032 bytes: glibc's malloc keeps freed blocks of up to this size for each thread, and is much
/// slower for larger blocks.
pub struct Transfer {
    options: Arc<RequestOptions>,
    particulars: RequestOverrides,
    auth: AuthState,
    /// The target of the next exchange, with the redirects that led to it.
    current: TargetState,
    expectation: ExpectContinueState,
    pub(crate) attempt: AttemptCountsAndDeadline,
    response: ResponseDecisions,
    progress: DeliveryProgress,
    ranges: RangeRequestSettings,
    speed: RateSpeedAndStallLimits,
    split: SplitRole,
    body: BodyDelivery,
    /// The head of the first response whose body is delivered; `None` before it has arrived. Later
    /// responses only continue that body, and do not replace this head.
    head: Option<ResponseHead>,
    /// The trailer fields of the response; `None` if there are none. Boxed, since few responses
    /// have trailer fields.
    trailers: Option<Box<Fields>>,
    route: ConnectionRoute,
    proxy_auth: ForwardProxyAuthState,
    history: EarlierResponses,
    /// The record of the exchange in progress, for [`RequestOptions::recorder`]; `None` without a
    /// recorder.
    record: Option<Box<ExchangeWireRecord>>,
    /// The sizes, times and addresses of the transfer so far.
    pub facts: Box<TransferFacts>,
    /// The caller's ID of the transfer, and its priority among other transfers.
    pub scheduling: TransferSchedulingData,
    pub(crate) reuse: ExchangeConnectionState,
}

impl Transfer {
    /// Makes a transfer that delivers the content of `target` to `body`. `tag` is the caller's ID
    /// for the transfer. The transfer is boxed, since it is moved often.
    #[must_use]
    pub fn new(target: Target, options: Arc<RequestOptions>, body: BodyDelivery, now: Instant, tag: u64) -> Box<Self> {
        Self::with_overrides(target, options, RequestOverrides::default(), body, now, tag)
    }

    /// Makes a transfer with `particulars`, settings that apply to this request only. `tag` is the
    /// caller's ID for the transfer.
    #[must_use]
    pub fn with_overrides(
        mut target: Target,
        options: Arc<RequestOptions>,
        mut particulars: RequestOverrides,
        body: BodyDelivery,
        now: Instant,
        tag: u64,
    ) -> Box<Self> {
        // `Box::new` would build the values elsewhere and copy them.
        let (place, facts) = (Box::new_uninit(), Box::new_uninit());
        if let Some(upgraded) = options.hsts.as_ref().and_then(|hsts| hsts.upgrade(&target)) {
            target = upgraded;
        }
        let is_range = |(name, _): &(String, Vec<u8>)| name.eq_ignore_ascii_case("range");
        let method = particulars.method.take().unwrap_or_else(|| method(&options.method));
        let with_body = particulars.content(&options).is_some();
        let is_ranged = options.range.is_some() || options.fields.iter().chain(&particulars.fields).any(is_range);
        // RFC 9110 section 14.2 defines Range for GET alone, so a server answers other methods with
        // the whole content. The request to continue a file has a Range with any method, because
        // the whole content must not be written after the existing bytes. So has a request with
        // content, if its caller has chosen an offset in the response.
        let continues = options.resume_from.is_some() || body.continues_file();
        let has_other_content = with_body && options.resume_from.is_none();
        let may_range = (method == "GET" || continues) && !is_ranged && !has_other_content && !options.head_only;
        let transfer = Self {
            auth: AuthState::new(&target),
            current: TargetState::new(target, method, with_body, options.referer.clone()),
            particulars,
            expectation: ExpectContinueState::None,
            attempt: AttemptCountsAndDeadline::new(now),
            response: ResponseDecisions::default(),
            progress: DeliveryProgress::new(DeliveryRange::from_options(&options)),
            ranges: RangeRequestSettings {
                mode: match (may_range, is_ranged || options.resume_from.is_some()) {
                    (false, false) => RangeFieldOwner::None,
                    (false, true) => RangeFieldOwner::Caller,
                    (true, false) => RangeFieldOwner::Engine,
                    (true, true) => RangeFieldOwner::EngineFromOffset,
                },
                start: options.resume_from.unwrap_or(0),
                must_continue: options.resume_from.is_some()
                    || matches!(options.span, Some(WantedContentRange::Rest { .. })),
                sink_was_asked: options.resume_from.is_some() || options.span.is_some(),
            },
            speed: RateSpeedAndStallLimits::new(&options, now),
            split: SplitRole::None,
            body,
            head: None,
            trailers: None,
            route: ConnectionRoute::default(),
            proxy_auth: ForwardProxyAuthState::default(),
            history: EarlierResponses::default(),
            record: None,
            facts: Box::write(facts, TransferFacts::new(now)),
            scheduling: TransferSchedulingData { tag, ..TransferSchedulingData::default() },
            reuse: ExchangeConnectionState::new(options.fresh_connection),
            options,
        };
        let mut transfer = Box::write(place, transfer);
        transfer.begin_attempt(now);
        transfer
    }

    /// Resets a finished transfer for another attempt, as if it had received nothing. Returns false
    /// if the method is not idempotent, if the content of the request cannot be sent again, or if
    /// some of the body was already output.
    pub fn reset_for_retry(&mut self) -> bool {
        let may_send = is_idempotent(&self.current.method) && self.resend_error().is_none();
        let may = may_send && self.body.restart();
        if may {
            self.start_over();
            self.return_to_first_target();
        }
        may
    }

    /// Discards the progress of the transfer, so that the next request fetches the content from the
    /// beginning.
    fn start_over(&mut self) {
        self.progress = DeliveryProgress::without_progress(&self.options, self.ranges.start);
        self.facts.body_bytes = 0;
    }

    /// Discards the transfer's progress and its redirects, so that the next request goes to the
    /// caller's target.
    fn restart_at_first_target(&mut self) {
        self.start_over();
        self.forget_redirects();
    }

    /// Makes the next request, which fetches the missing bytes, go to the caller's target instead
    /// of a redirect's target. The redirect's target may have failed, or its URL may have expired.
    /// Does nothing in two cases: the content can be sent only once, or a redirect changed the
    /// method (303).
    fn return_to_first_target(&mut self) {
        let is_spent =
            || self.particulars.content(&self.options).is_some_and(crate::body::upload::RequestBody::is_consumed);
        if self.current.is_redirected() && self.current.has_original_method() && !is_spent() {
            self.forget_redirects();
        }
    }

    /// Drops all redirects and the state that depends on them. The caller's target becomes the
    /// current target again.
    fn forget_redirects(&mut self) {
        let with_body = self.particulars.content(&self.options).is_some();
        self.current.start_over(with_body, self.options.referer.clone());
        self.auth = AuthState::new(&self.current.target);
        self.facts.forget_redirects();
        self.proxy_auth = ForwardProxyAuthState::default();
        self.reuse.on_new_target();
        self.history = EarlierResponses::default();
    }

    /// Returns true if this request may be sent before the response to `earlier` has arrived on the
    /// same connection (pipelining, RFC 9112 section 9.3.2).
    #[must_use]
    pub fn may_pipeline_after(&self, earlier: &Self) -> bool {
        let plain = |transfer: &Self| {
            let binds = transfer.options.auth.negotiate_on_connection().is_some();
            let shares = !binds && !transfer.options.closes_connection;
            is_idempotent(&transfer.current.method) && !transfer.has_content() && shares
        };
        plain(self) && plain(earlier) && earlier.scheduling.rank <= self.scheduling.rank
    }

    /// Returns true if the request may be sent again after a reused connection has turned out to be
    /// closed.
    #[must_use]
    pub(crate) fn may_resend(&self) -> bool {
        self.options.retry.may_repeat(&self.current.method) && !self.has_one_shot_content()
    }

    /// Sets the transfer's [rank](TransferSchedulingData::rank) to 0 (the first), if all other
    /// output waits for this transfer's body.
    pub fn take_precedence_if_awaited(&mut self) {
        if self.body.is_awaited() {
            self.scheduling.rank = 0;
        }
    }

    /// Returns the target of the next exchange: the caller's target or, after a redirect, the
    /// redirect's target.
    #[must_use]
    pub fn target(&self) -> &Target {
        &self.current.target
    }

    /// Returns the method of the next exchange, which a redirect may have changed.
    #[must_use]
    pub fn method(&self) -> &str {
        &self.current.method
    }

    /// Returns the options of the request.
    #[must_use]
    pub fn options(&self) -> &Arc<RequestOptions> {
        &self.options
    }

    /// Returns the deadline of the current attempt, if there is one.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        self.attempt.deadline
    }

    /// Begins an attempt at the time `at`, and computes its deadline from the time limit of
    /// attempts.
    fn begin_attempt(&mut self, at: Instant) {
        let of_attempt = self.max_time().and_then(|limit| at.checked_add(limit));
        self.attempt.deadline = time_conversions::earliest(of_attempt, self.total_deadline());
        self.attempt.repetition_pause = None;
    }

    /// Postpones the deadline of the attempt by the time that it waits for a file descriptor.
    pub(crate) fn postpone_deadline(&mut self, wait: Duration) {
        let postponed = self.attempt.deadline.and_then(|at| at.checked_add(wait));
        self.attempt.deadline = time_conversions::earliest(postponed, self.total_deadline());
    }

    /// Returns the time limit of each attempt, if there is one.
    fn max_time(&self) -> Option<Duration> {
        self.particulars.max_time.or(self.options.max_time)
    }

    /// Returns the time by which all attempts must have ended, including the pauses between them.
    /// Returns `None` if that time is not limited.
    pub(crate) fn total_deadline(&self) -> Option<Instant> {
        self.options.total_time.and_then(|limit| self.attempt.first_started.checked_add(limit))
    }

    /// Returns the head of the delivered response. Returns `None` before it has arrived.
    #[must_use]
    pub fn head(&self) -> Option<&ResponseHead> {
        self.head.as_ref()
    }

    /// Returns the redirects that were followed, if [`RequestOptions::keep_history`] is set.
    #[must_use]
    pub fn history(&self) -> &[FollowedRedirect] {
        &self.history.redirects
    }

    /// Returns true if the maximum speed of the transfer is limited.
    #[must_use]
    pub fn has_rate_limit(&self) -> bool {
        self.speed.is_limited()
    }

    /// Records that bytes of the request were sent, which restarts the time limit on the server's
    /// silence.
    pub fn on_upload_progress(&mut self) {
        self.speed.on_activity(Instant::now());
    }

    /// Records whether bytes of the request wait because the server accepts no more at present
    /// (`is_send_blocked`).
    pub fn set_sending(&mut self, is_send_blocked: bool) {
        if self.speed.has_silence_limit() {
            self.speed.set_send_blocked(is_send_blocked, Instant::now());
        }
    }

    /// Records whether the source of the request's content has no bytes now. The read timeout does
    /// not apply then, because the server does not cause the delay.
    pub fn set_starved(&mut self, is_starved: bool) {
        if self.speed.has_silence_limit() {
            self.speed.set_starved(is_starved, Instant::now());
        }
    }

    /// Records that the connection now serves this request, because the earlier responses on it
    /// have ended. The measurement of the server's silence begins at `now`.
    pub(crate) fn on_slot_granted(&mut self, now: Instant) {
        self.speed.on_activity(now);
    }

    /// Adds the limits of the fleet or batch (a group of parallel transfers) to which this transfer
    /// belongs. Limits in the options of the request take precedence.
    pub(crate) fn add_run_limits(&mut self, total: Option<&TotalRateLimit>, stall: Option<StallLimit>) {
        self.speed.add(total, stall);
    }

    /// Returns true if the transfer has a deadline, a minimum speed, or a time limit on the
    /// server's silence.
    pub(crate) fn has_time_limit(&self) -> bool {
        self.deadline().is_some() || self.options.speed_limit.is_some() || self.has_silence_limit()
    }

    /// Returns true if there is a time limit on the server's silence.
    #[must_use]
    pub fn has_silence_limit(&self) -> bool {
        self.speed.has_silence_limit()
    }

    /// Returns the time at which the server's silence exceeds the limit. Returns `None` if silence
    /// is not limited.
    #[must_use]
    pub fn silence_deadline(&self) -> Option<Instant> {
        self.speed.silence_deadline()
    }

    /// Returns the time at which the driver must call [`Transfer::check_speed`] next. Returns
    /// `None` if there is nothing to check.
    #[must_use]
    pub fn next_speed_check(&self) -> Option<Instant> {
        self.speed.next_check()
    }

    /// Returns an error if the transfer was slower than the minimum speed for too long, or if the
    /// server was silent for too long; otherwise `None`.
    pub fn check_speed(&mut self, now: Instant) -> Option<Error> {
        self.speed.check(now)
    }

    /// Pauses the limits on low speed and silence (`paused` is true), or resumes them. They are
    /// paused while the transfer waits for its sink and not for the server.
    pub fn set_paused(&mut self, paused: bool, now: Instant) {
        self.speed.set_paused(paused, now);
    }
}

#[cfg(test)]
mod tests;
