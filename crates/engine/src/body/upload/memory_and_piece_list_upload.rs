//! The uploads of a [`RequestBody`](super::RequestBody): [`MemoryUpload`] for bytes in memory, and
//! [`PieceUpload`] for a list of pieces.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::Arc;
use std::task::Waker;
use std::time::{Duration, Instant};

use rustix::fd::BorrowedFd;

use super::one_shot::{OneShotReader, OneShotSource};
use super::{BodyPiece, BodyUpload, FILE_TRUNCATED, FileRange, SourceOpener};

/// The time after which an upload sends a buffer that a slow source has only partly filled. The
/// time counts from the first read into the buffer. Before its end, the upload reads on.
const SLOW_READ: Duration = Duration::from_millis(10);

/// An upload from one buffer in memory.
pub(super) struct MemoryUpload {
    bytes: Arc<[u8]>,
    at: usize,
}

impl MemoryUpload {
    pub(super) fn new(bytes: Arc<[u8]>) -> Self {
        Self { bytes, at: 0 }
    }
}

impl BodyUpload for MemoryUpload {
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
}

/// An upload that consists of several pieces, sent one after the other.
pub(super) struct PieceUpload {
    pieces: Arc<[BodyPiece]>,
    /// The index in `pieces` of the piece that is being sent.
    at: usize,
    /// The number of bytes of the current piece that were read so far.
    done: u64,
    /// The open reader of the current piece. Pieces in memory need no reader.
    open: OpenPiece,
    waker: Option<Waker>,
}

/// The open reader of an upload's current piece, or the absence of one.
enum OpenPiece {
    /// No reader is open: the piece is in memory, or no byte of it was read yet.
    Nothing,
    File(File),
    /// The reader of a [`RepeatableSource`](super::RepeatableSource) with a known length, as the
    /// function of the source has returned it. A reader of unknown length and a stream are read as
    /// `Once`.
    SizedSource(Box<dyn Read + Send>),
    Once(OneShotReader),
}

impl PieceUpload {
    pub(super) fn new(pieces: Arc<[BodyPiece]>) -> Self {
        Self { pieces, at: 0, done: 0, open: OpenPiece::Nothing, waker: None }
    }

    /// Returns true if the current piece is a [`RepeatableSource`](super::RepeatableSource) of
    /// known length that was not read to its end yet.
    fn is_amid_source(&self) -> bool {
        match &self.pieces[self.at] {
            BodyPiece::Source(source) => source.length.is_some_and(|length| self.done < length),
            BodyPiece::Bytes(_) | BodyPiece::File { .. } | BodyPiece::Once(_) => false,
        }
    }

    fn next_piece(&mut self) {
        self.at += 1;
        self.done = 0;
        self.open = OpenPiece::Nothing;
    }

    /// Reads the next bytes of the current piece into `buffer`, and returns their number; 0 means
    /// the end of the piece.
    fn read_piece(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let piece = &self.pieces[self.at];
        if let BodyPiece::Bytes(bytes) = piece {
            let rest = &bytes[self.done as usize..];
            let n = rest.len().min(buffer.len());
            buffer[..n].copy_from_slice(&rest[..n]);
            return Ok(n);
        }
        let left = match piece {
            BodyPiece::File { length, .. } => Some(length - self.done),
            BodyPiece::Source(source) => source.length.map(|length| length - self.done),
            BodyPiece::Bytes(_) | BodyPiece::Once(_) => None,
        };
        if left == Some(0) {
            return Ok(0);
        }
        if let OpenPiece::Nothing = self.open {
            self.open = open_piece(piece, self.done, self.waker.as_ref())?;
        }
        let most = buffer.len().min(left.map_or(usize::MAX, |left| usize::try_from(left).unwrap_or(usize::MAX)));
        let buffer = &mut buffer[..most];
        match &mut self.open {
            OpenPiece::File(file) => require_bytes(file.read(buffer)?, FILE_TRUNCATED),
            OpenPiece::SizedSource(source) => {
                require_bytes(source.read(buffer)?, "the content is shorter than was said")
            }
            OpenPiece::Once(reading) => reading.read(buffer),
            OpenPiece::Nothing => unreachable!("it was just opened"),
        }
    }
}

