//! The client: connections, names and TLS of a session, and the one call for each request.

use haul::facts::Progress;
use haul::request::{Particulars, Request, method};
use haul::transfer::Outcome;
use haul::{ErrorKind, Target};
use pyo3::prelude::*;

use crate::error::{Phase, failure, interrupted};
use crate::jar::Jar;
use crate::plan::{Field, Plan, fields_of, without};
use crate::reply::Reply;
use crate::sink::BytesSink;
use crate::stop::Stop;
use crate::stream::Stream;
use crate::text::latin1_or_utf8;
use crate::upload::{Raised, body_of};
use crate::url::{Last, Prepared, prepare, prepare_as_is};

/// State that the requests of a session share: connections, names, TLS.
#[pyclass(frozen, module = "haul._haul")]
pub(crate) struct Client {
    pub(crate) client: haul::Client,
    last: Last,
}

#[pymethods]
impl Client {
    #[new]
    fn new() -> Self {
        Self { client: haul::Client::new(), last: Last::default() }
    }

    /// Sends one request and waits for its complete response, decoded. Redirects are not followed.
    ///
    /// `fields` override those of the plan; one with the value `None` removes one. The jar supplies cookies and takes those that the response sets;
    /// `cookie` is sent in addition. `stop` ends the call. `as_is` sends the path and all of `fields` unchanged.
    #[pyo3(signature = (plan, method, url, query=None, fields=None, body=None, jar=None, cookie=None, stop=None, as_is=false))]
    #[expect(clippy::too_many_arguments, reason = "one crossing a request")]
    fn send(
        &self,
        py: Python<'_>,
        plan: &Plan,
        method: &str,
        url: &str,
        query: Option<&str>,
        fields: Option<&Bound<'_, PyAny>>,
        body: Option<&Bound<'_, PyAny>>,
        jar: Option<&Jar>,
        cookie: Option<&str>,
        stop: Option<&Stop>,
        as_is: bool,
    ) -> PyResult<Reply> {
        let url = self.last.prepare(url, query, as_is)?;
        let stoppable = stop.map(|stop| plan.stopped_by(stop));
        let plan = stoppable.as_ref().unwrap_or(plan);
        let Asked { request, url, raised, cookie } = Asked::new(plan, method, url, fields, body, jar, cookie)?;
        let (outcome, sink) = py.detach(|| self.client.perform(request, BytesSink::default()));
        let mut reply = reply_of(outcome, url, cookie, &raised)?;
        if let Some(jar) = jar {
            reply.cookies_into(jar);
        }
        reply.body = Some(sink.into_bytes(py));
        Ok(reply)
    }

    /// Sends one request and waits for the head of its response; its body is read from the returned stream. `stop` ends either. `as_is` sends the
    /// path and all of `fields` unchanged.
    #[pyo3(signature = (plan, method, url, fields=None, body=None, stop=None, as_is=false))]
    #[expect(clippy::too_many_arguments, reason = "one crossing a request")]
    fn open(
        &self,
        py: Python<'_>,
        plan: &Plan,
        method: &str,
        url: &str,
        fields: Option<&Bound<'_, PyAny>>,
        body: Option<&Bound<'_, PyAny>>,
        stop: Option<&Stop>,
        as_is: bool,
    ) -> PyResult<(Reply, Stream)> {
        let stop = stop.cloned().unwrap_or_default();
        let url = if as_is { prepare_as_is(url)? } else { prepare(url, None)? };
        let Asked { request, url, raised, cookie } =
            Asked::new(&plan.stopped_by(&stop), method, url, fields, body, None, None)?;
        let response = match py.detach(|| self.client.send(request)) {
            Ok(response) => response,
            Err(error) => {
                let phase = if error.is_connect() { Phase::Connect } else { Phase::Wait };
                return Err(raised.take().or_else(|| interrupted(&error)).unwrap_or_else(|| failure(&error, phase)));
            }
        };
        let reply = Reply {
            head: response.head().clone(),
            target: response.target().clone(),
            url,
            body: None,
            cookie,
            times: response.facts().into(),
        };
        Ok((reply, Stream::new(response, stop)))
    }

