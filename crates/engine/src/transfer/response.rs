//! Handles the head of a response: decides whether its body is delivered or dropped, and whether
//! another exchange follows.

use std::num::NonZeroU64;
use std::sync::Arc;
use std::time::{Duration, Instant};

use haul_policy::retry::{self, AttemptOutcome as Trouble};
use haul_proto::h1::ResponseBodyFraming;
use haul_proto::list_elements;
use haul_proto::response_head::{ProtocolVersion, ResponseHead};

use super::delivery_range::{DeliveryRange, RangeVerdict, contradicts};
use super::host_overload::OverloadRefusal;
use super::resettable_state::{BodyDisposition, RangeFieldOwner};
use super::{MAX_KEPT_HEAD_BYTES, MAX_RESTARTS, Transfer};
use crate::error::ErrorStage;
use crate::net::proxy::ProxyRoute;
use crate::request::RequestOptions;
use crate::sink::ResponseForSink;
use crate::time_conversions;
use crate::trace::{Milestone, TraceEvent};
use crate::transfer_outcome::FollowedRedirect;
use crate::{Error, ErrorKind, Result};

/// The maximum number of challenges from a proxy that one transfer answers. Without a limit, a
/// proxy could reject each nonce as stale.
const MAX_PROXY_ROUNDS: u8 = 4;

/// The maximum length in bytes of a line of a response head that curl accepts.
const MAX_LINE: usize = 100 << 10;

impl Transfer {
    /// Handles the head of a final response (not 1xx), and decides what happens to its body.
    pub fn on_head(&mut self, head: ResponseHead, framing: ResponseBodyFraming, now: Instant) {
        let continues = self.progress.has_begun;
        self.restore_deadline();
        self.body.set_search_deadline(self.deadline());
        self.current.is_http10 = head.version() == ProtocolVersion::Http10;
        self.record_head_of_stream(&head);
        self.facts.on_head(&head, now, continues);
        self.speed.on_head(now);
        // The facts come first, so that an observer has them when it receives the head.
        self.trace_milestone(Milestone::Head, None);
        if let Some(trace) = &self.options.trace {
            trace.event(&TraceEvent::Response { head: &head });
        }
        let trace_error = self.options.trace.as_ref().and_then(|trace| trace.failure());
        self.store_response_state(&head);
        let milliseconds = |pause: Duration| u64::try_from(pause.as_millis()).unwrap_or(u64::MAX);
        self.response.host_pause = self.requested_pause(&head).map(milliseconds).and_then(NonZeroU64::new);
        self.attempt.refusal = OverloadRefusal::from_status(head.status(), || head.get("retry-after").is_some());
        let earlier = self.history.heads.len();
        if self.options.include_head {
            self.history.heads.extend_from_slice(&self.delivered_head_bytes(head.raw()));
        }
        self.response.disposition =
            trace_error.map_or_else(|| self.decide_body_disposition(&head, framing), BodyDisposition::Fail);
        if self.options.keep_history && matches!(self.response.disposition, BodyDisposition::Follow(_)) {
            self.history.redirects.push(FollowedRedirect { target: self.current.target.clone(), head: head.clone() });
        }
        // If heads are delivered, those with challenges and the last one are included.
        let stays = match &self.response.disposition {
            BodyDisposition::Again => {
                matches!(head.status(), 401 | 407 | 417)
                    || self.auth.is_probe && self.options.curl_compat.withholds_content_before_challenge
            }
            BodyDisposition::Follow(_) | BodyDisposition::Fail(_) | BodyDisposition::Complete => true,
            // A retry may have to write the heads again.
            BodyDisposition::Deliver | BodyDisposition::Retry(_) => self.repeats_heads(),
            _ => false,
        };
        if !stays || earlier > MAX_KEPT_HEAD_BYTES {
            self.history.heads.truncate(earlier);
        }
        // The head of a transfer is that of its first delivered response, since requests for the
        // rest are internal.
        if !continues {
            self.head = Some(head);
        }
    }

    /// Returns true if the options permit a response without a head (HTTP/0.9).
    pub fn accepts_headless_response(&self) -> bool {
        self.options.deviations.http09
    }

    /// Returns true if the sink receives the complete lines of an invalid or truncated response
    /// head, as in curl.
    pub fn wants_partial_heads(&self) -> bool {
        self.options.curl_compat.partial_heads && !self.progress.has_begun
    }

    /// Returns true if the options limit the size of the body.
    pub fn has_size_limit(&self) -> bool {
        self.options.max_size.is_some()
    }

