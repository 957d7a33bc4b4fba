//! The open elements of a page, and the values of the selected elements.

mod separate_script_text;

use std::cell::Cell;
use std::ops::Range;

use encoding_rs::Encoding;
use haul_policy::page_reference::PageBase;

use super::attribute_output::{attribute_values, trimmed};
use super::markup_automaton::SelectedTextCollector;
use super::markup_skipper::{MarkupSkipper, SkippedSelectedElement};
use super::open_elements::{ALLOWS_HTML, IS_SELECTED, KEEPS_BLANKS, MAX_DEPTH, Namespace, OpenElement, OpenElements};
use super::tag_caches::MarkupCaches;
use super::tag_name_and_rules::{self as properties, TagName, TagSearchRules, names};
use super::tag_parser::{AttributeValue, NoAttributes, Tag, is_space};
use super::text::ElementText;
use super::tokenizer::{TextState, TokenSink};
use super::{HtmlQueries, too_long};
use crate::Result;
use crate::extraction::css::{ElementAttributes, ElementStart, SelectorState};
use crate::extraction::page_search::{FoundValue, OnFound};
use crate::extraction::prefilter::HitAcrossMarkupTest;
use crate::extraction::query_encoding_by_charset::with_encoded_query;
use separate_script_text::{OpenScriptOrStyle, ScriptOrStyleRange};

/// The part of the page that the parser has reached: before, in or after the head, or in the body.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum InsertionMode {
    #[default]
    BeforeHead,
    Head,
    AfterHead,
    Body,
}

/// A value that is not passed on yet, because an element that began earlier, and whose text a query
/// selects, is still open. Values are passed on in the order in which their elements begin.
enum DeferredValue {
    /// The text of an element: a range of `PageParserState::text`. `end` is `None` while the
    /// element is open.
    Text {
        query: usize,
        start: usize,
        end: Option<usize>,
    },
    Attribute {
        query: usize,
        value: Box<[u8]>,
    },
}

/// The number of bytes that a selected text needs in memory in addition to the text's own bytes.
pub(super) const MEMORY_OF_ONE_TEXT: usize = size_of::<DeferredValue>();

/// The state of the parser for one page.
pub(super) struct PageParserState {
    pub(super) open: OpenElements,
    selectors: SelectorState,
    pub(super) insertion_mode: InsertionMode,
    base: Option<PageBase>,
    has_base_element: bool,
    /// True from a `<form>` start tag to the next `</form>` end tag, even if the form element was
    /// closed before by another tag.
    pub(super) has_form: bool,
    is_xml: bool,
    pub(super) text: ElementText,
    /// The values that are not passed on yet, because the outermost selected element is still open.
    waiting: Vec<DeferredValue>,
    /// For each open element whose text is selected, the outermost first: the indices in `waiting`
    /// of its own values (its text and its attribute values).
    selected: Vec<Range<usize>>,
    /// The total number of bytes of the attribute values in `waiting`.
    waiting_bytes: usize,
    /// The number of texts that are being collected. An open element counts once for each query
    /// that selects its text.
    open_texts: usize,
    /// The number of bytes that the texts in `waiting` repeat, because an element's text contains
    /// the texts of the elements inside it: a byte in n of these texts counts n − 1 times. Only
    /// bytes of `text` before the position `counted` are included.
    repeated: usize,
    counted: usize,
    script_or_style: Option<OpenScriptOrStyle>,
    script_or_style_ranges: Vec<ScriptOrStyleRange>,
    limit: usize,
    /// True if empty texts and attribute values are results, too, and are passed to `on_found`.
    keeps_empty: bool,
    /// The test that finds text in which the filter (the user's regular expression) may match: only
    /// such text must be collected. `None` if all text must be collected, because there is no
    /// filter or no test for it.
    hits: Option<HitAcrossMarkupTest>,
    pub(super) caches: Box<MarkupCaches>,
}

