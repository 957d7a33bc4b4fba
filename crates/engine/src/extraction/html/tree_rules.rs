//! The rules of HTML that decide which elements a tag opens and closes (WHATWG HTML, "Tree
//! construction").

use super::open_element_stack::{ElementScope, Namespace};
use super::tag_name_and_rules::{self as properties, TagName, TagSearchRules, names};
use super::tag_parser::Tag;
use super::tokenizer::{TextState, TokenSink};
use super::tree_builder::{InsertionMode, TreeBuilder};
use crate::Result;

impl TreeBuilder<'_, '_> {
    /// Handles a start tag in HTML content (not in XML, SVG or MathML content). Returns the state
    /// of the tokenizer for the text after the tag.
    pub(super) fn html_start_tag(&mut self, tag: &Tag<'_>) -> Result<TextState> {
        let (name, properties) = (tag.id, tag.rules.properties);
        if properties & properties::HAS_START_TAG_RULES != 0 || self.tree.insertion_mode != InsertionMode::Body {
            return self.start_tag_by_special_rules(tag);
        }
        if properties & properties::IS_TABLE_PART != 0 {
            self.close_before_table_part(name)?;
        } else if properties & properties::IS_RUBY_TEXT != 0 {
            self.close_ruby_text()?;
        } else if properties & properties::CLOSES_P != 0 {
            self.close_paragraph(properties)?;
        }
        self.open(name, Namespace::Html, tag.rules, Some(tag))?;
        if properties & properties::IS_VOID != 0 {
            self.close_to(self.tree.open.depth() - 1)?;
        }
        Ok(text_state(name, properties))
    }

    /// Handles a start tag for which HTML has special rules, such as `<svg>` and `<form>`, or a
    /// start tag before the body. Returns the state of the tokenizer for the text after the tag.
    fn start_tag_by_special_rules(&mut self, tag: &Tag<'_>) -> Result<TextState> {
        let (name, rules) = match tag.id {
            names::IMAGE => (names::IMG, self.rules(names::IMG)),
            name => (name, tag.rules),
        };
        let properties = rules.properties;
        if !self.enter_insertion_mode(name, rules, tag)? || self.ignores_start_tag(name)? {
            return Ok(TextState::Data);
        }
        self.close_before_start_tag(name, properties)?;
        match name {
            names::SVG => return self.open_foreign(name, Namespace::Svg, tag),
            names::MATH => return self.open_foreign(name, Namespace::MathMl, tag),
            _ => {}
        }
        // A form between the cells of a table has no content.
        let is_empty =
            properties & properties::IS_VOID != 0 || name == names::FORM && self.tree.open.is_between_cells();
        self.open(name, Namespace::Html, rules, Some(tag))?;
        if is_empty {
            self.close_to(self.tree.open.depth() - 1)?;
        }
        Ok(text_state(name, properties))
    }

    /// Returns true if a start tag opens no element. That is the case for a `<form>` inside a form,
    /// and for a `<select>` inside a `<select>`. The inner `<select>` closes the outer element.
    fn ignores_start_tag(&mut self, name: TagName) -> Result<bool> {
        match name {
            names::FORM if self.tree.open.find(names::TEMPLATE).is_none() => {
                Ok(std::mem::replace(&mut self.tree.has_form, true))
            }
            names::SELECT => match self.tree.open.find_name_in_scope(ElementScope::Default, names::SELECT) {
                Some(depth) => self.close_to(depth - 1).map(|()| true),
                None => Ok(false),
            },
            _ => Ok(false),
        }
    }

