//! The content of a JSON page, which is kept as a whole until a JSONPath can search it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use haul_policy::pagination::PageValue;
use serde_json::Value;
use serde_json_path::JsonPath;

use crate::{Error, ErrorKind, Result};

/// The maximum number of bytes of a page.
pub(super) const MAX_PAGE: usize = 16 << 20;

/// The maximum number of bytes of all pages of a [`Pagination`](super::Pagination) at a time.
pub(super) const MAX_PAGES_MEMORY: usize = 64 << 20;

/// A JSONPath, and the memory of the pages that it searches.
#[derive(Debug, Clone)]
pub(super) struct JsonPageQuery {
    path: Arc<JsonPath>,
    /// The number of bytes of pages that are kept at present.
    pub(super) kept: Arc<AtomicUsize>,
}

impl JsonPageQuery {
    pub(super) fn new(path: &str) -> Result<Self> {
        let path = JsonPath::parse(path)
            .map_err(|error| Error::with_source(ErrorKind::Setup, "the JSONPath is invalid", error))?;
        Ok(Self { path: Arc::new(path), kept: Arc::default() })
    }
}

/// The content of one page so far.
#[derive(Debug)]
pub(super) struct JsonPage {
    query: JsonPageQuery,
    content: Vec<u8>,
    is_too_large: bool,
}

impl JsonPage {
    pub(super) fn new(query: &JsonPageQuery) -> Self {
        Self { query: query.clone(), content: Vec::new(), is_too_large: false }
    }

    /// Adds a piece of the content. If the page is too large, drops all of it.
    pub(super) fn push(&mut self, piece: &[u8]) {
        if self.is_too_large || piece.is_empty() {
            return;
        }
        let all = self.query.kept.fetch_add(piece.len(), Ordering::Relaxed) + piece.len();
        self.is_too_large = self.content.len() + piece.len() > MAX_PAGE || all > MAX_PAGES_MEMORY;
        if self.is_too_large {
            self.query.kept.fetch_sub(piece.len(), Ordering::Relaxed);
            self.release();
        } else {
            self.content.extend_from_slice(piece);
        }
    }

    /// Forgets the content so far, since it is delivered from the beginning again.
    pub(super) fn restart(&mut self) {
        self.release();
        self.is_too_large = false;
    }

    fn release(&mut self) {
        self.query.kept.fetch_sub(self.content.len(), Ordering::Relaxed);
        self.content = Vec::new();
    }

    /// Returns the first value that the path selects in the page, which is complete.
    ///
    /// # Errors
    /// The content is too large to be searched, or it is not JSON.
    pub(super) fn value(&self) -> Result<PageValue> {
        if self.is_too_large {
            let message = format!(
                "the page is too large to look for the next one in it: more than {MAX_PAGE} bytes, or {MAX_PAGES_MEMORY} \
                 in all pages at a time"
            );
            return Err(Error::new(ErrorKind::TooLarge, message));
        }
        let content = self.content.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(&self.content);
        if content.trim_ascii().is_empty() {
            return Ok(PageValue::None);
        }
        let page: Value = serde_json::from_slice(content).map_err(|error| {
            let message = "the page is not JSON, in which the next page is looked for";
            Error::with_source(ErrorKind::ContentCoding, message, error)
        })?;
        Ok(match self.query.path.query(&page).first() {
            None | Some(Value::Null | Value::Bool(false)) => PageValue::None,
            Some(Value::String(text)) if text.is_empty() => PageValue::None,
            Some(Value::String(text)) => PageValue::Text(text.clone()),
            Some(Value::Number(number)) => PageValue::Number(number.to_string()),
            Some(Value::Bool(true)) => PageValue::True,
            Some(Value::Array(_)) => PageValue::Unusable("an array"),
            Some(Value::Object(_)) => PageValue::Unusable("an object"),
        })
    }
}

impl Drop for JsonPage {
    fn drop(&mut self) {
        self.release();
    }
}
