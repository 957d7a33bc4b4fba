//! The search for values in pages: matches of regular expressions, values of HTML elements, or
//! values of JSON documents.
//!
//! ```
//! use haul::extraction::{CssQuery, PageInfo, PageQuery, PageSearch};
//!
//! let query = PageQuery::css(&[CssQuery::new("a.next@href")?])?;
//! let mut search = PageSearch::new(query);
//! let url = haul::Target::parse("http://h/dir/page").unwrap();
//! search.begin(&PageInfo { url: Some(&url), content_type: Some(b"text/html") });
//! let mut found = Vec::new();
//! for piece in ["<a class='top next' href='?p=1&am", "p;q=2'>more</a>"] {
//!     search.push(piece.as_bytes(), &mut |_, value| Ok(found.push(value.to_vec())))?;
//! }
//! search.finish(&mut |_, value| Ok(found.push(value.to_vec())))?;
//! assert_eq!(found, [b"http://h/dir/page?p=1&q=2"]);
//! # Ok::<(), haul::Error>(())
//! ```

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use encoding_rs::{Encoding, UTF_8};
use haul_policy::page_reference::{PageBase, ResolvedPageLink};
use haul_policy::target::Target;

use super::query_encoding_by_charset::with_encoded_query;
use super::streaming_regex_search::{ExtractRegexes, Extractor};
#[cfg(feature = "select")]
use super::{
    css::CssQuery,
    html::{HtmlQueries, HtmlSearch},
    json::{JsonPathQuery, JsonQueries, JsonSearch},
    selected_value_regexes::ValueFilter,
};
use crate::Result;
use crate::body::utf8_conversion::Utf8ConvertingReader;

/// The default memory limit for the search of one page, in bytes: 16 MiB.
#[cfg(feature = "select")]
const DEFAULT_MEMORY: u64 = 16 << 20;

/// A query for the values that are extracted from pages. Clones share the compiled expressions.
#[derive(Clone)]
pub struct PageQuery {
    source: ValueSource,
    /// The regular expressions that are searched for in each selected value; `None` if the values
    /// themselves are the results.
    filter: Option<ExtractRegexes>,
    /// True if empty values are results, too.
    keeps_empty: bool,
}

/// The place where a query finds its values: the text of the page, its HTML elements, or its JSON
/// documents.
#[derive(Clone)]
enum ValueSource {
    /// Matches of regular expressions in the page.
    Matches(ExtractRegexes),
    /// Texts and attributes of HTML elements.
    #[cfg(feature = "select")]
    Elements(Arc<HtmlQueries>),
    /// Values of JSON documents.
    #[cfg(feature = "select")]
    Json(Arc<JsonQueries>),
}

impl PageQuery {
    /// Makes a query for the matches of regular expressions.
    #[must_use]
    pub fn matches(pattern: ExtractRegexes) -> Self {
        Self { source: ValueSource::Matches(pattern), filter: None, keeps_empty: false }
    }

    /// Makes a query for the values of HTML elements. Values are returned in the order in which
    /// their elements begin in the page. For values of the same element, the order of the queries
    /// decides.
    ///
    /// # Errors
    /// [`ErrorKind::Setup`](crate::ErrorKind::Setup) if there are too many selectors.
    #[cfg(feature = "select")]
    pub fn css(queries: &[CssQuery]) -> Result<Self> {
        let source = ValueSource::Elements(Arc::new(HtmlQueries::new(queries)?));
        Ok(Self { source, filter: None, keeps_empty: false })
    }

    /// Makes a query for the values of JSON documents. A page may consist of several documents. For
    /// each document, the values of the first path are returned first, then the values of the
    /// second path, and so on.
    #[cfg(feature = "select")]
    #[must_use]
    pub fn json_path(queries: &[JsonPathQuery]) -> Self {
        Self { source: ValueSource::Json(Arc::new(JsonQueries::new(queries))), filter: None, keeps_empty: false }
    }

