//! Decides whether a failed request is tried again, and after which delay.
//!
//! ```
//! use core::time::Duration;
//! use haul_policy::retry::{AttemptOutcome, RetryRules, retry_delay, parse_retry_after};
//!
//! let rules = RetryRules::default();
//! let asked = parse_retry_after(b"7", 0);
//! let wait = retry_delay(&rules, AttemptOutcome::Status(503), 0, true, asked, Duration::ZERO, 42);
//! assert_eq!(wait, Some(Duration::from_secs(7)));
//! assert_eq!(retry_delay(&rules, AttemptOutcome::Status(404), 0, true, None, Duration::ZERO, 42), None);
//! // A POST may have been carried out before the 503.
//! assert_eq!(retry_delay(&rules, AttemptOutcome::Status(503), 0, false, None, Duration::ZERO, 42), None);
//! ```
//!
//! Left out: the immediate repeat on a new connection when an idle connection turns out to be
//! closed (the pool does that; it does not count as an attempt), and the offset at which a body
//! resumes (see [`range`](crate::range)).

use core::time::Duration;
use std::time::SystemTime;

use crate::cookie::date;

/// The user's settings for retries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RetryRules {
    /// `--retry`: the maximum number of attempts after the first; default 3.
    pub max: u32,
    /// `--retry-delay`: a fixed delay before each retry. `None`, the default, means exponential
    /// backoff with jitter.
    pub delay: Option<Duration>,
    /// `--retry-max-time`: no new attempt begins later than this time after the start of the first
    /// attempt. `None`, the default, for no limit.
    pub max_time: Option<Duration>,
    /// `--retry-connrefused`: true to treat a refused connection as transient; default off.
    pub connrefused: bool,
    /// `--retry-all-errors`: true to treat every failure as transient, for any method; default off.
    /// Hazard: a POST may be carried out twice.
    pub all_errors: bool,
    /// True if a reset connection counts as a transient failure, before or within the response;
    /// default on. curl treats such a failure as permanent, because it cannot resume the transfer.
    pub resets: bool,
    /// True if only reset connections count as transient failures, for callers that retry other
    /// failures themselves; default off.
    pub only_resets: bool,
    /// True to treat a name without an address as a transient failure, as curl does; default off,
    /// because only a failed lookup may succeed later.
    pub unknown_names: bool,
    /// True to retry methods that are not idempotent, too, after transient failures. Requests with
    /// these methods are then also sent again if a reused HTTP/1.1 connection was lost, as curl
    /// does. Default off. Hazard: a POST may be carried out twice.
    pub any_method: bool,
    /// True to wait before a retry as curl does; default off. The rules of curl:
    /// * The backoff has no jitter.
    /// * A Retry-After above 0 replaces the delay, even if that is longer.
    /// * The delay of a Retry-After must end before `max_time` has passed. Any other delay only has
    ///   to begin before then.
    pub waits_as_curl: bool,
    /// The longest delay that a Retry-After can cause; a Retry-After with a longer delay counts as
    /// this delay. Default 1 hour.
    pub cap: Duration,
}

impl Default for RetryRules {
    fn default() -> Self {
        RetryRules {
            max: 3,
            delay: None,
            max_time: None,
            connrefused: false,
            all_errors: false,
            resets: true,
            only_resets: false,
            unknown_names: false,
            any_method: false,
            waits_as_curl: false,
            cap: Duration::from_secs(3600),
        }
    }
}

impl RetryRules {
    /// Returns `true` if a request of this method may be sent again although the server may have
    /// processed it.
    #[must_use]
    pub fn may_repeat(&self, method: &str) -> bool {
        self.any_method || is_idempotent(method)
    }
}

