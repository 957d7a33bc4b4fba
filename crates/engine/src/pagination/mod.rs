//! Listings of many pages. The pages are fetched one after the other.
//!
//! A [`Pagination`] says where the URL of the next page comes from. A [`Listing`] is the state of
//! one sequence of pages: after each response, it returns the URL of the next page, or says why the
//! listing ends. A [`fleet`](crate::fleet) does this by itself for the pages of a
//! [stage](crate::fleet::FleetStage::pagination).
//!
//! ```
//! use haul::pagination::{Listing, PageStep, Pagination};
//! use haul::Target;
//!
//! let pagination = Pagination::by_count("page")?.max_pages(10);
//! let first = Target::parse("http://127.0.0.1/items?page=1").expect("a URL");
//! let mut listing = Listing::new(&pagination, &first)?;
//! let PageStep::Next(next) = listing.next(None, &first, b"[1, 2, 3]")? else { panic!("the page is not empty") };
//! assert_eq!(next.to_url(), "http://127.0.0.1/items?page=2");
//! assert!(matches!(listing.next(None, &next, b"[]")?, PageStep::End(_)));
//! # Ok::<(), haul::Error>(())
//! ```
//!
//! The rules are those of [`haul_policy::pagination`]. This module searches the responses.

#[cfg(feature = "select")]
mod buffered_json_page;
#[cfg(feature = "select")]
mod html_page;
mod page_observer;
#[cfg(test)]
mod tests;

#[cfg(feature = "select")]
use buffered_json_page::JsonPageQuery;
pub use haul_policy::pagination::{DEFAULT_MAX_PAGES, ListingEnd, PageStep, PaginationError};
use haul_policy::pagination::{
    FinishedPage, ListingHistory, NextLink, NextPageSource, PaginationRules, ParseQueryParameterError, QueryParameter,
};
use haul_policy::secret_fields::without_userinfo;
use haul_policy::target::{Origin, Target};
use haul_proto::link_header::{Link, parse_links};
use haul_proto::response_head::ResponseHead;
#[cfg(feature = "select")]
use html_page::HtmlPageQuery;
pub(crate) use page_observer::{PageContentObserver, PageFindings};

use crate::extraction::PageInfo;
use crate::{Error, ErrorKind, Result};

/// The settings of a listing: the source of the next page's URL, and the limits.
#[derive(Debug, Clone)]
pub struct Pagination {
    rules: PaginationRules,
    /// The JSONPath query for the value that determines the URL of the next page. `None` if that
    /// value does not come from JSON.
    #[cfg(feature = "select")]
    json: Option<JsonPageQuery>,
    /// The CSS query for the value that determines the URL of the next page. `None` if that value
    /// does not come from HTML.
    #[cfg(feature = "select")]
    html: Option<HtmlPageQuery>,
}

impl Pagination {
    fn new(source: NextPageSource) -> Self {
        Self {
            rules: PaginationRules::new(source),
            #[cfg(feature = "select")]
            json: None,
            #[cfg(feature = "select")]
            html: None,
        }
    }

    /// Follows the first link with the relation `next` in the `Link` fields of a response (RFC
    /// 8288). Links with an anchor other than the page itself are ignored.
    #[must_use]
    pub fn by_link() -> Self {
        Self::new(NextPageSource::LinkHeader)
    }

    /// Increments a number in the query of the URL for each page. `parameter` is the name of the
    /// query parameter, or `NAME:STEP`. A listing ends at a page that is empty, that does not exist
    /// (404), or that has the same content as the previous page. If values are extracted from
    /// pages, a page without values is empty. Otherwise, a page is empty if it has no content, or
    /// if its content is `[]`, `{}` or `null`.
    ///
    /// # Errors
    /// The parameter has no name, or the step is 0.
    pub fn by_count(parameter: &str) -> Result<Self> {
        Ok(Self::new(NextPageSource::Count(query_parameter(parameter)?)))
    }

