//! The content of a transfer's requests: its framing, the expectation of a 100 (Continue), and its
//! repetition.

use haul_policy::auth::AuthScheme;
use haul_proto::h1::BodyLength;
use haul_proto::head::ResponseHead;

use super::Transfer;
use super::state::Disposition;
use crate::body::rate_limited::RateLimitedUpload;
use crate::body::upload::{BodyUpload, RequestBody};
use crate::{Error, ErrorKind};

/// The size of content above which a request waits for the server's consent (RFC 9110 section
/// 10.1.1), as in curl.
const MIN_EXPECT_SIZE: u64 = 1 << 20;

/// The size of content up to which a server is assumed to read content that it refuses.
const READ_DESPITE_REFUSAL: u64 = 64 << 10;

/// The `Expect: 100-continue` of a transfer's requests (RFC 9110 section 10.1.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Expectation {
    /// The current request has none.
    None,
    /// The current request waits for the server's consent before it sends the content.
    Sent,
    /// The target has rejected one (417): requests to it have none.
    Rejected,
}

impl Transfer {
    /// Returns the content of the next request.
    pub(super) fn content(&self) -> Option<&RequestBody> {
        self.particulars.content(&self.options).filter(|_| self.current.with_body)
    }

    /// Returns true if the next request has content.
    #[must_use]
    pub fn has_content(&self) -> bool {
        self.content().is_some()
    }

    /// Returns the content as an upload for the connection; `None` if there is nothing to send.
    #[must_use]
    pub fn upload(&self) -> Option<Box<dyn BodyUpload>> {
        let upload = self.content().filter(|_| !self.auth.is_probe)?.upload();
        let upload = match self.options.limit_rate {
            Some(rate) => Box::new(RateLimitedUpload::new(upload, rate, self.deadline())),
            None => upload,
        };
        if let Some(trailers) = &self.particulars.trailers {
            return Some(trailers.after(upload));
        }
        // Empty chunked content has a last chunk.
        (upload.length() != Some(0) || self.has_caller_field("Transfer-Encoding")).then_some(upload)
    }

    /// Returns true if the caller has set the field.
    fn has_caller_field(&self, field: &str) -> bool {
        self.options.fields.iter().chain(&self.particulars.fields).any(|(name, _)| name.eq_ignore_ascii_case(field))
    }

    /// Returns true if the content is sent in chunks without a Transfer-Encoding field of the
    /// caller.
    fn needs_chunks(&self) -> bool {
        let has_no_length = |body: &RequestBody| body.length().is_none() && !self.has_caller_field("Content-Length");
        let needs = |body: &RequestBody| self.particulars.trailers.is_some() || has_no_length(body);
        self.content().is_some_and(needs) && !self.has_caller_field("Transfer-Encoding")
    }

    /// Returns the framing of the next request's content, as its fields describe it.
    pub(super) fn framing(&self, fields: &[(&str, &[u8])]) -> BodyLength {
        let Some(body) = self.content() else {
            let says_so =
                !self.options.curl_compat.omits_empty && matches!(&*self.current.method, "POST" | "PUT" | "PATCH");
            return if says_so { BodyLength::Known(0) } else { BodyLength::None };
        };
        if self.auth.is_probe {
            return BodyLength::Known(0);
        }
        let field =
            |wanted: &str| fields.iter().find(|(name, _)| name.eq_ignore_ascii_case(wanted)).map(|field| field.1);
        if field("transfer-encoding").is_some() || self.particulars.trailers.is_some() {
            return BodyLength::Chunked;
        }
        // A caller who passes a reader may know its length.
        let announced = || std::str::from_utf8(field("content-length")?).ok()?.trim().parse().ok();
        body.length().or_else(announced).map_or(BodyLength::Chunked, BodyLength::Known)
    }