    /// Makes the query return JSON strings as JSON texts, with quotes and escapes, so that their
    /// type is visible. Has no effect on other values.
    #[cfg(feature = "select")]
    #[must_use]
    pub fn quoted(self) -> Self {
        let source = match self.source {
            ValueSource::Json(queries) => ValueSource::Json(Arc::new(queries.quoted())),
            other => other,
        };
        Self { source, ..self }
    }

    /// Passes on empty values, too: elements without text, empty attributes and strings, and empty
    /// groups of regular expressions. By default, they are left out. If they are passed on, several
    /// queries that each match once in every item of a page return the same number of values. Their
    /// n-th values then belong together.
    #[must_use]
    pub fn keeping_empty(self) -> Self {
        let source = match self.source {
            ValueSource::Matches(pattern) => ValueSource::Matches(pattern.keeping_empty()),
            #[cfg(feature = "select")]
            ValueSource::Json(queries) => ValueSource::Json(Arc::new(queries.keeping_empty())),
            #[cfg(feature = "select")]
            elements @ ValueSource::Elements(_) => elements,
        };
        Self { source, filter: self.filter.map(ExtractRegexes::keeping_empty), keeps_empty: true }
    }

    /// Searches each selected value for these regular expressions, and returns the matches instead
    /// of the value.
    #[must_use]
    pub fn filtered(self, pattern: ExtractRegexes) -> Self {
        let pattern = if self.keeps_empty { pattern.keeping_empty() } else { pattern };
        Self { filter: Some(pattern), ..self }
    }

    /// Returns the values in a page that is in memory. The page is converted to UTF-8 from its
    /// charset.
    ///
    /// # Errors
    /// The query is a JSONPath, but the page is not JSON.
    pub fn values_in(&self, page: &PageInfo<'_>, body: &[u8]) -> Result<Vec<String>> {
        Ok(self.numbered_values_in(page, body)?.into_iter().map(|(_, value)| value).collect())
    }

    /// Returns the values in a page that is in memory, each with the index of the expression,
    /// selector or path that found it. The page is converted to UTF-8 from its charset.
    ///
    /// # Errors
    /// The errors of [`values_in`](Self::values_in).
    pub fn numbered_values_in(&self, page: &PageInfo<'_>, body: &[u8]) -> Result<Vec<(usize, String)>> {
        let mut search = PageSearch::with_memory(self.clone(), u64::MAX);
        search.begin(page);
        let mut text = search.text_reader(page);
        let mut found = Vec::new();
        let mut take = |query: usize, value: &[u8]| {
            found.push((query, String::from_utf8_lossy(value).into_owned()));
            Ok(())
        };
        text.push(body, &mut |piece, encoding| search.push_converted(piece, encoding, &mut take))?;
        text.finish(&mut |piece, encoding| search.push_converted(piece, encoding, &mut take))?;
        search.finish(&mut take)?;
        Ok(found)
    }

    /// Returns the names that the regular expressions of this query give to group 1, such as `name`
    /// in `(?<name>…)`.
    pub fn value_names(&self) -> impl Iterator<Item = &str> {
        let pattern = match &self.source {
            ValueSource::Matches(pattern) => Some(pattern),
            #[cfg(feature = "select")]
            ValueSource::Elements(_) | ValueSource::Json(_) => self.filter.as_ref(),
        };
        pattern.into_iter().flat_map(ExtractRegexes::value_names)
    }

    /// Returns the texts of the queries, as they were given. Values are passed on with the index of
    /// their query in this list.
    pub fn sources(&self) -> Vec<&str> {
        match &self.source {
            ValueSource::Matches(pattern) => pattern.expressions().collect(),
            #[cfg(feature = "select")]
            ValueSource::Elements(queries) => queries.queries().iter().map(CssQuery::source).collect(),
            #[cfg(feature = "select")]
            ValueSource::Json(queries) => queries.queries().iter().map(JsonPathQuery::source).collect(),
        }
    }
}

