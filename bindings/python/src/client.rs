//! `Client`: the connections of a session, and the methods that send a request.

use std::borrow::Cow;

use haul::net::dns::ChosenDnsServers;
use haul::request::{Request, RequestOptions, RequestOverrides, method};
use haul::transfer::TransferOutcome;
use haul::transfer_facts::TransferPhase;
use haul::{Error, ErrorKind, Target};
use pyo3::prelude::*;

use crate::bytes_sink::BytesSink;
use crate::cookie_jar::PyJar;
use crate::error::{EngineError, FailurePhase, interrupted, send_failure, to_exception};
use crate::fetch_many_json_record::{FailedTransfer, TransferRecordData};
use crate::normalized_url::{LastUrlCache, PreparedUrl, prepare, prepare_as_is};
use crate::options_shared_by_requests::{FieldChange, SharedOptions, to_fields, without_fields};
use crate::python_str_and_http_bytes::latin1_or_utf8;
use crate::received_response::{ReceivedResponse, trailer_fields};
use crate::request_body::{BodySourceException, to_request_body};
use crate::signals_and_stop_flag::StopFlag;
use crate::streamed_body::StreamedBody;

/// The maximum number of concurrent streamed responses of an event loop. The limit is intentionally
/// high: the program may open many responses before it reads the first one, and a lower limit could
/// block the program for ever.
const MAX_STREAMS: usize = 1 << 20;

/// The Python class `Client`: connections, resolved names and TLS state that the requests of a
/// session share.
#[pyclass(frozen, name = "Client", module = "haul._haul")]
pub(crate) struct PyClient {
    pub(crate) client: haul::Client,
    last_url: LastUrlCache,
}

#[pymethods]
impl PyClient {
    #[new]
    fn new() -> Self {
        let client = haul::Client::builder().max_requests(MAX_STREAMS).build();
        Self { client, last_url: LastUrlCache::default() }
    }

    /// Sends one request and waits for its complete response, decoded. Redirects are not followed.
    ///
    /// `fields` override the header fields of `options`; the value `None` removes a field. `jar`
    /// supplies cookies, and stores the cookies that the response sets. `cookie` contains further
    /// cookies to send. Setting `stop` ends the call. `as_is` sends the path and all of `fields`
    /// unchanged.
    #[pyo3(signature = (options, method, url, query=None, fields=None, body=None, jar=None, cookie=None, stop=None, as_is=false))]
    #[expect(clippy::too_many_arguments, reason = "one crossing a request")]
    fn send(
        &self,
        py: Python<'_>,
        options: &SharedOptions,
        method: &str,
        url: &str,
        query: Option<&str>,
        fields: Option<&Bound<'_, PyAny>>,
        body: Option<&Bound<'_, PyAny>>,
        jar: Option<&PyJar>,
        cookie: Option<&str>,
        stop: Option<&StopFlag>,
        as_is: bool,
    ) -> PyResult<ReceivedResponse> {
        let url = self.last_url.prepare(url, query, as_is)?;
        let stoppable = stop.map(|stop| options.stopped_by(stop));
        let options = stoppable.as_ref().unwrap_or(options);
        let PreparedCall { request, url, exception, cookie } =
            PreparedCall::new(options, method, url, fields, body, jar, cookie)?;
        let (outcome, sink) = py.detach(|| self.client.perform(request, BytesSink::default()));
        let mut response = response_of(py, outcome, url, cookie, &exception, None)?;
        if let Some(jar) = jar {
            response.cookies_into(jar);
        }
        response.body = Some(sink.into_body(py));
        Ok(response)
    }

    /// Sends one request and waits for the head of its response. The caller reads the body from the
    /// returned `StreamedBody`. Setting `stop` ends the call and later reads. `as_is` sends the
    /// path and all of `fields` unchanged.
    #[pyo3(signature = (options, method, url, fields=None, body=None, stop=None, as_is=false))]
    #[expect(clippy::too_many_arguments, reason = "one crossing a request")]
    fn open(
        &self,
        py: Python<'_>,
        options: &SharedOptions,
        method: &str,
        url: &str,
        fields: Option<&Bound<'_, PyAny>>,
        body: Option<&Bound<'_, PyAny>>,
        stop: Option<&StopFlag>,
        as_is: bool,
    ) -> PyResult<(ReceivedResponse, StreamedBody)> {
        let stop = stop.cloned().unwrap_or_default();
        let url = if as_is { prepare_as_is(url)? } else { prepare(url, None)? };
        let PreparedCall { request, url, exception, cookie } =
            PreparedCall::new(&options.stopped_by(&stop), method, url, fields, body, None, None)?;
        let response = py.detach(|| self.client.send(request));
        let response = response.map_err(|error| send_failure(&error, exception.take()))?;
        let received = ReceivedResponse::begun(response.head(), response.target(), response.facts(), url, cookie);
        Ok((received, StreamedBody::new(response, stop)))
    }

    /// Uses these name servers from now on: addresses with or without a port, separated by commas.
    /// An empty text stands for the name servers of the system.
    fn use_dns_servers(&self, servers: &str) -> PyResult<()> {
        let servers =
            if servers.is_empty() { Ok(ChosenDnsServers::default()) } else { ChosenDnsServers::parse(servers) };
        let servers = servers.map_err(|error| pyo3::exceptions::PyValueError::new_err(error.cause()))?;
        self.client.resolver().use_servers(&servers);
        Ok(())
    }

    /// Closes idle connections.
    fn close(&self, py: Python<'_>) {
        py.detach(|| self.client.close_idle());
    }
}