    /// Delivers the complete lines of an invalid or truncated response head to the sink. The
    /// transfer fails afterwards.
    pub fn on_partial_head(&mut self, head: ResponseHead) {
        if let Some(trace) = &self.options.trace {
            trace.event(&TraceEvent::Response { head: &head });
        }
        self.facts.status = head.status();
        if self.options.include_head {
            self.history.heads.extend_from_slice(&self.delivered_head_bytes(head.raw()));
            // The transfer fails anyway, and the first error is the one to report.
            let _ = self.begin_delivery(&head, ResponseBodyFraming::None);
        }
        self.head = Some(head);
    }

    /// Decides what happens to the body of the response with this head. Several checks run one
    /// after the other; the first check that returns a decision determines the result.
    fn decide_body_disposition(&mut self, head: &ResponseHead, framing: ResponseBodyFraming) -> BodyDisposition {
        let options = Arc::clone(&self.options);
        let decided = oversized_line(head, &options)
            .or_else(|| self.on_server_proof(head))
            .or_else(|| self.on_proxy_challenge_or_misdirection(head, &options))
            .or_else(|| self.on_location(head))
            .or_else(|| self.on_challenge(head))
            .or_else(|| self.on_expectation_failed(head))
            .or_else(|| self.on_range(head, framing, &options))
            .or_else(|| self.on_stale_target(head))
            .or_else(|| self.on_status_without_rest(head, &options))
            .or_else(|| if head.status() >= 400 { self.on_bad_status(head, &options) } else { None })
            .or_else(|| self.on_missing_range(head, framing, &options))
            .or_else(|| self.on_unwanted(head, framing, &options));
        decided.unwrap_or_else(|| self.deliver(head, framing, &options))
    }

    /// Handles the statuses 407 (a proxy requires authentication) and 421 (the server refuses this
    /// host on this connection). Returns the decision to repeat the request if another attempt may
    /// succeed, and `None` otherwise.
    fn on_proxy_challenge_or_misdirection(
        &mut self,
        head: &ResponseHead,
        options: &RequestOptions,
    ) -> Option<BodyDisposition> {
        let status = head.status();
        if status == 407 && self.proxy_auth.rounds < MAX_PROXY_ROUNDS {
            let via = ProxyRoute::for_request(&self.current.target, options);
            // Negotiate is the strongest scheme.
            let answers = self.answers_proxy_negotiate(head)
                || via.forwarding_hop().is_some_and(|proxy| proxy.may_answer(head, self.has_proxy_credentials()));
            if answers {
                self.proxy_auth.rounds += 1;
                return Some(BodyDisposition::Again);
            }
        }
        if status != 421 || self.resend_error().is_some() {
            return None;
        }
        // Any method may be repeated, since the server did not process the request (RFC 9110
        // section 15.5.20).
        if self.reuse.is_reused() && !self.reuse.is_misdirected {
            self.reuse.is_misdirected = true;
            self.reuse.needs_new_connection = true;
            return Some(BodyDisposition::Again);
        }
        // If the connection is not reused, the alternative service does not serve this origin (RFC
        // 7838 section 6).
        (self.drop_alternative() || self.retry_misdirected_without_http3()).then_some(BodyDisposition::Again)
    }

    /// Handles a redirect: decides to follow it, or to fail if that is impossible. Returns `None`
    /// if the response is not a redirect that should be followed.
    fn on_location(&mut self, head: &ResponseHead) -> Option<BodyDisposition> {
        let location = match location(head) {
            Ok(location) => location,
            Err(error) => return Some(BodyDisposition::Fail(error)),
        };
        match self.redirect_hop(head.status(), location) {
            Ok(hop) => hop.map(|hop| BodyDisposition::Follow(Box::new(hop))),
            Err(error) => {
                let kind = match error.exit_code() {
                    1 => ErrorKind::UnsupportedScheme,
                    47 => ErrorKind::TooManyRedirects,
                    _ => ErrorKind::Url,
                };
                let message = match kind {
                    ErrorKind::TooManyRedirects => {
                        format!("too many redirects: {}", self.current.redirect_chain())
                    }
                    _ => "the redirect cannot be followed".to_owned(),
                };
                let error = Error::with_source(kind, message, error);
                Some(BodyDisposition::Fail(error.with_stage(ErrorStage::Redirected)))
            }
        }
    }

