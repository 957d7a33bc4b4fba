//! What a request sends: bytes in memory, files, what a program gives, and pieces of these; or a reader that can be read once.
//!
//! A [`Body`] belongs to the request's options, is cheap to clone, and opens nothing. An [`Upload`] is one sending of it: the
//! driver pulls, so that a file of any size takes one buffer, and a redirect, an answer to a challenge or a retry begins a
//! new one.
//!
//! ```
//! use haul::body::upload::{Body, Piece};
//!
//! let small = Body::from(&b"name=value"[..]);
//! assert_eq!(small.length(), Some(10));
//! let mixed = Body::pieces([Piece::Bytes(b"--x\r\n"[..].into()), Piece::Bytes(b"--x--\r\n"[..].into())]);
//! let mut upload = mixed.upload();
//! let mut buffer = [0; 64];
//! assert_eq!(upload.read(&mut buffer)?, 12);
//! assert!(upload.rewind());
//! let once = Body::reader(std::io::empty());
//! assert_eq!((once.length(), once.is_repeatable()), (None, false));
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! Reading waits where its source does: a slow pipe as a body holds up the thread that sends it, and in a fleet all that this
//! thread carries.

use std::fmt;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use haul_policy::multipart::{self, Layout};

use super::trailers::Field;

/// Up to so many bytes of a form that lies in memory are taken together.
const TOGETHER: usize = 64 << 10;

/// What a request sends. `Debug` shows how long it is.
#[derive(Clone)]
pub enum Body {
    /// Bytes in memory. When small they leave in one write with the head.
    Bytes(Arc<[u8]>),
    /// Pieces, one behind the other; made by [`Body::file`], [`Body::reader`], [`Body::multipart`] and [`Body::pieces`].
    Pieces(Arc<[Piece]>),
}

/// A part of a [`Body`].
#[derive(Clone)]
pub enum Piece {
    /// Bytes in memory.
    Bytes(Arc<[u8]>),
    /// So many bytes of a file, which is opened when they are sent. That it has become shorter by then is an error; what was
    /// appended is not sent.
    File {
        /// The file.
        path: PathBuf,
        /// Where they begin.
        offset: u64,
        /// How many there are.
        length: u64,
    },
    /// All that a reader gives: of unknown length, and to be had once.
    Once(Once),
    /// What a program gives as often as it is asked: a generator, memory that it does not want copied.
    Source(Source),
}

/// Gives its bytes anew each time that they are sent.
///
/// ```
/// use haul::body::upload::{Body, Piece, Source};
/// let body = Body::pieces([Piece::Source(Source::new(Some(5), || Ok(Box::new(&b"hello"[..]))))]);
/// assert_eq!((body.length(), body.is_repeatable()), (Some(5), true));
/// ```
#[derive(Clone)]
pub struct Source {
    length: Option<u64>,
    open: Arc<Open>,
}

/// Begins to give the bytes of a [`Source`].
type Open = dyn Fn() -> io::Result<Box<dyn Read + Send>> + Send + Sync;

/// A reader that can be read once, shared by the clones of the body that it is of.
#[derive(Clone)]
pub struct Once(Arc<Shared>);

struct Shared {
    reader: Mutex<Box<dyn Read + Send>>,
    is_begun: AtomicBool,
}

/// One sending of a body.
pub trait Upload: Send {
    /// How many bytes it gives in all; `None` where that is not known before its end.
    fn length(&self) -> Option<u64>;

    /// The next bytes; 0 is the end. Fewer than fit are given at the end, or where waiting would begin.
    ///
    /// # Errors
    /// The source's. Nothing more can be read then.
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize>;

    /// The next bytes where they lie in memory, to be used in place of a read and then [consumed](Self::consume). Empty where
    /// they have to be read, and at the end.
    fn ready(&self) -> &[u8] {
        &[]
    }

    /// So many of the [`ready`](Self::ready) bytes were used.
    fn consume(&mut self, n: usize) {
        debug_assert!(n == 0, "nothing was ready");
    }

