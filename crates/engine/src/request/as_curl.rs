//! Behaviour copied from curl where a program would expect something else.

/// Behaviour copied from curl where a program would expect something else. Default: none.
///
/// ```
/// use haul::RequestOptions;
/// let mut options = RequestOptions::default();
/// options.as_curl.retries_whole = true;
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AsCurl {
    /// Cookies are those of the host that a `Host` field of the caller's names, where that field may go along. A `Cookie` field of
    /// the caller's stands beside the jar's, and not in its place. Else they are the target's.
    pub cookies_by_host: bool,
    /// A request without content does not say so, be it one whose method gives content a meaning. Else it does
    /// (`Content-Length: 0`) with POST, PUT and PATCH (RFC 9110 section 8.6).
    pub omits_empty: bool,
    /// With [`decode`](super::RequestOptions::decode): compressed content is asked for even where a part is, and what cannot be
    /// decoded fails ([`ErrorKind::ContentCoding`](crate::ErrorKind::ContentCoding)).
    pub decodes_all: bool,
    /// With [`include_head`](super::RequestOptions::include_head): what proxies answer to CONNECT belongs to it.
    pub connect_heads: bool,
    /// A retry starts over, from the first URL and method, and a response whose status asks for a retry is still delivered: in a file the next one
    /// replaces it, elsewhere it follows it. If not set, only the failed request is sent again, and only the last response is delivered.
    pub retries_whole: bool,
    /// Content waits until the server has asked who sends it, where that has to be known from a challenge: the first request
    /// then has none. Else only content that can be read once waits so.
    pub probes: bool,
    /// Content that can be read once is asked for first (`Expect`, RFC 9110 section 10.1.1) however short it is, so that a
    /// redirect or a challenge does not cost it. Else only above 1 MiB, or if its length is not known.
    pub spares_once: bool,
    /// The server's word counts where it can do no harm. With [`resume_from`](super::RequestOptions::resume_from), what begins
    /// behind the end is complete though no Content-Range says where the end is; an unrequested 206 is delivered as it is, and
    /// so is a 401 whose challenge cannot be answered.
    pub trusts_end: bool,
    /// With [`fail`](super::RequestOptions::fail): a proxy that refuses a tunnel by a status of 400 or above is an
    /// [`ErrorKind::Status`](crate::ErrorKind::Status), and not an [`ErrorKind::Connect`](crate::ErrorKind::Connect).
    pub fails_tunnels: bool,
    /// Fields such as X-Api-Key follow a redirect to another origin; `Authorization`, `Cookie` and `Proxy-Authorization` do not. Else none
    /// that [holds credentials](haul_policy::secrets::is_secret_field) does.
    pub hands_on_fields: bool,
}
