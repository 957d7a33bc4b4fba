//! Handles the end of an exchange: the transfer is finished, is redirected, or is tried again.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::num::NonZeroU32;
use std::time::{Duration, Instant, SystemTime};

use haul_policy::queue::HostId;
use haul_policy::retry::{self, AttemptOutcome as Trouble};
use haul_proto::response_head::ResponseHead;

use super::content_framing_and_expect::ExpectContinueState;
use super::host_overload::OverloadRefusal;
use super::next_target_and_secrets::TargetState;
use super::resettable_state::{BodyDisposition, ForwardProxyAuthState, TransferSchedulingData};
use super::{Transfer, response};
use crate::body::delivery::BodyDelivery;
use crate::error::ErrorStage;
use crate::request::RetryPause;
use crate::sink::ResponseForSink;
use crate::time_conversions;
use crate::trace::Milestone;
use crate::transfer_facts::{FailedAttempt, TransferPhase};
use crate::transfer_outcome::TransferOutcome;
use crate::{Error, ErrorKind, Result};

/// The number of bytes that a resumable transfer must receive after a failure so that its earlier
/// retries no longer count.
const RETRIES_RENEWED_AFTER: u64 = 256 << 10;

/// The maximum number of failed attempts of a transfer whose causes are stored.
const MAX_FAILED_ATTEMPTS: usize = 32;

/// The next step of a transfer after an exchange (one request and its response) has ended.
#[derive(Debug)]
pub enum TransferStep {
    /// The transfer is finished, successfully or with an error.
    Done(Result<()>),
    /// The transfer needs another exchange, after this delay.
    Again(Duration),
}

/// The point at which an exchange (a request and its response) failed. It determines whether the
/// retry rules allow a retry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExchangeFailurePoint {
    /// No connection could be made, so nothing was sent.
    BeforeSending,
    /// The exchange failed on a reused connection, and a new connection may help. There are two
    /// cases:
    /// * The connection failed before the first byte of the response. Usually, the server closed it
    ///   while it was idle.
    /// * A response without a head (HTTP/0.9) arrived. Only a new connection can show whether the
    ///   server really sends such responses.
    WhileStale,
    /// The connection failed after the request was sent, and before the first byte of the response.
    BeforeResponse,
    /// The connection failed during the head or the body of the response.
    InResponse,
    /// The server violated the protocol, and would probably violate it again.
    ByProtocol,
}

impl Transfer {
    /// Handles the end of a response, and decides the next step of the transfer. The driver also
    /// calls this if it does not receive the rest of the response, because [`Transfer::skips_rest`]
    /// is true.
    pub fn on_complete(&mut self, now: Instant) -> TransferStep {
        if let Err(error) = self.end_record(None) {
            return self.finish_with(Err(error), now);
        }
        match std::mem::replace(&mut self.response.disposition, BodyDisposition::Unknown) {
            BodyDisposition::Deliver => self.on_delivered(now),
            BodyDisposition::Complete => {
                if let Some(after) = self.retry_after_body(now) {
                    return after;
                }
                self.deliver_heads();
                let result = self.body.finish();
                self.finish_with(result, now)
            }
            BodyDisposition::Again => {
                self.facts.enter_phase(TransferPhase::Idle, now);
                TransferStep::Again(Duration::ZERO)
            }
            BodyDisposition::RestartAtCallerUrl => {
                self.return_to_first_target();
                self.current.skips_redirects = false;
                self.facts.enter_phase(TransferPhase::Idle, now);
                TransferStep::Again(Duration::ZERO)
            }
            BodyDisposition::Follow(hop) => {
                self.facts.enter_phase(TransferPhase::Idle, now);
                if self.current.method != hop.method {
                    self.facts.method = Some(hop.method.as_str().into());
                }
                self.current.follow_redirect(*hop, self.options.auto_referer);
                if self.options.auto_referer {
                    let referer = self.current.referer.as_deref().and_then(|referer| std::str::from_utf8(referer).ok());
                    self.facts.referer = referer.map(Box::from);
                }
                self.facts.redirects = self.current.hops;
                self.facts.redirected = now.saturating_duration_since(self.facts.started);
                self.expectation = ExpectContinueState::None;
                self.auth = self.auth.for_redirect();
                self.reuse.on_new_target();
                self.trace_redirect();
                self.limit_mirror_time(now);
                if let Some(error) = self.resend_error() {
                    return self.finish_with(Err(error), now);
                }
                TransferStep::Again(Duration::ZERO)
            }
            BodyDisposition::Retry(wait) => {
                let error = self.head.as_ref().filter(|_| self.options.fail).map(response::bad_status);
                let kept = self.take_back_written_heads();
                let after = self.schedule_retry(Trouble::Status(self.facts.status), wait, error.as_ref(), now);
                self.history.heads.splice(..0, kept);
                after
            }
            BodyDisposition::Fail(error) => self.on_refused(error, now),
            BodyDisposition::Unknown => {
                self.finish_with(Err(Error::new(ErrorKind::EmptyReply, "the response has no head")), now)
            }
        }
    }

