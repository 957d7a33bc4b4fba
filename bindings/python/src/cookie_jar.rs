//! `Jar`: the cookies of a session, stored in the engine's jar (RFC 6265bis). `haul.cookies` adds
//! the API of requests.

use std::path::PathBuf;

use haul_policy::cookie::{Cookie, CookieKey, CookieParts, SameSite};
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::normalized_url::prepare;
use crate::python_str_and_http_bytes::{from_latin1, latin1_or_utf8};

/// A cookie for Python: name, value, domain, path, host-only flag, Secure flag, HttpOnly flag, and
/// time of expiry in seconds since 1970 (`None` for a session cookie).
type CookieTuple<'py> = (Bound<'py, PyString>, Bound<'py, PyString>, String, String, bool, bool, bool, Option<u64>);

/// The cookie jar of a session.
#[pyclass(frozen, name = "Jar", module = "haul._haul")]
#[derive(Default)]
pub(crate) struct PyJar {
    pub(crate) jar: haul::state::cookie_jar::SharedCookieJar,
}

#[pymethods]
impl PyJar {
    #[new]
    fn new() -> Self {
        Self::default()
    }

    fn __len__(&self) -> usize {
        self.jar.with(haul_policy::cookie::CookieStore::len)
    }

    /// Returns the value of the Cookie field for a request to this URL; `None` if no cookie is
    /// sent.
    fn header<'py>(&self, py: Python<'py>, url: &str) -> PyResult<Option<Bound<'py, PyString>>> {
        let target = prepare(url, None)?.target;
        Ok(self.jar.cookie_for(&target).map(|value| from_latin1(py, &value)))
    }

    /// Stores the cookies of the Set-Cookie fields of a response from this URL. Returns the number
    /// of refused cookies.
    fn take(&self, url: &str, fields: Vec<String>) -> PyResult<usize> {
        let target = prepare(url, None)?.target;
        let fields: Vec<Vec<u8>> = fields.iter().map(|field| latin1_or_utf8(field)).collect();
        Ok(self.jar.store_fields(&target, fields.iter().map(Vec::as_slice)))
    }

    /// Adds a cookie. A domain with a leading dot includes all its subdomains.
    #[pyo3(signature = (name, value, domain, path="/", secure=false, http_only=false, expires=None))]
    #[expect(clippy::too_many_arguments, reason = "a cookie has so many parts")]
    fn set(
        &self,
        name: &str,
        value: &str,
        domain: &str,
        path: &str,
        secure: bool,
        http_only: bool,
        expires: Option<u64>,
    ) -> PyResult<()> {
        let cookie = Cookie::new(CookieParts {
            name: latin1_or_utf8(name),
            value: latin1_or_utf8(value),
            host_only: !domain.starts_with('.'),
            domain: domain.trim_start_matches('.').to_owned(),
            path: latin1_or_utf8(path),
            secure,
            http_only,
            same_site: SameSite::Default,
            expires,
        });
        let cookie = cookie.map_err(|refusal| PyValueError::new_err(format!("cookie refused: {refusal}")))?;
        self.jar.change(|jar| jar.insert(cookie));
        Ok(())
    }

    /// Removes the cookies with this name, domain and path. `None` matches any value. Returns the
    /// number of removed cookies.
    #[pyo3(signature = (name=None, domain=None, path=None))]
    fn remove(&self, name: Option<&str>, domain: Option<&str>, path: Option<&str>) -> usize {
        let domain = domain.map(|domain| domain.trim_start_matches('.'));
        let fits = |key: &CookieKey| {
            name.is_none_or(|name| key.name == latin1_or_utf8(name))
                && domain.is_none_or(|domain| key.domain.eq_ignore_ascii_case(domain))
                && path.is_none_or(|path| key.path == path.as_bytes())
        };
        self.jar.change(|jar| {
            let before = jar.len();
            jar.retain(|cookie| !fits(&cookie.key()));
            before - jar.len()
        })
    }

    /// Adds the cookies of a file in Netscape format. A missing file counts as empty.
    fn load(&self, py: Python<'_>, file: PathBuf) -> PyResult<()> {
        py.detach(|| self.jar.load(file)).map(|_| ()).map_err(|error| PyOSError::new_err(error.to_string()))
    }

    /// Writes the changes since the jar was loaded or last saved to a file in Netscape format.
    /// Other cookies in the file are kept.
    fn save(&self, py: Python<'_>, file: PathBuf) -> PyResult<()> {
        py.detach(|| self.jar.save(file)).map_err(|error| PyOSError::new_err(error.to_string()))
    }

    /// Removes session cookies.
    fn remove_session(&self) {
        self.jar.clear_session();
    }

    /// Returns all cookies, oldest first.
    fn all<'py>(&self, py: Python<'py>) -> Vec<CookieTuple<'py>> {
        self.jar.with(|jar| {
            let shown = |cookie: &Cookie| {
                let parts = cookie.parts();
                let domain = if parts.host_only { parts.domain.clone() } else { format!(".{}", parts.domain) };
                (
                    from_latin1(py, &parts.name),
                    from_latin1(py, &parts.value),
                    domain,
                    String::from_utf8_lossy(&parts.path).into_owned(),
                    parts.host_only,
                    parts.secure,
                    parts.http_only,
                    parts.expires,
                )
            };
            jar.iter().map(shown).collect()
        })
    }
}