impl From<ExtractRegexes> for PageQuery {
    fn from(pattern: ExtractRegexes) -> Self {
        Self::matches(pattern)
    }
}

impl fmt::Debug for PageQuery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PageQuery").field("sources", &self.sources()).field("filter", &self.filter).finish()
    }
}

/// The properties of a page that a search needs.
#[derive(Clone, Copy, Debug, Default)]
pub struct PageInfo<'a> {
    /// The final URL of the page, against which relative URLs in it are resolved; `None` if it is
    /// not known.
    pub url: Option<&'a Target>,
    /// The value of the page's `Content-Type` field; `None` if there is none.
    pub content_type: Option<&'a [u8]>,
}

impl PageInfo<'_> {
    /// Returns the page's media type in lower case, without parameters. Empty if it is not known.
    fn media_type(&self) -> Vec<u8> {
        let value = self.content_type.unwrap_or_default();
        value.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii().to_ascii_lowercase()
    }
}

/// A value found in a page, before it is searched by a filter or resolved as a URL.
#[cfg(feature = "select")]
pub(super) struct FoundValue<'a> {
    /// The index of the query that found the value.
    pub(super) query: usize,
    pub(super) bytes: &'a [u8],
    /// The base URL for relative URLs at this position in an HTML or XML page: the page's URL, or
    /// the URL of the page's `<base>` element. `None` for JSON, or if the page's URL is not known.
    pub(super) base: Option<&'a PageBase>,
}

/// The callback that receives the values that a search finds.
#[cfg(feature = "select")]
pub(super) type OnFound<'f> = dyn FnMut(FoundValue<'_>) -> Result<()> + 'f;

/// The callback that receives extracted values: the index of the query that found the value, and
/// the value.
pub type OnValue<'f> = dyn FnMut(usize, &[u8]) -> Result<()> + 'f;

/// A search of a page for the values of a query. The page may arrive in pieces. After
/// [`finish`](Self::finish) or [`reset`](Self::reset), another page can be searched.
///
/// The search keeps at most as much memory as [`with_memory`](Self::with_memory) allows. For JSON,
/// it needs three times as much while it searches a document. For regular expressions, see
/// [`Extractor`].
pub struct PageSearch {
    search: ValueSourceSearch,
    #[cfg(feature = "select")]
    filter: Option<ValueFilter>,
    links: Option<LinkResolver>,
    /// The encoding from which the page was converted to UTF-8.
    encoding: &'static Encoding,
    #[cfg(feature = "select")]
    memory: u64,
}

/// The search of a page for one kind of values: matches of regular expressions, HTML elements or
/// JSON values.
enum ValueSourceSearch {
    Matches(Extractor),
    #[cfg(feature = "select")]
    Elements(Box<HtmlSearch>),
    #[cfg(feature = "select")]
    Json(Box<JsonSearch>),
}

/// A resolver that turns values into absolute URLs to fetch.
struct LinkResolver {
    base: Option<PageBase>,
    /// True if the page is HTML or XML, so that matches may contain character references.
    is_markup: bool,
    /// The number of values that were skipped because they are not http or https URLs.
    skipped: Arc<AtomicU64>,
}

impl PageSearch {
    /// Makes a search for the values of this query. It keeps at most 16 MiB of a page.
    #[must_use]
    pub fn new(query: PageQuery) -> Self {
        Self::with_memory_limit(query, None)
    }

    /// Makes a search for the values of this query. It keeps at most `memory` bytes of a page.
    #[must_use]
    pub fn with_memory(query: PageQuery, memory: u64) -> Self {
        Self::with_memory_limit(query, Some(memory))
    }

