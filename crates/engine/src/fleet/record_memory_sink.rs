//! A sink that keeps the content of a transfer until the transfer has ended, so that the reporter
//! can make one text from the content and the facts about the transfer.
//!
//! ```text
//!  body ─▶ RecordMemorySink ─▶ FinishedTransferContent ─▶ TransferReporter::record ─▶ WholeOrPiecewiseText ─▶ window ─▶ output
//!            │ counts in the window's memory                            a record leaves as a whole
//! ```
//!
//! ```
//! use haul::fleet::{RecordMemorySink, RecordOptions};
//! use haul::sink::Sink;
//! let options = RecordOptions { max_content: 1 << 20, keeps_body: true, file_checksum: None };
//! let mut sink = RecordMemorySink::new(options);
//! assert!(!sink.take_record().unwrap().is_complete);
//! ```

use std::fmt;
use std::io;
use std::path::Path;
use std::sync::Arc;

use rustix::fd::BorrowedFd;

use super::ordered_window::OrderedWindow;
use crate::buffer_pool::OfferedBodyBytes;
use crate::sink::checksum::HashAlgorithm;
use crate::sink::extracted_value_list::ExtractedValues;
use crate::sink::file::FileSink;
use crate::sink::memory::MemorySink;
use crate::sink::{ReceivedIntoSink, ResponseForSink, Sink, TransferWaker};
use crate::{Error, ErrorKind, Result};

/// The settings of the records that a stage of a fleet outputs
/// ([`FleetStage::records`](super::FleetStage::records)): the maximum size and the parts of their
/// content. A record is a text that describes one transfer, such as a `--jsonl` line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordOptions {
    /// The maximum size in bytes of a record's content, i.e. of the transfer's body or values. A
    /// transfer with more content fails with [`ErrorKind::TooLarge`].
    pub max_content: u64,
    /// True to keep the body. False to discard it, so that records contain only the facts about the
    /// transfer and the extracted values.
    pub keeps_body: bool,
    /// The algorithm for the checksum of a file to which a body is written
    /// ([`FinishedTransferContent::file_checksum`]); `None` for no checksum.
    pub file_checksum: Option<HashAlgorithm>,
}

/// The content that a finished transfer has delivered, for its record.
#[derive(Debug, Default)]
pub struct FinishedTransferContent {
    /// The received bytes of the body. They are empty if the body was discarded, written to a file,
    /// or searched for values.
    pub body: Vec<u8>,
    /// The values that were extracted from the body.
    pub values: ExtractedValues,
    /// The checksum of the regular file to which the body was written. `None` if there is no such
    /// file, if it cannot be read, or if [`RecordOptions::file_checksum`] is `None`.
    pub file_checksum: Option<Vec<u8>>,
    /// True if the transfer delivered the whole body. This can be true for a failed transfer, too,
    /// if it failed because of its status.
    pub is_complete: bool,
}

/// The text of a transfer's record (such as a `--jsonl` line) in one of three forms: the whole
/// text, an iterator over its pieces, or a list of its lines.
pub enum WholeOrPiecewiseText {
    /// The whole text of the record. If it is empty, nothing is output.
    Whole(Vec<u8>),
    /// The text of the record in pieces, which are made while the text is output.
    Pieces(RecordTextIterator),
    /// The lines of the record without their line feeds. They can be sorted, and repeated lines can
    /// be dropped.
    Lines(ExtractedValues),
}

/// The text of the record of one transfer, produced piece by piece while it is output.
pub struct RecordTextIterator {
    /// The pieces of the record's text, in order.
    pub pieces: Box<dyn Iterator<Item = Vec<u8>> + Send>,
    /// The number of bytes of memory that the iterator `pieces` uses.
    pub cost: usize,
}

impl fmt::Debug for RecordTextIterator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RecordTextIterator").field("cost", &self.cost).finish_non_exhaustive()
    }
}

/// A sink that keeps the body of one transfer, or the values extracted from it, in memory until the
/// transfer's record (such as a `--jsonl` line) is made from them. In a fleet (a run of many
/// parallel transfers), this memory counts towards the memory budget of the output window, an
/// ordered queue of bodies.
pub struct RecordMemorySink {
    options: RecordOptions,
    body: MemorySink,
    values: ExtractedValues,
    is_complete: bool,
    /// The file to which the body is written while values are extracted from the body; `None` if
    /// the body itself is not stored.
    file: Option<FileSink>,
    /// The output window (ordered queue) whose budget the memory counts towards, and the number of
    /// the transfer's slot in it. `None` outside of a fleet.
    place: Option<(Arc<OrderedWindow>, u64)>,
    /// The number of bytes by which this sink has reduced the window's memory budget.
    counted: usize,
}

impl fmt::Debug for RecordMemorySink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RecordMemorySink").field("options", &self.options).finish_non_exhaustive()
    }
}

