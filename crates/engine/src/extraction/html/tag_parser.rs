//! The parser for one tag (HTML, "Tokenization", from the tag name state on). It can stop at any
//! byte and continue when more bytes of the page have arrived.

use std::borrow::Cow;
use std::ops::Range;

use memchr::memchr;

use super::byte_mask::{BLOCK_SIZE, block_at, mask_of};
use super::tag_name_and_rules::{TagName, TagSearchRules};
use crate::extraction::css::ElementAttributes;

/// A parsed start or end tag of the page, with the ranges of its name and attributes.
pub(super) struct Tag<'t> {
    /// The bytes of the tag, beginning with its `<`. The ranges of the name and of the attributes
    /// are relative to them.
    pub(super) bytes: &'t [u8],
    /// The name as a number, without regard to case.
    pub(super) id: TagName,
    /// The rules for tags with this name: properties by HTML, and what the queries need.
    pub(super) rules: TagSearchRules,
    /// The range of the name in `bytes`.
    pub(super) name: Range<usize>,
    /// The attributes. Empty if they are not needed.
    pub(super) attributes: &'t [AttributeSpan],
    /// True if the tag ends with `/>`.
    pub(super) is_self_closing: bool,
}

/// The ranges of an attribute's name and value in the bytes of its tag.
#[derive(Clone, Debug)]
pub(super) struct AttributeSpan {
    /// The range of the attribute's name in the tag's bytes.
    name: Range<usize>,
    value: Range<usize>,
    /// True if the value was too long to be kept in memory. The range of the value is then empty.
    is_too_long: bool,
}

/// The value of an attribute in a start tag.
pub(super) enum AttributeValue<'t> {
    /// The value with decoded character references.
    Whole(Cow<'t, [u8]>),
    /// The value was too long to be kept in memory.
    TooLong,
}

impl<'t> Tag<'t> {
    /// Returns the name as written in the tag.
    pub(super) fn name(&self) -> &'t [u8] {
        &self.bytes[self.name.clone()]
    }

    /// Returns the names of the attributes in lower case.
    #[cfg(test)]
    pub(super) fn attribute_names(&self) -> Vec<String> {
        let name = |span: &AttributeSpan| String::from_utf8_lossy(&self.bytes[span.name.clone()]).to_ascii_lowercase();
        self.attributes.iter().map(name).collect()
    }

    /// Returns the value of the first attribute with this name, or `None` if there is none.
    pub(super) fn value(&self, name: &str) -> Option<AttributeValue<'t>> {
        let named = |span: &&AttributeSpan| self.bytes[span.name.clone()].eq_ignore_ascii_case(name.as_bytes());
        let span = self.attributes.iter().find(named)?;
        if span.is_too_long {
            return Some(AttributeValue::TooLong);
        }
        let raw = &self.bytes[span.value.clone()];
        Some(AttributeValue::Whole(decoded(raw)))
    }

    /// Returns true if the `encoding` attribute says that this `<annotation-xml>` of MathML
    /// contains HTML.
    pub(super) fn is_html_annotation(&self) -> bool {
        let is_html = |value: &[u8]| {
            value.eq_ignore_ascii_case(b"text/html") || value.eq_ignore_ascii_case(b"application/xhtml+xml")
        };
        self.attribute("encoding").is_some_and(|value| is_html(&value))
    }
}

impl ElementAttributes for Tag<'_> {
    fn attribute(&self, name: &str) -> Option<Cow<'_, [u8]>> {
        match self.value(name)? {
            AttributeValue::Whole(value) => Some(value),
            AttributeValue::TooLong => Some(Cow::Borrowed(b"")),
        }
    }
}

/// The empty list of attributes. Elements whose start tag is missing, such as an implied `<tbody>`,
/// have it.
pub(super) struct NoAttributes;

impl ElementAttributes for NoAttributes {
    fn attribute(&self, _name: &str) -> Option<Cow<'_, [u8]>> {
        None
    }
}

/// Returns an attribute's value with decoded character references, such as `a&b` for `a&amp;b`.
/// Null bytes become U+FFFD, and each line break becomes a line feed.
fn decoded(raw: &[u8]) -> Cow<'_, [u8]> {
    let needs_change = |byte: &u8| matches!(byte, b'&' | b'\r' | 0);
    if !raw.iter().any(needs_change) {
        return Cow::Borrowed(raw);
    }
    let mut plain = Vec::with_capacity(raw.len());
    let mut bytes = raw.iter().copied().peekable();
    while let Some(byte) = bytes.next() {
        match byte {
            0 => plain.extend_from_slice("\u{fffd}".as_bytes()),
            b'\r' => {
                plain.push(b'\n');
                bytes.next_if_eq(&b'\n');
            }
            other => plain.push(other),
        }
    }
    Cow::Owned(htmlize::unescape_bytes_in(plain, htmlize::Context::Attribute).into_owned())
}

