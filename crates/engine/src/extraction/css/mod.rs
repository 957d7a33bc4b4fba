//! CSS selectors. Whether an element matches is decided at its start tag, while the page is read
//! once.
//!
//! [`parse`] parses the text of a query. [`SelectorProgram`] matches the selectors of all queries
//! against the elements of a page in document order, without a tree.
//!
//! Not supported: selectors that depend on the page after the start tag (`:has()`, `:last-child`,
//! `:only-child`, `:nth-last-child()`, `:empty` and similar ones), and namespaces.

mod parse;
#[cfg(test)]
mod parser_tests;
mod program;

use std::fmt;

pub(super) use program::{ElementAttributes, ElementStart, SelectorProgram, SelectorState};

use crate::{Error, ErrorKind, Result};

/// A query for values in HTML elements: a CSS selector, and the attribute whose value is extracted.
/// Without an attribute, the text of the element is extracted.
///
/// ```
/// use haul::extraction::CssQuery;
///
/// assert_eq!(CssQuery::new("a.title@href")?.attribute(), Some("href"));
/// assert_eq!(CssQuery::new("h1, h2")?.attribute(), None);
/// assert!(CssQuery::new("p:last-child").is_err());
/// # Ok::<(), haul::Error>(())
/// ```
#[derive(Clone)]
pub struct CssQuery {
    source: String,
    selectors: Vec<ComplexSelector>,
    attribute: Option<Box<str>>,
}

impl CssQuery {
    /// Parses a query: `SELECTOR` or `SELECTOR@ATTRIBUTE`. A list of selectors (`h1, h2`) has one
    /// attribute, at its end.
    ///
    /// # Errors
    /// [`ErrorKind::Setup`]. The message contains the position of the error and, if there is one, a
    /// remedy.
    pub fn new(query: &str) -> Result<Self> {
        let (selectors, attribute) = parse::parse_query(query)
            .map_err(|flaw| Error::new(ErrorKind::Setup, format!("CSS selector {query:?} cannot be used: {flaw}")))?;
        Ok(Self { source: query.to_owned(), selectors, attribute })
    }

    /// Returns the text of the query, as it was given.
    #[must_use]
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Returns the lower-case name of the attribute whose value is extracted. Returns `None` if the
    /// text of the element is extracted.
    #[must_use]
    pub fn attribute(&self) -> Option<&str> {
        self.attribute.as_deref()
    }
}

impl fmt::Debug for CssQuery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CssQuery({:?})", self.source)
    }
}

/// A complex selector: a sequence of compound selectors, each with the combinator that leads to the
/// next one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct ComplexSelector {
    compounds: Vec<(CompoundSelector, Option<Combinator>)>,
}

/// The relation of an element to the element that the next compound selector describes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Combinator {
    /// A blank: the next element is anywhere inside this element.
    Descendant,
    /// `>`: the next element is a child of this element.
    Child,
    /// `+`: the next element is the sibling directly after this element.
    NextSibling,
    /// `~`: the next element is a later sibling.
    LaterSibling,
}

/// The conditions of a compound selector, which all apply to the same element.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct CompoundSelector {
    /// The lower-case name of the element; `None` if any name matches.
    name: Option<Box<str>>,
    conditions: Vec<Condition>,
}

/// A condition on one element other than its name.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Condition {
    Id(Box<str>),
    Class(Box<str>),
    Attribute(AttributeCondition),
    /// `:root`: the element is the root of the document.
    Root,
    /// `:nth-child(An+B)`, or `:nth-of-type(An+B)` if `of_type` is true.
    Nth {
        step: i32,
        offset: i32,
        of_type: bool,
    },
    /// `:is()` or `:where()`: the element matches at least one of these selectors.
    AnyOf(Vec<ComplexSelector>),
    /// `:not()`: the element matches none of these selectors.
    NoneOf(Vec<ComplexSelector>),
}

/// A condition on an attribute of an element.
#[derive(Clone, Debug, PartialEq, Eq)]
struct AttributeCondition {
    /// The lower-case name of the attribute.
    name: Box<str>,
    relation: ValueRelation,
    value: Box<str>,
    /// True if upper and lower case of ASCII letters in the value are equal.
    ignores_case: bool,
}

/// The relation of an attribute's value to the value in the selector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ValueRelation {
    /// `[name]`: the attribute exists.
    Exists,
    /// `=`: the attribute's value is equal to the selector's value.
    Equals,
    /// `~=`: one of the words of the attribute's value is equal to the selector's value.
    HasWord,
    /// `|=`: the attribute's value is the selector's value, or begins with it and a hyphen.
    HasLanguage,
    /// `^=`: the attribute's value starts with the selector's value.
    StartsWith,
    /// `$=`: the attribute's value ends with the selector's value.
    EndsWith,
    /// `*=`: the attribute's value contains the selector's value.
    Contains,
}

impl AttributeCondition {
    /// Returns true if `value`, the attribute's value with decoded character references, meets the
    /// condition.
    fn accepts(&self, value: &[u8]) -> bool {
        if self.relation == ValueRelation::Exists {
            return true;
        }
        let lower;
        let value = if self.ignores_case {
            lower = value.to_ascii_lowercase();
            &lower
        } else {
            value
        };
        let wanted = self.value.as_bytes();
        match self.relation {
            ValueRelation::Exists => true,
            ValueRelation::Equals => value == wanted,
            ValueRelation::HasWord => has_word(value, wanted),
            ValueRelation::HasLanguage => {
                value.strip_prefix(wanted).is_some_and(|rest| rest.is_empty() || rest.starts_with(b"-"))
            }
            ValueRelation::StartsWith => !wanted.is_empty() && value.starts_with(wanted),
            ValueRelation::EndsWith => !wanted.is_empty() && value.ends_with(wanted),
            ValueRelation::Contains => !wanted.is_empty() && memchr::memmem::find(value, wanted).is_some(),
        }
    }
}

/// Returns true if `word` is one of the words in `text`. Words are separated by white space.
fn has_word(text: &[u8], word: &[u8]) -> bool {
    !word.is_empty() && text.split(|byte| is_white_space(*byte)).any(|found| found == word)
}

/// Returns true for the white space of CSS and HTML.
fn is_white_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | 0x0c)
}
