//! Values of JSON documents, selected by JSONPath (RFC 9535) while a body arrives.
//!
//! ```text
//! text in UTF-8 ── DocumentSplitter ── one document ── parse within a memory limit ── JSONPath ── values
//! ```
//!
//! A body is any number of documents one after the other: one document, lines of JSON (NDJSON), or
//! a JSON text sequence (RFC 7464). Each is searched on its own when it is complete, so that memory
//! depends on the largest document, not on the body.

mod bounded_value;
mod document_splitter;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::{Arc, Mutex};

use serde_json::Value;
use serde_json_path::JsonPath;

use super::page_search::{FoundValue, OnFound};
use crate::ignore_poison::IgnorePoison;
use crate::{Error, ErrorKind, Result};
pub(crate) use bounded_value::ParseFailure;
use document_splitter::{DocumentSplitter, Position};

/// The length of a document from which on only one thread at a time has its values in memory.
const LARGE: usize = 1 << 20;

/// The lock for the values of a large document.
static LARGE_DOCUMENT: Mutex<()> = Mutex::new(());

/// A JSONPath query (RFC 9535).
///
/// ```
/// use haul::extraction::JsonPathQuery;
///
/// assert_eq!(JsonPathQuery::new("$.items[*].id")?.source(), "$.items[*].id");
/// assert!(JsonPathQuery::new("items").is_err());
/// # Ok::<(), haul::Error>(())
/// ```
#[derive(Clone)]
pub struct JsonPathQuery {
    source: String,
    path: JsonPath,
}

impl JsonPathQuery {
    /// Parses a query, which begins with `$`.
    ///
    /// # Errors
    /// [`ErrorKind::Setup`], with the position of the flaw.
    pub fn new(query: &str) -> Result<Self> {
        let path = JsonPath::parse(query).map_err(|flaw| {
            let remedy = if query.starts_with('$') { "" } else { "; a JSONPath begins with $, as in $.items[*].id" };
            let text = format!("JSONPath {query:?} cannot be used: {flaw}{remedy}");
            Error::new(ErrorKind::Setup, text)
        })?;
        Ok(Self { source: query.to_owned(), path })
    }

    /// Returns the query as it was given.
    #[must_use]
    pub fn source(&self) -> &str {
        &self.source
    }
}

impl fmt::Debug for JsonPathQuery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "JsonPathQuery({:?})", self.source)
    }
}

/// The JSONPath queries of a stage.
pub(super) struct JsonQueries {
    queries: Vec<JsonPathQuery>,
    /// True if strings are passed on with quotes and escapes.
    is_quoted: bool,
    /// True if empty strings are passed on.
    keeps_empty: bool,
}

impl JsonQueries {
    pub(super) fn new(queries: &[JsonPathQuery]) -> Self {
        Self { queries: queries.to_vec(), is_quoted: false, keeps_empty: false }
    }

    pub(super) fn quoted(&self) -> Self {
        Self { queries: self.queries.clone(), is_quoted: true, ..*self }
    }

    pub(super) fn keeping_empty(&self) -> Self {
        Self { queries: self.queries.clone(), keeps_empty: true, ..*self }
    }

    pub(super) fn queries(&self) -> &[JsonPathQuery] {
        &self.queries
    }
}

/// The search of one body for the values of JSONPath queries.
pub(super) struct JsonSearch {
    queries: Arc<JsonQueries>,
    splitter: DocumentSplitter,
    /// The memory for the text of a document; its values may take three times as much.
    memory: usize,
    /// A value as it is passed on.
    text: Vec<u8>,
}

impl JsonSearch {
    /// Makes a search for documents of at most `memory` bytes.
    pub(super) fn new(queries: Arc<JsonQueries>, memory: usize) -> Self {
        Self { queries, splitter: DocumentSplitter::default(), memory, text: Vec::new() }
    }

