//! The stack of open elements, with the rules of HTML for missing end tags (WHATWG HTML, "Tree
//! construction", as far as a page without a tree can follow them).

mod start_tag_condition;

use super::byte_mask::WordPrefix;
use super::tag_name_and_rules::{self as properties, TagName, names};
pub(super) use start_tag_condition::{FastPathTagCondition, StartTagQuickTest};

/// The maximum number of open elements inside each other. An element inside the deepest one becomes
/// its sibling, as in browsers.
pub(super) const MAX_DEPTH: usize = 512;

/// The namespace of an element. It decides which rules apply to the element's tags.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Namespace {
    #[default]
    Html,
    Svg,
    MathMl,
    /// Any element of an XML document.
    Xml,
}

/// A flag of an [`OpenElement`]: the element is in the HTML namespace. (The entry for the document
/// lacks this flag.)
pub(super) const IS_HTML: u16 = 1;
/// A flag of an [`OpenElement`]: the element is a `<table>`.
const IS_TABLE: u16 = 1 << 1;
/// A flag of an [`OpenElement`]: the element is known to be a row group, such as `<tbody>`,
/// directly inside a table.
const IS_ROW_GROUP_IN_TABLE: u16 = 1 << 2;
/// A flag of an [`OpenElement`]: the element is known to be a row (`<tr>`) directly inside a row
/// group of a table.
const IS_ROW_IN_TABLE: u16 = 1 << 3;
/// A flag of an [`OpenElement`]: the element is `<ol>` or `<ul>`.
const IS_LIST: u16 = 1 << 4;
/// A flag of an [`OpenElement`]: the element is an HTML element, and not a heading (`<h1>` to
/// `<h6>`).
const IS_NO_HEADING: u16 = 1 << 5;
/// A flag of an [`OpenElement`]: the element is an SVG or MathML element that may contain HTML
/// elements, such as `<foreignObject>` (WHATWG HTML: an integration point).
pub(super) const IS_INTEGRATION_POINT: u16 = 1 << 6;
/// A flag of an [`OpenElement`]: a query selects the text of the element.
pub(super) const IS_SELECTED: u16 = 1 << 7;
/// A flag of an [`OpenElement`]: white space inside the element is kept, as in `<pre>`.
pub(super) const KEEPS_WHITE_SPACE: u16 = 1 << 8;
/// A flag that no [`OpenElement`] has. A [`StartTagQuickTest`] that requires it always fails.
const IS_NEVER_SET: u16 = 1 << 15;

/// An entry of the stack of open elements. It is small and owns no memory, because most elements
/// are only opened and closed.
#[derive(Clone, Copy, Default)]
pub(super) struct OpenElement {
    pub(super) name: TagName,
    /// The bytes after the `</` of the element's usual end tag: its name and `>`. The default
    /// value, which no tag matches, if the end tag has special rules.
    pub(super) end_tag: WordPrefix,
    /// The properties of the element by its name, a bit set of [`properties::IS_VOID`] and the
    /// constants after it.
    pub(super) properties: u32,
    /// The flags of this element, a bit set of [`IS_HTML`] and the constants after it.
    flags: u16,
    pub(super) namespace: Namespace,
    /// The [`TagName::bucket`] of the name, an index into [`OpenElementStack::counts`].
    bucket: u8,
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
        let keeps_blanks = if properties & properties::IS_PREFORMATTED != 0 { KEEPS_WHITE_SPACE } else { 0 };
        let flags = named | keeps_blanks | flags;
        Self { name, namespace, properties, flags, bucket: name.bucket(), end_tag: WordPrefix::default() }
    }

    /// Returns `element` with the flags that it has if its start tag meets `condition`.
    pub(super) fn with_flags_of_condition(condition: FastPathTagCondition, element: Self) -> Self {
        let added = if condition == FastPathTagCondition::Row { IS_ROW_IN_TABLE } else { 0 };
        Self { flags: element.flags | added, ..element }
    }

    /// Returns true if this is an HTML element with this name.
    fn is_html(&self, name: TagName) -> bool {
        self.namespace == Namespace::Html && self.name == name
    }

    /// Returns true if the element's name has this property, such as [`properties::IS_VOID`].
    pub(super) fn has(&self, property: u32) -> bool {
        self.properties & property != 0
    }

    /// Returns true if the rules of HTML treat both elements alike: they have the same name,
    /// namespace, properties and flags.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        self.name == other.name
            && (self.flags, self.namespace, self.properties) == (other.flags, other.namespace, other.properties)
    }

    /// Returns true if the element has this flag, such as [`IS_SELECTED`].
    pub(super) fn is(&self, flag: u16) -> bool {
        self.flags & flag != 0
    }

    /// Returns the flags that the element gets from its parent, whose flags are `parent`: whether
    /// it is a row group or row of a table, and whether its white space is kept.
    fn flags_inside(&self, parent: u16) -> u16 {
        let part_of_table = match (self.namespace, self.name) {
            (Namespace::Html, names::TBODY | names::THEAD | names::TFOOT) if parent & IS_TABLE != 0 => {
                IS_ROW_GROUP_IN_TABLE
            }
            (Namespace::Html, names::TR) if parent & IS_ROW_GROUP_IN_TABLE != 0 => IS_ROW_IN_TABLE,
            _ => 0,
        };
        part_of_table | parent & KEEPS_WHITE_SPACE
    }
}

