//! The JSON line that `--jsonl` prints for a finished transfer.

use std::fs::{File, Metadata};
use std::path::Path;

use haul::Result;
use haul::body::decoded_text::BodyTextPieces;
use haul::fleet::{FinishedTransferContent, WholeOrPiecewiseText};
use haul::sink::checksum::{HashAlgorithm, hex};
use haul::transfer_record::TransferRecord;
use haul_policy::terminal_text::escape_json;

use super::page_values_csv::{PageValuesCsv, RowBuffering};
use super::streamed_jsonl_line::{JsonlContentMember, record_line};
use crate::extracted_value_name::ValueName;
use crate::plan::RecordOutputArgs;
use crate::program_persona::ProgramPersona;
use crate::run::report::remedy::remedy_alone;
use crate::run::report::transfer_report::TransferReport;

/// A finished transfer, and the data of the record (JSON line or CSV rows) that haul prints about
/// it.
pub(crate) struct RecordedTransfer<'a> {
    /// The transfer, with its outcome.
    pub(crate) report: &'a TransferReport<'a>,
    pub(crate) persona: ProgramPersona,
    pub(crate) records: RecordOutputArgs,
    /// The file to which the body was written; `None` if it was not written to a file.
    pub(crate) file: Option<StoredFile<'a>>,
    /// The `id` of the input record as JSON text; `None` if it has none.
    pub(crate) id: Option<&'a str>,
    /// True if values are extracted from the bodies of the stage to which the transfer belongs.
    pub(crate) extracts: bool,
    /// The names of the extracted values, in the order of the expressions. Empty if the expressions
    /// have no names.
    pub(crate) names: &'a [ValueName],
    /// True if the record is printed on a terminal.
    pub(crate) is_shown: bool,
}

/// A file that contains the body of a transfer.
pub(crate) struct StoredFile<'a> {
    path: &'a Path,
    size: u64,
    /// The SHA-256 checksum in hexadecimal. `None` for a device or pipe, whose content cannot be
    /// read again.
    pub(crate) sha256: Option<String>,
}

impl<'a> StoredFile<'a> {
    /// Reads the size of a complete file. Computes its checksum, unless `checksum` already contains
    /// it. For a device or pipe, the size is `delivered`, the number of bytes that were written to
    /// it.
    pub(crate) fn read(path: &'a Path, delivered: u64, checksum: Option<&[u8]>) -> Self {
        // A FIFO would wait for a writer when it is opened.
        let metadata = path.metadata().ok().filter(Metadata::is_file);
        let read = || HashAlgorithm::Sha256.hash_file(&File::open(path).ok()?).ok();
        let sha256 = metadata.as_ref().and_then(|_| checksum.map(hex).or_else(|| read().map(|found| hex(&found))));
        Self { path, size: metadata.map_or(delivered, |metadata| metadata.len()), sha256 }
    }
}

impl RecordedTransfer<'_> {
    /// Returns the CSV rows of the transfer's extracted values; an empty text if the transfer
    /// failed.
    ///
    /// # Errors
    /// The values cannot be arranged in rows, or the rows need more memory than `--sort` and
    /// `--unique` may use.
    pub(crate) fn rows(
        &self,
        content: FinishedTransferContent,
        with_url: bool,
        order: RowBuffering,
    ) -> Result<WholeOrPiecewiseText> {
        if self.report.error().is_some() || !content.is_complete {
            return Ok(WholeOrPiecewiseText::Whole(Vec::new()));
        }
        let names: Vec<&str> = self.names.iter().map(ValueName::as_str).collect();
        let url = self.report.shown_url(self.persona);
        let values = if self.is_shown { content.values.for_terminal() } else { content.values };
        let rows = PageValuesCsv::new(values, &names, with_url.then(|| url.to_string()));
        rows.and_then(|rows| rows.into_text(order)).map_err(|error| error.with_url(url))
    }

    /// Returns the JSON line of the transfer.
    pub(crate) fn json_line(&self, content: FinishedTransferContent) -> WholeOrPiecewiseText {
        let outcome = self.report.outcome;
        let url = self.report.shown_url(self.persona);
        let effective = (outcome.facts.requests > 0).then(|| self.report.effective_scheme_and_url(self.persona).1);
        let mut record = TransferRecord::new(&url, self.report.method, &outcome.facts);
        record.effective_url = effective.as_deref();
        record.head = outcome.head.as_ref();
        record.history = &outcome.history;
        record.error = self.report.error();
        record.remedy = remedy_alone;
        let mut text = Vec::with_capacity(1024);
        text.push(b'{');
        if let Some(id) = self.id {
            begin_member("id", &mut text);
            text.extend_from_slice(id.as_bytes());
        }
        record.append_members(&mut text, self.id.is_none());
        if let Some(file) = &self.file {
            let mut member = |name, value: serde_json::Value| {
                begin_member(name, &mut text);
                text.extend_from_slice(value.to_string().as_bytes());
            };
            member("file", (&*file.path.to_string_lossy()).into());
            member("size", file.size.into());
            member("sha256", file.sha256.as_deref().into());
        }
        escape_json(&mut text, 0);
        record_line(text, self.content(content))
    }

    /// Returns the last member of the JSON line: the extracted values, or the body. Omits an
    /// incomplete body.
    fn content(&self, content: FinishedTransferContent) -> JsonlContentMember {
        if !content.is_complete {
            return JsonlContentMember::Nothing;
        }
        if self.extracts && self.names.is_empty() {
            return JsonlContentMember::Values(content.values);
        }
        if self.extracts {
            let names = self.names.iter().map(|name| name.as_str().to_owned()).collect();
            return JsonlContentMember::NamedValues(content.values, names);
        }
        if !self.records.keeps_bodies || self.report.file.is_some() {
            return JsonlContentMember::Nothing;
        }
        let head = self.report.outcome.head.as_ref();
        let content_type = head.and_then(|head| head.get_all("content-type").last());
        match BodyTextPieces::new(content.body, content_type) {
            Ok(text) => JsonlContentMember::Text(text),
            Err(body) => JsonlContentMember::Binary(body),
        }
    }
}

/// Begins the next member of a JSON object.
fn begin_member(name: &str, text: &mut Vec<u8>) {
    text.extend_from_slice(if text.ends_with(b"{") { b"\"" } else { b",\"" });
    text.extend_from_slice(name.as_bytes());
    text.extend_from_slice(b"\":");
}