    fn with_memory_limit(query: PageQuery, memory: Option<u64>) -> Self {
        #[cfg(not(feature = "select"))]
        let _ = memory;
        #[cfg(feature = "select")]
        let memory = memory.unwrap_or(DEFAULT_MEMORY);
        #[cfg(feature = "select")]
        let limit = usize::try_from(memory).unwrap_or(usize::MAX);
        let search = match query.source {
            ValueSource::Matches(pattern) => ValueSourceSearch::Matches(Extractor::new(pattern)),
            #[cfg(feature = "select")]
            ValueSource::Elements(queries) => {
                let hits = query.filter.as_ref().and_then(ExtractRegexes::markup_hit_test);
                ValueSourceSearch::Elements(Box::new(HtmlSearch::new(queries, limit, query.keeps_empty, hits)))
            }
            #[cfg(feature = "select")]
            ValueSource::Json(queries) => ValueSourceSearch::Json(Box::new(JsonSearch::new(queries, limit))),
        };
        Self {
            search,
            #[cfg(feature = "select")]
            filter: query.filter.map(|pattern| ValueFilter::new(Extractor::new(pattern))),
            links: None,
            encoding: UTF_8,
            #[cfg(feature = "select")]
            memory,
        }
    }

    /// Passes on the absolute URL of each value instead of the value. The URL has no fragment.
    /// Values that are no URLs to fetch, such as `mailto:` or an empty value, are left out and
    /// counted in `skipped`.
    #[must_use]
    pub fn with_link_resolution(mut self, skipped: Arc<AtomicU64>) -> Self {
        self.links = Some(LinkResolver { base: None, is_markup: false, skipped });
        self
    }

    /// Returns a reader that converts this page to UTF-8. For a search in JSON, a page without a
    /// declared charset is read as UTF-8, whatever its media type.
    pub(crate) fn text_reader(&self, page: &PageInfo<'_>) -> Utf8ConvertingReader {
        let reader = Utf8ConvertingReader::new(page.content_type);
        match &self.search {
            #[cfg(feature = "select")]
            ValueSourceSearch::Json(_) => reader.with_utf8_default(),
            _ => reader,
        }
    }

    /// Begins a page with these properties. If this is not called, the page has no URL and no media
    /// type.
    pub fn begin(&mut self, page: &PageInfo<'_>) {
        self.encoding = UTF_8;
        let needs_type = match &self.search {
            ValueSourceSearch::Matches(_) => self.links.is_some(),
            #[cfg(feature = "select")]
            ValueSourceSearch::Elements(_) | ValueSourceSearch::Json(_) => true,
        };
        if !needs_type {
            return;
        }
        let base = page.url.map(PageBase::new);
        let media_type = page.media_type();
        let is_xml = media_type.ends_with(b"xml");
        if let Some(links) = &mut self.links {
            links.base.clone_from(&base);
            links.is_markup = is_xml || media_type.ends_with(b"html");
        }
        match &mut self.search {
            ValueSourceSearch::Matches(_) => {}
            #[cfg(feature = "select")]
            ValueSourceSearch::Elements(search) => search.begin(base, (!media_type.is_empty()).then_some(is_xml)),
            #[cfg(feature = "select")]
            ValueSourceSearch::Json(_) => {}
        }
    }

    /// Sets the time after which a search for regular expressions fails, for this page and later
    /// ones; `None` for no limit.
    pub(crate) fn set_deadline(&mut self, deadline: Option<Instant>) {
        match &mut self.search {
            ValueSourceSearch::Matches(extractor) => extractor.set_deadline(deadline),
            #[cfg(feature = "select")]
            ValueSourceSearch::Elements(_) | ValueSourceSearch::Json(_) => {}
        }
        #[cfg(feature = "select")]
        if let Some(filter) = &mut self.filter {
            filter.set_deadline(deadline);
        }
    }

    /// Discards the state of the page that is being searched, so that the search can begin another
    /// one.
    pub fn reset(&mut self) {
        match &mut self.search {
            ValueSourceSearch::Matches(extractor) => extractor.reset(),
            #[cfg(feature = "select")]
            ValueSourceSearch::Elements(search) => search.reset(),
            #[cfg(feature = "select")]
            ValueSourceSearch::Json(search) => search.reset(),
        }
        #[cfg(feature = "select")]
        if let Some(filter) = &mut self.filter {
            filter.reset();
        }
    }

