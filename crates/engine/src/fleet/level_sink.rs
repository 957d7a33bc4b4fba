//! The sink of a repeated stage (`depth`) that feeds its next repetition.
//!
//! ```text
//! window k ─▶ KnownUrls ─┬─▶ window k + 1 (lines) ─▶ … ─▶ output, or the last window to be sorted
//!                        └─▶ values by number ─▶ at the end of stage k: URLs of stage k + 1
//! ```
//!
//! A level begins when the one before has ended. Otherwise, a fast page could lead to a URL at a
//! deeper level first, and the URL would depend on time.

use std::path::Path;
use std::sync::Arc;

use super::known_urls::KnownUrls;
use super::ordered_window::{OrderedWindow, StageSink};
use super::stage_memory::{RecalledKind, StageMemory};
use super::stage_sink::FinalValues;
use crate::Result;
use crate::buffer_pool::BufferLease;
use crate::extraction::{DeferredValues, Sorter};
use crate::sink::descriptor_writer::OutputReadiness;
use crate::sink::match_list::MatchList;

/// A sink that prints each new URL, and keeps it for the next repetition of its stage.
pub(super) struct LevelSink {
    known: KnownUrls,
    /// The new URLs, each after its number. `None` at the end.
    kept: Option<Sorter>,
    count: u64,
    output: Arc<OrderedWindow>,
    /// True if `output` is the window of the last stage, which sorts the URLs.
    is_sorted: bool,
    next: Box<dyn StageSink>,
    passing: MatchList,
    record: Vec<u8>,
    /// The memory of the URLs, with the index of the stage.
    memory: Option<(Arc<dyn StageMemory>, usize)>,
}

impl LevelSink {
    /// Makes a sink that uses about `memory` bytes, and the directory `dir` for URLs beyond them.
    /// `later` are the windows of the later stages, the last stage first. `next` is the sink for
    /// everything but URLs.
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
            passing: MatchList::default(),
            record: Vec::new(),
            memory: None,
        }
    }

    /// Notes the URLs of the stage with this index, and recalls those of earlier runs: they are known
    /// and printed. Those that the next repetition has not queued yet are kept for its beginning.
    pub(super) fn remembering(mut self, memory: &Arc<dyn StageMemory>, stage: usize) -> Result<Self> {
        let mut queued = 0_u64;
        memory.recall(stage + 1, RecalledKind::Queued, &mut |_| {
            queued += 1;
            Ok(())
        })?;
        memory.recall(stage, RecalledKind::FinishedUrl, &mut |url| self.known.is_new(url).map(drop))?;
        let Self { known, kept, count, record, .. } = &mut self;
        memory.recall(stage, RecalledKind::Kept, &mut |value| {
            known.is_new(value)?;
            // The next repetition queues the URLs in this order, so the first ones are queued.
            match kept.as_mut().filter(|_| queued == 0) {
                Some(kept) => keep(kept, count, record, value)?,
                None => queued -= 1,
            }
            Ok(())
        })?;
        self.memory = Some((Arc::clone(memory), stage));
        Ok(self)
    }

    fn print(&mut self) -> Result<()> {
        if self.passing.is_empty() {
            return Ok(());
        }
        let slot = self.output.reserve();
        if self.is_sorted {
            self.output.records(slot, &mut self.passing)?;
        } else {
            self.output.bytes(slot, BufferLease::borrowed(&self.passing.to_lines()))?;
        }
        self.passing.clear();
        self.output.finish(slot)
    }
}

/// Adds a URL after its number to the URLs of the next repetition.
fn keep(kept: &mut Sorter, count: &mut u64, record: &mut Vec<u8>, value: &[u8]) -> Result<()> {
    record.clear();
    record.extend_from_slice(&count.to_be_bytes());
    record.extend_from_slice(value);
    *count += 1;
    kept.push(record)
}

impl StageSink for LevelSink {
    fn bytes(&mut self, bytes: &[u8]) -> Result<OutputReadiness> {
        self.next.bytes(bytes)
    }

    fn records(&mut self, records: &mut MatchList) -> Result<OutputReadiness> {
        for value in records.iter() {
            let Some(kept) = self.kept.as_mut().filter(|_| !value.is_empty()) else { continue };
            if self.known.is_new(value)? {
                self.passing.push(value);
                keep(kept, &mut self.count, &mut self.record, value)?;
                if let Some((memory, stage)) = &self.memory {
                    memory.kept(*stage, value);
                }
            }
        }
        records.clear();
        self.print()?;
        self.next.flush()
    }

    fn may_run_ahead(&self) -> bool {
        self.next.may_run_ahead()
    }

    fn flush(&mut self) -> Result<OutputReadiness> {
        self.next.flush()
    }

    fn finish(&mut self, _tail: Option<FinalValues>) -> Result<Option<FinalValues>> {
        let Some(kept) = self.kept.take() else { return self.next.finish(None) };
        let urls = DeferredValues::numbered(kept.finish()?);
        self.next.finish(Some(FinalValues::Deferred(urls)))
    }
}
