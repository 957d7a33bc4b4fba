//! Values of HTML elements, selected by CSS while a page arrives, in bounded memory.
//!
//! ```text
//! text in UTF-8 ── Tokenizer ── tags ── PageParserState (open elements, selectors) ── values, in order
//!                     └── text, only inside selected elements ──┘
//! ```
//!
//! No tree is built. An element's ancestors are the open elements, and the needed facts about its
//! earlier siblings are stored in its parent. Missing end tags and missing `<html>`, `<head>`,
//! `<body>`, `<tbody>` and `<tr>` are supplied by the rules of HTML. XML documents are read without
//! these rules.
//!
//! Not supported: moving misplaced content out of tables, reopening formatting elements (`<b>`)
//! after a block that ended within them, and scripts.

mod attribute_output;
mod byte_mask;
mod common_markup_fast_path;
#[cfg(test)]
mod fast_path_equivalence_tests;
mod markup_automaton;
mod markup_skipper;
mod open_element_stack;
mod tag_caches;
pub(super) mod tag_name_and_rules;
mod tag_parser;
#[cfg(test)]
mod tests;
mod text;
mod tokenizer;
mod tree_builder;
mod tree_rules;

use std::sync::Arc;

use encoding_rs::Encoding;
use haul_policy::page_reference::PageBase;

use super::css::{CssQuery, SelectorProgram};
use super::page_search::OnFound;
use super::prefilter::HitAcrossMarkupTest;
use crate::{Error, ErrorKind, Result};
use tag_name_and_rules::{TagName, TagRulesTable, TagSearchRules, names};
use tokenizer::Tokenizer;
use tree_builder::{PageParserState, TreeBuilder};

/// The compiled CSS queries of a search.
pub(super) struct HtmlQueries {
    queries: Vec<CssQuery>,
    program: SelectorProgram,
    names: TagRulesTable,
}

impl HtmlQueries {
    pub(super) fn new(queries: &[CssQuery]) -> Result<Self> {
        let program = SelectorProgram::new(queries)?;
        let takes_attribute = |query: usize| queries[query].attribute().is_some();
        let text_query = |query: usize| u8::try_from(query + 1).unwrap_or(0);
        let names = TagRulesTable::new(program.names(), |name| {
            let steps = program.steps_for(name);
            // `<base>` sets the base of references, the slash of `<svg/>` ends SVG, and `<image>`
            // is another element.
            let is_special = matches!(name, Some(names::BASE | names::SVG | names::MATH | names::IMAGE));
            TagSearchRules {
                properties: name.map_or(0, TagName::properties),
                needs_attributes: is_special || program.need_attributes(steps, takes_attribute),
                text_query: program.only_query(steps).filter(|query| !takes_attribute(*query)).map_or(0, text_query),
                steps,
            }
        });
        Ok(Self { queries: queries.to_vec(), program, names })
    }

    pub(super) fn queries(&self) -> &[CssQuery] {
        &self.queries
    }
}

/// The search for the values of CSS queries in one page.
pub(super) struct HtmlSearch {
    queries: Arc<HtmlQueries>,
    tokenizer: Tokenizer,
    tree: PageParserState,
    /// The first bytes of a page of unknown type, while they may still be the beginning of an XML
    /// declaration. `None` once the type is known.
    start: Option<Vec<u8>>,
}

impl HtmlSearch {
    /// Makes a search that keeps at most `memory` bytes of a page. It passes on empty values if
    /// `keeps_empty` is true. If `hits` is given, the search may leave out a value whose text fails
    /// this test.
    pub(super) fn new(
        queries: Arc<HtmlQueries>,
        memory: usize,
        keeps_empty: bool,
        hits: Option<HitAcrossMarkupTest>,
    ) -> Self {
        let tree = PageParserState::new(memory, keeps_empty, hits);
        Self { queries, tokenizer: Tokenizer::new(memory), tree, start: Some(Vec::new()) }
    }

    /// Begins a page. `base` is the URL of the page, against which the URLs in it are resolved.
    /// `is_xml` is `None` if the type is not declared and must be read from the bytes of the page.
    pub(super) fn begin(&mut self, base: Option<PageBase>, is_xml: Option<bool>) {
        self.reset();
        self.tree.begin(base, is_xml == Some(true));
        self.start = is_xml.is_none().then(Vec::new);
    }

    pub(super) fn reset(&mut self) {
        self.tokenizer.reset();
        self.tree.reset();
        self.start = Some(Vec::new());
    }

    /// Returns the number of bytes of the page that the search keeps.
    pub(super) fn memory_in_use(&self) -> usize {
        self.tokenizer.buffered_bytes() + self.tree.memory_in_use()
    }

    /// Searches the next piece of the page. The piece is UTF-8; `encoding` is the encoding from
    /// which it was converted.
    pub(super) fn push(&mut self, piece: &[u8], encoding: &'static Encoding, on_found: &mut OnFound<'_>) -> Result<()> {
        let Self { queries, tokenizer, tree, start } = self;
        let mut builder = TreeBuilder::new(tree, queries, encoding, on_found);
        let Some(held) = start else { return tokenizer.push(piece, &mut builder) };
        held.extend_from_slice(piece);
        if held.len() < XML_DECLARATION.len() && XML_DECLARATION.starts_with(held) {
            return Ok(());
        }
        if held.starts_with(XML_DECLARATION) {
            builder.set_xml();
        }
        let first = start.take().unwrap_or_default();
        tokenizer.push(&first, &mut builder)
    }

    /// Ends the page, and passes its remaining values to `on_found`.
    pub(super) fn finish(&mut self, encoding: &'static Encoding, on_found: &mut OnFound<'_>) -> Result<()> {
        let Self { queries, tokenizer, tree, start } = self;
        let mut builder = TreeBuilder::new(tree, queries, encoding, on_found);
        let first = start.take().unwrap_or_default();
        let outcome = tokenizer
            .push(&first, &mut builder)
            .and_then(|()| tokenizer.finish(&mut builder))
            .and_then(|()| builder.finish());
        self.reset();
        outcome
    }
}

/// The first bytes of an XML declaration.
const XML_DECLARATION: &[u8] = b"<?xml";

/// Makes the error for a page whose selected values need more than `limit` bytes of memory.
fn too_long(limit: usize) -> Error {
    let message = format!(
        "a selected value, or the values that wait for it, take more than {} MiB; select smaller elements, or raise \
         --max-memory",
        limit.div_ceil(1 << 20)
    );
    Error::new(ErrorKind::TooLarge, message)
}
