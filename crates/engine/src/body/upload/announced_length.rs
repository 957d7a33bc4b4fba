//! An upload of unknown length for which the caller has announced a length in `Content-Length`. If
//! the content is longer, the request fails: otherwise the server would take the announced part
//! for the complete content.

use std::io;
use std::task::Waker;
use std::time::Instant;

use rustix::fd::BorrowedFd;

use super::super::request_trailers::Field;
use super::BodyUpload;

/// An upload that fails if its content is longer than announced. It returns the last announced byte
/// only after the content has ended, so that the request with excess content stays incomplete.
/// The connection notices content that is too short.
pub(crate) struct AnnouncedLengthUpload {
    upload: Box<dyn BodyUpload>,
    announced: u64,
    left: u64,
    /// The last announced byte, while the end of the content is not known.
    last: Option<u8>,
}

impl AnnouncedLengthUpload {
    pub(crate) fn new(upload: Box<dyn BodyUpload>, announced: u64) -> Self {
        Self { upload, announced, left: announced, last: None }
    }

    /// Checks that the content has ended.
    fn check_end(&mut self) -> io::Result<()> {
        if self.upload.read(&mut [0])? == 0 {
            return Ok(());
        }
        Err(io::Error::other(format!(
            "request body is longer than its announced length of {} bytes; correct Content-Length or leave it out",
            self.announced
        )))
    }
}

impl BodyUpload for AnnouncedLengthUpload {
    fn length(&self) -> Option<u64> {
        self.upload.length()
    }

    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() || self.left == 0 {
            return Ok(0);
        }
        if self.last.is_none() {
            let room = usize::try_from(self.left).map_or(buffer.len(), |left| left.min(buffer.len()));
            let count = self.upload.read(&mut buffer[..room])?;
            if count == 0 || (count as u64) < self.left {
                self.left -= count as u64;
                return Ok(count);
            }
            self.last = Some(buffer[count - 1]);
            self.left = 1;
            if count > 1 {
                return Ok(count - 1);
            }
        }
        self.check_end()?;
        self.left = 0;
        Ok(self.last.take().map_or(0, |byte| {
            buffer[0] = byte;
            1
        }))
    }

    fn check_empty(&mut self) -> io::Result<()> {
        // An early response ends a longer upload before its source has ended.
        if self.announced == 0 { self.check_end() } else { Ok(()) }
    }

    fn waits(&self) -> bool {
        self.upload.waits()
    }

    fn set_waker(&mut self, waker: Waker) {
        self.upload.set_waker(waker);
    }

    fn source(&self) -> Option<BorrowedFd<'_>> {
        self.upload.source()
    }

    fn resumes_at(&self) -> Option<Instant> {
        self.upload.resumes_at()
    }

    fn trailers(&mut self) -> io::Result<Vec<Field>> {
        self.upload.trailers()
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::super::RequestBody;
    use super::*;

    /// Reads the content with a buffer of `size` bytes, and returns the bytes and the error.
    fn content(text: &'static str, announced: u64, size: usize) -> (Vec<u8>, Option<String>) {
        let mut upload =
            AnnouncedLengthUpload::new(RequestBody::reader(text.as_bytes().chain(io::empty())).upload(), announced);
        let (mut all, mut buffer) = (Vec::new(), vec![0; size]);
        loop {
            match upload.read(&mut buffer) {
                Ok(0) => return (all, None),
                Ok(count) => all.extend_from_slice(&buffer[..count]),
                Err(error) => return (all, Some(error.to_string())),
            }
        }
    }

    #[test]
    fn excess_content_fails_before_the_last_byte() {
        for size in [1, 2, 5, 64] {
            assert_eq!(content("hello", 5, size), (b"hello".to_vec(), None));
            assert_eq!(content("hel", 5, size), (b"hel".to_vec(), None));
            let (sent, error) = content("hello-world", 5, size);
            assert_eq!(sent, b"hell", "with a buffer of {size} bytes");
            assert!(error.is_some_and(|text| text.contains("longer than its announced length of 5 bytes")));
        }
    }

    #[test]
    fn source_is_checked_for_length_zero_only() {
        let check = |text: &'static str, announced| {
            let body = RequestBody::reader(text.as_bytes());
            AnnouncedLengthUpload::new(body.upload(), announced).check_empty().is_ok()
        };
        assert_eq!([check("", 0), check("hello", 0), check("hello", 5), check("hello", 1)], [true, false, true, true]);
    }
}