    /// Decides how the body is used if the request or the response concerns a byte range. Returns
    /// `None` to leave the decision to the later checks of the status, for example for a request
    /// and a response without a range.
    fn on_range(
        &mut self,
        head: &ResponseHead,
        framing: ResponseBodyFraming,
        options: &RequestOptions,
    ) -> Option<BodyDisposition> {
        if !self.ranges.may_request_ranges() {
            let asked = options
                .range
                .as_deref()
                .filter(|_| head.status() == 206 && !options.curl_compat.accepts_unreliable_responses)?;
            let message = format!("asked for the range {asked}, the server sent another one");
            return contradicts(head, asked).then(|| BodyDisposition::Fail(Error::new(ErrorKind::Range, message)));
        }
        if self.accepts_invalid_content_range(head) {
            let begun = self.begin_delivery(head, framing);
            return Some(begun.map_or_else(BodyDisposition::Fail, |()| BodyDisposition::Deliver));
        }
        match self.progress.range.verdict(head, framing) {
            RangeVerdict::Ordinary => None,
            // Some servers respond with a 206 although no range was requested. A further request
            // would not change that. A caller that examines statuses gets the response.
            _ if options.curl_compat.accepts_unreliable_responses && self.is_unrequested_part(head) => None,
            RangeVerdict::Refused(_) if !options.fail && self.is_unrequested_part(head) => {
                // A further request must not continue this part by what an earlier response said.
                self.progress.range = DeliveryRange::default();
                None
            }
            RangeVerdict::Refused(what) if self.is_unrequested_part(head) => {
                let message = format!("asked for no range, the server sent {what}");
                Some(BodyDisposition::Fail(Error::new(ErrorKind::Range, message)))
            }
            RangeVerdict::Refused(_)
                if options.curl_compat.accepts_unreliable_responses
                    && self.ranges.must_continue
                    && self.is_already_complete(head, framing) =>
            {
                Some(BodyDisposition::Complete)
            }
            RangeVerdict::Refused(_)
                if self.ranges.must_continue && self.progress.range.should_request_last_byte(head) =>
            {
                Some(BodyDisposition::Again)
            }
            verdict => Some(self.apply_verdict(verdict, head, framing)),
        }
    }

    /// Returns true if the response is a 206 although the request had no Range field.
    fn is_unrequested_part(&self, head: &ResponseHead) -> bool {
        head.status() == 206 && !self.progress.range.is_ranged()
    }

    /// Returns true if `accepts_unreliable_responses` is set, the transfer extends existing
    /// content, and the response counts as its rest in spite of an invalid Content-Range. Two
    /// responses do, as in curl, if the Content-Range begins at the requested offset (here 100):
    /// * a 206 without an end position: `bytes 100-`,
    /// * a 200, for which RFC 9110 defines no Content-Range: `bytes 100-199/200`.
    fn accepts_invalid_content_range(&self, head: &ResponseHead) -> bool {
        let offset = || {
            let range = head.get("content-range")?.trim_ascii().strip_prefix(b"bytes")?.trim_ascii_start();
            let (start, end) = range.split_at(range.iter().position(|byte| *byte == b'-')?);
            let start: u64 = std::str::from_utf8(start).ok()?.parse().ok()?;
            (end == b"-" || head.status() == 200).then_some(start)
        };
        self.options.curl_compat.accepts_unreliable_responses
            && self.ranges.must_continue
            && !self.progress.has_begun
            && matches!(head.status(), 200 | 206)
            && offset() == Some(self.progress.range.at)
    }

    /// Decides to request the caller's URL again if the target of an earlier redirect may have
    /// expired: the request went directly to that target, and the response is a 401, 403, 404 or
    /// 410. Returns `None` in any other case.
    fn on_stale_target(&mut self, head: &ResponseHead) -> Option<BodyDisposition> {
        let is_stale = self.current.skips_redirects && matches!(head.status(), 401 | 403 | 404 | 410);
        is_stale.then_some(BodyDisposition::RestartAtCallerUrl)
    }

    /// Handles a response without the missing bytes: the request asked for the rest of a begun
    /// body, or for a part of a split download, and the status is neither 200 nor 206. The transfer
    /// then tries again or fails, even if the caller accepts that status. Returns `None` for any
    /// other response.
    fn on_status_without_rest(&mut self, head: &ResponseHead, options: &RequestOptions) -> Option<BodyDisposition> {
        let status = head.status();
        if !self.progress.has_begun && !self.is_part() || matches!(status, 200 | 206) {
            return None;
        }
        let wait = self.retry_delay(Trouble::Status(status), retry_after(head));
        if let Some(wait) = wait.filter(|_| self.resend_error().is_none()) {
            return Some(BodyDisposition::Retry(wait));
        }
        let error = if status >= 400 && options.fail {
            bad_status(head)
        } else {
            let message =
                format!("the rest of the body is missing: the server answered {status} to the request for it");
            Error::new(ErrorKind::PartialBody, message)
        };
        Some(BodyDisposition::Fail(error))
    }

