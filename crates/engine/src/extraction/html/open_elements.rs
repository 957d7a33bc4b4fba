//! The stack of open elements, with the rules of HTML for missing end tags (WHATWG HTML, "Tree
//! construction", as far as a page without a tree can follow them).

use super::byte_mask::WordPrefix;
use super::tag_name_and_rules::{self as properties, TagName, names};

/// The maximum number of open elements inside each other. An element inside the deepest one becomes
/// its sibling, as in browsers.
pub(super) const MAX_DEPTH: usize = 512;

/// The namespace of an element, which decides the rules for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Namespace {
    #[default]
    Html,
    Svg,
    MathMl,
    /// Any element of an XML document.
    Xml,
}

/// Flag: the element is in the HTML namespace. (The entry for the document lacks this flag.)
pub(super) const IS_HTML: u16 = 1;
/// Flag: the element is a table.
const IS_TABLE: u16 = 1 << 1;
/// Flag: the element is known to be a row group (such as `<tbody>`) directly inside a table.
const IS_GROUP_IN_TABLE: u16 = 1 << 2;
/// Flag: the element is known to be a row directly inside a row group of a table.
const IS_ROW_IN_TABLE: u16 = 1 << 3;
/// Flag: the element is `<ol>` or `<ul>`.
const IS_LIST: u16 = 1 << 4;
/// Flag: the element is an HTML element other than a heading.
const IS_NO_HEADING: u16 = 1 << 5;
/// Flag: the element is an SVG or MathML element that may contain HTML elements.
pub(super) const ALLOWS_HTML: u16 = 1 << 6;
/// Flag: a query selects the text of the element.
pub(super) const IS_SELECTED: u16 = 1 << 7;
/// Flag: white space inside the element is kept.
pub(super) const KEEPS_BLANKS: u16 = 1 << 8;
/// A flag that no element has. A [`StartTagQuickTest`] that requires this flag always fails.
const IS_NEVER_SET: u16 = 1 << 15;

/// An open element. The type is small and owns no memory, because most elements are only opened and
/// closed.
#[derive(Clone, Copy, Default)]
pub(super) struct OpenElement {
    pub(super) name: TagName,
    /// The name of the element with the `>` after it: the bytes that follow `</` in its end tag
    /// (unless that contains white space).
    pub(super) end_tag: WordPrefix,
    pub(super) properties: u32,
    /// The flags of this element, a bit set of [`IS_HTML`] and the constants after it: facts that
    /// do not follow from the name alone, and facts that the rules for start tags often test.
    flags: u16,
    pub(super) namespace: Namespace,
    /// The [`TagName::bucket`] of the name, an index into [`OpenElements::counts`].
    bucket: u8,
}

/// The condition under which a start tag in the body affects no other element: it closes no
/// element, and no parent element is missing. The fast path can then read the tag.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum FastPathTagCondition {
    /// No condition: such a tag never affects another element.
    None,
    /// No `<p>` may be open.
    Block,
    /// The innermost element must be a row of a table.
    Cell,
    /// The innermost element must be a group of rows of a table, such as `<tbody>`.
    Row,
    /// No `<a>` may be open.
    Anchor,
    ListItem,
    Heading,
    /// The start tag always needs the tree builder, which applies all rules.
    #[default]
    Other,
}

impl FastPathTagCondition {
    /// Returns the condition for the start tag of an HTML element with the name `name`.
    /// `properties` is the bit set of the name's properties, such as [`properties::CLOSES_P`].
    #[inline]
    pub(super) fn new(name: TagName, properties: u32) -> Self {
        const RULES: u32 = properties::HAS_START_TAG_RULES
            | properties::HAS_SEPARATE_TEXT
            | properties::IS_TABLE_PART
            | properties::IS_RUBY_TEXT
            | properties::CLOSES_P
            | properties::IS_HEADING;
        const ITEM_RULES: u32 = properties::HAS_START_TAG_RULES | properties::CLOSES_P;
        const HEADING_RULES: u32 = properties::IS_HEADING | properties::CLOSES_P;
        match (properties & RULES, name) {
            (0, _) => Self::None,
            (properties::CLOSES_P, _) => Self::Block,
            (properties::IS_TABLE_PART, names::TD | names::TH) => Self::Cell,
            (properties::IS_TABLE_PART, names::TR) => Self::Row,
            (properties::HAS_START_TAG_RULES, names::A) => Self::Anchor,
            (ITEM_RULES, names::LI) => Self::ListItem,
            (HEADING_RULES, _) => Self::Heading,
            _ => Self::Other,
        }
    }
}

