//! Builds the request of the next exchange, and passes it to the connection.

use std::sync::Arc;
use std::time::{Duration, Instant};

use haul_proto::RequestId;
use haul_proto::request::{RequestHead, SendRequestError};

use super::Transfer;
use super::content_framing_and_expect::ExpectContinueState;
use super::request_fields::{CallerFields, FieldLine, FieldLines, OwnedField};
use super::resettable_state::{RangeFieldOwner, ResponseDecisions};
use crate::drive::connection::ProtocolMachine;
use crate::trace::{self, Milestone};
use crate::transfer_facts::auth_scheme_of;
use crate::{Error, ErrorKind, Result};

/// Returns the error to report if a protocol machine rejects a request. The machine identifies a
/// bad field by its index in `fields`; the error message contains the field's name.
fn rejected_request(error: SendRequestError, fields: &[FieldLine<'_>]) -> Error {
    if error == SendRequestError::ChunksInHttp10 {
        return Error::with_source(ErrorKind::Upload, "the content cannot be sent", error);
    }
    let message = match error.field_index().and_then(|index| fields.get(index)) {
        Some((name, _)) => format!("the request cannot be sent for its header {name:?}"),
        None => "the request cannot be sent".to_owned(),
    };
    Error::with_source(ErrorKind::Setup, message, error)
}

/// The maximum size in bytes of a request head that curl sends. It applies only if
/// `curl_compat.head_limits` is set.
const MAX_CURL_HEAD: u64 = 1 << 20;

/// Returns the size in bytes of the head of this request in HTTP/1.1 syntax.
fn head_size(request: &RequestHead<'_>) -> u64 {
    let lines: usize = request.fields.iter().map(|(name, value)| name.len() + value.len() + ": \r\n".len()).sum();
    (request.method.len() + request.target.len() + lines + "  HTTP/1.1\r\n\r\n".len()) as u64
}

impl Transfer {
    /// Passes the next request to the protocol machine of the connection, which encodes it. Returns
    /// the machine's ID of the request.
    ///
    /// # Errors
    /// [`ErrorKind::Setup`] if a field or the method cannot be sent; [`ErrorKind::Upload`] if the
    /// content needs a length; [`ErrorKind::Read`] if the netrc file is malformed;
    /// [`ErrorKind::Rewind`] if the content cannot be read again.
    pub fn enqueue(&mut self, conn: &mut impl ProtocolMachine, now: Instant) -> Result<RequestId> {
        let own = std::mem::take(&mut self.particulars.fields);
        let outcome = self.enqueue_with(&own, conn, now);
        self.particulars.fields = own;
        outcome
    }

    fn enqueue_with(&mut self, own: &[OwnedField], conn: &mut impl ProtocolMachine, now: Instant) -> Result<RequestId> {
        self.response = ResponseDecisions::default();
        self.attempt.refusal = None;
        self.reuse.needs_new_connection = false;
        self.check_recorder()?;
        self.find_existing_part();
        if let Some(error) = self.resend_error() {
            return Err(error);
        }
        let options = Arc::clone(&self.options);
        let callers = CallerFields::from_options(&options, own, &self.current);
        // The credentials come first, since they decide whether the content must wait for a
        // challenge.
        let authorization = self.authorize(!callers.engine_sets("Authorization"))?;
        let spelled = self.signed_target(&callers);
        let forwarded = self.forward_proxy_target_and_fields(&options, spelled.as_ref())?;
        let given = self.caller_lines(&callers, conn.supports_chunked_coding());
        let framing = self.framing(&given);
        self.expectation = self.expectation(framing, &given, conn.may_expect_continue());
        let target = spelled.as_ref().unwrap_or(&self.current.target);
        let signature = self.signature(&callers, &given, target)?;
        let mut values = self.field_values(&callers, &given, framing, authorization, signature);
        values.signed.extend(self.message_signature(&callers, &given, target)?);
        values.is_chunked &= conn.supports_chunked_coding();
        let auth_scheme = values.authorization.as_deref().and_then(auth_scheme_of);
        let proxy_auth_scheme = forwarded.get("Proxy-Authorization").and_then(auth_scheme_of);
        let mut fields = FieldLines::new();
        self.ordered_fields(&callers, &given, &forwarded, &values, &mut fields);
        let own_target = options.request_target.as_deref();
        let request = RequestHead {
            method: &self.current.method,
            scheme: self.current.target.scheme().as_str(),
            target: own_target.or(forwarded.uri.as_deref()).unwrap_or_else(|| target.path_and_query()),
            fields: &fields,
            body: framing,
            expect_continue: self.expectation == ExpectContinueState::Sent,
            http10: options.deviations.follows_http10 && self.current.is_http10,
            ..RequestHead::default()
        };
        let version = conn.version(options.deviations.http10 || request.http10);
        if let Some(trace) = &options.trace {
            trace.event(&trace::request_event(&request, version));
        }
        let bytes = head_size(&request);
        if options.curl_compat.head_limits && bytes > MAX_CURL_HEAD {
            let message = format!("the request's head is larger than {MAX_CURL_HEAD} bytes");
            return Err(Error::new(ErrorKind::HeadTooLarge, message));
        }
        let unsent = conn.text_output().map_or(0, <[u8]>::len);
        let taken = conn.enqueue(now, &request);
        let taken = taken.map_err(|error| rejected_request(error, &fields));
        let record = (taken.is_ok() && options.recorder.is_some()).then(|| {
            let head = conn.text_output().map(|output| &output[unsent..]);
            self.begin_record(&request, head, version)
        });
        drop(fields);
        if let Some(record) = record {
            self.record = record;
        }
        self.attempt.has_sent |= taken.is_ok();
        if !self.progress.has_begun {
            self.facts.body_bytes = 0;
        }
        self.facts.on_request(now);
        self.facts.request_bytes += bytes;
        self.facts.auth_scheme = auth_scheme.or(self.facts.auth_scheme);
        self.facts.proxy_auth_scheme = proxy_auth_scheme.or(self.facts.proxy_auth_scheme);
        self.trace_milestone(Milestone::Sent, None);
        self.speed.begin_exchange(&options, now);
        taken
    }

    /// Returns the maximum time to wait for a 100 (Continue); `None` if the request has no Expect
    /// field.
    #[must_use]
    pub fn expect_timeout(&self) -> Option<Duration> {
        (self.expectation == ExpectContinueState::Sent).then_some(self.options.expect_timeout)
    }

    /// Asks the sink which part of the content an earlier run of the program has already stored, so
    /// that only the missing part is requested. Called once, before the first exchange.
    fn find_existing_part(&mut self) {
        if std::mem::replace(&mut self.ranges.sink_was_asked, true)
            || !self.ranges.may_request_ranges()
            || self.options.decode
        {
            return;
        }
        if let Some(partial) = self.body.existing_partial_content(&self.current.target) {
            self.ranges.must_continue = partial.known.is_none();
            if self.ranges.must_continue {
                self.ranges.start = partial.gap.start;
            }
            self.progress.range.resume_partial(partial);
        } else if self.current.method != "GET" {
            self.ranges.mode = RangeFieldOwner::None;
        }
    }
}
