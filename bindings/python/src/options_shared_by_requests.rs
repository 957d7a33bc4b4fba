//! `SharedOptions`: the options of the engine that many requests share. A session builds them once
//! and uses them for every request until its settings change.
//!
//! ```python
//! options = SharedOptions([("User-Agent", "me/1"), ("Accept", "*/*")], read_timeout=5.0)
//! response = client.send(options, "GET", "http://example.test/")
//! ```

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use haul::net::local_address::{LocalInterface, PortRange, UnixSocketAddress};
use haul::net::proxy::ProxyOptions;
use haul::net::tls::{ClientCertificateFiles, Passphrase, Pem, TlsVersion};
use haul::request::{ConnectToRule, Http3Policy};
use haul::state::auth::{AllowedAuthSchemes, AuthOptions, Credentials};
use haul::state::http3::Http3Cache;
use haul::{ErrorKind, RequestOptions};
use haul_policy::field_validation::{is_token, is_value};
use haul_policy::proxy::{NoProxy, Proxy, ProxyEnvironment};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyString};

use crate::cookie_jar::PyJar;
use crate::error::{EngineError, refused_request_error};
use crate::normalized_url::{mask_userinfo, prepare};
use crate::python_str_and_http_bytes::latin1_or_utf8;
use crate::signals_and_stop_flag::{StopFlag, signals};

/// A header field and its new value. The value `None` removes the field.
pub(crate) type FieldChange = (String, Option<Vec<u8>>);

/// A rule for connecting elsewhere: the host and the port of a URL, and the host and the port to
/// connect to instead. `None` as the first port stands for any port; as the second port, for the
/// port of the URL.
type ConnectTo = (String, Option<u16>, String, Option<u16>);

/// The proxy for http URLs, the proxy for https URLs, and the value of `no_proxy`. `None` stands
/// for a value that is not set.
type ProxiesAndNoProxy = (Option<String>, Option<String>, Option<String>);

/// Request options of the engine that a program creates once and uses for many requests.
#[pyclass(frozen, module = "haul._haul")]
pub(crate) struct SharedOptions {
    pub(crate) engine_options: Arc<RequestOptions>,
}