/// A quick test that shows, for most start tags, that the [`FastPathTagCondition`] of the tag is
/// met. If a tag fails the quick test, the condition itself must be checked.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct StartTagQuickTest {
    /// The flags (such as [`IS_HTML`]) that the innermost open element must have, so that the tag
    /// passes the test.
    flags: u16,
    /// The [`TagName::bucket`] (a hash) of the name that no open element may have, so that the tag
    /// passes the test; [`UNUSED_BUCKET`] if there is no such name.
    empty_bucket: u8,
}

impl StartTagQuickTest {
    pub(super) fn new(condition: FastPathTagCondition) -> Self {
        let (flags, empty_bucket) = match condition {
            FastPathTagCondition::None => (IS_HTML, UNUSED_BUCKET),
            FastPathTagCondition::Block => (IS_HTML, names::P.bucket()),
            FastPathTagCondition::Cell => (IS_ROW_IN_TABLE, UNUSED_BUCKET),
            FastPathTagCondition::Row => (IS_GROUP_IN_TABLE, UNUSED_BUCKET),
            FastPathTagCondition::Anchor => (IS_HTML, names::A.bucket()),
            FastPathTagCondition::ListItem => (IS_LIST, names::P.bucket()),
            FastPathTagCondition::Heading => (IS_HTML | IS_NO_HEADING, names::P.bucket()),
            FastPathTagCondition::Other => (IS_NEVER_SET, UNUSED_BUCKET),
        };
        Self { flags, empty_bucket }
    }
}

impl OpenElement {
    /// Makes an element. `properties` is the bit set of its name's properties. `flags` are its
    /// flags in addition to those that follow from the name ([`IS_HTML`] and the constants after
    /// it).
    pub(super) fn new(name: TagName, namespace: Namespace, properties: u32, flags: u16) -> Self {
        let named = match (namespace, name) {
            (Namespace::Html, names::TABLE) => IS_HTML | IS_NO_HEADING | IS_TABLE,
            (Namespace::Html, names::OL | names::UL) => IS_HTML | IS_NO_HEADING | IS_LIST,
            (Namespace::Html, _) if properties & properties::IS_HEADING != 0 => IS_HTML,
            (Namespace::Html, _) => IS_HTML | IS_NO_HEADING,
            _ => 0,
        };
        let keeps_blanks = if properties & properties::IS_PREFORMATTED != 0 { KEEPS_BLANKS } else { 0 };
        let flags = named | keeps_blanks | flags;
        Self { name, namespace, properties, flags, bucket: name.bucket(), end_tag: WordPrefix::default() }
    }

    /// Returns `element` with the flags that an element gets if its start tag meets `condition`.
    pub(super) fn with_flags_of_condition(condition: FastPathTagCondition, element: Self) -> Self {
        let added = if condition == FastPathTagCondition::Row { IS_ROW_IN_TABLE } else { 0 };
        Self { flags: element.flags | added, ..element }
    }

    fn is_html(&self, name: TagName) -> bool {
        self.namespace == Namespace::Html && self.name == name
    }

    pub(super) fn has(&self, property: u32) -> bool {
        self.properties & property != 0
    }

    /// Returns true if the rules of HTML treat both elements alike: their names, namespaces,
    /// properties and flags are equal.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        self.name == other.name
            && (self.flags, self.namespace, self.properties) == (other.flags, other.namespace, other.properties)
    }

    /// Returns true if the element has this flag.
    pub(super) fn is(&self, flag: u16) -> bool {
        self.flags & flag != 0
    }

    /// Returns the flags that the element gets from a parent with the flags `parent`: that it is a
    /// part of a table, or that its white space is kept.
    fn flags_inside(&self, parent: u16) -> u16 {
        let place = match (self.namespace, self.name) {
            (Namespace::Html, names::TBODY | names::THEAD | names::TFOOT) if parent & IS_TABLE != 0 => {
                IS_GROUP_IN_TABLE
            }
            (Namespace::Html, names::TR) if parent & IS_GROUP_IN_TABLE != 0 => IS_ROW_IN_TABLE,
            _ => 0,
        };
        place | parent & KEEPS_BLANKS
    }
}