    /// Fails the transfer if the response does not contain the requested range, because other
    /// content must not be appended to the existing bytes. Returns `None` if the response is
    /// usable.
    fn on_missing_range(
        &mut self,
        head: &ResponseHead,
        framing: ResponseBodyFraming,
        options: &RequestOptions,
    ) -> Option<BodyDisposition> {
        let status = head.status();
        if !self.ranges.must_continue
            || !self.ranges.may_request_ranges()
            || !self.progress.range.is_ranged()
            || status == 206
            || status == 304 && !options.curl_compat.accepts_unreliable_responses
        {
            return None;
        }
        if options.curl_compat.accepts_unreliable_responses && self.is_already_complete(head, framing) {
            return Some(BodyDisposition::Complete);
        }
        let message = format!("asked for a range, the server answered {status}");
        Some(BodyDisposition::Fail(Error::new(ErrorKind::Range, message)))
    }

    /// Handles a body that the caller does not want. Returns `None` for any other body.
    ///
    /// * If [`RequestOptions::wants`] rejects the response, the transfer ends as if the server had
    ///   answered 304.
    /// * With [`RequestOptions::head_only`], the transfer fails if the announced body is larger
    ///   than allowed. Otherwise, returns `None`: the head is delivered later, without the body.
    fn on_unwanted(
        &mut self,
        head: &ResponseHead,
        framing: ResponseBodyFraming,
        options: &RequestOptions,
    ) -> Option<BodyDisposition> {
        if options.head_only {
            let length = std::str::from_utf8(head.get("content-length")?).ok()?.trim().parse().ok()?;
            return self.check_size(length).err().map(BodyDisposition::Fail);
        }
        // As in curl, the condition does not apply to a request for a part.
        if self.ranges.should_request_ranges() || self.ranges.must_continue {
            return None;
        }
        let is_unwanted = options.wants.as_ref().is_some_and(|wants| !wants.wants(head));
        if !is_unwanted || framing == ResponseBodyFraming::None {
            return None;
        }
        self.facts.status = 304;
        Some(BodyDisposition::Complete)
    }

    /// Begins to deliver the response to the sink. If only the head is wanted, delivers the head
    /// and decides to end the transfer.
    fn deliver(
        &mut self,
        head: &ResponseHead,
        framing: ResponseBodyFraming,
        options: &RequestOptions,
    ) -> BodyDisposition {
        let has_wanted = framing == ResponseBodyFraming::None || !options.head_only;
        match self.begin_delivery(head, if has_wanted { framing } else { ResponseBodyFraming::None }) {
            Ok(()) if has_wanted => BodyDisposition::Deliver,
            // With `fail` but without a body to deliver, the transfer fails once the head was
            // delivered.
            Ok(()) if head.status() >= 400 && options.fail => BodyDisposition::Fail(bad_status(head)),
            Ok(()) => BodyDisposition::Complete,
            Err(error) => BodyDisposition::Fail(error),
        }
    }

    /// Handles a status of 400 or above if it makes the transfer fail or causes a retry. Returns
    /// `None` if the body is delivered.
    fn on_bad_status(&mut self, head: &ResponseHead, options: &RequestOptions) -> Option<BodyDisposition> {
        let status = head.status();
        // If no status is a failure, only a transient status is a reason for a retry.
        let is_reason = options.fail || retry::is_transient_status(status);
        let delay = self.retry_delay(Trouble::Status(status), retry_after(head));
        let wait = delay.filter(|_| is_reason && self.resend_error().is_none());
        if let Some(wait) = wait.filter(|_| !options.curl_compat.retries_whole) {
            return Some(BodyDisposition::Retry(wait));
        }
        if !options.fail || options.fail_with_body {
            self.response.retry_after_body = wait;
            return None;
        }
        // The head is delivered although the body is not.
        if options.include_head
            && let Err(error) = self.begin_delivery(head, ResponseBodyFraming::None)
        {
            return Some(BodyDisposition::Fail(error));
        }
        Some(wait.map_or_else(|| BodyDisposition::Fail(bad_status(head)), BodyDisposition::Retry))
    }