#[pymethods]
impl SharedOptions {
    #[new]
    #[pyo3(signature = (fields, *, verify=true, ca_file=None, ca_path=None, ca_pem=None, cert=None, key=None,
        passphrase=None, cert_pem=None, unix_socket=None, connect_to=None, interface=None, local_port=None, pins=None,
        min_tls=None, max_tls=None, proxy=None, proxy_fields=None, connect_timeout=None,
        read_timeout=None, write_timeout=None, total_timeout=None, pool_timeout=None, max_size=None, digest=None, http2=false,
        http3=None))]
    #[expect(clippy::too_many_arguments, reason = "keyword arguments, one a setting")]
    fn new(
        fields: &Bound<'_, PyAny>,
        verify: bool,
        ca_file: Option<PathBuf>,
        ca_path: Option<PathBuf>,
        ca_pem: Option<Vec<u8>>,
        cert: Option<PathBuf>,
        key: Option<PathBuf>,
        passphrase: Option<Vec<u8>>,
        cert_pem: Option<Vec<u8>>,
        unix_socket: Option<PathBuf>,
        connect_to: Option<Vec<ConnectTo>>,
        interface: Option<&str>,
        local_port: Option<u16>,
        pins: Option<Vec<[u8; 32]>>,
        min_tls: Option<&str>,
        max_tls: Option<&str>,
        proxy: Option<&str>,
        proxy_fields: Option<&Bound<'_, PyAny>>,
        connect_timeout: Option<f64>,
        read_timeout: Option<f64>,
        write_timeout: Option<f64>,
        total_timeout: Option<f64>,
        pool_timeout: Option<f64>,
        max_size: Option<u64>,
        digest: Option<(Vec<u8>, Vec<u8>)>,
        http2: bool,
        http3: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let mut options = RequestOptions {
            user_agent: None,
            // The caller passes all fields that requests would send; the engine adds none.
            without: vec!["Accept".to_owned()],
            expect_timeout: Duration::ZERO,
            interrupt: Some(signals()),
            max_size,
            // The option also keeps the facts about TLS.
            keep_history: true,
            ..RequestOptions::default()
        };
        merge(&mut options.fields, to_fields(fields)?);
        options.tls.verify = verify;
        options.tls.keep_certificates = true;
        options.tls.ca_file = ca_file;
        options.tls.ca_path = ca_path;
        options.tls.ca_pem = ca_pem.map(Pem::new);
        options.tls.passphrase = passphrase.map(Passphrase::new);
        options.tls.min_version = min_tls.map_or(Ok(options.tls.min_version), tls_version)?;
        options.tls.max_version = max_tls.map_or(Ok(options.tls.max_version), tls_version)?;
        options.tls.identity_pem = cert_pem.map(Pem::new);
        options.tls.pins = pins.unwrap_or_default();
        options.connect.unix_socket = unix_socket.map(socket_address);
        options.connect.interface = interface.map(LocalInterface::parse).transpose().map_err(setup_error)?;
        options.connect.local_ports = local_port.map(|port| PortRange { first: port, last: port });
        options.connect_to.extend(connect_to.unwrap_or_default().into_iter().map(connect_rule));
        options.tls.identity = cert.map(|certificate| ClientCertificateFiles { certificate, key });
        if http2 {
            options.tls.alpn = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        }
        options.http3 = http3.map_or(Ok(Http3Policy::Off), http3_policy)?;
        options.http3_cache = http3_cache();
        if let Some(limit) = connect_timeout {
            options.connect.timeout = seconds(limit)?;
        }
        options.read_timeout = read_timeout.map(seconds).transpose()?;
        options.write_timeout = write_timeout.map(seconds).transpose()?;
        options.total_time = total_timeout.map(seconds).transpose()?;
        options.pool_timeout = pool_timeout.map(seconds).transpose()?;
        if let Some((user, password)) = digest {
            let user = Credentials::new(user, password)
                .map_err(|error| refused_request_error(ErrorKind::Setup, error.to_string()))?;
            options.auth = AuthOptions { allowed: AllowedAuthSchemes::DIGEST, ..AuthOptions::user(user) };
        }
        if let Some(proxy) = proxy {
            let parsed = Proxy::parse(proxy).map_err(|error| {
                refused_request_error(
                    ErrorKind::Setup,
                    format!("Invalid proxy URL {:?}: {error}", mask_userinfo(proxy)),
                )
            })?;
            let mut given = ProxyOptions::default();
            given.proxy = Some(parsed);
            given.tls = options.tls.clone();
            given.tls.alpn = Vec::new();
            if let Some(fields) = proxy_fields {
                merge(&mut given.fields, to_fields(fields)?);
            }
            options.proxy = Some(given);
        }
        Ok(Self { engine_options: Arc::new(options) })
    }

    /// Returns a copy of these options for requests whose redirects the engine follows.
    ///
    /// * `redirects` is the maximum number of redirects; with `None`, none are followed.
    /// * `jar` supplies and stores the cookies.
    /// * `proxies`, if given, replaces the proxy. For each request of a redirect chain, the engine
    ///   chooses the proxy for http, the proxy for https, or none.
    #[pyo3(signature = (redirects, jar, proxies=None))]
    fn with_redirects_jar_and_proxies(
        &self,
        redirects: Option<u32>,
        jar: Option<&PyJar>,
        proxies: Option<ProxiesAndNoProxy>,
    ) -> Self {
        let mut options = RequestOptions::clone(&self.engine_options);
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
            given.environment = ProxyEnvironment::from_variables(|name| match name {
                "http_proxy" => http.clone(),
                "https_proxy" => https.clone(),
                "no_proxy" => no_proxy.clone(),
                _ => None,
            });
        }
        Self { engine_options: Arc::new(options) }
    }

    /// Returns true if these options name one proxy for all requests. Returns false if there is no
    /// proxy, or if the engine chooses one by the scheme of each URL.
    #[getter]
    fn proxied(&self) -> bool {
        self.engine_options.proxy.as_ref().is_some_and(|given| given.proxy.is_some())
    }

    /// Returns the header fields that are sent with each request.
    fn fields<'py>(&self, py: Python<'py>) -> Vec<(String, Bound<'py, PyString>)> {
        let fields = self.engine_options.fields.iter();
        fields.map(|(name, value)| (name.clone(), crate::python_str_and_http_bytes::from_latin1(py, value))).collect()
    }
}

