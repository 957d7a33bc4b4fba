//! The content of a request: bytes in memory, files, output of the program's code, or a list of
//! these; or a reader or stream that can be read once.
//!
//! A [`RequestBody`] is part of the request's options. Cloning it is cheap, and it opens no file. A
//! [`BodyUpload`] sends it once: the driver reads from the upload, so that a file of any size needs
//! only one buffer. A redirect, a response to a challenge or a retry starts a new upload.
//!
//! ```
//! use haul::body::upload::{RequestBody, BodyPiece};
//!
//! let small = RequestBody::from(&b"name=value"[..]);
//! assert_eq!(small.length(), Some(10));
//! let mixed = RequestBody::pieces([BodyPiece::Bytes(b"--x\r\n"[..].into()), BodyPiece::Bytes(b"--x--\r\n"[..].into())]);
//! let mut upload = mixed.upload();
//! let mut buffer = [0; 64];
//! assert_eq!(upload.read(&mut buffer)?, 12);
//! let once = RequestBody::reader(std::io::empty());
//! assert_eq!((once.length(), once.is_repeatable()), (None, false));
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! A read waits for its source, unless the sender has [set a waker](BodyUpload::set_waker). An
//! event loop sets one, since it serves other transfers, too.
//!
//! | module | what it does |
//! |---|---|
//! | `memory_and_piece_list_upload` | sends memory, files and pieces |
//! | `one_shot` | sends readers and streams; may read a reader in a separate thread |
//! | `async_body_stream_poller` | lets the task that awaits the response poll a stream |
//! | `rate_limited` | limits the rate of an upload |
//! | `length_checked_stream` | checks the length of a stream |
//! | `announced_length` | checks the length of an upload |

mod announced_length;
mod async_body_stream_poller;
mod length_checked_stream;
mod memory_and_piece_list_upload;
mod one_shot;
pub(crate) mod rate_limited;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::error::Error;
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::PathBuf;
use std::sync::Arc;
use std::task::Waker;
use std::time::Instant;

use futures_core::Stream;
use haul_policy::multipart::{self, MultipartLayout};
use rustix::fd::BorrowedFd;

pub(crate) use announced_length::AnnouncedLengthUpload;
pub(crate) use async_body_stream_poller::StreamFeeder;
pub(crate) use length_checked_stream::LengthCheckedStream;
pub use one_shot::OneShotSource;
pub(crate) use one_shot::{ContentClaimed, ReaderPanicked};

use super::request_trailers::Field;
use memory_and_piece_list_upload::{MemoryUpload, PieceUpload};

/// The maximum size in bytes of a multipart form that is joined into one buffer. A form that
/// contains files is never joined.
const MAX_JOINED: usize = 64 << 10;

/// The error message for a file that has become shorter since the request was made.
pub(crate) const FILE_TRUNCATED: &str = "the file has become shorter";

/// The content of a request. `Debug` shows only its length.
#[derive(Clone)]
pub enum RequestBody {
    /// Bytes in memory. A small number of bytes is sent in one write with the head.
    Bytes(Arc<[u8]>),
    /// The pieces of the content, in order. [`RequestBody::file`], [`RequestBody::reader`],
    /// [`RequestBody::multipart`] and [`RequestBody::pieces`] make this variant.
    Pieces(Arc<[BodyPiece]>),
}

/// A piece of a [`RequestBody`].
#[derive(Clone)]
pub enum BodyPiece {
    /// Bytes in memory, which clones of the piece share.
    Bytes(Arc<[u8]>),
    /// `length` bytes of a file. The file is opened when the bytes are sent. If the file has become
    /// shorter, the request fails. Bytes that were appended in the meantime are not sent.
    File {
        /// The path of the file.
        path: PathBuf,
        /// The offset of the first byte to send.
        offset: u64,
        /// The number of bytes to send.
        length: u64,
    },
    /// The whole output of a reader or a stream. Its length is unknown, and it can be sent only
    /// once.
    Once(OneShotSource),
    /// A source that can be read repeatedly, such as a generator, or memory that must not be
    /// copied.
    Source(RepeatableSource),
}