    /// Follows the URL that a JSONPath (RFC 9535) selects in a page. A listing ends at a page in
    /// which the path selects nothing, `null`, `false` or an empty text.
    ///
    /// # Errors
    /// The path is invalid.
    #[cfg(feature = "select")]
    pub fn by_json(path: &str) -> Result<Self> {
        Ok(Self { json: Some(JsonPageQuery::new(path)?), ..Self::new(NextPageSource::Reference) })
    }

    /// Sets a query parameter to the text or number that a JSONPath selects in a page, such as a
    /// cursor. If the value is `true`, increments the parameter instead. A listing ends as with
    /// [`Pagination::by_json`]. For `parameter`, see [`Pagination::by_count`].
    ///
    /// # Errors
    /// The path or the parameter is invalid.
    #[cfg(feature = "select")]
    pub fn by_json_value(path: &str, parameter: &str) -> Result<Self> {
        let source = NextPageSource::Value(query_parameter(parameter)?);
        Ok(Self { json: Some(JsonPageQuery::new(path)?), ..Self::new(source) })
    }

    /// Follows the URL in an attribute of an HTML or XML element, which a CSS query selects:
    /// `a[rel=next]@href`. The first selected value that is a URL to fetch is used. A listing ends
    /// at a page without such a value.
    ///
    /// # Errors
    /// The query cannot be used, or names no attribute.
    #[cfg(feature = "select")]
    pub fn by_css(css: &str) -> Result<Self> {
        Ok(Self { html: Some(HtmlPageQuery::link(css)?), ..Self::new(NextPageSource::Reference) })
    }

    /// Sets a query parameter to the first value that a CSS query selects in an HTML or XML page,
    /// such as a cursor. A listing ends at a page without such a value. For `parameter`, see
    /// [`Pagination::by_count`].
    ///
    /// # Errors
    /// The query cannot be used, or the parameter is invalid.
    #[cfg(feature = "select")]
    pub fn by_css_value(css: &str, parameter: &str) -> Result<Self> {
        let source = NextPageSource::Value(query_parameter(parameter)?);
        Ok(Self { html: Some(HtmlPageQuery::value(css)?), ..Self::new(source) })
    }

    /// Sets whether the next page may have any origin. If not, it must have the origin of the
    /// current page or of the first URL. Hazard: with `true`, a page chooses the servers to which
    /// haul sends requests.
    #[must_use]
    pub fn any_origin(mut self, any_origin: bool) -> Self {
        self.rules.any_origin = any_origin;
        self
    }

    /// Sets the number of pages after which a listing ends, even if there are more. Default: a
    /// listing with more than 1,000 pages fails.
    #[must_use]
    pub fn max_pages(mut self, max_pages: u64) -> Self {
        self.rules.max_pages = Some(max_pages);
        self
    }

    /// Returns true if the content of pages must be searched, so that their responses need a body.
    #[must_use]
    pub fn needs_body(&self) -> bool {
        !matches!(self.rules.source, NextPageSource::LinkHeader)
    }

    /// Returns an observer for the content of a page. Returns `None` if the next page does not
    /// depend on the content.
    pub(crate) fn observer(&self) -> Option<Box<PageContentObserver>> {
        self.needs_body().then(|| Box::new(PageContentObserver::new(self)))
    }
}

fn query_parameter(text: &str) -> Result<QueryParameter> {
    let invalid =
        |error: ParseQueryParameterError| Error::with_source(ErrorKind::Setup, "the pages cannot be counted", error);
    QueryParameter::parse(text).map_err(invalid)
}

/// A listing in progress: a sequence of pages.
#[derive(Debug, Clone)]
pub struct Listing {
    pagination: Pagination,
    chain: ListingHistory,
}

impl Listing {
    /// Begins a listing at its first URL.
    ///
    /// # Errors
    /// The pagination counts pages, but the parameter in the URL is not a number.
    pub fn new(pagination: &Pagination, first: &Target) -> Result<Self> {
        let chain = ListingHistory::new(&pagination.rules, first).map_err(|error| pagination_error(error, first))?;
        Ok(Self { pagination: pagination.clone(), chain })
    }

