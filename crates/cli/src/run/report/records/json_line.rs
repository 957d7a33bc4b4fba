//! The JSON line of a finished transfer.

use std::fs::File;
use std::path::Path;

use haul::body::text::BodyText;
use haul::fleet::{RecordContent, RecordText};
use haul::sink::checksum::{HashAlgorithm, hex};
use haul::sink::match_list::MatchList;
use haul::transfer_facts::TransferFacts;
use haul::{Error, ProtocolVersion, ResponseHead, Result};

use super::csv_rows;
use super::json_writer::JsonWriter;
use super::line_pieces::{LineContent, line};
use crate::plan::RecordOutputArgs;
use crate::program_persona::ProgramPersona;
use crate::run::report::error_message;
use crate::run::report::transfer_report::TransferReport;
use crate::value_name::ValueName;

/// A finished transfer, and what its record says about it.
pub(crate) struct RecordedTransfer<'a> {
    /// The transfer, with its outcome.
    pub(crate) report: &'a TransferReport<'a>,
    pub(crate) persona: ProgramPersona,
    pub(crate) records: RecordOutputArgs,
    /// The file to which the body was written; `None` if it was written to none.
    pub(crate) file: Option<StoredFile<'a>>,
    /// The `id` of the input line as JSON text; `None` without one.
    pub(crate) id: Option<&'a str>,
    /// True if the stage extracts values from bodies.
    pub(crate) extracts: bool,
    /// The names of the values, in the order of the expressions; empty if they have none.
    pub(crate) names: &'a [ValueName],
}

/// A file with the body of a transfer.
pub(crate) struct StoredFile<'a> {
    path: &'a Path,
    size: u64,
    /// The SHA-256 checksum in hexadecimal; `None` for a device or pipe, whose content is gone.
    sha256: Option<String>,
}

impl<'a> StoredFile<'a> {
    /// Reads the size and the checksum of a complete file. `delivered` is the number of bytes that
    /// were written to it.
    pub(crate) fn of(path: &'a Path, delivered: u64) -> Self {
        let file = File::open(path).ok().filter(|_| path.is_file());
        let size = file.as_ref().and_then(|file| Some(file.metadata().ok()?.len()));
        let sha256 = file.and_then(|file| HashAlgorithm::Sha256.of_file(&file).ok());
        Self { path, size: size.unwrap_or(delivered), sha256: sha256.map(|checksum| hex(&checksum)) }
    }
}

impl RecordedTransfer<'_> {
    /// Returns the rows of CSV that the values of the transfer make; none if it failed.
    ///
    /// # Errors
    /// The values are no rows.
    pub(crate) fn rows(&self, content: &RecordContent, with_url: bool) -> Result<MatchList> {
        if self.report.error().is_some() || !content.is_complete {
            return Ok(MatchList::default());
        }
        let names: Vec<&str> = self.names.iter().map(ValueName::as_str).collect();
        let url = self.report.shown_url(self.persona);
        let rows = csv_rows::rows(&content.values, &names, Some(&*url).filter(|_| with_url));
        rows.map_err(|error| error.with_url(url))
    }

    /// Returns the JSON line of the transfer.
    pub(crate) fn json_line(&self, content: RecordContent) -> RecordText {
        let outcome = self.report.outcome;
        let facts = &*outcome.facts;
        let mut json = JsonWriter::object();
        if let Some(id) = self.id {
            json.value("id", id);
        }
        json.text("url", &*self.report.shown_url(self.persona));
        let effective = (facts.requests > 0).then(|| self.report.effective(self.persona).1);
        json.text("effective_url", effective.as_deref());
        json.text("method", facts.method.as_deref().unwrap_or(self.report.method));
        json.number("status", (facts.status > 0).then_some(facts.status));
        json.text("http_version", facts.version.map(version));
        match &outcome.head {
            Some(head) => json.object_in("headers", |json| fields(head, json)),
            None => json.text("headers", None::<&str>),
        }
        match self.report.error() {
            Some(error) => json.object_in("error", |json| error_members(error, json)),
            None => json.text("error", None::<&str>),
        }
        json.object_in("attempts", |json| self.attempts(json));
        json.array_in("redirects", |json| self.redirects(json));
        json.object_in("times", |json| times(facts, json));
        json.object_in("addresses", |json| addresses(facts, json));
        json.object_in("bytes", |json| {
            json.value("body", facts.body_bytes);
            json.value("decoded", facts.decoded_bytes.unwrap_or(facts.body_bytes));
            json.value("heads", facts.head_bytes);
            json.value("requests", facts.request_bytes);
            json.value("uploaded", facts.upload_bytes);
        });
        tls(facts, &mut json);
        if let Some(file) = &self.file {
            json.text("file", &*file.path.to_string_lossy());
            json.value("size", file.size);
            json.text("sha256", file.sha256.as_deref());
        }
        line(json.into_text(), self.content(content))
    }

    /// Returns the content of the line: the values, or the body. An incomplete body is left out.
    fn content(&self, content: RecordContent) -> LineContent {
        if !content.is_complete {
            return LineContent::Nothing;
        }
        if self.extracts && self.names.is_empty() {
            return LineContent::Values(content.values);
        }
        if self.extracts {
            let names = self.names.iter().map(|name| name.as_str().to_owned()).collect();
            return LineContent::NamedValues(content.values, names);
        }
        if !self.records.keeps_bodies || self.report.file.is_some() {
            return LineContent::Nothing;
        }
        let head = self.report.outcome.head.as_ref();
        let content_type = head.and_then(|head| head.get_all("content-type").last());
        match BodyText::new(content.body, content_type) {
            Ok(text) => LineContent::Text(text),
            Err(body) => LineContent::Binary(body),
        }
    }

    fn attempts(&self, json: &mut JsonWriter) {
        let outcome = self.report.outcome;
        let was_made = self.report.error().is_none_or(|error| !error.is_setup());
        json.value("count", u64::from(was_made) + u64::from(outcome.facts.retries));
        json.array_in("failed", |json| {
            for attempt in &outcome.facts.failed_attempts {
                json.object_element(|json| {
                    error_members(&attempt.error, json);
                    json.seconds("pause", attempt.pause);
                });
            }
        });
    }

    fn redirects(&self, json: &mut JsonWriter) {
        for redirect in &self.report.outcome.history {
            json.object_element(|json| {
                json.text("url", &*redirect.target.to_url());
                json.value("status", redirect.head.status());
                let location = redirect.head.get("location").map(text_of);
                json.text("location", location.as_deref());
            });
        }
    }
}