    /// Goes back to the first byte. `false` where that cannot be done any more.
    fn rewind(&mut self) -> bool;

    /// Fields to send behind it, asked for at its end. Only of content by chunks.
    ///
    /// # Errors
    /// They cannot be made. The request cannot be completed then.
    fn trailers(&mut self) -> io::Result<Vec<Field>> {
        Ok(Vec::new())
    }
}

impl Body {
    /// A file's content, as long as the file is now. What is no regular file (a pipe, a terminal) is read once, to its end.
    ///
    /// # Errors
    /// The file is not there or may not be read.
    pub fn file(path: impl Into<PathBuf>) -> io::Result<Self> {
        Piece::file(path).map(|piece| Self::pieces([piece]))
    }

    /// All that a reader gives, by chunks. It can be sent once: a redirect that keeps the body, or a retry, fails.
    pub fn reader(reader: impl Read + Send + 'static) -> Self {
        Self::pieces([Piece::Once(Once::new(reader))])
    }

    /// Pieces, one behind the other.
    pub fn pieces(pieces: impl IntoIterator<Item = Piece>) -> Self {
        Self::Pieces(pieces.into_iter().collect())
    }

    /// A form of this layout; `sources` are what its pieces name by index. Its `content_type` is the caller's to send.
    ///
    /// # Errors
    /// A piece names a source that is not there.
    pub fn multipart(layout: &Layout, sources: &[Piece]) -> io::Result<Self> {
        let piece = |piece: &multipart::Piece| match piece {
            multipart::Piece::Literal(bytes) => Ok(Piece::Bytes(bytes.as_slice().into())),
            multipart::Piece::Source { index, .. } => sources
                .get(*index)
                .cloned()
                .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "a part of the form has no source")),
        };
        let pieces = layout.pieces.iter().map(piece).collect::<io::Result<Vec<_>>>()?;
        let in_memory = |piece: &Piece| match piece {
            Piece::Bytes(bytes) => Some(Arc::clone(bytes)),
            Piece::File { .. } | Piece::Once(_) | Piece::Source(_) => None,
        };
        // In one place it leaves in one write with the head.
        Ok(match pieces.iter().map(in_memory).collect::<Option<Vec<_>>>() {
            Some(all) if all.iter().map(|bytes| bytes.len()).sum::<usize>() <= TOGETHER => Self::from(all.concat()),
            _ => Self::pieces(pieces),
        })
    }

    /// How long it is, in bytes; `None` where a reader decides that.
    #[must_use]
    pub fn length(&self) -> Option<u64> {
        match self {
            Self::Bytes(bytes) => Some(bytes.len() as u64),
            Self::Pieces(pieces) => pieces.iter().try_fold(0u64, |sum, piece| sum.checked_add(piece.length()?)),
        }
    }

    /// Whether it can be sent any number of times.
    #[must_use]
    pub fn is_repeatable(&self) -> bool {
        self.onces().next().is_none()
    }

    /// Whether something of it is gone: it cannot be sent (again).
    #[must_use]
    pub fn is_spent(&self) -> bool {
        self.onces().any(|once| once.0.is_begun.load(Ordering::Acquire))
    }

    /// Its bytes, where all of them are in memory in one place.
    #[must_use]
    pub fn bytes(&self) -> Option<&[u8]> {
        match self {
            Self::Bytes(bytes) => Some(bytes),
            Self::Pieces(_) => None,
        }
    }

    /// Its beginning. Opens nothing before the first read.
    #[must_use]
    pub fn upload(&self) -> Box<dyn Upload> {
        match self {
            Self::Bytes(bytes) => Box::new(Whole { bytes: Arc::clone(bytes), at: 0 }),
            Self::Pieces(pieces) => {
                Box::new(Sending { pieces: Arc::clone(pieces), at: 0, done: 0, file: None, given: None })
            }
        }
    }

    fn onces(&self) -> impl Iterator<Item = &Once> {
        let pieces = match self {
            Self::Bytes(_) => &[][..],
            Self::Pieces(pieces) => pieces,
        };
        pieces.iter().filter_map(|piece| if let Piece::Once(once) = piece { Some(once) } else { None })
    }
}

