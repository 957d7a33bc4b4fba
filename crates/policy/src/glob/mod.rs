//! curl's URL globs: `[1-3]`, `[001-100]`, `[a-z]`, `[0-100:10]`, `{a,b}`, each optionally named:
//! `{<name>a,b}`.
//!
//! Expansions are made one at a time: `[1-1000000000]` costs no memory. The last glob varies
//! fastest. `\[`, `\]`, `\{`, `\}` stand for the characters themselves; a bracketed IPv6 address
//! and `[]` are kept.
//!
//! ```
//! use haul_policy::glob::{UrlGlob, fill_template};
//!
//! let glob = UrlGlob::parse("http://h/[08-10]/{a,b}")?;
//! assert_eq!(glob.count(), Some(6));
//! let second = glob.iter().nth(1).unwrap();
//! assert_eq!(second.url, "http://h/08/b");
//! assert_eq!(fill_template("#2_#1.html", &second.parts), "b_08.html");
//!
//! let named = UrlGlob::parse("http://h/[<page>1-3]")?;
//! assert_eq!(fill_template("p#<page>", &named.iter().next().unwrap().parts), "p1");
//! # Ok::<(), haul_policy::glob::GlobError>(())
//! ```

mod parse;
#[cfg(test)]
mod tests;

use core::fmt;
use std::sync::Arc;

use crate::file_names_by_system::OsFamily;
use crate::filename;

/// The largest number of decimal digits that a `u64` has.
const MAX_DIGITS: usize = 20;

/// A parsed URL with any number of globs, such as `[1-3]` or `{a,b}`. A clone only increments a
/// reference count.
#[derive(Clone, Debug)]
pub struct UrlGlob {
    pieces: Arc<[GlobPiece]>,
}

/// A part of a parsed URL: a glob, or the text between two globs.
#[derive(Debug)]
struct GlobPiece {
    kind: GlobKind,
    /// The name by which an output name refers to the glob (`#<name>`). `None` for a glob without a
    /// name.
    name: Option<String>,
}

/// The content of a part of a parsed URL: literal text, or the values of a glob.
#[derive(Debug)]
enum GlobKind {
    Text(String),
    Set(Vec<String>),
    Chars {
        from: u8,
        last: u64,
        step: u8,
    },
    /// A range of numbers. Each number is padded with zeros to `width` digits.
    Numbers {
        from: u64,
        last: u64,
        step: u64,
        width: usize,
    },
}

/// One URL that a glob expands to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExpandedGlobUrl {
    /// The URL, in which each glob is replaced by a value.
    pub url: String,
    /// The values that replaced the globs in this URL. They fill the placeholders in an output
    /// name.
    pub parts: GlobValues,
}

/// The values of all globs in one expansion of a URL.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GlobValues {
    /// The values of the globs in order, for `#1`, `#2` … in an output name.
    numbered: Vec<String>,
    /// The names and values of the named globs, for `#<name>` in an output name. If two globs have
    /// the same name, the first one counts.
    named: Vec<(String, String)>,
}

impl GlobValues {
    /// Returns the values of the globs, in the order of the globs in the URL.
    pub fn by_number(&self) -> &[String] {
        &self.numbered
    }

    /// Returns these values with the named values of another URL added. A name that exists already
    /// keeps its value.
    #[must_use]
    pub fn with_named(mut self, other: &GlobValues) -> GlobValues {
        self.named.extend_from_slice(&other.named);
        self
    }

    fn by_name(&self, name: &str) -> Option<&String> {
        self.named.iter().find(|(known, _)| known == name).map(|(_, part)| part)
    }
}

/// The reason why a glob was refused. curl's exit code is 3.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GlobError {
    /// The kind of the mistake.
    pub kind: GlobErrorKind,
    /// The position of the mistake in the text, counted from 1 as in curl.
    pub position: usize,
}

/// The kind of a mistake in a glob.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum GlobErrorKind {
    /// A `]` or `}` has no opening bracket before it.
    UnmatchedClose,
    /// A `{` has no closing `}`.
    UnmatchedBrace,
    /// A `{` or `[` occurs within braces.
    NestedBrace,
    /// A `]` occurs within braces.
    UnexpectedBracket,
    /// The braces are empty: `{}`.
    EmptySet,
    /// `[` is followed by neither a letter nor a digit.
    RangeSpecification,
    /// A range is descending or lacks its `]`, or its step is zero or longer than the range.
    Range,
    /// The sum of the last value of a range and its step would exceed the largest number.
    RangeEnd,
    /// The URL has more pieces (globs, and texts between them) than curl allows.
    TooMany,
    /// Two globs have the same name.
    DuplicateName,
}

impl UrlGlob {
    /// Parses a URL with or without globs. A URL without globs has one expansion, itself.
    pub fn parse(text: &str) -> Result<UrlGlob, GlobError> {
        Ok(UrlGlob { pieces: parse::parse_pieces(text)?.into() })
    }