    /// Returns the number of bytes that the search keeps of the page. For regular expressions, this
    /// is always 0.
    #[must_use]
    pub fn memory_in_use(&self) -> u64 {
        match &self.search {
            ValueSourceSearch::Matches(_) => 0,
            #[cfg(feature = "select")]
            ValueSourceSearch::Elements(search) => search.memory_in_use() as u64,
            #[cfg(feature = "select")]
            ValueSourceSearch::Json(search) => search.buffered_bytes() as u64,
        }
    }

    /// Returns the maximum that [`memory_in_use`](Self::memory_in_use) can return. For regular
    /// expressions, this is 0.
    #[must_use]
    pub fn max_memory_in_use(&self) -> u64 {
        match &self.search {
            ValueSourceSearch::Matches(_) => 0,
            #[cfg(feature = "select")]
            ValueSourceSearch::Elements(_) | ValueSourceSearch::Json(_) => self.memory,
        }
    }

    /// Searches the next piece of the page, and passes the values to `on_value`. The piece must be
    /// UTF-8, except for a search with regular expressions.
    ///
    /// # Errors
    /// - The errors of `on_value`.
    /// - [`ErrorKind::ContentCoding`](crate::ErrorKind::ContentCoding) if a JSON page is not valid
    ///   JSON.
    /// - [`ErrorKind::TooLarge`](crate::ErrorKind::TooLarge) if a value or document needs too much
    ///   memory.
    ///
    /// After an error, call [`reset`](Self::reset).
    pub fn push(&mut self, piece: &[u8], on_value: &mut OnValue<'_>) -> Result<()> {
        let Self {
            search,
            #[cfg(feature = "select")]
            filter,
            links,
            encoding,
            ..
        } = self;
        let encoding = *encoding;
        let links = links.as_ref().map(|links| LinkResolverWithEncoding { links, encoding });
        match search {
            ValueSourceSearch::Matches(extractor) => match links {
                None => extractor.push_numbered(piece, on_value),
                Some(links) => {
                    extractor.push_numbered(piece, &mut |query, bytes| links.pass_match(query, bytes, on_value))
                }
            },
            #[cfg(feature = "select")]
            ValueSourceSearch::Elements(search) => pass_values(filter.as_mut(), links.as_ref(), on_value, |on_found| {
                search.push(piece, encoding, on_found)
            }),
            #[cfg(feature = "select")]
            ValueSourceSearch::Json(search) => {
                pass_values(filter.as_mut(), links.as_ref(), on_value, |on_found| search.push(piece, on_found))
            }
        }
    }

    /// Searches the next piece of the page, which was converted to UTF-8 from `encoding`.
    ///
    /// # Errors
    /// The errors of [`push`](Self::push).
    pub(crate) fn push_converted(
        &mut self,
        piece: &[u8],
        encoding: &'static Encoding,
        on_value: &mut OnValue<'_>,
    ) -> Result<()> {
        self.encoding = encoding;
        self.push(piece, on_value)
    }

    /// Ends the page, and passes the remaining values to `on_value`. The search can then begin
    /// another page.
    ///
    /// # Errors
    /// The errors of [`push`](Self::push).
    pub fn finish(&mut self, on_value: &mut OnValue<'_>) -> Result<()> {
        let Self {
            search,
            #[cfg(feature = "select")]
            filter,
            links,
            encoding,
            ..
        } = self;
        let encoding = *encoding;
        let links = links.as_ref().map(|links| LinkResolverWithEncoding { links, encoding });
        match search {
            ValueSourceSearch::Matches(extractor) => match links {
                None => extractor.finish_numbered(on_value),
                Some(links) => extractor.finish_numbered(&mut |query, bytes| links.pass_match(query, bytes, on_value)),
            },
            #[cfg(feature = "select")]
            ValueSourceSearch::Elements(search) => {
                pass_values(filter.as_mut(), links.as_ref(), on_value, |on_found| search.finish(encoding, on_found))
            }
            #[cfg(feature = "select")]
            ValueSourceSearch::Json(search) => {
                pass_values(filter.as_mut(), links.as_ref(), on_value, |on_found| search.finish(on_found))
            }
        }
    }
}

