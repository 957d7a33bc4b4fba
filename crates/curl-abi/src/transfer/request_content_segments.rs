//! The content of a request as the program supplies it: bytes, files and callbacks, one after the
//! other. All callbacks run on the program's thread that reads the content.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::PathBuf;
use std::sync::Arc;

use super::callbacks::{Callbacks, READFUNC_ABORT, READFUNC_PAUSE};
use crate::mime::PartCallback;

/// The maximum number of bytes that one call of a read callback may return, as in libcurl.
const MAX_READ: usize = 64 << 10;

/// A piece of request content.
#[derive(Clone)]
pub(crate) enum ContentSegment {
    /// Bytes in memory.
    Bytes(Arc<[u8]>),
    /// The path of a file, with its length in bytes. The length is `None` if the file is not a
    /// regular file.
    File { path: PathBuf, length: Option<u64> },
    /// Content that a callback supplies.
    Callback(RequestContentCallback),
}

/// A callback that supplies request content, with the length of the content and the offset at which
/// it begins.
#[derive(Clone)]
pub(crate) struct RequestContentCallback {
    source: CallbackSource,
    /// The number of content bytes; `None` if it is unknown.
    length: Option<u64>,
    /// The offset, in the callback's content, of the first byte to send.
    start: u64,
}

#[derive(Clone)]
enum CallbackSource {
    /// The read callback of the easy handle with this id.
    Handle(Box<Callbacks>, usize),
    /// The callback of a part of a form.
    Part(PartCallback),
}

/// The result of reading from a [`RequestContentReader`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ContentRead {
    /// The number of bytes that were read.
    Bytes(usize),
    /// The content has ended.
    End,
    /// The callback pauses the transfer; the content continues later.
    Pause,
    /// The callback aborts the transfer.
    Abort,
    /// The content cannot be read.
    Failed,
}

impl RequestContentCallback {
    /// Returns the content that the read callback of a handle supplies.
    pub(crate) fn from_callbacks(callbacks: Callbacks, easy: usize, length: Option<u64>, start: u64) -> Self {
        Self { source: CallbackSource::Handle(Box::new(callbacks), easy), length, start }
    }

    /// Returns the content that the callback of a form part supplies.
    pub(crate) fn from_part(part: PartCallback) -> Self {
        Self { length: part.length, source: CallbackSource::Part(part), start: 0 }
    }

    fn read(&self, buffer: &mut [u8]) -> ContentRead {
        let room = buffer.len().min(MAX_READ);
        let buffer = &mut buffer[..room];
        let read = match &self.source {
            CallbackSource::Handle(callbacks, _) => callbacks.read(buffer),
            CallbackSource::Part(part) => part.read(buffer),
        };
        match read {
            0 => ContentRead::End,
            READFUNC_ABORT => ContentRead::Abort,
            READFUNC_PAUSE => ContentRead::Pause,
            n if n <= room => ContentRead::Bytes(n),
            _ => ContentRead::Failed,
        }
    }

    fn seek(&self, offset: u64) -> bool {
        match &self.source {
            CallbackSource::Handle(callbacks, easy) => callbacks.seek(*easy, offset),
            CallbackSource::Part(part) => offset == 0 && part.rewind(),
        }
    }

    /// Skips the bytes before the first byte to send, by seeking or by reading. Returns false on
    /// failure.
    fn skip_start(&self) -> bool {
        if self.start == 0 || self.seek(self.start) {
            return true;
        }
        let (mut left, mut buffer) = (self.start, vec![0; MAX_READ]);
        while left > 0 {
            let most = usize::try_from(left).unwrap_or(MAX_READ).min(MAX_READ);
            match self.read(&mut buffer[..most]) {
                ContentRead::Bytes(n) => left -= n as u64,
                _ => return false,
            }
        }
        true
    }
}

impl ContentSegment {
    /// Returns the number of content bytes; `None` if it is unknown.
    pub(crate) fn length(&self) -> Option<u64> {
        match self {
            Self::Bytes(bytes) => Some(bytes.len() as u64),
            Self::File { length, .. } => *length,
            Self::Callback(callback) => callback.length,
        }
    }
}

/// Request content that is read from its beginning to its end. It is read again if the request is
/// repeated.
pub(crate) struct RequestContentReader {
    segments: Vec<ContentSegment>,
    /// The index of the content segment that is being read.
    at: usize,
    /// The number of bytes that were already read of the segment with the index `at`.
    offset: u64,
    file: Option<File>,
}

impl RequestContentReader {
    pub(crate) fn new(segments: Vec<ContentSegment>) -> Self {
        Self { segments, at: 0, offset: 0, file: None }
    }