    /// Opens missing elements among `<html>`, `<head>` and `<body>` before this start tag. Returns
    /// true if the tag must still be handled. Returns false if the tag is one of these three, or a
    /// `<frameset>` in place of the `<body>`.
    fn enter_insertion_mode(&mut self, name: TagName, rules: TagSearchRules, tag: &Tag<'_>) -> Result<bool> {
        if name == names::HTML {
            if self.tree.open.depth() == 0 {
                self.open(name, Namespace::Html, rules, Some(tag))?;
            }
            return Ok(false);
        }
        if self.tree.insertion_mode == InsertionMode::Body {
            return Ok(!matches!(name, names::HEAD | names::BODY));
        }
        if self.tree.open.depth() == 0 {
            self.open_implied_element("html")?;
        }
        if self.tree.open.find(names::TEMPLATE).is_some() {
            return Ok(true);
        }
        let is_in_head = rules.properties & properties::MAY_BE_IN_HEAD != 0;
        match (self.tree.insertion_mode, name) {
            (InsertionMode::BeforeHead, names::HEAD) => {
                self.tree.insertion_mode = InsertionMode::Head;
                self.open(name, Namespace::Html, rules, Some(tag))?;
                return Ok(false);
            }
            (_, names::HEAD) => return Ok(false),
            (InsertionMode::BeforeHead, _) if is_in_head => {
                self.open_implied_element("head")?;
                self.tree.insertion_mode = InsertionMode::Head;
            }
            _ if is_in_head => {}
            (_, names::BODY | names::FRAMESET) => {
                self.leave_head()?;
                self.tree.insertion_mode = InsertionMode::Body;
                self.open(name, Namespace::Html, rules, Some(tag))?;
                return Ok(false);
            }
            _ => self.enter_body()?,
        }
        Ok(true)
    }

    /// Opens a missing `<body>`, and `<html>` around it.
    pub(super) fn enter_body(&mut self) -> Result<()> {
        if self.tree.open.depth() == 0 {
            self.open_implied_element("html")?;
        }
        self.leave_head()?;
        self.tree.insertion_mode = InsertionMode::Body;
        self.open_implied_element("body")
    }

    /// Closes `<head>` and all elements inside it. If there was no `<head>`, opens it first.
    fn leave_head(&mut self) -> Result<()> {
        if self.tree.insertion_mode == InsertionMode::BeforeHead {
            self.open_implied_element("head")?;
        }
        self.close_to(1)
    }

    /// Closes the elements that this start tag ends, such as an open `<li>` before the next `<li>`.
    /// Also opens missing table elements, such as `<tr>` before `<td>`. `properties` is the bit set
    /// of the properties of the element's name, such as [`CLOSES_P`](properties::CLOSES_P).
    fn close_before_start_tag(&mut self, name: TagName, properties: u32) -> Result<()> {
        let open = &self.tree.open;
        let closed = match name {
            names::LI => open.list_item_to_close(&[names::LI]),
            names::DD | names::DT => open.list_item_to_close(&[names::DD, names::DT]),
            names::BUTTON => open.find_name_in_scope(ElementScope::Default, names::BUTTON),
            names::INPUT => open.find_name_in_scope(ElementScope::Default, names::SELECT),
            names::OPTION if open.current().name == names::OPTION => Some(open.depth()),
            names::OPTGROUP => open
                .find_name_in_scope(ElementScope::Default, names::OPTGROUP)
                .or_else(|| (open.current().name == names::OPTION).then(|| open.depth())),
            names::A | names::NOBR => {
                return match open.formatting_element_in_scope(name) {
                    Some(depth) => self.close_formatting_element(depth),
                    None => Ok(()),
                };
            }
            names::TABLE => open.table_to_close(),
            _ if properties & properties::IS_TABLE_PART != 0 => return self.close_before_table_part(name),
            _ if properties & properties::IS_RUBY_TEXT != 0 => return self.close_ruby_text(),
            _ => None,
        };
        if let Some(depth) = closed {
            self.close_to(depth - 1)?;
        }
        if properties & properties::CLOSES_P != 0 { self.close_paragraph(properties) } else { Ok(()) }
    }

    /// Closes an open paragraph, because a block starts. If the block is a heading, also closes the
    /// innermost element if that is a heading. `properties` is the bit set of the block's
    /// properties, such as [`IS_HEADING`](properties::IS_HEADING).
    fn close_paragraph(&mut self, properties: u32) -> Result<()> {
        if let Some(depth) = self.tree.open.paragraph_in_button_scope() {
            self.close_to(depth - 1)?;
        }
        if properties & properties::IS_HEADING != 0 && self.tree.open.current().has(properties::IS_HEADING) {
            self.close_to(self.tree.open.depth() - 1)?;
        }
        Ok(())
    }

