//! Receives the tokens of a page, and applies the rules of HTML, XML or foreign content (SVG and
//! MathML) to them.

use super::super::open_element_stack::{KEEPS_WHITE_SPACE, Namespace};
use super::super::tag_name_and_rules::{self as properties, TagName, TagSearchRules, names};
use super::super::tag_parser::{Tag, is_space};
use super::super::tokenizer::{TextState, TokenSink};
use super::{InsertionMode, TreeBuilder};
use crate::Result;
use crate::extraction::css::ElementAttributes;

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
        self.html_start_tag(tag)
    }

    fn end_tag(&mut self, tag: &Tag<'_>) -> Result<()> {
        self.end_text_node();
        let name = tag.id;
        let open = &self.tree.open;
        if open.current().namespace == Namespace::Html {
            return self.html_end_tag(name, tag.rules.properties);
        }
        if self.tree.is_xml {
            return match open.find(name) {
                Some(depth) => self.close_to(depth - 1),
                None => Ok(()),
            };
        }
        if open.is_foreign() && matches!(name, names::P | names::BR) {
            self.close_to(open.depth_outside_foreign())?;
            return self.html_end_tag(name, tag.rules.properties);
        }
        match open.find_in_foreign_content(name) {
            Some(depth) => self.close_to(depth - 1),
            None => self.html_end_tag(name, tag.rules.properties),
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
            let is_preformatted = tree.open.current().is(KEEPS_WHITE_SPACE);
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
