//! The sink of a repeated stage (`depth`): it outputs the new URLs that one repetition finds, and
//! passes them to the next repetition. A level is one repetition.
//!
//! ```text
//! window k ─▶ KnownUrls ─┬─▶ window k + 1 (lines) ─▶ … ─▶ output, or the last window to be sorted
//!                        └─▶ numbered URLs ─▶ at the end of level k: URLs of level k + 1
//! ```
//!
//! A window is an ordered queue of bodies; window k has those of level k. A level begins only when
//! the previous level has ended. So the level of a URL does not depend on timing: it is one more
//! than the lowest level whose pages contain the URL.

use std::path::Path;
use std::sync::Arc;

use super::known_urls::KnownUrls;
use super::ordered_window::{OrderedWindow, StageSink};
use super::sinks_of_stages::StageEndValues;
use crate::Result;
use crate::buffer_pool::OfferedBodyBytes;
use crate::extraction::{DistinctOverflowValues, Sorter};
use crate::sink::descriptor_writer::OutputReadiness;
use crate::sink::extracted_value_list::ExtractedValues;

/// A sink for the links that one repetition of a stage has extracted from its pages. A stage with a
/// [`FleetStage::depth`](super::FleetStage::depth) is repeated: each repetition requests the links
/// that the previous repetition found. The sink outputs each new link, and keeps it for the next
/// repetition.
pub(super) struct LevelSink {
    known: KnownUrls,
    /// The new URLs, each preceded by its sequence number. `None` once the stage has ended.
    kept: Option<Sorter>,
    count: u64,
    output: Arc<OrderedWindow>,
    /// True to sort the URLs in the output. `output` is then the output window of the last stage,
    /// whose sink sorts the URLs of all repetitions. (An output window is an ordered queue of
    /// bodies.) If false, `output` is the window of the next stage.
    is_sorted: bool,
    next: Box<dyn StageSink>,
    passing: ExtractedValues,
    record: Vec<u8>,
}

impl LevelSink {
    /// Makes a sink that keeps the URLs that are not yet in `known`: about `memory` bytes of them
    /// in memory, and the others in files in the directory `dir`. `later` are the output windows
    /// (ordered queues of bodies) of the later stages, the last stage first. The sink outputs the
    /// kept URLs through the window of the last stage if `is_sorted` is true, and otherwise through
    /// that of the next stage. `next` receives all other content and, when this stage ends, the
    /// kept URLs.
    pub(super) fn new(
        known: &KnownUrls,
        is_sorted: bool,
        memory: u64,
        dir: &Path,
        later: &[Arc<OrderedWindow>],
        next: Box<dyn StageSink>,
    ) -> Self {
        let output = if is_sorted { later.first() } else { later.last() };
        Self {
            known: known.clone(),
            kept: Some(Sorter::new(memory, dir, false)),
            count: 0,
            output: Arc::clone(output.expect("a stage follows")),
            is_sorted,
            next,
            passing: ExtractedValues::default(),
            record: Vec::new(),
        }
    }

    fn print(&mut self) -> Result<()> {
        if self.passing.is_empty() {
            return Ok(());
        }
        let slot = self.output.reserve_slot();
        if self.is_sorted {
            self.output.add_records(slot, &mut self.passing)?;
        } else {
            self.output.add_bytes(slot, OfferedBodyBytes::borrowed(&self.passing.to_lines()))?;
        }
        self.passing.clear();
        self.output.finish_slot(slot)
    }
}

impl StageSink for LevelSink {
    fn write_bytes(&mut self, bytes: &[u8]) -> Result<OutputReadiness> {
        self.next.write_bytes(bytes)
    }

    fn write_records(&mut self, records: &mut ExtractedValues) -> Result<OutputReadiness> {
        for value in records.iter() {
            let Some(kept) = self.kept.as_mut().filter(|_| !value.is_empty()) else { continue };
            if self.known.is_new(value)? {
                self.passing.push(value);
                self.record.clear();
                self.record.extend_from_slice(&self.count.to_be_bytes());
                self.record.extend_from_slice(value);
                self.count += 1;
                kept.push(&self.record)?;
            }
        }
        records.clear();
        self.print()?;
        self.next.flush()
    }

    fn may_receive_while_full(&self) -> bool {
        self.next.may_receive_while_full()
    }

    fn flush(&mut self) -> Result<OutputReadiness> {
        self.next.flush()
    }

    fn finish(&mut self, _tail: Option<StageEndValues>) -> Result<Option<StageEndValues>> {
        let Some(kept) = self.kept.take() else { return self.next.finish(None) };
        let urls = DistinctOverflowValues::numbered(kept.finish()?);
        self.next.finish(Some(StageEndValues::Deferred(urls)))
    }
}