    /// Returns the next request's expectation. The request waits for the server's consent if a
    /// field says so, or if the content is large and `worth` is true, unless the target has
    /// rejected an expectation.
    pub(super) fn expectation(&self, framing: BodyLength, fields: &[(&str, &[u8])], worth: bool) -> Expectation {
        match self.expectation {
            Expectation::Rejected => Expectation::Rejected,
            _ if self.waits_for_consent(framing, fields, worth) => Expectation::Sent,
            _ => Expectation::None,
        }
    }

    /// Returns true if the next request waits for the server's consent to its content.
    fn waits_for_consent(&self, framing: BodyLength, fields: &[(&str, &[u8])], worth: bool) -> bool {
        if self.options.expect_timeout.is_zero() {
            return false;
        }
        let mut own = fields.iter().filter(|(name, _)| name.eq_ignore_ascii_case("expect")).peekable();
        if own.peek().is_some() {
            return own.any(|(_, value)| value.eq_ignore_ascii_case(b"100-continue"));
        }
        let is_left_out = self.options.without.iter().any(|name| name.eq_ignore_ascii_case("expect"));
        worth
            && !is_left_out
            && match framing {
                // Without content there is nothing to expect (RFC 9110 section 10.1.1).
                BodyLength::None | BodyLength::Known(0) => false,
                BodyLength::Known(length) => {
                    length > MIN_EXPECT_SIZE || self.options.curl_compat.spares_once && self.has_single_use_content()
                }
                // Even if the user asks for chunks, the length may be known.
                BodyLength::Chunked => {
                    self.content().and_then(RequestBody::length).is_none_or(|length| length > MIN_EXPECT_SIZE)
                }
            }
    }

    /// Repeats a request without Expect if the server rejects the expectation (RFC 9110 section
    /// 15.5.18).
    pub(super) fn on_expectation_failed(&mut self, head: &ResponseHead) -> Option<Disposition> {
        if head.status() != 417 || self.expectation != Expectation::Sent {
            return None;
        }
        self.expectation = Expectation::Rejected;
        Some(self.resend_error().map_or(Disposition::Again, Disposition::Fail))
    }

    /// Returns true if the server may have left the content unread: it responded to large content
    /// without a success status. Squid then stops reading, and would not see another request on
    /// that connection, even if all bytes were written to the socket. Authentication that is bound
    /// to the connection is excepted, since its next leg needs the same connection.
    pub(crate) fn content_may_be_unread(&self) -> bool {
        let sent = self.content().filter(|_| !self.auth.is_probe);
        // If the length was unknown, the number of bytes passed to the connection is known by now.
        let much = |body: &RequestBody| body.length().unwrap_or(self.facts.upload_bytes) > READ_DESPITE_REFUSAL;
        self.facts.status >= 300 && sent.is_some_and(much) && !self.authenticates_connection()
    }

    /// Returns true if the caller itself performs NTLM or Negotiate (RFC 4559), whose legs must use
    /// the same connection.
    fn authenticates_connection(&self) -> bool {
        let is_login =
            |name: &str| ["authorization", "proxy-authorization"].iter().any(|of| name.eq_ignore_ascii_case(of));
        let mut fields = self.options.fields.iter().chain(&self.particulars.fields);
        fields.any(|(name, value)| is_login(name) && AuthScheme::of(value).is_of_connection())
    }

    /// Returns true if the content can be sent only once.
    pub(crate) fn has_single_use_content(&self) -> bool {
        self.content().is_some_and(|body| !body.is_repeatable())
    }

    /// Returns an error if the content cannot be sent with another request: it was already read, or
    /// the server does not support chunks (RFC 9112 section 6.1).
    pub(super) fn resend_error(&self) -> Option<Error> {
        if self.current.is_http10 && self.needs_chunks() {
            let message = "the content has no known length, and the server's HTTP/1.0 needs one";
            return Some(Error::new(ErrorKind::Upload, message));
        }
        let is_spent = self.content().is_some_and(RequestBody::is_spent);
        is_spent.then(|| Error::new(ErrorKind::Rewind, "the content was read once already and cannot be sent again"))
    }
}