    /// Returns the total number of bytes; `None` if it is unknown.
    pub(crate) fn length(&self) -> Option<u64> {
        self.segments.iter().try_fold(0u64, |sum, segment| sum.checked_add(segment.length()?))
    }

    /// Returns all of the content if it is in memory; otherwise `None`.
    pub(crate) fn in_memory(&self) -> Option<Vec<u8>> {
        let mut all = Vec::new();
        for segment in &self.segments {
            let ContentSegment::Bytes(bytes) = segment else { return None };
            all.extend_from_slice(bytes);
        }
        Some(all)
    }

    /// Reads the next bytes into `buffer`, which must not be empty.
    pub(crate) fn read(&mut self, buffer: &mut [u8]) -> ContentRead {
        loop {
            let Some(segment) = self.segments.get(self.at) else { return ContentRead::End };
            let left = segment.length().map_or(u64::MAX, |length| length.saturating_sub(self.offset));
            let most = usize::try_from(left).unwrap_or(usize::MAX).min(buffer.len());
            let read = if most == 0 { ContentRead::End } else { self.read_segment(&mut buffer[..most]) };
            match read {
                ContentRead::Bytes(n) => {
                    self.offset += n as u64;
                    return read;
                }
                // The content ended before its announced length.
                ContentRead::End if left > 0 && left != u64::MAX => return ContentRead::Failed,
                ContentRead::End => {
                    self.at += 1;
                    self.offset = 0;
                    self.file = None;
                }
                other => return other,
            }
        }
    }

    fn read_segment(&mut self, buffer: &mut [u8]) -> ContentRead {
        match &self.segments[self.at] {
            ContentSegment::Bytes(bytes) => {
                let rest = &bytes[usize::try_from(self.offset).unwrap_or(usize::MAX).min(bytes.len())..];
                let n = rest.len().min(buffer.len());
                buffer[..n].copy_from_slice(&rest[..n]);
                ContentRead::Bytes(n)
            }
            ContentSegment::Callback(callback) => {
                if self.offset == 0 && !callback.skip_start() {
                    return ContentRead::Failed;
                }
                callback.read(buffer)
            }
            ContentSegment::File { path, .. } => {
                if self.file.is_none() {
                    match File::open(path) {
                        Ok(file) => self.file = Some(file),
                        Err(_) => return ContentRead::Failed,
                    }
                }
                let Some(file) = &mut self.file else { return ContentRead::Failed };
                loop {
                    return match file.read(buffer) {
                        Ok(0) => ContentRead::End,
                        Ok(n) => ContentRead::Bytes(n),
                        Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                        Err(_) => ContentRead::Failed,
                    };
                }
            }
        }
    }

    /// Goes back to the first byte. Returns false if a callback cannot do this.
    pub(crate) fn rewind(&mut self) -> bool {
        let is_begun = self.at > 0 || self.offset > 0;
        let begun = self.segments.iter().take(self.at + usize::from(self.offset > 0));
        let callbacks = begun.filter_map(|segment| match segment {
            ContentSegment::Callback(callback) => Some(callback),
            _ => None,
        });
        for callback in callbacks {
            if !callback.seek(0) {
                return false;
            }
        }
        if is_begun {
            (self.at, self.offset, self.file) = (0, 0, None);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(source: &mut RequestContentReader) -> Vec<u8> {
        let (mut bytes, mut buffer) = (Vec::new(), [0; 3]);
        loop {
            match source.read(&mut buffer) {
                ContentRead::Bytes(n) => bytes.extend_from_slice(&buffer[..n]),
                ContentRead::End => return bytes,
                other => panic!("{other:?}"),
            }
        }
    }

    #[test]
    fn segments_are_read_in_order_and_can_be_reread() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), b"from a file").unwrap();
        let segment = |text: &[u8]| ContentSegment::Bytes(text.into());
        let path = file.path().to_owned();
        let mut source = RequestContentReader::new(vec![
            segment(b"a"),
            segment(b""),
            ContentSegment::File { path, length: Some(6) },
            segment(b"!"),
        ]);
        assert_eq!((source.length(), source.in_memory()), (Some(8), None));
        assert_eq!(all(&mut source), b"afrom a!");
        assert!(source.rewind());
        assert_eq!(all(&mut source), b"afrom a!");
    }

    #[test]
    fn upload_of_file_shorter_than_announced_fails() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let mut source =
            RequestContentReader::new(vec![ContentSegment::File { path: file.path().to_owned(), length: Some(1) }]);
        assert_eq!(source.read(&mut [0; 8]), ContentRead::Failed);
    }
}