/// The maximum number of attributes of a tag that are kept. Further attributes are ignored.
const MAX_ATTRIBUTES: usize = 1024;

/// The states of the tokenizer inside a tag. The names are those of WHATWG HTML, "Tokenization",
/// such as "before attribute name state".
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum TagState {
    #[default]
    TagName,
    BeforeAttributeName,
    AttributeName,
    AfterAttributeName,
    BeforeAttributeValue,
    DoubleQuotedValue,
    SingleQuotedValue,
    UnquotedValue,
    AfterQuotedValue,
    SelfClosingStartTag,
}

/// Parses one tag, which may arrive in pieces, and stores the attributes found so far.
#[derive(Debug, Default)]
pub(super) struct TagParser {
    state: TagState,
    /// The index in the tag's bytes of the next byte to parse.
    at: usize,
    /// The name of the tag; known once the tag is complete.
    id: TagName,
    /// The rules for tags with the name `id`.
    rules: TagSearchRules,
    name: Range<usize>,
    attributes: Vec<AttributeSpan>,
    /// True if the attribute that is being parsed is the last one in `attributes`. False if it is
    /// ignored because there are too many.
    is_kept: bool,
    is_self_closing: bool,
}

impl TagParser {
    /// Begins to parse a tag. `name` is the index in its bytes at which its name begins: 1 in a
    /// start tag, 2 in an end tag.
    pub(super) fn begin(&mut self, name: usize) {
        self.state = TagState::TagName;
        self.at = name;
        self.name = name..name;
        self.attributes.clear();
        self.is_self_closing = false;
    }

    /// Parses a complete tag of the common form: a name of letters and digits, and attributes such
    /// as `name="value"`. Most tags have this form, and are parsed here without the states of
    /// [`parse`](Self::parse).
    ///
    /// `bytes` begin with the `<` of the tag. `start` is the index of the tag's name in `bytes`.
    /// `rules` returns the rules of the search for a name. If they say that no attributes are
    /// needed, the attributes are skipped. Returns the index after the tag's `>`. Returns `None` if
    /// the tag has another form or is not complete.
    pub(super) fn parse_common_tag(
        &mut self,
        bytes: &[u8],
        start: usize,
        rules: impl FnOnce(TagName) -> TagSearchRules,
    ) -> Option<usize> {
        self.attributes.clear();
        self.is_self_closing = false;
        let mut packed = 0_u64;
        let mut at = start;
        while let Some(letter) = bytes.get(at).filter(|byte| byte.is_ascii_alphanumeric()) {
            packed = packed << 8 | u64::from(*letter | 0x20);
            at += 1;
        }
        self.name = start..at;
        self.id = TagName::of_lower_case(packed, &bytes[start..at]);
        self.rules = rules(self.id);
        if *bytes.get(at)? == b'>' {
            return Some(at + 1);
        }
        if self.rules.needs_attributes && bytes[1] != b'/' {
            self.parse_common_attributes(bytes, at)
        } else {
            skip_common_attributes(bytes, at)
        }
    }

    /// Parses the attributes of a tag whose name ends at the index `at`. One blank must stand
    /// before each attribute. Returns the index after the tag's `>`. Returns `None` if the tag has
    /// another form or is not complete.
    fn parse_common_attributes(&mut self, bytes: &[u8], mut at: usize) -> Option<usize> {
        while *bytes.get(at)? != b'>' {
            let name = at + 1;
            let length = bytes[name..].iter().position(|byte| !is_common_name_byte(*byte))?;
            let value = name + length + 2;
            let is_common = bytes[at] == b' ' && length > 0 && self.attributes.len() < MAX_ATTRIBUTES;
            if !is_common || !bytes[name + length..].starts_with(b"=\"") {
                return None;
            }
            let value = value..value + memchr(b'"', &bytes[value..])?;
            at = value.end + 1;
            self.attributes.push(AttributeSpan { name: name..name + length, value, is_too_long: false });
        }
        Some(at + 1)
    }