impl Piece {
    /// As [`Body::file`].
    ///
    /// # Errors
    /// The file is not there or may not be read.
    pub fn file(path: impl Into<PathBuf>) -> io::Result<Self> {
        let path = path.into();
        // Opened now, so that a file that may not be read is found out before anything is sent.
        let file = File::open(&path)?;
        let about = file.metadata()?;
        if about.is_file() {
            return Ok(Self::File { path, offset: 0, length: about.len() });
        }
        if about.is_dir() {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        Ok(Self::Once(Once::new(file)))
    }

    /// How long it is, in bytes; `None` where a reader decides that.
    #[must_use]
    pub fn length(&self) -> Option<u64> {
        match self {
            Self::Bytes(bytes) => Some(bytes.len() as u64),
            Self::File { length, .. } => Some(*length),
            Self::Once(_) => None,
            Self::Source(source) => source.length,
        }
    }
}

impl Source {
    /// What `open` gives when it is called, which is once for each time that the content is sent. Of a known length exactly so
    /// many bytes are sent; that there are fewer is an error.
    pub fn new(
        length: Option<u64>,
        open: impl Fn() -> io::Result<Box<dyn Read + Send>> + Send + Sync + 'static,
    ) -> Self {
        Self { length, open: Arc::new(open) }
    }
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Source").field("length", &self.length).finish_non_exhaustive()
    }
}

impl Once {
    /// Takes the reader.
    pub fn new(reader: impl Read + Send + 'static) -> Self {
        Self(Arc::new(Shared { reader: Mutex::new(Box::new(reader)), is_begun: AtomicBool::new(false) }))
    }
}

impl fmt::Debug for Once {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Once").field("is_begun", &self.0.is_begun).finish_non_exhaustive()
    }
}

impl From<Arc<[u8]>> for Body {
    fn from(bytes: Arc<[u8]>) -> Self {
        Self::Bytes(bytes)
    }
}

impl From<Vec<u8>> for Body {
    fn from(bytes: Vec<u8>) -> Self {
        Self::Bytes(bytes.into())
    }
}

impl From<&[u8]> for Body {
    fn from(bytes: &[u8]) -> Self {
        Self::Bytes(bytes.into())
    }
}

impl<const N: usize> From<&[u8; N]> for Body {
    fn from(bytes: &[u8; N]) -> Self {
        bytes[..].into()
    }
}

impl From<String> for Body {
    fn from(text: String) -> Self {
        text.into_bytes().into()
    }
}

impl From<&String> for Body {
    fn from(text: &String) -> Self {
        text.as_bytes().into()
    }
}

impl From<&str> for Body {
    fn from(text: &str) -> Self {
        text.as_bytes().into()
    }
}

/// A sending of bytes that lie in one place.
struct Whole {
    bytes: Arc<[u8]>,
    at: usize,
}

impl Upload for Whole {
    fn length(&self) -> Option<u64> {
        Some(self.bytes.len() as u64)
    }

    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut rest = self.ready();
        let n = rest.read(buffer)?;
        self.consume(n);
        Ok(n)
    }

    fn ready(&self) -> &[u8] {
        &self.bytes[self.at..]
    }

    fn consume(&mut self, n: usize) {
        self.at += n;
    }

    fn rewind(&mut self) -> bool {
        self.at = 0;
        true
    }
}

/// A sending of pieces.
struct Sending {
    pieces: Arc<[Piece]>,
    /// The piece under way.
    at: usize,
    /// How much of it is out.
    done: u64,
    file: Option<File>,
    /// What its source gives.
    given: Option<Box<dyn Read + Send>>,
}

impl Sending {
    fn next_piece(&mut self) {
        self.at += 1;
        self.done = 0;
        self.file = None;
        self.given = None;
    }

