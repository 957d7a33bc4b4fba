//! Settings that many requests share: where connections may go and how, fields, limits. A plan is
//! made once for a session's settings and used for every request until they change.
//!
//! ```python
//! plan = Plan([("User-Agent", "me/1"), ("Accept", "*/*")], read_timeout=5.0)
//! reply = client.send(plan, "GET", "http://example.test/")
//! ```

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use haul::net::proxy::ProxyOptions;
use haul::net::tls::Identity;
use haul::state::auth::{Allowed, Auth, Credentials};
use haul::{ErrorKind, RequestOptions};
use haul_policy::field::{is_token, is_value};
use haul_policy::proxy::{Environment, NoProxy, Proxy};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyString};

use crate::error::{Failure, refused};
use crate::jar::Jar;
use crate::stop::{Stop, signals};
use crate::text::latin1_or_utf8;
use crate::url::{masked, prepare};

/// A field to send; without a value, one not to send.
pub(crate) type Field = (String, Option<Vec<u8>>);

/// The proxies of http and https URLs, and a list such as `no_proxy` holds.
type ByScheme = (Option<String>, Option<String>, Option<String>);

/// Settings that many requests share.
#[pyclass(frozen, module = "haul._haul")]
pub(crate) struct Plan {
    pub(crate) options: Arc<RequestOptions>,
}

#[pymethods]
impl Plan {
    #[new]
    #[pyo3(signature = (fields, *, verify=true, ca_file=None, ca_path=None, cert=None, key=None, proxy=None, proxy_fields=None,
        connect_timeout=None, read_timeout=None, digest=None, http2=false))]
    #[expect(clippy::too_many_arguments, reason = "keyword arguments, one a setting")]
    fn new(
        fields: &Bound<'_, PyAny>,
        verify: bool,
        ca_file: Option<PathBuf>,
        ca_path: Option<PathBuf>,
        cert: Option<PathBuf>,
        key: Option<PathBuf>,
        proxy: Option<&str>,
        proxy_fields: Option<&Bound<'_, PyAny>>,
        connect_timeout: Option<f64>,
        read_timeout: Option<f64>,
        digest: Option<(Vec<u8>, Vec<u8>)>,
        http2: bool,
    ) -> PyResult<Self> {
        let mut options = RequestOptions {
            user_agent: None,
            // The fields that requests sends are given; none are added.
            without: vec!["Accept".to_owned()],
            expect_timeout: Duration::ZERO,
            interrupt: Some(signals()),
            ..RequestOptions::default()
        };
        merge(&mut options.fields, fields_of(fields)?);
        options.tls.verify = verify;
        options.tls.ca_file = ca_file;
        options.tls.ca_path = ca_path;
        options.tls.identity = cert.map(|certificate| Identity { certificate, key });
        if http2 {
            options.tls.alpn = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        }
        if let Some(limit) = connect_timeout {
            options.connect.timeout = seconds(limit)?;
        }
        options.read_timeout = read_timeout.map(seconds).transpose()?;
        if let Some((user, password)) = digest {
            let user =
                Credentials::new(user, password).map_err(|error| refused(ErrorKind::Setup, error.to_string()))?;
            options.auth = Auth { allowed: Allowed::DIGEST, ..Auth::user(user) };
        }
        if let Some(proxy) = proxy {
            let parsed = Proxy::parse(proxy).map_err(|error| {
                refused(ErrorKind::Setup, format!("Invalid proxy URL {:?}: {error}", masked(proxy)))
            })?;
            let mut given = ProxyOptions::default();
            given.proxy = Some(parsed);
            given.tls = options.tls.clone();
            given.tls.alpn = Vec::new();
            if let Some(fields) = proxy_fields {
                merge(&mut given.fields, fields_of(fields)?);
            }
            options.proxy = Some(given);
        }
        Ok(Self { options: Arc::new(options) })
    }

    /// The same for requests whose redirects, at most this many, are followed by the engine, with the cookies of a jar. `None` follows none.
    /// `proxies` are those for http and https URLs and the list of hosts without one, applied to each request of a chain.
    #[pyo3(signature = (redirects, jar, proxies=None))]
    fn following(&self, redirects: Option<u32>, jar: Option<&Jar>, proxies: Option<ByScheme>) -> Self {
        let mut options = RequestOptions::clone(&self.options);
        options.redirects.follow = redirects.is_some();
        options.redirects.max = redirects.unwrap_or(0);
        options.jar = jar.map(|jar| jar.jar.clone());
        if let Some((http, https, no_proxy)) = proxies {
            let given = options.proxy.get_or_insert_with(|| {
                let mut given = ProxyOptions::default();
                given.tls = options.tls.clone();
                given.tls.alpn = Vec::new();
                given
            });
            given.proxy = None;
            given.environment = Environment::read(|name| match name {
                "http_proxy" => http.clone(),
                "https_proxy" => https.clone(),
                "no_proxy" => no_proxy.clone(),
                _ => None,
            });
        }
        Self { options: Arc::new(options) }
    }

    /// Returns whether requests go through a proxy.
    #[getter]
    fn proxied(&self) -> bool {
        self.options.proxy.as_ref().is_some_and(|given| given.proxy.is_some())
    }

    /// The fields of each request, as sent.
    fn fields<'py>(&self, py: Python<'py>) -> Vec<(String, Bound<'py, PyString>)> {
        let fields = self.options.fields.iter();
        fields.map(|(name, value)| (name.clone(), crate::text::from_latin1(py, value))).collect()
    }
}

