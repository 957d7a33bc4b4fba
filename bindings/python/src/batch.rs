//! Many requests at once, on the engine's own thread: what `fetch_many` and `AsyncSession` stand on.
//!
//! ```python
//! batch = Batch(client, max_parallel=100, per_host=100, ordered=False)
//! number = batch.submit(plan, "GET", "http://example.test/")
//! for number, reply, error in batch.next():
//!     ...
//! ```
//!
//! Bodies are gathered outside the interpreter and copied when they are taken: the thread that moves all of them must never wait for
//! who happens to hold it. What has come is handed over in bunches: to enter the interpreter, and to be woken for it, once for each
//! small body would cost more than its exchange.

use std::collections::HashMap;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use haul::batch::{BatchOptions, Finished, Order};
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
    last: Last,
}

/// A number, and what came of it.
type Over = (u64, Option<Reply>, Option<Py<PyAny>>);

impl Batch {
    fn pending(&self) -> MutexGuard<'_, HashMap<u64, Pending>> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn over(&self, py: Python<'_>, finished: Vec<Finished>) -> Vec<Over> {
        let mut pending = self.pending();
        let known: Vec<_> = finished
            .into_iter()
            .filter_map(|finished| pending.remove(&finished.id()).map(|pending| (pending, finished)))
            .collect();
        drop(pending);
        let over = |(Pending { url, cookie, raised }, finished): (Pending, Finished)| {
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
            order: if ordered { Order::Input } else { Order::Completion },
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
        let url = self.last.prepare(url, query, false)?;
        let Asked { request, url, raised, cookie } = Asked::new(plan, method, url, fields, body, jar, cookie)?;
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

    /// Those that are over, `most` at most, waiting for the first one, for so many seconds at most: their numbers, and of each its reply
    /// or an exception. None when nothing is under way.
    #[pyo3(signature = (most=64, timeout=None))]
    fn next(&self, py: Python<'_>, most: usize, timeout: Option<f64>) -> PyResult<Vec<Over>> {
        let wait = timeout.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        let deadline = wait.and_then(|wait| Instant::now().checked_add(wait));
        // To leave the interpreter for what is there already would be in vain.
        let there = self.batch.try_bunch(most);
        if !there.is_empty() {
            return Ok(self.over(py, there));
        }
        match py.detach(|| self.batch.next_bunch(most, deadline)) {
            Ok(finished) => Ok(self.over(py, finished)),
            Err(error) => Err(interrupted(&error).unwrap_or_else(|| failure(&error, Phase::Wait))),
        }
    }

    /// Those that are over now, `most` at most.
    #[pyo3(signature = (most=64))]
    fn try_next(&self, py: Python<'_>, most: usize) -> Vec<Over> {
        self.over(py, self.batch.try_bunch(most))
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