    /// Handles the end of a response whose body was delivered completely, and decides the next step
    /// of the transfer.
    fn on_delivered(&mut self, now: Instant) -> TransferStep {
        if self.split.end_offset().is_some_and(|end| end.is_reached(self.progress.range.at)) {
            return self.finish_with(Ok(()), now);
        }
        let is_short = self.ranges.may_request_ranges()
            && self.progress.range.known_end().is_some_and(|known_end| self.progress.range.at < known_end);
        if is_short {
            self.response.disposition = BodyDisposition::Deliver;
            let error = Error::new(ErrorKind::PartialBody, "the server sent less than the range it announced");
            return self.on_failure(error, ExchangeFailurePoint::InResponse, now);
        }
        if self.is_part() {
            return self.finish_with(Ok(()), now);
        }
        if self.ranges.may_request_ranges()
            && let Some(gap) = self.body.next_gap()
        {
            self.progress.range.move_to(gap);
            self.current.skips_redirects = self.current.is_redirected();
            return TransferStep::Again(Duration::ZERO);
        }
        if let Some(after) = self.retry_after_body(now) {
            return after;
        }
        let result = self.body.finish().and_then(|()| self.status_error());
        self.finish_with(result, now)
    }

    /// Handles a response that the transfer cannot use, for the reason `error`. If the options
    /// allow retries after every error, the transfer starts from the beginning, since another
    /// response may be usable.
    fn on_refused(&mut self, error: Error, now: Instant) -> TransferStep {
        self.response.retry_after_body = None;
        // An error about changed content is final.
        let is_final = self.is_part() || error.kind() == ErrorKind::Changed || self.resend_error().is_some();
        match self.retry_delay(Trouble::Permanent, None).filter(|_| self.options.curl_compat.retries_whole && !is_final)
        {
            Some(wait) if !self.progress.has_begun || self.body.restart() => {
                // The existing part of the content remains, and so does its validator.
                let rest = self.ranges.must_continue.then(|| self.progress.range.clone());
                let after = self.schedule_retry(Trouble::Permanent, wait, Some(&error), now);
                if let Some(rest) = rest {
                    self.progress.range = rest;
                }
                after
            }
            _ => self.finish_with(Err(error), now),
        }
    }

    /// Schedules a retry if the status of the response requires a retry although its body was
    /// delivered. Returns `None` if no retry is needed.
    fn retry_after_body(&mut self, now: Instant) -> Option<TransferStep> {
        let wait = self.response.retry_after_body.take()?;
        let kept = if self.facts.body_bytes == 0 { self.take_back_written_heads() } else { Vec::new() };
        // Output that cannot be taken back remains.
        self.body.restart();
        let error = self.status_error().err();
        let after = self.schedule_retry(Trouble::Status(self.facts.status), wait, error.as_ref(), now);
        self.history.heads.splice(..0, kept);
        Some(after)
    }

