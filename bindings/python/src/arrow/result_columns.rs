//! The columns of a table of results. Their names are the keys of `docs/records.schema.json`.

use std::net::SocketAddr;
use std::time::Duration;

use haul::batch::FinishedRequest;
use haul::body::decoded_text::BodyTextPieces;
use haul::extraction::PageInfo;
use haul::transfer::TransferOutcome;
use haul::transfer_facts::TransferFacts;
use haul::transfer_record::{attempt_count, field_text, sorted_fields};
use haul::{Error, ProtocolVersion, ResponseHead};
use pyo3::Py;

use super::columns::Column;
use crate::batch::PendingBatchRequest;
use crate::bytes_sink::BytesSink;
use crate::value_extraction::PyPageQuery;

/// The column that contains the bodies of the responses: its type, and its name.
pub(super) enum BodyColumnSettings {
    None,
    Binary(String),
    /// The body as text; null for a body that is not valid text in its charset.
    Text(String),
}

/// The settings of the column `values`, which contains the values that a query extracts from each
/// body.
pub(super) struct ValuesColumnSettings {
    pub(super) query: Py<PyPageQuery>,
    /// The names of the parts of the query, under which a row's values are grouped. `None` if the
    /// parts have no names; the column then contains plain lists.
    pub(super) names: Option<Vec<String>>,
}

/// The columns of an Arrow table that are computed from the bodies of the responses.
pub(super) struct ContentColumns {
    pub(super) body: BodyColumnSettings,
    pub(super) values: Option<ValuesColumnSettings>,
}

/// The approximate number of bytes of a row, without its body, values and header fields.
const FIXED_BYTES: u64 = 512;

/// Returns the columns of an empty table. `content` selects the columns that are computed from
/// bodies.
pub(super) fn columns(content: &ContentColumns) -> Vec<Column> {
    let error = || vec![Column::int32("code"), Column::text("name"), Column::text("message")];
    let failed = [error(), vec![Column::float64("pause")]].into_iter().flatten().collect();
    let redirect = vec![Column::text("url"), Column::int32("status"), Column::text("location")];
    let times = ["namelookup", "connect", "appconnect", "pretransfer", "starttransfer", "redirect", "total"];
    let addresses = vec![
        Column::text("remote_ip"),
        Column::int32("remote_port"),
        Column::text("local_ip"),
        Column::int32("local_port"),
        Column::boolean("proxy_used"),
    ];
    let bytes = ["body", "decoded", "heads", "requests", "uploaded"];
    let tls = vec![
        Column::text("version"),
        Column::text("cipher"),
        Column::text("alpn"),
        Column::boolean("resumed"),
        Column::text("certificate_fault"),
    ];
    let mut columns = vec![
        Column::text("effective_url"),
        Column::text("method"),
        Column::int32("status"),
        Column::text("http_version"),
        Column::text_lists_by_name("headers"),
        Column::structure("error", error()),
        Column::structure(
            "attempts",
            vec![Column::int32("count"), Column::list("failed", Column::structure("item", failed))],
        ),
        Column::list("redirects", Column::structure("item", redirect)),
        Column::structure("times", times.map(Column::float64).into()),
        Column::structure("addresses", addresses),
        Column::structure("bytes", bytes.map(Column::int64).into()),
        Column::structure("tls", tls),
    ];
    columns.extend(content.values.as_ref().map(|values| match values.names {
        None => Column::list("values", Column::text("item")),
        Some(_) => Column::text_lists_by_name("values"),
    }));
    columns.extend(match &content.body {
        BodyColumnSettings::None => None,
        BodyColumnSettings::Binary(name) => Some(Column::large_binary(name)),
        BodyColumnSettings::Text(name) => Some(Column::large_text(name)),
    });
    columns
}

