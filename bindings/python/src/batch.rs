//! Many requests at once, on the engine's own thread: the basis of `fetch_many` and `AsyncSession`.
//!
//! ```python
//! batch = Batch(client, max_parallel=100, per_host=100, ordered=False)
//! number = batch.submit(plan, "GET", "http://example.test/")
//! for number, reply, error in batch.next():
//!     ...
//! ```
//!
//! Bodies are collected outside the interpreter and copied when they are taken: the thread that moves all of them must never wait for the interpreter
//! lock. Results are handed over in bunches: entering the interpreter, and a wake-up for it, once for each small body would cost more than its
//! exchange.

use std::collections::HashMap;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use haul::batch::{BatchOptions, BatchOrder, FinishedRequest};
use pyo3::prelude::*;

use crate::client::{Asked, Client, reply_of};
use crate::error::{Phase, failure, interrupted};
use crate::jar::Jar;
use crate::plan::Plan;
use crate::reply::Reply;
use crate::sink::BytesSink;
use crate::stop::signals;
use crate::upload::Raised;
use crate::url::Last;

/// The state of a request that has not ended.
struct Pending {
    url: String,
    cookie: Option<Vec<u8>>,
    raised: Raised,
}

/// Requests in progress, which end when it is dropped.
#[pyclass(frozen, module = "haul._haul")]
pub(crate) struct Batch {
    batch: haul::batch::Batch,
    pending: Mutex<HashMap<u64, Pending>>,
    fd: Mutex<Option<OwnedFd>>,
    last: Last,
}

/// A number and its result.
type Over = (u64, Option<Reply>, Option<Py<PyAny>>);

impl Batch {
    fn pending(&self) -> MutexGuard<'_, HashMap<u64, Pending>> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn over(&self, py: Python<'_>, finished: Vec<FinishedRequest>) -> Vec<Over> {
        let mut pending = self.pending();
        let known: Vec<_> = finished
            .into_iter()
            .filter_map(|finished| pending.remove(&finished.id()).map(|pending| (pending, finished)))
            .collect();
        drop(pending);
        let over = |(Pending { url, cookie, raised }, finished): (Pending, FinishedRequest)| {
            let id = finished.id();
            let (outcome, sink) = finished.into_parts::<BytesSink>();
            match reply_of(outcome, url, cookie, &raised) {
                Ok(mut reply) => {
                    reply.body = Some(sink.unwrap_or_default().into_bytes(py));
                    (id, Some(reply), None)
                }
                Err(error) => (id, None, Some(error.into_value(py).into_any())),
            }
        };
        known.into_iter().map(over).collect()
    }
}

#[pymethods]
impl Batch {
    #[new]
    #[pyo3(signature = (client, *, max_parallel=64, per_host=6, ordered=true, memory=64 << 20))]
    fn new(client: &Client, max_parallel: usize, per_host: usize, ordered: bool, memory: u64) -> Self {
        let options = BatchOptions {
            max_parallel,
            per_host,
            order: if ordered { BatchOrder::Input } else { BatchOrder::Completion },
            memory,
            interrupt: Some(signals()),
            ..BatchOptions::default()
        };
        Self {
            batch: client.client.batch(options),
            pending: Mutex::default(),
            fd: Mutex::default(),
            last: Last::default(),
        }
    }

    /// Adds a request; its arguments are those of `Client.send`. Never waits. Returns its number, counted from 0.
    #[pyo3(signature = (plan, method, url, query=None, fields=None, body=None, jar=None, cookie=None))]
    #[expect(clippy::too_many_arguments, reason = "one crossing a request")]
    fn submit(
        &self,
        plan: &Plan,
        method: &str,
        url: &str,
        query: Option<&str>,
        fields: Option<&Bound<'_, PyAny>>,
        body: Option<&Bound<'_, PyAny>>,
        jar: Option<&Jar>,
        cookie: Option<&str>,
    ) -> PyResult<u64> {
        let url = self.last.prepare(url, query, false)?;
        let Asked { request, url, raised, cookie } = Asked::new(plan, method, url, fields, body, jar, cookie)?;
        // Held until it is recorded: it may end, and its result be taken, before this returns.
        let mut pending = self.pending();
        let id = self.batch.submit_into(request, Box::new(BytesSink::gathering()));
        pending.insert(id, Pending { url, cookie, raised });
        Ok(id)
    }

    /// Cancels a request and closes its connection. `False` if it had ended.
    fn cancel(&self, py: Python<'_>, id: u64) -> bool {
        py.detach(|| self.batch.cancel(id))
    }

    /// Finished requests, at most `most`, waiting at most `timeout` seconds for the first: the number of each, and its reply or an exception. Empty
    /// if none are in progress.
    #[pyo3(signature = (most=64, timeout=None))]
    fn next(&self, py: Python<'_>, most: usize, timeout: Option<f64>) -> PyResult<Vec<Over>> {
        let wait = timeout.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        let deadline = wait.and_then(|wait| Instant::now().checked_add(wait));
        // Results that are there already need not release the interpreter.
        let there = self.batch.try_bunch(most);
        if !there.is_empty() {
            return Ok(self.over(py, there));
        }
        match py.detach(|| self.batch.next_bunch(most, deadline)) {
            Ok(finished) => Ok(self.over(py, finished)),
            Err(error) => Err(interrupted(&error).unwrap_or_else(|| failure(&error, Phase::Wait))),
        }
    }

    /// Requests that have finished by now, at most `most`.
    #[pyo3(signature = (most=64))]
    fn try_next(&self, py: Python<'_>, most: usize) -> Vec<Over> {
        self.over(py, self.batch.try_bunch(most))
    }

    /// A descriptor that is readable when there are results to take.
    fn fileno(&self) -> PyResult<i32> {
        let mut fd = self.fd.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(fd) = &*fd {
            return Ok(fd.as_raw_fd());
        }
        Ok(fd.insert(self.batch.fd()?).as_raw_fd())
    }

    /// Returns the number of results that have not been taken yet.
    fn __len__(&self) -> usize {
        self.batch.outstanding()
    }
}