    /// Closes the innermost open element if it is a ruby text element (`<rb>`, `<rt>` or a similar
    /// one), because the start tag of another one follows.
    fn close_ruby_text(&mut self) -> Result<()> {
        let is_open = self.tree.open.current().has(properties::IS_RUBY_TEXT);
        if is_open { self.close_to(self.tree.open.depth() - 1) } else { Ok(()) }
    }

    /// Closes the elements that the start tag of a table part, such as `<td>`, ends, and opens
    /// missing table elements around it, such as `<tr>`.
    fn close_before_table_part(&mut self, name: TagName) -> Result<()> {
        const GROUPS: [TagName; 5] = [names::TBODY, names::TFOOT, names::THEAD, names::TABLE, names::TEMPLATE];
        let open = &self.tree.open;
        if open.is_right_parent_of(name) {
            return Ok(());
        }
        if !open.is_in_table() {
            // A fragment without its table.
            let closed = match name {
                names::TD | names::TH => open.cell_in_scope(),
                names::TR => open.find_name_in_scope(ElementScope::Table, names::TR),
                _ => None,
            };
            return closed.map_or(Ok(()), |depth| self.close_to(depth - 1));
        }
        match name {
            names::TD | names::TH => {
                let is_row = |name: TagName| name == names::TR || GROUPS.contains(&name);
                let depth = open.depth_of_innermost(is_row);
                self.close_to(depth)?;
                if self.tree.open.current().name == names::TABLE {
                    self.open_implied_element("tbody")?;
                }
                if self.tree.open.current().name != names::TR && self.tree.open.current().name != names::TEMPLATE {
                    self.open_implied_element("tr")?;
                }
            }
            names::TR => {
                let depth = open.depth_of_innermost(|name| GROUPS.contains(&name));
                self.close_to(depth)?;
                if self.tree.open.current().name == names::TABLE {
                    self.open_implied_element("tbody")?;
                }
            }
            names::COL if open.current().name == names::COLGROUP => {}
            _ => {
                let depth = open.depth_of_innermost(|name| matches!(name, names::TABLE | names::TEMPLATE));
                self.close_to(depth)?;
                if name == names::COL && self.tree.open.current().name == names::TABLE {
                    self.open_implied_element("colgroup")?;
                }
            }
        }
        Ok(())
    }

    /// Returns true if this end tag simply closes the innermost element: that element has the same
    /// name, and no special rules apply. `properties` is the bit set of the name's properties.
    pub(super) fn closes_innermost(&self, name: TagName, properties: u32) -> bool {
        // `</p>` and `</li>` are no exceptions in the body.
        let may_differ = properties & properties::HAS_END_TAG_RULES != 0
            && (properties & properties::HAS_IMPLIED_END_TAG == 0 || self.tree.insertion_mode != InsertionMode::Body);
        !may_differ && self.tree.open.is_innermost(name)
    }

    /// Handles the end tag `name` in HTML content (not in XML, SVG or MathML content). `properties`
    /// is the bit set of the name's properties, such as [`IS_HEADING`](properties::IS_HEADING).
    pub(super) fn html_end_tag(&mut self, name: TagName, properties: u32) -> Result<()> {
        if self.closes_innermost(name, properties) {
            return self.close_innermost();
        }
        if properties & properties::HAS_END_TAG_RULES != 0 {
            return self.end_tag_by_special_rules(name);
        }
        let open = &self.tree.open;
        let closed = if properties & properties::END_TAG_STOPS_AT_TABLE != 0 {
            open.find_name_in_scope(ElementScope::Table, name)
        } else if properties & properties::IS_HEADING != 0 {
            open.heading_in_scope()
        } else if properties & properties::IS_FORMATTING != 0 {
            return match open.formatting_element_in_scope(name) {
                Some(depth) => self.close_formatting_element(depth),
                None => Ok(()),
            };
        } else if properties & properties::END_TAG_CLOSES_ALL_INSIDE != 0 {
            open.find_name_in_scope(ElementScope::Default, name)
        } else {
            open.find_for_any_other_end_tag(name)
        };
        closed.map_or(Ok(()), |depth| self.close_to(depth - 1))
    }

