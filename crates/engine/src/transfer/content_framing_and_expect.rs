//! The content of a transfer's requests: determines its framing, whether it waits for a 100
//! (Continue), and whether it can be sent again.

use haul_proto::h1::BodyLength;
use haul_proto::response_head::ResponseHead;

use super::Transfer;
use super::resettable_state::BodyDisposition;
use crate::body::upload::rate_limited::RateLimitedUpload;
use crate::body::upload::{AnnouncedLengthUpload, BodyUpload, ContentClaimed, RequestBody};
use crate::{Error, ErrorKind};

/// The size of content, in bytes, above which a request asks for a 100 (Continue) and waits for it,
/// as in curl (RFC 9110 section 10.1.1).
const MIN_EXPECT_SIZE: u64 = 1 << 20;

/// The maximum size of content, in bytes, that a server is assumed to read completely even if it
/// refuses the request.
const MAX_CONTENT_READ_DESPITE_REFUSAL: u64 = 64 << 10;

/// The use of `Expect: 100-continue` in a transfer's requests (RFC 9110 section 10.1.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ExpectContinueState {
    /// The current request has no `Expect` field.
    None,
    /// The current request has an `Expect` field, so its content waits for a 100 (Continue).
    Sent,
    /// The target has responded with 417 to a request with `Expect`. Further requests to that
    /// target have no `Expect` field.
    Rejected,
}

impl Transfer {
    /// Returns the content of the next request. Returns `None` if the request has no content.
    pub(super) fn content(&self) -> Option<&RequestBody> {
        self.particulars.content(&self.options).filter(|_| self.current.with_body)
    }

    /// Returns true if the next request has content.
    #[must_use]
    pub fn has_content(&self) -> bool {
        self.content().is_some()
    }

    /// Makes the source from which the connection reads the content. Returns `None` if the next
    /// request has no content.
    #[must_use]
    pub fn upload(&self) -> Option<Box<dyn BodyUpload>> {
        let upload = self.content().filter(|_| !self.auth.is_probe)?.upload();
        let upload: Box<dyn BodyUpload> = match self.announced_length() {
            Some(announced) if upload.length().is_none() => Box::new(AnnouncedLengthUpload::new(upload, announced)),
            _ => upload,
        };
        let upload = match (self.options.limit_rate, self.speed.total()) {
            (None, None) => upload,
            (rate, total) => Box::new(RateLimitedUpload::new(upload, rate, total.cloned())),
        };
        if let Some(trailers) = &self.particulars.trailers {
            return Some(trailers.after(upload));
        }
        // Even empty content, if chunked, has a last chunk to send.
        (upload.length() != Some(0) || self.has_caller_field("Transfer-Encoding")).then_some(upload)
    }

    /// Returns the length that the caller announces in a `Content-Length` field. Returns `None` if
    /// there is no such field, or if the content is sent in chunks.
    fn announced_length(&self) -> Option<u64> {
        if self.particulars.trailers.is_some() || self.has_caller_field("Transfer-Encoding") {
            return None;
        }
        let mut fields = self.options.fields.iter().chain(&self.particulars.fields);
        let (_, value) = fields.find(|(name, _)| name.eq_ignore_ascii_case("Content-Length"))?;
        std::str::from_utf8(value).ok()?.trim().parse().ok()
    }

    /// Returns true if the caller sets a header field with the name `field`.
    fn has_caller_field(&self, field: &str) -> bool {
        self.options.fields.iter().chain(&self.particulars.fields).any(|(name, _)| name.eq_ignore_ascii_case(field))
    }

    /// Returns true if the engine must send the content in chunks: its length is unknown or
    /// trailers follow, and the caller sets no Transfer-Encoding.
    fn needs_chunks(&self) -> bool {
        let has_no_length = |body: &RequestBody| body.length().is_none() && !self.has_caller_field("Content-Length");
        let needs = |body: &RequestBody| self.particulars.trailers.is_some() || has_no_length(body);
        self.content().is_some_and(needs) && !self.has_caller_field("Transfer-Encoding")
    }

