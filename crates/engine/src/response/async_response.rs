//! Responses for programs that must not block: futures and streams for any async runtime.
//!
//! A thread of the client sends the request and receives the response, and wakes the program's task
//! when bytes have arrived. If the program does not read the body, the client buffers at most 256
//! KiB of it and then stops receiving.
//!
//! ```
//! # let origin = testkit::origin::Origin::builder().start().unwrap();
//! # let url = origin.url("/bytes/1000000");
//! # let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
//! # runtime.block_on(async {
//! let client = haul::Client::new();
//! let mut response = client.get(&url).send_async().await?;
//! let mut length = 0;
//! while let Some(piece) = response.chunk().await? {
//!     length += piece.len();
//! }
//! assert_eq!(length, 1_000_000);
//! # Ok::<(), haul::Error>(())
//! # }).unwrap();
//! ```

use std::future::{Future, poll_fn};
use std::ops::Deref;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use futures_core::Stream;

use super::ResponseInfo;
use super::body_handover_buffer::{self, BodyBufferReader, NextChunk};
use super::charset::{self, charset};
use super::content_decoder::ContentDecoder;
#[cfg(doc)]
use crate::ErrorKind;
use crate::batch::executor::RequestExecutor;
use crate::body::upload::{RequestBody, StreamFeeder};
use crate::body::{BodyDecoder, DecodeLimits};
use crate::request::Request;
use crate::{Client, Error, Result, fork};

/// The future of [`Client::send_async`](crate::Client::send_async), which resolves to a response.
/// The request is sent when the future is first polled. Dropping the future before the response
/// has arrived cancels the request.
#[must_use = "nothing is sent before it is awaited"]
pub struct ResponseFuture {
    client: Client,
    state: ResponseFuturePhase,
}

/// The state of a [`ResponseFuture`].
enum ResponseFuturePhase {
    /// The request has not been submitted to the client's thread yet. The value is the request, or
    /// the error that occurred when it was built.
    New(Result<Request>),
    /// The request was submitted to the client's thread, but the head of its response has not
    /// arrived yet. The limits apply to the decoding of the body.
    Waiting(OpenExchange, DecodeLimits),
    /// The future has returned the response, or an error, to the program.
    Over,
}

/// A request that a thread of the client sends, and its response. Dropping this value cancels the
/// request.
struct OpenExchange {
    executor: Arc<RequestExecutor>,
    id: u64,
    outlet: BodyBufferReader,
    is_over: bool,
    /// The feeders of the request's content. Each feeder polls one stream, which is a piece of this
    /// content.
    feeders: Vec<StreamFeeder>,
    /// The value of [`fork::fork_count`] in the process that sent the request.
    generation: u32,
}

impl OpenExchange {
    /// Returns true if this process was forked after the request was sent. The thread that receives
    /// the response is then only in the parent process.
    fn is_inherited(&self) -> bool {
        self.generation != fork::fork_count()
    }

    /// Polls the streams that are pieces of the request's content. The client's thread then sends
    /// the bytes that the streams have produced.
    fn poll_content_streams(&mut self, context: &mut Context<'_>) {
        self.feeders.retain_mut(|feeder| !feeder.poll_stream(context));
    }
}

impl Drop for OpenExchange {
    fn drop(&mut self) {
        if self.is_inherited() {
            // Threads of the parent may have held the locks of the executor and of the feeders'
            // queues, which then stay locked for ever.
            std::mem::forget(Arc::clone(&self.executor));
            std::mem::forget(std::mem::take(&mut self.feeders));
            return;
        }
        if !self.is_over {
            self.outlet.abandon();
            self.executor.cancel(self.id);
        }
    }
}

impl ResponseFuture {
    pub(crate) fn new(client: &Client, request: Result<Request>) -> Self {
        Self { client: client.clone(), state: ResponseFuturePhase::New(request) }
    }
}

