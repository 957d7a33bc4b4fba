//! Splits a body into its JSON documents, while it arrives in pieces. The documents are not parsed.

use memchr::{memchr_iter, memchr2};

use crate::Result;

/// The byte before each document of a JSON text sequence (RFC 7464).
const RECORD_SEPARATOR: u8 = 0x1e;

/// The position in a body at which one of its JSON documents begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct DocumentStart {
    /// The number of line feeds in the body before the document.
    lines: u64,
    /// The number of bytes between the last line feed before the document and the document.
    columns: u64,
}

impl DocumentStart {
    /// Converts a line and column in the document into a line and column in the body. All of them
    /// count from 1.
    pub(super) fn in_body(self, line: usize, column: usize) -> (u64, u64) {
        let before = if line <= 1 { self.columns } else { 0 };
        (self.lines + line.max(1) as u64, before + column as u64)
    }

    fn advance_over(&mut self, bytes: &[u8]) {
        let mut last = None;
        for at in memchr_iter(b'\n', bytes) {
            self.lines += 1;
            last = Some(at);
        }
        self.columns = match last {
            Some(at) => (bytes.len() - at - 1) as u64,
            None => self.columns + bytes.len() as u64,
        };
    }
}

/// The position of the splitter's next byte: between two documents, or in a part of a document.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum SplitterState {
    /// The next byte is between two documents.
    #[default]
    Between,
    /// The next byte is in an object or array. `depth` is the nesting depth, from 1.
    Nested { depth: u64 },
    /// The next byte is in a string. `depth` is the nesting depth; 0 if the string is the whole
    /// document. `is_escaped` is true after a backslash.
    String { depth: u64, is_escaped: bool },
    /// The next byte is in a number, a literal, or text that is not JSON.
    Scalar,
}

/// The callback that receives a document and its position in the body.
type OnDocument<'f> = dyn FnMut(&[u8], DocumentStart) -> Result<()> + 'f;

/// The splitter of one body into its JSON documents.
#[derive(Debug, Default)]
pub(super) struct DocumentSplitter {
    state: SplitterState,
    /// The beginning of a document that continues in the next piece; empty if there is none.
    held: Vec<u8>,
    /// The line and column in the body at which the document in `held` begins. If `held` is empty,
    /// the position of the next byte of the body.
    position: DocumentStart,
}

impl DocumentSplitter {
    pub(super) fn buffered_bytes(&self) -> usize {
        self.held.len()
    }

    /// Returns the position in the body at which the incomplete document begins.
    pub(super) fn position(&self) -> DocumentStart {
        self.position
    }

    /// Passes the documents that end in this piece to `on_document`.
    pub(super) fn push(&mut self, piece: &[u8], on_document: &mut OnDocument<'_>) -> Result<()> {
        let mut rest = piece;
        while !rest.is_empty() {
            if self.state == SplitterState::Between {
                let is_between = |byte: &u8| matches!(*byte, b' ' | b'\t' | b'\n' | b'\r' | RECORD_SEPARATOR);
                let blanks = rest.iter().position(|byte| !is_between(byte)).unwrap_or(rest.len());
                self.position.advance_over(&rest[..blanks]);
                rest = &rest[blanks..];
                let Some(first) = rest.first() else { break };
                self.state = match first {
                    b'{' | b'[' => SplitterState::Nested { depth: 0 },
                    b'"' => SplitterState::Nested { depth: 0 },
                    _ => SplitterState::Scalar,
                };
            }
            let Some(end) = self.end_in(rest) else {
                self.held.extend_from_slice(rest);
                break;
            };
            let (part, after) = rest.split_at(end);
            rest = after;
            self.state = SplitterState::Between;
            if self.held.is_empty() {
                on_document(part, self.position)?;
                self.position.advance_over(part);
            } else {
                self.held.extend_from_slice(part);
                let document = std::mem::take(&mut self.held);
                on_document(&document, self.position)?;
                self.position.advance_over(&document);
                // Documents are often of similar size.
                self.held = document;
                self.held.clear();
                self.held.shrink_to(64 << 10);
            }
        }
        Ok(())
    }

    /// Ends the body. An incomplete document is passed to `on_document`, too.
    pub(super) fn finish(&mut self, on_document: &mut OnDocument<'_>) -> Result<()> {
        let held = std::mem::take(&mut self.held);
        if held.is_empty() { Ok(()) } else { on_document(&held, self.position) }
    }

    /// Continues the current document with `bytes`. Returns the index in `bytes` after the
    /// document's end, or `None` if it does not end there.
    fn end_in(&mut self, bytes: &[u8]) -> Option<usize> {
        let mut at = 0;
        while at < bytes.len() {
            match self.state {
                SplitterState::Between => return Some(at),
                SplitterState::Scalar => {
                    let ends = |byte: &u8| matches!(*byte, b' ' | b'\t' | b'\n' | b'\r' | RECORD_SEPARATOR);
                    return bytes[at..].iter().position(ends).map(|length| at + length);
                }
                SplitterState::String { depth, is_escaped: true } => {
                    at += 1;
                    self.state = SplitterState::String { depth, is_escaped: false };
                }
                SplitterState::String { depth, is_escaped: false } => {
                    at += memchr2(b'"', b'\\', &bytes[at..])? + 1;
                    if bytes[at - 1] == b'\\' {
                        self.state = SplitterState::String { depth, is_escaped: true };
                    } else if depth == 0 {
                        return Some(at);
                    } else {
                        self.state = SplitterState::Nested { depth };
                    }
                }
                SplitterState::Nested { mut depth } => {
                    let found = bytes[at..].iter().position(|byte| matches!(byte, b'"' | b'{' | b'[' | b'}' | b']'))?;
                    at += found + 1;
                    match bytes[at - 1] {
                        b'"' => {
                            self.state = SplitterState::String { depth, is_escaped: false };
                            continue;
                        }
                        b'{' | b'[' => depth += 1,
                        _ => depth -= 1,
                    }
                    if depth == 0 {
                        return Some(at);
                    }
                    self.state = SplitterState::Nested { depth };
                }
            }
        }
        None
    }
}
