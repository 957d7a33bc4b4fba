//! The fields of a request, in the order in which they are sent.
//!
//! | source | fields |
//! |---|---|
//! | the caller | the fields that may be sent to the request's target ([`CallerFields`]) |
//! | the proxy | fields for the proxy that forwards the request, and for nobody else ([`ForwardProxyTargetAndFields`]) |
//! | the engine | all other fields, except the fields that the caller sets or removes |

use std::borrow::Cow;

use haul_policy::auth::SigV4Fields;
use haul_policy::proxy::ProxyFields;
use haul_policy::redirect::SecretHandling;
use haul_policy::secret_fields::{may_send, may_send_as_curl};
use haul_policy::target::Target;
use haul_proto::h1::BodyLength;
use haul_proto::list_elements;
use smallvec::SmallVec;

use super::Transfer;
use super::content_framing_and_expect::ExpectContinueState;
use super::next_target_and_secrets::TargetState;
use crate::Result;
use crate::net::proxy::ProxyRoute;
use crate::request::RequestOptions;

/// A header field that the caller has set, as its name and value.
pub(super) type OwnedField = (String, Vec<u8>);

/// A field line as the protocol machines accept it: a name and a value.
pub(super) type FieldLine<'a> = (&'a str, &'a [u8]);

/// The field lines of a request. Up to 16 of them, as in most requests, need no allocation.
pub(super) type FieldLines<'a> = SmallVec<[FieldLine<'a>; 16]>;

/// The header fields that the caller has set and that may be sent to the request's target. They
/// also decide which fields haul adds.
#[derive(Clone, Copy)]
pub(super) struct CallerFields<'a> {
    shared: &'a [OwnedField],
    own: &'a [OwnedField],
    left_out: &'a [String],
    secrets: SecretHandling,
    same_origin: bool,
    keeps_secret_fields: bool,
    /// True if the caller has set no field that may be sent to the target. Most requests have no
    /// such field, and then need no search.
    is_empty: bool,
}

impl<'a> CallerFields<'a> {
    pub(super) fn from_options(options: &'a RequestOptions, own: &'a [OwnedField], aim: &TargetState) -> Self {
        let (shared, left_out) = (&*options.fields, &*options.without);
        let (secrets, same_origin) = (aim.secrets, aim.same_origin);
        let keeps_secret_fields = options.curl_compat.keeps_secret_fields_across_origins;
        let callers = Self { shared, own, left_out, secrets, same_origin, keeps_secret_fields, is_empty: false };
        let is_empty = callers.allowed().next().is_none();
        Self { is_empty, ..callers }
    }

    /// Returns the caller's fields that may be sent to the target: the fields of the shared options
    /// that this request does not replace, and then the request's own fields.
    pub(super) fn allowed(&self) -> impl Iterator<Item = &'a OwnedField> + use<'a> {
        let callers = *self;
        let own = callers.own;
        let is_replaced = move |name: &str| own.iter().any(|(other, _)| other.eq_ignore_ascii_case(name));
        let fields = callers.shared.iter().filter(move |(name, _)| !is_replaced(name)).chain(own);
        fields.filter(move |(name, _)| callers.may_send(name))
    }

    /// Returns true if a field with this name may be sent to the target.
    fn may_send(&self, name: &str) -> bool {
        let may_send = if self.keeps_secret_fields { may_send_as_curl } else { may_send };
        // A Host field of the caller is for the first origin only.
        may_send(name, self.secrets) && (self.same_origin || !is_host(name))
    }

    /// Returns true if the caller has set a field with this name that may be sent to the target.
    fn have(&self, name: &str) -> bool {
        let is_named = |(field, _): &OwnedField| field.eq_ignore_ascii_case(name);
        // A field of the same name replaces a shared field, so it does not matter which of them is
        // found.
        !self.is_empty && self.own.iter().chain(self.shared).any(is_named) && self.may_send(name)
    }

    /// Returns true if the engine sets the field with this name, because the caller has neither set
    /// nor removed it. Also returns true for a removed Host if a redirect has led to another
    /// origin: the caller cannot know that origin.
    pub(super) fn engine_sets(&self, name: &str) -> bool {
        let is_left_out = || self.left_out.iter().any(|field| field.eq_ignore_ascii_case(name));
        !self.have(name) && (!is_left_out() || is_host(name) && !self.same_origin)
    }
}

/// The request-target and the header fields for a proxy that forwards the request. Empty if no
/// proxy forwards it.
#[derive(Default)]
pub(super) struct ForwardProxyTargetAndFields {
    /// The URL that is sent as the request-target (absolute form, RFC 9112 section 3.2.2). `None`
    /// if no proxy forwards the request.
    pub(super) uri: Option<String>,
    fields: ProxyFields,
}

