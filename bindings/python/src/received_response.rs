//! The engine's response, as the Python class `haul.Response` uses it. Rarely used parts are parsed
//! on demand.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use haul::transfer_facts::{TlsFacts, TransferFacts};
use haul::{ProtocolVersion, ResponseHead, Target};
use haul_policy::redirect::location_text;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyString, PyTuple};

use crate::bytes_sink::ReceivedBody;
use crate::cookie_jar::PyJar;
use crate::fetch_many_json_record::TransferRecordData;
use crate::python_str_and_http_bytes::from_latin1;

/// The name and the value of a trailer field.
pub(crate) type TrailerField = (String, Vec<u8>);

/// Converts the fields of a trailer section, given as slices, to owned names and values.
pub(crate) fn trailer_fields<'f>(fields: impl Iterator<Item = (&'f [u8], &'f [u8])>) -> Vec<TrailerField> {
    fields.map(|(name, value)| (String::from_utf8_lossy(name).into_owned(), value.to_vec())).collect()
}

/// The head of a response, its body if it is not streamed, and details of the transfer.
#[pyclass(frozen, module = "haul._haul")]
pub(crate) struct ReceivedResponse {
    pub(crate) head: ResponseHead,
    pub(crate) target: Target,
    /// The normalised URL of the request.
    #[pyo3(get)]
    pub(crate) url: String,
    /// The decoded body; `None` if the body is streamed.
    pub(crate) body: Option<ReceivedBody>,
    /// The value of the Cookie field in the request. `None` if the request had no Cookie field.
    pub(crate) cookie: Option<Vec<u8>>,
    pub(crate) facts: ConnectionAndTimingFacts,
    /// The names and values of the trailer fields. Empty until the body has been received.
    pub(crate) trailers: Vec<TrailerField>,
    /// The data for the response's record, the JSON description of the transfer. `None` if the
    /// response is not from a batch.
    pub(crate) record: Option<TransferRecordData>,
}

/// The part of the engine's [`TransferFacts`] that is kept with a response.
#[derive(Clone)]
pub(crate) struct ConnectionAndTimingFacts {
    resolved: Duration,
    connected: Duration,
    secured: Duration,
    sent: Duration,
    first_byte: Duration,
    total: Duration,
    connects: u32,
    connection: Option<u64>,
    peer: Option<SocketAddr>,
    local: Option<SocketAddr>,
    tls: Option<Box<TlsFacts>>,
    certificates: Option<Arc<[Vec<u8>]>>,
}

impl From<&TransferFacts> for ConnectionAndTimingFacts {
    fn from(facts: &TransferFacts) -> Self {
        Self {
            resolved: facts.resolved,
            connected: facts.connected,
            secured: facts.secured,
            sent: facts.sent,
            first_byte: facts.first_byte,
            total: facts.total,
            connects: facts.connects,
            connection: facts.connection,
            peer: facts.peer,
            local: facts.local,
            tls: facts.tls.clone(),
            certificates: facts.certificates.clone(),
        }
    }
}

impl ReceivedResponse {
    /// Creates a response whose head has arrived, but not its body.
    pub(crate) fn begun(
        head: &ResponseHead,
        target: &Target,
        facts: &TransferFacts,
        url: String,
        cookie: Option<Vec<u8>>,
    ) -> Self {
        Self {
            head: head.clone(),
            target: target.clone(),
            url,
            body: None,
            cookie,
            facts: facts.into(),
            trailers: Vec::new(),
            record: None,
        }
    }

    /// Returns a copy of the response with its complete body and the trailer fields. `facts`
    /// replaces the connection and timing facts of the response; `None` keeps them.
    pub(crate) fn completed(
        &self,
        body: Py<PyBytes>,
        facts: Option<ConnectionAndTimingFacts>,
        trailers: Vec<TrailerField>,
    ) -> Self {
        Self {
            head: self.head.clone(),
            target: self.target.clone(),
            url: self.url.clone(),
            body: Some(body.into()),
            cookie: self.cookie.clone(),
            facts: facts.unwrap_or_else(|| self.facts.clone()),
            trailers,
            record: None,
        }
    }
}

/// An address and its port.
type Address = (String, u16);

