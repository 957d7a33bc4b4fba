//! The record of the exchange in progress ([`crate::exchange_record`]). Without a recorder, each
//! call only makes one comparison.

use haul_proto::request::{RequestHead, to_http1_text};
use haul_proto::response_head::{ProtocolVersion, ResponseHead};

use super::Transfer;
use crate::exchange_record::{ExchangeEnd, ExchangeRecordWriter, ExchangeStart, TruncationReason};
use crate::{Error, ErrorKind, Result};

/// The record of the exchange in progress, for a recorder such as the WARC archive. The record
/// contains the messages in their wire format.
pub(super) struct ExchangeWireRecord {
    record: Box<dyn ExchangeRecordWriter>,
    /// True for HTTP/1: the connection adds the messages as they are sent and received. False for
    /// HTTP/2 and HTTP/3: the transfer adds their heads and content.
    is_text: bool,
    has_head: bool,
    is_complete: bool,
}

impl Transfer {
    /// Returns an error if the [recorder](crate::RequestOptions::recorder) of the exchanges (such
    /// as the WARC archive) has failed. Also ends the record of an earlier exchange whose
    /// connection was lost.
    ///
    /// # Errors
    /// The recorder cannot record any more.
    pub(super) fn check_recorder(&mut self) -> Result<()> {
        let Some(recorder) = self.options.recorder.clone() else { return Ok(()) };
        self.end_record(None)?;
        recorder.failure().map_or(Ok(()), Err)
    }

    /// Begins the record of an exchange for the recorder of the options, such as the WARC archive.
    /// `text` is the head of an HTTP/1 request in its wire format; `None` for HTTP/2 and HTTP/3.
    /// Returns `None` if the options have no recorder.
    pub(super) fn begin_record(
        &self,
        request: &RequestHead<'_>,
        text: Option<&[u8]>,
        version: ProtocolVersion,
    ) -> Option<Box<ExchangeWireRecord>> {
        let recorder = self.options.recorder.as_ref()?;
        let converted = match text {
            Some(_) => Vec::new(),
            None => to_http1_text(request).unwrap_or_default(),
        };
        let record = recorder.begin(&ExchangeStart {
            target: &self.current.target,
            head: text.unwrap_or(&converted),
            version,
            server: self.facts.peer.filter(|_| !self.facts.proxy_used).map(|peer| peer.ip()),
            tls: self.facts.tls.as_deref(),
        });
        Some(Box::new(ExchangeWireRecord { record, is_text: text.is_some(), has_head: false, is_complete: false }))
    }

    /// Returns true if a recorder, such as the WARC archive, records the request and the response
    /// in progress.
    pub(crate) fn is_recorded(&self) -> bool {
        self.record.is_some()
    }

    /// Adds content of an HTTP/1 request, with its framing, to the record of the exchange (for a
    /// recorder such as the WARC archive).
    pub(crate) fn record_request_content(&mut self, bytes: &[u8]) {
        if let Some(own) = self.record.as_mut().filter(|own| own.is_text && !bytes.is_empty()) {
            own.record.request_content(bytes);
        }
    }

    /// Adds content of an HTTP/2 or HTTP/3 request to the record of the exchange (for a recorder
    /// such as the WARC archive).
    pub(super) fn record_sent(&mut self, content: &[u8]) {
        if let Some(own) = self.record.as_mut().filter(|own| !own.is_text && !content.is_empty()) {
            own.record.request_content(content);
        }
    }

    /// Adds the head of an HTTP/1 response to the record of the exchange (for a recorder such as
    /// the WARC archive). Empty lines before the head are omitted.
    pub(crate) fn record_head(&mut self, head: &[u8]) {
        if let Some(own) = &mut self.record {
            let start = head.iter().position(|byte| !matches!(byte, b'\r' | b'\n')).unwrap_or(head.len());
            own.has_head = true;
            own.record.response_head(&head[start..]);
        }
    }

    /// Adds the head of an HTTP/2 or HTTP/3 response, in the syntax of HTTP/1.1, to the record of
    /// the exchange (for a recorder such as the WARC archive).
    pub(super) fn record_head_of_stream(&mut self, head: &ResponseHead) {
        if let Some(own) = self.record.as_mut().filter(|own| !own.is_text) {
            let version = head.version().to_string();
            let rest = head.raw().strip_prefix(version.as_bytes()).unwrap_or(head.raw());
            own.has_head = true;
            own.record.response_head(&[b"HTTP/1.1", rest].concat());
        }
    }

    /// Adds bytes of an HTTP/1 response that are not content to the record of the exchange (for a
    /// recorder such as the WARC archive): the framing of chunks, and trailer fields.
    ///
    /// # Errors
    /// The recorder cannot keep the bytes.
    pub(crate) fn record_framing(&mut self, bytes: &[u8]) -> Result<()> {
        if bytes.is_empty() { Ok(()) } else { self.record_body(bytes) }
    }

    /// Adds content of the response to the record of the exchange (for a recorder such as the WARC
    /// archive). Does nothing before the response's head is recorded.
    ///
    /// # Errors
    /// The recorder cannot keep the bytes.
    pub(super) fn record_body(&mut self, bytes: &[u8]) -> Result<()> {
        match &mut self.record {
            Some(own) if own.has_head => own.record.response_body(bytes),
            _ => Ok(()),
        }
    }

    /// Marks the response as completely received in the record of the exchange.
    pub(crate) fn mark_record_complete(&mut self) {
        if let Some(own) = &mut self.record {
            own.is_complete = true;
        }
    }

    /// Ends the record of the exchange (for a recorder such as the WARC archive). `error` is the
    /// reason if the exchange failed. The record of an exchange without a response is dropped.
    ///
    /// # Errors
    /// The record cannot be written.
    pub(super) fn end_record(&mut self, error: Option<&Error>) -> Result<()> {
        let Some(own) = self.record.take().filter(|own| own.has_head) else { return Ok(()) };
        let held = own.record.end(match own.is_complete {
            true => ExchangeEnd::Complete,
            false => ExchangeEnd::Truncated(error.map_or(TruncationReason::Length, truncation_by)),
        })?;
        self.facts.held_records.extend(held);
        Ok(())
    }
}

/// Returns the reason, for the record of an exchange (in the WARC archive, for example), why the
/// response was not received completely. `error` is the failure that ended the response.
fn truncation_by(error: &Error) -> TruncationReason {
    match error.kind() {
        ErrorKind::Timeout => TruncationReason::Time,
        ErrorKind::TooLarge => TruncationReason::Length,
        ErrorKind::PartialBody
        | ErrorKind::Receive
        | ErrorKind::EmptyReply
        | ErrorKind::Send
        | ErrorKind::Http2Stream
        | ErrorKind::Http3 => TruncationReason::Disconnect,
        _ => TruncationReason::Unspecified,
    }
}