impl SharedOptions {
    /// Returns a copy of these options for one call. The call ends early if `stop` is set.
    pub(crate) fn stopped_by(&self, stop: &StopFlag) -> Self {
        let interrupt = Some(stop.or_signals());
        Self { engine_options: Arc::new(RequestOptions { interrupt, ..RequestOptions::clone(&self.engine_options) }) }
    }
}

/// Returns the cache of HTTP/3 endpoints that all sessions of this process share. The cache also
/// contains the endpoints where HTTP/3 failed.
fn http3_cache() -> Http3Cache {
    static CACHE: OnceLock<Http3Cache> = OnceLock::new();
    CACHE.get_or_init(Http3Cache::new).clone()
}

/// Converts the Python argument `http3`: a bool, `"only"` or `"learned"`.
fn http3_policy(value: &Bound<'_, PyAny>) -> PyResult<Http3Policy> {
    let policy = match value.extract::<bool>() {
        Ok(false) => Http3Policy::Off,
        Ok(true) => Http3Policy::Race,
        Err(_) => match value.extract::<String>().as_deref() {
            Ok("only") => Http3Policy::Only,
            Ok("learned") => Http3Policy::Learned,
            _ => {
                let message = "http3 must be True, False, \"only\" or \"learned\"";
                return Err(pyo3::exceptions::PyValueError::new_err(message));
            }
        },
    };
    if !haul::HAS_HTTP3 && matches!(policy, Http3Policy::Race | Http3Policy::Only) {
        return Err(refused_request_error(ErrorKind::Setup, "this build of haul has no HTTP/3".to_owned()));
    }
    Ok(policy)
}

fn setup_error(error: haul::Error) -> PyErr {
    refused_request_error(error.kind(), error.cause())
}

fn connect_rule((host, port, to_host, to_port): ConnectTo) -> ConnectToRule {
    ConnectToRule { host: Some(host), port, to_host: Some(to_host), to_port }
}

/// Converts the path of a Unix socket. A path that begins with NUL is a name in Linux's abstract
/// namespace.
fn socket_address(path: PathBuf) -> UnixSocketAddress {
    match path.as_os_str().as_encoded_bytes().strip_prefix(b"\0") {
        Some(name) => UnixSocketAddress::Abstract(name.to_vec()),
        None => UnixSocketAddress::Path(path),
    }
}

/// Converts the name of a TLS version.
fn tls_version(name: &str) -> PyResult<TlsVersion> {
    let known = [TlsVersion::V1_2, TlsVersion::V1_3];
    let unknown = || pyo3::exceptions::PyValueError::new_err(format!("haul has no {name}, only TLSv1.2 and TLSv1.3"));
    known.into_iter().find(|version| version.name() == name).ok_or_else(unknown)
}

/// Converts a number of seconds to a duration of at most 2^31 seconds (68 years). Raises
/// `ValueError` if the number is not positive.
fn seconds(value: f64) -> PyResult<Duration> {
    if value.is_nan() || value <= 0.0 {
        let message = "Attempted to set a timeout to a value less than or equal to 0";
        return Err(pyo3::exceptions::PyValueError::new_err(message));
    }
    Ok(Duration::try_from_secs_f64(value).unwrap_or(Duration::MAX).min(Duration::from_secs(1 << 31)))
}

/// Converts a mapping or an iterable of pairs to header fields.
pub(crate) fn to_fields(given: &Bound<'_, PyAny>) -> PyResult<Vec<FieldChange>> {
    let py = given.py();
    if let Ok(dict) = given.cast_exact::<PyDict>() {
        return dict.iter().map(|(name, value)| to_field(&name, &value)).collect();
    }
    // The package passes such lists. The search for a method `items` would cost as much as all else.
    if let Ok(list) = given.cast_exact::<PyList>() {
        return list.iter().map(|pair| pair_to_field(&pair)).collect();
    }
    let items = match given.getattr_opt(pyo3::intern!(py, "items"))? {
        Some(items) => items.call0()?,
        None => given.clone(),
    };
    items.try_iter()?.map(|pair| pair_to_field(&pair?)).collect()
}