    /// Continues to parse the tag in `bytes`, which begin with its `<`. Returns the index after its
    /// `>`, or `None` if the tag is not complete.
    pub(super) fn parse(&mut self, bytes: &[u8]) -> Option<usize> {
        while let Some(&byte) = bytes.get(self.at) {
            match self.state {
                TagState::TagName => {
                    let rest = &bytes[self.at..];
                    let length = rest.iter().position(|byte| ends_name(*byte)).unwrap_or(rest.len());
                    self.at += length;
                    self.name.end = self.at;
                    match rest.get(length) {
                        None => return None,
                        Some(b'>') => return Some(self.at + 1),
                        Some(b'/') => self.step(TagState::SelfClosingStartTag),
                        Some(_) => self.step(TagState::BeforeAttributeName),
                    }
                }
                TagState::BeforeAttributeName => match byte {
                    byte if is_space(byte) => self.at += 1,
                    b'/' | b'>' => self.state = TagState::AfterAttributeName,
                    _ => {
                        // Even an equals sign is part of the name.
                        self.begin_attribute();
                        self.at += 1;
                    }
                },
                TagState::AttributeName => {
                    let rest = &bytes[self.at..];
                    let ends = |byte: &u8| ends_name(*byte) || *byte == b'=';
                    let length = rest.iter().position(ends).unwrap_or(rest.len());
                    self.at += length;
                    let end = self.at;
                    if let Some(current) = self.current() {
                        current.name.end = end;
                    }
                    match rest.get(length) {
                        None => return None,
                        Some(b'=') => self.step(TagState::BeforeAttributeValue),
                        Some(_) => self.state = TagState::AfterAttributeName,
                    }
                }
                TagState::AfterAttributeName => match byte {
                    byte if is_space(byte) => self.at += 1,
                    b'/' => self.step(TagState::SelfClosingStartTag),
                    b'=' => self.step(TagState::BeforeAttributeValue),
                    b'>' => return Some(self.at + 1),
                    _ => self.begin_attribute(),
                },
                TagState::BeforeAttributeValue => match byte {
                    byte if is_space(byte) => self.at += 1,
                    b'>' => return Some(self.at + 1),
                    b'"' => self.begin_value(1, TagState::DoubleQuotedValue),
                    b'\'' => self.begin_value(1, TagState::SingleQuotedValue),
                    _ => self.begin_value(0, TagState::UnquotedValue),
                },
                TagState::DoubleQuotedValue | TagState::SingleQuotedValue => {
                    let quote = if self.state == TagState::DoubleQuotedValue { b'"' } else { b'\'' };
                    let found = memchr(quote, &bytes[self.at..]);
                    self.at = found.map_or(bytes.len(), |found| self.at + found);
                    self.end_value();
                    found?;
                    self.step(TagState::AfterQuotedValue);
                }
                TagState::UnquotedValue => {
                    let rest = &bytes[self.at..];
                    let ends = |byte: &u8| is_space(*byte) || *byte == b'>';
                    let length = rest.iter().position(ends).unwrap_or(rest.len());
                    self.at += length;
                    self.end_value();
                    if length == rest.len() {
                        return None;
                    }
                    self.state = TagState::BeforeAttributeName;
                }
                TagState::AfterQuotedValue => match byte {
                    b'/' => self.step(TagState::SelfClosingStartTag),
                    b'>' => return Some(self.at + 1),
                    _ => self.state = TagState::BeforeAttributeName,
                },
                TagState::SelfClosingStartTag => {
                    if byte == b'>' {
                        self.is_self_closing = true;
                        return Some(self.at + 1);
                    }
                    self.state = TagState::BeforeAttributeName;
                }
            }
        }
        None
    }

    /// Enters `state` after the current byte.
    fn step(&mut self, state: TagState) {
        self.state = state;
        self.at += 1;
    }

    /// Adds an attribute whose name begins at the current byte, and enters the attribute name
    /// state.
    fn begin_attribute(&mut self) {
        self.is_kept = self.attributes.len() < MAX_ATTRIBUTES;
        if self.is_kept {
            self.attributes.push(AttributeSpan { name: self.at..self.at, value: 0..0, is_too_long: false });
        }
        self.state = TagState::AttributeName;
    }

    /// Returns the attribute that is being parsed. Returns `None` if it is ignored, because the tag
    /// has more than [`MAX_ATTRIBUTES`] attributes.
    fn current(&mut self) -> Option<&mut AttributeSpan> {
        if self.is_kept { self.attributes.last_mut() } else { None }
    }

    /// Enters `state` at the beginning of an attribute's value. `quote` is 1 if a quotation mark
    /// precedes the value, otherwise 0.
    fn begin_value(&mut self, quote: usize, state: TagState) {
        self.at += quote;
        self.state = state;
        let start = self.at;
        if let Some(current) = self.current() {
            current.value = start..start;
        }
    }

    /// Ends the value of the current attribute before the current byte.
    fn end_value(&mut self) {
        let end = self.at;
        if let Some(current) = self.current() {
            current.value.end = end;
        }
    }