/// The arguments of one call, converted to a request of the engine.
pub(crate) struct PreparedCall {
    pub(crate) request: Request,
    /// The URL of the request, as the response object will show it to the program.
    pub(crate) url: String,
    pub(crate) exception: BodySourceException,
    /// The value of the Cookie field in the request, from the jar and from the program. `None` if
    /// neither has a cookie for the URL.
    pub(crate) cookie: Option<Vec<u8>>,
}

impl PreparedCall {
    pub(crate) fn new(
        options: &SharedOptions,
        name: &str,
        PreparedUrl { url, target, as_is }: PreparedUrl,
        fields: Option<&Bound<'_, PyAny>>,
        body: Option<&Bound<'_, PyAny>>,
        jar: Option<&PyJar>,
        cookie: Option<&str>,
    ) -> PyResult<Self> {
        let cookie = cookie_field(&target, jar, cookie);
        let mut own = RequestOverrides::default();
        let mut options = std::sync::Arc::clone(&options.engine_options);
        let mut exception = BodySourceException::default();
        if options.method != name {
            own.method = Some(method(name));
        }
        if let Some(fields) = fields {
            let fields = to_fields(fields)?;
            if fields.iter().any(|(_, value)| value.is_none()) {
                options = without_fields(&options, &fields);
            }
            own.fields = if as_is { all_of(fields) } else { last_of_each(fields) };
        }
        if let Some(cookie) = &cookie
            && options.jar.is_some()
        {
            // The engine follows redirects itself, and adds the cookies of its jar.
            let cookie = Some(cookie.clone());
            options = std::sync::Arc::new(RequestOptions { cookie, ..RequestOptions::clone(&options) });
        } else if let Some(cookie) = &cookie
            // `options` lack a field that this request removes.
            && !own.fields.iter().chain(options.fields.iter()).any(|(name, _)| name.eq_ignore_ascii_case("cookie"))
        {
            own.fields.push(("Cookie".to_owned(), cookie.clone()));
        }
        if let Some(body) = body {
            let (body, raised) = to_request_body(body, announced(&own.fields).or_else(|| announced(&options.fields)))?;
            own.body = Some(body);
            exception = raised;
        }
        Ok(Self { request: Request::new(target, options, own), url, exception, cookie })
    }
}

/// Returns the value of the Content-Length field that the program has set; `None` if it has not set
/// the field.
fn announced(fields: &[(String, Vec<u8>)]) -> Option<u64> {
    let (_, value) = fields.iter().find(|(name, _)| name.eq_ignore_ascii_case("content-length"))?;
    std::str::from_utf8(value).ok()?.trim().parse().ok()
}

/// Returns the fields that have a value; a field without a value is one that the program removes.
/// Repeated names are kept, since the program passed a `PreparedRequest` of the Python package
/// requests, whose fields are sent unchanged.
fn all_of(fields: Vec<FieldChange>) -> Vec<(String, Vec<u8>)> {
    fields.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
}

/// Returns the fields that have a value, each name once. If a name is repeated, its last value is
/// used, as in a dict that is passed to the Python package requests.
fn last_of_each(fields: Vec<FieldChange>) -> Vec<(String, Vec<u8>)> {
    let mut kept: Vec<(String, Vec<u8>)> = Vec::with_capacity(fields.len() + 1);
    for (name, value) in fields {
        let Some(value) = value else { continue };
        match kept.iter_mut().find(|(known, _)| known.eq_ignore_ascii_case(&name)) {
            Some(same) => *same = (name, value),
            None => kept.push((name, value)),
        }
    }
    kept
}

fn cookie_field(target: &Target, jar: Option<&PyJar>, given: Option<&str>) -> Option<Vec<u8>> {
    let kept = jar.and_then(|jar| jar.jar.cookie_for(target));
    let given = given.map(latin1_or_utf8);
    match (kept, given) {
        (Some(kept), Some(given)) => Some([&kept, &b"; "[..], &given].concat()),
        (kept, given) => kept.or(given),
    }
}

/// Converts the outcome of a transfer into a response, or into the exception to raise. `method` is
/// the method of the request, for its record (the JSON description of the transfer); `None` if no
/// record is kept. `exception` contains the exception of the program if producing the request body
/// failed.
pub(crate) fn response_of(
    py: Python<'_>,
    outcome: TransferOutcome,
    url: String,
    cookie: Option<Vec<u8>>,
    exception: &BodySourceException,
    method: Option<Cow<'static, str>>,
) -> PyResult<ReceivedResponse> {
    let TransferOutcome { result, target, head, facts, history, trailers, .. } = outcome;
    let phase = match facts.phase {
        TransferPhase::Wait => FailurePhase::Wait,
        TransferPhase::Receive => FailurePhase::Body,
        _ => FailurePhase::Connect,
    };
    let without_head = || Error::new(ErrorKind::EmptyReply, "the response has no head").with_url(target.to_url());
    let head = match (result, head) {
        (Ok(()), Some(head)) => head,
        (result, head) => {
            let error = result.err().unwrap_or_else(without_head);
            let raised =
                exception.take().or_else(|| interrupted(&error)).unwrap_or_else(|| to_exception(&error, phase));
            if let Some(method) = method.filter(|_| raised.is_instance_of::<EngineError>(py)) {
                let record_data = TransferRecordData { url, method, facts, history };
                raised.value(py).setattr("transfer", FailedTransfer { record_data, target, head, error })?;
            }
            return Err(raised);
        }
    };
    let timings = (&*facts).into();
    // If the engine followed redirects, the response comes from another URL.
    let last_url = if facts.redirects > 0 { target.to_url() } else { url.clone() };
    let record = method.map(|method| TransferRecordData { url, method, facts, history });
    let trailers = trailer_fields(trailers.iter().flat_map(|fields| fields.iter_bytes()));
    Ok(ReceivedResponse { head, target, url: last_url, body: None, cookie, facts: timings, trailers, record })
}