/// A source that produces its bytes anew each time that they are sent.
///
/// ```
/// use haul::body::upload::{RequestBody, BodyPiece, RepeatableSource};
/// let body = RequestBody::pieces([BodyPiece::Source(RepeatableSource::new(Some(5), || Ok(Box::new(&b"hello"[..]))))]);
/// assert_eq!((body.length(), body.is_repeatable()), (Some(5), true));
/// ```
#[derive(Clone)]
pub struct RepeatableSource {
    length: Option<u64>,
    open: SourceOpener,
}

/// The function that opens a [`RepeatableSource`].
#[derive(Clone)]
enum SourceOpener {
    /// Returns a reader.
    Reader(Arc<OpenContentFn>),
    /// Returns a stream.
    Stream(Arc<OpenStreamFn>),
}

/// The function that opens a [`RepeatableSource`]. It is called each time that the content is sent.
type OpenContentFn = dyn Fn() -> io::Result<Box<dyn Read + Send>> + Send + Sync;

/// The function that opens a [`RepeatableSource`] as a stream, each time that the content is sent.
type OpenStreamFn = dyn Fn() -> OneShotSource + Send + Sync;

/// The bytes of a file that an upload sends next.
#[derive(Debug)]
pub struct FileRange<'a> {
    /// The file. Its position is the offset of the next byte to send.
    pub file: &'a File,
    /// The number of bytes to send.
    pub length: u64,
}

/// One transmission of a [`RequestBody`], from which the sender reads the bytes.
pub trait BodyUpload: Send {
    /// Returns the total number of bytes of the upload. Returns `None` if it is not known before
    /// the end.
    fn length(&self) -> Option<u64>;

    /// Reads the next bytes of the content into `buffer`, and returns their number; 0 means the
    /// end. Fills `buffer` only partly at the end of the content, and if filling it would mean
    /// waiting.
    ///
    /// # Errors
    /// The error of the source, after which nothing more can be read. `WouldBlock` if no bytes are
    /// available now and the upload has a waker or a [source](Self::source).
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize>;

    /// Returns the next bytes if they are in memory, so that they can be sent without a copy.
    /// Returns an empty slice at the end of the content, and if the next bytes must be read. The
    /// sender then calls [`consume`](Self::consume) with the number of bytes that it has sent.
    fn ready(&self) -> &[u8] {
        &[]
    }

    /// Marks the first `n` of the [`ready`](Self::ready) bytes as sent.
    fn consume(&mut self, n: usize) {
        debug_assert!(n == 0, "nothing was ready");
    }