    /// Removes parts of an unfinished tag from `bytes`, because it is longer than `limit` bytes:
    /// the name or value that is being parsed and, if the attributes before it take more than half
    /// of `limit`, these too.
    pub(super) fn drop_oversized(&mut self, bytes: &mut Vec<u8>, limit: usize) {
        let is_in_attribute = matches!(
            self.state,
            TagState::AttributeName
                | TagState::DoubleQuotedValue
                | TagState::SingleQuotedValue
                | TagState::UnquotedValue
        );
        if self.state == TagState::TagName {
            self.name.end = self.name.start;
        }
        let is_in_name = self.state == TagState::AttributeName;
        if let Some(current) = self.current().filter(|_| is_in_attribute) {
            if is_in_name {
                current.name.end = current.name.start;
            }
            (current.value, current.is_too_long) = (0..0, true);
        }
        if self.needed_end() > limit / 2 {
            self.attributes.clear();
        }
        self.at = self.needed_end();
        bytes.truncate(self.at);
    }

    /// Returns the number of bytes of the tag, from its `<` on, up to the end of its name and of
    /// all attributes parsed so far.
    fn needed_end(&self) -> usize {
        self.attributes.iter().map(|span| span.name.end.max(span.value.end)).max().unwrap_or(0).max(self.name.end)
    }

    /// Determines the [`TagName`] of a tag that [`TagParser::parse`] has completed, and stores it
    /// with the rules that `rules` returns for this name.
    pub(super) fn identify(&mut self, bytes: &[u8], rules: impl FnOnce(TagName) -> TagSearchRules) {
        self.id = TagName::new(&bytes[self.name.clone()]);
        self.rules = rules(self.id);
    }

    /// Returns the parsed tag. `bytes` are the bytes that [`TagParser::parse`] collected.
    pub(super) fn tag<'t>(&'t self, bytes: &'t [u8]) -> Tag<'t> {
        let Self { name, attributes, is_self_closing, .. } = self;
        let (id, rules) = (self.id, self.rules);
        Tag { bytes, id, rules, name: name.clone(), attributes, is_self_closing: *is_self_closing }
    }
}

/// Returns the index after the `>` of a tag whose name ends at the index `start`. Returns `None` if
/// the tag is not complete, or if the tag must be parsed to find the quoted values in it.
///
/// Only simple tags are skipped. Each quoted value must directly follow an attribute's name and an
/// equals sign. An attribute with an unquoted value may only come after all quoted values.
pub(super) fn skip_common_attributes(bytes: &[u8], start: usize) -> Option<usize> {
    if !ends_name(*bytes.get(start)?) {
        return None;
    }
    let mut padded = [0; BLOCK_SIZE];
    // The end of the tag's name, or of the last value.
    let mut from = start;
    while from < bytes.len() {
        let first = from;
        let block = block_at(bytes, first, &mut padded);
        let is_stop = |byte: u8| (byte == b'>') | (byte == b'=') | (byte == b'"') | (byte == b'\'');
        let mut stops = mask_of(block, is_stop);
        let mut has_equals = false;
        while stops != 0 {
            let stop = stops.trailing_zeros() as usize;
            stops &= stops - 1;
            match block[stop] {
                b'>' => return Some(first + stop + 1),
                b'=' => {}
                _ => return None,
            }
            // The mark may be in the next block.
            let Some(&mark) = block.get(stop + 1) else { break };
            if mark != b'"' && mark != b'\'' {
                has_equals = true;
                continue;
            }
            let name = &block[from - first..stop];
            if has_equals || name.len() < 2 || is_space(name[name.len() - 1]) || name[name.len() - 1] == b'/' {
                return None;
            }
            // The quotation mark that ends the value.
            stops &= stops - 1;
            while stops != 0 && block[stops.trailing_zeros() as usize] != mark {
                stops &= stops - 1;
            }
            if stops == 0 {
                let rest = first + BLOCK_SIZE;
                from = rest + memchr(mark, bytes.get(rest..)?)? + 1;
            } else {
                from = first + stops.trailing_zeros() as usize + 1;
                stops &= stops - 1;
            }
        }
        // An attribute without a quoted value that is longer than a block.
        if from == first {
            return None;
        }
    }
    None
}

/// Returns true for the white space of HTML.
pub(super) fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | 0x0c)
}

/// Returns true for the bytes of common attribute names, such as `href`, `data-id` and
/// `xlink:href`.
fn is_common_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b':')
}

/// Returns true for the bytes that end the name of a tag: white space, `/` and `>`.
fn ends_name(byte: u8) -> bool {
    is_space(byte) || byte == b'/' || byte == b'>'
}
