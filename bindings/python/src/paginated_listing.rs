//! A listing that consists of many pages, for `fetch_many(..., paginate=...)`.
//!
//! ```python
//! listing = Listing("http://example.test/items?page=1", query="page")
//! url, warning = listing.next(response)
//! ```

use std::sync::{Mutex, MutexGuard, PoisonError};

use haul::Target;
use haul::pagination::{Listing, ListingEnd, PageStep, Pagination};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytesMethods;

use crate::error::{FailurePhase, to_exception};
use crate::received_response::ReceivedResponse;

/// The state of a paginated listing that the program fetches page by page.
#[pyclass(frozen, name = "Listing", module = "haul._haul")]
pub(crate) struct PyListing {
    listing: Mutex<Listing>,
}

impl PyListing {
    fn lock(&self) -> MutexGuard<'_, Listing> {
        self.listing.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the settings for finding the next page of a paginated listing.
///
/// * `link`: by the Link field of the response.
/// * `css` or `json`: by a query for the link in the page. If `query` is given, too, the query
///   finds a value for the URL's query parameter of that name.
/// * `query` alone: by incrementing the number in the URL's query parameter of that name.
///
/// # Errors
/// ValueError for any other combination, and for an invalid value.
fn pagination(link: bool, css: Option<&str>, json: Option<&str>, query: Option<&str>) -> PyResult<Pagination> {
    let pagination = match (link, css, json, query) {
        (true, None, None, None) => Ok(Pagination::by_link()),
        (false, None, None, Some(query)) => Pagination::by_count(query),
        (false, Some(css), None, None) => Pagination::by_css(css),
        (false, Some(css), None, Some(query)) => Pagination::by_css_value(css, query),
        (false, None, Some(json), None) => Pagination::by_json(json),
        (false, None, Some(json), Some(query)) => Pagination::by_json_value(json, query),
        _ => {
            let message = "a listing needs one of link, css, json and query; only css and json go with query";
            return Err(PyValueError::new_err(message));
        }
    };
    pagination.map_err(|error| PyValueError::new_err(error.cause()))
}

#[pymethods]
impl PyListing {
    #[new]
    #[pyo3(signature = (url, *, link=false, css=None, json=None, query=None, any_origin=false, max_pages=None))]
    fn new(
        url: &str,
        link: bool,
        css: Option<&str>,
        json: Option<&str>,
        query: Option<&str>,
        any_origin: bool,
        max_pages: Option<u64>,
    ) -> PyResult<Self> {
        let mut pagination = pagination(link, css, json, query)?.any_origin(any_origin);
        if let Some(max) = max_pages {
            pagination = pagination.max_pages(max);
        }
        let first = Target::parse(url).map_err(|error| PyValueError::new_err(error.to_string()))?;
        let listing = Listing::new(&pagination, &first).map_err(|error| to_exception(&error, FailurePhase::Connect))?;
        Ok(Self { listing: Mutex::new(listing) })
    }

    /// Returns the number of the current page; the first page has number 1.
    #[getter]
    fn page(&self) -> u64 {
        self.lock().page()
    }

    /// Returns true if a response with this status means that the requested page does not exist, so
    /// that the previous page was the last one of the listing.
    fn ends_at(&self, status: u16) -> bool {
        self.lock().ends_at(status)
    }

    /// Returns the URL of the page after the page in `response`, or `None` after the last page. The
    /// second value is a warning if the listing ends unexpectedly, else `None`. `has_values` says
    /// whether the program's query found values in the page; it is `None` without a query.
    #[pyo3(signature = (response, has_values=None))]
    fn next(
        &self,
        py: Python<'_>,
        response: &ReceivedResponse,
        has_values: Option<bool>,
    ) -> PyResult<(Option<String>, Option<String>)> {
        let body = response.body.as_ref().map(|body| body.bytes(py));
        let body = body.as_ref().map(|body| body.as_bytes()).unwrap_or_default();
        let step = self.lock().next_with_values(Some(&response.head), &response.target, body, has_values);
        match step.map_err(|error| to_exception(&error, FailurePhase::Body))? {
            PageStep::Next(target) => Ok((Some(target.to_url()), None)),
            PageStep::End(end) => Ok((None, ListingEnd::needs_warning(&end).then(|| end.to_string()))),
        }
    }
}