    /// Returns how the length of the next request's content is transmitted: by Content-Length or by
    /// chunks. This depends on the caller's fields and on whether the length is known.
    pub(super) fn framing(&self, fields: &[(&str, &[u8])]) -> BodyLength {
        let Some(body) = self.content() else {
            let says_so = !self.options.curl_compat.omits_zero_content_length
                && matches!(&*self.current.method, "POST" | "PUT" | "PATCH");
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
        // A caller who provides a reader may announce its length.
        let announced = || std::str::from_utf8(field("content-length")?).ok()?.trim().parse().ok();
        body.length().or_else(announced).map_or(BodyLength::Chunked, BodyLength::Known)
    }

    /// Decides whether the next request has an `Expect` field:
    /// * If the target has rejected a request with `Expect`, the request has no such field.
    /// * If the caller sets the field, the request has it.
    /// * Otherwise, the request has it only if the content is large and `large_content_waits` is
    ///   true: large content should wait for the server's `100 Continue`.
    pub(super) fn expectation(
        &self,
        framing: BodyLength,
        fields: &[(&str, &[u8])],
        large_content_waits: bool,
    ) -> ExpectContinueState {
        match self.expectation {
            ExpectContinueState::Rejected => ExpectContinueState::Rejected,
            _ if self.waits_for_continue(framing, fields, large_content_waits) => ExpectContinueState::Sent,
            _ => ExpectContinueState::None,
        }
    }

    /// Returns true if the next request should wait for a 100 (Continue) before it sends the
    /// content with this `framing`. If the caller has set Expect, the value of that field decides.
    /// Otherwise, only large content waits, and only if `large_content_waits` is true.
    fn waits_for_continue(&self, framing: BodyLength, fields: &[(&str, &[u8])], large_content_waits: bool) -> bool {
        if self.options.expect_timeout.is_zero() {
            return false;
        }
        let mut own = fields.iter().filter(|(name, _)| name.eq_ignore_ascii_case("expect")).peekable();
        if own.peek().is_some() {
            return own.any(|(_, value)| value.eq_ignore_ascii_case(b"100-continue"));
        }
        let is_left_out = self.options.without.iter().any(|name| name.eq_ignore_ascii_case("expect"));
        large_content_waits
            && !is_left_out
            && match framing {
                // A request without content must have no `Expect` (RFC 9110 section 10.1.1).
                BodyLength::None | BodyLength::Known(0) => false,
                BodyLength::Known(length) => {
                    length > MIN_EXPECT_SIZE
                        || self.options.curl_compat.expect_for_one_shot_content && self.has_one_shot_content()
                }
                // Even if the caller wants chunks, the length may be known.
                BodyLength::Chunked => {
                    self.content().and_then(RequestBody::length).is_none_or(|length| length > MIN_EXPECT_SIZE)
                }
            }
    }

    /// Handles a response with status 417 (RFC 9110 section 15.5.18). If the request had an
    /// `Expect` field, decides to repeat the request without that field. Otherwise, returns `None`,
    /// and the response is handled by its status.
    pub(super) fn on_expectation_failed(&mut self, head: &ResponseHead) -> Option<BodyDisposition> {
        if head.status() != 417 || self.expectation != ExpectContinueState::Sent {
            return None;
        }
        self.expectation = ExpectContinueState::Rejected;
        Some(self.resend_error().map_or(BodyDisposition::Again, BodyDisposition::Fail))
    }

    /// Returns true if the server may not have read all of the content: it refused a request
    /// (status 300 or higher) with content above [`MAX_CONTENT_READ_DESPITE_REFUSAL`]. The
    /// connection must then not be reused: Squid, for example, reads no further bytes from it.
    /// Returns false if NTLM or Negotiate authenticates the connection itself, because the next
    /// request needs that connection.
    pub(crate) fn content_may_be_unread(&self) -> bool {
        let sent = self.content().filter(|_| !self.auth.is_probe);
        // If the length was unknown, the number of bytes passed to the connection is known now.
        let much =
            |body: &RequestBody| body.length().unwrap_or(self.facts.upload_bytes) > MAX_CONTENT_READ_DESPITE_REFUSAL;
        self.facts.status >= 300 && sent.is_some_and(much) && !self.authenticates_connection()
    }

    /// Returns true if the content can be sent only once.
    pub(crate) fn has_one_shot_content(&self) -> bool {
        self.content().is_some_and(|body| !body.is_repeatable())
    }

    /// Returns true if the content can be sent only once, and a part of it was read.
    pub(crate) fn has_spent_content(&self) -> bool {
        self.content().is_some_and(RequestBody::is_consumed)
    }

    /// Returns the error that prevents sending the content again in another request; `None` if it
    /// can be sent. There are two reasons for an error: the content can be read only once, or the
    /// server does not support chunks (RFC 9112 section 6.1).
    pub(crate) fn resend_error(&self) -> Option<Error> {
        if self.current.is_http10 && self.needs_chunks() {
            let message = "the content has no known length, and the server's HTTP/1.0 needs one";
            return Some(Error::new(ErrorKind::Upload, message));
        }
        self.has_spent_content().then(|| Error::new(ErrorKind::Rewind, ContentClaimed.to_string()))
    }
}