    /// Returns the file that contains the next bytes, positioned at the first of them, so that the
    /// kernel can send them without a copy. The sender then calls
    /// [`consume_file`](Self::consume_file) with the number of bytes that it has sent. Returns
    /// `None` if the next bytes do not come from a file.
    ///
    /// # Errors
    /// The file cannot be opened.
    fn file(&mut self) -> io::Result<Option<FileRange<'_>>> {
        Ok(None)
    }

    /// Marks the next `n` bytes of the [`file`](Self::file) as sent. The file's position is already
    /// behind them.
    fn consume_file(&mut self, n: u64) {
        debug_assert!(n == 0, "there was no file");
    }

    /// Returns the pipe from which the next bytes come, so that the kernel can send them without a
    /// copy. All bytes in the pipe are content. Returns `None` if the next bytes do not come from a
    /// pipe, or if the pipe is read ahead in a separate thread.
    ///
    /// # Errors
    /// The content cannot be opened.
    fn pipe(&mut self) -> io::Result<Option<BorrowedFd<'_>>> {
        Ok(None)
    }

    /// Checks that the source is empty if the announced length of the content is 0. Does nothing
    /// for any other length. The sender calls this when the request accepts no content or no more
    /// of it.
    ///
    /// # Errors
    /// The source has bytes. The error is `WouldBlock` if that is not known yet.
    fn check_empty(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// Returns true if a read of the upload may have to wait for the source of the content.
    fn waits(&self) -> bool {
        false
    }

    /// Makes reads return `WouldBlock` instead of waiting. `waker` is woken when bytes may be
    /// available. A read may also succeed [at a known time](Self::resumes_at).
    fn set_waker(&mut self, _waker: Waker) {}

    /// Returns the descriptor to poll after a read has returned `WouldBlock`. Returns `None` if the
    /// upload has a waker, or if its source has no descriptor.
    fn source(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// Returns the time at which the sender should read again after `WouldBlock`, even if the waker
    /// is not woken before. Returns `None` if there is no such time.
    fn resumes_at(&self) -> Option<Instant> {
        None
    }

    /// Returns the trailer fields to send after the content has ended. The sender calls this only
    /// for content that is sent in chunks.
    ///
    /// # Errors
    /// The trailers cannot be made. The request cannot be completed then.
    fn trailers(&mut self) -> io::Result<Vec<Field>> {
        Ok(Vec::new())
    }
}

impl RequestBody {
    /// Makes content of a file, up to its present length. A file that is not regular (a pipe, a
    /// terminal) is read once, to its end.
    ///
    /// # Errors
    /// The file does not exist or cannot be read.
    pub fn file(path: impl Into<PathBuf>) -> io::Result<Self> {
        BodyPiece::file(path).map(|piece| Self::pieces([piece]))
    }

    /// Makes content of a reader's whole output, sent in chunks. The content can be sent only once:
    /// a redirect that keeps the content, or a retry, fails.
    pub fn reader(reader: impl Read + Send + 'static) -> Self {
        Self::pieces([BodyPiece::Once(OneShotSource::new(reader))])
    }

    /// Makes content of a stream's whole output, sent in chunks. The content can be sent only once,
    /// like the content of [`RequestBody::reader`]. An error of the stream aborts the request. With
    /// [`send_async`](crate::Client::send_async), the task that awaits the response polls the
    /// stream. With all other methods, the thread that sends the request polls it. The stream must
    /// not block.
    pub fn stream<S, B, E>(stream: S) -> Self
    where
        S: Stream<Item = Result<B, E>> + Send + 'static,
        B: AsRef<[u8]> + Send + 'static,
        E: Into<Box<dyn Error + Send + Sync>>,
    {
        Self::pieces([BodyPiece::Once(OneShotSource::stream(stream))])
    }

    /// Makes content that consists of several pieces, sent one after the other.
    pub fn pieces(pieces: impl IntoIterator<Item = BodyPiece>) -> Self {
        Self::Pieces(pieces.into_iter().collect())
    }

    /// Makes a multipart form with this layout, whose parts refer to `sources` by index. The caller
    /// must send the layout's `content_type`.
    ///
    /// # Errors
    /// A part refers to a source that does not exist.
    pub fn multipart(layout: &MultipartLayout, sources: &[BodyPiece]) -> io::Result<Self> {
        let piece = |piece: &multipart::MultipartPiece| match piece {
            multipart::MultipartPiece::Literal(bytes) => Ok(BodyPiece::Bytes(bytes.as_slice().into())),
            multipart::MultipartPiece::Source { index, .. } => sources
                .get(*index)
                .cloned()
                .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "a part of the form has no source")),
        };
        let pieces = layout.pieces.iter().map(piece).collect::<io::Result<Vec<_>>>()?;
        let in_memory = |piece: &BodyPiece| match piece {
            BodyPiece::Bytes(bytes) => Some(Arc::clone(bytes)),
            BodyPiece::File { .. } | BodyPiece::Once(_) | BodyPiece::Source(_) => None,
        };
        // A single buffer is sent in one write with the head.
        Ok(match pieces.iter().map(in_memory).collect::<Option<Vec<_>>>() {
            Some(all) if all.iter().map(|bytes| bytes.len()).sum::<usize>() <= MAX_JOINED => Self::from(all.concat()),
            _ => Self::pieces(pieces),
        })
    }

    /// Returns the length in bytes, or `None` if a piece has no known length (the output of a
    /// reader or a stream).
    #[must_use]
    pub fn length(&self) -> Option<u64> {
        match self {
            Self::Bytes(bytes) => Some(bytes.len() as u64),
            Self::Pieces(pieces) => pieces.iter().try_fold(0u64, |sum, piece| sum.checked_add(piece.length()?)),
        }
    }

    /// Returns true if the content can be sent any number of times. Returns false if a piece of it
    /// can be read only once.
    #[must_use]
    pub fn is_repeatable(&self) -> bool {
        self.one_shot_sources().next().is_none()
    }

    /// Returns true if the content cannot be sent any more, because a piece that can be read only
    /// once was already begun.
    #[must_use]
    pub fn is_consumed(&self) -> bool {
        self.one_shot_sources().any(OneShotSource::is_begun)
    }

    /// Returns the content if it is in memory, in one buffer. Otherwise returns `None`.
    #[must_use]
    pub fn bytes(&self) -> Option<&[u8]> {
        match self {
            Self::Bytes(bytes) => Some(bytes),
            Self::Pieces(_) => None,
        }
    }

    /// Makes an upload of the content from the first byte on. Opens nothing before the first read.
    #[must_use]
    pub fn upload(&self) -> Box<dyn BodyUpload> {
        match self {
            Self::Bytes(bytes) => Box::new(MemoryUpload::new(Arc::clone(bytes))),
            Self::Pieces(pieces) => Box::new(PieceUpload::new(Arc::clone(pieces))),
        }
    }

    /// Makes a copy of the content for one request, and a feeder for each stream in it. The task
    /// that awaits the response uses the feeders to poll the streams. Returns `None` if the content
    /// has no stream that can still be sent.
    pub(crate) fn with_feeders(&self) -> Option<(Self, Vec<StreamFeeder>)> {
        let Self::Pieces(pieces) = self else { return None };
        let mut feeders = Vec::new();
        let mut with_feeder = |piece: &BodyPiece| {
            let BodyPiece::Once(once) = piece else { return piece.clone() };
            let Some((once, feeder)) = once.with_feeder() else { return piece.clone() };
            feeders.push(feeder);
            BodyPiece::Once(once)
        };
        let fed = Self::Pieces(pieces.iter().map(&mut with_feeder).collect());
        (!feeders.is_empty()).then_some((fed, feeders))
    }

    fn one_shot_sources(&self) -> impl Iterator<Item = &OneShotSource> {
        let pieces = match self {
            Self::Bytes(_) => &[][..],
            Self::Pieces(pieces) => pieces,
        };
        pieces.iter().filter_map(|piece| if let BodyPiece::Once(once) = piece { Some(once) } else { None })
    }
}