    /// Discards the written response heads from the sink, and returns them. The next attempt writes
    /// them again before its own heads. Used for a response whose body was not delivered. Returns
    /// no bytes if [`repeats_heads`](Self::repeats_heads) is false, if the output has not begun, or
    /// if the sink cannot discard it.
    fn take_back_written_heads(&mut self) -> Vec<u8> {
        let repeats = self.repeats_heads() && self.progress.has_begun;
        if repeats && self.body.restart() { std::mem::take(&mut self.history.heads) } else { Vec::new() }
    }

    /// Returns true if the output contains the heads of all attempts, as in curl: each new attempt
    /// begins the output again, with the heads of the failed attempts before its own.
    pub(super) fn repeats_heads(&self) -> bool {
        self.options.curl_compat.retries_whole && self.options.include_head
    }

    /// Returns an error if the status of the response makes the transfer fail, although the body
    /// was delivered.
    fn status_error(&self) -> Result<()> {
        let is_failure = self.options.fail && self.options.fail_with_body && self.facts.status >= 400;
        match &self.head {
            Some(head) if is_failure => Err(response::bad_status(head)),
            _ => Ok(()),
        }
    }

    /// Handles a failed exchange, and decides the next step of the transfer. `broke` is the point
    /// at which the exchange failed.
    pub fn on_failure(&mut self, error: Error, broke: ExchangeFailurePoint, now: Instant) -> TransferStep {
        // Once the head has decided, a failure in an unwanted body does not matter.
        if !matches!(self.response.disposition, BodyDisposition::Unknown | BodyDisposition::Deliver) {
            return self.on_complete(now);
        }
        // The transfer reports its own error, which came first.
        let _ = self.end_record(Some(&error));
        let fails = self.options.curl_compat.refused_tunnel_is_status_error
            && self.options.fail
            && !self.options.fail_with_body;
        let error = match error.status() {
            Some(status) if fails && status >= 400 && error.kind() == ErrorKind::Connect => {
                Error::new(ErrorKind::Status, error.cause()).with_status(status)
            }
            _ => error,
        };
        let error =
            if broke == ExchangeFailurePoint::BeforeSending { error.with_stage(ErrorStage::Connecting) } else { error };
        if broke == ExchangeFailurePoint::BeforeSending && self.drop_alternative_after(&error) {
            return TransferStep::Again(Duration::ZERO);
        }
        let left_http3 = broke != ExchangeFailurePoint::BeforeSending && self.retry_without_http3(&error, broke);
        let trouble = trouble_of(&error, broke);
        let is_early = !matches!(broke, ExchangeFailurePoint::InResponse | ExchangeFailurePoint::ByProtocol);
        self.attempt.refusal = OverloadRefusal::from_error(&error).filter(|_| is_early);
        if let (Some(_), true) = (self.resend_error(), broke != ExchangeFailurePoint::BeforeSending) {
            return self.finish_with(Err(error), now);
        }
        let may_repeat = self.options.retry.may_repeat(&self.current.method);
        if broke == ExchangeFailurePoint::WhileStale && may_repeat && trouble == Trouble::ResetBeforeResponse {
            // Most likely, the server did not see the request (RFC 9112 section 9.3.1).
            return self.repeat_on_new_connection(now);
        }
        if self.is_part() {
            return self.finish_with(Err(error), now);
        }
        let resumes = self.options.resume
            && self.progress.has_begun
            && self.ranges.may_request_ranges()
            && self.progress.range.is_resumable();
        if resumes && self.progress.range.at.saturating_sub(self.progress.failed_at) >= RETRIES_RENEWED_AFTER {
            // The transfer has advanced and keeps its bytes, so this counts as its first failure.
            // After a restart it has kept none.
            self.attempt.counted_attempts = self.attempt.counted_attempts.min(self.attempt.restarts.into());
        }
        if left_http3 && may_repeat && (resumes || !self.progress.has_begun) {
            // TCP might have succeeded, so this is not counted as an attempt.
            self.progress.failed_at = self.progress.range.at;
            self.facts.enter_phase(TransferPhase::Idle, now);
            return TransferStep::Again(Duration::ZERO);
        }
        match self.retry_delay(trouble, None) {
            Some(wait) if resumes || !self.progress.has_begun => {
                self.progress.failed_at = self.progress.range.at;
                self.schedule_retry(trouble, wait, Some(&error), now)
            }
            Some(wait) if self.may_extend_file() => {
                let (rest, at) = (self.progress.range.clone(), self.progress.range.at);
                self.ranges.start = at;
                let after = self.schedule_retry(trouble, wait, Some(&error), now);
                (self.progress.range, self.ranges.must_continue) = (rest, true);
                after
            }
            Some(wait) if self.body.restart() => {
                let after = self.schedule_retry(trouble, wait, Some(&error), now);
                self.start_over();
                after
            }
            _ => self.finish_with(Err(error), now),
        }
    }