    /// Iterates over all URLs to which the globs expand. Each URL is made on demand. The iterator
    /// owns its data.
    pub fn iter(&self) -> GlobExpansions {
        GlobExpansions { pieces: self.pieces.clone(), at: vec![0; self.pieces.len()], done: false, length: 0 }
    }

    /// Returns the number of URLs to which the globs expand; `None` if it does not fit into a
    /// `u64`.
    pub fn count(&self) -> Option<u64> {
        self.pieces.iter().try_fold(1u64, |product, piece| product.checked_mul(piece.last_index().checked_add(1)?))
    }

    /// Returns `true` if the URL contains no glob.
    pub fn has_no_glob(&self) -> bool {
        self.pieces.iter().all(|piece| matches!(piece.kind, GlobKind::Text(_)))
    }

    /// Returns `true` if a glob of the URL has this name.
    pub fn has_name(&self, name: &str) -> bool {
        self.pieces.iter().any(|piece| piece.name.as_deref() == Some(name))
    }
}

impl IntoIterator for &UrlGlob {
    type Item = ExpandedGlobUrl;
    type IntoIter = GlobExpansions;

    fn into_iter(self) -> GlobExpansions {
        self.iter()
    }
}

impl GlobPiece {
    /// Returns the index of the glob's last value, counted from 0.
    fn last_index(&self) -> u64 {
        match &self.kind {
            GlobKind::Text(_) => 0,
            GlobKind::Set(elements) => elements.len() as u64 - 1,
            GlobKind::Chars { last, .. } | GlobKind::Numbers { last, .. } => *last,
        }
    }

    fn append_value(&self, index: u64, out: &mut String) {
        match &self.kind {
            GlobKind::Text(text) => out.push_str(text),
            GlobKind::Set(elements) => out.push_str(&elements[index as usize]),
            GlobKind::Chars { from, step, .. } => out.push(char::from(from + index as u8 * step)),
            GlobKind::Numbers { from, step, width, .. } => {
                push_number(out, from + index * step, *width);
            }
        }
    }
}