impl fmt::Debug for PageSearch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PageSearch").field("held", &self.memory_in_use()).finish_non_exhaustive()
    }
}

/// Runs a search, and passes the values that it finds to `on_value`. With a filter, passes the
/// filter's matches in these values instead. With a resolver (`links`), passes the absolute URLs
/// that the values or matches stand for.
#[cfg(feature = "select")]
fn pass_values(
    mut filter: Option<&mut ValueFilter>,
    links: Option<&LinkResolverWithEncoding<'_>>,
    on_value: &mut OnValue<'_>,
    search: impl FnOnce(&mut OnFound<'_>) -> Result<()>,
) -> Result<()> {
    let outcome = search(&mut |FoundValue { query, bytes, base }| {
        let Some(links) = links else {
            return match &mut filter {
                Some(filter) => filter.push(query, bytes, on_value),
                None => on_value(query, bytes),
            };
        };
        // The base may be another one for the next value, so that no value waits.
        let mut resolve = |query: usize, bytes: &[u8]| links.pass_reference(query, bytes, base, on_value);
        match &mut filter {
            Some(filter) => filter.search(query, bytes, &mut resolve),
            None => resolve(query, bytes),
        }
    });
    // What was found before an error is passed on.
    let gathered = filter.map_or(Ok(()), |filter| filter.search_gathered(on_value));
    outcome.and(gathered)
}

/// The resolver for the links of a page, and the encoding of the page.
struct LinkResolverWithEncoding<'l> {
    links: &'l LinkResolver,
    encoding: &'static Encoding,
}

impl LinkResolverWithEncoding<'_> {
    /// Passes on the absolute URL of a match of a regular expression in a page. In HTML and XML,
    /// first decodes the character references in the match (without the feature `select`, only
    /// `&amp;`). `query` is the index of the expression.
    fn pass_match(&self, query: usize, bytes: &[u8], on_value: &mut OnValue<'_>) -> Result<()> {
        if self.links.is_markup && memchr::memchr(b'&', bytes).is_some() {
            return self.pass_reference(query, &without_references(bytes), None, on_value);
        }
        self.pass_reference(query, bytes, None, on_value)
    }

    /// Passes on the absolute URL of a link. `base` is the base URL that a `<base>` element sets;
    /// if it is `None`, the page's URL is the base. `query` is the index of the query that found
    /// the link.
    fn pass_reference(
        &self,
        query: usize,
        bytes: &[u8],
        base: Option<&PageBase>,
        on_value: &mut OnValue<'_>,
    ) -> Result<()> {
        let base = base.or(self.links.base.as_ref());
        // Bytes that are not UTF-8 are refused where the URL is made.
        let (Some(base), Ok(text)) = (base, std::str::from_utf8(bytes)) else { return on_value(query, bytes) };
        match base.link(&with_encoded_query(text, self.encoding)) {
            ResolvedPageLink::Url(url) => on_value(query, url.as_bytes()),
            ResolvedPageLink::NotFetchable => {
                self.links.skipped.fetch_add(1, Ordering::Relaxed);
                Ok(())
            }
        }
    }
}

/// Decodes the character references in a match by the rules for attribute values. By these rules,
/// `&copy=1` is no character reference.
#[cfg(feature = "select")]
fn without_references(text: &[u8]) -> Cow<'_, [u8]> {
    htmlize::unescape_bytes_in(text, htmlize::Context::Attribute)
}

/// Decodes `&amp;`, the only character reference that most URLs contain.
#[cfg(not(feature = "select"))]
fn without_references(text: &[u8]) -> Cow<'_, [u8]> {
    Cow::Owned(String::from_utf8_lossy(text).replace("&amp;", "&").into_bytes())
}
