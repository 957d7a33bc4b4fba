//! Many simultaneous requests on one thread of the engine: the basis of `fetch_many` and
//! `AsyncSession`.
//!
//! ```python
//! batch = Batch(client, max_parallel=100, per_host=100, ordered=False)
//! number = batch.submit(options, "GET", "http://example.test/")
//! for number, response, error in batch.next():
//!     ...
//! ```
//!
//! Bodies are received without the interpreter lock, and copied when Python takes the results: the
//! engine's thread, which receives them, must never wait for the lock. (If a thread of the program
//! receives a lone request, it allocates the `bytes` object of a large body.) Several results are
//! handed over at once, because acquiring the lock for each small body would cost more than its
//! exchange.

use std::borrow::Cow;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use haul::batch::{BatchOptions, BatchOrder, FinishedRequest};
use haul::fleet::{HostStartRate, StartRate};
use haul::request::{StallLimit, TotalRateLimit};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use rustc_hash::FxHashMap;
use rustix::fd::{AsRawFd, OwnedFd, RawFd};

use crate::async_exchange::{PendingAsyncRequest, Upload};
use crate::bytes_sink::{BytesSink, SpareBuffers};
use crate::client::{PreparedCall, PyClient, response_of};
use crate::cookie_jar::PyJar;
use crate::error::{FailurePhase, interrupted, to_exception};
use crate::normalized_url::{LastUrlCache, prepare, prepare_as_is};
use crate::options_shared_by_requests::SharedOptions;
use crate::received_response::ReceivedResponse;
use crate::request_body::BodySourceException;
use crate::signals_and_stop_flag::signals;

/// A submitted request whose result Python has not received yet.
pub(crate) struct PendingBatchRequest {
    url: String,
    cookie: Option<Vec<u8>>,
    exception: BodySourceException,
    /// The method of the request; `None` if no record of the request is kept.
    pub(crate) method: Option<Cow<'static, str>>,
}

/// A batch of requests in progress. Dropping the batch cancels them.
#[pyclass(frozen, name = "Batch", module = "haul._haul")]
pub(crate) struct PyBatch {
    pub(crate) batch: haul::batch::Batch,
    client: haul::Client,
    pending: Mutex<FxHashMap<u64, PendingBatchRequest>>,
    fd: Mutex<Option<OwnedFd>>,
    last_url: LastUrlCache,
    spare_buffers: Arc<SpareBuffers>,
}

/// The id of a request, and either its response (second value) or its exception (third value); the
/// value that does not apply is `None`.
type NumberedResult = (u64, Option<Py<ReceivedResponse>>, Option<Py<PyAny>>);

impl PyBatch {
    fn pending(&self) -> MutexGuard<'_, FxHashMap<u64, PendingBatchRequest>> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Removes and returns the data that belong to a submitted request, such as its URL and method.
    /// Returns `None` if there are none, because Python has received the result already.
    #[cfg(feature = "arrow")]
    pub(crate) fn take_pending(&self, id: u64) -> Option<PendingBatchRequest> {
        self.pending().remove(&id)
    }

    fn results(&self, py: Python<'_>, finished: Vec<FinishedRequest>) -> Vec<NumberedResult> {
        let mut pending = self.pending();
        let kept: Vec<_> = finished.iter().map(|finished| pending.remove(&finished.id())).collect();
        drop(pending);
        let both = finished.into_iter().zip(kept);
        both.filter_map(|(finished, kept)| Some(result_of(py, finished, kept?))).collect()
    }
}

/// Converts a finished request to its result for Python. Moves the response into a Python object
/// here, because the Rust struct has many bytes: the caller then collects pointers only.
fn result_of(py: Python<'_>, finished: FinishedRequest, kept: PendingBatchRequest) -> NumberedResult {
    let PendingBatchRequest { url, cookie, exception, method } = kept;
    let id = finished.id();
    let (outcome, sink) = finished.into_parts::<BytesSink>();
    let response = response_of(py, outcome, url, cookie, &exception, method).and_then(|mut response| {
        response.body = Some(sink.unwrap_or_default().into_body(py));
        Py::new(py, response)
    });
    match response {
        Ok(response) => (id, Some(response), None),
        Err(error) => (id, None, Some(error.into_value(py).into_any())),
    }
}