    /// Returns true if a retry may append to the user's file, as in curl, instead of starting from
    /// the beginning. This requires two things: the body of the failed response was being
    /// delivered, and the server supports ranges.
    fn may_extend_file(&mut self) -> bool {
        let brings = self.head.as_ref().is_some_and(|head| match head.status() {
            206 => self.ranges.start > 0,
            200 => head.get("accept-ranges").is_some_and(|unit| unit.trim_ascii().eq_ignore_ascii_case(b"bytes")),
            _ => false,
        });
        let is_plain = self.ranges.may_request_ranges() && self.current.method == "GET" && !self.options.include_head;
        self.options.curl_compat.retries_whole
            && is_plain
            && brings
            && self.progress.range.at > self.ranges.start
            && self.body.keep_delivered_part()
    }

    /// Returns the delay before a retry because of `trouble`. `retry_after` is the pause that the
    /// server has requested, if any. Returns `None` if the retry rules or the time limit allow no
    /// retry.
    pub(super) fn retry_delay(&self, trouble: Trouble, retry_after: Option<Duration>) -> Option<Duration> {
        let elapsed = self.attempt.first_started.elapsed();
        let idempotent = retry::is_idempotent(&self.current.method);
        let rules = &self.options.retry;
        let wait = retry::retry_delay(
            rules,
            trouble,
            self.attempt.counted_attempts,
            idempotent,
            retry_after,
            elapsed,
            entropy(),
        )?;
        // A retry must begin before the time limit for all attempts.
        let is_in_time =
            self.total_deadline().is_none_or(|end| time_conversions::add_saturating(Instant::now(), wait) < end);
        is_in_time.then_some(wait)
    }

    /// Returns the pause before a repetition that does not count as a retry, because of `error`.
    /// `earlier` is the number of earlier pauses. The transfer then waits, and the time limit of
    /// its attempt includes the pause. The delay and the time limit of the retry rules apply only if
    /// they allow retries. Returns `None` if a time limit, also that of the retry rules, would end
    /// before the pause.
    pub(crate) fn backoff(&mut self, earlier: u32, error: &Error, now: Instant) -> Option<Duration> {
        let rules = &self.options.retry;
        let allows_retries = rules.max > 0;
        let (delay, max_time) = (rules.delay.filter(|_| allows_retries), rules.max_time.filter(|_| allows_retries));
        let pause = delay.unwrap_or_else(|| retry::backoff(earlier, entropy()));
        let end_of_pause = time_conversions::add_saturating(now, pause);
        let elapsed = end_of_pause.saturating_duration_since(self.attempt.first_started);
        if self.deadline().is_some_and(|end| end <= end_of_pause) || max_time.is_some_and(|most| elapsed > most) {
            return None;
        }
        self.report_pause(pause, 0, Some(error));
        self.facts.enter_phase(TransferPhase::Pause, now);
        let milliseconds = pause.as_millis().try_into().unwrap_or(u32::MAX);
        self.attempt.repetition_pause = NonZeroU32::new(milliseconds);
        Some(pause)
    }