/// The version, the cipher suite and the ALPN protocol (`None` if none was negotiated) of a TLS
/// session, and true if the session was resumed.
type TlsParameters = (&'static str, String, Option<String>, bool);

#[pymethods]
impl ReceivedResponse {
    /// Returns the status code.
    #[getter]
    fn status(&self) -> u16 {
        self.head.status()
    }

    /// Returns the reason phrase, without surrounding whitespace, as in http.client.
    #[getter]
    fn reason<'py>(&self, py: Python<'py>) -> Bound<'py, PyString> {
        let reason = self.head.reason().trim_ascii();
        match std::str::from_utf8(reason) {
            Ok(text) => PyString::new(py, text),
            Err(_) => from_latin1(py, reason),
        }
    }

    /// Returns the HTTP version as a number like that of urllib3: 10, 11, 20 or 30.
    #[getter]
    fn version(&self) -> u8 {
        match self.head.version() {
            ProtocolVersion::Http10 => 10,
            ProtocolVersion::Http2 => 20,
            ProtocolVersion::Http3 => 30,
            _ => 11,
        }
    }

    /// Returns the decoded body; `None` if the body is streamed.
    #[getter]
    fn body<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyBytes>> {
        self.body.as_ref().map(|body| body.bytes(py))
    }

    /// Returns the names and values of all fields, as received.
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

    /// Returns the names and values of the trailer fields, as received.
    fn trailers<'py>(&self, py: Python<'py>) -> Vec<(&str, Bound<'py, PyString>)> {
        self.trailers.iter().map(|(name, value)| (name.as_str(), from_latin1(py, value))).collect()
    }

    /// Returns the first value of the field with this name, ignoring case; `None` if there is no
    /// such field.
    fn get<'py>(&self, py: Python<'py>, name: &str) -> Option<Bound<'py, PyString>> {
        self.head.get(name).map(|value| from_latin1(py, value))
    }

    /// Returns all values of the field with this name, joined with commas (RFC 9110 section 5.3);
    /// `None` if there is no such field.
    fn joined<'py>(&self, py: Python<'py>, name: &str) -> Option<Bound<'py, PyString>> {
        let values: Vec<&[u8]> = self.head.get_all(name).collect();
        (!values.is_empty()).then(|| from_latin1(py, &values.join(&b", "[..])))
    }

    /// Returns whether the response has a field with this name.
    fn has(&self, name: &str) -> bool {
        self.head.get(name).is_some()
    }

    /// Returns the Location of a redirect; `None` if the response does not redirect. UTF-8 is
    /// unchanged; other bytes beyond ASCII are percent-encoded.
    fn location<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyString>> {
        let location =
            self.head.get("location").filter(|_| matches!(self.head.status(), 301 | 302 | 303 | 307 | 308))?;
        Some(PyString::new(py, &location_text(location)))
    }

    /// Stores the cookies of the response in a jar.
    pub(crate) fn cookies_into(&self, jar: &PyJar) {
        jar.jar.store_fields(&self.target, self.head.get_all("set-cookie"));
    }

    /// Returns the value of the Cookie field that was sent; `None` if the request had no Cookie
    /// field.
    #[getter]
    fn sent_cookie<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyString>> {
        self.cookie.as_ref().map(|cookie| from_latin1(py, cookie))
    }

    /// Returns the record (the JSON description of the transfer) as text, without the body; `None`
    /// if the response is not from a batch.
    fn record(&self) -> Option<String> {
        Some(self.record.as_ref()?.json(&self.target, Some(&self.head), None))
    }

    /// Returns the seconds from the call to the first byte of the head.
    #[getter]
    fn elapsed(&self) -> f64 {
        self.facts.first_byte.as_secs_f64()
    }

    /// Returns the seconds from the call to the end of the body.
    #[getter]
    fn total(&self) -> f64 {
        self.facts.total.as_secs_f64()
    }

    /// Returns true if the request used a connection of an earlier request.
    #[getter]
    fn reused(&self) -> bool {
        self.facts.connects == 0
    }

    /// Returns the server's address and port; `None` if they are unknown.
    #[getter]
    fn peer(&self) -> Option<Address> {
        self.facts.peer.map(address)
    }

    /// Returns the program's own address and port; `None` if they are unknown.
    #[getter]
    fn local(&self) -> Option<Address> {
        self.facts.local.map(address)
    }

    /// Returns the id of the connection, which is unique in this process; `None` if there was no
    /// connection.
    #[getter]
    fn connection(&self) -> Option<u64> {
        self.facts.connection
    }

    /// Returns six times, in seconds since the start of the call: name resolved, connection made,
    /// TLS set up, request sent, first byte received, body received. A time is 0 if the step did
    /// not happen.
    fn times(&self) -> (f64, f64, f64, f64, f64, f64) {
        let facts = &self.facts;
        let of = Duration::as_secs_f64;
        (
            of(&facts.resolved),
            of(&facts.connected),
            of(&facts.secured),
            of(&facts.sent),
            of(&facts.first_byte),
            of(&facts.total),
        )
    }

    /// Returns the version, cipher suite and ALPN protocol of the TLS session, and whether it was
    /// resumed; `None` without TLS.
    fn tls(&self) -> Option<TlsParameters> {
        let tls = self.facts.tls.as_ref()?;
        Some((tls.version, tls.cipher.clone(), tls.alpn.clone(), tls.resumed))
    }

    /// Returns the server's certificates in DER, the certificate of the server itself first; an
    /// empty list without TLS.
    fn certificates<'py>(&self, py: Python<'py>) -> Vec<Bound<'py, PyBytes>> {
        let chain = self.facts.certificates.as_deref().unwrap_or_default();
        chain.iter().map(|certificate| PyBytes::new(py, certificate)).collect()
    }
}

fn address(address: SocketAddr) -> Address {
    (address.ip().to_string(), address.port())
}