/// Returns the interval between requests for a rate of `per_second`; `None` without a rate. `name`
/// is the argument's name for the error message.
fn interval(per_second: Option<f64>, name: &str) -> PyResult<Option<Duration>> {
    let of = |rate: f64| {
        positive(
            Some(rate).filter(|rate| *rate > 0.0).and_then(|rate| Duration::try_from_secs_f64(1.0 / rate).ok()),
            name,
        )
    };
    per_second.map(of).transpose()
}

fn positive(time: Option<Duration>, name: &str) -> PyResult<Duration> {
    time.filter(|time| !time.is_zero())
        .ok_or_else(|| PyValueError::new_err(format!("{name} has to be a positive number")))
}

/// Returns a copy of the method `method` that does not borrow it. The copy of GET is a constant, so
/// that no memory is allocated for it.
fn owned_method(method: &str) -> Cow<'static, str> {
    if method == "GET" { Cow::Borrowed("GET") } else { Cow::Owned(method.to_owned()) }
}

#[pymethods]
impl PyBatch {
    #[new]
    #[pyo3(signature = (client, *, max_parallel=64, per_host=None, ordered=true, memory=64 << 20, rate=None,
        rate_host=None, limit_rate_total=None, stall_time=None, direct=false))]
    #[expect(clippy::too_many_arguments, reason = "keyword arguments")]
    fn new(
        client: &PyClient,
        max_parallel: usize,
        per_host: Option<usize>,
        ordered: bool,
        memory: u64,
        rate: Option<f64>,
        rate_host: Option<f64>,
        limit_rate_total: Option<u64>,
        stall_time: Option<f64>,
        direct: bool,
    ) -> PyResult<Self> {
        let stall = stall_time.map(|seconds| positive(Duration::try_from_secs_f64(seconds).ok(), "stall_time"));
        let stall = stall.transpose()?.map(|time| StallLimit { time, awaits_head: true });
        let options = BatchOptions {
            start_rate: interval(rate, "rate")?.map(StartRate::new),
            host_start_rate: interval(rate_host, "rate_host")?.map(HostStartRate::new),
            limit_rate_total: limit_rate_total.map(TotalRateLimit::new),
            stall,
            max_parallel,
            per_host,
            order: if ordered { BatchOrder::Input } else { BatchOrder::Completion },
            memory,
            direct,
            interrupt: Some(signals()),
            ..BatchOptions::default()
        };
        Ok(Self {
            batch: client.client.batch(options),
            client: client.client.clone(),
            pending: Mutex::default(),
            fd: Mutex::default(),
            last_url: LastUrlCache::default(),
            spare_buffers: Arc::default(),
        })
    }

    /// Adds a request and returns its id. Ids begin at 0. The arguments are those of `Client.send`.
    /// Never waits.
    #[pyo3(signature = (options, method, url, query=None, fields=None, body=None, jar=None, cookie=None, as_is=false))]
    #[expect(clippy::too_many_arguments, reason = "one crossing a request")]
    fn submit(
        &self,
        options: &SharedOptions,
        method: &str,
        url: &str,
        query: Option<&str>,
        fields: Option<&Bound<'_, PyAny>>,
        body: Option<&Bound<'_, PyAny>>,
        jar: Option<&PyJar>,
        cookie: Option<&str>,
        as_is: bool,
    ) -> PyResult<u64> {
        let url = self.last_url.prepare(url, query, as_is)?;
        let PreparedCall { request, url, exception, cookie } =
            PreparedCall::new(options, method, url, fields, body, jar, cookie)?;
        // The lock is held until the request is recorded: another thread may take its result before
        // this function returns.
        let mut pending = self.pending();
        let id = self.batch.submit_into(request, Box::new(BytesSink::outside_interpreter(&self.spare_buffers)));
        let method = options.engine_options.keep_history.then(|| owned_method(method));
        pending.insert(id, PendingBatchRequest { url, cookie, exception, method });
        Ok(id)
    }

    /// Creates a request whose response body is polled. The request is sent at the first poll, and
    /// does not count for the limits of the batch. When another poll may succeed, `woken_tasks`
    /// returns the id `task`. `as_is` sends the path and all of `fields` unchanged.
    #[pyo3(signature = (task, options, method, url, fields=None, body=None, as_is=false))]
    #[expect(clippy::too_many_arguments, reason = "one crossing a request")]
    fn open(
        &self,
        task: u64,
        options: &SharedOptions,
        method: &str,
        url: &str,
        fields: Option<&Bound<'_, PyAny>>,
        body: Option<&Bound<'_, PyAny>>,
        as_is: bool,
    ) -> PyResult<PendingAsyncRequest> {
        let url = if as_is { prepare_as_is(url)? } else { prepare(url, None)? };
        let call = PreparedCall::new(options, method, url, fields, body, None, None)?;
        Ok(PendingAsyncRequest::new(&self.client, call, self.batch.task_waker(task)))
    }

    /// Creates a request body for `open`. When the sender needs the next piece, or needs no further
    /// piece, `woken_tasks` returns the id `task`.
    fn upload(&self, task: u64) -> Upload {
        Upload::new(self.batch.task_waker(task))
    }

    /// Returns the ids of the program's tasks (asyncio) that the engine has woken since the last
    /// call. These are the ids that were passed to `open`, `upload` and `StreamedBody.attach`.
    /// Never waits.
    fn woken_tasks(&self) -> Vec<u64> {
        self.batch.woken_tasks()
    }

    /// Cancels a request and closes its connection. Returns `False` if the request has already
    /// ended.
    fn cancel(&self, py: Python<'_>, id: u64) -> bool {
        py.detach(|| self.batch.cancel(id))
    }

    /// Returns at most `most` results. If none has arrived, waits for the first one, at most
    /// `timeout` seconds. Each result has the id of the request, and its response or its exception.
    /// Returns an empty list if no result arrives in time, or if no requests are in progress.
    #[pyo3(signature = (most=64, timeout=None))]
    fn next(&self, py: Python<'_>, most: usize, timeout: Option<f64>) -> PyResult<Vec<NumberedResult>> {
        let wait = timeout.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        let deadline = wait.and_then(|wait| Instant::now().checked_add(wait));
        // Taking results that have arrived does not wait, so it need not release the interpreter.
        let arrived = self.batch.try_bunch(most);
        if !arrived.is_empty() {
            return Ok(self.results(py, arrived));
        }
        match py.detach(|| self.batch.next_bunch(most, deadline)) {
            Ok(finished) => Ok(self.results(py, finished)),
            Err(error) => Err(interrupted(&error).unwrap_or_else(|| to_exception(&error, FailurePhase::Wait))),
        }
    }

    /// Returns at most `most` finished results. Never waits.
    #[pyo3(signature = (most=64))]
    fn try_next(&self, py: Python<'_>, most: usize) -> Vec<NumberedResult> {
        self.results(py, self.batch.try_bunch(most))
    }

    /// Returns a file descriptor for an event loop. It is readable while `try_next` or
    /// `woken_tasks` has something to return. With `direct`, it may also be readable when
    /// `try_next` has no result yet.
    fn fileno(&self) -> PyResult<RawFd> {
        let mut fd = self.fd.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(fd) = &*fd {
            return Ok(fd.as_raw_fd());
        }
        Ok(fd.insert(self.batch.fd()?).as_raw_fd())
    }

    /// Returns the number of requests whose results the program has not received.
    fn __len__(&self) -> usize {
        self.batch.outstanding()
    }
}