    pub(super) fn reset(&mut self) {
        self.splitter = DocumentSplitter::default();
    }

    /// Returns the number of bytes of the body that the search keeps.
    pub(super) fn held(&self) -> usize {
        self.splitter.held()
    }

    /// Searches the next piece of the body.
    pub(super) fn push(&mut self, piece: &[u8], on_found: &mut OnFound<'_>) -> Result<()> {
        let Self { queries, splitter, memory, text } = self;
        splitter.push(piece, &mut |document, position| select(queries, document, position, *memory, text, on_found))?;
        if splitter.held() > *memory { Err(too_long(splitter.position(), *memory)) } else { Ok(()) }
    }

    /// Ends the body.
    pub(super) fn finish(&mut self, on_found: &mut OnFound<'_>) -> Result<()> {
        let Self { queries, splitter, memory, text } = self;
        let outcome =
            splitter.finish(&mut |document, position| select(queries, document, position, *memory, text, on_found));
        self.reset();
        outcome
    }
}

/// Parses a JSON document whose values take at most about `memory` bytes, and passes its value to
/// `use_value`. Only one thread at a time has the values of a large document.
///
/// # Errors
/// The document is not JSON, or its values take more memory.
pub(crate) fn with_value<T>(
    document: &[u8],
    memory: usize,
    use_value: impl FnOnce(&Value) -> T,
) -> Result<T, ParseFailure> {
    let _only = (document.len() > LARGE).then(|| LARGE_DOCUMENT.lock().ignore_poison());
    bounded_value::parse(document, memory).map(|value| use_value(&value))
}

/// Passes on the values of one document. Together they have at most three times `memory` bytes:
/// nested values repeat those inside them.
fn select(
    queries: &JsonQueries,
    document: &[u8],
    position: Position,
    memory: usize,
    text: &mut Vec<u8>,
    on_found: &mut OnFound<'_>,
) -> Result<()> {
    let most = memory.saturating_mul(3);
    let selected = with_value(document, most, |value| {
        let mut passed = 0_usize;
        for (query, path) in queries.queries.iter().enumerate() {
            for found in path.path.query(value).iter() {
                let bytes = match found {
                    Value::String(string) if !queries.is_quoted => string.as_bytes(),
                    other => {
                        text.clear();
                        serde_json::to_writer(&mut *text, other)
                            .map_err(|error| Error::with_source(ErrorKind::Write, "a value has no JSON text", error))?;
                        &text[..]
                    }
                };
                passed = passed.saturating_add(bytes.len());
                if passed > most {
                    return Err(too_many_values(position, most));
                }
                if !bytes.is_empty() || queries.keeps_empty {
                    on_found(FoundValue { query, bytes, base: None })?;
                }
            }
        }
        Ok(())
    });
    text.clear();
    text.shrink_to(LARGE);
    selected.map_err(|failure| match failure {
        ParseFailure::TooLarge => too_long(position, memory),
        ParseFailure::Invalid { cause, line, column } => {
            let (line, column) = position.of(line, column);
            Error::new(
                ErrorKind::ContentCoding,
                format!("the body is not JSON: {cause} at line {line} column {column}"),
            )
        }
    })?
}

fn too_many_values(position: Position, most: usize) -> Error {
    let (line, column) = position.of(1, 1);
    let message = format!(
        "the values selected from the JSON document at line {line} column {column} take more than {} MiB; select fewer \
         of the values that contain others, or raise --max-memory",
        most.div_ceil(1 << 20)
    );
    Error::new(ErrorKind::TooLarge, message)
}

fn too_long(position: Position, memory: usize) -> Error {
    let (line, column) = position.of(1, 1);
    let message = format!(
        "the JSON document at line {line} column {column} takes more than {} MiB; raise --max-memory to four times \
         its size or more, or ask the server for lines of JSON",
        memory.div_ceil(1 << 20)
    );
    Error::new(ErrorKind::TooLarge, message)
}
