//! Converts the options of an easy handle to a request of the engine.

mod connection;
mod credentials;
mod fields;
mod method_and_content;
mod reused_request_options;
mod target;

use std::sync::Arc;
use std::time::Duration;

use haul::request::{CurlCompat, H1Deviations, RedirectRules, ResponseHeadPredicate, RetryRules, SpeedLimit};
use haul::{RequestOptions, ResponseHead, Target};
use haul_policy::protocols::ProtocolSet;

pub(crate) use method_and_content::{RequestContent, form_tree, ready_form};
pub(crate) use reused_request_options::ReusableRequest;
pub(crate) use target::{target_url, url_for_info};

use crate::codes::{CURLE_UNSUPPORTED_PROTOCOL, CURLcode, easy_message};
use crate::date;
use crate::easy::EasyState;
use crate::mime::MimeCopy;
use crate::options::{EasyOptions, RequestKind, curlauth_constants::AUTH_DIGEST, curlopt_numbers as opt};

/// The default timeout for making a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(300);

/// A request that is ready to be sent, but has no callbacks yet.
pub(crate) struct PreparedRequest {
    pub(crate) target: Target,
    pub(crate) options: Arc<RequestOptions>,
    pub(crate) content: RequestContent,
    /// The URL as the C program gave it.
    pub(crate) url: String,
    /// The time limit of the transfer; `None` for no limit.
    pub(crate) time_limit: Option<Duration>,
}

/// The reason why a transfer cannot begin, or has failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TransferFailure {
    pub(crate) code: CURLcode,
    pub(crate) text: String,
}

impl TransferFailure {
    pub(crate) fn new(code: CURLcode, text: impl Into<String>) -> Self {
        Self { code, text: text.into() }
    }
}

impl From<CURLcode> for TransferFailure {
    fn from(code: CURLcode) -> Self {
        Self::new(code, easy_message(code))
    }
}

/// Makes the request that the options of a handle describe. `form` is its form
/// ([`ready_form`]), if it has one.
///
/// # Errors
/// An option cannot be used.
pub(crate) fn prepare(
    state: &mut EasyState,
    easy: usize,
    form: Option<MimeCopy>,
) -> Result<PreparedRequest, TransferFailure> {
    let (target, url) = match state.reusable_request.target() {
        Some(kept) => kept,
        None => target::target(&state.options)?,
    };
    if let Some(options) = state.reusable_request.options(state.options.request_kind()) {
        let content = method_and_content::content_for_reused_options(&state.options, easy)?;
        return Ok(PreparedRequest { target, time_limit: options.max_time, options, content, url });
    }
    let jar = state.cookie_jar();
    let hsts = state.hsts()?;
    let alt_svc = state.alt_svc()?;
    let options = &state.options;
    let mut request = RequestOptions {
        user_agent: options.bytes(opt::USERAGENT).filter(|agent| !agent.is_empty()).map(<[u8]>::to_vec),
        referer: options.bytes(opt::REFERER).map(<[u8]>::to_vec),
        cookie: options.bytes(opt::COOKIE).filter(|cookie| !cookie.is_empty()).map(<[u8]>::to_vec),
        jar,
        hsts,
        alt_svc,
        range: range(options),
        fail: options.is_on(opt::FAILONERROR),
        head_only: options.request_kind() == RequestKind::Head,
        request_target: options.text(opt::REQUEST_TARGET).map(|text| text.into_owned()),
        redirects: redirects(options),
        retry: RetryRules { max: 0, resets: false, any_method: true, waits_as_curl: true, ..RetryRules::default() },
        resume: false,
        curl_compat: curl_compat(options),
        max_time: millis(options, opt::TIMEOUT_MS),
        max_size: options.number(opt::MAXFILESIZE_LARGE).and_then(positive_or_none),
        resume_from: resume_from(options),
        limit_rate: rate(options),
        speed_limit: speed_limit(options),
        path_as_is: options.is_on(opt::PATH_AS_IS),
        auto_referer: options.is_on(opt::AUTOREFERER),
        expect_timeout: match options.number(opt::EXPECT_100_TIMEOUT_MS) {
            Some(time) => Duration::from_millis(time.unsigned_abs()),
            None => Duration::from_secs(1),
        },
        deviations: H1Deviations {
            http10: options.number(opt::HTTP_VERSION) == Some(connection::HTTP_1_0),
            http09: options.is_on(opt::HTTP09_ALLOWED),
            ignore_length: options.is_on(opt::IGNORE_CONTENT_LENGTH),
            raw: options.number(opt::HTTP_TRANSFER_DECODING) == Some(0),
            codings: options.is_on(opt::TRANSFER_ENCODING),
            tolerant: true,
            follows_http10: true,
            ..H1Deviations::default()
        },
        http3_cache: state.http3_cache.clone(),
        ..RequestOptions::default()
    };
    fields::set_fields(options, &mut request);
    connection::set_connection_options(options, &mut request)?;
    credentials::set_credentials(state, &mut request)?;
    let content = method_and_content::set_content(&state.options, &mut request, easy, form)?;
    let options = Arc::new(request);
    reused_request_options::keep(state, &options, &target, &url);
    Ok(PreparedRequest { target, time_limit: options.max_time, options, content, url })
}

