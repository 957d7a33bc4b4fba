//! The sinks for the bodies of a fleet: a slot of a window; or, if values are extracted from a
//! page, a file for the page and a slot for the values.

use std::path::Path;
use std::sync::Arc;

use haul_policy::secret_fields::without_userinfo;

use super::ordered_window::OrderedWindow;
use crate::Result;
use crate::buffer_pool::OfferedBodyBytes;
use crate::sink::extracted_value_list::{ExtractedValues, ValueInputPosition};
use crate::sink::file::FileSink;
use crate::sink::{ResponseForSink, Sink, TransferWaker};

/// A sink that puts a transfer's body into its slot of the stage's output window (an ordered queue
/// of bodies).
pub(super) struct OrderedWindowSlotSink {
    window: Arc<OrderedWindow>,
    slot: u64,
    order: Arc<[u64]>,
    found: u64,
    /// The text that is put before each value; `None` for no text.
    prefix: Option<Box<[u8]>>,
}

impl OrderedWindowSlotSink {
    pub(super) fn new(window: Arc<OrderedWindow>, slot: u64, order: Arc<[u64]>) -> Self {
        Self { window, slot, order, found: 0, prefix: None }
    }

    /// Makes the sink put a prefix before each value extracted from the body: this URL, without
    /// user and password, and a tab.
    pub(super) fn with_url(mut self, url: &str) -> Self {
        self.prefix = Some(format!("{}\t", without_userinfo(url)).into_bytes().into());
        self
    }
}

impl Sink for OrderedWindowSlotSink {
    fn credit(&mut self, waker: Option<&Arc<dyn TransferWaker>>, token: usize) -> u64 {
        self.window.credit(self.slot, waker, token)
    }

    fn is_awaited(&self) -> bool {
        self.window.is_claimed_by(self.slot)
    }

    fn is_first(&mut self, waker: Option<&Arc<dyn TransferWaker>>, token: usize) -> bool {
        self.window.is_first(self.slot, waker, token)
    }

    fn bytes(&mut self, offered: OfferedBodyBytes<'_>) -> Result<()> {
        self.window.add_bytes(self.slot, offered)
    }

    fn records(&mut self, records: &mut ExtractedValues) -> Result<()> {
        records.place = Some(ValueInputPosition { order: Arc::clone(&self.order), before: self.found });
        self.found += records.len() as u64;
        let Some(prefix) = &self.prefix else { return self.window.add_records(self.slot, records) };
        let mut lines = ExtractedValues::default();
        lines.place = records.place.take();
        for value in records.iter() {
            lines.push(&[prefix, value].concat());
        }
        records.clear();
        self.window.add_records(self.slot, &mut lines)
    }

    fn restart(&mut self) -> bool {
        self.found = 0;
        self.window.restart_slot(self.slot)
    }
}

/// A sink that writes a page to a file, and puts the values extracted from it into the output
/// window of its stage (an ordered queue).
pub(super) struct PageFileAndValuesSink {
    values: OrderedWindowSlotSink,
    file: FileSink,
}

impl PageFileAndValuesSink {
    pub(super) fn new(values: OrderedWindowSlotSink, file: FileSink) -> Self {
        Self { values, file }
    }
}

impl Sink for PageFileAndValuesSink {
    fn begin(&mut self, begin: &ResponseForSink<'_>) -> Result<()> {
        self.file.begin(begin)
    }

    fn credit(&mut self, waker: Option<&Arc<dyn TransferWaker>>, token: usize) -> u64 {
        self.values.credit(waker, token)
    }

    fn is_awaited(&self) -> bool {
        self.values.is_awaited()
    }

    fn is_first(&mut self, waker: Option<&Arc<dyn TransferWaker>>, token: usize) -> bool {
        self.values.is_first(waker, token)
    }

    fn bytes(&mut self, offered: OfferedBodyBytes<'_>) -> Result<()> {
        self.file.bytes(offered)
    }

    fn page(&mut self, bytes: &[u8]) -> Result<()> {
        self.file.bytes(OfferedBodyBytes::borrowed(bytes))
    }

    fn records(&mut self, records: &mut ExtractedValues) -> Result<()> {
        self.values.records(records)
    }

    fn restart(&mut self) -> bool {
        self.values.restart() && self.file.restart()
    }

    fn finish(&mut self) -> Result<()> {
        self.file.finish()
    }

    fn file_name(&self) -> Option<&Path> {
        self.file.file_name()
    }
}

#[cfg(test)]
mod tests;