    /// Returns true if the response shows that the existing bytes are already the complete content.
    fn is_already_complete(&self, head: &ResponseHead, framing: ResponseBodyFraming) -> bool {
        match head.status() {
            416 => head.get("content-range").is_none_or(|range| !range.trim_ascii().starts_with(b"bytes")),
            206 => false,
            _ => framing == ResponseBodyFraming::Length(self.progress.range.at) && head.get("content-range").is_none(),
        }
    }

    /// Decides what happens to the body of a response. `verdict` says how the response relates to
    /// the requested range.
    fn apply_verdict(
        &mut self,
        verdict: RangeVerdict,
        head: &ResponseHead,
        framing: ResponseBodyFraming,
    ) -> BodyDisposition {
        let (kind, message) = match verdict {
            RangeVerdict::Continues => {
                self.progress.range.on_part(head);
                if self.progress.has_begun {
                    return BodyDisposition::Deliver;
                }
                return self
                    .begin_delivery(head, framing)
                    .map_or_else(BodyDisposition::Fail, |()| BodyDisposition::Deliver);
            }
            RangeVerdict::Repeats(there) if self.progress.has_begun && !self.is_part() => {
                self.response.skip = there;
                self.response.exceeds_range = self.progress.range.end.is_some();
                return BodyDisposition::Deliver;
            }
            // In curl's mode, a retry continues in the user's file, whether or not the server
            // supports If-Range.
            RangeVerdict::Repeats(there) if self.ranges.must_continue && self.options.curl_compat.retries_whole => {
                self.response.skip = there;
                return self
                    .begin_delivery(head, framing)
                    .map_or_else(BodyDisposition::Fail, |()| BodyDisposition::Deliver);
            }
            RangeVerdict::Complete => return BodyDisposition::Complete,
            RangeVerdict::Changed => (ErrorKind::Changed, "the content changed while it was fetched".to_owned()),
            RangeVerdict::Refused(what) if self.progress.range.is_ranged() => {
                (ErrorKind::Range, format!("asked for a range, the server sent {what}"))
            }
            RangeVerdict::Refused(what) => (ErrorKind::Range, format!("asked for no range, the server sent {what}")),
            RangeVerdict::Repeats(_) | RangeVerdict::Ordinary => {
                (ErrorKind::Range, "asked for a range, the server sent the whole".to_owned())
            }
        };
        let is_fixed = self.is_part() || self.ranges.must_continue;
        // A 200 contains the whole content without a further request, so it allows as many restarts
        // as there are retries.
        let most = if head.status() == 200 { MAX_RESTARTS.max(self.options.retry.max) } else { MAX_RESTARTS };
        let most = most.min(u16::MAX.into());
        if !is_fixed && u32::from(self.attempt.restarts) < most && self.body.restart() {
            self.attempt.restarts = self.attempt.restarts.saturating_add(1);
            self.start_over();
            if head.status() != 200 {
                return BodyDisposition::Again;
            }
            return self
                .begin_delivery(head, framing)
                .map_or_else(BodyDisposition::Fail, |()| BodyDisposition::Deliver);
        }
        // Without ranges, a body that broke off cannot be completed.
        let broke_off = kind == ErrorKind::Range && self.progress.has_begun && !is_fixed;
        BodyDisposition::Fail(if broke_off {
            Error::new(ErrorKind::PartialBody, format!("the body broke off and cannot be resumed: {message}"))
        } else {
            Error::new(kind, message)
        })
    }

