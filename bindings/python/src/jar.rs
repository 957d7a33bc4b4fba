//! The cookies of a session: the engine's jar (RFC 6265bis), which `haul.cookies` gives the interface of requests.

use std::path::PathBuf;

use haul_policy::cookie::{Cookie, CookieParts, Key, SameSite};
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::text::{from_latin1, latin1_or_utf8};
use crate::url::prepare;

/// Name, value, domain, path, host only, secure, HTTP only, when it ends.
type Shown<'py> = (Bound<'py, PyString>, Bound<'py, PyString>, String, String, bool, bool, bool, Option<u64>);

/// Cookies, each with the hosts and paths it belongs to.
#[pyclass(frozen, module = "haul._haul")]
#[derive(Default)]
pub(crate) struct Jar {
    pub(crate) jar: haul::state::jar::Jar,
}

#[pymethods]
impl Jar {
    #[new]
    fn new() -> Self {
        Self::default()
    }

    fn __len__(&self) -> usize {
        self.jar.with(haul_policy::cookie::Jar::len)
    }

    /// The Cookie field of a request to this URL.
    fn header<'py>(&self, py: Python<'py>, url: &str) -> PyResult<Option<Bound<'py, PyString>>> {
        let target = prepare(url, None)?.target;
        Ok(self.jar.cookie_for(&target).map(|value| from_latin1(py, &value)))
    }

    /// Takes Set-Cookie fields of a reply from this URL; returns how many were refused.
    fn take(&self, url: &str, fields: Vec<String>) -> PyResult<usize> {
        let target = prepare(url, None)?.target;
        let fields: Vec<Vec<u8>> = fields.iter().map(|field| latin1_or_utf8(field)).collect();
        Ok(self.jar.take(&target, fields.iter().map(Vec::as_slice)))
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

    /// Removes cookies with this name, domain and path; `None` matches all. Returns how many.
    #[pyo3(signature = (name=None, domain=None, path=None))]
    fn remove(&self, name: Option<&str>, domain: Option<&str>, path: Option<&str>) -> usize {
        let domain = domain.map(|domain| domain.trim_start_matches('.'));
        let fits = |key: &Key| {
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

    /// Adds the cookies of a Netscape file; one that is not there is empty.
    fn load(&self, py: Python<'_>, file: PathBuf) -> PyResult<()> {
        py.detach(|| self.jar.load(file)).map(|_| ()).map_err(|error| PyOSError::new_err(error.to_string()))
    }

    /// Writes what has changed to a Netscape file.
    fn save(&self, py: Python<'_>, file: PathBuf) -> PyResult<()> {
        py.detach(|| self.jar.save(file)).map_err(|error| PyOSError::new_err(error.to_string()))
    }

    /// Removes session cookies.
    fn remove_session(&self) {
        self.jar.clear_session();
    }

    /// All cookies, oldest first.
    fn all<'py>(&self, py: Python<'py>) -> Vec<Shown<'py>> {
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
