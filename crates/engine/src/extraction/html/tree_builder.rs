//! Builds the stack of open elements from the tags of a page, and collects the values of the
//! elements that queries select.

mod separate_text;
mod token_sink;

use std::cell::Cell;
use std::ops::Range;

use encoding_rs::Encoding;
use haul_policy::page_reference::PageBase;

use super::attribute_output::{attribute_values, trimmed};
use super::markup_automaton::SelectedTextCollector;
use super::markup_skipper::{MarkupSkipper, SkippedSelectedElement};
use super::open_element_stack::{
    IS_INTEGRATION_POINT, IS_SELECTED, KEEPS_WHITE_SPACE, MAX_DEPTH, Namespace, OpenElement, OpenElementStack,
};
use super::tag_caches::MarkupCaches;
use super::tag_name_and_rules::{self as properties, TagName, TagSearchRules, names};
use super::tag_parser::{AttributeValue, NoAttributes, Tag};
use super::text::ElementText;
use super::{HtmlQueries, too_long};
use crate::Result;
use crate::extraction::css::{ElementAttributes, ElementStart, SelectorState};
use crate::extraction::page_search::{FoundValue, OnFound};
use crate::extraction::prefilter::HitAcrossMarkupTest;
use crate::extraction::query_encoding_by_charset::with_encoded_query;
use separate_text::{OpenSeparateTextElement, SeparateTextRange};

/// The insertion mode of the tree builder (WHATWG HTML): the part of the page that it has reached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum InsertionMode {
    #[default]
    BeforeHead,
    Head,
    AfterHead,
    Body,
}

/// A value that waits until the outermost open element whose text a query selects has ended: the
/// text of that element, or a text or an attribute value inside. The values are then passed on in
/// the order in which their elements begin.
enum DeferredValue {
    /// The text of an element: the range from `start` to `end` of the page's collected text
    /// ([`ElementText`]). `end` is `None` while the element is open.
    Text { query: usize, start: usize, end: Option<usize> },
    /// The value of an attribute, as it is output.
    Attribute { query: usize, value: Box<[u8]> },
}

/// The number of bytes that a collected text needs in memory in addition to its own bytes.
pub(super) const DEFERRED_VALUE_SIZE: usize = size_of::<DeferredValue>();

/// The state of the tree builder for one page: the open elements, and the values found so far.
pub(super) struct PageParserState {
    /// The stack of open elements.
    pub(super) open: OpenElementStack,
    /// The state of the CSS selectors for the open elements.
    selectors: SelectorState,
    pub(super) insertion_mode: InsertionMode,
    /// The base URL of the page; `None` if it is not known.
    base: Option<PageBase>,
    /// True if a `<base href>` has set `base`. Further ones are ignored.
    has_base_element: bool,
    /// True from a `<form>` start tag to the next `</form>` end tag, even if the form element was
    /// closed before by another tag.
    pub(super) has_form: bool,
    /// True if the page is read by the rules of XML.
    is_xml: bool,
    /// The collected text of the outermost selected element. Texts of elements inside it are ranges
    /// of it.
    pub(super) text: ElementText,
    /// The values that are passed on when the outermost selected element ends.
    deferred: Vec<DeferredValue>,
    /// The open elements whose text a query selects, the outermost first. Each entry is the range
    /// of `deferred` with the values of this element itself (texts and attribute values), without
    /// those of elements inside it.
    selected: Vec<Range<usize>>,
    /// The total number of bytes of the attribute values in `deferred`.
    deferred_bytes: usize,
    /// The number of texts that are being collected. An open element counts once for each query
    /// that selects its text.
    open_texts: usize,
    /// The number of extra bytes that separate copies of the values would need, compared with the
    /// collected text. A byte in three values, such as the texts of three nested elements, counts
    /// twice. Only bytes before the index `counted` are included.
    repeated: usize,
    /// The index in the collected text up to which `repeated` counts.
    counted: usize,
    /// The open script, style or template element inside a selected element; `None` if there is
    /// none.
    separate_text: Option<OpenSeparateTextElement>,
    /// The ranges of the collected text that belong to scripts, styles and templates.
    separate_text_ranges: Vec<SeparateTextRange>,
    /// The maximum number of bytes that the page may keep in memory.
    limit: usize,
    /// True if empty texts and attribute values are passed on, too.
    keeps_empty: bool,
    /// The test that finds text in which the regular expression of `--extract` may match: only such
    /// text must be collected. `None` if all text of selected elements must be collected.
    hits: Option<HitAcrossMarkupTest>,
    pub(super) caches: Box<MarkupCaches>,
}