    /// Closes idle connections.
    fn close(&self, py: Python<'_>) {
        py.detach(|| self.client.close_idle());
    }
}

/// A request ready to go.
pub(crate) struct Asked {
    pub(crate) request: Request,
    /// The URL as shown to the program.
    pub(crate) url: String,
    pub(crate) raised: Raised,
    /// The Cookie field that is sent.
    pub(crate) cookie: Option<Vec<u8>>,
}

impl Asked {
    pub(crate) fn new(
        plan: &Plan,
        name: &str,
        Prepared { url, target, as_is }: Prepared,
        fields: Option<&Bound<'_, PyAny>>,
        body: Option<&Bound<'_, PyAny>>,
        jar: Option<&Jar>,
        cookie: Option<&str>,
    ) -> PyResult<Self> {
        let cookie = cookie_field(&target, jar, cookie);
        let mut own = Particulars::default();
        let mut options = std::sync::Arc::clone(&plan.options);
        let mut raised = Raised::default();
        if options.method != name {
            own.method = Some(method(name));
        }
        if let Some(fields) = fields {
            let fields = fields_of(fields)?;
            if fields.iter().any(|(_, value)| value.is_none()) {
                options = without(&options, &fields);
            }
            own.fields = if as_is { all_of(fields) } else { last_of_each(fields) };
        }
        if let Some(cookie) = &cookie
            && !own.fields.iter().any(|(name, _)| name.eq_ignore_ascii_case("cookie"))
        {
            own.fields.push(("Cookie".to_owned(), cookie.clone()));
        }
        if let Some(body) = body {
            let (body, errors) = body_of(body, announced(&own.fields).or_else(|| announced(&options.fields)))?;
            own.body = Some(body);
            raised = errors;
        }
        Ok(Self { request: Request::new(target, options, own), url, raised, cookie })
    }
}

/// The length that the program has given to the body.
fn announced(fields: &[(String, Vec<u8>)]) -> Option<u64> {
    let (_, value) = fields.iter().find(|(name, _)| name.eq_ignore_ascii_case("content-length"))?;
    std::str::from_utf8(value).ok()?.trim().parse().ok()
}

/// Fields with a value, with repeated names: the headers of a prepared request may hold one several times.
fn all_of(fields: Vec<Field>) -> Vec<(String, Vec<u8>)> {
    fields.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
}

/// Fields with a value, each name once: the later of two counts, as in requests' dict.
fn last_of_each(fields: Vec<Field>) -> Vec<(String, Vec<u8>)> {
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

fn cookie_field(target: &Target, jar: Option<&Jar>, given: Option<&str>) -> Option<Vec<u8>> {
    let kept = jar.and_then(|jar| jar.jar.cookie_for(target));
    let given = given.map(latin1_or_utf8);
    match (kept, given) {
        (Some(kept), Some(given)) => Some([&kept, &b"; "[..], &given].concat()),
        (kept, given) => kept.or(given),
    }
}

/// The reply of an outcome.
pub(crate) fn reply_of(outcome: Outcome, url: String, cookie: Option<Vec<u8>>, raised: &Raised) -> PyResult<Reply> {
    let Outcome { result, target, head, facts, .. } = outcome;
    let phase = match facts.progress {
        Progress::Connecting => Phase::Connect,
        Progress::Sent => Phase::Wait,
        Progress::Answered => Phase::Body,
    };
    if let Err(error) = &result {
        return Err(raised.take().or_else(|| interrupted(error)).unwrap_or_else(|| failure(error, phase)));
    }
    let Some(head) = head else {
        let error = haul::Error::new(ErrorKind::EmptyReply, "the response has no head").with_url(target.to_url());
        return Err(failure(&error, phase));
    };
    // If the engine followed redirects, another URL answered.
    let url = if facts.redirects > 0 { target.to_url() } else { url };
    Ok(Reply { head, target, url, body: None, cookie, times: (&*facts).into() })
}
