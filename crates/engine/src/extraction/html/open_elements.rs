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

/// An open element. It owns no memory and is small, because most elements are only opened and
/// closed.
#[derive(Clone, Copy, Default)]
pub(super) struct OpenElement {
    pub(super) name: TagName,
    pub(super) namespace: Namespace,
    pub(super) properties: u32,
    /// True if this element belongs to SVG or MathML but may contain HTML elements, such as
    /// `<foreignObject>`.
    pub(super) allows_html: bool,
    /// True if the text of the element is selected.
    pub(super) is_selected: bool,
    /// True if the blanks of the text inside the element are kept.
    pub(super) is_preformatted: bool,
    /// The bytes that the element's end tag probably has after `</`: the name and `>`.
    pub(super) end_tag: WordPrefix,
    /// True if the element is known to be a table row inside a group of rows (such as `<tbody>`)
    /// inside a table.
    pub(super) is_row_in_table: bool,
}

/// The condition under which a start tag in the body closes and opens no other element, so that the
/// fast path can read it. The condition depends on the element's name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum StartTagRules {
    /// There is no condition.
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

impl StartTagRules {
    /// Returns the condition for an HTML element with this name. `bits` are the properties of the
    /// name.
    #[inline]
    pub(super) fn new(name: TagName, bits: u32) -> Self {
        const RULES: u32 = properties::HAS_START_TAG_RULES
            | properties::HAS_SEPARATE_TEXT
            | properties::IS_TABLE_PART
            | properties::IS_RUBY_TEXT
            | properties::CLOSES_P
            | properties::IS_HEADING;
        const ITEM_RULES: u32 = properties::HAS_START_TAG_RULES | properties::CLOSES_P;
        const HEADING_RULES: u32 = properties::IS_HEADING | properties::CLOSES_P;
        match (bits & RULES, name) {
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

impl OpenElement {
    fn is_html(&self, name: TagName) -> bool {
        self.namespace == Namespace::Html && self.name == name
    }

    pub(super) fn has(&self, property: u32) -> bool {
        self.properties & property != 0
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

/// The stack of open elements, the outermost first. The first entry is the document itself.
pub(super) struct OpenElements {
    stack: Vec<OpenElement>,
    /// The number of open elements, for each [`TagName::bucket`] of their names. Several names can
    /// share a bucket. If the number is 0, no element with a name of the bucket is open.
    counts: [u16; 256],
    /// The number of open headings, `<h1>` to `<h6>`.
    headings: u16,
}

impl OpenElements {
    pub(super) fn new() -> Self {
        Self { stack: vec![OpenElement::default()], counts: [0; 256], headings: 0 }
    }

    pub(super) fn reset(&mut self) {
        self.stack.clear();
        self.stack.push(OpenElement::default());
        (self.counts, self.headings) = ([0; 256], 0);
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
        self.depth() > 0 && self.current().namespace == Namespace::Html
    }

    /// Marks the innermost element as one whose text is selected.
    pub(super) fn select_innermost(&mut self) {
        self.stack.last_mut().expect("the document stays open").is_selected = true;
    }

    /// Returns true if the start tag of an HTML element in the body closes and opens no other
    /// element. `rules` is the condition for the element's name.
    #[inline(always)]
    pub(super) fn takes_without_rules(&self, name: TagName, rules: StartTagRules) -> bool {
        let has_none = match rules {
            StartTagRules::None => true,
            StartTagRules::Block => !self.may_be_open(names::P),
            StartTagRules::Cell => self.current().is_row_in_table || self.is_place_of(name),
            StartTagRules::Row => self.is_place_of(name),
            StartTagRules::Anchor => !self.may_be_open(names::A),
            StartTagRules::ListItem => {
                let is_first = || matches!(self.current().name, names::OL | names::UL) || !self.may_be_open(name);
                !self.may_be_open(names::P) && is_first()
            }
            StartTagRules::Heading => !self.may_be_open(names::P) && !self.current().has(properties::IS_HEADING),
            StartTagRules::Other => false,
        };
        has_none && self.depth() < MAX_DEPTH
    }

    #[inline(always)]
    pub(super) fn push(&mut self, element: OpenElement) {
        self.counts[element.name.bucket()] += 1;
        self.headings += u16::from(element.has(properties::IS_HEADING));
        self.stack.push(element);
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
            self.counts[element.name.bucket()] -= 1;
            self.headings -= u16::from(element.has(properties::IS_HEADING));
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
            self.stack[depth..].iter_mut().for_each(|inside| inside.is_row_in_table = false);
            self.stack.remove(depth)
        };
        self.counts[element.name.bucket()] -= 1;
        self.headings -= u16::from(element.has(properties::IS_HEADING));
        element
    }

    /// Returns false if certainly no element with this name is open.
    pub(super) fn may_be_open(&self, name: TagName) -> bool {
        self.counts[name.bucket()] > 0
    }

    /// Returns true if the next tag belongs to SVG or MathML, not to HTML.
    pub(super) fn is_foreign(&self) -> bool {
        let current = self.current();
        matches!(current.namespace, Namespace::Svg | Namespace::MathMl) && !current.allows_html
    }

    /// Returns the depth of the innermost open element that may contain HTML elements.
    pub(super) fn depth_outside_foreign(&self) -> usize {
        let is_html = |element: &OpenElement| {
            matches!(element.namespace, Namespace::Html | Namespace::Xml) || element.allows_html
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
                _ => element.allows_html,
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
        if self.headings == 0 {
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
    /// there is none. `items` are the names of such items: `<li>`, or `<dd>` and `<dt>`.
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

    /// Returns true if the innermost open element is certainly the right parent for a row or cell
    /// of a table with the name `name`. If the result is false, it may still be the right parent.
    pub(super) fn is_place_of(&self, name: TagName) -> bool {
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

    /// Returns true if a table is open that a row or a cell can belong to, i.e. no `<template>` is
    /// open inside it.
    pub(super) fn is_in_table(&self) -> bool {
        self.find_name_in_scope(ElementScope::Table, names::TABLE).is_some()
    }
}