fn pair_to_field(pair: &Bound<'_, PyAny>) -> PyResult<FieldChange> {
    let (name, value): (Bound<'_, PyAny>, Bound<'_, PyAny>) = pair.extract()?;
    to_field(&name, &value)
}

fn to_field(name: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> PyResult<FieldChange> {
    let name_bytes = to_field_part(name, name)?;
    let name_text = String::from_utf8(name_bytes).ok().filter(|name| is_token(name.as_bytes()));
    let name_text = name_text.ok_or_else(|| invalid_field_error("name", &name_of(name)))?;
    if value.is_none() {
        return Ok((name_text, None));
    }
    let bytes = to_field_part(value, name)?;
    if is_invalid_value(&bytes) {
        return Err(invalid_field_error("value of", &name_text));
    }
    Ok((name_text, Some(bytes)))
}

/// Returns `true` if a field value cannot be sent. A value with leading whitespace is refused too,
/// as in the Python package requests.
fn is_invalid_value(value: &[u8]) -> bool {
    value.first().is_some_and(u8::is_ascii_whitespace) || !is_value(value)
}

fn to_field_part(part: &Bound<'_, PyAny>, name: &Bound<'_, PyAny>) -> PyResult<Vec<u8>> {
    if let Ok(text) = part.cast::<PyString>() {
        return Ok(latin1_or_utf8(text.to_str()?));
    }
    if let Ok(bytes) = part.cast::<PyBytes>() {
        return Ok(bytes.as_bytes().to_vec());
    }
    let what = if part.is(name) { "name" } else { "value" };
    let shown = name_of(name);
    let message = format!("Header {what} of {shown:?} must be of type str or bytes, not {}", part.get_type());
    Err(EngineError::new_err(("Header", message, None::<String>, "connect", 2, "setup")))
}

/// Returns the name of a field for a message, cut off at the first character that is not allowed in
/// names: the text after it may be a value, and secret.
fn name_of(name: &Bound<'_, PyAny>) -> String {
    let text = match name.cast::<PyBytes>() {
        Ok(bytes) => String::from_utf8_lossy(bytes.as_bytes()).into_owned(),
        Err(_) => name.str().map(|text| text.to_string()).unwrap_or_default(),
    };
    let end = text.find(|c: char| !is_token(c.encode_utf8(&mut [0; 4]).as_bytes())).unwrap_or(text.len());
    if end < text.len() { format!("{}...", &text[..end]) } else { text }
}

/// Returns the exception for a field that cannot be sent. The message may be logged, so it contains
/// the name of the field and not its value.
fn invalid_field_error(what: &str, name: &str) -> PyErr {
    let message =
        format!("Invalid leading whitespace, reserved character(s), or return character(s) in header {what} {name:?}");
    EngineError::new_err(("Header", message, None::<String>, "connect", 2, "setup"))
}

/// Applies the changes `over` to header fields. A value replaces the field with the same name, and
/// `None` removes it.
pub(crate) fn merge(fields: &mut Vec<(String, Vec<u8>)>, over: Vec<FieldChange>) {
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

/// Returns the user and password for the host of a URL from the text of a netrc file. Returns
/// `None` if the file has no entry for the host, or if the URL contains a user.
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

/// Returns true if the host of a URL matches an entry of a `no_proxy` list.
#[pyfunction]
pub(crate) fn bypasses_proxy(no_proxy: &str, url: &str) -> PyResult<bool> {
    Ok(NoProxy::parse(no_proxy).matches(&prepare(url, None)?.target))
}

/// Returns a copy of the options without the default header fields that `fields` removes (those
/// with the value `None`).
pub(crate) fn without_fields(options: &Arc<RequestOptions>, fields: &[FieldChange]) -> Arc<RequestOptions> {
    let mut options = RequestOptions::clone(options);
    let is_out = |name: &str| fields.iter().any(|(out, value)| value.is_none() && out.eq_ignore_ascii_case(name));
    options.fields.retain(|(name, _)| !is_out(name));
    Arc::new(options)
}