/// Writes the members of an error.
fn error_members(error: &Error, json: &mut JsonWriter) {
    json.value("code", error.exit_code());
    json.text("name", error.kind().name());
    json.text("message", &*error.cause());
    json.text("remedy", Some(error_message::remedy(error).trim_start_matches("; ")).filter(|text| !text.is_empty()));
}

/// Writes the header fields of a response, sorted by name. The names are in lower case, and each has
/// a list of values.
fn fields(head: &ResponseHead, json: &mut JsonWriter) {
    let mut fields: Vec<_> = head.fields().map(|(name, value)| (name.to_ascii_lowercase(), value)).collect();
    fields.sort_by(|a, b| a.0.cmp(&b.0));
    for of_name in fields.chunk_by(|a, b| a.0 == b.0) {
        json.array_in(&of_name[0].0, |json| {
            for (_, value) in of_name {
                json.text_element(&text_of(value));
            }
        });
    }
}

/// Returns the value of a header field as text: as UTF-8 if it is valid, otherwise as ISO-8859-1, so
/// that no byte is lost (RFC 9110 section 5.5).
fn text_of(value: &[u8]) -> std::borrow::Cow<'_, str> {
    match std::str::from_utf8(value) {
        Ok(text) => text.into(),
        Err(_) => value.iter().map(|&byte| char::from(byte)).collect::<String>().into(),
    }
}

fn version(version: ProtocolVersion) -> &'static str {
    match version {
        ProtocolVersion::Http10 => "1.0",
        ProtocolVersion::Http11 => "1.1",
        ProtocolVersion::Http2 => "2",
        ProtocolVersion::Http3 => "3",
        _ => "unknown",
    }
}

/// Writes the times of a transfer. Their names are those of `-w` without `time_`.
fn times(facts: &TransferFacts, json: &mut JsonWriter) {
    for (name, time) in [
        ("namelookup", facts.resolved),
        ("connect", facts.connected),
        ("appconnect", facts.secured),
        ("pretransfer", facts.sent),
        ("starttransfer", facts.first_byte),
        ("redirect", facts.redirected),
        ("total", facts.total),
    ] {
        json.seconds(name, time);
    }
}

fn addresses(facts: &TransferFacts, json: &mut JsonWriter) {
    let ip = |address: Option<std::net::SocketAddr>| address.map(|address| address.ip().to_string());
    json.text("remote_ip", ip(facts.peer).as_deref());
    json.number("remote_port", facts.peer.map(|peer| peer.port()));
    json.text("local_ip", ip(facts.local).as_deref());
    json.number("local_port", facts.local.map(|local| local.port()));
    json.value("proxy_used", facts.proxy_used);
}

/// Writes the parameters of the TLS session.
fn tls(facts: &TransferFacts, json: &mut JsonWriter) {
    let Some(tls) = &facts.tls else { return json.text("tls", None::<&str>) };
    json.object_in("tls", |json| {
        json.text("version", tls.version);
        json.text("cipher", &*tls.cipher);
        json.text("alpn", tls.alpn.as_deref());
        json.value("resumed", tls.resumed);
        json.text("certificate_fault", facts.certificate_fault.as_deref());
    });
}
