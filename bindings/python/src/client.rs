//! The client: connections, names and TLS of a session, and the one call that a request is.

use std::sync::Arc;

use haul::transfer::Outcome;
use haul::{ErrorKind, RequestOptions};
use pyo3::prelude::*;

use crate::error::{Phase, failure};
use crate::jar::Jar;
use crate::plan::{Plan, fields_of, merge};
use crate::reply::Reply;
use crate::sink::{Body, BytesSink};
use crate::upload::{Raised, body_of};
use crate::url::{Prepared, prepare};

/// What the requests of a session share: connections, names, TLS.
#[pyclass(frozen, module = "haul._haul")]
pub(crate) struct Client {
    client: haul::Client,
}

#[pymethods]
impl Client {
    #[new]
    fn new() -> Self {
        Self { client: haul::Client::new() }
    }

    /// Sends one request and waits for the whole of its response, which is decoded. Redirects are not followed.
    ///
    /// `fields` go over those of the plan; one with the value `None` takes one away. The jar gives cookies and takes those that the
    /// response sets; `cookie` is sent besides.
    #[pyo3(signature = (plan, method, url, query=None, fields=None, body=None, jar=None, cookie=None))]
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
    ) -> PyResult<Reply> {
        let asked = Asked::new(plan, method, url, query, fields, body, jar, cookie)?;
        let into = Body::default();
        let sink = Box::new(BytesSink::new(into.clone()));
        let Asked { prepared: Prepared { url, target }, options, raised, cookie } = asked;
        let outcome = py.detach(|| self.client.fetch(target, options, sink));
        let mut reply = reply_of(py, outcome, url, cookie, &raised)?;
        if let Some(jar) = jar {
            reply.cookies_into(jar);
        }
        reply.body = Some(into.into_bytes(py));
        Ok(reply)
    }

    /// Closes the connections that nobody uses.
    fn close(&self, py: Python<'_>) {
        py.detach(|| self.client.close_idle());
    }
}

/// A request ready to go.
struct Asked {
    prepared: Prepared,
    options: Arc<RequestOptions>,
    raised: Raised,
    cookie: Option<Vec<u8>>,
}

impl Asked {
    #[expect(clippy::too_many_arguments, reason = "one crossing a request")]
    fn new(
        plan: &Plan,
        method: &str,
        url: &str,
        query: Option<&str>,
        fields: Option<&Bound<'_, PyAny>>,
        body: Option<&Bound<'_, PyAny>>,
        jar: Option<&Jar>,
        cookie: Option<&str>,
    ) -> PyResult<Self> {
        let prepared = prepare(url, query)?;
        let kept = jar.and_then(|jar| jar.jar.cookie_for(&prepared.target));
        let given = cookie.map(crate::text::latin1_or_utf8);
        let cookie = match (kept, given) {
            (Some(kept), Some(given)) => Some([&kept, &b"; "[..], &given].concat()),
            (kept, given) => kept.or(given),
        };
        let mut raised = Raised::default();
        let is_plain = fields.is_none() && body.is_none() && cookie.is_none() && plan.options.method == method;
        let options = if is_plain {
            Arc::clone(&plan.options)
        } else {
            let mut options = RequestOptions::clone(&plan.options);
            if let Some(fields) = fields {
                merge(&mut options.fields, fields_of(fields)?);
            }
            if let Some(body) = body {
                let (body, errors) = body_of(body)?;
                options.body = Some(body);
                raised = errors;
            }
            method.clone_into(&mut options.method);
            options.cookie.clone_from(&cookie);
            Arc::new(options)
        };
        Ok(Self { prepared, options, raised, cookie })
    }
}

fn reply_of(
    py: Python<'_>,
    outcome: Outcome,
    url: String,
    cookie: Option<Vec<u8>>,
    raised: &Raised,
) -> PyResult<Reply> {
    let Outcome { result, target, head, facts, .. } = outcome;
    let phase = match (facts.requests, facts.status) {
        (0, _) => Phase::Connect,
        (_, 0) => Phase::Wait,
        _ => Phase::Body,
    };
    if let Err(error) = &result {
        if let Some(own) = raised.take() {
            return Err(own);
        }
        py.check_signals()?;
        return Err(failure(error, phase));
    }
    let Some(head) = head else {
        let error = haul::Error::new(ErrorKind::EmptyReply, "the response has no head").with_url(target.to_url());
        return Err(failure(&error, phase));
    };
    Ok(Reply { head, target, url, body: None, cookie, times: (&facts).into() })
}
