//! A stream of announced length: more than that would be left out, and the server would take a part for the whole.

use std::error::Error;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_core::Stream;

/// Fails if there is more than was announced. The piece that completes it waits until the stream has ended.
pub(crate) struct Measured<S, B> {
    stream: Pin<Box<S>>,
    length: u64,
    left: u64,
    last: Option<B>,
}

impl<S, B> Measured<S, B> {
    pub(crate) fn new(stream: S, length: u64) -> Self {
        Self { stream: Box::pin(stream), length, left: length, last: None }
    }
}

/// The stream is pinned where it is; a piece never is.
impl<S, B> Unpin for Measured<S, B> {}

impl<S, B, E> Stream for Measured<S, B>
where
    S: Stream<Item = Result<B, E>>,
    B: AsRef<[u8]>,
    E: Into<Box<dyn Error + Send + Sync>>,
{
    type Item = Result<B, Box<dyn Error + Send + Sync>>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            let Some(piece) = ready!(self.stream.as_mut().poll_next(context)) else {
                return Poll::Ready(self.last.take().map(Ok));
            };
            let piece = piece.map_err(Into::into)?;
            let Some(left) = self.left.checked_sub(piece.as_ref().len() as u64) else {
                let message = format!("request body is longer than its announced length of {} bytes", self.length);
                return Poll::Ready(Some(Err(io::Error::other(message).into())));
            };
            if self.last.is_some() {
                // An empty one behind the end.
                continue;
            }
            self.left = left;
            if left > 0 {
                return Poll::Ready(Some(Ok(piece)));
            }
            self.last = Some(piece);
        }
    }
}