/// Opens a reader of `piece`; a piece in memory needs none. `done` is the number of bytes of a file
/// that were already sent, and that its reader skips; it is 0 for any other piece. `waker` is woken
/// when a read can continue; if it is `None`, reads may block.
fn open_piece(piece: &BodyPiece, done: u64, waker: Option<&Waker>) -> io::Result<OpenPiece> {
    let reading = |once| OpenPiece::Once(OneShotReader::new(once, waker.cloned()));
    Ok(match piece {
        BodyPiece::File { path, offset, .. } => OpenPiece::File(open_at(path, offset + done)?),
        BodyPiece::Source(source) => match &source.open {
            SourceOpener::Reader(open) if source.length.is_some() => OpenPiece::SizedSource(open()?),
            SourceOpener::Reader(open) => reading(OneShotSource::new(open()?)),
            SourceOpener::Stream(open) => reading(open()),
        },
        BodyPiece::Once(once) => reading(once.clone()),
        BodyPiece::Bytes(_) => OpenPiece::Nothing,
    })
}

fn open_at(path: &Path, offset: u64) -> io::Result<File> {
    let mut file = File::open(path)?;
    if offset > 0 {
        file.seek(SeekFrom::Start(offset))?;
    }
    Ok(file)
}

/// Returns `n`, the number of bytes that a read returned. If `n` is 0, returns an error with the
/// message `too_few`, since the piece must have more bytes.
fn require_bytes(n: usize, too_few: &'static str) -> io::Result<usize> {
    if n == 0 { Err(io::Error::new(io::ErrorKind::UnexpectedEof, too_few)) } else { Ok(n) }
}

impl BodyUpload for PieceUpload {
    fn length(&self) -> Option<u64> {
        self.pieces.iter().try_fold(0u64, |sum, piece| sum.checked_add(piece.length()?))
    }

    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let (mut filled, began) = (0, Instant::now());
        while filled < buffer.len() && self.at < self.pieces.len() {
            let waits = self.pieces[self.at].waits();
            if waits && filled > 0 {
                // Bytes already read are sent before a read that may wait.
                break;
            }
            let room = buffer.len() - filled;
            match self.read_piece(&mut buffer[filled..]) {
                Ok(0) => self.next_piece(),
                Ok(n) => {
                    filled += n;
                    self.done += n as u64;
                    // The output of a slow source is sent as it arrives.
                    if waits || n < room && self.is_amid_source() && began.elapsed() >= SLOW_READ {
                        break;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(filled)
    }

    fn file(&mut self) -> io::Result<Option<FileRange<'_>>> {
        let Some(piece @ BodyPiece::File { length, .. }) = self.pieces.get(self.at) else { return Ok(None) };
        let left = length - self.done;
        if left == 0 {
            return Ok(None);
        }
        if let OpenPiece::Nothing = self.open {
            self.open = open_piece(piece, self.done, None)?;
        }
        let OpenPiece::File(file) = &self.open else { return Ok(None) };
        Ok(Some(FileRange { file, length: left }))
    }

    fn pipe(&mut self) -> io::Result<Option<BorrowedFd<'_>>> {
        let Some(piece @ BodyPiece::Once(_)) = self.pieces.get(self.at) else { return Ok(None) };
        if let OpenPiece::Nothing = self.open {
            self.open = open_piece(piece, self.done, self.waker.as_ref())?;
        }
        if let OpenPiece::Once(reading) = &mut self.open { reading.pipe() } else { Ok(None) }
    }

    fn consume_file(&mut self, n: u64) {
        self.done += n;
        // A file that was sent whole is closed at once.
        if self.pieces.get(self.at).is_some_and(|piece| piece.length() == Some(self.done)) {
            self.next_piece();
        }
    }

    fn waits(&self) -> bool {
        self.pieces.iter().any(BodyPiece::waits)
    }

    fn set_waker(&mut self, waker: Waker) {
        self.waker = Some(waker);
    }

    fn source(&self) -> Option<BorrowedFd<'_>> {
        if let OpenPiece::Once(reading) = &self.open { reading.source() } else { None }
    }
}
