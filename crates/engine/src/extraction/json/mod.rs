//! Extraction of values from JSON documents by JSONPath (RFC 9535), while a body arrives.
//!
//! ```text
//! text in UTF-8 ── DocumentSplitter ── one document ── parse within a memory limit ── JSONPath ── values
//! ```
//!
//! A body is a sequence of documents: a single document, lines of JSON (NDJSON), or a JSON text
//! sequence (RFC 7464). Each document is searched separately when it is complete, so that the
//! memory depends on the largest document, not on the body.

mod document_memory_budget;
mod document_splitter;
mod memory_bounded_parser;
mod original_number_texts;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;

use serde_json::Value;
use serde_json_path::JsonPath;

use super::page_search::{FoundValue, OnFound};
use crate::{Error, ErrorKind, Result};
use document_splitter::{DocumentSplitter, DocumentStart};
use memory_bounded_parser::DocumentValueCountAndDepth;
pub(crate) use memory_bounded_parser::ParseFailure;
use original_number_texts::NumberTexts;

/// The maximum capacity in bytes that the buffer for the text of a value keeps after a document.
const MAX_KEPT_CAPACITY: usize = 1 << 20;
/// The memory in bytes that a query needs for each node that it visits.
const NODE_SIZE: usize = 2 * size_of::<&Value>();

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
    /// True if a selector of the query can select several nodes: a wildcard, slice, filter or `..`.
    selects_many: bool,
    /// The number of `..` in the query.
    descents: u32,
}

impl JsonPathQuery {
    /// Parses a query. It must begin with `$`.
    ///
    /// # Errors
    /// [`ErrorKind::Setup`]. The message contains the position of the error.
    pub fn new(query: &str) -> Result<Self> {
        let path = JsonPath::parse(query).map_err(|flaw| {
            let remedy = if query.starts_with('$') { "" } else { "; a JSONPath begins with $, as in $.items[*].id" };
            let text = format!("JSONPath {query:?} cannot be used: {flaw}{remedy}");
            Error::new(ErrorKind::Setup, text)
        })?;
        let (selects_many, descents) = multipliers(query);
        Ok(Self { source: query.to_owned(), path, selects_many, descents })
    }

    /// Returns the text of the query, as it was given.
    #[must_use]
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Returns an upper limit, in bytes, on the memory for the nodes that the query selects in a
    /// document with this number of values and this depth. With several `..`, a node may be
    /// selected once for each object and array around it.
    fn node_memory(&self, document: DocumentValueCountAndDepth) -> usize {
        if !self.selects_many {
            return 0;
        }
        let times = document.depth.max(1).saturating_pow(self.descents.saturating_sub(1));
        document.values.saturating_mul(times).saturating_mul(NODE_SIZE)
    }
}

/// Returns whether the query has a wildcard, slice, filter or `..`, and the number of `..` in it.
/// Quoted names in the query are skipped.
fn multipliers(query: &str) -> (bool, u32) {
    let (mut selects_many, mut descents) = (false, 0);
    let mut quote = None;
    let mut bytes = query.bytes().peekable();
    while let Some(byte) = bytes.next() {
        match (byte, quote) {
            (b'\\', Some(_)) => drop(bytes.next()),
            (b'"' | b'\'', None) => quote = Some(byte),
            (byte, Some(open)) if byte == open => quote = None,
            (b'.', None) if bytes.peek() == Some(&b'.') => (selects_many, descents) = (true, descents + 1),
            (b'*' | b':' | b'?', None) => selects_many = true,
            _ => {}
        }
    }
    (selects_many, descents)
}

impl fmt::Debug for JsonPathQuery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "JsonPathQuery({:?})", self.source)
    }
}

/// The JSONPath queries of a search.
pub(super) struct JsonQueries {
    queries: Vec<JsonPathQuery>,
    /// True if the values of strings keep their quotes and escapes.
    is_quoted: bool,
    /// True if empty strings count as values.
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

/// The search for the values of JSONPath queries in one body.
pub(super) struct JsonSearch {
    queries: Arc<JsonQueries>,
    splitter: DocumentSplitter,
    /// The maximum length of a document in bytes. Its values may take three times as much memory.
    memory: usize,
    /// The text of the current value, in the form in which the callback receives it.
    text: Vec<u8>,
}

impl JsonSearch {
    /// Makes a search. `memory` is the maximum length of a document in bytes.
    pub(super) fn new(queries: Arc<JsonQueries>, memory: usize) -> Self {
        Self { queries, splitter: DocumentSplitter::default(), memory, text: Vec::new() }
    }

    pub(super) fn reset(&mut self) {
        self.splitter = DocumentSplitter::default();
    }

    /// Returns the number of bytes of the body that the search keeps.
    pub(super) fn buffered_bytes(&self) -> usize {
        self.splitter.buffered_bytes()
    }