    /// Of the piece under way; 0 at its end.
    fn read_piece(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match &self.pieces[self.at] {
            Piece::Bytes(bytes) => {
                let rest = &bytes[self.done as usize..];
                let n = rest.len().min(buffer.len());
                buffer[..n].copy_from_slice(&rest[..n]);
                Ok(n)
            }
            Piece::File { path, offset, length } => {
                let left = length - self.done;
                if left == 0 {
                    return Ok(0);
                }
                let file = match &mut self.file {
                    Some(file) => file,
                    none => none.insert(open_at(path, offset + self.done)?),
                };
                let most = buffer.len().min(usize::try_from(left).unwrap_or(usize::MAX));
                match file.read(&mut buffer[..most])? {
                    0 => Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the file has become shorter")),
                    n => Ok(n),
                }
            }
            Piece::Once(once) => {
                once.0.is_begun.store(true, Ordering::Release);
                once.0.reader.lock().unwrap_or_else(PoisonError::into_inner).read(buffer)
            }
            Piece::Source(source) => {
                let left = source.length.map_or(u64::MAX, |length| length - self.done);
                if left == 0 {
                    return Ok(0);
                }
                let given = match &mut self.given {
                    Some(given) => given,
                    none => none.insert((source.open)()?),
                };
                let most = buffer.len().min(usize::try_from(left).unwrap_or(usize::MAX));
                match given.read(&mut buffer[..most])? {
                    0 if source.length.is_some() => {
                        Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the content is shorter than was said"))
                    }
                    n => Ok(n),
                }
            }
        }
    }
}

fn open_at(path: &Path, offset: u64) -> io::Result<File> {
    let mut file = File::open(path)?;
    if offset > 0 {
        file.seek(SeekFrom::Start(offset))?;
    }
    Ok(file)
}

