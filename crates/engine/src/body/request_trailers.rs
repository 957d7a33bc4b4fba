//! Trailer fields after a request's content (RFC 9110 section 6.5), for values that are known only
//! when the content has been sent, such as a checksum of the content.
//!
//! ```
//! use haul::body::request_trailers::Trailers;
//! use haul::request::RequestOverrides;
//!
//! let sum = Trailers::new(|| Ok(vec![("Content-MD5".into(), b"...".to_vec())]));
//! let own = RequestOverrides { body: Some("text".into()), trailers: Some(sum), ..RequestOverrides::default() };
//! # drop(own);
//! ```

use std::fmt;
use std::io;
use std::sync::Arc;
use std::task::Waker;
use std::time::Instant;

use rustix::fd::BorrowedFd;

use super::upload::BodyUpload;

/// A trailer field: its name and value.
pub type Field = (String, Vec<u8>);

type MakeTrailers = dyn Fn() -> io::Result<Vec<Field>> + Send + Sync;

/// The trailer fields of a request. A function makes them each time that the content has been sent,
/// so a retry has new trailers.
///
/// In HTTP/1.1, content with trailers is sent in chunks, even if its length is known (RFC 9112
/// section 7.1.2). Servers may ignore trailers, and most do. `Content-Length` and
/// `Transfer-Encoding` are not allowed as trailers.
#[derive(Clone)]
pub struct Trailers(Arc<MakeTrailers>);

impl Trailers {
    /// Makes trailers from a function that is called at the end of the content. If it returns an
    /// error, the request fails.
    pub fn new(make: impl Fn() -> io::Result<Vec<Field>> + Send + Sync + 'static) -> Self {
        Self(Arc::new(make))
    }

    /// Returns an upload that sends `content` first, and then these trailers.
    pub(crate) fn after(&self, content: Box<dyn BodyUpload>) -> Box<dyn BodyUpload> {
        Box::new(UploadWithTrailers { content, trailers: self.clone() })
    }
}

impl fmt::Debug for Trailers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Trailers").finish_non_exhaustive()
    }
}

/// An upload that is followed by trailers.
struct UploadWithTrailers {
    content: Box<dyn BodyUpload>,
    trailers: Trailers,
}

impl BodyUpload for UploadWithTrailers {
    /// Returns `None`, i.e. an unknown length: content with trailers is sent in chunks, so its
    /// length is not announced.
    fn length(&self) -> Option<u64> {
        None
    }

    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.content.read(buffer)
    }

    fn ready(&self) -> &[u8] {
        self.content.ready()
    }

    fn consume(&mut self, n: usize) {
        self.content.consume(n);
    }

    fn waits(&self) -> bool {
        self.content.waits()
    }

    fn set_waker(&mut self, waker: Waker) {
        self.content.set_waker(waker);
    }

    fn source(&self) -> Option<BorrowedFd<'_>> {
        self.content.source()
    }

    fn resumes_at(&self) -> Option<Instant> {
        self.content.resumes_at()
    }

    fn trailers(&mut self) -> io::Result<Vec<Field>> {
        (self.trailers.0)()
    }
}