impl PageParserState {
    pub(super) fn new(limit: usize, keeps_empty: bool, hits: Option<HitAcrossMarkupTest>) -> Self {
        Self {
            keeps_empty,
            hits,
            caches: Box::default(),
            open: OpenElements::new(),
            selectors: SelectorState::default(),
            insertion_mode: InsertionMode::BeforeHead,
            base: None,
            has_base_element: false,
            has_form: false,
            is_xml: false,
            text: ElementText::default(),
            waiting: Vec::new(),
            selected: Vec::new(),
            waiting_bytes: 0,
            open_texts: 0,
            repeated: 0,
            counted: 0,
            script_or_style: None,
            script_or_style_ranges: Vec::new(),
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
        (self.open_texts, self.script_or_style) = (0, None);
        self.selected.clear();
    }

    fn clear_values(&mut self) {
        self.text.clear();
        self.waiting.clear();
        self.waiting.shrink_to(64);
        self.script_or_style_ranges.clear();
        (self.waiting_bytes, self.repeated, self.counted) = (0, 0, 0);
    }

    /// Returns the number of bytes that the texts in `waiting` repeat, because an element's text
    /// contains the texts of the elements inside it: a byte in n of these texts counts n − 1 times.
    fn repeated(&self) -> usize {
        let more = self.text.position() - self.counted;
        self.repeated + more * self.open_texts.saturating_sub(1)
    }

    /// Sets the number of texts that are being collected. Called when a selected element opens or
    /// closes.
    fn change_open_texts(&mut self, open_texts: usize) {
        (self.repeated, self.counted) = (self.repeated(), self.text.position());
        self.open_texts = open_texts;
    }

    /// Returns the number of bytes of memory that the page uses. A byte in several selected texts
    /// counts once for each of them, since these texts may be copied.
    pub(super) fn memory_in_use(&self) -> usize {
        let lists = self.waiting.len() * size_of::<DeferredValue>()
            + self.script_or_style_ranges.len() * size_of::<ScriptOrStyleRange>();
        self.text.memory_in_use() + self.repeated() + self.waiting_bytes + lists
    }
}

/// The tree builder of a page. It receives the tokens of the tokenizer, applies the rules of HTML,
/// and collects the texts and attribute values that the queries select.
pub(super) struct TreeBuilder<'a, 'f> {
    pub(super) tree: &'a mut PageParserState,
    pub(super) queries: &'a HtmlQueries,
    /// The character encoding of the page. As in browsers, the query components of the page's URLs
    /// are encoded in it.
    encoding: &'static Encoding,
    on_found: &'a mut OnFound<'f>,
}

impl TokenSink for TreeBuilder<'_, '_> {
    fn rules(&self, name: TagName) -> TagSearchRules {
        let rules = self.queries.names.rules(name);
        let tree = &*self.tree;
        // In XML, SVG and MathML, a slash at the end of a tag is an end tag.
        let has_slashes = tree.is_xml || tree.open.current().namespace != Namespace::Html;
        TagSearchRules { needs_attributes: rules.needs_attributes || has_slashes, ..rules }
    }

    fn read_common_markup(&mut self, bytes: &[u8]) -> Result<usize> {
        TreeBuilder::read_common_markup(self, bytes)
    }

    fn start_tag(&mut self, tag: &Tag<'_>) -> Result<TextState> {
        self.end_text_node();
        let name = tag.id;
        if self.tree.is_xml {
            self.open(name, Namespace::Xml, TagSearchRules { properties: 0, ..tag.rules }, Some(tag))?;
            if tag.is_self_closing {
                self.close_to(self.tree.open.depth() - 1)?;
            }
            return Ok(TextState::Data);
        }
        if self.tree.open.is_foreign() {
            let leaves = tag.rules.properties & properties::ENDS_FOREIGN_CONTENT != 0
                || name == names::FONT && ["color", "face", "size"].iter().any(|name| tag.attribute(name).is_some());
            if !leaves {
                let namespace = if name == names::SVG { Namespace::Svg } else { self.tree.open.current().namespace };
                return self.open_foreign(name, namespace, tag);
            }
            self.close_to(self.tree.open.depth_outside_foreign())?;
        }
        self.html_start(tag)
    }

    fn end_tag(&mut self, tag: &Tag<'_>) -> Result<()> {
        self.end_text_node();
        let name = tag.id;
        let open = &self.tree.open;
        if open.current().namespace == Namespace::Html {
            return self.html_end(name, tag.rules.properties);
        }
        if self.tree.is_xml {
            return match open.find(name) {
                Some(depth) => self.close_to(depth - 1),
                None => Ok(()),
            };
        }
        if open.is_foreign() && matches!(name, names::P | names::BR) {
            self.close_to(open.depth_outside_foreign())?;
            return self.html_end(name, tag.rules.properties);
        }
        match open.closed_in_foreign(name) {
            Some(depth) => self.close_to(depth - 1),
            None => self.html_end(name, tag.rules.properties),
        }
    }

    fn text(&mut self, text: &[u8], has_references: bool) -> Result<()> {
        let tree = &mut *self.tree;
        if tree.insertion_mode != InsertionMode::Body && !tree.is_xml {
            let is_outside = tree.open.depth() == 0 || matches!(tree.open.current().name, names::HTML | names::HEAD);
            if is_outside {
                if text.iter().all(|byte| is_space(*byte)) {
                    return Ok(());
                }
                self.enter_body()?;
            }
        }
        let tree = &mut *self.tree;
        if tree.collects_text() {
            let is_preformatted = tree.open.current().is(KEEPS_BLANKS);
            tree.text.push(text, has_references, is_preformatted);
            return self.check_memory();
        }
        Ok(())
    }