impl BodyPiece {
    /// Makes a piece of a file, like [`RequestBody::file`].
    ///
    /// # Errors
    /// The file does not exist or cannot be read.
    pub fn file(path: impl Into<PathBuf>) -> io::Result<Self> {
        let path = path.into();
        // Opened now, so that an unreadable file is an error before anything is sent.
        let file = File::open(&path)?;
        let about = file.metadata()?;
        if about.is_file() {
            return Ok(Self::File { path, offset: 0, length: about.len() });
        }
        if about.is_dir() {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        Ok(Self::Once(OneShotSource::file(file)))
    }

    /// Returns the length in bytes, or `None` if it is not known (the output of a reader or a
    /// stream).
    #[must_use]
    pub fn length(&self) -> Option<u64> {
        match self {
            Self::Bytes(bytes) => Some(bytes.len() as u64),
            Self::File { length, .. } => Some(*length),
            Self::Once(_) => None,
            Self::Source(source) => source.length,
        }
    }

    /// Returns true if a read of this piece may have to wait. Returns false for a
    /// [`RepeatableSource`] with a reader of known length: even an event loop reads that reader
    /// directly, like a file.
    fn waits(&self) -> bool {
        match self {
            Self::Once(_) => true,
            Self::Source(source) => source.waits(),
            Self::Bytes(_) | Self::File { .. } => false,
        }
    }
}

impl RepeatableSource {
    /// Makes a source from the function `open`, which is called each time that the content is sent.
    /// If `length` is known, exactly that many bytes are sent. If the source has fewer bytes, the
    /// request fails.
    pub fn new(
        length: Option<u64>,
        open: impl Fn() -> io::Result<Box<dyn Read + Send>> + Send + Sync + 'static,
    ) -> Self {
        Self { length, open: SourceOpener::Reader(Arc::new(open)) }
    }