impl Future for ResponseFuture {
    type Output = Result<AsyncResponse>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        loop {
            match std::mem::replace(&mut self.state, ResponseFuturePhase::Over) {
                ResponseFuturePhase::New(request) => {
                    let mut request = request?;
                    let limits = request.options.decode_limits;
                    let (intake, outlet) = body_handover_buffer::pair();
                    let on_end = outlet.end_callback();
                    let fed = request.own.content(&request.options).and_then(RequestBody::with_feeders);
                    let feeders = fed.map_or_else(Vec::new, |(body, feeders)| {
                        request.own.body = Some(body);
                        feeders
                    });
                    let generation = fork::fork_count();
                    let executor = Arc::clone(self.client.executor());
                    let id = executor.submit(&self.client, request, |_| {
                        (Box::new(intake), Box::new(move |outcome, _| on_end(outcome)))
                    });
                    self.state = ResponseFuturePhase::Waiting(
                        OpenExchange { executor, id, outlet, is_over: false, feeders, generation },
                        limits,
                    );
                }
                ResponseFuturePhase::Waiting(mut under_way, limits) => {
                    if under_way.is_inherited() {
                        return Poll::Ready(Err(super::inherited_response_error()));
                    }
                    under_way.poll_content_streams(context);
                    let Some(begun) = under_way.outlet.poll_begun(context.waker()) else {
                        self.state = ResponseFuturePhase::Waiting(under_way, limits);
                        return Poll::Pending;
                    };
                    return Poll::Ready(match begun {
                        Ok(about) => {
                            let decoder = BodyDecoder::new(&under_way.outlet.commit_response(), limits)
                                .map_err(|error| error.with_url(about.url()))?;
                            let unpacker = ContentDecoder::new(decoder);
                            Ok(AsyncResponse { about: *about, under_way, unpacker, broken: None })
                        }
                        Err(end) => {
                            under_way.is_over = true;
                            Err(end.result.err().unwrap_or_else(super::missing_head_error))
                        }
                    });
                }
                ResponseFuturePhase::Over => panic!("a future that is done was polled again"),
            }
        }
    }
}

/// A response whose head has arrived. The body is received while the program awaits it. The
/// response is also a [`Stream`] of the pieces of the body.
///
/// Reading the body to its end frees the connection for the next request. Dropping the response
/// earlier closes the connection, or the HTTP/2 stream.
pub struct AsyncResponse {
    about: ResponseInfo,
    under_way: OpenExchange,
    unpacker: ContentDecoder,
    /// The error that ended the body; `None` if there was none. Every further read of the body
    /// reports this error again.
    broken: Option<Error>,
}

impl AsyncResponse {
    /// Returns this response if its status is below 400, and an error otherwise.
    ///
    /// # Errors
    /// [`ErrorKind::Status`] if the status is 400 or above.
    pub fn error_for_status(self) -> Result<Self> {
        self.about.check_status().map(|()| self)
    }

    /// Polls until there are bytes of the body that the program can consume; [`ready`](Self::ready)
    /// then returns them. Returns false at the end of the body.
    ///
    /// # Errors
    /// The error of the exchange or of the decoding. Every further call returns the same error. The
    /// [`Stream`] ends after it.
    pub fn poll_fill(&mut self, context: &mut Context<'_>) -> Poll<Result<bool>> {
        if let Some(error) = &self.broken {
            return Poll::Ready(Err(error.duplicate()));
        }
        self.poll_fill_once(context).map_err(|error| {
            let error = error.with_url(self.url());
            self.broken = Some(error.duplicate());
            error
        })
    }

    /// Polls for bytes of the body. Returns false at the end of the body. Unlike
    /// [`poll_fill`](Self::poll_fill), does not store an error for further calls.
    fn poll_fill_once(&mut self, context: &mut Context<'_>) -> Poll<Result<bool>> {
        if !self.under_way.is_over && self.under_way.is_inherited() {
            return Poll::Ready(Err(super::inherited_response_error()));
        }
        self.under_way.poll_content_streams(context);
        loop {
            if !self.unpacker.ready().is_empty() || self.unpacker.decode_more()? {
                return Poll::Ready(Ok(true));
            }
            if self.under_way.is_over {
                return Poll::Ready(Ok(false));
            }
            match self.under_way.outlet.poll_next(context.waker()) {
                NextChunk::Piece(piece) => self.unpacker.set_piece(piece),
                NextChunk::End(outcome) => {
                    self.under_way.is_over = true;
                    self.under_way.feeders.clear();
                    self.about.set_outcome(*outcome)?;
                    self.unpacker.finish()?;
                }
                NextChunk::Later => return Poll::Pending,
            }
        }
    }