/// Appends a number, padded with zeros to `width` digits.
fn push_number(out: &mut String, number: u64, width: usize) {
    let (mut digits, mut begin, mut rest) = ([b'0'; MAX_DIGITS], MAX_DIGITS, number);
    loop {
        begin -= 1;
        digits[begin] += (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    out.extend(core::iter::repeat_n('0', width.saturating_sub(MAX_DIGITS - begin)));
    out.extend(digits[begin..].iter().map(|digit| char::from(*digit)));
}

/// An iterator over the expansions of a [`UrlGlob`]; the last glob varies fastest.
#[derive(Clone, Debug)]
pub struct GlobExpansions {
    pieces: Arc<[GlobPiece]>,
    at: Vec<u64>,
    done: bool,
    /// The length in bytes of the URL made last. The next URL is allocated with this capacity.
    length: usize,
}

impl GlobExpansions {
    /// Returns the URL of the next expansion, without the values of its globs; `None` after the
    /// last one.
    pub fn next_url(&mut self) -> Option<String> {
        self.expand(|_, _| {})
    }

    /// Returns the URL of the next expansion; `None` after the last one. Calls `on_value` with each
    /// glob and its value.
    fn expand(&mut self, mut on_value: impl FnMut(&GlobPiece, &str)) -> Option<String> {
        if self.done {
            return None;
        }
        let mut url = String::with_capacity(self.length + 1);
        for (piece, at) in self.pieces.iter().zip(&self.at) {
            let start = url.len();
            piece.append_value(*at, &mut url);
            if !matches!(piece.kind, GlobKind::Text(_)) {
                on_value(piece, &url[start..]);
            }
        }
        self.length = url.len();
        self.advance();
        Some(url)
    }

    fn advance(&mut self) {
        for (piece, at) in self.pieces.iter().zip(&mut self.at).rev() {
            if *at < piece.last_index() {
                *at += 1;
                return;
            }
            *at = 0;
        }
        self.done = true;
    }
}

impl Iterator for GlobExpansions {
    type Item = ExpandedGlobUrl;

    fn next(&mut self) -> Option<ExpandedGlobUrl> {
        let mut parts = GlobValues::default();
        let url = self.expand(|piece, value| {
            if let Some(name) = &piece.name {
                parts.named.push((name.clone(), value.to_owned()));
            }
            parts.numbered.push(value.to_owned());
        })?;
        Some(ExpandedGlobUrl { url, parts })
    }
}

/// Replaces `#1`, `#2` … and `#<name>` in an output name by the values of the globs. A placeholder
/// whose number or name belongs to no glob stays unchanged.
pub fn fill_template(template: &str, parts: &GlobValues) -> String {
    let mut out = String::with_capacity(template.len());
    let mut rest = template;
    while let Some(hash) = rest.find('#') {
        let (before, after) = (&rest[..hash], &rest[hash + 1..]);
        out.push_str(before);
        let digits = after.len() - after.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let numbered = || after[..digits].parse::<usize>().ok().and_then(|n| parts.numbered.get(n.checked_sub(1)?));
        let (part, length) = match parse::parse_name(after) {
            Some((name, length)) => (parts.by_name(name), length),
            None => (numbered(), digits),
        };
        match part {
            Some(part) => {
                out.push_str(part);
                rest = &after[length..];
            }
            None => {
                out.push('#');
                rest = after;
            }
        }
    }
    out.push_str(rest);
    out
}

/// Replaces the placeholders in an output name that follows `--then`. `{}`, `#1` and each `#<name>`
/// become `value`, the text from which the URL was made.
///
/// The value never leads to another directory. Slashes, backslashes and deceptive characters in it
/// become `_`, and so does a dot at the beginning of the name of a file or directory. `family` decides
/// where such a name begins: on Windows also after a backslash or a drive.
///
/// ```
/// use haul_policy::glob::fill_by_value;
/// use haul_policy::file_names_by_system::OsFamily::{Unix, Windows};
///
/// assert_eq!(fill_by_value(Unix, b"d/{}-#1.txt", b"a/b"), b"d/a_b-a_b.txt");
/// assert_eq!(fill_by_value(Unix, b"d/{}", b"../x"), b"d/_._x");
/// assert_eq!(fill_by_value(Windows, b"d\\{}\\x", b".."), b"d\\_.\\x");
/// ```
pub fn fill_by_value(family: OsFamily, template: &[u8], value: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(template.len() + value.len());
    let mut rest = template;
    while let Some(&byte) = rest.first() {
        let length = match placeholder(rest) {
            Some((_, length)) => {
                let begins = out[family.last_component_start(&out)..].iter().all(|byte| *byte == b'.');
                filename::push_with_safe_characters(&mut out, value, begins);
                length
            }
            None => {
                out.push(byte);
                1
            }
        };
        rest = &rest[length..];
    }
    out
}

/// A placeholder in an output name that follows `--then`. Every placeholder is replaced by the same
/// value: the text from which the URL was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValuePlaceholder<'t> {
    /// The placeholder `{}`.
    Value,
    /// The placeholder `#1`, `#2` …, with its digits.
    Number(&'t str),
    /// The placeholder `#<name>`, with its name.
    Name(&'t str),
}

/// Iterates over the placeholders in an output name that follows `--then`.
pub fn placeholders(template: &[u8]) -> impl Iterator<Item = ValuePlaceholder<'_>> {
    (0..template.len()).filter_map(|at| placeholder(&template[at..]).map(|(found, _)| found))
}

/// Returns the placeholder at the start of `text`, and its length in bytes. Returns `None` if there
/// is none.
fn placeholder(text: &[u8]) -> Option<(ValuePlaceholder<'_>, usize)> {
    if text.starts_with(b"{}") {
        return Some((ValuePlaceholder::Value, 2));
    }
    let after = text.strip_prefix(b"#")?;
    let digits = after.iter().take_while(|byte| byte.is_ascii_digit()).count();
    if digits > 0 {
        return Some((ValuePlaceholder::Number(std::str::from_utf8(&after[..digits]).ok()?), digits + 1));
    }
    let end = after.iter().position(|&byte| byte == b'>')?;
    let (name, length) = parse::parse_name(std::str::from_utf8(&after[..=end]).ok()?)?;
    Some((ValuePlaceholder::Name(name), length + 1))
}

/// Returns the glob names in an output name (`#<name>`), each with the offset after its
/// placeholder.
pub fn template_names(template: &str) -> impl Iterator<Item = (&str, usize)> {
    template.match_indices('#').filter_map(|(hash, _)| {
        let (name, length) = parse::parse_name(&template[hash + 1..])?;
        Some((name, hash + 1 + length))
    })
}

impl fmt::Display for GlobError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.kind {
            GlobErrorKind::UnmatchedClose => "unmatched close brace/bracket",
            GlobErrorKind::UnmatchedBrace => "unmatched brace",
            GlobErrorKind::NestedBrace => "nested brace",
            GlobErrorKind::UnexpectedBracket => "unexpected close bracket",
            GlobErrorKind::EmptySet => "empty string within braces",
            GlobErrorKind::RangeSpecification => "bad range specification",
            GlobErrorKind::Range => "bad range",
            GlobErrorKind::RangeEnd => "range end/step overflow",
            GlobErrorKind::TooMany => "too many {} sets",
            GlobErrorKind::DuplicateName => "Duplicate glob name",
        };
        write!(f, "{what} in position {}", self.position)
    }
}

impl core::error::Error for GlobError {}