    /// Returns the number of the current page, counted from 1.
    #[must_use]
    pub fn page(&self) -> u64 {
        self.chain.page()
    }

    /// Returns the origin of the first URL. Credentials for the listing may be sent only to this
    /// origin.
    #[must_use]
    pub fn origin(&self) -> Origin {
        self.chain.origin()
    }

    /// Returns true if a response with this status means that the listing ended with the previous
    /// page, because the current page does not exist.
    #[must_use]
    pub fn ends_at(&self, status: u16) -> bool {
        self.pagination.rules.ends_at(self.chain.page(), status)
    }

    /// Decides what follows after the current page. `head` is the head of its response, `url` its
    /// URL after redirects, and `body` its decoded body.
    ///
    /// # Errors
    /// The page names a next page that cannot or must not be requested, or there are too many
    /// pages.
    pub fn next(&mut self, head: Option<&ResponseHead>, url: &Target, body: &[u8]) -> Result<PageStep> {
        self.next_with_values(head, url, body, None)
    }

    /// Decides what follows after the current page, as [`Listing::next`] does, for a page from
    /// which values were extracted. `has_values` is true if there were any values, and `None` if
    /// none were looked for. With counted pages, a page without values is empty.
    ///
    /// # Errors
    /// The errors of [`Listing::next`].
    pub fn next_with_values(
        &mut self,
        head: Option<&ResponseHead>,
        url: &Target,
        body: &[u8],
        has_values: Option<bool>,
    ) -> Result<PageStep> {
        let findings = match self.pagination.observer() {
            Some(mut observer) => {
                let content_type = head.and_then(|head| head.get("content-type"));
                observer.begin(&PageInfo { url: Some(url), content_type });
                observer.push(body);
                if let Some(has_values) = has_values {
                    observer.set_has_values(has_values);
                }
                observer.finish()
            }
            None => Ok(PageFindings::default()),
        };
        self.next_of(head, url, findings.map_err(|error| error.with_url(url.to_url()))?)
    }

    /// Decides what follows after the current page. `findings` are the properties of the page's
    /// content.
    ///
    /// # Errors
    /// The errors of [`Listing::next`].
    pub(crate) fn next_of(
        &mut self,
        head: Option<&ResponseHead>,
        url: &Target,
        findings: PageFindings,
    ) -> Result<PageStep> {
        let fields = || head.into_iter().flat_map(|head| head.get_all("link"));
        let found: Vec<Link<'_>> = match self.pagination.rules.source {
            NextPageSource::LinkHeader => {
                fields().flat_map(parse_links).filter(|link| link.has_relation("next")).collect()
            }
            _ => Vec::new(),
        };
        let anchors: Vec<_> = found.iter().map(Link::anchor).collect();
        let links: Vec<_> = found
            .iter()
            .zip(&anchors)
            .map(|(link, anchor)| NextLink { target: link.target(), anchor: anchor.as_deref() })
            .collect();
        let page = FinishedPage {
            url,
            status: head.map_or(0, ResponseHead::status),
            links: &links,
            value: findings.value,
            is_empty: findings.is_empty,
            digest: findings.digest,
        };
        self.chain.next(&self.pagination.rules, &page).map_err(|error| pagination_error(error, url))
    }
}

/// Converts an error of `haul_policy` about the page at `url` to an error of this crate.
fn pagination_error(error: PaginationError, url: &Target) -> Error {
    let kind = match error.exit_code() {
        1 => ErrorKind::UnsupportedScheme,
        61 => ErrorKind::ContentCoding,
        47 => ErrorKind::TooManyRedirects,
        _ => ErrorKind::Url,
    };
    let about = error.url().map_or_else(|| url.to_url(), |url| without_userinfo(url).escape_debug().to_string());
    Error::with_source(kind, "the listing cannot continue", error).with_url(about)
}
