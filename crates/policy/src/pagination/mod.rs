//! Listings of many pages: the URL of the next page, and the end of the listing.
//!
//! A listing is a chain of pages that are requested one after the other. The next URL comes from a
//! link in the response, from a value in the page, or from a number in the query that is counted
//! up. A page may be hostile: its links lead to other origins only if the user allows that, and a
//! loop ends.
//!
//! ```
//! use haul_policy::Target;
//! use haul_policy::pagination::{FinishedPage, NextLink, NextPageSource, ListingHistory, PageStep, PaginationRules};
//!
//! let rules = PaginationRules::new(NextPageSource::LinkHeader);
//! let first = Target::parse("https://api.example/items?per_page=50")?;
//! let mut chain = ListingHistory::new(&rules, &first)?;
//! let link = NextLink { target: b"/items?per_page=50&page=2", anchor: None };
//! let page = FinishedPage { links: &[link], ..FinishedPage::new(&first, 200) };
//! let PageStep::Next(next) = chain.next(&rules, &page)? else { panic!("the page has a next link") };
//! assert_eq!(next.to_url(), "https://api.example/items?per_page=50&page=2");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Left out: requests, and the search for values in a page, which the engine does.

mod error;
mod query_parameter;

use std::collections::HashSet;
use std::fmt;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};

pub use error::PaginationError;
pub use query_parameter::{ParseQueryParameterError, QueryParameter};

use crate::redirect::location_text;
use crate::target::{Origin, Target};

/// The number of pages after which a paginated listing fails if the user has set no limit. It stops
/// listings that never end.
pub const DEFAULT_MAX_PAGES: u64 = 1000;

/// The HTTP status that ends a listing whose page numbers are counted up: there is no page with
/// this number.
const STATUS_NOT_FOUND: u16 = 404;

/// The place in a response from which the URL of the next page is taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NextPageSource {
    /// The first link with the relation `next` in the `Link` fields of the response (RFC 8288).
    LinkHeader,
    /// A reference that the engine finds in the page. It is resolved against the page's URL.
    Reference,
    /// A value that the engine finds in the page. It becomes the value of this query parameter in
    /// the next page's URL. If the value is `true`, the parameter is incremented instead.
    Value(QueryParameter),
    /// A number in the query. It is incremented for each page. The listing ends when a page is
    /// empty, does not exist, or repeats an earlier page.
    Count(QueryParameter),
}

/// The settings of a paginated listing: a sequence of pages, each of which leads to the next page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PaginationRules {
    /// The place in a response from which the URL of the next page is taken.
    pub source: NextPageSource,
    /// True if the next page may have any origin. If false, it must have the origin of the current
    /// page or of the first URL. Default false.
    pub any_origin: bool,
    /// The number of pages after which the listing ends without an error, even if there are more.
    /// `None`, the default, means that more than [`DEFAULT_MAX_PAGES`] pages are an error.
    pub max_pages: Option<u64>,
}

impl PaginationRules {
    /// Creates rules with this source and the defaults for all other settings.
    #[must_use]
    pub fn new(source: NextPageSource) -> Self {
        Self { source, any_origin: false, max_pages: None }
    }

    /// Returns true if the failed request for a page means that the listing has ended. `number` is
    /// the page's number, counted from 1. `status` is the status of its response. The failure of
    /// the first page is always an error.
    #[must_use]
    pub fn ends_at(&self, number: u64, status: u16) -> bool {
        matches!(self.source, NextPageSource::Count(_)) && number > 1 && status == STATUS_NOT_FOUND
    }

    /// Returns true if a number in the query is counted up. An empty page then ends the listing.
    #[must_use]
    pub fn counts_pages(&self) -> bool {
        matches!(self.source, NextPageSource::Count(_))
    }
}

/// A link with the relation `next` in a `Link` field.
#[derive(Clone, Copy, Debug)]
pub struct NextLink<'a> {
    /// The reference to the next page, as received: the text between `<` and `>`.
    pub target: &'a [u8],
    /// The `anchor` parameter: the reference to the resource from which the link leads. `None`
    /// means the page itself.
    pub anchor: Option<&'a [u8]>,
}

/// The value in a page that leads to the next page, for [`NextPageSource::Value`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum NextPageValue {
    /// No value, or a value that means that there is no next page, such as `null`, `false` or an
    /// empty text.
    #[default]
    None,
    /// A text, such as a URL or a cursor.
    Text(String),
    /// A number, spelled as in the page.
    Number(String),
    /// The value `true`: there is a next page.
    True,
    /// A value of another type, which cannot lead to a page. The text names the type.
    Unusable(&'static str),
}

/// A page of a listing whose response is complete.
#[derive(Clone, Debug)]
pub struct FinishedPage<'a> {
    /// The URL of the page, after redirects.
    pub url: &'a Target,
    /// The status of the response.
    pub status: u16,
    /// The links with the relation `next` in the response.
    pub links: &'a [NextLink<'a>],
    /// The value in the page that may lead to the next page; [`NextPageValue::None`] if there is
    /// none.
    pub value: NextPageValue,
    /// True if the page has no content, or a list without items.
    pub is_empty: bool,
    /// A digest of the page's content; `None` if the contents of pages are not compared.
    pub digest: Option<u64>,
}