/// The outcome of one attempt of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AttemptOutcome {
    /// The response has this error status (400 or above).
    Status(u16),
    /// No address accepted the connection.
    ConnectRefused,
    /// No connection to the server was established in time.
    ConnectTimeout,
    /// A time limit ran out after the connection was established.
    Timeout,
    /// The connection ended before the request could be sent, for example during a TLS handshake.
    ResetBeforeRequest,
    /// The connection ended before the first byte of the response.
    ResetBeforeResponse,
    /// The connection ended within the response's head or body.
    ResetInBody,
    /// The host name could not be resolved.
    Dns {
        /// True if a later query may succeed (EAI_AGAIN, timeout); false if the name does not
        /// exist.
        transient: bool,
    },
    /// The failure would recur: an invalid certificate, a malformed response, or a request that
    /// haul itself refuses.
    Permanent,
}

impl AttemptOutcome {
    /// Returns `true` if the outcome proves that the request was not sent, so that no server can
    /// have processed it.
    fn never_sent(self) -> bool {
        matches!(
            self,
            AttemptOutcome::ConnectRefused
                | AttemptOutcome::ConnectTimeout
                | AttemptOutcome::ResetBeforeRequest
                | AttemptOutcome::Dns { .. }
        )
    }

    fn is_transient(self, rules: &RetryRules) -> bool {
        match self {
            AttemptOutcome::ResetBeforeRequest | AttemptOutcome::ResetBeforeResponse | AttemptOutcome::ResetInBody => {
                rules.resets
            }
            _ if rules.only_resets => false,
            AttemptOutcome::Status(status) => is_transient_status(status),
            AttemptOutcome::ConnectRefused => rules.connrefused,
            AttemptOutcome::ConnectTimeout | AttemptOutcome::Timeout => true,
            AttemptOutcome::Dns { transient } => transient || rules.unknown_names,
            AttemptOutcome::Permanent => false,
        }
    }
}

/// Returns `true` for the statuses that curl retries: 408, 429, 500, 502, 503, 504, and
/// Cloudflare's 522 and 524.
pub fn is_transient_status(status: u16) -> bool {
    matches!(status, 408 | 429 | 500 | 502 | 503 | 504 | 522 | 524)
}

/// Returns `true` if sending the request twice has the same effect as once (RFC 9110 §9.2.2).
/// Methods are case-sensitive.
pub fn is_idempotent(method: &str) -> bool {
    matches!(method, "GET" | "HEAD" | "OPTIONS" | "TRACE" | "PUT" | "DELETE")
}

/// Returns the delay before the next attempt; `None` means to give up.
///
/// `attempt` is the number of retries already made: 0 after the first attempt. Unless
/// `method_is_idempotent` is true, a request that may have been sent is retried only if `rules`
/// allow that for any method. `elapsed` is the time since the first attempt began.
///
/// The delay is [`RetryRules::delay`] if that is set. Otherwise it is one second, doubled each time
/// up to ten minutes. It is shortened by up to half according to the random `entropy`, so that
/// clients that failed together do not return together. A longer `retry_after` replaces the delay,
/// up to [`RetryRules::cap`].
pub fn retry_delay(
    rules: &RetryRules,
    outcome: AttemptOutcome,
    attempt: u32,
    method_is_idempotent: bool,
    retry_after: Option<Duration>,
    elapsed: Duration,
    entropy: u64,
) -> Option<Duration> {
    let transient = outcome.is_transient(rules) && (method_is_idempotent || rules.any_method || outcome.never_sent());
    if attempt >= rules.max || !(transient || rules.all_errors) {
        return None;
    }
    // Scripts for curl rely on the announced wait in full.
    let own = rules.delay.unwrap_or_else(|| backoff(attempt, if rules.waits_as_curl { 0 } else { entropy }));
    let asked = retry_after.unwrap_or_default().min(rules.cap);
    let wait = if rules.waits_as_curl && !asked.is_zero() { asked } else { own.max(asked) };
    let in_time = rules.max_time.is_none_or(|limit| match rules.waits_as_curl && asked.is_zero() {
        true => elapsed < limit,
        false => elapsed.saturating_add(wait) <= limit,
    });
    in_time.then_some(wait)
}

