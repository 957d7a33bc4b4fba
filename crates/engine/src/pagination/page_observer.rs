//! The observer of a page's content. While the content passes on its way to the sink, the observer
//! collects the facts that decide how the listing continues.

use std::hash::{DefaultHasher, Hasher};

use haul_policy::pagination::NextPageValue;

use super::Pagination;
#[cfg(feature = "select")]
use super::buffered_json_page::{MAX_PAGE, ReceivedJsonPage};
#[cfg(feature = "select")]
use super::html_page::NextPageSearch;
use crate::Result;
use crate::extraction::PageInfo;

/// The properties of a page's content that determine the next page of the listing:
/// * the value from which the next page's URL is made,
/// * whether the content is empty,
/// * a digest by which a repeated page is detected.
#[derive(Debug, Default)]
pub(crate) struct PageFindings {
    pub(crate) value: NextPageValue,
    pub(crate) is_empty: bool,
    /// The digest of the page's content, for comparison with the previous pages; `None` if pages
    /// are not compared.
    pub(crate) digest: Option<u64>,
}

/// The observer of one page's content. The observer collects the [`PageFindings`], which determine
/// the next page of the listing: the value from which its URL is made, whether the content is
/// empty, and a digest of the content.
#[derive(Debug)]
pub(crate) struct PageContentObserver {
    /// The first bytes of the content other than white space. They show whether the page is empty.
    start: EmptyContentProbe,
    /// The digest of the content so far; `None` if pages are not compared.
    digest: Option<DefaultHasher>,
    /// True if values were extracted from the page, false if there were none. `None` if values are
    /// not extracted from pages.
    has_values: Option<bool>,
    /// The length of the content in bytes; `None` if the response does not announce it.
    #[cfg(feature = "select")]
    length: Option<u64>,
    /// The received content, in which a JSONPath will be searched; `None` without a JSONPath.
    #[cfg(feature = "select")]
    json: Option<ReceivedJsonPage>,
    /// The search for a value in the HTML content; `None` without such a search.
    #[cfg(feature = "select")]
    html: Option<NextPageSearch>,
}

impl PageContentObserver {
    pub(super) fn new(pagination: &Pagination) -> Self {
        Self {
            start: EmptyContentProbe::default(),
            digest: pagination.rules.counts_pages().then(DefaultHasher::new),
            has_values: None,
            #[cfg(feature = "select")]
            length: None,
            #[cfg(feature = "select")]
            json: pagination.json.as_ref().map(ReceivedJsonPage::new),
            #[cfg(feature = "select")]
            html: pagination.html.as_ref().map(NextPageSearch::new),
        }
    }

    /// Sets whether values were extracted from the page. With `false`, the page counts as empty,
    /// and with `true` as not empty, whatever its content.
    pub(crate) fn set_has_values(&mut self, has_values: bool) {
        self.has_values = Some(has_values);
    }

    /// Records that the content of a page begins. Does nothing if the content has begun already.
    pub(crate) fn begin(&mut self, page: &PageInfo<'_>) {
        #[cfg(feature = "select")]
        if let Some(html) = &mut self.html {
            html.begin(page);
        }
        #[cfg(not(feature = "select"))]
        let _ = page;
    }

    /// Sets the number of bytes of content that follow; `None` if the response does not announce
    /// it.
    pub(crate) fn set_length(&mut self, length: Option<u64>) {
        #[cfg(feature = "select")]
        {
            self.length = length.map(|length| length.saturating_add(self.buffered_bytes()));
        }
        #[cfg(not(feature = "select"))]
        let _ = length;
    }

    /// Returns the number of bytes of the content that are kept in memory for a JSONPath.
    pub(crate) fn buffered_bytes(&self) -> u64 {
        #[cfg(feature = "select")]
        let held = self.json.as_ref().map_or(0, |json| json.buffered_bytes() as u64);
        #[cfg(not(feature = "select"))]
        let held = 0;
        held
    }

    /// Returns the maximum that [`buffered_bytes`](Self::buffered_bytes) may reach.
    pub(crate) fn max_buffered_bytes(&self) -> u64 {
        #[cfg(feature = "select")]
        let most = self.json.as_ref().map_or(0, |_| self.length.unwrap_or(u64::MAX).min(MAX_PAGE as u64));
        #[cfg(not(feature = "select"))]
        let most = 0;
        most
    }

    /// Searches the complete content with the JSONPath, if there is one, and frees the memory of
    /// the content.
    pub(crate) fn finish_content(&mut self) {
        #[cfg(feature = "select")]
        if let Some(json) = &mut self.json {
            json.finish_content();
        }
    }

    /// Processes the next piece of the decoded content.
    pub(crate) fn push(&mut self, piece: &[u8]) {
        self.start.push(piece);
        if let Some(digest) = &mut self.digest {
            digest.write(piece);
        }
        #[cfg(feature = "select")]
        if let Some(json) = &mut self.json {
            json.push(piece);
        }
        #[cfg(feature = "select")]
        if let Some(html) = &mut self.html {
            html.push(piece);
        }
    }

    /// Discards the content of the page, because the page will be delivered again from the
    /// beginning.
    pub(crate) fn restart(&mut self) {
        self.start = EmptyContentProbe::default();
        self.digest = self.digest.as_ref().map(|_| DefaultHasher::new());
        #[cfg(feature = "select")]
        if let Some(json) = &mut self.json {
            json.restart();
        }
        #[cfg(feature = "select")]
        if let Some(html) = &mut self.html {
            html.restart();
        }
    }

    /// Returns the properties of the page's content. Call this when the content is complete.
    ///
    /// # Errors
    /// The content is too large to be searched, or it is not JSON.
    pub(crate) fn finish(self) -> Result<PageFindings> {
        #[cfg(not(feature = "select"))]
        let value = NextPageValue::None;
        #[cfg(feature = "select")]
        let value = match (self.json, self.html) {
            (Some(json), _) => json.finish()?,
            (None, Some(html)) => html.finish()?,
            (None, None) => NextPageValue::None,
        };
        Ok(PageFindings {
            value,
            is_empty: self.has_values.map_or_else(|| self.start.is_empty(), |has_values| !has_values),
            digest: self.digest.as_ref().map(Hasher::finish),
        })
    }
}

/// The first bytes of a page's content, without white space. They show whether the content is
/// empty.
#[derive(Debug, Default)]
struct EmptyContentProbe {
    bytes: [u8; EmptyContentProbe::LENGTH],
    length: usize,
}

impl EmptyContentProbe {
    /// The number of first bytes that are kept. The longest content that counts as empty, `null`,
    /// has four bytes; a fifth byte shows that the content is longer.
    const LENGTH: usize = 5;

    fn push(&mut self, piece: &[u8]) {
        if self.length == Self::LENGTH {
            return;
        }
        for byte in piece.iter().filter(|byte| !byte.is_ascii_whitespace()).take(Self::LENGTH - self.length) {
            self.bytes[self.length] = *byte;
            self.length += 1;
        }
    }

    fn is_empty(&self) -> bool {
        matches!(&self.bytes[..self.length], b"" | b"[]" | b"{}" | b"null")
    }
}
