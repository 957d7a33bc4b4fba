//! Records one exchange as two WARC records: a request record, and a response or revisit record.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::SystemTime;

use haul::exchange_record::{ExchangeEnd, ExchangeRecordWriter, ExchangeStart};
use haul::transfer_facts::TlsFacts;
use haul::{Error, ErrorKind, ProtocolVersion, Result};

use super::archive_recorder::{ArchiveState, random_id};
use super::message_spool::{EncodedRecords, FinishedMessage, RecordedMessage};
use super::record_head::{EarlierRecord, RecordHead, RecordId, RecordType, truncation};
use super::strip_credentials::without_credentials;

/// A request and its response (an exchange) while they are being recorded.
pub(super) struct WarcExchange {
    archive: Arc<ArchiveState>,
    context: ExchangeContext,
    request: RecordedMessage,
    response: RecordedMessage,
    /// The error that prevented storing the content of the request; `None` if there was none.
    failed: Option<Error>,
}

/// The facts that appear in the heads of both WARC records of an exchange: of the request and of
/// the response.
struct ExchangeContext {
    url: Box<str>,
    date: SystemTime,
    server: Option<IpAddr>,
    version: ProtocolVersion,
    tls: Option<TlsFacts>,
}

impl ExchangeContext {
    fn head(&self, record_type: RecordType, id: RecordId, other: RecordId) -> RecordHead {
        RecordHead::new(record_type, id, self.date)
            .with_field("WARC-Target-URI", &self.url)
            .with_optional_field("WARC-IP-Address", self.server)
            .with_protocols(self.version, self.tls.as_ref())
            .with_field("WARC-Concurrent-To", other)
    }
}

impl WarcExchange {
    pub(super) fn begin(archive: &Arc<ArchiveState>, start: &ExchangeStart<'_>) -> Self {
        let head = match archive.keeps_secrets {
            true => start.head.to_vec(),
            false => without_credentials(start.head),
        };
        let context = ExchangeContext {
            url: start.target.to_url().into(),
            date: SystemTime::now(),
            server: start.server,
            version: start.version,
            tls: start.tls.cloned(),
        };
        Self {
            context,
            request: RecordedMessage::new(&archive.store, head),
            response: RecordedMessage::new(&archive.store, Vec::new()),
            archive: Arc::clone(archive),
            failed: None,
        }
    }

    /// Returns the error for a message that cannot be kept, because its temporary file cannot be
    /// written. Also records the error in the archive, which then accepts no more records.
    fn unkept_message_error(archive: &ArchiveState, cause: std::io::Error) -> Error {
        let message = "a temporary file beside the archive cannot be written";
        archive.fail(Error::with_source(ErrorKind::Write, message, cause))
    }
}

impl ExchangeRecordWriter for WarcExchange {
    fn request_content(&mut self, bytes: &[u8]) {
        if self.failed.is_none()
            && let Err(cause) = self.request.push(bytes)
        {
            self.failed = Some(Self::unkept_message_error(&self.archive, cause));
        }
    }

    fn response_head(&mut self, head: &[u8]) {
        self.response.set_head(head);
    }

    fn response_body(&mut self, bytes: &[u8]) -> Result<()> {
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        self.response.push(bytes).map_err(|cause| Self::unkept_message_error(&self.archive, cause))
    }

    fn end(self: Box<Self>, end: ExchangeEnd) -> Result<Option<u64>> {
        let Self { archive, context, request, response, failed } = *self;
        failed.map_or(Ok(()), Err)?;
        let finished =
            |message: RecordedMessage| message.finish().map_err(|cause| Self::unkept_message_error(&archive, cause));
        let (request, response) = (finished(request)?, finished(response)?);
        let (request_id, response_id) = (random_id(), random_id());
        let mut records = EncodedRecords::default();
        let head = context.head(RecordType::Request, request_id, response_id);
        encode(request, RecordType::Request, head, &mut records);
        // A truncated payload stands for no other, and an empty one needs no reference.
        let is_whole = end == ExchangeEnd::Complete && response.length > 0;
        if let Some(earlier) = is_whole.then(|| archive.earlier_record(&response.payload)).flatten() {
            let head = context.head(RecordType::Revisit, response_id, request_id);
            encode_revisit(&response, head.with_revisit(&earlier), &mut records);
            return archive.add(records, None);
        }
        let own = is_whole.then_some(response.payload);
        let mut head = context.head(RecordType::Response, response_id, request_id);
        if let ExchangeEnd::Truncated(reason) = end {
            head = head.with_field("WARC-Truncated", truncation(reason));
        }
        encode(response, RecordType::Response, head, &mut records);
        let record = |payload| (payload, EarlierRecord { id: response_id, url: context.url, date: context.date });
        archive.add(records, own.map(record))
    }
}

/// Appends the WARC record of a message to `records`.
fn encode(message: FinishedMessage, record_type: RecordType, head: RecordHead, records: &mut EncodedRecords) {
    let has_payload = record_type == RecordType::Response || message.length > 0;
    let head = head
        .with_optional_field("WARC-Payload-Digest", has_payload.then_some(message.payload))
        .with_field("WARC-Block-Digest", message.block)
        .finish(record_type.content_type(), message.block_length());
    message.encode(&head, records);
}

/// Appends a revisit record to `records`. Its block is the head of the response.
fn encode_revisit(response: &FinishedMessage, head: RecordHead, records: &mut EncodedRecords) {
    let block = super::digest::Sha1Digest::of(&[response.head()]);
    let head = head
        .with_field("WARC-Payload-Digest", response.payload)
        .with_field("WARC-Block-Digest", block)
        .finish(RecordType::Revisit.content_type(), response.head().len() as u64);
    response.encode_head(&head, records);
}