impl Plan {
    /// The same for one request that this ends.
    pub(crate) fn stopped_by(&self, stop: &Stop) -> Self {
        let interrupt = Some(stop.or_signals());
        Self { options: Arc::new(RequestOptions { interrupt, ..RequestOptions::clone(&self.options) }) }
    }
}

/// Seconds given by a program. An enormous number is no limit.
fn seconds(value: f64) -> PyResult<Duration> {
    if value.is_nan() || value <= 0.0 {
        let message = "Attempted to set a timeout to a value less than or equal to 0";
        return Err(pyo3::exceptions::PyValueError::new_err(message));
    }
    Ok(Duration::try_from_secs_f64(value).unwrap_or(Duration::MAX).min(Duration::from_secs(1 << 31)))
}

/// Fields of a mapping or of pairs.
pub(crate) fn fields_of(given: &Bound<'_, PyAny>) -> PyResult<Vec<Field>> {
    let py = given.py();
    if let Ok(dict) = given.cast_exact::<PyDict>() {
        return dict.iter().map(|(name, value)| field(&name, &value)).collect();
    }
    let items = match given.getattr_opt(pyo3::intern!(py, "items"))? {
        Some(items) => items.call0()?,
        None => given.clone(),
    };
    items
        .try_iter()?
        .map(|pair| {
            let (name, value): (Bound<'_, PyAny>, Bound<'_, PyAny>) = pair?.extract()?;
            field(&name, &value)
        })
        .collect()
}

fn field(name: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> PyResult<Field> {
    let name_bytes = part(name, name)?;
    let name_text = String::from_utf8(name_bytes).ok().filter(|name| is_token(name.as_bytes()));
    let name_text = name_text.ok_or_else(|| invalid("name", &name_of(name)))?;
    if value.is_none() {
        return Ok((name_text, None));
    }
    let bytes = part(value, name)?;
    if is_broken(&bytes) {
        return Err(invalid("value of", &name_text));
    }
    Ok((name_text, Some(bytes)))
}

/// A leading blank would continue the previous field (RFC 9112 section 5.2).
fn is_broken(value: &[u8]) -> bool {
    value.first().is_some_and(u8::is_ascii_whitespace) || !is_value(value)
}

fn part(part: &Bound<'_, PyAny>, name: &Bound<'_, PyAny>) -> PyResult<Vec<u8>> {
    if let Ok(text) = part.cast::<PyString>() {
        return Ok(latin1_or_utf8(text.to_str()?));
    }
    if let Ok(bytes) = part.cast::<PyBytes>() {
        return Ok(bytes.as_bytes().to_vec());
    }
    let what = if part.is(name) { "name" } else { "value" };
    let shown = name_of(name);
    let message = format!("Header {what} of {shown:?} must be of type str or bytes, not {}", part.get_type());
    Err(Failure::new_err(("Header", message, None::<String>, "connect")))
}

/// A field's name for a message: what stands behind its first character that no name may have could be a value, which
/// could be a secret.
fn name_of(name: &Bound<'_, PyAny>) -> String {
    let text = match name.cast::<PyBytes>() {
        Ok(bytes) => String::from_utf8_lossy(bytes.as_bytes()).into_owned(),
        Err(_) => name.str().map(|text| text.to_string()).unwrap_or_default(),
    };
    let end = text.find(|c: char| !is_token(c.encode_utf8(&mut [0; 4]).as_bytes())).unwrap_or(text.len());
    if end < text.len() { format!("{}...", &text[..end]) } else { text }
}

/// Makes the exception for a field that cannot be sent. The message goes to logs, so it names the
/// field and leaves its value out.
fn invalid(what: &str, name: &str) -> PyErr {
    let message =
        format!("Invalid leading whitespace, reserved character(s), or return character(s) in header {what} {name:?}");
    Failure::new_err(("Header", message, None::<String>, "connect"))
}

/// Puts fields over those that are there: one of the same name replaces, one without a value removes.
pub(crate) fn merge(fields: &mut Vec<(String, Vec<u8>)>, over: Vec<Field>) {
    for (name, value) in over {
        let at = fields.iter().position(|(known, _)| known.eq_ignore_ascii_case(&name));
        match (at, value) {
            (Some(at), Some(value)) => fields[at] = (name, value),
            (None, Some(value)) => fields.push((name, value)),
            (Some(at), None) => drop(fields.remove(at)),
            (None, None) => {}
        }
    }
}

/// A netrc file's user and password for the host of a URL. `None` for a URL with its own user.
#[pyfunction]
pub(crate) fn netrc_login(text: &[u8], url: &str) -> PyResult<Option<(Vec<u8>, Vec<u8>)>> {
    let target = prepare(url, None)?.target;
    if target.userinfo_bytes().is_some() {
        return Ok(None);
    }
    // A malformed file has no entry, as in requests.
    let entry = haul_policy::netrc::find(text, target.host_text(), None).ok().flatten();
    Ok(entry.map(|entry| (entry.login.or(entry.account).unwrap_or_default(), entry.password.unwrap_or_default())))
}

/// Returns whether a list like that of `no_proxy` includes the host of a URL.
#[pyfunction]
pub(crate) fn bypasses_proxy(no_proxy: &str, url: &str) -> PyResult<bool> {
    Ok(NoProxy::parse(no_proxy).matches(&prepare(url, None)?.target))
}

/// The options without the fields to remove: those without a value.
pub(crate) fn without(options: &Arc<RequestOptions>, fields: &[Field]) -> Arc<RequestOptions> {
    let mut options = RequestOptions::clone(options);
    let is_out = |name: &str| fields.iter().any(|(out, value)| value.is_none() && out.eq_ignore_ascii_case(name));
    options.fields.retain(|(name, _)| !is_out(name));
    Arc::new(options)
}