/// A scope in the stack of open elements: the set of element names at which a search from the
/// innermost element outwards ends (WHATWG HTML, "has an element in a specific scope").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ElementScope {
    /// `<html>`, `<table>`, `<td>`, `<template>` and similar elements end the search.
    Default,
    /// `<button>` ends the search, in addition to the default names.
    Button,
    /// `<ol>` and `<ul>` end the search, in addition to the default names.
    ListItem,
    /// Only `<html>`, `<table>` and `<template>` end the search.
    Table,
}

/// The stack of open elements (WHATWG HTML), the outermost first. The first entry is the document
/// itself, whose depth is 0.
#[derive(Clone)]
pub(super) struct OpenElementStack {
    stack: Vec<OpenElement>,
    /// The number of open elements for each [`TagName::bucket`], a hash of their names. If the
    /// number is 0, no element with a name of the bucket is open.
    counts: [u16; 256],
}

/// The [`TagName::bucket`] that belongs to no name.
const UNUSED_BUCKET: u8 = 0;

impl OpenElementStack {
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

    /// Returns true if an element is open and the innermost one is an HTML element, not one of SVG,
    /// MathML or XML.
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

    /// Returns true if the quick test `test` shows that a start tag only opens its element in the
    /// current stack: the tag closes no open element, and no parent element is missing. A tag that
    /// fails the quick test may nevertheless meet this condition.
    #[inline(always)]
    pub(super) fn passes_quick_test(&self, test: StartTagQuickTest) -> bool {
        self.current().flags & test.flags == test.flags
            && self.counts[usize::from(test.empty_bucket)] == 0
            && self.depth() < MAX_DEPTH
    }

    /// Returns true if the start tag `name` in the body certainly only opens its element: the tag
    /// closes no open element, and needs no parent element that is missing, such as the `<tr>`
    /// around a `<td>`. `condition` is the result of [`FastPathTagCondition::new`] for `name`.
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

    /// Opens an element inside the innermost one, and adds the flags that it gets from there.
    pub(super) fn push(&mut self, element: OpenElement) {
        let flags = element.flags | element.flags_inside(self.current().flags);
        self.push_with_final_flags(&OpenElement { flags, ..element });
    }

    /// Opens an element that [`OpenElement::with_flags_of_condition`] has made. Adds only the flag
    /// [`KEEPS_WHITE_SPACE`], if the innermost open element has it. The element has all other flags
    /// already.
    #[inline(always)]
    pub(super) fn push_with_known_flags(&mut self, element: &OpenElement) {
        if self.current().is(KEEPS_WHITE_SPACE) {
            return self.push(*element);
        }
        self.push_with_final_flags(element);
    }

    /// Opens an element with exactly these flags. They must be complete.
    #[inline(always)]
    pub(super) fn push_with_final_flags(&mut self, element: &OpenElement) {
        self.counts[usize::from(element.bucket)] += 1;
        self.stack.push(*element);
    }

