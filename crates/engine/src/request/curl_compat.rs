//! Behaviour copied from curl where a program would expect something else.

/// Behaviour copied from curl where a program would expect something else. Default: none.
///
/// ```
/// use haul::RequestOptions;
/// let mut options = RequestOptions::default();
/// options.curl_compat.retries_whole = true;
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CurlCompat {
    /// Send the cookies of the host named by the caller's `Host` field, where that field may be
    /// sent. The caller's `Cookie` field is sent beside the jar's, not in its place. If not set,
    /// the target's cookies are sent.
    pub cookies_by_host: bool,
    /// Send no `Content-Length` in a request without content, even if its method gives content a
    /// meaning. If not set, POST, PUT and PATCH send `Content-Length: 0` (RFC 9110 section 8.6).
    pub omits_empty: bool,
    /// With [`decode`](super::RequestOptions::decode): ask for compressed content even in requests
    /// for a part, and fail on content that cannot be decoded
    /// ([`ErrorKind::ContentCoding`](crate::ErrorKind::ContentCoding)).
    pub decodes_all: bool,
    /// With [`include_head`](super::RequestOptions::include_head): include the proxies' answers to
    /// CONNECT.
    pub connect_heads: bool,
    /// A retry starts over, from the first URL and method, and a response whose status asks for a
    /// retry is still delivered: in a file the next one replaces it, elsewhere it follows it. If
    /// not set, only the failed request is sent again, and only the last response is delivered.
    pub retries_whole: bool,
    /// Send content only after the server's challenge, if the credentials depend on a challenge:
    /// the first request has no content. If not set, only content that can be read once waits for
    /// the challenge.
    pub probes: bool,
    /// Send `Expect` (RFC 9110 section 10.1.1) before content that can be read once, however short,
    /// so that a redirect or a challenge does not use it up. If not set, only content above 1 MiB
    /// or of unknown length waits.
    pub spares_once: bool,
    /// Trust the server where no harm can come of it. With
    /// [`resume_from`](super::RequestOptions::resume_from), an offset behind the end means that the
    /// file is complete, even if no Content-Range gives the length. An unrequested 206 is delivered
    /// as it is, and so is a 401 whose challenge cannot be answered.
    pub trusts_end: bool,
    /// With [`fail`](super::RequestOptions::fail): report a proxy that refuses a tunnel with a
    /// status of 400 or above as [`ErrorKind::Status`](crate::ErrorKind::Status), not as
    /// [`ErrorKind::Connect`](crate::ErrorKind::Connect).
    pub fails_tunnels: bool,
    /// Send fields such as X-Api-Key also after a redirect to another origin, but not
    /// `Authorization`, `Cookie` and `Proxy-Authorization`. If not set, no field that [holds
    /// credentials](haul_policy::secrets::is_secret_field) is sent there.
    pub hands_on_fields: bool,
}
