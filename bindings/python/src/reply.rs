//! A response as received. Rarely used parts are parsed on demand.

use std::net::SocketAddr;
use std::time::Duration;

use haul::facts::Facts;
use haul::{Head, Target, Version};
use haul_policy::redirect::location_text;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyString, PyTuple};

use crate::jar::Jar;
use crate::text::from_latin1;

/// A response's head, its body if requested as a whole, and the facts of the exchange.
#[pyclass(frozen, module = "haul._haul")]
pub(crate) struct Reply {
    pub(crate) head: Head,
    pub(crate) target: Target,
    /// The requested URL, normalised.
    #[pyo3(get)]
    pub(crate) url: String,
    /// The body, decoded; `None` if it is read piece by piece.
    pub(crate) body: Option<Py<PyBytes>>,
    /// The Cookie field that was sent.
    pub(crate) cookie: Option<Vec<u8>>,
    pub(crate) times: Times,
}

/// The part of [`Facts`] that a reply keeps.
#[derive(Clone, Copy)]
pub(crate) struct Times {
    first_byte: Duration,
    total: Duration,
    connects: u32,
    peer: Option<SocketAddr>,
}

impl From<&Facts> for Times {
    fn from(facts: &Facts) -> Self {
        Self { first_byte: facts.first_byte, total: facts.total, connects: facts.connects, peer: facts.peer }
    }
}

#[pymethods]
impl Reply {
    /// The status code.
    #[getter]
    fn status(&self) -> u16 {
        self.head.status()
    }

    /// The reason phrase, without blanks around it, as in http.client.
    #[getter]
    fn reason<'py>(&self, py: Python<'py>) -> Bound<'py, PyString> {
        let reason = self.head.reason().trim_ascii();
        match std::str::from_utf8(reason) {
            Ok(text) => PyString::new(py, text),
            Err(_) => from_latin1(py, reason),
        }
    }

    /// 10, 11 or 20, as in urllib3.
    #[getter]
    fn version(&self) -> u8 {
        match self.head.version() {
            Version::Http10 => 10,
            Version::Http2 => 20,
            _ => 11,
        }
    }

    /// The body, decoded; `None` if it is read piece by piece.
    #[getter]
    fn body<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyBytes>> {
        self.body.as_ref().map(|body| body.bind(py).clone())
    }

    /// Names and values in the order and the spelling received.
    fn fields<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let fields: Vec<_> = self.head.fields().collect();
        PyList::new(
            py,
            fields
                .into_iter()
                .map(|(name, value)| PyTuple::new(py, [PyString::new(py, name), from_latin1(py, value)]))
                .collect::<PyResult<Vec<_>>>()?,
        )
    }

    /// The first value under this name, in any case.
    fn get<'py>(&self, py: Python<'py>, name: &str) -> Option<Bound<'py, PyString>> {
        self.head.get(name).map(|value| from_latin1(py, value))
    }

    /// All values under this name, joined with commas (RFC 9110 section 5.3).
    fn joined<'py>(&self, py: Python<'py>, name: &str) -> Option<Bound<'py, PyString>> {
        let values: Vec<&[u8]> = self.head.get_all(name).collect();
        (!values.is_empty()).then(|| from_latin1(py, &values.join(&b", "[..])))
    }

    /// Returns whether there is a field of this name.
    fn has(&self, name: &str) -> bool {
        self.head.get(name).is_some()
    }

    /// The Location, if it is a redirect: UTF-8 unchanged, other bytes beyond ASCII percent-encoded.
    fn location<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyString>> {
        let location =
            self.head.get("location").filter(|_| matches!(self.head.status(), 301 | 302 | 303 | 307 | 308))?;
        Some(PyString::new(py, &location_text(location)))
    }

    /// Puts the cookies that it sets into a jar.
    pub(crate) fn cookies_into(&self, jar: &Jar) {
        jar.jar.take(&self.target, self.head.get_all("set-cookie"));
    }

    /// The Cookie field that was sent.
    #[getter]
    fn sent_cookie<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyString>> {
        self.cookie.as_ref().map(|cookie| from_latin1(py, cookie))
    }

    /// Seconds from the call to the first byte of the head.
    #[getter]
    fn elapsed(&self) -> f64 {
        self.times.first_byte.as_secs_f64()
    }

    /// Seconds from the call to the end of the body.
    #[getter]
    fn total(&self) -> f64 {
        self.times.total.as_secs_f64()
    }

    /// Returns whether the connection was reused.
    #[getter]
    fn reused(&self) -> bool {
        self.times.connects == 0
    }

    /// The server's address and port.
    #[getter]
    fn peer(&self) -> Option<(String, u16)> {
        self.times.peer.map(|peer| (peer.ip().to_string(), peer.port()))
    }
}