    /// Makes a source from the function `open`, which returns a new
    /// [stream](OneShotSource::stream) of the content each time that the content is sent. An event
    /// loop polls the stream itself, without a thread. If `length` is known, no more than that many
    /// bytes are sent; a stream with fewer bytes should end with an error.
    ///
    /// ```
    /// use haul::body::upload::{BodyPiece, OneShotSource, RepeatableSource, RequestBody};
    /// let open = || OneShotSource::new(&b"hello"[..]);
    /// let body = RequestBody::pieces([BodyPiece::Source(RepeatableSource::of_streams(Some(5), open))]);
    /// for _ in 0..2 {
    ///     let mut buffer = [0; 8];
    ///     assert_eq!(body.upload().read(&mut buffer)?, 5);
    /// }
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn of_streams(length: Option<u64>, open: impl Fn() -> OneShotSource + Send + Sync + 'static) -> Self {
        Self { length, open: SourceOpener::Stream(Arc::new(open)) }
    }

    /// Returns true if a read of the source may have to wait.
    fn waits(&self) -> bool {
        self.length.is_none() || matches!(self.open, SourceOpener::Stream(_))
    }
}

impl fmt::Debug for RepeatableSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Source").field("length", &self.length).finish_non_exhaustive()
    }
}

impl From<Arc<[u8]>> for RequestBody {
    fn from(bytes: Arc<[u8]>) -> Self {
        Self::Bytes(bytes)
    }
}

impl From<Vec<u8>> for RequestBody {
    fn from(bytes: Vec<u8>) -> Self {
        Self::Bytes(bytes.into())
    }
}

impl From<&[u8]> for RequestBody {
    fn from(bytes: &[u8]) -> Self {
        Self::Bytes(bytes.into())
    }
}

impl From<&Vec<u8>> for RequestBody {
    fn from(bytes: &Vec<u8>) -> Self {
        bytes.as_slice().into()
    }
}

impl From<Box<[u8]>> for RequestBody {
    fn from(bytes: Box<[u8]>) -> Self {
        Self::Bytes(bytes.into())
    }
}

impl From<Cow<'_, str>> for RequestBody {
    fn from(text: Cow<'_, str>) -> Self {
        text.into_owned().into()
    }
}

impl From<Cow<'_, [u8]>> for RequestBody {
    fn from(bytes: Cow<'_, [u8]>) -> Self {
        bytes.into_owned().into()
    }
}

impl<const N: usize> From<&[u8; N]> for RequestBody {
    fn from(bytes: &[u8; N]) -> Self {
        bytes[..].into()
    }
}

impl From<String> for RequestBody {
    fn from(text: String) -> Self {
        text.into_bytes().into()
    }
}

impl From<&String> for RequestBody {
    fn from(text: &String) -> Self {
        text.as_bytes().into()
    }
}

impl From<&str> for RequestBody {
    fn from(text: &str) -> Self {
        text.as_bytes().into()
    }
}