    /// Limits the time that the target of a redirect, such as a mirror, has for its response: to a
    /// quarter of the time that remains for the transfer. A silent mirror then leaves time for a
    /// retry at another mirror.
    fn limit_mirror_time(&mut self, now: Instant) {
        let Some(end) = self.total_deadline().filter(|_| self.max_time().is_none()) else { return };
        let may_try_others = !self.current.same_origin && self.current.has_original_method() && !self.has_content();
        if may_try_others && self.retry_delay(Trouble::Timeout, None).is_some() {
            self.attempt.deadline = Some(now + end.saturating_duration_since(now) / 4);
        }
    }

    /// Sets the deadline of this attempt to that of the whole transfer, now that the server has
    /// responded. Before the response, the target of a redirect (such as a mirror) may have an
    /// earlier deadline, which `limit_mirror_time` sets: a silent mirror then leaves time for
    /// another one. Does nothing if each attempt has a time limit.
    pub(super) fn restore_deadline(&mut self) {
        if self.max_time().is_none() {
            self.attempt.deadline = self.total_deadline();
        }
    }

    /// Schedules another attempt of the transfer after the delay `wait`. Reports the delay to the
    /// trace and to [`RequestOptions::pauses`](crate::RequestOptions::pauses).
    fn schedule_retry(
        &mut self,
        trouble: Trouble,
        wait: Duration,
        error: Option<&Error>,
        now: Instant,
    ) -> TransferStep {
        self.trace_retry(trouble, wait, error);
        self.report_pause(wait, self.attempt.counted_attempts + 1, error);
        if self.options.keep_history {
            let error = match (error, &self.head) {
                (Some(error), _) => error.duplicate(),
                (None, Some(head)) => response::bad_status(head),
                (None, None) => Error::new(ErrorKind::EmptyReply, "the response has no head"),
            };
            let failed = &mut self.facts.failed_attempts;
            if failed.len() == MAX_FAILED_ATTEMPTS {
                failed.remove(0);
            }
            failed.push(FailedAttempt { error, pause: wait });
        }
        self.attempt.counted_attempts += 1;
        self.facts.retries += 1;
        self.facts.enter_phase(TransferPhase::Pause, now);
        let at = time_conversions::add_saturating(now, wait);
        self.begin_attempt(at);
        // The answers to challenges are limited for each attempt.
        self.auth = self.auth.for_retry();
        self.proxy_auth = ForwardProxyAuthState::default();
        if self.options.curl_compat.retries_whole {
            self.restart_at_first_target();
            *self.facts = self.facts.for_next_attempt(at);
        } else {
            self.return_to_first_target();
        }
        TransferStep::Again(wait)
    }

    /// Returns true if the transfer may release its host slot (the permit for one transfer to the
    /// host) while it waits for its retry. Returns false if the transfer keeps a decoder for the
    /// remaining body: transfers with a slot may be waiting for the decoder's memory, which would
    /// be a deadlock.
    pub(crate) fn may_give_up_slot(&mut self) -> bool {
        if !self.progress.has_begun {
            self.body.release_decoder();
        }
        !self.body.uses_decoder_memory()
    }

    /// Releases the transfer's host slot (the permit for one transfer to the host) while the
    /// transfer waits for its retry.
    pub(crate) fn give_up_slot(&mut self) {
        (self.scheduling.host_slot, self.scheduling.has_given_slot) = (None, false);
    }