impl<'a> FinishedPage<'a> {
    /// Creates a finished page without links and without a value, whose content is not empty.
    #[must_use]
    pub fn new(url: &'a Target, status: u16) -> Self {
        Self { url, status, links: &[], value: NextPageValue::None, is_empty: false, digest: None }
    }
}

/// The step after a page of a paginated listing: to request the next page, or to end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PageStep {
    /// The listing continues with the page at this URL.
    Next(Target),
    /// The listing has ended, for this reason.
    End(ListingEnd),
}

/// The reason why a paginated listing ended.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ListingEnd {
    /// The last page does not name a next page.
    NoNextPage,
    /// The last page is empty.
    EmptyPage,
    /// The page after the last one does not exist (404).
    NotFound,
    /// The page's response has this error status, so the page is not counted as a page of the
    /// listing.
    ErrorStatus(u16),
    /// The listing has reached the user's maximum number of pages.
    MaxPages,
    /// The listing already contains a page with the URL of the next page.
    KnownUrl {
        /// The URL of the page that the listing already contains.
        url: String,
    },
    /// The page was redirected to the URL of a page that the listing already contains.
    RedirectedToKnownUrl {
        /// The URL of the page that the listing already contains.
        url: String,
    },
    /// The page has the same content as the previous page.
    SameContent,
}

impl ListingEnd {
    /// Returns true if the user should be warned, because the listing may have more pages or
    /// contains a page twice.
    #[must_use]
    pub fn needs_warning(&self) -> bool {
        matches!(self, Self::KnownUrl { .. } | Self::RedirectedToKnownUrl { .. } | Self::SameContent)
    }
}

impl fmt::Display for ListingEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoNextPage => f.write_str("the page names no next page"),
            Self::EmptyPage => f.write_str("the page is empty"),
            Self::NotFound => f.write_str("the page does not exist"),
            Self::ErrorStatus(status) => write!(f, "the server answered {status}"),
            Self::MaxPages => f.write_str("the listing has as many pages as asked for"),
            Self::KnownUrl { url } => write!(f, "the next page {url} was already fetched, so the listing ends here"),
            Self::RedirectedToKnownUrl { url } => {
                write!(f, "the page was redirected to {url}, which was already fetched, so the listing ends here")
            }
            Self::SameContent => {
                f.write_str("the page has the same content as the one before it, so the listing ends here")
            }
        }
    }
}

/// The state of a paginated listing: its current page, and a record of earlier pages. A page whose
/// URL came from the previous page occupies about 16 bytes in the record.
#[derive(Clone, Debug)]
pub struct ListingHistory {
    /// The URL of the first page, from the user or from a template.
    first: Target,
    /// The URL that was requested for the current page.
    requested: Target,
    /// The number of the current page in the listing, counted from 1.
    page: u64,
    /// The number or offset in the query of the current page, for [`NextPageSource::Count`], and
    /// for [`NextPageSource::Value`] if the value in the page is `true`.
    count: u64,
    /// The digests of the URLs of all pages so far. Two URLs with the same digest would end a
    /// listing too early. With 64 bits and 1,000 pages, the probability is 1 to 2^45.
    known: HashSet<u64, BuildHasherDefault<DefaultHasher>>,
    /// The digest of the previous page's content; `None` if contents are not compared.
    digest: Option<u64>,
}

impl ListingHistory {
    /// Begins a paginated listing at its first URL.
    ///
    /// # Errors
    /// The query parameter to count up has a value that is not a number.
    pub fn new(rules: &PaginationRules, first: &Target) -> Result<Self, PaginationError> {
        let count = match &rules.source {
            NextPageSource::Count(parameter) => parameter.number_in(first)?,
            // A page decides whether it is counted.
            NextPageSource::Value(parameter) => parameter.number_in(first).unwrap_or_default(),
            NextPageSource::LinkHeader | NextPageSource::Reference => 0,
        };
        let mut known = HashSet::default();
        known.insert(url_digest(first));
        Ok(Self { first: first.clone(), requested: first.clone(), page: 1, count, known, digest: None })
    }

    /// Returns the number of the current page in the listing, counted from 1.
    #[must_use]
    pub fn page(&self) -> u64 {
        self.page
    }

    /// Returns the origin of the first URL. Only this origin may receive the user's credentials.
    #[must_use]
    pub fn origin(&self) -> Origin {
        self.first.origin()
    }