    /// Returns the buffered bytes of the body that the program has not consumed yet.
    #[must_use]
    pub fn ready(&self) -> &[u8] {
        self.unpacker.ready()
    }

    /// Marks `amount` of the [`ready`](Self::ready) bytes as consumed.
    pub fn consume(&mut self, amount: usize) {
        self.unpacker.consume(amount);
    }

    /// Polls for bytes of the body, and copies the available ones to `buffer`. Returns their
    /// number; 0 means the end of the body.
    ///
    /// # Errors
    /// The errors of [`poll_fill`](Self::poll_fill).
    pub fn poll_read(&mut self, context: &mut Context<'_>, buffer: &mut [u8]) -> Poll<Result<usize>> {
        ready!(self.poll_fill(context))?;
        let ready = self.unpacker.ready();
        let n = ready.len().min(buffer.len());
        buffer[..n].copy_from_slice(&ready[..n]);
        self.consume(n);
        Poll::Ready(Ok(n))
    }

    /// Waits for the next piece of the body. Returns `None` at the end of the body.
    ///
    /// # Errors
    /// The errors of [`poll_fill`](Self::poll_fill).
    pub async fn chunk(&mut self) -> Result<Option<Vec<u8>>> {
        poll_fn(|context| self.poll_chunk(context)).await
    }

    fn poll_chunk(&mut self, context: &mut Context<'_>) -> Poll<Result<Option<Vec<u8>>>> {
        let is_there = ready!(self.poll_fill(context))?;
        let piece = is_there.then(|| self.ready().to_vec());
        self.consume(piece.as_ref().map_or(0, Vec::len));
        Poll::Ready(Ok(piece))
    }

    /// Waits for the rest of the body, and returns it.
    ///
    /// # Errors
    /// The errors of [`poll_fill`](Self::poll_fill).
    pub async fn bytes(mut self) -> Result<Vec<u8>> {
        let mut all = Vec::new();
        while poll_fn(|context| self.poll_fill(context)).await? {
            all.extend_from_slice(self.ready());
            self.consume(self.ready().len());
        }
        Ok(all)
    }

    /// Waits for the rest of the body, and returns it as text. The encoding is determined as by
    /// [`Response::text`](super::Response::text): from the byte order mark or the `Content-Type`.
    ///
    /// # Errors
    /// The errors of [`poll_fill`](Self::poll_fill).
    pub async fn text(self) -> Result<String> {
        let charset = self.head().get("content-type").and_then(charset);
        Ok(charset::decode(self.bytes().await?, charset.as_deref()))
    }

    /// Waits for the rest of the body, and parses it as JSON.
    ///
    /// # Errors
    /// The errors of [`poll_fill`](Self::poll_fill), or [`ErrorKind::ContentCoding`] if the body is
    /// not valid JSON or does not fit the type `T`.
    #[cfg(feature = "json")]
    pub async fn json<T: serde::de::DeserializeOwned>(self) -> Result<T> {
        let url = self.url();
        super::from_json(&self.bytes().await?, url)
    }
}

impl Deref for AsyncResponse {
    type Target = ResponseInfo;

    fn deref(&self) -> &ResponseInfo {
        &self.about
    }
}

impl Stream for AsyncResponse {
    type Item = Result<Vec<u8>>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.broken.is_some() {
            return Poll::Ready(None);
        }
        self.poll_chunk(context).map(Result::transpose)
    }
}

impl std::fmt::Debug for AsyncResponse {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AsyncResponse").field("about", &self.about).finish_non_exhaustive()
    }
}