    /// Continues a transfer after it released its host slot (the permit for one transfer to the
    /// host) for the pause before a retry. `slot` is its new host slot. If `restarts_clock` is
    /// true, the time limit of the attempt begins now, not at the end of the pause. A repetition
    /// that is no retry continues its attempt; only the wait for the slot does not count.
    pub(crate) fn resume_with_slot(&mut self, slot: HostId, restarts_clock: bool, now: Instant) {
        self.scheduling.host_slot = Some(slot);
        let waited = now.saturating_duration_since(self.facts.phase_began);
        match self.attempt.repetition_pause.take() {
            _ if !restarts_clock => {}
            Some(pause) => {
                let pause = Duration::from_millis(pause.get().into());
                self.postpone_deadline(waited.saturating_sub(pause));
            }
            None => self.begin_attempt(now),
        }
    }

    /// Reports the pause `wait` before a retry with the number `retry` (0 for a repetition that
    /// does not count as a retry), and the `error` that is its cause, to
    /// [`RequestOptions::pauses`](crate::RequestOptions::pauses). Without an `error`, the cause is
    /// the response's status.
    fn report_pause(&self, wait: Duration, retry: u32, error: Option<&Error>) {
        let Some(pauses) = &self.options.pauses else { return };
        let cause = error.map_or_else(|| format!("the server answered {}", self.facts.status), Error::cause);
        pauses.begins(&RetryPause {
            url: &self.current.first_target().to_url(),
            wait,
            cause: &cause,
            retry,
            most: self.options.retry.max,
        });
    }

    /// Delivers the stored response heads at the end of a transfer without a body, if
    /// [`RequestOptions::include_head`](crate::RequestOptions::include_head) is set.
    fn deliver_heads(&mut self) {
        if !self.options.include_head || self.progress.has_begun || self.is_part() || self.history.heads.is_empty() {
            return;
        }
        let Some(head) = self.head.as_ref().or(self.history.last_other_head.as_deref()) else { return };
        self.progress.has_begun = true;
        let begin = ResponseForSink {
            head,
            target: self.current.first_target(),
            place: &self.current.target,
            history: &self.history.redirects,
            facts: &self.facts,
            length: Some(0),
            offset: self.progress.range.at,
            total: None,
            validator: None,
            deadline: self.deadline(),
        };
        // The transfer reports its first error, which matters more than that of this delivery.
        let _ = self.body.begin(&begin, &self.history.heads, b"", self.options.decode_limits);
    }

    /// Finishes the transfer with this result: completes its facts, such as sizes and times.
    pub(crate) fn finish_with(&mut self, result: Result<()>, now: Instant) -> TransferStep {
        if !self.progress.has_begun && !self.is_part() {
            // The received bytes were discarded.
            self.facts.body_bytes = 0;
        }
        self.facts.decoded_bytes = self.body.decoded_bytes();
        if result.is_err() {
            self.deliver_heads();
        }
        self.facts.on_finished(now);
        if self.is_part() {
            // Other connections are still receiving the body.
            self.facts.enter_phase(TransferPhase::Receive, now);
        }
        TransferStep::Done(result.map_err(|error| self.annotate(error)))
    }

    /// Adds the URL of this transfer to an error, and the phase that the transfer had reached.
    pub(crate) fn annotate(&self, error: Error) -> Error {
        let stage = if self.attempt.has_sent { ErrorStage::Sent } else { ErrorStage::Unknown };
        let error = error.with_url(self.current.target.to_url()).with_stage(stage);
        if self.current.is_redirected() {
            error.with_requested_url(self.current.first_target().to_url())
        } else {
            error
        }
    }

    /// Returns the pause that the last response requests for its host (429 or 503 with
    /// Retry-After). The pause also applies to other requests to that host. Returns `None` if the
    /// response requests no pause, or if it came from the target of a redirect to another origin.
    #[must_use]
    pub fn host_pause(&self) -> Option<Duration> {
        self.response.host_pause.map(|milliseconds| Duration::from_millis(milliseconds.get()))
    }

