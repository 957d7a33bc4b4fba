//! The facts about a finished transfer as members of a JSON object, with the names in
//! `docs/records.schema.json`. The command's `--jsonl` and the Python module share them.
//!
//! ```
//! use haul::transfer_facts::TransferFacts;
//! use haul::transfer_record::TransferRecord;
//!
//! let facts = TransferFacts::new(std::time::Instant::now());
//! let record = TransferRecord::new("http://127.0.0.1/", "GET", &facts);
//! let mut text = b"{".to_vec();
//! record.append_members(&mut text, true);
//! assert!(text.starts_with(b"{\"url\":\"http://127.0.0.1/\",\"effective_url\":null,\"method\":\"GET\","));
//! ```
//!
//! Not included: the body, the extracted values, the output file and the `id`, which only the
//! program knows.

mod json_object_writer;

use haul_proto::response_head::{ProtocolVersion, ResponseHead};

use crate::Error;
use crate::transfer_facts::TransferFacts;
use crate::transfer_outcome::FollowedRedirect;
use json_object_writer::JsonObjectWriter;

/// The data from which the record of a finished transfer (a JSON object) is made. The URLs must not
/// contain a user name or password.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct TransferRecord<'a> {
    /// The URL that the program requested, before redirects.
    pub url: &'a str,
    /// The URL of the last request, after redirects; `None` if no request was sent.
    pub effective_url: Option<&'a str>,
    /// The method of the first request.
    pub method: &'a str,
    /// The sizes, times and addresses of the transfer.
    pub facts: &'a TransferFacts,
    /// The head of the last response; `None` if no response arrived.
    pub head: Option<&'a ResponseHead>,
    /// The redirects that were followed.
    pub history: &'a [FollowedRedirect],
    /// The error of the transfer; `None` if it succeeded.
    pub error: Option<&'a Error>,
    /// A function that returns a hint for the user about an error, such as an option that helps; it
    /// returns `None` if it knows no hint.
    pub remedy: fn(&Error) -> Option<&'static str>,
}

impl<'a> TransferRecord<'a> {
    /// Makes the data for a transfer that has sent no request and has no error. The caller sets
    /// further fields.
    #[must_use]
    pub fn new(url: &'a str, method: &'a str, facts: &'a TransferFacts) -> Self {
        Self { url, effective_url: None, method, facts, head: None, history: &[], error: None, remedy: |_| None }
    }

    /// Appends the record as members of a JSON object to `into`, the text of that object without
    /// its closing brace. `is_first` is true if the object has no member yet.
    pub fn append_members(&self, into: &mut Vec<u8>, is_first: bool) {
        let facts = self.facts;
        let mut json = JsonObjectWriter::members(std::mem::take(into), is_first);
        json.text_member("url", self.url);
        json.text_member("effective_url", self.effective_url);
        json.text_member("method", facts.method.as_deref().unwrap_or(self.method));
        json.number_member("status", (facts.status > 0).then_some(facts.status));
        json.text_member("http_version", facts.version.map(ProtocolVersion::number));
        match self.head {
            Some(head) => json.object_member("headers", |json| fields(head, json)),
            None => json.text_member("headers", None::<&str>),
        }
        match self.error {
            Some(error) => json.object_member("error", |json| self.error_members(error, json)),
            None => json.text_member("error", None::<&str>),
        }
        json.object_member("attempts", |json| self.attempts(json));
        json.array_member("redirects", |json| self.redirects(json));
        json.object_member("times", |json| times(facts, json));
        json.object_member("addresses", |json| addresses(facts, json));
        json.object_member("bytes", |json| {
            json.display_member("body", facts.body_bytes);
            json.display_member("decoded", facts.decoded_bytes.unwrap_or(facts.body_bytes));
            json.display_member("heads", facts.head_bytes);
            json.display_member("requests", facts.request_bytes);
            json.display_member("uploaded", facts.upload_bytes);
        });
        tls(facts, &mut json);
        *into = json.into_text();
    }