    /// Begins to deliver the body to the sink. Before the body, delivers the response heads that
    /// were stored for the sink, if the options request heads.
    fn begin_delivery(&mut self, head: &ResponseHead, framing: ResponseBodyFraming) -> Result<()> {
        let length = match framing {
            ResponseBodyFraming::Length(length) => Some(length),
            ResponseBodyFraming::None => Some(0),
            _ => None,
        };
        let is_rest = head.status() == 200 && self.accepts_invalid_content_range(head);
        if head.status() == 200 && self.ranges.may_request_ranges() && self.response.skip == 0 && !is_rest {
            self.progress.range.on_whole(head, framing);
        } else if self.progress.range.is_unstarted_opening() || self.replaces_existing_part(head) {
            // A response that replaces the content is not a part of it.
            self.progress.range = DeliveryRange::default();
        }
        let length = length.map(|length| length.saturating_sub(self.response.skip));
        self.check_position(length.map_or(0, |length| length.saturating_add(self.progress.range.at)))?;
        self.progress.has_begun = true;
        let deviations = self.options.deviations;
        let decodes = !deviations.raw && length != Some(0) && self.decodes_content(head);
        let mut codings = if decodes { self.content_codings(head) } else { Vec::new() };
        // Transfer codings were applied last, so they are decoded first; chunks are decoded
        // already. Only codings that the request asked for occur here, and content with a known
        // length has none.
        if !deviations.raw && length.is_none() && head.version() <= ProtocolVersion::Http11 {
            let of_transfer = head.get_all("transfer-encoding").flat_map(list_elements);
            let is_to_undo = |coding: &&[u8]| {
                let none: [&[u8]; 2] = [b"chunked", b"identity"];
                !none.iter().any(|other| coding.eq_ignore_ascii_case(other))
            };
            for coding in of_transfer.filter(is_to_undo) {
                if !codings.is_empty() {
                    codings.extend_from_slice(b", ");
                }
                codings.extend_from_slice(coding);
            }
        }
        self.progress.is_coded = !codings.is_empty();
        self.body.begin(
            &ResponseForSink {
                head,
                target: self.current.first_target(),
                place: &self.current.target,
                history: &self.history.redirects,
                facts: &self.facts,
                length,
                offset: self.progress.range.at,
                total: self.progress.range.total,
                validator: self.progress.range.validator.as_ref().filter(|_| self.ranges.may_request_ranges()),
                deadline: self.deadline(),
            },
            &self.history.heads,
            &codings,
            self.options.decode_limits,
        )
    }

    /// Returns true if the body of this response replaces any content that the sink has from an
    /// earlier run. The status is then neither 200 (the whole of that content) nor 206 (its rest),
    /// but 404, for example.
    fn replaces_existing_part(&self, head: &ResponseHead) -> bool {
        self.ranges.mode == RangeFieldOwner::Engine
            && !self.ranges.must_continue
            && !self.progress.has_begun
            && !self.is_part()
            && !matches!(head.status(), 200 | 206)
    }

    /// Returns an error if a body that ends at the offset `end` of the content is larger than
    /// [`RequestOptions::max_size`]. The bytes before the offset of `-C` do not count.
    pub(super) fn check_position(&self, end: u64) -> Result<()> {
        self.check_size(end.saturating_sub(self.ranges.start))
    }

    /// Returns an error if a body of this size is larger than [`RequestOptions::max_size`].
    pub(super) fn check_size(&self, size: u64) -> Result<()> {
        match self.options.max_size {
            Some(limit) if size > limit => {
                let message = format!("the body is larger than the {limit} bytes that are allowed");
                Err(Error::new(ErrorKind::TooLarge, message))
            }
            _ => Ok(()),
        }
    }
}

/// Returns the decision to fail the transfer if a line of the head is longer than curl accepts, and
/// the options request curl's limits; otherwise `None`.
fn oversized_line(head: &ResponseHead, options: &RequestOptions) -> Option<BodyDisposition> {
    if !options.curl_compat.head_limits || head.raw().len() <= MAX_LINE {
        return None;
    }
    let is_long = head.raw().split(|&byte| byte == b'\n').any(|line| line.len() > MAX_LINE);
    let message = format!("server sent a line of a head above the limit of {MAX_LINE} bytes");
    is_long.then(|| BodyDisposition::Fail(Error::new(ErrorKind::HeadTooLarge, message)))
}

/// Returns the pause before a retry that the response requests by Retry-After; `None` without a
/// valid Retry-After.
fn retry_after(head: &ResponseHead) -> Option<Duration> {
    retry::parse_retry_after(head.get("retry-after")?, time_conversions::unix_now())
}

/// Returns the error to report for a response whose status is a failure.
pub(crate) fn bad_status(head: &ResponseHead) -> Error {
    let reason = String::from_utf8_lossy(head.reason());
    let message = format!("the server answered {} {}", head.status(), reason.escape_debug());
    Error::new(ErrorKind::Status, message.trim_end()).with_status(head.status())
}

/// Returns the value of the Location field; `None` if there is no such field. Several fields with
/// different values are an error, since no rule says which of them applies.
fn location(head: &ResponseHead) -> Result<Option<&[u8]>> {
    let mut named = head.get_all("location").filter(|value| !value.is_empty());
    let first = named.next();
    if named.any(|other| Some(other) != first) {
        return Err(Error::new(ErrorKind::Protocol, "server sent Location fields that differ"));
    }
    Ok(first)
}