/// Appends a row for a request that could not be sent. The row contains only the method and the
/// error: the exit code `code`, its `name`, and the message. Returns the approximate number of
/// bytes added.
pub(super) fn push_unsent(columns: &mut [Column], method: &str, code: u8, name: &str, message: &str) -> u64 {
    for column in columns {
        match column.name() {
            "method" => column.push_text(Some(method)),
            "error" => column.push_struct(|members| push_error_texts(members, code, name, message)),
            "attempts" => column.push_struct(|members| {
                members[0].push_int(Some(0));
                members[1].push_list(|_| {});
            }),
            "redirects" => column.push_list(|_| {}),
            _ => column.push_null(),
        }
    }
    (method.len() + message.len()) as u64 + FIXED_BYTES
}

/// Appends the result of a request as a row. Returns the approximate size of the row in bytes.
pub(super) fn push_row(
    columns: &mut [Column],
    wanted: &ContentColumns,
    finished: FinishedRequest,
    pending: PendingBatchRequest,
) -> u64 {
    let (outcome, sink) = finished.into_parts::<BytesSink>();
    let content = if outcome.result.is_ok() { Some(sink.unwrap_or_default().into_vec()) } else { None };
    let TransferOutcome { result, target, head, facts, history, .. } = &outcome;
    let found = match (&wanted.values, &content) {
        (Some(values), Some(content)) => Some(values.find(&outcome, content)),
        _ => None,
    };
    let error = result.as_ref().err().or(found.as_ref().and_then(|found| found.as_ref().err()));
    let values = found.as_ref().and_then(|found| found.as_ref().ok());
    let values_bytes = values.map_or(0, |found| found.iter().map(|(_, value)| value.len() as u64 + 8).sum());
    let body_bytes = content.as_ref().map_or(0, Vec::len) as u64;
    let method = facts.method.as_deref().or(pending.method.as_deref()).unwrap_or("GET");
    let [
        effective_url,
        of_method,
        status,
        version,
        headers,
        of_error,
        attempts,
        redirects,
        times,
        addresses,
        bytes,
        tls,
        rest @ ..,
    ] = columns
    else {
        return 0;
    };
    effective_url.push_text((facts.requests > 0).then(|| target.to_url()).as_deref());
    of_method.push_text(Some(method));
    status.push_int((facts.status > 0).then_some(facts.status.into()));
    version.push_text(facts.version.map(ProtocolVersion::number));
    match head {
        Some(head) => headers.push_list(|entries| push_fields(entries, head)),
        None => headers.push_null(),
    }
    match error {
        Some(error) => of_error.push_struct(|members| push_error(members, error)),
        None => of_error.push_null(),
    }
    attempts.push_struct(|members| push_attempts(members, facts, error));
    redirects.push_list(|items| {
        for redirect in history {
            items.push_struct(|members| {
                members[0].push_text(Some(&redirect.target.to_url()));
                members[1].push_int(Some(redirect.head.status().into()));
                members[2].push_text(redirect.head.get("location").map(field_text).as_deref());
            });
        }
    });
    times.push_struct(|members| push_times(members, facts));
    addresses.push_struct(|members| push_addresses(members, facts));
    bytes.push_struct(|members| {
        let decoded = facts.decoded_bytes.unwrap_or(facts.body_bytes);
        let all = [facts.body_bytes, decoded, facts.head_bytes, facts.request_bytes, facts.upload_bytes];
        members.iter_mut().zip(all).for_each(|(member, value)| member.push_int(Some(value)));
    });
    push_tls(tls, facts);
    let mut rest = rest.iter_mut();
    if let Some(values) = &wanted.values
        && let Some(column) = rest.next()
    {
        values.push(column, found.and_then(Result::ok));
    }
    if let Some(column) = rest.next() {
        match (content, &wanted.body) {
            (Some(content), BodyColumnSettings::Text(_)) => push_body_text(column, content, head.as_ref()),
            (Some(content), _) => column.push_owned(content),
            (None, _) => column.push_null(),
        }
    }
    body_bytes + values_bytes + facts.head_bytes + FIXED_BYTES
}

