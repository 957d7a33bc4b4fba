//! The search for the value that leads to the next page, in an HTML or XML page while the page
//! arrives.

use std::fmt;

use haul_policy::pagination::NextPageValue;

use crate::body::utf8_conversion::Utf8ConvertingReader;
use crate::extraction::{CssQuery, PageInfo, PageQuery, PageSearch};
use crate::{Error, ErrorKind, Result};

/// The maximum number of bytes of a page that the search keeps in memory, for example as the text
/// of an unfinished element.
pub(super) const MAX_KEPT: u64 = 256 << 10;

/// A CSS query for the value that determines the URL of the next page.
#[derive(Debug, Clone)]
pub(super) struct HtmlPageQuery {
    query: PageQuery,
    /// True if the value is a URL, false if it is the value of a query parameter.
    is_link: bool,
}

impl HtmlPageQuery {
    /// Parses a query for the URL of the next page. The query must name an attribute, since the
    /// text of a link is only its label.
    pub(super) fn link(css: &str) -> Result<Self> {
        let query = CssQuery::new(css)?;
        if query.attribute().is_none() {
            let text = format!(
                "CSS selector {css:?} names no attribute with the URL of the next page; add it, as in a[rel=next]@href"
            );
            return Err(Error::new(ErrorKind::Setup, text));
        }
        Ok(Self { query: PageQuery::css(&[query])?, is_link: true })
    }

    /// Parses a CSS query that selects the new value of a parameter in the URL's query.
    pub(super) fn value(css: &str) -> Result<Self> {
        Ok(Self { query: PageQuery::css(&[CssQuery::new(css)?])?, is_link: false })
    }
}

/// A search in one HTML page for the value that determines the URL of the next page.
pub(super) struct NextPageSearch {
    query: HtmlPageQuery,
    /// The search, and the conversion of the page to UTF-8. `None` before the page begins, and once
    /// a value has been found.
    search: Option<(PageSearch, Utf8ConvertingReader)>,
    /// The first value that the query selects, or the reason why the page cannot be searched;
    /// `None` as long as there is neither.
    found: Option<Result<String>>,
}

impl NextPageSearch {
    pub(super) fn new(query: &HtmlPageQuery) -> Self {
        Self { query: query.clone(), search: None, found: None }
    }

    /// Begins the search in a page. Does nothing if the search has already begun, since an
    /// interrupted transfer of a page may be continued.
    pub(super) fn begin(&mut self, page: &PageInfo<'_>) {
        if self.search.is_some() || self.found.is_some() {
            return;
        }
        let mut search = PageSearch::with_memory(self.query.query.clone(), MAX_KEPT);
        if self.query.is_link {
            search = search.with_link_resolution(std::sync::Arc::default());
        }
        search.begin(page);
        self.search = Some((search, Utf8ConvertingReader::new(page.content_type)));
    }

    /// Searches the next piece of the page's content for the value, unless it was already found.
    pub(super) fn push(&mut self, piece: &[u8]) {
        self.search_part(|search, text, found| {
            text.push(piece, &mut |text, encoding| {
                search.push_converted(text, encoding, &mut |_, value| store_first(found, value))
            })
        });
    }

    /// Discards the search so far, because the page will be delivered again from the beginning.
    pub(super) fn restart(&mut self) {
        (self.search, self.found) = (None, None);
    }

    /// Returns the first value in the page. Call this when the page is complete.
    ///
    /// # Errors
    /// The search would have to keep too much of the page.
    pub(super) fn finish(mut self) -> Result<NextPageValue> {
        self.search_part(|search, text, found| {
            text.finish(&mut |text, encoding| {
                search.push_converted(text, encoding, &mut |_, value| store_first(found, value))
            })?;
            search.finish(&mut |_, value| store_first(found, value))
        });
        Ok(self.found.transpose()?.map_or(NextPageValue::None, NextPageValue::Text))
    }

    /// Searches a part of the page, and stores the first value that the query selects. Does nothing
    /// if a value was already found.
    fn search_part(
        &mut self,
        part: impl FnOnce(&mut PageSearch, &mut Utf8ConvertingReader, &mut Option<String>) -> Result<()>,
    ) {
        let Some((search, text)) = &mut self.search else { return };
        let mut value = None;
        let searched = part(search, text, &mut value);
        self.found = match (value, searched) {
            (Some(value), _) => Some(Ok(value)),
            (None, Err(_)) => Some(Err(too_large())),
            (None, Ok(())) => return,
        };
        self.search = None;
    }
}

impl fmt::Debug for NextPageSearch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NextPageSearch").field("query", &self.query).field("found", &self.found).finish_non_exhaustive()
    }
}

/// Stores the value in `found`, unless an earlier value is stored there.
fn store_first(found: &mut Option<String>, value: &[u8]) -> Result<()> {
    found.get_or_insert_with(|| String::from_utf8_lossy(value).into_owned());
    Ok(())
}

/// Makes the error for a page if the search would have to keep more than [`MAX_KEPT`] bytes of it.
fn too_large() -> Error {
    let message = format!("the value for the next page takes more than {} KiB of the page", MAX_KEPT >> 10);
    Error::new(ErrorKind::TooLarge, message)
}