impl PageParserState {
    pub(super) fn new(limit: usize, keeps_empty: bool, hits: Option<HitAcrossMarkupTest>) -> Self {
        Self {
            keeps_empty,
            hits,
            caches: Box::default(),
            open: OpenElementStack::new(),
            selectors: SelectorState::default(),
            insertion_mode: InsertionMode::BeforeHead,
            base: None,
            has_base_element: false,
            has_form: false,
            is_xml: false,
            text: ElementText::default(),
            deferred: Vec::new(),
            selected: Vec::new(),
            deferred_bytes: 0,
            open_texts: 0,
            repeated: 0,
            counted: 0,
            separate_text: None,
            separate_text_ranges: Vec::new(),
            limit,
        }
    }

    pub(super) fn begin(&mut self, base: Option<PageBase>, is_xml: bool) {
        (self.base, self.is_xml) = (base, is_xml);
    }

    pub(super) fn reset(&mut self) {
        self.open.reset();
        self.selectors.reset();
        self.insertion_mode = InsertionMode::BeforeHead;
        (self.base, self.has_base_element, self.is_xml) = (None, false, false);
        self.has_form = false;
        self.clear_values();
        (self.open_texts, self.separate_text) = (0, None);
        self.selected.clear();
    }

    /// Discards the collected text and the deferred values.
    fn clear_values(&mut self) {
        self.text.clear();
        self.deferred.clear();
        self.deferred.shrink_to(64);
        self.separate_text_ranges.clear();
        (self.deferred_bytes, self.repeated, self.counted) = (0, 0, 0);
    }

    /// Returns the number of bytes of the collected text that several values contain, because their
    /// elements are nested: a byte in n values counts n − 1 times.
    fn repeated(&self) -> usize {
        let more = self.text.position() - self.counted;
        self.repeated + more * self.open_texts.saturating_sub(1)
    }

    /// Sets the number of texts that are being collected, because a selected element opens or
    /// closes.
    fn change_open_texts(&mut self, open_texts: usize) {
        (self.repeated, self.counted) = (self.repeated(), self.text.position());
        self.open_texts = open_texts;
    }

    /// Returns the number of bytes that the page keeps in memory. A byte of text in several nested
    /// selected elements counts once for each of them, since each value may need a copy.
    pub(super) fn memory_in_use(&self) -> usize {
        let lists = self.deferred.len() * size_of::<DeferredValue>()
            + self.separate_text_ranges.len() * size_of::<SeparateTextRange>();
        self.text.memory_in_use() + self.repeated() + self.deferred_bytes + lists
    }
}

/// The tree builder of a page. It receives the tags and texts from the tokenizer, opens and closes
/// elements by the rules of HTML, and collects the texts and attribute values that the queries
/// select.
pub(super) struct TreeBuilder<'a, 'f> {
    pub(super) tree: &'a mut PageParserState,
    pub(super) queries: &'a HtmlQueries,
    /// The character encoding of the page. As in browsers, the query components of the page's URLs
    /// are encoded in it.
    encoding: &'static Encoding,
    on_found: &'a mut OnFound<'f>,
}

impl PageParserState {
    /// Returns true if the next text of the page belongs to a value and must be collected.
    pub(super) fn collects_text(&self) -> bool {
        self.open_texts > 0 && self.separate_text.as_ref().is_none_or(|separate_text| separate_text.is_needed)
    }

    /// Returns true if no text is being collected, and no value waits to be passed on.
    pub(super) fn collects_nothing(&self) -> bool {
        self.open_texts == 0 && self.deferred.is_empty() && self.separate_text.is_none()
    }

    /// Begins to collect the text of an element. `rules` are the rules for the element's name, and
    /// contain the index of the query that selects the text. Returns false and does nothing if the
    /// element is void, or if [`Self::collects_nothing`] is false.
    pub(super) fn begin_single_text(&mut self, rules: TagSearchRules) -> bool {
        if !self.collects_nothing() || rules.properties & properties::IS_VOID != 0 {
            return false;
        }
        let query = usize::from(rules.text_query) - 1;
        self.deferred.push(DeferredValue::Text { query, start: self.text.position(), end: None });
        self.selected.push(0..1);
        self.change_open_texts(1);
        true
    }

