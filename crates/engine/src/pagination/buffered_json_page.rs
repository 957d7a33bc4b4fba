//! The content of a JSON page. It is kept in memory until it is complete and a JSONPath can search
//! it.

use std::fmt;
use std::sync::Arc;

use haul_policy::pagination::NextPageValue;
use serde::de::{DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::extraction::{JsonPathQuery, ParseFailure, with_first};
use crate::{Error, ErrorKind, Result};

/// The maximum size, in bytes, of a JSON page that is kept in memory for the search.
pub(super) const MAX_PAGE: usize = 16 << 20;

/// The maximum memory, in bytes, for the parsed JSON values of a page while a JSONPath is searched
/// in them: three times the page's maximum size.
const MAX_VALUES: usize = 3 * MAX_PAGE;

/// The JSONPath query for the value that determines the URL of the next page.
#[derive(Debug, Clone)]
pub(super) struct JsonPageQuery {
    path: Arc<JsonPathQuery>,
}

impl JsonPageQuery {
    pub(super) fn new(path: &str) -> Result<Self> {
        Ok(Self { path: Arc::new(JsonPathQuery::new(path)?) })
    }
}

/// The received part of a JSON page, in which a JSONPath is searched when the page is complete.
#[derive(Debug)]
pub(super) struct ReceivedJsonPage {
    query: JsonPageQuery,
    content: Vec<u8>,
    is_too_large: bool,
    /// The value that the JSONPath selects, or the reason why the page cannot be searched; `None`
    /// before the page is complete.
    found: Option<Result<NextPageValue>>,
}

impl ReceivedJsonPage {
    pub(super) fn new(query: &JsonPageQuery) -> Self {
        Self { query: query.clone(), content: Vec::new(), is_too_large: false, found: None }
    }

    /// Returns the number of bytes of the page that are kept in memory.
    pub(super) fn buffered_bytes(&self) -> usize {
        self.content.len()
    }

    /// Adds a piece of the content. If the page becomes larger than [`MAX_PAGE`], drops all of it.
    pub(super) fn push(&mut self, piece: &[u8]) {
        if self.is_too_large {
            return;
        }
        if self.content.len() + piece.len() > MAX_PAGE {
            (self.is_too_large, self.content) = (true, Vec::new());
        } else {
            self.content.extend_from_slice(piece);
        }
    }

    /// Discards the content of the page, because the page will be delivered again from the
    /// beginning.
    pub(super) fn restart(&mut self) {
        (self.content, self.is_too_large, self.found) = (Vec::new(), false, None);
    }

    /// Searches the complete page for the value, and then frees the memory of the page's content.
    pub(super) fn finish_content(&mut self) {
        if self.found.is_none() {
            let content = std::mem::take(&mut self.content);
            self.found = Some(self.value(&content));
        }
    }

    /// Returns the first value that the path selects in the page. Call this when the page is
    /// complete.
    ///
    /// # Errors
    /// The content is too large to be searched, or it is not JSON.
    pub(super) fn finish(mut self) -> Result<NextPageValue> {
        self.finish_content();
        self.found.unwrap_or(Ok(NextPageValue::None))
    }

    fn value(&self, content: &[u8]) -> Result<NextPageValue> {
        if self.is_too_large {
            return Err(too_large("the page has more than 16 MiB"));
        }
        let content = content.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(content);
        if content.trim_ascii().is_empty() {
            return Ok(NextPageValue::None);
        }
        let first = with_first(content, MAX_VALUES, &self.query.path, |page, found| {
            found.map_or(NextPageValue::None, |found| page_value(page, found, content))
        });
        first.map_err(|failure| match failure {
            ParseFailure::TooLarge => too_large("its values take more than 48 MiB"),
            ParseFailure::Invalid { cause, line, column } => {
                let message = format!(
                    "the page is not JSON, in which the next page is looked for: {cause} at line {line} column {column}"
                );
                Error::new(ErrorKind::ContentCoding, message)
            }
        })
    }
}

/// Converts `found`, a JSON value in `page`, to a [`NextPageValue`]. `content` is the text of
/// `page`, from which a number is copied with all its digits.
fn page_value(page: &Value, found: &Value, content: &[u8]) -> NextPageValue {
    match found {
        Value::Null | Value::Bool(false) => NextPageValue::None,
        Value::String(text) if text.is_empty() => NextPageValue::None,
        Value::String(text) => NextPageValue::Text(text.clone()),
        Value::Number(number) => {
            let text = text_at(page, found, content);
            NextPageValue::Number(text.map_or_else(|| number.to_string(), str::to_owned))
        }
        Value::Bool(true) => NextPageValue::True,
        Value::Array(_) => NextPageValue::Unusable("an array"),
        Value::Object(_) => NextPageValue::Unusable("an object"),
    }
}

fn too_large(cause: &str) -> Error {
    let message =
        format!("the page is too large to look for the next one in it: {cause}; ask the server for smaller pages");
    Error::new(ErrorKind::TooLarge, message)
}

/// Returns the original JSON text of `value`, which is a part of the page. `content` is the text of
/// the whole page, and `page` the parsed page. Returns `None` if `value` is not a part of `page`.
/// The original text of a number has all digits; [`Value`] may have lost some.
fn text_at<'c>(page: &Value, value: &Value, content: &'c [u8]) -> Option<&'c str> {
    let mut steps = Vec::new();
    if !find(page, value, &mut steps) {
        return None;
    }
    let mut text: &RawValue = serde_json::from_slice(content).ok()?;
    for step in steps.into_iter().rev() {
        text = step.deserialize(&mut serde_json::Deserializer::from_str(text.get())).ok()??;
    }
    Some(text.get())
}

/// Finds the path from `page` to `value`, and appends its steps to `steps`, the last step first.
/// Returns false if `value` is not in `page`.
fn find<'v>(page: &'v Value, value: &Value, steps: &mut Vec<JsonPathStep<'v>>) -> bool {
    if std::ptr::eq(page, value) {
        return true;
    }
    let step = match page {
        Value::Array(list) => {
            let index = list.iter().position(|element| find(element, value, steps));
            index.map(JsonPathStep::Index)
        }
        Value::Object(members) => {
            let mut found = None;
            for (name, member) in members {
                if find(member, value, steps) {
                    found = Some(JsonPathStep::Name(name));
                    break;
                }
            }
            found
        }
        _ => None,
    };
    let is_found = step.is_some();
    steps.extend(step);
    is_found
}

/// A step of the path from a JSON value to a value inside it: an array index or an object key. As a
/// [`DeserializeSeed`], a step returns the part of the JSON text that belongs to the inner value.
#[derive(Clone, Copy, Debug)]
enum JsonPathStep<'v> {
    Index(usize),
    Name(&'v str),
}

impl<'de> DeserializeSeed<'de> for JsonPathStep<'_> {
    type Value = Option<&'de RawValue>;

    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for JsonPathStep<'_> {
    type Value = Option<&'de RawValue>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array or object")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Self::Value, A::Error> {
        let JsonPathStep::Index(index) = self else { return Ok(None) };
        for _ in 0..index {
            elements.next_element::<IgnoredAny>()?;
        }
        let found = elements.next_element()?;
        while elements.next_element::<IgnoredAny>()?.is_some() {}
        Ok(found)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Self::Value, A::Error> {
        let mut found = None;
        while let Some(name) = members.next_key::<String>()? {
            let text = members.next_value()?;
            // The last of several members with one name counts.
            if matches!(self, JsonPathStep::Name(wanted) if wanted == name) {
                found = Some(text);
            }
        }
        Ok(found)
    }
}