impl ValuesColumnSettings {
    /// Returns the values in a body, each with the index of the query that found it.
    fn find(&self, outcome: &TransferOutcome, content: &[u8]) -> haul::Result<Vec<(usize, String)>> {
        let head = outcome.head.as_ref();
        let content_type = head.and_then(|head| head.get_all("content-type").last());
        let info = PageInfo { url: Some(&outcome.target), content_type };
        self.query.get().query.numbered_values_in(&info, content)
    }

    fn push(&self, column: &mut Column, found: Option<Vec<(usize, String)>>) {
        match (found, &self.names) {
            (None, _) => column.push_null(),
            (Some(found), None) => column.push_list(|items| {
                found.iter().for_each(|(_, value)| items.push_text(Some(value)));
            }),
            (Some(found), Some(names)) => column.push_list(|entries| {
                for (number, name) in names.iter().enumerate() {
                    entries.push_struct(|members| {
                        members[0].push_text(Some(name));
                        members[1].push_list(|items| {
                            let of_name = found.iter().filter(|(of, _)| *of == number);
                            of_name.for_each(|(_, value)| items.push_text(Some(value)));
                        });
                    });
                }
            }),
        }
    }
}

fn push_error(members: &mut [Column], error: &Error) {
    push_error_texts(members, error.exit_code(), error.kind().name(), &error.cause());
}

fn push_error_texts(members: &mut [Column], code: u8, name: &str, message: &str) {
    members[0].push_int(Some(code.into()));
    members[1].push_text(Some(name));
    members[2].push_text(Some(message));
}

/// Appends the header fields of a response as a map, sorted by name. The names are in lower case.
fn push_fields(entries: &mut Column, head: &ResponseHead) {
    for of_name in sorted_fields(head).chunk_by(|a, b| a.0 == b.0) {
        entries.push_struct(|members| {
            members[0].push_text(Some(&of_name[0].0));
            members[1].push_list(|values| {
                for (_, value) in of_name {
                    values.push_text(Some(&field_text(value)));
                }
            });
        });
    }
}

fn push_attempts(members: &mut [Column], facts: &TransferFacts, error: Option<&Error>) {
    members[0].push_int(Some(attempt_count(facts, error)));
    members[1].push_list(|items| {
        for attempt in &facts.failed_attempts {
            items.push_struct(|members| {
                push_error(members, &attempt.error);
                members[3].push_float(attempt.pause.as_secs_f64());
            });
        }
    });
}

fn push_times(members: &mut [Column], facts: &TransferFacts) {
    let all: [Duration; 7] =
        [facts.resolved, facts.connected, facts.secured, facts.sent, facts.first_byte, facts.redirected, facts.total];
    members.iter_mut().zip(all).for_each(|(member, time)| member.push_float(time.as_secs_f64()));
}

fn push_addresses(members: &mut [Column], facts: &TransferFacts) {
    let mut push = |at: usize, address: Option<SocketAddr>| {
        members[at].push_text(address.map(|address| address.ip().to_string()).as_deref());
        members[at + 1].push_int(address.map(|address| address.port().into()));
    };
    push(0, facts.peer);
    push(2, facts.local);
    members[4].push_bool(facts.proxy_used);
}

fn push_tls(column: &mut Column, facts: &TransferFacts) {
    let Some(tls) = &facts.tls else { return column.push_null() };
    column.push_struct(|members| {
        members[0].push_text(Some(tls.version));
        members[1].push_text(Some(&tls.cipher));
        members[2].push_text(tls.alpn.as_deref());
        members[3].push_bool(tls.resumed);
        members[4].push_text(facts.certificate_fault.as_deref());
    });
}

/// Appends a body as text; appends a null if the body is not valid text in its charset.
fn push_body_text(column: &mut Column, content: Vec<u8>, head: Option<&ResponseHead>) {
    let content_type = head.and_then(|head| head.get_all("content-type").last());
    let Ok(mut text) = BodyTextPieces::new(content, content_type) else { return column.push_null() };
    let mut whole = Vec::with_capacity(text.len());
    while let Some(piece) = text.next_piece() {
        whole.extend_from_slice(piece.as_bytes());
    }
    column.push_owned(whole);
}