    /// Returns true if exactly one value waits to be passed on: the text of an element that is
    /// still open.
    fn has_single_open_text(&self) -> bool {
        self.open_texts == 1 && matches!(&*self.deferred, [DeferredValue::Text { .. }]) && self.separate_text.is_none()
    }

    /// Returns the text of the value `deferred[index]`: the part `range` of the collected text,
    /// without the texts of scripts, styles and templates inside the value's element. If there are
    /// such texts, joins the other parts in the buffer `joined`.
    fn text_of_value<'t>(&'t self, index: usize, range: Range<usize>, joined: &'t mut Vec<u8>) -> &'t [u8] {
        let bytes = self.text.bytes();
        if self.separate_text_ranges.is_empty() {
            return &bytes[range];
        }
        let first = self.separate_text_ranges.partition_point(|separate_text| separate_text.start < range.start);
        let inside =
            self.separate_text_ranges[first..].iter().take_while(|separate_text| separate_text.end <= range.end);
        let mut hidden = inside.filter(|separate_text| index < separate_text.first_inside).peekable();
        if hidden.peek().is_none() {
            return &bytes[range];
        }
        joined.clear();
        let mut from = range.start;
        for separate_text in hidden {
            joined.extend_from_slice(&bytes[from..separate_text.start]);
            from = separate_text.end;
        }
        joined.extend_from_slice(&bytes[from..range.end]);
        joined
    }
}

impl<'a, 'f> TreeBuilder<'a, 'f> {
    pub(super) fn new(
        tree: &'a mut PageParserState,
        queries: &'a HtmlQueries,
        encoding: &'static Encoding,
        on_found: &'a mut OnFound<'f>,
    ) -> Self {
        Self { tree, queries, encoding, on_found }
    }

    /// Returns a skipper of markup whose text is not collected.
    pub(super) fn markup_skipper(&mut self) -> MarkupSkipper<'_, 'f> {
        let Self { tree, queries, on_found, .. } = self;
        let PageParserState { open, caches, hits, text, base, keeps_empty, limit, .. } = &mut **tree;
        let texts = SelectedTextCollector {
            text,
            queries,
            base: base.as_ref(),
            keeps_empty: *keeps_empty,
            limit: *limit,
            on_found: &mut **on_found,
            outcome: Ok(()),
        };
        let skipped = SkippedSelectedElement { start: 0, depth: 0 };
        MarkupSkipper { open, hits: hits.as_ref(), caches, queries, texts, skipped }
    }

    /// Makes the tree builder read the page by the rules of XML.
    pub(super) fn set_xml(&mut self) {
        self.tree.is_xml = true;
    }

    /// Closes all elements at the end of the page, and passes on their values.
    pub(super) fn finish(&mut self) -> Result<()> {
        self.end_text_node();
        self.close_to(0)
    }

    /// Ends a text before a tag or comment: an incomplete character reference at its end, such as
    /// `&am`, cannot continue.
    pub(super) fn end_text_node(&mut self) {
        let is_preformatted = self.tree.open.current().is(KEEPS_WHITE_SPACE);
        self.tree.text.end_text_node(is_preformatted);
    }

    /// Returns an error if the page keeps more bytes in memory than its limit.
    pub(super) fn check_memory(&self) -> Result<()> {
        if self.tree.memory_in_use() > self.tree.limit { Err(too_long(self.tree.limit)) } else { Ok(()) }
    }

    /// Opens an HTML element whose start tag is missing, such as `<tbody>`.
    pub(super) fn open_implied_element(&mut self, name: &'static str) -> Result<()> {
        let name = TagName::new(name.as_bytes());
        self.open(name, Namespace::Html, self.queries.names.rules(name), None)
    }