    /// Handles an end tag for which HTML has special rules
    /// ([`HAS_END_TAG_RULES`](properties::HAS_END_TAG_RULES)), such as `</p>`, which opens an empty
    /// `p` element if none is open.
    fn end_tag_by_special_rules(&mut self, name: TagName) -> Result<()> {
        let open = &self.tree.open;
        let closed = match name {
            names::HTML | names::BODY => None,
            names::HEAD => {
                if self.tree.insertion_mode == InsertionMode::Head {
                    self.tree.insertion_mode = InsertionMode::AfterHead;
                    return self.close_to(1);
                }
                None
            }
            names::P | names::BR
                if self.tree.insertion_mode != InsertionMode::Body && open.find(names::TEMPLATE).is_none() =>
            {
                if name == names::P {
                    return Ok(());
                }
                self.enter_body()?;
                return self.open_empty("br");
            }
            // These end tags stand for an empty element.
            names::BR => return self.open_empty("br"),
            names::P => match open.paragraph_in_button_scope() {
                Some(depth) => Some(depth),
                None => return self.open_empty("p"),
            },
            names::LI => open.find_name_in_scope(ElementScope::ListItem, name),
            names::FORM => return self.close_form(),
            names::TEMPLATE => open.find(name),
            _ => open.find_for_any_other_end_tag(name),
        };
        closed.map_or(Ok(()), |depth| self.close_to(depth - 1))
    }

    /// Opens an element and closes it at once.
    fn open_empty(&mut self, name: &'static str) -> Result<()> {
        self.open_implied_element(name)?;
        self.close_to(self.tree.open.depth() - 1)
    }

    /// Closes the innermost open `<form>` for the end tag `</form>`. First closes elements inside
    /// it, innermost first, up to one whose end tag is required: `<form><li><div><p></form>` closes
    /// only `<p>` and `<form>`.
    fn close_form(&mut self) -> Result<()> {
        self.tree.has_form &= self.tree.open.find(names::TEMPLATE).is_some();
        let Some(depth) = self.tree.open.find_name_in_scope(ElementScope::Default, names::FORM) else { return Ok(()) };
        while self.tree.open.depth() > depth && self.tree.open.current().has(properties::HAS_IMPLIED_END_TAG) {
            self.close_to(self.tree.open.depth() - 1)?;
        }
        self.remove(depth)
    }

    /// Closes the formatting element at this depth, such as `<b>`. If a block or another formatting
    /// element is open inside it, that element and all others inside stay open.
    fn close_formatting_element(&mut self, depth: usize) -> Result<()> {
        let stays = properties::IS_SPECIAL | properties::IS_FORMATTING;
        if self.tree.open.any_inside(depth, |element| element.has(stays)) {
            self.remove(depth)
        } else {
            self.close_to(depth - 1)
        }
    }

    /// Opens an SVG or MathML element, and closes it at once if its tag ends with `/>`. Returns the
    /// state of the tokenizer for the text after the tag.
    pub(super) fn open_foreign(&mut self, name: TagName, namespace: Namespace, tag: &Tag<'_>) -> Result<TextState> {
        let is_script_or_style = matches!(name, names::SCRIPT | names::STYLE);
        let properties =
            if is_script_or_style { properties::HAS_SEPARATE_TEXT | properties::IS_PREFORMATTED } else { 0 };
        self.open(name, namespace, TagSearchRules { properties, ..tag.rules }, Some(tag))?;
        if tag.is_self_closing {
            self.close_to(self.tree.open.depth() - 1)?;
        }
        Ok(TextState::Data)
    }
}

/// Returns the state of the tokenizer for the text inside an element with this name. `properties`
/// is the bit set of the name's properties.
fn text_state(name: TagName, properties: u32) -> TextState {
    if properties & properties::HAS_RAW_TEXT == 0 {
        return TextState::Data;
    }
    match name {
        names::TITLE | names::TEXTAREA => TextState::Rcdata,
        names::SCRIPT => TextState::ScriptData,
        names::PLAINTEXT => TextState::PlainText,
        _ => TextState::RawText,
    }
}