/// A scope: the set of element names at which the search for an open element ends (WHATWG HTML,
/// "has an element in a specific scope").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ElementScope {
    Default,
    /// `<button>` ends the search, in addition to the default names.
    Button,
    /// `<ol>` and `<ul>` end the search, in addition to the default names.
    ListItem,
    /// Only `<html>`, `<table>` and `<template>` end the search.
    Table,
}

/// The stack of open elements, the outermost first. The first entry is the document itself, whose
/// depth is 0.
#[derive(Clone)]
pub(super) struct OpenElements {
    stack: Vec<OpenElement>,
    /// The number of open elements, for each [`TagName::bucket`] of their names. Several names can
    /// share a bucket. If the number is 0, no element with a name of the bucket is open.
    counts: [u16; 256],
}

/// The bucket number that belongs to no name.
const UNUSED_BUCKET: u8 = 0;

impl OpenElements {
    pub(super) fn new() -> Self {
        Self { stack: vec![OpenElement::default()], counts: [0; 256] }
    }

    pub(super) fn reset(&mut self) {
        self.stack.clear();
        self.stack.push(OpenElement::default());
        self.counts = [0; 256];
    }

    /// Returns the number of open elements, without the document.
    pub(super) fn depth(&self) -> usize {
        self.stack.len() - 1
    }

    /// Returns the innermost open element, or the document if no element is open.
    pub(super) fn current(&self) -> &OpenElement {
        self.stack.last().expect("the document stays open")
    }

    /// Returns true if an element is open and the innermost one belongs to HTML, not to SVG, MathML
    /// or XML.
    pub(super) fn is_in_html(&self) -> bool {
        self.current().is(IS_HTML)
    }

    /// Returns the open elements without the document, the outermost first.
    pub(super) fn elements(&self) -> &[OpenElement] {
        &self.stack[1..]
    }

    /// Marks the innermost element as one whose text a query selects.
    pub(super) fn select_innermost(&mut self) {
        self.stack.last_mut().expect("the document stays open").flags |= IS_SELECTED;
    }

    /// Returns true if a start tag passes its quick test `test` at this place in the page: the tag
    /// then closes no open element, and no parent element is missing. The test may fail for such a
    /// tag, too.
    #[inline(always)]
    pub(super) fn passes_quick_test(&self, test: StartTagQuickTest) -> bool {
        self.current().flags & test.flags == test.flags
            && self.counts[usize::from(test.empty_bucket)] == 0
            && self.depth() < MAX_DEPTH
    }

    /// Returns true if the start tag of an HTML element in the body has no effect on other
    /// elements: it closes none, and no parent element is missing. `condition` is the result of
    /// [`FastPathTagCondition::new`] for `name`.
    pub(super) fn meets_condition(&self, name: TagName, condition: FastPathTagCondition) -> bool {
        let is_met = match condition {
            FastPathTagCondition::None => true,
            FastPathTagCondition::Block => !self.may_be_open(names::P),
            FastPathTagCondition::Cell => self.current().is(IS_ROW_IN_TABLE) || self.is_right_parent_of(name),
            FastPathTagCondition::Row => self.is_right_parent_of(name),
            FastPathTagCondition::Anchor => !self.may_be_open(names::A),
            FastPathTagCondition::ListItem => {
                let is_first = || matches!(self.current().name, names::OL | names::UL) || !self.may_be_open(name);
                !self.may_be_open(names::P) && is_first()
            }
            FastPathTagCondition::Heading => !self.may_be_open(names::P) && !self.current().has(properties::IS_HEADING),
            FastPathTagCondition::Other => false,
        };
        is_met && self.depth() < MAX_DEPTH
    }

    pub(super) fn push(&mut self, element: OpenElement) {
        let flags = element.flags | element.flags_inside(self.current().flags);
        self.push_raw(&OpenElement { flags, ..element });
    }