    /// Opens an element, and begins to collect the values that queries select from it. `tag` is its
    /// start tag; `None` if the start tag is missing.
    pub(super) fn open(
        &mut self,
        name: TagName,
        namespace: Namespace,
        rules: TagSearchRules,
        tag: Option<&Tag<'_>>,
    ) -> Result<()> {
        if self.tree.open.depth() >= MAX_DEPTH {
            self.close_to(MAX_DEPTH - 1)?;
        }
        let properties = rules.properties;
        let tree = &mut *self.tree;
        if properties & properties::SEPARATES_WORDS != 0 || namespace == Namespace::Xml {
            tree.text.separate_next_word();
        }
        // `<image>` in HTML is an `<img>`.
        let is_image = namespace == Namespace::Html && name == names::IMG;
        let start = ElementStart {
            name,
            full_name: tag.map(|tag| if is_image { &b"img"[..] } else { tag.name() }),
            steps: rules.steps,
            is_root: tree.open.depth() == 0,
            element: tag.map_or(&NoAttributes as &dyn ElementAttributes, |tag| tag),
        };
        let matches = self.queries.program.start_element(&mut tree.selectors, &start);
        let first_value = tree.deferred.len();
        let was_open = tree.open_texts > 0;
        let texts = if matches == 0 { 0 } else { self.collect(matches, tag)? };
        let tree = &mut *self.tree;
        if properties & properties::HAS_SEPARATE_TEXT != 0 && was_open && tree.separate_text.is_none() {
            tree.separate_text = Some(OpenSeparateTextElement {
                depth: tree.open.depth() + 1,
                first_inside: first_value,
                start: tree.text.position(),
                is_needed: false,
                was_separated: tree.text.is_separated(),
            });
        }
        if let Some(separate_text) = tree.separate_text.as_mut().filter(|_| texts > 0) {
            separate_text.is_needed = true;
        }
        let is_integration_point = match namespace {
            Namespace::Html | Namespace::Xml => false,
            Namespace::Svg => matches!(name, names::FOREIGN_OBJECT | names::DESC | names::TITLE),
            Namespace::MathMl => {
                matches!(name, names::MI | names::MN | names::MO | names::MS | names::MTEXT)
                    || name == names::ANNOTATION_XML && tag.is_some_and(Tag::is_html_annotation)
            }
        };
        if texts > 0 {
            tree.selected.push(first_value..tree.deferred.len());
        }
        let is_integration_point = if is_integration_point { IS_INTEGRATION_POINT } else { 0 };
        let selected = if texts > 0 { IS_SELECTED } else { 0 };
        tree.open.push(OpenElement::new(name, namespace, properties, is_integration_point | selected));
        let is_base = name == names::BASE && namespace == Namespace::Html && !tree.has_base_element;
        // The content of a template is not part of the page.
        if is_base && tree.open.find(names::TEMPLATE).is_none() {
            self.set_base(tag);
        }
        Ok(())
    }

    /// Collects the attribute values of an element, and begins to collect its text, for the queries
    /// in the set `matches` (the query with the index n is in it if bit n is 1). Returns the number
    /// of queries that select the text.
    fn collect(&mut self, matches: u64, tag: Option<&Tag<'_>>) -> Result<usize> {
        let queries = self.queries;
        let mut texts = 0;
        for (query, css) in queries.queries.iter().enumerate().filter(|(query, _)| matches >> query & 1 == 1) {
            let Some(attribute) = css.attribute() else {
                let start = self.tree.text.position();
                self.tree.deferred.push(DeferredValue::Text { query, start, end: None });
                self.tree.change_open_texts(self.tree.open_texts + 1);
                texts += 1;
                continue;
            };
            let Some(tag) = tag else { continue };
            match tag.value(attribute) {
                None => {}
                Some(AttributeValue::TooLong) => return Err(too_long(self.tree.limit)),
                Some(AttributeValue::Whole(value)) => self.attribute(query, tag.name(), attribute, &value)?,
            }
        }
        if texts > 0 {
            self.check_memory()?;
        }
        Ok(texts)
    }

    /// Passes on the values of the attribute `attribute` of `element`, for the query with the index
    /// `query`. If an outer element's text is being collected, the values are deferred until that
    /// element ends.
    fn attribute(&mut self, query: usize, element: &[u8], attribute: &str, value: &[u8]) -> Result<()> {
        let Self { tree, on_found, encoding, .. } = self;
        let PageParserState { base, deferred, deferred_bytes, open_texts, keeps_empty, .. } = &mut **tree;
        let is_empty = Cell::new(true);
        let mut pass = |value: &[u8]| {
            is_empty.set(false);
            if *open_texts == 0 {
                return on_found(FoundValue { query, bytes: value, base: base.as_ref() });
            }
            *deferred_bytes += value.len();
            deferred.push(DeferredValue::Attribute { query, value: value.into() });
            Ok(())
        };
        attribute_values(element, attribute, value, base.as_ref(), encoding, &mut pass)?;
        if is_empty.get() && *keeps_empty {
            pass(b"")?;
        }
        self.check_memory()
    }