    /// Searches the next piece of the body.
    pub(super) fn push(&mut self, piece: &[u8], on_found: &mut OnFound<'_>) -> Result<()> {
        let Self { queries, splitter, memory, text } = self;
        let memory = *memory;
        splitter.push(piece, &mut |bytes, position| {
            select(queries, &DocumentText { bytes, position, memory }, text, on_found)
        })?;
        if splitter.buffered_bytes() > memory { Err(too_long(splitter.position(), memory)) } else { Ok(()) }
    }

    /// Ends the body, and searches its last document. Fails if that document is incomplete.
    pub(super) fn finish(&mut self, on_found: &mut OnFound<'_>) -> Result<()> {
        let Self { queries, splitter, memory, text } = self;
        let memory = *memory;
        let outcome = splitter
            .finish(&mut |bytes, position| select(queries, &DocumentText { bytes, position, memory }, text, on_found));
        self.reset();
        outcome
    }
}

/// Parses a JSON document whose values take at most `memory` bytes. Calls `use_values` with the
/// value of the document, and with the first value in it that the query selects.
///
/// # Errors
/// The document is not JSON, or its values or the nodes that the query may select need more memory.
pub(crate) fn with_first<T>(
    document: &[u8],
    memory: usize,
    query: &JsonPathQuery,
    use_values: impl FnOnce(&Value, Option<&Value>) -> T,
) -> Result<T, ParseFailure> {
    let mut document = memory_bounded_parser::parse(document, memory)?;
    document.budget.reserve(query.node_memory(document.shape)).map_err(|_| ParseFailure::TooLarge)?;
    let found = query.path.query(&document.value);
    Ok(use_values(&document.value, found.first()))
}

/// The text of a document, its position in the body, and its memory limit.
struct DocumentText<'d> {
    bytes: &'d [u8],
    position: DocumentStart,
    memory: usize,
}

/// Passes on the values selected from one document. Their total size is limited to three times the
/// memory limit of the document, since a selected value may contain other selected values. `text`
/// is a buffer for one value.
fn select(
    queries: &JsonQueries,
    document: &DocumentText<'_>,
    text: &mut Vec<u8>,
    on_found: &mut OnFound<'_>,
) -> Result<()> {
    let selected = pass_values(queries, document, text, on_found);
    text.clear();
    text.shrink_to(MAX_KEPT_CAPACITY);
    selected
}

fn pass_values(
    queries: &JsonQueries,
    document: &DocumentText<'_>,
    text: &mut Vec<u8>,
    on_found: &mut OnFound<'_>,
) -> Result<()> {
    let DocumentText { bytes: source, position, memory } = *document;
    let most = memory.saturating_mul(3);
    let mut parsed = memory_bounded_parser::parse(source, most).map_err(|failure| match failure {
        ParseFailure::TooLarge => too_long(position, memory),
        ParseFailure::Invalid { cause, line, column } => {
            let (line, column) = position.in_body(line, column);
            let message = format!("the body is not JSON: {cause} at line {line} column {column}");
            Error::new(ErrorKind::ContentCoding, message)
        }
    })?;
    let (root, budget) = (&parsed.value, &mut parsed.budget);
    let mut numbers = NumberTexts::new(source, root, parsed.shape.has_repeated_names);
    let mut passed = 0_usize;
    for (index, query) in queries.queries.iter().enumerate() {
        let node_memory = query.node_memory(parsed.shape);
        budget.reserve(node_memory).map_err(|_| too_many_nodes(position, query))?;
        for found in query.path.query(root).iter() {
            let bytes = match found {
                Value::String(string) if !queries.is_quoted => string.as_bytes(),
                other => {
                    text.clear();
                    numbers.write(other, budget, text).map_err(|_| too_long(position, memory))?;
                    &text[..]
                }
            };
            passed = passed.saturating_add(bytes.len());
            if passed > most {
                return Err(too_many_values(position, most));
            }
            if !bytes.is_empty() || queries.keeps_empty {
                on_found(FoundValue { query: index, bytes, base: None })?;
            }
        }
        budget.release(node_memory);
    }
    Ok(())
}

fn too_many_nodes(position: DocumentStart, query: &JsonPathQuery) -> Error {
    let (line, column) = position.in_body(1, 1);
    let message = format!(
        "the nodes that {} may select in the JSON document at line {line} column {column} take too much memory; use \
         fewer `..`, or raise --max-memory",
        query.source
    );
    Error::new(ErrorKind::TooLarge, message)
}

fn too_many_values(position: DocumentStart, most: usize) -> Error {
    let (line, column) = position.in_body(1, 1);
    let message = format!(
        "the values selected from the JSON document at line {line} column {column} take more than {} MiB; select fewer \
         of the values that contain others, or raise --max-memory",
        most.div_ceil(1 << 20)
    );
    Error::new(ErrorKind::TooLarge, message)
}

fn too_long(position: DocumentStart, memory: usize) -> Error {
    let (line, column) = position.in_body(1, 1);
    let message = format!(
        "the JSON document at line {line} column {column} takes more than {} MiB; raise --max-memory to four times \
         its size or more, or ask the server for lines of JSON",
        memory.div_ceil(1 << 20)
    );
    Error::new(ErrorKind::TooLarge, message)
}