    /// Decides which page follows the current page.
    ///
    /// # Errors
    /// The page names a next page that must not or cannot be requested, or there are more pages
    /// than [`DEFAULT_MAX_PAGES`].
    pub fn next(&mut self, rules: &PaginationRules, page: &FinishedPage<'_>) -> Result<PageStep, PaginationError> {
        if rules.counts_pages()
            && let Some(end) = self.end_of_counting(rules, page)
        {
            return Ok(PageStep::End(end));
        }
        if page.status >= 400 {
            return Ok(PageStep::End(ListingEnd::ErrorStatus(page.status)));
        }
        self.known.insert(url_digest(page.url));
        let Some(next) = self.next_target(rules, page)? else { return Ok(PageStep::End(ListingEnd::NoNextPage)) };
        if !self.known.insert(url_digest(&next)) {
            return Ok(PageStep::End(ListingEnd::KnownUrl { url: next.to_url() }));
        }
        match rules.max_pages {
            Some(max) if self.page >= max => return Ok(PageStep::End(ListingEnd::MaxPages)),
            None if self.page >= DEFAULT_MAX_PAGES => {
                return Err(PaginationError::TooManyPages { max: DEFAULT_MAX_PAGES, next: next.to_url() });
            }
            _ => {}
        }
        self.page += 1;
        self.requested = next.clone();
        Ok(PageStep::Next(next))
    }

    /// Returns the reason why a listing whose page number is counted up ends at the current page.
    /// Returns `None` if there is another page.
    fn end_of_counting(&mut self, rules: &PaginationRules, page: &FinishedPage<'_>) -> Option<ListingEnd> {
        if rules.ends_at(self.page, page.status) {
            return Some(ListingEnd::NotFound);
        }
        if page.status >= 400 {
            return None;
        }
        if page.is_empty {
            return Some(ListingEnd::EmptyPage);
        }
        // A server that has no such page may lead back to another one.
        let is_redirected = url_digest(page.url) != url_digest(&self.requested);
        if is_redirected && self.known.contains(&url_digest(page.url)) {
            return Some(ListingEnd::RedirectedToKnownUrl { url: page.url.to_url() });
        }
        let is_same = page.digest.is_some() && page.digest == self.digest;
        self.digest = page.digest;
        is_same.then_some(ListingEnd::SameContent)
    }

    /// Returns the URL of the next page; `None` if the current page has no next page.
    fn next_target(
        &mut self,
        rules: &PaginationRules,
        page: &FinishedPage<'_>,
    ) -> Result<Option<Target>, PaginationError> {
        match (&rules.source, &page.value) {
            (NextPageSource::LinkHeader, _) => {
                let link = page.links.iter().find(|link| is_link_from_page(link, page.url));
                link.map(|link| self.resolve(rules, page.url, &location_text(link.target))).transpose()
            }
            (NextPageSource::Count(parameter), _) | (NextPageSource::Value(parameter), NextPageValue::True) => {
                self.count = parameter.number_after(self.count)?;
                Ok(Some(parameter.set(&self.first, &self.count.to_string())))
            }
            (_, NextPageValue::None) => Ok(None),
            (_, NextPageValue::Unusable(kind)) => Err(PaginationError::Unusable { kind, wants_url: false }),
            (NextPageSource::Reference, NextPageValue::Text(reference)) => {
                self.resolve(rules, page.url, reference).map(Some)
            }
            (NextPageSource::Reference, NextPageValue::Number(_)) => {
                Err(PaginationError::Unusable { kind: "a number", wants_url: true })
            }
            (NextPageSource::Reference, NextPageValue::True) => {
                Err(PaginationError::Unusable { kind: "true", wants_url: true })
            }
            (NextPageSource::Value(parameter), NextPageValue::Text(value) | NextPageValue::Number(value)) => {
                if let Ok(number) = value.parse() {
                    self.count = number;
                }
                Ok(Some(parameter.set(&self.first, value)))
            }
        }
    }

    /// Resolves a reference in the page `base`, and checks the origin of the result.
    fn resolve(&self, rules: &PaginationRules, base: &Target, reference: &str) -> Result<Target, PaginationError> {
        let mut next =
            base.join(reference).map_err(|error| PaginationError::Reference { text: reference.to_owned(), error })?;
        let origin = next.origin();
        let is_first = origin == self.first.origin();
        if !is_first && !rules.any_origin && origin != base.origin() {
            return Err(PaginationError::OtherOrigin {
                url: next.to_url(),
                page: base.origin().url_prefix().to_owned(),
            });
        }
        next.drop_userinfo();
        if is_first {
            next.inherit_userinfo(&self.first);
        }
        Ok(next)
    }
}

/// Returns true if the link leads from the page at `url` itself, not from a part of it or from
/// another resource.
fn is_link_from_page(link: &NextLink<'_>, url: &Target) -> bool {
    let Some(anchor) = link.anchor else { return true };
    let same = |context: Target| context.origin() == url.origin() && context.path_and_query() == url.path_and_query();
    !anchor.contains(&b'#') && url.join(&location_text(anchor)).is_ok_and(same)
}

/// Returns a digest of the parts of a URL that a server sees: not of userinfo and fragment.
fn url_digest(target: &Target) -> u64 {
    let hasher: BuildHasherDefault<DefaultHasher> = BuildHasherDefault::default();
    hasher.hash_one((target.origin(), target.path_and_query()))
}

#[cfg(test)]
mod tests;