    fn attempts(&self, json: &mut JsonObjectWriter) {
        json.display_member("count", attempt_count(self.facts, self.error));
        json.array_member("failed", |json| {
            for attempt in &self.facts.failed_attempts {
                json.object_element(|json| {
                    self.error_members(&attempt.error, json);
                    json.seconds_member("pause", attempt.pause);
                });
            }
        });
    }

    fn redirects(&self, json: &mut JsonObjectWriter) {
        for redirect in self.history {
            json.object_element(|json| {
                json.text_member("url", &*redirect.target.to_url());
                json.display_member("status", redirect.head.status());
                let location = redirect.head.get("location").map(field_text);
                json.text_member("location", location.as_deref());
            });
        }
    }

    fn error_members(&self, error: &Error, json: &mut JsonObjectWriter) {
        json.display_member("code", error.exit_code());
        json.text_member("name", error.kind().name());
        json.text_member("message", &*error.cause());
        json.text_member("remedy", (self.remedy)(error));
    }
}

/// Returns the number of attempts of a transfer. It is zero if no attempt was made, because the
/// settings of the request were invalid.
#[must_use]
pub fn attempt_count(facts: &TransferFacts, error: Option<&Error>) -> u64 {
    let was_made = error.is_none_or(|error| !error.is_setup());
    u64::from(was_made) + u64::from(facts.retries)
}

/// Returns the header fields of a response, sorted by name. The names are in lower case. Values of
/// the same name keep their order.
#[must_use]
pub fn sorted_fields(head: &ResponseHead) -> Vec<(String, &[u8])> {
    let mut fields: Vec<_> = head.fields().map(|(name, value)| (name.to_ascii_lowercase(), value)).collect();
    fields.sort_by(|a, b| a.0.cmp(&b.0));
    fields
}

/// Writes the header fields of a response as a JSON object. Each member has a list with all values
/// of the field.
fn fields(head: &ResponseHead, json: &mut JsonObjectWriter) {
    for of_name in sorted_fields(head).chunk_by(|a, b| a.0 == b.0) {
        json.array_member(&of_name[0].0, |json| {
            for (_, value) in of_name {
                json.text_element(&field_text(value));
            }
        });
    }
}

/// Returns the value of a header field as text: as UTF-8 if it is valid, otherwise as ISO-8859-1,
/// so that no byte is lost (RFC 9110 section 5.5).
#[must_use]
pub fn field_text(value: &[u8]) -> std::borrow::Cow<'_, str> {
    match std::str::from_utf8(value) {
        Ok(text) => text.into(),
        Err(_) => value.iter().map(|&byte| char::from(byte)).collect::<String>().into(),
    }
}

/// Writes the times of a transfer as members, in seconds. Each time has the name of its `-w`
/// variable without `time_`.
fn times(facts: &TransferFacts, json: &mut JsonObjectWriter) {
    for (name, time) in [
        ("namelookup", facts.resolved),
        ("connect", facts.connected),
        ("appconnect", facts.secured),
        ("pretransfer", facts.sent),
        ("starttransfer", facts.first_byte),
        ("redirect", facts.redirected),
        ("total", facts.total),
    ] {
        json.seconds_member(name, time);
    }
}

fn addresses(facts: &TransferFacts, json: &mut JsonObjectWriter) {
    let ip = |address: Option<std::net::SocketAddr>| address.map(|address| address.ip().to_string());
    json.text_member("remote_ip", ip(facts.peer).as_deref());
    json.number_member("remote_port", facts.peer.map(|peer| peer.port()));
    json.text_member("local_ip", ip(facts.local).as_deref());
    json.number_member("local_port", facts.local.map(|local| local.port()));
    json.display_member("proxy_used", facts.proxy_used);
}

/// Writes the parameters of the TLS session as members.
fn tls(facts: &TransferFacts, json: &mut JsonObjectWriter) {
    let Some(tls) = &facts.tls else { return json.text_member("tls", None::<&str>) };
    json.object_member("tls", |json| {
        json.text_member("version", tls.version);
        json.text_member("cipher", &*tls.cipher);
        json.text_member("alpn", tls.alpn.as_deref());
        json.display_member("resumed", tls.resumed);
        json.text_member("certificate_fault", facts.certificate_fault.as_deref());
    });
}
