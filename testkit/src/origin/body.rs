//! The bodies of the routes' replies, which are generated while they are sent.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::HeaderMap;
use hyper::body::{Body, Frame, SizeHint};

use crate::byte_pattern::BytePattern;

/// The number of bytes of a byte pattern that the origin generates and sends at a time.
const PIECE: u64 = 64 << 10;

/// The body of the origin's reply, which is generated while it is sent.
pub(super) struct ReplyBody {
    source: RouteBodySource,
    /// True if the reply announces its length. If false, hyper uses chunked framing, or ends an
    /// HTTP/1.0 connection after the body.
    sized: bool,
    trailers: Option<HeaderMap>,
}

/// The source of a reply's body: pieces in memory, or a range of a byte pattern.
pub(super) enum RouteBodySource {
    Pieces(VecDeque<Bytes>),
    Pattern { pattern: BytePattern, from: u64, to: u64 },
}

impl RouteBodySource {
    pub(super) fn single_piece(bytes: impl Into<Bytes>) -> RouteBodySource {
        RouteBodySource::Pieces(VecDeque::from([bytes.into()]))
    }

    fn remaining_bytes(&self) -> u64 {
        match self {
            RouteBodySource::Pieces(pieces) => pieces.iter().map(|p| p.len() as u64).sum(),
            RouteBodySource::Pattern { from, to, .. } => to - from,
        }
    }

    fn next(&mut self) -> Option<Bytes> {
        match self {
            RouteBodySource::Pieces(pieces) => pieces.pop_front(),
            RouteBodySource::Pattern { from, to, .. } if from == to => None,
            RouteBodySource::Pattern { pattern, from, to } => {
                let len = (*to - *from).min(PIECE);
                let piece = pattern.slice(*from, len as usize);
                *from += len;
                Some(piece.into())
            }
        }
    }
}

impl ReplyBody {
    pub(super) fn with_length(source: RouteBodySource) -> ReplyBody {
        ReplyBody { source, sized: true, trailers: None }
    }

    /// Returns the announced length of the body in bytes; `None` if the reply announces no length.
    pub(super) fn len(&self) -> Option<u64> {
        self.sized.then(|| self.source.remaining_bytes())
    }

    pub(super) fn without_length(source: RouteBodySource, trailers: Option<HeaderMap>) -> ReplyBody {
        ReplyBody { source, sized: false, trailers }
    }
}

impl Body for ReplyBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let frame = match self.source.next() {
            Some(piece) => Some(Frame::data(piece)),
            None => self.trailers.take().map(Frame::trailers),
        };
        Poll::Ready(frame.map(Ok))
    }

    fn is_end_stream(&self) -> bool {
        self.sized && self.source.remaining_bytes() == 0
    }

    fn size_hint(&self) -> SizeHint {
        if self.sized { SizeHint::with_exact(self.source.remaining_bytes()) } else { SizeHint::default() }
    }
}