/// Returns the delay before a retry: 2^attempt seconds, at most ten minutes, shortened by up to
/// half. The random number `entropy` selects how much the delay is shortened.
pub fn backoff(attempt: u32, entropy: u64) -> Duration {
    const MAX_BACKOFF_MS: u64 = 600_000;
    let full = 1000u64.checked_shl(attempt).filter(|ms| attempt < 32 && *ms < MAX_BACKOFF_MS).unwrap_or(MAX_BACKOFF_MS);
    Duration::from_millis(full - entropy % (full / 2 + 1))
}

/// Parses a Retry-After (RFC 9110 §10.2.3), in seconds or as a date, and returns the delay. A date
/// may have any of the three HTTP formats. A wrong day of the week, missing zeros and some wrong
/// zone names are tolerated. A date in the past means no delay. A number of seconds that is too
/// large becomes the largest number. Returns `None` for an invalid value.
pub fn parse_retry_after(value: &[u8], now_unix: u64) -> Option<Duration> {
    let text = core::str::from_utf8(value.trim_ascii()).ok()?;
    if !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()) {
        return Some(Duration::from_secs(text.parse().unwrap_or(u64::MAX)));
    }
    let exact = httpdate::parse_http_date(text).ok().and_then(|date| date.duration_since(SystemTime::UNIX_EPOCH).ok());
    let at = exact.or_else(|| parse_lenient_http_date(text))?;
    Some(at.saturating_sub(Duration::from_secs(now_unix)))
}