impl ForwardProxyTargetAndFields {
    /// Returns the value of the proxy's header field with the name `wanted`. Returns `None` if
    /// there is no such field.
    pub(super) fn get(&self, wanted: &str) -> Option<&[u8]> {
        let found = self.fields.iter().find(|(name, _)| name.eq_ignore_ascii_case(wanted));
        found.map(|(_, value)| value.as_slice())
    }

    /// Returns those header fields for the proxy that have no fixed position in the order of the
    /// request's fields.
    fn others(&self) -> impl Iterator<Item = FieldLine<'_>> {
        let is_placed =
            |name: &str| ["proxy-authorization", "proxy-connection"].iter().any(|one| name.eq_ignore_ascii_case(one));
        self.fields.iter().filter(move |(name, _)| !is_placed(name)).map(to_field_line)
    }
}

/// The values of the header fields that the engine adds to the caller's fields. They are made
/// before the request is written, because the request only borrows them.
pub(super) struct EngineFieldValues<'a> {
    authority: Cow<'a, str>,
    /// The value of the Authorization field; `None` if no credentials are sent, or if the caller
    /// sets the field.
    pub(super) authorization: Option<Vec<u8>>,
    /// The header fields that a request signature adds, such as the date; empty if the request is
    /// not signed.
    pub(super) signed: Vec<(String, String)>,
    range: Option<String>,
    content_range: Option<String>,
    alt_used: Option<String>,
    cookie: Option<Vec<u8>>,
    content_length: Option<String>,
    pub(super) is_chunked: bool,
    /// The value of Connection that names the field TE, if the engine adds TE: `close, TE` in place
    /// of the caller's first field `Connection: close`, or `TE` if the caller has no such field.
    /// `None` if the engine does not add TE.
    connection: Option<Vec<u8>>,
}

impl Transfer {
    /// Returns the request-target and the header fields for the proxy that forwards the request.
    /// Returns an empty result if no proxy forwards it. The request-target is the URL `spelled`,
    /// which a request signature may need in place of the current target; if `None`, the current
    /// target. The proxy is the one in the connection's pool key, so that data for the proxy cannot
    /// reach another server.
    pub(super) fn forward_proxy_target_and_fields(
        &mut self,
        options: &RequestOptions,
        spelled: Option<&Target>,
    ) -> Result<ForwardProxyTargetAndFields> {
        self.proxy_auth.is_answered = false;
        let via = ProxyRoute::for_request(&self.current.target, options);
        let Some(hop) = via.forwarding_hop() else { return Ok(ForwardProxyTargetAndFields::default()) };
        let negotiated = self.negotiated_with_proxy(hop)?;
        let (uri, fields) = hop.forwarded_target_and_fields(
            negotiated,
            &self.current.method,
            spelled.unwrap_or(&self.current.target),
            options.curl_compat.spells_as_curl,
        )?;
        let forwarded = ForwardProxyTargetAndFields { uri: Some(uri), fields };
        self.proxy_auth.is_answered = forwarded.get("Proxy-Authorization").is_some();
        if !self.proxy_auth.is_answered && hop.awaits_challenge() {
            self.withhold_content();
        }
        Ok(forwarded)
    }