    fn end_text(&mut self) -> Result<()> {
        self.end_text_node();
        Ok(())
    }

    fn wants_text(&self) -> bool {
        self.tree.collects_text() || self.tree.insertion_mode != InsertionMode::Body && !self.tree.is_xml
    }

    fn allows_cdata(&self) -> bool {
        self.tree.open.current().namespace != Namespace::Html
    }
}

impl PageParserState {
    pub(super) fn collects_text(&self) -> bool {
        self.open_texts > 0 && self.script_or_style.as_ref().is_none_or(|script_or_style| script_or_style.is_needed)
    }

    /// Returns true if no text is being collected and no value waits to be passed on.
    pub(super) fn collects_nothing(&self) -> bool {
        self.open_texts == 0 && self.waiting.is_empty() && self.script_or_style.is_none()
    }

    /// Begins to collect the text of an element, if [`Self::collects_nothing`] is true and the
    /// element is not void. Otherwise returns false. `rules` are the rules for the element's name.
    pub(super) fn begin_only_text(&mut self, rules: TagSearchRules) -> bool {
        if !self.collects_nothing() || rules.properties & properties::IS_VOID != 0 {
            return false;
        }
        let query = usize::from(rules.text_query) - 1;
        self.waiting.push(DeferredValue::Text { query, start: self.text.position(), end: None });
        self.selected.push(0..1);
        self.change_open_texts(1);
        true
    }

    /// Returns true if exactly one value waits to be passed on, and this value is the text of an
    /// element that is still open.
    fn has_only_text(&self) -> bool {
        self.open_texts == 1 && matches!(&*self.waiting, [DeferredValue::Text { .. }]) && self.script_or_style.is_none()
    }

