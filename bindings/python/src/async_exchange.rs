//! Streams for an event loop: a request whose response body is read piece by piece, and a request
//! body that the program's coroutines produce. Neither needs a thread of its own.
//!
//! ```python
//! upload = batch.upload(1)                       # woken_tasks() returns 1 when a piece is needed
//! exchange = batch.open(2, options, "POST", url, None, upload)
//! while (opened := exchange.poll()) is None:     # woken_tasks() returns 2 when poll may succeed
//!     ...                                        # wait for the descriptor of the batch
//! response, body = opened
//! piece = body.poll_piece()
//! ```
//!
//! The engine's thread for asynchronous requests sends and receives. It wakes the event loop by the
//! descriptor of the loop's batch, which also signals complete requests.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use futures_core::Stream;
use haul::body::upload::RequestBody;
use haul::response::ResponseFuture;
use pyo3::exceptions::{PyRuntimeError, PyTypeError};
use pyo3::prelude::*;

use crate::client::PreparedCall;
use crate::error::send_failure;
use crate::python_str_and_http_bytes::TextOrBytes;
use crate::received_response::ReceivedResponse;
use crate::request_body::{BodySourceException, LONGER_BODY};
use crate::streamed_body::StreamedBody;

/// A request whose response has not begun. Dropping it cancels the request.
#[pyclass(frozen, module = "haul._haul")]
pub(crate) struct PendingAsyncRequest(Mutex<Option<OpeningExchange>>);

/// A request in progress, and the data that are needed to create its response.
struct OpeningExchange {
    response: Pin<Box<ResponseFuture>>,
    waker: Waker,
    url: String,
    cookie: Option<Vec<u8>>,
    exception: BodySourceException,
}

impl PendingAsyncRequest {
    /// Makes an exchange that is sent when it is first polled.
    pub(crate) fn new(client: &haul::Client, call: PreparedCall, waker: Waker) -> Self {
        let PreparedCall { request, url, exception, cookie } = call;
        let response = Box::pin(client.send_async(request));
        Self(Mutex::new(Some(OpeningExchange { response, waker, url, cookie, exception })))
    }

    fn lock(&self) -> MutexGuard<'_, Option<OpeningExchange>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl PendingAsyncRequest {
    /// Returns the head of the response and its body; `None` if the head has not arrived. Never
    /// waits. After this method has returned the head or an error, a further call fails.
    fn poll(&self, py: Python<'_>) -> PyResult<Option<(ReceivedResponse, StreamedBody)>> {
        let Some(mut opening) = self.lock().take() else {
            return Err(PyRuntimeError::new_err("the exchange has ended"));
        };
        let polled = py.detach(|| {
            let waker = opening.waker.clone();
            opening.response.as_mut().poll(&mut Context::from_waker(&waker))
        });
        let response = match polled {
            Poll::Pending => {
                *self.lock() = Some(opening);
                return Ok(None);
            }
            Poll::Ready(Ok(response)) => response,
            Poll::Ready(Err(error)) => return Err(send_failure(&error, opening.exception.take())),
        };
        let OpeningExchange { waker, url, cookie, exception, .. } = opening;
        let received = ReceivedResponse::begun(response.head(), response.target(), response.facts(), url, cookie);
        Ok(Some((received, StreamedBody::polled(response, waker, exception))))
    }

    /// Cancels the request if its response has not begun.
    fn close(&self, py: Python<'_>) {
        let opening = self.lock().take();
        py.detach(|| drop(opening));
    }
}

/// The body of a request, which the program supplies piece by piece.
///
/// The sender requests one piece at a time, so the program produces no more than the server
/// receives.
#[pyclass(frozen, module = "haul._haul")]
pub(crate) struct Upload {
    state: Arc<Mutex<UploadState>>,
    exception: BodySourceException,
}

/// The state of an [`Upload`] that the program's task and the sender share.
struct UploadState {
    piece: Option<Vec<u8>>,
    end: Option<io::Result<()>>,
    /// The waker of the sender while it waits for a piece; `None` if it does not wait.
    sender: Option<Waker>,
    /// The waker of the program's task that produces the pieces.
    producer: Waker,
    /// True if the sender waits for a piece.
    is_wanted: bool,
    /// True if no more pieces are needed, because the request is over.
    is_over: bool,
}