impl Upload for Sending {
    fn length(&self) -> Option<u64> {
        self.pieces.iter().try_fold(0u64, |sum, piece| sum.checked_add(piece.length()?))
    }

    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut filled = 0;
        while filled < buffer.len() && self.at < self.pieces.len() {
            // One of known length is read as memory is: what waits in it was not told to.
            let waits = match &self.pieces[self.at] {
                Piece::Once(_) => true,
                Piece::Source(source) => source.length.is_none(),
                Piece::Bytes(_) | Piece::File { .. } => false,
            };
            if waits && filled > 0 {
                // What is there already should leave first.
                break;
            }
            match self.read_piece(&mut buffer[filled..]) {
                Ok(0) => self.next_piece(),
                Ok(n) => {
                    filled += n;
                    self.done += n as u64;
                    if waits {
                        break;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(filled)
    }

    fn rewind(&mut self) -> bool {
        let is_gone = |piece: &Piece| matches!(piece, Piece::Once(once) if once.0.is_begun.load(Ordering::Acquire));
        if self.pieces.iter().any(is_gone) {
            return false;
        }
        (self.at, self.done, self.file, self.given) = (0, 0, None, None);
        true
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Cursor, Write};
    use std::sync::atomic::AtomicUsize;

    use haul_policy::multipart::{Boundary, Content, Escape, Part};

    use super::*;

    fn all(upload: &mut dyn Upload, step: usize) -> io::Result<Vec<u8>> {
        let mut got = Vec::new();
        let mut buffer = vec![0; step];
        loop {
            match upload.read(&mut buffer)? {
                0 => return Ok(got),
                n => got.extend_from_slice(&buffer[..n]),
            }
        }
    }

    #[test]
    fn pieces_come_in_order_whatever_the_buffer_and_again_after_a_rewind() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(b"0123456789").unwrap();
        let part = Piece::File { path: file.path().to_owned(), offset: 2, length: 5 };
        let body = Body::pieces([Piece::Bytes(b"<"[..].into()), part, Piece::Bytes(b">"[..].into())]);
        assert_eq!(body.length(), Some(7));
        let mut upload = body.upload();
        for step in 1..10 {
            assert_eq!(all(&mut *upload, step).unwrap(), b"<23456>", "{step}");
            assert!(upload.rewind());
        }
    }

    #[test]
    fn bytes_in_one_place_are_read_or_used_where_they_lie() {
        let mut upload = Body::from("0123456789").upload();
        for step in 1..12 {
            assert_eq!(all(&mut *upload, step).unwrap(), b"0123456789", "{step}");
            assert!(upload.ready().is_empty() && upload.rewind());
        }
        assert_eq!(upload.ready(), b"0123456789");
        upload.consume(4);
        assert_eq!(upload.ready(), b"456789");
        assert_eq!(all(&mut *upload, 3).unwrap(), b"456789");
        assert!(Body::pieces([Piece::Bytes(b"a"[..].into())]).upload().ready().is_empty());
    }

    #[test]
    fn a_file_that_shrank_is_an_error_and_what_was_appended_is_not_sent() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(b"0123456789").unwrap();
        let body = Body::file(file.path()).unwrap();
        file.write_all(b"more").unwrap();
        assert_eq!(all(&mut *body.upload(), 4).unwrap(), b"0123456789");
        file.as_file().set_len(3).unwrap();
        assert_eq!(all(&mut *body.upload(), 4).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    }

    #[test]
    fn a_source_is_asked_anew_each_time_and_must_keep_its_length() {
        let times = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&times);
        let open = move || {
            count.fetch_add(1, Ordering::Relaxed);
            Ok(Box::new(&b"0123456789"[..]) as Box<dyn Read + Send>)
        };
        let body =
            |length| Body::pieces([Piece::Source(Source::new(length, open.clone())), Piece::Bytes(b"."[..].into())]);
        for length in [None, Some(10)] {
            let body = body(length);
            let mut upload = body.upload();
            for step in 1..13 {
                assert_eq!(all(&mut *upload, step).unwrap(), b"0123456789.", "{step}");
                assert!(upload.rewind());
            }
            assert!(body.is_repeatable() && !body.is_spent());
        }
        assert_eq!(times.load(Ordering::Relaxed), 24);
        assert_eq!(all(&mut *body(Some(4)).upload(), 3).unwrap(), b"0123.");
        assert_eq!(all(&mut *body(Some(11)).upload(), 3).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    }

    #[test]
    fn a_reader_is_spent_with_its_first_byte() {
        let body = Body::reader(Cursor::new(b"abc"));
        let (mut first, mut second) = (body.upload(), body.upload());
        assert!(first.rewind() && !body.is_spent());
        assert_eq!(all(&mut *first, 2).unwrap(), b"abc");
        assert!(body.is_spent() && !second.rewind() && !body.is_repeatable());
    }

    #[test]
    fn a_form_is_as_long_as_it_says() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(&[b'x'; 1000]).unwrap();
        let source = Content::Source { index: 0, length: Some(1000) };
        let parts = [Part::field("who", "me"), Part::file("what", "a.txt", source)];
        let layout = Layout::new(&parts, &Boundary::new([7; 16]), Escape::Percent).unwrap();
        let body = Body::multipart(&layout, &[Piece::file(file.path()).unwrap()]).unwrap();
        assert_eq!(body.length(), layout.length);
        assert_eq!(all(&mut *body.upload(), 333).unwrap().len() as u64, layout.length.unwrap());
        assert!(Body::multipart(&layout, &[]).is_err());
    }

    #[test]
    fn a_small_form_without_files_lies_in_one_place() {
        let of = |length: usize| {
            let parts = [Part::field("who", "me"), Part::field("what", "x".repeat(length))];
            let layout = Layout::new(&parts, &Boundary::new([7; 16]), Escape::Percent).unwrap();
            Body::multipart(&layout, &[]).unwrap()
        };
        assert!(matches!(of(300), Body::Bytes(_)));
        assert!(!matches!(of(TOGETHER), Body::Bytes(_)), "a large one is not copied once more");
    }
}