/// Parses a date by the lenient rules for dates in cookies, and returns the time since 1970. These
/// rules ignore the time zone. Therefore, returns `None` unless the zone is `GMT`, `UTC` or
/// `+0000`, and also if the date is malformed.
fn parse_lenient_http_date(text: &str) -> Option<Duration> {
    let zone = text.rsplit(' ').next()?;
    let is_gmt = ["GMT", "UTC", "+0000"].iter().any(|name| zone.eq_ignore_ascii_case(name));
    is_gmt.then(|| date::parse(text.as_bytes()))?.map(Duration::from_secs)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: u64 = 784_111_777; // Sun, 06 Nov 1994 08:49:37 GMT
    const SEC: fn(u64) -> Duration = Duration::from_secs;

    fn wait(rules: &RetryRules, outcome: AttemptOutcome, attempt: u32, idempotent: bool) -> Option<Duration> {
        retry_delay(rules, outcome, attempt, idempotent, None, Duration::ZERO, 0)
    }

    #[test]
    fn transient_statuses_equal_those_of_curl() {
        let rules = RetryRules::default();
        let retried: Vec<u16> =
            (0..=999).filter(|s| wait(&rules, AttemptOutcome::Status(*s), 0, true).is_some()).collect();
        assert_eq!(retried, [408, 429, 500, 502, 503, 504, 522, 524]);
    }

    #[test]
    fn retry_depends_on_outcome_and_method() {
        let rules = RetryRules { connrefused: true, ..RetryRules::default() };
        let table = [
            (AttemptOutcome::Status(503), true, false),
            (AttemptOutcome::ConnectRefused, true, true),
            (AttemptOutcome::ConnectTimeout, true, true),
            (AttemptOutcome::Timeout, true, false),
            (AttemptOutcome::ResetBeforeRequest, true, true),
            (AttemptOutcome::ResetBeforeResponse, true, false),
            (AttemptOutcome::ResetInBody, true, false),
            (AttemptOutcome::Dns { transient: true }, true, true),
            (AttemptOutcome::Dns { transient: false }, false, false),
            (AttemptOutcome::Permanent, false, false),
        ];
        for (outcome, get, post) in table {
            assert_eq!(wait(&rules, outcome, 0, true).is_some(), get, "GET {outcome:?}");
            assert_eq!(wait(&rules, outcome, 0, false).is_some(), post, "POST {outcome:?}");
        }
        assert_eq!(wait(&RetryRules::default(), AttemptOutcome::ConnectRefused, 0, true), None);
        let curl = RetryRules { resets: false, any_method: true, ..RetryRules::default() };
        assert_eq!(wait(&curl, AttemptOutcome::ResetInBody, 0, true), None);
        assert!(wait(&curl, AttemptOutcome::Status(500), 0, false).is_some());
        let names = RetryRules { unknown_names: true, ..RetryRules::default() };
        assert!(wait(&names, AttemptOutcome::Dns { transient: false }, 0, false).is_some());
        let resets = RetryRules { only_resets: true, ..RetryRules::default() };
        let others = [
            AttemptOutcome::Status(503),
            AttemptOutcome::ConnectTimeout,
            AttemptOutcome::Timeout,
            AttemptOutcome::Dns { transient: true },
        ];
        assert!(others.iter().all(|outcome| wait(&resets, *outcome, 0, true).is_none()));
        assert!(wait(&resets, AttemptOutcome::ResetInBody, 0, true).is_some());
        let all = RetryRules { all_errors: true, ..RetryRules::default() };
        assert!(wait(&all, AttemptOutcome::Permanent, 0, false).is_some());
    }

    #[test]
    fn backoff_doubles_with_jitter_to_ten_minutes() {
        let rules = RetryRules { max: u32::MAX, ..RetryRules::default() };
        let waits: Vec<_> =
            (0..12).map(|n| wait(&rules, AttemptOutcome::Timeout, n, true).unwrap().as_secs()).collect();
        assert_eq!(waits, [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 600, 600]);
        assert_eq!(wait(&rules, AttemptOutcome::Timeout, u32::MAX - 1, true), Some(SEC(600)));
        for entropy in [1, 7, 12345, u64::MAX] {
            let jittered =
                retry_delay(&rules, AttemptOutcome::Timeout, 3, true, None, Duration::ZERO, entropy).unwrap();
            assert!(jittered >= SEC(4) && jittered <= SEC(8), "{jittered:?}");
        }
        let curl = RetryRules { waits_as_curl: true, ..rules.clone() };
        assert_eq!(
            retry_delay(&curl, AttemptOutcome::Timeout, 3, true, None, Duration::ZERO, 12345),
            Some(SEC(8)),
            "all that it says"
        );
        let fixed = RetryRules { delay: Some(SEC(3)), ..rules };
        assert_eq!(retry_delay(&fixed, AttemptOutcome::Timeout, 9, true, None, Duration::ZERO, 99), Some(SEC(3)));
    }

    #[test]
    fn retry_limits_end_the_retries() {
        let rules = RetryRules { max: 2, ..RetryRules::default() };
        assert!(wait(&rules, AttemptOutcome::Timeout, 1, true).is_some());
        assert_eq!(wait(&rules, AttemptOutcome::Timeout, 2, true), None);
        let timed = RetryRules { max_time: Some(SEC(10)), ..rules };
        let at = |elapsed, asked| retry_delay(&timed, AttemptOutcome::Status(429), 0, true, asked, elapsed, 0);
        assert_eq!(at(SEC(9), None), Some(SEC(1)));
        assert_eq!(at(SEC(9), Some(SEC(2))), None);
        assert_eq!(at(Duration::MAX, None), None);
    }

    #[test]
    fn longer_retry_after_replaces_delay_up_to_cap() {
        let rules = RetryRules::default();
        let asked = |s| retry_delay(&rules, AttemptOutcome::Status(429), 2, true, Some(s), Duration::ZERO, 0);
        assert_eq!(asked(SEC(30)), Some(SEC(30)));
        assert_eq!(asked(SEC(1)), Some(SEC(4)));
        assert_eq!(asked(Duration::MAX), Some(SEC(3600)));
    }

    #[test]
    fn curl_retry_delays_replace_the_backoff() {
        let rules = RetryRules { waits_as_curl: true, max_time: Some(SEC(5)), ..RetryRules::default() };
        let fixed = RetryRules { delay: Some(SEC(4)), ..rules.clone() };
        let at =
            |rules, elapsed, asked| retry_delay(rules, AttemptOutcome::Status(503), 1, true, asked, SEC(elapsed), 0);
        assert_eq!((at(&rules, 4, None), at(&fixed, 4, None)), (Some(SEC(2)), Some(SEC(4))));
        assert_eq!((at(&rules, 5, None), at(&fixed, 5, None)), (None, None));
        assert_eq!((at(&rules, 4, Some(SEC(1))), at(&fixed, 4, Some(SEC(1)))), (Some(SEC(1)), Some(SEC(1))));
        assert_eq!((at(&rules, 4, Some(SEC(2))), at(&fixed, 4, Some(SEC(0)))), (None, Some(SEC(4))));
    }

    #[test]
    fn retry_after_accepts_seconds_and_dates() {
        let cases: &[(&[u8], Option<u64>)] = &[
            (b"0", Some(0)),
            (b" 120\t", Some(120)),
            (b"Sun, 06 Nov 1994 08:50:37 GMT", Some(60)),
            (b"Sunday, 06-Nov-94 08:50:37 GMT", Some(60)),
            (b"Sun Nov  6 08:50:37 1994", Some(60)),
            (b"Sun, 06 Nov 1994 08:00:00 GMT", Some(0)),
            (b"99999999999999999999999", Some(u64::MAX)),
            (b"", None),
            (b"-1", None),
            (b"+5", None),
            (b"1.5", None),
            (b"5, 6", None),
            (b"Sun, 99 Nov 1994 08:50:37 GMT", None),
            (b"Mon, 06 Nov 1994 08:50:37 GMT", Some(60)),
            (b"Sun, 6 Nov 1994 8:50:37 GMT", Some(60)),
            (b"Sun, 06 Nov 1994 08:50:37 UTC", Some(60)),
            (b"Sun, 06 Nov 1994 08:50:37 +0000", Some(60)),
            (b"Sun, 06 Nov 1994 08:50:37 +0200", None),
            (b"06 Nov 1994", None),
            (b"in a minute", None),
            (b"\xff\xfe", None),
        ];
        for (value, seconds) in cases {
            assert_eq!(parse_retry_after(value, NOW), seconds.map(SEC), "{:?}", String::from_utf8_lossy(value));
        }
    }

    #[test]
    fn idempotent_methods_equal_those_of_rfc9110() {
        for method in ["GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE"] {
            assert!(is_idempotent(method));
        }
        for method in ["POST", "PATCH", "CONNECT", "get", "", "GET "] {
            assert!(!is_idempotent(method));
        }
    }

    #[test]
    fn wait_is_half_to_all_of_the_step() {
        let rules = RetryRules::default();
        let wait = |attempt, entropy| {
            retry_delay(&rules, AttemptOutcome::Status(503), attempt, true, None, Duration::ZERO, entropy)
        };
        let rules_allow = rules.max > 1;
        assert!(rules_allow);
        assert_eq!(
            [0, 500, 501].map(|entropy| wait(0, entropy)),
            [1000, 500, 1000].map(|ms| Some(Duration::from_millis(ms)))
        );
        assert_eq!(wait(1, 1000), Some(Duration::from_secs(1)));
    }

    #[test]
    fn only_idempotent_methods_may_repeat() {
        let rules = RetryRules::default();
        assert!(rules.may_repeat("GET") && rules.may_repeat("PUT") && !rules.may_repeat("POST"));
        assert!(RetryRules { any_method: true, ..rules }.may_repeat("POST"));
    }

    #[test]
    fn backoff_of_any_attempt_is_ten_minutes_at_most() {
        assert_eq!(
            [0, 9, 10, 31, 32, 61, u32::MAX].map(|attempt| backoff(attempt, 0)),
            [1, 512, 600, 600, 600, 600, 600].map(SEC)
        );
    }
}
