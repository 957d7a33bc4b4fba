//! The sinks for response bodies that this process fetches without the agent. They count written
//! bytes, skip bytes that the agent already delivered, and keep a file whose content has not
//! changed.

use std::io::{self, IoSlice};
use std::ops::Range;
use std::os::fd::BorrowedFd;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use haul::buffer_pool::OfferedBodyBytes;
use haul::sink::descriptor_writer::BlockingOutputSink;
use haul::sink::file::FileSink;
use haul::sink::partial::PartialFile;
use haul::sink::{ExistingPartialContent, ResponseForSink, Sink, TransferWaker};
use haul::{Error, ErrorKind, ResponseHead, Result, Target};
use haul_policy::range::validator::Validator;

use super::protocol::ResponseStart;

/// The status 304 (Not Modified): the existing file is up to date (RFC 9110 section 15.4.5).
pub(crate) const NOT_MODIFIED: u16 = 304;

/// The complete length in bytes and the validator of a response's content. Each is `None` if it is
/// unknown.
#[derive(Debug, Clone, Default)]
pub(super) struct LengthAndValidator {
    pub(super) total: Option<u64>,
    pub(super) validator: Option<Validator>,
}

impl LengthAndValidator {
    pub(super) fn from_response_start(began: Option<&ResponseStart>) -> Self {
        began.map_or_else(Self::default, |began| Self { total: began.total, validator: began.validator.clone() })
    }
}

pub(super) fn strong_validator(head: &ResponseHead) -> Option<Validator> {
    Validator::strong(head.get("etag"), head.get("last-modified"), head.get("date"))
}

/// The beginning of a body, which the agent delivered before it died: the number of bytes that the
/// sink still has to skip, and the validator of the content. The fetch fails if the new response
/// has another validator.
pub(super) struct DeliveredPrefix {
    pub(super) left: u64,
    pub(super) of: Validator,
}

/// A sink that passes the body of a response on to an output. It stores the length and the
/// validator of the content and the number of written bytes, so that the caller can read them after
/// the transfer.
pub(super) struct TrackingSink {
    pub(super) sink: BlockingOutputSink,
    pub(super) noted: Arc<Mutex<(LengthAndValidator, u64)>>,
    pub(super) skipped: Option<DeliveredPrefix>,
}

impl TrackingSink {
    fn update(&self, note: impl FnOnce(&mut (LengthAndValidator, u64))) {
        note(&mut self.noted.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

impl Sink for TrackingSink {
    fn begin(&mut self, begin: &ResponseForSink<'_>) -> Result<()> {
        if self.skipped.as_ref().is_some_and(|skipped| strong_validator(begin.head).as_ref() != Some(&skipped.of)) {
            return Err(Error::new(ErrorKind::Changed, "the content changed while it was fetched"));
        }
        self.update(|(facts, _)| {
            *facts = LengthAndValidator { total: begin.total, validator: begin.validator.cloned() }
        });
        self.sink.begin(begin)
    }

    fn bytes(&mut self, offered: OfferedBodyBytes<'_>) -> Result<()> {
        let all = offered.bytes().len();
        let Some(skipped) = self.skipped.as_mut().filter(|skipped| skipped.left > 0) else {
            self.sink.bytes(offered)?;
            self.update(|(_, moved)| *moved += all as u64);
            return Ok(());
        };
        let left_out = usize::try_from(skipped.left).map_or(all, |left| left.min(all));
        skipped.left -= left_out as u64;
        self.sink.bytes(OfferedBodyBytes::borrowed(&offered.bytes()[left_out..]))?;
        self.update(|(_, moved)| *moved += (all - left_out) as u64);
        Ok(())
    }

    fn pieces(&mut self, pieces: &mut [IoSlice<'_>]) -> Result<()> {
        if self.skipped.is_some() {
            return pieces.iter().try_for_each(|piece| self.bytes(OfferedBodyBytes::borrowed(piece)));
        }
        let all: usize = pieces.iter().map(|piece| piece.len()).sum();
        self.sink.pieces(pieces)?;
        self.update(|(_, moved)| *moved += all as u64);
        Ok(())
    }

    fn direct(&mut self) -> Option<BorrowedFd<'_>> {
        if self.skipped.is_some() { None } else { self.sink.direct() }
    }

    fn moved(&mut self, bytes: u64) {
        self.update(|(_, moved)| *moved += bytes);
        self.sink.moved(bytes);
    }

    fn credit(&mut self, waker: Option<&Arc<dyn TransferWaker>>, token: usize) -> u64 {
        self.sink.credit(waker, token)
    }

    fn keep_unwritten(&mut self, keeps: bool) {
        self.sink.keep_unwritten(keeps);
    }

    fn full_output(&mut self) -> Option<BorrowedFd<'_>> {
        self.sink.full_output()
    }

    fn write_kept(&mut self) -> Result<()> {
        self.sink.write_kept()
    }

    fn restart(&mut self) -> bool {
        self.skipped.is_none() && self.sink.restart()
    }

    fn finish(&mut self) -> Result<()> {
        self.sink.finish()
    }
}

/// A file sink that leaves the existing file unchanged if the response has the status 304 (Not
/// Modified).
pub(super) struct KeepFileIfNotModifiedSink {
    sink: FileSink,
    is_unchanged: bool,
}

impl KeepFileIfNotModifiedSink {
    pub(super) fn new(sink: FileSink) -> Self {
        Self { sink, is_unchanged: false }
    }
}

impl Sink for KeepFileIfNotModifiedSink {
    fn begin(&mut self, begin: &ResponseForSink<'_>) -> Result<()> {
        self.is_unchanged = begin.head.status() == NOT_MODIFIED;
        if self.is_unchanged { Ok(()) } else { self.sink.begin(begin) }
    }

    fn bytes(&mut self, offered: OfferedBodyBytes<'_>) -> Result<()> {
        if self.is_unchanged { Ok(()) } else { self.sink.bytes(offered) }
    }

    fn pieces(&mut self, pieces: &mut [IoSlice<'_>]) -> Result<()> {
        if self.is_unchanged { Ok(()) } else { self.sink.pieces(pieces) }
    }

    fn direct(&mut self) -> Option<BorrowedFd<'_>> {
        if self.is_unchanged { None } else { self.sink.direct() }
    }

    fn moved(&mut self, bytes: u64) {
        self.sink.moved(bytes);
    }

    fn write_error(&self, error: io::Error) -> Error {
        self.sink.write_error(error)
    }

    fn partial(&mut self, target: &Target) -> Option<ExistingPartialContent> {
        self.sink.partial(target)
    }

    fn continues_file(&self) -> bool {
        self.sink.continues_file()
    }

    fn next_gap(&mut self) -> Option<Range<u64>> {
        self.sink.next_gap()
    }

    fn partial_file(&mut self) -> Option<Arc<PartialFile>> {
        self.sink.partial_file()
    }

    fn restart(&mut self) -> bool {
        self.sink.restart()
    }

    fn finish(&mut self) -> Result<()> {
        if self.is_unchanged { Ok(()) } else { self.sink.finish() }
    }

    fn file_name(&self) -> Option<&Path> {
        self.sink.file_name()
    }
}