    /// Returns the caller's header fields to send. If `chunked` is false, the content cannot be
    /// sent in chunks: Transfer-Encoding is then omitted, and the engine sends Content-Length.
    pub(super) fn caller_lines<'a>(&self, callers: &CallerFields<'a>, chunked: bool) -> Vec<FieldLine<'a>> {
        let is_said = |name: &str| chunked || !name.eq_ignore_ascii_case("transfer-encoding");
        callers
            .allowed()
            .filter(|(name, _)| !self.describes_unsent_content(name) && is_said(name))
            .map(to_field_line)
            .collect()
    }

    /// Returns true if the connection must not carry another request: the options say so
    /// ([`RequestOptions::closes_connection`]), or the caller has set the field `Connection:
    /// close`. HTTP/2 and HTTP/3 do not send this field (RFC 9113 section 8.2.2).
    pub(crate) fn asks_to_close(&self) -> bool {
        let callers = CallerFields::from_options(&self.options, &self.particulars.fields, &self.current);
        let has_close = |(name, value): &OwnedField| is_connection(name) && contains_close_option(value);
        self.options.closes_connection || !callers.is_empty && callers.allowed().any(has_close)
    }

    /// Returns true if a header field with this name describes content, but the request has no
    /// content. Such fields are omitted (RFC 9110 section 15.4).
    fn describes_unsent_content(&self, name: &str) -> bool {
        let describes = name.get(..8).is_some_and(|start| start.eq_ignore_ascii_case("content-"));
        let frames = is_framing_field(name) || name.eq_ignore_ascii_case("expect");
        let has_content = self.particulars.content(&self.options).is_some();
        has_content && (!self.current.with_body && (describes || frames) || self.auth.is_probe && frames)
    }

    /// Makes the values of the header fields that the engine adds. The order of the fields is
    /// decided later.
    pub(super) fn field_values(
        &self,
        callers: &CallerFields<'_>,
        given: &[FieldLine<'_>],
        framing: BodyLength,
        authorization: Option<Vec<u8>>,
        signature: Option<SigV4Fields>,
    ) -> EngineFieldValues<'_> {
        let options = &self.options;
        let (signature, signed) = signature.map(|made| (made.authorization.into_bytes(), made.fields)).unzip();
        let is_framed = given.iter().any(|(name, _)| is_framing_field(name));
        // TE must be named in Connection (RFC 9110 section 10.1.4).
        let named = self.asks_transfer_coding(callers).then(|| match connection_fields(given).next() {
            Some((_, first)) => [first, b", TE"].concat(),
            None => b"TE".to_vec(),
        });
        EngineFieldValues {
            authority: match options.curl_compat.spells_as_curl {
                true => self.current.target.written_authority(),
                false => self.current.target.authority(),
            },
            authorization: authorization.or(signature),
            signed: signed.unwrap_or_default(),
            range: match &options.range {
                Some(range) => Some(format!("bytes={range}")),
                None => self.progress.range.range_field(),
            },
            content_range: options
                .content_range
                .as_deref()
                .filter(|_| self.current.with_body)
                .map(|part| format!("bytes {part}")),
            alt_used: self.alt_used(),
            cookie: self.cookie(callers.engine_sets("Cookie")),
            content_length: match framing {
                BodyLength::Known(length) if !is_framed => Some(length.to_string()),
                _ => None,
            },
            is_chunked: framing == BodyLength::Chunked && !is_framed,
            connection: named,
        }
    }

    /// Appends all header fields of the request to the empty list `fields`. The order is curl's,
    /// because some servers and tests depend on it.
    pub(super) fn ordered_fields<'a>(
        &'a self,
        callers: &CallerFields<'a>,
        given: &[FieldLine<'a>],
        forwarded: &'a ForwardProxyTargetAndFields,
        values: &'a EngineFieldValues<'_>,
        fields: &mut FieldLines<'a>,
    ) {
        // A Host field of the caller has the position of the engine's.
        let host = given.iter().find(|(name, _)| is_host(name)).map(|&(_, value)| value);
        let host = host.or_else(|| callers.engine_sets("Host").then_some(values.authority.as_bytes()));
        push_value(fields, "Host", host);
        push_value(fields, "Proxy-Authorization", forwarded.get("Proxy-Authorization"));
        push_value(fields, "Authorization", values.authorization.as_deref());
        for (name, value) in &values.signed {
            fields.push((name.as_str(), value.as_bytes()));
        }
        self.push_request_values(fields, callers, forwarded, values);
        push_value(fields, "Cookie", values.cookie.as_deref());
        for &(name, value) in given.iter().filter(|(name, _)| !is_host(name) && !is_connection(name)) {
            fields.push((name, value));
        }
        for field in forwarded.others() {
            fields.push(field);
        }
        self.push_content_values(fields, callers, values);
        // An empty Connection field is omitted; any other is the last field.
        push_value(fields, "Connection", values.connection.as_deref());
        for field in connection_fields(given).skip(usize::from(values.connection.is_some())) {
            fields.push(field);
        }
    }

    /// Appends the engine's header fields about the request, such as Host and Cookie, in the order
    /// of sending. Omits fields without a value, and fields that the caller has set or removed.
    fn push_request_values<'a>(
        &'a self,
        fields: &mut FieldLines<'a>,
        callers: &CallerFields<'_>,
        forwarded: &'a ForwardProxyTargetAndFields,
        values: &'a EngineFieldValues<'_>,
    ) {
        let mut push = |name: &'static str, value: &'a [u8]| {
            if callers.engine_sets(name) {
                fields.push((name, value));
            }
        };
        if let Some(range) = &values.range {
            push("Range", range.as_bytes());
        }
        if let Some(range) = &values.content_range {
            push("Content-Range", range.as_bytes());
        }
        if let Some(validator) = &self.progress.range.validator
            && self.ranges.may_request_ranges()
            && self.progress.range.is_ranged()
        {
            push("If-Range", validator.if_range());
        }
        if let Some(agent) = &self.options.user_agent {
            push("User-Agent", agent);
        }
        push("Accept", b"*/*");
        if self.asks_transfer_coding(callers) {
            push("TE", b"gzip");
        }
        if self.requests_content_coding() {
            push("Accept-Encoding", crate::body::accept_encoding().as_bytes());
        }
        if let Some(referer) = &self.current.referer {
            push("Referer", referer);
        }
        if let Some(value) = forwarded.get("Proxy-Connection") {
            push("Proxy-Connection", value);
        }
        if let Some(service) = &values.alt_used {
            push("Alt-Used", service.as_bytes());
        }
        if values.is_chunked {
            push("Transfer-Encoding", b"chunked");
        }
    }

    /// Appends the engine's header fields about the content, such as Content-Length, in the order
    /// of sending. Only the Connection field is sent after them.
    fn push_content_values<'a>(
        &'a self,
        fields: &mut FieldLines<'a>,
        callers: &CallerFields<'_>,
        values: &'a EngineFieldValues<'_>,
    ) {
        if let Some(length) = &values.content_length {
            fields.push(("Content-Length", length.as_bytes()));
        }
        // As in curl: a request that omits its content to get a challenge has the Content-Type of a
        // urlencoded form, but not that of a multipart form.
        if let Some(kind) = &self.options.content_type
            && self.current.with_body
            && !(self.auth.is_probe && kind.starts_with("multipart/"))
            && callers.engine_sets("Content-Type")
        {
            fields.push(("Content-Type", kind.as_bytes()));
        }
        if self.expectation == ExpectContinueState::Sent && !callers.have("Expect") {
            fields.push(("Expect", b"100-continue"));
        }
    }

    /// Returns true if the request asks for compressed transfer codings (the TE field).
    fn asks_transfer_coding(&self, callers: &CallerFields<'_>) -> bool {
        self.options.deviations.codings && callers.engine_sets("TE")
    }

    /// Returns the value of the engine's Cookie field: the cookies of the jar, followed by the
    /// cookies of the options, as in curl. The cookies of the options are left out if the current
    /// target must not receive secrets.
    ///
    /// `engine_sets_field` is false if the caller has set or removed the Cookie field. The value
    /// then contains no cookies of the options, and cookies of the jar only with
    /// `curl_compat.cookies_by_host`. A Cookie field of the caller is separate from this one.
    fn cookie(&self, engine_sets_field: bool) -> Option<Vec<u8>> {
        let jar = self.options.jar.as_ref().filter(|_| engine_sets_field || self.options.curl_compat.cookies_by_host);
        let kept = jar.and_then(|jar| jar.cookie_for(&self.cookie_target()));
        let given = self
            .options
            .cookie
            .as_deref()
            .filter(|_| engine_sets_field && self.current.secrets == SecretHandling::Keep);
        match (kept, given) {
            (Some(kept), Some(given)) => Some([&kept, &b"; "[..], given].concat()),
            (Some(kept), None) => Some(kept),
            (None, given) => given.map(<[u8]>::to_vec),
        }
    }
}