fn lock(state: &Mutex<UploadState>) -> MutexGuard<'_, UploadState> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Upload {
    pub(crate) fn new(producer: Waker) -> Self {
        let (piece, end, sender) = (None, None, None);
        let state = UploadState { piece, end, sender, producer, is_wanted: false, is_over: false };
        Self { state: Arc::new(Mutex::new(state)), exception: BodySourceException::default() }
    }

    /// Returns the request body for the engine, and the object that stores the program's exception
    /// if producing the body fails. `announced` is the value of the request's `Content-Length`;
    /// `None` if the program has not set one.
    pub(crate) fn body(&self, announced: Option<u64>) -> (RequestBody, BodySourceException) {
        let pieces = UploadPieces { state: Arc::clone(&self.state), announced, left: announced, last: None };
        (RequestBody::stream(pieces), self.exception.clone())
    }

    /// Changes the state by `change`, notes that the sender no longer waits for a piece, and wakes
    /// the sender.
    fn supply(&self, change: impl FnOnce(&mut UploadState)) {
        let mut state = lock(&self.state);
        state.is_wanted = false;
        change(&mut state);
        let sender = state.sender.take();
        drop(state);
        if let Some(sender) = sender {
            sender.wake();
        }
    }
}

#[pymethods]
impl Upload {
    /// Returns whether the sender waits for a piece.
    #[getter]
    fn is_wanted(&self) -> bool {
        lock(&self.state).is_wanted
    }

    /// Returns whether the request is over, so that no more pieces are needed.
    #[getter]
    fn is_over(&self) -> bool {
        lock(&self.state).is_over
    }

    /// Supplies the next piece of the body, `bytes` or text.
    fn push(&self, piece: &Bound<'_, PyAny>) -> PyResult<()> {
        let octets = TextOrBytes::from_python(piece).ok_or_else(|| {
            PyTypeError::new_err(format!("a piece of a body has to be bytes or text, not {}", piece.get_type()))
        })?;
        let bytes = octets.into_bytes();
        if bytes.is_empty() {
            return Ok(());
        }
        self.supply(|state| state.piece = Some(bytes));
        Ok(())
    }

    /// Ends the body. Called after the last piece.
    fn finish(&self) {
        self.supply(|state| state.end = Some(Ok(())));
    }

    /// Ends the request with the exception that the program raised while it produced the body.
    fn fail(&self, exception: Bound<'_, PyAny>) {
        let error = self.exception.store(PyErr::from_value(exception));
        self.supply(|state| state.end = Some(Err(error)));
    }
}

/// Supplies the engine with the pieces of content (`bytes` objects) that the program puts into an
/// [`Upload`].
struct UploadPieces {
    state: Arc<Mutex<UploadState>>,
    announced: Option<u64>,
    /// The number of announced bytes that were not passed to the sender yet; `None` without a
    /// Content-Length.
    left: Option<u64>,
    /// The piece with the last announced byte, held back until the program has ended the body.
    /// `None` if that byte has not come. If the program supplies more bytes than announced, the
    /// request fails before this piece is sent. The server then sees that the body is incomplete.
    last: Option<Vec<u8>>,
}

impl UploadPieces {
    /// Returns the next piece that the program has supplied, and `None` after the end of the body.
    /// If there is no piece yet, asks the program for one.
    fn poll_piece(&mut self, context: &Context<'_>) -> Poll<Option<io::Result<Vec<u8>>>> {
        let mut state = lock(&self.state);
        if let Some(piece) = state.piece.take() {
            return Poll::Ready(Some(Ok(piece)));
        }
        match state.end.take() {
            Some(Ok(())) => {
                state.end = Some(Ok(()));
                Poll::Ready(None)
            }
            Some(Err(error)) => Poll::Ready(Some(Err(error))),
            None => {
                state.sender = Some(context.waker().clone());
                let is_new = !std::mem::replace(&mut state.is_wanted, true);
                let producer = state.producer.clone();
                drop(state);
                if is_new {
                    producer.wake();
                }
                Poll::Pending
            }
        }
    }
}

impl Stream for UploadPieces {
    type Item = io::Result<Vec<u8>>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            let piece = match self.poll_piece(context) {
                Poll::Ready(Some(Ok(piece))) => piece,
                Poll::Ready(None) => return Poll::Ready(self.last.take().map(Ok)),
                other => return other,
            };
            let Some(left) = &mut self.left else { return Poll::Ready(Some(Ok(piece))) };
            match left.checked_sub(piece.len() as u64) {
                Some(0) if *left > 0 => {
                    *left = 0;
                    self.last = Some(piece);
                }
                Some(rest) => {
                    *left = rest;
                    return Poll::Ready(Some(Ok(piece)));
                }
                None => {
                    let length = self.announced.unwrap_or_default();
                    return Poll::Ready(Some(Err(io::Error::other(format!("{LONGER_BODY} {length} bytes")))));
                }
            }
        }
    }
}

impl Drop for UploadPieces {
    fn drop(&mut self) {
        let mut state = lock(&self.state);
        state.is_over = true;
        let producer = state.producer.clone();
        drop(state);
        producer.wake();
    }
}