    /// Returns the pause that the response with this head requests (429 or 503 with Retry-After).
    /// The pause is at most as long as the caller allows a transfer to take, because other
    /// transfers to the host wait for its end without a time limit. Returns `None` if the response
    /// requests no pause, or if it came from an origin other than the origin of the caller's
    /// target.
    pub(super) fn requested_pause(&self, head: &ResponseHead) -> Option<Duration> {
        if !matches!(head.status(), 429 | 503) || !self.current.same_origin || self.options.retry.max == 0 {
            return None;
        }
        let asked = retry::parse_retry_after(head.get("retry-after")?, time_conversions::unix_now())?;
        let limits = [self.options.retry.max_time, self.options.total_time, Some(self.options.retry.cap)];
        limits.into_iter().flatten().chain([asked]).min()
    }

    /// Converts a finished transfer to its outcome. Also returns the transfer's [`BodyDelivery`],
    /// which contains the sink.
    #[inline]
    #[must_use]
    pub fn into_outcome(self: Box<Self>, result: Result<()>) -> (TransferOutcome, BodyDelivery) {
        self.trace_milestone(Milestone::Done, result.as_ref().err());
        let Self { current: TargetState { target, .. }, head, facts, scheduling, history, trailers, body, .. } = *self;
        let TransferSchedulingData { tag, .. } = scheduling;
        let trailers = trailers.map(|fields| *fields);
        (TransferOutcome { result, target, head, facts, tag, history: history.redirects, trailers }, body)
    }
}

/// Classifies an error for the retry rules. `broke` is the point at which the exchange (a request
/// and its response) failed.
fn trouble_of(error: &Error, broke: ExchangeFailurePoint) -> Trouble {
    match (error.kind(), broke) {
        (_, ExchangeFailurePoint::ByProtocol) => Trouble::Permanent,
        (ErrorKind::Timeout, ExchangeFailurePoint::BeforeSending) => Trouble::ConnectTimeout,
        (ErrorKind::Timeout, _) => Trouble::Timeout,
        // A proxy that refused to open a tunnel would refuse it again.
        (ErrorKind::Connect, _) if error.status().is_some() => Trouble::Permanent,
        (ErrorKind::Connect, _) => Trouble::ConnectRefused,
        // A refused certificate or a violation of TLS would occur again.
        (ErrorKind::TlsHandshake, ExchangeFailurePoint::BeforeSending) if error.io_source().is_some() => {
            Trouble::ResetBeforeRequest
        }
        _ if error.is_tls_rejection() => Trouble::Permanent,
        // A name that does not exist is final. A resolver that could not be reached is a transient
        // error, as in curl.
        (ErrorKind::Resolve | ErrorKind::ProxyResolve, _) => Trouble::Dns { transient: error.io_source().is_some() },
        (
            ErrorKind::EmptyReply
            | ErrorKind::Send
            | ErrorKind::Receive
            | ErrorKind::PartialBody
            | ErrorKind::Http2Stream
            | ErrorKind::Http3,
            ExchangeFailurePoint::InResponse,
        ) => Trouble::ResetInBody,
        (
            ErrorKind::EmptyReply | ErrorKind::Send | ErrorKind::Receive | ErrorKind::Http2Stream | ErrorKind::Http3,
            ExchangeFailurePoint::WhileStale | ExchangeFailurePoint::BeforeResponse,
        )
        | (ErrorKind::Protocol, ExchangeFailurePoint::WhileStale) => Trouble::ResetBeforeResponse,
        _ => Trouble::Permanent,
    }
}

/// Returns a random number, by which the pauses before retries vary, so that several programs do
/// not retry at the same time.
fn entropy() -> u64 {
    let mut hasher = RandomState::new().build_hasher();
    hasher.write_u128(SystemTime::now().elapsed().map_or(0, |elapsed| elapsed.as_nanos()));
    hasher.finish()
}

#[cfg(test)]
mod tests;