/// Appends a header field, if it has a value. This is faster than `extend` with an `Option`, which
/// would take 40 instructions for each field, even for the many fields without a value.
fn push_value<'a>(fields: &mut FieldLines<'a>, name: &'static str, value: Option<&'a [u8]>) {
    if let Some(value) = value {
        fields.push((name, value));
    }
}

/// Returns the name and the value of a header field as a field line, which borrows both.
fn to_field_line((name, value): &OwnedField) -> FieldLine<'_> {
    (name, value)
}

/// Returns true if this is the name of the Host field.
pub(super) fn is_host(name: &str) -> bool {
    name.eq_ignore_ascii_case("host")
}

/// Returns true if this is the name of the Connection field.
fn is_connection(name: &str) -> bool {
    name.eq_ignore_ascii_case("connection")
}

/// Returns true if a field with this name applies to the connection only (RFC 9110 section 7.6.1).
/// A proxy may remove or replace such a field.
pub(super) fn is_hop_by_hop(name: &str) -> bool {
    const HOP_BY_HOP_FIELDS: [&str; 7] =
        ["connection", "expect", "keep-alive", "proxy-connection", "te", "trailer", "upgrade"];
    is_framing_field(name) || HOP_BY_HOP_FIELDS.iter().any(|one| name.eq_ignore_ascii_case(one))
}

