//! Many requests at once, on the engine's own thread: what `fetch_many` and `AsyncSession` stand on.
//!
//! ```python
//! batch = Batch(client, max_parallel=100, per_host=100, ordered=False)
//! number = batch.submit(plan, "GET", "http://example.test/")
//! number, reply, error = batch.next()
//! ```
//!
//! Bodies are gathered outside the interpreter and copied when they are taken: the thread that moves all of them must never wait for
//! who happens to hold it.

use std::collections::HashMap;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use haul::batch::{BatchOptions, Finished, Order};
use pyo3::prelude::*;

use crate::client::{Asked, Client, reply_of, signals};
use crate::error::{Phase, failure, interrupted};
use crate::jar::Jar;
use crate::plan::Plan;
use crate::reply::Reply;
use crate::sink::BytesSink;
use crate::upload::Raised;
use crate::url::prepare;

/// What is kept of a request until it is over.
struct Pending {
    url: String,
    cookie: Option<Vec<u8>>,
    raised: Raised,
}

/// Requests under way. When it goes they end.
#[pyclass(frozen, module = "haul._haul")]
pub(crate) struct Batch {
    batch: haul::batch::Batch,
    pending: Mutex<HashMap<u64, Pending>>,
    fd: Mutex<Option<OwnedFd>>,
}

/// A number, and what came of it.
type Over = (u64, Option<Reply>, Option<Py<PyAny>>);

impl Batch {
    fn pending(&self) -> MutexGuard<'_, HashMap<u64, Pending>> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn over(&self, py: Python<'_>, finished: Finished) -> Option<Over> {
        let id = finished.id();
        let Pending { url, cookie, raised } = self.pending().remove(&id)?;
        let (outcome, sink) = finished.into_parts::<BytesSink>();
        Some(match reply_of(outcome, url, cookie, &raised) {
            Ok(mut reply) => {
                reply.body = Some(sink.unwrap_or_default().into_bytes(py));
                (id, Some(reply), None)
            }
            Err(error) => (id, None, Some(error.into_value(py).into_any())),
        })
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
            order: if ordered { Order::Input } else { Order::Completion },
            memory,
            interrupt: Some(signals()),
            ..BatchOptions::default()
        };
        Self { batch: client.client.batch(options), pending: Mutex::default(), fd: Mutex::default() }
    }

    /// Adds a request; its arguments are those of `Client.send`. Never waits. Answers its number; they count from 0.
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
        let Asked { request, url, raised, cookie } =
            Asked::new(plan, method, prepare(url, query)?, fields, body, jar, cookie)?;
        // Held until it is noted: it may be over, and be asked for, before this returns.
        let mut pending = self.pending();
        let id = self.batch.submit_into(request, Box::new(BytesSink::gathering()));
        pending.insert(id, Pending { url, cookie, raised });
        Ok(id)
    }

    /// Gives a request up, and closes its connection. `False` when it was over.
    fn cancel(&self, py: Python<'_>, id: u64) -> bool {
        py.detach(|| self.batch.cancel(id))
    }

    /// The next one that is over, waiting for it, for so many seconds at most: its number, and its reply or an exception. `None` when
    /// nothing is under way.
    #[pyo3(signature = (timeout=None))]
    fn next(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<Option<Over>> {
        let wait = timeout.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        let deadline = wait.and_then(|wait| Instant::now().checked_add(wait));
        match py.detach(|| self.batch.next_by(deadline)) {
            Ok(finished) => Ok(finished.and_then(|finished| self.over(py, finished))),
            Err(error) => Err(interrupted(&error).unwrap_or_else(|| failure(&error, Phase::Wait))),
        }
    }

    /// The next one that is over, if there is one now.
    fn try_next(&self, py: Python<'_>) -> Option<Over> {
        self.batch.try_next().and_then(|finished| self.over(py, finished))
    }

    /// A descriptor that can be read when there is something to take.
    fn fileno(&self) -> PyResult<i32> {
        let mut fd = self.fd.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(fd) = &*fd {
            return Ok(fd.as_raw_fd());
        }
        Ok(fd.insert(self.batch.fd()?).as_raw_fd())
    }

    /// How many were not taken yet.
    fn __len__(&self) -> usize {
        self.batch.outstanding()
    }
}