    /// Returns the text of the value `waiting[index]`: the part `range` of the page's text, without
    /// the texts of scripts, styles and templates inside the value's element. If such texts are
    /// left out, the other parts are joined in the buffer `joined`.
    fn text_of<'t>(&'t self, index: usize, range: Range<usize>, joined: &'t mut Vec<u8>) -> &'t [u8] {
        let bytes = self.text.bytes();
        if self.script_or_style_ranges.is_empty() {
            return &bytes[range];
        }
        let first = self.script_or_style_ranges.partition_point(|script_or_style| script_or_style.start < range.start);
        let inside =
            self.script_or_style_ranges[first..].iter().take_while(|script_or_style| script_or_style.end <= range.end);
        let mut hidden = inside.filter(|script_or_style| index < script_or_style.first_inside).peekable();
        if hidden.peek().is_none() {
            return &bytes[range];
        }
        joined.clear();
        let mut from = range.start;
        for script_or_style in hidden {
            joined.extend_from_slice(&bytes[from..script_or_style.start]);
            from = script_or_style.end;
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

    /// Returns a reader of markup whose text is not collected.
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

    /// Makes the tree builder read the page by the rules of XML instead of HTML.
    pub(super) fn set_xml(&mut self) {
        self.tree.is_xml = true;
    }

    /// Closes all elements at the end of the page.
    pub(super) fn finish(&mut self) -> Result<()> {
        self.end_text_node();
        self.close_to(0)
    }

    pub(super) fn end_text_node(&mut self) {
        let is_preformatted = self.tree.open.current().is(KEEPS_BLANKS);
        self.tree.text.end_text_node(is_preformatted);
    }

    pub(super) fn check_memory(&self) -> Result<()> {
        if self.tree.memory_in_use() > self.tree.limit { Err(too_long(self.tree.limit)) } else { Ok(()) }
    }

    /// Opens an HTML element whose start tag is missing.
    pub(super) fn open_missing(&mut self, name: &'static str) -> Result<()> {
        let name = TagName::new(name.as_bytes());
        self.open(name, Namespace::Html, self.queries.names.rules(name), None)
    }

    /// Opens an element, and collects the values that queries select from it. `tag` is its start
    /// tag; `None` if the start tag is missing.
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
        let first_value = tree.waiting.len();
        let was_open = tree.open_texts > 0;
        let texts = if matches == 0 { 0 } else { self.collect(matches, tag)? };
        let tree = &mut *self.tree;
        if properties & properties::HAS_SEPARATE_TEXT != 0 && was_open && tree.script_or_style.is_none() {
            tree.script_or_style = Some(OpenScriptOrStyle {
                depth: tree.open.depth() + 1,
                first_inside: first_value,
                start: tree.text.position(),
                is_needed: false,
                was_separated: tree.text.is_separated(),
            });
        }
        if let Some(script_or_style) = tree.script_or_style.as_mut().filter(|_| texts > 0) {
            script_or_style.is_needed = true;
        }
        let allows_html = match namespace {
            Namespace::Html | Namespace::Xml => false,
            Namespace::Svg => matches!(name, names::FOREIGN_OBJECT | names::DESC | names::TITLE),
            Namespace::MathMl => {
                matches!(name, names::MI | names::MN | names::MO | names::MS | names::MTEXT)
                    || name == names::ANNOTATION_XML && tag.is_some_and(Tag::is_html_annotation)
            }
        };
        if texts > 0 {
            tree.selected.push(first_value..tree.waiting.len());
        }
        let allows_html = if allows_html { ALLOWS_HTML } else { 0 };
        let selected = if texts > 0 { IS_SELECTED } else { 0 };
        tree.open.push(OpenElement::new(name, namespace, properties, allows_html | selected));
        let is_base = name == names::BASE && namespace == Namespace::Html && !tree.has_base_element;
        // The content of a template is not part of the page.
        if is_base && tree.open.find(names::TEMPLATE).is_none() {
            self.set_base(tag);
        }
        Ok(())
    }

    /// Collects the attribute values of an element, and begins to collect its text, for the queries
    /// in the set `matches`. Returns the number of queries that select its text.
    fn collect(&mut self, matches: u64, tag: Option<&Tag<'_>>) -> Result<usize> {
        let queries = self.queries;
        let mut texts = 0;
        for (query, css) in queries.queries.iter().enumerate().filter(|(query, _)| matches >> query & 1 == 1) {
            let Some(attribute) = css.attribute() else {
                let start = self.tree.text.position();
                self.tree.waiting.push(DeferredValue::Text { query, start, end: None });
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
    /// `query`. If the text of an outer element is being collected, the values are stored until the
    /// outer element ends.
    fn attribute(&mut self, query: usize, element: &[u8], attribute: &str, value: &[u8]) -> Result<()> {
        let Self { tree, on_found, encoding, .. } = self;
        let PageParserState { base, waiting, waiting_bytes, open_texts, keeps_empty, .. } = &mut **tree;
        let is_empty = Cell::new(true);
        let mut pass = |value: &[u8]| {
            is_empty.set(false);
            if *open_texts == 0 {
                return on_found(FoundValue { query, bytes: value, base: base.as_ref() });
            }
            *waiting_bytes += value.len();
            waiting.push(DeferredValue::Attribute { query, value: value.into() });
            Ok(())
        };
        attribute_values(element, attribute, value, base.as_ref(), encoding, &mut pass)?;
        if is_empty.get() && *keeps_empty {
            pass(b"")?;
        }
        self.check_memory()
    }

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

    /// Closes the innermost element. If it was the outermost selected element, passes on the values
    /// that waited for its end.
    pub(super) fn close_innermost(&mut self) -> Result<()> {
        let tree = &mut *self.tree;
        let is_selected = tree.open.current().is(IS_SELECTED);
        if is_selected && tree.has_only_text() && self.queries.program.is_stateless() {
            tree.open.pop();
            tree.selected.clear();
            tree.open_texts = 0;
            return self.flush();
        }
        if tree.script_or_style.is_some() || is_selected || !self.queries.program.is_stateless() {
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
        if let Some(script_or_style) = &mut tree.script_or_style {
            match script_or_style.depth.cmp(&depth) {
                std::cmp::Ordering::Greater => script_or_style.depth -= 1,
                std::cmp::Ordering::Equal => {
                    let OpenScriptOrStyle { first_inside, start, was_separated, .. } = *script_or_style;
                    tree.text.set_separated(was_separated);
                    if position > start {
                        tree.script_or_style_ranges.push(ScriptOrStyleRange { first_inside, start, end: position });
                    }
                    tree.script_or_style = None;
                }
                std::cmp::Ordering::Less => {}
            }
        }
        if element.is(IS_SELECTED) {
            let inside = tree.open.count_above(depth - 1, |element| element.is(IS_SELECTED));
            let values = tree.selected.remove(tree.selected.len() - 1 - inside);
            let mut closed = 0;
            for value in &mut tree.waiting[values] {
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

    /// Passes `waiting` to `on_found`, after the outermost selected element has ended.
    fn flush(&mut self) -> Result<()> {
        let Self { tree, on_found, .. } = self;
        if let ([DeferredValue::Text { query, start, .. }], []) = (&*tree.waiting, &*tree.script_or_style_ranges) {
            let bytes = trimmed(&tree.text.bytes()[*start..]);
            if !bytes.is_empty() || tree.keeps_empty {
                on_found(FoundValue { query: *query, bytes, base: tree.base.as_ref() })?;
            }
            tree.clear_values();
            return Ok(());
        }
        let mut joined = Vec::new();
        for (index, value) in tree.waiting.iter().enumerate() {
            let (query, bytes) = match value {
                DeferredValue::Attribute { query, value } => (*query, &**value),
                DeferredValue::Text { query, start, end } => {
                    let end = end.unwrap_or(tree.text.position());
                    (*query, trimmed(tree.text_of(index, *start..end, &mut joined)))
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
