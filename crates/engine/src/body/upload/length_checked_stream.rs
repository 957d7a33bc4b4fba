//! A stream with an announced length. If the stream has more bytes, the request fails: otherwise
//! the server would take the announced part for the complete content.

use std::error::Error;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_core::Stream;

/// A stream that fails if the inner stream is longer than announced. It returns the last announced
/// byte only after the inner stream has ended, so that the excess is noticed before the content is
/// complete. The inner stream is not polled after its end.
pub(crate) struct LengthCheckedStream<S, B> {
    /// The inner stream; `None` once it has ended.
    stream: Option<Pin<Box<S>>>,
    length: u64,
    left: u64,
    last: Option<B>,
}

impl<S, B> LengthCheckedStream<S, B> {
    pub(crate) fn new(stream: S, length: u64) -> Self {
        Self { stream: Some(Box::pin(stream)), length, left: length, last: None }
    }
}

/// `Unpin` is sound: the inner stream is pinned in its box, and the pieces of the stream are never
/// pinned.
impl<S, B> Unpin for LengthCheckedStream<S, B> {}

impl<S, B, E> Stream for LengthCheckedStream<S, B>
where
    S: Stream<Item = Result<B, E>>,
    B: AsRef<[u8]>,
    E: Into<Box<dyn Error + Send + Sync>>,
{
    type Item = Result<B, Box<dyn Error + Send + Sync>>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            let Some(stream) = &mut self.stream else { return Poll::Ready(None) };
            let Some(piece) = ready!(stream.as_mut().poll_next(context)) else {
                self.stream = None;
                return Poll::Ready(self.last.take().map(Ok));
            };
            let piece = piece.map_err(Into::into)?;
            let Some(left) = self.left.checked_sub(piece.as_ref().len() as u64) else {
                let message = format!("request body is longer than its announced length of {} bytes", self.length);
                return Poll::Ready(Some(Err(io::Error::other(message).into())));
            };
            if self.last.is_some() {
                // An empty piece follows the last byte.
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

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use super::*;

    /// A test stream that panics when it is polled after its end.
    struct PanickingPieceStream(Option<Vec<&'static str>>);

    impl Stream for PanickingPieceStream {
        type Item = io::Result<&'static str>;

        fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
            let pieces = self.0.as_mut().expect("it was polled after its end");
            let piece = (!pieces.is_empty()).then(|| pieces.remove(0));
            if piece.is_none() {
                self.0 = None;
            }
            Poll::Ready(piece.map(Ok))
        }
    }

    #[test]
    fn stream_is_not_polled_after_its_end() {
        for (pieces, expected) in [(vec!["ab", "c", ""], vec!["ab", "c"]), (vec!["ab"], vec!["ab"])] {
            let mut measured = LengthCheckedStream::new(PanickingPieceStream(Some(pieces)), 3);
            let mut next = || match Pin::new(&mut measured).poll_next(&mut Context::from_waker(Waker::noop())) {
                Poll::Ready(piece) => piece.map(|piece| piece.expect("it has not failed")),
                Poll::Pending => unreachable!("it never waits"),
            };
            let got: Vec<_> = std::iter::from_fn(&mut next).collect();
            assert_eq!((got, next()), (expected, None));
        }
    }
}
