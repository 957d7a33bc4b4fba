//! Extraction of values from pages in memory: `haul.select`, `haul.select_json` and the same
//! arguments of `fetch_many`.

use haul::extraction::{CssQuery, ExtractRegexes, JsonPathQuery, PageInfo, PageQuery};
use haul::{Error, ErrorKind, Target};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// A compiled query that extracts values from pages: CSS or JSONPath queries, and regular
/// expressions.
#[pyclass(frozen, name = "PageQuery", module = "haul._haul")]
pub(crate) struct PyPageQuery {
    pub(crate) query: PageQuery,
}

/// Converts the engine's error for an invalid query, or for a page to which a query cannot be
/// applied, into a `ValueError` with the same message.
fn value_error(error: &Error) -> PyErr {
    PyValueError::new_err(error.to_string())
}

#[pymethods]
impl PyPageQuery {
    /// Compiles the CSS queries `css`, or the JSONPath queries `json` if `css` is empty. The
    /// regular expressions `extract` are then applied to each value found. With `quoted`, JSON
    /// strings keep their quotes.
    #[new]
    #[pyo3(signature = (css, json, extract, quoted=false))]
    fn new(css: Vec<String>, json: Vec<String>, extract: Vec<String>, quoted: bool) -> PyResult<Self> {
        let compile = || -> haul::Result<PageQuery> {
            let query = if css.is_empty() {
                let paths = json.iter().map(|path| JsonPathQuery::new(path)).collect::<haul::Result<Vec<_>>>()?;
                let query = PageQuery::json_path(&paths);
                if quoted { query.quoted() } else { query }
            } else {
                PageQuery::css(&css.iter().map(|css| CssQuery::new(css)).collect::<haul::Result<Vec<_>>>()?)?
            };
            Ok(if extract.is_empty() { query } else { query.filtered(ExtractRegexes::all_of(&extract)?) })
        };
        Ok(Self { query: compile().map_err(|error| value_error(&error))? })
    }

    /// Returns the values that the queries find in a page, each with the index of its query. The
    /// arguments are the page's bytes, URL and `Content-Type`.
    #[pyo3(signature = (page, url=None, content_type=None))]
    fn values(
        &self,
        py: Python<'_>,
        page: &[u8],
        url: Option<&str>,
        content_type: Option<&str>,
    ) -> PyResult<Vec<(usize, String)>> {
        let url = url.map(|url| {
            Target::parse(url).map_err(|flaw| {
                value_error(&Error::with_source(ErrorKind::Url, "the URL of the page is invalid", flaw).with_url(url))
            })
        });
        let url = url.transpose()?;
        let info = PageInfo { url: url.as_ref(), content_type: content_type.map(str::as_bytes) };
        py.detach(|| self.query.numbered_values_in(&info, page)).map_err(|error| value_error(&error))
    }
}