    /// Adds an element from [`OpenElement::with_flags_of_condition`]. Its flags are complete,
    /// unless the parent keeps white space.
    #[inline(always)]
    pub(super) fn push_with_known_flags(&mut self, element: &OpenElement) {
        if self.current().is(KEEPS_BLANKS) {
            return self.push(*element);
        }
        self.push_raw(element);
    }

    /// Adds an element that was open before inside the same elements. Its flags depend only on
    /// those elements, and stay as they are.
    pub(super) fn push_exact(&mut self, element: &OpenElement) {
        self.push_raw(element);
    }

    #[inline(always)]
    fn push_raw(&mut self, element: &OpenElement) {
        self.counts[usize::from(element.bucket)] += 1;
        self.stack.push(*element);
    }

    /// Removes and returns the innermost open element. An element must be open.
    pub(super) fn pop(&mut self) -> OpenElement {
        self.remove(self.depth())
    }

    /// Removes the innermost open element, if one is open.
    #[inline(always)]
    pub(super) fn pop_innermost(&mut self) {
        if self.stack.len() > 1
            && let Some(element) = self.stack.pop()
        {
            self.counts[usize::from(element.bucket)] -= 1;
        }
    }

    /// Removes and returns the open element at this depth, counted from 1. The elements inside it
    /// stay open.
    pub(super) fn remove(&mut self, depth: usize) -> OpenElement {
        let is_last = depth + 1 == self.stack.len();
        let element = if is_last {
            self.stack.pop().expect("an open element")
        } else {
            // A row inside may have lost its table.
            let lost = IS_GROUP_IN_TABLE | IS_ROW_IN_TABLE;
            self.stack[depth..].iter_mut().for_each(|inside| inside.flags &= !lost);
            self.stack.remove(depth)
        };
        self.counts[usize::from(element.bucket)] -= 1;
        element
    }

    /// Returns true if an element with this name may be open, and false if none is open.
    pub(super) fn may_be_open(&self, name: TagName) -> bool {
        self.counts[usize::from(name.bucket())] > 0
    }

    /// Returns true if the next tag belongs to SVG or MathML, not to HTML.
    pub(super) fn is_foreign(&self) -> bool {
        let current = self.current();
        matches!(current.namespace, Namespace::Svg | Namespace::MathMl) && !current.is(ALLOWS_HTML)
    }

    /// Returns the depth of the innermost open element that may contain HTML elements.
    pub(super) fn depth_outside_foreign(&self) -> usize {
        let is_html = |element: &OpenElement| {
            matches!(element.namespace, Namespace::Html | Namespace::Xml) || element.is(ALLOWS_HTML)
        };
        self.stack.iter().rposition(is_html).unwrap_or(0)
    }

    /// Returns the depth of the innermost open element with this name, in any namespace; `None` if
    /// there is none.
    pub(super) fn find(&self, name: TagName) -> Option<usize> {
        if !self.may_be_open(name) {
            return None;
        }
        (1..self.stack.len()).rev().find(|depth| self.stack[*depth].name == name)
    }

    /// Returns the depth of the innermost open HTML element for which `is_it` is true. Returns
    /// `None` if there is none, or if an element that ends the scope is reached first.
    fn find_in_scope(&self, scope: ElementScope, is_it: impl Fn(&OpenElement) -> bool) -> Option<usize> {
        for depth in (1..self.stack.len()).rev() {
            let element = &self.stack[depth];
            if element.namespace == Namespace::Html && is_it(element) {
                return Some(depth);
            }
            let ends = match (element.namespace, scope) {
                (Namespace::Html, ElementScope::Table) => {
                    matches!(element.name, names::HTML | names::TABLE | names::TEMPLATE)
                }
                (Namespace::Html, ElementScope::Button) if element.name == names::BUTTON => true,
                (Namespace::Html, ElementScope::ListItem) if matches!(element.name, names::OL | names::UL) => true,
                (Namespace::Html, _) => element.has(properties::ENDS_SCOPE),
                (_, ElementScope::Table) => false,
                _ => element.is(ALLOWS_HTML),
            };
            if ends {
                return None;
            }
        }
        None
    }