fn positive_or_none(number: i64) -> Option<u64> {
    u64::try_from(number).ok().filter(|number| *number > 0)
}

fn millis(options: &EasyOptions, option: u32) -> Option<Duration> {
    options.number(option).and_then(positive_or_none).map(Duration::from_millis)
}

fn range(options: &EasyOptions) -> Option<String> {
    let range = options.text(opt::RANGE)?.into_owned();
    // The range of a request with content is that of its content.
    let has_content = !matches!(options.request_kind(), RequestKind::Get | RequestKind::Head);
    (!has_content && !range.is_empty()).then_some(range)
}

fn resume_from(options: &EasyOptions) -> Option<u64> {
    options
        .number(opt::RESUME_FROM_LARGE)
        .and_then(positive_or_none)
        .filter(|_| options.request_kind() == RequestKind::Get)
}

/// Returns the limit on the rate of the transfer. The engine has one limit for both directions, so
/// only one option applies:
///
/// * GET and HEAD: `CURLOPT_MAX_RECV_SPEED_LARGE`
/// * PUT: `CURLOPT_MAX_SEND_SPEED_LARGE`
/// * POST and forms: `CURLOPT_MAX_SEND_SPEED_LARGE` if it is set, else
///   `CURLOPT_MAX_RECV_SPEED_LARGE`
fn rate(options: &EasyOptions) -> Option<u64> {
    let limit = |option| options.number(option).and_then(positive_or_none);
    match options.request_kind() {
        RequestKind::Get | RequestKind::Head => limit(opt::MAX_RECV_SPEED_LARGE),
        RequestKind::Put => limit(opt::MAX_SEND_SPEED_LARGE),
        RequestKind::Post | RequestKind::Form | RequestKind::Mime => {
            limit(opt::MAX_SEND_SPEED_LARGE).or_else(|| limit(opt::MAX_RECV_SPEED_LARGE))
        }
    }
}

fn speed_limit(options: &EasyOptions) -> Option<SpeedLimit> {
    let bytes_per_second = options.number(opt::LOW_SPEED_LIMIT).and_then(positive_or_none)?;
    let time = Duration::from_secs(options.number(opt::LOW_SPEED_TIME).and_then(positive_or_none)?);
    Some(SpeedLimit { bytes_per_second, time })
}

/// Returns the URL schemes that an option allows. The option is a list of names (`names`) or a bit
/// mask (`bits`). `None` if neither is set.
fn protocols(options: &EasyOptions, names: u32, bits: u32) -> Option<ProtocolSet> {
    const HTTP: i64 = 1;
    const HTTPS: i64 = 1 << 1;
    let none = ProtocolSet { http: false, https: false, file: false };
    if let Some(list) = options.text(names) {
        return if list.eq_ignore_ascii_case("all") { None } else { Some(none.with_list(&list).unwrap_or(none)) };
    }
    let bits = options.number(bits)?;
    Some(ProtocolSet { http: bits & HTTP != 0, https: bits & HTTPS != 0, file: false })
}

/// Returns an error if the options do not allow the scheme of the target.
fn check_protocol(options: &EasyOptions, target: &Target) -> Result<(), TransferFailure> {
    let allowed = protocols(options, opt::PROTOCOLS_STR, opt::PROTOCOLS).unwrap_or_default();
    if allowed.allows(target.scheme()) {
        return Ok(());
    }
    let text = format!("Protocol \"{}\" disabled", target.scheme().as_str());
    Err(TransferFailure::new(CURLE_UNSUPPORTED_PROTOCOL, text))
}