/// Returns true if the value of a Connection field contains the option `close` (RFC 9110 section
/// 7.6.1).
fn contains_close_option(value: &[u8]) -> bool {
    list_elements(value).any(|option| option.eq_ignore_ascii_case(b"close"))
}

/// Returns the caller's Connection fields that are not empty.
fn connection_fields<'a>(given: &[FieldLine<'a>]) -> impl Iterator<Item = FieldLine<'a>> {
    given.iter().filter(|(name, value)| is_connection(name) && !value.is_empty()).copied()
}

/// Returns true if a header field with this name describes the framing of content (Content-Length
/// or Transfer-Encoding).
fn is_framing_field(name: &str) -> bool {
    ["content-length", "transfer-encoding"].iter().any(|own| name.eq_ignore_ascii_case(own))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn close_option_is_found_among_connection_options() {
        for value in ["close", "Keep-Alive, CLOSE", ",,close ,", "\tclose\t"] {
            assert!(contains_close_option(value.as_bytes()), "{value}");
        }
        for value in ["", "closed", "x=\"a, close\"", "close;q", "TE"] {
            assert!(!contains_close_option(value.as_bytes()), "{value}");
        }
    }

    fn fields(all: &[(&str, &str)]) -> Vec<OwnedField> {
        all.iter().map(|(name, value)| ((*name).to_owned(), value.as_bytes().to_vec())).collect()
    }

    fn target_state() -> TargetState {
        TargetState::new(Target::parse("http://a.example/").unwrap(), "GET".into(), false, None)
    }

    fn names(callers: &CallerFields<'_>) -> Vec<String> {
        callers.allowed().map(|(name, value)| format!("{name}={}", String::from_utf8_lossy(value))).collect()
    }

    #[test]
    fn own_fields_replace_the_shared_ones() {
        let options = RequestOptions {
            fields: fields(&[("Accept", "shared"), ("X-A", "1"), ("Host", "b")]),
            without: vec!["User-Agent".to_owned()],
            ..RequestOptions::default()
        };
        let own = fields(&[("accept", "own")]);
        let callers = CallerFields::from_options(&options, &own, &target_state());
        assert_eq!(names(&callers), ["X-A=1", "Host=b", "accept=own"]);
        for (name, engine_sets) in
            [("ACCEPT", false), ("x-a", false), ("host", false), ("user-agent", false), ("x-b", true)]
        {
            assert_eq!(callers.engine_sets(name), engine_sets, "{name}");
        }
    }

    #[test]
    fn host_and_secrets_stay_with_their_origin() {
        let options = RequestOptions {
            fields: fields(&[("Host", "b"), ("Authorization", "secret"), ("X-A", "1")]),
            without: vec!["host".to_owned()],
            ..RequestOptions::default()
        };
        let mut state = target_state();
        let callers = CallerFields::from_options(&options, &[], &state);
        assert_eq!(names(&callers), ["Host=b", "Authorization=secret", "X-A=1"]);
        (state.secrets, state.same_origin) = (SecretHandling::Drop, false);
        let callers = CallerFields::from_options(&options, &[], &state);
        assert_eq!(names(&callers), ["X-A=1"]);
        assert!(callers.engine_sets("Host") && callers.engine_sets("Authorization") && !callers.engine_sets("x-a"));
        let left_out = RequestOptions { without: vec!["host".to_owned()], ..RequestOptions::default() };
        for (same_origin, engine_sets) in [(true, false), (false, true)] {
            state.same_origin = same_origin;
            let callers = CallerFields::from_options(&left_out, &[], &state);
            assert_eq!((callers.engine_sets("Host"), names(&callers).len()), (engine_sets, 0));
        }
    }

    #[test]
    fn fields_of_the_connection_are_told_from_others() {
        for name in ["Connection", "TE", "Upgrade", "Trailer", "Content-Length", "transfer-encoding", "Keep-Alive"] {
            assert!(is_hop_by_hop(name), "{name}");
        }
        assert!(!is_hop_by_hop("Accept") && !is_hop_by_hop(""));
        let given: [FieldLine<'_>; 3] = [("connection", b"close"), ("Connection", b""), ("accept", b"x")];
        assert_eq!(connection_fields(&given).collect::<Vec<_>>(), [("connection", &b"close"[..])]);
        let mut lines = FieldLines::new();
        push_value(&mut lines, "a", None);
        push_value(&mut lines, "b", Some(b"1"));
        assert_eq!(lines[..], [("b", &b"1"[..])]);
    }
}