    /// Returns the depth of the innermost open element with this name; `None` if there is none in
    /// this scope.
    pub(super) fn find_name_in_scope(&self, scope: ElementScope, name: TagName) -> Option<usize> {
        if !self.may_be_open(name) {
            return None;
        }
        self.find_in_scope(scope, |element| element.name == name)
    }

    /// Returns the depth of the innermost open `<td>` or `<th>`; `None` if there is none in the
    /// default scope.
    pub(super) fn cell_in_scope(&self) -> Option<usize> {
        if !self.may_be_open(names::TD) && !self.may_be_open(names::TH) {
            return None;
        }
        self.find_in_scope(ElementScope::Default, |element| matches!(element.name, names::TD | names::TH))
    }

    /// Returns the depth of the innermost open heading; `None` if there is none in the default
    /// scope.
    pub(super) fn heading_in_scope(&self) -> Option<usize> {
        let names = [names::H1, names::H2, names::H3, names::H4, names::H5, names::H6];
        if !names.iter().any(|name| self.may_be_open(*name)) {
            return None;
        }
        self.find_in_scope(ElementScope::Default, |element| element.has(properties::IS_HEADING))
    }

    /// Returns the depth of the open `<p>` that the start tag of a block closes; `None` if there is
    /// none.
    pub(super) fn open_paragraph(&self) -> Option<usize> {
        self.find_name_in_scope(ElementScope::Button, names::P)
    }

    /// Returns the depth of the open list item that the start tag of another item closes; `None` if
    /// there is none. `items` are the names of list items that close each other: `<li>`, or `<dd>`
    /// and `<dt>`.
    pub(super) fn open_item(&self, items: &[TagName]) -> Option<usize> {
        if !items.iter().any(|name| self.may_be_open(*name)) {
            return None;
        }
        for depth in (1..self.stack.len()).rev() {
            let element = &self.stack[depth];
            if element.namespace == Namespace::Html && items.contains(&element.name) {
                return Some(depth);
            }
            let is_passed = matches!(element.name, names::ADDRESS | names::DIV | names::P);
            if element.namespace != Namespace::Html || element.has(properties::IS_SPECIAL) && !is_passed {
                return None;
            }
        }
        None
    }

    /// Returns the depth of the open formatting element with this name, such as `<b>`. Returns
    /// `None` if there is none, or if a table cell or a similar element is open inside it.
    pub(super) fn open_format(&self, name: TagName) -> Option<usize> {
        self.find_name_in_scope(ElementScope::Default, name)
    }

    /// Returns the depth of the element that an end tag without special rules closes. Returns
    /// `None` if it closes no element.
    pub(super) fn find_closed_by_end_tag(&self, name: TagName) -> Option<usize> {
        if !self.may_be_open(name) {
            return None;
        }
        for depth in (1..self.stack.len()).rev() {
            let element = &self.stack[depth];
            if element.is_html(name) {
                return Some(depth);
            }
            if element.namespace == Namespace::Html && element.has(properties::IS_SPECIAL) {
                return None;
            }
        }
        None
    }

    /// Returns the depth of the innermost open element whose name satisfies `is_context`. Returns
    /// 0, the depth of the document, if there is none. The caller closes all elements inside it.
    pub(super) fn depth_of_context(&self, is_context: impl Fn(TagName) -> bool) -> usize {
        (1..self.stack.len()).rev().find(|depth| is_context(self.stack[*depth].name)).unwrap_or(0)
    }

    /// Returns the depth of the open table that the start tag of another table closes. Returns
    /// `None` if no table is open, or if the new table is inside a cell of it.
    pub(super) fn open_table_without_cell(&self) -> Option<usize> {
        if self.is_between_cells() { self.find_name_in_scope(ElementScope::Table, names::TABLE) } else { None }
    }

    /// Returns true if the innermost element is an HTML element with this name.
    pub(super) fn is_innermost(&self, name: TagName) -> bool {
        self.depth() > 0 && self.current().is_html(name)
    }