fn redirects(options: &EasyOptions) -> RedirectRules {
    /// `CURLFOLLOW_OBEYCODE`: after a redirect, the status decides the method, even if
    /// `CURLOPT_CUSTOMREQUEST` is set.
    const FOLLOW_OBEYCODE: i64 = 2;
    /// The default of `CURLOPT_MAXREDIRS` since libcurl 8.3.
    const MAX_REDIRECTS: u32 = 30;
    let post = options.number(opt::POSTREDIR).unwrap_or(0);
    let rules = RedirectRules {
        follow: options.is_on(opt::FOLLOWLOCATION),
        max: match options.number(opt::MAXREDIRS) {
            None => MAX_REDIRECTS,
            Some(most) => u32::try_from(most).unwrap_or(u32::MAX),
        },
        post301: post & 1 != 0,
        post302: post & 2 != 0,
        post303: post & 4 != 0,
        keep_method: options.has(opt::CUSTOMREQUEST) && options.number(opt::FOLLOWLOCATION) != Some(FOLLOW_OBEYCODE),
        is_post: Some(matches!(options.request_kind(), RequestKind::Post | RequestKind::Form | RequestKind::Mime)),
        location_trusted: options.is_on(opt::UNRESTRICTED_AUTH),
        ..RedirectRules::default()
    };
    let first = protocols(options, opt::PROTOCOLS_STR, opt::PROTOCOLS).unwrap_or_default();
    let later = protocols(options, opt::REDIR_PROTOCOLS_STR, opt::REDIR_PROTOCOLS).unwrap_or_default();
    rules.with_protocols(first.intersection(later))
}

fn curl_compat(options: &EasyOptions) -> CurlCompat {
    let digest_only = |option| options.number(option).is_some_and(|schemes| schemes & !(1 << 31) == AUTH_DIGEST);
    CurlCompat {
        cookies_by_host: true,
        omits_zero_content_length: true,
        strict_content_coding: true,
        withholds_content_before_challenge: digest_only(opt::HTTPAUTH) || digest_only(opt::PROXYAUTH),
        accepts_unreliable_responses: true,
        refused_tunnel_is_status_error: true,
        keeps_secret_fields_across_origins: true,
        partial_heads: true,
        head_limits: true,
        spells_as_curl: true,
        redirect_logins: true,
        ..CurlCompat::default()
    }
}

/// The condition of `CURLOPT_TIMECONDITION` on the `Last-Modified` field of a response.
pub(crate) struct TimeCondition {
    /// The time with which `Last-Modified` is compared, in seconds since 1970.
    time: i64,
    /// True to accept content that was modified after `time`; false to accept content that was not.
    newer: bool,
}

impl TimeCondition {
    /// Returns the time condition (`CURLOPT_TIMECONDITION`) of the options. `None` if no condition
    /// is set.
    fn from_options(options: &EasyOptions) -> Option<Self> {
        const IF_MODIFIED_SINCE: i64 = 1;
        const IF_UNMODIFIED_SINCE: i64 = 2;
        let kind = options.number(opt::TIMECONDITION)?;
        let time = options.number(opt::TIMEVALUE_LARGE).unwrap_or(0);
        let is_known = kind == IF_MODIFIED_SINCE || kind == IF_UNMODIFIED_SINCE;
        is_known.then_some(Self { time, newer: kind == IF_MODIFIED_SINCE })
    }

    /// Returns true if content with this modification time meets the condition.
    fn wants_time(&self, modified: i64) -> bool {
        if self.newer { modified > self.time } else { modified <= self.time }
    }

    /// Returns true if a response with this head does not meet the condition.
    pub(crate) fn is_unmet(options: &EasyOptions, head: &ResponseHead) -> bool {
        // As in libcurl, a 304 also answers a condition in a field of the C program.
        head.status() == 304 || Self::from_options(options).is_some_and(|condition| !condition.wants(head))
    }
}

impl ResponseHeadPredicate for TimeCondition {
    fn wants(&self, head: &ResponseHead) -> bool {
        modified(head).is_none_or(|modified| self.wants_time(modified))
    }
}

/// Returns the time in the `Last-Modified` field of a response, in seconds since 1970. Returns
/// `None` if the field is missing or is not a date.
pub(crate) fn modified(head: &ResponseHead) -> Option<i64> {
    date::parse(std::str::from_utf8(head.get("last-modified")?).ok()?)
}

/// Copies the time condition in the options (`CURLOPT_TIMECONDITION`) to a request.
fn set_time_condition(options: &EasyOptions, request: &mut RequestOptions) {
    let Some(condition) = TimeCondition::from_options(options) else { return };
    let name = if condition.newer { "If-Modified-Since" } else { "If-Unmodified-Since" };
    let since = std::time::UNIX_EPOCH + Duration::from_secs(u64::try_from(condition.time).unwrap_or(0));
    let is_set = |(field, _): &(String, Vec<u8>)| field.eq_ignore_ascii_case(name);
    let is_removed = request.without.iter().any(|field| field.eq_ignore_ascii_case(name));
    if !is_removed && !request.fields.iter().any(is_set) {
        request.fields.push((name.to_owned(), httpdate::fmt_http_date(since).into_bytes()));
    }
    request.wants = Some(Arc::new(condition));
}