    /// Removes and returns the innermost open element.
    ///
    /// # Panics
    /// No element is open.
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
            let lost = IS_ROW_GROUP_IN_TABLE | IS_ROW_IN_TABLE;
            self.stack[depth..].iter_mut().for_each(|inside| inside.flags &= !lost);
            self.stack.remove(depth)
        };
        self.counts[usize::from(element.bucket)] -= 1;
        element
    }

    /// Returns false if no element with this name is open. The result may also be true for another
    /// name with the same hash.
    pub(super) fn may_be_open(&self, name: TagName) -> bool {
        self.counts[usize::from(name.bucket())] > 0
    }

    /// Returns true if the next tag belongs to foreign content (SVG or MathML), not to HTML.
    pub(super) fn is_foreign(&self) -> bool {
        let current = self.current();
        matches!(current.namespace, Namespace::Svg | Namespace::MathMl) && !current.is(IS_INTEGRATION_POINT)
    }

    /// Returns the depth of the innermost open element that may contain HTML elements: an HTML or
    /// XML element, or an integration point of SVG or MathML.
    pub(super) fn depth_outside_foreign(&self) -> usize {
        let is_html = |element: &OpenElement| {
            matches!(element.namespace, Namespace::Html | Namespace::Xml) || element.is(IS_INTEGRATION_POINT)
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
    /// `None` if there is none in `scope`.
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
                _ => element.is(IS_INTEGRATION_POINT),
            };
            if ends {
                return None;
            }
        }
        None
    }

    /// Returns the depth of the innermost open element with this name; `None` if there is none in
    /// `scope`.
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

    /// Returns the depth of the open `<p>` that the start tag of a block closes (WHATWG HTML, "has
    /// an element in button scope"); `None` if there is none.
    pub(super) fn paragraph_in_button_scope(&self) -> Option<usize> {
        self.find_name_in_scope(ElementScope::Button, names::P)
    }

    /// Returns the depth of the open list item that the start tag of another item closes; `None` if
    /// there is none. `items` are the names of list items that close each other: `li`, or `dd` and
    /// `dt`.
    pub(super) fn list_item_to_close(&self, items: &[TagName]) -> Option<usize> {
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
    pub(super) fn formatting_element_in_scope(&self, name: TagName) -> Option<usize> {
        self.find_name_in_scope(ElementScope::Default, name)
    }

    /// Returns the depth of the element that an end tag without special rules closes (WHATWG HTML,
    /// "any other end tag"). Returns `None` if it closes no element.
    pub(super) fn find_for_any_other_end_tag(&self, name: TagName) -> Option<usize> {
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

    /// Returns the depth of the innermost open element for whose name `is_context` is true. Returns
    /// 0, the depth of the document, if there is none.
    pub(super) fn depth_of_innermost(&self, is_context: impl Fn(TagName) -> bool) -> usize {
        (1..self.stack.len()).rev().find(|depth| is_context(self.stack[*depth].name)).unwrap_or(0)
    }

    /// Returns the depth of the open table that the start tag of another table closes. Returns
    /// `None` if no table is open, or if the new table is inside a cell of it.
    pub(super) fn table_to_close(&self) -> Option<usize> {
        if self.is_between_cells() { self.find_name_in_scope(ElementScope::Table, names::TABLE) } else { None }
    }

    /// Returns true if the innermost element is an HTML element with this name.
    pub(super) fn is_innermost(&self, name: TagName) -> bool {
        self.depth() > 0 && self.current().is_html(name)
    }

    /// Returns true if the innermost open element is certainly the right parent for the table row
    /// or cell `name`: a row group for `<tr>`, a row for `<td>`. If the result is false, it may
    /// still be the right parent.
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
    pub(super) fn count_inside(&self, depth: usize, is_it: impl Fn(&OpenElement) -> bool) -> usize {
        self.stack[depth + 1..].iter().filter(|element| is_it(element)).count()
    }

    /// Returns true if `is_it` is true for an open element inside the element at this depth.
    pub(super) fn any_inside(&self, depth: usize, is_it: impl Fn(&OpenElement) -> bool) -> bool {
        self.stack[depth + 1..].iter().any(is_it)
    }

    /// Returns the depth of the SVG or MathML element with this name that an end tag closes.
    /// Returns `None` if there is none inside the innermost HTML element.
    pub(super) fn find_in_foreign_content(&self, name: TagName) -> Option<usize> {
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
            let mut open = OpenElementStack::new();
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
        let mut open = OpenElementStack::new();
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