    /// Returns true if the innermost open element is certainly the right parent for a table row or
    /// cell with the name `name`. If the result is false, it may still be the right parent.
    pub(super) fn is_right_parent_of(&self, name: TagName) -> bool {
        let is_group = |group: &OpenElement| {
            group.namespace == Namespace::Html && matches!(group.name, names::TBODY | names::THEAD | names::TFOOT)
        };
        match (name, &*self.stack) {
            (names::TD | names::TH, [.., table, group, row]) => {
                row.is_html(names::TR) && is_group(group) && table.is_html(names::TABLE)
            }
            (names::TR, [.., table, group]) => is_group(group) && table.is_html(names::TABLE),
            _ => false,
        }
    }

    /// Returns true if the innermost element is a table, a group of rows or a row, and not a cell.
    pub(super) fn is_between_cells(&self) -> bool {
        matches!(self.current().name, names::TABLE | names::TBODY | names::THEAD | names::TFOOT | names::TR)
    }

    /// Returns the number of open elements inside the element at this depth for which `is_it` is
    /// true.
    pub(super) fn count_above(&self, depth: usize, is_it: impl Fn(&OpenElement) -> bool) -> usize {
        self.stack[depth + 1..].iter().filter(|element| is_it(element)).count()
    }

    /// Returns true if `is_it` is true for an open element inside the element at this depth.
    pub(super) fn any_above(&self, depth: usize, is_it: impl Fn(&OpenElement) -> bool) -> bool {
        self.stack[depth + 1..].iter().any(is_it)
    }

    /// Returns the depth of the SVG or MathML element with this name that an end tag closes.
    /// Returns `None` if an HTML element is reached first.
    pub(super) fn closed_in_foreign(&self, name: TagName) -> Option<usize> {
        if !self.may_be_open(name) {
            return None;
        }
        let is_foreign = |depth: &usize| self.stack[*depth].namespace != Namespace::Html;
        (1..self.stack.len()).rev().take_while(is_foreign).find(|depth| self.stack[*depth].name == name)
    }

    /// Returns true if a table is open and no `<template>` is open inside it. The next row or cell
    /// can then belong to this table.
    pub(super) fn is_in_table(&self) -> bool {
        self.find_name_in_scope(ElementScope::Table, names::TABLE).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn start_tag_that_passes_quick_test_meets_condition() {
        let tags = [
            "table", "tbody", "thead", "tr", "td", "th", "p", "a", "div", "ul", "ol", "li", "h1", "h2", "span", "br",
            "option", "svg", "caption",
        ];
        let element = |index: usize| {
            let name = TagName::new(tags[index % tags.len()].as_bytes());
            let namespace = if index % 11 == 10 { Namespace::Svg } else { Namespace::Html };
            OpenElement::new(name, namespace, name.properties(), 0)
        };
        let mut random = 1_u64;
        let mut next = |below: usize| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (random >> 33) as usize % below
        };
        let mut passed = 0;
        for _ in 0..2000 {
            let mut open = OpenElements::new();
            for _ in 0..next(12) {
                match next(8) {
                    0 if open.depth() > 0 => {
                        open.remove(1 + next(open.depth()));
                    }
                    // Most tables are complete.
                    1 | 2 => (0..=next(4)).for_each(|index| open.push(element([0, 1, 3, 4][index]))),
                    _ => open.push(element(next(209))),
                }
            }
            for tag in tags {
                let name = TagName::new(tag.as_bytes());
                let condition = FastPathTagCondition::new(name, name.properties());
                if open.passes_quick_test(StartTagQuickTest::new(condition)) {
                    passed += 1;
                    assert!(open.is_in_html() && open.meets_condition(name, condition), "{tag}");
                }
            }
        }
        assert!(passed > 5000, "{passed}");
    }

    #[test]
    fn deepest_element_fails_quick_test() {
        let div = TagName::new(b"div");
        let mut open = OpenElements::new();
        let test = StartTagQuickTest::new(FastPathTagCondition::None);
        assert!(!open.passes_quick_test(test), "the document");
        for _ in 0..MAX_DEPTH {
            open.push(OpenElement::new(div, Namespace::Html, div.properties(), 0));
            assert_eq!(open.passes_quick_test(test), open.depth() < MAX_DEPTH);
        }
    }

    #[test]
    fn open_element_is_half_a_cache_line() {
        assert_eq!(size_of::<OpenElement>(), 32);
    }
}