    /// Sets the base URL of the page from the `href` attribute of a `<base>` element.
    fn set_base(&mut self, tag: Option<&Tag<'_>>) {
        let Some(AttributeValue::Whole(href)) = tag.and_then(|tag| tag.value("href")) else { return };
        self.tree.has_base_element = true;
        if let Some(base) = &mut self.tree.base {
            base.set(&with_encoded_query(&String::from_utf8_lossy(&href), self.encoding));
        }
    }

    /// Closes the innermost elements until only the `depth` outermost ones are open.
    pub(super) fn close_to(&mut self, depth: usize) -> Result<()> {
        while self.tree.open.depth() > depth {
            self.close_innermost()?;
        }
        Ok(())
    }

    /// Closes the innermost element. If it was the outermost selected element, passes on the
    /// deferred values.
    pub(super) fn close_innermost(&mut self) -> Result<()> {
        let tree = &mut *self.tree;
        let is_selected = tree.open.current().is(IS_SELECTED);
        if is_selected && tree.has_single_open_text() && self.queries.program.is_stateless() {
            tree.open.pop();
            tree.selected.clear();
            tree.open_texts = 0;
            return self.flush();
        }
        if tree.separate_text.is_some() || is_selected || !self.queries.program.is_stateless() {
            let depth = tree.open.depth();
            return self.remove(depth);
        }
        let element = tree.open.pop();
        if element.has(properties::SEPARATES_WORDS) || element.namespace == Namespace::Xml {
            tree.text.separate_next_word();
        }
        Ok(())
    }

    /// Closes only the element at this depth, counted from 1. The elements inside it stay open, and
    /// become children of its parent.
    pub(super) fn remove(&mut self, depth: usize) -> Result<()> {
        let tree = &mut *self.tree;
        let element = tree.open.remove(depth);
        tree.selectors.remove(depth);
        if element.has(properties::SEPARATES_WORDS) || element.namespace == Namespace::Xml {
            tree.text.separate_next_word();
        }
        let position = tree.text.position();
        if let Some(separate_text) = &mut tree.separate_text {
            match separate_text.depth.cmp(&depth) {
                std::cmp::Ordering::Greater => separate_text.depth -= 1,
                std::cmp::Ordering::Equal => {
                    let OpenSeparateTextElement { first_inside, start, was_separated, .. } = *separate_text;
                    tree.text.set_separated(was_separated);
                    if position > start {
                        tree.separate_text_ranges.push(SeparateTextRange { first_inside, start, end: position });
                    }
                    tree.separate_text = None;
                }
                std::cmp::Ordering::Less => {}
            }
        }
        if element.is(IS_SELECTED) {
            let inside = tree.open.count_inside(depth - 1, |element| element.is(IS_SELECTED));
            let values = tree.selected.remove(tree.selected.len() - 1 - inside);
            let mut closed = 0;
            for value in &mut tree.deferred[values] {
                if let DeferredValue::Text { end: end @ None, .. } = value {
                    *end = Some(position);
                    closed += 1;
                }
            }
            tree.change_open_texts(tree.open_texts - closed);
            if tree.open_texts == 0 {
                return self.flush();
            }
        }
        Ok(())
    }

    /// Passes the deferred values to `on_found`, after the outermost selected element has ended.
    fn flush(&mut self) -> Result<()> {
        let Self { tree, on_found, .. } = self;
        if let ([DeferredValue::Text { query, start, .. }], []) = (&*tree.deferred, &*tree.separate_text_ranges) {
            let bytes = trimmed(&tree.text.bytes()[*start..]);
            if !bytes.is_empty() || tree.keeps_empty {
                on_found(FoundValue { query: *query, bytes, base: tree.base.as_ref() })?;
            }
            tree.clear_values();
            return Ok(());
        }
        let mut joined = Vec::new();
        for (index, value) in tree.deferred.iter().enumerate() {
            let (query, bytes) = match value {
                DeferredValue::Attribute { query, value } => (*query, &**value),
                DeferredValue::Text { query, start, end } => {
                    let end = end.unwrap_or(tree.text.position());
                    (*query, trimmed(tree.text_of_value(index, *start..end, &mut joined)))
                }
            };
            if !bytes.is_empty() || tree.keeps_empty {
                on_found(FoundValue { query, bytes, base: tree.base.as_ref() })?;
            }
        }
        tree.clear_values();
        Ok(())
    }
}
