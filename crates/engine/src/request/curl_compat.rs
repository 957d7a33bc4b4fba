//! Behaviours of curl that may surprise a program. Each of them is off by default, and can be
//! turned on separately.

/// Behaviours of curl that may surprise a program. Each field turns on one of them. By default, all
/// are off.
///
/// ```
/// use haul::RequestOptions;
/// let mut options = RequestOptions::default();
/// options.curl_compat.retries_whole = true;
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CurlCompat {
    /// True to treat the caller's `Host` and `Cookie` fields as curl does. The cookies are then
    /// chosen by the host in the `Host` field, if that field may be sent to the target. The
    /// caller's `Cookie` field is sent in addition to the jar's cookies.
    ///
    /// If false, the target's cookies are sent, and the caller's `Cookie` field replaces the jar's
    /// cookies.
    pub cookies_by_host: bool,
    /// True to send no `Content-Length` in a request without content. If false, POST, PUT and PATCH
    /// requests without content have `Content-Length: 0` (RFC 9110 section 8.6).
    pub omits_zero_content_length: bool,
    /// True to request compressed content even for a range, and to fail on content that cannot be
    /// decoded ([`ErrorKind::ContentCoding`](crate::ErrorKind::ContentCoding)). If false, content
    /// with an unknown coding is delivered as received. This field has an effect only with
    /// [`decode`](super::RequestOptions::decode).
    pub strict_content_coding: bool,
    /// True to deliver the heads of proxies' responses to CONNECT, too. It has an effect only with
    /// [`include_head`](super::RequestOptions::include_head).
    pub connect_heads: bool,
    /// True to make each retry start again from the first URL and method, and to deliver the
    /// responses of all attempts. A file then contains the last response; any other output contains
    /// all of them.
    ///
    /// If false, only the failed request is sent again, and only the last response is delivered.
    pub retries_whole: bool,
    /// True to send the first request without its content if credentials can be sent only after the
    /// server's challenge. If false, the first request has the content, unless the content can be
    /// read only once.
    pub withholds_content_before_challenge: bool,
    /// True to send `Expect` (RFC 9110 section 10.1.1) before all content that can be read only
    /// once, even if it is short. A redirect or a challenge then does not consume the content. If
    /// false, only requests with content above 1 MiB or of unknown length have `Expect`.
    pub expect_for_one_shot_content: bool,
    /// True to accept some responses that are not reliable:
    /// - With [`resume_from`](super::RequestOptions::resume_from), an offset after the end means
    ///   that the file is complete, even if no Content-Range contains the length.
    /// - A response whose Content-Range begins at the requested offset continues the file, even if
    ///   the Content-Range names no end, or if the status is 200.
    /// - A 206 that was not requested is delivered as it is.
    /// - A 401 whose challenge cannot be answered is delivered as it is.
    pub accepts_unreliable_responses: bool,
    /// True to report [`ErrorKind::Status`](crate::ErrorKind::Status) if a proxy refuses a tunnel
    /// with a status of 400 or above. If false, the error is
    /// [`ErrorKind::Connect`](crate::ErrorKind::Connect). It has an effect only with
    /// [`fail`](super::RequestOptions::fail).
    pub refused_tunnel_is_status_error: bool,
    /// True to send the caller's fields that may contain credentials, such as X-Api-Key, even after
    /// a redirect to another origin. `Authorization`, `Cookie` and `Proxy-Authorization` are never
    /// sent to another origin. If false, no field that [may contain
    /// credentials](haul_policy::secret_fields::is_secret_field) is sent to another origin.
    pub keeps_secret_fields_across_origins: bool,
    /// True to deliver the beginning of a malformed or incomplete response head, up to the error,
    /// before the transfer fails. It has an effect only with
    /// [`include_head`](super::RequestOptions::include_head) or a trace.
    pub partial_heads: bool,
    /// True to fail if a line of a head is longer than curl accepts (100 KiB), or if the head of a
    /// request is longer than 1 MiB.
    pub head_limits: bool,
    /// True to spell two values as curl does. The host is sent with the upper-case and lower-case
    /// letters of the URL. The Digest credentials for a proxy that forwards requests name only the
    /// path and query.
    ///
    /// If false, the host is sent in lower case, and the credentials name the request-target that
    /// the proxy receives (RFC 7616 section 3.4).
    pub spells_as_curl: bool,
    /// True to treat credentials as curl does. A user and password in the URL of a redirect to the
    /// caller's own origin are used. Once a server has asked for Basic, Basic credentials are sent
    /// without a challenge to all origins that may receive them.
    ///
    /// If false, a user and password in the URL of a redirect are ignored, and each origin must
    /// send a challenge first.
    pub redirect_logins: bool,
}