impl RecordMemorySink {
    /// Makes a sink for one transfer, outside of a fleet.
    #[must_use]
    pub fn new(options: RecordOptions) -> Self {
        Self {
            options,
            body: MemorySink::default(),
            values: ExtractedValues::default(),
            is_complete: false,
            file: None,
            place: None,
            counted: 0,
        }
    }

    /// Makes a sink for a transfer of a fleet. The sink's memory counts towards the memory budget
    /// of the output window (an ordered queue of bodies). `slot` is the number of the transfer's
    /// slot in the window. `file` is the file to which the body is written while values are
    /// extracted from the body; `None` if the body itself is not stored.
    pub(super) fn in_window(
        options: RecordOptions,
        window: &Arc<OrderedWindow>,
        slot: u64,
        file: Option<FileSink>,
    ) -> Self {
        Self { place: Some((Arc::clone(window), slot)), file, ..Self::new(options) }
    }

    /// Returns an error if the content would be larger than allowed with `more` further bytes.
    /// `size` is its present size in bytes.
    fn check_size(&self, size: usize, more: u64) -> Result<()> {
        let most = self.options.max_content;
        if size as u64 + more <= most {
            return Ok(());
        }
        let message = format!("it is larger than the {most} bytes that a record may have");
        Err(Error::new(ErrorKind::TooLarge, message))
    }

    /// Informs the output window of the memory that the content takes now, which counts towards the
    /// window's budget.
    fn count_memory(&mut self) {
        let Some((window, slot)) = &self.place else { return };
        let uses = self.body.capacity() + self.values.memory_size();
        if uses != self.counted {
            window.count_outside(*slot, self.counted, uses);
            self.counted = uses;
        }
    }
}

impl Sink for RecordMemorySink {
    fn begin(&mut self, begin: &ResponseForSink<'_>) -> Result<()> {
        match &mut self.file {
            Some(file) => file.begin(begin),
            None if self.options.keeps_body => {
                self.check_size(0, begin.length.unwrap_or(0))?;
                self.body.begin(begin)?;
                self.count_memory();
                Ok(())
            }
            None => Ok(()),
        }
    }

    fn credit(&mut self, waker: Option<&Arc<dyn TransferWaker>>, token: usize) -> u64 {
        self.place.as_ref().map_or(u64::MAX, |(window, slot)| window.credit(*slot, waker, token))
    }

    fn is_awaited(&self) -> bool {
        self.place.as_ref().is_some_and(|(window, slot)| window.is_claimed_by(*slot))
    }

    fn is_first(&mut self, waker: Option<&Arc<dyn TransferWaker>>, token: usize) -> bool {
        self.place.as_ref().is_some_and(|(window, slot)| window.is_first(*slot, waker, token))
    }

    fn bytes(&mut self, offered: OfferedBodyBytes<'_>) -> Result<()> {
        if !self.options.keeps_body {
            return Ok(());
        }
        self.check_size(self.body.as_bytes().len(), offered.bytes().len() as u64)?;
        self.body.bytes(offered)?;
        self.count_memory();
        Ok(())
    }

    fn receive(&mut self, socket: BorrowedFd<'_>, most: usize) -> Option<io::Result<ReceivedIntoSink>> {
        let left = self.options.max_content.saturating_sub(self.body.as_bytes().len() as u64);
        if !self.options.keeps_body || left < most as u64 {
            return None;
        }
        self.body.receive(socket, most)
    }

    fn page(&mut self, bytes: &[u8]) -> Result<()> {
        self.file.as_mut().map_or(Ok(()), |file| file.bytes(OfferedBodyBytes::borrowed(bytes)))
    }

    fn records(&mut self, records: &mut ExtractedValues) -> Result<()> {
        self.check_size(self.values.memory_size(), records.memory_size() as u64)?;
        self.values.append(records);
        self.count_memory();
        Ok(())
    }

    fn restart(&mut self) -> bool {
        (self.body, self.values, self.is_complete) = Default::default();
        self.count_memory();
        let is_empty = self.place.as_ref().is_none_or(|(window, slot)| window.restart_slot(*slot));
        is_empty && self.file.as_mut().is_none_or(Sink::restart)
    }

    fn finish(&mut self) -> Result<()> {
        if let Some(file) = &mut self.file {
            file.finish()?;
        }
        self.is_complete = true;
        Ok(())
    }

    fn take_record(&mut self) -> Option<FinishedTransferContent> {
        let body = std::mem::take(&mut self.body).into_bytes();
        let values = std::mem::take(&mut self.values);
        let file = self.file.as_mut().and_then(Sink::take_record);
        let file_checksum = file.and_then(|content| content.file_checksum);
        Some(FinishedTransferContent { body, values, file_checksum, is_complete: self.is_complete })
    }

    fn file_name(&self) -> Option<&Path> {
        self.file.as_ref().and_then(Sink::file_name)
    }
}
